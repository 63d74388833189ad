"""mena2021: the numbers that the paper prints."""

from __future__ import annotations

SIZES = {
    "ml-1m": {"users": 6040, "items": 3706, "ratings": 1_000_209},
    "yahoo-r3": {"users": 5400, "items": 1000, "ratings": 129_179, "random": 54_000},
    "cm100k": {"users": 1054, "items": 1084, "familiar": 11_594, "not familiar": 91_990},
}
"""Table 2."""
CASES = {"ml-1m": (52.6, 8.6, 29.8, 9.0), "cm100k": (64.2, 5.2, 21.2, 9.4)}
"""Figs. 5 and 9: agree and steeper, agree and not, disagree and steeper, disagree and not; percent
of item pairs."""
PEARSON = {
    "phi_P/popularity": 0.93, "phi_P/rating": 0.38, "phi_antiP/popularity": -0.88,
    "phi_antiP/rating": -0.11,
}  # fmt: skip
"""Fig. 7."""
CONDENSED = {"P": -1.00, "Recall": -0.90}
"""Fig. 1, top."""
OBSERVED = {
    "ml-1m": {"P": 0.62, "Recall": 0.73},
    "yahoo-r3": {"P": 0.80, "Recall": 0.83},
    "cm100k": {"P": 0.65, "Recall": 0.65},
}
"""Figs. 1 (bottom) and 12: Kendall's τ of a metric and its twin, as observed."""
COVERAGE = {"ml-1m": 15.97, "yahoo-r3": 5.43, "cm100k": 1.10}
"""Fig. 12: judged items among the first ten, percent."""
TRUE = {"yahoo-r3": {"P": -0.77, "Recall": -0.80}, "cm100k": {"P": -0.90, "Recall": -0.72}}
"""Fig. 13: the same with unbiased test data."""
TRUE_COVERAGE = {"yahoo-r3": 1.23, "cm100k": 1.83}
HITS = {
    "yahoo-r3": {"P": 0.92, "Recall": 0.90, "nDCG": 0.90, "MRR": 0.88},
    "cm100k": {"P": 0.80, "Recall": 0.82, "nDCG": 0.87, "MRR": 0.90},
}
"""Figs. 14 and 17: Kendall's τ of a metric as observed and by the truth."""
FALSE = {
    "yahoo-r3": {"P": -0.58, "Recall": -0.57, "nDCG": -0.50, "MRR": -0.47},
    "cm100k": {"P": -0.42, "Recall": -0.42, "nDCG": -0.43, "MRR": -0.35},
}
"""The same of its twin."""
TURNED_HITS = {"P": -0.47, "Recall": -0.52}
TURNED_FALSE = {"P": 0.91, "Recall": 0.90}
"""Fig. 16: observed and true where popularity goes against relevance."""
TEMPORAL = {"P": 0.27, "Recall": 0.37, "nDCG": 0.08, "MRR": 0.20}
"""Fig. 18: as Fig. 12, by a split in time."""

Both = tuple[float, float]
"""A value for item a and one for item b."""
Numbers = dict[str, "float | Both"]
"""Numbers of a toy example by name."""
PRINTED_2: Numbers = {
    "p(rel|i)": (6 / 10, 4 / 10),
    "p(train|i)": (4 / 10, 2 / 10),
    "p(rel|train,i)": (3 / 4, 1 / 2),
    "p(rel|¬train,i)": (3 / 6, 3 / 8),
    "p(rel,train|i)": (3 / 10, 1 / 10),
    "p(train|rel,i)": (3 / 6, 1 / 4),
    "p(rel)": 10 / 20,
    "p(train)": 6 / 20,
    "p(rel|train)": 4 / 6,
    "p(rel|¬train)": 6 / 14,
    "p(rel,train)": 4 / 20,
    "p(train|rel)": 4 / 10,
}
"""Fig. 2: by item and over both; the test side is the same."""
PRINTED_4: dict[str, Numbers] = {
    "1": {
        "P@1": (0.6, 0.2),
        "anti-P@1": (0.4, 0.2),
        "odds": (1, 0.25),
        "p(rel|train)": (0.6, 0.5),
        "p(¬rel|train)": (0.4, 0.5),
        "phi_P": (0.6, 0.125),
        "phi_antiP": (-0.4, -0.125),
        "decrement of odds": 0.75,
        "decrement of p(rel|train)": 0.167,
        "decrement of p(¬rel|train)": 0.2,
        "agree": 0,
    },
    "2": {
        "P@1": (0.2, 0),
        "anti-P@1": (0.8, 0.4),
        "odds": (1, 0.25),
        "p(rel|train)": (0.2, 0),
        "p(¬rel|train)": (0.8, 1),
        "phi_P": (0.2, 0),
        "phi_antiP": (-0.8, -0.25),
        "decrement of odds": 0.75,
        "decrement of p(rel|train)": 1,
        "decrement of p(¬rel|train)": 0.2,
        "agree": 0,
    },
    "3": {
        "P@1": (0.6, 0.2),
        "anti-P@1": (0.2, 0.4),
        "odds": (0.667, 0.429),
        "p(rel|train)": (0.75, 0.333),
        "p(¬rel|train)": (0.25, 0.667),
        "phi_P": (0.5, 0.143),
        "phi_antiP": (-0.167, -0.286),
        "decrement of odds": 0.357,
        "decrement of p(rel|train)": 0.556,
        "decrement of p(¬rel|train)": 0.625,
        "agree": 1,
    },
}
PRINTED_8: dict[str, Numbers] = {
    "1a": {
        "real P@1": (0.6, 0.2),
        "real anti-P@1": (0.4, 0.8),
        "P consistent": 1,
        "anti-P consistent": 0,
    },
    "1b": {
        "real P@1": (0.6, 0.8),
        "real anti-P@1": (0.4, 0.2),
        "P consistent": 0,
        "anti-P consistent": 1,
    },
}


def correlations() -> list[float]:
    """Return every printed τ but those of Fig. 18."""
    tables = [CONDENSED, TURNED_HITS, TURNED_FALSE]
    for nested in (OBSERVED, TRUE, HITS, FALSE):
        tables += nested.values()
    return [value for table in tables for value in table.values()]
