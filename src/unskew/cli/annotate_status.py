"""`unskew annotate status`: whether the labels of people are enough."""

from __future__ import annotations

from typing import Annotated

from unskew.cli import outputs
from unskew.cli.annotate_options import FilledFile, PlanFolder, Skipped, Smallest
from unskew.cli.bundles import option
from unskew.cli.options import MEASURE, Level, TextOptions


def command(
    folder: PlanFolder,
    file: FilledFile,
    skipped: Skipped,
    smallest: Smallest,
    width: Annotated[
        float | None,
        option(MEASURE, "Stop also when every interval is at most so wide."),
    ],
    level: Level,
    output: TextOptions,
) -> None:
    """Say what labels show so far, and whether to stop.

    Intervals hold the value of these lists after every number of labels at once: look as often as
    you like, and stop for whatever reason.

    [bold]Examples[/bold]

      unskew annotate status to-judge/

      unskew annotate status to-judge/ --smallest 0.02

      unskew annotate status to-judge/ --file filled.csv --width 0.05 --figure path.svg

    Stop when the interval of the difference does not hold 0, when it lies within ±--smallest, or
    when it is as narrow as --width. Else the number of labels still needed is printed: for a true
    difference of --smallest, not for the one that was observed.
    """
    from unskew.unbiased.annotations import read_annotation

    figures = outputs.figures_of(output.figure, ("path",))
    status = read_annotation(folder, file, skipped=skipped).status(
        smallest=smallest, width=width, level=level
    )
    outputs.draw(figures, lambda _: status.figure())
    outputs.deliver(outputs.Printout.of_text(status), output)
