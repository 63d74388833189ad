"""Where systems stand by observed and by true judgments."""

import json
import math

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.commands import invoke
from shared.real_data import real_data
from unskew.auditing import truth_sources
from unskew.auditing.cold_users import of_lists
from unskew.auditing.nested_truth import NestedTruth, overlap_of
from unskew.auditing.standing_result import ordinal
from unskew.auditing.system_places import score_intervals, standing
from unskew.auditing.true_scores import truth
from unskew.data.dataset import Dataset
from unskew.data.true_judgments import TrueJudgments
from unskew.stats.distributions import student_t_quantile

SYSTEMS = {
    "popularity": us.recommend.Popularity(),
    "average": us.recommend.SmoothedAverage(liked=4),
    "random": us.recommend.Random(),
}


def ratings_of(mask, value):
    user, item = np.nonzero(mask)
    return us.read_ratings({"user": user, "item": item, "rating": value[mask]})


def drawn(seed=0, users=120, items=40, bias=1.5, kind="random", density=0.3):
    """Draw a data set with plain numpy: exposure by popularity that says nothing of liking."""
    rng = np.random.default_rng(seed)
    quality = rng.permutation(np.linspace(-1.5, 1.5, items))
    exposure = (1.0 + np.arange(items)) ** -bias
    liked = rng.random((users, items)) < 1 / (1 + np.exp(-quality))
    value = np.where(liked, 5, 2)
    seen = rng.random(liked.shape) < np.minimum(6 * exposure / exposure.sum(), 0.9)
    seen[:, -2:] |= rng.random((users, 2)) < 0.3  # everyone has something to train and to test on
    known = rng.random(liked.shape) < density
    if kind == "exhaustive":
        known = np.zeros_like(seen)
        known[: users // 2, : items // 2] = True
    if kind == "pooled":
        known &= ~seen
    part = TrueJudgments(ratings_of(known, value), kind)
    return Dataset("drawn", ratings_of(seen, value), liked=4, truth=part), value


def lists_by_hand(data, seed, test=0.2, k=5, allowed=None, without=None):
    """Return the top k of popularity for each user, in plain Python."""
    (split,) = us.splits.Random(test=test).split(data.ratings, seed)
    users, items = len(data.ratings.users), len(data.ratings.items)
    count = np.bincount(split.train.item, minlength=items)
    trained = np.zeros((users, items), bool)
    trained[split.train.user, split.train.item] = True
    tested = np.zeros_like(trained)
    tested[split.test.user, split.test.item] = True
    tops = {}
    for user in range(users):
        free = [
            item
            for item in range(items)
            if not (trained[user, item] or (without is not None and without[user, item]))
            and (allowed is None or allowed(user, item))
        ]
        tops[user] = sorted(free, key=lambda item: (-count[item], item))[:k]
    return split, trained, tested, tops


# Numbers against plain twins


def both_parts(data):
    from unskew.data.ratings import under_one_numbering

    observed, true = under_one_numbering(data.ratings, data.true_part.ratings)
    value = np.zeros((len(observed.users), len(observed.items)))
    value[true.user, true.item] = true.value
    return Dataset(data.name, observed, liked=4), value


def plain_shares(tops, value, users, k):
    """Return P@k, anti-P@k over some users."""
    liked = [sum(value[u, i] >= 4 for i in tops[u]) / k for u in users]
    disliked = [sum(0 < value[u, i] < 4 for i in tops[u]) / k for u in users]
    return np.mean(liked), np.mean(disliked)


@pytest.mark.parametrize("kind", ["random", "exhaustive"])
def test_shares_equal_a_plain_twin(kind):
    data, _ = drawn(kind=kind)
    result = standing(
        data, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0, seed=4, test=0.2
    )
    whole, value = both_parts(data)
    observed_value = np.zeros_like(value)
    observed_value[whole.ratings.user, whole.ratings.item] = whole.ratings.value
    columns = value.any(axis=0) if kind == "exhaustive" else np.ones(value.shape[1], bool)
    _, trained, tested, tops = lists_by_hand(whole, 4)
    left = np.where(trained, 0, value)
    users = [
        user
        for user in range(len(value))
        if trained[user].any() and tested[user].any() and left[user].any()
    ]
    *_, limited = lists_by_hand(whole, 4, allowed=lambda _, item: columns[item])
    row = result.of("popularity")
    seen = plain_shares(tops, np.where(tested, observed_value, 0), users, 5)
    true = plain_shares(limited, left, users, 5)
    assert (row.observed.liked, row.observed.disliked) == pytest.approx(seen, rel=1e-12)
    assert (row.true.liked, row.true.disliked) == pytest.approx(true, rel=1e-12)
    assert row.true.judged == pytest.approx(sum(true))
    assert row.true.score == pytest.approx(true[0])
    assert result.users == len(users)
    assert ("TestItems" in result.truth) == (kind == "exhaustive")


def test_unjudged_items_of_a_pool_count_as_neither():
    data, _ = drawn(kind="pooled", density=0.25)
    result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0, seed=4)
    whole, value = both_parts(data)
    rated = np.zeros(value.shape, bool)
    rated[whole.ratings.user, whole.ratings.item] = True
    _, trained, tested, _ = lists_by_hand(whole, 4)
    users = [
        user
        for user in range(len(value))
        if trained[user].any() and tested[user].any() and value[user].any()
    ]
    *_, condensed = lists_by_hand(whole, 4, allowed=lambda user, item: value[user, item] > 0)
    *_, full = lists_by_hand(whole, 4, without=rated)
    row = result.of("popularity")
    assert row.true.score == pytest.approx(plain_shares(condensed, value, users, 5)[0])
    liked, disliked = plain_shares(full, value, users, 5)
    assert (row.true.liked, row.true.disliked) == pytest.approx((liked, disliked))
    assert row.true.liked <= row.true.score <= 1
    text = str(result)
    assert "pooled judgments:" in text
    assert "P lies between P and P + 1 - judged" in text
    assert "items outside the pool are left out of each list" in text
    # A system whose first items are all unjudged is not taken for a bad one.
    again = truth(data, us.Plan(algorithms=SYSTEMS, metrics=["P@5"], seed=4), bootstrap=0)
    true = dict(again.table().filter(metric="P@5").select("system", "true").iter_rows())
    assert 0.2 < true["popularity"] < 0.8


def test_intervals_of_scores_are_students():
    data, _ = drawn()
    result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0, seed=4)
    rng = np.random.default_rng(3)
    values = rng.random((30, 2))
    test = {"user": np.arange(30), "item": [1] * 30, "rating": [5] * 30}
    runs = {
        name: us.Run.from_arrays(np.arange(30), np.where(values[:, [at]] < 0.5, [[1, 2]], [[2, 1]]))
        for at, name in enumerate("ab")
    }
    scores = us.evaluate(test, runs, "P@1", liked=4)
    ends = score_intervals([scores], "P@1", ("a", "b"), 0.9)
    for at in range(2):
        own = (values[:, at] < 0.5).astype(float)
        half = student_t_quantile(0.95, 29) * own.std(ddof=1) / math.sqrt(30)
        assert ends[at] == pytest.approx([own.mean(), own.mean() - half, own.mean() + half])
    row = result.of()
    assert row.observed.low < row.observed.score < row.observed.high


def test_one_user_has_a_score_and_no_interval():
    test = {"user": [1, 1], "item": [1, 2], "rating": [5, 1]}
    scores = us.evaluate(test, {"a": {1: [1, 2]}, "b": {1: [2, 1]}}, "P@1", liked=4)
    ends = score_intervals([scores, scores], "P@1", ("a", "b"), 0.9)
    assert ends[:, 0].tolist() == [1.0, 0.0]
    assert np.isnan(ends[:, 1:]).all()


def test_places_follow_from_the_contrasts():
    data, _ = drawn(users=300)
    result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=3, bootstrap=20, seed=1)
    for row in result.rows:
        for kind, one in (("observed", row.observed), ("true", row.true)):
            others = [
                result.contrasts.get(kind, row.system, other)
                for other in SYSTEMS
                if other != row.system
            ]
            assert one.place == 1 + sum(rival.difference < 0 for rival in others)
            assert one.best == 1 + sum(rival.high < 0 for rival in others)
            assert one.worst == 3 - sum(rival.low > 0 for rival in others)
            assert one.best <= one.place <= one.worst
    means = result.contrasts.means["true"]
    assert [row.system for row in result.rows] == sorted(means, key=lambda name: -means[name])
    tau = us.stats.kendall(
        [row.observed.score for row in result.rows], [row.true.score for row in result.rows]
    )
    assert result.agreement["tau"] == pytest.approx(tau)


# Observed ratings among the random judgments


class Fixed(us.recommend.Algorithm):
    """Scores items alike for everyone, whatever the training ratings."""

    name = "fixed"

    def learn(self, train, rng):
        return _FixedModel(len(train.items))


class _FixedModel:
    def __init__(self, items):
        self.items = items

    def score(self, users):
        return np.tile(-np.arange(self.items, dtype=float), (users.size, 1))


def nested(rng, liked, familiar, density):
    value = np.where(liked, 5, 2)
    judged = rng.random(liked.shape) < density
    known = judged & familiar
    part = TrueJudgments(ratings_of(judged, value))
    return Dataset("nested", ratings_of(known, value), liked=4, truth=part)


def test_weights_make_nested_judgments_fair():
    """The mean over draws is the true value times the density; without weights it is far below."""
    rng = np.random.default_rng(8)
    users, items, k, density = 60, 30, 5, 0.5
    quality = np.linspace(0.8, 0.2, items)
    liked = rng.random((users, items)) < quality
    familiar = rng.random((users, items)) < np.linspace(0.9, 0.2, items)  # the good ones are known
    plan = us.Plan(us.splits.Random(test=0.3), algorithms={"fixed": Fixed()}, metrics=["P@5"])
    ratios, plain = [], []
    for draw in range(150):
        data = nested(rng, liked, familiar, density)
        source = truth_sources.source_of(data, None, None, None, "to-training", plan)
        assert overlap_of(source).is_nested
        weights = NestedTruth.of(source, 0.3, ("P@5",))
        (split,) = us.splits.Random(test=0.3).split(source.ratings, draw)
        model = {"fixed": _FixedModel(len(source.ratings.items))}
        true = source.judge(model, split.train, plan)
        lists = us.targets.AllItems().lists(split, liked=4)
        observed = truth_sources.scores_on(lists, model, plan)
        warm = true.averaged("fixed") & (true.lists["train"].to_numpy() > 0)
        one, both = of_lists(true, warm), true.lists["user"].to_numpy()[warm]
        trained = np.zeros((users, items), bool)
        raw = split.train.to_polars()
        trained[raw["user"].to_numpy(), raw["item"].to_numpy()] = True
        people = source.ratings.users.values.to_numpy()[both]
        top = [[i for i in range(items) if not trained[u, i]][:k] for u in people]
        known = np.mean([liked[u, i].mean() for u, i in zip(people, top, strict=True)])
        ratios.append(weights.weighted(one, observed).mean("P@5")["fixed"] / known)
        plain.append(one.mean("P@5")["fixed"] / known)
    z = (np.mean(ratios) - density) / (np.std(ratios, ddof=1) / math.sqrt(len(ratios)))
    assert abs(z) < 4.5
    assert np.mean(plain) < 0.8 * density


def test_what_nested_judgments_refuse_and_say():
    rng = np.random.default_rng(2)
    liked = rng.random((80, 30)) < 0.5
    data = nested(rng, liked, rng.random(liked.shape) < 0.4, 0.6)
    result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=2, bootstrap=0)
    assert result.sampling.is_weighted
    assert "they stand for others, by the inverse of that chance" in str(result)
    assert result.to_dict()["is_weighted"]
    judged = [row.true.judged for row in result.rows]
    assert min(judged) > 0.45  # the density of the sample, whatever the system lists
    with pytest.raises(us.SettingError, match="not a sum over judged items"):
        standing(data, algorithms=SYSTEMS, metric="nDCG@5", splits=1, bootstrap=0)
    with pytest.raises(us.SettingError, match="leave targets out"):
        standing(data, algorithms=SYSTEMS, metric="P@5", splits=1, targets=us.targets.TestTargets())
    plain = truth(data, us.Plan(algorithms=SYSTEMS, metrics=["P@5"]), bootstrap=0)
    assert any("every observed rating is one of the random judgments" in x for x in plain.notes)


def test_dependence_that_is_not_corrected_is_said():
    data, _ = drawn(users=200, density=0.5)
    frame = data.true_part.ratings.to_polars()
    seen = data.ratings.to_polars().select("user", "item")
    rest = us.read_ratings(frame.join(seen, on=["user", "item"], how="anti"))
    cut = Dataset("cut", data.ratings, rest, liked=4)
    result = standing(cut, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0)
    assert result.sampling.is_dependent
    text = str(result)
    assert "0 observed pairs are among the random judgments, where chance would make" in text
    assert "means the same on all items" not in text
    fair = standing(data, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0)
    assert not fair.sampling.is_dependent
    assert "means the same on all items" in str(fair)


def test_a_random_part_that_is_not_random_is_doubted():
    data, value = drawn(users=200)
    rng = np.random.default_rng(1)
    chosen = rng.random(value.shape) < np.linspace(0.6, 0.05, value.shape[1])
    skewed = Dataset("skewed", data.ratings, ratings_of(chosen, value), liked=4)
    result = standing(skewed, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0)
    assert any("as a random choice would hardly spread them" in note for note in result.notes)
    fair = standing(data, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0)
    assert not any("hardly spread" in note for note in fair.notes)


# What is said


def test_a_change_that_exceeds_chance_is_said():
    data, _ = drawn(users=600, density=0.9, bias=2.0, seed=5)
    result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=3, bootstrap=0)
    row = result.of("popularity")
    assert row.observed.place == 1
    assert row.true.place > 1
    assert row.exceeds_chance
    assert result.sentence().endswith("the change exceeds chance")
    assert str(result).count("both differences exceed chance") == len(result.reversals())
    assert result.to_dict()["exceeds_chance"] is True
    other, ahead, behind = result.reversals()[0]
    assert (ahead, behind) == ("observed", "true")
    assert (result.reversals(other)[0][1:]) == ("true", "observed")


def test_without_bias_nothing_is_claimed():
    """What is observed depends on liking alone: both orders are the same. Seeds are fixed."""
    for seed in range(8):
        rng = np.random.default_rng([seed, 9])
        liked = rng.random((150, 40)) < np.linspace(0.7, 0.2, 40)
        value = np.where(liked, 5, 2)
        seen = rng.random(liked.shape) < np.where(liked, 0.3, 0.1)
        known = rng.random(liked.shape) < 0.3
        data = Dataset("same", ratings_of(seen, value), ratings_of(known, value), liked=4)
        result = standing(data, algorithms=SYSTEMS, metric="P@5", splits=3, bootstrap=0, seed=seed)
        assert not any(row.exceeds_chance for row in result.rows)
        assert not any(result.reversals(name) for name in SYSTEMS)
        assert "exceeds chance" not in str(result)


def test_ordinals():
    assert [ordinal(n) for n in (1, 2, 3, 4, 10, 11, 12, 13, 21, 22, 103, 111)] == [
        "1st", "2nd", "3rd", "4th", "10th", "11th", "12th", "13th", "21st", "22nd", "103rd",
        "111th",
    ]  # fmt: skip


# Same bits, and what is refused


def test_rows_and_workers_do_not_matter():
    data, _ = drawn()
    settings = {"algorithms": ["popularity", "random", "user-knn"], "metric": "P@5", "splits": 2}
    one = standing(data, bootstrap=50, **settings)
    order = np.random.default_rng(1).permutation(len(data.ratings))
    mixed = us.read_ratings(data.ratings.to_polars()[order.tolist()])
    two = standing(Dataset("drawn", mixed, liked=4, truth=data.truth), bootstrap=50, **settings)
    assert one.table().equals(two.table())
    three = standing(data, bootstrap=50, workers=2, **settings)
    assert one.table().equals(three.table())
    assert one.agreement == three.agreement
    assert one.tuned == three.tuned
    assert one.tuned["user-knn"][0].startswith("k=")


def test_a_world_and_own_files(tmp_path):
    world = us.world("shop", users=100, items=40, seed=1)
    known = standing(world, algorithms=SYSTEMS, metric="P@5", splits=1, bootstrap=0)
    assert known.sampling.kind == "world"
    assert all(row.true.judged == pytest.approx(1.0) for row in known.rows)
    world.ratings.to_csv(tmp_path / "ratings.csv")
    world.random(0.3).to_csv(tmp_path / "random.csv")
    settings = {"algorithms": SYSTEMS, "metric": "P@5", "splits": 1, "bootstrap": 0, "liked": 4}
    given = standing(str(tmp_path / "ratings.csv"), random=str(tmp_path / "random.csv"), **settings)
    assert given.dataset_name == "ratings.csv"
    assert given.sampling.kind == "random"
    pooled = standing(
        str(tmp_path / "ratings.csv"), pooled=str(tmp_path / "random.csv"), true_liked=5, **settings
    )
    assert pooled.sampling.kind == "pooled"
    assert "true judgments from 5 are liked" in str(pooled)
    small = standing(
        str(tmp_path / "ratings.csv"),
        random=str(tmp_path / "random.csv"),
        targets=us.targets.TestTargets(),
        **settings,
    )
    assert "of the order of the randomly chosen items alone" in str(small)


def test_implicit_data_have_no_average():
    data, value = drawn()
    liked = data.ratings.take(data.ratings.value >= 4)
    implicit = Dataset("implicit", liked, data.true_part.ratings, liked=4)
    result = standing(implicit, metric="P@5", splits=1, bootstrap=0, tune=False)
    assert "smoothed-average" not in result.by_system
    assert any("smoothed-average is left out" in note for note in result.notes)
    assert value.size


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"system": "popular"}, "system 'popular'. Did you mean 'popularity'"),
        ({"algorithms": ["popularity"]}, "at least 2 systems"),
        ({"metric": "Gini@5"}, "orders no systems"),
        ({"splits": 0}, "splits must be"),
        ({"level": 2}, "level must lie"),
        ({"random": {"user": [1], "item": [1]}}, "has true judgments already"),
        ({"test": 1.5}, "test"),
        ({"targets": us.targets.OneRelevant(others=3)}, "one list per user"),
    ],
)
def test_what_is_refused(settings, why):
    data, _ = drawn()
    with pytest.raises(us.UnskewError, match=why):
        standing(data, **{"algorithms": SYSTEMS, "metric": "P@5", "splits": 1, **settings})


def test_what_has_no_truth_is_refused():
    data, _ = drawn()
    with pytest.raises(us.SettingError, match="the truth of x is not known"):
        standing(Dataset("x", data.ratings, liked=4), algorithms=SYSTEMS)
    with pytest.raises(us.SettingError, match="not as both"):
        standing(data.ratings, random=data.ratings, pooled=data.ratings, algorithms=SYSTEMS)
    with pytest.raises(us.SettingError, match="a world knows its truth: leave pooled"):
        standing(us.world("shop", users=20, items=10), pooled=data.ratings)
    strangers = us.read_ratings({"user": ["x", "y"], "item": [1, 2], "rating": [5, 1]})
    with pytest.raises(us.DataError, match="fewer than 2 users have a training rating"):
        standing(
            Dataset("x", data.ratings, strangers, liked=4), algorithms=SYSTEMS, splits=1, tune=False
        )
    pool = Dataset("x", data.ratings, liked=4, truth=TrueJudgments(data.ratings, "pooled"))
    plan = us.Plan(algorithms=SYSTEMS, interventions=[us.splits.Wtd()], metrics=["P@5"])
    with pytest.raises(us.SettingError, match="but these are pooled"):
        truth(pool, plan)


def test_result_shows_itself():
    moved = []
    data, _ = drawn()
    result = standing(
        data,
        algorithms=SYSTEMS,
        metric="P@5",
        splits=2,
        bootstrap=20,
        progress=lambda done, total: moved.append((done, total)),
    )
    assert moved == [(1, 2), (2, 2)]
    assert "<table" in result._repr_html_()
    kept = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert kept["true_place"] == result.of().true.place
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 6
    assert "popularity is" in repr(result)
    with pytest.raises(us.UnknownName):
        result.of("nobody")
    table = result.table()
    assert table["true_judged"].dtype == pl.Float64
    assert table.height == 3


# Named data sets, as miniatures in their official format


def test_kuairec_by_its_name(tmp_path, monkeypatch):
    data, _ = drawn(kind="exhaustive")
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
    systems = {name: SYSTEMS[name] for name in ("popularity", "random")}
    settings = {"algorithms": systems, "metric": "P@5", "splits": 1, "bootstrap": 0, "seed": 4}
    named, plain = standing("kuairec", **settings), standing(data, **settings)
    assert named.sampling.kind == "exhaustive"
    columns = ["system", "observed_liked", "true_liked", "true_place"]
    assert named.table().select(columns).equals(plain.table().select(columns))
    assert "judgments of every pair of 60 users and 20 items" in str(named)


def test_ml_32m_ext_by_its_name(tmp_path, monkeypatch):
    data, _ = drawn(kind="pooled")
    folder = tmp_path / "ml-32m-ext"
    folder.mkdir()
    data.ratings.to_polars().select(
        userId="user", movieId="item", rating="rating", timestamp=pl.lit(1697216400)
    ).write_csv(folder / "explicit-ratings.csv")
    known = set(data.ratings.users.values)
    words = {5.0: "Very interested", 2.0: "Somewhat interested"}
    lines = [
        f"1,{user},{item},f,Never,,,{words[value]},3.0,,\n"
        for user, item, value in data.true_part.ratings.to_polars().rows()
        if user in known
    ]
    head = (
        "participant_id,dataset_id,movie_id,seen_status,familiarity,p1_check,p2_check,"
        "interest_level,rating,rank_p2,movielens_rating\n"
    )
    (folder / "p2-ratings.csv").write_text(head + "".join(lines))
    monkeypatch.setenv("UNSKEW_DATA", str(tmp_path))
    settings = {"algorithms": SYSTEMS, "metric": "P@5", "splits": 1, "bootstrap": 0, "seed": 4}
    named, plain = standing("ml-32m-ext", **settings), standing(data, **settings)
    assert named.sampling.kind == "pooled"
    assert "true judgments from 2 are liked" in str(named)
    columns = ["system", "observed", "true", "true_liked", "true_judged"]
    assert named.table().select(columns).equals(plain.table().select(columns))


# The command


def test_command(tmp_path):
    data, _ = drawn()
    data.ratings.to_csv(tmp_path / "ratings.csv")
    data.true_part.ratings.to_csv(tmp_path / "true.csv")
    for kind in ("random", "pooled"):
        done = invoke(
            "bias", "standing", tmp_path / "ratings.csv", f"--{kind}", tmp_path / "true.csv",
            "--liked", 4, "--algorithms", "popularity,random", "-m", "P@5", "--splits", 1,
            "--bootstrap", 10, "--format", "json", "--no-tune",
            "--figure", tmp_path / f"{kind}.json",
        )  # fmt: skip
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout)
        assert (told["kind"], told["splits"], len(told["rows"])) == (kind, 1, 2)
        assert (tmp_path / f"{kind}.json").exists()
    text = invoke(
        "bias", "standing", "--world", "inverted", "--users", 80, "--items", 40, "--algorithms",
        "popularity,smoothed-average,random", "--splits", 1, "--targets", "test-items",
    )  # fmt: skip
    assert text.exit_code == 0, text.output
    assert "popularity is" in text.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--world", "shop", "--pooled", "x.csv"],
        ["--world", "shop", "--targets", "everything"],
        ["--world", "shop", "--system", "nobody"],
        ["--world", "shop", "--users", "30", "--items", "12", "--splits", "0"],
    ],
)
def test_what_the_command_refuses(arguments):
    assert invoke("bias", "standing", *arguments).exit_code in (1, 2)


# Real data


@pytest.mark.real
def test_popularity_stays_first_on_cm100k():
    """castells2018 and mena2021 draw folds of all judgments; the weights say the same order."""
    real_data("cm100k")
    result = standing("cm100k:observed=familiar", splits=2, bootstrap=0)
    row = result.of()
    assert (row.observed.place, row.true.place) == (1, 1)
    assert result.sampling.is_weighted
    density = 103_584 / (1_054 * 1_084)
    for one in result.rows:
        assert one.true.judged == pytest.approx(density, abs=0.02)
    data = us.load("cm100k")
    means = {"popularity": [], "smoothed-average": []}
    for split in us.splits.FamiliarTraining(folds=5).each(data.ratings, 1):
        lists = us.targets.AllItems().lists(split, liked=3, judgments="true")
        models = {
            "popularity": us.recommend.Popularity().fit(split.train, 0),
            "smoothed-average": us.recommend.SmoothedAverage(liked=3).fit(split.train, 0),
        }
        scores = us.evaluate(lists, models, "P@10").mean("P@10")
        for name in means:
            means[name].append(scores[name])
    for name, values in means.items():  # a fold holds a fifth of all judgments
        assert result.of(name).true.score == pytest.approx(5 * np.mean(values), rel=0.15)
