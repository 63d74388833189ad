"""The benchmark of cloned users: its values, and a small seeded version of its coverage."""

import math

import numpy as np
import pytest

import clone_coverage
import unskew as us


def one_draw(copies, seed=1):
    rng = np.random.default_rng(seed)
    catalogue = clone_coverage.Catalogue.draw()
    accounts = clone_coverage.accounts_of(rng, catalogue, 40, copies)
    return accounts, clone_coverage.lists_of(catalogue, accounts)


def test_plain_values_are_those_of_the_library():
    accounts, lists = one_draw(3)
    plain = clone_coverage.plain_values(accounts, lists)
    means = us.evaluate(clone_coverage.judged_of(accounts, lists), "P@10").mean("P@10")
    assert list(means.values()) == pytest.approx(np.nanmean(plain, axis=0))


def test_accounts_share_nine_in_ten_ratings():
    accounts, _ = one_draw(5)
    shares = []
    for household in range(40):
        first, second = accounts.stars[accounts.household == household][:2]
        shares.append(np.mean((first == second)[first > 0]))
    assert np.mean(shares) == pytest.approx(0.81, abs=0.03)


def test_one_data_set_with_and_without_groups():
    rates = clone_coverage.coverage(2)
    assert rates["note"] == 1
    assert rates["clean note"] == 0


@pytest.mark.slow
def test_intervals_by_group_hold():
    repeats = 300
    rates = clone_coverage.coverage(repeats)
    bound = 4.5 * math.sqrt(0.05 * 0.95 / repeats)
    for kind in ("stated", "detected", "people"):
        assert abs(rates[kind] - 0.95) <= bound, kind
    assert rates["plain"] < 0.8


@pytest.mark.slow
def test_notes_come_with_clones_and_not_without():
    rates = clone_coverage.notes(3).values()
    assert all(rate == {"clean": 0, "cloned": 1} for rate in rates)
