"""`operating_characteristics`: false winners and power of protocols, in worlds that are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32
from unskew.auditing import truth_sources
from unskew.auditing.truth_tasks import applied, design_name
from unskew.checks import as_count, checked
from unskew.data.relevance import Relevance
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.engine.rng import draw
from unskew.engine.rng import key_of as seed_of
from unskew.errors import SettingError
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.recommend.model import Model
from unskew.report.charts import Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.correlation import kendall
from unskew.stats.distributions import mean_interval, student_t_sf
from unskew.stats.pairing import paired
from unskew.worlds.nulls import redraw, uniform
from unskew.worlds.worlds import World, world

ALPHA = 0.05
LEVEL = 0.95
STRENGTHS = (0.05, 0.1, 0.2, 0.4)
NOISE = "planted 0"
KEYS = ("world", "design", "metric")


@dataclass(frozen=True, eq=False)
class Planted:
    """A system that knows the truth a little: strength x (1 if liked) + a random number below 1.

    With strength 0 it is a random order, with 1 every liked item comes before all others.
    """

    world: World
    relevance: Relevance
    strength: float
    seed: int

    def score(self, users: I32) -> F64:
        """Mix truth and noise."""
        items = np.arange(len(self.world.items))[None, :]
        bits = draw(self.seed, f"planted/{self.strength:g}", users[:, None], items)
        noise = uniform(bits >> np.uint64(1))
        if not self.strength:
            return noise
        liked = self.relevance.is_liked(self.world.values(users))  # what is not known is not liked
        return noise + self.strength * liked


@dataclass(frozen=True, eq=False)
class OperatingCharacteristics(Result):
    """How often protocols find winners that are not there, and how often those that are.

    Made by `operating_characteristics`.
    """

    digits = 3

    rows: pl.DataFrame
    """A row per world, repeat, design and metric: `pairs` and `false` of null data; `told` (pairs
    of systems with a significant difference) and `wrong` (of these, against the truth); `tau`."""
    effects: pl.DataFrame
    """A row per world, repeat, design, metric and strength: `true` and `observed` difference of a
    planted system to a random one, whether it was found, and whether the opposite was."""
    alpha: float
    repeats: int
    level: float = LEVEL

    def table(self) -> pl.DataFrame:
        """Return a row per world, design and metric.

        `false_winners`: the share of the pairs of systems that differ significantly on null data,
        where none is better: `alpha` if the protocol is fair. `wrong_winners`: the share of all
        pairs that differ significantly in the direction opposite to the truth. `told`: the share
        that differ significantly at all. `tau`: mean τ_b to the true order, planted systems
        included, with its interval over repeats. A column per strength: the share of repeats in
        which the planted system was found better than chance. Fair but blind: few false winners,
        little power.
        """
        rows = []
        for key, part in self.rows.group_by(KEYS, maintain_order=True):
            own = dict(zip(KEYS, key, strict=True))
            taus = [one for one in part["tau"].to_list() if one is not None]
            tau, low, high = mean_interval(taus, self.level)
            pairs = int(part["pairs"].sum())
            row: dict[str, Any] = {
                **own,
                "false_winners": part["false"].sum() / pairs if pairs else None,
                "wrong_winners": part["wrong"].sum() / pairs if pairs else None,
                "told": part["told"].sum() / pairs if pairs else None,
                "tau": tau,
                "tau_low": low,
                "tau_high": high,
            }
            for strength, result in self.effects.filter(**own).group_by(
                "strength", maintain_order=True
            ):
                row[f"power {strength[0]:g}"] = result["found"].mean()
            rows.append(row)
        return pl.DataFrame(rows, infer_schema_length=None)

    def power(self) -> pl.DataFrame:
        """Return a row per world, design, metric and strength.

        `true`: the mean true difference of the planted system to a random one; `observed`: what
        the protocol shows of it; `power`: how often that is significant; `against`: how often the
        opposite is.
        """
        return self.effects.group_by([*KEYS, "strength"], maintain_order=True).agg(
            pl.col("true").mean(),
            pl.col("observed").mean(),
            pl.col("found").mean().alias("power"),
            pl.col("against").mean(),
        )

    def figure(self, metric: str | None = None) -> Figure:
        """Draw power over false winners, a point per design, a panel per world.

        Good protocols are above (they find the largest planted effect) and left (they find
        nothing where there is nothing).
        """
        import altair as alt

        from unskew.checks import choose

        table = self.table()
        names = table["metric"].unique(maintain_order=True).to_list()
        label = choose("metric", metric or names[0], names)
        least = min(self.effects["strength"].to_list())
        rows = [
            {
                **{key: row[key] for key in ("world", "design", "false_winners")},
                "power": row[f"power {least:g}"],
            }
            for row in table.filter(pl.col("metric") == label).iter_rows(named=True)
        ]
        chart = (
            alt.Chart(alt.NamedData(name="rows"))
            .mark_point(filled=True, size=90)
            .encode(
                x=alt.X("false_winners:Q", title="false winners").scale(domain=[0, 1]),
                y=alt.Y("power:Q", title=f"power at strength {least:g}").scale(domain=[0, 1]),
                color=alt.Color("design:N"),
                shape=alt.Shape("design:N"),
            )
            .properties(width=220, height=220)
            .facet(column=alt.Column("world:N", title=None, sort=None))
        )
        return as_figure(chart, f"Operating characteristics, {label}", self.footer(), rows)

    def _explanation(self) -> list[str]:
        return [
            f"{counted(self.repeats, 'repeat')}; paired t-tests over users at level "
            f"{self.alpha:g}; under a fair protocol the share of false winners is {self.alpha:g}"
        ]

    def _content(self) -> dict[str, object]:
        return {
            "alpha": self.alpha,
            "repeats": self.repeats,
            "rows": self.table(),
            "power": self.power(),
        }


@notebook_progress("operating characteristics")
@checked
def operating_characteristics(
    worlds: World | Mapping[str, World] | None,
    plan: Plan | Mapping[str, Plan],
    *,
    strengths: Sequence[float] = STRENGTHS,
    repeats: int = 10,
    alpha: float = ALPHA,
    level: float = LEVEL,
    progress: Progress | None = None,
) -> OperatingCharacteristics:
    """Try protocols in worlds whose truth is known: false winners, power, order.

    In each repeat every world is drawn anew. Its ratings, with values drawn anew independently, are
    null data: systems are trained and compared, and every significant difference is false. On the
    world as it is, systems are trained, planted systems of several strengths are added, and what
    is observed is held against the truth.

    Parameters
    ----------
    worlds
        A world, or several by name. None = three small ones: normal, inverted (what is less liked
        is more popular) and clustered (groups of users know groups of items).
    plan
        A plan, or several by name, such as those of `us.auditing.published_designs`.
    strengths
        Of the planted systems: how much the truth counts beside noise from 0 to 1.
    repeats
        How often.
    alpha
        The level of the paired t-test over users.
    level
        Of the interval of τ over repeats.
    progress
        Called with (done, total) after each world and repeat.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.operating import operating_characteristics
    >>> shop = us.world("shop", users=100, items=60, seed=1)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> plan = us.Plan(algorithms=systems, metrics=["P@5"])
    >>> found = operating_characteristics(shop, plan, repeats=2, strengths=[1])
    >>> found.power().columns
    ['world', 'design', 'metric', 'strength', 'true', 'observed', 'power', 'against']
    """
    plans = {"": plan} if isinstance(plan, Plan) else dict(plan)
    there = _worlds(worlds)
    as_count("repeats", repeats)
    for name, value in (("alpha", alpha), ("level", level)):
        if not 0 < value < 1:
            raise SettingError(f"{name} must lie between 0 and 1, got {value!r}")
    steps = tuple(dict.fromkeys(float(one) for one in strengths))
    if not steps or not all(0 < one <= 1 for one in steps):
        raise SettingError(f"strengths must lie above 0 and up to 1, got {list(strengths)}")
    for one in plans.values():
        if any(way.null_only for way in one.splits):
            raise SettingError("a split that makes sense only on null data cannot be used here")
        if len(one.systems) < 2:
            raise SettingError(
                "a plan needs at least two systems, because a winner needs an opponent"
            )
    rows: list[dict[str, Any]] = []
    effects: list[dict[str, Any]] = []
    for number in range(len(there) * repeats):
        label, repeat = list(there)[number // repeats], number % repeats
        seed = seed_of(there[label].seed, "operating", repeat) % (1 << 31)
        drawn = replace(there[label], seed=seed)
        for name, one in plans.items():
            trial = _Trial(label, repeat, name, drawn, replace(one, seed=seed), steps, alpha)
            more, result = trial.outcome()
            rows += more
            effects += result
        if progress is not None:
            progress(number + 1, len(there) * repeats)
    return OperatingCharacteristics(
        pl.DataFrame(rows, infer_schema_length=None), pl.DataFrame(effects), alpha, repeats, level
    )


def _worlds(worlds: World | Mapping[str, World] | None) -> dict[str, World]:
    if worlds is None:
        return {
            "normal": world("shop", users=400, items=200),
            "inverted": world("inverted", users=400, items=200),
            "clustered": world("clustered", users=400, items=200),
        }
    if isinstance(worlds, World):
        return {worlds.name: worlds}
    if not isinstance(worlds, Mapping) or not all(isinstance(w, World) for w in worlds.values()):
        raise SettingError(f"give a world, or worlds by name; got {worlds!r}")
    if not worlds:
        raise SettingError("give at least one world")
    return {str(name): one for name, one in worlds.items()}


@dataclass(frozen=True, eq=False)
class _Trial:
    """One plan in one world, once."""

    label: str
    repeat: int
    plan_name: str
    world: World
    plan: Plan
    strengths: tuple[float, ...]
    alpha: float

    def outcome(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        source = truth_sources.source_of(self.world, None, None, None, "to-training", self.plan)
        null = redraw(source.ratings, "iid", self.plan.seed)
        nothing, _ = self._observed(source, null, False)
        seen, true = self._observed(source, source.ratings, True)
        rows, effects = [], []
        for design, parts in seen.items():
            for metric in self.plan.metrics:
                key = {
                    "world": self.label,
                    "repeat": self.repeat,
                    "design": design,
                    "metric": metric,
                }
                row, result = self._judged(metric, nothing[design], parts, true[design])
                rows.append({**key, **row})
                effects += [{**key, **one} for one in result]
        return rows, effects

    def _observed(
        self, source: truth_sources.Source, ratings: Any, planted: bool
    ) -> tuple[dict[str, list[Scores]], dict[str, list[Scores]]]:
        """Return the scores that the plan observes, and the true ones where systems are planted."""
        seen: dict[str, list[Scores]] = {}
        true: dict[str, list[Scores]] = {}
        for number, fold, split in truth_sources.each_split(self.plan, ratings):
            key = self.plan.splits[number].draw_key, fold
            models = truth_sources.fit_all(self.plan.systems, split.train, self.plan.seed, *key)
            if planted:
                models |= self._planted()
                meant = source.judge(models, split.train, self.plan)
            for view in self.plan.views():
                design = design_name(self.plan, number, view)
                several = len(self.plan.splits) * len(self.plan.views()) > 1
                if self.plan_name:
                    design = f"{self.plan_name} {design}" if several else self.plan_name
                judged = applied(view, split, source, self.plan.seed)
                lists = view.targets.lists(judged, self.plan.relevance, seed=self.plan.seed)
                scores = truth_sources.scores_on(lists, models, self.plan)
                seen.setdefault(design, []).append(scores)
                if planted:
                    true.setdefault(design, []).append(meant)
        return seen, true

    def _planted(self) -> dict[str, Model]:
        return {
            f"planted {strength:g}": Planted(
                self.world, self.plan.relevance, strength, self.plan.seed
            )
            for strength in (0.0, *self.strengths)
        }

    def _judged(
        self, metric: str, null: list[Scores], seen: list[Scores], true: list[Scores]
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        sign = -1.0 if parse(metric).better == "lower" else 1.0
        own = list(self.plan.systems)
        nothing = differences(null, metric, list(combinations(own, 2)))
        pairs = list(combinations(own, 2))
        something = differences(seen, metric, pairs)
        means = _mean(true, metric)
        told = something.p < self.alpha
        real = np.array([means[a] - means[b] for a, b in pairs])
        row = {
            "pairs": len(pairs),
            "false": int(np.count_nonzero(nothing.p < self.alpha)),
            "told": int(np.count_nonzero(told)),
            "wrong": int(np.count_nonzero(told & (real * something.mean < 0))),
            "tau": _known(kendall(_mean(seen, metric), means)),
        }
        effects = []
        planted = [(f"planted {strength:g}", NOISE) for strength in self.strengths]
        result = differences(seen, metric, planted)
        for at, strength in enumerate(self.strengths):
            difference = sign * float(result.mean[at])
            clear = bool(result.p[at] < self.alpha)
            effects.append(
                {
                    "strength": strength,
                    "true": sign * (means[planted[at][0]] - means[NOISE]),
                    "observed": difference,
                    "found": clear and difference > 0,
                    "against": clear and difference < 0,
                }
            )
        return row, effects


@dataclass(frozen=True, eq=False)
class Differences:
    """Mean differences of pairs of systems, and p of each by the paired t-test over users."""

    mean: F64
    p: F64


def differences(
    parts: Sequence[Scores], metric: str, pairs: Sequence[tuple[str, str]]
) -> Differences:
    """Compare pairs of systems user by user."""
    both = paired(parts)
    values = both.complete(metric)
    at = {name: place for place, name in enumerate(both.systems)}
    gap = np.stack([values[:, at[a]] - values[:, at[b]] for a, b in pairs], axis=1)
    n, mean = len(gap), gap.mean(axis=0)
    spread = gap.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(mean.size, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(mean) / spread
    t = np.where(np.isnan(t), 0.0, t)  # no difference for any user
    return Differences(mean, 2 * student_t_sf(t, max(n - 1, 1)))


def _mean(parts: Sequence[Scores], metric: str) -> dict[str, float]:
    every = [part.mean(metric) for part in parts]
    return {system: math.fsum(one[system] for one in every) / len(every) for system in every[0]}


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
