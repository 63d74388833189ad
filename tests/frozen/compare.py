"""Compare two folders that save.py wrote.

python tests/frozen/compare.py OLD NEW [--expect-missing NAME,NAME]
"""

import argparse
import json
import sys
from pathlib import Path

PLACES = 5


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


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else f"{text[:160]}…"


def read(path):
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


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


def compare_piece(old, new, left_behind):
    """Return the state of a piece, `same`, `differs` or `left behind`, and the lines to print."""
    if old.exists() and new.exists():
        is_same, lines = compare_files(old, new)
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
        state, lines = compare_piece(given.old / name, given.new / name, left_behind)
        states.append(state)
        print(f"{name.removesuffix('.json'):28} " + "\n".join(lines))
    counts = f"{states.count('differs')} differ, {states.count('left behind')} left behind"
    print(f"{len(names)} pieces, {counts}")
    return 1 if "differs" in states else 0


if __name__ == "__main__":
    sys.exit(main())
