"""`Scores`: the value of every metric for every list of every system, and their means."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError, choose, unknown_name
from unskew.files import replacing, write_table
from unskew.metrics.names import Metric, parse
from unskew.threads import map_blocks

F64 = NDArray[np.float64]

USERS = ("with-test", "with-relevant", "with-list", "both", "with-train", "all")
"""Which users are averaged; see `Scores.mean`."""
UNDEFINED = ("zero", "skip")
FORMAT = 1


@dataclass(frozen=True)
class Mean:
    """A mean and what it is a mean of."""

    value: float
    users: int
    """The denominator: how many lists were averaged."""
    undefined: int = 0
    """How many of these have no defined value (counted as 0, or skipped)."""


@dataclass(frozen=True, eq=False)
class System:
    """The values of one system: a row per metric, a column per list."""

    values: F64
    den: Mapping[int, F64] = field(default_factory=dict)
    """For metrics whose mean is a ratio of sums: row number to denominators."""
    depth: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    aggregates: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the whole run, by label."""


@dataclass(frozen=True, eq=False)
class Scores:
    """The value of every metric for every list of every system.

    Made by `evaluate`. Undefined values are NaN; 0 is a measured zero.
    """

    labels: tuple[str, ...]
    """Metrics with a value per list, as they were asked for."""
    systems: Mapping[str, System]
    user_ids: Ids
    lists: pl.DataFrame
    """One row per list: `user` (number), `liked`, `disliked`, `test`, `train`."""
    users: str = "with-test"
    undefined: str = "zero"
    order: tuple[str, ...] = ()
    """All labels, whole-run metrics included, in the order asked for."""
    make_card: Callable[[], Mapping[str, Any]] = dict
    """Makes `card`, at its first use: the fingerprint of much data takes a while."""
    notes: tuple[str, ...] = ()
    relevance: str = ""
    """How ratings were taken, in words."""

    @cached_property
    def card(self) -> Mapping[str, Any]:
        """Everything from which a number can be derived again."""
        return self.make_card()

    @cached_property
    def metrics(self) -> dict[str, Metric]:
        """Each label's metric."""
        return {label: parse(label) for label in self.order}

    def mean(
        self, metric: str | None = None, *, users: str | None = None, undefined: str | None = None
    ) -> dict[str, dict[str, float]] | dict[str, float]:
        """Return exactly rounded means: by system and metric, or by system for one metric.

        Parameters
        ----------
        metric
            One metric's label; all unless given.
        users
            Which users are averaged: `with-test` (at least one test judgment), `with-relevant`
            (at least one liked), `with-list`, `both` (list and judgment: trec_eval without -c),
            `with-train`, or `all` (every user that occurs anywhere). Default: as evaluated.
        undefined
            `zero` counts undefined values as 0, `skip` leaves them out. Default: as evaluated.
        """
        means = self.means(users=users, undefined=undefined)
        if metric is not None:
            label = self._label(metric)
            return {system: row[label].value for system, row in means.items()}
        return {
            system: {label: mean.value for label, mean in row.items()}
            for system, row in means.items()
        }

    def means(
        self, *, users: str | None = None, undefined: str | None = None
    ) -> dict[str, dict[str, Mean]]:
        """Return means with their denominators; see `mean`."""
        users = choose("users", users or self.users, USERS)
        undefined = choose("undefined", undefined or self.undefined, UNDEFINED)
        size = sum(system.values.size for system in self.systems.values())

        def one(name: str) -> dict[str, Mean]:
            return self._means(name, users, undefined)

        return dict(zip(self.systems, map_blocks(one, self.systems, size=size), strict=True))

    def table(self, *, users: str | None = None, undefined: str | None = None) -> pl.DataFrame:
        """Return the means as a table: a row per system, a column per metric."""
        means = self.means(users=users, undefined=undefined)
        rows = [
            {"system": system, **{label: mean.value for label, mean in row.items()}}
            for system, row in means.items()
        ]
        return pl.DataFrame(rows)

    def per_user(self, system: str | None = None) -> pl.DataFrame:
        """Return the values of each list: system, user, a column per metric.

        A metric that is averaged as a ratio of sums has a second column ending in `/den`.
        """
        names = list(self.systems) if system is None else [self._system(system)]
        return pl.concat([self._frame(name) for name in names])

    def to_pandas(self) -> Any:
        """Return `per_user()` as a pandas frame (pandas must be installed)."""
        import pandas as pd

        frame = self.per_user()
        return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})

    def values(self, system: str, metric: str) -> F64:
        """Return one metric's values, an entry per list."""
        label = self._label(metric)
        if label not in self.labels:
            raise SettingError(f"{label} describes a whole run: it has no value per list")
        row: F64 = self.systems[self._system(system)].values[self.labels.index(label)]
        return row

    def averaged(self, system: str, users: str | None = None) -> NDArray[np.bool_]:
        """Tell which lists a mean of this system is taken over."""
        users = choose("users", users or self.users, USERS)
        if users == "with-train":
            return self._with_train()
        tested = self.lists["test"].to_numpy() > 0
        listed = self.systems[self._system(system)].depth > 0
        choices: dict[str, NDArray[np.bool_]] = {
            "with-test": tested,
            "with-relevant": self.lists["liked"].to_numpy() > 0,
            "with-list": listed,
            "both": tested & listed,
            "all": np.ones(tested.size, np.bool_),
        }
        return choices[users]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a folder: a Parquet file per system and `card.json`, which comes last."""
        home = Path(folder)
        (home / "card.json").unlink(missing_ok=True)  # without it nothing half-written is read
        names = {name: f"{number:04d}.parquet" for number, name in enumerate(self.systems)}
        for name, file in names.items():
            write_table(self._frame(name, depth=True), home / file, "parquet")
        write_table(self._keyed(self.lists.drop("user")), home / "lists.parquet", "parquet")
        content = {
            "format": FORMAT,
            "systems": [
                {"name": n, "file": f, "aggregates": _plain(self.systems[n].aggregates)}
                for n, f in names.items()
            ],
            "labels": self.labels,
            "order": self.order,
            "users": self.users,
            "undefined": self.undefined,
            "notes": self.notes,
            "relevance": self.relevance,
            "card": self.card,
        }
        with replacing(home / "card.json") as part:
            part.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Scores:
        """Read what `save` wrote."""
        home = Path(folder)
        try:
            content = json.loads((home / "card.json").read_text())
            number = content["format"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            raise DataError(f"{home}: no saved scores here ({problem})") from None
        if number != FORMAT:
            raise DataError(f"{home}: saved in format {number}, this version reads {FORMAT}")
        keyed = _read(home / "lists.parquet")
        ids, codes = Ids.number(keyed["user"])
        labels = tuple(content["labels"])
        systems = {}
        for entry in content["systems"]:
            frame = _read(home / entry["file"])
            values = np.array([frame[label].to_numpy() for label in labels])
            den = {
                row: frame[f"{label}/den"].to_numpy()
                for row, label in enumerate(labels)
                if f"{label}/den" in frame.columns
            }
            aggregates = {
                label: math.nan if value is None else value
                for label, value in entry["aggregates"].items()
            }
            systems[entry["name"]] = System(
                values.reshape(len(labels), frame.height),
                den,
                frame["depth"].to_numpy(),
                aggregates,
            )
        return cls(
            labels, systems, ids,
            keyed.with_columns(user=pl.Series(codes)),
            content["users"], content["undefined"], tuple(content["order"]),
            partial(dict, content["card"]), tuple(content["notes"]), content["relevance"],
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "make_card": partial(dict, self.card)}

    def __str__(self) -> str:
        with pl.Config(
            tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, tbl_rows=-1,
            tbl_cols=-1, float_precision=4,
        ):  # fmt: skip
            table = str(self.table())
        return "\n".join([table, *self.footer()])

    def __repr__(self) -> str:
        return (
            f"Scores({len(self.systems)} systems, {len(self.order)} metrics, "
            f"{self.lists.height:,} lists)"
        )

    def _repr_html_(self) -> str:
        from html import escape

        foot = "<br>".join(escape(line) for line in self.footer())
        return f"{self.table()._repr_html_()}<p>{foot}</p>"

    def footer(self) -> list[str]:
        """Return the lines that say how the means came about."""
        counts = {
            mean.users
            for system, row in self.means().items()
            for label, mean in row.items()
            if label in self.labels
        }
        number = " or ".join(f"{count:,}" for count in sorted(counts))
        undefined = "count as 0" if self.undefined == "zero" else "are left out"
        lines = [f"mean over {number} users ({self.users}); undefined values {undefined}"]
        return [*lines, self.relevance] if self.relevance else lines

    def _with_train(self) -> NDArray[np.bool_]:
        if "train" not in self.lists.columns:
            raise SettingError("users='with-train' needs the training ratings: give train=…")
        trained: NDArray[np.bool_] = self.lists["train"].to_numpy() > 0
        return trained

    def _means(self, name: str, users: str, undefined: str) -> dict[str, Mean]:
        system = self.systems[name]
        keep = self.averaged(name, users)
        lists = int(np.count_nonzero(system.depth > 0))

        sums = _exact_sums(system.values, keep)

        rows = {label: row for row, label in enumerate(self.labels)}

        def one(label: str) -> Mean:
            if label not in rows:
                return Mean(system.aggregates[label], lists)
            row = rows[label]
            total, added, missing = sums[row]
            if row in system.den:
                bottom = _exact_sums(system.den[row][None, :], keep)[0][0]
                value = total / bottom if bottom else (0.0 if undefined == "zero" else math.nan)
                return Mean(value, added + missing, missing)
            count = added + (missing if undefined == "zero" else 0)
            # An integer quotient is rounded once: the exact mean, in any order of blocks.
            return Mean(total / (count << 1074) + 0.0 if count else math.nan, count, missing)

        return {label: one(label) for label in self.order}

    def _label(self, metric: str) -> str:
        if metric in self.order:
            return metric
        wanted = parse(metric)
        found = [label for label in self.order if self.metrics[label] == wanted]
        if not found:
            raise unknown_name("metric of these scores", metric, self.order)
        return found[0]

    def _system(self, system: str) -> str:
        if system not in self.systems:
            raise unknown_name("system", system, self.systems)
        return system

    def _keyed(self, frame: pl.DataFrame) -> pl.DataFrame:
        user = self.user_ids.raw(self.lists["user"].to_numpy()).rename("user")
        return pl.DataFrame([user, *frame.get_columns()])

    def _frame(self, name: str, *, depth: bool = False) -> pl.DataFrame:
        system = self.systems[name]
        columns: dict[str, object] = {}
        if depth:
            columns["depth"] = pl.Series(system.depth)
        for row, label in enumerate(self.labels):
            columns[label] = pl.Series(system.values[row])
            if row in system.den:
                columns[f"{label}/den"] = pl.Series(system.den[row])
        keyed = self._keyed(pl.DataFrame(columns))
        return keyed.insert_column(0, pl.Series("system", [name] * keyed.height, dtype=pl.String))


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as problem:
        raise DataError(f"{path}: a part of saved scores cannot be read ({problem})") from None


def _plain(aggregates: Mapping[str, float]) -> dict[str, float | None]:
    return {label: None if math.isnan(value) else value for label, value in aggregates.items()}


def _exact_sums(values: F64, keep: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    """Add rows without rounding: (sum in units of 2**-1074, values defined, values NaN) of each."""
    from unskew.metrics import _kernels

    kept = int(np.count_nonzero(keep))
    chosen = np.ascontiguousarray(values if kept == keep.size else np.where(keep, values, 0.0))
    limbs, missing = _kernels.exact_sums(chosen.view(np.int64))
    words = limbs.astype("<u4")  # the low 32 bits of each
    return [
        (int.from_bytes(row.tobytes(), "little", signed=True), kept - undefined, undefined)
        for row, undefined in zip(words, missing.tolist(), strict=True)
    ]
