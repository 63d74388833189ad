"""`relevance="PAPER"`: every convention of a paper, what is stated beside it, and its table."""

import re
import warnings
from functools import reduce

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared import ROOT
from unskew.data.relevance import OURS, PAPERS, conventions, paper_of
from unskew.evaluation.scores import UNDEFINED, USERS
from unskew.metrics.names import parse
from unskew.stats.compare.ranking import means_of
from unskew.targets.designs import BY_NAME

PAGE = ROOT / "docs" / "conventions.md"
# Users 1 and 2 have test ratings, of 1 none is 5; user 3 has training ratings only.
TRAIN = {"user": [1, 1, 2, 3], "item": ["c", "x", "a", "b"], "rating": [5, 3, 4, 4]}
TEST = {"user": [1, 1, 2, 2], "item": ["a", "b", "b", "c"], "rating": [2, 4, 5, 3.5]}
RUN = {1: ["a", "b"], 2: ["c", "b"], 3: ["a"]}


def evaluate(metrics, run=RUN, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        return us.evaluate(TEST, {"s": run}, metrics, **settings)


def test_every_rule_has_conventions_and_every_convention_exists():
    assert list(conventions()) == list(PAPERS)
    for name, paper in conventions().items():
        assert paper.relevance == us.Relevance.paper(name)
        assert (paper.users in USERS, paper.undefined in UNDEFINED) == (True, True)
        assert paper.targets in BY_NAME
        for key, reading in paper.metrics.items():
            metric = parse(reading)
            assert f"{'condensed-' * metric.condensed}{metric.name}" == key


def test_what_is_not_set_is_set_by_something_that_exists():
    for name, paper in conventions().items():
        names = re.findall(r"`([a-z]+(?:\.\w+)+)", paper.not_set)
        assert names, name
        for one in names:
            assert reduce(getattr, one.split("."), us) is not None


@pytest.mark.parametrize(
    ("paper", "users", "mean"),
    [
        ("bellogin2017", "all", (1 / 2) / 3),  # only b of user 2 is liked; three users
        ("valcarce2018", "with-test", (1 / 2 + 1 / 2) / 2),
        ("carraro2020", "with-relevant", (1 / 2 + 1) / 2),  # 3.5 is above 3
        ("mena2021", "with-test", (1 / 2 + 1 / 2) / 2),
        ("mena2021-cm100k", "with-test", (1 / 2 + 1) / 2),
        ("castells2018", "all", (1 / 2 + 1 / 2) / 3),
    ],
)
def test_the_users_of_a_paper_are_averaged(paper, users, mean):
    scores = evaluate("P@2", relevance=paper)
    assert scores.users == users
    assert scores.mean("P@2")["s"] == pytest.approx(mean)
    assert scores.card["paper"] == paper
    assert any(note.startswith(f"relevance={paper!r} sets: users {users}") for note in scores.notes)


def test_average_precision_is_divided_by_at_most_k_in_carraro2020(tmp_path):
    """User 2 has two liked items, of which the cutoff lets one in."""
    scores = evaluate("AP@1", relevance="carraro2020", users="with-test")
    assert scores.mean("AP@1")["s"] == pytest.approx((0 + 1) / 2)
    assert scores.card["metrics"] == {"AP@1": "AP(per=min)@1"}
    assert str(scores.metrics["AP@1"]) == "AP(per=min)@1"
    scores.save(tmp_path / "scores")
    assert str(us.Scores.load(tmp_path / "scores").metrics["AP@1"]) == "AP(per=min)@1"
    rule = us.Relevance.paper("carraro2020")
    assert evaluate("AP@1", relevance=rule).mean("AP@1")["s"] == pytest.approx((0 + 1 / 2) / 2)


def test_unjudged_items_are_in_the_pool_of_valcarce2018():
    run = {1: ["z", "b"], 2: ["z", "b"]}
    named = evaluate("infAP", run, relevance="valcarce2018").mean("infAP")
    rule = us.Relevance.paper("valcarce2018")
    assert named == evaluate("infAP(pool=all)", run, relevance=rule).mean("infAP(pool=all)")


def test_condensed_precision_of_mena2021_is_divided_by_what_is_judged():
    scores = evaluate(
        ["condensed-P@10", "condensed-anti-P@10"], {1: ["z", "b"], 2: ["b", "z"]},
        relevance="mena2021",
    )  # fmt: skip
    assert scores.mean("condensed-P@10")["s"] == 1
    assert scores.mean("condensed-anti-P@10")["s"] == 0


def test_lists_are_read_as_deep_as_the_paper_does():
    lists = {2: [*(f"z{n}" for n in range(100)), "b"]}
    assert evaluate("RR", lists, relevance="valcarce2018").mean("RR")["s"] == 0
    assert evaluate("RR", lists, relevance="valcarce2018", depth=101).mean("RR")["s"] > 0
    assert evaluate("RR", lists, relevance="mena2021").mean("RR")["s"] > 0


def test_what_is_stated_wins():
    scores = evaluate(
        ["P@2", "AP(per=all)@1"], relevance="carraro2020", users="with-test", undefined="skip"
    )
    assert (scores.users, scores.undefined) == ("with-test", "skip")
    assert scores.mean("AP(per=all)@1")["s"] == pytest.approx((0 + 1 / 2) / 2)
    with pytest.raises(us.SettingError, match="give either relevance or liked/above/gain/loss"):
        evaluate("P@2", relevance="carraro2020", liked=4)


def test_lists_are_checked_against_the_candidate_items():
    fitting = {1: ["a", "b"], 2: ["b", "c"]}
    scores = evaluate("P@2", fitting, relevance="mena2021", train=TRAIN)
    assert scores.card["targets"]["candidates"] == "train"
    assert scores.random()["P@2"] > 0
    message = (
        r"list 2 holds item 'a', .* relevance='mena2021' asks for the candidate items train-items "
        r"unless targets=… states others; .* relevance=us.Relevance.paper\('mena2021'\)"
    )
    trained = {1: ["a", "b"], 2: ["a", "b"]}
    with pytest.raises(us.DataError, match=message):
        evaluate("P@2", trained, relevance="mena2021", train=TRAIN)
    with pytest.raises(us.DataError, match="candidate items test-items"):
        evaluate("P@2", {1: ["z"]}, relevance="valcarce2018", train=TRAIN)
    everything = evaluate("P@2", fitting, relevance="mena2021", train=TRAIN, targets="all-items")
    assert everything.card["targets"]["candidates"] == "all"
    alone = us.Relevance.paper("mena2021")
    assert evaluate("P@2", trained, relevance=alone, train=TRAIN).chance is None


def test_judged_data_remember_the_paper():
    judged = us.judge(TEST, {"s": RUN, "t": {1: ["b"], 2: ["b"]}}, relevance="castells2018")
    scores = us.evaluate(judged, "P@1")
    assert scores.users == "all"
    assert means_of(us.compare(judged, "P@1"), "P@1") == scores.mean("P@1")
    assert us.stats.robustness(judged, "P@1", shares=[1.0], samples=1).card["users"] == 3
    assert us.unbiased.strata(judged, "P@1", m=2, resamples=0).card["users"] == "all"


def test_files_give_what_memory_gives(tmp_path):
    pl.DataFrame(TEST, strict=False).write_parquet(tmp_path / "test.parquet")
    rows = [(u, i, r) for u, items in RUN.items() for r, i in enumerate(items, 1)]
    lists = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
    lists.write_parquet(tmp_path / "s.parquet")
    for paper in conventions():
        files = us.evaluation.evaluate_files(
            tmp_path / "test.parquet", tmp_path / "s.parquet", ["P@2", "AP@1", "infAP"],
            relevance=paper, output=tmp_path / paper,
        )  # fmt: skip
        memory = evaluate(["P@2", "AP@1", "infAP"], relevance=paper)
        assert files.explanation[0].startswith(f"mean over users ({memory.users})")
        if paper_of(paper).users != "all":  # files hold no users without a row
            means = {row["metric"]: row["value"] for row in files.rows.to_dicts()}
            assert means == memory.means()["s"]


def test_a_plan_file_takes_what_it_does_not_state_from_the_paper(tmp_path):
    def plan(*lines):
        path = tmp_path / "plan.toml"
        path.write_text("\n".join([*lines, "[[algorithm]]", 'name = "popularity"']))
        return us.read_plan(path)[0]

    named = plan('relevance = "carraro2020"', 'metrics = ["AP@10", "P@10"]')
    assert (named.users, named.undefined) == ("with-relevant", "zero")
    assert named.designs == (us.targets.AllItems(),)
    assert tuple(named.metrics) == ("AP(per=min)@10", "P@10")
    assert named.relevance == us.Relevance.paper("carraro2020")
    stated = plan('relevance = "bellogin2017"', 'users = "both"', '[targets]\ndesign = "all-items"')
    assert (stated.users, stated.designs) == ("both", (us.targets.AllItems(),))
    assert plan('relevance = "mena2021"').designs == (us.targets.TrainItems(),)
    assert plan("[relevance]\nliked = 4").users == OURS.users


def test_a_gate_and_an_audit_take_the_rule_alone():
    """They choose users, metrics and designs themselves."""
    rng = np.random.default_rng(0)
    users, items = 60, 40
    pairs = [(u, i) for u in range(users) for i in rng.permutation(items)[:8].tolist()]
    test = {
        "user": [u for u, _ in pairs],
        "item": [i for _, i in pairs],
        "rating": rng.integers(1, 6, len(pairs)),
    }
    runs = {name: {u: rng.permutation(items)[:10].tolist() for u in range(users)} for name in "ab"}

    def values(relevance):
        return us.gate(test, runs, candidate="a", production="b", relevance=relevance).to_dict()

    assert values("bellogin2017") == values(us.Relevance.paper("bellogin2017"))


def row(name, paper):
    """Return what a paper sets, as a row of the table."""
    rule = paper.relevance
    liked = f"{rule.liked:g} and more" if rule.liked is not None else f"more than {rule.above:g}"
    metrics = ", ".join(f"`{one}`" for one in paper.metrics.values())
    depth = "the whole list" if paper.depth is None else f"{paper.depth} items"
    cells = [
        f"`{name}`", liked, f"`{rule.gain}`", f"`{rule.loss}`", f"`{paper.users}`",
        f"`{paper.undefined}`", f"`{paper.targets}`", depth, metrics, paper.not_set,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def test_the_page_has_the_table():
    text = PAGE.read_text()
    for name, paper in conventions().items():
        assert row(name, paper) in text, f"docs/conventions.md needs the row\n{row(name, paper)}"
