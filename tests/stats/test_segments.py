"""Segments of users: how they are formed, plain twins, hand-worked cases, calibration."""

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

import unskew as us
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError, UnknownName
from unskew.stats.segments import segments_of
from unskew.stats.tests.group_shuffles import interaction


@pytest.fixture(scope="module")
def judged():
    shop = us.world("shop", users=200, items=60, ratings=3000, seed=7)
    (split,) = us.splits.Random(test=0.3).split(shop.ratings, seed=7)
    lists = us.targets.AllItems().lists(split, liked=4)
    algorithms = {"pop": us.recommend.Popularity(), "knn": us.recommend.UserKNN(k=10)}
    runs = {name: us.rank(one.fit(split.train), lists, 10) for name, one in algorithms.items()}
    warm = split.train.user > 9  # the first ten users are cold
    return us.judge(split.test, runs, liked=4, train=split.train.take(warm))


def table(groups, users=None):
    users = np.arange(len(groups)) if users is None else users
    return {"user": users, "group": groups}


def values(d, users=None):
    """Return values per user of two systems whose difference is d."""
    d = np.asarray(d, float)
    return {"user": np.arange(d.size) if users is None else users, "a": d, "b": np.zeros(d.size)}


def names_and_sizes(ids, by, **settings):
    segments = segments_of(ids, by, **settings)
    return dict(zip(segments.names, segments.sizes.tolist(), strict=True))


def ids(count):
    return Ids(pl.Series(np.arange(count)))


# How segments are formed


def test_taste_by_plain_sets(judged):
    """Niche, diverse and blockbuster by the share of popular items, as sorted lists give them."""
    train, users = judged.train, judged.users
    profile = {}
    for u, i in zip(train.user.tolist(), train.item.tolist(), strict=True):
        profile.setdefault(train.users.values[u], []).append(i)
    counts = np.bincount(train.item)
    order = sorted(np.flatnonzero(counts), key=lambda i: (-counts[i], i))
    popular = set(order[: math.ceil(0.2 * len(order))])
    share = {u: sum(i in popular for i in own) / len(own) for u, own in profile.items()}
    everyone = sorted(share.values())
    segments = segments_of(users, "taste", judged=judged)
    assert segments.names == ("niche", "diverse", "blockbuster", "cold")
    for user, code in zip(users.values.to_list(), segments.code.tolist(), strict=True):
        if user not in share:
            assert segments.names[code] == "cold"
            continue
        below = sum(one < share[user] for one in everyone)
        middle = (below + everyone.count(share[user]) / 2) / len(everyone)
        name = "niche" if middle < 0.2 else "diverse" if middle < 0.8 else "blockbuster"
        assert segments.names[code] == name


def test_taste_needs_training_ratings_and_takes_no_number_of_groups(judged):
    with pytest.raises(SettingError, match="groups=… does nothing with by='taste'"):
        segments_of(judged.users, "taste", judged=judged, groups=3)
    with pytest.raises(SettingError, match="by='taste' needs the ratings behind the values"):
        segments_of(judged.users, "taste")
    bare = us.judge({"user": [1, 2], "item": [1, 2], "rating": [5, 5]}, {"s": {1: [2]}}, liked=4)
    with pytest.raises(DataError, match="give train="):
        segments_of(bare.users, "taste", judged=bare)


@pytest.mark.parametrize(
    ("numbers", "sizes"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], {"1 to 2": 2, "3 to 4": 2, "5 to 6": 2, "7 to 8": 2}),
        ([0, 0, 0, 0, 0, 0, 0, 9], {"0": 7, "9": 1}),
        ([0, 1, 1, 1, 1, 1, 1, 1], {"0": 1, "1": 7}),
        ([1, 1, 2, 2, 2, 2, 3, 3], {"1": 2, "2": 4, "3": 2}),
        ([0.51, 0.52, 0.53, 1e6], {"0.51": 1, "0.52": 1, "0.53": 1, "1,000,000": 1}),
        ([-1.5, 2, 3, 4.25], {"−1.5": 1, "2": 1, "3": 1, "4.25": 1}),
    ],
)
def test_numbers_become_quantile_groups(numbers, sizes):
    assert names_and_sizes(ids(len(numbers)), table(numbers)) == sizes


def test_text_becomes_groups_and_small_ones_are_merged():
    texts = ["de"] * 30 + ["fr"] * 25 + ["it"] * 3 + ["es"] * 2
    by = table(texts)
    assert names_and_sizes(ids(60), by) == {"de": 30, "fr": 25, "other": 5}
    assert names_and_sizes(ids(60), by, least_users=3) == {"de": 30, "es": 2, "fr": 25, "it": 3}
    many = table([f"g{n:02}" for n in range(25) for _ in range(2)])
    sizes = names_and_sizes(ids(50), many, least_users=1)
    assert len(sizes) == 21
    assert sizes["other"] == 10


def test_users_without_a_value_are_counted_and_a_segment():
    by = {"user": [0, 1, 2, 3], "age": [10, 20, None, float("nan")]}
    segments = segments_of(ids(6), by)
    assert dict(zip(segments.names, segments.sizes.tolist(), strict=True)) == {
        "10": 1, "20": 1, "unknown": 4,
    }  # fmt: skip
    assert segments.notes == ("unknown: 4 users are not in the table or have no age",)
    texts = {"user": [0, 1, 2], "land": ["unknown", "x", ""]}
    assert names_and_sizes(ids(4), texts, least_users=1) == {"unknown": 1, "x": 1, "(unknown)": 2}


def test_columns_of_other_kinds():
    days = pl.DataFrame({"user": [0, 1], "since": ["2024-01-05", "2025-02-01"]})
    by = days.with_columns(pl.col("since").str.to_date())
    assert list(names_and_sizes(ids(2), by)) == ["2024-01-05", "2025-02-01"]
    assert list(names_and_sizes(ids(2), table(["2.5", "10"]))) == ["2.5", "10"]  # text of numbers
    assert list(names_and_sizes(ids(2), table([True, False]), least_users=1)) == ["false", "true"]


def plain_quarter(numbers, mine):
    """Return the quarter in which the middle of the users with the same number falls."""
    below, equal = sum(n < mine for n in numbers), sum(n == mine for n in numbers)
    return math.floor(4 * (below + equal / 2) / len(numbers))


def test_activity_and_taste_have_a_plain_twin(judged):
    users = us.stats.paired(us.evaluate(judged, "P@10")).users
    train = judged.train.to_polars()
    rated = train.group_by("item").len().rename({"len": "popularity"})
    joined = train.join(rated, on="item")
    for by in ("activity", "popularity"):
        segments = segments_of(users, by, judged=judged)
        plain = {}
        for user in users.values:
            mine = joined.filter(pl.col("user") == user)
            taste = mine.filter(pl.col("rating") >= 4)
            taste = mine if taste.is_empty() else taste
            if not mine.is_empty():
                plain[user] = len(mine) if by == "activity" else taste["popularity"].mean()
        code = dict(zip(users.values, segments.code.tolist(), strict=True))
        cold = {user for user in users.values if user not in plain}
        assert cold
        assert {segments.names[code[user]] for user in cold} == {"cold"}
        quarters = {user: plain_quarter(plain.values(), number) for user, number in plain.items()}
        assert [code[user] for user in plain] == list(quarters.values())


def test_without_training_ratings_test_ratings_count(judged):
    alone = us.judge(judged.tests, dict(judged.systems), liked=4)
    activity = us.compare(alone, "P@10", by="activity", test="t")
    assert activity.card["by"] == "number of test ratings"
    assert "cold" not in activity.values_of("group")
    taste = us.compare(alone, "P@10", by="popularity", test="t", groups=2)
    assert (
        taste.card["by"] == "mean number of test ratings of the items that the user liked in test"
    )
    assert len(taste.values_of("group")) == 2


def test_scores_know_activity(judged, tmp_path):
    whole = us.compare(judged, "P@10", by="activity", test="t")
    scores = us.evaluate(judged, "P@10")
    scores.save(tmp_path / "saved")
    for source in (scores, us.Scores.load(tmp_path / "saved")):
        assert us.compare(source, "P@10", by="activity", test="t").table().equals(whole.table())


def test_time_goes_by_the_last_test_judgment():
    day = 86_400
    test = {
        "user": [1, 1, 2, 3, 4],
        "item": [5, 6, 5, 5, 5],
        "rating": [5] * 5,
        "time": [0, 40 * day, 10 * day, 20 * day, 30 * day],
    }
    runs = {"a": {u: [5] for u in (1, 2, 3, 4)}, "b": {u: [6] for u in (1, 2, 3, 4)}}
    result = us.compare(us.judge(test, runs, liked=4), "P@1", by="time", groups=2)
    assert result.values_of("group") == ["1970-01-11 to 1970-01-21", "1970-01-31 to 1970-02-10"]
    assert result.rows["n"].to_list() == [2, 2]
    assert result.table()["value"].to_list() == [1.0, 0.5]


# Differences within segments


def test_hand_worked_case():
    """Two segments: differences 1, 2, 3 and -1, 0, 1, 0; t intervals at 97.5 % each."""
    by = table(["x"] * 3 + ["y"] * 4)
    result = us.compare(values([1, 2, 3, -1, 0, 1, 0]), by=by, least_users=1, test="t")
    x, y = result.table().rows(named=True)
    assert (x["group"], x["n"], x["mean"], x["value"]) == ("x", 3, 2.0, 2.0)
    assert (y["group"], y["n"], y["mean_against"], y["value"]) == ("y", 4, 0.0, 0.0)
    assert x["se"] == pytest.approx(1 / math.sqrt(3))
    assert y["se"] == pytest.approx(math.sqrt(2 / 3) / 2)
    assert result.card["level"] == pytest.approx(0.975)
    half = stats.t.ppf(1 - 0.0125, 2) / math.sqrt(3)
    assert (x["low"], x["high"]) == pytest.approx((2 - half, 2 + half))
    p = stats.ttest_1samp([1, 2, 3], 0).pvalue
    assert (x["p"], x["p_corrected"]) == pytest.approx((p, 2 * p))
    assert (y["p"], y["p_corrected"], y["significant"]) == (1.0, 1.0, False)
    (pair,) = result.parts["interactions"].rows.rows(named=True)
    assert pair["value"] == pytest.approx(6 / 7)
    assert pair["statistic"] == pytest.approx(8.0)  # (2 - 0)² / (1/3 + 1/6)
    assert (pair["worst_group"], pair["worst_value"]) == ("y", 0.0)


def test_plain_twin(judged):
    result = us.compare(judged, ["P@10", "anti-P@10"], by="activity", test="wilcoxon")
    scores = us.evaluate(judged, ["P@10", "anti-P@10"])
    frame = scores.per_user().filter(pl.col("test") > 0)
    code = segments_of(us.stats.paired(scores).users, "activity", judged=judged)
    segment = dict(zip(code.users.values, (code.names[c] for c in code.code), strict=True))
    for label in ("P@10", "anti-P@10"):
        wide = frame.pivot(on="system", index="user", values=label).sort("user")
        d = (wide["pop"] - wide["knn"]).to_numpy()
        where = np.array([segment[user] for user in wide["user"]])
        for row in result[label].rows.iter_rows(named=True):
            mine = d[where == row["group"]]
            assert row["n"] == mine.size
            assert row["value"] == pytest.approx(mine.mean(), abs=1e-15)
            assert row["se"] == pytest.approx(mine.std(ddof=1) / math.sqrt(mine.size))
            half = stats.t.ppf(1 - 0.025 / 5, mine.size - 1) * row["se"]
            assert (row["low"], row["high"]) == pytest.approx(
                (mine.mean() - half, mine.mean() + half)
            )
        p = result[label].rows["p"].to_numpy()
        assert result[label].rows["p_corrected"].to_list() == us.stats.correct(p, "holm").tolist()
        weighted = result[label].rows.select((pl.col("n") * pl.col("value")).sum()).item()
        assert weighted / d.size == pytest.approx(d.mean(), abs=1e-15)
        assert result.parts["interactions"][label].rows["value"][0] == pytest.approx(
            d.mean(), abs=1e-15
        )


def test_worst_group_goes_by_what_is_better():
    by = table(["x", "x", "y", "y"])
    low = us.stats.paired(values([1.0, 1.2, 3.0, 3.1]), metric="loss", better="lower")
    assert us.compare(low, by=by, least_users=1).parts["interactions"].rows["worst_group"][0] == "y"
    neither = us.stats.paired(values([1.0, 1.2, 3.0, 3.1]), metric="n", better="neither")
    tests = us.compare(neither, by=by, least_users=1).parts["interactions"].rows
    assert tests["worst_group"][0] == ""


def test_families_and_references():
    d = np.random.default_rng(1).normal(size=(60, 3))
    wide = {"user": np.arange(60), **{f"s{n}": d[:, n] for n in range(3)}}
    by = table(["x", "y"] * 30)
    result = us.compare(wide, by=by, test="t")
    assert result.card["level"] == pytest.approx(1 - 0.05 / 6)
    assert "Holm over 6 differences" in str(result)
    one = us.compare(wide, by=by, test="t", against="s0", correction=None)
    assert one.card["level"] == pytest.approx(1 - 0.05 / 4)
    assert one.table()["p_corrected"].equals(one.table()["p"])
    assert "p: paired t test, not corrected" in str(one)


def test_small_and_empty_segments():
    by = table(["x"] * 5 + ["y"] * 5 + ["z"])
    result = us.compare(values([1, 2, 3, 4, 5] * 2 + [1]), by=by, least_users=1, test="t")
    z = result.table().filter(pl.col("group") == "z").row(0, named=True)
    assert (z["n"], z["value"]) == (1, 1.0)
    assert z["low"] is z["p"] is z["p_corrected"] is None
    assert not z["significant"]
    assert "1 segment has fewer than 2 users: no interval, no p: z (value)" in result.notes
    assert result.card["level"] == pytest.approx(1 - 0.05 / 2)
    assert result.parts["interactions"].rows["segments"][0] == 2
    # A segment that loses all of its users to undefined values stays, without numbers.
    test = {"user": [1, 2, 3, 4], "item": [5] * 4, "rating": [5, 5, 1, 1]}
    runs = {"a": {u: [5] for u in (1, 2, 3, 4)}, "b": {u: [6, 5] for u in (1, 2, 3, 4)}}
    scores = us.evaluate(test, runs, "AP", liked=4, undefined="skip")
    groups = {"user": [1, 2, 3, 4], "g": ["x", "x", "y", "y"]}
    lost = us.compare(scores, by=groups, least_users=1).table().filter(pl.col("group") == "y")
    assert lost["n"][0] == 0
    assert lost["value"][0] is None
    assert "–" in str(us.compare(scores, by=groups, least_users=1))


# The interaction test


def plain_welch(groups):
    """Return Welch's F and its degrees of freedom as Welch (1951) writes them."""
    n = np.array([len(one) for one in groups])
    mean = np.array([np.mean(one) for one in groups])
    w = n / np.array([np.var(one, ddof=1) for one in groups])
    k, whole = len(groups), w.sum()
    middle = (w * mean).sum() / whole
    lost = ((1 - w / whole) ** 2 / (n - 1)).sum()
    f = (w * (mean - middle) ** 2).sum() / (k - 1) / (1 + 2 * (k - 2) * lost / (k**2 - 1))
    return f, k - 1, (k**2 - 1) / (3 * lost)


def test_interaction_is_welchs_test(monkeypatch):
    from unskew.stats.tests import group_shuffles as module

    rng = np.random.default_rng(2)
    groups = [rng.normal(size=12), 2 + rng.normal(size=20), 3 * rng.normal(size=30)]
    d, code = np.concatenate(groups)[:, None], np.repeat([0, 1, 2], [12, 20, 30])
    f, one, other = plain_welch(groups)
    with monkeypatch.context() as patch:
        patch.setattr(module, "MOST_INTERACTION_SHUFFLES", 10)
        alone = interaction(d, code)
    assert alone.statistic[0] == pytest.approx(f)
    assert alone.p[0] == pytest.approx(stats.f.sf(f, one, other))
    assert alone.shuffles == 0
    assert interaction(d, code).p[0] >= alone.p[0]
    two = [groups[0], groups[1]]
    welch = stats.ttest_ind(*two, equal_var=False)
    with monkeypatch.context() as patch:
        patch.setattr(module, "MOST_INTERACTION_SHUFFLES", 10)
        both = interaction(d[:32], code[:32])
    assert both.p[0] == pytest.approx(welch.pvalue)


def test_interaction_by_shuffles_is_exact_in_a_small_case():
    """Of the 20 ways to divide 6 users into 3 and 3, two are as extreme: p is near 2/20."""
    d, code = np.array([1.0, 2, 4, 10, 12, 17])[:, None], np.array([0, 0, 0, 1, 1, 1])
    f = stats.ttest_ind(d[:3, 0], d[3:, 0], equal_var=False).pvalue
    p = interaction(d, code).p[0]
    assert p == pytest.approx(max(0.1, f), abs=0.015)


def test_interaction_without_variance():
    code = np.repeat([0, 1], 5)
    assert interaction(np.ones((10, 1)), code).p[0] == 1.0
    steps = interaction(np.repeat([0.1, 0.3], 5)[:, None], code)
    assert np.isinf(steps.statistic[0])
    assert steps.p[0] < 0.05
    mixed = np.concatenate([np.zeros(5), [1.0, -1, 1, -1, 0]])[:, None]
    assert interaction(mixed, code).p[0] > 0.5  # no variance in one segment
    assert np.isnan(interaction(np.ones((3, 2)), np.array([0, 0, 1])).p).all()


# What must not matter


def test_same_bits_for_shuffled_rows_and_threads():
    rng = np.random.default_rng(3)
    d, groups = rng.normal(size=90), rng.choice(["x", "y", "z"], 90)
    order = rng.permutation(90)
    first = us.compare(values(d), by=table(groups), least_users=1, permutations=500, threads=1)
    moved = {name: np.asarray(column)[order] for name, column in values(d).items()}
    turned = {name: np.asarray(column)[::-1] for name, column in table(groups).items()}
    again = us.compare(moved, by=turned, least_users=1, permutations=500, threads=2)
    assert first.to_dict() == again.to_dict()


def test_pairs_that_are_tested_apart_give_the_same(monkeypatch):
    from unskew.stats.compare import compare_segments

    d = np.random.default_rng(5).normal(size=(40, 4))
    wide = {"user": np.arange(40), **{f"s{n}": d[:, n] for n in range(4)}}
    by = table(["x", "y"] * 20)
    whole = us.compare(wide, by=by, test="t")
    monkeypatch.setattr(compare_segments, "HELD", 1)
    assert us.compare(wide, by=by, test="t").to_dict() == whole.to_dict()


def test_frozen_numbers():
    """Shuffles depend on a frozen key: no number moves when something is renamed."""
    d = np.array([1.0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    result = us.compare(values(d), by=table(["x"] * 5 + ["y"] * 5), least_users=1, seed=3)
    (pair,) = result.parts["interactions"].rows.rows(named=True)
    assert round(pair["p"] * 5_000) == 26


# Showing


def test_prints_and_is_written(judged, tmp_path):
    result = us.compare(judged, "P@10", by="activity", permutations=200)
    text = str(result)
    assert "P@10 (higher is better)" in text
    assert "segments: quarters of the users by number of training ratings" in text
    assert "each at 99%, Bonferroni over 5 differences" in text
    assert "interaction: Welch's F test" in text
    content = json.loads(json.dumps(result.to_dict()))
    assert len(content["rows"]) == 5
    assert len(content["parts"]["interactions"]["rows"]) == 1
    assert "cold" in result.to_markdown()
    assert "<table>" in result._repr_html_()
    assert repr(result) == text
    result.figure().save(tmp_path / "figure.svg")
    assert "cold (10 users)" in (tmp_path / "figure.svg").read_text()
    assert result.figure(system="pop", against="knn").title.startswith("P@10: pairs within")
    with pytest.raises(UnknownName, match="unknown system 'knn'"):
        result.figure(system="knn")


# Errors


@pytest.mark.parametrize(
    ("content", "by", "says"),
    [
        ("user,land\n1,x\n", "countri", "unknown column of users.csv 'countri'. Allowed: land."),
        ("name,land\n1,x\n", "land", "users.csv has no column of users; its columns are: name"),
        ("item,genre\n1,x\n", "genre", "has a column of items ('item') and none of users"),
        ("user,land\n1,x\n1,y\n", "land", "1 row of users who already have one, such as user 1"),
        ("user,land\n900,x\n901,y\n", "land", "none of its 2 users is among the 4 users"),
        ("user,land\n1,x\n2,x\n3,x\n0,x\n", "land", "gives one segment only, 'x', with all 4"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, content, by, says):
    (tmp_path / "users.csv").write_text(content)
    with pytest.raises((DataError, UnknownName)) as caught:
        us.compare(values([1, 2, 3, 4]), by=f"{tmp_path / 'users.csv'}:{by}")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"by": "activty"}, "unknown by 'activty'. Did you mean 'activity'? Allowed: activity"),
        ({"by": "none.csv:land"}, "none.csv: no such file"),
        ({"by": "none:land"}, "Allowed: activity, popularity, taste, time, FILE:COLUMN"),
        ({"by": "activity"}, "by='activity' needs the ratings behind the values"),
        ({"by": "time"}, "by='time' needs the ratings behind the values"),
        ({"by": {"user": [1], "a": [1], "b": [2]}}, "a column of users and one other column, got"),
        ({"by": {"user": [1], "a": [[1]]}}, "must hold numbers, times or text, got List"),
        ({"by": 5}, "cannot read int"),
        ({"groups": 3}, "groups=… is for by=…"),
        ({"least_users": 3}, "least_users=… is for by=…"),
        ({"by": table([1, 2, 3, 4]), "groups": 1}, "groups must be a whole number from 2 up"),
        ({"by": table([1, 2, 3, 4]), "least_users": 3}, "group holds numbers"),
        ({"by": table(["x", "y"] * 2), "groups": 3}, "group holds text"),
        ({"by": "activity", "least_users": 3}, "for the groups of a text column, not for"),
        ({"by": table([1, 2, 3, 4]), "rope": 0.1}, "rope=… does not go with by=…"),
        (
            {"by": table([1, 2, 3, 4]), "correction": "maxT"},
            "unknown correction (with by=…) 'maxT'",
        ),
    ],
)
def test_settings_that_cannot_be_used(settings, says):
    with pytest.raises((DataError, SettingError)) as caught:
        us.compare(values([1, 2, 3, 4]), **settings)
    assert says in str(caught.value)


def test_segments_of_other_users_are_refused(judged):
    segments = segments_of(ids(4), table([1, 2, 3, 4]))
    with pytest.raises(SettingError, match="4 users, which are not the"):
        us.compare(judged, "P@10", by=segments)
    with pytest.raises(DataError, match="column of times"):
        us.compare(judged, "P@10", by="time")


# Calibration

SIZES = {
    "equal": ([25, 25, 25, 25], [1, 1, 1, 1]),
    "small and wild": ([8, 30, 60, 100], [3, 1, 1, 0.5]),
    "small and calm": ([100, 60, 30, 8], [3, 1, 1, 0.5]),
    "two": ([20, 20], [1, 3]),
    "one small": ([10, 200], [3, 1]),
}
"""Users and standard deviations of segments."""


def normal(rng, n, sd):
    return sd * rng.normal(size=n)


def sparse(rng, n, sd):
    """Return differences as lists give them: none for most users, a few hits for the others."""
    return sd * (rng.random(n) < 0.3) * rng.choice([-0.2, -0.1, 0.1, 0.2], n)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [normal, sparse])
@pytest.mark.parametrize("case", SIZES)
def test_interaction_keeps_its_level(case, draw, monkeypatch):
    """At .05, over 2,000 simulations: no more than .05 and three Monte-Carlo standard errors."""
    from unskew.stats.tests import group_shuffles as module

    monkeypatch.setattr(module, "SHUFFLES", 499)
    sizes, sds = SIZES[case]
    rng, code = np.random.default_rng(11), np.repeat(np.arange(len(sizes)), sizes)
    rejected = 0
    for seed in range(2_000):
        d = np.concatenate([draw(rng, n, sd) for n, sd in zip(sizes, sds, strict=True)])
        rejected += bool(interaction(0.1 + d[:, None], code, seed=seed).p[0] <= 0.05)
    assert rejected / 2_000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [normal, sparse])
def test_intervals_hold_together(draw):
    """All four 95 % simultaneous intervals hold the true difference in 95 % of simulations."""
    sizes, sds = [15, 30, 60, 100], [3, 1, 1, 0.5]
    rng, groups = np.random.default_rng(12), np.repeat(list("wxyz"), sizes)
    held = 0
    for _ in range(1_000):
        d = np.concatenate([draw(rng, n, sd) for n, sd in zip(sizes, sds, strict=True)])
        rows = us.compare(values(d), by=table(groups), least_users=1, test="t").table()
        held += bool(((rows["low"] <= 0) & (rows["high"] >= 0)).all())
    assert held / 1_000 >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / 1_000)
