"""`unskew explain`: which conventions give a printed number."""

from __future__ import annotations

from typing import Any

from unskew.cli import inputs, outputs
from unskew.cli.options import ComputeOptions, FigureTableOptions, RequiredJudgedOptions
from unskew.errors import SettingError


def explain_command(
    *,
    judged: RequiredJudgedOptions,
    items: str | None = None,
    value: list[str] | None = None,
    between: tuple[str, str] | None = None,
    compute: ComputeOptions,
    output: FigureTableOptions,
) -> None:
    """Tell which conventions give a printed number, or why two libraries give different ones.

    [bold]Examples[/bold]

      unskew explain --judgments test.csv --run a.csv -m nDCG@10 --value 0.3211 --liked 4

      unskew explain -j test.csv -r a.csv --value nDCG@10=0.3211 --value Recall@10=0.1204 --liked 4

      unskew explain -j test.csv -r a.csv -r b.csv --value a:nDCG@10=0.3211
      --value b:nDCG@10=0.3300 --liked 4 --train train.csv

      unskew explain -j test.csv -r a.csv -m nDCG@10 --between ours recbole --liked 4

    Known libraries are tried first ([bold]unskew metrics --library all[/bold] lists them), then
    changes of one and of two choices. The command prints how many were tried and how many are
    expected to fit by chance, and says that a convention explains the value only where that is
    below 0.01.

    [bold]Figures[/bold]

      waterfall, with --between

    What is measured
    ----------------
    value
        A printed value: 0.3211 or 32.11% for the metric at the same place, or METRIC=VALUE, or
        SYSTEM:METRIC=VALUE. Repeatable. Trailing zeros count.
    between
        Two of ours, a library, or a printed value: the path from one number to the other.
    """
    from unskew.conventions.explaining.explain import explain
    from unskew.report.estimates import Estimates

    figures = outputs.figures_of(output.figure, ["waterfall"])
    files = inputs.read_for_conventions(judged, compute.seed, items)
    for name in ("gain", "loss"):
        files.pop(name, None)
        if getattr(judged.relevance, name) is not None:
            raise SettingError(f"--{name} is one of the choices that are tried: leave it out")
    files |= {"ties": judged.ties, "threads": compute.threads}
    metrics = inputs.metric_names(judged.metric) or []
    if between is not None:
        if value or len(metrics) != 1:
            raise SettingError("--between needs one metric (-m) and no --value")
        result: Any = explain(**files, values=str(metrics[0]), between=between)
    else:
        values = read_values(value or [], list(map(str, metrics)))
        result = explain(**files, values=values)
    if isinstance(result, Estimates):
        outputs.draw(figures, lambda _: result.figure())
    elif figures:
        raise SettingError("--figure needs --between: an explanation has no figure")
    outputs.deliver_result(result, output)


def read_values(texts: list[str], metrics: list[str]) -> dict[str, Any]:
    """Read METRIC=VALUE, SYSTEM:METRIC=VALUE, and values of the metrics given by -m."""
    if not texts:
        raise SettingError("give --value, such as --value nDCG@10=0.3211, or --between")
    values: dict[str, Any] = {}
    plain = [text for text in texts if "=" not in text]
    if len(plain) != len(metrics):
        raise SettingError(
            f"{len(plain)} values without a metric and {len(metrics)} metrics (-m): give as many "
            "of each, or write METRIC=VALUE"
        )
    for metric, text in zip(metrics, plain, strict=True):
        values[metric] = text
    for text in texts:
        if "=" in text:
            name, _, number = text.rpartition("=")
            system, colon, metric = name.partition(":")
            if colon:
                values.setdefault(system, {})[metric] = number
            else:
                values[name] = number
    return values
