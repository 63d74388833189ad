"""Systems compared within segments of users, and whether their differences differ between these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unskew.arrays import F64, Mask
from unskew.checks import choose
from unskew.errors import SettingError
from unskew.report.columns import (
    DIFFERENCE,
    METRIC,
    PAIR,
    SE,
    TEST,
    USERS,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.corrections import CORRECTIONS, IN_WORDS, correct
from unskew.stats.pairing import Paired, PairedSample, Pairs, sample, users_left_out
from unskew.stats.segments import Segmentation
from unskew.stats.tests.group_shuffles import Interaction, interaction
from unskew.stats.tests.p_values import (
    PermutationCount,
    TestSettings,
    difference_interval,
    p_values,
)

SEGMENTS = Question(
    name="pairs within segments of users",
    columns=(
        *(METRIC, *PAIR, Column("group", "key", "segment"), USERS),
        *(Column("mean", "fact", "mean a"), Column("mean_against", "fact", "mean b")),
        *(*DIFFERENCE, SE, *TEST),
    ),
    method=Method(estimand="the mean difference a − b of the users of a segment"),
    display=("", "interactions"),
    figures=(Drawing("segments"),),
)
"""A row per metric, pair and segment; no interval and no p with fewer than two users."""
INTERACTIONS = Question(
    name="does the difference differ between segments?",
    columns=(
        *(METRIC, *PAIR, replace(DIFFERENCE[0], label="a − b, all users")),
        *(Column("segments", "count", hidden=True), Column("statistic", "fact", hidden=True)),
        *(*TEST[:1], replace(TEST[1], label="interaction p")),
        *(Column("worst_group", "note", "worst segment of a"),),
        *(Column("worst_value", "fact", "a − b there", form="+"),),
    ),
    method=Method(estimand="the mean difference a − b, and whether it differs between segments"),
)
"""A row per metric and pair.

The difference over all users, the number of `segments` with two users or more, Welch's F as
`statistic` with the p-values of equal mean differences in all of these, and the one of them in
which a does worst against b.
"""
HELD = 1 << 26
"""Bytes of differences that are tested at a time."""
_EQUAL = 1e-12


@dataclass(frozen=True, eq=False)
class _Segment:
    """All pairs on one metric in one segment."""

    metric: str
    name: str
    sample: PairedSample | None
    """None: no user has a value."""
    p: F64

    @property
    def users(self) -> int:
        return 0 if self.sample is None else self.sample.users


Values = Mapping[str, tuple[F64, Mask]]
"""By metric: values users x systems, and whether a user has a value of every system."""


def compare_segments(
    pairing: Paired,
    labels: list[str],
    pairs: Pairs,
    segments: Segmentation,
    settings: TestSettings,
) -> Estimates:
    """Compare the pairs within each segment, and test whether differences differ between them.

    Parameters
    ----------
    pairing
        The values per user.
    labels
        The metrics.
    pairs
        Which systems are compared with which.
    segments
        Of the users of `pairing`.
    settings
        Of `compare`; corrections that need permutations and `rope` are refused.
    """
    if settings.correction is not None:
        choose("correction (with by=…)", settings.correction, CORRECTIONS)
    if settings.rope is not None:
        raise SettingError("rope=… does not go with by=…: leave one of them out")
    values = {label: pairing.scaled(label) for label in labels}
    parts = [
        _segment(label, values[label], pairing.better[label], number, pairs, segments, settings)
        for label in labels
        for number in range(len(segments.names))
    ]
    families = [parts]
    if settings.family == "metric":
        families = [[part for part in parts if part.metric == label] for label in labels]
    rows = pl.concat([_table(family, pairs, pairing.systems, settings) for family in families])
    tests = {label: _interaction(*values[label], pairs, segments, settings) for label in labels}
    tested = _tested(families[0], pairs)
    over = counted(tested, "difference")
    over += " of all metrics" if settings.family == "all" and len(labels) > 1 else ""
    level = 1 - (1 - settings.level) / max(tested, 1)
    method = settings.method(
        PermutationCount(settings.permutations if _draws(settings) else 0, False),
        over=over,
        together=f"each at {100 * level:.4g}%, Bonferroni over {over}",
    )
    return Estimates.of_rows(
        SEGMENTS,
        rows,
        method=method,
        explanation=(segments.rule, _interaction_note(tests, pairs, settings)),
        notes=(
            *(*pairing.rules, *pairing.notes, *segments.notes),
            *_left_out(values, parts),
        ),
        parts={
            "interactions": Estimates.of_rows(
                INTERACTIONS, _tests(values, tests, pairs, rows, pairing.better, settings)
            )
        },
        card={
            **settings.card(),
            "by": segments.by,
            "rule": segments.rule,
            "level": level,
            "shuffles": tests[labels[0]].shuffles,
            "better": {label: pairing.better[label] for label in labels},
        },
    )


def _draws(settings: TestSettings) -> bool:
    return settings.test == "randomisation" or settings.test.startswith("bootstrap")


def _interaction_note(
    tests: Mapping[str, Interaction], pairs: Pairs, settings: TestSettings
) -> str:
    shuffles = next(iter(tests.values())).shuffles
    basis = "the F distribution"
    if shuffles:
        basis = f"the larger p of the F distribution and of {shuffles:,} shuffles of users"
    tested = len(pairs) * (len(tests) if settings.family == "all" else 1)
    note = f"interaction: Welch's F test of equal mean differences in all segments, {basis}"
    if settings.correction is None or tested == 1:
        return note
    return f"{note}; p corrected by {IN_WORDS[settings.correction]} over {tested:,} pairs"


def _segment(
    label: str,
    values: tuple[F64, Mask],
    better: str,
    number: int,
    pairs: Pairs,
    segments: Segmentation,
    settings: TestSettings,
) -> _Segment:
    matrix, is_complete = values
    mine, name = matrix[(segments.code == number) & is_complete], segments.names[number]
    nothing = np.full(len(pairs), np.nan)
    if not len(mine):
        return _Segment(label, name, None, nothing)
    tested = sample(mine, pairs, f"{label}, {name}", settings.threads)
    if tested.users < 2:
        return _Segment(label, name, tested, nothing)
    plain = replace(settings, correction=None, family="metric", progress=None)
    p, _, _ = p_values([tested], [settings.side(better)], plain)
    if settings.progress is not None:
        settings.progress(number + 1, len(segments.names))
    return _Segment(label, name, tested, p[0])


def _tested(family: Sequence[_Segment], pairs: Pairs) -> int:
    """Return how many differences a family has that an interval can be given for."""
    return len(pairs) * sum(part.users > 1 for part in family)


def _table(
    family: Sequence[_Segment], pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
) -> pl.DataFrame:
    """Return a row per metric, pair and segment, corrected over all of them."""
    share = (1 - settings.level) / max(_tested(family, pairs), 1)
    simultaneous = replace(settings, level=1 - share, progress=None)
    table = pl.concat([_rows(part, pairs, systems, simultaneous) for part in family])
    p = table["p"].to_numpy()
    corrected = p if settings.correction is None else correct(p, settings.correction)
    significant = pl.col("p_corrected") <= settings.alpha + _EQUAL
    # Parts are by segment, then by pair: read them pair by pair.
    order = {name: number for number, name in enumerate(dict.fromkeys(table["metric"]))}
    return (
        table.with_columns(p_corrected=pl.Series(corrected))
        .with_columns(significant=pl.col("p_corrected").is_not_nan() & significant)
        .sort(pl.col("metric").replace_strict(order), "_pair", maintain_order=True)
    )


def _rows(
    part: _Segment, pairs: Pairs, systems: tuple[str, ...], settings: TestSettings
) -> pl.DataFrame:
    tested, count = part.sample, len(pairs)
    names = ("mean", "mean_against", "value", "se", "low", "high")
    numbers = dict.fromkeys(names, np.full(count, np.nan))
    if tested is not None:
        limits = difference_interval(tested, settings)
        means = tested.means[pairs.first], tested.means[pairs.second]
        columns = (*means, tested.difference, tested.standard_error, *limits)
        numbers = dict(zip(names, columns, strict=True))
    return pl.DataFrame(
        {
            "metric": [part.metric] * count,
            "_pair": np.arange(count),
            "system": [systems[i] for i in pairs.first],
            "against": [systems[i] for i in pairs.second],
            "group": [part.name] * count,
            "n": [part.users] * count,
            **numbers,
            "p": part.p,
        }
    )


def _interaction(
    matrix: F64, is_complete: Mask, pairs: Pairs, segments: Segmentation, settings: TestSettings
) -> Interaction:
    """Test all pairs, as many at a time as fit in memory: shuffles are the same for all."""
    values, code = matrix[is_complete], segments.code[is_complete]
    step = max(1, HELD // (8 * max(len(values), 1)))
    parts = []
    for low in range(0, len(pairs), step):
        first, second = pairs.first[low : low + step], pairs.second[low : low + step]
        differences = values[:, first] - values[:, second]
        parts.append(interaction(differences, code, seed=settings.seed, threads=settings.threads))
    return replace(
        parts[0],
        statistic=np.concatenate([part.statistic for part in parts]),
        p=np.concatenate([part.p for part in parts]),
    )


def _tests(
    values: Values,
    tests: Mapping[str, Interaction],
    pairs: Pairs,
    rows: pl.DataFrame,
    better: Mapping[str, str],
    settings: TestSettings,
) -> pl.DataFrame:
    """Return a row per metric and pair: the interaction test and the worst segment."""
    parts = []
    for label, test in tests.items():
        mine = rows.filter(pl.col("metric") == label)
        p = test.p
        if settings.family == "metric" and settings.correction is not None:
            p = correct(p, settings.correction)
        matrix, is_complete = values[label]
        overall = matrix[is_complete].mean(axis=0)
        parts.append(
            mine.select("metric", "system", "against")
            .unique(maintain_order=True)
            .with_columns(
                value=pl.Series(overall[pairs.first] - overall[pairs.second]),
                segments=pl.lit(test.segments),
                statistic=pl.Series(test.statistic),
                p=pl.Series(test.p),
                p_corrected=pl.Series(p),
            )
            .hstack(_worst(mine, {"higher": 1, "lower": -1, "neither": None}[better[label]]))
        )
    table = pl.concat(parts)
    if settings.family == "all" and settings.correction is not None:
        corrected = correct(table["p"].to_numpy(), settings.correction)
        table = table.with_columns(p_corrected=pl.Series(corrected))
    finite = pl.when(pl.col("statistic").is_finite()).then("statistic")
    return table.with_columns(statistic=finite)


def _worst(rows: pl.DataFrame, sign: int | None) -> pl.DataFrame:
    """Return the segment in which the first system of each pair does worst against the second."""
    worst: list[tuple[str | None, float | None]] = []
    for _, pair in rows.group_by("system", "against", maintain_order=True):
        estimated = pair.filter(pl.col("n") > 1)
        if sign is None or not estimated.height:
            worst.append((None, None))
            continue
        row = int((estimated["value"] * sign).arg_min() or 0)
        worst.append((estimated["group"][row], estimated["value"][row]))
    schema = {"worst_group": pl.String, "worst_value": pl.Float64}
    return pl.DataFrame(worst, schema, orient="row")


def _left_out(values: Values, parts: Sequence[_Segment]) -> list[str]:
    lines = users_left_out(
        {label: int(np.count_nonzero(~is_complete)) for label, (_, is_complete) in values.items()}
    )
    small = [f"{part.name} ({part.metric})" for part in parts if part.users < 2]
    if small:
        what = counted(len(small), "segment has", "segments have")
        lines.append(f"{what} fewer than 2 users: no interval, no p: {', '.join(small)}")
    return lines
