"""The bars that a rate of false statements has to keep."""

from __future__ import annotations

from unskew.auditing.self_test.rates import Rate

AIM = 0.05
"""What the rate of false statements should not exceed."""
MOST_UPPER = 0.08
"""Where its one-sided upper end must lie."""
MOST_IN_A_KIND = 0.10
"""What the rate must not exceed in any kind of worlds with enough sayings."""
ENOUGH_SAYINGS = 30
LEAST = 100
"""In so many worlds a kind of statement must have been said."""
KEPT = "kept"
NEVER = "never stated"
TOO_FEW = "too few worlds"
BARS = (
    f"rate at most {AIM:.2f}, upper end at most {MOST_UPPER:.2f}, at most {MOST_IN_A_KIND:.2f} "
    f"in every kind of worlds with at least {ENOUGH_SAYINGS} statements of the kind"
)
"""The bars in words."""


def problems(rate: Rate) -> list[str]:
    """Return which bars a kind of statement misses; none where it keeps them all."""
    missed = []
    if rate.rate > AIM:
        missed.append("rate")
    if rate.upper > MOST_UPPER:
        missed.append("upper end")
    worst = rate.worst_of(ENOUGH_SAYINGS)
    if worst is not None and worst.rate > MOST_IN_A_KIND:
        missed.append(f"rate in {worst.world}")
    return missed


def verdict(rate: Rate, least: int = LEAST) -> str:
    """Return `kept`, `too few worlds`, or which bars are missed, in words.

    Parameters
    ----------
    rate
        How often a kind of statement is false.
    least
        In how many worlds it must have been said. With fewer, it misses the bars only if even the
        lower end of its rate is above what it should be.
    """
    if rate.worlds >= least:
        return "; ".join(problems(rate)) or KEPT
    return f"{TOO_FEW}; rate" if rate.low > AIM else TOO_FEW
