"""What single operations cost: the one table of measured constants behind every estimate.

`python benchmarks/cost.py fit` measures them anew and writes this file.
"""

from __future__ import annotations

NANOSECONDS: dict[str, float] = {
    "concluded value": 1.43e03,
    "conclusion": 2.93e08,
    "diagnosed list": 3.89e03,
    "diagnosis": 9.99e07,
    "draw": 0.455,
    "ease flop": 0.0416,
    "factor cell": 23.7,
    "factor flop": 0.00495,
    "gram product": 0.715,
    "judged list": 2.45e03,
    "knn candidate": 0.695,
    "knn product": 1.1,
    "laid design": 8.95e06,
    "laid list": 1.76e03,
    "pass": 29.3,
    "permutation": 0.00976,
    "rank cell": 5.29,
    "read rating": 19.5,
    "redrawn rating": 24,
    "score cell": 0.232,
    "sgd step": 1.13,
    "slim cell": 641,
    "solve flop": 0.0884,
    "sparse flop": 0.561,
    "split rating": 613,
    "start": 7.72e08,
    "stated list": 9.56e03,
    "stated rating": 898,
    "stated value": 464,
    "statement": 1.55e08,
    "svd flop": 0.161,
    "task": 7.41e05,
    "task design": 4.02e05,
    "topic": 0.543,
    "trial": 1.08e07,
    "trial user": 2.21e03,
    "vote": 1.21,
    "vote cell": 3.91,
    "vote row": 0.171,
}
"""Nanoseconds of one processor per operation."""

BYTES: dict[str, float] = {
    "model": 1,
    "rating": 37.5,
    "start": 3.13e08,
    "value": 14.4,
}
"""Bytes per thing that is held in memory."""
PARALLEL = 0.85
"""The share of the work of an audit that several processors do side by side."""
