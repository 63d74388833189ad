"""What `unskew split --audit` does: it diagnoses splits that are made, given or saved."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.checks import choose
from unskew.cli import files, outputs
from unskew.cli.console import in_option_words
from unskew.cli.options import PlainFormat
from unskew.cli.parameters import Option, bundle
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.splits.diagnosis.diagnosis import Diagnosis
    from unskew.splits.split import Split

FAILED = 3
"""Exit code of --fail-on: 1 and 2 are those of bad data and bad options."""
FAIL_ON = ("leak", "look")


@bundle
class SplitAuditOptions:
    """What is checked, and what follows from it.

    The split
    ---------
    audit
        Look for leaks and drift, and print a light for each check. RATINGS may then be a folder of
        a saved split.
    feature
        --audit: a column of items or users that systems learn from: look whether it was computed
        with test rows. Repeatable.
    fail_on
        --audit: exit with code 3 if a light is red (leak), or red or yellow (look).
    """

    audit: bool = False
    feature: list[str] | None = None
    fail_on: str | None = None


@bundle
class SplitOutput:
    """Where the parts, or the diagnosis, go.

    Output
    ------
    output
        Output folder. With --audit it can be left out, or be a file for the diagnosis: .html, .md
        or .json.
    """

    output: Annotated[Path | None, Option(metavar="DIR")] = None
    force: bool = False
    format: PlainFormat = "text"
    quiet: bool = False

    @property
    def folder(self) -> Path | None:
        """The folder that gets the parts of the split; None where there is none."""
        return None if self.is_file else self.output

    @property
    def is_file(self) -> bool:
        """Whether the output is a file for the diagnosis."""
        path = self.output
        return path is not None and path.suffix.lower() in files.REPORTS and not path.is_dir()


def check_options(options: SplitAuditOptions, output: SplitOutput) -> None:
    """Refuse options that do not go together."""
    if options.fail_on is not None:
        choose("fail-on", options.fail_on, FAIL_ON)
    if options.audit:
        return
    if output.output is None:
        raise SettingError("Missing option '--output' / '-o': the folder that gets the parts")
    files.check_folder_name(output.output)
    if output.format != "text":
        raise SettingError(f"--format {output.format} is for --audit: give that too")
    for name, value in (("--feature", options.feature), ("--fail-on", options.fail_on)):
        if value:
            raise SettingError(f"{name} is for --audit: give that too, or leave {name} out")


def is_saved_split(source: str) -> bool:
    """Tell whether a folder is given that `unskew split` wrote."""
    return Path(source).is_dir()


def audit_saved(source: str, options: SplitAuditOptions, output: SplitOutput) -> None:
    """Diagnose the splits of a folder."""
    from unskew.splits.saved import load_splits

    if output.folder is not None:
        raise SettingError(
            f"--output {output.folder}: {source} is split already; give a file for the diagnosis, "
            "such as leaks.html"
        )
    deliver(diagnosed(load_splits(source)), options, output)


def diagnosed(splits: Iterable[Split], log: Any = None) -> Diagnosis:
    """Diagnose splits, one at a time in memory."""
    from unskew.splits.diagnosis.diagnosis import diagnose

    return diagnose(splits, log=log)


def deliver(diagnosis: Diagnosis, options: SplitAuditOptions, output: SplitOutput) -> None:
    """Print a diagnosis, write its file where one is named, and end with its exit code."""
    if output.format == "json":
        outputs.print_json(diagnosis.to_dict())
    else:
        outputs.say(in_option_words(str(diagnosis)))
    if output.is_file and output.output is not None:
        diagnosis.save(output.output)
    if output.output is not None and not output.quiet:
        outputs.note(f"written to {output.output}")
    bad = diagnosis.leaks
    if options.fail_on == "look":
        bad = (*bad, *diagnosis.of_light("look"))
    if options.fail_on is not None and bad:
        raise typer.Exit(FAILED)
