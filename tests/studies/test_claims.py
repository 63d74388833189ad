"""Claims as data: rules written as text."""

import pytest

from unskew.errors import SettingError
from unskew_studies.rules import (
    Rule,
    above,
    at_least,
    at_most,
    below,
    between,
    exactly,
    near,
    read_rule,
    true,
)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("near 0.35 ± 0.05", near(0.35, 0.05)),
        ("near -1 ± 0.1, open", near(-1, 0.1).open()),
        ("exactly 1703", exactly(1703)),
        ("at least 0.9", at_least(0.9)),
        ("above 0", above(0)),
        ("at most 5.1e-5", at_most(5.1e-5)),
        ("below -0.5", below(-0.5)),
        ("between 0.5 and 2, open", between(0.5, 2).open()),
        ("true", true()),
        ("true, open", true().open()),
        ("at most 3: within 3: all of them", Rule(high=3, text="within 3: all of them")),
        ("above 0, open: its sign", Rule(low=0, strict=True, decisive=False, text="its sign")),
        ("strictly between 0 and 1: some", Rule(0, 1, strict=True, text="some")),
    ],
)
def test_rules_are_read_as_written(text, rule):
    assert read_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "false",
        "true open",
        "true,open",
        "open",
        "above",
        "above zero",
        "above inf",
        "above 1e999",
        "above 0 and 1",
        "at least .5",
        " above 0",
        "above 0\n",
        "above 0:",
        "above 0: ",
        "above 0: its sign\nor not",
        "near 1 +- 0.1",
        "near 1",
        "between 1",
        "Above 0",
    ],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(SettingError, match="is no rule: write 'near # ± #'"):
        read_rule(text)


@pytest.mark.parametrize(
    "text", ["between 2 and 1", "strictly between 1 and 1", "near 1 ± -0.1", "between 2 and 1: x"]
)
def test_a_rule_that_no_value_agrees_with_is_refused(text):
    with pytest.raises(SettingError, match="no value agrees with"):
        read_rule(text)
