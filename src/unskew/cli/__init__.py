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
from unskew.cli.boundary import boundary
from unskew.cli.command import PANELS, App
from unskew.cli.console import safe_streams
from unskew.errors import DataWarning
from unskew.report.text import visible

app = App(
    name="unskew",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bias-aware offline evaluation of recommender systems.",
    epilog="UNSKEW_DEBUG=1 shows where an error came from; UNSKEW_DATA is the folder of data sets.",
)
bias.bias_app.command("null")(bias_audit.null)
bias.bias_app.command("truth")(bias_audit.truth)
_START, _DATA, _RECOMMEND, _JUDGE, _CONCLUDE, _EXPERIMENT = PANELS
for _panel, _commands in {
    _START: (demo.demo, audit.audit, evaluate.evaluate),
    _DATA: (split.split, intervene.intervene, world.world),
    _RECOMMEND: (recommend.recommend, algorithms.algorithms),
    _JUDGE: (estimate.estimate, metrics.metrics),
    _CONCLUDE: (compare.compare, strata.strata, power.power, robustness.robustness),
    _EXPERIMENT: (run.run,),
}.items():
    for _command in _commands:
        app.command(_command.__name__, rich_help_panel=_panel)(_command)
app.add_typer(data.data_app, name="data", rich_help_panel=_DATA)
app.add_typer(bias.bias_app, name="bias", rich_help_panel=_JUDGE)
app.add_typer(study.study_app, name="study", rich_help_panel=_CONCLUDE)
app.add_typer(run.plan_app, name="plan", rich_help_panel=_EXPERIMENT)
app.add_typer(run.store_app, name="store", rich_help_panel=_EXPERIMENT)


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
        print(f"warning: {visible(str(message))}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 data that cannot be used or any other failure, 2 a command or setting
    that is not right, 130 stopped, 141 nobody reads the output any more.
    """
    safe_streams()
    warnings.showwarning = _show
    warnings.simplefilter("always", DataWarning)
    with boundary():
        try:
            app(arguments, standalone_mode=True)
        finally:
            sys.stdout.flush()
