"""LensKit before its rewriting: 0.14, whose RecListAnalysis measures with and without ranks."""

import lenskit
import pandas as pd
from fixtures import CUTOFFS, liked_only
from lenskit import topn
from record import Record

METRICS = ("precision", "recall", "hit", "recip_rank", "ndcg")


def truth_frame(judgments, with_ratings):
    rows = [(user, item, float(r)) for user, row in judgments.items() for item, r in row.items()]
    frame = pd.DataFrame(rows, columns=["user", "item", "rating"])
    return frame if with_ratings else frame.drop(columns="rating")


def list_frame(lists, with_ranks, users):
    rows = [
        (user, item, place)
        for user, items in lists.items()
        if user in users
        for place, item in enumerate(items, 1)
    ]
    frame = pd.DataFrame(rows, columns=["user", "item", "rank"])
    return frame if with_ranks else frame.drop(columns="rank")


def main():
    record = Record("LensKit", "lenskit_old", lenskit.__version__)
    for fixture, data in record.fixtures.items():
        if fixture == "tied":  # lists come ranked
            continue
        judgments, lists = data["judgments"], data["lists"]
        liked = liked_only(judgments, data["threshold"])
        for given, judged, with_ratings in (
            ("liked only", liked, False),
            ("liked only, with ratings", liked, True),
            ("all judgments, with ratings", judgments, True),
        ):
            truth = truth_frame(judged, with_ratings)
            for ranks in (True, False):
                # Without ranks, a list without judgments stops the analysis.
                recs = list_frame(lists, ranks, lists if ranks else judged)
                where = given if ranks else given + ", lists without ranks"
                analysis = topn.RecListAnalysis()
                columns = {}
                for name in METRICS:
                    for k in (None, *CUTOFFS):
                        column = name if k is None else f"{name}(k={k})"
                        settings = {} if k is None else {"k": k}
                        analysis.add_metric(getattr(topn, name), name=column, **settings)
                        columns[column] = k
                if not ranks:  # `dcg` has no form for lists with ranks
                    analysis.add_metric(topn.dcg)
                    columns["dcg"] = None
                # Hits are 32-bit numbers, whose mean would be one too.
                values = analysis.compute(recs, truth).astype(float)
                filled = analysis.compute(recs, truth, include_missing=True)
                filled = filled.astype(float).fillna(0)
                for column, k in columns.items():
                    mean = values[column].mean()
                    record.add(fixture, where, column, k, mean, "", values[column].to_dict())
                    option = "include_missing=True, then fillna(0)"
                    record.add(fixture, where, column, k, filled[column].mean(), option)
    record.save()


main()
