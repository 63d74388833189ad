"""One relevant item and others that are not drawn: expectations over all draws."""

import itertools
import json
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from unskew import DataError, SettingError
from unskew.evaluation.one_relevant import expected_values
from unskew.experiment.plan_files import plan_from_card
from unskew.metrics.names import REGISTRY, parse

METRICS = [
    "P@1",
    "P@3",
    "Recall@2",
    "HitRate@3",
    "F1@3",
    "Rprec",
    "AP",
    "AP@2",
    "RR",
    "RR@3",
    "nDCG",
    "nDCG@3",
    "DCG@2",
    "RBP(p=0.6)",
    "RBP@3",
]
RULE = us.Relevance(liked=4, gain="liked-only")


def some_split(users=6, items=12, seed=0, density=0.6):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < density)
    rating = rng.integers(1, 6, user.size)
    data = us.read_ratings({"user": user, "item": item, "rating": rating})
    return us.splits.Random(test=0.5).split(data, seed=1)[0]


def some_scores(split, seed=3):
    """Scores with ties, and some that are missing."""
    rng = np.random.default_rng(seed)
    shape = (len(split.train.users), len(split.train.items))
    scores = rng.integers(0, 5, shape).astype(float)
    scores[rng.random(shape) < 0.15] = np.nan
    return scores


def enumerated(split, scores, others, metrics=METRICS, **design):
    """Return the mean over all draws of each list's others, every list judged by itself."""
    whole = us.targets.OneRelevant(others="all", **design).lists(split, RULE)
    table = whole.to_polars()
    users, items = split.test.users.values.to_list(), split.test.items.values.to_list()
    rated = {
        (u, i): r
        for u, i, r in zip(split.test.user, split.test.item, split.test.value, strict=True)
    }
    out = np.full((len(metrics), len(whole)), np.nan)
    for number in range(len(whole)):
        own = table.filter(pl.col("list") == number)
        anchor, user = own["anchor"][0], users.index(own["user"][0])
        free = [one for one in own["item"].to_list() if one != anchor]
        n = min(others, len(free))
        lists = {}
        for draw, chosen in enumerate(itertools.combinations(free, n)):
            worth = {one: scores[user, items.index(one)] for one in (*chosen, anchor)}
            ranked = [one for one in worth if not math.isnan(worth[one])]
            lists[draw] = sorted(ranked, key=lambda one: (-worth[one], one))
        if math.isnan(scores[user, items.index(anchor)]):
            out[:, number] = 0.0  # in no place of any list, whatever is drawn
            continue
        count = len(lists)
        value = rated[user, items.index(anchor)]
        test = {"user": range(count), "item": [anchor] * count, "rating": [value] * count}
        every = us.evaluate(test, {"m": lists}, metrics, relevance=RULE, items=items).means()["m"]
        out[:, number] = [every[metric] for metric in metrics]
    return out


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
@pytest.mark.parametrize(
    "design",
    [
        {"others": 3},
        {"others": 1, "candidates": "all"},
        {"others": 4, "fixed": "judged"},
        {"others": 2, "candidates": "all", "strata": 2},
        {"others": 50},
        {"others": 0},
    ],
    ids=str,
)
def test_expectations_are_those_of_all_draws(design):
    split = some_split()
    scores = some_scores(split)
    lists = us.targets.OneRelevant(exact=True, **design).lists(split, RULE)
    found = us.evaluate(lists, {"m": scores}, METRICS)
    others = design.pop("others")
    want = enumerated(split, scores, others, **design)
    assert len(lists) == want.shape[1] > 10
    for row, metric in enumerate(METRICS):
        assert found.values("m", metric) == pytest.approx(want[row], abs=1e-12), metric


@pytest.mark.parametrize("ties", ["id", "random"])
@pytest.mark.parametrize("shortfall", ["count", "fill"])
def test_drawn_lists_have_this_mean(ties, shortfall):
    """Over 200 seeds of the others the mean of drawn lists is the expectation: |z| <= 4.5."""
    split = some_split(users=12, items=40)
    scores = some_scores(split)
    metrics = ["P@3", "RR", "nDCG@5"]
    how = {"ties": ties, "seed": 5}

    def lists(seed, **exact):
        design = us.targets.OneRelevant(others=9, shortfall=shortfall, **exact)
        made = design.lists(split, RULE, seed=seed)
        if shortfall == "fill":  # its seed also orders what could not be scored
            object.__setattr__(made, "seed", 0)
        return made

    exact = us.evaluate(lists(0, exact=True), {"m": scores}, metrics, **how).means()["m"]
    drawn = [
        us.evaluate(lists(seed), {"m": scores}, metrics, draws=1, **how).means()["m"]
        for seed in range(200)
    ]
    for metric in metrics:
        values = np.array([one[metric] for one in drawn])
        error = values.std(ddof=1) / math.sqrt(values.size)
        assert error > 0
        assert abs(values.mean() - exact[metric]) < 4.5 * error


@given(data=st.data())
def test_the_kernel_is_the_sum_over_ranks(data):
    """Also where the most likely rank lies far beyond the cutoff, and for thousands of others."""
    free = data.draw(st.integers(0, 400))
    n = data.draw(st.integers(0, 450))
    better = data.draw(st.integers(0, free))
    lists = _one_list(free, min(n, free))
    for name in ("P@3", "RR", "nDCG@50"):
        wanted = {name: parse(name)}
        found = expected_values(lists, wanted, np.array([better + 1.0]), 1)[0, 0]
        assert found == pytest.approx(_by_counting(name, free, better, min(n, free)), abs=1e-12)


def _by_counting(name, free, better, n):
    value = {
        "P@3": lambda r: (r <= 3) / 3,
        "RR": lambda r: 1 / r,
        "nDCG@50": lambda r: (r <= 50) / math.log2(r + 1),
    }[name]
    return sum(
        math.comb(better, x) * math.comb(free - better, n - x) / math.comb(free, n) * value(x + 1)
        for x in range(min(better, n) + 1)
    )


def _one_list(free, n):
    """Return a single list with so many candidates, of which n would be drawn."""
    items = {"user": [1] * (free + 1), "item": list(range(free + 1))}
    test = us.read_ratings({"user": [1], "item": [0], "rating": [5]})
    known = us.read_ratings({"user": [2] * (free + 1), "item": items["item"]})
    split = us.splits.Given(test=test).split(known)[0]
    return us.targets.OneRelevant(others=n, candidates="all", exact=True).lists(split, RULE)


def test_a_far_tail_is_not_lost():
    """5,000 others, all but 4 of 20,000 candidates better: P@3 is the chance of two at the top."""
    lists = _one_list(20_000, 5_000)
    better = np.array([10.0])
    stats = pytest.importorskip("scipy.stats")
    found = expected_values(lists, {"Recall@3": parse("Recall@3")}, better, 1)[0, 0]
    assert found == pytest.approx(stats.hypergeom.cdf(2, 20_000, 9, 5_000), rel=1e-10)
    deep = expected_values(lists, {"Recall@3": parse("Recall@3")}, np.array([401.0]), 1)[0, 0]
    assert 0 < deep < 1e-30  # too small to matter, but no rounding of a mean
    assert deep == pytest.approx(stats.hypergeom.cdf(2, 20_000, 400, 5_000), rel=1e-8)


def test_nothing_is_drawn_and_nothing_depends_on_seed_or_threads():
    split = some_split(users=40, items=60)
    scores = some_scores(split)
    one, other = (
        us.evaluate(
            us.targets.OneRelevant(20, exact=True).lists(split, RULE, seed=seed),
            {"m": scores},
            METRICS,
            threads=threads,
        )
        for seed, threads in ((1, 1), (2, 2))
    )
    assert one.systems["m"].values.tobytes() == other.systems["m"].values.tobytes()
    assert one.chance.values.tobytes() == other.chance.values.tobytes()
    drawn = us.evaluate(
        us.targets.OneRelevant(20).lists(split, RULE, seed=1), {"m": scores}, METRICS
    )
    assert one.lists["anchor"].equals(drawn.lists["anchor"])
    assert one.lists["targets"].equals(drawn.lists["targets"])
    for metric in METRICS:  # a random order has the same expectation either way
        if metric not in drawn.simulated:
            assert one.random()[metric] == pytest.approx(drawn.random()[metric], abs=1e-12)
    assert one.simulated == {}


def test_card_label_and_note_say_exact(tmp_path):
    design = us.targets.OneRelevant(others=20, exact=True)
    assert repr(design) == "OneRelevant(others=20, exact=True)"
    assert eval(repr(design), {n: getattr(us.targets, n) for n in us.targets.__all__}) == design
    assert repr(us.targets.Percentiles(others=5, strata=4, exact=True)) == (
        "Percentiles(others=5, strata=4, exact=True)"
    )
    split = some_split(users=40, items=60)
    scores = us.evaluate(design.lists(split, RULE), {"m": some_scores(split)}, "P@3")
    assert scores.card["targets"]["exact"] is True
    assert "targets: exact, no others are drawn: values are expectations over all draws of 20 " in (
        "\n".join(scores.notes)
    )
    scores.save(tmp_path)
    assert us.Scores.load(tmp_path).means() == scores.means()
    # Cards, and so the keys of stored results, of all other designs are as they were.
    assert "exact" not in us.targets.OneRelevant(others=20).describe()


def test_plans_files_and_stores_take_it(tmp_path):
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((40, 60)) < 0.4)
    data = us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})
    designs = [
        us.targets.OneRelevant(10),
        us.targets.OneRelevant(10, exact=True),
        us.targets.Percentiles(5, 3, exact=True),
    ]
    plan = us.Plan(
        us.splits.Random(folds=2),
        designs,
        [us.recommend.Popularity(), us.recommend.AverageRating()],
        RULE,
        ["P@3", "RR", "nDCG@5"],
        seed=4,
    )
    kept = us.run_plan(data, plan, store=tmp_path / "store")
    table = kept.table()
    assert table["targets"].unique(maintain_order=True).to_list() == [repr(one) for one in designs]
    assert us.run_plan(data, plan, store=tmp_path / "store", workers=2).table().equals(table)
    split = us.splits.Random(folds=2).split(data, 4)[0]
    model = us.recommend.Popularity().fit(split.train)
    alone = us.evaluate(
        designs[1].lists(split, RULE, seed=4), {"popularity": model}, list(plan.metrics)
    )
    part = table.filter(targets=repr(designs[1]), system="popularity", fold="fold1")
    assert dict(part.select("metric", "mean").iter_rows()) == alone.means()["popularity"]
    assert dict(part.select("metric", "random").iter_rows()) == alone.random()
    again = plan_from_card(json.loads(json.dumps(plan.describe())))
    assert again == plan
    (tmp_path / "plan.toml").write_text(
        """
metrics = ["P@3", "RR", "nDCG@5"]
seed = 4
[relevance]
liked = 4
gain = "liked-only"
[[split]]
protocol = "random"
folds = 2
[[targets]]
design = "one-relevant"
others = 10
exact = true
[[algorithm]]
name = "popularity"
"""
    )
    read = us.read_plan(tmp_path / "plan.toml")[0]
    assert read.designs == (designs[1],)
    rows = us.run_plan(data, read).table().filter(fold="fold1")
    assert dict(rows.select("metric", "mean").iter_rows()) == alone.means()["popularity"]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"others": "all"}, "goes with relevant='one' and a number of others"),
        ({"by": "popularity"}, "does not go with by='popularity': it is known for uniform"),
        ({"fresh": False}, "does not go with fresh=False: nothing is drawn"),
        ({"shortfall": "forgive"}, "does not go with shortfall='forgive'"),
        ({"exact": "yes"}, "exact must be True or False, got 'yes'"),
    ],
)
def test_designs_that_have_no_expectation(settings, text):
    with pytest.raises(SettingError, match=text):
        us.targets.OneRelevant(**{"exact": True, **settings})


def test_all_relevant_items_have_no_exact():
    with pytest.raises(SettingError, match="beside one relevant item"):
        us.targets.AllItems(others=10, exact=True)


def test_what_exact_lists_refuse(tmp_path):
    split = some_split()
    scores = some_scores(split)
    every = us.Relevance(liked=4, gain="rating")
    graded = us.targets.OneRelevant(3, exact=True).lists(split, every)
    for metric in ("nDCG@3", "DCG@3"):
        with pytest.raises(SettingError, match=r"not liked has a gain.*gain='liked-only'"):
            us.evaluate(graded, {"m": scores}, metric)
    judged = us.targets.OneRelevant(3, exact=True, fixed="judged").lists(split, every)
    assert us.evaluate(judged, {"m": scores}, "nDCG@3").means()["m"]["nDCG@3"] > 0
    lists = us.targets.OneRelevant(3, exact=True).lists(split, RULE)
    for metric, why in (
        ("anti-P@3", "looks at other judged items"),
        ("condensed-RR", "looks at other judged items"),
        ("bpref", "has no value for the rank of one relevant item"),
        ("Coverage@3", "has no value for the rank of one relevant item"),
        ("P", "needs a cutoff here"),
        ("P(per=list)@3", "has settings"),
        ("AUC", "AUC of drawn others is expected to be AUC of all of them: take others='all'"),
    ):
        with pytest.raises(SettingError, match=why):
            us.evaluate(lists, {"m": scores}, metric)
    with pytest.raises(SettingError, match="leave depth"):
        us.evaluate(lists, {"m": scores}, "P@3", depth=2)
    drawn = us.targets.OneRelevant(3).lists(split, RULE)
    with pytest.raises(SettingError, match=r"m: exact=True needs the number .* give a model"):
        us.evaluate(lists, {"m": us.rank(scores, drawn, 3)}, "P@3")
    for refused in (
        lambda: us.rank(scores, lists),
        lambda: us.judging.ranks_of(scores, lists),
        lambda: lists.to_polars(),
        lambda: us.targets.save_targets(lists, tmp_path / "lists.parquet"),
    ):
        with pytest.raises(SettingError, match="with exact=True no others are drawn"):
            refused()
    with pytest.raises(SettingError, match="exact"):
        us.unbiased.correct_sampled(lists, {"m": scores}, "Recall@3")
    with pytest.raises(SettingError, match="with exact=True no others are drawn"):
        us.unbiased.strata(lists, {"m": scores}, "P@3", by="popularity")
    with pytest.raises(DataError, match="asks for no list"):
        us.targets.OneRelevant(3, exact=True).lists(split, liked=6)


def test_undefined_where_the_relevant_item_has_no_gain():
    split = some_split()
    rule = us.Relevance(liked=4, gain={1: 0, 2: 0, 3: 0, 4: 0, 5: 2})
    lists = us.targets.OneRelevant(3, exact=True).lists(split, rule)
    scores = us.evaluate(lists, {"m": some_scores(split)}, ["nDCG@3", "DCG@3"])
    without = lists.judgments.value == 4
    assert without.any()
    assert np.isnan(scores.values("m", "nDCG@3")).tolist() == without.tolist()
    discount = scores.values("m", "nDCG@3")[~without]
    assert scores.values("m", "DCG@3")[~without] == pytest.approx(2 * discount)


def test_every_metric_of_the_rank_is_tried():
    assert {parse(metric).name for metric in METRICS} | {"AUC"} == {
        name for name, entry in REGISTRY.items() if entry.at_rank is not None
    }
