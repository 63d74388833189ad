"""Statements about what a score is made of: the ladder in words that hold in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.statement import (
    Kind,
    KnownTruth,
    Measured,
    Statement,
    Subjects,
    decimals,
    signed,
    with_interval,
)
from unskew.report.columns import Row


def step(evidence: Evidence, name: str, subjects: Subjects) -> Row | None:
    """Return a step of the ladder of one system or of a pair; None where there is no ladder."""
    return evidence.step(name, *subjects)


def is_clear(part: Row | None, z: float, t: float) -> bool:
    """Tell whether a step is beyond its null, and beyond the variation over users."""
    if part is None:
        return False
    part_z, part_t = part.facts["z"], part.facts["t"]
    return part_z is not None and part_z > z and part_t is not None and part_t > t


def matches(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether lists fit who rated and liked what, beyond numbers of likes."""
    limits = evidence.thresholds
    return is_clear(step(evidence, "match", subjects), limits.match_z, limits.match_t)


def predicts_opinion(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether lists fit what people said of rated items, too, beyond averages."""
    limits = evidence.thresholds
    return matches(evidence, subjects) and is_clear(
        step(evidence, "opinion", subjects), limits.opinion_z, limits.opinion_t
    )


def ends(part: Row) -> tuple[float, float]:
    """Return the interval of a step; an endless one where there is none."""
    return (-1.0 if part.low is None else part.low, 1.0 if part.high is None else part.high)


def _led_pairs(evidence: Evidence) -> Iterator[Subjects]:
    """Yield the pairs whose first is ahead of the second, under the common design and in P@k."""
    if evidence.ladder is None:
        return
    for pair in evidence.pairs:
        gap = step(evidence, "lead", pair)
        if evidence.ahead(*pair) and gap is not None and ends(gap)[0] > 0:
            yield pair


def _systems(evidence: Evidence) -> Iterator[Subjects]:
    if evidence.ladder is not None:
        yield from ((system,) for system in evidence.order)


# Pairs


def is_popular(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a lead is one of numbers of likes: the match adds next to nothing to it."""
    match, gap = step(evidence, "match", subjects), step(evidence, "lead", subjects)
    if match is None or gap is None:
        return False
    lead, z = gap.estimate[0], match.facts["z"]
    if lead <= 0 or matches(evidence, subjects):
        return False
    limits = evidence.thresholds
    return (
        match.estimate[0] <= limits.popular_share * lead
        and ends(match)[1] <= limits.popular_bound * lead
        and not (z is not None and z > limits.match_z)
    )


def _measured(evidence: Evidence, name: str, subjects: Subjects, **words: object) -> Measured:
    """Return a step of the ladder that the rule has seen to be there."""
    part = step(evidence, name, subjects)
    assert part is not None
    return Measured(value=part.estimate[0], interval=ends(part), words=words)


def _of_step(name: str) -> Callable[[Evidence, Subjects], Measured]:
    """Return what says the value of a step."""
    return lambda evidence, subjects: _measured(evidence, name, subjects)


def _digits(part: Row) -> int:
    low, high = ends(part)
    return decimals((high - low) / 2)


def _measure_popular(evidence: Evidence, subjects: Subjects) -> Measured:
    gap, match = step(evidence, "lead", subjects), step(evidence, "match", subjects)
    assert gap is not None
    assert match is not None
    return Measured(
        value=match.estimate[0],
        interval=ends(match),
        designs=(evidence.common,),
        words={
            "lead": with_interval(gap.estimate[0], *ends(gap)),
            "dealt": signed(gap.estimate[0] - match.estimate[0], _digits(gap)),
            "precision": evidence.precision,
        },
    )


def _is_small_match(statement: Statement, truth: KnownTruth) -> bool:
    a, b = statement.subjects
    gap = truth.lead(statement.designs[0], a, b)
    return truth.match(a, b) <= 0.5 * max(gap, 0.0)


def _measure_match(evidence: Evidence, subjects: Subjects) -> Measured:
    match, gap = step(evidence, "match", subjects), step(evidence, "lead", subjects)
    assert match is not None
    assert gap is not None
    return _measured(evidence, "match", subjects, lead=signed(gap.estimate[0], _digits(match)))


def _is_matched(statement: Statement, truth: KnownTruth) -> bool:
    return truth.match(*statement.subjects) > 0


def _is_opinion(statement: Statement, truth: KnownTruth) -> bool:
    return truth.opinion(*statement.subjects) > 0


REASON_KINDS = (
    Kind(
        name="popular",
        subjects=_led_pairs,
        holds=is_popular,
        measure=_measure_popular,
        is_true=_is_small_match,
    ),
    Kind(
        name="match",
        subjects=_led_pairs,
        holds=lambda evidence, pair: (
            matches(evidence, pair) and not predicts_opinion(evidence, pair)
        ),
        measure=_measure_match,
        is_true=_is_matched,
    ),
    Kind(
        name="opinion",
        subjects=_led_pairs,
        holds=predicts_opinion,
        measure=_of_step("opinion"),
        is_true=lambda statement, truth: (
            _is_matched(statement, truth) and _is_opinion(statement, truth)
        ),
    ),
    Kind(
        name="reason-open",
        subjects=_led_pairs,
        holds=lambda evidence, pair: not matches(evidence, pair) and not is_popular(evidence, pair),
        measure=_of_step("match"),
    ),
    Kind(
        name="system-match",
        subjects=_systems,
        holds=matches,
        measure=_of_step("match"),
        is_true=_is_matched,
    ),
    Kind(
        name="system-opinion",
        subjects=_systems,
        holds=predicts_opinion,
        measure=_of_step("opinion"),
        is_true=_is_opinion,
    ),
)
"""In the order in which they are said."""
