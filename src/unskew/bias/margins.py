"""`margins`: every margin between two systems split into *judged more* and *liked more*."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from unskew.arrays import F64
from unskew.checks import checked
from unskew.errors import DataError, SettingError
from unskew.evaluation.scores import Scores
from unskew.report.columns import (
    PAIR,
    QUANTITY,
    SYSTEM,
    VALUE,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.stats.correlation import kendall

Shares = tuple[float, float]
"""Observed precision and anti-precision of a system."""
Values = Mapping[str, Shares]

MARGINS = Question(
    name="judged and liked",
    columns=(SYSTEM, QUANTITY, VALUE),
    quantities=(
        *(Column("P", "fact"), Column("anti-P", "fact")),
        *(Column("judged", "fact"), Column("liked", "fact")),
    ),
    method=Method(
        estimand="observed precision and anti-precision; the share of recommended items that are "
        "judged, and of these the share of liked ones"
    ),
    figures=(Drawing("margins", "forest", "pairs", ("judged", "liked")),),
)
PAIRS = Question(
    name="margins",
    columns=(*PAIR, QUANTITY, VALUE, Column("disagree", "flag"), Column("foretold", "flag")),
    quantities=(
        Column("precision", "fact", form="×"),
        Column("anti_precision", "fact", "anti-precision", form="×"),
        Column("judged", "fact", form="×"),
        Column("liked", "fact", form="×"),
        Column("disliked", "fact", form="×"),
        Column("judged_share", "fact", "of being judged", form="%"),
    ),
    method=Method(estimand="by how much more often the first system is judged, and liked"),
)
"""`disagree`: precision and anti-precision call different systems the better one; ties do not.
`foretold`: the lemma says so. `judged_share`: how much of the margin comes of being judged more,
|ln J_a/J_b| / (|ln J_a/J_b| + |ln c_a/c_b|)."""
SUMMARY = Question(
    name="all pairs",
    columns=(QUANTITY, VALUE),
    quantities=(
        Column("disagree", "fact", "P and anti-P disagree", form="%"),
        Column("judged_share", "fact", "median share of being judged", form="%"),
        Column("tau_judged", "fact", "τ of P with judged"),
        Column("tau_liked", "fact", "τ of P with liked"),
    ),
    method=Method(estimand="what margins of precision are made of, over all pairs of systems"),
)


@checked
def margins(scores: Scores | Values, k: int | None = None) -> Estimates:
    r"""Split every margin of observed precision into *judged more* and *liked more*.

    Exact: :math:`\hat P = J c` and :math:`anti\hat P = J (1 - c)`, with J the share of the k places
    that hold a judged item and c the share of those that are liked, pooled over all lists. So
    :math:`\hat P_a / \hat P_b = (J_a/J_b)(c_a/c_b)`. It is mena2021's Lemma 1 for systems instead
    of items: the two metrics disagree about two systems exactly if one is judged so much more often
    that liking cannot make up for it.

    Parameters
    ----------
    scores
        Scores with `P@k` and `anti-P@k` (or `Judged@k`), or a mapping from each system to its
        observed precision and anti-precision.
    k
        The cutoff; needed only where scores have several.

    Returns
    -------
    Estimates
        Rows by system, the best precision first, and quantity: `P`, `anti-P`, J (`judged`) and c
        (`liked`). The parts: `pairs`, the ratios of two systems (`precision`, `anti_precision`,
        `judged`, `liked`, `disliked`), how much of the margin comes of being judged
        (`judged_share`), and whether the metrics disagree; `summary`, of all pairs together.

    Examples
    --------
    >>> from unskew.bias.margins import margins
    >>> split = margins({"popular": (0.15, 0.05), "careful": (0.09, 0.01)})
    >>> pair = split.pair("popular", "careful", quantity="judged")
    >>> round(pair.value, 6), pair.facts["disagree"]
    (2.0, True)
    >>> round(split.pair("popular", "careful", quantity="judged_share").value, 2)
    0.79
    """
    notes: tuple[str, ...] = ()
    if isinstance(scores, Scores):
        values, k = _from_scores(scores, k)
        notes = (f"P@{k}, means over {_lists(scores)} ({scores.users})",)
    else:
        if k is not None:
            raise SettingError("k is for scores with several cutoffs: leave it out here")
        values = dict(scores)
    if len(values) < 2:
        raise DataError(f"margins need at least two systems, got {len(values)}")
    for name, shares in values.items():
        _check_shares(name, shares)
    systems = sorted(values, key=lambda name: values[name][0], reverse=True)
    rows = {name: (*values[name], sum(values[name]), _liked(values[name])) for name in systems}
    pairs = {(a, b): _ratios(values[a], values[b]) for a, b in combinations(systems, 2)}
    flags = {
        (a, b): {
            "disagree": _disagree(values[a], values[b]),
            "foretold": _foretold(values[a], values[b]),
        }
        for a, b in pairs
    }
    precision, _, judged, liked = np.array(list(rows.values())).T
    parts = [share for *_, share in pairs.values() if not math.isnan(share)]
    summary = {
        "disagree": float(np.mean([flag["disagree"] for flag in flags.values()])),
        "judged_share": float(np.median(parts)) if parts else math.nan,
        "tau_judged": _tau(precision, judged),
        "tau_liked": _tau(precision, liked),
    }
    return Estimates.of_rows(
        MARGINS,
        _by_quantity(MARGINS, {(name,): row for name, row in rows.items()}),
        explanation=(
            "P = judged x liked, anti-P = judged x (1 - liked)",
            f"τ_b of P with judged {summary['tau_judged']:.2f}, with liked "
            f"{summary['tau_liked']:.2f}; the median share of a margin that comes from being "
            f"judged is {summary['judged_share']:.0%}",
            f"P and anti-P disagree on {summary['disagree']:.0%} of {len(pairs):,} pairs of "
            "systems",
        ),
        notes=notes,
        parts={
            "pairs": Estimates.of_rows(PAIRS, _by_quantity(PAIRS, pairs, flags)),
            "summary": Estimates.of_rows(SUMMARY, _by_quantity(SUMMARY, {(): summary.values()})),
        },
        card={"k": k},
    )


def _by_quantity(
    question: Question,
    values: Mapping[Any, Iterable[float]],
    facts: Mapping[Any, Mapping[str, bool]] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each key and quantity."""
    return [
        {
            **dict(zip(("system", "against"), key, strict=False)),
            **(facts or {}).get(key, {}),
            "quantity": quantity.name,
            "value": value,
        }
        for key, numbers in values.items()
        for quantity, value in zip(question.quantities, numbers, strict=True)
    ]


def _ratios(of_a: Shares, of_b: Shares) -> tuple[float, ...]:
    """Return the quantities of a pair; NaN where there is nothing to divide by."""
    judged = _ratio(sum(of_a), sum(of_b))
    liked = _ratio(_liked(of_a), _liked(of_b))
    disliked = _ratio(_liked(of_a[::-1]), _liked(of_b[::-1]))
    share = math.nan
    if judged > 0 and liked > 0:
        first, second = abs(math.log(judged)), abs(math.log(liked))
        share = first / (first + second) if first + second > 0 else math.nan
    return (
        *(_ratio(a, b) for a, b in zip(of_a, of_b, strict=True)),
        judged,
        liked,
        disliked,
        share,
    )


def _disagree(of_a: Shares, of_b: Shares) -> bool:
    """Tell whether P̂ and antiP̂ call different systems the better one; ties do not."""
    return bool(np.sign(of_a[0] - of_b[0]) * np.sign(of_a[1] - of_b[1]) > 0)


def _foretold(of_a: Shares, of_b: Shares) -> bool:
    """Tell whether the lemma says so: with J_a > J_b, if J_a/J_b > max(c_b/c_a, (1-c_b)/(1-c_a)).

    That is, one system's items are judged so much more often that its liking can neither make up
    for it nor be made up for.
    """
    # In fractions, which do not round: equal precision must not look like more of it.
    (p_a, n_a), (p_b, n_b) = ([Fraction(x) for x in shares] for shares in (of_a, of_b))
    if p_a + n_a < p_b + n_b:
        (p_a, n_a), (p_b, n_b) = (p_b, n_b), (p_a, n_a)
    j_a, j_b = p_a + n_a, p_b + n_b
    if j_a == j_b or p_a == 0 or n_a == 0:  # nothing is above an infinite limit
        return False
    if j_b == 0:
        return True
    return j_a / j_b > max(p_b / j_b / (p_a / j_a), n_b / j_b / (n_a / j_a))


def _from_scores(scores: Scores, k: int | None) -> tuple[dict[str, Shares], int]:
    labels = {str(metric): label for label, metric in scores.metrics.items()}
    cutoffs = [int(m[1]) for name in labels if (m := re.fullmatch(r"P@(\d+)", name))]
    usable = [k for k in cutoffs if f"anti-P@{k}" in labels or f"Judged@{k}" in labels]
    if k is None and len(usable) > 1:
        raise SettingError(f"scores have several cutoffs ({_named(usable)}): choose one with k=…")
    if k is None and usable:
        k = usable[0]
    if k is None or k not in usable:
        cutoff = "k" if k is None else k
        raise SettingError(
            f"margins need P@{cutoff} and anti-P@{cutoff} (or Judged@{cutoff}); the scores have "
            f"{_named(scores.order)}: evaluate with these metrics too"
        )
    means = scores.averages(undefined="zero", over="lists")
    values = {}
    for system, row in means.items():
        precision = row[labels[f"P@{k}"]].value
        if f"anti-P@{k}" in labels:
            anti = row[labels[f"anti-P@{k}"]].value
        else:  # rounding must not make it negative
            anti = max(row[labels[f"Judged@{k}"]].value - precision, 0.0)
        values[system] = (precision, anti)
    return values, k


def _lists(scores: Scores) -> str:
    counts = sorted(
        {m.users for row in scores.averages(over="lists").values() for m in row.values()}
    )
    return f"{' or '.join(f'{count:,}' for count in counts)} lists"


def _check_shares(name: str, shares: Shares) -> None:
    if len(shares) != 2 or not all(math.isfinite(value) and value >= 0 for value in shares):
        raise DataError(f"{name}: precision and anti-precision must be at least 0, got {shares}")
    if sum(shares) > 1 + 1e-9:
        raise DataError(
            f"{name}: precision {shares[0]:g} and anti-precision {shares[1]:g} add up to more "
            "than 1"
        )


def _named(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names) or "none"


def _liked(shares: tuple[float, ...]) -> float:
    """Return c, the share of judged items that are liked; NaN where none is judged."""
    return shares[0] / sum(shares) if sum(shares) > 0 else math.nan


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.nan


def _tau(a: F64, b: F64) -> float:
    """Return Kendall's τ_b of two columns of the systems, of those that have both."""
    is_finite = ~np.isnan(a) & ~np.isnan(b)
    return kendall(a[is_finite], b[is_finite]) if is_finite.sum() > 1 else math.nan
