"""Names of metrics: values that print as they parse.

Grammar: ``[anti-][condensed-]Name[(key=value,…)][@k]``; without ``@k`` the whole list counts.
"""

from __future__ import annotations

from typing import Any

from unskew.errors import SettingError
from unskew.metrics.block import log_table
from unskew.metrics.definition import Definition
from unskew.metrics.weighted import (
    Linear,
    Weighted,
    liked_column,
    mean_discounted_gain,
    mean_normalised_rank,
)

from unskew.metrics import accuracy  # isort: skip
from unskew.metrics import judgment_aware, items, popularity  # isort: skip
import re
from dataclasses import dataclass, replace
from functools import cache

from unskew.checks import check_fields
from unskew.errors import unknown_name
from unskew.metrics.block import WHOLE
from unskew.metrics.definition import REGISTRY, WHEN_CHANGED
from unskew.metrics.listwise import metric
from unskew.metrics.settings import Params, Value


def _only_estimated(*_: Any) -> Any:
    raise SettingError("ATOP and ADG are estimated (us.estimate), not evaluated")


ESTIMANDS = {
    # Mean normalised rank of the liked items: area under the recall curve (Steck 2010).
    "ATOP": Definition(
        "ATOP",
        _only_estimated,
        weighted=Weighted(mean_normalised_rank, is_ratio=True, needs_targets=True),
    ),
    # Mean discounted gain of the liked items (Yang et al. 2018).
    "ADG": Definition(
        "ADG",
        _only_estimated,
        weighted=Weighted(mean_discounted_gain, is_ratio=True),
        linear=Linear(liked_column, log_table),
    ),
}


__all__ = ["REGISTRY", "accuracy", "items", "judgment_aware", "metric", "popularity"]


DEEPEST = 10**18
"""The deepest cutoff: ranks are 64-bit numbers, and `WHOLE` lies beyond."""

_READS = {
    "judged": "judged items of the lists",
    "items": "all items of the lists",
    "run": "all lists of a system together",
}
_TEXT = re.compile(
    r"(?P<prefix>(?:anti-|condensed-)*)(?P<name>[A-Za-z][A-Za-z0-9_-]*?)"
    r"(?:\((?P<params>[^()]*)\))?(?:(?:@|(?<=[A-Za-z])_)(?P<cutoff>\d+))?"
)


@dataclass(frozen=True)
class Metric:
    """A metric with its settings and cutoff.

    Examples
    --------
    >>> from unskew import Metric
    >>> str(Metric.parse("ndcg_cut_10")), str(Metric.parse("Fallout@5"))
    ('nDCG@10', 'anti-Recall@5')
    >>> Metric.parse("SR(gamma=2)@10").cutoff
    10
    """

    name: str
    settings: tuple[tuple[str, Value], ...] = ()
    """Settings that differ from their default."""
    cutoff: int | None = None
    anti: bool = False
    condensed: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def parse(cls, text: str | Metric) -> Metric:
        """Read a metric's name."""
        return parse(text)

    @property
    def definition(self) -> Definition:
        """Everything known about the metric."""
        return REGISTRY[self.name] if self.name in REGISTRY else ESTIMANDS[self.name]

    @property
    def defaults(self) -> dict[str, Value]:
        """What each setting is unless the name states it; condensed forms differ in some."""
        usual = {key: param.default for key, param in self.definition.params.items()}
        return {**usual, **self.definition.condensed} if self.condensed else usual

    @property
    def params(self) -> Params:
        """All settings, defaults included."""
        return {**self.defaults, **dict(self.settings)}

    @property
    def better(self) -> str:
        """`higher`, `lower` or `neither`."""
        flip = {"higher": "lower", "lower": "higher", "neither": "neither"}
        return flip[self.definition.better] if self.anti else self.definition.better

    @property
    def needs_dislikes(self) -> bool:
        """Whether it means nothing where no judgment is a dislike, as in implicit feedback."""
        return self.anti or self.definition.needs_disliked

    @property
    def whole_cutoff(self) -> int:
        """The cutoff as a number; a very large one stands for the whole list."""
        return WHOLE if self.cutoff is None else self.cutoff

    @property
    def family(self) -> Metric:
        """The metric without its cutoff."""
        return replace(self, cutoff=None)

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        definition = self.definition
        low, high = definition.low, definition.high
        everything = "the whole list" if definition.of != "run" else "the whole run"
        facts = [
            ("better", self.better),
            ("range", f"{low:g} to {high:g}"),
            ("cutoff", everything if self.cutoff is None else self.cutoff),
            *((f"setting {name}", str(value)) for name, value in self.params.items()),
            ("needs", ", ".join(sorted(definition.needs))),
            ("reads", _READS[definition.of]),
        ]
        summary = f"{self}: {definition.summary}".replace("`", "")
        notes = ["anti-: liked and disliked change places"] if self.anti else []
        notes += ["condensed-: ranks count judged items only"] if self.condensed else []
        return card("Metric", summary, facts, notes)

    def __str__(self) -> str:
        prefix = ("anti-" if self.anti else "") + ("condensed-" if self.condensed else "")
        inner = ",".join(
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in self.settings
        )
        settings = f"({inner})" if inner else ""
        cutoff = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{prefix}{self.name}{settings}{cutoff}"


def parse(text: str | Metric) -> Metric:
    """Read a metric's name; `Metric` values are returned as they are.

    Parameters
    ----------
    text
        Such as ``"P@10"``, ``"anti-nDCG@5"`` or ``"SR(gamma=2)@10"``; the names that trec_eval and
        papers use, such as ``"ndcg_cut_10"``, are read too.

    Raises
    ------
    UnknownName
        For a name or setting that does not exist, with the nearest that does.
    SettingError
        For a setting or cutoff that is not allowed.

    Examples
    --------
    >>> import unskew as us
    >>> us.metrics.parse("anti-RBP(p=0.5)@20")
    Metric(name='RBP', settings=(('p', 0.5),), cutoff=20, anti=True, condensed=False)
    >>> print(us.metrics.parse("ndcg_cut_10"))
    nDCG@10
    """
    if isinstance(text, Metric):
        return text
    if not isinstance(text, str):
        raise SettingError(f"a metric must be named, such as P@10, or a us.Metric; got {text!r}")
    return _parse(text)


@cache
def parse_all(names: tuple[str, ...]) -> tuple[Metric, ...]:
    """Read several names, once for all that have the same."""
    return tuple(map(parse, names))


def _settings_first(text: str) -> str:
    """Return how to write a metric whose settings stand behind its cutoff; '' for others."""
    match = re.fullmatch(r"([\w-]+)(@\d+)(\([^()]*\))", text.strip())
    return "" if match is None else f"; settings come first: {match[1]}{match[3]}{match[2]}"


@cache
def _parse(text: str) -> Metric:
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise SettingError(
            f"cannot read the metric {text!r}; write it like P@10, nDCG, anti-P@5 or "
            f"SR(gamma=1)@10{_settings_first(text)}"
        )
    prefix = match["prefix"]
    base = _resolve(match["name"])
    if prefix.count("anti-") > 1 or prefix.count("condensed-") > 1:
        raise SettingError(f"metric {text!r}: a prefix occurs twice")
    metric = replace(
        base,
        anti=base.anti ^ ("anti-" in prefix),
        condensed=base.condensed or "condensed-" in prefix,
    )
    if match["params"] is not None:
        metric = _with_settings(metric, match["params"], text)
    if match["cutoff"] is not None:
        metric = replace(metric, cutoff=_cutoff(match["cutoff"], text))
    return _checked(metric, text)


WHEN_CHANGED += [_parse.cache_clear, parse_all.cache_clear]


def _cutoff(digits: str, text: str) -> int:
    # Python itself refuses to read thousands of digits.
    cutoff = int(digits) if len(digits) <= 30 else DEEPEST + 1
    if not 1 <= cutoff <= DEEPEST:
        label = text if len(text) <= 60 else f"{text[:60]}…"
        raise SettingError(f"metric {label!r}: a cutoff must be a whole number from 1 to 10^18")
    return cutoff


def _resolve(name: str) -> Metric:
    """Find a name or an alias, whatever its case."""
    metrics = {entry.lower(): Metric(entry) for entry in REGISTRY}
    if name.lower() in metrics:
        return metrics[name.lower()]
    targets = aliases()
    lower = {alias.lower(): target for alias, target in targets.items()}
    if name.lower() in lower:
        return parse(lower[name.lower()])
    raise unknown_name("metric", name, [*REGISTRY, *targets])


def aliases() -> dict[str, str]:
    """Return all other names of metrics, and what each stands for."""
    return {
        alias: target
        for definition in REGISTRY.values()
        for alias, target in definition.aliases.items()
    }


def _with_settings(metric: Metric, inner: str, text: str) -> Metric:
    settings = dict(metric.settings)
    allowed = metric.definition.params
    for part in filter(None, (piece.strip() for piece in inner.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise SettingError(f"metric {text!r}: write settings as key=value, got {part!r}")
        if key not in allowed:
            if not allowed:
                raise SettingError(f"metric {text!r}: {metric.name} takes no settings")
            raise unknown_name(f"setting of {metric.name}", key, allowed)
        try:
            settings[key] = allowed[key].read(value)
        except ValueError as rule:
            raise SettingError(f"metric {text!r}: {key} must be {rule}, got {value!r}") from None
    ordered = tuple((key, settings[key]) for key in allowed if key in settings)
    return replace(metric, settings=ordered)


def _checked(metric: Metric, text: str) -> Metric:
    definition = metric.definition
    if metric.anti and not definition.anti:
        raise SettingError(f"metric {text!r}: {metric.name} has no anti-twin")
    if metric.condensed and definition.of != "judged":
        raise SettingError(f"metric {text!r}: only metrics of judged items can be condensed")
    wrong = definition.check(metric.params, metric.anti, metric.cutoff)
    if wrong:
        raise SettingError(f"metric {text!r}: {wrong}")
    defaults = metric.defaults
    settings = tuple(
        (key, value)
        for key, value in metric.settings
        if definition.params[key].meaning(value) != defaults[key]
    )
    return replace(metric, settings=settings)
