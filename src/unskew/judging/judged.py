"""`judge`: judgments and ranked lists over one numbering, read once for every analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, Mask, frozen
from unskew.checks import as_count, checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.read.ratings_files import read_items
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    Relevance,
    Rule,
    hint_at_candidates,
    paper_of,
)
from unskew.errors import SettingError
from unskew.judging.notes import Attention, all_remarks, as_notes, table_of_lists, unscored_notes
from unskew.judging.numbering import Numbering, judged_part, match_targets
from unskew.judging.occasions import Occasions, lay, read_tests
from unskew.judging.reading import (
    ReadingNotes,
    lists_of_design,
    read_runs,
    read_systems,
    relevance_for,
    run_notes,
)
from unskew.judging.shape import Basis, Lists, Matched, Ranked, Undrawn, View, count_labels
from unskew.judging.tied import TargetItems, TiedRanks, check_ties, tie, tie_notes
from unskew.recommend.model import Model
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.runs import Run
from unskew.targets.designs import Targets
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
    read: ReadingNotes = ReadingNotes()  # noqa: RUF009 - frozen
    need: Need = Need()
    threads: int | None = None
    _ranked: dict[str, Ranking] = field(default_factory=dict)
    """By model: what it gave, and how deep it was asked."""

    @classmethod
    def over(
        cls,
        numbering: Numbering,
        relevance: Relevance,
        *,
        tests: Ratings,
        train: Ratings | None,
        systems: Mapping[str, Run | Model],
        items: pl.Series | None = None,
        targets: TargetLists | None = None,
        occasions: Occasions | None = None,
        ties: str | None = None,
        seed: int = 0,
        depth: int | None = None,
        unranked: str = "out",
        paper: str = "",
        read: ReadingNotes = ReadingNotes(),  # noqa: B008 - frozen
    ) -> Judged:
        """Apply the relevance rule to judgments under one numbering."""
        judgments = numbering.judgments
        view = View.of(judgments, relevance)
        count = len(judgments.users)
        everyone = Lists(frozen(np.arange(count, dtype=np.int32)))
        liked, disliked = count_labels(judgments, everyone, view)
        return cls(
            tests=tests,
            train=train,
            systems=systems,
            relevance=relevance,
            numbering=numbering,
            view=view,
            liked=liked,
            disliked=disliked,
            items=items,
            targets=targets,
            occasions=occasions,
            ties=ties,
            seed=seed,
            depth=depth,
            unranked=unranked,
            paper=paper,
            read=replace(read, ids=numbering.notes),
        )

    @classmethod
    def of_lists(
        cls,
        lists: TargetLists,
        systems: Mapping[str, Run | Model],
        *,
        ties: str | None = None,
        seed: int = 0,
        depth: int | None = None,
        unranked: str = "out",
        read: ReadingNotes | None = None,
    ) -> Judged:
        """Lay systems over target lists: runs by the names of lists, models by their ranks."""
        return cls.over(
            Numbering.of_targets(lists),
            lists.relevance,
            tests=lists.tests,
            train=lists.train,
            systems=systems,
            targets=lists,
            ties=ties,
            seed=seed,
            depth=depth,
            unranked=unranked,
            read=ReadingNotes(targets=lists.notes) if read is None else read,
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
        """Return the same data, whose ratings are taken by another rule."""
        assert self.targets is None
        return replace(self, relevance=relevance)._anew(self.tests, self.train, self._runs)

    def only_judged_items(self, *, of_user: bool) -> Judged:
        """Return lists without the items that nobody judged, or that their user did not judge."""
        assert self.targets is None
        runs = {name: judged_part(run, self.tests, of_user) for name, run in self._runs.items()}
        return self._anew(self.tests, self.train, runs)

    @property
    def _runs(self) -> dict[str, Run]:
        return {name: run for name, run in self.systems.items() if isinstance(run, Run)}

    def _anew(self, tests: Ratings, train: Ratings | None, runs: Mapping[str, Run]) -> Judged:
        assert self.occasions is None
        return Judged.over(
            Numbering.of(tests, train, runs, self.items),
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
        if self._known is None:
            return Lists(number)
        return Lists(number, self.numbering.count_targets(self._known))

    @cached_property
    def _known(self) -> Mask | None:
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
        return Basis(
            judgments,
            self._lists,
            self.view,
            self.liked,
            self.disliked,
            train=self.numbering.train,
            catalogue=self._known,
            longest=max(int(length.max(initial=0)) for length in lengths) + 1,
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
        assert self._known is not None
        assert self._lists.targets is not None
        count, train = self._lists.targets, self.numbering.train
        return TargetItems.of_catalogue(self.judgments, count, self._known, train)

    @cached_property
    def job(self) -> RankJob:
        """What a model is asked for on the target lists."""
        from unskew.judging.rank import job_on

        assert self.targets is not None
        return job_on(self.targets, self.need.top, self.need.scan, self.depth)

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
        from unskew.judging.rank import anchors_of

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
        runs = self._runs if self.is_tied else {}
        return (
            *self.read.ids,
            *unscored_notes(self.matched, self.targets),
            *tie_notes(runs, self.unranked),
        )

    def remarks(self, users: str, attention: Attention = Attention()) -> list[str]:  # noqa: B008
        """Return what a reader of the numbers should know, and warn where it matters.

        Parameters
        ----------
        users
            Which users are averaged.
        attention
            What is looked at.
        """
        remarks = all_remarks(self.basis, self.matched, users, attention)
        return [*self.laying_notes, *as_notes(remarks)]

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


@checked
def judge(
    judgments: object,
    runs: object,
    *,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    targets: str | Targets | None = None,
    lists: str | Sequence[str] | None = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    unranked: str | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Judged:
    """Lay judgments and ranked lists over one numbering, once for every analysis.

    Parameters
    ----------
    judgments
        Test ratings: anything that `read_ratings` takes; or target lists (`Targets.lists`), which
        know training, test and relevance themselves.
    runs
        A mapping from system name to ranked lists (anything that `read_run` takes), a list of
        paths, or a single path, table or `Run`. On target lists also fitted models and whatever
        `rank` takes; the lists of a ready-made run are named by list.
    liked, above, gain, loss
        How a rating is taken, see `Relevance`. Without `liked`, `above` or `relevance` a threshold
        is assumed where it is plain (1 for TREC qrels, implicit and 0/1 data, 4 on a scale of 1
        to 5), and the notes say so.
    relevance
        Instead of these four: a `Relevance`; or the name of a paper, such as `mena2021`, which
        also sets what `evaluate` does: which users are averaged, what undefined values count, how
        deep lists are read, and what P, AP or infAP are divided by. What is stated beside it wins.
    train
        Training ratings: for popularity, novelty, propensities and stratified recall; warns when
        lists hold items the user already rated there.
    items
        The catalogue: for coverage, Gini, entropy, AUC. Default: all items of `train` and
        `judgments`; for estimates also those of the lists.
    targets
        What the systems ranked, with `train`: a design with one list per user, such as
        `us.targets.TestItems()`, or its name (`all-items`, `test-items`, `train-items`,
        `test-targets`). Then lists are checked against it.
    lists
        Where users have several lists: the columns of the runs that tell them apart, users first,
        such as ``("user", "date")``. Each list of a date is evaluated with what its user rated
        from then on (`judgments` need times; of a log, `read_events`, an item met again counts
        again), each of a session with what is rated in it. A user's lists are averaged, then users.
    ties
        How equal scores are ordered, see `unskew.ties`. Default: `trec` for TREC files, else
        `id`. `expected`: not at all; `evaluate` and `compare` then give the exact mean of each
        metric over all orders of equal scores.
    seed
        For `ties="random"`, and for what a design of targets draws.
    depth
        Look at no more than this many items of each list.
    unranked
        Target items (the catalogue without the user's training items, or those of `targets`) that
        a list does not hold: `out` (default), they have no place; `last`, with
        `ties="expected"`, they follow the list in random order. A user without a list scores 0
        either way.
    events, weights
        Of event logs: the kinds of events that count, or what each kind counts; see `read_ratings`.

    Returns
    -------
    Judged

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> judged = us.judge(test, {"mine": {1: [20, 10], 2: [30]}}, liked=4)
    >>> us.evaluate(judged, ["RR", "P@2"]).means()
    {'mine': {'RR': 0.75, 'P@2': 0.5}}
    """
    if depth is not None:
        as_count("depth", depth)
    unranked_rule = check_ties(ties, unranked)
    if isinstance(judgments, TargetLists):
        settings = {
            "liked": liked,
            "above": above,
            "relevance": relevance,
            "train": train,
            "items": items,
            "targets": targets,
            "lists": lists,
        }
        for name, value in settings.items():
            if value is not None:
                raise SettingError(f"target lists already contain their {name}: leave {name}=… out")
        return _judge_lists(judgments, runs, ties, seed, depth, unranked_rule)
    tests, training, log, systems = read_tests(
        judgments, runs, train, lists, ties, seed, events=events, weights=weights
    )
    if log is not None and (targets is not None or unranked_rule == "last"):
        name = "unranked='last'" if targets is None else "targets=…"
        raise SettingError(f"{name} is for one list per user: leave it out, or lists=…")
    catalogue = None if items is None else read_items(items)
    rule, assumed = relevance_for(tests, liked, above, gain, loss, relevance)
    paper = relevance if isinstance(relevance, str) else ""
    depth = depth or paper_of(paper).depth
    read = ReadingNotes(tests.notes, () if training is None else training.notes, tuple(assumed))
    if targets is not None:
        if catalogue is not None:
            raise SettingError("target lists already contain their items: leave items=… out")
        target_lists = lists_of_design(targets, tests, training, rule, seed)
        return replace(
            _judge_lists(target_lists, runs, ties, seed, depth, unranked_rule, read), paper=paper
        )
    systems = systems or read_runs(runs, ties, seed, (tests.users, tests.items))
    numbering, occasions = lay(log or tests, training, systems, catalogue)
    list_notes = () if occasions is None else occasions.notes
    return Judged.over(
        numbering,
        rule,
        tests=tests,
        train=training,
        systems=systems,
        items=catalogue,
        occasions=occasions,
        ties=ties,
        seed=seed,
        depth=depth,
        unranked=unranked_rule,
        paper=paper,
        read=replace(read, runs=(*run_notes(systems), *list_notes)),
    )


def _judge_lists(
    lists: TargetLists,
    runs: object,
    ties: str | None,
    seed: int,
    depth: int | None,
    unranked: str,
    read: ReadingNotes = ReadingNotes(),  # noqa: B008 - frozen
) -> Judged:
    """Lay models, or runs made for them, over target lists."""
    if lists.exact and (depth is not None or ties == EXPECTED):
        name = "depth=…" if depth is not None else "ties='expected'"
        raise SettingError(f"exact=True ranks all candidates in one order: leave {name} out")
    systems = read_systems(lists, runs, ties, seed)
    if unranked == "last" and any(not isinstance(system, Run) for system in systems.values()):
        raise SettingError(
            "unranked='last' is for ready-made runs; a model ranks all targets: give the targets "
            "shortfall='fill', and those that it cannot score come last in random order"
        )
    read = replace(read, targets=lists.notes, runs=run_notes(systems))
    return Judged.of_lists(
        lists, systems, ties=ties, seed=seed, depth=depth, unranked=unranked, read=read
    )
