"""The numbers of an audit from which readers of its page choose: `explorer_of`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.auditing.design_means import DesignMeans, Differences
from unskew.auditing.headline import pair_of
from unskew.evaluation.scores import Scores
from unskew.metrics.names import parse
from unskew.report.explorer import ALL_USERS, WARM_USERS, Explorer
from unskew.stats.samples import Pairs

if TYPE_CHECKING:
    from unskew.auditing.core import Core
    from unskew.auditing.measurements import Measurements

BEST = 10
"""Differences are worked out for the pairs of this many systems."""
KEYS = {
    "metric": pl.String,
    "cutoff": pl.Int64,
    "design": pl.String,
    "users": pl.String,
}
SCORES = {
    **KEYS,
    "system": pl.String,
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64),
    "place": pl.Int64,
}
PAIRS = {
    **KEYS,
    "a": pl.String,
    "b": pl.String,
    **dict.fromkeys(("difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("better", "worse", "same"), pl.Int64),
}


def explorer_of(audit: Measurements) -> Explorer | None:
    """Return the means and differences of an audit for every metric, design and group of users.

    None where nobody has a choice: one system, one metric, one design.

    Parameters
    ----------
    audit
        What was measured.
    """
    pair = _pair_of(audit)
    best = audit.order()[:BEST]
    # The pair that the first screen speaks of is always among them.
    best += [one for one in pair if one not in best]
    explorer = explored(audit.core, best)
    if explorer.scores.select(*KEYS).n_unique() < 2 and len(audit.systems) < 2:
        return None
    name, cutoff = metric_parts(audit.metric)
    known = explorer.scores.filter(pl.col("design") == audit.common)["users"]
    start = {
        "metric": name,
        "cutoff": "" if cutoff is None else str(cutoff),
        "design": audit.common,
        "users": WARM_USERS if WARM_USERS in known else ALL_USERS,
        **dict(zip("ab", pair, strict=False)),
    }
    return Explorer(
        scores=explorer.scores,
        pairs=explorer.pairs,
        start=start,
        better=explorer.better,
        designs=audit.designs,
    )


def _pair_of(audit: Measurements) -> tuple[str, ...]:
    """Return the two systems that the finding is about; one, if there is one only."""
    return pair_of(audit) if len(audit.systems) > 1 else audit.systems


def metric_parts(label: str) -> tuple[str, int | None]:
    """Return the name of a metric as it was asked for, without its cutoff, and the cutoff.

    Examples
    --------
    >>> from unskew.auditing.explorer import metric_parts
    >>> metric_parts("nDCL@10"), metric_parts("SR(gamma=2)")
    (('nDCL', 10), ('SR(gamma=2)', None))
    """
    cutoff = parse(label).cutoff
    return (label if cutoff is None else re.sub(r"[@_]\d+$", "", label)), cutoff


def explored(core: Core, best: list[str]) -> Explorer:
    """Return the numbers of all metrics and designs.

    Parameters
    ----------
    core
        The systems under every design and split.
    best
        The systems whose pairs are compared.
    """
    place = {system: at for at, system in enumerate(core.systems)}
    pairs = Pairs(
        *(
            np.array([place[pair[side]] for pair in combinations(best, 2)], np.int64)
            for side in (0, 1)
        )
    )
    scores: list[pl.DataFrame] = []
    differences: list[pl.DataFrame] = []
    better: dict[str, str] = {}
    for one in _choices(core):
        for label in one.of.metrics:
            name, cutoff = metric_parts(label)
            better.setdefault(name, parse(label).better)
            values = one.of.values(label) if one.of.is_per_user(label) else None
            for users in one.users:
                keys = {"metric": name, "cutoff": cutoff, "design": one.design, "users": users}
                scores.append(_scores(one.of, label, values, keys))
                if values is not None and len(pairs):
                    rows = one.of.differences(label, values, pairs)
                    if rows is not None:
                        differences.append(_pairs(core.systems, pairs, rows, keys))
    return Explorer(
        scores=pl.concat(scores) if scores else pl.DataFrame(schema=SCORES),
        pairs=pl.concat(differences) if differences else pl.DataFrame(schema=PAIRS),
        better=better,
    )


@dataclass(frozen=True, eq=False)
class _Choice:
    """A design and the groups of users that have the same numbers under it."""

    design: str
    users: tuple[str, ...]
    of: DesignMeans


def _choices(core: Core) -> Iterator[_Choice]:
    """Yield the designs; twice where some users that are averaged have no training ratings."""
    cold = {design: _has_cold(core, design, parts) for design, parts in core.scores.items()}
    for design, parts in core.scores.items():
        everyone = DesignMeans(tuple(parts), core.systems)
        if not any(cold.values()):
            yield _Choice(design, (ALL_USERS,), everyone)
        elif not cold[design]:
            yield _Choice(design, (ALL_USERS, WARM_USERS), everyone)
        else:
            yield _Choice(design, (ALL_USERS,), everyone)
            if design in core.warm_designs:
                warm = DesignMeans(core.warm_scores[design], core.systems)
                yield _Choice(design, (WARM_USERS,), warm)


def _has_cold(core: Core, design: str, parts: tuple[Scores, ...]) -> bool:
    """Tell whether some mean is taken over users without a training rating."""
    return any(
        bool((part.averaged(system) & ~mask).any())
        for part, mask in zip(parts, core.warm[design], strict=True)
        for system in part.systems
    )


def _scores(
    of: DesignMeans, label: str, values: F64 | None, keys: Mapping[str, object]
) -> pl.DataFrame:
    means = of.means(label, values)
    columns = {
        "system": list(of.systems),
        "value": means.value,
        "low": means.low,
        "high": means.high,
        "chance": of.chance(label),
        "place": means.place,
    }
    place = pl.when(pl.col("value").is_null()).then(None).otherwise("place").alias("place")
    return _frame(keys, columns, SCORES).with_columns(place)


def _pairs(
    systems: tuple[str, ...], pairs: Pairs, rows: Differences, keys: Mapping[str, object]
) -> pl.DataFrame:
    columns = {
        "a": [systems[at] for at in pairs.one],
        "b": [systems[at] for at in pairs.other],
        "difference": rows.difference,
        "low": rows.low,
        "high": rows.high,
        "better": rows.better,
        "worse": rows.worse,
        "same": rows.same,
    }
    return _frame(keys, columns, PAIRS)


def _frame(
    keys: Mapping[str, object], columns: Mapping[str, object], schema: Mapping[str, type]
) -> pl.DataFrame:
    """Return rows that share their keys; what is not a number is null."""
    frame = pl.DataFrame(columns).with_columns(
        pl.lit(value).alias(key) for key, value in keys.items()
    )
    return frame.select(pl.col(name).cast(kind) for name, kind in schema.items()).fill_nan(None)
