"""Run the examples of the pages, and write below each what it prints: python docs/outputs.py.

A block of Python or of shell commands is followed by what it prints where the line
`<!-- output -->` stands between them; `<!-- output: first 9 lines -->` shows the beginning only.
The examples of one page follow each other: they share names and a folder.
"""

import io
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

# The same kernels of OpenBLAS on every machine, as in tests/conftest.py.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

from unskew.cli import console, main

DOCS = Path(__file__).parent
WIDTH = 100
"""Columns of the terminal on which commands are shown."""
BLOCK = re.compile(
    r"^```(?P<language>\w*)\n(?P<code>.*?)^```$"
    r"(?:\n+<!-- output(?:: first (?P<lines>\d+) lines)? -->\n```\w*\n(?P<shown>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
SHELL = ("", "sh")
ANSWERS = {"gate": (1, 3), "split": (3,)}
"""Exit codes of commands that are answers, not failures."""


@dataclass(frozen=True)
class Example:
    """A block of a page, and what the page says that it prints."""

    language: str
    code: str
    lines: int | None
    """How many lines of the output are shown; None: all."""
    shown: str | None
    place: tuple[int, int]
    """Where the output stands in the page."""

    def commands(self) -> list[list[str]]:
        """Return the unskew commands of a shell block as words."""
        if self.language not in SHELL:
            return []
        lines = self.code.replace("\\\n", " ").splitlines()
        return [shlex.split(line, comments=True) for line in lines if line.startswith("unskew ")]


def examples(text: str) -> Iterator[Example]:
    """Yield the blocks of a page in order."""
    for block in BLOCK.finditer(text):
        lines = block["lines"]
        yield Example(
            language=block["language"],
            code=block["code"],
            lines=None if lines is None else int(lines),
            shown=block["shown"],
            place=block.span("shown"),
        )


def cut(text: str, lines: int | None) -> str:
    """Return printed text as a page shows it: long lines folded, cut after some lines."""
    kept = []
    for line in text.splitlines():
        indent = "  " if len(line) > WIDTH else ""
        kept += (
            textwrap.wrap(line.rstrip(), WIDTH, subsequent_indent=indent)
            if indent
            else [line.rstrip()]
        )
    while kept and not kept[0]:
        kept.pop(0)
    while kept and not kept[-1]:
        kept.pop()
    if lines is not None and len(kept) > lines:
        kept = [*kept[:lines], "…"]
    return "".join(f"{line}\n" for line in kept)


def run_command(words: list[str]) -> str:
    """Run a command in this process; return what it prints on a terminal of `WIDTH` columns."""
    out, messages = io.StringIO(), io.StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(messages),
        mock.patch.object(console, "_UNFOLDED", WIDTH),
    ):
        try:
            main(words[1:])
        except SystemExit as end:
            if end.code and end.code not in ANSWERS.get(words[1], ()):
                raise RuntimeError(f"{shlex.join(words)}: {messages.getvalue()}") from None
    return out.getvalue()


def run_python(code: str, names: dict[str, Any], page: str) -> str:
    """Run a block of Python; return what it prints."""
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(code, page, "exec"), names)
    return out.getvalue()


def run_page(
    text: str,
    page: str,
    before: Callable[[list[str]], bool],
) -> Iterator[tuple[Example, str]]:
    """Run the examples of a page here, in order; yield each with what it prints.

    `before` is called with each command, may prepare its files, and says whether it is run.
    """
    names: dict[str, Any] = {}
    for example in examples(text):
        if example.language == "python":
            yield example, run_python(example.code, names, page)
        else:
            printed = [run_command(words) for words in example.commands() if before(words)]
            yield example, "".join(printed)


def with_outputs(text: str, page: str, before: Callable[[list[str]], bool]) -> str:
    """Return a page with what its examples print now."""
    new, at = [], 0
    for example, output in run_page(text, page, before):
        if example.shown is not None:
            start, end = example.place
            new += [text[at:start], cut(output, example.lines)]
            at = end
    return "".join([*new, text[at:]])


if __name__ == "__main__":
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from shared import stage

    def prepare(words: list[str]) -> bool:
        """Write the files that a command reads; say whether it can be run."""
        stage.provide(words)
        return not stage.reason_not_to_run(words)

    pages = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    for path in [Path(name).resolve() for name in sys.argv[1:]] or pages:
        text = path.read_text()
        if any(example.shown is not None for example in examples(text)):
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                path.write_text(with_outputs(text, path.name, prepare))
