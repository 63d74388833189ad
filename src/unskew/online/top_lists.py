"""`top_lists`: what systems show to every user of a world, and which of it is truly liked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unskew.arrays import F64, I32, U8, frozen
from unskew.checks import as_count, checked, choose
from unskew.data.ratings import Ratings
from unskew.engine.rng import generator
from unskew.errors import DataError, SettingError
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm
from unskew.report.text import counted
from unskew.splits.split import Split
from unskew.targets.designs import AllItems
from unskew.worlds.worlds import World

Systems = Mapping[str, object] | Sequence[Algorithm]
"""Systems by name: algorithms, which are trained, or whatever `rank` takes; or a list of
algorithms, which go by their names."""


K, IMPRESSIONS, LEVEL = 10, 10_000, 0.95


@dataclass(frozen=True, eq=False)
class TopLists:
    """The top items that systems show to every user of a world. Made by `top_lists`."""

    systems: tuple[str, ...]
    item: I32
    """Systems x users x k, -1 = an empty place."""
    liked: U8
    """Systems x users x k: 1 where it is truly liked."""
    notes: tuple[str, ...] = ()
    draw_names: tuple[str, ...] = ()
    """What the systems are called in seeds; as they are called unless given."""

    def __post_init__(self) -> None:
        if not self.draw_names:
            object.__setattr__(self, "draw_names", self.systems)

    @property
    def k(self) -> int:
        """The length of the lists."""
        return int(self.item.shape[2])

    def per_user(self) -> F64:
        """Return the true P@k, systems x users."""
        shares: F64 = self.liked.sum(axis=2, dtype=np.int64) / self.k
        return shares

    def true(self, k: int | None = None) -> F64:
        """Return the true P@k of each system: over all users, empty places not liked.

        Of the first `k` places; all unless given.
        """
        top = self.liked[:, :, :k]
        shares: F64 = top.sum(axis=(1, 2), dtype=np.int64) / top[0].size
        return shares

    def only(self, systems: Sequence[str]) -> TopLists:
        """Return the lists of some systems.

        Examples
        --------
        >>> import unskew as us
        >>> from unskew.online.top_lists import top_lists
        >>> shop = us.world("shop", users=50, items=40, seed=1)
        >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
        >>> top_lists(shop, systems, k=3).only(["random"]).systems
        ('random',)
        """
        rows = [self.systems.index(choose("system", name, self.systems)) for name in systems]
        drawn_as = tuple(self.draw_names[row] for row in rows)
        item, liked = frozen(self.item[rows]), frozen(self.liked[rows])
        return TopLists(tuple(systems), item, liked, self.notes, drawn_as)

    def __repr__(self) -> str:
        users = counted(self.item.shape[1], "user")
        return f"TopLists({', '.join(self.systems)}: top {self.k} of {users})"


@checked
def top_lists(
    world: World,
    systems: Systems | TopLists,
    *,
    k: int | None = None,
    train: Ratings | None = None,
    seed: int = 0,
) -> TopLists:
    """Return what systems recommend to every user, and which of it is truly liked.

    Every test of this module takes the result in place of systems: they are then not trained anew.

    Parameters
    ----------
    world
        Where users come from.
    systems
        By name: algorithms, which are trained here, or fitted models and whatever else `rank`
        takes. Or a list of algorithms.
    k
        How many items are shown; 10 unless given.
    train
        What algorithms are trained on; no user is shown items that they rated there. The world's
        observed ratings unless given.
    seed
        Of training.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.top_lists import top_lists
    >>> shop = us.world("shop", users=50, items=40, seed=1)
    >>> top_lists(shop, [us.recommend.Random(), us.recommend.Popularity()], k=3)
    TopLists(random, popularity: top 3 of 50 users)
    """
    if isinstance(systems, TopLists):
        if train is not None or k not in (None, systems.k):
            raise SettingError(
                f"these lists already exist, with {counted(systems.k, 'item')}: leave out k and "
                "train"
            )
        return systems
    k = as_count("k", K if k is None else k)
    if k > len(world.items):
        raise SettingError(f"k={k}: the world has only {counted(len(world.items), 'item')}")
    ratings = world.ratings if train is None else train
    if not ratings.users.equals(world.users) or not ratings.items.equals(world.items):
        raise DataError("train has other users or items than the world: keep the world's ids")
    named = named_systems(systems)
    nothing = ratings.take(np.zeros(len(ratings), np.bool_))
    lists = AllItems().lists(Split(ratings, nothing), liked=world.liked)
    item = np.full((len(named), len(world.users), k), -1, np.int32)
    notes = []
    for index, (name, system) in enumerate(named.items()):
        model = system
        if isinstance(system, Algorithm):
            model = system.fit(
                ratings, generator(seed, "fit", *sorted(map(str, system.draw_key.items())))
            )
        run = rank(model, lists, depth=k)
        position = np.arange(run.item.size) - np.repeat(run.start[:-1], run.depth)
        item[index, np.repeat(np.arange(len(run)), run.depth), position] = run.item
        empty = int(np.count_nonzero(item[index] < 0))
        if empty:
            notes.append(f"{name}: {empty:,} of {item[index].size:,} places are empty")
    liked, unknown = _truth_of(world, item)
    if unknown:
        notes.append(f"{unknown:,} shown items of unknown relevance count as not liked")
    drawn_as = () if isinstance(systems, Mapping) else map(_draw_name, named.values())
    return TopLists(tuple(named), frozen(item), frozen(liked), tuple(notes), tuple(drawn_as))


def _draw_name(system: object) -> str:
    return system.draw_name_of() if isinstance(system, Algorithm) else str(system)


def _truth_of(world: World, item: I32) -> tuple[U8, int]:
    """Return whether each shown item is liked, and how many are not known."""
    liked, unknown = np.zeros(item.shape, np.uint8), 0
    for block in world.blocks():
        values = world.values(block)
        rows = np.arange(block.size)[None, :, None]
        here = item[:, block]
        values_here = np.where(here >= 0, values[rows, here], -np.inf)
        liked[:, block] = values_here >= world.liked
        unknown += int(np.count_nonzero(np.isnan(values_here)))
    return liked, unknown


def named_systems(systems: object) -> dict[str, object]:
    """Return systems by name; refuse two of one name, and none."""
    if isinstance(systems, Mapping):
        named = {str(name): system for name, system in systems.items()}
    elif isinstance(systems, Sequence) and all(isinstance(system, Algorithm) for system in systems):
        named = {}
        for system in systems:
            if system.name in named:
                raise SettingError(
                    f"two systems are called {system.name!r}: name them in a mapping"
                )
            named[system.name] = system
    else:
        raise SettingError(
            f"systems: give a mapping from names to systems, or a list of algorithms such as "
            f"[us.recommend.Random(), us.recommend.Popularity()]; got {type(systems).__name__}"
        )
    if not named:
        raise SettingError("systems: give at least one")
    return named


def check_systems(lists: TopLists, minimum: int, maximum: int | None = None) -> None:
    """Raise an error for too few or too many systems."""
    count = len(lists.systems)
    if count < minimum or (maximum is not None and count > maximum):
        requirement = f"exactly {minimum}" if minimum == maximum else f"at least {minimum}"
        raise SettingError(
            f"this takes {requirement} systems, got {count}: {', '.join(lists.systems)}"
        )
