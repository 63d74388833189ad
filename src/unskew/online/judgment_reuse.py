"""`reuse_judgments`: judgments of an online test, used for systems that did not take part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, frozen
from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ratings
from unskew.errors import DataError, SettingError
from unskew.online.ab_tests import (
    VERDICT,
    check_correction,
    effects_of_users,
    log_of,
    pair_rows,
    pairs_of,
    tested,
    winner_rule,
)
from unskew.online.click_models import Behaviour, Feedback, ForcedExposure, behaviour_of
from unskew.online.top_lists import LEVEL, Systems, TopLists, top_lists
from unskew.report.columns import (
    HIGH,
    LOW,
    PAIR,
    QUANTITY,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.intervals.means import mean_intervals
from unskew.worlds.worlds import World

REUSE = Question(
    name="judgments used again",
    columns=(SYSTEM, Column("took_part", "flag", "took part"), QUANTITY, VALUE, LOW, HIGH),
    quantities=(
        Column("judged", "fact", form="%"),
        Column("estimate", "fact"),
        Column("true", "fact"),
        Column("error", "value", form="+"),
        Column("condensed", "fact"),
    ),
    method=Method(
        estimand="P@k by the judgments of an online test, and its error", interval="t", level=LEVEL
    ),
    figures=(Drawing("estimates", "scatter", quantities=("estimate", "true")),),
)
DIFFERENCES = Question(
    name="differences by these judgments",
    columns=(*PAIR, Column("took_part", "count", "took part"), *VERDICT),
    method=Method(
        estimand="P@k by the judgments of an online test: of a less that of b",
        interval="t",
        test="paired t test",
    ),
)


class Reused(NamedTuple):
    """Systems by the judgments of an online test in which the first of them took part."""

    lists: TopLists
    users: int
    """Users who came."""
    judged: F64
    """The share of each system's places whose item was shown in the test."""
    values: F64
    """Systems x users who came: P̂@k, what was never shown or clicked being not liked."""
    truth: F64
    """Systems x users who came: the true P@k."""
    condensed: F64
    """Of what was judged: the share clicked (forced: liked)."""


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
) -> Estimates:
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

    Returns
    -------
    Estimates
        A row per system and quantity: `judged` (the share of its places whose item was shown),
        `estimate` (P̂@k: what was not shown counts as not liked), `true` (P@k of the same users),
        `error` (estimate less true, with its interval over users) and `condensed` (the share of the
        judged places that was clicked or, if forced, liked). Part `pairs`: differences of the
        estimates as in `ab_test`, and how many of the two systems took part.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.judgment_reuse import reuse_judgments
    >>> shop = us.world("shop", users=200, items=80, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()]
    >>> reuse = reuse_judgments(shop, systems, ["random", "popularity"])
    >>> [reuse.row(system=name, quantity="error").value for name in ("random", "popularity")]
    [0.0, 0.0]
    >>> reuse.row(system="average-rating", quantity="error").value < -0.1
    True
    """
    check_share("level", level)
    check_correction(correction)
    everything = top_lists(world, systems, k=k, train=train, seed=seed)
    names = list(dict.fromkeys(took_part))
    if not names or isinstance(took_part, str):
        raise SettingError(f"took_part: give a list of names of systems, got {took_part!r}")
    if impressions is not None:
        as_count("impressions", impressions)
    behaviour = behaviour_of(feedback, world, everything.k)
    reused = judge_again(everything, names, behaviour, seed, impressions)
    lists, count, number = reused.lists, len(names), len(everything.systems)
    error, _, low, high = mean_intervals(reused.values - reused.truth, level, axis=1)
    columns = {
        "judged": reused.judged,
        "estimate": reused.values.mean(axis=1),
        "true": reused.truth.mean(axis=1),
        "error": error,
        "condensed": reused.condensed,
    }
    rows = [
        {
            "system": system,
            "took_part": index < count,
            "quantity": name,
            "value": column[index],
            **({"low": low[index], "high": high[index]} if name == "error" else {}),
        }
        for index, system in enumerate(lists.systems)
        for name, column in columns.items()
    ]
    method = tested(DIFFERENCES.method, number, level, correction)
    took = [(a < count) + (b < count) for a, b in pairs_of(number)]
    pairs = pair_rows(lists, effects_of_users(reused.values), level, correction)
    pairs = pairs.with_columns(took_part=pl.Series(took, dtype=pl.Int64))
    return Estimates.of_rows(
        REUSE,
        rows,
        method=replace(method, estimand=REUSE.method.estimand),
        explanation=(
            f"judgments of {counted(reused.users, 'user')} on the lists of "
            f"{counted(count, 'system')}; {feedback}",
            winner_rule(number, level),
        ),
        notes=lists.notes,
        parts={"pairs": Estimates.of_rows(DIFFERENCES, pairs, method=method)},
        card={"correction": correction, "k": lists.k, "users": reused.users, "took_part": names},
    )


def judge_again(
    lists: TopLists,
    took_part: Sequence[str],
    behaviour: Behaviour,
    seed: int,
    impressions: int | None,
) -> Reused:
    """Run an A/B test of some systems, and judge all by what users did in it.

    Parameters
    ----------
    lists
        Of all systems.
    took_part
        Names of those in the test; they come first in the result.
    behaviour, seed
        What users do, and the seed of the test.
    impressions
        How many; None = every user is shown every participant's list.
    """
    from unskew.online import kernels

    part = lists.only(took_part)
    mark = log_of(part, behaviour, seed, impressions)
    lists = lists.only([*took_part, *(name for name in lists.systems if name not in took_part)])
    seen = np.zeros(lists.item.shape, np.uint8)
    kernels.look_up(part.item, frozen(mark), lists.item, seen)
    came = np.flatnonzero(mark.any(axis=(0, 2)))
    if not came.size:
        raise DataError("the log is empty: no user was shown anything")
    seen = seen[:, came]
    judged, clicked = (np.count_nonzero(mask, axis=(1, 2)) for mask in (seen, seen == 2))
    with np.errstate(invalid="ignore"):
        condensed = clicked / judged
    return Reused(
        lists=lists,
        users=int(came.size),
        judged=judged / seen[0].size,
        values=np.count_nonzero(seen == 2, axis=2) / lists.k,
        truth=lists.per_user()[:, came],
        condensed=condensed,
    )
