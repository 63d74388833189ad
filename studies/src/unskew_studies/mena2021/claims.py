"""mena2021: the data, words and rules that its claims share."""

from __future__ import annotations

from unskew_studies.mena2021.measurements import RELEASED_AT_10
from unskew_studies.rules import Rule

ML, YAHOO, CM = "ml-1m", "yahoo-r3", "cm100k"
ALL, KNOWN = (ML, YAHOO, CM), (YAHOO, CM)
TABLE = (RELEASED_AT_10,)
COUNTS = "counts of the data: exact"
ROUNDED = "counts of the data, printed with one decimal"
RELEASED = "recomputed from the released values, printed with two decimals"
OWN = "our own systems on the same design: values depend on chance in training, signs do not"
ORDER = "an order, by our own systems: settings are the released ones, chance is not"
LOGIC = "follows from definitions: exact"
FOLDS = "not settled where leaving a fold out makes it otherwise"


def within(distance: float) -> Rule:
    """Return the rule that each of some values is as near to the one printed."""
    return Rule(high=distance, text=f"each within {distance:g}")


def each(words: str) -> Rule:
    """Return the rule that every τ is on its side of its bound: the least margin is above 0."""
    return Rule(low=0.0, strict=True, text=words)


SIGNS = each("every τ has its sign")
