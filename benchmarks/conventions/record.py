"""`Record`: what a library computed, written as one file; plain Python 3.8 and up, no packages."""

from __future__ import annotations

import json
import math
from pathlib import Path

from fixtures import FIXTURES

MEASURED = Path(__file__).resolve().parent.parent.parent / "tests" / "conventions" / "measured"


class Record:
    """The measured values of one library."""

    def __init__(self, library, key, version):
        self.heading = {"library": library, "key": key, "version": version}
        self.rows = []
        self.fixtures = {name: build() for name, build in FIXTURES.items()}

    def add(self, fixture, given, name, k, value, option="", per_user=None):
        """Add a value: what was handed over, the library's name and option, its number."""
        row = {
            "fixture": fixture,
            "given": given,
            "name": name,
            "option": option,
            "k": k,
            "value": number(value),
        }
        if per_user is not None and fixture == "small":
            row["per_user"] = {str(user): number(per_user[user]) for user in sorted(per_user)}
        self.rows.append(row)

    def save(self):
        """Write the file, a line per value."""
        MEASURED.mkdir(parents=True, exist_ok=True)
        places = [(r["fixture"], r["given"], r["name"], r["option"]) for r in self.rows]
        if len(set(places)) < len(places):
            raise ValueError("a value was measured twice")
        heading = json.dumps(self.heading, ensure_ascii=False)[:-1]
        lines = [json.dumps(row, ensure_ascii=False) for row in self.rows]
        path = MEASURED / f"{self.heading['key']}.json"
        path.write_text(f'{heading}, "rows": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
        print(f"{self.heading['library']} {self.heading['version']}: {len(lines)} values")


def number(value):
    """Return a plain float; none for NaN."""
    value = float(value)
    return None if math.isnan(value) else value
