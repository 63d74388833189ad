"""The main job: what an audit measures, how it says it, and that it survives any data."""

import html
import json
import re
import tomllib
from dataclasses import replace
from functools import lru_cache

import numpy as np
import polars as pl
import pytest
from scipy import stats

import unskew as us
from shared import ROOT
from shared.sample import sample
from unskew.auditing import designs
from unskew.auditing.audit import audit
from unskew.auditing.page import paper_files, sections
from unskew.auditing.page.glossary import texts_of
from unskew.auditing.page.reproduction import plan_toml
from unskew.auditing.result import Audit
from unskew.cli import main
from unskew.experiment.plan_files import plan_of
from unskew.report.document import Picture, Words
from unskew.report.tables import Table

SECTIONS = [
    "answer",
    "data",
    "leaks",
    "designs",
    "decisions",
    "ladder",
    "liked",
    "protocol",
    "truth",
    "error-rates",
    "checklist",
    "card",
]
SMALL = {"repeats": 2, "permutations": 200}
FEW = ["random", "popularity", "average-rating"]


@pytest.fixture(scope="module")
def shop():
    return us.world("shop", users=120, items=60, seed=3)


@pytest.fixture(scope="module")
def found(shop):
    return audit(shop, "quick", algorithms=[*FEW, "user-knn"], **SMALL)


@lru_cache(maxsize=2)
def document_of(found):
    return found.document()


def blocks(found, key, kind):
    section = next(one for one in document_of(found).sections if one.key == key)
    return [block for block in section.every_block() if isinstance(block, kind)]


# What is measured


def test_all_sections_are_there_and_say_something(found):
    document = document_of(found)
    assert [section.key for section in document.sections] == SECTIONS
    for section in document.sections:
        assert section.blocks, section.key
        assert section.shows.endswith(".")
        assert section.guide, section.key
    for key in ("data", "designs", "decisions", "ladder", "liked", "protocol", "truth"):
        assert blocks(found, key, Picture) or key == "designs", key
        assert blocks(found, key, Table), key
    opened = [section.key for section in document.sections if section.is_open]
    assert opened == ["answer", "designs", "decisions", "ladder"]


def test_designs_without_a_null_experiment_are_named(found):
    told = [str(block) for block in blocks(found, "protocol", Words)]
    assert "Not run on re-drawn opinions: skew, wtd-h." in told


def test_no_figure_is_empty(found):
    figures = dict(document_of(found).figures())
    assert len(figures) > 12
    for name, figure in figures.items():
        assert figure.spec["datasets"]["rows"], name
        assert figure.title, name


def test_slower_levels_do_no_less():
    quick, default, thorough = (designs.LEVELS[name] for name in ("quick", "default", "thorough"))
    for less, more in ((quick, default), (default, thorough)):
        assert more.algorithms[: len(less.algorithms)] == less.algorithms
        assert more != less
        for field in ("splits", "repeats", "most_repeats", "permutations", "bootstrap", "samples"):
            assert getattr(more, field) >= getattr(less, field), field
        assert more.precision < less.precision


def test_the_page_names_what_an_audit_runs():
    page = (ROOT / "docs" / "audit.md").read_text()
    rows = re.findall(r"^\| `([a-z0-9][a-z0-9-]*)` \|.*\| (\w+)[^|]*\|$", page, flags=re.MULTILINE)
    assert dict(rows) == designs.SOURCES
    for option, name in (("`--quick`", "quick"), ("(default)", "default")):
        row = next(line for line in page.splitlines() if line.startswith(f"| {option} |"))
        level = designs.LEVELS[name]
        assert f"| {level.repeats} to {level.most_repeats} | {level.precision:g} |" in row
        assert f"| {level.permutations:,} |" in row


def test_the_null_experiment_has_the_values_of_the_first_split():
    """The data as they are are not run again: what they give is what a run of the plan gives."""
    shop = us.world("shop", users=80, items=60, seed=3, density=0.3)
    made = audit(
        shop,
        "quick",
        algorithms=["popularity", "user-knn"],
        designs=["all-items", "u1r"],
        repeats=2,
    )
    assert not made.core.has_cold  # a plan recommends nothing popular to cold users
    real = made.null.parts["repeats"].rows.filter(data="real")
    assert set(real["design"]) == {"all-items", "u1r"}
    for plan, design in zip(made.plans, ("all-items", "u1r"), strict=True):
        again = us.run_plan(shop.ratings, plan).table()
        mine = real.filter(design=design).sort("system", "metric")
        again = again.sort("system", "metric")
        assert mine["value"].to_list() == again["mean"].to_list()
        assert mine["random"].to_list() == again["random"].to_list()
    assert made.card["null"]["repeats"] == made.null.card["repeats"] == 2
    assert "repeats=2" in made.command or "--repeats 2" in made.command


def test_liked_shares_show_systems_users_and_values(found):
    tables = {block.title: block for block in blocks(found, "liked", Table)}
    systems = tables["Liked share of judged recommendations"]
    assert {"system", "users", "liked share", "interval from"} <= set(systems.header)
    pairs = tables["Differences of the liked share"]
    assert {"system", "compared with", "users", "interval to"} <= set(pairs.header)
    shown = pairs.frame.to_dicts()
    differences = found.evidence.liked.parts["pairs"]
    column = "difference of liked share"
    assert [row[column] for row in shown] == differences.rows["value"].to_list()


def test_the_table_is_what_the_designs_gave(found, shop):
    plan = us.Plan(
        us.splits.Random(test=0.2),
        us.targets.AllItems(),
        [us.recommend.Random(), us.recommend.Popularity()],
        us.Relevance(liked=4),
        ["P@10"],
    )
    mine = found.table().filter(design="all-items", system="popularity").row(0, named=True)
    means, chances = [], []
    for seed in found.core.seeds:
        scores = us.run_plan(shop.ratings, replace(plan, seed=seed)).scores()[0]
        warm = (scores.lists["train"].to_numpy() > 0) & scores.averaged("popularity")
        means.append(scores.values("popularity", "P@10")[warm].mean())
        chances.append(scores.chance.values[0][warm].mean())
    assert mine["value"] == pytest.approx(np.mean(means))
    assert mine["random"] == pytest.approx(np.mean(chances))
    values = us.stats.paired(found.scores["all-items"]).matrix("P@10")
    values = values[:, found.systems.index("popularity")]
    half = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    assert mine["high"] - mine["value"] == pytest.approx(half)
    assert mine["value"] - mine["low"] == pytest.approx(mine["high"] - mine["value"])


def test_places_and_consensus(found):
    for design in found.designs:
        part = found.table().filter(pl.col("design") == design)
        for row in part.iter_rows(named=True):
            assert row["place"] == 1 + (part["value"] > row["value"]).sum()
    consensus = found.consensus()
    assert consensus["mean_place"].is_sorted()
    assert set(consensus["system"]) == set(found.systems)
    assert found.order()[0] in consensus.filter(pl.col("best") == 1)["system"]
    with pytest.raises(us.UnknownName, match="all-items"):
        found.order("all-itms")


def test_the_lists_are_those_that_the_designs_judged(found):
    """Lists and scores come from the same models."""
    heads = found.strata.parts["heads"].rows
    ours = dict(zip(heads["system"], heads["score"], strict=True))
    assert ours == found.scores["all-items"][0].mean("P@10")


def test_the_truth_is_that_of_the_world(found, shop):
    from unskew.auditing.truth.truth import truth

    plan = us.Plan(
        us.splits.Random(test=0.2),
        us.targets.AllItems(),
        [us.recommend.Popularity(), us.recommend.AverageRating()],
        us.Relevance(liked=4),
        ["P@10"],
    )
    whole = pl.concat(
        truth(shop, replace(plan, seed=seed), resamples=0).rows for seed in found.core.seeds
    )
    keys = {"metric": "P@10", "quantity": "true"}
    for name in ("popularity", "average-rating"):
        expected = whole.filter(system=name, **keys)["value"].mean()
        row = found.truth.row(design="all-items", system=name, **keys)
        assert row.value == pytest.approx(expected)
    assert set(found.truth.values_of("design")) == set(found.designs)


def test_random_ratings_are_a_truth_too(shop):
    data = us.Dataset("mine", shop.ratings, shop.random(0.2), (1, 5), 4)
    made = audit(data, "quick", algorithms=FEW, designs=["all-items", "u1r"], **SMALL)
    assert "randomly chosen items" in made.truth.card["truth"]
    assert made.data.table()["part"].to_list() == ["observed", "random"]
    other = audit(
        shop.ratings,
        "quick",
        random=shop.random(0.2),
        liked=4,
        algorithms=FEW,
        designs=["all-items", "u1r"],
        **SMALL,
    )
    assert other.truth.rows.equals(made.truth.rows)


STORED = {"algorithms": FEW, "designs": ["all-items", "1r"], **SMALL}


@pytest.fixture(scope="module")
def stored(shop, tmp_path_factory):
    """Return the folder of a store that an audit has filled, and what the audit says."""
    folder = tmp_path_factory.mktemp("audit") / "kept"
    return folder, audit(shop, "quick", store=folder, **STORED).document().to_json()


def test_same_seed_same_bits_whatever_the_store(shop, stored):
    folder, kept = stored
    once = audit(shop, "quick", **STORED).document().to_json()
    stages = []
    again = audit(
        shop,
        "quick",
        store=folder,
        **STORED,
        progress=lambda stage, done, total: stages.append((stage, done, total)),
    )
    assert once == kept == again.document().to_json()
    assert {stage for stage, _, _ in stages} == {
        "reading",
        "splits",
        "designs",
        "null experiment",
        "conclusions",
        "diagnostics",
        "statements",
    }
    assert all(0 <= done <= total for _, done, total in stages)
    other = audit(shop, "quick", seed=1, **STORED)
    assert other.document().to_json() != once


def test_what_is_in_the_store_is_not_trained_again(shop, stored, monkeypatch):
    folder, first = stored

    def refuse(*_args, **_kwargs):
        raise AssertionError("trained again")

    for kind in (us.recommend.Random, us.recommend.Popularity, us.recommend.AverageRating):
        monkeypatch.setattr(kind, "fit", refuse)
    again = audit(shop, "quick", store=folder, **STORED)
    assert again.document().to_json() == first


def test_a_plan_of_ones_own(shop):
    plan = us.Plan(
        [us.splits.Random(test=0.3), us.splits.Uniform()],
        [us.targets.AllItems(), us.targets.TestTargets()],
        {"chance": us.recommend.Random(), "pop": us.recommend.Popularity()},
        us.Relevance(liked=4),
        ["nDCG@5", "P@5"],
        seed=4,
    )
    made = audit(shop, plan, **SMALL)
    assert list(made.designs) == ["random AllItems()", "uniform AllItems()"]
    # Most users have fewer than five test ratings here: any order of them is as good.
    assert list(made.core.left_out) == ["random TestTargets()", "uniform TestTargets()"]
    assert "at most 5 targets" in made.left_out["random TestTargets()"].why
    assert [len(parts) for parts in made.scores.values()] == [1, 1]
    assert made.metric == "nDCG@5"
    assert made.systems == ("chance", "pop")
    assert 'us.read_plan("plan.toml")' in made.command
    made.document()


def test_splits_are_averaged(shop):
    made = audit(shop, "thorough", algorithms=FEW, designs=["all-items", "u1r"], **SMALL)
    assert {name: len(parts) for name, parts in made.scores.items()} == {"all-items": 10, "u1r": 10}
    each = [part.mean("P@10")["popularity"] for part in made.scores["all-items"]]
    mine = made.table().filter(design="all-items", system="popularity")["value"][0]
    assert mine == pytest.approx(np.mean(each))
    assert made.document().sections


# What is said


def test_the_answer_is_made_of_measured_values(found):
    """Numbers of the first sentence are those of the contrast that it speaks of."""
    finding = found.first_screen.finding
    assert str(found).startswith(f"{found.answer()[0]}\n{finding.text}\n")
    assert finding.subjects[0] == found.order()[0]
    others = finding.others or finding.subjects[1:]
    contrasts = [found.evidence.contrast(finding.subjects[0], b, found.common) for b in others]
    nearest = min(contrasts, key=lambda contrast: contrast.value)
    assert (finding.value, finding.interval) == (nearest.value, (nearest.low, nearest.high))
    assert (nearest.low <= 0 <= nearest.high) == (finding.kind == "undecided")


def made_up(**changes):
    """Return a small audit of given lists, with values of one's own."""
    test = {"user": [1, 1, 2, 2, 3, 3], "item": list("abacbc"), "rating": [5, 2, 5, 1, 4, 2]}
    runs = {"good": {u: ["a", "b", "c"] for u in (1, 2, 3)}, "bad": {u: ["c"] for u in (1, 2, 3)}}
    how = {"judgments": test, "runs": runs, "plan": "quick", "liked": 4, "metric": "P@1", **SMALL}
    return audit(**{**how, **changes})


def test_hand_worked_lists():
    made = made_up()
    values = made.table().filter(pl.col("design") == "as-given").select("system", "value").rows()
    assert values == [("good", pytest.approx(2 / 3)), ("bad", 0.0)]
    # Without what nobody judged nothing changes; of what the user judged, user 3 has b first.
    assert made.left_out["test-items"].same_as == "as-given"
    targets = made_up(designs=["test-targets"]).table().filter(system="good")["value"][0]
    assert targets == pytest.approx(1.0)
    assert made.first_screen.finding.subjects == ("good", "bad")
    assert made.verdict == "not settled"  # of three users
    assert made.truth is None
    assert "design skew" in made.skipped  # needs training
    told = [one.text for one in blocks(made, "truth", Words)]
    assert "not known" in told[0]


def test_systems_with_equal_scores_are_not_ordered():
    runs = {name: {u: ["a", "b"] for u in (1, 2, 3)} for name in ("x", "y")}
    made = made_up(runs=runs)
    assert made.verdict == "not settled"
    assert made.first_screen.finding.value == 0
    assert "x − y = .000" in str(made)
    assert made.document().sections


def test_no_disagreement_is_not_called_one():
    """One system is better for every user under every design: nothing is to be warned of."""
    rng = np.random.default_rng(1)
    user = np.repeat(np.arange(30), 4)
    item = np.concatenate([rng.choice(20, 4, replace=False) for _ in range(30)])
    rating = np.tile([5, 5, 1, 2], 30)
    test = {"user": user, "item": item, "rating": rating}
    liked = {u: [int(i) for i in item[4 * u : 4 * u + 2]] for u in range(30)}
    runs = {
        "best": liked,
        "worst": {u: [int(i) for i in item[4 * u + 2 : 4 * u + 4]] for u in range(30)},
    }
    made = audit(judgments=test, runs=runs, plan="quick", liked=4, metric="P@2", **SMALL)
    text = str(made)
    assert list(made.designs) == ["as-given"]  # all others give the same numbers
    assert made.verdict.startswith("settled")
    assert "best scores highest on the judgments as they are, ahead of worst: " in text
    assert "designs" not in made.first_screen.finding.text


def test_the_answer_is_about_the_given_lists_where_references_are_undecided():
    """Two random lists score below two references, of which neither is ahead of the other."""
    shop, rng = us.world("shop", users=120, items=60, seed=3), np.random.default_rng(3)
    (split,) = us.splits.Random(test=0.2).split(shop.ratings)
    users, items = split.test.to_polars()["user"].unique(), split.train.to_polars()["item"].unique()
    items = items.sort().to_list()
    runs = {
        name: {user: [items[at] for at in rng.permutation(len(items))[:10]] for user in users}
        for name in ("x", "y")
    }
    made = audit(judgments=split.test, runs=runs, train=split.train, plan="quick", liked=4, **SMALL)
    screen = made.first_screen
    assert screen.finding.kind in ("undecided", "leads-some", "ties")
    assert set(screen.finding.subjects) & {"x", "y"}
    assert "The reference" in screen.finding.text  # which is ahead of both
    assert "scores best" not in made.document().headline.verdict


def test_training_ratings_allow_more_designs():
    parts = sample(users=150, items=80)
    made = audit(
        judgments=parts.test, runs=parts.runs, train=parts.train, plan="quick", liked=4, **SMALL
    )
    assert list(made.designs) == ["as-given", "test-items", "skew", "wtd-h"]
    assert set(made.left_out) == {"test-targets"}
    assert made.popularity is not None
    assert made.null.parts["repeats"].rows.filter(data="iid")["repeat"].n_unique() == 2
    assert 'judgments="FILE"' in made.command
    assert 'train="FILE"' in made.command


def leaky(shop):
    """Return test and training ratings, and lists: one of training items, one of half the users."""
    split = next(iter(us.splits.Random(test=0.2).each(shop.ratings, 1)))
    test, train = split.test.to_polars(), split.train.to_polars()
    good = {
        user: test.filter(pl.col("user") == user)["item"].to_list()
        for user in test["user"].unique()
    }
    leaks = {
        user: train.filter(pl.col("user") == user)["item"].to_list()
        for user in train["user"].unique()
    }
    half = {user: items for user, items in good.items() if user % 2}
    return test, train, {"good": good, "leaks": leaks, "half": half}


def test_an_audit_of_lists_tells_what_evaluate_warns_of(shop):
    test, train, runs = leaky(shop)
    with pytest.warns(us.DataWarning):
        scores = us.evaluate(test, runs, list(designs.METRICS), train=train, liked=4)
    found = audit(judgments=test, runs=runs, train=train, liked=4, **SMALL)
    held = train.height
    missing = sum(1 for user in test["user"].unique() if user % 2 == 0)
    assert f"leaks: {held:,} recommended items are in the user's training ratings" in scores.notes
    assert f"half: {missing:,} users with test data have no list; they score 0" in scores.notes
    told = [
        f"{held:,} recommended items are in the user's training ratings",
        "users with test data have no list; they score 0",
        "metrics that look deeper are left out",
    ]
    document = found.document()
    for text in ("\n".join(found.footer()), str(found), document.to_markdown(), document.to_json()):
        for words in told:
            assert words in text.replace("\\", "")
    for words in told:
        assert html.escape(words) in found._repr_html_()
        assert words in "\n".join(texts_of(document))
    # Every note of the scores is in it, with its counts or a range that holds them.
    common = found.scores[found.common][0].notes
    for note in common:
        if note in found.notes:
            continue
        words = re.split(r"(?<!\S)[\d,]+(?=\s)", note.partition(": ")[2] or note)
        assert any(all(part in line for part in words) for line in found.remarks), note


def test_an_audit_of_ratings_tells_what_was_counted(found):
    noted = {note for parts in found.scores.values() for part in parts for note in part.notes}
    assert any("could not be scored" in note for note in noted)
    for words in (
        "could not be scored; they are in no list",
        r"users? with test data (has|have) no list",
        "fewer than the cutoff of",
    ):
        assert any(re.search(words, line) for line in found.remarks), found.remarks
        assert re.search(words, str(found))
        assert re.search(words, document_of(found).to_json())
    assert len(found.remarks) == len(set(found.remarks)) < len(noted)


def test_the_card_makes_it_again(found, shop):
    for plan in found.plans:
        assert plan_of(tomllib.loads(plan_toml(plan)))[0] == plan
    card = found.card
    assert card["data"]["fingerprint"] == shop.ratings.fingerprint
    assert card["seed"] == 0
    code = found.command
    assert 'us.world("shop", users=120, items=60,' in code
    assert "algorithms=['random', 'popularity'" in code
    assert "    liked=4,\n" in code


def test_labels_that_toml_must_escape():
    names = {
        'a "quoted" one': us.recommend.Random(),
        "back\\slash\nline\x7f": us.recommend.Popularity(),
    }
    plan = us.Plan(algorithms=names)
    assert plan_of(tomllib.loads(plan_toml(plan)))[0] == plan


def test_citations_are_of_what_was_used(found):
    keys = paper_files.used(found)
    assert {"bellogin2017", "valcarce2018", "castells2018", "carraro2020", "mena2021"} <= set(keys)
    text = paper_files.bibtex(found)
    assert text.count("@") == len(keys)
    assert text.count("{") == text.count("}")
    assert "carraro2020" not in paper_files.used(made_up())


def test_nothing_of_the_machine_is_inside(found, tmp_path):
    path = tmp_path / "secret-folder" / "ratings.csv"
    path.parent.mkdir()
    us.world("shop", users=60, items=40, seed=1).ratings.to_csv(path)
    made = audit(path, "quick", algorithms=FEW, designs=["all-items", "1r"], **SMALL)
    assert "secret-folder" not in made.document().to_json()
    assert made.name == "ratings.csv"


def test_in_a_notebook(found):
    text = found._repr_html_()
    for sentence in found.answer():
        assert html.escape(sentence) in text
    assert text.count("<table>") == 1  # systems by designs
    for design in found.designs:
        assert f">{design}</th>" in text
    best = found.order()[0]
    first = (pl.col("design") == found.common) & (pl.col("system") == best)
    value = found.table().row(by_predicate=first, named=True)["value"]
    assert f"<b>{value:.4f}</b>" in text
    assert "us.report.embedded(audit)" in text
    assert len(text) < 40_000
    assert repr(found) == f"Audit(shop: 4 systems, {len(found.designs)} designs)"
    assert isinstance(found, Audit)
    assert found.to_dict()["systems"] == list(found.systems)


def lists_that_users_chose(users=60):
    """Users rate what a system shows them, and like it: weights by popularity say more than all."""
    rng = np.random.default_rng(5)
    rows, runs = [], {"mine": {}, "other": {}}
    for user in range(users):
        own = rng.permutation(40)
        runs["mine"][user], runs["other"][user] = own[:5].tolist(), own[20:25].tolist()
        rows += [(user, item, 5) for item in own[:3].tolist()]
        rows += [(user, item, 1) for item in own[30:32].tolist()]
        rows += [(user, int(own[20]), 5 if user % 2 else 1)] * (user % 4 != 3)
    return pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row"), runs


def test_nothing_is_shown_of_estimates_that_are_not_usable():
    test, runs = lists_that_users_chose(400)  # so many that other has 60 effective hits
    made = audit(judgments=test, runs=runs, plan="quick", liked=4, metric="P@5", **SMALL)
    mine, other = (
        made.estimates.row(system=name, metric="P@5", quantity="ips") for name in ("mine", "other")
    )
    assert mine.value > 1
    assert mine.note
    assert other.note == ""
    told = [str(block) for block in blocks(made, "liked", Words)]
    assert "Not usable here, and not shown: the estimates of P@5 of mine." in told
    # One usable system: two points, for which a sentence stands.
    assert "P@5: weighted estimates is not drawn: it would show 2 points." in told
    grid = next(
        one for one in blocks(made, "liked", Table) if one.title.startswith("Estimates that")
    )
    assert set(grid.frame.filter(metric="P@5")["system"]) == {"other"}
    values = grid.frame.filter(metric="P@5").select(pl.selectors.matches("IPS|as observed"))
    assert values.max_horizontal().max() <= 1


# Data of any kind


def pairs(users=40, items=25, seed=1):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((users, items)) < 0.3)
    return user, item, rng.integers(1, 6, user.size)


USER, ITEM, STARS = pairs()
HOSTILE = {
    "one item": ({"user": range(20), "item": [1] * 20, "rating": [1, 5, 4, 2] * 5}, 4),
    "all equal": ({"user": USER, "item": ITEM, "rating": [5] * USER.size}, 4),
    "none disliked": ({"user": USER, "item": ITEM, "rating": 4 + STARS % 2}, 4),
    "implicit": ({"user": USER, "item": ITEM}, None),
    "one moment": (
        {"user": USER, "item": ITEM, "rating": STARS, "time": [5] * USER.size},
        4,
    ),
    "tiny": ({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 3, 2], "rating": [5, 1, 4, 2, 5]}, 4),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_data_give_a_whole_report(name):
    data, liked = HOSTILE[name]
    data = {key: list(value) for key, value in data.items()}
    made = audit(data, "quick", liked=liked, algorithms=FEW, **SMALL)
    document = made.document()
    assert [section.key for section in document.sections] == SECTIONS
    assert all(section.blocks for section in document.sections)
    told = json.loads(document.to_json())
    assert told["answer"]
    assert document.to_markdown()
    if name in ("all equal", "none disliked", "implicit"):
        assert made.core.implicit
        assert made.null is None
        assert made.margins is None
        assert "no rating is a dislike" in made.skipped["dislikes"]
    if name == "one moment":
        assert "design temporal" in made.skipped


def test_time_stamps_allow_the_temporal_design():
    time = np.random.default_rng(1).integers(0, 10**9, USER.size)
    data = {"user": USER, "item": ITEM, "rating": STARS, "time": time}
    made = audit(data, "quick", liked=4, algorithms=FEW, designs=["all-items", "temporal"], **SMALL)
    assert list(made.designs) == ["all-items", "temporal"]
    assert made.splits["temporal"].facts["before_any_train"] == 0
    assert made.splits["random"].facts["before_any_train"] > 0.5
    assert any("older than" in words.text for words in blocks(made, "data", Words))


def test_a_null_experiment_that_fails_elsewhere_is_kept_for_the_common_design(monkeypatch, shop):
    from unskew.auditing import ratings_audit as job

    real = job.null_experiment_by

    def only_common(executor, ratings, plans, *args, **kwargs):
        if len(plans) > 1:
            raise us.DataError("first line\n\nunskew.errors.DataError: asks for no list")
        return real(executor, ratings, plans, *args, **kwargs)

    monkeypatch.setattr(job, "null_experiment_by", only_common)
    made = audit(shop, "quick", algorithms=FEW, designs=["all-items", "1r"], **SMALL)
    assert made.null.values_of("design") == ["all-items"]
    assert made.skipped["null experiment beyond all-items"] == "asks for no list"


@pytest.mark.slow
def test_many_systems():
    parts = sample(users=100, items=60)
    lists = parts.runs["personal"].drop("score")
    runs = {
        f"<b>system {k}</b>": lists.with_columns(rank=pl.col("rank").shuffle(seed=k).over("user"))
        for k in range(200)
    }
    made = audit(judgments=parts.test, runs=runs, plan="quick", liked=4, **SMALL)
    document = made.document()
    assert len(document.systems) == 200
    tables = [b for s in document.sections for b in s.every_block() if isinstance(b, Table)]
    assert max(table.frame.height for table in tables) <= sections.blocks.MOST_ROWS


# Ratings below 0


def jester():
    """Return ratings from -10 to 10."""
    rng = np.random.default_rng(6)
    rows = [
        (u, int(i), float(rng.uniform(-10, 10)))
        for u in range(40)
        for i in rng.choice(25, 10, replace=False)
    ]
    return pl.DataFrame(rows, ["user", "item", "rating"], orient="row")


def test_ratings_below_0_need_another_gain_than_the_rating_and_a_line_says_so(tmp_path, capsys):
    said = r"the rule 'rating' gives -\d.*choose another gain, such as gain='binary' or a mapping$"
    with pytest.raises(us.DataError, match=said):
        audit(jester(), "quick", liked=5, gain="rating", **SMALL)
    liked = r"the rating -[\d.]+ is liked, but a gain must be above 0 .* gain='levels' or 'binary'$"
    with pytest.raises(us.DataError, match=liked):
        audit(jester(), "quick", liked=-5, **SMALL)
    lists = {user: [1, 2, 3] for user in range(40)}
    with pytest.raises(us.DataError, match=said):
        audit(judgments=jester(), runs={"a": lists, "b": lists}, liked=5, gain="rating", **SMALL)
    jester().write_csv(tmp_path / "r.csv")
    options = ["--liked", "5", "--gain", "rating", "-o", str(tmp_path / "x.html")]
    with pytest.raises(SystemExit) as left:
        main(["audit", str(tmp_path / "r.csv"), *options])
    assert left.value.code == 1
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert error.endswith("choose another gain, such as --gain binary or a mapping")


def test_ratings_below_0_are_audited_with_a_stated_gain(tmp_path, capsys):
    settings = {"liked": 5, "gain": "binary", "designs": ["all-items"], "tune": False}
    found = audit(jester(), "default", **settings, **SMALL)
    assert found.relevance == us.Relevance(5, gain="binary")
    assert "wrmf" not in found.systems
    assert "needs ratings from 0 up" in found.skipped["system wrmf"]
    plan = us.Plan(
        us.splits.Random(test=0.2),
        us.targets.AllItems(),
        [us.recommend.Random(), us.recommend.Popularity()],
        us.Relevance(5, gain="binary"),
        ["P@10", "nDCG@10"],
    )
    scores = us.run_plan(us.read_ratings(jester()), plan).scores()[0]
    mine = found.scores["all-items"][0]
    for metric in ("P@10", "nDCG@10"):
        assert mine.mean(metric)["popularity"] == scores.mean(metric)["popularity"]
    assert "    gain='binary'," in found.command
    names = ",".join(found.systems)
    jester().write_csv(tmp_path / "r.csv")
    words = ["audit", str(tmp_path / "r.csv"), "--quick", "--liked", "5", "--gain", "binary"]
    words += ["--designs", "all-items", "--algorithms", names, "-o", "-", "--format", "json"]
    with pytest.raises(SystemExit) as left:
        main(words)
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert json.loads(told[told.index("{") :])["card"]["relevance"]["gain"] == "binary"


def test_gain_and_loss_reach_given_lists():
    test = {"user": [1, 1, 2, 2], "item": ["a", "b", "a", "c"], "rating": [5, 1, 2, 4]}
    runs = {"x": {1: ["b", "a"], 2: ["a", "c"]}, "y": {1: ["a"], 2: ["c"]}}
    for rule in (
        {"liked": 4, "gain": {5: 9, 4: 1, 2: 0, 1: 0}, "loss": "binary"},
        {"above": 3, "gain": "levels"},
        {"relevance": "carraro2020"},
    ):
        found = audit(judgments=test, runs=runs, designs=["as-given"], **rule, **SMALL)
        scores = us.evaluate(test, runs, ["nDCG@1", "nDCL@1"], **rule)
        for metric in ("nDCG@1", "nDCL@1"):
            assert found.scores["as-given"][0].mean(metric) == scores.mean(metric)
    assert "    above=3," in audit(judgments=test, runs=runs, above=3, **SMALL).command


def test_data_errors_inside_tasks_are_one_line():
    plan = us.Plan(
        algorithms=[us.recommend.Random(), us.recommend.WRMF()],
        relevance=us.Relevance(5, gain="binary"),
    )
    with pytest.raises(us.DataError) as caught:
        audit(jester(), plan, **SMALL)
    said = r"wrmf on .* failed, with seed 0: wrmf: a confidence needs ratings from 0 up.*"
    assert re.fullmatch(said, str(caught.value))
    with pytest.raises(us.DataError) as caught:
        us.run_plan(us.read_ratings(jester()), plan)
    assert "\n" not in str(caught.value)


# Errors


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: audit(), "give ratings, or judgments"),
        (lambda: audit({"user": [1], "item": [1], "rating": [5]}, "quik"), "Did you mean 'quick'"),
        (lambda: audit(HOSTILE["tiny"][0], designs=["2r"]), "Did you mean '1r'"),
        (lambda: audit(HOSTILE["tiny"][0], designs=[]), "at least one design"),
        (lambda: audit(HOSTILE["tiny"][0], algorithms=["popularity"]), "at least two"),
        (lambda: audit(HOSTILE["tiny"][0], algorithms=["popularty", "random"]), "popularity"),
        (lambda: audit(HOSTILE["tiny"][0], metric="Gini@10"), "orders no systems"),
        (lambda: audit(HOSTILE["tiny"][0], train={"user": [1], "item": [2]}), "train is for"),
        (lambda: audit(HOSTILE["tiny"][0], liked=4, relevance=us.Relevance(liked=4)), "not both"),
        (
            lambda: audit(
                HOSTILE["tiny"][0], us.Plan(algorithms=[us.recommend.Random()]), designs=["1r"]
            ),
            "designs is in the plan",
        ),
        (lambda: audit({"user": [1, 2], "item": [1, 2], "rating": [50, 10]}), "what counts as"),
        (lambda: audit(runs={"a": {1: [2]}}), "both judgments"),
        (
            lambda: audit({"user": [1] * 20, "item": range(20), "rating": [1, 5, 4, 2] * 5}),
            "fewer than 2 users",
        ),
        (lambda: made_up(data=HOSTILE["tiny"][0]), "data is for ratings"),
        (
            lambda: made_up(plan=us.Plan(algorithms=[us.recommend.Random()])),
            "a plan is for ratings",
        ),
        (lambda: made_up(runs={"a": {1: ["a"]}}), "at least two"),
        (lambda: made_up(workers=2), "workers is for ratings"),
        (lambda: made_up(tune=False), "tune=False is for ratings"),
        (lambda: made_up(designs=["u1r"]), "unknown design 'u1r'"),
    ],
)
def test_errors_say_what_to_do(call, says):
    with pytest.raises(us.UnskewError, match=says):
        call()


# The command line


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Call a command in an empty folder; return its exit code and output."""
    import typer
    from typer.testing import CliRunner

    from unskew.cli.command import callback
    from unskew.cli.doors import demo

    app = typer.Typer()
    app.command("audit")(callback("audit"))
    app.command("demo")(callback("demo"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "USERS", 100)
    monkeypatch.setattr(demo, "ITEMS", 60)

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run


def test_audit_command(call, tmp_path, shop):
    shop.ratings.to_csv(tmp_path / "ratings.csv")
    how = [
        "ratings.csv",
        "--quick",
        "--liked",
        "4",
        "--designs",
        "all-items,1r",
        "--algorithms",
        "random, popularity",
        "--store",
        "kept",
    ]
    done = call("audit", *how)
    assert done.exit_code == 0
    assert done.stdout.startswith("popularity scores highest")
    assert "(chance)" in done.stdout
    assert "the report is in unskew-report.html" in done.stderr
    assert (tmp_path / "unskew-report.html").stat().st_size < 5_000_000
    again = call("audit", *how, "--format", "json", "-o", "-", "--quiet")
    assert "(chance)" not in again.stdout
    assert json.loads(again.stdout)["systems"] == [
        "random",
        "popularity",
    ]


@pytest.mark.slow
def test_audit_command_writes_figures(call, tmp_path, shop):
    shop.ratings.to_csv(tmp_path / "ratings.csv")
    done = call(
        "audit",
        "ratings.csv",
        "--quick",
        "--designs",
        "all-items,1r",
        "--algorithms",
        "random,popularity",
        "--figures",
        "pictures",
        "--format",
        "markdown",
    )
    assert "its figures are in pictures" in done.stderr
    text = (tmp_path / "unskew-report.md").read_text()
    named = re.findall(r"\(pictures/([^)]*).svg\)", text)
    single = ["headline", "data-1", "data-2", "decisions-1", "ladder-1", "liked-1", "liked-2"]
    assert named == [*single, *(f"protocol-{number}" for number in range(1, 5))]
    assert all((tmp_path / "pictures" / f"{name}.svg").exists() for name in named)


def test_audit_command_on_lists(call, tmp_path):
    parts = sample(users=80, items=50)
    parts.test.write_csv(tmp_path / "test.csv")
    for name in ("popular", "personal"):
        parts.runs[name].write_csv(tmp_path / f"{name}.csv")
    done = call(
        "audit",
        "--judgments",
        "test.csv",
        "--run",
        "popular.csv",
        "--run",
        "mine=personal.csv",
        "--quick",
        "-o",
        "lists.html",
    )
    assert done.exit_code == 0
    assert "as-given" in done.stdout
    assert "assumed: liked: ratings from 4 up" in done.stderr
    assert "mine" in (tmp_path / "lists.html").read_text()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["audit"], "name ratings"),
        (["audit", "x.csv", "--quick", "--thorough"], "not both"),
        (["audit", "x.csv", "--judgments", "y.csv"], "not both"),
        (["audit", "--judgments", "y.csv"], "both --judgments and --run"),
        (["audit", "--judgments", "y.csv", "--run", "z.csv", "--workers", "2"], "--workers is"),
        (["audit", "--judgments", "y.csv", "--run", "z.csv", "--no-tune"], "--no-tune is"),
        (["audit", "x.csv", "--train", "y.csv"], "--train needs"),
        (["audit", "ml-100k", "--columns", "user=u"], "--columns is for files"),
        (["audit", "./x.csv", "--data-dir", "y"], "data_dir is for named"),
        (["audit", "x.csv", "--format", "pdf"], "unknown format"),
        (["audit", "missing.csv"], "missing.csv"),
    ],
)
def test_audit_command_errors(call, words, says):
    with pytest.raises(us.UnskewError, match=says):
        call(*words)


def test_demo(call, tmp_path):
    done = call("demo", "--save", "sample")
    assert done.exit_code == 0
    assert "In truth people like" in done.stdout
    assert (tmp_path / "unskew-report.html").exists()
    files = {path.stem for path in (tmp_path / "sample").iterdir()}
    assert files == {"ratings", "random", "train", "test", "user-knn", "biased-mf"}
    assert us.read_ratings(tmp_path / "sample" / "ratings.csv").fingerprint


def test_help_shows_examples_and_every_level(call):
    text = call("audit", "--help").stdout
    for word in ("unskew audit ratings.csv", "--quick", "--thorough", "--judgments", "--store"):
        assert word in text


@pytest.mark.parametrize("column", ["rank", "score"])
def test_lists_are_no_ratings(call, tmp_path, column):
    path = tmp_path / "lists.csv"
    rows = [f"{user},{item},{0.37 * (item + 1):.2f}" for user in range(3) for item in range(3)]
    path.write_text("\n".join([f"user,item,{column}", *rows]))
    with pytest.raises(us.DataError, match=f"ranked lists, .* column '{column}' .* runs="):
        call("audit", path)
    words = ["--columns", f"rating={column}", "--liked", 1, "--quick", "--designs", "all-items"]
    words += ["--algorithms", "random,popularity", "-o", tmp_path / "x.json"]
    assert call("audit", path, *words).exit_code == 0  # the user says that these are ratings
    assert "--columns rating=" in (tmp_path / "x.json").read_text()


def test_a_second_file_gets_a_remedy(capsys):
    with pytest.raises(SystemExit) as left:
        main(["audit", "a.csv", "b.csv"])
    assert left.value.code == 2
    problem = capsys.readouterr().err
    assert "join several into one" in problem
    assert "another: b.csv" in " ".join(problem.split())
