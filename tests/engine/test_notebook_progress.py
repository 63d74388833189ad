"""A bar in notebooks: shown there alone, once, removed at the end, and never part of a result."""

import inspect
import sys
import types

import numpy as np
import pytest

import unskew as us
from shared.public import public_names
from unskew.engine import progress as module
from unskew.engine.progress import Bar, notebook_display, notebook_progress

LATER = {"experiment.tune_systems"}
"""Its code is part of the rules whose rates are measured, so it stays as it is."""


class Screen:
    """A display that keeps what it was given."""

    def __init__(self):
        self.shown = []

    def __call__(self, bundle, *, is_new):
        assert is_new or self.shown
        self.shown.append(bundle["text/html"])


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def screen(monkeypatch):
    screen = Screen()
    monkeypatch.setattr(module, "notebook_display", lambda: screen)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    monkeypatch.setattr(module, "PERIOD", -1.0)
    return screen


def test_every_public_function_with_progress_shows_it():
    functions = {
        name: one
        for name, one in public_names().items()
        if inspect.isroutine(one) and "progress" in inspect.signature(one).parameters
    }
    assert len(functions) > 20
    assert {name for name, one in functions.items() if not hasattr(one, "shows_progress")} == LATER


def test_short_work_shows_nothing_and_long_work_says_what_is_left():
    screen, clock = Screen(), Clock()
    bar = Bar("audit", screen, {"train": 3, "judge": 1}, clock)
    bar("train", 0, 10)
    assert screen.shown == []
    clock.now = 30.0
    bar("train", 5, 10)
    (shown,) = screen.shown
    assert 'value="0.375"' in shown
    assert "audit · train: 5 of 10 · 38 % · about 50 s left" in shown
    bar("train", 6, 10)
    assert len(screen.shown) == 1  # not more often than people can read
    clock.now = 40.0
    bar("judge", 0, 2)
    assert 'value="0.750"' in screen.shown[1]
    bar.finish()
    assert screen.shown[-1] == ""


def test_a_bar_takes_what_the_library_tells():
    screen, clock = Screen(), Clock()
    bar = Bar("plan", screen, clock=clock)
    clock.now = 2.0
    bar(types.SimpleNamespace(done=1, total=4, failed=2, label="x"))
    assert "2 failed: 1 of 4 · 25 %" in screen.shown[0]
    clock.now = 3.0
    bar(3, 4)
    assert "3 of 4 · 75 %" in screen.shown[1]
    clock.now = 4.0
    bar("<i>name</i>", 4, 4)
    assert "&lt;i&gt;" in screen.shown[2]


def test_work_that_fails_leaves_a_line(screen):
    @notebook_progress("counting")
    def count(*, progress=None):
        progress(1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count()
    assert screen.shown[-1] == "<p>counting: stopped at 1 of 2, after 0 s</p>"
    with pytest.raises(KeyboardInterrupt):  # the next one may show itself again
        count()


def test_one_bar_at_a_time_and_none_beside_a_given_progress(screen):
    @notebook_progress("inner")
    def inner(*, progress=None):
        assert progress is None

    @notebook_progress("outer")
    def outer(*, progress=None):
        inner()
        progress(1, 1)

    outer()
    assert len(screen.shown) == 2
    assert "outer" in screen.shown[0]
    told = []
    outer(progress=lambda *state: told.append(state))
    assert told == [(1, 1)]
    assert len(screen.shown) == 2


def test_a_display_that_fails_ends_no_work(monkeypatch):
    def broken(bundle, *, is_new):
        raise OSError

    monkeypatch.setattr(module, "notebook_display", lambda: broken)
    monkeypatch.setattr(module, "PATIENCE", -1.0)

    @notebook_progress("counting")
    def count(*, progress=None):
        progress(1, 2)
        return 7

    assert count() == 7


def test_a_notebook_is_recognised_without_an_import(monkeypatch):
    calls = []

    class Handle:
        def update(self, bundle, raw):
            calls.append(("update", bundle["text/html"]))

    def display(bundle, *, raw, display_id):
        assert raw
        assert display_id
        calls.append(("new", bundle["text/html"]))
        return Handle()

    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert notebook_display() is None
    assert "IPython" not in sys.modules
    shell = types.SimpleNamespace(kernel=None)
    fake = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", fake)
    shown = types.SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    assert notebook_display() is None  # IPython in a terminal cannot show it
    shell.kernel = object()
    show = notebook_display()
    show({"text/html": "a"}, is_new=True)
    show({"text/html": "b"}, is_new=False)
    assert calls == [("new", "a"), ("update", "b")]


def test_the_same_bits_with_and_without(screen, monkeypatch):
    world = us.world("shop", users=50, items=40, seed=3)
    plan = us.Plan(algorithms=[us.recommend.Popularity(), us.recommend.BPRMF()], metrics=["P@5"])

    def numbers():
        results = us.run_plan(world.ratings, plan)
        compared = us.compare(results.parts[0].scores, permutations=200)
        audited = us.audit(
            world,
            "quick",
            algorithms=["random", "popularity"],
            designs=["all-items"],
            repeats=1,
            permutations=10,
        )
        return results.table(), compared.table(), audited.table()

    with_bar = numbers()
    titles = {text.partition("</progress> ")[2].partition(" ·")[0] for text in screen.shown if text}
    assert titles == {"plan", "comparison", "audit"}
    last = [float(text.split('value="')[1][:5]) for text in screen.shown if "> audit" in text]
    assert last == sorted(last)  # a bar never goes back
    assert last[-1] == 1.0
    monkeypatch.setattr(module, "notebook_display", lambda: None)
    for one, other in zip(with_bar, numbers(), strict=True):
        assert one.equals(other)
    assert np.isfinite(with_bar[2]["value"].to_numpy()).all()
