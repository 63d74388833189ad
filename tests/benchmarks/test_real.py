"""Audits of observed ratings against ratings of random items: what counts as right."""

from types import SimpleNamespace

import pytest

import unskew as us
from reliability.real import Trial, run_trial
from unskew.data.dataset import Dataset


@pytest.fixture(scope="module")
def trial() -> Trial:
    world = us.world("shop", users=300, items=80, seed=3)
    users, items = world.ratings.users, world.ratings.items
    pairs = [(user, item) for user in range(len(users)) for item in range(0, len(items), 2)]
    table = {
        "user": [users.raw([user])[0] for user, _ in pairs],
        "item": [items.raw([item])[0] for _, item in pairs],
        "rating": [
            5 if (3 * user + item) % 10 < (7 if item < 40 else 2) else 1 for user, item in pairs
        ],
    }
    data = Dataset("made", world.ratings, random=us.read_ratings(table), liked=4)
    return run_trial(data, 0)


def test_settled_pairs_are_those_whose_interval_is_on_one_side(trial):
    rows = trial.truth.parts["pairs"].rows.to_dicts()
    sides = {
        (row["system"], row["against"]): row["value"]
        for row in rows
        if row["low"] is not None and (row["low"] > 0 or row["high"] < 0)
    }
    assert {frozenset(pair) for pair in trial.settled} == {frozenset(pair) for pair in sides}
    for (better, worse), value in trial.settled.items():
        assert value > 0
        assert trial.is_right(better, worse) is True
        assert trial.is_right(worse, better) is False


def test_counts_follow_the_sentences(trial):
    counts = trial.counts()
    assert counts["settled"] == len(trial.settled)
    for kind, count in counts["kinds"].items():
        said = [
            one for one in trial.audit.statements if one.kind == kind and len(one.subjects) == 2
        ]
        assert sum(count.values()) <= len(said)
    for of_design in counts["designs"].values():
        assert 0 <= of_design["right"] <= counts["settled"]
        assert -1 <= of_design["tau"] <= 1


def test_a_sentence_the_wrong_way_round_is_counted_as_wrong(trial):
    if not trial.settled:
        pytest.skip("the random part settles no pair")
    better, worse = next(iter(trial.settled))
    sentence = SimpleNamespace(kind="better", subjects=(worse, better), designs=())
    audit = SimpleNamespace(
        statements=(sentence,),
        systems=trial.audit.systems,
        common=trial.audit.common,
        evidence=trial.audit.evidence,
        order=trial.audit.order,
        verdict="",
    )
    assert Trial(audit, trial.truth).counts()["kinds"]["better"] == {"wrong": 1}
