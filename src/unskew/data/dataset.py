"""`Dataset`: ratings with what is known about them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.checks import check_fields, choose
from unskew.data.events import Events
from unskew.data.ratings import Ids, Ratings
from unskew.data.steps import Step
from unskew.engine.store import Store, StoreError
from unskew.errors import SettingError
from unskew.report.text import counted

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
        from unskew.report.notebook_view import card

        scale = None if self.scale is None else f"{self.scale[0]:g} to {self.scale[1]:g}"
        facts = [
            *self.ratings.main_facts(),
            ("true part", None if self.true_part is None else str(self.true_part)),
            ("scale", scale),
            ("liked", None if self.liked is None else f"{self.liked:g} and more"),
            ("features", ", ".join(self.features)),
        ]
        notes = tuple(dict.fromkeys((*self.ratings.notes, *self.notes)))
        return card("Dataset", self.name, facts, notes)

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


def put_data(store: Store, ratings: Ratings | Events) -> str:
    """Keep ratings or an event log in a store and return their key."""
    key = data_key(ratings)
    columns: dict[str, Any] = {
        "user": pl.Series(ratings.user),
        "item": pl.Series(ratings.item),
        "value": pl.Series(ratings.value),
    }
    if ratings.time is not None:
        columns["time"] = pl.Series(ratings.time)
    columns |= {f"tag {name}": column for name, column in ratings.tags.items()}
    frames = {
        "ratings": pl.DataFrame(columns),
        "users": ratings.users.values.to_frame("id"),
        "items": ratings.items.values.to_frame("id"),
    }
    facts: dict[str, Any] = {
        "implicit": ratings.implicit,
        "notes": list(ratings.notes),
        "rows": len(ratings),
    }
    if ratings.steps:
        facts["steps"] = [step.describe() for step in ratings.steps]
    if isinstance(ratings, Events):
        facts["events"] = True
    store.put_frames(key, frames, facts)
    return key


def stored_ratings(store: Store, key: str) -> Ratings:
    """Return kept ratings; StoreError if they are not as they were put there."""
    data = stored_data(store, key)
    assert isinstance(data, Ratings)
    return data


def stored_data(store: Store, key: str) -> Ratings | Events:
    """Return kept ratings or events; StoreError if they are not as they were put there."""
    frames, facts = store.frames(key)
    table = frames["ratings"]
    tags = {
        name.removeprefix("tag "): table[name] for name in table.columns if name.startswith("tag ")
    }
    columns: dict[str, Any] = {
        "users": Ids(frames["users"]["id"].alias("")),
        "items": Ids(frames["items"]["id"].alias("")),
        "user": frozen(table["user"].to_numpy()),
        "item": frozen(table["item"].to_numpy()),
        "value": frozen(table["value"].to_numpy()),
        "time": frozen(table["time"].to_numpy()) if "time" in table.columns else None,
        "tags": tags,
        "implicit": facts["implicit"],
        "notes": tuple(facts["notes"]),
        "steps": tuple(Step.from_card(card) for card in facts.get("steps", ())),
    }
    data = Events(**columns) if facts.get("events") else Ratings(**columns)
    if data_key(data) != key:
        raise StoreError(
            f"{store.home}: the ratings {key} are damaged; remove their folder and run again"
        )
    return data


def data_key(ratings: Ratings | Events) -> str:
    """Return a key of ratings with their times and tags, the same in any row order."""
    digest = hashlib.blake2b(ratings.fingerprint.encode(), digest_size=16)
    if ratings.time is not None:
        digest.update(np.ascontiguousarray(ratings.time).data)
    for name in sorted(ratings.tags):
        column = ratings.tags[name]
        digest.update(f"\x1f{name}\x1f{column.dtype}".encode())
        digest.update(column.cast(pl.String).fill_null("\x00").str.join("\x1f").item().encode())
    return digest.hexdigest()
