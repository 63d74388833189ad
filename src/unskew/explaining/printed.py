"""`Printed`: a number as somebody printed it, and which values it can stand for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal

from unskew.checks import is_number
from unskew.errors import SettingError

SLACK = 1e-9
"""In units of the last digit: room for the sums of another library to end in other bits."""
_TEXT = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")


@dataclass(frozen=True)
class Printed:
    """A printed number: its value, and the worth of its last digit."""

    text: str
    value: float
    unit: float

    @classmethod
    def of(cls, given: object) -> Printed:
        """Read a number or its text; trailing zeros and a percent sign count in text.

        Examples
        --------
        >>> from unskew.explaining.printed import Printed
        >>> Printed.of("0.3210").unit, Printed.of(0.321).unit, Printed.of("32.1%").value
        (0.0001, 0.001, 0.321)
        """
        text = given if isinstance(given, str) else _as_text(given)
        match = _TEXT.fullmatch(text)
        if match is None:
            raise SettingError(
                f"a printed value must be a number such as '0.3211' or '32.11%', got {given!r}"
            )
        number = Decimal(match[1])
        power = int(number.as_tuple().exponent) - (2 if match[2] else 0)
        value = number / 100 if match[2] else number
        if not math.isfinite(float(value)) or abs(power) > 30:
            raise SettingError(f"a printed value must be a finite number, got {given!r}")
        return cls(text.strip(), float(value), float(Decimal(1).scaleb(power)))

    @property
    def half(self) -> float:
        """Half of what the last digit is worth."""
        return self.unit / 2

    def rounds(self, value: float) -> bool:
        """Tell whether a value is printed so when it is rounded; a half either way."""
        return abs(value - self.value) <= self.half + SLACK * self.unit

    def cuts(self, value: float) -> bool:
        """Tell whether a value is printed so when its further digits are cut off."""
        beyond = abs(value) - abs(self.value)
        same_side = value * self.value >= 0
        return same_side and -SLACK * self.unit <= beyond < self.unit

    def show(self, value: float) -> str:
        """Return a value to as many digits, for comparison with what was printed."""
        percent = self.text.endswith("%")
        scale = 100 if percent else 1
        digits = max(0, round(-math.log10(self.unit * scale)))
        return f"{value * scale:.{digits}f}{'%' if percent else ''}"


def _as_text(given: object) -> str:
    if not is_number(given):
        raise SettingError(
            f"a printed value must be a number such as '0.3211' or '32.11%', got {given!r}"
        )
    return repr(float(given))  # type: ignore[arg-type]
