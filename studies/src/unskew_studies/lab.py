"""`Lab`: the data that a study works on, its amounts, and the tables measured so far."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from unskew.data.dataset import Dataset
from unskew.data.formats import catalog
from unskew.data.formats.catalog import data_folder, is_there, load
from unskew.data.formats.entries import DATASETS
from unskew.engine.executor import Executor, executor
from unskew.engine.files import temporary_folder
from unskew.engine.store import Store, digest_of
from unskew.errors import DataError, SettingError, UnskewError, unknown_name
from unskew.experiment.execution import run_plan_by
from unskew.experiment.plan import STAGES, Plan
from unskew.experiment.results import Results

if TYPE_CHECKING:
    from distributed import Client

SIZE_TOLERANCE = 0.02
"""The difference in size that a file may have from the paper's data: copies of a data set differ by
duplicates and by items without ratings."""
Size = tuple[int | None, int | None, int | None]
"""Users, items and ratings of a data set; None where a paper does not fix it."""

Cached = TypeVar("Cached")
AMOUNT = {"amount": pl.String}
Progress = Callable[[str], None]


class MissingDataError(UnskewError):
    """Data that a measurement needs are missing; the message says which, and how to get them."""


class UndefinedError(DataError):
    """The measurement is not defined on these data, such as a share of no items."""


@dataclass(frozen=True)
class Amount:
    """A number of repetitions or the like: as in the paper, and in a quick run."""

    paper: int
    quick: int
    description: str


@dataclass(frozen=True)
class Measurement:
    """A table that a study measures on one data set. `measurement` declares it."""

    name: str
    study: str
    description: str
    version: int
    function: Callable[[Lab, str], pl.DataFrame]


def measurement(
    description: str, version: int = 1
) -> Callable[[Callable[[Lab, str], pl.DataFrame]], Measurement]:
    """Declare a function from the lab and the name of a data set to a table as a measurement.

    Parameters
    ----------
    description
        What its table holds, in a few words.
    version
        Raise it when the function changes what it returns: a table of another version in the store
        is measured again.
    """

    def declare(function: Callable[[Lab, str], pl.DataFrame]) -> Measurement:
        study = function.__module__.removeprefix("unskew_studies.").split(".")[0]
        return Measurement(function.__name__, study, description, version, function)

    return declare


@dataclass(eq=False)
class Lab:
    """The data and settings of a study. `open_lab` returns one; use it in a `with` statement."""

    datasets: Mapping[str, Dataset]
    """The data sets to run on, by name."""
    is_other_data: bool
    """Whether these are the user's data or a stand-in, not the paper's data."""
    folder: Path
    """Where named data sets and released results are."""
    amounts: Mapping[str, int]
    quick: bool
    seed: int
    executor: Executor
    store: Store
    progress: Progress
    """Called with a line about the step that begins."""
    liked: float | None = None
    """The smallest rating that is liked, where the user says so."""
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Files under the name of a data set of the paper that are not the paper's data, and why."""
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """Systems that could not be trained, by data set and name, and why."""
    tables: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    """The tables measured so far, by measurement and data set."""
    _cached: dict[tuple[str, str], Any] = field(default_factory=dict)
    _used: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """The amounts on which each table, and each cached object, depends."""
    _asked: list[set[str]] = field(default_factory=list)
    """The amounts asked for so far by each computation under way: the innermost last."""
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def data(self, dataset_name: str) -> Dataset:
        """Return a data set; MissingDataError if it is not there."""
        if dataset_name not in self.datasets:
            raise MissingDataError(
                self.rejected.get(dataset_name)
                or f"needs {dataset_name} (unskew data list shows how to get it)"
            )
        return self.datasets[dataset_name]

    def amount(self, name: str) -> int:
        """Return an amount by its name."""
        self._note({name})
        return self.amounts[name]

    def threshold(self, dataset_name: str, paper: float | None = None) -> float:
        """Return the smallest liked rating: the user's, the paper's, or the data set's.

        The paper's threshold means nothing on user data without a 1-5 scale: there the user has to
        give one.
        """
        if self.liked is not None:
            return self.liked
        data = self.data(dataset_name)
        if not self.is_other_data and paper is not None:
            return paper
        if data.liked is not None:
            return data.liked
        low, high = float(data.ratings.value.min()), float(data.ratings.value.max())
        if paper is not None and low >= 0.5 and 4.0 < high <= 5.0:
            return paper
        raise SettingError(
            f"{dataset_name}: ratings go from {low:g} to {high:g}; give the smallest liked "
            "rating (liked=…, --liked)"
        )

    def table(self, measurement: Measurement, dataset_name: str = "") -> pl.DataFrame:
        """Return a measurement's table: from memory, from the store, or measured now."""
        place = (measurement.name, dataset_name)
        if place not in self.tables and not self._stored(measurement, dataset_name):
            self.progress(
                f"{measurement.description} ({dataset_name})"
                if dataset_name
                else measurement.description
            )
            table = self._traced(place, lambda: measurement.function(self, dataset_name))
            used = sorted(self._used[place])
            left_out = {
                name: why for (of, name), why in self.failures.items() if of == dataset_name
            }
            card = {
                "study": measurement.study,
                "measurement": measurement.name,
                "left out": left_out,
            }
            self.store.put(self._key(measurement, dataset_name, used), table, card)
            self.store.put(
                self._key(measurement, dataset_name, None),
                pl.DataFrame({"amount": used}, AMOUNT),
                card,
            )
            self.tables[place] = table
        self._note(self._used.get(place, ()))
        return self.tables[place]

    def _stored(self, measurement: Measurement, dataset_name: str) -> bool:
        """Return a table from the store, if it was measured with the same amounts.

        The store keeps beside each table the names of the amounts that it depends on, so that
        another number of permutations trains no system again.
        """
        names = self._key(measurement, dataset_name, None)
        if not self.store.has(names):
            return False
        used = self.store.get(names)[0]["amount"].to_list()
        if not set(used) <= set(self.amounts):
            return False
        key = self._key(measurement, dataset_name, used)
        if not self.store.has(key):
            return False
        self.tables[measurement.name, dataset_name], card = self.store.get(key)
        for name, why in card.get("left out", {}).items():
            self.failures[dataset_name, name] = why
        self._used[measurement.name, dataset_name] = frozenset(used)
        return True

    def _key(self, measurement: Measurement, dataset_name: str, used: Sequence[str] | None) -> str:
        """Return the key of a table for our amounts; without `used`, that of their names."""
        return digest_of(
            {
                "kind": "study" if used is not None else "amounts of a study",
                "study": measurement.study,
                "measurement": measurement.name,
                "version": measurement.version,
                "stages": dict(STAGES),
                "seed": self.seed,
                "liked": self.liked,
                "is_other_data": self.is_other_data,
                "amounts": {name: self.amounts[name] for name in used or ()},
                "data": self._marks(dataset_name),
            }
        )

    def _traced(self, place: tuple[str, str], compute: Callable[[], Cached]) -> Cached:
        """Compute something, and note which amounts it asks for."""
        self._asked.append(set())
        try:
            result = compute()
        finally:
            asked = self._asked.pop()
        self._used[place] = frozenset(asked)
        return result

    def _note(self, names: Iterable[str]) -> None:
        if self._asked:
            self._asked[-1].update(names)

    def cached(self, name: str, dataset_name: str, compute: Callable[[], Cached]) -> Cached:
        """Return what `compute` returns, computed once: for splits, models and the like."""
        place = (f"cached {name}", dataset_name)
        if place not in self._cached:
            self._cached[place] = self._traced(place, compute)
        self._note(self._used[place])
        cached: Cached = self._cached[place]
        return cached

    def run_plan(self, dataset_name: str, plan: Plan) -> Results:
        """Run a plan on a data set; the store spares what was done before.

        A system that cannot be trained is left out, and claims about the others are checked.
        """
        self.progress(f"running {len(plan.algorithms)} systems ({dataset_name})")
        data = self.data(dataset_name).ratings
        results = run_plan_by(self.executor, data, plan, store=self.store.home, keep_going=True)
        for label, report in results.failures.items():
            self.failures[dataset_name, label] = last_line(report)
        return results

    def released_table(self, file: str) -> pl.DataFrame:
        """Return a table of released results; MissingDataError if it is not there."""
        frame: pl.DataFrame = self.cached(file, "", lambda: self._released(file))
        return frame

    def _released(self, file: str) -> pl.DataFrame:
        try:
            return catalog.read_released(file, self.folder)
        except UnskewError as problem:
            raise MissingDataError(str(problem)) from None

    def _marks(self, dataset_name: str) -> list[str]:
        if not dataset_name:
            return []
        data = self.data(dataset_name)
        parts = [data.ratings, *([data.random] if data.random is not None else [])]
        tags = [f"{name}={values.dtype}" for name, values in sorted(data.ratings.tags.items())]
        return [dataset_name, *(one.fingerprint for one in parts), *tags]


def load_datasets(
    names: tuple[str, ...],
    data_dir: str | os.PathLike[str] | None,
    options: Mapping[str, Mapping[str, Any]],
    sizes: Mapping[str, Size],
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load the named data sets that are in the data folder.

    Returns them, and for each file that is not the paper's data the reason.
    """
    datasets, rejected = {}, {}
    for name in names:
        if not is_there(DATASETS[name], data_dir):
            continue
        data = load(name, data_dir=data_dir, **options.get(name, {}))
        problem = size_problem(data, sizes[name])
        if problem:
            rejected[name] = problem
        else:
            datasets[name] = data
    return datasets, rejected


def size_problem(data: Dataset, size: Size) -> str:
    """Return why data cannot be the paper's data; nothing if they have the size of those."""
    ratings = data.ratings
    actual = (len(ratings.users), len(ratings.items), len(ratings))
    for what, number, expected in zip(("users", "items", "ratings"), actual, size, strict=True):
        if expected is not None and abs(number - expected) > SIZE_TOLERANCE * expected:
            return (
                f"the file in the place of {data.name} has {number:,} {what}, but the paper's "
                f"data have {expected:,} (give it as --data to ask about it)"
            )
    return ""


def choose_amounts(
    known: Mapping[str, Amount], quick: bool, given: Mapping[str, int] | None
) -> dict[str, int]:
    """Return all amounts: those given, and the others as in the paper or in a quick run."""
    result = {name: one.quick if quick else one.paper for name, one in known.items()}
    for name, value in (given or {}).items():
        if name not in known:
            raise unknown_name("amount", name, known)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingError(
                f"{name}={value!r}: {known[name].description}, a whole number from 1 on"
            )
        result[name] = value
    return result


def open_lab(
    datasets: Mapping[str, Dataset],
    *,
    is_other_data: bool,
    amounts: Mapping[str, int],
    quick: bool,
    seed: int = 0,
    workers: int = 1,
    cluster: str | Client | None = None,
    store: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    liked: float | None = None,
    progress: Progress | None = None,
    rejected: Mapping[str, str] | None = None,
) -> Lab:
    """Open a lab; without a store its tables are gone when it is closed."""
    with ExitStack() as stack:
        one = stack.enter_context(executor(workers, cluster))
        if store is None:
            store = stack.enter_context(temporary_folder())
        return Lab(
            datasets=datasets,
            is_other_data=is_other_data,
            folder=data_folder(data_dir),
            amounts=amounts,
            quick=quick,
            seed=seed,
            executor=one,
            store=Store.open(store),
            progress=progress or (lambda _step: None),
            liked=liked,
            rejected=rejected or {},
            _stack=stack.pop_all(),
        )


def last_line(report: str) -> str:
    """Return the reason of a failure: the last line of a task's report."""
    last = [line.strip() for line in report.splitlines() if line.strip()][-1:]
    return re.sub(r"^unskew\.errors\.\w+: ", "", "".join(last))
