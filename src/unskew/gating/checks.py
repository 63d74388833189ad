"""The checks of a gate on values per user, and the rules by which they pass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.gating.bounds import MarginBounds, bounds_of
from unskew.gating.settings import GateSettings, MarginRule
from unskew.gating.values import GateValues, Pair
from unskew.report.text import counted
from unskew.stats.corrections import correct

PASS, OPEN, FAIL, INFORM = "pass", "open", "fail", "inform"
"""Outcomes: shown to be within its limit; neither shown; clearly beyond; not tested."""
PROMOTE, HOLD, NOT_SETTLED = "promote", "hold", "not settled"
FEWEST = 20
"""Users that must differ, and judged items that each system must list, for a test to decide."""
LEAST_USERS = 10
"""A segment with fewer users is not tested."""


@dataclass(frozen=True, kw_only=True)
class GateCheck:
    """One question, its answer, and the rule by which it was decided."""

    key: str
    title: str
    rule: str
    """How it is decided, in words."""
    outcome: str
    candidate: float | None = None
    production: float | None = None
    change: float | None = None
    """Candidate less production."""
    low: float | None = None
    """One-sided bounds of the change, each at level alpha."""
    high: float | None = None
    limit: float | None = None
    """Where the change must stay above (or, of what should not rise, below)."""
    reason: str = ""
    """Why it did not pass, or what it shows: a sentence without its full stop."""


@dataclass(frozen=True, kw_only=True)
class Better(GateCheck):
    """Check 1: the candidate is better, or not worse by more than the margin."""

    users: int
    detectable: float
    """The smallest true change that this test finds in 80 of 100 cases."""
    differing: int
    """Users whose two values differ (groups of users, where groups are given)."""


@dataclass(frozen=True, kw_only=True)
class PopularityCheck(GateCheck):
    """Check 2: the lead is more than recommending what is rated more.

    The change is that of `liked above usual`: the liked share of the recommendations that users
    rated, less the share that the same users like of all that they rate. Without dislikes it is
    that of the lead when each liked item counts 1 / popularity.
    """

    measure: str
    """What is tested: `liked above usual`, or `adjusted lead` where nothing is disliked."""
    is_needed: bool
    """Whether the candidate's items are rated more often (without dislikes: are more popular)."""
    judged: float | None
    """How often the candidate's items are judged, as a multiple of production's."""
    liked: float | None
    """The liked share of those, as a multiple of production's; None without dislikes."""
    levelled: float | None
    """The lead if every liked item counts 1 / popularity, as a share of production's value."""
    levelled_low: float | None
    levelled_high: float | None
    popularity: float | None
    """The mean popularity of the candidate's items, as a multiple of production's."""


@dataclass(frozen=True, kw_only=True)
class Rail(GateCheck):
    """A guard rail of check 3."""

    margin: str
    is_loss: bool
    """Whether a fall is guarded against; else a rise."""
    slack: float | None = None
    """How far the change is within its limit."""
    p_beyond: float | None = None


@dataclass(frozen=True, kw_only=True)
class SegmentCheck(GateCheck):
    """A segment of check 3."""

    by: str
    users: int
    p_beyond: float | None = None
    p_corrected: float | None = None


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What was decided from values per user."""

    better: Better
    popularity: PopularityCheck
    rails: tuple[Rail, ...]
    segments: tuple[SegmentCheck, ...]


def check_values(values: GateValues, settings: GateSettings, alpha: float) -> Checks:
    """Run the checks 1 to 3.

    Parameters
    ----------
    values
        Of both systems, by user.
    settings
        Thresholds.
    alpha
        The one-sided level of every test, adjusted for earlier looks.
    """
    rails = [
        _rail(name, values, margin, alpha, settings.margin)
        for name, margin in settings.rails.items()
        if margin is not None
    ]
    marked = _with_alarms([*rails, *_segments(values, settings, alpha)], alpha)
    return Checks(
        better=better_check(values, settings, alpha),
        popularity=popularity_check(values, settings, alpha),
        rails=tuple(check for check in marked if isinstance(check, Rail)),
        segments=tuple(check for check in marked if isinstance(check, SegmentCheck)),
    )


def verdict_of(checks: Checks, data: Sequence[GateCheck] = ()) -> str:
    """Return the verdict.

    Hold: the candidate is clearly worse, or a rail or segment is clearly beyond its margin.
    Promote: check 1 and every rail pass, and neither check 2 nor the data hold it back.
    """
    harms = (checks.better, *checks.rails, *checks.segments)
    if any(harm.outcome == FAIL for harm in harms):
        return HOLD
    must = (checks.better, checks.popularity, *checks.rails, *data)
    return PROMOTE if all(check.outcome in (PASS, INFORM) for check in must) else NOT_SETTLED


def measured(pair: Pair, slack: MarginBounds, limit: float, sign: float = 1.0) -> dict[str, Any]:
    """Return what a check says of two systems: their means, the change, its bounds and its limit.

    Parameters
    ----------
    pair
        What is compared.
    slack
        How far the change is within its limit.
    limit
        Of the change.
    sign
        -1 turns a change round, where lower is better.
    """
    candidate, production = _mean(pair.candidate), _mean(pair.production)
    return {
        "candidate": candidate,
        "production": production,
        "change": sign * (candidate - production),
        "low": limit + slack.low,
        "high": limit + slack.high,
        "limit": limit,
    }


# Check 1


def better_check(values: GateValues, settings: GateSettings, alpha: float) -> Better:
    """Test the difference over users against 0, or against the margin."""
    sign = -1.0 if values.is_lower_better else 1.0
    candidate, production = values.metric
    margin = settings.margin
    slack = bounds_of(sign * (candidate - _scaled(production, margin, sign)), alpha, values.groups)
    limit = 0.0 if margin is None else -margin.of(_mean(production))
    differing = values.count(candidate != production)
    outcome, reason = PASS if slack.low > 0 else OPEN, ""
    if slack.high < 0:
        outcome = FAIL
        reason = "it scores worse" if margin is None else "it scores worse by more than the margin"
    elif margin is None and differing < FEWEST:
        outcome = OPEN
        users = counted(differing, "user has a different score", "users have different scores")
        reason = f"only {users}, fewer than {FEWEST}"
    elif outcome == OPEN:
        reason = "the difference is too small for these users to tell it from chance"
        if margin is not None:
            reason = "the test cannot rule out that it is worse by more than the margin"
    direction = "" if sign > 0 else " (turned round, as lower is better)"
    rule = f"the lower bound of the difference{direction} must lie above "
    rule += "0" if margin is None else f"minus the margin of {margin}"
    return Better(
        key="better",
        title="better score" if margin is None else "score not worse",
        rule=f"{rule}; below that as a whole: hold",
        outcome=outcome,
        **measured(values.metric, slack, limit, sign),
        reason=reason,
        users=values.count(np.ones(candidate.size, np.bool_)),
        detectable=limit + slack.detectable,
        differing=differing,
    )


def _scaled(production: F64, margin: MarginRule | None, sign: float) -> F64:
    """Return what the candidate must exceed, user by user."""
    if margin is None:
        return production
    return (
        production * (1 - sign * margin.amount)
        if margin.relative
        else production - sign * margin.amount
    )


# Check 2


def popularity_check(values: GateValues, settings: GateSettings, alpha: float) -> PopularityCheck:
    """Test whether the lead is more than being rated more.

    Precision is (how often items are rated) x (how often rated ones are liked). A user who likes
    more of everything adds hits wherever they rate more; so what is rated more is counted by what
    its user likes anyway. Where that is higher, the rated recommendations must also clearly be
    liked beyond what the same users usually like. Without dislikes, where the candidate's items
    are clearly more popular, the lead must remain when liked items count 1 / popularity. With a
    margin, "higher" is "not lower by more than the same share".
    """
    base = _mean(values.metric.production)
    tolerance = 0.0
    if settings.margin is not None and base > 0:
        tolerance = settings.margin.of(base) / base
    groups = values.groups
    shares = Pair(*map(per_unit, values.liked, values.judged))
    if values.has_dislikes:
        tested, more = liked_above_usual(values), is_rated_more(values)
        allowed = tolerance * shares.production
        enough = min(float(counts.sum()) for counts in values.judged) >= FEWEST
    else:
        rise = values.popularity.candidate - values.popularity.production
        tested, more, enough = values.levelled, bounds_of(rise, alpha).low > 0, True
        allowed = tolerance * values.levelled.production
    slack = bounds_of(tested.candidate - tested.production + allowed, alpha, groups)
    outcome, reason = _popularity_outcome(
        values.has_dislikes, more, is_clear=enough and slack.low > 0, tolerance=tolerance
    )
    levelled = bounds_of(values.levelled.candidate - values.levelled.production, alpha, groups)
    unit = _mean(values.levelled.production) or None
    return PopularityCheck(
        key="popularity",
        title="not only popular",
        rule=_popularity_rule(values.has_dislikes, tolerance),
        outcome=outcome if settings.popularity == "check" or outcome == PASS else INFORM,
        **measured(tested, slack, -_mean(allowed)),
        reason=reason,
        measure="liked above usual" if values.has_dislikes else "adjusted lead",
        is_needed=more,
        judged=_ratio(values.judged),
        liked=_ratio(shares) if values.has_dislikes else None,
        levelled=None if unit is None else levelled.value / unit,
        levelled_low=None if unit is None else levelled.low / unit,
        levelled_high=None if unit is None else levelled.high / unit,
        popularity=_ratio(values.popularity),
    )


def liked_above_usual(values: GateValues) -> Pair:
    """Return the liked share of rated recommendations less what their users like of all they rate.

    Where the metric asks for the order, a recommendation counts with the weight of its rank.

    If nobody prefers what is recommended to what else they rate, it is 0 in the mean, however
    generous those are whose recommendations are rated.
    """
    pairs = zip(values.liked_by_rank, values.judged_by_rank, strict=True)
    return Pair(*(per_unit(liked - values.usual * judged, judged) for liked, judged in pairs))


def is_rated_more(values: GateValues) -> bool:
    """Tell whether the candidate's items are rated more often, by users who like something."""
    more = values.judged_by_rank.candidate - values.judged_by_rank.production
    return _mean(values.usual * more) > 0


def _popularity_rule(has_dislikes: bool, tolerance: float) -> str:
    if has_dislikes:
        than = "be liked more" if not tolerance else f"not be liked less by {tolerance:.2%}"
        return (
            "if the candidate's recommendations are rated more often than production's, the rated "
            f"ones must clearly {than}, each compared with what its user likes of all ratings"
        )
    than = "remain" if not tolerance else f"not fall below minus {tolerance:.2%}"
    return (
        "if the candidate's items are clearly more popular than production's, its lead must "
        f"clearly {than} when each liked item counts 1 / popularity"
    )


def _popularity_outcome(
    has_dislikes: bool, is_more: bool, *, is_clear: bool, tolerance: float
) -> tuple[str, str]:
    if not is_more:
        more = "rated more often" if has_dislikes else "clearly more popular"
        return PASS, f"its items are not {more} than production's"
    if is_clear:
        text = "liked more, compared with what the same users usually like"
        if not has_dislikes:
            text = "ahead after adjusting for popularity"
        also = f"its items are also clearly {text}"
        return PASS, also if not tolerance else "liking holds up within the margin"
    if has_dislikes:
        liked = "liked more" if not tolerance else "liked as much, within the margin,"
        return OPEN, (
            f"its items are rated more often, but the rated ones are not clearly {liked} than what "
            "the same users usually like: the lead may come from that alone"
        )
    return OPEN, ("its items are more popular, and no lead is clear after adjusting for popularity")


def per_unit(top: F64, bottom: F64) -> F64:
    """Return a ratio of sums as a value per user (by linearisation); 0 where it is undefined."""
    total = float(bottom.sum())
    if not total:
        return np.zeros(top.size)
    ratio = float(top.sum()) / total
    return ratio + (top - ratio * bottom) * (top.size / total)


# Check 3: guard rails


class _Guarded(NamedTuple):
    """Values of both systems, how far each user is within the limit, and groups of users."""

    pair: Pair
    distance: F64
    groups: I64 | None = None


class _RailRule(NamedTuple):
    title: str
    is_loss: bool
    rule: str


RULES = {
    "anti": _RailRule(
        "dislikes per like",
        False,
        "the anti-metric divided by the metric may rise by at most {margin}{of}",
    ),
    "coverage": _RailRule(
        "catalogue shown",
        True,
        "the share of the catalogue that anybody is shown may fall by at most {margin}{of}",
    ),
    "gini": _RailRule(
        "uneven exposure",
        False,
        "1 - Gini of how often items are shown may fall by at most {margin}{of}",
    ),
    "popularity": _RailRule(
        "item popularity",
        False,
        "the mean number of ratings of listed items may rise by at most {margin}{of}",
    ),
    "light": _RailRule(
        "light users",
        True,
        "the score of light users (those with at most the median number of ratings) may get worse "
        "by at most {margin}{of}",
    ),
}


def _guarded(
    name: str, values: GateValues, margin: MarginRule, overall: MarginRule | None
) -> _Guarded:
    if name in ("coverage", "gini"):  # what may not fall: coverage, evenness
        pair = getattr(values, name)
        even = pair if name == "coverage" else Pair(*(1 - gini for gini in pair))
        return _Guarded(pair, even.candidate - even.production + margin.of(even.production))
    if name == "light":
        assert values.light is not None
        sign = -1.0 if values.is_lower_better else 1.0
        pair = Pair(*(column[values.light] for column in values.metric))
        groups = None if values.groups is None else values.groups[values.light]
        distance = sign * (pair.candidate - _scaled(pair.production, margin, sign))
        if overall is not None:  # light users may lose what all users may, and this much more
            distance = distance + overall.of(pair.production)
        return _Guarded(pair, distance, groups)
    pair, groups = values.popularity, None
    if name == "anti":
        assert values.anti is not None
        # Per unit of the metric: a system that is judged more often has more of both.
        pair, groups = Pair(*map(per_unit, values.anti, values.metric)), values.groups
    return _Guarded(pair, pair.production + margin.of(pair.production) - pair.candidate, groups)


def _rail(
    name: str,
    values: GateValues,
    margin: MarginRule,
    alpha: float,
    overall: MarginRule | None = None,
) -> Rail:
    guard = RULES[name]
    of = " of production's value" if margin.relative else ""
    if name == "light" and overall is not None:
        of += f" beyond the margin of {overall}"
    rule = f"{guard.rule.format(margin=margin, of=of)}: its bound must lie within"
    bare = Rail(
        key=f"rail {name}",
        title=guard.title,
        rule=rule,
        outcome=INFORM,
        margin=str(margin),
        is_loss=guard.is_loss if name != "light" else not values.is_lower_better,
    )
    if name == "light" and values.light is None:
        return replace(bare, reason="how many ratings users have is not known")
    if name == "anti" and values.anti is None:
        return replace(bare, reason="nothing is disliked, or the metric has no anti-metric")
    if name == "anti" and not all(column.any() for column in values.metric):
        return replace(bare, outcome=OPEN, reason="a system lists no liked item")
    pair, distance, groups = _guarded(name, values, margin, overall)
    if not distance.size:
        return replace(bare, outcome=OPEN, reason="no user has a list of both systems")
    slack = bounds_of(distance, alpha, groups)
    candidate, production = _mean(pair.candidate), _mean(pair.production)
    change = candidate - production
    # The bounds of the change are those of the slack, seen from the limit.
    if bare.is_loss:
        limit = change - slack.value
        low, high = limit + slack.low, limit + slack.high
    else:
        limit = change + slack.value
        low, high = limit - slack.high, limit - slack.low
    inside = slack.low > 0 or (slack.se == 0 and slack.value >= 0)
    return replace(
        bare,
        outcome=PASS if inside else OPEN,
        candidate=candidate,
        production=production,
        change=change,
        low=low,
        high=high,
        limit=limit,
        slack=slack.value,
        p_beyond=slack.p_below,
    )


# Check 3: segments


def _segments(values: GateValues, settings: GateSettings, alpha: float) -> list[SegmentCheck]:
    checks, seen = [], set()
    for by, (names, code) in (values.segments or {}).items():
        for number, name in enumerate(names):
            chosen = code == number
            if (members := chosen.tobytes()) in seen:  # such as cold users: tested once
                continue
            seen.add(members)
            checks.append(_segment(by, name, chosen, settings.segment_margin, values, alpha))
    return checks


def _segment(
    by: str, name: str, chosen: Mask, margin: MarginRule, values: GateValues, alpha: float
) -> SegmentCheck:
    sign = -1.0 if values.is_lower_better else 1.0
    pair = Pair(*(column[chosen] for column in values.metric))
    groups = None if values.groups is None else values.groups[chosen]
    users = values.count(chosen)
    bare = SegmentCheck(
        key=f"segment {by}: {name}",
        title=name,
        rule=f"alarm when it is clearly worse by more than {margin}, corrected by Holm",
        outcome=INFORM,
        by=by,
        users=users,
    )
    if users < LEAST_USERS:
        return replace(bare, reason=f"{counted(users, 'user')}, fewer than {LEAST_USERS}")
    distance = sign * (pair.candidate - _scaled(pair.production, margin, sign))
    slack = bounds_of(distance, alpha, groups)
    limit = -margin.of(_mean(pair.production))
    return replace(
        bare,
        outcome=PASS,
        **measured(pair, slack, limit, sign),
        p_beyond=slack.p_below,
    )


def _with_alarms(checks: Sequence[Rail | SegmentCheck], alpha: float) -> list[Rail | SegmentCheck]:
    """Mark the rails and segments that are beyond their margin, corrected together (Holm)."""
    p = np.array([math.nan if check.p_beyond is None else check.p_beyond for check in checks])
    marked: list[Rail | SegmentCheck] = []
    for check, p_value in zip(checks, correct(p, "holm").tolist(), strict=True):
        outcome, reason = check.outcome, check.reason
        if p_value <= alpha:  # never of NaN
            outcome, reason = FAIL, "clearly beyond its margin"
        elif outcome == OPEN and not reason:
            reason = "not shown to stay within its margin"
        check = replace(check, outcome=outcome, reason=reason)
        if isinstance(check, SegmentCheck) and not math.isnan(p_value):
            check = replace(check, p_corrected=p_value)
        marked.append(check)
    return marked


def _mean(values: F64) -> float:
    return float(values.mean()) if values.size else 0.0


def _ratio(pair: Pair) -> float | None:
    base = _mean(pair.production)
    return _mean(pair.candidate) / base if base else None
