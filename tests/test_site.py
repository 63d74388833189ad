"""The documentation as a site: pages reachable, links and commands right, the shell tour runs."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import unskew as us
import unskew_studies
from shared.commands import COMMANDS
from shared.pages import DOCS, PAGES, written_by
from shared.public import public_names
from unskew.cli import main

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)


def shell_lines(text, languages=("", "sh")):
    """Every command in the shell blocks of a page, without comments and line ends."""
    for language, code in FENCE.findall(text):
        if language in languages:
            for line in code.replace("\\\n", " ").splitlines():
                if line.startswith("unskew "):
                    yield shlex.split(line, comments=True)


def done(words):
    with pytest.raises(SystemExit) as ended:
        main(words[1:])
    assert ended.value.code == 0, words


def slugs(text):
    """The anchors that headings have, here and where repositories are shown."""
    plain = re.sub(FENCE, "", text)
    titles = re.findall(r"^#+ (.+)$", plain, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_cli_page_is_up_to_date():
    assert (DOCS / "cli.md").read_text() == written_by("cli").page(), "run: make docs"


def test_every_command_and_option_is_on_the_cli_page():
    text = (DOCS / "cli.md").read_text()
    sections = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", text, re.M | re.S))
    every = {f"unskew {name}": command for name, command in COMMANDS.items()}
    assert set(sections) == set(every)
    for name, command in every.items():
        assert f"](#{name.replace(' ', '-')})" in text
        for one in command.params:
            names = one.opts + one.secondary_opts
            wanted = [one.name.upper()] if one.param_type_name == "argument" else names
            assert all(f"`{word}`" in sections[name] for word in wanted), (name, one.name)
            assert one.help, f"{name}: {one.name} has no help"


def test_every_public_name_is_on_one_page_of_the_python_reference():
    pages = written_by("api").pages()
    index = pages.pop("index")
    headings = [
        (name, heading)
        for name, text in pages.items()
        for heading in re.findall(r"^## ([\w.]+)$", re.sub(FENCE, "", text), re.M)
    ]
    of_studies = [f"unskew_studies.{name}" for name in unskew_studies.__all__]
    assert sorted(heading for _, heading in headings) == sorted([*public_names(), *of_studies])
    for name, heading in headings:
        slug = heading.lower().replace(".", "")
        assert f"[{heading}]({name}.md#{slug})" in index
    for text in pages.values():
        assert " at 0x" not in text  # no default prints as a place in memory
        assert len(text) < 100_000


def test_help_becomes_markdown():
    page = written_by("cli")
    text = """
Do it.

[bold]Examples[/bold]

  unskew a -o b
  --c d

  unskew e

See [bold]f[/bold] a_b|c.
"""
    shown = """Do it.

**Examples**

```
unskew a -o b \\
    --c d
unskew e
```

See `f` a\\_b\\|c."""
    assert page.prose(text) == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_on_the_page_exist(page):
    every = {f"unskew {name}": command for name, command in COMMANDS.items()}
    for words in shell_lines(page.read_text()):
        if words == ["unskew", "--version"]:
            continue
        name = next((n for n in (" ".join(words[:3]), " ".join(words[:2])) if n in every), None)
        assert name is not None, " ".join(words)
        known = {opt for one in every[name].params for opt in one.opts + one.secondary_opts}
        options = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
        assert set(options) <= known | {"--help", "-h"}, " ".join(words)


def test_every_page_is_in_the_contents():
    blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", (DOCS / "index.md").read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    entries = [line for line in lines if line and not line.startswith(":")]
    listed = [re.sub(r".*<(.+)>", r"\1", entry) for entry in entries]  # TITLE <page>, or page
    files = [*PAGES[1:], *DOCS.glob("notebooks/*.ipynb")]
    pages = [page.relative_to(DOCS).with_suffix("").as_posix() for page in files]
    assert sorted([*listed, "index"]) == sorted([*pages, "api/index"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_sections_exist(page):
    text = re.sub(FENCE, "", page.read_text())
    for target, section in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", text):
        there = page if not target else (page.parent / target)
        assert section in slugs(there.read_text()), f"{page.name}: {target}#{section}"


def test_the_tour_in_the_shell_says_what_it_says_in_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tour.md").read_text()
    for words in shell_lines(text, ["sh"]):
        if words[1] != "audit":
            done(words)
    names = {}
    for language, code in FENCE.findall(text):
        if language == "python" and "audit" not in code:
            exec(compile(code, "tour.md", "exec"), names)
    in_shell = us.read_ratings("parts/test.parquet").to_polars()
    assert in_shell.equals(names["split"].test.to_polars())
    for metric in ("P@10", "nDCG@10", "anti-P@10"):
        assert us.Scores.load("scores").mean(metric) == names["scores"].mean(metric)


@pytest.mark.slow
def test_the_audit_of_the_tour_writes_its_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in shell_lines((DOCS / "tour.md").read_text(), ["sh"]):
        if words[1] in ("world", "audit"):
            done(words)
    assert Path("report.html").exists()


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path):
    for package in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: make docs installs it")
    subprocess.run([sys.executable, str(DOCS / "api.py")], check=True)
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-d", str(tmp_path / "doctrees")]
    subprocess.run([*build, str(DOCS), str(tmp_path / "site")], check=True)
    shown = (tmp_path / "site" / "readme.html").read_text()
    assert 'href="audit.html"' in shown
    index = (tmp_path / "site" / "index.html").read_text()
    assert 'href="readme.html#what-only-unskew-does"' in index


# llms.txt


def test_llms_is_up_to_date():
    assert (DOCS / "llms.txt").read_text() == written_by("llms").page(), "run: make docs"


def test_llms_names_every_command_and_every_page():
    text = (DOCS / "llms.txt").read_text()
    named = re.findall(r"^- `unskew ([a-z -]+)`: \S", text, re.M)
    assert sorted(named) == sorted(COMMANDS)
    linked = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)$", text, re.M)
    files = [*PAGES[1:], *DOCS.glob("notebooks/*.ipynb")]
    pages = [page.relative_to(DOCS).as_posix() for page in files]
    assert sorted([*linked, "index.md"]) == sorted(pages)


def test_llms_on_the_site_links_to_its_pages(tmp_path):
    app = SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))
    written_by("conf").write_llms(app, None)
    text = (tmp_path / "llms.txt").read_text()
    assert "](install.html)" in text
    assert "](notebooks/judge-my-lists.html)" in text
    assert ".md)" not in text
