"""Designs of the null experiment that need more than a split of the ratings at hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from unskew.checks import as_count, as_finite, as_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.data.summary import item_counts
from unskew.errors import SettingError
from unskew.experiment.plan import Plan
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import UserKNN
from unskew.recommend.simple import Popularity, PositivePopularity, Random, SmoothedAverage
from unskew.splits.given import FamiliarTraining
from unskew.splits.popularity import Flat
from unskew.splits.random import Random as RandomSplit
from unskew.splits.split import Split, Splitter
from unskew.splits.strata import Strata, judgment_bins, percentiles
from unskew.targets.designs import AllItems, Targets, TestTargets, TrainItems
from unskew.worlds.nulls import FAMILIAR, forced_judgments

BY = ("items", "judgments")


@dataclass(frozen=True)
class ForcedNull(Splitter):
    """Judgments forced on random pairs, on null data: the test part that should be fair.

    castells2018 section 7.1: each rating trains with probability `density`, and pairs outside
    training are judged so that every item has that density of judgments. What users think of pairs
    that they did not rate is drawn from all ratings: right for ratings drawn independently
    (`redraw`), and invented for any others, so the null experiment does not run it on the data as
    they are.

    Parameters
    ----------
    density
        p(J): which share of all pairs is judged.
    liked
        The smallest rating that is liked.
    fair
        Thin the test part as castells2018 section 5.2.2 (`FamiliarTraining`): without it the
        popular items, whose judgments train more often, are tested too little.
    """

    density: float = 0.5
    liked: float = 4.0
    fair: bool = True

    name: ClassVar[str] = "forced-null"
    draw_name: ClassVar[str] = "forced-null"
    null_only: ClassVar[bool] = True
    """Whether it has a meaning on null data only."""

    def __post_init__(self) -> None:
        as_share("density", self.density)
        as_finite("liked", self.liked)

    def known_count(self) -> int | None:
        """Return how many splits there are."""
        return 1

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Draw the judgments and part them."""
        judgments = forced_judgments(ratings, self.density, seed)
        plain = FamiliarTraining(FAMILIAR, None)
        # Every item has as many judgments: their shares need no smoothing.
        thinned = FamiliarTraining(FAMILIAR, None, fair=True, liked=self.liked, smoothing=0.0)
        for split in (thinned if self.fair else plain).each(judgments, seed):
            yield replace(split, label=self.name)


@dataclass(frozen=True)
class Slices(Splitter):
    """A split cut by popularity into bins, each of which trains and tests on its own.

    castells2018 section 5.1.3. `TrainItems()` ranks the items of the bin. The mean over these
    splits is the paper's mean over bins. (`Targets(strata=10)` ranks within bins too, with systems
    that are trained on everything, as in bellogin2017.)

    Parameters
    ----------
    split_by
        The split to cut.
    m
        The number of bins.
    by
        Bins of about equal numbers of liked training `judgments`, or of equal numbers of `items`,
        by falling number of ratings.
    liked
        For `judgments`: the smallest rating that is liked.
    """

    split_by: Splitter = field(default_factory=RandomSplit)
    m: int = 10
    by: str = "judgments"
    liked: float = 4.0

    name: ClassVar[str] = "slices"
    draw_name: ClassVar[str] = "slices"

    def __post_init__(self) -> None:
        if not isinstance(self.split_by, Splitter):
            raise SettingError(
                f"split_by must be a splitter, such as us.splits.Random(); got {self.split_by!r}"
            )
        as_count("m", self.m, 2)
        choose("by", self.by, BY)
        as_finite("liked", self.liked)

    def make_splits(self, ratings: Ratings, seed: int) -> Iterator[Split]:
        """Make the splits; a bin without training or test ratings makes none."""
        for split in self.split_by.each(ratings, seed):
            for part in self._bins(split).slices(split):
                if len(part.train) and len(part.test):
                    yield part

    def _bins(self, split: Split) -> Strata:
        if self.by == "judgments":
            return judgment_bins(split.train, Relevance(liked=self.liked), self.m)
        return percentiles(item_counts(split.train) + item_counts(split.test), self.m)


DESIGNS = {
    "random": "the test part is a random fifth of the ratings; all items are ranked",
    "flat": "the test part has ten ratings of each item with at least 20; all items are ranked",
    "percentiles": "random split, ranked within ten bins of items by popularity",
    "judgment-bins": "random split, ranked within ten bins with equal numbers of liked judgments",
    "slices": "like judgment-bins, but each bin is trained and tested separately",
    "test-targets": (
        "random split, only the user's test items are ranked (unscored items last, in random order)"
    ),
    "forced": "judgments forced on random pairs, thinned to be fair (null data only)",
    "forced-raw": "the same, not thinned: unfair to popular items (null data only)",
}
DEFAULT_DESIGNS = ("random", "flat", "percentiles", "judgment-bins", "test-targets")


def simple_systems(liked: float = 4.0) -> list[Algorithm]:
    """Return the non-personalised systems of castells2018 section 7.2."""
    return [
        Random(),
        Popularity(),
        PositivePopularity(liked),
        SmoothedAverage("mean", "liked", liked),
    ]


@checked
def published_designs(
    algorithms: Sequence[Algorithm] | Mapping[str, Algorithm] | None = None,
    designs: Sequence[str] = DEFAULT_DESIGNS,
    *,
    liked: float = 4.0,
    metrics: Sequence[str] = ("P@10",),
    folds: int | None = None,
    users: str = "all",
    seed: int = 0,
) -> dict[str, Plan]:
    """Return the designs of castells2018 figure 2 as plans, by name: what a null experiment runs.

    Parameters
    ----------
    algorithms
        The systems; random, popularity, positive popularity and smoothed average unless given.
        Under test targets a `UserKNN` takes all users as neighbours, as in the paper.
    designs
        Names of `DESIGNS`.
    liked, metrics, users, seed
        As in `Plan`.
    folds
        Folds of the random split; one split with a fifth of the ratings unless given.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.null.null_designs import published_designs
    >>> plans = published_designs(designs=["random", "flat"])
    >>> plans["flat"].splits
    (Flat(t=10, test=None, min_ratings=20, repetitions=1),)
    """
    for name in designs:
        choose("design", name, DESIGNS)
    if not designs:
        raise SettingError(f"name at least one design: {', '.join(DESIGNS)}")
    systems = simple_systems(liked) if algorithms is None else algorithms
    random = RandomSplit(test=0.2) if folds is None else RandomSplit(folds=folds)
    ways: dict[str, tuple[Splitter, Targets]] = {
        "random": (random, AllItems()),
        "flat": (Flat(10, min_ratings=20), AllItems()),
        "percentiles": (random, AllItems(strata=10)),
        "judgment-bins": (random, AllItems(strata=10, strata_by="judgments")),
        "slices": (Slices(random, liked=liked), TrainItems()),
        "test-targets": (random, TestTargets("fill")),
        "forced": (ForcedNull(liked=liked), AllItems()),
        "forced-raw": (ForcedNull(liked=liked, fair=False), AllItems()),
    }
    return {
        name: Plan(
            ways[name][0],
            ways[name][1],
            _with_all_neighbours(systems) if name == "test-targets" else systems,
            Relevance(liked=liked),
            tuple(metrics),
            users=users,
            seed=seed,
        )
        for name in dict.fromkeys(designs)
    }


def _with_all_neighbours(
    systems: Sequence[Algorithm] | Mapping[str, Algorithm],
) -> dict[str, Algorithm]:
    named = dict(Plan(algorithms=systems).systems)
    return {
        label: replace(system, k=None) if isinstance(system, UserKNN) else system
        for label, system in named.items()
    }
