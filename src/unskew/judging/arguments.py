"""What analyses are given: judged data, or raw data with the options of `judge`."""

from __future__ import annotations

from typing import Any, TypeVar

from unskew.errors import SettingError
from unskew.judging.judged import Judged, judge
from unskew.judging.numbering import several_refused
from unskew.judging.reading import DEFAULTS
from unskew.judging.tied import refuse_order
from unskew.ties import EXPECTED

T = TypeVar("T")


def second_argument(judgments: object, runs: object, metrics: T, default: T) -> tuple[object, T]:
    """Return runs and metrics: after judged data, metrics are the second argument."""
    if not isinstance(judgments, Judged) or runs is None:
        return runs, metrics
    if metrics != default:
        raise SettingError("runs are already part of the judged data: leave runs=… out")
    return None, runs  # type: ignore[return-value]


def as_judged(
    judgments: object,
    runs: object,
    *,
    seed: int = 0,
    may_tie: bool = False,
    may_repeat: bool = False,
    **options: Any,
) -> Judged:
    """Take judged data as they are, or judge raw data by the options of `judge`.

    What cannot average over orders of equal scores leaves `may_tie` out, what cannot take users
    with lists of several dates or sessions `may_repeat`.
    """
    judged = _judged(judgments, runs, seed, may_tie, options)
    if judged.occasions is not None and not may_repeat:
        raise several_refused("users have several lists, and")
    return judged


def _judged(
    judgments: object, runs: object, seed: int, may_tie: bool, options: dict[str, Any]
) -> Judged:
    given = judgments.ties if isinstance(judgments, Judged) else options.get("ties")
    if given == EXPECTED and not may_tie:
        raise refuse_order()
    if not isinstance(judgments, Judged):
        if runs is None:
            raise SettingError(
                "runs are missing: give ranked lists by system, or judged data (us.judge) alone"
            )
        return judge(judgments, runs, seed=seed, **options)
    for name, value in {"runs": runs, **options}.items():
        usual = DEFAULTS.get(name)
        if value is not None and not (isinstance(value, str) and value == usual):
            raise SettingError(
                f"{name} is already part of the judged data: leave {name}=… out, or give it to "
                "judge(…)"
            )
    return judgments
