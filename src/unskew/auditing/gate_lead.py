"""What the lead of a candidate is made of, in sentences of the report."""

from __future__ import annotations

from unskew.auditing.gate_facts import GateFacts


def lead_sentences(gate: GateFacts) -> list[str]:
    """Return what check 2 saw, and what the ladder says where training is known."""
    one = gate.popularity
    parts = []
    if one.judged is not None:
        parts.append(f"are judged {one.judged:.2f} times as often")
    if one.liked is not None:
        parts.append(f"where judged, are liked {one.liked:.2f} times as often")
    if one.popularity is not None:
        parts.append(f"have {one.popularity:.2f} times as many ratings")
    texts = []
    if parts:
        texts.append(f"Against production, the candidate's items {', '.join(parts)}.")
    if one.levelled is not None and one.levelled_low is not None:
        ends = f"{one.levelled_low:+.1%} to {one.levelled_high:+.1%}"
        texts.append(
            "If each liked item counts 1 / popularity, the candidate lists "
            f"{one.levelled:+.1%} liked items ({ends})."
        )
    if gate.ladder:
        steps = ", ".join(f"{name} {value:+.4f}" for name, value in gate.ladder.items())
        texts.append(
            f"The lead in precision, step by step (docs: the ladder): {steps}. Counts and averages "
            "are what items that more people rate and like give to any lists; choice and opinion "
            "are who rated and liked what beyond that."
        )
    return texts
