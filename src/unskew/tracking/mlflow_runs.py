"""`log_to_mlflow`: a result in a run of MLflow."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from unskew.checks import checked
from unskew.errors import SettingError, UnskewError
from unskew.tracking.contents import Tracked, contents_of


@checked
def log_to_mlflow(
    result: object, *, run_id: str | None = None, prefix: str = "", report: bool = True
) -> Tracked:
    """Log a result to MLflow: scores as metrics, card, values and report as artifacts.

    Needs the package mlflow: ``pip install 'unskew[mlflow]'``.

    Parameters
    ----------
    result
        What `evaluate`, `compare`, `audit`, `gate` or another function gave. Means are logged of
        scores and comparisons (`SYSTEM/METRIC`), audits (`DESIGN/SYSTEM/METRIC`) and gates; of
        other results the files alone. Signs that MLflow does not take become `_`, and `@` becomes
        `_at_`: `mine/nDCG_at_10`.
    run_id
        The run to log to; the active one unless given.
    prefix
        What names of metrics and tags and the folder of artifacts begin with: for several results
        of a kind in one run.
    report
        Whether to log the report, a page of HTML.

    Returns
    -------
    Tracked
        What was logged. Undefined means are not, and stand in `left_out`.

    Examples
    --------
    >>> import mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     us.tracking.log_to_mlflow(us.evaluate(judged, "nDCG@10"))
    """
    contents = contents_of(result, prefix, report=report)
    mlflow = _mlflow()
    if run_id is None:
        active = mlflow.active_run()
        if active is None:
            raise SettingError(
                "no run of MLflow is active: log inside of `with mlflow.start_run():`, or give "
                "run_id=…"
            )
        run_id = str(active.info.run_id)
    client = mlflow.MlflowClient()
    for name, value in contents.metrics.items():
        client.log_metric(run_id, name, value)
    for name, text in contents.tags.items():
        client.set_tag(run_id, name, text)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in contents.files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        client.log_artifacts(run_id, folder)
    return Tracked(run_id, tuple(contents.metrics), tuple(contents.files), contents.left_out)


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError as error:
        raise UnskewError(
            "log_to_mlflow needs the package mlflow: pip install 'unskew[mlflow]'"
        ) from error
    return mlflow
