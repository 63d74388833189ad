"""Strata: masked metrics and contributions against plain twins, shares, errors, the command."""

import json
import math

import numpy as np
import polars as pl
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import unskew as us
from shared.cases import as_ratings, random_case
from shared.examples import examples
from shared.real_data import real_data
from unskew import DataError, SettingError
from unskew.cli.command import callback
from unskew.unbiased.strata import strata

TRAIN = {
    "user": [1, 1, 2, 2, 3, 3, 4],
    "item": ["a", "b", "a", "b", "a", "c", "a"],
    "rating": [5, 4, 5, 1, 4, 5, 3],
}
TEST = {
    "user": [1, 1, 2, 2, 3, 4],
    "item": ["c", "d", "c", "e", "b", "c"],
    "rating": [5, 2, 4, 5, 5, 4],
}
RUNS = {
    "one": {1: ["c", "d"], 2: ["e", "x"], 3: ["b"], 4: ["b", "c"]},
    "two": {1: ["e", "c"], 2: ["c", "e"], 3: ["d", "e"], 4: ["d", "c"]},
}
EVERY = [
    "P@2",
    "Recall@2",
    "nDCG@2",
    "DCG",
    "RBP",
    "SR@2",
    "HLU",
    "Judged@2",
    "Rprec",
    "F1@2",
    "AP",
    "RR",
    "HitRate@1",
    "anti-P@2",
    "anti-nDCG@2",
    "condensed-nDCG@2",
    "Recall(per=min)@2",
    "AP(per=min)@2",
    "nDCG(ideal=full)@2",
    "SR(mean=ratio)@2",
    "P(per=list)@2",
]


def small(**settings):
    asked = {"metrics": "P@2", "resamples": 0, **settings}
    return strata(TEST, RUNS, train=TRAIN, liked=4, **asked)


def numbers(es, quantity="within", column="value", **keys):
    """Return a column by stratum, of one system and metric: the first unless named."""
    first = {"metric": es.values_of("metric")[0], "system": es.values_of("system")[0]}
    return es.where(quantity=quantity, **{**first, **keys}).rows[column].to_list()


def cube(es, quantity="within", column="value"):
    """Return a column as metrics x systems x strata, NaN for null."""
    rows = es.where(quantity=quantity).rows
    shape = [len(es.values_of(key)) for key in ("metric", "system", "group")]
    return rows[column].cast(pl.Float64).fill_null(math.nan).to_numpy().reshape(shape)


def whole(labels, **settings):
    return us.evaluate(TEST, RUNS, labels, train=TRAIN, liked=4, **settings)


# By hand


def test_popularity_by_hand():
    found = small(metrics="P@2", m=5)
    # Training counts: a 4, b 2, c 1, d 0, e 0 (x is in no ratings): one item each.
    assert numbers(found, column="highest") == [4, 2, 1, 0, 0]
    assert numbers(found, column="judgments") == [0, 1, 3, 1, 1]
    assert numbers(found, column="liked") == [0, 1, 3, 0, 1]
    one, two = cube(found)[0]
    assert one.tolist() == pytest.approx([math.nan, 0.5, 1 / 3, 0.0, 0.5], nan_ok=True)
    assert two.tolist() == pytest.approx([math.nan, 0.0, 0.5, 0.0, 0.5], nan_ok=True)
    assert numbers(found, column="n") == [0, 1, 3, 1, 1]
    # Parts of the mean over all four users.
    assert numbers(found, "contribution") == [0.0, 0.125, 0.25, 0.0, 0.125]
    assert numbers(found, "share") == [0.0, 0.25, 0.5, 0.0, 0.25]
    assert any("stratum 1: it has no judgments" in note for note in found.notes)
    assert found.parts["heads"].row(system="one").value == 0.0
    assert small(metrics="P@2", m=5, head=3).parts["heads"].row(system="one").value == 0.75


def test_users_by_hand():
    found = small(metrics="RR", by="activity", m=2)
    # Training ratings: 2, 2, 2, 1; users 1 and 2 first, ties by id.
    assert numbers(found, column="size") == [2, 2]
    assert numbers(found, column="lowest") == [2.0, 1.0]
    assert numbers(found) == [1.0, 0.75]
    assert numbers(found, "contribution") == [0.5, 0.375]
    assert found.card["of"] == "users"
    main = small(metrics="RR", by="mainstreamness", m=4)
    # Mean count of the own training items: (4+2)/2, (4+2)/2, (4+1)/2, 4.
    assert numbers(main, column="highest") == [4.0, 3.0, 3.0, 2.5]
    assert numbers(main) == [0.5, 1.0, 1.0, 1.0]


def test_users_without_training_are_a_stratum_of_their_own():
    test = {
        key: [*column, extra]
        for (key, column), extra in zip(TEST.items(), (9, "b", 5), strict=True)
    }
    found = strata(test, RUNS, "RR", train=TRAIN, liked=4, by="mainstreamness", m=2, resamples=0)
    assert found.values_of("group") == ["1", "2", "without training"]
    row = found.row(group="without training", quantity="within")
    assert (row.facts["size"], row.value) == (1, 0.0)
    assert any("users without training" in note for note in found.notes)
    active = strata(test, RUNS, "RR", train=TRAIN, liked=4, by="activity", m=5, resamples=0)
    assert numbers(active, column="highest")[4] == 0.0


def test_given_groups():
    genre = {"b": "new", "c": "old", "d": "old", "z": "unknown to all"}
    found = small(metrics="P@2", by=genre)
    assert found.values_of("group") == ["new", "old", "(none)"]
    assert numbers(found, "contribution") == [0.125, 0.25, 0.125]
    assert "(none): 3 items without a group" in found.notes
    assert found.card["head"] == 0
    assert found.parts["heads"].table().height == 0
    table = pl.DataFrame({"item": list(genre), "genre": list(genre.values())})
    assert small(metrics="P@2", by=table).table().equals(found.table())
    users = small(metrics="P@2", by={1: "f", 2: "f", 3: "m", 4: "m"}, of="users")
    assert numbers(users) == [0.5, 0.5]
    assert users.card["of"] == "users"


def test_tags_of_judgments():
    kind = pl.Series(["seen", "new", "seen", "new", "new", None])
    tests = us.read_ratings(pl.DataFrame(TEST).with_columns(kind=kind), tags=["kind"])
    found = strata(tests, RUNS, "P@2", liked=4, by="kind", resamples=0)
    assert found.values_of("group") == ["new", "seen", "(none)"]
    assert numbers(found, column="judgments") == [3, 2, 1]
    assert numbers(found, "contribution") == [0.25, 0.125, 0.125]


def test_without_training_popularity_is_that_of_the_test():
    found = strata(TEST, RUNS, "P@2", liked=4, m=2, resamples=0)
    assert numbers(found, column="highest")[0] == 3.0
    assert any("popularity is the number of test ratings" in note for note in found.notes)


def test_equal_judgments():
    found = small(metrics="P@2", m=2, equal="judgments")
    bins = us.splits.judgment_bins(us.read_ratings(TRAIN), us.Relevance(liked=4), 2)
    assert found.card["by"] == "popularity (equal judgments)"
    assert sum(numbers(found, column="size")) == 5
    assert numbers(found, column="size")[0] == int((bins.stratum == 0).sum())


# Contributions


def test_every_metric_that_splits_adds_up():
    means = whole(EVERY, users="all").means()
    for by in ("popularity", "activity", "mainstreamness"):
        found = small(metrics=EVERY, m=3, by=by, users="all")
        for label in EVERY:
            for system in found.systems:
                total = math.fsum(numbers(found, "contribution", metric=label, system=system))
                assert total == pytest.approx(means[system][label], abs=1e-14), label
                score = found.parts["heads"].row(metric=label, system=system).facts["score"]
                assert score == means[system][label]


def test_metrics_that_do_not_split_say_so():
    found = small(metrics=["bpref", "P(bound=upper)@2", "nDCL(ideal=best)@2"], m=3)
    assert np.isnan(cube(found, "contribution")).all()
    assert np.isnan(cube(found, "share")).all()
    assert sum("it has no contributions" in note for note in found.notes) == 3
    assert not np.isnan(cube(found)).all()
    by_user = small(metrics="bpref", m=2, by="activity")
    mean = whole("bpref").mean("bpref")["one"]
    assert sum(numbers(by_user, "contribution")) == pytest.approx(mean)
    assert "share" not in str(found).splitlines()[1]
    with pytest.raises(DataError, match="strata: there is no value to draw"):
        found.figure("shares")


def plain_parts(qrels, run, group, k):
    """Split P@k, Recall@k, AP@k and RR@k by group of the item; judged users only."""
    groups = sorted(set(group.values()))
    out = np.zeros((4, len(groups)))
    for user, judged in qrels.items():
        ranked = sorted(run.get(user, {}).items(), key=lambda pair: (-pair[1], pair[0]))[:k]
        liked = {item for item, grade in judged.items() if grade >= 3}
        seen = 0
        for rank, (item, _) in enumerate(ranked, start=1):
            if item in liked:
                seen += 1
                g = groups.index(group[item])
                out[0, g] += 1 / k
                out[1, g] += 1 / len(liked)
                out[2, g] += seen / rank / len(liked)
                out[3, g] += (seen == 1) / rank
    return out / len(qrels)


@examples(30)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_plain_twin(seed, k):
    qrels, run = random_case(seed)
    if not set(qrels) & set(run):
        return
    group = {f"i{i}": "abc"[i % 3] for i in range(12)}
    labels = [f"P@{k}", f"Recall@{k}", f"AP@{k}", f"RR@{k}"]
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = strata(as_ratings(qrels), {"s": run}, labels, by=group, liked=3, resamples=0)
    names = found.values_of("group")
    own = {item: name for item, name in group.items() if name in names}
    want = plain_parts(qrels, run, group, k)
    kept = [at for at, name in enumerate(sorted(set(group.values()))) if name in own.values()]
    assert cube(found, "contribution")[:, 0] == pytest.approx(want[:, kept], abs=1e-12)


@examples(30)
@given(st.integers(0, 10_000))
def test_within_a_stratum_is_what_evaluate_says_of_its_judgments_alone(seed):
    import warnings

    qrels, run = random_case(seed)
    group = {f"i{i}": "abc"[i % 3] for i in range(12)}
    few = {
        user: {item: grade for item, grade in judged.items() if group[item] == "a"}
        for user, judged in qrels.items()
    }
    few = {user: judged for user, judged in few.items() if judged}
    if not set(few) & set(run) or not set(qrels) & set(run):
        return
    labels = ["P@3", "nDCG@3", "AP", "bpref", "condensed-RR"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = strata(as_ratings(qrels), {"s": run}, labels, by=group, liked=3, resamples=0)
        try:
            alone = us.evaluate(as_ratings(few), {"s": run}, labels, liked=3)
        except DataError:  # the run holds none of these items
            return
    at = found.values_of("group").index("a")
    assert cube(found)[:, 0, at].tolist() == [alone.mean(label)["s"] for label in labels]


# Intervals


def many(users=200, items=40, seed=0):
    rng = np.random.default_rng(seed)
    popular = 1.0 / np.arange(1, items + 1)
    popular /= popular.sum()

    def ratings(per):
        rows = [
            (u, i) for u in range(users) for i in rng.choice(items, per, replace=False, p=popular)
        ]
        user, item = zip(*rows, strict=True)
        return {"user": user, "item": item, "rating": rng.integers(1, 6, len(rows))}

    train, test = ratings(6), ratings(4)
    head = us.Run.from_arrays(np.arange(users), np.tile(np.arange(10), (users, 1)))
    order = np.stack([rng.permutation(items)[:10] for _ in range(users)])
    return train, test, {"head": head, "any": us.Run.from_arrays(np.arange(users), order)}


def mixed(**settings):
    import warnings

    train, test, runs = many()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        return strata(test, runs, ["P@5", "nDCG@10"], train=train, liked=4, m=4, **settings)


def test_intervals_hold_the_values_and_do_not_depend_on_threads():
    found = mixed(threads=1, resamples=300)
    within = found.where(quantity="within").rows.filter(pl.col("n") > 0)
    assert ((within["low"] <= within["value"]) & (within["value"] <= within["high"])).all()
    share = cube(found, "share")
    assert (cube(found, "share", "low") <= share + 1e-12).all()
    assert (share <= cube(found, "share", "high") + 1e-12).all()
    head = found.parts["heads"].row(system="any")
    assert head.low < head.value < head.high
    assert head.value == pytest.approx(share[0, 1, 0])
    again = mixed(threads=2, resamples=300)
    assert again.table().equals(found.table())
    assert not mixed(resamples=300, seed=5).table().equals(found.table())
    # A system that shows popular items only lives on the head.
    assert share[0, 0, 0] > share[0, 1, 0]
    assert mixed(resamples=0).table()["low"].null_count() == len(found.table())


def test_interval_of_a_mean_is_the_bootstrap_of_its_users():
    """Within a stratum of users: about 1.96 standard errors to each side."""
    import warnings

    train, test, runs = many(users=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        found = strata(
            test, runs, "P@5", train=train, liked=4, by="activity", m=1 + 1, resamples=2_000
        )
        values = us.evaluate(test, runs, "P@5", train=train, liked=4).values("any", "P@5")
    half, low, high = (cube(found, "within", name)[0, 1] for name in ("value", "low", "high"))
    error = values.std(ddof=1) / math.sqrt(200)
    assert (high - low).tolist() == pytest.approx([2 * 1.96 * error] * 2, rel=0.2)
    assert half.mean() == pytest.approx(values.mean())


# Target lists


def test_target_lists_and_models():
    train, _, _ = many()
    split = us.splits.Random(test=0.3).split(us.read_ratings(train), seed=1)[0]
    models = {
        "pop": us.recommend.Popularity().fit(split.train),
        "rnd": us.recommend.Random().fit(split.train),
    }
    lists = us.targets.OneRelevant(others=10, candidates="all").lists(split, liked=4)
    found = strata(lists, models, ["HitRate@3", "nDCG@3"], m=4, resamples=50)
    scores = us.evaluate(lists, models, ["HitRate@3", "nDCG@3"])
    for system in models:
        total = sum(numbers(found, "contribution", system=system))
        assert total == pytest.approx(scores.mean("HitRate@3")[system])
    assert sum(numbers(found, column="liked")) == len(lists)
    assert sum(numbers(found, column="n")) >= len(lists)
    ready = strata(lists, {"pop": us.rank(models["pop"], lists)}, "HitRate@3", m=4, resamples=0)
    assert numbers(ready, "contribution") == pytest.approx(numbers(found, "contribution"))
    with pytest.raises(SettingError, match="target lists already contain their liked"):
        strata(lists, models, "P@3", liked=4)
    with pytest.raises(SettingError, match="no runs are given"):
        strata(lists, [], "P@3")


# Errors and forms


def test_errors():
    with pytest.raises(SettingError, match=r"unknown by 'popularty'.*Did you mean 'popularity'"):
        small(by="popularty")
    with pytest.raises(DataError, match="by='activity' needs the training ratings"):
        strata(TEST, RUNS, "P@2", liked=4, by="activity")
    with pytest.raises(DataError, match="equal='judgments' goes by training"):
        strata(TEST, RUNS, "P@2", liked=4, equal="judgments", m=2)
    with pytest.raises(SettingError, match="99 strata need at least 99 items; there are 5"):
        small(m=99)
    with pytest.raises(SettingError, match="head=2 covers all 2 strata"):
        small(m=2, head=2)
    with pytest.raises(SettingError, match="Coverage@2 describes a whole run"):
        small(metrics="Coverage@2")
    with pytest.raises(SettingError, match="ARP@2 describes what is recommended"):
        small(metrics="ARP@2", m=2)
    assert not np.isnan(cube(small(metrics="ARP@2", by="activity", m=2))).any()
    with pytest.raises(DataError, match="none of the ids, such as 'zz'"):
        small(by={"zz": "a"})
    with pytest.raises(SettingError, match=r"m=… is for strata by a number"):
        small(by={"b": "x"}, m=3)
    with pytest.raises(SettingError, match=r"of=… says whose ids"):
        small(of="items")
    with pytest.raises(SettingError, match=r"equal=… says how to cut"):
        small(by="activity", equal="items")
    with pytest.raises(SettingError, match="unknown of 'item'"):
        small(by={"b": "x"}, of="item")
    with pytest.raises(DataError, match="1 id occurs twice"):
        small(by=pl.DataFrame({"item": ["b", "b"], "g": ["x", "y"]}))
    with pytest.raises(DataError, match="ids in its first column"):
        small(by=pl.DataFrame({"item": ["b"]}))
    with pytest.raises(SettingError, match="level"):
        small(level=1.5)
    with pytest.raises(SettingError, match="depth must be a whole number from 1 up"):
        small(depth=0)
    with pytest.raises(SettingError, match="resamples"):
        small(resamples=-1)
    with pytest.raises(SettingError, match="not both"):
        small(relevance=us.Relevance(liked=4))


def test_shown():
    found = mixed(resamples=50)
    text = str(found)
    assert "the head: the first 1 of 4 strata (10 items)" in text
    assert "shares add up to 1" in text
    assert text.splitlines()[:2] == [
        "P@5 (higher is better)",
        "system  stratum  items  liked  lists  within the stratum            95% CI  "
        "share of the score            95% CI",
    ]
    assert found._repr_html_().count("<table") == 4  # of each metric the strata and the head
    heads = found.parts["heads"]
    assert heads.table().height == 4
    row = heads.row()
    assert row.facts["head"] + row.facts["rest"] == pytest.approx(row.facts["score"])
    assert json.dumps(found.to_dict())
    spec = found.figure("strata", "nDCG@10").to_dict()
    assert spec["title"]["text"] == "nDCG@10: strata"
    assert len(spec["datasets"]["rows"]) == 8
    shares = found.figure("shares", "nDCG@10")
    assert sum(row["value"] for row in shares.to_dict()["datasets"]["rows"]) == pytest.approx(2)
    assert shares.to_svg().startswith("<svg")
    with pytest.raises(SettingError, match="unknown metric 'AP'"):
        found.figure("strata", "AP")


# The command

app = typer.Typer()
app.command()(callback("strata"))


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path):
    for name, data in (("test", TEST), ("train", TRAIN)):
        pl.DataFrame(data).write_csv(tmp_path / f"{name}.csv")
    for name, lists in RUNS.items():
        us.read_run(lists).to_csv(tmp_path / f"{name}.csv")
    pl.DataFrame({"item": ["b", "c"], "genre": ["x", "y"]}).write_csv(tmp_path / "groups.csv")
    return tmp_path


def basic(files):
    return (
        "-j",
        files / "test.csv",
        "-r",
        files / "one.csv",
        "-r",
        files / "two.csv",
        "--train",
        files / "train.csv",
        "--liked",
        4,
    )


def test_command(files):
    figure = files / "strata.json"
    done = call(
        *basic(files),
        "-m",
        "P@2",
        "--strata",
        5,
        "--resamples",
        0,
        "--format",
        "json",
        "--figure",
        figure,
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == small(metrics="P@2", m=5).table().to_dicts()
    assert json.loads(figure.read_text())["title"]["text"] == "P@2: strata"
    shown = call(*basic(files), "-m", "P@2", "--strata", 2, "--resamples", 20)
    assert "shares add up to 1" in shown.stdout
    heads = call(
        *basic(files),
        "-m",
        "P@2,RR",
        "--strata",
        3,
        "--resamples",
        0,
        "--heads",
        "--format",
        "csv",
        "-q",
    )
    assert heads.stdout.startswith("metric,system,score,head,rest,value,low,high")
    assert len(heads.stdout.splitlines()) == 5
    groups = call(
        *basic(files),
        "-m",
        "P@2",
        "--by",
        files / "groups.csv",
        "--resamples",
        0,
        "--format",
        "markdown",
        "-q",
    )
    assert "(none)" in groups.stdout


def test_command_errors(files):
    assert "give --judgments and --run" in str(call("-m", "P@2").exception)
    problem = call(*basic(files), "--by", "popularty").exception
    assert isinstance(problem, SettingError)
    assert "Did you mean 'popularity'" in str(problem)
    (files / "bad.csv").write_text("item\nb\n")
    assert call(*basic(files), "--by", files / "bad.csv").exception is not None
    assert "unskew strata" in call("--help").stdout


# Real data


@pytest.mark.slow
def test_shares_on_movielens():
    """Popularity lives on the head of the items; shares of all systems add up to 1."""
    data = us.read_ratings(real_data("ml-1m/ratings.parquet"))
    split = us.splits.Random(test=0.2).split(data, seed=7)[0]
    models = {
        "Pop": us.recommend.Popularity().fit(split.train),
        "Random": us.recommend.Random().fit(split.train),
    }
    found = strata(us.targets.AllItems().lists(split, liked=4), models, "P@10", resamples=100)
    share = cube(found, "share")[0]
    assert share.sum(axis=1) == pytest.approx([1.0, 1.0])
    assert share[0, 0] > 0.99
    assert share[1, 0] < 0.6
