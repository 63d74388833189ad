"""`check_data`: can the data carry the decision? Counts, and how far the change could move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unskew.arrays import Mask
from unskew.data.ratings import Ratings
from unskew.gating.bounds import bounds_of
from unskew.gating.checks import (
    FEWEST,
    INFORM,
    OPEN,
    PASS,
    GateCheck,
    liked_above_usual,
    measured,
    per_unit,
)
from unskew.gating.settings import DataLimits, GateSettings
from unskew.gating.values import ENOUGH, GateValues, LaidPair, ListSlots


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
        *value_checks(values, settings, alpha),
    ]


def _fact(
    key: str,
    title: str,
    rule: str,
    shares: Sequence[float],
    limit: float | None = None,
    *,
    is_bad: bool = False,
    reason: str = "",
) -> GateCheck:
    """Return a fact; without a limit it is reported, else it passes or, with the reason, not."""
    return GateCheck(
        key=f"data {key}",
        title=title,
        rule=rule,
        outcome=INFORM if limit is None else OPEN if is_bad else PASS,
        candidate=shares[0],
        production=shares[1],
        change=shares[0] - shares[1],
        limit=limit,
        reason=reason if is_bad else "",
    )


def _allowed(name: str) -> str:
    """Name the setting that lets more of it pass."""
    return f" in the configuration ([data] {name})"


def _limited(
    key: str, title: str, rule: str, shares: Sequence[float], limit: float, reason: str
) -> GateCheck:
    """Return a fact of which either system may have so much."""
    rule = f"{rule}: at most {limit:.0%} of either system" if limit < 1 else f"{rule}: reported"
    return _fact(key, title, rule, shares, limit, is_bad=max(shares) > limit, reason=reason)


def _missing(laid: LaidPair, limits: DataLimits) -> GateCheck:
    systems = laid.candidate, laid.production
    shares = [float(np.mean(matched.depth[laid.tested] == 0)) for matched in systems]
    reason = f"{max(shares):.1%} of the test users have no list, and score 0"
    title, rule = "users without list", "users with test ratings and without a list"
    if laid.are_several:
        reason = f"{max(shares):.1%} of the lists with test ratings are missing, and score 0"
        title, rule = "missing lists", "lists with test ratings that are missing"
    return _limited("missing", title, rule, shares, limits.missing, reason)


def _shorter(laid: LaidPair, limits: DataLimits) -> GateCheck:
    users: Mask = laid.tested & laid.in_both

    def empty(slots: ListSlots) -> float:
        filled = np.bincount(slots.owner, minlength=slots.users)[users].sum()
        return 1 - float(filled) / max(int(users.sum()) * laid.k, 1)

    shares = empty(laid.slots[0]), empty(laid.slots[1])
    gap = abs(shares[0] - shares[1])
    return _fact(
        "shorter",
        "empty ranks",
        f"empty ranks of the first {laid.k}: the two differ by at most {limits.shorter:.0%}",
        shares,
        limits.shorter,
        is_bad=gap > limits.shorter,
        reason=f"one system's lists are shorter: it leaves {gap:.1%} more of the first {laid.k} "
        f"ranks empty; compare lists of the same length, or allow it{_allowed('shorter')}",
    )


def _trained(laid: LaidPair, limits: DataLimits) -> GateCheck:
    train = laid.judged.numbering.train
    rule = "listed items that the user rated in training"
    if train is None:
        return _unknown("trained", "rated in training", rule, "there are no training ratings")
    owner = laid.judged.owner if laid.are_several else None
    shares = [
        matched.overlap(train, owner) / max(int(matched.depth.sum()), 1)
        for matched in (laid.candidate, laid.production)
    ]
    reason = (
        f"{max(shares):.1%} of the listed items are in the user's training ratings; leave them out "
        f"of both systems' lists, or allow them{_allowed('trained')}"
    )
    return _limited("trained", "rated in training", rule, shares, limits.trained, reason)


def _outside(laid: LaidPair, limits: DataLimits) -> GateCheck:
    outside = [~laid.catalogue[slots.item] for slots in laid.slots]
    shares = [float(np.count_nonzero(mask)) / max(mask.size, 1) for mask in outside]
    if laid.judged.items is None:  # new items are no error where no catalogue was given
        rule = "listed items that no rating knows, as no catalogue was given: reported"
        return _fact("outside", "unknown items", rule, shares)
    rule = "listed items outside of the catalogue"
    reason = (
        f"{max(shares):.1%} of the listed items are outside of the catalogue; leave them out, add "
        f"them to the catalogue, or allow them{_allowed('outside')}"
    )
    return _limited("outside", "unknown items", rule, shares, limits.outside, reason)


def _future(laid: LaidPair, limits: DataLimits) -> GateCheck:
    train, occasions = laid.judged.numbering.train, laid.judged.occasions
    test = laid.judged.judgments if occasions is None else occasions.tests
    rule = "users with a training rating that is later than one of their test ratings"
    if train is None or train.time is None or test.time is None:
        return _unknown(
            "future", "training is later", rule, "times of training and test are not known"
        )
    share = _share_ahead(train, test)
    reason = (
        f"{share:.1%} of the users have training ratings that are later than test ratings; split "
        f"by time, or allow it{_allowed('future')}"
    )
    return _limited("future", "training is later", rule, (share, share), limits.future, reason)


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


def _unknown(key: str, title: str, rule: str, reason: str) -> GateCheck:
    return GateCheck(key=f"data {key}", title=title, rule=rule, outcome=INFORM, reason=reason)


def _unjudged(values: GateValues) -> GateCheck:
    shares = [
        1 - float(counts.mean()) / values.k if counts.size else 1.0 for counts in values.judged
    ]
    rule = f"recommendations (the first {values.k}) that the user did not rate: reported"
    return _fact("unjudged", "not rated by user", rule, shares)


def value_checks(values: GateValues, settings: GateSettings, alpha: float) -> list[GateCheck]:
    """Ask what recommendations that users did not rate could change."""
    return [
        unrated_check(values, settings),
        averages_check(values, settings),
        liked_alike_check(values, settings, alpha),
    ]


def unrated_check(values: GateValues, settings: GateSettings) -> GateCheck:
    """Hold the share of recommendations that nobody has rated against production's."""
    limit, title = settings.data.unrated, "items never rated"
    rule = (
        "recommended items that nobody has rated, in test or training: the candidate's share is at "
        f"most {100 * limit:g} points above production's"
    )
    if values.unrated is None:
        reason = (
            "there are too few test ratings to tell which items nobody has rated: half of the "
            f"items have fewer than {ENOUGH}; training ratings (--train) would tell"
        )
        return _unknown("unrated", title, rule, reason)
    candidate, production = values.unrated
    reason = (
        f"{candidate:.1%} of the candidate's recommendations are items that nobody has rated "
        f"(production: {production:.1%}), so these data cannot show whether users like them; "
        f"collect ratings of them first, or allow more{_allowed('unrated')}"
    )
    is_bad = candidate - production > limit
    return _fact("unrated", title, rule, values.unrated, limit, is_bad=is_bad, reason=reason)


def averages_check(values: GateValues, settings: GateSettings) -> GateCheck:
    """Ask for the sign of the change if unrated recommendations were liked as items are on average.

    Where the user rated the item, the rating counts; else the average of the item over all users.
    """
    margin, share = settings.margin, settings.data.averages
    if margin is not None and margin.relative:
        share = max(share, margin.amount)
    title = "if liked as average"
    rule = (
        "if each recommendation that the user did not rate were liked as often as its item is on "
        f"average, the candidate's liked share may be lower by at most {share:.0%} of production's"
    )
    if values.filled is None or not values.filled.candidate.size:
        return _unknown("averages", title, rule, "nothing is disliked: no item has an average")
    shares = [float(column.mean()) for column in values.filled]
    limit = share * shares[1]
    reason = (
        "if each recommendation that the user did not rate were liked as often as its item is on "
        f"average, users would like {shares[0]:.1%} of the candidate's recommendations and "
        f"{shares[1]:.1%} of production's; more ratings would tell, or allow it"
        f"{_allowed('averages')}"
    )
    is_bad = shares[1] - shares[0] > limit
    return _fact("averages", title, rule, shares, -limit, is_bad=is_bad, reason=reason)


def liked_alike_check(values: GateValues, settings: GateSettings, alpha: float) -> GateCheck:
    """Ask what the change would be if users liked the unrated as they like rated recommendations.

    Then a system's precision is the liked share of its rated recommendations, compared with what
    the same users like of all that they rate. If the unrated are not liked at all, the change is
    what was measured.
    """
    bare = GateCheck(
        key="data if-liked",
        title="if liked alike",
        rule=(
            "if unrated recommendations were liked as often as rated ones of the same system, the "
            "candidate's must not be clearly liked less, compared with what their users like of "
            "all that they rate"
        ),
        outcome=INFORM,
    )
    if not values.has_dislikes:
        return replace(bare, reason="nothing is disliked: the liked share is not known")
    if min(float(counts.sum()) for counts in values.judged) < FEWEST:
        return replace(bare, reason=f"fewer than {FEWEST} recommendations of a system are rated")
    above = liked_above_usual(values)
    margin = settings.margin
    share = margin.amount if margin is not None and margin.relative else 0.0
    allowed = share * per_unit(values.liked.production, values.judged.production)
    slack = bounds_of(above.candidate - above.production + allowed, alpha, values.groups)
    worse = slack.high < 0
    return replace(
        bare,
        outcome=OPEN if worse else PASS,
        **measured(above, slack, -float(allowed.mean())),
        reason=(
            "its rated recommendations are liked less: if unrated ones were liked alike, it would "
            "be worse"
            if worse
            else ""
        ),
    )
