"""The values of users that groups are made of: one number per user and system."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unskew.arrays import F64
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS, evaluate
from unskew.judging.judged import Judged
from unskew.stats.pairing import Paired, Source, paired


def paired_values(
    scores: Source, metric: str | Sequence[str] | None, threads: int | None
) -> tuple[Paired, Judged | None]:
    """Pair values by user; judged data are evaluated first, and returned."""
    judged = scores if isinstance(scores, Judged) else None
    if judged is not None:
        scores = evaluate(judged, METRICS if metric is None else metric, threads=threads)
    pairing = paired(scores)
    several = not all(place.is_single for place in pairing.places)
    other = next((part.over for part in pairing.parts if part.over != "users"), None)
    if several and other is not None:
        raise SettingError(
            f"some users have several lists, and these scores average over {other}: groups of "
            "users need a value per user; evaluate with over='users'"
        )
    return pairing, judged


def values_of_users(pairing: Paired, label: str) -> F64:
    """Return users x systems; of several folds the mean of those in which the user has a value.

    NaN: the user has none.
    """
    if len(pairing.parts) < 2:
        return _whole(pairing, label)
    total = np.zeros((len(pairing), len(pairing.systems)))
    count = np.zeros(len(pairing))
    for part in pairing.parts:
        alone = paired(part)
        values = _whole(alone, label)[:, [alone.systems.index(name) for name in pairing.systems]]
        at = pairing.users.codes(alone.users.values)
        known = (at >= 0) & ~np.isnan(values).any(axis=1)
        total[at[known]] += values[known]
        count[at[known]] += 1
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count[:, None] > 0, total / count[:, None], np.nan)


def _whole(pairing: Paired, label: str) -> F64:
    values = pairing.matrix(label)
    kept = ~np.isnan(values).any(axis=1)
    # What was scaled to the mean over all users is the user's value again (`Paired.complete`).
    return values * (int(kept.sum()) / len(values)) if kept.any() and not kept.all() else values
