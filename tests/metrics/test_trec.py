"""trec_eval, through its binding, is the oracle of every measure that both have."""

import random

import numpy as np
import pytest
import pytrec_eval

import unskew as us
from shared.cases import as_ratings, quiet, random_case

CUTS = (1, 2, 3, 5, 10, 15)
CUT = ("P", "recall", "map_cut", "ndcg_cut", "success", "relative_P")
WHOLE = ("map", "ndcg", "recip_rank", "Rprec", "bpref", "infAP", "set_P", "set_recall", "set_F",
         "set_relative_P")  # fmt: skip
MEASURES = [*WHOLE, *(f"{name}_{k}" for name in CUT for k in CUTS)]
OURS = {"infAP": "infAP(pool=judged)"}
"""Of the measures whose default differs: our name of trec_eval's form."""
FAMILIES = {*WHOLE, *(f"{name}.{','.join(map(str, CUTS))}" for name in CUT)}


def trec_eval(qrels, run, measures, level):
    """Ask the oracle, except for users with pooled items only: on these it hangs or crashes."""
    judged = {user: grades for user, grades in qrels.items() if max(grades.values()) >= 0}
    return pytrec_eval.RelevanceEvaluator(judged, measures, relevance_level=level).evaluate(run)


@pytest.mark.parametrize("level", [1, 3])
def test_equals_trec_eval_on_random_users(level):
    users = 0
    for seed in range(300):
        qrels, run = random_case(seed, users=5, items=14)
        theirs = trec_eval(qrels, run, FAMILIES, level)
        names = [OURS.get(measure, measure) for measure in MEASURES]
        ours = quiet(as_ratings(qrels), run, names, liked=level, gain="rating").per_user()
        rows = {row["user"]: row for row in ours.iter_rows(named=True)}
        for user, values in theirs.items():
            users += 1
            for measure in MEASURES:
                value = rows[user][OURS.get(measure, measure)]
                value = 0.0 if np.isnan(value) else value
                assert value == pytest.approx(values[measure], abs=1e-9), (seed, user, measure)
    assert users >= 1100  # per level; 2,000 in all


def test_means_are_trec_evals_without_and_with_c():
    qrels, run = random_case(11, users=40)
    qrels = {user: grades for user, grades in qrels.items() if max(grades.values()) >= 0}
    theirs = trec_eval(qrels, run, {"map", "P.5"}, 3)
    scores = quiet(as_ratings(qrels), run, ["map", "P_5"])
    for measure in ("map", "P_5"):
        total = sum(values[measure] for values in theirs.values())
        both = scores.mean(measure, users="both")["s"]
        complete = scores.mean(measure, users="with-test")["s"]
        assert both == pytest.approx(total / len(theirs), abs=1e-12)
        assert complete == pytest.approx(total / len(qrels), abs=1e-12)


def test_without_a_threshold_qrels_have_the_gains_of_trec_eval(tmp_path):
    """Grades from 1 up are liked, so that the default gives gain to the same items."""
    for seed in range(100):
        qrels, run = random_case(seed, users=5, items=14)
        theirs = trec_eval(qrels, run, {"ndcg", "ndcg_cut.5"}, 1)
        lines = [f"{u} 0 {i} {g}" for u, judged in qrels.items() for i, g in judged.items()]
        (tmp_path / "t.qrels").write_text("\n".join(lines) + "\n")
        ours = quiet(tmp_path / "t.qrels", run, ["ndcg", "ndcg_cut_5"], liked=None).per_user()
        for row in ours.fill_nan(0.0).iter_rows(named=True):
            for measure in ("ndcg", "ndcg_cut_5"):
                expected = theirs.get(row["user"], {}).get(measure, 0.0)
                assert row[measure] == pytest.approx(expected, abs=1e-9), (seed, row["user"])


def test_single_precision_ties_and_string_order():
    qrels = {"q": {"9": 1, "10": 0}}
    run = {"q": {"9": 1.0, "10": 1.00000001}}  # equal as 32-bit floats; "9" > "10" as strings
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
    scores = us.evaluate(as_ratings(qrels), {"s": us.read_run(run, ties="trec")}, "RR", liked=1)
    assert scores.mean("RR")["s"] == theirs["q"]["recip_rank"] == 1.0
    by_id = us.evaluate(as_ratings(qrels), {"s": us.read_run(run, ties="id")}, "RR", liked=1)
    assert by_id.mean("RR")["s"] == 0.5


def test_files_give_the_same_as_dicts(tmp_path):
    qrels, run = random_case(5, users=20)
    qrels = {user: grades for user, grades in qrels.items() if max(grades.values()) >= 0}
    lines = [f"{u} 0 {i} {g}" for u, judged in qrels.items() for i, g in judged.items()]
    rows = [f"{u} Q0 {i} 0 {s} x" for u, items in run.items() for i, s in items.items()]
    random.Random(0).shuffle(rows)
    (tmp_path / "t.qrels").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.run").write_text("\n".join(rows) + "\n")
    theirs = trec_eval(qrels, run, {"map", "bpref"}, 1)
    scores = us.evaluate(tmp_path / "t.qrels", tmp_path / "a.run", ["map", "bpref"])
    for measure in ("map", "bpref"):
        mean = sum(v[measure] for v in theirs.values()) / len(theirs)
        assert scores.mean(measure, users="both")["a"] == pytest.approx(mean, abs=1e-12)
