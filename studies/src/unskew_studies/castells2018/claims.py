"""castells2018: its claims."""

from __future__ import annotations

from unskew_studies import rules
from unskew_studies.castells2018 import checks
from unskew_studies.paper import NOTE, Claim, algebra, measured

ML1M = ("ml-1m",)
SOME = rules.Rule(0.0, 1.0, strict=True, text="some of it, less than all")
CLEARLY = rules.Rule(low=1.0, strict=True, text="> 1 with p < .001")
THREE_SIGMA = rules.Rule(high=checks.THREE_SIGMA, text="at most 3 σ")
NULL = "relevance is redrawn, so a value beyond chance comes from the design"
BINOMIAL = "places of the lists are independent draws if the design is fair"
EXACT = "exact, on tables of probabilities"


CLAIMS = (
    Claim(
        key="4-01",
        place="Fig. 2",
        statement="The null data have 57 % of liked ratings, as MovieLens 1M has.",
        published="0.57",
        evidence=measured(
            check=checks.liked_share,
            rule=rules.near(0.57, 0.006),
            why="a count, printed with two decimals",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-02",
        place="Fig. 2, §7.2",
        statement="On null data with a random split and full targets, popularity and "
        "collaborative filtering score far better than random.",
        published="far above random (figure)",
        question="Does a random split favour popularity and collaborative filtering where nobody "
        "has any taste?",
        evidence=measured(check=checks.free_judgments_favour, rule=CLEARLY, why=NULL, data=ML1M),
    ),
    Claim(
        key="4-03",
        place="§7.2",
        statement="The bias towards collaborative filtering is even stronger than that towards "
        "popularity.",
        published="even stronger",
        question="Does a random split favour collaborative filtering more than popularity?",
        evidence=measured(
            check=checks.filtering_above_popularity,
            rule=rules.above(1),
            why="only the order: relative to popularity",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-04",
        place="§7.2",
        statement="There is no bias for or against the average rating: it is as effective as "
        "random recommendation.",
        published="as random",
        question="Does a random split leave the average rating near chance where nobody has any "
        "taste?",
        evidence=measured(
            check=checks.average_at_chance,
            rule=rules.between(0.5, 2).open(),
            why="within a factor of two of chance, as few items lead. The paper does not state "
            "the smoothing: μ is taken from the authors' earlier code, and decides",
            data=ML1M,
            question_rule=rules.between(0.5, 2).open(),
        ),
    ),
    Claim(
        key="4-05",
        place="§5.1.2, §7.2",
        statement="A flat test reduces the bias to popularity, but keeps some.",
        published="reduced, still there",
        question="Does a flat test reduce the bias to popularity, but keep some?",
        evidence=measured(
            check=checks.flat_keeps_some,
            rule=SOME,
            why="share of the excess over chance under the random split",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-06",
        place="§5.1.3, §7.2",
        statement="Popularity bins reduce the bias to popularity, but keep some.",
        published="reduced, still there",
        question="Do popularity bins reduce the bias to popularity, but keep some?",
        evidence=measured(
            check=checks.bins_keep_some,
            rule=SOME,
            why="share of the excess over chance under the random split",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-07",
        place="§7.2",
        statement="With forced judgments no bias at all is seen.",
        published="no noticeable bias",
        question="Would forced judgments leave all systems at chance where nobody has any taste?",
        evidence=measured(check=checks.forced_is_fair, rule=THREE_SIGMA, why=BINOMIAL, data=ML1M),
    ),
    Claim(
        key="4-08",
        place="§6.1, §7.2",
        statement="With test targets all systems are at the level of random on null data.",
        published="at random level",
        question="Do test targets leave all systems at chance where nobody has any taste?",
        evidence=algebra(check=checks.fair_test_targets, rule=THREE_SIGMA, why=BINOMIAL, data=ML1M),
    ),
    Claim(
        key="4-09",
        place="§7.2",
        statement="On the real data with test targets the average rating is at least as good as "
        "popularity, and collaborative filtering is no better than it.",
        published="no better",
        question="With test targets, is nothing better than the average rating?",
        evidence=measured(
            check=checks.average_under_test_targets,
            rule=rules.at_least(0).open(),
            why="only the order, with the interval over users; settings were optimised informally",
            data=ML1M,
            question_rule=rules.at_least(0).open(),
        ),
    ),
    Claim(
        key="4-10",
        place="§7.2",
        statement="Under the random split real and null results of popularity and collaborative "
        "filtering are alike: a large fraction of what is measured could be bias.",
        published="similarities, a large fraction",
        question="Is more than half of what popularity and collaborative filtering have above "
        "chance there without any taste?",
        evidence=measured(
            check=checks.null_looks_real,
            rule=rules.above(0.5),
            why="a large fraction: more than half of what each has above chance",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-11",
        place="Eqs. 2, 3",
        statement="With a random split a liked target is the more likely to be judged the larger "
        "p(judged | liked, i) is.",
        published="∝ p(J|ℛ, i)",
        evidence=algebra(check=checks.random_split_rises, rule=rules.true(), why=EXACT),
    ),
    Claim(
        key="4-12",
        place="Eq. 4",
        statement="With a flat test the bias is against popular items if judging depends on "
        "liking only, and towards them if it depends on the item only.",
        published="∝ 1 / p(J|i), or ∝ p(J|i)",
        evidence=measured(
            check=checks.flat_test_both_ways,
            rule=rules.true(),
            why="exact, and beyond 3 σ in two simulated worlds",
        ),
    ),
    Claim(
        key="4-13",
        place="§5.2.1",
        statement="Judgments that are both free and forced belong to training: taken out of "
        "training instead, they make a bias to popular items.",
        published="the latter is the correct choice",
        evidence=measured(
            check=checks.overlap_goes_to_training,
            rule=rules.true(),
            why="the sign beyond 3 σ, chance within 3 σ",
        ),
    ),
    Claim(
        key="4-14",
        place="§5.2.1",
        statement="If the forced test is very sparse, that bias is quite weak, possibly hardly "
        "even noticeable.",
        published="quite weak",
        evidence=measured(
            check=checks.sparse_overlap,
            rule=rules.at_most(1.05),
            why="weak: popularity at most 5 % above chance",
        ),
    ),
    Claim(
        key="4-15",
        place="§5.2.2",
        statement="Sampling liked judgments outside training with the probability given makes the "
        "chance to be tested the same for all items, and the test as large as it can be.",
        published="the largest test set",
        evidence=algebra(check=checks.thinning_is_even, rule=rules.true(), why=EXACT),
    ),
    Claim(
        key="4-16",
        place="§7.1",
        statement="Forced judgments drawn as described have the density p(J) for every item.",
        published="uniform over items and users",
        question="Do forced judgments drawn on top of these ratings have the same density for "
        "every item?",
        evidence=algebra(
            check=checks.forced_density_of_items,
            rule=rules.Rule(high=0.01, text="at most 1 % of the items off by 3 σ"),
            why="0.3 % of the items are off by chance",
            data=ML1M,
            question_rule=rules.at_most(0.01),
        ),
    ),
    Claim(
        key="4-17",
        place="§6.1",
        statement="Test targets are fair whatever the split.",
        published="regardless of the split protocol",
        evidence=algebra(check=checks.splits_with_test_targets, rule=THREE_SIGMA, why=BINOMIAL),
    ),
    Claim(
        key="4-18",
        place="§6.2",
        statement="A fixed number of sampled targets for each user keeps the bias to popularity, "
        "unless that number approaches zero.",
        published="essentially unaltered",
        question="Do sampled targets keep the bias to popularity?",
        evidence=measured(
            check=checks.user_flat_keeps,
            rule=rules.above(2),
            why="popularity more than twice chance from 100 targets on",
            data=ML1M,
            question_rule=rules.above(1),
        ),
    ),
    Claim(
        key="4-19",
        place="§5.3.2",
        statement="If users judge everything that is recommended, estimates are the truth.",
        published="P̂ ∼ P",
        evidence=algebra(
            check=checks.forced_online,
            rule=rules.exactly(0),
            why="exact: every shown item is judged",
        ),
    ),
    Claim(
        key="4-20",
        place="§4.2",
        statement="Recall is estimated fairly under the same condition as precision.",
        published="the same conditions",
        evidence=algebra(
            check=checks.recall_is_fair_too,
            rule=THREE_SIGMA,
            why="hits that are judged are independent draws",
        ),
    ),
    Claim(
        key="4-21",
        place="§7.2",
        statement="Recall shows the same trends as precision.",
        published="equivalent trends",
        question="Does recall show the trends that precision shows?",
        evidence=measured(
            check=checks.recall_trends,
            rule=rules.exactly(7),
            why="seven trends, only signs and order",
            data=ML1M,
            question_rule=rules.at_least(6),
        ),
    ),
    Claim(
        key="4-22",
        place="§5.1.3",
        statement="Within popularity bins popularity varies less than over all items.",
        published="the variance is smaller",
        question="Does popularity vary less within popularity bins?",
        evidence=measured(
            check=checks.popularity_within_bins,
            rule=rules.below(1),
            why="coefficients of variation; one random split",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-23",
        place="§5.3.1",
        statement="Online tests with free clicks, and interleaving above all, compare systems "
        "fairly where all are subject to the same biases.",
        published="fair qualitative comparisons",
        evidence=measured(
            check=checks.clicks_find_the_better,
            rule=rules.at_least(0.9),
            why="the truly better system is ahead in nine of ten pairs after 30,000 impressions",
        ),
    ),
    Claim(
        key="4-24",
        place="§5.3.1",
        statement="If clicks follow fashion, a system that recommends what is in fashion is "
        "unfairly rewarded.",
        published="unfairly rewarded",
        evidence=measured(
            check=checks.fashion_rewards,
            rule=rules.above(0.05),
            why="more wrong wins of popularity than a test at 5 % has",
        ),
    ),
    Claim(
        key="4-25",
        place="§5.3.2",
        statement="Judgments of an online test, used again, penalise systems that did not take "
        "part.",
        published="unfairly favour similar algorithms",
        evidence=measured(
            check=checks.newcomers_lose,
            rule=rules.below(0),
            why="the sign of the error, in the mean of drawn worlds",
        ),
    ),
    Claim(
        key="4-26",
        place="Eq. 1",
        statement="An experiment is fair to all systems if liked targets of all items are equally "
        "likely to be judged.",
        published="equivalent",
        evidence=measured(
            check=checks.items_are_not_enough,
            rule=rules.near(1, 0.1),
            why="equally good systems should score alike within a tenth",
        ),
    ),
    Claim(
        key="4-27",
        place="§6.1",
        statement="Test targets give fair comparisons in all metrics; read as: in the order that "
        "the truth over all items has.",
        published="fair comparisons in all metrics",
        kind=NOTE,
        evidence=algebra(
            check=checks.all_items_and_test_targets,
            rule=rules.true(),
            why="exact: two systems, six users",
        ),
    ),
    Claim(
        key="4-28",
        place="§5.2.2",
        statement="The sampling leaves a test set to evaluate with, on CM100k and on simulated "
        "data of its size.",
        published="the largest test set meeting this condition",
        question="Does the sampling of forced judgments leave a test set to evaluate with?",
        kind=NOTE,
        evidence=measured(
            check=checks.thinning_in_worlds,
            rule=rules.at_least(0.1),
            why="a tenth of the liked judgments outside training",
        )
        + measured(
            check=checks.thinning_of_data,
            rule=rules.at_least(0.1),
            why="a tenth of the liked judgments outside training",
            data=("cm100k",),
        ),
    ),
    Claim(
        key="4-30",
        place="§5.2.1",
        statement="In Yahoo! R3, where the overlap seems to have left training, the bias to "
        "popular items can be hardly noticeable.",
        published="quite weak",
        question="Would taking the overlap out of training leave hardly any bias to popular items?",
        evidence=measured(
            check=checks.overlap_of_data,
            rule=rules.at_most(1.05),
            why="expected: popularity at most 5 % above chance",
            data=("yahoo-r3",),
        ),
    ),
    Claim(
        key="4-31",
        place="§5.1.4",
        statement="A temporal split keeps a bias to popularity, weaker than that of a random "
        "split.",
        published="weaker, not bias-free",
        question="Does a temporal split keep some of the bias to popularity, but less?",
        evidence=measured(
            check=checks.temporal_keeps_some,
            rule=SOME,
            why="share of the excess over chance under the random split. Without time stamps in "
            "ML-1M it is asked of ML-100K",
            data=("ml-1m", "ml-100k"),
        ),
    ),
    Claim(
        key="4-32",
        place="§7.2",
        statement="What the average rating scores in a usual experiment is not due to the design, "
        "unlike with popularity.",
        published="interestingly, not the average rating",
        question="Is less than half of what the average rating has above chance there without any "
        "taste?",
        evidence=measured(
            check=checks.not_the_average,
            rule=rules.below(0.5),
            why="less than half of what it has above chance",
            data=ML1M,
        ),
    ),
    Claim(
        key="4-33",
        place="§3.1",
        statement="Precision is |R∩ℛ| / |ℛ| and recall |R∩ℛ| / |R|, as printed.",
        published="P = |R∩ℛ| / |ℛ|",
        evidence=algebra(check=checks.printed_precision, rule=rules.true(), why=EXACT),
    ),
)
