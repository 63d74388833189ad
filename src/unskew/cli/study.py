"""`unskew study`: the papers, run again, with a verdict on each of their claims."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unskew.checks import MOST_DRAWS, as_count, choose
from unskew.cli import inputs, outputs
from unskew.cli.audit import between_commas
from unskew.cli.command import App
from unskew.cli.console import messages, output, progress_of
from unskew.cli.options import (
    INPUT,
    MEASURE,
    OUTPUT,
    Columns,
    DataDir,
    Duplicates,
    FiguresDir,
    Format,
    Liked,
    Quiet,
    ReportFile,
    ReportFormat,
    Seed,
    StoreDir,
    TableFile,
    Workers,
    option,
    split_source,
)
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset
    from unskew.studies.result import StudyResult

study_app = App(help="Run a paper again, claim by claim.")

RUN = """
Run a paper's experiments again, and say of each of its claims whether it holds.

Takes the paper's own data where the data folder has them, else a small built-in world. Writes one
HTML page: verdicts, figures beside what was published, the ledger, the card.

[bold]Examples[/bold]

  unskew study run mena2021

  unskew study run valcarce2018 --data-dir data/ --workers 2 --store studies/ --csv numbers/

  unskew study run bellogin2017 --claims 0-01,0-02,0-09

  unskew study run castells2018 --data my.parquet --liked 4 --quick

  unskew study run carraro2020 --data chosen.csv --random random.csv

With --data, the claims become questions about your data.
"""
LIST = """
Show which studies there are and what they can check with the data at hand, or a study's claims.

[bold]Examples[/bold]

  unskew study list

  unskew study list mena2021 --data-dir data/
"""


def run(  # noqa: D103 - its help is RUN
    name: Annotated[str, typer.Argument(metavar="NAME", help="The paper: see unskew study list.")],
    data: Annotated[
        str | None, option(INPUT, "Your own ratings: a file, or the name of a data set.")
    ] = None,
    random: Annotated[
        Path | None, option(INPUT, "With --data: ratings of randomly chosen items.")
    ] = None,
    data_dir: DataDir = None,
    stand_in: Annotated[
        bool, option(INPUT, "Take the small built-in world.", "--stand-in")
    ] = False,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    quick: Annotated[
        bool | None, option(MEASURE, "Fewer repetitions, or as the paper.", "--quick/--full")
    ] = None,
    amount: Annotated[
        list[str] | None,
        option(MEASURE, "NAME=NUMBER, such as permutations=1000. Repeatable."),
    ] = None,
    claims: Annotated[str | None, option(MEASURE, "Only these claims, between commas.")] = None,
    liked: Liked = None,
    seed: Seed = 0,
    store: StoreDir = None,
    workers: Workers = 1,
    to: ReportFile = None,
    csv: Annotated[
        Path | None, option(OUTPUT, "Also write all numbers here, as CSV.", metavar="DIR")
    ] = None,
    figures: FiguresDir = None,
    format: ReportFormat = None,  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.studies.run import study

    kind = outputs.report_kind(to, format)
    given = None if data is None else _given(data, data_dir, columns, duplicates)
    other = None
    if random is not None:
        other = inputs.read_random_file(random, columns, duplicates, data_dir=data_dir)
    with progress_of(quiet) as moved:
        found = study(
            name,
            given,
            random=other,
            data_dir=data_dir,
            stand_in=stand_in,
            quick=quick,
            amounts=_amounts(amount),
            claims=between_commas(claims),
            liked=liked,
            seed=seed,
            store=store,
            workers=workers,
            progress=moved,
        )
    shown(found, quiet)
    outputs.write_report(found, to, kind, figures, name, quiet)
    if csv is not None:
        found.to_csv(csv)
        if not quiet:
            messages().print(f"all numbers are in {csv}", markup=False)


run.__doc__ = RUN


def list_(  # noqa: D103 - its help is LIST
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show the claims of this study.")
    ] = None,
    data_dir: DataDir = None,
    to: TableFile = None,
    format: Format = "table",  # noqa: A002 - the word users expect
    quiet: Quiet = False,
) -> None:
    from unskew.studies.run import find_study, list_claims, overview

    choose("format", format, outputs.FORMATS)
    frame = overview(data_dir) if name is None else list_claims(name, data_dir)
    lines = [
        f"--amount {one}={amount.paper} ({amount.quick} if quick): {amount.description}"
        for one, amount in (find_study(name).amounts if name is not None else {}).items()
    ]
    outputs.deliver(outputs.Printout.of(frame, footer=lines), to, format, quiet)


list_.__doc__ = LIST
study_app.command("run")(run)
study_app.command("list")(list_)


def _given(data: str, data_dir: Path | None, columns: str | None, duplicates: str) -> str | Dataset:
    """Load a file; the name of a data set stays one, as studies load those in their own way."""
    from unskew.data.catalog import read_name

    meant = read_name(data)
    if meant is not None:
        if columns is not None or duplicates != "error":
            raise SettingError("--columns and --duplicates are for files, not named data sets")
        entry, options = meant
        return inputs.loaded(data, data_dir, None, "error") if options else entry.name
    if data_dir is not None and not Path(split_source(data)[0]).is_file():
        raise SettingError(f"--data {data}: no such file, and no data set of that name")
    loaded: Dataset = inputs.loaded(data, None, columns, duplicates)
    return loaded


def _amounts(given: list[str] | None) -> dict[str, int]:
    result = {}
    for text in given or []:
        name, _, value = (piece.strip() for piece in text.partition("="))
        try:
            number = int(value)
        except ValueError:
            raise SettingError(
                f"--amount {text!r}: write NAME=NUMBER, such as permutations=1000"
            ) from None
        result[name] = as_count(f"--amount {name}", number, 0, MOST_DRAWS)
    return result


def _reasons(found: StudyResult) -> dict[tuple[str, str], str]:
    """Return why claims have no verdict, with the claims."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in found.ledger.iter_rows(named=True):
        if row["verdict"] in ("failed", "data not there", "not checkable"):
            reasons.setdefault((row["verdict"], row["note"]), []).append(row["claim"])
    return {why: " ".join(claims) for why, claims in reasons.items()}


def shown(found: StudyResult, quiet: bool) -> None:
    """Print the verdicts, and below them in full what does not hold."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    styles = {
        "holds": "green",
        "differs": "yellow",
        "not settled": "yellow",
        "contradicts": "red",
        "failed": "red",
    }
    screen = output()
    if not quiet:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in found.display_table().columns:
            table.add_column(column, overflow="fold")
        for row in found.display_table().iter_rows():
            table.add_row(*map(Text, row[:-1]), Text(row[-1], style=styles.get(row[-1], "dim")))
        screen.print(table)
        for claim in found.ledger.iter_rows(named=True):
            if claim["verdict"] in ("differs", "not settled", "contradicts"):
                text = f"{claim['claim']} {claim['verdict']}: {claim['says']} {claim['note']}"
                screen.print(Text(text.strip(), style=styles[claim["verdict"]]))
        for (verdict, why), claims in _reasons(found).items():
            messages().print(f"{verdict}: {why}: {claims}", style="dim", markup=False)
        for place, why in found.left_out.items():
            messages().print(f"not drawn: {place}: {why}", style="dim", markup=False)
    screen.print(found.summary(), markup=False)
    for remark in found.remarks():
        messages().print(remark, style="dim", markup=False)
    if found.is_other_data and not quiet:
        messages().print(
            "not the paper's own data: its claims are questions about these", style="dim"
        )
