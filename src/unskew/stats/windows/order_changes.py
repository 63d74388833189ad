"""`order_changes`: whether systems change places between windows, more than chance does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.checks import as_count, check_share, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError
from unskew.report.columns import (
    HIGH,
    LOW,
    METRIC,
    PAIR,
    SIGNIFICANT,
    TEST,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted, number, p_value
from unskew.stats.agreement.agreement import BOOTSTRAP, LEVEL, agreement
from unskew.stats.corrections import correct
from unskew.stats.pairing import Pairs, all_pairs, scores_of
from unskew.stats.simultaneous import LEAD, Differences, all_together
from unskew.stats.windows.window_tests import (
    Cells,
    WithinUsers,
    between_windows,
    differences_of,
    tau_by_chance,
    within_users,
)
from unskew.stats.windows.window_values import (
    CURVES,
    WindowScores,
    WindowValues,
    mean_rows,
    means_question,
    read_windows,
)

EXCHANGES = 1_999
CONFOUNDED = (
    "the training ratings are the same in all windows: the age of the models grows with the "
    "period, and what changes cannot be put down to either; see model_decay"
)
"""Said where one model is judged on later and later windows."""
NAMED = 6
"""At most so many windows are named in a sentence."""
SENTENCES = 5
"""At most so many pairs have a sentence of their own."""
DIGITS = Estimates.digits


def _leads_question(unit: str) -> Question:
    """Return the question of `order_changes`; the unit is a window, a split, a condition."""
    return Question(
        name=f"differences in each {unit}",
        columns=(METRIC, *PAIR, Column(unit, "key"), USERS, *LEAD, SIGNIFICANT),
        method=Method(estimand=f"how far a is ahead of b in a {unit}", interval="t"),
        display=("means", "changes"),
        figures=(CURVES, Drawing("differences", "points"), Drawing("tau", "matrix", "tau")),
    )


def _changes_question(unit: str) -> Question:
    return Question(
        name=f"does the order change between {unit}s?",
        columns=(
            *(METRIC, *PAIR, Column("low_lead", "fact", "least lead of a", form="+")),
            *(Column("high_lead", "fact", "largest", form="+"),),
            *(Column("statistic", "fact", hidden=True), Column("df", "count", hidden=True)),
            *(Column(f"p_{test}", "p", hidden=True) for test in ("within", "between")),
            *TEST,
            *(Column("wins", "count", "a ahead"), Column("wins_against", "count", "b ahead")),
            *(Column(name, "names", hidden=True) for name in ("ahead", "ahead_against")),
            Column("reverses", "flag", "order change shown"),
        ),
        method=Method(estimand=f"whether the difference of two systems varies over {unit}s"),
    )


def _tau_question(unit: str) -> Question:
    facts = ("without_low", "without_high", "tau_ap", "rbo")
    return Question(
        name=f"Kendall's τ between {unit}s",
        columns=(
            *(METRIC, Column(unit, "key"), Column(f"against_{unit}", "key"), VALUE, LOW, HIGH, P),
            *(*(Column(name, "fact", hidden=True) for name in facts), Column("swaps", "count")),
        ),
        method=Method(
            estimand=f"Kendall's τ of the orders in two {unit}s", interval="percentile bootstrap"
        ),
        figures=(Drawing("tau", "matrix"),),
    )


@notebook_progress("order changes")
@checked
def order_changes(
    scores: object,
    metrics: str | Sequence[str] | None = None,
    *,
    over: str = "window",
    level: float = 0.95,
    permutations: int = EXCHANGES,
    resamples: int = BOOTSTRAP,
    better: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Compare the same systems over windows of time, or over splits: differences, changes of order.

    Two findings are kept apart. *Differences vary*: the difference between two systems is not the
    same in all windows; tested by exchanging each user's windows at random, and by the means of
    windows over users, of which both must show it. Both look at differences between systems, so
    that a level that rises and falls for all systems alike is no finding. *The order changes*: one
    system is shown to be ahead in one window and behind in another, by intervals that hold for all
    pairs and windows at once.

    Parameters
    ----------
    scores
        A mapping from windows, in the order of time, to what `evaluate` gave (or to values per
        user, see `paired`); the results of a plan whose split has several parts, such as
        `us.splits.Windows`; or a table with a column `window` beside those that `paired` takes,
        whose windows are put in natural order. A list of scores is the folds of one split, whose
        means are averaged.
    metrics
        Labels; all that have a value per user unless given. Each metric has its own correction.
    over
        What the names of the mapping (or the column of the table) are: `window`, `split`, such as
        `random` and `time`, or another condition, as a noun.
    level
        Of all intervals of a metric together; 1 - level is the level of the tests.
    permutations
        How often each user's windows are exchanged at random. Where that would take too long, p is
        that of Hotelling's F, which the result says.
    resamples
        How often users are drawn, with all their windows, for the interval of each τ; 0 for none.
    better
        Of tables: which direction is better, `higher`, `lower` or `neither`; see `paired`.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as windows are exchanged.

    Returns
    -------
    Estimates
        A row per metric, pair and window: by how much a is ahead of b (positive: a is better), with
        intervals that hold for all pairs and windows of the metric at once; none where too few
        users differ. The key `window` has the name that `over` gives. Parts: `means` by window and
        system, with intervals of each mean alone; `changes`, a row per pair: whether differences
        vary (`p_corrected`, the larger of `p_within` and `p_between`, corrected by Holm over
        pairs), in which windows each system is `ahead`, and whether the order `reverses`; `tau`,
        Kendall's τ between windows.

    Notes
    -----
    What is said is about these trained models and about users like those of each window. Windows
    are periods: where one model is judged on later and later windows, its age grows with the
    period; `model_decay` tells the age of a model apart.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(3)
    >>> user, window = np.tile(np.arange(200), 4), np.repeat([1, 2, 3, 4], 200)
    >>> lead = np.where(window < 3, 0.2, -0.2)  # a is ahead at first, b later
    >>> values = {"a": rng.normal(0.5 + lead, 0.3), "b": rng.normal(0.5, 0.3, 800)}
    >>> result = us.stats.order_changes({"user": user, "window": window, **values})
    >>> change = result.parts["changes"].pair("a", "b")
    >>> change.facts["ahead"], change.facts["ahead_against"], change.facts["reverses"]
    (['1', '2'], ['3', '4'], True)

    >>> def split(a, b):
    ...     values = {"a": rng.normal(a, 0.2, 200), "b": rng.normal(b, 0.2, 200)}
    ...     return {"user": np.arange(200), **values}
    >>> splits = {"random": split(0.6, 0.5), "time": split(0.3, 0.4)}
    >>> result = us.stats.order_changes(splits, over="split")
    >>> result.parts["tau"].row().value, result.parts["changes"].rows["reverses"].to_list()
    (-1.0, [True])
    """
    check_share("level", level)
    as_count("permutations", permutations, most=1_000_000)
    if permutations < 99:
        raise SettingError(f"permutations must be at least 99, got {permutations}")
    as_count("resamples", resamples, least=0)
    as_count("seed", seed, least=0)
    if isinstance(scores, Mapping):
        scores = {name: scores_of(source) for name, source in scores.items()}
    windows = read_windows(scores, metrics, unit=over, better=better)
    draws = {"seed": seed, "threads": threads}
    orders = {
        label: _of_metric(windows, label, over, level, permutations, resamples, progress, **draws)
        for label in windows.metrics
    }
    return _answer(windows, orders, over, level, permutations, resamples, seed)


class _Order(NamedTuple):
    """What is known of one metric."""

    rows: dict[str, pl.DataFrame]
    """By part: its rows."""
    better: str
    users: int
    several: int
    """Users with values in two windows or more."""
    permutations: int
    tau_by_chance: dict[str, float] | None


def _answer(
    windows: WindowScores,
    orders: Mapping[str, _Order],
    unit: str,
    level: float,
    permutations: int,
    resamples: int,
    seed: int,
) -> Estimates:
    better_of = {label: order.better for label, order in orders.items()}
    rows = {
        name: pl.concat([order.rows[name] for order in orders.values()])
        for name in ("", "means", "changes", "tau")
    }
    question, tau = _leads_question(unit), _tau_question(unit)
    tau = replace(tau, method=replace(tau.method, draws=resamples, seed=seed))
    parts = {
        "means": Estimates.of_rows(
            means_question(unit), rows["means"], level=level, card={"better": better_of}
        ),
        "changes": Estimates.of_rows(_changes_question(unit), rows["changes"]),
        "tau": Estimates.of_rows(tau, rows["tau"], level=LEVEL),
    }
    by_metric = {
        name: {label: getattr(order, name) for label, order in orders.items()}
        for name in ("users", "several", "tau_by_chance")
    }
    by_f = any(order.permutations == 0 and order.several > 0 for order in orders.values())
    test_name = "Hotelling's F" if by_f else f"{permutations:,} exchanges"
    pairs = rows["changes"].height // len(orders)
    method = all_together(
        question.method,
        counted(pairs * len(windows.parts), "difference"),
        level=level,
        seed=seed,
        test=f"equal differences in all {unit}s, the larger p of {test_name} within users and of "
        "Wald's test of the means",
        correction=f"Holm over {counted(pairs, 'pair')}",
    )
    result = Estimates.of_rows(
        question,
        rows[""],
        method=method,
        explanation=(
            *_users_lines(orders, unit),
            f"this test assumes that whether a user is in a {unit} does not depend on how well "
            "these systems serve that user",
            f"ahead: in how many {unit}s the {method.ci} of the difference excludes 0; the order "
            "changes where each of the two is ahead in some",
            "about these trained models and users like these: another training is not part of it",
            *_tau_lines(parts["tau"], orders, unit),
        ),
        notes=(*windows.notes, *_same_training(windows, unit)),
        parts=parts,
        card={"unit": unit, "permutations": 0 if by_f else permutations, **by_metric},
    )
    findings = [line for label in orders for line in _findings(result[label])]
    return replace(result, conclusion=tuple(findings))


def _of_metric(
    windows: WindowScores,
    label: str,
    unit: str,
    level: float,
    permutations: int,
    resamples: int,
    progress: Progress | None,
    **draws: Any,
) -> _Order:
    data = windows.values(label)
    pairs, cells = all_pairs(len(data.systems)), Cells.of(data)
    leads = differences_of(data, pairs, level=level, seed=draws["seed"])
    test = within_users(cells, pairs, permutations=permutations, progress=progress, **draws)
    between = between_windows(data, pairs)
    order = agreement(dict(windows.parts), label, resamples=resamples, **draws)
    conditions = {"design": unit, "against_design": f"against_{unit}"}
    chance = tau_by_chance(data, cells, **draws)
    rows = {
        "": _lead_rows(data, pairs, leads, unit),
        "means": mean_rows(data, unit, level),
        "changes": _change_rows(data, pairs, leads, test, between, level),
        "tau": order.rows.rename(conditions).with_columns(metric=pl.lit(label)),
    }
    return _Order(
        rows,
        data.better,
        len(data.users),
        cells.users,
        test.permutations,
        chance,
    )


def _same_training(windows: WindowScores, unit: str) -> list[str]:
    """Say that age and period are confounded where all windows have the same training ratings."""
    return [CONFOUNDED] if unit == "window" and windows.has_one_training else []


def _lead_rows(data: WindowValues, pairs: Pairs, leads: Differences, unit: str) -> pl.DataFrame:
    """Return a row per pair and window."""
    systems, windows = np.array(data.systems), len(data.windows)
    return pl.DataFrame(
        {
            "metric": data.label,
            "system": np.repeat(systems[pairs.first], windows),
            "against": np.repeat(systems[pairs.second], windows),
            unit: list(data.windows) * len(pairs),
            "n": np.tile(leads.users, len(pairs)),
            **leads.columns(),
        }
    )


def _change_rows(
    data: WindowValues,
    pairs: Pairs,
    leads: Differences,
    test: WithinUsers,
    between: F64,
    level: float,
) -> pl.DataFrame:
    """Return a row per pair: whether differences vary, and whether the order changes."""
    systems, larger_p = np.array(data.systems), np.maximum(test.p, between)
    corrected = correct(larger_p, "holm")
    ahead, behind = (
        [[data.windows[w] for w in np.flatnonzero(column)] for column in mask.T]
        for mask in (leads.ahead, leads.behind)
    )
    columns = {
        "metric": data.label,
        "system": systems[pairs.first],
        "against": systems[pairs.second],
        "low_lead": np.fmin.reduce(leads.difference, axis=0),
        "high_lead": np.fmax.reduce(leads.difference, axis=0),
        "statistic": test.statistic,
        "df": test.df,
        "p_within": test.p,
        "p_between": between,
        "p": larger_p,
        "p_corrected": corrected,
        "significant": corrected <= round(1 - level, 12),
        "wins": list(map(len, ahead)),
        "wins_against": list(map(len, behind)),
        "ahead": ahead,
        "ahead_against": behind,
        "reverses": [bool(a) and bool(b) for a, b in zip(ahead, behind, strict=True)],
    }
    names = dict.fromkeys(("ahead", "ahead_against"), pl.List(pl.String))
    return pl.DataFrame(columns, schema_overrides=names)


# What people read


def _users_lines(orders: Mapping[str, _Order], unit: str) -> list[str]:
    """Say how many users tell something about change; once where it holds for all metrics."""
    lines = {
        label: f"{counted(order.users, 'user')}, {order.several:,} of them in two {unit}s or more; "
        f"the others ({order.users - order.several:,}) say nothing about change within users"
        for label, order in orders.items()
    }
    if len({*lines.values()}) == 1:
        return list(lines.values())[:1]
    return [f"{label}: {line}" for label, line in lines.items()]


def _tau_lines(tau: Estimates, orders: Mapping[str, _Order], unit: str) -> list[str]:
    lines = []
    for label, order in orders.items():
        rows = tau[label].rows.drop_nulls("value")
        if not rows.height:
            continue
        value = rows["value"].to_numpy()
        line = f"{label}: Kendall's τ between {unit}s: "
        line += f"mean {value.mean():.2f}, least {value.min():.2f}"
        if tau[label].rows.height == 1:
            line = f"{label}: Kendall's τ = {value[0]:.2f}"
            low, high = rows.select("low", "high").row(0)
            if low is not None:
                line += f" ({tau.method.ci} over users: {low:.2f} to {high:.2f})"
        if order.tau_by_chance is not None:
            observed, expected, low, high = order.tau_by_chance.values()
            line += (
                f"; users with several {unit}s {observed:.2f}, and {expected:.2f} ({low:.2f} to "
                f"{high:.2f}) with their {unit}s exchanged at random"
            )
        lines.append(line)
    return lines


def _findings(result: Estimates) -> list[str]:
    """Say of one metric which orders change, and which differences vary."""
    label, unit = result.label(), result.card["unit"]
    rows = result.parts["changes"].rows.to_dicts()
    reversals = [row for row in rows if row["reverses"]]
    alpha = round(1 - (result.method.level or 0.0), 12)
    lines = [f"{label}: {_reversal(row, unit, alpha)}" for row in reversals[:SENTENCES]]
    if len(reversals) > SENTENCES:
        more = counted(len(reversals) - SENTENCES, "more pair")
        lines.append(f"{label}: the order of {more} changes")
    varying = [row for row in rows if row["significant"] and not row["reverses"]]
    if varying:
        lines.append(f"{label}: {_variation(varying, unit)}")
    if not reversals:
        lines.append(f"{label}: no change of order is shown{_smallest_seen(result)}")
    return lines


def _reversal(row: Mapping[str, Any], unit: str, alpha: float) -> str:
    a, b, where = row["system"], row["against"], "in" if unit == "window" else "under"
    text = (
        f"the order of {a} and {b} changes: {a} is ahead {where} {_listed(row['ahead'])}, {b} "
        f"{where} {_listed(row['ahead_against'])}"
    )
    if row["p_within"] is None or row["p_within"] > alpha:
        text += (
            f"; users with several {unit}s do not show it by themselves, so that other users may "
            "be the reason"
        )
    return text


def _variation(rows: Sequence[Mapping[str, Any]], unit: str) -> str:
    pairs = _listed(
        [f"{row['system']} and {row['against']} (p {_p(row['p_corrected'])})" for row in rows]
    )
    if len(rows) == 1:
        return (
            f"the difference between {pairs} is not the same in all {unit}s; no change of their "
            "order is shown"
        )
    return (
        f"the differences between {pairs} are not the same in all {unit}s; no change of the order "
        "of any of these pairs is shown"
    )


def _listed(names: Sequence[str]) -> str:
    text, more = ", ".join(names[:NAMED]), len(names) - NAMED
    return f"{text} and {more} more" if more > 0 else text


def _smallest_seen(result: Estimates) -> str:
    """Say how large a difference in a window must be to be seen."""
    unit, intervals = result.card["unit"], result.rows.drop_nulls("low")
    if not intervals.height:
        return f": no {unit} has enough users whose values differ"
    half = np.median((intervals["high"] - intervals["low"]).to_numpy() / 2)
    return (
        f"; in the median {unit} and pair, a difference below {number(float(half), DIGITS)} would "
        "not be"
    )


def _p(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"
