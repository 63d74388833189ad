"""The gate: each rule on values where the answer is plain, and what it writes."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.gating.bounds import bounds_of
from unskew.gating.checks import (
    FAIL,
    HOLD,
    INFORM,
    NOT_SETTLED,
    OPEN,
    PASS,
    PROMOTE,
    check_values,
    verdict_of,
)
from unskew.gating.looks import spent
from unskew.gating.settings import RAILS, TEMPLATE, GateSettings, MarginRule
from unskew.gating.values import (
    GateValues,
    ListSlots,
    Pair,
    coverage_values,
    gini_values,
    lay,
    metric_of,
    popularity_values,
    slots_of,
    values_of,
)
from unskew.stats.special import student_t_quantile

OFF = dict.fromkeys(RAILS, "off")


# Bounds


def test_bounds_are_students_where_nothing_is_skewed():
    values = np.tile([0.0, 1.0], 50)
    half = student_t_quantile(0.95, 99) * values.std(ddof=1) / 10
    bounds = bounds_of(values, 0.05)
    assert bounds.low == pytest.approx(0.5 - half)
    assert bounds.high == pytest.approx(0.5 + half)


def test_bounds_of_skewed_values_are_more_cautious_than_students():
    rng = np.random.default_rng(1)
    values = -rng.exponential(size=60)
    half = student_t_quantile(0.95, 59) * values.std(ddof=1) / math.sqrt(60)
    bounds = bounds_of(values, 0.05)
    assert bounds.low < values.mean() - half  # rare large losses may be missing in the sample
    assert bounds.high == pytest.approx(values.mean() + half)


@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_miss_as_often_as_they_may(sign):
    """4,000 samples of a skewed law: |z| <= 4.5 above the level; below it is fine."""
    rng = np.random.default_rng(2)
    draws = sign * (rng.random((4_000, 150)) < 0.1) * rng.exponential(1.0, (4_000, 150))
    missed = sum(bounds_of(one, 0.05).low > sign * 0.1 for one in draws)
    assert missed <= 4_000 * 0.05 + 4.5 * math.sqrt(4_000 * 0.05 * 0.95)


def test_the_p_value_agrees_with_the_upper_bound():
    rng = np.random.default_rng(3)
    for _ in range(50):
        values = rng.exponential(size=40) - rng.uniform(0.8, 1.6)
        bounds = bounds_of(values, 0.05)
        assert (bounds.p_below <= 0.05) == (bounds.high <= 0)


def test_equal_values_are_known_exactly():
    bounds = bounds_of(np.full(30, 0.1), 0.05)
    assert (bounds.low, bounds.value, bounds.high) == (0.1, 0.1, 0.1)


def test_the_detectable_difference_is_found_in_eight_of_ten_tests():
    rng = np.random.default_rng(4)
    draws = rng.standard_normal((2_000, 100))
    least = np.mean([bounds_of(one, 0.05).detectable for one in draws])
    shown = np.mean([bounds_of(one + least, 0.05).low > 0 for one in draws])
    assert abs(shown - 0.8) < 4.5 * math.sqrt(0.8 * 0.2 / 2_000) + 0.01


# Exposure


def some_slots(seed=5, users=30, items=25, k=4):
    rng = np.random.default_rng(seed)
    weight = 1 / (1.0 + np.arange(items))
    lists = [rng.choice(items, k, replace=False, p=weight / weight.sum()) for _ in range(users)]
    return ListSlots(users, np.repeat(np.arange(users, dtype=np.int32), k), np.concatenate(lists))


def without(slots, user):
    keep = slots.owner != user
    return np.bincount(slots.item[keep], minlength=30)


def gini(counts):
    ordered = np.sort(counts)
    n = ordered.size
    return ((2 * np.arange(1, n + 1) - n - 1) * ordered).sum() / (n * ordered.sum())


def test_coverage_is_the_jackknife():
    slots, catalogue = some_slots(), np.ones(30, np.bool_)
    values = coverage_values(slots, catalogue)
    whole = np.count_nonzero(without(slots, -1)) / 30
    added = np.array([whole - np.count_nonzero(without(slots, u)) / 30 for u in range(30)])
    assert values.mean() == pytest.approx(whole)
    np.testing.assert_allclose(values, whole + 30 * (added - added.mean()))


def test_gini_is_nearly_the_jackknife():
    slots, catalogue = some_slots(users=200), np.ones(30, np.bool_)
    values = gini_values(slots, catalogue)
    whole = gini(without(slots, -1))
    added = np.array([whole - gini(without(slots, u)) for u in range(200)])
    assert values.mean() == pytest.approx(whole)
    exact = whole + 200 * (added - added.mean())
    assert values.std() == pytest.approx(exact.std(), rel=0.05)
    assert np.corrcoef(values, exact)[0, 1] > 0.99


def test_items_outside_of_the_catalogue_do_not_count():
    slots = some_slots()
    catalogue = np.arange(30) < 10
    whole = np.bincount(slots.item, minlength=30)[:10]
    assert coverage_values(slots, catalogue).mean() == pytest.approx(np.mean(whole > 0))
    assert gini_values(slots, catalogue).mean() == pytest.approx(gini(whole))


def test_popularity_is_a_mean_per_user():
    slots = ListSlots(3, np.array([0, 0, 1]), np.array([0, 1, 1]))
    assert popularity_values(slots, np.array([4.0, 2.0])).tolist() == [3.0, 2.0, 0.0]


# Rules, on values


def values(lead=0.05, *, liked=0.0, judged=0.0, users=400, seed=6, **more):
    """Return values of two systems that differ by so much in score, liked share and judged."""
    rng = np.random.default_rng(seed)

    def noisy(mean, sd):
        return mean + sd * rng.standard_normal(users)

    base = noisy(0.3, 0.1)
    judged_old = rng.poisson(3.0, users) + 1.0
    judged_new = judged_old + (rng.random(users) < judged)
    share = 0.6
    hits = [
        rng.binomial(judged_new.astype(int), share + liked).astype(float),
        rng.binomial(judged_old.astype(int), share).astype(float),
    ]
    facts = {
        "metric": Pair(base + noisy(lead, 0.1), base),
        "anti": Pair(noisy(0.1, 0.02), noisy(0.1, 0.02)),
        "liked": Pair(*hits),
        "judged": Pair(judged_new, judged_old),
        "liked_by_rank": Pair(*hits),
        "judged_by_rank": Pair(judged_new, judged_old),
        "levelled": Pair(*hits),
        "coverage": Pair(noisy(0.5, 0.1), noisy(0.5, 0.1)),
        "gini": Pair(noisy(0.7, 0.1), noisy(0.7, 0.1)),
        "popularity": Pair(noisy(50, 5), noisy(50, 5)),
        "k": 10,
        "has_dislikes": True,
        "usual": np.full(users, share),
        "light": np.arange(users) % 2 == 0,
        "segments": {"activity": (("low", "high"), np.arange(users) % 2)},
    }
    return GateValues(**{**facts, **more})


DEFAULT = GateSettings()


def decide(of, settings=DEFAULT, data=()):
    checks = check_values(of, settings, settings.alpha)
    return checks, verdict_of(checks, data)


def test_a_better_candidate_is_promoted():
    checks, verdict = decide(values(0.05))
    assert verdict == PROMOTE
    assert checks.better.outcome == PASS
    assert [one.outcome for one in checks.rails] == [PASS] * 5
    assert 0 < checks.better.low < checks.better.change < checks.better.high


def test_a_worse_candidate_is_held():
    checks, verdict = decide(values(-0.05))
    assert verdict == HOLD
    assert checks.better.outcome == FAIL


def test_a_candidate_that_cannot_be_told_apart_is_not_settled():
    checks, verdict = decide(values(0.0, seed=8))
    assert verdict == NOT_SETTLED
    assert checks.better.outcome == OPEN
    assert checks.better.detectable > 0


@pytest.mark.parametrize(
    ("margin", "verdict"), [("10%", PROMOTE), (0.03, PROMOTE), ("1%", NOT_SETTLED)]
)
def test_a_margin_lets_an_equal_candidate_pass(margin, verdict):
    settings = GateSettings().with_margin(margin)
    checks, came = decide(values(-0.003, seed=9), settings)
    assert came == verdict
    assert checks.better.limit == pytest.approx(
        -MarginRule.read("margin", margin).of(checks.better.production)
    )


def test_a_loss_beyond_the_margin_is_held():
    _, verdict = decide(values(-0.1), GateSettings().with_margin("5%"))
    assert verdict == HOLD


def test_a_metric_of_which_less_is_better_is_turned_round():
    better, worse = values(-0.05, is_lower_better=True), values(0.05, is_lower_better=True)
    assert decide(better)[0].better.outcome == PASS
    assert decide(worse)[0].better.outcome == FAIL


def test_few_different_users_settle_nothing():
    same = values(0.0)
    metric = Pair(same.metric.production + (np.arange(400) < 19) * 0.5, same.metric.production)
    checks, verdict = decide(replace(same, metric=metric))
    assert verdict == NOT_SETTLED
    assert "19 users have different scores" in checks.better.reason


def test_judged_more_and_not_liked_more_is_not_settled_and_never_held():
    checks, verdict = decide(values(0.05, judged=0.5))
    assert checks.popularity.outcome == OPEN
    assert verdict == NOT_SETTLED


def test_judged_more_and_liked_more_passes():
    checks, verdict = decide(values(0.05, judged=0.5, liked=0.2))
    assert checks.popularity.outcome == PASS
    assert verdict == PROMOTE


def test_the_check_on_popularity_can_inform_only():
    checks, verdict = decide(values(0.05, judged=0.5), GateSettings(popularity="inform"))
    assert checks.popularity.outcome == INFORM
    assert verdict == PROMOTE


def test_without_dislikes_popularity_asks_for_a_levelled_lead():
    popular = Pair(np.full(400, 55.0), np.full(400, 50.0))
    likes = {"has_dislikes": False, "anti": None, "popularity": popular}
    level = values().levelled
    ahead = Pair(level.production + 0.5 + 0.1 * (np.arange(400) % 2), level.production)
    assert decide(values(0.05, **likes))[0].popularity.outcome == OPEN
    assert decide(values(0.05, levelled=ahead, **likes))[0].popularity.outcome == PASS


GUARDED = {
    "anti": ("anti", Pair(0.3, 0.1)),
    "coverage": ("coverage", Pair(0.2, 0.5)),
    "gini": ("gini", Pair(0.9, 0.7)),
    "popularity": ("popularity", Pair(80.0, 50.0)),
}


@pytest.mark.parametrize("rail", GUARDED)
def test_a_rail_beyond_its_margin_holds_and_none_other_does(rail):
    name, means = GUARDED[rail]
    noise = 0.01 * np.random.default_rng(1).standard_normal(400)
    broken = values(0.05, **{name: Pair(*(one + noise * (1 + at) for at, one in enumerate(means)))})
    checks, verdict = decide(broken)
    assert verdict == HOLD
    assert [one.key for one in checks.rails if one.outcome == FAIL] == [f"rail {rail}"]
    off = GateSettings().with_rails({rail: "off"})
    assert decide(broken, off)[1] == PROMOTE


def test_a_rail_that_is_not_shown_to_hold_is_not_settled():
    noise = np.random.default_rng(2).standard_normal((2, 400))
    checks, verdict = decide(
        values(0.05, popularity=Pair(62.0 + 60 * noise[0], 50.0 + 60 * noise[1]))
    )
    (rail,) = [one for one in checks.rails if one.key == "rail popularity"]
    assert rail.outcome == OPEN
    assert verdict == NOT_SETTLED
    assert rail.low < rail.limit < rail.high


def test_a_rail_shows_its_bounds_on_the_side_of_its_limit():
    for one in decide(values(0.05))[0].rails:
        inside = one.low > one.limit if one.is_loss else one.high < one.limit
        assert inside, one.key
        assert one.low < one.change < one.high


def test_nothing_disliked_leaves_the_rail_out():
    checks, verdict = decide(values(0.05, anti=None))
    assert checks.rails[0].outcome == INFORM
    assert verdict == PROMOTE


def test_a_harmed_segment_holds():
    fine = values(0.1)
    harmed = fine.metric.production - 0.1 * (np.arange(400) % 8 == 1)
    gained = fine.metric.production + 0.1 * (np.arange(400) % 8 != 1)
    noise = 0.02 * np.random.default_rng(3).standard_normal(400)
    metric = Pair(harmed + gained - fine.metric.production + noise, fine.metric.production)
    code = (np.arange(400) % 8 == 1).astype(np.int64)
    checks, verdict = decide(replace(fine, metric=metric, segments={"group": (("a", "b"), code)}))
    assert checks.better.outcome == PASS
    assert [one.outcome for one in checks.segments] == [PASS, FAIL]
    assert verdict == HOLD


def test_a_group_that_stands_twice_is_tested_once():
    code = np.arange(400) % 2
    twice = {"activity": (("low", "cold"), code), "taste": (("a", "b"), code)}
    assert len(decide(values(segments=twice))[0].segments) == 2


def test_alarms_are_corrected_together():
    """A p-value of .02 among 24 is no alarm."""
    users = 1_000
    rng = np.random.default_rng(7)
    base = rng.random(users)
    many = {f"s{n}": (("a", "b"), rng.integers(0, 2, users)) for n in range(10)}
    metric = Pair(base + rng.normal(-0.05 * 0.5 - 0.013, 0.2, users), base)
    checks, _ = decide(values(users=users, metric=metric, segments=many))
    assert min(one.p_beyond for one in checks.segments) <= 0.05
    assert all(one.p_corrected >= one.p_beyond for one in checks.segments)


# From lists


@pytest.fixture(scope="module")
def shop():
    """Return test, training and lists: item-kNN, popularity, and item-kNN spoilt."""
    world = us.world("shop", users=300, items=80, seed=3)
    (split,) = us.splits.Random(test=0.3).split(world.ratings, seed=1)
    lists = us.targets.AllItems().lists(split, us.Relevance(liked=4), seed=1)
    systems = {"pop": us.recommend.Popularity(), "random": us.recommend.Random()}
    runs = {name: us.rank(one.fit(split.train, 1), lists, 10) for name, one in systems.items()}
    return split, runs


@pytest.fixture(scope="module")
def judged(shop):
    split, runs = shop
    every = runs["random"].items.values
    return us.judge(split.test, runs, liked=4, train=split.train, items=every)


def gate(judged, candidate="pop", production="random", **more):
    return us.gate(judged, candidate=candidate, production=production, references=False, **more)


def test_values_are_those_of_evaluate(judged):
    metric = metric_of("nDCG@10")
    seen = values_of(lay(judged, "pop", "random", metric))
    labels = ["nDCG@10", "anti-nDCG@10", "P@10", "Judged@10", "Coverage@10", "Gini@10", "ARP@10"]
    scores = us.evaluate(judged, labels, users="with-test")
    means = scores.means()
    for name, at in (("pop", 0), ("random", 1)):
        mean = means[name]
        assert seen.metric[at].mean() == pytest.approx(mean["nDCG@10"])
        assert seen.anti[at].mean() == pytest.approx(mean["anti-nDCG@10"])
        assert seen.liked[at].mean() == pytest.approx(10 * mean["P@10"])
        assert seen.judged[at].mean() == pytest.approx(10 * mean["Judged@10"])
        assert seen.coverage[at].mean() == pytest.approx(mean["Coverage@10"])
        assert seen.gini[at].mean() == pytest.approx(mean["Gini@10"])
        listed = scores.mean("ARP@10", users="with-list")[name]
        assert seen.popularity[at].mean() == pytest.approx(listed)


def test_levelled_counts_are_those_of_a_loop(judged):
    seen = values_of(lay(judged, "pop", "random", metric_of("P@10")))
    tests, train = judged.judgments, judged.numbering.train
    popularity = np.bincount(train.item, minlength=len(tests.items))
    liked = judged.relevance.is_liked(tests.value)
    weight = 1 / (1 + popularity[tests.item])
    weight = np.minimum(weight, np.quantile(weight[liked], 0.95))
    weight /= weight[liked].mean()
    matched = judged.matched["pop"]
    total = 0.0
    for user in range(len(tests.users)):
        listed = set(
            matched.from_run[matched.run.item[matched.start[user] : matched.stop[user]][:10]]
        )
        for row in range(tests.start[user], tests.start[user + 1]):
            total += weight[row] * (liked[row] and tests.item[row] in listed)
    assert seen.levelled.candidate.sum() == pytest.approx(total)


def test_threads_change_nothing(judged):
    one, two = (gate(judged, threads=n).to_dict() for n in (1, 2))
    assert one == two


def test_raw_data_work_as_judged_data_do(shop, judged):
    split, runs = shop
    raw = us.gate(
        split.test, runs, candidate="pop", production="random", liked=4, train=split.train,
        items=runs["random"].items.values, references=False,
    )  # fmt: skip
    assert raw.to_dict() == gate(judged).to_dict()


def test_the_printed_verdict_fits_one_screen(judged):
    for result in (gate(judged), gate(judged, "random", "pop"), gate(judged, margin="5%")):
        lines = result.brief().splitlines()
        assert str(result).startswith("\n".join(lines[:-1]))  # all notes in place of their number
        assert all(note in str(result) for note in result.notes)
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        assert lines[0].startswith(("PROMOTE", "HOLD", "NOT SETTLED"))


JARGON = ("nDCG", "p-value", "interval", "Gini", "metric", "alpha", "significan", "rail", "segment")


@pytest.mark.parametrize(
    "of", [values(), values(-0.1), values(0.0, seed=8), values(judged=0.5), values(0.0, users=1)]
)
@pytest.mark.parametrize("margin", ["off", "5%", 0.01])
def test_the_first_lines_have_no_jargon(judged, of, margin):
    settings = GateSettings().with_margin(margin)
    checks, verdict = decide(of, settings)
    parts = {"better": checks.better, "popularity": checks.popularity, "rails": checks.rails}
    result = replace(gate(judged), verdict=verdict, segments=checks.segments, data=(), **parts)
    lines = replace(result, settings=settings).first_lines()
    text = " ".join(lines)
    assert not [word for word in JARGON if word in text]
    assert all(len(line) < 240 and line.endswith(".") for line in lines)
    assert "nan" not in text
    assert "inf" not in text


def test_formats(judged, tmp_path):
    result = gate(judged, "random", "pop")
    for ending in ("html", "md", "json", "xml"):
        result.save(tmp_path / f"gate.{ending}")
    content = json.loads((tmp_path / "gate.json").read_text())
    assert content["verdict"] == "hold"
    assert content["exit_code"] == 1
    suite = ET.parse(tmp_path / "gate.xml").getroot()
    assert int(suite.get("tests")) == len(suite.findall("testcase")) == 1 + len(result.checks)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
    text = (tmp_path / "gate.md").read_text()
    assert text.startswith("**HOLD")
    assert "(gate.svg)" in text
    assert (tmp_path / "gate.svg").read_text().startswith("<svg")
    assert "HOLD: keep pop" in (tmp_path / "gate.html").read_text()
    with pytest.raises(us.UnknownName, match="file ending"):
        result.save(tmp_path / "gate.csv")
    assert result._repr_html_()
    assert repr(result) == "Gate(hold, random for pop)"
    assert result.table()["check"].to_list() == [check.key for check in result.checks]
    row = result.estimates.row(check="better")
    assert (row.value, row.low, row.facts["limit"]) == (result.better.change, result.better.low, 0)


def test_references_stand_beside(judged):
    result = us.gate(judged, candidate="pop", production="random", references=True)
    assert len(result.references) == 4
    assert result.references["popularity (reference)"] > result.references["random (reference)"]
    with pytest.raises(us.SettingError, match="references=True needs the training"):
        us.gate(
            judged.tests, judged.systems, candidate="pop", production="random", liked=4,
            references=True,
        )  # fmt: skip


# Data


def checked_data(judged, **more):
    return {one.key.removeprefix("data "): one for one in gate(judged, **more).data}


def cut(run, users=None, depth=None):
    frame = run.to_polars()
    if users is not None:
        frame = frame.filter(~pl.col("user").is_in(users))
    if depth is not None:
        frame = frame.filter(pl.col("rank") <= depth)
    return us.read_run(frame)


def judge_again(shop, **runs):
    split, both = shop
    return us.judge(split.test, {**both, **runs}, liked=4, train=split.train)


def test_missing_lists_and_shorter_lists_prevent_promotion(shop):
    some = shop[0].test.users.values[:30]
    facts = checked_data(judge_again(shop, random=cut(shop[1]["random"], users=some)))
    assert facts["missing"].outcome == OPEN
    assert facts["shorter"].outcome == PASS
    facts = checked_data(judge_again(shop, random=cut(shop[1]["random"], depth=5)))
    assert facts["shorter"].outcome == OPEN
    assert facts["shorter"].change == pytest.approx(-0.5)


def test_training_items_and_unknown_items_prevent_promotion(shop):
    split = shop[0]
    rows = split.train.to_polars().group_by("user", maintain_order=True).head(3)
    rated = us.read_run(rows.select("user", "item"))
    assert checked_data(judge_again(shop, random=rated))["trained"].outcome == OPEN
    few = split.test.items.values[:40]
    known = us.judge(split.test, shop[1], liked=4, train=split.train, items=few)
    assert checked_data(known)["outside"].outcome == OPEN
    assert checked_data(judge_again(shop))["outside"].outcome == INFORM  # no catalogue is given


def test_training_after_the_test_prevents_promotion(shop):
    split, runs = shop

    def timed(ratings, time):
        frame = ratings.to_polars().with_columns(pl.lit(time).alias("time"))
        return us.read_ratings(frame.select("user", "item", "rating", "time"))

    for later, outcome in ((2_000_000_000, OPEN), (1_000_000_000, PASS)):
        train, test = timed(split.train, later), timed(split.test, 1_500_000_000)
        data = us.judge(test, runs, liked=4, train=train)
        assert checked_data(data)["future"].outcome == outcome


def test_a_candidate_whose_judged_items_are_liked_less_is_not_settled():
    users = range(200)
    test = {
        "user": [u for u in users for _ in range(4)],
        "item": ["a", "b", "c", "d"] * 200,
        "rating": [5, 1, 5, 1] * 200,
    }
    new = {u: ["a", "c", "b", "d"] if u % 4 else ["b", "d", "x", "y"] for u in users}
    old = {u: ["a", "x", "y", "z"] for u in users}
    result = us.gate(
        test, {"new": new, "old": old}, candidate="new", production="old", metric="P@4", liked=4,
        rails=OFF,
    )  # fmt: skip
    facts = {one.key: one for one in result.data}
    assert facts["data if-liked"].outcome == OPEN
    assert result.verdict == NOT_SETTLED


# Settings and looks


def test_the_template_holds_the_defaults(tmp_path):
    (tmp_path / "gate.toml").write_text(TEMPLATE)
    assert GateSettings.read(tmp_path / "gate.toml").to_dict() == GateSettings().to_dict()
    assert GateSettings.read(GateSettings().to_dict()) == GateSettings()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"metrics": "P@10"}, "metrics"),
        ({"rails": {"ginni": "5%"}}, "ginni.*gini"),
        ({"rails": {"gini": "-5%"}}, "gini must be a share below 100 %"),
        ({"alpha": 0.7}, "alpha must lie between 0 and 0.5"),
        ({"margin": "half"}, "margin must be a share"),
        ({"segments": {"by": "activity"}}, "by must be a list"),
        ({"popularity": "no"}, "popularity"),
        ({"data": 3}, r"\[data\] must be a table"),
        ({"data": {"missing": 5}}, "missing must be a share"),
        ({"metric": 3}, "metric must be a name"),
    ],
)
def test_wrong_settings_are_refused(content, message):
    with pytest.raises(us.SettingError, match=message):
        GateSettings.read(content)


def test_wrong_arguments_are_refused(judged, tmp_path):
    for arguments, message in [
        ({"candidate": "popp"}, "popp"),
        ({"candidate": "random"}, "both 'random'"),
        ({"metric": "Coverage@10"}, "value per user"),
        ({"metric": "ARP@10"}, "more or less"),
        ({"by": ["activty"]}, "activty"),
        ({"config": 3}, "config must be a TOML file"),
    ]:
        with pytest.raises(us.SettingError, match=message):
            gate(judged, **{"candidate": "pop", **arguments})
    with pytest.raises(us.DataError, match="no such file"):
        gate(judged, config=tmp_path / "gate.toml")
    (tmp_path / "gate.toml").write_text("metric = ")
    with pytest.raises(us.DataError, match="no TOML file"):
        gate(judged, config=tmp_path / "gate.toml")


def test_looks_add_up_to_alpha():
    assert sum(spent(0.05, number) for number in range(1, 100_000)) == pytest.approx(0.05, abs=1e-6)


def test_looks_are_counted_once_per_input(judged, tmp_path):
    log = tmp_path / "looks.jsonl"
    first = gate(judged, log=log)
    again = gate(judged, log=log)
    assert first.to_dict() == again.to_dict()
    assert (first.look.number, first.look.alpha) == (1, 0.025)
    other = gate(judged, "random", "pop", log=log)
    assert other.look.number == 2
    assert other.look.alpha == pytest.approx(0.05 / 6)
    assert gate(judged, log=log, metric="P@10").look.number == 1  # another test
    assert gate(judged, log=log).look.number == 1
    assert len(log.read_text().splitlines()) == 3
    assert gate(judged).look.number == 0
    log.write_text("something else\n")
    with pytest.raises(us.DataError, match="no log of looks"):
        gate(judged, log=log)


def test_places_without_an_item_are_no_slots():
    matched = SimpleNamespace(
        depth=np.array([3, 1]),
        start=np.array([0, 4]),
        run=SimpleNamespace(item=np.array([3, -1, 5, 7, 4], np.int32)),
        from_run=10 * np.arange(8),
    )
    slots = slots_of(matched, 3)
    assert (slots.owner.tolist(), slots.item.tolist()) == ([0, 0, 1], [30, 50, 40])
