"""Checks of what users give: counts, shares, numbers, names, and arguments as they are declared."""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import inspect
import math
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from unskew.errors import SettingError, unknown_name

if TYPE_CHECKING:  # the command line takes its limits from here before it needs these
    from fractions import Fraction

    from unskew.arrays import F64, I64

P = ParamSpec("P")
T = TypeVar("T")


DEFAULT_TEST = 0.2
"""The test share where none is given, as in all five papers."""

MOST_SEED = 2**63 - 1
"""The largest seed."""
MOST_DEPTH = 2**31 - 1
"""The most items of a list; also the most items and users that are numbered."""
MOST_DRAWS = 10_000_000
"""The most permutations, resamples or samples: more would take days."""
MOST_REPEATS = 10_000
"""The most folds, repetitions or repeats of an experiment."""
MOST_ROUNDS = 1_000_000
"""The most epochs or iterations of a training."""
MOST_PROCESSES = 1_024
"""The most threads or processes."""
MOST_DIGITS = 15
"""The most decimals of a printed number: a double holds no more."""

# Amounts that are worked through one by one; others may be as large as numbers of items.
_MOST = {
    "seed": MOST_SEED,
    "rng": MOST_SEED,
    **dict.fromkeys(("draws", "permutations", "resamples", "samples"), MOST_DRAWS),
    "folds": MOST_REPEATS,
    "repetitions": MOST_REPEATS,
    "repeats": MOST_REPEATS,
    "epochs": MOST_ROUNDS,
    "iterations": MOST_ROUNDS,
}

# 0.29 is meant as 29/100, not as the double below it; 1/3 as a third.
_FINEST = 10**9

LARGEST = 2**63 - 1
"""Whole numbers are 64-bit ones."""
LONGEST = 80
"""A value that does not fit is shown up to this many characters."""


def choose(what: str, name: str, allowed: Iterable[str]) -> str:
    """Return `name` when it is one of `allowed`, else raise `UnknownName`."""
    names = tuple(allowed)
    if not isinstance(name, str) or name not in names:
        raise unknown_name(what, name, names)
    return name


def as_share(name: str, value: object, *, one: bool = False) -> Fraction:
    """Return a share between 0 and 1 (1 itself only if `one`) as the fraction that is meant.

    Examples
    --------
    >>> from unskew.checks import as_share
    >>> as_share("test", 0.29)
    Fraction(29, 100)
    """
    from fractions import Fraction

    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        part = Fraction(float(value)).limit_denominator(_FINEST)
        if 0 < part < 1 or (one and part == 1):
            return part
    most = "1, which is allowed" if one else "1"
    raise SettingError(f"{name} must be a share between 0 and {most}, such as 0.2; got {value!r}")


def as_count(name: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from `least` to `most`, which depends on the name unless given.

    Examples
    --------
    >>> from unskew.checks import as_count
    >>> as_count("folds", 5, 2)
    5
    >>> as_count("folds", 10**9, 2)
    Traceback (most recent call last):
    unskew.errors.SettingError: folds must be at most 10,000, got 1000000000
    """
    most = _MOST.get(name, MOST_DEPTH) if most is None else most
    if isinstance(value, Integral) and not isinstance(value, bool):
        if least <= int(value) <= most:
            return int(value)
        if int(value) > most:
            raise SettingError(f"{name} must be at most {most:,}, got {value!r}")
    raise SettingError(f"{name} must be a whole number from {least} up, got {value!r}")


def portion(counts: I64, part: Fraction, rounding: str = "floor") -> I64:
    """Return `part` of each count, rounded down (`floor`) or to the nearest, half to even.

    Whole-number arithmetic: 0.29 of 100 is 29, where floating point says 28.999….
    """
    import numpy as np

    portions, remainder = np.divmod(np.asarray(counts, np.int64) * part.numerator, part.denominator)
    if rounding == "floor":
        return portions
    up = (2 * remainder > part.denominator) | (
        (2 * remainder == part.denominator) & (portions % 2 == 1)
    )
    return np.asarray(portions + up, np.int64)


def as_number(
    name: str, value: object, least: float = 0.0, most: float = math.inf, *, above: bool = False
) -> float:
    """Return a finite number from `least` (or, with `above`, strictly above it) to `most`."""
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        number = float(value)
        if (number > least if above else number >= least) and number <= most:
            return number
    low = f"above {least:g}" if above else f"from {least:g} up"
    high = "" if math.isinf(most) else f", at most {most:g}"
    raise SettingError(f"{name} must be a number {low}{high}; got {value!r}")


def as_finite(name: str, value: object) -> float:
    """Return a finite number."""
    return as_number(name, value, -math.inf)


def is_number(value: object) -> bool:
    """Tell whether something is a real number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_share(name: str, value: object) -> None:
    """Refuse what does not lie between 0 and 1, such as a level or a power."""
    if not is_number(value) or not 0 < value < 1:  # type: ignore[operator]
        raise SettingError(f"{name} must lie between 0 and 1, got {value!r}")


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Make a public function refuse arguments of a wrong type by a `SettingError` that names them.

    What is declared is what is checked: numbers, text, choices between them, sequences and
    mappings of them, and classes of this package. `object`, arrays and what is known to type
    checkers alone are let through; their reader looks at them.

    Examples
    --------
    >>> from unskew.checks import checked
    >>> @checked
    ... def half(number: float, *, times: int | None = None) -> float:
    ...     return number / 2 ** (times or 1)
    >>> half(3)
    1.5
    >>> half(3, times="many")
    Traceback (most recent call last):
        ...
    unskew.errors.SettingError: times must be a whole number or None, got 'many'
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            bound = signature.bind(*args, **kwargs).arguments
        except TypeError:  # a name that does not exist, or one that is missing: Python tells best
            return function(*args, **kwargs)
        hints = hints_of(function)
        for name, value in bound.items():
            if name in hints:
                check(name, value, hints[name])
        return function(*args, **kwargs)

    return wrapper


@functools.cache
def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what is declared of each argument that holds one value, as far as it is known here."""
    names = _Allowed(getattr(function, "__globals__", {}))
    return {
        name: eval(hint, {}, names) if isinstance(hint, str) else hint
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (hint := parameter.annotation) is not parameter.empty
    }


def check_fields(settings: Any) -> None:
    """Refuse a dataclass with a field that is not what is declared; for its `__post_init__`."""
    for name, hint in hints_of_fields(settings.__class__).items():
        check(name, getattr(settings, name), hint)


@functools.cache
def hints_of_fields(kind: Any) -> dict[str, Any]:
    """Return what a dataclass declares of each field, as far as it is known here."""
    hints: dict[str, Any] = {}
    for part in reversed(kind.__mro__):
        names = _Allowed(vars(sys.modules[part.__module__]))
        for name, text in vars(part).get("__annotations__", {}).items():
            hints[name] = eval(text, {}, names) if isinstance(text, str) else text
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


class _Allowed(dict[str, Any]):
    """Names of a module; one that only type checkers know may be anything."""

    def __missing__(self, name: str) -> Any:
        return vars(typing).get(name, __builtins__.get(name, Any))  # type: ignore[attr-defined]


def check(name: str, value: object, hint: Any) -> None:
    """Refuse a value that does not fit what is declared."""
    if not fits(value, hint):
        words = " or ".join(described(hint))
        if isinstance(value, Integral) and abs(int(value)) > LARGEST:
            words += f", up to {LARGEST}"
        raise SettingError(f"{name} must be {words}, got {shown(value)}")
    if isinstance(value, str | os.PathLike) and _takes_paths(hint):
        check_path(name, value)


def check_path(name: str, path: str | os.PathLike[str]) -> None:
    """Refuse a path that no file can have: the system's own error does not say which one it is."""
    if "\0" in os.fspath(path):
        raise SettingError(
            f"{name} {os.fspath(path)!r}: a path cannot hold a NUL character; remove it"
        )


def _takes_paths(hint: Any) -> bool:
    """Tell whether a path is among what is declared."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(map(_takes_paths, typing.get_args(hint)))
    kind = origin or hint
    return isinstance(kind, type) and issubclass(kind, os.PathLike)


def shown(value: object) -> str:
    """Return a value that does not fit as messages show it: on one line, and not too long."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # Python writes no number of more than 4,300 digits
        return f"a huge {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def as_numbers(name: str, values: Any) -> F64:
    """Return an array of numbers; refuse what is none.

    Examples
    --------
    >>> from unskew.checks import as_numbers
    >>> as_numbers("p", [0.25, 1])
    array([0.25, 1.  ])
    """
    try:
        if isinstance(values, str | bytes | Mapping):
            raise TypeError(type(values).__name__)
        import numpy as np

        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise SettingError(f"{name} must be numbers, got {shown(values)}") from None


def fits(value: object, hint: Any) -> bool:
    """Tell whether a value is what is declared; in doubt it is."""
    if hint is None or hint is type(None):
        return value is None
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, choice) for choice in args)
    if hint is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool"  # numpy's
    if hint is int:
        return (
            isinstance(value, Integral)
            and not isinstance(value, bool)
            and abs(int(value)) <= LARGEST
        )
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is tuple and args[-1] is not Ellipsis:
        return isinstance(value, tuple | list) and _fit_each(value, args)
    if origin in _SEVERAL:
        return _is_several(value) and all(fits(element, args[0]) for element in _elements(value))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            fits(element, args[1]) for element in value.values()
        )
    if origin is os.PathLike:
        return isinstance(value, os.PathLike)
    if not isinstance(hint, type) or origin is not None or hint in (object, Any):
        return True
    return getattr(hint, "_is_protocol", False) or isinstance(value, hint)


_SEVERAL = (
    collections.abc.Sequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    list,
    tuple,
)
_WORDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    type(None): "None",
    os.PathLike: "a path",
}


def _fit_each(value: Sequence[object], hints: tuple[Any, ...]) -> bool:
    return len(value) == len(hints) and all(map(fits, value, hints))


def _is_several(value: object) -> bool:
    """Tell several values from one: text is one value, a table is not a list of its columns."""
    is_single = isinstance(value, str | bytes | Mapping) or hasattr(value, "columns")
    return isinstance(value, collections.abc.Iterable) and not is_single


def _elements(value: Any) -> Iterator[object]:
    """Yield the elements that can be looked at: arrays have one type, iterators are used up."""
    listed = isinstance(value, list | tuple | set | frozenset)
    mixed = getattr(getattr(value, "dtype", None), "kind", "") == "O"
    return iter(value if listed or mixed else ())


def described(hint: Any) -> list[str]:
    """Return what is declared in words, one for each choice."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return list(dict.fromkeys(word for choice in args for word in described(choice)))
    if origin in _SEVERAL:
        kinds = {int: " of whole numbers", float: " of numbers", str: " of names", Any: ""}
        return [f"a list{kinds.get(args[0], ' of ' + ' or '.join(described(args[0])))}"]
    if origin is collections.abc.Callable:
        return ["a function"]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        of = "" if args[1] in (Any, object) else f" to {' or '.join(described(args[1]))}"
        return [f"a mapping{of}"]
    key = type(None) if hint is None else origin or hint
    return [_WORDS.get(key) or str(getattr(key, "__name__", key))]
