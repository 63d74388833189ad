"""valcarce2018: checks on released results and on our systems' results alike."""

from __future__ import annotations

from collections.abc import Callable

from unskew_studies.lab import Lab
from unskew_studies.paper import Check, MeasuredValue
from unskew_studies.valcarce2018.measurements import (
    OurResults,
    ReleasedResults,
    Results,
    needs_depth,
)

ResultsCheck = Callable[[Results], MeasuredValue]


def on_released(check: ResultsCheck, dataset_name: str = "ml-1m") -> Check:
    """Return a check on the released results of a data set."""
    return lambda lab, _dataset_name: check(ReleasedResults(lab, dataset_name))


def on_ours(check: ResultsCheck, *, deep: bool = False) -> Check:
    """Return a check on the results of our systems; `deep` asks for lists of 100 items."""

    def check_ours(lab: Lab, dataset_name: str) -> MeasuredValue:
        if deep:
            needs_depth(lab, dataset_name)
        return check(OurResults(lab, dataset_name))

    return check_ours
