"""`stability`: which conclusions depend on a choice, and on which one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from unskew.arrays import F64, I64, Mask, frozen
from unskew.checks import checked, choose
from unskew.data.ratings import Ids
from unskew.data.read.tables import number_column, read_table
from unskew.errors import DataError
from unskew.report.charts import GREY, VERMILION, Figure, as_figure
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.stats.pairing import known_metric
from unskew.stats.resampling import check_two_systems

SYSTEM, REST = "system", "rest"


@dataclass(frozen=True, eq=False)
class Stability(Result):
    """Which conclusions hold whatever is chosen, and which choice moves the order most.

    Made by `stability`. A condition is one combination of the factors' levels.
    """

    digits = 3

    systems: tuple[str, ...]
    factors: tuple[str, ...]
    conditions: pl.DataFrame
    """A row per condition, a column per factor."""
    values: F64
    """Conditions x systems, higher is better; NaN where a system is not in a condition."""
    significant: F64
    """Conditions x pairs of systems: 1 significant, 0 not, NaN where nothing is known."""
    alpha: float = 0.05
    notes: tuple[str, ...] = ()

    def table(self) -> pl.DataFrame:
        r"""Return how much of the order's variance each factor carries.

        The place of a system in a condition is the share of the others that it beats (ties half).
        Its variance is split into `system` (what does not depend on any choice), one row per
        factor (how places change with it: the interaction system x factor), and `rest` (factors in
        combination, and noise). Of a factor f with levels l,
        :math:`SS_f = \sum_{s,l} n_{sl} (\bar x_{sl} - \bar x_s)^2`.

        Columns: factor, levels, share (of the total sum of squares; they add up to 1 where every
        combination of levels occurs once), component (the same as a variance, less what chance
        gives a factor with so many levels: (mean square - mean square of the rest) / conditions
        per level), tau (the mean τ_b between conditions that differ in this factor only).
        """
        return _decomposition(self)

    def pairs(self) -> pl.DataFrame:
        """Return a row per pair of systems, the least settled first.

        Columns: a (which wins more often), b, conditions, a_wins, b_wins, ties, flips (the share
        of the decided conditions that go to b), and where significance is known: a_significant,
        b_significant (wins with p below alpha) and verdict: `stable` (never the other way),
        `flips` (both ways, not both significantly), `contradicts` (both ways significantly).
        """
        rows = []
        has_significance = not np.isnan(self.significant).all()
        for pair, (i, j) in enumerate(combinations(range(len(self.systems)), 2)):
            gap = self.values[:, i] - self.values[:, j]
            mark = self.significant[:, pair] > 0
            wins = [int((gap > 0).sum()), int((gap < 0).sum())]
            sure = [int((mark & (gap > 0)).sum()), int((mark & (gap < 0)).sum())]
            names = [self.systems[i], self.systems[j]]
            if wins[1] > wins[0]:
                wins, sure, names = wins[::-1], sure[::-1], names[::-1]
            verdict = "flips" if wins[1] else "stable"
            if sure[0] and sure[1]:
                verdict = "contradicts"
            row: dict[str, object] = {
                "a": names[0],
                "b": names[1],
                "conditions": int((~np.isnan(gap)).sum()),
                "a_wins": wins[0],
                "b_wins": wins[1],
                "ties": int((gap == 0).sum()),
                "flips": wins[1] / sum(wins) if sum(wins) else None,
            }
            if has_significance:
                row |= {"a_significant": sure[0], "b_significant": sure[1]}
            rows.append({**row, "verdict": verdict})
        table = pl.DataFrame(rows, infer_schema_length=None)
        return table.sort("flips", descending=True, nulls_last=True, maintain_order=True)

    def figure(self) -> Figure:
        """Draw what each factor carries of the variance that is not due to the systems."""
        import altair as alt

        table = self.table().filter(pl.col("factor") != SYSTEM)
        rows = [
            {"factor": name, "share": share}
            for name, share in table.select("factor", "share").rows()
            if share is not None
        ]
        bars: alt.Chart = (
            alt.Chart(alt.NamedData(name="rows"), width=420, height=alt.Step(26))
            .mark_bar()
            .encode(
                x=alt.X("share:Q", title="share of the variance of places").axis(format="%"),
                y=alt.Y("factor:N", title=None, sort="-x"),
                color=alt.condition(
                    f"datum.factor === '{REST}'", alt.value(GREY), alt.value(VERMILION)
                ),
            )
        )
        return as_figure(bars, "What moves the order of systems", self.footer(), rows)

    def _explanation(self) -> list[str]:
        pairs = self.pairs()
        flipping = pairs.filter(pl.col("b_wins") > 0).height
        lines = [
            f"{counted(len(self.systems), 'system')} under "
            f"{counted(self.conditions.height, 'condition')}; {flipping} of {pairs.height} pairs "
            "change their order"
        ]
        if "a_significant" in pairs.columns:
            wrong = pairs.filter(pl.col("verdict") == "contradicts").height
            lines.append(f"{wrong} of them significantly both ways (p < {self.alpha:g})")
        return lines

    def _summary(self) -> str:
        return (
            f"{counted(len(self.systems), 'system')}, "
            f"{counted(self.conditions.height, 'condition')}, factors {', '.join(self.factors)}"
        )


@checked
def stability(
    table: object,
    *,
    system: str = "system",
    score: str = "score",
    pvalues: object = None,
    alpha: float = 0.05,
) -> Stability:
    """Return which pairs of systems flip, how often and how surely, and by which factor.

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

    Examples
    --------
    >>> import polars as pl
    >>> from unskew.stats.agreement.stability import stability
    >>> rows = {"system": ["x", "y"] * 2, "seed": [0, 0, 1, 1], "score": [0.3, 0.2, 0.1, 0.2]}
    >>> stability(pl.DataFrame(rows)).pairs().select("a", "b", "flips", "verdict").rows()
    [('x', 'y', 0.5, 'flips')]
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
    return Stability(
        systems=named,
        factors=factors,
        conditions=conditions,
        values=values,
        significant=significant,
        alpha=alpha,
        notes=tuple(notes),
    )


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


def _decomposition(result: Stability) -> pl.DataFrame:
    ranks = _places(result.values)
    is_known = ~np.isnan(ranks)
    filled = np.where(is_known, ranks, 0.0)
    count = is_known.sum(axis=0)
    system_mean = filled.sum(axis=0) / np.maximum(count, 1)
    grand = filled.sum() / is_known.sum()
    total = float((np.where(is_known, ranks - grand, 0.0) ** 2).sum())
    of_system = float((count * (system_mean - grand) ** 2).sum())
    systems, runs = len(result.systems), result.conditions.height
    codes = {name: _codes(result.conditions[name]) for name in result.factors}
    balanced = is_known.all() and math.prod(int(c.max()) + 1 for c in codes.values()) == runs
    squares, levels = {}, {}
    for name, code in codes.items():
        levels[name] = int(code.max()) + 1
        squares[name] = _between(filled, is_known, code, levels[name], system_mean)
    residual = total - of_system - sum(squares.values())
    freedom = {name: (levels[name] - 1) * (systems - 1) for name in codes}
    left = (runs - 1) * (systems - 1) - sum(freedom.values())
    noise = max(residual, 0.0) / left if left > 0 else 0.0
    rows: list[dict[str, object]] = [
        {"factor": SYSTEM, "levels": systems, "share": _part(of_system, total)}
    ]
    for name, amount in squares.items():
        share = _part(amount, total)
        row: dict[str, object] = {"factor": name, "levels": levels[name], "share": share}
        if balanced and freedom[name]:
            row["component"] = max(amount / freedom[name] - noise, 0.0) / (runs / levels[name])
        row["tau"] = _tau_when_only(result, name)
        rows.append(row)
    remaining: dict[str, object] = {"factor": REST, "levels": None}
    if balanced:
        remaining |= {"share": _part(max(residual, 0.0), total), "component": noise}
    rows.append(remaining)
    numbers = dict.fromkeys(("share", "component", "tau"), pl.Float64)
    return pl.DataFrame(rows, schema={"factor": pl.String, "levels": pl.Int64, **numbers})


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


def _part(amount: float, total: float) -> float | None:
    return amount / total if total > 0 else None


def _tau_when_only(result: Stability, factor: str) -> float | None:
    """Return the mean τ_b between conditions that differ in one factor only."""
    from unskew.stats import kernels

    others = [name for name in result.factors if name != factor]
    if others:
        keys = result.conditions.select(others)
        group = _numbered(keys, keys.unique(maintain_order=True))
    else:
        group = np.zeros(result.conditions.height, np.int64)
    taus: list[float] = []
    for number in range(int(group.max()) + 1):
        rows = result.values[group == number]
        if len(rows) < 2:
            continue
        for i, j in combinations(range(len(rows)), 2):
            valid = ~np.isnan(rows[i]) & ~np.isnan(rows[j])
            if valid.sum() > 1:
                tau = kernels.tau_b(frozen(rows[i][valid]), frozen(rows[j][valid]))
                taus.append(float(tau))
    defined = [tau for tau in taus if not math.isnan(tau)]
    return math.fsum(defined) / len(defined) if defined else None
