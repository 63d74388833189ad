"""`GateSettings`: the thresholds of a gate, written in a small TOML file beside the ranker."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from unskew.checks import check_fields, check_path, is_number, shown
from unskew.engine.files import reading
from unskew.errors import DataError, SettingError, unknown_name

RAILS = ("anti", "coverage", "gini", "popularity", "light")
"""The guard rails."""
CONDUCT = ("check", "inform")
"""What the check on popularity does: it can hold back a promotion, or is only shown."""

_WRITTEN = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?) *(%?)", re.ASCII | re.IGNORECASE)
"""A margin in text: Python's float takes 1_0 and other digits too."""


@dataclass(frozen=True)
class MarginRule:
    """How much may be lost: an amount, or a share of production's value.

    Examples
    --------
    >>> from unskew.gating.settings import MarginRule
    >>> MarginRule.read("margin", "0.5%"), str(MarginRule.read("margin", 0.01))
    (MarginRule(amount=0.005, relative=True), '0.01')
    """

    amount: float
    relative: bool = False

    @classmethod
    def read(cls, name: str, value: object) -> MarginRule:
        """Read `0.5%` or a number from 0 up, which may be written as text."""
        written = _WRITTEN.fullmatch(value.strip()) if isinstance(value, str) else None
        relative = written is not None and bool(written[2])
        amount: Any = float(written[1]) if written else value if is_number(value) else -1.0
        if not 0 <= amount < (100 if relative else 1e300):
            raise SettingError(
                f"{name} must be a share below 100 % such as '0.5%', or a number from 0 up, got "
                f"{shown(value)}"
            )
        return cls(float(amount) / 100 if relative else float(amount), relative)

    def __str__(self) -> str:
        return f"{100 * self.amount:g}%" if self.relative else f"{self.amount:g}"

    def of(self, value: Any) -> Any:
        """Return the amount, where production has this value, or these."""
        return self.amount * value if self.relative else self.amount


def _share(name: str, value: object) -> float:
    margin = MarginRule.read(name, value)
    if not margin.relative and margin.amount > 1:
        raise SettingError(f"{name} must be a share such as '1%' or 0.01, got {shown(value)}")
    return margin.amount


@dataclass(frozen=True, kw_only=True)
class DataLimits:
    """From which share on a problem of the data holds back a promotion."""

    missing: float = 0.01
    """Users with test ratings for whom a system has no list."""
    shorter: float = 0.01
    """Places of the lists that are filled for one system and empty for the other."""
    trained: float = 0.01
    """Listed items that are in the user's training ratings."""
    outside: float = 0.01
    """Listed items outside of the catalogue."""
    future: float = 0.01
    """Users with a training rating that is later than a test rating of theirs."""
    unrated: float = 0.05
    """Recommendations that nobody has rated: how many more the candidate may have."""
    averages: float = 0.01
    """How much less the candidate may be liked, as a share of production's value, if each
    recommendation that the user did not rate were liked as often as its item is on average."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """What a candidate must show to replace production.

    Examples
    --------
    >>> from unskew.gating.settings import GateSettings
    >>> GateSettings.read({"metric": "P@10", "rails": {"gini": "off"}}).rails["gini"] is None
    True
    """

    metric: str = "nDCG@10"
    margin: MarginRule | None = None
    """Non-inferiority: how much worse the candidate may be; None: it must be better."""
    alpha: float = 0.05
    """The one-sided level of every test."""
    popularity: str = "check"
    """Whether the check on popularity can hold back a promotion: `check`, or `inform`."""
    rails: Mapping[str, MarginRule | None] = field(
        default_factory=lambda: {
            "anti": MarginRule(0.2, True),
            "coverage": MarginRule(0.2, True),
            "gini": MarginRule(0.25, True),
            "popularity": MarginRule(0.25, True),
            "light": MarginRule(0.15, True),
        }
    )
    """By guard rail: how far the candidate may go; None: switched off."""
    segments: tuple[str, ...] = ("activity", "popularity")
    segment_margin: MarginRule = MarginRule(0.05, True)
    """How much worse the candidate may be in a segment."""
    data: DataLimits = DataLimits()

    def __post_init__(self) -> None:
        if not isinstance(self.metric, str):
            raise SettingError(f"metric must be a name such as nDCG@10, got {shown(self.metric)}")
        if not is_number(self.alpha) or not 0 < self.alpha < 0.5:
            raise SettingError(f"alpha must lie between 0 and 0.5, got {shown(self.alpha)}")
        if not isinstance(self.popularity, str) or self.popularity not in CONDUCT:
            allowed = " or ".join(CONDUCT)
            raise SettingError(f"popularity must be {allowed}, got {shown(self.popularity)}")
        check_fields(self)
        _check_names("rails", self.rails, RAILS)

    @classmethod
    def read(cls, source: object) -> GateSettings:
        """Read a TOML file, or a mapping with the same names."""
        if source is None:
            return cls()
        if isinstance(source, GateSettings):
            return source
        if isinstance(source, str | os.PathLike):
            check_path("config", source)
            return cls._of_mapping(_parsed(Path(source)), str(source))
        if isinstance(source, Mapping):
            return cls._of_mapping(source, "config")
        raise SettingError(
            "config must be a TOML file, a mapping of its settings or GateSettings, got "
            f"{type(source).__name__}"
        )

    @classmethod
    def _of_mapping(cls, content: Mapping[str, Any], where: str) -> GateSettings:
        names = ("metric", "margin", "alpha", "popularity", "rails", "segments", "data")
        _check_names(where, content, names)
        plain = {
            name: content[name] for name in ("metric", "alpha", "popularity") if name in content
        }
        with _named(where):
            settings = replace(cls(), **plain)
            if "margin" in content:
                settings = settings.with_margin(content["margin"])
        readers = {"rails": cls.with_rails, "segments": cls._with_segments, "data": cls._with_data}
        for name, read in readers.items():
            part = content.get(name, {})
            if not isinstance(part, Mapping):
                raise SettingError(f"{where}: [{name}] must be a table, got {shown(part)}")
            with _named(f"{where}, [{name}]"):
                settings = read(settings, part)
        return settings

    def with_margin(self, margin: object) -> GateSettings:
        """Return the settings of a test of non-inferiority; `off` for superiority.

        Examples
        --------
        >>> from unskew.gating import GateSettings
        >>> print(GateSettings().with_margin("0.5%").margin)
        0.5%
        """
        return replace(self, margin=None if _is_off(margin) else MarginRule.read("margin", margin))

    def with_rails(self, rails: Mapping[str, Any]) -> GateSettings:
        """Return the settings with other margins of guard rails; `off` or None switches one off.

        Examples
        --------
        >>> from unskew.gating import GateSettings
        >>> str(GateSettings().with_rails({"gini": "10%"}).rails["gini"])
        '10%'
        """
        _check_names("rails", rails, RAILS)
        margins = {
            name: None if value is None or _is_off(value) else MarginRule.read(name, value)
            for name, value in rails.items()
        }
        return replace(self, rails={**self.rails, **margins})

    def _with_segments(self, part: Mapping[str, Any]) -> GateSettings:
        _check_names("segments", part, ("by", "margin"))
        by = part.get("by", self.segments)
        if not isinstance(by, list | tuple) or not all(isinstance(name, str) for name in by):
            raise SettingError(f'by must be a list such as ["activity"], got {shown(by)}')
        margin = part.get("margin", self.segment_margin)
        if not isinstance(margin, MarginRule):
            margin = MarginRule.read("margin", margin)
        return replace(self, segments=tuple(by), segment_margin=margin)

    def _with_data(self, part: Mapping[str, Any]) -> GateSettings:
        _check_names("data", part, [field.name for field in fields(DataLimits)])
        shares = {name: _share(name, value) for name, value in part.items()}
        return replace(self, data=replace(self.data, **shares))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as the TOML file has them."""
        return {
            "metric": self.metric,
            "margin": "off" if self.margin is None else str(self.margin),
            "alpha": self.alpha,
            "popularity": self.popularity,
            "rails": {k: "off" if v is None else str(v) for k, v in self.rails.items()},
            "segments": {"by": list(self.segments), "margin": str(self.segment_margin)},
            "data": {field.name: getattr(self.data, field.name) for field in fields(DataLimits)},
        }


def _parsed(path: Path) -> dict[str, Any]:
    try:
        with reading(path):
            return tomllib.loads(path.read_bytes().decode())
    except DataError as problem:
        hint = "" if path.exists() else f"; `unskew gate init {path}` writes one"
        raise DataError(f"{problem}{hint}") from None
    except RecursionError:
        raise DataError(f"{path}: this is no TOML file of settings: too deeply nested") from None
    except ValueError as problem:  # tomllib also raises plain ones, for numbers of many digits
        raise DataError(f"{path}: this is no TOML file ({problem})") from None


def _check_names(where: str, content: Mapping[str, Any], names: Any) -> None:
    for name in content:
        if name not in names:
            raise unknown_name(f"setting of {where}", name, names)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Say of a wrong setting where it stands."""
    try:
        yield
    except SettingError as problem:
        raise type(problem)(f"{where}: ", *problem.args) from None


def _is_off(value: object) -> bool:
    return isinstance(value, str) and value.strip() == "off"


TEMPLATE = """\
# unskew gate: what a candidate must show to replace production.
# Keep this file beside the ranker: a changed threshold is then a change that somebody reviews.

# The metric that decides, as `unskew metrics` lists them.
metric = "nDCG@10"

# off: the candidate must be better than production.
# "0.5%" (of production's mean) or 0.001 (of the metric): it must not be worse by more than that.
margin = "off"

# The one-sided level of every test: a candidate that does not deserve it is promoted in at most
# about this share of all tests.
alpha = 0.05

# What happens when the candidate's lead may come from recommending what is rated more, and not
# what is liked more. check: no promotion. inform: it is only reported.
popularity = "check"

# Guard rails. Each must be shown to stay within its margin; clearly beyond it the candidate is
# held back. "off" switches one off.
[rails]
# Disliked items: the anti-metric divided by the metric may rise by at most this part.
anti = "20%"
# Catalogue: the share of items that anybody is shown may fall by at most this part.
coverage = "20%"
# Evenness: 1 - Gini of how often items are shown may fall by at most this part.
gini = "25%"
# Popularity: the mean number of ratings of recommended items may rise by at most this part.
popularity = "25%"
# Light users: the score of those with at most the median number of ratings may get worse by at most
# this part (and by the margin above, if there is one), whatever heavy users gain.
light = "15%"

# Groups of users. A group raises an alarm, which holds the candidate back, when it is clearly worse
# off by more than the margin (a share of production's mean in the group); corrected for the number
# of groups and rails (Holm).
[segments]
by = ["activity", "popularity"]
margin = "5%"

# From which share on a problem of the data prevents a promotion; 1 only reports it.
[data]
# Users with test ratings for whom a system has no list.
missing = 0.01
# Places of the lists that one system fills and the other leaves empty.
shorter = 0.01
# Listed items that the user rated in training.
trained = 0.01
# Listed items outside of the catalogue.
outside = 0.01
# Users with a training rating that is later than one of their test ratings.
future = 0.01
# Recommended items that nobody has rated, in test or training: no rating can show whether users
# like them. The candidate's share may be higher than production's by at most this much.
unrated = 0.05
# The liked share if each recommendation that the user did not rate were liked as often as its item
# is on average: the candidate's may be lower by at most this part of production's.
averages = 0.01
"""
"""What `unskew gate init` writes: the defaults, with comments."""
