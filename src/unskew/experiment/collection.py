"""Results of a plan, read from its store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from unskew.data.dataset import data_key
from unskew.data.events import Events
from unskew.data.filters import apply_filters
from unskew.data.ratings import Ratings
from unskew.errors import SettingError, Spelling
from unskew.evaluation.evaluate import without_dislikes
from unskew.evaluation.scores import Scores, system_of
from unskew.experiment.plan import Plan, PlanView
from unskew.experiment.task import result_key, wanted_metrics


@dataclass(frozen=True, eq=False)
class PlanData:
    """A plan and the data that it starts from."""

    plan: Plan
    """With the metrics that are computed."""
    data: Ratings | Events
    """What the filters left."""
    notes: tuple[str, ...]
    """What was done to the data, and which metrics were left out."""

    @classmethod
    def of(cls, data: Ratings | Events, plan: Plan) -> PlanData:
        """Apply the filters of a plan; leave metrics out that its data cannot give."""
        filtered: Ratings | Events = apply_filters(data, plan.filter_steps)
        if filtered.implicit and not plan.relevance.is_liked(filtered.value).any():
            raise SettingError(
                f"these data are implicit feedback, of which {plan.relevance} likes no pair: give ",
                Spelling("relevance=us.Relevance(liked=1)", "[relevance] with liked = 1"),
            )
        metrics, left_out = without_dislikes(plan.labelled_metrics, filtered.implicit)
        changed = plan if not left_out else replace(plan, metrics=metrics)
        steps = [str(step) for step in filtered.steps]
        return cls(changed, filtered, (*steps, *left_out))


Stored = tuple[pl.DataFrame, dict[str, Any]]
"""A table as it lies in a store, and its card."""


def keys_of(plan: Plan, ratings: Ratings | Events) -> set[str]:
    """Return the keys of all results of a plan."""
    prepared = PlanData.of(ratings, plan)
    plan, ratings = prepared.plan, prepared.data
    data = data_key(ratings)
    return {
        result_key(plan, data, split, fold, view, system)
        for split, fold in plan.folds(ratings)
        for system in (None, *plan.systems)
        for view in plan.views()
    }


def scores_of(
    plan: Plan,
    view: PlanView,
    ratings: Ratings | Events,
    lists: Stored,
    systems: Mapping[str, Stored],
    content: Mapping[str, Any],
) -> Scores:
    """Put the scores of one view of a split together.

    Parameters
    ----------
    plan
        Its metrics, relevance, and whom it averages over.
    view
        How the systems are judged.
    ratings
        Their ids.
    lists
        What all systems share, as `lists_result` gives it.
    systems
        What `system_results` gave of each.
    content
        The card.
    """
    shared, card = lists
    metrics = wanted_metrics(plan, view)
    labels = metrics.rows
    notes = list(card["notes"])
    for name, (_, about) in systems.items():
        # A store of an older version knows no notes on warm users: those on all tested users do.
        of_users = about["notes"].get(plan.users, about["notes"]["with-test"])
        notes += [f"{name}: {note}" for note in of_users]
    return Scores(
        labels=labels,
        systems={
            name: system_of(table, labels, about["aggregates"])
            for name, (table, about) in systems.items()
        },
        user_ids=ratings.users,
        lists=_lists(shared, ratings, strata=bool(card["strata"])),
        users=plan.users,
        undefined=plan.undefined,
        order=tuple(metrics),
        make_card=partial(dict, content),
        notes=tuple(dict.fromkeys(notes)),
        relevance=str(plan.relevance),
        over="strata" if card["strata"] else "lists",
        chance=system_of(shared, labels, card["aggregates"]),
        simulated=card["simulated"],
    )


def _lists(shared: pl.DataFrame, ratings: Ratings | Events, strata: bool) -> pl.DataFrame:
    """Return what is known of each list, with the raw ids of anchors."""
    facts = shared.select(pl.col("^list .*$")).rename(lambda column: column.removeprefix("list "))
    if not strata:
        facts = facts.drop("stratum")
    anchor = facts["anchor"]
    facts = facts.drop("anchor")
    if not (anchor >= 0).all():
        return facts
    return facts.with_columns(anchor=ratings.items.raw(anchor.to_numpy()))
