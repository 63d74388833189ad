"""`strata`: any metric by popularity of the items, or by kind of user; where a score comes from.

A mean over everything hides whom and what it is a mean of. Two views of the same score are given.
*Within* a stratum of items only its judgments count, as if nothing else had been judged; within a
stratum of users only these users are averaged. The *contribution* of a stratum is its part of the
whole score: contributions add up to the score, so that each stratum has a share of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

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
from unskew.stats.pairing import paired
from unskew.stats.resampling import percentile_interval, reweighted, with_replacement
from unskew.unbiased.strata_report import BOOTSTRAP, LEVEL, Division, StrataReport, Stratum, divide

METRICS = ("P@10", "Recall@10", "nDCG@10")
"""What is computed when no metrics are named."""


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
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Progress | None = None,
    **data: Unpack[RawOptions],
) -> StrataReport:
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
    bootstrap
        Random draws of users for the intervals; 0 for no intervals.

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
    StrataReport

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
    >>> result = strata(test, runs, "P@2", train=train, m=3, liked=4, bootstrap=0)
    >>> result.contribution[0, 0].tolist(), result.value[0, 0].tolist()
    ([0.0, 0.25, 0.25], [nan, 0.25, 0.5])
    """
    check_averaging(users, undefined)
    paper = stated_paper(judgments, data.get("relevance"))
    users, undefined = users or paper.users, undefined or paper.undefined
    as_count("bootstrap", bootstrap, least=0)
    check_share("level", level)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    by_label = labelled(metrics, paper)
    _refuse_runs(by_label)
    threads = resolve(threads)
    judged = prepare(as_judged(judgments, runs, seed=seed, **data), by_label, threads)
    notes = tuple(
        dict.fromkeys([*judged.read, *paper_notes(judged.paper), *remarks(judged, by_label, users)])
    )
    case = _StrataCase(
        judged=judged,
        metrics=by_label,
        users=users,
        undefined=undefined,
        seed=seed,
        threads=threads,
        budget=memory_bytes(memory),
        bootstrap=bootstrap,
        level=level,
        notes=notes,
    )
    scores = case.scores(judged.basis)
    parts = divide(judged, scores, by, of, m, equal)
    if parts.of != "users":
        _refuse_items(by_label)
    size = as_count("head", head)
    if parts.ordered and size >= len(parts.names):
        raise SettingError(f"head={head} covers all {len(parts.names)} strata: use a smaller head")
    return _report(case, scores, parts, size if parts.ordered else 0, progress)


@dataclass(frozen=True, eq=False)
class _StrataCase:
    """The judged lists, what is measured of them, who is averaged, and with what."""

    judged: Judged
    metrics: Mapping[str, Metric]
    users: str
    undefined: str
    seed: int
    threads: int
    budget: int
    bootstrap: int
    level: float
    notes: tuple[str, ...]

    def scores(self, basis: Basis) -> Scores:
        """Return scores of these lists, as a view of the judgments has them."""
        judged, labels = self.judged, tuple(self.metrics)
        systems = score(
            basis, judged.matched, self.metrics, threads=self.threads, budget=self.budget
        )
        return Scores(
            labels=labels,
            systems=systems,
            user_ids=judged.users,
            lists=list_columns(judged, basis),
            users=self.users,
            undefined=self.undefined,
            order=labels,
            notes=self.notes,
            relevance=str(judged.relevance),
            over="strata" if judged.targets is not None and judged.targets.strata else "lists",
        )


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


def _report(
    case: _StrataCase,
    scores: Scores,
    parts: Division,
    head: int,
    progress: Progress | None,
) -> StrataReport:
    metrics = case.metrics
    shape = len(metrics), len(scores.systems), len(parts.names)
    value, low, high, contribution = (np.full(shape, np.nan) for _ in range(4))
    lists = np.zeros(shape, np.int64)
    described, notes = [], [*case.notes, *parts.notes]
    draws: list[F64] = []
    for t, name in enumerate(parts.names):
        inside, part = _measure(case, scores, parts, t)
        described.append(_describe(case.judged, parts, t))
        value[:, :, t], lists[:, :, t] = _means(inside)
        contribution[:, :, t], _ = _means(part)
        if not lists[:, :, t].any():
            value[:, :, t] = np.nan
            notes.append(f"stratum {name}: it has no judgments, so it has no value")
        elif case.bootstrap:
            low[:, :, t], high[:, :, t] = percentile_interval(_drawn(inside, case), case.level)
        if case.bootstrap:
            draws.append(_drawn(part, case))
        if progress is not None:
            progress(t + 1, len(parts.names))
    for row, (label, metric) in enumerate(metrics.items()):
        if not _splits(metric) and parts.of != "users":
            contribution[row] = np.nan
            notes.append(f"{label} is not a sum over hits: it has no contributions")
    score, _ = _means(scores)
    share_low, share_high, heads = _share_intervals(contribution, draws, head, case)
    if head:
        heads[..., 0] = _divided(contribution[..., :head].sum(axis=-1), score)
    return StrataReport(
        by=parts.by,
        of=parts.of,
        strata=tuple(described),
        systems=tuple(scores.systems),
        metrics=tuple(metrics),
        whole=scores,
        value=value,
        low=low,
        high=high,
        lists=lists,
        contribution=contribution,
        share=_divided(contribution, score[:, :, None]),
        share_low=share_low,
        share_high=share_high,
        head=head,
        head_share=heads,
        level=case.level,
        bootstrap=case.bootstrap,
        notes=tuple(dict.fromkeys(notes)),
    )


def _means(scores: Scores) -> tuple[F64, I64]:
    """Return the means, metrics x systems, and how many lists each is over."""
    means = scores.averages()
    table = [[means[system][label] for system in scores.systems] for label in scores.labels]
    values = np.array([[mean.value for mean in row] for row in table], np.float64)
    return values, np.array([[mean.users for mean in row] for row in table], np.int64)


def _share_intervals(
    contribution: F64, draws: list[F64], head: int, case: _StrataCase
) -> tuple[F64, F64, F64]:
    """Return the ends of each share's interval, and of the head's in places 1 and 2 of three."""
    low, high = np.full(contribution.shape, np.nan), np.full(contribution.shape, np.nan)
    heads = np.full((*contribution.shape[:2], 3), np.nan)
    if case.bootstrap:
        of_draws = np.stack(draws, axis=-1)  # draws x metrics x systems x strata
        of_draws = _divided(of_draws, of_draws.sum(axis=-1, keepdims=True))
        low, high = percentile_interval(of_draws, case.level)
        if head:
            heads[..., 1], heads[..., 2] = percentile_interval(
                of_draws[..., :head].sum(axis=-1), case.level
            )
        for table in (low, high, heads):
            table[np.isnan(contribution).all(axis=-1)] = np.nan
    return low, high, heads


def _describe(judged: Judged, parts: Division, t: int) -> Stratum:
    here = parts.code == t
    rows = _judgments_in(judged, parts, t)
    lowest = highest = math.nan
    if parts.quantity is not None and here.any() and not np.isnan(parts.quantity[here]).all():
        lowest, highest = float(parts.quantity[here].min()), float(parts.quantity[here].max())
    return Stratum(
        name=parts.names[t],
        size=int(np.count_nonzero(here)),
        judgments=int(np.count_nonzero(rows)),
        liked=int(np.count_nonzero(rows & (judged.view.label == LIKED))),
        least=lowest,
        most=highest,
    )


def _judgments_in(judged: Judged, parts: Division, t: int) -> Mask:
    """Mark the judgments of a stratum."""
    code = parts.code
    if parts.of == "items":
        code = code[judged.judgments.item]
    elif parts.of == "users":
        code = code[judged.owner[judged.judgments.user]]
    here: Mask = code == t
    return here


def _measure(case: _StrataCase, scores: Scores, parts: Division, t: int) -> tuple[Scores, Scores]:
    """Return the scores within a stratum, and its parts of all scores."""
    judged = case.judged
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
    return case.scores(judged.basis.masked(keep)), replace(scores, systems=split)


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

    map_blocks(fill, bounds, case.threads, size=total * len(metrics))
    return System(values, system.den, system.depth)


def _part(seen: Block, part: Basis, metric: Metric) -> F64:
    """Return the part of a metric that comes from the hits which `part` does not mask."""
    strata = metric.definition.strata
    assert strata is not None
    values = strata.part(
        Portion(
            whole=seen,
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


def _drawn(scores: Scores, case: _StrataCase) -> F64:
    """Return draws x metrics x systems; NaN for metrics without a value per user."""
    out = np.full((case.bootstrap, len(scores.labels), len(scores.systems)), np.nan)
    if not np.logical_and.reduce([scores.averaged(name) for name in scores.systems]).any():
        return out  # no user whom all systems have a value for
    pairs = paired(scores)
    weigh = with_replacement(case.seed, "bootstrap")
    rows = [row for row, label in enumerate(scores.labels) if label in pairs.metrics]

    if rows:
        named = [scores.labels[row] for row in rows]
        out[:, rows] = reweighted(pairs, named, weigh, case.bootstrap, case.threads)
    return out


def _divided(top: F64, bottom: F64) -> F64:
    with np.errstate(invalid="ignore", divide="ignore"):
        result: F64 = np.where(bottom == 0, np.nan, top / bottom)
    return result
