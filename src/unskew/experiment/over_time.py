"""`timeline`: systems trained again for every window of time, their order, the age of models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.checks import checked
from unskew.data.events import Events
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.engine.progress import notebook_progress
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.execution import RunProgress, run_plan
from unskew.experiment.plan import Plan
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import ItemKNN
from unskew.recommend.sequential import RecentItemKNN
from unskew.recommend.simple import Popularity, RecentPopularity
from unskew.report.columns import USERS, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.splits.time.windows import ModelAges, Windows
from unskew.stats.agreement.agreement import BOOTSTRAP
from unskew.stats.windows.model_decay import model_decay
from unskew.stats.windows.order_changes import EXCHANGES, order_changes
from unskew.targets.designs import Targets, TrainItems

if TYPE_CHECKING:
    from distributed import Client

SYSTEMS: tuple[Algorithm, ...] = (Popularity(), RecentPopularity(), ItemKNN(), RecentItemKNN())
"""What is run when no systems are named."""
METRIC = "nDCG@10"
SHARE = 0.5
"""The share of rows that windows cover when nothing is said about them."""
OF_AGES = "ages: "
"""Begins what is noted of models of different age."""
WINDOWS = Question(
    name="windows",
    columns=(
        Column("window", "key", "window from"),
        *(Column("start", "note", hidden=True), Column("end", "note", "to")),
        *(Column("train", "count", "training"), Column("test", "count"), USERS),
        Column("cold", "count", "cold users"),
    ),
    method=Method(
        estimand="which ratings train and test in each window, and how many users are cold"
    ),
    figures=(),
)
"""A row per window: `start`, `end`, `train` and `test` (ratings), `n` (users with test ratings) and
`cold` (those of them without training ratings, who are not averaged)."""


@notebook_progress("timeline")
@checked
def timeline(
    data: object,
    algorithms: Sequence[Algorithm] | Mapping[str, Algorithm] = SYSTEMS,
    metrics: str | Sequence[str] = METRIC,
    *,
    windows: Windows | None = None,
    ages: ModelAges | Sequence[str | float] | None = None,
    targets: Targets | None = None,
    liked: float | None = None,
    relevance: Relevance | None = None,
    level: float = 0.95,
    permutations: int = EXCHANGES,
    resamples: int = BOOTSTRAP,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Estimates:
    """Show how systems do over time: windows, their order, and the age of models, in one call.

    Parameters
    ----------
    data
        Ratings with time stamps, anything that `read_ratings` takes, or an event log
        (`read_events`).
    algorithms
        The systems; they are trained again for every window.
    metrics
        Metrics with a value per user.
    windows
        The windows; five of equal numbers of rows over the last half unless given.
    ages
        Also judge models of different age on the last window: how long before it their training
        ends, such as `["0d", "30d", "60d"]`; or a `us.splits.ModelAges`. None: do not.
    targets
        What is ranked: items with training ratings (`TrainItems()`) unless given, so that items
        that did not exist yet are not in the race.
    liked, relevance
        Which ratings are liked; what `evaluate` would assume unless given.
    level, permutations, resamples
        As in `us.stats.order_changes`.
    seed
        Everything random follows from it.
    store, workers, cluster, progress
        As in `run_plan`.

    Returns
    -------
    Estimates
        What `order_changes` gives, with the parts `windows` (what trains and tests in each) and,
        where they were asked for, `ages` (what `model_decay` gives) and `age_means`. Its
        `document()` is a page, which `us.report.save_report` writes.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(2)
    >>> user, item = rng.integers(60, size=1500), (40 * rng.random(1500) ** 2).astype(int)
    >>> log = us.read_events({"user": user, "item": item, "time": np.arange(1500) * 3600})
    >>> systems = [us.recommend.Popularity(), us.recommend.Random()]
    >>> result = us.experiment.timeline(log, systems, windows=us.splits.Windows(number=3))
    >>> result.parts["windows"].rows["train"].to_list()
    [822, 872, 927]
    >>> result.parts["changes"].row().facts["reverses"]
    False
    """
    ratings = data if isinstance(data, Ratings | Events) else read_ratings(data)
    cut = Windows(test=SHARE) if windows is None else windows
    values = ratings if isinstance(ratings, Ratings) else ratings.to_ratings()
    rule, assumed = relevance_for(values, liked=liked, relevance=relevance)
    spans = _spans(cut, ratings, seed)
    older = _model_ages(ages, cut, spans)
    if older is not None:  # an age that cannot be made is told before anything is trained
        older.make_one(ratings, (older.known_count() or 1) - 1, seed)
    plan = Plan(
        split=[cut] if older is None else [cut, older],
        targets=TrainItems() if targets is None else targets,
        algorithms=algorithms,
        relevance=rule,
        metrics=metrics,
        users="warm",
        seed=seed,
    )
    if len(plan.systems) < 2:
        raise SettingError("an order needs at least 2 systems: name another algorithm")
    results = run_plan(
        ratings, plan, store=store, workers=workers, cluster=cluster, progress=progress
    )
    windows_of = dict(spans.select("fold", "window").iter_rows())
    by_fold = results.by_fold(split=cut.name)
    named = {windows_of[fold]: _warm(scores) for fold, scores in by_fold.items()}
    draws: Any = {"permutations": permutations, "resamples": resamples, "seed": seed}
    order = order_changes(named, list(plan.metrics), level=level, **draws)
    decay = None
    if older is not None:
        of_age = {age: _warm(scores) for age, scores in results.by_fold(split=older.name).items()}
        decay = model_decay(of_age, list(plan.metrics), level=level, seed=seed)
    notes = dict.fromkeys((*ratings.notes, *assumed, *order.notes))
    return _over_time(replace(order, notes=tuple(notes)), spans, decay, plan)


def _over_time(
    order: Estimates, spans: pl.DataFrame, decay: Estimates | None, plan: Plan
) -> Estimates:
    """Return the order over windows with what trains and tests in them, and the age of models."""
    result = replace(
        order,
        question=replace(order.question, display=("windows", *order.question.display)),
        explanation=(
            "every system is trained again for every window, on what came before it; cold users "
            "(without training ratings) are counted and left out of all means",
            *order.explanation,
        ),
        parts={"windows": Estimates.of_rows(WINDOWS, spans), **order.parts},
        card={**order.card, "plan": plan.describe()},
    )
    if decay is None:
        return result
    # What it is about is said of windows.
    change = f"{decay.explanation[0]}; {decay.method.ci}: all together ({decay.method.together})"
    noted = [f"{OF_AGES}{note}" for note in decay.notes if note not in order.notes]
    ages = Drawing("ages", "points", "age_means")
    return replace(
        result,
        question=replace(
            result.question,
            display=(*result.question.display, "ages"),
            figures=(*result.question.figures, ages),
        ),
        explanation=(*result.explanation, change),
        notes=(*result.notes, *noted),
        conclusion=(*result.conclusion, *decay.conclusion),
        parts={
            **result.parts,
            "ages": replace(decay, parts={}),
            "age_means": decay.parts["means"],
        },
    )


def _model_ages(
    ages: ModelAges | Sequence[str | float] | None, cut: Windows, spans: pl.DataFrame
) -> ModelAges | None:
    """Return the ages on the last window."""
    if ages is None or isinstance(ages, ModelAges):
        return ages
    last = spans["start"][-1]
    return ModelAges(ages=tuple(ages), at=last, train_length=cut.train_length, ties=cut.ties)


def _spans(cut: Windows, ratings: Ratings | Events, seed: int) -> pl.DataFrame:
    """Return a row per window; one split is held at a time."""
    rows = []
    for split in cut.each(ratings, seed):
        facts = split.facts
        tested = split.test.start[1:] > split.test.start[:-1]
        trained = split.train.start[1:] > split.train.start[:-1]
        rows.append(
            {
                "fold": split.label,
                "start": str(facts["start"]),
                "end": str(facts["end"]),
                "train": len(split.train),
                "test": len(split.test),
                "n": int(tested.sum()),
                "cold": int((tested & ~trained).sum()),
            }
        )
    table = pl.DataFrame(rows)
    for row in table.filter(pl.col("n") == pl.col("cold")).iter_rows(named=True):
        raise DataError(
            f"no user of the window from {row['start']} to {row['end']} has a training rating "
            f"({counted(row['n'], 'user')}, all cold), so that nothing can be compared there: "
            "ask for longer or fewer windows, or for later ones (a smaller test share)"
        )
    days = table["start"].str.slice(0, 10)
    short = days.n_unique() == table.height
    return table.with_columns(
        window=days if short else table["start"],
        end=table["end"].str.slice(0, 10) if short else table["end"],
    )


def _warm(scores: Scores) -> Scores:
    """Return the scores of users with training ratings."""
    return scores.of_lists(scores.lists["train"].to_numpy() > 0)
