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
    asked = {"metrics": "P@2", "bootstrap": 0, **settings}
    return strata(TEST, RUNS, train=TRAIN, liked=4, **asked)


# By hand


def test_popularity_by_hand():
    found = small(metrics="P@2", m=5)
    # Training counts: a 4, b 2, c 1, d 0, e 0 (x is in no ratings): one item each.
    assert [stratum.most for stratum in found.strata] == [4, 2, 1, 0, 0]
    assert [stratum.judgments for stratum in found.strata] == [0, 1, 3, 1, 1]
    assert [stratum.liked for stratum in found.strata] == [0, 1, 3, 0, 1]
    one, two = found.value[0]
    assert one.tolist() == pytest.approx([math.nan, 0.5, 1 / 3, 0.0, 0.5], nan_ok=True)
    assert two.tolist() == pytest.approx([math.nan, 0.0, 0.5, 0.0, 0.5], nan_ok=True)
    assert found.lists[0, 0].tolist() == [0, 1, 3, 1, 1]
    # Parts of the mean over all four users.
    assert found.contribution[0, 0].tolist() == [0.0, 0.125, 0.25, 0.0, 0.125]
    assert found.share[0, 0].tolist() == [0.0, 0.25, 0.5, 0.0, 0.25]
    assert any("stratum 1: it has no judgments" in note for note in found.notes)
    assert found.head_share[0, 0, 0] == 0.0
    assert small(metrics="P@2", m=5, head=3).head_share[0, 0, 0] == 0.75


def test_users_by_hand():
    found = small(metrics="RR", by="activity", m=2)
    # Training ratings: 2, 2, 2, 1; users 1 and 2 first, ties by id.
    assert [stratum.size for stratum in found.strata] == [2, 2]
    assert [stratum.least for stratum in found.strata] == [2.0, 1.0]
    assert found.value[0, 0].tolist() == [1.0, 0.75]
    assert found.contribution[0, 0].tolist() == [0.5, 0.375]
    assert found.of == "users"
    main = small(metrics="RR", by="mainstreamness", m=4)
    # Mean count of the own training items: (4+2)/2, (4+2)/2, (4+1)/2, 4.
    assert [stratum.most for stratum in main.strata] == [4.0, 3.0, 3.0, 2.5]
    assert main.value[0, 0].tolist() == [0.5, 1.0, 1.0, 1.0]


def test_users_without_training_are_a_stratum_of_their_own():
    test = {
        key: [*column, extra]
        for (key, column), extra in zip(TEST.items(), (9, "b", 5), strict=True)
    }
    found = strata(test, RUNS, "RR", train=TRAIN, liked=4, by="mainstreamness", m=2, bootstrap=0)
    assert [stratum.name for stratum in found.strata] == ["1", "2", "without training"]
    assert found.strata[2].size == 1
    assert found.value[0, 0, 2] == 0.0
    assert any("users without training" in note for note in found.notes)
    active = strata(test, RUNS, "RR", train=TRAIN, liked=4, by="activity", m=5, bootstrap=0)
    assert active.strata[4].most == 0.0


def test_given_groups():
    genre = {"b": "new", "c": "old", "d": "old", "z": "unknown to all"}
    found = small(metrics="P@2", by=genre)
    assert [stratum.name for stratum in found.strata] == ["new", "old", "(none)"]
    assert found.contribution[0, 0].tolist() == [0.125, 0.25, 0.125]
    assert found.head == 0
    assert found.heads().height == 0
    table = pl.DataFrame({"item": list(genre), "genre": list(genre.values())})
    assert small(metrics="P@2", by=table).table().equals(found.table())
    users = small(metrics="P@2", by={1: "f", 2: "f", 3: "m", 4: "m"}, of="users")
    assert users.value[0, 0].tolist() == [0.5, 0.5]
    assert users.of == "users"


def test_tags_of_judgments():
    kind = pl.Series(["seen", "new", "seen", "new", "new", None])
    tests = us.read_ratings(pl.DataFrame(TEST).with_columns(kind=kind), tags=["kind"])
    found = strata(tests, RUNS, "P@2", liked=4, by="kind", bootstrap=0)
    assert [stratum.name for stratum in found.strata] == ["new", "seen", "(none)"]
    assert [stratum.judgments for stratum in found.strata] == [3, 2, 1]
    assert found.contribution[0, 0].tolist() == [0.25, 0.125, 0.125]


def test_without_training_popularity_is_that_of_the_test():
    found = strata(TEST, RUNS, "P@2", liked=4, m=2, bootstrap=0)
    assert found.strata[0].most == 3.0
    assert any("popularity is the number of test ratings" in note for note in found.notes)


def test_equal_judgments():
    found = small(metrics="P@2", m=2, equal="judgments")
    bins = us.splits.judgment_bins(us.read_ratings(TRAIN), us.Relevance(liked=4), 2)
    assert found.by == "popularity (equal judgments)"
    assert sum(stratum.size for stratum in found.strata) == 5
    assert found.strata[0].size == int((bins.stratum == 0).sum())


# Contributions


def test_every_metric_that_splits_adds_up():
    for by in ("popularity", "activity", "mainstreamness"):
        found = small(metrics=EVERY, m=3, by=by, users="all")
        means = found.whole.averages()
        for at, label in enumerate(EVERY):
            for s, system in enumerate(found.systems):
                total = math.fsum(found.contribution[at, s])
                assert total == pytest.approx(means[system][label].value, abs=1e-14), label


def test_metrics_that_do_not_split_say_so():
    found = small(metrics=["bpref", "P(bound=upper)@2", "nDCL(ideal=best)@2"], m=3)
    assert np.isnan(found.contribution).all()
    assert np.isnan(found.share).all()
    assert sum("it has no contributions" in note for note in found.notes) == 3
    assert not np.isnan(found.value).all()
    by_user = small(metrics="bpref", m=2, by="activity")
    assert by_user.contribution[0, 0].sum() == pytest.approx(by_user.whole.mean("bpref")["one"])
    figure = found.figure().to_dict()
    assert len(figure["vconcat"]) == 1


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
        found = strata(as_ratings(qrels), {"s": run}, labels, by=group, liked=3, bootstrap=0)
    names = [stratum.name for stratum in found.strata]
    own = {item: name for item, name in group.items() if name in names}
    want = plain_parts(qrels, run, group, k)
    kept = [at for at, name in enumerate(sorted(set(group.values()))) if name in own.values()]
    assert found.contribution[:, 0] == pytest.approx(want[:, kept], abs=1e-12)


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
        found = strata(as_ratings(qrels), {"s": run}, labels, by=group, liked=3, bootstrap=0)
        try:
            alone = us.evaluate(as_ratings(few), {"s": run}, labels, liked=3)
        except DataError:  # the run holds none of these items
            return
    at = [stratum.name for stratum in found.strata].index("a")
    assert found.value[:, 0, at].tolist() == [alone.mean(label)["s"] for label in labels]


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
    found = mixed(threads=1, bootstrap=300)
    assert ((found.low <= found.value) & (found.value <= found.high))[found.lists > 0].all()
    assert (found.share_low <= found.share + 1e-12).all()
    assert (found.share <= found.share_high + 1e-12).all()
    share, low, high = found.head_share[0, 1]
    assert low < share < high
    assert share == pytest.approx(found.share[0, 1, 0])
    again = mixed(threads=2, bootstrap=300)
    assert again.table().equals(found.table())
    assert not mixed(bootstrap=300, seed=5).table().equals(found.table())
    # A system that shows popular items only lives on the head.
    assert found.share[0, 0, 0] > found.share[0, 1, 0]
    assert mixed(bootstrap=0).table()["low"].null_count() == len(found.table())


def test_interval_of_a_mean_is_the_bootstrap_of_its_users():
    """Within a stratum of users: about 1.96 standard errors to each side."""
    import warnings

    train, test, runs = many(users=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        found = strata(
            test, runs, "P@5", train=train, liked=4, by="activity", m=1 + 1, bootstrap=2_000
        )
    values = found.whole.values("any", "P@5")
    half = found.value[0, 1]
    error = values.std(ddof=1) / math.sqrt(200)
    assert (found.high[0, 1] - found.low[0, 1]).tolist() == pytest.approx(
        [2 * 1.96 * error] * 2, rel=0.2
    )
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
    found = strata(lists, models, ["HitRate@3", "nDCG@3"], m=4, bootstrap=50)
    scores = us.evaluate(lists, models, ["HitRate@3", "nDCG@3"])
    for s, system in enumerate(models):
        assert found.contribution[0, s].sum() == pytest.approx(scores.mean("HitRate@3")[system])
    anchored = [stratum.liked for stratum in found.strata]
    assert sum(anchored) == len(lists)
    assert found.lists[0, 0].sum() >= len(lists)
    ready = strata(lists, {"pop": us.rank(models["pop"], lists)}, "HitRate@3", m=4, bootstrap=0)
    assert ready.contribution[0, 0] == pytest.approx(found.contribution[0, 0])
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
    assert not np.isnan(small(metrics="ARP@2", by="activity", m=2).value).any()
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
    with pytest.raises(SettingError, match="bootstrap"):
        small(bootstrap=-1)
    with pytest.raises(SettingError, match="not both"):
        small(relevance=us.Relevance(liked=4))


def test_shown():
    found = mixed(bootstrap=50)
    text = str(found)
    assert "the head: the first 1 of 4 strata (10 items)" in text
    assert "shares add up to 1" in text
    assert repr(found) == "StrataReport(4 strata of items, 2 systems, 2 metrics)"
    assert found._repr_html_().count("<table") == 3  # two metrics and the head
    assert found.heads().columns[-3:] == ["head_share", "low", "high"]
    assert found.heads().height == 4
    row = found.heads().row(0, named=True)
    assert row["head"] + row["rest"] == pytest.approx(row["score"])
    assert json.dumps(found.to_dict())
    spec = found.figure("nDCG@10").to_dict()
    assert spec["title"]["text"] == "nDCG@10 by popularity"
    assert len(spec["vconcat"]) == 2
    assert len(spec["datasets"]["rows"]) == 8
    with pytest.raises(SettingError, match="unknown metric 'AP'"):
        found.figure("AP")


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
        "--bootstrap",
        0,
        "--format",
        "json",
        "--figure",
        figure,
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == small(metrics="P@2", m=5).table().to_dicts()
    assert json.loads(figure.read_text())["title"]["text"] == "P@2 by popularity"
    shown = call(*basic(files), "-m", "P@2", "--strata", 2, "--bootstrap", 20)
    assert "shares add up to 1" in shown.stdout
    heads = call(
        *basic(files),
        "-m",
        "P@2,RR",
        "--strata",
        3,
        "--bootstrap",
        0,
        "--heads",
        "--format",
        "csv",
        "-q",
    )
    assert heads.stdout.startswith("metric,system,score,head,rest")
    assert len(heads.stdout.splitlines()) == 5
    groups = call(
        *basic(files),
        "-m",
        "P@2",
        "--by",
        files / "groups.csv",
        "--bootstrap",
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
    found = strata(us.targets.AllItems().lists(split, liked=4), models, "P@10", bootstrap=100)
    assert found.share[0].sum(axis=1) == pytest.approx([1.0, 1.0])
    assert found.share[0, 0, 0] > 0.99
    assert found.share[0, 1, 0] < 0.6
