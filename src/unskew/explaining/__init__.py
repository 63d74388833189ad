"""Why two numbers differ: the conventions that give a number, and the path between two."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
