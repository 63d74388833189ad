"""polars-ds: expressions on a frame with a row for each item of a list, grouped by user.

An item without a judgment has relevance 0. Rows come best first, and in the opposite order.
"""

from importlib.metadata import version

import polars as pl
import polars_ds as pds
from fixtures import CUTOFFS
from record import Record


def main():
    record = Record("polars-ds", "polars_ds", version("polars-ds"))
    for name, data in record.fixtures.items():
        rows = [
            (user, float(data["judgments"].get(user, {}).get(item, 0)), place)
            for user, items in data["lists"].items()
            for place, item in enumerate(items)
        ]
        frame = pl.DataFrame(rows, schema=["user", "rating", "place"], orient="row")
        scores = [
            data["scores"][user][item] if name != "twice" else -float(place)
            for user, items in data["lists"].items()
            for place, item in enumerate(items)
        ]
        liked = (pl.col("rating") >= data["threshold"]).cast(pl.Float64)
        frame = frame.with_columns(pl.Series("score", scores), liked.alias("liked"))
        for given, relevance, table in (
            ("list items, ratings", "rating", frame),
            ("list items, 1 if liked", "liked", frame),
            ("list items, ratings, worst first", "rating", frame.reverse()),
        ):
            for metric in ("query_ndcg_score", "query_dcg_score"):
                for ignore in (False, True):
                    for k in (*CUTOFFS, None):
                        score = getattr(pds, metric)(relevance, "score", k=k, ignore_ties=ignore)
                        values = table.group_by("user", maintain_order=True).agg(
                            score.alias("value")
                        )
                        record.add(
                            name,
                            given,
                            metric if k is None else f"{metric}(k={k})",
                            k,
                            values["value"].mean(),
                            "ignore_ties=True" if ignore else "",
                            dict(values.iter_rows()),
                        )
    record.save()


if __name__ == "__main__":
    main()
