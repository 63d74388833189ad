"""Statements about what a score is made of: the ladder in words that hold in every world."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from unskew.auditing.statements.evidence import Evidence
from unskew.auditing.statements.statement import (
    Kind,
    KnownTruth,
    Statement,
    Subjects,
    decimals,
    names,
    signed,
    with_interval,
)
from unskew.bias.decomposition.ladder import Step
from unskew.report.text import counted

CANNOT_TELL = "Whether by taste or by what people were shown, these data cannot tell."


def step(evidence: Evidence, name: str, subjects: Subjects) -> Step | None:
    """Return a step of the ladder of one system or of a pair; None where there is no ladder."""
    return evidence.step(name, *subjects)


def is_clear(part: Step | None, z: float, t: float) -> bool:
    """Tell whether a step is beyond its null, and beyond the variation over users."""
    return (
        part is not None and part.z is not None and part.z > z and part.t is not None and part.t > t
    )


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


def ends(part: Step) -> tuple[float, float]:
    """Return the interval of a step; an endless one where there is none."""
    return (-1.0 if part.low is None else part.low, 1.0 if part.high is None else part.high)


def _digits(part: Step) -> int:
    low, high = ends(part)
    return decimals((high - low) / 2)


def _shown(part: Step) -> str:
    return with_interval(part.value, *ends(part))


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
    if match is None or gap is None or gap.value <= 0 or matches(evidence, subjects):
        return False
    limits = evidence.thresholds
    return (
        match.value <= limits.popular_share * gap.value
        and ends(match)[1] <= limits.popular_bound * gap.value
        and not (match.z is not None and match.z > limits.match_z)
    )


def _word_popular(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    gap, match = step(evidence, "lead", subjects), step(evidence, "match", subjects)
    assert gap is not None
    assert match is not None
    digits = _digits(gap)
    dealt = signed(gap.value - match.value, digits)
    return Statement(
        kind="popular",
        subjects=subjects,
        text=(
            f"{a} leads {b} by {_shown(gap)} in {evidence.precision}. Assigning the same likes "
            f"at random, with the number of likes of each item and each user kept, gives {dealt} "
            "of this lead; a match of users and items adds nothing visible."
        ),
        role="reason",
        value=match.value,
        interval=ends(match),
        designs=(evidence.common,),
    )


def _is_small_match(statement: Statement, truth: KnownTruth) -> bool:
    a, b = statement.subjects
    gap = truth.lead(statement.designs[0], a, b)
    return truth.match(a, b) <= 0.5 * max(gap, 0.0)


def _word_match(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    match, gap = step(evidence, "match", subjects), step(evidence, "lead", subjects)
    assert match is not None
    assert gap is not None
    digits = _digits(match)
    return Statement(
        kind="match",
        subjects=subjects,
        text=(
            f"The lists of {a} match users with the items they rated and liked better than those "
            f"of {b}, beyond what numbers of likes explain: {_shown(match)}, where the lead is "
            f"{signed(gap.value, digits)}. {CANNOT_TELL}"
        ),
        role="reason",
        value=match.value,
        interval=ends(match),
    )


def _word_opinion(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    opinion = step(evidence, "opinion", subjects)
    assert opinion is not None
    return Statement(
        kind="opinion",
        subjects=subjects,
        text=(
            f"The lists of {a} match users with the items they rated and liked better than those "
            f"of {b}, beyond what numbers of likes explain; among rated items they also predict "
            f"better which ones people liked, beyond averages: {_shown(opinion)}."
        ),
        role="reason",
        value=opinion.value,
        interval=ends(opinion),
    )


def _is_matched(statement: Statement, truth: KnownTruth) -> bool:
    return truth.match(*statement.subjects) > 0


def _is_opinion(statement: Statement, truth: KnownTruth) -> bool:
    return truth.opinion(*statement.subjects) > 0


def _open(evidence: Evidence, subjects: Subjects) -> bool:
    return not matches(evidence, subjects) and not is_popular(evidence, subjects)


def _word_open(evidence: Evidence, subjects: Subjects) -> Statement:
    a, b = subjects
    match = step(evidence, "match", subjects)
    assert match is not None
    return Statement(
        kind="reason-open",
        subjects=subjects,
        text=(
            f"These data cannot tell where the lead of {a} over {b} comes from: the part beyond "
            f"numbers of likes is {_shown(match)}."
        ),
        role="reason",
        value=match.value,
        interval=ends(match),
    )


# Single systems


def _word_system_match(evidence: Evidence, subjects: Subjects) -> Statement:
    match = step(evidence, "match", subjects)
    assert match is not None
    return Statement(
        kind="system-match",
        subjects=subjects,
        text=(
            f"The lists of {subjects[0]} match users with the items they rated and liked, beyond "
            f"what numbers of likes explain ({_shown(match)}). {CANNOT_TELL}"
        ),
        role="system",
        value=match.value,
        interval=ends(match),
    )


def _word_system_opinion(evidence: Evidence, subjects: Subjects) -> Statement:
    opinion = step(evidence, "opinion", subjects)
    assert opinion is not None
    return Statement(
        kind="system-opinion",
        subjects=subjects,
        text=(
            f"Among rated items, the lists of {subjects[0]} also predict which ones people "
            f"liked, beyond averages ({_shown(opinion)})."
        ),
        role="system",
        value=opinion.value,
        interval=ends(opinion),
    )


_CLEAR = "exceeds what chance and the variation over users give"

REASON_KINDS = (
    Kind(
        name="popular",
        rule=(
            "a is ahead of b; the step from averages to observed is at most a fifth of the lead, "
            "its upper end at most half of it, and it is within what chance gives"
        ),
        claims="less than half of the expected lead is a match of users and items",
        subjects=_led_pairs,
        holds=is_popular,
        word=_word_popular,
        is_true=_is_small_match,
    ),
    Kind(
        name="match",
        rule=f"a is ahead of b; the step from averages to observed {_CLEAR}",
        claims="the expected match of a is above that of b",
        subjects=_led_pairs,
        holds=lambda evidence, pair: (
            matches(evidence, pair) and not predicts_opinion(evidence, pair)
        ),
        word=_word_match,
        is_true=_is_matched,
    ),
    Kind(
        name="opinion",
        rule=f"as match; the step from choice to observed {_CLEAR}, too",
        claims="the expected match and the expected opinion of a are above those of b",
        subjects=_led_pairs,
        holds=predicts_opinion,
        word=_word_opinion,
        is_true=lambda statement, truth: (
            _is_matched(statement, truth) and _is_opinion(statement, truth)
        ),
    ),
    Kind(
        name="reason-open",
        rule="a is ahead of b; neither the rule of popular nor that of match holds",
        claims="nothing",
        subjects=_led_pairs,
        holds=_open,
        word=_word_open,
    ),
    Kind(
        name="system-match",
        rule=f"the step from averages to observed of a system {_CLEAR}",
        claims="the expected match of the system is above 0",
        subjects=_systems,
        holds=matches,
        word=_word_system_match,
        is_true=_is_matched,
    ),
    Kind(
        name="system-opinion",
        rule=f"as system-match; the step from choice to observed {_CLEAR}, too",
        claims="the expected opinion of the system is above 0",
        subjects=_systems,
        holds=predicts_opinion,
        word=_word_system_opinion,
        is_true=_is_opinion,
    ),
)
"""In the order in which they are said."""


WORTH_SAYING = 0.05
"""From this share of cold users on, the report speaks of them."""


def _once(evidence: Evidence) -> Iterator[Subjects]:
    yield ()


def _statement(kind: str, text: str, subjects: Subjects = ()) -> Statement:
    return Statement(kind=kind, subjects=subjects, text=text, role="procedure")


# Tuning


def _word_tuned(evidence: Evidence, subjects: Subjects) -> Statement:
    tried = max(tuned.tried for of_split in evidence.core.tuned for tuned in of_split.values())
    systems = list(evidence.core.tuned[0])
    text = (
        f"Tuned with {tried} settings each on a validation part of the training ratings of every "
        f"split: {names(systems, 8)}."
    )
    return _statement("tuned", text, tuple(systems))


def _at_edge(evidence: Evidence) -> list[str]:
    """Return the systems whose best settings lie on the edge of what was tried, in most splits."""
    tuned = evidence.core.tuned
    counts = {
        name: sum(bool(of_split[name].edges) for of_split in tuned if name in of_split)
        for name in (tuned[0] if tuned else {})
    }
    return [name for name, count in counts.items() if 2 * count > len(tuned)]


def _word_edge(evidence: Evidence, subjects: Subjects) -> Statement:
    edge = _at_edge(evidence)
    text = (
        f"The best settings of {names(edge)} lie on the edge of the tried grid; settings beyond "
        "it may be better."
    )
    return _statement("tuned-edge", text, tuple(edge))


def _word_untuned(evidence: Evidence, subjects: Subjects) -> Statement:
    text = "The systems were not tuned: other settings may change their order."
    return _statement("untuned", text)


# Users


def _cold_designs(evidence: Evidence) -> Iterator[Subjects]:
    for design in evidence.core.designs:
        yield (design,)


def _share_cold(evidence: Evidence, design: str) -> tuple[int, int]:
    """Return the cold judged users of a design and all its judged users, over splits."""
    row = evidence.core.cold_table().filter(design=design).row(0, named=True)
    return row["cold"], row["users"]


def _is_cold(evidence: Evidence, subjects: Subjects) -> bool:
    cold, total = _share_cold(evidence, subjects[0])
    return total > 0 and cold / total >= WORTH_SAYING


def _word_cold(evidence: Evidence, subjects: Subjects) -> Statement:
    design = subjects[0]
    cold, total = _share_cold(evidence, design)
    splits = len(evidence.core.warm[design])
    counts = f"{cold:,} of {total:,}" if splits == 1 else f"{cold / total:.0%} of the"
    text = (
        f"Under {design}, {counts} judged users have no training rating. Comparisons leave them "
        "out; their scores are reported separately."
    )
    return Statement(
        kind="cold",
        subjects=(),
        text=text,
        role="procedure",
        value=cold / total,
        designs=(design,),
    )


# Designs


def _left_out(
    reason: Literal["identical", "degenerate"],
) -> Callable[[Evidence], Iterator[Subjects]]:
    def subjects(evidence: Evidence) -> Iterator[Subjects]:
        for name, design in evidence.core.left_out.items():
            if design.reason == reason:
                yield (name,)

    return subjects


def _word_identical(evidence: Evidence, subjects: Subjects) -> Statement:
    design = evidence.core.left_out[subjects[0]]
    text = (
        f"{subjects[0]} gives the same numbers as {design.same_as}, so the two count as one design."
    )
    return Statement(
        kind="same-design", subjects=(), text=text, role="procedure", designs=(subjects[0],)
    )


def _word_degenerate(evidence: Evidence, subjects: Subjects) -> Statement:
    design = evidence.core.left_out[subjects[0]]
    text = f"{subjects[0]} is left out of all comparisons: {design.why}."
    return Statement(
        kind="degenerate-design", subjects=(), text=text, role="procedure", designs=(subjects[0],)
    )


# What the numbers are conditional on


def _word_target(evidence: Evidence, subjects: Subjects) -> Statement:
    if evidence.is_given:
        text = (
            "Intervals are for these lists on new users: there is one split, and training again "
            "is not part of them."
        )
    else:
        splits = len(evidence.core.lists)
        text = (
            "Intervals are for the systems trained again on new ratings of new users, from "
            f"{counted(splits, 'random split')}; the intervals of one report hold jointly, over "
            "all designs and pairs."
        )
    return _statement("target", text)


def _sample(evidence: Evidence) -> int | None:
    """Return how many users are judged, where a sample of them is."""
    return evidence.core.lists[0].judged if evidence.core.lists else None


def _word_sampled(evidence: Evidence, subjects: Subjects) -> Statement:
    sample = _sample(evidence)
    assert sample is not None
    text = (
        f"{sample:,} of {evidence.core.lists[0].users:,} users are judged, drawn at random; "
        "systems are trained on the ratings of all. Numbers of users count those who are judged."
    )
    return _statement("sampled", text)


def _word_implicit(evidence: Evidence, subjects: Subjects) -> Statement:
    text = (
        "No rating here says that somebody disliked an item: every recorded event counts as "
        "liked, and an item without one may be disliked or unseen."
    )
    return _statement("implicit", text)


def _word_references(evidence: Evidence, subjects: Subjects) -> Statement:
    text = "Added as references, trained on the given training ratings: "
    text += f"{names(evidence.references, 8)}."
    return _statement("references", text, evidence.references)


_COUNTED = "a fact of this run"

PROCEDURE_KINDS = (
    Kind(
        name="target",
        rule="always",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: True,
        word=_word_target,
    ),
    Kind(
        name="sampled",
        rule="a random sample of the users is judged",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: _sample(evidence) is not None,
        word=_word_sampled,
    ),
    Kind(
        name="tuned",
        rule="systems were tuned",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: any(evidence.core.tuned),
        word=_word_tuned,
    ),
    Kind(
        name="tuned-edge",
        rule="in most splits the best settings of a system lie on the edge of its grid",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: bool(_at_edge(evidence)),
        word=_word_edge,
    ),
    Kind(
        name="untuned",
        rule="systems were trained here and not tuned",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: not any(evidence.core.tuned) and not evidence.is_given,
        word=_word_untuned,
    ),
    Kind(
        name="implicit",
        rule="no rating is disliked",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: evidence.core.implicit,
        word=_word_implicit,
    ),
    Kind(
        name="cold",
        rule="at least a twentieth of the judged users of a design have no training rating",
        claims=_COUNTED,
        subjects=_cold_designs,
        holds=_is_cold,
        word=_word_cold,
    ),
    Kind(
        name="same-design",
        rule="every number of every user is that of another design",
        claims=_COUNTED,
        subjects=_left_out("identical"),
        holds=lambda evidence, subjects: True,
        word=_word_identical,
    ),
    Kind(
        name="degenerate-design",
        rule="most lists have fewer targets than the cutoff, or all systems score what chance does",
        claims=_COUNTED,
        subjects=_left_out("degenerate"),
        holds=lambda evidence, subjects: True,
        word=_word_degenerate,
    ),
    Kind(
        name="references",
        rule="reference systems were added to given lists",
        claims=_COUNTED,
        subjects=_once,
        holds=lambda evidence, subjects: bool(evidence.references),
        word=_word_references,
    ),
)
"""In the order in which they are said."""
