"""`Standing`: the places of systems by observed and by true judgments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import polars as pl

from unskew.auditing.nested_truth import Overlap
from unskew.auditing.truth_sources import Sampled, Source
from unskew.checks import choose
from unskew.data.true_judgments import POOLED, RANDOM
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.stats.design_contrasts import Contrasts

OBSERVED, TRUE = "observed", "true"
"""The two kinds of judgments, as the designs of the contrasts."""
EVERY_PAIR = "world"
"""The kind of true judgments that a world has: all."""


def ordinal(place: int) -> str:
    """Return a place as people say it.

    Examples
    --------
    >>> from unskew.auditing.standing_result import ordinal
    >>> [ordinal(place) for place in (1, 2, 3, 4, 11, 21)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st']
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{'th' if place % 100 in (11, 12, 13) else ending}"


@dataclass(frozen=True, kw_only=True)
class JudgedBy:
    """What one kind of judgments says of a system."""

    score: float
    """The mean of the metric, with its interval over users from `low` to `high`."""
    low: float
    high: float
    place: int
    """From 1, the best; with the simultaneous interval from `best` to `worst`."""
    best: int
    worst: int
    liked: float
    """Of the first k items of the lists: the share that is judged and liked (P@k)."""
    disliked: float
    """The share that is judged and disliked (anti-P@k)."""

    @property
    def judged(self) -> float:
        """The share of the first k items that is judged."""
        return self.liked + self.disliked

    @property
    def liked_share(self) -> float | None:
        """Of the judged items among the first k, the share that is liked; None without any."""
        return self.liked / self.judged if self.judged else None

    @property
    def places(self) -> str:
        """The interval of the place, in words."""
        if self.best == self.worst:
            return ordinal(self.best)
        return f"{ordinal(self.best)} to {ordinal(self.worst)}"


@dataclass(frozen=True, kw_only=True)
class SystemStanding:
    """Where a system stands by both kinds of judgments."""

    system: str
    observed: JudgedBy
    true: JudgedBy

    @property
    def exceeds_chance(self) -> bool:
        """Whether the intervals of both places have no place in common."""
        one, other = self.observed, self.true
        return one.worst < other.best or other.worst < one.best


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the true judgments came about, and what that means for scores."""

    kind: str
    """`random`, `exhaustive`, `pooled`, or `world`, where all is known."""
    is_weighted: bool = False
    """Whether observed judgments count for others, all of them being among the random ones."""
    is_dependent: bool = False
    """Whether what is judged depends on what is observed, in a way that is not corrected."""
    is_condensed: bool = False
    """Whether the judged items alone are ranked."""

    @classmethod
    def of(cls, source: Source, overlap: Overlap | None) -> Sampling:
        """Return how the judgments of a source came about."""
        if not isinstance(source, Sampled):
            return cls(kind=EVERY_PAIR)
        return cls(
            kind=source.kind,
            is_weighted=overlap is not None and overlap.is_nested,
            is_dependent=overlap is not None and overlap.is_dependent,
            is_condensed=source.targets.others == 0,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Standing(Result):
    """Where systems stand by observed and by true judgments. Made by `standing`."""

    figure_is_open: ClassVar[bool] = True

    dataset_name: str
    system: str
    """Whose place is asked for."""
    metric: str
    cutoff: int
    """Of the shares of liked, disliked and judged items."""
    sampling: Sampling
    truth: str
    """What is true, in words."""
    rows: tuple[SystemStanding, ...]
    """By system, the truly best first."""
    contrasts: Contrasts
    """All differences, under the designs `observed` and `true`."""
    agreement: Mapping[str, float | None]
    """Kendall's τ_b of both orders, its p and interval over users, and the swapped pairs."""
    users: int
    """Who have both a test rating and a true judgment on some split."""
    splits: int
    level: float
    tuned: Mapping[str, tuple[str, ...]]
    """By system: the settings chosen on each split."""
    relevance: str
    notes: tuple[str, ...] = ()

    @cached_property
    def by_system(self) -> dict[str, SystemStanding]:
        """The rows by system."""
        return {row.system: row for row in self.rows}

    def of(self, system: str | None = None) -> SystemStanding:
        """Return where a system stands; the one asked for unless named."""
        return self.by_system[choose("system", system or self.system, self.by_system)]

    def reversals(self, system: str | None = None) -> tuple[tuple[str, str, str], ...]:
        """Return the systems that a system is ahead of by one kind of judgments and behind by one.

        Both differences exceed chance, over all pairs and both kinds at once. Each comes as (other
        system, ahead by, behind by).
        """
        name = self.of(system).system
        turned = []
        for other in self.by_system:
            if other == name:
                continue
            rows = {kind: self.contrasts.get(kind, name, other) for kind in (OBSERVED, TRUE)}
            signs = {kind: (row.low > 0) - (row.high < 0) for kind, row in rows.items()}
            if signs[OBSERVED] * signs[TRUE] < 0:
                ahead = OBSERVED if signs[OBSERVED] > 0 else TRUE
                turned.append((other, ahead, TRUE if ahead == OBSERVED else OBSERVED))
        return tuple(turned)

    def sentence(self, system: str | None = None) -> str:
        """Say where a system stands, and whether the change of its place exceeds chance."""
        row = self.of(system)
        one, other = row.observed, row.true
        text = (
            f"{row.system} is {ordinal(one.place)} of {len(self.rows)} by observed judgments "
            f"({100 * self.level:g} %: {one.places}) and {ordinal(other.place)} by true ones "
            f"({other.places})"
        )
        if row.exceeds_chance:
            return f"{text}: the change exceeds chance"
        names = [name for name, _, _ in self.reversals(row.system)]
        if names:
            return f"{text}: its place may be chance, its order with {', '.join(names)} is not"
        if one.place != other.place:
            return f"{text}: the change may be chance"
        return f"{text}: no change is seen"

    def table(self) -> pl.DataFrame:
        """Return a row per system: score, place and judged items by both kinds of judgments."""
        records: list[dict[str, Any]] = []
        for row in self.rows:
            record: dict[str, Any] = {"system": row.system}
            for kind, one in ((OBSERVED, row.observed), (TRUE, row.true)):
                record |= {
                    f"{kind}": one.score,
                    f"{kind}_low": one.low,
                    f"{kind}_high": one.high,
                    f"{kind}_place": one.place,
                    f"{kind}_best": one.best,
                    f"{kind}_worst": one.worst,
                    f"{kind}_liked": one.liked,
                    f"{kind}_disliked": one.disliked,
                    f"{kind}_judged": one.judged,
                    f"{kind}_liked_share": one.liked_share,
                }
            records.append({**record, "exceeds_chance": row.exceeds_chance})
        return pl.DataFrame(records, infer_schema_length=None)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the places and scores, and the items judged among the first k."""
        digits = self.digits if digits is None else digits
        k, level = self.cutoff, f"{100 * self.level:g} %"

        def place(one: JudgedBy) -> str:
            return f"{one.place} [{one.best}, {one.worst}]"

        def score(one: JudgedBy) -> str:
            return f"{one.score:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]"

        places = [
            [row.system, score(row.observed), place(row.observed), score(row.true), place(row.true)]
            for row in self.rows
        ]
        header = [
            "system",
            f"observed {self.metric} [{level}]",
            f"place [{level}]",
            f"true {self.metric} [{level}]",
            f"place [{level}] ",
        ]
        shares = [
            [row.system, *(value for one in (row.observed, row.true) for value in _shares(one))]
            for row in self.rows
        ]
        names = ("P", "anti-P", "judged", "liked share")
        # A trailing blank keeps the names of both groups apart.
        of = [f"{OBSERVED} {names[0]}", *names[1:], f"{TRUE} {names[0]}"]
        of += [f"{name} " for name in names[1:]]
        return [
            Table.of_rows(header, places, title="Scores and places", digits=digits),
            Table.of_rows(
                ["system", *of],
                shares,
                title=f"Judged items among the first {k} (liked share: of those judged)",
                digits=3,
            ),
        ]

    def header(self) -> list[str]:
        """Return what was asked."""
        return [f"{self.dataset_name}: where {self.system} stands by observed and true judgments"]

    def _explanation(self) -> list[str]:
        runs = counted(self.splits, "random split")
        lines = [
            f"true judgments: {self.truth}",
            f"means over {runs} and {counted(self.users, 'user')} with a training rating, a test "
            f"rating and a true judgment; {self.relevance}",
            "intervals of scores: over users, each alone; intervals of places hold for all systems "
            f"and both kinds of judgments at once, about {self.contrasts.target}",
        ]
        lines += self._scale_lines()
        tau = self.agreement["tau"]
        if tau is not None:
            line = f"order of {len(self.rows)} systems: τ_b {tau:.2f}"
            low, high = self.agreement["low"], self.agreement["high"]
            if low is not None and high is not None:
                line += f" ({100 * self.level:g} % over users: {low:.2f} to {high:.2f})"
            swaps = int(self.agreement["swaps"] or 0)
            lines.append(f"{line}, {counted(swaps, 'pair')} swapped")
        lines += [
            f"{system}: {' / '.join(dict.fromkeys(texts))}"
            for system, texts in self.tuned.items()
            if any(texts)
        ]
        return lines

    def _scale_lines(self) -> list[str]:
        """Say what unjudged items do to the true scores."""
        k, row, sampling = self.cutoff, self.of(), self.sampling
        share = f"{row.true.judged:.0%} of the first {k} items of {row.system}"
        if sampling.kind == POOLED:
            least = min(self.rows, key=lambda one: one.true.judged)
            return [
                f"pooled judgments: {share} are judged, fewest of {least.system} "
                f"({least.true.judged:.0%}); true scores are of the judged items alone, which may "
                "favour systems that list other items than the pooled ones did. Whatever the "
                "unjudged items are, P lies between P and P + 1 - judged in the second table"
            ]
        if sampling.kind != RANDOM:
            return []
        if sampling.is_condensed:
            return ["true scores are of the order of the randomly chosen items alone"]
        lines = [
            f"true scores are on the scale of the random sample, in which {share} are judged"
            + (
                ""
                if sampling.is_dependent
                else "; the order of the systems means the same on all items"
            )
        ]
        if sampling.is_weighted:
            lines.append(
                "random judgments that are observed too are judged outside training only if they "
                "test: they stand for others, by the inverse of that chance"
            )
        return lines

    def _conclusion(self) -> list[str]:
        count = len(self.rows)
        lines = [self.sentence()]
        if all((row.true.best, row.true.worst) == (1, count) for row in self.rows):
            lines.append(
                "the true judgments tell no two of these systems apart: no place is settled"
            )
        for other, ahead, behind in self.reversals():
            lines.append(
                f"{self.system} is better than {other} by {ahead} judgments and worse by {behind} "
                "ones; both differences exceed chance"
            )
        also = [row for row in self.rows if row.exceeds_chance and row.system != self.system]
        if also:
            moves = [
                f"{row.system} ({ordinal(row.observed.place)} to {ordinal(row.true.place)})"
                for row in also
            ]
            lines.append(f"other systems whose change of place exceeds chance: {', '.join(moves)}")
        return lines

    def _content(self) -> dict[str, object]:
        row = self.of()
        return {
            "data": self.dataset_name,
            "system": self.system,
            "metric": self.metric,
            "kind": self.sampling.kind,
            "is_weighted": self.sampling.is_weighted,
            "is_dependent": self.sampling.is_dependent,
            "truth": self.truth,
            "level": self.level,
            "users": self.users,
            "splits": self.splits,
            "observed_place": row.observed.place,
            "true_place": row.true.place,
            "exceeds_chance": row.exceeds_chance,
            "reversals": [
                {"system": other, "ahead_by": ahead, "behind_by": behind}
                for other, ahead, behind in self.reversals()
            ],
            "agreement": dict(self.agreement),
            "rows": self.table(),
            "tuned": self.tuned,
            "notes": self.footer(),
        }

    def _summary(self) -> str:
        row = self.of()
        return (
            f"{self.dataset_name}: {self.system} is {ordinal(row.observed.place)} by observed and "
            f"{ordinal(row.true.place)} by true judgments of {counted(len(self.rows), 'system')}"
        )

    def figure(self) -> Figure:
        """Draw the place of each system by observed and by true judgments, with its interval."""
        import altair as alt

        rows = [
            {
                "system": row.system,
                "judgments": kind,
                "place": one.place,
                "best": one.best,
                "worst": one.worst,
                "asked": row.system == self.system,
            }
            for row in self.rows
            for kind, one in ((OBSERVED, row.observed), (TRUE, row.true))
        ]
        names = [row.system for row in self.rows]
        axis = alt.Axis(values=list(range(1, len(names) + 1)), format="d", grid=False)
        scale = alt.Scale(domain=[0.5, len(names) + 0.5], reverse=True)
        base = alt.Chart(alt.NamedData(name="rows")).encode(
            x=alt.X("judgments:N", title=None, axis=alt.Axis(labelAngle=0, orient="top")),
            xOffset=alt.XOffset("system:N", sort=names),
            y=alt.Y("place:Q", title="place", scale=scale, axis=axis),
            color=alt.Color("system:N", sort=names),
            opacity=alt.condition("datum.asked", alt.value(1.0), alt.value(0.55)),
        )
        bars = base.mark_rule(strokeWidth=3).encode(y=alt.Y("best:Q", title="place"), y2="worst:Q")
        points = base.mark_point(filled=True, size=110)
        chart = alt.layer(bars, points).properties(width=420, height=40 + 40 * len(names))
        notes = [self.sentence()]
        return as_figure(chart, f"Places by {self.metric}: {self.dataset_name}", notes, rows)


def _shares(one: JudgedBy) -> tuple[float | None, ...]:
    return one.liked, one.disliked, one.judged, one.liked_share
