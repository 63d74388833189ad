"""What a metric is: one definition that carries everything known about it, in a registry.

A feature that needs something special of a metric asks the definition for it. Where the field is
None the feature refuses the metric, or leaves it out, and says what is missing: `missing` words it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unskew.arrays import F64, I64
from unskew.errors import SettingError
from unskew.metrics.block import Block
from unskew.metrics.bounds import MetricBounds
from unskew.metrics.settings import AtRank, Param, Params
from unskew.metrics.strata import MetricStrata
from unskew.metrics.weighted import Linear, Weighted

Check = Callable[[Params, bool, int | None], str]
"""(settings, whether it is an anti-metric, cutoff) to what is wrong with them, or nothing."""
Formula = Callable[[Block, Params, I64], F64 | tuple[F64, F64]]
OWN_FORMULA = "own formula"
"""A metric's own formula, fed with expected counts, is its expectation under a random order."""


def _no_parts(params: Params) -> tuple[str, ...]:  # noqa: ARG001
    return ()


def _nothing_wrong(params: Params, anti: bool, cutoff: int | None) -> str:  # noqa: ARG001
    return ""


def plain_sum(name: str) -> Callable[[Params, int | None], str | None]:
    """Return a `fast_sum` for a metric whose settings are the usual ones; None for others."""
    usual = {"per": "all", "ideal": "cut", "discount": "log"}

    def fast_sum(params: Params, cutoff: int | None) -> str | None:  # noqa: ARG001
        plain = all(params[key] == value for key, value in usual.items() if key in params)
        return name if plain else None

    return fast_sum


DESCRIBES_JUDGMENTS = "it describes the judgments: with everything judged it is {}"
"""Why such a metric has no weighted form."""


@dataclass(frozen=True)
class Definition:
    """A metric's name, what it computes and everything that is known about it.

    The first group of fields says what the metric is; the second, from `chance` on, what other
    features need of it. Each of these may be missing.

    Examples
    --------
    `us.metrics.REGISTRY` has that of every metric by its name.

    >>> import unskew as us
    >>> us.metrics.REGISTRY["nDCG"].summary
    "DCG divided by the best that the user's judgments allow."
    >>> [name for name, one in us.metrics.REGISTRY.items() if one.of == "run"]
    ['Coverage', 'Gini', 'Entropy', 'PopREO', 'PopRSP']
    """

    name: str
    compute: Callable[..., Any]
    params: Mapping[str, Param] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names, and what each stands for."""
    better: str = "higher"
    """`higher`, `lower`, or `neither` for a description that is no verdict."""
    low: float = 0.0
    high: float = 1.0
    of: str = "judged"
    """`judged` hits, `items` of the lists, or the whole `run`."""
    anti: bool = True
    """Whether it has an anti-twin."""
    needs: frozenset[str] = frozenset()
    """What must be given beside judgments and runs: `train`, `catalogue`."""
    needs_disliked: bool = False
    """Whether it cannot tell good from bad when no judgment is disliked."""
    counts_gain: bool = False
    """Whether judged items that are not liked add their gain."""
    parts: Callable[[Params], tuple[str, ...]] = _no_parts
    """Which parts of `Block.walk` it is made of."""
    check: Check = _nothing_wrong
    """Which settings do not go together."""
    short_list: Params = field(default_factory=dict)
    """Settings that forgive a list shorter than the cutoff."""
    condensed: Params = field(default_factory=dict)
    """Defaults of the condensed form, where they differ."""
    is_user_code: bool = False
    """Whether it was registered by a user's code."""

    chance: Formula | str | None = None
    """The expectation under a random order: `OWN_FORMULA` or a function of a `ChanceBlock`.

    None: it is simulated.
    """
    tied: Callable[..., Any] | str | None = None
    """The mean over all orders of equal scores: `OWN_FORMULA` or a function of a `TiedBlock`.

    None: `ties="expected"` refuses the metric.
    """
    at_rank: AtRank | None = None
    """The value of a list with one relevant item (sampled metrics, exact target lists)."""
    weighted: Weighted | str | None = None
    """The weighted (IPS) form; a text says why there can be none."""
    linear: Linear | None = None
    """The metric as a sum over judged hits (`sensitivity`, `judgments_needed`, `assisted`)."""
    bounds: MetricBounds | None = None
    """The least and the largest value over what unjudged items could be."""
    strata: MetricStrata | None = None
    """How it splits over strata of items."""
    fast_sum: Callable[[Params, int | None], str | None] | None = None
    """(settings, cutoff) to the sum in `stats.sums_over_hits` that its mean follows from.

    None: `robustness` computes a value for every user, which takes longer.
    """

    @property
    def summary(self) -> str:
        """The first sentence of the docstring."""
        lines = (self.compute.__doc__ or "").strip().splitlines()
        return lines[0] if lines else ""

    @property
    def origin(self) -> str:
        """The module and the name of its function."""
        function = getattr(self.compute, "function", self.compute)
        plain = getattr(function, "py_func", function)  # compiled by numba
        return f"{plain.__module__}.{plain.__qualname__}"


REGISTRY: dict[str, Definition] = {}
"""Every metric by its name, those of users' code included."""
WHEN_CHANGED: list[Callable[[], None]] = []
"""Called when the registry has changed: what was remembered of names no longer holds."""


def missing(label: object, name: str, field_name: str, what: str) -> SettingError:
    """Return an error for a metric whose definition lacks a field that a feature needs."""
    can = [
        key for key, definition in REGISTRY.items() if getattr(definition, field_name) is not None
    ]
    return SettingError(
        f"{label}: {name} has no {what} ({field_name}=… of its definition); "
        f"take one of {', '.join(can)}"
    )


def register(definition: Definition, *, replace: bool = False) -> None:
    """Add a definition to the registry."""
    if definition.name in REGISTRY and not replace:
        raise SettingError(
            f"a metric {definition.name} already exists; give replace=True to replace it"
        )
    REGISTRY[definition.name] = definition
    for forget in WHEN_CHANGED:
        forget()
