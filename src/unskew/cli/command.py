"""The list of commands, and what all of them share: options, checks of values, the boundary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_group

from unskew.cli.boundary import FAILED, REFUSED, boundary
from unskew.cli.console import speak_of
from unskew.cli.parameters import with_options
from unskew.cli.progress import forget_progress
from unskew.engine.remote import check_local
from unskew.errors import SettingError, import_studies
from unskew.report.text import counted

START = "Start here"
PANELS = {
    START: ("demo", "audit", "evaluate", "compare", "gate", "explain", "split", "recommend"),
    "Get, change and simulate data": ("data", "intervene", "world"),
    "Compare in parts: users, items, data sets, time": (
        "groups",
        "distribution",
        "ranking",
        "strata",
        "timeline",
    ),
    "Find out what your data can show": ("power", "robustness", "bias"),
    "Estimate what nobody has rated": ("estimate", "annotate"),
    "Run experiments and reproduce papers": ("run", "plan", "store", "study"),
    "Look up names and formats, prepare an installation": (
        "metrics",
        "algorithms",
        "schema",
        "warmup",
    ),
}
"""The panels of `unskew --help-all`, in their order; `unskew --help` shows the first alone."""

COMMON_OPTIONS = ("ratings", "judgments", "run", "train", "metric", "liked", "output", "format")
MAIN_OPTIONS = {
    "annotate plan": "labels titles budget design smallest",
    "audit": "random quick thorough algorithms store",
    "bias describe": "random figure figures",
    "bias lists": "k by",
    "bias null": "null repeats precision designs algorithm store",
    "bias pairs": "random k figure",
    "bias truth": "random world algorithm targets intervention folds",
    "compare": "test correction against by figure",
    "distribution": "against lexirecall figure",
    "estimate": "random labels human propensity bounds",
    "evaluate": "lists compat per_user save",
    "explain": "items value between",
    "gate": "init candidate production margin by config log",
    "groups": "by by_items against figure",
    "intervene": "test mar kind weighting seed force",
    "power": "difference power alpha pairs",
    "ranking": "data_sets missing test against rope figure",
    "recommend": "test users algorithm setting model save_model targets depth",
    "robustness": "scores goal share samples",
    "split": "protocol test folds pick test_ratings audit fail_on seed",
    "strata": "by strata heads figure",
    "study run": "name data stand_in quick amount claims store csv",
    "timeline": "event_log algorithm windows length ages",
}
"""The options that `--help` shows of commands with many, beside the usual ones."""

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

_PANEL_FILES = ("data", "comparisons", "bias", "estimate", "run", "package")
FILES = {
    "demo": "doors.demo",
    **{
        name: f"more.{file}"
        for file, names in zip(_PANEL_FILES, list(PANELS.values())[1:], strict=True)
        for name in names
    },
}
"""The files of commands: a main command has a file of its own, each further panel has one."""

ONE_FILE = {
    "audit": (
        "audit takes one file of ratings (join several into one; ranked lists are given with "
        "--run, and the test ratings with --judgments)"
    )
}
"""Commands to which people give a second file, and what to do instead."""

GATES = ("gate",)
"""Commands whose exit code is an answer, in which 1 is no failure: these end in 2 then."""

_EVERYTHING = "unskew.everything"
"""Where a context keeps that the help leaves out nothing."""
_FAILED = "unskew.failed"
"""Where a group keeps the exit code of a failure of its command."""
_LARGEST = 2**63 - 1
_WRAPPED = 60
"""A line of a docstring that is shorter was not broken for want of space."""
_RICH: Any = {"rich_markup_mode": "rich", "add_completion": False}


def _show_everything(ctx: Any, _: Any, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        ctx.meta[_EVERYTHING] = True
        typer.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


HELP_ALL = TyperOption(
    param_decls=["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_everything,
    help="Show what --help leaves out, too, and exit.",
)
"""The option of every command and group that shows all there is."""


class Command(TyperCommand):
    """A command that rejects values no option takes, and ends in the boundary."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and check every value."""
        with boundary(failed=failure_code([self.name or ""])):
            check_words(args)
            remaining = self._parsed(ctx, args)
            for parameter in self.params:
                values = ctx.params.get(parameter.name or "")
                for value in values if isinstance(values, list | tuple) else (values,):
                    check_value(_shown_name(parameter), value)
                    if parameter.type.name == "path" and value is not None:
                        check_local(_shown_name(parameter), value)
            return remaining

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

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, with those of the help."""
        return [*super().get_params(ctx), HELP_ALL]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without ranges of numbers: most only keep out what would never end."""
        from typer import rich_utils

        rich_utils.RANGE_STRING = ""
        self.help = joined_lines(self.help or "")
        name = _full_name(ctx)
        needed = {*COMMON_OPTIONS, *MAIN_OPTIONS.get(name, "").split()}
        is_whole = name not in MAIN_OPTIONS or _EVERYTHING in ctx.meta
        options: list[Any] = self.params
        for option in options:
            option.hidden = not (is_whole or option.name in needed or option.required)
        HELP_ALL.hidden = name not in MAIN_OPTIONS
        more = counted(sum(option.hidden for option in options), "more option")
        self.epilog = None if is_whole else f"{more}: unskew {name} --help-all"
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
        self.listed = list(self.commands)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse; the help imports every command, which can be stopped."""
        ctx.meta[_FAILED] = failure_code(args)
        with boundary(failed=ctx.meta[_FAILED]):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Import a command and run it."""
        with boundary(failed=ctx.meta[_FAILED]):
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, with those of the help."""
        return [*super().get_params(ctx), HELP_ALL]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer passes it
        """Return the names of the commands, without importing them."""
        return list(self.listed)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: of the package with the first panel, or with every command."""
        is_whole = ctx.parent is not None or _EVERYTHING in ctx.meta
        HELP_ALL.hidden = ctx.parent is not None
        self.listed = list(self.commands) if is_whole else list(PANELS[START])
        super().format_help(ctx, formatter)
        self.listed = list(self.commands)


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


def run_alone(function: Callable[..., None]) -> None:
    """Run a function whose parameters are options as a command of its own, with the words typed.

    Parameters
    ----------
    function
        Takes bundles of options and single ones by keyword; its docstring is the help.
    """
    app = typer.Typer(**_RICH)
    app.command(function.__name__, cls=Command)(with_options(function))
    app()


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
