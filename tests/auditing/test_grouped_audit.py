"""Audits in which groups of users count as one, and what an audit says of near-duplicates."""

import dataclasses
import functools

import numpy as np
import pytest

import unskew as us
from unskew.auditing.statements.evidence import Evidence
from unskew.errors import DataError, SettingError

SETTINGS = {
    "plan": "quick",
    "algorithms": ["random", "popularity", "item-knn"],
    "designs": ["all-items", "skew"],
    "repeats": 2,
    "permutations": 200,
}


@functools.cache
def shop():
    return us.world("shop", users=120, items=60, seed=3)


@functools.cache
def audit(size=0):
    """Return the audit of a shop with groups of so many users; 0: without groups."""
    users = shop().ratings.users.values.to_list()
    groups = {user: number // size for number, user in enumerate(users)} if size else None
    return us.audit(shop(), group_users=groups, **SETTINGS)


@functools.cache
def clones():
    """Return ratings of 60 people with five accounts each, which share nine in ten ratings."""
    rng = np.random.default_rng(1)
    rows = []
    for person in range(60):
        items, stars = rng.choice(200, 40, replace=False), rng.integers(1, 6, 40)
        for copy in range(5):
            keep = rng.random(40) < 0.9
            user = 5 * person + copy
            rows += [(user, int(i), int(s)) for i, s in zip(items[keep], stars[keep], strict=True)]
    user, item, rating = zip(*rows, strict=True)
    return {"user": user, "item": item, "rating": rating}


@pytest.mark.parametrize("name", ["contrasts", "liked", "ladder", "random_slice"])
def test_groups_of_one_user_change_nothing(name):
    plain, alone = (getattr(audit(size).evidence, name) for size in (0, 1))
    if plain is None:
        assert alone is None
        return
    for column in ("value", "low", "high"):
        np.testing.assert_array_equal(plain.rows[column], alone.rows[column])


def test_all_tables_of_groups_of_one_user_are_equal():
    plain, alone = audit(), audit(1)
    assert plain.table().equals(alone.table())
    assert plain.comparison.rows.equals(alone.comparison.rows)
    assert plain.agreement.rows.equals(alone.agreement.rows)
    columns = ["value", "low", "high"]
    assert plain.estimates.rows.select(columns).equals(alone.estimates.rows.select(columns))


def test_groups_are_the_units_of_every_interval():
    grouped = audit(2)
    assert all(grouped.comparison.rows["n"] <= 60)
    assert grouped.comparison.method.unit == "groups of users"
    evidence = grouped.evidence
    for answer in (evidence.contrasts, evidence.liked, evidence.ladder):
        assert answer.method.unit == "groups of users"
        assert all(number <= 60 for number in answer.rows["n"].drop_nulls())
    assert evidence.ladder.rows["z"].null_count() == evidence.ladder.rows.height
    assert not any("intervals by user" in text for text in evidence.liked.explanation)
    assert any("120 users are in 60 groups" in note for note in grouped.notes)
    assert grouped.card["group_users"] == "a mapping"


def test_what_is_by_user_only_is_left_out_with_a_reason():
    skipped = audit(2).skipped
    assert "group_users=…" in skipped["intervals of popularity deciles"]
    assert audit(2).strata.rows["low"].null_count() == audit(2).strata.rows.height


def test_no_field_of_the_evidence_is_by_user_in_silence():
    """Whoever adds evidence that rests on users works it out by group, too: `grouped_evidence`."""
    known = {"core", "contrasts", "ladder", "liked", "popular_liking", "random_slice"}
    known |= {"has_duplicates", "references", "margin", "smallest", "is_given", "thresholds"}
    assert {field.name for field in dataclasses.fields(Evidence)} == known


def test_clones_are_said_once_and_grouped_where_asked():
    settings = {**SETTINGS, "designs": ["all-items"], "liked": 4}
    plain = us.audit(clones(), **settings)
    notes = [note for note in plain.notes if "near-duplicate accounts" in note]
    assert len(notes) == 1
    assert "300 users are near-duplicate accounts in 60 groups" in notes[0]
    grouped = us.audit(clones(), group_users="detected", **settings)
    assert not any("too narrow" in note for note in grouped.notes)
    assert "--group-users detected" in grouped.command or "group_users" in grouped.command
    pairs = [one.evidence.contrasts.pair("item-knn", "random") for one in (plain, grouped)]
    widths = [pair.high - pair.low for pair in pairs]
    assert pairs[0].value == pytest.approx(pairs[1].value)
    assert widths[1] > 1.1 * widths[0]  # a part of the width is between splits


def test_given_lists_by_group():
    ratings = clones()
    rng = np.random.default_rng(2)
    users = sorted(set(ratings["user"]))
    runs = {name: {u: rng.permutation(200)[:10].tolist() for u in users} for name in "ab"}
    given = {"judgments": ratings, "runs": runs, "liked": 4, "plan": "quick", "permutations": 200}
    plain = us.audit(**given)
    assert sum("near-duplicate accounts" in note for note in plain.notes) == 1
    grouped = us.audit(group_users="detected", **given)
    assert grouped.evidence.contrasts.pair("a", "b").n == 60
    assert "group_users=…" in grouped.skipped["segments of users"]


def test_filters_have_no_effect_by_group():
    settings = {**SETTINGS, "designs": ["all-items"], "liked": 4}
    groups = {user: user // 5 for user in range(300)}
    result = us.audit(clones(), group_users=groups, filters=us.data.KCore(2, 2), **settings)
    assert result.filter_effect is None
    assert "group_users=…" in result.skipped["effect of the filters"]


def test_wrong_groups_are_refused_before_anything_is_run():
    with pytest.raises(SettingError, match="FILE:COLUMN"):
        us.audit(shop(), group_users="households", **SETTINGS)
    with pytest.raises(DataError, match="none of the"):
        us.audit(shop(), group_users={"nobody": 1}, **SETTINGS)
