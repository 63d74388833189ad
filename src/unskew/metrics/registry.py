"""The list of all metrics: importing the modules below fills it, in this order."""

from unskew.metrics import accuracy  # isort: skip
from unskew.metrics import by_rank, judgment_aware, items, popularity  # isort: skip
from unskew.metrics.definition import REGISTRY
from unskew.metrics.listwise import metric

__all__ = ["REGISTRY", "accuracy", "by_rank", "items", "judgment_aware", "metric", "popularity"]
