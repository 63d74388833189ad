"""Ranking and evaluation on target lists: exact orders, ties, threads, blocks, means."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from unskew import DataError, SettingError
from unskew.engine.rng import draw
from unskew.metrics.names import REGISTRY, parse
from unskew.targets import lists as targets_module
from unskew.ties import own_number

LIKED = 4


def split_of(train, test):
    """Make a split of two sets of (user, item, rating) rows; pairs may be in both."""
    parts = [
        us.read_ratings(dict(zip(("user", "item", "rating"), zip(*part, strict=True), strict=True)))
        for part in (train, test)
    ]
    return us.splits.Given(test=parts[1], overlap="keep").split(parts[0])[0]


@cache
def some_split(seed=0, users=8, items=30, share=0.25, text=False):
    """Return a split with users without training or test, and pairs in both."""
    rng = np.random.default_rng(seed)
    trained = rng.random((users, items)) < share * np.linspace(1.8, 0.2, items)
    tested = (rng.random((users, items)) < share) & (~trained | (rng.random(trained.shape) < 0.1))
    trained[0] = tested[1] = False
    trained[2:, 0] = tested[0, 1] = True
    trained[-1, ~(trained | tested).any(axis=0)] = True
    value = rng.integers(1, 6, (users, items))
    value[0, 1] = 5

    def rows(mask):
        return [
            (f"u{u}" if text else int(u) + 3, f"i{i}" if text else 2 * int(i), int(value[u, i]))
            for u, i in np.argwhere(mask)
        ]

    train = rows(trained)
    train += [(train[-1][0], f"i{items}" if text else 2 * items, 3)]
    return split_of(train, rows(tested))


DESIGNS = [
    us.targets.AllItems(),
    us.targets.TestItems(),
    us.targets.Targets(candidates=(2, 6, 8, 20, 22, 24, 30, 44)),
    us.targets.AllItems(strata=3),
    us.targets.AllItems(others=7),
    us.targets.AllItems(others=3, strata=2),
    us.targets.OneRelevant(others=6),
    us.targets.OneRelevant(others="all"),
    us.targets.OneRelevant(others=4, fresh=False, candidates="all"),
    us.targets.Percentiles(others=3, strata=3),
    us.targets.TestTargets(),
    us.targets.UserFlat(5),
]
every = pytest.mark.parametrize("design", DESIGNS, ids=repr)


@cache
def some_lists(design, seed=0):
    return design.lists(some_split(seed), liked=LIKED, seed=1)


def shape_of(lists):
    return len(lists.train.users), len(lists.train.items)


# The plain twin


def plain_orders(table, lists, ties="id", seed=0):
    """Return each list's targets in order, by numpy's lexsort; NaN is no score."""
    users, items = own_number(lists.tests.users), own_number(lists.tests.items)
    start, item = lists.block(0, len(lists))
    orders = []
    for r, u in enumerate(lists.user):
        target = item[start[r] : start[r + 1]]
        score = np.asarray(table[u], np.float64)[target]
        target, score = target[~np.isnan(score)], score[~np.isnan(score)]
        tie = target if ties == "id" else draw(seed, "ties", users[u], items[target])
        orders.append(target[np.lexsort((tie, -score))])
    return orders


def check(table, lists, k, ties="id", seed=0):
    """Compare top-k and the ranks of judged items with the plain orders."""
    orders = plain_orders(table, lists, ties, seed)
    run = us.rank(table, lists, k, ties=ties, seed=seed)
    assert len(run) == len(lists)
    for r, order in enumerate(orders):
        got = run.item[run.start[r] : run.start[r + 1]]
        assert got.tolist() == order[:k].tolist()
        shown = run.score[run.start[r] : run.start[r + 1]]
        wanted = np.asarray(table[lists.user[r]], np.float64)[order[:k]]
        assert shown.tolist() == wanted.tolist()
    ranks = us.judging.ranks_of(table, lists, ties=ties, seed=seed)
    judged = lists.judgments
    for r, order in enumerate(orders):
        mine = judged.item[judged.start[r] : judged.start[r + 1]].tolist()
        wanted = [(place, i) for place, i in enumerate(order.tolist(), 1) if i in mine]
        low, high = ranks.start[r], ranks.start[r + 1]
        got = zip(ranks.rank[low:high], judged.item[ranks.judgment[low:high]], strict=True)
        assert [(int(place), int(i)) for place, i in got] == wanted
        assert (judged.user[ranks.judgment[low:high]] == r).all()
        assert ranks.scored[r] == len(order)
    assert (ranks.scored + ranks.unscored).tolist() == lists.size.tolist()


SPECIAL = [0.0, -0.0, 1.0, 2.0, -1.0, math.nan, math.inf, -math.inf, 1e-320, -1e308]


@every
@examples(15)
@given(data=st.data())
def test_orders_equal_lexsort(design, data):
    lists = some_lists(design)
    users, items = shape_of(lists)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kind = data.draw(st.sampled_from(["special", "ties", "normal", "equal", "none", "rows"]))
    table = {
        "special": lambda: rng.choice(SPECIAL, (users, items)),
        "ties": lambda: rng.integers(0, 3, (users, items)) / 7,
        "normal": lambda: rng.normal(size=(users, items)),
        "equal": lambda: np.full((users, items), -2.5),
        "none": lambda: np.full((users, items), np.nan),
        "rows": lambda: np.repeat(rng.choice(SPECIAL, (users, 1)), items, axis=1),
    }[kind]()
    if data.draw(st.booleans()):
        with np.errstate(over="ignore"):
            table = table.astype(np.float32)
    k = data.draw(st.sampled_from([1, 2, 5, items, items + 50]))
    check(table, lists, k, data.draw(st.sampled_from(["id", "random"])), seed=4)


@pytest.mark.parametrize("ties", ["id", "random"])
@pytest.mark.parametrize("kind", ["normal", "ties", "late", "sorted", "reversed", "float32", "nan"])
def test_the_best_of_many_items(kind, ties):
    """Long rows, where a sample says which entries can be among the best."""
    split = some_split(3, users=5, items=3000, share=0.02)
    lists = us.targets.AllItems().lists(split, liked=LIKED)
    users, items = shape_of(lists)
    rng = np.random.default_rng(1)
    table = rng.normal(size=(users, items))
    if kind == "ties":
        table = rng.integers(0, 40, (users, items)).astype(np.float64)
    if kind == "late":  # everything good stands at the end
        table[:, -60:] += 20
    if kind in ("sorted", "reversed"):
        table = np.sort(table, axis=1)[:, :: -1 if kind == "sorted" else 1]
    if kind == "float32":
        table = table.astype(np.float32)
    if kind == "nan":
        table[rng.random(table.shape) < 0.98] = np.nan
    for k in (1, 10, 50, 700, items):
        check(table, lists, k, ties, seed=2)


def test_a_sample_that_misleads():
    """What the sample saw is far better than all the rest: the limit it gives is too high."""
    from unskew.judging import rank_kernels

    split = some_split(3, users=5, items=6000, share=0.01)
    lists = us.targets.AllItems().lists(split, liked=LIKED)
    users, items = shape_of(lists)
    row = np.random.default_rng(0).permutation(items).astype(np.float64)
    seen = (np.arange(rank_kernels.SAMPLE) * (items / rank_kernels.SAMPLE)).astype(np.int64)
    row[seen] += 1e6
    k = 100
    # The limit lies among the seen entries, where about this many exceed it: too few.
    assert 4 * rank_kernels.SAMPLE * k / items + 20 < k
    for ties in ("id", "random"):
        check(np.tile(row, (users, 1)), lists, k, ties)
        check(np.tile(np.minimum(row, 1e6), (users, 1)), lists, k, ties)


# Ties


@every
def test_random_ties_are_reproducible(design):
    lists = some_lists(design)
    table = np.zeros(shape_of(lists))
    first, again, other = (
        us.rank(table, lists, 50, ties="random", seed=seed).item.tolist() for seed in (1, 1, 2)
    )
    assert first == again
    assert sorted(first) == sorted(other)
    assert first != other


@pytest.mark.parametrize("text", [False, True])
def test_random_ties_are_those_of_a_run_that_is_read(text):
    split = some_split(2, text=text)
    lists = us.targets.AllItems().lists(split, liked=LIKED)
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, shape_of(lists)).astype(np.float64)
    mine = us.rank(table, lists, 100, ties="random", seed=6)
    rows = lists.to_polars()
    u, i = split.train.users.codes(rows["user"]), split.train.items.codes(rows["item"])
    frame = rows.select("user", "item").with_columns(score=pl.Series(table[u, i]))
    theirs = us.read_run(frame.sample(fraction=1, shuffle=True, seed=1), ties="random", seed=6)
    columns = ["user", "item", "rank"]
    assert mine.to_polars().select(columns).equals(theirs.to_polars().select(columns))


def test_random_ties_do_not_depend_on_other_items():
    split = some_split(2)
    few = (2, 6, 8, 20, 22, 24, 30, 44)
    whole = us.targets.AllItems().lists(split, liked=LIKED)
    part = us.targets.Targets(candidates=few).lists(split, liked=LIKED)
    table = np.zeros(shape_of(whole))
    long, short = (
        us.rank(table, lists, 100, ties="random", seed=3).to_polars() for lists in (whole, part)
    )
    kept = long.filter(pl.col("item").is_in(few))
    assert kept.select("user", "item").equals(short.select("user", "item"))
    assert kept["item"].to_list() != sorted(kept["item"])


# Threads and blocks


def products(seed, users, items, factors=16):
    """Return a model whose scores are products of matrices."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(size=(users, factors)), rng.normal(size=(items, factors))
    return lambda who: left[who] @ right.T


def test_the_same_bits_on_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(5)
    user, item = np.nonzero(rng.random((700, 110)) < 0.1)
    data = us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})
    split = us.splits.Random().split(data)[0]
    for design in (
        us.targets.AllItems(),
        us.targets.OneRelevant(others=20),
        us.targets.AllItems(strata=3),
    ):
        lists = design.lists(split, liked=LIKED)
        users, items = shape_of(lists)
        assert users * items > 1 << 16
        assert users > 2 * 256
        model = products(0, users, items)
        found = []
        for number, given_number in ((1, None), (2, None), (1, 2), (2, 1), (5, None)):
            monkeypatch.setattr("unskew.engine.threads.available", lambda number=number: number)
            run = us.rank(model, lists, 10, threads=given_number)
            ranks = us.judging.ranks_of(model, lists, threads=given_number)
            means = us.evaluate(lists, {"m": model}, ["nDCG@10", "ARP@5"], threads=given_number)
            found.append(
                (
                    run.item.tobytes(),
                    run.score.tobytes(),
                    ranks.rank.tobytes(),
                    ranks.judgment.tobytes(),
                    ranks.start.tobytes(),
                    str(means.means()),
                    str(means.random()),
                )
            )
        assert all(one == found[0] for one in found[1:])


@every
def test_the_same_whatever_the_blocks_of_lists(design, monkeypatch):
    lists = design.lists(some_split(), liked=LIKED, seed=1)
    model = products(1, *shape_of(lists))
    found = []
    for most in (1 << 22, 1, 9, 64):
        monkeypatch.setattr(targets_module, "BLOCK_ITEMS", most)
        fresh = design.lists(some_split(), liked=LIKED, seed=1)
        run, ranks = us.rank(model, fresh, 6), us.judging.ranks_of(model, fresh)
        known = (part for part in ranks.__dict__.values() if part is not None)
        parts = run.item, run.start, run.score, *known
        found.append([part.tolist() for part in parts])
    assert all(one == found[0] for one in found[1:])


# What could not be scored


def gaps():
    """Return lists of two users with five targets each, and scores of which some are missing."""
    train = [("a", 0, 3), ("b", 0, 3), ("c", 1, 3)]
    test = [("a", 1, 5), ("a", 4, 5), ("b", 2, 5), ("b", 3, 1)]
    table = np.array(
        [[9, 1, 2, np.nan, np.nan, 3], [9, np.nan, 1, np.nan, np.nan, np.nan], [9, 9, 9, 9, 9, 9.0]]
    )
    return split_of([*train, ("c", 5, 1)], test), table


def test_missing_items_count_as_not_liked():
    split, table = gaps()
    for design in (us.targets.AllItems(), us.targets.AllItems(others=3)):
        lists = design.lists(split, liked=4)
        scores = us.evaluate(lists, {"m": table}, ["P@3", "Recall@3"])
        # a: 5, 2, 1 (2 and 5 may be left undrawn); b: 2 and nothing else.
        assert scores.values("m", "P@3").tolist()[:2] == [1 / 3, 1 / 3]
        assert scores.values("m", "Recall@3").tolist()[:2] == [0.5, 1.0]
    said = "6 of 14 targets could not be scored; they are in no list"
    whole = us.targets.AllItems().lists(split, liked=4)
    assert f"m: {said}" in us.evaluate(whole, {"m": table}, "P@3").notes
    run = us.rank(table, us.targets.AllItems().lists(split, liked=4), 10)
    assert run.to_polars().filter(user="a")["item"].to_list() == [5, 2, 1]
    assert run.to_polars().filter(user="b")["item"].to_list() == [2]
    assert run.notes == (said,)


def test_precision_can_forgive_missing_items():
    split, table = gaps()
    lists = us.targets.AllItems(shortfall="forgive").lists(split, liked=4)
    scores = us.evaluate(lists, {"m": table}, ["P@4", "F1@4", "Recall@4"])
    assert scores.values("m", "P@4").tolist()[:2] == pytest.approx([1 / 3, 1])
    assert scores.values("m", "F1@4").tolist()[:2] == pytest.approx([2 / 5, 1])
    assert "precision divides by what was ranked" in us.rank(table, lists).notes[0]
    asked = us.evaluate(lists, {"m": table}, ["P(per=list)@4"])
    assert scores.values("m", "P@4").tolist() == asked.values("m", "P(per=list)@4").tolist()


@pytest.mark.parametrize(
    "design", [us.targets.AllItems(), us.targets.AllItems(others=4), us.targets.TestTargets()]
)
def test_missing_items_can_be_filled_up_in_random_order(design):
    split, table = gaps()
    table[0, 5] = -math.inf  # the worst score, but a score
    design = replace(design, shortfall="fill")
    orders = set()
    for seed in range(12):
        lists = design.lists(split, liked=4, seed=seed)
        run, again = (us.rank(table, lists, 10) for _ in range(2))
        assert run.item.tolist() == again.item.tolist()
        assert run.depth.tolist() == lists.size.tolist()
        start, item = lists.block(0, len(lists))
        for r in range(2):
            got = run.item[run.start[r] : run.start[r + 1]]
            assert sorted(got) == item[start[r] : start[r + 1]].tolist()
            known = ~np.isnan(table[r, got])
            assert known.tolist() == sorted(known.tolist(), reverse=True)
            assert np.all(np.diff(table[r, got[known]]) < 0)
        orders.add(tuple(run.item[run.start[1] : run.start[2]].tolist()))
        ranks = us.judging.ranks_of(table, lists)
        assert ranks.scored.tolist() == lists.size.tolist()
        assert ranks.unscored.sum() == 0
        deep = us.evaluate(lists, {"m": run}, ["AP", "nDCG"])
        exact = us.evaluate(lists, {"m": table}, ["AP", "nDCG"])
        assert deep.values("m", "AP").tolist()[:2] == exact.values("m", "AP").tolist()[:2]
    assert len(orders) > 1 or design.drawn == 0  # with one unscored target there is one order
    assert any("follow the others in random order" in note for note in run.notes)


def test_the_worst_score_is_a_score():
    split, table = gaps()
    table[:2, 2] = -math.inf
    for design in (us.targets.AllItems(), us.targets.AllItems(others=10)):
        lists = design.lists(split, liked=4)
        run = us.rank(table, lists, 10)
        assert run.to_polars().filter(user="a")["item"].to_list() == [5, 1, 2]
        assert run.notes == ("6 of 14 targets could not be scored; they are in no list",)
        assert us.judging.ranks_of(table, lists).unscored.tolist() == [2, 4, 0]


# What may be a model


class Scorer:
    def __init__(self, table):
        self.table = table

    def score(self, users):
        return self.table[users]


def test_what_counts_as_a_model():
    lists = some_lists(us.targets.AllItems())
    users, items = shape_of(lists)
    one = np.random.default_rng(0).normal(size=items)
    table = np.tile(one, (users, 1))
    runs = [
        us.rank(thing, lists, 5).item.tolist()
        for thing in (
            one,
            table,
            Scorer(table),
            lambda who: table[who],
            one.astype(np.float32),
            table.astype(np.float32),
            Scorer((table * 2**40).astype(np.int64)),
        )
    ]
    assert all(run == runs[0] for run in runs[1:])
    popular = us.rank(us.recommend.Popularity().fit(lists.train), lists, 5)
    counts = np.bincount(lists.train.item, minlength=items).astype(float)
    assert popular.item.tolist() == us.rank(counts, lists, 5).item.tolist()
    chance = [
        us.rank(us.recommend.Random().fit(lists.train, seed), lists, 5).item.tolist()
        for seed in (1, 1, 2)
    ]
    assert chance[0] == chance[1] != chance[2]


def test_what_cannot_rank():
    lists = some_lists(us.targets.AllItems())
    users, items = shape_of(lists)
    with pytest.raises(DataError, match=r"Popularity\(\) is not fitted yet: give Popularity\(…\)"):
        us.rank(us.recommend.Popularity(), lists)
    with pytest.raises(
        DataError, match=rf"shape \(4,\) fit neither {items} items nor {users} users"
    ):
        us.rank(np.zeros(4), lists)
    with pytest.raises(DataError, match=rf"shape \({items}, {users}\) fit neither"):
        us.rank(np.zeros((items, users)), lists)
    with pytest.raises(DataError, match="cannot score with str"):
        us.rank("model", lists)
    with pytest.raises(DataError, match="cannot score with Run"):
        us.rank(us.rank(np.zeros(items), lists), lists)
    with pytest.raises(
        DataError, match=rf"ByFunction.score gave .*\(3,\) .*{users} users and {items}"
    ):
        us.judging.ranks_of(lambda who: np.zeros(3), lists)
    with pytest.raises(DataError, match=r"Scorer.score gave an array of shape"):
        us.rank(Scorer(np.zeros((users, items + 1))), lists)
    with pytest.raises(SettingError, match="depth must be at least 1, got 0"):
        us.rank(np.zeros(items), lists, 0)
    with pytest.raises(us.UnknownName, match="unknown ties 'trec'"):
        us.rank(np.zeros(items), lists, ties="trec")
    with pytest.raises(us.UnknownName, match="unknown ties 'input'"):
        us.evaluate(lists, {"m": np.zeros(items)}, "P@1", ties="input")
    with pytest.raises(SettingError, match=r"ARP: m ranks every target.*ARP@10"):
        us.evaluate(lists, {"m": np.zeros(items)}, "ARP")
    with pytest.raises(SettingError, match="already contain their liked"):
        us.evaluate(lists, {"m": np.zeros(items)}, "P@1", liked=4)


# Models and runs score alike

LABELS = [f"{name}@{k}" for name in REGISTRY for k in (1, 3)]
LABELS += [f"anti-{name}@3" for name, entry in REGISTRY.items() if entry.anti]
LABELS += [f"condensed-{name}@2" for name, entry in REGISTRY.items() if entry.of == "judged"]
LABELS += [
    "P(per=list)@3",
    "SR(mean=ratio)@3",
    "HLU(mean=users)@3",
    "nDCG(ideal=uncut)@2",
    "AP(per=min)@3",
    "infAP(pool=all)@3",
]


def same(first, second, labels=LABELS):
    """Assert that two results have the same bits."""
    for label in labels:
        if parse(label).definition.of == "run":
            assert first.mean(label) == second.mean(label), label
        else:
            a, b = (scores.values("m", label) for scores in (first, second))
            assert a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=True), label


@every
@pytest.mark.parametrize("depth", [None, 2])
def test_a_model_scores_as_the_run_of_its_whole_order(design, depth):
    lists = some_lists(design)
    rng = np.random.default_rng(3)
    table = rng.integers(0, 6, shape_of(lists)).astype(np.float64)
    table[rng.random(table.shape) < 0.05] = np.nan
    # A cutoff beyond the depth at which lists are cut would be warned of.
    labels = [one for one in LABELS if depth is None or parse(one).cutoff <= depth]
    model = us.evaluate(lists, {"m": table}, labels, depth=depth)
    ranked = us.rank(table, lists, 10**6)
    run = us.evaluate(lists, {"m": ranked}, labels, depth=depth)
    same(model, run, labels)
    if depth is not None or ranked.depth.max() == lists.size.max():  # else chance stops earlier
        np.testing.assert_equal(model.random(), run.random())  # undefined is equal to undefined


def test_lists_are_cut_at_the_depth_for_every_kind_of_metric():
    lists = some_lists(us.targets.AllItems())
    table = np.random.default_rng(0).random(shape_of(lists))
    cut = us.evaluate(lists, {"m": table}, ["ARP@3", "Coverage@3", "P@3"])
    with pytest.warns(us.DataWarning, match="at most 3 items"):
        deep = us.evaluate(lists, {"m": table}, ["ARP@9", "Coverage@9", "P@9"], depth=3)
    assert deep.values("m", "ARP@9").tolist() == cut.values("m", "ARP@3").tolist()
    assert deep.mean("Coverage@9") == cut.mean("Coverage@3")
    assert deep.values("m", "P@9") == pytest.approx(cut.values("m", "P@3") / 3)


def test_lists_of_all_items_score_as_test_ratings_do():
    split = some_split(4, users=12, items=40)
    rng = np.random.default_rng(0)
    shared = {(u, i) for u, i in zip(split.train.user, split.train.item, strict=True)}
    mine = [(u, i) not in shared for u, i in zip(split.test.user, split.test.item, strict=True)]
    split = replace(split, test=split.test.take(np.array(mine)))
    lists = us.targets.AllItems().lists(split, liked=LIKED)
    table = rng.random(shape_of(lists))
    run = us.rank(table, lists, 1000)
    listed = us.evaluate(lists, {"m": table}, LABELS)
    plain = us.evaluate(split.test, {"m": run}, LABELS, liked=LIKED, train=split.train)
    same(listed, plain)
    for users in ("with-test", "with-relevant", "with-list", "both", "with-train", "all"):
        assert listed.means(users=users) == plain.means(users=users)
    assert plain.random() == {}
    assert listed.random()["P@1"] > 0


@pytest.mark.parametrize("text", [False, True])
def test_tables_of_other_tools_are_taken_under_either_kind_of_ids(text):
    """Ids that are numbers in one place and text in the other, where they sort differently."""
    rng = np.random.default_rng(1)
    kind = str if text else int
    user, item = np.nonzero(rng.random((14, 25)) < 0.4)
    data = us.read_ratings(
        {
            "user": [kind(u) for u in user],
            "item": [kind(i) for i in item],
            "rating": rng.integers(1, 6, user.size),
        }
    )
    split = us.splits.Random(0.4).split(data)[0]
    other = pl.Int64 if text else pl.String
    for design in (us.targets.AllItems(), us.targets.OneRelevant(others=5)):
        lists = design.lists(split, liked=LIKED)
        table = rng.random(shape_of(lists))
        frame = us.rank(table, lists, 30).to_polars()
        scored = frame.drop("rank")
        turned = frame.with_columns(pl.col("user", "item").cast(other))
        wanted = us.evaluate(lists, {"m": table}, ["nDCG@5", "ARP@3"])
        for source in (frame, scored, turned, turned.drop("rank"), scored.to_pandas()):
            got = us.evaluate(lists, {"m": source}, ["nDCG@5", "ARP@3"])
            same(wanted, got, ["nDCG@5", "ARP@3"])


def test_a_run_keeps_its_notes_and_needs_no_rule_for_ties():
    split, table = gaps()
    lists = us.targets.AllItems().lists(split, liked=4)
    run = us.rank(table, lists, 10)
    scores = us.evaluate(lists, {"m": run}, "P@1", ties="trec")
    assert run.notes[0] in scores.notes


def test_runs_that_were_not_made_for_the_lists():
    split, _ = gaps()
    lists = us.targets.AllItems().lists(split, liked=4)
    good = {"a": [1, 2], "b": [2, 1], "c": [0]}
    scores = us.evaluate(lists, {"mine": good}, ["P@1"])
    assert scores.values("mine", "P@1").tolist() == [1, 1, 0]
    with pytest.raises(DataError, match=r"mine: list 'b' holds item 0, which is not among its tar"):
        us.evaluate(lists, {"mine": {**good, "b": [2, 0]}}, ["P@1"])
    with pytest.raises(DataError, match=r"mine: 1 of its lists were not asked for, the first: 'z'"):
        us.evaluate(lists, {"mine": {**good, "z": [1]}}, ["P@1"])
    with pytest.raises(DataError, match="mine: recommends items that are in no target list"):
        us.evaluate(lists, {"mine": {**good, "b": [2, 777]}}, ["P@1"])
    one = us.targets.OneRelevant(others=1, candidates="test").lists(split, liked=4, seed=1)
    start, item = one.block(0, 3)
    names = [one.tests.items.raw(item[start[r] : start[r + 1]]).to_list() for r in range(3)]
    fine = us.evaluate(one, {"mine": dict(enumerate(names))}, ["RR"])
    assert fine.lists.height == 3
    with pytest.raises(DataError, match="mine: list 1 holds item"):
        us.evaluate(one, {"mine": {0: names[0], 1: [3, 2, 5]}}, ["RR"])
    other = us.targets.AllItems(strata=2).lists(split, liked=4)
    with pytest.raises(DataError, match="lists were not asked for, the first: 6"):
        us.evaluate(other, {"mine": {6: [1]}}, ["RR"])


def test_a_run_may_leave_lists_out():
    split, _ = gaps()
    lists = us.targets.AllItems().lists(split, liked=4)
    scores = us.evaluate(lists, {"mine": {"b": [2]}}, ["P@1"])
    assert scores.values("mine", "P@1").tolist() == [0, 1, 0]
    assert scores.mean("P@1") == {"mine": 0.5}
    assert scores.mean("P@1", users="with-list") == {"mine": 1.0}


# Means


def exact_mean(values):
    """Return the mean of floats, rounded once."""
    return float(sum(map(Fraction, values)) / len(values)) if len(values) else math.nan


@pytest.mark.parametrize("undefined", ["zero", "skip"])
@pytest.mark.parametrize("users", ["with-test", "with-relevant", "all", "with-train"])
def test_means_over_lists_users_and_strata(users, undefined):
    lists = us.targets.AllItems(strata=4).lists(some_split(1, users=20), liked=LIKED)
    table = np.random.default_rng(2).random(shape_of(lists))
    scores = us.evaluate(lists, {"m": table}, ["nDCG@3", "Recall@3", "P@3"])
    assert scores.over == "strata"
    train = np.diff(lists.train.start)[lists.user]
    judged = lists.judgments
    liked = np.bincount(judged.user[judged.value >= LIKED], minlength=len(lists))
    kept = {
        "with-test": np.diff(judged.start) > 0,
        "with-relevant": liked > 0,
        "all": np.ones(len(lists), bool),
        "with-train": train > 0,
    }[users]
    for label in scores.labels:
        values = scores.values("m", label)
        assert np.isnan(values).any() or label == "P@3"

        def mean(mask, values=values):
            chosen = values[mask & kept]
            if undefined == "skip":
                return exact_mean(chosen[~np.isnan(chosen)].tolist())
            return exact_mean(np.nan_to_num(chosen).tolist())

        def mean_of(groups, mean=mean):
            means = [mean(groups == g) for g in np.unique(groups[kept])]
            return exact_mean([one for one in means if not math.isnan(one)])

        how = {"users": users, "undefined": undefined}
        assert scores.mean(label, over="lists", **how)["m"] == mean(np.ones(len(lists), bool))
        assert scores.mean(label, over="strata", **how)["m"] == pytest.approx(
            mean_of(lists.stratum), rel=1e-15
        )
        assert scores.mean(label, over="users", **how)["m"] == pytest.approx(
            mean_of(lists.user), rel=1e-14
        )
    counts = scores.averages(over="strata", users=users, undefined=undefined)["m"]["P@3"]
    assert counts.users == len(np.unique(lists.stratum[kept]))


def test_means_over_users_by_hand():
    """Two lists of one user and one of another: 1/2 and 0, and 1."""
    train = [("a", 9, 3), ("b", 9, 3), ("c", 7, 1), ("c", 8, 1)]
    test = [("a", 1, 5), ("a", 2, 5), ("b", 2, 5)]
    lists = us.targets.OneRelevant(others="all", candidates=(1, 2, 7, 8)).lists(
        split_of(train, test), liked=4
    )
    # Of a's others 7 and 8, 7 stands above 1 and both above 2; b meets 1, 7, 8.
    table = np.array([[2, 0, 3, 1, 0.0], [2, 4, 3, 1, 0], [0, 0, 0, 0, 0]])
    scores = us.evaluate(lists, {"m": table}, ["RR"])
    assert scores.values("m", "RR").tolist() == [1 / 2, 1 / 3, 1]
    assert scores.mean("RR")["m"] == pytest.approx((1 / 2 + 1 / 3 + 1) / 3)
    assert scores.mean("RR", over="users")["m"] == pytest.approx((5 / 12 + 1) / 2)
    frame = scores.per_user()
    assert frame["user"].to_list() == ["a", "a", "b"]
    assert frame["anchor"].to_list() == [1, 2, 2]
    assert scores.lists["targets"].to_list() == [3, 3, 4]
    with pytest.raises(SettingError, match="over='strata' needs lists within strata"):
        scores.means(over="strata")
    with pytest.raises(us.UnknownName, match="Did you mean 'users'"):
        scores.means(over="user")


def test_ratios_of_sums_over_lists_and_users():
    lists = some_lists(us.targets.AllItems())
    table = np.random.default_rng(2).random(shape_of(lists))
    scores = us.evaluate(lists, {"m": table}, ["SR(mean=ratio)@5", "SR@5"])
    frame = scores.per_user().filter(pl.Series(scores.averaged("m")))
    top, bottom = frame["SR(mean=ratio)@5"].to_list(), frame["SR(mean=ratio)@5/den"].to_list()
    assert scores.mean("SR(mean=ratio)@5")["m"] == pytest.approx(sum(top) / sum(bottom), rel=1e-14)
    each = [a / b if b else 0 for a, b in zip(top, bottom, strict=True)]
    assert scores.mean("SR(mean=ratio)@5", over="users")["m"] == pytest.approx(np.mean(each))
    assert scores.mean("SR@5")["m"] == pytest.approx(np.mean(each))


def test_what_is_saved_is_read_again(tmp_path):
    lists = some_lists(us.targets.Percentiles(others=3, strata=3))
    table = np.random.default_rng(2).random(shape_of(lists))
    scores = us.evaluate(
        lists,
        {"m": table, "pop": us.recommend.Popularity().fit(lists.train)},
        ["P@3", "nDCG@2", "bpref@3", "SR(mean=ratio)@3", "Coverage@2", "ARP@2"],
        draws=3,
    )
    scores.save(tmp_path)
    again = us.Scores.load(tmp_path)
    assert again.over == "strata"
    assert again.simulated == {"bpref@3": 3, "Coverage@2": 2}
    assert again.random() == scores.random()
    assert set(again.random()) == set(scores.order)
    for over in ("lists", "users", "strata"):
        assert again.means(over=over) == scores.means(over=over)
        assert again.random(over=over) == scores.random(over=over)
    assert again.per_user().equals(scores.per_user())
    assert again.per_user().columns[:4] == ["system", "user", "anchor", "stratum"]
    assert again.card["targets"] == dict(lists.design)
    assert str(again) == str(scores)
    assert "(random)" in str(scores)
    assert again.table()["system"].to_list() == ["m", "pop", "(random)"]
    plain = us.evaluate({"user": [1], "item": [2]}, {"m": {1: [2]}}, "P@1")
    assert plain.chance is None
    plain.save(tmp_path / "plain")
    assert us.Scores.load(tmp_path / "plain").chance is None


@examples(60)
@given(
    values=st.lists(st.integers(-50, 50), max_size=200),
    wanted=st.integers(-60, 60),
)
def test_sorting_and_searching_inside_kernels_are_numpys(values, wanted):
    from unskew.engine import sort

    numbers = np.array([0, *values], np.int32)
    low = min(3, len(numbers))
    mine = numbers.copy()
    sort.sort_rising(mine, low, len(mine))
    assert mine.tolist() == [*numbers[:low], *np.sort(numbers[low:])]

    names = np.arange(len(numbers), dtype=np.int32)
    for dtype in (np.int64, np.float64):
        order = names.copy()
        sort.sort_by(numbers.astype(dtype), order, 0, len(order))
        assert order.tolist() == np.argsort(numbers, kind="stable").tolist()

    whole = np.sort(numbers)
    assert sort.first_from(whole, 0, len(whole), wanted) == np.searchsorted(whole, wanted)
    right = np.searchsorted(whole, wanted, side="right")
    assert sort.first_from(whole.astype(np.int64), 0, len(whole), wanted + 1) == right
    assert sort.in_sorted(whole, 0, len(whole), wanted) == (wanted in whole)


def test_kernels_are_compiled_ahead_only_where_there_are_none(monkeypatch):
    from contextlib import nullcontext

    from unskew.auditing import compile_ahead

    begun = []
    monkeypatch.setattr(
        compile_ahead, "python_beside", lambda module: begun.append(module) or nullcontext()
    )
    for processors, compiled, wanted in ((2, True, 0), (1, False, 0), (2, False, 1)):
        monkeypatch.setattr(compile_ahead, "available", lambda n=processors: n)
        monkeypatch.setattr(compile_ahead, "is_compiled", lambda _kernel, known=compiled: known)
        with compile_ahead.compiling_ahead():
            pass
        assert len(begun) == wanted


def test_what_is_compiled_ahead_runs():
    from unskew.auditing import compile_ahead
    from unskew.engine.compiled import is_compiled
    from unskew.judging.rank_kernels import top_of_tile

    compile_ahead.compile_all()
    assert is_compiled(top_of_tile)
