"""`Parts`: what a reader of a named data set returns, and the rules about its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from unskew.checks import choose
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.true_judgments import POOLED, RANDOM
from unskew.data.user_samples import afresh
from unskew.report.text import counted

OVERLAP = ("keep", "drop-from-test")


@dataclass(frozen=True)
class Parts:
    """What was read: the ratings, the random or pooled ones, tables, and remarks."""

    ratings: Ratings
    random: Ratings | None = None
    """Ratings of items that were drawn at random, or of every pair of some users and items."""
    features: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    pooled: Ratings | None = None
    """Judgments of the items that several systems listed."""
    liked: float | None = None
    """The threshold, where it depends on the options; None: that of the data set."""
    scale: tuple[float, float] | None = None
    """Likewise."""
    true_liked: float | None = None
    """The threshold of the pooled judgments, where they have a scale of their own."""
    true_scale: tuple[float, float] | None = None
    kind: str = RANDOM
    """What `random` holds: see `TrueJudgments`."""

    def remarks(self) -> tuple[str, ...]:
        """Return what is worth knowing: about the reading, then about each part."""
        named = {"observed": self.ratings, self.kind: self.random, POOLED: self.pooled}
        parts = {label: part for label, part in named.items() if part is not None}
        if len(parts) == 1:
            return (*self.notes, *self.ratings.notes)
        lines = [f"{label}: {note}" for label, part in parts.items() for note in part.notes]
        return (*lines, *self.notes)

    def over_same_ids(self) -> Parts:
        """Return all parts under one numbering of users and items."""
        others = [part for part in (self.random, self.pooled) if part is not None]
        if not others:
            return self
        ratings, *rest = under_one_numbering(self.ratings, *others)
        random = None if self.random is None else rest[0]
        return replace(
            self, ratings=ratings, random=random, pooled=None if self.pooled is None else rest[-1]
        )

    def settle_overlap(self, overlap: str) -> Parts:
        """Keep pairs that are in both parts, or take them out of the random one; count them.

        castells2018 section 5.2.1: they belong to training.
        """
        choose("overlap", overlap, OVERLAP)
        if self.random is None:
            return self
        mine, theirs = (
            part.user.astype(np.int64) * len(part.items) + part.item
            for part in (self.ratings, self.random)
        )
        again = np.isin(theirs, mine, assume_unique=True)
        count = int(np.count_nonzero(again))
        random = self.random if overlap == "keep" else self.random.take(~again)
        what = "kept in both" if overlap == "keep" else f"taken out of the {self.kind} part"
        note = f"{counted(count, 'pair is', 'pairs are')} in both parts: {what}"
        return replace(self, random=random, notes=(*self.notes, note))

    def among_common_users(self) -> Parts:
        """Keep the ratings of users who have random ratings too (carraro2020 section 4.1)."""
        if self.random is None:
            return self
        common = np.zeros(len(self.random.users), np.bool_)
        common[self.random.user] = True
        kept = self.ratings.take(common[self.ratings.user])
        left = len(self.ratings) - len(kept)
        note = f"{counted(left, 'rating')} of users without random ratings left out"
        parts = replace(self, ratings=afresh(kept), random=afresh(self.random))
        return replace(parts.over_same_ids(), notes=(*self.notes, note))
