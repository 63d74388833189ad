"""`log_to_wandb`: a result in a run of Weights & Biases."""

from __future__ import annotations

from typing import Any

from unskew.checks import checked
from unskew.errors import SettingError, UnskewError
from unskew.tracking.contents import Tracked, contents_of


@checked
def log_to_wandb(
    result: object, *, run: object = None, prefix: str = "", report: bool = True
) -> Tracked:
    """Log a result to Weights & Biases: scores in the summary, card, values and report as files.

    Needs the package wandb: ``pip install 'unskew[wandb]'``. Works offline
    (``wandb.init(mode="offline")``).

    Parameters
    ----------
    result
        What `evaluate`, `compare`, `audit`, `gate` or another function gave. Means are logged of
        scores and comparisons (`SYSTEM/METRIC`), audits (`DESIGN/SYSTEM/METRIC`) and gates; of
        other results the files alone. Signs other than letters, digits, `_`, `-`, `.` and blanks
        become `_`, and `@` becomes `_at_`: `mine/nDCG_at_10`.
    run
        The run to log to; the active one unless given.
    prefix
        What names of numbers begin with, and the name of the artifact: for several results of a
        kind in one run.
    report
        Whether to log the report, a page of HTML.

    Returns
    -------
    Tracked
        What was logged. Undefined means are not, and stand in `left_out`.

    Examples
    --------
    >>> import wandb  # doctest: +SKIP
    >>> with wandb.init(project="rankers"):  # doctest: +SKIP
    ...     us.tracking.log_to_wandb(us.evaluate(judged, "nDCG@10"))
    """
    contents = contents_of(result, prefix, report=report)
    wandb = _wandb()
    active: Any = wandb.run if run is None else run
    if active is None:
        raise SettingError(
            "no run of Weights & Biases is active: call wandb.init(…) first, or give run=…"
        )
    if not hasattr(active, "log_artifact"):
        raise SettingError(f"run must be what wandb.init gives, got {type(run).__name__}")
    active.summary.update({**contents.metrics, **contents.tags})
    kind = type(result).__name__
    artifact = wandb.Artifact(
        "-".join(filter(None, ("unskew", _word(prefix), kind))), type="unskew"
    )
    for name, content in contents.files.items():
        with artifact.new_file(name, mode="wb") as file:
            file.write(content)
    active.log_artifact(artifact)
    return Tracked(
        str(active.id), tuple(contents.metrics), tuple(contents.files), contents.left_out
    )


def _word(text: str) -> str:
    """Return a part of an artifact's name."""
    return "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in text)


def _wandb() -> Any:
    try:
        import wandb
    except ImportError as error:
        raise UnskewError(
            "log_to_wandb needs the package wandb: pip install 'unskew[wandb]'"
        ) from error
    return wandb
