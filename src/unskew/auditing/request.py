"""What a user asks of an audit: relevance, systems, designs and how much to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from unskew.auditing.designs import Level
from unskew.auditing.large_data import LargeRequest
from unskew.data.filters import Filter
from unskew.data.ratings import Ratings
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    Relevance,
    Rule,
    check_likes,
    relevance_for,
)
from unskew.engine.executor import Executor
from unskew.engine.store import Store
from unskew.errors import SettingError
from unskew.judging.shape import View
from unskew.metrics.names import parse
from unskew.recommend.model import Algorithm

Progress = Callable[[str, int, int], None]
"""Called with the stage, and how much of it is done, of how much."""


Algorithms = Sequence[Algorithm | str] | Mapping[str, Algorithm] | None
"""Systems as objects or by name; None: those of the level."""


@dataclass(frozen=True)
class Rules:
    """What the user says of relevance, as `evaluate` takes it."""

    liked: float | None = None
    above: float | None = None
    gain: Rule = DEFAULT_GAIN
    loss: Rule = DEFAULT_LOSS
    relevance: Relevance | str | None = None

    @property
    def stated(self) -> bool:
        """Whether the user says anything."""
        return self != Rules()

    @property
    def has_threshold(self) -> bool:
        """Whether the user says what is liked."""
        return self.liked is not None or self.above is not None or self.relevance is not None

    def of(self, ratings: Ratings, usual: float | None = None) -> tuple[Relevance, list[str]]:
        """Return the rule for these ratings, and what was assumed for it.

        Where no rating is a dislike, all count alike unless the user states a gain.
        """
        if not self.has_threshold and usual is None and _are_events(ratings):
            lowest = float(ratings.value.min())
            assumed: list[str] = []
            rule = Relevance(lowest, None, self.gain, self.loss)
        else:
            rule, assumed = relevance_for(
                ratings, self.liked, self.above, self.gain, self.loss, self.relevance, usual
            )
        check_likes(ratings, rule)
        if not rule.is_liked(ratings.value).all():
            return rule, assumed
        if self.relevance is None and self.gain == DEFAULT_GAIN:
            rule = replace(rule, gain="binary")
        return rule, [*assumed, implicit_note(ratings, rule)]


WITHOUT_DISLIKES = (
    "no rating is a dislike, so anti-metrics, the liked share of judged items, margins and the "
    "null experiment (which redraws opinions) have no meaning here"
)
"""Why what needs dislikes is not run."""


def _are_events(ratings: Ratings) -> bool:
    """Tell whether values are no opinions: implicit feedback, or all the same."""
    value = ratings.value
    if not value.size or value.min() <= 0:
        return False
    return ratings.implicit or bool(value.min() == value.max())


def implicit_note(ratings: Ratings, rule: Relevance) -> str:
    """Say what `liked` means where no rating is a dislike."""
    low, high = float(ratings.value.min()), float(ratings.value.max())
    values = "" if low == high else f" (values from {low:g} to {high:g})"
    gain = (
        "whatever its value"
        if rule.gain == "binary"
        else f"with the gain {rule.describe()['gain']} of its value"
    )
    return (
        f"implicit feedback: no rating is a dislike{values}. Liked means that the pair occurs in "
        f"the data, {gain}; a pair that does not occur may be unknown or unwanted. If the values "
        "are opinions, give the smallest liked value with liked=…"
    )


@dataclass(frozen=True, kw_only=True)
class Stated:
    """What the user states before anything is measured: differences, and who counts as one."""

    margin: float | None = None
    """The difference of scores below which two systems count as equal."""
    smallest: float = 0.05
    """The smallest difference of true precision that is worth finding."""
    group_users: object = None
    """Users that count as one, as `groups_of_users` takes them."""

    def __post_init__(self) -> None:
        if self.margin is not None and not self.margin > 0:
            raise SettingError(f"margin must be above 0, got {self.margin:g}")
        if not 0 < self.smallest < 1:
            raise SettingError(f"smallest must be between 0 and 1, got {self.smallest:g}")

    def settings(self) -> dict[str, float | str]:
        """Return what is not as usual, and can be written down."""
        return {
            field.name: value
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), float | int | str)
            and value != field.default
        }


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the user asks of an audit, whether of ratings or of lists."""

    level: Level
    designs: Sequence[str] | None
    metric: str | None
    seed: int | None
    progress: Progress
    stated: Stated = field(default_factory=Stated)
    large: LargeRequest = field(default_factory=LargeRequest)


@dataclass(frozen=True, kw_only=True)
class TrainingRequest:
    """What only an audit of ratings takes, whose systems are trained."""

    rules: Rules
    algorithms: Algorithms
    random: object
    """Ratings of randomly chosen items, where the data have none."""
    filters: tuple[Filter, ...]
    """What is done to the ratings first."""
    tune: bool
    store: Store | None
    executor: Executor


def without_dislikes(metrics: Iterable[str]) -> tuple[str, ...]:
    """Return the metrics that mean something where no rating is a dislike."""
    return tuple(label for label in metrics if not parse(label).needs_dislikes)


def least_liked(relevance: Relevance, ratings: Ratings) -> float:
    """Return the smallest liked rating: what a rule that takes ratings above something means."""
    if relevance.liked is not None:
        return float(relevance.liked)
    above = ratings.value[relevance.is_liked(ratings.value)]
    return float(above.min()) if above.size else float(np.nextafter(relevance.threshold, np.inf))


def check_worth(ratings: Ratings, rule: Relevance) -> None:
    """Refuse ratings to which the rule gives no gain or no loss, before anything is run."""
    view = View.of(ratings, rule)
    for name in ("gain", "loss"):
        getattr(view, name)  # worked out, and checked, when it is asked for


def check_ordering_metric(label: str) -> str:
    """Return a metric that can order systems, or refuse it."""
    metric = parse(label)
    if metric.definition.of == "run" or metric.better == "neither":
        raise SettingError(f"{label} orders no systems: choose a metric such as P@10")
    return label


def check_absent(arguments: Mapping[str, object], why: str) -> None:
    """Refuse arguments that do not belong here."""
    for name, value in arguments.items():
        if value is not None:
            raise SettingError(f"{name} {why}")
