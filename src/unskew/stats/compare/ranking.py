"""Systems in order of their means, each compared with the best one or with a reference."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import Mask
from unskew.report.columns import (
    DIFFERENCE,
    METRIC,
    SIGNIFICANT,
    SYSTEM,
    USERS,
    Column,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates

RANKING = Question(
    name="ranking",
    columns=(
        *(METRIC, Column("rank", "count", "#"), SYSTEM, USERS, Column("mean", "fact")),
        *(Column("value", "value", "difference", form="+"), *DIFFERENCE[1:], P, SIGNIFICANT),
        *(Column("letters", "note"), Column("verdict", "note")),
    ),
    method=Method(estimand="the mean of a system, and its difference to the best"),
)


def ranking_of(pairs: Estimates, means: Mapping[str, Mapping[str, float]]) -> Estimates:
    """Return the systems of each metric best first, each compared with the best or the reference.

    `value`, `low`, `high` are the system less the best (the reference), `p` is corrected. Systems
    that share one of the `letters` do not differ significantly; with a reference there are no
    other pairs, hence no letters, and `verdict` tells better from worse instead.

    Parameters
    ----------
    pairs
        What `compare` found: a row per metric and pair.
    means
        By metric: the mean of each system.
    """
    rows = [row for metric in means for row in _of_metric(pairs, metric, means[metric])]
    question = replace(RANKING, name=f"differences to {pairs.card['against'] or 'the best'}")
    return Estimates.of_rows(question, rows, method=pairs.method, card=pairs.card)


def _of_metric(pairs: Estimates, metric: str, means: Mapping[str, float]) -> list[dict[str, Any]]:
    better, against = pairs.card["better"][metric], pairs.card["against"]
    sign = 1 if better == "lower" else -1
    order = sorted(means, key=lambda system: sign * means[system])
    base = against or order[0]
    tested = pairs.where(metric=metric).rows.select("system", "against", "significant").rows()
    letters = [""] * len(order) if against else letters_of(tested, order)
    rows = []
    for index, system in enumerate(order):
        row = {"metric": metric, "rank": index + 1, "system": system, "mean": means[system]}
        row |= {"n": pairs.card["users"][metric], "letters": letters[index]}
        if system != base:
            pair = pairs.pair(system, base, metric=metric)
            row |= {"value": pair.value, "low": pair.low, "high": pair.high}
            row |= {"p": pair.p_corrected, "significant": pair.facts["significant"]}
        if against:
            row["verdict"] = "reference" if system == base else _verdict(row, better)
        rows.append(row)
    return rows


def letters_of(pairs: Iterable[tuple[str, str, bool | None]], order: Sequence[str]) -> list[str]:
    """Return the letters of systems in their order.

    Parameters
    ----------
    pairs
        Two systems each, and whether they differ significantly.
    order
        The systems, best first.
    """
    index = {system: number for number, system in enumerate(order)}
    differ = np.zeros((len(order), len(order)), np.bool_)
    for a, b, is_significant in pairs:
        differ[index[a], index[b]] = differ[index[b], index[a]] = bool(is_significant)
    return letter_display(differ)


def _verdict(row: Mapping[str, Any], better: str) -> str:
    if not row["significant"]:
        return ""
    if better == "neither":
        return "differs"
    return "better" if (row["value"] > 0) == (better == "higher") else "worse"


def means_of(pairs: Estimates, metric: str) -> dict[str, float]:
    """Return the mean of each system, the best first, of what `compare` found."""
    rows = pairs.parts["ranking"].where(metric=metric).rows
    return dict(zip(rows["system"].to_list(), rows["mean"].to_list(), strict=True))


_ALPHABET = string.ascii_lowercase + string.ascii_uppercase


def letter(number: int) -> str:
    """Return the name of a group: a … z, A … Z, then a1 … Z1 and so on.

    Examples
    --------
    >>> from unskew.stats.compare.ranking import letter
    >>> letter(0), letter(26), letter(51), letter(52)
    ('a', 'A', 'Z', 'a1')
    """
    round_, index = divmod(number, len(_ALPHABET))
    return _ALPHABET[index] + (str(round_) if round_ else "")


def letter_display(differ: Mask) -> list[str]:
    """Return each system's letters, systems best first.

    Two systems share a letter if and only if they do not differ. Insert and absorb (Piepho 2004):
    begin with one group of all; split every group that holds a pair that differs; drop groups
    within others.

    Parameters
    ----------
    differ
        Symmetric, systems x systems.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.stats.compare.ranking import letter_display
    >>> letter_display(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], bool))
    ['a', 'ab', 'b']
    """
    systems = differ.shape[0]
    groups: list[frozenset[int]] = [frozenset(range(systems))]
    for i in range(systems):
        for j in range(i + 1, systems):
            if differ[i, j]:
                groups = _absorb(_split(groups, i, j))
    groups.sort(key=sorted)
    return [
        "".join(letter(g) for g, group in enumerate(groups) if s in group) for s in range(systems)
    ]


def _split(groups: Sequence[frozenset[int]], i: int, j: int) -> list[frozenset[int]]:
    parts = []
    for group in groups:
        if i in group and j in group:
            parts += [group - {j}, group - {i}]
        else:
            parts.append(group)
    return parts


def _absorb(groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    distinct = sorted(set(groups), key=len, reverse=True)
    maximal: list[frozenset[int]] = []
    for group in distinct:
        if not any(group <= larger for larger in maximal):
            maximal.append(group)
    return maximal
