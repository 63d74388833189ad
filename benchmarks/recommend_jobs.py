"""Other libraries' recommenders on a training part; run by peers_recommend.py, prints JSON.

python recommend_jobs.py job folder settings

The folder holds train.npz; settings are JSON. What was learned is left in the folder, where our
side measures it. Every job first learns from a few users, so that starting up is not timed.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

FEW = 300


def matrix(folder: Path, rated_only: bool = False) -> csr_matrix:
    """Read the ratings as users x items; `rated_only` leaves items without ratings out."""
    train = np.load(folder / "train.npz")
    where = train["user"], train["item"]
    R = csr_matrix((train["value"], where), shape=tuple(train["shape"]))
    return R[:, R.getnnz(axis=0) > 0] if rated_only else R


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return how long some work takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def save_scores(folder: Path, scores: np.ndarray, R: csr_matrix) -> None:
    """Leave scores of all users and items; NaN for items that nobody rated."""
    scores[:, R.getnnz(axis=0) == 0] = np.nan
    np.save(folder / "scores.npy", scores)


def factor_scores(model: Any) -> np.ndarray:
    """Return the inner products of implicit's factors (biases are columns of them)."""
    users, items = (np.asarray(f, np.float64) for f in (model.user_factors, model.item_factors))
    return users @ items.T


def als(folder: Path, alpha: float, **settings: Any) -> dict:
    """Implicit's alternating least squares; it is given confidences, 1 + α r, as they are."""
    from implicit.cpu.als import AlternatingLeastSquares

    R = matrix(folder)
    confidence = R.astype(np.float32)
    confidence.data = 1 + np.float32(alpha) * confidence.data

    def fit(some: csr_matrix) -> AlternatingLeastSquares:
        model = AlternatingLeastSquares(alpha=1.0, random_state=0, **settings)
        model.fit(some, show_progress=False)
        return model

    fit(confidence[:FEW])
    seconds, model = timed(lambda: fit(confidence))
    save_scores(folder, factor_scores(model), R)
    np.savez(folder / "factors.npz", users=model.user_factors, items=model.item_factors)
    return {"seconds": seconds}


def bpr(folder: Path, **settings: Any) -> dict:
    """Implicit's Bayesian personalised ranking."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    R = matrix(folder).astype(np.float32)

    def fit(some: csr_matrix) -> BayesianPersonalizedRanking:
        model = BayesianPersonalizedRanking(random_state=0, **settings)
        model.fit(some, show_progress=False)
        return model

    fit(R[:FEW])
    seconds, model = timed(lambda: fit(R))
    save_scores(folder, factor_scores(model), R)
    return {"seconds": seconds}


def cosine(folder: Path, **settings: Any) -> dict:
    """Implicit's nearest items by cosine; what they do not reach has no score."""
    from implicit.nearest_neighbours import CosineRecommender

    R = matrix(folder)

    def fit(some: csr_matrix) -> CosineRecommender:
        model = CosineRecommender(**settings)
        model.fit(some, show_progress=False)
        return model

    fit(R[:FEW])
    seconds, model = timed(lambda: fit(R))
    scores = (R @ model.similarity).toarray()
    save_scores(folder, np.where(scores > 0, scores, np.nan), R)
    return {"seconds": seconds}


def elastic(
    folder: Path, l1: float, l2: float, tolerance: float, columns: list[int], threads: int
) -> dict:
    """scikit-learn's elastic net of some items on the others, from one Gram matrix of them all.

    `enet_path` is what `ElasticNet` calls, without its checks and copies of the Gram matrix for
    every item. Ratings are positive, so that an item whose correlation with itself is set to 0
    gets no weight. Time: the Gram matrix, and the columns scaled up to all items.
    """
    from joblib import Parallel, delayed
    from sklearn.linear_model import enet_path

    R = matrix(folder)
    X = R.toarray(order="F")
    users, items = X.shape
    settings = {
        "alphas": [(l1 + l2) / users], "l1_ratio": l1 / (l1 + l2), "tol": tolerance,
        "max_iter": 10_000, "positive": True, "check_input": False,
    }  # fmt: skip

    def solve(G: np.ndarray, i: int) -> np.ndarray:
        correlation = G[i].copy()
        correlation[i] = 0.0
        return enet_path(X, X[:, i], precompute=G, Xy=correlation, **settings)[1][:, 0]

    before, G = timed(lambda: np.ascontiguousarray((R.T @ R).toarray()))
    with Parallel(n_jobs=threads, prefer="threads") as parallel:
        parallel(delayed(solve)(G, i) for i in columns[:threads])
        each, weights = timed(lambda: parallel(delayed(solve)(G, i) for i in columns))
    np.save(folder / "weights.npy", np.array(weights))
    return {"seconds": before + each * items / len(columns)}


def nmf(folder: Path, topics: int, iterations: int) -> dict:
    """scikit-learn's factors of least Kullback-Leibler divergence, as mixtures of topics.

    They start from singular vectors, which is its default and better than at random.
    """
    from sklearn.decomposition import NMF

    R = matrix(folder)

    def fit(some: csr_matrix) -> tuple[np.ndarray, np.ndarray]:
        model = NMF(
            topics, solver="mu", beta_loss="kullback-leibler", max_iter=iterations, tol=0,
            random_state=0,
        )  # fmt: skip
        W = model.fit_transform(some)
        return W, model.components_

    fit(R[:FEW])
    seconds, (W, H) = timed(lambda: fit(R))
    total = H.sum(axis=1)
    W *= total
    W /= W.sum(axis=1, keepdims=True)
    np.savez(folder / "mixture.npz", theta=W, phi=(H / total[:, None]).T)
    return {"seconds": seconds}


def _lda(topics: int, alpha: float, beta: float, iterations: int, threads: int) -> Any:
    from sklearn.decomposition import LatentDirichletAllocation

    return LatentDirichletAllocation(
        topics, doc_topic_prior=alpha, topic_word_prior=beta, learning_method="batch",
        max_iter=iterations, n_jobs=threads, random_state=0,
    )  # fmt: skip


def lda(folder: Path, iterations: int, **settings: Any) -> dict:
    """scikit-learn's latent Dirichlet allocation, and its perplexity."""
    R = matrix(folder, rated_only=True)
    _lda(iterations=1, **settings).fit(R[:FEW])
    seconds, model = timed(lambda: _lda(iterations=iterations, **settings).fit(R))
    return {"seconds": seconds, "perplexity": model.perplexity(R)}


def perplexity(folder: Path, **settings: Any) -> dict:
    """scikit-learn's perplexity of other topics than its own, given as lamda.npy."""
    from scipy.special import psi

    R = matrix(folder, rated_only=True)
    model = _lda(iterations=1, **settings).fit(R[:FEW])
    topics = np.load(folder / "lamda.npy")
    model.components_ = topics
    model.exp_dirichlet_component_ = np.exp(psi(topics) - psi(topics.sum(axis=1, keepdims=True)))
    return {"perplexity": model.perplexity(R)}


JOBS = {
    "als": als, "bpr": bpr, "cosine": cosine, "elastic": elastic,
    "nmf": nmf, "lda": lda, "perplexity": perplexity,
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    job, home, given = sys.argv[1:]
    print(json.dumps(JOBS[job](Path(home), **json.loads(given))))
