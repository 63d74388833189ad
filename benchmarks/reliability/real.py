"""Do people confirm what an audit says of their ratings? Ratings of random items are the judge.

    python benchmarks/reliability/real.py [--data coat,yahoo-r3,cm100k] [--seeds 5]
        [-o benchmarks/reliability/real_counts.json]

Some data sets hold, beside the ratings that people chose to give, ratings of items drawn at random.
The audit sees the chosen ones alone. How often the listed items are liked among the random ones
(`unskew.unbiased.shown_at_random`, intervals by user) is the judge: of the order of systems under
every design, and of every sentence about two systems. A pair counts where the interval of its
difference is on one side of 0. Data sets are found through UNSKEW_DATA; those that are missing are
named and left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import unskew as us
from unskew.auditing.result import Audit
from unskew.auditing.statements.first_screen import POPULARITY
from unskew.auditing.statements.statement import Statement
from unskew.errors import UnskewError
from unskew.report.estimates import Estimates
from unskew.stats.correlation import kendall
from unskew.unbiased.random_slice import random_part, random_slice_of

DATA_SETS = {
    "coat": "coat",
    "yahoo-r3": "yahoo-r3",
    "cm100k": "cm100k:observed=familiar",
}
"""By name: what `unskew.load` takes. Of CM100k the familiar songs are the observed ones."""
NAMING = ("better", "better-despite")
"""Kinds of sentences that say which of two systems is better."""
LIKING = (*NAMING, "evidence-disagrees")
"""Kinds of sentences that say of which of two systems judged recommendations are liked more."""
LEADS = ("ahead",)
"""Kinds of sentences that say which of two systems scores higher under the common design."""


@dataclass(frozen=True)
class Trial:
    """An audit of the observed ratings of a data set, and what random ratings say."""

    audit: Audit
    truth: Estimates
    settled: Mapping[tuple[str, str], float] = field(init=False)
    """By pair, the better system first: the difference of shares liked."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settled", dict(_settled(self.truth, self.audit.systems)))

    def is_right(self, a: str, b: str) -> bool | None:
        """Tell whether a is truly liked more than b; None where random ratings do not tell."""
        return True if (a, b) in self.settled else False if (b, a) in self.settled else None

    def orders(self) -> dict[str, dict[str, float]]:
        """Return, by design, how many settled pairs stand in their true order, and τ of orders."""
        true = {row["system"]: row["value"] for row in self.truth.rows.to_dicts()}
        result = {}
        for design in self.audit.evidence.designs:
            order = self.audit.order(design)
            rank = {system: -number for number, system in enumerate(order)}
            right = sum(rank[a] > rank[b] for a, b in self.settled)
            tau = kendall([true[s] for s in order], [float(rank[s]) for s in order])
            result[design] = {"right": right, "tau": round(float(tau), 2)}
        return result

    def sentences(self, kinds: Sequence[str]) -> Iterator[Statement]:
        """Yield the sentences of some kinds about two systems, under the common design."""
        common = (self.audit.common,)
        for statement in self.audit.statements:
            designs = statement.designs or common
            if statement.kind in kinds and len(statement.subjects) == 2 and designs == common:
                yield statement

    def best(self) -> list[str]:
        """Return the systems that random ratings settle to be behind no other one, best first."""
        behind = {b for _, b in self.settled}
        rows = sorted(self.truth.rows.to_dicts(), key=lambda row: -(row["value"] or 0.0))
        return [row["system"] for row in rows if row["system"] not in behind]

    def counts(self) -> dict[str, Any]:
        """Return what was said, how much of it is right, and how much contradicted."""
        kinds = {kind: Counter[str]() for kind in (*LEADS, *LIKING)}
        for statement in self.sentences(tuple(kinds)):
            right = self.is_right(*statement.subjects[:2])
            kinds[statement.kind]["open" if right is None else "right" if right else "wrong"] += 1
        named = {s.subjects for s in self.sentences(NAMING)}
        return {
            "settled": len(self.settled),
            "named": sum(pair in named for pair in self.settled),
            "best": self.best(),
            "leading": list(self.audit.evidence.leading()),
            "has_best": not {*self.best()}.isdisjoint(self.audit.evidence.leading()),
            "popularity": next(
                (s.kind for s in self.audit.statements if s.kind in POPULARITY), "not said"
            ),
            "verdict": self.audit.verdict,
            "kinds": {kind: dict(count) for kind, count in kinds.items()},
            "designs": self.orders(),
        }


def _settled(truth: Estimates, systems: Sequence[str]) -> Iterator[tuple[tuple[str, str], float]]:
    for a, b in combinations(systems, 2):
        row = truth.parts["pairs"].pair(a, b)
        if row.value is None or row.low is None or row.high is None:
            continue
        if row.low > 0:
            yield (a, b), row.value
        elif row.high < 0:
            yield (b, a), -row.value


def run_trial(data: us.Dataset, seed: int, level: str = "quick") -> Trial:
    """Audit the observed ratings of a data set, and let the random ones judge."""
    assert data.random is not None
    audit = us.audit(data.ratings, level, liked=data.liked, seed=seed)
    core = audit.evidence.core
    parts = [
        random_part(part.split.train, data.random, part.runs, core.relevance, core.k)
        for part in core.lists
    ]
    return Trial(audit, random_slice_of(parts))


def main(words: list[str] | None = None) -> None:
    """Audit data sets that hold ratings of random items, and print what those say of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(DATA_SETS), help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=5, help="audits of each data set")
    parser.add_argument("--level", default="quick", help="level of the audits")
    parser.add_argument("-o", "--output", type=Path, help="JSON file for the counts")
    options = parser.parse_args(words)
    result: dict[str, list[dict[str, Any]]] = {}
    for name in options.data.split(","):
        try:
            data = us.load(DATA_SETS.get(name, name))
        except UnskewError as problem:
            print(f"{name}: left out: {problem}", file=sys.stderr)
            continue
        result[name] = []
        for seed in range(options.seeds):
            counts = run_trial(data, seed, options.level).counts()
            result[name].append({"seed": seed, **counts})
            print(name, json.dumps(result[name][-1], ensure_ascii=False), flush=True)
    if options.output is not None:
        options.output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
