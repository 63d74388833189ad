"""Old names: they give what the new ones give, warn with both, and are gone when they should be."""

import ast
import re
from functools import reduce

import pytest

import unskew as us
from shared import ROOT
from shared.pages import DOCS
from shared.source import modules
from unskew.deprecation import Renamed, attach_renamed

PLANTED = {"tau": Renamed("stats.kendall", since="0.2.0", removal="0.3.0")}


def number(version):
    return tuple(map(int, version.split(".")))


@pytest.mark.parametrize(
    ("package", "old"), [(us, "us.tau"), (us.bias, "us.bias.tau")], ids=["on top", "in a package"]
)
def test_an_old_name_gives_the_new_thing_and_warns_with_both(package, old):
    look_up, listed, names = attach_renamed(package.__name__, package.__file__, PLANTED)
    with pytest.warns(DeprecationWarning, match="is now") as warned:
        assert look_up("tau") is us.stats.kendall
    (one,) = warned
    assert str(one.message) == (
        f"{old} is now us.stats.kendall, since unskew 0.2.0; the old name is removed in "
        "unskew 0.3.0"
    )
    assert one.filename == __file__  # the line that uses the old name, not ours
    assert "tau" not in names
    assert "tau" not in listed()
    assert names == package.__all__


def test_other_names_are_as_before(recwarn):
    look_up, _, names = attach_renamed(us.stats.__name__, us.stats.__file__, PLANTED)
    assert all(look_up(name) is getattr(us.stats, name) for name in names)
    with pytest.raises(AttributeError, match="kendal"):
        look_up("kendal")
    assert not recwarn.list


def renamed_names(source):
    """Return (old, new, since, removal) of the table in a package's source."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "attach_renamed":
            for key, value in zip(node.args[2].keys, node.args[2].values, strict=True):
                more = {one.arg: one.value.value for one in value.keywords}
                yield key.value, value.args[0].value, more["since"], more["removal"]


def wrong_entries(source, package, now):
    """Say what is wrong with the table of a package, in version `now`."""
    for old, new, since, removal in renamed_names(source):
        if number(now) >= number(removal):
            yield f"{old}: remove it, this is {now}"
        major, minor, _ = number(since)
        if number(removal) < (major, minor + (1 if major == 0 else 2), 0):
            yield f"{old}: it must stay until a later minor version than {since}"
        if old in package.__all__:
            yield f"{old}: it is a present name"
        try:
            reduce(getattr, new.split("."), us)
        except AttributeError:
            yield f"{old}: there is no us.{new}"


def test_tables_of_old_names_are_right():
    wrong = []
    for name, path in modules().items():
        source = path.read_text()
        if path.name == "__init__.py" and "attach_renamed" in source:
            package = reduce(getattr, name.split(".")[1:], us)
            wrong += [f"{name}: {one}" for one in wrong_entries(source, package, us.__version__)]
    assert wrong == []


@pytest.mark.parametrize(
    ("entry", "now", "seen"),
    [
        ('"tau": Renamed("stats.kendall", since="0.2.0", removal="0.3.0")', "0.2.1", None),
        ('"tau": Renamed("stats.kendall", since="0.2.0", removal="0.3.0")', "0.3.0", "remove it"),
        ('"tau": Renamed("stats.kendall", since="0.2.0", removal="0.2.9")', "0.2.1", "later minor"),
        ('"tau": Renamed("stats.kendall", since="1.1.0", removal="1.2.0")', "1.1.0", "later minor"),
        ('"tau": Renamed("stats.kendall", since="1.1.0", removal="1.3.0")', "1.1.0", None),
        ('"kendall": Renamed("stats.correct", since="0.2.0", removal="0.3.0")', "0.2.0", "present"),
        ('"tau": Renamed("stats.kendal", since="0.2.0", removal="0.3.0")', "0.2.0", "no us.stats"),
    ],
)
def test_wrong_tables_are_seen(entry, now, seen):
    source = f"x = attach_renamed(__name__, __file__, {{{entry}}})"
    wrong = " ".join(wrong_entries(source, us.stats, now))
    assert (wrong == "") if seen is None else (seen in wrong)


def test_the_page_and_the_recipe_say_the_same():
    page = (DOCS / "compatibility.md").read_text()
    recipe = (ROOT / "CONTRIBUTING.md").read_text().partition("## Deprecation")[2]
    for text in (page, recipe):
        assert "one minor version" in re.sub(r"\s+", " ", text)
        assert "attach_renamed" in text or "DeprecationWarning" in text
