"""bellogin2017, the ledger: what the paper claims, and what counts as agreeing."""

from __future__ import annotations

from unskew.studies.bellogin2017 import designs, popularity, tables
from unskew.studies.bellogin2017.measures import AR, LASTFM, MOVIELENS, NETFLIX, ONE, uniform_facts
from unskew.studies.claims import (
    ALGEBRA,
    AMBIGUOUS,
    Claim,
    Rule,
    above,
    at_least,
    at_most,
    below,
    exactly,
    near,
    true,
)

ML, LFM = (MOVIELENS,), (LASTFM,)
BOTH = (MOVIELENS, LASTFM)

ORDINAL = "only the order is asked for: the paper gives no settings of its systems"
EXACT = "a count, or a property that holds without any chance"
CHANCE = "three standard errors of so many lists"
WITHIN_3 = Rule(high=3, said="within 3 standard errors")
SAME = Rule(0.9, 1.1, said="a ratio of 1 ± 0.1")
NO_LOWER = Rule(low=1, said="a ratio of at least 1")
HIGHER = Rule(low=1, strict=True, said="a ratio above 1")

DESIGNS = (
    Claim(
        "0-05", "§3.2", "1R precision at 10 is never above 1/10.",
        designs.most_of_one_relevant, exactly(0.1), EXACT, "1/n", BOTH, asks=exactly(0.1),
        question="Is 1/10 the most that 1R precision at 10 reaches on a list?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-06", "Eq. 2",
        "1R precision lies between two bounds that come from AR precision, if all lists of a user "
        "share their non-relevant items.",
        designs.bounds_broken, exactly(0), EXACT, "a lemma", ML, asks=exactly(0),
        question="Does 1R precision lie between its bounds at every point of the curves?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-07", "Fig. 3",
        "The bounds close in as target sets grow and as test ratings get fewer, and meet where "
        "every user has one relevant item.",
        designs.bounds_close_in, exactly(1), "closer at every step; where they meet, exactly",
        "a figure", ML, asks=at_least(0.6),
        question="Do the bounds close in with larger target sets and fewer test ratings?",
    ),
    Claim(
        "0-45", "§3.4",
        "The bounds tend to hold too if every list draws non-relevant items of its own.",
        designs.fresh_within_bounds, at_least(0.9),
        "'tends to': nine points in ten, within three standard errors", "tends to hold", ML,
        asks=at_least(0.9), question="Do the bounds tend to hold with others drawn anew?",
    ),
    Claim(
        "0-09", "Fig. 2", "Popularity has an AR precision of about 0.08 on MovieLens 1M.",
        designs.popularity_in_ar, near(0.08, 0.005), "folds differ by .002, and a bar was read",
        "0.08", ML,
    ),
    Claim(
        "0-10", "§3.3", "Popularity has an AR precision of about 0.35 on Last.fm.",
        designs.popularity_in_ar, near(0.35, 0.05).open(),
        "how plays were made ratings is told in part only", "0.35", LFM,
    ),
    Claim(
        "0-11", "Fig. 2", "pLSA is the best system in most configurations.",
        designs.plsa_first, above(0.5).open(), ORDINAL, "most", BOTH, asks=above(0.5),
        question="Is pLSA the best system in most configurations?",
    ),
    Claim(
        "0-53", "Fig. 2", "Popularity follows closely, as the second best system.",
        designs.popularity_second, at_most(2).open(), ORDINAL, "second", ML, asks=at_most(2),
        question="Is popularity among the two best systems in every configuration?",
    ),
    Claim(
        "0-54", "Fig. 2", "MF is generally better than kNN.",
        designs.mf_over_knn, above(0.5).open(), ORDINAL, "generally", BOTH, asks=above(0.5),
        question="Is MF better than kNN in most configurations?",
    ),
    Claim(
        "0-55", "Fig. 2", "In AR on Last.fm popularity is the best system.",
        designs.popularity_first_in_ar, exactly(1).open(), ORDINAL, "best", LFM, asks=exactly(1),
        question="Is popularity the best system in AR?",
    ),
    Claim(
        "0-12", "Fig. 2", "AR and 1R order some systems differently on Last.fm.",
        designs.swaps_between_designs, at_least(1).open(), ORDINAL, "some", LFM, asks=at_least(1),
        question="Do AR and 1R order any two systems differently?",
    ),
    Claim(
        "0-13", "§3.3",
        "With a random split it makes next to no difference whether all items or those with test "
        "ratings are candidates.",
        designs.test_items_like_all, at_most(0.05), "'almost the same': 5 %", "almost the same", ML,
        asks=at_most(0.05),
        question="Do all items as candidates give the same precision as test items, within 5 %?",
    ),
    Claim(
        "0-14", "§3.3",
        "All pairs of systems of Fig. 2 differ significantly by Wilcoxon's test.",
        designs.all_pairs_differ, below(0.001).open(),
        "two systems may come close with other settings than the paper's", "p ≪ 0.001", BOTH,
        asks=below(0.001), question="Do all pairs of systems differ by Wilcoxon's test, p < .001?",
    ),
    Claim(
        "0-43", "§3.3", "nDCG, MAP and MRR show trends similar to those of precision.",
        designs.other_metrics_alike, at_least(0.8), "one pair of five systems may change places",
        "similar", BOTH, asks=at_least(0.8),
        question="Do nDCG, MAP and MRR order the systems as precision does?",
    ),
    Claim(
        "0-44", "§3.3", "Other thresholds of liking give equivalent results.",
        designs.other_thresholds_alike, at_least(0.8), "one pair of five systems may change places",
        "equivalent", ML, asks=at_least(0.8),
        question="Do other thresholds of liking order the systems alike?",
    ),
)  # fmt: skip

SPARSITY = (
    Claim(
        "0-03", "Eq. 4", "Random recommendation has the AR precision σδ at every cutoff.",
        designs.random_as_expected, SAME,
        "σδ is exact only if all users have equally many targets: 10 %", "σδ", ML,
        asks=SAME, question="Is σδ what random recommendation is expected to score in AR?",
    ),
    Claim(
        "0-04", "Eq. 5", "Random recommendation has the 1R precision 1/t: 0.01 with 100 targets.",
        designs.one_relevant_random, WITHIN_3, CHANCE, "0.0100", BOTH, asks=WITHIN_3,
        question="Does random recommendation have the 1R precision 1/t?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-08", "§4.2",
        "The precision of whole lists is the same for every system that ranks all targets: ρ.",
        designs.total_precision, exactly(0), EXACT, "ρ", ML, asks=exactly(0),
        question="Is the precision of whole lists ρ, whatever the system?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-15", "Fig. 4", "AR precision falls linearly as test ratings are removed.",
        designs.linear_in_density, at_least(0.99), "R² of a line through the origin", "linear", ML,
        asks=at_least(0.99), question="Does AR precision fall linearly with test ratings removed?",
    ),
    Claim(
        "0-16", "Fig. 4", "1R precision does not depend on how many test ratings there are.",
        designs.flat_in_density, WITHIN_3.open(),
        f"{CHANCE}; whether candidates go with the test ratings removed is not said", "independent",
        ML, asks=WITHIN_3,
        question="Is 1R precision the same with fewer test ratings?",
    ),
    Claim(
        "0-17", "Fig. 4",
        "1R precision is inversely proportional to the size of target sets, exactly so for random "
        "recommendation and similarly for other systems.",
        designs.inverse_to_targets, near(-1, 0.1).open(),
        "the exponent that is farthest from -1; 'similarly' leaves open how near", "∝ 1/t", ML,
        asks=near(-1, 0.1),
        question="Does 1R precision fall with the size of target sets, about as 1/t?",
    ),
    Claim(
        "0-18", "§4.2", "Test sparsity does not change how systems compare.",
        designs.order_kept, at_least(0.9), "Kendall's τ down to a tenth of the test ratings",
        "not distorted", ML, asks=at_least(0.9),
        question="Do systems compare alike down to a tenth of the test ratings?",
    ),
    Claim(
        "0-19", "§4.2",
        "MRR and nDCG@n rise with density as precision does, while recall is hardly affected.",
        designs.metrics_and_density, true(), "signs of the change, and which one is smaller",
        "described", ML, asks=true(),
        question="Do MRR and nDCG@10 rise with density, while recall is steadier?",
    ),
)  # fmt: skip

POPULARITY = (
    Claim(
        "0-20", "§5.1",
        "Popularity is the best non-personalised ranking: none has a higher expected precision.",
        popularity.popularity_best, NO_LOWER, "an expectation, computed exactly", "the best", ML,
        asks=NO_LOWER, question="Is popularity the best of the fixed rankings?",
    ),
    Claim(
        "0-41", "Eq. 3",
        "Eq. 3 gives the expected AR precision of a non-personalised ranking such as popularity.",
        popularity.equation_three, SAME, "an expectation, computed exactly: 10 %",
        "σ|C| / (n t |U|) Σ |PR(i)|", ML, asks=SAME,
        question="Does Eq. 3 give popularity's expected precision, within 10 %?",
    ),
    Claim(
        "0-21", "Fig. 5",
        "Where all items are equally popular, popularity is slightly worse than random in 1R: "
        "0.0077 against 0.0100.",
        popularity.below_random_when_flat, near(0.0077, 0.0006),
        "three standard errors (.0004), and what split there was", "0.0077", ML,
        asks=below(0.01), question="Is popularity below 0.01 where all items are equally popular?",
    ),
    Claim(
        "0-22", "Fig. 5", "On simulated data popularity's 1R precision rises with the skew α.",
        popularity.grows_with_skew(ONE), exactly(1), "it rises at every step", "a figure", ML,
        asks=exactly(1), question="Does popularity's 1R precision rise with simulated skew?",
    ),
    Claim(
        "0-56", "Fig. 5", "On simulated data kNN and MF stay around random, whatever the skew.",
        popularity.taste_stays_random, at_most(0.1).open(),
        "'essentially around': 10 %; both depend on settings that are not given", "around random",
        ML, asks=at_most(0.2), question="Do kNN and MF stay within 20 % of random on such data?",
    ),
    Claim(
        "0-57", "Fig. 5", "On simulated data pLSA closely matches popularity.",
        popularity.plsa_tracks_popularity, at_most(0.1).open(),
        "'closely': 10 %; it depends on settings that are not given", "closely matches", ML,
        asks=at_most(0.2), question="Does pLSA stay within 20 % of popularity on such data?",
    ),
    Claim(
        "0-46", "§5.2", "On simulated data the effect of skew on popularity is the same in AR.",
        popularity.grows_with_skew(AR), exactly(1), "it rises at every step", "the same", ML,
        asks=exactly(1), question="Does popularity's AR precision rise with simulated skew?",
    ),
    Claim(
        "0-47", "§5.2", "Recall, nDCG, MAP and MRR show the popularity bias quite similarly.",
        popularity.grows_by_all_metrics, exactly(1), "every metric rises at every step",
        "similarly", ML, asks=exactly(1),
        question="Do recall, nDCG, MAP and MRR of popularity rise as well?",
    ),
    Claim(
        "0-23", "§5.2", "The popularity of MovieLens 1M follows the law with α of about 1.4.",
        popularity.skew_of_data, near(1.4, 0.3), "how it was fitted is not said: of eight fits, "
        "which give .29 to 66, this one is told because it comes near", "α ≈ 1.4", ML,
        kind=AMBIGUOUS,
    ),
    Claim(
        "0-24", "§5.2",
        "The most liked item is liked by 32.7 % of users in MovieLens, 73 % in Last.fm and 20.1 % "
        "in Netflix.",
        popularity.most_liked_item, popularity.AS_PRINTED,
        "half a point: how users were counted is not said", "32.7 %, 73 %, 20.1 %",
        (MOVIELENS, LASTFM, NETFLIX),
    ),
    Claim(
        "0-25", "§5.2",
        "30 tracks of TREC have 703 queries, 129,277 relevant documents and 149,811 positive "
        "judgments; 87.2 % of the documents are relevant to one query, and none to more than 25.",
        None, exactly(703), EXACT, "703; 129,277; 149,811; 87.2 %; 25",
        needs="needs the judgments of 30 TREC tracks, and which ones they are is not said",
    ),
    Claim(
        "0-26", "Fig. 7", "The share of positive ratings grows with an item's popularity.",
        popularity.positive_ratio_grows, above(0), "the sign of Spearman's correlation", "grows",
        ML, asks=above(0), question="Does the share of positive ratings grow with popularity?",
    ),
)  # fmt: skip

REMEDIES = (
    Claim(
        "0-34", "§6.1", "Ten percentiles of MovieLens 1M limit target sets to about 370 items.",
        popularity.smallest_percentile, exactly(370), EXACT, "~370", ML,
    ),
    Claim(
        "0-50", "§6.1", "That limit leaves room for the target sets of 1R, with 100 items each.",
        popularity.short_percentile_lists, exactly(0).open(),
        "a count of lists that are too short; the paper says 'seems acceptable'",
        "acceptable for 1R", ML,
        asks=exactly(0), question="Can a tenth of the items fill every target set of 100?",
    ),
    Claim(
        "0-01", "§6.2", "With σ = ε = 0.2 a uniform test of MovieLens 1M has 1,703 items.",
        tables.counting(uniform_facts, "test items"), exactly(1703), EXACT, "1,703", ML,
    ),
    Claim(
        "0-02", "§6.2", "That is 118 test ratings per item.",
        popularity.test_ratings_per_item, exactly(118), EXACT, "118", ML,
    ),
    Claim(
        "0-42", "§6.2", "ε ≥ 1/n, such as 0.2 for five folds, allows n-fold cross-validation.",
        popularity.disjoint_tests, at_least(5), "a count: five folds need five disjoint test sets",
        "ε ≥ 1/n", ML, asks=at_least(5),
        question="Has a uniform test with ε = 0.2 room for five folds?",
    ),
    Claim(
        "0-27", "§6.2",
        "Where every item is liked alike, a uniform test puts every non-personalised system at the "
        "level of random.",
        popularity.constant_ratio_is_random, SAME,
        "relative to random: 10 %, more than three standard errors", "σδ in AR, 1/t in 1R", ML,
        asks=SAME,
        question="If every item were liked alike, would a uniform test put popularity at random?",
    ),
    Claim(
        "0-33", "Fig. 8",
        "On Last.fm, where all ratings are positive, popularity is at random in U1R.",
        popularity.uniform_is_random, SAME, "relative to random: 10 %", "0.01", LFM,
    ),
    Claim(
        "0-51", "§6.2",
        "With candidates beyond the test items, random precision falls by the factor |T| / |C|.",
        popularity.random_falls_with_candidates, SAME,
        "exact only if all users have equally many training items: 10 %", "|T| / |C|", ML,
        asks=SAME, question="Does random precision fall by |T| / |C| with all candidates?",
    ),
    Claim(
        "0-28", "Fig. 8",
        "U1R and P1R place popularity by the level of random, P1R even nearer than U1R.",
        popularity.neutralised, SAME.open(), "relative to random: 10 %, as for every claim about "
        "the level of random; the paper itself explains why an advantage remains",
        "near random", ML, asks=SAME,
        question="Do U1R and P1R bring popularity to the level of random, within 10 %?",
    ),
    Claim(
        "0-29", "Fig. 8", "UAR lowers popularity, but it stays above kNN.",
        popularity.uniform_leaves_popularity_over_knn, HIGHER.open(), ORDINAL, "above kNN", ML,
        asks=HIGHER, question="Does popularity stay above kNN in UAR?",
    ),
    Claim(
        "0-30", "Fig. 8",
        "pLSA remains the best in all configurations, and P1R and U1R tell it from popularity.",
        popularity.plsa_first_everywhere, exactly(1).open(), ORDINAL, "all", ML, asks=exactly(1),
        question="Is pLSA the best system under every remedy?",
    ),
    Claim(
        "0-31", "Fig. 8",
        "All items as candidates keep more of the popularity bias than test items, in UAR and U1R.",
        popularity.all_items_keep_bias, HIGHER, "the order of popularity by random", "higher", ML,
        asks=HIGHER, question="Do all items as candidates keep more of the bias?",
    ),
    Claim(
        "0-32", "Fig. 8",
        "Removing the most popular tenth from the test lowers popularity less than U1R and P1R.",
        popularity.head_is_not_all, HIGHER, "the order of popularity by random",
        "not as effective", ML, asks=HIGHER,
        question="Does removing the head lower popularity less than U1R, P1R?",
    ),
    Claim(
        "0-48", "§6.3", "Recall, MAP, MRR and nDCG show the same trends under the remedies.",
        popularity.remedies_by_all_metrics, exactly(4), "the order of popularity by random",
        "the same", ML, asks=exactly(4),
        question="Do the remedies lower popularity by every metric?",
    ),
    Claim(
        "0-40", "§6.3", "In 1R MAP is MRR, and nDCG does not see grades.",
        popularity.one_item_merges_metrics, exactly(0), EXACT, "equivalent", ML, asks=exactly(0),
        question="Is MAP equal to MRR in 1R, and nDCG blind to grades?",
        evidence=ALGEBRA,
    ),
)  # fmt: skip

METRICS = (
    Claim(
        "0-35", "Fig. 9",
        "bpref and infAP counter the popularity bias in AR on MovieLens, but drag pLSA down too.",
        popularity.incomplete_judgments, true().open(), ORDINAL, "drag down", ML, asks=true(),
        question="Do bpref and infAP cost pLSA places, and give popularity none?",
    ),
    Claim(
        "0-36", "Fig. 9",
        "In AR on Last.fm bpref puts popularity and random first, and infAP popularity first and "
        "random third.",
        popularity.implicit_bpref, true().open(), f"coverage decides; {ORDINAL}", "first; third",
        LFM,
    ),
    Claim(
        "0-37", "§7", "In 1R bpref is 1 for all systems, because non-relevance judgments are gone.",
        popularity.bpref_is_coverage, exactly(1), EXACT, "1", BOTH, asks=exactly(1),
        question="Is bpref 1 in 1R for every item that a system could rank?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-38", "Fig. 9", "Stratified recall with γ = 1 leaves popularity second in AR.",
        popularity.stratified_place(tables.POPULAR), at_most(2).open(), ORDINAL, "second", ML,
        asks=at_most(2), question="Is popularity among the two best systems by stratified recall?",
    ),
    Claim(
        "0-58", "Fig. 9", "In AR on Last.fm stratified recall with γ = 1 puts random first.",
        popularity.stratified_place(tables.RANDOM), exactly(1).open(), ORDINAL, "first", LFM,
    ),
    Claim(
        "0-39", "§7", "Stratified recall with γ = 0 is recall.",
        popularity.stratified_zero_is_recall, exactly(0), EXACT, "equal", BOTH, asks=exactly(0),
        question="Is stratified recall with γ = 0 recall?",
        evidence=ALGEBRA,
    ),
    Claim(
        "0-49", "§7", "In 1R infAP has a bias for popularity like that of precision.",
        popularity.inferred_keeps_bias, at_most(0).open(), ORDINAL, "similar", BOTH,
        asks=at_most(0), question="Does popularity keep its place in 1R by infAP?",
    ),
    Claim(
        "0-52", "§7", "Stratified recall has a weight for every relevant item.",
        popularity.weights_known, exactly(0), EXACT, "|PR(i)|", ML, asks=exactly(0),
        question="Has every liked test item a weight?",
        evidence=ALGEBRA,
    ),
)  # fmt: skip

CLAIMS = tuple(
    sorted((*DESIGNS, *SPARSITY, *POPULARITY, *REMEDIES, *METRICS), key=lambda claim: claim.key)
)
