"""The pages of the documentation, and the modules that write some of them."""

import importlib.util

from shared import ROOT

DOCS = ROOT / "docs"
REFERENCE = DOCS / "api"  # written by `make docs` from the docstrings; in no repository
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in DOCS.rglob("*.md") if REFERENCE not in page.parents),
]


def written_by(name):
    """Return the module docs/NAME.py, which writes a page."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    return page
