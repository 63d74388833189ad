"""bellogin2017: the numbers that the paper prints."""

from __future__ import annotations

from unskew_studies.bellogin2017.measurements import AR, LASTFM, MOVIELENS, NETFLIX, ONE

LIKED_BY = {MOVIELENS: 32.7, LASTFM: 73.0, NETFLIX: 20.1}
"""Percent of users who like the most liked item, as printed in section 5.2."""
PRINTED = {
    (MOVIELENS, AR, "popularity"): "0.08",
    (LASTFM, AR, "popularity"): "0.35",
    (MOVIELENS, ONE, "random"): "0.0100",
    (LASTFM, ONE, "random"): "0.0100",
}
"""Precision that the text prints (section 3.3 and Eq. 5); the bars of Fig. 2 have no numbers."""
PRINTED_SIMULATED = {("popularity", 0.0): "0.0077", ("random", 0.0): "0.0100"}
"""1R precision that the text prints for simulated data (section 5.2)."""
TREC = (
    "The paper sets the judgments of 30 TREC tracks beside these curves: 87.2 % of their relevant "
    "documents are relevant to one query, and none to more than 25 of 703 (3.6 %). The most liked "
    "item is liked by 20.1 % of users in Netflix, 32.7 % in MovieLens and 73 % in Last.fm."
)
