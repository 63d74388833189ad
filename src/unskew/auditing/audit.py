"""`audit`: run systems under several designs, and tell which conclusions can be trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from unskew.auditing.analyses import (
    LEVEL,
    Analysis,
    Attempts,
    analyse_lists,
    analyse_scores,
    with_metrics,
)
from unskew.auditing.chosen import RatingsInputs, chosen_of, ratings_card
from unskew.auditing.core.core import Core, SplitLists, core_notes, run_core
from unskew.auditing.designs import LEVELS, AuditDesign, plans_of
from unskew.auditing.filter_effects import filter_effect
from unskew.auditing.large_data import LargeRequest
from unskew.auditing.lists.given_lists import audit_lists
from unskew.auditing.measurements import AuditFacts
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
    Progress,
    Request,
    Rules,
    Stated,
    TrainingRequest,
    check_absent,
    check_ordering_metric,
    least_liked,
)
from unskew.auditing.result import Audit
from unskew.auditing.split_lights import lights_of_splits
from unskew.auditing.statements.evidence import Evidence, evidence_of
from unskew.auditing.truth import sources
from unskew.auditing.truth.truth import beside_truth
from unskew.bias.describe_bias import BiasReport, describe_bias
from unskew.checks import checked, choose
from unskew.data.dataset import Dataset
from unskew.data.filters import Filter, apply_filters
from unskew.data.formats.catalog import load
from unskew.data.ratings import Ratings
from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS, Relevance, Rule, check_likes
from unskew.data.summary import summary
from unskew.engine.executor import executor
from unskew.engine.progress import AUDIT_STAGES, notebook_progress
from unskew.engine.store import Store
from unskew.errors import SettingError, quietly
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.judging.judge import as_judged, judge
from unskew.judging.judged import Judged
from unskew.recommend.model import Algorithm
from unskew.report.estimates import Estimates
from unskew.worlds.worlds import World

if TYPE_CHECKING:
    from distributed import Client

TRUE_METRICS = ("P@10", "anti-P@10", "nDCG@10")
"""What the truth is told of, beside the metric that orders the systems."""


@notebook_progress("audit", weights=AUDIT_STAGES)
@checked
def audit(
    data: object = None,
    plan: Plan | str = "default",
    *,
    judgments: object = None,
    runs: object = None,
    train: object = None,
    random: object = None,
    references: bool = True,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    designs: Sequence[str] | None = None,
    metric: str | None = None,
    margin: float | None = None,
    smallest: float = 0.05,
    seed: int | None = None,
    repeats: int | None = None,
    permutations: int | None = None,
    splits: int | None = None,
    users: int | str | None = None,
    memory: int | str | None = None,
    filters: Filter | Sequence[Filter] = (),
    tune: bool = True,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Evaluate systems under several designs and tell how far to trust what comes out.

    Parameters
    ----------
    data
        Ratings, a file, the name of a data set, a `Dataset` or a `World`. Where the truth is known
        (a world, random ratings), it is set beside what is observed. Or judged data (`judge`), as
        `judgments` and `runs` together.
    plan
        A level, `quick`, `default` or `thorough`, or a plan of your own: its splits, targets and
        interventions are the designs, the first of them the common one.
    judgments, runs, train
        Instead of data: test ratings, the ranked lists of systems by name, and, where known, the
        training ratings. What needs training is left out, which the report says.
    random
        Ratings of randomly chosen items, where the data have none of their own.
    references
        With runs and `train`: whether popularity, a smoothed average, item-kNN and a random order
        are trained and stand beside the given lists.
    liked, above, gain, loss, relevance
        How a rating is taken, as in `evaluate`; 4 and more are liked on a 1-5 scale unless given.
        Ratings below 0 need a gain that is not the rating itself, such as `gain="binary"`.
    events, weights
        Of an event log: the kinds of events that count, or what each kind counts; see
        `read_ratings`.
    algorithms
        Systems to run, as objects or by name, instead of those of the level.
    designs
        Names of `DESIGNS`, the first of them the common one; all unless given.
    metric
        The metric that orders the systems. Default: P@10.

        Of a plan: its first metric.
    margin
        Scores that differ by less than this count as equal. Default: no such margin.

        State it beforehand. No pair is called equal without it.
    smallest
        The smallest difference in true precision that matters; used to advise how many judgments to
        collect.
    seed
        Everything random follows from it; 0, or the plan's own, unless given.
    repeats
        Number of times that the null experiment redraws opinions. Default: as many as the precision
        of the first ones needs, within the bounds of the level.
    permutations
        Of the significance tests, instead of the level's.
    splits
        How many random splits are made. Default: that of the level, fewer from 5,000,000 ratings
        on.
    users
        How many users are judged, drawn at random, or all; systems are trained on all ratings.
        Default: all, or 20000 where more than 50,000 users have ratings.
    memory
        What the audit may use, such as 6GiB; larger data are refused. Default: 8GiB, whatever the
        machine has, so that the same systems are run everywhere.
    filters
        What to do with the ratings first, such as `us.data.KCore(5, 5)`: recorded in the report,
        with a section on how far it moved scores and order.
    tune
        Whether settings are chosen on a validation part of the training part of each split, never
        on the test part: of systems given by name or by the level, and of objects of your own
        classes that declare a grid (`Algorithm.tuning`). Other objects stay as they are given.
    store
        A folder that keeps what is finished: an audit that was stopped goes on where it was.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with the stage, how much is done, and of how much.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.audit import audit
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> result = audit(shop, "quick", algorithms=["random", "popularity"],
    ...                designs=["all-items", "skew"], repeats=2, permutations=200)
    >>> result
    Audit(shop: 2 systems, 2 designs)
    >>> result.order()
    ['popularity', 'random']
    """
    level = LEVELS["default" if isinstance(plan, Plan) else choose("level", plan, LEVELS)]
    if repeats is not None:
        level = replace(level, repeats=repeats, most_repeats=repeats)
    if permutations is not None:
        level = replace(level, permutations=permutations)
    request = Request(
        level=level,
        designs=designs,
        metric=metric,
        seed=seed,
        progress=progress or (lambda _stage, _done, _total: None),
        stated=Stated(margin=margin, smallest=smallest),
        large=LargeRequest.of(users, splits, memory),
    )
    with quietly(), ExitStack() as stack:
        if isinstance(data, Judged):
            judgments, data = data, None
        if runs is not None or judgments is not None:
            sizes = {"users": users, "splits": splits, "memory": memory, "filters": filters or None}
            absent = {"data": data, "algorithms": algorithms, "store": store, **sizes}
            check_absent(absent, "is for ratings: leave it out with judgments and runs")
            _check_list_settings(plan, workers, cluster, tune)
            if judgments is None or (runs is None and not isinstance(judgments, Judged)):
                raise SettingError("give both judgments=… and runs=…")
            judged = as_judged(
                judgments,
                runs,
                seed=seed or 0,
                train=train,
                liked=liked,
                above=above,
                gain=gain,
                loss=loss,
                relevance=relevance,
                events=events,
                weights=weights,
            )
            check_likes(judged.tests, judged.relevance)
            return audit_lists(judged, request, random, references)
        if data is None:
            raise SettingError("give ratings, or judgments=… and runs=…")
        check_absent({"train": train}, "is for judgments and runs: an audit of ratings splits them")
        if not references:
            raise SettingError("references=False is for judgments and runs")
        training = TrainingRequest(
            rules=Rules(liked, above, gain, loss, relevance),
            algorithms=algorithms,
            random=random,
            filters=(filters,) if isinstance(filters, Filter) else tuple(filters),
            tune=tune,
            store=None if store is None else Store.open(store),
            executor=stack.enter_context(executor(workers, cluster)),
        )
        source = _read(data, events, weights)
        return RatingsAudit.of(source, plan, request, training).carry_out()


def _check_list_settings(plan: object, workers: int, cluster: object, tune: bool) -> None:
    """Refuse settings that are for training: given lists stay as they are."""
    if workers != 1 or cluster is not None:
        name = "workers" if cluster is None else "cluster"
        raise SettingError(f"{name} is for ratings: given lists need one process")
    if not tune:
        raise SettingError("tune=False is for ratings: given lists stay as they are")
    if isinstance(plan, Plan):
        raise SettingError("a plan is for ratings: name a level with judgments and runs")


def _read(
    data: object, events: str | Sequence[str] | None, weights: Mapping[str, float] | None
) -> object:
    """Return data as they are, or an event log of which kinds of events were chosen."""
    if events is None and weights is None:
        return data
    # Ratings that were read already are refused there.
    rows = getattr(data, "ratings", data)
    return load(rows, events=events, weights=weights)


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingsAudit(RatingsInputs):
    """An audit of ratings, while it runs: splits, runs, the null experiment, lists, the truth."""

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
        core = self._core()
        designs = [design for design in self.chosen.designs if design.name in core.designs]
        analysis = Analysis(
            metric=self.metric,
            level=self.chosen.level,
            seed=self.plan.seed,
            attempts=self.attempts,
            progress=self.request.progress,
            implicit=core.implicit,
        )
        scores = core.warm_scores
        null = self._null([design for design in designs if self._may_be_null(design)], core)
        self.training.executor.rest()
        of_scores = analyse_scores(analysis, scores)
        of_lists = analyse_lists(analysis, self._judged(core.lists[0]), self._random)
        self.request.progress("statements", 0, 1)
        facts = AuditFacts(
            name=self.source.name,
            metric=self.metric,
            systems=core.systems,
            designs=core.designs,
            scores=scores,
            relevance=self.plan.relevance,
            evidence=self._evidence(core),
            data=summary(self._dataset()),
            bias=self._bias(core.implicit),
            lights=lights_of_splits(
                {design.split_key: design.split for design in designs}.values(),
                self.ratings,
                self.plan.seed,
            ),
            null=null,
            truth=self._truth(core),
            skipped={
                **self.attempts.failures,
                **({"dislikes": WITHOUT_DISLIKES} if core.implicit else {}),
            },
            assumed=(*self.chosen.assumed, *core_notes(core)),
            filter_effect=self._filter_effect(core),
            notes=tuple(dict.fromkeys((*self.ratings.notes, *map(str, self.ratings.steps)))),
            card=ratings_card(self, core, null),
            command=self._command(designs),
            # Of the first splits, with the settings that were chosen there.
            plans=tuple(
                replace(plan, algorithms=core.first_systems(plan.systems, members[0].name))
                for plan, members in plans_of(designs, self.plan).items()
            ),
        )
        self.request.progress("statements", 1, 1)
        return Audit.of(facts, of_scores, of_lists)

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

    def _evidence(self, core: Core) -> Evidence:
        """Work out what statements rest on."""
        return evidence_of(
            core,
            random=self._random,
            margin=self.request.stated.margin,
            smallest=self.request.stated.smallest,
            seed=self.plan.seed,
            attempts=self.attempts,
        )

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

    def _filter_effect(self, core: Core) -> Estimates | None:
        """Compare the systems on all ratings and on what filters left, under the first design."""
        unfiltered = self.unfiltered
        if unfiltered is None:
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
            bootstrap=self.chosen.level.bootstrap,
            level=LEVEL,
            seed=self.plan.seed,
        )

    # What is written down

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
