"""A system trained on one split: its lists and its true scores, kept in a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.auditing import truth_sources
from unskew.engine.store import Store, digest_of
from unskew.engine.versions import versions
from unskew.evaluation.scores import Scores, system_of
from unskew.experiment.plan import Plan
from unskew.experiment.task import is_storable
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm, Model
from unskew.runs import Run
from unskew.splits.split import Split, Splitter
from unskew.targets.lists import TargetLists

DEPTH = 100
"""How deep the lists are that estimates, strata and robustness look at."""


@dataclass(frozen=True, eq=False)
class TrainedSystem:
    """One system on one split; trained when something is asked that the store does not hold."""

    plan: Plan
    store: Store
    data_key: str
    splitter: Splitter
    split: Split
    label: str

    @property
    def system(self) -> Algorithm:
        """What is trained."""
        return self.plan.systems[self.label]

    @cached_property
    def model(self) -> Model:
        """The model that the designs judged: the same stream of chance."""
        protocol = digest_of({"split": self.splitter.draw_key})
        models = truth_sources.fit_all(
            {self.label: self.system}, self.split.train, self.plan.seed, protocol, 0
        )
        return models[self.label]

    def _facts(self, what: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that determines something made of this model: its key, and its card."""
        plan = self.plan
        return {
            "what": what,
            "data": self.data_key,
            "split": self.splitter.describe(),
            "fold": 0,
            "seed": plan.seed,
            "algorithm": self.system.describe(),
            "ties": plan.ties,
            **more,
            "versions": versions(),
        }

    def _stored(self, facts: Mapping[str, Any], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return a table from the store, or make and keep it."""
        if not is_storable(self.plan, self.label):
            return make()
        key, store = digest_of(facts), self.store
        if store.has(key):
            return store.get(key)[0]
        table = make()
        store.put(key, table, {**facts, "label": str(facts["what"]), "system": self.label})
        return table

    def run(self, lists: TargetLists) -> Run:
        """Return the best items of every user."""
        plan = self.plan

        def make() -> pl.DataFrame:
            run = rank(self.model, lists, DEPTH, ties=plan.ties, seed=plan.seed)
            owner = np.repeat(np.arange(len(lists), dtype=np.int32), run.depth)
            return pl.DataFrame({"list": owner, "item": run.item, "score": run.score})

        table = self._stored(self._facts("run", {"depth": DEPTH}), make)
        held = np.bincount(table["list"].to_numpy(), minlength=len(lists))
        return Run(
            lists.ids,
            lists.tests.items,
            frozen(np.append(0, np.cumsum(held))),
            frozen(table["item"].to_numpy()),
            frozen(table["score"].to_numpy()),
        )

    def true(self, known: truth_sources.Source) -> Scores:
        """Return what the truth says of it."""
        plan = self.plan
        labels = tuple(str(name) for name in plan.metrics)
        of: Any = known.random.fingerprint if isinstance(known, truth_sources.Sampled) else None
        if isinstance(known, truth_sources.Simulated):
            of = known.world.describe()
        facts = self._facts(
            "truth",
            {
                "truth": of,
                "name": known.name,
                "metrics": list(labels),
                "users": plan.users,
                "relevance": plan.relevance.describe(),
            },
        )

        def make() -> pl.DataFrame:
            scores = known.judge({self.label: self.model}, self.split.train, plan)
            own = scores.systems[self.label]
            columns = {
                f"of {name}": column for name, column in zip(labels, own.values, strict=True)
            }
            columns |= {f"of {labels[row]}/den": den for row, den in own.den.items()}
            lists = scores.lists.rename(lambda name: f"list {name}")
            return lists.with_columns(depth=own.depth, **columns)

        table = self._stored(facts, make)
        lists = table.select(pl.col("^list .*$")).rename(lambda name: name.removeprefix("list "))
        own = table.select(pl.exclude("^list .*$")).rename(lambda name: name.removeprefix("of "))
        return Scores(
            labels,
            {self.label: system_of(own, labels, {})},
            self.split.train.users,
            lists,
            plan.users,
            plan.undefined,
            labels,
            relevance=str(plan.relevance),
        )
