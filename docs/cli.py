"""Write docs/cli.md from the commands themselves: python docs/cli.py [--check]."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from unskew.cli import app
from unskew.cli.command import PANELS

HEAD = r"""# Command line

Written from the help of the commands by `docs/cli.py`; do not edit.

`unskew COMMAND --help-all` prints the same in a terminal, `unskew COMMAND --help` the usual
options; `unskew --version` prints the version.
Results go to standard output, warnings and errors to standard error; characters that the terminal's
encoding lacks are written in ASCII. Where one of the two is closed (`>&-`), a command does its work
and ends with its exit code all the same. Files and folders get their names only when they are
complete.

| exit code | what happened |
|---|---|
| 0 | done |
| 1 | data that cannot be used, or another failure: a full disk, too little memory, a failed task |
| 2 | a wrong command or setting |
| 3 | of `unskew gate`: not settled; there 0 is promote, 1 is hold, and any failure is 2 |
| 3 | of `unskew split --audit --fail-on`: a light of that kind is on |
| 130 | stopped with Ctrl-C; with `--store` the finished part is kept |
| 141 | the reader of the output has closed it, as in `unskew metrics \| head -1` |

`-o FILE` writes the output of a command to a file; the ending selects the format. `--format`
chooses the format of what is printed; `--format json` is for programs, and `unskew schema COMMAND`
prints what that holds ([agents and pipelines](agents.md)). `--figure FILE` draws the command's
main figure, `--figure NAME=FILE` another one, `--figures DIR` all of them. The name of a data set
(`ml-1m`, `cm100k:observed=familiar`) can be given instead of a file of ratings.

An error is one line. With the environment variable `UNSKEW_DEBUG=1` the lines above it show where
the error came from.
"""
# What Markdown would take for its own.
MARKS = re.compile(r"([\\|*_<\[\]`])")


def page() -> str:
    """Return the page."""
    panels: dict[str, list[str]] = {panel: [] for panel in PANELS}
    summary = ["| command | what it does |", "|---|---|"]
    for name, command, panel in commands():
        panels.setdefault(panel, []).append(section(name, command))
    for panel in panels:
        summary += [
            f"| [`{name}`](#{name.replace(' ', '-')}) | {escaped(first_line(command))} |"
            for name, command, of in commands()
            if of == panel
        ]
    parts = [HEAD, "\n".join([*summary, ""])]
    for panel, sections in panels.items():
        parts += [f"## {panel}\n", *sections]
    return "\n".join(parts)


def commands(group: Any = None, before: str = "unskew", panel: str = "") -> Iterator[Any]:
    """Give every command that can be run: its whole name, itself, and the panel it stands in."""
    for name, command in (get_command(app) if group is None else group).commands.items():
        where = panel or command.rich_help_panel
        if hasattr(command, "commands"):
            yield from commands(command, f"{before} {name}", where)
        elif not command.hidden:
            yield f"{before} {name}", command, where


def section(name: str, command: Any) -> str:
    """Return a command's section: its help, then what it takes."""
    lines = [f"### {name}\n", prose(command.help or ""), ""]
    tables: dict[str, list[str]] = {}
    for one in command.params:
        title = "argument" if one.param_type_name == "argument" else one.rich_help_panel or "option"
        tables.setdefault(title, []).append(row(one))
    for title, rows in tables.items():
        lines += [f"| {title} | what it is | default |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def row(one: Any) -> str:
    """Return the line of an argument or option."""
    argument = one.param_type_name == "argument"
    names = [one.name.upper()] if argument else [*one.opts, *one.secondary_opts]
    shown = " ".join(f"`{name}`" for name in names)
    return f"| {shown} | {escaped(one.help or '')} | {default(one)} |"


def default(one: Any) -> str:
    """Return what holds when nothing is said."""
    if one.required:
        return "required"
    if one.default is None or one.default is False or one.default == []:
        return ""
    return f"`{one.default}`"


def first_line(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return " ".join((command.help or "").strip().partition("\n\n")[0].split())


def prose(text: str) -> str:
    """Return help text as Markdown: headings bold, what is indented kept as it stands."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if paragraph.startswith("  "):
            # A command over several lines needs what a shell asks for.
            joint = " \\\n    " if paragraph.startswith("  unskew ") else "\n"
            kept = joint.join(line.removeprefix("  ") for line in paragraph.splitlines())
            if parts and parts[-1].startswith("```"):  # one block for all that follow each other
                parts[-1] = f"{parts[-1].removesuffix('```')}{kept}\n```"
            else:
                parts.append(f"```\n{kept}\n```")
        elif heading := re.fullmatch(r"\[bold\](.+)\[/bold\]", paragraph.strip()):
            parts.append(f"**{heading[1]}**")
        else:
            pieces = re.split(r"\[bold\](.+?)\[/bold\]", paragraph.strip())
            texts = [f"`{x}`" if at % 2 else escaped(x) for at, x in enumerate(pieces)]
            parts.append("".join(texts))
    return "\n\n".join(parts)


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line of a table too."""
    return MARKS.sub(r"\\\1", text)


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".md")
    if "--check" in sys.argv:
        sys.exit(0 if target.read_text() == page() else "docs/cli.md is stale: make docs")
    target.write_text(page())
