"""What other libraries compute, as measured, and the options with which unskew computes the same.

Every value in `BATCHES` was computed by the library itself, in the version that is named, on the
fixture below: four lists are judged, one user has judgments but no list (u5), one a list but no
judgments (u6), one no liked item (u3), one a list shorter than the larger cutoff (u2), one more
liked items than fit above it (u4). `docs/conventions.md` tells the same in a table.

Not expressed, because no option of ours is the same:

- ranx's bpref: users after one without relevant items get 0 (see the test of it below).
- RecPack's HitK: hits per user, k x P@k and no rate (tested below as such).
- Cornac's NCRR (normalised cumulative reciprocal rank): we do not have it.
- Cornac's MAP: divides by the liked items *found*, and ties take the worst rank of their group;
  through ranking_eval it, and MRR, rank the whole catalogue, so that there are no short lists.
- recommenders' r_precision_at_k: NaN, and left out of the mean, for a user with a hit above k but
  below rank R.
"""

import math
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pytest

import unskew as us
from shared import ROOT
from shared.cases import as_ratings

JUDGMENTS = {
    "u1": {1: 5, 2: 4, 3: 4, 4: 2, 5: 5, 6: 1},
    "u2": {1: 4, 7: 3, 8: 2},
    "u3": {2: 3, 9: 1},
    "u4": {3: 5, 4: 4, 5: 4, 6: 4, 7: 5, 8: 4, 10: 5},
    "u5": {1: 5, 2: 2},
}
LISTS = {
    "u1": [4, 1, 11, 5, 12, 13, 2, 14],
    "u2": [7, 11, 1],
    "u3": [2, 11, 12, 13, 14],
    "u4": [3, 4, 5, 9, 6, 11, 7],
    "u6": [1, 2, 3],
}
LIKED = {
    user: {item: rating for item, rating in judged.items() if rating >= 4}
    for user, judged in JUDGMENTS.items()
    if max(judged.values()) >= 4
}
JUDGED = {"all": JUDGMENTS, "liked": LIKED}

BURGES_LIKED = {1: 0, 2: 0, 3: 0, 4: 15, 5: 31}  # 2^rating - 1, and nothing below the level
GDEVAL = {1: 0, 2: 1, 3: 3, 4: 7, 5: 15}  # 2^grade - 1, with grade = rating - 1


@dataclass(frozen=True, eq=False)
class Batch:
    """What one library made of the fixture, and our settings that make the same of it."""

    peer: str
    version: str
    how: str
    """How the library was given the judgments."""
    judged: str
    """Which judgments we take: `all`, or only those that are `liked`."""
    gain: str | Mapping
    users: str
    rows: Mapping
    """The library's name of a metric: our name, and the library's mean."""
    undefined: str = "zero"
    tolerance: float = 1e-9


BATCHES = [
    Batch(
        "pytrec_eval-terrier",
        "0.5.11",
        "grades are ratings, relevance_level=4",
        judged="all",
        gain="rating",
        users="both",
        rows={
            "P_5": ("P@5", 0.35000000000000003),
            "P_3": ("P@3", 0.41666666666666663),
            "recall_5": ("Recall@5", 0.5178571428571428),
            "recall_3": ("Recall@3", 0.41964285714285715),
            "map_cut_5": ("AP@5", 0.28154761904761905),
            "map_cut_3": ("AP@3", 0.22172619047619047),
            "map": ("AP", 0.333843537414966),
            "ndcg_cut_5": ("nDCG@5", 0.7310898894171627),
            "ndcg_cut_3": ("nDCG@3", 0.7382752063831728),
            "ndcg": ("nDCG", 0.7448755531526932),
            "recip_rank": ("RR", 0.4583333333333333),
            "success_5": ("HitRate@5", 0.75),
            "success_3": ("HitRate@3", 0.75),
            "bpref": ("bpref", 0.2723214285714286),
            "infAP": ("infAP(pool=judged)", 0.33384423340114266),
            "Rprec": ("Rprec", 0.3035714285714286),
            "set_P": ("set_P", 0.35565476190476186),
            "set_recall": ("set_recall", 0.6160714285714286),
        },
    ),
    Batch(
        "pytrec_eval-terrier",
        "0.5.11",
        "grades 0 and 1",
        judged="all",
        gain="binary",
        users="both",
        rows={
            "P_5": ("P@5", 0.35000000000000003),
            "P_3": ("P@3", 0.41666666666666663),
            "recall_5": ("Recall@5", 0.5178571428571428),
            "recall_3": ("Recall@3", 0.41964285714285715),
            "map_cut_5": ("AP@5", 0.28154761904761905),
            "map_cut_3": ("AP@3", 0.22172619047619047),
            "map": ("AP", 0.333843537414966),
            "ndcg_cut_5": ("nDCG@5", 0.4420903937922853),
            "ndcg_cut_3": ("nDCG@3", 0.4490204777414663),
            "ndcg": ("nDCG", 0.4570652225093043),
            "recip_rank": ("RR", 0.4583333333333333),
            "success_5": ("HitRate@5", 0.75),
            "success_3": ("HitRate@3", 0.75),
            "bpref": ("bpref", 0.2723214285714286),
            "infAP": ("infAP(pool=judged)", 0.33384423340114266),
            "Rprec": ("Rprec", 0.3035714285714286),
            "set_P": ("set_P", 0.35565476190476186),
            "set_recall": ("set_recall", 0.6160714285714286),
        },
    ),
    Batch(
        "pytrec_eval-terrier",
        "0.5.11",
        "liked items only, grade 1",
        judged="liked",
        gain="binary",
        users="both",
        rows={
            "P_5": ("P@5", 0.46666666666666673),
            "P_3": ("P@3", 0.5555555555555555),
            "recall_5": ("Recall@5", 0.6904761904761904),
            "recall_3": ("Recall@3", 0.5595238095238095),
            "map_cut_5": ("AP@5", 0.3753968253968254),
            "map_cut_3": ("AP@3", 0.29563492063492064),
            "map": ("AP", 0.44512471655328795),
            "ndcg_cut_5": ("nDCG@5", 0.5894538583897138),
            "ndcg_cut_3": ("nDCG@3", 0.598693970321955),
            "ndcg": ("nDCG", 0.6094202966790724),
            "recip_rank": ("RR", 0.611111111111111),
            "success_5": ("HitRate@5", 1.0),
            "success_3": ("HitRate@3", 1.0),
            "bpref": ("bpref", 0.8214285714285715),
            "infAP": ("infAP(pool=judged)", 0.4451238290943138),
            "Rprec": ("Rprec", 0.4047619047619048),
            "set_P": ("set_P", 0.47420634920634913),
            "set_recall": ("set_recall", 0.8214285714285715),
        },
    ),
    Batch(
        "pytrec_eval-terrier",
        "0.5.11",
        "liked items only, grades are ratings",
        judged="liked",
        gain="rating",
        users="both",
        rows={
            "ndcg_cut_5": ("nDCG@5", 0.5806570290568072),
            "ndcg_cut_3": ("nDCG@3", 0.568172098289185),
            "ndcg": ("nDCG", 0.6075615962353815),
        },
    ),
    Batch(
        "pytrec_eval-terrier",
        "0.5.11",
        "grades are ratings, relevance_level=4, judged_docs_only_flag=True",
        judged="all",
        gain="rating",
        users="both",
        rows={
            "P_5": ("condensed-P(per=k)@5", 0.45),
            "bpref": ("condensed-bpref", 0.2723214285714286),
            "ndcg_cut_5": ("condensed-nDCG@5", 0.8288515855033083),
            "map": ("condensed-AP", 0.42336309523809523),
        },
    ),
    Batch(
        "ir_measures",
        "0.4.3",
        "grades are ratings",
        judged="all",
        gain="rating",
        users="with-test",
        rows={
            "P(rel=4)@5": ("P@5", 0.28),
            "R(rel=4)@5": ("Recall@5", 0.41428571428571426),
            "AP(rel=4)@5": ("AP@5", 0.22523809523809524),
            "nDCG@5": ("nDCG@5", 0.5848719115337302),
            "RR(rel=4)@5": ("RR@5", 0.36666666666666664),
            "Success(rel=4)@5": ("HitRate@5", 0.6),
            "P(rel=4,judged_only=True)@5": ("condensed-P(per=k)@5", 0.36),
            "P(rel=4)@3": ("P@3", 0.3333333333333333),
            "R(rel=4)@3": ("Recall@3", 0.33571428571428574),
            "AP(rel=4)@3": ("AP@3", 0.17738095238095236),
            "nDCG@3": ("nDCG@3", 0.5906201651065383),
            "RR(rel=4)@3": ("RR@3", 0.36666666666666664),
            "Success(rel=4)@3": ("HitRate@3", 0.6),
            "P(rel=4,judged_only=True)@3": ("condensed-P(per=k)@3", 0.4),
            "AP(rel=4)": ("AP", 0.2670748299319728),
            "nDCG": ("nDCG", 0.5959004425221546),
            "RR(rel=4)": ("RR", 0.36666666666666664),
            "Bpref(rel=4)": ("bpref", 0.2178571428571429),
            "infAP(rel=4)": ("infAP(pool=judged)", 0.26707538672091413),
            "Rprec(rel=4)": ("Rprec", 0.24285714285714288),
        },
    ),
    Batch(
        "ir_measures",
        "0.4.3",
        "grades are ratings",
        judged="all",
        gain="liked-only",
        users="with-test",
        rows={
            "nDCG(gains={1:0,2:0,3:0})@5": ("nDCG@5", 0.3483942174340843),
            "nDCG(gains={1:0,2:0,3:0})@3": ("nDCG@3", 0.34090325897351104),
        },
    ),
    Batch(
        "ir_measures",
        "0.4.3",
        "grades are ratings",
        judged="all",
        gain="binary",
        users="with-test",
        rows={
            "nDCG(gains={1:0,2:0,3:0,4:1,5:1})@5": ("nDCG@5", 0.35367231503382823),
            "nDCG(gains={1:0,2:0,3:0,4:1,5:1})@3": ("nDCG@3", 0.35921638219317303),
        },
    ),
    Batch(
        "ir_measures",
        "0.4.3",
        "liked items only, grade 1",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "P@5": ("P@5", 0.35000000000000003),
            "R@5": ("Recall@5", 0.5178571428571428),
            "AP@5": ("AP@5", 0.28154761904761905),
            "nDCG@5": ("nDCG@5", 0.4420903937922853),
            "RR@5": ("RR@5", 0.4583333333333333),
            "Success@5": ("HitRate@5", 0.75),
            "P@3": ("P@3", 0.41666666666666663),
            "R@3": ("Recall@3", 0.41964285714285715),
            "AP@3": ("AP@3", 0.22172619047619047),
            "nDCG@3": ("nDCG@3", 0.4490204777414663),
            "RR@3": ("RR@3", 0.4583333333333333),
            "Success@3": ("HitRate@3", 0.75),
        },
    ),
    Batch(
        "ir_measures",
        "0.4.3",
        "grades are ratings less 1, values rounded to five decimals",
        judged="all",
        gain=GDEVAL,
        users="with-test",
        tolerance=1e-5,
        rows={
            "nDCG(dcg='exp-log2')@5": ("nDCG@5", 0.5823079999999999),
            "nDCG(dcg='exp-log2')@3": ("nDCG@3", 0.5566319999999999),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "grades are ratings, level 4",
        judged="all",
        gain="liked-only",
        users="with-test",
        rows={
            "precision@5-l4": ("P@5", 0.28),
            "precision@3-l4": ("P@3", 0.3333333333333333),
            "recall@5-l4": ("Recall@5", 0.41428571428571426),
            "recall@3-l4": ("Recall@3", 0.33571428571428574),
            "map@5-l4": ("AP@5", 0.22523809523809524),
            "map@3-l4": ("AP@3", 0.17738095238095236),
            "ndcg@5-l4": ("nDCG@5", 0.3483942174340843),
            "ndcg@3-l4": ("nDCG@3", 0.34090325897351104),
            "mrr@5-l4": ("RR@5", 0.36666666666666664),
            "mrr@3-l4": ("RR@3", 0.36666666666666664),
            "hit_rate@5-l4": ("HitRate@5", 0.6),
            "hit_rate@3-l4": ("HitRate@3", 0.6),
            "map-l4": ("AP", 0.2670748299319728),
            "ndcg-l4": ("nDCG", 0.3645369577412289),
            "mrr-l4": ("RR", 0.36666666666666664),
            "r-precision-l4": ("Rprec", 0.24285714285714288),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "grades are ratings, level 4",
        judged="all",
        gain=BURGES_LIKED,
        users="with-test",
        rows={
            "ndcg_burges@5-l4": ("nDCG@5", 0.33931293197920903),
            "ndcg_burges@3-l4": ("nDCG@3", 0.31259175234783376),
            "ndcg_burges-l4": ("nDCG", 0.36210474721788677),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "grades 0 and 1",
        judged="all",
        gain="binary",
        users="with-test",
        rows={
            "precision@5": ("P@5", 0.28),
            "precision@3": ("P@3", 0.3333333333333333),
            "recall@5": ("Recall@5", 0.41428571428571426),
            "recall@3": ("Recall@3", 0.33571428571428574),
            "map@5": ("AP@5", 0.22523809523809524),
            "map@3": ("AP@3", 0.17738095238095236),
            "ndcg@5": ("nDCG@5", 0.35367231503382823),
            "ndcg@3": ("nDCG@3", 0.35921638219317303),
            "ndcg_burges@5": ("nDCG@5", 0.35367231503382823),
            "ndcg_burges@3": ("nDCG@3", 0.35921638219317303),
            "mrr@5": ("RR@5", 0.36666666666666664),
            "mrr@3": ("RR@3", 0.36666666666666664),
            "hit_rate@5": ("HitRate@5", 0.6),
            "hit_rate@3": ("HitRate@3", 0.6),
            "map": ("AP", 0.2670748299319728),
            "ndcg": ("nDCG", 0.36565217800744343),
            "ndcg_burges": ("nDCG", 0.36565217800744343),
            "mrr": ("RR", 0.36666666666666664),
            "r-precision": ("Rprec", 0.24285714285714288),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "liked items only, grade 1",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "precision@5": ("P@5", 0.35000000000000003),
            "precision@3": ("P@3", 0.41666666666666663),
            "recall@5": ("Recall@5", 0.5178571428571428),
            "recall@3": ("Recall@3", 0.41964285714285715),
            "map@5": ("AP@5", 0.28154761904761905),
            "map@3": ("AP@3", 0.22172619047619047),
            "ndcg@5": ("nDCG@5", 0.4420903937922853),
            "ndcg@3": ("nDCG@3", 0.4490204777414663),
            "ndcg_burges@5": ("nDCG@5", 0.4420903937922853),
            "ndcg_burges@3": ("nDCG@3", 0.4490204777414663),
            "mrr@5": ("RR@5", 0.4583333333333333),
            "mrr@3": ("RR@3", 0.4583333333333333),
            "hit_rate@5": ("HitRate@5", 0.75),
            "hit_rate@3": ("HitRate@3", 0.75),
            "map": ("AP", 0.333843537414966),
            "ndcg": ("nDCG", 0.4570652225093043),
            "ndcg_burges": ("nDCG", 0.4570652225093043),
            "mrr": ("RR", 0.4583333333333333),
            "r-precision": ("Rprec", 0.3035714285714286),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "grades are ratings, level 1",
        judged="all",
        gain="rating",
        users="with-test",
        rows={
            "ndcg@5": ("nDCG@5", 0.5848719115337302),
            "ndcg@3": ("nDCG@3", 0.5906201651065383),
            "ndcg": ("nDCG", 0.5959004425221546),
        },
    ),
    Batch(
        "ranx",
        "0.3.21",
        "grades are ratings, level 1",
        judged="all",
        gain="burges",
        users="with-test",
        rows={
            "ndcg_burges@5": ("nDCG@5", 0.5687559269623348),
            "ndcg_burges@3": ("nDCG@3", 0.5450364498314635),
            "ndcg_burges": ("nDCG", 0.5906018973797982),
        },
    ),
    Batch(
        "rectools",
        "0.19.0",
        "liked items only",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "Precision(k=5)": ("P@5", 0.35000000000000003),
            "Precision(k=5, r_precision=True)": ("Recall(per=min)@5", 0.575),
            "Recall(k=5)": ("Recall@5", 0.5178571428571428),
            "HitRate(k=5)": ("HitRate@5", 0.75),
            "MAP(k=5, divide_by_k=False)": ("AP@5", 0.28154761904761905),
            "MAP(k=5, divide_by_k=True)": ("AP(per=k)@5", 0.25666666666666665),
            "NDCG(k=5, divide_by_achievable=False)": ("nDCG(ideal=full)@5", 0.3458915918428339),
            "NDCG(k=5, divide_by_achievable=True)": ("nDCG@5", 0.44209039379228526),
            "NDCG(k=5, log_base=10, divide_by_achievable=False)": (
                "nDCG(ideal=full)@5",
                0.3458915918428339,
            ),
            "MRR(k=5)": ("RR@5", 0.4583333333333333),
            "Precision(k=3)": ("P@3", 0.41666666666666663),
            "Precision(k=3, r_precision=True)": ("Recall(per=min)@3", 0.5833333333333333),
            "Recall(k=3)": ("Recall@3", 0.41964285714285715),
            "HitRate(k=3)": ("HitRate@3", 0.75),
            "MAP(k=3, divide_by_k=False)": ("AP@3", 0.22172619047619047),
            "MAP(k=3, divide_by_k=True)": ("AP(per=k)@3", 0.3194444444444444),
            "NDCG(k=3, divide_by_achievable=False)": ("nDCG(ideal=full)@3", 0.3826803184943109),
            "NDCG(k=3, divide_by_achievable=True)": ("nDCG@3", 0.4490204777414663),
            "NDCG(k=3, log_base=10, divide_by_achievable=False)": (
                "nDCG(ideal=full)@3",
                0.3826803184943109,
            ),
            "MRR(k=3)": ("RR@3", 0.4583333333333333),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only",
        judged="liked",
        gain="binary",
        users="with-list",
        rows={
            "Precision(n=5)": ("P(per=list)@5", 0.3066666666666667),
            "Recall(n=5)": ("Recall(per=min)@5", 0.45999999999999996),
            "NDCG(n=5)": ("nDCG(discount=original)@5", 0.3939269147996168),
            "NDCG(n=5, weight=LogRankWeight(offset=1))": ("nDCG@5", 0.35367231503382823),
            "RecipRank(n=5)": ("RR@5", 0.36666666666666664),
            "Hit(n=5)": ("HitRate@5", 0.6),
            "Precision(n=3)": ("P(per=list)@3", 0.3333333333333333),
            "Recall(n=3)": ("Recall(per=min)@3", 0.4666666666666666),
            "NDCG(n=3)": ("nDCG(discount=original)@3", 0.4022047040574783),
            "NDCG(n=3, weight=LogRankWeight(offset=1))": ("nDCG@3", 0.35921638219317303),
            "RecipRank(n=3)": ("RR@3", 0.36666666666666664),
            "Hit(n=3)": ("HitRate@3", 0.6),
            "Precision()": ("P(per=list)", 0.2845238095238095),
            "Recall()": ("Recall(per=min)", 0.4928571428571429),
            "NDCG()": ("nDCG(discount=original)", 0.4035539638663018),
            "NDCG(weight=LogRankWeight(offset=1))": ("nDCG", 0.36565217800744343),
            "RecipRank()": ("RR", 0.36666666666666664),
            "Hit()": ("HitRate", 0.6),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only, gain='rating'",
        judged="liked",
        gain="rating",
        users="with-list",
        rows={
            "NDCG(n=5, gain='rating')": ("nDCG(discount=original)@5", 0.3864380460218766),
            "NDCG(n=5, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@5",
                0.3483942174340843,
            ),
            "NDCG(n=3, gain='rating')": ("nDCG(discount=original)@3", 0.3812381871928786),
            "NDCG(n=3, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@3",
                0.3409032589735109,
            ),
            "NDCG(gain='rating')": ("nDCG(discount=original)", 0.4004992754221021),
            "NDCG(gain='rating', weight=LogRankWeight(offset=1))": ("nDCG", 0.3645369577412289),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "all judgments, gain='rating'",
        judged="all",
        gain="rating",
        users="with-list",
        rows={
            "NDCG(n=5, gain='rating')": ("nDCG(discount=original)@5", 0.5641852174233355),
            "NDCG(n=5, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@5",
                0.5848719115337301,
            ),
            "NDCG(n=3, gain='rating')": ("nDCG(discount=original)@3", 0.5707077514775849),
            "NDCG(n=3, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@3",
                0.5906201651065381,
            ),
            "NDCG(gain='rating')": ("nDCG(discount=original)", 0.5736645333195757),
            "NDCG(gain='rating', weight=LogRankWeight(offset=1))": ("nDCG", 0.5959004425221546),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only, lists without any left out",
        judged="liked",
        gain="binary",
        users="both",
        rows={
            "AveragePrecision(n=5)": ("AP(per=list)@5", 0.4477777777777778),
            "AveragePrecision(n=3)": ("AP(per=list)@3", 0.5),
            "AveragePrecision()": ("AP(per=list)", 0.44512471655328795),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only, without fill_missing",
        judged="liked",
        gain="binary",
        users="with-list",
        undefined="skip",
        rows={
            "Precision(n=5)": ("P(per=list)@5", 0.3066666666666667),
            "Recall(n=5)": ("Recall(per=min)@5", 0.7666666666666666),
            "NDCG(n=5)": ("nDCG(discount=original)@5", 0.6565448579993612),
            "NDCG(n=5, weight=LogRankWeight(offset=1))": ("nDCG@5", 0.5894538583897136),
            "Precision(n=3)": ("P(per=list)@3", 0.3333333333333333),
            "Recall(n=3)": ("Recall(per=min)@3", 0.7777777777777777),
            "NDCG(n=3)": ("nDCG(discount=original)@3", 0.6703411734291306),
            "NDCG(n=3, weight=LogRankWeight(offset=1))": ("nDCG@3", 0.598693970321955),
            "Precision()": ("P(per=list)", 0.2845238095238095),
            "Recall()": ("Recall(per=min)", 0.8214285714285715),
            "NDCG()": ("nDCG(discount=original)", 0.6725899397771697),
            "NDCG(weight=LogRankWeight(offset=1))": ("nDCG", 0.6094202966790724),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only, gain='rating', without fill_missing",
        judged="liked",
        gain="rating",
        users="with-list",
        undefined="skip",
        rows={
            "NDCG(n=5, gain='rating')": ("nDCG(discount=original)@5", 0.644063410036461),
            "NDCG(n=5, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@5",
                0.5806570290568072,
            ),
            "NDCG(n=3, gain='rating')": ("nDCG(discount=original)@3", 0.6353969786547977),
            "NDCG(n=3, gain='rating', weight=LogRankWeight(offset=1))": (
                "nDCG@3",
                0.5681720982891849,
            ),
            "NDCG(gain='rating')": ("nDCG(discount=original)", 0.6674987923701702),
            "NDCG(gain='rating', weight=LogRankWeight(offset=1))": ("nDCG", 0.6075615962353815),
        },
    ),
    Batch(
        "lenskit",
        "2025.8.1",
        "liked items only, without fill_missing",
        judged="liked",
        gain="binary",
        users="both",
        rows={
            "RecipRank(n=5)": ("RR@5", 0.611111111111111),
            "Hit(n=5)": ("HitRate@5", 1.0),
            "RecipRank(n=3)": ("RR@3", 0.611111111111111),
            "Hit(n=3)": ("HitRate@3", 1.0),
            "RecipRank()": ("RR", 0.611111111111111),
            "Hit()": ("HitRate", 1.0),
        },
    ),
    Batch(
        "replay-rec",
        "0.22.0",
        "liked items only",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "Precision@5": ("P@5", 0.35000000000000003),
            "Precision@3": ("P@3", 0.41666666666666663),
            "Recall@5": ("Recall@5", 0.5178571428571428),
            "Recall@3": ("Recall@3", 0.41964285714285715),
            "MAP@5": ("AP(per=min)@5", 0.3358333333333333),
            "MAP@3": ("AP(per=min)@3", 0.375),
            "NDCG@5": ("nDCG@5", 0.4420903937922853),
            "NDCG@3": ("nDCG@3", 0.4490204777414663),
            "MRR@5": ("RR@5", 0.4583333333333333),
            "MRR@3": ("RR@3", 0.4583333333333333),
            "HitRate@5": ("HitRate@5", 0.75),
            "HitRate@3": ("HitRate@3", 0.75),
        },
    ),
    Batch(
        "replay-rec",
        "0.22.0",
        "dictionaries that hold users without liked items",
        judged="all",
        gain="binary",
        users="with-test",
        rows={
            "Precision@5": ("P@5", 0.28),
            "Precision@3": ("P@3", 0.3333333333333333),
            "Recall@5": ("Recall@5", 0.41428571428571426),
            "Recall@3": ("Recall@3", 0.33571428571428574),
            "MAP@5": ("AP(per=min)@5", 0.26866666666666666),
            "MAP@3": ("AP(per=min)@3", 0.3),
            "NDCG@5": ("nDCG@5", 0.35367231503382823),
            "NDCG@3": ("nDCG@3", 0.35921638219317303),
            "MRR@5": ("RR@5", 0.36666666666666664),
            "MRR@3": ("RR@3", 0.36666666666666664),
            "HitRate@5": ("HitRate@5", 0.6),
            "HitRate@3": ("HitRate@3", 0.6),
        },
    ),
    Batch(
        "recpack",
        "0.3.6",
        "liked items only",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "PrecisionK(5)": ("P@5", 0.35000000000000003),
            "PrecisionK(3)": ("P@3", 0.41666666666666663),
            "RecallK(5)": ("Recall@5", 0.5178571428571428),
            "RecallK(3)": ("Recall@3", 0.41964285714285715),
            "CalibratedRecallK(5)": ("Recall(per=min)@5", 0.575),
            "CalibratedRecallK(3)": ("Recall(per=min)@3", 0.5833333333333333),
            "NDCGK(5)": ("nDCG@5", 0.4420903937922853),
            "NDCGK(3)": ("nDCG@3", 0.4490204777414663),
            "ReciprocalRankK(5)": ("RR@5", 0.4583333333333333),
            "ReciprocalRankK(3)": ("RR@3", 0.4583333333333333),
            "DCGK(5)": ("DCG@5", 1.0198472181127125),
            "DCGK(3)": ("DCG@3", 0.8154648767857289),
        },
    ),
    Batch(
        "cornac",
        "3.0.1",
        "each user's list and liked items",
        judged="liked",
        gain="binary",
        users="both",
        rows={
            "Precision(k=5)": ("P@5", 0.46666666666666673),
            "Recall(k=5)": ("Recall@5", 0.6904761904761904),
            "NDCG(k=5)": ("nDCG@5", 0.5894538583897138),
            "HitRatio(k=5)": ("HitRate@5", 1.0),
            "FMeasure(k=5)": ("F1@5", 0.48148148148148157),
            "Precision(k=3)": ("P@3", 0.5555555555555555),
            "Recall(k=3)": ("Recall@3", 0.5595238095238095),
            "NDCG(k=3)": ("nDCG@3", 0.598693970321955),
            "HitRatio(k=3)": ("HitRate@3", 1.0),
            "FMeasure(k=3)": ("F1@3", 0.4619047619047619),
            "MRR()": ("RR", 0.611111111111111),
            "MRR() [list cut to 5 by caller]": ("RR@5", 0.611111111111111),
            "MRR() [list cut to 3 by caller]": ("RR@3", 0.611111111111111),
        },
    ),
    Batch(
        "cornac",
        "3.0.1",
        "ranking_eval with rating_threshold=4",
        judged="all",
        gain="binary",
        users="with-relevant",
        rows={
            "Precision@5": ("P@5", 0.35000000000000003),
            "Recall@5": ("Recall@5", 0.5178571428571428),
            "NDCG@5": ("nDCG@5", 0.4420903937922853),
            "HitRatio@5": ("HitRate@5", 0.75),
            "Precision@3": ("P@3", 0.41666666666666663),
            "Recall@3": ("Recall@3", 0.41964285714285715),
            "NDCG@3": ("nDCG@3", 0.4490204777414663),
            "HitRatio@3": ("HitRate@3", 0.75),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "liked items only",
        judged="liked",
        gain="binary",
        users="both",
        rows={
            "precision_at_k(k=5)": ("P@5", 0.46666666666666673),
            "recall_at_k(k=5)": ("Recall@5", 0.6904761904761904),
            "map_at_k(k=5)": ("AP(per=min)@5", 0.4477777777777778),
            "map(k=5)": ("AP@5", 0.3753968253968254),
            "precision_at_k(k=3)": ("P@3", 0.5555555555555555),
            "recall_at_k(k=3)": ("Recall@3", 0.5595238095238095),
            "map_at_k(k=3)": ("AP(per=min)@3", 0.5),
            "map(k=3)": ("AP@3", 0.29563492063492064),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "liked items only",
        judged="liked",
        gain="binary",
        users="with-test",
        rows={
            "ndcg_at_k(k=5)": ("nDCG@5", 0.4420903937922852),
            "ndcg_at_k(k=5, score_type='binary', discfun_type='log2')": (
                "nDCG@5",
                0.4420903937922853,
            ),
            "ndcg_at_k(k=5, score_type='binary')": ("nDCG@5", 0.4420903937922852),
            "ndcg_at_k(k=3)": ("nDCG@3", 0.4490204777414663),
            "ndcg_at_k(k=3, score_type='binary', discfun_type='log2')": (
                "nDCG@3",
                0.4490204777414663,
            ),
            "ndcg_at_k(k=3, score_type='binary')": ("nDCG@3", 0.4490204777414663),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "liked items only, with ratings",
        judged="liked",
        gain="rating",
        users="with-test",
        rows={
            "ndcg_at_k(k=5, score_type='raw')": ("nDCG@5", 0.4354927717926053),
            "ndcg_at_k(k=3, score_type='raw')": ("nDCG@3", 0.4261290737168887),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "all judgments",
        judged="all",
        gain="rating",
        users="with-test",
        rows={
            "ndcg_at_k(k=5, score_type='raw')": ("nDCG@5", 0.5848719115337301),
            "ndcg_at_k(k=3, score_type='raw')": ("nDCG@3", 0.5906201651065381),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "liked items only, with ratings",
        judged="liked",
        gain="burges",
        users="with-test",
        rows={
            "ndcg_at_k(k=5, score_type='exp')": ("nDCG@5", 0.42414116497401133),
            "ndcg_at_k(k=3, score_type='exp')": ("nDCG@3", 0.3907396904347922),
        },
    ),
    Batch(
        "recommenders",
        "1.2.1",
        "all judgments",
        judged="all",
        gain="burges",
        users="with-test",
        rows={
            "ndcg_at_k(k=5, score_type='exp')": ("nDCG@5", 0.5687559269623348),
            "ndcg_at_k(k=3, score_type='exp')": ("nDCG@3", 0.5450364498314635),
        },
    ),
]
CASES = [
    pytest.param(batch, ours, value, id=f"{batch.peer} {batch.version}, {batch.how}: {theirs}")
    for batch in BATCHES
    for theirs, (ours, value) in batch.rows.items()
]


def means(judgments, lists, metrics, **settings):
    """Return the means of one system, without the warnings that are not the point here."""
    settings = {"liked": 4, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        return us.evaluate(as_ratings(judgments), {"s": lists}, metrics, **settings).means()["s"]


@cache
def ours_of(batch):
    """Return all our means of a batch."""
    metrics = dict.fromkeys(ours for ours, _ in batch.rows.values())
    settings = {"gain": batch.gain, "users": batch.users, "undefined": batch.undefined}
    return means(JUDGED[batch.judged], LISTS, list(metrics), **settings)


@pytest.mark.parametrize(("batch", "ours", "value"), CASES)
def test_mean_equals_the_peers(batch, ours, value):
    assert ours_of(batch)[ours] == pytest.approx(value, rel=0, abs=batch.tolerance)


def test_all_nine_libraries_are_there():
    assert len({batch.peer for batch in BATCHES}) == 9
    assert len(CASES) == 318


# Read from their source, not run: RecBole 1.2 (recbole/evaluator/metrics.py) and Elliot 0.3.1
# (elliot/evaluation/relevance/relevance.py and metrics/accuracy).


def discounted(gains):
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


def recbole(user, k):
    """RecBole knows liked items only, and every user it averages has one."""
    hits = [item in LIKED[user] for item in LISTS.get(user, [])][:k]
    most = min(len(LIKED[user]), k)
    shares = [sum(hits[: place + 1]) / (place + 1) for place in range(len(hits))]
    first = hits.index(True) + 1 if any(hits) else math.inf
    return {
        f"P@{k}": sum(hits) / k,
        f"Recall@{k}": sum(hits) / len(LIKED[user]),
        f"HitRate@{k}": float(any(hits)),
        f"RR@{k}": 1 / first,
        f"AP(per=min)@{k}": sum(s for s, hit in zip(shares, hits, strict=True) if hit) / most,
        f"nDCG@{k}": discounted(hits) / discounted([1] * most),
    }


def elliot(user, k):
    """Elliot's nDCG gives a liked item 2^(rating - threshold + 1) - 1."""
    gains = {item: 2 ** (rating - 4 + 1) - 1 for item, rating in LIKED[user].items()}
    best = sorted(gains.values(), reverse=True)[:k]
    scored = [gains.get(item, 0) for item in LISTS[user][:k]]
    return {f"nDCG@{k}": discounted(scored) / discounted(best)}


@pytest.mark.parametrize("k", [3, 5])
def test_formulas_read_from_the_source(k):
    def average(formula, users):
        rows = [formula(user, k) for user in users]
        return {name: sum(row[name] for row in rows) / len(rows) for name in rows[0]}

    theirs = average(recbole, LIKED)
    ours = means(JUDGMENTS, LISTS, list(theirs), gain="binary", users="with-relevant")
    assert ours == pytest.approx(theirs, abs=1e-12)
    theirs = average(elliot, [user for user in LISTS if user in LIKED])
    ours = means(LIKED, LISTS, list(theirs), gain={4: 1, 5: 3}, users="both")
    assert ours == pytest.approx(theirs, abs=1e-12)


# A list of 3 items, all liked, of a user who likes 10; cutoff 5. It tells denominators apart.

SHORT = {
    ("pytrec_eval-terrier", "P_5"): ("P@5", 0.6),
    ("pytrec_eval-terrier", "recall_5"): ("Recall@5", 0.3),
    ("pytrec_eval-terrier", "map_cut_5"): ("AP@5", 0.3),
    ("pytrec_eval-terrier", "ndcg_cut_5"): ("nDCG@5", 0.7227265726449519),
    ("ir_measures", "P@5"): ("P@5", 0.6),
    ("ir_measures", "R@5"): ("Recall@5", 0.3),
    ("ir_measures", "AP@5"): ("AP@5", 0.3),
    ("ir_measures", "nDCG@5"): ("nDCG@5", 0.7227265726449519),
    ("ranx", "precision@5"): ("P@5", 0.6),
    ("ranx", "recall@5"): ("Recall@5", 0.3),
    ("ranx", "map@5"): ("AP@5", 0.3),
    ("ranx", "ndcg@5"): ("nDCG@5", 0.7227265726449519),
    ("rectools", "Precision(k=5)"): ("P@5", 0.6),
    ("rectools", "Recall(k=5)"): ("Recall@5", 0.3),
    ("rectools", "MAP(k=5)"): ("AP@5", 0.3),
    ("rectools", "MAP(k=5, divide_by_k=True)"): ("AP(per=k)@5", 0.6),
    ("rectools", "NDCG(k=5)"): ("nDCG(ideal=full)@5", 0.7227265726449519),
    ("rectools", "NDCG(k=5, divide_by_achievable=True)"): ("nDCG@5", 0.7227265726449518),
    ("lenskit", "Precision(n=5)"): ("P(per=list)@5", 1.0),
    ("lenskit", "Recall(n=5)"): ("Recall(per=min)@5", 0.6),
    ("lenskit", "AveragePrecision(n=5)"): ("AP(per=list)@5", 1.0),
    ("lenskit", "NDCG(n=5)"): ("nDCG(discount=original)@5", 0.7386919056633241),
    ("replay-rec", "Precision@5"): ("P@5", 0.6),
    ("replay-rec", "Recall@5"): ("Recall@5", 0.3),
    ("replay-rec", "MAP@5"): ("AP(per=min)@5", 0.6),
    ("replay-rec", "NDCG@5"): ("nDCG@5", 0.7227265726449519),
    ("recpack", "PrecisionK(5)"): ("P@5", 0.6),
    ("recpack", "RecallK(5)"): ("Recall@5", 0.3),
    ("recpack", "CalibratedRecallK(5)"): ("Recall(per=min)@5", 0.6),
    ("recpack", "NDCGK(5)"): ("nDCG@5", 0.7227265726449519),
    ("cornac", "Precision(k=5)"): ("P@5", 0.6),
    ("cornac", "Recall(k=5)"): ("Recall@5", 0.3),
    ("cornac", "NDCG(k=5)"): ("nDCG@5", 0.7227265726449519),
    ("recommenders", "precision_at_k(k=5)"): ("P@5", 0.6),
    ("recommenders", "recall_at_k(k=5)"): ("Recall@5", 0.3),
    ("recommenders", "map_at_k(k=5)"): ("AP(per=min)@5", 0.6),
    ("recommenders", "map(k=5)"): ("AP@5", 0.3),
    ("recommenders", "ndcg_at_k(k=5)"): ("nDCG@5", 0.7227265726449518),
}


@pytest.mark.parametrize(("peer", "ours"), SHORT.items(), ids=[" ".join(peer) for peer in SHORT])
def test_short_list(peer, ours):
    metric, value = ours
    judged = {"q": dict.fromkeys(range(1, 11), 1)}
    assert means(judged, {"q": [1, 2, 3]}, [metric], liked=1)[metric] == pytest.approx(
        value, rel=0, abs=1e-9
    )


# Ties: two items of equal score, in this order; which one comes first?

TIES = [
    ("pytrec_eval-terrier", "trec", ["1", "2"], "2"),
    ("pytrec_eval-terrier", "trec", ["2", "1"], "2"),
    ("pytrec_eval-terrier", "trec", ["9", "10"], "9"),
    ("pytrec_eval-terrier", "trec", ["10", "9"], "9"),
    ("pytrec_eval-terrier", "trec", ["a", "B"], "a"),
    ("pytrec_eval-terrier", "trec", ["B", "a"], "a"),
    ("ir_measures nDCG@1, AP@1, P@1, RR", "trec", ["9", "10"], "9"),
    ("ir_measures nDCG@1, AP@1, P@1, RR", "trec", ["10", "9"], "9"),
    ("ir_measures RR@5", "id", ["1", "2"], "1"),
    ("ir_measures RR@5", "id", ["2", "1"], "1"),
    ("ir_measures RR@5", "id", ["9", "10"], "10"),
    ("ir_measures RR@5", "id", ["10", "9"], "10"),
    ("ranx, few items", "input", ["1", "2"], "1"),
    ("ranx, few items", "input", ["2", "1"], "2"),
    ("ranx, few items", "input", ["9", "10"], "9"),
    ("ranx, few items", "input", ["10", "9"], "10"),
    ("lenskit", "input", [9, 10], 9),
    ("lenskit", "input", [10, 9], 10),
    ("lenskit", "input", ["10", "9"], "10"),
    ("replay-rec, frames", "trec", ["9", "10"], "9"),
    ("replay-rec, frames", "trec", ["10", "9"], "9"),
    ("replay-rec, dictionaries", "input", [9, 10], 9),
    ("replay-rec, dictionaries", "input", [10, 9], 10),
    ("recommenders", "input", [9, 10], 9),
    ("recommenders", "input", [10, 9], 10),
    ("recommenders", "input", ["10", "9"], "10"),
]


@pytest.mark.parametrize(("peer", "ties", "items", "winner"), TIES)
def test_ties(peer, ties, items, winner):
    run = us.read_run({"user": ["q", "q"], "item": items, "score": [1.0, 1.0]}, ties=ties)
    assert run.items.values[int(run.item[0])] == winner


@pytest.mark.parametrize(("score", "winner"), [(1.00000001, "2"), (1.000001, "1")])
def test_trec_eval_sees_scores_in_32_bits(score, winner):
    """pytrec_eval-terrier 0.5.11: a lead of 1e-8 is a tie (the larger id wins), 1e-6 is not."""
    run = us.read_run({"q": {"1": score, "2": 1.0}}, ties="trec")
    assert run.items.values[int(run.item[0])] == winner


def test_ties_of_integers_by_descending_value_have_no_option():
    """RecPack and RePlay's frames put 10 before 9; ask for the input order of sorted rows."""
    run = {"user": [1, 1], "item": [9, 10], "score": [1.0, 1.0]}
    first = {ties: us.read_run(run, ties=ties) for ties in ("id", "trec", "input")}
    assert {t: r.items.values[int(r.item[0])] for t, r in first.items()} == {
        "id": 9, "trec": 9, "input": 9,
    }  # fmt: skip
    turned = us.read_run({**run, "item": [10, 9]}, ties="input")
    assert turned.items.values[int(turned.item[0])] == 10


# Judgments


@pytest.mark.parametrize(
    ("judged", "items", "value"),
    [
        ({1: 1, 2: 1, 3: 1}, [1, 11, 2], 2 / 3),  # no disliked item: mere coverage
        ({1: 0, 11: 0, 2: 1, 5: 0}, [1, 11, 2], 0.0),
        ({1: 0, 11: 1, 2: 1, 7: 1}, [1, 11, 2], 0.0),
    ],
)
def test_bpref_as_trec_eval(judged, items, value):
    """As pytrec_eval-terrier 0.5.11 and ir_measures 0.4.3; ranx 0.3.21 gives NaN for the first."""
    assert means({"q": judged}, {"q": items}, ["bpref"], liked=1)["bpref"] == value


@pytest.mark.parametrize("without", ["a0", "a2", "a4"])
def test_bpref_of_a_user_does_not_depend_on_the_users_before(without):
    """Three perfect users and one without liked items: ranx 0.3.21 gives 0, 0.25 or 0.5."""
    judged = {user: {1: 1, 2: 1, 3: 0} for user in ("a1", "a3", "a5")}
    judged = dict(sorted({**judged, without: {1: 0, 2: 0}}.items()))
    assert means(judged, {user: [1, 2, 3] for user in judged}, ["bpref"], liked=1)["bpref"] == 0.75


def test_a_negative_grade_has_no_gain():
    """pytrec_eval-terrier 0.5.11, ndcg_cut_3 of grades -1 and 2: 0.5."""
    value = means({"q": {1: -1, 2: 2}}, {"q": [1, 11, 2]}, ["nDCG@3"], liked=1)["nDCG@3"]
    assert value == pytest.approx(0.5, abs=1e-15)


def test_a_user_without_a_list_scores_zero():
    """LensKit's Precision of an empty list is NaN, then filled with 0; Cornac's is 0."""
    names = ["P@5", "P(per=list)@5", "Recall@5", "AP(per=list)@5", "nDCG@5", "RR@5", "HitRate@5"]
    lists = {"u1": [1], "u5": []}
    scores = means({"u5": {1: 5}, "u1": {1: 1}}, lists, names, users="with-relevant")
    assert scores == dict.fromkeys(names, 0.0)


def test_recall_does_not_weigh_by_rating():
    """RecPack 0.3.6 fed ratings instead of ones: RecallK(5) falls from 0.518 to 0.123."""
    for gain in ("rating", "binary"):
        value = means(LIKED, LISTS, ["Recall@5"], gain=gain)["Recall@5"]
        assert value == pytest.approx(0.5178571428571428, abs=1e-12)


@pytest.mark.parametrize(("k", "value"), [(5, 1.75), (3, 1.25)])
def test_hits_per_user(k, value):
    """RecPack 0.3.6: HitK is k x P@k."""
    assert k * means(LIKED, LISTS, [f"P@{k}"])[f"P@{k}"] == pytest.approx(value, abs=1e-9)


def test_two_items_at_one_rank_are_refused():
    """RecTools 0.19.0 takes them: Precision(k=1) and NDCG(k=1) are 2."""
    run = {"user": ["q", "q"], "item": [1, 2], "rank": [1, 1]}
    with pytest.raises(us.DataError, match="1 rank occurs twice in one list"):
        us.read_run(run)


def test_average_precision_of_lists_without_liked_items():
    """LensKit 2025.8.1 stops with ZeroDivisionError; a list without liked items is undefined."""
    scores = us.evaluate(as_ratings(LIKED), {"s": LISTS}, "AP(per=list)@5", users="with-list")
    mean = scores.averages()["s"]["AP(per=list)@5"]
    assert mean.value == pytest.approx((1 / 4 + 1 / 3 + 0.76) / 5, abs=1e-15)
    assert (mean.users, mean.undefined) == (5, 2)


def test_one_mean_has_one_set_of_users():
    """recommenders 1.2.1 averages nDCG over u5 too, and precision, recall and MAP without."""
    names = ["P@5", "Recall@5", "AP(per=min)@5", "nDCG@5"]
    scores = us.evaluate(as_ratings(LIKED), {"s": LISTS}, names, gain="binary")
    assert {mean.users for mean in scores.averages()["s"].values()} == {4}
    assert {mean.users for mean in scores.averages(users="both")["s"].values()} == {3}


def test_rprec_counts_users_whose_hits_come_late():
    """recommenders 1.2.1 leaves u2 out: r_precision_at_k(k=5) = 0.536; trec_eval's is 0.405."""
    value = means(LIKED, LISTS, ["Rprec"], users="both")["Rprec"]
    assert value == pytest.approx((1 / 2 + 0 + 5 / 7) / 3, abs=1e-15)


def test_integers_and_text_are_both_ids():
    """pytrec_eval-terrier and ranx take text only; both kinds give the same here."""
    text = {u: {str(i): r for i, r in judged.items()} for u, judged in JUDGMENTS.items()}
    names = ["nDCG@5", "AP@3"]
    assert means(text, LISTS, names) == means(JUDGMENTS, LISTS, names)


def test_many_ties_keep_their_order():
    """ranx 0.3.21 puts the first of forty tied items in the ninth place."""
    items = [f"d{n}" for n in range(1, 41)]
    run = us.read_run({"user": ["q"] * 40, "item": items, "score": [1.0] * 40}, ties="input")
    assert run.items.raw(run.item).to_list() == items


@pytest.mark.parametrize("ties", ["id", "trec", "random", "input"])
def test_the_first_items_do_not_depend_on_the_depth(ties):
    """RecPack 0.3.6, 30 tied items: the top 5 are 29, 9, 11, 13, 10; the top 30 begin 29, 28."""
    tied = {"user": ["q"] * 30, "item": range(30), "score": [1.0] * 30}
    whole, top = us.read_run(tied, ties=ties), us.read_run(tied, ties=ties, depth=5)
    assert top.to_polars().rows() == whole.to_polars().rows()[:5]


# The documentation

DOCUMENT = ROOT / "docs" / "conventions.md"
LIBRARIES, _, _ = DOCUMENT.read_text(encoding="utf-8").partition("## The five papers")
LINES = LIBRARIES.splitlines()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("| ")
][1:]
TRAPS = [line for line in LINES if line.startswith("- ")]


@pytest.mark.parametrize("text", [*(row[-1] for row in ROWS), *TRAPS])
def test_every_row_of_the_documentation_has_its_test(text):
    named = re.findall(r"`(test_\w+)`", text)
    assert named
    assert set(named) <= set(globals())


def test_the_documentation_is_read_in_full():
    assert (len(ROWS), len(TRAPS)) == (27, 10)
    assert {len(row) for row in ROWS} == {4}
    for peer, version in {(batch.peer, batch.version) for batch in BATCHES}:
        assert f"{peer} {version}" in "\n".join(LINES)


def test_the_options_of_the_documentation_exist_and_are_tested():
    """Metric options, and values of gain, users, undefined and ties."""
    metrics, settings = set(), set()
    for row in ROWS:
        metrics |= set(re.findall(r"`([\w-]+(?:\([a-z=]+\))?@k)`", row[2]))
        settings |= set(re.findall(r"`(\w+)=\"([\w-]+)\"`", row[2]))
    used = {ours.split("@")[0] for batch in BATCHES for ours, _ in batch.rows.values()}
    assert {metric.removesuffix("@k") for metric in metrics} <= used
    given = {(name, getattr(b, name)) for b in BATCHES for name in ("gain", "users", "undefined")
             if isinstance(getattr(b, name), str)}  # fmt: skip
    assert settings <= given | {("ties", ties) for _, ties, *_ in TIES}
    assert len(settings) == 13
