"""How many worlds of each kind are audited for the rates that reports show."""

from __future__ import annotations

from collections.abc import Mapping

from unskew.auditing.self_test.kinds import KINDS
from unskew.auditing.self_test.records import WorldTask

EACH = 10
"""Worlds of a kind, unless a statement is said too rarely without more of them."""
MORE = {"implicit-only": 100, "rating-predictor": 110, "two-rankers": 216}
"""Where a statement is said that is said in few other kinds: that people use what is recommended,
that a system behind in score is better, and that one system leads under all designs."""
MIX: Mapping[str, int] = {kind: MORE.get(kind, EACH) for kind in KINDS}
"""By kind of worlds: how many are audited."""


def tasks_of(mix: Mapping[str, int], seed: int) -> list[WorldTask]:
    """Return the worlds of a mix: seed by seed, of all kinds that have so many.

    Parameters
    ----------
    mix
        By kind of worlds: how many.
    seed
        The seed of the first world of each kind; the others follow.

    Examples
    --------
    >>> from unskew.auditing.self_test.mix import tasks_of
    >>> [(one.kind, one.seed) for one in tasks_of({"null": 1, "tiny": 2}, 5)]
    [('null', 5), ('tiny', 5), ('tiny', 6)]
    """
    rounds = range(max(mix.values(), default=0))
    return [
        WorldTask(kind, seed + at) for at in rounds for kind, number in mix.items() if at < number
    ]
