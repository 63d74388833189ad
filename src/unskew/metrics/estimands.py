"""What can be estimated by weights and is no metric: averages over the liked items."""

from __future__ import annotations

from typing import Any

from unskew.errors import SettingError
from unskew.metrics.block import log_table
from unskew.metrics.definition import Definition
from unskew.metrics.weighted import (
    Linear,
    Weighted,
    liked_column,
    mean_discounted_gain,
    mean_normalised_rank,
)


def _only_estimated(*_: Any) -> Any:
    raise SettingError("ATOP and ADG are estimated (us.estimate), not evaluated")


ESTIMANDS = {
    # Mean normalised rank of the liked items: area under the recall curve (Steck 2010).
    "ATOP": Definition(
        "ATOP",
        _only_estimated,
        weighted=Weighted(mean_normalised_rank, is_ratio=True, needs_targets=True),
    ),
    # Mean discounted gain of the liked items (Yang et al. 2018).
    "ADG": Definition(
        "ADG",
        _only_estimated,
        weighted=Weighted(mean_discounted_gain, is_ratio=True),
        linear=Linear(liked_column, log_table),
    ),
}
