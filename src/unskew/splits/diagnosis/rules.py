"""The list of all checks, in the order in which they are shown."""

from __future__ import annotations

from unskew.splits.diagnosis import (
    copy_checks,
    drift_checks,
    duplicate_users,
    fact_checks,
    feature_checks,
    filter_checks,
    order_checks,
    stamp_checks,
)
from unskew.splits.diagnosis.check import Rule

CHECKS: tuple[Rule, ...] = (
    order_checks.future,
    order_checks.user_order,
    order_checks.unborn_items,
    order_checks.torn_sessions,
    order_checks.validation,
    copy_checks.copies,
    duplicate_users.duplicate_users,
    feature_checks.features,
    filter_checks.filters,
    filter_checks.cut_off,
    stamp_checks.time_stamps,
    fact_checks.sizes,
    fact_checks.test_size,
    fact_checks.cold_users,
    fact_checks.cold_items,
    copy_checks.repeats,
    drift_checks.popularity_drift,
    drift_checks.rating_drift,
    drift_checks.activity_drift,
    drift_checks.seasonality,
    fact_checks.time_frame,
    fact_checks.temporal_shift,
    fact_checks.positional_shift,
    fact_checks.rhythm,
    fact_checks.lifetimes,
    fact_checks.collisions,
    fact_checks.log_repeats,
)
"""Every check. To add one: a function with `@rule` in a file of its family, and a line here."""
