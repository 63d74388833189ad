"""scikit-learn, handed the listed items of each user, or a matrix of all items."""

import numpy as np
import sklearn
from fixtures import CUTOFFS
from record import Record
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    label_ranking_average_precision_score,
    ndcg_score,
)

GRADED = {"ndcg_score": ndcg_score, "dcg_score": dcg_score}
BINARY = {
    "average_precision_score": average_precision_score,
    "label_ranking_average_precision_score": label_ranking_average_precision_score,
}


def graded(options):
    """Yield name, option, cutoff and function of the metrics that take gains."""
    for name, function in GRADED.items():
        for option, settings in options:
            for k in (None, *CUTOFFS):
                text = name if k is None else f"{name}(k={k})"
                yield (
                    text,
                    option,
                    k,
                    lambda y, s, f=function, k=k, o=settings: f([y], [s], k=k, **o),
                )


def binary(names):
    """Yield name, option, cutoff and function of the metrics that take zeros and ones."""
    for name in names:
        if name.startswith("label"):
            yield name, "", None, lambda y, s: label_ranking_average_precision_score([y], [s])
        else:
            yield name, "", None, average_precision_score


TIES = [("", {}), ("ignore_ties=True", {"ignore_ties": True})]


def by_user(record, fixture, data):
    """Hand over the items of each list alone, user by user, and average."""
    scores, lists = data["scores"], data["lists"]
    for given, convert, wanted in [
        ("items of the list, ratings or 0", float, graded(TIES)),
        ("items of the list, 1 if liked", lambda r: int(r >= data["threshold"]), graded(TIES)),
        ("items of the list, 1 if liked", lambda r: int(r >= data["threshold"]), binary(BINARY)),
    ]:
        for name, option, k, function in wanted:
            values = {}
            for user, items in lists.items():
                judged = data["judgments"].get(user, {})
                truth = [convert(judged.get(item, 0)) for item in items]
                if fixture == "twice":
                    value = [float(len(items) - place) for place in range(len(items))]
                else:
                    value = [scores[user][item] for item in items]
                values[user] = function(np.array(truth), np.array(value))
            text = given + ", some scores equal" if fixture == "tied" and option else given
            record.add(fixture, text, name, k, np.mean(list(values.values())), option, values)


def as_matrix(record, fixture, data):
    """Hand over all items of the judged users at once; items outside a list score 0."""
    items = sorted({i for row in data["judgments"].values() for i in row}
                   | {i for row in data["lists"].values() for i in row})  # fmt: skip
    users = sorted(data["judgments"])
    place = {item: number for number, item in enumerate(items)}
    ratings, scores = np.zeros((2, len(users), len(items)))
    for row, user in enumerate(users):
        for item, rating in data["judgments"][user].items():
            ratings[row, place[item]] = rating
        for item, score in data["scores"].get(user, {}).items():
            scores[row, place[item]] = score
    deep = "matrix of all items, 0 for those outside a list"
    if fixture == "clean":
        deep = "matrix of all items, every list at least k long"
    liked = (ratings >= data["threshold"]).astype(int)
    for truth, what in ((ratings, "ratings or 0"), (liked, "1 if liked")):
        for name, function in GRADED.items():
            for option, settings in TIES:
                for k in (None, *CUTOFFS):
                    text = name if k is None else f"{name}(k={k})"
                    given = deep if k else "matrix of all items, 0 for those outside a list"
                    value = function(truth, scores, k=k, **settings)
                    record.add(fixture, f"{given}, {what}", text, k, value, option)
    given = "matrix of all items, 0 for those outside a list, 1 if liked"
    value = label_ranking_average_precision_score(liked, scores)
    record.add(fixture, given, "label_ranking_average_precision_score", None, value)
    value = average_precision_score(liked.T, scores.T, average="macro")
    record.add(fixture, given, "average_precision_score", None, value)


def main():
    record = Record("scikit-learn", "sklearn", sklearn.__version__)
    for fixture, data in record.fixtures.items():
        by_user(record, fixture, data)
        if fixture != "twice":
            as_matrix(record, fixture, data)
    record.save()


main()
