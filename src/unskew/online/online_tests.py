"""`online_tests`: how often tests, online and offline, find the truly better system.

Worlds are drawn many times; each time systems are trained, and A/B tests, interleaving and
multileaving are done with ever more impressions, beside what offline designs say of the same
systems (castells2018 section 5.3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.engine.rng import key_of
from unskew.errors import SettingError, quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.online.ab_tests import (
    PairEffects,
    ab_counts,
    effects_of_counts,
    effects_of_users,
    effects_of_wins,
    pairs_of,
)
from unskew.online.click_models import Behaviour, Clicks, Feedback, ForcedExposure, behaviour_of
from unskew.online.interleaving import wins_of
from unskew.online.judgment_reuse import judge_again
from unskew.online.top_lists import LEVEL, K, Systems, TopLists, named_systems, top_lists
from unskew.recommend.model import Algorithm
from unskew.report.columns import (
    HIGH,
    LOW,
    PAIR,
    QUANTITY,
    VALUE,
    Column,
    Drawing,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.splits.random import Random
from unskew.splits.split import Split, Splitter
from unskew.stats.clusters import share_interval
from unskew.stats.intervals.means import mean_interval
from unskew.stats.pairing import paired
from unskew.targets.designs import AllItems, Targets, TestTargets
from unskew.worlds.worlds import World

OFFLINE = "offline"
KEYS = (
    *(Column("world", "key"), Column("feedback", "key"), Column("test", "key")),
    Column("impressions", "axis", form="log"),
)
NAMES = tuple(column.name for column in KEYS)
TRUTH = Column("true_difference", "fact", "true P@k, a − b", form="+")
DIFFERENCE = Column("value", "value", "a − b", form="+")
TESTS = Question(
    name="online and offline tests",
    columns=(*KEYS, Column("pairs", "count"), QUANTITY, VALUE, LOW, HIGH),
    quantities=tuple(Column(name, "value") for name in ("right", "found", "wrong", "right_half")),
    method=Method(
        estimand="the share of pairs of systems that a test puts in their true order",
        unit="repeats",
        interval="Wilson with an effective number of pairs",
    ),
    figures=(Drawing("right", "lines"),),
    digits=2,
)
PAIRS = Question(
    name="pairs of systems",
    columns=(
        *(*KEYS, *PAIR, DIFFERENCE, TRUTH),
        *(Column(name, "share") for name in ("right", "found", "wrong")),
    ),
    method=Method(estimand="the difference of two systems in tests, a − b, over repeats"),
)
TRIALS = Question(
    name="pairs of systems in each repeat",
    columns=(
        *(*KEYS, Column("repeat", "axis"), *PAIR, DIFFERENCE, P, TRUTH),
        Column("true_half", "fact", form="+"),
    ),
    method=Method(estimand="the difference of two systems in a test, a − b", test="of each test"),
)
REUSE = Question(
    name="judgments of a test used for a system left out",
    columns=(*KEYS[:2], QUANTITY, VALUE, LOW, HIGH),
    quantities=(
        *(Column("judged", "fact"), Column("error", "value", form="+")),
        *(Column(name, "fact", form="+") for name in ("condensed_error", "error_inside")),
        *(Column(name, "value") for name in ("wrong", "wrong_inside")),
    ),
    method=Method(
        estimand="what judgments of an A/B test say of a system that did not take part",
        unit="repeats",
        interval="t; of shares Wilson",
    ),
)
NEEDED = Question(
    name="impressions needed",
    columns=(
        *(*KEYS[:3], Column("value", "value", "impressions")),
        Column("surely", "fact"),
    ),
    method=Method(estimand="the impressions from which on a test is right often enough"),
    figures=(),
    digits=0,
)


Designs = Mapping[str, tuple[Splitter, Targets]]


METHODS = ("ab", "forced-ab", "team-draft", "balanced", "multileave")
"""Kinds of test; all but `forced-ab`, which judges by what is true, are done with free clicks."""


IMPRESSIONS = (100, 1_000, 10_000)


@notebook_progress("online tests")
@checked
def online_tests(
    worlds: World | Mapping[str, World],
    systems: Systems,
    impressions: int | Sequence[int] = IMPRESSIONS,
    feedback: Clicks | Mapping[str, Clicks] = Clicks(),  # noqa: B008 - frozen
    *,
    methods: Sequence[str] = METHODS,
    designs: Designs | None = None,
    k: int = K,
    repeats: int = 10,
    level: float = LEVEL,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimates:
    """Try online tests and offline designs in worlds whose truth is known.

    In each repeat every world is drawn anew and systems are trained on its observed ratings. All
    pairs of systems are then compared: by each kind of online test with a growing number of
    impressions, and by each offline design, which splits the same ratings and trains the systems on
    its training part. What is true is always P@k, over all pairs of users and unrated items, of the
    systems as they are shown online. In addition each system is left out of an A/B test in which
    every user sees every other one, and judged by what that test gathered.

    Parameters
    ----------
    worlds
        A world, or several by name.
    systems
        Algorithms: a list, or a mapping from names.
    impressions
        How many, from small to large.
    feedback
        What users do in tests with free clicks: `Clicks(…)`, or several by name.
    methods
        Some of `METHODS`.
    designs
        Offline designs by name, each a way to split and target items, scored by P@k over all users.
        Unless given a random fifth as test part, with all items and with test targets; {} for none.
    k
        How many items are shown, and the cutoff offline.
    repeats
        How often.
    level
        Of the intervals over repeats; a difference is significant if p < 1 - level, of each pair by
        itself: how often a test is wrong does not depend on how many other pairs there are.
    seed
        Same seed, same result.
    progress
        Called with (done, total) after each world and repeat.

    Returns
    -------
    Estimates
        A row per world, feedback, test, number of impressions (null for offline designs) and
        quantity: the share of pairs in which the truly better system is ahead (`right`), in which
        it is significantly (`found`), in which the other one is, significantly (`wrong`). Pairs
        that are truly equal are left out. `right_half`: the share in which the system with the
        larger true P@⌈k/2⌉ is ahead, because a merged list of two shows about the upper half of
        each.

        Parts: `pairs`, the same by pair of systems, with mean differences; `trials`, the difference
        and p of each pair in each repeat; `reuse`, each system left out of an A/B test: the share
        of its places whose item was shown (`judged`), the `error` of P̂@k, that of the share liked
        among what was judged (`condensed_error`), that of those that took part (`error_inside`),
        and the share of pairs put the wrong way round, with a participant (`wrong`) and of
        participants (`wrong_inside`, null where there is only one).

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.online.online_tests import online_tests
    >>> shop = us.world("shop", users=100, items=60, seed=1)
    >>> tests = online_tests(
    ...     shop, [us.recommend.Random(), us.recommend.Popularity()], 500,
    ...     methods=["ab", "team-draft"], repeats=2, k=5
    ... )
    >>> tests.values_of("test")
    ['ab', 'team-draft', 'random split', 'test targets']
    >>> tests.row(test="team-draft", quantity="right").value
    1.0
    """
    there = _worlds(worlds)
    named = _algorithms(systems)
    sizes = _sizes(impressions)
    chosen = [choose("method", fromkey, METHODS) for fromkey in dict.fromkeys(methods)]
    ways = _designs(designs)
    users = dict(feedback) if isinstance(feedback, Mapping) else {"clicks": feedback}
    if not users or not all(isinstance(user, Clicks) for user in users.values()):
        raise SettingError(f"feedback: give Clicks(…), or several by name; got {feedback!r}")
    for name in ("forced", OFFLINE):
        if name in users:
            raise SettingError(f"feedback: {name!r} is taken: choose another name")
    if not chosen and not ways:
        raise SettingError("give at least one method or one offline design")
    as_count("k", k)
    as_count("repeats", repeats)
    check_share("level", level)
    rows, logs = list[dict[str, Any]](), list[dict[str, Any]]()
    steps = Steps(len(there) * repeats, progress)
    for number in range(steps.total):
        label, repeat = list(there)[number // repeats], number % repeats
        drawn_seed = key_of(there[label].seed, "online", seed, repeat) % (1 << 31)
        fresh = replace(there[label], seed=drawn_seed)
        lists = top_lists(fresh, systems, k=k, seed=drawn_seed)
        trial, key = (fresh, lists, drawn_seed), {"world": label, "repeat": repeat}
        rows += [key | row for row in _online(*trial, users, chosen, sizes)]
        rows += [key | row for row in _offline(*trial, named, ways)]
        reused = _reused(*trial, {**users, "forced": ForcedExposure()})
        logs += [key | row for row in reused]
        steps.advance()
    trials = pl.DataFrame(rows, infer_schema_length=None)
    return _answer(trials, pl.DataFrame(logs), level, {"k": k, "repeats": repeats})


@checked
def impressions_needed(tests: Estimates, share: float = 0.9) -> Estimates:
    """Return with how many impressions each online test is right often enough.

    Parameters
    ----------
    tests
        What `online_tests` gave.
    share
        Of the pairs in which the truly better system is to be ahead.

    Returns
    -------
    Estimates
        A row per world, feedback and test: the least number of impressions tried from which on it
        is, and `surely`, the same for the lower end of the interval; null where none of those tried
        is enough.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=100, items=60, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> tests = us.online.online_tests(shop, systems, [10, 1_000], methods=["ab"], designs={})
    >>> us.online.impressions_needed(tests, 0.8).row(test="ab").value
    1000.0
    """
    if not 0 < share <= 1:
        raise SettingError(f"share must be above 0, and 1 at most, got {share!r}")
    right = tests.rows.filter(pl.col("feedback") != OFFLINE, quantity="right")
    rows = []
    for key, part in right.group_by(NAMES[:3], maintain_order=True):
        numbers: list[float | None] = []
        for column in ("value", "low"):
            enough = part[column].to_numpy() >= share
            lasting = np.logical_and.accumulate(enough[::-1])[::-1]
            first = int(np.argmax(lasting))
            numbers.append(part["impressions"][first] if lasting.any() else None)
        rows.append((*key, *numbers))
    line = f"so that the truly better system is ahead in at least {share:.0%} of the pairs"
    return Estimates.of_rows(NEEDED, rows, explanation=(line,), card={"share": share})


def _answer(
    trials: pl.DataFrame, logs: pl.DataFrame, level: float, card: Mapping[str, Any]
) -> Estimates:
    """Return how often tests are right, from what each of them says of each pair.

    Parameters
    ----------
    trials
        The columns of `TRIALS`.
    logs
        A row per world, feedback, repeat and system left out of an A/B test in which every user
        sees every other system: what `_reused` gives.
    level
        Of the intervals; 1 - level is the level of significance.
    card
        Settings.
    """
    unequal = trials.filter(pl.col("true_difference") != 0)
    equal = trials.height - unequal.height
    lines = [
        f"{card['repeats']} repeats, true P@{card['k']} of the systems trained on all observed "
        f"ratings; significant: p < {1 - level:.3g} of a pair by itself, not corrected",
        "impressions are those of one test: of a pair of systems or, in multileave, of all",
    ]
    if equal:
        lines.append(f"{equal:,} of {trials.height:,} comparisons of equal systems left out")
    parts = {
        "pairs": Estimates.of_rows(PAIRS, _pair_rows(unequal, level)),
        "reuse": Estimates.of_rows(REUSE, list(_reuse_rows(logs, level)), level=level),
        "trials": Estimates.of_rows(TRIALS, trials),
    }
    rows = list(_share_rows(unequal, level))
    return Estimates.of_rows(
        TESTS, rows, level=level, explanation=tuple(lines), parts=parts, card=card
    )


def _share_rows(trials: pl.DataFrame, level: float) -> Iterator[dict[str, Any]]:
    """Yield how often each test orders systems that differ rightly, and significantly."""
    for key, part in trials.group_by(NAMES, maintain_order=True):
        sign = (part["value"] * part["true_difference"]).to_numpy()
        is_clear = (part["p"] < 1 - level).to_numpy()
        marks = {"right": sign > 0, "found": (sign > 0) & is_clear, "wrong": (sign < 0) & is_clear}
        repeat = part["repeat"].to_numpy()
        keys = dict(zip(NAMES, key, strict=True)) | {"pairs": part.height}
        for name, mark in marks.items():
            yield keys | {"quantity": name} | _interval(share_interval(mark, repeat, level))
        part = part.filter(pl.col("true_half") != 0)
        upper = (part["value"] * part["true_half"] > 0).to_numpy()
        interval = share_interval(upper, part["repeat"].to_numpy(), level)
        yield keys | {"quantity": "right_half"} | _interval(interval)


def _interval(numbers: Sequence[float | None]) -> dict[str, float | None]:
    return dict(zip(("value", "low", "high"), numbers, strict=False))


def _pair_rows(trials: pl.DataFrame, level: float) -> pl.DataFrame:
    """Return a row per test and pair: means over repeats, and how often the test was right."""
    sign, is_clear = pl.col("value") * pl.col("true_difference"), pl.col("p") < 1 - level
    return trials.group_by([*NAMES, "system", "against"], maintain_order=True).agg(
        pl.col("value", "true_difference").mean(),
        (sign > 0).mean().alias("right"),
        ((sign > 0) & is_clear).mean().alias("found"),
        ((sign < 0) & is_clear).mean().alias("wrong"),
    )


def _reuse_rows(logs: pl.DataFrame, level: float) -> Iterator[dict[str, Any]]:
    """Yield what judgments of A/B tests say of the systems left out, by world and feedback."""
    if logs.is_empty():
        return
    for (world, feedback), part in logs.group_by("world", "feedback", maintain_order=True):
        means = part.group_by("repeat", maintain_order=True).agg(
            pl.col("error", "condensed_error", "error_inside").mean(),
            pl.col("wrong", "against", "wrong_inside", "inside").sum(),
        )
        numbers: dict[str, Sequence[float | None]] = {
            "judged": [_mean(part["judged"])],
            "error": mean_interval(means["error"].to_list(), level),
            "condensed_error": [_mean(means["condensed_error"])],
            "error_inside": [_mean(means["error_inside"])],
        }
        for name, of in (("wrong", "against"), ("wrong_inside", "inside")):
            counts = list(zip(means[name].to_list(), means[of].to_list(), strict=True))
            marks = np.concatenate([np.arange(count) < wrong for wrong, count in counts])
            repeat = np.repeat(np.arange(len(counts)), [count for _, count in counts])
            numbers[name] = share_interval(marks, repeat, level)
        for name, values in numbers.items():
            yield {"world": world, "feedback": feedback, "quantity": name} | _interval(values)


def _mean(values: pl.Series) -> float | None:
    values = values.drop_nulls()
    return math.fsum(values) / values.len() if values.len() else None


def _online(
    world: World,
    lists: TopLists,
    seed: int,
    users: Mapping[str, Clicks],
    methods: Sequence[str],
    sizes: Sequence[int],
) -> Iterator[dict[str, Any]]:
    """Do every kind of online test; the impressions of a longer one begin with a shorter's."""
    kinds: dict[str, tuple[Feedback, list[str]]] = {
        name: (feedback, [method for method in methods if method != "forced-ab"])
        for name, feedback in users.items()
    }
    if "forced-ab" in methods:
        kinds["forced"] = ForcedExposure(), ["forced-ab"]
    for name, (feedback, chosen) in kinds.items():
        behaviour = behaviour_of(feedback, world, lists.k)
        for method in chosen:
            for size, rows in _growing(lists, method, behaviour, sizes, seed).items():
                key = {"feedback": name, "test": method, "impressions": size}
                yield from (key | row for row in rows)


def _growing(
    lists: TopLists, method: str, behaviour: Behaviour, sizes: Sequence[int], seed: int
) -> dict[int, list[dict[str, Any]]]:
    """Return what a kind of test says of all pairs, at each number of impressions."""
    count = len(lists.systems)
    parts = [lists]
    if method != "multileave":
        parts = [lists.only([lists.systems[i] for i in pair]) for pair in pairs_of(count)]
    is_ab = method in ("ab", "forced-ab")
    rows: dict[int, list[dict[str, Any]]] = {size: [] for size in sizes}
    for part in parts:
        total: I64 | int = 0
        for lo, hi in pairwise([0, *sizes]):
            if is_ab:
                total = total + ab_counts(part, behaviour, seed, lo, hi)
                effects = effects_of_counts(total, lists.k)
            else:
                total = total + wins_of(part, behaviour, method, seed, lo, hi)
                effects = effects_of_wins(total, hi)
            rows[hi] += _effect_rows(part, effects)
    return rows


def _effect_rows(lists: TopLists, effects: PairEffects) -> list[dict[str, Any]]:
    """Return a row per pair: what a test says, and what is true of P@k and of P@⌈k/2⌉."""
    true, half = lists.true(), lists.true((lists.k + 1) // 2)
    return [
        {
            "system": lists.systems[a],
            "against": lists.systems[b],
            "true_difference": float(true[a] - true[b]),
            "true_half": float(half[a] - half[b]),
            "value": float(effects.difference[index]),
            "p": float(effects.p[index]),
        }
        for index, (a, b) in enumerate(pairs_of(len(lists.systems)))
    ]


def _offline(
    world: World, lists: TopLists, seed: int, systems: Mapping[str, Algorithm], designs: Designs
) -> Iterator[dict[str, Any]]:
    """Compare the systems by offline designs, user by user."""
    for name, (splitter, targets) in designs.items():
        parts = [
            _scores(world, split, targets, systems, lists.k, seed, fold)
            for fold, split in enumerate(splitter.each(world.ratings, seed))
        ]
        effects = effects_of_users(paired(parts).complete(f"P@{lists.k}").T)
        key = {"feedback": OFFLINE, "test": name, "impressions": None}
        yield from (key | row for row in _effect_rows(lists, effects))


def _scores(
    world: World,
    split: Split,
    targets: Targets,
    systems: Mapping[str, Algorithm],
    k: int,
    seed: int,
    fold: int,
) -> Scores:
    fold_seed = key_of(seed, "online/offline", fold) % (1 << 31)
    models = {name: algorithm.fit(split.train, fold_seed) for name, algorithm in systems.items()}
    lists = targets.lists(split, liked=world.liked, seed=seed)
    with quietly():
        return evaluate(lists, models, f"P@{k}", users="all", seed=seed)


def _reused(
    world: World, lists: TopLists, seed: int, users: Mapping[str, Feedback]
) -> Iterator[dict[str, Any]]:
    """Leave each system out of an A/B test, and judge it by what the test gathered."""
    pairs, last = np.array(pairs_of(len(lists.systems))).T, len(lists.systems) - 1
    is_outside = pairs[1] == last
    for name, feedback in users.items():
        behaviour = behaviour_of(feedback, world, lists.k)
        for left_out in lists.systems:
            took_part = [system for system in lists.systems if system != left_out]
            reused = judge_again(lists, took_part, behaviour, seed, None)
            true, error = reused.lists.true(), (reused.values - reused.truth).mean(axis=1)
            truth = true[pairs[0]] - true[pairs[1]]
            differ, wrong = truth != 0, effects_of_users(reused.values).difference * truth < 0
            condensed = float(reused.condensed[last] - reused.truth.mean(axis=1)[last])
            yield {
                "feedback": name,
                "judged": float(reused.judged[last]),
                "error": float(error[last]),
                "condensed_error": None if math.isnan(condensed) else condensed,
                "error_inside": pl.Series(error[:last]).mean(),
                "wrong": int((wrong & is_outside).sum()),
                "against": int((differ & is_outside).sum()),
                "wrong_inside": int((wrong & ~is_outside).sum()),
                "inside": int((differ & ~is_outside).sum()),
            }


def _worlds(worlds: object) -> dict[str, World]:
    if isinstance(worlds, World):
        return {worlds.name: worlds}
    named = worlds if isinstance(worlds, Mapping) else {}
    if named and all(isinstance(world, World) for world in named.values()):
        return {str(name): world for name, world in named.items()}
    raise SettingError(f"worlds: give a world, or worlds by name; got {worlds!r}")


def _algorithms(systems: object) -> dict[str, Algorithm]:
    named = named_systems(systems)
    algorithms = {name: system for name, system in named.items() if isinstance(system, Algorithm)}
    if len(algorithms) < len(named):
        wrong = next(name for name in named if name not in algorithms)
        raise SettingError(
            f"{wrong} is not an algorithm: each repeat draws new worlds and trains every system "
            "on them; for a fitted model use ab_test or interleave"
        )
    if len(algorithms) < 2:
        raise SettingError("systems: a test compares at least two")
    return algorithms


def _sizes(impressions: object) -> list[int]:
    counts = impressions if isinstance(impressions, Sequence) else [impressions]
    sizes = [as_count("impressions", count) for count in counts]
    if not sizes or sizes != sorted(set(sizes)):
        raise SettingError(f"impressions must rise from number to number, got {impressions!r}")
    return sizes


def _designs(designs: Designs | None) -> Designs:
    if designs is None:
        split = Random(test=0.2)
        return {"random split": (split, AllItems()), "test targets": (split, TestTargets("fill"))}
    for name, pair in designs.items():
        fits = isinstance(pair, Sequence) and len(pair) == 2
        if not fits or not (isinstance(pair[0], Splitter) and isinstance(pair[1], Targets)):
            raise SettingError(
                f"designs: {name!r} must be a way to split and target items, such as "
                f"(us.splits.Random(), us.targets.AllItems()); got {pair!r}"
            )
        if pair[0].null_only:
            raise SettingError(f"designs: {name!r}: {pair[0]!r} has a meaning on null data only")
    return designs
