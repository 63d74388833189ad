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
from unskew.online.judgment_reuse import reuse_judgments
from unskew.online.top_lists import LEVEL, K, Systems, TopLists, named_systems, top_lists
from unskew.recommend.model import Algorithm
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.splits.random import Random
from unskew.splits.split import Split, Splitter
from unskew.stats.clusters import share_interval
from unskew.stats.intervals.means import Interval, mean_interval
from unskew.stats.pairing import paired
from unskew.targets.designs import AllItems, Targets, TestTargets
from unskew.worlds.worlds import World

OFFLINE = "offline"


OUTCOMES = ("right", "found", "wrong", "right_half")


KEYS = ("world", "feedback", "test", "impressions")


@dataclass(frozen=True, eq=False)
class OnlineTests(Result):
    """How often each kind of test finds the truly better of two systems. Made by `online_tests`."""

    digits = 3

    rows: pl.DataFrame
    """A row per world, feedback, test, number of impressions (null for offline designs), repeat and
    pair of systems a, b: the `true` difference of P@k, `true_half` of P@⌈k/2⌉, the `difference`
    that the test shows, and p."""
    logs: pl.DataFrame
    """A row per world, feedback, repeat and system left out of an A/B test in which every user sees
    every other system: by the test's judgments, `judged`, `error` and `condensed_error` of the one
    left out, `error_inside` (the mean of the others), and pairs in the wrong order: `wrong` of
    `against` (the one left out against the others), `wrong_inside` of `inside`."""
    k: int
    repeats: int
    level: float = LEVEL

    def table(self) -> pl.DataFrame:
        """Return a row per world, feedback, test and number of impressions.

        Columns: pairs (tried, over all repeats), right (the share in which the truly better system
        is ahead), found (in which it is significantly), wrong (in which the other one is,
        significantly), each with its interval. Pairs that are truly equal are left out. At last
        `right_half`: the share in which the system with the larger true P@⌈k/2⌉ is ahead, because a
        merged list of two shows about the upper half of each.
        """
        rows = []
        for key, part in self._unequal().group_by(KEYS, maintain_order=True):
            ahead = (part["difference"] * part["true"] > 0).to_numpy()
            clear = (part["p"] < 1 - self.level).to_numpy()
            against = (part["difference"] * part["true"] < 0).to_numpy()
            repeat = part["repeat"].to_numpy()
            row: dict[str, Any] = {**dict(zip(KEYS, key, strict=True)), "pairs": part.height}
            outcomes = {"right": ahead, "found": ahead & clear, "wrong": against & clear}
            for name, marks in outcomes.items():
                row |= _named(name, share_interval(marks, repeat, self.level))
            part = part.filter(pl.col("true_half") != 0)
            ahead = (part["difference"] * part["true_half"] > 0).to_numpy()
            upper = share_interval(ahead, part["repeat"].to_numpy(), self.level)
            rows.append({**row, **_named("right_half", upper)})
        shares = ("right", "found", "wrong", "right_half")
        kinds = {f"{name}{end}": pl.Float64 for name in shares for end in ("", "_low", "_high")}
        return pl.DataFrame(rows, schema_overrides=kinds, infer_schema_length=None)

    def needed(self, share: float = 0.9) -> pl.DataFrame:
        """Return with how many impressions each online test is right often enough.

        Columns: world, feedback, test, impressions (the least number tried from which on the truly
        better system is ahead in at least `share` of the pairs), surely (the same for the lower end
        of the interval); null where none of those tried is enough.
        """
        if not 0 < share <= 1:
            raise SettingError(f"share must be above 0, and 1 at most, got {share!r}")
        online = self.table().filter(pl.col("feedback") != OFFLINE)
        rows = []
        for key, part in online.group_by(KEYS[:3], maintain_order=True):
            row: dict[str, Any] = dict(zip(KEYS[:3], key, strict=True))
            for name, column in (("impressions", "right"), ("surely", "right_low")):
                enough = part[column].to_numpy() >= share
                lasting = np.logical_and.accumulate(enough[::-1])[::-1]
                index = int(np.argmax(lasting))
                row[name] = int(part["impressions"][index]) if lasting.any() else None
            rows.append(row)
        schema = dict(zip(KEYS[:3], [pl.String] * 3, strict=True))
        return pl.DataFrame(rows, schema={**schema, "impressions": pl.Int64, "surely": pl.Int64})

    def pairs(self) -> pl.DataFrame:
        """Return a row per world, feedback, test, number of impressions and pair of systems.

        Columns: a, b, true (the mean true difference of P@k), difference (the mean in the tests),
        and how often, of all repeats, the test was right, found and wrong, as in `table`.
        """
        sign = pl.col("difference") * pl.col("true")
        clear = pl.col("p") < 1 - self.level
        return (
            self._unequal()
            .group_by([*KEYS, "a", "b"], maintain_order=True)
            .agg(
                pl.col("true").mean(),
                pl.col("difference").mean(),
                (sign > 0).mean().alias("right"),
                ((sign > 0) & clear).mean().alias("found"),
                ((sign < 0) & clear).mean().alias("wrong"),
            )
        )

    def reuse(self) -> pl.DataFrame:
        """Return a row per world and feedback: judgments of an A/B test used for one left out.

        Columns: judged (the share of its places whose item was shown), error (P̂@k - P@k) with its
        interval over repeats, condensed_error (the same, of the share liked among what was judged),
        error_inside (of those that took part), wrong (the share of pairs of the one left out and a
        participant that are put the wrong way round) with its interval, wrong_inside (of pairs of
        participants, null where there is only one).
        """
        rows = []
        for key, part in self.logs.group_by("world", "feedback", maintain_order=True):
            row: dict[str, Any] = dict(zip(("world", "feedback"), key, strict=True))
            row["judged"] = _mean(part["judged"])
            means = part.group_by("repeat", maintain_order=True).agg(
                pl.col("error", "condensed_error", "error_inside").mean(),
                pl.col("wrong", "against", "wrong_inside", "inside").sum(),
            )
            row |= _named("error", mean_interval(means["error"].to_list(), self.level))
            row["condensed_error"] = _mean(means["condensed_error"])
            row["error_inside"] = _mean(means["error_inside"])
            for name, of in (("wrong", "against"), ("wrong_inside", "inside")):
                marks = [
                    np.arange(all_) < wrong
                    for wrong, all_ in zip(means[name].to_list(), means[of].to_list(), strict=True)
                ]
                group = np.repeat(np.arange(len(marks)), [mark.size for mark in marks])
                row |= _named(name, share_interval(np.concatenate(marks), group, self.level))
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it: intervals in words."""
        table = self.table()
        words = [
            pl.concat_str(
                pl.col(name).round(2),
                pl.lit(" ("),
                pl.col(f"{name}_low").round(2),
                pl.lit(" to "),
                pl.col(f"{name}_high").round(2),
                pl.lit(")"),
            ).alias(name)
            for name in OUTCOMES
        ]
        return table.select(*KEYS, "pairs", *words)

    def figure(self) -> Figure:
        """Draw how often each test is right over impressions; offline designs are straight lines.

        A panel per world and feedback.
        """
        import altair as alt

        table = self.table()
        impressions = table["impressions"].drop_nulls()
        limits = (int(impressions.min()), int(impressions.max())) if impressions.len() else (1, 10)  # type: ignore[arg-type]
        columns = ("test", "right", "right_low", "right_high")
        worlds = table["world"].unique(maintain_order=True).to_list()
        rows = []
        for world in worlds:
            of_world = table.filter(pl.col("world") == world)
            panels = [
                feedback
                for feedback in of_world["feedback"].unique(maintain_order=True)
                if feedback != OFFLINE
            ]
            for panel in panels or [OFFLINE]:
                title = f"{world}, {panel}" if len(worlds) > 1 else panel
                for row in of_world.filter(pl.col("feedback").is_in([panel, OFFLINE])).to_dicts():
                    offline = row["impressions"] is None
                    for number in limits if offline else (row["impressions"],):
                        rows.append(
                            {
                                **{name: row[name] for name in columns},
                                "panel": title,
                                "impressions": number,
                                "kind": "offline" if offline else "online",
                            }
                        )
        order = list(dict.fromkeys(row["panel"] for row in rows))
        base = alt.Chart(alt.NamedData(name="rows")).encode(
            x=alt.X("impressions:Q").scale(type="log"), color=alt.Color("test:N", sort=None)
        )
        right = alt.Y("right:Q", title="truly better system ahead").scale(domain=[0, 1])
        dash = alt.StrokeDash("kind:N", title=None).scale(
            domain=["online", "offline"], range=[[1, 0], [5, 4]]
        )
        line = base.mark_line(point=True).encode(y=right, strokeDash=dash)
        bars = base.mark_rule(opacity=0.5).encode(y=alt.Y("right_low:Q"), y2="right_high:Q")
        chart = (
            alt.layer(bars, line)
            .properties(width=260, height=220)
            .facet(facet=alt.Facet("panel:N", title=None, sort=order), columns=2)
        )
        return as_figure(chart, "Online and offline tests", self.footer(), rows)

    def _explanation(self) -> list[str]:
        equal = self.rows.height - self._unequal().height
        lines = [
            f"{self.repeats} repeats, true P@{self.k} of the systems trained on all observed "
            f"ratings; {self.level:.0%} intervals over repeats; significant: p < "
            f"{1 - self.level:.3g} of a pair by itself, not corrected",
            "impressions are those of one test: of a pair of systems or, in multileave, of all",
        ]
        if equal:
            lines.append(f"{equal:,} of {self.rows.height:,} comparisons of equal systems left out")
        return lines

    def _content(self) -> dict[str, object]:
        return {
            "k": self.k,
            "repeats": self.repeats,
            "level": self.level,
            "tests": self.table(),
            "pairs": self.pairs(),
            "needed": self.needed(),
            "reuse": self.reuse(),
            "notes": self.footer(),
        }

    def _unequal(self) -> pl.DataFrame:
        return self.rows.filter(pl.col("true") != 0)


def _mean(values: pl.Series) -> float | None:
    values_known = values.drop_nulls()
    return math.fsum(values_known) / values_known.len() if values_known.len() else None


def _named(name: str, interval: Interval) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))


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
    >>> from unskew.online.online_tests import online_tests
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
    rows: list[dict[str, Any]] = []
    logs: list[dict[str, Any]] = []
    steps = Steps(len(there) * repeats, progress)
    for number in range(steps.total):
        label, repeat = list(there)[number // repeats], number % repeats
        drawn_seed = key_of(there[label].seed, "online", seed, repeat) % (1 << 31)
        fresh = replace(there[label], seed=drawn_seed)
        trial = _OnlineTrial(fresh, named, k, drawn_seed, systems)
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
        kinds: dict[str, tuple[Feedback, list[str]]] = {
            name: (feedback, [method for method in methods if method != "forced-ab"])
            for name, feedback in users.items()
        }
        if "forced-ab" in methods:
            kinds["forced"] = ForcedExposure(), ["forced-ab"]
        for name, (feedback, chosen) in kinds.items():
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
        for lists, pairs in parts:
            ab = method in ("ab", "forced-ab")
            total = np.zeros((len(lists.systems), 3 if ab else len(lists.systems)), np.int64)
            for index, (lo, hi) in enumerate(pairwise([0, *sizes])):
                if ab:
                    total = total + ab_counts(lists, behaviour, self.seed, lo, hi)
                    effects = effects_of_counts(total, self.k)
                else:
                    total = total + wins_of(lists, behaviour, method, self.seed, lo, hi)
                    effects = effects_of_wins(total, hi)
                rows[index][1].extend(self._rows(pairs, effects))
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
                "difference": float(effects.difference[index]),
                "p": float(effects.p[index]),
            }
            for index, (a, b) in enumerate(pairs)
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
        models = {
            name: algorithm.fit(split.train, seed) for name, algorithm in self.systems.items()
        }
        lists = targets.lists(split, liked=self.world.liked, seed=self.seed)
        with quietly():
            return evaluate(lists, models, f"P@{self.k}", users="all", seed=self.seed)

    def reused(self, users: Mapping[str, Feedback]) -> list[dict[str, Any]]:
        """Leave each system out of an A/B test, and judge it by what the test gathered."""
        rows = []
        for name, feedback in users.items():
            for left_out in self.lists.systems:
                others = [system for system in self.lists.systems if system != left_out]
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
