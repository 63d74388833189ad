"""Every next item: a twin that ranks anew at every step, policies by hand, same bits, memory."""

import json
import math
import tracemalloc

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data import Histories
from unskew.errors import DataError, SettingError
from unskew.evaluation import evaluate_steps
from unskew.judging import rank_steps
from unskew.stats.windows.step_curves import clustered_mean
from unskew.targets import next_items

DAY = 86_400


def event_log(seed=0, users=25, items=18, events=260, repeats=True):
    """Return columns of a log in no order, a fifth of its moments shared; not one of our worlds."""
    rng = np.random.default_rng(seed)
    user = rng.integers(users, size=events)
    item = (items * rng.random(events) ** 2).astype(int)
    time = rng.integers(0, 4 * events, events) * 3600
    frame = pl.DataFrame({"user": user, "item": item, "time": time + 1_600_000_000})
    if not repeats:
        frame = frame.unique(["user", "item"], keep="first", maintain_order=True)
    return frame.sample(fraction=1, shuffle=True, seed=seed)


def cut(frame, share=0.6):
    moment = frame["time"].quantile(share)
    return frame.filter(pl.col("time") < moment), frame.filter(pl.col("time") >= moment)


class Static:
    """Scores users once, some pairs not at all, many scores equal."""

    def __init__(self, users, items, seed=0):
        rng = np.random.default_rng(seed)
        self.table = rng.integers(0, 5, (users, items)).astype(float)
        self.table[rng.random((users, items)) < 0.1] = np.nan

    def score(self, users):
        return self.table[users]


class Following:
    """Sees the history: scores depend on all of it, in order."""

    def __init__(self, items):
        self.items = items

    def row(self, history):
        score = np.zeros(self.items)
        for at, item in enumerate(history):
            score += ((np.arange(self.items) + item * (at + 1)) % 4) * 1.0
        score[(np.arange(self.items) + len(history)) % 7 == 0] = np.nan
        return score

    def score_next(self, histories):
        rows = [self.row(histories.of(n).tolist()) for n in range(len(histories))]
        return np.array(rows).reshape(len(histories), self.items)


def plain_steps(train, test, steps, *, seen, candidates):
    """Yield user, target, history and open candidates of each step, from the rows."""
    users, items = steps.users.values.to_list(), steps.items.values.to_list()
    trained = {items.index(i) for i in train["item"]}
    pool = trained if candidates == "train" else set(range(len(items)))
    for user in users:
        known = {items.index(r["item"]) for r in train.filter(user=user).iter_rows(named=True)}
        rows = [
            (r["time"], part, items.index(r["item"]))
            for part, frame in enumerate((train, test))
            for r in frame.filter(user=user).iter_rows(named=True)
        ]
        history, met = [], set()
        for _, part, item in sorted(rows):
            again = item in known or item in met
            if part == 1 and history and not (seen == "drop" and again):
                closed = known | met if seen == "drop" else set()
                yield users.index(user), item, list(history), pool - closed
            history.append(item)
            if part == 1:
                met.add(item)


def plain_rank(score, target, open_items):
    """Rank anew: by falling score, equal scores by number; 0 where the target has no place."""
    order = sorted(
        (i for i in open_items if not math.isnan(score[i])), key=lambda i: (-score[i], i)
    )
    return (order.index(target) + 1 if target in order else 0), len(order)


@pytest.mark.parametrize("seen", ["drop", "keep"])
@pytest.mark.parametrize("candidates", ["train", "all"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ranks_are_those_of_ranking_anew_at_every_step(seen, candidates, seed):
    train, test = cut(event_log(seed))
    steps = next_items(train, test, seen=seen, candidates=candidates)
    static = Static(len(steps.users), len(steps.items), seed)
    following = Following(len(steps.items))
    expected = list(plain_steps(train, test, steps, seen=seen, candidates=candidates))
    assert len(expected) == len(steps) > 40
    once, fresh = rank_steps(static, steps), rank_steps(following, steps)
    shallow = rank_steps(static, steps, deepest=3)
    for at, (user, target, history, pool) in enumerate(expected):
        assert (steps.user[at], steps.item[at], steps.size[at]) == (user, target, len(pool))
        assert steps.histories(at, at + 1).of(0).tolist() == history
        rank, depth = plain_rank(static.table[user], target, pool)
        assert (once.rank[at], once.depth[at]) == (rank, depth)
        assert shallow.rank[at] == rank if rank <= 3 else shallow.rank[at] in (0, rank)
        rank, depth = plain_rank(following.row(history), target, pool)
        assert (fresh.rank[at], fresh.depth[at]) == (rank, depth)


def test_a_history_model_that_ignores_the_history_is_a_static_one():
    """Both ways of ranking give the same ranks, ties at random among them."""
    train, test = cut(event_log(5, repeats=False))
    steps = next_items(train, test)
    static = Static(len(steps.users), len(steps.items), 5)
    user_of = {}
    for at in range(len(steps)):
        user_of.setdefault(steps.histories(at, at + 1).item.tobytes(), set()).add(steps.user[at])

    class Same:
        def score_next(self, histories):
            return np.array([static.table[who] for who in self.users])

        def __init__(self):
            self.users = []

    for ties in ("id", "random"):
        same = Same()
        # One tile holds all steps, so that users can be told by their place.
        same.users = steps.user.tolist()
        assert len(steps) <= 256
        first = rank_steps(static, steps, ties=ties, seed=3)
        second = rank_steps(same, steps, ties=ties, seed=3)
        assert first.rank.tolist() == second.rank.tolist()
        assert first.depth.tolist() == second.depth.tolist()
    other = rank_steps(static, steps, ties="random", seed=4)
    assert other.rank.tolist() != first.rank.tolist()


# Which events are steps


HAND = pl.DataFrame(
    {
        "user": [1, 1, 1, 1, 1, 1, 2, 2],
        "item": ["a", "b", "c", "a", "d", "c", "a", "z"],
        "time": [
            0,
            1 * DAY,
            10 * DAY,
            10 * DAY + 60,
            10 * DAY + 4000,
            20 * DAY,
            10 * DAY,
            11 * DAY,
        ],
    }
)


def hand(**settings):
    train, test = HAND.filter(pl.col("time") < 5 * DAY), HAND.filter(pl.col("time") >= 5 * DAY)
    return next_items(train, test, **settings)


def targets(steps):
    table = steps.to_polars()
    return list(zip(table["user"], table["item"], table["step"], strict=True))


def test_steps_by_hand():
    steps = hand(candidates="all")
    # a and c had been met; the first event of user 2 has nothing before it.
    assert targets(steps) == [(1, "c", 1), (1, "d", 3), (2, "z", 2)]
    assert steps.facts["repeats"] == 2
    assert steps.facts["short_histories"] == 1
    assert steps.size.tolist() == [3, 2, 4]
    kept = hand(candidates="all", seen="keep", least_history=0)
    assert [item for _, item, _ in targets(kept)] == ["c", "a", "d", "c", "a", "z"]
    assert set(kept.size.tolist()) == {5}
    only_trained = hand()
    assert only_trained.facts["steps_of_new_items"] == 3
    assert any("every system misses them" in note for note in only_trained.notes)


def test_sessions_by_hand():
    steps = hand(candidates="all", seen="keep", gap=30, least_history=0)
    table = steps.to_polars()
    # Sessions of user 1: a | b | c a | d | c
    assert table["session"].to_list() == [3, 3, 4, 5, 1, 2]
    assert table["step"].to_list() == [1, 2, 1, 1, 1, 1]
    again = {"candidates": "all", "seen": "keep", "gap": 30}
    last, first = (hand(target=one, **again) for one in ("last", "first"))
    assert [item for _, item, _ in targets(last)] == ["a", "d", "c", "z"]
    assert [item for _, item, _ in targets(first)] == ["c", "d", "c", "z"]
    within = hand(candidates="all", seen="keep", gap=30, history="session")
    assert targets(within) == [(1, "a", 2)]
    assert within.histories(0, 1).of(0).tolist() == [2]
    whole = hand(candidates="all", seen="keep", target="last")
    assert [i for _, i, _ in targets(whole)] == ["c", "z"]


def test_a_random_target_is_one_of_each_session_and_evenly_drawn():
    n = 3000
    train = {"user": np.arange(n), "item": np.zeros(n, int), "time": np.zeros(n, int)}
    test = {
        "user": np.repeat(np.arange(n), 3),
        "item": np.tile([1, 2, 3], n),
        "time": np.tile([10, 20, 30], n),
    }
    steps = next_items(train, test, target="random", candidates="all", seed=1)
    counts = np.bincount(steps.item, minlength=4)[1:]
    assert counts.sum() == n
    # χ² with 2 degrees of freedom: 27.6 is exceeded once in a million.
    assert ((counts - n / 3) ** 2 / (n / 3)).sum() < 27.6
    other = next_items(train, test, target="random", candidates="all", seed=2)
    assert other.item.tolist() != steps.item.tolist()


def test_sessions_can_be_named_by_a_tag():
    log = HAND.with_columns(visit=pl.Series([1, 1, 2, 2, 3, 4, 1, 2]))
    parts = [
        us.read_events(log.filter(mask), tags=["visit"])
        for mask in (pl.col("time") < 5 * DAY, pl.col("time") >= 5 * DAY)
    ]
    steps = next_items(*parts, session="visit", seen="keep", candidates="all", least_history=0)
    assert steps.to_polars()["session"].to_list() == [2, 2, 3, 4, 1, 2]
    with pytest.raises(DataError, match="session='nope': no such tag"):
        next_items(*parts, session="nope")


def test_ratings_need_to_be_liked():
    ratings = us.read_ratings(
        {
            "user": [1, 1, 1, 2, 2],
            "item": [7, 8, 9, 7, 9],
            "rating": [5, 2, 4, 3, 5],
            "time": [1, 5, 6, 2, 7],
        }
    )
    split = us.Split(ratings.take(ratings.time < 3_000_000), ratings.take(ratings.time > 3_000_000))
    with pytest.raises(SettingError, match="liked=4"):
        next_items(split)
    steps = next_items(split, liked=4, candidates="all")
    # Item 8 is not liked: no step, but met, and part of the history.
    assert targets(steps) == [(1, 9, 2), (2, 9, 1)]
    assert steps.histories(0, 1).of(0).tolist() == [0, 1]
    assert steps.size.tolist() == [1, 2]
    assert steps.facts["not_liked"] == 1


def test_training_after_a_step_is_said():
    split = us.splits.LeaveOut(2).split(
        us.read_ratings(event_log(1, repeats=False), duplicates="last"), seed=1
    )[0]
    steps = next_items(split)
    assert steps.facts["steps_before_training_of_their_user"] > 0
    assert any("learned from the future" in note for note in steps.notes)
    in_time = next_items(*cut(event_log(1)))
    assert not in_time.facts["steps_before_training_of_their_user"]


def test_a_split_and_its_parts_give_the_same_steps():
    ratings = us.read_ratings(event_log(2, repeats=False), duplicates="last")
    (split,) = us.splits.Temporal(test=0.3).split(ratings)
    one, two = next_items(split), next_items(split.train, split.test)
    assert one.to_polars().equals(two.to_polars())


# Scores


def test_scores_are_metrics_of_the_rank():
    train, test = cut(event_log(3))
    steps = next_items(train, test)
    models = {
        "static": Static(len(steps.users), len(steps.items)),
        "next": Following(len(steps.items)),
    }
    scores = evaluate_steps(steps, models, ["RR", "HitRate@3", "nDCG@3", "AUC", "P@3"])
    for name, model in models.items():
        ranks = rank_steps(model, steps)
        rank, hit = ranks.rank, ranks.rank > 0
        np.testing.assert_allclose(
            scores.values(name, "RR"), np.where(hit, 1 / np.maximum(rank, 1), 0)
        )
        np.testing.assert_allclose(scores.values(name, "HitRate@3"), hit & (rank <= 3))
        expected = np.where(hit & (rank <= 3), 1 / np.log2(np.maximum(rank, 1) + 1.0), 0)
        np.testing.assert_allclose(scores.values(name, "nDCG@3"), expected)
        np.testing.assert_allclose(scores.values(name, "P@3"), (hit & (rank <= 3)) / 3)
        area = 1 - (rank - 1) / np.maximum(ranks.depth - 1, 1)
        np.testing.assert_allclose(scores.values(name, "AUC"), np.where(hit, area, 0))
        by_user = pl.DataFrame({"user": steps.user, "value": scores.values(name, "RR")})
        mean = by_user.group_by("user").agg(pl.col("value").mean())["value"].mean()
        assert scores.mean("RR")[name] == pytest.approx(mean)
        assert scores.mean("RR", over="lists")[name] == pytest.approx(by_user["value"].mean())


def test_a_random_order_scores_what_chance_says():
    rng = np.random.default_rng(0)
    train, test = cut(event_log(4, users=40, events=600))
    steps = next_items(train, test)
    scores = evaluate_steps(steps, {"x": np.zeros(len(steps.items))}, ["RR@5", "nDCG", "AUC"])
    known = steps.candidates[steps.item]
    totals = np.zeros((200, 3))
    for at in range(200):
        rank = np.where(known, rng.integers(1, steps.size + 1), 10**9)
        totals[at] = [
            np.where(rank <= 5, 1 / rank, 0).mean(),
            np.where(known, 1 / np.log2(rank + 1), 0).mean(),
            np.where(known, 1 - (rank - 1) / (steps.size - 1), 0).mean(),
        ]
    expected = [scores.random(over="lists")[label] for label in ("RR@5", "nDCG", "AUC")]
    error = totals.std(axis=0) / np.sqrt(200)
    assert (np.abs(totals.mean(axis=0) - expected) < 4.5 * error).all()


def test_columns_and_files(tmp_path):
    train, test = cut(event_log(6))
    steps = next_items(train, test, gap=600)
    scores = evaluate_steps(steps, {"m": Following(len(steps.items))}, "RR")
    table = scores.per_user()
    assert table.columns[:6] == ["system", "user", "session", "step", "time", "anchor"]
    scores.save(tmp_path / "scores")
    back = us.Scores.load(tmp_path / "scores")
    assert back.mean("RR") == scores.mean("RR")
    assert back.lists["step"].to_list() == scores.lists["step"].to_list()
    assert scores.card["steps"]["gap"] == 600
    assert "one relevant item per step" in str(scores)


def test_with_real_models_every_kind_can_be_compared():
    train, test = cut(event_log(7, users=60, events=1500))
    steps = next_items(train, test)
    systems = [
        us.recommend.Popularity(),
        us.recommend.RecentPopularity(days=5),
        us.recommend.MarkovChain(),
        us.recommend.RecentItemKNN(),
        us.recommend.EASE(l2=10.0),
    ]
    scores = evaluate_steps(steps, {one.name: one.fit(steps.train) for one in systems})
    comparison = us.compare(scores, "nDCG@10", permutations=200)
    assert comparison.systems == [one.name for one in systems]
    windows = us.stats.steps_by_window(scores, 3)
    result = us.stats.order_changes(windows, "nDCG@10", resamples=0, permutations=99)
    assert any("the age of the models grows" in note for note in result.notes)
    total = sum(one.lists.height for one in windows.values())
    assert total == len(steps)


# Same bits


def test_rows_threads_and_tiles_change_no_bit(monkeypatch):
    frame = event_log(8, users=60, events=1500)
    train, test = cut(frame)
    steps = next_items(train, test)
    shuffled = next_items(*cut(frame.sample(fraction=1, shuffle=True, seed=9)))
    assert steps.to_polars().equals(shuffled.to_polars())
    models = {
        "chain": us.recommend.MarkovChain().fit(steps.train),
        "near": us.recommend.RecentItemKNN(k=5).fit(steps.train),
        "wrmf": us.recommend.WRMF(factors=4).fit(steps.train),
    }
    first = evaluate_steps(steps, models, "RR", threads=1)
    monkeypatch.setattr("unskew.engine.threads.SMALL", 0)
    monkeypatch.setattr("unskew.judging.step_ranks.USERS", 7)
    for tile in (1, 3, 256):
        monkeypatch.setattr("unskew.judging.rank.TILE", tile)
        again = evaluate_steps(shuffled, {k: models[k] for k in ("chain", "near")}, "RR", threads=2)
        for name in again.systems:
            assert again.values(name, "RR").tobytes() == first.values(name, "RR").tobytes()
    monkeypatch.setattr("unskew.judging.rank.TILE", 256)
    again = evaluate_steps(shuffled, {"wrmf": models["wrmf"]}, "RR", threads=3)
    assert again.values("wrmf", "RR").tobytes() == first.values("wrmf", "RR").tobytes()


def test_memory_does_not_grow_with_steps_times_items():
    rng = np.random.default_rng(0)
    users, items, each = 500, 4_000, 30
    train = {
        "user": np.repeat(np.arange(users), 4),
        "item": rng.integers(items, size=4 * users),
        "time": np.tile(np.arange(4), users),
    }
    test = {
        "user": np.repeat(np.arange(users), each),
        "item": rng.integers(items, size=each * users),
        "time": np.tile(np.arange(each) + 10, users),
    }
    steps = next_items(train, test, candidates="all")
    assert len(steps) > 14_000

    class Counting:
        largest = 0

        def score_next(self, histories):
            self.largest = max(self.largest, len(histories))
            return np.zeros((len(histories), len(steps.items)))

    counting = Counting()
    models = {"static": np.arange(float(len(steps.items))), "next": counting}
    evaluate_steps(steps, models, "RR", threads=1)  # kernels are compiled before
    tracemalloc.start()
    evaluate_steps(steps, models, "RR", threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counting.largest == 256
    # Steps x items would be 480 MB; a tile of scores is 8 MB, and a few of them may live.
    assert peak < 80e6


# Ready-made lists


def lists_of(model, steps, depth=5):
    rows = []
    for at in range(len(steps)):
        score = model.row(steps.histories(at, at + 1).of(0).tolist())
        met = set(steps.log.item[steps.log.start[steps.user[at]] : steps.at[at]].tolist())
        closed = met | set(
            steps.train.item[
                steps.train.start[steps.user[at]] : steps.train.start[steps.user[at] + 1]
            ].tolist()
        )
        open_items = [
            i
            for i in np.flatnonzero(steps.candidates & ~np.isnan(score)).tolist()
            if i not in closed
        ]
        best = sorted(open_items, key=lambda i: (-score[i], i))[:depth]
        for rank, i in enumerate(best, start=1):
            rows.append((at, int(steps.user[at]), int(steps.step[at]), i, rank, -rank))
    table = pl.DataFrame(rows, ["at", "u", "step", "i", "rank", "score"], orient="row")
    return table.with_columns(
        user=pl.Series(steps.users.raw(table["u"].to_numpy())),
        item=pl.Series(steps.items.raw(table["i"].to_numpy())),
        time=pl.Series(steps.time[table["at"].to_numpy()]).cast(pl.Datetime("us")),
    ).drop("u", "i", "at")


def test_ready_made_lists_score_as_the_model_that_made_them(tmp_path):
    train, test = cut(event_log(10, repeats=False))
    steps = next_items(train, test)
    model = Following(len(steps.items))
    listed = lists_of(model, steps)
    expected = evaluate_steps(steps, {"m": model}, ["RR@5", "nDCG@5"])
    one_moment = steps.to_polars().select("user", "time").is_duplicated().any()
    forms = {
        "rank": listed.select("user", "step", "item", "rank"),
        "score": listed.select("user", "step", "item", "score"),
        "rows": listed.select("user", "step", "item"),
        "file": str(tmp_path / "lists.csv"),
    }
    listed.select("user", "step", "item", "rank").sample(
        fraction=1, shuffle=True, seed=1
    ).write_csv(tmp_path / "lists.csv")
    if not one_moment:
        forms["time"] = listed.select("user", "time", "item", "rank")
    scores = evaluate_steps(steps, forms, ["RR@5", "nDCG@5"])
    for name in forms:
        for label in ("RR@5", "nDCG@5"):
            np.testing.assert_array_equal(scores.values(name, label), expected.values("m", label))


def test_bad_lists_are_refused():
    train, test = cut(event_log(10))
    steps = next_items(train, test)
    row = steps.to_polars().row(0, named=True)
    with pytest.raises(DataError, match=r"mine: .*need a column step"):
        evaluate_steps(steps, {"mine": {"user": [row["user"]], "item": [1], "rank": [1]}})
    twice = {"user": [row["user"]] * 2, "step": [row["step"]] * 2, "item": [1, 1], "rank": [1, 2]}
    with pytest.raises(DataError, match="an item is in a list twice, as in row 1"):
        evaluate_steps(steps, {"mine": twice})
    with pytest.raises(DataError, match=r"column 'step' must hold whole numbers, got 1.5 in row 2"):
        evaluate_steps(steps, {"mine": {**twice, "step": [1.0, 1.5], "item": [1, 2]}})
    few = evaluate_steps(
        steps,
        {"mine": {"user": [row["user"], 99], "step": [row["step"], 1], "item": [row["item"], 2]}},
    )
    assert few.mean("RR@10", over="lists")["mine"] == pytest.approx(1 / len(steps))
    assert any("1 row of no step that is asked left out" in note for note in few.notes)
    assert any(f"{len(steps) - 1} steps have no list" in note for note in few.notes)


# Curves


def test_curves_by_step_are_means_of_users():
    train, test = cut(event_log(11, users=40, events=900))
    steps = next_items(train, test)
    scores = evaluate_steps(steps, {"m": Following(len(steps.items))}, "RR")
    table = us.stats.step_curves(scores, max_steps=3).where(system="m").rows
    assert table["step"].to_list() == ["1", "2", "3", "4 and more"]
    for row in table.iter_rows(named=True):
        at = steps.step >= 4 if row["step"] == "4 and more" else steps.step == int(row["step"])
        each = (
            pl.DataFrame({"user": steps.user[at], "value": scores.values("m", "RR")[at]})
            .group_by("user")
            .agg(pl.col("value").mean())["value"]
        )
        assert row["value"] == pytest.approx(each.mean())
        assert row["n"] == len(each)
        assert row["steps"] == at.sum()
        half = 1.96 * each.std() / math.sqrt(len(each))
        assert (row["high"] - row["low"]) / 2 == pytest.approx(half, rel=0.15)
    assert "users who stay longer" in str(us.stats.step_curves(scores))
    assert us.stats.step_curves(scores).figure().to_svg().startswith("<svg")


def test_curves_by_window():
    train, test = cut(event_log(12, users=40, events=900))
    steps = next_items(train, test)
    scores = evaluate_steps(steps, {"m": Following(len(steps.items))}, "RR", over="lists")
    curves = us.stats.step_curves(scores, by="window", windows=4)
    mine = curves.where(system="m").rows
    assert mine["steps"].sum() == len(steps)
    whole = (mine["value"] * mine["steps"]).sum() / len(steps)
    assert whole == pytest.approx(scores.mean("RR")["m"])
    times = steps.to_polars()["time"]
    edges = [times.min(), times.min() + (times.max() - times.min()) / 2]
    part = us.stats.step_curves(scores, by="window", windows=edges)
    assert any("outside the windows left out" in note for note in part.notes)
    with pytest.raises(SettingError, match="windows must be at least 2 moments"):
        us.stats.step_curves(scores, by="window", windows=["2024-01-01"])
    with pytest.raises(DataError, match="no step falls into the windows"):
        us.stats.step_curves(scores, by="window", windows=["1990-01-01", "1991-01-01"])
    with pytest.raises(DataError, match="have no steps"):
        us.stats.step_curves(
            us.evaluate({"user": [1], "item": [1]}, {"a": {1: [1]}}, "RR", liked=1)
        )


@pytest.mark.parametrize("over", ["users", "lists"])
def test_clustered_intervals_cover(over):
    """Users whose steps are alike and whose numbers of steps differ: 95 % of 1,000 data sets."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(1000):
        sizes = rng.geometric(0.2, 60)
        own = rng.normal(0.4, 0.2, 60)
        user = np.repeat(np.arange(60), sizes)
        values = own[user] + rng.normal(0, 0.1, user.size)
        _, _, low, high = clustered_mean(values, user, 60, over, 0.95)
        covered += low <= 0.4 <= high
    assert covered >= 1000 * 0.95 - 4.5 * math.sqrt(1000 * 0.95 * 0.05)


# What is refused


def test_what_cannot_be_judged_is_refused():
    train, test = cut(event_log(0))
    steps = next_items(train, test)
    with pytest.raises(SettingError, match="both say where a session begins"):
        next_items(train, test, gap=30, session="x")
    with pytest.raises(SettingError, match="history='session' needs sessions"):
        next_items(train, test, history="session")
    with pytest.raises(SettingError, match="give the test events too"):
        next_items(train)
    with pytest.raises(DataError, match="needs time stamps"):
        next_items(
            *(us.read_ratings(part.drop("time")) for part in cut(event_log(0, repeats=False)))
        )
    with pytest.raises(DataError, match="there is no step to judge"):
        next_items(train, test, least_history=1000)
    with pytest.raises(SettingError, match="anti-P@10"):
        evaluate_steps(steps, {"x": np.zeros(len(steps.items))}, "anti-P@10")
    with pytest.raises(SettingError, match="Gini"):
        evaluate_steps(steps, {"x": np.zeros(len(steps.items))}, "Gini@10")
    with pytest.raises(DataError, match=r"is not fitted yet: give MarkovChain\(…\).fit"):
        evaluate_steps(steps, {"x": us.recommend.MarkovChain()})

    class Wrong:
        def score_next(self, histories):
            return np.zeros((len(histories), 2))

    with pytest.raises(DataError, match="score_next gave an array of shape"):
        evaluate_steps(steps, {"x": Wrong()})


def test_histories_of_a_protocol():
    assert isinstance(
        us.recommend.MarkovChain().fit(next_items(*cut(event_log(0))).train), us.recommend.NextModel
    )
    empty = Histories(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
    assert len(empty) == 0
    assert json.dumps(next_items(*cut(event_log(0))).facts)


# Splits that bring their logs


@pytest.fixture(scope="module")
def visits():
    """A log of visits: bursts of a few events, an hour and more apart."""
    rng = np.random.default_rng(21)
    rows = []
    for user in range(30):
        time = 1_600_000_000 + int(rng.integers(0, 30 * DAY))
        for _ in range(rng.integers(3, 9)):
            for _ in range(rng.integers(1, 6)):
                rows.append((user, int(20 * rng.random() ** 2), time))
                time += int(rng.integers(10, 900))
            time += int(rng.integers(3_600, 6 * DAY))
    return us.read_events(
        dict(zip(("user", "item", "time"), map(list, zip(*rows, strict=True)), strict=True))
    )


def test_every_next_item_of_sessions(visits):
    (split,) = us.splits.Sessions(test=0.3, pick="next", seen="keep").split(visits)
    steps = next_items(split, seen="keep", candidates="all", history="session")
    log = split.logs["test"]
    wanted = log.tags["target"].to_numpy().astype(bool)
    assert len(steps) == wanted.sum() > 40
    assert steps.train is split.train
    # Each history is what came before in the same session.
    table = log.to_polars()
    for at in range(0, len(steps), 7):
        user, moment = steps.users.raw(steps.user[at : at + 1])[0], steps.time[at]
        mine = table.filter(pl.col("user") == user)
        here = mine.filter(pl.col("time").dt.timestamp("us") == moment)["session"][0]
        before = mine.filter(
            (pl.col("session") == here) & (pl.col("time").dt.timestamp("us") < moment)
        )
        history = steps.items.raw(steps.histories(at, at + 1).of(0))
        assert history.to_list() == before["item"].to_list()
    scores = evaluate_steps(steps, {"m": us.recommend.MarkovChain().fit(split.train)}, "RR")
    assert "session" in scores.lists.columns


@pytest.mark.parametrize("pick", ["first", "last", "random", "next"])
@pytest.mark.parametrize("seen", ["drop", "keep"])
def test_targets_are_those_of_the_split(visits, pick, seen):
    (split,) = us.splits.Sessions(test=0.3, pick=pick, seen=seen).split(visits, seed=2)
    steps = next_items(split, seen=seen, candidates="all", least_history=0)
    log = split.logs["test"]
    target = log.tags["target"].to_numpy().astype(bool)
    expected = sorted(
        zip(
            log.user[target].tolist(),
            log.time[target].tolist(),
            log.item[target].tolist(),
            strict=True,
        )
    )
    asked = sorted(zip(steps.user.tolist(), steps.time.tolist(), steps.item.tolist(), strict=True))
    assert asked == expected


def test_items_known_beside_training_are_no_candidates(visits):
    """A rolling window: what a user met before it is in no list, and in the history."""
    windows = us.splits.Windows(number=2, train_length="8d", gap="2d", test=0.4, pick="next")
    split = windows.split(visits)[1]
    assert len(split.known["test"]) > 20
    steps = next_items(split, candidates="all")
    assert steps.facts["steps"] == len(steps) > 20
    model = Following(len(steps.items))
    ranks = rank_steps(model, steps)
    static = Static(len(steps.users), len(steps.items), 3)
    once = rank_steps(static, steps)
    log = visits.to_polars()
    for at in range(len(steps)):
        user, moment = int(steps.user[at]), int(steps.time[at])
        raw = steps.users.raw(steps.user[at : at + 1])[0]
        mine = log.filter(pl.col("user") == raw)
        earlier = mine.filter(pl.col("time").dt.timestamp("us") < moment)["item"].unique()
        met = set(steps.items.codes(earlier).tolist())
        pool = set(range(len(steps.items))) - met
        assert steps.size[at] == len(pool)
        assert (once.rank[at], once.depth[at]) == plain_rank(
            static.table[user], int(steps.item[at]), pool
        )
        history = steps.histories(at, at + 1).of(0).tolist()
        assert set(history) == met
        assert (ranks.rank[at], ranks.depth[at]) == plain_rank(
            model.row(history), int(steps.item[at]), pool
        )


def test_only_judged_users_have_steps(visits):
    ages = us.splits.ModelAges(number=2, step="5d", test=0.3, pick="next").split(visits)
    several = [next_items(split) for split in ages]
    judged = ages[0].judged
    for steps in several:
        assert judged[steps.user].all()
    assert (
        several[0]
        .to_polars()
        .select("user", "step", "item")
        .equals(several[1].to_polars().select("user", "step", "item"))
    )
    scores = {
        age: evaluate_steps(
            steps,
            {
                "pop": us.recommend.Popularity().fit(steps.train),
                "markov": us.recommend.MarkovChain().fit(steps.train),
            },
        )
        for age, steps in zip((0, 5), several, strict=True)
    }
    decay = us.stats.model_decay(scores, "nDCG@10")
    assert decay.values_of("age") == ["0", "5"]
