"""`Plan`: an experiment as a value. What it says is all that determines its results."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.errors import SettingError, choose
from unskew.evaluation import METRICS
from unskew.experiment.store import key_of
from unskew.metrics.names import parse
from unskew.protocol.amounts import as_count
from unskew.protocol.chance import RandomSplit
from unskew.protocol.intervene import DESIGNS, Design
from unskew.protocol.registry import protocol
from unskew.protocol.split import Split, Splitter
from unskew.protocol.targets import (
    AllItems,
    OneRelevant,
    Percentiles,
    Targets,
    TestItems,
    TestTargets,
    TrainItems,
    UserFlat,
)
from unskew.recommend.model import Algorithm, Model
from unskew.recommend.presets import Chosen
from unskew.recommend.registry import ALGORITHMS, algorithm, settings_of
from unskew.scores import UNDEFINED, USERS

STAGES = {"split": 1, "intervene": 1, "targets": 1, "fit": 1, "rank": 1, "metrics": 1, "chance": 1}
"""The version of each stage: a change of what it computes needs a new number here, so that no
stored result of the old code is taken for one of the new."""

TARGETS: dict[str, Callable[..., Targets]] = {
    "all-items": AllItems, "test-items": TestItems, "train-items": TrainItems,
    "one-relevant": OneRelevant, "percentiles": Percentiles, "test-targets": TestTargets,
    "user-flat": UserFlat, "targets": Targets,
}  # fmt: skip


@dataclass(frozen=True)
class Custom(Algorithm):
    """A recommender of one's own in a plan: a function that fits it, a name and a version.

    Parameters
    ----------
    label
        What it is called.
    function
        Takes training ratings and a numpy generator and returns a model, or anything that
        `us.rank` takes. To run in several processes it must be importable (not a lambda).
    version
        Change it with what the function computes. Without a version results are not stored.
    """

    label: str
    function: Callable[[Ratings, np.random.Generator], Any] = field(repr=False)
    version: str | int | None = None

    name: ClassVar[str] = "custom"

    def _fit(self, train: Ratings, rng: np.random.Generator) -> Model:
        from unskew.recommend.adapt import as_model

        return as_model(self.function(train, rng), train)

    def describe(self) -> dict[str, Any]:
        """Return name and version: they stand for the function."""
        return {"algorithm": "custom", "label": self.label, "version": self.version}


@dataclass(frozen=True)
class Plan:
    """An experiment: which splits, targets, systems and metrics, and one seed for all of it.

    Parameters
    ----------
    split
        One way to split, or several.
    targets
        What systems must rank: one design or several.
    algorithms
        Systems: a list, or a mapping from label to algorithm. Labels in a list are made from the
        algorithm's name and the settings that differ from its defaults.
    relevance
        Which ratings are liked, and gains and losses.
    metrics
        What to compute.
    interventions
        Judge by these samples of the test part (`us.Skew()` …) beside the test part itself; give
        `us.Full()` among them, or nothing, to keep the whole.
    judgments
        Which judgment sets of a split judge: `test`, or names such as `observed` and `true`.
    users, undefined
        As in `evaluate`.
    ties
        How equal scores are ordered: `id` or `random`.
    draws
        Random orders averaged where chance has no closed form.
    seed
        Everything random follows from it.

    Examples
    --------
    >>> import unskew as us
    >>> plan = us.Plan(algorithms=[us.Popularity(), us.UserKNN(k=50)], seed=7)
    >>> list(plan.systems)
    ['popularity', 'user-knn k=50']
    """

    split: Splitter | Sequence[Splitter] = field(default_factory=RandomSplit)
    targets: Targets | Sequence[Targets] = field(default_factory=AllItems)
    algorithms: Sequence[Algorithm | Chosen] | Mapping[str, Algorithm | Chosen] = ()
    relevance: Relevance = field(default_factory=lambda: Relevance(liked=4))
    metrics: str | Sequence[str] = METRICS
    interventions: Sequence[Design] = ()
    judgments: str | Sequence[str] = "test"
    users: str = "with-test"
    undefined: str = "zero"
    ties: str = "id"
    draws: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        def several(name: str, kind: type | tuple[type, ...]) -> None:
            value = getattr(self, name)
            parts = (value,) if isinstance(value, kind) else tuple(value)
            for part in parts:
                if not isinstance(part, kind):
                    raise SettingError(f"plan: {name} cannot hold {part!r}")
            object.__setattr__(self, name, parts)

        several("split", Splitter)
        several("targets", Targets)
        several("metrics", str)
        several("interventions", Design)
        several("judgments", str)
        object.__setattr__(self, "algorithms", tuple(_labelled(self.algorithms).items()))
        for name in ("split", "targets", "algorithms", "metrics", "judgments"):
            if not getattr(self, name):
                raise SettingError(f"plan: {name} is empty")
        for name in self.metrics:
            parse(name)
        choose("users", self.users, USERS)
        choose("undefined", self.undefined, UNDEFINED)
        choose("ties", self.ties, ("id", "random"))
        as_count("draws", self.draws)
        as_count("seed", self.seed, 0)

    @cached_property
    def key(self) -> str:
        """A key of everything the plan says."""
        return key_of(self.describe())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def splits(self) -> tuple[Splitter, ...]:
        """The ways to split."""
        return self.split  # type: ignore[return-value]

    @property
    def designs(self) -> tuple[Targets, ...]:
        """The designs of targets."""
        return self.targets  # type: ignore[return-value]

    @property
    def systems(self) -> dict[str, Algorithm]:
        """The algorithms by label."""
        return dict(self.algorithms)  # type: ignore[arg-type]

    def views(self) -> list[View]:
        """Return every way in which a system is judged on one split."""
        changes: Sequence[Design | None] = self.interventions or (None,)
        return [
            View(judgments, change, design)
            for judgments in self.judgments
            for change in changes
            for design in self.designs
        ]

    def describe(self) -> dict[str, Any]:
        """Return the plan as plain values, for a card."""
        return {
            "split": [one.describe() for one in self.splits],
            "targets": [one.describe() for one in self.designs],
            "algorithms": {label: one.describe() for label, one in self.systems.items()},
            "relevance": self.relevance.describe(),
            "metrics": [str(name) for name in self.metrics],
            "interventions": [one.describe() for one in self.interventions],
            "judgments": list(self.judgments),
            "users": self.users, "undefined": self.undefined, "ties": self.ties,
            "draws": self.draws, "seed": self.seed,
        }  # fmt: skip


@dataclass(frozen=True)
class View:
    """One way to judge: by which judgments, after which intervention, on which targets."""

    judgments: str
    intervention: Design | None
    targets: Targets

    def describe(self) -> dict[str, Any]:
        """Return plain values, for a key."""
        changed = None if self.intervention is None else self.intervention.describe()
        return {
            "judgments": self.judgments, "intervention": changed,
            "targets": self.targets.describe(),
        }  # fmt: skip

    def apply(self, split: Split, seed: int) -> Split:
        """Return the split as this view judges it."""
        tests = split.test
        if self.judgments != "test":
            tests = split.judgments[choose("judgments", self.judgments, split.judgments)]
        if self.intervention is not None:
            tests = self.intervention.sample(tests, split.train, seed=seed).ratings
        return replace(split, test=tests)


def _labelled(
    systems: Sequence[Algorithm | Chosen] | Mapping[str, Algorithm | Chosen],
) -> dict[str, Algorithm]:
    """Name every system; refuse two of one name."""
    if isinstance(systems, Mapping):
        pairs = [(str(label), _algorithm(one)) for label, one in systems.items()]
    elif isinstance(systems, tuple) and systems and isinstance(systems[0], tuple):
        pairs = list(systems)  # named already
    else:
        found = [systems] if isinstance(systems, Algorithm | Chosen) else list(systems)
        pairs = [(label_of(_algorithm(one)), _algorithm(one)) for one in found]
    labels: dict[str, Algorithm] = {}
    for label, one in pairs:
        if label in labels:
            raise SettingError(f"two systems are called {label!r}: name them in a mapping")
        labels[label] = one
    return labels


def _algorithm(one: object) -> Algorithm:
    if isinstance(one, Chosen):
        return one.algorithm
    if isinstance(one, Algorithm):
        return one
    raise SettingError(
        f"a plan holds algorithms, such as us.Popularity(); got {one!r} (wrap a function of your "
        f"own in us.Custom)"
    )


def label_of(one: Algorithm) -> str:
    """Return the name of an algorithm and the settings that differ from their defaults."""
    if isinstance(one, Custom):
        return one.label
    plain = settings_of(type(one))
    own = [f"{k}={getattr(one, k)}" for k in plain if getattr(one, k) != plain[k]]
    return " ".join([one.name, *own])


# Plans as files


def read_plan(source: str | Path) -> tuple[Plan, dict[str, Any]]:
    """Read a plan from a TOML file; return it and what the file says of its data.

    Parameters
    ----------
    source
        A path. See the documentation of experiments for the keys.
    """
    path = Path(source)
    try:
        content = tomllib.loads(path.read_text())
    except OSError as problem:
        raise SettingError(f"{path}: cannot be read ({problem.strerror})") from None
    except tomllib.TOMLDecodeError as problem:
        raise SettingError(f"{path}: no valid TOML ({problem})") from None
    try:
        return plan_of(content)
    except SettingError as problem:
        raise type(problem)(f"{path}: {problem}") from None


_TOP = ("seed", "metrics", "users", "undefined", "ties", "draws", "judgments", "data",
        "relevance", "split", "targets", "algorithm", "intervention")  # fmt: skip
_DATA = ("file", "user", "item", "rating", "time", "tags", "duplicates", "format")


def plan_of(content: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """Build a plan from the tables of a TOML file."""
    for key in content:
        choose("key", key, _TOP)
    data = _table(content, "data")
    for key in data:
        choose("key of [data]", key, _DATA)
    settings: dict[str, Any] = {
        key: content[key]
        for key in ("seed", "metrics", "users", "undefined", "ties", "draws", "judgments")
        if key in content
    }
    if "relevance" in content:
        settings["relevance"] = _relevance(content["relevance"])
    if "split" in content:
        settings["split"] = [_split(one) for one in _tables(content, "split")]
    if "targets" in content:
        settings["targets"] = [_targets(one) for one in _tables(content, "targets")]
    if "intervention" in content:
        settings["interventions"] = [_design(one) for one in _tables(content, "intervention")]
    settings["algorithms"] = dict(
        pair for one in _tables(content, "algorithm") for pair in _systems(one)
    )
    return Plan(**settings), data


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key, {})
    if not isinstance(value, Mapping):
        raise SettingError(f"[{key}] must be a table, got {value!r}")
    return dict(value)


def _tables(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = content.get(key, [])
    found = [value] if isinstance(value, Mapping) else value
    if not isinstance(found, list) or not all(isinstance(one, Mapping) for one in found):
        raise SettingError(f"[[{key}]] must be tables, got {value!r}")
    return [dict(one) for one in found]


def _relevance(value: object) -> Relevance:
    if isinstance(value, str):
        return Relevance.paper(value)
    if not isinstance(value, Mapping):
        raise SettingError(f"[relevance] must be a table or the name of a paper, got {value!r}")
    for key in value:
        choose("key of [relevance]", key, ("liked", "above", "gain", "loss"))
    rules: dict[str, Any] = {
        key: {float(k): float(v) for k, v in rule.items()} if isinstance(rule, Mapping) else rule
        for key, rule in value.items()
    }
    return Relevance(**rules)


def _named(table: dict[str, Any], key: str, what: str, allowed: Iterable[str]) -> str:
    if key not in table:
        raise SettingError(f"[[{what}]] needs {key} = …, one of {', '.join(allowed)}")
    return str(table.pop(key))


def _split(table: dict[str, Any]) -> Splitter:
    from unskew.protocol.registry import PROTOCOLS

    return protocol(_named(table, "protocol", "split", PROTOCOLS), **table)


def _targets(table: dict[str, Any]) -> Targets:
    name = choose("design", _named(table, "design", "targets", TARGETS), TARGETS)
    for key in table:
        choose("setting of targets", key, [one.name for one in fields(Targets)])
    return TARGETS[name](**table)


def _design(table: dict[str, Any]) -> Design:
    kind = DESIGNS[choose("kind", _named(table, "kind", "intervention", DESIGNS), DESIGNS)]
    for key in table:
        choose(f"setting of {kind.kind}", key, [one.name for one in fields(kind)])
    made: Design = kind(**table)
    return made


def _systems(table: dict[str, Any]) -> list[tuple[str, Algorithm]]:
    """Build the systems of one table: a list as a setting makes a grid."""
    name = _named(table, "name", "algorithm", ALGORITHMS)
    label = table.pop("label", None)
    grid = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    systems = []
    for values in itertools.product(*grid.values()):
        one = algorithm(name, **dict(zip(grid, values, strict=True)))
        own = " ".join(f"{k}={v}" for k, v in zip(grid, values, strict=True) if len(grid[k]) > 1)
        shown = label_of(one) if label is None else f"{label} {own}".strip()
        systems.append((shown, one))
    return systems
