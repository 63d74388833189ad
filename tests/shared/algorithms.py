"""Every recommender, with settings for small data, and ratings to fit it to."""

import numpy as np
import polars as pl

import unskew as us
from unskew.data.ratings import Ratings
from unskew.recommend.registry import ALGORITHMS, algorithm

EVERYONE = sorted(ALGORITHMS)


# What suits a few dozen users: fewer factors and neighbours than for thousands.
SMALL = {
    "bprmf": {"factors": 8, "epochs": 200, "learning_rate": 0.05},
    "svd": {"factors": 4},
    "biased-mf": {"factors": 4},
    "puresvd": {"factors": 2},
    "wrmf": {"factors": 2, "regularisation": 1.0},
    "plsa": {"topics": 2},
    "lda": {"topics": 2},
    "gaussian-plsa": {"topics": 2},
    "pzt": {"factors": 2, "regularisation": 1.0},
    "eals": {"factors": 2, "missing": 20.0},
    "pnmf": {"factors": 2},
    "hpf": {"factors": 2},
    "slim": {"l1": 0.1, "l2": 1.0},
    "ease": {"l2": 10.0},
    "rw": {"k": 5},
    "rsv": {"k": 5},
    "chi2": {"k": 5},
    "kld": {"k": 5},
    "user-knn": {"k": 5},
    "rm1": {"k": 5},
    "rm2": {"k": 5},
    "lm-wsr-ub": {"k": 5, "mu": 10.0},
    "lm-wsr-ib": {"k": 5, "mu": 10.0},
    "uir": {"background": 0.5},
    "librec-slim": {"l1": 0.01, "l2": 3.0},
    "svdpp": {"factors": 4, "learning_rate": 0.01},
    "list-rank-mf": {"regularisation": 0.001},
}


def build(name, **more):
    """Build an algorithm with settings for small data."""
    return algorithm(name, **{**SMALL.get(name, {}), **more})


def ratings(rows, users=None, items=None):
    """Return ratings of (user, item, value); ids up to `users` and `items` exist without any."""
    user, item, value = (np.array(column) for column in zip(*rows, strict=True))
    made = Ratings.of(pl.Series(user), pl.Series(item), pl.Series(value, dtype=pl.Float64))
    if users is None:
        return made
    known = us.data.Ids(pl.Series(np.arange(users))), us.data.Ids(pl.Series(np.arange(items)))
    tables = [
        ids.codes(own.values) for ids, own in zip(known, (made.users, made.items), strict=True)
    ]
    return made.recode(known[0], tables[0], known[1], tables[1])
