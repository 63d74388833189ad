"""`gate`: may the candidate replace production? A decision with known error rates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from unskew.arrays import Mask
from unskew.checks import checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import check_likes
from unskew.engine.files import locked
from unskew.errors import DataError, SettingError
from unskew.gating.checks import (
    FEWEST,
    INFORM,
    OPEN,
    PASS,
    GateCheck,
    check_values,
    measured,
    per_unit,
    verdict_of,
)
from unskew.gating.looks import Look, digests_of, look_at, read_log, record
from unskew.gating.result import Gate
from unskew.gating.settings import DataLimits, GateSettings
from unskew.gating.values import (
    GateValues,
    LaidPair,
    ListSlots,
    Pair,
    bounds_of,
    lay,
    metric_of,
    values_of,
)
from unskew.judging.judge import DataOptions, as_judged
from unskew.judging.judged import Judged
from unskew.judging.shape import DISLIKED
from unskew.stats.segments import segments_of

MOST_CELLS = 2_000_000
"""Users x items up to which the ladder is climbed and reference systems are trained unasked."""


@checked
def gate(
    judgments: object,
    runs: object = None,
    *,
    candidate: str,
    production: str,
    metric: str | None = None,
    margin: str | float | None = None,
    alpha: float | None = None,
    rails: Mapping[str, Any] | None = None,
    by: Sequence[str] | None = None,
    config: object = None,
    log: str | os.PathLike[str] | None = None,
    references: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[DataOptions],
) -> Gate:
    """Decide whether the candidate may replace production: `promote`, `hold` or `not settled`.

    Four checks: it is better, or not worse by more than a margin; the lead is more than being
    rated more; guard rails and groups of users show no harm; the data can carry the decision.
    Every test is one-sided at level `alpha`. To promote, all must pass (an intersection-union
    test, which needs no correction); alarms of rails and groups, which hold, are corrected by Holm.

    Parameters
    ----------
    judgments, runs, data
        Judged data (`judge`) alone; or raw data and their options as `judge` takes them: test
        ratings, ranked lists by system, `liked`, `train`, `items`, `lists` … Of users with several
        lists (``lists=("user", "date")``) the mean of their lists counts: the user is the unit.
    candidate, production
        The names of the two systems.
    metric
        The metric that decides. Default: nDCG@10.

        Or as the configuration says.
    margin
        How much worse the candidate may be, such as 0.5% of production's mean, or an amount of the
        metric. Default: it must be better.
    alpha
        One-sided level of every test. Default: 0.05.
    rails
        Margins of guard rails by name (`anti`, `coverage`, `gini`, `popularity`); None or `"off"`
        switches one off.
    by
        Groups of users: activity, popularity, time or FILE:COLUMN. Repeatable. Default: activity
        and popularity.
    config
        Thresholds: a TOML file, as unskew gate init writes it.

        Or a mapping of its settings. Arguments come before it.
    log
        A file that counts looks at the same test log; each one is tested more strictly.

        The k-th look is tested at level alpha / (k (k + 1)). The same inputs again are the same
        look.
    references
        Train reference systems on the training ratings and show them beside. Default: on small
        data.
    seed, threads
        Of reference systems; threads never change a number.

    Returns
    -------
    Gate

    References
    ----------
    Berger (Technometrics 24, 1982): intersection-union tests. Hall (JRSS B 54, 1992): bounds of a
    mean, corrected for skewness.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [u for u in range(60) for _ in "ab"], "item": ["a", "b"] * 60,
    ...         "rating": [5, 1] * 60}
    >>> runs = {"new": {u: ["a", "b"] for u in range(60)},
    ...         "old": {u: ["b", "a"] if u % 3 else ["a", "b"] for u in range(60)}}
    >>> us.gate(test, runs, candidate="new", production="old", metric="RR@2", liked=4)
    Gate(promote, new for old)
    """
    settings = _settings(config, metric, margin, alpha, rails, by)
    measure = metric_of(settings.metric)
    # A gate chooses users and metrics itself: of a paper it takes the rule alone.
    judged = replace(as_judged(judgments, runs, seed=seed, may_repeat=True, **data), paper="")
    check_likes(judged.tests, judged.relevance)
    _check_systems(judged, candidate, production)
    digests = ("", "")
    if log is not None:
        read_log(log)  # a log that cannot be used is known before any work
        digests = digests_of(judged, (candidate, production), settings.to_dict())
    laid = lay(judged, candidate, production, measure)
    if not laid.tested.any():
        raise DataError("there are no test ratings: nothing can be decided")
    values = values_of(laid, threads)
    notes = list(judged.notes)
    values = replace(values, segments=_segments(laid, settings, notes))
    steps = _ladder(judged, candidate, production, laid.k)
    means = _references(judged, settings.metric, references, seed, notes)
    with nullcontext() if log is None else locked(log):  # no two gates count the same look
        look = Look(0, settings.alpha)
        if log is not None:
            look = look_at(log, digests, settings.alpha)
        checks = check_values(values, settings, look.alpha)
        facts = check_data(laid, values, settings, look.alpha)
        verdict = verdict_of(checks, facts)
        if log is not None:
            names = {"candidate": candidate, "production": production}
            record(log, look, {"metric": settings.metric, "verdict": verdict, **names})
    return Gate(
        verdict=verdict,
        candidate=candidate,
        production=production,
        **vars(checks),
        data=tuple(facts),
        settings=settings,
        look=look,
        ladder=steps,
        references=means,
        notes=tuple(dict.fromkeys(notes)),
    )


def _settings(
    config: object,
    metric: str | None,
    margin: str | float | None,
    alpha: float | None,
    rails: Mapping[str, Any] | None,
    by: Sequence[str] | None,
) -> GateSettings:
    """Return the thresholds: the configuration's, and what is given instead."""
    settings = GateSettings.read(config)
    if metric is not None:
        settings = replace(settings, metric=metric)
    if margin is not None:
        settings = settings.with_margin(margin)
    if alpha is not None:
        settings = replace(settings, alpha=alpha)
    if rails is not None:
        settings = settings.with_rails(rails)
    return settings if by is None else replace(settings, segments=tuple(by))


def _check_systems(judged: Judged, candidate: str, production: str) -> None:
    if judged.targets is not None:
        raise SettingError(
            "the gate needs one list of all items per user, judged without targets: "
            "us.judge(test, runs, train=…)"
        )
    for name, value in (("candidate", candidate), ("production", production)):
        choose(name, value, judged.systems)
    if candidate == production:
        raise SettingError(
            f"candidate and production are both {candidate!r}: name two different systems"
        )


def _segments(
    laid: LaidPair, settings: GateSettings, notes: list[str]
) -> dict[str, tuple[tuple[str, ...], Any]]:
    """Divide the users with test ratings; note what cannot be divided."""
    segments = {}
    for by in settings.segments:
        try:
            division = segments_of(laid.people, by, judged=laid.judged)
        except DataError as problem:
            notes.append(f"no groups by {by}: {problem}")
            continue
        segments[by] = (division.names, division.code)
        notes += division.notes
    return segments


def _is_small(judged: Judged) -> bool:
    return len(judged.judgments.users) * len(judged.judgments.items) <= MOST_CELLS


def _ladder(judged: Judged, candidate: str, production: str, k: int) -> dict[str, float]:
    """Return the steps of the lead in precision, on data that are small enough."""
    if judged.train is None or judged.occasions is not None or not _is_small(judged):
        return {}
    from unskew.bias.decomposition.ladder import ladder

    pair = {name: judged.systems[name] for name in (candidate, production)}
    try:
        steps = ladder(replace(judged, systems=pair), k=k)
    except DataError:
        return {}
    names = ("lead", "counts", "averages", "choice", "opinion")
    return {name: steps.pair(candidate, production, step=name).estimate[0] for name in names}


def _references(
    judged: Judged,
    metric: str,
    references: bool | None,
    seed: int,
    notes: list[str],
) -> dict[str, float]:
    """Train reference systems and score them, where that is asked for or cheap."""
    if references and judged.train is None:
        raise SettingError("references=True needs the training ratings: give train=…")
    if judged.occasions is not None:
        if references:
            raise SettingError(
                "references=True is for one list per user: reference systems have no dates"
            )
        return {}
    if judged.train is None or references is False or not (references or _is_small(judged)):
        return {}
    from unskew.auditing.analyses import Attempts
    from unskew.auditing.lists.list_inputs import reference_lists, with_common_numbers
    from unskew.evaluation.evaluate import evaluate

    common = with_common_numbers(judged)
    implicit = not bool((judged.view.label == DISLIKED).any())
    attempts = Attempts()
    runs, _ = reference_lists(common, metric, implicit, seed, attempts)
    notes += [f"{name}: {reason}" for name, reason in attempts.failures.items()]
    if not runs:
        return {}
    lists = replace(common, systems={}).with_systems(runs)
    return evaluate(lists, metric).mean(metric)


# The data can carry the decision


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
        "empty places",
        f"empty places of the first {laid.k}: the two differ by at most {limits.shorter:.0%}",
        shares,
        limits.shorter,
        is_bad=gap > limits.shorter,
        reason=f"one system's lists are shorter: it leaves {gap:.1%} more of the first {laid.k} "
        "places empty",
    )


def _trained(laid: LaidPair, limits: DataLimits) -> GateCheck:
    train = laid.judged.numbering.train
    rule = "listed items that the user rated in training"
    if train is None:
        return _unknown("trained", "training items", rule, "there are no training ratings")
    owner = laid.judged.owner if laid.are_several else None
    shares = [
        matched.overlap(train, owner) / max(int(matched.depth.sum()), 1)
        for matched in (laid.candidate, laid.production)
    ]
    reason = f"{max(shares):.1%} of the listed items are in the user's training ratings"
    return _limited("trained", "training items", rule, shares, limits.trained, reason)


def _outside(laid: LaidPair, limits: DataLimits) -> GateCheck:
    outside = [~laid.catalogue[slots.item] for slots in laid.slots]
    shares = [float(np.count_nonzero(mask)) / max(mask.size, 1) for mask in outside]
    if laid.judged.items is None:  # new items are no error where no catalogue was given
        rule = "listed items that no rating knows, as no catalogue was given: reported"
        return _fact("outside", "unknown items", rule, shares)
    rule = "listed items outside of the catalogue"
    reason = f"{max(shares):.1%} of the listed items are outside of the catalogue"
    return _limited("outside", "unknown items", rule, shares, limits.outside, reason)


def _future(laid: LaidPair, limits: DataLimits) -> GateCheck:
    train, occasions = laid.judged.numbering.train, laid.judged.occasions
    test = laid.judged.judgments if occasions is None else occasions.tests
    rule = "users with a training rating that is later than one of their test ratings"
    if train is None or train.time is None or test.time is None:
        return _unknown("future", "time leak", rule, "times of training and test are not known")
    share = _share_ahead(train, test)
    reason = f"{share:.1%} of the users have training ratings that are later than test ratings"
    return _limited("future", "time leak", rule, (share, share), limits.future, reason)


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
    rule = f"places of the first {values.k} without a judged item: reported"
    return _fact("unjudged", "unjudged places", rule, shares)


def liked_alike_check(values: GateValues, settings: GateSettings, alpha: float) -> GateCheck:
    """Ask what the difference would be if the unjudged were liked as the judged ones are.

    Then a system's precision is the liked share of its judged items. If they are not liked at all,
    the difference is what was measured.
    """
    bare = GateCheck(
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
    shares = Pair(*map(per_unit, values.liked, values.judged))
    margin = settings.margin
    share = margin.amount if margin is not None and margin.relative else 0.0
    slack = bounds_of(shares.candidate - (1 - share) * shares.production, alpha)
    worse = slack.high < 0
    return replace(
        bare,
        outcome=OPEN if worse else PASS,
        **measured(shares, slack, -share * float(shares.production.mean())),
        reason=(
            "its judged items are liked less: if unjudged ones were liked alike, it would be worse"
            if worse
            else ""
        ),
    )
