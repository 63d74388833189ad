"""Documentation that runs: README and docstrings, help of every command, the metrics page."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
import subprocess
import sys
from functools import reduce

import pytest

import unskew
import unskew_studies
from shared import ROOT, stage
from shared.pages import DOCS, PAGES, written_by
from shared.public import public_names
from unskew.evaluation.scores import UNDEFINED, USERS
from unskew.metrics.names import REGISTRY, parse

MODULES = sorted(
    module.name
    for package in (unskew, unskew_studies)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "._" not in module.name
)


@pytest.mark.parametrize("name", ["unskew", "unskew_studies", *MODULES])
def test_docstring_examples(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def compare_with_the_page(page, run):
    """Run the examples of a page, and compare what they print with what the page shows."""
    outputs = written_by("outputs")
    left_out = []

    def before(words):
        stage.provide(words)
        if stage.reason_not_to_run(words) or not run(words):
            left_out.append(words)
        return words not in left_out

    for example, output in outputs.run_page(page.read_text(), page.name, before):
        skipped = [words for words in example.commands() if words in left_out]
        if example.shown is not None and not skipped:
            assert outputs.cut(output, example.lines) == example.shown, "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    compare_with_the_page(page, lambda words: not stage.is_slow(words))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_slow_commands_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    text = page.read_text()
    commands = [words for one in written_by("outputs").examples(text) for words in one.commands()]
    if not any(stage.is_slow(words) for words in commands):
        pytest.skip("the page has no slow commands")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("UNSKEW_DATA", raising=False)  # studies then take a small built-in world
    compare_with_the_page(page, lambda words: True)


def test_other_commands_run_or_have_a_reason_not_to():
    outputs = written_by("outputs")
    for page in PAGES:
        blocks = [one for one in outputs.examples(page.read_text()) if one.language == "sh"]
        lines = [line for one in blocks for line in one.code.replace("\\\n", " ").splitlines()]
        for line in lines:
            if line.startswith("python -c"):
                words = shlex.split(line)
                subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True)
            elif line and not line.startswith(("#", "unskew ", *stage.OTHER_COMMANDS)):
                pytest.fail(f"{page.name}: no test runs {line!r}")


def test_reasons_not_to_run_a_command_are_needed():
    outputs = written_by("outputs")
    blocks = [one for page in PAGES for one in outputs.examples(page.read_text())]
    commands = [" ".join(words) for one in blocks for words in one.commands()]
    for part in stage.NOT_RUN:
        assert any(part in demo_command for demo_command in commands), part


def test_the_answers_in_the_readme_are_what_the_demo_prints(capsys, tmp_path):
    from unskew.cli.doors.demo import demo_command

    demo_command(output=tmp_path / "report.html", save=tmp_path / "files", quiet=False)
    kept = {path.stem for path in (tmp_path / "files").iterdir()}
    assert {"ratings", "random", "train", "test"} <= kept
    printed = {" ".join(line.split()) for line in capsys.readouterr().out.splitlines()}
    text = (ROOT / "README.md").read_text()
    quoted = re.search(r"<!-- answer: unskew demo -->\n((?:>.*\n)+)", text)[1]
    parts = re.sub(r"^> ?|\*\*", "", quoted, flags=re.M).split("\n\n")
    sentences = [" ".join(part.split()) for part in parts]
    assert [one[:2] for one in sentences if one[0].isdigit()] == ["1.", "2."]
    assert len(sentences) >= 8
    for sentence in sentences:
        assert sentence in printed


def test_metrics_page_is_up_to_date():
    page = (DOCS / "metrics.md").read_text()
    assert page == written_by("metrics").page(), "run: make docs"


def test_libraries_page_is_up_to_date():
    page = (DOCS / "libraries.md").read_text()
    assert page == written_by("libraries").page(), "run: make docs"


def test_the_defaults_of_papers_can_be_asked_for():
    """Calls in the last column of the table take these arguments; metrics and settings exist."""
    page = (DOCS / "protocols.md").read_text()
    rows = re.findall(r"^\|.*\| (.*) \|$", page.partition("## Defaults that are not")[2], re.M)[2:]
    assert len(rows) >= 10
    for code in re.findall(r"`([^`]+)`", " ".join(rows)):
        if not code.startswith("us."):
            setting, is_setting, value = code.partition("=")
            if is_setting and "(" not in setting:
                assert ast.literal_eval(value) in {"users": USERS, "undefined": UNDEFINED}[setting]
            else:
                parse(code)
            continue
        call = ast.parse(code, mode="eval").body
        function = reduce(getattr, ast.unparse(call.func).split(".")[1:], unskew)
        settings = {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        inspect.signature(function).bind(*call.args, **settings)
        if isinstance(function, type):
            function(**settings)


def test_links_between_pages_exist():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_picture_of_the_architecture_is_up_to_date():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert page == written_by("architecture").page(), "run: make docs"


def test_files_that_pages_name_exist():
    """In the recipes and in the walks through the code; capitals stand for a name."""
    for page in ("CONTRIBUTING.md", "ARCHITECTURE.md"):
        text = (ROOT / page).read_text()
        for path in re.findall(r"`((?:src|tests|docs|benchmarks|\.ci|\.github)/[^`\s]*)`", text):
            pattern = re.sub(r"[A-Z]{3,}", "*", path)
            assert list(ROOT.glob(pattern.rstrip("/"))), f"{page}: {path}"


def test_walks_through_the_code_are_short():
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("## Follow one value")[2]
    mean, audit = text.split("**A cell of an audit**")
    for walk, most in ((mean, 12), (audit, 25)):
        files = re.findall(r"\d+\. `([\w/]+\.py)`", walk)
        assert f"{len(files)} files" in walk
        assert 0 < len(files) <= most
        named = re.findall(r"`([\w/]+\.py)`", walk)
        assert [name for name in named if not (ROOT / "src" / "unskew" / name).exists()] == []


def test_every_public_name_is_documented():
    for name, thing in public_names().items():
        assert (thing.__doc__ or "").strip() or not callable(thing), name


def test_versions(capsys):
    unskew.show_versions()
    out = capsys.readouterr().out
    assert "numpy" in out
    assert unskew.__version__ in out


def test_readme_names_the_metrics_without_an_anti_twin():
    told = re.search(r"those that describe \((.*?)\) have none", (ROOT / "README.md").read_text())[
        1
    ]
    assert set(told.split(", ")) == {name for name, one in REGISTRY.items() if not one.anti}


def test_readme_prints_the_ranges_of_measured_speed():
    """The best of several runs is no fair number."""
    page = " ".join((ROOT / "docs" / "performance.md").read_text().split())
    ranges = re.findall(r"(\d+) to (\d+)", re.search(r"ratios were (.*?)\. ", page)[1])
    assert len(ranges) == 6
    tools = {"pytrec_eval": ranges[:1], "ranx": ranges[1:2], "RecTools": ranges[2:]}
    readme = (ROOT / "README.md").read_text()
    for tool, pairs in tools.items():
        low, high = min(int(a) for a, _ in pairs), max(int(b) for _, b in pairs)
        assert re.search(rf"\b{low} to {high} times as (fast as )?{tool}\b", readme), tool
