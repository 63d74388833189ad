"""`reuse_judgments`: judgments of an online test, used for systems that did not take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, U8, frozen
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.errors import DataError, SettingError
from unskew.online.ab_tests import (
    check_correction,
    effects_of_users,
    log_of,
    pair_table,
    pairs_of,
    winner_rule,
)
from unskew.online.click_models import Feedback, ForcedExposure, behaviour_of
from unskew.online.top_lists import LEVEL, Systems, TopLists, top_lists
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.intervals.means import mean_intervals
from unskew.worlds.worlds import World


@dataclass(frozen=True, eq=False)
class Reuse(Result):
    """Systems by the judgments of an online test. Made by `reuse_judgments`."""

    lists: TopLists
    """Those that took part first, then the others."""
    took_part: int
    """How many took part."""
    feedback: Feedback
    users: int
    """Users who came."""
    judged: F64
    """The share of each system's places whose item was shown in the test."""
    values: F64
    """Systems x users who came: P̂@k, what was never shown or clicked being not liked."""
    truth: F64
    """Systems x users who came: the true P@k."""
    liked_share: F64
    """Of what was judged: the share clicked (forced: liked)."""
    level: float = LEVEL
    correction: str | None = "holm"

    def table(self) -> pl.DataFrame:
        """Return a row per system.

        Columns: system, took_part, judged (share of its places whose item was shown), estimate
        (P̂@k: what was not shown counts as not liked), true (of the same users), error (estimate -
        true) with its interval low to high over users, condensed (the share of the judged places
        that was clicked or, if forced, liked).
        """
        error, _, low, high = mean_intervals(self.values - self.truth, self.level, axis=1)
        return pl.DataFrame(
            {
                "system": list(self.lists.systems),
                "took_part": [index < self.took_part for index in range(len(self.values))],
                "judged": self.judged,
                "estimate": self.values.mean(axis=1),
                "true": self.truth.mean(axis=1),
                "error": error,
                "low": low,
                "high": high,
                "condensed": self.liked_share,
            }
        )

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems, as `ABTest.pairs`, with how many of both took part."""
        effects = effects_of_users(self.values)
        took = [(a < self.took_part) + (b < self.took_part) for a, b in pairs_of(len(self.values))]
        table = pair_table(self.lists, effects, self.level, self.correction)
        return table.with_columns(pl.Series("took_part", took, pl.Int64))

    def figure(self) -> Figure:
        """Draw the estimate of each system against the truth."""
        import altair as alt

        rows = [
            {**row, "role": "took part" if row["took_part"] else "did not"}
            for row in self.table().to_dicts()
        ]
        base = alt.Chart(alt.NamedData(name="rows"), width=320, height=320)
        x = alt.X("true:Q", title=f"true P@{self.lists.k}")
        points = base.mark_point(filled=True, size=80).encode(
            x=x,
            y=alt.Y("estimate:Q"),
            color=alt.Color("role:N", title=None),
            shape=alt.Shape("role:N", title=None),
            tooltip=["system:N", "judged:Q"],
        )
        line = base.mark_line(color="#999999", strokeDash=[4, 4]).encode(x=x, y="true:Q")
        return as_figure(alt.layer(line, points), "Judgments used again", self.footer(), rows)

    def _explanation(self) -> list[str]:
        return [
            f"judgments of {counted(self.users, 'user')} on the lists of "
            f"{counted(self.took_part, 'system')}; "
            f"{self.feedback}; {self.level:.0%} intervals over users",
            winner_rule(len(self.lists.systems), self.level, self.correction),
            *self.lists.notes,
        ]

    def _content(self) -> dict[str, object]:
        return {
            "level": self.level,
            "correction": self.correction,
            "users": self.users,
            "systems": self.table(),
            "pairs": self.pairs(),
            "notes": self.footer(),
        }


@checked
def reuse_judgments(
    world: World,
    systems: Systems | TopLists,
    took_part: Sequence[str],
    impressions: int | None = None,
    feedback: Feedback = ForcedExposure(),  # noqa: B008 - frozen
    *,
    k: int | None = None,
    train: Ratings | None = None,
    level: float = LEVEL,
    correction: str | None = "holm",
    seed: int = 0,
) -> Reuse:
    """Judge systems that did not take part in an A/B test by what users did in it.

    castells2018 section 5.3.2: what the others recommend is judged only where a participant
    recommended it too, so that systems like the participants are favoured.

    Parameters
    ----------
    world, systems, k, train
        As in `top_lists`: all systems, participants and others.
    took_part
        Names of the participants.
    impressions, feedback
        Of the A/B test, as in `ab_test`. A user's click on an item counts however often the item
        was shown without one.
    level, correction
        Of the intervals over the users who came, and of the winners of pairs, as in `ab_test`.
    seed
        Of the test; and of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.judgment_reuse import reuse_judgments
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> reuse = reuse_judgments(shop, systems, ["random", "popularity"])
    >>> reuse.table().filter(pl.col("took_part"))["error"].to_list()
    [0.0, 0.0]
    """
    check_share("level", level)
    check_correction(correction)
    everything = top_lists(world, systems, k=k, train=train, seed=seed)
    names = list(dict.fromkeys(took_part))
    if not names or isinstance(took_part, str):
        raise SettingError(f"took_part: give a list of names of systems, got {took_part!r}")
    if impressions is not None:
        as_count("impressions", impressions)
    part = everything.only(names)
    behaviour = behaviour_of(feedback, world, everything.k)
    mark = log_of(part, behaviour, seed, impressions)
    ordered = everything.only(
        [*names, *(system for system in everything.systems if system not in names)]
    )
    return replace(_judged_again(ordered, part, mark, feedback), level=level, correction=correction)


def _judged_again(lists: TopLists, part: TopLists, mark: U8, feedback: Feedback) -> Reuse:
    from unskew.online import kernels

    seen = np.zeros(lists.item.shape, np.uint8)
    kernels.look_up(part.item, frozen(mark), lists.item, seen)
    came = np.flatnonzero(mark.any(axis=(0, 2)))
    if not came.size:
        raise DataError("the log is empty: no user was shown anything")
    seen = seen[:, came]
    judged = np.count_nonzero(seen, axis=(1, 2))
    clicked = np.count_nonzero(seen == 2, axis=(1, 2))
    with np.errstate(invalid="ignore"):
        share = clicked / judged
    return Reuse(
        lists=lists,
        took_part=len(part.systems),
        feedback=feedback,
        users=int(came.size),
        judged=judged / seen[0].size,
        values=np.count_nonzero(seen == 2, axis=2) / lists.k,
        truth=lists.per_user()[:, came],
        liked_share=share,
    )
