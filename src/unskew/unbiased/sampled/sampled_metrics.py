"""`sampled_metrics`: metrics among all items, estimated from ranks among sampled items.

What the sampled rank is, and what to count for it instead of the metric, is in `expected_metrics`;
`rank_shares` learns the distribution of true ranks; `sampled_means` chooses one of the two;
`target_sizes` looks at the number of targets as a trade-off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import as_count, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank
from unskew.judging.rank import ranks_of
from unskew.judging.ranked import anchor_ranks, full_ranks
from unskew.recommend.model import Model, as_model
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.targets.lists import DrawnTargets, TargetLists
from unskew.unbiased.sampled.expected_metrics import (
    GAMMA,
    METRICS,
    Metrics,
    check_ranks,
    ranks_by_system,
    whole_numbers,
)
from unskew.unbiased.sampled.sampled_means import (
    AUTO,
    BOOTSTRAP,
    ESTIMATORS,
    LEVEL,
    SampledRanks,
    SampledSettings,
    average_sampled,
)


class AdaptiveRanks(NamedTuple):
    """Where a model ranks the relevant items, and among how many others."""

    rank: F64
    """NaN where it could not be scored."""
    n: I64
    """How many others were drawn for each list in the end."""
    again: int
    """How many lists were drawn further."""


def check_most(limit: int, lists: TargetLists) -> None:
    """Refuse a limit that allows no more others than there are already."""
    as_count("adaptive", limit)
    assert isinstance(lists.source, DrawnTargets)
    if lists.source.n is not None and limit <= lists.source.n:
        raise SettingError(
            f"adaptive={limit}: lists start with {lists.source.n} others already; give the most "
            "others that a list may get, such as 32 times as many"
        )


def adaptive_ranks(
    lists: TargetLists, model: Model, limit: int, *, ties: str, seed: int, threads: int | None
) -> AdaptiveRanks:
    """Let a model rank lists, and draw more others where the relevant item stands first.

    Parameters
    ----------
    lists
        One relevant item each, n others drawn uniformly.
    model
        Scores the items.
    most
        No list gets more others than this.
    ties, seed, threads
        As in `rank`.
    """
    rank = anchor_ranks(lists, ranks_of(model, lists, ties=ties, seed=seed, threads=threads))
    n = lists.size - 1
    again: Mask = np.zeros(n.size, np.bool_)
    while True:
        sizes = np.where((rank == 1) & (n > 0), _next_sizes(lists, n, limit), n)
        rows = np.flatnonzero(sizes > n)
        if not rows.size:
            return AdaptiveRanks(rank, n, int(again.sum()))
        again[rows] = True
        for size in np.unique(sizes[rows]):
            grown = rows[sizes[rows] == size]
            larger = _with_others(lists, grown, int(size))
            ranking = ranks_of(model, larger, ties=ties, seed=seed, threads=threads)
            rank[grown] = anchor_ranks(larger, ranking)
        n = sizes


def _next_sizes(lists: TargetLists, n: I64, limit: int) -> I64:
    """Return how many others each list gets next: twice as many, or all; n where it has enough.

    Draws of few of many are a sequence of which more or less is taken; of a quarter and more they
    are not (`draw_others`), so there all others are taken, where the limit allows it.
    """
    assert isinstance(lists.source, DrawnTargets)
    pool = np.diff(lists.pool.cand_start)[np.maximum(lists.stratum, 0)]
    twice = np.minimum(2 * n, limit)
    in_sequence = (4 * twice <= lists.free) & (2 * lists.free >= pool)
    return np.where(in_sequence, twice, np.where(lists.free <= limit, lists.free, n))


def _with_others(lists: TargetLists, rows: I64, size: int) -> TargetLists:
    """Return some of the lists with so many others, of which the present ones are a part."""
    assert isinstance(lists.source, DrawnTargets)
    candidates = frozen(lists.free[rows])
    return replace(
        lists,
        user=frozen(lists.user[rows]),
        anchor=frozen(lists.anchor[rows]),
        stratum=frozen(lists.stratum[rows]),
        size=frozen(np.minimum(candidates, size) + 1),
        source=replace(lists.source, n=size, available=candidates),
        design={**lists.design, "others": size},
    )


@checked
def sampled_metrics(
    ranks: Mapping[str, ArrayLike] | ArrayLike,
    metrics: Metrics = METRICS,
    *,
    items: ArrayLike,
    n: Mapping[str, ArrayLike] | ArrayLike,
    true_ranks: Mapping[str, ArrayLike] | ArrayLike | None = None,
    users: ArrayLike | None = None,
    estimator: str = AUTO,
    estimators: Sequence[str] | None = None,
    gamma: float = GAMMA,
    iterations: int | None = None,
    adaptive: bool = False,
    replacement: bool = False,
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
) -> Estimates:
    """Correct metrics of ranks among sampled items.

    Parameters
    ----------
    ranks
        The rank of each list's one relevant item among itself and the n drawn others, from 1 to
        n + 1; by system where there are several. NaN where a system could not rank it: such a list
        counts 0.
    metrics
        See `value_at`.
    items
        N, how many items there are for each list, the relevant one included; one number or one per
        list.
    n
        How many others were drawn; one number or one per list, or by system.
    true_ranks
        The ranks among all items, where known, in the same form: gives the full values.
    users
        The user of each list; each list has its own unless given. Users are what is drawn anew for
        the intervals.
    estimator
        Whose values are the estimate: `auto` chooses by the rule of docs/sampled.md and says why;
        else one of `estimators`.
    estimators
        Which to compute side by side: `plain` (the metric at the sampled rank), `trade-off`
        (Krichene & Rendle 2020, see `corrected_values`), `mle` (Jin et al. 2021: the most likely
        distribution of the true ranks of a system, given all its lists). None: all three.
    gamma
        See `corrected_values`.
    iterations
        Steps of expectation maximisation of `mle`. None: the square root of the number of lists.
    adaptive
        Whether n depends on what was seen, as more others were drawn where the relevant item stood
        first. Then `mle` alone holds.
    replacement
        See `corrected_values`.
    resamples, level, seed
        Draws of users for the intervals (percentiles); 0 for none. Intervals hold the error of the
        sample, not the bias of an estimator.
    threads
        Never changes a result.

    Returns
    -------
    Estimates
        A row per metric and system: the estimate, its interval (none where draws of users do not
        show the error) and, where true ranks are known, the value among all items as `full`. Parts:
        `estimators`, every estimator side by side; where true ranks are known `gaps`, each less the
        value among all items, and `agreement`, τ_b of the order of systems with that by full values
        (`tau`) and the mean of |gap| (`distance`). `card["estimator"]` names the one that is taken.

    Examples
    --------
    >>> from unskew.unbiased.sampled.sampled_metrics import sampled_metrics
    >>> result = sampled_metrics(
    ...     [1, 1, 2, 30], "Recall@10", items=1000, n=99, estimators=["plain"], resamples=0
    ... )
    >>> result.parts["estimators"].row(estimator="plain").value  # of the sample
    0.75
    >>> round(result.row().value, 2)  # among all items
    0.72
    """
    by_label = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    names, values = ranks_by_system("ranks", ranks)
    lists = values.shape[1]
    if not lists:
        raise DataError("ranks: there are no lists")
    size, sizes = whole_numbers("items", items, lists), _drawn_by_system(n, names, lists)
    for s in range(len(names)):
        check_ranks("ranks", values[s : s + 1], sizes[s] + 1)
    full = None
    if true_ranks is not None:
        others, full = ranks_by_system("true_ranks", true_ranks)
        if others != names or full.shape != values.shape:
            raise DataError("true_ranks must be of the same systems and lists as ranks")
        check_ranks("true_ranks", full, size)
    settings = SampledSettings(
        estimator=estimator,
        estimators=_shown(estimators, adaptive),
        gamma=gamma,
        iterations=iterations,
        adaptive=adaptive,
        replacement=replacement,
        resamples=resamples,
        level=level,
        seed=seed,
        threads=threads,
    )
    data = SampledRanks(names, values, full, size, sizes, _owners(users, lists))
    return average_sampled(by_label, data, settings, ())


def _drawn_by_system(
    n: Mapping[str, ArrayLike] | ArrayLike, names: tuple[str, ...], lists: int
) -> I64:
    """Return systems x lists: how many others were drawn."""
    if not isinstance(n, Mapping):
        return np.broadcast_to(whole_numbers("n", n, lists), (len(names), lists))
    if tuple(str(key) for key in n) != names:
        raise DataError("n must be of the same systems as ranks, in the same order")
    return np.stack([whole_numbers("n", column, lists) for column in n.values()])


def _owners(users: ArrayLike | None, lists: int) -> I64:
    """Return the number of each list's user."""
    if users is None:
        return np.arange(lists)
    raw = np.asarray(users)
    if raw.shape != (lists,):
        raise DataError(
            f"users: {raw.size:,} given for {counted(lists, 'list')}: give one for each list"
        )
    return np.unique(raw, return_inverse=True)[1]


def _shown(estimators: Sequence[str] | None, adaptive: bool) -> tuple[str, ...]:
    """Return the estimators that are asked for."""
    if estimators is None:
        return ("mle",) if adaptive else ESTIMATORS
    return tuple(estimators)


@notebook_progress("sampled metrics")
@checked
def correct_sampled(
    lists: TargetLists,
    models: Mapping[str, object],
    metrics: Metrics = METRICS,
    *,
    full: bool = True,
    estimator: str = AUTO,
    estimators: Sequence[str] | None = None,
    gamma: float = GAMMA,
    iterations: int | None = None,
    adaptive: int | None = None,
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Rank sampled lists, correct their metrics, and compare them with those over all items.

    Parameters
    ----------
    lists
        Lists with one relevant item and others drawn uniformly: `OneRelevant(others=n).lists(…)`.
        Of each list n is how many others it has, N - 1 how many it could have had.
    models
        Fitted models by name, and whatever `rank` takes.
    metrics
        See `value_at`. The relevant item has gain 1: in a list with one relevant item grades are
        lost, and others that were judged but not liked count nothing.
    full
        Whether to rank all items too, for the full values.
    estimator, estimators, gamma, iterations
        See `sampled_metrics`.
    adaptive
        Draw more others for a list as long as its relevant item stands first, twice as many each
        time, up to this many (Li et al. 2023). None: every list has its n. Only `mle` holds then.
    resamples, level, seed
        Draws of users for the intervals (percentiles); 0 for none. The seed also breaks random
        ties. Intervals hold the error of the sample, not the bias of an estimator.
    ties, threads
        As in `rank`.
    progress
        Called with (done, total) as models are ranked.

    Returns
    -------
    Estimates
        As in `sampled_metrics`.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.sampled.sampled_metrics import correct_sampled
    >>> pairs = [(u, i) for u in range(20) for i in range(50) if (u * 7 + i * 11) % 9 < 3]
    >>> user, item = zip(*pairs)
    >>> split = us.splits.Random(test=0.3).split(us.read_ratings({"user": user, "item": item}))[0]
    >>> lists = us.targets.OneRelevant(others=20, candidates="all").lists(split, liked=1)
    >>> systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    >>> models = {name: system.fit(split.train) for name, system in systems.items()}
    >>> result = correct_sampled(lists, models, ["Recall@5", "AP"], resamples=100)
    >>> result.card["estimator"]
    {'Recall@5': 'trade-off', 'AP': 'trade-off'}
    >>> [round(value, 2) for value in result["AP"].rows["value"]]
    [0.1, 0.07]
    """
    candidates = _free(lists)
    by_label = {label: of_rank(metric) for label, metric in labelled(metrics).items()}
    if not models:
        raise SettingError("no models are given")
    if adaptive is not None:
        check_most(adaptive, lists)
    settings = SampledSettings(
        estimator=estimator,
        estimators=_shown(estimators, adaptive is not None),
        gamma=gamma,
        iterations=iterations,
        adaptive=adaptive is not None,
        replacement=False,
        resamples=resamples,
        level=level,
        seed=seed,
        threads=threads,
    )
    keep = lists.size > 1
    notes = list(lists.notes)
    if not keep.all():
        notes.append(f"{counted(int((~keep).sum()), 'list')} without any other item left out")
    ranks, sizes, true = [], [], []
    for index, (name, model) in enumerate(models.items()):
        scorer = as_model(model, lists.train)
        if adaptive is None:
            ranking = ranks_of(scorer, lists, ties=ties, seed=seed, threads=threads)
            rank, n = anchor_ranks(lists, ranking), lists.size - 1
        else:
            more = adaptive_ranks(lists, scorer, adaptive, ties=ties, seed=seed, threads=threads)
            rank, n = more.rank, more.n
            notes.append(
                f"{name}: more others were drawn for {counted(more.again, 'list')} of {n.size:,}; "
                f"{n.mean():,.0f} per list in the mean, where all items would be "
                f"{candidates.mean():,.0f}"
            )
        ranks.append(rank[keep])
        sizes.append(n[keep])
        lost = int(np.isnan(ranks[-1]).sum())
        if lost:
            notes.append(
                f"{name}: {counted(lost, 'relevant item')} could not be scored, which counts as 0"
            )
        if full:
            true.append(full_ranks(lists, scorer, ties, seed, threads)[0][keep])
        if progress is not None:
            progress(index + 1, len(models))
    data = SampledRanks(
        systems=tuple(models),
        ranks=np.array(ranks),
        full=np.array(true) if full else None,
        items=candidates[keep] + 1,
        n=np.array(sizes),
        owner=np.unique(lists.user[keep], return_inverse=True)[1],
    )
    return average_sampled(by_label, data, settings, notes)


def _free(lists: TargetLists) -> I64:
    """Return how many others each list could have had, or refuse lists of another design."""
    if not isinstance(lists, TargetLists):
        raise SettingError(
            "give target lists: us.targets.OneRelevant(others=99).lists(split, liked=4)"
        )
    design = lists.design
    if lists.given or not lists.one_relevant or design.get("others") == "all":
        raise SettingError(
            "the correction is for lists with one relevant item and a number of others drawn: "
            "us.targets.OneRelevant(others=99).lists(split, …)"
        )
    if design.get("by") != "uniform":
        raise SettingError(
            f"others were drawn by {design['by']}; the correction is for uniform draws only"
        )
    return lists.free
