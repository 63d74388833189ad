"""Time order between parts: whether training knows what comes later, of users, of items."""

from __future__ import annotations

import numpy as np

from unskew.report.text import counted
from unskew.splits.diagnosis.check import Reading, by_share, days, percent, rule, unknown
from unskew.splits.diagnosis.parts import DAY, GAP, Parts, mean_later, times_of
from unskew.splits.diagnosis.thresholds import LEAK_SHARE


@rule(
    "future",
    "Training after test",
    threshold=(
        f"red from a mean of {percent(LEAK_SHARE)} of the training rows that are later than a "
        "test row, yellow above 0"
    ),
    remedy=(
        "Cut all users at one moment (splits.Temporal, --protocol temporal); or say that the "
        "score is about filling gaps in known histories, not about what comes next."
    ),
    needs_time=True,
)
def future(parts: Parts) -> Reading:
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


@rule(
    "user-order",
    "Test before the same user's training",
    threshold=f"red from {percent(LEAK_SHARE)} of test rows, yellow above 0",
    remedy=(
        "Keep the last rows of each user for the test (splits.LeaveOut(pick='last'), --pick last), "
        "or cut all users at one moment."
    ),
    needs_time=True,
)
def user_order(parts: Parts) -> Reading:
    """Measure which share of test rows is older than their user's last training row."""
    older = parts.test_time < parts.user_times.train_last[parts.test.user]
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


@rule(
    "unborn-items",
    "Items from the future in training",
    threshold=(
        f"red from a mean of {percent(LEAK_SHARE)} of the training items that have no row "
        "up to a test row, yellow above 0"
    ),
    remedy="Cut all users at one moment: then training holds no item that is born later.",
    needs_time=True,
)
def unborn_items(parts: Parts) -> Reading:
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


@rule(
    "torn-sessions",
    "Sessions torn between parts",
    threshold=(
        f"red from {percent(LEAK_SHARE)} of test rows that a training row of the same session "
        f"follows (sessions end with {GAP // 60_000_000} minutes without a row), yellow above 0"
    ),
    remedy="Split between sessions, not within them: keep the rows of a session together.",
    needs_time=True,
)
def torn_sessions(parts: Parts) -> Reading:
    """Measure which share of test rows a training row of the same session follows."""
    if parts.log.resolution >= DAY:
        return unknown("Time stamps are dates: sessions cannot be told.")
    torn, crossing, users, _, _ = target_places(parts)
    rows = len(parts.test)
    counts = {"test_rows": torn, "users_with_session_across_parts": crossing, "warm_users": users}
    share = torn / rows
    if not torn:
        sentence = f"No test row is followed by a training row of its session; {_across(counts)}"
        return Reading("ok", 0.0, sentence, counts)
    sentence = (
        f"{percent(share)} of the test rows are followed by a training row of the same session: "
        "the rest of the sitting gives the answer away."
    )
    return Reading(by_share(share), share, sentence, counts)


def _across(counts: dict[str, int]) -> str:
    users = counted(counts["users_with_session_across_parts"], "user has", "users have")
    return f"{users} a session that begins in training and goes on in the test."


def target_places(parts: Parts) -> tuple[int, int, int, float, int]:
    """Return where test rows stand among the rows of their users; see the kernel."""
    from unskew.splits.diagnosis import kernels

    known = vars(parts).get("_target_places")
    if known is None:
        at = parts.user_times
        known = kernels.targets_in_time(
            parts.test.start,
            parts.test_time,
            parts.train.start,
            parts.train_time,
            at.train_last,
            at.test_first,
            GAP,
        )
        vars(parts)["_target_places"] = known
    result: tuple[int, int, int, float, int] = known
    return result


@rule(
    "validation",
    "Validation and test",
    threshold=(
        f"red from a mean of {percent(LEAK_SHARE)} of the validation rows that are later than "
        f"a test row, or {percent(LEAK_SHARE)} of test rows in both; yellow above 0, or if "
        "training is later than validation"
    ),
    remedy="Cut twice: training, then validation, then test.",
)
def validation(parts: Parts) -> Reading:
    """Look whether validation rows come after test rows, or are among them."""
    if not parts.validation:
        return unknown("The split has no validation part.")
    later, copies, shared, trained = 0.0, 0, 0, 0.0
    for one in parts.validation.values():
        both, exact = _in_both(parts, one)
        shared, copies = shared + both, copies + exact
        if parts.has_time and one.time is not None:
            later = max(later, mean_later(times_of(one), parts.sorted_test_time))
            trained = max(trained, mean_later(parts.train_time, np.sort(one.time)))
    rows = len(parts.test)
    counts = {
        "validation_rows": sum(map(len, parts.validation.values())),
        "mean_share_after_test_row": later,
        "test_rows_in_validation": copies,
        "pairs_in_both": shared,
        "mean_share_of_training_after_validation_row": trained,
    }
    light = min(by_share(later), by_share(copies / rows), key=_badness)
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


def _badness(light: str) -> int:
    return ("leak", "look", "ok").index(light)


def _in_both(parts: Parts, other: object) -> tuple[int, int]:
    """Count test pairs that another part has, and those with the same time and value."""
    from unskew.splits.diagnosis.copy_checks import matches

    mark = matches(parts.test, other)  # type: ignore[arg-type]
    timed = parts.has_time
    exact = mark == 7 if timed else mark == 3
    return int(np.count_nonzero(mark)), int(np.count_nonzero(exact))
