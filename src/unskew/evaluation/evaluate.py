"""`evaluate`: judgments and ranked lists in, `Scores` out."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unskew.checks import as_count, checked, choose
from unskew.data.ratings import Ids, Ratings, under_one_numbering
from unskew.data.readers import read_items, read_ratings
from unskew.data.relevance import Relevance, Rule, stated_relevance
from unskew.engine.threads import map_blocks, resolve
from unskew.engine.versions import versions
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.chance import DRAWS, chance_scores
from unskew.evaluation.scores import UNDEFINED, USERS, Scores, System
from unskew.evaluation.scoring import Bench, lay_lists, lay_runs, remarks
from unskew.judging.rank import TIES as RANK_TIES
from unskew.metrics.names import Metric, parse
from unskew.recommend.model import Algorithm, as_model, can_score
from unskew.runs import Run, read_run, system_name
from unskew.splits.split import Split
from unskew.targets.designs import BY_NAME, Targets
from unskew.targets.lists import TargetLists
from unskew.ties import TIES

METRICS = ("P@10", "Recall@10", "nDCG@10", "RR@10", "anti-P@10", "Judged@10")
"""What is computed when no metrics are named."""
MEMORY = 512 << 20
"""Working memory beyond inputs and result, in bytes."""


@checked
def evaluate(
    judgments: object,
    runs: object,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    users: str = "with-test",
    undefined: str = "zero",
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Callable[[int, int], None] | None = None,
    targets: str | Targets | None = None,
    draws: int = DRAWS,
) -> Scores:
    """Judge ranked lists: the value of every metric for every user and system.

    Parameters
    ----------
    judgments
        Test ratings: anything that `read_ratings` takes; or target lists (`Targets.lists`), which
        know training, test and relevance themselves.
    runs
        A mapping from system name to ranked lists (anything that `read_run` takes), a list of
        paths, or a single path, table or `Run`. On target lists also fitted models and whatever
        `rank` takes; the lists of a ready-made run are named by list.
    metrics
        Names such as ``"P@10"``, ``"nDCG"``, ``"anti-P@10"`` or ``"SR(gamma=1)@10"``.
    liked, above, gain, loss
        How a rating is taken, see `Relevance`. Without `liked`, `above` or `relevance` a threshold
        is assumed where it is plain (1 for TREC qrels, implicit and 0/1 data, 4 on a scale of 1
        to 5), and the notes say so.
    relevance
        Instead of these four: a `Relevance`, or the name of a paper, such as `mena2021`.
    train
        Training ratings: for popularity, novelty and stratified recall; warns when lists hold
        items the user already rated there.
    items
        The catalogue: for coverage, Gini, entropy, AUC. Default: all items of `train` and
        `judgments`.
    users
        Which users are averaged by default, see `Scores.mean`.
    undefined
        `zero` (default) counts undefined values as 0 in means, `skip` leaves them out.
    ties
        How equal scores are ordered, see `unskew.ties`. Default: `trec` for TREC files, else
        `id`.
    seed
        For `ties="random"`.
    depth
        Look at no more than this many items of each list.
    threads
        How many threads to use; never changes a result.
    memory
        Working memory in bytes, or text such as ``"512MiB"``; never changes a result.
    progress
        Called with (done, total) as work goes on.
    targets
        What the systems ranked, with `train`: a design with one list per user, such as
        `us.targets.TestItems()`, or its name (`all-items`, `test-items`, `train-items`,
        `test-targets`). Then lists are checked against it, and what a random order is expected to
        score is shown.
    draws
        With targets: how many random orders are averaged for the expectation of metrics for
        which no closed form is known.

    Returns
    -------
    Scores

    Examples
    --------
    >>> import unskew as us
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> scores = us.evaluate(test, {"mine": {1: [20, 10], 2: [30]}}, ["RR", "P@2"], liked=4)
    >>> scores.means()
    {'mine': {'RR': 0.75, 'P@2': 0.5}}
    """
    choose("users", users, USERS)
    choose("undefined", undefined, UNDEFINED)
    if ties is not None:
        choose("ties", ties, TIES)
    if depth is not None:
        as_count("depth", depth)
    how = _How(
        users, undefined, ties, seed, depth, resolve(threads), memory_bytes(memory), progress, draws
    )
    wanted = labelled(metrics)
    if isinstance(judgments, TargetLists):
        given = {
            "liked": liked,
            "above": above,
            "relevance": relevance,
            "train": train,
            "items": items,
        }
        _refuse_given(given)
        return _of_lists(judgments, runs, wanted, how)
    tests = read_ratings(judgments)
    training = None if train is None else read_ratings(train)
    catalogue = None if items is None else read_items(items)
    notes = [*tests.notes, *(training.notes if training is not None else ())]
    rule, assumed = relevance_for(tests, liked, above, gain, loss, relevance)
    notes += assumed
    if targets is not None:
        if catalogue is not None:
            raise SettingError("targets say which items there are: leave items=… out")
        lists = _lists_of(targets, tests, training, rule, seed)
        return _of_lists(replace(lists, notes=(*notes, *lists.notes)), runs, wanted, how)
    systems = read_runs(runs, ties, seed, (tests.users, tests.items))
    bench = lay_runs(tests, systems, training, catalogue, rule, wanted, depth)
    notes += [note for run in systems.values() for note in run.notes]
    card = _card(tests, training, rule, wanted, systems, how)
    return _scores(bench, wanted, how, notes, rule, card)


@dataclass(frozen=True)
class _How:
    """How to evaluate, whatever is evaluated."""

    users: str
    undefined: str
    ties: str | None
    seed: int
    depth: int | None
    threads: int
    budget: int
    progress: Callable[[int, int], None] | None
    draws: int


def _of_lists(lists: TargetLists, runs: object, wanted: dict[str, Metric], how: _How) -> Scores:
    """Evaluate models, or runs made for them, on target lists."""
    named = _named(runs)
    models = {name: system for name, system in named.items() if not _is_run(system)}
    ready = {name: system for name, system in named.items() if name not in models}
    ids = (lists.judgments.users, lists.judgments.items)
    read = read_runs(ready, how.ties, how.seed, ids) if ready else {}
    systems = {
        name: read[name] if name in read else as_model(models[name], lists.train) for name in named
    }
    ties = choose("ties", how.ties or "id", RANK_TIES) if models else "id"
    if lists.shortfall == "forgive":
        wanted = {label: forgiving(metric) for label, metric in wanted.items()}
    bench = lay_lists(lists, systems, wanted, how.depth, ties, how.seed, how.threads)
    notes = [*lists.notes, *(note for run in read.values() for note in run.notes)]
    card = _card(lists.tests, lists.train, lists.relevance, wanted, systems, how, lists)
    return _scores(bench, wanted, how, notes, lists.relevance, card, lists)


def _lists_of(
    targets: str | Targets, tests: Ratings, train: Ratings | None, relevance: Relevance, seed: int
) -> TargetLists:
    """Lay a design with one list per user over training and test ratings."""
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


def _refuse_given(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            raise SettingError(f"target lists know their {name} already: leave {name}=… out")


def _is_run(system: object) -> bool:
    """Tell ready-made lists from what has yet to rank."""
    return not (isinstance(system, Algorithm) or can_score(system))


def forgiving(metric: Metric) -> Metric:
    """Let precision divide by what was ranked, where less was ranked than the cutoff."""
    changed = metric.definition.short_list
    others = tuple(setting for setting in metric.settings if setting[0] not in changed)
    return replace(metric, settings=(*others, *changed.items()))


def _scores(
    bench: Bench,
    wanted: dict[str, Metric],
    how: _How,
    notes: list[str],
    relevance: Relevance,
    card: Callable[[], dict[str, Any]],
    lists: TargetLists | None = None,
) -> Scores:
    """Score everything on the bench."""
    notes = [*notes, *remarks(bench, wanted, how.users)]
    results = bench.score(wanted, how.threads, how.budget, how.progress)
    judged = bench.judged
    owner = judged.lists.user if lists is None else lists.user
    columns = {
        "user": pl.Series(owner),
        "liked": pl.Series(judged.liked.astype(np.int64)),
        "disliked": pl.Series(judged.disliked.astype(np.int64)),
        "test": pl.Series(np.diff(judged.judgments.start)),
    }
    if judged.train is not None:
        columns["train"] = pl.Series(np.diff(judged.train.start)[owner])
    over = "lists"
    if lists is not None:
        columns["targets"] = pl.Series(lists.size)
        if lists.one_relevant:
            columns["anchor"] = lists.tests.items.raw(lists.anchor)
        if lists.strata:
            columns["stratum"] = pl.Series(lists.stratum)
            over = "strata"
    chance: System | None = None
    simulated: dict[str, int] = {}
    if lists is not None:
        chance, simulated = chance_scores(
            lists,
            wanted,
            depth=_depth(bench, how),
            draws=how.draws,
            seed=how.seed,
            threads=how.threads,
        )
    labels = tuple(label for label, metric in wanted.items() if metric.definition.of != "run")
    return Scores(
        labels,
        results,
        judged.judgments.users if lists is None else lists.tests.users,
        pl.DataFrame(columns),
        how.users,
        how.undefined,
        tuple(wanted),
        card,
        tuple(notes),
        str(relevance),
        over,
        chance,
        simulated,
    )


def _depth(bench: Bench, how: _How) -> int | None:
    """Return where chance must stop too: at the end of the longest list of a ready-made run."""
    if any(matched.is_full for matched in bench.matched.values()):
        return how.depth
    return max(int(matched.depth.max(initial=1)) for matched in bench.matched.values())


def _card(
    tests: Ratings,
    train: Ratings | None,
    relevance: Relevance,
    wanted: Mapping[str, Metric],
    systems: Iterable[str],
    how: _How,
    lists: TargetLists | None = None,
) -> Callable[[], dict[str, Any]]:
    """Return what makes the card: everything from which the numbers can be derived again."""

    def facts(ratings: Ratings | None) -> dict[str, Any] | None:
        if ratings is None:
            return None
        return {"fingerprint": ratings.fingerprint, "rows": len(ratings)}

    def card() -> dict[str, Any]:
        content = {
            "judgments": facts(tests),
            "train": facts(train),
            "relevance": relevance.describe(),
            "metrics": {label: str(metric) for label, metric in wanted.items()},
            "systems": list(systems),
            "ties": how.ties or "trec for TREC files, else id",
            "seed": how.seed,
            "depth": how.depth,
            "versions": versions(),
        }
        if lists is not None:
            content |= {"targets": dict(lists.design), "lists": dict(lists.facts)}
        return content

    return card


def labelled(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, Metric]:
    """Map each metric as it was written to what it means."""
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return {str(metric): parse(metric) for metric in several}


def _named(runs: object) -> dict[str, object]:
    """Name all runs, by their keys or files."""
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


def read_runs(runs: object, ties: str | None, seed: int, likely: tuple[Ids, Ids]) -> dict[str, Run]:
    """Read all runs."""
    named = _named(runs)

    def read(name: str) -> Run:
        try:
            return read_run(named[name], ties=ties, seed=seed, keep_scores=False, likely=likely)
        except DataError as problem:
            raise type(problem)(f"{name}: {problem}") from None

    return dict(zip(named, map_blocks(read, named), strict=True))


def relevance_for(
    tests: Ratings,
    liked: float | None,
    above: float | None,
    gain: Rule,
    loss: Rule,
    relevance: Relevance | str | None = None,
    usual: float | None = None,
) -> tuple[Relevance, list[str]]:
    """Return the relevance rule, and a note where the threshold had to be assumed.

    `relevance` is for those who give the rule as a whole; `usual` is the threshold of a data set
    that has one.
    """
    stated = stated_relevance(liked, above, gain, loss, relevance)
    if stated is not None:
        return stated, []
    if usual is not None:
        rule = Relevance(usual, None, gain, loss)
        return rule, [f"liked: ratings from {usual:g} up (usual for these data)"]
    values = tests.value
    if "pooled" in tests.tags or tests.implicit or bool(np.isin(values, (0.0, 1.0)).all()):
        return Relevance(1, None, gain, loss), ["liked: every value from 1 up (assumed)"]
    low, high = float(values.min()), float(values.max())
    if low >= 0.5 and 3 < high <= 5:
        return Relevance(4, None, gain, loss), [
            "liked: ratings from 4 up (assumed from the 1-5 scale; set it with liked=…)"
        ]
    raise SettingError(
        f"what counts as liked? Ratings go from {low:g} to {high:g}; give ",
        Spelling("liked=…", "--liked"),
        " (the smallest liked rating) or ",
        Spelling("above=…", "--above"),
    )


def memory_bytes(memory: int | str) -> int:
    """Read an amount of memory: a number of bytes, or text such as 512MiB or 2GB."""
    if isinstance(memory, int):
        amount = memory
    else:
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", memory, re.IGNORECASE)
        if match is None:
            raise SettingError(f"memory must look like 512MiB or 2GB, got {memory!r}")
        step = 1024 if match[3] else 1000
        power = " KMGT".index(match[2].upper() or " ")
        amount = int(float(match[1]) * step**power)
    if amount < 1 << 20:
        raise SettingError(f"memory must be at least 1MiB, got {memory!r}")
    return amount
