"""Write docs/llms.txt, commands and pages for language models: python docs/llms.py [--check]."""

import json
import re
import sys
from pathlib import Path

from unskew.cli.command import GROUPS, PANELS, callback

DOCS = Path(__file__).parent
HEAD = """# unskew

> A Python library (`import unskew as us`) and a command line (`unskew`) for bias-aware offline
> evaluation of recommender systems: it judges ratings or ranked lists, compares systems, and tells
> how far the numbers can be trusted.

How to call it and read what it prints:

- Data are files (CSV, TSV, Parquet, TREC), data frames or mappings with columns user, item, rating;
  ranked lists have user, item and rank or score.
- `unskew COMMAND --format json` prints one JSON value on standard output and nothing else there;
  notes and errors go to standard error. Reports: `--format json -o -`. Commands that write files
  have no JSON. `unskew schema COMMAND` prints the JSON schema and its version. A number that is
  undefined is null; 0 is a measured zero.
- An error is one line on standard error: what is wrong, what is allowed, the remedy.
- Exit codes: 0 done; 1 data or another failure; 2 a wrong command or setting; 130 stopped; 141
  nobody reads the output. `unskew gate`: 0 promote, 1 hold, 3 not settled, 2 any failure.
  `unskew split --audit --fail-on`: 3 if a light is on.
- Read the notes with each number: they count what was left out and name what was assumed. Repeat a
  conclusion only with its interval and its conditions; "not settled" does not mean "equal".
- The same data, settings and seed give the same bits.
"""


def page() -> str:
    """Return the page."""
    lines = [HEAD, "## Commands", ""]
    for panel, names in PANELS.items():
        lines += [f"### {panel}", ""]
        for name in names:
            inside = [f"{name} {one}" for one in GROUPS[name][1]] if name in GROUPS else [name]
            lines += [f"- `unskew {one}`: {first_sentence(one)}" for one in inside]
        lines.append("")
    for caption, pages in contents().items():
        lines += [f"## {caption}", ""]
        lines += [f"- [{title(one)}]({file_of(one)})" for one in pages]
        lines.append("")
    return "\n".join(lines)


def first_sentence(name: str) -> str:
    """Return what a command does: the first paragraph of its help."""
    return " ".join((callback(name).__doc__ or "").strip().partition("\n\n")[0].split())


def contents() -> dict[str, list[str]]:
    """Return the pages of the contents, by caption."""
    text = (DOCS / "index.md").read_text()
    blocks = re.findall(r"^```\{toctree\}\n:caption: (.+?)\n(.*?)^```", text, re.M | re.S)
    return {
        caption: [
            re.sub(r".*<(.+)>", r"\1", line)
            for line in block.splitlines()
            if line and not line.startswith(":") and not line.endswith("<api/index>")
        ]
        for caption, block in blocks
    }


def file_of(name: str) -> str:
    """Return the file of a page in this folder."""
    return f"{name}.md" if (DOCS / f"{name}.md").exists() else f"{name}.ipynb"


def title(name: str) -> str:
    """Return the first heading of a page."""
    path = DOCS / file_of(name)
    text = path.read_text()
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    heading = re.search(r"^# (.+)$", text, re.M)
    return heading[1] if heading else name


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".txt")
    if "--check" in sys.argv:
        sys.exit(0 if target.read_text() == page() else "docs/llms.txt is stale: make docs")
    target.write_text(page())
