"""An audit in writing: the command that makes it again, and its plans as TOML."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from unskew.auditing.request import Stated
from unskew.data.relevance import Relevance
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
    plain = ("seed", "metrics", "users", "undefined", "ties", "draws", "judgments")
    lines = [f"{key} = {_value(facts[key])}" for key in plain]
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


PLAN_COMMAND = (
    "# This audit ran a plan of its own (below): us.audit(data, plan)\n"
    "unskew run plan.toml --data RATINGS"
)
"""For audits of a plan."""


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

    def words(self, inputs: Iterable[str], systems: Iterable[str] = ()) -> str:
        """Return the command: what it reads, how thorough it is, the systems, and the rest."""
        level = {"quick": ["--quick"], "thorough": ["--thorough"]}.get(self.level, [])
        words = ["unskew", "audit", *inputs, *level, *systems]
        words += ["--designs", ",".join(self.designs), "--metric", self.metric]
        rule = self.relevance.describe()
        for key in ("liked", "above"):
            if key in rule:
                words += [f"--{key}", f"{rule[key]:g}"]
        for key, default in (("gain", "rating"), ("loss", "levels")):
            if rule[key] != default:
                words += [f"--{key}", _rule(rule[key])]
        words += [] if self.tune else ["--no-tune"]
        if self.stated.margin is not None:
            words += ["--margin", f"{self.stated.margin:g}"]
        if self.stated.smallest != Stated().smallest:
            words += ["--smallest", f"{self.stated.smallest:g}"]
        words += ["--seed", str(self.seed), "-o", "report.html"]
        return shlex.join(words)


def ratings_command(choices: Choices, algorithms: Iterable[str]) -> str:
    """Return the command that makes the report of ratings again."""
    return choices.words(["RATINGS"], ["--algorithms", ",".join(algorithms)])


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
