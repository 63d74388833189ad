"""`assisted`: what systems score by a few labels of people and many of an annotator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.errors import SettingError
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.judging.notes import warn
from unskew.labels.contrast_sides import HUMAN, LISTS, POPULATIONS, PPI, TUNED
from unskew.labels.human_samples import human_sample, read_people, sample_frame
from unskew.labels.label_study import ANNOTATOR, UNLABELLED, Bootstrap, LabelStudy
from unskew.labels.recommended_pairs import (
    MEANS,
    STRATA,
    PlaceSum,
    RecommendedPairs,
    place_sums,
)
from unskew.labels.sample_checks import agreements, check_sample, looks_random
from unskew.metrics.names import Metric
from unskew.report.columns import (
    DIFFERENCE,
    HIGH,
    LOW,
    METRIC,
    NOTE,
    PAIR,
    QUANTITY,
    SE,
    SYSTEM,
    VALUE,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES

INTERVALS = ("score", "bootstrap")
ALL_JUDGED = "all judged"
IN_WORDS = {"score": "score", "bootstrap": "bootstrap", "exact": "exact for few counts"}
MOST_SENTENCES = 10
MOST_NAMES = 5
"""Of contrasts that have no estimate, for the same reason."""
_COUNTS = Column("labels", "count"), Column("pairs", "count", hidden=True)
_FACTS = (
    *(Column("interval", "note", hidden=True), Column("rho", "fact", hidden=True)),
    *(Column("gain", "fact"), replace(NOTE, hidden=True)),
)
ASSISTED = Question(
    name="assisted estimates",
    columns=(METRIC, SYSTEM, QUANTITY, *_COUNTS, VALUE, SE, LOW, HIGH, *_FACTS),
    quantities=(
        *(Column(HUMAN, "value"), Column(TUNED, "value")),
        *(Column(PPI, "fact"), Column(ANNOTATOR, "fact")),
    ),
    method=Method(estimand="what systems score by labels of people", unit="pairs"),
    display=("", "pairs", "agreement"),
    digits=3,
)
"""A row per metric, system and estimator.

`human` are people's labels alone, `PPI` and `PPI++` are corrected by those of the annotator, whose
labels alone are `annotator`. `labels` of people and recommended `pairs` count for a row; `interval`
is how its ends were made (`all judged`: they are the value), `note` why there are no estimates.
Rows of PPI++ have `rho`, the correlation of people's and the annotator's labels as they count for
it, and `gain`: how many times as many labels of people alone would be as precise.
"""
DIFFERENCES = replace(
    ASSISTED,
    name="differences",
    columns=(
        *(METRIC, *PAIR, QUANTITY, *_COUNTS, *DIFFERENCE, SE, *_FACTS),
        *(Column(f"{end}_together", "interval", form="+", hidden=True) for end in ("low", "high")),
        Column("better", "note", hidden=True),
    ),
    quantities=tuple(replace(column, form="+") for column in ASSISTED.quantities),
    display=("",),
)
"""A row per metric, pair of systems and estimator.

`low_together` and `high_together`, of PPI++, hold with those of all differences of the answer;
`better` is the system that is better by these.
"""


@checked
def assisted(
    labels: object,
    runs: object = None,
    metrics: str | Metric | Iterable[str | Metric] = "P@10",
    *,
    human: object,
    human_liked: float | None = None,
    probability: str | None = None,
    strata: str | None = None,
    population: str = "lists",
    mean: str = "users",
    unlabelled: str = "error",
    interval: str = "score",
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    **data: Unpack[DataOptions],
) -> Estimates:
    r"""Estimate what systems score by people's labels, from few of these and many of an annotator.

    An annotator (a language model, another model, clicks) labels all recommended pairs; people
    label a random sample of them. The estimate is right whatever the annotator gets wrong
    (prediction-powered inference), and the better the annotator, the narrower its interval. For a
    metric that is a sum over places, :math:`\sum a\,y`, the share of liked places is estimated by
    the weighted mean of :math:`y - \lambda (f - \bar f)`: y what people say, f what the annotator
    says, with mean :math:`\bar f` over all pairs. :math:`\lambda` is 0 for people's labels alone
    (`human`), 1 for `PPI`, and the slope of y on f for `PPI++`, where each label is corrected with
    the slope of all others.

    Parameters
    ----------
    labels, runs
        Labels of the annotator for every recommended pair down to the deepest cutoff, and ranked
        lists by system, as `judge` takes them; or what `judge(labels, runs, …)` returned, with the
        metrics as the second argument.
    metrics
        P, DCG, RBP and their anti-twins. Others are refused, with the reason: Recall, AP and nDCG
        need items that no system recommends.
    human
        Labels of people for some of the recommended pairs: anything that `read_ratings` takes. A
        column `probability` says how likely each pair was to be drawn, `stratum` within what it was
        drawn at random. Without them it is taken as a simple random sample.
    human_liked
        Labels of people from this value up are liked, where their scale is another.
    probability
        The name of the column with inclusion probabilities, where it is another.
    strata
        The sample was drawn at random within strata of the recommended items: `rank`, `popularity`
        or `disagreement` (of the systems).

        So many from each stratum (`RecommendedPairs.strata`) as there are labels.
    population
        What is estimated: the value for these lists (`lists`), or for new users (`users`).

        `lists`: these lists are the target, of which a part is sampled without replacement.
        `users`: new users like these are, so that what varies between users counts too.
    mean
        `users`: the mean over users with a list of any system. `ratio`: all places of a system
        together, whatever the length of lists.
    unlabelled
        Recommended items without a label of the annotator: `error`, `disliked`, `mean` (of all
        labels).

        `disliked` fits clicks.
    interval
        With labels: `score` or `bootstrap` intervals.

        `score`: Wilson's score interval with as many labels as would have the estimated variance.
        `bootstrap`: bias-corrected and accelerated. With few liked or disliked labels, or few
        errors of the annotator, intervals are exact ones either way.
    resamples, seed
        Of the bootstrap; `seed` is also for random ties.
    level
        Of the intervals.
    threads
        Never changes a result.
    data
        Of raw data, see `judge`: liked, above, gain, loss, relevance, train (for popularity), ties,
        depth.

    Returns
    -------
    Estimates
        A row per metric, system and estimator (the quantity): `PPI++`, `human`, `PPI`, and
        `annotator`, its labels alone. Part `pairs`: differences, and which system is `better` by
        intervals of PPI++ that hold together; none where the sample does not look random. Part
        `agreement`: Cohen's kappa of annotator and people, by group. Part `sample`: tests of
        whether the labelled pairs were drawn as stated.

    References
    ----------
    Angelopoulos et al. 2023 (PPI, arXiv 2301.09633); Angelopoulos, Duchi and Zrnic 2023 (PPI++,
    arXiv 2311.01453); Särndal, Swensson and Wretman 1992 (difference estimators of surveys).

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> draws = np.random.default_rng(1)
    >>> user, item = np.arange(400) // 2, np.tile([10, 20], 200)  # every user has both items
    >>> runs = {"x": {u: [10] for u in range(200)}, "y": {u: [20] for u in range(200)}}
    >>> likes = draws.random(400) < np.where(item == 10, 0.6, 0.3)
    >>> model = np.where(draws.random(400) < 0.8, likes, True)  # now and then too kind
    >>> labels = {"user": user, "item": item, "rating": model.astype(int)}
    >>> some = draws.choice(400, 150, replace=False)
    >>> people = {"user": user[some], "item": item[some], "rating": likes[some].astype(int)}
    >>> made = us.labels.assisted(labels, runs, "P@1", human=people)
    >>> made.pair("x", "y").facts["better"], made.parts["agreement"].row().facts["labels"]
    ('x', 150)
    """
    choose("population", population, POPULATIONS)
    choose("mean", mean, MEANS)
    choose("unlabelled", unlabelled, UNLABELLED)
    choose("interval", interval, INTERVALS)
    check_share("level", level)
    as_count("resamples", resamples)
    if strata is not None:
        choose("strata", strata, STRATA)
        if probability is not None:
            raise SettingError("give either strata or probability, not both")
    runs, metrics = second_argument(labels, runs, metrics, "P@10")
    sums = place_sums(metrics)
    judged = as_judged(labels, runs, seed=seed, **data)
    deepest = max(place_sum.metric.whole_cutoff for place_sum in sums.values())
    pairs = RecommendedPairs.of_judged(judged, deepest)
    people = read_people(human, probability)
    sample = human_sample(people, pairs, probability, strata)
    study = LabelStudy(
        judged=judged,
        pairs=pairs,
        sample=sample,
        frame=sample_frame(pairs, sample, sums),
        rule=_human_rule(judged, people, human_liked),
        population=population,
        mean=mean,
        unlabelled=unlabelled,
    )
    draws = Bootstrap(resamples, seed, threads) if interval == "bootstrap" else None
    return _answer(study, sums, level, draws, threads)


def _answer(
    study: LabelStudy,
    sums: Mapping[str, PlaceSum],
    level: float,
    draws: Bootstrap | None,
    threads: int | None,
) -> Estimates:
    """Estimate all contrasts, check the sample and compare the annotator with people."""
    pairs, sample = study.pairs, study.sample
    first = next(iter(sums.values()))
    frame = None if study.frame is None else study.frame.row
    check = check_sample(pairs, sample, study.labels(first)[0], frame)
    is_random = looks_random(check)
    rows = study.rows(sums, level, draws, threads)
    if not is_random:  # then no system is called better
        rows = [row | {"better": None} for row in rows]
    liked = sample.view(study.rule).liked > 0
    agreement = agreements(pairs, sample, liked, study.annotator_likes()[sample.row], level)
    used = {row.get("interval") for row in rows}
    words = ", ".join(word for name, word in IN_WORDS.items() if name in used)
    unit = "pairs" if study.population == LISTS else "users"
    method = replace(ASSISTED.method, unit=unit, interval=words, level=level)
    drawn_from = len(pairs) if frame is None else frame.size
    warnings = [
        warn(f"the labels of people do not look like a random sample: {sentence}")
        for sentence in check.rows["note"]
        if sentence
    ]
    differences = [row for row in rows if row["against"] is not None]
    return Estimates.of_rows(
        ASSISTED,
        [row for row in rows if row["against"] is None],
        method=method,
        explanation=_explanation(study, drawn_from, has_all=ALL_JUDGED in used),
        notes=tuple(dict.fromkeys((*study.notes(), *warnings))),
        conclusion=(*_missing(rows), *_findings(differences, level, is_random=is_random)),
        parts={
            "pairs": Estimates.of_rows(DIFFERENCES, differences, method=method),
            "agreement": agreement,
            "sample": check,
        },
        card={
            "better": {label: place_sum.metric.better for label, place_sum in sums.items()},
            "sample": sample.describe(),
            "population": study.population,
            "mean": study.mean,
            "unlabelled": study.unlabelled,
            "interval": "score" if draws is None else "bootstrap",
            "relevance": str(study.judged.relevance),
            "human_relevance": str(study.rule),
            "users": pairs.number_of_users,
            "pairs": len(pairs),
            "drawn_from": drawn_from,
            "labels": len(sample),
        },
    )


def _explanation(study: LabelStudy, drawn_from: int, *, has_all: bool) -> tuple[str, ...]:
    """Say what was labelled, what is estimated, and what columns mean."""
    sample, pairs = study.sample, counted(len(study.pairs), "recommended pair")
    if drawn_from < len(study.pairs):
        pairs = f"{drawn_from:,} pairs that could be drawn, of {pairs}"
    is_lists = study.population == LISTS
    target = "these lists" if is_lists else "new users like these: they vary too"
    complete = "; no interval: people labelled all pairs" * has_all
    return (
        f"people labelled {len(sample):,} of {pairs} ({sample.describe()})",
        f"target: {target}{complete}",
        "human: labels of people alone; PPI: corrected by those of the annotator, PPI++: by as "
        "much of these as helps; annotator: its labels alone, which may be wrong",
        "labels: of people, that count; gain: how many times as many alone would do as PPI++",
        str(study.judged.relevance),
    )


def _missing(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Say why there are no estimates: each reason once."""
    contrasts: dict[str, list[str]] = {}
    for row in rows:
        if row["note"] and row["quantity"] == TUNED:
            name = " − ".join(filter(None, (row["system"], row["against"])))
            contrasts.setdefault(row["note"], []).append(f"{row['metric']} of {name}")
    for reason, names in contrasts.items():
        more = f" and {len(names) - MOST_NAMES:,} more" * (len(names) > MOST_NAMES)
        yield f"no estimate of {', '.join(names[:MOST_NAMES])}{more}: {reason}"


def _findings(
    differences: Sequence[Mapping[str, Any]], level: float, *, is_random: bool
) -> list[str]:
    """Say which systems are better, by intervals that hold together."""
    rows = [row for row in differences if row["quantity"] == TUNED]
    if not rows:
        return []
    if not is_random:
        return ["no system is called better, as the sample does not look random"]
    percent, count = f"{100 * level:g} %", f"all {len(rows):,} differences together"
    together = f"; {count} at {percent}" * (len(rows) > 1)
    lines = [f"{_sentence(row)}{together})" for row in rows if row.get("better")]
    if len(lines) > MOST_SENTENCES:
        more = counted(len(lines) - MOST_SENTENCES, "more pair", "more pairs")
        lines = [*lines[:MOST_SENTENCES], f"{more} in the column `better` of the part `pairs`"]
    return lines or [f"no difference is settled at {percent}" + f" ({count})" * (len(rows) > 1)]


def _sentence(row: Mapping[str, Any]) -> str:
    """Name the better system, by how much, and the interval; a bracket is left open."""
    better = row["better"]
    rival = row["against"] if better == row["system"] else row["system"]
    low, high = sorted((abs(row["low_together"]), abs(row["high_together"])))
    return (
        f"{row['metric']}, as people label: {better} is better than {rival} "
        f"by {abs(row['value']):.3g} ({low:.3g} to {high:.3g}"
    )


def _human_rule(judged: Judged, people: Ratings, liked: float | None) -> Relevance:
    """Return which labels of people are liked: by the rule of the annotator's, or their own."""
    rule = judged.relevance
    if liked is not None:
        return Relevance(liked, None, rule.gain, rule.loss)
    if judged.read.relevance:  # the threshold was assumed, from the annotator's labels alone
        try:
            same = relevance_for(people, gain=rule.gain, loss=rule.loss)[0] == rule
        except SettingError:
            same = False
        if not same:
            spans = [
                f"{part.value.min():g} to {part.value.max():g}" for part in (judged.tests, people)
            ]
            raise SettingError(
                f"what counts as liked? Labels of the annotator go from {spans[0]}, those of "
                f"people from {spans[1]}; give liked=…, and human_liked=… if people use another "
                f"scale"
            )
    return rule
