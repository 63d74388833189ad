"""Errors of pairs over splits: a plain twin of the pooled variance, its corners, its coverage."""

import math
from itertools import combinations
from statistics import median

import numpy as np
import pytest

from unskew.stats.compare.pair_errors import MOST_CHANCE, pair_errors, pooled_ratios
from unskew.stats.influence import SplitInfluence
from unskew.stats.pairing import all_pairs
from unskew.stats.simultaneous import Tail, critical_value, largest_t, user_blocks
from unskew.stats.special import student_t_quantile

Z = 1.959963984540054


def split(values):
    """Give one split: users x systems, a list per user."""
    means = values.mean(axis=0)
    return SplitInfluence(means, (values - means) / len(values), np.ones(len(values), np.bool_))


def draw(rng, splits, noise, users=60):
    """Draw values of splits x users x systems; `noise` is common to all users of a split."""
    systems = len(noise)
    stays = rng.normal(size=(users, systems))
    common = np.asarray(noise) * rng.normal(size=(splits, 1, systems)) / math.sqrt(users)
    return stays + common + rng.normal(size=(splits, users, systems))


def errors_of(designs, target="retrained"):
    """Return the errors of designs, each an array of splits x users x systems."""
    first = next(iter(designs.values()))
    given = {name: [split(part) for part in values] for name, values in designs.items()}
    blocks = user_blocks(first.shape[1], 0)
    return pair_errors(given, all_pairs(first.shape[2]), blocks, target=target, level=0.95)


def plain_ratios(ratios, df):
    """Write the pooling out, pair by pair; ratios is a list of dicts by pair."""
    pairs = list(ratios[0])
    systems = sorted({name for pair in pairs for name in pair})
    count = len(systems)
    levels = [
        max(median(of[pair] for pair in pairs) / (1 - 2 / (9 * df)) ** 3, 1.0) for of in ratios
    ]
    relative = [
        {pair: of[pair] / at for pair in pairs} for of, at in zip(ratios, levels, strict=True)
    ]
    profile = {pair: sum(of[pair] for of in relative) / len(relative) for pair in pairs}

    def of_systems(table):
        everything = sum(table.values())
        total = {name: sum(table[pair] for pair in pairs if name in pair) for name in systems}
        return {
            name: max(2 * (total[name] - everything / (count - 1)) / (count - 2), 0)
            for name in systems
        }

    typical = of_systems(profile)
    mean = sum(typical.values()) / count
    spread = sum((value - mean) ** 2 for value in typical.values()) / (count - 1)
    chance = min(2 / df * mean**2 / spread, MOST_CHANCE)
    pool = sum(profile.values()) / len(pairs)
    for of, at in zip(relative, levels, strict=True):
        by_system = of_systems(of)
        for pair in pairs:
            ratio = chance * pool + (1 - chance) * max(of[pair], profile[pair])
            parts = [
                chance * typical[name] / count
                + (name in pair) * (1 - chance) * (by_system[name] + typical[name]) / 4
                for name in systems
            ]
            freedom = df * sum(parts) ** 2 / sum(part**2 for part in parts)
            yield at * max(ratio, 1.0), max(freedom, df)


@pytest.mark.parametrize("splits", [2, 3, 5])
@pytest.mark.parametrize("noise", [(0, 0, 0, 0), (4, 0, 0, 0), (1, 2, 3, 4)])
def test_plain_twin(splits, noise):
    rng = np.random.default_rng([splits, *noise])
    designs = {name: draw(rng, splits, noise) for name in ("x", "y", "z")}
    errors = errors_of(designs)
    users, pairs = 60, list(combinations(range(4), 2))
    tables = []
    for values in designs.values():
        table = {}
        for a, b in pairs:
            d = values[:, :, a] - values[:, :, b]
            centred = d - d.mean(axis=1, keepdims=True)
            noise_of_test = centred.var(axis=0, ddof=1).sum() / users**2
            table[a, b] = d.mean(axis=1).var(ddof=1) / noise_of_test
        tables.append(table)
    expected = iter(plain_ratios(tables, splits - 1))
    for name, values in designs.items():
        for number, (a, b) in enumerate(pairs):
            ratio, df = next(expected)
            d = values[:, :, a] - values[:, :, b]
            centred = d - d.mean(axis=1, keepdims=True)
            within = centred.var(axis=0, ddof=1).sum() / users**2
            over_users = d.mean(axis=0).var(ddof=1) / users
            trained = 0.75 * max(over_users - users / (users - 1) * within / splits, 0)
            common = (0.5 + 1 / splits) * max(ratio - 1, 0) * within
            variance = over_users + trained + common
            freedom = variance**2 / ((variance - common) ** 2 / (users - 1) + common**2 / df)
            factor = student_t_quantile(0.975, float(math.floor(freedom + 1e-9))) / Z
            assert errors[name].se[number] == pytest.approx(math.sqrt(variance) * factor, rel=1e-9)


def test_two_systems_stand_for_themselves():
    ratios = np.array([[4.0], [1.0]])
    ratio, df = pooled_ratios(ratios, np.array([2, 2]))
    assert ratio.tolist() == [[4.0], [2.5]]
    assert df.tolist() == [[2.0], [2.0]]


def test_order_of_designs_and_a_repeated_design_change_nothing():
    rng = np.random.default_rng(4)
    ratios, df = rng.chisquare(2, (3, 10)) / 2, np.array([2, 4, 2])
    ratio, freedom = pooled_ratios(ratios, df)
    turned = pooled_ratios(ratios[::-1], df[::-1])
    assert np.array_equal(turned[0][::-1], ratio)
    assert np.array_equal(turned[1][::-1], freedom)
    twice = pooled_ratios(ratios[[0, 1, 2, 1]], df[[0, 1, 2, 1]])
    assert np.array_equal(twice[0][:3], ratio)
    assert np.array_equal(twice[1][:3], freedom)


def test_no_pair_counts_as_steadier_than_the_others():
    ratios = np.array([[0.0, 2.0, 2.0, 2.0, 2.0, 2.0]])
    ratio, df = pooled_ratios(ratios, np.array([4]))
    assert ratio.min() >= 2.0
    assert df.min() >= 4.0
    # Nor does a design count as steadier than test noise alone.
    assert pooled_ratios(ratios / 100, np.array([4]))[0].min() == 1.0


def test_an_unsteady_design_does_not_widen_the_others():
    rng = np.random.default_rng(8)
    steady = {name: draw(rng, 3, (0,) * 5) for name in "abc"}
    without = errors_of(steady)
    joined = errors_of({**steady, "d": draw(rng, 3, (9,) * 5)})
    for name in steady:
        assert np.median(joined[name].se / without[name].se) < 1.1
    assert np.median(joined["d"].se / joined["a"].se) > 2


def test_users_without_noise_leave_the_variance_between_splits():
    values = np.zeros((3, 40, 3))
    values[:, :, 0] = np.array([0.1, 0.2, 0.6])[:, None]
    error = errors_of({"d": values})["d"]
    common = (0.5 + 1 / 3) * np.var([0.1, 0.2, 0.6], ddof=1)
    factor = student_t_quantile(0.975, 2.0) / Z
    assert error.se[:2] == pytest.approx(math.sqrt(common) * factor)
    assert error.se[2] == 0


def test_given_lists_pool_nothing():
    rng = np.random.default_rng(2)
    designs = {"a": draw(rng, 3, (5, 0, 0)), "b": draw(rng, 3, (0, 0, 0))}
    alone = errors_of({"b": designs["b"]}, "lists")["b"]
    assert np.array_equal(errors_of(designs, "lists")["b"].se, alone.se)


def test_a_width_does_not_triple_by_chance():
    widest = []
    for number in range(40):
        rng = np.random.default_rng([7, number])
        se = [
            errors_of({name: draw(rng, 3, (0.5,) * 6) for name in "abcd"})["a"].se
            for _ in range(10)
        ]
        widest.append(np.max(se, axis=0) / np.min(se, axis=0))
    assert np.median(widest) < 1.8
    assert np.quantile(widest, 0.95) < 2.6


@pytest.mark.slow
@pytest.mark.parametrize("noise", [(0,) * 6, (1.7,) * 6, (5,) * 6, (3.8, 0, 0, 0, 0, 0)])
def test_intervals_of_a_report_hold_together(noise):
    count, held = 400, 0
    for number in range(count):
        rng = np.random.default_rng([11, number])
        # What new users and ratings change in all splits: a training of its own.
        designs = {}
        for name in "abc":
            moved = np.sqrt(0.5 * np.square(noise) / 60 + 0.75 / 60) * rng.normal(size=6)
            designs[name] = draw(rng, 3, noise) + moved
        errors = errors_of(designs).values()
        largest = largest_t([error.influence for error in errors], 1000, number)
        critical = Tail.of(3, "retrained", 0.95).widened(critical_value(largest, 0.95))
        held += all(np.all(np.abs(error.difference) <= critical * error.se) for error in errors)
    # Three standard errors below 95 %.
    assert held / count >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / count)
