"""Draw the pictures of the documentation into docs/figures: python docs/figures.py."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

import unskew as us
from unskew import DataError
from unskew.checks import choose
from unskew.report.charts import BLUE, GREEN, VERMILION, Figure, as_figure

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "figures"
sys.path.insert(0, str(DOCS.parent / "tests"))
from shared.sample import sample  # noqa: E402


def figures() -> dict[str, Figure]:
    """Return the pictures by name; of built-in samples and a toy example, never of real data."""
    return {"target-space": target_space(), **_splits(), **_tour()}


def _splits() -> dict[str, Figure]:
    """Return what two ways to split do to the built-in sample."""
    world = sample()
    ratings = us.read_ratings(pl.concat([world.train, world.test]))
    ways = {"random": us.splits.Random(test=0.25), "uniform": us.splits.Uniform(test=0.25)}
    splits = {name: us.splits.diagnose(way.split(ratings, seed=7)[0]) for name, way in ways.items()}
    return {f"split-{name}": one.figure("items", scale="log") for name, one in splits.items()}


def _tour() -> dict[str, Figure]:
    """Return the pictures of the tour, of the same shop and with the same seeds."""
    ratings = us.world("shop", users=200, items=100, ratings=2500, seed=7).ratings
    (split,) = us.splits.Random(test=0.2).split(ratings, seed=7)
    lists = us.targets.AllItems().lists(split, liked=4)
    systems = {
        "popularity": us.recommend.Popularity(),
        "user-knn": us.recommend.UserKNN(k=20),
        "ease": us.recommend.EASE(l2=50),
        "random": us.recommend.Random(),
    }
    runs = {name: us.rank(one.fit(split.train), lists, depth=20) for name, one in systems.items()}
    comparison = us.compare(us.evaluate(lists, runs, "nDCG@10"), "nDCG@10", permutations=10_000)
    return {
        "tour-popularity": us.data.summary(ratings).figure(),
        "tour-split": us.splits.diagnose(split).figure("items", scale="log"),
        "tour-differences": comparison.figure("differences"),
    }


# The target space

CELLS = {
    "+": ("training", "+"),
    "-": ("training", "−"),
    "P": ("test, relevant", "+"),
    "N": ("test, not relevant", "−"),
    ".": ("unrated", ""),
}
"""What a letter of a matrix stands for, and the sign that is drawn."""
CELL_COLORS = {
    "training": BLUE,
    "test, relevant": GREEN,
    "test, not relevant": VERMILION,
    "unrated": "#E4E4E4",
}
TOY_MATRIX = {
    "u": "..NPP+-.",
    "v": "+P.-.N.+",
    "w": ".+-.P.P.",
    "x": "-.+.N+.+",
}
"""Ratings of items a … h, a row per user, in the letters of `CELLS`."""
TOY_TARGETS = {
    "all items (AR, AI-AN)": "abcdeh",
    "test items (AR, TI-AN)": "bcde",
    "test ratings of u": "cde",
    "one relevant, d (1R, TI-AN)": "bcd",
    "one relevant, e (1R, TI-AN)": "bce",
    "d and one other (1R, TI-NN)": "cd",
}
"""The items that a list of user u must rank, by design; names as in bellogin2017 table 3."""


def target_space(
    matrix: Mapping[str, str] = TOY_MATRIX,
    targets: Mapping[str, str] = TOY_TARGETS,
    user: str = "u",
) -> Figure:
    """Draw a small rating matrix and which items a user's lists must rank, by design.

    After bellogin2017 figure 1, on an example of our own.

    Parameters
    ----------
    matrix
        For each user a letter per item (a, b, c …): `+` and `-` are training ratings, `P` and `N`
        relevant and other test ratings, `.` is unrated.
    targets
        For each design the target items.
    user
        Whose lists these are.
    """
    items = _items(matrix, targets, user)
    rows = [
        _cell("ratings", f"user {who}", item, letter)
        for who, letters in matrix.items()
        for item, letter in zip(items, letters, strict=True)
    ]
    rows += [
        _cell("targets", design, item, matrix[user][items.index(item)])
        for design, chosen in targets.items()
        for item in chosen
    ]
    whole = alt.Chart(alt.NamedData(name="rows"))
    above = _grid(whole, "ratings", "Ratings", items, [f"user {who}" for who in matrix])
    below = _grid(whole, "targets", f"Items that a list of user {user} ranks", items, [*targets])
    notes = ["+ liked, − disliked; what a list must rank depends on the design"]
    return as_figure(alt.vconcat(above, below, spacing=24), "Target items", notes, rows)


def _items(matrix: Mapping[str, str], targets: Mapping[str, str], user: str) -> str:
    """Return the items' names, once the example is known to be sound."""
    choose("user", user, matrix)
    if len({len(letters) for letters in matrix.values()}) != 1:
        raise DataError("matrix: every user needs a letter for each item")
    for letter in set("".join(matrix.values())):
        choose("letter", letter, CELLS)
    items = "abcdefghijklmnopqrstuvwxyz"[: len(matrix[user])]
    for item in set("".join(targets.values())):
        choose("item", item, items)
    return items


def _cell(panel: str, row: str, item: str, letter: str) -> dict[str, str]:
    kind, sign = CELLS[letter]
    return {"panel": panel, "row": row, "item": item, "cell": kind, "sign": sign}


def _grid(
    whole: alt.Chart, panel: str, title: str, items: Sequence[str], rows: Sequence[str]
) -> alt.LayerChart | alt.FacetChart:
    """Draw the cells of a panel as squares with signs in them."""
    bare: dict[str, Any] = {"domain": False, "ticks": False, "title": None}
    kinds = alt.Scale(domain=list(CELL_COLORS), range=list(CELL_COLORS.values()))
    cells = whole.encode(
        x=alt.X("item:N").scale(domain=list(items)).axis(orient="top", labelAngle=0, **bare),
        y=alt.Y("row:N").scale(domain=list(rows)).axis(labelPadding=8, **bare),
    )
    squares = cells.mark_rect(stroke="white", strokeWidth=3).encode(
        color=alt.Color("cell:N").scale(kinds).legend(columns=2, offset=20)
    )
    signs = cells.mark_text(fontSize=16, fontWeight="bold", color="white").encode(text="sign:N")
    grid = alt.layer(squares, signs).transform_filter(f"datum.panel === '{panel}'")
    heading = alt.TitleParams(title, fontSize=13, offset=6, frame="group")
    return grid.properties(title=heading, width=alt.Step(30), height=alt.Step(30))


if __name__ == "__main__":
    for name, figure in figures().items():
        figure.save(FOLDER / f"{name}.svg")
