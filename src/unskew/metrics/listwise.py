"""`metric`: register a function as a metric, ours or a user's own."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.errors import DataError, SettingError, unknown_name
from unskew.judging.shape import DISLIKED, LIKED
from unskew.metrics.block import WHOLE, Block, ratio
from unskew.metrics.definition import REGISTRY, Definition, register
from unskew.metrics.settings import Params

RULE = "it must return a finite number, or nan where it is undefined"


@lru_cache(maxsize=256)
def is_ours(function: Callable[..., Any]) -> bool:
    """Tell whether a formula is part of unskew, and not a user's."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "unskew"


def check_finite(
    metric: object, block: Block, result: F64 | tuple[F64, F64 | None], *, apart: bool = False
) -> None:
    """Refuse infinity among the values of a block of lists; the error names the first list.

    Parameters
    ----------
    metric
        As messages name it.
    block
        The lists.
    result
        What the formula returned: a row per cutoff, or such a fraction.
    apart
        Whether top and bottom of a fraction are averaged apart, so that their ratio does not
        matter.
    """
    parts = result if isinstance(result, tuple) else (result,)
    values = [np.asarray(part, np.float64) for part in parts if part is not None]
    if len(values) == 2 and not apart:
        values.append(ratio(values[0], values[1]))
    infinite = [np.isinf(value) for value in values]
    if not any(mask.any() for mask in infinite):
        return
    lists = block.hi - block.lo
    row, value = min(
        _first(value, mask, lists) for value, mask in zip(values, infinite, strict=True)
    )
    raise infinite_value(metric, value, block.judged.describe(block.lo + row))


def _first(values: F64, infinite: Mask, lists: int) -> tuple[int, float]:
    """Return the first list with an infinite value, and the value; no list if there is none."""
    if not infinite.any():
        return lists, 0.0
    shape = np.broadcast_shapes(values.shape, (1, lists))
    wide, mask = np.broadcast_to(values, shape), np.broadcast_to(infinite, shape)
    row = int(np.argmax(mask.any(axis=0)))
    return row, float(wide[int(np.argmax(mask[:, row])), row])


def infinite_value(metric: object, value: object, where: str) -> DataError:
    """Return the error of a value that is no number and not NaN.

    Parameters
    ----------
    metric
        As messages name it.
    value
        What was returned.
    where
        For which list, or which other thing.
    """
    return DataError(f"metric {str(metric)!r} returned {value!r} for {where}; {RULE}")


F = TypeVar("F", bound=Callable[..., Any])

FACTS = ("liked", "disliked", "gains", "losses", "n_liked", "n_disliked", "all_gains", "k")
"""What a function of one list may take, by the name of its parameter."""
_NAME = re.compile(r"(?!anti-|condensed-)[A-Za-z][A-Za-z0-9_-]*(?<!_)")
_LIKE_A_CUTOFF = re.compile(r"[A-Za-z]_\d+$")


def metric(name: str, *, replace: bool = False, **facts: Any) -> Callable[[F], F]:
    """Register a function as the metric `name`; then the name works wherever a metric is named.

    The function is called once for each list and cutoff, and returns a number; NaN where the metric
    is undefined. It takes any of the following, by the names of its parameters:

    ``liked``, ``disliked``
        An entry per place of the list, cut at the cutoff: whether its item is judged and liked, or
        judged and disliked. An item that is not judged is neither.
    ``gains``, ``losses``
        The gain and the loss of the item at each place; 0 for an item that is not judged.
    ``n_liked``, ``n_disliked``
        How many liked and disliked judgments the user has, in the list or not.
    ``all_gains``
        The gains of all judgments of the user, largest first: what an ideal list would hold.
    ``k``
        The cutoff; without one, the length of the list.
    settings
        Those named in `params`.

    For ``anti-name`` liked and disliked, gains and losses are exchanged. The function may be
    compiled by numba: then it sees numpy arrays (bool and float64) and integers.

    Parameters
    ----------
    name
        Letters, digits, ``-`` and ``_``; its first character is a letter.
    replace
        Whether a metric of this name may be replaced.
    **facts
        Fields of `Definition`: ``params`` (settings, each a `Param`), ``better`` (``"higher"``,
        ``"lower"`` or ``"neither"``), ``low`` and ``high`` (the range; 0 to 1 unless given),
        ``anti=False`` for a metric without an anti-twin, and what is known for other features:
        ``chance``, ``at_rank``, ``weighted`` … What is not given is simulated (chance) or refused,
        with a reason.

    Examples
    --------
    >>> import unskew as us
    >>> @us.metrics.metric("second-half")
    ... def second_half(liked):
    ...     "Share of the second half of the list that is liked."
    ...     half = liked[len(liked) // 2 :]
    ...     return half.mean() if len(half) else float("nan")
    >>> test = {"user": [1, 1], "item": ["a", "b"], "rating": [5, 5]}
    >>> scores = us.evaluate(test, {"s": {1: ["x", "y", "a", "z"]}}, "second-half@4", liked=4)
    >>> scores.mean("second-half@4")
    {'s': 0.5}
    """

    def decorate(function: F) -> F:
        if "compute" in facts or "name" in facts:
            raise SettingError(f"metric {name!r}: the name and the function are already given")
        fields = set(Definition.__dataclass_fields__)
        for key in facts:
            if key not in fields:
                raise unknown_name("fact of a metric", key, sorted(fields))
        parameters = _parameters(name, function)
        if parameters[:1] in (["block"], ["judged"]):  # a function of many lists, or of a run
            register(Definition(name, function, **facts), replace=replace)
            return function
        _check_name(name)
        compute = OneList(name, function, tuple(parameters), tuple(facts.get("params", ())))
        register(Definition(name, compute, **{"is_user_code": True, **facts}), replace=replace)
        return function

    return decorate


def _parameters(name: str, function: Callable[..., Any]) -> list[str]:
    plain = getattr(function, "py_func", function)  # a function compiled by numba
    if not callable(plain):
        raise SettingError(f"metric {name!r}: a function is needed, got {function!r}")
    return list(inspect.signature(plain).parameters)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or _LIKE_A_CUTOFF.search(name):
        raise SettingError(
            f"{name!r} cannot name a metric: take letters, digits, - and _, a letter first; no "
            f"anti-, condensed- or @, and no _10 at the end, which reads as a cutoff"
        )
    for key, definition in REGISTRY.items():
        others = [key, *definition.aliases]
        taken = [label for label in others if label.lower() == name.lower() and label != name]
        taken += [alias for alias in definition.aliases if alias == name]
        if taken:
            raise SettingError(
                f"{name!r} is taken: {taken[0]} is a metric already (upper and lower case count "
                "as the same)"
            )


class OneList:
    """A function of one list, as a metric of a block of lists."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        parameters: tuple[str, ...],
        settings: tuple[str, ...],
    ) -> None:
        for parameter in parameters:
            if parameter not in (*FACTS, *settings):
                raise unknown_name(f"parameter of metric {name!r}", parameter, [*FACTS, *settings])
        if not parameters:
            raise SettingError(
                f"metric {name!r}: its function takes nothing; take any of {', '.join(FACTS)}"
            )
        self.name, self.function = name, function
        self.parameters = parameters
        self.__doc__ = function.__doc__

    def __call__(self, block: Block, params: Params, cutoffs: I64) -> F64:
        """Return a row per cutoff, a column per list."""
        lists = [_List.of(block, row, self.parameters) for row in range(block.hi - block.lo)]
        values = np.empty((cutoffs.size, len(lists)))
        for index, cutoff in enumerate(cutoffs.tolist()):
            for row, ranked_list in enumerate(lists):
                facts = ranked_list.cut(cutoff)
                arguments = [facts[p] if p in facts else params[p] for p in self.parameters]
                values[index, row] = self._checked(self.function(*arguments), block, row)
        return values

    def _checked(self, value: object, block: Block, row: int) -> float:
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            number = math.inf
        if math.isinf(number):
            raise infinite_value(self.name, value, block.judged.describe(block.lo + row))
        return number


class _List:
    """One list as a function of a user sees it, before it is cut."""

    def __init__(
        self, places: Mapping[str, Mask | F64], totals: Mapping[str, Any], depth: int
    ) -> None:
        self.places, self.totals, self.depth = places, totals, depth

    @classmethod
    def of(cls, block: Block, row: int, parameters: tuple[str, ...]) -> _List:
        hits, view = block.hits, block.view
        here = slice(int(hits.start[row]), int(hits.start[row + 1]))
        rank, judgment = hits.rank[here] - 1, hits.judgment[here]
        depth = int(hits.depth[row])
        label = view.label[judgment]
        kinds: dict[str, tuple[type[Any], Callable[[], Any]]] = {
            "liked": (np.bool_, lambda: label == LIKED),
            "disliked": (np.bool_, lambda: label == DISLIKED),
            "gains": (np.float64, lambda: view.gain[judgment]),
            "losses": (np.float64, lambda: view.loss[judgment]),
        }
        places: dict[str, Mask | F64] = {}
        for name, (dtype, values) in kinds.items():
            if name in parameters:
                places[name] = np.zeros(depth, dtype)
                places[name][rank] = values()
        totals: dict[str, Any] = {
            "n_liked": int(block.liked[row]),
            "n_disliked": int(block.disliked[row]),
        }
        if "all_gains" in parameters:
            judged = block.judged
            user = int(judged.lists.user[block.lo + row])
            start = judged.judgments.start
            totals["all_gains"] = -np.sort(-view.gain[start[user] : start[user + 1]])
        return cls(places, totals, depth)

    def cut(self, cutoff: int) -> dict[str, Any]:
        """Return what the function sees above a cutoff."""
        k = self.depth if cutoff == WHOLE else cutoff
        return {**{name: array[:k] for name, array in self.places.items()}, **self.totals, "k": k}
