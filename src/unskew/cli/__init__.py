"""The command line: one short file per command; parse, call one function, print."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from unskew.cli import (
    algorithms,
    audit,
    bias,
    bias_audit,
    compare,
    data,
    demo,
    estimate,
    evaluate,
    intervene,
    metrics,
    power,
    recommend,
    robustness,
    run,
    split,
    strata,
    study,
    world,
)
from unskew.errors import DataWarning, SettingError, UnskewError

app = typer.Typer(
    name="unskew",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bias-aware offline evaluation of recommender systems.",
)
app.command("evaluate", rich_help_panel="Judge")(evaluate.evaluate)
app.command("estimate", rich_help_panel="Judge")(estimate.estimate)
app.command("metrics", rich_help_panel="Judge")(metrics.metrics)
app.command("compare", rich_help_panel="Conclude")(compare.compare)
app.command("strata", rich_help_panel="Conclude")(strata.strata)
app.command("power", rich_help_panel="Conclude")(power.power)
app.command("robustness", rich_help_panel="Conclude")(robustness.robustness)
bias.bias_app.command("null")(bias_audit.null)
bias.bias_app.command("truth")(bias_audit.truth)
app.add_typer(bias.bias_app, name="bias", rich_help_panel="Judge")
app.command("split", rich_help_panel="Design")(split.split)
app.command("intervene", rich_help_panel="Design")(intervene.intervene)
app.command("world", rich_help_panel="Design")(world.world)
app.command("recommend", rich_help_panel="Recommend")(recommend.recommend)
app.command("algorithms", rich_help_panel="Recommend")(algorithms.algorithms)
app.command("run", rich_help_panel="Experiment")(run.run)
app.add_typer(run.plan_app, name="plan", rich_help_panel="Experiment")
app.add_typer(run.store_app, name="store", rich_help_panel="Experiment")
app.add_typer(study.study_app, name="study", rich_help_panel="Conclude")
app.command("demo", rich_help_panel="Start here")(demo.demo)
app.command("audit", rich_help_panel="Start here")(audit.audit)
app.add_typer(data.data_app, name="data", rich_help_panel="Start here")


def _version(wanted: bool) -> None:
    if wanted:
        from unskew import __version__

        typer.echo(f"unskew {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Bias-aware offline evaluation of recommender systems."""
    del version


def _show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, DataWarning):
        print(f"warning: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 data that cannot be used, 2 a command or setting that is not right.
    """
    warnings.showwarning = _show
    warnings.simplefilter("always", DataWarning)
    try:
        app(arguments, standalone_mode=True)
    except UnskewError as problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2 if isinstance(problem, SettingError) else 1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
