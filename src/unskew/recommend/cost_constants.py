"""What single operations cost: the one table of measured constants behind every estimate.

`python benchmarks/cost.py fit` measures them anew and writes this file.
"""

from __future__ import annotations

NANOSECONDS: dict[str, float] = {
    "draw": 0.5,
    "ease flop": 0.045,
    "factor flop": 0.1,
    "gram product": 1.0,
    "knn candidate": 1.5,
    "knn product": 1.3,
    "pass": 3.0,
    "score cell": 0.4,
    "sgd step": 0.25,
    "slim cell": 410.0,
    "solve flop": 0.11,
    "sparse flop": 0.25,
    "svd flop": 0.06,
    "topic": 0.68,
    "vote": 1.0,
    "vote row": 0.3,
}
"""Nanoseconds of one processor per operation."""
