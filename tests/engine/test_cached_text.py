"""Texts that are slow to make are kept, and a cache that cannot be used costs only time."""

import pytest

from unskew.engine.store import cached


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "unskew"


def fail():
    raise AssertionError("made again")


def test_a_text_is_made_once_per_key(home):
    assert cached("a", {"version": 1}, lambda: "one\n€") == "one\n€"
    assert cached("a", {"version": 1}, fail) == "one\n€"
    assert cached("b", {"version": 1}, lambda: "other") == "other"
    assert cached("a", {"version": 2}, lambda: "two") == "two"
    assert len(list(home.iterdir())) == 2  # that of the earlier version is gone
    with pytest.raises(AssertionError, match="made again"):
        cached("a", {"version": 1}, fail)


def test_a_damaged_file_is_made_again(home):
    cached("a", {"version": 1}, lambda: "one")
    (file,) = home.iterdir()
    file.write_text(file.read_text().replace("one", "two"))
    assert cached("a", {"version": 1}, lambda: "one") == "one"
    assert cached("a", {"version": 1}, fail) == "one"


def test_a_folder_that_cannot_be_used_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cached("a", {}, lambda: "one") == "one"
    assert cached("a", {}, lambda: "two") == "two"
