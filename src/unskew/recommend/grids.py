"""The grid of settings that an algorithm declares, and the settings to try out of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from unskew.errors import SettingError
from unskew.recommend.model import Algorithm, Grid

Candidate = dict[str, Any]
"""A value for every setting of a grid."""


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """Return every combination of the values of several settings; the last setting moves first."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def check_grid(algorithm: Algorithm, grid: Grid) -> None:
    """Refuse a grid that names unknown settings or has no values for one."""
    known = [one.name for one in fields(algorithm)]
    if not isinstance(grid, Mapping | Sequence) or isinstance(grid, str):
        raise SettingError(
            f"{algorithm.name}: a grid holds values by setting, such as {{'k': (5, 20, 80)}}, or "
            f"is a list of settings to try; got {grid!r}"
        )
    if not isinstance(grid, Mapping) and not all(isinstance(one, Mapping) for one in grid):
        raise SettingError(f"{algorithm.name}: a list of settings to try holds mappings; {grid!r}")
    for name in _names(grid):
        if name not in known:
            raise SettingError(
                f"{algorithm.name} has no setting {name!r}; it has: {', '.join(known)}"
            )
    for name, values in grid.items() if isinstance(grid, Mapping) else ():
        if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
            raise SettingError(f"grid: give a list of values for {name}, got {values!r}")


def candidates(algorithm: Algorithm, most: int | None = None) -> list[Candidate]:
    """Return the settings to try: those that the algorithm has, then others of its grid.

    Parameters
    ----------
    algorithm
        With its settings; those that its grid does not name stay.
    most
        How many to return at most. Out of combinations of values they are spread evenly, of a
        list the first are taken.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.recommend.grids import candidates
    >>> [one["factors"] for one in candidates(us.recommend.PureSVD())]
    [30, 1, 2, 4, 8, 16]
    """
    grid = algorithm.tuning
    check_grid(algorithm, grid)
    default = {name: getattr(algorithm, name) for name in _names(grid)}
    several = combinations(grid) if isinstance(grid, Mapping) else grid
    others: list[Candidate] = []
    for one in several:
        full = {**default, **one}
        if full != default and full not in others:
            others.append(full)
    if most is not None and len(others) > most - 1:
        many = most - 1
        spread = isinstance(grid, Mapping)
        others = [others[at] for at in _spread(len(others), many)] if spread else others[:many]
    return [default, *others]


def edges(algorithm: Algorithm, chosen: Candidate, tried: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the settings whose chosen value is the smallest or largest of those tried.

    Beyond it something better may lie. A value that the setting's own limits let nothing be beyond
    is no edge; None, which means all, is beyond every number.
    """
    return tuple(name for name in chosen if _is_edge(algorithm, name, chosen, tried))


def _is_edge(
    algorithm: Algorithm, name: str, chosen: Candidate, tried: Sequence[Candidate]
) -> bool:
    values = [one[name] for one in tried]
    if any(isinstance(value, bool | str) for value in values):
        return False  # words have no order
    size = [math.inf if value is None else float(value) for value in values]
    here = math.inf if chosen[name] is None else float(chosen[name])
    if min(size) == max(size) or math.isinf(here):
        return False
    if here == min(size):
        return _is_allowed(algorithm, name, _smaller(chosen[name]))
    return here == max(size) and _is_allowed(algorithm, name, 2 * chosen[name])


def _smaller(value: float) -> float:
    """Return a value below: a whole number stays one."""
    return value - 1 if isinstance(value, int) or value <= 0 else value / 2


def _is_allowed(algorithm: Algorithm, name: str, value: float) -> bool:
    try:
        replace(algorithm, **{name: value})
    except SettingError:
        return False
    return True


def _names(grid: Grid) -> list[str]:
    """Return the settings of a grid, in the order in which they are first named."""
    return list(dict.fromkeys(_every_name(grid)))


def _every_name(grid: Grid) -> Iterator[str]:
    for one in [grid] if isinstance(grid, Mapping) else grid:
        yield from one


def _spread(count: int, wanted: int) -> list[int]:
    """Return so many places of a row, the first and the last among them."""
    if wanted < 2:
        return [0] * wanted
    return [round(place * (count - 1) / (wanted - 1)) for place in range(wanted)]
