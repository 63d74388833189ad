"""An audit in writing: the command that makes it again, and its plans as TOML."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from unskew.addresses import is_address, shown_address
from unskew.auditing.large_data import LargeRequest
from unskew.auditing.request import Stated
from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS, Relevance
from unskew.experiment.plan import Plan


def plan_toml(plan: Plan) -> str:
    """Return a plan as the TOML that `read_plan` reads; the data are named by the reader.

    Examples
    --------
    >>> import tomllib
    >>> import unskew as us
    >>> from unskew.auditing.reproduction import plan_toml
    >>> from unskew.experiment.plan_files import plan_of
    >>> plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics=["P@5"], seed=3)
    >>> plan_of(tomllib.loads(plan_toml(plan)))[0] == plan
    True
    """
    facts = plan.describe()
    plain = ("seed", "metrics", "users", "undefined", "ties", "draws", "judgments", "judged_users")
    lines = [f"{key} = {_value(facts[key])}" for key in plain if key in facts]
    lines += ["", "[relevance]", *_table(facts["relevance"])]
    for one in facts["split"]:
        lines += ["", "[[split]]", *_table(one)]
    for one in facts["targets"]:
        lines += ["", "[[targets]]", 'design = "targets"', *_table(one)]
    for one in facts["interventions"]:
        lines += ["", "[[intervention]]", *_table(one)]
    for label, one in facts["algorithms"].items():
        settings = {key: value for key, value in one.items() if key != "algorithm"}
        lines += [
            "",
            "[[algorithm]]",
            f"name = {_value(one['algorithm'])}",
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
            f"{_key(str(key))} = {_value(one)}" for key, one in value.items() if one is not None
        )
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _rule(rule: str | Mapping[str, float]) -> str:
    """Return a gain or loss as the command line takes it."""
    if isinstance(rule, str):
        return rule
    return ",".join(f"{float(rating):g}={worth:g}" for rating, worth in rule.items())


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

    def words(self, inputs: Iterable[str], systems: Iterable[str] = ()) -> str:
        """Return the command: what it reads, how thorough it is, the systems, and the rest."""
        level = {"quick": ["--quick"], "thorough": ["--thorough"]}.get(self.level, [])
        words = ["unskew", "audit", *inputs, *level, *systems]
        words += ["--designs", ",".join(self.designs), "--metric", self.metric]
        rule = self.relevance.describe()
        for key in ("liked", "above"):
            if key in rule:
                words += [f"--{key}", f"{rule[key]:g}"]
        for key, default in (("gain", DEFAULT_GAIN), ("loss", DEFAULT_LOSS)):
            if rule[key] != default:
                words += [f"--{key}", _rule(rule[key])]
        words += [] if self.tune else ["--no-tune"]
        if self.stated.margin is not None:
            words += ["--margin", f"{self.stated.margin:g}"]
        if self.stated.smallest != Stated().smallest:
            words += ["--smallest", f"{self.stated.smallest:g}"]
        if self.repeats is not None:
            words += ["--repeats", str(self.repeats)]
        words += self.large.words()
        words += ["--seed", str(self.seed), "-o", "report.html"]
        return shlex.join(words)


def shown_path(path: str | os.PathLike[str]) -> str:
    """Return a path as a report shows it: without folders of a machine, without credentials.

    Examples
    --------
    >>> from unskew.auditing.reproduction import shown_path
    >>> shown_path("data/ratings.csv"), shown_path("/home/me/ratings.csv")
    ('data/ratings.csv', 'ratings.csv')
    >>> shown_path("https://me:secret@host/ratings.csv")
    'https://host/ratings.csv'
    """
    if is_address(path):
        return shown_address(path)
    given = Path(path)
    return given.name if given.is_absolute() else os.fspath(path)


RATINGS = "RATINGS"
"""Stands for the ratings, where it is not known which file they are in."""


def ratings_command(
    choices: Choices, algorithms: Iterable[str], path: str, random: str | None
) -> str:
    """Return the command that makes the report of ratings again."""
    more = [] if random is None else ["--random", random]
    return choices.words([path], [*more, "--algorithms", ",".join(algorithms)])


@dataclass(frozen=True, kw_only=True)
class ListSources:
    """What an audit of lists reads."""

    systems: tuple[str, ...]
    """Those of the user."""
    with_train: bool
    with_random: bool
    with_references: bool


def lists_command(choices: Choices, sources: ListSources) -> str:
    """Return the command that makes the report of lists again."""
    runs = [word for name in sources.systems for word in ("--run", f"{name}=FILE")]
    more = ["--train", "FILE"] if sources.with_train else []
    more += ["--random", "FILE"] if sources.with_random else []
    more += [] if sources.with_references else ["--no-references"]
    return choices.words(["--judgments", "FILE", *runs], more)


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
    >>> from unskew.auditing.reproduction import with_files
    >>> with_files("unskew audit RATINGS -o report.html", {"RATINGS": "my ratings.csv"}, {})
    "unskew audit 'my ratings.csv' -o report.html"
    """
    if not command.startswith("unskew "):
        return command
    words = shlex.split(command)
    for at, (before, word) in enumerate(zip(["", *words], words, strict=False)):
        if before == "--run":
            name = word.removesuffix("=FILE")
            words[at] = f"{name}={shown_path(runs[name])}" if name in runs else word
        elif before.startswith("--") and before in files:
            words[at] = shown_path(files[before])
        elif word == RATINGS:
            words[at] = shown_path(files.get(word, word))
    end = words.index("-o")
    return shlex.join([*words[:end], *more, *words[end:]])
