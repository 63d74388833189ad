"""Text of CSV files: no cell is a formula of a spreadsheet, and every id is read back as it was."""

import csv
import re

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

import unskew as us
from shared.commands import invoke
from shared.examples import examples
from unskew.data.read.tables import read_table
from unskew.engine.cells import escape_cell, escaped, unescaped
from unskew.engine.files import write_table

FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1+1",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "'=1",
    "''@x",
    '=,"\nx',
]
DANGEROUS = re.compile(r"[=+\-@\t\r]")

# Blanks around an id are removed when it is read, a NUL tells that a file is no text.
body = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"])
    | st.sampled_from("'=+-@,;\"|"),
    min_size=1,
    max_size=6,
)
prefix = st.sampled_from(["", "=", "+", "-", "@", "\t", "\r", "'", "''", "'=", "'-", "\t@"])
text_id = st.tuples(prefix, body, st.sampled_from(["", "\nx", " x", "\rx"])).map("".join)
# One id that is no number keeps a column text: else 1 and -5 are read as numbers.
text_ids = st.lists(text_id, min_size=1, max_size=8, unique=True).map(lambda ids: ["name", *ids])
several = examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])


def cells(path):
    with path.open(encoding="utf-8", newline="") as file:
        return [cell for row in csv.reader(file) for cell in row]


def assert_no_formulas(path):
    """As a spreadsheet sees the file: only numbers may begin with a sign."""
    for cell in cells(path):
        assert not DANGEROUS.match(cell) or re.fullmatch(r"[+-][0-9.e+-]+", cell), cell


@several
@given(ids=text_ids.map(lambda ids: list(dict.fromkeys(ids))))
@example(ids=["name", *FORMULAS])
@example(ids=["name", "-5", "+5", "'-5", "1e5"])
def test_every_id_comes_back_as_it_was(ids, tmp_path):
    run = us.read_run(dict.fromkeys(ids, ids))
    run.to_csv(tmp_path / "run.csv")
    assert_no_formulas(tmp_path / "run.csv")
    again = us.read_run(tmp_path / "run.csv")
    assert again.to_polars().equals(run.to_polars())

    columns = {"user": ids, "item": ids, "rating": [-5.0] * len(ids), "=tag": ids}
    ratings = us.read_ratings(columns, tags=["=tag"])
    ratings.to_csv(tmp_path / "ratings.csv")
    assert_no_formulas(tmp_path / "ratings.csv")
    read = us.read_ratings(tmp_path / "ratings.csv", tags=["=tag"])
    assert read.to_polars().equals(ratings.to_polars())


@several
@given(text=st.lists(st.text(max_size=8), min_size=1))
def test_escaping_can_be_undone_and_leaves_no_formula(text):
    frame = pl.DataFrame({"text": text, "+number": [-5] * len(text)})
    safe = escaped(frame)
    assert safe["text"].to_list() == [escape_cell(one) for one in text]
    assert not any(DANGEROUS.match(cell) for cell in [*safe["text"], *safe.columns])
    assert unescaped(safe["text"]).to_list() == text
    assert safe["'+number"].to_list() == [-5] * len(text)
    assert unescaped(pl.Series("'+number", ["a"])).name == "+number"


def test_numbers_stay_numbers(tmp_path):
    run = us.read_run({-5: [-1, 2], 7: [2]})
    run.to_csv(tmp_path / "run.csv")
    assert (tmp_path / "run.csv").read_text() == "user,item,rank\n-5,-1,1\n-5,2,2\n7,2,1\n"
    assert us.read_run(tmp_path / "run.csv").users.kind == "integer"


def test_text_before_which_nobody_put_an_apostrophe_is_read_as_it_is(tmp_path):
    """Files of others: names with apostrophes, and formulas as they are."""
    names = ["'tis", "O'Hara", "'", "=1", "+44", "-M-", "''", "'Til Tuesday"]
    frame = pl.DataFrame({"user": names, "item": names, "rating": [1] * len(names)})
    frame.write_csv(tmp_path / "theirs.csv")
    assert sorted(us.read_ratings(tmp_path / "theirs.csv").users.values) == sorted(names)


def test_trec_and_parquet_keep_ids_as_they_are(tmp_path):
    run = us.read_run({"=a": ["+b", "'=c"], "x": ["@d"]})
    run.to_trec(tmp_path / "run.trec")
    run.to_parquet(tmp_path / "run.parquet")
    assert (tmp_path / "run.trec").read_text().startswith("=a Q0 +b 1 ")
    for name in ("run.trec", "run.parquet"):
        read = us.read_run(tmp_path / name).to_polars()
        assert read["item"].to_list() == ["+b", "'=c", "@d"]


def test_categories_are_text(tmp_path):
    frame = pl.DataFrame({"a": pl.Series(["=1", "b"], dtype=pl.Categorical)})
    write_table(frame, tmp_path / "a.csv", "csv")
    assert cells(tmp_path / "a.csv") == ["a", "'=1", "b"]
    assert read_table(tmp_path / "a.csv").frame["a"].to_list() == ["=1", "b"]


@pytest.fixture
def planned(tmp_path):
    """A plan of annotation for ids that are formulas, and its folder."""
    items = [*FORMULAS, "plain", "-7"]
    lists = {
        "x": dict.fromkeys(FORMULAS, items[:3]),
        "y": dict.fromkeys(FORMULAS, items[3:6]),
    }
    plan = us.labels.plan_annotation(lists, "P@3", budget=30, seed=1)
    titles = {"item": items, "=title": [f"={item}" for item in items]}
    return plan, plan.save(tmp_path / "plan", titles=titles)


def fill_in(folder, rows=None):
    """Write a label into rows, and nothing else, as a spreadsheet program would."""
    path = folder / "to-judge.csv"
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    for line in lines[:rows]:
        line[header.index("label")] = "1"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *lines])


def test_the_file_of_a_plan_has_no_formulas_and_is_read_back(planned):
    plan, folder = planned
    assert_no_formulas(folder / "to-judge.csv")
    fill_in(folder)
    judged = us.labels.read_annotation(folder)
    assert judged.used == plan.budget
    sample = judged.sample()
    expected = plan.user.gather(plan.order[: plan.budget])
    assert sample["user"].to_list() == expected.to_list()
    assert set(sample["user"]) <= set(FORMULAS)
    assert judged.status().rows.height == 1


def test_a_plan_is_extended_under_the_same_ids(planned, tmp_path):
    _, folder = planned
    fill_in(folder, 20)
    more = us.labels.read_annotation(folder).extend(10)
    second = more.save(tmp_path / "more")
    assert_no_formulas(second / "to-judge.csv")
    fill_in(second)
    assert us.labels.read_annotation(second).used == 40


def test_commands_of_annotation_keep_ids(planned, tmp_path):
    _, folder = planned
    fill_in(folder)
    read = invoke("annotate", "read", folder, "-o", tmp_path / "sample.csv")
    assert read.exit_code == 0, read.stderr
    assert_no_formulas(tmp_path / "sample.csv")
    users = read_table(tmp_path / "sample.csv").frame["user"]
    assert set(users) <= set(FORMULAS)
    assert invoke("annotate", "status", folder).exit_code == 0
