"""`Waterfall`: the path from one number to another, one convention per step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from unskew.conventions.explaining.explanation import rank_of, simplest, title_of
from unskew.conventions.explaining.printed import OURS, Printed, PrintedQuantity, Target
from unskew.conventions.explaining.search import search
from unskew.conventions.laying import Laid
from unskew.conventions.libraries import (
    AXES,
    Convention,
    Library,
    LibraryMetric,
    library,
    relevant_axes,
)
from unskew.conventions.values import ConventionValues
from unskew.errors import SettingError
from unskew.evaluation.compat import choose_metric
from unskew.report.charts import BLUE, GREY, VERMILION, Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted

MOST_AXES = 8
"""Up to so many steps, effects are computed in all orders."""
ORDERS = 200
"""Of more steps: in how many random orders."""
FORMULA, CUTOFF = "formula", "cutoff"
"""Steps that are no axis: another metric under the same name, another cutoff."""


@dataclass(frozen=True)
class Step:
    """One choice on the path, and what it does to the number."""

    axis: str
    before: str
    """The option at the start, in words."""
    after: str
    effect: float
    low: float
    """The smallest effect of this choice in any order of steps."""
    high: float
    value: float
    """The number after this step."""


@dataclass(frozen=True, eq=False)
class Waterfall(Result):
    """The path from one number to another. Made by `explain` with `between`."""

    metric: str
    system: str
    ends: tuple[str, str]
    """What the two numbers are, in words."""
    values: tuple[float, float]
    steps: tuple[Step, ...]
    idle: tuple[str, ...] = ()
    """Choices that differ and change nothing on these data."""
    orders: str = ""
    """Over which orders of steps the ranges of effects are taken."""
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per step: the choice, its options, its effect, its range, the number."""
        rows = [
            (step.axis, step.before, step.after, step.effect, step.low, step.high, step.value)
            for step in self.steps
        ]
        names = ("step", "before", "after", "effect", "lowest", "highest", "value")
        kinds = (*[pl.String] * 3, *[pl.Float64] * 4)
        schema: Any = dict(zip(names, kinds, strict=True))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def header(self) -> list[str]:
        """Return the two numbers and the gap between them."""
        gap = self.values[1] - self.values[0]
        return [
            f"{self.metric} of {self.system}: {self.values[0]:.6f} by {self.ends[0]}",
            f"{' ' * len(f'{self.metric} of {self.system}')}  {self.values[1]:.6f} by "
            f"{self.ends[1]}; the gap is {gap:+.6f}",
        ]

    def _explanation(self) -> Sequence[str]:
        lines = []
        if self.steps:
            lines.append(
                "steps are taken in the fixed order of choices (docs/libraries.md); lowest and "
                f"highest: effect of the same choice {self.orders}"
            )
        if self.idle:
            lines.append(f"differ without an effect on these data: {', '.join(self.idle)}")
        if not self.steps:
            lines.append("both ends give the same number on these data")
        return lines

    def _summary(self) -> str:
        return f"{self.metric}, {counted(len(self.steps), 'step')}"

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "system": self.system,
            "ends": list(self.ends),
            "values": list(self.values),
            "steps": [vars(step) for step in self.steps],
            "idle": list(self.idle),
            "orders": self.orders,
            "notes": list(self.notes),
        }

    def figure(self) -> Figure:
        """Draw the numbers at both ends, and the steps between them."""
        import altair as alt

        rows, before = [_bar(self.ends[0], 0.0, self.values[0], "number")], self.values[0]
        for step in self.steps:
            kind = "up" if step.effect > 0 else "down"
            rows.append(_bar(f"{step.axis}: {step.after}", before, step.value, kind))
            before = step.value
        rows.append(_bar(self.ends[1], 0.0, self.values[1], "number"))
        order = [row["step"] for row in rows]
        colour = alt.Scale(domain=["number", "up", "down"], range=[GREY, BLUE, VERMILION])
        chart = alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(26))
        bars: alt.Chart = chart.mark_bar().encode(
            y=alt.Y("step:N", sort=order, title=None),
            x=alt.X("low:Q", title=self.metric),
            x2="high:Q",
            color=alt.Color("kind:N", scale=colour, legend=None),
            tooltip=["step:N", alt.Tooltip("change:Q", format="+.6f")],
        )
        return as_figure(bars, f"{self.metric}: from one number to the other", self.footer(), rows)


def _bar(step: str, start: float, end: float, kind: str) -> dict[str, Any]:
    low, high = min(start, end), max(start, end)
    return {"step": step, "low": low, "high": high, "kind": kind, "change": end - start}


Options = dict[str, Any]


def options_of(row: LibraryMetric, k: int | None) -> Options:
    """Return everything that decides about a number: formula, cutoff and the option per choice."""
    if row.ours:
        raise SettingError(
            f"{row.name} equals our {row.family(k)}, whose conventions have no steps: a path needs "
            "one of P, Recall, F1, AP, nDCG, DCG, RR, HitRate or Rprec"
        )
    convention = row.convention(k)
    return {FORMULA: row.metric, CUTOFF: convention.k, **convention.choices}


def _in_words(name: str, option: object) -> str:
    return AXES[name].options[str(option)] if name in AXES else str(option)


@dataclass(frozen=True)
class Path:
    """The choices in which two numbers differ, and the numbers between them."""

    values: ConventionValues
    start: Options
    end: Options

    @property
    def names(self) -> list[str]:
        """The choices that differ and can change one of the two metrics, in their order."""
        allowed = {
            FORMULA, CUTOFF, *relevant_axes(self.start[FORMULA]), *relevant_axes(self.end[FORMULA])
        }  # fmt: skip
        return [
            name for name in self.start
            if name in allowed and self.start[name] != self.end[name]
        ]  # fmt: skip

    def value(self, taken: frozenset[str]) -> float:
        """Return the number after some steps."""
        options = {n: self.end[n] if n in taken else self.start[n] for n in self.start}
        metric, k = options.pop(FORMULA), options.pop(CUTOFF)
        try:
            return self.values.mean(Convention(metric, k, **options))
        except SettingError:
            return math.nan


def waterfall(
    values: ConventionValues,
    metric: str,
    start: tuple[str, Options],
    end: tuple[str, Options],
    notes: tuple[str, ...] = (),
) -> Waterfall:
    """Walk from one end to the other, and try every step in other orders too."""
    path = Path(values, start[1], end[1])
    number = cache(path.value)
    names = path.names
    taken, steps, before = frozenset[str](), [], number(frozenset())
    for name in names:
        after = number(taken | {name})
        steps.append((name, after - before, after))
        taken, before = taken | {name}, after
    if any(math.isnan(value) for _, _, value in steps):
        raise SettingError(
            f"a step between {start[0]} and {end[0]} leads over a number that cannot be computed"
        )
    ranges, orders = _ranges(number, names)
    moving = {name for name, (low, high) in ranges.items() if max(abs(low), abs(high)) > 1e-15}
    return Waterfall(
        metric=metric,
        system=values.system,
        ends=(start[0], end[0]),
        values=(number(frozenset()), number(frozenset(names))),
        steps=tuple(
            Step(
                name,
                _in_words(name, start[1][name]),
                _in_words(name, end[1][name]),
                effect,
                *ranges[name],
                value,
            )
            for name, effect, value in steps
            if name in moving
        ),
        idle=tuple(name for name in names if name not in moving),
        orders=orders,
        notes=notes,
    )


def _ranges(number: Any, names: Sequence[str]) -> tuple[Mapping[str, tuple[float, float]], str]:
    """Return the range of each step's effect, and over which orders it was taken."""
    effects: dict[str, list[float]] = {name: [] for name in names}
    if len(names) <= MOST_AXES:
        for name in names:
            others = [axis for axis in names if axis != name]
            for size in range(len(names)):
                for chosen in combinations(others, size):
                    before = frozenset(chosen)
                    effects[name].append(number(before | {name}) - number(before))
        words = "over all orders of steps"
    else:
        rng = np.random.Generator(np.random.PCG64(0))
        orders = [list(names), *(list(rng.permutation(names)) for _ in range(ORDERS - 1))]
        for order in orders:
            taken = frozenset[str]()
            for name in map(str, order):
                effects[name].append(number(taken | {name}) - number(taken))
                taken |= {name}
        words = f"over {ORDERS} orders of steps, drawn with a fixed seed"
    return {
        name: (float(np.nanmin(changes)), float(np.nanmax(changes)))
        for name, changes in effects.items()
    }, words


def path_between(
    laid: Laid, metric: object, between: Sequence[object], libraries: Mapping[str, Library]
) -> Waterfall:
    """Return the path from one end to the other, for one metric of one system."""
    if len(between) != 2 or isinstance(between, str):
        raise SettingError(
            f"between must name two ends, such as ('ours', 'recbole'); got {between!r}"
        )
    if not isinstance(metric, str):
        raise SettingError(f"with between=…, values is the name of a metric; got {metric!r}")
    if len(laid.systems) != 1:
        raise SettingError(
            f"a path needs the lists of one system; there are {', '.join(laid.systems)}"
        )
    system = next(iter(laid.systems))
    quantity = PrintedQuantity.of(metric, list(libraries.values()))
    pair = [_end(end, laid, system, quantity, libraries) for end in between]
    return waterfall(ConventionValues(laid, system), metric, pair[0], pair[1], laid.notes)


def _end(
    end: object,
    laid: Laid,
    system: str,
    quantity: PrintedQuantity,
    libraries: Mapping[str, Library],
) -> tuple[str, Options]:
    """Read an end: its title, and the options that give its number."""
    if isinstance(end, str) and end.lower() in (OURS, "unskew"):
        return "unskew's defaults", options_of(quantity.row(), quantity.k)
    if isinstance(end, str) and not _is_number(end):
        source = library(end).newest
        row, k = choose_metric(source, quantity.label)
        title = f"{source.name} {', '.join(source.versions)} ({row.label(k, full=True)})"
        return title, options_of(row, k)
    target = Target(system, quantity, Printed.of(end))
    result = search(laid, (target,), libraries)
    if not result.fitting:
        raise SettingError(
            f"no convention that was tried gives {target}: explain that value alone to see what "
            "comes near"
        )
    first = simplest(min(result.fitting, key=rank_of))
    title = f"{target.printed.text}, taken as {title_of(first, result)}"
    return title, options_of(first.row(0), first.cutoff(quantity.k))


def _is_number(text: str) -> bool:
    try:
        Printed.of(text)
    except SettingError:
        return False
    return True
