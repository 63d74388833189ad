"""Settings, each declared once: its default, what is allowed, and what it means.

A class of settings is a frozen dataclass that inherits from `Settings`. Its fields are declared
with `count`, `number`, `choice` and the like; from them follow the checks when an object is built
and the section "Parameters" of the class's documentation. A plain field works too: then only its
type is checked.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import Field, dataclass, field, fields
from datetime import datetime
from types import FunctionType
from typing import Any

import numpy as np

from unskew.checks import as_count, as_number, as_share, check, choose, hints_of_fields

_SETTING = "setting"
_WIDTH = 92  # with the indent of a documentation string this makes lines of 100


@dataclass(frozen=True)
class Setting:
    """What is known of a setting beside its name, type and default."""

    meaning: str
    refuse: Callable[[str, object], object] | None = None
    """Raises a `SettingError` for a value that is not allowed; None = only the type counts."""
    optional: bool = False
    """Whether None is allowed, as it is wherever it is the default."""


def declare(
    default: Any,
    meaning: str,
    refuse: Callable[[str, object], object] | None = None,
    *,
    optional: bool = False,
    **options: Any,
) -> Any:
    """Declare a field of any type; `options` are those of `dataclasses.field`."""
    setting = Setting(meaning, refuse, optional or default is None)
    return field(default=default, metadata={_SETTING: setting}, **options)


def count(default: int | None, meaning: str, least: int = 1, *, optional: bool = False) -> Any:
    """Declare a whole number from `least` up; `as_count` says how large it may be."""
    return declare(
        default, meaning, lambda name, value: as_count(name, value, least), optional=optional
    )


def number(
    default: float | str | None,
    meaning: str,
    least: float = 0.0,
    most: float = math.inf,
    *,
    above: float | None = None,
    words: Sequence[str] = (),
    optional: bool = False,
) -> Any:
    """Declare a finite number from `least`, or strictly `above`, to `most`; or one of the words."""

    def refuse(name: str, value: object) -> None:
        if words and isinstance(value, str):
            choose(name, value, words)
        elif above is None:
            as_number(name, value, least, most)
        else:
            as_number(name, value, above, most, above=True)

    return declare(default, meaning, refuse, optional=optional)


def finite(default: float, meaning: str) -> Any:
    """Declare any finite number, such as a threshold of ratings."""
    return number(default, meaning, -math.inf)


def share(default: float | None, meaning: str, *, one: bool = False, optional: bool = False) -> Any:
    """Declare a share between 0 and 1; 1 itself only if `one`."""
    return declare(
        default, meaning, lambda name, value: as_share(name, value, one=one), optional=optional
    )


def choice(default: str, meaning: str, allowed: Iterable[str]) -> Any:
    """Declare a word out of a list."""
    names = tuple(allowed)
    return declare(default, meaning, lambda name, value: choose(name, value, names))  # type: ignore[arg-type]


def flag(default: bool, meaning: str) -> Any:
    """Declare true or false."""
    return declare(default, meaning)


class Settings:
    """A frozen dataclass whose fields are settings: it documents them, and refuses wrong values."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if vars(cls).get("__doc__"):
            cls.__doc__ = _documented(cls)

    def __post_init__(self) -> None:
        """Refuse wrong values; a class that checks more calls this first."""
        kind: Any = type(self)
        hints = hints_of_fields(kind)
        for entry in fields(self):  # type: ignore[arg-type]
            value, setting = getattr(self, entry.name), entry.metadata.get(_SETTING)
            if setting is None or setting.refuse is None:
                check(entry.name, value, hints[entry.name])
            elif value is not None or not setting.optional:
                setting.refuse(entry.name, value)

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values, for a card."""
        settings = fields(self)  # type: ignore[arg-type]
        return {entry.name: plain(getattr(self, entry.name)) for entry in settings}


def plain(value: Any) -> Any:
    """Return a setting as JSON knows it: data by their fingerprint, functions by their names."""
    if isinstance(value, Settings):
        return value.describe()
    if hasattr(value, "fingerprint"):
        return {"ratings": len(value), "fingerprint": value.fingerprint}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, FunctionType | type):
        return f"{value.__module__}.{value.__qualname__}"
    return value.item() if isinstance(value, np.generic) else value


def _documented(cls: type) -> str:
    """Return the documentation with the declared settings as its section "Parameters"."""
    text = inspect.cleandoc(cls.__doc__ or "")
    lines = text.splitlines()
    heads = [index for index, line in enumerate(lines[1:]) if line and set(line) == {"-"}]
    settings = list(_declared(cls))
    if not settings or any(lines[index] == "Parameters" for index in heads):
        return text
    section = ["Parameters", "----------"]
    for name, setting in settings:
        section += [name, *(f"    {line}".rstrip() for line in _wrapped(setting.meaning))]
    position = heads[0] if heads else len(lines) + 1
    before = [*lines[:position], *([] if heads else [""])]
    return "\n".join([*before, *section, *([""] if heads else []), *lines[position:]])


def _declared(cls: type) -> Iterator[tuple[str, Setting]]:
    """Yield the settings in the order of the fields; the class may not be a dataclass yet."""
    declared: dict[str, Field[Any]] = {}
    for part in reversed(cls.__mro__):
        declared |= vars(part).get("__dataclass_fields__", {})
        declared |= {name: entry for name, entry in vars(part).items() if isinstance(entry, Field)}
    for name, entry in declared.items():
        if _SETTING in entry.metadata:
            yield name, entry.metadata[_SETTING]


def _wrapped(meaning: str) -> Iterator[str]:
    """Yield the lines of a text that may have several paragraphs."""
    for number, paragraph in enumerate(inspect.cleandoc(meaning).split("\n\n")):
        if number:
            yield ""
        line = ""
        for word in paragraph.split():
            if line and len(line) + 1 + len(word) > _WIDTH:
                yield line
                line = word
            else:
                line = f"{line} {word}" if line else word
        yield line
