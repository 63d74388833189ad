"""`Reliability`: how often each kind of statement is said and false in known worlds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from reliability.kinds import KINDS
from reliability.records import WorldRecord
from reliability.tally import rate_of
from unskew.auditing.page.statement_blocks import FILE, Answers, Rate, Rates, RecognisedRate
from unskew.auditing.statements.first_screen import CATALOGUE, SETTLED
from unskew.engine.files import replacing
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted

AIM = 0.05
"""What the rate of false statements should not exceed."""
MOST_UPPER = 0.08
"""Where its one-sided upper end must lie."""
MOST_IN_A_KIND = 0.10
"""What the rate must not exceed in any kind of worlds with enough sayings."""
ENOUGH_SAYINGS = 30
LEAST = 100
"""In so many worlds a kind of statement must have been said."""
KEPT = "kept"
NEVER = "never stated"
TOO_FEW = "too few worlds"
BARS = (
    f"rate at most {AIM:.2f}, upper end at most {MOST_UPPER:.2f}, at most {MOST_IN_A_KIND:.2f} "
    f"in every kind of worlds with at least {ENOUGH_SAYINGS} statements of the kind"
)
"""The bars in words."""
STATEMENT_KINDS = tuple(kind.name for kind in CATALOGUE if kind.is_true is not None)
"""Kinds of statements that a world can refute."""
_NOT_MISSED = (KEPT, TOO_FEW, NEVER)
_COLUMNS = {
    "kind": pl.String,
    "worlds": pl.Int64,
    "sayings": pl.Int64,
    "rate": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "upper": pl.Float64,
    "worst": pl.String,
    "worst_rate": pl.Float64,
    "if_broken": pl.Float64,
    "bars": pl.String,
}
_RECOGNISED = {
    "world": pl.String,
    "visible": pl.Boolean,
    "worlds": pl.Int64,
    "named": pl.Float64,
    "by_slice": pl.Float64,
}
_BY_WORLD = {
    "kind": pl.String,
    "world": pl.String,
    "condition": pl.String,
    "worlds": pl.Int64,
    "sayings": pl.Int64,
    "rate": pl.Float64,
}


def problems(rate: Rate) -> list[str]:
    """Return which bars a kind of statement misses; none where it keeps them all."""
    missed = []
    if rate.rate > AIM:
        missed.append("rate")
    if rate.upper > MOST_UPPER:
        missed.append("upper end")
    worst = rate.worst_of(ENOUGH_SAYINGS)
    if worst is not None and worst.rate > MOST_IN_A_KIND:
        missed.append(f"rate in {worst.world}")
    return missed


def verdict(rate: Rate, least: int = LEAST) -> str:
    """Return `kept`, `too few worlds`, or which bars are missed, in words.

    Parameters
    ----------
    rate
        How often a kind of statement is false.
    least
        In how many worlds it must have been said. With fewer, it misses the bars only if even the
        lower end of its rate is above what it should be.
    """
    if rate.worlds >= least:
        return "; ".join(problems(rate)) or KEPT
    return f"{TOO_FEW}; rate" if rate.low > AIM else TOO_FEW


@dataclass(frozen=True, eq=False)
class Reliability(Result):
    """How often each kind of statement is said and false in known worlds. Made by `reliability`."""

    records: tuple[WorldRecord, ...]
    """A world each."""
    fingerprint: str
    """Of the code that decides what is said."""
    least: int = LEAST
    """In how many worlds a kind of statement must have been said."""

    @property
    def rates(self) -> Rates:
        """The rates, as reports show them."""
        counts = [count for one in self.records for count in one.counts]
        run = Counter(one.world for one in self.records)
        each = [rate_of(kind, counts, run) for kind in STATEMENT_KINDS]
        return Rates(
            fingerprint=self.fingerprint,
            worlds=len(self.records),
            world_kinds=tuple(run),
            rates={one.kind: one for one in each if one is not None},
            recognised=recognised_rates(self.records),
            answers=answers_of(self.records),
        )

    def table(self) -> pl.DataFrame:
        """Return a row per kind of statement: said in how many worlds, how often, how often false.

        `rate` is the mean over worlds of the share of false sayings, kinds of worlds counted alike,
        with its 95 % interval over worlds and its one-sided upper end; `worst` is the kind of
        worlds with the highest rate among those with at least 30 sayings; `if_broken` is the rate
        where a condition of the statement does not hold; `bars` says `kept`, or what is missed.
        """
        rates = self.rates.rates
        rows = [_row(kind, rates.get(kind), self.least) for kind in STATEMENT_KINDS]
        return pl.DataFrame(rows, schema=_COLUMNS)

    def by_world(self) -> pl.DataFrame:
        """Return a row per kind of statement and kind of worlds."""
        rows = [
            {"kind": one.kind, **asdict(part), "condition": holds}
            for one in self.rates.rates.values()
            for holds, several in (("holds", one.by_world), ("broken", one.broken))
            for part in several
        ]
        return pl.DataFrame(rows, schema=_BY_WORLD)

    def recognised(self) -> pl.DataFrame:
        """Return a row per kind of worlds: how often a truly better system is named as such.

        Over pairs of which one is truly better by more than a tenth and ahead; the mean over worlds
        of the share of pairs. `visible`: kinds stated beforehand to be those where it should be
        seen; `by_slice`: where a slice of randomly shown items is there, too.
        """
        return pl.DataFrame([asdict(one) for one in self.rates.recognised], schema=_RECOGNISED)

    def save_rates(self, path: str | Path = FILE) -> None:
        """Write the result file from which reports take their rates."""
        with replacing(Path(path)) as file:
            text = json.dumps(self.rates.to_dict(), indent=1, ensure_ascii=False)
            file.write_text(f"{text}\n", encoding="utf-8")

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the rates and, where there are any pairs to recognise, how many are named."""
        places = 3 if digits is None else digits
        tables = [Table("how often statements are false", self.table(), places)]
        named = self.recognised()
        if named.height:
            tables.append(Table("how often a truly better system is named", named, places))
        return tables

    def _content(self) -> dict[str, Any]:
        return {**self.rates.to_dict(), "bars": dict(self.table().select("kind", "bars").rows())}

    def _summary(self) -> str:
        rates = self.rates
        worlds = counted(rates.worlds, "world")
        kinds = counted(len(rates.world_kinds), "kind")
        return f"{worlds} of {kinds}, {counted(len(rates.rates), 'kind')} of statements"

    def _explanation(self) -> list[str]:
        return [
            "rate: the share of false statements in a world, averaged over the worlds in which "
            "the statement occurs; every kind of world has the same weight",
            "low, high: 95 % interval over worlds; upper: one-sided 95 % end",
            f"worst: of the kinds of worlds with at least {ENOUGH_SAYINGS} statements of that "
            "kind; if_broken: where a condition of the statement does not hold",
        ]

    def _conclusion(self) -> list[str]:
        rates = self.rates
        return [*self._bars(), *not_mute(rates.recognised), *answer_lines(rates.answers)]

    def _bars(self) -> list[str]:
        """Say which kinds of statements keep the bars."""
        verdicts = dict(self.table().select("kind", "bars").rows())
        lines = [f"bars: {BARS}, occurring in at least {counted(self.least, 'world')}"]
        for title in (KEPT, TOO_FEW, NEVER):
            kinds = [kind for kind, text in verdicts.items() if text == title]
            if kinds or title == KEPT:
                names = ", ".join(kinds) or "none"
                lines.append(f"{title} ({len(kinds)} of {len(verdicts)} kinds): {names}")
        missed = {kind: text for kind, text in verdicts.items() if text not in _NOT_MISSED}
        return [*lines, *(f"missed by {kind}: {text}" for kind, text in missed.items())]


def not_mute(recognised: Sequence[RecognisedRate]) -> list[str]:
    """Say how often a truly better system is named where that should be seen."""
    visible = [one for one in recognised if one.visible]
    if not visible:
        return []
    named = sum(one.named for one in visible) / len(visible)
    by_slice = sum(one.by_slice for one in visible) / len(visible)
    worlds = sum(one.worlds for one in visible)
    return [
        f"a system that is truly better by more than a tenth, and ahead, is named in {named:.0%} "
        f"of cases from judgments as they are, in {by_slice:.0%} from a slice of randomly shown "
        f"items: means over {counted(worlds, 'world')} of {counted(len(visible), 'kind')} for "
        "which this was expected beforehand"
    ]


def recognised_rates(records: Sequence[WorldRecord]) -> tuple[RecognisedRate, ...]:
    """Return, by kind of worlds, how often a truly better system is named."""
    rates = []
    for kind in dict.fromkeys(one.world for one in records):
        several = [one.recognised for one in records if one.world == kind and one.recognised.pairs]
        if several:
            count = len(several)
            rates.append(
                RecognisedRate(
                    world=kind,
                    visible=KINDS[kind].where_better_is_visible,
                    worlds=count,
                    named=sum(one.named / one.pairs for one in several) / count,
                    by_slice=sum(one.named_by_slice / one.pairs for one in several) / count,
                )
            )
    return tuple(rates)


def answers_of(records: Sequence[WorldRecord]) -> Answers:
    """Count what first screens say of the best systems, and what is true."""
    answers = [one.answer for one in records]
    return Answers(
        worlds=len(answers),
        settled=sum(one.verdict == SETTLED for one in answers),
        wrong=sum(one.is_wrong for one in answers),
        clear=sum(one.is_clear for one in answers),
        named=sum(one.is_clear and one.is_named for one in answers),
    )


def answer_lines(answers: Answers | None) -> list[str]:
    """Say how often the best systems are named, and how often wrongly."""
    if answers is None or not answers.worlds:
        return []
    lines = [
        f"called the best by score and liking: a tier in {answers.settled} of {answers.worlds} "
        f"worlds; in {answers.wrong} of these all of it is truly worse than the best by a tenth"
    ]
    if answers.clear:
        lines.append(
            f"truly best by a tenth, and expected to score so: in {answers.named} of "
            f"{answers.clear} worlds the leading tier is made of such systems"
        )
    return lines


def _row(kind: str, rate: Rate | None, least: int) -> dict[str, object]:
    if rate is None:
        return {"kind": kind, "worlds": 0, "sayings": 0, "bars": NEVER}
    worst = rate.worst_of(ENOUGH_SAYINGS)
    broken = [one.rate for one in rate.broken]
    return {
        "kind": kind,
        "worlds": rate.worlds,
        "sayings": rate.sayings,
        "rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
        "upper": rate.upper,
        "worst": None if worst is None else worst.world,
        "worst_rate": None if worst is None else worst.rate,
        "if_broken": sum(broken) / len(broken) if broken else None,
        "bars": verdict(rate, least),
    }
