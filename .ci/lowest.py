"""Print the lowest version of every direct dependency, as constraints for pip."""

import re
import tomllib
from pathlib import Path


def lowest(requirement: str) -> str:
    """Return `name==version` for `name>=version`, whatever else stands behind."""
    name, version = re.fullmatch(r"([\w.-]+)>=([\d.]+)(,.*)?", requirement).groups()[:2]
    return f"{name}=={version}"


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    wanted = {*project["dependencies"], *project["optional-dependencies"]["dev"]}
    print("\n".join(sorted(map(lowest, wanted))))
