"""The glossary of a report: every term that it uses, in plain words."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unskew.errors import UnskewError
from unskew.metrics.names import REGISTRY, parse
from unskew.report.document import Block, Code, Document, Fold, Picture, Term, Words
from unskew.report.tables import Table

TEXTS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8")
)
"""All words, as the file holds them."""
TERMS = tuple(
    Term(term["word"], term["meaning"], tuple(term.get("forms", ()))) for term in TEXTS["terms"]
)
"""All terms; a report has those that it uses."""

_METRIC = re.compile(r"(?<![\w@-])((?:anti-|condensed-)*[A-Za-z]\w*(?:\([^()]*\))?@\d+)(?![\w@-])")


def glossary_of(document: Document) -> tuple[Term, ...]:
    """Return the terms that a document uses: designs, metrics and words of the field."""
    text = "\n".join(texts_of(document))
    used = [term for term in TERMS if _occurs(term, text)]
    return (*used, *_metrics([*_METRIC.findall(text), *_listed_metrics(document)]))


def _occurs(term: Term, text: str) -> bool:
    words = "|".join(map(re.escape, (term.word, *term.forms)))
    return re.search(rf"(?<![\w@-])(?:{words})(?![\w@-])", text, re.IGNORECASE) is not None


def _listed_metrics(document: Document) -> Iterator[str]:
    """Yield the metrics that tables name in a column."""
    for section in document.sections:
        for block in section.every_block():
            if isinstance(block, Table) and "metric" in block.frame.columns:
                yield from block.frame["metric"].to_list()


def _metrics(used: Iterable[str]) -> Iterator[Term]:
    """Yield a term for each family of metrics, with the cutoffs that are used."""
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(used):
        try:
            metric = parse(name)
        except UnskewError:
            continue
        family = f"{'anti-' if metric.anti else ''}{metric.name}"
        families.setdefault(family, []).append(name)
    for family, names in families.items():
        cutoffs = {parse(name).cutoff for name in names}
        k = "k" if len(cutoffs) > 1 or None in cutoffs else str(cutoffs.pop())
        yield Term(
            names[0] if len(names) == 1 else f"{family}@k", _meaning(family, k), tuple(names)
        )


def _meaning(family: str, k: str) -> str:
    """Return what a family of metrics measures, as the metric's definition says it."""
    about = REGISTRY[family.removeprefix("anti-")].summary.rstrip(".")
    if family not in REGISTRY:
        about = f"{about}, of disliked items instead of liked ones"
    return f"{about}. The list is cut after {k} items."


def texts_of(document: Document) -> Iterator[str]:
    """Yield every text that readers of a document meet, but for code."""
    yield from (document.title, *map(str, document.lead))
    if document.headline is not None:
        yield document.headline.verdict
        for fact in document.headline.facts:
            yield from (fact.value, fact.text)
        if document.headline.chart is not None:
            yield from _texts(document.headline.chart)
    for section in document.sections:
        yield from (section.title, section.shows, *section.guide)
        for block in section.blocks:
            yield from _texts(block)


def _texts(block: Block) -> Iterator[str]:
    if isinstance(block, Words):
        yield str(block)
    elif isinstance(block, Fold):
        yield block.title
        for part in block.blocks:
            yield from _texts(part)
    elif isinstance(block, Table):
        yield from (block.title, block.note, *block.header)
        for name in block.frame.columns:
            yield from (cell for cell in block.frame[name] if isinstance(cell, str))
    elif isinstance(block, Picture):
        heading = block.figure.spec.get("title", {})
        yield from (block.figure.title, block.note, *heading.get("subtitle", ()))
    elif isinstance(block, Code):
        yield block.title


COLUMNS: dict[str, str] = TEXTS["columns"]
"""By the name of a column in Python: its head in a report."""
OF_TABLES: dict[str, dict[str, str]] = TEXTS["of_tables"]
"""By table: the columns whose head is not that of `COLUMNS`."""
ROWS: dict[str, str] = TEXTS["rows"]
"""By the name of a fact in Python: its row in a report."""
PARTS: dict[str, str] = TEXTS["parts"]
"""Parts of a data set."""
SPLITS: dict[str, str] = TEXTS["splits"]
KIND_LABELS: dict[str, str] = TEXTS["kinds"]
"""By kind of statement: its name in a report."""


def heads(names: Sequence[str], key: str = "") -> dict[str, str]:
    """Return the head of each column of a table; unknown ones keep their name.

    Parameters
    ----------
    names
        Columns in Python.
    key
        The table, by its name among the titles.
    """
    words = {**COLUMNS, **OF_TABLES.get(key, {})}
    return {name: words.get(name, name) for name in names}
