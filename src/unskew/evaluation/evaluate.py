"""`evaluate`: judgments and ranked lists in, `Scores` out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unskew.checks import checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    OURS,
    Paper,
    Relevance,
    Rule,
    candidate_items,
    check_likes,
    described,
    paper_notes,
    paper_of,
)
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.system import versions
from unskew.engine.threads import resolve
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.scores import UNDEFINED, USERS, Scores, System
from unskew.evaluation.scoring import Measures, list_columns, prepare, remarks, score
from unskew.judging.judge import as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.metrics.chance import DRAWS
from unskew.metrics.names import Metric, parse
from unskew.report.text import counted
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists

METRICS = ("P@10", "Recall@10", "nDCG@10", "RR@10", "anti-P@10", "Judged@10")
"""What is computed when no metrics are named."""
MEMORY = 512 << 20
"""Working memory beyond inputs and result, in bytes."""


@notebook_progress("evaluation")
@checked
def evaluate(
    judgments: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    train: object = None,
    items: object = None,
    users: str | None = None,
    undefined: str | None = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    unranked: str | None = None,
    threads: int | None = None,
    memory: int | str = MEMORY,
    progress: Progress | None = None,
    targets: str | Targets | None = None,
    lists: str | Sequence[str] | None = None,
    draws: int = DRAWS,
    compat: str | None = None,
    events: str | Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Scores:
    """Judge ranked lists: the value of every metric for every user and system.

    Parameters
    ----------
    judgments, runs
        Judged data (`judge`) alone, with the metrics as the second argument. Or raw data as `judge`
        takes them: test ratings, or target lists (`Targets.lists`); and ranked lists by system, on
        target lists also fitted models.
    metrics
        Names such as ``"P@10"``, ``"nDCG"``, ``"anti-P@10"`` or ``"SR(gamma=1)@10"``.
    liked, above, gain, loss, relevance, train, items, lists, events, weights
        Of raw data, see `judge`.
    targets
        Of raw data, see `judge`; unless given, the candidate items of the paper that `relevance`
        names. Then what a random order is expected to score is shown.
    ties, depth, unranked
        Of the lists, see `judge`.
    users
        Which users are averaged by default, see `Scores.mean`: `with-test`, or those of the paper
        that `relevance` names.
    undefined
        `zero` (default) counts undefined values as 0 in means, `skip` leaves them out.
    seed
        For `ties="random"`, and for the random orders of `draws`.
    threads
        How many threads to use; never changes a result.
    memory
        Working memory in bytes, or text such as ``"512MiB"``; never changes a result.
    progress
        Called with (done, total) as work goes on.
    draws
        With targets: how many random orders are averaged for the expectation of metrics for
        which no closed form is known.
    compat
        A library whose numbers are wanted, such as ``"recbole"`` (see
        `us.conventions.known_libraries`): the metrics that are named, by our names or its own, as
        that library would compute them, under its names. Its conventions replace `gain`, `users`,
        `undefined` and `ties`.

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
    check_averaging(users, undefined)
    runs, metrics = second_argument(judgments, runs, metrics, METRICS)
    data: dict[str, Any] = {
        "liked": liked,
        "above": above,
        "relevance": relevance,
        "train": train,
        "items": items,
        "depth": depth,
        "events": events,
        "weights": weights,
    }
    if compat is not None:  # what few evaluations need is imported where they do
        from unskew.conventions.laying import lay
        from unskew.evaluation.compat import check_free, evaluate_as

        check_free(compat, gain=gain, users=users, undefined=undefined, ties=ties, targets=targets)
        for name, value in (("unranked", unranked), ("lists", lists)):
            if value is not None:
                raise SettingError(f"compat takes lists as the library does: leave {name}=… out")
        laid = lay(judgments, runs, seed=seed, **data)
        return evaluate_as(compat, laid, None if metrics == METRICS else metrics)
    paper = stated_paper(judgments, relevance)
    by_label = labelled(metrics, paper)
    workers, budget = resolve(threads), memory_bytes(memory)
    judged = as_judged(
        judgments,
        runs,
        seed=seed,
        gain=gain,
        loss=loss,
        targets=candidate_items(relevance, targets, train),
        lists=lists,
        ties=ties,
        unranked=unranked,
        may_tie=True,
        may_repeat=True,
        **data,
    )
    if seed not in (0, judged.seed):
        raise SettingError("seed is part of the judged data already: give it to judge(…)")
    by_label, left_out = without_dislikes(by_label, judged.tests.implicit)
    if not isinstance(judgments, Judged | TargetLists):  # a part of judged data may lack likes
        check_likes(judged.tests, judged.relevance)
        check_dislikes(() if metrics == METRICS else by_label.values(), judged)
    if metrics == METRICS:
        by_label, more = with_dislikes(by_label, judged)
        left_out += more
    if judged.targets is not None and judged.targets.shortfall == "forgive":
        by_label = {label: forgiving(metric) for label, metric in by_label.items()}
    measures = Measures(by_label)
    judged = prepare(judged, measures, workers)
    users, undefined = users or paper.users, undefined or paper.undefined
    notes = [*judged.read, *paper_notes(judged.paper), *left_out, *remarks(judged, measures, users)]
    resources: Any = {"threads": workers, "budget": budget, "progress": progress}
    results = score(judged.basis, judged.matched, measures, **resources)
    chance, simulated = _chance(judged, measures, draws, workers)
    scores = _scores(judged, measures, results)
    scores = replace(scores, users=users, undefined=undefined, chance=chance, simulated=simulated)
    return replace(scores, notes=(*notes, *_undefined_condensed(scores, measures)))


def _scores(
    judged: Judged,
    metrics: Measures,
    results: dict[str, System],
) -> Scores:
    """Put values of all systems together."""
    over = "strata" if judged.targets is not None and judged.targets.strata else "lists"
    return Scores(
        metrics.rows,
        results,
        judged.users,
        list_columns(judged),
        order=tuple(metrics),
        make_card=_card(judged, metrics),
        relevance=str(judged.relevance),
        # Of a paper, what labels mean that mean something else than they say.
        meanings={
            label: str(metric)
            for label, metric in metrics.items()
            if judged.paper and parse(label) != metric
        },
        over=over if judged.occasions is None else "users",
    )


def _undefined_condensed(scores: Scores, metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Say how many lists leave condensed precision undefined, where that counts as 0."""
    condensed = {label: metric for label, metric in metrics.items() if metric.condensed}
    labels = [label for label, metric in condensed.items() if metric.definition.condensed]
    if not labels or scores.undefined == "skip":
        return
    for system, means in scores.averages().items():
        missing: dict[int, list[str]] = {}
        for label in labels:
            missing.setdefault(means[label].undefined, []).append(label)
        for number, names in missing.items():
            lists = counted(number, "averaged list has", "averaged lists have")
            if number:
                yield (
                    f"{system}: {lists} no value of {', '.join(names)}: 0 in the mean "
                    "(undefined='skip' leaves them out)"
                )


def without_dislikes(
    metrics: Mapping[str, Metric], implicit: bool
) -> tuple[dict[str, Metric], list[str]]:
    """Return the metrics that mean something, and what was left out of implicit feedback."""
    lost = [label for label, metric in metrics.items() if implicit and metric.needs_dislikes]
    if not lost:
        return dict(metrics), []
    retained = {label: metric for label, metric in metrics.items() if label not in lost}
    reason = "these ratings are implicit feedback, which has no dislikes"
    if not retained:
        raise SettingError(
            f"{reason}: {', '.join(lost)} cannot be computed; if a rating is an opinion, read the "
            "ratings with ",
            Spelling("feedback='explicit'", "--feedback explicit"),
        )
    return retained, [f"{reason}: {', '.join(lost)} left out"]


def check_dislikes(metrics: Iterable[Metric], judged: Judged) -> None:
    """Refuse anti-metrics where every opinion is a like: all values would be 0, and look right."""
    needing = [str(metric) for metric in metrics if metric.anti]
    reason = _no_dislikes(judged) if needing else ""
    if reason:
        raise DataError(
            f"{', '.join(needing)}: {reason}; raise the threshold, or leave these metrics out"
        )


def with_dislikes(
    metrics: Mapping[str, Metric], judged: Judged
) -> tuple[dict[str, Metric], list[str]]:
    """Leave out anti-metrics that nobody asked for where every opinion is a like."""
    needing = [label for label, metric in metrics.items() if metric.anti]
    reason = _no_dislikes(judged) if needing else ""
    if not reason:
        return dict(metrics), []
    retained = {label: metric for label, metric in metrics.items() if label not in needing}
    return retained, [f"{reason}; {', '.join(needing)} left out"]


def _no_dislikes(judged: Judged) -> str:
    """Say that there are no dislikes, where opinions have none; '' elsewhere.

    In TREC qrels that is usual, and implicit feedback never has any.
    """
    tests, rule = judged.tests, judged.relevance
    usual = tests.implicit or "pooled" in tests.tags or not len(tests)
    if usual or not rule.is_liked(tests.value).all():
        return ""
    border = "from" if rule.liked is not None else "above"
    return (
        f"no rating is disliked: ratings are {described(tests.value)}, liked are those {border} "
        f"{rule.threshold:g}"
    )


def forgiving(metric: Metric) -> Metric:
    """Let precision divide by what was ranked, where less was ranked than the cutoff."""
    changed = metric.definition.short_list
    others = tuple(setting for setting in metric.settings if setting[0] not in changed)
    return replace(metric, settings=(*others, *changed.items()))


def _chance(
    judged: Judged, metrics: Mapping[str, Metric], draws: int, threads: int
) -> tuple[System | None, dict[str, int]]:
    """Return what a random order of the targets is expected to score, where they are known."""
    if judged.targets is None:
        return None, {}
    from unskew.evaluation.chance import chance_scores

    depth = judged.depth
    if not any(matched.is_full for matched in judged.matched.values()):
        # Chance stops too at the end of the longest list of a ready-made run.
        depth = max(int(matched.depth.max(initial=1)) for matched in judged.matched.values())
    return chance_scores(
        judged, metrics, depth=depth, draws=draws, seed=judged.seed, threads=threads
    )


def _card(judged: Judged, metrics: Mapping[str, Metric]) -> Callable[[], dict[str, Any]]:
    """Return what makes the card: everything from which the numbers can be derived again."""
    # Scores keep the card, so that it must not hold the lists of the systems.
    tests, train, lists = judged.tests, judged.train, judged.targets
    occasions = {} if judged.occasions is None else {"lists": judged.occasions.settings}
    settings = {
        **occasions,
        "relevance": judged.relevance.describe(),
        **({"paper": judged.paper} if judged.paper else {}),
        "metrics": {label: str(metric) for label, metric in metrics.items()},
        **_user_code(metrics),
        "systems": list(judged.systems),
        "ties": judged.ties or "trec for TREC files, else id",
        "seed": judged.seed,
        "depth": judged.depth,
        **({"unranked": judged.unranked} if judged.is_tied else {}),
    }

    def card() -> dict[str, Any]:
        content = {
            "judgments": _facts(tests),
            "train": _facts(train),
            **settings,
            "versions": versions(),
        }
        if lists is not None:
            content |= {"targets": dict(lists.design), "lists": dict(lists.facts)}
        return content

    return card


def _user_code(metrics: Mapping[str, Metric]) -> dict[str, dict[str, str]]:
    """Say which metrics are functions of a user's code, and where they are defined."""
    definitions = {metric.name: metric.definition for metric in metrics.values()}
    user = {
        name: definition.origin
        for name, definition in definitions.items()
        if definition.is_user_code
    }
    return {"user_metrics": user} if user else {}


def _facts(ratings: Ratings | None) -> dict[str, Any] | None:
    if ratings is None:
        return None
    return {"fingerprint": ratings.fingerprint, "rows": len(ratings)}


def stated_paper(judgments: object, relevance: object) -> Paper:
    """Return the conventions of the paper that judged data, or the name of a paper, ask for."""
    return paper_of(judgments.paper if isinstance(judgments, Judged) else relevance)


def check_averaging(users: str | None, undefined: str | None) -> None:
    """Refuse what is no way to average; None is left to the paper, or to our default."""
    if users is not None:
        choose("users", users, USERS)
    if undefined is not None:
        choose("undefined", undefined, UNDEFINED)


def labelled(
    metrics: str | Metric | Iterable[str | Metric], paper: Paper = OURS
) -> dict[str, Metric]:
    """Map each metric as it was written to what it means, in a paper where one is named."""
    texts = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not texts:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return {str(metric): _as_meant(metric, paper) for metric in texts}


def _as_meant(name: str | Metric, paper: Paper) -> Metric:
    """Return a metric with the settings of a paper, unless some are stated in its name."""
    metric = parse(name)
    reading = paper.reading(metric.name, condensed=metric.condensed)
    if reading is None or "(" in str(name):
        return metric
    return replace(metric, settings=parse(reading).settings)


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
