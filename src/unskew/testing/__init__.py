"""Checks for users' own metrics, algorithms and ways to split: the contract that ours keep."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
