"""RecPack: matrices of scores and of liked items, users by items."""

from importlib.metadata import version

import numpy as np
from fixtures import CUTOFFS, liked_only
from record import Record
from recpack.metrics.dcg import DCGK, NDCGK
from recpack.metrics.hit import DiscountedGainK, HitK
from recpack.metrics.precision import PrecisionK
from recpack.metrics.recall import CalibratedRecallK, RecallK
from recpack.metrics.reciprocal_rank import ReciprocalRankK
from scipy.sparse import csr_matrix

METRICS = (
    PrecisionK,
    RecallK,
    CalibratedRecallK,
    NDCGK,
    DCGK,
    ReciprocalRankK,
    HitK,
    DiscountedGainK,
)
ITEMS = 130


def matrix(values, users):
    """Return a sparse matrix of user to item to value."""
    cells = [
        (users.index(user), item, value)
        for user, row in values.items()
        for item, value in row.items()
    ]
    rows, columns, data = zip(*cells, strict=True)
    return csr_matrix((np.array(data, float), (rows, columns)), shape=(len(users), ITEMS))


def main():
    record = Record("RecPack", "recpack", version("recpack"))
    for name in ("small", "stars", "clean", "tied"):  # a matrix holds no item twice
        data = record.fixtures[name]
        liked = liked_only(data["judgments"], data["threshold"])
        ones = {user: dict.fromkeys(items, 1) for user, items in liked.items()}
        users = sorted(set(data["judgments"]) | set(data["lists"]))
        scores = matrix(data["scores"], users)
        if name == "tied":
            measured = {"liked only, as ones, equal scores": (ones, (PrecisionK, NDCGK))}
        else:
            measured = {
                "liked only, as ones": (ones, METRICS),
                "liked only, as ratings": (liked, METRICS),
            }
        for given, (truth, kinds) in measured.items():
            for kind in kinds:
                for k in CUTOFFS:
                    metric = kind(k)
                    metric.calculate(matrix(truth, users), scores)
                    record.add(name, given, f"{kind.__name__}({k})", k, metric.value)
    record.save()


if __name__ == "__main__":
    main()
