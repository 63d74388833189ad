"""What commands read: columns of single files, errors in their own words, safe output."""

import csv
import io
import json
import subprocess
import sys

import polars as pl
import pytest

import unskew as us
from unskew.cli.files import split_named_source, split_source
from unskew.errors import DataError, Spelling
from unskew.report.tables import Table, as_csv
from unskew.report.text import as_json, visible

TEST = [(u, i, (u * i) % 5 + 1) for u in range(1, 9) for i in range(1, 7) if (u + i) % 3]
TRAIN = [(u, i, (u + i) % 5 + 1) for u in range(1, 9) for i in range(1, 7) if not (u + i) % 3]


def write(path, header, rows):
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Return a folder in which every file has its own names of columns, and go there."""
    write(tmp_path / "test.csv", "user,item,rating", TEST)
    write(tmp_path / "odd.csv", "who,what,stars", TEST)
    write(tmp_path / "train.csv", "person,thing,mark", TRAIN)
    lists = [(u, i, i) for u in range(1, 9) for i in range(1, 7) if (u + i) % 3]
    write(tmp_path / "plain.csv", "user,item,rank", lists)
    write(tmp_path / "sku.csv", "user,sku,rank", lists)
    write(tmp_path / "thing.csv", "user,thing,rank", lists)
    write(tmp_path / "other.csv", "uid,product_code,position", [(u, i, 7 - i) for u, i, _ in lists])
    monkeypatch.chdir(tmp_path)
    return tmp_path


# FILE:item=sku


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine.csv", ("mine.csv", "")),
        ("mine.csv:item=sku", ("mine.csv", "item=sku")),
        ("mine.csv:item=item_id:token,user=u", ("mine.csv", "item=item_id:token,user=u")),
        ("missing.csv:item=sku", ("missing.csv", "item=sku")),
        ("a:b=1.csv", ("a:b=1.csv", "")),
        ("a:b=1.csv:item=3", ("a:b=1.csv", "item=3")),
        ("x:item=2", ("x:item=2", "")),
        ("x:item=2:item=5", ("x:item=2", "item=5")),
        ("mine.csv:itm=sku", ("mine.csv", "itm=sku")),
        ("missing:thing", ("missing:thing", "")),
        ("y" * 300 + ":item=sku", ("y" * 300, "item=sku")),
    ],
)
def test_files_and_their_columns(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "a:b=1.csv", "x:item=2"):
        (tmp_path / name).touch()
    assert split_source(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mine.csv", ("", "mine.csv", "")),
        ("mine.csv:item=sku", ("", "mine.csv", "item=sku")),
        ("m=mine.csv:item=sku", ("m", "mine.csv", "item=sku")),
        ("m=missing.csv:item=sku", ("m", "missing.csv", "item=sku")),
        ("missing.csv:item=sku", ("", "missing.csv", "item=sku")),
        ("bm25:k1=mine.csv", ("bm25:k1", "mine.csv", "")),
        ("bm25:k=mine.csv:item=3", ("bm25:k", "mine.csv", "item=3")),
        ("m=a:b=1.csv", ("m", "a:b=1.csv", "")),
        ("m=a:b=1.csv:item=2", ("m", "a:b=1.csv", "item=2")),
        ("a:b=1.csv", ("", "a:b=1.csv", "")),
        ("m=missing.csv", ("m", "missing.csv", "")),
    ],
)
def test_named_files_and_their_columns(tmp_path, monkeypatch, text, expected):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.csv", "a:b=1.csv"):
        (tmp_path / name).touch()
    assert split_named_source(text) == expected


OTHER = ["-r", "other=other.csv:user=uid,item=product_code"]
ODD = ["-j", "odd.csv:user=who,item=what,rating=stars", "-r", "plain=sku.csv:item=sku", *OTHER]
PLAIN = ["-j", "test.csv", "-r", "plain=plain.csv", *OTHER]
TRAINED = ["--train", "train.csv:user=person,item=thing,rating=mark"]


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "-m", "P@2,nDCG@3", "--liked", 4],
        ["evaluate", "-m", "ARP@2", "--liked", 4, *TRAINED],
        ["compare", "-m", "nDCG@3", "--liked", 4, "--permutations", 200],
        ["power", "-m", "nDCG@3", "--liked", 4, "--permutations", 200],
        ["robustness", "-m", "nDCG@3", "--liked", 4, "--samples", 3],
        ["strata", "-m", "Recall@3", "--liked", 4, "--resamples", 0, "--strata", 2],
        ["estimate", "-m", "P@2", "--liked", 4, "--resamples", 0, *TRAINED],
    ],
    ids=lambda command: command[0],
)
def test_every_file_may_have_its_own_columns(shop, call, command):
    """The numbers are those of the same rows under common names."""
    values = []
    for files in (ODD, PLAIN):
        code, out, err = call(*command, *files, "--format", "json", "-q")
        assert code == 0, err
        values.append(json.loads(out))
        if isinstance(values[-1], dict):
            values[-1].pop("notes", None)  # they name the files
    assert values[0] == values[1]
    assert values[0]


def test_columns_of_one_file_go_before_those_of_all(shop, call):
    files = ["-j", "test.csv:item=item", "-r", "sku.csv", "--columns", "item=sku"]
    code, out, err = call("evaluate", *files, "-m", "P@2", "--liked", 4, "--format", "json", "-q")
    assert code == 0, err
    assert json.loads(out)["sku"]["P@2"]["users"] == 8


ODD_RATINGS = "odd.csv:user=who,item=what,rating=stars"
ODD_TRAIN = "train.csv:user=person,item=thing,rating=mark"


def test_data_info_takes_columns_of_one_file(shop, call):
    plain, odd = (
        json.loads(call("data", "info", source, "--format", "json")[1])["parts"]
        for source in ("test.csv", ODD_RATINGS)
    )
    assert odd == plain
    assert odd[0]["ratings"] == len(TEST)


def test_split_takes_columns_of_one_file_and_its_card_keeps_them(shop, call):
    code, _, err = call("split", ODD_RATINGS, "--test", 0.5, "-o", "parts", "-q")
    assert code == 0, err
    names = {"user": "who", "item": "what", "rating": "stars"}
    assert json.loads((shop / "parts" / "card.json").read_text())["reading"]["columns"] == names
    again = ["--card", "parts/card.json", "-o", "again", "-q"]
    code, _, err = call("split", ODD_RATINGS, *again)
    assert code == 2
    assert "leave out --columns, FILE:item=… and --filter" in err
    code, _, err = call("split", "odd.csv", *again)
    assert code == 0, err
    for part in ("train", "test"):
        one, two = (pl.read_parquet(shop / home / f"{part}.parquet") for home in ("parts", "again"))
        assert one.equals(two)


def test_split_takes_columns_of_the_test_ratings(shop, call):
    given = ["--protocol", "given", "--test-ratings", ODD_RATINGS]
    code, _, err = call("split", ODD_TRAIN, *given, "-o", "given", "-q")
    assert code == 0, err
    reading = json.loads((shop / "given" / "card.json").read_text())["reading"]
    assert reading["test_columns"] == {"user": "who", "item": "what", "rating": "stars"}
    code, _, err = call("split", "train.csv", "--card", "given/card.json", "--test-ratings",
                        "odd.csv", "-o", "again", "-q")  # fmt: skip
    assert code == 0, err
    one, two = (pl.read_parquet(shop / home / "test.parquet") for home in ("given", "again"))
    assert one.equals(two)


@pytest.mark.parametrize(
    "command",
    [
        ["recommend", "--train", ODD_TRAIN, "--test", ODD_RATINGS, "-o", "pop.csv", "-q"],
        ["bias", "pairs", ODD_RATINGS, "--liked", 4, "-r", "sku.csv:item=sku", *OTHER[:1],
         "other.csv:user=uid,item=product_code"],
        ["bias", "describe", ODD_RATINGS, "--liked", 4],
        ["intervene", ODD_RATINGS, "--kind", "skew", "--train", ODD_TRAIN, "-o", "done", "-q"],
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_other_commands_take_columns_of_one_file(shop, call, command):
    code, _, err = call(*command)
    assert code == 0, err


def test_items_may_be_named_too(shop, call):
    (shop / "all.csv").write_text("thing\nred\nblue\ngreen\n")
    write(shop / "test.csv", "user,item,rating", [(1, "red", 5)])
    write(shop / "plain.csv", "user,item,rank", [(1, "red", 1)])
    base = ["evaluate", "-j", "test.csv", "-r", "plain.csv", "-m", "Coverage", "--liked", 4, "-q"]
    for item, items in (("thing", 3), ("0", 4)):
        code, out, err = call(*base, "--items", f"all.csv:item={item}", "--format", "json")
        assert code == 0, err
        assert json.loads(out)["plain"]["Coverage"]["mean"] == pytest.approx(1 / items)
    code, _, err = call(*base, "--items", "all.csv")
    assert code == 1
    assert "FILE:item=thing if it is the name, FILE:item=0 if it is an item" in err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["-j", "test.csv:itm=item", "-r", "plain.csv"],
            "'itm'. Did you mean 'item'",
        ),
        (["-j", "test.csv:rank=item", "-r", "plain.csv"], "(of test.csv) 'rank'."),
        (["-j", "test.csv", "-r", "plain.csv:rating=item"], "(of plain.csv) 'rating'."),
        (["-j", "test.csv:item=", "-r", "plain.csv"], "test.csv: write user=NAME,item=NAME"),
        (
            ["-j", "test.csv:item=sku", "-r", "plain.csv", "--on-disk", "out"],
            "cannot be named with --on-disk",
        ),
    ],
)
def test_wrong_columns_of_one_file_are_refused(shop, call, arguments, says):
    code, _, err = call("evaluate", *arguments, "--liked", 4)
    assert code == 2
    assert says in err


def test_columns_that_no_file_has_are_refused(shop, call):
    code, _, err = call("data", "info", "test.csv", "--columns", "rank=rating")
    assert code == 2
    assert "unknown column (of --columns) 'rank'" in err


# Errors in the words of the command line


@pytest.mark.parametrize(
    ("command", "says", "not_said"),
    [
        (["-r", "thing.csv"], "no item column found among: user, thing, rank", "with item=…"),
        (
            ["-r", "thing.csv"],
            "name it with --columns item=…, or FILE:item=… for one file alone",
            "",
        ),
        (["-j", "twice.csv"], "keep with --duplicates first, last, mean, sum or max", "'first'"),
        (["-j", "twice.csv"], "twice.csv: 1 user-item pair occurs more than once", "read_events"),
        (
            ["-j", "twice.csv"],
            "with unskew split --event-log or unskew timeline --event-log",
            "read_events",
        ),
        (["-r", "again.csv"], "again.csv: 1 item occurs twice", "duplicates="),
        (["-r", "again.csv"], "keep the best place of each with --repeated first", "'first'"),
        (["-r", "nan.csv"], "leave these items out with --nan drop", "nan='drop'"),
        (
            ["-r", "rank.csv"],
            "1e30'; rank by score instead with --by score, or correct",
            "by='score'",
        ),
        (["-r", "plain.csv", "--by", "score"], "there is no score column for --by score", "by='"),
        (["-j", "wide.csv"], "column numbers such as --columns user=0,item=1", ""),
    ],
)
def test_errors_use_the_words_of_the_command_line(shop, call, command, says, not_said):
    write(shop / "twice.csv", "user,item,rating", [(1, 1, 3), (1, 1, 4)])
    write(shop / "again.csv", "user,item,rank", [(1, 1, 1), (1, 1, 2)])
    write(shop / "nan.csv", "user,item,score", [(1, 1, 0.5), (1, 2, "nan")])
    write(shop / "rank.csv", "user,item,rank", [(1, 1, 1), (1, 2, "1e30")])
    (shop / "wide.csv").write_text("1,2,3,4,5\n")
    more = ["-r", "plain.csv"] if "-j" in command else ["-j", "test.csv"]
    code, out, err = call("evaluate", *command, *more, "--liked", 4)
    assert (code, out) == (1, "")
    assert says in err
    assert not not_said or not_said not in err


def test_what_a_command_lacks_is_said_in_words_of_python(shop, call):
    write(shop / "again.csv", "user,item,rank", [(1, 1, 1), (1, 1, 2)])
    _, _, err = call("compare", "-j", "test.csv", "-r", "again.csv", "--liked", 4)
    assert "keep the best place of each with duplicates='first' in Python" in err


def test_a_split_that_needs_times_names_its_option(shop, call):
    _, _, err = call("split", "test.csv", "--protocol", "temporal", "-o", "parts")
    assert "name their column with --columns time=…, or FILE:time=… for one file alone" in err
    (shop / "bare.tsv").write_text("1\t7\t5\t978\n2\t7\t4\t86999\n")
    _, _, err = call("split", "bare.tsv", "--protocol", "events", "-o", "parts")
    assert "bare.tsv: no time column found" in err
    code, _, err = call("split", "bare.tsv", "--protocol", "events", "--columns", "time=3",
                        "--test", 0.5, "-o", "parts")  # fmt: skip
    assert code == 0, err
    span = "seconds since 1970, 1970-01-01 to 1970-01-02"
    note = f"2 events; user = user, item = item, time = column_3 ({span}), rating = rating"
    assert f"bare.tsv: tab-separated without header, {note}" in err
    data = json.loads((shop / "parts" / "card.json").read_text())["data"]
    assert data["notes"] == [
        f"bare.tsv: tab-separated without header, {note}",
        "bare.tsv: no header line: column 0 the user, 1 the item, 2 the rating; counted from 0",
    ]


def test_parts_of_a_message():
    problem = DataError("x: mend it with ", Spelling("a='b'", "--a b"))
    assert str(problem) == "x: mend it with a='b'"
    assert problem.on_command_line(["--a"]) == "x: mend it with --a b"
    assert problem.on_command_line([]) == "x: mend it with a='b' in Python"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("give train=… or by='rank'", "give --train … or --by rank"),
        ("it cannot be combined with per_user=True", "it cannot be combined with --per-user"),
        ("(random=…)", "(--random …)"),
        (
            "take Random(test=…) or f(x, by='rank')",
            "take Random(test=…) or f(x, by='rank')",
        ),
        ("say other=… or a.by='rank'", "say other=… or a.by='rank'"),
    ],
)
def test_arguments_become_options_where_the_command_has_them(text, expected):
    options = ["--train", "--by", "--per-user", "--random", "--test"]
    assert DataError(text).on_command_line(options) == expected
    assert str(DataError(text)) == text


def test_a_missing_argument_is_named_as_an_option(shop, call):
    _, _, err = call("evaluate", *PLAIN, "-m", "P@2", "--liked", 4, "--users", "with-train")
    assert "--train" in err
    assert "train=…" not in err
    _, _, err = call("strata", *PLAIN, "-m", "Recall@3", "--liked", 4, "--by", "activity")
    assert "--by activity needs the training ratings: give --train …" in err


# Pipes


@pytest.mark.parametrize("copies", [1, 2000])
def test_standard_input_on_the_command_line(copies):
    rows = [(u + 100 * c, i, r) for c in range(copies) for u, i, r in TEST]
    text = "".join(f"{u}::{i}::{r}\n" for u, i, r in rows)
    command = [sys.executable, "-m", "unskew", "data", "info", "/dev/stdin", "--format", "json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["parts"][0]["ratings"] == len(rows)


# What is printed


EVIL = "\x1b[31mred\x07\x9b\u202e"
SHOWN = r"\x1b[31mred\x07\x9b\u202e"


def test_control_characters_are_written_out():
    assert visible(EVIL) == SHOWN
    assert visible("naïve Ünïcode ✓ 日本") == "naïve Ünïcode ✓ 日本"
    table = Table.of_rows(["name"], [[EVIL]])
    assert table.to_text() == f"name\n{SHOWN}"
    assert not set(table.to_markdown()) & set("\x1b\x07\x9b\u202e")
    assert json.loads(as_json({"a": EVIL})) == {"a": EVIL}
    assert not set(as_json({"a": EVIL})) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("kind", ["table", "csv", "markdown", "latex", "json"])
@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_names_do_not_drive_the_terminal(shop, call, command, kind):
    files = ["-j", "test.csv", "-r", f"{EVIL}=plain.csv", *OTHER]
    code, out, err = call(command, *files, "-m", "P@2", "--liked", 4, "--format", kind)
    assert code == 0, err
    assert not set(out + err) & set("\x1b\x07\x9b\u202e")
    assert "red" in out


def test_errors_and_notes_do_not_drive_the_terminal(shop, call):
    name = f"{EVIL}.csv"
    code, _, err = call("data", "info", name)
    assert code == 1
    assert err == f"error: {SHOWN}.csv: no such file\n"
    (shop / name).write_text((shop / "test.csv").read_text())
    _, out, err = call("evaluate", "-j", name, "-r", "plain.csv", "-m", "P@2", "--liked", 4)
    assert r"\x1b[31mred" in out
    assert ".csv: comma-separated" in out
    assert "\x1b" not in out + err


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1+1", "@SUM(A1)", "\tx", "\rx"]


@pytest.mark.parametrize("text", FORMULAS)
def test_tables_for_people_hold_no_formulas(text):
    table = pl.DataFrame({"system": [text, "plain-name"], "mean": [-0.5, 0.25]})
    rows = list(csv.reader(io.StringIO(as_csv(table))))
    assert rows[1] == ["'" + visible(text), "-0.5"]
    assert rows[2] == ["plain-name", "0.25"]


def test_csv_holds_no_formulas_and_is_read_back_exactly(shop, call):
    write(shop / "test.csv", "user,item,rating", [("=1+1", "a", 5), ("-x", "b", 4)])
    write(shop / "plain.csv", "user,item,rank", [("=1+1", "a", 1), ("-x", "b", 1)])
    files = ["-j", "test.csv", "-r", "@SUM(1)=plain.csv", "--per-user", "users.csv"]
    code, out, err = call("evaluate", *files, "-m", "P@1", "--liked", 4, "--format", "csv", "-q")
    assert code == 0, err
    assert out.splitlines()[1].startswith("'@SUM(1),P@1,1.0,")
    assert sorted(pl.read_csv(shop / "users.csv")["user"]) == ["'-x", "'=1+1"]
    again = us.read_ratings(shop / "users.csv", item="system", rating="P@1")
    assert again.users.values.to_list() == ["-x", "=1+1"]


def test_nearly_the_name_of_a_data_set(shop, call):
    code, _, err = call("audit", "ml-1mm")
    assert code != 0
    assert "no data set of that name; did you mean ml-1m?" in err


def write_plain(shop):
    rows = "".join(f"{u},{i},{1 + (u + i) % 5}\n" for u in range(6) for i in range(6) if u != i)
    (shop / "plain.csv").write_text(f"user,item,rating\n{rows}")


def test_filters_are_recorded_on_the_card_of_a_split(shop, call):
    write_plain(shop)
    options = ["--filter", "k-core:users=2,items=2", "--test", 0.5, "-o", "core"]
    code, out, err = call("split", "plain.csv", *options)
    assert code == 0, err
    assert "k-core(users=2, items=2): " in out + err
    card = json.loads((shop / "core" / "card.json").read_text())
    assert card["data"]["steps"][0]["name"] == "k-core"
    assert card["reading"]["filters"] == ["k-core:users=2,items=2"]
    again = ["--card", "core/card.json", "-o", "core-again", "-q"]
    assert call("split", "plain.csv", *again)[0] == 0
    for part in ("train", "test"):
        one, two = (pl.read_parquet(shop / h / f"{part}.parquet") for h in ("core", "core-again"))
        assert one.equals(two)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--filter", "kcore"], "Did you mean 'k-core'"),
        (["--filter", "k-core:depth=3"], "no setting 'depth'"),
        (["--filter", "k-core:users=no"], "users"),
        (["--filter", "k-core:users=900"], "no row is left"),
        ([], "name at least one filter"),
        (["--filter", "drop-repeats"], "works on an event log"),
        (["--filter", "k-core", "--event-log", "--duplicates", "sum"], "keeps every event"),
    ],
)
def test_bad_filters(shop, call, words, message):
    write_plain(shop)
    code, _, err = call("data", "filter", "plain.csv", *words, "-o", "left.csv")
    assert code in (1, 2)
    assert message in err
    assert not (shop / "left.csv").exists()


def test_filtered_data_are_written(shop, call):
    code, out, err = call(
        "data", "filter", "train.csv", "--filter", "k-core:users=1", "-o", "l.txt"
    )
    assert code == 2
    assert "use one of .csv, .parquet" in err
    (shop / "log.csv").write_text("user,item,time\n1,a,10\n1,a,20\n2,b,30\n")
    words = ["--event-log", "--filter", "drop-repeats", "-o", "left.csv"]
    code, out, err = call("data", "filter", "log.csv", *words)
    assert code == 0, err
    assert "repeats: 1" in out + err
    assert pl.read_csv(shop / "left.csv").height == 2


def test_the_kind_of_feedback_is_an_option(shop, call):
    (shop / "plays.csv").write_text("user,item,plays\n1,a,40\n1,b,1\n2,b,3\n")
    (shop / "lists.csv").write_text("user,item,rank\n1,b,1\n1,a,2\n2,a,1\n2,b,2\n")
    judged = ["evaluate", "-j", "plays.csv", "-r", "lists.csv", "-m", "nDCG@2,anti-P@2"]
    code, out, err = call(*judged)
    assert code == 0, err
    assert "anti-P@2 left out" in out + err
    code, out, err = call(*judged, "--feedback", "explicit", "--liked", "2")
    assert code == 0, err
    assert "left out" not in out + err
    assert call(*judged, "--feedback", "both")[0] == 2
