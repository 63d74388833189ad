"""Audits of known worlds that several tests look at: each is run once."""

from functools import cache

from reliability.kinds import KINDS
from reliability.trial import run_trial
from unskew.errors import quietly


@cache
def trial(kind, seed, fresh=2):
    """Return the audit of a world, and its truth from few fresh data sets."""
    with quietly():
        return run_trial(KINDS[kind](seed), fresh=fresh)
