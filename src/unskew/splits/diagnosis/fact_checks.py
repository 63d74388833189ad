"""Facts without a judgement: sizes, cold users and items, and how the log looks in time."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from unskew.arrays import I64
from unskew.data.steps import Step
from unskew.report.text import counted
from unskew.splits.diagnosis.check import (
    Number,
    Reading,
    by_share,
    days,
    fact,
    listed,
    percent,
    rule,
    unknown,
)
from unskew.splits.diagnosis.parts import DAY, NEVER, NO_TIME, SplitParts, mean_of
from unskew.splits.diagnosis.thresholds import CUT_OFF_SURPRISE

POWER = 1.959964 + 0.841621
"""Standard errors between 0 and a difference that is found with 80 % probability at 5 %."""


@rule
def sizes(parts: SplitParts) -> Reading:
    """Count rows, users and items of the parts."""
    train, test, facts = len(parts.train), len(parts.test), parts.counts.facts
    train_users, test_users = facts["train_users"], facts["test_users"]
    train_items, test_items = facts["train_items"], facts["test_items"]
    share = test / (train + test)
    counts = {
        "train_rows": train,
        "test_rows": test,
        "train_users": train_users,
        "test_users": test_users,
        "train_items": train_items,
        "test_items": test_items,
        "train_sequence": train / train_users,
        "test_sequence": test / test_users,
        "train_density": train / (train_users * train_items),
        "test_density": test / (test_users * test_items),
        **{f"{name}_rows": len(part) for name, part in parts.validation.items()},
    }
    sentence = (
        f"{train:,} training rows of {counts['train_users']:,} users and {counts['train_items']:,} "
        f"items, {test:,} test rows of {counts['test_users']:,} users and {counts['test_items']:,} "
        f"items; {counts['train_sequence']:.1f} and {counts['test_sequence']:.1f} rows per user."
    )
    return fact(share, sentence, counts)


@rule
def test_size(parts: SplitParts) -> Reading:
    """Count the test users, and say which difference between two systems would be seen."""
    users = parts.counts.facts["test_users"]
    smallest = POWER / math.sqrt(users)
    sentence = (
        f"{counted(users, 'test user')}: between two systems, a difference of {smallest:.3f} "
        "standard deviations of the users' differences is found with 80% probability (two-sided "
        "5%)."
    )
    counts = {"smallest_difference_in_deviations": smallest}
    return fact(float(users), sentence, counts, f"{users:,} (can tell {smallest:.2f} sd)")


@rule
def cold_users(parts: SplitParts) -> Reading:
    """Measure which share of test users, and of test rows, has no training row."""
    facts, (trained, tested) = parts.counts.facts, parts.user_counts
    cold_users, test_users = facts["cold_users"], facts["test_users"]
    cold = int(tested[trained == 0].sum())
    share, of_rows = cold_users / test_users, percent(cold / len(parts.test))
    sentence = (
        f"{percent(share)} of the test users ({cold_users:,}) have no training row; they "
        f"have {of_rows} of the test rows."
    )
    short = f"{percent(share)} ({of_rows} of rows)"
    return fact(share, sentence, {"users": cold_users, "rows": cold}, short)


@rule
def cold_items(parts: SplitParts) -> Reading:
    """Measure which share of test items has no training row, and count those that are new."""
    trained, tested = parts.item_counts
    cold = (tested > 0) & (trained == 0)
    number, rows = parts.counts.facts["cold_items"], int(tested[cold].sum())
    share, of_rows = number / parts.counts.facts["test_items"], percent(rows / len(parts.test))
    counts = {"items": number, "rows": rows}
    sentence = (
        f"{percent(share)} of the test items ({number:,}) have no training row; they have "
        f"{of_rows} of the test rows."
    )
    if parts.has_time and number:
        new = int(np.count_nonzero(parts.births[cold] >= parts.test_time.min()))
        counts["new_items"] = new
        sentence += f" {counted(new, 'of them is', 'of them are')} born in the test period."
    short = f"{percent(share)} ({of_rows} of rows)"
    return fact(share, sentence, counts, short)


@rule
def time_frame(parts: SplitParts) -> Reading:
    """Show from when to when the parts go."""
    texts: list[str] = []
    counts: dict[str, Number] = {}
    for name, time in (("training", parts.train_time), ("test", parts.test_time)):
        low, high = (int(bound) for bound in (time.min(), time.max()))
        texts.append(f"{name} {_date(low)} to {_date(high)} ({days((high - low) / DAY)})")
        counts |= {f"{name}_first": _date(low), f"{name}_last": _date(high)}
    span = max(parts.train_time.max(), parts.test_time.max()) - min(
        parts.train_time.min(), parts.test_time.min()
    )
    sentence = f"{texts[0][0].upper()}{texts[0][1:]}, {texts[1]}."
    return fact(float(span) / DAY, sentence, counts)


def _date(micros: int) -> str:
    return str(np.datetime64(micros, "us").astype("M8[D]"))


@rule
def temporal_shift(parts: SplitParts) -> Reading:
    """Measure how long it is from a user's last training row to the first test row."""
    last, first, log = parts.last_trained, parts.first_tested, parts.log
    in_both = (last > -NEVER) & (first < NEVER)
    if not in_both.any() or log.history is None or not log.history.gaps.size:
        return unknown("No user has rows in both parts.")
    if parts.is_mixed:
        return unknown("Training and test cover the same time.")
    shift = float(np.median(first[in_both] - last[in_both])) / DAY
    usual = float(np.median(log.history.gaps)) / DAY
    sentence = (
        f"A median of {days(shift)} passes between a user's last training row and first test row; "
        f"between neighbouring rows of a user it is {days(usual)}."
    )
    counts = {"users": int(in_both.sum()), "median_gap_days": usual}
    return fact(shift, sentence, counts, f"{days(shift)} (usual gap {days(usual)})")


@rule
def positional_shift(parts: SplitParts) -> Reading:
    """Measure where test rows stand in the history of their users."""
    _, _, users, places, rows = parts.target_places
    if not rows:
        return unknown("No user has rows in both parts.")
    position = places / rows
    sentence = (
        f"Test rows of {counted(users, 'user')} with training rows stand at {percent(position)} of "
        "the way from the first to the last row of their user, on average; a random row at 50%."
    )
    return fact(position, sentence, {"rows": rows})


# The log


@rule
def collisions(parts: SplitParts) -> Reading:
    """Measure which share of rows has the time of the user's row before."""
    log = parts.log
    if log.history is None:
        return unknown(NO_TIME)
    share = log.history.tied / len(log)
    unit = days(log.resolution / DAY) if log.resolution > 1 else "less than a millisecond"
    sentence = (
        f"{percent(share)} of the rows have the same time stamp as another row of their user: "
        f"their order is unknown. Stamps are exact to {unit}."
    )
    return fact(share, sentence, {"rows": log.history.tied})


@rule
def log_repeats(parts: SplitParts) -> Reading:
    """Measure which share of events repeats an item of the user, and which at once."""
    log = parts.log
    if not log.has_repeats or log.history is None:
        return unknown("Ratings hold each pair once; only an event log has repeats.")
    share, at_once = log.history.repeats / len(log), log.history.consecutive / len(log)
    sentence = (
        f"{percent(share)} of the events repeat an item that the user met before, "
        f"{percent(at_once)} that of the event before."
    )
    counts = {"repeats": log.history.repeats, "consecutive": log.history.consecutive}
    return fact(share, sentence, counts)


@rule
def rhythm(parts: SplitParts) -> Reading:
    """Measure the time between rows of a user, and count sessions."""
    log = parts.log
    if log.history is None or not log.history.gaps.size:
        return unknown(NO_TIME if log.history is None else "No user has two rows.")
    mean, median = mean_of(log.history.gaps) / DAY, float(np.median(log.history.gaps)) / DAY
    sentence = (
        f"{days(mean)} on average, median {days(median)}; "
        f"{counted(log.history.sessions, 'session')} of {len(log) / log.history.sessions:.1f} rows."
    )
    return fact(mean, sentence, {"median_days": median, "sessions": log.history.sessions})


@rule
def lifetimes(parts: SplitParts) -> Reading:
    """Measure how long users and items are there."""
    log = parts.log
    if log.time is None:
        return unknown(NO_TIME)
    active = np.flatnonzero(np.diff(log.start))
    users = log.time[log.start[active + 1] - 1] - log.time[log.start[active]]
    deaths = np.full(len(log.items), -NEVER)
    np.maximum.at(deaths, log.item, log.time)
    items = (deaths - log.births)[deaths > -NEVER]
    counts = {"mean_user_days": mean_of(users) / DAY, "mean_item_days": mean_of(items) / DAY}
    span = (int(log.time.max()) - int(log.time.min())) / DAY
    sentence = (
        f"From first to last row {days(counts['mean_user_days'])} for users and "
        f"{days(counts['mean_item_days'])} for items on average; the log lasts {days(span)}."
    )
    short = f"{days(counts['mean_user_days'])} (items {days(counts['mean_item_days'])})"
    return fact(counts["mean_user_days"], sentence, {**counts, "log_days": span}, short)


LOOKS_BACK = ("drop-repeats",)
"""Filters that count other rows, but earlier ones only."""


@rule
def filters(parts: SplitParts) -> Reading:
    """Look for filters such as a k-core that were applied before the split."""
    of_training, of_test = (
        {str(step) for step in part.steps} for part in (parts.train, parts.test)
    )
    steps = [
        step
        for step in parts.train.steps
        if step.counts_rows and step.name not in LOOKS_BACK and str(step) in of_test
    ]
    counts = {"recorded_steps": len(of_training | of_test), "counted_test_rows": len(steps)}
    if not steps:
        done = counted(counts["recorded_steps"], "step is", "steps are")
        sentence = f"No recorded filter counted test rows ({done} recorded)."
        return Reading("ok", 0.0, sentence, counts)
    removed = [1.0 - step.after.rows / max(step.before.rows, 1) for step in steps]
    share = max(removed)
    names = listed([f"{step.name}({_settings(step)})" for step in steps])
    sentence = (
        f"{names} counted test rows too and removed {percent(share)} of all rows: who stays in "
        "training depends on what happens in the test."
    )
    if not share:
        return Reading("ok", 0.0, f"{names} counted test rows too, but removed none.", counts)
    return Reading(by_share(share), share, sentence, counts)


def _settings(step: Step) -> str:
    settings = {key: value for key, value in step.settings.items() if value is not None}
    return ", ".join(f"{key}={value}" for key, value in settings.items())


@rule
def cut_off(parts: SplitParts) -> Reading:
    """Look whether users or items with few rows, test rows included, seem to be removed."""
    counts: dict[str, Number] = {}
    texts, smallest, total = [], 0, 0.0
    for name, trained, everything in _all_counts(parts):
        k, expected = truncation(everything)
        below = int(np.count_nonzero((trained > 0) & (trained < k)))
        surprise = max(expected, survival(trained, everything, k)) if below else 0.0
        counts |= {f"smallest_{name}_count": k, f"{name}_surprise": surprise}
        total += surprise
        if surprise >= 1.0:
            smallest = max(smallest, k)
            texts.append(
                f"no {name} has fewer than {k:,} rows over all parts, and {below:,} have fewer in "
                "training"
            )
    if total < CUT_OFF_SURPRISE:
        return Reading("ok", 0.0, "Numbers of rows do not look cut off at a least number.", counts)
    sentence = f"{listed(texts)}: test rows may have decided who stays."
    return Reading("look", float(smallest), sentence[0].upper() + sentence[1:], counts)


def _all_counts(parts: SplitParts) -> Iterator[tuple[str, I64, I64]]:
    """Yield the training rows and all rows of users, and of items; all rows of a given log."""
    train, log = parts.train, parts.log
    for name, ids, (trained, tested), log_ids in (
        ("user", train.users, parts.user_counts, log.users),
        ("item", train.items, parts.item_counts, log.items),
    ):
        everything = trained + tested
        if log.is_given and ids.equals(log_ids):
            everything = log.user_counts if name == "user" else log.item_counts
        yield name, trained, everything


def truncation(counts: I64) -> tuple[int, float]:
    """Return the smallest count above 0, and how many below it a smooth distribution would have.

    Counts from the smallest one up are put into two groups of neighbouring numbers; a straight line
    through the logarithms of their sizes goes on to the group below. Where the second group is more
    than twice the first, the distribution itself falls steeply there, and nothing is expected.
    """
    present = counts[counts > 0]
    if not present.size:
        return 0, 0.0
    k = int(present.min())
    if k < 2:
        return k, 0.0
    width = max(1, k // 4)
    near = int(np.count_nonzero(present < k + width))
    next_group = int(np.count_nonzero((present >= k + width) & (present < k + 2 * width)))
    if near < 0.5 * next_group:
        return k, 0.0
    return k, near * near / max(next_group, near, 1)


def survival(trained: I64, everything: I64, k: int) -> float:
    """Return how surprising it is that all with fewer than k training rows go on to k.

    The chance to have any test row at all is taken from those with k to 2k training rows, who are
    more active. The result is the negative logarithm of the chance that all others go on too.
    """
    below = int(np.count_nonzero((trained > 0) & (trained < k)))
    peers = (trained >= k) & (trained < 2 * k)
    on = int(np.count_nonzero(peers & (everything > trained)))
    chance = (on + 1) / (int(np.count_nonzero(peers)) + 2)
    return -below * float(np.log(chance)) if k >= 2 else 0.0
