"""`target_sizes`: what the number of target items does to ties, discriminative power and bias.

After Cañamares & Castells 2020, On target item sampling in offline recommender system evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.splits.split import Split
from unskew.stats.agreement.conditions import conditions_of, resampled
from unskew.stats.agreement.power import discriminative_power
from unskew.stats.compare.compare import compare
from unskew.stats.correlation import kendall, rounded
from unskew.stats.resampling import check_two_systems, percentile_interval
from unskew.targets.designs import Targets
from unskew.targets.lists import TargetLists
from unskew.unbiased.sampled.expected_metrics import SIZES
from unskew.unbiased.sampled.sampled_result import BOOTSTRAP, LEVEL, null


@dataclass(frozen=True, eq=False)
class TargetSizes(Result):
    """What the number of target items does to an evaluation. Made by `target_sizes`."""

    figure_is_open: ClassVar[bool] = True

    metric: str
    systems: tuple[str, ...]
    sizes: tuple[str, ...]
    """How many others; `all` is the last."""
    mean: F64
    """Sizes x systems."""
    ties: F64
    """Of all users and pairs of systems, the share with equal values; and with both 0."""
    power: pl.DataFrame
    """A row per size: DP, median p, ratio of significant pairs."""
    tau_full: F64
    """Sizes x 3: τ_b with the order on all targets, and its interval."""
    tau_true: F64
    """The same with the order by the truth; NaN without any."""
    scores: Mapping[str, Scores]
    """By size, with notes of their own."""
    users: int
    test: str
    alpha: float
    level: float = LEVEL
    bootstrap: int = BOOTSTRAP
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        """Return a row per size.

        Columns: others, ties (share of users and pairs of systems with equal values), zeros (the
        same where both are 0), DP, median_p, ratio (of significant pairs), tau_full, tau_true and
        their intervals.
        """
        columns: dict[str, Any] = {
            "others": self.sizes,
            "ties": self.ties[:, 0],
            "zeros": self.ties[:, 1],
            **{name: self.power[name] for name in ("DP", "median_p", "ratio")},
        }
        for name, taus in (("tau_full", self.tau_full), ("tau_true", self.tau_true)):
            columns |= {name: taus[:, 0], f"{name}_low": taus[:, 1], f"{name}_high": taus[:, 2]}
        return pl.DataFrame(columns).with_columns(pl.selectors.float().fill_nan(None))

    def figure(self) -> Figure:
        """Draw ties, discriminative power and bias over the number of targets."""
        import altair as alt

        order = list(self.sizes)
        rows: list[dict[str, Any]] = []

        def add(panel: str, line: str, values: F64) -> None:
            for position, size in enumerate(order):
                value, low, high = (null(x) for x in values[position])
                numbers = {"value": value, "low": low, "high": high}
                rows.append({"panel": panel, "line": line, "others": size, **numbers})

        nothing = np.full(len(order), np.nan)
        add("ties", "equal", np.stack([self.ties[:, 0], nothing, nothing], axis=1))
        add("ties", "both 0", np.stack([self.ties[:, 1], nothing, nothing], axis=1))
        ratio = self.power["ratio"].to_numpy()
        add("power", "significant pairs", np.stack([ratio, nothing, nothing], axis=1))
        add("bias", "with all targets", self.tau_full)
        if not np.isnan(self.tau_true).all():
            add("bias", "with the truth", self.tau_true)
        titles = {
            "ties": "share of ties, user by user",
            "power": f"pairs with p < {self.alpha:g}",
            "bias": "τ_b of the order",
        }
        panels = []
        for panel, title in titles.items():
            base = alt.Chart(alt.NamedData(name="rows"), width=260, height=220)
            base = base.transform_filter(f"datum.panel === '{panel}'")
            x = alt.X("others:N", title="others in a list").sort(order).axis(labelAngle=-45)
            lines = [row["line"] for row in rows if row["panel"] == panel]
            color = alt.Color("line:N").scale(domain=list(dict.fromkeys(lines)))
            y = alt.Y("value:Q", title=title)
            line = base.mark_line(point=True).encode(x=x, y=y, color=color)
            bars = base.mark_rule().encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=color)
            panels.append(alt.layer(line, bars))
        chart = alt.hconcat(*panels).resolve_scale(color="independent", y="independent")
        return as_figure(chart, f"Target size: {self.metric}", self._explanation(), rows)

    def _content(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "systems": self.systems,
            "users": self.users,
            "sizes": self.table(),
            "notes": self.notes,
        }

    def _explanation(self) -> list[str]:
        lines = [
            f"{self.metric} of {counted(len(self.systems), 'system')}, "
            f"{counted(self.users, 'user')}; {self.test} test, ratio of pairs with p < "
            f"{self.alpha:g}"
        ]
        if self.bootstrap:
            lines.append(
                f"τ_b: {100 * self.level:g} % intervals, {self.bootstrap:,} bootstrap draws of "
                f"users"
            )
        return lines

    def _summary(self) -> str:
        return f"{self.metric}, {counted(len(self.systems), 'system')}, {', '.join(self.sizes)}"


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
    bootstrap: int = BOOTSTRAP,
    level: float = LEVEL,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> TargetSizes:
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
    bootstrap, level, seed
        Draws of users for the interval of each τ_b; the seed also draws the targets.
    threads
        Never changes a result.
    progress
        Called with (done, total) as sizes are evaluated.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.unbiased.sampled.target_sizes import target_sizes
    >>> pairs = [(u, i) for u in range(20) for i in range(40) if (u * 7 + i * 11) % 9 < 3]
    >>> user, item = zip(*pairs)
    >>> split = us.splits.Random(test=0.3).split(us.read_ratings({"user": user, "item": item}))[0]
    >>> systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    >>> models = {name: system.fit(split.train) for name, system in systems.items()}
    >>> target_sizes(split, models, "P@5", [0, 5], liked=1, test="t", bootstrap=0)
    TargetSizes(P@5, 2 systems, 0, 5, all)
    """
    check_two_systems(list(models))
    as_count("bootstrap", bootstrap, least=0)
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
    test_settings = {"test": test, "permutations": permutations, "seed": seed, "threads": threads}
    power = pl.concat(
        discriminative_power(
            compare(score, label, correction=None, **test_settings),  # type: ignore[call-overload]
            alpha=alpha,
        ).table()
        for score in scores.values()
    )
    conditions, more = conditions_of(scores, label)
    notes += more
    values = np.array([condition.means for condition in conditions])
    against = _truth(truth, label, conditions[0].systems, conditions[0].sign)
    taus = [_tau_to(values, values[-1])]
    taus.append(np.full(len(scores), np.nan) if against is None else _tau_to(values, against))
    intervals = _tau_intervals(conditions, against, bootstrap, level, seed, threads)
    tau_full, tau_true = (
        np.stack([tau, low, high], axis=1) for tau, (low, high) in zip(taus, intervals, strict=True)
    )
    ties = np.array([_ties(condition.paired.complete(label)) for condition in conditions])
    return TargetSizes(
        metric=label,
        systems=conditions[0].systems,
        sizes=tuple(scores),
        mean=conditions[0].sign * values,
        ties=ties,
        power=power,
        tau_full=tau_full,
        tau_true=tau_true,
        scores=scores,
        users=len(conditions[0].paired),
        test=test,
        alpha=alpha,
        level=level,
        bootstrap=bootstrap,
        notes=tuple(dict.fromkeys(notes)),
    )


def _notes(lists: TargetLists, scores: Scores) -> list[str]:
    """Return the notes of the lists, and how many of them are shorter than the cutoff."""
    cutoff = next(iter(scores.metrics.values())).whole_cutoff
    short = int(np.count_nonzero(lists.size[scores.lists["test"].to_numpy() > 0] < cutoff))
    more = [f"{counted(short, 'list holds', 'lists hold')} fewer targets than the cutoff"]
    return [*lists.notes, *(more if short and cutoff < WHOLE else [])]


def _truth(
    truth: Scores | Mapping[str, float] | None, label: str, systems: Sequence[str], sign: float
) -> F64 | None:
    if truth is None:
        return None
    means = truth.mean(label) if isinstance(truth, Scores) else truth
    lost = [name for name in systems if name not in means]
    if lost:
        raise DataError(f"truth: no value for {lost[0]!r}; give one for every system")
    return sign * np.array([float(means[name]) for name in systems])


def _tau_to(values: F64, reference: F64) -> F64:
    fixed = rounded(reference)
    return np.array([kendall(row, fixed) for row in rounded(values)])


def _tau_intervals(
    conditions: Sequence[Any],
    truth: F64 | None,
    draws: int,
    level: float,
    seed: int,
    threads: int | None,
) -> list[tuple[F64, F64]]:
    """Return the intervals of τ_b with all targets, drawn alike, and with the fixed truth."""
    count = len(conditions)
    if not draws:
        none = np.full(count, np.nan)
        return [(none, none), (none, none)]
    means = resampled(list(conditions), draws, seed, threads, None)
    taus = np.full((2, draws, count), np.nan)
    for d in range(draws):
        taus[0, d] = _tau_to(means[d], means[d, -1])
        if truth is not None:
            taus[1, d] = _tau_to(means[d], truth)
    return [percentile_interval(draws, level) for draws in taus]


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
