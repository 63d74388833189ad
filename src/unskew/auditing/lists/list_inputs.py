"""Given lists as they are read: checked, numbered with their ratings, and how deep they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from unskew.arrays import Mask, frozen
from unskew.auditing.analyses import Attempts
from unskew.auditing.cold_users import warm_lists, with_fallback
from unskew.auditing.designs import METRICS
from unskew.auditing.request import check_ordering_metric, least_liked
from unskew.auditing.truth.sources import fit_all
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.halving import TunedSystem, tune_systems
from unskew.judging.judged import Judged
from unskew.judging.rank import rank
from unskew.metrics.names import parse
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN
from unskew.recommend.simple import Popularity, Random, SmoothedAverage
from unskew.report.text import counted
from unskew.runs import Run
from unskew.splits.split import Split
from unskew.targets.designs import AllItems


def check_lists(judged: Judged, references: bool) -> None:
    """Refuse what cannot be audited as lists."""
    if judged.targets is not None:
        raise SettingError(
            "an audit of lists needs one list per user, not target lists: judge test ratings"
        )
    if not len(judged.tests):
        raise SettingError("there are no test ratings to judge lists by")
    if len(judged.systems) < 2 and (judged.train is None or not references):
        raise SettingError(
            "an audit compares systems: give the lists of at least two, or of one with train=… "
            "and reference systems"
        )


def has_dislikes(ratings: Ratings, rule: Relevance) -> bool:
    """Tell whether some rating is a dislike."""
    return not bool(rule.is_liked(ratings.value).all())


def with_common_numbers(judged: Judged) -> Judged:
    """Return test and training ratings as one split has them: draws go by their common numbers.

    A given catalogue is part of the numbering, so that all of its items can be ranked.
    """
    if judged.train is None:
        return judged
    tests, train = under_one_numbering(judged.tests, judged.train)
    if judged.items is not None:
        items, (mine, _) = Ids.union(tests.items, Ids.number(judged.items)[0])
        users = np.arange(len(tests.users), dtype=np.int32)
        tests, train = (
            ratings.recode(ratings.users, users, items, mine) for ratings in (tests, train)
        )
    return judged.with_ratings(tests, train)


def all_ratings(tests: Ratings, train: Ratings) -> Ratings:
    """Return all ratings there are, those of both parts once."""
    columns = [part.to_polars().select("user", "item", "rating") for part in (train, tests)]
    return read_ratings(pl.concat(columns), duplicates="first")


# How deep the lists are


def shallowest(judged: Judged) -> tuple[int, str]:
    """Return how many items the longest list holds, of the system with the shortest, and whose."""
    longest = {
        name: int(run.depth.max(initial=0))
        for name, run in judged.systems.items()
        if isinstance(run, Run)
    }
    name = min(longest, key=lambda system: longest[system])
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
    usual = [metric for metric in METRICS if not (implicit and parse(metric).anti)]
    labels = [label for label in usual if (parse(label).cutoff or 0) <= depth]
    deeper = [label for label in usual if label not in (*labels, stated)]
    cutoff = min(depth, 10)
    if cutoff < 10:
        labels += [label.replace("@10", f"@{cutoff}") for label in usual if label.endswith("@10")]
    metric = check_ordering_metric(stated or f"P@{cutoff}")
    metrics = tuple(dict.fromkeys((metric, *labels)))
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
        items = run.item[run.item >= 0]
        count = int(np.count_nonzero(unknown[items]))
        if count:
            notes.append(
                f"{name}: {count:,} of {items.size:,} recommended items are in neither training "
                f"nor test ratings; they count as misses"
            )
    return notes


# The core


def cold_count(judged: Judged) -> int:
    """Count the users with test ratings and without training ratings."""
    assert judged.train is not None
    tested, trained = (np.diff(part.start) > 0 for part in (judged.tests, judged.train))
    return int(np.count_nonzero(tested & ~trained))


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
    >>> from unskew.auditing.lists.given_lists import on_split
    >>> data = us.read_ratings({"user": [1, 2, 3], "item": [7, 8, 9]})
    >>> split = us.Split(data, data)
    >>> run = on_split(us.read_run({3: [9, 5, 7], 4: [8]}), split)
    >>> run.start.tolist(), run.item.tolist()
    ([0, 0, 0, 3], [2, -1, 0])
    """
    users, items = split.test.users, split.test.items
    owner, code = users.codes(run.users.values), items.codes(run.items.values)
    depths = run.depth if depth is None else np.minimum(run.depth, depth)
    rows = np.flatnonzero(owner >= 0)
    rows = rows[np.argsort(owner[rows])]
    length = np.zeros(len(users), np.int64)
    length[owner[rows]] = depths[rows]
    start = np.append(0, np.cumsum(length))
    # Where each slot stands in the given run: the start of its list, and its place in the list.
    first = np.repeat(run.start[:-1][rows], depths[rows])
    offset = np.arange(int(start[-1])) - np.repeat(start[:-1], length)
    slot = run.item[first + offset]
    item = np.where(slot >= 0, code[slot], -1).astype(np.int32)
    return Run(users, items, frozen(start), frozen(item))


def reference_name(name: str, taken: Collection[str]) -> str:
    """Return what a reference system is called; no name that a system of the user has.

    Examples
    --------
    >>> from unskew.auditing.lists.list_inputs import reference_name
    >>> reference_name("popularity", ["mine", "popularity"])
    'popularity (reference)'
    >>> reference_name("popularity", ["popularity (reference)"])
    'popularity (reference 2)'
    """
    label, number = f"{name} (reference)", 1
    while label in taken:
        number += 1
        label = f"{name} (reference {number})"
    return label


def reference_lists(
    judged: Judged, metric: str, implicit: bool, seed: int, attempts: Attempts
) -> tuple[dict[str, Run], dict[str, TunedSystem]]:
    """Train reference systems, and rank as deep as the lists and the metric.

    Return the lists of each system by name, all alike: of users who have a list of the user's
    systems; and what was chosen for those that were tuned.

    Parameters
    ----------
    judged
        The given lists, with training ratings.
    metric
        By which item-kNN is tuned.
    implicit
        Whether nothing is disliked: then all averages are equal and order nothing.
    seed
        Of the training.
    attempts
        Notes systems that cannot be trained on these ratings.
    """
    assert judged.train is not None
    train, rule = judged.train, judged.relevance
    lists = AllItems().lists(Split(train, judged.tests, "given"), rule, seed=seed)
    runs = [run for run in judged.systems.values() if isinstance(run, Run)]
    deepest = max(int(run.depth.max(initial=1)) for run in runs)
    depth = max(deepest, parse(metric).cutoff or 1)
    users = np.diff(judged.tests.start) > 0
    for run in runs:
        code = judged.tests.users.codes(run.users.values)
        users[code[(code >= 0) & (run.depth > 0)]] = True
    average = () if implicit else (SmoothedAverage(liked=least_liked(rule, train)),)
    algorithms: dict[str, Algorithm] = {
        reference_name(algorithm.name, judged.systems): algorithm
        for algorithm in (Popularity(), *average, ItemKNN(), Random())
    }
    personal = {name: system for name, system in algorithms.items() if isinstance(system, ItemKNN)}
    tuned = attempts.attempt(
        "tuning of reference systems",
        lambda: tune_systems(personal, train, rule, metric, seed=seed),
    )

    def ranked(system: Algorithm) -> Run:
        model = fit_all({system.name: system}, lists.train, seed, "references")[system.name]
        ranker = with_fallback(model, lists.train)
        return _of_users(rank(ranker, lists, depth, seed=seed), users)

    references = {}
    for label, algorithm in algorithms.items():
        system = tuned[label].algorithm if tuned and label in tuned else algorithm
        trained = attempts.attempt(f"reference system {algorithm.name}", partial(ranked, system))
        if trained is not None:
            references[label] = trained
    return references, dict(tuned or {})


def _of_users(run: Run, users: Mask) -> Run:
    """Return the lists of some users."""
    depth = run.depth
    return replace(
        run,
        users=Ids(run.users.raw(np.flatnonzero(users).astype(np.int32))),
        start=frozen(np.append(0, np.cumsum(depth[users]))),
        item=frozen(run.item[np.repeat(users, depth)]),
        score=None,
        notes=(),
        ranked_for=None,
    )
