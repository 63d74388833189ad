"""The list of all metrics: importing the modules below fills it."""

from unskew.metrics import accuracy, items
from unskew.metrics.definition import REGISTRY

__all__ = ["REGISTRY", "accuracy", "items"]
