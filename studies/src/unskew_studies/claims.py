"""`read_claims`: the claims of a paper, from its file `claims.toml`.

A claim is a table `[[claim]]` with one or more tables `[[claim.evidence]]`; what they hold are the
fields of `Claim` and `Evidence`. A rule is a text such as `near 0.08 ± 0.005`, which
`rules.read_rule` reads. A check is named by its function in the paper's checks, and `settings` are
the arguments of that function other than the lab and the data set.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, isfunction, signature
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from unskew.errors import SettingError, unknown_name
from unskew_studies.paper import Check, Claim, Evidence, MeasuredValue
from unskew_studies.rules import read_rule

TEXT, TEXTS, TABLE, TABLES = "a text", "a list of texts", "a table", "tables"
FILE = {"claim": TABLES}
CLAIM = {
    "key": TEXT,
    "place": TEXT,
    "statement": TEXT,
    "published": TEXT,
    "question": TEXT,
    "kind": TEXT,
    "evidence": TABLES,
}
CHECKED = {
    "kind": TEXT,
    "check": TEXT,
    "settings": TABLE,
    "rule": TEXT,
    "question_rule": TEXT,
    "why": TEXT,
    "data": TEXTS,
    "files": TEXTS,
    "explanation": TEXT,
}
NOT_CHECKABLE = {"rule": TEXT, "why": TEXT, "needs": TEXT}
"""Evidence that has `needs` in place of a check."""


def read_claims(
    path: Path, *, checks: Sequence[ModuleType], data: Collection[str]
) -> tuple[Claim, ...]:
    """Return the claims of a paper, in the order of the file.

    Parameters
    ----------
    path
        A file of claims.
    checks
        The modules whose functions claims may name as their check.
    data
        The names of the data sets that claims may be checked on.
    """
    file = f"{path.parent.name}/{path.name}"
    functions = _functions(checks)
    with _located(file):
        content = _parsed(path)
        _check_fields("the file", content, FILE, required=FILE)
    claims: dict[str, Claim] = {}
    for number, table in enumerate(content["claim"], start=1):
        with _located(f"{file}, claim {table.get('key') or f'number {number}'}"):
            claim = _claim(table, functions, data)
            if claim.key in claims:
                raise SettingError("another claim has this key; every claim needs its own")
            claims[claim.key] = claim
    return tuple(claims.values())


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Say in an error where in the files it is."""
    try:
        yield
    except SettingError as problem:
        raise type(problem)(f"{where}: ", *problem.args) from None


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise SettingError(f"this is no TOML file ({problem})") from None


def _functions(modules: Sequence[ModuleType]) -> dict[str, FunctionType]:
    """Return the checks that modules define: public functions of the lab and a data set."""
    functions: dict[str, FunctionType] = {}
    for module in modules:
        for name, function in vars(module).items():
            if not _is_check(function) or function.__module__ != module.__name__:
                continue
            if name in functions:
                raise SettingError(f"{module.__name__}: another check is named {name}; rename one")
            functions[name] = function
    return functions


def _is_check(function: object) -> bool:
    if not isfunction(function) or function.__name__.startswith("_"):
        return False
    parameters = [name.lstrip("_") for name in _parameters(function)]
    result = function.__annotations__.get("return")
    return parameters[:2] == ["lab", "dataset_name"] and result == MeasuredValue.__name__


def _parameters(function: FunctionType) -> Mapping[str, Parameter]:
    return signature(function, follow_wrapped=False).parameters


def _claim(
    table: Mapping[str, Any], functions: Mapping[str, FunctionType], data: Collection[str]
) -> Claim:
    _check_fields("a claim", table, CLAIM, required=("key", "place", "statement", "evidence"))
    pieces = tuple(_evidence(piece, functions, data) for piece in table["evidence"])
    return Claim(**{**table, "evidence": pieces})


def _evidence(
    table: Mapping[str, Any], functions: Mapping[str, FunctionType], data: Collection[str]
) -> Evidence:
    if "needs" in table:
        _check_fields("evidence with needs", table, NOT_CHECKABLE, required=NOT_CHECKABLE)
        return Evidence(**{**table, "kind": "", "check": None, "rule": read_rule(table["rule"])})
    _check_fields("evidence", table, CHECKED, required=("kind", "check", "rule", "why"))
    for name in table.get("data", ()):
        if name not in data:
            raise unknown_name("data set", name, data)
    fields: dict[str, Any] = {name: table[name] for name in table if name != "settings"}
    fields["check"] = _check(table["check"], table.get("settings", {}), functions)
    fields |= {name: tuple(table[name]) for name in ("data", "files") if name in table}
    fields |= {name: read_rule(table[name]) for name in ("rule", "question_rule") if name in table}
    return Evidence(**fields)


def _check(name: str, settings: Mapping[str, Any], functions: Mapping[str, FunctionType]) -> Check:
    """Return a check with its settings; lists become tuples."""
    if name not in functions:
        raise unknown_name("check", name, functions)
    _, _, *parameters = _parameters(functions[name]).values()
    allowed = [parameter.name for parameter in parameters]
    for setting in settings:
        if setting not in allowed:
            raise unknown_name(f"setting of {name}", setting, allowed)
    for parameter in parameters:
        if parameter.default is Parameter.empty and parameter.name not in settings:
            raise SettingError(
                f"{name} needs settings: write settings = {{ {parameter.name} = … }}"
            )
    if not settings:
        return functions[name]
    values = {
        setting: tuple(value) if isinstance(value, list) else value
        for setting, value in settings.items()
    }
    return partial(functions[name], **values)


def _check_fields(
    what: str, table: Mapping[str, Any], allowed: Mapping[str, str], required: Collection[str]
) -> None:
    for name, value in table.items():
        if name not in allowed:
            raise unknown_name(f"key of {what}", name, allowed)
        if not _is(value, allowed[name]):
            raise SettingError(f"{name} must be {allowed[name]} and not empty, got {value!r}")
    for name in required:
        if name not in table:
            raise SettingError(f"{what} needs {name}: add it")


def _is(value: object, sort: str) -> bool:
    if sort in (TEXTS, TABLES):
        item = str if sort == TEXTS else dict
        return isinstance(value, list) and bool(value) and all(isinstance(v, item) for v in value)
    return isinstance(value, str if sort == TEXT else dict) and bool(value)
