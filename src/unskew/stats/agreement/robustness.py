"""`robustness`: how the order of systems holds when less is known.

Ranked lists stay as they are: judged items are met once per system, and a smaller test set only
takes some of them as unjudged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, frozen
from unskew.checks import as_count, as_share, checked, choose, portion
from unskew.data.relevance import paper_notes
from unskew.engine.executor import Executor, executor
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.rng import key_of
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import MEMORY, check_averaging, labelled, memory_bytes, stated_paper
from unskew.evaluation.scores import TRAINED
from unskew.evaluation.scoring import prepare
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.metrics.names import Metric
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.tables import WIDE
from unskew.report.text import counted
from unskew.splits.subsample import PER
from unskew.stats.agreement.smaller_tests import (
    Averaging,
    FullTest,
    SmallerTest,
    SparseTest,
    UnpopularTest,
    means_of_tests,
)
from unskew.stats.correlation import rounded
from unskew.stats.pairing import Source, paired
from unskew.stats.resampling import check_two_systems, chosen_metrics, reweighted

if TYPE_CHECKING:
    from distributed import Client


KEPT = {
    "sparsity": "share of test judgments kept",
    "popularity": "share of items kept, the least popular",
    "users": "share of users kept",
}


@dataclass(frozen=True, eq=False)
class Robustness(Result):
    """Kendall's τ_b between the order of systems on smaller test sets and on the full one.

    Made by `robustness` and `user_robustness`.
    """

    digits = 3

    to: str
    """`sparsity`, `popularity` or `users`."""
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    shares: tuple[float, ...]
    """What is kept: of each user's judgments, of the items, or of the users."""
    tau: F64
    """Metrics x shares x samples; NaN where all systems are equal."""
    judgments: I64
    """Shares x samples: test judgments left (0 where users were drawn)."""
    users: I64
    """Shares x samples: users left to average."""
    full: Mapping[str, int]
    """`judgments` and `users` of the full test set."""
    means: F64
    """Metrics x shares x samples x systems."""
    full_means: F64
    """Metrics x systems."""
    seed: int = 0
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric and share: τ (mean over samples), its spread, what was left.

        Columns: metric, share, tau, sd (null for a single one), low and high (the least and the
        largest of the samples),
        samples, undefined (samples in which all systems are equal; left out of the mean),
        judgments and users (means over samples).
        """
        table = pl.DataFrame(
            [
                {
                    "metric": metric,
                    "share": share,
                    **_spread(self.tau[m, s]),
                    "judgments": float(self.judgments[s].mean()),
                    "users": float(self.users[s].mean()),
                }
                for m, metric in enumerate(self.metrics)
                for s, share in enumerate(self.shares)
            ],
            infer_schema_length=None,
        )
        return table.drop("judgments") if self.to == "users" else table

    def wide(self) -> pl.DataFrame:
        """Return the mean τ: a row per share, a column per metric."""
        columns: dict[str, Sequence[float | None]] = {"share": self.shares}
        for m, metric in enumerate(self.metrics):
            columns[metric] = [_spread(taus)["tau"] for taus in self.tau[m]]
        return pl.DataFrame(columns)

    def summary(self) -> pl.DataFrame:
        """Return a row per metric, the most robust first: τ averaged over shares, and its least.

        A share at which τ is undefined is left out of the average.
        """
        rows = []
        for m, metric in enumerate(self.metrics):
            means = [_spread(taus)["tau"] for taus in self.tau[m]]
            defined = [mean for mean in means if mean is not None]
            rows.append(
                {
                    "metric": metric,
                    "tau": math.fsum(defined) / len(defined) if defined else None,
                    "least": min(defined, default=None),
                    "undefined": len(means) - len(defined),
                }
            )
        table = pl.DataFrame(rows, schema_overrides={"tau": pl.Float64, "least": pl.Float64})
        return table.sort("tau", descending=True, nulls_last=True, maintain_order=True)

    def systems_table(self) -> pl.DataFrame:
        """Return a row per metric, share and system: its mean score, the sd, and the full one.

        So that one sees what a smaller test set does to the scores themselves.
        """
        single = self.means.shape[2] < 2
        rows = [
            {
                "metric": metric,
                "share": share,
                "system": system,
                "mean": float(self.means[m, s, :, column].mean()),
                "sd": None if single else float(self.means[m, s, :, column].std(ddof=1)),
                "full": float(self.full_means[m, column]),
            }
            for m, metric in enumerate(self.metrics)
            for s, share in enumerate(self.shares)
            for column, system in enumerate(self.systems)
        ]
        return pl.DataFrame(rows, schema_overrides={"sd": pl.Float64}, infer_schema_length=None)

    def figure(self, metrics: Iterable[str] | None = None) -> Figure:
        """Draw the mean τ over the share that is kept, a line per metric."""
        import altair as alt

        chosen = list(self.metrics) if metrics is None else list(metrics)
        for metric in chosen:
            choose("metric", metric, self.metrics)
        table = self.table().filter(pl.col("metric").is_in(chosen) & pl.col("tau").is_not_null())
        rows = table.select("metric", "share", "tau", "low", "high").to_dicts()
        x = alt.X("share:Q", title=KEPT[self.to])
        x = x.scale(reverse=True, zero=False).axis(format="%")
        y = alt.Y("tau:Q", title="Kendall's τ with the order on all data").scale(zero=False)
        color = alt.Color("metric:N").scale(domain=chosen)
        chart = alt.Chart(alt.NamedData(name="rows"), width=520, height=280)
        line: alt.Chart = chart.mark_line(point=True).encode(x=x, y=y, color=color)
        return as_figure(line, f"Robustness to {self.to}", self.footer(), rows)

    def _explanation(self) -> list[str]:
        samples = self.tau.shape[2]
        detail = (
            f"{counted(samples, 'sample')} per share" if samples > 1 else "one test set per share"
        )
        fewest = int(self.users.min(initial=self.full["users"]))
        lines = [
            f"τ_b of {counted(len(self.systems), 'system')} with their order on all data; {detail}"
        ]
        if self.to != "users" and fewest < self.full["users"]:
            lines.append(
                f"users without remaining judgments are not averaged: at least {fewest:,} of "
                f"{self.full['users']:,} remain"
            )
        undefined = int(np.isnan(self.tau).sum())
        if undefined:
            lines.append(f"undefined (all systems equal): {undefined:,} of {self.tau.size:,} τ")
        return lines

    def display_table(self) -> pl.DataFrame:
        """Return a column per metric or, where there are many, a row."""
        return self.wide() if len(self.metrics) <= WIDE else self.summary()

    def _summary(self) -> str:
        return (
            f"to={self.to!r}, {counted(len(self.systems), 'system')}, "
            f"{counted(len(self.metrics), 'metric')}, {counted(len(self.shares), 'share')}, "
            f"{counted(self.tau.shape[2], 'sample')}"
        )


def _spread(taus: F64) -> dict[str, float | None]:
    """Return mean and spread of the samples in which τ is defined."""
    defined = taus[~np.isnan(taus)]
    facts: dict[str, float | None] = {"tau": None, "sd": None, "low": None, "high": None}
    if defined.size:
        facts["tau"] = math.fsum(defined) / defined.size
        facts |= {"low": float(defined.min()), "high": float(defined.max())}
    if defined.size > 1:
        facts["sd"] = float(defined.std(ddof=1))
    return {**facts, "samples": taus.size, "undefined": taus.size - defined.size}


TASKS_PER_WORKER = 4
"""Enough that progress shows, and that no worker waits long for the last one."""


TestMeans = tuple[F64, I64, I64]
"""Means (shares x samples x metrics x systems), judgments that remain and users that are averaged,
the most that a system has (shares x samples)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallerTests:
    """Smaller test sets: a random one per share and sample, or one per share of popular items."""

    judged: Judged
    wanted: Mapping[str, Metric]
    to: str
    shares: tuple[Fraction, ...]
    samples: int
    """1 where nothing is random."""
    seed: int
    per: str
    users: str
    undefined: str
    threads: int | None
    memory: int

    def __call__(self, part: range) -> TestMeans:
        """Return the means of a part: samples of random test sets, else shares."""
        return self.measure(part)

    def measure(self, part: range, progress: Progress | None = None) -> TestMeans:
        """Return the means of a part, and tell how far it is."""
        settings = Averaging(self.users, self.undefined, resolve(self.threads), self.memory)
        is_random = self.to == "sparsity"
        shape = (len(self.shares), len(part)) if is_random else (len(part), 1)
        draws = self._random(part) if is_random else self._unpopular(part)
        means, tally = means_of_tests(self.judged, self.wanted, settings, draws, shape, progress)
        return means, tally.judgments, tally.users

    def _random(self, part: range) -> list[SmallerTest]:
        # Draws go by the numbers of the test set as given, whatever ids the runs bring along.
        user, item = self.judged.numbering.own_numbers
        shares = list(self.shares)
        return [
            SparseTest(shares, self.seed + n, self.per, user, item, n - part.start) for n in part
        ]

    def _unpopular(self, part: range) -> list[SmallerTest]:
        return [
            UnpopularTest(index - part.start, self.shares[index], self.judged.basis)
            for index in part
        ]

    def all_by(self, executor: Executor, progress: Progress | None) -> TestMeans:
        """Return the means of all smaller test sets."""
        total = self.samples if self.to == "sparsity" else len(self.shares)
        if executor.is_here:
            return self.measure(range(total), progress)
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
        order, axis = [results[part] for part in parts], 1 if self.to == "sparsity" else 0
        means, judgments, users = (np.concatenate(p, axis=axis) for p in zip(*order, strict=True))
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
    settings = Averaging(users, undefined, resolve(threads), memory_bytes(memory))
    full, everything = means_of_tests(judged, chosen, settings, [FullTest()], (1, 1))
    tests = SmallerTests(
        judged=judged,
        wanted=chosen,
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
    with executor(workers, cluster) as running:
        means, judgments_left, users_left = tests.all_by(running, progress)
    return Robustness(
        to=to,
        systems=tuple(judged.systems),
        metrics=tuple(chosen),
        shares=tuple(float(part) for part in levels),
        tau=_taus(means, full[0, 0]),
        judgments=judgments_left,
        users=users_left,
        full={"judgments": len(judged.tests), "users": int(everything.users[0, 0])},
        means=_by_metric(means),
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
    users = np.repeat(sizes[:, None], count, axis=1)
    return Robustness(
        to="users",
        systems=pairing.systems,
        metrics=tuple(labels),
        shares=tuple(float(part) for part in levels),
        tau=_taus(means, everyone),
        judgments=np.zeros_like(users),
        users=users,
        full={"judgments": 0, "users": people},
        means=_by_metric(means),
        full_means=everyone,
        seed=seed,
        notes=pairing.notes,
    )
