"""`unskew recommend`, `unskew algorithms`, `evaluate --targets`; saved targets; other libraries."""

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.sample import sample
from unskew.cli import main
from unskew.recommend.model import as_model
from unskew.recommend.registry import ALGORITHMS


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    home = tmp_path_factory.mktemp("shop")
    shop = sample(users=60, items=50)
    shop.train.write_csv(home / "train.csv")
    shop.test.write_parquet(home / "test.parquet")
    return home


def run(*arguments):
    """Run the command line and return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    return stopped.value.code


def recommend(home, *more, output="run.parquet"):
    return run("recommend", "--train", home / "train.csv", "-o", home / output, *more)


def test_recommend_then_evaluate(files, capsys):
    test = files / "test.parquet"
    code = recommend(
        files,
        "--test",
        test,
        "--targets",
        "test-items",
        "-a",
        "user-knn",
        "--set",
        "k=10",
        "--depth",
        20,
    )
    out = capsys.readouterr().out
    assert code == 0
    assert "UserKNN(k=10" in out
    assert "written to" in out
    table = pl.read_parquet(files / "run.parquet")
    train = pl.read_csv(files / "train.csv")
    assert table.group_by("user").len()["len"].max() <= 20
    assert table.join(train, on=["user", "item"]).is_empty()
    assert set(table["item"]) <= set(pl.read_parquet(test)["item"])
    code = run(
        "evaluate",
        "-j",
        test,
        "-r",
        files / "run.parquet",
        "--train",
        files / "train.csv",
        "--targets",
        "test-items",
        "--liked",
        4,
        "-m",
        "P@5,nDCG@5,bpref",
    )
    out = capsys.readouterr().out
    assert code == 0
    assert "(random)" in out
    assert "(random) of bpref: simulated" in out


def test_a_saved_model_gives_the_same_lists(files, capsys):
    assert (
        recommend(
            files,
            "-a",
            "puresvd",
            "-s",
            "factors=3",
            "--save-model",
            files / "svd.model",
            output="fresh.csv",
        )
        == 0
    )
    assert recommend(files, "--model", files / "svd.model", output="loaded.csv") == 0
    assert "svd.model: 60 lists" in capsys.readouterr().out
    assert (files / "fresh.csv").read_bytes() == (files / "loaded.csv").read_bytes()
    assert recommend(files, "--model", files / "svd.model", "-a", "slim") == 2
    assert "--model replaces --algorithm" in capsys.readouterr().err


def test_same_seed_same_file(files):
    for name in ("a.csv", "b.csv"):
        assert recommend(files, "-a", "random", "--seed", 3, "-q", output=name) == 0
    assert (files / "a.csv").read_bytes() == (files / "b.csv").read_bytes()
    assert recommend(files, "-a", "random", "--seed", 4, "-q", output="c.csv") == 0
    assert (files / "a.csv").read_bytes() != (files / "c.csv").read_bytes()


def test_the_command_gives_what_python_gives(files):
    assert recommend(files, "-a", "popularity", "-q", output="p.trec") == 0
    train = us.read_ratings(files / "train.csv")
    lists = us.targets.AllItems().lists(us.Split(train, train.take(train.user < 0)), liked=1)
    ours = us.rank(us.recommend.Popularity().fit(train), lists, 100).to_polars()
    theirs = us.read_run(files / "p.trec").to_polars()
    assert theirs["item"].cast(pl.String).to_list() == ours["item"].cast(pl.String).to_list()


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["-a", "slmi"], 2, "Did you mean 'slim'"),
        (["-a", "slim", "--set", "l3=2"], 2, "slim has no setting 'l3'; it has: l1, l2"),
        (["-a", "slim", "--set", "l1"], 2, "NAME=VALUE"),
        (["-a", "slim", "--set", "l1=-2"], 2, "l1 must be a number"),
        (["--targets", "test-items"], 2, "needs the test ratings: give --test FILE"),
        (["--targets", "test-item"], 2, "Did you mean 'test-items'"),
        (["--depth", "0"], 2, "0 is not in the range 1<=x"),
        (["--columns", "user=nobody"], 1, "no column 'nobody'"),
    ],
)
def test_mistakes_are_explained(files, capsys, more, code, message):
    assert recommend(files, *more) == code
    assert message in capsys.readouterr().err


def test_the_output_must_have_a_known_ending(files, capsys):
    assert recommend(files, output="run.xlsx") == 2
    assert ".parquet, .csv, .trec" in capsys.readouterr().err


def test_algorithms_are_listed_and_explained(capsys):
    assert run("algorithms") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ALGORITHMS)
    assert run("algorithms", "slim") == 0
    out = capsys.readouterr().out
    assert "Defaults: l1=" in out
    assert "Reference" in out
    assert run("algorithms", "slmi") == 2


# Saying what was ranked


def split_of(files):
    train, test = (us.read_ratings(files / name) for name in ("train.csv", "test.parquet"))
    users = us.splits.Given(test=test, overlap="error").split(train)[0]
    return users, train, test


def test_targets_of_evaluate_are_those_of_the_lists(files):
    split, train, test = split_of(files)
    lists = us.targets.TestItems().lists(split, liked=4)
    run = us.rank(us.recommend.Popularity().fit(split.train), lists, 10)
    a = us.evaluate(test, {"p": run}, ["P@10", "RR"], liked=4, train=train, targets="test-items")
    b = us.evaluate(lists, {"p": run}, ["P@10", "RR"])
    assert a.means() == b.means()
    assert a.random() == b.random()
    assert a.table()["system"].to_list() == ["p", "(random)"]
    plain = us.evaluate(test, {"p": run}, ["P@10", "RR"], liked=4, train=train)
    assert plain.means() == a.means()
    assert plain.random() == {}


def test_chance_stops_where_the_runs_stop(files):
    """A run of depth 5 is not compared with chance at full depth."""
    split, _, _ = split_of(files)
    lists = us.targets.AllItems().lists(split, liked=4)
    model = us.recommend.Popularity().fit(split.train)
    short = us.evaluate(lists, {"p": us.rank(model, lists, 5)}, ["Recall"])
    full = us.evaluate(lists, {"p": model}, ["Recall"])
    assert full.random()["Recall"] == pytest.approx(full.mean("Recall")["p"])
    assert short.random()["Recall"] < 0.3 * full.random()["Recall"]


def test_designs_with_several_lists_are_refused(files):
    _, train, test = split_of(files)
    with pytest.raises(us.SettingError, match="several lists per user"):
        us.evaluate(
            test, {"p": {1: [2]}}, "P@1", liked=4, train=train, targets=us.targets.OneRelevant(5)
        )
    for name in ("1R", "p1r", "percentiles"):
        with pytest.raises(
            us.SettingError, match=f"{name}.* a list per liked test item, .* a plan"
        ):
            us.evaluate(test, {"p": {1: [2]}}, "P@1", liked=4, train=train, targets=name)
    with pytest.raises(us.SettingError, match="leave items"):
        us.evaluate(
            test, {"p": {1: [2]}}, "P@1", liked=4, train=train, targets="all-items", items=[1, 2]
        )


# Lists on disk


@pytest.mark.parametrize(
    "design",
    [
        us.targets.OneRelevant(others=5),
        us.targets.Percentiles(others=3, strata=4),
        us.targets.TestItems(others=7),
    ],
    ids=repr,
)
def test_saved_lists_are_the_same_lists(files, tmp_path, monkeypatch, design):
    monkeypatch.setattr("unskew.targets.lists.BLOCK_ITEMS", 100)  # several files
    split, _, _ = split_of(files)
    lists = design.lists(split, liked=4, seed=5)
    us.targets.save_targets(lists, tmp_path / "lists")
    again = us.targets.read_targets(tmp_path / "lists", split, liked=4)
    kept = np.flatnonzero(lists.size)
    assert again.user.tolist() == lists.user[kept].tolist()
    assert again.anchor.tolist() == lists.anchor[kept].tolist()
    assert again.stratum.tolist() == lists.stratum[kept].tolist()
    assert again.block(0, len(again))[1].tolist() == lists.block(0, len(lists))[1].tolist()
    model = us.recommend.Popularity().fit(split.train)
    metrics = ["P@3", "RR", "anti-P@3"]
    one, two = (us.evaluate(some, {"p": model}, metrics) for some in (lists, again))
    assert one.means() == two.means()
    assert one.random() == two.random()
    with pytest.raises(us.DataError, match="not empty"):
        us.targets.save_targets(lists, tmp_path / "lists")


def test_lists_of_ones_own(files):
    split, _, _ = split_of(files)
    user = split.test.users.values[int(split.test.user[0])]
    item = split.test.items.values[int(split.test.item[0])]
    rated = split.train.item[split.train.start[split.test.user[0]]]
    other = [i for i in range(1, 51) if i not in (item, split.train.items.values[int(rated)])]
    free = [
        i
        for i in other
        if split.train.items.codes([i])[0]
        not in split.train.item[
            split.train.start[split.test.user[0]] : split.train.start[split.test.user[0] + 1]
        ]
    ]
    table = {"user": [user] * 3, "item": [item, *free[:2]]}
    lists = us.targets.read_targets(table, split, liked=1)
    assert len(lists) == 1
    assert us.evaluate(lists, {"mine": {user: [item]}}, "P@1").mean("P@1") == {"mine": 1.0}
    known = split.train.items.values[int(rated)]
    wrong = {
        "training items are never targets": {"user": [user], "item": [known]},
        "holds an item twice": {"user": [user] * 2, "item": [item] * 2},
        "item that is not in the split": {"user": [user], "item": [999]},
        "need columns user and item": {"user": [user]},
    }
    for message, rows in wrong.items():
        with pytest.raises(us.DataError, match=message):
            us.targets.read_targets(rows, split, liked=1)
    with pytest.raises(us.DataError, match="belongs to two users"):
        us.targets.read_targets(
            {"list": [0, 0], "user": split.test.users.values[:2].to_list(), "item": free[:2]},
            split,
            liked=1,
        )


def test_damaged_lists_are_refused(files, tmp_path):
    split, _, _ = split_of(files)
    us.targets.save_targets(
        us.targets.OneRelevant(others=5).lists(split, liked=4), tmp_path / "lists"
    )
    (tmp_path / "lists" / "part-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(us.DataError, match="changed since it was written"):
        us.targets.read_targets(tmp_path / "lists", split, liked=4)
    (tmp_path / "lists" / "card.json").unlink()
    with pytest.raises(us.DataError, match="no saved targets here"):
        us.targets.read_targets(tmp_path / "lists", split, liked=4)


# Models of other libraries


class Elsewhere:
    """What a factor model of another library looks like."""

    def __init__(self, users, items):
        rng = np.random.default_rng(1)
        self.user_factors = rng.normal(size=(users, 3)).astype(np.float32)
        self.item_factors = rng.normal(size=(items, 3)).astype(np.float32)


def test_factors_of_other_libraries(files):
    split, _, _ = split_of(files)
    model = Elsewhere(len(split.train.users), len(split.train.items))
    lists = us.targets.AllItems().lists(split, liked=4)
    table = model.user_factors @ model.item_factors.T
    table[np.diff(split.train.start) == 0] = np.nan
    scores = us.evaluate(lists, {"theirs": model, "ours": table}, ["P@5", "RR"])
    assert scores.means()["theirs"] == pytest.approx(scores.means()["ours"], abs=1e-6)
    with pytest.raises(us.DataError, match=r"fit it to train.to_csr\(\)"):
        as_model(Elsewhere(3, 4), split.train)


def test_ratings_as_a_scipy_matrix(files):
    pytest.importorskip("scipy")
    split, _, _ = split_of(files)
    matrix = split.train.to_csr()
    assert matrix.shape == (len(split.train.users), len(split.train.items))
    assert matrix.sum() == split.train.value.sum()
    assert matrix[int(split.train.user[5]), int(split.train.item[5])] == split.train.value[5]


def test_users_without_training_ratings(files, capsys):
    (files / "asked.csv").write_text("user,item,rating\n1,zz,5\n9999,zz,4\n")
    before = pl.read_csv(files / "train.csv", infer_schema=False)
    assert recommend(files, "--users", files / "asked.csv", output="lists.csv") == 0
    lists = pl.read_csv(files / "lists.csv", infer_schema=False)
    assert set(lists["user"]) == {*before["user"], "9999"}
    assert "zz" not in set(lists["item"])  # users are asked for, not items
    assert "1 of 2 users in" in capsys.readouterr().err
    assert recommend(files, "-a", "user-knn", "--users", files / "asked.csv") == 0
    assert "1 user has no list" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["recommend", "--train", "train.csv", "-a", "popularity", "-o", "-"],
        ["evaluate", "-j", "test.csv", "-r", "mine.csv", "-m", "P@2", "--per-user", "-"],
    ],
    ids=["recommend", "evaluate"],
)
def test_lists_and_values_of_users_need_a_file(words, tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    code, _, err = call(*words)
    assert (code, "-: name a file, such as" in err) == (2, True)
    assert not list(tmp_path.iterdir())
