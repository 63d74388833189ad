"""`robustness`: how the order of systems holds when less is known.

Ranked lists stay as they are: judged items are met once per system, and a smaller test set only
takes some of them as unjudged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, as_share, checked, choose, portion
from unskew.data.relevance import paper_notes
from unskew.engine.executor import Executor, executor
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.rng import key_of
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY, check_averaging, labelled, memory_bytes, stated_paper
from unskew.evaluation.scores import TRAINED
from unskew.evaluation.scoring import prepare
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.metrics.names import Metric
from unskew.report.columns import METRIC, SYSTEM, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.tables import WIDE
from unskew.report.text import counted
from unskew.splits.subsample import PER
from unskew.stats.agreement.smaller_tests import (
    Averaging,
    SmallerTest,
    SparseTest,
    TestMeans,
    full_test,
    means_of_tests,
    without_popular,
)
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Source, paired
from unskew.stats.resampling import check_two_systems, chosen_metrics, reweighted

if TYPE_CHECKING:
    from distributed import Client


SHARES_OF = {
    "sparsity": "test judgments",
    "popularity": "items, the least popular,",
    "users": "users",
}
"""What is kept, by what is removed."""
SHARE = Column("share", "axis", "share kept", form="%")
ROBUSTNESS = Question(
    name="robustness",
    columns=(
        *(METRIC, SHARE, Column("value", "value", "τ with the order on all data")),
        *(Column("sd", "fact"), Column("lowest", "fact"), Column("highest", "fact")),
        *(Column("samples", "count"), Column("undefined", "count")),
        *(Column("judgments", "fact"), Column("users", "fact")),
    ),
    method=Method(estimand="Kendall's τ_b of the order of systems with that on all data"),
    figures=(Drawing("robustness", "lines"),),
    across="metric",
    digits=3,
)
"""A row per metric and share: τ over samples, and what remains of the data, mean over samples."""
SUMMARY = Question(
    name="robustness over all shares",
    columns=(
        *(METRIC, Column("value", "value", "mean τ"), Column("lowest", "fact", "lowest τ")),
        Column("undefined", "count", hidden=True),
    ),
    method=ROBUSTNESS.method,
    digits=3,
)
MEANS = Question(
    name="means of systems",
    columns=(
        *(METRIC, SHARE, SYSTEM, Column("value", "value", "mean"), Column("sd", "fact")),
        Column("full", "fact", "all data"),
    ),
    method=Method(estimand="the mean over users, and over samples"),
    digits=3,
)


def _estimates(
    to: str,
    levels: Sequence[Fraction],
    metrics: Sequence[str],
    systems: Sequence[str],
    means: F64,
    full: F64,
    remaining: Mapping[str, I64],
    data: Mapping[str, int],
    seed: int,
    notes: Sequence[str],
) -> Estimates:
    """Return how orders on smaller test sets agree with that on all data.

    Parameters
    ----------
    to, seed, notes
        What is removed, the seed of the first sample, and what was counted.
    levels, metrics, systems
        The shares that are kept, the metrics, the systems.
    means
        Levels x samples x metrics x systems.
    full
        Metrics x systems, on all data.
    remaining
        Levels x samples: the `users`, and the `judgments` where these are removed.
    data
        How many of both all data have.
    """
    taus = _taus(means, full)
    shares = [float(level) for level in levels]
    rows, summary = [], []
    for metric, by_share in zip(metrics, taus, strict=True):
        spreads = [_spread(samples) for samples in by_share]
        defined = [spread["value"] for spread in spreads if "value" in spread]
        mean = math.fsum(defined) / len(defined) if defined else None
        summary.append((metric, mean, min(defined, default=None), len(shares) - len(defined)))
        rows += [
            {"metric": metric, "share": shares[s], **spread}
            | {name: float(count[s].mean()) for name, count in remaining.items()}
            for s, spread in enumerate(spreads)
        ]
    summary.sort(key=lambda row: math.inf if row[1] is None else -row[1])
    by_system = np.ascontiguousarray(means.transpose(2, 0, 3, 1))
    samples, undefined = taus.shape[2], int(np.isnan(taus).sum())
    of_systems = {
        "metric": np.repeat(metrics, len(shares) * len(systems)),
        "share": np.tile(np.repeat(shares, len(systems)), len(metrics)),
        "system": list(systems) * len(metrics) * len(shares),
        "value": by_system.mean(axis=-1).ravel(),
        "full": np.repeat(full[:, None], len(shares), axis=1).ravel(),
    }
    if samples > 1:
        of_systems["sd"] = by_system.std(axis=-1, ddof=1).ravel()
    detail = f"{counted(samples, 'sample')} per share" if samples > 1 else "one test set per share"
    lines = [
        f"τ_b of {counted(len(systems), 'system')} with their order on all data, by the share of "
        f"{SHARES_OF[to]} kept; {detail}"
    ]
    fewest = int(remaining["users"].min(initial=data["users"]))
    if to != "users" and fewest < data["users"]:
        lines.append(
            f"users without remaining judgments are not averaged: at least {fewest:,} of "
            f"{data['users']:,} remain"
        )
    if undefined:
        lines.append(f"undefined (all systems equal): {undefined:,} of {taus.size:,} τ")
    display = "" if len(metrics) <= WIDE else "summary"
    return Estimates.of_rows(
        replace(ROBUSTNESS, name=f"robustness to {to}", display=(display,)),
        rows,
        explanation=tuple(lines),
        notes=tuple(dict.fromkeys(notes)),
        parts={
            "summary": Estimates.of_rows(SUMMARY, summary),
            "means": Estimates.of_rows(MEANS, pl.DataFrame(of_systems)),
        },
        card={"to": to, "seed": seed, **data},
    )


def _spread(taus: F64) -> dict[str, Any]:
    """Return mean and spread of the samples in which τ is defined."""
    defined = taus[~np.isnan(taus)]
    facts = {"samples": taus.size, "undefined": taus.size - defined.size}
    if not defined.size:
        return facts
    limits = {"lowest": float(defined.min()), "highest": float(defined.max())}
    sd = float(defined.std(ddof=1)) if defined.size > 1 else None
    return facts | limits | {"value": math.fsum(defined) / defined.size, "sd": sd}


TASKS_PER_WORKER = 4
"""Enough that progress shows, and that no worker waits long for the last one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallerTests:
    """Smaller test sets: a random one per share and sample, or one per share of popular items."""

    judged: Judged
    wanted: Mapping[str, Metric]
    averaging: Averaging
    to: str
    shares: Sequence[Fraction]
    seed: int
    per: str

    def __call__(self, part: range, progress: Progress | None = None) -> TestMeans:
        """Return the means of a part: samples of random test sets, else shares."""
        tests: list[SmallerTest]
        if self.to == "sparsity":
            # Draws go by the numbers of the test set as given, whatever ids the runs bring along.
            user, item = self.judged.numbering.own_numbers
            tests = [
                SparseTest(
                    number=number,
                    seed=self.seed + sample,
                    shares=self.shares,
                    per=self.per,
                    user=user,
                    item=item,
                )
                for number, sample in enumerate(part)
            ]
            shape = len(self.shares), len(part)
        else:
            shares, basis = [self.shares[index] for index in part], self.judged.basis
            tests = [without_popular(level, share, basis) for level, share in enumerate(shares)]
            shape = len(part), 1
        return means_of_tests(self.judged, self.wanted, self.averaging, tests, shape, progress)

    def all_by(self, executor: Executor, total: int, progress: Progress | None) -> TestMeans:
        """Return the means of all smaller test sets."""
        if executor.is_here:
            return self(range(total), progress)
        step = max(-(-total // (TASKS_PER_WORKER * executor.count)), 1)
        parts = [range(low, min(low + step, total)) for low in range(0, total, step)]
        results, done = {}, 0
        with closing(executor.do(self, parts)) as outcomes:
            for outcome in outcomes:
                if outcome.failure is not None:
                    raise DataError(f"robustness: {outcome.failure}")
                results[outcome.task] = outcome.result
                done += len(outcome.task)
                if progress is not None:
                    progress(done, total)
        by_part, axis = [results[part] for part in parts], 1 if self.to == "sparsity" else 0
        means, judgments, users = (
            np.concatenate(arrays, axis=axis) for arrays in zip(*by_part, strict=True)
        )
        return means, judgments, users


TO = ("sparsity", "popularity")
METRICS = ("P@10", "Recall@10", "AP@10", "nDCG@10", "RR@10", "bpref", "infAP(pool=all)")
"""What is looked at when no metrics are named: the seven of valcarce2018."""
SHARES = {
    **dict.fromkeys(
        ("sparsity", "users"), tuple(round(0.05 * step, 2) for step in range(19, 0, -1))
    ),
    "popularity": tuple(round(1 - 0.01 * step, 2) for step in range(1, 21)),
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
) -> Estimates:
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
    Estimates
        A row per metric and share: τ as `value` (mean over samples), its `sd`, `lowest` and
        `highest`, the `samples`, in how many of them τ is `undefined` (all systems equal; left out
        of the mean), and the `judgments` and `users` that remain, mean over samples. Parts:
        `summary`, a row per metric, the most robust first, τ averaged over shares; `means`, a row
        per metric, share and system, with the mean on the `full` test set.

    Examples
    --------
    >>> from unskew.stats.agreement.robustness import robustness
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
    chosen = labelled(metrics, paper)
    judged = as_judged(judgments, runs, seed=seed, **data)
    if judged.targets is not None:
        raise SettingError("give test ratings and runs with one list per user, not target lists")
    if to == "popularity" and judged.train is None:
        raise DataError("to='popularity' needs the training ratings: give train=…")
    if users in TRAINED and judged.train is None:
        raise SettingError(f"users={users!r} needs the training ratings: give train=…")
    check_two_systems(list(judged.systems))
    judged = prepare(judged, chosen)
    count = as_count("samples", samples) if to == "sparsity" else 1
    averaging = Averaging(users, undefined, threads, memory_bytes(memory))
    full, _, everyone = means_of_tests(judged, chosen, averaging, [full_test], (1, 1))
    tests = SmallerTests(
        judged=judged,
        wanted=chosen,
        averaging=averaging,
        to=to,
        shares=levels,
        seed=seed,
        per=per,
    )
    total = count if to == "sparsity" else len(levels)
    with executor(workers, cluster) as running:
        means, judgments_left, users_left = tests.all_by(running, total, progress)
    return _estimates(
        to,
        levels,
        list(chosen),
        list(judged.systems),
        means,
        full[0, 0],
        remaining={"judgments": judgments_left, "users": users_left},
        data={"judgments": len(judged.tests), "users": int(everyone[0, 0])},
        seed=seed,
        notes=[*judged.read.tests, *judged.read.relevance, *paper_notes(judged.paper)],
    )


def _levels(shares: Sequence[float]) -> list[Fraction]:
    levels = [as_share("shares", share, one=True) for share in shares]
    if not levels:
        raise SettingError("no shares are given")
    return levels


def _taus(means: F64, full: F64) -> F64:
    """Return τ_b of every sample's means with the full ones: metrics x shares x samples."""
    from unskew.stats import kernels

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
) -> Estimates:
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

    Returns
    -------
    Estimates
        As in `robustness`.

    Examples
    --------
    >>> from unskew.stats.agreement.robustness import user_robustness
    >>> values = {"user": range(6), "x": [3, 1, 4, 2, 5, 3], "y": [2, 1, 2, 2, 3, 2]}
    >>> user_robustness(values, shares=[0.5], samples=4).row().value
    1.0
    """
    from unskew.stats import kernels

    pairing = paired(scores)
    check_two_systems(pairing.systems)
    labels = chosen_metrics(pairing, metrics)
    levels = _levels(SHARES["users"] if shares is None else shares)
    count = as_count("samples", samples)
    people = len(pairing)
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

    draws = reweighted(pairing, labels, weigh, count * len(levels), threads, progress)
    everyone = reweighted(pairing, labels, lambda _, out: out.fill(1.0), 1, threads)[0]
    means = draws.reshape(count, len(levels), len(labels), -1).swapaxes(0, 1)
    return _estimates(
        "users",
        levels,
        labels,
        pairing.systems,
        means,
        everyone,
        remaining={"users": np.repeat(sizes[:, None], count, axis=1)},
        data={"users": people},
        seed=seed,
        notes=pairing.notes,
    )
