"""`unskew bias describe`: how popularity, ratings and relevance go together."""

from __future__ import annotations

from unskew.cli import outputs
from unskew.cli.bias_options import BiasOptions
from unskew.cli.options import FiguresDir, TextOptions


def command(options: BiasOptions, output: TextOptions, figures: FiguresDir) -> None:
    """Describe how popularity, ratings and relevance go together, and which metrics to trust.

    Without --liked, a rating of 4 is liked on a scale of 1 to 5.

    [bold]Examples[/bold]

      unskew bias describe ratings.csv --liked 4

      unskew bias describe train.csv --random random.csv --liked 4 --figures figures/

      unskew bias describe cm100k:observed=familiar -o bias.md

    [bold]Figures[/bold]

      popularity (the default), positive-ratio, optimal, cases, dependence
    """
    from unskew.bias.describe import FIGURES, describe_bias
    from unskew.report.writing import save_each

    wanted = outputs.figures_of(output.figure, FIGURES)
    data, settings = options.read()
    for line in () if output.quiet else data.notes:
        outputs.note(line)
    result = describe_bias(data, **settings)
    outputs.draw(wanted, result.figure)
    if figures is not None:
        save_each({name: result.figure(name) for name in result.figures()}, figures)
    outputs.deliver(outputs.Printout.of_text(result), output)
