"""Statements as parts of a document: sentences and tables that lead to their rates."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import polars as pl

from unskew.auditing.page.captions import caption, title
from unskew.auditing.page.glossary import KIND_LABELS, heads
from unskew.auditing.statements.first_screen import KINDS, FirstScreen
from unskew.auditing.statements.statement import Statement
from unskew.engine.store import cached
from unskew.report.document import Block, Fold, Link, Words
from unskew.report.tables import Table
from unskew.report.text import interval

FORMAT = 1
FILE = Path(__file__).parents[1] / "rates.json"
NOT_MEASURED = "rate not measured for this version"
PACKAGE = Path(__file__).parents[2]

RULES = (
    "auditing/cold_users.py",
    "auditing/core/core.py",
    "auditing/core/tasks.py",
    "auditing/designs.py",
    "auditing/statements/evidence.py",
    "auditing/statements/setups.py",
    "auditing/statements/statement.py",
    "auditing/statements/first_screen.py",
    "auditing/statements/score_statements.py",
    "auditing/statements/reason_statements.py",
    "auditing/statements/truth_statements.py",
    "auditing/statements/procedure_statements.py",
    "bias/decomposition/kernels.py",
    "bias/popularity/liked_by_popularity.py",
    "bias/decomposition/rasch.py",
    "bias/decomposition/ladder_part.py",
    "bias/decomposition/ladder.py",
    "experiment/halving.py",
    "stats/influence.py",
    "stats/compare/contrasts.py",
    "unbiased/liked_shares.py",
    "unbiased/listed_pairs.py",
    "unbiased/random_slice.py",
    "unbiased/user_sums.py",
    "stats/clusters.py",
    "stats/simultaneous.py",
    "stats/intervals/means.py",
    "stats/intervals/shares.py",
)
"""The code that decides what is said: a change of any of it makes the rates stale."""
COLUMNS = (
    *("kind", "how often wrong", "over kinds of worlds", "worst kind of world", "fails when"),
    *("where it fails", "claimed", "printed when"),
)


@dataclass(frozen=True, kw_only=True)
class WorldRate:
    """How often statements of a kind are false in one kind of worlds."""

    world: str
    worlds: int
    """Worlds in which it was said."""
    sayings: int
    rate: float
    """The mean over worlds of the share of its sayings that are false."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often statements of a kind are false over many kinds of worlds."""

    kind: str
    worlds: int
    """Worlds in which it was said, conditions kept."""
    sayings: int
    rate: float
    """The mean over these worlds of the share of its sayings that are false; kinds of worlds count
    alike."""
    low: float
    high: float
    """95 % interval over worlds."""
    upper: float
    """One-sided 95 % end."""
    by_world: tuple[WorldRate, ...] = ()
    """By kind of worlds, the worst first."""
    broken: tuple[WorldRate, ...] = ()
    """The same in worlds in which a condition of the statement does not hold."""

    @property
    def worst(self) -> WorldRate | None:
        """The kind of worlds in which it is false most often."""
        return self.by_world[0] if self.by_world else None

    def worst_of(self, sayings: int) -> WorldRate | None:
        """Return the worst kind of worlds with at least so many sayings; None without any."""
        return next((world for world in self.by_world if world.sayings >= sayings), None)


@dataclass(frozen=True, kw_only=True)
class RecognisedRate:
    """How often a truly better system is named as such in one kind of worlds."""

    world: str
    visible: bool
    """Whether it was stated beforehand that it should be seen in this kind of worlds."""
    worlds: int
    """Worlds in which a system is truly better by more than a tenth, and ahead."""
    named: float
    """The mean over these worlds of the share of such pairs that are named: from judgments."""
    by_slice: float
    """The same from a slice of randomly shown items."""


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What first screens said of the best systems of the worlds, and what is true."""

    worlds: int
    settled: int
    """Worlds in which a tier was called the best by score and liking."""
    wrong: int
    """Of these, where every system of the tier truly is worse by a tenth than another one."""
    clear: int
    """Worlds whose truly best systems are ahead of all others by a tenth, in truth and in score."""
    named: int
    """Of these, where the leading tier holds such systems and no other one."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What `make reliability` measured."""

    fingerprint: str
    worlds: int
    world_kinds: tuple[str, ...]
    rates: Mapping[str, Rate] = field(default_factory=dict)
    recognised: tuple[RecognisedRate, ...] = ()
    answers: Answers | None = None

    @property
    def is_current(self) -> bool:
        """Whether the code that makes statements is the one that was measured."""
        return self.fingerprint == code_fingerprint()

    def get(self, kind: str) -> Rate | None:
        """Return the rate of a kind; None where it was never said, or the code has changed."""
        return self.rates.get(kind) if self.is_current else None

    def to_dict(self) -> dict[str, object]:
        """Return plain values, for the result file."""
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "worlds": self.worlds,
            "world_kinds": list(self.world_kinds),
            "rates": [asdict(rate) for rate in self.rates.values()],
            "recognised": [asdict(rate) for rate in self.recognised],
            "answers": None if self.answers is None else asdict(self.answers),
        }


def rates(file: Path = FILE) -> Rates | None:
    """Return the rates of the result file; None where there is none."""
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    if content.get("format") != FORMAT:
        return None
    return Rates(
        fingerprint=content["fingerprint"],
        worlds=content["worlds"],
        world_kinds=tuple(content["world_kinds"]),
        rates={entry["kind"]: _rate(entry) for entry in content["rates"]},
        recognised=tuple(RecognisedRate(**entry) for entry in content.get("recognised", ())),
        answers=Answers(**content["answers"]) if content.get("answers") else None,
    )


def _rate(plain: Mapping[str, object]) -> Rate:
    values = dict(plain)
    for name in ("by_world", "broken"):
        values[name] = tuple(WorldRate(**value) for value in values[name])  # type: ignore[attr-defined]
    return Rate(**values)  # type: ignore[arg-type]


# The code that rates belong to


@cache
def code_fingerprint(files: Sequence[str] = RULES) -> str:
    """Return a digest of the code that decides what is said.

    Left out of it are comments, layout, docstrings and the texts of sentences: a sentence may be
    worded better without a new count. So are imports, and in which file and order functions stand:
    they may move.
    """
    sources = [(PACKAGE / name).read_text(encoding="utf-8") for name in files]
    key = {"sources": sources, "method": "statements"}
    return cached("rules", key, lambda: _fingerprint(sources))


def _fingerprint(sources: Iterable[str]) -> str:
    statements = [
        _described(statement)
        for source in sources
        for statement in _Rules().visit(ast.parse(source)).body
    ]
    return hashlib.sha256("\n".join(sorted(statements)).encode()).hexdigest()[:16]


def _described(node: object) -> str:
    """Return code as text that is the same for every version of Python.

    What `ast.dump` gives is not: versions differ in fields that are empty.
    """
    if isinstance(node, list):
        return f"[{', '.join(map(_described, node))}]"
    if isinstance(node, ast.Constant):
        return f"Constant({node.value!r})"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = ", ".join(
        f"{name}={_described(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != []
    )
    return f"{type(node).__name__}({fields})"


class _Rules(ast.NodeTransformer):
    """Leave of code what decides: no imports, docstrings, and texts that values are set into."""

    def visit_Import(self, node: ast.Import) -> None:
        """Leave out an import."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Leave out an import."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Leave out what is imported for types alone."""
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Leave out docstrings."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Empty the text."""
        return ast.copy_location(ast.Constant(""), node)


# In a report


def anchor_of(kind: str) -> str:
    """Return the name of the row that holds the rate of a kind."""
    return f"rate-{kind}"


def rate_of_kind(kind: str, rates: Rates | None) -> Rate | None:
    """Return the rate of a kind; None where a world cannot refute it, or it was not measured."""
    return None if rates is None or KINDS[kind].is_true is None else rates.get(kind)


def rate_values(kind: str, rates: Rates | None) -> dict[str, object] | None:
    """Return the rate of a kind as plain values, for JSON; None where it was not measured."""
    rate = rate_of_kind(kind, rates)
    if rate is None:
        return None
    return {
        "worlds": rate.worlds,
        "rate": rate.rate,
        "interval": [rate.low, rate.high],
        "by_kind_of_world": {world.world: world.rate for world in rate.by_world},
        "where_it_fails": {world.world: world.rate for world in rate.broken},
        "text": rate_sentence(kind, rates),
    }


def rate_sentence(kind: str, rates: Rates | None) -> str:
    """Say how often sentences of a kind are wrong: over simulated worlds, never of this report."""
    if KINDS[kind].is_true is None:
        return caption("rate none")
    rate = rate_of_kind(kind, rates)
    if rate is None:
        return caption("rate missing")
    values = {
        "rate": percent(rate.rate),
        "worlds": f"{rate.worlds:,}",
        "interval": interval(100 * rate.low, 100 * rate.high, 0),
    }
    conditions = conditions_of(kind)
    if not conditions:
        return caption("rate", **values)
    return caption("rate fails", conditions=" or ".join(conditions), **values)


def conditions_of(kind: str) -> list[str]:
    """Return when sentences of a kind fail: a condition of theirs that does not hold."""
    return [assumption.replace("-", " ") for assumption in KINDS[kind].assumptions]


def percent(share: float) -> str:
    """Return a share in percent; a small one with a decimal."""
    return f"{100 * share:.1f} %" if 0 < share < 0.01 else f"{100 * share:.0f} %"


def rate_table(statements: Sequence[Statement], rates: Rates | None) -> pl.DataFrame:
    """Return a row per kind among the statements, in the order of the catalogue."""
    present = {statement.kind for statement in statements}
    rows = [_row(kind, rates) for kind in KINDS if kind in present]
    table = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    return table.select(column for column in COLUMNS if table[column].null_count() < table.height)


def _row(kind: str, rates: Rates | None) -> tuple[str | None, ...]:
    rate = rate_of_kind(kind, rates)
    spread = worst = failing = None
    if rate is not None and rate.by_world:
        shares = [world.rate for world in rate.by_world]
        spread = caption("range", low=percent(min(shares)), high=percent(max(shares)))
        worst = rate.by_world[0].world if shares[0] > 0 else None
    if rate is not None and rate.broken:
        failing = caption("failing", world=rate.broken[0].world, rate=percent(rate.broken[0].rate))
    return (
        kind,
        rate_sentence(kind, rates),
        spread,
        worst,
        " or ".join(conditions_of(kind)) or None,
        failing,
        KINDS[kind].claims,
        KINDS[kind].rule,
    )


TONES = {"finding": "answer", "next": "good"}
"""How sentences of the first screen are set off."""
TWO_SYSTEMS = ("finding", "pair", "reason", "next")


def sentence(statement: Statement, tone: str = "plain") -> Words:
    """Return a statement as a paragraph with a link to how often its kind is wrong."""
    return Words(statement.text, tone, link=Link(title("rate link"), anchor_of(statement.kind)))


def of_kinds(statements: Iterable[Statement], *kinds: str) -> list[Statement]:
    """Return the statements of some kinds, in the order of the kinds."""
    sequence = list(statements)
    return [statement for kind in kinds for statement in sequence if statement.kind == kind]


def facts(statements: Iterable[Statement], *kinds: str) -> list[Block]:
    """Return what was done and counted: nothing that could be wrong in a world."""
    texts = tuple(statement.text for statement in of_kinds(statements, *kinds))
    return [Words("", points=texts)] if len(texts) > 1 else [Words(text) for text in texts]


def lead(screen: FirstScreen, verdict: str) -> tuple[Words, ...]:
    """Return what comes first: the verdict in words, and the sentences of the first screen."""
    return (
        Words(verdict, "verdict"),
        *(
            sentence(statement, TONES.get(statement.role, "plain"))
            for statement in screen.sentences
        ),
    )


def pair_blocks(statements: Sequence[Statement], pair: Sequence[str], limit: int) -> list[Block]:
    """Return the statements about the two systems of the finding; those about others folded."""
    pairwise = [statement for statement in statements if statement.role in TWO_SYSTEMS]
    first = [statement for statement in pairwise if set(statement.subjects) == set(pair)]
    content: list[Block] = []
    if first:
        a, b = pair
        content.append(statement_table(title("pair", a=a, b=b), first[:limit]))
    if len(pairwise) > len(first):
        note = ""
        if len(pairwise) > limit:
            note = caption("rows cut", shown=limit, count=f"{len(pairwise):,}")
        table = statement_table(title("pairs"), pairwise[:limit], note)
        content.append(Fold(title("all pairs", count=f"{len(pairwise):,}"), (table,)))
    return content


def statement_table(name: str, statements: Sequence[Statement], note: str = "") -> Table:
    """Return statements as a table, whose kinds lead to their rates."""
    rows = [(KIND_LABELS[statement.kind], statement.text) for statement in statements]
    names = heads(("kind", "statement")).values()
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    links = {(row, 0): anchor_of(statement.kind) for row, statement in enumerate(statements)}
    return Table(name, frame, note=note, links=links)


def rates_block(statements: Sequence[Statement], rates: Rates | None) -> Table:
    """Return how often sentences of each kind of this report are wrong; a row for every link."""
    frame = rate_table(statements, rates)
    anchors = tuple(anchor_of(kind) for kind in frame["kind"])
    table = frame.with_columns(pl.col("kind").replace_strict(KIND_LABELS)).rename(
        heads(frame.columns)
    )
    return Table(title("rates"), table, note=caption("rates note"), anchors=anchors)
