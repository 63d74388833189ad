"""`unskew evaluate --hygiene`: what is wrong with lists, instead of metrics."""

import pytest


@pytest.fixture
def words(tmp_path):
    test, lists = tmp_path / "test.csv", tmp_path / "lists.csv"
    test.write_text("user,item,rating\n1,a,5\n2,b,4\n")
    lists.write_text("user,item,rank\n1,a,1\n1,a,2\n2,b,1\n")
    return ("evaluate", "-j", test, "-r", lists, "--liked", "4", "--hygiene")


def test_counts(words, call):
    code, out, _ = call(*words)
    assert code == 0
    assert "duplicate items" in out
    assert "shorter than 5 items" in call(*words, "-m", "P@5,AP")[1]


@pytest.mark.parametrize(
    "option", [("--users", "all"), ("--nan", "drop"), ("--memory", "1GiB"), ("--by-user",)]
)
def test_options_that_say_nothing_about_lists_are_refused(words, call, option):
    code, _, messages = call(*words, *option)
    assert code == 2
    assert f"{option[0]} cannot be used with --hygiene" in messages
