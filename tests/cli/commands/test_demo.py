"""The demo: its story holds in its world, its last line is true, and its files can be audited."""

import shlex
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.auditing.core.core import run_core
from unskew.auditing.designs import DESIGNS, LEVELS, designs_of_level, plan_of_level
from unskew.auditing.statements.evidence import evidence_of
from unskew.auditing.statements.first_screen import POPULAR_LIKING, first_screen, statements_of
from unskew.auditing.truth.truth import TRUTH
from unskew.cli.doors import demo
from unskew.report.estimates import Estimates

METRIC = "P@10"


def story(shop, systems, designs, seed):
    """Return the leading tier, the next step, what is said of popularity, and true shares."""
    level, rule = LEVELS["quick"], us.Relevance(liked=shop.liked)
    plan = plan_of_level(level, rule, systems, seed)
    core = run_core(
        shop.ratings,
        plan,
        designs_of_level(level, designs),
        metric=METRIC,
        metrics=(METRIC,),
        tune=[one for one in systems if isinstance(one, str)],
    )
    evidence = evidence_of(core, seed=seed)
    statements = statements_of(evidence)
    step = first_screen(evidence, statements).next_step
    quality = next(one.kind for one in statements if one.kind in POPULAR_LIKING)
    liked = np.concatenate([shop.values(users) for users in shop.blocks()]) >= shop.liked
    true = {
        name: float(np.mean([share_liked(part.runs[name], liked) for part in core.lists]))
        for name in core.systems
    }
    return evidence.leading(), step, quality, true


def share_liked(run, liked):
    """A plain twin: of the first ten items of each list, how many the user truly likes."""
    table = run.to_polars().filter(pl.col("rank") <= 10)
    users = table["user"].cast(pl.Int64).to_numpy() - 1
    items = table["item"].cast(pl.Int64).to_numpy() - 1
    return liked[users, items].mean()


def test_the_story_of_the_demo():
    """Popularity scores highest, yet a system is named whose lists are truly liked more."""
    shop = us.world(demo.DISPLAYED.world, seed=7)
    systems = ["random", "popularity", us.recommend.BiasedMF()]
    leading, step, quality, true = story(shop, systems, ["all-items", "p1r"], seed=7)
    assert leading == ("popularity",)
    assert quality == "popular-open"
    assert (step.kind, step.subjects) == ("better-despite", ("biased-mf", "popularity"))
    assert true["biased-mf"] > true["popularity"] + 0.15


def test_the_second_story_of_the_demo():
    """Popularity scores highest and is liked most: popular items are said to be liked more."""
    shop = us.world(demo.GOOD.world, seed=7)
    leading, step, quality, true = story(
        shop, ["random", "popularity", us.recommend.BiasedMF()], ["all-items", "p1r"], seed=7
    )
    assert leading == ("popularity",)
    assert quality == "popular-liked"
    assert step.kind in ("best", "better")
    assert step.subjects[0] == "popularity"
    assert true["popularity"] == max(true.values())


@pytest.mark.slow
def test_both_stories_are_true_in_twenty_worlds():
    """The audit tells the shops apart, or says that it cannot: it never says the wrong thing."""
    told = {demo.DISPLAYED: 0, demo.GOOD: 0}
    for seed in range(3001, 3021):
        for kind in told:
            shop = us.world(kind.world, users=demo.USERS, items=demo.ITEMS, seed=seed)
            leading, step, quality, true = story(
                shop, list(demo.SYSTEMS), [one for one in DESIGNS if one != "temporal"], seed
            )
            best = max(true, key=lambda system, of=true: of[system])
            if kind is demo.DISPLAYED:
                assert quality != "popular-liked"
                named = step is not None and step.kind == "better-despite"
                assert not named or true[step.subjects[0]] > true[step.subjects[1]]
                told[kind] += named
            else:
                assert quality == "popular-liked"
                assert step is None or step.kind != "better-despite"
                told[kind] += best in leading
    assert told[demo.GOOD] == 20
    assert told[demo.DISPLAYED] >= 6  # in the others it says that it cannot tell


def test_popular_items_of_its_world_are_not_better():
    for seed in range(5):
        shop = us.world(demo.DISPLAYED.world, seed=seed)
        count = np.bincount(shop.ratings.item, minlength=len(shop.items))
        chance = shop.item_chance
        assert -0.45 < np.corrcoef(np.log(count), chance)[0, 1] < 0.05
        assert np.sort(count)[-50:].sum() > 0.2 * count.sum()  # a tenth of the items


def result(leading, step, **true):
    keys = {"design": "all-items", "metric": METRIC, "quantity": "true"}
    rows = [{**keys, "system": system, "value": value} for system, value in true.items()]
    return SimpleNamespace(
        evidence=SimpleNamespace(leading=lambda: leading),
        first_screen=SimpleNamespace(next_step=step),
        truth=Estimates.of_rows(TRUTH, rows),
        common="all-items",
        metric=METRIC,
    )


def test_the_last_line_is_true_whatever_the_audit_says():
    better = SimpleNamespace(kind="better-despite", subjects=("b", "a"))
    text = demo.truth(result("a", better, a=0.371, b=0.629))
    assert text.startswith(
        "In truth people like 63% of the recommendations of b, 37% of those of a"
    )
    assert text.endswith("The audit rightly takes b for better than a, which scores higher.")
    wrong = demo.truth(result("a", better, a=0.4, b=0.3, c=0.5))
    assert "The audit wrongly takes b for better than a" in wrong
    for leading in ("a", "ab"):
        assert demo.truth(result(leading, None, a=0.4, b=0.3)).endswith("highest score is right.")
    for step in (None, SimpleNamespace(kind="more-users", subjects=("a", "b"))):
        assert demo.truth(result("a", step, a=0.3, b=0.5)).endswith("the audit cannot tell.")


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_its_files_can_be_audited(call, tmp_path, monkeypatch, number):
    monkeypatch.chdir(tmp_path)
    demo._save(
        us.world(demo.DISPLAYED.world, users=80, items=60, seed=7), tmp_path / "two words", 7
    )
    program, *words = shlex.split(demo._to_try(tmp_path / "two words")[number])
    assert program == "unskew"
    code, out, err = call(*words, "-q", "-o", "report.json")
    assert code == 0, err
    assert out.strip()
