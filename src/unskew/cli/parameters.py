"""The options of a command: name, type, default and text from a signature and its docstring.

An option is a parameter of a command, a field of a bundle, or a parameter of the function that the
command calls (`OptionsOf`). Its text stands in the docstring of what declares it, under a title
that is its panel in the help; what several commands have is documented in `options`. What follows
from neither stands in the tables of this module, or beside the type as `Option`.

A function that a command calls is read from its source, of which only the function is parsed: that
takes a millisecond. To import it would take a third of a second, for numpy and polars, before
`--help` is printed; and a table that is generated from it would be one more file to keep up to
date.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from unskew.checks import (
    MOST_DEPTH,
    MOST_DIGITS,
    MOST_DRAWS,
    MOST_PROCESSES,
    MOST_REPEATS,
    MOST_SEED,
    choose,
)
from unskew.errors import SettingError

Class = TypeVar("Class")

_PACKAGE = Path(__file__).parents[1]

REQUIRED: Any = ...
"""The default of an option that has to be given."""

FLAGS = {
    "algorithm": ("--algorithm", "-a"),
    "everything": ("--all",),
    "filters": ("--filter",),
    "goal": ("--to",),
    "judgments": ("--judgments", "-j"),
    "k": ("-k",),
    "kind": ("--kind", "-k"),
    "metric": ("--metric", "-m"),
    "output": ("--output", "-o"),
    "protocol": ("--protocol", "-p"),
    "quiet": ("--quiet", "-q"),
    "run": ("--run", "-r"),
    "setting": ("--set", "-s"),
    "show_list": ("--list",),
    "world_items": ("--items",),
    "world_users": ("--users",),
}
"""The names of options that are not called as their parameter, or have a short name too."""

LIMITS: dict[str, tuple[int | None, int | None]] = {
    "digits": (0, MOST_DIGITS),
    "folds": (2, MOST_REPEATS),
    "groups": (2, MOST_DEPTH),
    "most": (2, MOST_REPEATS),
    "permutations": (1, MOST_DRAWS),
    "ratings": (1, MOST_SEED),
    "repeats": (1, MOST_REPEATS),
    "repetitions": (1, MOST_REPEATS),
    "resamples": (0, MOST_DRAWS),
    "sample": (1, 100 * MOST_DRAWS),
    "samples": (1, MOST_DRAWS),
    "seed": (0, MOST_SEED),
    "splits": (None, None),  # the audit says how many its data allow
    "threads": (1, MOST_PROCESSES),
    "windows": (2, MOST_REPEATS),
    "workers": (1, MOST_PROCESSES),
}
"""Between which whole numbers an option lies; the others between 1 and the largest depth."""

METAVARS = {
    "against": "rest|best|pairs|GROUP",
    "between": "FROM TO",
    "by_items": "NAME|FILE:COLUMN",
    "cluster": "ADDRESS",
    "csv": "DIR",
    "lists": "USER,DATE",
    "on_disk": "DIR",
    "save": "DIR",
}
"""What stands for the value of an option in the help, where it is not its type."""


class Option(NamedTuple):
    """What of an option follows neither from its signature nor from its docstring."""

    check: Callable[[Any], Any] | None = None
    """Refuses a value before the command begins."""
    metavar: str | None = None
    names: tuple[str, ...] = ()
    limits: tuple[int, int] | None = None
    text: str = ""
    is_argument: bool = False


def argument(metavar: str | None = None) -> Option:
    """Declare an argument: a value without the name of an option before it."""
    return Option(metavar=metavar, is_argument=True)


def format_of(kinds: tuple[str, ...]) -> Option:
    """Declare `--format`, which is one of these."""
    words = " or ".join(kinds) if len(kinds) == 2 else ", ".join(kinds)
    return Option(lambda kind: choose("format", kind, kinds), text=f"Output format: {words}.")


class OptionsOf(NamedTuple):
    """Options that a function takes, as its signature and docstring in `target` say."""

    target: str
    """Module and function or class of settings: `stats.compare.compare:compare`."""
    panels: Mapping[str, str]
    """By the panel of the help: names of parameters."""
    types: Mapping[str, Any] = MappingProxyType({})
    """What is read where the signature does not say it, such as a file."""


class Options:
    """The values of options that a function takes."""

    __slots__ = ("__dict__", "slots")

    def __init__(self, slots: tuple[_Slot, ...], values: Mapping[str, Any]) -> None:
        self.slots = slots
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@dataclass_transform(kw_only_default=True, frozen_default=True)
def bundle(class_: type[Class]) -> type[Class]:
    """Make a class whose fields are options, or bundles of them."""
    # Not frozen, no `repr`: each method takes a tenth of a millisecond of every command.
    return dataclasses.dataclass(kw_only=True, repr=False)(class_)


class _Slot(NamedTuple):
    """A parameter of a command, a field of a bundle, or a parameter of a function."""

    name: str
    type: Any
    default: Any
    panel: str
    text: str

    @property
    def inner(self) -> tuple[_Slot, ...] | None:
        """The slots of a bundle; None of an option."""
        owner: Any = self.type
        if dataclasses.is_dataclass(owner):
            return _slots_of(owner)  # type: ignore[arg-type]
        functions = [x for x in get_args(owner)[1:] if isinstance(x, OptionsOf)]
        return _slots_of_function(functions[0]) if functions else None

    def parameters(self) -> Iterator[inspect.Parameter]:
        """Yield the parameters that typer makes options of."""
        if self.inner is not None:
            for slot in self.inner:
                yield from slot.parameters()
            return
        yield inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=REQUIRED if self.default is inspect.Parameter.empty else self.default,
            annotation=Annotated[self._plain_type, self._declaration()],
        )

    @property
    def _plain_type(self) -> Any:
        return self.type.__origin__ if get_origin(self.type) is Annotated else self.type

    def _declaration(self) -> Any:
        option = next((x for x in get_args(self.type)[1:] if isinstance(x, Option)), Option())
        text = option.text or self.text
        if option.is_argument:
            return typer.Argument(help=text, metavar=option.metavar, show_default=False)
        dashed = f"--{self.name.replace('_', '-')}"
        # A switch that is off until it is given needs no second name to put it off.
        switch = (dashed,) if self.default is False else ()
        more: dict[str, Any] = {"metavar": option.metavar or METAVARS.get(self.name)}
        if int in (self._plain_type, *get_args(self._plain_type)):
            limits = option.limits or LIMITS.get(self.name, (1, MOST_DEPTH))
            more |= {"min": limits[0], "max": limits[1], "metavar": "<int>"}
        names = option.names or FLAGS.get(self.name, switch)
        return typer.Option(
            *names, help=text, rich_help_panel=self.panel or "Output", callback=option.check, **more
        )

    def filled(self, values: Mapping[str, Any]) -> Any:
        """Return the value of an option, or a bundle of them."""
        if self.inner is None:
            return values[self.name]
        filled = {slot.name: slot.filled(values) for slot in self.inner}
        if dataclasses.is_dataclass(self.type):
            return self.type(**filled)  # type: ignore[operator]
        return Options(self.inner, filled)

    def given(self, value: Any) -> list[str]:
        """Return the names of the options in it whose values are not the default."""
        if self.inner is not None:
            return [x for slot in self.inner for x in slot.given(getattr(value, slot.name))]
        if value is None or value == self.default:
            return []
        negation = "no-" if self.default is True else ""
        return [FLAGS.get(self.name, (f"--{negation}{self.name.replace('_', '-')}",))[0]]


def with_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with one parameter per option, for one that takes bundles."""
    slots = _slots_of(function)

    def command(**values: Any) -> None:
        function(**{slot.name: slot.filled(values) for slot in slots})

    command.__doc__ = read_docstring(function.__doc__ or "")[0]
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter for slot in slots for parameter in slot.parameters()]
    )
    return command


def given_options(*bundles: Any) -> list[str]:
    """Return the names of options in bundles whose values are not the default, as users write them.

    An option that was given with its default as value cannot be told from one that was not given.
    """
    return [
        name
        for values in bundles
        for slot in (values.slots if isinstance(values, Options) else _slots_of(values.__class__))
        for name in slot.given(getattr(values, slot.name))
    ]


def refuse(reason: str, names: str, *bundles: Any) -> None:
    """Refuse the first of some options that was given.

    Parameters
    ----------
    reason
        What speaks against it, behind its name.
    names
        The options, in the order in which they are looked for: `--train --items`.
    bundles
        Where they stand.
    """
    options = given_options(*bundles)
    for name in names.split():
        if name in options:
            raise SettingError(f"{name} {reason}")


@functools.cache  # bundles stand in one another, so that each is asked for several times
def _slots_of(owner: Any) -> tuple[_Slot, ...]:
    """Return the parameters of a function, or the fields of a bundle."""
    shared = import_module("unskew.cli.options")
    texts: dict[str, tuple[str, str]] = {}
    for part in (shared, *reversed(getattr(owner, "__mro__", (owner,)))):
        texts |= read_docstring(part.__doc__ or "")[1]
    types = get_type_hints(owner, include_extras=True)
    return tuple(
        _Slot(name, types[name], parameter.default, *texts.get(name, ("", "")))
        for name, parameter in inspect.signature(owner).parameters.items()
    )


def _slots_of_function(options: OptionsOf) -> tuple[_Slot, ...]:
    """Return what a function takes, by its source."""
    panels = {name: panel for panel, names in options.panels.items() for name in names.split()}
    settings = settings_of(options.target, tuple(panels))
    return tuple(
        _Slot(
            name, options.types.get(name, setting.type), setting.default, panels[name], setting.text
        )
        for name, setting in zip(panels, settings, strict=True)
    )


# What signatures and docstrings say


class Declaration(NamedTuple):
    """What a signature and its docstring say of an option."""

    type: Any
    default: Any
    text: str


@functools.cache
def read_docstring(docstring: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Split a docstring into the text before its sections, and the sections' entries.

    Returns
    -------
    text
        What stands before the first title.
    entries
        By name: the title that it stands under, and the first paragraph of its text.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    heads = [number for number, line in enumerate(lines) if line and set(line) == {"-"}]
    entries: dict[str, tuple[str, str]] = {}
    for head, end in pairwise([*heads, len(lines) + 1]):
        section = "\n".join(lines[head + 1 : end - 1])
        for entry in re.split(r"\n(?=\S)", section):
            names, _, text = entry.partition("\n")
            for name in names.split(", "):
                entries[name] = (lines[head - 1], _first_paragraph(text))
    return "\n".join(lines[: heads[0] - 1] if heads else lines).strip(), entries


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


@functools.cache
def settings_of(target: str, names: tuple[str, ...]) -> tuple[Declaration, ...]:
    """Return what a function or a class of settings takes under these names.

    Parameters
    ----------
    target
        Module and function or class: `stats.compare.compare:compare`.
    names
        The parameters.

    Returns
    -------
    settings
        In the order of the names; texts are without the marks of code.
    """
    module, _, name = target.partition(":")
    source = _source(module)
    # The last definition: those before it are overloads.
    head = re.findall(rf"(?ms)^(?:def|class) {name}\b.*?(?=^[^\s)]|\Z)", source)[-1]
    node = ast.parse(head).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    entries = read_docstring(ast.get_docstring(node) or "")[1]
    declared = {field[0]: field[1:] for field in _declared(node)}
    settings = []
    for name in names:
        annotation, default, meaning = declared[name]
        kind = _option_type(ast.unparse(annotation))
        value = inspect.Parameter.empty if default is None else _value(default, source)
        text = entries[name][1] if meaning is None else _first_paragraph(ast.literal_eval(meaning))
        settings.append(Declaration(kind, value, text.replace("`", "")))
    return tuple(settings)


def _declared(
    node: ast.FunctionDef | ast.ClassDef,
) -> Iterator[tuple[str, ast.expr, ast.expr | None, ast.expr | None]]:
    """Yield name, type, default and, of a class of settings, the text that they have."""
    if isinstance(node, ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.value, ast.Call):
                value, text = field.value.args[:2]
                yield ast.unparse(field.target), field.annotation, value, text
        return
    plain = [*node.args.posonlyargs, *node.args.args]
    required: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
    for argument, default in zip([*plain, *node.args.kwonlyargs], defaults, strict=True):
        if argument.annotation is not None:
            yield argument.arg, argument.annotation, default, None


def _option_type(annotation: str) -> Any:
    """Return as what a value is read: text, wherever words are allowed."""
    kinds = annotation.split(" | ")
    names = {"str": str, "bool": bool, "int": int, "float": float, "Sequence[str]": list[str]}
    read: Any = next((kind for name, kind in names.items() if name in kinds), str)
    return read | None if "None" in kinds else read


def _value(default: ast.expr, source: str) -> Any:
    """Return a default: a literal, or a constant of the module or of one that it imports."""
    if not isinstance(default, ast.Name):
        return ast.literal_eval(default)
    line = re.search(rf"(?m)^[\w, ]*\b{default.id}\b[\w, ]*(?:: .+?)? = .+$", source)
    if line is None:
        names = rf"(?:\([^)]*|.*)\b{default.id}\b"
        (module,) = re.findall(rf"(?m)^from unskew\.(\S+) import {names}", source)
        return _value(default, _source(module))
    targets, _, text = line[0].partition(" = ")
    constants, value = targets.partition(":")[0].split(", "), ast.literal_eval(text)
    return value if len(constants) == 1 else value[constants.index(default.id)]


def _source(module: str) -> str:
    return (_PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
