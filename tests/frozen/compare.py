"""Compare two folders that save.py wrote.

python tests/frozen/compare.py OLD NEW [--expect-missing NAME,NAME] [--numbers]

With --numbers, pieces whose keys or form have changed are held to their numbers: each fraction of
OLD must be in NEW, with its sign or the other, to 12 digits; the rest is listed.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import numpy as np

PLACES = 5
FRACTION = re.compile(r"-?\d+\.\d+(e-?\d+)?|-?\d+e-\d+")
"""save.py writes fractions as text, with every bit."""


def differences(old, new, path="$"):
    """Give the places where two values of JSON differ: path, old value, new value."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in new:
                yield f"{path}.{key}", old[key], "(missing)"
            elif key not in old:
                yield f"{path}.{key}", "(missing)", new[key]
            else:
                yield from differences(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}.length", len(old), len(new)
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from differences(one, other, f"{path}[{place}]")
    elif type(old) is not type(new) or repr(old) != repr(new):
        yield path, old, new


def fractions(value):
    """Give every number with decimals in a value of JSON, however deep, without its sign."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from fractions(one)
    elif isinstance(value, float) or (isinstance(value, str) and FRACTION.fullmatch(value)):
        yield abs(float(value))


def lost_numbers(old, new):
    """Return the fractions of the old value that the new one does not have, to 12 digits."""
    there = np.unique(np.array([*fractions(new)], float))
    wanted = np.unique(np.array([*fractions(old)], float))
    if not there.size:
        return wanted.tolist()
    index = np.searchsorted(there, wanted)
    near = np.minimum(
        np.abs(there[np.minimum(index, there.size - 1)] - wanted),
        np.abs(there[np.maximum(index - 1, 0)] - wanted),
    )
    return wanted[near > 1e-12 * np.maximum(wanted, 1e-300)].tolist()


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


def read(path):
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


def compare_numbers(old, new):
    """Return whether a piece has kept its numbers, and the lines that say what is lost."""
    before, after = read(old), read(new)
    if isinstance(before, str) or isinstance(after, str):
        return compare_files(old, new)
    lost, count = lost_numbers(before, after), len({*fractions(before)})
    if not lost:
        return True, [f"same {count:,} numbers"]
    return False, [f"{len(lost):,} of {count:,} numbers are not there: {lost[:PLACES]}"]


def compare_files(old, new):
    """Return whether two files have the same bytes, and the lines that say where they differ."""
    if old.read_bytes() == new.read_bytes():
        is_error = old.read_text(encoding="utf-8").startswith("ERROR")
        return True, [f"same{' (an error)' if is_error else ''}"]
    places = list(differences(read(old), read(new)))
    lines = ["differs"]
    for path, before, after in places[:PLACES]:
        lines.append(f"    {path}\n      old {short(before)}\n      new {short(after)}")
    if len(places) > PLACES:
        lines.append(f"    … and {len(places) - PLACES} more places")
    return False, lines


def compare_piece(old, new, left_behind, by_numbers):
    """Return the state of a piece, `same`, `differs` or `left behind`, and the lines to print."""
    if old.exists() and new.exists():
        is_same, lines = compare_files(old, new)
        if by_numbers and not is_same:
            is_same, lines = compare_numbers(old, new)
        return "same" if is_same else "differs", lines
    if old.exists() and old.stem.startswith(left_behind):
        return "left behind", ["left behind"]
    return "differs", [f"only in {(old if old.exists() else new).parent.name}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument(
        "--expect-missing",
        default="",
        help="beginnings of pieces, between commas, that NEW no longer has on purpose",
    )
    parser.add_argument("--numbers", action="store_true", help="hold changed forms to numbers")
    given = parser.parse_args()
    left_behind = tuple(filter(None, given.expect_missing.split(",")))
    names = sorted(
        {path.name for folder in (given.old, given.new) for path in folder.glob("*.json")}
    )
    if not names:
        print("nothing to compare")
        return 1
    states = []
    for name in names:
        state, lines = compare_piece(given.old / name, given.new / name, left_behind, given.numbers)
        states.append(state)
        print(f"{name.removesuffix('.json'):28} " + "\n".join(lines))
    counts = f"{states.count('differs')} differ, {states.count('left behind')} left behind"
    print(f"{len(names)} pieces, {counts}")
    return 1 if "differs" in states else 0


if __name__ == "__main__":
    sys.exit(main())
