"""Statements about liking: what may be said of the truth, under which conditions, and what to do.

Without randomly shown judgments no statement about the truth is unconditional: the condition is a
part of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.reason_statements import is_popular
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
    names,
    number,
    points,
)
from unskew.report.columns import Row
from unskew.report.text import interval
from unskew.unbiased.listed_pairs import HABITS

NEEDED = (DISPLAY_SWAYS, DISPLAY_SELECTS)


def likes(evidence: Evidence, subjects: Subjects, z: float) -> bool:
    """Tell whether the same users like the judged recommendations of a more than those of b.

    By a z, and where judged recommendations stand for both lists, and users for themselves.
    """
    pair = evidence.liked_pair(*subjects)
    return (
        not evidence.has_duplicates
        and pair is not None
        and pair.z is not None
        and pair.z > z
        and all(evidence.is_rated(system) for system in subjects)
    )


def _likes_items(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether the items that a lists are liked more than those of b by whoever rates them."""
    limits, items = evidence.thresholds, evidence.item_pair(*subjects)
    is_clear = items is not None and items.z is not None and items.z > limits.items_z
    return is_clear and likes(evidence, subjects, limits.within_beside_items)


def _whatever_the_habit(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a stays above b however more readily people rate what they like."""
    for habit in HABITS:
        first, second = (evidence.unrated_liking(subject, habit) for subject in subjects)
        if first is not None and second is not None and first <= second:
            return False
    return True


def is_better(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether two lines of evidence agree: a scores higher, and is liked more within users.

    They fail in different ways: a score follows what people were shown, liking within users does
    not; liking among judged recommendations follows who rated them, a score does not.
    """
    return evidence.ahead(*subjects) and (
        _likes_items(evidence, subjects)
        or (
            likes(evidence, subjects, evidence.thresholds.within_z)
            and _whatever_the_habit(evidence, subjects)
        )
    )


def _liked_despite(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether the same users like the recommendations of a more, although b scores higher."""
    limits, items = evidence.thresholds, evidence.item_pair(*subjects)
    return (
        evidence.ahead(*subjects[::-1])
        and likes(evidence, subjects, evidence.critical(limits.disagree_error))
        and (items is None or items.z is None or items.z > limits.items_not_below)
        and _whatever_the_habit(evidence, subjects)
    )


def _is_better_despite(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether a is liked more than b, which scores higher where popularity means nothing.

    Where popular items are liked more, the score may be right; where they are liked less, few-rated
    items may be rated by their fans alone. Where neither is so, a score that follows popularity
    tells nothing of liking, and what is said of judged recommendations does.
    """
    return (
        _liked_despite(evidence, subjects)
        and evidence.popular_liking is not None
        and _popular_sign(evidence) == 0
        and _popular_slope(evidence)[2] < evidence.thresholds.popular_most
    )


def _disagree(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether score and liking disagree, and nothing tells which of them is right."""
    return _liked_despite(evidence, subjects) and not _is_better_despite(evidence, subjects)


def _leading(evidence: Evidence) -> Iterator[Subjects]:
    yield evidence.leading()


def _is_best(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether all of the leading tier is better than every system outside it."""
    outside = evidence.outside()
    return bool(outside) and all(is_better(evidence, (a, b)) for a in subjects for b in outside)


def _measure_best(evidence: Evidence, subjects: Subjects) -> Measured:
    outside = evidence.outside()
    words = {
        "systems": names(subjects, len(subjects)),
        "others": names(outside),
    }
    return Measured(others=outside, words=words)


def _is_best_in_truth(statement: Statement, truth: KnownTruth) -> bool:
    return all(truth.liking(a, b) > 0 for a in statement.subjects for b in statement.others)


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
    """Return a difference with the interval that goes with its rule."""
    assert pair is not None  # the rule
    value, se = pair.value, pair.se
    assert value is not None
    assert se is not None
    low, high = max(value - critical * se, -1.0), min(value + critical * se, 1.0)
    return Measured(value=value, interval=(low, high), words=words)


def _measure_liked(evidence: Evidence, subjects: Subjects, critical: float) -> Measured:
    measured = _measured(evidence.liked_pair(*subjects), critical)
    assert measured.value is not None
    assert measured.interval is not None
    shown = f"{points(measured.value)} points {interval(*measured.interval, write=points)}"
    return replace(measured, words={"points": shown, "settle": _settle(evidence, subjects)})


def _measure_better(evidence: Evidence, subjects: Subjects) -> Measured:
    return _measure_liked(evidence, subjects, evidence.thresholds.within_z)


def _measure_disagree(evidence: Evidence, subjects: Subjects) -> Measured:
    critical = evidence.critical(evidence.thresholds.disagree_error)
    return _measure_liked(evidence, subjects, critical)


def _is_liked_when_judged(statement: Statement, truth: KnownTruth) -> bool:
    return truth.judged_liking(*statement.subjects) > 0


def _is_better(statement: Statement, truth: KnownTruth) -> bool:
    return truth.liking(*statement.subjects) > 0


# Popularity and liking


def _once(evidence: Evidence) -> Iterator[Subjects]:
    if evidence.popular_liking is not None:
        yield ()


def _popular_slope(evidence: Evidence) -> tuple[float, float, float]:
    """Return by how much liking rises with popularity within users, and the interval."""
    assert evidence.popular_liking is not None  # said of nobody without it
    return evidence.popular_liking.row().estimate


def _popular_sign(evidence: Evidence) -> int:
    """Return 1 or -1 where the slope is clearly above or below 0; else 0."""
    _, low, high = _popular_slope(evidence)
    return int(low > 0) - int(high < 0)


def _measure_popular_liking(evidence: Evidence, subjects: Subjects) -> Measured:
    value, low, high = _popular_slope(evidence)
    shown = f"{points(value)} points {interval(low, high, write=points)}"
    return Measured(value=value, interval=(low, high), words={"points": shown})


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
    is_known = is_better(evidence, subjects) or _liked_despite(evidence, (b, a))
    is_shown = shown_more(evidence, (a, b)) or shown_more(evidence, (b, a))
    return evidence.ahead(a, b) and not is_known and not is_shown


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
        name="best",
        subjects=_leading,
        holds=_is_best,
        measure=_measure_best,
        is_true=_is_best_in_truth,
        assumptions=NEEDED,
    ),
    Kind(
        name="better",
        subjects=_all_pairs,
        holds=is_better,
        measure=_measure_better,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="better-despite",
        subjects=_all_pairs,
        holds=_is_better_despite,
        measure=_measure_disagree,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="evidence-disagrees",
        subjects=_all_pairs,
        holds=_disagree,
        measure=_measure_disagree,
        is_true=_is_liked_when_judged,
    ),
    Kind(
        name="popular-liked",
        subjects=_once,
        holds=lambda evidence, _: _popular_sign(evidence) == 1,
        measure=_measure_popular_liking,
        is_true=lambda _, truth: truth.popular_liking() > 0,
        assumptions=NEEDED,
    ),
    Kind(
        name="popular-not-liked",
        subjects=_once,
        holds=lambda evidence, _: _popular_sign(evidence) == -1,
        measure=_measure_popular_liking,
        is_true=lambda _, truth: truth.popular_liking(rated=True) < 0,
    ),
    Kind(
        name="popular-open",
        subjects=_once,
        holds=lambda evidence, _: _popular_sign(evidence) == 0,
        measure=_measure_popular_liking,
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
