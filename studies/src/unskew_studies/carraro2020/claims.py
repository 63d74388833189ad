"""carraro2020: its claims."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.carraro2020 import checks
from unskew_studies.carraro2020 import checks_means as means
from unskew_studies.carraro2020.printed import BOTH, COAT, IMPERSONAL, PERSONAL, R3
from unskew_studies.paper import NOTE, Claim, algebra, measured, printed

ORDER = "only the order: sizes depend on settings of the systems that are not published"
JACKKNIFE = "intervals are the jackknife's over repetitions"

CLAIMS = (
    Claim(
        key="2-01",
        place="Table 1",
        statement="Coat has 4,640 random and 6,960 chosen ratings of 300 items by 290 users: 16 "
        "and 24 per user, 15 and 23 per item, 2.22 and 2.61 on average.",
        published="14 cells",
        evidence=measured(
            check=checks.table_1,
            rule=rules.exactly(14),
            why="counts; the table cuts numbers off instead of rounding them",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-02",
        place="Table 1",
        statement="Webscope R3 has 54k random and 129k chosen ratings of 1,000 items by 5,400 "
        "users: 10 and 23 per user, 54 and 129 per item, 1.81 and 2.87 on average.",
        published="14 cells",
        evidence=measured(
            check=checks.table_1,
            rule=rules.exactly(14),
            why="counts; the table cuts numbers off instead of rounding them",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-03",
        place="§3.1, Eqs. 1–2",
        statement="In the random part users and items are about equally frequent.",
        published="roughly uniform",
        question="Are users and items equally frequent in the random part?",
        evidence=measured(
            check=checks.random_part,
            rule=rules.at_least(0.01),
            why="Cochran's Q at the 1 % level, one-sided: counts that are more even than chance "
            "are no objection",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-04",
        place="§5.3, §6",
        statement="A random half of the held-out ratings (REG) gives about the same errors as all "
        "of them (FULL).",
        published="up to 9 points",
        question="Does half of the held-out ratings say the same as all?",
        evidence=measured(
            check=means.half_like_all,
            rule=rules.at_most(10),
            why=f"10 points, as the printed cells differ by up to 9; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-05",
        place="Table 2",
        statement="On Coat's random ratings PosPop, AvgRating, UB_KNN, IB_KNN and MF have "
        "Recall@10 .066, .068, .067, .073 and .063.",
        published=".066 / .068 / .067 / .073 / .063",
        evidence=measured(
            check=checks.truths,
            rule=rules.at_most(0.012).open(),
            why="about three standard errors over ten splits (random ranks have .035); the "
            "settings of the nearest-neighbour systems are not published",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-06",
        place="Table 2",
        statement="On the random ratings of Webscope R3 they have Recall@10 .056, .016, .073, "
        ".071 and .077.",
        published=".056 / .016 / .073 / .071 / .077",
        evidence=measured(
            check=checks.truths,
            rule=rules.at_most(0.006).open(),
            why="about three standard errors over ten splits; the settings of the "
            "nearest-neighbour systems are not published",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-07",
        place="Table 2",
        statement="On Coat the errors of the five test sets are those of table 2.",
        published="25 cells",
        evidence=measured(
            check=partial(checks.cells_agree, within=25.0),
            rule=rules.exactly(25).open(),
            why="within 25 points: ratios of noisy means",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-08",
        place="Table 2",
        statement="On Webscope R3 the errors of the five test sets are those of table 2.",
        published="25 cells",
        evidence=measured(
            check=partial(checks.cells_agree, within=15.0),
            rule=rules.exactly(25).open(),
            why="within 15 points: ratios of noisy means",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-09",
        place="§6, Table 2",
        statement="On Coat every test set over-estimates every system, but for PosPop on WTD_H.",
        published="24 of 25 cells above 0",
        question="Does every test set over-estimate every system, but for PosPop on WTD_H?",
        evidence=measured(
            check=checks.signs,
            rule=rules.exactly(1),
            why="signs of the cells printed with 25 points and more; the others are noise",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-10",
        place="§6, Table 2",
        statement="On Coat WTD is the nearest to the truth for non-personalised systems.",
        published="leads by 12 points",
        question="Is WTD the nearest to the truth for the non-personalised systems?",
        evidence=measured(
            check=partial(means.nearest_set, name="wtd", systems=IMPERSONAL),
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-11",
        place="§6, Table 2",
        statement="On Coat WTD_H is the nearest to the truth for the personalised systems.",
        published="leads by 21 points",
        question="Is WTD_H the nearest to the truth for the personalised systems?",
        evidence=measured(
            check=partial(means.nearest_set, name="wtd-h", systems=PERSONAL),
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-12",
        place="§6, Table 2",
        statement="On Webscope R3 every test set under-estimates AvgRating.",
        published="−49 % at the most",
        question="Does every test set under-estimate AvgRating?",
        evidence=measured(
            check=partial(means.error_of_system, system="AvgRating"),
            rule=rules.below(0),
            why=f"sign; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-13",
        place="§6, Table 2",
        statement="On Webscope R3 SKEW, WTD and WTD_H are equally good for AvgRating.",
        published="2 points apart",
        question="Are SKEW, WTD and WTD_H equally good for AvgRating?",
        evidence=measured(
            check=means.equally_good,
            rule=rules.at_most(10),
            why=f"10 points: ratios of noisy means; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-14",
        place="§6, Table 2",
        statement="On Webscope R3 SKEW is the nearest to the truth for PosPop.",
        published="leads by 54 points",
        question="Is SKEW the nearest to the truth for PosPop?",
        evidence=measured(
            check=partial(means.nearest_set, name="skew", systems=("PosPop",)),
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-15",
        place="§6, Table 2",
        statement="On Webscope R3 WTD and WTD_H are nearer to the truth than SKEW for the "
        "personalised systems.",
        published="lead by 11 points",
        question="Are WTD and WTD_H nearer to the truth than SKEW for the personalised systems?",
        evidence=measured(
            check=means.nearer_than_skew,
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-16",
        place="§6, Table 2",
        statement="On Webscope R3 WTD is nearer to the truth than WTD_H for PosPop, UB_KNN and "
        "IB_KNN; WTD_H is for MF and AvgRating.",
        published="lead by 2 points",
        question="Is WTD nearer than WTD_H for PosPop, UB_KNN and IB_KNN, and farther for MF and "
        "AvgRating?",
        evidence=measured(
            check=means.wtd_against_wtd_h,
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-17",
        place="Table 3",
        statement="Kendall's τ to the true order of the five systems is .2, .2, 0, 0, 0 on Coat "
        "and .6, .6, .8, .8, .8 on Webscope R3.",
        published="10 cells",
        evidence=printed(
            check=checks.table_3, rule=rules.exactly(10), why="arithmetic from table 2"
        ),
    ),
    Claim(
        key="2-18",
        place="Table 4",
        statement="Without MF, τ on Coat is .3, .3, .7, .7, .7.",
        published="5 cells",
        evidence=printed(
            check=checks.table_4_coat,
            rule=rules.exactly(5),
            why="arithmetic from table 2, to one decimal",
        ),
    ),
    Claim(
        key="2-19",
        place="Table 4",
        statement="Without MF, τ on Webscope R3 is .68 for every test set.",
        published=".68",
        evidence=printed(
            check=checks.table_4_r3,
            rule=rules.near(0.68, 0.005),
            why="arithmetic from table 2, to two decimals",
        ),
    ),
    Claim(
        key="2-20",
        place="§6",
        statement="On Coat every biased test set ranks MF among the best, and it is the worst by "
        "the truth.",
        published="5th by truth, 3rd or better",
        question="Does every biased test set rank MF higher than the truth?",
        evidence=measured(
            check=checks.place_of_mf,
            rule=rules.at_least(2),
            why="ranks between the truth and the test set that "
            f"ranks MF lowest, of which table 2 has two; {JACKKNIFE}",
            data=(COAT,),
            question_rule=rules.at_least(1),
        ),
    ),
    Claim(
        key="2-21",
        place="§6, §7, Table 2",
        statement="SKEW, WTD and WTD_H are nearer to the truth than FULL on average over systems.",
        published="by 80 (Coat) and 193 points (R3)",
        question="Are SKEW, WTD and WTD_H nearer to the truth than FULL on average?",
        evidence=printed(
            check=checks.printed_gain,
            rule=rules.above(0),
            why="arithmetic from table 2: the mean size of the errors in points, FULL → SKEW / "
            "WTD / WTD_H; what counts is the smallest gain",
        )
        + measured(
            check=means.nearer_than_full,
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-22",
        place="§4.2, Eq. 7",
        statement="WTD makes the posteriors of items in the test set similar to those of the "
        "random ratings.",
        published="approximately the same",
        question="Is WTD's test set nearer to the random ratings' items than REG's?",
        evidence=measured(
            check=checks.nearer_to_random,
            rule=rules.below(1),
            why="total variation between the shares of items, as a multiple of "
            f"that of a random set of the same size; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-23",
        place="§4.2",
        statement="Squared weights of items raise the effect of items: those above 1 grow, those "
        "below 1 shrink.",
        evidence=algebra(check=checks.squared_weights, rule=rules.true(), why="exact"),
    ),
    Claim(
        key="2-24",
        place="§5.2",
        statement="Intervened test sets have half the size of the held-out ratings.",
        published="50 %",
        question="Have intervened test sets half the size of the held-out ratings?",
        evidence=algebra(
            check=checks.half_size, rule=rules.true(), why="exact, rounded down", data=BOTH
        ),
    ),
    Claim(
        key="2-25",
        place="§6",
        statement="The errors of precision, MAP and nDCG are very similar to those of recall.",
        published="very similar",
        question="Are errors of precision, MAP and nDCG near those of recall?",
        evidence=measured(
            check=checks.nearness_of_metrics,
            rule=rules.at_most(25),
            why="25 points on average over the cells of table 2, the "
            f"noise of one cell; the metric that is farthest counts; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-26",
        place="§5.1–5.2",
        statement="The paper does not mention pairs that are in both parts.",
        published="not mentioned",
        question="Do pairs that are in both parts move errors by 10 points at the most?",
        kind=NOTE,
        evidence=measured(
            check=checks.pairs_in_both,
            rule=rules.at_most(10),
            why="the largest change of a cell of table 2, in points, when such "
            f"pairs leave the truth; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-27",
        place="§5.3, released code",
        statement="A user or item without ratings gets a posterior of 0.0001, whose effect depends "
        "on the number of users.",
        published="0.0001",
        kind=NOTE,
        evidence=algebra(
            check=checks.stand_in_for_zero,
            rule=rules.near(1, 0.1),
            why=(
                "the replacement of zero as a share of the average posterior, Webscope R3's to "
                "Coat's"
            ),
        ),
    ),
    Claim(
        key="2-28",
        place="§3.2, Eqs. 4–5",
        statement="In ratings that users chose, neither users nor items are equally frequent in "
        "general.",
        published="not uniform",
        question="Are neither users nor items equally frequent in your ratings?",
        evidence=measured(
            check=checks.chosen_part,
            rule=rules.below(0.01).open(),
            why="Cochran's Q at the 1 % level, for users and items; 'in general' leaves "
            "exceptions open",
            data=BOTH,
        ),
    ),
    Claim(
        key="2-29",
        place="§6",
        statement="On Coat WTD_H is at most around 50 % off the truth for every system but MF.",
        published="43 %",
        question="Is WTD_H at most around 50 % off the truth for every system but MF?",
        evidence=measured(
            check=means.worst_of_wtd_h,
            rule=rules.at_most(60).open(),
            why="60 for 'around 50'; sizes depend on settings of the systems that are not "
            f"published; {JACKKNIFE}",
            data=(COAT,),
        ),
    ),
    Claim(
        key="2-30",
        place="§6, Table 2",
        statement="On Webscope R3 SKEW, WTD and WTD_H are nearer to the truth than FULL and REG "
        "for AvgRating.",
        published="lead by 26 points",
        question="Are SKEW, WTD and WTD_H nearer to AvgRating's truth than FULL, REG?",
        evidence=measured(
            check=means.nearer_than_baselines,
            rule=rules.above(0),
            why=f"{ORDER}; {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-32",
        place="§6, Table 3",
        statement="On Webscope R3 SKEW, WTD and WTD_H order the systems more as the truth does "
        "than FULL.",
        published=".2",
        question="Do SKEW, WTD and WTD_H order the systems more as the truth does than FULL?",
        evidence=measured(
            check=means.orders_better_than_full,
            rule=rules.above(0),
            why="the least τ of the three beyond that of FULL; with five systems even τ = .8 may "
            f"be chance (p = .083); {JACKKNIFE}",
            data=(R3,),
        ),
    ),
    Claim(
        key="2-33",
        place="§4.3",
        statement="The weights of WTD_H make the items of the test set more equally frequent.",
        question="Does WTD_H make the items of the test set more equally frequent?",
        evidence=measured(
            check=partial(checks.flattened, name="wtd-h"),
            rule=rules.below(1),
            why="divergence from uniform in the test set, as a "
            f"multiple of that in the held-out ratings; {JACKKNIFE}",
            data=BOTH,
        ),
    ),
)
