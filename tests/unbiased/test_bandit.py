"""Logged bandit feedback: hand-worked logs, a world whose value is known, every error."""

import gzip
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import DataError, SettingError
from unskew.unbiased.bandit_logs import read_log
from unskew.unbiased.policy_values import policy_value

OPEN = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0
0,2019-11-24 00:00:00.21+00:00,14,3,0,0.0125,81ce,0.0
1,2019-11-24 00:00:20.30+00:00,14,2,1,0.0125,81ce,0.0
2,2019-11-24 00:00:29.60+00:00,27,1,0,0.0125,81ce,0.5
"""


def small(**more):
    rows = {
        "action": ["a", "b", "a", "c"], "reward": [1, 0, 0, 1],
        "propensity": [0.5, 0.25, 0.5, 0.25], **more,
    }  # fmt: skip
    return read_log(rows)


# Reading


def test_open_bandit_files_are_read_as_they_are(tmp_path):
    path = tmp_path / "log.csv.gz"
    path.write_bytes(gzip.compress(OPEN.encode()))
    log = read_log(path)
    assert log.actions.values.to_list() == [14, 27]
    assert log.positions.values.to_list() == [1, 2, 3]
    assert log.reward.tolist() == [0.0, 1.0, 0.0]
    assert log.propensity.tolist() == [0.0125] * 3
    assert "timestamp" in log.context.columns
    assert log.context["user-item_affinity_0"].to_list() == [0.0, 0.0, 0.5]
    assert log.context["user_feature_0"].dtype == pl.String
    assert log.frame(1, 3)["action"].to_list() == [14, 27]
    assert len(log) == 3
    assert "mean reward 0.3333" in repr(log)


def test_columns_can_be_named_and_rounds_kept_together():
    log = read_log(
        {"arm_chosen": [1, 2], "won": [1, 0], "p": [0.5, 0.5], "screen": [7, 7]},
        action="arm_chosen", reward="won", propensity="p", round="screen", actions=[1, 2, 3],
    )  # fmt: skip
    assert len(log.actions) == 3
    assert log.round.tolist() == [0, 0]
    assert policy_value(log, "uniform", bootstrap=0).rounds == 1
    assert log.notes == ("no position column: all rows have the same position",)


def test_logs_that_cannot_be_used():
    for bad in (0.0, 1e-300, 5e-324, -0.5):
        with pytest.raises(DataError, match=rf"1 propensity does not lie .* row 2, {bad:g}\."):
            small(propensity=[0.5, bad, 0.5, 0.25])
    with pytest.raises(DataError, match=r"row 1, 1.5"):
        small(propensity=[1.5, 0.5, 0.5, 0.25])
    with pytest.raises(DataError, match=r"'reward' must hold numbers; 1 row does not.*row 3"):
        small(reward=[1.0, 0.0, math.nan, 1.0])
    with pytest.raises(DataError, match="no propensity column found"):
        read_log({"action": [1], "reward": [1]})
    with pytest.raises(DataError, match="no rows"):
        read_log({"action": [], "reward": [], "propensity": []})
    with pytest.raises(DataError, match=r"actions: 1 row .* 'c'"):
        read_log(
            {"action": ["a", "c"], "reward": [1, 1], "propensity": [0.5, 0.5]}, actions=["a", "b"]
        )


# Hand-worked


def test_values_by_hand():
    log, policy = small(), {"a": 0.25, "b": 0.25, "c": 0.5}
    q = {"a": 0.5, "b": 0.0, "c": 1.0}
    found = policy_value(log, policy, rewards=q, bootstrap=0)
    weights = [0.5, 1.0, 0.5, 2.0]
    ips = (0.5 * 1 + 2.0 * 1) / 4
    snips = 2.5 / 4.0
    dm = 0.25 * 0.5 + 0.5 * 1.0
    dr = dm + (0.5 * 0.5 + 0.5 * -0.5) / 4
    assert found.value.tolist() == pytest.approx([ips, snips, dm, dr], abs=1e-15)
    assert found.effective == pytest.approx(16 / 5.5)
    assert found.mean_weight == 1.0
    assert found.largest_weight == 2.0
    assert found.logged == 0.5
    terms = np.array([w * r for w, r in zip(weights, [1, 0, 0, 1], strict=True)])
    assert found.error[0] == pytest.approx(terms.std(ddof=1) / 2)
    rest = np.array(weights) * (np.array([1, 0, 0, 1]) - snips)
    assert found.error[1] == pytest.approx(math.sqrt((rest**2).sum() / 3 / 4))
    assert found.error[2] == 0.0
    assert found.low[0] == pytest.approx(ips - 1.959963984540054 * found.error[0])


def test_the_reward_model_is_the_mean_of_the_cell_drawn_to_that_of_the_position():
    log = small(position=[1, 1, 2, 2])
    found = policy_value(log, {"a": 1.0, "b": 0.0, "c": 0.0}, estimators=["dm"], folds=1, prior=2)
    first = (1 + 2 * 0.5) / 3  # position 1: a earned 1; the mean is 1/2
    second = (0 + 2 * 0.5) / 3  # position 2: a earned 0
    assert found.value[0] == pytest.approx((first + first + second + second) / 4)
    bare = policy_value(log, {"c": 1.0}, estimators=["dm"], folds=1, prior=0)
    assert bare.value[0] == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)  # c was never shown at 1


def test_no_row_sees_its_own_reward():
    """One action, many folds: each row is predicted from the others only."""
    log = read_log({"action": [1, 1], "reward": [1, 0], "propensity": [1.0, 1.0]})
    for seed in range(20):
        found = policy_value(log, "uniform", estimators=["dm", "dr"], folds=50, prior=0, seed=seed)
        if found.value[0] == 0.5:  # in different folds: each predicts the other's reward
            assert found.value[1] == pytest.approx(0.5)
            break
    else:
        pytest.fail("two rows never fell into different folds")


def test_all_forms_of_a_policy_agree():
    log = small(position=[1, 2, 1, 2])
    chances = {"a": 0.2, "b": 0.3, "c": 0.5}
    flat = np.array([0.2, 0.3, 0.5])
    forms = [
        chances,
        pl.DataFrame({"action": list(chances), "p": list(chances.values())}),
        pl.DataFrame(
            {"action": list(chances) * 2, "position": [1] * 3 + [2] * 3, "p": [0.2, 0.3, 0.5] * 2}
        ),
        flat,
        np.stack([flat] * 2),
        np.stack([flat] * 4),
        lambda rows: np.tile(flat, (rows.height, 1)),
    ]
    values = [policy_value(log, form, bootstrap=50).to_dict() for form in forms]
    assert all(one == values[0] for one in values[1:])


def test_positions_choose_the_row_of_a_policy():
    log = small(position=[1, 2, 1, 2])
    policy = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = policy_value(log, policy, estimators=["ips"], bootstrap=0)
    assert found.value[0] == pytest.approx((1 / 0.5 + 1 / 0.25) / 4)


def test_what_is_never_shown_is_told():
    log = small()
    told = policy_value(log, "uniform", bootstrap=0)
    assert told.unsupported == 0.0
    wide = read_log(
        {"action": ["a", "b"], "reward": [1, 0], "propensity": [0.5, 0.5]}, actions=["a", "b", "z"]
    )
    found = policy_value(wide, {"a": 0.5, "z": 0.5}, bootstrap=0)
    assert found.unsupported == 0.5
    assert any("50 % of the policy" in note for note in found.notes)
    nothing = policy_value(wide, {"z": 1.0}, estimators=["ips", "snips"], bootstrap=10)
    assert nothing.value[0] == 0.0
    assert math.isnan(nothing.value[1])
    assert nothing.effective == 0.0
    assert "every weight is 0" in str(nothing)
    assert nothing.table()["value"].to_list() == [0.0, None]


def test_clipping_is_counted():
    found = policy_value(small(), {"a": 0.25, "b": 0.25, "c": 0.5}, clip=1.0, bootstrap=0)
    assert found.clipped == 1
    assert found.largest_weight == 1.0
    assert any("1 weight was clipped" in note for note in found.notes)


@given(st.integers(0, 10_000))
def test_five_line_twin(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 30)), int(rng.integers(2, 5))
    action, reward = rng.integers(0, k, n), rng.random(n)
    p, pi, q = rng.uniform(0.05, 1, n), rng.dirichlet(np.ones(k), n), rng.random((n, k))
    rows = {"action": action, "reward": reward, "propensity": p}
    log = read_log(rows, actions=list(range(k)))
    w = [pi[i, action[i]] / p[i] for i in range(n)]
    ips = sum(w[i] * reward[i] for i in range(n)) / n
    snips = sum(w[i] * reward[i] for i in range(n)) / sum(w)
    dm = sum(pi[i] @ q[i] for i in range(n)) / n
    dr = dm + sum(w[i] * (reward[i] - q[i, action[i]]) for i in range(n)) / n
    found = policy_value(log, pi, rewards=q, bootstrap=0)
    assert found.value.tolist() == pytest.approx([ips, snips, dm, dr], rel=1e-10)


def test_same_bits_whatever_the_threads(monkeypatch):
    from unskew.unbiased import policy_values

    log, policy, _ = world(3_000, seed=4)
    once = policy_value(log, policy, threads=1).to_dict()
    monkeypatch.setattr(policy_values, "CELLS", 1 << 21)
    assert policy_value(log, policy, threads=3).to_dict() == once


# A world whose truth is known


def world(rows, seed, actions=6, positions=3):
    """Return a log, a policy, and what the policy earns: clicks depend on action and position."""
    rng = np.random.default_rng(seed)
    taste = np.linspace(0.05, 0.4, actions)[None, :] * np.linspace(1.0, 0.4, positions)[:, None]
    ran = rng.dirichlet(np.full(actions, 2.0), positions)
    ran = 0.7 * ran + 0.3 / actions
    wanted = np.full((positions, actions), 0.02)
    wanted[:, -2:] += (1 - 0.02 * actions) / 2
    place = rng.integers(0, positions, rows)
    action = np.array([rng.choice(actions, p=ran[at]) for at in place])
    click = rng.random(rows) < taste[place, action]
    log = read_log(
        {"item_id": action, "position": place + 1, "click": click.astype(int),
         "propensity_score": ran[place, action]},
        actions=list(range(actions)),
    )  # fmt: skip
    return log, wanted, float((taste * wanted).sum(axis=1).mean())


@pytest.mark.slow
def test_unbiased_in_a_known_world_and_doubly_robust_varies_least():
    names = ("ips", "snips", "dm", "dr")
    found = []
    for seed in range(300):
        log, policy, truth = world(400, seed)
        found.append((policy_value(log, policy, bootstrap=0), truth))
    gaps = np.array([value.value - truth for value, truth in found])
    error = gaps.std(axis=0, ddof=1) / math.sqrt(len(found))
    z = gaps.mean(axis=0) / error
    assert abs(z[names.index("ips")]) <= 4.5
    assert abs(z[names.index("dr")]) <= 4.5
    spread = gaps.std(axis=0, ddof=1)
    assert spread[names.index("dr")] < spread[names.index("ips")]
    # Normal intervals of ips and dr hold their level: 95 % +- 4.5 standard errors of a share.
    inside = np.array([(value.low <= truth) & (truth <= value.high) for value, truth in found])
    reach = 4.5 * math.sqrt(0.95 * 0.05 / len(found))
    for name in ("ips", "snips", "dr"):
        assert inside[:, names.index(name)].mean() > 0.95 - reach - 0.01


def test_a_good_reward_model_lowers_the_variance():
    """With the true model what is left to the weights is noise only."""
    log, policy, _ = world(2_000, seed=1)
    taste = np.linspace(0.05, 0.4, 6)[None, :] * np.linspace(1.0, 0.4, 3)[:, None]
    found = policy_value(log, policy, rewards=taste, bootstrap=200)
    ips, dr = found.error[0], found.error[3]
    assert dr < 0.95 * ips
    for at in (0, 1, 3):  # both intervals tell about the same
        wide = found.high[at] - found.low[at]
        assert found.bootstrap_high[at] - found.bootstrap_low[at] == pytest.approx(wide, rel=0.25)


def test_wrong_propensities_show_in_the_mean_weight():
    log, policy, _ = world(3_000, seed=2)
    wrong = read_log(
        {"action": log.action, "position": log.position, "reward": log.reward,
         "propensity": np.minimum(log.propensity * 1.5, 1.0)},
        actions=list(range(6)),
    )  # fmt: skip
    assert any("mean weight" in note for note in policy_value(wrong, policy, bootstrap=0).notes)
    assert not any("and not 1" in note for note in policy_value(log, policy, bootstrap=0).notes)


# Errors and forms


def test_policies_that_are_none():
    log = small()
    with pytest.raises(DataError, match=r"add up to 1; in row 0 they add up to 0.9"):
        policy_value(log, {"a": 0.4, "b": 0.5})
    with pytest.raises(DataError, match=r"the least is -0\.5"):
        policy_value(log, {"a": 1.5, "b": -0.5})
    with pytest.raises(DataError, match="action 'z' is unknown to the log"):
        policy_value(log, {"z": 1.0})
    with pytest.raises(DataError, match=r"shape \(2, 2\) does not fit"):
        policy_value(log, np.ones((2, 2)))
    with pytest.raises(DataError, match=r"policy gave an array of shape \(4, 1\)"):
        policy_value(log, lambda rows: np.ones((rows.height, 1)))
    with pytest.raises(SettingError, match="unknown policy 'unifrom'"):
        policy_value(log, "unifrom")
    with pytest.raises(SettingError, match="got int"):
        policy_value(log, 3)
    with pytest.raises(DataError, match="an action occurs twice"):
        policy_value(log, pl.DataFrame({"action": ["a", "a"], "p": [0.5, 0.5]}))
    with pytest.raises(DataError, match="needs the columns action"):
        policy_value(log, pl.DataFrame({"item": ["a"], "p": [1.0]}))
    with pytest.raises(DataError, match="a position is unknown"):
        policy_value(log, pl.DataFrame({"action": ["a"], "position": [9], "p": [1.0]}))
    with pytest.raises(DataError, match="row 0 has no number"):
        policy_value(log, "uniform", rewards=np.full(3, np.nan))


def test_settings_that_are_none():
    log = small()
    with pytest.raises(SettingError, match="unknown estimator 'drr'"):
        policy_value(log, "uniform", estimators=["drr"])
    with pytest.raises(SettingError, match="no estimators"):
        policy_value(log, "uniform", estimators=[])
    with pytest.raises(SettingError, match="neither is asked for"):
        policy_value(log, "uniform", estimators=["ips"], rewards={"a": 1.0})
    for setting in ({"folds": 0}, {"prior": -1}, {"clip": 0}, {"level": 1}, {"bootstrap": -1}):
        with pytest.raises(SettingError, match=next(iter(setting))):
            policy_value(log, "uniform", **setting)


def test_result_is_shown():
    found = policy_value(small(), "uniform", bootstrap=20)
    assert found.table()["estimator"].to_list() == ["ips", "snips", "dm", "dr"]
    assert "effective sample size" in str(found)
    assert "<table" in found._repr_html_()
    assert repr(found).startswith("PolicyValue(ips ")
    spec = found.figure().to_dict()
    assert len(spec["datasets"]["rows"]) == 4
