"""Where errors end: every failure becomes one line with a remedy, and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from unskew.cli.console import drop
from unskew.cli.progress import finished_work
from unskew.engine.files import output_error, reason
from unskew.errors import SettingError, UnskewError, address_limit, without_credentials
from unskew.report.text import visible

DEBUG = "UNSKEW_DEBUG"
"""The environment variable that shows where an error came from."""

FAILED, REFUSED, STOPPED, NO_READER = 1, 2, 130, 141


@contextmanager
def boundary(
    values: Mapping[str, Any] | None = None, options: Collection[str] = (), failed: int = FAILED
) -> Iterator[None]:
    """Turn an error into one line on standard error and an exit code.

    Parameters
    ----------
    values
        What the command was given: says whether something of a stopped command is kept.
    options
        The names of its options: messages speak of these.
    failed
        The exit code of a failure.
    """
    try:
        yield
        sys.stdout.flush()  # a full disk behind standard output shows here, not after the end
    except (Exception, KeyboardInterrupt) as problem:
        unwritten = None
        if type(problem).__module__.startswith("typer"):  # its own ways to end
            unwritten = _unwritten()
            if unwritten is None:
                if hasattr(problem, "message"):
                    problem.message = without_credentials(str(problem.message))
                raise
        _leave(unwritten or problem, values or {}, options, failed)
    except BaseException as problem:
        if type(problem).__name__ != "PanicException":  # of a library written in Rust
            raise
        _leave(problem, values or {}, options, failed)


def _leave(
    problem: BaseException, values: Mapping[str, Any], options: Collection[str], failed: int
) -> None:
    line, code = explained(problem, values, options)
    code = failed if code == FAILED else code
    defect = line is None
    with suppress(OSError, ValueError):  # nobody may be reading standard error either
        if defect or os.environ.get(DEBUG, "") not in ("", "0"):
            lines = "".join(traceback.format_exception(problem))
            print(without_credentials(lines), end="", file=sys.stderr)
        if defect:
            line = "error: this is a defect of unskew; please report it with the lines above"
        if line:
            print("\n".join(map(visible, line.split("\n"))), file=sys.stderr, flush=True)
    for stream in (sys.stdout, sys.stderr):
        _settle(stream)
    raise SystemExit(code) from problem


def explained(
    problem: BaseException, values: Mapping[str, Any], options: Collection[str]
) -> tuple[str | None, int]:
    """Return the line for an error ('' for none, None for a defect of ours) and the exit code."""
    if isinstance(problem, KeyboardInterrupt):
        return str(problem) or _stopped(values), STOPPED
    if isinstance(problem, UnskewError):
        code = REFUSED if isinstance(problem, SettingError) else FAILED
        return f"error: {problem.on_command_line(options)}", code
    if isinstance(problem, BrokenPipeError):
        return "", NO_READER
    text = _text(problem)
    return (None if text is None else f"error: {without_credentials(text)}"), FAILED


_MESSAGES: Mapping[type[BaseException], str] = {
    OverflowError: "a number is too large ({}): use a smaller one",
    UnicodeDecodeError: "a file holds text that is not UTF-8 ({}): save it as UTF-8",
    UnicodeError: "text cannot be written ({}): set PYTHONIOENCODING=utf-8",
}


def _text(problem: BaseException) -> str | None:
    message = " ".join(str(problem).split())
    if isinstance(problem, MemoryError):
        detail = f" ({message})" if message else ""
        return (
            f"not enough memory{detail}: use less data, smaller amounts or a larger "
            f"machine{address_limit()}"
        )
    for class_, form in _MESSAGES.items():
        if isinstance(problem, class_):
            return form.format(message)
    kind, limit = type(problem), address_limit()
    if isinstance(problem, EOFError) or kind.__module__ in ("zlib", "gzip", "zipfile", "lzma"):
        return f"a compressed file is damaged or cut short ({message}): download or copy it again"
    if isinstance(problem, OSError):
        return _of_file(problem)
    if kind.__module__.startswith("polars") or kind.__name__ == "PanicException":
        return (
            f"a table cannot be read or written ({message}): check the file and its columns{limit}"
        )
    return f"{kind.__name__}: {message}{limit}" if limit else None


def _of_file(problem: OSError) -> str:
    """Return what happened to which file; standard output has no name."""
    if problem.filename is not None:
        return f"{os.fsdecode(problem.filename)}: {reason(problem)}"
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return str(output_error("standard output or a temporary file", problem))
    return reason(problem)


def _stopped(values: Mapping[str, Any]) -> str:
    """Say what a stopped command keeps, and how to go on."""
    go_on = "run the same command again to go on"
    store = values.get("store")
    if store is not None:
        finished = finished_work()
        if finished:
            return f"Stopped. {finished} are stored in {store}: {go_on}."
        if Path(store).exists():
            return f"Stopped. What is finished is stored in {store}: {go_on}."
        return f"Stopped before anything was stored in {store}: {go_on}."
    if values.get("on_disk") is not None:
        return f"Stopped. The parts that are finished are in {values['on_disk']}: {go_on}."
    if "store" in values:
        return "Stopped. Nothing is stored: add --store FOLDER to be able to go on."
    return "Stopped."


def _unwritten() -> OSError | None:
    """Write what standard output holds back; return why that cannot be done."""
    try:
        sys.stdout.flush()
    except OSError as problem:
        return problem
    return None


def _settle(stream: Any) -> None:
    """Flush a stream; send what cannot be flushed nowhere."""
    try:
        stream.flush()
    except (OSError, ValueError):
        drop(stream)
