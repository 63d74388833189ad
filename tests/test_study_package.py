"""unskew works without the studies; what needs them says what to install."""

import pytest

import unskew as us
from unskew import errors

ERROR = "pip install unskew-studies"


@pytest.fixture
def without_studies(monkeypatch):
    """Let no studies be installed."""
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    monkeypatch.delitem(vars(us), "study", raising=False)


def test_the_function_is_there_and_says_what_to_install(without_studies):
    with pytest.raises(us.UnskewError, match=f"^study needs the package .*{ERROR}"):
        us.study("mena2021")


@pytest.mark.parametrize(
    "words",
    [
        ["study", "list"],
        ["study", "run", "mena2021"],
        ["study", "--help"],
        ["algorithms", "librec-slim"],
    ],
)
def test_commands_say_what_to_install(without_studies, call, words):
    code, _, err = call(*words)
    assert code == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert ERROR in err


def test_help_needs_no_studies(without_studies, call):
    code, out, _ = call("--help-all")
    assert code == 0
    assert "Reproduce a paper" in out


def test_recommenders_of_the_studies_say_what_to_install(without_studies, tmp_path):
    with pytest.raises(us.UnskewError, match=f"librec-slim needs .*{ERROR}"):
        us.recommend.algorithm("librec-slim")
    plan = tmp_path / "plan.toml"
    plan.write_text('[[split]]\nprotocol = "random"\n[[algorithm]]\nname = "librec-user-knn"\n')
    with pytest.raises(us.UnskewError, match=f"librec-user-knn needs .*{ERROR}"):
        us.read_plan(plan)


def test_saved_models_of_the_studies_say_what_to_install(tmp_path, monkeypatch):
    ratings = us.read_ratings({"user": [1, 1, 2, 2], "item": [1, 2, 2, 3], "rating": [5, 1, 4, 2]})
    model = us.recommend.algorithm("librec-user-knn").fit(ratings)
    us.recommend.save_model(model, tmp_path / "model", ratings)
    assert type(us.recommend.load_model(tmp_path / "model", ratings)) is type(model)
    monkeypatch.setattr(errors, "find_spec", lambda _name: None)
    with pytest.raises(us.UnskewError, match=ERROR):
        us.recommend.load_model(tmp_path / "model", ratings)


def test_names_that_are_none_stay_unknown(without_studies):
    with pytest.raises(us.UnknownName, match="unknown algorithm 'librec'"):
        us.recommend.algorithm("librec")
