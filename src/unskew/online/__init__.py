"""Online tests on simulated users: A/B tests, interleaving, reuse of judgments."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
