"""Target items: what a system must rank, list by list.

Items are drawn by a counter hash when asked for: none are kept, all systems see the same lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from unskew.arrays import I32, I64, U8, Mask, frozen
from unskew.checks import as_count, check, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, as_relevance
from unskew.data.summary import item_counts
from unskew.engine.rng import DrawKeyed, key_of
from unskew.errors import DataError, SettingError
from unskew.report.text import counted
from unskew.settings import choice, declare, flag
from unskew.splits.split import Split, shared_rows, union
from unskew.splits.strata import Strata, judgment_bins, percentiles, stated_strata
from unskew.targets.lists import DrawnTargets, TargetLists

if TYPE_CHECKING:
    from unskew.targets.kernels import DrawWeights, Pool

CANDIDATES = ("all", "test", "train")
RELEVANT = ("all", "one")
FIXED = ("liked", "judged")
BY = ("uniform", "popularity")
STRATA = ("items", "judgments")
SHORTAGE = ("shorten", "skip", "error")
SHORTFALL = ("count", "fill", "forgive")


def _check_candidates(name: str, value: object) -> None:
    if isinstance(value, str):
        choose(name, value, CANDIDATES)
    elif not callable(value):
        check(name, value, str | Iterable[Any])


def _check_others(name: str, value: object) -> None:
    if isinstance(value, str):
        choose(name, value, ("all",))
    else:
        as_count(name, value, 0)


def _check_strata(name: str, value: object) -> None:
    if not callable(value):
        as_count(name, value, 2)


@dataclass(frozen=True)
class Targets(DrawKeyed):
    """Which items a system must rank: the design space of bellogin2017 section 3.2.

    Training items of the user are never targets. `AllItems`, `OneRelevant` … are settings of it.

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.Targets("test", others=50)
    TestItems(others=50)
    """

    candidates: str | tuple[Any, ...] | Callable[[Split], Any] = declare(
        "all",
        """Where targets come from: `all` items (AI), items with `test` ratings (TI), items with
        `train` ratings, given raw ids, or a function of the split that returns raw ids or a mask
        with True for each item that can be a target.""",
        _check_candidates,
    )
    relevant: str = choice(
        "all",
        """`all`: one list per user with all of the user's test items (AR). `one`: a list per liked
        test item, with that one only (1R).""",
        RELEVANT,
    )
    others: int | str = declare(
        "all",
        "What is ranked against them: `all` remaining candidates (AN), or this number of drawn "
        "candidates (NN).",
        _check_others,
    )
    fixed: str = choice(
        "liked",
        """Test items that every list contains: the `liked` ones (bellogin2017; disliked ones may be
        drawn), or all `judged` ones (castells2018). With `relevant="one"`: what is never drawn.""",
        FIXED,
    )
    by: str = choice(
        "uniform", "Draw `uniform`, or by `popularity` (in proportion to training ratings).", BY
    )
    fresh: bool = flag(True, 'With `relevant="one"`: draw others for each list, or once per user.')
    strata: int | Callable[[Split], Any] | None = declare(
        None,
        """Rank within this many strata of items by popularity (P1R); results are averaged over
        strata. Or a function of the split that returns the stratum of each item, from 0 up.""",
        _check_strata,
    )
    strata_by: str = choice(
        "items",
        """Strata of equal numbers of `items` by all ratings (bellogin2017 section 6.1), or of liked
        training `judgments` (castells2018 section 5.1.3).""",
        STRATA,
    )
    shortage: str = choice(
        "shorten",
        """A list with fewer candidates than `others` asks for is ranked as it is (`shorten`), left
        out (`skip`), or an `error`; both are counted.""",
        SHORTAGE,
    )
    shortfall: str = choice(
        "count",
        """Where a system ranks fewer items than the cutoff: `count` the missing ones as not liked,
        `fill` up with its unscored targets in random order, or `forgive`: precision divides by what
        was ranked (castells2018 section 6.1).""",
        SHORTFALL,
    )
    exact: bool = flag(
        False,
        """With `relevant="one"` and a number of others: draw none, and take the expectation over
        all draws. The rank of the relevant item among n others drawn from N, m of which rank above
        it, is 1 + a hypergeometric number, so the expectation of every metric of that rank is
        known: P, Recall, HitRate, F1, Rprec, AP, RR, DCG, nDCG, RBP. It takes models, not
        ready-made runs.""",
    )

    draw_name: ClassVar[str] = "targets"
    draw_omit_default: ClassVar[frozenset[str]] = frozenset({"exact"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isinstance(self.candidates, str | tuple) or callable(self.candidates)):
            object.__setattr__(self, "candidates", tuple(self.candidates))
        if self.others == "all" and self.by == "popularity":
            raise SettingError("by='popularity' says how to draw: give a number of others")
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
        """Return the settings for a card, `exact` only where it is set: older cards lack it."""
        settings = super().describe()
        return settings if self.exact else {k: v for k, v in settings.items() if k != "exact"}

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import settings_card

        return settings_card("Targets", repr(self), self)

    def __repr__(self) -> str:
        name, settings = "Targets", self.describe()
        fitting = [named for named in NAMED.values() if named.fits(self)]
        if fitting:
            # The name that says most: one with more settings is a special case of the others.
            named = max(fitting, key=lambda design: len(design.settings) + len(design.defaults))
            usual = {field.name: field.default for field in fields(self)} | dict(named.defaults)
            name = named.build.__name__
            settings = {
                key: value
                for key, value in settings.items()
                if key not in named.settings and (value != usual[key] or key in named.defaults)
            }
        return f"{name}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"

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
            Training items are never targets; test ratings say what is relevant. Where it has
            `judged` users, only these have lists: the same ones, bit by bit, as without.
        relevance, liked
            Which test ratings are liked: a `Relevance`, or its threshold.
        seed
            Of the drawn others: same seed, same items, in any block order.
        judgments
            Judge by one of `split.judgments` (such as `true`) instead of the test ratings.

        Examples
        --------
        >>> import unskew as us
        >>> data = us.read_ratings({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9]})
        >>> (split,) = us.splits.LeaveOut(1).split(data, seed=1)
        >>> us.targets.OneRelevant(others=1, candidates="all").lists(split, liked=1)
        TargetLists(2 lists, 2 to 2 items each)
        """
        rule = relevance_of(relevance, liked)
        tests = split.test
        if judgments is not None:
            tests = split.judgments[choose("judgments", judgments, split.judgments)]
        return _lay(self, split, tests, split.known.get(judgments or "test"), rule, seed)


@checked
def AllItems(others: int | str = "all", **settings: Any) -> Targets:
    """All items but the user's training items (AI-AN; with a number of others, AI-NN).

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.AllItems(others=50) == us.targets.Targets("all", others=50)
    True
    """
    return Targets(candidates="all", others=others, **settings)


@checked
def TestItems(others: int | str = "all", **settings: Any) -> Targets:
    """Items with a test rating but the user's training items (TI-AN; with a number, TI-NN).

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.TestItems() == us.targets.Targets("test")
    True
    """
    return Targets(candidates="test", others=others, **settings)


@checked
def TrainItems(others: int | str = "all", **settings: Any) -> Targets:
    """Items with a training rating, as mena2021 ranks them.

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.TrainItems() == us.targets.Targets("train")
    True
    """
    return Targets(candidates="train", others=others, **settings)


@checked
def OneRelevant(
    others: int | str = 99, candidates: str | Sequence[Any] = "test", **settings: Any
) -> Targets:
    """One list per liked test item, with others that are not liked (1R; bellogin2017).

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.OneRelevant(others=99) == us.targets.Targets("test", "one", 99)
    True
    """
    chosen = candidates if isinstance(candidates, str) else tuple(candidates)
    return Targets(candidates=chosen, relevant="one", others=others, **settings)


@checked
def Percentiles(
    others: int | str = 99,
    strata: int = 10,
    candidates: str | Sequence[Any] = "test",
    **settings: Any,
) -> Targets:
    """One list per liked test item within its percentile of popularity (P1R; bellogin2017).

    Percentiles are of all items; others are drawn from the same candidates as in `OneRelevant`.

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.Percentiles(others=99) == us.targets.Targets("test", "one", 99, strata=10)
    True
    """
    return OneRelevant(others, candidates, strata=strata, **settings)


@checked
def TestTargets(shortfall: str = "count", **settings: Any) -> Targets:
    """Only the items that the user rated in the test part (castells2018 section 6.1).

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.TestTargets() == us.targets.Targets("test", others=0, fixed="judged")
    True
    """
    return Targets(candidates="test", others=0, fixed="judged", shortfall=shortfall, **settings)


@checked
def UserFlat(others: int | str, **settings: Any) -> Targets:
    """The user's test items and some others, not rated by the user (castells2018 section 6.2).

    Examples
    --------
    >>> import unskew as us
    >>> us.targets.UserFlat(others=99) == us.targets.Targets(others=99, fixed="judged")
    True
    """
    return Targets(others=others, fixed="judged", **settings)


class NamedDesign(NamedTuple):
    """A design that has a name: the function that builds it, and the settings that make it so."""

    build: Callable[..., Targets]
    settings: Mapping[str, Any]
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Defaults that differ from those of `Targets`: always shown."""

    def fits(self, targets: Targets) -> bool:
        """Tell whether a design can be written by this name."""
        matches = all(getattr(targets, key) == value for key, value in self.settings.items())
        return matches and all(getattr(targets, key) is not None for key in self.defaults)


NAMED = {
    "all-items": NamedDesign(AllItems, {"candidates": "all", "relevant": "all"}),
    "test-items": NamedDesign(TestItems, {"candidates": "test", "relevant": "all"}),
    "train-items": NamedDesign(TrainItems, {"candidates": "train", "relevant": "all"}),
    "one-relevant": NamedDesign(
        OneRelevant, {"candidates": "test", "relevant": "one"}, {"others": 99}
    ),
    "percentiles": NamedDesign(
        Percentiles, {"candidates": "test", "relevant": "one"}, {"others": 99, "strata": 10}
    ),
    "test-targets": NamedDesign(
        TestTargets, {"candidates": "test", "relevant": "all", "others": 0, "fixed": "judged"}
    ),
    "user-flat": NamedDesign(
        UserFlat, {"candidates": "all", "relevant": "all", "fixed": "judged"}, {"others": 99}
    ),
}
"""The designs by their names in plans: a new one is a function above and a line here."""
BY_NAME = {
    name: design.build
    for name, design in NAMED.items()
    if design.settings["relevant"] == "all" and not design.defaults
}
"""Designs with one list per user, by their names on the command line."""


def relevance_of(relevance: Relevance | str | None, liked: float | None) -> Relevance:
    """Return the relevance rule that is given one way or the other."""
    if (relevance is None) == (liked is None):
        raise SettingError("say which ratings are liked: give either relevance or liked, such as 4")
    return as_relevance(relevance) if relevance is not None else Relevance(liked=liked)


class _Queries(NamedTuple):
    """Whose lists are asked for, the one relevant item of each and the stratum."""

    user: I32
    anchor: I32
    stratum: I32


def _lay(
    targets: Targets,
    split: Split,
    tests: Ratings,
    earlier: Ratings | None,
    relevance: Relevance,
    seed: int,
) -> TargetLists:
    """Say which lists there are and how many targets each has."""
    from unskew.targets import kernels

    n, train = targets.drawn, split.train
    barred = train if earlier is None else union(train, earlier)
    strata = _strata(targets, split, relevance)
    pool = _candidates(targets, split, tests, strata)
    liked = relevance.is_liked(tests.value)
    fixed = frozen((liked if targets.fixed == "liked" else np.ones_like(liked)).astype(np.uint8))
    queries, facts = _asked(targets, split, tests, liked, pool.stratum, strata, barred)
    facts = {"candidates": int(pool.cand.size), **facts}
    if earlier is not None:
        facts["known"] = len(earlier)
    weight = item_counts(train) if targets.by == "popularity" else np.zeros(0, np.int64)
    stratum_of = np.where(weight == 0, np.int32(-1), pool.stratum) if weight.size else pool.stratum
    drawable = np.bincount(stratum_of[stratum_of >= 0], minlength=pool.cand_start.size - 1)
    available = np.empty(queries.user.size, np.int64)
    places = queries.user, queries.stratum
    rows = barred.start, barred.item, tests.start, tests.item
    kernels.count_others(*places, frozen(drawable), frozen(stratum_of), *rows, fixed, available)
    available = frozen(available)
    if n is not None:
        queries, available = _with_enough(targets, n, queries, available, tests, facts)
    if not queries.user.size:
        why = f"no test rating among the candidates is liked ({relevance})"
        if facts.get("skipped_lists"):
            why = f"every list has fewer than {n} candidates; lower others or shorten"
        raise DataError(f"{targets!r} asks for no list: {why}")
    size = available.copy() if n is None else np.minimum(available, n)
    size += 1 if targets.relevant == "one" else _fixed_sizes(queries, pool, barred, tests, fixed)
    facts |= {"lists": int(queries.user.size), "least": int(size.min()), "most": int(size.max())}
    if strata is not None:
        facts["strata"] = strata.facts
    return TargetLists(
        design={**targets.describe(), "seed": int(seed)},
        train=train,
        tests=tests,
        relevance=relevance,
        user=queries.user,
        anchor=queries.anchor,
        stratum=queries.stratum,
        size=frozen(size),
        source=DrawnTargets(
            n=n,
            fresh=targets.fresh,
            key=key_of(seed, "targets"),
            available=available,
            pool=pool,
            fixed=fixed,
            weights=_weights(weight, pool, n),
        ),
        strata=0 if strata is None else strata.m,
        shortfall=targets.shortfall,
        seed=int(seed),
        facts=facts,
        notes=_remarks(targets, facts),
        known=earlier,
    )


def _fixed_sizes(queries: _Queries, pool: Pool, train: Ratings, tests: Ratings, fixed: U8) -> I64:
    """Count the items that are in each list whatever is drawn."""
    m, stratum = pool.cand_start.size - 1, pool.stratum[tests.item]
    rows = fixed.view(np.bool_) & (stratum >= 0) & ~shared_rows(tests, train)
    users = tests.user.astype(np.int64) * m
    sizes = np.bincount(users[rows] + stratum[rows], minlength=len(tests.users) * m)
    return sizes[queries.user.astype(np.int64) * m + np.maximum(queries.stratum, 0)]


def _with_enough(
    targets: Targets,
    n: int,
    queries: _Queries,
    available: I64,
    tests: Ratings,
    facts: dict[str, Any],
) -> tuple[_Queries, I64]:
    """Treat lists with too few candidates as `shortage` says; count them in the facts."""
    short = available < n
    facts["short_lists"] = int(np.count_nonzero(short))
    if facts["short_lists"] and targets.shortage == "error":
        row = int(np.argmin(available))
        user, fewest = tests.users.values[int(queries.user[row])], int(available[row])
        raise DataError(
            f"others={n}: {facts['short_lists']:,} of {available.size:,} lists have fewer "
            f"candidates; one of user {user!r} has the fewest, {fewest:,}; ask for at most "
            f"{fewest:,}, or use shortage='shorten' or 'skip'"
        )
    if targets.shortage == "skip":
        facts["skipped_lists"] = facts["short_lists"]
        queries = _Queries(*(frozen(part[~short]) for part in queries))
        available = frozen(available[~short])
    return queries, available


def _strata(targets: Targets, split: Split, relevance: Relevance) -> Strata | None:
    if targets.strata is None:
        return None
    if callable(targets.strata):
        return stated_strata(targets.strata(split), len(split.test.items))
    if targets.strata_by == "judgments":
        return judgment_bins(split.train, relevance, targets.strata)
    counts = item_counts(split.train) + item_counts(split.test)
    return percentiles(counts, targets.strata)


def _candidates(targets: Targets, split: Split, tests: Ratings, strata: Strata | None) -> Pool:
    """Collect the candidates, stratum by stratum."""
    from unskew.targets.kernels import Pool

    source, items = targets.candidates, len(tests.items)
    if callable(source):
        source = source(split)
    if isinstance(source, str):
        choose("candidates", source, CANDIDATES)
        counted = {"test": tests, "train": split.train}.get(source)
        mask = np.ones(items, np.bool_) if counted is None else item_counts(counted) > 0
    elif isinstance(source, np.ndarray) and source.dtype == np.bool_ and source.shape == (items,):
        mask = source
    else:
        mask, ids = np.zeros(items, np.bool_), list(source)
        codes = tests.items.codes(ids)
        if (codes < 0).any():
            raise DataError(
                f"{np.count_nonzero(codes < 0):,} of the given candidates are unknown, the first: "
                f"{ids[int(np.argmax(codes < 0))]!r}; give ids that occur in the ratings"
            )
        mask[codes] = True
    stratum = np.zeros(items, np.int32) if strata is None else strata.stratum
    stratum = frozen(np.where(mask, stratum, -1).astype(np.int32))
    cand = np.argsort(stratum, kind="stable")[np.count_nonzero(~mask) :].astype(np.int32)
    sizes = np.bincount(stratum[cand], minlength=1 if strata is None else strata.m)
    return Pool(stratum, frozen(cand), frozen(np.append(0, np.cumsum(sizes))))


def _asked(
    targets: Targets,
    split: Split,
    tests: Ratings,
    liked: Mask,
    item_stratum: I32,
    strata: Strata | None,
    barred: Ratings,
) -> tuple[_Queries, dict[str, Any]]:
    """Return user, anchor and stratum of every list, and what could not be asked for."""
    again = shared_rows(tests, barred)
    inside = item_stratum[tests.item] >= 0
    judged = split.judged
    asks = np.ones(len(tests), np.bool_) if judged is None else judged[tests.user]
    if targets.relevant == "one":
        rows = np.flatnonzero(liked & inside & ~again & asks)
        user, anchor = tests.user[rows], tests.item[rows]
        stratum = item_stratum[anchor] if strata is not None else np.full(rows.size, -1, np.int32)
        facts: dict[str, Any] = {"outside": int(np.count_nonzero(liked & ~inside & asks))}
    else:
        everyone = np.arange(len(tests.users), dtype=np.int32)
        everyone = everyone if judged is None else everyone[judged]
        numbers = np.arange(strata.m, dtype=np.int32) if strata else np.array([-1], np.int32)
        user, stratum = np.repeat(everyone, numbers.size), np.tile(numbers, everyone.size)
        anchor = np.full(user.size, -1, np.int32)
        facts = {"outside": int(np.count_nonzero(~inside & asks))}
    facts["in_training"] = int(np.count_nonzero(again & asks))
    if judged is not None:
        facts["judged_users"] = int(np.count_nonzero(judged))
    return _Queries(frozen(user), frozen(anchor), frozen(stratum.astype(np.int32))), facts


def _weights(weight: I64, pool: Pool, n: int | None) -> DrawWeights:
    """Return summed weights of the candidates, and those of each stratum's n heaviest."""
    from unskew.targets.kernels import DrawWeights

    m, start = pool.cand_start.size - 1, pool.cand_start
    cumulative, heaviest = np.zeros(0, np.int64), np.zeros(m, np.int64)
    if weight.size:
        weights = weight[pool.cand]
        parts = [np.sort(weights[start[s] : start[s + 1]])[::-1] for s in range(m)]
        cumulative = np.append(0, np.cumsum(weights))
        heaviest = np.array([int(part[:n].sum()) for part in parts])
    return DrawWeights(frozen(weight), frozen(cumulative), frozen(heaviest))


def _remarks(targets: Targets, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a reader of the numbers should know of the lists."""
    remarks = []
    if targets.exact:
        remarks.append(
            f"exact, no others are drawn: values are expectations over all draws of "
            f"{targets.others:,} others"
        )
    if facts.get("short_lists"):
        what = "with too few candidates"
        short = counted(facts["short_lists"], f"list {what} is", f"lists {what} are")
        remarks.append(f"{short} {'left out' if targets.shortage == 'skip' else 'shorter'}")
    if facts["outside"]:
        result = "ask for no list" if targets.relevant == "one" else "cannot be found by any system"
        remarks.append(f"{facts['outside']:,} test items outside the candidates {result}")
    if facts["in_training"]:
        remarks.append(
            f"{counted(facts['in_training'], 'test rating is', 'test ratings are')} also in the "
            "user's training ratings and cannot be ranked"
        )
    if facts.get("known"):
        remarks.append(
            f"{counted(facts['known'], 'user-item pair')} that users met before the test, but that "
            "are not trained on, are left out of the lists"
        )
    return tuple(f"targets: {remark}" for remark in remarks)
