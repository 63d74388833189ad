"""`debiased_training`: systems trained on samples of the training part, and their true scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from unskew.auditing import truth_sources
from unskew.checks import checked, choose
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.targets.designs import Targets


@dataclass(frozen=True, eq=False)
class DebiasedTraining(Result):
    """True scores of systems trained on samples of the training ratings.

    Made by `debiased_training`.
    """

    source_name: str
    """What the truth is, in words."""
    scores: Mapping[str, tuple[Scores, ...]]
    """By what was trained on: the true scores on each split."""

    def table(self) -> pl.DataFrame:
        """Return a row per training, system and metric: `true`, and `change` from `full`."""
        means = {name: _means(parts) for name, parts in self.scores.items()}
        full = means["full"]
        rows = [
            {
                "training": name,
                "system": system,
                "metric": metric,
                "true": value,
                "change": value - full[system][metric],
            }
            for name, every in means.items()
            for system, own in every.items()
            for metric, value in own.items()
        ]
        return pl.DataFrame(rows)

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the true value of each system, a mark per training set."""
        import altair as alt

        table = self.table()
        names = table["metric"].unique(maintain_order=True).to_list()
        label = choose("metric", metric or names[0], names)
        rows = table.filter(pl.col("metric") == label).to_dicts()
        chart = (
            alt.Chart(alt.NamedData(name="rows"))
            .mark_point(filled=True, size=80)
            .encode(
                x=alt.X("true:Q", title=f"true {label}"),
                y=alt.Y("system:N", title=None),
                color=alt.Color("training:N"),
                shape=alt.Shape("training:N"),
            )
            .properties(width=360)
        )
        return as_figure(
            chart, "Training on less biased data", [f"truth: {self.source_name}"], rows
        )

    def _content(self) -> dict[str, object]:
        return {"truth": self.source_name, "rows": self.table()}

    def _explanation(self) -> list[str]:
        return [f"truth: {self.source_name}; means over the users for whom the metric is defined"]


def _means(parts: Sequence[Scores]) -> dict[str, dict[str, float]]:
    """Return the means over splits, by system and metric, of users for whom it is defined."""
    every = [part.averages(undefined="skip") for part in parts]
    return {
        system: {
            metric: math.fsum(one[system][metric].value for one in every) / len(every)
            for metric in own
        }
        for system, own in every[0].items()
    }


@checked
def debiased_training(
    data: object,
    plan: Plan,
    *,
    random: object = None,
    weights: float | None = None,
    targets: Targets | None = None,
    overlap: str = "to-training",
) -> DebiasedTraining:
    """Train systems on samples of the training part, and score them by the truth.

    carraro2020 section 7 leaves this open. All rank the same targets: the items outside the whole
    training part.

    Parameters
    ----------
    data, random, weights, targets, overlap
        As in `truth`.
    plan
        Its interventions draw the samples, beside the whole training part (`full`).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.training_samples import debiased_training
    >>> shop = us.world("shop", users=120, items=60, seed=1)
    >>> plan = us.Plan(
    ...     algorithms=[us.recommend.Popularity()], metrics=["P@5"],
    ...     interventions=[us.splits.Skew()],
    ... )
    >>> debiased_training(shop, plan).table()["training"].to_list()
    ['full', 'skew']
    """
    if not plan.interventions:
        raise SettingError(
            "the plan has no interventions: give interventions=[us.splits.Skew(), …]"
        )
    source = truth_sources.source_of(data, random, weights, targets, overlap, plan)
    kinds = [one.kind for one in plan.interventions]
    scores: dict[str, list[Scores]] = {}
    for number, fold, split in truth_sources.each_split(plan, source.ratings):
        key = plan.splits[number].draw_key, fold
        samples = {"full": split.train}
        for one in plan.interventions:
            name = one.kind if kinds.count(one.kind) == 1 else repr(one)
            if one.kind != "full":
                drawn = one.sample(split.train, split.train, source.weights, seed=plan.seed)
                samples[name] = drawn.ratings
        for name, rows in samples.items():
            models = truth_sources.fit_all(plan.systems, rows, plan.seed, *key)
            scores.setdefault(name, []).append(source.judge(models, split.train, plan))
    return DebiasedTraining(source.name, {name: tuple(own) for name, own in scores.items()})
