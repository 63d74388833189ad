"""Values under every convention equal plain twins, and ours where the convention is ours."""

import math
import tomllib
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import unskew as us
from shared import plain_conventions as plain
from unskew.conventions.formulas import LINEAR
from unskew.conventions.laying import lay
from unskew.conventions.libraries import (
    AXES,
    FOLDER,
    METRICS,
    Convention,
    LibraryMetric,
    relevant_axes,
)
from unskew.conventions.values import ConventionValues

LIKED = 4
QUIET = settings(
    max_examples=3 * settings.default.max_examples // 2, suppress_health_check=list(HealthCheck)
)
"""Half as many again as usual."""


@st.composite
def data(draw):
    """Draw judgments, lists with equal scores and duplicates, training items and a catalogue."""
    item = st.integers(1, 14)
    judged, lists, train = {}, {}, {}
    for user in "abcdef":
        ratings = st.sampled_from([0.5, 1, 2, 3, 3.5, 4, 4.5, 5])
        judged[user] = draw(st.dictionaries(item, ratings, max_size=7))
        items = draw(st.lists(item, max_size=9, unique=True))
        scores = sorted(draw(st.lists(st.integers(1, 5), min_size=9, max_size=9)), reverse=True)
        lists[user] = [(i, float(s)) for i, s in zip(items, scores, strict=False)]
        train[user] = draw(st.sets(item, max_size=3))
    judged["a"][1], lists["a"] = 5, lists["a"] or [(1, 1.0)]
    train["a"].add(14)
    if draw(st.booleans()):  # an item twice, far apart in score
        for user in "ab":
            if lists[user]:
                lists[user] = [*lists[user], (lists[user][0][0], 0.0)]
    return judged, lists, train, set(range(1, 14))


@st.composite
def conventions(draw):
    metric = draw(st.sampled_from(METRICS))
    axes = [name for name in relevant_axes(metric) if name != "average"]
    options = {name: draw(st.sampled_from(list(AXES[name].options))) for name in axes}
    if options["ties"] == "expected" and metric not in LINEAR:
        options["ties"] = "given"
    return Convention(metric, draw(st.sampled_from([None, 1, 2, 3, 5, 10])), **options)


def laid(judged, lists, train, catalogue):
    def columns(rows, third):
        user, item, value = zip(*rows, strict=True)
        return {"user": list(user), "item": list(item), third: list(value)}

    ratings = [(u, i, r) for u, row in judged.items() for i, r in row.items()]
    rows = [(u, i, s) for u, row in lists.items() for i, s in row]
    trained = [(u, i, 1.0) for u, row in train.items() for i in sorted(row)]
    return lay(
        columns(ratings, "rating"),
        {"s": columns(rows, "score")},
        liked=LIKED,
        train=columns(trained, "rating"),
        items=sorted(catalogue),
    )


def plain_values(c, judged, lists, train, catalogue):
    """Return the value of every user, None where the user is not averaged."""
    result = {}
    for user, rows in lists.items():
        groups = plain.tie_groups(rows)
        users = [
            plain.User(c, judged[user], items, LIKED, train[user], catalogue, groups)
            for items in plain.orders(rows, c)
        ]
        values = [plain.value(replace(c, digits="none"), one) for one in users]
        mean = None if values[0] is None else math.fsum(values) / len(values)
        result[user] = mean if mean is None or c.digits == "none" else round(mean, int(c.digits))
    return result


def few_orders(lists):
    size = 1
    for rows in lists.values():
        for group in plain.tie_groups(rows):
            size = max(size, math.factorial(len(group)))
    return size <= 720


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
@QUIET
@given(data(), conventions())
def test_values_equal_the_plain_twin(drawn, c):
    lists = drawn[1]
    repeated = any(len({i for i, _ in row}) < len(row) for row in lists.values())
    if c.ties == "expected" and (
        repeated or not few_orders(lists) or c.users == "above-zero" or c.ideal.startswith("found")
    ):
        c = c.changed(ties="given")
    if repeated and c.ties == "together":
        c = c.changed(ties="input")
    result = ConventionValues(laid(*drawn), "s").of_users(c)
    ids = laid(*drawn).users.values.to_list()
    expected = plain_values(c, *drawn)
    for user, value in zip(ids, result, strict=True):
        wanted = expected[user]
        if wanted is None:
            assert math.isnan(value), (user, c)
        else:
            # Rounding a value that lies between two decimals may fall to either side.
            room = 1e-12 if c.digits == "none" else 1.01 * 10.0 ** -int(c.digits)
            assert value == pytest.approx(wanted, abs=room), (user, c)


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
@QUIET
@given(data(), conventions(), st.sampled_from(["users", "pooled"]))
def test_means_are_those_of_the_values(drawn, c, average):
    values = ConventionValues(laid(*drawn), "s")
    c = c.changed(average=average)
    each = values.of_users(c)
    kept = ~np.isnan(each)
    if average == "users":
        expected = each[kept].mean() if kept.any() else math.nan
    else:
        fraction = values.fraction(c)
        bottom = fraction.bottom[kept].sum()
        expected = fraction.top[kept].sum() / bottom if bottom else 0.0
    assert values.mean(c) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_f1_of_means():
    values = ConventionValues(
        laid({"a": {1: 5, 2: 5}}, {"a": [(1, 2.0), (9, 1.0)]}, {"a": {14}}, {1}), "s"
    )
    c = Convention("F1", 2, average="of-means")
    assert values.mean(c) == pytest.approx(0.5)


OURS = {
    "P@3": Convention("P", 3),
    "P(per=list)@3": Convention("P", 3, per="list"),
    "P": Convention("P"),
    "Recall@3": Convention("Recall", 3),
    "Recall(per=min)@3": Convention("Recall", 3, per="min"),
    "F1@3": Convention("F1", 3),
    "AP@3": Convention("AP", 3),
    "AP": Convention("AP"),
    "AP(per=min)@3": Convention("AP", 3, per="min"),
    "AP(per=list)@3": Convention("AP", 3, per="list"),
    "AP(per=k)@3": Convention("AP", 3, per="k"),
    "nDCG@3": Convention("nDCG", 3),
    "nDCG": Convention("nDCG"),
    "nDCG(ideal=uncut)@3": Convention("nDCG", 3, ideal="uncut"),
    "nDCG(discount=original)@3": Convention("nDCG", 3, discount="original"),
    "DCG@3": Convention("DCG", 3),
    "RR@3": Convention("RR", 3),
    "HitRate@3": Convention("HitRate", 3),
    "Rprec": Convention("Rprec"),
    "condensed-AP": Convention("AP", unjudged="remove"),
    "condensed-nDCG@3": Convention("nDCG", 3, unjudged="remove"),
}
GAINS = ("rating", "binary", "liked-only", "burges", "levels", "exponential", "integer")
USERS = ("with-test", "with-relevant", "both", "with-list")


@pytest.mark.filterwarnings("ignore::unskew.DataWarning")
@settings(QUIET, max_examples=40)
@given(data(), st.sampled_from(GAINS), st.sampled_from(USERS), st.sampled_from(["zero", "skip"]))
def test_our_conventions_are_those_of_evaluate(drawn, gain, users, undefined):
    judged, lists, *_ = drawn
    ratings = [(u, i, r) for u, row in judged.items() for i, r in row.items()]
    user, item, rating = map(list, zip(*ratings, strict=True))
    unique = {u: dict(reversed(row)) for u, row in lists.items()}
    test = {"user": user, "item": item, "rating": rating}
    scores = us.evaluate(
        test, {"s": unique}, list(OURS), liked=LIKED, gain=gain, users=users, undefined=undefined
    )
    values = ConventionValues(lay(test, {"s": unique}, liked=LIKED), "s")
    for name, c in OURS.items():
        always = c.metric in ("P", "DCG", "RR", "HitRate")  # defined for everybody
        c = c.changed(gain=gain, users=users, undefined="zero" if always else undefined)
        assert values.mean(c) == pytest.approx(scores.mean(name)["s"], abs=1e-12, nan_ok=True), (
            name,
            c,
        )


def test_files_of_libraries_name_what_there_is():
    """Metrics, axes and options of every row exist, and none is given by metric and by name."""
    about = {field.name for field in fields(LibraryMetric)}
    for path in FOLDER.glob("*.toml"):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        assert content["evidence"] in ("measured", "read from its source")
        assert set(content["defaults"]) <= set(AXES)
        for row in content["metrics"]:
            assert ("metric" in row) != ("ours" in row)
            assert set(row) <= about | set(AXES)
            assert row.get("metric", "P") in METRICS
            options = {name: row[name] for name in row if name in AXES}
            Convention(row.get("metric", "P"), None, **content["defaults"])
            Convention(row.get("metric", "P"), None, **options)
