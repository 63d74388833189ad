"""What single operations cost: the one table of measured constants behind every estimate.

`python benchmarks/cost.py fit` measures them anew and writes this file.
"""

from __future__ import annotations

NANOSECONDS: dict[str, float] = {
    "concluded value": 300.0,
    "conclusion": 5e8,
    "diagnosed list": 20000.0,
    "diagnosis": 5e8,
    "draw": 0.5,
    "ease flop": 0.045,
    "factor cell": 6.0,
    "factor flop": 0.1,
    "gram product": 1.0,
    "knn candidate": 1.5,
    "knn product": 1.3,
    "judged list": 1500.0,
    "laid design": 5e6,
    "laid list": 1500.0,
    "pass": 3.0,
    "permutation": 0.03,
    "rank cell": 2.0,
    "read rating": 50.0,
    "redrawn rating": 50.0,
    "score cell": 0.4,
    "sgd step": 0.25,
    "slim cell": 410.0,
    "split rating": 100.0,
    "start": 1.5e9,
    "stated list": 3000.0,
    "stated rating": 500.0,
    "stated value": 300.0,
    "statement": 1e9,
    "task": 5e6,
    "task design": 1e7,
    "trial": 5e6,
    "trial user": 1000.0,
    "solve flop": 0.11,
    "sparse flop": 0.25,
    "svd flop": 0.06,
    "topic": 0.68,
    "vote": 1.0,
    "vote cell": 2.0,
    "vote row": 0.3,
}
"""Nanoseconds of one processor per operation."""

BYTES: dict[str, float] = {
    "model": 1.0,
    "rating": 60.0,
    "start": 3.0e8,
    "value": 8.0,
}
"""Bytes per thing that is held in memory."""
PARALLEL = 0.85
"""The share of the work of an audit that several processors do side by side."""
