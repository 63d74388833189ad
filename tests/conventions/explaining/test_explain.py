"""`explain`: right verdicts on data whose conventions are known."""

import json

import numpy as np
import pytest

import unskew as us
from shared.measured import FIXTURES, columns, rows_of
from unskew.conventions.explaining.printed import Printed, PrintedQuantity, Target
from unskew.conventions.explaining.search import expected_fits, smallest_step


def data(name):
    fixture = FIXTURES[name]()
    judged, listed = rows_of(fixture)
    return columns(judged, ("user", "item", "rating")), columns(listed, ("user", "item", "score"))


@pytest.fixture(scope="module")
def stars():
    return data("stars")


def value(given, metric, compat=None):
    judged, listed = given
    scores = us.evaluate(judged, {"r": listed}, [metric], liked=4, compat=compat)
    return next(iter(scores.means()["r"].values()))


def explain(given, values, **more):
    judged, listed = given
    return us.explain(judged, {"r": listed}, values, liked=4, **more)


@pytest.mark.parametrize("library", ["recbole", "rectools", "lenskit", "trec_eval", "elliot"])
@pytest.mark.parametrize("metric", ["nDCG@10", "Recall@5"])
def test_the_library_is_among_the_first_class(stars, library, metric):
    number = value(stars, metric, library)
    result = explain(stars, {metric: f"{number:.4f}"})
    name = us.conventions.library(library).name
    assert result.verdict in ("explains", "compatible", "ambiguous")
    assert any(name in text for text in result.answers[0].libraries)
    assert result.answers[0].values[0] == pytest.approx(number, abs=1e-12)


def test_more_values_make_surer(stars):
    numbers = {m: f"{value(stars, m, 'recbole'):.4f}" for m in ("nDCG@10", "Recall@10", "MAP@5")}
    one, three = explain(stars, {"nDCG@10": numbers["nDCG@10"]}), explain(stars, numbers)
    assert three.expected < one.expected
    assert three.verdict == "explains"
    assert "RecBole" in str(three)


def test_our_defaults_are_known_too(stars):
    result = explain(stars, {"nDCG@10": f"{value(stars, 'nDCG@10'):.6f}"})
    assert result.answers[0].title == "unskew's defaults"
    assert result.verdict in ("explains", "compatible")


def test_a_change_is_found_and_named(stars):
    """RecTools' nDCG over users with a list: no library does that."""
    judged, listed = stars
    listed_users = set(listed["user"])
    rows = [n for n, user in enumerate(judged["user"]) if user in listed_users]
    part = {name: [column[n] for n in rows] for name, column in judged.items()}
    number = value((part, listed), "nDCG@10", "rectools")
    result = explain(stars, {"nDCG@10": f"{number:.7f}"})
    assert result.changed == 1
    assert any("users" in change for change in result.answers[0].changes)


def test_digits_that_are_cut_off_count_as_a_change(stars):
    number = value(stars, "nDCG@10", "recbole")
    digits = next(n for n in range(6, 12) if int(number * 10 ** (n + 1)) % 10 >= 5)
    text = f"{int(number * 10**digits) / 10**digits:.{digits}f}"
    assert f"{number:.{digits}f}" != text
    result = explain(stars, {"nDCG@10": text})
    assert result.cut
    assert "cut off, not rounded" in str(result)


def test_percents_are_read(stars):
    number = value(stars, "nDCG@10", "recbole")
    result = explain(stars, {"nDCG@10": f"{100 * number:.3f}%"})
    assert result.answers[0].values[0] == pytest.approx(number, abs=1e-12)


def test_nothing_is_invented(stars):
    result = explain(stars, {"P@1": "0.98765", "nDCG@10": "0.01234"})
    assert result.verdict == "does not fit"
    assert result.answers == ()
    text = str(result)
    assert "near: " in text
    assert "outside the search" in text


def test_several_systems(stars):
    judged, listed = stars
    other = {**listed, "score": [-score for score in listed["score"]]}
    runs = {"a": listed, "b": other}
    scores = us.evaluate(judged, runs, ["nDCG@5"], liked=4, compat="recbole").means()
    values = {name: {"nDCG@5": f"{row['ndcg@5']:.4f}"} for name, row in scores.items()}
    result = us.explain(judged, runs, values, liked=4)
    assert list(result.printed) == ["a: nDCG@5", "b: nDCG@5"]
    assert any("RecBole" in one for one in result.answers[0].libraries)
    with pytest.raises(us.SettingError, match="values of which system"):
        us.explain(judged, runs, {"nDCG@5": "0.1"}, liked=4)
    with pytest.raises(us.UnknownName, match="unknown system 'c'"):
        us.explain(judged, runs, {"c": {"nDCG@5": "0.1"}}, liked=4)


def test_training_items_in_lists_are_counted_and_tried(stars):
    judged, listed = stars
    rng = np.random.default_rng(3)
    rows = rng.random(len(listed["item"])) < 0.15
    train = {
        name: [v for v, kept in zip(listed[name], rows, strict=True) if kept]
        for name in ("user", "item")
    }
    seen = set(zip(train["user"], train["item"], strict=True))
    keep = [n for n, pair in enumerate(zip(listed["user"], listed["item"], strict=True))
            if pair not in seen]  # fmt: skip
    without = {name: [column[n] for n in keep] for name, column in listed.items()}
    number = us.evaluate(judged, {"r": without}, "nDCG@10", liked=4, users="both")
    text = f"{number.mean('nDCG@10')['r']:.6f}"
    result = us.explain(judged, {"r": listed}, {"nDCG@10": text}, liked=4, train=train)
    assert "training items in lists" in " ".join(result.checks)
    assert any("training" in change for one in result.answers for change in one.changes)


def test_duplicates_in_lists_are_kept_and_tried():
    given = data("twice")
    with pytest.raises(us.DataError, match="twice in one list"):
        us.evaluate(given[0], {"r": given[1]}, "nDCG@10", liked=4)
    again = value(given, "nDCG@10", "lenskit")
    first = value(given, "nDCG@10", "trec_eval")
    assert again != first
    result = explain(given, {"nDCG@10": f"{again:.6f}"})
    assert "items that a list has twice" in " ".join(result.checks)
    assert any("LensKit" in name for name in result.answers[0].libraries)


def test_judged_data_are_taken(stars):
    judged = us.judge(stars[0], {"r": stars[1]}, liked=4)
    number = us.evaluate(judged, "P@5").mean("P@5")["r"]
    assert us.explain(judged, {"P@5": f"{number:.6f}"}).answers[0].title == "unskew's defaults"


def test_the_result_is_handed_on(stars):
    result = explain(stars, {"nDCG@10": f"{value(stars, 'nDCG@10', 'recbole'):.4f}"})
    content = json.loads(json.dumps(result.to_dict()))
    assert content["verdict"] == result.verdict
    assert content["answers"][0]["title"] == result.answers[0].title
    assert result.table().height == len(result.answers)
    assert "nDCG@10" in result.to_markdown()
    assert result.verdict in result._repr_html_()
    assert repr(result).startswith("Explanation(")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (None, "values must map metrics"),
        ({}, "values must map metrics"),
        ({"nDCG@10": "x"}, "a printed value must be"),
        ({"nDCG@10": "0.1", "r": {"P@5": "0.1"}}, "either all of one system"),
    ],
)
def test_what_cannot_be_explained_is_refused(stars, values, says):
    with pytest.raises(us.SettingError, match=says):
        explain(stars, values)


# Chance


def target(text):
    return Target("s", PrintedQuantity("P@5", "P", 5), Printed.of(text))


def test_chance_fits_are_a_density():
    rng = np.random.default_rng(1)
    cloud = rng.random((2000, 1))
    expected = expected_fits(cloud, [target("0.5000")], [0.0])
    assert 0.15 < expected < 0.5  # 2,000 values in a range of 1: 0.2 in one of 0.0001
    assert expected_fits(cloud[:0], [target("0.5000")], [0.0]) == 0.0
    assert expected_fits(np.array([[0.5]]), [target("0.5000")], [0.0]) == 0.0


def test_coarse_means_meet_by_chance_more_often():
    cloud = np.array([[0.50], [0.52], [0.54], [0.60]])
    fine = expected_fits(cloud, [target("0.5000")], [0.0])
    assert expected_fits(cloud, [target("0.5000")], [0.02]) > 10 * fine
    assert smallest_step(np.array([0.0, 0.2, 0.2, 0.4, np.nan])) == pytest.approx(0.05)
    assert smallest_step(np.array([0.5, 0.5])) == 0.0


def test_condensed_precision_is_computed_as_evaluate_does(stars):
    """Its own default, which divides by the judged items, is a setting among the conventions."""
    assert dict(PrintedQuantity.of("condensed-P@10").options) == {
        "per": "list",
        "unjudged": "remove",
    }
    assert dict(PrintedQuantity.of("condensed-P(per=k)@10").options) == {"unjudged": "remove"}
    for name in ("condensed-P@10", "condensed-P(per=k)@10"):
        number = value(stars, name)
        result = explain(stars, {name: f"{number:.6f}"})
        assert result.answers[0].title == "unskew's defaults"
        assert result.answers[0].values[0] == pytest.approx(number, abs=1e-12)


def test_infap_without_settings_is_looked_for_in_every_form(stars):
    number = value(stars, "infAP", "trec_eval")
    assert abs(number - value(stars, "infAP")) > 0.01
    result = explain(stars, {"infAP": f"{number:.6f}"})
    assert result.answers[0].values[0] == pytest.approx(number, abs=1e-12)
    assert any("trec_eval" in text for text in result.answers[0].libraries)
