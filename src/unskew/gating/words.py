"""The words of a gate's verdict: what to do, why, and how sure, without terms of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unskew.gating.checks import (
    FAIL,
    FEWEST,
    HOLD,
    OPEN,
    PASS,
    PROMOTE,
    Better,
    GateCheck,
    PopularityCheck,
    Rail,
    SegmentCheck,
)
from unskew.gating.settings import MarginRule
from unskew.report.text import counted

_RAIL_HARM = {
    "rail anti": "per item that users like, it would show more that they dislike than you allow",
    "rail coverage": "it would show a smaller part of the catalogue than you allow",
    "rail gini": "it would concentrate on fewer items than you allow",
    "rail popularity": "it would favour popular items more than you allow",
    "rail light": "it would serve users with few ratings worse than you allow",
}
_RAIL_OPEN = {
    "rail anti": "whether it shows more disliked items per liked one than you allow is open",
    "rail coverage": "whether it shows a smaller part of the catalogue than you allow is open",
    "rail gini": "whether it concentrates on fewer items than you allow is open",
    "rail popularity": "whether it favours popular items more than you allow is open",
    "rail light": "whether it serves users with few ratings worse than you allow is open",
}


def first_lines(
    verdict: str,
    candidate: str,
    production: str,
    better: Better,
    checks: Sequence[GateCheck],
    alpha: float,
    margin: MarginRule | None,
) -> tuple[str, str, str]:
    """Return what to do, why, and how sure: three lines without terms of the field."""
    if verdict == PROMOTE:
        gain = _gain(better, margin)
        guarded = any(isinstance(check, Rail) and check.outcome == PASS for check in checks)
        ending = "; what you guard stays in bounds" if guarded else ""
        return (
            f"PROMOTE: {candidate} may replace {production}.",
            f"Why: {gain}{ending}.",
            f"How sure: of 100 rankers that do not deserve it, about {_of_100(alpha)} or fewer "
            "would pass.",
        )
    if verdict == HOLD:
        harms = [_harm(check, better) for check in checks if check.outcome == FAIL]
        return (
            f"HOLD: keep {production}; do not replace it by {candidate}.",
            f"Why: {_joined(harms)}.",
            # The test of the score and the alarms each err at alpha.
            "How sure: of 100 rankers without such harm, about "
            f"{_of_100(2 * alpha)} or fewer would look so.",
        )
    # Where a gain may come from is a question only where there is one.
    relevant = [check for check in checks if better.outcome == PASS or check.key != "popularity"]
    reasons = [_open(check, better, margin) for check in relevant if check.outcome == OPEN]
    return (
        f"NOT SETTLED: keep {production} for now; the data do not show that {candidate} may "
        "replace it.",
        f"Why: {_joined(reasons)}.",
        f"How sure: {_power(better, margin)}.",
    )


def lead_sentences(check: PopularityCheck, ladder: Mapping[str, float]) -> list[str]:
    """Return what check 2 saw, and what the ladder says where training is known."""
    parts = []
    if check.judged is not None:
        parts.append(f"are judged {check.judged:.2f} times as often")
    if check.liked is not None:
        parts.append(f"where judged, are liked {check.liked:.2f} times as often")
    if check.popularity is not None:
        parts.append(f"have {check.popularity:.2f} times as many ratings")
    texts = []
    if parts:
        texts.append(f"Against production, the candidate's items {', '.join(parts)}.")
    if check.levelled is not None and check.levelled_low is not None:
        interval = f"{check.levelled_low:+.1%} to {check.levelled_high:+.1%}"
        texts.append(
            "If each liked item counts 1 / popularity, the candidate lists "
            f"{check.levelled:+.1%} liked items ({interval})."
        )
    if ladder:
        steps = ", ".join(f"{name} {value:+.4f}" for name, value in ladder.items())
        texts.append(
            f"The lead in precision, step by step (docs: the ladder): {steps}. Counts and averages "
            "are what items that more people rate and like give to any lists; choice and opinion "
            "are who rated and liked what beyond that."
        )
    return texts


def percent(better: Better, value: float | None = None) -> str:
    """Return a change of the score in per cent of production's, or in its own unit from 0."""
    amount = better.change if value is None else value
    assert amount is not None
    if not better.production:
        return f"{amount:+.4f}".replace("-", "−")
    return f"{100 * amount / abs(better.production):+.1f} %".replace("-", "−")


def _of_100(alpha: float) -> str:
    return f"{100 * alpha:.2g}"


def _gain(better: Better, margin: MarginRule | None) -> str:
    if margin is None:
        return f"it serves users better (score {percent(better)})"
    return f"it serves users well enough (score {percent(better)}; you allow −{_allowed(margin)})"


def _allowed(margin: MarginRule) -> str:
    return f"{100 * margin.amount:g} %" if margin.relative else f"{margin.amount:g}"


def _harm(check: GateCheck, better: Better) -> str:
    if check is better:
        return f"it serves users worse (score {percent(better)})"
    if isinstance(check, SegmentCheck):
        return f"some users would be worse off ({check.by}: {check.title})"
    return _RAIL_HARM[check.key]


def _open(check: GateCheck, better: Better, margin: MarginRule | None) -> str:
    if check is better:
        if margin is None:
            return f"no clear gain for users (score {percent(better)})"
        return f"a loss of more than {_allowed(margin)} is not ruled out (score {percent(better)})"
    if check.key == "popularity":
        return "the score may come from items that are rated more, not liked more"
    return _RAIL_OPEN.get(check.key, check.reason)


def _power(better: Better, margin: MarginRule | None) -> str:
    if better.outcome == PASS:
        return "the score itself is clear; what is missing stands in the line above"
    if better.detectable == float("inf"):
        return "there are too few users for a test"
    if margin is None and better.differing < FEWEST:
        users = counted(better.differing, "user gets", "users get")
        return f"{users} another score, of {better.users:,}; it takes at least {FEWEST}"
    what = "gain" if margin is None else "change"
    smallest = percent(better, better.detectable)
    return f"with these users, a true {what} of {smallest} would show in 8 of 10 tests"


def _joined(reasons: Sequence[str]) -> str:
    """Join the first reasons; say how many more there are."""
    texts = list(dict.fromkeys(reasons))
    if len(texts) <= 2:
        return "; ".join(texts)
    return f"{'; '.join(texts[:2])}; and {len(texts) - 2} more (below)"
