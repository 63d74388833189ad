"""The tasks of `robustness`: means over some of the smaller test sets, wherever they are taken."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from unskew.arrays import F64, I64
from unskew.engine.execute import Executor
from unskew.engine.progress import Progress
from unskew.engine.threads import resolve
from unskew.errors import DataError
from unskew.judging.judged import Judged
from unskew.metrics.names import Metric
from unskew.stats.smaller_tests import SmallerTest, SparseTest, UnpopularTest
from unskew.stats.sums_over_hits import Averaging, means_of_tests

TASKS_PER_WORKER = 4
"""Enough that progress shows, and that no worker waits long for the last one."""


@dataclass(frozen=True, eq=False)
class TestMeans:
    """The means of all systems over smaller test sets."""

    __test__ = False

    means: F64
    """Shares x samples x metrics x systems."""
    judgments: I64
    """Shares x samples: judgments kept."""
    users: I64
    """Shares x samples: users averaged, the most that a system has."""


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
        return TestMeans(means, tally.judgments, tally.users)

    def _random(self, part: range) -> list[SmallerTest]:
        # Draws go by the numbers of the test set as given, whatever ids the runs bring along.
        user, item = self.judged.numbering.own_numbers
        shares = list(self.shares)
        return [
            SparseTest(shares, self.seed + n, self.per, user, item, n - part.start) for n in part
        ]

    def _unpopular(self, part: range) -> list[SmallerTest]:
        return [UnpopularTest(at - part.start, self.shares[at], self.judged.basis) for at in part]

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
        return TestMeans(
            np.concatenate([one.means for one in order], axis=axis),
            np.concatenate([one.judgments for one in order], axis=axis),
            np.concatenate([one.users for one in order], axis=axis),
        )
