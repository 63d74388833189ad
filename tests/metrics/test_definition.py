"""A definition carries everything known about a metric: one field out, one feature refuses."""

import ast
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import unskew as us
from unskew.evaluation.one_relevant import value_at
from unskew.metrics.names import REGISTRY, aliases, parse
from unskew.unbiased.judgment_weights import estimands

TEST = {
    "user": [1, 1, 1, 2, 2, 3, 3, 3],
    "item": [*"abf", *"cd", *"abe"],
    "rating": [5, 1, 4, 5, 2, 4, 2, 5],
}
RUNS = {
    "x": {1: [*"cab"], 2: [*"dace"], 3: [*"ebca"]},
    "y": {1: [*"bga"], 2: [*"dbc"], 3: [*"abd"]},
}


def split():
    train = {"user": [1, 2, 3], "item": ["g", "g", "h"], "rating": [5, 4, 1]}
    whole = us.read_ratings({key: [*train[key], *TEST[key]] for key in TEST})
    is_test = np.isin(whole.to_polars()["item"].to_numpy(), [*"gh"], invert=True)
    return us.Split(whole.take(~is_test), whole.take(is_test))


def chance(label):
    lists = us.targets.AllItems().lists(split(), liked=4)
    scores = us.evaluate(lists, {"m": np.arange(len(lists.train.items))}, label, draws=3)
    return "simulated" if label in scores.simulated else "closed form"


def robust(label):
    result = us.stats.robustness(TEST, RUNS, label, liked=4, shares=[0.7], samples=2)
    return result.parts["means"].rows["value"].round(12).to_list()


def strata(label):
    result = us.unbiased.strata(TEST, RUNS, label, liked=4, m=2, resamples=0)
    shares = result.where(quantity="contribution").rows["value"].to_list()
    return "no contributions" if all(share is None for share in shares) else shares


FEATURES = {
    "chance": chance,
    "at_rank": lambda label: value_at(label, [1, 2, 5], 9).tolist(),
    "weighted": lambda label: (
        us.estimate(
            TEST, RUNS, label, liked=4, propensity=dict.fromkeys("abcdef", 0.5), resamples=0
        )
        .row(system="x", metric=label, quantity="ips")
        .value
    ),
    "linear": lambda label: estimands(label)[label].linear.per_cutoff,
    "bounds": lambda label: us.unbiased.bounds(TEST, RUNS, label, liked=4).row(system="x").low,
    "strata": strata,
    "fast_sum": robust,
}
WITHOUT = {
    "chance": "simulated",
    "at_rank": "has no value for the rank of one relevant item (at_rank=… of its definition)",
    "weighted": "has no weighted form (weighted=… of its definition)",
    "linear": "has no form as a sum over judged hits",
    "bounds": "has no bounds in closed form (bounds=… of its definition)",
    "strata": "no contributions",
}
"""What a feature says without its field; `robustness` gives the same, only slower."""


def outcome(field, label):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        try:
            return FEATURES[field](label)
        except us.SettingError as problem:
            return str(problem)


@pytest.mark.parametrize("name", ["P", "Recall", "DCG", "RBP", "AP", "RR", "HitRate", "nDCG"])
def test_without_a_field_only_its_feature_refuses(name, monkeypatch):
    label = f"{name}@3"
    definition = REGISTRY[name]
    before = {field: outcome(field, label) for field in FEATURES}
    for field in FEATURES:
        if getattr(definition, field) is None or isinstance(definition.weighted, str):
            continue
        monkeypatch.setitem(REGISTRY, name, replace(definition, **{field: None}))
        after = {other: outcome(other, label) for other in FEATURES}
        monkeypatch.setitem(REGISTRY, name, definition)
        expected = WITHOUT.get(field)
        if expected is None:
            assert after[field] == before[field], field
        elif field in ("chance", "strata"):
            assert (before[field] != expected, after[field]) == (True, expected), field
        else:
            assert f"{label}: {name} {expected}" in str(after[field])
            assert expected not in str(before[field])
        # `linear` is asked after `weighted`: an estimand has to be one first.
        same = set(FEATURES) - {field} - ({"linear"} if field == "weighted" else set())
        assert {k: after[k] for k in same} == {k: before[k] for k in same}, field


def test_a_text_says_why_there_is_no_weighted_form():
    for name, definition in REGISTRY.items():
        if isinstance(definition.weighted, str):
            with pytest.raises(us.SettingError, match="cannot be estimated by weights"):
                estimands(f"{name}@5")


def test_every_alias_names_its_metric():
    for alias, target in aliases().items():
        assert parse(alias) == parse(target)
        assert alias in parse(target).definition.aliases


def test_settings_with_the_same_meaning_are_one_metric():
    assert parse("nDCL(ideal=worst)@5") == parse("nDCL@5")


# Nobody else knows metrics by name

ROOT = Path(us.__file__).parent
KNOW_METRICS = ("metrics", "conventions")
# What lists of matching taste would show is known of nine measures, each in its own way.
NULL_VALUES = {"bias/popularity/list_measures.py", "bias/popularity/list_popularity.py"}


def switches(source, names):
    """Return the lines that compare with a metric's name, or list several names as a switch."""
    lines = []

    def is_name(node):
        return isinstance(node, ast.Constant) and node.value in names

    def elements(node):
        if isinstance(node, ast.Dict):
            return node.keys
        return node.elts if isinstance(node, ast.Set | ast.Tuple | ast.List) else []

    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            known = any(is_name(one) or any(map(is_name, elements(one))) for one in sides)
        else:
            known = sum(map(is_name, elements(node))) > 1
        if known:
            lines.append(node.lineno)
    return lines


def test_no_module_outside_metrics_switches_on_names_of_metrics():
    names = set(REGISTRY) | set(aliases())
    seen = {}
    for path in sorted(ROOT.rglob("*.py")):
        here = path.relative_to(ROOT)
        if here.parts[0] not in KNOW_METRICS:
            lines = switches(path.read_text(), names)
            if lines:
                seen[str(here)] = lines
    assert set(seen) == NULL_VALUES, f"ask the metric's definition instead: {seen}"


def test_the_test_sees_switches():
    names = {"P", "AP", "nDCG"}
    for source in (
        'metric.name == "P"',
        'metric.name in ("P", "x")',
        'if "AP" != name: pass',
        'TABLE = {"P": 1, "AP": 2}',
        'SOME = frozenset({"nDCG", "AP"})',
    ):
        assert switches(source, names), source
    for source in ('METRICS = ("P@10", "nDCG@10")', 'row["P"]', '{"P": 1, "anti-P": 2}', "a == b"):
        assert not switches(source, names), source


def test_remembered_names_are_forgotten_when_a_metric_is_replaced():
    us.metrics.metric("mine", params={"a": us.metrics.Param(1.0)})(lambda liked, a: a)
    assert parse("mine(a=2)").params == {"a": 2.0}
    us.metrics.metric("mine", replace=True)(lambda liked: 0.5)
    with pytest.raises(us.SettingError, match="takes no settings"):
        parse("mine(a=2)")
