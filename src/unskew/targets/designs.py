"""Target items: what a system must rank, list by list.

`Targets` is a design: frozen settings. `Targets.lists` lays it over a split and gives
`TargetLists`, which every system is asked to rank: whose list it is, and, block by block, the items
in it. Sampled items are drawn by a counter hash when a block is asked for, so nothing large is ever
kept, and every system sees the same lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import I32, I64, U8, Mask, frozen
from unskew.checks import as_count, check, checked, choose
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance, as_relevance
from unskew.engine.rng import DrawKeyed, key_of
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.splits.popularity import item_counts
from unskew.splits.split import Split
from unskew.splits.strata import Strata, judgment_bins, percentiles

CANDIDATES = ("all", "test", "train")
RELEVANT = ("all", "one")
FIXED = ("liked", "judged")
BY = ("uniform", "popularity")
STRATA = ("items", "judgments")
SHORTAGE = ("shorten", "skip", "error")
SHORTFALL = ("count", "fill", "forgive")

BLOCK_ITEMS = 1 << 22
"""Target items that are held at a time."""


@dataclass(frozen=True)
class Targets(DrawKeyed):
    """Which items a system must rank: the design space of bellogin2017 section 3.2.

    Training items of the user are never targets. The named designs (`AllItems`, `TestItems`,
    `OneRelevant`, …) are settings of this one.

    Parameters
    ----------
    candidates
        Where targets come from: `all` items (AI), items with `test` ratings (TI), items with
        `train` ratings, or given raw ids.
    relevant
        `all`: one list per user with all of the user's test items (AR). `one`: a list per liked
        test item, with that one only (1R).
    others
        What is ranked against them: `all` remaining candidates (AN), or that many drawn (NN).
    fixed
        Which test items are in a list whatever is drawn: the `liked` ones (bellogin2017; disliked
        ones may be drawn), or all `judged` ones (castells2018). With `relevant="one"`: what is
        never drawn.
    by
        Draw `uniform`, or by `popularity` (in proportion to training ratings).
    fresh
        With `relevant="one"`: draw others anew for each list, or once per user.
    strata
        Rank within this many strata of items by popularity (P1R); results are averaged over
        strata.
    strata_by
        Strata of equal numbers of `items` by all ratings (bellogin2017 section 6.1), or of liked
        training `judgments` (castells2018 section 5.1.3).
    shortage
        A list with fewer candidates than `others` asks for is ranked as it is (`shorten`), left
        out (`skip`), or an `error`; both are counted.
    shortfall
        Where a system ranks fewer items than the cutoff: `count` the missing ones as not liked,
        `fill` up with its unscored targets in random order, or `forgive`: precision divides by
        what was ranked (castells2018 section 6.1).
    exact
        With `relevant="one"` and a number of others: draw none, and take the expectation over all
        draws. The rank of the relevant item among n others drawn from N, of which m stand above
        it, is 1 + a hypergeometric number, so the expectation of every metric of that rank is
        known: P, Recall, HitRate, F1, Rprec, AP, RR, DCG, nDCG, RBP. It takes models, not
        ready-made runs.

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.OneRelevant(others=99)
    OneRelevant(others=99)
    """

    candidates: str | tuple[Any, ...] = "all"
    relevant: str = "all"
    others: int | str = "all"
    fixed: str = "liked"
    by: str = "uniform"
    fresh: bool = True
    strata: int | None = None
    strata_by: str = "items"
    shortage: str = "shorten"
    shortfall: str = "count"
    exact: bool = False

    draw_name: ClassVar[str] = "targets"
    draw_omit_default: ClassVar[frozenset[str]] = frozenset({"exact"})

    def __post_init__(self) -> None:
        check("candidates", self.candidates, str | Iterable[Any])
        if isinstance(self.candidates, str):
            choose("candidates", self.candidates, CANDIDATES)
        elif not isinstance(self.candidates, tuple):
            object.__setattr__(self, "candidates", tuple(self.candidates))
        check("fresh", self.fresh, bool)
        choose("relevant", self.relevant, RELEVANT)
        choose("fixed", self.fixed, FIXED)
        choose("by", self.by, BY)
        choose("strata_by", self.strata_by, STRATA)
        choose("shortage", self.shortage, SHORTAGE)
        choose("shortfall", self.shortfall, SHORTFALL)
        if isinstance(self.others, str):
            choose("others", self.others, ("all",))
            if self.by == "popularity":
                raise SettingError("by='popularity' says how to draw: give a number of others")
        else:
            as_count("others", self.others, 0)
        if self.strata is not None:
            as_count("strata", self.strata, 2)
        if not isinstance(self.exact, bool):
            raise SettingError(f"exact must be true or false, got {self.exact!r}")
        if self.exact:
            self._check_exact()

    def _check_exact(self) -> None:
        """Refuse what has no known expectation, or nothing that is drawn."""
        if self.relevant != "one" or isinstance(self.others, str):
            raise SettingError(
                "exact=True is the expectation over draws of others beside one relevant item: it "
                "goes with relevant='one' and a number of others, as in OneRelevant(others=99)"
            )
        for name, value, why in (
            ("by", "popularity", "it is known for uniform draws"),
            ("fresh", False, "nothing is drawn, neither for each list nor once per user"),
            ("shortfall", "forgive", "what is ranked depends on the draw"),
        ):
            if getattr(self, name) == value:
                raise SettingError(f"exact=True does not go with {name}={value!r}: {why}")

    @property
    def drawn(self) -> int | None:
        """How many others are drawn; None if all are taken."""
        return None if isinstance(self.others, str) else int(self.others)

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for a card.

        `exact` only where it is set: results that were stored before it was there keep their key.
        """
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        return told if self.exact else {k: v for k, v in told.items() if k != "exact"}

    def __repr__(self) -> str:
        plain = {one.name: one.default for one in fields(self)}
        for name, design, own_defaults in _NAMED:
            if all(getattr(self, key) == value for key, value in design.items()):
                if name == "Percentiles" and self.strata is None:
                    continue
                usual = {**plain, **own_defaults}
                rest = {k: v for k, v in self.describe().items() if k not in design}
                own = {k: v for k, v in rest.items() if v != usual[k] or k in own_defaults}
                return f"{name}({', '.join(f'{k}={v!r}' for k, v in own.items())})"
        return f"Targets({', '.join(f'{k}={v!r}' for k, v in self.describe().items())})"

    def lists(
        self,
        split: Split,
        relevance: Relevance | str | None = None,
        *,
        liked: float | None = None,
        seed: int = 0,
        judgments: str | None = None,
    ) -> TargetLists:
        """Lay the design over a split: the lists to ask of every system.

        Parameters
        ----------
        split
            Training items are never targets; test ratings say what is relevant.
        relevance, liked
            Which test ratings are liked: a `Relevance`, or its threshold.
        seed
            Of the drawn others: same seed, same items, in any block order.
        judgments
            Judge by one of `split.judgments` (such as `true`) instead of the test ratings.
        """
        rule = relevance_of(relevance, liked)
        tests = split.test
        if judgments is not None:
            tests = split.judgments[choose("judgments", judgments, split.judgments)]
        return _lay(self, split, tests, rule, seed)


@checked
def AllItems(others: int | str = "all", **settings: Any) -> Targets:
    """All items but the user's training items (AI-AN; with a number of others, AI-NN)."""
    return Targets(candidates="all", others=others, **settings)


@checked
def TestItems(others: int | str = "all", **settings: Any) -> Targets:
    """Items with a test rating but the user's training items (TI-AN; with a number, TI-NN)."""
    return Targets(candidates="test", others=others, **settings)


@checked
def TrainItems(others: int | str = "all", **settings: Any) -> Targets:
    """Items with a training rating, as mena2021 ranks them."""
    return Targets(candidates="train", others=others, **settings)


@checked
def OneRelevant(
    others: int | str = 99, candidates: str | Sequence[Any] = "test", **settings: Any
) -> Targets:
    """One list per liked test item, with others that are not liked (1R; bellogin2017)."""
    chosen = candidates if isinstance(candidates, str) else tuple(candidates)
    return Targets(candidates=chosen, relevant="one", others=others, **settings)


@checked
def Percentiles(others: int | str = 99, strata: int = 10, **settings: Any) -> Targets:
    """One list per liked test item within its percentile of popularity (P1R; bellogin2017)."""
    return OneRelevant(others, settings.pop("candidates", "all"), strata=strata, **settings)


@checked
def TestTargets(shortfall: str = "count", **settings: Any) -> Targets:
    """Only the items that the user rated in the test part (castells2018 section 6.1)."""
    return Targets(candidates="test", others=0, fixed="judged", shortfall=shortfall, **settings)


@checked
def UserFlat(others: int | str, **settings: Any) -> Targets:
    """The user's test items and some others, not rated by the user (castells2018 section 6.2)."""
    return Targets(others=others, fixed="judged", **settings)


BY_NAME = {
    "all-items": AllItems,
    "test-items": TestItems,
    "train-items": TrainItems,
    "test-targets": TestTargets,
}
"""Designs with one list per user, by their names on the command line."""


# Names, the settings that make them, and the defaults of their own that are always shown.
_NAMED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("TestTargets", {"candidates": "test", "relevant": "all", "others": 0, "fixed": "judged"}, {}),
    ("Percentiles", {"candidates": "all", "relevant": "one"}, {"others": 99, "strata": 10}),
    ("OneRelevant", {"candidates": "test", "relevant": "one"}, {"others": 99}),
    ("UserFlat", {"candidates": "all", "relevant": "all", "fixed": "judged"}, {"others": 99}),
    ("AllItems", {"candidates": "all", "relevant": "all"}, {}),
    ("TestItems", {"candidates": "test", "relevant": "all"}, {}),
    ("TrainItems", {"candidates": "train", "relevant": "all"}, {}),
]


def relevance_of(relevance: Relevance | str | None, liked: float | None) -> Relevance:
    """Return the relevance rule that is given one way or the other."""
    if (relevance is None) == (liked is None):
        raise SettingError("say which ratings are liked: give either relevance or liked, such as 4")
    return as_relevance(relevance) if relevance is not None else Relevance(liked=liked)


@dataclass(frozen=True, eq=False)
class TargetLists:
    """The lists asked of every system: whose they are, and their target items block by block.

    Made by `Targets.lists`, or read from a file by `read_targets`.
    """

    design: Mapping[str, Any]
    """The settings and the seed from which they can be made again."""
    train: Ratings
    tests: Ratings
    """The judgments, a user's once."""
    relevance: Relevance
    user: I32
    """The user of each list; lists stand user by user."""
    anchor: I32
    """The one relevant item of each list, -1 where all are asked for."""
    stratum: I32
    """The stratum within which each list ranks, -1 without strata."""
    size: I64
    """Number of targets of each list."""
    source: _Drawn | Kept
    strata: int = 0
    shortfall: str = "count"
    seed: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.user.size)

    def __repr__(self) -> str:
        least, most = (int(self.size.min()), int(self.size.max())) if len(self) else (0, 0)
        return f"TargetLists({len(self):,} lists, {least:,} to {most:,} items each)"

    @cached_property
    def per_user(self) -> bool:
        """Whether list and user are the same: one list for each, in the order of the ids."""
        return (
            bool((self.anchor < 0).all()) and not self.strata and len(self) == len(self.tests.users)
        )

    @cached_property
    def whole(self) -> bool:
        """Whether each list holds all candidates of its stratum but the user's training items."""
        return isinstance(self.source, _Drawn) and self.source.n is None and not self.one_relevant

    @property
    def given(self) -> bool:
        """Whether the lists were read, not drawn."""
        return isinstance(self.source, Kept)

    @cached_property
    def one_relevant(self) -> bool:
        """Whether each list has one relevant item (1R)."""
        return bool(len(self)) and bool((self.anchor >= 0).all())

    @property
    def exact(self) -> bool:
        """Whether no others are drawn: values are expectations over all draws."""
        return bool(self.design.get("exact", False))

    @property
    def free(self) -> I64:
        """How many others each list could have, of which some are drawn; not of lists read."""
        assert isinstance(self.source, _Drawn)
        return self.source.free

    @property
    def candidates(self) -> Mask:
        """Which items can be targets at all."""
        if isinstance(self.source, _Drawn):
            return self.source.pool.home >= 0
        return np.bincount(self.source.item, minlength=len(self.tests.items)) > 0

    @property
    def pool(self) -> Pool:
        """The candidates that lists are drawn from, unless they were read (`given`)."""
        assert isinstance(self.source, _Drawn)
        return self.source.pool

    def block(self, lo: int, hi: int) -> tuple[I64, I32]:
        """Return the targets of lists lo..hi: where each one's items start, and the items.

        Items of a list ascend. The same whatever other blocks are asked for.
        """
        if not 0 <= lo <= hi <= len(self):
            raise SettingError(f"there are {len(self):,} lists; got {lo}..{hi}")
        if self.exact:
            raise SettingError(
                "with exact=True no others are drawn, so there are no lists to look at or to rank: "
                "leave exact out, or evaluate(lists, models)"
            )
        start = np.append(0, np.cumsum(self.size[lo:hi]))
        return start, self.source.items(self, lo, hi, start)

    def blocks(self, lo: int = 0, hi: int | None = None) -> Iterator[tuple[int, int]]:
        """Cut lists lo..hi into blocks of a bounded number of items."""
        end = len(self) if hi is None else hi
        before = np.append(0, np.cumsum(self.size[lo:end]))  # targets before each list
        at = 0
        while lo + at < end:
            room = np.searchsorted(before, before[at] + BLOCK_ITEMS, side="right")
            stop = max(int(room) - 1, at + 1)
            yield lo + at, lo + stop
            at = stop

    @cached_property
    def judgments(self) -> Ratings:
        """The judgments of each list, under list numbers: those of the user among its targets.

        Where a list asks for all relevant items, those outside the candidates stay in: no system
        can find them, and they count as missed.
        """
        if self.per_user and self.whole:
            return self.tests
        return _anchors(self) if self.exact else _judgments(self)

    @property
    def ids(self) -> Ids:
        """The names of the lists: numbers, or users where each has one list."""
        if isinstance(self.source, Kept):
            return self.source.names
        return self.tests.users if self.per_user else Ids(pl.Series(np.arange(len(self))))

    def to_polars(self, lo: int = 0, hi: int | None = None) -> pl.DataFrame:
        """Return lists lo..hi in full: list, user, anchor, stratum, item, with raw ids."""
        end = len(self) if hi is None else hi
        start, item = self.block(lo, end)
        rows = np.repeat(np.arange(lo, end, dtype=np.int32), np.diff(start))
        columns: dict[str, Any] = {
            "list": self.ids.raw(rows),
            "user": self.tests.users.raw(self.user[rows]),
            "item": self.tests.items.raw(item),
        }
        if self.one_relevant:
            columns["anchor"] = self.tests.items.raw(self.anchor[rows])
        if self.strata:
            columns["stratum"] = pl.Series(self.stratum[rows])
        return pl.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class Pool:
    """Candidate items, stratum by stratum."""

    home: I32
    """Each item's stratum, -1 if it is no candidate."""
    cand: I32
    """The candidates of one stratum after the other, ascending in each."""
    cand_start: I64

    @classmethod
    def of(cls, home: I32, m: int) -> Pool:
        """Group the candidates by stratum."""
        outside = int(np.count_nonzero(home < 0))
        cand = np.argsort(home, kind="stable")[outside:].astype(np.int32)
        sizes = np.bincount(home[cand], minlength=m)
        return cls(frozen(home), frozen(cand), frozen(np.append(0, np.cumsum(sizes))))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Targets that are drawn when they are asked for."""

    n: int | None
    fresh: bool
    key: int
    free: I64
    pool: Pool
    fixed: U8
    weight: I64
    cumulative: I64
    heaviest: I64

    def items(self, lists: TargetLists, lo: int, hi: int, start: I64) -> I32:
        from unskew.targets import kernels

        item = np.empty(int(start[-1]), np.int32)
        kernels.draw_lists(
            lists.user,
            lists.anchor,
            lists.stratum,
            lo,
            hi,
            -1 if self.n is None else self.n,
            self.free,
            np.uint64(self.key),
            self.fresh,
            self.pool.cand,
            self.pool.cand_start,
            self.pool.home,
            self.cumulative,
            self.weight,
            self.heaviest,
            lists.train.start,
            lists.train.item,
            lists.tests.start,
            lists.tests.item,
            self.fixed,
            frozen(start),
            item,
        )
        return item


@dataclass(frozen=True, eq=False)
class Kept:
    """Targets that were read from a file."""

    start: I64
    item: I32
    names: Ids
    """What the lists are called."""

    def items(self, lists: TargetLists, lo: int, hi: int, start: I64) -> I32:  # noqa: ARG002
        """Return the targets of lists lo..hi."""
        return self.item[self.start[lo] : self.start[hi]]


def _lay(
    targets: Targets, split: Split, tests: Ratings, relevance: Relevance, seed: int
) -> TargetLists:
    """Say which lists there are and how many targets each has."""
    from unskew.targets import kernels

    train = split.train
    strata = _strata(targets, split, relevance)
    pool = _candidates(targets, train, tests, strata)
    liked = relevance.is_liked(tests.value)
    fixed = frozen((liked if targets.fixed == "liked" else np.ones_like(liked)).astype(np.uint8))
    user, anchor, stratum, outside = _asked(targets, split, tests, liked, pool.home, strata)
    weight = item_counts(train) if targets.by == "popularity" else np.zeros(0, np.int64)
    free = np.empty(user.size, np.int64)
    kernels.count_others(
        user,
        stratum,
        pool.cand_start,
        pool.home,
        frozen(weight),
        train.start,
        train.item,
        tests.start,
        tests.item,
        fixed,
        free,
    )
    n = targets.drawn
    facts: dict[str, Any] = {"candidates": int(pool.cand.size), **outside}
    if n is not None:
        short = free < n
        facts["short_lists"] = int(np.count_nonzero(short))
        if facts["short_lists"] and targets.shortage == "error":
            raise _too_few(n, free, user, tests)
        if targets.shortage == "skip":
            facts["skipped_lists"] = facts["short_lists"]
            user, anchor, stratum = user[~short], anchor[~short], stratum[~short]
            free = free[~short]
    if not user.size:
        raise DataError(
            f"{targets!r} asks for no list: "
            + (
                f"no test rating among the candidates is liked ({relevance})"
                if not facts.get("skipped_lists")
                else f"every list has fewer than {n} candidates; lower others or shorten"
            )
        )
    user, anchor, stratum = frozen(user), frozen(anchor), frozen(stratum)
    free = frozen(free)
    size = free.copy() if n is None else np.minimum(free, n)
    if targets.relevant == "one":
        size += 1
    else:
        own = np.empty(user.size, np.int64)
        kernels.fixed_sizes(
            user, stratum, pool.home, train.start, train.item, tests.start, tests.item, fixed, own
        )
        size += own
    cumulative, heaviest = _weights(weight, pool, n)
    source = _Drawn(
        n,
        targets.fresh,
        key_of(seed, "targets"),
        free,
        pool,
        fixed,
        frozen(weight),
        cumulative,
        heaviest,
    )
    facts |= {"lists": int(user.size), "least": int(size.min()), "most": int(size.max())}
    if strata is not None:
        facts["strata"] = strata.facts
    return TargetLists(
        {**targets.describe(), "seed": int(seed)},
        train,
        tests,
        relevance,
        user,
        anchor,
        stratum,
        frozen(size),
        source,
        targets.strata or 0,
        targets.shortfall,
        int(seed),
        facts,
        _remarks(targets, facts),
    )


def _strata(targets: Targets, split: Split, relevance: Relevance) -> Strata | None:
    if targets.strata is None:
        return None
    if targets.strata_by == "judgments":
        return judgment_bins(split.train, relevance, targets.strata)
    counts = item_counts(split.train) + item_counts(split.test)
    return percentiles(counts, targets.strata)


def _candidates(targets: Targets, train: Ratings, tests: Ratings, strata: Strata | None) -> Pool:
    """Collect the candidates, stratum by stratum."""
    items = len(tests.items)
    if targets.candidates == "all":
        mask = np.ones(items, np.bool_)
    elif isinstance(targets.candidates, str):
        mask = item_counts(tests if targets.candidates == "test" else train) > 0
    else:
        codes = tests.items.codes(list(targets.candidates))
        if (codes < 0).any():
            first = targets.candidates[int(np.argmax(codes < 0))]
            raise DataError(
                f"{np.count_nonzero(codes < 0):,} of the given candidates are unknown, the first: "
                f"{first!r}; give ids that occur in the ratings"
            )
        mask = np.zeros(items, np.bool_)
        mask[codes] = True
    stratum = np.zeros(items, np.int32) if strata is None else strata.stratum
    home = np.where(mask, stratum, -1).astype(np.int32)
    return Pool.of(home, 1 if strata is None else strata.m)


def _asked(
    targets: Targets,
    split: Split,
    tests: Ratings,
    liked: Mask,
    home: I32,
    strata: Strata | None,
) -> tuple[I32, I32, I32, dict[str, int]]:
    """Return user, anchor and stratum of every list, and what could not be asked for."""
    from unskew.splits.split import shared_rows

    known = ~shared_rows(tests, split.train)
    inside = home[tests.item] >= 0
    if targets.relevant == "one":
        rows = np.flatnonzero(liked & inside & known)
        user, anchor = tests.user[rows], tests.item[rows]
        stratum = home[anchor] if strata is not None else np.full(rows.size, -1, np.int32)
        facts = {"outside": int(np.count_nonzero(liked & ~inside))}
    else:
        m = 1 if strata is None else strata.m
        everyone = np.arange(len(tests.users), dtype=np.int32)
        user, anchor = np.repeat(everyone, m), np.full(everyone.size * m, -1, np.int32)
        one = np.full(everyone.size, -1, np.int32)
        stratum = one if strata is None else np.tile(np.arange(m, dtype=np.int32), everyone.size)
        facts = {"outside": int(np.count_nonzero(~inside))}
    facts["in_training"] = int(np.count_nonzero(~known))
    return frozen(user), frozen(anchor), frozen(stratum.astype(np.int32)), facts


def _weights(weight: I64, pool: Pool, n: int | None) -> tuple[I64, I64]:
    """Return summed weights of the candidates, and those of each stratum's n heaviest."""
    m, at = pool.cand_start.size - 1, pool.cand_start
    if not weight.size:
        return frozen(np.zeros(0, np.int64)), frozen(np.zeros(m, np.int64))
    own = weight[pool.cand]
    parts = [np.sort(own[at[s] : at[s + 1]])[::-1] for s in range(m)]
    heaviest = np.array([int(part[:n].sum()) for part in parts])
    return frozen(np.append(0, np.cumsum(own))), frozen(heaviest)


def _too_few(n: int, free: I64, user: I32, tests: Ratings) -> DataError:
    row = int(np.argmin(free))
    return DataError(
        f"others={n}: {np.count_nonzero(free < n):,} of {free.size:,} lists have fewer candidates, "
        f"the fewest, {int(free[row]):,}, one of user {tests.users.values[int(user[row])]!r}; ask "
        f"for at most {int(free[row]):,}, or say shortage='shorten' or 'skip'"
    )


def _remarks(targets: Targets, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a reader of the numbers should know of the lists."""
    notes = []
    if targets.exact:
        notes.append(
            f"targets: exact, no others are drawn: values are expectations over all draws of "
            f"{targets.others:,} others"
        )
    if facts.get("short_lists"):
        how = "left out" if targets.shortage == "skip" else "shorter"
        notes.append(f"targets: {facts['short_lists']:,} lists with too few candidates are {how}")
    if facts["outside"]:
        how = "ask for no list" if targets.relevant == "one" else "cannot be found by any system"
        notes.append(f"targets: {facts['outside']:,} test items outside the candidates {how}")
    if facts["in_training"]:
        notes.append(
            f"targets: {facts['in_training']:,} test ratings are in the user's training and "
            f"are no targets"
        )
    return tuple(notes)


def _anchors(lists: TargetLists) -> Ratings:
    """Return the one relevant item of each list, which is all that is known to be in it."""
    tests = lists.tests
    many = np.int64(len(tests.items))
    rows = np.searchsorted(tests.user * many + tests.item, lists.user * many + lists.anchor)
    tags = {name: column.gather(pl.Series(rows)) for name, column in tests.tags.items()}
    return Ratings(
        lists.ids,
        tests.items,
        frozen(np.arange(len(lists), dtype=np.int32)),
        lists.anchor,
        frozen(tests.value[rows]),
        None,
        tags,
        tests.implicit,
        tests.notes,
    )


def _judgments(lists: TargetLists) -> Ratings:
    """Collect the judgments among each list's targets, block by block."""
    from unskew.targets import kernels

    tests = lists.tests
    missed = np.zeros(0, np.uint8)
    if isinstance(lists.source, _Drawn) and not lists.one_relevant and not lists.strata:
        missed = lists.source.fixed

    def meet(bounds: tuple[int, int]) -> tuple[I64, I64]:
        lo, hi = bounds
        start, item = lists.block(lo, hi)
        users = lists.user[lo:hi]
        judged = tests.start[users + 1] - tests.start[users]
        most = judged if missed.size else np.minimum(lists.size[lo:hi], judged)
        first = np.zeros(hi - lo + 1, np.int64)
        judgment = np.empty(int(most.sum()), np.int64)
        number = kernels.meet_targets(
            lists.user,
            frozen(start),
            frozen(item),
            tests.start,
            tests.item,
            frozen(missed),
            lo,
            hi,
            first,
            judgment,
        )
        return judgment[:number].copy(), np.diff(first)

    done = map_blocks(meet, lists.blocks(), size=int(lists.size.sum()))
    found, counts = zip(*done, strict=True)
    rows = np.concatenate(found)
    owner = np.repeat(np.arange(len(lists), dtype=np.int32), np.concatenate(counts))
    tags = {name: column.gather(pl.Series(rows)) for name, column in tests.tags.items()}
    return Ratings(
        lists.ids,
        tests.items,
        frozen(owner),
        frozen(tests.item[rows]),
        frozen(tests.value[rows]),
        None,
        tags,
        tests.implicit,
        tests.notes,
    )
