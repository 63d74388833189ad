"""The list of commands, and what all of them share: options, checks of values, the boundary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from unskew.cli.boundary import FAILED, REFUSED, boundary
from unskew.cli.console import speak_of
from unskew.cli.parameters import with_options
from unskew.cli.progress import forget_progress
from unskew.engine.remote import check_local
from unskew.errors import SettingError, import_studies

PANELS = {
    "Start here": ("demo", "audit", "evaluate", "compare", "gate"),
    "Data and splits": ("split", "intervene", "world", "data"),
    "Recommend": ("recommend", "algorithms"),
    "Judge": ("estimate", "annotate", "explain", "metrics", "bias"),
    "Conclude": (
        "groups",
        "distribution",
        "ranking",
        "strata",
        "timeline",
        "power",
        "robustness",
        "study",
    ),
    "Experiment": ("run", "plan", "store"),
    "This installation": ("warmup", "schema"),
}
"""The panels of `unskew --help`, in their order, and the commands in each."""

GROUPS = {
    "annotate": (
        "Let people judge a random sample of recommended pairs, and learn when it is enough.",
        ("plan", "status", "extend", "read"),
    ),
    "bias": (
        "How popularity changes metrics on your data, and which metrics to trust.",
        ("describe", "lists", "pairs", "null", "truth"),
    ),
    "data": ("Named data sets, and the contents of a file.", ("list", "get", "info", "filter")),
    "study": ("Reproduce a paper, claim by claim.", ("run", "list")),
    "plan": ("Check a plan before it runs.", ("check",)),
    "store": ("Inspect a store of results.", ("ls", "verify", "gc")),
}
"""Commands that hold commands: what they are about, and the commands inside."""

FILES = {
    "demo": "doors.audit",
    "annotate": "more.annotate",
    "bias": "more.bias",
    **dict.fromkeys(("groups", "strata", "distribution", "ranking"), "more.comparisons"),
    **dict.fromkeys(("data", "intervene", "world"), "more.data"),
    "estimate": "more.estimate",
    **dict.fromkeys(("metrics", "algorithms", "schema", "warmup"), "more.package"),
    **dict.fromkeys(("power", "robustness"), "more.power"),
    **dict.fromkeys(("run", "plan", "store"), "more.run"),
    "timeline": "more.timeline",
}
"""The files of commands; a main command has a file of its own."""

ONE_FILE = {
    "audit": (
        "audit takes one file of ratings (join several into one; ranked lists are given with "
        "--run, and the test ratings with --judgments)"
    )
}
"""Commands to which people give a second file, and what to do instead."""

GATES = ("gate",)
"""Commands whose exit code is an answer, in which 1 is no failure: these end in 2 then."""

_FAILED = "unskew.failed"
"""Where a group keeps the exit code of a failure of its command."""
_LARGEST = 2**63 - 1
_WRAPPED = 60
"""A line of a docstring that is shorter was not broken for want of space."""
_RICH: Any = {"rich_markup_mode": "rich", "add_completion": False}


class Command(TyperCommand):
    """A command that rejects values no option takes, and ends in the boundary."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and check every value."""
        with boundary(failed=failure_code([self.name or ""])):
            check_words(args)
            rest = self._parsed(ctx, args)
            for parameter in self.params:
                values = ctx.params.get(parameter.name or "")
                for value in values if isinstance(values, list | tuple) else (values,):
                    check_value(_shown_name(parameter), value)
                    if parameter.type.name == "path" and value is not None:
                        check_local(_shown_name(parameter), value)
            return rest

    def _parsed(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; where a command is given a second file, say where it belongs."""
        try:
            return super().parse_args(ctx, args)
        except Exception as problem:
            text = str(getattr(problem, "message", ""))
            if self.name in ONE_FILE and text.startswith("Got unexpected extra argument"):
                more = text.partition(" (")[2].removesuffix(")")
                raise SettingError(f"{ONE_FILE[self.name]}, but got another: {more}") from None
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        names = {name for parameter in self.params for name in parameter.opts}
        forget_progress()
        failed = failure_code([self.name or ""])
        with boundary(ctx.params, names, failed), speak_of(_full_name(ctx), names):
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without ranges of numbers: most only keep out what would never end."""
        from typer import rich_utils

        rich_utils.RANGE_STRING = ""
        self.help = joined_lines(self.help or "")
        super().format_help(ctx, formatter)


class Commands(Mapping[str, Any]):
    """The commands of a group, each imported when it is first asked for."""

    def __init__(self, group: str) -> None:
        self._names: dict[str, tuple[str, str | None]]
        if group in GROUPS:
            self._names = {name: (f"{group} {name}", None) for name in GROUPS[group][1]}
        else:
            self._names = {name: (name, panel) for panel, names in PANELS.items() for name in names}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(*self._names[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Group(TyperGroup):
    """Commands in the order of their panels, imported when they are asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Commands(self.name or "")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; the help imports every command, which can be stopped."""
        ctx.meta[_FAILED] = failure_code(args)
        with boundary(failed=ctx.meta[_FAILED]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Import a command and run it."""
        with boundary(failed=ctx.meta[_FAILED]):
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer passes it
        """Return the names of the commands, without importing them."""
        return list(self.commands)


def failure_code(words: Sequence[str]) -> int:
    """Return the exit code of a failure: of a gate one that is no verdict."""
    return REFUSED if words and words[0] in GATES else FAILED


def callback(name: str) -> Callable[..., None]:
    """Return the function of a command, such as `bias null`, with one parameter per option."""
    group, _, inside = name.partition(" ")
    if group == "study":
        module = import_studies(f"command_{inside}", f"unskew {name}")
        return with_options(module.command)
    module = import_module(f"unskew.cli.{FILES.get(group, f'doors.{group}')}")
    return with_options(getattr(module, f"{name.replace(' ', '_')}_command"))


def _load(name: str, panel: str | None) -> Any:
    if name in GROUPS:
        about = GROUPS[name][0]
        group = get_group(
            typer.Typer(name=name, cls=Group, help=about, no_args_is_help=True, **_RICH)
        )
        group.rich_help_panel = panel
        return group
    app = typer.Typer(**_RICH)
    app.command(name.split()[-1], cls=Command, rich_help_panel=panel)(callback(name))
    return get_command(app)


def joined_lines(text: str) -> str:
    """Return help in which a paragraph is one line, as the terminal breaks lines by its width.

    Lines of a table or of a plan stay apart: they are short, or have columns.
    """
    lines: list[str] = []
    for line in text.splitlines():
        before = lines[-1] if lines else ""
        if len(before) >= _WRAPPED and line.strip() and "  " not in line.strip():
            lines[-1] = f"{before} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def check_words(words: list[str]) -> None:
    """Reject empty values, which as a path would be the working folder, and NUL characters."""
    for before, word in zip(["", *words], words, strict=False):
        if "\0" in word:  # no shell can give one, but who calls the command from Python can
            raise SettingError(f"{word!r}: a value cannot hold a NUL character; remove it")
        name, equals, value = word.partition("=")
        if not word.strip() or (word.startswith("--") and equals and not value.strip()):
            named = name if word.strip() else before if before.startswith("-") else "an argument"
            raise SettingError(f"{named} is empty: give a value, or leave it out")


def check_value(option: str, value: object) -> None:
    """Reject what no option takes: NaN, infinity, whole numbers beyond 64 bits."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingError(f"{option} must be a finite number, got {value}")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise SettingError(f"{option} must lie between -(2^63 - 1) and 2^63 - 1, got {value}")


def _full_name(ctx: Any) -> str:
    """Return the name of a command with that of its group: `bias null`."""
    is_inside = ctx.parent is not None and ctx.parent.parent is not None
    return f"{ctx.parent.info_name} {ctx.info_name}" if is_inside else str(ctx.info_name)


def _shown_name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.human_readable_name).upper()
    return str(max(parameter.opts, key=len))
