"""Every value that a library gave is reproduced, or its metric is listed with a reason.

The values were computed by the libraries themselves (`benchmarks/conventions`).
"""

import json
import math
from functools import cache

import pytest

from shared import ROOT
from shared.measured import laid_fixture
from unskew.conventions.libraries import all_libraries
from unskew.conventions.values import ConventionValues
from unskew.evaluation.compat import mean_of_row

FILES = sorted((ROOT / "tests" / "conventions" / "measured").glob("*.json"))


@cache
def content(path):
    return json.loads(path.read_text(encoding="utf-8"))


@cache
def values(fixture):
    return ConventionValues(laid_fixture(fixture), "run")


def matching(library, row):
    """Return the rows of the library's file that a measured value is of, with the cutoff."""
    return [
        (one, k)
        for one, k in library.named(row["name"])
        if (one.option, one.given) == (row["option"], row["given"]) and k == row["k"]
    ]


def problems(library, rows):
    for row in rows:
        known = matching(library, row)
        listed = [m for m in library.missing if m.covers(*_missing_facts(row))]
        where = f"{row['fixture']}: {row['name']} [{row['option']}] ({row['given']})"
        if not known:
            if not listed:
                yield f"{where}: no row"
            continue
        one, k = known[0]
        value = row["value"]
        expected = math.nan if value is None else value
        result = mean_of_row(values(row["fixture"]), one, k)
        both_undefined = math.isnan(result) and math.isnan(expected)
        if not (abs(result - expected) <= library.tolerance or both_undefined):
            yield f"{where}: {value}, not {result}"


def _missing_facts(row):
    return row["name"], row["k"], row["option"], row["given"]


def test_most_values_are_reproduced_to_nine_digits():
    exact = [one for one in all_libraries().values() if one.tolerance <= 1e-9]
    assert len(exact) >= len(all_libraries()) - 2
    assert max(one.tolerance for one in all_libraries().values()) <= 1e-6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_measured_values_are_reproduced(path):
    library = all_libraries()[path.stem].at(content(path)["version"])
    wrong = list(problems(library, content(path)["rows"]))
    assert wrong == [], f"{len(wrong)} of {len(content(path)['rows'])} values"
