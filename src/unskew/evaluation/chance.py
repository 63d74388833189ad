"""What chance is expected to score, and what a fixed ranking is: exact where theory allows.

`chance_scores` gives the expectation of every metric when the targets of each list are put in
random order. Most metrics are sums over places or homogeneous in the number of hits, so their own
formula, fed with expected counts, gives their exact expectation; the rest is simulated and says
so. `expected_precision` is exact for a fixed order of items under a random split, `fairness` is
the chance of a relevant target to be judged, and `one_relevant_bounds` is the lemma that ties
one-relevant precision to precision with all relevant items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, I32, I64, U8, frozen
from unskew.checks import as_count, as_numbers, as_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import by_popularity, item_counts
from unskew.engine.rng import key_of
from unskew.errors import DataError, SettingError
from unskew.evaluation.one_relevant import random_values
from unskew.evaluation.scores import System
from unskew.evaluation.scoring import Measures, prepare, score
from unskew.judging.judged import Judged
from unskew.judging.rank import Ranks, tile_users
from unskew.judging.ranked import Ranked
from unskew.judging.shape import Basis, Hits, Scratch
from unskew.metrics.block import Block
from unskew.metrics.chance import DRAWS, ChanceBlock
from unskew.metrics.definition import OWN_FORMULA
from unskew.metrics.listwise import check_finite, is_ours
from unskew.metrics.names import Metric
from unskew.recommend.simple import Random
from unskew.splits.split import Split
from unskew.targets.designs import relevance_of
from unskew.targets.lists import TargetLists

WHOLE_DRAWS = 2
"""The same as `DRAWS` for metrics of items and of a whole run: all users enter each."""


def chance_scores(
    judged: Judged,
    metrics: Mapping[str, Metric],
    *,
    depth: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[System, dict[str, int]]:
    """Return what a random order of each list's targets is expected to score, list by list.

    Parameters
    ----------
    judged
        The target lists, with or without systems.
    metrics
        Metrics by label.
    depth
        Lists are cut here.
    draws
        How many random orders to average for metrics without a closed form.
    seed
        Of these.
    threads
        How many threads to use; never changes a result.

    Returns
    -------
    tuple
        The values, and for each simulated metric the number of random orders.
    """
    lists, measures = judged.targets, Measures.of(metrics)
    assert lists is not None
    rows = measures.rows
    if depth is not None and depth >= int(lists.size.max(initial=0)):
        depth = None  # it cuts nothing
    judged = judged.with_models({}, depth=depth)
    basis = prepare(judged, measures).basis
    if lists.exact:
        return System(random_values(lists, metrics), {}, lists.size, {}), {}
    basis = replace(basis, longest=int(lists.size.max(initial=0)) + 1 + basis.longest)
    reachable = _reachable(lists)
    block = _block(lists, basis, reachable, depth)
    values = np.full((len(rows), len(lists)), np.nan)
    den: dict[int, F64] = {}
    open_: dict[str, Metric] = {}
    for row, label in enumerate(rows):
        metric = metrics[label]
        if metric.definition.chance is None or (metric.condensed and depth is not None):
            open_[label] = metric
            continue
        values[row], bottom = _closed(block.derive(metric.anti, metric.condensed), metric)
        if bottom is not None:
            den[row] = bottom
    of_lists = {label: open_.pop(label) for label in list(open_) if label in measures.of_items}
    of_runs = Measures(measures.of_runs | of_lists)
    simulated, bottoms, aggregates = _simulate(
        judged,
        basis,
        reachable,
        metrics=Measures(open_),
        of_runs=of_runs,
        draws=as_count("draws", draws),
        seed=seed,
        threads=threads,
    )
    for label, value in simulated.items():
        values[rows.index(label)] = value
    for label, bottom in bottoms.items():
        den[rows.index(label)] = bottom
    depths = lists.size if depth is None else np.minimum(lists.size, depth)
    counts = {**dict.fromkeys(open_, draws), **dict.fromkeys(of_runs, min(draws, WHOLE_DRAWS))}
    return System(values, den, depths, aggregates), counts


def _block(lists: TargetLists, judged: Basis, reachable: U8, depth: int | None) -> ChanceBlock:
    size = lists.size if depth is None else np.minimum(lists.size, depth)
    nothing: I32 = frozen(np.zeros(0, np.int32))
    start = np.zeros(len(lists) + 1, np.int64)
    hits = Hits(frozen(start), nothing, nothing, size)
    ranks = _full_ranks(lists, start, nothing, nothing)
    return ChanceBlock(
        judged=judged,
        matched=Ranked.over(ranks, None, judged.lists, lists.ids, lists.tests.items, depth),
        hits=hits,
        lo=0,
        hi=len(lists),
        view=judged.view,
        liked=judged.liked,
        disliked=judged.disliked,
        targets=lists.size,
        scratch=Scratch(),
        lists=lists,
        reachable=reachable.astype(np.float64),
        size=lists.size.astype(np.float64),
    )


def _full_ranks(lists: TargetLists, start: I64, rank: I32, judgment: I32) -> Ranks:
    """Make ranks of an order that scores every target."""
    none = frozen(np.zeros(len(lists), np.int64))
    return Ranks(frozen(start), frozen(rank), frozen(judgment), lists.size, none)


def _closed(block: Block, metric: Metric) -> tuple[F64, F64 | None]:
    """Return the expected value in closed form, and what divides it in a ratio of sums."""
    cutoffs = frozen(np.array([metric.whole_cutoff], np.int64))
    definition = metric.definition
    formula = definition.compute if definition.chance == OWN_FORMULA else definition.chance
    assert callable(formula)
    params = metric.params
    apart = params.get("mean") == "ratio"
    result = formula(block, params, cutoffs)
    if not is_ours(formula):
        check_finite(f"{metric} of a random order", block, result, apart=apart)
    if not isinstance(result, tuple):
        return np.array(result[0]), None
    top, bottom = (np.broadcast_to(part, (1, len(block.judged.lists)))[0] for part in result)
    if apart:
        return np.array(top), np.array(bottom)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(bottom == 0, np.nan, top / bottom), None


def _reachable(lists: TargetLists) -> U8:
    """Mark the judgments of the lists that are targets."""
    from unskew.evaluation import kernels

    judged = lists.judgments
    if lists.given:
        return np.ones(len(judged), np.uint8)
    return kernels.reach(
        judged.start,
        judged.item,
        lists.user,
        lists.stratum,
        lists.pool.stratum,
        lists.barred.start,
        lists.barred.item,
    )


def random_ranks(lists: TargetLists, seed: int = 0) -> Ranks:
    """Draw the ranks of the judged items in one random order of each list's targets.

    Only their places are drawn: what else is in the list does not matter to metrics of judged
    items.
    """
    return _draw(lists, _reachable(lists), key_of(seed, "chance"))


def _draw(lists: TargetLists, reachable: U8, key: int) -> Ranks:
    from unskew.evaluation import kernels

    judged = lists.judgments
    start = np.zeros(len(lists) + 1, np.int64)
    rank, judgment = np.empty(len(judged), np.int32), np.empty(len(judged), np.int32)
    number = kernels.random_ranks(
        judged.start, frozen(reachable), lists.size, np.uint64(key), start, rank, judgment
    )
    return _full_ranks(lists, start, rank[:number], judgment[:number])


def _simulate(
    judged: Judged,
    basis: Basis,
    reachable: U8,
    metrics: Measures,
    of_runs: Measures,
    draws: int,
    seed: int,
    threads: int | None,
) -> tuple[dict[str, F64], dict[str, F64], dict[str, float]]:
    """Average the metrics without a closed form over random orders; give their denominators.

    Metrics of all items need whole lists: these are `of_runs` too.
    """
    lists, depth, items = judged.targets, judged.depth, of_runs.rows
    assert lists is not None
    total = {label: np.zeros(len(lists)) for label in (*metrics, *items)}
    bottom: dict[str, F64] = {}
    aggregate = {label: 0.0 for label in of_runs if label not in items}
    for number in range(draws if metrics or of_runs else 0):
        if metrics:
            ranks = _draw(lists, reachable, key_of(seed, "chance", number))
            over = Ranked.over(ranks, None, basis.lists, lists.ids, lists.tests.items, depth)
            scored = score(basis, {"": over}, metrics, threads=1, budget=1 << 28)[""]
            for row, label in enumerate(metrics):
                total[label] += scored.values[row]
                if row in scored.den:  # all judgments of a list, in whatever order
                    bottom[label] = scored.den[row]
        if of_runs and number < WHOLE_DRAWS:
            model = Random().fit(lists.train, seed + number)
            ranked = prepare(judged.with_models({"": model}, depth=depth), of_runs, threads)
            scored = score(ranked.basis, ranked.matched, of_runs, threads=1, budget=1 << 28)[""]
            for row, label in enumerate(items):
                total[label] += scored.values[row]
            for label, value in scored.aggregates.items():
                aggregate[label] += value
    sampled = min(draws, WHOLE_DRAWS)
    return (
        {label: value / (sampled if label in items else draws) for label, value in total.items()},
        bottom,
        {label: value / sampled for label, value in aggregate.items()},
    )


@dataclass(frozen=True)
class Sparsity:
    """How much of the targets is relevant: what a random order scores (bellogin2017 section 4)."""

    rho: float
    """ρ, the mean over users of liked test items / targets: random precision, exactly."""
    sigma: float
    """σ, the share of ratings in the test part."""
    delta: float
    """δ = |PR| / (t |U|), the density of liked ratings."""
    inverse_t: float
    """1/t, the mean over lists of 1 / targets: random 1R precision at any cutoff, exactly."""

    @property
    def sigma_delta(self) -> float:
        """σδ, the paper's approximation of ρ: right where all users have equally many targets."""
        return self.sigma * self.delta


@checked
def sparsity(lists: TargetLists) -> Sparsity:
    """Measure ρ, σ, δ and 1/t of target lists.

    Parameters
    ----------
    lists
        What `Targets.lists` gave.

    Returns
    -------
    Sparsity
        ρ, σ, δ and 1/t as `rho`, `sigma`, `delta` and `inverse_t`.

    References
    ----------
    bellogin2017 section 4.

    Examples
    --------
    ρ is what a random order is expected to score by precision, over all users.

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Random(test=0.2).split(shop, seed=1)
    >>> lists = us.targets.AllItems().lists(split, liked=4)
    >>> model = us.recommend.Random().fit(split.train)
    >>> random = us.evaluate(lists, {"random": model}, "P@5").random(users="all")
    >>> round(us.evaluation.sparsity(lists).rho, 3), round(random["P@5"], 3)
    (0.062, 0.062)
    """
    liked = lists.relevance.is_liked(lists.judgments.value) & (_reachable(lists) > 0)
    owner = lists.judgments.user[liked]
    relevant = np.bincount(owner, minlength=len(lists))
    filled = lists.size > 0
    shares = relevant[filled] / lists.size[filled]
    inverse = float(np.mean(1.0 / lists.size[filled]))
    ratings = len(lists.train) + len(lists.tests)
    positives = sum(
        int(np.count_nonzero(lists.relevance.is_liked(part.value)))
        for part in (lists.train, lists.tests)
    )
    users = len(lists.tests.users)
    rho = float(shares.sum()) / len(lists)
    return Sparsity(rho, len(lists.tests) / ratings, positives * inverse / users, inverse)


@checked
def expected_precision(
    ratings: Ratings,
    score: ArrayLike | None = None,
    n: int = 10,
    *,
    liked: float | None = None,
    relevance: Relevance | str | None = None,
    test: float = 0.2,
    candidates: str = "test",
    paper: bool = False,
) -> float:
    """Return the expected P@n of one fixed ranking of items under a random split, over all users.

    Exact: a user's list is a walk down the ranking in which an item that the user did not rate
    takes a place if it is a candidate, and a rated one if it falls into the test part.

    Parameters
    ----------
    ratings
        All ratings, before the split.
    score
        A score per item, highest first, ties by id; the number of ratings (popularity) unless
        given.
    n
        The cutoff.
    liked, relevance
        Which ratings are liked.
    test
        σ, the probability of the test part.
    candidates
        `test` items (TI; an item without test ratings is no candidate) or `all` items (AI).
    paper
        bellogin2017 Eq. 3 instead, which takes every item to be a target with equal probability,
        although the popular ones are those already in training: about half of the true value.

    Returns
    -------
    float
        From 0 to 1, of all users: those without test ratings count 0.

    Examples
    --------
    In this simulation, the ranking by popularity is expected to score twice what one by id scores.

    >>> import numpy as np
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> popular = us.evaluation.expected_precision(shop, n=5, liked=4)
    >>> by_id = us.evaluation.expected_precision(shop, np.arange(20)[::-1], n=5, liked=4)
    >>> round(popular, 3), round(by_id, 3)
    (0.127, 0.063)
    """
    rule = relevance_of(relevance, liked)
    sigma = float(as_share("test", test))
    as_count("n", n)
    choose("candidates", candidates, ("test", "all"))
    counts = item_counts(ratings)
    order = by_popularity(counts) if score is None else _order(score, counts.size)
    presence = np.ones(counts.size) if candidates == "all" else 1.0 - (1.0 - sigma) ** counts
    is_liked = rule.is_liked(ratings.value)
    if paper:
        size = presence.sum() - (1.0 - sigma) * np.diff(ratings.start)
        positives = np.bincount(ratings.item[is_liked], minlength=counts.size)
        inverse = float(np.mean(1.0 / np.maximum(size, 1)))
        top = float(positives[order[:n]].sum())
        return sigma * float(presence.sum()) * inverse / (n * len(ratings.users)) * top
    rank = np.empty(counts.size, np.int64)
    rank[order] = np.arange(counts.size)
    ranks = rank[ratings.item]
    by_place = np.lexsort((ranks, ratings.user))
    from unskew.evaluation import kernels

    hits = kernels.fixed_order_hits(
        frozen(order.astype(np.int32)),
        frozen(presence[order]),
        ratings.start,
        frozen(ranks[by_place].astype(np.int32)),
        frozen(is_liked[by_place].astype(np.uint8)),
        sigma,
        n,
    )
    return float(hits.sum()) / (n * len(ratings.users))


def _order(score: ArrayLike, items: int) -> I64:
    values = as_numbers("score", score)
    if values.shape != (items,):
        raise DataError(f"score must have an entry per item ({items}), got shape {values.shape}")
    return np.argsort(-values, kind="stable")


@checked
def one_relevant_bounds(lists: TargetLists, ranks: Ranks, n: int = 10) -> tuple[float, float]:
    """Bound one-relevant precision by the ranks of an all-relevant design (bellogin2017 Eq. 2).

    With the same others for every list of a user (`fresh=False`), 1RP@n of the same ranking lies
    between |U| P@n / |PR| and the sum over users of m P@m / (n |PR|), m = n + |PR(u)| - 1.

    Parameters
    ----------
    lists
        One list per user with all relevant items.
    ranks
        Of the system, on these lists.
    n
        The cutoff.

    Returns
    -------
    tuple
        The lower and the upper bound of 1RP@n, a mean over lists.

    Examples
    --------
    Precision by lists of one relevant item each, between the bounds:

    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    >>> (split,) = us.splits.Random(test=0.2).split(shop, seed=1)
    >>> model = us.recommend.Popularity().fit(split.train)
    >>> lists = us.targets.TestItems().lists(split, liked=4)
    >>> ranks = us.judging.ranks_of(model, lists)
    >>> low, high = us.evaluation.one_relevant_bounds(lists, ranks, n=5)
    >>> one = us.targets.OneRelevant("all", fresh=False).lists(split, liked=4)
    >>> value = us.evaluate(one, {"popular": model}, "P@5").mean("P@5", over="lists")["popular"]
    >>> [round(float(number), 3) for number in (low, value, high)]
    [0.132, 0.152, 0.156]
    """
    if lists.one_relevant or lists.strata:
        raise SettingError("the bounds come from lists with all relevant items, without strata")
    judged = lists.judgments
    liked = lists.relevance.is_liked(judged.value) & (_reachable(lists) > 0)
    relevant = np.bincount(judged.user[liked], minlength=len(lists))
    hit = liked[ranks.judgment]
    owner = np.repeat(np.arange(len(lists)), np.diff(ranks.start))[hit]
    rank = ranks.rank[hit]
    low = np.count_nonzero(rank <= n)
    high = np.count_nonzero(rank <= n + relevant[owner] - 1)
    total = n * max(int(relevant.sum()), 1)
    return low / total, high / total


@dataclass(frozen=True, eq=False)
class Fairness:
    """How likely a relevant target is to be judged, item by item (castells2018 Eq. 1).

    An experiment ranks non-personalised systems fairly if this is the same for every item, and
    personalised ones only if it is the same for every user and item.
    """

    factor: F64
    """Of each item; NaN where no user could be recommended it."""
    expected: F64 | None
    """The same from the design of the split alone, where theory gives it."""
    popularity: I64
    """Training ratings of each item."""
    pair_spread: float | None = None
    """Coefficient of variation over user-item pairs, where judgment probabilities are known."""

    @property
    def spread(self) -> float:
        """Coefficient of variation over items: 0 is fair."""
        finite = self.factor[~np.isnan(self.factor)]
        return float(finite.std() / finite.mean()) if finite.size and finite.mean() > 0 else np.nan

    @property
    def towards_popular(self) -> float:
        """Mean factor of the most popular tenth of the items over the mean of all: 1 is fair."""
        finite = np.flatnonzero(~np.isnan(self.factor))
        if not finite.size:
            return np.nan
        top = finite[by_popularity(self.popularity[finite])[: max(finite.size // 10, 1)]]
        mean = float(self.factor[finite].mean())
        return float(self.factor[top].mean()) / mean if mean else np.nan

    def __str__(self) -> str:
        text = (
            f"fairness factor: spread {self.spread:.3f} over items, the most popular tenth of "
            f"the items is {self.towards_popular:.2f} times as likely to be judged as the "
            "average item"
        )
        return (
            text
            if self.pair_spread is None
            else f"{text}; spread {self.pair_spread:.3f} over pairs"
        )


@checked
def fairness(
    split: Split,
    *,
    truth: Ratings | None = None,
    relevance: Relevance | str | None = None,
    propensity: Callable[[I32], F64] | None = None,
) -> Fairness:
    """Measure how evenly a split judges relevant targets: p(test | relevant, not in training, i).

    Parameters
    ----------
    split
        Any split.
    truth
        What users really like, with `relevance`: all their ratings in a world whose truth is
        known, under the split's ids. Without it, being judged is taken not to depend on relevance
        for a given item.
    relevance
        Which ratings of `truth` are liked.
    propensity
        A function of user numbers that returns the probability of each user-item pair to be
        judged at all; gives the spread over pairs.

    Returns
    -------
    Fairness
        `factor` is that probability by item, `spread` its coefficient of variation over items (0 is
        fair), `towards_popular` its mean over the most popular tenth over that of all (1 is fair).

    Examples
    --------
    How many times as likely as the average item is a popular one to be rated in the test set? Less
    so where every item has equally many test ratings.

    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=40, density=0.3, seed=3).ratings
    >>> for splitter in (us.splits.Random(test=0.2), us.splits.Flat(t=10)):
    ...     (split,) = splitter.split(shop, seed=1)
    ...     print(splitter.name, round(us.evaluation.fairness(split).towards_popular, 1))
    random 3.1
    flat 2.0
    """
    users = len(split.train.users)
    trained, tested = item_counts(split.train), item_counts(split.test)
    if truth is None:
        top, bottom = tested.astype(np.float64), (users - trained).astype(np.float64)
    else:
        rule = relevance_of(relevance, None)
        liked = truth.take(rule.is_liked(truth.value))
        from unskew.splits.split import shared_rows

        in_test, in_train = shared_rows(liked, split.test), shared_rows(liked, split.train)
        items = trained.size
        top = np.bincount(liked.item[in_test & ~in_train], minlength=items).astype(np.float64)
        bottom = np.bincount(liked.item[~in_train], minlength=items).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.where(bottom > 0, top / bottom, np.nan)
    spread = None if propensity is None else _pair_spread(split, propensity)
    return Fairness(frozen(factor), _expected_factor(split), frozen(trained), spread)


def _expected_factor(split: Split) -> F64 | None:
    """Return castells2018's factor of the split's own design, from item counts alone."""
    users = len(split.train.users)
    counts = (item_counts(split.train) + item_counts(split.test)).astype(np.float64)
    protocol = split.design.get("protocol")
    if protocol == "random":
        sigma = float(split.design.get("test") or 1 / (split.design.get("folds") or 5))
        return frozen(sigma * counts / np.maximum(users - (1 - sigma) * counts, 1))
    if protocol in ("flat", "uniform"):
        tested = item_counts(split.test)
        return frozen(tested / np.maximum(users - counts + tested, 1))
    return None


def _pair_spread(split: Split, propensity: Callable[[I32], F64]) -> float:
    """Return the spread of σp / (1 - (1 - σ) p) over all pairs, tile by tile."""
    sigma = len(split.test) / (len(split.train) + len(split.test))
    users, items = len(split.train.users), len(split.train.items)
    count, total, squares = 0, 0.0, 0.0
    step = tile_users(items)
    for low in range(0, users, step):
        p = np.asarray(propensity(np.arange(low, min(low + step, users), dtype=np.int32)))
        factor = sigma * p / (1.0 - (1.0 - sigma) * p)
        count += factor.size
        total += float(factor.sum())
        squares += float((factor**2).sum())
    mean = total / count
    return float(np.sqrt(max(squares / count - mean**2, 0.0)) / mean) if mean > 0 else np.nan
