"""Compact letter display: systems that share a letter do not differ significantly."""

from __future__ import annotations

import string
from collections.abc import Sequence

from unskew.arrays import Mask

_ALPHABET = string.ascii_lowercase + string.ascii_uppercase


def letter(number: int) -> str:
    """Return the name of a group: a … z, A … Z, then a1 … Z1 and so on.

    Examples
    --------
    >>> from unskew.stats.letters import letter
    >>> letter(0), letter(26), letter(51), letter(52)
    ('a', 'A', 'Z', 'a1')
    """
    round_, place = divmod(number, len(_ALPHABET))
    return _ALPHABET[place] + (str(round_) if round_ else "")


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
    >>> from unskew.stats.letters import letter_display
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
    kept: list[frozenset[int]] = []
    for group in distinct:
        if not any(group <= other for other in kept):
            kept.append(group)
    return kept
