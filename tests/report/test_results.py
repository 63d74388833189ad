"""One base shows every result: as text, in notebooks, as tables, and as plain values."""

import importlib
import io
import json
import pkgutil
import sys
from dataclasses import dataclass

import polars as pl
import pytest

import unskew
from unskew.errors import UnskewError
from unskew.report.result import Result
from unskew.report.tables import Table

INHERITED = (
    "__repr__",
    "_repr_html_",
    "to_dict",
    "to_pandas",
    "to_latex",
    "to_markdown",
)
"""What a result leaves to the base."""


@dataclass(frozen=True, eq=False)
class Heights(Result):
    """A result of two rows."""

    rows: tuple[tuple[str, float], ...] = (("a<b", 1.5), ("=c", float("nan")))
    notes: tuple[str, ...] = ("one <i>note</i>",)

    def table(self):
        return pl.DataFrame(self.rows, ["name", "height"], orient="row")

    def _explanation(self):
        return ["measured twice"]

    def _summary(self):
        return f"{len(self.rows)} people"


def everything():
    """Return all result classes of the library."""
    for module in pkgutil.walk_packages(unskew.__path__, "unskew."):
        if "__main__" not in module.name and "kernels" not in module.name:
            importlib.import_module(module.name)
    waiting, classes = [Result], set()
    while waiting:
        new = {one for one in waiting.pop().__subclasses__() if one.__module__ != __name__}
        waiting += new
        classes |= new
    return classes


def test_a_result_says_what_it_is_and_inherits_the_rest():
    result = Heights()
    assert repr(result) == "Heights(2 people)"
    assert str(result).splitlines() == [
        "name  height",
        "a<b   1.5000",
        "=c         –",
        "measured twice",
        "one <i>note</i>",
    ]
    assert result.to_dict() == {
        "rows": [{"name": "a<b", "height": 1.5}, {"name": "=c", "height": None}],
        "notes": ["measured twice", "one <i>note</i>"],
    }
    page = result._repr_html_()
    assert "a&lt;b" in page
    assert "<i>" not in page
    assert "a$<$b & 1.50" in result.to_latex(2)
    assert "| a\\<b | 1.5000 |" in result.to_markdown()
    assert result.to_polars().equals(result.table())


def test_a_missing_pandas_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UnskewError, match=r"needs the package pandas: pip install pandas"):
        Heights().to_pandas()


def test_pandas_gets_the_same_values():
    pytest.importorskip("pandas")
    frame = Heights().to_pandas()
    assert list(frame.columns) == ["name", "height"]
    assert frame["height"][0] == 1.5


# What is pasted into a paper stands in an environment with a caption and a label.
OF_THEIR_OWN = {
    "Estimates": {"__repr__", "to_latex"},  # the table itself
    "Gate": {"to_markdown"},  # for a pull request: the verdict first, and the chart
}


def test_every_result_class_leaves_its_views_to_the_base():
    classes = everything()
    assert len(classes) > 12
    for one in classes:
        own = {name for name in INHERITED if getattr(one, name) is not getattr(Result, name)}
        assert own <= OF_THEIR_OWN.get(one.__name__, set()), (one, own)


TABLE = Table.of_rows(
    ["system", "x", "x"], [["=a|b", 0.5, 1234.0], ["c\n", None, -2.0]], title="<t>", strong=[(0, 1)]
)


def test_one_table_in_every_format():
    assert TABLE.to_text().splitlines() == [
        "<t>",
        "system       x           x",
        "=a|b    0.5000  1,234.0000",
        "c\\n          –     −2.0000",
    ]
    assert TABLE.to_markdown().splitlines()[:3] == [
        "**\\<t\\>**",
        "",
        "| system | x | x |",
    ]
    assert "| =a\\|b | **0.5000** |" in TABLE.to_markdown()
    assert "=a\\textbar{}b & \\textbf{0.5000} & 1,234.0000 \\\\" in TABLE.to_latex()
    assert TABLE.to_latex().startswith("% <t>\n\\begin{tabular}{lrr}")
    assert "<b>0.5000</b>" in TABLE.to_html()
    assert "&lt;t&gt;" in TABLE.to_html()
    single = Table("", pl.DataFrame({"name": ["=a", "b"], "value": [0.123456789, None]}))
    assert single.to_csv().splitlines() == ["name,value", "'=a,0.123456789", "b,"]
    assert json.loads(single.to_json())[1] == {"name": "b", "value": None}


def test_a_table_in_the_terminal():
    from rich.console import Console

    console = Console(width=60, record=True, file=io.StringIO())
    console.print(TABLE.to_rich())
    text = console.export_text()
    assert "1,234.0000" in text
    assert "<t>" in text
