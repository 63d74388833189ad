"""From values per user to conclusions: who is better, by how much, how sure; what to believe."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
