"""Sentences that people read: plain technical English; wordings that were riddles do not return."""

import ast
import re

import pytest

from shared.source import modules, trees
from unskew.auditing.page import captions, glossary
from unskew.auditing.page.statement_blocks import RULES
from unskew.auditing.statements import statement

NOUNS = (
    "users items lists ratings pairs rows judgments systems metrics designs splits files repeats "
    "ids scores ranks gaps weights propensities tasks plays reviews"
).replace(" ", "|")

WORDINGS = [
    ("'stands' for 'is' or 'occurs'", r"\bstands? (twice|apart|alone|beside|more than|above)\b"),
    ("a participle as a noun", r"\bwhat (is|was|were) (said|told|found|made|finished)\b"),
    ("a missing subject: who did not state it?", r"\bis (not said|told)\b|\bof which nobody\b"),
    ("'nobody said': say that it is missing", r"\bnobody said\b"),
    ("'all {n} others': 'both' of two, 'the other' of one", r"\ball (\{\}|2) others?\b"),
    ("'anew': again, or a verb with re-", r"\banew\b"),
    ("'for want of': say what is missing", r"\bfor want of\b"),
    ("'is no X': is not an X", r"\bis no (store|card|record|sum|part|algorithm|function)\b"),
    ("'between commas': separated by commas", r"\bbetween commas\b"),
    ("'the ending is the format': selects", r"\bending is the format\b"),
    ("'goes on': continues", r"\b(that|which) (was )?stopped goes on\b"),
    ("'say X' for an option: give, use or choose", r"[:;,] (or )?say (-|which|what|how|from|wh)"),
    (
        "a count that may be 1: use report.text.counted",
        r"(?<!of )(?<!the )(?<!than )(?<!most )(?<!least )(?<!all )\{\} "
        rf"(\w+ )?({NOUNS})( \w+){{0,3}} (are|have|do|were|hold|lack|occur|repeat|stand)\b",
    ),
    ("one of several", rf"\b1 ({NOUNS})\b"),
]
"""The rule, and the pattern of texts that break it; {} is what an f-string inserts."""


def text_of(node):
    """Return the text of a string, with {} for what an f-string inserts."""
    if isinstance(node, ast.Constant):
        return node.value
    # `counted` writes a count with its noun, `counts` is a text such as '3 of 10'.
    return "".join(
        one.value
        if isinstance(one, ast.Constant)
        else "{counted}"
        if ast.unparse(one.value).startswith("count")
        else "{}"
        for one in node.values
    )


def sentences(tree, *, constants=True):
    """Yield line and text of the strings of a module: texts of messages, not docstrings."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if isinstance(node, ast.JoinedStr) or (is_text and constants):
            text = " ".join(text_of(node).split())
            if " " in text:
                yield node.lineno, text
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            waiting.extend(ast.iter_child_nodes(node))


def help_texts(tree):
    """Yield line and text of the docstrings that are the help of a command."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            yield node.lineno, " ".join((ast.get_docstring(node) or "").split())


def broken(texts):
    """Return what breaks a rule, with the rule."""
    return [
        f"{where}: {rule}: {text}"
        for where, text in texts
        for rule, pattern in WORDINGS
        if re.search(pattern, text)
    ]


def texts_of_file(content):
    """Yield the texts of a table of texts, however deep."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from texts_of_file(part)


def texts_of_source():
    """Yield place and text of all sentences."""
    for module in (captions, glossary, statement):
        for text in texts_of_file(module.TEXTS):
            yield f"{module.__name__} (its file)", text
    rules = {f"unskew.{name.removesuffix('.py').replace('/', '.')}" for name in RULES}
    for name, tree in trees().items():
        # The constants of rules are part of the fingerprint that the measured rates carry.
        for line, text in sentences(tree, constants=name not in rules):
            yield f"{name}:{line}", text
        if name.startswith(("unskew.cli.", "unskew_studies.command_")):
            for line, text in help_texts(tree):
                yield f"{name}:{line}", text


def test_sentences_are_plain():
    assert broken(texts_of_source()) == []


def test_every_module_is_read():
    read = {place.split(":")[0] for place, _ in texts_of_source()}
    assert len(read) > len(modules()) / 2


@pytest.mark.parametrize(
    "text",
    [
        'f"{count:,} items stand twice in one list"',
        '"what is finished is kept"',
        '"how users were counted is not said"',
        'f"a leads all {n} others"',
        '"systems are trained anew"',
        '"a worker was killed, perhaps for want of memory"',
        '"this is no store"',
        '"names, between commas"',
        '"the ending is the format"',
        '"several fit; say which with k=3"',
        'f"{n:,} users have no list"',
        'f"{n:,} users with tests have no list"',
        'f"{lost} recommended items are unknown"',
        '"1 users"',
        '"ratings of which nobody knows what is liked"',
        '"nobody said what is liked"',
        '"a run that was stopped goes on"',
    ],
)
def test_riddles_are_seen(text):
    assert broken(sentences(ast.parse(f"raise ValueError({text})")))


@pytest.mark.parametrize(
    "text",
    [
        "f\"{counted(n, 'user has', 'users have')} no list\"",
        'f"{n:,} of {total:,} users have no list"',
        'f"{name}: lists must be numbered"',
        '"there is no such file"',
        '"an item that stands out"',
    ],
)
def test_plain_sentences_pass(text):
    assert broken(sentences(ast.parse(f"raise ValueError({text})"))) == []
