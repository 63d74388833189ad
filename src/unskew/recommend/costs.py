"""What it costs to train an algorithm and to score with it: time and memory, known beforehand.

Each algorithm's work is counted in operations by a formula of the sizes of the data; what one
operation takes was measured once (`cost_constants`), and this machine is compared with the one on
which that was done.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from unskew.arrays import I64
from unskew.data.ratings import Ratings
from unskew.errors import DataError
from unskew.recommend.cost_constants import NANOSECONDS, PARALLEL
from unskew.recommend.model import Algorithm

NUMBER = 8
"""Bytes of a number in double precision."""
SINGLE = 0.52
"""Time of an inverse in single precision, as a share of one in double (3,706 items)."""
ENTRY = 12
"""Bytes of an entry of a sparse matrix: its column and its value."""
SVD_STEPS = 14
"""Blocks of vectors that block Lanczos iteration adds before PureSVD is exact, as measured."""
SVD_BASIS = 1 << 26
"""Numbers that the basis of PureSVD may hold, unless three blocks need more."""


@dataclass(frozen=True)
class DataShape:
    """The sizes of ratings on which costs depend.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.costs import DataShape
    >>> DataShape.of(us.read_ratings({"user": [1, 1, 1, 2], "item": [7, 8, 9, 7]})).user_pairs
    10.0
    """

    ratings: int
    users: int
    items: int
    largest_user: int = 0
    """Ratings of the user with the most; 0 = not known."""
    largest_item: int = 0
    user_pairs: float = 0.0
    """Sum over users of their squared number of ratings: the pairs of items that meet in a user.
    0 = not known, then it is set to what is usual for the largest user."""
    item_pairs: float = 0.0
    """The same over items: the pairs of users that meet in an item."""

    def __post_init__(self) -> None:
        for pairs, largest, groups in (
            ("user_pairs", "largest_user", self.users),
            ("item_pairs", "largest_item", self.items),
        ):
            mean = self.ratings / max(groups, 1)
            if not getattr(self, largest):
                object.__setattr__(self, largest, min(math.ceil(12 * mean), self.ratings))
            if not getattr(self, pairs):
                usual = self.ratings * math.sqrt(mean * getattr(self, largest))
                object.__setattr__(self, pairs, max(float(self.ratings), usual))

    @classmethod
    def of(cls, ratings: Ratings) -> DataShape:
        """Return the sizes of ratings, by one pass over them."""
        by_user: I64 = np.diff(ratings.start)
        by_item: I64 = np.bincount(ratings.item, minlength=len(ratings.items))
        return cls(
            ratings=len(ratings),
            users=len(ratings.users),
            items=len(ratings.items),
            largest_user=int(by_user.max(initial=0)),
            largest_item=int(by_item.max(initial=0)),
            user_pairs=float(np.square(by_user, dtype=np.float64).sum()),
            item_pairs=float(np.square(by_item, dtype=np.float64).sum()),
        )

    def part(self, share: float) -> DataShape:
        """Return the sizes of a random share of the ratings."""
        return self._thinned(share, share)

    def of_users(self, users: int) -> DataShape:
        """Return the sizes of the ratings of so many users, drawn at random."""
        share = min(users / max(self.users, 1), 1.0)
        return replace(self._thinned(share, 1.0), users=min(users, self.users))

    def _thinned(self, of_items: float, of_users: float) -> DataShape:
        """Keep a share of every item's ratings; users lose ratings, or leave as a whole."""
        left = self.ratings * of_items

        def pairs(whole: float, share: float) -> float:
            return share**2 * (whole - self.ratings) + share * self.ratings

        by_user = pairs(self.user_pairs, of_users) if of_users < 1 else self.user_pairs * of_items
        return replace(
            self,
            ratings=round(left),
            largest_user=math.ceil(self.largest_user * of_users),
            largest_item=math.ceil(self.largest_item * of_items),
            user_pairs=max(by_user, left),
            item_pairs=max(pairs(self.item_pairs, of_items), left),
        )


@dataclass(frozen=True, kw_only=True)
class Work:
    """What an algorithm does on data of some shape: operations by kind, and bytes.

    An algorithm of your own may return one from a method `work(shape)`: kinds are those of
    `cost_constants`, or `seconds` of processor time as you measured them.
    """

    fit: Mapping[str, float] = field(default_factory=dict)
    """Operations of one fit."""
    shared: frozenset[str] = frozenset()
    """Kinds of operations that fits with several settings on the same ratings do once."""
    score: Mapping[str, float] = field(default_factory=dict)
    """Operations to score one user against all items."""
    model: float = 0.0
    """Bytes of the model."""
    largest_part: float = 0.0
    """Bytes of the largest array that must be in memory at once."""
    fit_bytes: float = 0.0
    """Bytes that a fit holds beside the model and the ratings."""


@dataclass(frozen=True)
class Cost:
    """What one fit costs, and what it costs to score with the model."""

    seconds: float
    """Of one processor, for one fit; NaN = not known."""
    bytes: float
    """Of model and fit together, at their largest."""
    score_seconds: float = 0.0
    """Of one processor, to score one user."""
    largest_part: float = 0.0
    """Bytes of the largest array."""

    @property
    def is_known(self) -> bool:
        """Whether there is a formula."""
        return not math.isnan(self.seconds)


@dataclass(frozen=True)
class Machine:
    """What operations take on a machine, as a multiple of what they took where they were measured.

    `REFERENCE` is the machine of the table: what must be equal everywhere, such as the rule by
    which an audit leaves out systems, takes that one.
    """

    dense: float = 1.0
    """Products of dense matrices."""
    sparse: float = 1.0
    """Sums into places that jump."""
    scan: float = 1.0
    """One pass over an array."""


REFERENCE = Machine()
KINDS = {
    "ease flop": "dense",
    "svd flop": "dense",
    "factor flop": "dense",
    "solve flop": "dense",
    "knn product": "sparse",
    "gram product": "sparse",
    "vote": "sparse",
    "sparse flop": "sparse",
    "topic": "sparse",
    "sgd step": "sparse",
}
"""By operation: what of a machine it depends on; `scan` unless stated."""
MEASURED = Machine(dense=5.2e-3, sparse=1.7e-3, scan=0.5e-3)
"""Seconds of the three trials of `this_machine` on the reference machine."""


@cache
def this_machine() -> Machine:
    """Compare this machine with the reference, in about a tenth of a second, once per process."""
    from unskew.engine.threads import one_blas_thread

    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((512, 512))
    place = rng.integers(0, 1 << 15, 1 << 20)
    value = rng.standard_normal(1 << 20)
    with one_blas_thread():
        dense = _fastest(lambda: matrix @ matrix)
        sparse = _fastest(lambda: np.bincount(place, value))
        scan = _fastest(lambda: np.maximum(value, 0.0))
    return Machine(dense / MEASURED.dense, sparse / MEASURED.sparse, scan / MEASURED.scan)


def _fastest(work: Callable[[], object], trials: int = 5) -> float:
    """Return the least processor time of a few trials: other work on the machine only adds."""
    times = []
    for _ in range(trials):
        begun = time.thread_time()
        work()
        times.append(time.thread_time() - begun)
    return max(min(times), 1e-6)


def seconds_of(operations: Mapping[str, float], machine: Machine = REFERENCE) -> float:
    """Return what operations take on one processor.

    Examples
    --------
    >>> from unskew.recommend.costs import seconds_of
    >>> seconds_of({"seconds": 2.0})
    2.0
    """
    total = operations.get("seconds", 0.0)
    for name, count in operations.items():
        if name != "seconds":
            total += 1e-9 * NANOSECONDS[name] * count * getattr(machine, KINDS.get(name, "scan"))
    return total


def on_clock(seconds: float, processors: int) -> float:
    """Return how long work takes on several processors without other work.

    Examples
    --------
    >>> from unskew.recommend.costs import on_clock
    >>> on_clock(100.0, 1)
    100.0
    """
    return seconds * (1 - PARALLEL + PARALLEL / processors)


def work_of(algorithm: Algorithm, shape: DataShape) -> Work | None:
    """Return what an algorithm does on data of a shape; None where nobody stated it."""
    declared = getattr(algorithm, "work", None)
    if callable(declared):
        stated: Work = declared(shape)
        return stated
    formula = FORMULAS.get(algorithm.name)
    return None if formula is None else formula(algorithm, shape)


def cost_of(algorithm: Algorithm, shape: DataShape, machine: Machine = REFERENCE) -> Cost:
    """Return what it costs to train an algorithm and to score with it.

    Parameters
    ----------
    algorithm
        With its settings.
    shape
        Of the training ratings.
    machine
        `this_machine()`; the one on which constants were measured unless given.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.costs import DataShape, cost_of
    >>> small, large = DataShape(100_000, 943, 1_682), DataShape(20_000_000, 138_000, 27_000)
    >>> cost_of(us.recommend.UserKNN(), large).seconds > 1_000 * cost_of(
    ...     us.recommend.UserKNN(), small).seconds
    True
    """
    work = work_of(algorithm, shape)
    if work is None:
        return Cost(math.nan, 0.0)
    return Cost(
        seconds=seconds_of(work.fit, machine),
        bytes=work.model + work.fit_bytes,
        score_seconds=seconds_of(work.score, machine),
        largest_part=work.largest_part,
    )


def cost_by_trial(
    algorithm: Algorithm, ratings: Ratings, users: int = 300, machine: Machine = REFERENCE
) -> Cost:
    """Return what an algorithm without a formula costs, from a fit on a few users.

    The time is scaled by the number of ratings, which is rough: some algorithms grow faster. What
    it takes on this machine is turned into what it takes on the given one.
    """
    if not len(ratings):
        raise DataError(f"{algorithm.name}: there are no ratings to try it on")
    active = np.unique(ratings.user)  # ids may belong to users without ratings
    some = active[np.linspace(0, active.size - 1, min(users, active.size)).astype(np.int64)]
    few = ratings.take(np.isin(ratings.user, some))
    scale = len(ratings) / len(few)
    model = algorithm.fit(few, 0)  # kernels are compiled here
    begun = time.process_time()
    algorithm.fit(few, 0)
    between = time.process_time()
    model.score(some[:64])
    score = (time.process_time() - between) / some[:64].size
    faster = machine.scan / this_machine().scan
    return Cost((between - begun) * scale * faster, 0.0, score * faster)


def work_of_several(settings: Sequence[Algorithm], shape: DataShape) -> Work | None:
    """Return what fits of one algorithm with several settings on the same ratings do together.

    What settings share (`Work.shared`) is done once, for the setting that needs most of it; the
    operations that score a user are added up. Bytes are those of the largest.
    """
    several = [_work_among_several(one, shape) for one in settings]
    known = [one for one in several if one is not None]
    if not known or len(known) < len(several):
        return None
    shared = frozenset.intersection(*(one.shared for one in known))

    def together(parts: Sequence[Mapping[str, float]]) -> dict[str, float]:
        kinds = dict.fromkeys(kind for part in parts for kind in part)
        return {
            kind: (max if kind in shared else sum)([part.get(kind, 0.0) for part in parts])
            for kind in kinds
        }

    scores = [{f"/{kind}": count for kind, count in one.score.items()} for one in known]
    return Work(
        fit=together([one.fit for one in known]),
        shared=shared,
        score={kind[1:]: count for kind, count in together(scores).items()},
        model=max(one.model for one in known),
        largest_part=max(one.largest_part for one in known),
        fit_bytes=max(one.fit_bytes for one in known),
    )


def _work_among_several(algorithm: Algorithm, shape: DataShape) -> Work | None:
    formula = SHARED_FORMULAS.get(algorithm.name)
    return work_of(algorithm, shape) if formula is None else formula(algorithm, shape)


# The formulas


def _factors_bytes(shape: DataShape, factors: float, size: int = NUMBER) -> float:
    return size * factors * (shape.users + shape.items)


def _counts(_: Algorithm, shape: DataShape) -> Work:
    """Counts and averages: one pass."""
    return Work(
        fit={"pass": shape.ratings},
        score={"score cell": shape.items},
        model=NUMBER * shape.items,
        fit_bytes=NUMBER * shape.ratings,
    )


def _random(_: Algorithm, shape: DataShape) -> Work:
    return Work(score={"draw": shape.items})


def _user_knn(algorithm: Any, shape: DataShape) -> Work:
    """Every pair of users that meets in an item is multiplied."""
    met = min(float(shape.users), shape.item_pairs / max(shape.users, 1))
    vote = shape.user_pairs / max(shape.ratings, 1)
    k = algorithm.k
    if k is None:  # similarities are computed when they are needed
        each = shape.item_pairs / max(shape.users, 1)
        return Work(
            fit={"pass": 4 * shape.ratings},
            score={"knn product": each, "vote row": shape.ratings, "vote cell": shape.items},
            model=4 * ENTRY * shape.ratings,
            fit_bytes=ENTRY * shape.ratings,
        )
    kept = min(float(k), met)
    return Work(
        fit={
            "pass": 4 * shape.ratings,
            "knn product": shape.item_pairs,
            "knn candidate": shape.users * met,
        },
        shared=frozenset(("pass", "knn product", "knn candidate")),
        score={"vote": kept * vote, "vote cell": shape.items},
        model=ENTRY * (shape.users * kept + shape.ratings),
        largest_part=ENTRY * shape.users * kept,
        fit_bytes=ENTRY * shape.users * kept + 2 * ENTRY * shape.ratings,
    )


def _item_knn(algorithm: Any, shape: DataShape) -> Work:
    """Every pair of items that meets in a user is multiplied."""
    met = min(float(shape.items), shape.user_pairs / max(shape.items, 1))
    kept = met if algorithm.k is None else min(float(algorithm.k), met)
    mean = shape.ratings / max(shape.users, 1)
    return Work(
        fit={
            "pass": 4 * shape.ratings,
            "knn product": shape.user_pairs,
            "knn candidate": shape.items * met,
        },
        shared=frozenset(("pass", "knn product", "knn candidate")),
        score={"vote": mean * kept, "vote cell": shape.items},
        model=ENTRY * (shape.items * kept + shape.ratings),
        largest_part=ENTRY * shape.items * kept,
        fit_bytes=ENTRY * shape.items * kept + 2 * ENTRY * shape.ratings,
    )


def _puresvd(algorithm: Any, shape: DataShape) -> Work:
    """Block Lanczos: products of the ratings with a block, and a basis kept orthogonal."""
    wanted = min(algorithm.factors, shape.items)
    width = min(wanted + 8, shape.items)
    basis = min(SVD_STEPS * width, max(3 * width, min(10 * width, SVD_BASIS // shape.items)))
    return Work(
        fit={
            "pass": 2 * shape.ratings,
            "sparse flop": 2 * SVD_STEPS * 2 * width * shape.ratings,
            "svd flop": 4 * SVD_STEPS * shape.items * width * (basis + width),
        },
        shared=frozenset(("pass", "sparse flop", "svd flop")),
        score={"factor flop": 2 * wanted * shape.items, "factor cell": shape.items},
        model=_factors_bytes(shape, wanted),
        largest_part=NUMBER * max(shape.items * basis, shape.users * width),
        fit_bytes=NUMBER * (shape.items * 2 * basis + shape.users * width) + ENTRY * shape.ratings,
    )


def _ease(_: Algorithm, shape: DataShape) -> Work:
    """The Gram matrix of the items and its inverse."""
    square = float(shape.items) ** 2
    return Work(
        fit={
            "pass": 2 * shape.ratings,
            "gram product": shape.user_pairs / 2,
            "ease flop": SINGLE * square * shape.items,
        },
        shared=frozenset(("pass", "gram product")),
        score={
            "vote row": shape.ratings / max(shape.users, 1) * shape.items,
            "vote cell": shape.items,
        },
        model=NUMBER / 2 * square + ENTRY * shape.ratings,
        largest_part=NUMBER * square,  # the Gram matrix
        fit_bytes=NUMBER * square,
    )


def _ease_of_several(algorithm: Algorithm, shape: DataShape) -> Work:
    """Over users where there are fewer of them; see `EASE.learn_shared`."""
    if 10 * shape.users >= 9 * shape.items:
        return _ease(algorithm, shape)
    square = float(shape.users) ** 2
    return Work(
        fit={
            "pass": 2 * shape.ratings,
            "gram product": shape.item_pairs / 2,
            "ease flop": square * shape.users,
            "knn product": shape.item_pairs,
        },
        shared=frozenset(("pass", "gram product")),
        score={"vote row": shape.ratings, "vote cell": 2 * shape.items},
        model=NUMBER * square + ENTRY * shape.ratings,
        largest_part=NUMBER * square,
        fit_bytes=NUMBER * square,
    )


def _slim(_: Algorithm, shape: DataShape) -> Work:
    """The Gram matrix of the items, and coordinate descent for each item."""
    square = float(shape.items) ** 2
    kept = min(100.0, float(shape.items))
    return Work(
        fit={
            "pass": 2 * shape.ratings,
            "gram product": shape.user_pairs / 2,
            "slim cell": square,
        },
        shared=frozenset(("pass", "gram product")),
        score={
            "vote": shape.ratings / max(shape.users, 1) * kept,
            "vote cell": shape.items,
        },
        model=ENTRY * (shape.items * kept + shape.ratings),
        largest_part=NUMBER * square,
        fit_bytes=NUMBER * square,
    )


def _wrmf(algorithm: Any, shape: DataShape) -> Work:
    """A linear system per user and item, in every iteration."""
    f, rows = algorithm.factors, shape.users + shape.items
    if algorithm.solver == "exact":
        flops = 2 * shape.ratings * f**2 + rows * (f**3 / 3 + 2 * f**2)
    else:
        flops = 4 * (4 * 2 * shape.ratings * f + 2 * rows * f**2)
    return Work(
        fit={"pass": 8 * shape.ratings, "solve flop": algorithm.iterations * flops},
        score={"factor flop": 2 * f * shape.items, "factor cell": shape.items},
        model=_factors_bytes(shape, f),
        largest_part=NUMBER * f * max(shape.users, shape.items),
        fit_bytes=_factors_bytes(shape, f) + 2 * (ENTRY + NUMBER) * shape.ratings,
    )


def _bpr(algorithm: Any, shape: DataShape) -> Work:
    """A step over three vectors per draw."""
    f = algorithm.factors
    return Work(
        fit={"sgd step": algorithm.epochs * shape.ratings * (f + 40)},
        score={"factor flop": f * shape.items, "factor cell": shape.items},
        model=_factors_bytes(shape, f, 4),
        largest_part=4 * f * max(shape.users, shape.items),
        fit_bytes=2 * _factors_bytes(shape, f, 4),
    )


def _topics(algorithm: Any, shape: DataShape) -> Work:
    """Every rating is shared out among the topics, by user and by item."""
    f = algorithm.topics
    return Work(
        fit={"pass": 4 * shape.ratings, "topic": 2 * algorithm.iterations * shape.ratings * f},
        score={"factor flop": 2 * f * shape.items, "factor cell": shape.items},
        model=_factors_bytes(shape, f),
        largest_part=NUMBER * f * max(shape.users, shape.items),
        fit_bytes=2 * _factors_bytes(shape, f) + 2 * ENTRY * shape.ratings,
    )


FORMULAS: dict[str, Callable[[Any, DataShape], Work]] = {
    "random": _random,
    "popularity": _counts,
    "positive-popularity": _counts,
    "average-rating": _counts,
    "smoothed-average": _counts,
    "optimal-precision": _counts,
    "optimal-anti-precision": _counts,
    "user-knn": _user_knn,
    "nncosngbr-ub": _user_knn,
    "item-knn": _item_knn,
    "nncosngbr-ib": _item_knn,
    "puresvd": _puresvd,
    "ease": _ease,
    "slim": _slim,
    "wrmf": _wrmf,
    "bprmf": _bpr,
    "plsa": _topics,
}
"""By name: what the algorithms do. Others are measured by a trial, or state their `work`."""
SHARED_FORMULAS: dict[str, Callable[[Any, DataShape], Work]] = {"ease": _ease_of_several}
"""The same for one of several settings that are trained on the same ratings, where it differs."""
