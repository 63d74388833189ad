"""Options: each has one text and one default, in every command that has it."""

import ast
import dataclasses
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import unskew as us
from shared.commands import COMMANDS
from unskew.auditing.null.null_experiment import null_experiment
from unskew.auditing.truth.truth import truth
from unskew.cli import options, parameters
from unskew.cli.command import FILES
from unskew.cli.parameters import (
    FLAGS,
    LIMITS,
    METAVARS,
    REQUIRED,
    Option,
    Options,
    OptionsOf,
    argument,
    bundle,
    given_options,
    read_docstring,
    settings_of,
    with_options,
)
from unskew.worlds.save_world import save_world

OTHER_MEANING = {
    "--repeats": {"bias null", "split"},
    "--ages": {"timeline"},
    "--against": {"groups"},
    "--algorithm": {"recommend"},
    "--alpha": {"gate", "intervene"},
    "--by": {"bias lists", "compare", "gate", "groups", "split", "strata"},
    "-k": {"bias pairs"},
    "--cluster": {"evaluate"},
    "--correction": {"groups"},
    "--depth": {"recommend"},
    "--design": {"annotate extend"},
    "--designs": {"bias null"},
    "--epsilon": {"groups"},
    "--exponent": {"intervene"},
    "--folds": {"split"},
    "--head": {"split"},
    "--interval": {"estimate"},
    "--labels": {"estimate"},
    "--items": {"world", "bias truth"},
    "--length": {"timeline"},
    "--margin": {"gate"},
    "--memory": {"audit"},
    "--metric": {"audit", "gate", "ranking"},
    "--of": {"strata"},
    "--overlap": {"split"},
    "--paper": {"compare"},
    "--per-user": {"split"},
    "--permutations": {"ranking"},
    "--quick": {"audit"},
    "--random": {"world"},
    "--resamples": {"ranking"},
    "--run": {"bias pairs"},
    "--save": {"demo"},
    "--share": {"bias null"},
    "--smallest": {"audit"},
    "--smoothing": {"intervene"},
    "--step": {"timeline"},
    "--store": {"plan check"},
    "--strata": {"annotate plan", "estimate"},
    "--targets": {"recommend", "bias truth"},
    "--test": {"power", "ranking", "recommend", "split", "bias truth", "timeline"},
    "--ties": {"recommend", "split"},
    "--train": {"recommend"},
    "--train-length": {"timeline"},
    "--users": {
        "audit",
        "bias describe",
        "bias pairs",
        "bias truth",
        "estimate",
        "recommend",
        "world",
    },
    # What is written: a table, a report, a folder, ranked lists.
    "--output": {
        *("audit", "demo", "study run", "timeline"),
        *("intervene", "split", "world"),
        *("annotate plan", "annotate extend"),
        "recommend",
        "gate",
        "data filter",
    },
    "--format": {
        "gate",
        *("audit", "study run", "timeline", "world"),
        *("bias describe", "bias null", "bias pairs", "bias truth", "data info"),
        "annotate status",
        *("algorithms", "data get", "metrics", "plan check", "schema", "split", "warmup"),
        *("store gc", "store ls", "store verify"),
    },
}
"""Commands in which an option means something else, or takes other values, than in the rest."""
OTHER_DEFAULT = {
    ("--digits", "robustness"): 3,
    ("--seed", "demo"): 7,
    ("--users", "bias null"): "all",
    **{
        (name, command): REQUIRED
        for name in ("--judgments", "--run")
        for command in ("bias lists", "evaluate", "explain")
    },
    ("--train", "bias lists"): REQUIRED,
    ("--run", "annotate plan"): REQUIRED,
    ("--run", "estimate"): REQUIRED,
}
"""Commands in which an option has another default than in the rest."""


def options_of(command):
    """Return the options of a command under their long names."""
    return {
        max(one.opts, key=len): one
        for one in COMMANDS[command].params
        if one.param_type_name == "option" and "--help" not in one.opts
    }


def default_of(one):
    return REQUIRED if one.required else one.default


MAIN_FILES = [
    f"doors.{name}"
    for name in ("audit", "compare", "evaluate", "explain", "gate", "recommend", "split")
]
NAMES = sorted({name for command in COMMANDS for name in options_of(command)})


@pytest.mark.parametrize("name", NAMES)
def test_one_text_and_one_default(name):
    rest = {
        command: options_of(command)[name]
        for command in COMMANDS
        if name in options_of(command) and command not in OTHER_MEANING.get(name, ())
    }
    assert len({one.help for one in rest.values()}) == 1
    defaults = {
        command: default_of(one)
        for command, one in rest.items()
        if (name, command) not in OTHER_DEFAULT
    }
    assert len({repr(default) for default in defaults.values()}) == 1, defaults


def test_exceptions_are_exceptions():
    for name, commands in OTHER_MEANING.items():
        assert all(name in options_of(command) for command in commands), name
        assert any(
            name in options_of(command) for command in COMMANDS if command not in commands
        ), name
    for (name, command), default in OTHER_DEFAULT.items():
        assert default_of(options_of(command)[name]) == default


FUNCTIONS = {
    "evaluate": us.evaluate,
    "compare": us.compare,
    "groups": us.stats.group_gaps,
    "distribution": us.stats.user_distribution,
    "ranking": us.stats.compare_data_sets,
    "estimate": us.estimate,
    "power": us.stats.power,
    "robustness": us.stats.robustness,
    "strata": us.unbiased.strata,
    "bias describe": us.bias.describe_bias,
    "bias pairs": us.bias.item_pairs,
    "bias null": null_experiment,
    "bias truth": truth,
    "run": us.run_plan,
    "world": save_world,
    "audit": us.audit,
    "study run": us.study,
}


@pytest.mark.parametrize("command", FUNCTIONS)
def test_defaults_are_those_of_the_function(command):
    """Where one of them is None, the other says what that means."""
    parameters = inspect.signature(FUNCTIONS[command]).parameters
    shared = {
        one.name: default_of(one)
        for one in options_of(command).values()
        if one.name in parameters and one.name not in ("liked", "format", "relevance", "to")
    }
    assert shared
    for name, default in shared.items():
        theirs = parameters[name].default
        if None not in (default, theirs) and theirs is not inspect.Parameter.empty:
            assert default == theirs, name


@pytest.mark.parametrize("command", COMMANDS)
def test_panels_have_stable_names_and_a_stable_order(command):
    shown = [one.rich_help_panel for one in options_of(command).values()]
    shared = ["Input", "Event logs and daily lists", "What is measured", "Users and ties",
              "How it runs", "Output"]  # fmt: skip
    places = [shared.index(panel) for panel in dict.fromkeys(shown) if panel in shared]
    assert places == sorted(places)
    own = {panel for panel in shown if panel not in (*shared, "Test", "Intervals")}
    assert len(own) <= 5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_text_and_a_panel(command):
    for one in COMMANDS[command].params:
        assert one.help, one.name
        assert one.param_type_name == "argument" or one.rich_help_panel, one.name
        assert "`" not in one.help.replace("`unskew ", "").replace("` lists", ""), one.help


def names_of(owner):
    """Return the parameters of a command, or the fields of a bundle."""
    return set(inspect.signature(owner).parameters)


def owners():
    """Give the functions and bundles that declare options."""
    files = sorted({f"unskew.cli.{name}" for name in (*FILES.values(), *MAIN_FILES)})
    for name in (*files, "unskew.cli.options"):
        for owner in vars(import_module(name)).values():
            if getattr(owner, "__module__", "") == name and (
                (isinstance(owner, type) and dataclasses.is_dataclass(owner))
                or getattr(owner, "__name__", "").endswith("_command")
            ):
                yield owner


def test_texts_are_of_options_that_there_are():
    """A text whose option was renamed or removed would stand in a docstring for ever."""
    found = list(owners())
    assert len(found) > 60
    for owner in found:
        assert set(read_docstring(owner.__doc__ or "")[1]) <= names_of(owner), owner
    everywhere = {name for owner in found for name in names_of(owner)}
    assert set(read_docstring(options.__doc__)[1]) <= everywhere
    options_of_all = {one.name for command in COMMANDS.values() for one in command.params}
    assert {*FLAGS, *LIMITS, *METAVARS} <= options_of_all


def test_tables_of_refused_options_name_options_that_there_are():
    tables = [
        ast.literal_eval(call.args[1]).split()
        for file in Path(parameters.__file__).parent.rglob("*.py")
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "refuse"
    ]
    assert len(tables) > 5
    for name in {name for table in tables for name in table}:
        assert name.replace("--no-", "--") in NAMES


# The mechanism


@bundle
class Inner:
    """Numbers.

    Numbers
    -------
    number
        A number.

    Names
    -----
    name
        A name.
    """

    number: Annotated[int, Option(names=("--number", "-n"))] = 3
    name: str | None = None


@bundle
class Outer:
    """A bundle in a bundle.

    Names
    -----
    flag
        A flag.
    """

    inner: Inner
    flag: bool = False


@bundle
class OtherDefault(Inner):
    """The same, with another default."""

    number: Annotated[int, Option(names=("--number", "-n"))] = 5


def run(function, *arguments):
    app = typer.Typer()
    app.command()(with_options(function))
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_bundles_hold_what_was_given():
    calls = []

    def command(*, file: Annotated[Path, argument()], outer: Outer) -> None:
        """Do it.

        Arguments
        ---------
        file
            A file.
        """
        calls.append((file, outer))

    assert run(command, "a.csv", "-n", 4, "--flag").exit_code == 0
    assert run(command, "a.csv").exit_code == 0
    assert calls == [
        (Path("a.csv"), Outer(inner=Inner(number=4, name=None), flag=True)),
        (Path("a.csv"), Outer(inner=Inner(number=3, name=None), flag=False)),
    ]
    text = run(command, "--help").output
    assert "Do it." in text
    assert "A number." in text
    assert "A file." in text
    assert "Arguments\n---" not in text
    assert run(command).exit_code == 2


def test_a_bundle_and_a_command_may_say_another_default():
    calls = []

    def command(*, inner: OtherDefault, count: int = 2) -> None:
        calls.append((inner.number, count))

    assert run(command).exit_code == 0
    assert calls == [(5, 2)]


def test_required_options():
    def command(*, name: str) -> None:
        assert name == "x"

    assert run(command, "--name", "x").exit_code == 0
    assert run(command).exit_code == 2


def test_only_the_command_asked_for_is_imported():
    code = (
        "import sys; from unskew.cli import main\n"
        "try: main(['metrics', 'P'])\n"
        "except SystemExit: pass\n"
        "print({'unskew.cli.doors.audit', 'unskew.cli.doors.split'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


CODE = """\
LEAST, MOST = 2, 7
BEST: str = "holm"


@overload
def few(number: float) -> None: ...


def few(
    number: int = MOST,
    *,
    words: Sequence[str] | None = None,
    method: str = BEST,
    size: int | str | None = None,
    share: float,
    exact: bool = True,
) -> None:
    \"""Do it.

    Parameters
    ----------
    number
        A number, such as `3`,
        or another.

        What only Python knows.
    words, method, size
        A text.
    share, exact
        Another.

    Returns
    -------
    nothing
        At all.
    \"""
    if number:
        raise SettingError(number)


@dataclass(frozen=True)
class Settings(Base):
    \"""Settings.\"""

    depth: int | None = count(LEAST, "How deep.", 2)


def last() -> None: ...
"""


def test_options_are_read_from_the_source_of_a_function(tmp_path, monkeypatch):
    (tmp_path / "code.py").write_text(CODE)
    monkeypatch.setattr(parameters, "_PACKAGE", tmp_path)
    names = ("number", "words", "method", "size", "share", "exact")
    number, words, method, size, share, exact = settings_of("code:few", names)
    assert number == (int, 7, "A number, such as 3, or another.")
    assert words == (list[str] | None, None, "A text.")
    assert method == (str, "holm", "A text.")
    assert size[:2] == (str | None, None)
    assert share == (float, inspect.Parameter.empty, "Another.")
    assert exact[:2] == (bool, True)
    assert settings_of("code:Settings", ("depth",)) == ((int | None, 2, "How deep."),)


@pytest.mark.parametrize("target", ["code:few", "code:other"])
def test_what_the_source_does_not_say_is_an_error(tmp_path, monkeypatch, target):
    (tmp_path / "code.py").write_text(CODE)
    monkeypatch.setattr(parameters, "_PACKAGE", tmp_path)
    with pytest.raises(LookupError):
        settings_of(target, ("other",))


def test_values_of_a_function_know_what_was_given():
    def command(*, values: Annotated[Options, TESTS]) -> None:
        print(vars(values)["correction"], given_options(Outer2(values=values)))

    assert run(command, "--correction", "bh").output.split() == ["bh", "['--correction']"]
    assert run(command).output.split() == ["holm", "[]"]


TESTS = OptionsOf("stats.compare.compare:compare", {"Test": "correction plus_one"})


@bundle
class Outer2:
    """Options of a function in a bundle."""

    values: Annotated[Options, TESTS]
