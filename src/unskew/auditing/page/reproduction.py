"""An audit in writing: the command that makes it again, and its plans as TOML."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from unskew.auditing.designs import LEVELS, Level
from unskew.auditing.large_data import LargeRequest
from unskew.auditing.request import Algorithms, Stated
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings
from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS, Relevance
from unskew.errors import is_address, shown_address
from unskew.experiment.plan import Plan
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import ALGORITHMS
from unskew.worlds.parts import WORLDS
from unskew.worlds.worlds import World, world


def plan_toml(plan: Plan) -> str:
    """Return a plan as the TOML that `read_plan` reads; the data are named by the reader.

    Examples
    --------
    >>> import tomllib
    >>> import unskew as us
    >>> from unskew.auditing.page.reproduction import plan_toml
    >>> from unskew.experiment.plan_files import plan_of
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@5"], seed=3)
    >>> plan_of(tomllib.loads(plan_toml(plan)))[0] == plan
    True
    """
    facts = plan.describe()
    plain = ("seed", "metrics", "users", "undefined", "ties", "draws", "judgments", "judged_users")
    lines = [f"{key} = {_value(facts[key])}" for key in plain if key in facts]
    lines += ["", "[relevance]", *_table(facts["relevance"])]
    for entry in facts["split"]:
        lines += ["", "[[split]]", *_table(entry)]
    for entry in facts["targets"]:
        lines += ["", "[[targets]]", 'design = "targets"', *_table(entry)]
    for entry in facts["interventions"]:
        lines += ["", "[[intervention]]", *_table(entry)]
    for label, entry in facts["algorithms"].items():
        settings = {key: value for key, value in entry.items() if key != "algorithm"}
        lines += [
            "",
            "[[algorithm]]",
            f"name = {_value(entry['algorithm'])}",
            f"label = {_value(label)}",
            *_table(settings),
        ]
    return "\n".join(lines) + "\n"


def _table(content: Mapping[str, Any]) -> list[str]:
    """Return lines of a table; TOML has no word for nothing, which is what defaults mean."""
    return [f"{_key(key)} = {_value(value)}" for key, value in content.items() if value is not None]


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes what TOML's basic strings need escaped, but for the delete character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(
            f"{_key(str(key))} = {_value(entry)}"
            for key, entry in value.items()
            if entry is not None
        )
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _word(value: Any) -> str:
    """Return a setting as the command line takes it."""
    if isinstance(value, Mapping):  # a gain or loss
        return ",".join(f"{float(rating):g}={amount:g}" for rating, amount in value.items())
    if isinstance(value, list):
        return ",".join(value)
    return str(value) if isinstance(value, str | int) else f"{value:g}"


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What both kinds of audits choose."""

    level: str
    designs: Iterable[str]
    metric: str
    relevance: Relevance
    seed: int
    tune: bool = True
    stated: Stated = field(default_factory=Stated)
    repeats: int | None = None
    """Of the null experiment, where the user gave their number."""
    large: LargeRequest = field(default_factory=LargeRequest)

    def settings(self) -> dict[str, Any]:
        """Return what both kinds of audits take, but for the seed: what is not as usual."""
        rule = self.relevance.describe()
        usual = {"gain": DEFAULT_GAIN, "loss": DEFAULT_LOSS}
        values: dict[str, Any] = {"designs": list(self.designs), "metric": self.metric}
        values |= {key: rule[key] for key in ("liked", "above") if key in rule}
        values |= {key: rule[key] for key in usual if rule[key] != usual[key]}
        values |= {} if self.tune else {"tune": False}
        values |= self.stated.settings()
        if "group_users" in values:
            values["group_users"] = shown_path(values["group_users"])
        return values

    def words(self, inputs: Iterable[str], systems: Iterable[str] = ()) -> str:
        """Return the command: what it reads, how thorough it is, the systems, and the rest."""
        words = ["unskew", "audit", *inputs]
        words += [] if self.level == "default" else [f"--{self.level}"]
        words += systems
        repeats = {} if self.repeats is None else {"repeats": self.repeats}
        for key, value in {**self.settings(), **repeats, **self.large.settings()}.items():
            option = f"--{key.replace('_', '-')}"
            words += ["--no-tune"] if key == "tune" else [option, _word(value)]
        words += ["--seed", str(self.seed), "-o", "report.html"]
        return shlex.join(words)


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as a report shows it: without folders of a machine, without credentials.

    Examples
    --------
    >>> from unskew.auditing.page.reproduction import shown_path
    >>> shown_path("data/ratings.csv"), shown_path("/home/me/ratings.csv")
    ('data/ratings.csv', 'ratings.csv')
    >>> shown_path("https://me:secret@host/ratings.csv")
    'https://host/ratings.csv'
    """
    if is_address(path):
        return shown_address(path)
    file = Path(path)
    return file.name if file.is_absolute() else os.fspath(path)


RATINGS = "RATINGS"
"""Stands for the ratings, where it is not known which file they are in."""


def ratings_command(
    choices: Choices, algorithms: Iterable[str], path: str, random: str | None
) -> str:
    """Return the command that makes the report of ratings again."""
    more = [] if random is None else ["--random", random]
    return choices.words([path], [*more, "--algorithms", ",".join(algorithms)])


def with_files(
    command: str, files: Mapping[str, str], runs: Mapping[str, str], more: Iterable[str] = ()
) -> str:
    """Return a command with the files that were named, and options on how they are read.

    Parameters
    ----------
    command
        Of a card, with capital words for files; code in Python stays as it is.
    files
        By option (`--train`), or `RATINGS`.
    runs
        By the name of the system.
    more
        Further words.

    Examples
    --------
    >>> from unskew.auditing.page.reproduction import with_files
    >>> with_files("unskew audit RATINGS -o report.html", {"RATINGS": "my ratings.csv"}, {})
    "unskew audit 'my ratings.csv' -o report.html"
    """
    if not command.startswith("unskew "):
        return command
    words = shlex.split(command)
    for index, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        if before == "--run":
            name = word.removesuffix("=FILE")
            words[index] = f"{name}={shown_path(runs[name])}" if name in runs else word
        elif before.startswith("--") and before in files:
            words[index] = shown_path(files[before])
        elif word == RATINGS:
            words[index] = shown_path(files.get(word, word))
    end = words.index("-o")
    return shlex.join([*words[:end], *more, *words[end:]])


Arguments = dict[str, str]
"""Of a call, as code."""


def world_code(simulated: World) -> str:
    """Return the call that makes a world again.

    Examples
    --------
    >>> from unskew.auditing.page.reproduction import world_code
    >>> from unskew.worlds.worlds import world
    >>> world_code(world("shop", users=60, items=40, seed=3))
    'us.world("shop", users=60, items=40, ratings=96, seed=3)'
    """
    card = simulated.describe()
    if card["source"]:
        return "...  # the world of this audit: call World.like or World.of_matrix again"
    size = {"users": card["users"], "items": card["items"], "ratings": card["expected"]}
    if simulated.name in WORLDS and card["expected"] is not None:
        plain = world(simulated.name, **size, seed=simulated.seed)
        if plain.describe() == card:
            words = ", ".join(f"{key}={value}" for key, value in size.items())
            return f'us.world("{simulated.name}", {words}, seed={simulated.seed})'
    return f"us.World.from_card({ {key: card[key] for key in card if key != 'facts'}!r})"


def ratings_code(ratings: Ratings, file: str = RATINGS) -> str:
    """Return the call that reads ratings which were given as an object."""
    return f'us.read_ratings("{file}")  # your {len(ratings):,}, fingerprint {ratings.fingerprint}'


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenData:
    """What the user gave an audit of ratings, which decides how it is written down."""

    data: object
    algorithms: Algorithms
    random: object
    level: Level

    @property
    def needs_code(self) -> bool:
        """Whether no command makes the audit again."""
        systems = self.algorithms
        names = systems is None or (
            not isinstance(systems, Mapping) and all(isinstance(system, str) for system in systems)
        )
        is_named = isinstance(self.data, str | os.PathLike | Dataset)
        return not (names and is_named and is_usual(self.level))

    @property
    def path(self) -> str:
        """The file or data set, or a word to be replaced by it."""
        if isinstance(self.data, str | os.PathLike):
            return shown_path(self.data)
        return RATINGS

    @property
    def random_path(self) -> str | None:
        """The file of random ratings, or a word to be replaced by it; None where there is none."""
        if self.random is None:
            return None
        return shown_path(self.random) if isinstance(self.random, str | os.PathLike) else "RANDOM"

    def arguments(self, ratings: Ratings) -> tuple[str, Arguments]:
        """Return the code of the data, and the arguments that are for ratings only."""
        if isinstance(self.data, World):
            data = world_code(self.data)
        elif isinstance(self.data, str | os.PathLike):
            data = repr(self.path)
        else:
            data = ratings_code(ratings)
        more = {} if self.random_path is None else {"random": _read(self.random, self.random_path)}
        return data, more


def is_usual(level: Level) -> bool:
    """Tell whether a level is as it is named, but for what a command has: no permutations."""
    usual = LEVELS[level.name]
    same = {name: getattr(usual, name) for name in ("repeats", "most_repeats", "splits")}
    return replace(level, **same) == usual


def plan_code(inputs: GivenData, plan: Plan, ratings: Ratings, choices: Choices) -> str:
    """Return code that audits a plan of the user."""
    data, more = inputs.arguments(ratings)
    foreign = ", ".join(_classes_to_define(plan.systems.values()))
    text = plan_toml(plan)
    written = f"r'''\n{text}'''" if "'''" not in text else repr(text)
    lines = [
        "from pathlib import Path",
        "",
        "import unskew as us",
        "",
        *(
            f"# {name} is no class of unskew: give us.Plan(algorithms=…) instead"
            for name in foreign
        ),
        f'Path("plan.toml").write_text({written}, encoding="utf-8")',
        'plan, _ = us.read_plan("plan.toml")',
        f"data = {data}",
    ]
    arguments = {
        "metric": repr(choices.metric),
        **_as_code(choices.stated.settings()),
        **_of_level(inputs.level),
    }
    arguments |= {} if choices.tune else {"tune": "False"}
    large = replace(choices.large, users=None) if plan.judged_users else choices.large
    arguments |= _as_code(large.settings())
    return "\n".join([*lines, *_call(["data", "plan"], {**more, **arguments})])


def ratings_audit_code(
    inputs: GivenData, systems: Mapping[str, Algorithm], ratings: Ratings, choices: Choices
) -> str:
    """Return code that audits systems at a level."""
    data, more = inputs.arguments(ratings)
    foreign = _classes_to_define(systems.values()) if inputs.algorithms is not None else []
    lines = [
        "import unskew as us",
        "",
        *(f"# {name} is no class of unskew: define it first" for name in foreign),
        f"data = {data}",
    ]
    arguments = {"algorithms": _systems_code(inputs.algorithms, systems)}
    arguments |= {**more, **_of_choices(choices), **_of_level(inputs.level)}
    arguments |= _as_code(choices.large.settings())
    arguments |= {} if choices.tune else {"tune": "False"}
    return "\n".join([*lines, *_call(["data", f'"{choices.level}"'], arguments)])


def lists_code(
    choices: Choices,
    level: Level,
    systems: Sequence[str],
    inputs: Iterable[str],
    *,
    has_references: bool,
) -> str:
    """Return the command or the code that audits given lists, whose files the reader names.

    Parameters
    ----------
    choices, level
        What was chosen.
    systems
        Those of the user.
    inputs
        What else is read: `train`, `random`.
    has_references
        Whether reference systems are trained, where they can be.
    """
    if is_usual(level):
        runs = [word for name in systems for word in ("--run", f"{name}=FILE")]
        more = [word for name in inputs for word in (f"--{name}", "FILE")]
        more += [] if has_references else ["--no-references"]
        return choices.words(["--judgments", "FILE", *runs], more)
    files = ", ".join(f'{name!r}: "FILE"' for name in systems)
    arguments = {"judgments": '"FILE"', "runs": f"{{{files}}}"}
    arguments |= dict.fromkeys(inputs, '"FILE"')
    arguments |= {} if has_references else {"references": "False"}
    arguments |= {"plan": f'"{choices.level}"', **_of_choices(choices), **_of_level(level)}
    return "\n".join(["import unskew as us", "", *_call([], arguments)])


def _call(positional: Sequence[str], arguments: Mapping[str, str]) -> list[str]:
    """Return the lines of the call, and of what saves its report."""
    named = [f"{key}={value}" for key, value in arguments.items()]
    return [
        "audit = us.audit(",
        *(f"    {argument}," for argument in (*positional, *named)),
        ")",
        'us.report.save_report(audit, "report.html")',
    ]


def _as_code(values: Mapping[str, object]) -> Arguments:
    return {key: repr(value) for key, value in values.items()}


def _of_choices(choices: Choices) -> Arguments:
    """Return what both kinds of audits take, as code."""
    values = choices.settings()
    values.pop("tune", None)  # follows later
    for key in ("gain", "loss"):
        if isinstance(values.get(key), Mapping):
            values[key] = {float(rating): amount for rating, amount in values[key].items()}
    thresholds: Arguments = {key: f"{values[key]:g}" for key in ("liked", "above") if key in values}
    return {**_as_code(values), **thresholds, "seed": str(choices.seed)}


def _of_level(level: Level) -> Arguments:
    """Return what differs from the level of that name."""
    arguments = {} if level.given_repeats is None else {"repeats": str(level.given_repeats)}
    if level.permutations != LEVELS[level.name].permutations:
        arguments["permutations"] = str(level.permutations)
    return arguments


def _read(source: object, path: str) -> str:
    return repr(path) if isinstance(source, str | os.PathLike) else f'us.read_ratings("{path}")'


def _systems_code(algorithms: Algorithms, systems: Mapping[str, Algorithm]) -> str:
    """Return systems as they were given: names (whose settings are tuned), or objects."""
    if isinstance(algorithms, Mapping):
        pairs = (f"{label!r}: {_system_code(system)}" for label, system in algorithms.items())
        return f"{{{', '.join(pairs)}}}"
    if algorithms is None:
        return repr([system.name for system in systems.values()])
    codes = (repr(entry) if isinstance(entry, str) else _system_code(entry) for entry in algorithms)
    return f"[{', '.join(codes)}]"


def _system_code(system: Algorithm) -> str:
    is_ours = type(system) in ALGORITHMS.values()
    return f"us.recommend.{system!r}" if is_ours else repr(system)


def _classes_to_define(systems: Iterable[Algorithm]) -> list[str]:
    """Return names of classes that are not in the library."""
    names = (type(system).__name__ for system in systems if type(system) not in ALGORITHMS.values())
    return list(dict.fromkeys(names))
