"""Plans as TOML files (`read_plan`), and on the cards of stored results (`plan_from_card`)."""

from __future__ import annotations

import itertools
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from unskew.checks import checked, choose
from unskew.data.dataset import data_key
from unskew.data.events import Events
from unskew.data.filters import FILTERS, Filter, filter_of
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, paper_of
from unskew.engine.store import Store
from unskew.engine.threads import available
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS, labelled
from unskew.experiment.collection import PlanData
from unskew.experiment.execution import tasks_of
from unskew.experiment.plan import Plan, PlanView, label_of
from unskew.judging.rank import tile_users
from unskew.recommend.fit_cost import DataShape, fit_cost, timed_trial
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import (
    ALGORITHMS,
    IN_STUDIES,
    algorithm,
    algorithm_class,
    settings_of,
)
from unskew.report.text import counted
from unskew.splits.interventions import DESIGNS, Design
from unskew.splits.saved import PROTOCOLS, protocol
from unskew.splits.split import Splitter
from unskew.targets.designs import BY_NAME, NAMED, Targets

TARGETS = {**{name: design.build for name, design in NAMED.items()}, "targets": Targets}
"""Every design by its name in a plan file."""


@checked
def read_plan(source: str | Path) -> tuple[Plan, dict[str, Any]]:
    r"""Read a plan from a TOML file; return it and what the file says of its data.

    Parameters
    ----------
    source
        A path. See the documentation of experiments for the keys.

    Returns
    -------
    tuple
        The `Plan`, and a dict of what stands under `[data]`, such as the file of ratings; empty
        without that table.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import unskew as us
    >>> file = Path(tempfile.mkdtemp()) / "plan.toml"
    >>> lines = ['data.file = "ratings.csv"', "relevance.liked = 4", 'metrics = ["P@10"]']
    >>> lines += ['split = [{protocol = "user"}]', 'algorithm = [{name = "user-knn", k = 50}]']
    >>> size = file.write_text("\n".join(lines))
    >>> plan, data = us.read_plan(file)
    >>> list(plan.systems), data
    (['user-knn k=50'], {'file': 'ratings.csv'})
    """
    path = Path(source)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingError(f"{path}: cannot be read ({problem.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingError(f"{path}: not valid TOML ({problem})") from None
    try:
        return plan_of(content)
    except SettingError as problem:
        raise type(problem)(f"{path}: {problem}") from None


_PLAIN = (
    "seed",
    "metrics",
    "users",
    "undefined",
    "ties",
    "draws",
    "judged_users",
    "judgments",
)
"""Keys that are settings of a plan as they stand."""
_TABLES = ("data", "relevance", "split", "targets", "algorithm", "intervention", "filter")
_TOP = (*_PLAIN, *_TABLES)
_DATA = (
    "file",
    "user",
    "item",
    "rating",
    "time",
    "tags",
    "duplicates",
    "feedback",
    "log",
    "event",
    "events",
    "weights",
    "format",
)


def plan_of(content: Mapping[str, Any]) -> tuple[Plan, dict[str, Any]]:
    """Build a plan from the tables of a TOML file."""
    for key in content:
        choose("key", key, _TOP)
    data = _table(content, "data")
    for key in data:
        choose("key of [data]", key, _DATA)
    settings: dict[str, Any] = {key: content[key] for key in _PLAIN if key in content}
    if "relevance" in content:
        settings |= _of_paper(content["relevance"], settings)
        settings["relevance"] = _relevance(content["relevance"])
    if "split" in content:
        settings["split"] = [_split(table) for table in _tables(content, "split")]
    if "targets" in content:
        settings["targets"] = [_targets(table) for table in _tables(content, "targets")]
    if "intervention" in content:
        settings["interventions"] = [_design(table) for table in _tables(content, "intervention")]
    if "filter" in content:
        settings["filters"] = [_filter(table) for table in _tables(content, "filter")]
    settings["algorithms"] = tuple(
        pair for table in _tables(content, "algorithm") for pair in _systems(table)
    )
    return Plan(**settings), data


def plan_from_card(card: Mapping[str, Any], ratings: Iterable[Ratings] = ()) -> Plan:
    """Return the plan on a card, such as that of a stored result.

    Parameters
    ----------
    card
        What `Plan.describe` gave, or a card that holds it under `plan`.
    ratings
        Ratings of which the card has the fingerprint only, such as the test ratings of
        `us.splits.Given`.
    """
    content = card.get("plan", card)
    by_fingerprint = {rating.fingerprint: rating for rating in ratings}

    def lookup(fingerprint: str) -> Ratings:
        if fingerprint not in by_fingerprint:
            raise SettingError(
                f"the card needs further ratings, with the fingerprint {fingerprint}: give them "
                f"with ratings=[…]"
            )
        return by_fingerprint[fingerprint]

    def restored(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if set(value) != {"ratings", "fingerprint"}:
            return {key: restored(part) for key, part in value.items()}
        return lookup(value["fingerprint"])

    def system(label: str, description: Mapping[str, Any]) -> Algorithm:
        settings = dict(description)
        name = settings.pop("algorithm")
        if name not in (*ALGORITHMS, *IN_STUDIES):
            raise SettingError(
                f"{label} is code outside this library: a card holds only its name and settings"
            )
        if settings.get("truth") is not None:
            settings["truth"] = lookup(settings["truth"])
        return algorithm(name, **settings)

    # Lists are the same for all systems: their card names none.
    systems = {
        label: system(label, description) for label, description in content["algorithms"].items()
    }
    return Plan(
        split=[_split(restored(description)) for description in content["split"]],
        targets=[Targets(**description) for description in content["targets"]],
        algorithms=systems or {"random": algorithm("random")},
        relevance=_relevance(content["relevance"]),
        interventions=[_design(dict(description)) for description in content["interventions"]],
        filters=[
            _filter({**description, "kind": description["filter"]})
            for description in content.get("filters", [])
        ],
        **{key: content[key] for key in _PLAIN if key in content},
    )


def _of_paper(relevance: object, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the paper that is named sets, but for what the plan states."""
    paper = paper_of(relevance)
    if paper.targets is None:
        return {}
    settings: dict[str, Any] = {
        "users": paper.users,
        "undefined": paper.undefined,
        "targets": [BY_NAME[paper.targets]()],
        **stated,
    }
    metrics = settings.get("metrics", METRICS)
    if isinstance(metrics, str | list | tuple):  # a plan refuses all else
        settings["metrics"] = [str(metric) for metric in labelled(metrics, paper).values()]
    return settings


def _table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key, {})
    if not isinstance(value, Mapping):
        raise SettingError(f"[{key}] must be a table, got {value!r}")
    return dict(value)


def _tables(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = content.get(key, [])
    tables = [value] if isinstance(value, Mapping) else value
    if not isinstance(tables, list) or not all(isinstance(table, Mapping) for table in tables):
        raise SettingError(f"[[{key}]] must be tables, got {value!r}")
    return [dict(table) for table in tables]


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


def _check_settings(what: str, keys: Iterable[str], allowed: Iterable[str]) -> None:
    names = tuple(allowed)
    for key in keys:
        choose(f"setting of {what}", key, names)


def _build(what: str, kind: Callable[..., Any], settings: Mapping[str, Any]) -> Any:
    """Build what a table describes; a value of a wrong type is an error of the user."""
    try:
        return kind(**settings)
    except TypeError as problem:
        raise SettingError(f"{what}: {problem}; got {dict(settings)}") from None


def _named(table: dict[str, Any], key: str, what: str, allowed: Iterable[str]) -> str:
    if key not in table:
        raise SettingError(f"[[{what}]] needs {key} = …, one of {', '.join(allowed)}")
    return str(table.pop(key))


def _plain_dates(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with its dates as text."""
    return {
        key: value.isoformat() if isinstance(value, date | datetime) else value
        for key, value in table.items()
    }


def _split(table: dict[str, Any]) -> Splitter:
    settings = _plain_dates(table)
    name = _named(settings, "protocol", "split", PROTOCOLS)
    kind = PROTOCOLS[choose("protocol", name, PROTOCOLS)]
    _check_settings(name, settings, [field.name for field in fields(kind)])
    for key, value in settings.items():
        if isinstance(value, Mapping):
            settings[key] = _split(dict(value))
        elif key == "of":
            raise SettingError(f"{name}: of must be a table with its own protocol, got {value!r}")
    splitter: Splitter = _build(f"[[split]] {name}", partial(protocol, name), settings)
    return splitter


def _targets(table: dict[str, Any]) -> Targets:
    name = choose("design", _named(table, "design", "targets", TARGETS), TARGETS)
    _check_settings(name, table, [field.name for field in fields(Targets)])
    what = f'[[targets]] {name} (design = "targets" takes every setting)'
    targets: Targets = _build(what, TARGETS[name], table)
    return targets


def _design(table: dict[str, Any]) -> Design:
    name = choose("kind", _named(table, "kind", "intervention", DESIGNS), DESIGNS)
    _check_settings(name, table, [field.name for field in fields(DESIGNS[name])])
    design: Design = _build(f"[[intervention]] {name}", DESIGNS[name], table)
    return design


def _filter(table: Mapping[str, Any]) -> Filter:
    settings = _plain_dates(table)
    settings.pop("filter", None)
    name = choose("kind", _named(settings, "kind", "filter", FILTERS), FILTERS)
    filter_: Filter = _build(f"[[filter]] {name}", partial(filter_of, name), settings)
    return filter_


def _systems(table: dict[str, Any]) -> list[tuple[str, Algorithm]]:
    """Build the systems of one table: a list as a setting makes a grid."""
    name = _named(table, "name", "algorithm", ALGORITHMS)
    allowed = settings_of(algorithm_class(name))
    label = table.pop("label", None)
    if label is not None and not isinstance(label, str):
        raise SettingError(f"[[algorithm]] label must be text, got {label!r}")
    _check_settings(name, table, [*allowed, "label"])
    grid = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, values in grid.items():
        if not values:
            raise SettingError(f"[[algorithm]] {name}: {key} is an empty list")
    systems = []
    for point in itertools.product(*grid.values()):
        settings = dict(zip(grid, point, strict=True))
        system = _build(f"[[algorithm]] {name}", partial(algorithm, name), settings)
        varied = " ".join(f"{k}={v}" for k, v in settings.items() if len(grid[k]) > 1)
        title = label_of(system) if label is None else f"{label} {varied}".strip()
        systems.append((title, system))
    return systems


@dataclass(frozen=True)
class Outline:
    """What a plan will do."""

    ratings: str
    splits: tuple[str, ...]
    designs: tuple[str, ...]
    systems: tuple[str, ...]
    metrics: int
    tasks: int
    done: int
    """Tasks whose results are all in the store."""
    results: int
    """Results the plan has in all."""
    bytes: int
    """A rough figure of the memory of one process."""
    seconds: dict[str, float] = field(default_factory=dict)
    """A rough figure of the time of each system on one split."""

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import view

        return view("Outline", "what the plan will do", lines=str(self).splitlines())

    def __str__(self) -> str:
        lines = [
            f"data     {self.ratings}",
            *(f"split    {split}" for split in self.splits),
            *(f"design   {design}" for design in self.designs),
        ]
        for system in self.systems:
            cost = (
                f"   about {self.seconds[system]:.1f} s a split" if system in self.seconds else ""
            )
            lines.append(f"system   {system}{cost}")
        lines.append(f"metrics  {self.metrics}")
        lines.append(
            f"{counted(self.tasks, 'task')}, {self.done} of them done; "
            f"{counted(self.results, 'result')}"
        )
        splits = self.tasks // (len(self.systems) + 1)
        if self.seconds:
            total = splits * sum(self.seconds.values())
            lines.append(f"about {total:,.0f} s of processor time to train and to score")
        models = "" if self.seconds else ", without models"
        lines.append(f"about {self.bytes / 2**20:,.0f} MiB in each process{models}")
        return "\n".join(lines)


@checked
def outline(
    plan: Plan,
    ratings: Ratings | Events,
    *,
    store: str | os.PathLike[str] | None = None,
    estimate: bool = True,
) -> Outline:
    """Return what a plan will do on some ratings, without doing it.

    Parameters
    ----------
    plan, ratings
        As for `run_plan`.
    store
        Count what is there already.
    estimate
        Time one fit of each system on a sample of users and items, and scale it to all ratings: to
        train and to score, without the time to rank and to judge.

    Returns
    -------
    Outline
        Print it. `tasks` counts one per split for its lists and one per split and system.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> plan = us.Plan(us.splits.Random(folds=5), algorithms=systems, metrics="P@5")
    >>> what = us.experiment.outline(plan, shop.ratings, estimate=False)
    >>> what.systems, what.tasks  # on each of 5 splits: the lists, and a fit of each system
    (('random', 'popularity'), 15)
    """
    prepared = PlanData.of(ratings, plan)
    plan, ratings = prepared.plan, prepared.data
    counts = [splitter.count(ratings, plan.seed) for splitter in plan.splits]
    splits = [f"{split!r}: {count}" for split, count in zip(plan.splits, counts, strict=True)]
    views = plan.views()
    tasks, done = sum(counts) * (len(plan.systems) + 1), 0
    if store is not None and Path(store).exists():  # to look at it must not make one
        opened = Store.open(store)
        done = sum(not task.todo for task in tasks_of(plan, ratings, data_key(ratings), opened))
    cells = tile_users(len(ratings.items)) * len(ratings.items)
    size = 40 * len(ratings) + 16 * cells * available()
    size += 16 * len(ratings.users) * len(plan.metrics)
    trained = ratings.to_ratings() if isinstance(ratings, Events) else ratings
    if estimate:
        shape = DataShape.of(trained)
        costs = [fit_cost(system, shape) for system in plan.systems.values()]
        size += round(max((cost.bytes for cost in costs if cost is not None), default=0.0))
    return Outline(
        ratings=repr(ratings),
        splits=tuple(splits),
        designs=tuple(map(_plan_outline_design, views)),
        systems=tuple(plan.systems),
        metrics=len(plan.metrics),
        tasks=tasks,
        done=done,
        results=len(views) * tasks,
        bytes=size,
        seconds=_times(plan, trained) if estimate else {},
    )


def _plan_outline_design(view: PlanView) -> str:
    parts = [repr(view.targets)]
    if view.judgments != "test":
        parts.append(f"judged by {view.judgments}")
    if view.intervention is not None:
        parts.append(f"after {view.intervention!r}")
    return ", ".join(parts)


def _times(plan: Plan, ratings: Ratings) -> dict[str, float]:
    """Return how long each system takes on one split: to train it and to score the users."""
    users = len(ratings.users)
    if plan.judged_users is not None:
        users = min(users, plan.judged_users)
    trials = {label: timed_trial(system, ratings) for label, system in plan.systems.items()}
    return {label: trial.fit + users * trial.score_user for label, trial in trials.items()}
