"""Kernels: compiled when they are needed, the same bits where Python runs them."""

import importlib
import itertools
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import unskew
from unskew.engine.compiled import Kernel

RNG = np.random.default_rng(5)
NOTHING = np.empty(0, np.int64)


def plain_kernels():
    """All kernels that Python may run, by module and name."""
    names = [
        name
        for _, name, _ in pkgutil.walk_packages(unskew.__path__, "unskew.")
        if "kernels" in name
    ]
    return {
        f"{name}.{kernel._name}".removeprefix("unskew."): kernel
        for name in names
        for kernel in vars(importlib.import_module(name)).values()
        if isinstance(kernel, Kernel) and kernel.is_plain and kernel.__module__ == name
    }


def starts(groups, largest):
    return np.concatenate([[0], np.cumsum(RNG.integers(0, largest, groups))]).astype(np.int64)


def rising(start, high):
    """Items of groups, ascending within each, none twice."""
    rows = [np.sort(RNG.permutation(high)[: b - a]) for a, b in itertools.pairwise(start)]
    return np.concatenate([*rows, []]).astype(np.int32)


def whole(*shape, high=9, dtype=np.int32):
    return RNG.integers(0, high, shape).astype(dtype)


def ranked(users):
    """Ranks that ascend within each list, what was judged, and what the judgments say."""
    start = starts(users, 8)
    rank = (rising(start, 40) + 1).astype(np.int32)
    label = whole(30, high=4, dtype=np.int8)
    return start, rank, whole(int(start[-1]), high=30), label


def arguments():
    """Random arguments of each kernel that Python may run."""
    start = starts(12, 9)
    n = int(start[-1])
    values, item = RNG.integers(-50, 50, n), whole(n)
    users, other = 12, starts(12, 9)
    yield "data.kernels.count_ascending", (np.sort(values),)
    yield "data.kernels.count_ascending", (values,)
    yield (
        "data.kernels.ascending_runs",
        (np.sort(values), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)),
    )
    yield "data.kernels.mark_present", (values, -50, np.zeros(100, np.uint8))
    places = np.concatenate([np.arange(b - a) for a, b in itertools.pairwise(start)])
    yield "data.kernels.are_places", (start, places.astype(np.int64), 0)
    yield "data.kernels.are_places", (start, places.astype(np.int64), 1)
    yield "data.kernels.seen_before", (start, item, 9, np.ones(n, np.uint8))
    yield (
        "data.kernels.recode",
        (whole(n) - 1, whole(9, high=99), np.zeros(n, np.int32)),
    )
    yield "data.kernels.group_starts", (whole(n), 9)
    yield "data.kernels.group_starts", (np.sort(whole(n)), 9)
    yield "data.kernels.is_sorted", (start, item)
    yield "data.kernels.is_sorted", (start, rising(start, 20))
    yield "data.kernels.repeated", (start, np.sort(item))
    judged = starts(users, 7)
    labels = whole(int(judged[-1]), high=4, dtype=np.int8)
    lists = np.sort(RNG.permutation(users)[:10]).astype(np.int32)
    yield "judging.list_kernels.count_labels", (lists, judged, labels)
    slots = starts(10, 9)
    room = np.zeros(int(slots[-1]), np.int32)
    meet = (slots[:-1].copy(), slots[1:].copy(), whole(len(room), high=20), judged)
    more = (rising(judged, 20), np.append(RNG.permutation(20), -1).astype(np.int32), 2, 9)
    yield (
        "judging.list_kernels.meet",
        (lists, *meet, *more, np.zeros(21, np.int32), np.zeros(11, np.int64), room, room.copy()),
    )
    train = rising(start, 20)
    new = np.zeros(40, np.int32)
    yield (
        "judging.list_kernels.top_of_order",
        (RNG.permutation(20).astype(np.int32), 20, lists, 2, 10, start, train, 5, new),
    )
    for high in (1, 2):
        gone = whole(300, high=high, dtype=np.uint8)
        yield (
            "judging.list_kernels.count_missing",
            (gone, lists, 0, 10, start, train, np.zeros(10, np.int64)),
        )
    yield "splits.kernels.shared", (start, train, other, rising(other, 20))
    home = whole(20, high=4) - 1
    for drawable in (home, np.where(whole(20, high=2) == 0, np.int32(-1), home)):
        fixed = whole(int(other[-1]), high=2, dtype=np.uint8)
        here = (start, train, other, rising(other, 20), fixed, np.zeros(10, np.int64))
        number = np.bincount(drawable[drawable >= 0], minlength=3)
        yield (
            "targets.kernels.count_others",
            (lists, whole(10, high=4) - 1, number, drawable, *here),
        )
    hits = ranked(users)
    liked, disliked = RNG.integers(1, 5, (2, users)).astype(float)
    discount = np.concatenate([[0], 1 / np.log2(np.arange(2, 60))])
    cutoffs = np.array([1, 3, 10], np.int64)
    at = np.array([0, 1, 2, 3, -1, 4, 5, 6], np.int64)
    parts = (RNG.random(30), discount, liked, disliked + 9, cutoffs, at)
    yield "metrics.kernels.lists.walk", (*hits, *parts, np.zeros((7, 3, users)))
    for gain in (RNG.integers(0, 9, int(judged[-1])) / 2, RNG.normal(size=int(judged[-1]))):
        for same in (True, False):
            kept = (lists, judged, gain, gain if same else RNG.random(len(gain)), same)
            yield "metrics.kernels.lists.ideal", (*kept, discount, cutoffs, 1, 9)
    yield "metrics.kernels.lists._sort_down", (RNG.normal(size=60), RNG.random(60), 50)
    tiny = RNG.normal(size=(3, 5000)) * 10.0 ** RNG.integers(-300, 300, (3, 5000))
    tiny[1, ::7] = np.nan
    yield "metrics.kernels.lists.exact_sums", (tiny.view(np.int64),)
    yield "metrics.kernels.lists._carry", (np.arange(70), -(2**60) + 12345, 1023)


CASES = list(arguments())


def copied(values):
    return tuple(one.copy() if isinstance(one, np.ndarray) else one for one in values)


def bits(value):
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    return (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else (type(value), value)


@pytest.mark.parametrize(
    ("name", "given"), CASES, ids=[f"{name}-{k}" for k, (name, _) in enumerate(CASES)]
)
def test_python_and_numba_give_the_same_bits(name, given, monkeypatch):
    kernel = plain_kernels()[name]
    a, b = copied(given), copied(given)
    monkeypatch.setattr(Kernel, "_is_little", lambda _kernel, _entries: True)
    for one in plain_kernels().values():
        monkeypatch.delitem(one.__dict__, "dispatcher", raising=False)
    plain = kernel(*a)
    assert "dispatcher" not in kernel.__dict__, "Python did not run it"
    monkeypatch.undo()
    assert bits(plain) == bits(kernel.dispatcher(*b))
    assert bits(a) == bits(b), "what they wrote differs"


def test_every_plain_kernel_is_tried():
    assert {name for name, _ in CASES} == set(plain_kernels())


def test_kernels_travel_by_name():
    for kernel in plain_kernels().values():
        assert pickle.loads(pickle.dumps(kernel)) is kernel


COMMAND = """
import sys
from unskew.engine import compiled
if sys.argv.pop(1) == "compiled":
    compiled.PLAIN_WARM = compiled.PLAIN_COLD = 0
from unskew.cli import main
try:
    main()
finally:
    print("numba" in sys.modules, file=sys.stderr)
"""


def test_a_small_command_does_without_numba(tmp_path):
    """And prints what it prints with it, to the last digit."""
    rng = np.random.default_rng(1)
    rows = [f"{u},{i},{rng.integers(1, 6)}" for u in range(40) for i in rng.permutation(50)[:9]]
    (tmp_path / "test.csv").write_text("\n".join(["user,item,rating", *rows]))
    lists = [f"{u},{i},{k + 1}" for u in range(40) for k, i in enumerate(rng.permutation(50)[:20])]
    (tmp_path / "a.csv").write_text("\n".join(["user,item,rank", *lists]))
    metrics = "P@5,Recall@10,AP@10,nDCG@10,RR@10,bpref,infAP,anti-P@5"
    asked = ["evaluate", "-j", "test.csv", "-r", "a.csv", "--liked", "4", "-m", metrics]
    done = [
        subprocess.run(
            [sys.executable, "-c", COMMAND, way, *asked, "--format", "json"],
            cwd=tmp_path,
            env={"PYTHONPATH": str(Path(unskew.__file__).parents[1]), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        for way in ("plain", "compiled")
    ]
    assert done[0].stdout == done[1].stdout
    assert [one.stderr.split()[-1] for one in done] == ["False", "True"]


def test_a_stamp_covers_the_kernels_that_are_called(monkeypatch):
    """Machine code holds the kernels it calls: their text counts, that of others does not."""
    from unskew.engine import compiler
    from unskew.stats import kernels

    text = compiler._text

    def stamp_if_changed(changed):
        monkeypatch.setattr(
            compiler, "_text", lambda name: text(name) + "# other" * (name == changed)
        )
        return compiler.source_stamp.__wrapped__(kernels.__name__)

    same = compiler.source_stamp(kernels.__name__)
    assert stamp_if_changed("unskew.worlds.kernels") == same
    assert stamp_if_changed("unskew.engine.rng") != same
    assert stamp_if_changed("unskew.stats.kernels") != same


SUMMING = """
import numpy as np
from unskew.engine.compiled import kernel
from {module} import Rows

@kernel
def total(rows):
    return rows.value.sum()

if __name__ != "__main__":
    print(total(Rows(np.arange(4.0))))
"""


def test_kernels_of_an_earlier_version_are_compiled_anew(tmp_path):
    """Even where a class of their arguments has moved, so that what lies on disk cannot be read."""
    rows = "from typing import NamedTuple\nclass Rows(NamedTuple):\n    value: object\n"
    for module, former in (("before", None), ("after", "before")):
        if former:
            (tmp_path / f"{former}.py").unlink()
        (tmp_path / f"{module}.py").write_text(rows)
        (tmp_path / "summing.py").write_text(SUMMING.format(module=module))
        done = subprocess.run(
            [sys.executable, "-B", "-c", "import summing"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("6.0\n", "")
    assert list(tmp_path.rglob("*.nbi"))


# scipy is the users': commands neither need it nor hide it

WITH_SCIPY = """
import sys
import unskew.cli

def main():
    unskew.cli.app(sys.argv[1:], standalone_mode=False)
    print("scipy.linalg" in sys.modules)
    import numpy as np, scipy.linalg, scipy.optimize, scipy.stats
    print(scipy.linalg.det(np.eye(2)), scipy.stats.norm.cdf(0.0))

unskew.cli.main = main
from unskew.__main__ import start
start()
"""


def test_a_command_leaves_scipy_to_its_user(tmp_path):
    """Code that a command runs, such as a user's metric, can import scipy; the command does not."""
    pytest.importorskip("scipy")
    (tmp_path / "test.csv").write_text("user,item,rating\n1,a,5\n1,b,2\n2,a,3\n2,d,5\n")
    (tmp_path / "run.csv").write_text("user,item,rank\n1,b,1\n1,a,2\n2,d,1\n2,a,2\n")
    words = ["evaluate", "-j", "test.csv", "-r", "run.csv", "-m", "P@2", "--liked", "4", "-q"]
    done = subprocess.run(
        [sys.executable, "-c", WITH_SCIPY, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-2:] == ["False", "1.0 0.5"], done.stderr
