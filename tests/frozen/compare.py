"""Compare two folders that save.py wrote: python tests/frozen/compare.py OLD NEW."""

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


def main(old, new):
    names = sorted({one.name for folder in (old, new) for one in folder.glob("*.json")})
    if not names:
        print("nothing to compare")
        return 1
    bad = 0
    for name in names:
        piece, here, there = name.removesuffix(".json"), old / name, new / name
        if not (here.exists() and there.exists()):
            print(f"{piece:28} only in {(old if here.exists() else new).name}")
            bad += 1
            continue
        if here.read_bytes() == there.read_bytes():
            wrong = here.read_text(encoding="utf-8").startswith("ERROR")
            print(f"{piece:28} same{' (an error)' if wrong else ''}")
            continue
        bad += 1
        print(f"{piece:28} differs")
        found = list(differences(read(here), read(there)))
        for path, before, after in found[:PLACES]:
            print(f"    {path}\n      old {short(before)}\n      new {short(after)}")
        if len(found) > PLACES:
            print(f"    … and {len(found) - PLACES} more places")
    print(f"{len(names)} pieces, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
