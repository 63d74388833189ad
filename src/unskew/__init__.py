"""unskew: bias-aware offline evaluation of recommender systems.

>>> import unskew as us
>>> test = {"user": ["ann", "ann", "bob"], "item": ["x", "y", "z"], "rating": [5, 1, 4]}
>>> print(us.evaluate(test, {"mine": {"ann": ["y", "x"], "bob": ["z"]}}, "P@1", liked=4).means())
{'mine': {'P@1': 0.5}}

Public names are listed once, in the stub beside this file, and loaded at their first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.2.0"
