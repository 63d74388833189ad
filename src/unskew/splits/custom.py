"""`Custom`: a function that splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass
from typing import ClassVar

from unskew.data.ratings import Ratings
from unskew.settings import declare
from unskew.splits.split import Split, Splitter


@dataclass(frozen=True)
class Custom(Splitter):
    """A way to split of your own, as a function.

    Examples
    --------
    >>> import unskew as us
    >>> def even_items_test(ratings, seed):
    ...     even = ratings.item % 2 == 0
    ...     return us.Split(ratings.take(~even), ratings.take(even))
    >>> data = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 1]})
    >>> us.splits.Custom("even items", even_items_test).split(data)
    [Split(even items: train 1, test 2)]
    """

    label: str = declare(MISSING, "Name of the protocol.")
    function: Callable[[Ratings, int], Split | Iterable[Split]] = declare(
        MISSING,
        """Takes ratings and a seed and returns a `Split`, or several. To run in several processes
        it must be importable (not a lambda).""",
        repr=False,
    )
    version: str | int | None = declare(
        None,
        """Version of the function: change it when the function changes. Without a version results
        are not stored.""",
    )

    name: ClassVar[str] = "custom"
    draw_name: ClassVar[str] = "custom"
    not_on_cards: ClassVar[frozenset[str]] = frozenset({"function"})

    @property
    def title(self) -> str:
        """Its label."""
        return self.label

    def make_splits(self, ratings: Ratings, seed: int) -> Split | Iterable[Split]:
        """Call the function."""
        return self.function(ratings, seed)
