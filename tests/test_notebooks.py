"""The notebooks of the documentation: they run, are small, and show what a new run shows."""

import ast
import importlib.util
import json
import re
import tempfile
from pathlib import Path

import pytest

from shared import ROOT
from shared.pages import DOCS, written_by

BOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
NAMES = {
    "better-or-only-popular",
    "gate-a-release",
    "judge-my-lists",
    "teach-with-worlds",
    "why-numbers-differ",
}


def cells(book, kind):
    return [one for one in json.loads(book.read_text())["cells"] if one["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def run(cell, names):
    """Run a cell; return what its last line gives, as a notebook would."""
    tree = ast.parse(source(cell))
    last = None
    if isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(last, "cell", "eval"), names)


def test_there_are_five_small_ones():
    assert {book.stem for book in BOOKS} == NAMES
    assert sum(book.stat().st_size for book in BOOKS) < 1_000_000


PLACES = (str(ROOT), str(Path.home()), tempfile.gettempdir(), "site-packages", "<ipython-input")
"""What would tell on which machine a notebook ran."""


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_structure(book):
    text = book.read_text()
    content = json.loads(text)
    assert 10 <= len(content["cells"]) <= 28
    assert source(content["cells"][0]).startswith("# ")
    code = cells(book, "code")
    assert [one["execution_count"] for one in code] == list(range(1, len(code) + 1))
    assert sum("assert " in source(one) for one in code) >= 1
    assert set(content["metadata"]) == {"kernelspec", "language_info"}
    assert all(one["metadata"] == {} for one in content["cells"])
    for mark in ("image/png", "iopub", *PLACES, "Traceback", "unskew-progress"):
        assert mark not in text, mark
    assert all(one.get("name") != "stderr" for cell in code for one in cell["outputs"])
    for cell in cells(book, "markdown"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", source(cell)):
            assert (book.parent / target).exists(), target


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_every_number_in_prose_is_in_code_or_output(book):
    shown = " ".join(json.dumps(one) for one in cells(book, "code"))
    for cell in cells(book, "markdown"):
        prose = re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)|^\s*#.*$", "", source(cell), flags=re.M)
        for number in re.findall(r"(?<![\w@.])\d+(?:\.\d+)?", prose):
            assert number in shown, number


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_code_runs_and_its_claims_hold(book, capsys):
    names = {}
    for cell in cells(book, "code"):
        value = run(cell, names)
        has_output = any("data" in one for one in cell["outputs"])
        assert has_output == (value is not None), source(cell)


def test_a_notebook_becomes_a_page():
    page = written_by("notebooks").page(json.loads(BOOKS[0].read_text()), BOOKS[0].stem)
    assert page.startswith("# ")
    assert '```{raw} html\n<div class="unskew-view">' in page
    assert "```python\nimport unskew as us" in page


def test_what_differs_from_run_to_run_is_left_out():
    bar = {"output_type": "display_data", "data": {"text/html": [""]}, "metadata": {}}
    chart = {"output_type": "display_data", "data": {"application/vnd.vegalite.v6+json": {}}}
    book = {
        "cells": [
            {"cell_type": "code", "metadata": {"execution": {}}, "outputs": [bar, chart]},
        ],
        "metadata": {"host": "x"},
    }
    (cell,) = written_by("notebooks").cleaned(book)["cells"]
    assert cell["metadata"] == {}
    assert cell["outputs"] == [{"output_type": "display_data", "data": {}, "metadata": {}}]
    assert "host" not in book["metadata"]


def test_what_is_printed_in_a_row_is_one_output():
    def printed(text, name="stdout"):
        return {"output_type": "stream", "name": name, "text": text}

    value = {"output_type": "execute_result", "data": {"text/plain": "3"}, "metadata": {}}
    outputs = [
        printed("a\n"),
        printed(["b\n", "c\n"]),
        printed("d\n", "stderr"),
        value,
        printed("e"),
    ]
    cell = {"cell_type": "code", "metadata": {}, "outputs": outputs}
    (whole,) = written_by("notebooks").cleaned({"cells": [cell], "metadata": {}})["cells"]
    assert whole["outputs"] == [
        printed(["a\n", "b\n", "c\n"]),
        printed("d\n", "stderr"),
        value,
        printed("e"),
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's packages
@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_new_kernel_shows_the_same(book):
    for package in ("nbclient", "ipykernel", "nbformat"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'unskew[notebooks]'")
    writer = written_by("notebooks")
    again = [one for one in writer.executed(book)["cells"] if one["cell_type"] == "code"]
    for old, new in zip(cells(book, "code"), again, strict=True):
        assert list(map(writer.text_of, old["outputs"])) == list(
            map(writer.text_of, new["outputs"])
        )
