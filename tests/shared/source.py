"""The source as data: every module of unskew and of the studies, its tree, what it imports."""

import ast
from functools import cache
from pathlib import Path

import unskew
import unskew_studies

SOURCES = {one.__name__: Path(one.__file__).parent for one in (unskew, unskew_studies)}
"""The folders of the packages."""


@cache
def modules():
    """Return every module's dotted name and file."""
    result = {}
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            if parts[-1] == "__init__":
                parts.pop()
            result[".".join(parts)] = path
    return result


@cache
def trees():
    """Return the syntax tree of every module by its dotted name."""
    return {name: ast.parse(path.read_text()) for name, path in modules().items()}


# Sub-packages that stand lower than the rest of their package.
LOWER = ("conventions.explaining",)


def layer(name):
    """Return the top-level module or package that a module belongs to; the studies are one."""
    package, _, inside = name.partition(".")
    if not inside or package != "unskew":
        return package
    for room in LOWER:
        if inside == room or inside.startswith(f"{room}."):
            return room
    return inside.partition(".")[0]


def imported(name, tree, known, package=False):
    """Return the modules that a tree imports, also inside functions, ours in full."""
    result = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            result |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                home = name.split(".") if package else name.split(".")[:-1]
                home = home[: len(home) - (node.level - 1)]
                origin = ".".join([*home, *([origin] if origin else [])])
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                result.add(full if full in known else origin)
    return result


@cache
def imports():
    """Return what each module imports."""
    known = modules()
    return {
        name: imported(name, tree, known, known[name].name == "__init__.py")
        for name, tree in trees().items()
    }


def strings(tree):
    """Return all text in a tree but its docstrings."""
    explained = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, explained)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs
    ]


def body_lines(function):
    """Return the length of a function in lines, without its signature and docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0
