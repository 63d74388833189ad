"""`hygiene`: what is wrong with lists is counted, whatever reads them."""

from __future__ import annotations

import numpy as np
import pytest

import unskew as us

pytestmark = pytest.mark.filterwarnings("ignore::unskew.DataWarning")


def plain_counts(
    rows: list[tuple[int, int, float | None]],
    test: dict[int, set[int]],
    train: dict[int, set[int]],
    catalogue: set[int],
    k: int,
) -> dict[str, int]:
    """Count once more, row by row."""
    kept: dict[int, list[tuple[int, float]]] = {}
    counts = dict.fromkeys(("duplicate items", "items without a score"), 0)
    for user, item, score in sorted(rows, key=lambda row: (row[0], -(row[2] or 0), row[1])):
        if score is None:
            counts["items without a score"] += 1
        elif item in {other for other, _ in kept.get(user, [])}:
            counts["duplicate items"] += 1
        else:
            kept.setdefault(user, []).append((item, score))
    listed = [(user, item) for user, items in kept.items() for item, _ in items]
    levels = {user: [score for _, score in items] for user, items in kept.items()}
    return counts | {
        "empty places": 0,
        "items outside the catalogue": sum(item not in catalogue for _, item in listed),
        "training items": sum(item in train.get(user, ()) for user, item in listed),
        "tied items": sum(
            scores.count(score) > 1 for scores in levels.values() for score in scores
        ),
        "lists in which all scores are equal": sum(
            len(scores) > 1 and len(set(scores)) == 1 for scores in levels.values()
        ),
        "short lists": sum(len(scores) < k for scores in levels.values()),
        "users without a list": sum(user not in kept for user in test),
        "lists of users without test data": sum(user not in test for user in kept),
    }


@pytest.mark.parametrize("seed", range(6))
def test_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [
        (int(u), int(i), None if rng.random() < 0.1 else float(s))
        for u in rng.choice(12, 8, replace=False)
        for i, s in zip(rng.integers(0, 30, 6), rng.integers(0, 1 + u % 3, 6), strict=True)
    ]
    test = {u: set(map(int, rng.integers(0, 25, 3))) for u in range(9)}
    train = {u: set(map(int, rng.integers(0, 25, 4))) - test.get(u, set()) for u in range(12)}
    catalogue = set(range(20)).union(*test.values())
    found = us.judging.hygiene(
        table(test),
        {"s": {"user": [r[0] for r in rows], "item": [r[1] for r in rows],
               "score": [r[2] for r in rows]}},
        liked=4, k=5, train=table(train), items=list(range(20)),
    )  # fmt: skip
    counts = dict(found.table().select("check", "count").rows())
    assert counts == plain_counts(rows, test, train, catalogue, 5)


def table(pairs: dict[int, set[int]]) -> dict[str, list[int]]:
    rows = [(user, item) for user, items in pairs.items() for item in items]
    return {"user": [u for u, _ in rows], "item": [i for _, i in rows], "rating": [5] * len(rows)}


def test_generated_lists() -> None:
    """A language model repeats items, invents some and stops early; nothing is hidden."""
    test = {"user": [1, 2], "item": ["a", "b"], "rating": [5, 5]}
    lists = {1: ["a", "made up", "a", "c"], 2: ["b", "b"]}
    found = us.judging.hygiene(test, {"llm": lists}, liked=4, items=["a", "b", "c"], k=3)
    rows = {row["check"]: row for row in found.table().to_dicts()}
    assert (rows["duplicate items"]["count"], rows["duplicate items"]["lists"]) == (2, 2)
    assert rows["items outside the catalogue"]["count"] == 1
    assert rows["short lists"]["count"] == 1
    assert "tied items" not in rows
    assert "a list is short if it is shorter than 3 items" in str(found)
    clean = us.judging.hygiene(test, {"s": {1: ["a"], 2: ["b"]}}, liked=4)
    assert "nothing is wrong with the lists of s" in str(clean)


def test_counts_survive_judging() -> None:
    """Duplicates that were dropped when a run was read are still counted."""
    test = {"user": [1], "item": ["a"], "rating": [5]}
    run = us.read_run({1: ["a", "a", "b"]}, duplicates="first")
    judged = us.judge(test, {"s": run}, liked=4)
    assert us.judging.hygiene(judged).table()["count"][0] == 1


def test_evaluate_says_what_lies_outside_the_catalogue() -> None:
    test = {"user": [1], "item": ["a"], "rating": [5]}
    run = {1: {"a": 1.0, "x": 1.0}}
    scores = us.evaluate(test, {"s": run}, "P@2", liked=4, items=["a", "b"])
    assert any("outside the catalogue" in note for note in scores.notes)
    assert any("s: 1 list has equal scores only" in note for note in scores.notes)


def test_models_are_refused() -> None:
    data = us.read_ratings({"user": [1, 1, 2, 2, 3], "item": [7, 8, 7, 9, 9]})
    split = us.splits.LeaveOut(1).split(data, seed=1)[0]
    lists = us.targets.AllItems().lists(split, liked=1)
    model = us.recommend.Popularity().fit(split.train)
    with pytest.raises(us.SettingError, match="ready-made runs"):
        us.judging.hygiene(us.judge(lists, {"pop": model}))
    with pytest.raises(us.SettingError, match="judge target lists first"):
        us.judging.hygiene(lists, {"pop": model})
