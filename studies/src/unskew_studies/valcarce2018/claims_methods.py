"""valcarce2018: claims about its data, split, systems and tests."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.paper import AMBIGUOUS, Claim, algebra, measured, released
from unskew_studies.valcarce2018 import checks_methods as checks
from unskew_studies.valcarce2018.claims import (
    ALL,
    BA,
    LT,
    ML,
    OPEN,
    ORDINAL,
    PVALUES,
    RESULTS,
)
from unskew_studies.valcarce2018.measurements import results_file

CLAIMS = (
    Claim(
        key="1-01",
        place="Table 2",
        statement="The sizes of the three data sets, and their density.",
        published="see Table 2",
        evidence=measured(
            check=checks.table_2, rule=rules.true(), why="counts are exact", data=ALL
        ),
    ),
    Claim(
        key="1-02",
        place="Table 2",
        statement="The Gini index of ratings over items.",
        published="0.634 / 0.581 / 0.865",
        evidence=measured(
            check=checks.gini_of_items,
            rule=rules.at_most(0.001),
            why="printed to three decimals; the difference is judged",
            data=ALL,
        ),
    ),
    Claim(
        key="1-03",
        place="§5",
        statement="Of each user 80 % of the ratings are in the training set and the others in the "
        "test set.",
        published="80 %",
        evidence=measured(
            check=checks.floor_rule,
            rule=rules.exactly(1.0),
            why="counts are exact: the test set has a fifth of a user's ratings, rounded down",
            data=(ML,),
        ),
    ),
    Claim(
        key="1-26",
        place="§4",
        statement="With 100,000 permutations the error of a p-value is 0.001 at 0.05 and 0.00045 "
        "at 0.01.",
        published="± 0.001 / ± 0.00045",
        evidence=algebra(
            check=checks.monte_carlo_error,
            rule=rules.at_most(1.0),
            why="the standard error must not be larger than what is given; their ratio is judged",
        ),
    ),
    Claim(
        key="1-28",
        place="Eqs. 7, 8",
        statement="infAP equals average precision when judgments are complete.",
        published="equal",
        evidence=algebra(
            check=checks.inferred_is_average,
            rule=rules.at_most(1e-4),
            why="its smoothing constant is 0.00001",
        ),
    ),
    Claim(
        key="1-29",
        place="released",
        statement="Popularity on the authors' split has the released values of all metrics.",
        published="nDCG 0.2233, P@10 0.1428 …",
        evidence=measured(
            check=checks.popularity_values,
            rule=rules.at_most(5.1e-5),
            why="released to four decimals",
            data=(ML,),
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-30",
        place="released",
        statement="UIR scores as Popularity and RSV as RW on MovieLens 1M (nDCG).",
        published="0.2234 – 0.2233, 0.3875 – 0.3876",
        evidence=released(
            check=partial(checks.twins, released=ML),
            rule=rules.at_most(5e-4),
            why="half a unit of the third decimal",
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-31",
        place="released",
        statement="The order of the 21 systems by nDCG on MovieLens 1M.",
        published="SLIM, BPRMF, WRMF …",
        evidence=measured(
            check=checks.places_moved,
            rule=rules.at_most(2).open(),
            why=f"at most two places off; {OPEN}",
            data=(ML,),
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-32",
        place="released",
        statement="SLIM has the best nDCG on MovieLens 1M.",
        published="0.4555",
        evidence=released(
            check=partial(checks.best_by_ndcg, system="SLIM", name=ML),
            rule=rules.true(),
            why=ORDINAL,
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-33",
        place="released",
        statement="nDCG tells 98.3 % of the pairs of systems apart at 0.05, MRR 91.9 % (MovieLens "
        "1M).",
        published="0.983 / 0.919",
        evidence=released(
            check=partial(checks.significant_pairs, released=ML),
            rule=rules.at_most(5e-4),
            why="exact to three decimals; the difference is judged",
            files=PVALUES,
        ),
    ),
    Claim(
        key="1-48",
        place="§4",
        statement="The p-values come from 100,000 random permutations.",
        published="100,000",
        evidence=released(
            check=partial(checks.permutations_used, released=ML),
            rule=rules.near(100_000, 20_000),
            why="the spread of two p-values of one pair tells how many; 20 %",
            files=PVALUES,
        ),
    ),
    Claim(
        key="1-49",
        place="§5",
        statement="All items of the data set that a user has not rated in training are ranked; in "
        "the next sentence, all items of the test set.",
        published="both",
        kind=AMBIGUOUS,
        evidence=measured(
            check=checks.random_of_all_items,
            rule=rules.at_most(3.0),
            why="the distance of the released random run from what chance gives with all items of "
            "the data set, in standard errors",
            data=(ML,),
            files=RESULTS,
        ),
    ),
    Claim(
        key="1-56",
        place="released",
        statement="SLIM has the best nDCG on LibraryThing.",
        published="0.364",
        evidence=released(
            check=partial(checks.best_by_ndcg, system="SLIM", name=LT),
            rule=rules.true(),
            why=ORDINAL,
            files=(results_file(LT),),
        ),
    ),
    Claim(
        key="1-57",
        place="released",
        statement="BPRMF has the best nDCG on BeerAdvocate.",
        published="0.1574",
        evidence=released(
            check=partial(checks.best_by_ndcg, system="BPRMF", name=BA),
            rule=rules.true(),
            why=ORDINAL,
            files=(results_file(BA),),
        ),
    ),
)
