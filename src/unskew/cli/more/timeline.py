"""`unskew timeline`: how systems do over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.options import ExecutorOptions, NamedFileOptions, RatingsArgument, ReportOptions
from unskew.cli.parameters import Options, OptionsOf, bundle
from unskew.cli.progress import tasks_progress

if TYPE_CHECKING:
    from unskew.splits.time.windows import Windows


@bundle
class WindowOptions:
    """Which windows are judged, and what trains for each.

    Windows
    -------
    windows
        How many windows. Default: 5 of equal numbers of ratings; with --length, as many as there is
        room for.
    test
        Share of the ratings that windows cover, the last ones. Default: 0.5.
    """

    windows: int | None = None
    lengths: Annotated[
        Options,
        OptionsOf("splits.time.windows:Windows", {"Windows": "length step gap train_length"}),
    ]
    test: float | None = None


def timeline_command(
    *,
    ratings: RatingsArgument,
    files: NamedFileOptions,
    event_log: bool = False,
    algorithm: list[str] | None = None,
    metric: list[str] | None = None,
    liked: float | None = None,
    windows: WindowOptions,
    ages: str | None = None,
    level: float = 0.95,
    resamples: int = 1_000,
    seed: int = 0,
    executor: ExecutorOptions,
    output: ReportOptions,
) -> None:
    """Show how systems do over time: windows, changes of their order, age of models.

    Every system is trained again for every window, on what came before it.

    [bold]Examples[/bold]

      unskew timeline ratings.csv --liked 4 -a popularity -a recent-popularity -a item-knn

      unskew timeline log.csv --event-log --windows 6 --length 30d --ages 0d,30d,60d

      unskew timeline ml-100k --windows 5 -m nDCG@10 -m RR -o timeline.html

    [bold]What is said[/bold]

      varies: the difference between two systems is not the same in all windows

      order changes: each of two systems is ahead in some window, by intervals that hold for all
      pairs and windows at once

      loses with age: models whose training ends earlier, judged on one window by the same users

    Without -o the result is printed; a file that ends in .html has the curves too.

    Age of models
    -------------
    ages
        Also judge models of these ages on the last window: how long before it their training ends,
        such as 0d,7d,30d.
    """
    from unskew.experiment.over_time import METRIC, SYSTEMS, timeline

    read = inputs.read_log if event_log else inputs.read_rating_file
    data = read(ratings, files)
    arguments: dict[str, Any] = executor.arguments()
    with tasks_progress(output.quiet, 1) as move:
        result = timeline(
            data,
            inputs.systems(algorithm) or list(SYSTEMS),
            inputs.metric_names(metric) or METRIC,
            windows=_windows(windows),
            ages=inputs.between_commas(ages),
            liked=liked,
            level=level,
            resamples=resamples,
            seed=seed,
            progress=move,
            **arguments,
        )
    if output.output is None and output.format is None:
        show(result, output.quiet)
        return
    page = result.document("Systems over time")
    outputs.write_report(page, output, "timeline", lambda: show(result, output.quiet))


def show(result: Any, quiet: bool) -> None:
    """Print the result; quietly, what follows from it alone."""
    outputs.say("\n".join(result.conclusion) if quiet else str(result))


def _windows(options: WindowOptions) -> Windows | None:
    """Return the windows asked for; None: the usual ones."""
    from unskew.experiment.over_time import SHARE
    from unskew.splits.time.windows import Windows as Split

    lengths = vars(options.lengths)
    given = inputs.given(number=options.windows, test=options.test, **lengths)
    if options.test is None and options.lengths.length is None:
        given["test"] = SHARE
    return Split(**given)
