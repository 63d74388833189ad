"""All neighbours of many items: tried only where they fit with all users, too."""

import numpy as np
import pytest

import unskew as us
from unskew.recommend.matrices import sparse


def test_all_neighbours_are_not_tried_where_they_may_not_fit_later(monkeypatch):
    rng = np.random.default_rng(1)
    cells = {(u, i) for u in range(30) for i in rng.choice(60, 3, replace=False).tolist()}
    user, item = zip(*sorted(cells), strict=True)
    data = us.read_ratings({"user": user, "item": item, "rating": [4] * len(user)})
    settings = [us.recommend.ItemKNN(k=5), us.recommend.ItemKNN(k=None)]
    rngs = [np.random.default_rng(0) for _ in settings]
    assert len(list(us.recommend.ItemKNN.fit_several(settings, data, rngs))) == 2
    # These few ratings make few neighbours: they fit, but those of more users would not.
    items = len(data.items)
    monkeypatch.setattr(sparse, "LARGEST", 8 * items * (items - 1) - 1)
    settings[1].fit(data, 0)
    models = us.recommend.ItemKNN.fit_several(settings, data, rngs)
    next(models)
    with pytest.raises(us.DataError, match="lists of all neighbours of"):
        next(models)
