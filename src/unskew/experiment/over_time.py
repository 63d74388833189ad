"""`timeline`: systems trained again for every window of time, their order, the age of models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

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
from unskew.report.charts import Figure
from unskew.report.document import Document, Fold, Picture, Section, Words
from unskew.report.result import Result, plain_values
from unskew.report.tables import Table
from unskew.report.text import counted, number, visible
from unskew.splits.time.windows import ModelAges, Windows
from unskew.stats.agreement.agreement import BOOTSTRAP
from unskew.stats.windows.model_decay import ModelDecay, model_decay
from unskew.stats.windows.order_over_time import EXCHANGES, order_over_time
from unskew.stats.windows.order_over_time_result import OrderOverTime
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


@dataclass(frozen=True, eq=False)
class Timeline(Result):
    """How systems do over time. Made by `timeline`."""

    figure_is_open: ClassVar[bool] = True

    order: OrderOverTime
    """Curves over windows, differences, changes of order."""
    decay: ModelDecay | None
    """What systems lose with the age of their training, where it was asked for."""
    spans: pl.DataFrame = field(repr=False)
    """A row per window: start, end, training and test ratings, users, cold users."""
    plan: Plan = field(repr=False)
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per metric, window and system: its mean, as `order.curves()` gives it."""
        return self.order.curves()

    def windows(self) -> pl.DataFrame:
        """Return a row per window.

        `start` and `end` (of the window), `train` and `test` (ratings), `users` (with test
        ratings), `cold` (those of them without training ratings, who are not averaged).
        """
        return self.spans

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return windows, means, changes of order, and ages."""
        return [
            self._display_spans(),
            *self.order.display_tables(digits),
            *(self.decay.display_tables(digits) if self.decay is not None else []),
        ]

    def _display_spans(self) -> Table:
        columns = ("train", "test", "users", "cold")
        rows = [
            [row["window"], row["end"], *(f"{row[key]:,}" for key in columns)]
            for row in self.spans.iter_rows(named=True)
        ]
        header = ["window from", "to", "training", "test", "users", "cold users"]
        return Table.of_rows(header, rows, left=(0, 1), title="Windows")

    def brief(self) -> str:
        """Return what fits on a screen: windows, order, ages, what follows, and the notes."""
        first = self.order.metrics[0]
        tables = [self._windows_and_means(first)]
        for label in self.order.metrics:
            means, changes = (
                self.order._display_means(label, self.digits),
                self.order._display_changes(label, self.digits),
            )
            tables += [changes] if label == first else [means, changes]
        if self.decay is not None:
            tables += [self.decay.brief_table(label) for label in self.decay.metrics]
        percent = f"{100 * self.order.level:g} %"
        rules = [
            f"intervals of {percent} hold for all pairs and windows, and for all systems and ages, "
            "at once; varies: the larger p of a test within users and one of the windows' means; "
            "all about these trained models",
            "cold users (without training ratings) are left out of all means",
        ]
        blocks = ["\n\n".join(table.to_text() for table in tables)]
        blocks += ["\n".join(self._conclusion()), "\n".join([*rules, *self.notes])]
        return "\n\n".join(map(partial(visible, breaks=True), blocks))

    def _windows_and_means(self, label: str) -> Table:
        means = {
            (row["window"], row["system"]): row["mean"]
            for row in self.order.curves(label).iter_rows(named=True)
        }
        rows = []
        for row in self.spans.iter_rows(named=True):
            counts = [f"{row['train']:,}", f"{row['users'] - row['cold']:,}", f"{row['cold']:,}"]
            values = [means.get((row["window"], name)) for name in self.order.systems]
            cells = ["–" if value is None else number(value, self.digits) for value in values]
            rows.append([row["window"], row["end"], *counts, *cells])
        header = ["window from", "to", "training", "users", "cold", *self.order.systems]
        better = f"{self.order.better[label]} is better"
        return Table.of_rows(header, rows, left=(0, 1), title=f"{label} ({better}) by window")

    def _explanation(self) -> list[str]:
        lines = [
            "every system is trained again for every window, on what came before it; cold users "
            "(without training ratings) are counted and left out of all means",
            *self.order._explanation(),
        ]
        if self.decay is not None:  # what intervals are about is said above
            lines += self.decay._explanation()[:2]
        return [line for line in lines if line]

    def _conclusion(self) -> list[str]:
        ages = [] if self.decay is None else self.decay._conclusion()
        return [*self.order._conclusion(), *ages]

    def _summary(self) -> str:
        return self.order._summary()

    def _content(self) -> dict[str, object]:
        return {
            "windows": self.spans,
            "order": self.order,
            "ages": self.decay,
            "plan": self.plan.describe(),
            "notes": self.footer(),
        }

    def figure(self, metric: str | None = None) -> Figure:
        """Draw the means of all systems over the windows.

        Parameters
        ----------
        metric
            The first one unless given.
        """
        return self.order.figure("curves", metric)

    def document(self) -> Document:
        """Return the report: what follows first, then windows, order and ages."""
        conclusion = tuple(Words(text) for text in self._conclusion())
        sections = [self._windows_section(), self._order_section()]
        if self.decay is not None:
            sections.append(_ages_section(self.decay))
        return Document(
            "How systems do over time",
            conclusion,
            tuple(sections),
            card=self.plan.describe(),
            systems=self.order.systems,
            values=plain_values(self._content()),
        )

    def _windows_section(self) -> Section:
        # What is noted of models of different age stands in their section.
        notes = [note for note in self.notes if not note.startswith(OF_AGES)]
        words = tuple(Words(note) for note in (self._explanation()[0], *notes))
        return Section(
            "windows",
            "Windows",
            "Which ratings train and test in each window, and how many users are cold there.",
            (self._display_spans(), *words),
        )

    def _order_section(self) -> Section:
        order = self.order
        charts = [Picture(order.figure("curves", label)) for label in order.metrics]
        pairs = order.changes(order.metrics[0]).select("a", "b").rows()
        differences = [
            Picture(order.figure("differences", label, (a, b)))
            for label in order.metrics
            for a, b in pairs
        ]
        return Section(
            "order",
            "Order over windows",
            "How good each system is in each window, and whether systems change places.",
            (
                *charts,
                *order.display_tables(),
                *map(Words, order._explanation()),
                Fold("Each difference, with intervals that hold at once", tuple(differences)),
                *(Picture(order.figure("tau", label)) for label in order.metrics),
            ),
        )


def _ages_section(decay: ModelDecay) -> Section:
    return Section(
        "ages",
        "Age of models",
        "What systems lose when their training ends earlier, judged on one window.",
        (
            *(Picture(decay.figure(label)) for label in decay.metrics),
            *decay.display_tables(),
            *map(Words, [*decay._explanation(), *decay.notes]),
        ),
    )


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
    exchanges: int = EXCHANGES,
    bootstrap: int = BOOTSTRAP,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Callable[[RunProgress], None] | None = None,
) -> Timeline:
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
    level, exchanges, bootstrap
        As in `us.stats.order_over_time`.
    seed
        Everything random follows from it.
    store, workers, cluster, progress
        As in `run_plan`.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(2)
    >>> user, item = rng.integers(60, size=1500), (40 * rng.random(1500) ** 2).astype(int)
    >>> log = us.read_events({"user": user, "item": item, "time": np.arange(1500) * 3600})
    >>> systems = [us.recommend.Popularity(), us.recommend.Random()]
    >>> result = us.experiment.timeline(log, systems, windows=us.splits.Windows(number=3))
    >>> result
    Timeline(2 systems, 1 metric, 3 windows)
    >>> result.order.changes()["reverses"].to_list()
    [False]
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
    settings: Any = {"level": level, "exchanges": exchanges, "bootstrap": bootstrap, "seed": seed}
    order = order_over_time(named, list(plan.metrics), **settings)
    decay = None
    if older is not None:
        of_age = {age: _warm(scores) for age, scores in results.by_fold(split=older.name).items()}
        decay = model_decay(of_age, list(plan.metrics), level=level, seed=seed)
    notes = tuple(dict.fromkeys((*ratings.notes, *assumed, *order.notes)))
    aged = () if decay is None else decay.notes
    return Timeline(
        order=order,
        decay=decay,
        spans=spans,
        plan=plan,
        notes=(*notes, *(f"{OF_AGES}{note}" for note in aged if note not in notes)),
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
                "users": int(tested.sum()),
                "cold": int((tested & ~trained).sum()),
            }
        )
    table = pl.DataFrame(rows)
    for row in table.filter(pl.col("users") == pl.col("cold")).iter_rows(named=True):
        raise DataError(
            f"no user of the window from {row['start']} to {row['end']} has a training rating "
            f"({counted(row['users'], 'user')}, all cold), so that nothing can be compared there: "
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
