"""The command or code on the card makes the report again: the same numbers, the same statements."""

import json
import shlex
from dataclasses import replace

import pytest

import unskew as us
from shared.sample import sample
from unskew.auditing.audit import audit
from unskew.auditing.page.reproduction import with_files, world_code


def again(call, command, files, tmp_path):
    """Run the command of a card with files in place of its capital words; return its report."""
    words = shlex.split(command)
    assert words[0] == "unskew"
    words = [files.get(word, word) for word in words]
    words[words.index("report.html")] = str(tmp_path / "again.json")
    code, _, problem = call(*words[1:], "--quiet")
    assert code == 0, problem
    return json.loads((tmp_path / "again.json").read_text())


def shown_command(report):
    blocks = report["sections"]["card"]["blocks"]
    return next(one["text"] for one in blocks if one.get("code") == "The command")


def run_code(made, tmp_path, monkeypatch):
    """Run the code of a card; return the audit that it makes."""
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(made.command, names)
    assert (tmp_path / "report.html").exists()
    return names["audit"]


def check_same(made, report):
    first = json.loads(made.document().to_json())
    assert report["verdict"] == first["verdict"]
    assert report["statements"] == first["statements"]
    for key in ("decisions", "ladder"):
        assert report["sections"][key] == first["sections"][key]


def test_the_command_of_ratings_works(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "ratings.csv"
    us.world("shop", users=80, items=40, seed=2).ratings.to_csv(path)
    made = audit(
        path,
        "quick",
        algorithms=["random", "popularity", "average-rating"],
        designs=["all-items", "skew"],
        liked=4,
        seed=5,
    )
    assert made.command.startswith("unskew audit ratings.csv --quick")
    report = again(call, made.command, {}, tmp_path)
    check_same(made, report)
    # The command line writes the same command, with the file as it was named there.
    assert shown_command(report) == made.command


def test_the_command_of_lists_works(call, tmp_path):
    parts = sample(users=100, items=80)
    files = {name: tmp_path / f"{name}.csv" for name in ("test", "train", "popular", "personal")}
    for name in ("test", "train"):
        getattr(parts, name).write_csv(files[name])
    for name in ("popular", "personal"):
        parts.runs[name].write_csv(files[name])
    made = audit(
        judgments=files["test"],
        runs={name: files[name] for name in ("popular", "personal")},
        train=files["train"],
        plan="quick",
        liked=4,
    )
    words = made.command
    for name, word in (("popular", "popular=FILE"), ("personal", "personal=FILE")):
        words = words.replace(word, f"{name}={files[name]}")
    words = words.replace("--judgments FILE", f"--judgments {files['test']}")
    words = words.replace("--train FILE", f"--train {files['train']}")
    assert "FILE" not in words
    check_same(made, again(call, words, {}, tmp_path))


SMALL = {"designs": ["all-items", "skew"], "repeats": 2, "permutations": 200}


def test_the_code_of_a_world_works(tmp_path, monkeypatch):
    shop = us.world("shop", users=80, items=40, seed=2)
    algorithms = ["popularity", us.recommend.PureSVD(factors=3), "random"]
    made = audit(shop, "quick", algorithms=algorithms, liked=4, margin=0.02, seed=5, **SMALL)
    new = run_code(made, tmp_path, monkeypatch)
    assert new.document().to_json() == made.document().to_json()


@pytest.mark.parametrize("settings", [{"alpha": 0.7}, {}])
def test_worlds_are_written_as_code(settings):
    one = us.world("shop", users=30, items=20, seed=1, density=0.2, **settings)
    code = world_code(one)
    assert code.startswith("us.World.from_card(" if settings else "us.world(")
    assert eval(code).describe() == one.describe()


def test_the_code_of_a_plan_works(tmp_path, monkeypatch):
    path = tmp_path / "ratings.csv"
    us.world("shop", users=80, items=40, seed=2).ratings.to_csv(path)
    plan = us.Plan(
        us.splits.Random(test=0.3),
        us.targets.AllItems(),
        {"it's": us.recommend.Random(), "pop\\ular": us.recommend.Popularity()},
        us.Relevance(liked=4),
        ["nDCG@5", "P@5"],
        seed=4,
    )
    made = audit(path, plan, repeats=2, permutations=200)
    new = run_code(made, tmp_path, monkeypatch)
    assert new.document().to_json() == made.document().to_json()


def test_the_code_of_frames_names_what_to_replace(tmp_path, monkeypatch):
    path = tmp_path / "ratings.csv"
    us.world("shop", users=80, items=40, seed=2).ratings.to_csv(path)
    ratings = us.read_ratings(path)
    made = audit(ratings, "quick", algorithms=["random", "popularity"], liked=4, **SMALL)
    assert ratings.fingerprint in made.command
    code = made.command.replace("RATINGS", str(path))
    new = run_code(replace(made, command=code), tmp_path, monkeypatch)
    assert new.statements == made.statements
    assert new.table().equals(made.table())


def test_files_of_the_command_line_are_in_the_command():
    command = "unskew audit --judgments FILE --run a=FILE --run b=FILE --random FILE -o report.html"
    files = {"--judgments": "t.csv", "--random": "ml 1"}
    full = with_files(command, files, {"a": "x.csv:item=sku", "b": "y"}, ["--columns", "user=u"])
    assert full == (
        "unskew audit --judgments t.csv --run a=x.csv:item=sku --run b=y --random 'ml 1' "
        "--columns user=u -o report.html"
    )
    assert with_files("import unskew as us", files, {}) == "import unskew as us"
