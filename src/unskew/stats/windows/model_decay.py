"""`model_decay`: what a system loses when its training ends earlier, on one window and one test.

One model judged on later and later windows grows older while the period changes: what is lost
cannot be put down to either. Models of different age judged on the same test by the same users
differ in their training alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.checks import as_count, check_share, checked
from unskew.data.ratings import Ids
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.report.columns import (
    DIFFERENCE,
    METRIC,
    SE,
    SIGNIFICANT,
    SYSTEM,
    USERS,
    Column,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted, number
from unskew.stats.simultaneous import all_together, simultaneous
from unskew.stats.windows.window_values import (
    CURVES,
    WindowScores,
    WindowValues,
    counts_of_test,
    mean_rows,
    means_question,
    read_windows,
)

CONFOUNDED = (
    "age and period are confounded: these scores are of different test ratings ({0} and {1}), so "
    "that an older model is also judged in another period. Judge models of different age on one "
    "window (us.splits.ModelAges); order_changes compares windows"
)


DECAY = Question(
    name="older less youngest model",
    columns=(
        *(METRIC, SYSTEM, Column("age", "key"), USERS, Column("mean", "fact")),
        *(replace(DIFFERENCE[0], label="change"), SE, *DIFFERENCE[1:], SIGNIFICANT),
    ),
    method=Method(
        estimand="how much better an older model is than the youngest of its system", interval="t"
    ),
    figures=(CURVES,),
)


@checked
def model_decay(
    scores: object,
    metrics: str | Sequence[str] | None = None,
    *,
    level: float = 0.95,
    age_unit: str = "days",
    better: str | None = None,
    seed: int = 0,
) -> Estimates:
    """Return what systems lose when their training ends earlier, judged on one window.

    Parameters
    ----------
    scores
        A mapping from ages to what `evaluate` gave on one and the same test (or to values per user,
        see `paired`): ages that are numbers are sorted, others are taken in the order given, the
        youngest first. Or the results of a plan whose split is `us.splits.ModelAges`, or a table
        with a column `age`. Users without a value at some age are left out and counted.
    metrics
        Labels; all that have a value per user unless given. Each metric has its own correction.
    level
        Of all intervals of a metric together.
    age_unit
        What ages are counted in, where they are numbers.
    better
        Of tables: which direction is better, see `paired`.
    seed
        Of the draws behind simultaneous intervals.

    Returns
    -------
    Estimates
        A row per metric, system and age: the mean, and as `value` the change to the youngest model
        of the same system, negative where the older one is worse, whose interval holds for all
        systems and ages of the metric at once; none for the youngest, and where too few users
        differ. The part `means` has the interval of each mean alone.

    Notes
    -----
    Scores of different tests are refused: where an older model is also judged in another period,
    age and period are confounded. A model whose training ends earlier has usually fewer training
    ratings too; where their numbers are known, the result shows them.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(1)
    >>> young, user = rng.binomial(10, 0.4, 500) / 10, np.arange(500)
    >>> old = np.maximum(young - 0.1 * rng.integers(0, 3, 500), 0)
    >>> ages = {0: {"user": user, "x": young, "y": young}, 30: {"user": user, "x": old, "y": young}}
    >>> print(us.stats.model_decay(ages).conclusion[0])
    value: x loses 0.1028 (0.0956 to 0.1100) at age 30 days, compared with age 0 days
    """
    check_share("level", level)
    as_count("seed", seed, least=0)
    windows = read_windows(scores, metrics, unit="age", better=better, one_system=True)
    windows = _by_age(windows)
    _check_one_test(windows)
    ages, systems = tuple(windows.parts), windows.systems
    unit = age_unit if all(map(_is_numeric, ages)) else ""
    frames: list[tuple[pl.DataFrame, pl.DataFrame]] = []
    conclusion, better_of, notes = list[str](), dict[str, str](), list(windows.notes)
    for label in windows.metrics:
        everyone = windows.values(label)
        data = _at_every_age(everyone)
        frames.append(_rows(data, level, seed))
        better_of[label] = data.better
        conclusion += _findings(frames[-1][0], unit, data.better)
        lost = len(everyone.users) - len(data.users)
        if lost:
            notes.append(
                f"{label}: {counted(lost, 'user has', 'users have')} no value at some age and do "
                "not count"
            )
    changes, means = (pl.concat(parts) for parts in zip(*frames, strict=True))
    family = counted((len(ages) - 1) * len(systems), "change")
    labelled = [
        replace(column, label=f"age, {unit}") if column.name == "age" and unit else column
        for column in DECAY.columns
    ]
    return Estimates.of_rows(
        replace(DECAY, columns=tuple(labelled)),
        changes,
        method=all_together(DECAY.method, family, level=level, seed=seed),
        explanation=(
            f"change: the same system trained up to an earlier moment less its youngest model "
            f"({_aged(ages[0], unit)}), same users and same test; negative is worse",
            "about these trained models and users like these: another training, or another window "
            "to test on, is not part of it",
        ),
        notes=(*dict.fromkeys(notes), *_training_sizes(windows)),
        conclusion=tuple(conclusion),
        parts={
            "means": Estimates.of_rows(
                means_question("age"), means, level=level, card={"better": better_of}
            )
        },
        card={"age_unit": unit},
    )


def _aged(age: str, unit: str) -> str:
    return f"{age} {unit}".strip()


def _is_numeric(age: str) -> bool:
    try:
        return bool(np.isfinite(float(age)))
    except ValueError:
        return False


def _by_age(windows: WindowScores) -> WindowScores:
    """Sort ages that are numbers; others stand as given, the youngest first.

    Labels of splits such as age7d are ages of 7d.
    """
    parts = {re.sub(r"^age(?=\d)", "", name): part for name, part in windows.parts.items()}
    if all(map(_is_numeric, parts)):
        parts = {name: parts[name] for name in sorted(parts, key=float)}
    return WindowScores(parts, windows.metrics, windows.notes)


def _fact(windows: WindowScores, part: str, name: str) -> dict[str, object]:
    """Return something that the cards of all ages know, by age; empty where one does not."""
    facts = {}
    for age, pairing in windows.parts.items():
        if len(pairing.parts) != 1:
            return {}
        value = (pairing.parts[0].card.get(part) or {}).get(name)
        if value is None:
            return {}
        facts[age] = value
    return facts


def _check_one_test(windows: WindowScores) -> None:
    """Refuse ages that were judged by different test ratings, or were trained on the same ones."""
    first, *older = windows.parts
    tests = _fact(windows, "judgments", "fingerprint")
    counts = {
        age: counts_of_test(pairing.parts[0])
        for age, pairing in windows.parts.items()
        if pairing.parts
    }
    for age in older:
        other_rows = bool(tests) and tests[age] != tests[first]
        other_counts = len(counts) > 1 and not counts[age].equals(counts[first])
        if other_rows or other_counts:
            raise SettingError(CONFOUNDED.format(f"age {first}", f"age {age}"))
    if windows.has_one_training:
        raise SettingError(
            "the training ratings are the same at all ages: models of different age are trained up "
            "to different moments (us.splits.ModelAges)"
        )


def _training_sizes(windows: WindowScores) -> list[str]:
    rows, whose = _fact(windows, "train", "rows"), "training ratings"
    if not rows:
        parts = {age: pairing.parts for age, pairing in windows.parts.items()}
        if not all(len(part) == 1 and "train" in part[0].lists.columns for part in parts.values()):
            return []
        rows = {age: int(_tested(folds[0])["train"].sum()) for age, folds in parts.items()}
        whose = "training ratings of the judged users"
    if len(set(rows.values())) < 2:
        return []
    listed = ", ".join(f"{int(str(count)):,} at age {age}" for age, count in rows.items())
    return [f"{whose}: {listed}; age and the amount of training change together"]


def _tested(scores: Scores) -> pl.DataFrame:
    """Return the lists of users with test ratings."""
    return scores.lists.filter(pl.col("test") > 0)


def _at_every_age(data: WindowValues) -> WindowValues:
    """Return the values of users who have one at every age."""
    common = np.flatnonzero(data.counts == len(data.windows))
    if common.size < 2:
        raise DataError(
            f"{data.label}: {counted(common.size, 'user has', 'users have')} a value at every age; "
            "at least 2 are needed"
        )
    rows = [np.searchsorted(code, common) for code in data.codes]
    return replace(
        data,
        users=Ids(data.users.values.gather(common)),
        codes=(np.arange(common.size),) * len(rows),
        values=tuple(value[row] for value, row in zip(data.values, rows, strict=True)),
    )


def _rows(data: WindowValues, level: float, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return changes by system and age, and means by age and system."""
    youngest, *older = data.values
    change = [data.sign * (values - youngest) for values in older]
    result = simultaneous(change, data.codes[1:], len(data.users), level=level, seed=seed)
    keys, ages = ["system", "age"], list(data.windows)
    pairs = {
        "system": np.repeat(data.systems, len(older)),
        "age": ages[1:] * len(data.systems),
    }
    # Column after column: means are added up as those of single columns are.
    means = mean_rows(
        replace(data, values=tuple(map(np.asfortranarray, data.values))), "age", level
    )
    order = pl.DataFrame(
        {"system": np.repeat(data.systems, len(ages)), "age": ages * len(data.systems)}
    )
    mean = means.select("metric", *keys, "n", mean="value")
    changes = order.join(mean, on=keys, how="left", maintain_order="left").join(
        pl.DataFrame({**pairs, **result.columns()}), on=keys, how="left", maintain_order="left"
    )
    return changes, means


def _findings(rows: pl.DataFrame, unit: str, better: str) -> list[str]:
    """Say of one metric what is lost, at the first and the last age at which it is shown."""
    verbs = ("is worse by", "is better by") if better == "lower" else ("loses", "gains")
    label, youngest, lines = rows["metric"][0], _aged(rows["age"][0], unit), []
    for (system,), of_system in rows.group_by("system", maintain_order=True):
        significant = of_system.filter("significant")
        for verb, changes in zip(
            verbs,
            (significant.filter(pl.col("value") < 0), significant.filter(pl.col("value") > 0)),
            strict=True,
        ):
            ages = changes.to_dicts()
            for row in ages if len(ages) < 3 else (ages[0], ages[-1]):
                low, size, high = sorted(abs(row[name]) for name in ("low", "value", "high"))
                size, low, high = (number(x, Estimates.digits) for x in (size, low, high))
                lines.append(
                    f"{label}: {system} {verb} {size} ({low} to {high}) at age "
                    f"{_aged(row['age'], unit)}, compared with age {youngest}"
                )
    return lines or [f"{label}: no system is shown to lose or gain with age"]
