"""carraro2020: checks of claims about mean recall, by the statistics of `checks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unskew_studies.carraro2020.checks import (
    balance,
    by_repetition,
    errors,
    gain_in_error,
    gain_in_tau,
    largest_error,
    lead_over_baselines,
    lead_over_skew,
    least_lead,
    mean_of,
    over_repetitions,
    reg_to_full,
    spread_of_sizes,
    wtd_or_hypothesised,
)
from unskew_studies.carraro2020.measurements import (
    experiment,
    in_both,
    without_pairs_in_training,
)
from unskew_studies.carraro2020.printed import SYSTEMS, Means
from unskew_studies.lab import Lab
from unskew_studies.paper import MeasuredValue


def half_like_all(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the errors on half of the held-out ratings (REG) with those on all of them (FULL)."""
    return _of_means(lab, dataset_name, reg_to_full)


def nearest_set(lab: Lab, dataset_name: str, *, name: str, systems: Sequence[str]) -> MeasuredValue:
    """Return the least lead of a test set over all others, among some systems."""
    return _of_means(lab, dataset_name, lambda means: least_lead(means, name, systems))


def error_of_system(lab: Lab, dataset_name: str, *, system: str) -> MeasuredValue:
    """Return the largest error of a system on any test set."""
    return _of_means(lab, dataset_name, lambda means: largest_error(means, system), unit=" %")


def equally_good(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the sizes of AvgRating's errors on SKEW, WTD and WTD_H."""
    return _of_means(lab, dataset_name, spread_of_sizes)


def nearer_than_skew(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least lead of WTD and WTD_H over SKEW, for personalised systems."""
    return _of_means(lab, dataset_name, lead_over_skew)


def wtd_against_wtd_h(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least lead of WTD or WTD_H over the other, where the paper has it ahead."""
    return _of_means(lab, dataset_name, wtd_or_hypothesised)


def worst_of_wtd_h(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest size of WTD_H's errors on the systems other than MF."""
    return _of_means(lab, dataset_name, balance, unit=" %", more=_errors_of_wtd_h)


def nearer_than_baselines(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least lead of SKEW, WTD and WTD_H over FULL and REG, for AvgRating."""
    return _of_means(lab, dataset_name, lead_over_baselines)


def orders_better_than_full(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return by how much the least τ of SKEW, WTD and WTD_H exceeds that of FULL."""
    return _of_means(lab, dataset_name, gain_in_tau, unit="")


def nearer_than_full(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return by how much the worst of SKEW, WTD and WTD_H is better than FULL on average."""
    return _of_means(lab, dataset_name, gain_in_error)


def _of_means(
    lab: Lab,
    dataset_name: str,
    statistic: Callable[[Means], float],
    *,
    unit: str = " points",
    more: Callable[[Means], str] | None = None,
) -> MeasuredValue:
    """Return a statistic of mean recall, by both rules for pairs in both parts.

    Parameters
    ----------
    statistic
        Of means by test set and system.
    unit
        What follows its value.
    more
        What the note says of the means.
    """
    each = by_repetition(lab.table(experiment, dataset_name))
    value, low, high = over_repetitions(statistic, each)
    notes = [more(mean_of(each))] if more is not None else []
    note = " ".join([*notes, _other_rule(lab, dataset_name, statistic, unit)]).strip()
    return MeasuredValue(value, low, high, text=f"{_signed(value)}{unit}", note=note)


def _other_rule(lab: Lab, dataset_name: str, statistic: Callable[[Means], float], unit: str) -> str:
    if not in_both(lab, dataset_name):
        return ""
    rows = lab.table(without_pairs_in_training, dataset_name)
    value = over_repetitions(statistic, by_repetition(rows))[0]
    return f"{_signed(value)}{unit} without the pairs in both parts in the truth."


def _signed(value: float) -> str:
    text = f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"
    return text.replace("-", "−")


def _errors_of_wtd_h(means: Means) -> str:
    """List the errors of WTD_H."""
    by_cell = errors(means)
    listed = ", ".join(f"{system} {by_cell['wtd-h', system]:+.0f}" for system in SYSTEMS)
    return f"{listed} %.".replace("-", "−")
