"""Cornac: `ranking_eval` with a model that ranks as the lists do.

A model of Cornac ranks every item. There are two ways to hand a list over, both measured: as what
`rank` returns, so that a short list stays short; and as scores of all items, where twenty items
that nobody judged follow the list (so that no cutoff reaches below them), then all others.
"""

from importlib.metadata import version

import numpy as np
from cornac.data import Dataset
from cornac.eval_methods.base_method import ranking_eval
from cornac.metrics import AUC, MAP, MRR, NCRR, NDCG, FMeasure, HitRatio, Precision, Recall
from cornac.models import Recommender
from fixtures import CUTOFFS
from record import Record

AT_K = {
    "NDCG": NDCG,
    "NCRR": NCRR,
    "HitRatio": HitRatio,
    "Precision": Precision,
    "Recall": Recall,
    "F1": FMeasure,
}
ITEMS = 140
FILLED = range(121, 141)


class Lists(Recommender):
    """Returns the lists as they are."""

    def __init__(self, lists):
        super().__init__("lists", trainable=False)
        self.lists = lists

    def rank(self, user_idx, item_indices=None, **_):
        """Return the list and no scores."""
        return np.array(self.lists.get(user_idx, []), dtype=int), np.zeros(len(item_indices))


class Scores(Recommender):
    """Scores every item; Cornac ranks by the scores."""

    total_items = ITEMS + 1

    def __init__(self, scores):
        super().__init__("scores", trainable=False)
        self.scores = scores

    def score(self, user_idx, **_):
        """Return the scores of all items."""
        values = -1000.0 - np.arange(ITEMS + 1)
        values[FILLED] += 800
        for item, score in self.scores.get(user_idx, {}).items():
            values[item] = score
        return values


def datasets(judgments, users):
    """Return training data that knows every user and item, and the test data."""
    user_numbers = {user: number for number, user in enumerate(users)}
    items = {item: item for item in range(ITEMS + 1)}
    known = [(user, item, 0.0) for user in users[:1] for item in items]
    known += [(user, 0, 0.0) for user in users[1:]]
    train = Dataset.build(known, global_uid_map=user_numbers, global_iid_map=items)
    rows = [(user, item, float(r)) for user, row in judgments.items() for item, r in row.items()]
    return train, Dataset.build(rows, global_uid_map=user_numbers, global_iid_map=items)


def main():
    record = Record("Cornac", "cornac", version("cornac"))
    for name, data in record.fixtures.items():
        users = sorted(set(data["judgments"]) | set(data["lists"]))
        train, test = datasets(data["judgments"], users)
        models = {"the list": Lists({users.index(u): row for u, row in data["lists"].items()})}
        if name != "twice":
            given = "scores of all items" + (", equal scores" if name == "tied" else "")
            models[given] = Scores({users.index(u): row for u, row in data["scores"].items()})
        for given, model in models.items():
            metrics = [(f"{m}@{k}", k, AT_K[m](k=k)) for m in AT_K for k in CUTOFFS]
            if given == "the list":
                metrics += [(f"{m}@-1", None, AT_K[m](k=-1)) for m in AT_K if m != "Precision"]
            elif name != "tied":
                metrics += [("MAP", None, MAP()), ("MRR", None, MRR()), ("AUC", None, AUC())]
            means, of_users = ranking_eval(
                model,
                [metric for *_, metric in metrics],
                train,
                test,
                rating_threshold=data["threshold"],
            )
            for (metric, k, _), mean, values in zip(metrics, means, of_users, strict=True):
                per_user = {users[number]: value for number, value in values.items()}
                record.add(name, given, metric, k, mean, per_user=per_user)
    record.save()


if __name__ == "__main__":
    main()
