"""Results of a plan, read from its store."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import polars as pl

from unskew.data.dataset import data_key
from unskew.data.events import Events
from unskew.data.filters import apply_filters
from unskew.data.ratings import Ratings
from unskew.engine.store import MissingResult, Store, StoreError
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.evaluate import without_dislikes
from unskew.evaluation.scores import Scores, system_of
from unskew.experiment.plan import Plan, PlanView
from unskew.experiment.results import Results, ScoredSplit
from unskew.experiment.task import Place, protocol_label, result_key, task_label, wanted_metrics


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


@dataclass(frozen=True, eq=False)
class StoredResults:
    """The results of a plan where they were stored."""

    plan: Plan
    ratings: Ratings | Events
    data: str
    """The key of the ratings."""
    store: Store
    scratch: Store | None
    """Where results are that must not be kept."""
    failed: Set[Place]
    """Tasks that failed: of these, and of no others, results may be missing."""

    def collect(self, failures: Mapping[str, str]) -> Results:
        """Return all results; StoreError where one is gone."""
        plan, parts = self.plan, []
        kinds = [intervention.kind for intervention in plan.interventions]
        for split, fold in plan.folds(self.ratings):
            name = protocol_label(plan, split)
            for view in plan.views():
                lists = self._get(split, fold, view, None)
                scores = None if lists is None else self._scores(split, fold, view, *lists)
                if lists is None or scores is None:
                    continue
                change = view.intervention
                kind = "" if change is None else change.kind
                changed = kind if kinds.count(kind) < 2 else repr(change)
                parts.append(ScoredSplit(name, lists[1]["label"], view, scores, changed))
        if not parts:
            raise DataError(
                "no task was finished"
                + "".join(f"\n{label}: {text}" for label, text in failures.items())
            )
        return Results(plan, tuple(parts), dict(failures))

    def _get(self, split: int, fold: int, view: PlanView, system: str | None) -> Stored | None:
        """Return a stored table and its card; None where its task failed."""
        plan = self.plan
        storable = self.scratch is None or system in plan.storable
        where = self.store if storable or self.scratch is None else self.scratch
        key = result_key(plan, self.data, split, fold, view, system)
        try:
            return where.get(key)
        except MissingResult:
            if (split, fold, system) in self.failed:
                return None
            label = task_label(plan, split, fold, system)
            raise StoreError(
                f"{label}: its result {key} has disappeared from {where.home}. Another process "
                "removed it, such as unskew store gc with another plan, or a cleaner of "
                "temporary folders. Run again, with ",
                Spelling("store=…", "--store DIR"),
                " in a folder that nothing else empties: existing results are not computed again",
            ) from None

    def _scores(
        self, split: int, fold: int, view: PlanView, shared: pl.DataFrame, card: dict[str, Any]
    ) -> Scores | None:
        """Put the scores of one design together, of all systems whose tasks did not fail."""
        plan = self.plan
        results = {name: self._get(split, fold, view, name) for name in plan.systems}
        systems = {name: result for name, result in results.items() if result is not None}
        if not systems:
            return None
        content = {
            "plan": plan.describe(),
            "data": self.data,
            "split": split,
            "fold": fold,
            "view": view.describe(),
            "lists": card["facts"],
            "systems": list(systems),
            "versions": card["versions"],
        }
        return scores_of(plan, view, self.ratings, (shared, card), systems, content)


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
