"""The systems of the papers, with settings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unskew.data.ratings import Ratings
from unskew.recommend.bpr import BPRMF
from unskew.recommend.factors import WRMF, PureSVD
from unskew.recommend.graph import HittingTime
from unskew.recommend.language import RM1, RM2, LMWSRItemBased, LMWSRUserBased, UIRItem
from unskew.recommend.linear import SLIM
from unskew.recommend.model import Algorithm, Model
from unskew.recommend.neighbours import CHI2, KLD, RSV, RW, NNCosNgbrIB, NNCosNgbrUB
from unskew.recommend.sgd import SVD
from unskew.recommend.simple import Popularity, Random
from unskew.recommend.topics import LDA, PLSA


@dataclass(frozen=True)
class Chosen:
    """A system of a paper and where its settings come from."""

    algorithm: Algorithm
    settings: str
    """`none` where there are none; `published` by the authors or their sources; `recovered`: fitted
    to the published value, on the published test set; `tuned`: on a part of the training data."""

    def fit(self, train: Ratings, rng: int | np.random.Generator = 0) -> Model:
        """Learn from training ratings; see `Algorithm.fit`."""
        return self.algorithm.fit(train, rng)


def valcarce2018() -> dict[str, Chosen]:
    """Return the 21 systems of valcarce2018 by the names that the paper gives them.

    The paper publishes no settings. Recovered ones were chosen by looking at the published values
    on MovieLens 1M; they say what the authors may have run, not what is best.

    Examples
    --------
    >>> import unskew as us
    >>> systems = us.valcarce2018()
    >>> len(systems), systems["PureSVD"]
    (21, Chosen(algorithm=PureSVD(factors=30), settings='recovered'))
    """
    return {
        "SLIM": Chosen(SLIM(l1=10.0, l2=1000.0), "recovered"),
        "BPRMF": Chosen(
            BPRMF(
                factors=200, learning_rate=0.015, regularisation=0.03, regularisation_liked=0.003,
                regularisation_other=0.003, epochs=120, draw="users",
            ),
            "recovered",
        ),
        "WRMF": Chosen(
            WRMF(factors=25, regularisation=0.1, alpha=1.0, target="rating", solver="cg"),
            "recovered",
        ),
        "LM-WSR-UB": Chosen(LMWSRUserBased(k=100, mu=3000.0), "recovered"),
        "PureSVD": Chosen(PureSVD(factors=30), "recovered"),
        "RM2": Chosen(RM2(k=100, smoothing="absolute-discounting", parameter=0.1), "recovered"),
        "LM-WSR-IB": Chosen(LMWSRItemBased(k=200, mu=100_000.0), "recovered"),
        "LDA": Chosen(LDA(topics=100, alpha=0.25, beta=0.5, iterations=100), "recovered"),
        "KLD": Chosen(KLD(k=200), "recovered"),
        "PLSA": Chosen(PLSA(topics=50, iterations=100), "recovered"),
        "RW": Chosen(RW(k=200), "recovered"),
        "RSV": Chosen(RSV(k=200), "recovered"),
        "CHI2": Chosen(CHI2(k=200), "recovered"),
        "UIR": Chosen(UIRItem(background=0.99999), "recovered"),
        "Pop": Chosen(Popularity(), "none"),
        "RM1": Chosen(RM1(k=100, smoothing="absolute-discounting", parameter=0.1), "recovered"),
        "NNCosNgbr-UB": Chosen(NNCosNgbrUB(k=200, shrink=100.0), "published"),
        "SVD": Chosen(SVD(factors=40, regularisation=0.08), "recovered"),
        "HT": Chosen(HittingTime(iterations=15), "published"),
        "NNCosNgbr-IB": Chosen(NNCosNgbrIB(k=200, shrink=100.0), "published"),
        "Random": Chosen(Random(), "none"),
    }  # fmt: skip
