"""`unskew bias pairs`: on which pairs of items precision and anti-precision disagree."""

from __future__ import annotations

from typing import Annotated

from unskew.checks import MOST_DEPTH
from unskew.cli import inputs, outputs
from unskew.cli.bias_options import BiasOptions
from unskew.cli.bundles import option
from unskew.cli.options import INPUT, MEASURE, TextOptions
from unskew.errors import SettingError


def command(
    options: BiasOptions,
    run: Annotated[
        list[str] | None,
        option(
            INPUT, "Give it twice to use only the items that two systems recommend.", "--run", "-r"
        ),
    ],
    k: Annotated[
        int | None,
        option(
            MEASURE,
            "With --run: number of items of each list to use. Default: 10.",
            "-k",
            min=1,
            max=MOST_DEPTH,
        ),
    ],
    output: TextOptions,
) -> None:
    """Count on which pairs of items precision and anti-precision disagree, and why.

    Without --liked, a rating of 4 is liked on a scale of 1 to 5.

    [bold]Examples[/bold]

      unskew bias pairs ratings.csv --liked 4

      unskew bias pairs train.csv --liked 4 --run mine.csv --run theirs.trec -k 10

      unskew bias pairs ratings.csv --liked 4 --format json
    """
    from unskew.bias.pairs import item_pairs, pairs_of_systems

    figures = outputs.figures_of(output.figure, ("cases",))
    if run and len(run) != 2:
        raise SettingError(f"give --run twice, for two systems; got {len(run)}")
    if k is not None and not run:
        raise SettingError("-k needs --run: give the lists of two systems")
    data, settings = options.read()
    if run:
        a, b = (inputs.read_run_file(path, options.files.columns) for path in run)
        result = pairs_of_systems(data, a, b, 10 if k is None else k, **settings)
    else:
        result = item_pairs(data, **settings)
    outputs.draw(figures, lambda _: result.figure())
    outputs.deliver(outputs.Printout.of_text(result), output)
