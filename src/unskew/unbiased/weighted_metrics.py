"""What an estimate can be made of: metrics as sums in which a judgment stands for several.

A metric that adds something up over liked items can be estimated from some of them: each found one
is counted 1/p times, p being its chance of being judged. A fraction is estimated by such a sum over
another. Metrics that ask for the *first* liked item, for as many items as are liked, or for
what stands above among the judged only, have no such form: here it says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from unskew.arrays import F64, I32, I64, frozen
from unskew.errors import DataError, SettingError
from unskew.judging.shape import LIKED, View
from unskew.metrics.block import (
    WHOLE,
    Block,
    Judged,
    geometric_discount,
    log_discount,
    sum_of_discounts,
)
from unskew.metrics.definition import Params
from unskew.metrics.names import Metric, parse

Fraction = tuple[F64, F64 | None]

OWN = {
    "ATOP": "mean normalised rank of the liked items: area under the recall curve (Steck 2010)",
    "ADG": "mean discounted gain of the liked items (Yang et al. 2018)",
}
"""Estimands that are no metrics of their own: averages over the liked items."""

_FIRST = (
    "it looks at the first liked item of a list, and which that is depends on items that were not "
    "judged; no weight of the judged ones can tell"
)
REFUSED = {
    "RR": _FIRST,
    "HitRate": _FIRST,
    "Rprec": (
        "its cutoff is the number of liked items, which depends on those that were not judged"
    ),
    "bpref": (
        "it counts the judged disliked items above a liked one up to a cap, which is no sum over "
        "single items or pairs"
    ),
    "infAP": ("it is an estimate itself, which takes the judgments for a random sample of a pool"),
    "Judged": "it describes the judgments: with everything judged it is 1",
    "Residual": "it describes the judgments: with everything judged it is 0",
    "RBPresidual": "it describes the judgments: with everything judged it is 0",
}
"""Metrics without a weighted form, and why."""
_SUMS = frozenset({"P", "DCG", "RBP"})
_TARGETS = frozenset({"AUC", "ATOP"})
_RATIOS = frozenset({"Recall", "SR", "ADG", "ATOP"})
_OWN = re.compile(r"(anti-)?(ATOP|ADG)(?:@(\d+))?", re.IGNORECASE)


@dataclass(frozen=True)
class Estimand:
    """What is estimated: a metric, or one of `OWN`."""

    label: str
    metric: Metric

    @cached_property
    def is_sum(self) -> bool:
        """Whether it is a sum over judged items divided by what is known."""
        name, params = self.metric.name, self.params
        return name in _SUMS or (name == "nDCG" and params["ideal"] == "full")

    @property
    def needs_targets(self) -> bool:
        """Whether the number of targets must be known."""
        return self.metric.name in _TARGETS

    @cached_property
    def params(self) -> Params:
        """The settings, defaults included."""
        return {} if self.metric.name in OWN else self.metric.params

    @property
    def better(self) -> str:
        """`higher` or `lower`."""
        if self.metric.name in OWN:
            return "lower" if self.metric.anti else "higher"
        return self.metric.better

    @property
    def is_ratio(self) -> bool:
        """Whether it is a ratio of two sums over judgments: a common factor of weights cancels."""
        name, per_all = self.metric.name, self.params.get("per", "all") == "all"
        return name in _RATIOS and per_all

    @property
    def bias(self) -> str:
        """Why weights leave a bias that more users do not remove, and what to take; or nothing."""
        name, anti = self.metric.name, "anti-" * self.metric.anti
        if self.is_sum or self.is_ratio:
            return ""
        if name == "nDCG":
            full = replace(plain_dcg(self.metric), name="nDCG")
            full = replace(full, settings=(*full.settings, ("ideal", "full")))
            return (
                f"its ideal list is no sum over judgments; take {plain_dcg(self.metric)} or {full}"
            )
        if name == "HLU":
            return f"its ideal list is no sum over judgments; take {anti}ADG"
        if name == "F1":
            return f"it leaves out users without a liked judgment; take {anti}P and {anti}Recall"
        if self.params.get("per", "all") != "all":
            return f"its divisor is no sum over judgments; take {anti}{name} without per=…"
        return ""

    def uses_gain(self, view: View) -> bool:
        """Whether judgments add something that are not liked."""
        gained = self.metric.name in ("DCG", "nDCG")
        return gained and bool((view.gain[view.label != LIKED] > 0).any())

    def high(self, view: View, longest: int) -> float:
        """Return the largest value that it can have, with such gains in lists of such a length."""
        if self.metric.name in OWN:
            return 1.0
        if self.metric.name == "DCG":
            most = float(view.gain.max()) if view.gain.size else 0.0
            depth = min(longest, self.metric.whole_cutoff)
            return most * float(log_discount(depth, str(self.params["discount"])).sum())
        free = self.params.get("ideal") == "best"  # nDCL by the best order has no upper end
        return math.inf if free else self.metric.definition.high

    @property
    def key(self) -> tuple[object, ...]:
        """What estimands share that differ in cutoff only."""
        return self.metric.name, self.metric.settings, self.metric.anti


def estimands(metrics: str | Metric | Iterable[str | Metric]) -> dict[str, Estimand]:
    """Read what is to be estimated; refuse what has no weighted form, saying why.

    Examples
    --------
    >>> from unskew.unbiased.weighted_metrics import estimands
    >>> list(estimands(["P@10", "ADG@10", "ATOP"]))
    ['P@10', 'ADG@10', 'ATOP']
    """
    several = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not several:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    found: dict[str, Estimand] = {}
    for text in several:
        label = str(text)
        found[label] = Estimand(label, _read(text))
    return found


def _read(text: str | Metric) -> Metric:
    own = _OWN.fullmatch(text.strip()) if isinstance(text, str) else None
    if own is not None:
        cutoff = None if own[3] is None else int(own[3])
        if cutoff == 0:
            raise SettingError(f"metric {text!r}: a cutoff must be at least 1")
        return Metric(own[2].upper(), (), cutoff, own[1] is not None)
    metric = parse(text)
    why = REFUSED.get(metric.name)
    if metric.definition.of != "judged":
        why = "it looks at the items of the lists, not at judgments: evaluate gives it as it is"
    elif metric.condensed:
        why = "a condensed list holds judged items only, so its ranks change with what is judged"
    elif metric.params.get("bound", "none") != "none":
        why = "bounds need no propensities: see `bounds`"
    if why is not None:
        raise SettingError(f"{text} cannot be estimated by weights: {why}")
    return metric


def with_dcg(wanted: Mapping[str, Estimand]) -> dict[str, Estimand]:
    """Add the DCG of every nDCG that is asked for: normalising can change the order."""
    found = dict(wanted)
    for one in wanted.values():
        if one.metric.name == "nDCG":
            twin = plain_dcg(one.metric)
            if all(other.metric != twin for other in found.values()):
                found[str(twin)] = Estimand(str(twin), twin)
    return found


def plain_dcg(metric: Metric) -> Metric:
    """Return the DCG that an nDCG normalises."""
    kept = tuple(setting for setting in metric.settings if setting[0] == "discount")
    return replace(metric, name="DCG", settings=kept)


@dataclass(eq=False)
class Columns:
    """Judgments as estimands add them up: liked or gain, times weight. Made once for all blocks."""

    judged: Judged
    weight: F64 | None
    """Of each judgment; None where all count once."""
    _kept: dict[tuple[object, ...], F64] = field(default_factory=dict)

    def view(self, anti: bool) -> View:
        """Return the judgments, liked and disliked exchanged for an anti-metric."""
        return self.judged.view.anti if anti else self.judged.view

    def of(self, what: str, anti: bool, power: float = 0.0) -> F64:
        """Return `liked`, `judged`, `gain`, `squares` (of weights of the liked), `SR` or `HLU`."""
        key = (what, anti, power)
        if key not in self._kept:
            self._kept[key] = frozen(self._make(what, self.view(anti), power))
        return self._kept[key]

    def _make(self, what: str, view: View, power: float) -> F64:
        kinds: dict[str, Callable[[], F64]] = {
            "liked": lambda: view.liked,
            "squares": lambda: view.liked,
            "judged": lambda: view.judged,
            "gain": lambda: view.gain,
            "SR": lambda: view.liked * self._popular(power),
            "HLU": lambda: view.liked * view.gain * self._popular(power),
        }
        worth = kinds[what]()
        if self.weight is None:
            return worth
        result: F64 = worth * (self.weight**2 if what == "squares" else self.weight)
        return result

    def _popular(self, power: float) -> F64:
        counts = np.maximum(self.judged.positives, 1.0) ** power
        return counts[self.judged.judgments.item]

    @property
    def each(self) -> F64:
        """The weight of each judgment."""
        return frozen(np.ones(len(self.judged.judgments))) if self.weight is None else self.weight


@dataclass(eq=False)
class Seen:
    """A block of lists as one estimand's twin sees it: hits weighted, sums remembered."""

    block: Block
    columns: Columns
    anti: bool
    _kept: dict[tuple[object, ...], F64] = field(default_factory=dict)

    def found(self, what: str, discount: F64, name: str, cutoffs: I64, power: float = 0.0) -> F64:
        """Sum weight x discount over the hits above each cutoff; `name` is the discount's."""
        key = ("found", what, name, power, cutoffs.tobytes())
        if key not in self._kept:
            column = self.columns.of(what, self.anti, power)
            self._kept[key] = self.block.discounted(column, discount, cutoffs).copy()
        return self._kept[key]

    def liked(self, cutoffs: I64) -> F64:
        """Liked items above each cutoff."""
        return self.found("liked", _flat(self.block.judged), "flat", cutoffs)

    def judged(self, cutoffs: I64) -> F64:
        """Judged items above each cutoff."""
        return self.found("judged", _flat(self.block.judged), "flat", cutoffs)

    def all(self, what: str = "liked", power: float = 0.0) -> F64:
        """The same sum over all judgments of the user; it does not depend on the system."""
        key = ("all", what, self.anti, power, id(self.columns))
        shared = self.block.shared
        if key not in shared:
            shared[key] = self.block.sum_judged(self.columns.of(what, self.anti, power))
        return shared[key]

    def ideal(self, name: str, key: F64, gain: F64, discount: F64, cutoffs: I64) -> F64:
        """Sum gain x discount in the best order, a judgment filling as many ranks as its weight."""
        if self.columns.weight is None:
            return self.block.ideal(f"{name}-{self.anti}", key, gain, discount, cutoffs)
        memo = ("ideal", name, self.anti, cutoffs.tobytes(), id(self.columns))
        shared = self.block.shared
        if memo not in shared:
            judged = self.block.judged
            from unskew.unbiased import kernels

            shared[memo] = kernels.weighted_ideal(
                judged.lists.user,
                judged.judgments.start,
                key,
                gain,
                key is gain,
                self.columns.each,
                frozen(np.cumsum(discount)),
                cutoffs,
                self.block.lo,
                self.block.hi,
            )
        return shared[memo]

    def precisions(self, cutoffs: I64) -> F64:
        """Sum of the precision at each liked item, pairs weighted by the product."""
        from unskew.unbiased import kernels

        out = np.empty((cutoffs.size, self.block.hi - self.block.lo))
        hits, column = self.block.hits, self.columns.of("liked", self.anti)
        kernels.weighted_precisions(hits.start, hits.rank, hits.judgment, column, cutoffs, out)
        return out

    @property
    def targets(self) -> F64:
        """How many items could be ranked."""
        assert self.block.targets is not None
        size = self.block.targets.astype(np.float64)
        short = self.block.hits.depth > self.block.targets
        if short.any():
            row = int(np.argmax(short))
            owner = int(self.block.judged.lists.user[self.block.lo + row])
            raise DataError(
                f"the list of user {self.block.judged.judgments.users.values[owner]!r} holds "
                f"{int(self.block.hits.depth[row])} items, but there are only {int(size[row])} "
                f"targets; give the whole catalogue (items=…)"
            )
        return size


def _flat(judged: Judged) -> F64:
    return judged.once("estimate/flat", lambda: np.ones(judged.longest + 1))


def _ranks(judged: Judged) -> F64:
    return judged.once("estimate/ranks", lambda: np.arange(judged.longest + 1, dtype=np.float64))


def fraction(seen: Seen, metric: Metric, params: Params, cutoffs: I64) -> Fraction:
    """Return top and bottom of a metric at each cutoff; no bottom where it is a plain sum."""
    return _FORMS[metric.name](seen, params, cutoffs)


def _precision(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    block = seen.block
    room = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return seen.liked(cutoffs) / np.maximum(room, 1), None


def _fits(seen: Seen, params: Params, cutoffs: I64) -> F64:
    """Return what recall and average precision divide by."""
    block, liked = seen.block, seen.all()[None, :]
    if params["per"] == "all":
        return liked
    room = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    fits = room if params["per"] == "k" else np.minimum(liked, room)
    least = np.minimum(liked, 1.0) if params["per"] != "k" else 1.0
    return np.where(liked == 0, 0.0, np.maximum(fits, least))


def _recall(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    return seen.liked(cutoffs), _fits(seen, params, cutoffs)


def _f1(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    """2 P Recall / (P + Recall) = 2 found / (k + all)."""
    block, liked = seen.block, seen.all()[None, :]
    room = block.shown(cutoffs) if params["per"] == "list" else block.slots(cutoffs)
    return 2 * seen.liked(cutoffs), np.where(liked == 0, 0.0, np.maximum(room, 1) + liked)


def _dcg(seen: Seen, params: Params, cutoffs: I64) -> F64:
    kind = str(params["discount"])
    return seen.found("gain", log_discount(seen.block.judged.longest, kind), kind, cutoffs)


def _plain_dcg(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    return _dcg(seen, params, cutoffs), None


def _ndcg(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    kind, name = params["ideal"], str(params["discount"])
    view, judged = seen.columns.view(seen.anti), seen.block.judged
    top = _dcg(seen, params, cutoffs)
    if kind == "full":
        best = float(view.gain.max()) if view.gain.size else 0.0
        sums = np.array([sum_of_discounts(int(cutoff), name) for cutoff in cutoffs])
        return top / (best * sums[:, None]), None
    # A judgment may stand for more ranks than any list has: the table goes to the last item.
    discount = log_discount(max(judged.longest, len(judged.judgments.items)), name)
    key = view.gain
    if kind == "best":
        key = judged.once(
            ("estimate/signed", seen.anti),
            lambda: np.where(view.judged > 0, view.loss - view.gain, -np.inf),
        )
    cuts = np.array([WHOLE]) if kind == "uncut" else cutoffs
    bottom = seen.ideal(f"nDCG-{kind}-{name}", key, view.gain, discount, cuts)
    return np.where(bottom == 0, 0.0, top), np.broadcast_to(bottom, top.shape)


def _rbp(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    p = float(params["p"])
    table = geometric_discount(seen.block.judged.longest, 1.0 - p, p)
    return seen.found("liked", table, f"rbp{p}", cutoffs), None


def _stratified(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    gamma = float(params["gamma"])
    power = -gamma / (gamma + 1)
    found = seen.found("SR", _flat(seen.block.judged), "flat", cutoffs, power)
    return found, seen.all("SR", power)[None, :]


def _half_life(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    power = -1.0 if params["weight"] == "popularity" else 0.0
    halving = 0.5 ** (1.0 / (float(params["halflife"]) - 1.0))
    judged = seen.block.judged
    table = geometric_discount(judged.longest, 1.0, halving)
    longer = geometric_discount(max(judged.longest, len(judged.judgments.items)), 1.0, halving)
    name = f"HLU{params['halflife']}{params['weight']}"
    plain = Columns(judged, None)
    gain = judged.once(
        ("estimate/HLU", power, seen.anti), lambda: plain.of("HLU", seen.anti, power)
    )
    top = seen.found("HLU", table, name, cutoffs, power)
    return top, seen.ideal(name, gain, gain, longer, cutoffs)


def _average_precision(seen: Seen, params: Params, cutoffs: I64) -> Fraction:
    return seen.precisions(cutoffs), _fits(seen, params, cutoffs)


def _beyond(seen: Seen, cutoffs: I64) -> tuple[F64, F64]:
    """Return ranks below the liked items, added up, and the weight of all liked ones.

    Items outside the list stand together at its end.
    """
    targets, liked = seen.targets[None, :], seen.all()[None, :]
    found = seen.liked(cutoffs)
    ranks = seen.found("liked", _ranks(seen.block.judged), "rank", cutoffs)
    rest = np.maximum(targets - seen.block.shown(cutoffs) - 1, 0.0) / 2
    return (targets - rest) * found - ranks + liked * rest, liked


def _auc(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    """Pairs in the right order over all pairs; two liked items are a pair with both weights."""
    below, liked = _beyond(seen, cutoffs)
    twice = liked**2 - seen.all("squares")[None, :]  # ordered pairs of two liked items
    pairs = np.broadcast_to((seen.targets - 1) * liked - twice, below.shape)
    usable = pairs > 0
    return np.where(usable, below - twice / 2, 0.0), np.where(usable, pairs, 0.0)


def _atop(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    below, liked = _beyond(seen, cutoffs)
    places = (seen.targets - 1)[None, :]
    usable = (places > 0) & (liked > 0)
    return np.where(usable, below / np.maximum(places, 1), 0.0), np.where(usable, liked, 0.0)


def _adg(seen: Seen, params: Params, cutoffs: I64) -> Fraction:  # noqa: ARG001
    table = log_discount(seen.block.judged.longest, "log")
    return seen.found("liked", table, "log", cutoffs), seen.all()[None, :]


_FORMS: dict[str, Callable[[Seen, Params, I64], Fraction]] = {
    "P": _precision,
    "Recall": _recall,
    "F1": _f1,
    "DCG": _plain_dcg,
    "nDCG": _ndcg,
    "RBP": _rbp,
    "SR": _stratified,
    "HLU": _half_life,
    "AP": _average_precision,
    "AUC": _auc,
    "ATOP": _atop,
    "ADG": _adg,
}
"""How each metric is added up."""


def liked_hits(block: Block, view: View, deepest: int) -> tuple[I32, I32]:
    """Return rank and judgment of the liked hits down to a rank."""
    hits = block.hits
    mine = (view.label[hits.judgment] == LIKED) & (hits.rank <= deepest)
    return hits.rank[mine], hits.judgment[mine]
