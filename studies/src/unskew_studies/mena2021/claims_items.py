"""mena2021: claims about the data, items and pairs of items."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.mena2021 import checks_items as checks
from unskew_studies.mena2021.claims import (
    ALL,
    CM,
    COUNTS,
    KNOWN,
    LOGIC,
    ML,
    ROUNDED,
    YAHOO,
    within,
)
from unskew_studies.paper import Claim, algebra, measured

CLAIMS = (
    Claim(
        key="3-01",
        place="Table 2",
        statement="The sizes of the three data sets are as printed.",
        published="6,040 x 3,706; 5,400 x 1,000; 1,054 x 1,084",
        evidence=measured(
            check=checks.same_sizes,
            rule=rules.Rule(high=0.0, text="none differs"),
            why=COUNTS,
            data=ALL,
        ),
    ),
    Claim(
        key="3-06",
        place="§6.2",
        statement="The optimal rankings for observed precision and anti-precision disagree on "
        "82.4 % of item pairs.",
        published="82.4 %",
        question="Do the best orders for precision and anti-precision disagree on most item pairs?",
        evidence=measured(
            check=partial(
                checks.percent,
                what="disagree",
                note="On all ratings, ties apart; on 80 % of them 81.96 %.",
            ),
            rule=rules.near(82.4, 0.2),
            why=ROUNDED,
            data=(ML,),
            question_rule=rules.above(50),
        ),
    ),
    Claim(
        key="3-07",
        place="Fig. 5",
        statement="Shares of item pairs on which popularity and average rating agree (popularity "
        "steeper, not steeper) and disagree (popularity steeper, not steeper).",
        published="52.6 / 8.6 / 29.8 / 9.0 %",
        question="Is it the most frequent case that popularity and rating agree and popularity is "
        "the steeper?",
        evidence=measured(
            check=partial(checks.four_cases, prefix=""),
            rule=within(0.1),
            why=f"{ROUNDED}; ties count as disagreement",
            data=(ML,),
            question_rule=rules.true(),
        ),
    ),
    Claim(
        key="3-08",
        place="§6.2",
        statement="Popularity (here: its odds, as in Lemma 1) is steeper than both relevance and "
        "non-relevance on 63.3 % of item pairs.",
        published="63.3 %",
        question="Are the odds of popularity steeper than relevance and non-relevance on most "
        "item pairs?",
        evidence=measured(
            check=checks.steeper_than_both,
            rule=rules.near(63.3, 0.2).open(),
            why=f"{ROUNDED}. Which ratings were counted, and whether odds were taken, is not "
            "stated",
            data=(ML,),
            question_rule=rules.above(50),
        ),
    ),
    Claim(
        key="3-09",
        place="Lemma 1",
        statement="The optimal rankings disagree exactly if the odds of popularity disagree with, "
        "and are steeper than, relevance or non-relevance as rated: on every item pair without "
        "ties.",
        published="a proof",
        question="Does Lemma 1 hold on every item pair?",
        evidence=algebra(
            check=partial(checks.plain, what="lemma1"), rule=rules.exactly(1), why=LOGIC, data=ALL
        ),
    ),
    Claim(
        key="3-10",
        place="Fig. 6, Concl. 3",
        statement="The two observed optimal rankings oppose each other: τ over items is negative.",
        published="opposing trend",
        question="Do the best orders for precision and anti-precision oppose each other?",
        evidence=measured(
            check=partial(checks.plain, what="tau"),
            rule=rules.below(0),
            why="the sign: our copy of the figure does not show the value",
            data=(ML,),
        ),
    ),
    Claim(
        key="3-11",
        place="Fig. 7",
        statement="The optimal ranking for precision follows popularity more than ratings, and "
        "that for anti-precision goes against popularity: Pearson's correlations.",
        published="0.93 / 0.38 / −0.88 / −0.11",
        question="Do both optimal rankings follow popularity more than ratings?",
        evidence=measured(
            check=checks.what_optima_follow,
            rule=within(0.03),
            why="counts of the data, printed with two decimals",
            data=(ML,),
            question_rule=rules.true(),
        ),
    ),
    Claim(
        key="3-12",
        place="Fig. 9",
        statement="The four cases of popularity and true relevance: shares of item pairs.",
        published="64.2 / 5.2 / 21.2 / 9.4 %",
        question="Is it the most frequent case that popularity and relevance agree and popularity "
        "is the steeper?",
        evidence=measured(
            check=partial(checks.four_cases, prefix="truth/"),
            rule=within(0.1),
            why=f"{ROUNDED}; ties count as disagreement",
            data=(CM,),
            question_rule=rules.true(),
        ),
    ),
    Claim(
        key="3-13",
        place="Fig. 9",
        statement="The optimal rankings of observed and real precision agree on 64.1 % of item "
        "pairs.",
        published="64.1 %",
        question="Is observed precision right about most item pairs?",
        evidence=measured(
            check=partial(
                checks.percent,
                what="truth/consistent/P",
                note="By exact fractions; floating point splits some ties and gives 64.18 %.",
            ),
            rule=rules.near(64.1, 0.1),
            why=ROUNDED,
            data=(CM,),
            question_rule=rules.above(50),
        ),
    ),
    Claim(
        key="3-14",
        place="Fig. 9",
        statement="Those of observed and real anti-precision agree on 42.1 % of item pairs.",
        published="42.1 %",
        question="Is observed anti-precision wrong about most item pairs?",
        evidence=measured(
            check=partial(
                checks.percent,
                what="truth/consistent/anti-P",
                note="{value:.1f} % is right; the authors' own notebook has 45.3 %.",
            ),
            rule=rules.near(42.1, 0.1),
            why=ROUNDED,
            data=(CM,),
            question_rule=rules.below(50),
        ),
    ),
    Claim(
        key="3-15",
        place="Fig. 9",
        statement="Lemma 3 is satisfied by 81.2 % of item pairs for precision and 75.3 % for "
        "anti-precision.",
        published="81.2 % / 75.3 %",
        question="Do most item pairs do as Lemma 3 says?",
        evidence=measured(
            check=checks.lemma_3_shares,
            rule=within(0.1),
            why=ROUNDED,
            data=(CM,),
            question_rule=rules.above(50),
        ),
    ),
    Claim(
        key="3-16",
        place="§7.4",
        statement="The conclusion of Lemma 2, both metrics consistent, holds on 18.3 % of item "
        "pairs only.",
        published="18.3 %",
        question="Is it a minority of item pairs about which both metrics are right?",
        evidence=measured(
            check=partial(checks.percent, what="truth/lemma2"),
            rule=rules.near(18.3, 0.2),
            why=f"{ROUNDED}; ties may count otherwise",
            data=(CM,),
            question_rule=rules.below(50),
        ),
    ),
    Claim(
        key="3-17",
        place="§8.4",
        statement="Popularity and relevance agree on 69 % of item pairs, and the odds of "
        "popularity are steeper on 90 %.",
        published="69 % / 90 %",
        question="Do popularity and relevance agree on most item pairs, and is popularity steeper?",
        evidence=measured(
            check=checks.popular_and_steep,
            rule=within(0.5),
            why="counts of the data, printed without decimals",
            data=(CM,),
            question_rule=rules.above(50),
        ),
    ),
    Claim(
        key="3-18",
        place="Fig. 10",
        statement="Most items are rated more by those who like them, and ratings are closer to "
        "depending on the item alone than on liking alone.",
        published="most items",
        question="Are most items rated more by those who like them, and does rating depend more "
        "on the item than on liking?",
        evidence=measured(
            check=checks.depends_on_item,
            rule=rules.true(),
            why="read off a figure: more than 90 % of items, and the smaller mean distance",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-29",
        place="Fig. 15",
        statement="Popularity and relevance of items are positively related.",
        published="positive",
        question="Are popular items the ones that more users like?",
        evidence=measured(
            check=checks.related,
            rule=rules.above(0),
            why="the sign, of Pearson's correlation over items",
            data=KNOWN,
        ),
    ),
    Claim(
        key="3-37",
        place="Concl. 1",
        statement="Real precision and real anti-precision have the same optimal ranking.",
        published="identical",
        question="Do real precision and anti-precision have the same best order?",
        evidence=algebra(
            check=partial(checks.plain, what="truth/real orders"),
            rule=rules.exactly(1),
            why=LOGIC,
            data=KNOWN,
        ),
    ),
    Claim(
        key="3-47",
        place="Fig. 5, §6.2",
        statement="The two cases of Fig. 5 in which rankings disagree make up the pairs on which "
        "they do.",
        published="52.6 + 29.8 = 82.4 %",
        evidence=algebra(
            check=checks.cases_add_up,
            rule=rules.at_most(0.1),
            why=f"{ROUNDED}; the cases count ties as disagreement",
            data=(ML,),
        ),
    ),
    Claim(
        key="3-51",
        place="§8.2",
        statement="The MAR part of CM100k is unbiased: no item is likelier to test than another.",
        published="unbiased",
        evidence=measured(
            check=checks.residual,
            rule=rules.at_most(0.5),
            why="the range over items of the chance to test what was not trained on, in percent",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-52",
        place="§8.2",
        statement="On Yahoo! R3 ratings from 4 on count as liked: 25 % of random judgments, by "
        "what random recommendation is published to have.",
        published="24.5 %",
        evidence=measured(
            check=checks.liked_from_4,
            rule=rules.near(24.5, 3),
            why="0.0025 of 0.0025 + 0.0077, printed with two digits",
            data=(YAHOO,),
        ),
    ),
)
