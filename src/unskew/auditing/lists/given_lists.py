"""An audit of lists that the user already has: judged in several ways, beside reference systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from unskew.auditing.analyses import (
    LEVEL,
    Analysis,
    Attempts,
    ListAnalyses,
    ScoreAnalyses,
    analyse_lists,
    analyse_scores,
)
from unskew.auditing.core.core import USUAL_CUTOFF, Core, SplitLists
from unskew.auditing.lists.list_designs import (
    AS_GIVEN,
    REJUDGED,
    ListDesigns,
    Rejudged,
    in_a_row,
    known_chance,
)
from unskew.auditing.lists.list_inputs import (
    all_ratings,
    check_lists,
    cold_count,
    has_dislikes,
    metrics_within,
    on_split,
    outside_catalogue,
    reference_lists,
    shallowest,
    warm_users,
    with_common_numbers,
)
from unskew.auditing.measurements import lights_of_given
from unskew.auditing.null.null_experiment import null_estimates
from unskew.auditing.null.repeats import NULL_SCHEMA, REAL
from unskew.auditing.page.reproduction import (
    Choices,
    lists_code,
)
from unskew.auditing.request import Request, check_worth, least_liked
from unskew.auditing.result import Audit
from unskew.auditing.statements.evidence import Evidence, evidence_of
from unskew.auditing.user_groups import (
    group_card,
    grouped_evidence,
    stated_groups,
)
from unskew.bias.describe_bias import describe_bias
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import DEFAULT_GAIN
from unskew.data.summary import summary
from unskew.data.user_groups import UserGroups
from unskew.engine.rng import key_of as seed_of
from unskew.engine.system import versions
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.halving import TunedSystem
from unskew.judging.judged import Judged
from unskew.metrics.names import parse
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run
from unskew.splits.split import Split
from unskew.stats.compare.compare import compare
from unskew.stats.user_groups import group_notes, grouped_scores, rating_parts
from unskew.worlds.nulls import redraw

NEEDS_TRAINING = "needs the training ratings: give train=…"
ONE_SPLIT = (
    "several splits are not available for given lists: intervals are for these lists on new users"
)
NOT_RANKED = "given lists cannot be ranked again"


@dataclass(frozen=True, eq=False, kw_only=True)
class ListsAudit:
    """An audit of lists, while it runs."""

    judged: Judged
    """All lists, those of reference systems included, over one numbering."""
    user_systems: tuple[str, ...]
    """The systems of the user."""
    request: Request
    random: Ratings | None
    implicit: bool
    metric: str
    metrics: tuple[str, ...]
    depth: int
    """Items of the longest list of the system with the shortest lists."""
    tuned: Mapping[str, TunedSystem]
    """Reference systems whose settings were chosen on the training ratings."""
    assumed: tuple[str, ...]
    notes: tuple[str, ...]
    attempts: Attempts

    @classmethod
    def of(cls, judged: Judged, request: Request, random: object, references: bool) -> ListsAudit:
        """Check what is given, choose metrics that lists are deep enough for, add references.

        Parameters
        ----------
        judged
            Test ratings and ranked lists; with training ratings more can be said.
        request
            Metric, designs, level and seed.
        random
            Ratings of randomly chosen items, where there are any.
        references
            Whether reference systems are trained and stand beside the given ones.
        """
        request.progress("reading", 0, 1)
        random_ratings = None if random is None else read_ratings(random)
        # An audit chooses users and metrics itself: of a paper it takes the rule alone.
        inputs = replace(judged, paper="")
        check_lists(inputs, references)
        request.progress("reading", 1, 1)
        implicit = not any(
            has_dislikes(ratings, inputs.relevance)
            for ratings in (inputs.tests, inputs.train)
            if ratings is not None
        )
        assumed = list(inputs.read.relevance)
        if implicit and inputs.relevance.gain == DEFAULT_GAIN:
            inputs = inputs.with_relevance(replace(inputs.relevance, gain="binary"))
        if implicit and inputs.relevance.gain == "binary":
            assumed.append(
                "implicit feedback: no rating is a dislike, and every rating has a gain of 1"
            )
        check_worth(inputs.tests, inputs.relevance)
        judged = with_common_numbers(inputs)
        depth, shortest = shallowest(judged)
        metric, metrics, notes = metrics_within(depth, shortest, request.metric, implicit)
        attempts = Attempts({"designs with rankings of their own (1r, temporal, …)": NOT_RANKED})
        names = tuple(judged.systems)
        tuned: dict[str, TunedSystem] = {}
        if judged.train is None:
            notes.append("chance is not known for lists without training ratings: give train=…")
            attempts.failures["ladder"] = NEEDS_TRAINING
            if references:
                attempts.failures["reference systems"] = NEEDS_TRAINING
        else:
            notes += outside_catalogue(judged)
            if references:
                request.progress("references", 0, 1)
                seed = request.seed or 0
                runs, tuned = reference_lists(judged, metric, implicit, seed, attempts)
                request.progress("references", 1, 1)
                judged = judged.with_systems(runs)
        return cls(
            judged=judged,
            user_systems=names,
            request=request,
            random=random_ratings,
            implicit=implicit,
            metric=metric,
            metrics=metrics,
            depth=depth,
            tuned=tuned,
            assumed=tuple(assumed),
            notes=tuple(notes),
            attempts=attempts,
        )

    @property
    def seed(self) -> int:
        """Everything random follows from it."""
        return self.request.seed or 0

    @property
    def references(self) -> tuple[str, ...]:
        """The systems that stand beside those of the user."""
        return tuple(name for name in self.judged.systems if name not in self.user_systems)

    @cached_property
    def _designs(self) -> ListDesigns:
        return ListDesigns(
            judged=self.judged,
            metrics=self.metrics,
            metric=self.metric,
            cutoff=parse(self.metric).cutoff or self.depth,
            seed=self.seed,
            user_systems=self.user_systems,
        )

    def carry_out(self) -> Audit:
        """Do everything."""
        request, attempts = self.request, self.attempts
        request.progress("designs", 0, 1)
        groups = stated_groups(request.stated.group_users, rating_parts(self.judged))
        rejudged = self._designs.rejudge(request.designs, attempts)
        rejudged = replace(rejudged, scores=grouped_scores(rejudged.scores, groups))
        request.progress("designs", 1, 1)
        request.progress("null experiment", 0, 1)
        null = attempts.attempt("null experiment", lambda: self._null(rejudged))
        request.progress("null experiment", 1, 1)
        analysis = Analysis(
            metric=self.metric,
            level=request.level,
            seed=self.seed,
            attempts=attempts,
            progress=request.progress,
            depth=self.depth,
            groups=groups,
        )
        of_scores = analyse_scores(analysis, rejudged.scores)
        if self.implicit:
            attempts.failures["margins"] = "no rating is a dislike"
        of_lists = analyse_lists(analysis, self.judged, self.random)
        request.progress("statements", 0, 1)
        result = self._audit(rejudged, null, of_scores, of_lists, groups)
        request.progress("statements", 1, 1)
        return result

    def _audit(
        self,
        rejudged: Rejudged,
        null: Estimates | None,
        of_scores: ScoreAnalyses,
        of_lists: ListAnalyses,
        groups: UserGroups | None,
    ) -> Audit:
        """Return the result, with what is measured of the data themselves."""
        judged, attempts = self.judged, self.attempts
        tests, train, rule = judged.tests, judged.train, judged.relevance
        ratings = tests if train is None else all_ratings(tests, train)
        liked = least_liked(rule, ratings)
        bias = attempts.attempt(
            "bias", lambda: describe_bias(ratings, liked=liked, random=self.random)
        )
        name = "test ratings" if train is None else "training and test ratings"
        data = Dataset(name, ratings, self.random, None, rule.threshold, notes=tests.notes)
        return Audit(
            name=title_of(self.user_systems),
            metric=self.metric,
            systems=tuple(judged.systems),
            designs={design: REJUDGED[design] for design in rejudged.scores},
            scores=rejudged.scores,
            evidence=self._evidence(rejudged, groups),
            reach=rejudged.reach,
            segments=self._segments(rejudged),
            relevance=rule,
            data=summary(data),
            bias=bias,
            lights=lights_of_given(train, tests),
            null=null,
            skipped=dict(attempts.failures),
            assumed=self.assumed,
            notes=self._all_notes(rejudged, groups),
            card=self._card(rejudged.scores, null) | group_card(groups),
            command=self._command(rejudged.scores),
            **vars(of_scores),
            **vars(of_lists),
        )

    def _segments(self, rejudged: Rejudged) -> Estimates | None:
        """Compare the given systems by activity of users; None of one system, or one segment."""
        if len(self.user_systems) < 2 or AS_GIVEN not in rejudged.scores:
            return None
        scores = rejudged.scores[AS_GIVEN][0]
        user_scores = replace(
            scores, systems={name: scores.systems[name] for name in self.user_systems}
        )
        settings: dict[str, Any] = {"test": "t", "level": LEVEL, "seed": self.seed}
        return self.attempts.attempt(
            "segments of users",
            lambda: compare(user_scores, self.metric, by="activity", **settings),
        )

    def _evidence(self, rejudged: Rejudged, groups: UserGroups | None) -> Evidence:
        """Return what statements rest on."""
        evidence = evidence_of(
            self._core(rejudged),
            random=self.random,
            references=self.references,
            margin=self.request.stated.margin,
            smallest=self.request.stated.smallest,
            is_given=True,
            seed=self.seed,
            attempts=self.attempts,
        )
        return grouped_evidence(evidence, groups, self.random, self.attempts)

    def _core(self, rejudged: Rejudged) -> Core:
        """Return what statements rest on; lists only where the training ratings are known."""
        judged = self.judged
        lists: tuple[SplitLists, ...] = ()
        if judged.train is not None:
            split = Split(judged.train, judged.tests, "given")
            runs = {
                name: on_split(run, split, judged.depth)
                for name, run in judged.systems.items()
                if isinstance(run, Run)
            }
            lists = (SplitLists.of(split, runs),)
        return Core(
            metric=self.metric,
            k=parse(self.metric).cutoff or min(USUAL_CUTOFF, self.depth),
            relevance=judged.relevance,
            systems=tuple(judged.systems),
            designs={design: REJUDGED[design] for design in rejudged.scores},
            scores=rejudged.scores,
            warm={
                design: tuple(warm_users(part) for part in parts)
                for design, parts in rejudged.scores.items()
            },
            left_out=rejudged.left_out,
            lists=lists,
            implicit=self.implicit,
            seeds=(self.seed,),
        )

    def _all_notes(self, rejudged: Rejudged, groups: UserGroups | None) -> tuple[str, ...]:
        """Return what was noted while data were read, and what to know of this kind of audit."""
        read, references = self.judged.read, self.references
        random_notes = () if self.random is None else self.random.notes
        notes = [*read.tests, *read.train, *random_notes, *read.runs]
        notes += [ONE_SPLIT, *self.notes, *rejudged.notes]
        if references:
            systems = counted(len(references), "reference system is", "reference systems are")
            notes.append(
                f"{systems} trained on the training ratings and rank every item outside the user's "
                f"training ratings: {', '.join(references)}"
            )
            notes += [tuning_note(name, system) for name, system in self.tuned.items()]
            cold = cold_count(self.judged)
            if cold:
                notes.append(
                    f"{counted(cold, 'user has', 'users have')} test data but no training data: "
                    "reference systems that cannot score items for them recommend the most "
                    "rated items"
                )
        if self.judged.train is not None and known_chance(rejudged.scores):
            notes.append(
                "chance: the expected score of a random order of a design's items; for the "
                "lists as given, these are all items of the training and test ratings without "
                "the user's training items"
            )
        notes += group_notes(rating_parts(self.judged), groups)
        return tuple(dict.fromkeys(notes))

    def _null(self, rejudged: Rejudged) -> Estimates:
        """Judge the same lists by judgments whose values are drawn anew."""
        tests, rule = self.judged.tests, self.request.level.repeat_rule(self.metric)
        if self.implicit or len(np.unique(tests.value)) < 2:
            raise SettingError(
                "all judgments have the same value, so redrawing them changes nothing"
            )
        design = next(iter(rejudged.scores))
        if design != AS_GIVEN:
            raise SettingError(f"is for the design {AS_GIVEN}")

        def drawn_rows(repeat: int) -> list[dict[str, object]]:
            null_ratings = redraw(
                tests, "iid", seed_of(self.seed, "null", "iid", repeat) % (1 << 31)
            )
            anew = self.judged.with_ratings(null_ratings, self.judged.train)
            return _means(self._designs.scores_of(design, anew), "iid", repeat, design)

        rows = _means(rejudged.scores[design][0], REAL, 0, design)
        for repeat in range(rule.minimum):
            rows += drawn_rows(repeat)
        budget = rule.budget(pl.DataFrame(rows, schema=NULL_SCHEMA), LEVEL)
        for repeat in range(rule.minimum, budget.repeats):
            rows += drawn_rows(repeat)
        table = pl.DataFrame(rows, schema=NULL_SCHEMA)
        return null_estimates(table, ("iid",), budget, LEVEL, is_retrained=False)

    def _card(self, designs: Iterable[str], null: Estimates | None) -> dict[str, object]:
        judged, level = self.judged, self.request.level
        tests, train = judged.tests, judged.train
        return {
            "data": {
                "judgments": len(tests),
                "fingerprint": tests.fingerprint,
                "train": None if train is None else train.fingerprint,
                "random": None if self.random is None else self.random.fingerprint,
            },
            "systems": list(judged.systems),
            "references": list(self.references),
            "level": level.name,
            "designs": list(designs),
            "relevance": judged.relevance.describe(),
            "metrics": list(self.metrics),
            "metric": self.metric,
            "margin": self.request.stated.margin,
            "smallest": self.request.stated.smallest,
            "seed": self.seed,
            "null": None if null is None else dict(null.card),
            "permutations": level.permutations,
            "bootstrap": level.bootstrap,
            "versions": versions(),
        }

    def _command(self, designs: Iterable[str]) -> str:
        choices = Choices(
            level=self.request.level.name,
            designs=designs,
            metric=self.metric,
            relevance=self.judged.relevance,
            seed=self.seed,
            stated=self.request.stated,
            repeats=self.request.level.given_repeats,
        )
        inputs = {"train": self.judged.train, "random": self.random}
        return lists_code(
            choices,
            self.request.level,
            self.user_systems,
            [name for name, ratings in inputs.items() if ratings is not None],
            has_references=self.judged.train is None or bool(self.references),
        )


def title_of(systems: Sequence[str]) -> str:
    """Return whose lists are audited: at most a few names.

    Examples
    --------
    >>> from unskew.auditing.lists.given_lists import title_of
    >>> title_of(["old", "new"])
    'the lists of old and new'
    >>> title_of(["a", "b", "c", "d", "e"])
    'the lists of a, b, c and 2 others'
    """
    return f"the lists of {in_a_row(systems)}"


def tuning_note(name: str, tuned: TunedSystem) -> str:
    """Say which settings were chosen, out of how many, and by what."""
    if tuned.reason:
        return f"{name}: untuned, with its default settings ({tuned.reason})"
    text = (
        f"{name}: {tuned.text}, the best of {counted(tuned.tried, 'setting')} on a part of the "
        f"training ratings"
    )
    if tuned.edges:
        text += f"; values of {', '.join(tuned.edges)} beyond those tried may be better"
    return text


# The null experiment


def _means(scores: Scores, kind: str, repeat: int, design: str) -> list[dict[str, object]]:
    chance = scores.random()
    return [
        {
            "data": kind,
            "repeat": repeat,
            "design": design,
            "system": system,
            "metric": metric,
            "value": mean.value,
            "random": chance.get(metric),
        }
        for system, row in scores.averages().items()
        for metric, mean in row.items()
    ]
