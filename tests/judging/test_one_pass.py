"""One pass for several designs: the plain orders of each, and every user scored once."""

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest

import unskew as us
from unskew import DataError, SettingError
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.engine.rng import draw, generator
from unskew.engine.threads import exactly
from unskew.judging import rank as rank_module
from unskew.judging.rank import rank_designs
from unskew.judging.rank_tiles import RankJob
from unskew.targets import lists as lists_module
from unskew.ties import own_number

LIKED = 4
DESIGNS = (
    us.targets.AllItems(),
    us.targets.TestItems(),
    us.targets.OneRelevant(6, shortage="shorten"),
    us.targets.Percentiles(3, strata=3),
    us.targets.TestTargets("fill"),
    us.targets.AllItems(shortfall="fill"),
    us.targets.AllItems(strata=2),
    us.targets.AllItems(others=20),
)


@cache
def some_split(judged=None):
    """Return ratings of a popularity that differs, with users who have no test ratings."""
    rng = np.random.default_rng(4)
    user, item = np.nonzero(rng.random((40, 90)) < np.linspace(0.4, 0.02, 90))
    keep = user != 7
    data = {"user": user[keep], "item": item[keep], "rating": rng.integers(1, 6, keep.sum())}
    split = us.splits.Random().split(us.read_ratings(data), seed=2)[0]
    if judged is not None:
        mask = np.zeros(len(split.train.users), np.bool_)
        mask[list(judged)] = True
        split = replace(split, judged=mask)
    return split


@cache
def all_lists(judged=None):
    """Return lists of every design, and of interventions that have the candidates of all items."""
    split = some_split(judged)
    changes = us.splits.Skew(), us.splits.WtdH()
    samples = [one.sample(split.test, split.train, seed=3).ratings for one in changes]
    changed = [replace(split, test=sample) for sample in samples]
    return [
        *(design.lists(split, liked=LIKED, seed=5) for design in DESIGNS),
        *(us.targets.AllItems().lists(one, liked=LIKED, seed=5) for one in changed),
    ]


def tables(kind):
    """Return scores of all users and items."""
    users, items = len(some_split().train.users), len(some_split().train.items)
    rng = generator(1, kind)
    table = rng.normal(size=(users, items))
    if kind == "ties":
        table = rng.integers(0, 4, (users, items)).astype(np.float64)
    if kind == "gaps":
        table[rng.random(table.shape) < 0.3] = np.nan
        table[rng.random(table.shape) < 0.1] = -np.inf
    if kind == "single":
        table = table.astype(np.float32)
    if kind == "alike":
        table = np.tile(np.where(rng.random(items) < 0.2, np.nan, table[0].round(1)), (users, 1))
    return table


KINDS = ("normal", "ties", "gaps", "single", "alike")


def plain(table, lists, ties, seed):
    """Return each list's targets in order, by sorting them; what is filled up comes last."""
    users, items = own_number(lists.tests.users), own_number(lists.tests.items)
    start, target = lists.block(0, len(lists))
    for r, u in enumerate(lists.user):
        mine = target[start[r] : start[r + 1]]
        score, missing = np.float64(table[u][mine]), np.isnan(table[u][mine])
        if lists.shortfall != "fill":
            mine, score, missing = mine[~missing], score[~missing], missing[~missing]
        chance = (draw(lists.seed, "fill", u, mine) >> np.uint64(11)).astype(np.float64)
        later = np.where(missing, chance, -np.where(missing, 0, score))
        tie = mine if ties == "id" else draw(seed, "ties", users[u], items[mine])
        yield mine[np.lexsort((tie, later, missing))]


def check(ranking, orders):
    """Compare what one design gave with the plain orders."""
    job, lists, judged = ranking.job, ranking.job.lists, ranking.job.lists.judgments
    ranks, run = ranking.ranks, ranking.run
    for r, order in enumerate(orders):
        if job.depth:
            assert run.item[run.start[r] : run.start[r + 1]].tolist() == order[: job.depth].tolist()
        if job.judged:
            mine = judged.item[judged.start[r] : judged.start[r + 1]]
            wanted = np.flatnonzero(np.isin(order, mine))
            wanted = wanted[wanted < job.deepest]
            got = slice(ranks.start[r], ranks.start[r + 1])
            assert ranks.rank[got].tolist() == (wanted + 1).tolist()
            assert judged.item[ranks.judgment[got]].tolist() == order[wanted].tolist()
            assert ranks.scored[r] == order.size
            assert ranks.unscored[r] == lists.size[r] - order.size


def bits_of(ranking):
    """Return all that a design gave as bytes."""
    parts = [*ranking.run.__dict__.values(), *ranking.ranks.__dict__.values()]
    return [part.tobytes() for part in parts if isinstance(part, np.ndarray)]


@pytest.mark.parametrize("ties", ["id", "random"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("judged", [None, (1, 5, 30, 31, 38), tuple(range(30))])
def test_every_design_has_the_orders_that_sorting_gives(kind, ties, judged, monkeypatch):
    table = tables(kind)
    model = table[0] if kind == "alike" else table
    wanted = [(0, None), (7, 4), (3, None), (0, 9), (200, 0)]
    jobs = [
        RankJob(lists, depth, limit=limit)
        for number, lists in enumerate(all_lists(judged))
        for depth, limit in (wanted[number % 5], wanted[(number + 1) % 5])
    ]
    jobs.append(RankJob(all_lists(judged)[0], 30, judged=False))
    seen = []
    for tile, threads in ((256, 1), (8, 1), (8, 3)):
        monkeypatch.setattr(rank_module, "TILE", tile)
        with exactly(threads):
            rankings = rank_designs(model, jobs, ties=ties, seed=6)
        seen.append([bits_of(one) for one in rankings])
    assert seen[0] == seen[1] == seen[2]
    orders = {id(lists): list(plain(table, lists, ties, 6)) for lists in all_lists(judged)}
    for ranking in rankings:
        check(ranking, orders[id(ranking.job.lists)])


def test_one_design_gives_what_it_gives_among_others():
    table = tables("gaps")
    for lists in all_lists():
        alone = us.judging.ranks_of(table, lists)
        among = rank_designs(table, [RankJob(one) for one in (*all_lists(), lists)])[-1].ranks
        for name in alone.__dict__:
            np.testing.assert_array_equal(getattr(alone, name), getattr(among, name))


@dataclass(frozen=True, eq=False)
class Counted:
    """A model that keeps whom it scored."""

    table: np.ndarray
    scored: list = field(default_factory=list)

    def score(self, users):
        self.scored.extend(users.tolist())
        return self.table[users]


def test_each_user_is_scored_once_for_all_designs():
    model = Counted(tables("normal"))
    rank_designs(model, [RankJob(lists, 5) for lists in all_lists()])
    assert sorted(model.scored) == list(range(len(some_split().train.users)))


def test_a_sample_of_users_costs_its_own_scores_only():
    model, sample = Counted(tables("normal")), (1, 5, 30, 31, 38)
    rank_designs(model, [RankJob(lists, 5) for lists in all_lists(sample)])
    assert sorted(model.scored) == list(sample)


def test_a_model_that_scores_alike_for_all_is_asked_for_one_user(monkeypatch):
    from unskew.recommend.model import SameForAll

    asked = []
    monkeypatch.setattr(
        SameForAll, "score", lambda self, users: asked.append(users.size) or self.item_score[None]
    )
    rank_designs(tables("alike")[0], [RankJob(lists, 5) for lists in all_lists()])
    assert asked == [1]


def test_metrics_with_a_cutoff_need_no_rank_below_it():
    table = tables("ties")
    for lists in all_lists():
        both = us.evaluate(lists, {"a": table}, ["P@2", "nDCG@3", "AP"])
        some = us.evaluate(lists, {"a": table}, ["P@2", "nDCG@3"])
        for label in ("P@2", "nDCG@3"):
            np.testing.assert_array_equal(both.values("a", label), some.values("a", label))


def test_more_can_be_asked_of_a_model_that_has_ranked():
    table = tables("normal")
    judged = us.judge(all_lists()[0], {"a": table})
    for metrics in (["P@2"], ["P@9"], ["Gini@5", "AP"], ["P@3"]):
        anew = us.evaluate(us.judge(all_lists()[0], {"a": table}), metrics)
        assert us.evaluate(judged, metrics).means() == anew.means()


def test_drawn_targets_are_the_same_whether_they_are_kept_or_not(monkeypatch):
    for design in DESIGNS:
        lists = design.lists(some_split(), liked=LIKED, seed=5)
        before = [part.tolist() for part in lists.block(3, len(lists) - 2)]
        kept = lists.kept
        assert (kept is None) == lists.whole
        assert [part.tolist() for part in lists.block(3, len(lists) - 2)] == before
        monkeypatch.setattr(lists_module, "KEPT_ITEMS", 1)
        many = design.lists(some_split(), liked=LIKED, seed=5)
        assert many.kept is None
        assert many.judgments.item.tolist() == lists.judgments.item.tolist()
        monkeypatch.undo()


def test_items_are_spread_nearly_in_order_and_none_is_lost():
    from unskew.targets import kernels

    rng = np.random.default_rng(0)
    for items in (1, 5, 127, 128, 129, 5000):
        item = rng.permutation(items).astype(np.int32)[: max(1, items // 2)]
        wanted, space = np.sort(item), np.empty(items, np.int32)
        kernels.spread(item, 0, item.size, items, space, np.zeros(kernels.HEADS + 1, np.int64))
        heads = item // max(1, 1 << max(0, (items - 1).bit_length() - 7))
        assert (np.diff(heads) >= 0).all()
        assert np.sort(item).tolist() == wanted.tolist()
        assert kernels.ascend(wanted, 0, wanted.size)
        assert kernels.ascend(item, 0, item.size) == (item.tolist() == wanted.tolist())


def test_what_one_pass_cannot_do():
    other = us.read_ratings({"user": [1, 2], "item": [1, 2], "rating": [5, 4]})
    split = us.splits.Given(test=other, overlap="keep").split(other)[0]
    jobs = [RankJob(all_lists()[0]), RankJob(us.targets.AllItems().lists(split, liked=LIKED))]
    with pytest.raises(DataError, match="same users and items"):
        rank_designs(tables("normal"), jobs)
    with pytest.raises(SettingError, match="depth"):
        RankJob(all_lists()[0], -1)
    with pytest.raises(SettingError, match="ties"):
        rank_designs(tables("normal"), jobs[:1], ties="trec")
    assert rank_designs(tables("normal"), []) == []


# In plans and audits


SCORED: list[int] = []


@dataclass(frozen=True)
class Counting(us.recommend.Algorithm):
    """Scores by the number of the item, and counts the users it scores."""

    def learn(self, train, rng):
        def score(users):
            SCORED.extend(users.tolist())
            return np.tile(np.arange(len(train.items), dtype=np.float64), (users.size, 1))

        return score


def test_an_audit_scores_each_user_once_in_each_split():
    shop = us.world("shop", users=80, items=60, seed=3)
    level = LEVELS["quick"]
    plan = plan_of_level(level, us.Relevance(liked=4), {"c": Counting()})
    SCORED.clear()
    designs = [one for one in designs_of_level(level) if one.name not in ("temporal", "u1r")]
    core = run_core(shop.ratings, plan, designs, metric="P@10")
    assert len(designs) == 7
    assert len(core.lists) == 3
    assert len(SCORED) == 3 * len(shop.ratings.users)


def test_a_plan_scores_each_user_once_in_each_split():
    plan = us.Plan(
        split=us.splits.Random(folds=2),
        targets=[us.targets.AllItems(), us.targets.OneRelevant(4), us.targets.TestItems()],
        algorithms=[Counting()],
        interventions=[us.splits.Full(), us.splits.Skew()],
        metrics=["P@5", "AP"],
        seed=9,
    )
    shop = us.world("shop", users=80, items=60, seed=3)
    SCORED.clear()
    us.run_plan(shop.ratings, plan)
    assert len(SCORED) == 2 * len(shop.ratings.users)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("items", [37, 1001, 3706])
def test_scores_of_factors_do_not_depend_on_who_is_scored_beside(items, kind):
    from unskew.recommend.matrices.sparse import Factors

    rng = np.random.default_rng(items)
    P, Q = rng.normal(size=(600, 50)).astype(kind), rng.normal(size=(items, 50)).astype(kind)
    model = Factors(P, Q, np.zeros(600, kind), np.zeros(items, kind))
    whole = model.score(np.arange(600, dtype=np.int32))
    np.testing.assert_allclose(whole, P @ Q.T, rtol=1e-3, atol=1e-4)
    for few in (3, 90, 300):
        some = np.sort(rng.choice(600, few, replace=False)).astype(np.int32)
        np.testing.assert_array_equal(model.score(some), whole[some], strict=True)
