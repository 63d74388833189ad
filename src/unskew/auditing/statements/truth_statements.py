"""Statements about liking: what may be said of the truth, under which conditions, and what to do.

Without randomly shown judgments no statement about the truth is unconditional: the condition is a
part of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.reason_statements import is_popular, predicts_opinion
from unskew.auditing.statements.statement import (
    DISPLAY_SELECTS,
    DISPLAY_SWAYS,
    Kind,
    KnownTruth,
    Statement,
    Subjects,
    about,
    capital,
    number,
    points,
    with_interval,
)
from unskew.report.estimates import Row
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


def _judgments(evidence: Evidence, subjects: Subjects) -> str:
    """Say what data would settle a stated difference."""
    needed = evidence.judgments_needed(*subjects)
    if needed is None:
        return ""
    return (
        f"{about(needed)} judgments of randomly chosen recommendations of the two would detect a "
        f"true difference of {number(evidence.smallest, 2)}"
    )


@dataclass(frozen=True)
class _Measured:
    """A difference that the rule has seen to be there."""

    value: float
    low: float
    high: float

    @property
    def interval(self) -> tuple[float, float]:
        return self.low, self.high


def _measured(pair: Row | None, critical: float) -> _Measured:
    """Return a difference with the interval that goes with its rule: corrected for all pairs."""
    assert pair is not None  # the rule
    value, se = pair.value, pair.se
    assert value is not None
    assert se is not None
    return _Measured(value, max(value - critical * se, -1.0), min(value + critical * se, 1.0))


def _liked(evidence: Evidence, subjects: Subjects) -> _Measured:
    critical = evidence.critical(evidence.thresholds.liked_error)
    return _measured(evidence.liked_pair(*subjects), critical)


def _more_often(evidence: Evidence, subjects: Subjects) -> str:
    pair = _liked(evidence, subjects)
    a, b = subjects
    return (
        f"when judged, recommendations of {a} are liked {points(pair.value)} points "
        f"[{points(pair.low)}, {points(pair.high)}] more often than those of {b}"
    )


def _word_better(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    pair = _liked(evidence, subjects)
    behind = evidence.ahead(b, a)
    opening = f"{b} scores higher, but {_more_often(evidence, subjects)}" if behind else ""
    opening = opening or _more_often(evidence, subjects)
    text = (
        f"{capital(opening, subjects)}. Treat {a} as better than {b}, unless display sways ratings "
        f"or those who rate an item like it more than others would."
    )
    settle = _judgments(evidence, subjects)
    return Statement(
        kind="better-despite" if behind else "better",
        subjects=subjects,
        text=f"{text} {capital(settle)}." if settle else text,
        role="next",
        value=pair.value,
        interval=pair.interval,
        assumptions=NEEDED,
    )


def _word_liked_despite(evidence: Evidence, subjects: Subjects) -> Statement:
    b = subjects[1]
    pair = _liked(evidence, subjects)
    text = (
        f"{b} scores higher, but {_more_often(evidence, subjects)}. Whether its items are better, "
        "or are rated by those who like them, these data cannot tell."
    )
    settle = _judgments(evidence, subjects)
    return Statement(
        kind="liked-despite",
        subjects=subjects,
        text=f"{text} {capital(settle)}." if settle else text,
        role="next",
        value=pair.value,
        interval=pair.interval,
    )


def _is_liked_when_judged(statement: Statement, truth: KnownTruth) -> bool:
    return truth.judged_liking(*statement.subjects) > 0


def _is_better(statement: Statement, truth: KnownTruth) -> bool:
    return truth.liking(*statement.subjects) > 0


def _word_break_even(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    pair = _liked(evidence, subjects)
    return Statement(
        kind="break-even",
        subjects=subjects,
        text=(
            f"The conclusion that users like {a} more than {b} would be overturned if display "
            f"inflates ratings of the recommendations of {a} by {points(pair.low)} points or "
            f"more beyond those of {b}."
        ),
        role="pair",
        value=pair.low,
        interval=pair.interval,
        assumptions=(DISPLAY_SELECTS,),
    )


def _breaks_even(statement: Statement, truth: KnownTruth) -> bool:
    a, b = statement.subjects
    return truth.liking(a, b) > 0 or truth.inflation(a, b) >= (statement.value or 0.0)


# Randomly shown items


def shown_more(evidence: Evidence, subjects: Subjects) -> bool:
    """Tell whether recommendations of a are liked more on randomly shown items."""
    pair = evidence.shown_pair(*subjects)
    critical = evidence.critical(evidence.thresholds.shown_error)
    return pair is not None and pair.z is not None and pair.z > critical


def _word_shown(evidence: Evidence, subjects: Subjects) -> Statement:
    critical = evidence.critical(evidence.thresholds.shown_error)
    pair = _measured(evidence.shown_pair(*subjects), critical)
    a, b = subjects
    return Statement(
        kind="better-shown",
        subjects=subjects,
        text=(
            f"On randomly shown items, the recommendations of {a} are liked more than those of "
            f"{b}: {with_interval(pair.value, pair.low, pair.high)} in true {evidence.precision}."
        ),
        role="next",
        value=pair.value,
        interval=pair.interval,
    )


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


def _word_not_personal(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    settle = _judgments(evidence, subjects)
    text = (
        f"{a} may still be better than {b} if those items are better. Do not claim "
        "personalisation; test on randomly shown items."
    )
    return Statement(
        kind="not-personal",
        subjects=subjects,
        text=f"{text} {capital(settle)}." if settle else text,
        role="next",
    )


def _word_unclear(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    settle = _judgments(evidence, subjects)
    if evidence.core.implicit:
        text = f"Unused may mean unseen: {a} predicts use better than {b}; an A/B test shows "
        text += "preference."
    else:
        text = f"Whether people like the recommendations of {a} more than those of {b} cannot be "
        text += "told from these data."
    return Statement(
        kind="predicts-use" if evidence.core.implicit else "liking-open",
        subjects=subjects,
        text=f"{text} {capital(settle)}." if settle else text,
        role="next",
        designs=(evidence.common,),
    )


def _predicts(statement: Statement, truth: KnownTruth) -> bool:
    return truth.lead(statement.designs[0], *statement.subjects) > 0


_LIKED_RULE = (
    "judged recommendations of a are liked more often than those of b, plainly and with items and "
    "users counted alike, both corrected for all pairs, and for every habit of rating"
)

TRUTH_KINDS = (
    Kind(
        name="better-shown",
        rule="randomly shown items place a above b, corrected for all pairs",
        claims="the recommendations of a are truly liked more than those of b",
        subjects=_all_pairs,
        holds=shown_more,
        word=_word_shown,
        is_true=_is_better,
    ),
    Kind(
        name="better",
        rule=f"b is not ahead of a; {_LIKED_RULE}",
        claims="the recommendations of a are truly liked more than those of b",
        subjects=_all_pairs,
        holds=_better,
        word=_word_better,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="better-despite",
        rule=f"b is ahead of a; {_LIKED_RULE}; the lists of a predict opinions (system-opinion)",
        claims="the recommendations of a are truly liked more than those of b",
        subjects=_all_pairs,
        holds=_better_despite,
        word=_word_better,
        is_true=_is_better,
        assumptions=NEEDED,
    ),
    Kind(
        name="liked-despite",
        rule=f"b is ahead of a; {_LIKED_RULE}; the lists of a do not predict opinions",
        claims="judged recommendations of a are expected to be recorded as liked more often",
        subjects=_all_pairs,
        holds=lambda evidence, pair: (
            _liked_despite(evidence, pair) and not predicts_opinion(evidence, pair[:1])
        ),
        word=_word_liked_despite,
        is_true=_is_liked_when_judged,
    ),
    Kind(
        name="break-even",
        rule="as better or better-despite",
        claims="a is truly liked more, unless display inflates its liking by this much",
        subjects=_all_pairs,
        holds=lambda evidence, pair: _better(evidence, pair) or _better_despite(evidence, pair),
        word=_word_break_even,
        is_true=_breaks_even,
        assumptions=(DISPLAY_SELECTS,),
    ),
    Kind(
        name="not-personal",
        rule="as popular; nothing says which of the two is liked more",
        claims="advice that follows from popular",
        subjects=_all_pairs,
        holds=_not_personal,
        word=_word_not_personal,
    ),
    Kind(
        name="liking-open",
        rule="a is ahead of b; nothing says which is liked more",
        claims="nothing",
        subjects=_all_pairs,
        holds=lambda evidence, pair: (
            not evidence.core.implicit
            and _unclear(evidence, pair)
            and not _not_personal(evidence, pair)
        ),
        word=_word_unclear,
    ),
    Kind(
        name="predicts-use",
        rule="only uses are recorded; a is ahead of b",
        claims="a is expected to score above b",
        subjects=_all_pairs,
        holds=lambda evidence, pair: evidence.core.implicit and _unclear(evidence, pair),
        word=_word_unclear,
        is_true=_predicts,
    ),
)
"""In the order in which they are said."""
