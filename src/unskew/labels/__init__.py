"""Labels by people and models: what to label, when it is enough, estimates that use both."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
