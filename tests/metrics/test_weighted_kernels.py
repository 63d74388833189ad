"""Kernels of weighted metrics against plain loops."""

import numpy as np
import pytest

from unskew.metrics.kernels.lists import weighted_precisions


def plain_precisions(ranks, weights, cutoff):
    """A plain twin: the sum over hits of w / rank x (1 + weight of the hits above)."""
    total = above = 0.0
    for rank, weight in zip(ranks, weights, strict=True):
        if rank > cutoff:
            break
        total += weight * (1.0 + above) / rank
        above += weight
    return total


@pytest.mark.parametrize("seed", range(5))
def test_weighted_precisions(seed):
    rng = np.random.default_rng(seed)
    rows = [
        np.sort(rng.choice(np.arange(1, 30), rng.integers(0, 8), replace=False)) for _ in "abcd"
    ]
    rank = np.concatenate(rows).astype(np.int32)
    start = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    weight = rng.random(rank.size)
    judgment = np.arange(rank.size, dtype=np.int32)
    cutoffs = np.array([1, 5, 20, 40], np.int64)
    out = np.full((cutoffs.size, len(rows)), np.nan)
    weighted_precisions(start, rank, judgment, weight, cutoffs, out)
    for row, ranks in enumerate(rows):
        mine = weight[start[row] : start[row + 1]]
        plain = [plain_precisions(ranks, mine, cutoff) for cutoff in cutoffs]
        assert out[:, row] == pytest.approx(plain, abs=1e-12)
