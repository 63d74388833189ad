"""What an audit will take: counted work, growth, words, and what really happened."""

import math
import time
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.auditing.audit_work import AuditWork, together, tuning_rounds
from unskew.auditing.designs import LEVELS, designs_of_level, named_systems
from unskew.auditing.estimate import beyond_bounds, estimate_audit
from unskew.auditing.stages import STAGE_WEIGHTS
from unskew.cli.audit_estimate import lines_before
from unskew.cli.progress import AUDIT, weighted
from unskew.errors import SettingError
from unskew.experiment import halving
from unskew.recommend.cost_constants import BYTES, NANOSECONDS
from unskew.recommend.costs import DataShape, Machine

SHAPE = DataShape(1_000_000, 6_000, 3_700)
FIXED = {"machine": Machine(), "processors": 2}


def work(level="quick", **settings):
    stage = LEVELS[level]
    systems = dict(named_systems(None, stage, 4.0))
    given = {"designs": designs_of_level(stage), "tuned": frozenset(systems), "judged": 6_000}
    given |= {"shape": SHAPE, "systems": systems, "level": stage}
    return AuditWork(**(given | settings))


def drawn(users, items, share):
    """Return ratings of a random share of all pairs."""
    rng = np.random.default_rng(2)
    user, item = np.nonzero(rng.random((users, items)) < share)
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})


def whole(one):
    parts = [*(one.stages_of(name) for name in one.systems), one.shared_stages()]
    return together(*(part for stages in parts for part in stages.values()))


def test_every_operation_has_a_constant():
    for level in LEVELS:
        assert whole(work(level)).keys() <= NANOSECONDS.keys()
    assert work().sizes().keys() == BYTES.keys()


def test_estimates_have_the_stages_of_an_audit():
    stages = estimate_audit(SHAPE, "quick", **FIXED).by_stage
    assert list(stages) == list(STAGE_WEIGHTS)
    assert all(seconds > 0 for seconds in stages.values())
    shown = weighted(AUDIT, stages)
    assert {name: one.weight for name, one in shown.items()} == stages
    assert [one.title for one in shown.values()] == [one.title for one in AUDIT.values()]


def test_lists_and_cells_are_counted_as_designs_have_them():
    data = drawn(80, 300, 0.2)
    (split,) = us.splits.Random(test=0.2).split(data, seed=3)
    liked = float((data.value >= 4).mean())
    one = work(shape=DataShape.of(data), judged=80, liked=liked)
    for design in one.designs:
        if design.name not in ("all-items", "test-items", "1r", "test-targets"):
            continue
        lists = design.view.targets.lists(split, us.Relevance(liked=4), seed=0)
        assert one.lists_of(design) == pytest.approx(len(lists), rel=0.15)
        assert one.cells_of(design) == pytest.approx(lists.size.sum(), rel=0.15)


def test_rounds_of_settings_are_those_of_the_search(monkeypatch):
    monkeypatch.setattr(halving, "CLOSE", 1.0)  # else a clear lead ends it after one round
    system = {"svd": us.recommend.PureSVD(factors=2)}
    data = drawn(2_400, 40, 0.2)
    trials = us.experiment.tune_systems(system, data, us.Relevance(liked=4), "P@10")
    table = trials["svd"].trials.group_by("round", maintain_order=True).len()
    expected = list(tuning_rounds(2_400, 6))
    assert table["len"].to_list() == [count for _, count in expected]
    assert expected[-1][0] == 2_400


def test_work_grows_with_everything_that_is_asked():
    def seconds(one):
        from unskew.recommend.costs import seconds_of

        return seconds_of(whole(one))

    usual = seconds(work())
    few = dict(list(work().systems.items())[:3])
    assert seconds(work(systems=few, tuned=frozenset(few))) < usual
    assert seconds(work(designs=designs_of_level(LEVELS["quick"], ["all-items"]))) < usual
    assert seconds(work(tuned=frozenset())) < usual
    assert seconds(work(judged=1_000)) < usual
    assert seconds(work(has_null=False)) < usual
    assert seconds(work(level="default")) > usual
    assert seconds(work(shape=DataShape(2_000_000, 12_000, 3_700), judged=12_000)) > usual
    more = replace(LEVELS["quick"], repeats=9)
    assert seconds(work(level="quick")) < seconds(replace(work(), level=more))


@pytest.mark.parametrize("level", LEVELS)
def test_estimates_grow_with_each_size(level):
    base = estimate_audit(DataShape(200_000, 2_000, 1_000), level, **FIXED)
    for shape in (
        DataShape(800_000, 2_000, 1_000),
        DataShape(800_000, 8_000, 1_000),
        DataShape(800_000, 2_000, 4_000),
    ):
        more = estimate_audit(shape, level, **FIXED)
        assert more.seconds > base.seconds
        assert more.bytes > base.bytes


def test_tables_add_up():
    result = estimate_audit(SHAPE, "quick", **FIXED)
    assert result.table()["seconds"].sum() == pytest.approx(result.cpu_seconds)
    assert result.cpu_seconds == pytest.approx(sum(result.by_stage.values()))
    text = str(result)
    assert text.startswith("about ")
    assert "By stage" in text
    assert "user-knn" in text
    assert result.to_dict()["rows"]
    assert "on 2 processors without other work" in result.line()


def test_a_sample_of_users_is_cheaper_and_stated():
    sample = estimate_audit(SHAPE, "quick", users=500, **FIXED)
    assert sample.seconds < estimate_audit(SHAPE, "quick", **FIXED).seconds
    assert "(500 judged)" in str(sample)


@dataclass(frozen=True)
class Mine(us.recommend.Algorithm):
    """A recommender without a formula."""

    def learn(self, train, rng):
        return np.arange(len(train.items), dtype=float)


def test_a_system_of_the_user_is_tried_where_there_are_ratings():
    shop = us.world("shop", users=60, items=40, seed=3)
    systems = {"mine": Mine(), "popularity": us.recommend.Popularity()}
    result = estimate_audit(shop, "quick", algorithms=systems, liked=4)
    assert result.seconds > 0
    with pytest.raises(SettingError, match="no formula for the cost of mine"):
        estimate_audit(SHAPE, "quick", algorithms=systems)


def test_a_trial_takes_users_who_have_ratings():
    """Ids may belong to users without ratings: of 20,000 all but one."""
    shop = us.world("shop", users=60, items=40, seed=3).ratings
    some = shop.take(shop.user == shop.user[0])
    ids = us.data.Ids(pl.Series(range(20_000)))
    some = replace(some, users=ids, user=np.full(len(some), 7, np.int32))
    result = estimate_audit(some, "quick", algorithms={"mine": Mine(), "other": Mine()}, liked=4)
    assert math.isfinite(result.seconds)


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (DataShape(0, 0, 0), {}, "there are no ratings to audit"),
        (DataShape(10, 0, 5), {}, "there are no ratings to audit"),
        (SHAPE, {"algorithms": []}, "algorithms is empty: name at least one system"),
        (SHAPE, {"algorithms": {}}, "algorithms is empty: name at least one system"),
        (us.world("shop", users=9, items=9), {"designs": ["temporal"]}, "needs time stamps"),
    ],
)
def test_what_leaves_nothing_to_do_is_refused(data, settings, message):
    with pytest.raises(us.UnskewError, match=message):
        estimate_audit(data, "quick", machine=Machine(), processors=1, **settings)


def test_what_nobody_dislikes_has_no_null_experiment():
    clicks = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [1, 2, 1, 2, 3]})
    result = estimate_audit(clicks, "quick", algorithms=["random", "popularity"], **FIXED)
    assert result.by_stage["null experiment"] == 0
    assert "temporal" not in {one.name for one in result.work.designs}


def test_lines_before_an_audit():
    short = estimate_audit(DataShape(5_000, 100, 80), "quick", **FIXED)
    assert lines_before("quick", {}, short) == []
    long = estimate_audit(SHAPE, "default", **FIXED)
    (line,) = lines_before("default", {"data": SHAPE}, long)
    assert line.startswith("This takes about ")
    assert "; --quick takes about " in line
    (line,) = lines_before("quick", {"store": "x"}, estimate_audit(SHAPE, "quick", **FIXED))
    assert line.endswith(", less for what the store already holds.")


def test_named_systems_that_explode_are_warned_of():
    large = DataShape(20_000_263, 138_493, 26_744, 9_254, 67_310)
    named = estimate_audit(large, "quick", algorithms=["popularity", "user-knn"], **FIXED)
    assert list(named.work.systems) == ["popularity", "user-knn"]
    why = beyond_bounds(named.work)
    assert list(why) == ["user-knn"]
    assert "of processor time and" in why["user-knn"]
    assert "name it" not in why["user-knn"]
    assert any(line.startswith("user-knn: ") for line in lines_before("quick", {}, named))


def test_the_command_prints_the_estimate_and_runs_nothing(tmp_path, call):
    shop = us.world("shop", users=40, items=30, seed=3)
    shop.ratings.to_polars().select("user", "item", "rating").write_csv(tmp_path / "r.csv")
    report = tmp_path / "report.html"
    code, out, _ = call("audit", tmp_path / "r.csv", "--liked", 4, "--dry-run", "-o", report)
    assert code == 0
    assert "By system" in out
    assert not report.exists()
    lists = ("audit", "-j", tmp_path / "r.csv", "-r", tmp_path / "r.csv", "--dry-run")
    code, _, err = call(*lists)
    assert code == 2
    assert "--dry-run is for ratings" in err


@pytest.mark.slow
def test_an_audit_takes_about_what_is_estimated():
    """Within a factor of 3, as other work on the machine may slow it down."""
    data = drawn(800, 400, 0.1)
    us.audit(drawn(60, 40, 0.3), "quick", liked=4)  # kernels are compiled
    begun = time.process_time()
    us.audit(data, "quick", liked=4)
    took = time.process_time() - begun
    by = estimate_audit(data, "quick", liked=4).cpu_seconds
    assert took / 3 < by < took * 3
