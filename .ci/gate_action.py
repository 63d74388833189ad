"""What action.yml runs: `unskew gate`, decided by the verdict that it wrote in this run.

An exit code alone decides nothing: `unskew gate --help` ends with 0 too. The verdict is read from
JSON of a known schema in a folder that is made for this run; without one the answer is an error.
Inputs come as environment variables of their names.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

SCHEMA = "urn:unskew:gate:2"
"""The JSON that is understood here: `unskew schema gate`."""
CODES = {"promote": 0, "hold": 1, "not settled": 3}
ERROR = 2
NEEDED = ("judgments", "candidate", "production")
INPUTS = (*NEEDED, "metric", "config", "liked", "margin", "train", "items", "log")
"""Inputs of the action that are options of the gate."""
TAKE_VALUE = frozenset(
    f"--{name}"
    for name in (
        *("columns", "duplicates", "feedback", "events", "weights", "lists"),
        *("above", "gain", "loss", "relevance"),
        *("depth", "ties", "alpha", "rail", "group-users", "seed", "threads"),
    )
)
FLAGS = frozenset(("--references", "--no-references", "--quiet", "-q"))
"""With those that take a value: all that `options` may hold."""
REFUSED = {
    **{f"--{name}": f"give the input {name}" for name in (*INPUTS, "by")},
    "-j": "give the input judgments",
    "-m": "give the input metric",
    "--output": "reports go to the input folder",
    "-o": "reports go to the input folder",
    "--format": "reports are written in all formats",
}
"""Options of the gate that have another way in, or would change where the verdict goes."""
ENDINGS = ("html", "md", "svg", "json", "xml")


class UndecidedError(Exception):
    """No verdict: what is wrong."""


def arguments(values: Mapping[str, str]) -> list[str]:
    """Return the words for `unskew gate`; each input is one word, whatever it holds."""
    words = []
    for name in INPUTS:
        value = values.get(name.upper(), "").strip()
        if value:
            words.append(f"--{name}={_printable(name, value)}")
        elif name in NEEDED:
            raise UndecidedError(f"the input {name} is empty")
    for line in values.get("BY", "").split("\n"):
        if line.strip():
            words.append(f"--by={_printable('by', line.strip())}")
    return [*words, *further(values.get("OPTIONS", ""))]


def _printable(name: str, value: str) -> str:
    if not value.isprintable():
        raise UndecidedError(f"the input {name} must be one line of text, got {value!r}")
    return value


def further(text: str) -> list[str]:
    """Return the words of `options`, each with its value; refuse all but options that decide."""
    try:
        words = iter(shlex.split(text))
    except ValueError as problem:
        raise UndecidedError(f"options: {problem}") from None
    checked = []
    for word in words:
        name, equals, value = word.partition("=")
        if word in FLAGS:
            checked.append(word)
        elif name in TAKE_VALUE:
            value = value if equals else next(words, "")
            if not value:
                raise UndecidedError(f"options: {name} needs a value")
            checked.append(f"{name}={_printable('options', value)}")
        else:
            allowed = ", ".join(sorted(TAKE_VALUE | FLAGS))
            remedy = REFUSED.get(name, f"allowed are {allowed}")
            raise UndecidedError(f"options: {word!r} is not allowed here; {remedy}")
    return checked


def verdict_in(path: Path, code: int) -> str:
    """Return the verdict of a file, where file and exit code agree."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as problem:
        kind = type(problem).__name__
        raise UndecidedError(f"exit code {code} without a verdict in JSON ({kind})") from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise UndecidedError(f"the verdict has the schema {schema!r}, not {SCHEMA!r}")
    verdict, stated = content.get("verdict"), content.get("exit_code")
    if not isinstance(verdict, str) or verdict not in CODES:
        raise UndecidedError(f"the verdict is {verdict!r}, none of {', '.join(CODES)}")
    if (type(stated), stated, code) != (int, CODES[verdict], CODES[verdict]):
        raise UndecidedError(f"the verdict is {verdict}, with exit code {stated!r} and {code}")
    return verdict


def decide(values: Mapping[str, str]) -> str:
    """Run the gate in a new folder, keep its reports, and return the verdict."""
    folder = Path(values.get("FOLDER") or "unskew-gate")
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ENDINGS:  # of an earlier step
        (folder / f"gate.{ending}").unlink(missing_ok=True)
    words = arguments(values)
    with tempfile.TemporaryDirectory() as new:
        words += [
            f"--output={Path(new, f'gate.{ending}')}" for ending in ("html", "md", "json", "xml")
        ]
        # -P: no module of the working folder takes the place of unskew or of a library.
        command = [sys.executable, "-P", "-m", "unskew", "gate", *words]
        # A variable that lets any command print completions for a shell, and end with 0.
        rest = {name: one for name, one in values.items() if name != "_UNSKEW_COMPLETE"}
        done = subprocess.run(command, env=rest, stdin=subprocess.DEVNULL, check=False)
        verdict = verdict_in(Path(new, "gate.json"), done.returncode)
        for path in Path(new).iterdir():
            shutil.copyfile(path, folder / path.name)
    return verdict


def summary(values: Mapping[str, str]) -> str:
    """Return the verdict and its table; a summary shows no files of the job, so no chart."""
    text = Path(values.get("FOLDER") or "unskew-gate", "gate.md").read_text(encoding="utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("!["))


def main(values: Mapping[str, str]) -> None:
    """Write verdict and exit code for the next steps; this one fails only by accident."""
    try:
        verdict = decide(values)
        code, text = CODES[verdict], summary(values)
    except UndecidedError as problem:
        verdict, code = "", ERROR
        text = f"unskew gate could not decide: {problem}\n"
        print(f"::error::{problem}", file=sys.stderr)
    with Path(values["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"verdict={verdict}\nexit-code={code}\n")
    with Path(values["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main(os.environ)
