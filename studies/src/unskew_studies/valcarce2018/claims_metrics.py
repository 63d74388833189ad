"""valcarce2018: claims about metrics and cutoffs."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.paper import NOTE, Claim, algebra, measured, released
from unskew_studies.valcarce2018 import checks_metrics as checks
from unskew_studies.valcarce2018.claims import (
    ALL,
    ALL_PVALUES,
    ALL_RESULTS,
    BA,
    DP_PRINTED,
    LT,
    ML,
    OPEN,
    ORDINAL,
    OTHER_RESULTS,
    PVALUES,
    RESULTS,
    TWO_DECIMALS,
)
from unskew_studies.valcarce2018.measurements import pvalues_file, results_file

CLAIMS = (
    Claim(
        key="1-04",
        place="Fig. 1",
        statement="The correlations between cutoffs of nDCG on MovieLens 1M.",
        published="66 values, at least 0.90",
        evidence=released(
            check=partial(checks.figure_1, released=ML),
            rule=rules.at_most(0.0051),
            why=TWO_DECIMALS,
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-05",
        place="§6",
        statement="The lowest correlation between cutoffs on MovieLens 1M is that of P@5 and "
        "P@100, and of Recall@5 and Recall@100.",
        published="0.76",
        evidence=released(
            check=partial(checks.least_of_cutoffs, released=ML),
            rule=rules.near(0.76, 0.0051),
            why=TWO_DECIMALS,
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-06",
        place="§6",
        statement="Most correlations between cutoffs are above 0.85.",
        published="most",
        question="Are most correlations between cutoffs above 0.85?",
        evidence=released(
            check=partial(checks.above_085, released=ML),
            rule=rules.at_least(0.8),
            why="most is taken as four of five, for every metric; on MovieLens 1M",
            files=RESULTS,
        )
        + measured(
            check=partial(checks.above_085, deep=True),
            rule=rules.at_least(0.8).open(),
            why=f"most is taken as four of five, for every metric; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-07",
        place="§6",
        statement="Correlations between cutoffs above 20 are almost always higher than 0.9.",
        published="almost always",
        question="Are correlations between cutoffs above 20 almost always higher than 0.9?",
        evidence=released(
            check=checks.both_deep_above_09,
            rule=rules.at_least(0.95),
            why="almost always is taken as 95 %; on LibraryThing and BeerAdvocate, of which the "
            "paper says so",
            files=OTHER_RESULTS,
        )
        + measured(
            check=partial(checks.deep_above_09, deep=True),
            rule=rules.at_least(0.95).open(),
            why=f"almost always is taken as 95 %; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-08",
        place="Fig. 2",
        statement="The deeper the cutoff of nDCG, the more robust it is to sparsity.",
        published="increasing",
        question="Are deeper cutoffs of nDCG more robust to sparsity?",
        evidence=measured(
            check=checks.deeper_under_sparsity,
            rule=rules.above(0.8).open(),
            why=f"rank correlation of cutoff and mean τ; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-09",
        place="Fig. 3",
        statement="The deeper the cutoff of nDCG, the more robust it is to the removal of popular "
        "items.",
        published="increasing",
        question="Are deeper cutoffs of nDCG more robust to the removal of popular items?",
        evidence=released(
            check=partial(checks.deeper_under_popularity, released=ML),
            rule=rules.above(0.8),
            why="rank correlation of cutoff and mean τ, on MovieLens 1M; a figure without printed "
            "values",
            files=RESULTS,
        )
        + measured(
            check=partial(checks.deeper_under_popularity, deep=True),
            rule=rules.above(0.8).open(),
            why=f"rank correlation of cutoff and mean τ; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-10",
        place="Fig. 4",
        statement="Cutoffs of nDCG from 50 on discriminate better than shallow ones.",
        published="better",
        question="Do cutoffs of nDCG from 50 on tell systems apart better than shallow ones?",
        evidence=released(
            check=partial(checks.deeper_power, released=ML),
            rule=rules.below(1.0),
            why="mean DP from 50 on over that up to 20, on MovieLens 1M; a figure without printed "
            "values",
            files=PVALUES,
        )
        + measured(
            check=partial(checks.deeper_power, deep=True),
            rule=rules.below(1.0).open(),
            why=f"mean DP from 50 on over that up to 20; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-11",
        place="Fig. 5a",
        statement="The correlations between the seven metrics on MovieLens 1M.",
        published="see Fig. 5a",
        evidence=released(
            check=partial(checks.figure_5, name=ML),
            rule=rules.at_most(0.0051),
            why=TWO_DECIMALS,
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-12",
        place="Fig. 5b",
        statement="The correlations between the seven metrics on LibraryThing.",
        published="see Fig. 5b",
        evidence=released(
            check=partial(checks.figure_5, name=LT),
            rule=rules.at_most(0.0051),
            why=TWO_DECIMALS,
            files=(results_file(LT),),
        ),
    ),
    Claim(
        key="1-13",
        place="Fig. 5c",
        statement="The correlations between the seven metrics on BeerAdvocate.",
        published="see Fig. 5c",
        evidence=released(
            check=partial(checks.figure_5, name=BA),
            rule=rules.at_most(0.0051),
            why=TWO_DECIMALS,
            files=(results_file(BA),),
        ),
    ),
    Claim(
        key="1-14",
        place="§7",
        statement="On LibraryThing all correlations between metrics are above 0.9.",
        published="above 0.9",
        evidence=released(
            check=partial(checks.least_tau, name=LT),
            rule=rules.above(0.9).open(),
            why="the paper prints 0.90 where the released values give a little less",
            files=(results_file(LT),),
        ),
    ),
    Claim(
        key="1-15",
        place="§7",
        statement="On MovieLens 1M and on BeerAdvocate some correlations between metrics are "
        "below 0.8.",
        published="some",
        evidence=released(
            check=partial(checks.below_08, names=(ML, BA)),
            rule=rules.at_least(1),
            why="counts of pairs",
            files=(results_file(ML), results_file(BA)),
        ),
    ),
    Claim(
        key="1-16",
        place="§7",
        statement="MAP is strongly correlated with nDCG.",
        published="0.96 / 0.99 / 0.97",
        question="Do MAP and nDCG order systems almost alike (τ of at least 0.9)?",
        evidence=released(
            check=partial(checks.tau_between, a="MAP", b="nDCG", names=ALL),
            rule=rules.at_least(0.95),
            why="strongly is taken as 0.95 on all three data sets, well above the 0.9 that the "
            "paper calls almost equivalent",
            files=ALL_RESULTS,
        )
        + measured(
            check=checks.map_and_ndcg,
            rule=rules.at_least(0.9).open(),
            why=f"above 0.9 the paper calls orders almost equivalent; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-17",
        place="§7",
        statement="bpref is poorly correlated with MAP on BeerAdvocate.",
        published="0.78",
        evidence=released(
            check=partial(checks.tau_between, a="MAP", b="bpref", names=(BA,)),
            rule=rules.at_most(0.8),
            why="poorly is taken as the 0.8 that the paper names",
            files=(results_file(BA),),
        ),
    ),
    Claim(
        key="1-18",
        place="§7",
        statement="MRR differs noticeably from the other metrics.",
        published="lowest",
        question="Is MRR the metric that differs most from the others?",
        evidence=released(
            check=partial(checks.mrr_outlier_of, names=(ML, LT)),
            rule=rules.true(),
            why="the lowest mean τ with the others, on MovieLens 1M and on LibraryThing",
            files=(results_file(ML), results_file(LT)),
        )
        + measured(
            check=checks.mrr_is_the_outlier,
            rule=rules.true().open(),
            why=f"the lowest mean τ with the others; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-19",
        place="Fig. 6",
        statement="Every metric keeps a correlation above 0.9 when half of the test set is taken "
        "away.",
        published="above 0.9",
        question="Does every metric keep the order of systems (τ above 0.9) on half of the test "
        "set?",
        evidence=measured(
            check=checks.half_the_test_set, rule=rules.above(0.9).open(), why=OPEN, data=ALL
        ),
    ),
    Claim(
        key="1-20",
        place="Fig. 6",
        statement="P and nDCG are the metrics most robust to sparsity.",
        published="very good figures",
        question="Are P and nDCG the two metrics most robust to sparsity?",
        evidence=measured(
            check=checks.most_robust_to_sparsity,
            rule=rules.true().open(),
            why=f"the two highest mean τ; {OPEN}",
            data=ALL,
            explanation="Drawn from the released values with the noise of such samples, P (τ "
            ".988) and nDCG (.978) are the most robust to sparsity, as printed, and bpref falls "
            "to .952, because four of the systems lie within .003 of one another by bpref.",
        ),
    ),
    Claim(
        key="1-21",
        place="Fig. 7",
        statement="P is the most robust to the removal of popular items and MRR the least.",
        published="P first, MRR last",
        question="Is P the metric most robust to the removal of popular items, and MRR the least?",
        evidence=released(
            check=partial(checks.p_best_mrr_worst, released=ML),
            rule=rules.true(),
            why=f"{ORDINAL}: mean τ on MovieLens 1M",
            files=RESULTS,
        )
        + measured(
            check=checks.p_best_mrr_worst,
            rule=rules.true().open(),
            why=f"mean τ; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-22",
        place="Fig. 7c",
        statement="On BeerAdvocate correlations drop quickly once a few popular items are gone, "
        "and even become negative.",
        published="negative",
        evidence=released(
            check=partial(checks.collapse, released=BA),
            rule=rules.true(),
            why="quickly is taken as below 0.5 at 99 % of the items",
            files=(results_file(BA),),
        ),
    ),
    Claim(
        key="1-23",
        place="Table 3",
        statement="The discriminative power DP of the seven metrics on MovieLens 1M.",
        published="2.6 / 7.0 / 2.8 / 1.4 / 15.5 / 9.9 / 8.4",
        evidence=released(
            check=partial(checks.table_3, name=ML),
            rule=rules.at_most(0.055),
            why=DP_PRINTED,
            files=PVALUES,
        ),
    ),
    Claim(
        key="1-24",
        place="§7, Table 3",
        statement="nDCG and P, in this order, have the highest discriminative power.",
        published="nDCG, then P",
        question="Do nDCG and P tell systems apart best?",
        evidence=released(
            check=checks.ndcg_then_p,
            rule=rules.true(),
            why="mean place over the three data sets",
            files=ALL_PVALUES,
        )
        + measured(
            check=checks.ndcg_and_p_first,
            rule=rules.true().open(),
            why=f"the two smallest DP; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-25",
        place="§7, Table 3",
        statement="bpref has low discriminative power.",
        published="low",
        question="Is bpref among the three metrics that tell systems apart worst?",
        evidence=released(
            check=checks.bpref_among_the_worst,
            rule=rules.at_most(3),
            why="low is taken as among the three worst of seven on every data set; the place from "
            "the end is judged",
            files=ALL_PVALUES,
        )
        + measured(
            check=checks.bpref_from_the_end,
            rule=rules.at_most(3).open(),
            why="low is taken as among the three worst of seven; the place from the end is "
            f"judged; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-27",
        place="§3",
        statement="All metrics range from 0 to 1.",
        published="0 to 1",
        question="Do all values lie between 0 and 1?",
        evidence=algebra(
            check=checks.within_0_and_1, rule=rules.true(), why="by definition", data=ALL
        ),
    ),
    Claim(
        key="1-34",
        place="§3",
        statement="The gain function of nDCG makes no meaningful difference.",
        published="no difference",
        question="Is the order of systems by nDCG the same (τ of at least 0.9) whatever the gain?",
        evidence=released(
            check=partial(checks.released_gains, released=ML),
            rule=rules.at_least(0.9),
            why="the paper calls orders with τ above 0.9 almost equivalent; on MovieLens 1M",
            files=RESULTS,
        )
        + measured(check=checks.gains_of_ours, rule=rules.at_least(0.9).open(), why=OPEN, data=ALL),
    ),
    Claim(
        key="1-35",
        place="§5",
        statement="AllItems is highly correlated with other ways to choose what is ranked.",
        published="highly",
        question="Does the order of systems stay (τ of at least 0.8) whatever is ranked?",
        evidence=measured(
            check=checks.other_designs,
            rule=rules.at_least(0.8).open(),
            why="highly is taken as 0.8 (nDCG@10), for every other way; the paper names none",
            data=ALL,
        ),
    ),
    Claim(
        key="1-37",
        place="Fig. 1",
        statement="All cutoffs of nDCG order systems almost alike.",
        published="at least 0.90",
        question="Do all cutoffs of nDCG order systems almost alike (τ of at least 0.9)?",
        evidence=measured(
            check=partial(checks.least_of_ndcg, deep=True),
            rule=rules.at_least(0.9).open(),
            why=OPEN,
            data=ALL,
        ),
    ),
    Claim(
        key="1-47",
        place="§5",
        statement="An ideal recommender reaches a perfect score in all metrics.",
        published="1",
        question="Could an ideal recommender reach 1 in every metric?",
        evidence=measured(
            check=checks.ideal_reaches_1,
            rule=rules.at_least(0.999),
            why="1 but for the smoothing of infAP",
            data=ALL,
        ),
    ),
    Claim(
        key="1-50",
        place="Table 3",
        statement="The discriminative power DP of the seven metrics on LibraryThing.",
        published="1.5 / 5.9 / 3.6 / 0.2 / 2.9 / 5.4 / 3.8",
        evidence=released(
            check=partial(checks.table_3, name=LT),
            rule=rules.at_most(0.055),
            why=DP_PRINTED,
            files=(pvalues_file(LT),),
        ),
    ),
    Claim(
        key="1-51",
        place="Table 3",
        statement="The discriminative power DP of the seven metrics on BeerAdvocate.",
        published="1.9 / 8.3 / 10.7 / 4.4 / 5.8 / 12.7 / 4.8",
        evidence=released(
            check=partial(checks.table_3, name=BA),
            rule=rules.at_most(0.055),
            why=DP_PRINTED,
            files=(pvalues_file(BA),),
        ),
    ),
    Claim(
        key="1-52",
        place="§7",
        statement="Overall P is the most robust to the removal of popular items and MRR the least.",
        published="P best, MRR worst",
        evidence=released(
            check=checks.p_best_mrr_worst_overall,
            rule=rules.true(),
            why=f"{ORDINAL}: mean τ over MovieLens 1M and LibraryThing, as the paper draws no "
            "conclusion from BeerAdvocate",
            files=(results_file(ML), results_file(LT)),
        ),
    ),
    Claim(
        key="1-53",
        place="Fig. 7c",
        statement="On BeerAdvocate the paper draws no conclusion about which metric is most "
        "robust to the removal of popular items.",
        published="difficult to draw conclusions",
        kind=NOTE,
        evidence=released(
            check=partial(checks.p_best_mrr_worst, released=BA),
            rule=rules.true(),
            why="whether P is the most robust and MRR the least",
            files=(results_file(BA),),
        ),
    ),
    Claim(
        key="1-54",
        place="§6",
        statement="Deeper cutoffs discriminate better for different metrics on all three data "
        "sets.",
        published="similar results",
        evidence=released(
            check=checks.deeper_power_everywhere,
            rule=rules.below(1.0),
            why="mean DP from 50 on over that up to 20, the largest of four metrics and three "
            "data sets",
            files=ALL_PVALUES,
        ),
    ),
    Claim(
        key="1-55",
        place="§6",
        statement="Deeper cutoffs of nDCG are more robust to the removal of popular items on "
        "LibraryThing and BeerAdvocate too.",
        published="slight variations",
        evidence=released(
            check=checks.both_deeper,
            rule=rules.above(0.8).open(),
            why="rank correlation of cutoff and mean τ, the smaller of the two; the paper grants "
            "slight variations",
            files=OTHER_RESULTS,
        ),
    ),
    Claim(
        key="1-58",
        place="Fig. 6",
        statement="bpref has poor robustness to sparsity.",
        published="poor",
        question="Is bpref among the three metrics least robust to sparsity?",
        evidence=measured(
            check=partial(checks.place_from_the_end, metric="bpref"),
            rule=rules.at_most(3).open(),
            why="poor is taken as among the three of seven that the paper names (bpref, "
            f"infAP, MRR); the place from the end is judged; {OPEN}",
            data=ALL,
        ),
    ),
    Claim(
        key="1-59",
        place="§7",
        statement="MRR is the metric least robust to sparsity.",
        published="least robust",
        question="Is MRR the metric least robust to sparsity?",
        evidence=measured(
            check=partial(checks.place_from_the_end, metric="MRR"),
            rule=rules.at_most(1).open(),
            why=f"the place from the end by mean τ is judged; {OPEN}",
            data=ALL,
        ),
    ),
)
