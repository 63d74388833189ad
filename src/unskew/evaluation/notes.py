"""Notes of several scores as one list: what systems, designs and splits share stands once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest

from unskew.evaluation.scores import Scores

# A number that stands alone: not a part of a name such as P@10 or fold-2.csv.
_COUNT = re.compile(r"(?<!\S)\d+(?:,\d{3})*(?=[\s;,:)]|$)")
_PLURAL_VERBS = {"is": "are", "has": "have", "does": "do", "was": "were"}

_Key = tuple[str, str, int]
"""The words of a note, its system, and which of several such notes of one result it is."""


def notes_of(scores: Mapping[str, Sequence[Scores]]) -> list[str]:
    """Return the notes of scores under several designs, one or more splits each: each note once.

    A note that several systems share names them all, one that is not true of every design names
    its designs, and a count that differs between designs or splits becomes a range.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import unskew as us
    >>> from unskew.evaluation.notes import notes_of
    >>> test = {"user": [1, 2], "item": [10, 30], "rating": [5, 4]}
    >>> one = us.evaluate(test, {"a": {1: [10]}, "b": {1: [30]}}, "P@1", liked=4)
    >>> notes_of({"first": [replace(one, notes=("a: 1 user", "b: 1 user"))],
    ...           "second": [replace(one, notes=("a: 2 lists",)),
    ...                      replace(one, notes=("a: 4 lists",))]})
    ['every system: 1 user (first)', 'a: 2 to 4 lists (second)']
    """
    counts: dict[_Key, list[tuple[str, str, list[str]]]] = {}
    for design, parts in scores.items():
        for part in parts:
            for key, pattern, numbers in _patterns(part):
                counts.setdefault(key, []).append((design, pattern, numbers))
    systems: dict[str, list[str]] = {}
    for (_, system, _), seen in counts.items():
        ranges = [_range(column) for column in zip(*(numbers for *_, numbers in seen), strict=True)]
        # Of "1 user has" and "3 users have" the one with the larger count: "1 to 3 users have".
        pattern = seen[0][1]
        if len({words for _, words, _ in seen}) > 1:
            _, pattern, _ = max(seen, key=lambda note: sum(map(_number, note[2])))
        words = _COUNT.split(pattern)
        text = "".join(chain(*zip_longest(words, ranges, fillvalue="")))
        where = _where([design for design, *_ in seen], scores)
        systems.setdefault(text + where, []).append(system)
    everyone = {name for parts in scores.values() for part in parts for name in part.systems}
    return [_prefixed(text, names, everyone) for text, names in systems.items()]


def _patterns(part: Scores) -> Iterator[tuple[_Key, str, list[str]]]:
    """Yield the key of every note, the note with 0 for its counts, and its counts."""
    before: Counter[tuple[str, str]] = Counter()
    for note in dict.fromkeys(part.notes):
        system, colon, text = note.partition(": ")
        if not colon or system not in part.systems:
            system, text = "", note
        pattern = _COUNT.sub("0", text)
        stem = _stem(pattern)
        yield (stem, system, before[stem, system]), pattern, _COUNT.findall(text)
        before[stem, system] += 1


@lru_cache(maxsize=256)
def _stem(pattern: str) -> str:
    """Return a note in which singular and plural are the same."""
    words = [_PLURAL_VERBS.get(word, word.rstrip("s")) for word in pattern.split()]
    return " ".join(word for word in words if word not in ("a", "an"))


def _number(count: str) -> int:
    return int(count.replace(",", ""))


def _where(seen: Sequence[str], scores: Mapping[str, Sequence[Scores]]) -> str:
    """Return the designs of which something was seen, in brackets; nothing for all of them."""
    times = Counter(seen)
    names = [
        design
        if times[design] == len(parts)
        else f"{design} in {times[design]} of {len(parts)} splits"
        for design, parts in scores.items()
        if times[design]
    ]
    return "" if names == list(scores) else f" ({', '.join(names).strip()})"


def _range(counts: Iterable[str]) -> str:
    """Return a count, or the least and the most of several."""
    distinct = set(counts)
    if len(distinct) == 1:
        return distinct.pop()
    return f"{min(distinct, key=_number)} to {max(distinct, key=_number)}"


def _prefixed(text: str, systems: Sequence[str], everyone: set[str]) -> str:
    if "" in systems:
        return text
    is_everyone = len(everyone) > 1 and everyone <= set(systems)
    return f"{'every system' if is_everyone else ', '.join(systems)}: {text}"
