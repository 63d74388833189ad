"""castells2018: its claims."""

from __future__ import annotations

from unskew.studies.castells2018 import findings as found
from unskew.studies.claims import (
    ALGEBRA,
    MEASURED,
    NOTE,
    Claim,
    Rule,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    near,
    true,
)

ML1M = ("ml-1m",)
SOME = Rule(0.0, 1.0, strict=True, said="some of it, less than all")
CLEARLY = Rule(low=1.0, strict=True, said="> 1 with p < .001")
THREE_SIGMA = Rule(high=found.THREE_SIGMA, said="at most 3 σ")
NULL = "relevance is drawn anew: a value beyond chance is made by the design"
BINOMIAL = "places of the lists are independent draws if the design is fair"
EXACT = "exact, on tables of probabilities"

DATA_CLAIMS = (
    Claim(
        "4-01", "Fig. 2", "The null data have 57 % of liked ratings, as MovieLens 1M has.",
        found.liked_share, near(0.57, 0.006), "a count, printed with two decimals",
        published="0.57", data=ML1M,
    ),
    Claim(
        "4-02", "Fig. 2, §7.2",
        "On null data with a random split and full targets, popularity and collaborative "
        "filtering score far better than random.",
        found.free_judgments_favour, CLEARLY, NULL, published="far above random (figure)",
        data=ML1M, asks=CLEARLY,
        question="Does a random split favour popularity and collaborative filtering where nobody "
        "has any taste?",
    ),
    Claim(
        "4-03", "§7.2", "The bias towards collaborative filtering is even stronger than that "
        "towards popularity.",
        found.filtering_above_popularity, above(1), "only the order: relative to popularity",
        published="even stronger", data=ML1M, asks=above(1),
        question="Does a random split favour collaborative filtering more than popularity?",
    ),
    Claim(
        "4-04", "§7.2", "There is no bias for or against the average rating: it is as effective "
        "as random recommendation.",
        found.average_at_chance, between(0.5, 2).open(),
        "within a factor of two of chance, as few items lead. The paper does not state the "
        "smoothing: μ is taken from the authors' earlier code, and decides",
        published="as random", data=ML1M, asks=between(0.5, 2).open(),
        question="Does a random split leave the average rating near chance where nobody has any "
        "taste?",
    ),
    Claim(
        "4-05", "§5.1.2, §7.2", "A flat test reduces the bias to popularity, but keeps some.",
        found.flat_keeps_some, SOME, "share of the excess over chance under the random split",
        published="reduced, still there", data=ML1M, asks=SOME,
        question="Does a flat test reduce the bias to popularity, but keep some?",
    ),
    Claim(
        "4-06", "§5.1.3, §7.2", "Popularity bins reduce the bias to popularity, but keep some.",
        found.bins_keep_some, SOME, "share of the excess over chance under the random split",
        published="reduced, still there", data=ML1M, asks=SOME,
        question="Do popularity bins reduce the bias to popularity, but keep some?",
    ),
    Claim(
        "4-07", "§7.2", "With forced judgments no bias at all is seen.",
        found.forced_is_fair, THREE_SIGMA, BINOMIAL, published="no noticeable bias", data=ML1M,
        asks=THREE_SIGMA,
        question="Would forced judgments leave all systems at chance where nobody has any taste?",
    ),
    Claim(
        "4-08", "§6.1, §7.2", "With test targets all systems are at the level of random on null "
        "data.",
        found.fair_test_targets, THREE_SIGMA, BINOMIAL, published="at random level",
        data=ML1M, asks=THREE_SIGMA,
        question="Do test targets leave all systems at chance where nobody has any taste?",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-09", "§7.2", "On the real data with test targets the average rating is at least as "
        "good as popularity, and collaborative filtering is no better than it.",
        found.average_under_test_targets, at_least(0).open(),
        "only the order, with the interval over users; settings were optimised informally",
        published="no better", data=ML1M,
        asks=at_least(0).open(),
        question="With test targets, is nothing better than the average rating?",
    ),
    Claim(
        "4-10", "§7.2", "Under the random split real and null results of popularity and "
        "collaborative filtering are alike: a large fraction of what is measured could be bias.",
        found.null_looks_real, above(0.5),
        "a large fraction: more than half of what each has above chance",
        published="similarities, a large fraction", data=ML1M, asks=above(0.5),
        question="Is more than half of what popularity and collaborative filtering have above "
        "chance there without any taste?",
    ),
)  # fmt: skip

FORMAL_CLAIMS = (
    Claim(
        "4-11", "Eqs. 2, 3", "With a random split a liked target is the more likely to be judged "
        "the larger p(judged | liked, i) is.",
        found.random_split_rises, true(), EXACT, published="∝ p(J|ℛ, i)",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-12", "Eq. 4", "With a flat test the bias is against popular items if judging depends "
        "on liking only, and towards them if it depends on the item only.",
        found.flat_test_both_ways, true(), "exact, and beyond 3 σ in two simulated worlds",
        published="∝ 1 / p(J|i), or ∝ p(J|i)",
        evidence=MEASURED,
    ),
    Claim(
        "4-13", "§5.2.1", "Judgments that are both free and forced belong to training: taken out "
        "of training instead, they make a bias to popular items.",
        found.overlap_goes_to_training, true(), "the sign beyond 3 σ, chance within 3 σ",
        published="the latter is the correct choice",
        evidence=MEASURED,
    ),
    Claim(
        "4-14", "§5.2.1", "If the forced test is very sparse, that bias is quite weak, possibly "
        "hardly even noticeable.",
        found.sparse_overlap, at_most(1.05), "weak: popularity at most 5 % above chance",
        published="quite weak",
        evidence=MEASURED,
    ),
    Claim(
        "4-15", "§5.2.2", "Sampling liked judgments outside training with the probability given "
        "makes the chance to be tested the same for all items, and the test as large as it can be.",
        found.thinning_is_even, true(), EXACT, published="the largest test set",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-16", "§7.1", "Forced judgments drawn as described have the density p(J) for every item.",
        found.forced_density_of_items, Rule(high=0.01, said="at most 1 % of the items off by 3 σ"),
        "0.3 % of the items are off by chance", published="uniform over items and users",
        data=ML1M, asks=at_most(0.01),
        question="Do forced judgments drawn on top of these ratings have the same density for "
        "every item?",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-17", "§6.1", "Test targets are fair whatever the split.",
        found.splits_with_test_targets, THREE_SIGMA, BINOMIAL,
        published="regardless of the split protocol",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-18", "§6.2", "A fixed number of sampled targets for each user keeps the bias to "
        "popularity, unless that number approaches zero.",
        found.user_flat_keeps, above(2), "popularity more than twice chance from 100 targets on",
        published="essentially unaltered", data=ML1M, asks=above(1),
        question="Do sampled targets keep the bias to popularity?",
    ),
    Claim(
        "4-19", "§5.3.2", "If users judge everything that is recommended, estimates are the truth.",
        found.forced_online, exactly(0), "exact: every shown item is judged", published="P̂ ∼ P",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-20", "§4.2", "Recall is estimated fairly under the same condition as precision.",
        found.recall_is_fair_too, THREE_SIGMA, "hits that are judged are independent draws",
        published="the same conditions",
        evidence=ALGEBRA,
    ),
    Claim(
        "4-21", "§7.2", "Recall shows the same trends as precision.",
        found.recall_trends, exactly(7), "seven trends, only signs and order",
        published="equivalent trends", data=ML1M, asks=at_least(6),
        question="Does recall show the trends that precision shows?",
    ),
)  # fmt: skip

MORE_CLAIMS = (
    Claim(
        "4-22", "§5.1.3", "Within popularity bins popularity varies less than over all items.",
        found.popularity_within_bins, below(1), "coefficients of variation; one random split",
        published="the variance is smaller", data=ML1M, asks=below(1),
        question="Does popularity vary less within popularity bins?",
    ),
    Claim(
        "4-23", "§5.3.1", "Online tests with free clicks, and interleaving above all, compare "
        "systems fairly where all are subject to the same biases.",
        found.clicks_find_the_better, at_least(0.9),
        "the truly better system is ahead in nine of ten pairs after 30,000 impressions",
        published="fair qualitative comparisons",
        evidence=MEASURED,
    ),
    Claim(
        "4-24", "§5.3.1", "If clicks follow fashion, a system that recommends what is in fashion "
        "is unfairly rewarded.",
        found.fashion_rewards, above(0.05), "more wrong wins of popularity than a test at 5 % has",
        published="unfairly rewarded",
        evidence=MEASURED,
    ),
    Claim(
        "4-25", "§5.3.2", "Judgments of an online test, used again, penalise systems that did not "
        "take part.",
        found.newcomers_lose, below(0), "the sign of the error, in the mean of drawn worlds",
        published="unfairly favour similar algorithms",
        evidence=MEASURED,
    ),
    Claim(
        "4-26", "Eq. 1", "An experiment is fair to all systems if liked targets of all items are "
        "equally likely to be judged.",
        found.items_are_not_enough, near(1, 0.1),
        "equally good systems should score alike within a tenth", published="equivalent",
        evidence=MEASURED,
    ),
    Claim(
        "4-27", "§6.1", "Test targets give fair comparisons in all metrics; read as: in the order "
        "that the truth over all items has.",
        found.all_items_and_test_targets, true(), "exact: two systems, six users",
        published="fair comparisons in all metrics",
        evidence=ALGEBRA, kind=NOTE,
    ),
    Claim(
        "4-28", "§5.2.2", "The sampling leaves a test set to evaluate with when training shares "
        "are counted from data of the size of CM100k.",
        found.thinning_in_worlds, at_least(0.1), "a tenth of the liked judgments outside training",
        published="the largest test set meeting this condition",
        evidence=MEASURED, kind=NOTE,
    ),
    Claim(
        "4-29", "§5.2.2", "The sampling leaves a test set to evaluate with on CM100k.",
        found.thinning_of_data, at_least(0.1), "a tenth of the liked judgments outside training",
        published="the largest test set meeting this condition", data=("cm100k",),
        asks=at_least(0.1),
        question="Does the sampling of forced judgments leave a test set to evaluate with?",
        kind=NOTE,
    ),
    Claim(
        "4-30", "§5.2.1", "In Yahoo! R3, where the overlap seems to have left training, the bias "
        "to popular items can be hardly noticeable.",
        found.overlap_of_data, at_most(1.05), "expected: popularity at most 5 % above chance",
        published="quite weak", data=("yahoo-r3",), asks=at_most(1.05),
        question="Would taking the overlap out of training leave hardly any bias to popular items?",
    ),
    Claim(
        "4-31", "§5.1.4",
        "A temporal split keeps a bias to popularity, weaker than that of a random split.",
        found.temporal_keeps_some, SOME, "share of the excess over chance under the random split. "
        "Without time stamps in ML-1M it is asked of ML-100K",
        published="weaker, not bias-free", data=("ml-1m", "ml-100k"), asks=SOME,
        question="Does a temporal split keep some of the bias to popularity, but less?",
    ),
    Claim(
        "4-32", "§7.2", "What the average rating scores in a usual experiment is not due to the "
        "design, unlike with popularity.",
        found.not_the_average, below(0.5), "less than half of what it has above chance",
        published="interestingly, not the average rating", data=ML1M, asks=below(0.5),
        question="Is less than half of what the average rating has above chance there without any "
        "taste?",
    ),
    Claim(
        "4-33", "§3.1", "Precision is |R∩ℛ| / |ℛ| and recall |R∩ℛ| / |R|, as printed.",
        found.printed_precision, true(), EXACT, published="P = |R∩ℛ| / |ℛ|",
        evidence=ALGEBRA,
    ),
)  # fmt: skip

CLAIMS = DATA_CLAIMS + FORMAL_CLAIMS + MORE_CLAIMS
