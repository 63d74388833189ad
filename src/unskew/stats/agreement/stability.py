"""`stability`: which conclusions depend on a choice, and on which one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.ratings import Ids
from unskew.data.read.tables import number_column, read_table
from unskew.errors import DataError
from unskew.report.columns import PAIR, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.pairing import known_metric
from unskew.stats.resampling import check_two_systems

SYSTEM, REST = "system", "rest"


STABILITY = Question(
    name="what moves the order of systems",
    columns=(
        *(
            Column("factor", "key"),
            Column("levels", "count"),
            Column("value", "value", "share of variance"),
        ),
        *(Column("component", "fact"), Column("tau", "fact", "τ")),
    ),
    method=Method(estimand="the share of the variance of places that a factor carries", unit=""),
    display=("", "pairs"),
    figures=(Drawing("choices", "bars"),),
    digits=3,
)
FLIPS = Question(
    name="do pairs of systems keep their order?",
    columns=(
        *(*PAIR, Column("conditions", "count")),
        *(Column("wins", "count", "a wins"), Column("wins_against", "count", "b wins")),
        *(Column("ties", "count"), Column("flips", "share")),
        Column("significant_wins", "count", "a wins significantly"),
        *(
            Column("significant_wins_against", "count", "b significantly"),
            Column("verdict", "note"),
        ),
    ),
    method=Method(estimand="which system of a pair is ahead, over all conditions", unit=""),
    digits=3,
)


@checked
def stability(
    table: object,
    *,
    system: str = "system",
    score: str = "score",
    pvalues: object = None,
    alpha: float = 0.05,
) -> Estimates:
    r"""Return which pairs of systems flip, how often and how surely, and by which factor.

    Parameters
    ----------
    table
        A table of any kind (polars, pandas, a file, a mapping of column names to arrays …) with a
        row per system and condition: the system, its score, and a column for each factor, such
        as users (a sample of them), split, seed, design, threshold, metric, cutoff, ties, systems
        (a set of them). `score_table` makes such rows from scores. Scores are better when higher;
        those of a factor `metric` whose levels name metrics are better as these say.
    system, score
        Names of these two columns.
    pvalues
        Where known: columns a, b, p and some or all of the factors. A difference is significant
        when p < `alpha`.
    alpha
        The limit of p.

    Returns
    -------
    Estimates
        A row per factor: how much of the order's variance it carries. The place of a system in a
        condition is the share of the others that it beats (ties half). Its variance is split into
        `system` (what does not depend on any choice), one row per factor (how places change with
        it: the interaction system x factor), and `rest` (factors in combination, and noise). Of a
        factor f with levels l, :math:`SS_f = \sum_{s,l} n_{sl} (\bar x_{sl} - \bar x_s)^2`.
        `value` is the share of the total sum of squares (shares add up to 1 where every combination
        of levels occurs once); `component` the same as a variance, less what chance gives a factor
        with so many levels: (mean square - mean square of the rest) / conditions per level; `tau`
        the mean τ_b between conditions that differ in this factor only.

        The part `pairs` has a row per pair of systems, those that flip most first: in how many
        conditions `system`, which wins more often, wins, in how many `against`; `flips`, the share
        of the decided conditions that go to `against`; where significance is known, how many wins
        are significant; and the verdict: `stable` (never the other way), `flips` (both ways, not
        both significantly), `contradicts` (both ways significantly).

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.agreement.stability import stability
    >>> rows = {"system": ["x", "y"] * 2, "seed": [0, 0, 1, 1], "score": [0.3, 0.2, 0.1, 0.2]}
    >>> print(stability(pl.DataFrame(rows)).parts["pairs"])
    a  b  conditions  a wins  b wins  ties  flips  verdict
    x  y           2       1       1     0  0.500  flips
    """
    source = read_table(table)
    rows = source.frame
    for name in (system, score):
        choose("column", name, rows.columns)
    factors = tuple(name for name in rows.columns if name not in (system, score))
    if not factors:
        raise DataError(f"there is no factor: the columns are only {system} and {score}")
    if not rows.height:
        raise DataError("the table of scores is empty")
    numbers = number_column(source, score, "scores")
    if not numbers.dtype.is_numeric():
        raise DataError(f"column {score!r} must hold numbers, got {numbers.dtype}")
    numbers = numbers.cast(pl.Float64)
    missing = numbers.is_null() | numbers.is_nan().fill_null(value=True)
    if missing.any():
        raise DataError(
            f"column {score!r}: {int(missing.sum()):,} of {rows.height:,} scores are missing, the "
            f"first in row {int(missing.arg_true()[0]) + 1}"
        )
    systems, places = Ids.number(rows[system].cast(pl.String))
    named = tuple(systems.values.to_list())
    check_two_systems(named)
    keys = rows.select(factors)
    conditions = keys.unique(maintain_order=True)
    row = _numbered(keys, conditions)
    twice = pl.DataFrame({"row": row, "system": places}).is_duplicated()
    if twice.any():
        first = int(twice.arg_true()[0])
        raise DataError(
            f"a system has several scores in one condition ({', '.join(factors)}), as in row "
            f"{first + 1} ({named[int(places[first])]}): name what tells them apart as one more "
            f"factor"
        )
    values = np.full((conditions.height, len(named)), np.nan)
    values[row, places] = numbers.to_numpy() * _signs(rows, factors)
    alone = int((np.count_nonzero(~np.isnan(values), axis=1) < 2).sum())
    notes = [f"{alone:,} conditions hold a single system"] if alone else []
    p_table = None if pvalues is None else read_table(pvalues).frame
    significant = _significance(p_table, conditions, named, alpha)
    pairs = _pairs(values, significant, named)
    flipping = sum(row["wins_against"] > 0 for row in pairs)
    lines = [
        f"{counted(len(named), 'system')} under {counted(conditions.height, 'condition')}; "
        f"{flipping} of {len(pairs)} pairs change their order"
    ]
    if "significant_wins" in pairs[0]:
        wrong = sum(row["verdict"] == "contradicts" for row in pairs)
        lines.append(f"{wrong} of them significantly both ways (p < {alpha:g})")
    return Estimates.of_rows(
        STABILITY,
        _decomposition(values, conditions),
        explanation=tuple(lines),
        notes=tuple(notes),
        parts={"pairs": Estimates.of_rows(FLIPS, pairs)},
        card={"alpha": alpha, "systems": len(named), "conditions": conditions.height},
    )


def _pairs(values: F64, significant: F64, systems: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per pair of systems, the one that wins more often first."""
    is_known = not np.isnan(significant).all()
    rows = []
    for pair, (i, j) in enumerate(combinations(range(len(systems)), 2)):
        gap = values[:, i] - values[:, j]
        mark = significant[:, pair] > 0
        sides = [
            (systems[index], int(ahead.sum()), int((mark & ahead).sum()))
            for index, ahead in ((i, gap > 0), (j, gap < 0))
        ]
        first, second = sides if sides[0][1] >= sides[1][1] else sides[::-1]
        decided = first[1] + second[1]
        row: dict[str, Any] = {"system": first[0], "against": second[0]}
        row |= {"wins": first[1], "wins_against": second[1], "ties": int((gap == 0).sum())}
        row["conditions"] = int((~np.isnan(gap)).sum())
        row["flips"] = second[1] / decided if decided else None
        if is_known:
            row |= {"significant_wins": first[2], "significant_wins_against": second[2]}
        is_contradicted = first[2] and second[2]
        row["verdict"] = "contradicts" if is_contradicted else "flips" if second[1] else "stable"
        rows.append(row)
    return sorted(rows, key=lambda row: math.inf if row["flips"] is None else -row["flips"])


def _numbered(keys: pl.DataFrame, conditions: pl.DataFrame) -> I64:
    """Return the number of each row's condition."""
    numbered = conditions.with_row_index("_condition")
    joined = keys.join(
        numbered, on=keys.columns, how="left", nulls_equal=True, maintain_order="left"
    )
    rows: I64 = joined["_condition"].cast(pl.Int64).to_numpy()
    return rows


def _signs(table: pl.DataFrame, factors: Sequence[str]) -> F64:
    """Return -1 for the scores of metrics that are better when lower."""
    if "metric" not in factors:
        return np.ones(table.height)

    def sign(name: object) -> float:
        metric = known_metric(str(name))
        return -1.0 if metric is not None and metric.better == "lower" else 1.0

    sign_of = {name: sign(name) for name in table["metric"].unique().to_list()}
    return np.array([sign_of[name] for name in table["metric"].to_list()])


def _significance(
    pvalues: pl.DataFrame | None, conditions: pl.DataFrame, systems: tuple[str, ...], alpha: float
) -> F64:
    """Return conditions x pairs: 1 where p < alpha, 0 where not, NaN where it is not known."""
    pairs = {pair: row for row, pair in enumerate(combinations(systems, 2))}
    out = np.full((conditions.height, len(pairs)), np.nan)
    if pvalues is None:
        return out
    for name in ("a", "b", "p"):
        choose("column of pvalues", name, pvalues.columns)
    shared = [name for name in conditions.columns if name in pvalues.columns]
    if not shared:
        raise DataError(f"pvalues has none of the factors {', '.join(conditions.columns)}")
    numbered = conditions.with_row_index("_condition")
    joined = pvalues.join(numbered, on=shared, how="inner", nulls_equal=True)
    for a, b, p, condition in joined.select("a", "b", "p", "_condition").iter_rows():
        row = pairs.get((str(a), str(b)), pairs.get((str(b), str(a))))
        if row is not None and p is not None:
            out[condition, row] = float(p < alpha)
    return out


def _decomposition(values: F64, conditions: pl.DataFrame) -> list[dict[str, Any]]:
    """Return a row per factor: what share of the variance of places it carries."""
    ranks = _places(values)
    is_known = ~np.isnan(ranks)
    filled = np.where(is_known, ranks, 0.0)
    count = is_known.sum(axis=0)
    system_mean = filled.sum(axis=0) / np.maximum(count, 1)
    grand = filled.sum() / is_known.sum()
    total = float((np.where(is_known, ranks - grand, 0.0) ** 2).sum())
    of_system = float((count * (system_mean - grand) ** 2).sum())
    runs, systems = values.shape
    codes = {column.name: _codes(column) for column in conditions}
    levels = {name: int(code.max()) + 1 for name, code in codes.items()}
    is_balanced = is_known.all() and math.prod(levels.values()) == runs
    squares = {
        name: _between(filled, is_known, code, levels[name], system_mean)
        for name, code in codes.items()
    }
    residual = total - of_system - sum(squares.values())
    freedom = {name: (levels[name] - 1) * (systems - 1) for name in codes}
    left = (runs - 1) * (systems - 1) - sum(freedom.values())
    noise = max(residual, 0.0) / left if left > 0 else 0.0

    def share(amount: float) -> float | None:
        return amount / total if total > 0 else None

    rows: list[dict[str, Any]] = [
        {"factor": SYSTEM, "levels": systems, "value": share(of_system)},
        *(
            {"factor": name, "levels": levels[name], "value": share(amount)}
            | {"tau": _tau_when_only(values, conditions, name)}
            for name, amount in squares.items()
        ),
        {"factor": REST},
    ]
    if is_balanced:
        for row, (name, amount) in zip(rows[1:], squares.items(), strict=False):
            if freedom[name]:
                per_level = runs / levels[name]
                row["component"] = max(amount / freedom[name] - noise, 0.0) / per_level
        rows[-1] |= {"value": share(max(residual, 0.0)), "component": noise}
    return rows


def _places(values: F64) -> F64:
    """Return the share of the other systems that each beats in its condition, ties half."""
    is_known = ~np.isnan(values)
    out = np.full(values.shape, np.nan)
    others = is_known.sum(axis=1) - 1
    for system in range(values.shape[1]):
        mine = values[:, system, None]
        beaten = (mine > values).sum(axis=1) + 0.5 * ((mine == values).sum(axis=1) - 1)
        here = is_known[:, system] & (others > 0)
        out[here, system] = beaten[here] / others[here]
    return out


def _codes(column: pl.Series) -> I64:
    """Number the levels of a factor in the order in which they occur."""
    levels = column.unique(maintain_order=True)
    frame = pl.DataFrame({"level": column})
    return _numbered(frame, pl.DataFrame({"level": levels}))


def _between(filled: F64, is_known: Mask, code: I64, levels: int, system_mean: F64) -> float:
    """Return the sum of squares of the interaction of systems and a factor."""
    amount = 0.0
    for level in range(levels):
        here = code == level
        count = is_known[here].sum(axis=0)
        mean = filled[here].sum(axis=0) / np.maximum(count, 1)
        amount += float((count * (mean - system_mean) ** 2).sum())
    return amount


def _tau_when_only(values: F64, conditions: pl.DataFrame, factor: str) -> float | None:
    """Return the mean τ_b between conditions that differ in one factor only."""
    from unskew.stats import kernels

    keys = conditions.drop(factor)
    group = np.zeros(conditions.height, np.int64)
    if keys.width:
        group = _numbered(keys, keys.unique(maintain_order=True))
    taus: list[float] = []
    for number in range(int(group.max()) + 1):
        rows = values[group == number]
        if len(rows) < 2:
            continue
        for i, j in combinations(range(len(rows)), 2):
            valid = ~np.isnan(rows[i]) & ~np.isnan(rows[j])
            if valid.sum() > 1:
                tau = kernels.tau_b(frozen(rows[i][valid]), frozen(rows[j][valid]))
                taus.append(float(tau))
    defined = [tau for tau in taus if not math.isnan(tau)]
    return math.fsum(defined) / len(defined) if defined else None
