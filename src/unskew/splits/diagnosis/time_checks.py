"""Time order between parts: whether training knows what comes later, of users, of items."""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I64, Mask
from unskew.report.text import counted
from unskew.splits.diagnosis.check import (
    Number,
    Reading,
    by_share,
    days,
    fact,
    percent,
    rule,
    unknown,
)
from unskew.splits.diagnosis.parts import (
    DAY,
    NO_TIME,
    PAIR,
    TIME,
    VALUE,
    Log,
    SplitParts,
    matches,
    mean_later,
    times_of,
)
from unskew.splits.diagnosis.thresholds import (
    EVEN_STEPS,
    FIRST_YEAR,
    ONE_MOMENT,
    ONE_SITTING,
    SITTING_ROWS,
)


@rule
def future(parts: SplitParts) -> Reading:
    """Measure which share of training is later than a test row, on average over test rows."""
    ordered, share = parts.sorted_test_time, parts.future
    after = int(np.count_nonzero(parts.train_time > ordered[0]))
    latest = int(parts.train_time.max())
    early = int(np.searchsorted(ordered, latest, side="left"))
    counts = {
        "training_rows_after_first_test_row": after,
        "share_of_training": after / parts.train_time.size,
        "test_rows_before_last_training_row": early,
        "share_of_test": early / ordered.size,
    }
    if not after:
        gap = days((int(ordered[0]) - latest) / DAY)
        return Reading("ok", 0.0, f"The first test row comes {gap} after training ends.", counts)
    why = ""
    if parts.is_mixed:
        why = " A random split, or a cut for each user alone, does this by construction."
    sentence = (
        f"Systems learn from the future: on average {percent(share)} of the training rows are "
        f"later than a test row.{why}"
    )
    return Reading(by_share(share), share, sentence, counts)


@rule
def user_order(parts: SplitParts) -> Reading:
    """Measure which share of test rows is older than their user's last training row."""
    older = parts.test_time < parts.last_trained[parts.test.user]
    rows, share = int(np.count_nonzero(older)), float(older.mean())
    users = int(np.count_nonzero(np.bincount(parts.test.user[older], minlength=1)))
    counts = {"test_rows": rows, "users": users}
    if not rows:
        return Reading("ok", 0.0, "No test row is older than its user's training.", counts)
    sentence = (
        f"{percent(share)} of the test rows are older than a training row of the same user "
        f"({counted(users, 'user')}): the user's later choices are known when earlier ones are "
        "predicted."
    )
    return Reading(by_share(share), share, sentence, counts)


@rule
def unborn_items(parts: SplitParts) -> Reading:
    """Measure which share of training items is not born yet at a test row, on average."""
    trained = parts.item_counts[0] > 0
    births, ordered = parts.births[trained], parts.sorted_test_time
    share = mean_later(births, ordered)
    later = int(np.count_nonzero(births > ordered[0]))
    counts = {"training_items": int(births.size), "born_after_first_test_row": later}
    if not share:
        sentence = "Every training item had its first row before the test begins."
        return Reading("ok", 0.0, sentence, counts)
    sentence = (
        f"On average {percent(share)} of the training items have no row yet at the time of a test "
        "row: that they will exist is known from the future."
    )
    return Reading(by_share(share), share, sentence, counts)


@rule
def torn_sessions(parts: SplitParts) -> Reading:
    """Measure which share of test rows a training row of the same session follows."""
    if parts.log.resolution >= DAY:
        return unknown("Time stamps are dates: sessions cannot be told.")
    torn, crossing, users, _, _ = parts.target_places
    rows = len(parts.test)
    counts = {"test_rows": torn, "users_with_session_across_parts": crossing, "warm_users": users}
    share = torn / rows
    if not torn:
        sentence = (
            "No test row is followed by a training row of its session; "
            f"{counted(crossing, 'user has', 'users have')} a session that begins in training and "
            "goes on in the test."
        )
        return Reading("ok", 0.0, sentence, counts)
    sentence = (
        f"{percent(share)} of the test rows are followed by a training row of the same session: "
        "the rest of the sitting gives the answer away."
    )
    return Reading(by_share(share), share, sentence, counts)


@rule
def validation(parts: SplitParts) -> Reading:
    """Look whether validation rows come after test rows, or are among them."""
    if not parts.validation:
        return unknown("The split has no validation part.")
    later, copies, shared, trained = 0.0, 0, 0, 0.0
    for part in parts.validation.values():
        mark = matches(parts.test, part)
        shared += int(np.count_nonzero(mark))
        copies += int(np.count_nonzero(mark == _exact(is_timed=parts.has_time)))
        if parts.has_time and part.time is not None:
            later = max(later, mean_later(times_of(part), parts.sorted_test_time))
            trained = max(trained, mean_later(parts.train_time, np.sort(part.time)))
    rows = len(parts.test)
    counts = {
        "validation_rows": sum(map(len, parts.validation.values())),
        "mean_share_after_test_row": later,
        "test_rows_in_validation": copies,
        "pairs_in_both": shared,
        "mean_share_of_training_after_validation_row": trained,
    }
    light = by_share(max(later, copies / rows))
    texts = []
    if copies:
        texts.append(f"{counted(copies, 'test row is', 'test rows are')} in validation too")
    if later:
        texts.append(f"on average {percent(later)} of validation is later than a test row")
    if trained:
        texts.append(f"on average {percent(trained)} of training is later than a validation row")
        light = "look" if light == "ok" else light
    if not texts:
        order = "comes before the test and " if parts.has_time else ""
        sentence = f"Validation {order}shares no row with the test."
    else:
        sentence = f"{'; '.join(texts)}: systems are chosen by what they should not know."
        sentence = sentence[0].upper() + sentence[1:]
    return Reading(light, max(later, copies / rows, trained), sentence, counts)


@rule
def copies(parts: SplitParts) -> Reading:
    """Measure which share of test rows is in training too."""
    mark, rows = parts.in_training, len(parts.test)
    exact = mark == _exact(is_timed=parts.is_timed)
    number = int(np.count_nonzero(exact))
    counts = {
        "pairs_in_both": int(np.count_nonzero(mark)),
        "same_value": int(np.count_nonzero(mark & VALUE)),
        "copies": number,
    }
    if not number:
        return Reading("ok", 0.0, "No test row is in training too.", counts)
    share = number / rows
    if parts.is_timed and _on_the_day_of_the_cut(parts, exact):
        sentence = (
            f"{counted(number, 'test row has', 'test rows have')} the same user, item, value and "
            "date in training, all on the day of the cut: repeats within that day, or copies."
        )
        return Reading("look", share, sentence, counts)
    if not parts.is_timed and parts.test.implicit:
        sentence = (
            f"{percent(share)} of the test pairs are in training too; without time stamps a copy "
            "cannot be told from a repeat."
        )
        return Reading("look", share, sentence, counts)
    what = "time and value" if parts.is_timed else "value"
    sentence = (
        f"{percent(share)} of the test rows ({number:,}) are in training too, with the same "
        f"{what}: the answer is known."
    )
    return Reading(by_share(share), share, sentence, counts)


def _on_the_day_of_the_cut(parts: SplitParts, exact: Mask) -> bool:
    """Tell whether stamps are dates and all copies are on the one day that both parts share."""
    if parts.log.resolution < DAY or parts.train.time is None or parts.test.time is None:
        return False
    day = parts.test.time.min()
    return bool(day == parts.train.time.max() and (parts.test.time[exact] == day).all())


def _exact(*, is_timed: bool) -> int:
    """Return the bits of a copy: pair and value, and the time where there are stamps."""
    return PAIR | VALUE | TIME if is_timed else PAIR | VALUE


@rule
def repeats(parts: SplitParts) -> Reading:
    """Measure which share of test rows repeats a pair of training."""
    mark = parts.in_training
    number = int(np.count_nonzero((mark > 0) & (mark != _exact(is_timed=parts.is_timed))))
    share = number / len(parts.test)
    what = "at another time" if parts.is_timed else "with another value"
    sentence = f"Training has {percent(share)} of the test pairs too, {what}."
    return fact(share, sentence, {"rows": number})


FEW_ROWS = 200
"""With fewer rows nothing is said about shuffled stamps or row numbers."""


@rule
def time_stamps(parts: SplitParts) -> Reading:
    """Look whether time stamps are the times at which things happened."""
    log = parts.log
    if log.time is None or log.history is None or not len(log):
        return unknown(NO_TIME)
    ordered = log.ordered_time
    if ordered[0] == ordered[-1]:
        sentence = "All rows carry the same time stamp: nothing about time can be checked."
        return Reading("look", 1.0, sentence, {"different_stamps": 1})
    faults: list[str] = []
    steps = np.diff(ordered)
    different = int(np.count_nonzero(steps)) + 1
    counts: dict[str, Number] = {"different_stamps": different}
    faults += _spacing(ordered, steps, different, counts)
    faults += _sittings(log, counts)
    if len(log) >= FEW_ROWS:
        faults += _independence(log, counts)
    if not faults:
        return Reading("ok", 0.0, "Time stamps look like times.", counts)
    return Reading("look", float(len(faults)), " ".join(faults), counts)


def _spacing(ordered: I64, steps: I64, different: int, counts: dict[str, Number]) -> list[str]:
    """Look at the stamps as numbers."""
    faults = []
    rows = ordered.size
    middle = int(ordered[rows // 2])
    if middle < (FIRST_YEAR - 1970) * 365.25 * DAY:
        year = np.datetime64(middle, "us").astype("M8[Y]")
        faults.append(
            f"The median time stamp lies in {year}: row numbers, or another unit than was taken."
        )
    if rows >= FEW_ROWS and different >= 0.9 * rows:
        positive = steps[steps > 0]
        even = float((positive == np.median(positive)).mean())
        counts["share_of_even_steps"] = even
        if even >= EVEN_STEPS:
            faults.append(
                f"{percent(even)} of the steps between time stamps are equal: they number the rows."
            )
    edges = np.flatnonzero(np.append(True, steps > 0))
    largest = float(np.diff(np.append(edges, rows)).max() / rows)
    counts["largest_share_of_one_stamp"] = largest
    if largest >= ONE_MOMENT and rows >= FEW_ROWS:
        faults.append(f"{percent(largest)} of the rows carry one and the same time stamp.")
    return faults


def _sittings(log: Log, counts: dict[str, Number]) -> list[str]:
    """Look whether users give all their rows at once."""
    assert log.history is not None
    rows = log.user_counts
    active = rows >= SITTING_ROWS
    if not active.any() or log.resolution > 60_000_000:
        return []
    share = float(np.median(log.history.largest[active] / rows[active]))
    counts["median_share_of_largest_session"] = share
    if share < ONE_SITTING:
        return []
    return [
        f"The median user gave {percent(share)} of the rows in one session: they were entered "
        "at once, or a user is a session."
    ]


def _independence(log: Log, counts: dict[str, Number]) -> list[str]:
    """Compare the variance of times between users, and between items, with that of shuffled ones.

    Times that belong to rows differ between users (who come, go and sit down) or between items
    (which are born). Of shuffled ones F is 1 up to chance.
    """
    from unskew.splits.diagnosis import kernels

    assert log.time is not None
    deviation: F64 = (log.time - float(log.time.mean())).astype(np.float64)
    deviation /= max(float(np.abs(deviation).max()), 1.0)
    total = float(deviation @ deviation)
    scores = {}
    for name, code, size in (
        ("users", log.user, len(log.users)),
        ("items", log.item, len(log.items)),
    ):
        number = np.zeros(size, np.int64)
        between = kernels.one_way_variance(code, deviation, np.zeros(size), number)
        groups, rows = int(np.count_nonzero(number)), len(log)
        if groups < 10 or rows - groups < 0.5 * rows:
            return []  # too few rows per group to tell
        f = (between / (groups - 1)) / ((total - between) / (rows - groups))
        scores[name] = (f - 1.0) / np.sqrt(2.0 / (groups - 1) + 2.0 / (rows - groups))
        counts[f"z_of_times_between_{name}"] = float(scores[name])
    if max(scores.values()) >= 4.0:
        return []
    return [
        "Time stamps do not depend on users or items: they were shuffled, or everybody and "
        "everything was there all the time."
    ]
