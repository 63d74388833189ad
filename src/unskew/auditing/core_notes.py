"""What a reader of an audit should know of its core: cold users, and the settings of systems."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl

from unskew.auditing.cold_users import FALLBACK
from unskew.auditing.core import Core
from unskew.experiment.halving import BUDGET


def core_notes(core: Core) -> list[str]:
    """Return what was assumed: of cold users, where there are any, and how systems were tuned."""
    return [*_cold(core), *_tuning(core)]


def _cold(core: Core) -> list[str]:
    """Return what was assumed of users without training ratings, where there are any."""
    if not core.has_cold:
        return []
    table = core.cold_table().unique("design", maintain_order=True).filter(pl.col("cold") > 0)
    counts = {
        row["design"]: f"{row['cold']:,} of {row['users']:,} under {row['design']}"
        for row in table.iter_rows(named=True)
    }
    apart = [text for design, text in counts.items() if design in core.warm_designs]
    every = [design for design in counts if design not in core.warm_designs]
    lines = [FALLBACK]
    if apart:
        lines.append(
            "systems are compared on users with training ratings; cold users are scored "
            f"separately ({'; '.join(apart)}, over all splits)"
        )
    if every:
        lines.append(
            f"under {', '.join(every)}, systems are compared on all users, because all users of "
            "a split are cold"
        )
    return lines


def _tuning(core: Core) -> list[str]:
    """Say which settings were chosen, in how many splits, and which lie at an end of the grid."""
    if not core.tuned:
        return []
    chosen = [_choices(core, system) for system in core.systems if system in core.tuned[0]]
    lines = [
        f"settings: chosen by {core.metric} on a validation fifth of the training ratings of "
        f"each split, from up to {BUDGET} candidates per system: {'; '.join(chosen)}"
    ]
    for system in core.tuned[0]:
        ends = [name for split in core.tuned for name in split[system].edges]
        lines += [
            f"settings: {system}: the chosen {name} is the first or last value tried in {count} "
            f"of {len(core.tuned)} splits; a value beyond it may be better"
            for name, count in Counter(ends).items()
        ]
        reasons = {split[system].reason for split in core.tuned} - {""}
        lines += [f"settings: {system}: {reason}" for reason in sorted(reasons)]
    return lines


def _choices(core: Core, system: str) -> str:
    counts = Counter(split[system].text for split in core.tuned)
    if len(counts) == 1:
        return f"{system} {next(iter(counts))}"
    return f"{system} " + " or ".join(
        f"{text} ({count} of {len(core.tuned)} splits)" for text, count in counts.most_common()
    )


def tuning_card(core: Core) -> dict[str, list[dict[str, Any]]]:
    """Return the chosen settings by design and split, as plain values."""
    return {
        design: [
            {
                name: {
                    "settings": dict(one.settings),
                    "default": one.is_default,
                    "edges": list(one.edges),
                    "tried": one.tried,
                }
                for name, one in split.items()
            }
            for split in splits
        ]
        for design, splits in core.tuned_by_design.items()
    }
