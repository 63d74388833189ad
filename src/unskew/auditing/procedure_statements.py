"""Statements about what was done and counted: tuning, cold users, designs that count once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from unskew.auditing.evidence import Evidence
from unskew.auditing.statement import Kind, Statement, Subjects
from unskew.auditing.wording import names
from unskew.report.text import counted

WORTH_SAYING = 0.05
"""From this share of cold users on, the report speaks of them."""


def _once(evidence: Evidence) -> Iterator[Subjects]:
    yield ()


def _statement(kind: str, text: str, subjects: Subjects = ()) -> Statement:
    return Statement(kind=kind, subjects=subjects, text=text, role="procedure")


# Tuning


def _word_tuned(evidence: Evidence, subjects: Subjects) -> Statement:
    tried = max(one.tried for of_split in evidence.core.tuned for one in of_split.values())
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
    for one in evidence.core.designs:
        yield (one,)


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
        for name, one in evidence.core.left_out.items():
            if one.reason == reason:
                yield (name,)

    return subjects


def _word_identical(evidence: Evidence, subjects: Subjects) -> Statement:
    one = evidence.core.left_out[subjects[0]]
    text = f"{subjects[0]} gives the same numbers as {one.same_as}, so the two count as one design."
    return Statement(
        kind="same-design", subjects=(), text=text, role="procedure", designs=(subjects[0],)
    )


def _word_degenerate(evidence: Evidence, subjects: Subjects) -> Statement:
    one = evidence.core.left_out[subjects[0]]
    text = f"{subjects[0]} is left out of all comparisons: {one.why}."
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
