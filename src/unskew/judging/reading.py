"""What is given beside judgments, read once for every analysis: runs, relevance, target designs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

from unskew.checks import choose
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    Relevance,
    Rule,
    check_some_liked,
    stated_relevance,
    usual_threshold,
)
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.recommend.model import Algorithm, Model, as_model, can_score
from unskew.runs import Run, read_run, system_name
from unskew.splits.split import Split
from unskew.targets.designs import BY_NAME, Targets
from unskew.targets.lists import TargetLists
from unskew.ties import EXPECTED, MODEL_TIES

DEFAULTS = {"gain": DEFAULT_GAIN, "loss": DEFAULT_LOSS}
"""What `judge` takes where nothing is given; None for all other options."""


@dataclass(frozen=True)
class ReadingNotes:
    """What was assumed and left out while data were read, by source."""

    tests: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    relevance: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    """Of target lists: what they left out."""
    targets: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """Runs that share no item with the judgments."""

    def __iter__(self) -> Any:
        parts = (self.tests, self.train, self.relevance, self.targets, self.runs)
        return (note for part in parts for note in part)


class RawOptions(TypedDict, total=False):
    """What may be said about raw data, wherever they are taken; see `judge`."""

    liked: float | None
    above: float | None
    gain: Rule
    loss: Rule
    relevance: Relevance | str | None
    train: object
    items: object
    lists: str | Sequence[str] | None
    ties: str | None
    depth: int | None
    events: str | Sequence[str] | None


class DataOptions(RawOptions, total=False):
    """The same with the weights of events, where `weights` are not those of judgments."""

    weights: Mapping[str, float] | None


def relevance_for(
    tests: Ratings,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    usual: float | None = None,
) -> tuple[Relevance, list[str]]:
    """Return the relevance rule, and a note where the threshold had to be assumed.

    `relevance` is for those who give the rule as a whole; `usual` is the threshold of a data set
    that has one. On implicit feedback the gain is binary where nothing else is stated: a pair
    counts once, however often it occurs.
    """
    stated = stated_relevance(liked, above, gain, loss, relevance)
    if tests.implicit and relevance is None:
        lowest = float(tests.value.min(initial=1))
        rule, notes = _of_implicit(
            stated or Relevance(lowest, None, gain, loss), stated is not None
        )
        return rule, notes
    if stated is not None:
        return stated, []
    if usual is not None:
        rule = Relevance(usual, None, gain, loss)
        return rule, [f"liked: ratings from {usual:g} up (usual for these data)"]
    if "pooled" in tests.tags:
        liked, note = 1.0, "liked: every grade from 1 up (assumed)"
    else:
        liked, note = usual_threshold(tests.value)
    return Relevance(liked, None, gain, loss), [note]


def check_likes(tests: Ratings, rule: Relevance) -> None:
    """Refuse test ratings of which none is liked: every score would be 0.

    In TREC qrels that may be so, and trec_eval has values for it.
    """
    if "pooled" not in tests.tags:
        words = f"{'from' if rule.liked is not None else 'above'} {rule.threshold:g}"
        check_some_liked(tests.value, rule.is_liked(tests.value), words)


def _of_implicit(rule: Relevance, is_stated: bool) -> tuple[Relevance, list[str]]:
    """Return the rule for implicit feedback: repeated events do not add to the gain of an item."""
    liked = [] if is_stated else ["liked: every pair that occurs (implicit feedback)"]
    return (replace(rule, gain="binary") if rule.gain == DEFAULT_GAIN else rule), liked


def name_systems(runs: object) -> dict[str, object]:
    """Name all systems, by their keys or files."""
    if isinstance(runs, Mapping):
        named = {str(name): source for name, source in runs.items()}
        if any(isinstance(source, list | tuple) for source in named.values()):
            raise SettingError(
                "runs must be named: {'mine': {user: [items]}}, not {user: [items]} itself"
            )
    elif isinstance(runs, list | tuple):
        named = {}
        for source in runs:
            if not isinstance(source, str | os.PathLike):
                raise SettingError("a list of runs must hold paths; name tables in a mapping")
            name = system_name(source)
            if name in named:
                raise SettingError(
                    f"two runs are named {name!r}; name them in a mapping (NAME=FILE)"
                )
            named[name] = source
    else:
        name = system_name(runs) if isinstance(runs, str | os.PathLike) else "run"
        named = {name: runs}
    if not named:
        raise SettingError("no runs are given")
    return named


def have_keys(runs: object) -> bool:
    """Tell whether one of the runs was read with several lists per user."""
    sources = runs.values() if isinstance(runs, Mapping) else [runs]
    return any(isinstance(run, Run) and run.keys is not None for run in sources)


def read_runs(
    runs: object,
    ties: str | None,
    seed: int,
    likely: tuple[Ids, Ids] | None = None,
    lists: str | Sequence[str] | None = None,
) -> dict[str, Run]:
    """Read all runs.

    Parameters
    ----------
    runs, ties, seed
        As `judge` takes them.
    likely
        The ids of users and items that they probably have.
    lists
        The columns that tell several lists of a user apart.
    """
    named = name_systems(runs)

    def read(name: str) -> Run:
        source, columns = named[name], lists
        if isinstance(source, Run) and source.keys is not None:
            columns = ("user", source.keys.column)
        try:
            return read_run(
                source, ties=ties, seed=seed, keep_scores=False, likely=likely, lists=columns
            )
        except DataError as problem:
            raise type(problem)(f"{name}: ", *problem.args) from None

    return dict(zip(named, map_blocks(read, named), strict=True))


def read_systems(
    lists: TargetLists, systems: object, ties: str | None, seed: int
) -> dict[str, Run | Model]:
    """Read the runs among the systems of target lists; the others are models that have to rank."""
    named = name_systems(systems)
    models = {
        name: system
        for name, system in named.items()
        if isinstance(system, Algorithm) or can_score(system)
    }
    ready = {name: system for name, system in named.items() if name not in models}
    likely = (lists.judgments.users, lists.judgments.items)
    runs = read_runs(ready, ties, seed, likely) if ready else {}
    fitted: dict[str, Run | Model] = {
        name: runs[name] if name in runs else as_model(models[name], lists.train) for name in named
    }
    if models:
        choose("ties", ties or "id", (*MODEL_TIES, EXPECTED))
    return fitted


ONE_RELEVANT = ("1r", "u1r", "p1r", "one-relevant", "percentiles")
"""Names of designs with one relevant item per list, which ready-made lists cannot answer."""


def lists_of_design(
    targets: str | Targets, tests: Ratings, train: Ratings | None, relevance: Relevance, seed: int
) -> TargetLists:
    """Lay a design with one list per user over training and test ratings."""
    if isinstance(targets, str) and targets.lower() in ONE_RELEVANT:
        raise SettingError(
            f"targets={targets!r} asks for a list per liked test item, which one list per user "
            "does not give: take unskew run with a plan (design = one-relevant or percentiles), "
            "unskew audit --designs 1r,p1r, or in Python "
            "us.evaluate(us.targets.OneRelevant().lists(split, liked=4), models)"
        )
    named = isinstance(targets, str)
    design = BY_NAME[choose("targets", str(targets), BY_NAME)]() if named else targets
    assert isinstance(design, Targets)
    if design.relevant != "all" or design.strata is not None:
        raise SettingError(
            f"{design!r} asks for several lists per user: make them with .lists(split, …), and "
            f"evaluate(lists, runs)"
        )
    trained = tests.take(tests.user < 0) if train is None else train
    trained, judged = under_one_numbering(trained, tests)
    return design.lists(Split(trained, judged), relevance, seed=seed)


def run_notes(systems: Mapping[str, Run | Model]) -> tuple[str, ...]:
    """Return what reading the runs showed."""
    runs = (system for system in systems.values() if isinstance(system, Run))
    return tuple(note for run in runs for note in run.notes)
