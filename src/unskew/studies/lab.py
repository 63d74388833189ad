"""`Lab`: what a study works with: the data at hand, its amounts, and what is measured already."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import polars as pl

from unskew.data import released
from unskew.data.catalog import DATASETS, data_folder, is_there, load
from unskew.data.dataset import Dataset
from unskew.engine.files import temporary_folder
from unskew.engine.store import Store, key_of
from unskew.errors import DataError, SettingError, UnskewError, unknown_name
from unskew.experiment.plan import STAGES, Plan
from unskew.experiment.results import Results, run_plan

SIZE_TOLERANCE = 0.02
"""How far the size of a file may be from that of the paper's data: copies of a data set differ by
duplicates and by items without ratings."""
Size = tuple[int | None, int | None, int | None]
"""Users, items and ratings of a data set; None where a paper does not fix it."""

Kept = TypeVar("Kept")
AMOUNT = {"amount": pl.String}
Told = Callable[[str], None]


class NotAtHandError(UnskewError):
    """What a measurement needs is not there; the message says what and where it would be found."""


class UndefinedError(DataError):
    """What is asked for is not defined on these data, such as a share of no items."""


@dataclass(frozen=True)
class Amount:
    """How much of something a study takes: as the paper, and in a quick run."""

    paper: int
    quick: int
    what: str


@dataclass(frozen=True)
class Measurement:
    """A table that a study measures on one data set. Made by `measurement`."""

    name: str
    study: str
    what: str
    version: int
    function: Callable[[Lab, str], pl.DataFrame]


def measurement(
    what: str, version: int = 1
) -> Callable[[Callable[[Lab, str], pl.DataFrame]], Measurement]:
    """Make a function from lab and data name to a table a measurement, kept once it is made.

    Parameters
    ----------
    what
        What its table holds, in a few words.
    version
        Another number makes it anew where a store has it already: raise it when the function
        changes what it returns.
    """

    def made(function: Callable[[Lab, str], pl.DataFrame]) -> Measurement:
        study = function.__module__.removeprefix("unskew.studies.").split(".")[0]
        return Measurement(function.__name__, study, what, version, function)

    return made


@dataclass(eq=False)
class Lab:
    """What a study works with. Made by `opened`; use it in a `with` statement."""

    sets: Mapping[str, Dataset]
    """The data sets at hand, by name."""
    own: bool
    """Whether they are the user's own (or a stand-in), not those of the paper."""
    folder: Path
    """Where named data sets and released results are."""
    amounts: Mapping[str, int]
    quick: bool
    seed: int
    workers: int
    store: Store
    told: Told
    """Called with what is being done."""
    liked: float | None = None
    """The smallest rating that is liked, where the user says so."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Files that are in the place of a data set of the paper and are not it, and why not."""
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    """Systems that could not be trained, by data set and name, and why."""
    tables: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)
    """What has been measured, by measurement and data set."""
    _kept: dict[tuple[str, str], Any] = field(default_factory=dict)
    _used: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    """The amounts on which each table, and each thing kept, depends."""
    _asked: list[set[str]] = field(default_factory=list)
    """The amounts asked for so far, by each thing that is being made: the innermost last."""
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

    def data(self, on: str) -> Dataset:
        """Return a data set at hand; NotAtHandError if it is not."""
        if on not in self.sets:
            raise NotAtHandError(
                self.refused.get(on) or f"needs {on} (unskew data list tells how to get it)"
            )
        return self.sets[on]

    def amount(self, name: str) -> int:
        """Return how much of something to take."""
        self._note({name})
        return self.amounts[name]

    def threshold(self, on: str, paper: float | None = None) -> float:
        """Return the smallest liked rating: the user's, the paper's, or the data set's.

        On data of the user's own that have no 1-5 scale, what the paper took is meaningless: the
        user has to say.
        """
        if self.liked is not None:
            return self.liked
        data = self.data(on)
        if not self.own and paper is not None:
            return paper
        if data.liked is not None:
            return data.liked
        low, high = float(data.ratings.value.min()), float(data.ratings.value.max())
        if paper is not None and low >= 0.5 and 4.0 < high <= 5.0:
            return paper
        raise SettingError(
            f"{on}: ratings go from {low:g} to {high:g}; say from which one on they are liked "
            "(liked=…, --liked)"
        )

    def table(self, what: Measurement, on: str = "") -> pl.DataFrame:
        """Return a measurement's table: from memory, from the store, or measured now."""
        place = (what.name, on)
        if place not in self.tables and not self._stored(what, on):
            self.told(f"{what.what} ({on})" if on else what.what)
            made = self._traced(place, lambda: what.function(self, on))
            used = sorted(self._used[place])
            left_out = {name: why for (of, name), why in self.failures.items() if of == on}
            card = {"study": what.study, "measurement": what.name, "left out": left_out}
            self.store.put(self._key(what, on, used), made, card)
            self.store.put(self._key(what, on, None), pl.DataFrame({"amount": used}, AMOUNT), card)
            self.tables[place] = made
        self._note(self._used.get(place, ()))
        return self.tables[place]

    def _stored(self, what: Measurement, on: str) -> bool:
        """Take a table from the store, if it is there for amounts like ours.

        Which amounts a table depends on is only known once it was made, and kept beside it: so
        another number of permutations does not train systems anew.
        """
        names = self._key(what, on, None)
        if not self.store.has(names):
            return False
        used = self.store.get(names)[0]["amount"].to_list()
        if not set(used) <= set(self.amounts):
            return False
        key = self._key(what, on, used)
        if not self.store.has(key):
            return False
        self.tables[what.name, on], card = self.store.get(key)
        for name, why in card.get("left out", {}).items():
            self.failures[on, name] = why
        self._used[what.name, on] = frozenset(used)
        return True

    def _key(self, what: Measurement, on: str, used: Sequence[str] | None) -> str:
        """Return the key of a table for our amounts; without `used`, that of their names."""
        return key_of(
            {
                "kind": "study" if used is not None else "amounts of a study",
                "study": what.study,
                "measurement": what.name,
                "version": what.version,
                "stages": dict(STAGES),
                "seed": self.seed,
                "liked": self.liked,
                "own": self.own,
                "amounts": {name: self.amounts[name] for name in used or ()},
                "data": self._marks(on),
            }
        )

    def _traced(self, place: tuple[str, str], make: Callable[[], Kept]) -> Kept:
        """Make something, and note which amounts it asks for."""
        self._asked.append(set())
        try:
            made = make()
        finally:
            asked = self._asked.pop()
        self._used[place] = frozenset(asked)
        return made

    def _note(self, names: Iterable[str]) -> None:
        if self._asked:
            self._asked[-1].update(names)

    def once(self, name: str, on: str, make: Callable[[], Kept]) -> Kept:
        """Return what `make` returns, made once: for what is no table, such as splits."""
        place = (f"once {name}", on)
        if place not in self._kept:
            self._kept[place] = self._traced(place, make)
        self._note(self._used[place])
        kept: Kept = self._kept[place]
        return kept

    def run(self, on: str, plan: Plan) -> Results:
        """Carry out a plan on a data set; what the store has is not done again.

        A system that cannot be trained is left out, and what is claimed about others is checked.
        """
        self.told(f"running {len(plan.algorithms)} systems ({on})")
        data = self.data(on).ratings
        results = run_plan(data, plan, store=self.store.home, workers=self.workers, keep_going=True)
        for label, report in results.failures.items():
            self.failures[on, label] = reason_of(report)
        return results

    def published(self, file: str) -> pl.DataFrame:
        """Return a table of released results; NotAtHandError if it is not there."""
        frame: pl.DataFrame = self.once(file, "", lambda: self._released(file))
        return frame

    def _released(self, file: str) -> pl.DataFrame:
        try:
            return released.read(file, self.folder)
        except UnskewError as problem:
            raise NotAtHandError(str(problem)) from None

    def _marks(self, on: str) -> list[str]:
        if not on:
            return []
        data = self.data(on)
        parts = [data.ratings, *([data.random] if data.random is not None else [])]
        tags = [f"{name}={values.dtype}" for name, values in sorted(data.ratings.tags.items())]
        return [on, *(one.fingerprint for one in parts), *tags]


def at_hand(
    names: tuple[str, ...],
    data_dir: str | os.PathLike[str] | None,
    options: Mapping[str, Mapping[str, Any]],
    sizes: Mapping[str, Size],
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load those of the named data sets that are in the data folder.

    Returns them, and why files that are in the place of others are not the paper's data.
    """
    sets, refused = {}, {}
    for name in names:
        if not is_there(DATASETS[name], data_dir):
            continue
        data = load(name, data_dir=data_dir, **options.get(name, {}))
        problem = not_of_paper(data, sizes[name])
        if problem:
            refused[name] = problem
        else:
            sets[name] = data
    return sets, refused


def not_of_paper(data: Dataset, size: Size) -> str:
    """Return why data cannot be those of the paper; nothing if they have its size."""
    ratings = data.ratings
    there = (len(ratings.users), len(ratings.items), len(ratings))
    for what, number, expected in zip(("users", "items", "ratings"), there, size, strict=True):
        if expected is not None and abs(number - expected) > SIZE_TOLERANCE * expected:
            return (
                f"the file in the place of {data.name} has {number:,} {what}, and the paper's data "
                f"have {expected:,} (give it as --data to ask about it)"
            )
    return ""


def amounts_of(
    known: Mapping[str, Amount], quick: bool, given: Mapping[str, int] | None
) -> dict[str, int]:
    """Return how much of everything: as the paper or quick, but for what is given."""
    result = {name: one.quick if quick else one.paper for name, one in known.items()}
    for name, value in (given or {}).items():
        if name not in known:
            raise unknown_name("amount", name, known)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise SettingError(f"{name}={value!r}: {known[name].what}, a whole number from 1 on")
        result[name] = value
    return result


def opened(
    sets: Mapping[str, Dataset],
    *,
    own: bool,
    amounts: Mapping[str, int],
    quick: bool,
    seed: int = 0,
    workers: int = 1,
    store: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    liked: float | None = None,
    told: Told | None = None,
    refused: Mapping[str, str] | None = None,
) -> Lab:
    """Open a lab; without a store what it makes is gone when it is closed."""
    stack = ExitStack()
    if store is None:
        store = stack.enter_context(temporary_folder())
    return Lab(
        sets,
        own,
        data_folder(data_dir),
        amounts,
        quick,
        seed,
        workers,
        Store.open(store),
        told or (lambda _what: None),
        liked,
        refused or {},
        _stack=stack,
    )


def reason_of(report: str) -> str:
    """Return why something failed, in a line; reports of tasks tell every step, and why last."""
    last = [line.strip() for line in report.splitlines() if line.strip()][-1:]
    return re.sub(r"^unskew\.errors\.\w+: ", "", "".join(last))
