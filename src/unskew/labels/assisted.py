"""`assisted`: what systems score by a few labels of people and many of an annotator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Unpack

import numpy as np

from unskew.arrays import F64, Mask
from unskew.checks import as_count, check_share, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, relevance_for
from unskew.engine.threads import map_blocks
from unskew.errors import DataError, SettingError
from unskew.judging.judge import DataOptions, as_judged, second_argument
from unskew.judging.judged import Judged
from unskew.judging.notes import warn
from unskew.judging.shape import POOLED
from unskew.labels.assisted_contrasts import ContrastEstimate, LabelContrast, bootstrap_ends
from unskew.labels.assisted_result import Assisted, AssistedContrast, AssistedValue
from unskew.labels.contrast_sides import ESTIMATORS, LISTS, POPULATIONS, TUNED, USERS, LabelledPairs
from unskew.labels.human_samples import (
    HumanSample,
    SampleFrame,
    human_sample,
    read_people,
    sample_frame,
)
from unskew.labels.recommended_pairs import (
    MEANS,
    STRATA,
    Coefficients,
    PlaceSum,
    RecommendedPairs,
    place_sums,
)
from unskew.labels.sample_checks import SampleCheck, agreements, check_sample
from unskew.metrics.names import Metric
from unskew.report.text import counted
from unskew.unbiased.weighted_averages import LEVEL, RESAMPLES

INTERVALS = ("score", "bootstrap")
UNLABELLED = ("error", "disliked", "mean")


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
) -> Assisted:
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
    >>> made.difference("x", "y").better, made.agreement[0].labels
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
    study = _LabelStudy(
        judged=judged,
        pairs=pairs,
        sample=sample,
        frame=sample_frame(pairs, sample, sums),
        rule=_human_rule(judged, people, human_liked),
        population=population,
        mean=mean,
        unlabelled=unlabelled,
    )
    return _result(
        study, sums, level, _LabelDraws(interval == "bootstrap", resamples, seed, threads)
    )


def _result(
    study: _LabelStudy, sums: Mapping[str, PlaceSum], level: float, draws: _LabelDraws
) -> Assisted:
    """Estimate all contrasts, check the sample and compare the annotator with people."""
    pairs, sample = study.pairs, study.sample
    first = next(iter(sums.values()))
    frame = None if study.frame is None else study.frame.row
    check = check_sample(pairs, sample, study.labels(first)[0], frame)
    contrasts = study.contrasts(sums, level, draws)
    if not check.random:  # then no system is called better
        contrasts = {key: replace(contrast, better=None) for key, contrast in contrasts.items()}
    liked = sample.view(study.rule).liked > 0
    named = study.annotator_likes()
    return Assisted(
        metrics=tuple(sums),
        systems=pairs.systems,
        contrasts=contrasts,
        agreement=agreements(pairs, sample, liked, named[sample.row], level),
        check=check,
        settings={
            "sample": sample.describe(),
            "population": study.population,
            "mean": study.mean,
            "unlabelled": study.unlabelled,
            "interval": "bootstrap" if draws.is_asked else "score",
            "level": level,
            "relevance": str(study.judged.relevance),
            "human_relevance": str(study.rule),
        },
        better={label: place_sum.metric.better for label, place_sum in sums.items()},
        counts={
            "users": pairs.number_of_users,
            "pairs": len(pairs),
            "drawn_from": len(pairs) if frame is None else frame.size,
            "labels": len(sample),
        },
        notes=tuple(dict.fromkeys((*study.notes(), *_warnings(check)))),
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


@dataclass(frozen=True)
class _LabelDraws:
    """How bootstrap intervals are drawn, where they are asked for."""

    is_asked: bool
    resamples: int
    seed: int
    threads: int | None


@dataclass(frozen=True, eq=False)
class _LabelWork:
    """What the contrasts of one metric share."""

    metric: PlaceSum
    data: LabelledPairs
    scale: float
    coefficients: Coefficients


@dataclass(frozen=True, eq=False, kw_only=True)
class _LabelStudy:
    """Recommended pairs with labels of an annotator and of people, and what is asked of them."""

    judged: Judged
    pairs: RecommendedPairs
    sample: HumanSample
    frame: SampleFrame | None
    rule: Relevance
    population: str
    mean: str
    unlabelled: str

    def __post_init__(self) -> None:
        users = self.pairs.number_of_users
        if self.frame is not None and (self.population, self.mean) == (USERS, "ratio"):
            raise SettingError(
                f"mean='ratio' for new users needs the level of each system, but "
                f"{self.frame.reason}; take mean='users'"
            )
        if self.population == USERS and users < 2:
            raise DataError("population='users' needs lists of at least 2 users, there is 1")
        has_label = self._known
        missing = int(np.count_nonzero(~has_label))
        if missing == has_label.size:
            raise DataError(
                "the annotator labelled no recommended pair: are ids written as in the runs?"
            )
        if missing and self.unlabelled == "error":
            row = int(np.argmin(has_label))
            user = self.pairs.users.values[int(self.pairs.user[row])]
            item = self.pairs.items.values[int(self.pairs.item[row])]
            raise DataError(
                f"{missing:,} of {counted(has_label.size, 'recommended pair')} have no label of "
                f"the annotator, the first: user {user!r}, item {item!r}; label them, or choose "
                f"what they count as: unlabelled='disliked' (fits clicks) or unlabelled='mean'"
            )

    @property
    def _known(self) -> Mask:
        """Which recommended pairs the annotator labelled."""
        rows = self.pairs.judgment
        labelled: Mask = self.judged.view.label[np.maximum(rows, 0)] != POOLED
        return labelled & (rows >= 0)

    def annotator_likes(self) -> Mask:
        """Tell which recommended pairs the annotator likes; what is not labelled counts as not."""
        liked: Mask = self.judged.view.liked[np.maximum(self.pairs.judgment, 0)] > 0
        return liked & self._known

    def labels(self, place_sum: PlaceSum) -> tuple[F64, F64, float]:
        """Return the annotator's and people's labels from 0 to 1, and what 1 stands for."""
        has_label = self._known
        label = place_sum.worth(self.judged.view)[np.maximum(self.pairs.judgment, 0)]
        if not has_label.all():
            label = np.where(has_label, label, self._for_unlabelled(place_sum, label[has_label]))
        y = place_sum.worth(self.sample.view(self.rule))
        scale = max(float(label.max(initial=0.0)), float(y.max(initial=0.0))) or 1.0
        return label / scale, y / scale, scale

    def _for_unlabelled(self, place_sum: PlaceSum, values: F64) -> float:
        if self.unlabelled == "mean":
            return float(values.mean())
        if place_sum.metric.anti and place_sum.counts_gain:
            raise SettingError(
                f"{place_sum.label}: unlabelled='disliked' does not say which loss a pair has; "
                f"take unlabelled='mean'"
            )
        return float(place_sum.metric.anti)

    def contrasts(
        self, sums: Mapping[str, PlaceSum], level: float, draws: _LabelDraws
    ) -> dict[tuple[str, str, str | None], AssistedContrast]:
        """Estimate every system and every difference, by every metric."""
        systems = self.pairs.systems
        couples = list(combinations(systems, 2))
        together = 1.0 - (1.0 - level) / max(len(couples) * len(sums), 1)
        result: dict[tuple[str, str, str | None], AssistedContrast] = {}
        for label, place_sum in sums.items():
            subjects: list[tuple[str, str | None]] = [*((name, None) for name in systems), *couples]
            work = _LabelWork(
                place_sum, *self._data(place_sum), self.pairs.coefficients(place_sum, self.mean)
            )
            estimate = partial(self._contrast, work, (level, together), draws)
            estimates = map_blocks(estimate, subjects, draws.threads)
            result |= {
                (label, a, b): contrast
                for (a, b), contrast in zip(subjects, estimates, strict=True)
            }
        return result

    def _data(self, place_sum: PlaceSum) -> tuple[LabelledPairs, float]:
        label, y, scale = self.labels(place_sum)
        number = np.cumsum(self.pairs.listed_users) - 1
        data = LabelledPairs(
            label=label,
            sample=self.sample,
            y=y,
            user=number[self.pairs.user],
            users=self.pairs.number_of_users,
            population=self.population,
        )
        return data, scale

    def _contrast(
        self,
        work: _LabelWork,
        levels: tuple[float, float],
        draws: _LabelDraws,
        systems: tuple[str, str | None],
    ) -> AssistedContrast:
        a, b = systems
        row, add = work.coefficients.contrast(a, b)
        contrast = LabelContrast.of(work.data, row, add, self._drift(work, systems))
        frame = self.frame
        bare = AssistedContrast(
            metric=work.metric.label,
            a=a,
            b=b,
            labels=contrast.number,
            pairs=contrast.pairs,
            labels_alone=work.scale * contrast.labels_alone,
            values={},
            reason="" if frame is None or frame.holds(row) else frame.reason,
        )
        if bare.reason:
            return bare
        better = work.metric.metric.better
        return _estimated(contrast, bare, work.scale, levels, draws, better)

    def _drift(
        self, work: _LabelWork, systems: tuple[str, str | None]
    ) -> tuple[F64 | None, F64 | None]:
        """Return what users change through the divisors of a ratio, where new users are drawn."""
        if self.population == LISTS or self.mean == "users":
            return None, None
        parts: list[F64 | None] = []
        for name, sign in zip(systems, (1.0, -1.0), strict=True):
            if name is None:
                parts.append(None)
                continue
            data = work.data
            row, add = work.coefficients.contrast(name)
            contrast = LabelContrast.of(data, row, add)
            if contrast.without_labels is not None:
                parts.append(None)
                continue
            value = contrast.estimates[TUNED].value
            share: F64 = np.bincount(data.user[row], add, data.users).astype(np.float64)
            parts.append(sign * value * share)
        return parts[0], parts[1]

    def notes(self) -> Iterator[str]:
        """Say what was assumed, left out and filled in."""
        yield from self.judged.notes
        yield from self.sample.notes
        has_label = self._known
        missing = int(np.count_nonzero(~has_label))
        if missing:
            what = "not liked" if self.unlabelled == "disliked" else "the mean of all labels"
            pairs = counted(missing, "recommended pair has", "recommended pairs have")
            yield f"{pairs} no label of the annotator: taken as {what}"
        unused = len(self.judged.judgments) - int(has_label.sum())
        if unused > 0:
            labels = counted(unused, "label of the annotator is", "labels of the annotator are")
            yield f"{labels} of pairs that no system recommends down to the cutoff, and not used"
        if self.rule != self.judged.relevance:
            yield f"people: {self.rule}"


def _estimated(
    contrast: LabelContrast,
    bare: AssistedContrast,
    scale: float,
    levels: tuple[float, float],
    draws: _LabelDraws,
    better: str,
) -> AssistedContrast:
    """Return the contrast with its estimates, or with the reason why there are none."""
    if not contrast.sides:
        reason = "its lists are empty" if bare.b is None else "the two lists do not differ"
        return replace(bare, reason=reason)
    empty = contrast.without_labels
    if empty is not None:
        whose = bare.a if empty.sign > 0 else bare.b
        rival = bare.b if empty.sign > 0 else bare.a
        more = "" if bare.b is None else f" and {rival} does not, or further down"
        return replace(bare, reason=f"people labelled no pair that {whose} recommends{more}")
    intervals = _ends(contrast, levels, draws)
    values = {
        name: AssistedValue(
            value=scale * estimate.value,
            se=scale * estimate.variance**0.5,
            low=scale * intervals[name][0][0],
            high=scale * intervals[name][0][1],
            method="bootstrap"
            if draws.is_asked and estimate.method == "score"
            else estimate.method,
        )
        for name, estimate in contrast.estimates.items()
    }
    low, high = intervals[TUNED][1]
    winner = None
    if bare.b is not None and (low > 0 or high < 0):
        first = (low > 0) == (better == "higher")
        winner = bare.a if first else bare.b
    gain, rho = contrast.gain, contrast.correlation
    return replace(
        bare,
        values=values,
        gain=gain,
        rho=rho,
        together=(scale * low, scale * high),
        better=winner,
    )


def _ends(
    contrast: LabelContrast, levels: Sequence[float], draws: _LabelDraws
) -> dict[str, list[tuple[float, float]]]:
    """Return the interval by each estimator at each level."""
    estimates: list[ContrastEstimate] = [contrast.estimates[name] for name in ESTIMATORS]
    if not draws.is_asked:
        return {
            estimate.estimator: [estimate.interval(level) for level in levels]
            for estimate in estimates
        }
    stratum = contrast.data.sample.stratum
    if contrast.data.population == USERS:
        stratum = np.zeros(contrast.data.users, np.int64)
    intervals = bootstrap_ends(
        estimates, stratum, levels, draws.resamples, draws.seed, draws.threads
    )
    return {
        estimate.estimator: bounds for estimate, bounds in zip(estimates, intervals, strict=True)
    }


def _warnings(check: SampleCheck) -> Iterator[str]:
    """Warn where the sample does not look random."""
    for test in check.rejected:
        yield warn(f"the labels of people do not look like a random sample: {test.sentence}")
