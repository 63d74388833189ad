"""What notebooks show: one container, tables of a readable size, cards, notes, a figure."""

import base64
import dataclasses
import html
import re
from dataclasses import dataclass
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.report import notebook_view
from unskew.report.charts import Figure, split_counts
from unskew.report.notebook_view import CONTAINER, MOST_COLUMNS, MOST_LINES, MOST_ROWS, SLACK, view
from unskew.report.result import Result
from unskew.report.tables import Table

HOSTILE = "<script>alert('x')</script>\"onload=\"&amp;\x1b[31m"


class Reader(HTMLParser):
    """Collects tags, cells and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.cells, self.rows = [], [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.rows += tag == "tr"
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "b"):
            self.cells.append(data)


def read(text):
    """Return a view that is whole: every tag is closed."""
    assert text.startswith(CONTAINER)
    reader = Reader(text)
    assert reader.open == []
    assert "script" not in reader.tags
    return reader


@dataclass(frozen=True, eq=False)
class Drawn(Result):
    """A result with a figure."""

    rows: int = 3
    columns: int = 1
    notes: tuple[str, ...] = ()
    broken: bool = False

    def table(self):
        return pl.DataFrame({f"c{n}": np.arange(self.rows) for n in range(self.columns)})

    def figure(self):
        if self.broken:
            raise ZeroDivisionError
        return split_counts([8, 3, 1], [2, 1, 0])


class Open(Drawn):
    """One whose figure says more than its table."""

    figure_is_open = True


def ratings(name="a"):
    return us.read_ratings(
        {
            "user": [name, name, "b"],
            "item": [f"i{name}", "j", "j"],
            "rating": [5.0, 2.0, 4.0],
            "time": [0, 86_400, 2 * 86_400],
        }
    )


def test_a_long_table_is_cut_and_says_so():
    whole = Drawn(MOST_ROWS + SLACK)
    assert read(whole._repr_html_()).rows == MOST_ROWS + SLACK + 1
    assert "more rows" not in whole._repr_html_()
    cut = Drawn(1_234)._repr_html_()
    assert read(cut).rows == MOST_ROWS + 1
    assert "1,214 more rows of 1,234: print it to see all" in cut
    assert "1,233" in str(Drawn(1_234))  # what the line promises
    wide = Drawn(3, MOST_COLUMNS + 1)._repr_html_()
    assert f"c{MOST_COLUMNS - 1}<" in wide
    assert f"c{MOST_COLUMNS}<" not in wide
    assert "1 more column: print it to see all" in wide


def test_a_cell_of_any_length_stays_small():
    table = Table.of_rows(["name"], [["x" * 10_000]])
    shown = view("Result", "", tables=[table])
    assert len(shown) < 5_000
    assert "x…" in shown
    assert "x" * 10_000 in table.to_html()  # elsewhere nothing is cut


def test_every_note_is_shown_and_many_are_folded():
    few = Drawn(notes=tuple(f"note {n}." for n in range(MOST_LINES)))._repr_html_()
    assert f"note {MOST_LINES - 1}." in few
    assert few.count("<details") == 1  # the figure's
    many = Drawn(notes=tuple(f"note {n}." for n in range(40)))._repr_html_()
    assert all(f"note {n}." in many for n in range(40))
    assert f"<summary>{40 - MOST_LINES} more lines</summary>" in many
    endless = Drawn(notes=("x" * 50,) * 100_000)._repr_html_()
    assert len(endless) < 60_000
    assert f"and {100_000 - MOST_LINES - 100:,} more: print it" in endless


def test_the_figure_is_a_picture_that_runs_nothing():
    folded, opened = Drawn()._repr_html_(), Open()._repr_html_()
    assert "<details><summary>Figure: Ratings per item" in folded
    assert "<details open><summary>Figure: Ratings per item" in opened
    source = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', opened)[1]
    assert base64.b64decode(source).decode() == Drawn().figure().to_svg()
    assert 'alt="Ratings per item"' in opened
    read(opened)


def test_a_figure_that_fails_or_is_too_large_leaves_the_numbers(monkeypatch):
    shown = Drawn(broken=True)._repr_html_()
    assert "<img" not in shown
    assert "<table>" in shown
    monkeypatch.setattr(Figure, "to_svg", lambda self: "x" * (notebook_view.LARGEST_PICTURE + 1))
    shown = Drawn()._repr_html_()
    assert "<img" not in shown
    assert ".figure() shows it" in shown


def test_numbers_are_shown_without_altair(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    assert "<table>" in Drawn()._repr_html_()


@pytest.mark.parametrize("sign", ["\x1b", "\x00", "\ud800", "\uffff", "\ufffe", "\u202e"])
def test_a_name_that_no_picture_can_hold_is_drawn_by_its_code(sign):
    spec = {**Drawn().figure().to_dict(), "title": f"a{sign}b"}
    assert "a\\" in Figure("x", spec).to_svg()


def things(name):
    """Return one of each kind that shows a card, with a name in it wherever one may stand."""
    data = ratings(name)
    noted = dataclasses.replace(data, notes=(f"note {name}",))
    split = us.Split(noted, noted, label=name, design={"protocol": name})
    run = dataclasses.replace(us.read_run({"b": [f"i{name}", "j"]}), notes=(f"note {name}",))
    return {
        "ratings": noted,
        "dataset": us.Dataset(name, noted, scale=(1, 5), liked=4, notes=(f"note {name}",)),
        "split": split,
        "run": run,
        "plan": us.Plan(algorithms={name: us.recommend.Popularity()}),
        "relevance": us.Relevance(liked=4),
        "above": us.Relevance(above=3),
        "metric": us.Metric.parse("anti-nDCG@10"),
        "algorithm": us.recommend.ItemKNN(),
        "own": us.experiment.Custom(name, len),
        "targets": us.targets.OneRelevant(others=5),
        "given targets": us.targets.Targets(candidates=(name, "j")),
        "splitter": us.splits.Random(test=0.3),
        "intervention": us.splits.Skew(),
        "world": dataclasses.replace(us.world("shop", users=20, items=15, seed=1), name=name),
        "judged": us.judge(data, {name: run}, liked=4),
        "scores": us.evaluate(data, {name: run}, "P@1", liked=4),
        "split audit": us.splits.diagnose(split),
        "embedded": us.splits.looks_random(data),
    }


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_everything_is_escaped_and_whole():
    for kind, thing in things(HOSTILE).items():
        text = thing._repr_html_()
        reader = read(text)
        assert "\x1b" not in text, kind
        assert "<script" not in text, kind
        assert not any("onload" in tag for tag in reader.tags), kind
        assert len(text) < 100_000, kind
    named = ("dataset", "split", "plan", "own", "world", "judged", "scores")
    for kind in named:
        assert "&lt;script&gt;" in things(HOSTILE)[kind]._repr_html_(), kind


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
def test_cards_hold_facts_and_notes():
    shown = {kind: thing._repr_html_() for kind, thing in things("a").items()}
    facts = read(shown["ratings"]).cells
    pairs = dict(zip(facts[1::2], facts[2::2], strict=False))
    assert pairs == {
        "ratings": "3",
        "users": "2",
        "items": "2",
        "density": "75 %",
        "values": "2 to 5",
        "time": "1970-01-01 to 1970-01-03",
    }
    for kind in ("ratings", "dataset", "split", "run"):
        assert "note a" in shown[kind], kind
    for kind, words in {
        "dataset": ["1 to 5", "4 and more"],
        "split": ["training ratings", "50.0%", "protocol"],
        "run": ["2 to 2", "not known"],
        "plan": ["Popularity()", "liked: rating &gt;= 4", "P@10"],
        "relevance": ["4 and more", "levels"],
        "above": ["more than 3"],
        "metric": ["anti-nDCG@10", "lower", "0 to 1", "change places"],
        "algorithm": ["setting", "meaning", "neighbours"],
        "targets": ["OneRelevant(others=5)", "others"],
        "splitter": ["0.3"],
        "world": ["15", "seed"],
    }.items():
        for word in words:
            assert word in shown[kind], (kind, word)


def test_a_dropped_half_of_the_lists_is_in_the_view():
    users = [f"u{n}" for n in range(40)]
    test = {"user": users, "item": ["i"] * 40, "rating": [5] * 40}
    lists = {user: ["i"] for user in users[:20]}
    scores = us.evaluate(test, {"mine": lists}, "P@1", liked=4)
    assert scores.mean("P@1") == {"mine": 0.5}
    assert "20 users with test data have no list; they score 0" in scores._repr_html_()
    assert html.escape(scores.notes[0]) in scores._repr_html_()


def test_the_best_of_each_design_is_bold():
    world = us.world("shop", users=60, items=40, seed=3)
    plan = us.Plan(
        us.splits.Random(test=0.3),
        [us.targets.AllItems(), us.targets.TestItems()],
        [us.recommend.Random(), us.recommend.Popularity()],
        us.Relevance(liked=4),
        ["P@5", "anti-P@5"],
    )
    results = us.run_plan(world.ratings, plan)
    table = results.display_tables()[0]
    assert len(table.strong) == 4  # two designs, two metrics
    names = [str(metric) for metric in plan.metrics]
    for row, column in table.strong:
        design, metric = table.frame["targets"][row], table.frame.columns[column]
        same = table.frame.filter((pl.col("targets") == design) & (pl.col("system") != "(random)"))
        best = same[metric].max() if metric == names[0] else same[metric].min()
        assert table.frame[metric][row] == best
    assert results._repr_html_().count("<b>0.") == 4
