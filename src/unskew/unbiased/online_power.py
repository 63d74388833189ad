"""`online_tests`: how often tests, online and offline, find the truly better system.

Worlds are drawn many times; each time systems are trained, and A/B tests, interleaving and
multileaving are done with ever more impressions, beside what offline designs say of the same
systems (castells2018 section 5.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unskew.arrays import Mask
from unskew.checks import as_count, check_share, checked, choose
from unskew.engine.rng import key_of
from unskew.errors import SettingError, quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.recommend.model import Algorithm
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Printed
from unskew.splits.random import Random
from unskew.splits.split import Split, Splitter
from unskew.stats.distributions import mean_interval, student_t_quantile
from unskew.stats.pairing import paired
from unskew.targets.designs import AllItems, Targets, TestTargets
from unskew.unbiased.online import (
    LEVEL,
    Behaviour,
    Clicks,
    Feedback,
    ForcedExposure,
    K,
    Shown,
    Systems,
    Verdict,
    ab_counts,
    behaviour_of,
    named_systems,
    pairs_of,
    reuse_judgments,
    top_lists,
    verdict_of_counts,
    verdict_of_users,
    verdict_of_wins,
    wins_of,
)
from unskew.worlds.worlds import World

Progress = Callable[[int, int], None]
Designs = Mapping[str, tuple[Splitter, Targets]]

METHODS = ("ab", "forced-ab", "team-draft", "balanced", "multileave")
"""Kinds of test; all but `forced-ab`, which judges by what is true, are done with free clicks."""
IMPRESSIONS = (100, 1_000, 10_000)
OFFLINE = "offline"
OUTCOMES = ("right", "found", "wrong", "right_half")
KEYS = ("world", "feedback", "test", "impressions")


@dataclass(frozen=True, eq=False)
class OnlineTests(Printed):
    """How often each kind of test finds the truly better of two systems. Made by `online_tests`."""

    digits = 3

    rows: pl.DataFrame
    """A row per world, feedback, test, number of impressions (null for offline designs), repeat and
    pair of systems a, b: the `true` difference of P@k, `true_half` of P@⌈k/2⌉, what was `told`, and
    p."""
    logs: pl.DataFrame
    """A row per world, feedback, repeat and system left out of an A/B test in which every user sees
    every other system: by the test's judgments, `judged`, `error` and `condensed_error` of the one
    left out, `error_inside` (the mean of the others), and pairs told wrongly: `wrong` of
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
            ahead = (part["told"] * part["true"] > 0).to_numpy()
            clear = (part["p"] < 1 - self.level).to_numpy()
            against = (part["told"] * part["true"] < 0).to_numpy()
            repeat = part["repeat"].to_numpy()
            row: dict[str, Any] = {**dict(zip(KEYS, key, strict=True)), "pairs": part.height}
            outcomes = {"right": ahead, "found": ahead & clear, "wrong": against & clear}
            for name, marks in outcomes.items():
                row |= _named(name, share_interval(marks, repeat, self.level))
            part = part.filter(pl.col("true_half") != 0)
            ahead = (part["told"] * part["true_half"] > 0).to_numpy()
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
                at = int(np.argmax(lasting))
                row[name] = int(part["impressions"][at]) if lasting.any() else None
            rows.append(row)
        schema = dict(zip(KEYS[:3], [pl.String] * 3, strict=True))
        return pl.DataFrame(rows, schema={**schema, "impressions": pl.Int64, "surely": pl.Int64})

    def pairs(self) -> pl.DataFrame:
        """Return a row per world, feedback, test, number of impressions and pair of systems.

        Columns: a, b, true (the mean true difference of P@k), told (the mean difference told), and
        how often, of all repeats, the pair was told right, found and wrong, as in `table`.
        """
        sign = pl.col("told") * pl.col("true")
        clear = pl.col("p") < 1 - self.level
        return (
            self._unequal()
            .group_by([*KEYS, "a", "b"], maintain_order=True)
            .agg(
                pl.col("true").mean(),
                pl.col("told").mean(),
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
                at = np.repeat(np.arange(len(marks)), [one.size for one in marks])
                found = share_interval(np.concatenate(marks), at, self.level)
                row |= _named(name, found)
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def shown(self) -> pl.DataFrame:
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
        most = table["impressions"].drop_nulls()
        ends = (int(most.min()), int(most.max())) if most.len() else (1, 10)  # type: ignore[arg-type]
        columns = ("test", "right", "right_low", "right_high")
        worlds = table["world"].unique(maintain_order=True).to_list()
        rows = []
        for world in worlds:
            own = table.filter(pl.col("world") == world)
            panels = [one for one in own["feedback"].unique(maintain_order=True) if one != OFFLINE]
            for panel in panels or [OFFLINE]:
                title = f"{world}, {panel}" if len(worlds) > 1 else panel
                for row in own.filter(pl.col("feedback").is_in([panel, OFFLINE])).to_dicts():
                    offline = row["impressions"] is None
                    for at in ends if offline else (row["impressions"],):
                        rows.append(
                            {
                                **{name: row[name] for name in columns},
                                "panel": title,
                                "impressions": at,
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

    def footer(self) -> list[str]:
        """Say what the numbers are of."""
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

    def to_dict(self) -> dict[str, Any]:
        """Return the tables as plain values, for JSON."""
        return {
            "k": self.k,
            "repeats": self.repeats,
            "level": self.level,
            "tests": self.table().to_dicts(),
            "pairs": self.pairs().to_dicts(),
            "needed": self.needed().to_dicts(),
            "reuse": self.reuse().to_dicts(),
            "notes": self.footer(),
        }

    def _unequal(self) -> pl.DataFrame:
        return self.rows.filter(pl.col("true") != 0)


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
        itself: how often a pair is told wrongly does not depend on how many others there are.
    seed
        Same seed, same result.
    progress
        Called with (done, total) after each world and repeat.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.online_power import online_tests
    >>> shop = us.world("shop", users=100, items=60, seed=1)
    >>> found = online_tests(
    ...     shop, [us.recommend.Random(), us.recommend.Popularity()], 500,
    ...     methods=["ab", "team-draft"], repeats=2, k=5
    ... )
    >>> found.table()["test"].to_list()
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
            raise SettingError(f"feedback: {name!r} has a meaning of its own; choose another name")
    if not chosen and not ways:
        raise SettingError("give at least one method or one offline design")
    as_count("k", k)
    as_count("repeats", repeats)
    check_share("level", level)
    rows: list[dict[str, Any]] = []
    logs: list[dict[str, Any]] = []
    total = len(there) * repeats
    for number in range(total):
        label, repeat = list(there)[number // repeats], number % repeats
        drawn_seed = key_of(there[label].seed, "online", seed, repeat) % (1 << 31)
        drawn = replace(there[label], seed=drawn_seed)
        trial = _Trial(drawn, named, k, drawn_seed, systems)
        key = {"world": label, "repeat": repeat}
        for test in (trial.online(users, chosen, sizes), trial.offline(ways)):
            rows += [{**key, **row} for row in test]
        logs += [{**key, **row} for row in trial.reused({**users, "forced": ForcedExposure()})]
        if progress is not None:
            progress(number + 1, total)
    order = [*KEYS, "repeat", "a", "b", "true", "true_half", "told", "p"]
    frame = pl.DataFrame(rows, infer_schema_length=None).select(
        pl.col("impressions").cast(pl.Int64), pl.exclude("impressions")
    )
    return OnlineTests(frame.select(order), pl.DataFrame(logs), k, repeats, level)


@dataclass(frozen=True, eq=False)
class _Trial:
    """All tests in one drawn world."""

    world: World
    systems: Mapping[str, Algorithm]
    k: int
    seed: int
    given: Systems
    """The systems as they were given, named or not: draws follow from it."""

    @cached_property
    def lists(self) -> Shown:
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
        for name, (feedback, own) in every.items():
            behaviour = behaviour_of(feedback, self.world, self.k)
            for method in own:
                for size, told in self._growing(method, behaviour, sizes):
                    key = {"feedback": name, "test": method, "impressions": size}
                    rows += [{**key, **row} for row in told]
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
        found: list[tuple[int, list[dict[str, Any]]]] = [(size, []) for size in sizes]
        for shown, pairs in parts:
            ab = method in ("ab", "forced-ab")
            total = np.zeros((len(shown.systems), 3 if ab else len(shown.systems)), np.int64)
            for at, (lo, hi) in enumerate(pairwise([0, *sizes])):
                if ab:
                    total = total + ab_counts(shown, behaviour, self.seed, lo, hi)
                    verdict = verdict_of_counts(total, self.k)
                else:
                    total = total + wins_of(shown, behaviour, method, self.seed, lo, hi)
                    verdict = verdict_of_wins(total, hi)
                found[at][1].extend(self._rows(pairs, verdict))
        return found

    def _rows(self, pairs: Sequence[tuple[int, int]], verdict: Verdict) -> list[dict[str, Any]]:
        names, true = self.lists.systems, self.lists.true()
        half = self.lists.true((self.k + 1) // 2)
        return [
            {
                "a": names[a],
                "b": names[b],
                "true": float(true[a] - true[b]),
                "true_half": float(half[a] - half[b]),
                "told": float(verdict.told[at]),
                "p": float(verdict.p[at]),
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
            verdict = verdict_of_users(values)
            pairs = pairs_of(len(self.lists.systems))
            rows += [{**key, **row} for row in self._rows(pairs, verdict)]
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
                found = reuse_judgments(
                    self.world, self.lists, others, None, feedback, seed=self.seed
                )
                table, pairs = found.table(), found.pairs().filter(pl.col("true") != 0)
                pairs = pairs.with_columns(no=pl.col("difference") * pl.col("true") < 0)
                own = table.row(-1, named=True)
                outside = pairs.filter(pl.col("took_part") == 1)["no"]
                inside = pairs.filter(pl.col("took_part") == 2)["no"]
                condensed = own["condensed"] - own["true"]
                rows.append(
                    {
                        "feedback": name,
                        "left_out": left_out,
                        "judged": own["judged"],
                        "error": own["error"],
                        "condensed_error": None if math.isnan(condensed) else condensed,
                        "error_inside": table["error"][:-1].mean(),
                        "wrong": int(outside.sum()),
                        "against": outside.len(),
                        "wrong_inside": int(inside.sum()),
                        "inside": inside.len(),
                    }
                )
        return rows


# What is given


def _worlds(worlds: object) -> dict[str, World]:
    if isinstance(worlds, World):
        return {worlds.name: worlds}
    several = worlds if isinstance(worlds, Mapping) else {}
    if several and all(isinstance(one, World) for one in several.values()):
        return {str(name): one for name, one in several.items()}
    raise SettingError(f"worlds: give a world, or worlds by name; got {worlds!r}")


def _algorithms(systems: object) -> dict[str, Algorithm]:
    named = named_systems(systems)
    found = {name: one for name, one in named.items() if isinstance(one, Algorithm)}
    if len(found) < len(named):
        other = next(name for name in named if name not in found)
        raise SettingError(
            f"{other} is no algorithm: worlds are drawn anew in each repeat, so systems must be "
            f"such as can be trained on each; for a fitted model take ab_test or interleave"
        )
    if len(found) < 2:
        raise SettingError("systems: a test compares at least two")
    return found


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
        if getattr(pair[0], "null_only", False):
            raise SettingError(f"designs: {name!r}: {pair[0]!r} has a meaning on null data only")
    return designs


# Intervals over repeats


Interval = tuple[float | None, float | None, float | None]


def share_interval(marks: Mask, repeat: NDArray[Any], level: float) -> Interval:
    """Return a share and its interval, trials of one repeat not being independent.

    Wilson's interval with an effective number of trials: as many independent ones as would vary
    from repeat to repeat as the shares did, at least the number of repeats and at most the number
    of trials; Student's t with repeats - 1 degrees of freedom stands for the normal quantile. Where
    all trials or none are marked they count as independent: nothing shows that they are not.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.unbiased.online_power import share_interval
    >>> marks, repeat = np.array([True] * 20), np.repeat(np.arange(10), 2)
    >>> share, low, high = share_interval(marks, repeat, 0.95)
    >>> share, round(low, 3), high
    (1.0, 0.796, 1.0)
    """
    trials = int(marks.size)
    if not trials:
        return None, None, None
    share = int(marks.sum()) / trials
    at = np.unique(repeat, return_inverse=True)[1]
    size = np.bincount(at)
    repeats = size.size
    if repeats < 2:
        return share, None, None
    # The variance of a ratio of sums over repeats.
    rest = np.bincount(at, marks) - share * size
    variance = float((rest**2).sum()) * repeats / (repeats - 1) / trials**2
    free = share * (1 - share)
    count = float(trials)
    if variance > 0:
        count = min(max(free / variance, float(repeats)), float(trials))
    t = student_t_quantile((1 + level) / 2, repeats - 1)
    middle = share + t * t / (2 * count)
    half = t * math.sqrt(free / count + t * t / (4 * count * count))
    whole = 1 + t * t / count
    # The ends are 0 and 1 exactly where the share is; rounding may miss them.
    low = 0.0 if share == 0 else max((middle - half) / whole, 0.0)
    return share, low, 1.0 if share == 1 else min((middle + half) / whole, 1.0)


def _mean(values: pl.Series) -> float | None:
    known = values.drop_nulls()
    return math.fsum(known) / known.len() if known.len() else None


def _named(name: str, found: Interval) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))
