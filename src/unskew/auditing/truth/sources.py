"""Fitted systems judged twice: as a protocol does it, and by what is true."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import polars as pl

from unskew.arrays import I32, Tile, frozen
from unskew.checks import as_share, choose
from unskew.data.dataset import EXHAUSTIVE, JUDGED, POOLED, RANDOM, Dataset, TrueJudgments
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import generator
from unskew.engine.store import digest_of
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError, quietly
from unskew.evaluation.evaluate import MEMORY, evaluate, forgiving
from unskew.evaluation.scores import Scores, System
from unskew.evaluation.scoring import Measures, list_columns, prepare, remarks, score
from unskew.experiment.plan import Plan
from unskew.judging.judged import Judged
from unskew.recommend.model import Algorithm, Model
from unskew.report.text import counted
from unskew.splits import draws
from unskew.splits.split import Split, shared_rows, without_overlap
from unskew.targets.designs import AllItems, Targets, TestItems, TestTargets
from unskew.targets.lists import TargetLists
from unskew.worlds.worlds import World

WORLD_WEIGHTS = 0.01
"""The share of a world's pairs from which WTD learns how random ratings are spread."""
SAMPLE_WEIGHTS = 0.15
"""The share of the random ratings from which it does (carraro2020 section 5.2)."""

OVERLAP = {
    "to-training": "without those in training",
    "keep": "those in training counting as missed",
}
"""What becomes of random ratings whose pair is in training."""
UNLIKELY = 4.0
"""Standard deviations beyond which a number of common pairs is no chance."""


@dataclass(frozen=True, eq=False)
class SampledTruth:
    """The truth as given judgments: of randomly chosen pairs, or of every pair of some."""

    ratings: Ratings
    """What is observed."""
    random: Ratings
    """The judgments."""
    weights: Ratings | None
    """Random ratings that WTD may learn from; the truth does not judge by them."""
    targets: Targets
    overlap: str
    name: str
    """The truth that is meant."""
    kind: str = RANDOM
    liked: float | None = None
    """The smallest liked judgment, where it is not that of the observed ratings."""

    def relevance(self, plan: Plan) -> Relevance:
        """Return which judgments are liked."""
        if self.liked is None:
            return plan.relevance
        return replace(plan.relevance, liked=self.liked, above=None)

    def judge(self, models: Mapping[str, Model], train: Ratings, plan: Plan) -> Scores:
        """Score models on the judgments of pairs that are not in training."""
        _, tests, _ = without_overlap(train, self.random, self.overlap)
        lists = self.targets.lists(Split(train, tests), self.relevance(plan), seed=plan.seed)
        return scores_on(lists, models, plan, with_chance=False)


@dataclass(frozen=True, eq=False)
class Pooled(SampledTruth):
    """The truth as judgments of what several systems listed: an unjudged item is not disliked.

    Pools hold what users had not rated, so that what they rated is no target, be it in the training
    or in the test part.
    """

    def judge(self, models: Mapping[str, Model], train: Ratings, plan: Plan) -> Scores:  # noqa: ARG002
        """Score models on the order of the judged items alone (condensed lists)."""
        lists = self.targets.lists(self._split, self.relevance(plan), seed=plan.seed)
        return scores_on(lists, models, plan, with_chance=False)

    @cached_property
    def _split(self) -> Split:
        _, tests, _ = without_overlap(self.ratings, self.random, "to-training")
        return Split(self.ratings, tests)


@dataclass(frozen=True, eq=False)
class SimulatedTruth:
    """The truth as every pair of a world."""

    world: World
    weights: Ratings | None
    targets: Targets
    name: str

    @property
    def ratings(self) -> Ratings:
        """The observed ratings of the world."""
        return self.world.ratings

    def judge(self, models: Mapping[str, Model], train: Ratings, plan: Plan) -> Scores:
        """Score models block by block of users, each judged on all its pairs outside training."""
        if not train.users.equals(self.world.users) or not train.items.equals(self.world.items):
            raise DataError("the split has other users or items than the world: keep its ids")
        parts = []
        blocks = list(self.world.blocks())
        for block in blocks:
            lists = self._lists(train, plan, block, is_whole=len(blocks) == 1)
            shifted = {name: _OfBlock(model, block) for name, model in models.items()}
            parts.append(scores_on(lists, shifted, plan, with_chance=False))
        return _joined(parts, self.world.users, blocks)

    def _lists(self, train: Ratings, plan: Plan, block: I32, is_whole: bool) -> TargetLists:
        """Lay the lists of users over all their pairs outside training.

        Those of a whole world are kept for as long as its training ratings: systems follow one
        another on a split.
        """
        key = (self.world, self.targets, plan.relevance, plan.seed)
        if is_whole and train in _laid and _laid[train][0] == key:
            return _laid[train][1]
        train_part, judgments = _of_users(block, train, self.world.truth(block))
        _, judgments, _ = without_overlap(train_part, judgments, "to-training")
        lists = self.targets.lists(Split(train_part, judgments), plan.relevance, seed=plan.seed)
        if is_whole:
            _laid[train] = key, lists
        return lists


_laid: WeakKeyDictionary[Ratings, tuple[tuple[object, ...], TargetLists]] = WeakKeyDictionary()
"""By training ratings: the lists of a world, and what they depend on."""


Source = SampledTruth | SimulatedTruth
"""Where ratings come from whose truth is known."""


@dataclass(frozen=True, eq=False)
class _OfBlock:
    """A model under the numbers of a block of users."""

    model: Model
    block: I32

    def score(self, users: I32) -> Tile:
        return self.model.score(self.block[users])


def _of_users(block: I32, *parts: Ratings) -> tuple[Ratings, ...]:
    """Return the ratings of a block of users, these being all there are."""
    ids = Ids(parts[0].users.raw(block))

    def of_block(ratings: Ratings) -> Ratings:
        part = ratings.take(np.isin(ratings.user, block))
        user = frozen(np.searchsorted(block, part.user).astype(np.int32))
        return Ratings(ids, part.items, user, part.item, part.value, None, {}, ratings.implicit)

    return tuple(map(of_block, parts))


def _joined(parts: Sequence[Scores], users: Ids, blocks: Sequence[I32]) -> Scores:
    """Put the scores of blocks of users together."""
    first = parts[0]

    def concatenated(systems: Sequence[System]) -> System:
        rows = systems[0].den
        return System(
            np.concatenate([system.values for system in systems], axis=1),
            {row: np.concatenate([system.den[row] for system in systems]) for row in rows},
            np.concatenate([system.depth for system in systems]),
        )

    lists = [
        part.lists.with_columns(user=pl.Series(block[part.lists["user"].to_numpy()]))
        for part, block in zip(parts, blocks, strict=True)
    ]
    chances = [part.chance for part in parts if part.chance is not None]
    return replace(
        first,
        systems={
            name: concatenated([part.systems[name] for part in parts]) for name in first.systems
        },
        user_ids=users,
        lists=pl.concat(lists),
        chance=concatenated(chances) if chances else None,
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def source_of(
    data: object,
    random: object,
    weights: float | None,
    targets: Targets | None,
    overlap: str,
    plan: Plan,
) -> Source:
    """Find out what the truth is."""
    if isinstance(data, World):
        if random is not None:
            raise SettingError("a world knows its truth: leave random=… out")
        return _simulated(data, weights, _one_list(targets or AllItems()), plan)
    observed, part = _parts(data, random)
    usual = {RANDOM: AllItems(), EXHAUSTIVE: TestItems(), POOLED: TestTargets()}
    if part.candidates == JUDGED:
        usual[RANDOM] = TestItems()
    design = _one_list(usual[part.kind] if targets is None else targets)
    words = OVERLAP[choose("overlap", overlap, OVERLAP)]
    mnar, mar = under_one_numbering(observed, part.ratings)
    if part.kind == POOLED:
        if _needs_random(plan):
            raise SettingError(
                "interventions that learn from random ratings, such as wtd, need random judgments, "
                "but these are pooled"
            )
        name = (
            f"{part}; items outside the pool are left out of each list, and so are all items that "
            f"the user rated ({design!r})"
        )
        return Pooled(mnar, mar, None, design, overlap, name, POOLED, part.liked)
    learnt = None
    if _needs_random(plan):
        share = as_share("weights", SAMPLE_WEIGHTS if weights is None else weights)
        heads = draws.coin(mar, share, plan.seed, "truth/weights")
        learnt, mar = mar.take(heads), mar.take(~heads)
    what = f"{counted(len(mar), 'rating')} of randomly chosen items"
    if part.kind == EXHAUSTIVE:
        people, things = (np.unique(ids).size for ids in (mar.user, mar.item))
        pairs = f"{counted(people, 'user')} and {counted(things, 'item')}"
        what = f"{counted(len(mar), 'judgment')} of every pair of {pairs}"
    name = f"{what}, {words} ({design!r})"
    return SampledTruth(mnar, mar, learnt, design, overlap, name, part.kind, part.liked)


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """How many observed pairs are among the random judgments."""

    observed: int
    """Ratings of users who have random judgments."""
    common: int
    """Those among the random judgments."""
    expected: float
    """How many would be if what is judged did not depend on what is observed."""

    @property
    def is_nested(self) -> bool:
        """Whether every observed rating is one of the random judgments."""
        return 0 < self.observed == self.common and self.expected < 0.9 * self.observed

    @property
    def is_dependent(self) -> bool:
        """Whether chance hardly makes so many common pairs, or so few."""
        distance = abs(self.common - self.expected)
        return not self.is_nested and distance > UNLIKELY * math.sqrt(max(self.expected, 1.0))

    @property
    def note(self) -> str:
        """What follows for the truth; empty where nothing does."""
        if self.is_nested:
            return (
                "every observed rating is one of the random judgments: outside training, what "
                "would be observed is judged less often than the rest"
            )
        if self.is_dependent:
            return (
                f"{counted(self.common, 'observed pair is', 'observed pairs are')} among the "
                f"random judgments, where chance would make {self.expected:,.0f}: what is judged "
                "depends on what is observed, and true scores lean against popular items if the "
                "common pairs are too few, towards them if they are too many"
            )
        return ""


def overlap_of(source: Source) -> Overlap | None:
    """Count common pairs of observed ratings and random judgments; None where none are random."""
    if not isinstance(source, SampledTruth) or source.kind != RANDOM:
        return None
    users = len(source.ratings.users)
    judged = np.bincount(source.random.user, minlength=users)
    rated = np.bincount(source.ratings.user, minlength=users)
    items = np.unique(source.random.item).size
    inside = np.isin(source.ratings.item, source.random.item)
    among = np.bincount(source.ratings.user[inside], minlength=users)
    return Overlap(
        observed=int(rated[judged > 0].sum()),
        common=int(np.count_nonzero(shared_rows(source.ratings, source.random))),
        expected=float((among * judged).sum() / max(items, 1)),
    )


def _one_list(design: Targets) -> Targets:
    """Refuse designs that ask for other lists than one per user."""
    if design.relevant != "all" or design.strata is not None:
        raise SettingError(f"the truth has one list per user, but {design!r} asks for other lists")
    return design


def _needs_random(plan: Plan) -> bool:
    return any("mar" in intervention.needs for intervention in plan.interventions)


def _simulated(world: World, weights: float | None, design: Targets, plan: Plan) -> SimulatedTruth:
    """Return every pair of a world as the truth."""
    for name, metric in plan.labelled_metrics.items():
        if metric.definition.of == "run":
            raise SettingError(
                f"{name} describes a whole run, but a world is evaluated in blocks of users"
            )
    share = WORLD_WEIGHTS if weights is None else weights
    learnt = world.random(share) if _needs_random(plan) else None
    scope = "every known pair" if world.known is not None else "every pair"
    return SimulatedTruth(
        world, learnt, design, f"{scope} of the world {world.name}, outside training ({design!r})"
    )


def _parts(data: object, random: object) -> tuple[Ratings, TrueJudgments]:
    """Return the observed ratings and the true judgments."""
    observed, whose = data, ""
    if isinstance(data, Dataset):
        if random is not None and data.random is not None:
            raise SettingError(f"{data.name} already has random ratings: leave random=… out")
        if random is None and data.true_part is not None:
            return data.ratings, data.true_part
        observed, whose = data.ratings, f" of {data.name}"
    if random is None:
        raise SettingError(
            f"the truth{whose} is not known: give a world, ratings of randomly chosen items "
            "(random=…), or a data set with true judgments, such as coat or "
            "cm100k:observed=familiar"
        )
    ratings, judgments = (
        source if isinstance(source, Ratings) else read_ratings(source)
        for source in (observed, random)
    )
    return ratings, TrueJudgments(judgments)


def fit_all(
    systems: Mapping[str, Algorithm], train: Ratings, seed: int, *key: object
) -> dict[str, Model]:
    """Train every system on one split, each from its own stream of chance."""
    return {
        label: system.fit(train, generator(seed, "fit", *key, digest_of(system.draw_key)))
        for label, system in systems.items()
    }


def scores_on(
    lists: TargetLists, models: Mapping[str, object], plan: Plan, *, with_chance: bool = True
) -> Scores:
    """Score models on target lists as a plan has it.

    Parameters
    ----------
    lists
        What is ranked.
    models
        By name.
    plan
        Its metrics, ties, seed, and whom it averages over.
    with_chance
        Whether to work out what a random order scores there, too.
    """
    with quietly():
        if not with_chance:
            return _without_chance(lists, models, plan)
        return evaluate(
            lists,
            dict(models),
            list(plan.metrics),
            users=plan.users,
            undefined=plan.undefined,
            ties=plan.ties,
            seed=plan.seed,
            draws=plan.draws,
        )


def _without_chance(lists: TargetLists, models: Mapping[str, Any], plan: Plan) -> Scores:
    """Return what `evaluate` does, without what a random order scores."""
    metrics = Measures(
        {
            label: forgiving(metric) if lists.shortfall == "forgive" else metric
            for label, metric in plan.labelled_metrics.items()
        }
    )
    ranked = Judged.of_lists(lists, models, ties=plan.ties, seed=plan.seed)
    judged = prepare(ranked, metrics)
    notes = [*judged.read, *remarks(judged, metrics, plan.users)]
    results = score(judged.basis, judged.matched, metrics, threads=resolve(None), budget=MEMORY)
    return Scores(
        labels=metrics.rows,
        systems=results,
        user_ids=judged.users,
        lists=list_columns(judged),
        users=plan.users,
        undefined=plan.undefined,
        order=tuple(metrics),
        notes=tuple(notes),
        relevance=str(judged.relevance),
        over="strata" if lists.strata else "lists",
    )
