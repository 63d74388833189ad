"""`TrueJudgments`: judgments by which systems are judged without the bias of what users chose."""

from __future__ import annotations

from dataclasses import dataclass

from unskew.checks import check_fields, choose
from unskew.data.ratings import Ratings
from unskew.errors import SettingError

RANDOM, EXHAUSTIVE, POOLED = "random", "exhaustive", "pooled"
KINDS = {
    RANDOM: "judgments of randomly chosen items",
    EXHAUSTIVE: "judgments of every pair of some users and items",
    POOLED: "judgments of the items that several systems listed",
}
"""By kind of true judgments: what was judged."""
ALL, JUDGED = "all", "judged"
CANDIDATES = (ALL, JUDGED)


@dataclass(frozen=True, eq=False)
class TrueJudgments:
    """Judgments of items that users did not choose to rate, and which pairs these are.

    `random`: pairs drawn at random. `exhaustive`: every pair of these users and items, but for a
    few. `pooled`: complete only within what several systems listed; the rest is unjudged, not
    disliked.

    Examples
    --------
    >>> import unskew as us
    >>> pool = us.read_ratings({"user": [1, 1, 2], "item": [7, 9, 7], "rating": [0, 3, 2]})
    >>> print(us.data.TrueJudgments(pool, kind="pooled", liked=2))
    3 judgments of the items that several systems listed, liked from 2
    """

    ratings: Ratings
    kind: str = RANDOM
    """`random`, `exhaustive` or `pooled`."""
    candidates: str | None = None
    """Which items they speak of: `all` of the data, or those `judged` at least once, such as the
    pool from which a service drew. `all` for random ones unless given, else `judged`."""
    liked: float | None = None
    """The smallest judgment that is liked; None: as in the observed ratings."""
    scale: tuple[float, float] | None = None
    """Where it is not that of the observed ratings."""

    def __post_init__(self) -> None:
        check_fields(self)
        choose("kind", self.kind, KINDS)
        usual = ALL if self.kind == RANDOM else JUDGED
        chosen = choose(
            "candidates", usual if self.candidates is None else self.candidates, CANDIDATES
        )
        if self.kind != RANDOM and chosen != JUDGED:
            raise SettingError(
                f"candidates='all' goes with kind='random': {self.kind} judgments speak of the "
                "items that were judged"
            )
        object.__setattr__(self, "candidates", chosen)

    @property
    def words(self) -> str:
        """What was judged, after a number of judgments."""
        return KINDS[self.kind].removeprefix("judgments ")

    def __str__(self) -> str:
        liked = "" if self.liked is None else f", liked from {self.liked:g}"
        count = len(self.ratings)
        noun = "judgment" if count == 1 else "judgments"
        return f"{count:,} {noun} {self.words}{liked}"
