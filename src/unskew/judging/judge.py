"""`judge`: judgments and ranked lists over one numbering, read once for every analysis."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, TypeVar

from unskew.checks import as_count, checked, choose
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.read.ratings_files import (
    read_items,
    read_parts,
    read_ratings,
    read_test_and_train,
)
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    Relevance,
    Rule,
    paper_of,
    relevance_for,
)
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError, Spelling
from unskew.judging.judged import Judged, ReadingNotes
from unskew.judging.notes import checked_numbering
from unskew.judging.occasions import Occasions, RatingLog, common_keys, lay_occasions
from unskew.judging.shape import several_refused
from unskew.judging.tied import refuse_order
from unskew.recommend.model import Algorithm, Model, as_model, can_score
from unskew.runs import Run, read_run, system_name
from unskew.splits.split import Split
from unskew.targets.designs import BY_NAME, Targets
from unskew.targets.lists import TargetLists
from unskew.ties import EXPECTED, MODEL_TIES, TIES

T = TypeVar("T")

UNRANKED = ("out", "last")
"""What becomes of targets that a list does not hold: in no place; last, in random order."""
DEFAULTS = {"gain": DEFAULT_GAIN, "loss": DEFAULT_LOSS}
"""What `judge` takes where nothing is given; None for all other options."""


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


@checked
def judge(
    judgments: object,
    runs: object,
    *,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    targets: str | Targets | None = None,
    lists: str | Sequence[str] | None = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    unranked: str | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Judged:
    """Lay judgments and ranked lists over one numbering, once for every analysis.

    Parameters
    ----------
    judgments
        Test ratings: anything that `read_ratings` takes; or target lists (`Targets.lists`), which
        know training, test and relevance themselves.
    runs
        A mapping from system name to ranked lists (anything that `read_run` takes), a list of
        paths, or a single path, table or `Run`. On target lists also fitted models and whatever
        `rank` takes; the lists of a ready-made run are named by list.
    liked, above, gain, loss
        How a rating is taken, see `Relevance`. Without `liked`, `above` or `relevance` a threshold
        is assumed where it is plain (1 for TREC qrels, implicit and 0/1 data, 4 on a scale of 1
        to 5), and the notes say so.
    relevance
        Instead of these four: a `Relevance`; or the name of a paper, such as `mena2021`, which
        also sets what `evaluate` does: which users are averaged, what undefined values count, how
        deep lists are read, and what P, AP or infAP are divided by. What is stated beside it wins.
    train
        Training ratings: for popularity, novelty, propensities and stratified recall; warns when
        lists hold items the user already rated there.
    items
        The catalogue: for coverage, Gini, entropy, AUC. Default: all items of `train` and
        `judgments`; for estimates also those of the lists.
    targets
        What the systems ranked, with `train`: a design with one list per user, such as
        `us.targets.TestItems()`, or its name (`all-items`, `test-items`, `train-items`,
        `test-targets`). Then lists are checked against it.
    lists
        Where users have several lists: the columns of the runs that tell them apart, users first,
        such as ``("user", "date")``. Each list of a date is evaluated with what its user rated
        from then on (`judgments` need times; of a log, `read_events`, an item met again counts
        again), each of a session with what is rated in it. A user's lists are averaged, then users.
    ties
        How equal scores are ordered, see `unskew.ties`. Default: `trec` for TREC files, else
        `id`. `expected`: not at all; `evaluate` and `compare` then give the exact mean of each
        metric over all orders of equal scores.
    seed
        For `ties="random"`, and for what a design of targets draws.
    depth
        Look at no more than this many items of each list.
    unranked
        Target items (the catalogue without the user's training items, or those of `targets`) that
        a list does not hold: `out` (default), they have no place; `last`, with
        `ties="expected"`, they follow the list in random order. A user without a list scores 0
        either way.
    events, weights
        Of event logs: the kinds of events that count, or what each kind counts; see `read_ratings`.

    Returns
    -------
    Judged

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> judged = us.judge(test, {"mine": {1: [20, 10], 2: [30]}}, liked=4)
    >>> us.evaluate(judged, ["RR", "P@2"]).means()
    {'mine': {'RR': 0.75, 'P@2': 0.5}}
    """
    if depth is not None:
        as_count("depth", depth)
    unranked_rule = check_ties(ties, unranked)
    if isinstance(judgments, TargetLists):
        settings = {
            "liked": liked,
            "above": above,
            "relevance": relevance,
            "train": train,
            "items": items,
            "targets": targets,
            "lists": lists,
        }
        for name, value in settings.items():
            if value is not None:
                raise SettingError(f"target lists already contain their {name}: leave {name}=… out")
        return _judge_lists(judgments, runs, ties, seed, depth, unranked_rule)
    tests, training, log, systems = read_tests(
        judgments, runs, train, lists, ties, seed, events=events, weights=weights
    )
    if log is not None and (targets is not None or unranked_rule == "last"):
        name = "unranked='last'" if targets is None else "targets=…"
        raise SettingError(f"{name} is for one list per user: leave it out, or lists=…")
    catalogue = None if items is None else read_items(items)
    rule, assumed = relevance_for(tests, liked, above, gain, loss, relevance)
    paper = relevance if isinstance(relevance, str) else ""
    depth = depth or paper_of(paper).depth
    read = ReadingNotes(tests.notes, () if training is None else training.notes, tuple(assumed))
    if targets is not None:
        if catalogue is not None:
            raise SettingError("target lists already contain their items: leave items=… out")
        target_lists = lists_of_design(targets, tests, training, rule, seed)
        return replace(
            _judge_lists(target_lists, runs, ties, seed, depth, unranked_rule, read), paper=paper
        )
    systems = systems or read_runs(runs, ties, seed, (tests.users, tests.items))
    occasions: Occasions | None = None
    list_notes: tuple[str, ...] = ()
    if log is None:
        numbering = checked_numbering(tests, training, systems, catalogue)
    else:
        numbering, occasions = lay_occasions(log, training, systems, catalogue)
        list_notes = occasions.notes
    return Judged.over(
        numbering,
        rule,
        tests=tests,
        train=training,
        systems=systems,
        items=catalogue,
        occasions=occasions,
        ties=ties,
        seed=seed,
        depth=depth,
        unranked=unranked_rule,
        paper=paper,
        read=replace(read, runs=(*run_notes(systems), *list_notes)),
    )


def _judge_lists(
    lists: TargetLists,
    runs: object,
    ties: str | None,
    seed: int,
    depth: int | None,
    unranked: str,
    read: ReadingNotes = ReadingNotes(),  # noqa: B008 - frozen
) -> Judged:
    """Lay models, or runs made for them, over target lists."""
    if lists.exact and (depth is not None or ties == EXPECTED):
        name = "depth=…" if depth is not None else "ties='expected'"
        raise SettingError(f"exact=True ranks all candidates in one order: leave {name} out")
    systems = read_systems(lists, runs, ties, seed)
    if unranked == "last" and any(not isinstance(system, Run) for system in systems.values()):
        raise SettingError(
            "unranked='last' is for ready-made runs; a model ranks all targets: give the targets "
            "shortfall='fill', and those that it cannot score come last in random order"
        )
    read = replace(read, targets=lists.notes, runs=run_notes(systems))
    return Judged.of_lists(
        lists, systems, ties=ties, seed=seed, depth=depth, unranked=unranked, read=read
    )


def second_argument(judgments: object, runs: object, metrics: T, default: T) -> tuple[object, T]:
    """Return runs and metrics: after judged data, metrics are the second argument."""
    if not isinstance(judgments, Judged) or runs is None:
        return runs, metrics
    if metrics != default:
        raise SettingError("runs are already part of the judged data: leave runs=… out")
    return None, runs  # type: ignore[return-value]


def as_judged(
    judgments: object,
    runs: object,
    *,
    seed: int = 0,
    may_tie: bool = False,
    may_repeat: bool = False,
    **options: Any,
) -> Judged:
    """Take judged data as they are, or judge raw data by the options of `judge`.

    What cannot average over orders of equal scores leaves `may_tie` out, what cannot take users
    with lists of several dates or sessions `may_repeat`.
    """
    ties = judgments.ties if isinstance(judgments, Judged) else options.get("ties")
    if ties == EXPECTED and not may_tie:
        raise refuse_order()
    if isinstance(judgments, Judged):
        for name, value in {"runs": runs, **options}.items():
            if value is not None and not (isinstance(value, str) and value == DEFAULTS.get(name)):
                raise SettingError(
                    f"{name} is already part of the judged data: leave {name}=… out, or give it to "
                    "judge(…)"
                )
        judged = judgments
    elif runs is None:
        raise SettingError(
            "runs are missing: give ranked lists by system, or judged data (us.judge) alone"
        )
    else:
        judged = judge(judgments, runs, seed=seed, **options)
    if judged.occasions is not None and not may_repeat:
        raise several_refused("users have several lists, and")
    return judged


def check_ties(ties: str | None, unranked: str | None) -> str:
    """Return what becomes of items that a list does not hold; refuse what does not go together."""
    if ties is not None:
        choose("ties", ties, (*TIES, EXPECTED))
    choice = choose("unranked", unranked or "out", UNRANKED)
    if choice == "last" and ties != EXPECTED:
        raise SettingError(
            "unranked='last' puts the items that a list does not hold in random order: give ",
            Spelling("ties='expected'", "--ties expected"),
            ", which averages over these orders",
        )
    return choice


def read_tests(
    judgments: object,
    runs: object,
    train: object,
    lists: str | Sequence[str] | None,
    ties: str | None,
    seed: int,
    **log_options: Any,
) -> tuple[Ratings, Ratings | None, RatingLog | None, dict[str, Run] | None]:
    """Read test and training ratings; where users have several lists, a log and the lists before.

    `log_options` are `events` and `weights` of `read_ratings`.
    """
    if lists is None and not have_keys(runs):
        return (*read_test_and_train(judgments, train, **log_options), None, None)
    systems = read_runs(runs, ties, seed, lists=lists)
    read: dict[str, Any] = {
        "test": partial(RatingLog.read, judgments, common_keys(systems), **log_options)
    }
    if train is not None:
        read["train"] = partial(read_ratings, train, **log_options)
    parts: dict[str, Any] = read_parts(read)
    return parts["test"].tests, parts.get("train"), parts["test"], systems


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
