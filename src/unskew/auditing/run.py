"""An audit of ratings, while it is made: splits, runs, the null experiment, lists, the truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.auditing import truth_sources
from unskew.auditing.analyses import (
    Findings,
    Progress,
    Rules,
    at_least,
    check_worth,
    only,
    orders_systems,
    refuse,
    tried,
)
from unskew.auditing.designs import Level, Way, plan_of_level, plans_of, ways_of_level, ways_of_plan
from unskew.auditing.measurements import LEVEL
from unskew.auditing.null import NullExperiment, null_experiment
from unskew.auditing.true_scores import Truth
from unskew.bias.describe import describe_bias
from unskew.data.catalog import load
from unskew.data.dataset import Dataset
from unskew.data.overview import summary
from unskew.data.ratings import Ratings
from unskew.data.stored import data_key
from unskew.engine.store import Store, key_of
from unskew.engine.versions import versions
from unskew.errors import SettingError, UnskewError
from unskew.evaluation.scores import Scores, system_of
from unskew.experiment.execution import run_plan
from unskew.experiment.plan import Plan
from unskew.experiment.task import is_storable
from unskew.judging.judged import Judged, judge
from unskew.judging.rank import rank
from unskew.recommend.model import Algorithm
from unskew.runs import Run
from unskew.splits.diagnose import SplitAudit, diagnose_split
from unskew.splits.split import Split
from unskew.targets.designs import AllItems
from unskew.targets.lists import TargetLists
from unskew.worlds.worlds import World

DEPTH = 100
"""How deep the lists are that estimates, strata and robustness look at."""
TRIED = 50
"""On the ratings of so many users it is tried whether a system can be trained at all."""
TRUE_METRICS = ("P@10", "anti-P@10", "nDCG@10")
"""What the truth is told of, beside the metric that orders the systems."""


def _trainable(plan: Plan, ratings: Ratings, skipped: dict[str, str]) -> Plan:
    """Leave out systems that cannot be trained on ratings below 0, and say which and why."""
    if ratings.value.min() >= 0:
        return plan
    few = np.append(np.arange(TRIED), ratings.user[int(np.argmin(ratings.value))])
    part = ratings.take(np.isin(ratings.user, few))
    systems = {}
    for name, one in plan.systems.items():
        made = tried(skipped, f"system {name}", partial(one.fit, part, plan.seed))
        if made is not None:
            systems[name] = one
    return replace(plan, algorithms=systems)


@dataclass(frozen=True, eq=False)
class _Lists:
    """The lists of all systems on one split: what is looked at more closely."""

    split: Split
    runs: Mapping[str, Run]


@dataclass(frozen=True, eq=False)
class Job:
    """An audit of ratings, while it is made."""

    source: object
    """What the user gave, as a data set or world."""
    name: str
    ratings: Ratings
    known: truth_sources.Source | None
    """Where the truth is known."""
    plan: Plan
    ways: tuple[Way, ...]
    metric: str
    level: Level
    store: Store
    workers: int
    told: Progress
    skipped: dict[str, str]
    assumed: tuple[str, ...]
    own_plan: bool

    @classmethod
    def of(
        cls,
        data: object,
        plan: Plan | str,
        level: Level,
        random: object,
        rules: Rules,
        algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None,
        designs: Sequence[str] | None,
        metric: str | None,
        seed: int | None,
        store: Store,
        workers: int,
        told: Progress,
    ) -> Job:
        """Find out what to do."""
        told("reading", 0, 1)
        source = data if isinstance(data, World) else load(data)
        ratings = source.ratings
        if not len(ratings):
            raise SettingError("there are no ratings to audit")
        assumed: list[str] = []
        skipped: dict[str, str] = {}
        if isinstance(plan, Plan):
            refuse({"algorithms": algorithms, "designs": designs}, "is in the plan already")
            rule = plan.relevance
            if rules.stated:
                rule, assumed = rules.of(ratings, source.liked)
            plan = replace(plan, relevance=rule, seed=plan.seed if seed is None else seed)
            ways, own = ways_of_plan(plan), True
        else:
            rule, assumed = rules.of(ratings, source.liked)
            check_worth(ratings, rule)
            names = None if designs is None else list(designs)
            plan = plan_of_level(level, rule, algorithms, 0 if seed is None else seed)
            if algorithms is None:
                plan = _trainable(plan, ratings, skipped)
            ways, own = ways_of_level(level, names), False
        if len(plan.systems) < 2:
            raise SettingError("an audit compares systems: give at least two")
        label = orders_systems(metric or str(plan.metrics[0]))
        if label not in plan.metrics:
            plan = replace(plan, metrics=(label, *plan.metrics))
        known = None
        if isinstance(source, World) or random is not None or source.random is not None:
            known = truth_sources.source_of(source, random, None, None, "to-training", plan)
            ratings = known.ratings
        return cls(
            source,
            source.name,
            ratings,
            known,
            plan,
            tuple(ways),
            label,
            level,
            store,
            workers,
            told,
            skipped,
            tuple(assumed),
            own,
        )

    def done(self) -> dict[str, Any]:
        """Do everything; return the fields of `Found`."""
        self.told("reading", 1, 1)
        possible, splits = self._possible()
        plans = plans_of(possible, self.plan)
        scores = self._scores(plans)
        null = self._null([way for way in possible if self._may_be_null(way)])
        lists, true = self._lists(possible, splits)
        found = Findings(self.metric, self.level, self.plan.seed, self.skipped, self.told)
        mar = self.known.random if isinstance(self.known, truth_sources.Sampled) else None
        dataset = Dataset(
            self.name,
            self.ratings,
            mar,
            self.source.scale,  # type: ignore[attr-defined]
            self.plan.relevance.threshold,
            notes=self.ratings.notes,
        )
        least = at_least(self.plan.relevance, self.ratings)
        of_bias: Any = self.source if isinstance(self.source, World) else self.ratings
        measured = {
            **found.of_scores(scores),
            **found.of_lists(self._judged(lists), mar),
            "data": summary(dataset),
            "bias": found.tried("bias", lambda: describe_bias(of_bias, liked=least, random=mar)),
            "splits": self._audits(possible, splits),
            "truth": self._truth(scores, true),
        }
        return {
            "name": self.name,
            "metric": self.metric,
            "systems": tuple(self.plan.systems),
            "designs": {way.name: way.about for way in possible},
            "scores": scores,
            "relevance": self.plan.relevance,
            "null": null,
            "skipped": dict(self.skipped),
            "assumed": self.assumed,
            "notes": tuple(dict.fromkeys(self.ratings.notes)),
            "card": self._card(),
            "plans": tuple(plans),
            **measured,
        }

    def _judged(self, lists: _Lists) -> Judged:
        """Lay the lists over the judgments of their split, once for all that is measured."""
        return judge(
            lists.split.test,
            lists.runs,
            train=lists.split.train,
            relevance=self.plan.relevance,
            seed=self.plan.seed,
        )

    # What can be done at all

    def _possible(self) -> tuple[list[Way], dict[str, Split]]:
        """Return the designs that these data allow, and the first split of each protocol."""
        splits: dict[str, Split] = {}
        possible = []
        for way in self.ways:
            try:
                key = key_of(way.split.describe())
                if key not in splits:
                    if way.split.name == "temporal" and self.ratings.time is None:
                        raise SettingError("needs time stamps")
                    splits[key] = next(iter(way.split.each(self.ratings, self.plan.seed)))
                judged = way.view.apply(splits[key], self.plan.seed)
                way.view.targets.lists(judged, self.plan.relevance, seed=self.plan.seed)
            except UnskewError as problem:
                if way is self.ways[0]:
                    raise
                self.skipped[f"design {way.name}"] = str(problem)
                continue
            possible.append(way)
        return possible, splits

    # Running

    def _scores(self, plans: Mapping[Plan, Sequence[Way]]) -> dict[str, tuple[Scores, ...]]:
        total = len(plans) * (len(self.plan.systems) + 1)
        done = 0
        found: dict[str, tuple[Scores, ...]] = {}
        for plan, ways in plans.items():
            before = done

            def moved(state: Any, before: int = before) -> None:
                share = state.done / max(state.total, 1)
                step = len(self.plan.systems) + 1
                self.told("designs", before + round(share * step), total)

            results = run_plan(
                self.ratings, plan, store=self.store.home, workers=self.workers, progress=moved
            )
            done += len(self.plan.systems) + 1
            self.told("designs", done, total)
            for way in ways:
                found[way.name] = tuple(part.scores for part in results if part.view == way.view)
        return {way.name: found[way.name] for way in self.ways if way.name in found}

    def _may_be_null(self, way: Way) -> bool:
        """Tell whether the null experiment looks at a design.

        Designs on intervened test parts would train every system once more, and time says nothing
        on null data.
        """
        return way.view.intervention is None and way.split.name != "temporal"

    def _null(self, ways: Sequence[Way]) -> NullExperiment | None:
        if len(np.unique(self.ratings.value)) < 2:
            self.skipped["null experiment"] = (
                "all ratings have the same value: drawing them anew changes nothing"
            )
            return None
        if not ways:
            self.skipped["null experiment"] = "no design without an intervention"
            return None
        plans = {
            way.name: replace(
                self.plan,
                split=way.split,
                targets=way.view.targets,
                judgments=way.view.judgments,
                interventions=(),
            )
            for way in ways
        }

        def made(plans: Mapping[str, Plan]) -> NullExperiment:
            return null_experiment(
                self.ratings,
                plans,
                ("iid",),
                self.level.repeats,
                store=self.store.home,
                workers=self.workers,
                progress=lambda done, total: self.told("null experiment", done, total),
            )

        whole = tried(self.skipped, "null experiment", lambda: made(plans))
        if whole is not None or len(plans) == 1:
            return whole
        # A redrawn test part can lack what a design needs: the common one is tried alone.
        first = ways[0].name
        alone = tried(self.skipped, "null experiment", lambda: made({first: plans[first]}))
        if alone is not None:
            why = self.skipped.pop("null experiment")
            self.skipped[f"null experiment beyond {first}"] = why
        return alone

    def _lists(
        self, ways: Sequence[Way], splits: Mapping[str, Split]
    ) -> tuple[_Lists, dict[str, Scores]]:
        """Train every system once more on each first split: its lists, and its true scores."""
        common = key_of(ways[0].split.describe())
        wanted = {key_of(way.split.describe()): way.split for way in ways}
        if self.known is None:
            wanted = {common: wanted[common]}
        runs: dict[str, Run] = {}
        true: dict[str, dict[str, Scores]] = {}
        data = data_key(self.ratings)
        steps, done = len(wanted) * len(self.plan.systems), 0
        for key, splitter in wanted.items():
            split = splits[key]
            lists = AllItems().lists(split, self.plan.relevance, seed=self.plan.seed)
            for label, one in self.plan.systems.items():
                trained = _Trained(self, key, splitter, split, label, one, data)
                if key == common:
                    runs[label] = trained.run(lists)
                if self.known is not None:
                    true.setdefault(key, {})[label] = trained.true(self.known)
                done += 1
                self.told("lists", done, steps)
        joined = {
            key: replace(
                next(iter(of.values())),
                systems={label: scores.systems[label] for label, scores in of.items()},
                notes=(),
            )
            for key, of in true.items()
        }
        by_way = {
            way.name: joined[key_of(way.split.describe())]
            for way in ways
            if key_of(way.split.describe()) in joined
        }
        return _Lists(splits[common], runs), by_way

    def _truth(
        self, scores: Mapping[str, tuple[Scores, ...]], true: Mapping[str, Scores]
    ) -> Truth | None:
        if self.known is None:
            return None
        shown = [one for one in (self.metric, *TRUE_METRICS) if one in self.plan.metrics]
        return Truth(
            self.known.name,
            {name: (only(scores[name][0], shown),) for name in true},
            {name: (only(one, shown),) for name, one in true.items()},
            self.level.bootstrap,
            LEVEL,
            self.plan.seed,
        )

    # What is told of it

    def _audits(self, ways: Sequence[Way], splits: Mapping[str, Split]) -> dict[str, SplitAudit]:
        """Tell what the first split of each protocol did."""
        different = {key_of(way.split.describe()): way.split for way in ways}
        names = [one.name for one in different.values()]
        return {
            one.name if names.count(one.name) == 1 else repr(one): diagnose_split(splits[key])
            for key, one in different.items()
        }

    def _card(self) -> dict[str, Any]:
        return {
            "data": {
                "name": self.name,
                "ratings": len(self.ratings),
                "users": len(self.ratings.users),
                "items": len(self.ratings.items),
                "fingerprint": self.ratings.fingerprint,
            },
            "truth": None if self.known is None else self.known.name,
            "level": "plan" if self.own_plan else self.level.name,
            "designs": {
                way.name: {"split": way.split.describe(), **way.view.describe()}
                for way in self.ways
            },
            "algorithms": {name: one.describe() for name, one in self.plan.systems.items()},
            "relevance": self.plan.relevance.describe(),
            "metrics": [str(one) for one in self.plan.metrics],
            "metric": self.metric,
            "seed": self.plan.seed,
            "null": {"null": "iid", "repeats": self.level.repeats},
            "permutations": self.level.permutations,
            "bootstrap": self.level.bootstrap,
            "users": self.plan.users,
            "undefined": self.plan.undefined,
            "ties": self.plan.ties,
            "versions": versions(),
        }


@dataclass(frozen=True, eq=False)
class _Trained:
    """One system on one split; trained when something is asked that the store does not hold."""

    job: Job
    key: str
    splitter: Any
    split: Split
    label: str
    system: Algorithm
    data: str

    @cached_property
    def model(self) -> Any:
        """The model that the designs judged: the same stream of chance."""
        made = key_of({"split": self.splitter.draw_key})
        return truth_sources.fit_all(
            {self.label: self.system}, self.split.train, self.job.plan.seed, made, 0
        )[self.label]

    def _told(self, what: str, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return all that determines something made of this model: its key, and its card."""
        plan = self.job.plan
        return {
            "what": what,
            "data": self.data,
            "split": self.splitter.describe(),
            "fold": 0,
            "seed": plan.seed,
            "algorithm": self.system.describe(),
            "ties": plan.ties,
            **more,
            "versions": versions(),
        }

    def _kept(self, told: Mapping[str, Any], make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """Return a table from the store, or make and keep it."""
        if not is_storable(self.job.plan, self.label):
            return make()
        key, store = key_of(told), self.job.store
        if store.has(key):
            return store.get(key)[0]
        table = make()
        store.put(key, table, {**told, "label": str(told["what"]), "system": self.label})
        return table

    def run(self, lists: TargetLists) -> Run:
        """Return the best items of every user."""
        plan = self.job.plan

        def make() -> pl.DataFrame:
            made = rank(self.model, lists, DEPTH, ties=plan.ties, seed=plan.seed)
            owner = np.repeat(np.arange(len(lists), dtype=np.int32), made.depth)
            return pl.DataFrame({"list": owner, "item": made.item, "score": made.score})

        table = self._kept(self._told("run", {"depth": DEPTH}), make)
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
        plan = self.job.plan
        labels = tuple(str(name) for name in plan.metrics)
        of: Any = known.random.fingerprint if isinstance(known, truth_sources.Sampled) else None
        if isinstance(known, truth_sources.Simulated):
            of = known.world.describe()
        told = self._told(
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

        table = self._kept(told, make)
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
