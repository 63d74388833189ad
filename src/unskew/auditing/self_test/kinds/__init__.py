"""Every kind of worlds of the self-test, by name: one file each, and one line in this list."""

from __future__ import annotations

from collections.abc import Mapping

from unskew.auditing.self_test.kind import Kind
from unskew.auditing.self_test.kinds import (
    category_exposure,
    cold_heavy,
    earlier_recommender,
    equal_systems,
    graded_halo,
    halo,
    implicit_only,
    inverse,
    middling_best,
    named_worlds,
    near_equal_systems,
    niche,
    null,
    null_selection,
    popularity_inverted,
    popularity_taste,
    popularity_taste_selection,
    position_bias,
    quality,
    rasch,
    recommended,
    recommended_other_taste,
    recommended_selection,
    recommended_taste,
    recommended_times_selection,
    sought_by_fans,
    taste,
    tiny,
    trend,
    two_populations,
    two_rankers,
    untuned_trap,
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
    untuned_trap.KIND,
    cold_heavy.KIND,
    implicit_only.KIND,
    tiny.KIND,
    equal_systems.KIND,
    near_equal_systems.KIND,
    popularity_inverted.KIND,
    earlier_recommender.KIND,
    graded_halo.KIND,
    middling_best.KIND,
    trend.KIND,
    two_populations.KIND,
    two_rankers.KIND,
    sought_by_fans.KIND,
    category_exposure.KIND,
    position_bias.KIND,
    *named_worlds.NAMED,
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}
"""By name; `KINDS["taste"](seed)` makes a world."""
