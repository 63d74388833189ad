"""What a reader of the numbers should know of lists and judgments: every sentence stands here once.

In memory the facts are counted over all lists, on disk they are added up over parts of the users.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I64, Mask
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, DataWarning
from unskew.judging.ranked import Ranked, Undrawn
from unskew.judging.shape import Basis, Matched, Numbering
from unskew.report.text import counted
from unskew.runs import Run
from unskew.targets.lists import TargetLists

_FEWEST_USERS = 5
_FEWEST_RANKS = 3
Remark = tuple[str, bool]
"""A sentence, and whether it is grave: then it is a warning too."""


@dataclass(frozen=True)
class Attention:
    """What is looked at, as far as remarks depend on it; labels are those of metrics."""

    cutoffs: Mapping[str, int] = field(default_factory=dict)
    condensed: bool = False
    """Whether something looks at judged items only."""
    needs_disliked: tuple[str, ...] = ()
    """What cannot tell good from bad without disliked judgments."""


@dataclass(frozen=True)
class SystemFacts:
    """What is counted of one system's lists."""

    deepest: int
    """Items of the longest list."""
    without_list: int
    """Users with test data for whom there is no list."""
    without_test: int
    """Lists of users without test data."""
    is_full: bool = False
    """Whether lists go to the last target."""
    in_training: int = 0
    """Slots that hold an item of the user's training ratings."""
    constant: int = 0
    """Lists of two or more items whose scores are all equal."""
    cold_without_list: int = 0
    """Of the users without a list, those without training ratings."""
    are_several: bool = False
    """Whether users have several lists: then these are counted, not users."""

    @classmethod
    def of(cls, matched: Matched, basis: Basis) -> SystemFacts:
        """Count over all lists of a system."""
        tested = np.diff(basis.judgments.start) > 0
        missing = tested & (matched.depth == 0)
        train, in_training, cold = basis.train, 0, 0
        are_several = basis.are_several
        owner = basis.owner if are_several else None
        if train is not None and (are_several or train.users.equals(basis.judgments.users)):
            in_training = 0 if matched.is_full else matched.overlap(train, owner)
            trained = np.diff(train.start) > 0
            cold = int(np.count_nonzero(missing & ~(trained if owner is None else trained[owner])))
        ties = None
        if not isinstance(matched, Ranked):
            ties = matched.run.tie_counts or matched.run.counts.ties
        return cls(
            deepest=int(matched.depth.max(initial=0)),
            without_list=int(np.count_nonzero(missing)),
            without_test=int(np.count_nonzero(~tested & (matched.depth > 0))),
            is_full=matched.is_full,
            in_training=in_training,
            constant=0 if ties is None else ties.constant,
            cold_without_list=cold,
            are_several=are_several,
        )

    def remarks(self, name: str, users: str, attention: Attention) -> Iterator[Remark]:
        """Yield what to know of the system; `users` says who is averaged."""
        beyond = [label for label, cutoff in attention.cutoffs.items() if cutoff > self.deepest]
        if beyond:
            yield (
                f"{name}: the lists hold at most {counted(self.deepest, 'item')}, fewer than the "
                f"cutoff of {', '.join(beyond)}",
                True,
            )
        if not self.is_full and attention.condensed:
            yield (
                f"{name}: condensed metrics use only the first {counted(self.deepest, 'item')} "
                "of each list; judged items further down are not seen",
                False,
            )
        averaged = users in ("warm", "with-train")
        without_list = self.without_list - (self.cold_without_list if averaged else 0)
        if without_list:
            left_out = users in ("both", "with-list")
            effect = "left out of the means" if left_out else "they score 0"
            lack = f"{_users_with_test(without_list)} no list"
            if self.are_several:
                singular = "list with test data is missing"
                lack = counted(without_list, singular, "lists with test data are missing")
            yield f"{name}: {lack}; {effect}", False
        if self.without_test and not self.is_full:
            averaged = users in ("all", "with-list")
            whose = ("", "") if self.are_several else (" of a user", " of users")
            singular = f"list{whose[0]} without test data " + (
                "scores 0" if averaged else "is not averaged"
            )
            plural = f"lists{whose[1]} without test data " + (
                "score 0" if averaged else "are not averaged"
            )
            yield f"{name}: {counted(self.without_test, singular, plural)}", False
        if self.constant:
            lists = counted(self.constant, "list has", "lists have")
            yield f"{name}: {lists} equal scores only", False
        if self.in_training:
            yield (
                f"{name}: "
                f"{counted(self.in_training, 'recommended item is', 'recommended items are')} in "
                "the user's training ratings",
                True,
            )


def table_of_lists(systems: Mapping[str, Matched | None], judgments: Ratings) -> pl.DataFrame:
    """Return a row per system with its lists and their items; of None only the name."""
    tested = np.diff(judgments.start) > 0
    rows = []
    for name, matched in systems.items():
        row: dict[str, Any] = {"system": name}
        if matched is not None:
            listed, filled = matched.depth > 0, int(matched.depth.sum())
            row |= {
                "lists": int(listed.sum()),
                "without_list": int(np.count_nonzero(tested & ~listed)),
                "without_test": int(np.count_nonzero(listed & ~tested)),
                "items": filled,
                "judged": matched.overlap(judgments) / filled if filled else None,
            }
        rows.append(row)
    counts = ("lists", "without_list", "without_test", "items")
    schema = {"system": pl.String, **dict.fromkeys(counts, pl.Int64), "judged": pl.Float64}
    return pl.DataFrame(rows, schema=schema)


def unscored_notes(systems: Mapping[str, Matched], targets: TargetLists | None) -> Iterator[str]:
    """Yield what models could not score."""
    for name, matched in systems.items():
        if isinstance(matched, Undrawn):
            lost = int(np.isnan(matched.rank).sum())
            if lost:
                yield (
                    f"{name}: {counted(lost, 'relevant item')} could not be scored, which "
                    "counts as 0"
                )
        elif isinstance(matched, Ranked):
            from unskew.judging.rank import say_unscored  # lists that are given need no ranking

            assert targets is not None
            unscored = int(matched.ranks.unscored.sum())
            yield from (f"{name}: {text}" for text in say_unscored(targets, unscored))


def _users_with_test(number: int, unit: str = "user") -> str:
    return counted(number, f"{unit} with test data has", f"{unit}s with test data have")


def judgment_remarks(
    disliked: int, without_liked: int, needs_disliked: tuple[str, ...], unit: str = "user"
) -> Iterator[Remark]:
    """Yield what to know of the judgments: how many are disliked, whose users like nothing.

    The `unit` is that of `without_liked`: users, or lists where users have several.
    """
    if needs_disliked and not disliked:
        yield (
            f"no judgment is disliked: {', '.join(needs_disliked)} cannot tell good from bad "
            "here (bpref only measures coverage)",
            True,
        )
    if without_liked:
        yield f"{_users_with_test(without_liked, unit)} no liked item", False


def catalogue_remarks(basis: Basis, systems: Mapping[str, Matched]) -> Iterator[Remark]:
    """Yield the size of the catalogue, where it is counted, and what lies outside of it."""
    catalogue = basis.catalogue
    if catalogue is None:
        return
    yield f"catalogue: {counted(int(catalogue.sum()), 'item')}", False
    yield from outside_remarks(catalogue, systems)


def outside_remarks(
    catalogue: Mask, systems: Mapping[str, Matched], advice: str = ": give items=…"
) -> Iterator[Remark]:
    """Yield how many recommended items lie outside the catalogue; `advice` ends the sentence."""
    recommended = np.zeros(catalogue.size, np.bool_)
    for matched in systems.values():
        occurs = np.zeros(matched.from_run.size + 1, np.bool_)
        occurs[matched.run.item] = True  # -1, an empty slot, is the last one
        recommended[matched.from_run[occurs[:-1]]] = True
    outside = int(np.count_nonzero(recommended & ~catalogue))
    if outside:
        items = counted(outside, "recommended item is", "recommended items are")
        yield f"{items} outside the catalogue{advice}", True


def all_remarks(
    basis: Basis, systems: Mapping[str, Matched], users: str, attention: Attention
) -> Iterator[Remark]:
    """Yield what to know of all systems, of the judgments and of the catalogue."""
    for name, matched in systems.items():
        yield from SystemFacts.of(matched, basis).remarks(name, users, attention)
    tested = np.diff(basis.judgments.start) > 0
    without_liked = int(np.count_nonzero(tested & (basis.liked == 0)))
    unit = "list" if basis.are_several else "user"
    disliked = int(basis.disliked.sum())
    yield from judgment_remarks(disliked, without_liked, attention.needs_disliked, unit)
    yield from catalogue_remarks(basis, systems)


def say_strangers(what: str, mine: tuple[str, str], theirs: tuple[str, str]) -> str:
    """Say that a run and the judgments share no `users`, or no `items`.

    Given are the kind of the ids, and some of them, of both.
    """
    zero = ": none of its items is judged" if what == "items" else ""
    return (
        f"no {what} in common with the judgments{zero}. Its ids are {mine[0]}, such as {mine[1]}; "
        f"the judgments' are {theirs[0]}, such as {theirs[1]}. Check that both use the same ids"
    )


def strangers(what: str, mine: Ids, theirs: Ids) -> str:
    """Say the same of two sets of ids."""
    sides = ((ids.kind, ", ".join(map(repr, ids.values.head(3)))) for ids in (mine, theirs))
    return say_strangers(what, *sides)


def checked_numbering(
    tests: Ratings, train: Ratings | None, runs: Mapping[str, Run], items: pl.Series | None
) -> Numbering:
    """Number users and items of all sources alike and check that they meet.

    Refuses a run that shares no user with the judgments: no list would be judged at all, ids do not
    match. Warns of one that shares no item: every value is 0, which can be true of a system.
    """
    numbering = Numbering.of(tests, train, runs, items)
    is_user, is_item = (
        np.zeros(len(ids), np.bool_)
        for ids in (numbering.judgments.users, numbering.judgments.items)
    )
    is_user[numbering.tests[0]], is_item[numbering.tests[1]] = True, True
    notes: list[str] = []
    for name, run in runs.items():
        users, listed = numbering.runs[name]
        if not is_user[users].any():
            raise DataError(f"{name}: {strangers('users', run.users, tests.users)}")
        if not is_item[listed].any():
            notes.append(warn(f"{name}: {strangers('items', run.items, tests.items)}"))
    _check_not_swapped(tests, runs, numbering)
    return replace(numbering, notes=tuple(notes))


def _check_not_swapped(tests: Ratings, runs: Mapping[str, Run], numbering: Numbering) -> None:
    """Refuse ranked lists that are given as test ratings."""
    length = np.diff(tests.start)
    length = length[length > 0]
    if length.size < _FEWEST_USERS or "pooled" in tests.tags:
        return
    reason = ""
    if _are_ranks(tests, length):
        reason = "the values of each user are the ranks 1, 2, 3, …"
    elif length.min() == length.max() >= _FEWEST_RANKS:
        reason = _uneven_lists(int(length[0]), runs, numbering)
    if reason:
        raise DataError(
            f"the test ratings look like ranked lists: {reason}. Are test ratings and lists "
            "swapped?"
        )


def _are_ranks(tests: Ratings, length: I64) -> bool:
    """Tell whether the values of each user are the numbers from 1 up, each once."""
    if length.min() < _FEWEST_RANKS or tests.implicit:
        return False
    # Sums are quick and rule nearly everything out: ranks add up to n (n + 1) / 2.
    sums = np.add.reduceat(tests.value, (np.cumsum(length) - length))
    if (sums != length * (length + 1) / 2).any():
        return False
    order = np.lexsort((tests.value, tests.user))
    first = np.repeat(np.cumsum(length) - length, length)
    return bool((tests.value[order] == np.arange(tests.value.size) - first + 1).all())


def _uneven_lists(length: int, runs: Mapping[str, Run], numbering: Numbering) -> str:
    """Name a run of lists of many lengths, most of whose items occur in no other source."""
    unknown = np.ones(len(numbering.judgments.items), np.bool_)
    trained = None if numbering.trained is None else numbering.trained[1]
    for table in (numbering.tests[1], trained, numbering.items):
        if table is not None:
            unknown[table] = False
    for name, run in runs.items():
        depth = run.depth[run.depth > 0]
        if depth.size < _FEWEST_USERS or depth.min() == depth.max():
            continue
        of_run = unknown[numbering.runs[name][1]]
        share = float(of_run[run.item[run.item >= 0]].mean()) if run.item.size else 0.0
        if share > 0.5:
            return (
                f"every user has {length} of them, while the lists of {name} have from "
                f"{depth.min()} to {depth.max()} items, {share:.0%} of which are not among the "
                "test items"
            )
    return ""


def warn(text: str) -> str:
    """Warn of the data, where this package was called from; return the text."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("unskew."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, DataWarning, stacklevel=level)
    return text


def as_notes(remarks: Iterator[Remark]) -> list[str]:
    """Return the sentences; warn of the grave ones."""
    return [warn(text) if is_grave else text for text, is_grave in remarks]
