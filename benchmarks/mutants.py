"""How many small faults do the fast tests notice? Seeded mutants, each against its room's tests.

A mutant is one expression of the package changed: a comparison turned, a boundary moved, a constant
off by one, a condition inverted. Rooms take turns. Each mutant is a copy of the package in a
temporary folder, put first on the path; the tests of its room run until one fails. Results are kept
in a file as they come, so that a stopped run goes on::

    python benchmarks/mutants.py                              # 100 mutants: hours on one processor
    python benchmarks/mutants.py --number 20 --minutes 15     # as many as fit
    python benchmarks/mutants.py --survivors --checkout ../0.1  # survivors against other tests
    python benchmarks/mutants.py --show                       # the report alone

The tests must be green before. Read each survivor: one that changes a number or a sentence lacks a
test; others are equivalent, or change what nobody promised.
"""

from __future__ import annotations

import argparse
import ast
import copy
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from unskew.stats.intervals.shares import wilson

ROOT = Path(__file__).parent.parent
SOURCES = {"unskew": ROOT / "src", "unskew_studies": ROOT / "studies" / "src"}
TURNED = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot,
    ast.IsNot: ast.Is, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
MOVED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
OTHER_SIGN = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OTHER_END = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
             "argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any"}  # fmt: skip


class Mutant(NamedTuple):
    """One expression of one file, changed."""

    room: str
    file: str
    """From the root of the repository."""
    kind: str
    start: int
    """Of the expression, in bytes of the file."""
    end: int
    new: str

    @property
    def package(self) -> str:
        """Which distribution it is in."""
        return "unskew_studies" if self.room == "studies" else "unskew"

    @property
    def key(self) -> str:
        """Name it in the file of results."""
        return f"{self.file}:{self.start}:{self.kind}:{self.new}"

    def text(self) -> str:
        """Return the whole file with the change."""
        old = (ROOT / self.file).read_bytes()
        return (old[: self.start] + self.new.encode() + old[self.end :]).decode()

    def diff(self) -> str:
        """Return the lines that differ."""
        old = (ROOT / self.file).read_text(encoding="utf-8").splitlines()
        lines = difflib.unified_diff(old, self.text().splitlines(), n=0, lineterm="")
        return "\n".join(["    " + line for line in lines][2:])


def changes(node: ast.AST, locals_: set[str]) -> Iterator[tuple[str, ast.AST, ast.expr]]:
    """Yield what can be changed at a node: the kind, what is replaced, by what."""
    match node:
        case ast.Compare(ops=[operator]):
            for kind, table in (("comparison turned", TURNED), ("boundary moved", MOVED)):
                if type(operator) in table:
                    yield kind, node, _with(node, ops=[table[type(operator)]()])
        case ast.BinOp(op=operator) if type(operator) in OTHER_SIGN:
            yield "sign", node, _with(node, op=OTHER_SIGN[type(operator)]())
        case ast.BoolOp(op=operator):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield "and for or", node, _with(node, op=other)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "not removed", node, operand
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare):
            yield "condition inverted", test, ast.UnaryOp(ast.Not(), test)
        case ast.IfExp(body=body, orelse=other):
            yield "branches swapped", node, _with(node, body=other, orelse=body)
        case ast.Constant(value=bool(value)):
            yield "constant", node, ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield "constant", node, ast.Constant(value + 1)
        case ast.Name(id=name, ctx=ast.Load()) if name in OTHER_END:
            yield "other end", node, ast.Name(OTHER_END[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OTHER_END:
            yield "other end", node, _with(node, attr=OTHER_END[name])
        case ast.Return(value=ast.Name(id=name) as value):
            others = sorted(locals_ - {name, "self", "cls", "_"})
            for other in others[len(others) // 2 :][:1]:
                yield "other variable", value, ast.Name(other)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def mutants_of(file: Path, room: str) -> Iterator[Mutant]:
    """Yield every mutant of a file; texts, annotations and what is raised stay."""
    content = file.read_bytes()
    starts = [0]
    for line in content.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def walk(node: ast.AST, locals_: set[str]) -> Iterator[Mutant]:
        is_strict = isinstance(node, ast.keyword) and node.arg == "strict"
        if is_strict or isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            return  # Python 3.11 does not know where parts of an f-string stand
        if isinstance(node, ast.FunctionDef):
            names = (one for one in ast.walk(node) if isinstance(one, ast.Name | ast.arg))
            locals_ = {
                one.arg if isinstance(one, ast.arg) else one.id
                for one in names
                if isinstance(one, ast.arg) or isinstance(one.ctx, ast.Store)
            }
        for kind, old, new in changes(node, locals_):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[old.end_lineno - 1] + old.end_col_offset
            name = file.relative_to(ROOT).as_posix()
            yield Mutant(room, name, kind, start, end, f"({ast.unparse(new)})")
        for field, value in ast.iter_fields(node):
            if field not in ("annotation", "returns", "decorator_list"):
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST):
                        yield from walk(child, locals_)

    yield from walk(ast.parse(content), set())


def sample(number: int, seed: int) -> list[Mutant]:
    """Draw mutants: rooms take turns, files of a room count by what can be changed in them."""
    draw = random.Random(seed)
    rooms: dict[str, list[Mutant]] = {}
    for package, source in SOURCES.items():
        for file in sorted((source / package).rglob("*.py")):
            inside = file.relative_to(source / package).parts
            room = inside[0] if package == "unskew" and len(inside) > 1 else ""
            room = "studies" if package == "unskew_studies" else room
            rooms.setdefault(room, []).extend(mutants_of(file, room))
    names = sorted(name for name, mutants in rooms.items() if mutants)
    draw.shuffle(names)
    drawn: dict[Mutant, None] = {}  # each once
    for name in cycle(names):
        if len(drawn) == number:
            break
        drawn.setdefault(draw.choice(rooms[name]))
    return [*drawn]


def run(mutant: Mutant, checkout: Path, limit: float) -> dict[str, object]:
    """Run the fast tests of the room against the mutant; those that name its module come first."""
    folder = checkout / "tests" / mutant.room
    is_room = mutant.room and folder.is_dir()
    files = sorted(folder.rglob("test_*.py") if is_room else checkout.glob("tests/test_*.py"))
    stem = Path(mutant.file).stem.strip("_")
    files.sort(key=lambda file: stem not in file.read_text(encoding="utf-8"))
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as home:
        for package, source in SOURCES.items():
            shutil.copytree(source / package, Path(home) / package)
        name = (ROOT / mutant.file).relative_to(SOURCES[mutant.package])
        (Path(home) / name).write_text(mutant.text(), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "--tb=line",
        ]
        path = os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])
        try:
            done = subprocess.run(
                [*command, *map(str, files)], cwd=checkout, capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": path}, timeout=limit, check=False,
            )  # fmt: skip
            failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
            by = failed[0] if failed else f"exit code {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            by = f"no end after {limit:.0f} s"
    return {"by": by, "seconds": round(time.monotonic() - began)}


def report(mutants: list[Mutant], results: dict[str, dict[str, object]], key: str) -> str:
    """Say which were noticed, by what, and show what survived."""
    lines = []
    done = [(one, results[one.key][key]) for one in mutants if key in results.get(one.key, {})]
    for mutant, result in sorted(done, key=lambda pair: pair[1]["by"] != ""):
        by = f"noticed by {result['by']}" if result["by"] else f"survived\n{mutant.diff()}"
        lines.append(f"{mutant.file}: {mutant.kind} ({result['seconds']} s): {by}")
    noticed = sum(result["by"] != "" for _, result in done)
    if done:
        low, high = (float(end) for end in wilson(noticed, len(done)))
        share = f"{noticed / len(done):.0%} (95% interval {low:.0%} to {high:.0%})"
        lines.append(f"{noticed} of {len(done)} mutants noticed: {share}")
    return "\n".join(lines)


def main() -> None:
    """Run what is not in the file of results yet, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=100, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after them")
    parser.add_argument("--limit", type=float, default=900, help="seconds for the tests of a room")
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "mutants.json")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="whose tests to run")
    parser.add_argument("--survivors", action="store_true", help="run those alone that survived")
    parser.add_argument("--show", action="store_true", help="run nothing")
    asked = parser.parse_args()
    results = json.loads(asked.store.read_text()) if asked.store.exists() else {}
    mutants, key = sample(asked.number, asked.seed), "ours"
    if asked.survivors:
        mutants = [one for one in mutants if results.get(one.key, {}).get(key, {}).get("by") == ""]
        key = str(asked.checkout.resolve())
    end = time.monotonic() + 60 * asked.minutes
    for mutant in mutants:
        if asked.show or time.monotonic() > end or key in results.get(mutant.key, {}):
            continue
        results.setdefault(mutant.key, {})[key] = run(mutant, asked.checkout.resolve(), asked.limit)
        asked.store.parent.mkdir(parents=True, exist_ok=True)
        asked.store.write_text(json.dumps(results, indent=1))
        print(f"{mutant.room or 'top'}: {results[mutant.key][key]}", flush=True)
    print(report(mutants, results, key))


if __name__ == "__main__":
    main()
