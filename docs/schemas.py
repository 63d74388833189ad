"""Draft the JSON schemas of commands from what they print: python docs/schemas.py NAME.

A draft demands the keys that every call of tests/shared/json_calls.py prints, and their types.
Read it before it is kept: a key that depends on an option must not be required.
"""

import json
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
HOME = ROOT / "src" / "unskew" / "cli" / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAMED_BY_USERS = {"a", "b", "x", "y", "books", "films", "P@2", "AP", "random", "popularity"}
"""Keys that are names of systems, metrics and data sets of the walked calls."""
FREE = {
    "propensity", "facts", "settings", "card", "tuned", "seconds", "references", "ladder", "users",
}  # fmt: skip
"""Objects whose keys depend on settings."""
IDS = {"user", "item", "label"}
NAMED = {"lights", "splits"}
"""Objects with a key per check or per split."""


def forms(values: list[Any]) -> dict[str, Any]:
    """Return a schema of all outputs of a command; options can let it print another result."""
    groups: list[tuple[set[str], list[Any]]] = []
    for value in values:
        first = value[0] if isinstance(value, list) and value else value
        keys = set(first) if isinstance(first, dict) else set()
        keys = {"(names)"} if keys and keys <= NAMED_BY_USERS else keys
        like = next(
            (one for one in groups if len(one[0] & keys) >= 0.75 * len(one[0] | keys)), None
        )
        if like is None:
            groups.append((keys, [value]))
        else:
            like[1].append(value)
    schemas = [drafted(group) for _, group in groups]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def drafted(values: list[Any], key: str = "") -> dict[str, Any]:
    """Return a schema that all values fit: scalars may be null, objects may have more keys."""
    present = [value for value in values if value is not None]
    if not present:
        return {}
    if isinstance(present[0], dict) and {"question", "method", "rows"} <= set(present[0]):
        from unskew.report.estimates import Estimates

        return Estimates.from_dict(present[0]).question.schema()
    if all(isinstance(value, dict) for value in present):
        schema: dict[str, Any] = {"type": "object"}
        inner = [name for value in present for name in value]
        if key in FREE:
            pass
        elif key in NAMED or (inner and set(inner) <= NAMED_BY_USERS):
            schema["additionalProperties"] = drafted([x for v in present for x in v.values()])
        else:
            always = [name for name in present[0] if all(name in value for value in present)]
            schema["required"] = always
            schema["properties"] = {
                name: drafted([value[name] for value in present], name) for name in always
            }
    elif all(isinstance(value, list) for value in present):
        schema = {"type": "array"}
        items = [one for value in present for one in value]
        if items:
            schema["items"] = drafted(items)
    else:
        kinds = sorted({kind(value) for value in present})
        if key in IDS:
            kinds = ["number", "string"]
        return {"type": [*kinds, "null"]}
    if len(present) < len(values):
        schema["type"] = [schema["type"], "null"]
    return schema


def kind(value: object) -> str:
    """Return the JSON type of a scalar."""
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number"


def titled(name: str, schema: dict[str, Any], version: int = 1) -> dict[str, Any]:
    """Return a schema with its name and version."""
    title = f"What unskew {name} --format json prints"
    head = {"$schema": DRAFT, "$id": f"urn:unskew:{name.replace(' ', '-')}:{version}"}
    return {**head, "title": title, "version": version, **schema}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    from shared.json_calls import CALLS, printed, write_files

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        write_files(Path(folder))
        for name in sys.argv[1:]:
            schema = titled(name, forms([printed(name, call) for call in CALLS[name]]))
            text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
            (HOME / f"{name.replace(' ', '-')}.json").write_text(text, encoding="utf-8")
