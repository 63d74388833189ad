"""What of a result a tracker keeps: numbers under names that trackers take, texts, files."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import singledispatch
from importlib import import_module
from pathlib import Path
from typing import Any

from unskew.auditing.measurements import Measurements
from unskew.checks import checked
from unskew.errors import SettingError, UnskewError
from unskew.evaluation.scores import Scores
from unskew.gating.result import Gate
from unskew.report.document import Block, Document, Picture, Section, Words
from unskew.report.estimates import Estimates
from unskew.report.page import as_html
from unskew.report.result import Result
from unskew.report.text import as_json

Names = tuple[str, ...]
"""Of a number, from the outer to the inner: design, system, metric."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What is logged of one result."""

    metrics: Mapping[str, float]
    tags: Mapping[str, str]
    files: Mapping[str, bytes]
    left_out: tuple[str, ...]
    """Names of numbers that are undefined, which trackers do not take."""


@dataclass(frozen=True)
class Tracked:
    """What a tracker was given. Made by `log_to_mlflow` and `log_to_wandb`.

    Examples
    --------
    >>> import mlflow  # doctest: +SKIP
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     tracked = us.tracking.log_to_mlflow(us.evaluate(judged, "nDCG@10"))
    >>> tracked.metrics  # doctest: +SKIP
    ('mine/nDCG_at_10',)
    """

    run_id: str
    metrics: tuple[str, ...]
    """Names of the numbers, as the tracker has them."""
    files: tuple[str, ...]
    left_out: tuple[str, ...]
    """Names of numbers that are undefined, which trackers do not take."""


def contents_of(result: object, prefix: str = "", *, report: bool = True) -> Contents:
    """Collect the numbers, texts and files of a result.

    Parameters
    ----------
    result
        A result of unskew.
    prefix
        What names of numbers and the folder of files begin with.
    report
        Whether the report is among the files: a page takes about a second.
    """
    if not isinstance(result, Result):
        raise SettingError(
            "result must be a result of unskew, such as evaluate, compare, audit and gate give, "
            f"got {type(result).__name__}"
        )
    before = () if not prefix else (prefix,)
    numbers = _named({(*before, *names): value for names, value in means_of(result).items()})
    folder = f"{_plain(prefix)}/" if prefix else ""
    files = {"result.json": as_json(result.to_dict(), indent=1).encode()}
    card = getattr(result, "card", None)
    if isinstance(card, Mapping) and card:
        files["card.json"] = as_json(dict(card), indent=1).encode()
    if report:
        files["report.html"] = as_html(_document(result))
    kind = type(result).__name__
    tags = {"unskew.result": kind}
    verdict = getattr(result, "verdict", None)
    if isinstance(verdict, str):
        tags["unskew.verdict"] = verdict
    return Contents(
        metrics={name: value for name, value in numbers.items() if math.isfinite(value)},
        tags={f"{folder}{name}": text for name, text in tags.items()},
        files={f"unskew/{folder}{kind}/{name}": content for name, content in files.items()},
        left_out=tuple(name for name, value in numbers.items() if not math.isfinite(value)),
    )


@singledispatch
def means_of(result: Any) -> dict[Names, float]:  # noqa: ARG001
    """Return the means of each system and metric, where a result has any."""
    return {}


@means_of.register
def _of_scores(result: Scores) -> dict[Names, float]:
    return {
        (system, label): value
        for system, row in result.means().items()
        for label, value in row.items()
    }


@means_of.register
def _of_estimates(result: Estimates) -> dict[Names, float]:
    """Return the means behind a comparison: of all users, or of those of each segment."""
    ranking = result.parts.get("ranking")
    if ranking is not None:
        rows = ranking.rows.select("system", "metric", "mean").rows()
        return {(system, metric): _or_nan(mean) for system, metric, mean in rows}
    means: dict[Names, float] = {}
    if "mean_against" in result.rows.columns:
        for row in result.rows.iter_rows(named=True):
            for key, mean in (("system", "mean"), ("against", "mean_against")):
                names = (row.get("group", ""), row[key], row["metric"])
                means[tuple(filter(None, names))] = _or_nan(row[mean])
    return means


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


@means_of.register
def _of_audit(result: Measurements) -> dict[Names, float]:
    """Return means over splits, by design."""
    means: dict[Names, float] = {}
    for design, parts in result.scores.items():
        several = [_of_scores(part) for part in parts]
        for names in several[0]:
            means[design, *names] = math.fsum(one[names] for one in several) / len(several)
    return means


@means_of.register
def _of_gate(result: Gate) -> dict[Names, float]:
    metric, better = result.settings.metric, result.better
    values = {
        (result.candidate, metric): better.candidate,
        (result.production, metric): better.production,
        ("change", metric): better.change,
    }
    return {names: math.nan if value is None else value for names, value in values.items()}


def _named(numbers: Mapping[Names, float]) -> dict[str, float]:
    """Return numbers under one name each, of signs that all trackers take."""
    named: dict[str, float] = {}
    for names, value in numbers.items():
        name = "/".join(map(_plain, names))
        again = 1
        while name in named:  # names that differ in other signs only
            again += 1
            name = f"{'/'.join(map(_plain, names))}_{again}"
        named[name] = value
    return named


def _plain(text: str) -> str:
    """Return a name of letters, digits and a few signs: nDCG@10 becomes nDCG_at_10."""
    return re.sub(r"[^A-Za-z0-9_.\- ]", "_", text.replace("@", "_at_")) or "_"


def _document(result: Result) -> Document:
    """Return the report of a result; its tables, figure and lines where it has no report."""
    if hasattr(result, "document"):
        whole: Document = result.document()
        return whole
    kind = type(result).__name__
    blocks: list[Block] = list(result.display_tables())
    if hasattr(result, "figure"):
        blocks.append(Picture(result.figure()))
    lines = tuple(result.footer())
    if lines:
        blocks.append(Words("", head="Notes", points=lines))
    section = Section("result", kind, repr(result), tuple(blocks))
    lead = tuple(Words(line) for line in result.header())
    return Document(kind, lead, (section,), getattr(result, "card", None) or {})


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
    mlflow = _imported("mlflow")
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


def _imported(name: str) -> Any:
    """Return the package of a tracker, which may be missing."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UnskewError(
            f"log_to_{name} needs the package {name}: pip install 'unskew[{name}]'"
        ) from error


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
    wandb = _imported("wandb")
    active: Any = wandb.run if run is None else run
    if active is None:
        raise SettingError(
            "no run of Weights & Biases is active: call wandb.init(…) first, or give run=…"
        )
    if not hasattr(active, "log_artifact"):
        raise SettingError(f"run must be what wandb.init gives, got {type(run).__name__}")
    active.summary.update({**contents.metrics, **contents.tags})
    word = "".join(sign if sign.isalnum() or sign in "._-" else "_" for sign in prefix)
    name = "-".join(filter(None, ("unskew", word, type(result).__name__)))
    artifact = wandb.Artifact(name, type="unskew")
    for path, content in contents.files.items():
        with artifact.new_file(path, mode="wb") as file:
            file.write(content)
    active.log_artifact(artifact)
    return Tracked(
        str(active.id), tuple(contents.metrics), tuple(contents.files), contents.left_out
    )
