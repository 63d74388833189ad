"""The command on the card makes the report again: the same numbers, the same statements."""

import json
import shlex

import unskew as us
from unskew.auditing.run import audit
from unskew.data.sample import sample


def again(call, command, files, tmp_path):
    """Run the command of a card with files in place of its capital words; return its report."""
    words = shlex.split(command)
    assert words[0] == "unskew"
    words = [files.get(word, word) for word in words]
    words[words.index("report.html")] = str(tmp_path / "again.json")
    code, _, problem = call(*words[1:], "--quiet")
    assert code == 0, problem
    return json.loads((tmp_path / "again.json").read_text())


def check_same(made, report):
    first = json.loads(made.document().to_json())
    assert report["verdict"] == first["verdict"]
    assert report["statements"] == first["statements"]
    for key in ("decisions", "ladder"):
        assert report["sections"][key] == first["sections"][key]


def test_the_command_of_ratings_works(call, tmp_path):
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
    assert "RATINGS" in made.command
    report = again(call, made.command, {"RATINGS": str(path)}, tmp_path)
    check_same(made, report)


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
