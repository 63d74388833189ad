"""Microsoft recommenders: its pandas metrics, on frames of test ratings and of predictions."""

from importlib.metadata import version

import pandas as pd
from fixtures import CUTOFFS, liked_only
from recommenders.evaluation import python_evaluation as metrics
from record import Record


def frame(rows, column):
    """Return a frame of users, items and values."""
    return pd.DataFrame(rows, columns=["userID", "itemID", column])


def main():
    record = Record("Microsoft recommenders", "recommenders", version("recommenders"))
    for name, data in record.fixtures.items():
        liked = liked_only(data["judgments"], data["threshold"])
        places = [
            (user, item, data["scores"][user][item] if name != "twice" else -float(place))
            for user, items in data["lists"].items()
            for place, item in enumerate(items)
        ]
        lists = frame(places, "prediction")
        for given, judged in (("liked only", liked), ("all judgments", data["judgments"])):
            truth = frame(
                [(user, item, r) for user, row in judged.items() for item, r in row.items()],
                "rating",
            )
            for k in CUTOFFS:
                for metric in ("precision_at_k", "recall_at_k", "r_precision_at_k"):
                    value = getattr(metrics, metric)(truth, lists, k=k)
                    record.add(name, given, f"{metric}(k={k})", k, value)
                for metric in ("map_at_k", "map"):
                    value = getattr(metrics, metric)(truth, lists, k=k)
                    record.add(name, given, f"{metric}(k={k})", k, value)
                for score in ("binary", "raw", "exp"):
                    option = "" if score == "binary" else f'score_type="{score}"'
                    value = metrics.ndcg_at_k(truth, lists, k=k, score_type=score)
                    note = ", an item twice" if name == "twice" else ""
                    record.add(name, given + note, f"ndcg_at_k(k={k})", k, value, option)
    record.save()


if __name__ == "__main__":
    main()
