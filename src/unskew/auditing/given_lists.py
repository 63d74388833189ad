"""An audit of lists that the user already has: judged in several ways, beside reference systems."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from unskew.arrays import Mask, frozen
from unskew.auditing.analyses import LEVEL, Analysis, Attempts, analyse_lists, analyse_scores
from unskew.auditing.cold_users import warm_lists
from unskew.auditing.core import USUAL_CUTOFF, Core, SplitLists
from unskew.auditing.designs import METRICS
from unskew.auditing.list_designs import (
    AS_GIVEN,
    REJUDGED,
    ListDesigns,
    Rejudged,
    in_a_row,
    known_chance,
)
from unskew.auditing.measurements import AuditFacts
from unskew.auditing.null import REAL, NullExperiment
from unskew.auditing.reference_systems import References
from unskew.auditing.reproduction import Choices, ListSources, lists_command
from unskew.auditing.request import Request, check_ordering_metric, check_worth, least_liked
from unskew.auditing.result import Audit
from unskew.bias.describe import describe_bias
from unskew.data.dataset import Dataset
from unskew.data.overview import summary
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.readers import read_ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import key_of as seed_of
from unskew.engine.versions import versions
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.metrics.names import parse
from unskew.report.text import counted
from unskew.runs import Run
from unskew.splits.diagnose import diagnose_split
from unskew.splits.split import Split
from unskew.targets.designs import AllItems
from unskew.worlds.nulls import redraw

NEEDS_TRAINING = "needs the training ratings: give train=…"
ONE_SPLIT = (
    "several splits are not available for given lists: intervals are for these lists on new users"
)
NOT_RANKED = "given lists cannot be ranked anew"


def audit_lists(
    given: Judged, request: Request, random: object = None, references: bool = True
) -> Audit:
    """Audit given lists.

    Parameters
    ----------
    given
        Test ratings and ranked lists; with training ratings more can be said.
    request
        Metric, designs, level and seed.
    random
        Ratings of randomly chosen items, where there are any.
    references
        Whether reference systems are trained and stand beside the given ones.
    """
    request.progress("reading", 0, 1)
    shown = None if random is None else read_ratings(random)
    return ListsAudit.of(given, request, shown, references).carry_out()


@dataclass(frozen=True, eq=False, kw_only=True)
class ListsAudit:
    """An audit of lists, while it runs."""

    judged: Judged
    """All lists, those of reference systems included, over one numbering."""
    given: tuple[str, ...]
    """The systems of the user."""
    request: Request
    random: Ratings | None
    implicit: bool
    metric: str
    metrics: tuple[str, ...]
    depth: int
    """Items of the longest list of the system with the shortest lists."""
    assumed: tuple[str, ...]
    notes: tuple[str, ...]
    attempts: Attempts

    @classmethod
    def of(
        cls, given: Judged, request: Request, random: Ratings | None, references: bool
    ) -> ListsAudit:
        """Check what is given, choose metrics that lists are deep enough for, add references."""
        check_lists(given, references)
        implicit = not any(
            _has_dislikes(one, given.relevance)
            for one in (given.tests, given.train)
            if one is not None
        )
        assumed = list(given.read.relevance)
        if implicit and given.relevance.gain == "rating":
            given = given.with_relevance(replace(given.relevance, gain="binary"))
            assumed.append("implicit feedback: no rating is a dislike; every one has the gain 1")
        check_worth(given.tests, given.relevance)
        judged = with_common_numbers(given)
        depth, shortest = shallowest(judged)
        metric, metrics, notes = metrics_within(depth, shortest, request.metric, implicit)
        attempts = Attempts({"designs with rankings of their own (1r, temporal, …)": NOT_RANKED})
        names = tuple(judged.systems)
        if judged.train is None:
            notes.append("chance is not known for lists without training ratings: give train=…")
            attempts.failures["ladder"] = NEEDS_TRAINING
            if references:
                attempts.failures["reference systems"] = NEEDS_TRAINING
        else:
            notes += outside_catalogue(judged)
            if references:
                judged = with_references(judged, metric, implicit, request.seed or 0, attempts)
        return cls(
            judged=judged,
            given=names,
            request=request,
            random=random,
            implicit=implicit,
            metric=metric,
            metrics=metrics,
            depth=depth,
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
        return tuple(name for name in self.judged.systems if name not in self.given)

    @cached_property
    def _designs(self) -> ListDesigns:
        return ListDesigns(
            judged=self.judged,
            metrics=self.metrics,
            metric=self.metric,
            cutoff=parse(self.metric).cutoff or self.depth,
            seed=self.seed,
            given=self.given,
        )

    def carry_out(self) -> Audit:
        """Do everything."""
        request, attempts = self.request, self.attempts
        request.progress("reading", 1, 1)
        rejudged = self._designs.rejudge(request.designs, attempts)
        request.progress("designs", 1, 1)
        null = attempts.attempt("null experiment", lambda: self._null(rejudged))
        request.progress("null experiment", 1, 1)
        analysis = Analysis(
            self.metric, request.level, self.seed, attempts, request.progress, self.depth
        )
        of_scores = analyse_scores(analysis, rejudged.scores)
        if self.implicit:
            attempts.failures["margins"] = "no rating is a dislike"
        of_lists = analyse_lists(analysis, self.judged, self.random)
        return Audit.of(self._facts(rejudged, null), of_scores, of_lists)

    def _facts(self, rejudged: Rejudged, null: NullExperiment | None) -> AuditFacts:
        judged, attempts = self.judged, self.attempts
        tests, train, rule = judged.tests, judged.train, judged.relevance
        whole = tests if train is None else _together(tests, train)
        liked = least_liked(rule, whole)
        bias = attempts.attempt(
            "bias", lambda: describe_bias(whole, liked=liked, random=self.random)
        )
        name = "test ratings" if train is None else "training and test ratings"
        data = Dataset(name, whole, self.random, None, rule.threshold, notes=tests.notes)
        splits = {} if train is None else {"given": diagnose_split(Split(train, tests, "given"))}
        return AuditFacts(
            name=title_of(self.given),
            metric=self.metric,
            systems=tuple(judged.systems),
            references=self.references,
            designs={design: REJUDGED[design] for design in rejudged.scores},
            scores=rejudged.scores,
            left_out=rejudged.left_out,
            core=self._core(rejudged),
            reach=rejudged.reach,
            random=self.random,
            implicit=self.implicit,
            relevance=rule,
            data=summary(data),
            bias=bias,
            splits=splits,
            null=null,
            skipped=dict(attempts.failures),
            assumed=self.assumed,
            notes=self._all_notes(rejudged),
            card=self._card(rejudged.scores),
            command=self._command(rejudged.scores),
        )

    def _core(self, rejudged: Rejudged) -> Core:
        """Return what statements rest on; without training ratings there is no split to speak of."""
        judged = self.judged
        lists: tuple[SplitLists, ...] = ()
        if judged.train is not None:
            split = Split(judged.train, judged.tests, "given")
            runs = {
                name: on_split(run, split, judged.depth)
                for name, run in judged.systems.items()
                if isinstance(run, Run)
            }
            lists = (SplitLists(split=split, runs=runs),)
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

    def _all_notes(self, rejudged: Rejudged) -> tuple[str, ...]:
        """Return what was noted while data were read, and what to know of this kind of audit."""
        read, references = self.judged.read, self.references
        notes = [*read.tests, *read.train, *read.runs, ONE_SPLIT, *self.notes, *rejudged.notes]
        if references:
            systems = counted(len(references), "reference system is", "reference systems are")
            notes.append(
                f"{systems} trained on the training ratings, with default settings, and rank every "
                f"item outside the user's training ratings: {', '.join(references)}"
            )
        if self.judged.train is not None and known_chance(rejudged.scores):
            notes.append(
                "chance: what a random order of the items of a design is expected to score; for "
                "the lists as given, of all items of training and test ratings outside the user's "
                "training ratings"
            )
        return tuple(dict.fromkeys(notes))

    def _null(self, rejudged: Rejudged) -> NullExperiment:
        """Judge the same lists by judgments whose values are drawn anew."""
        tests, repeats = self.judged.tests, self.request.level.repeats
        if self.implicit or len(np.unique(tests.value)) < 2:
            raise SettingError("all judgments say the same: drawing them anew changes nothing")
        design = next(iter(rejudged.scores))
        if design != AS_GIVEN:
            raise SettingError(f"is for the design {AS_GIVEN}")
        rows = _means(rejudged.scores[design][0], REAL, 0, design)
        for repeat in range(repeats):
            drawn = redraw(tests, "iid", seed_of(self.seed, "null", "iid", repeat) % (1 << 31))
            anew = self.judged.with_ratings(drawn, self.judged.train)
            rows += _means(self._designs.scores_of(design, anew), "iid", repeat, design)
        table = pl.DataFrame(rows, schema=NULL_SCHEMA)
        return NullExperiment(table, ("iid",), repeats, LEVEL, retrained=False)

    def _card(self, designs: Iterable[str]) -> dict[str, object]:
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
            "seed": self.seed,
            "null": {"null": "iid", "repeats": level.repeats},
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
        )
        sources = ListSources(
            systems=self.given,
            with_train=self.judged.train is not None,
            with_random=self.random is not None,
            with_references=self.judged.train is None or bool(self.references),
        )
        return lists_command(choices, sources)


# What is given


def check_lists(given: Judged, references: bool) -> None:
    """Refuse what cannot be audited as lists."""
    if given.targets is not None:
        raise SettingError(
            "an audit of lists needs one list per user, not target lists: judge test ratings"
        )
    if not len(given.tests):
        raise SettingError("there are no test ratings to judge lists by")
    if len(given.systems) < 2 and (given.train is None or not references):
        raise SettingError(
            "an audit compares systems: give the lists of at least two, or of one with train=… "
            "and reference systems"
        )


def _has_dislikes(ratings: Ratings, rule: Relevance) -> bool:
    return not bool(rule.is_liked(ratings.value).all())


def with_common_numbers(given: Judged) -> Judged:
    """Return test and training ratings as one split has them: draws go by their common numbers.

    A given catalogue is part of the numbering, so that all of its items can be ranked.
    """
    if given.train is None:
        return given
    tests, train = under_one_numbering(given.tests, given.train)
    if given.items is not None:
        items, (mine, _) = Ids.union(tests.items, Ids.number(given.items)[0])
        users = np.arange(len(tests.users), dtype=np.int32)
        tests, train = (one.recode(one.users, users, items, mine) for one in (tests, train))
    return given.with_ratings(tests, train)


def _together(tests: Ratings, train: Ratings) -> Ratings:
    """Return all ratings there are, those of both parts once."""
    columns = [one.to_polars().select("user", "item", "rating") for one in (train, tests)]
    return read_ratings(pl.concat(columns), duplicates="first")


def title_of(systems: Sequence[str]) -> str:
    """Return whose lists are audited: at most a few names.

    Examples
    --------
    >>> from unskew.auditing.given_lists import title_of
    >>> title_of(["old", "new"])
    'the lists of old and new'
    >>> title_of(["a", "b", "c", "d", "e"])
    'the lists of a, b, c and 2 others'
    """
    return f"the lists of {in_a_row(systems)}"


# How deep the lists are


def shallowest(judged: Judged) -> tuple[int, str]:
    """Return how many items the longest list holds, of the system with the shortest, and whose."""
    longest = {
        name: int(run.depth.max(initial=0))
        for name, run in judged.systems.items()
        if isinstance(run, Run)
    }
    name = min(longest, key=lambda one: longest[one])
    depth = longest[name] if judged.depth is None else min(longest[name], judged.depth)
    return max(depth, 1), name


def metrics_within(
    depth: int, shortest: str, stated: str | None, implicit: bool
) -> tuple[str, tuple[str, ...], list[str]]:
    """Return the metric that orders systems, all metrics, and notes on those left out.

    A metric that looks deeper than the lists gives every system the same misses: it is measured
    only where the user asks for it.

    Parameters
    ----------
    depth
        Items of the longest list of the system with the shortest lists.
    shortest
        This system.
    stated
        The metric that the user asks for, if any.
    implicit
        Whether nothing is disliked: then metrics of disliked items are left out.
    """
    usual = [one for one in METRICS if not (implicit and parse(one).anti)]
    within = [one for one in usual if (parse(one).cutoff or 0) <= depth]
    deeper = [one for one in usual if one not in (*within, stated)]
    cutoff = min(depth, 10)
    if cutoff < 10:
        within += [one.replace("@10", f"@{cutoff}") for one in usual if one.endswith("@10")]
    metric = check_ordering_metric(stated or f"P@{cutoff}")
    metrics = tuple(dict.fromkeys((metric, *within)))
    notes = []
    if deeper:
        count = counted(len(deeper), "metric that looks", "metrics that look")
        verb = "is" if len(deeper) == 1 else "are"
        notes.append(
            f"the lists of {shortest} hold at most {counted(depth, 'item')}: {count} deeper {verb} "
            f"left out ({', '.join(deeper)})"
        )
    return metric, metrics, notes


def outside_catalogue(judged: Judged) -> list[str]:
    """Say of each system how many of its recommended items no rating knows."""
    notes = []
    for name, run in judged.systems.items():
        assert isinstance(run, Run)
        unknown = judged.tests.items.codes(run.items.values) < 0
        shown = run.item[run.item >= 0]
        count = int(np.count_nonzero(unknown[shown]))
        if count:
            notes.append(
                f"{name}: {count:,} of {shown.size:,} recommended items are in neither training "
                f"nor test ratings; they count as misses"
            )
    return notes


def with_references(
    judged: Judged, metric: str, implicit: bool, seed: int, attempts: Attempts
) -> Judged:
    """Return judged data with reference systems, ranked as deep as the lists and the metric."""
    assert judged.train is not None
    split = Split(judged.train, judged.tests, "given")
    lists = AllItems().lists(split, judged.relevance, seed=seed)
    references = References(
        liked=least_liked(judged.relevance, judged.train), is_implicit=implicit, seed=seed
    )
    deepest = max(int(run.depth.max(initial=1)) for run in judged.systems.values())  # type: ignore[union-attr]
    depth = max(deepest, parse(metric).cutoff or 1)
    return judged.with_systems(references.runs(lists, depth, names_of(judged), attempts))


def names_of(judged: Judged) -> Collection[str]:
    """Return the names of all systems."""
    return tuple(judged.systems)


# The core


def warm_users(scores: Scores) -> Mask:
    """Tell which lists belong to users with a training rating.

    All of them where nobody with test ratings has one, or training ratings are not known: nothing
    can be told apart then.
    """
    if "train" in scores.lists.columns:
        warm = warm_lists(scores)
        if (warm & (scores.lists["test"].to_numpy() > 0)).any():
            return warm
    return np.ones(scores.lists.height, np.bool_)


def on_split(run: Run, split: Split, depth: int | None = None) -> Run:
    """Return given lists under the numbers of a split: a list for each of its users.

    Items that the split does not know are empty slots, lists of users that it does not know are
    left out.

    Parameters
    ----------
    run
        The lists.
    split
        Whose users and items.
    depth
        No more than so many items of each list are looked at.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.given_lists import on_split
    >>> data = us.read_ratings({"user": [1, 2, 3], "item": [7, 8, 9]})
    >>> split = us.splits.Split(data, data)
    >>> run = on_split(us.read_run({3: [9, 5, 7], 4: [8]}), split)
    >>> run.start.tolist(), run.item.tolist()
    ([0, 0, 0, 3], [2, -1, 0])
    """
    users, items = split.test.users, split.test.items
    place, code = users.codes(run.users.values), items.codes(run.items.values)
    held = run.depth if depth is None else np.minimum(run.depth, depth)
    known = np.flatnonzero(place >= 0)
    known = known[np.argsort(place[known])]
    length = np.zeros(len(users), np.int64)
    length[place[known]] = held[known]
    start = np.append(0, np.cumsum(length))
    # Where each slot stands in the given run: the start of its list, and its place in the list.
    first = np.repeat(run.start[:-1][known], held[known])
    within = np.arange(int(start[-1])) - np.repeat(start[:-1], length)
    slot = run.item[first + within]
    item = np.where(slot >= 0, code[slot], -1).astype(np.int32)
    return Run(users, items, frozen(start), frozen(item))


# The null experiment

NULL_SCHEMA = {
    "data": pl.String,
    "repeat": pl.Int64,
    "design": pl.String,
    "system": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "random": pl.Float64,
}


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
