"""What protocols observe, beside what is true."""

import dataclasses
import json
import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.commands import invoke
from shared.real_data import real_data
from unskew.auditing.truth import sources
from unskew.auditing.truth.intervention_study import (
    _parted,
    _relative,
    carraro2020_interventions,
    carraro2020_systems,
    errors_of_sets,
    intervention_study,
)
from unskew.auditing.truth.truth import truth
from unskew.data.dataset import Dataset, TrueJudgments
from unskew.data.ratings import under_one_numbering
from unskew.worlds import worlds
from unskew.worlds.worlds import World, world

SYSTEMS = {
    "pop": us.recommend.Popularity(),
    "avg": us.recommend.AverageRating(),
    "knn": us.recommend.UserKNN(k=10),
}
METRICS = ["P@5", "anti-P@5", "Recall@5", "nDCG@5"]


def shop(users=60, items=40, seed=1):
    return world("shop", users=users, items=items, seed=seed)


def plan(**settings):
    usual = {"algorithms": SYSTEMS, "metrics": METRICS, "seed": 3}
    return us.Plan(**{**usual, **settings})


def wide(result):
    """Return the values of quantities side by side."""
    keys = ("design", "system", "metric")
    return result.rows.pivot("quantity", index=keys, values="value")


# In a world


def test_true_precision_equals_a_plain_twin():
    small = shop()
    found = truth(small, plan(users="all"), resamples=0)
    split = us.splits.Random().split(small.ratings, 3)[0]
    everyone = np.arange(60, dtype=np.int32)
    liked = small.values(everyone) >= small.liked
    score = np.bincount(split.train.item, minlength=40)
    seen = {(u, i) for u, i in zip(split.train.user, split.train.item, strict=True)}
    hits, recall = [], []
    for u in range(60):
        free = [i for i in range(40) if (u, i) not in seen]
        top = sorted(free, key=lambda i: (-score[i], i))[:5]
        hits.append(sum(liked[u, i] for i in top) / 5)
        there = sum(liked[u, i] for i in free)
        recall.append(sum(liked[u, i] for i in top) / there if there else 0.0)
    own = {row["metric"]: row for row in wide(found).filter(system="pop").iter_rows(named=True)}
    assert own["P@5"]["true"] == pytest.approx(np.mean(hits), rel=1e-12)
    assert own["anti-P@5"]["true"] == pytest.approx(1 - np.mean(hits), rel=1e-12)
    assert own["Recall@5"]["true"] == pytest.approx(np.mean(recall), rel=1e-12)
    assert found.card["truth"] == "every pair of the world shop, outside training (AllItems())"


def test_blocks_of_users_do_not_matter(monkeypatch):
    whole = truth(shop(), plan(), resamples=50)
    monkeypatch.setattr(worlds, "_PAIRS", 7 * 40)
    small = shop()
    assert len(list(small.blocks())) > 5
    parts = truth(small, plan(), resamples=50)
    assert parts.rows.equals(whole.rows)
    assert parts.parts["agreement"].rows.equals(whole.parts["agreement"].rows)


def test_observed_values_are_those_of_a_run():
    made = plan(
        split=us.splits.Random(folds=2),
        targets=[us.targets.AllItems(), us.targets.TestTargets("forgive")],
        interventions=[us.splits.Full(), us.splits.Skew()],
    )
    small = shop()
    found = truth(small, made, resamples=0)
    table = us.run_plan(small.ratings, made).table()
    means = table.group_by("targets", "intervention", "system", "metric", maintain_order=True).agg(
        pl.col("mean").mean()
    )
    assert len(found.values_of("design")) == 4
    for row in means.iter_rows(named=True):
        own = wide(found).filter(
            design=f"{row['targets']} {row['intervention']}",
            system=row["system"],
            metric=row["metric"],
        )
        assert own["observed_zero"][0] == pytest.approx(row["mean"], rel=1e-12)
    skipped = us.run_plan(small.ratings, dataclasses.replace(made, undefined="skip")).table()
    for row in skipped.filter(fold="fold1").iter_rows(named=True):
        keys = ("targets", "intervention", "system", "metric")
        both = skipped.filter(**{key: row[key] for key in keys})
        own = wide(found).filter(
            design=f"{row['targets']} {row['intervention']}",
            system=row["system"],
            metric=row["metric"],
        )
        assert own["observed"][0] == pytest.approx(both["mean"].mean(), rel=1e-12)


def test_users_without_a_liked_test_item_do_not_count_as_missed():
    """Recall of a user without a liked test item is undefined, not 0: what is said of it differs.

    Popularity finds the one liked test item of every user who has one, and the truth says half.
    """
    few = {"user": [1, 2, 3, 4], "item": [1, 1, 1, 1], "rating": [5, 1, 1, 1]}
    tests = us.read_ratings(few)
    pairs = {"user": [5, 6, 6, 1, 2, 3, 4], "item": [1, 1, 2, 3, 3, 3, 3]}
    train = us.read_ratings({**pairs, "rating": [5] * 7})
    random = us.read_ratings(
        {"user": [1, 1, 2, 2, 3, 3, 4, 4], "item": [1, 2] * 4, "rating": [5] * 8}
    )
    systems = {"pop": us.recommend.Popularity(), "none": us.recommend.Random()}
    made = us.Plan(us.splits.Given(test=tests), algorithms=systems, metrics=["Recall@1", "P@1"])
    found = truth(train, made, random=random, resamples=10)
    row = wide(found).filter(system="pop", metric="Recall@1").row(0, named=True)
    keys = {"system": "pop", "metric": "Recall@1"}
    users = [found.row(quantity=name, **keys).n for name in ("observed", "true")]
    assert (row["observed"], users) == (1.0, [1, 4])
    assert (row["observed_zero"], row["true"], row["true_zero"]) == (0.25, 0.5, 0.5)
    assert (row["error"], row["error_zero"]) == (100.0, -50.0)
    text = str(found)
    assert "Recall@1 undefined for 3 of 4 users, who have no liked test item; by the truth" in text
    assert "columns ending in _zero: undefined values count as 0" in text
    whole = wide(found).filter(system="pop", metric="P@1").row(0, named=True)
    assert whole["observed"] == whole["observed_zero"] == 0.25
    assert found.to_dict()["notes"]


def test_a_world_that_shows_everything_has_no_error():
    """What is not in training is all judged: what is observed is the truth, for every metric."""
    rng = np.random.default_rng(1)
    user, item = np.divmod(np.arange(30 * 20), 20)
    full = us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, 600)})
    everything = World.of_matrix(full, liked=4, expected=600)
    assert len(everything.ratings) == 600
    found = truth(everything, plan(), resamples=0)
    assert wide(found)["error"].to_list() == [0.0] * 12
    assert found.parts["agreement"].rows["value"].to_list() == [1.0] * 4
    assert found.parts["agreement"].rows["swaps"].to_list() == [0] * 4


def test_orders_put_the_best_first_also_where_less_is_better():
    found = truth(shop(), plan(), resamples=0)
    for metric, sign in (("P@5", -1), ("anti-P@5", 1)):
        table = wide(found).filter(metric=metric)
        best = table.sort(sign * pl.col("true"))["system"].to_list()
        orders = found.parts["orders"].where(metric=metric, design="true").rows
        assert orders["system"].to_list() == best
        assert orders["value"].to_list() == [1, 2, 3]


def test_agreement_is_kendalls():
    found = truth(
        shop(), plan(targets=[us.targets.AllItems(), us.targets.TestTargets()]), resamples=20
    )
    for row in found.parts["agreement"].rows.iter_rows(named=True):
        own = wide(found).filter(design=row["design"], metric=row["metric"])
        assert row["value"] == pytest.approx(us.stats.kendall(own["observed"], own["true"]))
        assert row["low"] <= row["high"]
        assert row["mean_error"] == pytest.approx(own["error"].abs().mean())
    alone = truth(shop(), plan(algorithms=[us.recommend.Popularity()]), resamples=0)
    assert alone.parts["agreement"].rows.height == 0
    assert "truth:" in str(alone)


# By random ratings


def test_random_ratings_as_the_truth():
    small = shop(80)
    data = small.dataset(0.2)
    found = truth(data, plan(), resamples=0)
    split = us.splits.Random().split(data.ratings, 3)[0]
    forced = us.splits.Forced(data.random).split(split.train)[0]
    lists = us.targets.AllItems().lists(forced, liked=4)
    true = us.evaluate(lists, {"pop": us.recommend.Popularity().fit(split.train)}, METRICS).means()[
        "pop"
    ]
    own = wide(found).filter(system="pop")
    for row in own.iter_rows(named=True):
        assert row["true_zero"] == pytest.approx(true[row["metric"]], rel=1e-12)
    by_hand = truth(data.ratings, plan(), random=data.random, resamples=0)
    assert by_hand.rows.equals(found.rows)
    assert "without those in training" in found.card["truth"]


def test_random_ratings_in_training_are_left_out_or_count_as_missed():
    ratings = us.read_ratings(
        {"user": [1, 1, 1, 2, 2, 2], "item": [1, 2, 3, 1, 2, 3], "rating": [5] * 6}
    )
    random = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 4, 2, 4], "rating": [5] * 4})
    made = us.Plan(
        us.splits.LeaveOut(1), algorithms=[us.recommend.Popularity()], metrics=["Recall@5"], seed=2
    )
    values = {}
    for overlap in ("to-training", "keep"):
        found = truth(ratings, made, random=random, overlap=overlap, resamples=0)
        values[overlap] = wide(found)["true"][0]
    split = us.splits.LeaveOut(1).split(ratings, 2)[0]
    trained = {(u, i) for u, i in zip(split.train.user, split.train.item, strict=True)}
    missed = [(0, 0) in trained, (1, 1) in trained]
    assert any(missed)
    assert values["to-training"] == 1.0
    assert values["keep"] == np.mean([0.5 if one else 1.0 for one in missed])


def test_what_wtd_learns_from_does_not_judge():
    data = shop(80).dataset(0.3)
    made = plan(interventions=[us.splits.Full(), us.splits.Wtd()])
    source = sources.source_of(data, None, 0.25, None, "to-training", made)
    both = [
        {(u, i) for u, i in zip(part.user, part.item, strict=True)}
        for part in (source.weights, source.random)
    ]
    assert both[0].isdisjoint(both[1])
    assert len(both[0]) + len(both[1]) == len(data.random)
    assert 0.15 < len(both[0]) / len(data.random) < 0.35
    plain = sources.source_of(data, None, None, None, "to-training", plan())
    assert plain.weights is None
    assert len(plain.random) == len(data.random)
    assert truth(data, made, resamples=0).values_of("design") == ["full", "wtd"]


@pytest.mark.parametrize(
    ("data", "settings", "told"),
    [
        (lambda: shop().ratings, {}, "random="),
        (lambda: Dataset("x", shop().ratings), {}, "random="),
        (lambda: shop(), {"random": shop().random(0.1)}, "leave random"),
        (lambda: shop().dataset(), {"random": shop().random(0.1)}, "already has random ratings"),
        (lambda: shop().dataset(), {"overlap": "to-test"}, "to-training"),
        (lambda: shop(), {"targets": us.targets.OneRelevant(others=3)}, "one list per user"),
        (lambda: shop(), {"plan": plan(metrics=["Gini@5"])}, "whole run"),
    ],
)
def test_what_truth_refuses(data, settings, told):
    with pytest.raises(us.UnskewError, match=told):
        truth(data(), **{"plan": plan(), **settings})


def test_a_world_must_keep_its_ids():
    small, other = shop(), shop(30)
    source = sources.source_of(small, None, None, None, "to-training", plan())
    with pytest.raises(us.DataError, match="other users"):
        source.judge({"pop": us.recommend.Popularity().fit(other.ratings)}, other.ratings, plan())


def test_result_shows_itself():
    moved = []
    found = truth(
        shop(),
        plan(split=us.splits.Random(folds=2)),
        resamples=20,
        progress=lambda done, total: moved.append((done, total)),
    )
    assert moved == [(1, 2), (2, 2)]
    assert "τ_b" in str(found)
    assert "<table" in found._repr_html_()
    assert (
        json.loads(json.dumps(found.to_dict(), allow_nan=False))["card"]["truth"]
        == found.card["truth"]
    )
    assert len(found.figure(metric="anti-P@5").to_dict()["datasets"]["rows"]) == 3
    with pytest.raises(us.UnknownName):
        found.figure(metric="P@6")
    with pytest.raises(us.UnknownName):
        found["P@6"]


# True judgments of every kind


def ratings_of(mask, value):
    user, item = np.nonzero(mask)
    return us.read_ratings({"user": user, "item": item, "rating": value[mask]})


def drawn(kind="random", users=120, items=40, density=0.3):
    """Draw a data set with plain numpy: exposure by popularity that says nothing of liking."""
    rng = np.random.default_rng(0)
    quality = rng.permutation(np.linspace(-1.5, 1.5, items))
    exposure = (1.0 + np.arange(items)) ** -1.5
    liked = rng.random((users, items)) < 1 / (1 + np.exp(-quality))
    value = np.where(liked, 5, 2)
    seen = rng.random(liked.shape) < np.minimum(6 * exposure / exposure.sum(), 0.9)
    seen[:, -2:] |= rng.random((users, 2)) < 0.3  # everyone has something to train and to test on
    judged = rng.random(liked.shape) < density
    if kind == "exhaustive":
        judged = np.zeros_like(seen)
        judged[: users // 2, : items // 2] = True
    if kind == "pooled":
        judged &= ~seen
    part = TrueJudgments(ratings_of(judged, value), kind)
    return Dataset("drawn", ratings_of(seen, value), liked=4, truth=part)


@pytest.mark.parametrize("kind", ["random", "exhaustive", "pooled"])
def test_precision_by_true_judgments_equals_a_plain_twin(kind):
    """Unjudged items count as not liked, are no targets (exhaustive), or are left out (pooled)."""
    data = drawn(kind)
    made = plan(algorithms={"pop": us.recommend.Popularity()}, metrics=["P@5"], seed=4)
    result = truth(data, made, resamples=0)
    observed, judged = under_one_numbering(data.ratings, data.true_part.ratings)
    (split,) = us.splits.Random(test=0.2).split(observed, 4)
    rated = observed if kind == "pooled" else split.train
    value = np.zeros((len(observed.users), len(observed.items)))
    value[judged.user, judged.item] = judged.value
    taken = np.zeros(value.shape, bool)
    taken[rated.user, rated.item] = True
    value[taken] = 0
    targets = ~taken
    if kind == "exhaustive":
        targets &= value.any(axis=0)
    if kind == "pooled":
        targets &= value > 0
    count = np.bincount(split.train.item, minlength=value.shape[1])
    precisions = []
    for user in np.flatnonzero(value.any(axis=1)):
        top = sorted(np.flatnonzero(targets[user]), key=lambda item: (-count[item], item))[:5]
        precisions.append(np.count_nonzero(value[user, top] >= 4) / 5)
    assert wide(result)["true"].to_list() == pytest.approx([np.mean(precisions)])
    words = {
        "random": "of randomly chosen items",
        "exhaustive": "judgments of every pair of 60 users and 20 items",
        "pooled": "items outside the pool are left out of each list",
    }
    assert words[kind] in str(result)


def test_judgments_that_depend_on_what_is_observed_are_doubted():
    data, made = drawn(users=200, density=0.5), plan(metrics=["P@5"])
    assert truth(data, made, resamples=0).notes == ()
    frame = data.true_part.ratings.to_polars()
    seen = data.ratings.to_polars().select("user", "item")
    rest = us.read_ratings(frame.join(seen, on=["user", "item"], how="anti"))
    cut = truth(Dataset("cut", data.ratings, rest, liked=4), made, resamples=0)
    assert any(note.startswith("0 observed pairs are among the random") for note in cut.notes)
    among = us.read_ratings(frame.join(seen, on=["user", "item"], how="semi"))
    nested = Dataset("nested", among, liked=4, truth=data.true_part)
    plain = truth(nested, made, resamples=0)
    assert any("every observed rating is one of the random" in note for note in plain.notes)


def test_kuairec_by_its_name(tmp_path, monkeypatch):
    data = drawn("exhaustive")
    folder = tmp_path / "kuairec"
    folder.mkdir()
    for name, part in (("big", data.ratings), ("small", data.true_part.ratings)):
        frame = part.to_polars().select(
            pl.col("user").alias("user_id"),
            pl.col("item").alias("video_id"),
            (pl.col("rating") / 2).alias("watch_ratio"),  # 2.5 is liked, 1 is not
            pl.lit(1593878903.4).alias("timestamp"),
        )
        frame.write_csv(folder / f"{name}_matrix.csv")
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path))
    named = us.load("kuairec")
    settings = {"algorithms": {"pop": us.recommend.Popularity()}, "metrics": ["P@5"]}
    by_name = truth(named, plan(relevance=us.Relevance(liked=named.liked), **settings), resamples=0)
    plain = truth(data, plan(**settings), resamples=0)
    assert wide(by_name)["true"].to_list() == wide(plain)["true"].to_list()
    assert "judgments of every pair of 60 users and 20 items" in str(by_name)


def test_ml_32m_ext_by_its_name(tmp_path, monkeypatch):
    data = drawn("pooled")
    folder = tmp_path / "ml-32m-ext"
    folder.mkdir()
    data.ratings.to_polars().select(
        userId="user", movieId="item", rating="rating", timestamp=pl.lit(1697216400)
    ).write_csv(folder / "explicit-ratings.csv")
    users = set(data.ratings.users.values)
    words = {5.0: "Very interested", 2.0: "Somewhat interested"}
    lines = [
        f"1,{user},{item},f,Never,,,{words[value]},3.0,,\n"
        for user, item, value in data.true_part.ratings.to_polars().rows()
        if user in users
    ]
    head = (
        "participant_id,dataset_id,movie_id,seen_status,familiarity,p1_check,p2_check,"
        "interest_level,rating,rank_p2,movielens_rating\n"
    )
    (folder / "p2-ratings.csv").write_text(head + "".join(lines))
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path))
    settings = {"algorithms": {"pop": us.recommend.Popularity()}, "metrics": ["P@5"]}
    by_name = truth(us.load("ml-32m-ext"), plan(**settings), resamples=0)
    plain = truth(data, plan(**settings), resamples=0)
    assert wide(by_name)["true"].to_list() == wide(plain)["true"].to_list()


# The study of interventions


def study(**settings):
    small = shop(120, 50)
    usual = {
        "systems": {
            "pop": us.recommend.Popularity(),
            "avg": us.recommend.AverageRating(),
            "knn": (us.recommend.UserKNN(), {"k": [2, 20]}),
        },
        "interventions": [us.splits.Full(), us.splits.Reg(), us.splits.Wtd()],
        "repetitions": 3,
        "metrics": ["Recall@5", "P@5"],
    }
    return intervention_study(small.ratings, small.random(0.3), **{**usual, **settings})


def test_random_ratings_are_parted_by_exact_sizes():
    random = shop(80).random(0.3)
    parts = _parted(random, 0.15, 0.15, 4)
    sizes = [int(0.15 * len(random)), int(0.15 * len(random))]
    assert [len(part) for part in parts[:2]] == sizes
    pairs = [{(u, i) for u, i in zip(p.user, p.item, strict=True)} for p in parts]
    assert len(set.union(*pairs)) == len(random) == sum(map(len, parts))
    with pytest.raises(us.DataError, match="too few"):
        _parted(random.take(np.arange(4)), 0.15, 0.15, 4)


def test_error_of_means_and_its_jackknife_by_hand():
    own, true = np.array([0.2, 0.3]), np.array([0.1, 0.1])
    error, low, high = _relative(own, true, 0.95)
    assert error == pytest.approx(150)
    # Without the first 200, without the second 100: their deviation from 150, times (n - 1)/n.
    half = 12.706204736174694 * math.sqrt(0.5 * (50**2 + 50**2))
    assert (low, high) == pytest.approx((150 - half, 150 + half))
    assert _relative(own[:1], true[:1], 0.95)[1:] == (None, None)
    assert _relative(own, np.zeros(2), 0.95) == (None, None, None)


def test_study_of_interventions():
    found = study()
    again = study()
    assert found.to_dict() == again.to_dict()
    sets = ["full", "reg", "wtd"]
    assert found.values_of("design") == sets
    table, values = found["Recall@5"].rows, found.parts["repetitions"].rows
    assert table.height == 9
    for row in table.iter_rows(named=True):
        own = values.filter(metric="Recall@5", system=row["system"])
        true = own.filter(design="true")["value"].mean()
        value = own.filter(design=row["design"])["value"].mean()
        assert row["value"] == pytest.approx(100 * (value - true) / true)
        assert row["low"] < row["value"] < row["high"]
    for name in sets:
        own = table.filter(design=name)
        tau = found.parts["agreement"].row(metric="Recall@5", design=name).value
        assert tau == pytest.approx(us.stats.kendall(own["observed"], own["truth"]))
    without = errors_of_sets(values.filter(pl.col("system") != "pop"))
    assert without.parts["agreement"].where(metric="Recall@5").rows.height == 3
    assert without.rows.equals(found.where(system=["avg", "knn"]).rows)
    assert {row["k"] for row in found.card["chosen"]} <= {2, 20}
    facts = found.card["sizes"][0]
    n = facts["train"] + facts["held_out"]
    assert facts["held_out"] == int(0.4 * n)
    assert "jackknife" in str(found)
    assert "<table" in found._repr_html_()
    json.dumps(found.to_dict())
    assert len(found.figure(metric="P@5").to_dict()["datasets"]["rows"]) == 9


def test_settings_are_chosen_by_validation_ratings():
    found = study(
        systems={"knn": (us.recommend.UserKNN(), {"k": [2, 20]}), "pop": us.recommend.Popularity()}
    )
    alone = {
        k: study(systems={"knn": us.recommend.UserKNN(k=k), "pop": us.recommend.Popularity()})
        .parts["repetitions"]
        .rows.filter(system="knn")
        for k in (2, 20)
    }
    values = found.parts["repetitions"].rows.filter(system="knn")
    for row in found.card["chosen"]:
        mine = values.filter(repetition=row["repetition"])["value"]
        theirs = alone[row["k"]].filter(repetition=row["repetition"])["value"]
        assert mine.equals(theirs)


def test_systems_of_carraro2020():
    systems = carraro2020_systems()
    assert list(systems) == ["PosPop", "AvgRating", "UB_KNN", "IB_KNN", "MF"]
    grid = systems["MF"][1]
    assert len(grid["factors"]) * len(grid["regularisation"]) == 60
    kinds = [one.kind for one in carraro2020_interventions()]
    assert kinds == ["full", "reg", "skew", "wtd", "wtd-h"]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"interventions": []}, "interventions"),
        ({"interventions": [us.splits.Reg(), us.splits.Reg()]}, "each once"),
        ({"overlap": "to-test"}, "to-training"),
        ({"repetitions": 0}, "repetitions"),
        ({"weights": 0.5, "validation": 0.5}, "nothing to judge"),
        ({"systems": {"knn": (us.recommend.UserKNN(), {"kk": [1]})}}, "kk"),
        ({"systems": {"knn": (us.recommend.UserKNN(), {"k": []})}}, "without values"),
    ],
)
def test_what_the_study_refuses(settings, told):
    with pytest.raises(us.UnskewError, match=told):
        study(**settings)


def test_orders_need_two_systems():
    found = study(systems={"pop": us.recommend.Popularity(), "avg": us.recommend.AverageRating()})
    assert found.parts["agreement"].rows.height == 6
    alone = errors_of_sets(found.parts["repetitions"].where(system="avg").rows)
    assert alone.parts["agreement"].rows.height == 0
    with pytest.raises(us.UnknownName):
        found.where(system="mf")


# The command


def test_command(tmp_path):
    small = shop(80)
    small.ratings.to_csv(tmp_path / "ratings.csv")
    small.random(0.2).to_csv(tmp_path / "random.csv")
    done = invoke(
        "bias",
        "truth",
        tmp_path / "ratings.csv",
        "--random",
        tmp_path / "random.csv",
        "--liked",
        4,
        "-a",
        "popularity",
        "-a",
        "average-rating",
        "-m",
        "P@5",
        "--intervention",
        "full",
        "--intervention",
        "skew",
        "--resamples",
        20,
        "--format",
        "json",
        "--figure",
        tmp_path / "truth.json",
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {row["design"] for row in told["rows"]} == {"full", "skew"}
    assert len(told["parts"]["agreement"]["rows"]) == 2
    assert (tmp_path / "truth.json").exists()
    text = invoke(
        "bias", "truth", "--world", "inverted", "--users", 60, "--items", 40, "--resamples", 0
    )
    assert "every pair of the world inverted" in text.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["ratings.csv", "--world", "shop"],
        ["--world", "shop", "--random", "x.csv"],
        ["ratings.csv", "--users", "5"],
        ["--world", "shop", "--format", "xml"],
        ["--world", "shop", "--targets", "all"],
        ["--world", "shop", "--intervention", "skewed"],
    ],
)
def test_what_the_command_refuses(arguments):
    assert invoke("bias", "truth", *arguments).exit_code == 2


# carraro2020 on Coat

# Table 2: recall at 10 on random ratings, and errors of FULL, REG, SKEW, WTD, WTD_H in percent.
PUBLISHED = {
    "PosPop": (0.066, 133, 124, 13, 1, -43),
    "AvgRating": (0.068, 61, 53, 31, 6, 24),
    "UB_KNN": (0.067, 229, 225, 112, 90, 34),
    "IB_KNN": (0.073, 236, 227, 105, 82, 26),
    "MF": (0.063, 180, 176, 179, 123, 102),
}


def coat(name):
    matrix = np.loadtxt(real_data(f"coat/{name}.ascii"))
    user, item = np.nonzero(matrix)
    return us.read_ratings({"user": user, "item": item, "rating": matrix[user, item]})


@pytest.mark.slow
@pytest.mark.parametrize("overlap", ["to-training", "keep"])
def test_carraro2020_on_coat(overlap):
    """Signs agree wherever a published cell exceeds 25 points; smaller cells are noise."""
    systems = carraro2020_systems()
    mf, grid = systems["MF"]
    # A part of the grid: the whole takes minutes and chooses as well.
    systems["MF"] = (mf, {"factors": [20, 100], "regularisation": grid["regularisation"][::2]})
    found = intervention_study(
        coat("train"), coat("test"), systems, metrics=["Recall@10"], overlap=overlap, seed=1
    )
    for row in found.rows.iter_rows(named=True):
        true, *cells = PUBLISHED[row["system"]]
        cell = dict(zip(found.values_of("design"), cells, strict=True))[row["design"]]
        if abs(cell) > 25:
            assert np.sign(row["value"]) == np.sign(cell), row
        assert row["truth"] == pytest.approx(true, abs=0.02)
    error = found.rows.group_by("design", maintain_order=True).agg(pl.col("value").abs().mean())
    mean = dict(error.iter_rows())
    assert max(mean["skew"], mean["wtd"], mean["wtd-h"]) < mean["full"]
    assert abs(mean["reg"] - mean["full"]) < 25
    assert (found.parts["agreement"].rows["p"] > 0.05).all()  # 5 systems cannot tell orders apart
