"""Plans of annotation: designs, files, reading back, stopping; against counts and plain twins."""

import itertools
import json
import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.errors import DataError, SettingError
from unskew.labels.annotation_designs import Labels, Wave, allocate, next_rows, spreads
from unskew.labels.annotation_status import StopRule, _decide
from unskew.labels.confidence_sequences import TotalInterval
from unskew.labels.read_annotation import load_plan

plan_annotation, read_annotation = us.labels.plan_annotation, us.labels.read_annotation


FROZEN = {"uniform": [(8, "q"), (3, "y"), (5, "q"), (5, "x")], "stratified": [3, 5, 2, 7]}


def lists(users=40, items=30, depth=5, systems=2, seed=3):
    """Return the lists of systems, and who likes what."""
    rng = np.random.default_rng(seed)
    runs = {
        f"s{number}": {
            f"u{user}": [f"i{item}" for item in rng.permutation(items)[:depth]]
            for user in range(users)
        }
        for number in range(systems)
    }
    liked = {
        (f"u{user}", f"i{item}"): int(rng.random() < 0.2 + 0.5 * item / items)
        for user in range(users)
        for item in range(items)
    }
    return runs, liked


def filled(folder, truth, count=None, name="to-judge.csv"):
    """Return the file of a plan with the first labels filled in."""
    frame = pl.read_csv(folder / name, infer_schema=False)
    pairs = frame.select("user", "item").rows()
    count = len(pairs) if count is None else count
    label = [str(truth[pair]) if row < count else None for row, pair in enumerate(pairs)]
    return frame.with_columns(pl.Series("label", label, dtype=pl.String))


def test_a_stated_gain_is_kept_where_the_threshold_is_assumed():
    runs, _ = lists()
    plan = plan_annotation(runs, "DCG@3", budget=60, scale=(1, 5), gain="levels")
    assert plan.relevance == us.Relevance(liked=4, gain="levels")
    assert plan_annotation(runs, "DCG@3", budget=60).relevance == us.Relevance(liked=1)


# Designs


@pytest.mark.parametrize("seed", range(5))
def test_allocation_is_the_best_in_whole_numbers(seed):
    rng = np.random.default_rng(seed)
    sizes, scores = rng.integers(3, 9, 4), rng.random(4) * 10
    budget = int(rng.integers(9, sizes.sum()))
    best = min(
        (
            counts
            for counts in itertools.product(*(range(2, n + 1) for n in sizes))
            if sum(counts) == budget
        ),
        key=lambda counts: sum(s * s / n for s, n in zip(scores, counts, strict=True)),
    )
    ours = allocate(sizes, scores, budget)
    assert (scores**2 / ours).sum() == pytest.approx((scores**2 / np.array(best)).sum())
    assert ours.sum() == budget


def test_allocation_is_neymans_and_grows_with_the_budget():
    sizes, spread = np.array([4000, 1000, 3000]), np.array([0.5, 0.1, 0.3])
    closed = 900 * sizes * spread / (sizes * spread).sum()
    assert np.abs(allocate(sizes, sizes * spread, 900) - closed).max() < 1
    proportional = allocate(sizes, sizes.astype(float), 800)
    assert np.abs(proportional - 800 * sizes / 8000).max() < 1
    before = allocate(sizes, sizes * spread, 50)
    for budget in range(51, 400):
        now = allocate(sizes, sizes * spread, budget)
        assert (now >= before).all()
        assert now.sum() == budget
        before = now
    more = allocate(sizes, sizes * spread, 900, used=np.array([0, 200, 0]))
    assert more[1] == 200
    assert more.sum() == 900
    full = allocate(np.array([5, 100]), np.array([1e9, 1.0]), 50)
    assert full.tolist() == [5, 45]
    with pytest.raises(SettingError, match="budget=3: 2 strata"):
        allocate(np.array([5, 5]), np.ones(2), 3)


def test_spreads_by_stratum():
    rng = np.random.default_rng(2)
    stratum = np.repeat([0, 1, 2], 4000).astype(np.int32)
    value = np.concatenate([rng.random(4000) < p for p in (0.5, 0.1, 0.0)]).astype(float)
    c = np.full((1, 12000), 0.01)
    spread = spreads(c, value, stratum, 3)
    common = 0.01 * math.sqrt((0.25 + 0.09) / 3)
    assert spread == pytest.approx([0.005, 0.003, common / 4], rel=0.03)
    assert spreads(np.vstack([c, c]), value, stratum, 3) == pytest.approx(spread * math.sqrt(2))
    assert spreads(c, np.full(12000, np.nan), stratum, 3).tolist() == [1, 1, 1]


@pytest.mark.parametrize("seeds", [1000, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("slots", [None, (2, 1, 3)])
def test_pairs_are_drawn_with_the_stated_probabilities(slots, seeds):
    """Every pair's count, and every place's, within 4.5 standard deviations."""
    size = 12
    stratum = np.array([0] * 4 + [1] * 3 + [2] * 5, np.int32)
    ids = pl.Series(range(size)), pl.Series([f"i{n}" for n in range(size)])
    wave = Wave("uniform" if slots is None else "stratified", 6, slots)
    taken = np.zeros(size, bool)
    counts, first, both = np.zeros(size), np.zeros(size), 0
    for seed in range(seeds):
        rows = next_rows(seed, 0, wave, ids, stratum, taken)
        assert np.unique(rows).size == 6
        counts[rows] += 1
        first[rows[0]] += 1
        both += {0, 1} <= set(rows.tolist())
        if slots:
            assert np.bincount(stratum[rows], minlength=3).tolist() == list(slots)
    chance = np.full(size, 0.5)
    if slots:
        chance = np.array(slots)[stratum] / np.array([4, 3, 5])[stratum]
    for seen, p in ((counts, chance), (first, chance / 6)):
        z = (seen - seeds * p) / np.sqrt(seeds * p * (1 - p))
        assert np.abs(z).max() < 4.5
    pair = 6 * 5 / (12 * 11) if slots is None else 2 * 1 / (4 * 3)
    assert abs(both - seeds * pair) < 4.5 * math.sqrt(seeds * pair * (1 - pair))


def test_the_order_of_rows_changes_nothing_and_the_seed_all():
    runs, _ = lists()
    turned = {name: dict(reversed(run.items())) for name, run in runs.items()}
    frames = {name: us.read_run(run).to_polars().sample(fraction=1, shuffle=True, seed=5)
              for name, run in runs.items()}  # fmt: skip
    for design in ("uniform", "stratified"):
        one, *others = (
            plan_annotation(source, "P@5", budget=60, design=design, seed=seed).pairs()
            for source, seed in ((runs, 1), (turned, 1), (frames, 1), (runs, 2))
        )
        assert one.equals(others[0])
        assert one.equals(others[1])
        assert not one.equals(others[2])


def test_draws_are_frozen():
    """Plans that were made stay what they were: neither names nor versions may move a draw."""
    runs = {
        "a": {u: ["x", "y", "z"] for u in range(9)},
        "b": {u: ["p", "q", "z"] for u in range(9)},
    }
    one = plan_annotation(runs, "P@3", budget=4, seed=5)
    assert one.pairs().select("user", "item").rows() == FROZEN["uniform"]
    wave = Wave("stratified", 4, (2, 2))
    ids = pl.Series(range(8)), pl.Series(list("abcdefgh"))
    stratum = np.repeat([0, 1], 4).astype(np.int32)
    rows = next_rows(5, 1, wave, ids, stratum, np.zeros(8, bool))
    assert rows.tolist() == FROZEN["stratified"]


# Plans


def test_pairs_that_count_alike_are_never_drawn():
    runs = {
        "a": {u: ["x", "y", "z"] for u in range(50)},
        "b": {u: ["y", "q", "x"] for u in range(50)},
    }
    plan = plan_annotation(runs, "P@3", budget=100)
    assert set(plan.pairs()["item"]) == {"z", "q"}
    assert "100 of 200 recommended pairs count alike for a and b" in str(plan)
    by_place = plan_annotation(runs, "DCG@3", budget=200)
    assert set(by_place.pairs()["item"]) == {"x", "y", "z", "q"}
    levels = plan_annotation(runs, "P@3", budget=200, estimand="levels")
    assert levels.systems == ("a", "b")
    nothing = defaultdict(float)
    sentence = "pairs that count alike for a and b were never drawn: the sample is for their diff"
    assert sentence in str(judged(plan, nothing))
    assert "never drawn" not in str(judged(levels, nothing))
    with pytest.raises(DataError, match="recommend the same"):
        plan_annotation({"a": runs["a"], "b": runs["a"]}, "P@3", budget=1)


def test_small_strata_are_joined():
    runs, _ = lists(users=200)
    plan = plan_annotation(runs, "P@5", budget=400, design="stratified")
    table = plan.table()
    assert table["labels"].sum() == 400
    assert table["labels"].min() >= 19
    assert table["pairs"].sum() == plan.user.len()
    few = plan_annotation(runs, "P@5", budget=30, design="stratified")
    assert few.table().height == 1
    assert "6 strata became 1" in str(few)
    both = plan_annotation(runs, "P@5", budget=900, strata=["popularity"], design="stratified")
    assert both.strata == ("least popular", "middle", "most popular")


def test_neyman_by_a_model_is_the_closed_form():
    runs, _ = lists(users=300)
    user, item = np.divmod(np.arange(300 * 30), 30)
    # The model is in doubt about what s0 lists alone: half of it liked; of all else, nothing.
    only = {(u, i) for u, run in runs["s0"].items() for i in run if i not in runs["s1"][u]}
    ids = [(f"u{u}", f"i{i}") for u, i in zip(user, item, strict=True)]
    model = {
        "user": [u for u, _ in ids],
        "item": [i for _, i in ids],
        "rating": [float(pair in only and n % 2) for n, pair in enumerate(ids)],
    }
    plan = plan_annotation(
        runs, "P@5", budget=500, design="neyman", labels=model, strata="disagreement"
    )
    sizes, spread = plan.sizes(), spreads(plan.coefficient, plan.hint, plan.stratum, 2)
    assert spread[1] == pytest.approx(spread.max() * 0.25 * math.sqrt(0.5), rel=0.1)
    closed = 500 * sizes * spread / (sizes * spread).sum()
    assert np.abs(plan.table()["labels"].to_numpy() - closed).max() < 1
    with pytest.raises(SettingError, match="needs to know where labels vary"):
        plan_annotation(runs, "P@5", budget=500, design="neyman")


def test_labels_of_a_model_that_are_missing_are_counted():
    runs, liked = lists()
    some = [pair for pair in liked if pair[1] != "i3"]
    model = {
        "user": [u for u, _ in some],
        "item": [i for _, i in some],
        "rating": [liked[pair] for pair in some],
    }
    plan = plan_annotation(runs, "P@5", budget=20, labels=model)
    missing = int((plan.item == "i3").sum())
    assert f"{missing} of {plan.user.len()} pairs have no label of the model" in str(plan)
    with pytest.raises(DataError, match="none of them is of a pair that is to be judged"):
        plan_annotation(
            runs, "P@5", budget=20, labels={"user": ["z"], "item": ["z"], "rating": [1]}
        )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget": 10**6}, "there are only"),
        ({"budget": 0}, "budget must be"),
        ({"metric": "Recall@5"}, "divided by all liked items"),
        ({"metric": "nDCG@5"}, "divided by an ideal list"),
        ({"design": "random"}, "Allowed: uniform, stratified, neyman"),
        ({"strata": "rating"}, "Allowed: rank, popularity, disagreement"),
        ({"strata": ["rank", "rank"]}, "each can be named once"),
        ({"estimand": "level"}, "Did you mean 'levels'"),
        ({"scale": (1, 1)}, "smallest and the largest label"),
        ({"scale": (1, 7)}, "what counts as liked"),
        ({"smallest": 0.0}, "smallest must be a number above 0"),
        ({"gain": lambda x: x, "liked": 1}, "give a name or a mapping"),
        ({"runs": {"a": {1: ["x"]}}, "estimand": "difference"}, "takes two systems, got 1"),
    ],
)
def test_wrong_settings_say_what_is_allowed(settings, says):
    runs, _ = lists()
    with pytest.raises((SettingError, DataError), match=says):
        plan_annotation(**{"runs": runs, "metric": "P@5", "budget": 20, **settings})


# Files


def test_the_file_to_fill_in_shows_nothing(tmp_path):
    runs, _ = lists()
    plan = plan_annotation(runs, "P@5", budget=60, design="stratified", seed=4)
    items = [f"i{n}" for n in range(30)]
    titles = {"item": items, "title": [f"=Title {n}" for n in range(30)], "year": list(range(30))}
    plan.save(tmp_path / "plan", titles=titles)
    lines = (tmp_path / "plan" / "to-judge.csv").read_text().splitlines()
    assert lines[0] == "row,user,item,title,year,label"
    frame = pl.read_csv(tmp_path / "plan" / "to-judge.csv")
    assert frame.select("user", "item").equals(plan.pairs().select("user", "item"))
    assert frame["row"].to_list() == list(range(1, 61))
    assert all(title.startswith("'=") for title in frame["title"])
    assert frame["label"].is_null().all()
    plan.save(tmp_path / "bare")
    assert (tmp_path / "bare" / "to-judge.csv").read_text().splitlines()[0] == "row,user,item,label"


def test_a_plan_survives_saving(tmp_path):
    runs, liked = lists(systems=3)
    model = {"user": [u for u, _ in liked], "item": [i for _, i in liked],
             "rating": list(liked.values())}  # fmt: skip
    plan = plan_annotation(
        runs, "DCG@5", budget=70, design="neyman", labels=model, scale=(1, 5), liked=4,
        gain={1: 0, 2: 0, 3: 0, 4: 1, 5: 3}, seed=9, smallest=0.1,
    )  # fmt: skip
    plan.save(tmp_path / "x")
    again = load_plan(tmp_path / "x")
    for name in ("coefficient", "hint", "stratum", "order"):
        assert np.array_equal(getattr(again, name), getattr(plan, name))
    assert again.card() == plan.card()
    assert again.pairs().equals(plan.pairs())
    assert again.worth_range == (0.0, 3.0)
    assert str(again) == str(plan)
    assert us.labels.AnnotationPlan is type(again)


def test_changed_and_foreign_files_are_refused(tmp_path):
    runs, _ = lists()
    plan = plan_annotation(runs, "P@5", budget=20)
    with pytest.raises(DataError, match=r"card\.json is missing"):
        read_annotation(tmp_path)
    home = plan.save(tmp_path / "a")
    card = (home / "card.json").read_text()
    (home / "card.json").write_text(card.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(DataError, match="damaged"):
        read_annotation(home)
    (home / "card.json").write_text(card)
    frame = pl.read_parquet(home / "pairs.parquet")
    frame.with_columns(stratum=pl.lit(3)).write_parquet(home / "pairs.parquet")
    with pytest.raises(DataError, match="file was changed"):
        read_annotation(home)
    assert json.loads(card)["format"] == 1
    with pytest.raises(SettingError, match="not empty"):
        plan.save(home)


def test_labels_are_never_overwritten(tmp_path):
    runs, liked = lists()
    plan = plan_annotation(runs, "P@5", budget=20)
    home = plan.save(tmp_path / "a")
    plan.save(home, force=True)
    filled(home, liked, 3).write_csv(home / "to-judge.csv")
    with pytest.raises(SettingError, match="holds labels, and is not overwritten"):
        plan.save(home, force=True)


def test_rows_in_any_order_give_the_same(tmp_path):
    runs, liked = lists()
    home = plan_annotation(runs, "P@5", budget=50, design="stratified", seed=2).save(tmp_path / "a")
    frame = filled(home, liked, 30)
    shuffled = frame.sample(fraction=1, shuffle=True, seed=1)
    twice = pl.concat([frame, frame.head(5)])
    one, other, third = (read_annotation(home, source) for source in (frame, shuffled, twice))
    assert one.used == 30
    assert one.sample().equals(other.sample())
    assert one.sample().equals(third.sample())
    assert str(one.status()) == str(other.status())
    short = read_annotation(home, frame.head(30))
    assert short.sample().equals(one.sample())
    assert "20 planned pairs are not in frame: not judged yet" in short.label_notes
    missing_label = frame.rename({"label": "rating"})
    assert read_annotation(home, missing_label).used == 30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"label": "2"}, r"1 label is not allowed, the first in row 4: '2'; labels are whole"),
        ({"label": "0.5"}, "row 4: '0.5'"),
        ({"label": "yes"}, "row 4: 'yes'"),
        ({"label": "inf"}, "row 4: 'inf'"),
        ({"label": "nan"}, "row 4: 'nan'"),
        ({"user": "u999"}, r"row 4 \(user 'u999', item 'i\d+'\) is not a pair of the plan"),
        ({"item": "1.2E+05"}, "spreadsheet programs change long numbers"),
        ({"user": None}, "row 4 has no user"),
    ],
)
def test_what_cannot_be_used_names_its_row(tmp_path, change, says):
    runs, liked = lists()
    home = plan_annotation(runs, "P@5", budget=20).save(tmp_path / "a")
    rows = filled(home, liked).to_dicts()
    rows[3] |= change
    with pytest.raises(DataError, match=says):
        read_annotation(home, pl.DataFrame(rows, dict.fromkeys(rows[0], pl.String)))


def test_a_pair_with_two_labels_is_refused(tmp_path):
    runs, liked = lists()
    home = plan_annotation(runs, "P@5", budget=20).save(tmp_path / "a")
    frame = filled(home, liked)
    other = frame.head(1).with_columns(label=pl.lit(str(1 - int(frame["label"][0]))))
    with pytest.raises(DataError, match="rows 1 and 21 are the same pair with different labels"):
        read_annotation(home, pl.concat([frame, other]))
    empty = frame.head(1).with_columns(label=pl.lit(None, pl.String))
    assert read_annotation(home, pl.concat([empty, frame])).used == 20
    with pytest.raises(DataError, match="no label column"):
        read_annotation(home, frame.drop("label"))


def test_labels_behind_a_gap_are_held_back(tmp_path):
    runs, liked = lists()
    home = plan_annotation(runs, "P@5", budget=50).save(tmp_path / "a")
    frame = filled(home, liked, 40)
    with_gap = frame.with_columns(
        label=pl.when(pl.int_range(pl.len()) == 12).then(None).otherwise("label")
    )
    some = read_annotation(home, with_gap)
    assert (some.used, some.held) == (12, 27)
    assert some.sample().height == 12
    assert "27 labels are held back" in str(some.status())
    assert some.status().rows.equals(read_annotation(home, frame.head(12)).status().rows)
    with pytest.raises(DataError, match="27 labels are held back"):
        read_annotation(home, with_gap, skipped="refuse")
    unclear = frame.with_columns(
        label=pl.when(pl.int_range(pl.len()) == 12).then(pl.lit("?")).otherwise("label")
    )
    some = read_annotation(home, unclear)
    assert (some.used, some.held) == (40, 0)
    assert some.sample().height == 39
    assert some.sample()["probability"].unique().to_list() == [pytest.approx(39 / some.user.len())]
    assert "of 1 pair nobody could tell" in str(some)


# The sample that estimates take


def horvitz_thompson(table, plan):
    worth = {(u, i): c for u, i, c in zip(plan.user, plan.item, plan.coefficient[0], strict=True)}
    return sum(
        worth[u, i] * label / p
        for u, i, label, p in table.select("user", "item", "label", "probability").rows()
    )


def judged(plan, liked, count=None):
    """Return a plan whose first pairs are judged."""
    value = np.array([float(liked[pair]) for pair in plan.pairs().select("user", "item").rows()])
    value[value.size if count is None else count :] = np.nan
    labels = Labels(value, np.zeros(value.size, bool))
    return replace(plan, labels=labels, source="x")


@pytest.mark.parametrize("seeds", [80, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", ["uniform", "stratified", "extended", "pilot", "prefix"])
def test_the_sample_is_unbiased(case, seeds):
    """Horvitz-Thompson over seeds: within 4.5 standard errors of the truth."""
    runs, liked = lists(users=30, items=12)
    values = []
    for seed in range(seeds):
        design = "uniform" if case == "uniform" else "stratified"
        plan = plan_annotation(runs, "P@5", budget=60, design=design, seed=seed)
        if case in ("extended", "pilot"):
            more = "neyman" if case == "pilot" else "stratified"
            plan = judged(plan, liked).extend(40, more)
        table = judged(plan, liked, 45 if case == "prefix" else None).sample()
        assert table.height == {"prefix": 45, "extended": 100, "pilot": 100}.get(case, 60)
        values.append(horvitz_thompson(table, plan))
    truth = sum(
        c * liked[u, i] for u, i, c in zip(plan.user, plan.item, plan.coefficient[0], strict=True)
    )
    assert abs(np.mean(values) - truth) < 4.5 * np.std(values) / math.sqrt(seeds)


# Stopping


def decision_of(status):
    return status.card["decision"], status.card["reason"]


def judged_by(runs, liked, metric="P@5", count=None, **settings):
    return judged(plan_annotation(runs, metric, **settings), liked, count)


@pytest.mark.parametrize("metric", ["P@5", "DCG@5", "RBP@5", "anti-P@5"])
def test_with_every_pair_judged_it_is_what_evaluate_says(metric):
    runs, liked = lists(systems=3)
    table = {"user": [u for u, _ in liked], "item": [i for _, i in liked],
             "rating": list(liked.values())}  # fmt: skip
    scores = us.evaluate(table, runs, metric, liked=1, users="all")
    size = plan_annotation(runs, metric, budget=1).user.len()
    status = judged_by(runs, liked, metric, budget=size, design="stratified").status()
    for name in runs:
        estimate = status.row(system=name).estimate
        assert estimate == pytest.approx([scores.mean(metric)[name]] * 3, abs=1e-9)
    assert decision_of(status)[0] == "stop"
    assert "all pairs are judged" in status.card["reason"]


def test_with_every_pair_judged_an_interval_remains_where_nobody_could_tell():
    runs, liked = lists(users=20)
    size = plan_annotation(runs, "P@5", budget=1, estimand="levels").user.len()
    whole = judged_by(runs, liked, budget=size, estimand="levels")
    unclear = np.zeros(size, bool)
    unclear[4] = True
    value = np.where(unclear, np.nan, whole.labels.value)
    some = replace(whole, labels=Labels(value, unclear))
    assert whole.status().card["reason"] == "all pairs are judged"
    assert "an interval remains where nobody could tell" in some.status().card["reason"]
    for name in runs:
        exact, wide = whole.status().row(system=name), some.status().row(system=name)
        assert wide.low - 1e-12 <= exact.low == exact.high <= wide.high + 1e-12


def test_it_stops_when_the_sign_is_settled():
    runs, liked = lists(users=300)
    good = {**liked, **{(u, i): 1 for u, run in runs["s1"].items() for i in run}}
    status = judged_by(runs, good, budget=300).status(smallest=0.05)
    assert decision_of(status) == ("stop", "s1 is better than s0 on these lists")
    assert status.conclusion[0] == "stop: s1 is better than s0 on these lists"
    assert status.row().high < 0 < status.pair("s1", "s0").low
    lower = judged_by(runs, good, "anti-P@5", budget=300).status()
    assert lower.card["reason"] == "s1 is better than s0 on these lists"
    assert lower.row().low > 0
    begin = judged_by(runs, good, budget=300, count=3).status(smallest=0.05)
    assert decision_of(begin)[0] == "go on"
    assert f"about {begin.card['needed']:,} more" in str(begin)
    assert begin.card["needed"] == begin.card["expected"] - 3


def test_it_stops_when_the_difference_is_small_or_the_interval_narrow():
    runs, liked = lists(users=300)
    never = dict.fromkeys(liked, 0)
    status = judged_by(runs, never, budget=600).status(smallest=0.05)
    assert decision_of(status) == (
        "stop",
        "s0 and s1 differ by less than 0.05 on these lists",
    )
    sure = judged_by(runs, liked, budget=200).status(width=0.5)
    assert decision_of(sure) == ("stop", "every interval is at most 0.5 wide")
    levels = judged_by(runs, liked, budget=60, estimand="levels")
    assert "state how narrow" in levels.status().card["reason"]
    assert levels.status(width=0.01).card["reason"] == "an interval is wider than 0.01"
    assert levels.status(width=0.01).card["needed"] > 1000
    with pytest.raises(SettingError, match="this plan is for levels"):
        levels.status(smallest=0.1)


def test_the_number_still_needed_is_not_for_what_was_observed():
    """Labels turned round give the opposite difference, and the same number."""
    runs, liked = lists(users=300)
    other = {pair: 1 - label for pair, label in liked.items()}
    one, two = (judged_by(runs, x, budget=100).status(smallest=0.05) for x in (liked, other))
    assert one.row().value == pytest.approx(-two.row().value)
    assert one.card["expected"] == pytest.approx(two.card["expected"], abs=1)
    assert judged_by(runs, liked, budget=100).status().card["expected"] is None
    stated = judged_by(runs, liked, budget=100, smallest=0.05)
    assert stated.status().card["expected"] == one.card["expected"]
    assert "the plan stated 0.05 before" in str(stated.status(smallest=0.04))


def test_no_compatible_value_is_said():
    impossible = {("a", "b"): TotalInterval(0.2, 0.1, 0.1, np.ones(1))}
    rule = StopRule(smallest=None, width=None, level=0.95)
    decision, reason = _decide(impossible, rule, "higher", is_complete=False)
    assert (decision, "no value is compatible" in reason) == ("stop", True)


def test_extensions_keep_what_was_judged(tmp_path):
    runs, liked = lists(users=100)
    home = plan_annotation(runs, "P@5", budget=80, design="stratified").save(tmp_path / "a")
    first = filled(home, liked, 60)
    some = read_annotation(home, first)
    longer = some.extend(50, "neyman")
    assert longer.order[:80].tolist() == some.order.tolist()
    assert np.unique(longer.order).size == 130
    again = longer.save(tmp_path / "b")
    rest = filled(again, liked)
    assert rest.height == 70  # twenty of the first batch, fifty new ones
    whole = read_annotation(again, rest)
    assert whole.used == 130
    known = {(u, i): label for u, i, label in whole.sample().select("user", "item", "label").rows()}
    assert all(liked[pair] == label for pair, label in known.items())
    table = whole.sample()
    assert table.filter(pl.col("stratum") == "judged before")["probability"].unique().to_list() == [
        1
    ]
    assert (table["stratum"] == "judged before").sum() == 80
    assert read_annotation(again, rest.head(20)).used == 80
    changed = first.head(1).with_columns(label=pl.lit(str(1 - int(first["label"][0]))))
    with pytest.raises(DataError, match="another label for user"):
        read_annotation(again, pl.concat([rest, changed]))
    with pytest.raises(SettingError, match="left"):
        some.extend(10**6)
    with pytest.raises(DataError, match="judge at least"):
        read_annotation(home, first.head(1)).extend(10, "neyman")


def test_status_shows_its_path():
    runs, liked = lists(users=100)
    status = judged_by(runs, liked, budget=100, estimand="levels").status()
    path = status.parts["path"].rows
    assert path["labels"].max() == 100
    assert path.height == 2 * 40
    last = path.filter(pl.col("labels") == 100)
    assert last["system"].to_list() == ["s0", "s1"]
    for (low, high), one in zip(
        last.select("low", "high").rows(), status.rows.to_dicts(), strict=True
    ):
        assert low <= one["low"] + 1e-9
        assert high >= one["high"] - 1e-9
    assert "what labels say" in json.dumps(status.figure().spec)
    nothing = judged_by(runs, liked, budget=100, count=0).status()
    assert not nothing.parts["path"].rows.height
    with pytest.raises(DataError, match="no value to draw"):
        nothing.figure()
