"""An audit that judges a sample of users: the same values, for fewer users."""

from dataclasses import replace

import numpy as np
import pytest

import unskew as us
from unskew.auditing.analyses import Attempts
from unskew.auditing.core import run_core
from unskew.auditing.designs import LEVELS, designs_of_level, plan_of_level
from unskew.auditing.evidence import evidence_of
from unskew.bias.rungs import ladder_part
from unskew.splits.judged_users import drawn_users

SYSTEMS = ["popularity", "puresvd", "item-knn"]


@pytest.fixture(scope="module")
def cores():
    """Return ratings, and the cores of all users and of a sample."""
    shop = us.world("shop", users=240, items=70, seed=3)
    plan = plan_of_level(LEVELS["quick"], us.Relevance(liked=4), SYSTEMS, seed=5)
    designs = [
        replace(one, repeats=min(one.repeats, 2)) for one in designs_of_level(LEVELS["quick"])
    ]
    whole, part = (
        run_core(shop.ratings, one, designs, metric="P@10", attempts=Attempts())
        for one in (plan, replace(plan, judged_users=90))
    )
    return shop.ratings, whole, part


def test_judged_users_have_the_values_that_they_have_without_a_sample(cores):
    ratings, whole, part = cores
    judged = drawn_users(ratings, 90, 5)
    assert list(whole.scores) == list(part.scores)
    assert len(whole.scores) >= 6
    for design, several in whole.scores.items():
        for a, b in zip(several, part.scores[design], strict=True):
            keep = judged[a.lists["user"].to_numpy()]
            assert a.lists.filter(keep).equals(b.lists)
            for name, system in a.systems.items():
                np.testing.assert_array_equal(system.values[:, keep], b.systems[name].values)


def test_lists_that_are_kept_are_those_of_the_judged_users(cores):
    ratings, whole, part = cores
    names = ratings.users.raw(np.flatnonzero(drawn_users(ratings, 90, 5)))
    for a, b in zip(whole.lists, part.lists, strict=True):
        np.testing.assert_array_equal(a.split.train.item, b.split.train.item)
        for system, run in a.runs.items():
            rows = run.to_polars()
            assert (
                b.runs[system].to_polars().equals(rows.filter(rows["user"].is_in(names.implode())))
            )


def test_the_ladder_and_liked_shares_are_of_judged_users(cores):
    ratings, whole, part = cores
    judged = drawn_users(ratings, 90, 5)
    evidence = evidence_of(part)
    assert evidence.ladder is not None
    for lists, rungs in zip(part.lists, evidence.ladder.parts, strict=True):
        assert judged[rungs.users].all()
        assert rungs.without_list == (0, 0, 0)
        test = lists.split.test.take(judged[lists.split.test.user])
        own = ladder_part(lists.split.train, test, lists.runs, part.relevance, part.k)
        np.testing.assert_array_equal(rungs.rungs, own.rungs)
    # Weights of judged items count the ratings of all users: sums by user are those of all.
    every = evidence_of(whole).liked
    assert every is not None
    assert evidence.liked is not None
    for a, b in zip(every.parts, evidence.liked.parts, strict=True):
        keep = judged[a.users]
        np.testing.assert_array_equal(a.users[keep], b.users)
        np.testing.assert_array_equal(a.judged[0][:, keep], b.judged[0])
        np.testing.assert_array_equal(a.liked[0][:, keep], b.liked[0])
