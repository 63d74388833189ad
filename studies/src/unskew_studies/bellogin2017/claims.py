"""bellogin2017: the words and rules that its claims share."""

from __future__ import annotations

from unskew_studies.bellogin2017.measurements import LASTFM, MOVIELENS
from unskew_studies.rules import Rule

ML, LFM = (MOVIELENS,), (LASTFM,)
BOTH = (MOVIELENS, LASTFM)

ORDINAL = "only the order is asked for: the paper gives no settings of its systems"
EXACT = "a count, or a property that holds without any chance"
CHANCE = "three standard errors of so many lists"
WITHIN_3 = Rule(high=3, text="within 3 standard errors")
SAME = Rule(0.9, 1.1, text="a ratio of 1 ± 0.1")
NO_LOWER = Rule(low=1, text="a ratio of at least 1")
HIGHER = Rule(low=1, strict=True, text="a ratio above 1")

AS_PRINTED = Rule(-0.5, 0.5, text="within 0.5 points of what is printed")
