"""Checks of a user's own metrics: the same that ours pass.

Each check raises AssertionError, and says what was expected, what came and on which data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

from unskew.arrays import F64
from unskew.checks import checked, choose
from unskew.data.relevance import Relevance
from unskew.errors import DataWarning, SettingError, UnskewError
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.gating.checks import HOLD, NOT_SETTLED, PROMOTE
from unskew.metrics.definition import REGISTRY, WHEN_CHANGED
from unskew.metrics.listwise import OneList, metric
from unskew.metrics.names import Metric, parse

CASES = 6
"""Made-up test sets that each check looks at."""
CUTOFF = 3
LIKED = 3
RULE = Relevance(liked=LIKED)


@dataclass(frozen=True)
class _MetricCase:
    """A made-up test set: some users with few, no or only liked judgments; lists of any length."""

    number: int
    ratings: Mapping[str, Sequence[float]]
    lists: Mapping[int, Sequence[int]]
    items: int = 9

    @classmethod
    def draw(cls, number: int) -> _MetricCase:
        rng = np.random.default_rng([number, 0])
        rows, lists = [], {}
        for user in range(7):
            judged = rng.permutation(cls.items)[: user if user < 4 else 6]
            low, high = ((0, 6), (LIKED, 6), (0, LIKED))[user % 3]
            rows += [(user, int(item), int(rng.integers(low, high))) for item in judged]
            lists[user] = rng.permutation(cls.items)[: rng.integers(1, cls.items)].tolist()
        columns = zip(*rows, strict=True)
        names = ("user", "item", "rating")
        return cls(number, dict(zip(names, map(list, columns), strict=True)), lists)

    @classmethod
    def all_judged(cls, number: int) -> _MetricCase:
        """Return a test set in which every item of every user is judged."""
        rng = np.random.default_rng([number, 1])
        rows = [(u, i, int(rng.integers(0, 6))) for u in range(4) for i in range(cls.items)]
        names = ("user", "item", "rating")
        ratings = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        return cls(number, ratings, {u: rng.permutation(cls.items).tolist() for u in range(4)})

    def of_one_user(self) -> _MetricCase:
        """Return the last user only, with liked and disliked judgments."""
        last = max(self.lists)
        rows = [row for row, user in enumerate(self.ratings["user"]) if user == last]
        ratings = {name: [column[row] for row in rows] for name, column in self.ratings.items()}
        return replace(self, ratings=ratings, lists={last: self.lists[last]})

    def mirrored(self) -> _MetricCase:
        """Return the same with liked and disliked exchanged."""
        mirrored = [5 - rating for rating in self.ratings["rating"]]
        return replace(self, ratings={**self.ratings, "rating": mirrored})

    def shuffled(self) -> _MetricCase:
        """Return the same rows and users in another order."""
        order = np.random.default_rng(self.number).permutation(len(self.ratings["user"]))
        ratings = {name: [column[i] for i in order] for name, column in self.ratings.items()}
        return replace(self, ratings=ratings, lists=dict(reversed(list(self.lists.items()))))

    def scores(self, metrics: Sequence[str], rule: Relevance = RULE, **settings: Any) -> Scores:
        """Evaluate the lists."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            train = any("train" in parse(label).definition.needs for label in metrics)
            return evaluate(
                self.ratings,
                {"s": self.lists},
                list(metrics),
                relevance=rule,
                train=self.ratings if train else None,
                items=range(self.items),
                users="all",
                **settings,
            )

    def values(self, label: str, rule: Relevance = RULE, **settings: Any) -> F64:
        """Return the value of each list; of a metric of a whole run, its one value."""
        scores = self.scores([label], rule, **settings)
        if parse(label).definition.of == "run":
            return np.array([scores.mean(label)["s"]])
        return np.array(scores.values("s", label))


def _cases() -> Iterator[_MetricCase]:
    return map(_MetricCase.draw, range(CASES))


def check_metric(
    subject: str | Metric | Callable[..., Any], plain: Callable[..., float] | None = None
) -> None:
    """Check that a metric keeps the contract that every metric of unskew keeps.

    On made-up test sets: values are NaN or within the stated range; the order of rows, the number
    of threads and the size of blocks change no bit; items beyond the cutoff do not matter; the
    metric of the anti-metric is the metric; the condensed metric is the metric where everything is
    judged; every setting is accepted; the name prints as it parses.

    Parameters
    ----------
    subject
        The name of a metric, with settings where wanted but without a cutoff; or a function, which
        need not be registered yet.
    plain
        A plain function of one list (see `unskew.metrics.metric`) that must give the same values:
        the twin of a compiled or blockwise metric.

    Raises
    ------
    AssertionError
        Saying what is wrong.

    Examples
    --------
    >>> from unskew.testing import check_metric
    >>> check_metric("AP", plain=lambda liked, n_liked: (
    ...     sum(liked[: at + 1].mean() for at in range(len(liked)) if liked[at]) / n_liked
    ...     if n_liked else float("nan")))
    """
    with _named(subject) as name:
        measure = parse(name)
        if measure.cutoff is not None:
            raise SettingError(f"{name}: give the metric without a cutoff; some are tried")
        if measure.params.get("mean") == "ratio":  # a ratio of sums has no value per list
            measure = replace(measure, settings=(*_without(measure, "mean"), ("mean", "users")))
        forms = [form for form in (measure, replace(measure, cutoff=CUTOFF)) if _is_allowed(form)]
        for form in forms:
            _check_name(form)
            _check_values(form)
            _check_bits(form)
            _check_anti(form)
            _check_condensed(form)
            if plain is not None:
                _check_twin(form, plain)
        if not measure.condensed:  # a condensed list is cut after it is condensed
            _check_cutoff(forms[-1])
        _check_settings(measure)


def _is_allowed(measure: Metric) -> bool:
    """Tell whether settings, cutoff and anti-twin go together."""
    return not measure.definition.check(measure.params, measure.anti, measure.cutoff)


def _without(measure: Metric, key: str) -> tuple[tuple[str, Any], ...]:
    return tuple(setting for setting in measure.settings if setting[0] != key)


@contextmanager
def _named(subject: object) -> Iterator[str]:
    """Give the name of a metric; register a function that is not yet, for a while."""
    if isinstance(subject, str | Metric):
        yield str(subject)
        return
    if not callable(subject):
        raise SettingError(f"a metric's name or a function is needed, got {subject!r}")
    for name, definition in REGISTRY.items():
        compute = definition.compute
        if (compute.function if isinstance(compute, OneList) else compute) is subject:
            yield name
            return
    with _for_a_while("checked", subject) as name:
        yield name


@contextmanager
def _for_a_while(name: str, function: Callable[..., Any]) -> Iterator[str]:
    metric(name, replace=True)(function)
    try:
        yield name
    finally:
        del REGISTRY[name]
        for forget in WHEN_CHANGED:
            forget()


def _check_same(
    label: object, case: _MetricCase, what: str, first: F64, second: F64, tolerance: float = 0.0
) -> None:
    if not np.allclose(first, second, rtol=0, atol=tolerance, equal_nan=True):
        row = int(np.argmax(~((first == second) | (np.isnan(first) & np.isnan(second)))))
        values = f"{first[row]!r} and {second[row]!r}"
        raise AssertionError(f"{label}: {what}; list {row} of case {case.number} has {values}")


def _check_name(measure: Metric) -> None:
    if parse(str(measure)) != measure:
        raise AssertionError(f"{measure}: the name is read as {parse(str(measure))}")


def _check_values(measure: Metric) -> None:
    low, high = measure.definition.low, measure.definition.high
    if measure.params.get("ideal") == "best":
        high = float("inf")
    for case in _cases():
        values = case.values(str(measure))
        if np.isinf(values).any():
            raise AssertionError(f"{measure}: an undefined value must be nan, not infinite")
        defined = values[~np.isnan(values)]
        wrong = defined[(defined < low - 1e-12) | (defined > high + 1e-12)]
        if wrong.size:
            raise AssertionError(
                f"{measure}: {wrong[0]!r} lies outside the range {low:g} to {high:g} of its "
                f"definition (low=…, high=…)"
            )


def _check_bits(measure: Metric) -> None:
    label = str(measure)
    for case in _cases():
        values = case.values(label, threads=1)
        again = {
            "another number of threads changes it": case.values(label, threads=3),
            "blocks of one list change it": case.values(label, threads=len(case.lists)),
            "the order of rows changes it": case.shuffled().values(label, threads=1),
            "it is not the same twice": case.values(label, threads=1),
        }
        for what, repeated in again.items():
            _check_same(measure, case, what, values, repeated)


def _check_cutoff(measure: Metric) -> None:
    for case in _cases():
        short = case.values(str(measure), depth=CUTOFF)
        what = f"items beyond rank {CUTOFF} change it"
        _check_same(measure, case, what, case.values(str(measure)), short)


def _check_anti(measure: Metric) -> None:
    """Exchanging liked and disliked in the data and in the metric gives the metric back."""
    if not measure.definition.anti or measure.definition.of != "judged":
        return
    twin = replace(measure, anti=not measure.anti)
    if not _is_allowed(twin):
        return  # a setting of one of the two only
    rule = replace(RULE, gain="binary", loss="binary")
    for case in map(_MetricCase.of_one_user, _cases()):  # of several, popularity is not exchanged
        values, twice = case.values(str(measure), rule), case.mirrored().values(str(twin), rule)
        _check_same(measure, case, "the anti-metric of exchanged judgments differs", values, twice)
    if measure.better != "neither" and measure.better == twin.better:
        raise AssertionError(f"{measure}: {measure.better} is better, and of {twin} too")


def _check_condensed(measure: Metric) -> None:
    if measure.definition.of != "judged" or measure.condensed:
        return
    for case in map(_MetricCase.all_judged, range(CASES)):
        condensed = replace(measure, condensed=True, settings=tuple(measure.params.items()))
        values, of_condensed = case.values(str(measure)), case.values(str(parse(str(condensed))))
        _check_same(
            measure, case, "condensed, it differs though all is judged", values, of_condensed
        )


def _check_settings(measure: Metric) -> None:
    """Evaluate with each word of each setting, and with a number inside each range."""
    case = _MetricCase.draw(0)
    for key, param in measure.definition.params.items():
        values = param.words or (param.default,)
        for value in values:
            form = replace(measure, settings=(*_without(measure, key), (key, value)), cutoff=CUTOFF)
            if not _is_allowed(form):
                continue
            try:
                case.scores([str(form)])
            except UnskewError as problem:
                raise AssertionError(f"{form}: {key}={value} is refused: {problem}") from problem


def _check_twin(measure: Metric, plain: Callable[..., float]) -> None:
    with _for_a_while("plain-twin", plain) as name:
        twin = str(Metric(name, (), measure.cutoff, measure.anti, measure.condensed))
        for case in _cases():
            values, repeated = case.values(str(measure)), case.values(twin)
            _check_same(measure, case, "its plain twin differs", values, repeated, 1e-12)


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
        allowed_verdicts = " or ".join(repr(name) for name in names)
        raise AssertionError(
            f"the verdict is {result.verdict!r}, not {allowed_verdicts}\n\n{result}"
        )
