"""`Scores`: the value of every metric for every list of every system, and their means."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import choose
from unskew.data.ratings import Ids
from unskew.data.user_groups import UserGroups
from unskew.engine.files import (
    digest_of_file,
    inner_path,
    local_path,
    read_sealed,
    replacing_folder,
    write_sealed,
    write_table,
)
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.tables import means_table, warmth_lines, warmth_table
from unskew.metrics.names import Metric, parse, parse_all
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, finite

USERS = ("with-test", "with-relevant", "with-list", "both", "with-train", "warm", "all")
"""Which users are averaged; see `Scores.mean`."""
TRAINED = ("with-train", "warm")
"""Those of them that need training ratings."""
UNDEFINED = ("zero", "skip")
OVER = ("lists", "users", "strata")
"""What is averaged; see `Scores.mean`."""
SINGULAR = {"lists": "list", "users": "user", "strata": "stratum"}
COUNTS = ("test", "liked", "disliked", "train")
"""Of each list, how many judgments and training ratings its user has."""
RANDOM = "(random)"
"""How the expectation of a random order is called in tables."""
FORMAT = 3
SAVED = ("labels", "order", "users", "undefined", "notes", "relevance", "over")
"""What the card holds as it stands."""


@dataclass(frozen=True)
class Mean:
    """A mean and what it is a mean of."""

    value: float
    users: int
    """The denominator: how many lists (users, strata) were averaged."""
    undefined: int = 0
    """How many lists have no defined value (counted as 0, or skipped)."""


@dataclass(frozen=True, eq=False)
class System:
    """The values of one system: a row per metric, a column per list."""

    values: F64
    den: Mapping[int, F64] = field(default_factory=dict)
    """For metrics whose mean is a ratio of sums: row number to denominators."""
    depth: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    aggregates: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the whole run, by label."""


@dataclass(frozen=True, eq=False)
class Scores(Result):
    """The value of every metric for every list of every system.

    Made by `evaluate`. Undefined values are NaN; 0 is a measured zero.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> scores = us.evaluate(test, {"mine": {1: [20, 10], 2: [30]}}, "RR", liked=4)
    >>> scores.mean("RR"), scores.values("mine", "RR").tolist()
    ({'mine': 0.75}, [0.5, 1.0])
    """

    labels: tuple[str, ...]
    """Metrics with a value per list, as they were asked for."""
    systems: Mapping[str, System]
    user_ids: Ids
    lists: pl.DataFrame
    """One row per list: `user` (number), `liked`, `disliked`, `test`, `train`; of target lists also
    `targets`, `anchor`, `stratum`; of steps and several lists per user also when (`time` …)."""
    users: str = "with-test"
    undefined: str = "zero"
    order: tuple[str, ...] = ()
    """All labels, whole-run metrics included, in the order asked for."""
    make_card: Callable[[], Mapping[str, Any]] = dict
    """Makes `card`, at its first use: the fingerprint of much data takes a while."""
    notes: tuple[str, ...] = ()
    relevance: str = ""
    """How ratings were taken, in words."""
    over: str = "lists"
    """What is averaged unless said otherwise."""
    chance: System | None = None
    """What a random order of each list's targets is expected to score, where targets are known."""
    simulated: Mapping[str, int] = field(default_factory=dict)
    """Metrics whose expectation has no closed form: how many random orders it is a mean of."""
    library: str = ""
    """The library whose numbers these are, under its names; empty: ours."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """By label of a library, or of a paper's variant: the metric of ours that is meant."""
    groups: UserGroups | None = None
    """Users that count as one where intervals and tests are by user; None = every user counts."""

    @cached_property
    def card(self) -> Mapping[str, Any]:
        """Everything from which a number can be derived again."""
        return self.make_card()

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """Each label's metric."""
        names = tuple([self.meanings.get(label, label) for label in self.order])
        return dict(zip(self.order, parse_all(names), strict=True))

    def mean(
        self,
        metric: str,
        *,
        users: str | None = None,
        undefined: str | None = None,
        over: str | None = None,
    ) -> dict[str, float]:
        """Return the exactly rounded mean of one metric, by system.

        Parameters
        ----------
        metric
            Its label.
        users
            Which users are averaged: those `with-test` judgments, `with-relevant` (liked) ones,
            `with-list`, `both` (list and judgment: trec_eval without -c), `with-train`, `warm`
            (training rating and test judgment), or `all` that occur. Default: as evaluated.
        undefined
            `zero` counts undefined values as 0, `skip` leaves them out. Default: as evaluated.
        over
            `lists` counts every list once (with one list per user: every user), `users` the mean
            of each user's lists, `strata` the mean of each stratum (macro average).
        """
        label = self._label(metric)
        means = self.averages(users=users, undefined=undefined, over=over)
        return {system: row[label].value for system, row in means.items()}

    def means(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> dict[str, dict[str, float]]:
        """Return the means of all metrics, by system and metric; see `mean`."""
        return {
            system: {label: mean.value for label, mean in row.items()}
            for system, row in self.averages(users=users, undefined=undefined, over=over).items()
        }

    def averages(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> dict[str, dict[str, Mean]]:
        """Return `means` with their denominators and the number of undefined values."""
        settings = self._averaging(users, undefined, over)
        if settings not in self._averages:
            size = sum(system.values.size for system in self.systems.values())

            def of_system(name: str) -> dict[str, Mean]:
                return self._means(self.systems[name], *settings)

            rows = map_blocks(of_system, self.systems, size=size)
            self._averages[settings] = dict(zip(self.systems, rows, strict=True))
        return {system: dict(row) for system, row in self._averages[settings].items()}

    @cached_property
    def _averages(self) -> dict[tuple[str, ...], dict[str, dict[str, Mean]]]:
        """What was averaged so far: many ask for the same means of the same values."""
        return {}

    def random(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> dict[str, float]:
        """Return what a random order of the targets is expected to score, averaged as `mean`.

        Exact, but for the metrics in `simulated`. Empty where targets are not known.
        """
        means = self.random_means(users=users, undefined=undefined, over=over)
        return {label: mean.value for label, mean in means.items()}

    def random_means(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> dict[str, Mean]:
        """Return the same with denominators."""
        if self.chance is None:
            return {}
        return self._means(self.chance, *self._averaging(users, undefined, over))

    def _averaging(
        self, users: str | None, undefined: str | None, over: str | None
    ) -> tuple[str, ...]:
        over = choose("over", over, OVER) if over else self.over
        if over == "strata" and "stratum" not in self.lists.columns:
            raise SettingError("over='strata' needs lists within strata: targets with strata=…")
        users = choose("users", users, USERS) if users else self.users
        undefined = choose("undefined", undefined, UNDEFINED) if undefined else self.undefined
        return users, undefined, over

    def table(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> pl.DataFrame:
        """Return the means as a table: a row per system, a column per metric.

        Where targets are known, the last row `(random)` is what chance alone is expected to give.
        """
        means = self._with_chance(users=users, undefined=undefined, over=over)
        rows = [
            {"system": system, **{label: mean.value for label, mean in row.items()}}
            for system, row in means.items()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def by_warmth(
        self, *, users: str | None = None, undefined: str | None = None, over: str | None = None
    ) -> pl.DataFrame:
        """Return the means on users with (warm) and without (cold) training ratings.

        A row per metric and system: `users` averaged, how many of them are `cold`, and the means
        `on_warm`, `on_cold` and `on_all` of them; null where there are none.
        """
        self._with_train("with-train")
        return warmth_table(self, RANDOM, users=users, undefined=undefined, over=over)

    def of_lists(self, keep: Mask) -> Self:
        """Return the scores of some lists; metrics of a whole run are left out."""

        def part(system: System) -> System:
            den = {row: values[keep] for row, values in system.den.items()}
            return System(np.ascontiguousarray(system.values[:, keep]), den, system.depth[keep])

        return replace(
            self,
            systems={name: part(system) for name, system in self.systems.items()},
            lists=self.lists.filter(pl.Series(keep)),
            order=tuple(label for label in self.order if label in self.labels),
            chance=None if self.chance is None else part(self.chance),
        )

    def per_user(self, system: str | None = None) -> pl.DataFrame:
        """Return the values of each list: a row per system and list, a column per metric.

        All users that occur anywhere have a row. `test`, `liked` and `disliked` count the user's
        test judgments, `depth` the items of the list and `train`, where known, the training
        ratings. `users="with-test"` averages the rows where `test` is above 0, `"with-relevant"`
        those where `liked` is, `"with-list"` `depth`, `"both"` `test` and `depth`,
        `"with-train"` `train`, `"warm"` `test` and `train`, `"all"` every row.

        A metric that is averaged as a ratio of sums has a second column ending in `/den`.
        """
        names = list(self.systems) if system is None else [self._system(system)]
        return pl.concat([self._frame(name, self.systems[name], counts=True) for name in names])

    def to_polars(self) -> pl.DataFrame:
        """Return `per_user()`."""
        return self.per_user()

    def long_table(self) -> pl.DataFrame:
        """Return a row per system and metric: its mean, over how many users, how many undefined."""
        rows = [
            (system, label, None if math.isnan(m.value) else m.value, m.users, m.undefined)
            for system, row in self._with_chance().items()
            for label, m in row.items()
        ]
        columns = ("system", "metric", "mean", "users", "undefined")
        return pl.DataFrame(rows, columns, orient="row", infer_schema_length=None)

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the means, the best of each metric in bold."""
        means = {
            system: {label: mean.value for label, mean in row.items()}
            for system, row in self._with_chance().items()
        }
        better = {label: self.metrics[label].better for label in self.order}
        digits = self.digits if digits is None else digits
        return [means_table(means, better, tuple(self.systems), digits)]

    def _content(self) -> dict[str, object]:
        return {
            system: {
                label: {"mean": mean.value, "users": mean.users} for label, mean in row.items()
            }
            for system, row in self._with_chance().items()
        }

    def _with_chance(self, **averaging: str | None) -> dict[str, dict[str, Mean]]:
        """Return the means of all systems and, where it is known, of chance."""
        chance = self.random_means(**averaging)
        return {**self.averages(**averaging), **({RANDOM: chance} if chance else {})}

    def values(self, system: str, metric: str) -> F64:
        """Return one metric's values, an entry per list."""
        label = self._label(metric)
        if label not in self.labels:
            raise SettingError(f"{label} describes a whole run: it has no value per list")
        row: F64 = self.systems[self._system(system)].values[self.labels.index(label)]
        return row

    def averaged(self, system: str, users: str | None = None) -> Mask:
        """Tell which lists a mean of this system is taken over."""
        users = choose("users", users, USERS) if users else self.users
        return self._averaged(self.systems[self._system(system)], users)

    def _averaged(self, system: System, users: str) -> Mask:
        if users == "all":
            return np.ones(self.lists.height, np.bool_)
        tested: Mask = self.lists["liked" if users == "with-relevant" else "test"].to_numpy() > 0
        if users in TRAINED:
            trained = self._with_train(users)
            return trained if users == "with-train" else trained & tested
        if users in ("with-list", "both"):
            listed: Mask = system.depth > 0
            return listed if users == "with-list" else listed & tested
        return tested

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder: a Parquet file per system and `card.json`; all of it or nothing.

        The card holds a digest of every file and of itself: `load` finds what was changed later.
        """
        with replacing_folder(folder) as part:
            self._write(part)

    def _write(self, folder: Path) -> None:
        names = {name: f"{number:04d}.parquet" for number, name in enumerate(self.systems)}
        digests = {}

        def write(frame: pl.DataFrame, file: str) -> None:
            write_table(frame, folder / file, "parquet")
            digests[file] = digest_of_file(folder / file)

        for name, file in names.items():
            write(self._frame(name, self.systems[name]), file)
        if self.chance is not None:
            write(self._frame(RANDOM, self.chance), "random.parquet")
        write(self._keyed(self.lists.drop("user")), "lists.parquet")
        content = {
            "format": FORMAT,
            "digests": digests,
            "systems": [
                {"name": n, "file": f, "aggregates": finite(self.systems[n].aggregates)}
                for n, f in names.items()
            ],
            **{name: getattr(self, name) for name in SAVED},
            "simulated": dict(self.simulated),
            "chance": None if self.chance is None else finite(self.chance.aggregates),
            "card": self.card,
            **({"library": self.library} if self.library else {}),
            **({"meanings": dict(self.meanings)} if self.meanings else {}),
        }
        write_sealed(folder / "card.json", content)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Scores:
        """Read what `save` wrote; DataError if any of it was changed since."""
        path = Path(folder)
        try:
            number = json.loads(inner_path(path, "card.json").read_text("utf-8"))["format"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise DataError(f"{path}: there are no saved scores here ({problem})") from None
        if number != FORMAT:
            raise DataError(f"{path}: saved in format {number}, this version reads {FORMAT}")
        try:
            content = read_sealed(path / "card.json")
        except ValueError as problem:
            raise DataError(f"{path}: {problem}; evaluate and save again") from None

        def table(file: str) -> pl.DataFrame:
            return _read(inner_path(path, file), content["digests"][file])

        keyed = table("lists.parquet")
        ids, codes = Ids.number(keyed["user"])
        labels = tuple(content["labels"])
        systems = {
            entry["name"]: system_of(table(entry["file"]), labels, entry["aggregates"])
            for entry in content["systems"]
        }
        chance = content["chance"]
        if chance is not None:
            chance = system_of(table("random.parquet"), labels, chance)
        return cls(
            labels,
            systems,
            ids,
            keyed.with_columns(user=pl.Series(codes)),
            content["users"],
            content["undefined"],
            tuple(content["order"]),
            partial(dict, content["card"]),
            tuple(content["notes"]),
            content["relevance"],
            content["over"],
            chance,
            content["simulated"],
            content.get("library", ""),
            content.get("meanings", {}),
        )

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**state, "make_card": partial(dict, self.card)}

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, {counted(len(self.order), 'metric')}, "
            f"{counted(self.lists.height, 'list')}"
        )

    def _explanation(self) -> list[str]:
        counts = {
            mean.users
            for system, row in self.averages().items()
            for label, mean in row.items()
            if label in self.labels
        }
        number = " or ".join(f"{count:,}" for count in sorted(counts))
        undefined = "count as 0" if self.undefined == "zero" else "are left out"
        unit = "users" if self.over == "lists" and not self._several else self.over
        unit = SINGULAR[unit] if counts == {1} else unit
        first = ", of each the mean of the lists" if self.over == "users" else ""
        lines = [f"mean over {number} {unit} ({self.users}){first}; undefined values {undefined}"]
        if self.library:
            averaged = f"mean over {number} {unit}, as {self.library} takes it"
            lines = [averaged] if counts else []
        if self.chance is not None:
            lines.append(f"{RANDOM}: the expected score of a random order of the same targets")
        if self.simulated:
            for draws in sorted(set(self.simulated.values())):
                names = ", ".join(name for name, n in self.simulated.items() if n == draws)
                lines.append(
                    f"{RANDOM} of {names}: simulated, mean of {counted(draws, 'random order')}"
                )
        lines += [self.relevance] if self.relevance else []
        return [*lines, *warmth_lines(self, RANDOM, self.digits)]

    @property
    def _several(self) -> bool:
        """Whether a user can have several lists."""
        return "anchor" in self.lists.columns or "stratum" in self.lists.columns

    def _with_train(self, users: str) -> Mask:
        if "train" not in self.lists.columns:
            raise SettingError(f"users={users!r} needs the training ratings: give train=…")
        trained: Mask = self.lists["train"].to_numpy() > 0
        return trained

    def _means(self, system: System, users: str, undefined: str, over: str) -> dict[str, Mean]:
        keep = self._averaged(system, users)
        average = {
            "lists": self._over_lists,
            "users": self._over_users,
            "strata": self._over_strata,
        }[over]
        lists = int(np.count_nonzero(system.depth > 0))
        aggregates = {label: Mean(value, lists) for label, value in system.aggregates.items()}
        means = {**average(system, keep, undefined), **aggregates}
        return {label: means[label] for label in self.order if label in means}

    def _over_lists(self, system: System, keep: Mask, undefined: str) -> dict[str, Mean]:
        means = {}
        sums = exact_sums(system.values, keep)
        for row, (label, (total, added, missing)) in enumerate(zip(self.labels, sums, strict=True)):
            if row in system.den:
                bottom = exact_sums(system.den[row][None, :], keep)[0][0]
                value = total / bottom if bottom else (0.0 if undefined == "zero" else math.nan)
                means[label] = Mean(value, added + missing, missing)
                continue
            count = added + (missing if undefined == "zero" else 0)
            # An integer quotient is rounded once: the exact mean, in any order of blocks.
            value = total / (count << 1074) + 0.0 if count else math.nan
            means[label] = Mean(value, count, missing)
        return means

    def _over_users(self, system: System, keep: Mask, undefined: str) -> dict[str, Mean]:
        """Average each user's lists, then users."""
        _, user = np.unique(self.lists["user"].to_numpy()[keep], return_inverse=True)
        people = int(user.max(initial=-1)) + 1

        def of_row(row: int) -> Mean:
            values = system.values[row][keep]
            missing = np.isnan(values)
            top = np.bincount(user, np.where(missing, 0.0, values), people)
            weight = np.ones(values.size) if undefined == "zero" else (~missing).astype(np.float64)
            if row in system.den:
                weight = system.den[row][keep]
            bottom = np.bincount(user, weight, people)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = top / bottom
            if undefined == "zero":
                means = np.where(bottom > 0, means, 0.0)
            valid = ~np.isnan(means)
            mean = math.fsum(means[valid]) / int(valid.sum()) if valid.any() else math.nan
            return Mean(mean, int(valid.sum()), int(missing.sum()))

        return {label: of_row(row) for row, label in enumerate(self.labels)}

    def _over_strata(self, system: System, keep: Mask, undefined: str) -> dict[str, Mean]:
        """Average each stratum's lists, then strata; a stratum without lists has no mean."""
        stratum = self.lists["stratum"].to_numpy()
        parts = [
            self._over_lists(system, keep & (stratum == number), undefined)
            for number in np.unique(stratum[keep])
        ]

        def of_label(label: str) -> Mean:
            means = [part[label] for part in parts]
            values = [mean.value for mean in means if not math.isnan(mean.value)]
            average = math.fsum(values) / len(values) if values else math.nan
            return Mean(average, len(values), sum(mean.undefined for mean in means))

        return {label: of_label(label) for label in self.labels}

    def _label(self, metric: str) -> str:
        if metric in self.order:
            return metric
        parsed = parse(metric)
        result = [label for label in self.order if self.metrics[label] == parsed]
        if not result:
            raise unknown_name("metric of these scores", metric, self.order)
        return result[0]

    def _system(self, system: str) -> str:
        if system not in self.systems:
            raise unknown_name("system", system, self.systems)
        return system

    def _keyed(self, frame: pl.DataFrame) -> pl.DataFrame:
        user = self.user_ids.raw(self.lists["user"].to_numpy()).rename("user")
        return pl.DataFrame([user, *frame.get_columns()])

    def _frame(self, name: str, system: System, *, counts: bool = False) -> pl.DataFrame:
        """Return a system's values and, with `counts`, what tells whom its means are over."""
        columns: dict[str, object] = {}
        if counts:
            columns = {key: self.lists[key] for key in COUNTS if key in self.lists.columns}
        columns["depth"] = pl.Series(system.depth)
        for row, label in enumerate(self.labels):
            columns[label] = pl.Series(system.values[row])
            if row in system.den:
                columns[f"{label}/den"] = pl.Series(system.den[row])
        for key in ("stratum", "anchor", "time", "step", "session"):
            if key in self.lists.columns:
                columns = {key: self.lists[key], **columns}
        keyed = self._keyed(pl.DataFrame(columns))
        return keyed.insert_column(0, pl.Series("system", [name] * keyed.height, dtype=pl.String))


def _read(path: Path, expected: str) -> pl.DataFrame:
    try:
        if digest_of_file(path) != expected:
            raise DataError(f"{path}: changed since it was saved; evaluate and save again")
        return pl.read_parquet(local_path(path), glob=False)
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise DataError(f"{path}: a part of saved scores cannot be read ({problem})") from None


def system_of(
    table: pl.DataFrame, labels: tuple[str, ...], aggregates: Mapping[str, float | None]
) -> System:
    """Read a system's values from a table: a column per metric, `depth`, and denominators."""
    values = np.array([table[label].to_numpy() for label in labels])
    den = {
        row: table[f"{label}/den"].to_numpy()
        for row, label in enumerate(labels)
        if f"{label}/den" in table.columns
    }
    finite = {label: math.nan if value is None else value for label, value in aggregates.items()}
    return System(values.reshape(len(labels), table.height), den, table["depth"].to_numpy(), finite)


def exact_sums(values: F64, keep: Mask) -> list[tuple[int, int, int]]:
    """Add rows without rounding: (sum in units of 2**-1074, values defined, values NaN) of each."""
    from unskew.metrics.kernels import lists as kernels

    number = int(np.count_nonzero(keep))
    chosen = np.ascontiguousarray(values if number == keep.size else values[:, keep])
    limbs, missing = kernels.exact_sums(chosen.view(np.int64))
    words = limbs.astype("<u4")  # the low 32 bits of each
    return [
        (int.from_bytes(row.tobytes(), "little", signed=True), number - undefined, undefined)
        for row, undefined in zip(words, missing.tolist(), strict=True)
    ]
