"""What is asked: which printed value of which system and metric is to be explained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unskew.conventions.collection import Library, LibraryMetric
from unskew.conventions.convention import METRICS, OTHER_NAMES, relevant_axes
from unskew.errors import SettingError, UnskewError, unknown_name
from unskew.explaining.printed import Printed
from unskew.metrics.names import parse

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
class Quantity:
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
    def of(cls, label: str, libraries: Sequence[Library] = ()) -> Quantity:
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
        known = metric.name in METRICS and not metric.anti
        if known and set(options) <= set(relevant_axes(metric.name)):
            return cls(label, metric.name, metric.cutoff, options=tuple(options.items()))
        return cls(label, "", metric.cutoff, str(metric))

    @classmethod
    def _of_library(cls, label: str, libraries: Sequence[Library]) -> Quantity:
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


def _is_form(name: str, asked: str) -> bool:
    """Tell whether a metric is the one asked for, whatever its settings where none are named."""
    try:
        metric, wanted = parse(name), parse(asked)
    except UnskewError:
        return False
    return wanted in (metric, replace(metric, settings=()))


def colloquial(name: str) -> tuple[str, int | None]:
    """Return what a name says in small letters alone, and its cutoff.

    Examples
    --------
    >>> from unskew.explaining.asked import colloquial
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
    quantity: Quantity
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
    nested = [isinstance(one, Mapping) for one in values.values()]
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
            quantity = Quantity.of(str(label), libraries)
            targets.append(Target(str(system), quantity, Printed.of(value)))
    if not targets:
        raise SettingError("values are empty: give for example {'nDCG@10': '0.3211'}")
    return tuple(targets)
