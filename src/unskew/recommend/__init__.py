"""Recommenders: one file per family. An algorithm is settings; fitting it gives a model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
