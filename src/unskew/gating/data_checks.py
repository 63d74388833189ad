"""Check 4 of a gate: the data can carry the decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unskew.arrays import Mask
from unskew.data.ratings import Ratings
from unskew.gating.checks import FEWEST, INFORM, OPEN, PASS, GateCheck, liked_share
from unskew.gating.settings import DataLimits, GateSettings
from unskew.gating.values import GateValues, LaidPair, ListSlots, bounds_of
from unskew.judging.shape import Matched


@dataclass(frozen=True, kw_only=True)
class DataCheck(GateCheck):
    """One fact about the data; candidate and production are shares."""


def check_data(
    laid: LaidPair, values: GateValues, settings: GateSettings, alpha: float
) -> list[GateCheck]:
    """Count what is wrong with the data, and how far the difference could move."""
    limits = settings.data
    return [
        _missing(laid, limits),
        _shorter(laid, limits),
        _trained(laid, limits),
        _outside(laid, limits),
        _future(laid, limits),
        _unjudged(values),
        liked_alike_check(values, settings, alpha),
    ]


def _fact(
    key: str, title: str, rule: str, shares: tuple[float, float], limit: float, reason: str
) -> DataCheck:
    worst = max(shares)
    return DataCheck(
        key=f"data {key}",
        title=title,
        rule=f"{rule}: at most {limit:.0%} of either system" if limit < 1 else f"{rule}: reported",
        outcome=OPEN if worst > limit else PASS,
        candidate=shares[0],
        production=shares[1],
        change=shares[0] - shares[1],
        limit=limit,
        reason=reason if worst > limit else "",
    )


def _of_both(laid: LaidPair, share: Callable[[Matched], float]) -> tuple[float, float]:
    return share(laid.candidate), share(laid.production)


def _missing(laid: LaidPair, limits: DataLimits) -> DataCheck:
    def share(matched: Matched) -> float:
        return float(np.mean(matched.depth[laid.tested] == 0))

    shares = _of_both(laid, share)
    reason = f"{max(shares):.1%} of the test users have no list, and score 0"
    title, rule = "users without list", "users with test ratings and without a list"
    if laid.are_several:
        reason = f"{max(shares):.1%} of the lists with test ratings are missing, and score 0"
        title, rule = "missing lists", "lists with test ratings that are missing"
    return _fact("missing", title, rule, shares, limits.missing, reason)


def _shorter(laid: LaidPair, limits: DataLimits) -> DataCheck:
    users: Mask = laid.tested & laid.in_both

    def empty(slots: ListSlots) -> float:
        filled = np.bincount(slots.owner, minlength=slots.users)[users].sum()
        return 1 - float(filled) / max(int(users.sum()) * laid.k, 1)

    shares = empty(laid.slots[0]), empty(laid.slots[1])
    gap = abs(shares[0] - shares[1])
    return DataCheck(
        key="data shorter",
        title="empty places",
        rule=f"empty places of the first {laid.k}: the two differ by at most {limits.shorter:.0%}",
        outcome=OPEN if gap > limits.shorter else PASS,
        candidate=shares[0],
        production=shares[1],
        change=shares[0] - shares[1],
        limit=limits.shorter,
        reason=(
            f"one system's lists are shorter: it leaves {gap:.1%} more of the first {laid.k} "
            "places empty"
            if gap > limits.shorter
            else ""
        ),
    )


def _trained(laid: LaidPair, limits: DataLimits) -> DataCheck:
    train = laid.judged.numbering.train
    rule = "listed items that the user rated in training"
    if train is None:
        return _unknown("trained", "training items", rule, "there are no training ratings")

    def share(matched: Matched) -> float:
        owner = laid.judged.owner if laid.are_several else None
        return matched.overlap(train, owner) / max(int(matched.depth.sum()), 1)

    shares = _of_both(laid, share)
    reason = f"{max(shares):.1%} of the listed items are in the user's training ratings"
    return _fact("trained", "training items", rule, shares, limits.trained, reason)


def _outside(laid: LaidPair, limits: DataLimits) -> DataCheck:

    def share(slots: ListSlots) -> float:
        return float(np.count_nonzero(~laid.catalogue[slots.item])) / max(slots.item.size, 1)

    shares = share(laid.slots[0]), share(laid.slots[1])
    rule = "listed items outside of the catalogue"
    reason = f"{max(shares):.1%} of the listed items are outside of the catalogue"
    fact = _fact("outside", "unknown items", rule, shares, limits.outside, reason)
    if laid.judged.items is None:  # new items are no error where no catalogue was given
        rule = "listed items that no rating knows, as no catalogue was given: reported"
        return replace(fact, rule=rule, outcome=INFORM, limit=None, reason="")
    return fact


def _future(laid: LaidPair, limits: DataLimits) -> DataCheck:
    train, occasions = laid.judged.numbering.train, laid.judged.occasions
    test = laid.judged.judgments if occasions is None else occasions.tests
    rule = "users with a training rating that is later than one of their test ratings"
    if train is None or train.time is None or test.time is None:
        return _unknown("future", "time leak", rule, "times of training and test are not known")
    share = _share_ahead(train, test)
    reason = f"{share:.1%} of the users have training ratings that are later than test ratings"
    return _fact("future", "time leak", rule, (share, share), limits.future, reason)


def _share_ahead(train: Ratings, test: Ratings) -> float:
    """Return the share of users with both whose training goes on after their first test rating."""
    assert train.time is not None
    assert test.time is not None
    users = len(test.users)
    first = np.full(users, np.iinfo(np.int64).max)
    np.minimum.at(first, test.user, test.time)
    last = np.full(users, np.iinfo(np.int64).min)
    np.maximum.at(last, train.user, train.time)
    mask = (np.diff(test.start) > 0) & (np.bincount(train.user, minlength=users) > 0)
    return float(np.mean(last[mask] > first[mask])) if mask.any() else 0.0


def _unknown(key: str, title: str, rule: str, reason: str) -> DataCheck:
    return DataCheck(key=f"data {key}", title=title, rule=rule, outcome=INFORM, reason=reason)


def _unjudged(values: GateValues) -> DataCheck:
    shares = [
        1 - float(counts.mean()) / values.k if counts.size else 1.0 for counts in values.judged
    ]
    return DataCheck(
        key="data unjudged",
        title="unjudged places",
        rule=f"places of the first {values.k} without a judged item: reported",
        outcome=INFORM,
        candidate=shares[0],
        production=shares[1],
        change=shares[0] - shares[1],
    )


def liked_alike_check(values: GateValues, settings: GateSettings, alpha: float) -> DataCheck:
    """Ask what the difference would be if the unjudged were liked as the judged ones are.

    Then a system's precision is the liked share of its judged items. If they are not liked at all,
    the difference is what was measured.
    """
    bare = DataCheck(
        key="data if-liked",
        title="if unjudged liked",
        rule=(
            "if unjudged items were liked as often as judged ones of the same system, the "
            "candidate's precision must not be clearly lower"
        ),
        outcome=INFORM,
    )
    if not values.has_dislikes:
        return replace(bare, reason="nothing is disliked: the liked share is not known")
    if min(float(counts.sum()) for counts in values.judged) < FEWEST:
        return replace(bare, reason=f"a system lists fewer than {FEWEST} judged items")
    shares = [liked_share(*pair) for pair in zip(values.liked, values.judged, strict=True)]
    margin = settings.margin
    share = margin.amount if margin is not None and margin.relative else 0.0
    slack = bounds_of(shares[0] - (1 - share) * shares[1], alpha)
    candidate, production = (float(share.mean()) for share in shares)
    limit = -share * production
    worse = slack.high < 0
    return replace(
        bare,
        outcome=OPEN if worse else PASS,
        candidate=candidate,
        production=production,
        change=candidate - production,
        low=limit + slack.low,
        high=limit + slack.high,
        limit=limit,
        reason=(
            "its judged items are liked less: if unjudged ones were liked alike, it would be worse"
            if worse
            else ""
        ),
    )
