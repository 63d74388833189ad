"""Results in experiment trackers: scores, cards and reports in MLflow and Weights & Biases."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
