"""`Rows`: what ratings and event logs have in common, users and items in numbered rows."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.steps import Size, Step


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a user, an item and a value each, as numbers of `users` and `items`."""

    users: Sized
    items: Sized
    user: I32
    item: I32
    value: F64
    time: I64 | None
    tags: Mapping[str, pl.Series] = field(default_factory=dict)
    implicit: bool = False
    notes: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    noun: ClassVar[str]
    """What a row is."""
    hint: ClassVar[str]
    """What a notebook says of how to see more."""

    def __len__(self) -> int:
        return int(self.user.size)

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        return card(type(self).__name__, "", self.main_facts(), self.notes, self.hint)

    def take(self, rows: slice | I64 | Mask) -> Self:
        """Return some rows, under the same ids: a slice, a mask, or row numbers in order."""
        tags = self.tags
        if tags:
            index = pl.Series(np.arange(len(self))[rows])
            tags = {name: column.gather(index) for name, column in tags.items()}
        return replace(
            self,
            user=frozen(self.user[rows]),
            item=frozen(self.item[rows]),
            value=frozen(self.value[rows]),
            time=None if self.time is None else frozen(self.time[rows]),
            tags=tags,
        )

    def size(self) -> Size:
        """Count rows, and the users and items that have one."""
        return Size(len(self), _different(self.user), _different(self.item))

    def main_facts(self) -> list[tuple[str, object]]:
        """Return what people ask of data first, as names and values.

        Examples
        --------
        >>> import unskew as us
        >>> few = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
        >>> few.main_facts()[3:]
        [('density', '75 %'), ('values', '1 to 5')]
        """
        users, items = len(self.users), len(self.items)
        facts: list[tuple[str, object]] = [
            (self.noun, len(self)),
            ("users", users),
            ("items", items),
        ]
        if len(self):
            facts.append(("density", f"{100 * len(self) / (users * items):.3g} %"))
            low, high = float(self.value.min()), float(self.value.max())
            values = f"{low:g} to {high:g}"
            if self.implicit:
                values = "none: every rating counts 1" if low == high == 1 else f"counts, {values}"
            facts.append(("values", values))
            if self.time is not None:
                limits = np.array([self.time.min(), self.time.max()], "datetime64[us]")
                facts.append(("time", " to ".join(map(str, limits.astype("datetime64[D]")))))
        if self.tags:
            facts.append(("tags", ", ".join(self.tags)))
        facts += [(f"step {number + 1}", str(step)) for number, step in enumerate(self.steps)]
        return facts


def _different(numbers: I32) -> int:
    """Count the different numbers; marks of a byte stay in the cache where counts would not."""
    seen = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    seen[numbers] = True
    return int(np.count_nonzero(seen))
