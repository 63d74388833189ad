"""Our recommenders against other libraries' on one training part: times and qualities.

make bench-recommend                              all races (about ten minutes)
python benchmarks/peers_recommend.py wrmf-cg lda  some of them

Needs UNSKEW_DATA with ml-1m/ratings.parquet: MovieLens 1M with the split of valcarce2018. Every
peer has an environment of its own (.venv-peers-*, made at first use). Ours and the peer take
turns on the same two processors; the best time of each counts. Neither compilation nor the first
start is timed, and both are measured in the same way: rankings by unskew, WRMF and SLIM by their
objectives, pLSA by its likelihood, LDA by scikit-learn's perplexity.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import peers
import unskew as us

THREADS = 2
REPEAT = 3
LONG = 30.0
"""Seconds of a turn of both above which one is enough."""
MOST = 2000
"""Iterations after which ours is taken never to become as good as the peer."""
COLUMNS = 200
"""Items that the peer of SLIM solves; its time is scaled up to all."""
AS_GOOD = 0.995
"""Share of the peer's nDCG that counts as the same."""
SAME_OBJECTIVE = 1.001
"""Times the peer's objective that count as the same: both start at random, in other places."""

# Pins that were run.
peers.ENVIRONMENTS |= {
    "implicit": ["implicit==0.7.3", "scipy<2"],
    "sklearn": ["scikit-learn==1.9.1", "scipy<2"],
}


@dataclass(frozen=True)
class Result:
    """What a race came to."""

    ours: float
    theirs: float
    our_quality: str
    their_quality: str
    as_good: bool
    """Whether our quality is at least the peer's."""


@dataclass(frozen=True)
class Sitting:
    """The data of all races, and a folder in which both sides leave what they learned."""

    split: us.Split
    lists: us.targets.TargetLists
    few: us.Ratings
    folder: Path

    @classmethod
    def prepare(cls, home: Path, folder: Path) -> Sitting:
        """Read the ratings and leave the training part for the peers."""
        ratings = us.read_ratings(home / "ml-1m/ratings.parquet", tags=["valcarce_test"])
        test = ratings.tags["valcarce_test"].to_numpy()
        split = us.Split(ratings.take(~test), ratings.take(test))
        train = split.train
        np.savez(
            folder / "train.npz",
            user=train.user,
            item=train.item,
            value=train.value,
            shape=(len(train.users), len(train.items)),
        )
        few = ratings.take(~test & (ratings.user < 300))
        return cls(split, us.targets.TestItems().lists(split, liked=4), few, folder)

    def peer(self, environment: str, job: str, blas: int, **settings: Any) -> dict:
        """Run a peer's job in its environment, with so many threads for its BLAS."""
        script = Path(__file__).with_name("recommend_jobs.py")
        command = [peers.environment(environment), script, job, self.folder, json.dumps(settings)]
        variables = {**os.environ, "OPENBLAS_NUM_THREADS": str(blas)}
        done = subprocess.run(
            list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True, env=variables
        )
        return json.loads(done.stdout.strip().splitlines()[-1])

    def timed(self, algorithm: us.recommend.Algorithm) -> tuple[float, Any]:
        """Learn from the training part; return the time and the model."""
        start = time.perf_counter()
        model = algorithm.fit(self.split.train)
        return time.perf_counter() - start, model

    def turns(
        self,
        algorithm: us.recommend.Algorithm,
        peer: Callable[[], dict],
        first: float | None = None,
    ) -> tuple[float, float, Any]:
        """Let ours and the peer learn in turn; return both best times and our model.

        `first` is the peer's time where it had a turn already, to which ours then adds its own.
        """
        algorithm.fit(self.few)
        ours = [] if first is None else [self.timed(algorithm)[0]]
        theirs = [] if first is None else [first]
        for _ in range(REPEAT):
            start = time.perf_counter()
            seconds, model = self.timed(algorithm)
            ours.append(seconds)
            theirs.append(peer()["seconds"])
            if time.perf_counter() - start > LONG:
                break
        return min(ours), min(theirs), model

    def quality(self, model: object) -> dict[str, float]:
        """Return nDCG and P@10 of a model or a table of scores on the test part."""
        run = us.rank(model, self.lists, 100)
        scores = us.evaluate(self.split.test, {"it": run}, ["nDCG", "P@10"], liked=4, gain="rating")
        return scores.means()["it"]


def by_ranking(
    sitting: Sitting, algorithm: us.recommend.Algorithm, job: str, **settings: Any
) -> Result:
    """Race two recommenders with the same settings; both are judged by their rankings."""
    peer = partial(sitting.peer, "implicit", job, 1, **settings)
    ours, theirs, model = sitting.turns(algorithm, peer)
    mine = sitting.quality(model)
    other = sitting.quality(np.load(sitting.folder / "scores.npy"))
    as_good = mine["nDCG"] >= AS_GOOD * other["nDCG"]
    return Result(ours, theirs, ranking_text(mine), ranking_text(other), as_good)


def ranking_text(mean: dict[str, float]) -> str:
    return f"nDCG {mean['nDCG']:.4f}, P@10 {mean['P@10']:.4f}"


def wrmf(sitting: Sitting, solver: str) -> Result:
    """64 factors, 15 iterations, λ = 0.1, α = 1."""
    algorithm = us.recommend.WRMF(64, regularisation=0.1, iterations=15, alpha=1.0, solver=solver)
    peer = partial(
        sitting.peer,
        "implicit",
        "als",
        1,
        factors=64,
        regularization=0.1,
        iterations=15,
        alpha=1.0,
        use_cg=solver == "cg",
        num_threads=THREADS,
    )
    ours, theirs, model = sitting.turns(algorithm, peer)
    train = sitting.split.train
    mine = least_squares(train, model.user_factors, model.item_factors, algorithm)
    factors = np.load(sitting.folder / "factors.npz")
    users, items = (factors[part].astype(np.float64) for part in ("users", "items"))
    other = least_squares(train, users, items, algorithm)
    ranked = sitting.quality(model), sitting.quality(np.load(sitting.folder / "scores.npy"))
    texts = [
        f"objective {value:,.0f}, {ranking_text(quality)}"
        for value, quality in zip((mine, other), ranked, strict=True)
    ]
    return Result(ours, theirs, *texts, mine <= SAME_OBJECTIVE * other)


def least_squares(
    train: us.Ratings, X: np.ndarray, Y: np.ndarray, wrmf: us.recommend.WRMF
) -> float:
    """Return what WRMF minimises, over all cells: a Gram matrix for those without a rating."""
    weight = 1.0 + wrmf.alpha * train.value
    missed = total = 0.0
    for low in range(0, len(train), 100_000):
        some = slice(low, low + 100_000)
        score = (X[train.user[some]] * Y[train.item[some]]).sum(axis=1)
        missed += float(weight[some] @ (1.0 - score) ** 2)
        total -= float(score @ score)
    total += float(((X.T @ X) * (Y.T @ Y)).sum()) + missed
    return total + wrmf.regularisation * float((X**2).sum() + (Y**2).sum())


def item_knn(sitting: Sitting) -> Result:
    """20 neighbours; implicit's K counts the item itself."""
    return by_ranking(sitting, us.recommend.ItemKNN(20), "cosine", K=21, num_threads=THREADS)


def bprmf(sitting: Sitting) -> Result:
    """100 factors, 20 epochs, η = 0.02, λ = 0.01, one thread."""
    ours = us.recommend.BPRMF(100, 0.02, 0.01, 0.01, 0.01, epochs=20)
    return by_ranking(
        sitting,
        ours,
        "bpr",
        factors=100,
        learning_rate=0.02,
        regularization=0.01,
        iterations=20,
        num_threads=1,
    )


def slim(sitting: Sitting) -> Result:
    """l1 = 10, l2 = 1000, the peer at its default tolerance; ours solves all items, it some."""
    algorithm = us.recommend.SLIM(l1=10.0, l2=1000.0, tolerance=1e-7)
    train = sitting.split.train
    rated = np.flatnonzero(np.bincount(train.item, minlength=len(train.items)))
    columns = np.random.default_rng(0).choice(rated, COLUMNS, replace=False)
    peer = partial(
        sitting.peer,
        "sklearn",
        "elastic",
        1,
        l1=algorithm.l1,
        l2=algorithm.l2,
        tolerance=1e-4,
        columns=columns.tolist(),
        threads=THREADS,
    )
    ours, theirs, model = sitting.turns(algorithm, peer)
    R = np.zeros((len(train.users), len(train.items)))
    R[train.user, train.item] = train.value
    mine = objective(R, columns, learned_columns(model, columns), algorithm)
    other = objective(R, columns, np.load(sitting.folder / "weights.npy"), algorithm)
    text = "objective {:.3f}".format
    return Result(ours, theirs, text(mine), text(other), mine <= other)


def learned_columns(model: Any, columns: np.ndarray) -> np.ndarray:
    """Return the weights that predict some items, a row for each."""
    weights = model.second
    W = np.zeros((len(weights), len(weights)))
    W[weights.column, weights.row] = weights.value
    return W[columns]


def objective(R: np.ndarray, columns: np.ndarray, W: np.ndarray, slim: us.recommend.SLIM) -> float:
    """Return what SLIM minimises, summed over some items."""
    missed = R[:, columns] - R @ W.T
    return float(0.5 * (missed**2).sum() + 0.5 * slim.l2 * (W**2).sum() + slim.l1 * W.sum())


def plsa(sitting: Sitting) -> Result:
    """50 topics; as many of our iterations as reach the likelihood of the peer's."""
    train, topics, iterations = sitting.split.train, 50, 30
    peer = partial(sitting.peer, "sklearn", "nmf", THREADS, topics=topics, iterations=iterations)
    first = peer()["seconds"]
    mixture = np.load(sitting.folder / "mixture.npz")
    other = likelihood(train, mixture["theta"], mixture["phi"])

    def measured(algorithm: us.recommend.PLSA) -> float:
        model = algorithm.fit(train)
        return likelihood(train, model.user_factors, model.item_factors)

    algorithm, mine = fewest(
        us.recommend.PLSA(topics), iterations, measured, lambda it: it >= other
    )
    ours, theirs, _ = sitting.turns(algorithm, peer, first)
    text = "log-likelihood {:.4f} after {} iterations".format
    return Result(
        ours, theirs, text(mine, algorithm.iterations), text(other, iterations), mine >= other
    )


def likelihood(train: us.Ratings, theta: np.ndarray, phi: np.ndarray) -> float:
    """Return the mean logarithm of p(i|u), a rating counting as often as its value says."""
    total = 0.0
    for low in range(0, len(train), 100_000):
        some = slice(low, low + 100_000)
        chance = (theta[train.user[some]] * phi[train.item[some]]).sum(axis=1)
        total += float(train.value[some] @ np.log(chance))
    return total / float(train.value.sum())


def lda(sitting: Sitting) -> Result:
    """50 topics, α = 0.2, β = 1; as many of our iterations as reach the peer's perplexity."""
    train, iterations = sitting.split.train, 10
    settings = {"topics": 50, "alpha": 0.2, "beta": 1.0}
    run = partial(sitting.peer, "sklearn", blas=1, threads=THREADS, **settings)
    peer = partial(run, "lda", iterations=iterations)
    first = peer()
    other = first["perplexity"]

    def measured(algorithm: us.recommend.LDA) -> float:
        topics = topics_of(algorithm, algorithm.fit(train), train)
        np.save(sitting.folder / "lamda.npy", topics)
        return run("perplexity")["perplexity"]

    algorithm, mine = fewest(
        us.recommend.LDA(**settings), 4 * iterations, measured, lambda it: it <= other
    )
    ours, theirs, _ = sitting.turns(algorithm, peer, first["seconds"])
    text = "perplexity {:.1f} after {} iterations".format
    return Result(
        ours, theirs, text(mine, algorithm.iterations), text(other, iterations), mine <= other
    )


def topics_of(algorithm: us.recommend.LDA, model: Any, train: us.Ratings) -> np.ndarray:
    """Return λ, topics x rated items, from the means that a model keeps.

    A user's γ adds up to α K and her ratings; a topic's λ to β per rated item and to what all
    users' γ have above α.
    """
    mass = np.bincount(train.user, train.value, len(train.users))
    known = mass > 0
    gamma = model.user_factors * (algorithm.alpha * algorithm.topics + mass)[:, None]
    rated = np.bincount(train.item, minlength=len(train.items)) > 0
    total = algorithm.beta * rated.sum() + (gamma[known] - algorithm.alpha).sum(axis=0)
    return np.ascontiguousarray((model.item_factors[rated] * total).T)


def fewest(
    algorithm: Any, guess: int, measured: Callable[[Any], float], enough: Callable[[float], bool]
) -> tuple[Any, float]:
    """Return an algorithm whose iterations are just enough (to 5 %), and what it measures."""
    low, high = 0, replace(algorithm, iterations=guess)
    value = measured(high)
    while not enough(value) and high.iterations < MOST:
        low, high = high.iterations, replace(algorithm, iterations=2 * high.iterations)
        value = measured(high)
    while high.iterations - low > max(1, high.iterations // 20):
        middle = replace(algorithm, iterations=(low + high.iterations) // 2)
        if enough(between := measured(middle)):
            high, value = middle, between
        else:
            low = middle.iterations
    return high, value


@dataclass(frozen=True)
class Race:
    """A race and its bar: how many times as fast as the peer ours has to be."""

    ours: str
    peer: str
    bar: float
    run: Callable[[Sitting], Result]


RACES = {
    "wrmf-cg": Race(
        "WRMF, 64 factors, conjugate gradients",
        "implicit ALS, use_cg=True",
        1,
        lambda sitting: wrmf(sitting, "cg"),
    ),
    "wrmf-exact": Race(
        "WRMF, 64 factors, exact",
        "implicit ALS, use_cg=False",
        1,
        lambda sitting: wrmf(sitting, "exact"),
    ),
    "item-knn": Race("ItemKNN, k = 20", "implicit CosineRecommender", 1, item_knn),
    "bprmf": Race("BPRMF, 100 factors, 20 epochs, one thread", "implicit BPR", 1, bprmf),
    "slim": Race("SLIM", "scikit-learn elastic net on the Gram matrix", 3, slim),
    "plsa": Race("pLSA, 50 topics", "scikit-learn NMF, Kullback-Leibler", 3, plsa),
    "lda": Race("LDA, 50 topics", "scikit-learn LDA, batch", 3, lda),
}


def compete(name: str, sitting: Sitting) -> tuple[str, bool]:
    """Run a race; return its row of the table and whether the bar was met."""
    race = RACES[name]
    before = os.getloadavg()[0]
    result = race.run(sitting)
    ratio = result.theirs / result.ours
    met = ratio >= race.bar and result.as_good
    row = (
        f"| {race.ours} | {race.peer} | {result.ours:.2f} | {result.theirs:.2f} | {ratio:.1f}x | "
        f"{race.bar:g}x | {'met' if met else 'missed'} | {result.our_quality} | "
        f"{result.their_quality} |"
    )
    print(f"{name}: load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n{row}", flush=True)
    return row, met


def main() -> None:
    """Run the races that are asked for and print one table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(RACES)}")
    names = options.parse_args().names or list(RACES)
    if unknown := set(names) - set(RACES):
        options.error(f"no race {', '.join(unknown)}; there are {', '.join(RACES)}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    with tempfile.TemporaryDirectory() as folder:
        sitting = Sitting.prepare(Path(os.environ["UNSKEW_DATA"]), Path(folder))
        done = {name: compete(name, sitting) for name in names}
    print("\n| ours | peer | ours s | peer s | ratio | bar | | our quality | peer's quality |")
    print("|---|---|---:|---:|---:|---:|---|---|---|", *(row for row, _ in done.values()), sep="\n")
    if missed := [name for name, (_, met) in done.items() if not met]:
        sys.exit(f"missed: {', '.join(missed)} (is the machine idle?)")


if __name__ == "__main__":
    main()
