"""`unskew audit --self-test`: how often what an audit says is false, in worlds of known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.cli import outputs
from unskew.cli.bundles import bundle, given_options, option
from unskew.cli.formats import STANDARD_OUTPUT
from unskew.cli.inputs import between_commas
from unskew.cli.options import ReportOptions, StoredOptions
from unskew.cli.progress import Stage, stages_progress
from unskew.errors import SettingError

SELF_TEST = "Self-test"
ENDING = ".json"
WORLDS = {"worlds": Stage("audits of simulated worlds", 1, "worlds")}


@bundle
class SelfTestOptions:
    """The audit of the audit itself."""

    self_test: Annotated[
        bool,
        option(
            SELF_TEST,
            "Audit simulated worlds instead of ratings, and count the false statements.",
            "--self-test",
            default=False,
        ),
    ]
    worlds: Annotated[
        int | None,
        option(
            SELF_TEST,
            "Number of worlds, equally many of each kind. Default: the mix of worlds behind the "
            "rates that reports show.",
            min=1,
        ),
    ]
    kinds: Annotated[
        str | None, option(SELF_TEST, "Kinds of worlds, separated by commas. Default: all.")
    ]


def check_unused(options: SelfTestOptions) -> None:
    """Reject options of the self-test where it is not asked for."""
    for name in given_options(options):
        raise SettingError(f"{name} needs --self-test")


def run_self_test(
    options: SelfTestOptions,
    stored: StoredOptions,
    output: ReportOptions,
    *,
    ratings: str | None,
    others: tuple[Any, ...],
) -> None:
    """Audit simulated worlds; print how often statements are false, and write the result file.

    Parameters
    ----------
    options
        Which worlds, and how many.
    stored, output
        How it runs, and where the result goes.
    ratings, others
        What an audit of data takes: rejected here.
    """
    from unskew.auditing.self_test.runner import reliability

    if ratings is not None:
        raise SettingError("--self-test simulates its data: leave the ratings out")
    unused = [*given_options(*others), *(["--seed"] if stored.seed else [])]
    unused += [f"--{name}" for name in ("figures", "format") if getattr(output, name) is not None]
    for name in unused:
        raise SettingError(f"{name} is for audits of data: leave it out with --self-test")
    target = _target(output.output)
    number = {} if options.worlds is None else {"worlds": options.worlds, "least": 0}
    with stages_progress(output.quiet, WORLDS, tuple(WORLDS)) as move:
        result = reliability(
            **number,
            kinds=between_commas(options.kinds),
            store=stored.store,
            progress=move,
            **stored.executor.arguments(),
        )
    if str(target) == STANDARD_OUTPUT:
        print(outputs.Printout.of_text(result).text("json"))
        return
    outputs.Printout.of_result(result).show("table", output.quiet)
    if target is not None:
        result.save_rates(target)
        if not output.quiet:
            outputs.note(f"the rates are in {target}")


def _target(path: Path | None) -> Path | None:
    """Return the file that rates go to, if any."""
    if path is None or str(path) == STANDARD_OUTPUT or path.suffix.lower() == ENDING:
        return path
    raise SettingError(f"--output: the rates are a {ENDING} file, got {path}")
