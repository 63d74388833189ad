"""RePlay: dictionaries and pandas frames of recommendations and of test items."""

from importlib.metadata import version

import pandas as pd
from fixtures import CUTOFFS, liked_only
from record import Record
from replay.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, RocAuc
from replay.metrics.descriptors import PerUser

METRICS = (MAP, MRR, NDCG, HitRate, Precision, Recall, RocAuc)


def main():
    record = Record("RePlay", "replay", version("replay-rec"))
    for name, data in record.fixtures.items():
        liked = liked_only(data["judgments"], data["threshold"])
        scores = {
            user: [
                (item, data["scores"][user][item] if name != "twice" else -float(place))
                for place, item in enumerate(items)
            ]
            for user, items in data["lists"].items()
        }
        rows = [(user, *row) for user, items in scores.items() for row in items]
        frame = pd.DataFrame(rows, columns=["query_id", "item_id", "rating"])
        truth = pd.DataFrame(
            [(user, item) for user, items in liked.items() for item in items],
            columns=["query_id", "item_id"],
        )
        some = {user: list(items) for user, items in liked.items()}
        whole = {user: list(liked.get(user, ())) for user in data["judgments"]}
        for given, lists, judged in (
            ("frames, liked only", frame, truth),
            ("dictionaries, liked only", scores, some),
            ("dictionaries, empty for a user without liked items", scores, whole),
        ):
            for kind in METRICS:
                values = kind(list(CUTOFFS))(lists, judged)
                users = kind(list(CUTOFFS), mode=PerUser())(lists, judged)
                for k in CUTOFFS:
                    place = f"{kind.__name__}@{k}"
                    of_users = users[f"{kind.__name__}-PerUser@{k}"]
                    record.add(name, given, place, k, values[place], per_user=of_users)
    record.save()


if __name__ == "__main__":
    main()
