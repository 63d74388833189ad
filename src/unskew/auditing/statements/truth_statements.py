"""Statements about liking: what may be said of the truth, under which conditions, and what to do.

Without randomly shown judgments no statement about the truth is unconditional: the condition is a
part of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.reason_statements import is_popular, predicts_opinion
from unskew.auditing.statements.statement import (
    DISPLAY_SELECTS,
    DISPLAY_SWAYS,
    Kind,
    KnownTruth,
    Measured,
    Statement,
    Subjects,
    about,
    capital,
    number,
    points,
)
from unskew.report.columns import Row
from unskew.report.text import interval
from unskew.unbiased.listed_pairs import HABITS

NEEDED = (DISPLAY_SWAYS, DISPLAY_SELECTS)


def liked_more(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether judged recommendations of a are liked more often than those of b.

    Plainly, with items and users counted alike, and for every habit of rating.
    """
    limits = evidence.thresholds
    plain = evidence.liked_pair(*subjects)
    levelled = evidence.liked_pair(*subjects, levelled=True)
    return (
        plain is not None
        and levelled is not None
        and _passes(plain, evidence.critical(limits.liked_error))
        and _passes(levelled, evidence.critical(limits.levelled_error))
        and _whatever_the_habit(evidence, subjects)
    )


def _whatever_the_habit(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a stays above b however more readily people rate what they like."""
    for habit in HABITS:
        first, second = (evidence.unrated_liking(subject, habit) for subject in subjects)
        if first is not None and second is not None and first <= second:
            return False
    return True


def _passes(pair: Row, critical: float) -> bool:
    return pair.z is not None and pair.z > critical


def _better(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a is liked more than b, and b is not ahead of a."""
    return liked_more(evidence, subjects) and not evidence.ahead(*subjects[::-1])


def _liked_despite(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether judged recommendations of a are liked more, although b is ahead of a."""
    return liked_more(evidence, subjects) and evidence.ahead(*subjects[::-1])


def _better_despite(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a is liked more, b is ahead of it, and the lists of a predict opinions.

    Items that are found by their fans are liked by those who rate them, whoever gets them
    recommended. A system must tell who likes what, beyond averages, to be called better.
    """
    return _liked_despite(evidence, subjects) and predicts_opinion(evidence, subjects[:1])


def _all_pairs(evidence: Evidence) -> Iterator[Subjects]:
    yield from evidence.pairs


def _settle(evidence: Evidence, subjects: Subjects) -> str:
    """Say in a last sentence what data would settle a stated difference."""
    needed = evidence.judgments_needed(*subjects)
    if needed is None:
        return ""
    return (
        f" {capital(about(needed))} judgments of randomly chosen recommendations of the two would "
        f"detect a true difference of {number(evidence.smallest, 2)}."
    )


def _measured(pair: Row | None, critical: float, **words: object) -> Measured:
    """Return a difference with the interval that goes with its rule: corrected for all pairs."""
    assert pair is not None  # the rule
    value, se = pair.value, pair.se
    assert value is not None
    assert se is not None
    low, high = max(value - critical * se, -1.0), min(value + critical * se, 1.0)
    return Measured(value=value, interval=(low, high), words=words)


def _measure_liked(evidence: Evidence, subjects: Subjects) -> Measured:
    critical = evidence.critical(evidence.thresholds.liked_error)
    measured = _measured(evidence.liked_pair(*subjects), critical)
    assert measured.value is not None
    assert measured.interval is not None
    shown = f"{points(measured.value)} points {interval(*measured.interval, write=points)}"
    return replace(measured, words={"points": shown, "settle": _settle(evidence, subjects)})


def _is_liked_when_judged(statement: Statement, truth: KnownTruth) -> bool:
    return truth.judged_liking(*statement.subjects) > 0


def _is_better(statement: Statement, truth: KnownTruth) -> bool:
    return truth.liking(*statement.subjects) > 0


def _measure_break_even(evidence: Evidence, subjects: Subjects) -> Measured:
    critical = evidence.critical(evidence.thresholds.liked_error)
    measured = _measured(evidence.liked_pair(*subjects), critical)
    assert measured.interval is not None
    low = measured.interval[0]
    return replace(measured, value=low, words={"low": points(low)})


def _breaks_even(statement: Statement, truth: KnownTruth) -> bool:
    a, b = statement.subjects
    return truth.liking(a, b) > 0 or truth.inflation(a, b) >= (statement.value or 0.0)


# Randomly shown items


def shown_more(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether recommendations of a are liked more on randomly shown items."""
    pair = evidence.shown_pair(*subjects)
    critical = evidence.critical(evidence.thresholds.shown_error)
    return pair is not None and pair.z is not None and pair.z > critical


def _measure_shown(evidence: Evidence, subjects: Subjects) -> Measured:
    critical = evidence.critical(evidence.thresholds.shown_error)
    pair = evidence.shown_pair(*subjects)
    return _measured(pair, critical, precision=evidence.precision)


# What to do


def _unclear(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a is ahead of b and nothing says which is liked more."""
    a, b = subjects
    is_known = any(
        rule(evidence, pair) for rule in (liked_more, shown_more) for pair in ((a, b), (b, a))
    )
    return evidence.ahead(a, b) and not is_known


def _not_personal(evidence: Evidence, subjects: Subjects) -> bool:
    return _unclear(evidence, subjects) and is_popular(evidence, subjects)


def _measure_advice(evidence: Evidence, subjects: Subjects) -> Measured:
    return Measured(words={"settle": _settle(evidence, subjects)})


def _measure_unclear(evidence: Evidence, subjects: Subjects) -> Measured:
    return replace(_measure_advice(evidence, subjects), designs=(evidence.common,))


def _predicts(statement: Statement, truth: KnownTruth) -> bool:
    return truth.lead(statement.designs[0], *statement.subjects) > 0


TRUTH_KINDS = (
    Kind(
        name="better-shown",
        subjects=_all_pairs,
        holds=shown_more,
        measure=_measure_shown,
        is_true=_is_better,
    ),
    Kind(
        name="better",
        subjects=_all_pairs,
        holds=_better,
        measure=_measure_liked,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="better-despite",
        subjects=_all_pairs,
        holds=_better_despite,
        measure=_measure_liked,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="liked-despite",
        subjects=_all_pairs,
        holds=lambda evidence, pair: (
            _liked_despite(evidence, pair) and not predicts_opinion(evidence, pair[:1])
        ),
        measure=_measure_liked,
        is_true=_is_liked_when_judged,
    ),
    Kind(
        name="break-even",
        subjects=_all_pairs,
        holds=lambda evidence, pair: _better(evidence, pair) or _better_despite(evidence, pair),
        measure=_measure_break_even,
        is_true=_breaks_even,
        assumptions=(DISPLAY_SELECTS,),
    ),
    Kind(name="not-personal", subjects=_all_pairs, holds=_not_personal, measure=_measure_advice),
    Kind(
        name="liking-open",
        subjects=_all_pairs,
        holds=lambda evidence, pair: (
            not evidence.core.implicit
            and _unclear(evidence, pair)
            and not _not_personal(evidence, pair)
        ),
        measure=_measure_unclear,
    ),
    Kind(
        name="predicts-use",
        subjects=_all_pairs,
        holds=lambda evidence, pair: evidence.core.implicit and _unclear(evidence, pair),
        measure=_measure_unclear,
        is_true=_predicts,
    ),
)
"""In the order in which they are said."""
