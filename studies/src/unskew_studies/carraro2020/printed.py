"""carraro2020: the tables that the paper prints, and what follows from them by arithmetic."""

from __future__ import annotations

import math
from collections.abc import Mapping

TRUE = "true"
SETS = ("full", "reg", "skew", "wtd", "wtd-h")
"""Its test sets: FULL, REG, SKEW, WTD and WTD_H."""
COAT, R3 = "coat", "yahoo-r3"
BOTH = (COAT, R3)
NAMES = dict(zip(SETS, ("FULL", "REG", "SKEW", "WTD", "WTD_H"), strict=True))
INTELLIGENT = ("skew", "wtd", "wtd-h")
SYSTEMS = ("PosPop", "AvgRating", "UB_KNN", "IB_KNN", "MF")
IMPERSONAL, PERSONAL = SYSTEMS[:2], SYSTEMS[2:]

Means = Mapping[tuple[str, str], float]
"""A mean by test set (`true` for the random ratings) and system."""

STATISTICS = ("ratings", "users", "items", "per user", "per item", "mean", "sparsity")
TABLE_1: dict[str, dict[str, tuple[float, ...]]] = {
    "coat": {
        "random": (4640, 290, 300, 16, 15, 2.22, 0.94),
        "observed": (6960, 290, 300, 24, 23, 2.61, 0.92),
    },
    "yahoo-r3": {
        "random": (54_000, 5400, 1000, 10, 54, 1.81, 0.99),
        "observed": (129_000, 5400, 1000, 23, 129, 2.87, 0.97),
    },
}
STEPS = {"coat": (1, 1, 1, 1, 1, 0.01, 0.01), "yahoo-r3": (1000, 1, 1, 1, 1, 0.01, 0.01)}
"""The last digit that table 1 prints of each statistic."""

TABLE_2: dict[str, dict[str, tuple[float, ...]]] = {
    "coat": {
        "PosPop": (0.066, 133, 124, 13, 1, -43),
        "AvgRating": (0.068, 61, 53, 31, 6, 24),
        "UB_KNN": (0.067, 229, 225, 112, 90, 34),
        "IB_KNN": (0.073, 236, 227, 105, 82, 26),
        "MF": (0.063, 180, 176, 179, 123, 102),
    },
    "yahoo-r3": {
        "PosPop": (0.056, 280, 272, -14, -68, -79),
        "AvgRating": (0.016, -77, -77, -50, -51, -49),
        "UB_KNN": (0.073, 273, 265, 35, -9, -24),
        "IB_KNN": (0.071, 313, 306, 45, -2, -17),
        "MF": (0.077, 258, 252, 90, 66, 52),
    },
}
"""Recall@10 on random ratings, and the error of each test set in percent of it."""
TABLE_3 = {"coat": (0.2, 0.2, 0.0, 0.0, 0.0), "yahoo-r3": (0.6, 0.6, 0.8, 0.8, 0.8)}
"""Kendall's τ between the order of the systems on each test set and the true one."""
TABLE_4 = {"coat": (0.3, 0.3, 0.7, 0.7, 0.7), "yahoo-r3": (0.68, 0.68, 0.68, 0.68, 0.68)}
"""The same without MF."""

NOISE = 25.0
"""Points below which a cell of table 2 is noise: on Coat the error of one repetition has a
standard deviation of 15 to 90 points."""


def truncated(value: float, step: float) -> float:
    """Return a number cut off after a digit, as table 1 does it: 2.876 gives 2.87."""
    return math.floor(value / step + 1e-9) * step


def printed_errors(dataset_name: str) -> dict[tuple[str, str], float]:
    """Return the cells of table 2, by test set and system."""
    return {
        (name, system): cell
        for system, (_, *cells) in TABLE_2[dataset_name].items()
        for name, cell in zip(SETS, cells, strict=True)
    }


def printed_means(dataset_name: str) -> dict[tuple[str, str], float]:
    """Return the recall from which table 2 has its percentages."""
    true = {(TRUE, system): row[0] for system, row in TABLE_2[dataset_name].items()}
    return true | {
        (name, system): true[TRUE, system] * (1 + error / 100)
        for (name, system), error in printed_errors(dataset_name).items()
    }
