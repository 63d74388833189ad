"""`target_sizes`: what the number of target items does to ties, discriminative power and bias.

After Cañamares & Castells 2020, On target item sampling in offline recommender system evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked
from unskew.data.relevance import Relevance
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.errors import DataError, quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.metrics.block import WHOLE
from unskew.recommend.model import as_model
from unskew.report.columns import (
    HIGH,
    LOW,
    QUANTITY,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.splits.split import Split
from unskew.stats.agreement.conditions import by_system, conditions_of, resampled
from unskew.stats.agreement.power import SEPARATION, discriminative_power
from unskew.stats.compare.compare import compare
from unskew.stats.correlation import kendall, rounded
from unskew.stats.resampling import check_two_systems, percentile_interval
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists
from unskew.unbiased.sampled.expected_metrics import SIZES
from unskew.unbiased.sampled.sampled_means import BOOTSTRAP, LEVEL

OTHERS = Column("others", "key")
"""How many others a list holds; `all` is the last."""
TARGET_SIZES = Question(
    name="target sizes",
    columns=(OTHERS, QUANTITY, VALUE, LOW, HIGH),
    quantities=(
        *(Column("ties", "share"), Column("zeros", "share", "both 0")),
        *(Column("ratio", "share", "significant pairs"), Column("tau_full", "value", "τ, all")),
        Column("tau_true", "value", "τ, truth"),
    ),
    method=Method(
        estimand="ties, significant pairs, and τ_b of the order of the systems",
        interval="percentile bootstrap",
    ),
    display=("", "power"),
    figures=(Drawing("sizes", "points"),),
)
NUMBERS = ("value", "low", "high")
MEANS = Question(
    name="means by number of targets",
    columns=(OTHERS, SYSTEM, VALUE),
    method=Method(estimand="the mean over users"),
)
POWER = replace(SEPARATION, columns=(OTHERS, *SEPARATION.columns[1:]), figures=())


@notebook_progress("target sizes")
@checked
def target_sizes(
    split: Split,
    models: Mapping[str, object],
    metric: str = "P@10",
    sizes: Sequence[int] = (0, *SIZES),
    *,
    targets: Targets | None = None,
    liked: float | None = None,
    relevance: Relevance | str | None = None,
    truth: Scores | Mapping[str, float] | None = None,
    test: str = "randomisation",
    permutations: int = 10_000,
    alpha: float = 0.05,
    resamples: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Evaluate with more and more target items: ties, discriminative power and bias against size.

    Few targets leave many users for whom two systems are equally good, so that little can be told;
    many targets bring in unjudged items that count as not relevant, and with them the bias of the
    judgments (Cañamares & Castells 2020).

    Parameters
    ----------
    split, models
        A split, and models fitted to its training part, by name; at least two.
    metric
        One metric with a value per list.
    sizes
        Numbers of others drawn into each list; `all` is added.
    targets
        The design whose `others` is varied. Default: all test items of the user and others that
        the user did not rate (`UserFlat`).
    liked, relevance
        Which test ratings are liked.
    truth
        Unbiased values of the systems, such as scores on random judgments; higher is better as in
        the metric itself.
    test, permutations, alpha
        Of `compare`; a pair with p below alpha is significant. p-values are not corrected, as in
        discriminative power.
    resamples, level, seed
        Draws of users for the interval of each τ_b; the seed also draws the targets.
    threads
        Never changes a result.
    progress
        Called with (done, total) as sizes are evaluated.

    Returns
    -------
    Estimates
        A row per number of `others` and quantity: `ties` (the share of users and pairs of systems
        with equal values) and `zeros` (where both are 0), `ratio` (of pairs with p < alpha), and
        τ_b with the order on all targets (`tau_full`) and by the truth (`tau_true`), with intervals
        over users. The part `power` has the discriminative power of each size, `means` the means of
        the systems.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.sampled.target_sizes import target_sizes
    >>> pairs = [(u, i) for u in range(20) for i in range(40) if (u * 7 + i * 11) % 9 < 3]
    >>> user, item = zip(*pairs)
    >>> split = us.splits.Random(test=0.3).split(us.read_ratings({"user": user, "item": item}))[0]
    >>> systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    >>> models = {name: system.fit(split.train) for name, system in systems.items()}
    >>> result = target_sizes(split, models, "P@5", [0, 5], liked=1, test="t", resamples=0)
    >>> result.where(quantity=["ties", "ratio"]).table(wide="quantity").columns
    ['others', 'value_ties', 'value_ratio', 'low_ties', 'low_ratio', 'high_ties', 'high_ratio']
    """
    check_two_systems(list(models))
    as_count("resamples", resamples, least=0)
    for name, share in (("level", level), ("alpha", alpha)):
        check_share(name, share)
    numbers = [as_count("sizes", size, least=0) for size in sizes]
    design = Targets(fixed="judged") if targets is None else targets
    fitted = {name: as_model(model, split.train) for name, model in models.items()}
    scores: dict[str, Scores] = {}
    notes: list[str] = []
    steps = Steps(len(numbers) + 1, progress)
    all_sizes: list[int | str] = [*numbers, "all"]
    for size in all_sizes:
        lists = replace(design, others=size).lists(split, relevance, liked=liked, seed=seed)
        with quietly():
            scores[str(size)] = evaluate(lists, fitted, metric, threads=threads, draws=1)
        notes += [f"{size} others: {note}" for note in _notes(lists, scores[str(size)])]
        steps.advance()
    label = next(iter(scores.values())).order[0]
    compared = partial(compare, metrics=label, correction=None, seed=seed, threads=threads)
    pairs = [compared(score, test=test, permutations=permutations) for score in scores.values()]
    power = pl.concat(discriminative_power(answer, alpha=alpha).rows for answer in pairs)
    power = power.with_columns(others=pl.Series(list(scores)))
    conditions, more = conditions_of(scores, label)
    systems, sign = conditions[0].systems, conditions[0].sign
    draws = resampled(conditions, resamples, seed, threads, None)
    means = [np.array([condition.means for condition in conditions]), *draws]
    ties = np.array([_ties(condition.paired.complete(label)) for condition in conditions])
    numbers_of: dict[str, Iterable[Sequence[float]]] = {
        "ties": ties[:, :1],
        "zeros": ties[:, 1:],
        "ratio": power.select("ratio").rows(),
        "tau_full": _taus(((mean, mean[-1]) for mean in means), level),
    }
    if truth is not None:
        reference = _truth(truth, label, systems, sign)
        numbers_of["tau_true"] = _taus(((mean, reference) for mean in means), level)
    method = replace(TARGET_SIZES.method, level=level, draws=resamples, seed=seed)
    users = counted(len(conditions[0].paired), "user")
    rows = [
        {"others": size, "quantity": quantity, **dict(zip(NUMBERS, row, strict=False))}
        for quantity, shares in numbers_of.items()
        for size, row in zip(scores, shares, strict=True)
    ]
    return Estimates.of_rows(
        replace(TARGET_SIZES, name=f"target sizes: {label}"),
        rows,
        method=method if resamples else replace(method, interval="", level=None),
        explanation=(
            f"{label} of {counted(len(systems), 'system')}, {users}; {test} test, significant: "
            f"p < {alpha:g}",
        ),
        notes=tuple(dict.fromkeys([*notes, *more])),
        parts={
            "power": Estimates.of_rows(POWER, power),
            "means": Estimates.of_rows(MEANS, by_system(scores, systems, sign * means[0])),
        },
        card={"metric": label, "test": test, "alpha": alpha},
    )


def _notes(lists: TargetLists, scores: Scores) -> list[str]:
    """Return the notes of the lists, and how many of them are shorter than the cutoff."""
    cutoff = next(iter(scores.metrics.values())).whole_cutoff
    short = int(np.count_nonzero(lists.size[scores.lists["test"].to_numpy() > 0] < cutoff))
    more = [f"{counted(short, 'list holds', 'lists hold')} fewer targets than the cutoff"]
    return [*lists.notes, *(more if short and cutoff < WHOLE else [])]


def _truth(
    truth: Scores | Mapping[str, float], label: str, systems: Sequence[str], sign: float
) -> F64:
    means = truth.mean(label) if isinstance(truth, Scores) else truth
    lost = [name for name in systems if name not in means]
    if lost:
        raise DataError(f"truth: no value for {lost[0]!r}; give one for every system")
    return sign * np.array([float(means[name]) for name in systems])


def _taus(means: Iterable[tuple[F64, F64]], level: float) -> Iterator[tuple[float, float, float]]:
    """Yield for each size τ_b of its order with a reference, of the first means, and its interval.

    All other means are of users drawn anew.
    """
    taus = np.array(
        [[kendall(row, rounded(of)) for row in rounded(values)] for values, of in means]
    )
    return zip(taus[0], *percentile_interval(taus[1:], level), strict=True)


def _ties(values: F64) -> tuple[float, float]:
    """Return the share of users and pairs of systems with equal values, and with both 0."""
    equal = zero = pairs = 0
    for column in range(values.shape[1] - 1):
        later = values[:, column + 1 :]
        same = np.isclose(later, values[:, column : column + 1], rtol=1e-12, atol=0.0)
        equal += int(np.count_nonzero(same))
        zero += int(np.count_nonzero(same & (later == 0)))
        pairs += later.size
    return equal / pairs, zero / pairs
