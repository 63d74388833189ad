"""`Lights`: the answers of all checks, and the numbers behind them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from unskew.checks import choose
from unskew.errors import DataError
from unskew.report.result import Result
from unskew.report.text import counted, visible
from unskew.splits.counts import SplitCounts
from unskew.splits.diagnosis.check import IN_ORDER, LIGHTS, Check
from unskew.splits.diagnosis.over_time import DriftPeriod, RowsOverTime

if TYPE_CHECKING:
    from unskew.report.charts import Figure

FIGURES = ("time", "drift", "items")
WIDTH = 100
"""Of printed lines."""
_INDENT = " " * 9


@dataclass(frozen=True, eq=False)
class Lights(Result):
    """What was found in a split, or in several."""

    figure_is_open: ClassVar[bool] = True

    splits: Mapping[str, SplitCounts]
    """By split: users, items and ratings of both parts, in numbers."""
    checks: tuple[Check, ...]
    """Every check, in the order of the list."""
    timelines: tuple[RowsOverTime, ...] = ()
    drift: tuple[DriftPeriod, ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def leaks(self) -> tuple[Check, ...]:
        """The checks whose light is red."""
        return self.of_light("leak")

    @property
    def lights(self) -> dict[str, str]:
        """The light of each check, by its key."""
        return {one.key: one.light for one in self.checks}

    def of_light(self, light: str) -> tuple[Check, ...]:
        """Return the checks with a light: `leak`, `look`, `unknown`, `shown` or `ok`."""
        choose("light", light, LIGHTS)
        return tuple(one for one in self.checks if one.light == light)

    def check(self, key: str) -> Check:
        """Return one check by its key, such as `future`."""
        choose("check", key, [one.key for one in self.checks])
        return next(one for one in self.checks if one.key == key)

    def table(self) -> pl.DataFrame:
        """Return a row per check and split: its light, its value, and when the light changes."""
        rows = [
            (one.key, one.title, label, part.light, part.value, one.unit, one.threshold,
             part.sentence)
            for one in self.checks
            for label, part in one.readings.items()
        ]  # fmt: skip
        texts = ["key", "title", "split", "light", "value", "unit", "threshold", "sentence"]
        schema = {name: pl.Float64 if name == "value" else pl.String for name in texts}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def numbers(self) -> pl.DataFrame:
        """Return a row per split: users, items and ratings of its parts."""
        rows = [{"split": label} | _plain(one) for label, one in self.splits.items()]
        return pl.DataFrame(rows, infer_schema_length=None)

    def counts(self) -> pl.DataFrame:
        """Return a row per number behind the lights: its check, its split, its name, its value."""
        rows = [
            (one.key, label, name, None if isinstance(value, str) else value,
             value if isinstance(value, str) else None)
            for one in self.checks
            for label, part in one.readings.items()
            for name, value in part.counts.items()
        ]  # fmt: skip
        schema = {
            "key": pl.String,
            "split": pl.String,
            "name": pl.String,
            "value": pl.Float64,
            "text": pl.String,
        }
        return pl.DataFrame(rows, schema=schema, orient="row", strict=False)

    def figure(self, kind: str | None = None, *, scale: str = "linear") -> Figure:
        """Draw rows over time, drift of items, or the ratings of items.

        Parameters
        ----------
        kind
            `time` (default where there are time stamps): the rows of each part over time. `drift`:
            how different the items of each tenth of training are from those of the test. `items`:
            the training and test ratings of items, of the first split.
        scale
            Of `items`: `linear` or `log`.
        """
        from unskew.splits.diagnosis.charts import drift, over_time

        if kind is None:
            kind = "time" if self.timelines else "items"
        choose("kind", kind, FIGURES)
        if kind == "items":
            return next(iter(self.splits.values())).figure(scale=scale)
        if not self.timelines or (kind == "drift" and not self.drift):
            raise DataError(
                f"there is nothing to draw over time: {self.check('time-frame').sentence}"
                if not self.timelines
                else "training has too few rows to draw the drift of items"
            )
        return over_time(self.timelines) if kind == "time" else drift(self.drift)

    def display_table(self) -> pl.DataFrame:
        """Return a row per check, the worst light first."""
        rows = [
            (one.light, one.title, one.short, one.sentence, one.threshold)
            for light in IN_ORDER
            for one in self.of_light(light)
        ]
        names = ["light", "check", "value", "in a sentence", "when the light changes"]
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def header(self) -> list[str]:
        """Return what was looked at, and how many lights there are of each colour."""
        return [self._summary()]

    def verdict(self) -> str:
        """Return how many lights there are of each colour, in words."""
        words = {
            "leak": counted(len(self.leaks), "leak"),
            "look": f"{len(self.of_light('look')):,} to look at",
            "ok": f"{len(self.of_light('ok')):,} ok",
            "unknown": f"{len(self.of_light('unknown')):,} not checked",
        }
        return ", ".join(words.values())

    def __str__(self) -> str:
        lines = [self._summary(), ""]
        for light in ("leak", "look"):
            for one in self.of_light(light):
                lines += _block(light, f"{one.title}: {one.sentence}")
                lines += _block("", f"Do: {one.remedy}") if one.remedy else []
        shown = "; ".join(f"{one.title} {one.short}" for one in self.of_light("shown"))
        lines += _block("shown", shown) if shown else []
        fine = "; ".join(one.title for one in self.of_light("ok"))
        lines += _block("ok", fine) if fine else []
        reasons: dict[str, list[str]] = {}
        for one in self.of_light("unknown"):
            reasons.setdefault(one.sentence, []).append(one.title)
        for at, (reason, titles) in enumerate(reasons.items()):
            lines += _block("" if at else "unknown", f"{', '.join(titles)}: {reason}")
        return "\n".join([*map(visible, lines), *map(visible, self.notes)])

    def _summary(self) -> str:
        first, *others = self.splits.values()
        what = first._summary() if not others else f"{len(self.splits):,} splits"
        return f"{what}: {self.verdict()}"

    def _content(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict(),
            "lights": self.lights,
            "checks": [one.to_dict() for one in self.checks],
            "splits": {label: _plain(one) for label, one in self.splits.items()},
            "notes": list(self.notes),
        }


def _plain(counts: SplitCounts) -> dict[str, Any]:
    return {key: value for key, value in counts.describe().items() if key != "label"}


def _block(head: str, text: str) -> list[str]:
    """Return a text as lines behind a head, the further ones indented."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head.ljust(len(_INDENT)),
        subsequent_indent=_INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
