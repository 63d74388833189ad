"""Bundles of options: a command takes a few typed objects, typer sees every option in them.

An option is declared once, as a type: `Seed = Annotated[int, option(RUNNING, "…", default=0)]`.
A bundle is a class whose fields have such types, or are bundles again. A command is a function
whose parameters are options and bundles; `with_options` writes them all out for typer.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import typer

Class = TypeVar("Class")

REQUIRED: Any = ...
"""The default of an option that has to be given."""


def option(panel: str, text: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Declare an option: the panel of the help it stands in, its text, its names, its default."""
    if more.keys() & {"min", "max"}:
        more.setdefault("metavar", "<int>")
    return _with_default(typer.Option(*names, help=text, rich_help_panel=panel, **more), default)


def argument(text: str, metavar: str | None = None, *, default: Any = REQUIRED) -> Any:
    """Declare an argument: its text and its name in the help."""
    return _with_default(typer.Argument(help=text, metavar=metavar, show_default=False), default)


def _with_default(declaration: Any, default: Any) -> Any:
    declaration.declared_default = default
    return declaration


@dataclass_transform(kw_only_default=True, frozen_default=True)
def bundle(class_: type[Class]) -> type[Class]:
    """Make a class whose fields are options, or bundles of them."""
    # Not frozen, no `repr`: each method takes a tenth of a millisecond of every command.
    return dataclasses.dataclass(kw_only=True, repr=False)(class_)


def _is_bundle(type_: Any) -> bool:
    return dataclasses.is_dataclass(type_)


class _Slot(NamedTuple):
    """A parameter of a command or a field of a bundle."""

    name: str
    type: Any
    default: Any
    """What this command or bundle says instead of the default that the option declares."""


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with one parameter per option, for one that takes bundles."""
    slots = _slots_of(function)

    def command(**values: Any) -> None:
        function(**{slot.name: _filled(slot, values) for slot in slots})

    command.__doc__ = function.__doc__
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter for slot in slots for parameter in _parameters(slot)]
    )
    return command


@functools.cache  # bundles stand in one another, so that each is asked for several times
def _slots_of(owner: Any) -> tuple[_Slot, ...]:
    """Return the parameters of a function, or the fields of a bundle."""
    types = get_type_hints(owner, include_extras=True)
    return tuple(
        _Slot(name, types[name], parameter.default)
        for name, parameter in inspect.signature(owner).parameters.items()
    )


def _parameters(slot: _Slot) -> Iterator[inspect.Parameter]:
    if _is_bundle(slot.type):
        for inner in _slots_of(slot.type):
            yield from _parameters(inner)
        return
    default = slot.default
    if default is inspect.Parameter.empty:
        (declaration,) = slot.type.__metadata__
        default = declaration.declared_default
    yield inspect.Parameter(
        slot.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=slot.type
    )


def _filled(slot: _Slot, values: dict[str, Any]) -> Any:
    if not _is_bundle(slot.type):
        return values[slot.name]
    bundle_class: Any = slot.type
    return bundle_class(**{inner.name: _filled(inner, values) for inner in _slots_of(bundle_class)})


def given_options(*bundles: Any) -> list[str]:
    """Return the names of options in bundles whose values are not the default, as users write them.

    An option that was given with its default as value cannot be told from one that was not given.
    """
    return [
        name
        for one in bundles
        for slot in _slots_of(one.__class__)
        for name in _given(slot, getattr(one, slot.name))
    ]


def _given(slot: _Slot, value: Any) -> list[str]:
    if _is_bundle(slot.type):
        return given_options(value)
    (parameter,) = _parameters(slot)
    return [] if value in (parameter.default, None) else [f"--{slot.name.replace('_', '-')}"]
