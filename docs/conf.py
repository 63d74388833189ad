"""How Sphinx builds these pages: make docs."""

import re
from pathlib import Path
from typing import Any

import unskew

project = "unskew"
author = "the unskew developers"
version = release = unskew.__version__
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "furo"
html_title = f"unskew {release}"
html_show_copyright = False
html_copy_source = False
highlight_language = "text"
smartquotes = False  # --option stays --option
myst_heading_anchors = 3  # page.md#a-heading, as elsewhere on the web
myst_links_external_new_tab = False


def to_the_site(app: Any, name: str, source: list[str]) -> None:
    """Point links that are right in the repository to the pages of the site.

    The README is a page here, but lies outside this folder.
    """
    del app
    if name == "readme":
        readme = (Path(__file__).parents[1] / "README.md").read_text()
        # Its links start one folder further up; so do other files of the repository.
        inside = re.sub(r"\]\((?!https?:|#|docs/)", "](../", readme)
        source[0] = inside.replace("](docs/", "](")
    else:
        source[0] = source[0].replace("](../README.md", "](readme.md")


def setup(app: Any) -> None:
    """Connect what is done with every page before it is read."""
    app.connect("source-read", to_the_site)
