"""`evaluate` and `Scores`: same bits whatever the settings, and means that say what they mean."""

import html
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew.data.ratings import Ids
from unskew.errors import quietly
from unskew.evaluation.evaluate import memory_bytes
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import USERS, Scores, System
from unskew.metrics.names import REGISTRY

TEST = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
RUN = {1: [20, 10], 2: [30]}


def one_mean(metric, run=RUN, test=TEST, **settings):
    """Return the mean of one metric of one run."""
    return us.evaluate(test, {"s": run}, metric, **settings).mean(metric)["s"]


# Same bits


def random_data(users=1500, items=60, seed=5):
    """Return training and test ratings and two runs, as frames in no order."""
    rng = np.random.default_rng(seed)
    train, test, runs = [], [], {"a": [], "b": []}
    for u in range(users):
        order = rng.permutation(items)
        rated = order[: rng.integers(2, 25)]
        cut = int(rng.integers(0, len(rated) + 1))
        train += [(u, i, rng.integers(1, 6)) for i in rated[:cut]]
        test += [(u, i, rng.integers(1, 6)) for i in rated[cut:]]
        for rows in runs.values():
            chosen = rng.permutation(np.setdiff1d(order, rated[:cut]))[: rng.integers(1, 12)]
            rows += [(u, i, rng.integers(0, 5) / 7) for i in chosen]
    names = ["user", "item", "rating"]
    frames = [pl.DataFrame(rows, names, orient="row") for rows in (train, test)]
    scored = {
        name: pl.DataFrame(rows, ["user", "item", "score"], orient="row").sample(
            fraction=1, shuffle=True, seed=1
        )
        for name, rows in runs.items()
    }
    return *frames, scored


METRICS = [
    *(f"{name}@5" for name in REGISTRY),
    *(name for name, entry in REGISTRY.items()),
    "anti-nDCG@10", "condensed-AP@3", "nDCG(ideal=full)@7", "SR(gamma=1,mean=ratio)@5",
]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    return random_data()


def evaluate(train, test, runs, **settings):
    return us.evaluate(test, runs, METRICS, liked=4, train=train, items=range(60), **settings)


def bits(scores, system):
    """Return every number of a system, as bytes."""
    frame = scores.per_user(system)
    columns = [frame[name].to_numpy().tobytes() for name in frame.columns[2:]]
    means = {m: (v.value.hex(), v.users) for m, v in scores.averages()[system].items()}
    return frame["user"].to_list(), columns, means


@pytest.fixture(scope="module")
def reference(data):
    scores = evaluate(*data)
    return {name: bits(scores, name) for name in ("a", "b")}


@pytest.mark.parametrize(
    "settings",
    [
        {"threads": 1},
        {"threads": 2},
        {"threads": 5},
        {"memory": "1MiB"},
        {"memory": "512MiB"},
        {"threads": 5, "memory": 1 << 20},
    ],
    ids=str,
)
def test_same_bits_whatever_threads_and_memory(data, reference, settings):
    scores = evaluate(*data, **settings)
    assert {name: bits(scores, name) for name in ("a", "b")} == reference


def test_same_bits_whatever_the_order_of_rows(data, reference):
    train, test, runs = data
    mixed = [f.sample(fraction=1, shuffle=True, seed=9) for f in (train, test, *runs.values())]
    scores = evaluate(mixed[0], mixed[1], {"a": mixed[2], "b": mixed[3]})
    assert {name: bits(scores, name) for name in ("a", "b")} == reference
    assert scores.card == evaluate(*data).card


def test_same_bits_whatever_the_other_systems(data, reference):
    train, test, runs = data
    swapped = evaluate(train, test, {"b": runs["b"], "a": runs["a"]})
    assert list(swapped.systems) == ["b", "a"]
    assert {name: bits(swapped, name) for name in ("a", "b")} == reference
    alone = evaluate(train, test, {"a": runs["a"]})
    assert bits(alone, "a") == reference["a"]


def test_another_systems_depth_does_not_matter():
    """The ideal of ideal=full goes down to the cutoff, however short all lists are."""
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, 11))
    with pytest.warns(us.DataWarning, match="fewer than the cutoff"):
        value = one_mean("nDCG(ideal=full)@10", {1: [10]}, gain="binary", users="both")
    assert value == pytest.approx(1 / ideal, abs=1e-15)


def test_metrics_are_computed_in_any_company():
    """A metric's values do not depend on what else is asked for, or in which order."""
    names = ["P@1", "P", "P@3", "nDCG@2", "P@2", "nDCG", "nDCG@1"]
    with pytest.warns(us.DataWarning, match="fewer than the cutoff"):
        together = us.evaluate(TEST, {"s": RUN}, names)
    assert list(together.means()["s"]) == names
    for name in names:
        if name == "P@3":
            continue
        assert together.mean(name)["s"] == one_mean(name)
    assert together.means()["s"] == {
        "P@1": 0.5, "P": 0.75, "P@3": 1 / 3, "nDCG@2": pytest.approx(one_mean("nDCG@2")),
        "P@2": 0.5, "nDCG": pytest.approx(one_mean("nDCG")), "nDCG@1": 0.5,
    }  # fmt: skip


def test_what_is_disliked_has_no_gain_unless_asked():
    """A list of one disliked item: 0, or 1 star of the 5 of the best list, as trec_eval."""
    test = {"user": [1, 1], "item": [10, 20], "rating": [1, 5]}
    settings = {"test": test, "run": {1: [10]}, "liked": 4}
    assert one_mean("nDCG@1", **settings) == 0
    assert one_mean("nDCG@1", **settings, gain="rating") == pytest.approx(0.2)
    assert one_mean("DCG@1", **settings, gain="rating") == 1
    assert one_mean("ndcg_cut_1", **settings, compat="trec_eval") == pytest.approx(0.2)


def test_a_liked_rating_without_a_gain_is_refused():
    jester = {"user": [1, 1, 1], "item": [10, 20, 30], "rating": [-9.5, 0, 7]}
    settings = {"test": jester, "run": {1: [30, 20, 10]}}
    assert one_mean("nDCG@2", **settings, liked=0.5) == 1
    assert one_mean("P@2", **settings, liked=0) == 1
    message = r"the rating 0 is liked, but a gain must be above 0 \(1 row\); .* gain='levels'"
    with pytest.raises(us.DataError, match=message):
        one_mean("nDCG@2", **settings, liked=0)
    assert one_mean("nDCG@2", **settings, liked=0, gain="levels") == 1


def test_progress_reaches_the_end(data):
    _, test, runs = data
    calls = []
    us.evaluate(test, runs, "P@5", liked=4, progress=lambda *at: calls.append(at), threads=1)
    assert calls[-1][0] == calls[-1][1] == len(calls)


# Which users are averaged. Five users:
#   A test with 4 liked items, list with 2 of them     P@2 = 1, Recall@2 = 1/2
#   B test without liked items, list                   P@2 = 0, Recall@2 undefined
#   C test with a liked item, no list                  P@2 = 0, Recall@2 = 0
#   D list, no test                                    P@2 = 0, Recall@2 undefined
#   E only in training                                 P@2 = 0, Recall@2 undefined
FIVE_TEST = {
    "user": ["A", "A", "A", "A", "B", "C"],
    "item": [1, 2, 3, 4, 1, 1],
    "rating": [5, 4, 5, 4, 2, 5],
}
FIVE_RUN = {"A": [2, 4, 9], "B": [1, 2], "D": [1, 2]}
FIVE_TRAIN = {"user": ["A", "C", "D", "E"], "item": [7, 7, 8, 8], "rating": [5, 5, 5, 5]}


@pytest.mark.parametrize(
    ("users", "count", "precision", "recall_zero", "recall_skip", "skipped"),
    [
        ("with-test", 3, 1 / 3, 1 / 6, 1 / 4, 1),  # A B C
        ("with-relevant", 2, 1 / 2, 1 / 4, 1 / 4, 0),  # A C
        ("with-list", 3, 1 / 3, 1 / 6, 1 / 2, 2),  # A B D
        ("both", 2, 1 / 2, 1 / 4, 1 / 2, 1),  # A B
        ("with-train", 4, 1 / 4, 1 / 8, 1 / 4, 2),  # A C D E
        ("all", 5, 1 / 5, 1 / 10, 1 / 4, 3),
    ],
)
def test_users_and_undefined_values(users, count, precision, recall_zero, recall_skip, skipped):
    names = ["P@2", "Recall@2"]
    scores = us.evaluate(FIVE_TEST, {"s": FIVE_RUN}, names, liked=4, train=FIVE_TRAIN)
    assert scores.per_user()["user"].to_list() == ["A", "B", "C", "D", "E"]
    zero = scores.averages(users=users)["s"]
    skip = scores.averages(users=users, undefined="skip")["s"]
    assert (zero["P@2"].value, zero["P@2"].users, zero["P@2"].undefined) == (precision, count, 0)
    assert zero["Recall@2"].value == recall_zero
    assert (zero["Recall@2"].users, zero["Recall@2"].undefined) == (count, skipped)
    assert skip["P@2"].value == precision
    assert skip["Recall@2"].value == recall_skip
    assert (skip["Recall@2"].users, skip["Recall@2"].undefined) == (count - skipped, skipped)
    settings = {"liked": 4, "train": FIVE_TRAIN, "users": users, "undefined": "skip"}
    assert one_mean("Recall@2", FIVE_RUN, FIVE_TEST, **settings) == recall_skip


def test_undefined_is_not_zero():
    scores = us.evaluate(FIVE_TEST, {"s": FIVE_RUN}, ["Recall@2", "P@2"], liked=4)
    values = dict(zip(scores.per_user()["user"], scores.values("s", "Recall@2"), strict=True))
    assert values["C"] == 0.0
    assert math.isnan(values["B"])
    assert math.isnan(values["D"])
    assert scores.values("s", "P@2").tolist() == [1, 0, 0, 0]


def test_auc_is_undefined_where_every_target_is_liked():
    test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 5]}
    with pytest.warns(us.DataWarning, match="1 recommended item is outside the catalogue"):
        scores = us.evaluate(test, {"s": {1: ["x", "a"]}}, "AUC")
    assert math.isnan(scores.values("s", "AUC")[0])


def test_a_mean_over_nobody_is_undefined():
    test = {"user": [1, 2], "item": [20, 30], "rating": [1, 5]}
    scores = us.evaluate(test, {"s": {1: [99, 20]}}, "Recall@2", liked=5, users="with-list")
    mean = scores.averages(undefined="skip")["s"]["Recall@2"]
    assert math.isnan(mean.value)
    assert (mean.users, mean.undefined) == (0, 1)


def test_no_liked_rating_is_refused_with_the_values():
    with pytest.raises(
        us.DataError, match=r"no rating is liked: ratings are 2 .* from 6; give .*4"
    ):
        us.evaluate(TEST, {"s": {1: [99, 20]}}, "Recall@2", liked=6)


def test_training_must_be_known_to_average_over_it():
    scores = us.evaluate(TEST, {"s": RUN}, "P@1")
    with pytest.raises(us.SettingError, match="users='with-train' needs the training ratings"):
        scores.means(users="with-train")


def test_unknown_policies_are_refused_with_the_nearest():
    with pytest.raises(us.UnknownName, match=r"unknown users 'with-tests'\. Did you mean 'with-te"):
        us.evaluate(TEST, {"s": RUN}, "P@1", users="with-tests")
    with pytest.raises(us.UnknownName, match=r"unknown undefined 'skipped'\. Did you mean 'skip'"):
        us.evaluate(TEST, {"s": RUN}, "P@1").means(undefined="skipped")


def test_a_ratio_of_sums():
    """Two users: 1 of 1 and 1 of 3 found. The mean is 2/3, the ratio of sums 2/4."""
    test = {"user": [1, 2, 2, 2], "item": [1, 2, 3, 4], "rating": [5, 5, 5, 5]}
    run = {1: [1, 9], 2: [2, 9]}
    scores = us.evaluate(test, {"s": run}, ["SR(gamma=0)@2", "SR(gamma=0,mean=ratio)@2"])
    assert scores.means()["s"] == {
        "SR(gamma=0)@2": pytest.approx(2 / 3, abs=1e-15),
        "SR(gamma=0,mean=ratio)@2": 0.5,
    }
    assert scores.per_user()["SR(gamma=0,mean=ratio)@2/den"].to_list() == [1, 3]


# Exact means


def scores_of(values):
    """Return the scores of one system with these values."""
    row = np.array([values], np.float64)
    users = Ids(pl.Series(range(row.size)))
    lists = pl.DataFrame({"user": np.arange(row.size, dtype=np.int32), "test": 1, "liked": 1})
    return Scores(
        ("DCG",),
        {"s": System(row, depth=np.ones(row.size, np.int64))},
        users,
        lists,
        order=("DCG",),
    )


FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, 1.7976931348623157e308, 0.1, 1e16, -1e16]
)


@given(st.lists(FLOATS, min_size=1, max_size=40), st.randoms())
def test_means_are_exactly_rounded(values, shuffler):
    exact = float(sum(map(Fraction, values)) / len(values))
    scores = scores_of(values)
    assert scores.mean("DCG", users="all")["s"].hex() == (exact + 0.0).hex()
    shuffler.shuffle(values)
    assert scores_of(values).mean("DCG", users="all")["s"].hex() == (exact + 0.0).hex()


@given(st.lists(st.floats(0, 1) | st.just(math.nan), min_size=1, max_size=40))
def test_means_agree_with_fsum_and_count_what_is_undefined(values):
    known = [value for value in values if not math.isnan(value)]
    means = scores_of(values)
    zero = means.averages(users="all")["s"]["DCG"]
    skip = means.averages(users="all", undefined="skip")["s"]["DCG"]
    assert zero.value == pytest.approx(math.fsum(known) / len(values), rel=1e-15, abs=0)
    assert (zero.users, zero.undefined) == (len(values), len(values) - len(known))
    assert skip.users == len(known)
    if known:
        assert skip.value == float(sum(map(Fraction, known)) / len(known))
    else:
        assert math.isnan(skip.value)


def test_a_naive_mean_would_differ():
    """What the exact sum is for: numpy loses the small value altogether."""
    values = [1e16, 1.0, -1e16]
    assert np.mean(values) != 1 / 3
    assert scores_of(values).mean("DCG", users="all")["s"] == 1 / 3


# Relevance


@pytest.mark.parametrize(
    ("ratings", "note"),
    [
        (
            [1, 5, 3, 4],
            "liked: ratings from 4 up (assumed from the 1-5 scale; set it with liked=…)",
        ),
        ([0.5, 5, 3.5, 4], "liked: ratings from 4 up (assumed from the 1-5 scale; set it with lik"),
        ([0, 1, 0, 1], "liked: every value from 1 up (assumed)"),
        ([-1, 1, -1, 1], "liked: 1, and not -1 or 0 (assumed)"),
        ([1, 1, 1, 1], "liked: every pair that occurs (implicit feedback)"),
        (None, "liked: every pair that occurs (implicit feedback)"),
    ],
)
def test_assumed_thresholds(ratings, note):
    test = {"user": [1, 1, 1, 1], "item": [1, 2, 3, 4]}
    if ratings is not None:
        test["rating"] = ratings
    scores = us.evaluate(test, {"s": {1: [1, 2]}}, "P@2")
    assert any(line.startswith(note) for line in scores.notes)
    assert scores.card["relevance"]["liked"] == (4 if "4" in note else 1)
    stated = us.evaluate(test, {"s": {1: [1, 2]}}, "P@2", liked=1)
    assert not any(line.startswith("liked:") for line in stated.notes)


def test_the_threshold_of_qrels_is_one(tmp_path):
    (tmp_path / "t.qrels").write_text("q 0 a 3\nq 0 b 0\nq 0 c -1\n")
    scores = us.evaluate(tmp_path / "t.qrels", {"s": {"q": ["a", "c", "b"]}}, ["P@1", "Judged@3"])
    assert scores.card["relevance"]["liked"] == 1
    assert scores.means()["s"] == {"P@1": 1.0, "Judged@3": 2 / 3}  # c is not judged


@pytest.mark.parametrize(
    ("ratings", "span"),
    [
        ([0, 10], r"0 \(1 row\) and 10 \(1 row\).* liked=10 .* if 0 means that there is no rating"),
        ([1, 3], r"1 \(1 row\) and 3 \(1 row\).* liked=3 "),
        ([-1, 5], r"-1 \(1 row\) and 5 \(1 row\).* liked=5 "),
        (range(30), "from 0 to 29; .* liked=15 "),
    ],
)
def test_a_threshold_that_is_not_plain_must_be_given(ratings, span):
    test = {"user": [1] * len(ratings), "item": range(len(ratings)), "rating": ratings}
    with pytest.raises(us.SettingError, match=rf"what counts as liked\? Ratings are {span}"):
        us.evaluate(test, {"s": {1: [1]}}, "P@1")


def test_relevance_is_given_once():
    rule = us.Relevance(liked=4, gain="binary")
    assert one_mean("DCG@1", {1: [10]}, relevance=rule, users="both") == 1.0
    for twice in ({"liked": 4}, {"above": 3}, {"gain": "binary"}, {"loss": "binary"}):
        with pytest.raises(us.SettingError, match="give either relevance or"):
            us.evaluate(TEST, {"s": RUN}, "P@1", relevance=rule, **twice)


# What a reader of the numbers should know


def test_a_cutoff_deeper_than_the_lists_warns():
    with pytest.warns(
        us.DataWarning, match=r"s: the lists hold at most 2 items, fewer than .*P@3$"
    ):
        scores = us.evaluate(TEST, {"s": RUN}, ["P@2", "P@3", "P"])
    assert any("fewer than the cutoff of P@3" in note for note in scores.notes)


@pytest.mark.parametrize("metric", ["bpref", "infAP@1"])
def test_preferences_without_disliked_items_warn(metric):
    test = {"user": [1, 2], "item": [10, 30], "rating": [4, 5]}
    with pytest.warns(us.DataWarning, match=f"no judgment is disliked: {metric} cannot tell"):
        us.evaluate(test, {"s": RUN}, metric, liked=4)
    us.evaluate(TEST, {"s": RUN}, metric)  # does not warn


@pytest.mark.parametrize("metric", ["anti-P@1", "anti-nDCG@1"])
def test_metrics_of_dislikes_need_a_disliked_item(metric):
    test = {"user": [1, 2], "item": [10, 30], "rating": [4, 5]}
    with pytest.raises(us.DataError, match=f"^{metric}: no rating is disliked: ratings are 4 "):
        us.evaluate(test, {"s": RUN}, metric, liked=4)
    with quietly():  # short lists
        usual = us.evaluate(test, {"s": RUN}, liked=4)
    assert any(note.endswith("anti-P@10 left out") for note in usual.notes)
    us.evaluate(TEST, {"s": RUN}, metric)


PLAYS = {"user": [1, 1, 2], "item": [10, 20, 30], "plays": [40, 1, 7]}


def test_implicit_feedback_counts_a_pair_once():
    """A user who played an item 40 times does not outweigh others; a stated gain is kept."""
    once = us.evaluate({"user": PLAYS["user"], "item": PLAYS["item"]}, {"s": RUN}, "nDCG@2")
    for options in ({}, {"liked": 1}, {"liked": 1, "gain": "binary"}):
        scores = us.evaluate(PLAYS, {"s": RUN}, "nDCG@2", **options)
        assert scores.mean("nDCG@2") == once.mean("nDCG@2")
        assert "gain binary" in scores.relevance
    counted = us.evaluate(PLAYS, {"s": RUN}, "nDCG@2", gain="levels").mean("nDCG@2")
    assert counted != once.mean("nDCG@2")
    assert us.evaluate(PLAYS, {"s": RUN}, "nDCG@2", gain="rating").mean("nDCG@2") == counted
    explicit = us.read_ratings(PLAYS, feedback="explicit")
    assert us.evaluate(explicit, {"s": RUN}, "nDCG@2", liked=1).mean("nDCG@2") == counted


def test_what_needs_dislikes_is_left_out_of_implicit_feedback():
    scores = us.evaluate(PLAYS, {"s": RUN}, ["P@2", "anti-P@2", "nDCL@2", "bpref"])
    assert scores.order == ("P@2",)
    note = "these ratings are implicit feedback, which has no dislikes: anti-P@2, nDCL@2, bpref "
    assert note + "left out" in scores.notes
    with pytest.raises(
        us.SettingError, match=r"no dislikes: anti-P@2 cannot .*feedback='explicit'"
    ):
        us.evaluate(PLAYS, {"s": RUN}, "anti-P@2")


def test_training_items_in_lists_warn():
    train = {"user": [1, 1, 2], "item": [20, 40, 20], "rating": [5, 5, 5]}
    message = r"s: 1 recommended item is in the user's training ratings"
    with pytest.warns(us.DataWarning, match=message):
        us.evaluate(TEST, {"s": RUN}, "P@1", train=train)


def test_items_outside_the_catalogue_warn():
    message = r"2 recommended items are outside the catalogue: give items="
    with pytest.warns(us.DataWarning, match=message):
        value = one_mean("Coverage", {1: [10, 98, 99]}, items=[10, 20, 30])
    assert value == 1 / 3


def test_notes_count_users_who_are_in_one_source_only():
    scores = us.evaluate(FIVE_TEST, {"s": FIVE_RUN}, "P@2", liked=4)
    assert "s: 1 user with test data has no list; they score 0" in scores.notes
    assert "s: 1 list of a user without test data is not averaged" in scores.notes
    assert "1 user with test data has no liked item" in scores.notes
    both = us.evaluate(FIVE_TEST, {"s": FIVE_RUN}, "P@2", liked=4, users="both")
    assert "s: 1 user with test data has no list; left out of the means" in both.notes


def test_the_table_says_what_it_is_a_mean_of():
    text = str(us.evaluate(TEST, {"s": RUN}, "P@1", liked=4))
    assert "0.5000" in text
    assert "mean over 2 users (with-test); undefined values count as 0" in text
    assert "liked: rating >= 4; gain liked-only; loss levels" in text


def test_print_and_notebook_show_every_note():
    train = {"user": [1, 2, 3], "item": [10, 20, 30], "rating": [5, 4, 3]}
    test = {"user": [1, 1, 2, 4], "item": [20, 30, 30, 40], "rating": [5, 2, 4, 3]}
    runs = {"s": {1: [10, 20], 2: [30], 3: [40]}}
    with pytest.warns(us.DataWarning):
        scores = us.evaluate(test, runs, ["P@5", "Coverage@5"], train=train)
    for counted in (
        "liked: ratings from 4 up (assumed",
        "s: the lists hold at most 2 items, fewer than the cutoff of P@5",
        "s: 1 user with test data has no list; they score 0",
        "s: 1 list of a user without test data is not averaged",
        "s: 1 recommended item is in the user's training ratings",
        "1 user with test data has no liked item",
        "catalogue: 4 items",
    ):
        assert any(counted in note for note in scores.notes), counted
    assert str(scores).endswith("\n".join(scores.notes))
    page = scores._repr_html_()
    for note in scores.notes:
        assert html.escape(note) in page
    hostile = replace(scores, notes=("<script>alert(1)</script>",))
    assert "<script>" not in hostile._repr_html_()


def test_notes_of_many_designs_stand_once():
    scores = us.evaluate(TEST, {"a": RUN, "b": RUN}, "P@1", liked=4)

    def part(*notes):
        return replace(scores, notes=notes)

    assert notes_of({"one": [part("a: 3 rows", "a: 3 rows", "plain")]}) == ["a: 3 rows", "plain"]
    # A number inside a name is no count; two notes of one split are two.
    apart = ["x-1.csv: 7 rows", "x-2.csv: 9 rows", "P@10 of 7", "P@10 of 8"]
    assert notes_of({"one": [part(*apart)]}) == apart
    several = {
        "one": [part("a: 1,200 of 9 rows", "b: 1,200 of 9 rows"), part("a: 30 of 9 rows")],
        "two": [part("a: 7 of 9 rows", "for two")],
        "three": [part("a: 8 of 9 rows")],
    }
    assert notes_of(several) == [
        "a: 7 to 1,200 of 9 rows", "b: 1,200 of 9 rows (one in 1 of 2 splits)", "for two (two)",
    ]  # fmt: skip
    assert notes_of({"": [part("a: 1 row", "b: 1 row"), part()]}) == [
        "every system: 1 row (in 1 of 2 splits)"
    ]


@pytest.mark.parametrize("users", USERS)
def test_per_user_tells_whom_a_mean_is_over(data, users):
    """The mean of the marked rows is `mean()`: the columns mark what each choice averages."""
    train, test, runs = data
    runs = {"a": runs["a"].filter(pl.col("user") % 3 > 0)}
    scores = us.evaluate(test, runs, ["P@5", "RR"], liked=4, train=train)
    frame = scores.per_user()
    assert frame.columns[:7] == ["system", "user", "test", "liked", "disliked", "train", "depth"]
    marked = {
        "with-test": pl.col("test") > 0,
        "with-relevant": pl.col("liked") > 0,
        "with-list": pl.col("depth") > 0,
        "both": (pl.col("test") > 0) & (pl.col("depth") > 0),
        "with-train": pl.col("train") > 0,
        "warm": (pl.col("train") > 0) & (pl.col("test") > 0),
        "all": pl.lit(True),
    }[users]  # fmt: skip
    kept = frame.filter(marked)
    for metric in ("P@5", "RR"):
        mean = math.fsum(kept[metric]) / kept.height
        assert mean == pytest.approx(scores.mean(metric, users=users)["a"], abs=1e-15)
    counts = test.group_by("user").len()
    told = dict(frame.select("user", "test").iter_rows())
    assert {user: told[user] for user in counts["user"]} == dict(counts.iter_rows())


# Errors


def test_runs_that_share_no_user_or_item():
    message = (
        r"s: no users in common with the judgments\. Its ids are text, such as 'x', 'y'; the "
        r"judgments' are integer, such as 1, 2\. Check"
    )
    with pytest.raises(us.DataError, match=message):
        us.evaluate(TEST, {"s": {"x": [10], "y": [20]}}, "P@1")
    message = (
        r"s: no items in common with the judgments: none of its items is judged\. Its ids are "
        r"integer, such as 7, 8; the judgments' are integer, such as 10, 20, 30"
    )
    with pytest.warns(us.DataWarning, match=message):
        scores = us.evaluate(TEST, {"s": {1: [7, 8]}, "t": RUN}, ["P@1", "Recall"], liked=4)
    assert scores.means()["s"] == {"P@1": 0.0, "Recall": 0.0}
    assert scores.means()["t"] == {"P@1": 0.5, "Recall": 1.0}
    assert any(note.startswith("s: no items in common") for note in scores.notes)


def test_integers_meet_their_decimals():
    assert one_mean("P@1", {"1": ["10"], "2": ["30"]}) == 1.0
    assert one_mean("P@1", {"1": ["10"], "2": ["30"], "x": ["007"]}) == 1.0
    with pytest.raises(us.DataError, match="no users in common"):
        us.evaluate(TEST, {"s": {"01": ["10"]}}, "P@1")


def test_unknown_metrics_are_refused_with_the_nearest():
    with pytest.raises(us.UnknownName, match=r"unknown metric 'nDGC'\. Did you mean 'nDCG'\?"):
        us.evaluate(TEST, {"s": RUN}, ["P@1", "nDGC@10"])
    with pytest.raises(
        us.UnknownName, match=r"unknown setting of nDCG 'idael'\. Did you mean 'ide"
    ):
        us.evaluate(TEST, {"s": RUN}, "nDCG(idael=cut)")
    with pytest.raises(us.SettingError, match=r"settings come first: nDCG\(ideal=full\)@10$"):
        us.evaluate(TEST, {"s": RUN}, "nDCG@10(ideal=full)")
    with pytest.raises(us.SettingError, match=r"ideal must be one of cut, uncut, .* got 'cutt'"):
        us.evaluate(TEST, {"s": RUN}, "nDCG(ideal=cutt)")
    with pytest.raises(us.SettingError, match="a cutoff must be a whole number from 1"):
        us.evaluate(TEST, {"s": RUN}, "P@0")
    with pytest.raises(us.SettingError, match="no metrics are named"):
        us.evaluate(TEST, {"s": RUN}, [])


def test_metrics_that_need_training():
    with pytest.raises(us.DataError, match=r"Novelty@1 needs the training ratings: give train="):
        us.evaluate(TEST, {"s": RUN}, ["P@1", "Novelty@1"])


def test_asking_scores_for_what_they_do_not_hold():
    scores = us.evaluate(TEST, {"mine": RUN}, ["ndcg_cut_2", "Coverage"])
    assert scores.mean("nDCG@2") == scores.mean("ndcg_cut_2")  # the same metric by another name
    with pytest.raises(us.UnknownName, match="unknown metric of these scores 'P@2'"):
        scores.mean("P@2")
    with pytest.raises(us.UnknownName, match=r"unknown system 'mien'\. Did you mean 'mine'"):
        scores.values("mien", "nDCG@2")
    with pytest.raises(us.UnknownName, match=r"unknown system 'mien'\. Did you mean 'mine'"):
        scores.averaged("mien")
    with pytest.raises(us.SettingError, match="Coverage describes a whole run: it has no value"):
        scores.values("mine", "Coverage")


@pytest.mark.parametrize(
    ("memory", "amount"),
    [("512MiB", 512 << 20), ("2GB", 2 * 10**9), ("1.5 GiB", 3 << 29), (1 << 20, 1 << 20)],
)
def test_memory(memory, amount):
    assert memory_bytes(memory) == amount


@pytest.mark.parametrize("memory", ["lots", "1KB", 5, "-1GB"])
def test_memory_that_makes_no_sense(memory):
    with pytest.raises(us.SettingError, match="memory must"):
        us.evaluate(TEST, {"s": RUN}, "P@1", memory=memory)


@pytest.mark.parametrize("wrong", [{"threads": 0}, {"depth": 0}])
def test_threads_and_depth_are_at_least_one(wrong):
    with pytest.raises(
        us.SettingError, match=r"must be (at least 1|a whole number from 1 up), got 0"
    ):
        us.evaluate(TEST, {"s": RUN}, "P@1", **wrong)


def test_depth_cuts_every_list():
    assert one_mean("HitRate") == 1.0
    assert one_mean("HitRate", depth=1) == 0.5


def test_ties_and_seed_reach_the_runs():
    run = {1: {10: 1.0, 20: 1.0}, 2: {30: 1.0}}
    assert one_mean("P@1", run) == 1.0
    assert one_mean("P@1", run, ties="trec") == 0.5
    seeds = {one_mean("P@1", run, ties="random", seed=seed) for seed in range(20)}
    assert seeds == {0.5, 1.0}
    with pytest.raises(us.UnknownName, match=r"unknown ties 'tre'\. Did you mean 'trec'"):
        us.evaluate(TEST, {"s": RUN}, "P@1", ties="tre")


# Runs and their names


@pytest.fixture
def files(tmp_path):
    for name in ("pop.csv", "knn.parquet", "other/pop.csv"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        run = us.read_run(RUN)
        run.to_csv(path) if path.suffix == ".csv" else run.to_parquet(path)
    return tmp_path


def test_names_of_systems(files):
    def names(runs):
        return list(us.evaluate(TEST, runs, "P@1").systems)

    assert names({"mine": files / "pop.csv", "theirs": str(files / "knn.parquet")}) == [
        "mine",
        "theirs",
    ]
    assert names([files / "pop.csv", str(files / "knn.parquet")]) == ["pop", "knn"]
    assert names(files / "pop.csv") == ["pop"]
    assert names(us.read_run(RUN)) == ["run"]
    assert names(us.read_run(RUN).to_polars()) == ["run"]


def test_names_that_clash_or_lack(files):
    message = r"two runs are named 'pop'; name them in a mapping"
    with pytest.raises(us.SettingError, match=message):
        us.evaluate(TEST, [files / "pop.csv", files / "other" / "pop.csv"], "P@1")
    with pytest.raises(us.SettingError, match="a list of runs must hold paths"):
        us.evaluate(TEST, [us.read_run(RUN)], "P@1")
    with pytest.raises(us.SettingError, match="no runs are given"):
        us.evaluate(TEST, {}, "P@1")


def test_an_error_in_a_run_names_the_system():
    with pytest.raises(us.DataError, match=r"mine: .*1 item occurs twice in one list"):
        us.evaluate(TEST, {"mine": {1: [10, 10]}}, "P@1")


# Saving


def saved():
    """Return scores with all that can be saved: NaN, a ratio of sums, metrics of whole runs."""
    names = ["Recall@2", "P@1", "HLU@2", "SR(mean=ratio)@1", "Gini@1", "Coverage@2", "ARP@1"]
    settings = {"liked": 4, "users": "all", "undefined": "skip", "items": [1, 2, 3, 4, 7, 8, 9]}
    runs = {"a/b": FIVE_RUN, "c": us.Run.from_arrays(["A"], [[-1, 4]])}
    return us.evaluate(FIVE_TEST, runs, names, train=FIVE_TRAIN, **settings)


def test_saved_scores_come_back(tmp_path):
    scores = saved()
    scores.save(tmp_path / "scores")
    again = us.Scores.load(tmp_path / "scores")
    assert math.isnan(again.systems["c"].aggregates["Gini@1"])  # nothing at rank 1
    assert np.isnan(again.values("a/b", "Recall@2")).any()
    for name in ("a/b", "c"):
        assert bits(again, name) == bits(scores, name)
    assert again.per_user().equals(scores.per_user())
    assert str(again) == str(scores)
    assert again.notes == scores.notes
    assert again.card == json.loads(json.dumps(scores.card))
    assert (again.users, again.undefined) == ("all", "skip")
    for users in ("with-test", "with-relevant", "with-list", "both", "with-train", "all"):
        assert str(again.averages(users=users)) == str(scores.averages(users=users))


def test_scores_of_whole_runs_only(tmp_path):
    scores = us.evaluate(TEST, {"s": RUN}, "Coverage")
    assert scores.per_user().columns == ["system", "user", "test", "liked", "disliked", "depth"]
    scores.save(tmp_path)
    assert us.Scores.load(tmp_path).means() == {"s": {"Coverage": 1.0}}


def test_thresholds_of_numpy_can_be_saved(tmp_path):
    us.evaluate(TEST, {"s": RUN}, "P@1", liked=np.int64(4)).save(tmp_path)
    assert us.Scores.load(tmp_path).card["relevance"]["liked"] == 4


@pytest.mark.parametrize("content", [None, "not json", "{}", "[]", "3"])
def test_foreign_folders_are_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "card.json").write_text(content)
    with pytest.raises(us.DataError, match="no saved scores here"):
        us.Scores.load(tmp_path)


def test_other_formats_are_refused(tmp_path):
    saved().save(tmp_path)
    card = json.loads((tmp_path / "card.json").read_text())
    (tmp_path / "card.json").write_text(json.dumps({**card, "format": 99}))
    with pytest.raises(us.DataError, match="saved in format 99, this version reads 3"):
        us.Scores.load(tmp_path)


def test_every_flipped_bit_of_saved_scores_is_found(tmp_path):
    saved().save(tmp_path)
    rng = np.random.default_rng(0)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == [
        "0000.parquet", "0001.parquet", "card.json", "lists.parquet",
    ]  # fmt: skip
    for path in files:
        content = path.read_bytes()
        for _ in range(100):
            spoilt = bytearray(content)
            spoilt[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
            path.write_bytes(spoilt)
            with pytest.raises(us.DataError, match=str(tmp_path)):
                us.Scores.load(tmp_path)
        path.write_bytes(content)
    assert str(us.Scores.load(tmp_path)) == str(saved())


def test_a_folder_that_lost_a_file_is_refused(tmp_path):
    saved().save(tmp_path)
    (tmp_path / "0001.parquet").unlink()
    with pytest.raises(us.DataError, match=r"0001\.parquet"):
        us.Scores.load(tmp_path)


def test_the_card_tells_how_a_number_came_about():
    card = us.evaluate(TEST, {"s": RUN}, ["P@1"], liked=4, seed=3, depth=2).card
    assert card["judgments"] == {"fingerprint": us.read_ratings(TEST).fingerprint, "rows": 3}
    assert card["relevance"] == {"liked": 4, "gain": "liked-only", "loss": "levels"}
    assert card["metrics"] == {"P@1": "P@1"}
    assert (card["systems"], card["seed"], card["depth"]) == (["s"], 3, 2)
    assert {"unskew", "numpy", "polars"} <= set(card["versions"])
    json.dumps(card, allow_nan=False)


def test_a_run_without_a_name_is_told_apart_from_named_runs():
    with pytest.raises(us.SettingError, match="runs must be named"):
        us.evaluate({"user": [1], "item": [2], "rating": [5]}, {1: [2, 3]}, "P@1", liked=4)


def test_a_catalogue_without_header_keeps_its_first_item(tmp_path):
    from unskew.data.read.ratings_files import read_items

    (tmp_path / "items.txt").write_text("a1\nb2\nc3\n")
    assert sorted(read_items(tmp_path / "items.txt")) == ["a1", "b2", "c3"]
    (tmp_path / "named.txt").write_text("item_id\na\nb\n")
    assert sorted(read_items(tmp_path / "named.txt")) == ["a", "b"]
    (tmp_path / "numbers.txt").write_text("3\n1\n")
    assert sorted(read_items(tmp_path / "numbers.txt")) == [1, 3]


def test_scores_can_be_pickled():
    import pickle

    scores = us.evaluate(TEST, {"s": RUN}, ["P@1", "Coverage"], liked=4)
    again = pickle.loads(pickle.dumps(scores))
    assert again.card == scores.card
    assert again.means() == scores.means()


def test_one_user_is_no_users():
    one = us.evaluate(
        {"user": [1], "item": ["a"], "rating": [5]}, {"x": {1: ["a"]}}, ["P@1"], liked=4
    )
    assert "mean over 1 user (" in str(one)
