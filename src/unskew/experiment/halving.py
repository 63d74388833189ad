"""`tune_systems`: choose the settings of several systems on a part of their training ratings.

Every system is given the same number of settings, its present ones among them, and is judged by
the same validation ratings. Where there are many users, in two rounds: all settings are tried on a
third of the users, the best third of the settings on all (successive halving: Jamieson and
Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, AISTATS 2016),
unless one is clearly ahead in the first round. Of very many users a random part takes part, so
that the cost does not grow with them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import polars as pl

from unskew.arrays import I32, Mask, frozen
from unskew.checks import as_count, checked
from unskew.data.ratings import Ids, Ratings
from unskew.data.relevance import Relevance
from unskew.engine.progress import Progress, Steps
from unskew.engine.rng import draw, generator
from unskew.engine.store import digest_of
from unskew.engine.threads import new_lock, resolve
from unskew.errors import DataError, SettingError, quietly
from unskew.evaluation.evaluate import MEMORY
from unskew.evaluation.scoring import prepare, score
from unskew.experiment.tune import Candidate, candidates, edges
from unskew.judging.judged import Judged
from unskew.judging.rank import rank
from unskew.metrics.names import Metric, parse
from unskew.recommend.model import Algorithm, Model
from unskew.runs import Run
from unskew.splits import draws
from unskew.splits.split import Split
from unskew.targets.designs import AllItems
from unskew.targets.lists import TargetLists

BUDGET = 6
"""Settings that are tried of each system."""
VALIDATION = Fraction(1, 5)
"""The share of the training ratings by which settings are judged."""
MANY_USERS = 2_000
"""With more users than this, a third of them decides which settings go on."""
MOST_USERS = 10_000
"""With more users than this, so many drawn at random stand for all."""
SHARE = 3
"""One in so many settings goes on to the last round, but at least `FINALISTS`; and one in so many
users takes part in the first one."""
FINALISTS = 2
CLOSE = 0.02
"""Settings go on that come within this share of the best value; where none does, the best one is
chosen at once."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TunedSystem:
    """A system with the settings that were chosen for it, and all that were tried.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=80, seed=3).ratings
    >>> systems = {"knn": us.recommend.UserKNN()}
    >>> tuned = us.experiment.tune_systems(systems, shop, us.Relevance(liked=4), "P@10")
    >>> tuned["knn"].tried, tuned["knn"].trials["settings"].to_list()
    (6, ['k=100', 'k=10', 'k=20', 'k=50', 'k=200', 'k=None'])
    """

    algorithm: Algorithm
    """With the chosen settings."""
    settings: Mapping[str, object]
    """The chosen value of each setting of its grid."""
    is_default: bool
    """Whether these are the settings that it came with."""
    edges: tuple[str, ...]
    """Settings whose chosen value is the smallest or largest tried: beyond it something better may
    lie. A value beyond which the setting's own limits allow nothing is no edge."""
    tried: int
    """How many settings were tried, those that it came with included; 0 = none could be judged."""
    trials: pl.DataFrame
    """A row per trial: settings, round, users (whose mean it is), value, and where a setting could
    not be trained, the reason."""
    value: float
    """The mean of the metric for the chosen settings in their last round; NaN = not judged."""
    reason: str = ""
    """Why nothing was chosen; empty where settings were."""

    @property
    def text(self) -> str:
        """The chosen settings in words, such as `k=50`."""
        return settings_text(self.settings)


def settings_text(settings: Mapping[str, object]) -> str:
    """Return settings as a call in Python states them."""
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


@checked
def tune_systems(
    systems: Mapping[str, Algorithm],
    train: Ratings,
    relevance: Relevance,
    metric: str,
    *,
    seed: int = 0,
    budget: int = BUDGET,
    progress: Progress | None = None,
) -> dict[str, TunedSystem]:
    """Choose the settings of systems by a metric on a random fifth of their training ratings.

    Each system tries the settings that it has and others of its grid (`Algorithm.tuning`), equally
    many as all others unless its grid is smaller. Every item but what the user rated in the other
    four fifths is ranked; users with a rating in both parts count. With more than 2,000 users, all
    settings are tried on a third of them and the best two on all, unless the best leads the second
    by more than 2 %; of more than 10,000 users, so many drawn at random stand for all. A system
    without a grid is not in the result.

    Parameters
    ----------
    systems
        By name.
    train
        Training ratings; the test part of an experiment must not be among them.
    relevance
        Which ratings are liked.
    metric
        What to be best in, such as `P@10`. Of equal values the earlier setting wins, and those
        that the system came with are the first.
    seed
        Everything random follows from it, whatever other systems there are.
    budget
        How many settings to try of each system.
    progress
        Called with (done, total) as settings are tried.

    Returns
    -------
    dict
        A `TunedSystem` by the name of each system that has a grid.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=200, items=80, seed=3)
    >>> (split,) = us.splits.Random(test=0.2).split(shop.ratings, seed=3)
    >>> systems = {"svd": us.recommend.PureSVD(), "popular": us.recommend.Popularity()}
    >>> tuned = us.experiment.tune_systems(systems, split.train, us.Relevance(liked=4), "P@10")
    >>> tuned["svd"].tried, list(tuned)
    (6, ['svd'])
    """
    as_count("seed", seed, 0)
    as_count("budget", budget, 2)
    parsed = parse(metric)
    if parsed.definition.of == "run":
        raise SettingError(
            f"metric={metric!r} has no value per user; tune by a metric that has one"
        )
    grids = {name: candidates(system, budget) for name, system in systems.items() if system.tuning}
    with quietly():
        rounds = _laid.of(train, relevance, seed)
        if isinstance(rounds, str):
            return {name: _kept(systems[name], grid, rounds) for name, grid in grids.items()}
        steps = Steps(sum(_trials(len(grid), len(rounds)) for grid in grids.values()), progress)
        return {
            name: _HalvingSearch(systems[name], grid, parsed, seed, steps).result(name, rounds)
            for name, grid in grids.items()
        }


# The validation part


@dataclass(frozen=True, eq=False)
class _Round:
    """Some users: ratings to train on, and the lists by which settings are judged."""

    number: int
    lists: TargetLists
    counted: Mask
    """Users with ratings in both parts."""

    @property
    def users(self) -> int:
        return int(np.count_nonzero(self.counted))

    @cached_property
    def judged(self) -> Judged:
        """The lists without any system, laid over the judgments once for all trials."""
        return Judged.of_lists(self.lists, {})


class _LastRounds:
    """The rounds that were laid last: systems are tuned one after the other on the same split."""

    def __init__(self) -> None:
        self.lock = new_lock()
        self.key: tuple[Relevance, int, tuple[int, ...]] | None = None
        self.train: weakref.ref[Ratings] | None = None
        self.rounds: list[_Round] | str = ""

    def of(self, train: Ratings, relevance: Relevance, seed: int) -> list[_Round] | str:
        """Return the rounds, laid anew only where anything differs."""
        key = relevance, seed, (MANY_USERS, MOST_USERS)
        with self.lock:
            if self.train is None or self.train() is not train or self.key != key:
                self.rounds = _rounds(train, relevance, seed)
                self.key, self.train = key, weakref.ref(train, self._forget)
            return self.rounds

    def _forget(self, gone: weakref.ref[Ratings]) -> None:
        """Let go of rounds whose ratings nobody has any more."""
        if self.train is gone:
            self.key, self.train, self.rounds = None, None, ""


_laid = _LastRounds()


def _rounds(train: Ratings, relevance: Relevance, seed: int) -> list[_Round] | str:
    """Return the data of every round, the largest one last; or why there is none."""
    data = _renumbered(train, _rated(train.user, train.users), _rated(train.item, train.items))
    sizes = _sizes(len(data.users))
    if sizes[-1] < len(data.users):
        chosen = _drawn_users(len(data.users), sizes[-1], seed)
        data = data.take(chosen[data.user])
        data = _renumbered(data, chosen, _rated(data.item, data.items))
    validation = draws.coin(data, VALIDATION, seed, "tune/validation")
    warm = _rated(data.user[~validation], data.users)
    held_warm = validation & warm[data.user]
    if not held_warm.any():
        return "the training ratings are too few for a validation part"
    if not relevance.is_liked(data.value[held_warm]).any():
        return "no validation rating is liked"
    rounds = []
    every_item = np.ones(len(data.items), np.bool_)
    for number, users in enumerate(sizes, start=1):
        chosen = _drawn_users(len(data.users), users, seed)
        rows = chosen[data.user]
        fit, valid = (
            _renumbered(data.take(rows & part), chosen, every_item)
            for part in (~validation, held_warm)
        )
        split = Split(fit, valid)
        lists = AllItems().lists(split, relevance, seed=seed)
        rounds.append(_Round(number, lists, np.diff(split.test.start) > 0))
    return rounds


def _sizes(users: int) -> list[int]:
    """Return how many users each round has: one round of all, or of a third and of all."""
    last = min(users, MOST_USERS)
    return [last] if last <= MANY_USERS else [-(-last // SHARE), last]


def _drawn_users(users: int, size: int, seed: int) -> Mask:
    """Mark users drawn at random; a larger number holds those of a smaller one."""
    order = np.argsort(draw(seed, "tune/users", np.arange(users)), kind="stable")
    chosen = np.zeros(users, np.bool_)
    chosen[order[:size]] = True
    return chosen


def _rated(code: I32, ids: Ids) -> Mask:
    """Mark the users, or the items, that have ratings."""
    return np.bincount(code, minlength=len(ids)) > 0


def _renumbered(ratings: Ratings, users: Mask, items: Mask) -> Ratings:
    """Return ratings under the ids of the marked users and items only.

    Then nothing follows from users and items that occur in the test part alone, and those outside
    a round cost nothing.
    """
    user, user_code = _subset(ratings.users, ratings.user, users)
    item, item_code = _subset(ratings.items, ratings.item, items)
    return replace(ratings, users=user, items=item, user=user_code, item=item_code)


def _subset(ids: Ids, code: I32, mask: Mask) -> tuple[Ids, I32]:
    """Return the marked ids, and the codes of rows that have no others."""
    if mask.all():
        return ids, code
    table = np.cumsum(mask, dtype=np.int32) - np.int32(1)
    return Ids(ids.values.filter(pl.Series(mask))), frozen(table[code])


# The search


def _going_on(settings: int) -> int:
    """Return how many settings go on to the next round."""
    return min(settings, max(FINALISTS, -(-settings // SHARE)))


def _trials(settings: int, rounds: int) -> int:
    """Return how many trials there are."""
    total = 0
    for _ in range(rounds):
        total, settings = total + settings, _going_on(settings)
    return total


@dataclass(frozen=True)
class _Trial:
    """One setting in one round."""

    settings: str
    round: int
    users: int
    value: float | None
    reason: str


def _table(trials: Sequence[_Trial]) -> pl.DataFrame:
    types = {"round": pl.Int64, "users": pl.Int64, "value": pl.Float64}
    return pl.DataFrame(
        [asdict(trial) for trial in trials],
        schema={field.name: types.get(field.name, pl.String) for field in fields(_Trial)},
    )


@dataclass(frozen=True, eq=False)
class _HalvingSearch:
    """The settings of one system, tried round by round."""

    system: Algorithm
    grid: Sequence[Candidate]
    metric: Metric
    seed: int
    steps: Steps

    def result(self, name: str, rounds: Sequence[_Round]) -> TunedSystem:
        """Try all settings, then the best of them on more users; return the best."""
        trials: list[_Trial] = []
        left = list(range(len(self.grid)))
        values: dict[int, float] = {}
        for round_ in rounds:
            done = self._round(left, round_)
            trials += done
            values = {
                number: trial.value
                for number, trial in zip(left, done, strict=True)
                if trial.value is not None
            }
            if not values:
                raise DataError(
                    f"{name}: none of {len(done)} settings can be trained; the first: "
                    f"{done[0].reason}"
                )
            left = self._going_on(values, len(left))
            if len(left) == 1:
                break
        missing = _trials(len(self.grid), len(rounds)) - len(trials)
        if missing:  # some could not be trained, or one was clearly ahead
            self.steps.advance(missing)
        best = min(values, key=lambda number: self._place(number, values))
        chosen = self.grid[best]
        return TunedSystem(
            algorithm=replace(self.system, **chosen),
            settings=dict(chosen),
            is_default=best == 0,
            edges=edges(self.system, chosen, self.grid),
            tried=len(self.grid),
            trials=_table(trials),
            value=values[best],
        )

    def _going_on(self, values: Mapping[int, float], tried: int) -> list[int]:
        """Return the best settings of a round, as far as they come close to the best of all."""
        order = sorted(values, key=lambda number: self._place(number, values))
        best = values[order[0]]
        close = [number for number in order if abs(values[number] - best) <= CLOSE * abs(best)]
        return sorted(close[: _going_on(tried)])

    def _place(self, number: int, values: Mapping[int, float]) -> tuple[float, int]:
        """Return what to sort by: the best first, of equal ones the earlier."""
        sign = 1.0 if self.metric.better == "lower" else -1.0
        return sign * values[number], number

    def _round(self, left: Sequence[int], round_: _Round) -> list[_Trial]:
        """Try some settings on the users of a round; what their training shares is done once."""
        built: dict[int, Algorithm] = {}
        reasons: dict[int, str] = {}
        for number in left:
            try:
                built[number] = replace(self.system, **self.grid[number])
            except (DataError, SettingError) as problem:
                reasons[number] = str(problem)
        algorithms = list(built.values())
        rngs = [
            generator(self.seed, "tune", digest_of(algorithm.draw_key)) for algorithm in algorithms
        ]
        models = type(self.system).fit_several(algorithms, round_.lists.train, rngs)
        trials = []
        for number in left:
            value = None
            if number in built:
                try:
                    value = self._value(next(models), round_)
                except (DataError, SettingError) as problem:
                    reasons[number] = str(problem)
            self.steps.advance()
            text, reason = settings_text(self.grid[number]), reasons.get(number, "")
            trials.append(_Trial(text, round_.number, round_.users, value, reason))
        return trials

    def _value(self, model: Model, round_: _Round) -> float:
        """Rank and judge; return the mean over users, undefined values counting as 0."""
        label = str(self.metric)
        metrics = {label: self.metric}
        system: Run | Model = model
        if self.metric.cutoff is not None and not self.metric.condensed:
            # Nothing below the cutoff matters: no need to know where every judged item stands.
            system = rank(model, round_.lists, self.metric.cutoff, seed=self.seed)
        judged = prepare(round_.judged.with_models({"": system}), metrics)
        result = score(judged.basis, judged.matched, metrics, threads=resolve(None), budget=MEMORY)[
            ""
        ]
        total = math.fsum(np.nan_to_num(result.values[0][round_.counted]))
        if 0 in result.den:
            bottom = math.fsum(np.nan_to_num(result.den[0][round_.counted]))
            return total / bottom if bottom else 0.0
        return total / round_.users


def _kept(system: Algorithm, grid: Sequence[Candidate], reason: str) -> TunedSystem:
    """Return a system as it came, where settings cannot be judged."""
    return TunedSystem(
        algorithm=system,
        settings=dict(grid[0]),
        is_default=True,
        edges=(),
        tried=0,
        trials=_table([]),
        value=math.nan,
        reason=f"{reason}: the settings given are kept",
    )
