"""`Plan`: an experiment as a value. What it says is all that determines its results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from unskew.arrays import Mask
from unskew.checks import as_count, choose
from unskew.data.events import Events
from unskew.data.filters import Filter
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance
from unskew.engine.rng import DrawKeyed
from unskew.engine.store import digest_of
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS
from unskew.evaluation.scores import UNDEFINED, USERS
from unskew.evaluation.scoring import check_tied
from unskew.metrics.definition import Definition, register
from unskew.metrics.names import REGISTRY, Metric, parse
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import settings_of
from unskew.report.text import counted
from unskew.splits.draws import drawn_users
from unskew.splits.given import Custom as CustomSplit
from unskew.splits.interventions import Design
from unskew.splits.random import Random
from unskew.splits.split import Split, Splitter
from unskew.targets.designs import AllItems, Targets
from unskew.ties import EXPECTED

STAGES = {"split": 1, "intervene": 1, "targets": 1, "fit": 3, "rank": 2, "metrics": 1, "chance": 1}
"""The version of each stage: a change of what it computes needs a new number here, so that no
stored result of the old code is taken for one of the new."""


@dataclass(frozen=True)
class Custom(Algorithm):
    """A recommender that is not part of unskew: a function that fits it, a name and a version.

    Parameters
    ----------
    label
        What it is called.
    function
        Takes training ratings and a numpy generator and returns a model, or anything that
        `us.rank` takes. To run in several processes it must be importable (not a lambda).
    version
        Change it with what the function computes. Without a version results are not stored.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> def newest(train, rng):
    ...     return np.arange(len(train.items))
    >>> plan = us.Plan(algorithms=[us.experiment.Custom("newest", newest, version=1)])
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> us.run_plan(shop.ratings, plan).scores()
    [Scores(1 system, 6 metrics, 60 lists)]
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


@runtime_checkable
class PublishedSystem(Protocol):
    """A system of a paper, as `unskew_studies.preset` returns it."""

    @property
    def algorithm(self) -> Algorithm:
        """The algorithm with the paper's settings."""


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
        What to compute: names, or metrics by label. The plan holds metrics by label.
    interventions
        Judge by these samples of the test part (`us.splits.Skew()` …) beside the test part itself;
        give `us.splits.Full()` among them, or nothing, to keep the whole.
    judgments
        Which judgment sets of a split judge: `test`, or names such as `observed` and `true`.
    users, undefined
        As in `evaluate`.
    ties
        How equal scores are ordered: `id` or `random`; or `expected`: metrics are averaged over
        all orders (metrics of judged items only).
    draws
        Random orders averaged where chance has no closed form.
    seed
        Everything random follows from it.
    judged_users
        Judge so many users, drawn at random, the same ones in every split; systems are trained on
        all ratings. None, or more than have ratings: all users are judged.
    filters
        What to do with the data before they are split, such as `us.data.KCore(5, 5)`.

    Examples
    --------
    >>> import unskew as us
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity(), us.recommend.UserKNN(k=50)], seed=7)
    >>> list(plan.systems)
    ['popularity', 'user-knn k=50']
    """

    split: Splitter | Sequence[Splitter] = field(default_factory=Random)
    targets: Targets | Sequence[Targets] = field(default_factory=AllItems)
    algorithms: (
        Sequence[Algorithm | PublishedSystem] | Mapping[str, Algorithm | PublishedSystem]
    ) = ()
    relevance: Relevance = field(default_factory=lambda: Relevance(liked=4))
    metrics: str | Sequence[str] | Mapping[str, Metric] = METRICS
    interventions: Sequence[Design] = ()
    judgments: str | Sequence[str] = "test"
    users: str = "with-test"
    undefined: str = "zero"
    ties: str = "id"
    draws: int = 10
    seed: int = 0
    judged_users: int | None = None
    filters: Filter | Sequence[Filter] = ()

    def __post_init__(self) -> None:
        def check(name: str, kind: Any, example: str) -> None:
            value = getattr(self, name)
            parts = (value,) if isinstance(value, kind) else value
            if isinstance(parts, str | Mapping) or not isinstance(parts, Iterable):
                raise SettingError(f"plan: {name} cannot be {value!r}; give {example}")
            parts = tuple(str(part) if isinstance(part, Metric) else part for part in parts)
            descriptions = []
            for part in parts:
                if not isinstance(part, kind):
                    raise SettingError(f"plan: {name} cannot hold {part!r}; give {example}")
                descriptions.append(part if isinstance(part, str) else part.describe())
            for index, description in enumerate(descriptions):
                if description in descriptions[:index]:
                    raise SettingError(f"plan: {name} holds {parts[index]!r} twice")
            object.__setattr__(self, name, parts)

        object.__setattr__(self, "split", _as_splitters(self.split))
        check("split", Splitter, "splits, such as us.splits.Random(folds=5)")
        check("targets", Targets, "designs, such as us.targets.TestItems()")
        if not _is_labelled(self.metrics):
            check("metrics", Metric | str, "names, such as nDCG@10")
        check("interventions", Design, "interventions, such as us.splits.Skew()")
        check("judgments", str, "names, such as test")
        check("filters", Filter, "filters, such as us.data.KCore(5, 5)")
        object.__setattr__(self, "algorithms", tuple(_labelled(self.algorithms).items()))
        for name in ("split", "targets", "algorithms", "metrics", "judgments"):
            if not getattr(self, name):
                raise SettingError(f"plan: {name} is empty")
        if not isinstance(self.metrics, Mapping):
            object.__setattr__(self, "metrics", {name: parse(name) for name in self.metrics})
        for name, metric in self.labelled_metrics.items():
            if metric.definition.of != "judged" and metric.cutoff is None:
                raise SettingError(
                    f"plan: {name} needs a cutoff, because every target is ranked: {name}@10"
                )
        if not isinstance(self.relevance, Relevance):
            raise SettingError(f"plan: relevance must be us.Relevance(…), got {self.relevance!r}")
        choose("users", self.users, USERS)
        choose("undefined", self.undefined, UNDEFINED)
        choose("ties", self.ties, ("id", "random", EXPECTED))
        if self.ties == EXPECTED:
            check_tied(self.labelled_metrics, None, "out", next(iter(self.systems), None))
            if any(getattr(design, "exact", False) for design in self.designs):
                raise SettingError(
                    "plan: exact=True ranks all candidates in one order: leave ties='expected' out"
                )
        as_count("draws", self.draws)
        as_count("seed", self.seed, 0)
        if self.judged_users is not None:
            as_count("judged_users", self.judged_users)

    @cached_property
    def key(self) -> str:
        """A key of everything the plan says."""
        return digest_of(self.describe())

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        facts: list[tuple[str, object]] = [
            *(("split", repr(split)) for split in self.splits),
            *(("targets", repr(design)) for design in self.designs),
            *(("intervention", repr(intervention)) for intervention in self.interventions),
            *(("system", f"{label}: {system!r}") for label, system in self.systems.items()),
            ("relevance", str(self.relevance)),
            ("metrics", ", ".join(self.metrics)),
            ("judgments", ", ".join(self.judgments)),
            ("users", self.users),
            ("undefined values", "count as 0" if self.undefined == "zero" else "are left out"),
            ("judged users", self.judged_users),
            *(("filter", repr(step)) for step in self.filter_steps),
            ("seed", self.seed),
        ]
        return card(
            "Plan", f"{counted(len(self.systems), 'system')}", facts, hint="us.run_plan(data, plan)"
        )

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
    def filter_steps(self) -> tuple[Filter, ...]:
        """The filters, in their order."""
        return self.filters  # type: ignore[return-value]

    @property
    def systems(self) -> dict[str, Algorithm]:
        """The algorithms by label."""
        return dict(self.algorithms)  # type: ignore[arg-type]

    @property
    def labelled_metrics(self) -> dict[str, Metric]:
        """The metrics by label."""
        return self.metrics  # type: ignore[return-value]

    @property
    def user_metrics(self) -> list[Definition]:
        """The metrics that a user's code registered."""
        definitions = [metric.definition for metric in self.labelled_metrics.values()]
        return [definition for definition in definitions if definition.is_user_code]

    @cached_property
    def storable(self) -> frozenset[str | None]:
        """The systems whose results may be taken from a store; None stands for the lists.

        Not those that depend on code of the user that has no version.
        """
        rules = (self.relevance.gain, self.relevance.loss)
        shared: list[DrawKeyed] = [*self.splits, *self.designs, *self.interventions]
        if any(callable(rule) for rule in rules) or self.user_metrics:
            return frozenset()
        if not all(part.storable for part in shared):
            return frozenset()
        return frozenset(
            [None, *(name for name, system in self.systems.items() if system.storable)]
        )

    def __getstate__(self) -> dict[str, Any]:
        # Another process reads the plan: it has to know the user's metrics.
        return {**self.__dict__, "user_metrics": self.user_metrics}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for definition in state.pop("user_metrics"):
            if definition.name not in REGISTRY:  # its module may have registered it already
                register(definition)
        self.__dict__.update(state)

    def folds(self, ratings: Ratings | Events, seed: int | None = None) -> list[tuple[int, int]]:
        """Return all splits of ratings: the number of the splitter, and of its split.

        Parameters
        ----------
        ratings
            What is split.
        seed
            The seed of the splits; that of the plan unless given.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> systems, splitters = [us.recommend.Popularity()], [us.splits.Random(folds=2)]
        >>> us.Plan([*splitters, us.splits.PerUser()], algorithms=systems).folds(shop)
        [(0, 0), (0, 1), (1, 0)]
        """
        chosen = self.seed if seed is None else seed
        return [
            (number, fold)
            for number, splitter in enumerate(self.splits)
            for fold in range(splitter.count(ratings, chosen))
        ]

    def judged(self, ratings: Ratings | Events) -> Mask | None:
        """Return the users of ratings who are judged; None = all."""
        if self.judged_users is None:
            return None
        return drawn_users(ratings, self.judged_users, self.seed)

    def views(self) -> list[PlanView]:
        """Return every way in which a system is judged on one split."""
        changes: Sequence[Design | None] = self.interventions or (None,)
        return [
            PlanView(judgments, change, design)
            for judgments in self.judgments
            for change in changes
            for design in self.designs
        ]

    def describe(self) -> dict[str, Any]:
        """Return the plan as plain values, for a card."""
        return {
            "split": [split.describe() for split in self.splits],
            "targets": [design.describe() for design in self.designs],
            "algorithms": {label: system.describe() for label, system in self.systems.items()},
            "relevance": self.relevance.describe(),
            "metrics": list(self.metrics),
            "interventions": [intervention.describe() for intervention in self.interventions],
            "judgments": list(self.judgments),
            "users": self.users,
            "undefined": self.undefined,
            "ties": self.ties,
            "draws": self.draws,
            "seed": self.seed,
            # Only where it is set: results that were stored before it was there keep their key.
            **({} if self.judged_users is None else {"judged_users": self.judged_users}),
            **(
                {"filters": [step.describe() for step in self.filter_steps]} if self.filters else {}
            ),
        }


@dataclass(frozen=True)
class PlanView:
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
        judged = split.judged_by(self.judgments)
        if self.intervention is None:
            return judged
        sample = self.intervention.sample(judged.test, split.train, seed=seed)
        return replace(judged, test=sample.ratings)


def _labelled(
    systems: Sequence[Algorithm | PublishedSystem] | Mapping[str, Algorithm | PublishedSystem],
) -> dict[str, Algorithm]:
    """Name every system; refuse two of one name."""
    if isinstance(systems, Mapping):
        pairs = [(str(label), _algorithm(system)) for label, system in systems.items()]
    elif isinstance(systems, tuple) and systems and isinstance(systems[0], tuple):
        pairs = list(systems)  # named already
    else:
        single = isinstance(systems, str) or not isinstance(systems, Iterable)
        algorithms = [_algorithm(system) for system in ([systems] if single else systems)]
        pairs = [(label_of(algorithm), algorithm) for algorithm in algorithms]
    labels: dict[str, Algorithm] = {}
    for label, named in pairs:
        if label in labels:
            raise SettingError(f"two systems are called {label!r}: name them in a mapping")
        labels[label] = named
    return labels


def _is_labelled(metrics: object) -> bool:
    """Tell whether metrics are given by label."""
    return isinstance(metrics, Mapping) and all(
        isinstance(metric, Metric) for metric in metrics.values()
    )


def _as_splitters(value: Any) -> Any:
    """Wrap functions that split."""
    if isinstance(value, FunctionType):
        return CustomSplit(value.__name__, value)
    if isinstance(value, list | tuple):
        return tuple(_as_splitters(part) for part in value)
    return value


def _algorithm(value: object) -> Algorithm:
    if isinstance(value, Algorithm):
        return value
    if isinstance(value, FunctionType):
        return Custom(value.__name__, value)
    if isinstance(value, PublishedSystem):
        return _algorithm(value.algorithm)
    raise SettingError(
        f"a plan holds algorithms, such as us.recommend.Popularity(); got {value!r} (a "
        f"function of your own can be one, best in us.experiment.Custom)"
    )


def label_of(algorithm: Algorithm) -> str:
    """Return the name of an algorithm and the settings that differ from their defaults."""
    if isinstance(algorithm, Custom):
        return algorithm.label
    values = {key: getattr(algorithm, key) for key in settings_of(type(algorithm))}
    settings = [
        f"{key}={_setting_text(value)}"
        for key, value in values.items()
        if not isinstance(value, Ratings) and value != settings_of(type(algorithm))[key]
    ]
    return " ".join([algorithm.name, *settings])


def _setting_text(value: object) -> object:
    """Return a setting in a label; a recommender among them by its own label."""
    if not isinstance(value, Algorithm):
        return value
    label = label_of(value)
    return f"({label})" if " " in label else label
