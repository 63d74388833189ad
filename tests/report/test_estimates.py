"""`Estimates`: rows are selected, sorted, combined, printed, drawn, saved and read back."""

import json
import pickle

import jsonschema
import polars as pl
import pytest

import unskew as us
from unskew.report.columns import ESTIMATE, METRIC, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates

MEANS = Question(
    name="means",
    columns=(SYSTEM, METRIC, Column("hits", "count"), *ESTIMATE),
    method=Method(estimand="the mean over users", interval="t", level=0.95),
)
ROWS = [
    {"system": "a", "metric": "P@5", "hits": 3, "n": 9, "value": 0.3, "low": 0.1, "high": 0.5},
    {"system": "a", "metric": "anti-P@5", "hits": 1, "n": 9, "value": 0.2, "low": 0.1, "high": 0.3},
    {"system": "b", "metric": "P@5", "hits": 4, "n": 9, "value": 0.4, "low": 0.2, "high": 0.6},
    {"system": "b", "metric": "anti-P@5", "n": 0, "value": float("nan"), "note": "no user"},
]
PAIR = {"system": "a", "against": "b", "metric": "P@5", "hits": 3, "hits_against": 4, "n": 9}


def means(**settings):
    pair = {**PAIR, "value": -0.1, "se": 0.05, "low": -0.2, "high": 0.0}
    return Estimates.of_rows(
        MEANS,
        ROWS,
        explanation=("means over users",),
        notes=("a note",),
        parts={"pairs": Estimates.of_rows(MEANS.of_pairs(), [pair])},
        card={"better": {"P@5": "higher", "anti-P@5": "lower"}},
        **settings,
    )


def test_the_table_is_what_is_printed():
    text = str(means()).splitlines()
    assert text[0].split() == [
        "system", "metric", "hits", "users", "value", "se", "low", "high", "reason",
    ]  # fmt: skip
    assert text[4].split() == ["b", "anti-P@5", "–", "0", "–", "–", "–", "–", "no", "user"]
    assert text[5:] == ["means over users", "a note"]
    assert repr(means()) == str(means())
    many = Estimates.of_rows(MEANS, [ROWS[0]] * 30)
    assert repr(many).endswith("… 10 more rows: print it")
    assert means().table()["value"].to_list() == [0.3, 0.2, 0.4, None]
    assert "<table" in means()._repr_html_()
    assert "\\toprule" in means().to_latex()
    assert "means: 2 systems, 2 metrics" in means()._repr_html_()


def test_rows_are_selected_by_their_keys():
    es = means()
    assert es["P@5"].table()["system"].to_list() == ["a", "b"]
    assert es.where(system=["b"], metric="P@5").table().height == 1
    assert es.where().table().equals(es.table())
    row = es.row(system="b", metric="P@5")
    assert (row.value, row.low, row.n, row.facts) == (0.4, 0.2, 9, {"hits": 4})
    assert es.row(system="b") == row
    assert es.row(system="b", metric="anti-P@5").note == "no user"
    with pytest.raises(us.UnknownName, match="unknown system 'c'"):
        es.where(system="c")
    with pytest.raises(us.UnknownName, match="unknown key 'value'"):
        es.where(value=0.3)
    with pytest.raises(us.DataError, match="no row with"):
        Estimates.of_rows(MEANS, [ROWS[0], ROWS[3]]).row(system="b", metric="P@5")


def test_a_pair_the_other_way_round():
    pair = means().pair("a", "b", metric="P@5")
    assert (pair.value, pair.z) == (-0.1, -2.0)
    back = means().pair("b", "a")
    assert (back.value, back.se, back.low, back.high) == (0.1, 0.05, 0.0, 0.2)
    assert back.facts == {"hits": 4, "hits_against": 3}
    assert back.keys == {"system": "b", "against": "a", "metric": "P@5"}
    assert back.swapped() == pair
    with pytest.raises(us.DataError, match="no pair of a and a"):
        means().pair("a", "a")
    with pytest.raises(us.UnknownName, match="unknown system"):
        means().pair("a", "c")


def test_the_best_comes_first():
    es = means()
    assert es["P@5"].sort().table()["system"].to_list() == ["b", "a"]
    assert es["P@5"].best.keys["system"] == "b"
    assert es["anti-P@5"].best.keys["system"] == "a"
    assert es.sort("system", descending=True).table()["system"].to_list() == ["b", "b", "a", "a"]
    assert es.sort("hits").table()["hits"].to_list() == [1, 3, 4, None]


def test_answers_below_each_other():
    both = Estimates.stack({"one": means(), "two": means()}, "fold")
    assert both.keys == ["fold", "system", "metric"]
    assert both.where(fold="two").table().drop("fold").equals(means().table())
    assert both.notes == ("a note",)
    with pytest.raises(us.DataError, match="one question"):
        Estimates.stack({"one": means(), "two": means(level=0.9)}, "fold")
    with pytest.raises(us.SettingError, match="have a column"):
        Estimates.stack({"one": means()}, "system")
    with pytest.raises(us.SettingError, match="at least one"):
        Estimates.stack({}, "fold")


def test_wide_tables():
    wide = means().table(wide="metric")
    assert wide["system"].to_list() == ["a", "b"]
    assert wide["value_P@5"].to_list() == [0.3, 0.4]
    assert wide["n_anti-P@5"].to_list() == [9, 0]
    only = Question(name="x", columns=(SYSTEM, METRIC, ESTIMATE[1]), method=MEANS.method)
    single = Estimates.of_rows(only, [("a", "P@5", 0.5), ("a", "AP", 0.25)]).table(wide="metric")
    assert single.columns == ["system", "value_P@5", "value_AP"]


def test_what_is_saved_is_read_back_and_keeps_to_the_schema():
    es = means()
    content = json.loads(json.dumps(es.to_dict(), allow_nan=False))
    jsonschema.validate(content, MEANS.schema())
    broken = {**content, "rows": [{"system": "a"}]}
    assert not jsonschema.Draft202012Validator(MEANS.schema()).is_valid(broken)
    again = Estimates.from_dict(content)
    assert again.table().equals(es.table())
    assert again.to_dict() == es.to_dict()
    assert again.pair("b", "a").value == 0.1
    assert pickle.loads(pickle.dumps(es)).table().equals(es.table())


@pytest.mark.parametrize("kind", ["forest", "bars", "lines"])
def test_figures_by_kind(kind):
    columns = (SYSTEM, METRIC, Column("size", "axis"), *ESTIMATE)
    question = Question(name="means", columns=columns, method=MEANS.method, figure=kind)
    rows = [{**row, "size": size} for row in ROWS for size in (1.0, 2.0)]
    figure = Estimates.of_rows(question, rows).figure()
    assert figure.title == "P@5: means"
    assert figure.to_svg().startswith("<svg")
    assert len(figure.to_dict()["datasets"]["rows"]) == 4
    assert means().parts["pairs"].figure().to_dict()["datasets"]["rows"] == [
        {"system": "a − b", "value": -0.1, "low": -0.2, "high": 0.0}
    ]


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.DataError, match="rows have the columns"):
        Estimates(question=MEANS, rows=pl.DataFrame({"x": [1]}), method=MEANS.method)
    with pytest.raises(us.SettingError, match="no parts of their own"):
        Estimates.of_rows(MEANS, ROWS, parts={"again": means()})
    with pytest.raises(us.UnknownName, match="unknown kind 'text'"):
        Column("x", "text")
