"""valcarce2018: checks on released results and on our systems' results alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Protocol

from unskew_studies.lab import Lab
from unskew_studies.paper import MeasuredValue
from unskew_studies.valcarce2018.measurements import (
    OurResults,
    ReleasedResults,
    Results,
    needs_depth,
)


class ResultsCheck(Protocol):
    """A check on results: ours, or those released of a data set."""

    def __call__(
        self, lab: Lab, dataset_name: str, *, released: str = "", deep: bool = False
    ) -> MeasuredValue:
        """Return the measured value."""


def on_results(measure: Callable[[Results], MeasuredValue]) -> ResultsCheck:
    """Return a check that measures results: ours, or those `released` of the data set named.

    `deep` asks for lists of 100 items of our systems.
    """

    @wraps(measure)
    def check_results(
        lab: Lab, dataset_name: str, *, released: str = "", deep: bool = False
    ) -> MeasuredValue:
        if released:
            return measure(ReleasedResults(lab, released))
        if deep:
            needs_depth(lab, dataset_name)
        return measure(OurResults(lab, dataset_name))

    return check_results
