"""OmniRec: frames of predictions with ranks, and of test items.

Only its metric module is run; the package, which would load all of its readers of data sets, is a
stand-in with nothing in it but its path.
"""

import logging
import sys
import types
from importlib.metadata import distribution, version

import pandas as pd
from fixtures import CUTOFFS, liked_only
from record import Record


def metric_module():
    package = types.ModuleType("omnirec")
    package.__path__ = [str(distribution("omnirec").locate_file("omnirec"))]
    sys.modules["omnirec"] = package
    from omnirec.metrics import ranking

    return ranking


def main():
    ranking = metric_module()
    logging.disable(logging.CRITICAL)
    record = Record("OmniRec", "omnirec", version("omnirec"))
    for name, data in record.fixtures.items():
        liked = liked_only(data["judgments"], data["threshold"])
        lists = pd.DataFrame(
            [
                (user, item, -float(place), place)
                for user, items in data["lists"].items()
                for place, item in enumerate(items, 1)
            ],
            columns=["user", "item", "score", "rank"],
        )
        for given, judged in (("liked only", liked), ("all judgments", data["judgments"])):
            truth = pd.DataFrame(
                [(user, item) for user, row in judged.items() for item in row],
                columns=["user", "item"],
            )
            for metric in ("NDCG", "HR", "Recall", "Precision"):
                values = getattr(ranking, metric)(list(CUTOFFS)).calculate(lists, truth).result
                for k in CUTOFFS:
                    record.add(name, given, f"{metric}@{k}", k, values[k])
    record.save()


if __name__ == "__main__":
    main()
