"""`unskew annotate`: from two files of lists to a decision, as people type it."""

import polars as pl
import pytest


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a folder with the lists of two systems and the labels of a model."""
    monkeypatch.chdir(tmp_path)
    for name, step in (("a", 1), ("b", 3)):
        rows = [(u, (u + step * k) % 40, k + 1) for u in range(60) for k in range(5)]
        pl.DataFrame(rows, ["user", "item", "rank"], orient="row").write_csv(f"{name}.csv")
    rows = [(u, i, (u * i) % 2) for u in range(60) for i in range(40)]
    pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv("model.csv")
    return tmp_path


PLAN = ("annotate", "plan", "-r", "a.csv", "-r", "b.csv", "-m", "P@5")


def fill(folder, count, liked=lambda user, item: (user + item) % 3 == 0):
    frame = pl.read_csv(folder / "to-judge.csv")
    rows = frame.select("user", "item").rows()
    label = [str(int(liked(*row))) if n < count else None for n, row in enumerate(rows)]
    frame.with_columns(pl.Series("label", label, dtype=pl.String)).write_csv(
        folder / "to-judge.csv"
    )


def test_from_lists_to_a_decision(home, call):
    code, out, err = call(*PLAN, "--budget", "60", "--smallest", "0.1", "-o", "work")
    assert (code, err) == (0, "")
    assert "60 pairs of" in out
    assert "fill in to-judge.csv from the top down" in out
    code, out, _ = call("annotate", "status", "work")
    assert code == 0
    assert "go on: it is not settled which system is better" in out
    assert "labels in all: about" in out
    fill(home / "work", 60)
    code, out, _ = call("annotate", "status", "work", "--format", "json", "-q")
    assert code == 0
    assert '"labels": 60' in out
    code, _, err = call("annotate", "read", "work", "-o", "human.csv")
    assert (code, "written to human.csv" in err) == (0, True)
    human = pl.read_csv("human.csv")
    assert human.columns == ["user", "item", "label", "probability"]
    assert human.height == 60
    code, out, _ = call(
        "annotate", "extend", "work", "--budget", "40", "--design", "neyman", "-o", "more"
    )
    assert (code, "100 pairs of" in out) == (0, True)
    assert pl.read_csv(home / "more" / "to-judge.csv").height == 40
    fill(home / "more", 40)
    assert call("annotate", "status", "more", "--figure", "path.svg")[0] == 0
    assert (home / "path.svg").read_text().startswith("<svg")


def test_levels_by_a_model(home, call):
    code, out, _ = call(
        *PLAN, "--budget", "60", "--design", "neyman", "--labels", "model.csv",
        "--estimand", "levels", "--strata", "rank", "-o", "work",
    )  # fmt: skip
    assert (code, "levels (a, b)" in out) == (0, True)
    fill(home / "work", 60)
    code, out, _ = call("annotate", "status", "work", "--width", "0.9")
    assert (code, "stop: every interval is at most 0.9 wide" in out) == (0, True)
    assert "(all 2 together)" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            (*PLAN, "--budget", "9", "--design", "neyman", "-o", "w"),
            "--design neyman needs to know",
        ),
        ((*PLAN, "--budget", "9", "--scale", "1-5", "-o", "w"), "two whole numbers such as 1,5"),
        ((*PLAN, "--budget", "9", "--scale", "1,7", "-o", "w"), "give --liked"),
        ((*PLAN, "-m", "DCG@5", "--budget", "9", "-o", "w"), "a plan is for one metric"),
        ((*PLAN, "--budget", "9999", "-o", "w"), "there are only"),
        ((*PLAN, "--budget", "9", "--estimand", "ratio", "-o", "w"), "Allowed: difference, levels"),
        (("annotate", "status", "nowhere"), "no plan of an annotation here"),
    ],
)
def test_errors_are_one_line_in_the_words_of_the_command(home, call, arguments, says):
    code, _, err = call(*arguments)
    assert code in (1, 2)
    assert says in err
    assert not (home / "w").exists()
