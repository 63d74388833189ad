"""`timeline`: the same numbers as by hand, on windows and ages; the command; what is refused."""

import json

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.commands import run
from unskew.errors import DataError, SettingError

SYSTEMS = {"pop": us.recommend.Popularity(), "knn": us.recommend.ItemKNN(k=5)}


def events(seed=0, users=60, items=30, rows=1800):
    """A log whose tastes turn after two thirds, and whose last users come late."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, 120 * 86_400, rows))
    late = time > 80 * 86_400
    user = np.where(late, rng.integers(users, size=rows), rng.integers(users - 8, size=rows))
    group = (user + late) % 3
    item = np.where(
        rng.random(rows) < 0.85, rng.integers(items // 3, size=rows) * 3 + group,
        rng.integers(items, size=rows),
    )  # fmt: skip
    return pl.DataFrame({"user": user, "item": item, "time": 1_600_000_000 + time})


@pytest.fixture(scope="module")
def log():
    return us.read_events(events())


@pytest.fixture(scope="module")
def result(log):
    windows = us.splits.Windows(number=4, test=0.5)
    return us.experiment.timeline(
        log, SYSTEMS, ["nDCG@5", "RR"], windows=windows, ages=["0d", "10d", "20d"],
        permutations=199, resamples=20,
    )  # fmt: skip


def by_hand(split, users=None):
    lists = us.targets.TrainItems().lists(split, us.Relevance(liked=1, gain="binary"))
    models = {name: one.fit(split.train, 0) for name, one in SYSTEMS.items()}
    table = us.evaluate(lists, models, "nDCG@5").per_user()
    warm = table.filter((pl.col("test") > 0) & (pl.col("train") > 0))
    if users is not None:
        warm = warm.filter(pl.col("user").is_in(users))
    return dict(warm.group_by("system").agg(pl.col("nDCG@5").fill_nan(0).mean()).iter_rows())


def test_windows_are_judged_as_by_hand(log, result):
    splits = us.splits.Windows(number=4, test=0.5).split(log)
    spans = result.parts["windows"].rows
    for split, span in zip(splits, spans.iter_rows(named=True), strict=True):
        rows = result.parts["means"]["nDCG@5"].rows.filter(window=span["window"])
        assert dict(rows.select("system", "value").iter_rows()) == pytest.approx(by_hand(split))
        tested, trained = (np.diff(part.start) > 0 for part in (split.test, split.train))
        assert span["n"] == tested.sum()
        assert span["cold"] == (tested & ~trained).sum()
        assert set(rows["n"]) == {int((tested & trained).sum())}
    assert spans["cold"].sum() > 0
    assert spans["start"].is_sorted()


def test_ages_are_judged_on_the_last_window(log, result):
    last = result.parts["windows"].rows["start"][-1]
    splits = us.splits.ModelAges(ages=("0d", "10d", "20d"), at=last).split(log)
    users = log.users.raw(np.flatnonzero(splits[0].judged).astype(np.int32)).to_list()
    for split, age in zip(splits, ("0", "10d", "20d"), strict=True):
        rows = result.parts["ages"]["nDCG@5"].rows.filter(age=age)
        assert dict(rows.select("system", "mean").iter_rows()) == pytest.approx(
            by_hand(split, users)
        )
    assert result.parts["ages"].values_of("age") == ["0", "10d", "20d"]
    assert len(splits[0].test) == len(us.splits.Windows(number=4, test=0.5).split(log)[-1].test)


def test_text_files_and_figures(result, tmp_path):
    text = str(result)
    assert text.count("\n") < 75
    assert text.startswith("windows\nwindow from  to ")
    assert "nDCG@5 (higher is better)\nwindow " in text
    assert "cold users (without training ratings) are counted and left out of all means" in text
    assert "age and the amount of training change together" in text
    for line in result.conclusion:
        assert line in text
    assert "every system is trained again for every window" in text
    content = json.loads(json.dumps(result.to_dict()))
    assert len(content["parts"]["windows"]["rows"]) == 4
    assert content["card"]["plan"]["metrics"] == ["nDCG@5", "RR"]
    for ending in ("html", "md", "json"):
        us.report.save_report(result, tmp_path / f"t.{ending}")
        assert (tmp_path / f"t.{ending}").stat().st_size > 1000
    page = json.loads((tmp_path / "t.json").read_text())
    assert list(page["sections"]) == [
        *("windows", "means", "changes", "ages", "answer", "tau", "age_means", "method")
    ]
    assert us.report.Estimates.from_dict(page).rows.equals(result.rows)
    assert result.figure(metric="RR").to_svg().startswith("<svg")
    assert result.figure("ages", "RR").to_svg().startswith("<svg")


def test_ratings_and_workers_give_the_same(log, result):
    plain = us.experiment.timeline(
        log.to_ratings(), SYSTEMS, windows=us.splits.Windows(number=2), permutations=99, resamples=0
    )
    assert "ages" not in plain.parts
    frame = events().sample(fraction=1, shuffle=True, seed=3)
    again = us.experiment.timeline(
        us.read_events(frame), SYSTEMS, ["nDCG@5", "RR"],
        windows=us.splits.Windows(number=4, test=0.5), ages=["0d", "10d", "20d"],
        permutations=199, resamples=20,
    )  # fmt: skip
    first, second = result.to_dict(), again.to_dict()
    assert first["rows"] == second["rows"]
    assert first["card"]["tau_by_chance"] == second["card"]["tau_by_chance"]
    for name, part in first["parts"].items():
        assert part["rows"] == second["parts"][name]["rows"]


def test_what_cannot_be_shown_is_refused(log):
    with pytest.raises(SettingError, match="at least 2 systems"):
        us.experiment.timeline(log, {"pop": us.recommend.Popularity()})
    with pytest.raises(DataError, match="time"):
        us.experiment.timeline(us.read_ratings(events().drop("time"), duplicates="first"), SYSTEMS)
    with pytest.raises(SettingError, match="ages"):
        us.experiment.timeline(log, SYSTEMS, ages=["30d"])


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    events().write_csv("log.csv")
    given = ["timeline", "log.csv", "--event-log", "-a", "popularity", "-a", "item-knn:k=5", "-m",
             "RR", "--windows", "3", "--resamples", "10"]  # fmt: skip
    code, out = run(capsys, *given, "--ages", "0d,10d", "-o", "t.html")
    assert code == 0
    assert "RR (higher is better)" in out
    assert "RR: older less youngest model" in out
    assert "t.html" in out
    assert "vega" in (tmp_path / "t.html").read_text().lower()
    code, out = run(capsys, *given, "-q")
    assert code == 0
    assert out.startswith("RR: ")
    code, out = run(capsys, *given, "--format", "json")
    assert code == 0
    code, out = run(capsys, *given, "--length", "500d")
    assert code == 1
    assert "500d" in out
    events().drop("time").write_csv("bare.csv")
    code, out = run(capsys, "timeline", "bare.csv", "--duplicates", "first", "-m", "RR")
    assert code == 1
    assert "--columns time=…" in out
    (tmp_path / "broken.csv").write_text("user,item,time\n1,2,yesterday\n")
    code, out = run(capsys, "timeline", "broken.csv", "--event-log")
    assert code == 1
    assert "yesterday" in out
    assert "Traceback" not in out


def test_a_window_of_cold_users_is_named():
    log = {"user": np.arange(60), "item": np.arange(60) % 7, "time": np.arange(60) * 3600}
    with pytest.raises(us.DataError, match=r"no user of the window from 1970-.* \(6 users, all"):
        us.experiment.timeline(us.read_events(log))


def test_scores_without_a_common_user_name_their_window():
    table = {"user": [1, 2, 1], "window": ["x", "x", "y"], "a": [0.1, 0.2, None], "b": [1.0, 0, 1]}
    with pytest.raises(us.DataError, match="window 'y'"):
        us.stats.order_changes(table)
