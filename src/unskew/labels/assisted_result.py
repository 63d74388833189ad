"""`Assisted`: what systems score by people's labels, helped by the labels of an annotator."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import polars as pl

from unskew.checks import choose
from unskew.errors import DataError, SettingError
from unskew.labels.contrast_sides import ESTIMATORS, HUMAN, LISTS, PPI, TUNED
from unskew.labels.sample_checks import AnnotatorAgreement, SampleCheck, agreement_table
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, interval, number

ANNOTATOR = "annotator"
"""Its labels alone: no estimate of what people would say."""
MOST_ROWS = 45
"""Of the printed table of differences; `table` has all."""
MOST_SENTENCES = 10
MOST_NAMES = 5
"""Of contrasts that have no estimate, for the same reason."""
METHODS = {
    "score": "score interval",
    "bootstrap": "bootstrap",
    "exact": "exact, for few counts",
    "all judged": "no interval: people labelled all pairs",
}


@dataclass(frozen=True, kw_only=True)
class AssistedValue:
    """One estimate with its interval."""

    value: float
    se: float
    low: float
    high: float
    method: str
    """`score`, `bootstrap`, `exact`, or `all judged`: then the ends are the value."""


@dataclass(frozen=True, kw_only=True)
class AssistedContrast:
    """Estimates of one system's value (b is None), or of that of a less that of b."""

    metric: str
    a: str
    b: str | None
    labels: int
    """Labels of people that count for it."""
    pairs: int
    """Recommended pairs that count for it."""
    labels_alone: float
    """What the annotator's labels alone give."""
    values: Mapping[str, AssistedValue]
    """By estimator; none where people labelled nothing that counts."""
    rho: float = math.nan
    """Correlation of people's and the annotator's labels, as they count for it."""
    gain: float = math.nan
    """How many times as many labels of people alone would be as precise."""
    together: tuple[float, float] = (math.nan, math.nan)
    """The interval of PPI++ that holds with those of all differences of the result together."""
    better: str | None = None
    """The system that is better by that interval."""
    reason: str = ""
    """Why there are no estimates, or no difference."""

    @property
    def clearness(self) -> float:
        """The estimate of PPI++ in standard errors, whatever its sign."""
        tuned = self.values.get(TUNED)
        return 0.0 if tuned is None or not tuned.se else abs(tuned.value) / tuned.se

    @property
    def saving(self) -> float:
        """The share of people's labels that the annotator saves at equal precision."""
        return 1.0 - 1.0 / self.gain


@dataclass(frozen=True, eq=False, kw_only=True)
class Assisted(Result):
    """What systems score by labels of people, helped by an annotator's. Made by `assisted`."""

    digits: ClassVar[int] = 3

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    contrasts: Mapping[tuple[str, str, str | None], AssistedContrast]
    """By metric, a and b."""
    agreement: tuple[AnnotatorAgreement, ...]
    check: SampleCheck
    settings: Mapping[str, Any]
    better: Mapping[str, str]
    """By metric: `higher` or `lower`."""
    counts: Mapping[str, int]
    """users, pairs, drawn_from (the pairs that could be drawn), labels (of people)."""
    notes: tuple[str, ...] = ()

    def level(self, system: str, metric: str | None = None) -> AssistedContrast:
        """Return the estimates of one system's value."""
        label = choose("metric", metric or self.metrics[0], self.metrics)
        return self.contrasts[label, choose("system", system, self.systems), None]

    def difference(self, a: str, b: str, metric: str | None = None) -> AssistedContrast:
        """Return the estimates of the value of a less that of b, in the order of `systems`."""
        label = choose("metric", metric or self.metrics[0], self.metrics)
        first, second = (choose("system", name, self.systems) for name in (a, b))
        if (label, first, second) not in self.contrasts:
            raise SettingError(
                f"there is no difference of {a!r} less {b!r}: differences are "
                f"{', '.join(f'{x} − {y}' for x, y in combinations(self.systems, 2)) or 'none'}"
            )
        return self.contrasts[label, first, second]

    def table(self) -> pl.DataFrame:
        """Return a row per metric, system or difference, and estimator.

        Columns: metric, a, b (null: the value of a), estimator (`human`: people's labels alone,
        `PPI`, `PPI++`, `annotator`: its labels alone), value, se, low, high, interval (how it was
        made), labels and pairs (of people, and recommended, that count), rho, gain, better, reason.
        """
        rows = [row for contrast in self.contrasts.values() for row in _rows(contrast)]
        return pl.DataFrame(rows, _SCHEMA).with_columns(pl.col(pl.Float64).fill_nan(None))

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return a table of systems, one of differences, and one of agreement."""
        decimals = self.digits if digits is None else digits
        levels = [contrast for contrast in self.contrasts.values() if contrast.b is None]
        only = self.metrics[0] if len(self.metrics) == 1 else ""
        tables = [Table(only, _shown(levels, "system", decimals), decimals)]
        pairs, note = self.differences, ""
        if len(pairs) > MOST_ROWS:
            note = f"the {MOST_ROWS} clearest of {len(pairs):,} differences; table() has all"
            pairs = sorted(pairs, key=lambda contrast: -contrast.clearness)[:MOST_ROWS]
        if pairs:
            rows = _shown(pairs, "difference", decimals)
            title = f"{only}: differences" if only else "Differences"
            tables.append(Table(title, rows, decimals, note))
        frame = agreement_table(self.agreement).select(
            group="group",
            labels="labels",
            agree="agree",
            kappa="kappa",
            low="low",
            high="high",
        )
        tables.append(Table("Agreement of annotator and people", frame, min(decimals, 2)))
        return tables

    def _explanation(self) -> list[str]:
        settings, counts = self.settings, self.counts
        target = (
            "these lists"
            if settings["population"] == LISTS
            else "new users like these: they vary too"
        )
        pairs = counted(counts["pairs"], "recommended pair")
        if counts["drawn_from"] < counts["pairs"]:
            pairs = f"{counts['drawn_from']:,} pairs that could be drawn, of {pairs}"
        labelled = f"people labelled {counts['labels']:,} of {pairs} ({settings['sample']})"
        how = "; ".join(METHODS[name] for name in METHODS if name in self._methods())
        return [
            labelled,
            f"target: {target}; {100 * settings['level']:g} % intervals ({how})",
            "human: labels of people alone; PPI: corrected by those of the annotator, PPI++: by as "
            "much of these as helps; annotator: its labels alone, which may be wrong",
            "labels: of people, that count; gain: how many times as many alone would do as PPI++",
            str(settings["relevance"]),
        ]

    def _methods(self) -> set[str]:
        return {
            value.method
            for contrast in self.contrasts.values()
            for value in contrast.values.values()
        }

    def _conclusion(self) -> list[str]:
        differences = self.differences
        missing = _missing([contrast for contrast in self.contrasts.values() if contrast.reason])
        if not differences:
            return missing
        if not self.check.random:
            return [*missing, "no system is called better, as the sample does not look random"]
        level = f"{100 * self.settings['level']:g} %"
        together = f"; all {len(differences):,} differences together at {level}" * (
            len(differences) > 1
        )
        lines = [
            f"{_sentence(contrast)}{together})"
            for contrast in differences
            if contrast.better is not None
        ]
        if len(lines) > MOST_SENTENCES:
            more = counted(len(lines) - MOST_SENTENCES, "more pair", "more pairs")
            lines = [*lines[:MOST_SENTENCES], f"{more} in the column `better` of table()"]
        if not lines:
            suffix = f" (all {len(differences):,} differences together)" * (len(differences) > 1)
            lines = [f"no difference is settled at {level}{suffix}"]
        return [*missing, *lines]

    @property
    def differences(self) -> list[AssistedContrast]:
        """The estimates of all differences."""
        return [contrast for contrast in self.contrasts.values() if contrast.b is not None]

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the value of each system by each estimator, with its interval.

        Parameters
        ----------
        metric
            Which one; the first unless named.
        """
        import altair as alt

        label = choose("metric", metric or self.metrics[0], self.metrics)
        rows = [row for name in self.systems for row in _points(self.level(name, label))]
        if not rows:
            raise DataError(f"{label}: there is no estimate, so there is nothing to draw")
        base = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(14))
        names = [_WORDS[name] for name in (*ESTIMATORS, ANNOTATOR)]
        y = alt.Y("system:N", title=None).scale(domain=list(self.systems))
        offset = alt.YOffset("estimator:N").scale(domain=names)
        color = alt.Color("estimator:N").scale(domain=names, range=list(_COLOURS.values()))
        lines = base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", title=label).scale(zero=False),
            x2="high:Q",
            y=y,
            yOffset=offset,
            color=color,
        )
        marks = base.mark_point(filled=True, size=50, opacity=1).encode(
            x=alt.X("value:Q", title=label).scale(zero=False), y=y, yOffset=offset, color=color
        )
        notes = self._explanation()[:2]
        return as_figure(alt.layer(lines, marks), f"{label} by few labels of people", notes, rows)

    def _content(self) -> dict[str, object]:
        return {
            "settings": self.settings,
            "counts": self.counts,
            "estimates": self.table(),
            "agreement": agreement_table(self.agreement),
            "sample": self.check,
            "notes": self.footer(),
        }

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}, "
            f"{counted(self.counts['labels'], 'label')} of people"
        )


_WORDS = {HUMAN: "human", PPI: "PPI", TUNED: "PPI++", ANNOTATOR: "annotator alone"}
_COLOURS = {HUMAN: "#0072B2", PPI: "#56B4E9", TUNED: "#D55E00", ANNOTATOR: "#999999"}
_SCHEMA: dict[str, Any] = {
    "metric": pl.String,
    "a": pl.String,
    "b": pl.String,
    "estimator": pl.String,
    **dict.fromkeys(("value", "se", "low", "high"), pl.Float64),
    "interval": pl.String,
    "labels": pl.Int64,
    "pairs": pl.Int64,
    "rho": pl.Float64,
    "gain": pl.Float64,
    "better": pl.String,
    "reason": pl.String,
}


def _rows(contrast: AssistedContrast) -> Iterator[dict[str, Any]]:
    common = {
        "metric": contrast.metric,
        "a": contrast.a,
        "b": contrast.b,
        "labels": contrast.labels,
        "pairs": contrast.pairs,
        "rho": contrast.rho,
        "gain": contrast.gain,
        "better": contrast.better,
        "reason": contrast.reason or None,
    }
    for name in ESTIMATORS:
        if name in contrast.values:
            value = contrast.values[name]
            numbers = {"value": value.value, "se": value.se, "low": value.low, "high": value.high}
            yield {**common, "estimator": name, **numbers, "interval": value.method}
    nothing = dict.fromkeys(("se", "low", "high", "interval"))
    yield {**common, "estimator": ANNOTATOR, "value": contrast.labels_alone, **nothing}


def _name(contrast: AssistedContrast) -> str:
    return (
        f"{contrast.metric} of {contrast.a}"
        if contrast.b is None
        else f"{contrast.metric} of {contrast.a} − {contrast.b}"
    )


def _missing(contrasts: Sequence[AssistedContrast]) -> list[str]:
    """Say why there are no estimates: each reason once."""
    names: dict[str, list[str]] = {}
    for contrast in contrasts:
        names.setdefault(contrast.reason, []).append(_name(contrast))
    lines = []
    for reason, which in names.items():
        more = f" and {len(which) - MOST_NAMES:,} more" * (len(which) > MOST_NAMES)
        lines.append(f"no estimate of {', '.join(which[:MOST_NAMES])}{more}: {reason}")
    return lines


def _shown(contrasts: Sequence[AssistedContrast], what: str, digits: int) -> pl.DataFrame:
    """Return the table that people read: estimates with intervals, and what they rest on."""
    rows = []
    for contrast in contrasts:
        row: dict[str, Any] = {"metric": contrast.metric}
        row[what] = contrast.a if contrast.b is None else f"{contrast.a} − {contrast.b}"
        row["labels"] = contrast.labels
        row[HUMAN] = _text(contrast.values.get(HUMAN), digits)
        row[TUNED] = _text(contrast.values.get(TUNED), digits)
        row[PPI] = contrast.values[PPI].value if PPI in contrast.values else None
        row[ANNOTATOR] = contrast.labels_alone
        row["gain"] = None if math.isnan(contrast.gain) else f"{contrast.gain:.2f}"
        rows.append(row)
    if len({contrast.metric for contrast in contrasts}) == 1:  # the title names it
        rows = [{key: value for key, value in row.items() if key != "metric"} for row in rows]
    columns: dict[str, Any] = {"labels": pl.Int64, PPI: pl.Float64, ANNOTATOR: pl.Float64}
    return pl.DataFrame(rows, {name: columns.get(name, pl.String) for name in rows[0]})


def _text(value: AssistedValue | None, digits: int) -> str | None:
    if value is None:
        return None
    text = number(value.value, digits)
    if value.method == "all judged":
        return text
    return f"{text} {interval(value.low, value.high, digits)}"


def _points(contrast: AssistedContrast) -> Iterator[dict[str, Any]]:
    for name, value in contrast.values.items():
        bounds = {"low": value.low, "high": value.high}
        yield {"system": contrast.a, "estimator": _WORDS[name], "value": value.value, **bounds}
    alone = contrast.labels_alone
    yield {
        "system": contrast.a,
        "estimator": _WORDS[ANNOTATOR],
        "value": alone,
        "low": alone,
        "high": alone,
    }


def _sentence(contrast: AssistedContrast) -> str:
    """Name the better system, by how much, and the interval; a bracket is left open."""
    value, (low, high) = contrast.values[TUNED].value, contrast.together
    rival = contrast.b
    if contrast.better != contrast.a:
        rival = contrast.a
    sizes = sorted((abs(low), abs(high)))
    return (
        f"{contrast.metric}, as people label: {contrast.better} is better than {rival} "
        f"by {abs(value):.3g} ({sizes[0]:.3g} to {sizes[1]:.3g}"
    )
