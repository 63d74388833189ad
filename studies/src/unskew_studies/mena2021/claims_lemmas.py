"""mena2021: claims about lemmas, toy examples and printed correlations."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.mena2021 import checks_lemmas as checks
from unskew_studies.mena2021.claims import (
    LOGIC,
    each,
    within,
)
from unskew_studies.paper import AMBIGUOUS, Claim, algebra, measured, printed

CLAIMS = (
    Claim(
        key="3-34",
        place="Footnote 3",
        statement="All correlations but those of Fig. 18 are significant at 0.05.",
        published="p < 0.05",
        evidence=printed(
            check=checks.least_significant,
            rule=rules.below(0.05),
            why="the exact p of the weakest printed τ of sixteen systems",
        ),
    ),
    Claim(
        key="3-39",
        place="Tables 3 and 4, App. B",
        statement="Every row of the truth tables of Lemmas 1 to 3 holds, flat popularity and flat "
        "relevance included.",
        published="proofs",
        evidence=algebra(check=checks.truth_tables_hold, rule=rules.exactly(1), why=LOGIC),
    ),
    Claim(
        key="3-40",
        place="Figs. 2, 4, 8",
        statement="The numbers of the toy examples are right.",
        published="see the figures",
        evidence=algebra(
            check=partial(
                checks.toy_numbers,
                places=(
                    "Fig. 2",
                    "Fig. 4",
                    "Fig. 8",
                ),
            ),
            rule=within(0.0005),
            why="worked through; printed with up to three decimals",
        ),
    ),
    Claim(
        key="3-43",
        place="§5.2",
        statement="With test data at random observed and real optimal orders are the same in "
        "expectation.",
        published="the same",
        evidence=algebra(
            check=checks.unbiased_at_random,
            rule=rules.at_most(3),
            why="three standard deviations of a chi-square statistic",
        ),
    ),
    Claim(
        key="3-49",
        place="Table 4, §7, App. A.2",
        statement="Both metrics are consistent if p(train|rel,i) is the same for all items, as "
        "Table 4 has it; §7 and the proof ask the same of p(train|¬rel,i) too.",
        published="agree and agree",
        kind=AMBIGUOUS,
        evidence=algebra(
            check=checks.lemma_2_as_printed,
            rule=rules.exactly(1),
            why="all pairs of an exact table, under the condition of Table 4 alone",
        ),
    ),
    Claim(
        key="3-50",
        place="App. A.2",
        statement="p(train|i) = b + (a − b) p(rel|i) with a = p(train|¬rel) and b = p(train|rel).",
        published="as given",
        evidence=algebra(
            check=checks.lemma_2_constants, rule=rules.exactly(1), why="all items of an exact table"
        ),
    ),
    Claim(
        key="3-56",
        place="Fig. 3",
        statement="In all four examples f is the steeper; in two of them f and g agree.",
        published="see the figure",
        evidence=algebra(
            check=partial(checks.toy_numbers, places=("Fig. 3",)),
            rule=rules.at_most(0),
            why="worked through: exact",
        ),
    ),
    Claim(
        key="3-57",
        place="§6",
        statement="A higher decrement rate is the same as a higher increment rate.",
        published="strictly equivalent",
        evidence=algebra(
            check=checks.rates_alike,
            rule=rules.exactly(1),
            why="all functions of two items with values 1 to 7: exact",
        ),
    ),
    Claim(
        key="3-58",
        place="Lemmas 2 and 3",
        statement="In worlds built to their premises observed metrics side with the truth as "
        "Lemmas 2 and 3 say.",
        published="proofs",
        evidence=measured(
            check=checks.lemmas_in_worlds,
            rule=each("on the foretold side of half of the pairs"),
            why="points of percent, with the interval over five worlds of each kind",
        ),
    ),
)
