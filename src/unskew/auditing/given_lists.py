"""An audit of lists that the user already has: nothing is trained, judgments are taken anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import frozen
from unskew.auditing.analyses import (
    Findings,
    Progress,
    Rules,
    at_least,
    check_worth,
    orders_systems,
    tried,
)
from unskew.auditing.designs import METRICS, Level
from unskew.auditing.measurements import LEVEL
from unskew.auditing.null import REAL, NullExperiment
from unskew.bias.describe import describe_bias
from unskew.checks import choose
from unskew.data.dataset import Dataset
from unskew.data.overview import summary
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.readers import read_ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import key_of as seed_of
from unskew.engine.versions import versions
from unskew.errors import SettingError
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.judging.reading import read_runs
from unskew.runs import Run
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


def of_runs(
    judgments: object,
    runs: object,
    train: object,
    rules: Rules,
    level: Level,
    designs: Sequence[str] | None,
    metric: str | None,
    seed: int,
    told: Progress,
) -> dict[str, Any]:
    """Audit given lists: what needs training is left out. Return the fields of `Found`."""
    told("reading", 0, 1)
    tests = judgments if isinstance(judgments, Ratings) else read_ratings(judgments)
    trained = None if train is None else read_ratings(train)
    sources: list[Ratings | Run] = [tests, *([] if trained is None else [trained])]
    if trained is not None:
        tests, trained = under_one_numbering(tests, trained)
    rule, assumed = rules.of(tests)
    check_worth(tests, rule)
    lists = read_runs(runs, None, seed, (tests.users, tests.items))
    if len(lists) < 2:
        raise SettingError("an audit compares systems: give the lists of at least two")
    notes = tuple(dict.fromkeys(note for one in (*sources, *lists.values()) for note in one.notes))
    label = orders_systems(metric or METRICS[0])
    metrics = METRICS if label in METRICS else (label, *METRICS)
    skipped = {
        "training on null data": "given lists cannot be made anew: only judgments are redrawn",
        "designs with splits and rankings of their own": "given lists cannot be made anew",
    }
    scores = _rejudged(tests, lists, trained, rule, metrics, designs, seed, skipped)
    told("designs", 1, 1)
    found = Findings(label, level, seed, skipped, told)
    null = found.tried(
        "null experiment",
        lambda: _null_of_runs(tests, lists, trained, rule, metrics, level.repeats, seed, scores),
    )
    told("null experiment", 1, 1)
    common = next(iter(scores))
    whole = tests if trained is None else _together(tests, trained)
    dataset = Dataset("judgments", whole, None, None, rule.threshold, notes=tests.notes)
    splits = {}
    if trained is not None:
        splits = {"given": diagnose_split(Split(trained, tests, "given"))}
    measured = {
        **found.of_scores(scores),
        **found.of_lists(tests, lists, trained, None, rule),
        "data": summary(dataset),
        "bias": found.tried("bias", lambda: describe_bias(whole, liked=at_least(rule, whole))),
        "splits": splits,
    }
    card = {
        "data": {
            "judgments": len(tests),
            "fingerprint": tests.fingerprint,
            "train": None if trained is None else trained.fingerprint,
        },
        "systems": list(lists),
        "level": level.name,
        "designs": list(scores),
        "relevance": rule.describe(),
        "metrics": list(metrics),
        "metric": label,
        "seed": seed,
        "null": {"null": "iid", "repeats": level.repeats},
        "permutations": level.permutations,
        "bootstrap": level.bootstrap,
        "versions": versions(),
    }
    return {
        "name": "judgments",
        "metric": label,
        "systems": tuple(scores[common][0].systems),
        "designs": {name: REJUDGED[name] for name in scores},
        "scores": scores,
        "relevance": rule,
        "null": null,
        "skipped": dict(skipped),
        "assumed": tuple(assumed),
        "notes": notes,
        "card": card,
        **measured,
    }


def _together(tests: Ratings, train: Ratings) -> Ratings:
    """Return all ratings there are, those of both parts once."""
    columns = [one.to_polars().select("user", "item", "rating") for one in (train, tests)]
    return read_ratings(pl.concat(columns), duplicates="first")


def _rejudged(
    tests: Ratings,
    runs: Mapping[str, Run],
    train: Ratings | None,
    rule: Relevance,
    metrics: Iterable[str],
    designs: Sequence[str] | None,
    seed: int,
    skipped: dict[str, str],
) -> dict[str, tuple[Scores, ...]]:
    """Judge given lists in several ways."""
    for name in designs or ():
        choose("design", name, REJUDGED)
    wanted = tuple(dict.fromkeys(designs or REJUDGED))
    found: dict[str, tuple[Scores, ...]] = {}
    for name in wanted:

        def judged(name: str = name) -> Scores:
            lists: Mapping[str, Any] = runs
            judging = tests
            if name in ("test-items", "test-targets"):
                of_user = name == "test-targets"
                lists = {system: _judged(one, tests, of_user) for system, one in runs.items()}
            elif name in ("skew", "wtd-h"):
                if train is None:
                    raise SettingError("needs the training ratings")
                change = Skew() if name == "skew" else WtdH()
                judging = change.sample(tests, train, seed=seed).ratings
            return evaluate(judging, lists, list(metrics), relevance=rule, train=train, seed=seed)

        if name == wanted[0]:
            found[name] = (judged(),)
        else:
            made = tried(skipped, f"design {name}", judged)
            if made is not None:
                found[name] = (made,)
    return found


def _judged(run: Run, tests: Ratings, of_user: bool) -> Run:
    """Return the lists without items that nobody judged, or that their user did not judge.

    A list that loses all of its items stays, as an empty one.
    """
    _, (test_users, run_users) = Ids.union(tests.users, run.users)
    items, (test_items, run_items) = Ids.union(tests.items, run.items)
    judged = test_items[tests.item].astype(np.int64)
    listed = run_items[run.item].astype(np.int64)
    if of_user:
        owner = np.repeat(np.arange(len(run), dtype=np.int32), run.depth)
        judged += len(items) * test_users[tests.user].astype(np.int64)
        listed += len(items) * run_users[owner].astype(np.int64)
    kept = (run.item >= 0) & np.isin(listed, judged)
    start = np.append(0, np.cumsum(kept))[run.start]
    return Run(run.users, run.items, frozen(start), frozen(run.item[kept]))


def _null_of_runs(
    tests: Ratings,
    runs: Mapping[str, Run],
    train: Ratings | None,
    rule: Relevance,
    metrics: Iterable[str],
    repeats: int,
    seed: int,
    scores: Mapping[str, tuple[Scores, ...]],
) -> NullExperiment:
    """Judge the same lists by judgments whose values are drawn anew."""
    if len(np.unique(tests.value)) < 2:
        raise SettingError("all judgments have the same value: drawing them anew changes nothing")
    design = next(iter(scores))
    if design != AS_GIVEN:
        raise SettingError(f"is made for the design {AS_GIVEN}")
    rows = _means(scores[design][0], REAL, 0, design)
    for repeat in range(repeats):
        own = seed_of(seed, "null", "iid", repeat) % (1 << 31)
        drawn = redraw(tests, "iid", own)
        made = evaluate(drawn, runs, list(metrics), relevance=rule, train=train, seed=seed)
        rows += _means(made, "iid", repeat, design)
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


def _means(scores: Scores, kind: str, repeat: int, design: str) -> list[dict[str, Any]]:
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
