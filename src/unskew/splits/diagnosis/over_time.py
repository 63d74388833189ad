"""What a figure needs of a split: how many rows each part has over time, and how items drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.groups import grouped_order
from unskew.engine.rng import draw, key_of
from unskew.report.charts import BLUE, GREEN, GREY, INK, VERMILION, Figure, as_figure
from unskew.report.text import counted, number
from unskew.splits.diagnosis.check import Number, Reading, days, fact, percent, rule, unknown
from unskew.splits.diagnosis.parts import (
    DAY,
    Log,
    PartRows,
    SplitParts,
    calendar_of,
    starts,
    times_of,
)

DRIFT_DRAWS = 20
"""Draws under no drift."""
DRIFT_ROWS = 400_000
"""The most rows that a distance is computed from: of more, those of users drawn by a hash."""
PERIODS = 10
"""Parts of training of equal size, whose distance to the test is drawn."""
MIXED = "Training and test cover the same time: nothing drifts from one to the other."
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Distance(NamedTuple):
    """How different two distributions over items are, and what chance would give."""

    value: float
    """Total variation: the share of rows that would have to change their item."""
    chance: float
    """Its mean after the blocks of users changed sides."""
    highest: float
    """The largest of these."""


def distance(
    early: tuple[I32, I32],
    late: tuple[I32, I32],
    size: tuple[int, int],
    salt: str,
    draws: int = DRIFT_DRAWS,
) -> Distance:
    """Compare the items of two sets of rows, beside what users alone would explain.

    Parameters
    ----------
    early, late
        Users and items of the rows.
    size
        How many users and items there are.
    salt
        Part of the key of the draws.
    draws
        How often blocks change sides.
    """
    from unskew.splits.diagnosis import kernels

    if not early[0].size or not late[0].size:
        return Distance(float("nan"), float("nan"), float("nan"))
    user, item = (np.concatenate(pair) for pair in zip(early, late, strict=True))
    side = np.repeat(np.array([0, 1], np.uint8), [early[0].size, late[0].size])
    start = starts(np.bincount(user, minlength=size[0]))
    order = grouped_order(user, start)
    result = kernels.swapped_distances(
        start,
        frozen(item[order]),
        frozen(side[order]),
        size[1],
        np.uint64(key_of(0, "diagnosis/drift", salt)),
        draws,
        _alone(early[0], late[0], size[0]),
    )
    sample = result[1:][np.isfinite(result[1:])]
    if not sample.size:
        return Distance(float(result[0]), float("nan"), float("nan"))
    return Distance(float(result[0]), float(sample.mean()), float(sample.max()))


def some_users(users: int, rows: int, most_rows: int, salt: str) -> Mask | None:
    """Mark users by a hash, so that about so many rows are theirs; None = all."""
    if rows <= most_rows:
        return None
    limit = np.uint64(most_rows / rows * 2.0**64)
    return draw(0, f"diagnosis/some-users/{salt}", np.arange(users)) < limit


def of_users(rows: PartRows, users: Mask | None) -> tuple[I32, I32]:
    """Return users and items of the rows of some users."""
    if users is None:
        return rows.user, rows.item
    chosen = users[rows.user]
    return rows.user[chosen], rows.item[chosen]


def _alone(early: I32, late: I32, users: int) -> float:
    """Return the share of users with rows on the late side alone, among those on one side."""
    first, then = (np.bincount(side, minlength=users) > 0 for side in (early, late))
    only = int(np.count_nonzero(then & ~first)), int(np.count_nonzero(first & ~then))
    return only[0] / max(sum(only), 1)


@rule
def popularity_drift(parts: SplitParts) -> Reading:
    """Compare the items of late training and of the test."""
    if parts.is_mixed:
        return unknown(MIXED)
    late, test, label = parts.late_training, parts.test_rows, parts.split.label
    size = len(parts.train.users), len(parts.train.items)
    chosen = some_users(size[0], late.user.size + test.user.size, DRIFT_ROWS, label)
    result = distance(of_users(late, chosen), of_users(test, chosen), size, label)
    if not np.isfinite(result.chance):
        return unknown("Too few rows to compare late training and test.")
    beyond = "beyond" if result.value > result.highest else "not beyond"
    sentence = (
        f"The items of late training and of the test differ by {percent(result.value)} (total "
        f"variation), {beyond} what differences between users give: {percent(result.chance)} on "
        f"average, {percent(result.highest)} at most in {DRIFT_DRAWS} draws."
    )
    counts = {
        "chance": result.chance,
        "highest_of_draws": result.highest,
        "late_training_rows": int(late.user.size),
    }
    short = f"{percent(result.value)} (by chance {percent(result.chance)})"
    return fact(result.value, sentence, counts, short)


@rule
def rating_drift(parts: SplitParts) -> Reading:
    """Measure how much higher test ratings are than those of late training."""
    if parts.test.implicit:
        return unknown("The feedback is implicit: values are no opinions.")
    if parts.is_mixed:
        return unknown(MIXED)
    users = len(parts.train.users)
    difference, error = mean_shift(parts.late_training, parts.test_rows, users)
    low, high = difference - 1.96 * error, difference + 1.96 * error
    shift, limits = (
        number(difference, 3, signed=True),
        [number(limit, 3, signed=True) for limit in (low, high)],
    )
    sentence = (
        f"The mean test rating differs by {shift} from that of late training (95% interval "
        f"{limits[0]} to {limits[1]}, users drawn)."
    )
    counts = {"low": low, "high": high, "standard_error": error}
    return fact(difference, sentence, counts, f"{shift} ± {1.96 * error:.3f}")


def mean_shift(early: PartRows, late: PartRows, users: int) -> tuple[float, float]:
    """Return the difference of mean values, late less early, and its error with users drawn."""
    influence, means = np.zeros(users), []
    for sign, part in ((-1.0, early), (1.0, late)):
        mean = float(part.value.mean())
        means.append(mean)
        sums = np.bincount(part.user, part.value, minlength=users).astype(np.float64)
        sums -= mean * np.bincount(part.user, minlength=users)
        influence += sign * sums / part.user.size
    return means[1] - means[0], float(np.sqrt(influence @ influence))


@rule
def activity_drift(parts: SplitParts) -> Reading:
    """Compare the rows a day of the test with those of late training."""
    if parts.is_mixed:
        return unknown(MIXED)
    late, test = parts.late_training, parts.test_rows
    spans = [
        max((int(time.max()) - int(time.min())) / DAY, 1 / 24) for time in (late.time, test.time)
    ]
    rates = [late.user.size / spans[0], test.user.size / spans[1]]
    users = [int(np.count_nonzero(np.bincount(part.user))) for part in (late, test)]
    sentence = (
        f"{rates[0]:,.1f} rows a day of {counted(users[0], 'user')} in late training "
        f"({days(spans[0])}), {rates[1]:,.1f} of {counted(users[1], 'user')} in the test "
        f"({days(spans[1])})."
    )
    counts = {"late_training_per_day": rates[0], "test_per_day": rates[1]}
    return fact(rates[1] / rates[0], sentence, counts)


@rule
def seasonality(parts: SplitParts) -> Reading:
    """Compare weekdays, and look whether the test covers whole weeks."""
    per_day = weekday_rates(parts.log)
    weeks = (int(parts.test_time.max()) - int(parts.test_time.min())) / DAY / 7
    counts: dict[str, Number] = {"test_weeks": weeks}
    if np.isnan(per_day).any() or per_day.min() == 0:
        sentence = f"A weekday has no row; the test lasts {weeks:.1f} weeks."
        return fact(None, sentence, counts, f"test of {weeks:.1f} weeks")
    ratio = float(per_day.max() / per_day.min())
    busiest, calmest = WEEKDAYS[int(per_day.argmax())], WEEKDAYS[int(per_day.argmin())]
    train, test = (calendar_of(time)[0] for time in (parts.train_time, parts.test_time))
    shift = float(0.5 * np.abs(test / test.sum() - train / train.sum()).sum())
    sentence = (
        f"{busiest} has {ratio:.2f} times the rows of {calmest}; the test covers {weeks:.1f} "
        f"weeks, and {percent(shift)} of its rows would have to change their weekday to be spread "
        "as in training."
    )
    short = f"{busiest} {ratio:.2f} times {calmest}, test of {weeks:.1f} weeks"
    if parts.log.resolution < DAY:
        hours = calendar_of(parts.log.ordered_time)[1]
        counts["busiest_hour_utc"] = int(hours.argmax())
        counts["share_of_busiest_hour"] = float(hours.max() / hours.sum())
    return fact(ratio, sentence, {**counts, "weekday_shift": shift}, short)


def weekday_rates(log: Log) -> F64:
    """Return the mean number of rows of each weekday; NaN where the log holds no such day."""
    assert log.time is not None
    first, last = int(log.ordered_time[0]) // DAY, int(log.ordered_time[-1]) // DAY
    there = np.bincount((np.arange(first, last + 1) + 3) % 7, minlength=7)
    rows, _ = calendar_of(log.ordered_time)
    rates: F64 = np.divide(rows, there, out=np.full(7, np.nan), where=there > 0)
    return rates


BINS = 120
"""Steps of time in which rows are counted."""
MOST_ROWS, DRAWS = 40_000, 5
"""The most rows of a period of training and of the test that are compared, and the draws."""


class RowsOverTime(NamedTuple):
    """The rows of each part of a split over time."""

    label: str
    edges: I64
    """Ends of the steps, in microseconds since 1970."""
    rows: Mapping[str, I64]
    """By part: the rows in each step."""
    spans: Mapping[str, tuple[int, int]]
    """By part: its first and last time."""


class DriftPeriod(NamedTuple):
    """How different the items of a period of training and of the test are."""

    label: str
    """Of the split."""
    first: int
    last: int
    distance: Distance


def rows_over_time(parts: SplitParts) -> RowsOverTime | None:
    """Count the rows of each part over time; None without time stamps."""
    if not parts.has_time or parts.log.time is None:
        return None
    times = {"training": parts.train_time, "test": parts.test_time}
    times |= {
        name: times_of(part) for name, part in parts.validation.items() if part.time is not None
    }
    spans = {name: (int(time.min()), int(time.max())) for name, time in times.items() if time.size}
    bounds = [int(end) for end in parts.log.ordered_time[[0, -1]]]
    low, high = min(bounds[0], *(span[0] for span in spans.values())), bounds[1]
    high = max(high, *(span[1] for span in spans.values()))
    width = max(-(-(high - low + 1) // BINS), 1)
    rows = {
        name: np.bincount((time - low) // width, minlength=BINS)[:BINS]
        for name, time in times.items()
    }
    return RowsOverTime(parts.split.label, low + width * np.arange(BINS + 1), rows, spans)


def drift_of(parts: SplitParts) -> tuple[DriftPeriod, ...]:
    """Compare the items of each tenth of training with those of the test."""
    if not parts.has_time or parts.is_mixed or len(parts.train) < 10 * PERIODS:
        return ()
    label, train = parts.split.label, parts.train
    size = len(train.users), len(train.items)
    # A tenth of training and the whole test are compared: as many users as give that many rows.
    rows = len(train) // PERIODS + len(parts.test)
    chosen = some_users(size[0], rows, MOST_ROWS, f"{label}/period")
    test = of_users(parts.test_rows, chosen)
    mine = slice(None) if chosen is None else chosen[train.user]
    user, item, time = train.user[mine], train.item[mine], parts.train_time[mine]
    if time.size < PERIODS:
        return ()
    places = np.linspace(0, time.size - 1, PERIODS + 1).astype(np.int64)
    edges = np.partition(time, places)[places]
    period = np.minimum(np.searchsorted(edges[1:], time, side="right"), PERIODS - 1)
    result = []
    for index in np.unique(period).tolist():
        inside = period == index
        early = frozen(user[inside]), frozen(item[inside])
        measured = distance(early, test, size, f"{label}/period", DRAWS)
        result.append(DriftPeriod(label, int(edges[index]), int(edges[index + 1]), measured))
    return tuple(result)


COLOURS = {"training": BLUE, "test": VERMILION, "validation": GREEN}
MOST_BARS = 40
"""The most splits of which every part is drawn as a bar."""


def over_time(timelines: Sequence[RowsOverTime]) -> Figure:
    """Draw the rows of each part over time; of several splits, when parts begin and end.

    Parameters
    ----------
    timelines
        One for each split.
    """
    return _rows(timelines[0]) if len(timelines) == 1 else _windows(timelines[:MOST_BARS])


def _moment(micros: int) -> str:
    return str(np.datetime64(int(micros), "us").astype("M8[s]"))


def _colour(parts: Sequence[str], symbol: str) -> Any:
    import altair as alt

    scale = {part: COLOURS.get(part, GREY) for part in parts}
    color = alt.Color("part:N").scale(domain=list(scale), range=list(scale.values()))
    return color.legend(symbolType=symbol)


def _rows(timeline: RowsOverTime) -> Figure:
    """Draw the rows of each part on top of each other."""
    import altair as alt

    parts = sorted(timeline.rows, key=lambda part: timeline.spans.get(part, (0, 0)))
    rows = [
        {"part": part, "from": _moment(low), "rows": int(number)}
        for part in parts
        for low, number in zip(timeline.edges, timeline.rows[part], strict=False)
    ]
    width = (int(timeline.edges[1]) - int(timeline.edges[0])) / 86_400e6
    chart = (
        alt.Chart(alt.NamedData(name="rows"), width=620, height=240)
        .mark_area(interpolate="step-after", opacity=1)
        .encode(
            x=alt.X("from:T", title=None),
            y=alt.Y("rows:Q", title=f"rows in {width:,.1f} days").stack("zero").axis(tickMinStep=1),
            color=_colour(parts, "square"),
            order=alt.Order("part:N"),
        )
    )
    totals = ", ".join(f"{int(timeline.rows[part].sum()):,} {part}" for part in parts)
    return as_figure(chart, "Rows over time", [f"{timeline.label}: {totals} rows"], rows)


def _windows(timelines: Sequence[RowsOverTime]) -> Figure:
    """Draw a bar from the first to the last row of each part of each split."""
    import altair as alt

    parts = list(dict.fromkeys(part for timeline in timelines for part in timeline.spans))
    rows = [
        {"split": timeline.label, "part": part, "from": _moment(low), "to": _moment(high)}
        for timeline in timelines
        for part, (low, high) in timeline.spans.items()
    ]
    labels = list(dict.fromkeys(timeline.label for timeline in timelines))
    chart = (
        alt.Chart(alt.NamedData(name="rows"), width=620, height=alt.Step(22))
        .mark_bar(opacity=0.75, height=9)
        .encode(
            x=alt.X("from:T", title=None),
            x2="to:T",
            y=alt.Y("split:N", title=None, sort=labels),
            yOffset=alt.YOffset("part:N", sort=parts),
            color=_colour(parts, "square"),
        )
    )
    return as_figure(
        chart, "Parts over time", [f"{len(timelines):,} splits, first to last row of a part"], rows
    )


def drift(periods: Sequence[DriftPeriod]) -> Figure:
    """Draw how different the items of each period of training and of the test are.

    Parameters
    ----------
    periods
        Of one split or of several; the last split is drawn.
    """
    import altair as alt

    label = periods[-1].label
    last_periods = [period for period in periods if period.label == label]
    kinds = {"measured": VERMILION, "expected without drift": GREY}
    rows = [
        {"from": _moment((period.first + period.last) // 2), "kind": kind, "distance": value}
        for period in last_periods
        for kind, value in zip(kinds, (period.distance.value, period.distance.chance), strict=True)
        if np.isfinite(value)
    ]
    color = alt.Color("kind:N").scale(domain=list(kinds), range=list(kinds.values()))
    base = alt.Chart(alt.NamedData(name="rows"), width=620, height=240).encode(
        x=alt.X("from:T", title="middle of a tenth of the training rows"),
        y=alt.Y("distance:Q", title="total variation to the test").scale(domain=[0, 1]),
        color=color.legend(symbolType="stroke"),
    )
    chart = base.mark_line(strokeWidth=2) + base.mark_point(filled=True, size=45, stroke=INK)
    notes = [
        f"{label}: share of rows that would have to change their item",
        "without drift: blocks of users change sides",
    ]
    return as_figure(chart, "Drift of items", notes, rows)
