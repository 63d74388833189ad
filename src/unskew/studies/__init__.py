"""The five papers, run again: their tables and figures beside ours, a verdict on every claim."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
