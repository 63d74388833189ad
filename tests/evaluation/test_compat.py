"""`evaluate(compat=…)`: other libraries' numbers under their names."""

import math

import numpy as np
import pytest
import pytrec_eval

import unskew as us
from shared.cases import as_ratings, random_case
from shared.commands import run
from shared.measured import FIXTURES, columns, laid_fixture, rows_of
from unskew.conventions.libraries import all_libraries
from unskew.conventions.values import ConventionValues
from unskew.evaluation.compat import mean_of_row


@pytest.fixture(scope="module")
def small():
    judged, listed = rows_of(FIXTURES["small"]())
    return {
        "judgments": columns(judged, ("user", "item", "rating")),
        "runs": {"run": columns(listed, ("user", "item", "score"))},
        "liked": 4,
    }


@pytest.mark.parametrize("key", sorted(all_libraries()))
def test_every_library_can_be_computed(small, key):
    """Under its own names, with means that are those of the machinery behind it."""
    library = all_libraries()[key].newest
    names = [row.label(5, full=True) for row in library.metrics]
    scores = us.evaluate(**small, metrics=names, compat=key)
    engine = ConventionValues(laid_fixture("small"), "run")
    assert set(scores.order) <= set(names)
    for label in scores.order:
        rows = [row for row in library.metrics if row.label(5, full=True) == label]
        means = [mean_of_row(engine, row, 5) for row in rows]
        result = scores.mean(label)["run"]
        assert any(
            abs(result - mean) < 1e-12 or (math.isnan(result) and math.isnan(mean))
            for mean in means
        ), label
    assert scores.library.startswith(library.name)
    assert any("differs from our defaults in" in note for note in scores.notes)


def test_metrics_go_by_either_name(small):
    ours = us.evaluate(**small, metrics=["nDCG@5", "AP@5"], compat="recbole")
    theirs = us.evaluate(**small, metrics=["ndcg@5", "map@5"], compat="RecBole==1.2.1")
    assert ours.order == theirs.order == ("ndcg@5", "map@5")
    assert ours.means() == theirs.means()
    assert ours.mean("nDCG@5") == ours.mean("ndcg@5")


@pytest.mark.parametrize("name", ["infAP", "infap", "infAP(pool=judged)"])
def test_infap_under_compat_is_trec_evals(name):
    """trec_eval leaves listed items without a judgment out of the pool; our default does not."""
    for seed in range(20):
        qrels, run = random_case(seed, users=8, items=14)
        qrels = {user: grades for user, grades in qrels.items() if max(grades.values()) >= 0}
        measured = pytrec_eval.RelevanceEvaluator(qrels, {"infAP"}, relevance_level=3).evaluate(run)
        wanted = np.mean([values["infAP"] for values in measured.values()])
        listed = {"s": us.read_run(run, ties="trec")}
        scores = us.evaluate(as_ratings(qrels), listed, name, liked=3, compat="trec_eval")
        assert scores.mean("infAP")["s"] == pytest.approx(wanted, abs=1e-9)


def test_versions_differ():
    new, old = (us.conventions.library(name) for name in ("cornac", "cornac==1.16.0"))
    assert len(new.newest.metrics) < len(new.metrics)
    assert any(row.until for row in old.metrics)
    assert not any(row.until for row in new.newest.metrics)


def test_users_that_are_left_out_are_nan(small):
    scores = us.evaluate(**small, metrics="nDCG@5", compat="recbole")
    values = dict(scores.per_user().select("user", "ndcg@5").iter_rows())
    assert math.isnan(values["u3"])  # nothing liked
    assert math.isnan(values["u6"])  # no judgment
    assert values["u5"] == 0.0  # no list


def test_scores_of_a_library_are_saved_and_compared(small, tmp_path):
    scores = us.evaluate(**small, compat="recbole")
    scores.save(tmp_path / "scores")
    again = us.Scores.load(tmp_path / "scores")
    assert again.means() == scores.means()
    assert str(again) == str(scores)


def test_default_metrics_are_its_counterparts(small):
    assert us.evaluate(**small, compat="recbole").order == (
        "precision@10", "recall@10", "ndcg@10", "mrr@10", "map@10", "hit@10",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"compat": "recbol"}, "unknown library 'recbol'. Did you mean 'recbole'"),
        ({"compat": "recbole==0.1"}, "RecBole 0.1 is not known"),
        ({"compat": "recbole", "gain": "binary"}, "leave gain=… out"),
        ({"compat": "recbole", "users": "all"}, "leave users=… out"),
        ({"compat": "recbole", "undefined": "skip"}, "leave undefined=… out"),
        ({"compat": "recbole", "ties": "id"}, "leave ties=… out"),
        ({"compat": "recbole", "metrics": "ndgc@5"}, "unknown metric of RecBole 'ndgc@5'"),
        ({"compat": "trec_eval", "metrics": "gm_map"}, "cannot be computed here: a geometric mean"),
        ({"compat": "recbole", "metrics": []}, "no metrics are named"),
    ],
)
def test_what_is_not_possible_is_refused(small, more, says):
    with pytest.raises(us.SettingError, match=says):
        us.evaluate(**small, **more)


def test_command_line(small, tmp_path, capsys, monkeypatch):
    import polars as pl

    monkeypatch.chdir(tmp_path)
    pl.DataFrame(small["judgments"], strict=False).write_csv("test.csv")
    pl.DataFrame(small["runs"]["run"], strict=False).write_csv("a.csv")
    given = ["evaluate", "-j", "test.csv", "-r", "a.csv", "--liked", "4", "--compat", "recbole"]
    code, text = run(capsys, *given)
    assert code == 0
    assert "ndcg@10" in text
    code, text = run(capsys, *given, "--ties", "id")
    assert code == 2
    assert "--ties" in text
    code, text = run(capsys, "metrics", "--library", "recbole")
    assert code == 0
    assert "ndcg@{k}" in text
    code, text = run(capsys, "metrics", "--library", "all")
    assert code == 0
    assert "RecBole" in text
    value = us.evaluate(**small, metrics="nDCG@5", compat="recbole").mean("nDCG@5")["run"]
    code, text = run(
        capsys, "explain", "-j", "test.csv", "-r", "a.csv", "--liked", "4", "--value",
        f"nDCG@5={value:.4f}",
    )  # fmt: skip
    assert code == 0
    assert "RecBole" in text


def test_losses_of_a_metric_of_ours_are_those_of_the_ratings():
    """Half stars cost 1.5 and 0.5, whatever gains the convention gives to what is disliked."""
    from unskew.conventions.explaining.printed import PrintedQuantity
    from unskew.conventions.laying import lay

    test = {"user": [1, 1, 1], "item": [10, 20, 30], "rating": [2.5, 3.5, 5]}
    runs = {"s": {1: [20, 30, 10]}}
    engine = ConventionValues(lay(test, runs, liked=4), "s")
    ours = us.evaluate(test, runs, "nDCL@3", liked=4).mean("nDCL@3")["s"]
    assert ours == pytest.approx((0.5 + 1.5 / 2) / (1.5 + 0.5 / math.log2(3)))
    assert mean_of_row(engine, PrintedQuantity.of("nDCL@3").row(), 3) == pytest.approx(ours)


def test_of_a_paper_a_library_takes_the_threshold():
    test = {"user": [1, 1], "item": [10, 20], "rating": [5, 4]}
    runs = {"s": {1: [20, 10]}}
    scores = us.evaluate(test, runs, "P_1", relevance="bellogin2017", compat="trec_eval")
    assert scores.means() == {"s": {"P_1": 0.0}}
