"""`filter_effect`: how far filters such as a k-core move the scores and the order of systems.

The ratings are split once. Each system is trained on the training part as it is, and again on what
the filters leave of it; its lists are judged by the test part as it is, and by what is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from unskew.report.columns import (
    METRIC,
    QUANTITY,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.splits.split import Split, shared_rows
from unskew.stats.windows.order_changes import order_changes
from unskew.targets.designs import Targets

ALL, JUDGED, FILTERED = "all", "judged on what stays", "filtered"
CONDITIONS = {
    ALL: "trained on and judged by all ratings",
    JUDGED: "trained on all ratings, judged by those that the filters leave, among their items",
    FILTERED: "trained on and judged by the ratings that the filters leave",
}
"""What systems are trained on and judged by."""


_COUNTS = ("rows", "users", "items")
REMOVED = Question(
    name="what the filters left",
    columns=(
        Column("filter", "key"),
        *(
            Column(f"{name}{end}", "count", f"{name}{end.replace('_', ' ')}")
            for name in _COUNTS
            for end in ("", "_left")
        ),
    ),
    method=Method(estimand="rows, users and items before each filter and after it"),
    figures=(),
)
SIZES = Question(
    name="what systems are trained on and judged by",
    columns=(
        *(Column("split", "key"), Column("condition", "key"), Column("train", "count", "training")),
        *(Column("test", "count"), USERS, Column("items", "count")),
    ),
    method=Method(estimand="ratings, judged users and candidate items under each condition"),
    figures=(),
)
SCORES = Question(
    name="scores",
    columns=(METRIC, SYSTEM, QUANTITY, VALUE),
    quantities=(
        *(Column(name, "value") for name in CONDITIONS),
        Column("judged", "value", "judging less", form="+"),
        Column("trained", "value", "training on less", form="+"),
    ),
    method=Method(
        estimand="the mean of a system under each condition, and its changes: other users and "
        "items are judged, and less is trained on"
    ),
    figures=(),
)


@notebook_progress("effect of filters")
@checked
def filter_effect(
    data: object,
    plan: Plan,
    filters: Filter | Sequence[Filter] | None = None,
    *,
    resamples: int = 1_000,
    progress: Progress | None = None,
) -> Estimates:
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
    resamples
        How often users are drawn for the interval of Kendall's τ.
    progress
        Called with (done, total) as systems are trained.

    Returns
    -------
    Estimates
        What `order_changes` gives for the three conditions (see `CONDITIONS`), with three
        more parts: `removed`, a row per filter; `sizes`, a row per split and condition; `scores`,
        of each system its mean under each condition, and how far that moves because other users
        and items are `judged`, and because less is `trained` on.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=300, items=100, seed=7)
    >>> systems = [us.recommend.Popularity(), us.recommend.EASE(l2=50)]
    >>> plan = us.Plan(algorithms=systems, metrics=["P@5"], seed=7)
    >>> effect = us.auditing.filter_effect(shop.ratings, plan, us.data.KCore(4, 4))
    >>> effect.parts["removed"].rows.rows()
    [('k-core(users=4, items=4)', 1192, 863, 256, 115, 98, 62)]
    >>> round(effect.parts["scores"].row(system="popularity", quantity="trained").value, 4)
    0.0046
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
    orders = order_changes(scores, over="condition", resamples=resamples, seed=plan.seed)
    parts = {
        "removed": Estimates.of_rows(REMOVED, [_removed(step) for step in steps]),
        "sizes": Estimates.of_rows(SIZES, sizes),
        "scores": _scores(orders.parts["means"]),
    }
    return replace(
        orders,
        question=replace(orders.question, name="effect of filters", display=(*parts, "changes")),
        explanation=(
            *(f"{name}: {about}" for name, about in CONDITIONS.items()),
            *orders.explanation,
        ),
        notes=(*map(str, steps), *prepared.notes),
        parts={**parts, **orders.parts},
        card={**orders.card, "steps": [step.describe() for step in steps]},
    )


def _removed(step: Step) -> dict[str, Any]:
    """Return what a filter found and what it left."""
    counts = {
        f"{name}{end}": getattr(size, name)
        for name in _COUNTS
        for end, size in (("", step.before), ("_left", step.after))
    }
    return {"filter": step.title, **counts}


def _scores(means: Estimates) -> Estimates:
    """Return each system's mean under each condition, and its two changes."""
    keys = ["metric", "system"]
    wide = means.rows.pivot("condition", index=keys, values="value", maintain_order=True)
    changes = {
        "judged": pl.col(JUDGED) - pl.col(ALL),
        "trained": pl.col(FILTERED) - pl.col(JUDGED),
    }
    rows = wide.with_columns(**changes).unpivot(index=keys, variable_name="quantity")
    return Estimates.of_rows(SCORES, rows, card=means.card)


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
            "n": len(compacted(split.test).users),
            "items": int(lists.candidates.sum()),
        }
        return scores, size
