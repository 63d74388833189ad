"""What an audit runs: its levels, its designs, and the plans that carry them out."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from unskew.auditing.null.repeats import RepeatRule
from unskew.checks import choose
from unskew.data.relevance import Relevance
from unskew.engine.store import digest_of
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan, PlanView
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import ALGORITHMS, algorithm, settings_of
from unskew.splits.interventions import Design, Skew, WtdH
from unskew.splits.popularity import Uniform
from unskew.splits.random import Random
from unskew.splits.split import Splitter
from unskew.splits.time.temporal import Temporal
from unskew.targets.designs import (
    AllItems,
    OneRelevant,
    Percentiles,
    Targets,
    TestItems,
    TestTargets,
)

FEW = ("random", "popularity", "smoothed-average", "user-knn", "puresvd", "ease")
MORE = ("item-knn", "slim", "wrmf", "bprmf", "plsa")
METRICS = (
    "P@10",
    "anti-P@10",
    "nDCG@10",
    "nDCL@10",
    "Recall@10",
    "AP@10",
    "RR@10",
    "P@5",
    "nDCG@5",
    "P@50",
    "nDCG@50",
)
CROSSED = ("P@5", "P@10", "P@50", "nDCG@5", "nDCG@10", "nDCG@50")
"""Two metrics at three cutoffs each: every combination, so that their shares can be told apart."""
OTHERS = 100
"""Items that are not liked in each list of the 1R designs (bellogin2017)."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """How much an audit does."""

    name: str
    algorithms: tuple[str, ...]
    splits: int
    """Random hold-outs of a fifth of the ratings, each drawn anew."""
    repeats: int
    """Of the null experiment: at least."""
    most_repeats: int
    """Of the null experiment: at most."""
    precision: float
    """Where the null experiment ends: half-widths of its intervals, as a share of the largest lead
    over chance."""
    permutations: int
    bootstrap: int
    """Draws of users for intervals."""
    samples: int
    """Smaller test sets per share, for the robustness of metrics."""

    @property
    def given_repeats(self) -> int | None:
        """The number of repeats, where it is fixed; None = precision decides."""
        return self.repeats if self.repeats == self.most_repeats else None

    def repeat_rule(self, metric: str) -> RepeatRule:
        """Return how many repeats the null experiment has, by the intervals of a metric."""
        if self.given_repeats is not None:
            return RepeatRule.fixed(self.given_repeats)
        return RepeatRule(
            minimum=self.repeats, maximum=self.most_repeats, precision=self.precision, metric=metric
        )


LEVELS = {
    "quick": Level(
        name="quick",
        algorithms=FEW,
        splits=3,
        repeats=3,
        most_repeats=6,
        precision=0.1,
        permutations=10_000,
        bootstrap=500,
        samples=10,
    ),
    "default": Level(
        name="default",
        algorithms=(*FEW, *MORE),
        splits=5,
        repeats=3,
        most_repeats=10,
        precision=0.05,
        permutations=100_000,
        bootstrap=1_000,
        samples=25,
    ),
    "thorough": Level(
        name="thorough",
        algorithms=(*FEW, *MORE),
        splits=10,
        repeats=5,
        most_repeats=20,
        precision=0.02,
        permutations=100_000,
        bootstrap=1_000,
        samples=50,
    ),
}

WORDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
"""By name: the words of a design, those of given lists too."""
DESIGNS = {
    name: words["about"].format(others=OTHERS) for name, words in WORDS.items() if "about" in words
}
"""By name: what is done."""
SOURCES = {name: words["source"] for name, words in WORDS.items() if "source" in words}
"""By name: the paper that a design is from."""


@dataclass(frozen=True)
class AuditDesign:
    """One design of an audit: a split, and a way to judge what was trained on it."""

    name: str
    about: str
    split: Splitter
    view: PlanView
    repeats: int = 1
    """How often the data are split, each time with a seed of its own."""

    @cached_property
    def split_key(self) -> str:
        """What designs on the same splits share."""
        return digest_of({"split": self.split.describe(), "repeats": self.repeats})


def designs_of_level(level: Level, designs: Sequence[str] | None = None) -> list[AuditDesign]:
    """Return the designs of a level, all of them unless named; the first one is the common one."""
    for name in designs or ():
        choose("design", name, DESIGNS)
    if designs is not None and not designs:
        raise SettingError(f"name at least one design: {', '.join(DESIGNS)}")
    random, uniform = Random(test=0.2), Uniform(test=0.2)
    one_relevant = OneRelevant(OTHERS, shortage="shorten")
    protocols: dict[str, tuple[Splitter, Design | None, Targets]] = {
        "all-items": (random, None, AllItems()),
        "test-items": (random, None, TestItems()),
        "1r": (random, None, one_relevant),
        "u1r": (uniform, None, one_relevant),
        "p1r": (random, None, Percentiles(OTHERS, shortage="shorten")),
        "test-targets": (random, None, TestTargets("fill")),
        "skew": (random, Skew(), AllItems()),
        "wtd-h": (random, WtdH(), AllItems()),
        "temporal": (Temporal(test=0.2), None, AllItems()),
    }
    chosen = []
    for name in dict.fromkeys(designs or DESIGNS):
        split, intervention, targets = protocols[name]
        view = PlanView("test", intervention, targets)
        splits = 1 if isinstance(split, Temporal) else level.splits
        chosen.append(AuditDesign(name, DESIGNS[name], split, view, splits))
    return chosen


def designs_of_plan(plan: Plan) -> list[AuditDesign]:
    """Return the designs of a plan, under the names by which a study of the truth calls them."""
    from unskew.auditing.truth.tasks import design_name

    return [
        AuditDesign(design_name(plan, number, view), f"{split!r}, {view.targets!r}", split, view)
        for number, split in enumerate(plan.splits)
        for view in plan.views()
    ]


def plans_of(designs: Iterable[AuditDesign], shared: Plan) -> dict[Plan, list[AuditDesign]]:
    """Bring designs together that one plan can carry out, so that systems are trained once.

    A plan judges every intervention on every target: those with and those without one are apart.

    Parameters
    ----------
    designs
        The designs.
    shared
        The plan whose systems, metrics, relevance and seed all take.
    """
    groups: dict[str, list[AuditDesign]] = {}
    for design in designs:
        changed = design.view.intervention is not None
        key = {"split": design.split.describe(), "changed": changed, "by": design.view.judgments}
        groups.setdefault(digest_of(key), []).append(design)
    plans = {}
    for members in groups.values():
        changes = [
            member.view.intervention for member in members if member.view.intervention is not None
        ]
        plan = replace(
            shared,
            split=members[0].split,
            judgments=members[0].view.judgments,
            targets=tuple(
                {
                    digest_of(member.view.targets.describe()): member.view.targets
                    for member in members
                }.values()
            ),
            interventions=tuple(
                {digest_of(change.describe()): change for change in changes}.values()
            ),
        )
        plans[plan] = members
    return plans


def named_systems(
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None,
    level: Level,
    liked: float,
) -> Sequence[Algorithm] | Mapping[str, Algorithm]:
    """Return the systems of a level, or those named; what needs a threshold takes that of likes."""
    if isinstance(algorithms, Mapping):
        return algorithms
    entries = level.algorithms if algorithms is None else tuple(algorithms)
    names = [entry for entry in entries if isinstance(entry, str)]
    if len(set(names)) == len(entries):  # plain names label systems better than their settings
        return {name: _with_threshold(name, liked) for name in names}
    return [_with_threshold(entry, liked) if isinstance(entry, str) else entry for entry in entries]


def tunable_systems(
    systems: Mapping[str, Algorithm],
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None,
) -> frozenset[str]:
    """Return the systems whose settings nobody stated: by name, by level, or of a user's class.

    Parameters
    ----------
    systems
        By label, in the order of `algorithms`.
    given
        What the user named; None = the systems of a level.
    """
    if algorithms is None:
        return frozenset(systems)
    entries = algorithms.values() if isinstance(algorithms, Mapping) else algorithms
    return frozenset(
        label
        for label, entry in zip(systems, entries, strict=True)
        if isinstance(entry, str) or type(entry) not in ALGORITHMS.values()
    )


def _with_threshold(name: str, liked: float) -> Algorithm:
    system = algorithm(name)
    thresholds = [key for key in ("threshold", "liked") if key in settings_of(type(system))]
    return replace(system, **dict.fromkeys(thresholds, liked))


def plan_of_level(
    level: Level,
    relevance: Relevance,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    seed: int = 0,
) -> Plan:
    """Return the plan of the common design: what all designs share, too."""
    systems = named_systems(algorithms, level, relevance.threshold)
    common = designs_of_level(level, ["all-items"])[0]
    return Plan(common.split, common.view.targets, systems, relevance, METRICS, seed=seed)


ROUNDING = 5e-5
"""Means that differ by less look the same with four digits."""
LEAST_USERS = 2
"""Systems are compared by the values of at least so many users."""
MOST = 0.5
"""A share of lists above this one is most of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LeftOut:
    """A design that was run and is not counted."""

    reason: str
    """`identical`, `degenerate` or, of given lists, `reach`."""
    why: str
    """The reason as a sentence."""
    same_as: str | None = None
    """The design with the same numbers."""
    scores: tuple[Scores, ...] = ()
    """Of each split."""


def left_out_designs(
    scores: Mapping[str, tuple[Scores, ...]], metric: str, k: int
) -> dict[str, LeftOut]:
    """Return the designs that do not count, by name.

    The first design is the common one: it is left out only where it is degenerate, and another
    one, which is not, has as many splits.

    Parameters
    ----------
    scores
        By design: of each split.
    metric
        The metric that orders the systems.
    k
        Its cutoff.
    """
    left: dict[str, LeftOut] = {}
    counted: list[str] = []
    for name, parts in scores.items():
        why = _degenerate(parts, metric, k)
        if why is not None:
            left[name] = LeftOut(reason="degenerate", why=why, scores=parts)
            continue
        twin = next((design for design in counted if _same(scores[design], parts, metric)), None)
        if twin is None:
            counted.append(name)
            continue
        why = (
            f"it gives every system the same {metric} as {twin} on every list, so the two count "
            "as one design"
        )
        left[name] = LeftOut(reason="identical", why=why, same_as=twin, scores=parts)
    common = next(iter(scores))
    if common in left and not any(len(scores[design]) == len(scores[common]) for design in counted):
        del left[common]
    return left


def _same(first: Sequence[Scores], second: Sequence[Scores], metric: str) -> bool:
    """Tell whether two designs give every list of every system the same value."""
    if len(first) != len(second):
        return False
    return all(
        a.lists["user"].equals(b.lists["user"])
        and all(
            np.array_equal(a.values(name, metric), b.values(name, metric), equal_nan=True)
            for name in a.systems
        )
        for a, b in zip(first, second, strict=True)
    )


def _degenerate(parts: Sequence[Scores], metric: str, k: int) -> str | None:
    """Return why a design tells little or nothing of the systems; None if it can tell more."""
    forced = lists = 0
    for number, part in enumerate(parts, start=1):
        if "train" not in part.lists.columns:
            break
        warm = (part.lists["train"].to_numpy() > 0) & (part.lists["test"].to_numpy() > 0)
        if np.count_nonzero(warm) < LEAST_USERS:
            return (
                f"in split {number}, fewer than {LEAST_USERS} users have both a training and a "
                "test rating"
            )
    for part in parts:
        if "targets" not in part.lists.columns:
            return None
        tested = part.lists["test"].to_numpy() > 0
        short = part.lists["targets"].to_numpy() <= k
        values = np.stack([part.values(name, metric) for name in part.systems])
        alike = ((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))).all(axis=0)
        forced += int(np.count_nonzero(tested & short & alike))
        lists += int(np.count_nonzero(tested))
    if lists and forced / lists > MOST:
        return (
            f"{forced:,} of {lists:,} lists have at most {k} targets, so any order gives them "
            f"the same {metric}; only the other lists can tell systems apart"
        )
    chance = [part.random().get(metric, math.nan) for part in parts]
    means = [part.mean(metric) for part in parts]
    gaps = [
        abs(float(np.mean([mean[name] for mean in means])) - float(np.mean(chance)))
        for name in parts[0].systems
    ]
    if max(gaps) < ROUNDING:
        return f"every system scores the same as a random order ({float(np.mean(chance)):.4f})"
    return None
