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
from unskew.auditing.statements.first_screen import first_screen, statements_of
from unskew.auditing.truth.truth import TRUTH
from unskew.cli.doors import audit
from unskew.report.estimates import Estimates

METRIC = "P@10"


def story(shop, systems, designs, seed):
    """Return the leader of the common design, the next step, and the true P@10 of each system."""
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
    step = first_screen(evidence, statements_of(evidence)).next_step
    liked = np.concatenate([shop.values(users) for users in shop.blocks()]) >= shop.liked
    true = {
        name: float(np.mean([share_liked(part.runs[name], liked) for part in core.lists]))
        for name in core.systems
    }
    return evidence.leader, step, true


def share_liked(run, liked):
    """A plain twin: of the first ten items of each list, how many the user truly likes."""
    table = run.to_polars().filter(pl.col("rank") <= 10)
    users = table["user"].cast(pl.Int64).to_numpy() - 1
    items = table["item"].cast(pl.Int64).to_numpy() - 1
    return liked[users, items].mean()


def test_the_story_of_the_demo():
    """Popularity leads, yet is told to be worse than a system whose lists are truly liked more."""
    shop = us.world(audit.WORLD, seed=7)
    systems = ["random", "popularity", us.recommend.BiasedMF()]
    leader, step, true = story(shop, systems, ["all-items", "p1r"], seed=7)
    assert leader == "popularity"
    assert (step.kind, step.subjects) == ("better-despite", ("biased-mf", "popularity"))
    assert true["biased-mf"] > true["popularity"] + 0.15


@pytest.mark.slow
def test_the_story_of_the_demo_in_ten_worlds():
    """The next step names a system as better than the leader of the common design, and it is."""
    designs = [one for one in DESIGNS if one != "temporal"]
    holds = 0
    for seed in range(3001, 3011):
        shop = us.world(audit.WORLD, seed=seed)
        leader, step, true = story(shop, list(audit.SYSTEMS), designs, seed)
        if step is not None and step.kind == "better-despite" and step.subjects[1] == leader:
            holds += true[step.subjects[0]] > true[leader]
    assert holds >= 9


def test_popular_items_of_its_world_are_not_better():
    for seed in range(5):
        shop = us.world(audit.WORLD, seed=seed)
        count = np.bincount(shop.ratings.item, minlength=len(shop.items))
        chance = shop.item_chance
        assert -0.45 < np.corrcoef(np.log(count), chance)[0, 1] < 0.05
        assert np.sort(count)[-50:].sum() > 0.2 * count.sum()  # a tenth of the items


def result(leader, step, **true):
    keys = {"design": "all-items", "metric": METRIC, "quantity": "true"}
    rows = [{**keys, "system": system, "value": value} for system, value in true.items()]
    return SimpleNamespace(
        evidence=SimpleNamespace(leader=leader),
        first_screen=SimpleNamespace(next_step=step),
        truth=Estimates.of_rows(TRUTH, rows),
        common="all-items",
        metric=METRIC,
    )


def test_the_last_line_is_true_whatever_the_audit_says():
    better = SimpleNamespace(kind="better-despite", subjects=("b", "a"))
    text = audit.closing(result("a", better, a=0.371, b=0.629))
    assert text.startswith("In truth b is best: people like 63% of its first ten recommendations")
    assert "and 37% of those of a, which the common design puts first" in text
    assert text.endswith("the audit rightly takes b for better than a.")
    assert audit.closing(result("a", better, a=0.4, b=0.3)).endswith("puts it first, too.")
    wrong = audit.closing(result("a", better, a=0.4, b=0.3, c=0.5))
    assert wrong.endswith("The audit takes b for better than a, which is wrong here.")
    for step in (None, SimpleNamespace(kind="more-users", subjects=("a", "b"))):
        assert audit.closing(result("a", step, a=0.3, b=0.5)).endswith("does not see it.")


@pytest.mark.parametrize("number", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_its_files_can_be_audited(call, tmp_path, monkeypatch, number):
    monkeypatch.chdir(tmp_path)
    audit._save(us.world(audit.WORLD, users=80, items=60, seed=7), tmp_path / "two words", 7)
    program, *words = shlex.split(audit._to_try(tmp_path / "two words")[number])
    assert program == "unskew"
    code, out, err = call(*words, "-q", "-o", "report.json")
    assert code == 0, err
    assert out.strip()
