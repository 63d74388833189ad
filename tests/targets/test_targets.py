"""Target items: which items each list holds, against plain sets, and how the others are drawn."""

import itertools
import json
import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from shared.pages import written_by
from shared.ratings import split_of
from unskew import DataError, SettingError, UnknownName
from unskew.engine.rng import draw, key_of
from unskew.targets import lists as module

LIKED = 4
PICTURES = written_by("figures")


def some_rows(seed, users=9, items=12, overlap=0.1):
    """Return training and test rows: users without either, items without ratings, pairs in both."""
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.6, 0.05, items)[None, :] * rng.uniform(0.2, 1.5, (users, 1))
    trained = rng.random((users, items)) < chance
    tested = (rng.random((users, items)) < 0.3) & (~trained | (rng.random(chance.shape) < overlap))
    trained[0] = False
    trained[0, 0] = trained[1, items - 1] = tested[1, 1] = True
    trained[1, 1] = tested[2] = False
    trained[3, [1, 3, 4, 8]] = True  # these occur whatever the seed: they are named as candidates
    value = rng.integers(1, 6, (users, items))
    value[1, 1] = 5

    def rows(mask):
        return [(f"u{u}", int(i), int(value[u, i])) for u, i in np.argwhere(mask)]

    return rows(trained), rows(tested)


def some_split(seed, **settings):
    return split_of(*some_rows(seed, **settings))


def everything(lists):
    """Return all lists as (user, anchor, stratum, items)."""
    start, item = lists.block(0, len(lists))
    return [
        (
            int(lists.user[r]),
            int(lists.anchor[r]),
            int(lists.stratum[r]),
            item[start[r] : start[r + 1]].tolist(),
        )
        for r in range(len(lists))
    ]


# The plain twin: sets of numbers


def by_user(part):
    table = {u: {} for u in range(len(part.users))}
    for u, i, value in zip(part.user.tolist(), part.item.tolist(), part.value, strict=True):
        table[u][i] = value
    return table


def plain_strata(design, split):
    """Return the stratum of each item; all 0 without strata."""
    items = range(len(split.train.items))
    if design.strata is None:
        return dict.fromkeys(items, 0)
    count = Counter(split.train.item.tolist())
    if design.strata_by == "items":
        count += Counter(split.test.item.tolist())
        order = sorted(items, key=lambda i: (-count[i], i))
        return {i: place * design.strata // len(order) for place, i in enumerate(order)}
    count = Counter(split.train.item[split.train.value >= LIKED].tolist())
    order = sorted(items, key=lambda i: (-count[i], i))
    total, before, found = sum(count.values()), 0, {}
    for i in order:
        middle = before + count[i] / 2
        found[i] = min(int(middle * design.strata / total), design.strata - 1)
        before += count[i]
    return found


def plain_lists(design, split):
    """Return (user, anchor, stratum, what must be in it, what may be) of every list."""
    train, test = by_user(split.train), by_user(split.test)
    items = set(range(len(split.train.items)))
    named = {"all": items, "test": set(split.test.item), "train": set(split.train.item)}
    pool = (
        named[design.candidates]
        if isinstance(design.candidates, str)
        else {i for i in items if split.train.items.values[i] in design.candidates}
    )
    stratum = plain_strata(design, split)
    found = []
    for u in train:
        liked = {i for i, value in test[u].items() if value >= LIKED}
        fixed = liked if design.fixed == "liked" else set(test[u])
        free = pool - set(train[u]) - fixed
        if design.by == "popularity":
            free &= set(split.train.item)
        if design.relevant == "one":
            asked = [(i, stratum[i], {i}) for i in sorted(liked & pool - set(train[u]))]
        else:
            own = fixed & pool - set(train[u])
            asked = [
                (-1, s, {i for i in own if stratum[i] == s}) for s in range(design.strata or 1)
            ]
        for anchor, s, must in asked:
            number = s if design.strata else -1
            found.append((u, anchor, number, must, {i for i in free if stratum[i] == s}))
    if design.shortage == "skip" and design.drawn is not None:
        found = [one for one in found if len(one[4]) >= design.drawn]
    return found


DESIGNS = [
    us.targets.AllItems(),
    us.targets.TestItems(),
    us.targets.TrainItems(),
    us.targets.Targets(candidates=(1, 3, 4, 8)),
    us.targets.AllItems(others=1),
    us.targets.AllItems(others=4, shortage="skip"),
    us.targets.TestItems(others=3),
    us.targets.TrainItems(others=0),
    us.targets.TrainItems(others=3, by="popularity"),
    us.targets.AllItems(fixed="judged"),
    us.targets.AllItems(others=2, by="popularity"),
    us.targets.AllItems(strata=3),
    us.targets.TestItems(others=2, strata=3),
    us.targets.AllItems(others=2, strata=2, strata_by="judgments", fixed="judged"),
    us.targets.OneRelevant(others=3),
    us.targets.OneRelevant(others=3, fresh=False),
    us.targets.OneRelevant(others="all"),
    us.targets.OneRelevant(others="all", candidates="train", fixed="judged"),
    us.targets.OneRelevant(others=1, candidates="all"),
    us.targets.OneRelevant(others=2, candidates=(0, 1, 2, 3, 4, 5), fixed="judged"),
    us.targets.OneRelevant(others=2, candidates="all", by="popularity"),
    us.targets.OneRelevant(others=5, by="popularity", shortage="skip"),
    us.targets.Percentiles(others=2, strata=3),
    us.targets.Percentiles(others=2, strata=4, shortage="skip", strata_by="judgments"),
    us.targets.Percentiles(others="all", strata=2, candidates="test"),
    us.targets.Percentiles(others=1, strata=3, by="popularity", fresh=False),
    us.targets.TestTargets(),
    us.targets.UserFlat(2),
    us.targets.UserFlat(40),
]
every = pytest.mark.parametrize("design", DESIGNS, ids=repr)


@every
@examples(12)
@given(seed=st.integers(0, 10**6))
def test_every_list_holds_what_its_design_says(design, seed):
    split = some_split(seed)
    wanted = plain_lists(design, split)
    if not wanted:
        with pytest.raises(DataError, match="asks for no list"):
            design.lists(split, liked=LIKED)
        return
    lists = design.lists(split, liked=LIKED, seed=seed)
    got = everything(lists)
    assert [one[:3] for one in got] == [one[:3] for one in wanted]
    for (*_, items), (u, *_, must, may) in zip(got, wanted, strict=True):
        assert items == sorted(set(items))
        assert must <= set(items)
        others = set(items) - must
        assert others <= may
        asked = len(may) if design.drawn is None else min(design.drawn, len(may))
        assert len(others) == asked
        assert not others & set(by_user(split.train)[u])
    assert lists.size.tolist() == [len(one[3]) for one in got]


@every
@examples(8)
@given(seed=st.integers(0, 10**6))
def test_judgments_of_a_list_are_those_among_its_targets(design, seed):
    split = some_split(seed)
    if not plain_lists(design, split):
        return
    lists = design.lists(split, liked=LIKED, seed=seed)
    test = by_user(split.test)
    all_asked = design.relevant == "all" and not design.strata
    found = by_user(lists.judgments)
    assert len(lists.judgments.users) == len(lists)
    for row, (u, *_, items) in enumerate(everything(lists)):
        wanted = {i: value for i, value in test[u].items() if i in items}
        if all_asked:  # what no system can find counts as missed
            kept = design.fixed == "judged" or lists.whole
            wanted |= {i: value for i, value in test[u].items() if kept or value >= LIKED}
        assert found[row] == wanted


def test_a_liked_item_outside_the_candidates_is_missed_with_all_relevant_items():
    train = [("a", "x", 3), ("b", "y", 3), ("c", "z", 1)]
    test = [("a", "y", 5), ("a", "new", 5), ("a", "z", 1), ("b", "x", 5)]
    split = split_of(train, test)
    for design, items in ((us.targets.TrainItems(), "yz"), (us.targets.TrainItems(others=0), "y")):
        lists = design.lists(split, liked=4)
        assert lists.to_polars().filter(user="a")["item"].to_list() == list(items)
        scores = us.evaluate(lists, {"best": np.array([0.0, 0, 2, 1])}, ["Recall@1", "P@1"])
        # Ann's two liked items: only one is among the targets.
        assert scores.values("best", "Recall@1")[0] == 0.5
        assert scores.values("best", "P@1")[0] == 1
    one = us.targets.OneRelevant(others=1, candidates="train").lists(split, liked=4)
    assert one.tests.items.raw(one.anchor).to_list() == ["y", "x"]
    assert one.facts["outside"] == 1


# The example matrix


def toy():
    train, test = [], []
    for user, row in PICTURES.TOY_MATRIX.items():
        for item, cell in zip("abcdefgh", row, strict=True):
            if cell in "+-":
                train.append((user, item, 5 if cell == "+" else 1))
            if cell in "PN":
                test.append((user, item, 5 if cell == "P" else 1))
    return split_of(train, test)


def shown(lists, user="u"):
    """Return the lists of a user, as text, by anchor."""
    frame = lists.to_polars().filter(pl.col("user") == user)
    keys = frame["anchor"] if "anchor" in frame.columns else frame["user"]
    return {key: "".join(frame.filter(keys == key)["item"]) for key in keys.unique().sort()}


def test_the_example_matrix():
    split = toy()
    wanted = list(PICTURES.TOY_TARGETS.values())
    for design, items in zip(
        (us.targets.AllItems(), us.targets.TestItems(), us.targets.TestTargets()),
        wanted,
        strict=False,
    ):
        assert shown(design.lists(split, liked=4)) == {"u": items}
    one = us.targets.OneRelevant(others="all").lists(split, liked=4)
    assert shown(one) == {"d": wanted[3], "e": wanted[4]}
    drawn = {
        shown(us.targets.OneRelevant(others=1).lists(split, liked=4, seed=seed))["d"]
        for seed in range(20)
    }
    assert drawn == {"bd", wanted[5]}
    flat = shown(us.targets.UserFlat(others=2).lists(split, liked=4))["u"]
    assert len(flat) == 5
    assert set("cde") < set(flat) < set("abcdeh")


# Hash and blocks


def test_the_compiled_hash_equals_the_plain_one():
    from unskew.engine import rng as rng_kernels

    key = np.uint64(key_of(7, "targets"))
    for a, b in itertools.product((0, 1, 5, 2**31, 2**40, -1), (0, 3, 10**9, -2)):
        state = np.uint64(rng_kernels.first(key, np.int64(a)))
        assert int(rng_kernels.second(state, np.int64(b))) == int(draw(7, "targets", a, b)[0])
    tile = np.empty((3, 4))
    users = np.array([2, 0, 9], np.int32)
    users.flags.writeable = False
    rng_kernels.uniform_tile(key, users, tile)
    bits = draw(7, "targets", np.repeat(users, 4), np.tile(np.arange(4), 3)) >> np.uint64(11)
    assert tile.ravel().tolist() == (bits.astype(np.float64) * 2.0**-53).tolist()


def plain_draw(seed, u, anchor, pool, n, items):
    """Draw n of the pool as the kernel does where nothing else is barred: again, or in turn."""

    def bits(b):
        return int(draw(seed, "targets", u * (items + 1) + anchor + 1, b)[0]) >> 32

    found = []
    if 4 * n <= len(pool) - 1:
        for step in itertools.count():
            i = pool[bits(step) * len(pool) >> 32]
            if i != anchor and i not in found:
                found.append(i)
            if len(found) == n:
                return sorted([*found, anchor])
    rest = [i for i in pool if i != anchor]
    for place, i in enumerate(rest):
        if bits(i) * (len(rest) - place) >> 32 < n - len(found):
            found.append(i)
    return sorted([*found, anchor])


@pytest.mark.parametrize("n", [1, 4, 7, 8, 20, 30])
def test_lists_can_be_drawn_again_from_the_hash_alone(n):
    items = 32
    split = split_of([(9, i, 3) for i in range(items)], [(u, u, 5) for u in range(6)])
    lists = us.targets.OneRelevant(n, candidates="all").lists(split, liked=4, seed=5)
    for u, anchor, _, found in everything(lists):
        assert found == plain_draw(5, u, anchor, list(range(items)), n, items)


def test_the_key_is_what_it_was():
    """A number that must never change, or published lists could not be drawn again."""
    assert key_of(7, "targets") == 8563723882189626668


@every
def test_the_same_lists_whatever_blocks_are_asked_for(design, monkeypatch):
    lists = design.lists(some_split(5, users=15), liked=LIKED, seed=2)
    whole = [items for *_, items in everything(lists)]
    cuts = [0, 1, 2, 5, 5, len(lists)]
    for lo, hi in [*itertools.pairwise(cuts), *((r, r + 1) for r in range(len(lists)))][::-1]:
        start, item = lists.block(lo, hi)
        got = [item[a:b].tolist() for a, b in itertools.pairwise(start)]
        assert got == whole[lo:hi]
    for most in (1, 7, 40, 10**6):
        monkeypatch.setattr(module, "BLOCK_ITEMS", most)
        bounds = list(lists.blocks())
        assert [lo for lo, _ in bounds] == [0, *(hi for _, hi in bounds[:-1])]
        assert bounds[-1][1] == len(lists)
        sizes = [int(lists.size[lo:hi].sum()) for lo, hi in bounds]
        assert all(s <= most or hi - lo == 1 for s, (lo, hi) in zip(sizes, bounds, strict=True))
        inner = list(lists.blocks(2, 5))
        assert (inner[0][0], inner[-1][1]) == (2, 5)
        again = design.lists(some_split(5, users=15), liked=LIKED, seed=2)
        assert again.judgments.item.tolist() == lists.judgments.item.tolist()


@every
def test_shuffled_rows_give_the_same_lists(design):
    train, test = some_rows(8)
    rng = np.random.default_rng(0)
    mixed = [[part[k] for k in rng.permutation(len(part))] for part in (train, test)]
    plain, other = (
        design.lists(split_of(*parts), liked=LIKED, seed=4) for parts in ((train, test), mixed)
    )
    assert everything(plain) == everything(other)


def test_seeds_change_what_is_drawn_and_nothing_else():
    split = some_split(1, users=20, items=30)
    for design in (
        us.targets.AllItems(others=4),
        us.targets.OneRelevant(others=4),
        us.targets.Percentiles(2, strata=3),
    ):
        first, again, other = (
            everything(design.lists(split, liked=LIKED, seed=seed)) for seed in (1, 1, 2)
        )
        assert first == again
        assert first != other
        assert [one[:3] for one in first] == [one[:3] for one in other]


def test_others_are_drawn_anew_for_each_list_or_once_per_user():
    split = some_split(2, users=12, items=40)
    for fresh in (False, True):
        lists = us.targets.OneRelevant(others=5, candidates="all", fresh=fresh).lists(
            split, liked=LIKED
        )
        others = {}
        for u, anchor, _, items in everything(lists):
            others.setdefault(u, set()).add(tuple(i for i in items if i != anchor))
        counts = Counter(lists.user.tolist())
        assert max(counts.values()) > 2
        for u, found in others.items():
            assert len(found) == (counts[u] if fresh else 1)


def test_shared_others_are_those_of_the_list_with_all_relevant_items():
    split = some_split(2, users=12, items=40)
    every_one = us.targets.AllItems(others=5).lists(split, liked=LIKED, seed=3)
    once = us.targets.OneRelevant(others=5, candidates="all", fresh=False).lists(
        split, liked=LIKED, seed=3
    )
    whole = {u: set(items) for u, *_, items in everything(every_one)}
    for u, anchor, _, items in everything(once):
        liked = {i for i, value in by_user(split.test)[u].items() if value >= LIKED}
        assert set(items) - {anchor} == whole[u] - liked


# Chance


def chi_square(counts, lists, n, free):
    """Return a statistic of inclusion counts that has free - 1 degrees of freedom."""
    p = n / free
    return float(((counts - lists * p) ** 2).sum() / (lists * p * (1 - p)) * (free - 1) / free)


def pair_scores(member, joint):
    """Return z of how often each pair of columns is drawn together."""
    lists = member.shape[0]
    together = member.T @ member
    upper = np.triu_indices(member.shape[1], 1)
    p = joint[upper]
    return (together[upper] - lists * p) / np.sqrt(lists * p * (1 - p))


def members(lists, wanted):
    """Return which of the wanted items each list holds, a row per list."""
    start, item = lists.block(0, len(lists))
    table = np.zeros((len(lists), len(lists.tests.items)))
    table[np.repeat(np.arange(len(lists)), np.diff(start)), item] = 1
    return table[:, wanted]


@pytest.mark.parametrize(
    ("n", "barred"),
    [(3, 0), (7, 2), (12, 2), (25, 0), (2, 20), (3, 17)],
    ids=lambda value: str(value),
)
def test_others_are_drawn_uniformly(n, barred):
    """Drawn again when barred (few of many), or selected one after the other (many of few)."""
    users, items = 4000, 32
    train = [(u, i, 3) for u in range(users) for i in range(barred)]
    test = [(u, items - 1, 5) for u in range(users)]
    train += [(users, i, 3) for i in range(items)]
    lists = us.targets.OneRelevant(n, candidates="all").lists(
        split_of(train, test), liked=4, seed=11
    )
    assert len(lists) == users
    free = items - barred - 1
    member = members(lists, np.arange(barred, items - 1))
    assert (member.sum(axis=1) == n).all()
    # The mean of chi-square is its degrees of freedom, its variance twice that.
    dof = free - 1
    assert abs(chi_square(member.sum(axis=0), users, n, free) - dof) < 4.5 * math.sqrt(2 * dof)
    joint = np.full((free, free), n * (n - 1) / (free * (free - 1)))
    assert np.abs(pair_scores(member, joint)).max() < 4.5


def successive(weight, n):
    """Return the chance of each item, and of each pair, to be among n drawn one after another."""
    size = len(weight)
    joint = np.zeros((size, size))
    for order in itertools.permutations(range(size), n):
        chance, left = 1.0, sum(weight)
        for i in order:
            chance *= weight[i] / left
            left -= weight[i]
        for i, j in itertools.product(order, order):
            joint[i, j] += chance
    return joint


@pytest.mark.parametrize(
    ("weight", "n"),
    [
        ([9, 1, 4, 2, 7, 1, 1, 3, 5, 2, 6, 8], 3),
        ([9, 1, 4, 2, 7, 1, 1, 3, 5, 2, 6], 3),
        ([9, 1, 4, 2, 7, 3], 4),
        ([40, 30, 1, 1, 1, 1, 1, 1, 1, 1], 2),
        ([5, 1], 1),
    ],
    ids=["again", "clock", "clock-many", "clock-skewed", "one"],
)
def test_others_by_popularity_are_drawn_one_after_the_other(weight, n):
    """The exact chances of successive sampling, by enumeration; an unrated item is never drawn."""
    users, free = 4000, len(weight)
    top = max(weight)
    train = [(users + k, i, 3) for i, w in enumerate(weight) for k in range(w)]
    train += [(users + k, free, 3) for k in range(top)]  # the anchor
    test = [(u, free, 5) for u in range(users)] + [(users + top, free + 1, 1)]
    split = split_of(train, test)
    lists = us.targets.OneRelevant(n, candidates="all", by="popularity").lists(
        split, liked=4, seed=3
    )
    assert len(lists) == users
    member = members(lists, np.arange(free))
    assert (member.sum(axis=1) == n).all()
    joint = successive(weight, n)
    single = np.diag(joint)
    z = (member.sum(axis=0) - users * single) / np.sqrt(users * single * (1 - single))
    assert np.abs(z).max() < 4.5
    assert float((z**2).sum()) < 3 * free + 10
    if n > 1:
        assert np.abs(pair_scores(member, joint)).max() < 4.5


def test_both_ways_to_draw_by_popularity_are_walked():
    """The cases above fall on both sides of the kernel's choice; see `draw_others`."""
    # (weights of the free items, n, weight of the anchor): 4n <= free, 16 spare >= total.
    for weight, n, again in (
        ([9, 1, 4, 2, 7, 1, 1, 3, 5, 2, 6, 8], 3, True),
        ([9, 1, 4, 2, 7, 1, 1, 3, 5, 2, 6], 3, False),
        ([40, 30, 1, 1, 1, 1, 1, 1, 1, 1], 2, False),
    ):
        both = [*weight, max(weight)]
        spare = sum(weight) - sum(sorted(both)[-n:])
        assert (4 * n <= len(weight) and 16 * spare >= sum(both)) is again


def test_lists_of_one_user_are_drawn_independently():
    items = 40
    test = [(0, i, 5) for i in range(200, 1200)]
    train = [(1, i, 3) for i in range(items)]
    lists = us.targets.OneRelevant(10, candidates="train").lists(
        split_of([*train, *((1, i, 3) for i in range(200, 1200))], test), liked=4, seed=1
    )
    member = members(lists, np.arange(items))
    assert abs(chi_square(member.sum(axis=0), len(lists), 10, items) - 39) < 4.5 * math.sqrt(78)
    follow = (member[1:] * member[:-1]).sum()
    pairs, p = (len(lists) - 1) * items, (10 / items) ** 2
    assert abs(follow - pairs * p) < 4.5 * math.sqrt(pairs * p * (1 - p))


# Shortage


def short_split():
    """One user has two others left, one has five."""
    train = [("few", i, 3) for i in range(4)] + [("many", 0, 3)]
    test = [("few", 4, 5), ("many", 4, 5), ("many", 1, 1), ("none", 5, 2), ("none", 6, 1)]
    return split_of(train, test)


def test_too_few_candidates():
    split = short_split()
    shorter = us.targets.OneRelevant(4, candidates="all").lists(split, liked=4)
    assert shorter.size.tolist() == [3, 5]
    assert shorter.facts["short_lists"] == 1
    assert "skipped_lists" not in shorter.facts
    assert any("1 list with too few candidates is shorter" in note for note in shorter.notes)
    skipped = us.targets.OneRelevant(4, candidates="all", shortage="skip").lists(split, liked=4)
    assert skipped.size.tolist() == [5]
    assert skipped.facts["short_lists"] == skipped.facts["skipped_lists"] == 1
    assert any("left out" in note for note in skipped.notes)
    strict = us.targets.OneRelevant(4, candidates="all", shortage="error")
    with pytest.raises(DataError, match=r"others=4: 1 of 2 lists .*'few' has the fewest, 2;"):
        strict.lists(split, liked=4)
    enough = us.targets.OneRelevant(2, candidates="all", shortage="error").lists(split, liked=4)
    assert enough.size.tolist() == [3, 3]
    with pytest.raises(DataError, match="fewer than 40 candidates; lower others or shorten"):
        us.targets.OneRelevant(40, candidates="all", shortage="skip").lists(split, liked=4)


def test_with_popularity_only_rated_items_count_as_candidates():
    split = short_split()
    lists = us.targets.OneRelevant(4, candidates="all", by="popularity").lists(split, liked=4)
    # Items 0..3 have training ratings: "few" trained on all four, "many" on item 0.
    assert lists.size.tolist() == [1, 4]
    assert lists.facts["short_lists"] == 2


# Errors


@pytest.mark.parametrize(
    ("make", "problem", "message"),
    [
        (lambda: us.targets.Targets(candidates="tests"), UnknownName, "Did you mean 'test'"),
        (lambda: us.targets.Targets(relevant="on"), UnknownName, "Did you mean 'one'"),
        (lambda: us.targets.Targets(others="al"), UnknownName, "Did you mean 'all'"),
        (lambda: us.targets.Targets(fixed="like"), UnknownName, "Did you mean 'liked'"),
        (
            lambda: us.targets.Targets(others=5, by="popular"),
            UnknownName,
            "Did you mean 'popularity'",
        ),
        (lambda: us.targets.Targets(strata_by="item"), UnknownName, "Did you mean 'items'"),
        (lambda: us.targets.Targets(shortage="short"), UnknownName, "Did you mean 'shorten'"),
        (lambda: us.targets.Targets(shortfall="forgiven"), UnknownName, "Did you mean 'forgive'"),
        (lambda: us.targets.Targets(by="popularity"), SettingError, "give a number of others"),
        (
            lambda: us.targets.Targets(others=-1),
            SettingError,
            "others must be a whole number from 0 up",
        ),
        (lambda: us.targets.Targets(others=2.5), SettingError, "others must be a whole number"),
        (
            lambda: us.targets.Targets(strata=1),
            SettingError,
            "strata must be a whole number from 2 up",
        ),
    ],
)
def test_settings_that_are_not_allowed(make, problem, message):
    with pytest.raises(problem, match=message):
        make()


def test_data_that_does_not_fit():
    split = short_split()
    with pytest.raises(SettingError, match="either relevance or liked"):
        us.targets.AllItems().lists(split)
    with pytest.raises(SettingError, match="either relevance or liked"):
        us.targets.AllItems().lists(split, us.Relevance(liked=4), liked=4)
    with pytest.raises(DataError, match="no test rating among the candidates is liked"):
        us.targets.OneRelevant(1).lists(split, liked=6)
    with pytest.raises(DataError, match=r"2 of the given candidates are unknown, the first: 77"):
        us.targets.Targets(candidates=[1, 77, 2, 78]).lists(split, liked=4)
    with pytest.raises(SettingError, match="50 strata need at least 50 items; there are 7"):
        us.targets.Percentiles(strata=50).lists(split, liked=4)
    with pytest.raises(UnknownName, match="unknown judgments 'truth'"):
        us.targets.AllItems().lists(split, liked=4, judgments="truth")
    lists = us.targets.AllItems().lists(split, liked=4)
    for lo, hi in ((-1, 1), (2, 1), (0, 4)):
        with pytest.raises(SettingError, match="there are 3 lists"):
            lists.block(lo, hi)


def test_other_judgments_can_be_asked_for():
    rng = np.random.default_rng(0)
    rows = {
        "user": np.repeat(np.arange(20), 10),
        "item": np.tile(np.arange(10), 20),
        "rating": rng.integers(1, 6, 200),
        "familiar": rng.random(200) < 0.5,
    }
    split = us.splits.FamiliarTraining(folds=3).split(us.read_ratings(rows, tags=["familiar"]))[0]
    sizes = {}
    for name in ("true", "observed"):
        lists = us.targets.TestTargets().lists(split, liked=4, judgments=name)
        assert lists.size.sum() == len(split.judgments[name])
        sizes[name] = len(lists.judgments)
    assert sizes["true"] > sizes["observed"] > 0


# What is told of lists


@every
def test_a_design_prints_as_the_call_that_makes_it(design):
    names = {name: getattr(us.targets, name) for name in us.targets.__all__}
    assert eval(repr(design), names) == design


@pytest.mark.parametrize(
    ("design", "text"),
    [
        (us.targets.AllItems(), "AllItems()"),
        (us.targets.TestItems(others=5), "TestItems(others=5)"),
        (us.targets.OneRelevant(), "OneRelevant(others=99)"),
        (us.targets.OneRelevant(fresh=False), "OneRelevant(others=99, fresh=False)"),
        (us.targets.Percentiles(), "Percentiles(others=99, strata=10)"),
        (us.targets.TestTargets("fill"), "TestTargets(shortfall='fill')"),
        (us.targets.UserFlat(100), "UserFlat(others=100)"),
        (us.targets.TrainItems(strata=4), "TrainItems(strata=4)"),
    ],
)
def test_names_of_designs(design, text):
    assert repr(design) == text


@every
def test_facts_are_plain_values(design):
    lists = design.lists(some_split(5, users=15), liked=LIKED, seed=6)
    content = json.loads(json.dumps([dict(lists.facts), dict(lists.design)], allow_nan=False))
    assert content[0]["lists"] == len(lists)
    assert (content[0]["least"], content[0]["most"]) == (lists.size.min(), lists.size.max())
    assert content[0]["candidates"] == np.count_nonzero(lists.candidates)
    assert content[1]["seed"] == 6
    assert content[1]["relevant"] == design.relevant
    again = us.targets.Targets(**{k: v for k, v in lists.design.items() if k != "seed"})
    assert again == design


def test_percentiles_draw_from_the_items_that_one_relevant_draws_from():
    """bellogin2017 always takes items with test ratings in 1R; percentiles are of all items.

    By ratings the halves are a, b, c and d, e, f: d and e have test ratings, f has none. The list
    of d can hold e, and f only where all items are candidates.
    """
    train = [
        (u, i, 3) for i, users in {"a": 6, "b": 5, "c": 5, "f": 2}.items() for u in range(users)
    ]
    test = [
        (9, "a", 5),
        (9, "b", 1),
        (8, "c", 5),
        (9, "d", 5),
        (8, "e", 1),
        (7, "d", 5),
        (7, "e", 1),
    ]
    split = split_of(train, test)

    def lists_of(design):
        lists = design.lists(split, liked=4, seed=1)
        raw = lists.tests.items.raw
        return {
            (int(lists.tests.users.values[user]), raw(np.array([anchor]))[0]): set(
                raw(np.array(items))
            )
            for user, anchor, _, items in everything(lists)
        }

    assert us.targets.Percentiles().candidates == us.targets.OneRelevant().candidates == "test"
    default = lists_of(us.targets.Percentiles(others="all", strata=2))
    assert default == {
        (9, "a"): {"a", "b", "c"}, (8, "c"): {"a", "b", "c"}, (9, "d"): {"d", "e"},
        (7, "d"): {"d", "e"},
    }  # fmt: skip
    every_item = lists_of(us.targets.Percentiles(others="all", strata=2, candidates="all"))
    low = {(9, "d"): {"d", "e", "f"}, (7, "d"): {"d", "e", "f"}}
    assert every_item == {**default, **low}


def test_percentiles_with_all_items_tested_draw_as_before():
    """Draws move only in strata that lose candidates."""
    split = some_split(3, users=40, items=24)
    test, all_items = (
        us.targets.Percentiles(others=2, strata=3, candidates=one).lists(split, liked=4, seed=5)
        for one in ("test", "all")
    )
    tested = np.bincount(split.test.item, minlength=len(split.test.items)) > 0
    full = [s for s in range(3) if tested[all_items.source.pool.stratum == s].all()]
    assert full
    same = [one for one in everything(test) if one[2] in full]
    assert same
    assert same == [one for one in everything(all_items) if one[2] in full]


def test_what_is_outside_and_what_is_in_training_is_counted():
    train = [("a", 1, 3), ("a", 2, 3), ("b", 3, 3)]
    test = [("a", 1, 5), ("a", 3, 5), ("a", 9, 5), ("b", 8, 1), ("b", 1, 4)]
    split = split_of(train, test)
    lists = us.targets.TrainItems().lists(split, liked=4)
    assert (lists.facts["outside"], lists.facts["in_training"]) == (2, 1)
    assert lists.notes == (
        "targets: 2 test items outside the candidates cannot be found by any system",
        "targets: 1 test rating is also in the user's training ratings and cannot be ranked",
    )
    one = us.targets.OneRelevant(1, candidates="train").lists(split, liked=4)
    assert one.facts["outside"] == 1
    assert one.notes == (
        "targets: 1 list with too few candidates is shorter",
        "targets: 1 test items outside the candidates ask for no list",
        "targets: 1 test rating is also in the user's training ratings and cannot be ranked",
    )
    assert one.tests.items.raw(one.anchor).to_list() == [3, 1]
    assert us.targets.AllItems().lists(split_of(train[:2], [("a", 3, 5)]), liked=4).notes == ()


def test_a_frame_of_the_lists():
    split = toy()
    lists = us.targets.Percentiles(others=2, strata=2).lists(split, liked=4)
    assert repr(lists).startswith(f"TargetLists({len(lists)} lists, ")
    frame = lists.to_polars()
    assert frame.columns == ["list", "user", "item", "anchor", "stratum"]
    assert frame.height == lists.size.sum()
    assert frame.group_by("list").agg(pl.col("user").n_unique()).get_column("user").max() == 1
    part = lists.to_polars(1, 3)
    assert part.equals(frame.filter(pl.col("list").is_in([1, 2])))
    per_user = us.targets.AllItems().lists(split, liked=4)
    assert per_user.per_user
    assert per_user.whole
    assert not per_user.one_relevant
    assert per_user.to_polars()["list"].to_list() == per_user.to_polars()["user"].to_list()
    assert lists.one_relevant
    assert not lists.whole


@pytest.mark.parametrize("stratum", [1e30, -2.0, 0.5, float("nan"), 2**40, "x", None])
def test_strata_that_are_no_small_whole_numbers_are_refused(stratum):
    split = toy()
    frame = (
        us.targets.AllItems()
        .lists(split, liked=4)
        .to_polars()
        .drop("anchor", "stratum", strict=False)
    )
    text = isinstance(stratum, str)
    strata = ["0" if text else 0] * (frame.height - 1) + [stratum]
    table = frame.with_columns(pl.Series("stratum", strata, strict=False))
    with pytest.raises(us.DataError, match=rf"targets: 1 (of the )?strata .* row {frame.height}: "):
        us.targets.read_targets(table, split, liked=4)
