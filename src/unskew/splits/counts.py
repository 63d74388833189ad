"""`count_parts`: what a split did to the data, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from unskew.arrays import I64, frozen
from unskew.data.summary import Summary, gini, item_counts
from unskew.splits.split import Split, shared_rows


def count_parts(split: Split) -> Summary:
    """Count what a split did: sizes, cold and lost users and items, popularity, time, duplicates.

    Users and items are *cold* with test ratings but no training ratings, *untested* with training
    but no test ratings, and *lost* with ratings in neither part. `train_popularity` is the mean
    number of training ratings of the item of a training rating, `test_popularity` that of a test
    rating. The Gini indices are over all items. `before_user_train` is the share of test ratings
    that are earlier than their user's last training rating, `before_any_train` the share of those
    that are earlier than the last training rating of anyone; both are None without time stamps.
    `duplicates` are the user-item pairs in both parts.

    Parameters
    ----------
    split
        Any split.
    """
    train, test = split.train, split.test
    popularity, tested = item_counts(train), item_counts(test)
    same_user, any_user = _earlier(split)
    facts = {
        "label": split.label,
        "train": len(train),
        "test": len(test),
        **_overlap("users", np.diff(train.start), np.diff(test.start)),
        **_overlap("items", popularity, tested),
        "duplicates": int(np.count_nonzero(shared_rows(test, train))),
        "train_popularity": _mean(popularity, popularity),
        "test_popularity": _mean(popularity, tested),
        "train_gini": gini(popularity),
        "test_gini": gini(tested),
        "before_user_train": same_user,
        "before_any_train": any_user,
    }
    per_item = {"training": frozen(popularity), "test": frozen(tested)}
    return Summary(split.label, split_lines(facts), facts, per_item)


def split_lines(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a split did as lines of text.

    Parameters
    ----------
    facts
        The facts of `count_parts`, or what a card holds of them.
    """

    def late(share: float | None) -> str:
        return "unknown (no time stamps)" if share is None else f"{share:.1%}"

    sizes = [
        f"  {kind}  {facts[f'train_{kind}']:,} in training, {facts[f'test_{kind}']:,} in test; "
        f"{facts[f'cold_{kind}']:,} cold, {facts[f'untested_{kind}']:,} untested, "
        f"{facts[f'lost_{kind}']:,} lost"
        for kind in ("users", "items")
    ]
    return (
        f"{facts['label']}: {facts['train']:,} training and {facts['test']:,} test ratings",
        *sizes,
        f"  popularity  mean training ratings of an item: {facts['train_popularity']:,.1f} per "
        f"training rating, {facts['test_popularity']:,.1f} per test rating; Gini "
        f"{facts['train_gini']:.3f} and {facts['test_gini']:.3f}",
        f"  test before training  of the same user: {late(facts['before_user_train'])}, of anyone: "
        f"{late(facts['before_any_train'])}",
        f"  pairs in both parts  {facts['duplicates']:,}",
    )


def _overlap(kind: str, train: I64, test: I64) -> dict[str, int]:
    """Count those with training and with test ratings, the cold, the untested and the lost."""
    trained, tested = train > 0, test > 0
    masks = {
        "train": trained,
        "test": tested,
        "cold": tested & ~trained,
        "untested": trained & ~tested,
        "lost": ~trained & ~tested,
    }
    return {f"{name}_{kind}": int(np.count_nonzero(mask)) for name, mask in masks.items()}


def _mean(popularity: I64, ratings: I64) -> float:
    """Return the mean popularity of the rated items, a rating being the unit."""
    return int(popularity @ ratings) / max(int(ratings.sum()), 1)


def _earlier(split: Split) -> tuple[float | None, float | None]:
    """Return which share of test ratings precede training ratings: own ones, anyone's."""
    from unskew.splits import kernels

    train, test = split.train, split.test
    if train.time is None or test.time is None or not len(train) or not len(test):
        return None, None
    same_user = kernels.precede(test.start, frozen(test.time), train.start, frozen(train.time))
    any_user = int(np.count_nonzero(test.time < train.time.max()))
    return same_user / len(test), any_user / len(test)
