"""How Sphinx builds these pages: make docs."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import unskew

project = "unskew"
author = "the unskew authors"
version = release = unskew.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
html_theme = "furo"
html_title = f"unskew {release}"
html_show_copyright = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
highlight_language = "text"
smartquotes = False  # --option stays --option
myst_heading_anchors = 3  # page.md#a-heading, as elsewhere on the web
myst_links_external_new_tab = False


# Pages that lie outside this folder, by their names on the site.
OUTSIDE = {
    "readme": "README.md",
    "architecture": "ARCHITECTURE.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
    "security": "SECURITY.md",
    "conduct": "CODE_OF_CONDUCT.md",
}


def _notebook_page(text: str, name: str) -> str:
    """Return a notebook as the Markdown of its page."""
    spec = importlib.util.spec_from_file_location(
        "notebooks", Path(__file__).parent / "notebooks.py"
    )
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    return str(writer.page(json.loads(text), name))


def to_the_site(app: Any, name: str, source: list[str]) -> None:
    """Point links that are right in the repository to the pages of the site."""
    del app
    text = source[0]
    if name.startswith("notebooks/"):
        text = _notebook_page(text, name.partition("/")[2])
    if name in OUTSIDE:
        text = (Path(__file__).parents[1] / OUTSIDE[name]).read_text()
        # Its links start one folder further up; so do other files of the repository.
        text = re.sub(r"\]\((?!https?:|#|docs/)", "](../", text).replace("](docs/", "](")
    for page, file in OUTSIDE.items():
        text = text.replace(f"](../{file}", f"]({page}.md")
    # Repositories draw this language; the pages show its text.
    source[0] = text.replace("```mermaid", "```text")


def write_llms(app: Any, problem: Exception | None) -> None:
    """Put llms.txt at the root of the site, with links to its pages."""
    if problem is None and app.builder.format == "html":
        text = (Path(__file__).parent / "llms.txt").read_text(encoding="utf-8")
        linked = re.sub(r"\]\(([\w/-]+)\.(?:md|ipynb)\)", r"](\1.html)", text)
        (Path(app.outdir) / "llms.txt").write_text(linked, encoding="utf-8")


def setup(app: Any) -> None:
    """Connect what is done with every page before it is read, and after all are written."""
    app.connect("source-read", to_the_site)
    app.connect("build-finished", write_llms)
