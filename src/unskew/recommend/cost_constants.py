"""What single operations cost: the one table of measured constants behind every estimate.

`python benchmarks/cost.py fit` measures them anew and writes this file.
"""

from __future__ import annotations

NANOSECONDS: dict[str, float] = {
    "concluded value": 1.27e03,
    "conclusion": 6.36e08,
    "diagnosed list": 6.47e03,
    "diagnosis": 1.1e08,
    "draw": 0.396,
    "ease flop": 0.0164,
    "factor cell": 14.5,
    "factor flop": 0.0652,
    "gram product": 9.04,
    "judged list": 1.33e03,
    "knn candidate": 0.538,
    "knn product": 0.649,
    "laid design": 9.27e06,
    "laid list": 3.19e03,
    "pass": 46.7,
    "permutation": 0.0116,
    "rank cell": 0.517,
    "read rating": 23.8,
    "redrawn rating": 72.1,
    "score cell": 0.16,
    "sgd step": 0.625,
    "slim cell": 107,
    "solve flop": 0.0698,
    "sparse flop": 0.384,
    "split rating": 61.4,
    "start": 8.1e08,
    "stated list": 3.42e03,
    "stated rating": 384,
    "stated value": 313,
    "statement": 3.4e08,
    "svd flop": 0.191,
    "task": 9.41e05,
    "task design": 3.23e06,
    "topic": 0.419,
    "trial": 1.04e07,
    "trial user": 167,
    "vote": 0.963,
    "vote cell": 3.65,
    "vote row": 0.169,
}
"""Nanoseconds of one processor per operation."""

BYTES: dict[str, float] = {
    "model": 1,
    "rating": 13.8,
    "start": 3.32e08,
    "value": 15.3,
}
"""Bytes per thing that is held in memory."""
PARALLEL = 0.85
"""The share of the work of an audit that several processors do side by side."""
