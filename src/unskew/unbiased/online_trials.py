"""`online_tests`: how often tests, online and offline, find the truly better system.

Worlds are drawn many times; each time systems are trained, and A/B tests, interleaving and
multileaving are done with ever more impressions, beside what offline designs say of the same
systems (castells2018 section 5.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import key_of
from unskew.errors import SettingError, quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.recommend.model import Algorithm
from unskew.splits.random import Random
from unskew.splits.split import Split, Splitter
from unskew.stats.pairing import paired
from unskew.targets.designs import AllItems, Targets, TestTargets
from unskew.unbiased.ab_tests import ab_counts
from unskew.unbiased.click_models import Behaviour, Clicks, Feedback, ForcedExposure, behaviour_of
from unskew.unbiased.interleaving import wins_of
from unskew.unbiased.judgment_reuse import reuse_judgments
from unskew.unbiased.online_outcomes import KEYS, OFFLINE, OnlineTests
from unskew.unbiased.pair_effects import (
    PairEffects,
    effects_of_counts,
    effects_of_users,
    effects_of_wins,
    pairs_of,
)
from unskew.unbiased.top_items import LEVEL, K, Systems, TopLists, named_systems, top_lists
from unskew.worlds.worlds import World

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
) -> OnlineTests:
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

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online_trials import online_tests
    >>> shop = us.world("shop", users=100, items=60, seed=1)
    >>> tests = online_tests(
    ...     shop, [us.recommend.Random(), us.recommend.Popularity()], 500,
    ...     methods=["ab", "team-draft"], repeats=2, k=5
    ... )
    >>> tests.table()["test"].to_list()
    ['ab', 'team-draft', 'random split', 'test targets']
    """
    there = _worlds(worlds)
    named = _algorithms(systems)
    sizes = _sizes(impressions)
    chosen = [choose("method", one, METHODS) for one in dict.fromkeys(methods)]
    ways = _designs(designs)
    users = dict(feedback) if isinstance(feedback, Mapping) else {"clicks": feedback}
    if not users or not all(isinstance(one, Clicks) for one in users.values()):
        raise SettingError(f"feedback: give Clicks(…), or several by name; got {feedback!r}")
    for name in ("forced", OFFLINE):
        if name in users:
            raise SettingError(f"feedback: {name!r} is taken: choose another name")
    if not chosen and not ways:
        raise SettingError("give at least one method or one offline design")
    as_count("k", k)
    as_count("repeats", repeats)
    check_share("level", level)
    rows: list[dict[str, Any]] = []
    logs: list[dict[str, Any]] = []
    steps = Steps(len(there) * repeats, progress)
    for number in range(steps.total):
        label, repeat = list(there)[number // repeats], number % repeats
        drawn_seed = key_of(there[label].seed, "online", seed, repeat) % (1 << 31)
        drawn = replace(there[label], seed=drawn_seed)
        trial = _OnlineTrial(drawn, named, k, drawn_seed, systems)
        key = {"world": label, "repeat": repeat}
        for test in (trial.online(users, chosen, sizes), trial.offline(ways)):
            rows += [{**key, **row} for row in test]
        logs += [{**key, **row} for row in trial.reused({**users, "forced": ForcedExposure()})]
        steps.advance()
    order = [*KEYS, "repeat", "a", "b", "true", "true_half", "difference", "p"]
    frame = pl.DataFrame(rows, infer_schema_length=None).select(
        pl.col("impressions").cast(pl.Int64), pl.exclude("impressions")
    )
    return OnlineTests(frame.select(order), pl.DataFrame(logs), k, repeats, level)


@dataclass(frozen=True, eq=False)
class _OnlineTrial:
    """All tests in one drawn world."""

    world: World
    systems: Mapping[str, Algorithm]
    k: int
    seed: int
    given: Systems
    """The systems as they were given, named or not: draws follow from it."""

    @cached_property
    def lists(self) -> TopLists:
        """What every system shows."""
        return top_lists(self.world, self.given, k=self.k, seed=self.seed)

    def online(
        self, users: Mapping[str, Clicks], methods: Sequence[str], sizes: Sequence[int]
    ) -> list[dict[str, Any]]:
        """Do every kind of online test; the impressions of a longer one begin with a shorter's."""
        rows = []
        every: dict[str, tuple[Feedback, list[str]]] = {
            name: (one, [method for method in methods if method != "forced-ab"])
            for name, one in users.items()
        }
        if "forced-ab" in methods:
            every["forced"] = ForcedExposure(), ["forced-ab"]
        for name, (feedback, chosen) in every.items():
            behaviour = behaviour_of(feedback, self.world, self.k)
            for method in chosen:
                for size, pairs in self._growing(method, behaviour, sizes):
                    key = {"feedback": name, "test": method, "impressions": size}
                    rows += [{**key, **row} for row in pairs]
        return rows

    def _growing(
        self, method: str, behaviour: Behaviour, sizes: Sequence[int]
    ) -> list[tuple[int, list[dict[str, Any]]]]:
        """Return what a kind of test says of all pairs, at each number of impressions."""
        names = self.lists.systems
        if method == "multileave":
            parts = [(self.lists, list(pairs_of(len(names))))]
        else:
            parts = [
                (self.lists.only([names[a], names[b]]), [(a, b)]) for a, b in pairs_of(len(names))
            ]
        rows: list[tuple[int, list[dict[str, Any]]]] = [(size, []) for size in sizes]
        for shown, pairs in parts:
            ab = method in ("ab", "forced-ab")
            total = np.zeros((len(shown.systems), 3 if ab else len(shown.systems)), np.int64)
            for at, (lo, hi) in enumerate(pairwise([0, *sizes])):
                if ab:
                    total = total + ab_counts(shown, behaviour, self.seed, lo, hi)
                    effects = effects_of_counts(total, self.k)
                else:
                    total = total + wins_of(shown, behaviour, method, self.seed, lo, hi)
                    effects = effects_of_wins(total, hi)
                rows[at][1].extend(self._rows(pairs, effects))
        return rows

    def _rows(self, pairs: Sequence[tuple[int, int]], effects: PairEffects) -> list[dict[str, Any]]:
        names, true = self.lists.systems, self.lists.true()
        half = self.lists.true((self.k + 1) // 2)
        return [
            {
                "a": names[a],
                "b": names[b],
                "true": float(true[a] - true[b]),
                "true_half": float(half[a] - half[b]),
                "difference": float(effects.difference[at]),
                "p": float(effects.p[at]),
            }
            for at, (a, b) in enumerate(pairs)
        ]

    def offline(self, designs: Designs) -> list[dict[str, Any]]:
        """Compare the systems by offline designs, user by user."""
        rows = []
        for name, (splitter, targets) in designs.items():
            parts = [
                self._scores(split, targets, fold)
                for fold, split in enumerate(splitter.each(self.world.ratings, self.seed))
            ]
            values = paired(parts).complete(f"P@{self.k}").T
            key = {"feedback": OFFLINE, "test": name, "impressions": None}
            effects = effects_of_users(values)
            pairs = pairs_of(len(self.lists.systems))
            rows += [{**key, **row} for row in self._rows(pairs, effects)]
        return rows

    def _scores(self, split: Split, targets: Targets, fold: int) -> Scores:
        seed = key_of(self.seed, "online/offline", fold) % (1 << 31)
        models = {name: one.fit(split.train, seed) for name, one in self.systems.items()}
        lists = targets.lists(split, liked=self.world.liked, seed=self.seed)
        with quietly():
            return evaluate(lists, models, f"P@{self.k}", users="all", seed=self.seed)

    def reused(self, users: Mapping[str, Feedback]) -> list[dict[str, Any]]:
        """Leave each system out of an A/B test, and judge it by what the test gathered."""
        rows = []
        for name, feedback in users.items():
            for left_out in self.lists.systems:
                others = [one for one in self.lists.systems if one != left_out]
                result = reuse_judgments(
                    self.world, self.lists, others, None, feedback, seed=self.seed
                )
                table, pairs = result.table(), result.pairs().filter(pl.col("true") != 0)
                pairs = pairs.with_columns(no=pl.col("difference") * pl.col("true") < 0)
                last = table.row(-1, named=True)
                outside = pairs.filter(pl.col("took_part") == 1)["no"]
                inside = pairs.filter(pl.col("took_part") == 2)["no"]
                condensed = last["condensed"] - last["true"]
                rows.append(
                    {
                        "feedback": name,
                        "left_out": left_out,
                        "judged": last["judged"],
                        "error": last["error"],
                        "condensed_error": None if math.isnan(condensed) else condensed,
                        "error_inside": table["error"][:-1].mean(),
                        "wrong": int(outside.sum()),
                        "against": outside.len(),
                        "wrong_inside": int(inside.sum()),
                        "inside": inside.len(),
                    }
                )
        return rows


def _worlds(worlds: object) -> dict[str, World]:
    if isinstance(worlds, World):
        return {worlds.name: worlds}
    several = worlds if isinstance(worlds, Mapping) else {}
    if several and all(isinstance(one, World) for one in several.values()):
        return {str(name): one for name, one in several.items()}
    raise SettingError(f"worlds: give a world, or worlds by name; got {worlds!r}")


def _algorithms(systems: object) -> dict[str, Algorithm]:
    named = named_systems(systems)
    algorithms = {name: one for name, one in named.items() if isinstance(one, Algorithm)}
    if len(algorithms) < len(named):
        other = next(name for name in named if name not in algorithms)
        raise SettingError(
            f"{other} is not an algorithm: each repeat draws new worlds and trains every system "
            "on them; for a fitted model use ab_test or interleave"
        )
    if len(algorithms) < 2:
        raise SettingError("systems: a test compares at least two")
    return algorithms


def _sizes(impressions: object) -> list[int]:
    several = impressions if isinstance(impressions, Sequence) else [impressions]
    sizes = [as_count("impressions", one) for one in several]
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
