"""`filter_effect`: how far filters such as a k-core move the scores and the order of systems.

The ratings are split once. Each system is trained on the training part as it is, and again on what
the filters leave of it; its lists are judged by the test part as it is, and by what is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.checks import checked
from unskew.data.events import Events
from unskew.data.filters import Filter, apply_filters, compacted
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.steps import Step
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.rng import generator
from unskew.engine.store import digest_of
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.experiment.collection import PlanData
from unskew.experiment.plan import Plan
from unskew.recommend.model import Model
from unskew.report.charts import Figure
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
from unskew.splits.split import Split, shared_rows
from unskew.stats.windows.order_over_time import order_across_splits
from unskew.stats.windows.order_over_time_result import OrderOverTime
from unskew.targets.designs import Targets

ALL, JUDGED, FILTERED = "all", "judged on what stays", "filtered"
CONDITIONS = {
    ALL: "trained on and judged by all ratings",
    JUDGED: "trained on all ratings, judged by those that the filters leave, among their items",
    FILTERED: "trained on and judged by the ratings that the filters leave",
}
"""What systems are trained on and judged by."""


@dataclass(frozen=True, eq=False)
class FilterEffect(Result):
    """What filters did to the data, to the scores and to the order of systems.

    Made by `filter_effect`.
    """

    steps: tuple[Step, ...]
    orders: OrderOverTime
    """The systems under three conditions: see `CONDITIONS`."""
    sizes: pl.DataFrame = field(repr=False)
    """A row per split and condition: training ratings, test ratings, users who are judged."""
    notes: tuple[str, ...] = ()

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return a row per metric and system: its mean under each condition, and the two changes.

        `judged`: the change because other users and items are judged; `trained`: the change because
        less is trained on.
        """
        wide = self.orders.curves(metric).pivot(
            "condition", index=["metric", "system"], values="mean", maintain_order=True
        )
        return wide.with_columns(
            judged=pl.col(JUDGED) - pl.col(ALL), trained=pl.col(FILTERED) - pl.col(JUDGED)
        )

    def removed(self) -> pl.DataFrame:
        """Return a row per filter: rows, users and items before it and after it."""
        rows = []
        for step in self.steps:
            sizes = {
                f"{name}{end}": getattr(size, name)
                for name in ("rows", "users", "items")
                for end, size in (("", step.before), ("_left", step.after))
            }
            rows.append({"filter": step.title, **sizes})
        return pl.DataFrame(rows)

    def moved(self, metric: str | None = None) -> pl.DataFrame:
        """Return the pairs of systems whose order the filters reverse, each way significantly."""
        return self.orders.changes(metric).filter("reverses")

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the sizes, the scores and the changes of order."""
        digits = self.digits if digits is None else digits
        sizes = self.sizes.group_by("condition", maintain_order=True).agg(
            pl.col("train", "test", "users", "items").mean().round().cast(pl.Int64)
        )
        changes = [
            table for table in self.orders.display_tables(digits) if "order change" in table.title
        ]
        return [
            Table("What is left (mean of the splits)", sizes),
            Table("Scores", self.table(), digits),
            *changes,
        ]

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the means of all systems under the three conditions."""
        return self.orders.figure("curves", metric)

    def header(self) -> list[str]:
        """Return what was done to the data."""
        return [str(step) for step in self.steps]

    def _explanation(self) -> list[str]:
        return [
            *(f"{name}: {about}" for name, about in CONDITIONS.items()),
            *self.orders._explanation(),
        ]

    def _conclusion(self) -> Sequence[str]:
        return self.orders._conclusion()

    def _summary(self) -> str:
        return f"{counted(len(self.steps), 'filter')}, {self.orders._summary()}"

    def _content(self) -> dict[str, object]:
        return {
            "steps": [step.describe() for step in self.steps],
            "sizes": self.sizes,
            "scores": self.table(),
            "orders": self.orders,
            "notes": self.footer(),
        }


@notebook_progress("effect of filters")
@checked
def filter_effect(
    data: object,
    plan: Plan,
    filters: Filter | Sequence[Filter] | None = None,
    *,
    bootstrap: int = 1_000,
    progress: Progress | None = None,
) -> FilterEffect:
    """Compare systems on data as they are and after filters, on the same splits.

    Parameters
    ----------
    data
        Ratings, anything that `read_ratings` takes, or an event log (`read_events`), whose events
        are counted.
    plan
        Splits, the first design of targets, systems, relevance, metrics and seed.
    filters
        What is asked about, such as `us.data.KCore(5, 5)`; those of the plan unless given.
    bootstrap
        How often users are drawn for the interval of Kendall's τ.
    progress
        Called with (done, total) as systems are trained.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=300, items=100, seed=7)
    >>> systems = [us.recommend.Popularity(), us.recommend.EASE(l2=50)]
    >>> plan = us.Plan(algorithms=systems, metrics=["P@5"], seed=7)
    >>> effect = us.auditing.filter_effect(shop.ratings, plan, us.data.KCore(4, 4))
    >>> effect.table().columns
    ['metric', 'system', 'all', 'judged on what stays', 'filtered', 'judged', 'trained']
    """
    chosen = plan.filter_steps if filters is None else filters
    if not isinstance(chosen, Filter) and not chosen:
        raise SettingError("no filter is given: name one, such as us.data.KCore(5, 5)")
    read = data if isinstance(data, Ratings | Events) else read_ratings(data)
    prepared = PlanData.of(read, replace(plan, filters=()))
    full = _counted(prepared.data)
    filtered = apply_filters(prepared.data, chosen)
    steps = filtered.steps[len(prepared.data.steps) :]
    _, left = under_one_numbering(full, _counted(filtered))
    job = _Effect(prepared.plan, full, left, progress)
    scores, sizes = job.scores()
    orders = order_across_splits(scores, unit="condition", bootstrap=bootstrap, seed=plan.seed)
    return FilterEffect(steps, orders, pl.DataFrame(sizes), prepared.notes)


def _counted(data: Ratings | Events) -> Ratings:
    return data.to_ratings() if isinstance(data, Events) else data


@dataclass(eq=False)
class _Effect:
    """The systems of a plan, trained and judged under each condition."""

    plan: Plan
    full: Ratings
    left: Ratings
    """What the filters leave, under the ids of `full`."""
    progress: Progress | None
    done: int = 0

    def scores(self) -> tuple[dict[str, list[Scores]], list[dict[str, Any]]]:
        """Return the scores of each split by condition, and what each was trained and judged on."""
        scores: dict[str, list[Scores]] = {name: [] for name in CONDITIONS}
        sizes = []
        for splitter in self.plan.splits:
            for split in splitter.each(self.full, self.plan.seed):
                for name, (result, size) in self._of_split(split).items():
                    scores[name].append(result)
                    sizes.append({"split": split.label, "condition": name, **size})
        return scores, sizes

    def _of_split(self, split: Split) -> dict[str, tuple[Scores, dict[str, int]]]:
        """Judge all systems on one split under the three conditions."""
        design = among_left = self.plan.designs[0]
        if design.candidates == "all":
            items = self.left.items.raw(np.unique(self.left.item))
            among_left = replace(design, candidates=tuple(items.to_list()))
        train, test = (self._left_of(part) for part in (split.train, split.test))
        models, fewer = self._fit(split, split.train), self._fit(split, train)
        return {
            ALL: self._judge(split, models, design),
            JUDGED: self._judge(Split(split.train, test), models, among_left),
            FILTERED: self._judge(Split(train, test), fewer, among_left),
        }

    def _left_of(self, part: Ratings) -> Ratings:
        """Return the rows of a part that the filters leave, with the values that they leave."""
        rows = self.left.take(shared_rows(self.left, part))
        if not len(rows):
            raise DataError("the filters leave nothing of the training or of the test part")
        return rows

    def _fit(self, split: Split, train: Ratings) -> dict[str, Model]:
        models = {}
        for label, system in self.plan.systems.items():
            key = digest_of(system.draw_key)
            models[label] = system.fit(train, generator(self.plan.seed, "filter", split.label, key))
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self._total)
        return models

    @property
    def _total(self) -> int:
        splits = sum(split.count(self.full, self.plan.seed) for split in self.plan.splits)
        return 2 * splits * len(self.plan.systems)

    def _judge(
        self, split: Split, models: Mapping[str, Model], design: Targets
    ) -> tuple[Scores, dict[str, int]]:
        plan = self.plan
        lists = design.lists(split, plan.relevance, seed=plan.seed)
        scores = evaluate(
            lists,
            dict(models),
            list(plan.metrics),
            users=plan.users,
            undefined=plan.undefined,
            ties=plan.ties,
            seed=plan.seed,
        )
        size = {
            "train": len(split.train),
            "test": len(split.test),
            "users": len(compacted(split.test).users),
            "items": int(lists.candidates.sum()),
        }
        return scores, size
