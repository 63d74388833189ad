"""Labels of people for some of the recommended pairs, and how these pairs were drawn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import choose
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.errors import DataError, SettingError
from unskew.judging.shape import DISLIKED, View
from unskew.labels.recommended_pairs import (
    STRATA,
    PlaceSum,
    RecommendedPairs,
    place_sums,
)
from unskew.report.text import counted

PROBABILITY, STRATUM = "probability", "stratum"
"""The columns of a sample that say how it was drawn."""
SIMPLE, STRATIFIED, UNEQUAL = "simple", "strata", "probabilities"


@dataclass(frozen=True, eq=False, kw_only=True)
class HumanSample:
    """The recommended pairs that people labelled, in ascending order, and how they were drawn."""

    row: I64
    """Which recommended pair it is."""
    value: F64
    """The label."""
    probability: F64
    """How likely each pair was to be drawn."""
    stratum: I64
    """0, 1, … for each pair; 0 for all where the sample has no strata."""
    names: tuple[str, ...]
    """Of the strata."""
    kind: str
    """`simple`: every set of n pairs was as likely as any other. `strata`: so within each stratum.
    `probabilities`: pairs were drawn one by one with the probabilities given."""
    outside: int = 0
    """Labels of pairs that no system recommends, which are left out."""
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.row.size)

    @cached_property
    def number(self) -> F64:
        """By stratum: how many of its pairs are labelled."""
        return np.bincount(self.stratum, minlength=len(self.names)).astype(np.float64)

    @cached_property
    def unsampled(self) -> F64:
        """By stratum: the share of its pairs that is not in the sample."""
        expected = np.bincount(self.stratum, self.probability, len(self.names))
        return np.maximum(1.0 - expected / np.maximum(self.number, 1.0), 0.0)

    def view(self, relevance: Relevance) -> View:
        """Take the labels by a relevance rule."""
        label = np.subtract(DISLIKED, relevance.is_liked(self.value), dtype=np.int8)
        return View(frozen(label), self.value, relevance)

    def describe(self) -> str:
        """Say how the sample is taken."""
        if self.kind == SIMPLE:
            return "taken as a simple random sample"
        if self.kind == STRATIFIED:
            return f"taken as random within {counted(len(self.names), 'stratum', 'strata')}"
        return "taken as drawn with the probabilities given"


def read_people(source: object, probability: str | None = None) -> Ratings:
    """Read labels of people with the columns that say how their pairs were drawn.

    Parameters
    ----------
    source
        Anything that `read_ratings` takes. The columns `probability` and `stratum` are kept.
    probability
        The name of the column with inclusion probabilities, where it is another.
    """
    column = PROBABILITY if probability is None else probability
    people = read_ratings(source, optional_tags=(column, STRATUM), feedback="explicit")
    if probability is not None and probability not in people.tags:
        raise SettingError(f"probability: the labels of people have no column {probability!r}")
    if "pooled" not in people.tags:
        return people
    judged: Mask = ~people.tags["pooled"].to_numpy().astype(np.bool_)
    left = int(np.count_nonzero(~judged))
    if not left:
        return people
    note = f"{counted(left, 'row')} of people with a negative grade left out: not judged"
    return replace(people.take(judged), notes=(*people.notes, note))


def human_sample(
    people: Ratings,
    pairs: RecommendedPairs,
    probability: str | None = None,
    strata: str | None = None,
) -> HumanSample:
    """Find labels of people among the recommended pairs, and say how these were drawn.

    Parameters
    ----------
    people
        As `read_people` gives them.
    pairs
        The recommended pairs.
    probability
        The name of the column with inclusion probabilities, where it is not `probability`.
    strata
        One of `STRATA`: the sample was drawn at random within these strata of the pairs.
    """
    notes, everything = [*people.notes], len(people)
    people, rows = _recommended(people, pairs.rows_of(people), notes)
    if strata is not None:
        design = _known_strata(rows, pairs, choose("strata", strata, STRATA))
    else:
        design = _as_drawn(people, len(pairs), probability or PROBABILITY, notes)
    names, stratum = _joined(design.names, design.stratum, design.probability, notes)
    order = np.argsort(rows, kind="stable")
    return HumanSample(
        row=frozen(rows[order]),
        value=frozen(people.value[order]),
        probability=frozen(design.probability[order]),
        stratum=frozen(stratum[order]),
        names=names,
        kind=design.kind,
        outside=everything - len(people),
        notes=tuple(notes),
    )


class _DrawnPairs(NamedTuple):
    """How pairs were drawn."""

    kind: str
    probability: F64
    names: tuple[str, ...]
    stratum: I64


def _recommended(ratings: Ratings, rows: I64, notes: list[str]) -> tuple[Ratings, I64]:
    """Leave out labels of pairs that no system recommends."""
    inside = rows >= 0
    if not inside.any():
        user, item = (
            [repr(value) for value in ids.values.head(1).to_list()]
            for ids in (ratings.users, ratings.items)
        )
        raise DataError(
            f"no system recommends any of the {counted(len(ratings), 'pair')} that people labelled "
            f"(users such as {user[0] if user else '–'}, items such as {item[0] if item else '–'}):"
            f" are ids written as in the runs, and are lists cut at the same place?"
        )
    left = int(np.count_nonzero(~inside))
    if left:
        notes.append(
            f"{counted(left, 'label of people is', 'labels of people are')} of pairs that no "
            f"system recommends down to the cutoff, and left out"
        )
    return ratings.take(inside), rows[inside]


def _as_drawn(ratings: Ratings, population: int, column: str, notes: list[str]) -> _DrawnPairs:
    """Take probabilities and strata from the columns of the sample."""
    number = len(ratings)
    single = ("all",), np.zeros(number, np.int64)
    has_strata = STRATUM in ratings.tags
    if column not in ratings.tags:
        if has_strata:
            raise SettingError(
                "the labels of people have a column 'stratum' but none with probabilities: add "
                "'probability' (labelled pairs of the stratum / all its pairs), or leave the "
                "column out if all pairs were as likely to be drawn"
            )
        return _DrawnPairs(SIMPLE, np.full(number, number / population), *single)
    probability = _probabilities(ratings, column)
    names, stratum = _codes(ratings.tags[STRATUM]) if has_strata else single
    if not _is_even(probability, stratum):
        if has_strata:
            notes.append(
                "probabilities differ within strata: pairs are taken as drawn one by one with these"
            )
        return _DrawnPairs(UNEQUAL, probability, *single)
    return _DrawnPairs(STRATIFIED if len(names) > 1 else SIMPLE, probability, names, stratum)


def _known_strata(rows: I64, pairs: RecommendedPairs, by: str) -> _DrawnPairs:
    """Take the sample as drawn at random within strata of the recommended pairs."""
    strata = pairs.strata(by)
    stratum = strata.code[rows].astype(np.int64)
    counts = np.bincount(stratum, minlength=len(strata.names))
    empty = [name for name, number in zip(strata.names, counts, strict=True) if not number]
    if empty:
        raise DataError(
            f"strata={by!r}: people labelled no pair of {empty[0]!r} (of "
            f"{counted(len(strata.names), 'stratum', 'strata')}: {', '.join(strata.names)}), so "
            f"that stratum cannot be estimated; leave strata=… out if pairs were drawn from all "
            f"alike"
        )
    kind = STRATIFIED if len(strata.names) > 1 else SIMPLE
    return _DrawnPairs(kind, (counts / strata.sizes)[stratum], strata.names, stratum)


def _probabilities(ratings: Ratings, column: str) -> F64:
    """Return the probabilities of a sample, or refuse them with the first bad row."""
    raw = ratings.tags[column]
    # A column of a text file that is kept as a tag is text.
    value = raw.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()
    valid = (value > 0) & (value <= 1)
    if not valid.all():
        row = int(np.argmin(valid))
        frame = ratings.take(np.array([row])).to_polars()
        number = counted(int(np.count_nonzero(~valid)), "row is", "rows are")
        raise DataError(
            f"column {column!r}: probabilities must be above 0 and at most 1, but {number} not, "
            f"the first: user {frame['user'][0]!r}, item {frame['item'][0]!r} with {raw[row]!r}"
        )
    return np.ascontiguousarray(value)


def _codes(column: pl.Series) -> tuple[tuple[str, ...], I64]:
    """Number the strata by name."""
    ids, code = Ids.number(column.cast(pl.String).fill_null("–"))
    return tuple(ids.values), code.astype(np.int64)


def _joined(
    names: Sequence[str], stratum: I64, probability: F64, notes: list[str]
) -> tuple[tuple[str, ...], I64]:
    """Join strata with one label, of which no variance is known, to that of nearest probability."""
    number = np.bincount(stratum, minlength=len(names))
    single = np.flatnonzero(number == 1)
    if not single.size or len(names) == 1:
        return tuple(names), stratum
    mean = np.bincount(stratum, probability, len(names)) / np.maximum(number, 1)
    target = np.arange(len(names))
    others = np.flatnonzero(number > 1)
    for index in single:
        near = others if others.size else single[single != index]
        target[index] = near[int(np.argmin(np.abs(np.log(mean[near] / mean[index]))))]
    if not others.size:
        target[:] = single[0]
    notes.append(
        f"{counted(int(single.size), 'stratum has', 'strata have')} one label only, which shows no "
        f"variance: joined to the stratum with the nearest probability"
    )
    present, code = np.unique(target[stratum], return_inverse=True)
    return tuple(names[index] for index in present), code.astype(np.int64)


def _is_even(probability: F64, stratum: I64) -> bool:
    """Tell whether probabilities are equal within strata, up to rounding in a file."""
    low, high = (np.full(stratum.max(initial=0) + 1, end) for end in (np.inf, 0.0))
    np.minimum.at(low, stratum, probability)
    np.maximum.at(high, stratum, probability)
    return bool((high <= low * (1 + 1e-3)).all())


CLOSE = 2e-3
"""Probabilities in a file are rounded: so far may their sum be from the number of pairs."""


class SampleFrame(NamedTuple):
    """The pairs that do not count alike for two systems, from which a sample was drawn."""

    a: str
    b: str
    row: I64
    """Which recommended pairs, ascending."""

    @property
    def reason(self) -> str:
        """Say why other contrasts cannot be estimated."""
        return (
            f"pairs that count alike for {self.a} and {self.b} were never drawn; the labels show "
            f"the difference of these two alone (a plan for levels draws from all pairs)"
        )

    def holds(self, row: I64) -> bool:
        """Tell whether all these pairs could be drawn."""
        return bool(np.isin(row, self.row, assume_unique=True).all())


def sample_frame(
    pairs: RecommendedPairs, sample: HumanSample, sums: Mapping[str, PlaceSum]
) -> SampleFrame | None:
    """Return the pairs that a sample was drawn from; None for all, and where it is not known.

    They are those of the difference of two systems if all sampled pairs are among these, and if
    the probabilities stand for as many.

    Parameters
    ----------
    pairs, sample
        The recommended pairs, and those that people labelled.
    wanted
        The metrics; by DCG pairs count alike only at the same place.
    """
    if sample.kind == UNEQUAL or _fits(sample, len(pairs)):
        return None
    for a, b, row in _differences(pairs, sums):
        if _fits(sample, row.size) and np.isin(sample.row, row, assume_unique=True).all():
            return SampleFrame(a, b, row)
    return None


def _differences(
    pairs: RecommendedPairs, sums: Mapping[str, PlaceSum]
) -> Iterator[tuple[str, str, I64]]:
    metrics = [*sums.values(), *place_sums("DCG").values()]
    for metric in metrics:
        coefficients = pairs.coefficients(metric)
        for a, b in combinations(pairs.systems, 2):
            yield a, b, coefficients.contrast(a, b)[0]


def _fits(sample: HumanSample, size: int) -> bool:
    """Tell whether the probabilities stand for about so many pairs."""
    weight = 1.0 / sample.probability
    tolerance = max(0.5, CLOSE * size)
    if sample.outside:  # how many of the pairs drawn are recommended is up to chance
        tolerance = max(
            tolerance, 3.0 * math.sqrt(float(((1.0 - sample.probability) * weight**2).sum()))
        )
    return abs(float(weight.sum()) - size) <= tolerance
