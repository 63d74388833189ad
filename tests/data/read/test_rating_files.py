"""Files in many formats, whole and damaged: read right with the right threshold, or refused."""

from __future__ import annotations

import pytest

import unskew as us
from shared.rating_files import Asks, Case, Read, Refused, cases
from unskew.data.relevance import relevance_for

CASES = cases()


def test_there_are_many_files():
    assert len({case.name for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_read_right_or_refused(tmp_path, case: Case):
    path = tmp_path / case.name
    path.write_bytes(case.content)
    if isinstance(case.outcome, Refused):
        with pytest.raises(us.UnskewError) as problem:
            us.read_ratings(path, **case.options)
        assert case.outcome.error in str(problem.value)
        assert "\n" not in str(problem.value)
        return
    ratings = us.read_ratings(path, **case.options)
    assert case.outcome.note in " ".join(ratings.notes)
    assert sorted(rows_of(ratings, len(case.outcome.rows[0]))) == sorted(expected(case.outcome))
    check_threshold(ratings, case.outcome)


def rows_of(ratings: us.Ratings, width: int) -> list[tuple[object, ...]]:
    """Return what was read: user, item, value, and seconds where there are times."""
    assert (ratings.time is not None) == (width == 4)
    columns = [ratings.users.raw(ratings.user), ratings.items.raw(ratings.item), ratings.value]
    if ratings.time is not None:
        columns.append(ratings.time // 1_000_000)
    return [(str(user), str(item), *rest) for user, item, *rest in zip(*columns, strict=True)]


def expected(outcome: Read) -> list[tuple[object, ...]]:
    return [(str(user), str(item), *rest) for user, item, *rest in outcome.rows]


def check_threshold(ratings: us.Ratings, outcome: Read) -> None:
    assert ratings.implicit == (outcome.liked is None)
    if isinstance(outcome, Asks):
        with pytest.raises(us.SettingError, match=f"liked={outcome.liked:g} "):
            relevance_for(ratings)
    elif outcome.liked is not None:
        assert relevance_for(ratings)[0].liked == outcome.liked
    else:
        assert relevance_for(ratings)[0].is_liked(ratings.value).all()
