"""Fixtures of the studies."""

import pytest


@pytest.fixture(scope="module")
def nowhere(tmp_path_factory):
    """A data folder without anything in it."""
    return tmp_path_factory.mktemp("nothing")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("studies") / "store"
