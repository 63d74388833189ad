"""`sweep`: interventions with several shares and exponents, held against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from unskew.auditing.true_scores import Truth, truth
from unskew.checks import checked, choose
from unskew.errors import SettingError
from unskew.experiment.plan import Plan
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.splits.interventions import Design, Skew, Wtd, WtdH


@dataclass(frozen=True, eq=False)
class Sweep(Result):
    """Errors of interventions by share and exponent. Made by `sweep`."""

    figure_is_open: ClassVar[bool] = True

    truth: Truth
    points: tuple[tuple[str, float, float], ...]
    """Kind, size and exponent of each design of `truth`, in its order."""

    def table(self) -> pl.DataFrame:
        """Return a row per intervention, share, exponent and metric.

        `mean_error` is the mean size of the errors of the systems in percent; `tau` as in
        `Truth.agreement`.
        """
        told = {
            design: {"kind": kind, "size": size, "exponent": exponent}
            for design, (kind, size, exponent) in zip(self.truth.designs, self.points, strict=True)
        }
        rows = [
            {
                **told[row["design"]],
                **{key: row[key] for key in ("metric", "mean_error", "tau", "low", "high")},
            }
            for row in self.truth.agreement().iter_rows(named=True)
        ]
        schema = {
            "kind": pl.String,
            "size": pl.Float64,
            "exponent": pl.Float64,
            "metric": pl.String,
        }
        numbers = dict.fromkeys(("mean_error", "tau", "low", "high"), pl.Float64)
        return pl.DataFrame(rows, schema={**schema, **numbers})

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the mean error over the exponent, a line per share, a panel per intervention."""
        import altair as alt

        names = self.truth.metrics
        label = choose("metric", metric or names[0], names)
        rows = self.table().filter(pl.col("metric") == label).drop_nulls("mean_error").to_dicts()
        chart = (
            alt.Chart(alt.NamedData(name="rows"))
            .mark_line(point=True)
            .encode(
                x=alt.X("exponent:Q"),
                y=alt.Y("mean_error:Q", title="mean size of the error, %"),
                color=alt.Color("size:N"),
            )
            .properties(width=200, height=220)
            .facet(column=alt.Column("kind:N", title=None))
        )
        return as_figure(chart, f"Errors of {label}", [f"truth: {self.truth.source_name}"], rows)

    def _content(self) -> dict[str, object]:
        return {"truth": self.truth.source_name, "rows": self.table()}

    def _explanation(self) -> list[str]:
        return [f"truth: {self.truth.source_name}"]


@checked
def sweep(
    data: object,
    plan: Plan,
    *,
    sizes: Sequence[float] = (0.1, 0.3, 0.5, 0.7),
    exponents: Sequence[float] = (0.0, 0.5, 1.0, 1.5, 2.0),
    interventions: Sequence[Design] | None = None,
    bootstrap: int = 0,
    **settings: Any,
) -> Sweep:
    """Try interventions with several shares of the test part and several exponents.

    Parameters
    ----------
    data, plan, settings
        As in `truth`; the interventions of the plan are not used.
    sizes
        Shares of the held-out ratings to draw.
    exponents
        Of the item's popularity (SKEW) or weight (WTD, WTD_H).
    interventions
        What to vary: SKEW and WTD_H, and WTD where there are random ratings to learn from, unless
        given.
    bootstrap
        Draws of users for the interval of each τ; none unless given.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.intervention_sweep import sweep
    >>> shop = us.world("shop", users=120, items=60, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> plan = us.Plan(algorithms=systems, metrics=["Recall@5"])
    >>> sweep(shop, plan, sizes=[0.5], exponents=[0, 1]).table().height
    6
    """
    given = (Skew(), Wtd(), WtdH()) if interventions is None else tuple(interventions)
    for one in given:
        if not hasattr(one, "exponent"):
            raise SettingError(f"{one!r} has no exponent to vary: give Skew, Wtd or WtdH")
    if not given or not sizes or not exponents:
        raise SettingError("give at least one intervention, one size and one exponent")
    varied = [
        replace(one, size=size, exponent=float(exponent))  # type: ignore[call-arg]
        for one in given
        for size in sizes
        for exponent in exponents
    ]
    if len(plan.splits) * len(plan.designs) * len(plan.judgments) > 1:
        raise SettingError("a sweep takes a plan with one split, one design and one judgment set")
    result = truth(data, replace(plan, interventions=varied), bootstrap=bootstrap, **settings)
    points = tuple((one.kind, float(one.size), float(one.exponent)) for one in varied)  # type: ignore[attr-defined]
    return Sweep(result, points)
