"""Draw the picture in ARCHITECTURE.md from the imports: python docs/architecture.py."""

import ast
from pathlib import Path

HOME = Path(__file__).parents[1]
SOURCE = HOME / "src" / "unskew"
PAGE = HOME / "ARCHITECTURE.md"
BEGIN, END = "<!-- picture: docs/architecture.py -->", "<!-- end of picture -->"
GROUND = {"errors", "checks", "arrays", "settings", "engine", "report"}
"""Used by nearly all rooms: arrows to them would say nothing."""
FRONT = {"__init__", "__main__", "testing"}
"""Public names and what starts the command: no room."""


APART = ("conventions", "explaining")
"""A part of a room that stands below rooms which use the rest of it."""


def room(parts: tuple[str, ...]) -> str:
    """Return the package below unskew, or the module on top, that a module belongs to."""
    return parts[1 if parts[:2] == APART else 0]


def rooms() -> dict[str, set[str]]:
    """Return the rooms that each room imports from, inside functions too."""
    result: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        here = result.setdefault(room(path.relative_to(SOURCE).with_suffix("").parts), set())
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unskew."):
                here.add(room(tuple((node.module or "").split(".")[1:])))
            elif isinstance(node, ast.ImportFrom) and node.module == "unskew":
                here |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                names = [alias.name.split(".") for alias in node.names]
                here |= {
                    room(tuple(name[1:])) for name in names if name[0] == "unskew" and name[1:]
                }
    known = set(result) - GROUND - FRONT
    return {name: result[name] & known - {name} for name in result if name in known}


def shortest(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Leave out an arrow where a longer way leads to the same room."""

    def reached(start: str) -> set[str]:
        return set().union(*({step} | reached(step) for step in arrows[start]))

    return {
        name: targets - set().union(*(reached(one) for one in targets))
        for name, targets in arrows.items()
    }


def picture() -> str:
    """Return the flow of data as a mermaid graph: from a room to those that use it."""
    lines = [
        f"    {target} --> {name}"
        for name, targets in sorted(shortest(rooms()).items())
        for target in sorted(targets)
    ]
    return "\n".join(["```mermaid", "graph TD", *sorted(lines), "```"])


def page() -> str:
    """Return the page with its picture drawn anew."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{picture()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page())
