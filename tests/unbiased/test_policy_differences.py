"""Differences of policies: hand-worked logs, Open Bandit Pipeline, known worlds, every refusal."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew import DataError, SettingError
from unskew.stats.distributions import student_t_quantile
from unskew.unbiased import policy_differences
from unskew.unbiased.bandit_logs import read_log
from unskew.unbiased.policy_differences import policy_difference
from unskew.unbiased.policy_values import policy_value

OBP = json.loads((Path(__file__).parent / "obp_values.json").read_text())


def small(**more):
    rows = {
        "action": ["a", "b", "a", "c"], "reward": [1, 0, 0, 1],
        "propensity": [0.5, 0.25, 0.5, 0.25], **more,
    }  # fmt: skip
    return read_log(rows)


def log_of(seed, rows, actions=4, *, rare=1.0, least=0.05, rounds=1):
    """Return a log of a policy that draws, with its propensities, and the chance of a reward."""
    rng = np.random.default_rng(seed)
    taste = rare * np.linspace(0.1, 0.7, actions)
    ran = (1 - actions * least) * rng.dirichlet(np.ones(actions)) + least
    action = rng.choice(actions, rows, p=ran)
    reward = (rng.random(rows) < taste[action]).astype(float)
    columns = {"action": action, "reward": reward, "propensity": ran[action]}
    if rounds > 1:
        columns["round"] = np.arange(rows) // rounds
    return read_log(columns, actions=list(range(actions))), taste


# The formulas


def test_differences_by_hand():
    log = small()
    a, b = {"a": 0.25, "b": 0.25, "c": 0.5}, {"a": 0.5, "b": 0.5}
    result = policy_difference(log, a, b, supported=True)
    d = np.array([0.5, 1.0, 0.5, -2.0])  # w_b = 1, 2, 1, 0 and w_a = 0.5, 1, 0.5, 2
    r = np.array([1.0, 0, 0, 1])
    beta = (0.25 + 4.0) / (0.25 + 1 + 0.25 + 4)
    assert result.beta == pytest.approx(beta)
    assert result.value.tolist() == pytest.approx(
        [-1.5 / 4, 1 / 4 - 2.5 / 4, (d * (r - beta)).sum() / 4]
    )
    rest = d * r - result.value[0]
    assert result.error[0] == pytest.approx(math.sqrt((rest**2).sum() / 3 / 4))
    carrying = (rest**2).sum() ** 2 / (rest**4).sum()
    assert result.carrying[0] == pytest.approx(carrying)
    quantile = student_t_quantile(0.975, 2 / (1 / carrying - 1 / 4))
    assert result.high[0] - result.value[0] == pytest.approx(quantile * result.error[0], rel=1e-3)
    assert result.differing == pytest.approx((0.25 + 0.25 + 0.5) / 2)


@given(st.integers(0, 10_000))
def test_five_line_twin(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 40)), int(rng.integers(2, 5))
    action, reward, p = rng.integers(0, k, n), rng.normal(size=n), rng.uniform(0.05, 0.9, n)
    a, b = rng.dirichlet(np.ones(k), n), rng.dirichlet(np.ones(k), n)
    log = read_log({"action": action, "reward": reward, "propensity": p}, actions=list(range(k)))
    wa = [a[i, action[i]] / p[i] for i in range(n)]
    wb = [b[i, action[i]] / p[i] for i in range(n)]
    d = [second - first for first, second in zip(wa, wb, strict=True)]
    beta = sum(x * x * r for x, r in zip(d, reward, strict=True)) / sum(x * x for x in d)
    ips = sum(x * r for x, r in zip(d, reward, strict=True)) / n
    snips = np.dot(wb, reward) / sum(wb) - np.dot(wa, reward) / sum(wa)
    shifted = sum(x * (r - beta) for x, r in zip(d, reward, strict=True)) / n
    result = policy_difference(log, a, b, supported=True)
    assert result.value.tolist() == pytest.approx([ips, snips, shifted], rel=1e-9, abs=1e-12)
    alone = [policy_value(log, x, estimators=["ips", "snips"], bootstrap=0).value for x in (a, b)]
    assert result.value[:2] == pytest.approx(alone[1] - alone[0], rel=1e-9, abs=1e-12)
    # What two separate estimates would vary by.
    errors = [policy_value(log, x, estimators=["ips", "snips"], bootstrap=0).error for x in (a, b)]
    assert result.separate_error[:2] == pytest.approx(np.hypot(*errors))


@pytest.mark.parametrize("number", [0, 1])
def test_values_of_open_bandit_pipeline(number):
    """Where an estimator is one of Open Bandit Pipeline's, to 1e-9."""
    assert OBP["source"] == "obp 0.4.1, numpy 1.23.5"
    given_log = OBP["logs"][number]
    columns = {name: np.array(given_log[name]) for name in ("action", "position", "reward")}
    a, b, guess = (np.array(given_log[name]) for name in ("a", "b", "guess"))
    log = read_log({**columns, "propensity": given_log["pscore"]})
    for policy, name in ((a, "values_a"), (b, "values_b")):
        value = policy_value(log, policy, rewards=guess, bootstrap=0).value
        assert value == pytest.approx(list(given_log[name].values()), abs=1e-9)
    result = policy_difference(log, a, b, estimators=["ips", "snips"], supported=True)
    first, second = given_log["values_a"], given_log["values_b"]
    want = [second[name] - first[name] for name in ("ips", "snips")]
    assert result.value == pytest.approx(want, abs=1e-9)


def test_no_other_constant_has_less_variance():
    log, _ = log_of(1, 3_000)
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    result = policy_difference(log, a, b)
    d = (b - a)[log.action] / log.propensity
    least = ((d * (log.reward - result.beta)) ** 2).sum()
    for constant in np.linspace(-1, 2, 61):
        assert ((d * (log.reward - constant)) ** 2).sum() >= least - 1e-9
    assert result.error[2] < result.error[0]


def test_a_constant_reward_makes_no_difference():
    """What every action earns cannot tell policies apart: ips alone is moved, by the mean of d."""
    log, _ = log_of(2, 500)
    more = read_log(
        {"action": log.action, "reward": log.reward + 5, "propensity": log.propensity},
        actions=list(range(4)),
    )
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    before, after = (policy_difference(one, a, b) for one in (log, more))
    assert after.value[1:] == pytest.approx(before.value[1:], abs=1e-12)
    assert after.error[1:] == pytest.approx(before.error[1:], rel=1e-9)
    assert after.value[0] - before.value[0] == pytest.approx(5 * before.mean_weight)


def test_swapped_policies_swap_the_sign():
    log, _ = log_of(3, 400)
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    one, other = policy_difference(log, a, b), policy_difference(log, b, a)
    assert one.value == pytest.approx(-other.value)
    assert one.error == pytest.approx(other.error)
    assert one.low == pytest.approx(-other.high)


def test_errors_are_those_of_the_jackknife():
    """Leave out a round at a time: the same standard error to 2 %, with rounds of several rows.

    β is held: how it varies is of the second order, as the weights differ by 0 in the mean.
    """
    log, _ = log_of(4, 900, rounds=3)
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    result = policy_difference(log, a, b)
    assert (result.rows, result.rounds) == (900, 300)
    sums = policy_differences._RoundSums.of(
        log, policy_differences._evaluate_rows(log, *(per(log, x) for x in (a, b)), None)
    )
    total = sums.by_round.sum(axis=0)
    rest = total - sums.by_round
    left = sums.differences(rest, result.estimators)
    left[:, 2] = (rest[:, 1] - result.beta * rest[:, 2]) / rest[:, 0]
    jackknife = np.sqrt(299 / 300 * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    assert result.error == pytest.approx(jackknife, rel=0.02)


def per(log, policy):
    return policy_differences.per_action(log, "policy", policy)


# What it is for


def test_what_both_policies_do_alike_costs_nothing():
    log, _ = log_of(5, 2_000)
    a = np.array([0.1, 0.2, 0.3, 0.4])
    near = 0.95 * a + 0.05 * np.array([0.7, 0.1, 0.1, 0.1])
    result = policy_difference(log, a, near)
    assert (result.gain > 50).all()
    assert result.differing == pytest.approx(0.05 * 0.6)
    spans = result.high - result.low
    assert spans[2] <= spans[0]


def test_the_same_policy_earns_the_same():
    log, _ = log_of(6, 200)
    a = np.array([0.1, 0.2, 0.3, 0.4])
    result = policy_difference(log, a, a.copy(), bootstrap=20)
    assert result.value.tolist() == [0.0, 0.0, 0.0]
    assert result.conclusion == "A and B choose alike: neither earns more"
    assert np.isnan(result.low).all()  # no interval of width 0


def test_conclusions():
    log, taste = log_of(7, 4_000)
    bad, good = np.array([0.7, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.1, 0.7])
    better = policy_difference(log, bad, good, names=["old", "new"])
    assert better.conclusion.startswith("new earns more than old: ")
    assert better.conclusion in str(better)
    assert better.low[2] <= taste @ (good - bad) <= better.high[2]
    worse = policy_difference(log, good, bad)
    assert worse.conclusion.startswith("A earns more than B: 0.")
    same = np.array([0.25, 0.25, 0.25, 0.25])
    swapped = np.array([0.4, 0.1, 0.1, 0.4])  # 0.1 + 0.7 = 0.3 + 0.5: they earn the same
    open_question = policy_difference(log, same, swapped)
    assert "does not settle whether A or B earns more" in open_question.conclusion
    assert policy_difference(log, bad, good, estimators=["ips"]).conclusion == ""


def test_too_little_is_no_conclusion():
    """One rewarded row, or none: no interval of width 0, and nobody earns more."""
    rows = {"action": [0, 1] * 50, "propensity": [0.5] * 100}
    a, b = {0: 0.9, 1: 0.1}, {0: 0.1, 1: 0.9}
    one = read_log({**rows, "reward": [0.0] * 99 + [1.0]})
    result = policy_difference(one, a, b)
    assert "too few rounds tell A and B apart" in result.conclusion
    none = policy_difference(read_log({**rows, "reward": [0.0] * 100}), a, b)
    assert np.isnan(none.low).all()
    assert "rests on 0 of them" in none.conclusion
    assert none.table()["low"].to_list() == [None] * 3
    alone = read_log({**rows, "reward": [0.0, 1.0] * 50, "round": [1] * 100})
    assert np.isnan(policy_difference(alone, a, b).error).all()


# What is refused


def test_deterministic_logs_are_refused():
    log = read_log({"action": ["x", "y"], "reward": [1, 0], "propensity": [1.0, 1.0]})
    with pytest.raises(DataError, match=r"the log is deterministic: every action has propensity 1"):
        policy_difference(log, {"x": 1.0}, {"y": 1.0})
    mixed = read_log(
        {"action": ["x", "y", "x"], "reward": [1, 0, 1], "propensity": [1.0, 0.5, 0.5]}
    )
    as_logged = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(DataError, match=r"1 row has propensity 1, but new may choose another"):
        policy_difference(mixed, as_logged, "uniform", names=["old", "new"])


def test_rows_without_a_choice_do_no_harm_where_the_policies_have_none_either():
    log = read_log(
        {
            "action": [0, 1, 0, 1, 0],
            "reward": [1, 0, 1, 1, 0],
            "propensity": [1, 0.5, 0.5, 0.5, 0.5],
        }
    )
    forced = np.array([[1.0, 0.0]])
    a = np.concatenate([forced, np.tile([0.3, 0.7], (4, 1))])
    b = np.concatenate([forced, np.tile([0.6, 0.4], (4, 1))])
    d = np.array([0.0, -0.6, 0.6, -0.6, 0.6])
    result = policy_difference(log, a, b, estimators=["ips"])
    assert result.value[0] == pytest.approx((d * log.reward).mean())


def test_actions_without_support_are_refused():
    wide = read_log(
        {"action": ["a", "b"] * 20, "reward": [1, 0] * 20, "propensity": [0.5, 0.5] * 20},
        actions=["a", "b", "z"],
    )
    with pytest.raises(DataError, match=r"A and B differ in 20 % of their choices on actions"):
        policy_difference(wide, {"a": 0.5, "b": 0.5}, {"a": 0.3, "b": 0.3, "z": 0.4})
    # What both do alike needs no support.
    alike = policy_difference(wide, {"a": 0.3, "b": 0.3, "z": 0.4}, {"a": 0.5, "b": 0.1, "z": 0.4})
    assert alike.value[0] == pytest.approx(0.2)
    stated = policy_difference(wide, {"a": 1.0}, {"a": 0.6, "z": 0.4}, supported=True)
    assert any("as you said" in note for note in stated.notes)


def test_wrong_propensities_show():
    log, _ = log_of(8, 3_000)
    wrong = read_log(
        {"action": log.action, "reward": log.reward,
         "propensity": np.clip(log.propensity * np.array([3, 1, 1, 1])[log.action], 0, 0.99)},
        actions=list(range(4)),
    )  # fmt: skip
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    assert any("same mean" in note for note in policy_difference(wrong, a, b).notes)
    assert not any("same mean" in note for note in policy_difference(log, a, b).notes)


def test_other_errors():
    log = small()
    a, b = {"a": 0.5, "b": 0.25, "c": 0.25}, "uniform"
    with pytest.raises(SettingError, match="unknown estimator 'dr'"):
        policy_difference(log, a, b, estimators=["dr"])
    with pytest.raises(SettingError, match="no estimators"):
        policy_difference(log, a, b, estimators=[])
    with pytest.raises(SettingError, match="two different names"):
        policy_difference(log, a, b, names=["x", "x"])
    with pytest.raises(SettingError, match="level"):
        policy_difference(log, a, b, level=1.5)
    with pytest.raises(DataError, match="b: the chances of a row must be 0 or more and add up"):
        policy_difference(log, a, {"a": 0.5})
    with pytest.raises(DataError, match="action 'z' is unknown to the log"):
        policy_difference(log, {"z": 1.0}, b)
    with pytest.raises(SettingError, match="b must be 'uniform', a mapping"):
        policy_difference(log, a, 3)


# Forms


def test_same_bits_whatever_the_threads_and_blocks(monkeypatch):
    log, _ = log_of(9, 3_000, rounds=2)
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    once = policy_difference(log, a, b, bootstrap=100, threads=1).to_dict()
    monkeypatch.setattr(policy_differences, "CELLS", 1 << 21)
    assert policy_difference(log, a, b, bootstrap=100, threads=3).to_dict() == once


def test_result_is_shown():
    log, _ = log_of(10, 500)
    a, b = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    result = policy_difference(log, a, b, bootstrap=200)
    assert result.table()["estimator"].to_list() == ["ips", "snips", "beta"]
    width = result.high - result.low
    assert result.bootstrap_high - result.bootstrap_low == pytest.approx(width, rel=0.25)
    assert "separate_error" in str(result)
    assert "<table" in result._repr_html_()
    assert repr(result).startswith("PolicyDifference(ips ")
    assert len(result.figure().to_dict()["datasets"]["rows"]) == 3
    assert json.dumps(result.to_dict())
    bare = policy_difference(log, a, b)
    assert "bootstrap_low" not in bare.display_table().columns
    assert np.isnan(bare.bootstrap_low).all()


@pytest.mark.slow
@pytest.mark.parametrize("rare", [1.0, 0.05])
def test_intervals_hold_their_level_and_nobody_wins_by_chance(rare):
    """Two policies that earn the same, over 1,000 logs: 95 % +- 4.5 standard errors of a share."""
    same, other = np.array([0.25] * 4), np.array([0.4, 0.1, 0.1, 0.4])
    hits, wins = np.zeros(3), 0
    for seed in range(1_000):
        log, taste = log_of(seed, 600, rare=rare)
        assert taste @ (other - same) == pytest.approx(0)
        result = policy_difference(log, same, other, supported=True)
        hits += (result.low <= 0) & (result.high >= 0)
        wins += "earns more than" in result.conclusion
    reach = 4.5 * math.sqrt(0.95 * 0.05 / 1_000)
    assert (hits / 1_000 > 0.95 - reach).all()
    assert wins / 1_000 < 0.05 + reach
