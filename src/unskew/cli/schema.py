"""`unskew schema`: what the JSON of a command holds."""

from __future__ import annotations

import json
from importlib import resources
from typing import Annotated, Any

from unskew.cli import outputs
from unskew.cli.bundles import argument
from unskew.cli.options import PlainFormat

SHARED = {"audit": "report", "demo": "report", "study run": "report", "timeline": "report"}
"""Commands whose JSON has the schema of another name."""

WITHOUT = {
    "annotate extend": "writes a folder",
    "annotate plan": "writes a folder",
    "data filter": "writes a file of ratings",
    "intervene": "writes a folder",
    "recommend": "writes a file of lists",
    "world": "writes a folder; its --format is of the files in it",
}
"""Commands without JSON, and why: their result is what they write."""


def command(
    name: Annotated[
        list[str] | None,
        argument("A command, such as evaluate or bias null, to print its schema.", default=None),
    ],
    format: PlainFormat,  # noqa: A002 - the option's name
) -> None:
    """Print the JSON schema of what a command prints with --format json, or list the schemas.

    A schema has a version, which rises when a key goes or changes its meaning; new keys can come at
    any time. A number that is undefined is null.

    [bold]Examples[/bold]

      unskew schema

      unskew schema evaluate

      unskew schema bias null
    """
    from unskew.errors import SettingError, unknown_name

    known = schemas()
    wanted = " ".join(name or ())
    if wanted in WITHOUT:
        raise SettingError(f"{wanted} has no JSON: it {WITHOUT[wanted]}")
    if wanted and wanted not in known:
        raise unknown_name("command", wanted, known)
    if wanted:
        outputs.print_json(known[wanted], indent=1)
    elif format == "json":
        versions = [{"command": key, "version": one["version"]} for key, one in known.items()]
        outputs.print_json(versions)
    else:
        rows = [(key, str(one["version"]), one["title"]) for key, one in known.items()]
        outputs.print_list(("command", "version", "what it is"), rows)


def schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each command that has one, by the command's name."""
    folder = resources.files("unskew.cli") / "schemas"
    by_file = {
        entry.name.removesuffix(".json"): json.loads(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".json")
    }
    result = {name.replace("-", " "): one for name, one in by_file.items() if name != "report"}
    result |= {name: by_file[key] for name, key in SHARED.items()}
    return dict(sorted(result.items()))
