"""Randomness that depends on a seed and a key only, never on order, blocks or threads.

`generator` serves what is drawn once per stage. `draw` is a counter hash for what is drawn per
user, item or list: a numpy generator per key costs microseconds, a hash costs a nanosecond.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from types import FunctionType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from unskew.arrays import F64, I32, U64
from unskew.engine.compiled import kernel
from unskew.errors import PACKAGES
from unskew.settings import Settings, plain

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_A = np.uint64(0xBF58476D1CE4E5B9)
_MIX_B = np.uint64(0x94D049BB133111EB)


def key_of(seed: int, *parts: object) -> int:
    """Return the 64 bits that stand for a seed and a key."""
    text = "\x1f".join([str(int(seed)), *map(str, parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def generator(seed: int, *key: object) -> np.random.Generator:
    """Return the numpy generator that belongs to a seed and a key such as ("split", fold)."""
    return np.random.default_rng(key_of(seed, *key))


class DrawKeyed(Settings):
    """Frozen settings whose names are part of seeds: an algorithm, a way to split, an intervention.

    What is drawn follows from `draw_key`, never from the names that a class and its settings have
    today: these can change, and every number stays.
    """

    draw_name: ClassVar[str]
    """The name in seeds: stated once by every class, and never changed."""
    draw_settings: ClassVar[Mapping[str, str]] = {}
    """What a setting is called in seeds, where its name of today is another."""
    draw_omit_default: ClassVar[frozenset[str]] = frozenset()
    """Settings that came later: not part of seeds while they have their defaults."""
    draw_entry: ClassVar[str | None] = None
    """Under which word the name stands in the key; None = the key has no name."""
    not_on_cards: ClassVar[frozenset[str]] = frozenset()
    """Settings for which others stand, on cards and in seeds: a function, for its label."""
    version: str | int | None = None
    """Of a class outside this library: to be changed with what it computes. Without one, results
    are not stored."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class that states no name its own one."""
        super().__init_subclass__(**options)
        if all(getattr(base, "draw_entry", None) is None for base in cls.__bases__):
            return
        stated = [kind for kind in cls.__mro__ if isinstance(vars(kind).get(cls._title()), str)]
        if not stated or vars(stated[0])[cls._title()] == stated[0].__name__:
            setattr(cls, cls._title(), cls.__name__)

    @classmethod
    def _title(cls) -> str:
        """Return which attribute holds the name of today."""
        return "kind" if cls.draw_entry == "kind" else "name"

    @classmethod
    def draw_name_of(cls) -> str:
        """Return the name in seeds.

        Of a class that states none, that is its name of today.
        """
        for kind in cls.__mro__:
            for place in ("draw_name", cls._title()):
                if isinstance(vars(kind).get(place), str):
                    return str(vars(kind)[place])
        return cls.__name__

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values.

        The card of a result holds them.
        """
        card = {} if self.draw_entry is None else {self.draw_entry: getattr(self, self._title())}
        card |= super().describe()
        if self.version is not None:
            card["version"] = self.version
        return {key: value for key, value in card.items() if key not in self.not_on_cards}

    @property
    def storable(self) -> bool:
        """Whether results may be stored.

        They may where the card tells all that determines them.
        """
        if self.version is not None:
            return True
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        inner = all(value.storable for value in values if isinstance(value, DrawKeyed))
        ours = type(self).__module__.partition(".")[0] in PACKAGES
        return ours and inner and not any(isinstance(value, FunctionType) for value in values)

    @property
    def draw_key(self) -> dict[str, Any]:
        """The values that seeds are made of.

        They are plain, and in the order of the settings.
        """
        key: dict[str, Any] = {}
        if self.draw_entry is not None:
            key[self.draw_entry] = self.draw_name_of()
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.name in self.not_on_cards:
                continue
            if field.name in self.draw_omit_default and value == _default(field):
                continue
            key[self.draw_settings.get(field.name, field.name)] = self.draw_value(field.name, value)
        return key

    def draw_value(self, setting: str, value: Any) -> Any:  # noqa: ARG002
        """Return a setting as it stands in the key."""
        return value.draw_key if isinstance(value, DrawKeyed) else plain(value)


def _default(one: Field[Any]) -> Any:
    """Return the default of a setting."""
    return one.default if one.default_factory is MISSING else one.default_factory()


def _mix(z: U64) -> U64:
    z = (z ^ (z >> np.uint64(30))) * _MIX_A
    z = (z ^ (z >> np.uint64(27))) * _MIX_B
    return z ^ (z >> np.uint64(31))


def draw(seed: int, stage: str, a: ArrayLike, b: ArrayLike = 0) -> U64:
    """Return 64 random bits for each pair (a, b): SplitMix64 finalisers over a keyed counter.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.engine.rng import draw
    >>> bool(draw(7, "ties", 1, 2) == draw(7, "ties", np.arange(3), 2)[1])
    True
    """
    with np.errstate(over="ignore"):
        first = np.atleast_1d(np.asarray(a)).astype(np.int64).view(np.uint64)
        second = np.atleast_1d(np.asarray(b)).astype(np.int64).view(np.uint64)
        z = _mix(np.uint64(key_of(seed, stage)) + (first + np.uint64(1)) * _GOLDEN)
        return _mix(z + (second + np.uint64(1)) * _GOLDEN)


_1, _27, _30, _31 = np.uint64(1), np.uint64(27), np.uint64(30), np.uint64(31)


@kernel
def mix(z: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64."""
    z = (z ^ (z >> _30)) * _MIX_A
    z = (z ^ (z >> _27)) * _MIX_B
    return z ^ (z >> _31)


@kernel
def first(key: np.uint64, a: int) -> np.uint64:
    """Return the state from which `second` draws for `a`."""
    return mix(key + (np.uint64(a) + _1) * _GOLDEN)


@kernel
def second(state: np.uint64, b: int) -> np.uint64:
    """Return 64 random bits: `second(first(key, a), b)` is what `rng.draw` gives for (a, b)."""
    return mix(state + (np.uint64(b) + _1) * _GOLDEN)


@kernel
def uniform_tile(key: np.uint64, users: I32, out: F64) -> None:
    """Fill a row per user with numbers from [0, 1), one for each pair of user and column."""
    for row in range(users.size):
        state = first(key, users[row])
        for column in range(out.shape[1]):
            bits = second(state, column) >> np.uint64(11)
            out[row, column] = np.float64(bits) * 2.0**-53
