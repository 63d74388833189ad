"""Write docs/api.md, for the pages only, from the docstrings of all public names."""

import inspect
import re
from functools import cached_property
from pathlib import Path

import unskew

HEAD = """# Python reference

Written from the docstrings by `docs/api.py`. Everything is reached as
`import unskew as us`, then `us.evaluate(…)`, and loaded at its first use.
"""
TITLES = {
    "": "On top",
    "data": "Data",
    "splits": "Splits and interventions",
    "targets": "Target items",
    "recommend": "Recommenders",
    "worlds": "Worlds",
    "judging": "Judging",
    "metrics": "Metrics",
    "evaluation": "Evaluation",
    "stats": "Statistics",
    "bias": "Bias",
    "unbiased": "Unbiased estimates",
    "experiment": "Experiments",
    "auditing": "Audit",
    "report": "Reports",
    "studies": "Studies",
    "testing": "Checks of your metrics",
}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def page() -> str:
    """Return the page."""
    parts = [HEAD]
    for part, title in TITLES.items():
        package = getattr(unskew, part) if part else unskew
        things = {name: getattr(package, name) for name in package.__all__}
        parts.append(f"## {title}\n")
        parts += [
            entry(f"{part}.{name}" if part else name, things[name])
            for name in sorted(things, key=str.lower)
            if not inspect.ismodule(things[name])
        ]
    return "\n".join(parts)


def entry(name: str, thing: object) -> str:
    """Return what is said of a name: how it is called, and its docstring."""
    lines = [f"### {name}\n"]
    call = signature(name, thing)
    if call:
        lines.append(f"```text\n{call}\n```\n")
    lines.append(prose(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing):
        lines += methods(thing)
    return "\n".join(lines)


def signature(name: str, thing: object) -> str:
    """Return how something is called, a parameter per line where they are many."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return ""
    try:
        whole = inspect.signature(thing)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    bare = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in whole.parameters.values()
        if not one.name.startswith("_")
    ]
    text = f"{name}{whole.replace(parameters=bare, return_annotation=inspect.Signature.empty)}"
    text = re.sub(r"<function (\w+) at 0x[0-9a-f]+>", r"\1", text)  # an address is no default
    if len(text) <= 90:
        return text
    inside = text[len(name) + 1 : -1]
    return f"{name}(\n" + "".join(f"    {one},\n" for one in _split(inside)) + ")"


def _split(text: str) -> list[str]:
    """Split at commas that stand in no brackets or quotes."""
    parts, depth, quote, last = [], 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "([{<":
            depth += 1
        elif sign in ")]}>":
            depth -= 1
        elif sign == "," and depth == 0:
            parts.append(text[last:at].strip())
            last = at + 1
    return [*parts, text[last:].strip()]


def methods(thing: type) -> list[str]:
    """Return a line for each public method and property."""
    lines = []
    for name, member in sorted(inspect.getmembers(thing)):
        doc = inspect.getdoc(member) or ""
        mine = any(name in vars(base) for base in thing.__mro__ if "unskew" in base.__module__)
        known = inspect.isroutine(member) or isinstance(member, property | cached_property)
        if name.startswith("_") or not (doc and mine and known):
            continue
        called = "()" if callable(member) else ""
        lines.append(f"- `{name}{called}`: {' '.join(doc.split(chr(10) * 2)[0].split())}")
    return ["Methods and properties:\n", *lines, ""] if lines else []


def prose(doc: str) -> str:
    """Return a docstring as Markdown: sections in bold, parameters as a list, examples as code."""
    pieces = SECTION.split(doc)
    lines = [pieces[0].strip(), ""]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        lines += [f"**{title}**", ""]
        text = body.strip("\n")
        lines += ["```pycon", text, "```"] if title == "Examples" else _terms(text)
        lines.append("")
    return "\n".join(lines)


def _terms(text: str) -> list[str]:
    """Return `name` and the indented lines below it as entries of a list."""
    lines = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            lines.append("- " + ", ".join(f"`{one.strip()}`" for one in line.split(",")) + ":")
        else:
            lines.append(f"  {line.strip()}" if line.strip() else "")
    return lines


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page())
