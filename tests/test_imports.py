"""Data flows in one direction: a module imports only from above itself, and unskew loads lazily."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import pytest

import unskew
from shared import ROOT
from shared.public import public_names
from shared.source import imported, imports, layer, modules, strings, trees

# Top to bottom; a module imports only from above itself or from its own package.
ORDER = [
    "errors", "arrays", "checks", "settings", "engine", "report", "data", "splits", "targets",
    "ties", "run_tables", "runs", "recommend", "worlds", "judging", "metrics", "conventions",
    "evaluation", "conventions.explaining", "stats", "bias", "unbiased", "labels", "online",
    "experiment", "auditing", "gating", "tracking", "testing", "cli", "__main__", "unskew_studies",
]  # fmt: skip
LEVEL = {name: level for level, name in enumerate(ORDER)}
# The package itself is the public face of everything: only the command line may look at it.
FACE = "unskew"
OURS = ("unskew", "unskew_studies")
# The one module that knows the distribution of the studies, and imports it where it is installed.
WAY_TO_STUDIES = "unskew.errors"


def wrong_arrows(imports):
    """Return the imports that point down."""
    wrong = []
    for name, targets in imports.items():
        if name == FACE:
            continue
        for target in sorted(targets):
            if target.split(".")[0] not in OURS:
                continue
            here, there = layer(name), layer(target)
            if there == FACE:
                allowed = here == "cli"
            elif there == "unskew_studies" and name == WAY_TO_STUDIES:
                allowed = True
            else:
                allowed = here == there or LEVEL[there] <= LEVEL[here]
            if not allowed:
                wrong.append(f"{name} imports {target}")
    return wrong


def test_every_module_has_its_place():
    homeless = {layer(name) for name in modules()} - set(LEVEL) - {FACE}
    assert not homeless, f"say in ORDER where these belong: {sorted(homeless)}"


def test_imports_point_up():
    assert wrong_arrows(imports()) == []


def named(text, known):
    """Return the module of ours that a text names, `unskew.data.ratings` or `data.ratings:Ids`."""
    if not re.fullmatch(r"\w+(\.\w+)+\.?(:\w+)?", text):
        return None
    parts = text.replace(":", ".").rstrip(".").split(".")
    whole = parts[0] in OURS
    parts = parts if whole else ["unskew", *parts]
    for size in range(len(parts), 1 if whole else 2, -1):
        if (name := ".".join(parts[:size])) in known:
            return name
    return None


def test_no_text_names_a_module_further_down():
    """A name in a text that is imported later is an import all the same."""
    known = modules()
    texts = {
        name: {named(text, known) for text in strings(tree)} - {None}
        for name, tree in trees().items()
    }
    assert wrong_arrows(texts) == []


def test_names_in_texts_are_seen():
    known = {"unskew", "unskew.stats", "unskew.stats.correlation", "unskew.runs"}
    assert named("unskew.stats.correlation:kendall", known) == "unskew.stats.correlation"
    assert named("stats.correlation.kendall", known) == "unskew.stats.correlation"
    assert named("unskew.stats.", known) == "unskew.stats"  # the beginning of an f-string
    assert named("unskew.runs", known) == "unskew.runs"
    for text in ("stats", "stats:Q", "runs.csv", "in stats.correlation", "numpy.linalg"):
        assert named(text, known) is None


def test_no_package_imports_what_is_private_to_another():
    wrong = [
        f"{name} imports {target}"
        for name, targets in imports().items()
        for target in targets
        if target.split(".")[0] in OURS and layer(target) != layer(name)
        if any(part.startswith("_") for part in target.split("."))
    ]
    assert wrong == []


def test_no_module_imports_itself_in_a_circle():
    ours = {
        name: {target for target in targets if target.split(".")[0] in OURS}
        for name, targets in imports().items()
        if name not in (FACE, WAY_TO_STUDIES)
    }
    try:
        TopologicalSorter(ours).prepare()
    except CycleError as circle:
        pytest.fail(f"circular imports: {' -> '.join(circle.args[1])}")


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("numba", {"unskew.engine.compiler"}),
        ("threading", {"unskew.engine.threads"}),
        ("concurrent", {"unskew.engine.threads", "unskew.engine.process_pool"}),
    ],
)
def test_only_one_module_knows(library, homes):
    users = {
        name
        for name, targets in imports().items()
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
        "unskew.judging.list_kernels",
    ]
    source = "\n".join(
        [
            "import unskew.runs",
            "from unskew.judging import list_kernels",
            "from unskew import __version__",
            "def f():",
            "    from unskew.data import ratings",
            "    from .data.ratings import Ids",
            "    from . import runs",
            "if True:",
            "    import numpy.linalg as la",
        ]
    )
    seen = imported("unskew.ties", ast.parse(source), known)
    assert seen == {
        "unskew.runs", "unskew.judging.list_kernels", "unskew", "unskew.data.ratings",
        "numpy.linalg",
    }  # fmt: skip
    assert wrong_arrows({"unskew.ties": seen}) == [
        "unskew.ties imports unskew",
        "unskew.ties imports unskew.judging.list_kernels",
        "unskew.ties imports unskew.runs",
    ]
    assert wrong_arrows({"unskew.cli.doors.audit": {"unskew", "unskew.runs"}}) == []
    assert wrong_arrows({"unskew.errors": {"unskew.engine.rng"}}) == [
        "unskew.errors imports unskew.engine.rng"
    ]


# Importing unskew

HEAVY = {
    "altair", "dask", "distributed", "jinja2", "narwhals", "numba", "pandas", "polars", "pooch",
    "pyarrow", "scipy", "threadpoolctl",
}  # fmt: skip
"""Loaded at their first use, never with the package."""


def run(code):
    """Run code in a fresh process and return what it prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("module", "not_loaded"),
    [
        ("unskew", HEAVY),
        ("unskew.recommend.language", HEAVY - {"polars"}),
        ("unskew.cli", HEAVY - {"polars"}),
    ],
)
def test_import_is_light(module, not_loaded):
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    loaded = set(run(code).split())
    assert "unskew" in loaded
    assert not loaded & not_loaded


def test_import_loads_few_modules():
    """Time spent on an import is time spent on modules; `make bench` measures the seconds."""
    ours = run("import sys, unskew; print(*(m for m in sys.modules if m.startswith('unskew')))")
    assert set(ours.split()) <= {"unskew", "unskew.errors"}


def test_every_public_name_is_loaded_at_its_first_use():
    names = public_names()
    assert len(names) > 150
    assert sum("." not in name for name in names) <= 36
    with pytest.raises(AttributeError, match="evaluat"):
        unskew.evaluat  # noqa: B018


def test_no_public_name_is_hidden_by_its_module():
    """A package that exports `bounds` and has a module `bounds` gives the function."""
    shared = [
        (package.__name__, name)
        for package in (unskew, *(room for room in vars_of(unskew) if inspect.ismodule(room)))
        for name in package.__all__
        if not inspect.ismodule(getattr(package, name))
        if name in {path.stem for path in Path(package.__file__).parent.iterdir()}
    ]
    assert shared
    code = "\n".join(
        [
            "import importlib, inspect, sys",
            f"for package, name in {shared!r}:",
            "    first = getattr(importlib.import_module(package), name)",
            "    module = importlib.import_module(f'{package}.{name}')",
            "    again = getattr(importlib.import_module(package), name)",
            "    assert first is again and not inspect.ismodule(first), (package, name)",
        ]
    )
    run(code)
    swapped = code.replace(
        "    first = getattr",
        "    importlib.import_module(f'{package}.{name}')\n    first = getattr",
    )
    run(swapped)


def vars_of(package):
    return [getattr(package, name) for name in package.__all__]


def test_the_front_door_shows_what_belongs_there():
    shown = {name for name in dir(unskew) if not name.startswith("_")}
    assert not shown & {"engine", "checks", "arrays", "cli", "lazy_loader"}
    assert shown >= {"evaluate", "stats", "splits", "Ratings"}


def test_the_command_line_starts_without_numbers():
    """Help and errors come at once, and addresses are counted before libraries reserve them."""
    code = "import sys, unskew.cli; print({'numpy', 'polars', 'numba'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


SCRIPTS = [path for room in ("benchmarks", "docs") for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_import_what_exists(path):
    """Nobody runs all benchmarks after each change."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(FACE):
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), name
