"""How often sentences of a kind are wrong in simulated worlds, as a report prints it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from unskew.auditing.captions import caption
from unskew.auditing.self_test.rates import Rate, Rates
from unskew.auditing.statement import Statement
from unskew.auditing.statements import KINDS

COLUMNS = (
    *("kind", "how often wrong", "over kinds of worlds", "worst kind of world", "fails when"),
    *("where it fails", "claimed", "printed when"),
)


def anchor_of(kind: str) -> str:
    """Return the name of the row that holds the rate of a kind."""
    return f"rate-{kind}"


def rate_of_kind(kind: str, rates: Rates | None) -> Rate | None:
    """Return the rate of a kind; None where a world cannot refute it, or it was not measured."""
    return None if rates is None or KINDS[kind].is_true is None else rates.get(kind)


def rate_values(kind: str, rates: Rates | None) -> dict[str, object] | None:
    """Return the rate of a kind as plain values, for JSON; None where it was not measured."""
    rate = rate_of_kind(kind, rates)
    if rate is None:
        return None
    return {
        "worlds": rate.worlds,
        "rate": rate.rate,
        "interval": [rate.low, rate.high],
        "by_kind_of_world": {one.world: one.rate for one in rate.by_world},
        "where_it_fails": {one.world: one.rate for one in rate.broken},
        "text": rate_sentence(kind, rates),
    }


def rate_sentence(kind: str, rates: Rates | None) -> str:
    """Say how often sentences of a kind are wrong: over simulated worlds, never of this report."""
    if KINDS[kind].is_true is None:
        return caption("rate none")
    rate = rate_of_kind(kind, rates)
    if rate is None:
        return caption("rate missing")
    values = {
        "rate": percent(rate.rate),
        "worlds": f"{rate.worlds:,}",
        "interval": f"[{100 * rate.low:.0f}, {100 * rate.high:.0f}]",
    }
    conditions = conditions_of(kind)
    if not conditions:
        return caption("rate", **values)
    return caption("rate fails", conditions=" or ".join(conditions), **values)


def conditions_of(kind: str) -> list[str]:
    """Return when sentences of a kind fail: a condition of theirs that does not hold."""
    return [one.replace("-", " ") for one in KINDS[kind].assumptions]


def percent(share: float) -> str:
    """Return a share in percent; a small one with a decimal."""
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def rate_table(statements: Sequence[Statement], rates: Rates | None) -> pl.DataFrame:
    """Return a row per kind among the statements, in the order of the catalogue."""
    present = {one.kind for one in statements}
    rows = [_row(kind, rates) for kind in KINDS if kind in present]
    table = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    return table.select(one for one in COLUMNS if table[one].null_count() < table.height)


def _row(kind: str, rates: Rates | None) -> tuple[str | None, ...]:
    rate = rate_of_kind(kind, rates)
    spread = worst = failing = None
    if rate is not None and rate.by_world:
        each = [one.rate for one in rate.by_world]
        spread = caption("range", low=percent(min(each)), high=percent(max(each)))
        worst = rate.by_world[0].world if each[0] > 0 else None
    if rate is not None and rate.broken:
        failing = caption("failing", world=rate.broken[0].world, rate=percent(rate.broken[0].rate))
    return (
        kind,
        rate_sentence(kind, rates),
        spread,
        worst,
        " or ".join(conditions_of(kind)) or None,
        failing,
        KINDS[kind].claims,
        KINDS[kind].rule,
    )
