"""The command line: one short file per command; parse, call one function, print."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from unskew.cli.boundary import boundary
from unskew.cli.command import Group, failure_code
from unskew.cli.console import in_option_words, safe_streams
from unskew.engine.system import spare_addresses
from unskew.errors import DataWarning
from unskew.report.text import visible

app = typer.Typer(
    name="unskew",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bias-aware offline evaluation of recommender systems.",
    epilog="unskew --help-all lists all commands, by what they are for. unskew COMMAND --help "
    "shows the usual options of a command, --help-all all of them.\n\n"
    "UNSKEW_DEBUG=1 shows where an error came from; UNSKEW_DATA is the folder of data sets.",
)


def _version(is_wanted: bool) -> None:
    if is_wanted:
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
        print(f"warning: {visible(in_option_words(str(message)))}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    Exit codes: 0 done, 1 data that cannot be used or any other failure, 2 a command or setting
    that is not right, 130 stopped, 141 nobody reads the output any more. Of `gate`: 0 promote, 1
    hold, 3 not settled, 2 any failure. A closed standard output or standard error changes none.
    """
    safe_streams()
    warnings.showwarning = _show
    warnings.simplefilter("always", DataWarning)
    with boundary(failed=failure_code(sys.argv[1:] if arguments is None else arguments)):
        spare_addresses()
        try:
            app(arguments, standalone_mode=True)
        finally:
            sys.stdout.flush()
