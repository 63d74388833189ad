"""`contrasts`: all pairs of systems under all designs, with intervals that hold all at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.data.ratings import Ids
from unskew.data.user_groups import UserGroups
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.scores import Scores
from unskew.report.columns import (
    METRIC,
    PAIR,
    SYSTEM,
    TEST,
    USERS,
    Column,
    Method,
    Question,
    Row,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.pair_errors import PairErrors, pair_errors
from unskew.stats.influence import (
    LISTS,
    RETRAINED,
    TARGETS,
    SplitInfluence,
    averaged_lists,
    common_users,
    distinct_splits,
    split_influence,
)
from unskew.stats.pairing import all_pairs
from unskew.stats.simultaneous import (
    LEAD,
    Tail,
    adjusted_p,
    all_together,
    critical_value,
    largest_t,
    user_blocks,
)
from unskew.stats.user_groups import grouped_scores, groups_of_users, stated_by_group

LEAST_DRAWS = 2_000
POWER = 0.8
MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""
WORDS = {
    RETRAINED: (
        "about the systems trained anew on new ratings of new users (same population, same items)"
    ),
    LISTS: (
        "about these lists on new users from the same population; what another split or another "
        "training would change is not part of it"
    ),
}
"""What intervals and p-values are about, by target."""
DESIGN = Column("design", "key")
CONTRASTS = Question(
    name="pairs under every design",
    columns=(
        *(METRIC, DESIGN, *PAIR, USERS, Column("splits", "count", hidden=True)),
        *(*LEAD, *TEST, Column("detectable", "fact")),
        *(Column(f"{end}_single", "fact", form="+", hidden=True) for end in ("low", "high")),
        *(Column(name, "fact", hidden=True) for name in ("critical", "equivalent_within")),
    ),
    method=Method(
        estimand="how far a is ahead of b: the difference of their means, averaged over splits",
        interval="t",
        test="t test",
    ),
)
"""What `contrasts` answers: a row per design and pair.

`se` goes with normal quantiles: it holds the ratio of Student's quantile to the normal one. The
interval from `low` to `high` and `p_corrected` hold over all designs and pairs at once; that from
`low_single` to `high_single` and `p` are of this difference alone. `critical` is half the width of
the simultaneous interval in standard errors. `detectable` is the smallest lead that is shown with
80 % power, `equivalent_within` the smallest margin within which the two are shown to be equal.
`splits` are distinct ones: a repeated one counts once.
"""
MEANS = Question(
    name="means by design",
    columns=(METRIC, DESIGN, SYSTEM, Column("value", "value", "mean")),
    method=Method(estimand="the mean of a system over the splits of a design"),
)


def winner(contrasts: Estimates, design: str) -> str | None:
    """Return the system that is significantly ahead of every other one, else None.

    Parameters
    ----------
    contrasts
        What the function of this name gave.
    design
        Under which it is ahead.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.stats.compare.contrasts import winner
    >>> users = range(40)
    >>> test = {"user": users, "item": [1] * 40, "rating": [5] * 40}
    >>> runs = {"a": {u: [1] for u in users}, "b": {u: [1] if u % 3 else [2, 1] for u in users}}
    >>> scores = us.evaluate(test, runs, "RR", liked=4)
    >>> pairs = us.stats.contrasts({"all-items": [scores]}, "RR", target="lists")
    >>> winner(pairs, "all-items")
    'a'
    """
    for system in contrasts.systems:
        rows = [
            contrasts.pair(system, opponent, design=design)
            for opponent in contrasts.systems
            if opponent != system
        ]
        if all(row.facts["significant"] and row.estimate[0] > 0 for row in rows):
            return system
    return None


def equivalent(
    contrasts: Estimates, a: str, b: str, margin: float, *, design: str | None = None
) -> bool:
    """Tell whether two systems are shown to differ by less than `margin`.

    Two one-sided tests at the adjusted level: the simultaneous interval of level 1 - 2α lies
    inside ±`margin`. Not shown is not the same as different.

    Parameters
    ----------
    contrasts
        What the function of this name gave.
    a, b
        Two systems.
    margin
        The difference that does not matter.
    design
        Under which; under all unless given.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.stats.compare.contrasts import equivalent
    >>> users = range(40)
    >>> test = {"user": users, "item": [1] * 40, "rating": [5] * 40}
    >>> runs = {"a": {u: [1] for u in users}, "b": {u: [1] if u % 3 else [2, 1] for u in users}}
    >>> scores = us.evaluate(test, runs, "RR", liked=4)
    >>> pairs = us.stats.contrasts({"all-items": [scores]}, "RR", target="lists")
    >>> equivalent(pairs, "a", "b", margin=0.1), equivalent(pairs, "a", "b", margin=0.5)
    (False, True)
    """
    if not is_number(margin) or not margin > 0:
        raise SettingError(f"margin must be a number above 0, got {margin!r}")
    limits = [row.facts["equivalent_within"] for row in _pair_rows(contrasts, a, b, design)]
    if None in limits:
        level = contrasts.method.level
        raise SettingError(f"equivalence needs a level above 0.5, got {level:g}")
    return all(limit < margin for limit in limits)


def users_for(
    contrasts: Estimates, a: str, b: str, difference: float, *, design: str | None = None
) -> int:
    """Return how many test users would show a stated difference with 80 % power.

    The difference is the smallest one that matters, stated beforehand, never the observed one.
    The standard error is taken to fall with the square root of the users, who also rate
    the training data.

    Parameters
    ----------
    contrasts
        What the function of this name gave.
    a, b
        Two systems.
    difference
        In units of the metric.
    design
        Under which; unless given, the most users that any of them needs.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.stats.compare.contrasts import users_for
    >>> users = range(40)
    >>> test = {"user": users, "item": [1] * 40, "rating": [5] * 40}
    >>> runs = {"a": {u: [1] for u in users}, "b": {u: [1] if u % 3 else [2, 1] for u in users}}
    >>> scores = us.evaluate(test, runs, "RR", liked=4)
    >>> pairs = us.stats.contrasts({"all-items": [scores]}, "RR", target="lists")
    >>> users_for(pairs, "a", "b", difference=0.05)
    196
    """
    if not is_number(difference) or not difference > 0:
        raise SettingError(f"difference must be a number above 0, got {difference!r}")
    needed = 2
    for row in _pair_rows(contrasts, a, b, design):
        users = (row.n or 0) * (row.facts["detectable"] / difference) ** 2
        if users > MOST_USERS:
            raise SettingError(f"no number of users shows a difference of {difference:g}")
        # Less a hair, so that a whole number in floating point is not rounded up.
        needed = max(needed, math.ceil(users * (1 - 1e-12)))
    return needed


def _pair_rows(contrasts: Estimates, a: str, b: str, design: str | None) -> list[Row]:
    designs = contrasts.values_of("design") if design is None else [design]
    return [contrasts.pair(a, b, design=name) for name in designs]


ALL = "all"
FAMILIES = (ALL, "design")
"""Which intervals hold together."""


@checked
def contrasts(
    scores: Mapping[str, Sequence[Scores]],
    metric: str,
    *,
    systems: Sequence[str] | None = None,
    users: Mapping[str, Sequence[Mask]] | None = None,
    target: str = RETRAINED,
    family: str = "all",
    group_users: object = None,
    level: float = 0.95,
    resamples: int = 5_000,
    seed: int = 0,
) -> Estimates:
    """Compare all pairs of systems under all designs, with one correction for all of them.

    Parameters
    ----------
    scores
        By design, the scores of its splits: repeated random hold-outs of one data set, all systems
        trained anew on each. A split that repeats another value for value counts once.
    metric
        The label of a metric with a value per user.
    systems
        The systems to compare; all unless given.
    users
        By design, a mask over the users of each split's scores: those that count, such as the warm
        ones. Designs that are not named count the users that their scores average.
    target
        `retrained`: the intervals are about the systems trained anew on new ratings of new users
        from the same population. Users are new to the test and to the training, so that this
        takes the variance over users, a part for the training, and what moves all users of
        a split together, pooled over pairs and designs (`pair_errors`); give at least three
        splits. `lists`: about these lists on new users; the
        variance over users only.
    family
        Which intervals hold together: `all` of them, or those of each `design`, which are narrower.
    group_users
        Users that are not independent count as one: any form that `compare` takes but `detected`,
        as scores do not hold the ratings.
    level
        Of the intervals; 1 - level is the error of the whole family.
    resamples
        Of the Gaussian multiplier bootstrap for the largest |t| of the family; at least 2,000.
    seed
        Of them.

    Returns
    -------
    Estimates
        A row per design and pair: by how much a is ahead of b (positive: a is better), intervals
        and p-values; see `CONTRASTS` for all columns. The part `means` has the mean of each system
        by design; `card["identical"]` names the groups of designs that give every user of every
        system the same value. `winner`, `equivalent` and `users_for` ask further.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(1)
    >>> users, items = np.arange(200), np.arange(20)
    >>> def split():
    ...     test = {"user": np.repeat(users, 4), "item": np.tile(items[:4], 200)}
    ...     noise = {"sharp": 4, "blunt": 8, "dull": 9}
    ...     runs = {}
    ...     for name, sd in noise.items():
    ...         order = np.argsort(items + sd * rng.normal(size=(200, 20)))
    ...         runs[name] = us.Run.from_arrays(users, order[:, :5])
    ...     return us.evaluate({**test, "rating": [5] * 800}, runs, "P@5", liked=4)
    >>> print(us.stats.contrasts({"all-items": [split() for _ in range(3)]}, "P@5"))
    P@5, 200 users
    design     a      b      lead of a              95% CI       p  detectable
    all-items  sharp  blunt    +0.1507  [+0.1232, +0.1781]  0.0002      0.0369
                      dull     +0.1740  [+0.1523, +0.1957]  0.0002      0.0291
               blunt  dull     +0.0233  [−0.0016, +0.0482]  0.0652      0.0335
    <BLANKLINE>
    95% CI: t, by user; all together (largest |t| of 3 differences)
    p: t test, corrected by the largest |t| of 3 differences
    positive: a is better; detectable: the smallest lead that is shown with 80% power
    about the systems trained anew on new ratings of new users (same population, same items)
    """
    choose("target", target, TARGETS)
    choose("family", family, FAMILIES)
    check_share("level", level)
    as_count("resamples", resamples, LEAST_DRAWS)
    parts = grouped_scores(_checked_parts(scores), groups_of_users(group_users))
    names = _checked_systems(parts, systems)
    label, better = _checked_metric(parts, metric)
    # In sorted order, so that the order in which designs and systems are given changes no bit.
    splits, notes, people = _splits(parts, label, sorted(names), users or {})
    pairs = all_pairs(len(names))
    blocks = user_blocks(next(iter(splits.values()))[0].influence.shape[0], seed)
    in_order = {design: splits[design] for design in sorted(parts)}
    errors = pair_errors(in_order, pairs, blocks, target=target, level=level)
    families = [list(errors)] if family == ALL else [[design] for design in errors]
    largest = {
        design: draws
        for members in families
        for draws in [largest_t([errors[one].influence for one in members], resamples, seed)]
        for design in members
    }
    critical = max(critical_value(draws, level) for draws in largest.values())
    if math.isinf(critical):
        raise SettingError(f"level {level:g} needs more than resamples={resamples:,}")
    sign, frames = -1.0 if better == "lower" else 1.0, []
    for design in parts:
        tail = Tail.of(errors[design].splits, target, level)
        numbers = _numbers(errors[design], names, sign, largest[design], tail)
        frames.append(pl.DataFrame({"metric": label, "design": design, **numbers}))
    over = counted(len(pairs) * len(families[0]), "difference")
    over += " of a design" if len(families) > 1 else ""
    correction = f"the largest |t| of {over}"
    method = all_together(
        CONTRASTS.method, over, level=level, seed=seed, draws=resamples, correction=correction
    )
    result = Estimates.of_rows(
        CONTRASTS,
        pl.concat(frames),
        method=method,
        explanation=(
            f"positive: a is {'higher' if better == 'neither' else 'better'}; detectable: the "
            "smallest lead that is shown with 80% power",
            WORDS[target],
        ),
        notes=(*notes, *_single_split_notes(errors, tuple(parts), target)),
        parts={"means": _means(splits, parts, names, label, better)},
        card={
            "target": target,
            "critical": critical,
            "identical": _identical(splits, tuple(parts)),
        },
    )
    return stated_by_group(result, _groups_of(parts), people)


def _groups_of(parts: Mapping[str, Sequence[Scores]]) -> UserGroups | None:
    """Return the groups of users that count as one, where scores say so: all of them alike."""
    return next(iter(parts.values()))[0].groups


def _checked_parts(scores: Mapping[str, Sequence[Scores]]) -> dict[str, tuple[Scores, ...]]:
    if not scores:
        raise SettingError("scores must hold at least one design")
    parts = {str(design): tuple(of) for design, of in scores.items()}
    for design, of in parts.items():
        if not of:
            raise SettingError(f"scores of {design!r} are empty: give those of at least one split")
    return parts


def _checked_systems(
    parts: Mapping[str, Sequence[Scores]], systems: Sequence[str] | None
) -> tuple[str, ...]:
    """Return the systems to compare; all splits of all designs must have them."""
    splits = [part for of in parts.values() for part in of]
    names = tuple(splits[0].systems) if systems is None else tuple(dict.fromkeys(systems))
    for design, of in parts.items():
        for part in of:
            missing = [name for name in names if name not in part.systems]
            if missing and systems is not None:
                raise unknown_name(f"system of {design!r}", missing[0], part.systems)
            if missing or (systems is None and len(part.systems) != len(names)):
                raise DataError(
                    f"designs and splits must have the same systems: {', '.join(names)} against "
                    f"{', '.join(part.systems)} in {design!r}; name those to compare by systems=…"
                )
    if len(names) < 2:
        raise DataError(f"contrasts need at least 2 systems, got {len(names)}")
    return names


def _checked_metric(parts: Mapping[str, Sequence[Scores]], metric: str) -> tuple[str, str]:
    """Return the metric's label and which direction is better."""
    labels = set()
    for of in parts.values():
        for part in of:
            label = part._label(metric)
            fraction = label in part.labels and any(
                part.labels.index(label) in system.den for system in part.systems.values()
            )
            if label not in part.labels or fraction:
                raise SettingError(
                    f"{label} has no value per user that averages to its mean: it cannot be "
                    f"compared user by user"
                )
            labels.add(label)
    first = next(iter(parts.values()))[0]
    label = first._label(metric)
    return label, first.metrics[label].better


def _splits(
    parts: Mapping[str, Sequence[Scores]],
    metric: str,
    systems: Sequence[str],
    users: Mapping[str, Sequence[Mask]],
) -> tuple[dict[str, list[SplitInfluence]], list[str], Ids]:
    """Return the distinct splits of every design over one numbering of users, notes, and the users.

    Where groups of users count as one, these are the units of the splits.
    """
    keep = _kept_lists(parts, systems, users)
    flat = [part for of in parts.values() for part in of]
    ids = common_users(flat, [mask for of in keep.values() for mask in of])
    groups = _groups_of(parts)
    code = None if groups is None else groups.of(ids)[1]
    result, notes = {}, []
    for design, of in parts.items():
        candidates = [
            split_influence(part, part._label(metric), systems, ids, mask)
            for part, mask in zip(of, keep[design], strict=True)
        ]
        filled = [split for split in candidates if split.counted.any()]
        distinct = distinct_splits(filled)
        result[design] = distinct if code is None else [split.by_group(code) for split in distinct]
        units_of = [split.counted for split in result[design]]
        if not filled or np.logical_or.reduce(units_of).sum() < 2:
            units = "users" if code is None else "groups of users"
            raise DataError(
                f"{design!r} has fewer than 2 {units} with a value of every system: give test "
                "ratings and lists of more users, or leave the design out"
            )
        empty, repeated = len(candidates) - len(filled), len(filled) - len(result[design])
        if empty:
            notes.append(
                f"{design}: {empty} of {len(candidates)} splits have no users and do not count"
            )
        if repeated:
            notes.append(
                f"{design}: {repeated} of {len(candidates)} splits repeat another one value for "
                f"value and count once"
            )
    return result, notes, ids


def _kept_lists(
    parts: Mapping[str, Sequence[Scores]],
    systems: Sequence[str],
    users: Mapping[str, Sequence[Mask]],
) -> dict[str, list[Mask]]:
    for design, masks in users.items():
        if design not in parts:
            raise unknown_name("design in users", design, parts)
        if len(masks) != len(parts[design]):
            raise SettingError(
                f"users must have a mask per split: {len(parts[design])} of {design!r}, got "
                f"{len(masks)}"
            )
    keep = {}
    for design, of in parts.items():
        masks = users.get(design, [None] * len(of))  # type: ignore[list-item]
        keep[design] = [
            averaged_lists(part, systems, mask, repr(design))
            for part, mask in zip(of, masks, strict=True)
        ]
    return keep


def _pairs_as_given(names: Sequence[str]) -> tuple[I64, F64]:
    """Return where each pair stands among those of sorted systems, and -1 if it is turned there."""
    pairs, number = all_pairs(len(names)), np.zeros((len(names), len(names)), np.int64)
    number[pairs.first, pairs.second] = np.arange(len(pairs))
    index = np.array([sorted(names).index(name) for name in names])
    first, second = index[pairs.first], index[pairs.second]
    order = number[np.minimum(first, second), np.maximum(first, second)]
    return order, np.where(first < second, 1.0, -1.0)


def _numbers(
    errors: PairErrors, names: Sequence[str], sign: float, largest: F64, tail: Tail
) -> dict[str, object]:
    """Return the columns of one design, a row per pair."""
    pairs, (order, turned) = all_pairs(len(names)), _pairs_as_given(names)
    difference, se = sign * turned * errors.difference[order] + 0.0, errors.se[order]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, difference / se)
    p, p_corrected = adjusted_p(t, largest, tail)
    critical = tail.widened(critical_value(largest, tail.level))
    wide, narrow = critical * se, NormalDist().inv_cdf((1 + tail.level) / 2) * se
    alpha, equivalent_within = round(1 - tail.level, 12), None
    if alpha < 0.5:
        one_sided = tail.widened(critical_value(largest, 1 - 2 * alpha))
        equivalent_within = np.abs(difference) + one_sided * se
    return {
        "system": [names[index] for index in pairs.first],
        "against": [names[index] for index in pairs.second],
        "n": errors.users,
        "splits": errors.splits,
        "value": difference,
        "se": se,
        "low": difference - wide,
        "high": difference + wide,
        "low_single": difference - narrow,
        "high_single": difference + narrow,
        "p": p,
        "p_corrected": p_corrected,
        "significant": p_corrected <= alpha,
        "detectable": wide + NormalDist().inv_cdf(POWER) * se,
        "critical": critical,
        "equivalent_within": equivalent_within,
    }


def _means(
    splits: Mapping[str, Sequence[SplitInfluence]],
    designs: Iterable[str],
    systems: Sequence[str],
    metric: str,
    better: str,
) -> Estimates:
    """Return the mean of each system over the splits of each design."""
    rows = []
    for design in designs:
        means = np.stack([split.means for split in splits[design]]).mean(axis=0)
        by_name = dict(zip(sorted(systems), means.tolist(), strict=True))
        rows += [(metric, design, system, by_name[system]) for system in systems]
    return Estimates.of_rows(MEANS, rows, card={"better": {metric: better}})


def _identical(
    splits: Mapping[str, Sequence[SplitInfluence]], designs: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    """Return the groups of designs whose splits agree in every value of every user."""
    groups: list[list[str]] = []
    for design in designs:
        for group in groups:
            first, candidate = splits[group[0]], splits[design]
            if len(first) == len(candidate) and all(
                x.same_values(y) for x, y in zip(first, candidate, strict=True)
            ):
                group.append(design)
                break
        else:
            groups.append([design])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _single_split_notes(
    errors: Mapping[str, PairErrors], designs: tuple[str, ...], target: str
) -> list[str]:
    alone = [design for design in designs if errors[design].splits == 1]
    if target != RETRAINED or not alone:
        return []
    return [
        f"{', '.join(alone)}: one split only, so the intervals leave out differences between "
        "trainings that affect all users together"
    ]
