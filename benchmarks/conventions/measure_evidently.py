"""Evidently: reports of both its interfaces, on a frame with a row for each item of a list.

An item without a judgment has target 0. Of the new interface the value is the row of rank k in the
table of the report; of the old one (names with `Metric`, still part of it) the value that it
shows. A k larger than the longest list stops the report with a KeyError and is left out.
"""

from importlib.metadata import version

import pandas as pd
from evidently import DataDefinition, Dataset, Recsys, Report
from evidently.legacy import metrics as old
from evidently.legacy.pipeline.column_mapping import ColumnMapping
from evidently.legacy.report import Report as OldReport
from evidently.metrics import recsys
from fixtures import CUTOFFS
from record import Record

NAMES = ("PrecisionTopK", "RecallTopK", "FBetaTopK", "MAP", "NDCG", "MRR", "HitRate")
OLD_NAMES = {"MAP": "MAPKMetric", "NDCG": "NDCGKMetric", "MRR": "MRRKMetric"} | {
    "PrecisionTopK": "PrecisionTopKMetric",
    "RecallTopK": "RecallTopKMetric",
    "FBetaTopK": "FBetaTopKMetric",
    "HitRate": "HitRateKMetric",
}
OPTIONS = {
    "": {},
    "min_rel_score=4": {"min_rel_score": 4},
    "no_feedback_users=True": {"no_feedback_users": True},
    "min_rel_score=4, no_feedback_users=True": {"min_rel_score": 4, "no_feedback_users": True},
}
GIVEN = {
    "small": "list items, some lists shorter than k",
    "stars": "list items, some lists shorter than k",
    "clean": "list items",
    "tied": "list items, equal scores",
    "twice": "list items",
}
COLUMNS = {
    "user_id": "user",
    "item_id": "item",
    "target": "target",
    "prediction": "prediction",
    "recommendations_type": "score",
}


def table_value(frame, metric, k, settings):
    """Return the row of rank k in the table of the new interface."""
    dataset = Dataset.from_pandas(frame, DataDefinition(ranking=[Recsys(**COLUMNS)]))
    report = Report([getattr(recsys, metric)(k=k, **settings)]).run(dataset, None)
    (result,) = report.metric_results.values()
    return result.value.set_index("rank")["value"].get(k)


def shown_value(frame, metric, k, settings):
    """Return the value of the old interface, chosen as its renderer chooses it."""
    report = OldReport(metrics=[getattr(old, OLD_NAMES[metric])(k=k, **settings)])
    report.run(reference_data=None, current_data=frame, column_mapping=ColumnMapping(**COLUMNS))
    values = report._first_level_metrics[0].get_result().current
    return values[k - 1 if min(values.index) == 0 else k]


def main():
    record = Record("Evidently", "evidently", version("evidently"))
    for name, data in record.fixtures.items():
        frame = pd.DataFrame(
            [
                (
                    user,
                    item,
                    data["judgments"].get(user, {}).get(item, 0),
                    data["scores"][user][item] if name == "tied" else -float(place),
                )
                for user, items in data["lists"].items()
                for place, item in enumerate(items)
            ],
            columns=["user", "item", "target", "prediction"],
        )
        longest = max(map(len, data["lists"].values()))
        for metric in NAMES:
            for option, settings in OPTIONS.items():
                for k in (k for k in CUTOFFS if k <= longest):
                    value = shown_value(frame, metric, k, settings)
                    record.add(name, GIVEN[name], f"{OLD_NAMES[metric]}(k={k})", k, value, option)
                    if option in ("", "min_rel_score=4"):
                        value = table_value(frame, metric, k, settings)
                        record.add(name, GIVEN[name], f"{metric}(k={k})", k, value, option)
    record.save()


if __name__ == "__main__":
    main()
