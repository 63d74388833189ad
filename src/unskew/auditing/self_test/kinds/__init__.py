"""Every kind of worlds of the self-test, by name: one file each, and one line in this list."""

from __future__ import annotations

from collections.abc import Mapping

from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.kinds import (
    halo,
    inverse,
    niche,
    null,
    null_selection,
    popularity_taste,
    popularity_taste_selection,
    quality,
    rasch,
    recommended,
    recommended_other_taste,
    recommended_selection,
    recommended_taste,
    recommended_times_selection,
    taste,
)

_ALL = (
    taste.KIND,
    popularity_taste.KIND,
    popularity_taste_selection.KIND,
    null.KIND,
    null_selection.KIND,
    rasch.KIND,
    recommended.KIND,
    recommended_selection.KIND,
    recommended_other_taste.KIND,
    recommended_taste.KIND,
    niche.KIND,
    quality.KIND,
    inverse.KIND,
    halo.KIND,
    recommended_times_selection.KIND,
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
"""By name; `KINDS["taste"](seed)` makes a world."""
