"""`unskew warmup`: compile kernels now, so that no later command has to."""

from __future__ import annotations

import os
from time import perf_counter
from typing import Annotated

from unskew.cli import outputs
from unskew.cli.bundles import option
from unskew.cli.options import RUNNING, PlainFormat, Quiet
from unskew.report.text import counted


def command(
    *,
    everything: Annotated[
        bool,
        option(
            RUNNING,
            "Also what audits train, rank and test: a minute more.",
            "--all",
            default=False,
        ),
    ],
    format: PlainFormat,  # noqa: A002 - the option's name
    quiet: Quiet,
) -> None:
    """Compile now what the first commands would compile: half a minute, once per installation.

    The loops that count and rank are compiled when they are first needed and kept on disk. After
    this, evaluate and compare find them there; with --all, audit and its systems too. It is for
    images of containers, shared installations and machines whose users must not wait.

    [bold]Examples[/bold]

      unskew warmup

      NUMBA_CACHE_DIR=/opt/kernels unskew warmup --all
    """
    from unskew.auditing.compile_ahead import compile_all, compile_evaluation
    from unskew.engine.compiled import compiled_kernels

    begin = perf_counter()
    compile_evaluation()
    if everything:
        compile_all()
    spent = perf_counter() - begin
    kept = compiled_kernels()
    lost = kept.pop("", set())
    number = sum(map(len, kept.values()))
    folder = os.path.commonpath(kept) if kept else None
    if format == "json":
        outputs.print_json(
            {"kernels": number, "folder": folder, "kept_nowhere": len(lost), "seconds": spent}
        )
        return
    if quiet:
        return
    if kept:
        outputs.say(f"{counted(number, 'kernel')} ready in {spent:.0f} s, kept under {folder}")
    if lost:
        outputs.say(f"{counted(len(lost), 'kernel')} kept nowhere: each process compiles again")
