"""The numbers that readers of a report choose from: equal to plain twins, small, and complete."""

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.auditing.audit import audit
from unskew.auditing.core.core import Core
from unskew.auditing.designs import DESIGNS, METRICS
from unskew.auditing.measurements import DesignMeans, places
from unskew.auditing.page.headline import BEST, explored, explorer_of, metric_parts, users_ahead
from unskew.data.ratings import Ids
from unskew.data.relevance import Relevance
from unskew.evaluation.scores import Scores, System
from unskew.report import explorer as report_explorer
from unskew.report.explorer import panel
from unskew.stats.special import student_t_quantile

SMALL = {"repeats": 2, "permutations": 200}
SYSTEMS = ["random", "popularity", "average-rating", "user-knn"]


@pytest.fixture(scope="module")
def result():
    shop = us.world("shop", users=120, items=60, seed=3)
    return audit(shop, "quick", algorithms=SYSTEMS, designs=["all-items", "1r", "p1r"], **SMALL)


@pytest.fixture(scope="module")
def explorer(result):
    return explorer_of(result)


def chosen(frame, metric, design, users):
    name, cutoff = metric_parts(metric)
    return frame.filter(
        pl.col("metric") == name,
        pl.col("cutoff").eq_missing(cutoff),
        pl.col("design") == design,
        pl.col("users") == users,
    )


def test_the_first_choice_is_the_table_of_the_audit(result, explorer):
    start = explorer.start
    assert f"{start['metric']}@{start['cutoff']}" == result.metric
    assert (start["design"], start["users"]) == (result.common, "warm")
    for design in result.designs:
        part = chosen(explorer.scores, result.metric, design, "warm")
        table = result.table().filter(pl.col("design") == design)
        assert table.height == len(result.systems) == part.height
        columns = ["system", "value", "low", "high", "place"]
        assert part.select(columns).equals(table.select(columns))
        assert part["chance"].to_list() == table["random"].to_list()


def test_every_metric_design_and_group_of_users_is_there(result, explorer):
    keys = explorer.scores.select("metric", "cutoff", "design", "users").unique()
    metrics = {metric_parts(label) for label in METRICS}
    assert set(keys.select("metric", "cutoff").rows()) == metrics
    assert keys.height == len(metrics) * len(result.designs) * 2
    assert explorer.better["anti-P"] == explorer.better["nDCL"] == "lower"
    assert explorer.better["P"] == "higher"


@pytest.mark.parametrize("metric", ["P@10", "anti-P@10", "nDCG@5"])
@pytest.mark.parametrize("users", ["all", "warm"])
def test_means_and_differences_are_those_of_plain_arrays(result, explorer, metric, users):
    """One list per user: a user's value is the sum over splits of value / users of the split."""
    totals, averages, means = {}, {}, []
    for part in result.core.scores["all-items"]:
        lists = part.lists
        keep = lists["test"].to_numpy() > 0
        if users == "warm":
            keep &= lists["train"].to_numpy() > 0
        owner = lists["user"].to_numpy()[keep]
        values = np.array([part.values(name, metric)[keep] for name in result.systems])
        values = np.nan_to_num(values)
        means.append(values.mean(axis=1))
        for user, column in zip(owner.tolist(), values.T, strict=True):
            totals[user] = totals.get(user, 0) + column / keep.sum()
            averages.setdefault(user, []).append(column)
    n = len(totals)
    each = np.array(list(totals.values())) * n / len(means)
    wide = student_t_quantile(0.975, n - 1) / n**0.5
    part = chosen(explorer.scores, metric, "all-items", users)
    mean = np.mean(means, axis=0)
    assert part["system"].to_list() == list(result.systems)
    np.testing.assert_allclose(part["value"], mean, rtol=1e-12)
    np.testing.assert_allclose(part["low"], mean - wide * each.std(axis=0, ddof=1), rtol=1e-9)
    sign = -1 if metric.startswith("anti") else 1
    wanted = [1 + sum(sign * other > sign * one for other in mean) for one in mean]
    assert part["place"].to_list() == wanted
    by_user = np.array([np.mean(one, axis=0) for one in averages.values()])
    rows = chosen(explorer.pairs, metric, "all-items", users)
    assert rows.height == 6
    for row in rows.iter_rows(named=True):
        a, b = (result.systems.index(row[side]) for side in "ab")
        apart = each[:, a] - each[:, b]
        assert row["difference"] == pytest.approx(mean[a] - mean[b], abs=1e-12)
        assert row["high"] - row["difference"] == pytest.approx(wide * apart.std(ddof=1), rel=1e-9)
        ahead = sign * (by_user[:, a] - by_user[:, b])
        counts = ((ahead > 1e-12).sum(), (ahead < -1e-12).sum(), (abs(ahead) <= 1e-12).sum())
        assert (row["better"], row["worse"], row["same"]) == counts


def test_users_are_counted_as_on_the_first_screen(result, explorer):
    for design, parts in result.scores.items():
        for row in chosen(explorer.pairs, result.metric, design, "warm").iter_rows(named=True):
            count = users_ahead(parts, result.metric, row["a"], row["b"])
            assert (row["better"], row["worse"], row["same"]) == (
                count.better,
                count.worse,
                count.same,
            )


def test_given_lists_have_an_explorer_too():
    test = {"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2], "rating": [5, 2, 4, 1, 5]}
    runs = {"mine": {1: [1, 2], 2: [1, 3], 3: [2, 1]}, "theirs": {1: [2, 1], 2: [3, 1], 3: [1, 2]}}
    made = audit(judgments=test, runs=runs, plan="quick", liked=4, **SMALL)
    explorer = explorer_of(made)
    assert explorer.scores["users"].unique().to_list() == ["all"]
    assert explorer.start["users"] == "all"
    part = chosen(explorer.scores, made.metric, made.common, "all")
    table = made.table().filter(pl.col("design") == made.common)
    assert part["value"].to_list() == table["value"].to_list()
    assert {explorer.start["a"], explorer.start["b"]} == {"mine", "theirs"}
    assert "look-closer" in panel(explorer)


def test_places_leave_undefined_values_for_last():
    values = np.array([0.5, np.nan, 0.5, 0.7, np.nan])
    assert places(values, "higher").tolist() == [2, 4, 2, 1, 4]
    assert places(values, "lower").tolist() == [1, 4, 1, 3, 4]


def test_metrics_of_a_whole_run_have_no_interval():
    test = {"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 2, 4]}
    runs = {"a": {1: [1], 2: [3]}, "b": {1: [2], 2: [1]}}
    scores = us.evaluate(test, runs, ["P@1", "Coverage@1"], liked=4)
    of = DesignMeans((scores,), ("b", "a"))
    assert not of.is_per_user("Coverage@1")
    means = of.means("Coverage@1")
    assert np.isnan(means["low"]).all()
    assert not np.isnan(means["value"]).any()
    assert of.means("P@1", of.values("P@1"))["value"].tolist() == [0.0, 1.0]
    assert of.chance("P@1") is None


# Many systems


def many(systems=200, users=60, lists=1):
    """Return the scores of many systems under eight designs; some users are cold."""
    rng = np.random.default_rng(1)
    names = tuple(f"system {number:03d}" for number in range(systems))
    user = np.repeat(np.arange(users), lists)
    ones = np.ones(user.size, np.int64)

    def scores():
        frame = pl.DataFrame(
            {
                "user": user,
                "liked": ones,
                "disliked": 0 * ones,
                "test": ones,
                "train": (rng.random(users) > 0.1).astype(np.int64)[user],
            }
        )
        of = {
            name: System(rng.binomial(10, 0.5, (len(METRICS), user.size)) / 10, {}, 10 * ones)
            for name in names
        }
        ids = Ids(pl.Series(np.arange(users)))
        return Scores(METRICS, of, ids, frame, order=METRICS)

    made = {design: (scores(), scores()) for design in list(DESIGNS)[:8]}
    return Core(
        metric="P@10",
        k=10,
        relevance=Relevance(liked=4),
        systems=names,
        designs={design: DESIGNS[design] for design in made},
        scores=made,
        warm={d: tuple(p.lists["train"].to_numpy() > 0 for p in of) for d, of in made.items()},
    )


def test_two_hundred_systems_stay_small(monkeypatch):
    core = many()
    whole = explored(core, list(core.systems[:BEST]))
    assert whole.scores.height == 200 * len(METRICS) * 8 * 2
    assert whole.pairs.height == 45 * len(METRICS) * 8 * 2
    start = {"metric": "P", "cutoff": "10", "design": "all-items", "users": "warm"}
    start |= {"a": core.systems[0], "b": core.systems[1]}
    explorer = report_explorer.Explorer(scores=whole.scores, pairs=whole.pairs, start=start)
    text = panel(explorer)
    assert len(text) < 650_000
    monkeypatch.setattr(report_explorer, "MOST_BYTES", 200_000)
    text = panel(explorer)
    assert len(text) < 260_000
    assert "Left out, to keep this file small: " in text
    assert "nDCG@50" in text  # the last one is named as left out
    monkeypatch.setattr(report_explorer, "MOST_BYTES", 20_000)
    assert "of 200 systems can be chosen" in panel(explorer)
