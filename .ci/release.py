"""What a release needs: the version of a tag, checked everywhere, and its part of the changelog.

python .ci/release.py check v0.2.0     # ends with 1 and says what differs
python .ci/release.py notes v0.2.0     # the part of CHANGELOG.md
"""

import json
import re
import sys
import tomllib
from pathlib import Path

HOME = Path(__file__).parents[1]


def first(pattern: str, file: str, home: Path) -> str:
    """Return what a pattern catches first in a file of the repository."""
    match = re.search(pattern, (home / file).read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else "none"


def versions(home: Path = HOME) -> dict[str, str]:
    """Return the version that each file states."""
    project = tomllib.loads((home / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        "pyproject.toml": project["version"],
        "studies/pyproject.toml": first(r'^version = "(.+)"$', "studies/pyproject.toml", home),
        "studies/src/unskew_studies/__init__.py": first(
            r'^__version__ = "(.+)"$', "studies/src/unskew_studies/__init__.py", home
        ),
        "src/unskew/__init__.py": first(r'^__version__ = "(.+)"$', "src/unskew/__init__.py", home),
        "CITATION.cff": first(r"^version: (.+)$", "CITATION.cff", home),
        ".zenodo.json": json.loads((home / ".zenodo.json").read_text(encoding="utf-8"))["version"],
        "recipe/recipe.yaml": first(r'^  version: "(.+)"$', "recipe/recipe.yaml", home),
        "action.yml": first(r"unskew==([\d.]+)", "action.yml", home),
        "docs/install.md": first(r"unskew-([\d.]+)-py3", "docs/install.md", home),
    }


def notes(version: str, home: Path = HOME) -> str:
    """Return the part of the changelog on a version; '' without one."""
    text = (home / "CHANGELOG.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (?=\S)", text, flags=re.MULTILINE)[1:]
    for part in parts:
        heading, _, body = part.partition("\n")
        if heading.split()[0].strip("[]") == version:
            return body.strip() + "\n"
    return ""


def problems(version: str, home: Path = HOME) -> list[str]:
    """Return what stands against a release of this version."""
    wrong = [
        f"{file}: version {stated}, not {version}"
        for file, stated in versions(home).items()
        if stated != version
    ]
    if not notes(version, home):
        wrong.append(f"CHANGELOG.md: no heading for {version} with something below it")
    return wrong


def main(words: list[str]) -> int:
    """Do what the command line asks for."""
    if len(words) != 2 or words[0] not in ("check", "notes"):
        print(__doc__, file=sys.stderr)
        return 2
    version = words[1].removeprefix("v")
    if words[0] == "notes":
        text = notes(version)
        sys.stdout.write(text)
        return 0 if text else 1
    wrong = problems(version)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
