"""`Judged`: judgments and the ranked lists of systems over one numbering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, Mask, frozen
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import (
    Relevance,
    hint_at_candidates,
)
from unskew.errors import SettingError
from unskew.judging.notes import (
    checked_numbering,
    table_of_lists,
    unscored_notes,
)
from unskew.judging.occasions import Occasions
from unskew.judging.ranked import Ranked, Undrawn, anchors_of, full_job, match_targets
from unskew.judging.shape import Basis, Lists, Matched, Numbering, View, count_labels
from unskew.judging.tied import TargetItems, TiedRanks, tie, tie_notes
from unskew.recommend.model import Model
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.runs import Run
from unskew.targets.lists import TargetLists
from unskew.ties import EXPECTED

if TYPE_CHECKING:  # lists that are given need nobody to rank
    from unskew.judging.rank import Ranking
    from unskew.judging.rank_tiles import RankJob


@dataclass(frozen=True)
class Need:
    """What is worked out beyond where lists meet judgments: it depends on what is measured."""

    scan: int | None = None
    """The deepest rank at which a judged item can matter; None for the whole list."""
    top: int = 0
    """How many items of each list of a model are kept."""
    catalogue: str = "none"
    """`none`; `known`: the given items, or those of training and test; `all`: also listed ones."""


@dataclass(frozen=True)
class ReadingNotes:
    """What was assumed and left out while data were read, by source."""

    tests: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    relevance: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    """Of target lists: what they left out."""
    targets: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Runs that share no item with the judgments."""

    def __iter__(self) -> Any:
        parts = (self.tests, self.train, self.relevance, self.targets, self.runs)
        return (note for part in parts for note in part)


@dataclass(frozen=True, eq=False, repr=False)
class Judged(Result):
    """Judgments and the ranked lists of systems over one numbering. Made by `judge`.

    `evaluate`, `compare`, `estimate`, `stats.robustness`, `unbiased.strata`, `audit` and others
    take it in place of raw data. Print it to see what it holds and what was left out. What a
    metric needs beyond it (ranks of models, the catalogue) is worked out when first asked for.

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> judged = us.judge(test, {"mine": {1: [20, 40], 2: [30, 50]}}, liked=4)
    >>> judged
    Judged(1 system, 2 users, 3 judgments)
    >>> judged.table().select("system", "lists", "items", "judged").rows()
    [('mine', 2, 4, 0.5)]
    """

    tests: Ratings
    """The test ratings as given."""
    train: Ratings | None
    """The training ratings as given."""
    systems: Mapping[str, Run | Model]
    """Ranked lists by system; on target lists also models, which rank when first asked."""
    relevance: Relevance
    numbering: Numbering
    """The same ratings, and where each run is among them, over one numbering."""
    view: View
    """How each judgment is taken."""
    liked: F64
    """Liked judgments of each list's user."""
    disliked: F64
    items: pl.Series | None = None
    """The catalogue, where it was given."""
    targets: TargetLists | None = None
    """The target lists, where the systems were asked for these."""
    occasions: Occasions | None = None
    """The lists of all systems, where users have several."""
    ties: str | None = None
    seed: int = 0
    depth: int | None = None
    unranked: str = "out"
    """What becomes of targets that a list does not hold: see `judge`."""
    paper: str = ""
    """The paper whose conventions were asked for by its name."""
    read: ReadingNotes = ReadingNotes()
    need: Need = Need()
    threads: int | None = None
    _ranked: dict[str, Ranking] = field(default_factory=dict)
    """By model: what it gave, and how deep it was asked."""

    @classmethod
    def over(
        cls,
        numbering: Numbering,
        relevance: Relevance,
        read: ReadingNotes = ReadingNotes(),  # noqa: B008 - frozen
        **fields: Any,
    ) -> Judged:
        """Apply the relevance rule to judgments under one numbering; `fields` are all others."""
        judgments = numbering.judgments
        view = View.of(judgments, relevance)
        everyone = Lists(frozen(np.arange(len(judgments.users), dtype=np.int32)))
        liked, disliked = count_labels(judgments, everyone, view)
        return cls(
            relevance=relevance,
            numbering=numbering,
            view=view,
            liked=liked,
            disliked=disliked,
            read=replace(read, ids=numbering.notes),
            **fields,
        )

    @classmethod
    def of_lists(
        cls, lists: TargetLists, systems: Mapping[str, Run | Model], **fields: Any
    ) -> Judged:
        """Lay systems over target lists: runs by the names of lists, models by their ranks."""
        return cls.over(
            Numbering.of_targets(lists),
            lists.relevance,
            tests=lists.tests,
            train=lists.train,
            systems=systems,
            targets=lists,
            **{"read": ReadingNotes(targets=lists.notes), **fields},
        )

    def prepare(self, need: Need, threads: int | None = None) -> Judged:
        """Return the same data, ready for what is needed; ranks of models are kept."""
        return replace(self, need=need, threads=threads)

    def with_models(
        self,
        systems: Mapping[str, Run | Model],
        *,
        ties: str | None = None,
        seed: int = 0,
        depth: int | None = None,
    ) -> Judged:
        """Return the same target lists with other systems, whose judgments are not laid again."""
        order: Any = {"ties": ties, "seed": seed, "depth": depth, "unranked": "out"}
        return replace(self, systems=systems, _ranked={}, **order)

    def with_ratings(self, tests: Ratings, train: Ratings | None) -> Judged:
        """Return the same lists, judged by other test ratings."""
        assert self.targets is None
        return self._anew(tests, train, self._runs)

    def with_systems(self, more: Mapping[str, Run]) -> Judged:
        """Return the same data with the lists of more systems."""
        assert self.targets is None
        return self._anew(self.tests, self.train, {**self._runs, **more})

    def with_relevance(self, relevance: Relevance) -> Judged:
        """Return the same data, whose ratings are taken by another rule.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 3, 4]}
        >>> judged = us.judge(test, {"mine": {1: [20, 10], 2: [30]}}, liked=4)
        >>> lower = judged.with_relevance(us.Relevance(liked=3))
        >>> us.evaluate(judged, "RR").mean("RR"), us.evaluate(lower, "RR").mean("RR")
        ({'mine': 0.75}, {'mine': 1.0})
        """
        assert self.targets is None
        return replace(self, relevance=relevance)._anew(self.tests, self.train, self._runs)

    def only_judged_items(self, *, of_user: bool) -> Judged:
        """Return lists without the items that nobody judged, or that their user did not judge.

        Examples
        --------
        >>> import unskew as us
        >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 3, 4]}
        >>> judged = us.judge(test, {"mine": {1: [40, 10], 2: [30]}}, liked=4)
        >>> condensed = judged.only_judged_items(of_user=False)
        >>> us.evaluate(judged, "RR").mean("RR"), us.evaluate(condensed, "RR").mean("RR")
        ({'mine': 0.75}, {'mine': 1.0})
        """
        assert self.targets is None
        runs = {name: judged_part(run, self.tests, of_user) for name, run in self._runs.items()}
        return self._anew(self.tests, self.train, runs)

    @property
    def _runs(self) -> dict[str, Run]:
        return {name: run for name, run in self.systems.items() if isinstance(run, Run)}

    def _anew(self, tests: Ratings, train: Ratings | None, runs: Mapping[str, Run]) -> Judged:
        assert self.occasions is None
        return Judged.over(
            checked_numbering(tests, train, runs, self.items),
            self.relevance,
            tests=tests,
            train=train,
            systems=runs,
            items=self.items,
            ties=self.ties,
            seed=self.seed,
            depth=self.depth,
            unranked=self.unranked,
            paper=self.paper,
            read=self.read,
        )

    @property
    def judgments(self) -> Ratings:
        """The test ratings under the common numbering; of several lists those of each one."""
        return self.numbering.judgments

    @property
    def owner(self) -> I32:
        """The user of each list."""
        lists = self.occasions or self.targets
        return self._lists.user if lists is None else lists.user

    @property
    def users(self) -> Ids:
        """The ids that `owner` numbers."""
        lists = self.occasions or self.targets
        return self.judgments.users if lists is None else lists.tests.users

    @cached_property
    def _lists(self) -> Lists:
        number = frozen(np.arange(len(self.judgments.users), dtype=np.int32))
        if self.targets is not None:
            return Lists(number, self.targets.size, self.targets)
        if self._catalogue is None:
            return Lists(number)
        return Lists(number, self.numbering.count_targets(self._catalogue))

    @cached_property
    def _catalogue(self) -> Mask | None:
        """The catalogue, where it is needed."""
        if self.need.catalogue == "none":
            return None
        if self.targets is not None:
            return self.targets.candidates
        return self.numbering.known_items(everything=self.need.catalogue == "all")

    @cached_property
    def basis(self) -> Basis:
        """What all systems are judged by."""
        judgments = self.judgments
        depths = [matched.depth for matched in self.matched.values()]
        lengths = [np.diff(judgments.start), *depths]
        longest = max([int(length.max(initial=0)) for length in lengths])
        return Basis(
            judgments,
            self._lists,
            self.view,
            self.liked,
            self.disliked,
            train=self.numbering.train,
            catalogue=self._catalogue,
            longest=longest + 1,
            owner=self.owner,
            tests=None if self.occasions is None else self.occasions.tests,
        )

    @cached_property
    def matched(self) -> dict[str, Matched]:
        """Each system's lists, laid over the judgments."""
        return {name: self._match(name, system) for name, system in self.systems.items()}

    def _match(self, name: str, system: Run | Model) -> Matched:
        is_tied, scan = self.is_tied, self.need.scan
        depth = None if is_tied else self.depth
        if self.targets is not None and self.targets.exact:
            return self._undrawn(name, system, self.targets)
        if isinstance(system, Run):
            if self.targets is None:
                matched = self.numbering.match(name, system, self._lists, depth, scan)
            else:
                with hint_at_candidates(self.paper):
                    matched = match_targets(name, system, self.targets, self._lists, depth, scan)
            return tie(name, matched, self.depth, self._items) if is_tied else matched
        assert self.targets is not None
        ranking, ids = self._rank(name, system), self.targets.ids
        run = ranking.run if self.job.depth else None
        kind = TiedRanks if is_tied else Ranked
        return kind.over(ranking.ranks, run, self._lists, ids, self.judgments.items, self.depth)

    @property
    def is_tied(self) -> bool:
        """Whether equal scores have no order: metrics are averaged over all of them."""
        return self.ties == EXPECTED

    @cached_property
    def _items(self) -> TargetItems | None:
        """What could be in each list, where targets that are not follow in random order."""
        if self.unranked == "out":
            return None
        if self.targets is not None:
            return TargetItems.of_lists(self.targets)
        assert self._catalogue is not None
        assert self._lists.targets is not None
        count, train = self._lists.targets, self.numbering.train
        return TargetItems.of_catalogue(self.judgments, count, self._catalogue, train)

    @cached_property
    def job(self) -> RankJob:
        """What a model is asked for on the target lists."""
        from unskew.judging.rank_tiles import RankJob

        assert self.targets is not None
        if self.targets.exact:
            return full_job(self.targets)
        length, scan = self.need.top, self.need.scan
        if self.depth is not None:
            length, scan = min(length, self.depth), min(self.depth, scan or self.depth)
        return RankJob(self.targets, length, limit=scan)

    def ranked_by(self, name: str, ranking: Ranking) -> Judged:
        """Take what a model gave on these lists: see `rank_designs`."""
        self._ranked[name] = ranking
        return self

    def _rank(self, name: str, model: Model) -> Ranking:
        """Let a model rank, once for all that needs no more of its lists."""
        from unskew.judging.rank import rank_designs

        if name not in self._ranked or not self._ranked[name].job.covers(self.job):
            settings: Any = {"ties": self.ties or "id", "seed": self.seed, "threads": self.threads}
            (self._ranked[name],) = rank_designs(model, [self.job], **settings)
        return self._ranked[name]

    def _undrawn(self, name: str, system: Run | Model, lists: TargetLists) -> Undrawn:
        """Rank all candidates of lists whose others are not drawn."""
        if isinstance(system, Run):
            raise SettingError(
                f"{name}: exact=True needs the number of candidates ranked above the relevant "
                "item, which a ready-made run does not contain: give a model, or leave exact out"
            )
        return Undrawn.of_ranks(*anchors_of(lists, self._rank(name, system)), lists, self._lists)

    @cached_property
    def with_list(self) -> Mask:
        """Which lists any system gave."""
        with_list = np.zeros(len(self._lists), np.bool_)
        for matched in self.matched.values():
            with_list |= matched.depth > 0
        return with_list

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed and left out while data were read."""
        return tuple(dict.fromkeys((*self.read, *self.read.ids)))

    @property
    def laying_notes(self) -> tuple[str, ...]:
        """What did not meet: ids of runs, and items that models could not score; what is tied."""
        unscored = unscored_notes(self.matched, self.targets)
        ties = tie_notes(self._runs, self.unranked) if self.is_tied else ()
        return (*self.read.ids, *unscored, *ties)

    def table(self) -> pl.DataFrame:
        """Return a row per system; of models that have yet to rank only the name.

        Columns: system, lists, without_list (users with test ratings but no list), without_test
        (lists of users without test ratings), items (in all lists), judged (their share that is
        judged).
        """
        is_exact = self.targets is not None and self.targets.exact
        return table_of_lists(
            {
                name: self.matched[name] if isinstance(system, Run) and not is_exact else None
                for name, system in self.systems.items()
            },
            self.judgments,
        )

    def _explanation(self) -> list[str]:
        tests = self.tests
        liked = int(np.count_nonzero(self.relevance.is_liked(tests.value)))
        share = f", {100 * liked / len(tests):.1f} % liked" if len(tests) else ""
        lines = [
            f"{counted(self._users, 'user')} with {counted(len(tests), 'judgment')}{share}",
            str(self.relevance),
        ]
        if self.train is not None:
            lines.append(f"training: {counted(len(self.train), 'rating')}")
        if self.targets is not None:
            lines.append(f"on target lists: {self.targets!r}")
        if self.occasions is not None:
            lines.append(self.occasions.words)
        return lines

    @property
    def _users(self) -> int:
        return int(np.count_nonzero(np.diff(self.tests.start)))

    def _summary(self) -> str:
        systems = f"{len(self.systems)} system{'s' * (len(self.systems) != 1)}"
        return f"{systems}, {counted(self._users, 'user')}, {counted(len(self.tests), 'judgment')}"


def judged_part(run: Run, tests: Ratings, of_user: bool) -> Run:
    """Return the lists without items that nobody judged, or that their user did not judge.

    A list that loses all of its items stays, as an empty one.
    """
    _, (test_users, run_users) = Ids.union(tests.users, run.users)
    items, (test_items, run_items) = Ids.union(tests.items, run.items)
    judged = test_items[tests.item].astype(np.int64)
    listed = run_items[run.item].astype(np.int64)
    if of_user:
        owner = np.repeat(np.arange(len(run), dtype=np.int32), run.depth)
        judged += len(items) * test_users[tests.user].astype(np.int64)
        listed += len(items) * run_users[owner].astype(np.int64)
    retained = (run.item >= 0) & np.isin(listed, judged)
    start = np.append(0, np.cumsum(retained))[run.start]
    return Run(run.users, run.items, frozen(start), frozen(run.item[retained]))
