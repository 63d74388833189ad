"""Popularity as users live it: every metric against a plain twin, and what chance gives."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

import unskew as us
from shared.ratings import split_of
from unskew.metrics.items import item_classes, percentiles, tail_items

NAMES = [
    "PopLift(mean=users)",
    "PopPercentile",
    "PercentileShift",
    "TailShift",
    "TailShift(head=0.5)",
    "UPD",
    "UPD(head=0.4,tail=0.3)",
    "ExcessUPD",
]


def random_data(seed, users=12, items=14):
    """Return training and test ratings and lists; user 0 is cold, the last one has no list."""
    rng = np.random.default_rng(seed)
    appeal = 0.9 * rng.dirichlet(np.full(items, 0.7)) + 0.1 / items
    appeal /= appeal.sum()
    train, test, run = [], [], {}
    for u in range(users):
        seen = rng.choice(items, rng.integers(1, 6), replace=False, p=appeal)
        train += [] if u == 0 else [(u, int(i), 5.0) for i in seen]
        rest = np.setdiff1d(np.arange(items + 1), seen)  # one item that nobody rated in training
        judged = rng.choice(rest, 3, replace=False)
        test += [(u, int(i), float(rng.integers(1, 6))) for i in judged]
        if u < users - 1:
            run[u] = [int(i) for i in rng.permutation(rest)[: rng.integers(1, 7)]]
    return _columns(train), _columns(test), run


def _columns(rows):
    return dict(zip(("user", "item", "rating"), map(list, zip(*rows, strict=True)), strict=True))


class Twin:
    """The metrics once more, over plain sets and dicts."""

    def __init__(self, train, items):
        self.count = Counter(train["item"])
        self.total = len(train["item"])
        self.order = sorted(items, key=lambda i: (-self.count[i], i))
        self.profile = {}
        for u, i in zip(train["user"], train["item"], strict=True):
            self.profile.setdefault(u, []).append(i)

    def head(self, share):
        """Return the items before which less than a share of all ratings lies."""
        before, head = 0, set()
        for i in self.order:
            if before < share * self.total:
                head.add(i)
            before += self.count[i]
        return head

    def classes(self, items, head, tail):
        top, upper = self.head(head), self.head(1 - tail)
        return [sum(i in top for i in items), sum(i in upper - top for i in items),
                sum(i not in upper | top for i in items)]  # fmt: skip

    def percentile(self, i):
        rated = [n for n in self.count.values() if n]
        below = sum(n < self.count[i] for n in rated) + sum(n == self.count[i] for n in rated) / 2
        return below / len(rated)

    def value(self, name, user, top, head=None, tail=0.2):
        own = self.profile.get(user, [])
        if not top or (not own and name != "PopPercentile"):
            return math.nan
        if name == "PopLift":
            level = np.mean([self.count[i] for i in own])
            return np.mean([self.count[i] for i in top]) / level - 1
        if name in ("PopPercentile", "PercentileShift"):
            level = np.mean([self.percentile(i) for i in own]) if name != "PopPercentile" else 0
            return np.mean([self.percentile(i) for i in top]) - level
        if name == "TailShift":
            inside = self.head(head or 0.8)
            return np.mean([i not in inside for i in top]) - np.mean([i not in inside for i in own])
        a, b = (self.classes(items, head or 0.2, tail) for items in (own, top))
        value = jensenshannon(a, b, base=2) ** 2
        return value if name == "UPD" else value - self.null([*own, *top], len(top), head, tail)

    def null(self, pool, drawn, head, tail):
        """Average over every way to divide the pool."""
        values = []
        for part in itertools.combinations(range(len(pool)), drawn):
            b = self.classes([pool[i] for i in part], head or 0.2, tail)
            a = self.classes(
                [pool[i] for i in range(len(pool)) if i not in part], head or 0.2, tail
            )
            values.append(jensenshannon(a, b, base=2) ** 2)
        return np.mean(values)


def evaluated(seed, names, **settings):
    train, test, run = random_data(seed)
    scores = us.evaluate(test, {"s": run}, names, liked=4, train=train, users="all", **settings)
    return scores, Twin(train, range(15)), test, run


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("cut", ["@1", "@3", ""])
def test_equals_its_plain_twin(name, cut):
    for seed in range(4):
        scores, twin, _, run = evaluated(seed, [name + cut])
        metric = us.metrics.parse(name + cut)
        given = {k: v for k, v in metric.settings if k != "mean"}
        for user, value in zip(*scores.per_user()["user", name + cut], strict=True):
            want = twin.value(metric.name, user, run.get(user, [])[: metric.cutoff], **given)
            assert value == pytest.approx(want, abs=1e-12, nan_ok=True), (user, seed)


def test_the_lift_of_all_users_is_a_ratio_of_means():
    for seed in range(5):
        scores, twin, _, run = evaluated(seed, ["PopLift@3", "DeltaGAP@3"])
        users = [u for u in run if u in twin.profile]
        top = [np.mean([twin.count[i] for i in run[u][:3]]) for u in users]
        level = [np.mean([twin.count[i] for i in twin.profile[u]]) for u in users]
        lift = np.mean(top) / np.mean(level) - 1
        assert scores.mean("PopLift@3")["s"] == pytest.approx(lift, abs=1e-12)
        assert scores.mean("DeltaGAP@3")["s"] == pytest.approx(lift, abs=1e-12)


def test_numbers_by_hand():
    counts = np.array([1.0, 4.0, 0.0, 2.0, 1.0])
    # most rated first: 4, 2, 1, 1, 0 of 8 ratings; before each: 0, 4, 6, 7, 8
    assert item_classes(counts, 0.2, 0.2).tolist() == [1, 0, 2, 1, 2]
    assert tail_items(counts, 0.75).tolist() == [True, False, True, False, True]
    assert percentiles(counts).tolist() == [0.25, 0.875, 0.0, 0.625, 0.25]
    assert percentiles(np.zeros(3)).tolist() == [0, 0, 0]


def test_the_divergence_of_disjoint_and_of_equal_mixes():
    train = {"user": [*range(8), 8, 9], "item": ["a"] * 8 + ["b", "c"], "rating": [5] * 10}
    test = {"user": [0, 8], "item": ["b", "a"], "rating": [5, 5]}
    names = ["UPD@2", "ExcessUPD@2"]
    # the head is a; of ten ratings b begins at 8, so b and c are the tail
    scores = us.evaluate(test, {"s": {0: ["b", "c"], 8: ["c"]}}, names, liked=4, train=train)
    assert scores.values("s", "UPD@2")[[0, 8]].tolist() == [1.0, 0.0]
    # of three items a, b, c the one alone in its part is a with 1/3, else the mixes overlap
    mixed = jensenshannon([0, 1], [0.5, 0.5], base=2) ** 2
    expected = 1 - (1 / 3 + 2 / 3 * mixed)
    assert scores.values("s", "ExcessUPD@2")[0] == pytest.approx(expected)


# Head and tail over a whole run


def parity_by_sets(train, test, run, k, liked=4, share=0.8):
    """Compute PopREO and PopRSP as Elliot 0.3.1 does, by its source: over sets, user by user."""
    count = Counter(train["item"])
    items = set(train["item"]) | set(test["item"])
    limit, head = share * len(train["item"]), set()
    for i in sorted(items, key=lambda i: (-count[i], i)):
        head.add(i)
        limit -= count[i]
        if limit <= 0:
            break
    tail = items - head
    reo, rsp = np.zeros((2, 2)), np.zeros((2, 2))
    for u, listed in run.items():
        seen = {i for v, i in zip(train["user"], train["item"], strict=True) if v == u}
        rows = zip(test["user"], test["item"], test["rating"], strict=True)
        good = {i for v, i, r in rows if v == u and r >= liked}
        top = set(listed[:k])
        reo += [[len(top & good & part), len((part & good) - seen)] for part in (head, tail)]
        rsp += [[len(top & part), len(part - seen)] for part in (head, tail)]
    return [np.std(one[:, 0] / one[:, 1]) / np.mean(one[:, 0] / one[:, 1]) for one in (reo, rsp)]


def test_parity_equals_elliot_by_its_source():
    for seed in range(20):
        train, test, run = random_data(seed, users=30)
        items = set(train["item"]) | set(test["item"])
        run = {u: [i for i in listed if i in items] for u, listed in run.items()}
        run = {u: listed for u, listed in run.items() if listed}
        for k in (1, 3, 5):
            with np.errstate(invalid="ignore"):
                reo, rsp = parity_by_sets(train, test, run, k)
            names = [f"PopREO@{k}", f"PopRSP@{k}"]
            means = us.evaluate(test, {"s": run}, names, liked=4, train=train).means()["s"]
            assert means[names[0]] == pytest.approx(reo, abs=1e-12, nan_ok=True)
            assert means[names[1]] == pytest.approx(rsp, abs=1e-12, nan_ok=True)


def test_parity_without_any_liked_item_in_lists_is_undefined():
    train = {"user": [1, 2, 2], "item": ["a", "a", "b"], "rating": [5, 5, 5]}
    test = {"user": [1, 2], "item": ["b", "c"], "rating": [5, 5]}
    scores = us.evaluate(test, {"s": {1: ["c"], 2: ["d"]}}, ["PopREO@1"], liked=4, train=train)
    assert math.isnan(scores.mean("PopREO@1")["s"])


# What is refused


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("UPD@3", {}, "give train="),
        ("PopREO@3", {}, "give train="),
        ("anti-UPD@3", {"train": True}, "anti"),
        ("UPD(head=0.7,tail=0.5)@3", {"train": True}, "must not exceed 1"),
        ("UPD@3", {"train": True, "ties": "expected"}, "no closed form"),
    ],
)
def test_refusals(name, settings, words):
    train, test, run = random_data(0)
    settings = {**settings, **({"train": train} if settings.get("train") else {})}
    with pytest.raises(us.UnskewError, match=words):
        us.evaluate(test, {"s": run}, name, liked=4, **settings)


# Chance


@pytest.mark.parametrize(
    "name", ["PopLift(mean=users)", "PopPercentile", "PercentileShift", "TailShift", "UPD"]
)
@pytest.mark.parametrize("cut", [1, 3])
def test_chance_is_the_mean_over_all_lists(name, cut):
    train, test, _ = random_data(3, users=6, items=8)
    lists, scores = on_targets(train, test, [f"{name}@{cut}"])
    assert scores.simulated == {}
    twin = Twin(train, range(9))
    start, item = lists.block(0, len(lists))
    ids = lists.tests.items.raw(np.arange(len(lists.tests.items))).to_list()
    metric = us.metrics.parse(name).name
    for row in range(len(lists)):
        targets = [ids[i] for i in item[start[row] : start[row + 1]]]
        user = lists.tests.users.values[int(lists.user[row])]
        each = [twin.value(metric, user, list(t)) for t in itertools.combinations(targets, cut)]
        assert scores.chance.values[0][row] == pytest.approx(np.mean(each), abs=1e-12, nan_ok=True)


def on_targets(train, test, names):
    split = split_of(*(list(zip(*one.values(), strict=True)) for one in (train, test)))
    lists = us.targets.AllItems().lists(split, us.Relevance(liked=4), seed=1)
    model = us.recommend.Popularity().fit(lists.train, 0)
    return lists, us.evaluate(lists, {"pop": model}, names, users="all")


def test_chance_of_the_excess_is_simulated_and_near_its_mean():
    train, test, _ = random_data(5, users=60, items=14)
    _, scores = on_targets(train, test, ["UPD@3", "ExcessUPD@3", "PopRSP@3"])
    assert scores.simulated == {"PopRSP@3": 2, "ExcessUPD@3": 2}
    chance = scores.random(undefined="skip")
    assert -0.5 < chance["ExcessUPD@3"] < chance["UPD@3"]


def test_the_excess_of_two_samples_of_one_taste_is_0_on_average():
    """A generator that is no world: counts of three classes by numpy, list and profile alike."""
    from unskew.metrics.kernels import popularity as kernels

    rng = np.random.default_rng(8)
    for size, drawn, taste in ((3, 10, (0.8, 0.15, 0.05)), (40, 5, (0.3, 0.3, 0.4))):
        profile = rng.multinomial(size, taste, 20_000).astype(np.float64)
        listed = rng.multinomial(drawn, taste, 20_000)[None]
        value = kernels.divergences(profile, listed, 0, 20_000)[0]
        excess = value - kernels.null_divergences(profile, listed, 0, 20_000)[0]
        error = excess.std() / math.sqrt(excess.size)
        assert value.mean() > 0.03  # the plug-in is far from 0, where the truth is 0
        assert abs(excess.mean()) < 4.5 * error
