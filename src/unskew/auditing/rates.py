"""How often statements of each kind are false, as the self-test measured it for this code.

The rates are read from the self-test's result file, which carries the fingerprint of the code that
makes statements. Where the code has changed since, the rates are not those of this version.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

from unskew.engine.cached_text import cached

FORMAT = 1
FILE = Path(__file__).with_name("rates.json")
NOT_MEASURED = "rate not measured for this version"
PACKAGE = Path(__file__).parents[2]

RULES = (
    "auditing/cold_users.py",
    "auditing/core.py",
    "auditing/core_tasks.py",
    "auditing/design_checks.py",
    "auditing/evidence.py",
    "auditing/statement.py",
    "auditing/statements.py",
    "auditing/thresholds.py",
    "auditing/score_statements.py",
    "auditing/reason_statements.py",
    "auditing/truth_statements.py",
    "auditing/procedure_statements.py",
    "bias/ladder_kernels.py",
    "bias/rasch.py",
    "bias/rungs.py",
    "bias/steps.py",
    "experiment/halving.py",
    "stats/contrast_errors.py",
    "stats/design_contrasts.py",
    "stats/user_influence.py",
    "unbiased/liking.py",
    "unbiased/listed_pairs.py",
    "unbiased/random_slice.py",
    "unbiased/rating_habits.py",
    "unbiased/user_clusters.py",
)
"""The code that decides what is said: a change of any of it makes the rates stale."""


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
        return next((one for one in self.by_world if one.sayings >= sayings), None)


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
class Rates:
    """What the self-test measured."""

    fingerprint: str
    worlds: int
    world_kinds: tuple[str, ...]
    rates: Mapping[str, Rate] = field(default_factory=dict)
    recognised: tuple[RecognisedRate, ...] = ()

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
            "rates": [asdict(one) for one in self.rates.values()],
            "recognised": [asdict(one) for one in self.recognised],
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
        rates={one["kind"]: _rate(one) for one in content["rates"]},
        recognised=tuple(RecognisedRate(**one) for one in content.get("recognised", ())),
    )


def _rate(plain: Mapping[str, object]) -> Rate:
    values = dict(plain)
    for name in ("by_world", "broken"):
        values[name] = tuple(WorldRate(**one) for one in values[name])  # type: ignore[attr-defined]
    return Rate(**values)  # type: ignore[arg-type]


@cache
def code_fingerprint(files: Sequence[str] = RULES) -> str:
    """Return a digest of the code that decides what is said.

    Comments, layout, docstrings and the texts of sentences are left out of it: a sentence may be
    worded better without a new count.
    """
    sources = [(PACKAGE / name).read_text(encoding="utf-8") for name in files]
    return cached("rules", {"sources": sources}, lambda: _fingerprint(sources))


def _fingerprint(sources: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for source in sources:
        digest.update(_described(_without_texts(ast.parse(source))).encode())
    return digest.hexdigest()[:16]


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


def _without_texts(tree: ast.Module) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                one
                for one in body
                if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return _WithoutSentences().visit(tree)  # type: ignore[no-any-return]


class _WithoutSentences(ast.NodeTransformer):
    """Empty the texts that numbers and names are set into."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.copy_location(ast.Constant(""), node)
