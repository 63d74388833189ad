"""`strata`: any metric by popularity of the items, or by kind of user; where a score comes from.

A mean over everything hides whom and what it is a mean of. Two views of the same score are given.
*Within* a stratum of items only its judgments count, as if nothing else had been judged; within a
stratum of users only these users are averaged. The *contribution* of a stratum is its part of the
whole score: contributions add up to the score, so that each stratum has a share of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.checks import as_count, check_share, checked
from unskew.data.relevance import paper_notes
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.threads import map_blocks, resolve
from unskew.errors import SettingError
from unskew.evaluation.evaluate import MEMORY, check_averaging, labelled, memory_bytes, stated_paper
from unskew.evaluation.scores import Scores, System
from unskew.evaluation.scoring import list_columns, prepare, remarks, score
from unskew.judging.judge import RawOptions, as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.judging.shape import BLOCK, LIKED, Basis, Matched, Scratch
from unskew.metrics.block import Block
from unskew.metrics.listwise import check_finite, is_ours
from unskew.metrics.names import Metric
from unskew.metrics.strata import Portion
from unskew.report.columns import (
    GROUP,
    HIGH,
    LOW,
    METRIC,
    SYSTEM,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.stats.compare.gaps import Division, question_of_groups
from unskew.stats.pairing import paired
from unskew.stats.resampling import percentile_interval, reweighted, with_replacement
from unskew.unbiased.divide import divide

METRICS = ("P@10", "Recall@10", "nDCG@10")
"""What is computed when no metrics are named."""
BOOTSTRAP, LEVEL = 1_000, 0.95
WITHIN = {
    "items": "only judgments of its items count",
    "judgments": "only its judgments count",
    "users": "only its users are averaged",
}
"""What counts within a stratum, by what strata are made of."""
STRATA = question_of_groups(
    *(METRIC, SYSTEM, replace(GROUP, label="stratum")),
    unit=replace(USERS, label="lists"),
    facts=(
        Column("size", "count"),
        Column("judgments", "count", "test ratings", hidden=True),
        Column("liked", "count"),
        Column("lowest", "fact", hidden=True),
        Column("highest", "fact", hidden=True),
    ),
    name="strata",
    quantities=(
        Column("within", "value", "within the stratum"),
        Column("contribution", "value", hidden=True),
        Column("share", "value", "share of the score"),
    ),
    method=Method(
        estimand="the mean within a stratum, and the part of the whole mean that comes from it"
    ),
    display=("", "heads"),
    figures=(
        Drawing("strata", "points", quantities=("within",)),
        Drawing("shares", "stacked", quantities=("share",)),
    ),
)
"""Facts of a stratum: how many items, users or judgments it has (`size`), its judgments, its liked
ones, and the `lowest` and `highest` of the number that strata are formed by.
"""
HEADS = Question(
    name="the head",
    columns=(
        *(METRIC, SYSTEM, Column("score", "fact"), Column("head", "fact", "from the head")),
        *(Column("rest", "fact", "from the rest"), replace(VALUE, label="share"), LOW, HIGH),
    ),
    method=Method(estimand="the share of the score that comes from the first strata"),
)


@notebook_progress("strata")
@checked
def strata(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    by: object = "popularity",
    of: str | None = None,
    m: int | None = None,
    equal: str | None = None,
    head: int = 1,
    users: str | None = None,
    undefined: str | None = None,
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Progress | None = None,
    **data: Unpack[RawOptions],
) -> Estimates:
    """Measure systems within strata of items or users, and tell where their score comes from.

    Parameters
    ----------
    judgments, runs, metrics
        Judged data (`judge`) alone, with the metrics as the second argument; or raw data as `judge`
        takes them.
    by
        `popularity`: strata of items by falling number of training ratings (without `train`, of
        test ratings). `activity`: of users by falling number of training ratings.
        `mainstreamness`: of users by the mean number of training ratings of the items in their own
        training ratings, falling. A tag of the judgments, by its name. Or groups: a mapping from
        raw ids to groups, or a table with ids in the first column and groups in the second.
    of
        Whether a file of groups holds ids of items or of users.

        `items` (default) or `users`.
    m
        How many strata, 10 unless given; equally large, ties by id. Not for groups and tags.
    equal
        Cut popularity strata to equal numbers of items, or of judgments.

        `items` (default), or liked training `judgments` (castells2018 section 5.1.3).
    head
        Number of first strata that form the head.
    users, undefined
        As in `evaluate`. Which users are averaged is looked up within each stratum: by default
        those with a judgment in it.
    resamples
        Bootstrap resamples of users; 0 for no intervals.

        With replacement; the intervals are percentiles.
    level
        Confidence level of the intervals.
    seed
        Of the draws of users.
    threads, memory, progress
        As in `evaluate`; never change a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, train, items, ties, depth.

    Returns
    -------
    Estimates
        Rows by metric, system, group (the stratum) and quantity: `within`, the mean within the
        stratum, `contribution`, its part of the whole score, and `share` of the whole score. The
        part `heads`: the whole score and the share that the first strata give; without rows where
        strata have no order.

    Notes
    -----
    Contributions of item strata: P, Recall, DCG, nDCG, RBP, SR, HLU, Judged and R-precision are
    sums over hits, divided by what does not depend on the stratum. Each term of AP goes to the item
    it stands at, RR and HitRate to the first liked item, F1 to the liked items in equal parts.
    bpref, infAP, AUC and the residuals do not split: their contribution is NaN. Any metric splits
    over users.

    Examples
    --------
    >>> from unskew.unbiased.strata import strata
    >>> train = {"user": [1, 2, 3, 3], "item": ["a", "a", "a", "b"], "rating": [5, 5, 5, 5]}
    >>> test = {"user": [1, 2, 2], "item": ["b", "b", "c"], "rating": [4, 5, 5]}
    >>> runs = {"mine": {1: ["b", "c"], 2: ["c", "d"]}}
    >>> result = strata(test, runs, "P@2", train=train, m=3, liked=4, resamples=0)
    >>> for group in ("1", "2", "3"):
    ...     within = result.row(group=group, quantity="within")
    ...     print(group, within.value, result.row(group=group, quantity="contribution").value)
    1 None 0.0
    2 0.25 0.25
    3 0.5 0.25
    """
    check_averaging(users, undefined)
    paper = stated_paper(judgments, data.get("relevance"))
    users, undefined = users or paper.users, undefined or paper.undefined
    as_count("resamples", resamples, least=0)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    by_label = labelled(metrics, paper)
    _refuse_runs(by_label)
    threads = resolve(threads)
    judged = prepare(as_judged(judgments, runs, seed=seed, **data), by_label, threads)
    notes = [*judged.read, *paper_notes(judged.paper), *remarks(judged, by_label, users)]
    resources: Any = {"threads": threads, "budget": memory_bytes(memory)}
    scores = Scores(
        labels=tuple(by_label),
        systems=score(judged.basis, judged.matched, by_label, **resources),
        user_ids=judged.users,
        lists=list_columns(judged, judged.basis),
        users=users,
        undefined=undefined,
        order=tuple(by_label),
        notes=tuple(dict.fromkeys(notes)),
        relevance=str(judged.relevance),
        over="strata" if judged.targets is not None and judged.targets.strata else "lists",
    )
    parts = divide(judged, scores, by, of, m, equal)
    if parts.of != "users":
        _refuse_items(by_label)
    size = as_count("head", head)
    if parts.is_ordered and size >= len(parts.names):
        raise SettingError(f"head={head} covers all {len(parts.names)} strata: use a smaller head")
    method = replace(
        STRATA.method,
        interval="percentile bootstrap" if resamples else "",
        level=level,
        draws=resamples,
        seed=seed,
    )
    case = _StrataCase(judged, by_label, scores, parts, method, resources)
    return _answer(case, size if parts.is_ordered else 0, progress)


@dataclass(frozen=True, eq=False)
class _StrataCase:
    """The judged lists, what is measured of them, and how they are divided."""

    judged: Judged
    metrics: Mapping[str, Metric]
    whole: Scores
    """Over everything."""
    parts: Division
    method: Method
    resources: Mapping[str, Any]

    def percentiles(self, draws: F64) -> tuple[F64, F64]:
        """Return both ends of intervals."""
        assert self.method.level is not None
        return percentile_interval(draws, self.method.level)


def _refuse_runs(metrics: Mapping[str, Metric]) -> None:
    for label, metric in metrics.items():
        if metric.definition.of == "run":
            raise SettingError(f"{label} describes a whole run: it has no value per list to split")


def _refuse_items(metrics: Mapping[str, Metric]) -> None:
    for label, metric in metrics.items():
        if metric.definition.of == "items":
            raise SettingError(
                f"{label} describes what is recommended, judged or not: it is the same in every "
                f"stratum of items; take by='activity' or 'mainstreamness'"
            )


def _answer(case: _StrataCase, head: int, progress: Progress | None) -> Estimates:
    """Measure every stratum, and put the rows together."""
    scores, parts = case.whole, case.parts
    lists, means, contribution, draws, notes = _measure_all(case, progress)
    total, _ = _means(scores)
    shares, head_shares = _shares(case, contribution, total, draws, head)
    numbers = {"within": means, "contribution": [contribution], "share": shares}
    facts = [_facts(case.judged, parts, t) for t in range(len(parts.names))]
    labels, systems = scores.labels, list(scores.systems)
    rows = [
        {
            "metric": labels[m],
            "system": systems[s],
            **facts[t],
            "quantity": quantity,
            "n": int(lists[m, s, t]),
            **_ends(limits, (m, s, t)),
        }
        for m, s, t in np.ndindex(lists.shape)
        for quantity, limits in numbers.items()
    ]
    heads = [
        {
            "metric": labels[m],
            "system": systems[s],
            "score": total[m, s],
            "head": math.fsum(contribution[m, s, :head]),
            "rest": math.fsum(contribution[m, s, head:]),
            **_ends(head_shares, (m, s)),
        }
        for m, s in np.ndindex(total.shape)
        if head
    ]
    size = sum(fact["size"] for fact in facts[:head])
    name = f"the head: the first {head} of {len(facts)} strata ({size:,} {parts.of})"
    columns = [replace(c, label=parts.of) if c.name == "size" else c for c in STRATA.columns]
    return Estimates.of_rows(
        replace(STRATA, columns=tuple(columns)),
        rows,
        method=case.method,
        explanation=(
            f"strata of {parts.of} by {parts.by}; within a stratum {WITHIN[parts.of]}",
            "share: the stratum's part of the whole score; shares add up to 1",
            scores.relevance,
        ),
        notes=tuple(dict.fromkeys(notes)),
        parts={"heads": Estimates.of_rows(replace(HEADS, name=name), heads, method=case.method)},
        card={
            "by": parts.by,
            "of": parts.of,
            "head": head,
            "users": scores.users,
            "undefined": scores.undefined,
            "better": {label: metric.better for label, metric in case.metrics.items()},
        },
    )


def _measure_all(
    case: _StrataCase, progress: Progress | None
) -> tuple[I64, list[F64], F64, list[F64], list[str]]:
    """Return numbers of lists, means with their intervals, contributions, draws of these, notes.

    Arrays of metrics x systems x strata; draws are a list by stratum.
    """
    names = case.parts.names
    shape = len(case.metrics), len(case.whole.systems), len(names)
    means, low, high, contribution = (np.full(shape, np.nan) for _ in range(4))
    lists = np.zeros(shape, np.int64)
    notes, draws = [*case.whole.notes, *case.parts.notes], list[F64]()
    for t, name in enumerate(names):
        inside, part = _measure(case, t)
        means[:, :, t], lists[:, :, t] = _means(inside)
        contribution[:, :, t], _ = _means(part)
        if not lists[:, :, t].any():
            means[:, :, t] = np.nan
            notes.append(f"stratum {name}: it has no judgments, so it has no value")
        elif case.method.draws:
            low[:, :, t], high[:, :, t] = case.percentiles(_drawn(case, inside))
        if case.method.draws:
            draws.append(_drawn(case, part))
        if progress is not None:
            progress(t + 1, len(names))
    for row, (label, metric) in enumerate(case.metrics.items()):
        if not _splits(metric) and case.parts.of != "users":
            contribution[row] = np.nan
            notes.append(f"{label} is not a sum over hits: it has no contributions")
    return lists, [means, low, high], contribution, draws, notes


def _means(scores: Scores) -> tuple[F64, I64]:
    """Return the means, metrics x systems, and how many lists each is over."""
    means = scores.averages()
    table = [[means[system][label] for system in scores.systems] for label in scores.labels]
    values = np.array([[mean.value for mean in row] for row in table], np.float64)
    return values, np.array([[mean.users for mean in row] for row in table], np.int64)


def _ends(numbers: Sequence[F64], index: tuple[int, ...]) -> dict[str, float]:
    """Return the value of a row, and the ends of its interval where it has one."""
    return dict(zip(("value", "low", "high"), (of[index] for of in numbers), strict=False))


def _shares(
    case: _StrataCase, contribution: F64, total: F64, draws: list[F64], head: int
) -> tuple[list[F64], list[F64]]:
    """Return the share of each stratum and that of the head, each with both ends."""
    shares = [_divided(contribution, total[:, :, None])]
    heads = [_divided(contribution[..., :head].sum(axis=-1), total)]
    if draws:
        of_draws = np.stack(draws, axis=-1)  # draws x metrics x systems x strata
        of_draws = _divided(of_draws, of_draws.sum(axis=-1, keepdims=True))
        shares += case.percentiles(of_draws)
        heads += case.percentiles(of_draws[..., :head].sum(axis=-1))
    for limits in (*shares[1:], *heads[1:]):
        limits[np.isnan(contribution).all(axis=-1)] = np.nan
    return shares, heads


def _facts(judged: Judged, parts: Division, t: int) -> dict[str, Any]:
    """Return the name of a stratum, its counts, and the range of what it is formed by."""
    here = parts.code == t
    rows = _judgments_in(judged, parts, t)
    facts: dict[str, Any] = {
        "group": parts.names[t],
        "size": int(np.count_nonzero(here)),
        "judgments": int(np.count_nonzero(rows)),
        "liked": int(np.count_nonzero(rows & (judged.view.label == LIKED))),
    }
    if parts.quantity is not None and here.any() and not np.isnan(parts.quantity[here]).all():
        facts["lowest"] = float(parts.quantity[here].min())
        facts["highest"] = float(parts.quantity[here].max())
    return facts


def _judgments_in(judged: Judged, parts: Division, t: int) -> Mask:
    """Mark the judgments of a stratum."""
    code = parts.code
    if parts.of == "items":
        code = code[judged.judgments.item]
    elif parts.of == "users":
        code = code[judged.owner[judged.judgments.user]]
    here: Mask = code == t
    return here


def _measure(case: _StrataCase, t: int) -> tuple[Scores, Scores]:
    """Return the scores within a stratum, and its parts of all scores."""
    judged, scores, parts = case.judged, case.whole, case.parts
    if parts.of == "users":
        here = parts.code[judged.owner] == t
        rows = np.flatnonzero(here)
        within_stratum, filled = {}, {}
        for name, system in scores.systems.items():
            den = {row: bottom[rows] for row, bottom in system.den.items()}
            within_stratum[name] = System(system.values[:, rows], den, system.depth[rows])
            # 0 for the other lists, undefined where they are.
            values = np.where(here | np.isnan(system.values), system.values, 0.0)
            filled[name] = System(values, system.den, system.depth)
        inside = replace(scores, systems=within_stratum, lists=scores.lists[rows])
        return inside, replace(scores, systems=filled)
    keep = _judgments_in(judged, parts, t)
    # What divides a contribution is that of all judgments: only the view is masked.
    part = judged.basis.masked(keep, recount=False)
    split = {
        name: _contributions(case, part, matched, scores.systems[name])
        for name, matched in judged.matched.items()
    }
    alone = judged.basis.masked(keep)
    inside = replace(
        scores,
        systems=score(alone, judged.matched, case.metrics, **case.resources),
        lists=list_columns(judged, alone),
    )
    return inside, replace(scores, systems=split)


def _splits(metric: Metric) -> bool:
    """Tell whether a metric can be split over strata of items."""
    strata = metric.definition.strata
    return strata is not None and strata.splits(metric.params)


def _contributions(case: _StrataCase, part: Basis, matched: Matched, system: System) -> System:
    """Return what the hits of a stratum add to each list's value."""
    basis, metrics = case.judged.basis, case.metrics
    total = len(basis.lists)
    values = np.full((len(metrics), total), np.nan)
    bounds = [(low, min(low + BLOCK, total)) for low in range(0, total, BLOCK)]

    def fill(block: tuple[int, int]) -> None:
        lo, hi = block
        full = Block.of(basis, matched, lo, hi, {}, Scratch(), {})
        for row, metric in enumerate(metrics.values()):
            if _splits(metric):
                seen = full.derive(metric.anti, metric.condensed)
                values[row, lo:hi] = _part(seen, part, metric)

    map_blocks(fill, bounds, case.resources["threads"], size=total * len(metrics))
    return System(values, system.den, system.depth)


def _part(seen: Block, part: Basis, metric: Metric) -> F64:
    """Return the part of a metric that comes from the hits which `part` does not mask."""
    strata = metric.definition.strata
    assert strata is not None
    values = strata.part(
        Portion(
            block=seen,
            judged=part,
            view=part.view.anti if metric.anti else part.view,
            compute=metric.definition.compute,
            params=metric.params,
            cutoff=metric.whole_cutoff,
        )
    )
    if not is_ours(metric.definition.compute):
        check_finite(f"{metric} of a stratum", seen, values[None])
    return values


def _drawn(case: _StrataCase, scores: Scores) -> F64:
    """Return draws x metrics x systems; NaN for metrics without a value per user."""
    draws, threads = case.method.draws, case.resources["threads"]
    out = np.full((draws, len(scores.labels), len(scores.systems)), np.nan)
    if not np.logical_and.reduce([scores.averaged(name) for name in scores.systems]).any():
        return out  # no user whom all systems have a value for
    pairs = paired(scores)
    rows = [row for row, label in enumerate(scores.labels) if label in pairs.metrics]
    if rows:
        weigh = with_replacement(case.method.seed or 0, "bootstrap")
        named = [scores.labels[row] for row in rows]
        out[:, rows] = reweighted(pairs, named, weigh, draws, threads)
    return out


def _divided(top: F64, bottom: F64) -> F64:
    with np.errstate(invalid="ignore", divide="ignore"):
        result: F64 = np.where(bottom == 0, np.nan, top / bottom)
    return result
