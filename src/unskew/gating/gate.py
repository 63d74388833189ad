"""`gate`: may the candidate replace production? A decision with known error rates."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Unpack

from unskew.checks import checked, choose
from unskew.data.relevance import check_likes
from unskew.engine.files import locked
from unskew.errors import DataError, SettingError
from unskew.gating.checks import check_values, verdict_of
from unskew.gating.data_checks import check_data
from unskew.gating.looks import Look, digests_of, look_at, read_log, record
from unskew.gating.result import Gate
from unskew.gating.settings import GateSettings
from unskew.gating.values import LaidPair, lay, metric_of, values_of
from unskew.judging.judge import DataOptions, as_judged
from unskew.judging.judged import Judged
from unskew.judging.shape import DISLIKED
from unskew.stats.segments import segments_of
from unskew.stats.user_groups import group_notes, groups_of_users, rating_parts

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
    group_users: object = None,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[DataOptions],
) -> Gate:
    """Decide whether the candidate may replace production: `promote`, `hold` or `not settled`.

    Four checks: it is better, or not worse by more than a margin; the lead is more than being
    rated more: rated recommendations are also liked beyond what the same users usually like; guard
    rails and groups of users show no harm; the data can carry the decision.
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
        Margins of guard rails by name (`anti`, `coverage`, `gini`, `popularity`, `light`); None or
        `"off"` switches one off.
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
    group_users
        Users that are not independent (households, test accounts) count as one: `detected` for
        near-duplicate accounts, or FILE:COLUMN of a file of users.

        Or another form that `compare` takes. Bounds and tests are by group then.
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
    stated = groups_of_users(group_users, rating_parts(judged))
    groups = None if stated is None else stated.of(judged.users)[1]
    if log is not None:
        read_log(log)  # a log that cannot be used is known before any work
        digests = digests_of(judged, (candidate, production), settings.to_dict(), groups)
    laid = lay(judged, candidate, production, measure, groups)
    if not laid.tested.any():
        raise DataError("there are no test ratings: nothing can be decided")
    values = values_of(laid, threads)
    notes = [*judged.notes, *group_notes(rating_parts(judged), stated)]
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
        is_grouped=groups is not None,
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
