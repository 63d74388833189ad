"""Scores as JSON, CSV, Markdown, LaTeX or a table in the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable

import polars as pl
from rich import box
from rich.table import Table
from rich.text import Text

from unskew.evaluation.scores import RANDOM, Mean, Scores
from unskew.report import result as layout
from unskew.report.result import WIDE, escape_latex, escape_markdown, markdown_table

FORMATS = ("table", "json", "csv", "markdown", "latex")


def as_json(scores: Scores) -> str:
    """Return ``{system: {metric: {"mean": x, "users": n}}}``; an undefined mean is null."""
    means = _rows(scores)
    content = {
        system: {
            label: {"mean": None if math.isnan(m.value) else m.value, "users": m.users}
            for label, m in row.items()
        }
        for system, row in means.items()
    }
    return layout.as_json(content)


def as_csv(scores: Scores) -> str:
    """Return a row per system and metric: system, metric, mean, users, undefined."""
    rows = [
        (system, label, None if math.isnan(m.value) else m.value, m.users, m.undefined)
        for system, row in _rows(scores).items()
        for label, m in row.items()
    ]
    columns = ("system", "metric", "mean", "users", "undefined")
    return layout.as_csv(pl.DataFrame(rows, columns, orient="row"))


def as_markdown(scores: Scores, digits: int = 4) -> str:
    """Return a Markdown table, the best value of each metric in bold."""
    return markdown_table(*_grid(scores, digits, "**{}**", escape_markdown))


def as_latex(scores: Scores, digits: int = 4) -> str:
    """Return a LaTeX tabular (booktabs), the best value of each metric in bold."""
    header, rows = _grid(scores, digits, "\\textbf{{{}}}", escape_latex)
    body = [" & ".join(row) + " \\\\" for row in rows]
    return "\n".join(
        [
            f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            "\\toprule",
            " & ".join(header) + " \\\\",
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
        ]
    )


def as_html(scores: Scores, digits: int = 4) -> str:
    """Return an HTML table."""
    return layout.as_html(*_grid(scores, digits, "{}", str))


def as_rich(scores: Scores, digits: int = 4) -> Table:
    """Return a table for the terminal, the best value of each metric in bold."""
    header, rows = _grid(scores, digits, "\x00{}", layout.visible)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(Text(name), justify="left" if place == 0 else "right", no_wrap=True)
    for row in rows:
        cells = [
            Text(cell[1:], style="bold green") if cell.startswith("\x00") else Text(cell)
            for cell in row
        ]
        table.add_row(*cells)
    return table


def _grid(
    scores: Scores, digits: int, best: str, escape: Callable[[str], str]
) -> tuple[list[str], list[list[str]]]:
    """Lay the means out: systems down unless there are many metrics; the best ones marked."""
    marked = {label: _best(scores, label, scores.averages()) for label in scores.order}
    means = _rows(scores)
    labels, systems = list(scores.order), list(means)

    def cell(system: str, label: str) -> str:
        value = means[system][label].value
        text = "–" if math.isnan(value) else f"{value:.{digits}f}"
        return best.format(text) if system in marked[label] else text

    if len(labels) <= WIDE:
        header = ["system", *map(escape, labels)]
        return header, [[escape(s), *(cell(s, label) for label in labels)] for s in systems]
    header = ["metric", *map(escape, systems)]
    return header, [[escape(label), *(cell(s, label) for s in systems)] for label in labels]


def _rows(scores: Scores) -> dict[str, dict[str, Mean]]:
    """Return the means of all systems and, where it is known, of chance."""
    chance = scores.random_means()
    return {**scores.averages(), **({RANDOM: chance} if chance else {})}


def _best(scores: Scores, label: str, means: dict[str, dict[str, Mean]]) -> set[str]:
    better = scores.metrics[label].better
    values = {s: row[label].value for s, row in means.items() if not math.isnan(row[label].value)}
    if better == "neither" or len(values) < 2 or len(set(values.values())) < 2:
        return set()
    top = max(values.values()) if better == "higher" else min(values.values())
    return {system for system, value in values.items() if value == top}
