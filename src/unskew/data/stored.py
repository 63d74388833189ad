"""Ratings and event logs in a store: kept as Arrow files under a key of their content."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.data.events import Events
from unskew.data.ratings import Ids, Ratings
from unskew.data.steps import Step
from unskew.engine.store import Store, StoreError


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
