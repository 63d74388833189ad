"""Lists meet judgments: ranks, and the judged shape on which every metric stands."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
