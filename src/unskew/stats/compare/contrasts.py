"""`contrasts`: all pairs of systems under all designs, with intervals that hold all at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import as_count, check_share, checked, choose, is_number
from unskew.errors import DataError, SettingError, unknown_name
from unskew.evaluation.scores import Scores
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.influence import (
    LISTS,
    RETRAINED,
    TARGETS,
    PairErrors,
    SplitInfluence,
    averaged_lists,
    common_users,
    distinct_splits,
    pair_errors,
    split_influence,
)
from unskew.stats.pairing import all_pairs
from unskew.stats.simultaneous import Tail, adjusted_p, critical_value, largest_t, user_blocks

LEAST_DRAWS = 2_000
POWER = 0.8
MOST_USERS = 1 << 53
"""A difference that needs more users than this is one of rounding: no number would do."""
WORDS = {
    RETRAINED: (
        "the systems trained anew on new ratings of new users from the same population, with the "
        "same items"
    ),
    LISTS: (
        "these lists on new users from the same population; what another split or another training "
        "would change is not part of it"
    ),
}
"""What intervals and p-values are about, by target."""


@dataclass(frozen=True)
class Contrast:
    """The difference of two systems under one design. Positive: `a` is better."""

    design: str
    a: str
    b: str
    difference: float
    """The mean over splits of the difference of means, signed so that positive is better for a."""
    se: float
    """Its standard error for the target, to be used with normal quantiles: it holds the ratio of
    Student's quantile to the normal one."""
    low: float
    """The simultaneous interval, from `low` to `high`: over all designs and pairs at once."""
    high: float
    low_single: float
    """The interval of this difference alone, from `low_single` to `high_single`."""
    high_single: float
    critical: float
    """Half the width of the simultaneous interval, in standard errors."""
    p: float
    """Two-sided, adjusted over all designs and pairs: at most 1 - level exactly where the
    simultaneous interval excludes 0."""
    p_single: float
    detectable: float
    """The smallest difference that is shown with 80 % power at the adjusted level."""
    users: int
    splits: int
    """Distinct splits: a repeated one counts once."""

    @property
    def p_better(self) -> float:
        """The adjusted one-sided p-value of "a is better than b", stated beforehand."""
        return self.p / 2 if self.difference > 0 else 1 - self.p / 2

    def swapped(self) -> Contrast:
        """Return the same contrast as b less a."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            difference=-self.difference + 0.0,
            low=-self.high + 0.0,
            high=-self.low + 0.0,
            low_single=-self.high_single + 0.0,
            high_single=-self.low_single + 0.0,
        )


@dataclass(frozen=True, eq=False)
class Contrasts(Result):
    """All pairs of systems under all designs: differences, intervals, p-values, what is detectable.

    Made by `contrasts`.
    """

    metric: str
    better: str
    """`higher`, `lower` or `neither`."""
    designs: tuple[str, ...]
    systems: tuple[str, ...]
    rows: tuple[Contrast, ...]
    """Designs in their order, in each all pairs in the order of the systems."""
    kind: str
    """`retrained` or `lists`."""
    target: str
    """What intervals and p-values are about, in words."""
    level: float
    critical: float
    """The quantile of the largest |t| where errors are known; see `Contrast.critical`."""
    means: Mapping[str, Mapping[str, float]]
    """The mean of each system over the splits, by design."""
    largest: F64 = field(repr=False)
    """Sorted draws of the largest |t| of the family, under equal systems."""
    groups: tuple[tuple[str, ...], ...] = ()
    """See `identical`."""
    draws: int = 0
    seed: int = 0
    notes: tuple[str, ...] = ()

    @property
    def alpha(self) -> float:
        """The error of the family: an adjusted p-value at or below it is significant."""
        return round(1 - self.level, 12)

    def get(self, design: str, a: str, b: str) -> Contrast:
        """Return the contrast `a` less `b` under a design; positive means that `a` is better."""
        if design not in self.designs:
            raise unknown_name("design", design, self.designs)
        for name in (a, b):
            if name not in self.systems:
                raise unknown_name("system", name, self.systems)
        if a == b:
            raise SettingError(f"a contrast needs two systems, got {a!r} twice")
        row = self._by_pair.get((design, a, b))
        return row if row is not None else self._by_pair[design, b, a].swapped()

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str, str], Contrast]:
        return {(row.design, row.a, row.b): row for row in self.rows}

    def interval(
        self, design: str, a: str, b: str, *, level: float | None = None, single: bool = False
    ) -> tuple[float, float]:
        """Return the interval of `a` less `b` of another level, simultaneous unless `single`.

        Both ends of an interval of level 1 - 2α are one-sided bounds of level 1 - α.
        """
        row = self.get(design, a, b)
        level = self.level if level is None else level
        check_share("level", level)
        width = NormalDist().inv_cdf((1 + level) / 2)
        if not single:
            tail = Tail.of(row.splits, self.kind, self.level)
            width = tail.widened(_finite_critical(self.largest, level))
        return row.difference - width * row.se, row.difference + width * row.se

    def leader(self, design: str) -> str:
        """Return the system with the best mean under a design; of equal ones the first."""
        others = {
            name: [system for system in self.systems if system != name] for name in self.systems
        }
        return max(
            self.systems,
            key=lambda name: min(
                self.get(design, name, opponent).difference for opponent in others[name]
            ),
        )

    def winner(self, design: str) -> str | None:
        """Return the leader if it is significantly ahead of every other system, else None."""
        first = self.leader(design)
        rows = [self.get(design, first, system) for system in self.systems if system != first]
        ahead = all(row.p <= self.alpha and row.difference > 0 for row in rows)
        return first if ahead else None

    def equivalent(self, a: str, b: str, margin: float, *, design: str | None = None) -> bool:
        """Tell whether two systems are shown to differ by less than `margin`.

        Two one-sided tests at the adjusted level: the simultaneous interval of level 1 - 2α lies
        inside ±`margin`. Not shown is not the same as different. Without a design, under all.
        """
        if not is_number(margin) or not margin > 0:
            raise SettingError(f"margin must be a number above 0, got {margin!r}")
        if self.alpha >= 0.5:
            raise SettingError(f"equivalence needs a level above 0.5, got {self.level:g}")
        for name in self.designs if design is None else (design,):
            low, high = self.interval(name, a, b, level=1 - 2 * self.alpha)
            if not (-margin < low and high < margin):
                return False
        return True

    def users_for(self, a: str, b: str, difference: float, *, design: str | None = None) -> int:
        """Return how many test users would show a stated difference with 80 % power.

        The difference is the smallest one that matters, stated beforehand, never the observed one.
        The standard error is taken to fall with the square root of the users, who also rate
        the training data. Without a design, the most that any of them needs.
        """
        if not is_number(difference) or not difference > 0:
            raise SettingError(f"difference must be a number above 0, got {difference!r}")
        needed = 2
        for name in self.designs if design is None else (design,):
            row = self.get(name, a, b)
            users = row.users * (row.detectable / difference) ** 2
            if users > MOST_USERS:
                raise SettingError(f"no number of users shows a difference of {difference:g}")
            # Less a hair, so that a whole number in floating point is not rounded up.
            needed = max(needed, math.ceil(users * (1 - 1e-12)))
        return needed

    def identical(self) -> tuple[tuple[str, ...], ...]:
        """Return the groups of designs that give every user of every system the same value."""
        return self.groups

    # Text

    def table(self) -> pl.DataFrame:
        """Return a row per design and pair; the columns are the fields of `Contrast`."""
        names = [field.name for field in fields(Contrast)]
        return pl.DataFrame({name: [getattr(row, name) for row in self.rows] for name in names})

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it."""
        columns = ("design", "a", "b", "difference", "low", "high", "p", "detectable", "users")
        return self.table().select(columns)

    def _summary(self) -> str:
        designs, systems = (
            counted(len(self.designs), "design"),
            counted(len(self.systems), "system"),
        )
        return f"{self.metric}, {designs}, {systems}"

    def _explanation(self) -> list[str]:
        count = len(self.rows)
        over = f"over all {count:,} differences" if count > 1 else "of one difference"
        ahead = "higher" if self.better == "neither" else "better"
        return [
            f"{self.metric}: positive means that a is {ahead}",
            f"about {self.target}",
            f"intervals of {100 * self.level:g} % and p hold {over} at once (largest |t|, "
            f"{self.draws:,} draws)",
        ]

    def _content(self) -> Mapping[str, object]:
        draws = {"draws": self.draws, "seed": self.seed, "notes": self.notes}
        facts = self._fields("rows", "largest", "groups", *draws)
        return {**facts, "identical": self.groups, "rows": self.table(), **draws}


@checked
def contrasts(
    scores: Mapping[str, Sequence[Scores]],
    metric: str,
    *,
    systems: Sequence[str] | None = None,
    users: Mapping[str, Sequence[Mask]] | None = None,
    target: str = RETRAINED,
    level: float = 0.95,
    draws: int = 5_000,
    seed: int = 0,
) -> Contrasts:
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
        a split together; give at least three splits. `lists`: about these lists on new users; the
        variance over users only.
    level
        Of the intervals; 1 - level is the error of the whole family.
    draws
        Of the Gaussian multiplier bootstrap for the largest |t| of the family; at least 2,000.
    seed
        Of these draws.

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
    >>> result = us.stats.contrasts({"all-items": [split() for _ in range(3)]}, "P@5")
    >>> result.winner("all-items")
    'sharp'
    >>> row = result.get("all-items", "sharp", "dull")
    >>> row.low > 0, row.p <= 0.05
    (True, True)
    >>> result.equivalent("blunt", "dull", margin=0.2)
    True
    """
    choose("target", target, TARGETS)
    check_share("level", level)
    as_count("draws", draws, LEAST_DRAWS)
    parts = _checked_parts(scores)
    names = _checked_systems(parts, systems)
    label, better = _checked_metric(parts, metric)
    # In sorted order, so that the order in which designs and systems are given changes no bit.
    sorted_names = tuple(sorted(names))
    splits, notes = _splits(parts, label, sorted_names, users or {})
    pairs = all_pairs(len(names))
    blocks = user_blocks(next(iter(splits.values()))[0].influence.shape[0], seed)
    errors = {
        design: pair_errors(splits[design], pairs, blocks, target=target, level=level)
        for design in sorted(parts)
    }
    largest = largest_t([error.influence for error in errors.values()], draws, seed)
    critical = _finite_critical(largest, level)
    sign = -1.0 if better == "lower" else 1.0
    by_pair: dict[tuple[str, str, str], Contrast] = {}
    for design, pair_error in errors.items():
        tail = Tail.of(pair_error.splits, target, level)
        for row in _rows(design, sorted_names, pair_error, sign=sign, largest=largest, tail=tail):
            by_pair[design, row.a, row.b] = row
            by_pair[design, row.b, row.a] = row.swapped()
    return Contrasts(
        metric=label,
        better=better,
        designs=tuple(parts),
        systems=names,
        rows=tuple(
            by_pair[design, a, b]
            for design in parts
            for index, a in enumerate(names)
            for b in names[index + 1 :]
        ),
        kind=target,
        target=WORDS[target],
        level=level,
        critical=critical,
        means=_means(splits, tuple(parts), names, sorted_names),
        largest=largest,
        groups=_identical(splits, tuple(parts)),
        draws=draws,
        seed=seed,
        notes=(*notes, *_single_split_notes(errors, tuple(parts), target)),
    )


def _finite_critical(largest: F64, level: float) -> float:
    critical = critical_value(largest, level)
    if math.isinf(critical):
        raise SettingError(f"level {level:g} needs more than draws={largest.size:,}")
    return critical


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
    systems: tuple[str, ...],
    users: Mapping[str, Sequence[Mask]],
) -> tuple[dict[str, list[SplitInfluence]], list[str]]:
    """Return the distinct splits of every design over one numbering of users, and notes."""
    keep = _kept_lists(parts, systems, users)
    flat = [part for of in parts.values() for part in of]
    ids = common_users(flat, [mask for of in keep.values() for mask in of])
    result, notes = {}, []
    for design, of in parts.items():
        candidates = [
            split_influence(part, part._label(metric), systems, ids, mask)
            for part, mask in zip(of, keep[design], strict=True)
        ]
        filled = [split for split in candidates if split.counted.any()]
        users_of = [split.counted for split in filled]
        if not filled or np.logical_or.reduce(users_of).sum() < 2:
            raise DataError(
                f"{design!r} has fewer than 2 users with a value of every system: give test "
                "ratings and lists of more users, or leave the design out"
            )
        result[design] = distinct_splits(filled)
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
    return result, notes


def _kept_lists(
    parts: Mapping[str, Sequence[Scores]],
    systems: tuple[str, ...],
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


def _rows(
    design: str,
    systems: tuple[str, ...],
    errors: PairErrors,
    *,
    sign: float,
    largest: F64,
    tail: Tail,
) -> list[Contrast]:
    """Return the contrasts of one design, in the order of all pairs."""
    difference = sign * errors.difference + 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, difference / errors.se)
    p_single, p = adjusted_p(t, largest, tail)
    critical = tail.widened(critical_value(largest, tail.level))
    wide = critical * errors.se
    narrow = NormalDist().inv_cdf((1 + tail.level) / 2) * errors.se
    pairs = all_pairs(len(systems))
    columns = {
        "difference": difference,
        "se": errors.se,
        "low": difference - wide,
        "high": difference + wide,
        "low_single": difference - narrow,
        "high_single": difference + narrow,
        "p": p,
        "p_single": p_single,
        "detectable": wide + NormalDist().inv_cdf(POWER) * errors.se,
    }
    rows = []
    for a, b, *numbers in zip(pairs.one, pairs.other, *columns.values(), strict=True):
        named = dict(zip(columns, map(float, numbers), strict=True))
        rows.append(
            Contrast(
                design=design,
                a=systems[a],
                b=systems[b],
                critical=critical,
                users=errors.users,
                splits=errors.splits,
                **named,
            )
        )
    return rows


def _means(
    splits: Mapping[str, Sequence[SplitInfluence]],
    designs: tuple[str, ...],
    systems: tuple[str, ...],
    sorted_names: tuple[str, ...],
) -> dict[str, dict[str, float]]:
    result = {}
    for design in designs:
        means = np.stack([split.means for split in splits[design]]).mean(axis=0)
        by_name = dict(zip(sorted_names, means.tolist(), strict=True))
        result[design] = {name: by_name[name] for name in systems}
    return result


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
