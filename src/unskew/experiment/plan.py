"""`Plan`: an experiment as a value. What it says is all that determines its results."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any, ClassVar

import numpy as np

from unskew.checks import as_count, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.store import key_of
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS
from unskew.evaluation.scores import UNDEFINED, USERS
from unskew.metrics.names import Metric, parse
from unskew.recommend.model import Algorithm
from unskew.recommend.presets import Chosen
from unskew.recommend.registry import ALGORITHMS, algorithm, settings_of
from unskew.splits.custom import Custom as CustomSplit
from unskew.splits.interventions import DESIGNS, Design
from unskew.splits.random import Random
from unskew.splits.registry import PROTOCOLS, protocol
from unskew.splits.split import Split, Splitter
from unskew.targets.designs import NAMED, AllItems, Targets

STAGES = {"split": 1, "intervene": 1, "targets": 1, "fit": 2, "rank": 2, "metrics": 1, "chance": 1}
"""The version of each stage: a change of what it computes needs a new number here, so that no
stored result of the old code is taken for one of the new."""

TARGETS = {**{name: one.build for name, one in NAMED.items()}, "targets": Targets}
"""Every design by its name in a plan file."""


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
    draw_name: ClassVar[str] = "custom"
    not_on_cards: ClassVar[frozenset[str]] = frozenset({"function"})

    def learn(self, train: Ratings, rng: np.random.Generator) -> Any:
        """Call the function."""
        return self.function(train, rng)


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
        Judge by these samples of the test part (`us.splits.Skew()` …) beside the test part itself;
        give `us.splits.Full()` among them, or nothing, to keep the whole.
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
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity(), us.recommend.UserKNN(k=50)], seed=7)
    >>> list(plan.systems)
    ['popularity', 'user-knn k=50']
    """

    split: Splitter | Sequence[Splitter] = field(default_factory=Random)
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
        def several(name: str, kind: Any, example: str) -> None:
            value = getattr(self, name)
            parts = (value,) if isinstance(value, kind) else value
            if isinstance(parts, str | Mapping) or not isinstance(parts, Iterable):
                raise SettingError(f"plan: {name} cannot be {value!r}; give {example}")
            parts = tuple(str(one) if isinstance(one, Metric) else one for one in parts)
            told = []
            for part in parts:
                if not isinstance(part, kind):
                    raise SettingError(f"plan: {name} cannot hold {part!r}; give {example}")
                told.append(part if isinstance(part, str) else part.describe())
            for place, one in enumerate(told):
                if one in told[:place]:
                    raise SettingError(f"plan: {name} holds {parts[place]!r} twice")
            object.__setattr__(self, name, parts)

        object.__setattr__(self, "split", _as_splitters(self.split))
        several("split", Splitter, "splits, such as us.splits.Random(folds=5)")
        several("targets", Targets, "designs, such as us.targets.TestItems()")
        several("metrics", Metric | str, "names, such as nDCG@10")
        several("interventions", Design, "interventions, such as us.splits.Skew()")
        several("judgments", str, "names, such as test")
        object.__setattr__(self, "algorithms", tuple(_labelled(self.algorithms).items()))
        for name in ("split", "targets", "algorithms", "metrics", "judgments"):
            if not getattr(self, name):
                raise SettingError(f"plan: {name} is empty")
        for name in self.metrics:
            metric = parse(name)
            if metric.definition.of != "judged" and metric.cutoff is None:
                raise SettingError(
                    f"plan: {name} needs a cutoff, because every target is ranked: {name}@10"
                )
        if not isinstance(self.relevance, Relevance):
            raise SettingError(f"plan: relevance must be us.Relevance(…), got {self.relevance!r}")
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
            "users": self.users,
            "undefined": self.undefined,
            "ties": self.ties,
            "draws": self.draws,
            "seed": self.seed,
        }


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
            "judgments": self.judgments,
            "intervention": changed,
            "targets": self.targets.describe(),
        }

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
        single = isinstance(systems, str) or not isinstance(systems, Iterable)
        found = [systems] if single else list(systems)
        pairs = [(label_of(_algorithm(one)), _algorithm(one)) for one in found]
    labels: dict[str, Algorithm] = {}
    for label, one in pairs:
        if label in labels:
            raise SettingError(f"two systems are called {label!r}: name them in a mapping")
        labels[label] = one
    return labels


def _as_splitters(given: Any) -> Any:
    """Wrap functions that split."""
    if isinstance(given, FunctionType):
        return CustomSplit(given.__name__, given)
    if isinstance(given, list | tuple):
        return tuple(_as_splitters(one) for one in given)
    return given


def _algorithm(one: object) -> Algorithm:
    if isinstance(one, Chosen):
        return one.algorithm
    if isinstance(one, FunctionType):
        return Custom(one.__name__, one)
    if isinstance(one, Algorithm):
        return one
    raise SettingError(
        f"a plan holds algorithms, such as us.recommend.Popularity(); got {one!r} (a "
        f"function of your own can be one, best in us.experiment.Custom)"
    )


def label_of(one: Algorithm) -> str:
    """Return the name of an algorithm and the settings that differ from their defaults."""
    if isinstance(one, Custom):
        return one.label
    plain, own = settings_of(type(one)), {key: getattr(one, key) for key in settings_of(type(one))}
    shown = [
        f"{key}={value}"
        for key, value in own.items()
        if not isinstance(value, Ratings) and value != plain[key]
    ]
    return " ".join([one.name, *shown])


# Plans as files


@checked
def read_plan(source: str | Path) -> tuple[Plan, dict[str, Any]]:
    """Read a plan from a TOML file; return it and what the file says of its data.

    Parameters
    ----------
    source
        A path. See the documentation of experiments for the keys.
    """
    path = Path(source)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingError(f"{path}: cannot be read ({problem.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingError(f"{path}: no valid TOML ({problem})") from None
    try:
        return plan_of(content)
    except SettingError as problem:
        raise type(problem)(f"{path}: {problem}") from None


_TOP = (
    "seed",
    "metrics",
    "users",
    "undefined",
    "ties",
    "draws",
    "judgments",
    "data",
    "relevance",
    "split",
    "targets",
    "algorithm",
    "intervention",
)
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
    settings["algorithms"] = tuple(
        pair for one in _tables(content, "algorithm") for pair in _systems(one)
    )
    return Plan(**settings), data


def plan_from_card(card: Mapping[str, Any], ratings: Iterable[Ratings] = ()) -> Plan:
    """Return the plan that a card tells of, such as that of a stored result.

    Parameters
    ----------
    card
        What `Plan.describe` gave, or a card that holds it under `plan`.
    ratings
        Ratings for which only a fingerprint stands on the card, such as the random ones of
        `ForcedTest`.
    """
    told = card.get("plan", card)
    known = {one.fingerprint: one for one in ratings}

    def given(fingerprint: str) -> Ratings:
        if fingerprint not in known:
            raise SettingError(
                f"the card needs further ratings, with the fingerprint {fingerprint}: give them "
                f"with ratings=[…]"
            )
        return known[fingerprint]

    def whole(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if set(value) != {"ratings", "fingerprint"}:
            return {key: whole(one) for key, one in value.items()}
        return given(value["fingerprint"])

    def system(label: str, one: Mapping[str, Any]) -> Algorithm:
        settings = dict(one)
        name = settings.pop("algorithm")
        if name not in ALGORITHMS:
            raise SettingError(
                f"{label} is code outside this library: a card tells only its name and settings"
            )
        if settings.get("truth") is not None:
            settings["truth"] = given(settings["truth"])
        return algorithm(name, **settings)

    # Lists are the same for all systems: their card names none.
    systems = {label: system(label, one) for label, one in told["algorithms"].items()}
    rest = ("metrics", "judgments", "users", "undefined", "ties", "draws", "seed")
    return Plan(
        split=[_split(whole(one)) for one in told["split"]],
        targets=[Targets(**one) for one in told["targets"]],
        algorithms=systems or {"random": algorithm("random")},
        relevance=_relevance(told["relevance"]),
        interventions=[_design(dict(one)) for one in told["interventions"]],
        **{key: told[key] for key in rest if key in told},
    )


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
    rules: dict[str, Any] = {}
    for key, rule in value.items():
        if key in ("liked", "above"):
            if isinstance(rule, bool) or not isinstance(rule, int | float):
                raise SettingError(f"[relevance] {key} must be a number, got {rule!r}")
            rules[key] = rule
            continue
        try:
            table = isinstance(rule, Mapping)
            rules[key] = {float(k): float(v) for k, v in rule.items()} if table else str(rule)
        except (TypeError, ValueError):
            raise SettingError(f"[relevance] {key} must give numbers, got {rule!r}") from None
    return Relevance(**rules)


def _known(what: str, given: Iterable[str], allowed: Iterable[str]) -> None:
    names = tuple(allowed)
    for key in given:
        choose(f"setting of {what}", key, names)


def _made(what: str, kind: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Build what a table tells of; a value of a wrong type is the user's, not ours."""
    try:
        return kind(**settings)
    except TypeError as problem:
        raise SettingError(f"{what}: {problem}; got {dict(settings)}") from None


def _named(table: dict[str, Any], key: str, what: str, allowed: Iterable[str]) -> str:
    if key not in table:
        raise SettingError(f"[[{what}]] needs {key} = …, one of {', '.join(allowed)}")
    return str(table.pop(key))


def _split(table: dict[str, Any]) -> Splitter:
    settings = {
        key: value.isoformat() if isinstance(value, date | datetime) else value
        for key, value in table.items()
    }
    name = _named(settings, "protocol", "split", PROTOCOLS)
    kind = PROTOCOLS[choose("protocol", name, PROTOCOLS)]
    _known(name, settings, [one.name for one in fields(kind)])
    for key, value in settings.items():
        if isinstance(value, Mapping):
            settings[key] = _split(dict(value))
        elif key == "of":
            raise SettingError(f"{name}: of must be a table with its own protocol, got {value!r}")
    made: Splitter = _made(f"[[split]] {name}", lambda **own: protocol(name, **own), settings)
    return made


def _targets(table: dict[str, Any]) -> Targets:
    name = choose("design", _named(table, "design", "targets", TARGETS), TARGETS)
    _known(name, table, [one.name for one in fields(Targets)])
    what = f'[[targets]] {name} (design = "targets" takes every setting)'
    made: Targets = _made(what, TARGETS[name], table)
    return made


def _design(table: dict[str, Any]) -> Design:
    name = choose("kind", _named(table, "kind", "intervention", DESIGNS), DESIGNS)
    _known(name, table, [one.name for one in fields(DESIGNS[name])])
    made: Design = _made(f"[[intervention]] {name}", DESIGNS[name], table)
    return made


def _systems(table: dict[str, Any]) -> list[tuple[str, Algorithm]]:
    """Build the systems of one table: a list as a setting makes a grid."""
    name = choose("algorithm", _named(table, "name", "algorithm", ALGORITHMS), ALGORITHMS)
    label = table.pop("label", None)
    if label is not None and not isinstance(label, str):
        raise SettingError(f"[[algorithm]] label must be text, got {label!r}")
    _known(name, table, [*settings_of(ALGORITHMS[name]), "label"])
    grid = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, values in grid.items():
        if not values:
            raise SettingError(f"[[algorithm]] {name}: {key} is an empty list")
    systems = []
    for point in itertools.product(*grid.values()):
        settings = dict(zip(grid, point, strict=True))
        one = _made(f"[[algorithm]] {name}", ALGORITHMS[name], settings)
        own = " ".join(f"{k}={v}" for k, v in settings.items() if len(grid[k]) > 1)
        shown = label_of(one) if label is None else f"{label} {own}".strip()
        systems.append((shown, one))
    return systems
