"""From statements in known worlds to rates: how often each kind is said, and how often false."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.auditing.page.statement_blocks import Rate, WorldRate
from unskew.data.summary import effective_size
from unskew.stats.special import incomplete_beta

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Count:
    """Statements of one kind in one world."""

    kind: str
    world: str
    """The kind of world."""
    seed: int
    sayings: int
    false: int
    is_broken: bool = False
    """Whether a condition of the statements does not hold in this world."""


def rate_of(kind: str, counts: Sequence[Count], worlds_run: Mapping[str, int]) -> Rate | None:
    """Return how often a kind of statement is false; None if it was never said.

    The mean over the worlds in which it is said of the share of its sayings that are false. Each
    kind of worlds has the same weight, however many of them were run. The interval is that of a
    share of as many worlds as the mean is worth.

    Parameters
    ----------
    kind
        The kind of statement.
    counts
        What was said in each world.
    worlds_run
        By kind of worlds: how many were audited.
    """
    kept = [one for one in counts if one.kind == kind and one.sayings and not one.is_broken]
    broken = [one for one in counts if one.kind == kind and one.sayings and one.is_broken]
    by_world = _by_world(kept)
    if not by_world:
        return None
    weight = np.array([1 / worlds_run[one.world] for one in kept])
    share = np.array([one.false / one.sayings for one in kept])
    rate = min(float(weight @ share / weight.sum()), 1.0)
    worth = effective_size(weight)
    return Rate(
        kind=kind,
        worlds=sum(one.worlds for one in by_world),
        sayings=sum(one.sayings for one in by_world),
        rate=rate,
        low=_end(rate, worth, (1 - LEVEL) / 2, upper=False),
        high=_end(rate, worth, (1 + LEVEL) / 2, upper=True),
        upper=_end(rate, worth, LEVEL, upper=True),
        by_world=by_world,
        broken=_by_world(broken),
    )


def _by_world(counts: Iterable[Count]) -> tuple[WorldRate, ...]:
    groups: dict[str, list[Count]] = {}
    for one in counts:
        groups.setdefault(one.world, []).append(one)
    rates = [
        WorldRate(
            world=world,
            worlds=len(several),
            sayings=sum(one.sayings for one in several),
            rate=float(np.mean([one.false / one.sayings for one in several])),
        )
        for world, several in groups.items()
    ]
    return tuple(sorted(rates, key=lambda one: (-one.rate, one.world)))


def _end(rate: float, worlds: float, probability: float, *, upper: bool) -> float:
    """Return an end of Clopper and Pearson's interval, for shares of any size.

    Shares within a world vary less than coins of the same mean: the interval is a safe one.
    """
    false = rate * worlds
    if upper:
        return 1.0 if rate >= 1 else _beta_quantile(probability, false + 1, worlds - false)
    return 0.0 if rate <= 0 else _beta_quantile(probability, false, worlds - false + 1)


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Return where a beta distribution has this probability below, by halving."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        below = float(incomplete_beta(middle, 1 - middle, a, b))
        low, high = (middle, high) if below < probability else (low, middle)
    return (low + high) / 2
