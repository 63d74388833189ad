"""An audit of ratings, step by step: what is run, what is measured, and what is written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from unskew.auditing.analyses import (
    BY_USER,
    LEVEL,
    Analysis,
    Attempts,
    analyse_lists,
    analyse_scores,
    with_metrics,
)
from unskew.auditing.core.core import Core, SplitLists, core_notes, run_core, tuning_card
from unskew.auditing.designs import (
    METRICS,
    AuditDesign,
    Level,
    designs_of_level,
    designs_of_plan,
    plan_of_level,
    plans_of,
    tunable_systems,
)
from unskew.auditing.filter_effects import filter_effect
from unskew.auditing.large_data import LargeRequest, active_users, affordable, judged_card
from unskew.auditing.measurements import lights_of_splits
from unskew.auditing.null.null_experiment import null_experiment_by
from unskew.auditing.page.reproduction import (
    Choices,
    GivenData,
    plan_code,
    ratings_audit_code,
    ratings_command,
)
from unskew.auditing.request import (
    WITHOUT_DISLIKES,
    Request,
    TrainingRequest,
    check_absent,
    check_ordering_metric,
    check_worth,
    least_liked,
    without_dislikes,
)
from unskew.auditing.result import Audit
from unskew.auditing.statements.evidence import Evidence, evidence_of
from unskew.auditing.truth import sources
from unskew.auditing.truth.truth import beside_truth
from unskew.auditing.user_groups import (
    group_card,
    grouped_core,
    grouped_evidence,
    stated_groups,
)
from unskew.bias.describe_bias import BiasReport, describe_bias
from unskew.data.dataset import Dataset
from unskew.data.filters import apply_filters, steps_of
from unskew.data.formats.catalog import load
from unskew.data.ratings import Ratings
from unskew.data.summary import summary
from unskew.data.user_groups import UserGroups
from unskew.engine.system import versions
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.judging.judge import judge
from unskew.judging.judged import Judged
from unskew.judging.tied import refuse_order
from unskew.recommend.fit_cost import DataShape
from unskew.report.estimates import Estimates
from unskew.stats.user_groups import group_notes
from unskew.ties import EXPECTED
from unskew.worlds.worlds import World

TRUE_METRICS = ("P@10", "anti-P@10", "nDCG@10")
"""What the truth is told of, beside the metric that orders the systems."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingsAudit:
    """An audit of ratings, while it runs: splits, runs, the null experiment, lists, the truth."""

    request: Request
    training: TrainingRequest
    chosen: Chosen
    inputs: GivenData
    source: World | Dataset
    """What the user gave, as a data set or world."""
    ratings: Ratings
    true_source: sources.Source | None
    """Where the truth is known."""
    plan: Plan
    """The chosen one, with the metric that orders the systems."""
    metric: str
    large: LargeRequest
    """With what was done in the place of what was not stated."""
    attempts: Attempts
    unfiltered: Ratings | None
    """The ratings as they were given, where filters were applied to them."""

    @property
    def tuned(self) -> frozenset[str]:
        """Systems whose settings are chosen on the training part of each split."""
        is_tuned = self.training.tune
        return self.chosen.tunable & self.plan.systems.keys() if is_tuned else frozenset()

    @classmethod
    def of(
        cls, data: object, plan: Plan | str, request: Request, training: TrainingRequest
    ) -> RatingsAudit:
        """Read the data and choose what to run."""
        request.progress("reading", 0, 1)
        source = data if isinstance(data, World) else load(data)
        unfiltered, filters = source.ratings, training.filters
        if filters and isinstance(source, World):
            raise SettingError("filters are for ratings: a world is audited as it was made")
        if filters:
            source = replace(source, ratings=apply_filters(source.ratings, filters))
        ratings = source.ratings
        if not len(ratings):
            raise SettingError("there are no ratings to audit")
        request.large.check_memory(ratings, training.executor.workers)
        attempts = Attempts()
        chosen = chosen_of(source, plan, request, training, attempts)
        shared = chosen.plan
        if len(shared.systems) < 2:
            raise SettingError("an audit compares systems: give at least two")
        metric = check_ordering_metric(request.metric or next(iter(shared.metrics)))
        if metric not in shared.metrics:
            shared = replace(shared, metrics=(metric, *shared.metrics))
        truth = None
        if isinstance(source, World) or training.random is not None or source.random is not None:
            truth = sources.source_of(source, training.random, None, None, "to-training", shared)
            ratings = truth.ratings
        return cls(
            request=request,
            training=training,
            chosen=chosen,
            inputs=GivenData(
                data=data,
                algorithms=training.algorithms,
                random=training.random,
                level=chosen.level,
            ),
            source=source,
            ratings=ratings,
            true_source=truth,
            plan=shared,
            metric=metric,
            large=request.large.settled(ratings, shared.judged_users, chosen.level),
            attempts=attempts,
            unfiltered=unfiltered if filters else None,
        )

    def carry_out(self) -> Audit:
        """Do everything."""
        self.request.progress("reading", 1, 1)
        groups = stated_groups(self.request.stated.group_users, (self.ratings,))
        core = grouped_core(self._core(), groups)
        designs = [design for design in self.chosen.designs if design.name in core.designs]
        analysis = Analysis(
            metric=self.metric,
            level=self.chosen.level,
            seed=self.plan.seed,
            attempts=self.attempts,
            progress=self.request.progress,
            implicit=core.implicit,
            groups=groups,
        )
        scores = core.warm_scores
        null = self._null([design for design in designs if self._may_be_null(design)], core)
        self.training.executor.rest()
        of_scores = analyse_scores(analysis, scores)
        of_lists = analyse_lists(analysis, self._judged(core.lists[0]), self._random)
        self.request.progress("statements", 0, 1)
        result = Audit(
            name=self.source.name,
            metric=self.metric,
            systems=core.systems,
            designs=core.designs,
            scores=scores,
            relevance=self.plan.relevance,
            evidence=self._evidence(core, groups),
            data=summary(self._dataset()),
            bias=self._bias(core.implicit),
            lights=lights_of_splits(
                {design.split_key: design.split for design in designs}.values(),
                self.ratings,
                self.plan.seed,
            ),
            null=null,
            truth=self._truth(core),
            filter_effect=self._filter_effect(core, groups),
            skipped={
                **self.attempts.failures,
                **({"dislikes": WITHOUT_DISLIKES} if core.implicit else {}),
            },
            assumed=(*self.chosen.assumed, *core_notes(core)),
            notes=self._notes(groups),
            card=self._card(core, null) | group_card(groups),
            command=self._command(designs),
            # Of the first splits, with the settings that were chosen there.
            plans=tuple(
                replace(plan, algorithms=core.first_systems(plan.systems, members[0].name))
                for plan, members in plans_of(designs, self.plan).items()
            ),
            **vars(of_scores),
            **vars(of_lists),
        )
        self.request.progress("statements", 1, 1)
        return result

    def _core(self) -> Core:
        """Run every system under every design that these data allow."""
        return run_core(
            self.ratings,
            self.plan,
            self.chosen.designs,
            metric=self.metric,
            tune=self.tuned,
            store=self.training.store,
            executor=self.training.executor,
            progress=self.request.progress,
            attempts=self.attempts,
            truth=self.true_source,
        )

    def _evidence(self, core: Core, groups: UserGroups | None) -> Evidence:
        """Work out what statements rest on."""
        evidence = evidence_of(
            core,
            random=self._random,
            margin=self.request.stated.margin,
            smallest=self.request.stated.smallest,
            seed=self.plan.seed,
            attempts=self.attempts,
        )
        return grouped_evidence(evidence, groups, self._random, self.attempts)

    def _notes(self, groups: UserGroups | None) -> tuple[str, ...]:
        """Return what was noted of the ratings, and of users that are not independent."""
        ratings = self.ratings
        notes = [*ratings.notes, *map(str, ratings.steps), *group_notes((ratings,), groups)]
        return tuple(dict.fromkeys(notes))

    # The data

    @property
    def _random(self) -> Ratings | None:
        """Ratings of randomly chosen items, where there are any."""
        return (
            self.true_source.random if isinstance(self.true_source, sources.SampledTruth) else None
        )

    def _dataset(self) -> Dataset:
        return Dataset(
            self.source.name,
            self.ratings,
            self._random,
            self.source.scale,
            self.plan.relevance.threshold,
            notes=self.ratings.notes,
        )

    def _bias(self, implicit: bool) -> BiasReport | None:
        source = self.source if isinstance(self.source, World) else self.ratings
        liked = least_liked(self.plan.relevance, self.ratings)
        if implicit and self._random is None:
            return None  # how liking goes with popularity: everything is liked
        describe = partial(describe_bias, source, liked=liked, random=self._random)
        return self.attempts.attempt("bias", describe)

    def _filter_effect(self, core: Core, groups: UserGroups | None) -> Estimates | None:
        """Compare the systems on all ratings and on what filters left, under the first design."""
        unfiltered = self.unfiltered
        if unfiltered is None:
            return None
        if groups is not None:
            self.attempts.failures["effect of the filters"] = BY_USER
            return None
        first = self.chosen.designs[0]
        plan = replace(
            self.plan,
            split=first.split,
            targets=first.view.targets,
            algorithms=core.first_systems(self.plan.systems, first.name),
            interventions=(),
            judgments="test",
            metrics=(self.metric,),
        )
        compare = partial(filter_effect, unfiltered, plan, self.training.filters)
        return self.attempts.attempt("effect of the filters", compare)

    # The null experiment

    def _may_be_null(self, design: AuditDesign) -> bool:
        """Tell whether the null experiment looks at a design.

        Designs on intervened test parts would train every system once more, and time says nothing
        on null data.
        """
        return design.view.intervention is None and design.split.name != "temporal"

    def _null(self, designs: Sequence[AuditDesign], core: Core) -> Estimates | None:
        if core.implicit:
            return None
        if len(np.unique(self.ratings.value)) < 2:
            self.attempts.failures["null experiment"] = (
                "all ratings have the same value, so redrawing them changes nothing"
            )
            return None
        if not designs:
            self.attempts.failures["null experiment"] = "no design without an intervention"
            return None
        plans = {
            design.name: replace(
                self.plan,
                algorithms=core.first_systems(self.plan.systems, design.name),
                split=design.split,
                targets=design.view.targets,
                judgments=design.view.judgments,
                interventions=(),
            )
            for design in designs
        }
        parts = {design.name: core.scores[design.name] for design in designs}
        real = {
            design.name: parts[design.name][: len(parts[design.name]) // design.repeats]
            for design in designs
        }

        def run(plans: Mapping[str, Plan]) -> Estimates:
            return null_experiment_by(
                self.training.executor,
                self.ratings,
                plans,
                ("iid",),
                self.chosen.level.repeat_rule(self.metric),
                real=real,
                fallback=True,
                store=self.training.store,
                progress=lambda done, total: self.request.progress("null experiment", done, total),
            )

        self.request.progress("null experiment", 0, 1)
        experiment = self.attempts.attempt("null experiment", lambda: run(plans))
        if experiment is not None or len(plans) == 1:
            return experiment
        # A redrawn test part can lack what a design needs: the common one is tried alone.
        first = designs[0].name
        alone = self.attempts.attempt("null experiment", lambda: run({first: plans[first]}))
        if alone is not None:
            why = self.attempts.failures.pop("null experiment")
            self.attempts.failures[f"null experiment beyond {first}"] = why
        return alone

    # The lists and the truth

    def _judged(self, first: SplitLists) -> Judged:
        """Lay the lists over the judgments of their split, once for all that is measured.

        Of users with training ratings, where there are any: these are compared.
        """
        split = first.split
        tests = split.judged_test
        warm = np.diff(split.train.start)[tests.user] > 0
        return judge(
            tests.take(warm) if warm.any() else tests,
            first.runs,
            train=split.train,
            relevance=self.plan.relevance,
            seed=self.plan.seed,
        )

    def _truth(self, core: Core) -> Estimates | None:
        if self.true_source is None:
            return None
        metrics = [label for label in (self.metric, *TRUE_METRICS) if label in self.plan.metrics]

        def of_designs(scores: Mapping[str, tuple[Scores, ...]]) -> dict[str, tuple[Scores, ...]]:
            return {
                name: tuple(with_metrics(part, metrics) for part in parts)
                for name, parts in scores.items()
            }

        return beside_truth(
            self.true_source.name,
            of_designs(core.warm_scores),
            of_designs(core.true),
            resamples=self.chosen.level.bootstrap,
            level=LEVEL,
            seed=self.plan.seed,
        )

    # What is written down

    def _card(self, core: Core, null: Estimates | None) -> dict[str, object]:
        """Return all from which the numbers can be derived again, as plain values."""
        steps = steps_of([self.ratings])
        return {
            "data": {
                "name": self.source.name,
                "ratings": len(self.ratings),
                "users": len(self.ratings.users),
                "items": len(self.ratings.items),
                "fingerprint": self.ratings.fingerprint,
                **({"steps": steps} if steps else {}),
            },
            "truth": None if self.true_source is None else self.true_source.name,
            "level": "plan" if self.chosen.is_user_plan else self.chosen.level.name,
            "designs": {
                design.name: {
                    "split": design.split.describe(),
                    "splits": design.repeats,
                    **design.view.describe(),
                }
                for design in self.chosen.designs
            },
            "algorithms": {name: system.describe() for name, system in self.plan.systems.items()},
            "relevance": self.plan.relevance.describe(),
            "metrics": list(self.plan.metrics),
            "metric": self.metric,
            "margin": self.request.stated.margin,
            "smallest": self.request.stated.smallest,
            "seed": self.plan.seed,
            "split_seeds": list(core.seeds),
            "tuned": tuning_card(core),
            "null": None if null is None else dict(null.card),
            "permutations": self.chosen.level.permutations,
            "bootstrap": self.chosen.level.bootstrap,
            "users": self.plan.users,
            "judged_users": judged_card(self.plan.judged_users, self.ratings),
            "undefined": self.plan.undefined,
            "ties": self.plan.ties,
            "versions": versions(),
        }

    def _command(self, designs: Sequence[AuditDesign]) -> str:
        choices = Choices(
            level=self.chosen.level.name,
            designs=[design.name for design in designs],
            metric=self.metric,
            relevance=self.plan.relevance,
            seed=self.plan.seed,
            tune=self.training.tune,
            stated=self.request.stated,
            repeats=self.chosen.level.given_repeats,
            large=self.large,
        )
        systems, ratings, inputs = self.plan.systems, self.source.ratings, self.inputs
        if self.chosen.is_user_plan:
            return plan_code(inputs, self.plan, ratings, choices)
        if inputs.needs_code:
            return ratings_audit_code(inputs, systems, ratings, choices)
        names = [system.name for system in systems.values()]
        return ratings_command(choices, names, inputs.path, inputs.random_path)


# What is run

TRIED = 50
"""On the ratings of so many users it is tried whether a system can be trained at all."""


def _affordable(
    plan: Plan, ratings: Ratings, request: Request, attempts: Attempts
) -> tuple[Plan, list[str]]:
    """Leave out systems that cost too much on data of this size; return what stands in for them."""
    level, _ = request.large.level(request.level, len(ratings))
    systems, left_out = affordable(
        plan.systems,
        DataShape.of(ratings),
        level,
        memory=request.large.memory,
    )
    attempts.failures.update({f"system {name}": why for name, why in left_out.items()})
    new = [name for name in systems if name not in plan.systems]
    notes = [f"{name} is run because {' and '.join(left_out)} cost too much here" for name in new]
    return replace(plan, algorithms=systems) if left_out else plan, notes


def _trainable(plan: Plan, ratings: Ratings, attempts: Attempts) -> Plan:
    """Leave out systems that cannot be trained on these ratings, and say which and why.

    Ratings below 0 have no meaning to some.
    """
    if ratings.value.min() >= 0:
        return plan
    users = np.append(np.arange(TRIED), ratings.user[int(np.argmin(ratings.value))])
    part = ratings.take(np.isin(ratings.user, users))
    systems = {}
    for name, system in plan.systems.items():
        if attempts.attempt(f"system {name}", partial(system.fit, part, plan.seed)) is not None:
            systems[name] = system
    return replace(plan, algorithms=systems)


@dataclass(frozen=True, eq=False)
class Chosen:
    """What is run: a plan of all systems, and its designs."""

    plan: Plan
    designs: Sequence[AuditDesign]
    assumed: Sequence[str]
    is_user_plan: bool
    tunable: frozenset[str]
    """Systems whose settings the user did not state."""
    level: Level
    """With the number of splits for data of this size."""


def chosen_of(
    source: World | Dataset,
    plan: Plan | str,
    request: Request,
    training: TrainingRequest,
    attempts: Attempts,
) -> Chosen:
    """Return the plan and designs of a level, or of the user's plan."""
    ratings, rules, seed = source.ratings, training.rules, request.seed
    algorithms, level = training.algorithms, request.level
    is_user_plan = isinstance(plan, Plan)
    notes: list[str] = []
    if isinstance(plan, Plan):
        if plan.ties == EXPECTED:
            raise refuse_order()
        absent = {
            "algorithms": algorithms,
            "designs": request.designs,
            "splits": request.large.splits,
        }
        check_absent(absent, "is in the plan already")
        rule, assumed = plan.relevance, notes
        if rules.stated:
            rule, assumed = rules.of(ratings, source.liked)
        plan = replace(plan, relevance=rule, seed=plan.seed if seed is None else seed)
        algorithms = tuple(plan.systems.values())
    else:
        level, notes = request.large.level(level, len(ratings))
        rule, assumed = rules.of(ratings, source.liked)
        check_worth(ratings, rule)
        plan = plan_of_level(level, rule, algorithms, 0 if seed is None else seed)
        if rule.is_liked(ratings.value).all():
            plan = replace(plan, metrics=without_dislikes(METRICS))
        if algorithms is None:
            plan, stand_ins = _affordable(plan, ratings, request, attempts)
            plan, assumed = _trainable(plan, ratings, attempts), [*assumed, *stand_ins]
    tunable = tunable_systems(plan.systems, algorithms)
    plan, assumed = _judging(plan, ratings, request, [*assumed, *notes])
    return Chosen(
        plan=plan,
        designs=designs_of_plan(plan) if is_user_plan else designs_of_level(level, request.designs),
        assumed=assumed,
        is_user_plan=is_user_plan,
        tunable=tunable,
        level=level,
    )


def _judging(
    plan: Plan, ratings: Ratings, request: Request, assumed: list[str]
) -> tuple[Plan, list[str]]:
    """Draw users where there are many; a plan may state how many itself."""
    large = request.large
    if plan.judged_users is not None:
        check_absent({"users": large.users}, "is in the plan already, as judged_users")
        large = replace(large, users=plan.judged_users)
    judged, notes = large.judged_users(active_users(ratings))
    return replace(plan, judged_users=judged), [*assumed, *notes]
