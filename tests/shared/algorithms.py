"""Every recommender, with settings for small data, and ratings to fit it to."""

import numpy as np

from unskew.recommend.registry import ALGORITHMS, IN_STUDIES, algorithm

EVERYONE = sorted([*ALGORITHMS, *IN_STUDIES])


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
    "with-fallback": {"of": {"name": "user-knn", "k": 5}},
}


def build(name, **more):
    """Build an algorithm with settings for small data."""
    return algorithm(name, **{**SMALL.get(name, {}), **more})


def all_scores(model, train):
    """Return the scores of all users and items."""
    return model.score(np.arange(len(train.users), dtype=np.int32))


def check_same_bits(algorithm, train, monkeypatch):
    """Fit with one, two and three threads, score all users at once and one by one."""
    monkeypatch.setattr("unskew.engine.threads.SMALL", 0)
    several = []
    for threads in (1, 2, 3):
        monkeypatch.setattr("unskew.engine.threads.available", lambda threads=threads: threads)
        model = algorithm.fit(train, 7)
        several.append(all_scores(model, train))
    assert len({scores.tobytes() for scores in several}) == 1
    users = range(len(train.users))
    alone = np.concatenate([model.score(np.array([user], np.int32)) for user in users])
    assert alone.tobytes() == several[0].tobytes()
    assert all_scores(algorithm.fit(train, 8), train).tobytes() != several[0].tobytes()
