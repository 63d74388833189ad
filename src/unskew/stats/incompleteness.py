"""`robustness`: how the order of systems holds when less is known.

Ranked lists stay as they are: judged items are met once per system, and a smaller test set only
takes some of them as unjudged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

import numpy as np

from unskew.arrays import F64, frozen
from unskew.checks import as_count, as_share, checked, choose, portion
from unskew.data.papers import paper_notes
from unskew.engine.execute import executor
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.engine.rng import key_of
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY, check_averaging, labelled, memory_bytes, stated_paper
from unskew.evaluation.scores import TRAINED
from unskew.evaluation.scoring import prepare
from unskew.judging.arguments import as_judged, second_argument
from unskew.judging.reading import DataOptions
from unskew.metrics.names import Metric
from unskew.splits.subsample import PER
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Source, paired
from unskew.stats.robustness_result import Robustness
from unskew.stats.robustness_tasks import SmallerTests
from unskew.stats.smaller_tests import FullTest
from unskew.stats.sums_over_hits import Averaging, means_of_tests
from unskew.stats.user_draws import check_two_systems, chosen_metrics, reweighted

if TYPE_CHECKING:
    from distributed import Client

TO = ("sparsity", "popularity")
METRICS = ("P@10", "Recall@10", "AP@10", "nDCG@10", "RR@10", "bpref", "infAP(pool=all)")
"""What is looked at when no metrics are named: the seven of valcarce2018."""
SHARES = {
    "sparsity": tuple(round(0.05 * step, 2) for step in range(19, 0, -1)),
    "popularity": tuple(round(1 - 0.01 * step, 2) for step in range(1, 21)),
    "users": tuple(round(0.05 * step, 2) for step in range(19, 0, -1)),
}
"""The levels of valcarce2018 section 5."""
SAMPLES = 50


@notebook_progress("robustness")
@checked
def robustness(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    to: str = "sparsity",
    shares: Sequence[float] | None = None,
    samples: int = SAMPLES,
    per: str = "user",
    users: str | None = None,
    undefined: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
    **data: Unpack[DataOptions],
) -> Robustness:
    """Measure how the order of systems holds when the test set shrinks; nothing is ranked anew.

    For each share and sample: systems are ordered by their mean, and Kendall's τ_b with the order
    on the full test set is taken, metric by metric (valcarce2018 section 4). Means equal to 12
    digits are ties.

    Parameters
    ----------
    judgments, runs, metrics
        Judged data (`judge`) of at least two systems alone, with the metrics as the second
        argument; or raw data as `judge` takes them.
    to
        `sparsity`: random parts of the test set; sample n is
        ``sparsity_sample(judgments, share, seed + n, per=per)``, so that in each sample the
        smaller test sets are parts of the larger. `popularity`: without the items that have most
        training ratings, ``popularity_cut(train, judgments, share)``; one test set per share.
    shares
        What to keep: of the judgments, or of the items with training ratings. Default: 0.95, 0.90
        … 0.05, and for popularity 0.99 … 0.80, as the paper.
    samples
        Samples per share of a sparse test set; 50 in the paper.
    per
        `user` keeps the share of each user's judgments (half to even, valcarce2018), `all` of all
        judgments together (bellogin2017).
    users, undefined
        Which users are averaged, as in `evaluate`, looked up in each smaller test set: by default
        a user without judgments left drops out of the average, as in trec_eval; `table` counts
        who remains.
    seed
        Of the first sample.
    threads, memory
        Of each process; never change a result.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never change a result.
    progress
        Called with (done, total) as work goes on.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, items, ties, depth; and
        train, which `to="popularity"` needs.

    Returns
    -------
    Robustness

    Examples
    --------
    >>> from unskew.stats.incompleteness import robustness
    >>> test = {"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 2], "rating": [5, 2, 4, 4, 1]}
    >>> runs = {"a": {1: [1, 3], 2: [1]}, "b": {1: [2, 3], 2: [1]}}
    >>> result = robustness(test, runs, "P@2", shares=[0.5], samples=4, liked=4)
    >>> result.table().select("metric", "share", "judgments", "users").rows()
    [('P@2', 0.5, 3.0, 2.0)]
    """
    choose("to", to, TO)
    choose("per", per, PER)
    check_averaging(users, undefined)
    paper = stated_paper(judgments, data.get("relevance"))
    users, undefined = users or paper.users, undefined or paper.undefined
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    levels = _levels(SHARES[to] if shares is None else shares)
    wanted = labelled(metrics, paper)
    judged = as_judged(judgments, runs, seed=seed, **data)
    if judged.targets is not None:
        raise SettingError("give test ratings and runs with one list per user, not target lists")
    if to == "popularity" and judged.train is None:
        raise DataError("to='popularity' needs the training ratings: give train=…")
    if users in TRAINED and judged.train is None:
        raise SettingError(f"users={users!r} needs the training ratings: give train=…")
    check_two_systems(list(judged.systems))
    judged = prepare(judged, wanted)
    count = as_count("samples", samples) if to == "sparsity" else 1
    settings = Averaging(users, undefined, resolve(threads), memory_bytes(memory))
    full, everything = means_of_tests(judged, wanted, settings, [FullTest()], (1, 1))
    tests = SmallerTests(
        judged=judged,
        wanted=wanted,
        to=to,
        shares=tuple(levels),
        samples=count,
        seed=seed,
        per=per,
        users=users,
        undefined=undefined,
        threads=threads,
        memory=settings.budget,
    )
    with executor(workers, cluster) as one:
        result = tests.all_by(one, progress)
    return Robustness(
        to=to,
        systems=tuple(judged.systems),
        metrics=tuple(wanted),
        shares=tuple(float(part) for part in levels),
        tau=_taus(result.means, full[0, 0]),
        judgments=result.judgments,
        users=result.users,
        full={"judgments": len(judged.tests), "users": int(everything.users[0, 0])},
        means=_by_metric(result.means),
        full_means=full[0, 0],
        seed=seed,
        notes=tuple(
            dict.fromkeys([*judged.read.tests, *judged.read.relevance, *paper_notes(judged.paper)])
        ),
    )


def _levels(shares: Sequence[float]) -> list[Fraction]:
    levels = [as_share("shares", share, one=True) for share in shares]
    if not levels:
        raise SettingError("no shares are given")
    return levels


def _by_metric(means: F64) -> F64:
    return np.ascontiguousarray(np.moveaxis(means, 2, 0))


def _taus(means: F64, full: F64) -> F64:
    """Return τ_b of every sample's means with the full ones: metrics x shares x samples."""
    from unskew.stats import rank_kernels as kernels

    levels, samples, columns, systems = means.shape
    out = np.empty((columns, levels, samples))
    for column in range(columns):
        rows = rounded(means[:, :, column].reshape(-1, systems))
        reference = rounded(full[column])
        out[column] = kernels.taus(frozen(rows), frozen(reference)).reshape(levels, samples)
    return out


@notebook_progress("robustness")
@checked
def user_robustness(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    shares: Sequence[float] | None = None,
    samples: int = SAMPLES,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Robustness:
    """Measure how the order of systems holds with fewer users.

    This needs nothing but the values per user, so it also serves saved scores.

    Parameters
    ----------
    scores
        What `evaluate` gave, or a list of such for several folds; the user is the unit.
    metrics
        Labels of these scores; all that have a value per user unless named.
    shares
        Of the users to keep (half to even): 0.95, 0.90 … 0.05 unless given.
    samples
        Samples per share, drawn without replacement; in each sample the smaller sets of users are
        parts of the larger.
    seed, threads, progress
        As in `robustness`.
    """
    from unskew.stats import rank_kernels as kernels

    both = paired(scores)
    check_two_systems(both.systems)
    labels = chosen_metrics(both, metrics)
    levels = _levels(SHARES["users"] if shares is None else shares)
    count = as_count("samples", samples)
    people = len(both)
    sizes = np.array([int(portion(np.array([people]), part, "half-even")[0]) for part in levels])
    if sizes.min() < 1:
        raise SettingError(
            f"shares: {float(min(levels)):g} of {people:,} users is less than one user"
        )
    key = np.uint64(key_of(seed, "users"))

    def weigh(low: int, out: F64) -> None:
        number = low + np.arange(len(out))
        # A sample's number is its key, whatever the level: a smaller set is part of a larger.
        kernels.part(key, frozen(number // len(levels)), frozen(sizes[number % len(levels)]), out)

    draws = reweighted(both, labels, weigh, count * len(levels), threads, progress)
    everyone = reweighted(both, labels, lambda _, out: out.fill(1.0), 1, threads)[0]
    means = draws.reshape(count, len(levels), len(labels), -1).swapaxes(0, 1)
    users = np.repeat(sizes[:, None], count, axis=1)
    return Robustness(
        to="users",
        systems=both.systems,
        metrics=tuple(labels),
        shares=tuple(float(part) for part in levels),
        tau=_taus(means, everyone),
        judgments=np.zeros_like(users),
        users=users,
        full={"judgments": 0, "users": people},
        means=_by_metric(means),
        full_means=everyone,
        seed=seed,
        notes=both.notes,
    )
