"""`OnlineTests`: how often each kind of test found the truly better system."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unskew.errors import SettingError
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.stats.distributions import Interval, mean_interval, share_interval
from unskew.unbiased.top_items import LEVEL

OFFLINE = "offline"


OUTCOMES = ("right", "found", "wrong", "right_half")


KEYS = ("world", "feedback", "test", "impressions")


@dataclass(frozen=True, eq=False)
class OnlineTests(Result):
    """How often each kind of test finds the truly better of two systems. Made by `online_tests`."""

    digits = 3

    rows: pl.DataFrame
    """A row per world, feedback, test, number of impressions (null for offline designs), repeat and
    pair of systems a, b: the `true` difference of P@k, `true_half` of P@⌈k/2⌉, the `difference`
    that the test shows, and p."""
    logs: pl.DataFrame
    """A row per world, feedback, repeat and system left out of an A/B test in which every user sees
    every other system: by the test's judgments, `judged`, `error` and `condensed_error` of the one
    left out, `error_inside` (the mean of the others), and pairs in the wrong order: `wrong` of
    `against` (the one left out against the others), `wrong_inside` of `inside`."""
    k: int
    repeats: int
    level: float = LEVEL

    def table(self) -> pl.DataFrame:
        """Return a row per world, feedback, test and number of impressions.

        Columns: pairs (tried, over all repeats), right (the share in which the truly better system
        is ahead), found (in which it is significantly), wrong (in which the other one is,
        significantly), each with its interval. Pairs that are truly equal are left out. At last
        `right_half`: the share in which the system with the larger true P@⌈k/2⌉ is ahead, because a
        merged list of two shows about the upper half of each.
        """
        rows = []
        for key, part in self._unequal().group_by(KEYS, maintain_order=True):
            ahead = (part["difference"] * part["true"] > 0).to_numpy()
            clear = (part["p"] < 1 - self.level).to_numpy()
            against = (part["difference"] * part["true"] < 0).to_numpy()
            repeat = part["repeat"].to_numpy()
            row: dict[str, Any] = {**dict(zip(KEYS, key, strict=True)), "pairs": part.height}
            outcomes = {"right": ahead, "found": ahead & clear, "wrong": against & clear}
            for name, marks in outcomes.items():
                row |= _named(name, share_interval(marks, repeat, self.level))
            part = part.filter(pl.col("true_half") != 0)
            ahead = (part["difference"] * part["true_half"] > 0).to_numpy()
            upper = share_interval(ahead, part["repeat"].to_numpy(), self.level)
            rows.append({**row, **_named("right_half", upper)})
        shares = ("right", "found", "wrong", "right_half")
        kinds = {f"{name}{end}": pl.Float64 for name in shares for end in ("", "_low", "_high")}
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

    def needed(self, share: float = 0.9) -> pl.DataFrame:
        """Return with how many impressions each online test is right often enough.

        Columns: world, feedback, test, impressions (the least number tried from which on the truly
        better system is ahead in at least `share` of the pairs), surely (the same for the lower end
        of the interval); null where none of those tried is enough.
        """
        if not 0 < share <= 1:
            raise SettingError(f"share must be above 0, and 1 at most, got {share!r}")
        online = self.table().filter(pl.col("feedback") != OFFLINE)
        rows = []
        for key, part in online.group_by(KEYS[:3], maintain_order=True):
            row: dict[str, Any] = dict(zip(KEYS[:3], key, strict=True))
            for name, column in (("impressions", "right"), ("surely", "right_low")):
                enough = part[column].to_numpy() >= share
                lasting = np.logical_and.accumulate(enough[::-1])[::-1]
                at = int(np.argmax(lasting))
                row[name] = int(part["impressions"][at]) if lasting.any() else None
            rows.append(row)
        schema = dict(zip(KEYS[:3], [pl.String] * 3, strict=True))
        return pl.DataFrame(rows, schema={**schema, "impressions": pl.Int64, "surely": pl.Int64})

    def pairs(self) -> pl.DataFrame:
        """Return a row per world, feedback, test, number of impressions and pair of systems.

        Columns: a, b, true (the mean true difference of P@k), difference (the mean in the tests),
        and how often, of all repeats, the test was right, found and wrong, as in `table`.
        """
        sign = pl.col("difference") * pl.col("true")
        clear = pl.col("p") < 1 - self.level
        return (
            self._unequal()
            .group_by([*KEYS, "a", "b"], maintain_order=True)
            .agg(
                pl.col("true").mean(),
                pl.col("difference").mean(),
                (sign > 0).mean().alias("right"),
                ((sign > 0) & clear).mean().alias("found"),
                ((sign < 0) & clear).mean().alias("wrong"),
            )
        )

    def reuse(self) -> pl.DataFrame:
        """Return a row per world and feedback: judgments of an A/B test used for one left out.

        Columns: judged (the share of its places whose item was shown), error (P̂@k - P@k) with its
        interval over repeats, condensed_error (the same, of the share liked among what was judged),
        error_inside (of those that took part), wrong (the share of pairs of the one left out and a
        participant that are put the wrong way round) with its interval, wrong_inside (of pairs of
        participants, null where there is only one).
        """
        rows = []
        for key, part in self.logs.group_by("world", "feedback", maintain_order=True):
            row: dict[str, Any] = dict(zip(("world", "feedback"), key, strict=True))
            row["judged"] = _mean(part["judged"])
            means = part.group_by("repeat", maintain_order=True).agg(
                pl.col("error", "condensed_error", "error_inside").mean(),
                pl.col("wrong", "against", "wrong_inside", "inside").sum(),
            )
            row |= _named("error", mean_interval(means["error"].to_list(), self.level))
            row["condensed_error"] = _mean(means["condensed_error"])
            row["error_inside"] = _mean(means["error_inside"])
            for name, of in (("wrong", "against"), ("wrong_inside", "inside")):
                marks = [
                    np.arange(all_) < wrong
                    for wrong, all_ in zip(means[name].to_list(), means[of].to_list(), strict=True)
                ]
                at = np.repeat(np.arange(len(marks)), [one.size for one in marks])
                row |= _named(name, share_interval(np.concatenate(marks), at, self.level))
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it: intervals in words."""
        table = self.table()
        words = [
            pl.concat_str(
                pl.col(name).round(2),
                pl.lit(" ("),
                pl.col(f"{name}_low").round(2),
                pl.lit(" to "),
                pl.col(f"{name}_high").round(2),
                pl.lit(")"),
            ).alias(name)
            for name in OUTCOMES
        ]
        return table.select(*KEYS, "pairs", *words)

    def figure(self) -> Figure:
        """Draw how often each test is right over impressions; offline designs are straight lines.

        A panel per world and feedback.
        """
        import altair as alt

        table = self.table()
        most = table["impressions"].drop_nulls()
        ends = (int(most.min()), int(most.max())) if most.len() else (1, 10)  # type: ignore[arg-type]
        columns = ("test", "right", "right_low", "right_high")
        worlds = table["world"].unique(maintain_order=True).to_list()
        rows = []
        for world in worlds:
            of_world = table.filter(pl.col("world") == world)
            panels = [
                one for one in of_world["feedback"].unique(maintain_order=True) if one != OFFLINE
            ]
            for panel in panels or [OFFLINE]:
                title = f"{world}, {panel}" if len(worlds) > 1 else panel
                for row in of_world.filter(pl.col("feedback").is_in([panel, OFFLINE])).to_dicts():
                    offline = row["impressions"] is None
                    for at in ends if offline else (row["impressions"],):
                        rows.append(
                            {
                                **{name: row[name] for name in columns},
                                "panel": title,
                                "impressions": at,
                                "kind": "offline" if offline else "online",
                            }
                        )
        order = list(dict.fromkeys(row["panel"] for row in rows))
        base = alt.Chart(alt.NamedData(name="rows")).encode(
            x=alt.X("impressions:Q").scale(type="log"), color=alt.Color("test:N", sort=None)
        )
        right = alt.Y("right:Q", title="truly better system ahead").scale(domain=[0, 1])
        dash = alt.StrokeDash("kind:N", title=None).scale(
            domain=["online", "offline"], range=[[1, 0], [5, 4]]
        )
        line = base.mark_line(point=True).encode(y=right, strokeDash=dash)
        bars = base.mark_rule(opacity=0.5).encode(y=alt.Y("right_low:Q"), y2="right_high:Q")
        chart = (
            alt.layer(bars, line)
            .properties(width=260, height=220)
            .facet(facet=alt.Facet("panel:N", title=None, sort=order), columns=2)
        )
        return as_figure(chart, "Online and offline tests", self.footer(), rows)

    def _explanation(self) -> list[str]:
        equal = self.rows.height - self._unequal().height
        lines = [
            f"{self.repeats} repeats, true P@{self.k} of the systems trained on all observed "
            f"ratings; {self.level:.0%} intervals over repeats; significant: p < "
            f"{1 - self.level:.3g} of a pair by itself, not corrected",
            "impressions are those of one test: of a pair of systems or, in multileave, of all",
        ]
        if equal:
            lines.append(f"{equal:,} of {self.rows.height:,} comparisons of equal systems left out")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "k": self.k,
            "repeats": self.repeats,
            "level": self.level,
            "tests": self.table(),
            "pairs": self.pairs(),
            "needed": self.needed(),
            "reuse": self.reuse(),
            "notes": self.footer(),
        }

    def _unequal(self) -> pl.DataFrame:
        return self.rows.filter(pl.col("true") != 0)


def _mean(values: pl.Series) -> float | None:
    known = values.drop_nulls()
    return math.fsum(known) / known.len() if known.len() else None


def _named(name: str, interval: Interval) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))
