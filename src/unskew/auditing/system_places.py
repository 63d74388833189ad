"""`standing`: the place of popularity by observed and by true judgments.

Systems are trained on the observed training part. The same models are judged by the observed test
part, as it is done everywhere, and by judgments of what users did not choose to rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from unskew.arrays import F64, Mask
from unskew.auditing.cold_users import of_lists, warm_lists
from unskew.auditing.core_tasks import seed_of
from unskew.auditing.designs import LEVELS, named_systems, tunable_systems
from unskew.auditing.estimate import affordable
from unskew.auditing.nested_truth import NestedTruth, Overlap, overlap_of
from unskew.auditing.request import Rules, check_ordering_metric, least_liked
from unskew.auditing.standing_result import (
    OBSERVED,
    TRUE,
    JudgedBy,
    Sampling,
    Standing,
    SystemStanding,
)
from unskew.auditing.truth_sources import Sampled, Source, source_of
from unskew.auditing.truth_tasks import TruthExtras, TruthJob, judged_splits
from unskew.checks import as_count, check_share, checked
from unskew.data.catalog import load
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings
from unskew.data.readers import read_ratings
from unskew.data.true_judgments import JUDGED, POOLED, RANDOM, TrueJudgments
from unskew.data.user_samples import afresh
from unskew.engine.execute import executor
from unskew.engine.notebook_progress import notebook_progress
from unskew.engine.progress import Progress
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.scores import Scores
from unskew.experiment.halving import TunedSystem
from unskew.experiment.plan import Plan
from unskew.metrics.names import parse
from unskew.recommend.costs import DataShape
from unskew.recommend.model import Algorithm
from unskew.recommend.simple import SmoothedAverage
from unskew.report.text import counted
from unskew.splits.random import Random
from unskew.splits.randomness import looks_random
from unskew.stats.contrast_errors import RETRAINED
from unskew.stats.design_contrasts import Contrasts, contrasts
from unskew.stats.distributions import student_t_quantile
from unskew.stats.order_agreement import BOOTSTRAP, agreement
from unskew.stats.user_influence import common_users, split_influence
from unskew.targets.designs import AllItems, Targets
from unskew.worlds.worlds import World

if TYPE_CHECKING:
    from distributed import Client

SYSTEM = "popularity"
SPLITS = 5
"""With fewer than three, what another training would change cannot be seen."""
SUSPECT = 0.001
"""Random judgments whose spread over items is less likely than this are doubted."""
CUTOFF = 10
"""Where the metric has none: how many items of the lists are looked at."""


@notebook_progress("standing")
@checked
def standing(
    data: object,
    *,
    system: str = SYSTEM,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None = None,
    metric: str = "P@10",
    liked: float | None = None,
    true_liked: float | None = None,
    random: object = None,
    pooled: object = None,
    targets: Targets | None = None,
    splits: int = SPLITS,
    test: float = 0.2,
    tune: bool = True,
    bootstrap: int = BOOTSTRAP,
    level: float = 0.95,
    seed: int = 0,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Standing:
    """Tell which place a system takes by observed and by true judgments, among several systems.

    Systems are trained on a random part of the observed ratings and judged twice: by the other
    observed ratings, all items outside training being ranked; and by the true judgments. Random
    judgments: the same lists, in which an unjudged item counts as not liked. Exhaustive ones: the
    items that were judged are ranked. Pooled ones: the judged items of each user are ranked, so
    that an unjudged item counts as neither. The same users count both times.

    Parameters
    ----------
    data
        A `Dataset` with true judgments (or its name, such as `coat`), a `World`; or ratings, with
        `random` or `pooled`.
    system
        Whose place is asked for: the label of one of the systems.
    algorithms
        Systems, as objects or by name; those of a quick audit unless given: random, popularity,
        smoothed average, user-kNN, PureSVD and EASE, less what costs too much on these data.
    metric
        By which systems are ordered; it needs a value per user.
    liked
        The smallest liked rating; that of the data set unless given.
    true_liked
        The smallest liked true judgment, where their scale is another one.
    random, pooled
        True judgments where the data have none: ratings of randomly chosen items, or of the items
        that several systems listed.
    targets
        What the truth ranks, where it is not what its kind asks for: `us.targets.TestTargets()`
        ranks the randomly chosen items alone, which tells more from few judgments, but of another
        question: who orders random items best.
    splits, test
        How often ratings are split at random, and the share of the test part. With fewer than
        three splits, what another training would change cannot be seen.
    tune
        Choose the settings of systems that are given by name on the training part of each split,
        as an audit does.
    bootstrap
        Draws of users for the interval of τ; 0 for none.
    level
        Of all intervals.
    seed
        Everything random follows from it.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with (done, total) after each split.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=150, items=60, seed=1)
    >>> names = ["random", "popularity", "smoothed-average"]
    >>> result = us.auditing.standing(shop, algorithms=names, metric="P@5", bootstrap=0)
    >>> result.of("popularity").observed.place
    1
    """
    count = as_count("splits", splits)
    check_share("level", level)
    check_ordering_metric(metric)
    asked = _Asked.of(data, random, pooled, liked, true_liked)
    plan, tunable, notes = _plan(asked, algorithms, metric, test, seed)
    if system not in plan.systems:
        raise unknown_name("system", system, plan.systems)
    if len(plan.systems) < 2:
        raise SettingError("a place needs at least 2 systems: name some with algorithms=…")
    source = source_of(asked.data, None, None, targets, "to-training", plan)
    overlap = overlap_of(source)
    nested = None
    if isinstance(source, Sampled) and overlap is not None and overlap.is_nested:
        nested = NestedTruth.of(source, test, tuple(plan.metrics))
    extras = TruthExtras(
        tuned=tunable if tune else frozenset(),
        metric=metric,
        judged=_judged_users(source),
        with_whole_lists=True,
    )
    judged = _Judged(nested)
    with executor(workers, cluster) as one:
        for number in range(count):
            job = TruthJob(source, replace(plan, seed=seed_of(seed, number)), extras)
            for part in judged_splits(one, job):
                (observed,) = part.observed.values()
                judged.add(observed, part.true, part.whole, part.tuned)
            if progress is not None:
                progress(number + 1, count)
    notes += [*asked.notes, *_doubts(asked, source, overlap), *judged.notes()]
    sampling = Sampling.of(source, overlap)
    return _result(asked, plan, source, sampling, judged, notes, system, bootstrap, level)


@dataclass(frozen=True, eq=False)
class _Asked:
    """What is judged, and by what."""

    data: World | Dataset
    rules: Rules
    name: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        data: object,
        random: object,
        pooled: object,
        liked: float | None,
        true_liked: float | None,
    ) -> _Asked:
        rules = Rules(liked=liked)
        if isinstance(data, World):
            given = {"random": random, "pooled": pooled, "true_liked": true_liked}
            for name, value in given.items():
                if value is not None:
                    raise SettingError(f"a world knows its truth: leave {name}=… out")
            return cls(data, rules, f"world {data.name}")
        whole = load(data)
        if random is not None and pooled is not None:
            raise SettingError("give true judgments as random=… or as pooled=…, not as both")
        for kind, given_part in ((RANDOM, random), (POOLED, pooled)):
            if given_part is None:
                continue
            if whole.true_part is not None:
                raise SettingError(
                    f"{whole.name} has true judgments already ({whole.true_part}): leave {kind}=… "
                    "out"
                )
            part = given_part if isinstance(given_part, Ratings) else read_ratings(given_part)
            whole = replace(whole, truth=TrueJudgments(part, kind))
        part_of = whole.true_part
        if true_liked is not None and part_of is not None:
            whole = replace(whole, random=None, truth=replace(part_of, liked=true_liked))
        return cls(whole, rules, whole.name, whole.notes)

    @property
    def ratings(self) -> Ratings:
        return self.data.ratings


def _plan(
    asked: _Asked,
    algorithms: Sequence[Algorithm | str] | Mapping[str, Algorithm] | None,
    metric: str,
    test: float,
    seed: int,
) -> tuple[Plan, frozenset[str], list[str]]:
    """Return what is run, which systems are tuned, and what was assumed."""
    rule, notes = asked.rules.of(asked.ratings, asked.data.liked)
    named = named_systems(algorithms, LEVELS["quick"], least_liked(rule, asked.ratings))
    k = parse(metric).cutoff or CUTOFF
    plan = Plan(
        Random(test=test),
        AllItems(),
        named,
        rule,
        tuple(dict.fromkeys((metric, f"P@{k}", f"anti-P@{k}"))),
        seed=seed,
    )
    if algorithms is None:
        systems, left_out = affordable(
            plan.systems, DataShape.of(asked.ratings), LEVELS["quick"], tune=True
        )
        notes += [f"{name} is left out: {why}" for name, why in left_out.items()]
        if rule.is_liked(asked.ratings.value).all():
            flat = [name for name, one in systems.items() if isinstance(one, SmoothedAverage)]
            notes += [f"{name} is left out: no rating is a dislike" for name in flat]
            systems = {name: one for name, one in systems.items() if name not in flat}
        plan = replace(plan, algorithms=systems)
        return plan, frozenset(systems), list(notes)
    return plan, tunable_systems(plan.systems, algorithms), list(notes)


def _judged_users(source: Source) -> Mask | None:
    """Mark the users who have true judgments; None where all have."""
    if not isinstance(source, Sampled):
        return None
    mask = np.zeros(len(source.ratings.users), np.bool_)
    mask[source.random.user] = True
    return mask


def _doubts(asked: _Asked, source: Source, overlap: Overlap | None) -> list[str]:
    """Say where random judgments depend on the observed ratings, or are not spread over items."""
    lines = [overlap.note] if overlap is not None and overlap.note else []
    if not isinstance(asked.data, Dataset) or not isinstance(source, Sampled):
        return lines
    part = asked.data.true_part
    if part is None or part.kind != RANDOM:
        return lines
    sample = afresh(part.ratings) if part.candidates == JUDGED else source.random
    p = looks_random(sample).items.p
    if not p < SUSPECT:
        return lines
    return [
        *lines,
        f"the random judgments are spread over items as a random choice would hardly spread them "
        f"(p = {p:.2g}): true scores favour systems that list the items judged most often",
    ]


@dataclass(eq=False)
class _Judged:
    """The scores of all splits, of the same users by both kinds of judgments."""

    nested: NestedTruth | None = None
    """How observed judgments count among random ones, where they are all among them."""
    observed: list[Scores] = field(default_factory=list)
    true: list[Scores] = field(default_factory=list)
    whole: list[Scores] = field(default_factory=list)
    """The lists that judged shares are of."""
    tuned: list[Mapping[str, TunedSystem]] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)
    """By split: users with a test rating, and with a true judgment, who do not count."""
    more: list[int] = field(default_factory=list)
    """By split: users who count by true judgments alone."""

    def add(
        self,
        observed: Scores,
        true: Scores,
        whole: Scores | None,
        tuned: Mapping[str, TunedSystem],
    ) -> None:
        """Keep the lists of users whom both kinds of judgments judge."""
        first = next(iter(observed.systems))
        one = observed.averaged(first) & warm_lists(observed)
        other = true.averaged(first)
        seen, known = (
            part.lists["user"].to_numpy()[keep] for part, keep in ((observed, one), (true, other))
        )
        both = np.intersect1d(seen, known)
        if both.size < 2:
            raise DataError(
                "fewer than 2 users have a training rating, a test rating and a true judgment: "
                "there is nothing to compare"
            )
        self.observed.append(of_lists(observed, np.isin(observed.lists["user"].to_numpy(), both)))
        if self.nested is not None:
            warm = of_lists(true, other & warm_lists(true))
            self.true.append(self.nested.weighted(warm, observed))
        else:
            self.true.append(of_lists(true, np.isin(true.lists["user"].to_numpy(), both)))
        if whole is None:
            self.whole.append(self.true[-1])
        else:
            self.whole.append(of_lists(whole, np.isin(whole.lists["user"].to_numpy(), both)))
        self.tuned.append(tuned)
        self.left.append((seen.size - both.size, known.size - self.true[-1].lists.height))
        self.more.append(self.true[-1].lists.height - both.size)

    def notes(self) -> list[str]:
        """Say how many users do not count."""
        seen, known = np.max(self.left, axis=0)
        words = []
        if seen:
            words.append(
                f"up to {counted(int(seen), 'user')} of a split with a test rating and no true "
                "judgment outside training left out"
            )
        if known:
            words.append(
                f"up to {counted(int(known), 'user')} of a split with a true judgment and no "
                f"training{'' if self.nested else ' or no test'} rating left out"
            )
        if max(self.more):
            words.append(
                f"up to {counted(max(self.more), 'user')} of a split without a test rating count "
                "by true judgments alone: without them the judgments are no random sample"
            )
        return words


def _result(
    asked: _Asked,
    plan: Plan,
    source: Source,
    sampling: Sampling,
    judged: _Judged,
    notes: Sequence[str],
    system: str,
    bootstrap: int,
    level: float,
) -> Standing:
    """Put places, scores and shares together."""
    metric, definition = next(iter(plan.labelled_metrics.items()))
    k = definition.cutoff or CUTOFF
    both = {OBSERVED: tuple(judged.observed), TRUE: tuple(judged.true)}
    pairs = contrasts(both, metric, target=RETRAINED, level=level, seed=plan.seed)
    order = agreement(both, [metric], bootstrap=bootstrap, level=level, seed=plan.seed)
    names = tuple(plan.systems)
    shared = {OBSERVED: judged.observed, TRUE: judged.whole}
    views = {
        kind: _judged_by(pairs, kind, both[kind], shared[kind], metric, k, level)
        for kind in (OBSERVED, TRUE)
    }
    rows = [
        SystemStanding(system=name, observed=views[OBSERVED][name], true=views[TRUE][name])
        for name in names
    ]
    row = order.pairs().row(0, named=True)
    true_scale = (
        ""
        if not isinstance(source, Sampled) or source.liked is None
        else (f"; true judgments from {source.liked:g} are liked")
    )
    return Standing(
        dataset_name=asked.name,
        system=system,
        metric=metric,
        cutoff=k,
        sampling=sampling,
        truth=source.name,
        rows=tuple(sorted(rows, key=lambda one: (one.true.place, one.observed.place, one.system))),
        contrasts=pairs,
        agreement={name: row[name] for name in ("tau", "p", "low", "high", "swaps")},
        users=len(common_users(judged.observed, [_all(part) for part in judged.observed])),
        splits=len(judged.observed),
        level=level,
        tuned={
            name: tuple(split[name].text for split in judged.tuned if name in split)
            for name in names
        },
        relevance=f"{judged.observed[0].relevance}{true_scale}",
        notes=tuple(dict.fromkeys((*notes, *pairs.notes))),
    )


def _all(part: Scores) -> Mask:
    return np.ones(part.lists.height, np.bool_)


def _judged_by(
    pairs: Contrasts,
    kind: str,
    parts: Sequence[Scores],
    shared: Sequence[Scores],
    metric: str,
    k: int,
    level: float,
) -> dict[str, JudgedBy]:
    """Return what one kind of judgments says of each system."""
    names = pairs.systems
    ends = score_intervals(parts, metric, names, level)
    liked, disliked = ([part.mean(f"{name}@{k}") for part in shared] for name in ("P", "anti-P"))
    result = {}
    for at, name in enumerate(names):
        others = [pairs.get(kind, name, other) for other in names if other != name]
        result[name] = JudgedBy(
            score=float(ends[at, 0]),
            low=float(ends[at, 1]),
            high=float(ends[at, 2]),
            place=1 + sum(one.difference < 0 for one in others),
            best=1 + sum(one.high < 0 for one in others),
            worst=len(names) - sum(one.low > 0 for one in others),
            liked=math.fsum(one[name] for one in liked) / len(liked),
            disliked=math.fsum(one[name] for one in disliked) / len(disliked),
        )
    return result


def score_intervals(
    parts: Sequence[Scores], metric: str, systems: Sequence[str], level: float
) -> F64:
    """Return each system's mean over splits, and both ends of its interval over users.

    Student's interval of the mean over users, whose values are means over splits: about these
    lists on new users. One user shows no spread: the ends are NaN.
    """
    users = common_users(parts, [_all(part) for part in parts])
    splits = [split_influence(part, metric, systems, users, _all(part)) for part in parts]
    mean = np.mean([one.means for one in splits], axis=0)
    influence = np.mean([one.influence for one in splits], axis=0)
    n = len(users)
    half = np.full(len(systems), math.nan)
    if n > 1:
        error = np.sqrt(n / (n - 1) * (influence**2).sum(axis=0))
        half = student_t_quantile((1 + level) / 2, n - 1) * error
    return np.stack([mean, mean - half, mean + half], axis=1)
