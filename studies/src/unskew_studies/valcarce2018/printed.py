"""valcarce2018: the numbers that the paper prints, and the names of its metrics."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

CUTOFFS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
SEVEN = {
    "P": "set_P", "Recall": "set_recall", "MAP": "map", "nDCG": "ndcg", "MRR": "recip_rank",
    "bpref": "bpref", "infAP": "infAP2",
}  # fmt: skip
"""The metrics of Figs. 5 to 8 and Table 3: as printed, and as trec_eval and the released tables
name what was computed, on lists of 100."""
CUT = {
    "P": "P_{}", "Recall": "recall_{}", "MAP": "map_cut_{}", "nDCG": "ndcg_cut_{}",
    "MRR": "recip_rank_{}", "bpref": "bpref_{}", "infAP": "infAP2@{}",
}  # fmt: skip
"""The same at a cutoff."""
FAMILIES = ("P", "Recall", "MAP", "nDCG")
"""Those whose cutoffs are in the released tables."""
DEFINED = SEVEN | {family: CUT[family].format(100) for family in FAMILIES}
"""The seven as the text defines them: with a cutoff of 100, P over 100 items."""
COLUMNS = (*SEVEN.values(), *(name.format(k) for name in CUT.values() for k in CUTOFFS))
"""All columns: the seven, and the seven at eleven cutoffs."""

SETS = {"ml-1m": "MovieLens 1M", "librarything": "LibraryThing", "beeradvocate": "BeerAdvocate"}

TABLE_2 = {
    "ml-1m": (6_040, 3_706, 1_000_209, 4.468, 0.634),
    "librarything": (7_279, 37_232, 749_401, 0.277, 0.581),
    "beeradvocate": (33_388, 66_055, 1_571_808, 0.071, 0.865),
}
"""Users, items, ratings, density in %, Gini over items."""

TABLE_3 = {
    "ml-1m": (2.6, 7.0, 2.8, 1.4, 15.5, 9.9, 8.4),
    "librarything": (1.5, 5.9, 3.6, 0.2, 2.9, 5.4, 3.8),
    "beeradvocate": (1.9, 8.3, 10.7, 4.4, 5.8, 12.7, 4.8),
}
"""DP of the seven metrics."""

FIGURE_1 = (
    (1.00, 0.95, 0.93, 0.92, 0.92, 0.92, 0.92, 0.91, 0.90, 0.90, 0.90),
    (0.95, 1.00, 0.98, 0.97, 0.97, 0.97, 0.97, 0.96, 0.95, 0.95, 0.95),
    (0.93, 0.98, 1.00, 0.99, 0.99, 0.99, 0.99, 0.98, 0.97, 0.97, 0.97),
    (0.92, 0.97, 0.99, 1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.98, 0.98),
    (0.92, 0.97, 0.99, 1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.98, 0.98),
    (0.92, 0.97, 0.99, 1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.98, 0.98),
    (0.92, 0.97, 0.99, 1.00, 1.00, 1.00, 1.00, 0.99, 0.98, 0.98, 0.98),
    (0.91, 0.96, 0.98, 0.99, 0.99, 0.99, 0.99, 1.00, 0.99, 0.99, 0.99),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99, 1.00, 1.00, 1.00),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99, 1.00, 1.00, 1.00),
    (0.90, 0.95, 0.97, 0.98, 0.98, 0.98, 0.98, 0.99, 1.00, 1.00, 1.00),
)
"""τ between cutoffs of nDCG on MovieLens 1M."""

FIGURE_5 = {
    "ml-1m": (
        (1.00, 0.89, 0.87, 0.89, 0.71, 0.89, 0.91),
        (0.89, 1.00, 0.87, 0.90, 0.72, 0.90, 0.92),
        (0.87, 0.87, 1.00, 0.96, 0.84, 0.92, 0.92),
        (0.89, 0.90, 0.96, 1.00, 0.82, 0.94, 0.96),
        (0.71, 0.72, 0.84, 0.82, 1.00, 0.80, 0.80),
        (0.89, 0.90, 0.92, 0.94, 0.80, 1.00, 0.96),
        (0.91, 0.92, 0.92, 0.96, 0.80, 0.96, 1.00),
    ),
    "librarything": (
        (1.00, 0.99, 0.96, 0.97, 0.91, 0.95, 0.96),
        (0.99, 1.00, 0.95, 0.96, 0.90, 0.96, 0.97),
        (0.96, 0.95, 1.00, 0.99, 0.95, 0.95, 0.96),
        (0.97, 0.96, 0.99, 1.00, 0.94, 0.96, 0.97),
        (0.91, 0.90, 0.95, 0.94, 1.00, 0.90, 0.90),
        (0.95, 0.96, 0.95, 0.96, 0.90, 1.00, 0.99),
        (0.96, 0.97, 0.96, 0.97, 0.90, 0.99, 1.00),
    ),
    "beeradvocate": (
        (1.00, 0.85, 0.89, 0.90, 0.83, 0.76, 0.84),
        (0.85, 1.00, 0.85, 0.88, 0.83, 0.91, 0.95),
        (0.89, 0.85, 1.00, 0.97, 0.94, 0.78, 0.90),
        (0.90, 0.88, 0.97, 1.00, 0.90, 0.80, 0.93),
        (0.83, 0.83, 0.94, 0.90, 1.00, 0.80, 0.88),
        (0.76, 0.91, 0.78, 0.80, 0.80, 1.00, 0.87),
        (0.84, 0.95, 0.90, 0.93, 0.88, 0.87, 1.00),
    ),
}
"""τ between the seven metrics."""


def cutoffs(family: str) -> dict[str, str]:
    """Return the cutoffs of a metric: as printed (`@5`), and their columns."""
    return {f"@{k}": CUT[family].format(k) for k in CUTOFFS}


def as_pairs(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> pl.DataFrame:
    """Return a printed matrix as rows: a, b and τ."""
    rows = [
        (a, b, float(tau))
        for a, line in zip(names, matrix, strict=True)
        for b, tau in zip(names, line, strict=True)
    ]
    return pl.DataFrame(rows, schema=["a", "b", "tau"], orient="row")
