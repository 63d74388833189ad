"""`Printed`: a number as somebody printed it, and which values it can stand for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from unskew.checks import is_number
from unskew.conventions.libraries import METRICS, OTHER_NAMES, Library, LibraryMetric, relevant_axes
from unskew.errors import SettingError, UnskewError, unknown_name
from unskew.metrics.names import parse

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
    def of(cls, source: object) -> Printed:
        """Read a number or its text; trailing zeros and a percent sign count in text.

        Examples
        --------
        >>> from unskew.conventions.explaining.printed import Printed
        >>> Printed.of("0.3210").unit, Printed.of(0.321).unit, Printed.of("32.1%").value
        (0.0001, 0.001, 0.321)
        """
        text = source if isinstance(source, str) else _as_text(source)
        match = _TEXT.fullmatch(text)
        if match is None:
            raise SettingError(
                f"a printed value must be a number such as '0.3211' or '32.11%', got {source!r}"
            )
        number = Decimal(match[1])
        power = int(number.as_tuple().exponent) - (2 if match[2] else 0)
        value = number / 100 if match[2] else number
        if not math.isfinite(float(value)) or abs(power) > 30:
            raise SettingError(f"a printed value must be a finite number, got {source!r}")
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


def _as_text(value: object) -> str:
    if not is_number(value):
        raise SettingError(
            f"a printed value must be a number such as '0.3211' or '32.11%', got {value!r}"
        )
    return repr(float(value))  # type: ignore[arg-type]


OURS = "ours"
"""The name under which our own conventions stand beside those of libraries."""
COLLOQUIAL = {
    "p": "P", "prec": "P", "precision": "P", "setp": "P",
    "r": "Recall", "rec": "Recall", "recall": "Recall", "setrecall": "Recall", "setr": "Recall",
    "f1": "F1", "f": "F1", "fbeta": "F1", "f1beta": "F1", "setf": "F1", "fmeasure": "F1",
    "map": "AP", "ap": "AP", "averageprecision": "AP", "mapcut": "AP",
    "ndcg": "nDCG", "ndcgcut": "nDCG", "normalizeddcg": "nDCG", "dcg": "DCG",
    "mrr": "RR", "rr": "RR", "reciprank": "RR", "reciprocalrank": "RR",
    "hr": "HitRate", "hit": "HitRate", "hitrate": "HitRate", "hitratio": "HitRate",
    "success": "HitRate", "hits": "Hits", "arhr": "ARHR", "ncrr": "NCRR",
    "rprec": "Rprec", "rprecision": "Rprec",
}  # fmt: skip
"""What people call metrics, in letters alone, and the metric that is meant."""


@dataclass(frozen=True)
class PrintedQuantity:
    """A metric as it was asked for."""

    label: str
    metric: str
    """A metric with conventions, or empty."""
    k: int | None
    ours: str = ""
    """Where it has no conventions: our name of it."""
    options: tuple[tuple[str, str], ...] = ()
    """Settings in its name."""

    @classmethod
    def of(cls, label: str, libraries: Sequence[Library] = ()) -> PrintedQuantity:
        """Read the name of a metric, ours or a library's."""
        word, k = colloquial(label)
        if word in COLLOQUIAL:
            return cls(label, COLLOQUIAL[word], k)
        try:
            metric = parse(label)
        except UnskewError:
            return cls._of_library(label, libraries)
        usual = replace(metric, condensed=False).defaults
        options = {
            name: str(value) for name, value in metric.params.items() if value != usual[name]
        }
        if metric.condensed:
            options["unjudged"] = "remove"
        has_conventions = metric.name in METRICS and not metric.anti
        if has_conventions and set(options) <= set(relevant_axes(metric.name)):
            return cls(label, metric.name, metric.cutoff, options=tuple(options.items()))
        return cls(label, "", metric.cutoff, str(metric))

    @classmethod
    def _of_library(cls, label: str, libraries: Sequence[Library]) -> PrintedQuantity:
        for library in libraries:
            for row, k in library.named(label):
                return cls(label, row.metric, k, row.family(k) if row.ours else "")
        raise unknown_name("metric", label, [*METRICS, *OTHER_NAMES])

    def row(self) -> LibraryMetric:
        """Return the metric as we compute it."""
        name = self.label.replace("{", "").replace("}", "")
        cut = "{k}" if self.k is not None else ""
        return LibraryMetric(
            OURS, f"{name}{cut}", metric=self.metric, ours=self.ours, options=self.options
        )

    def is_of(self, row: LibraryMetric) -> bool:
        """Tell whether a library's metric is, or is called, what is asked for."""
        if self.ours:
            return bool(row.ours) and _is_form(row.family(self.k), self.ours)
        if row.has_cutoff != (self.k is not None) or row.ours:
            return False
        if any(dict(row.options).get(name) != option for name, option in self.options):
            return False
        return self.metric in (row.metric, COLLOQUIAL.get(colloquial(row.name)[0], ""))


def _is_form(name: str, printed: str) -> bool:
    """Tell whether a metric is the one asked for, whatever its settings where none are named."""
    try:
        metric, target = parse(name), parse(printed)
    except UnskewError:
        return False
    return target in (metric, replace(metric, settings=()))


def colloquial(name: str) -> tuple[str, int | None]:
    """Return what a name says in small letters alone, and its cutoff.

    Examples
    --------
    >>> from unskew.conventions.explaining.printed import colloquial
    >>> colloquial("RetrievalMAP(top_k=10)"), colloquial("ndcg_cut_5"), colloquial("HitK({k})")
    (('map', 10), ('ndcgcut', 5), ('hit', None))
    """
    plain = name.replace("{k}", "@")
    pattern = r"(?:Retrieval|query_)?(.*?)[\s_@(]*(?:(?:top_)?k=|at_|@)?(\d*)@?\)?"
    match = re.fullmatch(pattern, plain)
    word, digits = (match[1], match[2]) if match is not None else (plain, "")
    letters = re.sub(r"[^a-z0-9]", "", word.lower())
    for ending in ("topkmetric", "kmetric", "metric", "topk", "atk", "at", "score", "k"):
        if letters not in COLLOQUIAL:
            letters = letters.removesuffix(ending)
    return letters, int(digits) if digits else None


@dataclass(frozen=True)
class Target:
    """One printed value."""

    system: str
    quantity: PrintedQuantity
    printed: Printed

    def __str__(self) -> str:
        return f"{self.quantity.label} = {self.printed.text}"


def read_targets(
    values: object, systems: Sequence[str], libraries: Sequence[Library]
) -> tuple[Target, ...]:
    """Read metric to value, or system to metric to value."""
    if not isinstance(values, Mapping) or not values:
        raise SettingError(
            "values must map metrics to printed values, such as {'nDCG@10': '0.3211'}, or systems "
            f"to such mappings; got {values!r}"
        )
    nested = [isinstance(value, Mapping) for value in values.values()]
    if any(nested) != all(nested):
        raise SettingError("values must be either all of one system, or all named by system")
    if not any(nested):
        if len(systems) > 1:
            raise SettingError(
                f"values of which system? There are {', '.join(systems)}; give "
                "{'" + systems[0] + "': {'nDCG@10': '0.3211'}}"
            )
        values = {systems[0]: values}
    targets = []
    for system, row in values.items():
        if system not in systems:
            raise unknown_name("system", system, systems)
        for label, value in row.items():
            quantity = PrintedQuantity.of(str(label), libraries)
            targets.append(Target(str(system), quantity, Printed.of(value)))
    if not targets:
        raise SettingError("values are empty: give for example {'nDCG@10': '0.3211'}")
    return tuple(targets)
