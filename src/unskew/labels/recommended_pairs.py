"""The recommended (user, item) pairs: at which place each system has them, and what they add."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.checks import choose
from unskew.data.ratings import Ids, Ratings
from unskew.errors import DataError, SettingError
from unskew.judging.judged import Judged, Need
from unskew.judging.shape import View
from unskew.metrics.block import WHOLE
from unskew.metrics.definition import REGISTRY
from unskew.metrics.names import Metric, parse
from unskew.metrics.settings import Params
from unskew.metrics.weighted import Linear, Weighted
from unskew.runs import Run


class PlaceSum(NamedTuple):
    """A metric as a sum over places: the discount of a place times what its item is worth."""

    label: str
    metric: Metric
    form: Linear

    @property
    def params(self) -> Params:
        """The settings, defaults included."""
        return self.metric.params

    @property
    def counts_gain(self) -> bool:
        """Whether an item adds its gain; else 1 if it is liked."""
        return self.form.column(self.params)[0] == "gain"

    def discounts(self, rank: I64) -> F64:
        """Return what a place counts, 0 below the cutoff."""
        table = self.form.discount(self.params, int(rank.max(initial=1)))
        return np.where(rank <= self.metric.whole_cutoff, table[rank], 0.0)

    def divisors(self, depth: I64) -> F64:
        """Return what the sum of each list is divided by; at least 1."""
        if not self.form.per_cutoff:
            return np.ones(depth.size)
        cutoff = self.metric.whole_cutoff
        is_per_list = self.params.get("per", "k") == "list" or self.metric.cutoff is None
        places = np.minimum(depth, cutoff) if is_per_list else np.full(depth.size, cutoff)
        return np.maximum(places, 1).astype(np.float64)

    def worth(self, view: View) -> F64:
        """Return what each judgment adds at a place that counts 1."""
        seen = view.anti if self.metric.anti else view
        return seen.gain if self.counts_gain else seen.liked


def place_sums(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, PlaceSum]:
    """Read metrics that are sums over places; refuse others, with the reason and what to take.

    Examples
    --------
    >>> from unskew.labels.recommended_pairs import place_sums
    >>> list(place_sums(["P@10", "anti-RBP(p=0.9)", "DCG@5"]))
    ['P@10', 'anti-RBP(p=0.9)', 'DCG@5']
    >>> place_sums("Recall@10")
    Traceback (most recent call last):
    unskew.errors.SettingError: Recall@10 cannot be estimated from judgments of recommended items: \
it is divided by all liked items of a user, also those that no system recommends; take one of P, \
DCG, RBP or an anti-twin
    """
    names = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not names:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'DCG@10']")
    result = {}
    for text in names:
        metric = parse(text)
        why = _refusal(metric)
        if why:
            allowed = [name for name in REGISTRY if not _refusal(Metric(name))]
            raise SettingError(
                f"{text} cannot be estimated from judgments of recommended items: {why}; take one "
                f"of {', '.join(allowed)} or an anti-twin"
            )
        form = metric.definition.linear
        assert form is not None
        result[str(text)] = PlaceSum(str(text), metric, form)
    return result


def _refusal(metric: Metric) -> str:
    """Say why a metric is not a sum over places; nothing where it is."""
    definition, form = metric.definition, metric.definition.weighted
    if definition.of != "judged":
        return "it does not use judgments at all, and evaluate computes it"
    if metric.condensed:
        return "the ranks of a condensed list change with what is judged"
    if metric.params.get("bound", "none") != "none":
        return "a bound takes unjudged items as it likes, and here a sample is judged"
    if isinstance(form, Weighted) and form.unnormalised:
        return "it is divided by an ideal list, which may hold items that no system recommends"
    if definition.linear is None:
        return "it is not a sum over the places of a list with weights that are known beforehand"
    sum_if = form.sum_if if isinstance(form, Weighted) else None
    if sum_if is None or any(metric.params[key] != value for key, value in sum_if.items()):
        return "it is divided by all liked items of a user, also those that no system recommends"
    return ""


MEANS = ("users", "ratio")
STRATA = ("rank", "popularity", "disagreement")


class Listed(NamedTuple):
    """The places of one system: which pair stands where, in ascending order of the pairs."""

    pair: I64
    """Row of the pair among all recommended pairs."""
    rank: I64
    """Its place in the list of its user, from 1."""
    depth: I64
    """By user: the length of the list, places without an item included; 0 without a list."""


class PairStrata(NamedTuple):
    """A stratum for each recommended pair."""

    names: tuple[str, ...]
    code: I32

    @property
    def sizes(self) -> I64:
        """How many pairs each stratum has."""
        return np.bincount(self.code, minlength=len(self.names))


class Coefficients(NamedTuple):
    """What y = 1 of each pair adds to the value of each system, by one metric."""

    pair: Mapping[str, I64]
    """By system: rows of the pairs it recommends, ascending."""
    add: Mapping[str, F64]
    pairs: int
    """How many pairs there are in all."""

    def contrast(self, a: str, b: str | None = None) -> tuple[I64, F64]:
        """Return the pairs that count for a, or for a less b, and what y = 1 of each adds.

        Pairs that two systems have at places that count alike add nothing, and are not among them.
        """
        if b is None:
            mask = self.add[a] > 0
            return self.pair[a][mask], self.add[a][mask]
        net = np.zeros(self.pairs)
        net[self.pair[a]] = self.add[a]
        net[self.pair[b]] -= self.add[b]
        largest = max(float(self.add[name].max(initial=0.0)) for name in (a, b))
        row = np.flatnonzero(np.abs(net) > 1e-12 * largest)
        return row, net[row]


@dataclass(frozen=True, eq=False, kw_only=True)
class RecommendedPairs:
    """The pairs that any system recommends down to a place, each once, by user and then by item.

    Made by `of_judged` (lists laid over labels) or `of_runs` (lists alone).
    """

    users: Ids
    items: Ids
    user: I32
    item: I32
    lists: Mapping[str, Listed]
    """By system."""
    cutoff: int
    """The deepest place that was looked at; `WHOLE` for all."""
    judgment: I64
    """Row of the pair among the judgments (labels) that lists were laid over, -1 for none."""
    train: Ratings | None = field(default=None, repr=False)
    """Training ratings under the same ids, where they are known."""

    @classmethod
    def of_judged(cls, judged: Judged, cutoff: int = WHOLE) -> RecommendedPairs:
        """Take the pairs of judged data; their judgments are the labels of an annotator."""
        targets = judged.targets
        if targets is not None and (targets.exact or not targets.per_user):
            raise SettingError(
                "one list per user is needed: lists with one relevant item, or within strata, rank "
                "other targets for every judgment"
            )
        if targets is not None and cutoff == WHOLE:
            raise SettingError("give a metric with a cutoff, such as P@10: models rank all items")
        scan = None if cutoff == WHOLE else cutoff
        ready = judged.prepare(Need(scan=scan, top=0 if scan is None else scan), judged.threads)
        judgments = ready.judgments
        width = len(judgments.items)
        parts = {}
        for name, matched in ready.matched.items():
            length = matched.stop - matched.start
            parts[name] = _places(matched.start, length, matched.run.item, matched.from_run, cutoff)
        keys = judgments.user.astype(np.int64) * width + judgments.item
        return cls._of_places(
            parts, (judgments.users, judgments.items), cutoff, keys, ready.numbering.train
        )

    @classmethod
    def of_runs(
        cls, runs: Mapping[str, Run], cutoff: int = WHOLE, train: Ratings | None = None
    ) -> RecommendedPairs:
        """Take the pairs of ranked lists, before anything is judged."""
        if not runs:
            raise SettingError("no runs are given")
        sources: list[Ratings | Run] = [*runs.values(), *([] if train is None else [train])]
        users, user_tables = Ids.union(*(source.users for source in sources))
        items, item_tables = Ids.union(*(source.items for source in sources))
        parts = {}
        for (name, run), user, item in zip(runs.items(), user_tables, item_tables, strict=False):
            start, length = (np.zeros(len(users), np.int64) for _ in range(2))
            start[user], length[user] = run.start[:-1], run.depth
            parts[name] = _places(start, length, run.item, item, cutoff)
        if train is not None:
            train = train.recode(users, user_tables[-1], items, item_tables[-1])
        return cls._of_places(parts, (users, items), cutoff, np.zeros(0, np.int64), train)

    @classmethod
    def _of_places(
        cls,
        parts: Mapping[str, tuple[I64, I64, I64, I64]],
        ids: tuple[Ids, Ids],
        cutoff: int,
        judged_keys: I64,
        train: Ratings | None,
    ) -> RecommendedPairs:
        """Number the pairs of all systems; `judged_keys` number judged pairs, ascending."""
        width = max(len(ids[1]), 1)
        keys, ranks = {}, {}
        for name, (owner, item, rank, _) in parts.items():
            key = owner * width + item
            order = np.argsort(key, kind="stable")
            keys[name], ranks[name] = key[order], rank[order]
        union = _distinct(list(keys.values()))
        if not union.size:
            raise DataError("no system recommends anything: all lists are empty")
        lists = {
            name: Listed(
                frozen(np.searchsorted(union, keys[name])), frozen(ranks[name]), frozen(depth)
            )
            for name, (_, _, _, depth) in parts.items()
        }
        return cls(
            users=ids[0],
            items=ids[1],
            user=frozen((union // width).astype(np.int32)),
            item=frozen((union % width).astype(np.int32)),
            lists=lists,
            cutoff=cutoff,
            judgment=frozen(positions(judged_keys, union)),
            train=train,
        )

    def __len__(self) -> int:
        return int(self.user.size)

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems."""
        return tuple(self.lists)

    @cached_property
    def listed_users(self) -> Mask:
        """By user: whether any system gave a list. Means are over these users."""
        mask = np.zeros(len(self.users), np.bool_)
        for listed in self.lists.values():
            mask |= listed.depth > 0
        return mask

    @cached_property
    def number_of_users(self) -> int:
        """How many users have a list of any system."""
        return int(self.listed_users.sum())

    @cached_property
    def times_listed(self) -> I32:
        """How many systems recommend each pair."""
        times = np.zeros(len(self), np.int32)
        for listed in self.lists.values():
            times[listed.pair] += 1
        return frozen(times)

    @cached_property
    def best_rank(self) -> I64:
        """The highest place (the smallest rank) at which any system has each pair."""
        best = np.full(len(self), np.iinfo(np.int64).max)
        for listed in self.lists.values():
            best[listed.pair] = np.minimum(best[listed.pair], listed.rank)
        return frozen(best)

    @cached_property
    def popularity(self) -> I64:
        """Of each pair's item: its training ratings; without these, the places that it fills."""
        counts = np.zeros(len(self.items), np.int64)
        if self.train is not None:
            counts += np.bincount(self.train.item, minlength=len(self.items))
        else:
            counts += np.bincount(self.item, self.times_listed, counts.size).astype(np.int64)
        return frozen(counts[self.item])

    def rows_of(self, ratings: Ratings) -> I64:
        """Return which recommended pair each rating is of, -1 for none."""
        user = self.users.codes(ratings.users.values)[ratings.user]
        item = self.items.codes(ratings.items.values)[ratings.item]
        width = max(len(self.items), 1)
        mine = self.user.astype(np.int64) * width + self.item
        keys = user.astype(np.int64) * width + item
        return positions(mine, np.where((user >= 0) & (item >= 0), keys, -1))

    def coefficients(self, place_sum: PlaceSum, mean: str = "users") -> Coefficients:
        """Return what y = 1 of each pair adds to the value of each system.

        Parameters
        ----------
        place_sum
            The metric.
        mean
            `users`: the mean over users with a list of any system. `ratio`: all places of a system
            together, Σ discount y / Σ discount: the share of what is recommended that is liked,
            however long lists are.
        """
        choose("mean", mean, MEANS)
        add = {}
        for name, listed in self.lists.items():
            discount = place_sum.discounts(listed.rank)
            if mean == "ratio":
                total = float(discount.sum())
                add[name] = frozen(discount / total if total else discount)
            else:
                divisor = place_sum.divisors(listed.depth) * self.number_of_users
                add[name] = frozen(discount / divisor[self.user[listed.pair]])
        return Coefficients(
            {name: listed.pair for name, listed in self.lists.items()}, add, len(self)
        )

    def strata(self, by: str) -> PairStrata:
        """Part the pairs.

        Parameters
        ----------
        by
            `rank`: by the highest place that any system gives (1, 2-3, 4-7, 8-15, …).
            `popularity`: by the popularity of the item, three groups with about equally many pairs;
            items that are equally popular are in one group. `disagreement`: by how many systems
            recommend the pair; those that only some recommend tell systems apart.
        """
        choose("by", by, STRATA)
        if by == "rank":
            octave = np.frexp(self.best_rank.astype(np.float64))[1] - 1
            return _named(octave, {int(n): _octave(int(n)) for n in np.unique(octave)})
        if by == "disagreement":
            number = len(self.systems)
            return _named(self.times_listed, {n: f"{n} of {number}" for n in range(1, number + 1)})
        ascending = np.sort(self.popularity, kind="stable")
        cuts = ascending[[len(self) // 3, 2 * len(self) // 3]] if len(self) > 2 else ascending[:0]
        group = np.searchsorted(np.unique(cuts), self.popularity, side="right")
        present = np.unique(group)
        words = {1: ("all",), 2: ("less popular", "more popular")}.get(
            present.size, ("least popular", "middle", "most popular")
        )
        return _named(group, dict(zip(present.tolist(), words, strict=True)))


def _places(
    start: I64, length: I64, item: I32, table: I32, cutoff: int
) -> tuple[I64, I64, I64, I64]:
    """Return owner, item and rank of each filled place, and the length of each list."""
    depth = np.minimum(length, cutoff)
    owner = np.repeat(np.arange(depth.size), depth)
    offset = np.arange(owner.size) - np.repeat(np.cumsum(depth) - depth, depth)
    listed = item[start[owner] + offset]
    filled = listed >= 0
    return owner[filled], table[listed[filled]].astype(np.int64), offset[filled] + 1, length


def positions(ascending: I64, numbers: I64) -> I64:
    """Return where each number stands in an ascending array; -1 where it does not occur."""
    if not ascending.size:
        return np.full(numbers.size, -1, np.int64)
    index = np.minimum(np.searchsorted(ascending, numbers), ascending.size - 1)
    return np.where(ascending[index] == numbers, index, -1)


def _distinct(ascending: Sequence[I64]) -> I64:
    """Return the distinct numbers of sorted arrays: a stable sort merges what is sorted already."""
    merged = np.concatenate(ascending)
    merged.sort(kind="stable")
    new = np.ones(merged.size, np.bool_)
    np.not_equal(merged[1:], merged[:-1], out=new[1:])
    return merged[new]


def _octave(n: int) -> str:
    low, high = 2**n, 2 ** (n + 1) - 1
    return f"rank {low}" if low == high else f"ranks {low} to {high}"


def _named(group: I64 | I32, names: Mapping[int, str]) -> PairStrata:
    """Number the groups that occur, in ascending order."""
    present, code = np.unique(group, return_inverse=True)
    return PairStrata(
        tuple(names[int(number)] for number in present), frozen(code.astype(np.int32))
    )
