"""mena2021: claims about systems and the order in which metrics put them."""

from __future__ import annotations

from functools import partial

from unskew_studies import rules
from unskew_studies.mena2021 import checks_systems as checks
from unskew_studies.mena2021.claims import (
    ALL,
    CM,
    FOLDS,
    KNOWN,
    LOGIC,
    ML,
    ORDER,
    OWN,
    RELEASED,
    SIGNS,
    TABLE,
    YAHOO,
    each,
    within,
)
from unskew_studies.mena2021.measurements import BEST_TRUE
from unskew_studies.paper import NOTE, Claim, algebra, measured, released

CLAIMS = (
    Claim(
        key="3-02",
        place="Eq. 2, Fig. 1a",
        statement="On condensed rankings anti-precision is 1 less precision.",
        published="antiP = 1 − P",
        question="Is anti-precision 1 less precision once unjudged items are taken out?",
        evidence=algebra(check=checks.complementary, rule=rules.at_most(1e-9), why=LOGIC, data=ALL),
    ),
    Claim(
        key="3-03",
        place="Fig. 1",
        statement="On condensed rankings true-positive metrics and their twins agree, on full "
        "ones they disagree: Kendall's τ of sixteen systems.",
        published="−1.00 / −0.90 / 0.62 / 0.73",
        question="Do twins agree on condensed rankings and disagree on full ones?",
        evidence=released(check=checks.fig_1, rule=within(0.005), why=RELEASED, files=TABLE)
        + measured(
            check=partial(checks.condensed_and_full, names=("P", "Recall"), least=0.4),
            rule=each("τ below −.4 and above .4"),
            why=OWN,
            data=(ML,),
        ),
    ),
    Claim(
        key="3-04",
        place="§3.2",
        statement="On average 83 % of the ten recommended items are not judged.",
        published="0.83",
        evidence=released(
            check=checks.unjudged, rule=rules.near(0.83, 0.01), why=RELEASED, files=TABLE
        ),
    ),
    Claim(
        key="3-05",
        place="Eq. 4",
        statement="Observed precision, observed anti-precision and the share of unjudged items "
        "add up to 1.",
        published="P + antiP = 1 − δ",
        question="Do precision, anti-precision and the unjudged share add up to 1?",
        evidence=algebra(check=checks.with_residual, rule=rules.at_most(1e-9), why=LOGIC, data=ALL),
    ),
    Claim(
        key="3-19",
        place="Fig. 12, Concl. 4",
        statement="As observed, precision and anti-precision disagree about systems, and so do "
        "recall and fallout: positive τ.",
        published="ML-1M 0.62, 0.73; Yahoo! 0.80, 0.83; CM100k 0.65, 0.65",
        question="Do metrics of hits and of false positives disagree about systems?",
        evidence=measured(
            check=checks.twins_disagree,
            rule=rules.above(0.3),
            why=OWN,
            data=ALL,
            question_rule=rules.above(0),
        ),
    ),
    Claim(
        key="3-20",
        place="Fig. 12",
        statement="15.97 (ML-1M), 5.43 (Yahoo! R3) and 1.10 % (CM100k) of the first ten items are "
        "judged, on average over systems.",
        published="15.97 / 5.43 / 1.10 %",
        evidence=released(
            check=checks.released_coverage,
            rule=rules.near(15.97, 0.05),
            why=f"{RELEASED}; on ML-1M, over sixteen systems and both optimal rankings",
            files=TABLE,
        )
        + measured(
            check=partial(checks.coverage, judgments="observed"),
            rule=rules.near(100, 10).open(),
            why=f"in percent of the printed share. {OWN}",
            data=ALL,
        ),
    ),
    Claim(
        key="3-21",
        place="§8.3",
        statement="On Yahoo! R3 WRMF is the best by observed precision and second worst by "
        "observed anti-precision.",
        published="best, second worst",
        evidence=measured(
            check=checks.best_and_nearly_worst,
            rule=rules.true().open(),
            why=f"{ORDER}; {FOLDS}",
            data=(YAHOO,),
        ),
    ),
    Claim(
        key="3-22",
        place="§8.3, Concl. 2",
        statement="Popularity comes very close to the optimal ranking for observed precision, and "
        "is among the worst by observed anti-precision.",
        published="very close",
        question="Does popularity have 95 % of the precision of the best order for all users?",
        evidence=measured(
            check=checks.near_optimal,
            rule=rules.at_least(95),
            why="at least 95 % of the optimum: the released values have 98, 98 and 102 %",
            data=ALL,
        ),
    ),
    Claim(
        key="3-23",
        place="§8.3",
        statement="The optimal ranking for one observed metric is the worst, or nearly, for the "
        "other, among non-personalised rankings.",
        published="worst, or nearly",
        question="Is the best order for one metric the worst, or nearly, for the other?",
        evidence=measured(
            check=checks.opposite_ends,
            rule=rules.true(),
            why=f"places among five rankings: last, and last or second last; {FOLDS}",
            data=ALL,
        ),
    ),
    Claim(
        key="3-24",
        place="§8.3",
        statement="Personalised systems beat the optimal ranking for all users on Yahoo! R3 and "
        "not on CM100k, by observed precision.",
        published="yes; no",
        evidence=measured(
            check=checks.beats_optimal,
            rule=rules.true().open(),
            why=f"{ORDER}; {FOLDS}",
            data=KNOWN,
        ),
    ),
    Claim(
        key="3-25",
        place="Fig. 13, Concl. 5",
        statement="By unbiased test data precision and anti-precision agree about systems, and so "
        "do recall and fallout: negative τ.",
        published="Yahoo! −0.77, −0.80; CM100k −0.90, −0.72",
        question="By random judgments, do metrics of hits and of false positives agree?",
        evidence=measured(
            check=checks.twins_agree,
            rule=rules.below(-0.5),
            why=OWN,
            data=KNOWN,
            question_rule=rules.below(0),
        ),
    ),
    Claim(
        key="3-26",
        place="Fig. 13",
        statement="1.23 % (Yahoo! R3) and 1.83 % (CM100k) of the first ten items are judged by "
        "unbiased test data.",
        published="1.23 % / 1.83 %",
        evidence=measured(
            check=partial(checks.coverage, judgments="true"),
            rule=rules.near(100, 10).open(),
            why=f"in percent of the printed share. {OWN}",
            data=KNOWN,
        ),
    ),
    Claim(
        key="3-27",
        place="Fig. 14",
        statement="Precision and recall put systems in nearly the same order as observed and by "
        "the truth.",
        published="Yahoo! 0.92, 0.90; CM100k 0.80, 0.82",
        question="Do precision and recall keep the true order of systems?",
        evidence=measured(
            check=checks.hits_kept,
            rule=rules.above(0.6),
            why=OWN,
            data=KNOWN,
            question_rule=rules.above(0),
        ),
    ),
    Claim(
        key="3-28",
        place="Fig. 14",
        statement="Anti-precision and fallout as observed turn the true order of systems round.",
        published="Yahoo! −0.58, −0.57; CM100k −0.42, −0.42",
        question="Do anti-precision and fallout turn the true order of systems round?",
        evidence=measured(check=checks.false_turned, rule=rules.below(0), why=OWN, data=KNOWN),
    ),
    Claim(
        key="3-30",
        place="Fig. 16",
        statement="Where popularity is reassigned against relevance, precision and recall turn the "
        "true order of systems round, and anti-precision and fallout keep it.",
        published="−0.47, −0.52; 0.91, 0.90",
        evidence=measured(
            check=checks.turned_round,
            rule=each("τ below −.3 and above .3"),
            why=f"{OWN}; familiarity is reassigned once",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-31",
        place="§8.5",
        statement="There GBPR, WBPR and SLIM seem the best by observed precision and are, with "
        "PNMF and popularity, the worst by real precision.",
        published="GBPR, WBPR, SLIM",
        evidence=measured(
            check=checks.misled,
            rule=rules.true().open(),
            why=f"{ORDER}, and familiarity is redrawn: among the first four of the personalised, "
            f"and the last six of all; {FOLDS}",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-32",
        place="§8.5",
        statement="There of the personalised systems only SVD++, and hardly BPMF and RSGD, beat "
        "random by real precision.",
        published="SVD++ (BPMF, RSGD)",
        evidence=measured(
            check=checks.worse_than_random,
            rule=rules.true().open(),
            why=f"{ORDER}; BPMF is random by construction; {FOLDS}",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-33",
        place="Fig. 17",
        statement="nDCG and MRR keep the true order of systems, nDCL and anti-MRR turn it round.",
        published="nDCG 0.90, 0.87; MRR 0.88, 0.90; nDCL −0.50, −0.43; anti-MRR −0.47, −0.35",
        question="Do nDCG and MRR keep the true order, and nDCL and anti-MRR turn it round?",
        evidence=measured(
            check=checks.more_metrics,
            rule=each(f"τ above {checks.KEPT:g} and below 0"),
            why=f"{OWN}; the published nDCG has the gains of another scale",
            data=KNOWN,
            question_rule=SIGNS,
        ),
    ),
    Claim(
        key="3-35",
        place="Fig. 18",
        statement="By a split in time metrics and their twins are related weakly, nDCG and nDCL "
        "least.",
        published="0.27 / 0.37 / 0.08 / 0.20",
        question="By a split in time, are metrics and their twins related weakly only?",
        evidence=measured(
            check=checks.weak_in_time,
            rule=rules.below(0.5).open(),
            why="the size of every τ, with the interval of the largest, users being drawn. "
            "Without time stamps in ML-1M it is asked of ML-100K",
            data=(ML, "ml-100k"),
        ),
    ),
    Claim(
        key="3-36",
        place="§9",
        statement="By a split in time the average rating and random are among the three best by "
        "every metric of false positives and the three worst by every one of hits; popularity is "
        "good by hits and bad by false positives.",
        published="3 best, 3 worst",
        question="By a split in time, are the average rating and random best by false positives "
        "and worst by hits?",
        evidence=measured(
            check=checks.corners_in_time,
            rule=rules.true().open(),
            why=f"{ORDER}. Without time stamps in ML-1M it is asked of ML-100K",
            data=(ML, "ml-100k"),
        ),
    ),
    Claim(
        key="3-38",
        place="Concl. 2",
        statement="Observed anti-precision favours unpopular items: ranking by rising popularity "
        "beats random, which beats popularity; by precision it is the other way round.",
        published="favours unpopular",
        question="Does anti-precision reward recommending what few users rated?",
        evidence=measured(
            check=checks.favours_unpopular,
            rule=rules.true(),
            why=f"two orders of three rankings; {FOLDS}",
            data=ALL,
        ),
    ),
    Claim(
        key="3-41",
        place="Fig. 12",
        statement="Popularity, the average rating and random have the released precision on the "
        "released folds.",
        published="0.1464, 0.0300, 0.0056",
        evidence=measured(
            check=checks.simple_means,
            rule=within(0.001),
            why="no settings; chance and ties move the third decimal",
            data=(ML,),
            files=TABLE,
        ),
    ),
    Claim(
        key="3-42",
        place="§3.1",
        statement="Recall and fallout are strongly negatively correlated on condensed rankings.",
        published="−0.90",
        evidence=released(
            check=checks.condensed_recall,
            rule=rules.below(-0.8),
            why="strongly: below −.8",
            files=TABLE,
        ),
    ),
    Claim(
        key="3-45",
        place="Lemma 1 for systems",
        statement="With J the judged share of a list and c the liked share of that, the metrics "
        "disagree about two systems exactly if the judged shares differ by more than the liked "
        "shares do.",
        published="not in the paper",
        kind=NOTE,
        evidence=algebra(
            check=checks.lemma_of_systems,
            rule=rules.exactly(120),
            why=f"{LOGIC}: all 120 pairs of sixteen systems",
            files=TABLE,
        ),
    ),
    Claim(
        key="3-46",
        place="Lemma 1 for systems",
        statement="Observed precision follows how much of a list is judged more than how much of "
        "that is liked: τ less τ.",
        published="0.90 less 0.05 as released",
        question="Does precision follow being judged more than being liked?",
        kind=NOTE,
        evidence=measured(
            check=checks.judged_or_liked, rule=rules.above(0), why=f"the sign. {OWN}", data=ALL
        ),
    ),
    Claim(
        key="3-53",
        place="§9",
        statement="nDCG with nDCL and MRR with anti-MRR do as precision and recall in Figs. 1 and "
        "12: they agree on condensed rankings of MovieLens and disagree on full ones of all data.",
        published="equivalent",
        question="Do nDCG and MRR agree with their twins on condensed rankings and disagree on "
        "full ones?",
        evidence=measured(
            check=partial(checks.condensed_and_full, names=("nDCG", "MRR"), least=0.0),
            rule=SIGNS,
            why=OWN,
            data=ALL,
        ),
    ),
    Claim(
        key="3-54",
        place="§9",
        statement="By unbiased test data nDCG and nDCL agree about systems, and so do MRR and "
        "anti-MRR (as in Fig. 13).",
        published="equivalent",
        question="By random judgments, do nDCG and MRR agree with their twins?",
        evidence=measured(
            check=partial(checks.twins_agree, names=("nDCG", "MRR")),
            rule=rules.below(0),
            why=f"the signs. {OWN}",
            data=KNOWN,
        ),
    ),
    Claim(
        key="3-55",
        place="§9",
        statement="Where popularity is reassigned against relevance, nDCG and MRR turn the true "
        "order round and their twins keep it (as in Fig. 16).",
        published="equivalent",
        evidence=measured(
            check=partial(checks.turned_round, names=("nDCG", "MRR"), least=0.0),
            rule=SIGNS,
            why=f"{OWN}; familiarity is reassigned once",
            data=(CM,),
        ),
    ),
    Claim(
        key="3-59",
        place="Concl. 6",
        statement="Where popularity and relevance disagree, metrics of false positives are more "
        "reliable: in a world where the worse items are the more popular they keep more of the "
        "true order.",
        published="more reliable",
        evidence=measured(
            check=checks.false_positives_better,
            rule=rules.above(0),
            why="the sign of τ less τ, by sixteen systems in a built-in world, with its interval "
            "over folds",
        ),
    ),
    Claim(
        key="3-60",
        place="Fig. 12",
        statement="The personalised systems come in the released order by precision.",
        published="released values",
        evidence=measured(
            check=checks.same_order,
            rule=rules.at_least(0.7),
            why="τ of twelve systems, trained by us with the released settings; BPMF never "
            "learned in the paper and is left out",
            data=(ML,),
            files=TABLE,
        ),
    ),
    Claim(
        key="3-62",
        place="§8.3",
        statement="The optimal rankings bound non-personalised rankings, each by its own observed "
        "metric.",
        published="bounds",
        question="Do the best orders bound popularity, average and random, each by its own metric?",
        evidence=measured(
            check=checks.bound,
            rule=rules.true().open(),
            why=f"optimal in expectation: a sample may turn close values round; {FOLDS}",
            data=ALL,
        ),
    ),
    Claim(
        key="3-63",
        place="§8.4",
        statement="The real optimal ranking bounds non-personalised rankings by both real metrics.",
        published="bounds",
        question="Does the best true order bound popularity, average and random?",
        evidence=measured(
            check=partial(checks.bound, judgments="true", optimal=(BEST_TRUE, BEST_TRUE)),
            rule=rules.true().open(),
            why=f"optimal in expectation: a sample may turn close values round; {FOLDS}",
            data=KNOWN,
        ),
    ),
)
