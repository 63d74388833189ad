"""Data flows in one direction: a module imports only from above itself, and unskew loads lazily."""

import ast
import inspect
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import unskew
from shared.public import public_names

ROOT = Path(unskew.__file__).parent

# Top to bottom; a module imports only from above itself or from its own package.
ORDER = [
    "errors", "arrays", "checks", "engine", "report", "data", "splits", "targets",
    "ties", "runs", "recommend", "worlds", "judging", "metrics", "conventions", "evaluation",
    "explaining", "stats", "bias", "unbiased", "experiment", "auditing", "studies", "testing",
    "cli", "__main__",
]  # fmt: skip
LEVEL = {name: level for level, name in enumerate(ORDER)}
# The package itself is the public face of everything: only the command line may look at it.
FACE = "unskew"


def modules(root=ROOT):
    """Return every module's dotted name and file."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = ["unskew", *path.relative_to(root).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        found[".".join(parts)] = path
    return found


def imported(name, source, known, package=False):
    """Return the modules that a source text imports, also inside functions, ours in full."""
    result = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                home = name.split(".") if package else name.split(".")[:-1]
                home = home[: len(home) - (node.level - 1)]
                base = ".".join([*home, *([base] if base else [])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                result.add(full if full in known else base)
    return result


def everything():
    """Return what each module imports."""
    known = modules()
    return {
        name: imported(name, path.read_text(), known, path.name == "__init__.py")
        for name, path in known.items()
    }


def layer(name):
    """Return the top-level module or package that a module belongs to."""
    return name.split(".")[1] if "." in name else FACE


def wrong_arrows(imports):
    """Return the imports that point down."""
    wrong = []
    for name, targets in imports.items():
        if name == FACE:
            continue
        for target in sorted(targets):
            if target.split(".")[0] != "unskew":
                continue
            here, there = layer(name), layer(target)
            if there == FACE:
                allowed = here == "cli"
            else:
                allowed = here == there or LEVEL[there] <= LEVEL[here]
            if not allowed:
                wrong.append(f"{name} imports {target}")
    return wrong


def test_every_module_has_its_place():
    homeless = {layer(name) for name in modules()} - set(LEVEL) - {FACE}
    assert not homeless, f"say in ORDER where these belong: {sorted(homeless)}"


def test_imports_point_up():
    assert wrong_arrows(everything()) == []


def test_no_module_imports_itself_in_a_circle():
    ours = {
        name: {target for target in targets if target.split(".")[0] == "unskew"}
        for name, targets in everything().items()
        if name != FACE
    }
    try:
        TopologicalSorter(ours).prepare()
    except CycleError as circle:
        pytest.fail(f"circular imports: {' -> '.join(circle.args[1])}")


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("numba", {"unskew.engine.compiled"}),
        ("threading", {"unskew.engine.threads"}),
        ("concurrent", {"unskew.engine.threads"}),
    ],
)
def test_only_one_module_knows(library, homes):
    users = {
        name
        for name, targets in everything().items()
        if any(target.split(".")[0] == library for target in targets)
    }
    assert users == homes


def test_the_test_sees_wrong_arrows():
    """Every spelling of an import is seen, inside functions too."""
    known = [
        "unskew",
        "unskew.runs",
        "unskew.data",
        "unskew.data.ratings",
        "unskew.judging.kernels",
    ]
    source = "\n".join(
        [
            "import unskew.runs",
            "from unskew.judging import kernels",
            "from unskew import __version__",
            "def f():",
            "    from unskew.data import ratings",
            "    from .data.ratings import Ids",
            "    from . import runs",
            "if True:",
            "    import numpy.linalg as la",
        ]
    )
    seen = imported("unskew.ties", source, known)
    assert seen == {
        "unskew.runs", "unskew.judging.kernels", "unskew", "unskew.data.ratings", "numpy.linalg",
    }  # fmt: skip
    assert wrong_arrows({"unskew.ties": seen}) == [
        "unskew.ties imports unskew",
        "unskew.ties imports unskew.judging.kernels",
        "unskew.ties imports unskew.runs",
    ]
    assert wrong_arrows({"unskew.cli.demo": {"unskew", "unskew.runs"}}) == []
    assert wrong_arrows({"unskew.errors": {"unskew.engine.rng"}}) == [
        "unskew.errors imports unskew.engine.rng"
    ]


# Importing unskew

HEAVY = ("threadpoolctl", "numba", "altair", "scipy", "jinja2", "pandas", "pooch")


def run(code):
    """Run code in a fresh process and return what it prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_import_is_light():
    loaded = run("import sys, unskew; print(*{name.split('.')[0] for name in sys.modules})").split()
    assert "unskew" in loaded
    assert not set(HEAVY) & set(loaded)


def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import unskew; print(time.perf_counter() - t)"
    assert min(float(run(code)) for _ in range(3)) < 0.4


def test_every_public_name_is_loaded_at_its_first_use():
    names = public_names()
    assert len(names) > 150
    assert sum("." not in name for name in names) <= 34
    with pytest.raises(AttributeError, match="evaluat"):
        unskew.evaluat  # noqa: B018


def test_no_public_name_is_hidden_by_a_module():
    """A package that exports `bounds` and has a module `bounds` would give either, by chance."""
    for package in (unskew, *(one for one in vars_of(unskew) if inspect.ismodule(one))):
        folder = Path(package.__file__).parent
        exported = {n for n in package.__all__ if not inspect.ismodule(getattr(package, n))}
        assert not exported & {path.stem for path in folder.iterdir()}, package.__name__


def vars_of(package):
    return [getattr(package, name) for name in package.__all__]


def test_the_front_door_shows_what_belongs_there():
    shown = {name for name in dir(unskew) if not name.startswith("_")}
    assert not shown & {"engine", "checks", "arrays", "cli", "lazy_loader"}
    assert shown >= {"evaluate", "stats", "splits", "Ratings"}
