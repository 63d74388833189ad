"""Write docs/libraries.md from the conventions that are known: python docs/libraries.py."""

from pathlib import Path

from unskew.conventions.libraries import AXES, Library, all_libraries
from unskew.errors import UnskewError
from unskew.evaluation.compat import choose_metric

HEAD = """# Conventions of {count} libraries

What each library computes where it is asked for nothing else, as `us.evaluate(…, compat=…)`
imitates it and `us.explain` tries it. *Measured*: its own code was run on the data of
`benchmarks/conventions`, and every value is reproduced in `tests/conventions`, or listed there with
a reason. All metrics, options and names of a library: `unskew metrics --library KEY`.

| library | key | versions | evidence | metrics | not computed |
|---|---|---|---|---:|---:|
{libraries}

## The same name, other numbers

An empty cell is our default, a dash means that the library has no such metric. The words are
explained [below](#the-choices). Where a library can be given judgments in several forms, the form
that takes our threshold is shown.

| library | {columns} |
|---|{rule}
{rows}

## The choices

{axes}
"""
COLUMNS = (
    ("nDCG", "gain"),
    ("nDCG", "ideal"),
    ("nDCG", "discount"),
    ("P", "per"),
    ("Recall", "per"),
    ("AP", "per"),
    ("nDCG", "judgments"),
    ("nDCG", "users"),
    ("nDCG", "ties"),
    ("nDCG", "duplicates"),
)
"""What the table shows: an axis, as a metric has it."""


def page() -> str:
    """Return the page."""
    libraries = all_libraries()
    return HEAD.format(
        count=len(libraries),
        libraries="\n".join(map(_row, libraries.values())),
        columns=" | ".join(f"{metric}: {axis}" for metric, axis in COLUMNS),
        rule="---|" * len(COLUMNS),
        rows="\n".join(map(_conventions, libraries.values())),
        axes="\n\n".join(_axis(name) for name in AXES),
    )


def _row(one: Library) -> str:
    names, missing = {row.name for row in one.metrics}, {gap.name for gap in one.missing}
    cells = (one.name, f"`{one.key}`", ", ".join(one.versions), one.evidence)
    return f"| {' | '.join(cells)} | {len(names)} | {len(missing - names)} |"


def _conventions(one: Library) -> str:
    """Return a library's row: what it does by default."""
    return f"| {one.name} | {' | '.join(_cell(one, *column) for column in COLUMNS)} |"


def _cell(one: Library, metric: str, axis: str) -> str:
    try:
        row, k = choose_metric(one.newest, f"{metric}@10")
    except UnskewError:
        return "–"
    option = row.convention(k).choices[axis]
    return "" if option == AXES[axis].default else option


def _axis(name: str) -> str:
    axis = AXES[name]
    lines = [f"- `{option}`: {words}" for option, words in axis.options.items()]
    return f"### {name}\n\n{axis.question} The first is our default.\n\n" + "\n".join(lines)


if __name__ == "__main__":
    Path(__file__).with_name("libraries.md").write_text(page(), encoding="utf-8")
