"""`unskew annotate extend`: further pairs, drawn behind those that were planned."""

from __future__ import annotations

from typing import Annotated

from unskew.cli import outputs
from unskew.cli.annotate_options import DESIGN, Budget, FilledFile, PlanFolder, TitlesFile
from unskew.cli.bundles import option
from unskew.cli.options import FolderOptions
from unskew.splits.saved import check_folder


def command(
    folder: PlanFolder,
    file: FilledFile,
    titles: TitlesFile,
    budget: Budget,
    design: Annotated[
        str,
        option(
            DESIGN,
            "How further pairs are drawn: uniform, stratified, neyman (where the labels so far "
            "vary most).",
            default="stratified",
        ),
    ],
    output: FolderOptions,
) -> None:
    """Plan further pairs; those that have a label keep it.

    [bold]Examples[/bold]

      unskew annotate extend to-judge/ --budget 100 -o more/

      unskew annotate extend to-judge/ --file filled.csv --budget 100 --design neyman -o more/

    The new folder knows all labels so far; its to-judge.csv asks for the pairs that have none.
    Intervals of unskew annotate status stay valid, whatever the labels were.
    """
    from unskew.unbiased.annotations import read_annotation

    check_folder(output.output, output.force)
    plan = read_annotation(folder, file).extend(budget, design)
    plan.save(output.output, titles=titles, force=output.force)
    if not output.quiet:
        outputs.say(str(plan))
        outputs.say(f"written to {output.output}: fill in to-judge.csv from the top down", dim=True)
