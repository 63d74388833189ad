"""What all commands share: the order of their list, checks of what is typed, the boundary."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from unskew.cli.boundary import boundary
from unskew.errors import SettingError

PANELS = ("Start here", "Data and splits", "Recommend", "Judge", "Conclude", "Experiment")
"""The panels of `unskew --help`, in their order."""

_LARGEST = 2**63 - 1


class Command(TyperCommand):
    """A command that refuses what no option takes, and ends in the boundary."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, then check every value."""
        check_words(args)
        left = super().parse_args(ctx, args)
        for one in self.params:
            values = ctx.params.get(one.name or "")
            for value in values if isinstance(values, list | tuple) else (values,):
                check_value(_option(one), value)
        return left

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with boundary(ctx.params):
            return super().invoke(ctx)


class Group(TyperGroup):
    """Commands in the order of their panels."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands: panel by panel, in each as they were added."""

        def panel(name: str) -> int:
            title = getattr(self.commands[name], "rich_help_panel", None)
            return PANELS.index(title) if title in PANELS else len(PANELS)

        return sorted(super().list_commands(ctx), key=panel)


class App(typer.Typer):
    """An application whose commands are of these classes."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cls=Group, no_args_is_help=True, rich_markup_mode="rich", **settings)

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:
        """Add a command."""
        return super().command(name, cls=Command, **settings)


def check_words(words: list[str]) -> None:
    """Refuse empty values: as a path they would be the working folder."""
    for before, word in zip(["", *words], words, strict=False):
        name, equals, value = word.partition("=")
        if not word.strip() or (word.startswith("--") and equals and not value.strip()):
            named = name if word.strip() else before if before.startswith("-") else "an argument"
            raise SettingError(f"{named} is empty: give a value, or leave it out")


def check_value(option: str, value: object) -> None:
    """Refuse what no option takes: NaN, infinity, whole numbers beyond 64 bits."""
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingError(f"{option} must be a finite number, got {value}")
    if isinstance(value, int) and abs(value) > _LARGEST:
        raise SettingError(f"{option} must lie between -(2^63 - 1) and 2^63 - 1, got {value}")


def _option(one: Any) -> str:
    if one.param_type_name == "argument":
        return str(one.human_readable_name).upper()
    return str(max(one.opts, key=len))
