"""valcarce2018: the data, files and words that its claims share."""

from __future__ import annotations

from unskew_studies.valcarce2018.measurements import pvalues_file, results_file
from unskew_studies.valcarce2018.printed import SETS

ML, LT, BA = SETS
ALL = tuple(SETS)
RESULTS, PVALUES = (results_file(ML),), (pvalues_file(ML),)
OTHER_RESULTS = (results_file(LT), results_file(BA))
ALL_RESULTS, ALL_PVALUES = tuple(map(results_file, ALL)), tuple(map(pvalues_file, ALL))

TWO_DECIMALS = "follows from released values, which are printed to two decimals"
DP_PRINTED = (
    "printed to one decimal, in places rounded twice (1.846 as 1.9); the difference is judged"
)
ORDINAL = "an order that follows from released values"
OPEN = "the settings of the paper's systems are not published, so ours need not order alike"
