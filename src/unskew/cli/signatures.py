"""What docstrings and signatures say of options.

A function is read from its source, of which only the function is parsed: that takes a millisecond.
To import it would take a third of a second, for numpy and polars, before `--help` is printed; and a
table that is generated from it would be one more file to keep up to date.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = Path(__file__).parents[1]


class Setting(NamedTuple):
    """What a parameter is on the command line."""

    type: Any
    default: Any
    text: str


@functools.cache
def read_docstring(docstring: str) -> tuple[str, dict[str, tuple[str, str]]]:
    """Split a docstring into the text before its sections, and the sections' entries.

    Returns
    -------
    text
        What stands before the first title.
    entries
        By name: the title that it stands under, and the first paragraph of its text.
    """
    lines = inspect.cleandoc(docstring).splitlines()
    heads = [number for number, line in enumerate(lines) if line and set(line) == {"-"}]
    entries: dict[str, tuple[str, str]] = {}
    for head, end in pairwise([*heads, len(lines) + 1]):
        section = "\n".join(lines[head + 1 : end - 1])
        for entry in re.split(r"\n(?=\S)", section):
            names, _, text = entry.partition("\n")
            for name in names.split(", "):
                entries[name] = (lines[head - 1], _first_paragraph(text))
    return "\n".join(lines[: heads[0] - 1] if heads else lines).strip(), entries


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())


@functools.cache
def settings_of(target: str, names: tuple[str, ...]) -> tuple[Setting, ...]:
    """Return what a function or a class of settings takes under these names.

    Parameters
    ----------
    target
        Module and function or class: `stats.compare.compare:compare`.
    names
        The parameters.

    Returns
    -------
    settings
        In the order of the names; texts are without the marks of code.
    """
    module, _, name = target.partition(":")
    source = _source(module)
    # The last definition: those before it are overloads.
    head = re.findall(rf"(?ms)^(?:def|class) {name}\b.*?(?=^[^\s)]|\Z)", source)[-1]
    node = ast.parse(head).body[0]
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    entries = read_docstring(ast.get_docstring(node) or "")[1]
    declared = {field[0]: field[1:] for field in _declared(node)}
    settings = []
    for name in names:
        annotation, default, meaning = declared[name]
        value = inspect.Parameter.empty if default is None else _value(default, source)
        text = entries[name][1] if meaning is None else _first_paragraph(ast.literal_eval(meaning))
        settings.append(
            Setting(_option_type(ast.unparse(annotation)), value, text.replace("`", ""))
        )
    return tuple(settings)


def _declared(
    node: ast.FunctionDef | ast.ClassDef,
) -> Iterator[tuple[str, ast.expr, ast.expr | None, ast.expr | None]]:
    """Yield name, type, default and, of a class of settings, the text that they have."""
    if isinstance(node, ast.ClassDef):
        for field in node.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.value, ast.Call):
                value, text = field.value.args[:2]
                yield ast.unparse(field.target), field.annotation, value, text
        return
    plain = [*node.args.posonlyargs, *node.args.args]
    required: list[ast.expr | None] = [None] * (len(plain) - len(node.args.defaults))
    defaults = [*required, *node.args.defaults, *node.args.kw_defaults]
    for argument, default in zip([*plain, *node.args.kwonlyargs], defaults, strict=True):
        if argument.annotation is not None:
            yield argument.arg, argument.annotation, default, None


def _option_type(annotation: str) -> Any:
    """Return as what a value is read: text, wherever words are allowed."""
    kinds = annotation.split(" | ")
    names = {"str": str, "bool": bool, "int": int, "float": float, "Sequence[str]": list[str]}
    read: Any = next((kind for name, kind in names.items() if name in kinds), str)
    return read | None if "None" in kinds else read


def _value(default: ast.expr, source: str) -> Any:
    """Return a default: a literal, or a constant of the module or of one that it imports."""
    if not isinstance(default, ast.Name):
        return ast.literal_eval(default)
    line = re.search(rf"(?m)^[\w, ]*\b{default.id}\b[\w, ]*(?:: .+?)? = .+$", source)
    if line is None:
        names = rf"(?:\([^)]*|.*)\b{default.id}\b"
        (module,) = re.findall(rf"(?m)^from unskew\.(\S+) import {names}", source)
        return _value(default, _source(module))
    targets, _, text = line[0].partition(" = ")
    constants, value = targets.partition(":")[0].split(", "), ast.literal_eval(text)
    return value if len(constants) == 1 else value[constants.index(default.id)]


def _source(module: str) -> str:
    return (_PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
