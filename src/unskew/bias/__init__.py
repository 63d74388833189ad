"""The papers' theory on data: popularity and relevance of items, pairs of items, margins."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
