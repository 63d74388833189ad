"""`unskew study run`: a paper, run again, with a verdict on each of its claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.checks import MOST_DRAWS, as_count
from unskew.cli import inputs, outputs
from unskew.cli.console import messages
from unskew.cli.console import output as screen_of_results
from unskew.cli.files import split_source
from unskew.cli.options import NamedFileOptions, ReportOptions, StoredOptions
from unskew.cli.parameters import Option, argument, bundle
from unskew.cli.progress import named_progress
from unskew.errors import SettingError, is_address

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset
    from unskew_studies.result import StudyResult

# What does not hold stands out.
STYLES = {
    "holds": "",
    "differs": "yellow",
    "not settled": "yellow",
    "contradicts": "red",
    "failed": "red",
}


@bundle
class StudyOptions:
    """Which data a study takes, and what it checks.

    Input
    -----
    stand_in
        Use the small built-in world instead of data sets.

    What is measured
    ----------------
    quick
        Use fewer repetitions than the paper, or the same number.
    amount
        Number of repetitions of a step: NAME=NUMBER, such as permutations=1000. Repeatable.
    claims
        Check only these claims, separated by commas.
    evidence
        Use only these kinds of evidence, separated by commas: measured, released, printed, algebra.
    """

    data: str | None = None
    random: str | None = None
    stand_in: bool = False
    files: NamedFileOptions
    quick: Annotated[bool | None, Option(names=("--quick/--full",))] = None
    amount: list[str] | None = None
    claims: str | None = None
    evidence: str | None = None
    liked: float | None = None


def command(
    *,
    name: Annotated[str, argument("NAME")],
    options: StudyOptions,
    stored: StoredOptions,
    csv: Path | None = None,
    output: ReportOptions,
) -> None:
    """Run a paper's experiments again, and report for each claim whether it holds.

    The command uses the paper's own data if the data folder has them, otherwise a small built-in
    world. It writes one HTML page: verdicts, figures next to the published ones, every claim in
    full, and the settings.

    [bold]Examples[/bold]

      unskew study run mena2021

      unskew study run valcarce2018 --data-dir data/ --workers 2 --store studies/ --csv numbers/

      unskew study run bellogin2017 --claims 0-01,0-02,0-09

      unskew study run castells2018 --data my.parquet --liked 4 --quick

      unskew study run carraro2020 --data chosen.csv --random random.csv

    With --data, the claims become questions about your data.

    Arguments
    ---------
    name
        Name of the study; `unskew study list` lists them.

    Output
    ------
    csv
        Also write all numbers to this folder, as CSV.
    """
    from unskew_studies.run import study

    outputs.report_kind(output)
    data = None if options.data is None else read_data(str(options.data), options.files)
    sample = inputs.read_random_file(options.random, options.files)
    with named_progress("claims and exhibits", output.quiet) as move:
        result = study(
            name,
            data,
            random=sample,
            data_dir=options.files.data_dir,
            stand_in=options.stand_in,
            quick=options.quick,
            amounts=_amounts(options.amount),
            claims=inputs.between_commas(options.claims),
            evidence=inputs.between_commas(options.evidence),
            liked=options.liked,
            progress=move,
            seed=stored.seed,
            store=stored.store,
            **stored.executor.arguments(),
        )
    outputs.write_report(result, output, name, lambda: show(result, output.quiet))
    if csv is not None:
        result.to_csv(csv)
        if not output.quiet:
            messages().print(f"all numbers are in {csv}", markup=False)


def read_data(source: str, files: NamedFileOptions) -> str | Dataset:
    """Load a file; the name of a data set stays one, as studies load those in their own way."""
    from unskew.data.formats.catalog import read_name

    named = read_name(source)
    if named is not None:
        stated = files.columns is not None or files.feedback is not None
        if stated or files.duplicates is not None:
            raise SettingError(
                "--columns, --duplicates and --feedback are for files, not named data sets"
            )
        entry, options = named
        return inputs.load_data(source, files) if options else entry.name
    path = split_source(source)[0]
    if files.data_dir is not None and not (is_address(path) or Path(path).is_file()):
        raise SettingError(f"--data {source}: no such file, and no data set of that name")
    return inputs.load_data(source, replace(files, data_dir=None))


def _amounts(texts: list[str] | None) -> dict[str, int]:
    amounts = {}
    for text in texts or []:
        name, _, value = (piece.strip() for piece in text.partition("="))
        try:
            number = int(value)
        except ValueError:
            raise SettingError(
                f"--amount {text!r}: write NAME=NUMBER, such as permutations=1000"
            ) from None
        amounts[name] = as_count(f"--amount {name}", number, 0, MOST_DRAWS)
    return amounts


def show(result: StudyResult, quiet: bool) -> None:
    """Print the verdicts, and below them in full what does not hold."""
    if not quiet:
        _show_verdicts(result)
    screen_of_results().print(result.summary(), markup=False)
    for remark in result.remarks():
        outputs.note(remark)
    if result.is_other_data and not quiet:
        outputs.note("not the paper's own data: its claims are asked as questions about these data")


def _show_verdicts(result: StudyResult) -> None:
    """Print a row per claim, and in full the claims that do not hold."""
    from rich.text import Text

    from unskew.report.tables import Table

    screen = screen_of_results()
    shown = result.display_table()
    table = Table("", shown).to_rich()
    for row, verdict in zip(table.rows, shown["verdict"], strict=True):
        row.style = STYLES.get(verdict, "dim")
    screen.print(table)
    for claim in result.ledger.iter_rows(named=True):
        if claim["verdict"] in ("differs", "not settled", "contradicts"):
            text = f"{claim['claim']} {claim['verdict']}: {claim['statement']} {claim['note']}"
            screen.print(Text(text.strip(), style=STYLES[claim["verdict"]]))
    for (verdict, reason), claims in _reasons(result).items():
        outputs.note(f"{verdict}: {reason}: {claims}")
    for place, reason in result.left_out.items():
        outputs.note(f"not drawn: {place}: {reason}")


def _reasons(result: StudyResult) -> dict[tuple[str, str], str]:
    """Return why claims have no verdict, with the claims."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in result.ledger.iter_rows(named=True):
        if row["verdict"] in ("failed", "data not there", "not checkable"):
            reasons.setdefault((row["verdict"], row["note"]), []).append(row["claim"])
    return {reason: " ".join(claims) for reason, claims in reasons.items()}
