"""Robustness: smaller test sets without ranking anew, equal to evaluating them for real."""

import json
import math

import numpy as np
import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import unskew as us
import unskew.cli
from shared.real_data import real_data
from unskew import DataError, SettingError
from unskew.arrays import frozen
from unskew.cli.command import callback
from unskew.data.ratings import under_one_numbering
from unskew.metrics.names import parse
from unskew.splits.split import Split
from unskew.stats.agreement.robustness import robustness, user_robustness
from unskew.stats.agreement.smaller_tests import slot_of
from unskew.stats.correlation import kendall

METRICS = [
    "P@5", "P", "set_P", "P(per=list)@7", "Recall@5", "AP", "AP@3", "RR", "nDCG", "nDCG@5", "DCG@4",
    "bpref@5", "infAP@5", "infAP(pool=judged)@5", "infAP(pool=all)", "HitRate@3", "anti-P@5",
    "anti-nDCG@5", "anti-Recall",
]  # fmt: skip
# These have no sum over hits of their own and take the general way.
OTHERS = ["condensed-AP@3", "SR(gamma=1)@5", "Recall(per=min)@5", "F1@5", "Judged@5", "Rprec"]


def world(users=150, items=40, systems=5, seed=3, pooled=False):
    """Return training and test ratings and runs; some users lack a list, some a judgment."""
    rng = np.random.default_rng(seed)
    train, test = [], []
    runs = {f"s{n}": {} for n in range(systems)}
    for u in range(users):
        order = rng.permutation(items)
        rated = order[: rng.integers(2, 20)]
        cut = int(rng.integers(0, len(rated)))
        train += [(u, int(i), int(rng.integers(1, 6))) for i in rated[:cut]]
        test += [(u, int(i), int(rng.integers(1, 6))) for i in rated[cut:]]
        rest = np.setdiff1d(order, rated[:cut])
        for n, lists in enumerate(runs.values()):
            if rng.random() < 0.95:
                good = np.isin(rest, rated[cut:]) * (0.1 + 0.1 * n)
                best = np.argsort(-(rng.random(rest.size) + good))
                lists[u] = [int(i) for i in rest[best][: rng.integers(1, 12)]]
    names = ["user", "item", "rating"]
    return *(pl.DataFrame(rows, names, orient="row") for rows in (train, test)), runs


@pytest.fixture(scope="module")
def data():
    return world()


def evaluated(test, runs, metrics, **settings):
    """Return the means metrics x systems of a test set that is really evaluated."""
    means = us.evaluate(test, runs, metrics, liked=4, **settings).means()
    return np.array([[means[name][metric] for name in runs] for metric in metrics])


def means_of(result, column="value"):
    """Return the means metrics x shares x systems."""
    part = result.parts["means"]
    shape = len(part.values_of("metric")), len(part.values_of("share")), len(part.systems)
    return part.rows[column].to_numpy().reshape(shape)


def test_the_metrics_above_take_the_ways_that_are_meant():
    assert all(slot_of(parse(metric)) is not None for metric in METRICS)
    assert all(slot_of(parse(metric)) is None for metric in OTHERS)


@pytest.mark.parametrize(
    "users", ["with-test", "with-relevant", "both", "with-list", "with-train", "warm"]
)
@pytest.mark.parametrize("per", ["user", "all"])
def test_a_sparse_sample_is_what_sparsity_sample_gives(data, users, per):
    train, test, runs = data
    metrics = METRICS + OTHERS
    settings = {"shares": [0.7, 0.2], "per": per, "train": train, "liked": 4, "users": users}
    both = robustness(test, runs, metrics, samples=2, seed=3, **settings)
    singly = [robustness(test, runs, metrics, samples=1, seed=3 + n, **settings) for n in range(2)]
    ratings = us.read_ratings(test)
    for s, share in enumerate(both.values_of("share")):
        for n, result in enumerate(singly):
            sample = us.splits.sparsity_sample(ratings, share, 3 + n, per=per)
            scores = us.evaluate(sample, runs, metrics, liked=4, train=train, users=users)
            want = evaluated(sample, runs, metrics, train=train, users=users)
            assert means_of(result)[:, s] == pytest.approx(want, abs=1e-12)
            assert result.row(share=share).facts["judgments"] == len(sample)
            counted = max(int(scores.averaged(name).sum()) for name in runs)
            assert result.row(share=share).facts["users"] == counted
    assert means_of(both) == pytest.approx(np.mean([means_of(one) for one in singly], axis=0))
    for name in ("judgments", "users"):
        left = [one.rows[name].to_numpy() for one in singly]
        assert both.rows[name].to_numpy().tolist() == np.mean(left, axis=0).tolist()


@pytest.mark.parametrize("users", ["with-test", "both"])
def test_a_cut_is_what_popularity_cut_gives(data, users):
    train, test, runs = data
    metrics = METRICS + OTHERS
    result = robustness(
        test, runs, metrics, to="popularity", shares=[0.9, 0.5], train=train, liked=4, users=users
    )
    both = under_one_numbering(us.read_ratings(train), us.read_ratings(test))
    for s, share in enumerate(result.values_of("share")):
        cut = us.splits.popularity_cut(*both, share)
        want = evaluated(cut, runs, metrics, train=train, users=users)
        assert means_of(result)[:, s] == pytest.approx(want, abs=1e-12)
        assert result.row(share=share).facts["judgments"] == len(cut)


def test_undefined_values_can_be_left_out(data):
    _, test, runs = data
    metrics = ["Recall@5", "nDCG@5"]
    result = robustness(
        test, runs, metrics, shares=[0.3], samples=1, liked=4, undefined="skip", seed=1
    )
    sample = us.splits.sparsity_sample(us.read_ratings(test), 0.3, 1)
    want = evaluated(sample, runs, metrics, undefined="skip")
    assert means_of(result)[:, 0] == pytest.approx(want, abs=1e-12)


def test_pooled_items_and_other_ids_than_the_runs():
    """Runs may number items otherwise (text): the sample is that of the test set all the same."""
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}", int(rng.integers(1, 6))) for u in range(40) for i in range(12)]
    test = pl.DataFrame(rows, ["user", "item", "rating"], orient="row").sample(300, seed=1)
    runs = {
        name: {f"u{u}": [f"i{i}" for i in rng.permutation(15)[:8]] for u in range(42)}
        for name in "abc"
    }
    settings = {"shares": [0.5], "samples": 1, "liked": 4}
    for n in range(3):
        result = robustness(test, runs, ["P@5", "nDCG@5"], seed=n, **settings)
        sample = us.splits.sparsity_sample(us.read_ratings(test), 0.5, n)
        want = evaluated(sample, runs, ["P@5", "nDCG@5"])
        assert means_of(result)[:, 0] == pytest.approx(want, abs=1e-12)


def test_a_marked_pool_decides_infap_on_both_ways():
    """Sums over hits take the pool that the judgments mark, as values of users do."""
    rng = np.random.default_rng(5)
    rows = [(u, i, int(rng.integers(-1, 6))) for u in range(30) for i in range(12)]
    frame = pl.DataFrame(rows, ["user", "item", "rating"], orient="row").sample(250, seed=1)
    grade = frame["rating"].cast(pl.Float64)
    test = us.Ratings.of(frame["user"], frame["item"], grade, tags={"pooled": grade < 0})
    runs = {name: {u: rng.permutation(15)[:8].tolist() for u in range(30)} for name in "ab"}
    metrics = ["infAP", "infAP(pool=judged)", "infAP(pool=all)"]
    for seed in (1, 2):
        result = robustness(test, runs, metrics, shares=[0.5], samples=1, liked=4, seed=seed)
        want = evaluated(us.splits.sparsity_sample(test, 0.5, seed), runs, metrics)
        assert means_of(result)[:, 0] == pytest.approx(want, abs=1e-12)
        assert (want[0] == want[1]).all()
        assert (want[0] < want[2]).all()


def test_integers_against_text_ids():
    """Ids that sort otherwise as text than as numbers keep their draws."""
    rng = np.random.default_rng(2)
    rows = [(u, i, int(rng.integers(1, 6))) for u in range(8, 30) for i in range(7, 20)]
    test = pl.DataFrame(rows, ["user", "item", "rating"], orient="row").sample(150, seed=1)
    lists = {
        name: {str(u): [str(i) for i in rng.permutation(25)[:6]] for u in [*range(8, 30), "x"]}
        for name in "abc"
    }
    for n in range(2):
        result = robustness(test, lists, "P@5", shares=[0.5], samples=1, liked=4, seed=n)
        sample = us.splits.sparsity_sample(us.read_ratings(test), 0.5, n)
        want = evaluated(sample, lists, ["P@5"])
        assert means_of(result)[:, 0] == pytest.approx(want, abs=1e-12)


def test_tau_is_scipys(data):
    stats = pytest.importorskip("scipy.stats")
    _, test, runs = data
    settings = {"shares": [0.6, 0.2], "liked": 4}
    found = []
    for n in range(5):
        result = robustness(test, runs, ["P@5", "nDCG@5"], samples=1, seed=n, **settings)
        # Equal sums may differ in their last bits; these are ties.
        means, full = (np.round(means_of(result, name), 12) for name in ("value", "full"))
        pairs = zip(means.reshape(4, -1), full.reshape(4, -1), strict=True)
        want = [stats.kendalltau(*pair).statistic for pair in pairs]
        assert result.rows["value"].to_list() == pytest.approx(want)
        found.append(want)
    together = robustness(test, runs, ["P@5", "nDCG@5"], samples=5, **settings).rows
    assert together["value"].to_list() == pytest.approx(np.mean(found, axis=0).tolist())
    assert together["sd"].to_list() == pytest.approx(np.std(found, axis=0, ddof=1).tolist())
    assert together["lowest"].to_list() == pytest.approx(np.min(found, axis=0).tolist())
    assert together["highest"].to_list() == pytest.approx(np.max(found, axis=0).tolist())


def test_a_share_of_1_changes_nothing(data):
    train, test, runs = data
    for to in ("sparsity", "popularity"):
        result = robustness(
            test, runs, METRICS, to=to, shares=[1.0], samples=2, train=train, liked=4
        )
        assert (result.rows["lowest"] == 1).all()
        assert result.rows["judgments"].to_list() == [test.height] * len(METRICS)
        assert result.rows["samples"][0] == (2 if to == "sparsity" else 1)
        assert "not averaged" not in str(result)


def test_smaller_samples_are_parts_of_larger_ones(data):
    """So a curve over shares is smooth: the same draws at every share."""
    _, test, runs = data
    both = robustness(test, runs, "P@5", shares=[0.5, 0.2], samples=3, liked=4)
    alone = robustness(test, runs, "P@5", shares=[0.2], samples=3, liked=4)
    assert np.array_equal(means_of(both)[:, 1], means_of(alone)[:, 0])


def test_same_bits_for_any_threads_and_memory(data):
    train, test, runs = data
    settings = {"shares": [0.5, 0.1], "samples": 3, "liked": 4, "train": train}
    want = robustness(test, runs, METRICS + OTHERS, threads=1, **settings)
    for change in ({"threads": 3}, {"memory": "1MiB"}, {"threads": 2, "memory": 1 << 20}):
        got = robustness(test, runs, METRICS + OTHERS, **settings, **change)
        assert means_of(got).tobytes() == means_of(want).tobytes()
        assert got.rows.equals(want.rows)


def test_many_blocks_of_lists_give_the_same_bits(data, monkeypatch):
    from unskew.stats.agreement import smaller_tests as module

    _, test, runs = data
    want = robustness(test, runs, METRICS, shares=[0.4], samples=2, liked=4)
    monkeypatch.setattr(module, "_lists_per_block", lambda *_: 7)
    got = robustness(test, runs, METRICS, shares=[0.4], samples=2, liked=4)
    assert means_of(got).tobytes() == means_of(want).tobytes()
    assert got.rows.equals(want.rows)


def test_equal_sums_are_ties():
    """Two systems that swap two users' values are equal, whatever the order of the sum."""
    users = range(30)
    test = {
        "user": [u for u in users for _ in range(3)],
        "item": [0, 1, 2] * 30,
        "rating": [5, 5, 1] * 30,
    }
    first = {u: [0] if u % 2 else [2, 0, 1] for u in users}
    second = {u: [2, 0, 1] if u % 2 else [0] for u in users}
    runs = {"a": first, "b": second, "c": {u: [2] for u in users}}
    result = robustness(test, runs, ["nDCG@3", "AP", "RR"], shares=[1.0], samples=1, liked=4)
    full = means_of(result, "full")
    for column in range(3):
        assert full[column, 0, 0] == pytest.approx(full[column, 0, 1])
    assert (result.rows["value"] == 1).all()


def test_all_systems_equal_is_undefined_and_counted():
    test = {"user": [1, 1, 2], "item": [1, 2, 1], "rating": [5, 5, 5]}
    runs = {"a": {1: [1], 2: [1]}, "b": {1: [3], 2: [2]}}
    train = {"user": [7, 8, 9], "item": [1, 1, 2], "rating": [5, 5, 5]}
    result = robustness(test, runs, "P@1", to="popularity", shares=[0.5], train=train, liked=4)
    row = result.row()
    assert (row.value, row.facts["undefined"]) == (None, 1)
    assert (row.facts["judgments"], row.facts["users"]) == (1.0, 1.0)
    assert "undefined (all systems equal): 1 of 1" in str(result)
    assert result.parts["summary"].row().value is None


def test_the_tables(data):
    _, test, runs = data
    result = robustness(test, runs, ["P@5", "nDCG@5"], shares=[0.5, 0.1], samples=6, liked=4)
    table = result.table()
    assert table.columns == [
        "metric", "share", "value", "sd", "lowest", "highest", "samples", "undefined", "judgments",
        "users",
    ]  # fmt: skip
    row = table.row(1, named=True)
    assert row["lowest"] <= row["value"] <= row["highest"]
    lines = [line.split() for line in str(result).splitlines()]
    assert lines[0] == ["share", "kept", "P@5", "nDCG@5"]
    at_half = [f"{result.row(metric=name, share=0.5).value:.3f}" for name in ("P@5", "nDCG@5")]
    assert lines[1] == ["50%", *at_half]
    summary = result.parts["summary"].rows
    assert summary["value"].is_sorted(descending=True)
    for metric, tau, least, undefined in summary.iter_rows():
        taus = table.filter(metric=metric)["value"]
        assert (tau, least) == (pytest.approx(taus.mean()), pytest.approx(taus.min()))
        assert undefined == 0
    systems = result.parts["means"].rows
    assert systems.height == 2 * 2 * len(runs)
    full = us.evaluate(test, runs, "P@5", liked=4).mean("P@5")
    assert systems.row(0, named=True)["full"] == pytest.approx(full["s0"])
    assert "users without remaining judgments are not averaged" in str(result)
    assert "<table" in result._repr_html_()
    assert "robustness to sparsity: 2 metrics, 2 shares" in result._repr_html_()
    figure = result.figure()
    assert len(figure.to_dict()["datasets"]["rows"]) == 4
    assert len(result.figure(metric="P@5").to_dict()["datasets"]["rows"]) == 2


def test_of_many_metrics_the_summary_is_printed(data):
    _, test, runs = data
    metrics = [f"P@{k}" for k in range(1, 9)]
    result = robustness(test, runs, metrics, shares=[0.5, 0.1], samples=2, liked=4)
    lines = str(result).splitlines()
    assert lines[0].split() == ["metric", "mean", "τ", "lowest", "τ"]
    assert [line.split()[0] for line in lines[1:9]] == result.parts["summary"].values_of("metric")


def test_clear_errors(data):
    _, test, runs = data
    one = {"s0": runs["s0"]}
    cases = [
        ({"runs": one}, DataError, r"at least 2 systems, got 1 \(s0\)"),
        ({"shares": [0]}, SettingError, "shares must be a share between 0 and 1"),
        ({"shares": []}, SettingError, "no shares"),
        ({"samples": 0}, SettingError, "samples must be a whole number from 1 up, got 0"),
        ({"to": "popularity"}, DataError, "needs the training ratings"),
        ({"to": "sparsty"}, SettingError, "Did you mean 'sparsity'"),
        ({"per": "item"}, SettingError, "unknown per 'item'"),
        ({"users": "with-train"}, SettingError, "with-train"),
        ({"depth": 0}, SettingError, "depth must be a whole number from 1 up"),
        ({"relevance": us.Relevance(4)}, SettingError, "not both"),
    ]
    for change, kind, text in cases:
        settings = {"runs": runs, "liked": 4, **change}
        chosen = settings.pop("runs")
        with pytest.raises(kind, match=text):
            robustness(test, chosen, "P@5", **settings)


def test_target_lists_are_refused(data):
    train, test, runs = data
    both = under_one_numbering(us.read_ratings(train), us.read_ratings(test))
    lists = us.targets.TestItems().lists(Split(*both), liked=4)
    with pytest.raises(SettingError, match="not target lists"):
        robustness(lists, runs, "P@5")


def test_progress_ends_at_the_total(data):
    _, test, runs = data
    seen = []
    robustness(
        test, runs, ["P@5", "F1@5"], shares=[0.5], samples=4, liked=4,
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen[-1] == (8, 8)


# Fewer users


@pytest.fixture(scope="module")
def scores(data):
    _, test, runs = data
    return us.evaluate(test, runs, ["P@5", "nDCG@5", "RR"], liked=4)


def test_fewer_users(scores):
    result = user_robustness(scores, shares=[0.5, 0.1, 1.0], samples=20)
    people = result.card["users"]
    users = result["P@5"].rows["users"].to_list()
    assert users == [round(people / 2), round(people / 10), people]
    assert (result.where(share=1.0).rows["lowest"] == 1).all()
    half, tenth = (result.where(share=share).rows["value"] for share in (0.5, 0.1))
    assert (half > tenth).all()
    want = [list(scores.mean(metric).values()) for metric in result.values_of("metric")]
    assert means_of(result, "full")[:, 0] == pytest.approx(np.array(want))
    assert result.rows["judgments"].null_count() == result.rows.height
    assert any(line.endswith("20 samples per share") for line in str(result).splitlines())


def test_fewer_users_where_undefined_values_are_left_out(data):
    _, test, runs = data
    skipped = us.evaluate(test, runs, ["Recall@5", "RR"], liked=4, undefined="skip")
    result = user_robustness(skipped, shares=[1.0, 0.5], samples=2)
    metrics = result.values_of("metric")
    want = np.array([list(skipped.mean(metric).values()) for metric in metrics])
    assert means_of(result, "full")[:, 0] == pytest.approx(want)
    assert means_of(result)[:, 0] == pytest.approx(want)


def test_fewer_users_are_drawn_without_replacement_and_nested(scores):
    """Each mean is that of as many users; the smaller set is part of the larger one."""
    from unskew.stats import kernels

    number, sizes = np.array([4, 4, 5]), np.array([10, 3, 10])
    out = np.empty((3, 40))
    kernels.part(np.uint64(9), frozen(number), frozen(sizes), out)
    assert out.sum(axis=1).tolist() == [10, 3, 10]
    assert set(np.unique(out)) == {0, 1}
    assert (out[0] >= out[1]).all()
    assert not np.array_equal(out[0], out[2])


def test_fewer_users_same_bits_for_any_threads(scores):
    one = user_robustness(scores, shares=[0.5, 0.2], samples=40, threads=1)
    two = user_robustness(scores, shares=[0.5, 0.2], samples=40, threads=2)
    assert means_of(one).tobytes() == means_of(two).tobytes()
    assert one.rows.equals(two.rows)
    with pytest.raises(SettingError, match="is less than one user"):
        user_robustness(scores, shares=[0.001])


# Published values


@pytest.fixture(scope="module")
def ml1m():
    frame = pl.read_parquet(real_data("ml-1m/ratings.parquet"))
    columns = ("user", "item", "rating")
    train = us.read_ratings(frame.filter(~pl.col("valcarce_test")).select(columns))
    test = us.read_ratings(frame.filter("valcarce_test").select(columns))
    both = under_one_numbering(train, test)
    lists = us.targets.TestItems().lists(Split(*both), liked=4)
    runs = {
        "Pop": us.rank(us.recommend.Popularity().fit(both[0], 0), lists, 100),
        "Avg": us.rank(us.recommend.AverageRating().fit(both[0], 0), lists, 100),
    }
    return train, test, runs


@pytest.mark.real
def test_sizes_of_valcarce2018_samples(ml1m):
    _, test, runs = ml1m
    result = robustness(test, runs, "P@10", shares=[0.9, 0.5, 0.05], samples=1, liked=4)
    assert result.rows["judgments"].to_list() == [177_761, 98_721, 9_515]


@pytest.mark.real
def test_popularity_cuts_of_valcarce2018(ml1m):
    """Judgments and users left at 36 levels, and the popularity run's values at each of them."""
    train, test, runs = ml1m
    levels = pl.read_csv(real_data("published/valcarce2018_ml-1m_popularity_levels.csv"))
    levels = levels.sort("kept_items_share")
    metrics = [
        "P_5", "P_10", "ndcg", "ndcg_cut_10", "ndcg_cut_100", "map", "map_cut_20", "recip_rank",
        "bpref", "infAP2", "set_P", "set_recall",
    ]  # fmt: skip
    result = robustness(
        test, runs, metrics, to="popularity", shares=levels["kept_items_share"].to_list(),
        train=train, liked=4, gain="rating", users="both",
    )  # fmt: skip
    for name in ("judgments", "users"):
        assert result.rows[name].head(levels.height).to_list() == levels[name].to_list()
    released = pl.read_csv(real_data("published/valcarce2018_ml-1m_results.csv"))
    pop = released.filter(pl.col("Recommender") == "run-Pop-ml-1M").sort("Percentage")
    for m, metric in enumerate(metrics):
        assert means_of(result)[m, :, 0] == pytest.approx(pop[metric].to_numpy(), abs=5.1e-5)


@pytest.mark.real
def test_robustness_to_popularity_of_valcarce2018():
    """Figure 7a: over cuts of 1 to 20 %, P is the most robust metric on ML-1M and MRR the least."""
    released = pl.read_csv(real_data("published/valcarce2018_ml-1m_results.csv"))

    def order(share, metric):
        rows = released.filter((pl.col("Percentage") - share).abs() < 1e-9)
        return dict(rows.select("Recommender", metric).iter_rows())

    shares = [1 - step / 100 for step in range(1, 21)]

    def mean(metric):
        full = order(1.0, metric)
        return np.mean([kendall(order(share, metric), full) for share in shares])

    names = ("set_P", "set_recall", "map", "ndcg", "recip_rank", "bpref", "infAP2")
    means = {name: mean(name) for name in names}
    assert max(means, key=means.get) == "set_P"
    assert min(means, key=means.get) == "recip_rank"
    assert means["set_P"] == pytest.approx(0.650, abs=5e-4)
    assert means["recip_rank"] == pytest.approx(0.306, abs=5e-4)
    # Figure 3: deeper cutoffs of nDCG are more robust.
    assert mean("ndcg_cut_5") == pytest.approx(0.247, abs=5e-4)
    assert mean("ndcg_cut_100") == pytest.approx(0.511, abs=5e-4)


# The command


app = typer.Typer()
app.command()(callback("robustness"))


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory, data, scores):
    train, test, runs = data
    home = tmp_path_factory.mktemp("robustness")
    train.write_csv(home / "train.csv")
    test.write_csv(home / "test.csv")
    for name, lists in runs.items():
        us.read_run(lists).to_csv(home / f"{name}.csv")
    scores.save(home / "saved")
    return home


def inputs_of(home, runs):
    given = ["-j", home / "test.csv", "--liked", 4, "-m", "P@5,nDCG@5"]
    return [*given, *(part for name in runs for part in ("-r", home / f"{name}.csv"))]


def test_command_on_runs(files, data):
    _, test, runs = data
    done = call(*inputs_of(files, runs), "--share", "0.5,0.2", "--samples", 4, "--format", "json")
    assert done.exit_code == 0, done.output
    want = robustness(test, runs, ["P@5", "nDCG@5"], shares=[0.5, 0.2], samples=4, liked=4)
    content, expected = json.loads(done.stdout), want.to_dict()
    assert [content[name] for name in ("rows", "parts")] == [expected[n] for n in ("rows", "parts")]
    table = call(*inputs_of(files, runs), "--share", 0.5, "--samples", 2)
    assert "nDCG@5" in table.stdout
    assert "2 samples per share" in table.stdout


def test_command_on_popularity(files, data):
    _, _, runs = data
    more = ["--to", "popularity", "--share", 0.8, "--format", "markdown", "-q"]
    done = call(*inputs_of(files, runs), "--train", files / "train.csv", *more)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "| share kept | P@5 | nDCG@5 |"
    arguments = ["robustness", *inputs_of(files, runs), "--to", "popularity"]
    missing = CliRunner().invoke(unskew.cli.app, [str(argument) for argument in arguments])
    assert missing.exit_code == 1
    assert "give --train" in missing.stderr


def test_command_on_saved_scores(files, tmp_path):
    figure = tmp_path / "chart.json"
    done = call("--scores", files / "saved", "--samples", 3, "--format", "csv", "--figure", figure)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("metric,share,value")
    assert json.loads(figure.read_text())["title"]["text"] == "robustness to users"


def test_command_on_users_of_runs(files, data):
    done = call(
        *inputs_of(files, data[2]), "--to", "users", "--share", 0.5, "--samples", 3, "--format",
        "csv",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "give --judgments and --run, or --scores"),
        (["--scores", "x", "-j", "y"], "not both"),
        (["--scores", "x", "--to", "sparsity"], "scores hold no judgments"),
        (["--scores", "x", "--format", "xml"], "unknown format 'xml'"),
        (["--scores", "x", "--share", "half"], "write shares as 0.5"),
        (["--scores", "nowhere"], "no saved scores here"),
    ],
)
def test_command_errors(arguments, text):
    problem = call(*arguments).exception
    assert isinstance(problem, us.UnskewError)
    assert text in str(problem)


def test_help_has_examples():
    assert "unskew robustness" in call("--help").stdout


@pytest.mark.slow
def test_a_thousand_samples_are_quick():
    """At least five times faster than evaluating each sample, measured in one run."""
    import time

    _, test, runs = world(users=1000, items=200, systems=10, seed=1)
    metrics = [f"{name}@{k}" for name in ("P", "Recall", "AP", "nDCG", "bpref") for k in (1, 3, 10)]
    settings = {"liked": 4, "threads": 1}
    robustness(test, runs, metrics, shares=[0.5], samples=2, **settings)
    lists = {name: us.read_run(run) for name, run in runs.items()}
    ratings = us.read_ratings(test)
    begun = time.thread_time()
    robustness(ratings, lists, metrics, shares=[0.5], samples=100, **settings)
    ours = (time.thread_time() - begun) / 100
    begun = time.thread_time()
    for n in range(5):
        us.evaluate(us.splits.sparsity_sample(ratings, 0.5, n), lists, metrics, **settings).means()
    plain = (time.thread_time() - begun) / 5
    assert not math.isnan(ours)
    assert ours * 5 < plain
