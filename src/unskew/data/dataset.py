"""`Dataset`: ratings with what is known about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from unskew.checks import check_fields
from unskew.data.ratings import Ratings
from unskew.data.true_judgments import POOLED, RANDOM, TrueJudgments
from unskew.errors import SettingError
from unskew.report.text import counted


@dataclass(frozen=True, eq=False)
class Dataset:
    """Ratings, the random part if there is one, and what belongs to them.

    Examples
    --------
    >>> from unskew.data.dataset import Dataset
    >>> import unskew as us
    >>> ratings = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
    >>> print(Dataset("shop", ratings, scale=(1, 5), liked=4))
    shop: 3 ratings of 2 items by 2 users, scale 1 to 5, liked from 4
    """

    name: str
    ratings: Ratings
    """The observed ratings: as a rule what users chose to rate, so missing not at random."""
    random: Ratings | None = None
    """Ratings of randomly chosen items (missing at random), or of every pair of some users and
    items, over the same ids."""
    scale: tuple[float, float] | None = None
    liked: float | None = None
    """The smallest rating that is liked, as the literature takes it for these data."""
    features: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """Tables about users or items, by name."""
    notes: tuple[str, ...] = ()
    """What reading did that is worth knowing: what was left out, and how much."""
    truth: TrueJudgments | None = None
    """Judgments without the bias of what users chose to rate, where there is more to say of them
    than that they are `random`; see `true_part`."""

    def __post_init__(self) -> None:
        check_fields(self)
        truth, random = self.truth, self.random
        if truth is None or truth.kind == POOLED or random is None:
            return
        if truth.ratings is not random:
            raise SettingError(
                "random=… and truth=… hold different judgments: give one of them, or truth of "
                "kind 'pooled' beside random ratings"
            )

    @property
    def true_part(self) -> TrueJudgments | None:
        """The judgments by which systems are judged without that bias; None where there are none.

        Random ones come before pooled ones: they have no bias of the systems that were pooled.
        """
        truth, random = self.truth, self.random
        if random is None or (truth is not None and truth.kind != POOLED):
            return truth
        return TrueJudgments(random, RANDOM)

    def _repr_html_(self) -> str:
        from unskew.data.notebook_cards import of_dataset

        return of_dataset(self)

    def __str__(self) -> str:
        text = (
            f"{self.name}: {counted(len(self.ratings), 'rating')} of "
            f"{counted(len(self.ratings.items), 'item')} by "
            f"{counted(len(self.ratings.users), 'user')}"
        )
        if self.random is not None and (self.truth is None or self.truth.kind == POOLED):
            text += f", {counted(len(self.random), 'random rating')}"
        if self.scale is not None:
            text += f", scale {self.scale[0]:g} to {self.scale[1]:g}"
        if self.liked is not None:
            text += f", liked from {self.liked:g}"
        return text if self.truth is None else f"{text}; {self.truth}"
