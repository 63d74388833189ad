"""The table of a paper: marks are the tests of `compare`, in every format."""

import json
import math

import numpy as np
import pytest

import unskew as us
from shared.latex import check_latex, columns_of
from unskew.report.tables import Table
from unskew.stats.compare.paper_table import BETTER, WORSE


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(1)
    users = np.arange(60)
    test = {
        "user": np.repeat(users, 6),
        "item": np.tile(np.arange(6), 60),
        "rating": np.tile([5, 5, 5, 4, 1, 2], 60),
    }

    def run(noise):
        order = np.argsort(np.arange(30) + noise * rng.normal(size=(60, 30)), axis=1)
        return us.Run.from_arrays(users, order[:, :10])

    runs = {"sharp_1": run(3), "blunt & co": run(6), "dull": run(15), "dim": run(15)}
    metrics = ["P@5", "nDCG@10", "nDCL@10", "RR", "Coverage"]
    return us.evaluate(test, runs, metrics, liked=4, items=np.arange(30))


def small(scores, metrics=None, **settings):
    return us.stats.paper_table(scores, metrics, permutations=500, **settings)


def mark(table, system, metric):
    return table.row(system=system, metric=metric).facts["mark"]


def best(table, digits=None):
    """Return the systems in bold and the underlined ones, by the first metric."""
    shown = table.display_tables(digits)[0]
    column = shown.header.index(table.label())
    names = table.values_of("system")
    return tuple(
        [names[row] for row, place in sorted(cells) if place == column]
        for cells in (shown.strong, shown.second)
    )


def caption(table):
    return table.explanation[0]


@pytest.mark.parametrize("family", ["metric", "all"])
@pytest.mark.parametrize("test", ["randomisation", "t"])
def test_marks_are_the_tests_of_compare(scores, family, test):
    metrics = ["P@5", "nDCL@10", "RR"]
    table = small(scores, metrics, test=test, family=family, level=0.9)
    same = us.compare(scores, metrics, test=test, family=family, level=0.9, permutations=500)
    for label in metrics:
        sign = -1 if label == "nDCL@10" else 1
        for system in table.values_of("system"):
            wins = set()
            for row in same[label].rows.iter_rows(named=True):
                if row["p_corrected"] <= 0.1:
                    if row["system"] == system and sign * row["value"] > 0:
                        wins.add(row["against"])
                    if row["against"] == system and sign * row["value"] < 0:
                        wins.add(row["system"])
            assert set(table.row(system=system, metric=label).facts["beats"]) == wins
            letters = "".join("abcd"[table.values_of("system").index(name)] for name in wins)
            assert sorted(mark(table, system, label)) == sorted(letters)
    assert any(mark(table, system, "nDCL@10") for system in table.values_of("system"))


def test_lower_is_better_where_the_metric_says_so(scores):
    table = small(scores, ["nDCL@10"])
    means = scores.mean("nDCL@10")
    order = sorted(means, key=lambda system: means[system])
    assert best(table) == ([order[0]], [order[1]])
    assert table.row(system=order[0]).facts["rank"] == 1
    assert "Lower is better for nDCL@10." in caption(table)


def test_what_prints_alike_is_emphasised_alike():
    values = {"user": [1, 2], "a": [0.50004, 0.5], "b": [0.5, 0.5], "c": [0.4, 0.4], "d": [0.1] * 2}
    table = small(values)
    assert best(table) == (["a", "b"], ["c"])
    assert best(table, 6) == (["a"], ["b"])
    equal = small({"user": [1, 2], "a": [0.5, 0.5], "b": [0.5, 0.5], "c": [0.5, 0.5]})
    assert best(equal) == ([], [])
    assert "bold" not in caption(equal)
    assert not any(equal.rows["mark"])
    two = small({"user": [1, 2], "a": [0.5, 0.5], "b": [0.4, 0.5]})
    assert best(two) == (["a"], [])
    assert "Best in bold." in caption(two)


def test_undefined_means_are_a_dash_and_never_the_best():
    test = {"user": [1, 2, 3, 4], "item": [1, 1, 1, 9], "rating": [1, 1, 1, 5]}
    runs = {name: {user: [1, 2] for user in (1, 2, 3)} for name in ("a", "b", "c")}
    how = {"liked": 4, "users": "with-list", "undefined": "skip"}
    scores = us.evaluate(test, runs, ["Recall@2", "P@2"], **how)
    with pytest.raises(us.UnskewError):
        small(scores, ["Recall@2"])  # nobody has a value
    table = small(scores, ["P@2"])
    assert best(table) == ([], [])
    assert math.isfinite(table.rows["value"][0])


def test_a_baseline_has_a_mark_for_better_and_one_for_worse(scores):
    table = small(scores, ["P@5"], against="blunt & co")
    marks = {system: mark(table, system, "P@5") for system in table.values_of("system")}
    assert marks == {"sharp_1": BETTER, "blunt & co": "", "dull": WORSE, "dim": WORSE}
    text = table.to_latex(label="tab:x")
    assert "$^{\\dagger}$" in text
    assert "$\\ddagger$ those that are significantly worse" in text
    assert not any(table.rows["letter"])
    without = small({"user": range(30), "a": [1.0] * 30, "b": [0.0] * 30}, against="b")
    assert WORSE not in caption(without)


def test_the_caption_states_users_test_and_correction(scores):
    words = caption(small(scores, ["P@5", "RR"], family="all", level=0.99, design="my split"))
    assert words.startswith("P@5 and RR of 4 systems (my split): means over 60 users with a test")
    assert "two-sided paired randomisation test, 500 permutations" in words
    assert "Holm over all 12 combinations of pair and metric" in words
    assert "significance level 0.01" in words
    assert "over 6 pairs within each metric" in caption(small(scores, ["P@5", "RR"]))
    assert "p-values not corrected" in caption(small(scores, ["P@5"], correction=None))
    exact = caption(small({"user": [1, 2, 3], "a": [1, 2, 3], "b": [0, 1, 2]}))
    assert "all 8 sign patterns" in exact


def test_latex_is_sound_and_names_are_escaped(scores):
    text = small(scores, ["P@5", "nDCL@10"]).to_latex(3, label="tab:mine")
    check_latex(text)
    declared, cells = columns_of(text)
    assert (declared, set(cells)) == (4, {4})
    assert len(cells) == 5
    assert "sharp\\_1" in text
    assert "blunt \\& co" in text
    assert "\\label{tab:mine}" in text
    assert "\\textbf{" in text
    assert "\\underline{" in text
    assert "\\caption{Mine $x$}" in small(scores, ["P@5"]).to_latex(caption="Mine $x$")


@pytest.mark.parametrize(
    "broken", ["\\begin{table}", "a_b", "$x", "{", "}", "\\unknown", "a # b", "\u00b5"]
)
def test_the_reader_of_latex_refuses(broken):
    with pytest.raises(AssertionError):
        check_latex(broken)


def test_every_format_shows_bold_underline_and_marks():
    table = Table.of_rows(["system", "P"], [["a", 0.5], ["b", 0.25], ["c", 0.125]], strong=[(0, 1)])
    table = Table(
        "", table.frame, names=table.names, strong=table.strong,
        second=frozenset({(1, 1)}), marks={(0, 1): "bc", (1, 1): "†"}, is_plain_marked=True,
    )  # fmt: skip
    assert table.to_text().splitlines()[1:] == [
        "a       *0.5000*^bc", "b        _0.2500_^†", "c            0.1250",
    ]  # fmt: skip
    assert "**0.5000**<sup>bc</sup>" in table.to_markdown()
    assert "<ins>0.2500</ins><sup>†</sup>" in table.to_markdown()
    assert "\\textbf{0.5000}$^{bc}$" in table.to_latex()
    assert "\\underline{0.2500}$^{\\dagger}$" in table.to_latex()
    assert "<b>0.5000</b><sup>bc</sup>" in table.to_html()
    assert "<u>0.2500</u><sup>†</sup>" in table.to_html()
    assert table.to_csv().splitlines()[:2] == ["system,P,P marks", "a,0.5,bc"]
    assert json.loads(table.to_json())[1] == {"system": "b", "P": 0.25, "P marks": "†"}


def test_several_splits_and_plans():
    shop = us.world("shop", users=60, items=30, seed=3)
    plan = us.Plan(
        split=us.splits.Random(folds=2),
        algorithms=[us.recommend.Random(), us.recommend.Popularity(), us.recommend.AverageRating()],
        relevance=us.Relevance(liked=4),
        metrics=["P@5", "nDCG@5"],
    )
    results = us.run_plan(shop.ratings, plan)
    table = small(results, chance=True)
    folds = results.scores()
    for label in ("P@5", "nDCG@5"):
        for system in table.values_of("system"):
            mean = np.mean([fold.mean(label)[system] for fold in folds])
            assert table.row(system=system, metric=label).value == pytest.approx(mean)
        chance = np.mean([fold.random()[label] for fold in folds])
        assert table.parts["chance"].row(metric=label).value == pytest.approx(chance)
    shown = table.display_tables()[0]
    assert shown.frame.height == 4
    assert all(row < 3 for row, _ in (*shown.strong, *shown.second, *shown.marks))
    assert "over 2 splits" in caption(table)
    assert "target items: AllItems()" in caption(table)
    again = us.report.Estimates.from_dict(table.to_dict())
    assert str(again) == str(table)
    assert us.stats.paper_table(folds, permutations=500).table().equals(table.table())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"metrics": ["nDGC@10"]}, "Did you mean"),
        ({"metrics": ["P@7"]}, "P@7"),
        ({"metrics": ["Coverage"]}, "leave it out of metrics=…"),
        ({"against": "sharp"}, "Did you mean 'sharp_1'"),
        ({"chance": True}, "leave out chance=True"),
        ({"level": 1}, "level"),
        ({"family": "both"}, "family"),
    ],
)
def test_errors_say_what_to_do(scores, settings, says):
    with pytest.raises(us.UnskewError) as problem:
        us.stats.paper_table(scores, **settings)
    assert says in str(problem.value)


def test_one_system_is_no_comparison():
    scores = us.evaluate({"user": [1], "item": [1], "rating": [5]}, {"a": {1: [1]}}, "P@1", liked=4)
    with pytest.raises(us.SettingError, match=r"one system only, 'a'.*give a second one"):
        us.stats.paper_table(scores)
    two = {"user": [1, 2], "a": [1.0, 2.0], "b": [1.0, 3.0]}
    with pytest.raises(us.SettingError, match="LaTeX label"):
        us.stats.paper_table(two).to_latex(label="a}b")
