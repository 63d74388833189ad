"""`unskew annotate read`: the labels of people as a random sample with known probabilities."""

from __future__ import annotations

from unskew.cli import outputs
from unskew.cli.annotate_options import FilledFile, PlanFolder, Skipped
from unskew.cli.options import PrintOptions


def command(
    folder: PlanFolder,
    file: FilledFile,
    skipped: Skipped,
    output: PrintOptions,
) -> None:
    """Turn labels into the sample that unskew estimate --human takes.

    [bold]Examples[/bold]

      unskew annotate read to-judge/ -o human.csv

      unskew annotate read to-judge/ --file filled.csv --skipped refuse -o human.parquet

    The table has user, item, label, probability (that the pair was drawn) and, where the design has
    strata, stratum.
    """
    from unskew.unbiased.annotations import read_annotation

    result = read_annotation(folder, file, skipped=skipped)
    outputs.deliver(outputs.Printout.of_result(result), output)
