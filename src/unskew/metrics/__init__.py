"""Metrics: their names, their registry, their kernels."""

from unskew.metrics.names import Metric, parse
from unskew.metrics.registry import REGISTRY

__all__ = ["REGISTRY", "Metric", "parse"]
