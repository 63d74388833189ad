"""bellogin2017, sections 3 and 4: claims about designs and sparsity."""

from __future__ import annotations

from unskew_studies import rules
from unskew_studies.bellogin2017 import checks_designs as checks
from unskew_studies.bellogin2017.claims import (
    BOTH,
    CHANCE,
    EXACT,
    LFM,
    ML,
    ORDINAL,
    SAME,
    WITHIN_3,
)
from unskew_studies.paper import Claim, algebra, measured

CLAIMS = (
    Claim(
        key="0-03",
        place="Eq. 4",
        statement="Random recommendation has the AR precision σδ at every cutoff.",
        published="σδ",
        question="Is σδ what random recommendation is expected to score in AR?",
        evidence=measured(
            check=checks.random_as_expected,
            rule=SAME,
            why="σδ is exact only if all users have equally many targets: 10 %",
            data=ML,
        ),
    ),
    Claim(
        key="0-04",
        place="Eq. 5",
        statement="Random recommendation has the 1R precision 1/t: 0.01 with 100 targets.",
        published="0.0100",
        question="Does random recommendation have the 1R precision 1/t?",
        evidence=algebra(check=checks.one_relevant_random, rule=WITHIN_3, why=CHANCE, data=BOTH),
    ),
    Claim(
        key="0-05",
        place="§3.2",
        statement="1R precision at 10 is never above 1/10.",
        published="1/n",
        question="Is 1/10 the most that 1R precision at 10 reaches on a list?",
        evidence=algebra(
            check=checks.most_of_one_relevant, rule=rules.exactly(0.1), why=EXACT, data=BOTH
        ),
    ),
    Claim(
        key="0-06",
        place="Eq. 2",
        statement="1R precision lies between two bounds that come from AR precision, if all lists "
        "of a user share their non-relevant items.",
        published="a lemma",
        question="Does 1R precision lie between its bounds at every point of the curves?",
        evidence=algebra(check=checks.bounds_broken, rule=rules.exactly(0), why=EXACT, data=ML),
    ),
    Claim(
        key="0-07",
        place="Fig. 3",
        statement="The bounds close in as target sets grow and as test ratings get fewer, and "
        "meet where every user has one relevant item.",
        published="a figure",
        question="Do the bounds close in with larger target sets and fewer test ratings?",
        evidence=measured(
            check=checks.bounds_close_in,
            rule=rules.exactly(1),
            why="closer at every step; where they meet, exactly",
            data=ML,
            question_rule=rules.at_least(0.6),
        ),
    ),
    Claim(
        key="0-08",
        place="§4.2",
        statement="The precision of whole lists is the same for every system that ranks all "
        "targets: ρ.",
        published="ρ",
        question="Is the precision of whole lists ρ, whatever the system?",
        evidence=algebra(check=checks.total_precision, rule=rules.exactly(0), why=EXACT, data=ML),
    ),
    Claim(
        key="0-09",
        place="Fig. 2",
        statement="Popularity has an AR precision of about 0.08 on MovieLens 1M.",
        published="0.08",
        evidence=measured(
            check=checks.popularity_in_ar,
            rule=rules.near(0.08, 0.005),
            why="folds differ by .002, and a bar was read",
            data=ML,
        ),
    ),
    Claim(
        key="0-10",
        place="§3.3",
        statement="Popularity has an AR precision of about 0.35 on Last.fm.",
        published="0.35",
        evidence=measured(
            check=checks.popularity_in_ar,
            rule=rules.near(0.35, 0.05).open(),
            why="the paper describes only in part how plays became ratings",
            data=LFM,
        ),
    ),
    Claim(
        key="0-11",
        place="Fig. 2",
        statement="pLSA is the best system in most configurations.",
        published="most",
        question="Is pLSA the best system in most configurations?",
        evidence=measured(
            check=checks.plsa_first, rule=rules.above(0.5).open(), why=ORDINAL, data=BOTH
        ),
    ),
    Claim(
        key="0-12",
        place="Fig. 2",
        statement="AR and 1R order some systems differently on Last.fm.",
        published="some",
        question="Do AR and 1R order any two systems differently?",
        evidence=measured(
            check=checks.swaps_between_designs, rule=rules.at_least(1).open(), why=ORDINAL, data=LFM
        ),
    ),
    Claim(
        key="0-13",
        place="§3.3",
        statement="With a random split it makes next to no difference whether all items or those "
        "with test ratings are candidates.",
        published="almost the same",
        question="Do all items as candidates give the same precision as test items, within 5 %?",
        evidence=measured(
            check=checks.test_items_like_all,
            rule=rules.at_most(0.05),
            why="'almost the same': 5 %",
            data=ML,
        ),
    ),
    Claim(
        key="0-14",
        place="§3.3",
        statement="All pairs of systems of Fig. 2 differ significantly by Wilcoxon's test.",
        published="p ≪ 0.001",
        question="Do all pairs of systems differ by Wilcoxon's test, p < .001?",
        evidence=measured(
            check=checks.all_pairs_differ,
            rule=rules.below(0.001).open(),
            why="two systems may come close with other settings than the paper's",
            data=BOTH,
        ),
    ),
    Claim(
        key="0-15",
        place="Fig. 4",
        statement="AR precision falls linearly as test ratings are removed.",
        published="linear",
        question="Does AR precision fall linearly with test ratings removed?",
        evidence=measured(
            check=checks.linear_in_density,
            rule=rules.at_least(0.99),
            why="R² of a line through the origin",
            data=ML,
        ),
    ),
    Claim(
        key="0-16",
        place="Fig. 4",
        statement="1R precision does not depend on how many test ratings there are.",
        published="independent",
        question="Is 1R precision the same with fewer test ratings?",
        evidence=measured(
            check=checks.flat_in_density,
            rule=WITHIN_3.open(),
            why=(
                f"{CHANCE}; the paper does not state whether candidates are removed with the "
                "test ratings"
            ),
            data=ML,
        ),
    ),
    Claim(
        key="0-17",
        place="Fig. 4",
        statement="1R precision is inversely proportional to the size of target sets, exactly so "
        "for random recommendation and similarly for other systems.",
        published="∝ 1/t",
        question="Does 1R precision fall with the size of target sets, about as 1/t?",
        evidence=measured(
            check=checks.inverse_to_targets,
            rule=rules.near(-1, 0.1).open(),
            why="the exponent that is farthest from -1; 'similarly' leaves open how near",
            data=ML,
        ),
    ),
    Claim(
        key="0-18",
        place="§4.2",
        statement="Test sparsity does not change how systems compare.",
        published="not distorted",
        question="Do systems compare alike down to a tenth of the test ratings?",
        evidence=measured(
            check=checks.order_kept,
            rule=rules.at_least(0.9),
            why="Kendall's τ down to a tenth of the test ratings",
            data=ML,
        ),
    ),
    Claim(
        key="0-19",
        place="§4.2",
        statement="MRR and nDCG@n rise with density as precision does, while recall is hardly "
        "affected.",
        published="described",
        question="Do MRR and nDCG@10 rise with density, while recall is steadier?",
        evidence=measured(
            check=checks.metrics_and_density,
            rule=rules.true(),
            why="signs of the change, and which one is smaller",
            data=ML,
        ),
    ),
    Claim(
        key="0-43",
        place="§3.3",
        statement="nDCG, MAP and MRR show trends similar to those of precision.",
        published="similar",
        question="Do nDCG, MAP and MRR order the systems as precision does?",
        evidence=measured(
            check=checks.other_metrics_alike,
            rule=rules.at_least(0.8),
            why="one pair of five systems may change places",
            data=BOTH,
        ),
    ),
    Claim(
        key="0-44",
        place="§3.3",
        statement="Other thresholds of liking give equivalent results.",
        published="equivalent",
        question="Do other thresholds of liking order the systems alike?",
        evidence=measured(
            check=checks.other_thresholds_alike,
            rule=rules.at_least(0.8),
            why="one pair of five systems may change places",
            data=ML,
        ),
    ),
    Claim(
        key="0-45",
        place="§3.4",
        statement="The bounds tend to hold too if every list draws non-relevant items of its own.",
        published="tends to hold",
        question="Do the bounds tend to hold with others drawn for each list?",
        evidence=measured(
            check=checks.fresh_within_bounds,
            rule=rules.at_least(0.9),
            why="'tends to': nine points in ten, within three standard errors",
            data=ML,
        ),
    ),
    Claim(
        key="0-53",
        place="Fig. 2",
        statement="Popularity follows closely, as the second best system.",
        published="second",
        question="Is popularity among the two best systems in every configuration?",
        evidence=measured(
            check=checks.popularity_second, rule=rules.at_most(2).open(), why=ORDINAL, data=ML
        ),
    ),
    Claim(
        key="0-54",
        place="Fig. 2",
        statement="MF is generally better than kNN.",
        published="generally",
        question="Is MF better than kNN in most configurations?",
        evidence=measured(
            check=checks.mf_over_knn, rule=rules.above(0.5).open(), why=ORDINAL, data=BOTH
        ),
    ),
    Claim(
        key="0-55",
        place="Fig. 2",
        statement="In AR on Last.fm popularity is the best system.",
        published="best",
        question="Is popularity the best system in AR?",
        evidence=measured(
            check=checks.popularity_first_in_ar, rule=rules.exactly(1).open(), why=ORDINAL, data=LFM
        ),
    ),
)
