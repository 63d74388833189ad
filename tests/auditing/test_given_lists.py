"""Audits of lists that users bring: references, chance, reach, designs that count, notes."""

import json
import re

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.sample import sample
from unskew.auditing.audit import audit
from unskew.auditing.lists.list_designs import in_a_row
from unskew.auditing.lists.list_inputs import metrics_within, on_split
from unskew.data.ratings import under_one_numbering

SMALL = {"plan": "quick", "repeats": 2, "permutations": 200}
REFERENCES = tuple(
    f"{name} (reference)" for name in ("popularity", "smoothed-average", "item-knn", "random")
)
TEST = {"user": [1, 1, 2, 2, 3, 3], "item": list("abacbc"), "rating": [5, 2, 5, 1, 4, 2]}
TRAIN = {"user": [1, 2, 3, 3, 4], "item": list("cbade"), "rating": [5, 1, 2, 4, 5]}
RUNS = {"good": {u: ["a", "b", "c"] for u in (1, 2, 3)}, "bad": {u: ["c"] for u in (1, 2, 3)}}


@pytest.fixture(scope="module")
def parts():
    return sample(users=150, items=80, depth=20)


@pytest.fixture(scope="module")
def full(parts):
    """Return an audit of two systems with training ratings."""
    runs = {name: parts.runs[name] for name in ("popular", "personal")}
    return audit(judgments=parts.test, runs=runs, train=parts.train, liked=4, **SMALL)


def by_user(frame):
    """Return the items of each user, in the order of the table."""
    return {user: part["item"].to_list() for (user,), part in frame.group_by("user")}


# Reference systems


def test_reference_systems_stand_beside_the_given_ones(full):
    assert full.systems == ("popular", "personal", *REFERENCES)
    assert full.references == REFERENCES
    for parts in full.scores.values():
        assert set(parts[0].systems) == set(full.systems)
    assert any(note.startswith("4 reference systems are trained on") for note in full.notes)


def test_reference_lists_are_those_of_a_plain_count(full, parts):
    """Popularity by hand: the most rated items that are not in the user's training ratings."""
    lists = full.core.lists[0]
    run = lists.runs["popularity (reference)"]
    counts = dict(parts.train.group_by("item").len().iter_rows())
    items = sorted({*parts.train["item"], *parts.test["item"]})
    order = sorted(items, key=lambda item: (-counts.get(item, 0), item))
    seen = by_user(parts.train)
    users, raw = lists.split.test.users.values.to_list(), lists.split.test.items.values.to_list()
    assert run.depth.max() == 20
    for at, user in enumerate(users):
        mine = [raw[code] for code in run.item[run.start[at] : run.start[at + 1]]]
        if mine:
            expected = [item for item in order if item not in seen.get(user, ())]
            assert mine == expected[: len(mine)]
    # None of the reference systems recommends what the user rated in training.
    for name in full.references:
        assert not any(
            note.startswith(f"{name}: ") and "training ratings" in note
            for note in full.scores["as-given"][0].notes
        )


def test_reference_lists_are_for_the_same_users(full, parts):
    """A copy of a reference system has the same estimates: the lists are for the same users."""
    popular = us.recommend.Popularity()
    split = full.core.lists[0].split
    lists = us.targets.AllItems().lists(split, liked=4)
    run = us.rank(popular.fit(split.train), lists, depth=20)
    result = audit(judgments=parts.test, runs={"copy": run}, train=parts.train, liked=4, **SMALL)
    name = "popularity (reference)"
    for metric in ("P@10", "DCG@10"):
        copied, own = (
            result.estimates.row(system=each, metric=metric, quantity="ips")
            for each in ("copy", name)
        )
        assert (copied.value, copied.note) == (own.value, own.note)


def test_cold_users_are_counted():
    train = {"user": [1, 1, 2], "item": list("cda"), "rating": [5, 1, 4]}
    result = audit(judgments=TEST, runs=RUNS, train=train, liked=4, **SMALL)
    note = "1 user has test data but no training data: reference systems"
    assert any(one.startswith(note) for one in result.notes)


def test_item_knn_is_tuned_on_training_ratings_alone(parts):
    """Other test ratings change neither the settings nor the lists of reference systems."""
    runs = {"popular": parts.runs["popular"]}
    other = parts.test.with_columns(rating=6 - pl.col("rating"))
    one, two = (
        audit(judgments=test, runs=runs, train=parts.train, liked=4, **SMALL)
        for test in (parts.test, other)
    )
    said = [note for note in one.notes if note.startswith("item-knn (reference): ")]
    assert re.search(r"k=.* the best of \d+ settings on a part of the training ratings", said[0])
    assert said[0] in two.notes
    for name in one.references:
        first, second = (each.core.lists[0].runs[name] for each in (one, two))
        assert np.array_equal(first.item, second.item)


def test_references_can_be_left_out_and_never_take_a_name(parts):
    runs = {"a": parts.runs["popular"], "popularity (reference)": parts.runs["random"]}
    data = {"judgments": parts.test, "runs": runs, "train": parts.train, "liked": 4, **SMALL}
    result = audit(**data)
    assert result.references[0] == "popularity (reference 2)"
    assert len(set(result.systems)) == 6
    without = audit(**data, references=False)
    assert without.systems == tuple(runs)
    assert without.references == ()
    assert "references=False" in without.command
    assert "--no-references" not in result.command


def test_references_allow_an_audit_of_one_system(parts):
    runs = {"mine": parts.runs["personal"]}
    result = audit(judgments=parts.test, runs=runs, train=parts.train, liked=4, **SMALL)
    assert result.systems == ("mine", *REFERENCES)
    assert result.name == "the lists of mine"
    with pytest.raises(us.SettingError, match="at least two, or of one with train"):
        audit(judgments=parts.test, runs=runs, liked=4, **SMALL)


# Chance


def test_chance_is_that_of_all_items_outside_training(full, parts):
    """P@10 of a random order: each user's liked test ratings over the items that can be ranked."""
    items = len({*parts.train["item"], *parts.test["item"]})
    rated = dict(parts.train.group_by("user").len().iter_rows())
    liked = dict(parts.test.filter(pl.col("rating") >= 4).group_by("user").len().iter_rows())
    users = parts.test["user"].unique().to_list()
    chance = [liked.get(user, 0) / (items - rated.get(user, 0)) for user in users]
    shown = full.table().filter(design="as-given")["random"].unique().to_list()
    assert shown == [pytest.approx(np.mean(chance))]
    assert full.null.where(quantity="null_random").rows["value"].null_count() == 0


def test_chance_needs_no_training_where_only_judged_items_are_ranked():
    runs = {"x": {1: ["a", "b"], 2: ["a", "c"], 3: ["b", "c"]}}
    runs["y"] = {user: items[::-1] for user, items in runs["x"].items()}
    result = audit(
        judgments=TEST, runs=runs, designs=["test-targets"], metric="P@1", liked=4, **SMALL
    )
    assert result.table()["random"].to_list() == [0.5, 0.5]


def test_unknown_chance_is_said_once_and_is_no_column(parts):
    runs = {name: parts.runs[name] for name in ("popular", "personal")}
    result = audit(judgments=parts.test, runs=runs, liked=4, **SMALL)
    assert result.table()["random"].null_count() == result.table().height
    text = str(result)
    assert text.count("chance is not known") == 1
    assert "left out: ladder: needs the training ratings" in text
    assert result.references == ()
    assert result.core.lists == ()
    section = next(one for one in result.document().sections if one.key == "designs")
    assert all("random" not in getattr(block, "columns", ()) for block in section.every_block())


# Designs that count


def plain_reach(test, run, cutoff):
    """Return the reach of lists by sets: of judged and liked ratings, and of places."""
    listed = by_user(run)
    items = set(test["item"])
    judged, liked = by_user(test), by_user(test.filter(pl.col("rating") >= 4))
    reached = {user: set(mine) & set(listed[user]) for user, mine in judged.items()}
    pleased = {user: set(mine) & set(listed[user]) for user, mine in liked.items()}
    return {
        "judged": sum(map(len, reached.values())) / sum(map(len, judged.values())),
        "liked": sum(map(len, pleased.values())) / sum(map(len, liked.values())),
        "test-targets": sum(min(len(one), cutoff) for one in reached.values())
        / sum(min(len(one), cutoff) for one in judged.values()),
        "test-items": sum(min(len(items & set(listed[user])), cutoff) for user in judged)
        / sum(min(len(items), cutoff) for _ in judged),
    }


def test_reach_is_that_of_plain_sets(parts):
    runs = {name: parts.runs[name] for name in ("popular", "personal")}
    result = audit(judgments=parts.test, runs=runs, liked=4, **SMALL)
    for name, run in runs.items():
        expected = plain_reach(parts.test, run, 10)
        for design in ("test-items", "test-targets"):
            row = result.reach.row(
                by_predicate=(pl.col("system") == name) & (pl.col("design") == design), named=True
            )
            assert row["judged"] == pytest.approx(expected["judged"])
            assert row["liked"] == pytest.approx(expected["liked"])
            assert row["filled"] == pytest.approx(expected[design])


def test_lists_as_deep_as_the_cutoff_do_not_count_three_times(parts):
    """Depth-10 lists under P@10: without unjudged items the same hits, or missing places."""
    runs = {name: parts.runs[name].filter(pl.col("rank") <= 10) for name in ("popular", "personal")}
    result = audit(judgments=parts.test, runs=runs, liked=4, **SMALL)
    assert list(result.designs) == ["as-given"]
    assert set(result.left_out) == {"test-items", "test-targets"}
    assert result.left_out["test-targets"].reason == "reach"
    assert "missing places would count as misses" in result.left_out["test-targets"].why
    text = "\n".join(result.footer())
    assert "left out: design test-targets: the lists of" in text
    # Nothing looks deeper than the lists.
    assert result.scores["as-given"][0].order == tuple(
        one for one in us.auditing.designs.METRICS if not one.endswith("@50")
    )
    note = "the lists of popular hold at most 10 items: 2 metrics that look deeper are left out"
    assert f"{note} (P@50, nDCG@50)" in result.notes


def test_a_design_with_the_same_numbers_counts_once(parts):
    """Where every listed item is judged by somebody, dropping the others changes nothing."""
    judged = parts.test["item"].unique().to_list()
    runs = {
        name: parts.runs[name].filter(pl.col("item").is_in(judged))
        for name in ("popular", "random")
    }
    result = audit(judgments=parts.test, runs=runs, train=parts.train, liked=4, **SMALL)
    assert result.left_out["test-items"].reason == "identical"
    assert result.left_out["test-items"].same_as == "as-given"
    assert "test-items" not in result.designs


def test_whole_lists_keep_the_design_of_judged_items():
    """Lists that hold all that users judged reach everything: test-targets counts."""
    rng = np.random.default_rng(5)
    rated = np.stack([rng.choice(20, 10, replace=False) for _ in range(40)])
    user = np.repeat(np.arange(40), 5)
    train, test = (
        {"user": user, "item": part.ravel(), "rating": rng.integers(1, 6, user.size)}
        for part in (rated[:, :5], rated[:, 5:])
    )
    free = {u: [i for i in range(20) if i not in rated[u, :5]] for u in range(40)}
    runs = {f"order {n}": {u: rng.permutation(free[u]).tolist() for u in free} for n in (1, 2)}
    result = audit(judgments=test, runs=runs, train=train, metric="P@1", liked=4, **SMALL)
    reach = result.reach.filter(pl.col("system").is_in(list(runs)))
    assert reach["judged"].to_list() == [1.0] * 4
    assert "test-targets" in result.designs
    # As castells2018: the same as ranking the judged items alone.
    both = under_one_numbering(us.read_ratings(train), us.read_ratings(test))
    split = us.Split(*both)
    lists = us.targets.TestTargets().lists(split, liked=4)
    best = us.recommend.Popularity().fit(split.train)
    alone = us.evaluate(lists, {"popular": best}, "P@1")
    rows = result.table().filter(design="test-targets")
    own = rows.filter(system="popularity (reference)")["value"]
    assert own.to_list() == [pytest.approx(alone.mean("P@1")["popular"])]
    assert rows["random"].unique().to_list() == [pytest.approx(alone.random()["P@1"])]


def test_a_design_that_is_asked_for_first_is_kept_and_warned_of():
    result = audit(
        judgments=TEST, runs=RUNS, designs=["test-targets"], metric="P@1", liked=4, **SMALL
    )
    assert list(result.designs) == ["test-targets"]
    assert any(note.startswith("test-targets: the lists of bad fill 67%") for note in result.notes)


def test_a_design_in_which_no_order_matters_does_not_count():
    """Nobody judged more than two items and lists reach all: P@10 is the same in any order."""
    runs = {"x": {1: ["a", "b"], 2: ["a", "c"], 3: ["b", "c"]}}
    runs["y"] = {user: items[::-1] for user, items in runs["x"].items()}
    result = audit(judgments=TEST, runs=runs, metric="P@10", liked=4, **SMALL)
    assert result.left_out["test-targets"].reason == "degenerate"
    assert list(result.designs) == ["as-given"]


@pytest.mark.parametrize(
    ("depth", "stated", "metric", "deepest"),
    [(100, None, "P@10", 50), (10, None, "P@10", 10), (4, None, "P@4", 4), (1, None, "P@1", 1)],
)
def test_metrics_look_no_deeper_than_the_lists(depth, stated, metric, deepest):
    order, metrics, notes = metrics_within(depth, "mine", stated, False)
    assert order == metric
    cutoffs = [int(one.split("@")[1]) for one in metrics]
    assert max(cutoffs) == deepest
    assert bool(notes) == (depth < 50)
    stated_order, metrics, _ = metrics_within(depth, "mine", "nDCG@30", True)
    assert stated_order == metrics[0] == "nDCG@30"
    assert not any(one.startswith(("anti-", "nDCL")) for one in metrics)


# Nothing hidden


def test_what_lists_lack_or_should_not_hold_is_in_every_output(parts):
    train = parts.train
    leaks = train.sort("user", "item").with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
    half = parts.runs["personal"].filter(pl.col("user") % 2 == 1)
    strange = parts.runs["popular"].with_columns(
        item=pl.when(pl.col("rank") == 1).then(pl.col("item") + 1000).otherwise("item")
    )
    runs = {"leaks": leaks.drop("rating"), "half": half, "strange": strange}
    result = audit(judgments=parts.test, runs=runs, train=train, liked=4, **SMALL)
    missing = parts.test.filter(pl.col("user") % 2 == 0)["user"].n_unique()
    first = parts.runs["popular"].filter(pl.col("rank") == 1).height
    said = [
        f"leaks: {train.height:,} recommended items are in the user's training ratings",
        f"half: {missing:,} users with test data have no list; they score 0",
        f"strange: {first:,} of {strange.height:,} recommended items are in neither training nor",
        "several splits are not available for given lists: intervals are for these lists on new",
    ]
    assert said[0] in result.scores["as-given"][0].notes
    document = result.document()
    for text in (
        str(result),
        "\n".join(result.footer()),
        document.to_markdown(),
        document.to_json(),
    ):
        plain = text.replace("\\", "")
        assert said[2] in plain
        assert said[3] in plain
        assert "recommended items are in the user's training ratings" in plain
        assert "users with test data have no list; they score 0" in plain


def test_the_report_is_about_these_lists(full):
    document = full.document()
    assert document.title.endswith("the lists of popular and personal")
    text = document.to_markdown()
    assert "trained anew" not in text
    assert "train all systems anew" not in text
    assert "The lists stay as they are." in text
    assert in_a_row(["a", "b", "c", "d"]) == "a, b, c and 1 other"


# The core


def test_the_core_carries_lists_for_what_follows(full, parts):
    core = full.core
    assert core.metric == "P@10"
    assert core.k == 10
    assert core.systems == full.systems
    assert dict(core.designs) == dict(full.designs)
    (lists,) = core.lists
    ladder = us.bias.ladder_part(
        lists.split.train, lists.split.test, lists.runs, core.relevance, core.k
    )
    observed = dict(zip(ladder.systems, ladder.scores[-1], strict=True))
    warm = core.warm_scores["as-given"][0].mean("P@10")
    assert observed == pytest.approx(warm)
    named = us.bias.ladder(lists.split, dict(lists.runs), k=10, relevance=core.relevance)
    assert named is not None


def test_lists_on_a_split_keep_their_places():
    data = us.read_ratings({"user": ["x", "y", "z"], "item": ["a", "b", "c"]})
    split = us.Split(data, data)
    run = on_split(us.read_run({"z": ["c", "q", "a"], "w": ["b"], "x": ["b"]}), split, 2)
    assert run.start.tolist() == [0, 1, 1, 3]
    assert run.item.tolist() == [1, 2, -1]


def test_random_ratings_go_with_given_lists(parts):
    rng = np.random.default_rng(3)
    user = np.repeat(np.arange(1, 151), 10)
    item = np.concatenate([rng.choice(np.arange(1, 81), 10, replace=False) for _ in range(150)])
    shown = pl.DataFrame({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})
    runs = {name: parts.runs[name] for name in ("popular", "personal")}
    result = audit(
        judgments=parts.test, runs=runs, train=parts.train, random=shown, liked=4, **SMALL
    )
    assert result.evidence.random_slice is not None
    assert result.evidence.is_given
    assert f"frame, {len(shown):,} rows" in " ".join(result.notes)
    assert 'random="FILE"' in result.command


# Implicit feedback


def test_a_log_of_uses_is_recognised(parts):
    uses = [
        frame.select("user", "item", plays=1 + pl.col("user") % 7)
        for frame in (parts.test, parts.train)
    ]
    test, train = (us.read_ratings(frame, rating="plays") for frame in uses)
    runs = {"old": parts.runs["popular"], "new": parts.runs["personal"]}
    result = audit(judgments=test, runs=runs, train=train, liked=1, **SMALL)
    assert result.evidence.is_given
    assert result.core.implicit
    assert result.relevance.gain == "binary"
    assert any("no rating is a dislike" in text for text in result.assumed)
    assert not any(name.startswith("smoothed") for name in result.references)
    assert not any(one.startswith(("anti-", "nDCL")) for one in result.scores["as-given"][0].order)
    assert result.skipped["margins"] == "no rating is a dislike"
    # How often something was used is no gain: the values of nDCG are those of 0 and 1.
    plain = us.evaluate(test, runs, "nDCG@10", liked=1, gain="binary").mean("nDCG@10")
    for name in runs:
        assert result.scores["as-given"][0].mean("nDCG@10")[name] == plain[name]
    document = result.document()
    assert document.sections


# Data that lack something


HOSTILE = {
    "all liked": {"judgments": {**TEST, "rating": [5] * 6}},
    "lists of one item": {"runs": {"x": {1: ["a"], 2: ["b"]}, "y": {1: ["b"], 3: ["a"]}}},
    "users unknown to the test": {"runs": {"x": {1: ["a"], 9: ["b"]}, "y": {2: ["b"], 8: ["c"]}}},
    "items unknown to all": {"runs": {"x": {1: ["q"], 2: ["r"]}, "y": {1: ["a"], 2: ["b"]}}},
    "test is training": {"train": TEST},
    "training of others": {"train": {"user": [8, 9], "item": ["a", "z"], "rating": [5, 1]}},
    "a metric deeper than lists": {"metric": "nDCG@50"},
    "a metric of whole lists": {"metric": "nDCG"},
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("with_train", [False, True])
def test_poor_data_give_results(name, with_train):
    given = {"judgments": TEST, "runs": RUNS, "liked": 4, **SMALL}
    if with_train:
        given["train"] = TRAIN
    result = audit(**{**given, **HOSTILE[name]})
    assert result.document().sections
    assert str(result)
    assert not result.table()["value"].is_nan().any()
    assert json.loads(result.document().to_json())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"runs": {"x": {11: ["a"]}, "y": {12: ["a"]}}}, "no users in common"),
        ({"judgments": {"user": [1], "item": ["a"], "rating": [5]}}, "fewer than 2 users"),
        ({"runs": {"x": {1: []}, "y": {1: ["a"]}}}, "no rows"),
        ({"designs": []}, "at least one design"),
        ({"designs": ["1r"]}, "unknown design"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_words(changes, says):
    with pytest.raises(us.UnskewError, match=says):
        audit(**{"judgments": TEST, "runs": RUNS, "liked": 4, **SMALL, **changes})


def test_judged_data_alone_are_enough(parts, full):
    runs = {name: parts.runs[name] for name in ("popular", "personal")}
    judged = us.judge(parts.test, runs, train=parts.train, liked=4)
    result = us.audit(judged, **SMALL)
    assert result.systems == full.systems
    assert result.table().equals(full.table())


# The command


def test_the_command_takes_training_and_random_ratings(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parts = sample(users=80, items=50)
    parts.test.write_csv(tmp_path / "test.csv")
    parts.train.write_csv(tmp_path / "train.csv")
    parts.test.with_columns(rating=3).write_csv(tmp_path / "random.csv")
    for name in ("popular", "personal"):
        parts.runs[name].write_csv(tmp_path / f"{name}.csv")
    words = ["audit", "--judgments", "test.csv", "--run", "popular.csv", "--run", "personal.csv"]
    done = call(*words, "--train", "train.csv", "--random", "random.csv", "--quick", "-o", "x.html")
    code, out, _ = done
    assert code == 0
    assert "popularity (reference)" in out
    assert "(chance)" in out
    assert "How far the given lists reach" in out
    plain = call(*words, "--train", "train.csv", "--no-references", "--quick", "-o", "x.html")
    assert "(reference)" not in plain[1]
    bare = call(*words, "--quick", "-o", "x.html")
    assert "(chance)" not in bare[1]
    assert "test-targets is left out of all comparisons" in bare[2]  # no user has judged more
    assert bare[2].count("chance is not known for lists without training ratings") == 1
    code, _, error = call("audit", "test.csv", "--no-references")
    assert code == 2
    assert "--no-references needs --judgments and --run" in error


def test_given_systems_are_compared_by_activity():
    """The differences within segments stand in the report: a table each, and no statement."""
    shop = us.world("shop", users=120, items=40, ratings=2000, seed=5)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=5)
    lists = us.targets.AllItems().lists(split, liked=4)
    algorithms = {"mine": us.recommend.UserKNN(k=10), "theirs": us.recommend.Popularity()}
    runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in algorithms.items()}
    judged = us.judge(split.test, runs, liked=4, train=split.train)
    settings = {"plan": "quick", "repeats": 1, "permutations": 50, "designs": ["as-given"]}
    audit = us.audit(judged, **settings)
    assert audit.segments.systems == ["mine", "theirs"]
    tables = {
        block.title: block
        for section in audit.document().sections
        for block in section.every_block()
        if hasattr(block, "frame")
    }
    shown = tables[f"Differences in {audit.metric} by number of training ratings"].frame
    assert shown["difference"].to_list() == audit.segments.table()["value"].to_list()
    assert f"Do the differences in {audit.metric} differ by number of training ratings?" in tables
    alone = us.judge(split.test, {"mine": runs["mine"]}, liked=4, train=split.train)
    assert us.audit(alone, **settings).segments is None
