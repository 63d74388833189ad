"""`unskew gate`: may the candidate replace production? The exit code is the answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.cli import files as formats
from unskew.cli import inputs, outputs
from unskew.cli.options import ComputeOptions, FileOptions, RelevanceOptions
from unskew.cli.parameters import (
    Option,
    Options,
    OptionsOf,
    argument,
    bundle,
    format_of,
    given_options,
)
from unskew.errors import SettingError

INIT = "init"
FILE = "gate.toml"
NO_STREAM = "the verdict is printed anyway; choose its format with --format"
RAIL = "--rail: write NAME=MARGIN, such as coverage=10%"
GATE = "gating.gate:gate"


@bundle
class GateFiles:
    """The two systems, and what judges them.

    Input
    -----
    candidate
        Ranked lists of the candidate: FILE or NAME=FILE[:item=sku].
    production
        Ranked lists of the system in production.
    """

    judgments: str | None = None
    candidate: str | None = None
    production: str | None = None
    train: str | None = None
    items: str | None = None
    lists: str | None = None
    files: FileOptions
    relevance: RelevanceOptions
    depth: int | None = None
    ties: str | None = None


@bundle
class ThresholdOptions:
    """What the candidate must show.

    Test
    ----
    rail
        Margin of a guard rail: NAME=MARGIN or NAME=off; names: anti, coverage, gini, popularity,
        light. Repeatable.
    """

    of_gate: Annotated[
        Options,
        OptionsOf(
            GATE,
            {"Test": "config margin alpha by group_users", "What is measured": "metric"},
            {"config": Path | None, "group_users": str | None},
        ),
    ]
    rail: list[str] | None = None


@bundle
class GateOutput:
    """Where the verdict goes.

    Output
    ------
    output
        Also write the result to this file; its ending selects the format: .html, .md, .json, .xml
        (.xml is JUnit). Repeatable.
    """

    output: Annotated[
        list[Path] | None, Option(formats.file_check(formats.GATES, no_stream=NO_STREAM), "FILE")
    ] = None
    format: Annotated[str, format_of(formats.GATE_FORMATS)] = "text"
    quiet: bool = False


def gate_command(
    *,
    init: Annotated[list[str] | None, argument("[init [FILE]]")] = None,
    files: GateFiles,
    thresholds: ThresholdOptions,
    running: Annotated[
        Options, OptionsOf(GATE, {"How it runs": "log references"}, {"log": Path | None})
    ],
    compute: ComputeOptions,
    output: GateOutput,
) -> None:
    """Decide whether a candidate may replace the ranker in production.

    [bold]Examples[/bold]

      unskew gate --judgments test.csv --candidate new.csv --production old.csv -m nDCG@10 --liked 4

      unskew gate -j test.csv --candidate new.csv --production old.csv --train train.csv --liked 4
      --margin 0.5% -o gate.md -o gate.xml

      unskew gate -j clicks.csv --candidate daily-new.csv --production daily-old.csv
      --lists user,date

      unskew gate init

      unskew gate -j test.csv --candidate new.csv --production old.csv --config gate.toml
      --log looks.jsonl

    [bold]Exit codes[/bold]

      0: promote. 1: hold. 3: not settled. 2: bad input, or any other failure.

    The candidate must be better (or not worse by more than --margin), and liked beyond what its
    users usually like where it is rated more; every guard rail must hold, that of users with few
    ratings too; no group of users may be harmed; the data must be sound.

    Arguments
    ---------
    init
        init [FILE]: write thresholds with comments to FILE (gate.toml), and stop.
    """
    if init:
        _write_template(init, given_options(files, thresholds))
        return
    from unskew.gating.gate import gate

    judged, names = _judge(files, compute.seed)
    result = gate(
        judged,
        candidate=names[0],
        production=names[1],
        rails=dict(inputs.assignments(thresholds.rail, RAIL)) or None,
        **vars(thresholds.of_gate),
        **vars(running),
        **vars(compute),
    )
    for path in output.output or []:
        result.save(path)
    _show(result, output)
    if result.exit_code:
        raise typer.Exit(result.exit_code)


def _judge(files: GateFiles, seed: int) -> tuple[Any, tuple[str, str]]:
    """Read both runs and what judges them."""
    from unskew.judging.judge import judge

    if files.judgments is None or files.candidate is None or files.production is None:
        raise SettingError("give --judgments, --candidate and --production")
    runs = [files.candidate, files.production]
    names = tuple(inputs.named_runs(runs))
    order: dict[str, Any] = {"ties": files.ties, "seed": seed}
    data = inputs.read_judged(
        files.judgments, runs, files.train, files.files, lists=files.lists, **order
    )
    items = inputs.read_item_file(files.items)
    rules = inputs.relevance_settings(files.relevance)
    judged = judge(**data, items=items, depth=files.depth, **order, **rules)
    return judged, (names[0], names[1])


def _show(result: Any, output: GateOutput) -> None:
    from unskew.report.text import as_json

    texts = {
        "text": result.brief,
        "json": lambda: as_json(result.to_dict(), indent=1),
        "markdown": result.to_markdown,
        "junit": result.to_junit,
    }
    outputs.say(texts[output.format]())
    for path in output.output or [] if not output.quiet else []:
        outputs.note(f"written to {path}")


def _write_template(words: list[str], others: list[str]) -> None:
    """Write the thresholds with comments; a file that is there stays as it is."""
    from unskew.engine.files import replacing
    from unskew.gating.settings import TEMPLATE

    if words[0] != INIT or len(words) > 2:
        raise SettingError(
            f"gate takes no argument but init [FILE], got {' '.join(words)!r}; lists are given "
            "with --candidate and --production"
        )
    if others:
        raise SettingError(f"gate init takes a file only: leave out {', '.join(others)}")
    path = Path(words[1] if len(words) > 1 else FILE)
    if path.suffix.lower() != ".toml":
        raise SettingError(f"gate init {path}: name a file that ends in .toml")
    if path.exists():
        raise SettingError(f"gate init {path}: this file is there already, and stays as it is")
    with replacing(path) as part:
        part.write_text(TEMPLATE, encoding="utf-8")
    outputs.note(f"written to {path}")
