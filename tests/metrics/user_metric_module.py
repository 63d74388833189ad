"""A metric in a module of its own, as users write it; worker processes import it."""

import unskew as us


@us.metrics.metric("odd-places", replace=True)
def odd_places(liked, k):
    """Share of the odd places that hold a liked item."""
    return liked[::2].sum() / max((k + 1) // 2, 1)
