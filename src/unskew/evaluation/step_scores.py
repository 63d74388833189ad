"""`evaluate_steps`: every next item of every user, judged one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import checked, choose
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.engine.system import versions
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError
from unskew.evaluation.evaluate import labelled
from unskew.evaluation.one_relevant import of_rank
from unskew.evaluation.scores import Scores, System
from unskew.judging.judge import name_systems
from unskew.judging.step_ranks import StepRanks, rank_steps, read_step_ranks
from unskew.metrics.listwise import infinite_value, is_ours
from unskew.metrics.names import Metric
from unskew.recommend.model import Algorithm, can_score
from unskew.report.text import counted
from unskew.targets.step_lists import StepLists
from unskew.ties import MODEL_TIES

METRICS = ("HitRate@10", "nDCG@10", "RR@10")
"""What is computed when no metrics are named."""
OVER = ("users", "lists")


@notebook_progress("evaluation of steps")
@checked
def evaluate_steps(
    steps: StepLists,
    systems: object,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    over: str = "users",
    ties: str = "id",
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Judge every next item: the value of every metric for every step and system.

    Nothing is users x items x steps: a model that scores users once ranks once per user, and the
    rank at each step follows by counting what the user met in between; a model that sees the
    history is asked for a tile of steps at a time.

    Parameters
    ----------
    steps
        The steps: `us.targets.next_items(…)`.
    systems
        By name: fitted models (those with `score_next` see the history, all others score users
        once), anything else that `us.rank` takes, or ready-made lists in a file or table with the
        columns user, step (or time), item, and rank or score.
    metrics
        Metrics of the rank of one relevant item, such as ``"HitRate@10"``, ``"nDCG@10"``,
        ``"RR"``, ``"AUC"``. The target has gain 1.
    over
        What is averaged by default: `users`, the mean of each user's steps; or `lists`, every step
        alike, so that busy users count more.
    ties, seed
        Equal scores of a model by ascending `id`, or `random` (by `seed`).
    threads
        How many threads to use; never changes a result.
    progress
        Called with (done, total) as systems are done.

    Returns
    -------
    Scores
        A row per step: `user`, `session` where there are sessions, `step`, `time`, `anchor` (the
        target), `history` (how many events came before), `targets` (how many items could be
        recommended). `us.stats.step_curves` shows means by step or over time.

    Examples
    --------
    >>> import unskew as us
    >>> train = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 8, 9, 7], "time": [1, 2, 1, 2, 1, 2]}
    >>> test = {"user": [1, 3], "item": [9, 8], "time": [5, 6]}
    >>> steps = us.targets.next_items(train, test)
    >>> models = {"markov": us.recommend.MarkovChain().fit(steps.train)}
    >>> us.evaluation.evaluate_steps(steps, models, "RR").mean("RR")
    {'markov': 1.0}
    """
    choose("over", over, OVER)
    choose("ties", ties, MODEL_TIES)
    by_label = labelled(metrics)
    for label, metric in by_label.items():
        if metric.definition.of != "judged":
            raise SettingError(f"{label} is no metric of the rank of one relevant item")
        of_rank(metric)
    # Without a cutoff every rank matters.
    cutoffs = [metric.cutoff for metric in by_label.values()]
    deepest = None if None in cutoffs else max(cutoff for cutoff in cutoffs if cutoff is not None)
    named, workers = name_systems(systems), resolve(threads)
    count = Steps(len(named), progress)
    results, notes = {}, list(steps.notes)
    for name, system in named.items():
        ranks = _ranks(name, system, steps, deepest, ties, seed, workers)
        notes += [*ranks.notes, *_missing(name, ranks)]
        results[name] = System(_values(by_label, ranks, steps), {}, ranks.depth, {})
        count.advance()
    return Scores(
        tuple(by_label),
        results,
        steps.users,
        _columns(steps),
        order=tuple(by_label),
        make_card=_card(steps, by_label, list(named), ties, seed),
        notes=tuple(dict.fromkeys(notes)),
        relevance=f"one relevant item per step, the next one; met items: {steps.seen}",
        over=over,
        chance=System(_chance(by_label, steps), {}, steps.size, {}),
    )


def _ranks(
    name: str,
    system: object,
    steps: StepLists,
    deepest: int | None,
    ties: str,
    seed: int,
    threads: int,
) -> StepRanks:
    if isinstance(system, Algorithm):
        raise DataError(
            f"{name}: {system!r} is not fitted yet: give "
            f"{type(system).__name__}(…).fit(steps.train)"
        )
    if callable(getattr(system, "score_next", None)) or can_score(system):
        return rank_steps(system, steps, deepest=deepest, ties=ties, seed=seed, threads=threads)
    try:
        return read_step_ranks(system, steps, name)
    except DataError as problem:
        raise type(problem)(f"{name}: {problem}") from None


def _missing(name: str, ranks: StepRanks) -> list[str]:
    """Say what a model could not score."""
    none = int(np.count_nonzero(ranks.depth == 0))
    lines = []
    if none and ranks.scores:
        lines.append(
            f"{name}: {counted(none, 'step has', 'steps have')} no score at all, which counts 0"
        )
    if ranks.unscored:
        lines.append(
            f"{name}: {100 * ranks.unscored / ranks.scores:.3g} % of the scores asked for are "
            "missing; items without a score are in no list"
        )
    return lines


def _values(metrics: Mapping[str, Metric], ranks: StepRanks, steps: StepLists) -> F64:
    """Return metrics x steps; 0 where the target is in no place."""
    values = np.zeros((len(metrics), ranks.rank.size))
    hit = ranks.rank > 0
    places = ranks.rank[hit].astype(np.float64)
    for row, metric in enumerate(metrics.values()):
        form = metric.definition.at_rank
        assert form is not None
        cutoff = metric.whole_cutoff
        values[row, hit] = form.value(places, metric.params, cutoff, ranks.depth[hit])
        if not is_ours(form.value) and np.isinf(values[row]).any():
            step = int(np.argmax(np.isinf(values[row])))
            user = steps.users.values[int(steps.user[step])]
            anchor = steps.items.values[int(steps.item[step])]
            where = f"the step of user {user!r}, anchor {anchor!r}"
            raise infinite_value(metric, float(values[row, step]), where)
    return values


def _chance(metrics: Mapping[str, Metric], steps: StepLists) -> F64:
    """Return what a random order of the candidates is expected to score at each step."""
    sizes, index = np.unique(steps.size, return_inverse=True)
    longest = int(sizes.max(initial=1))
    out = np.zeros((len(metrics), len(steps)))
    is_candidate = steps.candidates[steps.item]
    ranks = np.arange(1, longest + 1, dtype=np.float64)
    for row, metric in enumerate(metrics.values()):
        form = metric.definition.at_rank
        assert form is not None
        if form.draws_change_nothing:  # it depends on the number of items: one size at a time
            means = np.array(
                [
                    form.value(ranks[:n], metric.params, metric.whole_cutoff, int(n)).mean()
                    for n in sizes.tolist()
                ]
            )
        else:
            value = form.value(ranks, metric.params, metric.whole_cutoff, longest)
            means = (np.cumsum(value) / ranks)[np.maximum(sizes, 1) - 1]
        out[row] = np.where(is_candidate, means[index], 0.0)
    return out


def _columns(steps: StepLists) -> pl.DataFrame:
    count = len(steps)
    columns = {
        "user": pl.Series(steps.user),
        "liked": pl.Series(np.ones(count, np.int64)),
        "disliked": pl.Series(np.zeros(count, np.int64)),
        "test": pl.Series(np.ones(count, np.int64)),
        "train": pl.Series(np.diff(steps.train.start)[steps.user]),
        "targets": pl.Series(steps.size),
        "anchor": steps.items.raw(steps.item),
        **({"session": pl.Series(steps.session)} if steps.session.size else {}),
        "step": pl.Series(steps.step),
        "time": pl.Series(steps.time).cast(pl.Datetime("us")),
        "history": pl.Series(steps.at - steps.begin),
    }
    return pl.DataFrame(columns)


def _card(
    steps: StepLists, metrics: Mapping[str, Metric], systems: list[str], ties: str, seed: int
) -> Callable[[], dict[str, Any]]:
    """Return what makes the card: everything from which the numbers can be derived again."""

    def card() -> dict[str, Any]:
        digest = hashlib.blake2b(digest_size=16)
        for column in (steps.user, steps.item, steps.time):
            digest.update(np.ascontiguousarray(column).data)
        return {
            "judgments": {"fingerprint": digest.hexdigest(), "rows": len(steps)},
            "train": {"fingerprint": steps.train.fingerprint, "rows": len(steps.train)},
            "steps": dict(steps.design),
            "facts": dict(steps.facts),
            "metrics": {label: str(metric) for label, metric in metrics.items()},
            "systems": systems,
            "ties": ties,
            "seed": seed,
            "versions": versions(),
        }

    return card
