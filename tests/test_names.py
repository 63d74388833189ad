"""Names in src: the field's words, no riddles; and modules and functions of a size one can read."""

import ast

from shared.public import public_names
from shared.source import body_lines, layer, modules, trees

RIDDLES = {"found", "told", "made", "said", "own", "how"}
"""Words that name nothing: say `result`, `progress`, `settings`, `is_user_data` …"""
CUPBOARDS = {"utils", "helpers", "manager", "base"}
"""Modules of this name hold what nobody found a place for."""
LONGEST_MODULE = 600
"""In lines."""
LONGEST_BODY = 60
"""In lines, without signature and docstring."""
# Functions that may be longer, and why.
LONG = {
    "recommend.kernels.topics.relevance_model_2": "one kernel: a pass over the neighbours",
    "stats.kernels.add_lists": "one kernel: all metrics in one pass over a list",
}


def given_names(tree):
    """Return the names of parameters, fields and attributes in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign):
                    targets = [statement.target]
                else:
                    targets = statement.targets if isinstance(statement, ast.Assign) else []
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def riddles(names):
    return [name for name in names if RIDDLES & set(name.lower().split("_"))]


def test_parameters_fields_and_modules_say_what_they_are():
    wrong = {}
    for module, tree in trees().items():
        for name in riddles([*module.split(".")[1:], *given_names(tree)]):
            wrong.setdefault(layer(module), []).append(f"{module}: {name}")
    assert wrong == {}


def test_riddles_are_seen():
    source = """
class Answer:
    told: int
    own = 1
    known: str
    def __init__(self, how_many, *, made_for=None, **found):
        self.said = lambda own: own
"""
    names = ["told", "own", "how_many", "made_for", "found", "said", "own"]
    assert sorted(riddles(given_names(ast.parse(source)))) == sorted(names)


def test_no_module_is_a_cupboard():
    stems = {word for name in modules() for word in name.split(".")[-1].split("_")}
    assert not stems & CUPBOARDS


def test_modules_are_short():
    long = {
        name: lines
        for name, path in modules().items()
        if (lines := len(path.read_text().splitlines())) > LONGEST_MODULE
    }
    assert long == {}


def test_functions_are_short():
    long = {
        f"{module.removeprefix('unskew.')}.{node.name}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and body_lines(node) > LONGEST_BODY
    }
    assert long <= set(LONG), "split these, or say in LONG why not"
    assert set(LONG) <= long, "these are short now: remove them from LONG"
    assert len(LONG) <= 12


def test_few_names_stand_on_top():
    assert sum("." not in name for name in public_names()) <= 36
