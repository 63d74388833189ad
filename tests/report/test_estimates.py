"""`Estimates`: rows are selected, sorted, combined, printed, drawn, saved and read back."""

import json
import math
import pickle
from dataclasses import replace

import jsonschema
import polars as pl
import pytest

import unskew as us
from unskew.report.columns import (
    ESTIMATE,
    METRIC,
    QUANTITY,
    SIGNIFICANT,
    SYSTEM,
    TEST,
    Column,
    Drawing,
    Method,
    Question,
)
from unskew.report.columns import PAIR as PAIR_COLUMNS
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
        conclusion=("a is better",),
        parts={"pairs": Estimates.of_rows(MEANS.of_pairs(), [pair])},
        card={"better": {"P@5": "higher", "anti-P@5": "lower"}},
        **settings,
    )


def test_a_table_per_metric_is_printed():
    assert str(means()).splitlines() == [
        "P@5 (higher is better), 9 users",
        "system  hits   value            95% CI",
        "a          3  0.3000  [0.1000, 0.5000]",
        "b          4  0.4000  [0.2000, 0.6000]",
        "",
        "anti-P@5 (lower is better)",
        "system  hits  users   value            95% CI  reason",
        "a          1      9  0.2000  [0.1000, 0.3000]",
        "b          –      0       –                 –  no user",
        "",
        "95% CI: t, by user",
        "means over users",
        "a note",
        "a is better",
    ]
    assert repr(means()) == str(means())
    many = Estimates.of_rows(MEANS, [ROWS[0]] * 30)
    assert repr(many).endswith("… 10 more rows: print it")
    assert means().table()["value"].to_list() == [0.3, 0.2, 0.4, None]
    assert "<table" in means()._repr_html_()
    assert "\\toprule" in means().to_latex()
    assert "means: 2 systems, 2 metrics" in means()._repr_html_()


def test_quantities_stand_side_by_side_and_parts_below():
    question = Question(
        name="gaps",
        columns=(SYSTEM, QUANTITY, *ESTIMATE, *TEST, Column("worst", "names")),
        quantities=(
            Column("gap", "value", form="+"),
            Column("share", "value", "share of users", form="%"),
            Column("none", "value"),
        ),
        method=Method(estimand="gaps", interval="t", level=0.9, test="t test", correction="Holm"),
        display=("", "means"),
    )
    rows = [
        {"system": "a", "quantity": "gap", "value": 0.1, "low": -0.1, "high": 0.3, "n": 9},
        {"system": "a", "quantity": "share", "value": 0.5, "low": 0.25, "high": 0.75},
        {"system": "b", "quantity": "share", "value": 0.25, "worst": ["x", "y"]},
    ]
    rows[0] |= {"p": 0.01, "p_corrected": 0.02, "significant": True}
    es = Estimates.of_rows(question, rows, parts={"means": replace(means(), parts={})})
    assert str(es).splitlines()[:8] == [
        "gaps",
        "system  users      gap              90% CI  share of users          90% CI       p  worst",
        "a           9  +0.1000  [−0.1000, +0.3000]           50.0%  [25.0%, 75.0%]  0.0200  –",
        "b           –        –                   –           25.0%               –       –  x, y",
        "",
        "means",
        "system  metric    hits  users   value            95% CI  reason",
        "a       P@5          3      9  0.3000  [0.1000, 0.5000]",
    ]
    assert es.footer() == ["90% CI: t, by user", "p: t test, corrected by Holm"]


def test_metrics_that_nothing_else_tells_apart_share_a_table_and_a_figure():
    """What no row has is no column; numbers have the digits of the question."""
    share = Column("share", "axis", "share kept", form="%")
    columns = (METRIC, share, *ESTIMATE, SIGNIFICANT)
    question = Question(
        name="orders",
        columns=columns,
        method=Method(estimand="τ"),
        digits=2,
        figures=(Drawing("all", "lines"),),
    )
    rows = [
        {"metric": metric, "share": share, "value": 1 - share, "n": None}
        for metric in ("P@5", "AP")
        for share in (0.5, 1000.0)
    ]
    es = Estimates.of_rows(question, rows)
    assert str(es).splitlines() == [
        "metric  share kept    value",
        "P@5            50%     0.50",
        "          100,000%  −999.00",
        "AP             50%     0.50",
        "          100,000%  −999.00",
    ]
    assert es.to_latex(1).count("50\\% & 0.5") == 2
    figure = es.figure().to_dict()
    assert len(figure["datasets"]["rows"]) == 4
    assert figure["layer"][0]["encoding"]["x"]["title"] == "share kept"
    assert len(figure["layer"]) == 1  # no bands without intervals
    assert len(es.figure(metric="ap").to_dict()["datasets"]["rows"]) == 2
    assert es.where(share=1000).rows["value"].to_list() == [-999.0, -999.0]  # a whole number
    across = replace(es, question=replace(question, across="metric"))
    assert str(across).splitlines() == [
        "share kept      P@5       AP",
        "       50%     0.50     0.50",
        "  100,000%  −999.00  −999.00",
    ]


def test_the_values_of_a_key_side_by_side_in_a_table_per_metric():
    question = replace(MEANS, across="system", display=("", "none"))
    es = Estimates.of_rows(question, ROWS[:3])
    assert str(es).splitlines()[0] == "P@5, 9 users"
    assert str(es).splitlines()[2] == "0.3000 ± 0.2000  0.4000 ± 0.2000"
    assert str(es).splitlines()[4] == "anti-P@5, 9 users"


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


def test_what_is_the_same_either_way_round_keeps_its_sign():
    columns = (*PAIR_COLUMNS, Column("gap", "fact", form="+"), Column("value", "count", "needed"))
    question = Question(name="needed", columns=columns, method=MEANS.method)
    es = Estimates.of_rows(question, [("a", "b", 0.5, 7)])
    assert (es.pair("a", "b").value, es.pair("b", "a").value) == (7, 7)
    assert es.pair("b", "a").facts == {"gap": -0.5}


def test_pairs_of_quantities_are_turned_round():
    columns = (*PAIR_COLUMNS, QUANTITY, *ESTIMATE)
    quantities = (
        Column("better", "value", form="%"),
        Column("better_against", "value", form="%"),
        Column("tied", "value", form="%"),
        Column("net", "value", form="+%"),
    )
    question = Question(
        name="x", columns=columns, quantities=quantities, method=Method(estimand="x")
    )
    shares = {"better": 0.5, "better_against": 0.2, "tied": 0.3, "net": 0.3}
    es = Estimates.of_rows(
        question,
        [
            {"system": "a", "against": "b", "quantity": name, "value": share, "low": share - 0.1}
            for name, share in shares.items()
        ],
    )
    turned = {name: es.pair("b", "a", quantity=name) for name in shares}
    values = {name: row.value for name, row in turned.items()}
    assert values == {"better": 0.2, "better_against": 0.5, "tied": 0.3, "net": -0.3}
    assert turned["better"].low == 0.1
    assert turned["net"].high == pytest.approx(-0.2)
    assert turned["better"].keys == {"system": "b", "against": "a", "quantity": "better"}
    assert es.pair("b", "a") == turned["better"]
    with pytest.raises(us.UnknownName, match="unknown quantity"):
        es.pair("b", "a", quantity="none")
    printed = str(es).splitlines()[1].split()
    assert [text for text in printed if "%" in text] == ["50.0%", "20.0%", "30.0%", "+30.0%"]


def test_a_value_with_several_intervals_is_written_once():
    question = Question(
        name="x",
        columns=(SYSTEM, QUANTITY, *ESTIMATE),
        quantities=(
            Column("mean", "value"),
            Column("next", "interval", "a new one"),
            Column("inside", "value", hidden=True),
        ),
        method=Method(estimand="x", level=0.95),
    )
    ends = {"mean": (0.1, 0.3), "next": (0.0, 0.4), "inside": (0.2, 0.2)}
    rows = [
        {"system": "a", "quantity": name, "value": 0.2, "low": low, "high": high}
        for name, (low, high) in ends.items()
    ]
    assert str(Estimates.of_rows(question, rows)).splitlines()[:2] == [
        "system    mean            95% CI         a new one",
        "a       0.2000  [0.1000, 0.3000]  [0.0000, 0.4000]",
    ]


def test_values_of_a_key_are_columns():
    curve = Question(
        name="curve",
        columns=(SYSTEM, METRIC, Column("share", "axis", form="%"), *ESTIMATE),
        method=Method(estimand="x"),
        across="share",
    )
    shares = [number / 20 for number in range(1, 20)]
    rows = [
        {"system": system, "metric": "P@5", "share": share, "value": share * factor, "n": 9}
        for system, factor in (("a", 1), ("b", 2))
        for share in shares
    ]
    part = Estimates.of_rows(curve, rows, card={"better": {"P@5": "lower"}})
    es = replace(means(), question=replace(MEANS, display=("", "curve")), parts={"curve": part})
    table = es.display_tables()[1]
    assert table.title == "P@5: curve"
    assert table.to_text().splitlines()[1:] == [
        "system   5%        20%       35%       50%       65%       80%       95%",
        "a       *0.0500*  *0.2000*  *0.3500*  *0.5000*  *0.6500*  *0.8000*  *0.9500*",
        "b        0.1000    0.4000    0.7000    1.0000    1.3000    1.6000    1.9000",
    ]


def test_groups_have_numbers_of_users_of_their_own():
    question = Question(
        name="means", columns=(METRIC, Column("group", "key"), *ESTIMATE), method=MEANS.method
    )
    rows = [{"metric": "P@5", "group": group, "n": 9, "value": 0.5} for group in "xy"]
    assert str(Estimates.of_rows(question, rows)).splitlines()[:2] == [
        "P@5",
        "group  users   value",
    ]


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


@pytest.mark.parametrize(
    "kind", ["forest", "bars", "stacked", "points", "lines", "log lines", "steps"]
)
def test_figures_by_kind(kind):
    columns = (SYSTEM, METRIC, Column("size", "axis"), *ESTIMATE)
    question = Question(
        name="means", columns=columns, method=MEANS.method, figures=(Drawing("all", kind),)
    )
    rows = [{**row, "size": size} for row in ROWS for size in (1.0, 2.0)]
    figure = Estimates.of_rows(question, rows).figure("all", "p@5")
    assert figure.title == "P@5: means"
    assert figure.to_svg().startswith("<svg")
    assert len(figure.to_dict()["datasets"]["rows"]) == 4
    empty = Estimates.of_rows(question, [{**rows[0], "value": None}]).figure()
    assert empty.to_svg().startswith("<svg")
    with pytest.raises(us.UnknownName, match="unknown figure 'forest'"):
        Estimates.of_rows(question, rows).figure("forest")
    for nothing in ([], [{"system": "a", "metric": "P@5", "size": 1.0}]):
        with pytest.raises(us.DataError, match="no value to draw"):
            Estimates.of_rows(question, nothing).figure()


def test_a_figure_draws_one_quantity():
    question = Question(
        name="gaps",
        columns=(SYSTEM, METRIC, QUANTITY, *ESTIMATE),
        quantities=(Column("gap", "value", form="+"), Column("share", "value", "share of users")),
        method=MEANS.method,
        figures=(Drawing("gaps"), Drawing("shares", "bars", quantities=("share",))),
    )
    rows = [
        {"system": system, "metric": "P@5", "quantity": quantity, "value": value}
        for system in "ab"
        for quantity, value in (("gap", 0.1), ("share", 0.5))
    ]
    es = Estimates.of_rows(question, rows)
    assert es.figure("gaps").title == es.figure("shares").title == "P@5: gaps"
    assert [row["value"] for row in es.figure("shares").spec["datasets"]["rows"]] == [0.5, 0.5]
    shares = es.figure("gaps", quantity="share").to_dict()
    assert shares["layer"][0]["encoding"]["x"]["title"] == "P@5, share of users"
    again = Estimates.from_dict(json.loads(json.dumps(es.to_dict())))
    assert again.question.figures == question.figures


def test_ranks_join_what_does_not_differ():
    question = Question(
        name="ranks",
        columns=(SYSTEM, *ESTIMATE, Column("letters", "note")),
        method=MEANS.method,
        figures=(Drawing("ranks", "ranks"),),
    )
    rows = [
        {"system": "a", "value": 1.5, "low": 1.0, "high": 2.0, "letters": "aZ1"},
        {"system": "b", "value": 2.5, "low": 2.0, "high": 3.0, "letters": "Z1"},
    ]
    figure = Estimates.of_rows(question, rows).figure()
    drawn = [row for row in figure.spec["datasets"]["rows"] if "letter" in row]
    assert [(row["system"], row["letter"]) for row in drawn] == [
        ("a", "a"),
        ("a", "Z1"),
        ("b", "Z1"),
    ]
    assert len(figure.spec["hconcat"]) == 2
    assert figure.to_svg().startswith("<svg")


def test_figures_of_pairs():
    columns = (*MEANS.of_pairs().columns, SIGNIFICANT)
    drawings = (Drawing("values"), Drawing("pairs", "matrix"))
    question = replace(MEANS.of_pairs(), columns=columns, figures=drawings)
    rows = [{**PAIR, "value": -0.1, "low": -0.2, "high": 0.0, "significant": True}]
    es = Estimates.of_rows(question, rows)
    assert es.figure().to_dict()["datasets"]["rows"] == [
        {"system": "a − b", "value": -0.1, "low": -0.2, "high": 0.0, "name": "a − b",
         "verdict": "significant"}
    ]  # fmt: skip
    drawn = [
        (row["row"], row["column"], row["value"], row["verdict"])
        for row in es.figure("pairs").to_dict()["datasets"]["rows"]
    ]
    assert drawn == [("a", "b", -0.1, "row lower"), ("b", "a", 0.1, "row higher")]
    assert es.figure("pairs").to_svg().startswith("<svg")


def test_squares_of_what_is_the_same_both_ways_round():
    columns = (Column("design", "key"), Column("against_design", "key"), Column("value", "value"))
    question = Question(
        name="agreement", columns=columns, method=MEANS.method, figures=(Drawing("all", "matrix"),)
    )
    rows = [("a", "b", 0.5), ("a", "c", -0.25), ("b", "c", None)]
    figure = Estimates.of_rows(question, rows).figure()
    drawn = [
        (row["row"], row["column"], row["value"]) for row in figure.to_dict()["datasets"]["rows"]
    ]
    assert drawn == [("a", "b", 0.5), ("b", "a", 0.5), ("a", "c", -0.25), ("c", "a", -0.25)]
    assert "0.5000" in figure.to_svg()


def test_what_does_not_fit_is_refused():
    with pytest.raises(us.DataError, match="rows have the columns"):
        Estimates(question=MEANS, rows=pl.DataFrame({"x": [1]}), method=MEANS.method)
    with pytest.raises(us.SettingError, match="no parts of their own"):
        Estimates.of_rows(MEANS, ROWS, parts={"again": means()})
    with pytest.raises(us.UnknownName, match="unknown kind 'text'"):
        Column("x", "text")


def test_systems_stand_side_by_side():
    columns = (METRIC, Column("step", "key"), SYSTEM, *ESTIMATE)
    question = replace(MEANS, columns=columns, across="system")
    rows = [
        {**row, "step": step, "n": 9 - step}
        for step in (1, 2)
        for row in ROWS[:3:2]
        if (step, row["system"]) != (2, "b")
    ]
    es = Estimates.of_rows(question, rows, card={"better": {"P@5": "higher"}})
    assert str(es).splitlines()[:4] == [
        "P@5 (higher is better)",
        "step  users                a                b",
        "1         8  0.3000 ± 0.2000  0.4000 ± 0.2000",
        "2         7  0.3000 ± 0.2000                –",
    ]
    bare = tuple(replace(c, hidden=c.kind == "interval") for c in question.columns)
    plain = Estimates.of_rows(replace(question, columns=bare), rows[:2])
    assert str(plain).splitlines()[:3] == [
        "P@5, 8 users",
        "step       a       b",
        "1     0.3000  0.4000",
    ]


def test_both_ends_of_a_range_change_places():
    ends = (Column(f"{end}_single", "fact", form="+") for end in ("low", "high"))
    columns = (*MEANS.of_pairs().columns, *ends)
    row = {**PAIR, "value": 0.0, "low_single": -0.1, "high_single": 0.3}
    back = Estimates.of_rows(replace(MEANS.of_pairs(), columns=columns), [row]).pair("b", "a")
    assert (back.facts["low_single"], back.facts["high_single"]) == (-0.3, 0.1)
    assert str(back.value) == "0.0"
    assert back.estimate[0] == 0.0
    assert all(map(math.isnan, back.estimate[1:]))


def test_pairs_of_names_are_cells():
    columns = (METRIC, Column("fold", "key"), Column("against_fold", "key"), *ESTIMATE)
    question = Question(
        name="τ", columns=columns, method=MEANS.method, figures=(Drawing("tau", "matrix"),)
    )
    rows = [{"metric": "P@5", "fold": "1", "against_fold": fold, "value": 0.5} for fold in "23"]
    cells = [
        {"row": row, "column": column, "value": 0.5, "low": None, "high": None}
        for row, column in ("12", "21", "13", "31")
    ]
    with pytest.raises(us.DataError, match="no value to draw"):
        Estimates.of_rows(question, [{**rows[0], "value": None}]).figure()
    for part, count in ((rows, 4), (rows[:1], 2)):
        figure = Estimates.of_rows(question, part).figure()
        assert figure.to_dict()["datasets"]["rows"] == cells[:count]
        assert figure.to_svg().startswith("<svg")


def test_an_answer_is_a_page(tmp_path):
    question = replace(MEANS, figures=(Drawing(), Drawing("pairs", "forest", "pairs")))
    es = replace(means(), question=question)
    page = es.document("My page")
    assert [section.key for section in page.sections] == ["answer", "pairs", "method"]
    assert [len(section.blocks) for section in page.sections[:2]] == [4, 1]
    assert len([*page.figures()]) == 3
    us.report.save_report(es, tmp_path / "page.json")
    content = json.loads((tmp_path / "page.json").read_text())
    assert content["title"] == "means"
    assert content["answer"] == ["a is better"]
    assert Estimates.from_dict(content).to_dict() == es.to_dict()
    us.report.save_report(page, tmp_path / "page.html")
    assert "<h1>My page" in (tmp_path / "page.html").read_text()
