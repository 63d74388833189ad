"""An audit of lists that the user already has: nothing is trained, judgments are taken anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from unskew.auditing.analyses import (
    LEVEL,
    Analysis,
    Attempts,
    analyse_lists,
    analyse_scores,
)
from unskew.auditing.designs import METRICS
from unskew.auditing.measurements import AuditFacts
from unskew.auditing.null import REAL, NullExperiment
from unskew.auditing.reproduction import Choices, lists_command
from unskew.auditing.request import Request, check_ordering_metric, check_worth, least_liked
from unskew.auditing.result import Audit
from unskew.bias.describe import describe_bias
from unskew.checks import choose
from unskew.data.dataset import Dataset
from unskew.data.overview import summary
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.readers import read_ratings
from unskew.engine.rng import key_of as seed_of
from unskew.engine.versions import versions
from unskew.errors import SettingError
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.judging.judged import Judged
from unskew.splits.diagnose import diagnose_split
from unskew.splits.interventions import Skew, WtdH
from unskew.splits.split import Split
from unskew.worlds.nulls import redraw

AS_GIVEN = "as-given"
REJUDGED = {
    AS_GIVEN: "the lists and the judgments as they are",
    "test-items": "lists without items that nobody judged, as far as they reach",
    "test-targets": "lists of what the user judged only, as far as they reach",
    "skew": "judgments drawn against popularity in training",
    "wtd-h": "judgments drawn as if items and users were chosen at random",
}
"""The designs of given lists: what can be done without ranking anew."""


def audit_lists(given: Judged, request: Request) -> Audit:
    """Audit given lists: what needs training is left out."""
    level, seed, progress = request.level, request.seed or 0, request.progress
    progress("reading", 0, 1)
    if given.targets is not None:
        raise SettingError(
            "an audit of lists needs one list per user, not target lists: judge test ratings"
        )
    check_worth(given.tests, given.relevance)
    if len(given.systems) < 2:
        raise SettingError("an audit compares systems: give the lists of at least two")
    judged = _with_common_numbers(given)
    metric = check_ordering_metric(request.metric or METRICS[0])
    metrics = METRICS if metric in METRICS else (metric, *METRICS)
    attempts = Attempts(
        {
            "training on null data": "given lists cannot be made anew: only judgments are redrawn",
            "designs with splits and rankings of their own": "given lists cannot be made anew",
        }
    )
    scores = _rejudged(judged, metrics, request.designs, seed, attempts)
    progress("designs", 1, 1)
    null = attempts.attempt(
        "null experiment", lambda: _null_of_lists(judged, metrics, level.repeats, seed, scores)
    )
    progress("null experiment", 1, 1)
    analysis = Analysis(metric, level, seed, attempts, progress)
    of_scores = analyse_scores(analysis, scores)
    of_lists = analyse_lists(analysis, judged, None)
    tests, train, rule = judged.tests, judged.train, judged.relevance
    whole = tests if train is None else _together(tests, train)
    bias = attempts.attempt("bias", lambda: describe_bias(whole, liked=least_liked(rule, whole)))
    choices = Choices(level=level.name, designs=scores, metric=metric, relevance=rule, seed=seed)
    read = given.read
    facts = AuditFacts(
        name="judgments",
        metric=metric,
        systems=tuple(judged.systems),
        designs={name: REJUDGED[name] for name in scores},
        scores=scores,
        relevance=rule,
        data=summary(Dataset("judgments", whole, None, None, rule.threshold, notes=tests.notes)),
        bias=bias,
        splits={} if train is None else {"given": diagnose_split(Split(train, tests, "given"))},
        null=null,
        skipped=dict(attempts.failures),
        assumed=read.relevance,
        notes=tuple(dict.fromkeys((*read.tests, *read.train, *read.runs))),
        card=_card(judged, request, metrics, metric, scores),
        command=lists_command(choices, judged.systems, train is not None),
    )
    return Audit.of(facts, of_scores, of_lists)


def _card(
    judged: Judged, request: Request, metrics: Sequence[str], metric: str, designs: Iterable[str]
) -> dict[str, object]:
    tests, train, level = judged.tests, judged.train, request.level
    return {
        "data": {
            "judgments": len(tests),
            "fingerprint": tests.fingerprint,
            "train": None if train is None else train.fingerprint,
        },
        "systems": list(judged.systems),
        "level": level.name,
        "designs": list(designs),
        "relevance": judged.relevance.describe(),
        "metrics": list(metrics),
        "metric": metric,
        "seed": request.seed or 0,
        "null": {"null": "iid", "repeats": level.repeats},
        "permutations": level.permutations,
        "bootstrap": level.bootstrap,
        "versions": versions(),
    }


def _with_common_numbers(given: Judged) -> Judged:
    """Return test and training ratings as one split has them: draws go by their common numbers."""
    if given.train is None:
        return given
    tests, trained = under_one_numbering(given.tests, given.train)
    return given.with_ratings(tests, trained)


def _together(tests: Ratings, train: Ratings) -> Ratings:
    """Return all ratings there are, those of both parts once."""
    columns = [one.to_polars().select("user", "item", "rating") for one in (train, tests)]
    return read_ratings(pl.concat(columns), duplicates="first")


def _rejudged(
    judged: Judged,
    metrics: Iterable[str],
    designs: Sequence[str] | None,
    seed: int,
    attempts: Attempts,
) -> dict[str, tuple[Scores, ...]]:
    """Judge given lists in several ways; only the first design must succeed."""
    for name in designs or ():
        choose("design", name, REJUDGED)
    wanted = tuple(dict.fromkeys(designs or REJUDGED))
    scores: dict[str, tuple[Scores, ...]] = {}
    for name in wanted:
        measure = partial(_scores_of_design, judged, name, list(metrics), seed)
        result = measure() if name == wanted[0] else attempts.attempt(f"design {name}", measure)
        if result is not None:
            scores[name] = (result,)
    return scores


def _scores_of_design(judged: Judged, name: str, metrics: list[str], seed: int) -> Scores:
    tests, train = judged.tests, judged.train
    if name in ("test-items", "test-targets"):
        return evaluate(judged.only_judged_items(of_user=name == "test-targets"), metrics)
    if name in ("skew", "wtd-h"):
        if train is None:
            raise SettingError("needs the training ratings")
        change = Skew() if name == "skew" else WtdH()
        judged = judged.with_ratings(change.sample(tests, train, seed=seed).ratings, train)
    return evaluate(judged, metrics)


def _null_of_lists(
    judged: Judged,
    metrics: Iterable[str],
    repeats: int,
    seed: int,
    scores: Mapping[str, tuple[Scores, ...]],
) -> NullExperiment:
    """Judge the same lists by judgments whose values are drawn anew."""
    tests = judged.tests
    if len(np.unique(tests.value)) < 2:
        raise SettingError("all judgments have the same value: drawing them anew changes nothing")
    design = next(iter(scores))
    if design != AS_GIVEN:
        raise SettingError(f"is made for the design {AS_GIVEN}")
    rows = _means(scores[design][0], REAL, 0, design)
    for repeat in range(repeats):
        drawn = redraw(tests, "iid", seed_of(seed, "null", "iid", repeat) % (1 << 31))
        null = evaluate(judged.with_ratings(drawn, judged.train), list(metrics))
        rows += _means(null, "iid", repeat, design)
    note = "the systems are those of the data as they are: only the judgments are redrawn"
    schema = {
        "data": pl.String,
        "repeat": pl.Int64,
        "design": pl.String,
        "system": pl.String,
        "metric": pl.String,
        "value": pl.Float64,
        "random": pl.Float64,
    }
    return NullExperiment(pl.DataFrame(rows, schema=schema), ("iid",), repeats, LEVEL, (note,))


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
