"""`audit`: run systems under several designs, and tell which conclusions can be trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from unskew.auditing.analyses import Progress, Rules, refuse
from unskew.auditing.conclusions import answer
from unskew.auditing.designs import LEVELS
from unskew.auditing.given_lists import of_lists
from unskew.auditing.measurements import Found
from unskew.auditing.run import Job
from unskew.auditing.sections import document
from unskew.checks import checked, choose
from unskew.data.relevance import Relevance, Rule
from unskew.engine.files import temporary_folder
from unskew.engine.store import Store
from unskew.errors import SettingError, quietly
from unskew.experiment.plan import Plan
from unskew.judging.judged import Judged, as_judged
from unskew.recommend.model import Algorithm
from unskew.report.document import Document


@dataclass(frozen=True, eq=False)
class Audit(Found):
    """What an audit measured. Made by `audit`.

    Print it for the answer; `document()` is the whole report. What could not be measured is None,
    and `skipped` says why.
    """

    def answer(self) -> list[str]:
        """Return the answer in plain words: a paragraph each."""
        return [str(words) for words in answer(self)]

    def document(self) -> Document:
        """Return the whole report: the answer, ten sections, and the card."""
        return document(self)

    def header(self) -> list[str]:
        """Return the answer."""
        return self.answer()

    def footer(self) -> list[str]:
        """Return what was assumed, left out and counted, a line each: what is below the answer."""
        return [
            *(f"assumed: {text}" for text in self.assumed),
            *(f"left out: {what}: {why}" for what, why in self.skipped.items()),
            *(f"note: {text}" for text in (*self.notes, *self.remarks)),
        ]

    def _content(self) -> dict[str, Any]:
        return self.document().to_dict()

    def _summary(self) -> str:
        return f"{self.name}: {len(self.systems)} systems, {len(self.designs)} designs"

    def __str__(self) -> str:
        return "\n".join([*self.header(), *self.footer()])


@checked
def audit(
    data: object = None,
    plan: Plan | str = "default",
    *,
    judgments: object = None,
    runs: object = None,
    train: object = None,
    random: object = None,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = "rating",
    loss: Rule = "levels",
    relevance: Relevance | str | None = None,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    designs: Sequence[str] | None = None,
    metric: str | None = None,
    seed: int | None = None,
    repeats: int | None = None,
    permutations: int | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Audit:
    """Evaluate systems under several designs and tell how far to trust what comes out.

    Parameters
    ----------
    data
        Ratings, a file, the name of a data set, a `Dataset` or a `World`. Where the truth is known
        (a world, random ratings), it is set beside what is observed. Or judged data (`judge`), as
        `judgments` and `runs` together.
    plan
        A level, `quick`, `default` or `thorough`, or a plan of your own: its splits, targets and
        interventions are the designs, the first of them the common one.
    judgments, runs, train
        Instead of data: test ratings, the ranked lists of systems by name, and, where known, the
        training ratings. What needs training is left out, which the report says.
    random
        Ratings of randomly chosen items, where the data have none of their own.
    liked, above, gain, loss, relevance
        How a rating is taken, as in `evaluate`; 4 and more are liked on a 1-5 scale unless given.
        Ratings below 0 need a gain that is not the rating itself, such as `gain="binary"`.
    algorithms
        Systems to run, as objects or by name, instead of those of the level.
    designs
        Names of `DESIGNS`, the first of them the common one; all unless given.
    metric
        What orders the systems: P@10, or the first metric of a plan, unless given.
    seed
        Everything random follows from it; 0, or the plan's own, unless given.
    repeats, permutations
        Of the null experiment and of the significance tests, instead of the level's.
    store
        A folder that keeps what is finished: an audit that was stopped goes on where it was.
    workers
        Processes side by side; never changes a number.
    progress
        Called with the stage, how much is done, and of how much.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.result import audit
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> found = audit(shop, "quick", algorithms=["random", "popularity"],
    ...               designs=["all-items", "test-targets"], repeats=2, permutations=200)
    >>> found
    Audit(shop: 2 systems, 2 designs)
    >>> found.order()
    ['popularity', 'random']
    """
    told = progress or (lambda _stage, _done, _total: None)
    level = LEVELS["default" if isinstance(plan, Plan) else choose("level", plan, LEVELS)]
    if repeats is not None:
        level = replace(level, repeats=repeats)
    if permutations is not None:
        level = replace(level, permutations=permutations)
    rules = Rules(liked, above, gain, loss, relevance)
    with quietly():
        if isinstance(data, Judged):
            judgments, data = data, None
        if runs is not None or judgments is not None:
            given = {"data": data, "random": random, "algorithms": algorithms, "store": store}
            refuse(given, "is for ratings: leave it out with judgments and runs")
            if workers != 1:
                raise SettingError("workers is for ratings: lists that are given take one process")
            if judgments is None or (runs is None and not isinstance(judgments, Judged)):
                raise SettingError("give both judgments=… and runs=…")
            if isinstance(plan, Plan):
                raise SettingError("a plan is for ratings: name a level with judgments and runs")
            judged = as_judged(
                judgments,
                runs,
                seed=seed or 0,
                train=train,
                liked=liked,
                above=above,
                gain=gain,
                loss=loss,
                relevance=relevance,
            )
            return Audit(
                **of_lists(
                    judged,
                    level=level,
                    designs=designs,
                    metric=metric,
                    seed=seed or 0,
                    progress=told,
                )
            )
        if data is None:
            raise SettingError("give ratings, or judgments=… and runs=…")
        refuse({"train": train}, "is for judgments and runs: an audit of ratings splits them")
        with ExitStack() as stack:
            folder = store
            if folder is None:
                folder = stack.enter_context(temporary_folder())
            job = Job.of(
                data,
                plan,
                level,
                random,
                rules,
                algorithms,
                designs,
                metric,
                seed,
                Store.open(folder),
                workers,
                told,
            )
            return Audit(**job.done())
