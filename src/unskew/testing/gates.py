"""`assert_gate`: a test of a test suite that fails with the verdict of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from unskew.auditing.gate_checks import HOLD, NOT_SETTLED, PROMOTE
from unskew.checks import checked, choose
from unskew.errors import SettingError

VERDICTS = (PROMOTE, HOLD, NOT_SETTLED)


@runtime_checkable
class HasVerdict(Protocol):
    """What `us.gate` gives: a verdict, and a text that explains it."""

    @property
    def verdict(self) -> str:
        """`promote`, `hold` or `not settled`."""


@checked
def assert_gate(result: object, allowed: str | Sequence[str] = PROMOTE) -> None:
    """Fail unless a gate lets the candidate through; the failure shows verdict and checks.

    Parameters
    ----------
    result
        What `us.gate` gave.
    allowed
        The verdict, or verdicts, with which the test passes: `promote`, and for a test that should
        fail on proven harm only, also `not settled`.

    Raises
    ------
    AssertionError
        With the text of the gate.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from unskew.testing import assert_gate
    >>> assert_gate(SimpleNamespace(verdict="promote"))
    >>> assert_gate(SimpleNamespace(verdict="not settled"), allowed=["promote", "not settled"])
    """
    names = [allowed] if isinstance(allowed, str) else list(allowed)
    if not names:
        raise SettingError(f"allowed is empty: name one or more of {', '.join(VERDICTS)}")
    for name in names:
        choose("verdict", name, VERDICTS)
    if not isinstance(result, HasVerdict):
        raise SettingError(f"result must be what us.gate gives, got {type(result).__name__}")
    if result.verdict not in names:
        wanted = " or ".join(repr(name) for name in names)
        raise AssertionError(f"the verdict is {result.verdict!r}, not {wanted}\n\n{result}")
