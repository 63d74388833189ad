"""bellogin2017, sections 5 to 7: claims about popularity, remedies and metrics."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.bellogin2017 import checks as tables
from unskew_studies.bellogin2017 import checks_popularity as checks
from unskew_studies.bellogin2017.claims import (
    AS_PRINTED,
    BOTH,
    EXACT,
    HIGHER,
    LFM,
    ML,
    NO_LOWER,
    ORDINAL,
    SAME,
)
from unskew_studies.bellogin2017.measurements import AR, LASTFM, MOVIELENS, NETFLIX, ONE
from unskew_studies.paper import AMBIGUOUS, Claim, Evidence, algebra, measured

CLAIMS = (
    Claim(
        key="0-01",
        place="§6.2",
        statement="With σ = ε = 0.2 a uniform test of MovieLens 1M has 1,703 items.",
        published="1,703",
        evidence=measured(
            check=checks.items_of_uniform_test,
            rule=rules.exactly(1703),
            why=EXACT,
            data=ML,
        ),
    ),
    Claim(
        key="0-02",
        place="§6.2",
        statement="That is 118 test ratings per item.",
        published="118",
        evidence=measured(
            check=checks.test_ratings_per_item, rule=rules.exactly(118), why=EXACT, data=ML
        ),
    ),
    Claim(
        key="0-20",
        place="§5.1",
        statement="Popularity is the best non-personalised ranking: none has a higher expected "
        "precision.",
        published="the best",
        question="Is popularity the best of the fixed rankings?",
        evidence=measured(
            check=checks.popularity_best,
            rule=NO_LOWER,
            why="an expectation, computed exactly",
            data=ML,
        ),
    ),
    Claim(
        key="0-21",
        place="Fig. 5",
        statement="Where all items are equally popular, popularity is slightly worse than random "
        "in 1R: 0.0077 against 0.0100.",
        published="0.0077",
        question="Is popularity below 0.01 where all items are equally popular?",
        evidence=measured(
            check=checks.below_random_when_flat,
            rule=rules.near(0.0077, 0.0006),
            why="three standard errors (.0004); the paper does not state the split",
            data=ML,
            question_rule=rules.below(0.01),
        ),
    ),
    Claim(
        key="0-22",
        place="Fig. 5",
        statement="On simulated data popularity's 1R precision rises with the skew α.",
        published="a figure",
        question="Does popularity's 1R precision rise with simulated skew?",
        evidence=measured(
            check=partial(checks.grows_with_skew, design=ONE),
            rule=rules.exactly(1),
            why="it rises at every step",
            data=ML,
        ),
    ),
    Claim(
        key="0-23",
        place="§5.2",
        statement="The popularity of MovieLens 1M follows the law with α of about 1.4.",
        published="α ≈ 1.4",
        kind=AMBIGUOUS,
        evidence=measured(
            check=checks.skew_of_data,
            rule=rules.near(1.4, 0.3),
            why="the paper does not state how it was fitted: of eight fits, which give .29 to "
            "66, this one is reported because it comes closest",
            data=ML,
        ),
    ),
    Claim(
        key="0-24",
        place="§5.2",
        statement="The most liked item is liked by 32.7 % of users in MovieLens, 73 % in Last.fm "
        "and 20.1 % in Netflix.",
        published="32.7 %, 73 %, 20.1 %",
        evidence=measured(
            check=checks.most_liked_item,
            rule=AS_PRINTED,
            why="half a point: the paper does not state how users were counted",
            data=(MOVIELENS, LASTFM, NETFLIX),
        ),
    ),
    Claim(
        key="0-25",
        place="§5.2",
        statement="30 tracks of TREC have 703 queries, 129,277 relevant documents and 149,811 "
        "positive judgments; 87.2 % of the documents are relevant to one query, and none to more "
        "than 25.",
        published="703; 129,277; 149,811; 87.2 %; 25",
        evidence=(
            Evidence(
                kind="",
                check=None,
                rule=rules.exactly(703),
                why=EXACT,
                needs="needs the judgments of 30 TREC tracks, which the paper does not name",
            ),
        ),
    ),
    Claim(
        key="0-26",
        place="Fig. 7",
        statement="The share of positive ratings grows with an item's popularity.",
        published="grows",
        question="Does the share of positive ratings grow with popularity?",
        evidence=measured(
            check=checks.positive_ratio_grows,
            rule=rules.above(0),
            why="the sign of Spearman's correlation",
            data=ML,
        ),
    ),
    Claim(
        key="0-27",
        place="§6.2",
        statement="Where every item is liked alike, a uniform test puts every non-personalised "
        "system at the level of random.",
        published="σδ in AR, 1/t in 1R",
        question="If every item were liked alike, would a uniform test put popularity at random?",
        evidence=measured(
            check=checks.constant_ratio_is_random,
            rule=SAME,
            why="relative to random: 10 %, more than three standard errors",
            data=ML,
        ),
    ),
    Claim(
        key="0-28",
        place="Fig. 8",
        statement="U1R and P1R place popularity by the level of random, P1R even nearer than U1R.",
        published="near random",
        question="Do U1R and P1R bring popularity to the level of random, within 10 %?",
        evidence=measured(
            check=checks.neutralised,
            rule=SAME.open(),
            why="relative to random: 10 %, as for every claim about the level of random; the "
            "paper itself explains why an advantage remains",
            data=ML,
        ),
    ),
    Claim(
        key="0-29",
        place="Fig. 8",
        statement="UAR lowers popularity, but it stays above kNN.",
        published="above kNN",
        question="Does popularity stay above kNN in UAR?",
        evidence=measured(
            check=checks.uniform_leaves_popularity_over_knn,
            rule=HIGHER.open(),
            why=ORDINAL,
            data=ML,
        ),
    ),
    Claim(
        key="0-30",
        place="Fig. 8",
        statement="pLSA remains the best in all configurations, and P1R and U1R tell it from "
        "popularity.",
        published="all",
        question="Is pLSA the best system under every remedy?",
        evidence=measured(
            check=checks.plsa_first_everywhere, rule=rules.exactly(1).open(), why=ORDINAL, data=ML
        ),
    ),
    Claim(
        key="0-31",
        place="Fig. 8",
        statement="All items as candidates keep more of the popularity bias than test items, in "
        "UAR and U1R.",
        published="higher",
        question="Do all items as candidates keep more of the bias?",
        evidence=measured(
            check=checks.all_items_keep_bias,
            rule=HIGHER,
            why="the order of popularity by random",
            data=ML,
        ),
    ),
    Claim(
        key="0-32",
        place="Fig. 8",
        statement="Removing the most popular tenth from the test lowers popularity less than U1R "
        "and P1R.",
        published="not as effective",
        question="Does removing the head lower popularity less than U1R, P1R?",
        evidence=measured(
            check=checks.head_is_not_all,
            rule=HIGHER,
            why="the order of popularity by random",
            data=ML,
        ),
    ),
    Claim(
        key="0-33",
        place="Fig. 8",
        statement="On Last.fm, where all ratings are positive, popularity is at random in U1R.",
        published="0.01",
        evidence=measured(
            check=checks.uniform_is_random, rule=SAME, why="relative to random: 10 %", data=LFM
        ),
    ),
    Claim(
        key="0-34",
        place="§6.1",
        statement="Ten percentiles of MovieLens 1M limit target sets to about 370 items.",
        published="~370",
        evidence=measured(
            check=checks.smallest_percentile, rule=rules.exactly(370), why=EXACT, data=ML
        ),
    ),
    Claim(
        key="0-35",
        place="Fig. 9",
        statement="bpref and infAP counter the popularity bias in AR on MovieLens, but drag pLSA "
        "down too.",
        published="drag down",
        question="Do bpref and infAP cost pLSA places, and give popularity none?",
        evidence=measured(
            check=checks.incomplete_judgments, rule=rules.true().open(), why=ORDINAL, data=ML
        ),
    ),
    Claim(
        key="0-36",
        place="Fig. 9",
        statement="In AR on Last.fm bpref puts popularity and random first, and infAP popularity "
        "first and random third.",
        published="first; third",
        evidence=measured(
            check=checks.implicit_bpref,
            rule=rules.true().open(),
            why=f"coverage decides; {ORDINAL}",
            data=LFM,
        ),
    ),
    Claim(
        key="0-37",
        place="§7",
        statement="In 1R bpref is 1 for all systems, because non-relevance judgments are gone.",
        published="1",
        question="Is bpref 1 in 1R for every item that a system could rank?",
        evidence=algebra(
            check=checks.bpref_is_coverage, rule=rules.exactly(1), why=EXACT, data=BOTH
        ),
    ),
    Claim(
        key="0-38",
        place="Fig. 9",
        statement="Stratified recall with γ = 1 leaves popularity second in AR.",
        published="second",
        question="Is popularity among the two best systems by stratified recall?",
        evidence=measured(
            check=partial(checks.stratified_place, system=tables.POPULAR),
            rule=rules.at_most(2).open(),
            why=ORDINAL,
            data=ML,
        ),
    ),
    Claim(
        key="0-39",
        place="§7",
        statement="Stratified recall with γ = 0 is recall.",
        published="equal",
        question="Is stratified recall with γ = 0 recall?",
        evidence=algebra(
            check=checks.stratified_zero_is_recall, rule=rules.exactly(0), why=EXACT, data=BOTH
        ),
    ),
    Claim(
        key="0-40",
        place="§6.3",
        statement="In 1R MAP is MRR, and nDCG does not see grades.",
        published="equivalent",
        question="Is MAP equal to MRR in 1R, and nDCG blind to grades?",
        evidence=algebra(
            check=checks.one_item_merges_metrics, rule=rules.exactly(0), why=EXACT, data=ML
        ),
    ),
    Claim(
        key="0-41",
        place="Eq. 3",
        statement="Eq. 3 gives the expected AR precision of a non-personalised ranking such as "
        "popularity.",
        published="σ|C| / (n t |U|) Σ |PR(i)|",
        question="Does Eq. 3 give popularity's expected precision, within 10 %?",
        evidence=measured(
            check=checks.equation_three,
            rule=SAME,
            why="an expectation, computed exactly: 10 %",
            data=ML,
        ),
    ),
    Claim(
        key="0-42",
        place="§6.2",
        statement="ε ≥ 1/n, such as 0.2 for five folds, allows n-fold cross-validation.",
        published="ε ≥ 1/n",
        question="Has a uniform test with ε = 0.2 room for five folds?",
        evidence=measured(
            check=checks.disjoint_tests,
            rule=rules.at_least(5),
            why="a count: five folds need five disjoint test sets",
            data=ML,
        ),
    ),
    Claim(
        key="0-46",
        place="§5.2",
        statement="On simulated data the effect of skew on popularity is the same in AR.",
        published="the same",
        question="Does popularity's AR precision rise with simulated skew?",
        evidence=measured(
            check=partial(checks.grows_with_skew, design=AR),
            rule=rules.exactly(1),
            why="it rises at every step",
            data=ML,
        ),
    ),
    Claim(
        key="0-47",
        place="§5.2",
        statement="Recall, nDCG, MAP and MRR show the popularity bias quite similarly.",
        published="similarly",
        question="Do recall, nDCG, MAP and MRR of popularity rise as well?",
        evidence=measured(
            check=checks.grows_by_all_metrics,
            rule=rules.exactly(1),
            why="every metric rises at every step",
            data=ML,
        ),
    ),
    Claim(
        key="0-48",
        place="§6.3",
        statement="Recall, MAP, MRR and nDCG show the same trends under the remedies.",
        published="the same",
        question="Do the remedies lower popularity by every metric?",
        evidence=measured(
            check=checks.remedies_by_all_metrics,
            rule=rules.exactly(4),
            why="the order of popularity by random",
            data=ML,
        ),
    ),
    Claim(
        key="0-49",
        place="§7",
        statement="In 1R infAP has a bias for popularity like that of precision.",
        published="similar",
        question="Does popularity keep its place in 1R by infAP?",
        evidence=measured(
            check=checks.inferred_keeps_bias, rule=rules.at_most(0).open(), why=ORDINAL, data=BOTH
        ),
    ),
    Claim(
        key="0-50",
        place="§6.1",
        statement="That limit leaves room for the target sets of 1R, with 100 items each.",
        published="acceptable for 1R",
        question="Can a tenth of the items fill every target set of 100?",
        evidence=measured(
            check=checks.short_percentile_lists,
            rule=rules.exactly(0).open(),
            why="a count of lists that are too short; the paper says 'seems acceptable'",
            data=ML,
        ),
    ),
    Claim(
        key="0-51",
        place="§6.2",
        statement="With candidates beyond the test items, random precision falls by the factor "
        "|T| / |C|.",
        published="|T| / |C|",
        question="Does random precision fall by |T| / |C| with all candidates?",
        evidence=measured(
            check=checks.random_falls_with_candidates,
            rule=SAME,
            why="exact only if all users have equally many training items: 10 %",
            data=ML,
        ),
    ),
    Claim(
        key="0-52",
        place="§7",
        statement="Stratified recall has a weight for every relevant item.",
        published="|PR(i)|",
        question="Has every liked test item a weight?",
        evidence=algebra(check=checks.weights_known, rule=rules.exactly(0), why=EXACT, data=ML),
    ),
    Claim(
        key="0-56",
        place="Fig. 5",
        statement="On simulated data kNN and MF stay around random, whatever the skew.",
        published="around random",
        question="Do kNN and MF stay within 20 % of random on such data?",
        evidence=measured(
            check=checks.taste_stays_random,
            rule=rules.at_most(0.1).open(),
            why="'essentially around': 10 %; both depend on settings that are not given",
            data=ML,
            question_rule=rules.at_most(0.2),
        ),
    ),
    Claim(
        key="0-57",
        place="Fig. 5",
        statement="On simulated data pLSA closely matches popularity.",
        published="closely matches",
        question="Does pLSA stay within 20 % of popularity on such data?",
        evidence=measured(
            check=checks.plsa_tracks_popularity,
            rule=rules.at_most(0.1).open(),
            why="'closely': 10 %; it depends on settings that are not given",
            data=ML,
            question_rule=rules.at_most(0.2),
        ),
    ),
    Claim(
        key="0-58",
        place="Fig. 9",
        statement="In AR on Last.fm stratified recall with γ = 1 puts random first.",
        published="first",
        evidence=measured(
            check=partial(checks.stratified_place, system=tables.RANDOM),
            rule=rules.exactly(1).open(),
            why=ORDINAL,
            data=LFM,
        ),
    ),
)
