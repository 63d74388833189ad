"""`audit`: run systems under several designs, and tell which conclusions can be trusted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from unskew.auditing.designs import LEVELS
from unskew.auditing.large_data import LargeRequest
from unskew.auditing.lists.given_lists import ListsAudit
from unskew.auditing.ratings_audit import RatingsAudit
from unskew.auditing.request import (
    Progress,
    Request,
    Rules,
    Stated,
    TrainingRequest,
    check_absent,
)
from unskew.auditing.result import Audit
from unskew.checks import checked, choose
from unskew.data.filters import Filter
from unskew.data.formats.catalog import load
from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS, Relevance, Rule, check_likes
from unskew.engine.executor import executor
from unskew.engine.progress import AUDIT_STAGES, notebook_progress
from unskew.engine.store import Store
from unskew.errors import SettingError, quietly
from unskew.experiment.plan import Plan
from unskew.judging.judge import as_judged
from unskew.judging.judged import Judged
from unskew.recommend.model import Algorithm

if TYPE_CHECKING:
    from distributed import Client


@notebook_progress("audit", weights=AUDIT_STAGES)
@checked
def audit(
    data: object = None,
    plan: Plan | str = "default",
    *,
    judgments: object = None,
    runs: object = None,
    train: object = None,
    random: object = None,
    references: bool = True,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    designs: Sequence[str] | None = None,
    metric: str | None = None,
    margin: float | None = None,
    smallest: float = 0.05,
    group_users: object = None,
    seed: int | None = None,
    repeats: int | None = None,
    permutations: int | None = None,
    splits: int | None = None,
    users: int | str | None = None,
    memory: int | str | None = None,
    filters: Filter | Sequence[Filter] = (),
    tune: bool = True,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
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
    references
        With runs and `train`: whether popularity, a smoothed average, item-kNN and a random order
        are trained and stand beside the given lists.
    liked, above, gain, loss, relevance
        How a rating is taken, as in `evaluate`; 4 and more are liked on a 1-5 scale unless given.
        Ratings below 0 need a gain that is not the rating itself, such as `gain="binary"`.
    events, weights
        Of an event log: the kinds of events that count, or what each kind counts; see
        `read_ratings`.
    algorithms
        Systems to run, as objects or by name, instead of those of the level.
    designs
        Names of `DESIGNS`, the first of them the common one; all unless given.
    metric
        The metric that orders the systems. Default: P@10.

        Of a plan: its first metric.
    margin
        Scores that differ by less than this count as equal. Default: no such margin.

        State it beforehand. No pair is called equal without it.
    smallest
        The smallest difference in true precision that matters; used to advise how many judgments to
        collect.
    group_users
        Users that are not independent (households, test accounts) count as one: `detected` for
        near-duplicate accounts, or FILE:COLUMN of a file of users.

        Or another form that `compare` takes. Intervals and tests are by group then; what can only
        be worked out by user is left out, which the report says. Where near-duplicate accounts are
        many and groups are not given, a note says so.
    seed
        Everything random follows from it; 0, or the plan's own, unless given.
    repeats
        Number of times that the null experiment redraws opinions. Default: as many as the precision
        of the first ones needs, within the bounds of the level.
    permutations
        Of the significance tests, instead of the level's.
    splits
        How many random splits are made. Default: that of the level, fewer from 5,000,000 ratings
        on.
    users
        How many users are judged, drawn at random, or all; systems are trained on all ratings.
        Default: all, or 20000 where more than 50,000 users have ratings.
    memory
        What the audit may use, such as 6GiB; larger data are refused. Default: 8GiB, whatever the
        machine has, so that the same systems are run everywhere.
    filters
        What to do with the ratings first, such as `us.data.KCore(5, 5)`: recorded in the report,
        with a section on how far it moved scores and order.
    tune
        Whether settings are chosen on a validation part of the training part of each split, never
        on the test part: of systems given by name or by the level, and of objects of your own
        classes that declare a grid (`Algorithm.tuning`). Other objects stay as they are given.
    store
        A folder that keeps what is finished: an audit that was stopped goes on where it was.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with the stage, how much is done, and of how much.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.audit import audit
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> result = audit(shop, "quick", algorithms=["random", "popularity"],
    ...                designs=["all-items", "skew"], repeats=2, permutations=200)
    >>> result
    Audit(shop: 2 systems, 2 designs)
    >>> result.order()
    ['popularity', 'random']
    """
    level = LEVELS["default" if isinstance(plan, Plan) else choose("level", plan, LEVELS)]
    if repeats is not None:
        level = replace(level, repeats=repeats, most_repeats=repeats)
    if permutations is not None:
        level = replace(level, permutations=permutations)
    request = Request(
        level=level,
        designs=designs,
        metric=metric,
        seed=seed,
        progress=progress or (lambda _stage, _done, _total: None),
        stated=Stated(margin=margin, smallest=smallest, group_users=group_users),
        large=LargeRequest.of(users, splits, memory),
    )
    with quietly(), ExitStack() as stack:
        if isinstance(data, Judged):
            judgments, data = data, None
        if runs is not None or judgments is not None:
            sizes = {"users": users, "splits": splits, "memory": memory, "filters": filters or None}
            absent = {"data": data, "algorithms": algorithms, "store": store, **sizes}
            check_absent(absent, "is for ratings: leave it out with judgments and runs")
            _check_list_settings(plan, workers, cluster, tune)
            if judgments is None or (runs is None and not isinstance(judgments, Judged)):
                raise SettingError("give both judgments=… and runs=…")
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
                events=events,
                weights=weights,
            )
            check_likes(judged.tests, judged.relevance)
            return ListsAudit.of(judged, request, random, references).carry_out()
        if data is None:
            raise SettingError("give ratings, or judgments=… and runs=…")
        check_absent({"train": train}, "is for judgments and runs: an audit of ratings splits them")
        if not references:
            raise SettingError("references=False is for judgments and runs")
        training = TrainingRequest(
            rules=Rules(liked, above, gain, loss, relevance),
            algorithms=algorithms,
            random=random,
            filters=(filters,) if isinstance(filters, Filter) else tuple(filters),
            tune=tune,
            store=None if store is None else Store.open(store),
            executor=stack.enter_context(executor(workers, cluster)),
        )
        source = _read(data, events, weights)
        return RatingsAudit.of(source, plan, request, training).carry_out()


def _check_list_settings(plan: object, workers: int, cluster: object, tune: bool) -> None:
    """Refuse settings that are for training: given lists stay as they are."""
    if workers != 1 or cluster is not None:
        name = "workers" if cluster is None else "cluster"
        raise SettingError(f"{name} is for ratings: given lists need one process")
    if not tune:
        raise SettingError("tune=False is for ratings: given lists stay as they are")
    if isinstance(plan, Plan):
        raise SettingError("a plan is for ratings: name a level with judgments and runs")


def _read(
    data: object, events: str | Sequence[str] | None, weights: Mapping[str, float] | None
) -> object:
    """Return data as they are, or an event log of which kinds of events were chosen."""
    if events is None and weights is None:
        return data
    # Ratings that were read already are refused there.
    rows = getattr(data, "ratings", data)
    return load(rows, events=events, weights=weights)
