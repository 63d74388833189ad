"""Experiments: a plan is declared once, run in tasks, and kept in a store; same bits always."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
