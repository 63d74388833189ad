"""`paper_table`: systems x metrics as a paper prints them, with what is significant."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import polars as pl

from unskew.checks import MOST_DIGITS, as_count, as_number, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError, unknown_name
from unskew.evaluation.evaluate import METRICS, evaluate
from unskew.evaluation.scores import RANDOM, Scores
from unskew.judging.judged import Judged
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted, escape_latex, number, one_line
from unskew.stats.compare.compare import compare
from unskew.stats.compare.comparison import IN_WORDS, TESTS, Comparison, letter
from unskew.stats.pairing import Paired, Source, paired

BETTER, WORSE = "†", "‡"
"""The marks of a system that is significantly better, or worse, than the baseline."""
SINGLE = 52
"""As many systems have letters of one sign; those of more are set apart by commas."""
AVERAGED = {
    "with-test": "with a test rating",
    "with-relevant": "with a liked test rating",
    "with-list": "with a list",
    "both": "with a list and a test rating",
    "with-train": "with a training rating",
    "warm": "with a training and a test rating",
    "all": "of any kind",
}
"""Which users are averaged, in words."""


@runtime_checkable
class ScoredDesign(Protocol):
    """What a plan gave: the scores of each split of its design, and what the design is."""

    def scores(self) -> list[Scores]:
        """Return the scores of each split."""

    def design_text(self) -> str:
        """Return the design in words."""


@dataclass(frozen=True, eq=False)
class PaperTable(Result):
    """Systems x metrics as a paper prints them. Made by `paper_table`."""

    comparison: Comparison
    """The tests behind the marks."""
    chance: Mapping[str, float]
    """By metric: what a random order is expected to score; empty where it is not shown."""
    averaged: str
    """Over which users means are taken, in words."""
    splits: int
    """Over how many splits means are taken; 0 for values from elsewhere."""
    design: str = ""
    """What was evaluated, in words; empty where nobody said it."""
    decimals: int = 4
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, a row each."""
        return self.comparison.systems

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics, a column each."""
        return self.comparison.metrics

    @property
    def baseline(self) -> str | None:
        """The system that all others are compared with; None: all pairs are."""
        return self.comparison.reference

    def letter_of(self, system: str) -> str:
        """Return the letter under which superscripts name a system."""
        if system not in self.systems:
            raise unknown_name("system of this table", system, self.systems)
        return letter(self.systems.index(system))

    def beaten_by(self, system: str, metric: str) -> list[str]:
        """Return the systems that a system is significantly better than."""
        return [
            opponent
            for opponent in self.systems
            if (system, opponent) in self._wins(self._label(metric))
        ]

    def _label(self, metric: str) -> str:
        return self.comparison._label(metric)

    def _wins(self, label: str) -> set[tuple[str, str]]:
        """Return all pairs of which the first is significantly better."""
        better = self.comparison.better[label]
        if better == "neither":
            return set()
        wins = set()
        rows = self.comparison.table(label).filter("significant").iter_rows(named=True)
        for row in rows:
            if row["difference"] == 0:
                continue
            is_first = (row["difference"] > 0) == (better == "higher")
            wins.add((row["a"], row["b"]) if is_first else (row["b"], row["a"]))
        return wins

    def mark(self, system: str, metric: str) -> str:
        """Return the superscript of a system: letters of those it beats, or the baseline's mark."""
        wins = self._wins(self._label(metric))
        if self.baseline is not None:
            if (system, self.baseline) in wins:
                return BETTER
            return WORSE if (self.baseline, system) in wins else ""
        beaten = [
            letter(index)
            for index, opponent in enumerate(self.systems)
            if (system, opponent) in wins
        ]
        return ("" if len(self.systems) <= SINGLE else ",").join(beaten)

    def best(self, metric: str, digits: int | None = None) -> tuple[list[str], list[str]]:
        """Return the best systems and the second best, by their means as they are printed.

        Systems whose printed means are equal share a place. There is no best where all are equal
        or neither direction is better, and no second of two systems.
        """
        label = self._label(metric)
        digits = self.decimals if digits is None else digits
        better = self.comparison.better[label]
        printed = {
            system: round(mean, digits)
            for system, mean in self.comparison.means[label].items()
            if not math.isnan(mean)
        }
        order = sorted(set(printed.values()), reverse=better == "higher")
        if better == "neither" or len(order) < 2:
            return [], []
        places = [[name for name, mean in printed.items() if mean == value] for value in order[:2]]
        return places[0], places[1] if len(self.systems) > 2 else []

    # As a table

    def table(self) -> pl.DataFrame:
        """Return a row per system and metric.

        `system`, its `letter` (null with a baseline), `metric`, `mean`, `place` (1 is best; null
        where neither direction is better), the `mark` of its superscript, and `beats`: the systems
        that it is significantly better than.
        """
        rows = [
            (
                system,
                letter(index) if self.baseline is None else None,
                label,
                self.comparison.means[label][system],
                self._place(label, system),
                self.mark(system, label),
                ", ".join(self.beaten_by(system, label)),
            )
            for index, system in enumerate(self.systems)
            for label in self.metrics
        ]
        names = ("system", "letter", "metric", "mean", "place", "mark", "beats")
        numbers = {"mean": pl.Float64, "place": pl.Int64}
        schema = dict.fromkeys(names, pl.String) | numbers
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _place(self, label: str, system: str) -> int | None:
        means, better = self.comparison.means[label], self.comparison.better[label]
        if better == "neither" or math.isnan(means[system]):
            return None
        sign = 1 if better == "higher" else -1
        return 1 + sum(sign * mean > sign * means[system] for mean in means.values())

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return the table as it is printed, with its caption below."""
        digits = self.decimals if digits is None else digits
        lettered = self.baseline is None
        first = 2 if lettered else 1
        rows: list[list[Any]] = [
            [*([letter(index)] if lettered else []), system]
            + [self.comparison.means[label][system] for label in self.metrics]
            for index, system in enumerate(self.systems)
        ]
        strong, second, marks = set(), set(), {}
        for column, label in enumerate(self.metrics, start=first):
            best, next_best = self.best(label, digits)
            strong |= {(self.systems.index(name), column) for name in best}
            second |= {(self.systems.index(name), column) for name in next_best}
            for index, system in enumerate(self.systems):
                if mark := self.mark(system, label):
                    marks[index, column] = mark
        if self.chance:
            values = [self.chance.get(label, math.nan) for label in self.metrics]
            rows.append([*([""] if lettered else []), RANDOM, *values])
        header = [*(["#"] if lettered else []), "system", *self.metrics]
        left = _left(rows, first, digits)
        table = Table.of_rows(header, rows, left=left, digits=digits, strong=strong)
        return [replace(table, second=frozenset(second), marks=marks, is_plain_marked=True)]

    # What the numbers are

    def caption(self) -> str:
        """Return the caption: design, users, test, correction, and what the marks mean."""
        names = _in_a_row(self.metrics)
        what = f"{names} of {counted(len(self.systems), 'system')}"
        if self.design:
            what += f" ({self.design})"
        means = f"means over {self._users()}"
        if self.splits > 1:
            means += f", and over {self.splits} splits"
        sentences = [f"{what}: {means}.", *self._directions(), *self._emphasis(), self._marks()]
        if self.chance:
            sentences.append(f"{RANDOM}: what a random order is expected to score.")
        return " ".join(sentences)

    def _users(self) -> str:
        counts = sorted(set(self.comparison.users.values()))
        number = " to ".join(f"{count:,}" for count in (counts[:1] + counts[-1:])[: len(counts)])
        users = "user" if counts[-1] == 1 else "users"
        return f"{number} {users} {self.averaged}".strip()

    def _directions(self) -> list[str]:
        """Say where lower is better, or neither direction."""
        lower = [metric for metric in self.metrics if self.comparison.better[metric] == "lower"]
        neither = [metric for metric in self.metrics if self.comparison.better[metric] == "neither"]
        lines = [f"Lower is better for {_in_a_row(lower)}."] if lower else []
        if neither:
            lines.append(f"Neither direction is better for {_in_a_row(neither)}.")
        return lines

    def _emphasis(self) -> list[str]:
        places = [self.best(label) for label in self.metrics]
        if not any(best for best, _ in places):
            return []
        second = any(second for _, second in places)
        return ["Best in bold, second best underlined." if second else "Best in bold."]

    def _marks(self) -> str:
        """Say what superscripts mean, and by which test and correction."""
        comparison = self.comparison
        tested = f"{self._test()}, {self._correction()}, significance level {comparison.alpha:g}"
        if comparison.reference is None:
            return (
                f"Superscripts are the letters of the systems that a system is significantly "
                f"better than ({tested})."
            )
        marks = {self.mark(system, label) for system in self.systems for label in self.metrics}
        worse = f", {WORSE} one that is significantly worse" if WORSE in marks else ""
        return (
            f"{BETTER} marks a system that is significantly better than {comparison.reference}"
            f"{worse} ({tested})."
        )

    def _test(self) -> str:
        comparison = self.comparison
        sides = "two-sided" if comparison.alternative == "two-sided" else "one-sided"
        name = TESTS[comparison.test].partition(" (")[0]  # no brackets within brackets
        text = f"{sides} {name if 'paired' in name else f'paired {name}'}"
        if comparison.enumerated:
            return f"{text}, all {comparison.permutations:,} sign patterns"
        if not comparison.permutations:
            return text
        what = "resamples" if comparison.test.startswith("bootstrap") else "permutations"
        return f"{text}, {comparison.permutations:,} {what}"

    def _correction(self) -> str:
        comparison = self.comparison
        if comparison.correction is None:
            return "p-values not corrected"
        pairs = comparison.table(comparison.metrics[0]).height
        name = IN_WORDS[comparison.correction]
        if len(comparison.metrics) == 1:
            return f"p-values corrected by {name} over {counted(pairs, 'pair')} of systems"
        if comparison.family == "all":
            return (
                f"p-values corrected by {name} over all {comparison.pairs.height:,} combinations "
                f"of pair and metric"
            )
        return f"p-values corrected by {name} over {counted(pairs, 'pair')} within each metric"

    def _explanation(self) -> list[str]:
        return [self.caption()]

    def _summary(self) -> str:
        return f"{counted(len(self.systems), 'system')}, {counted(len(self.metrics), 'metric')}"

    def _content(self) -> dict[str, object]:
        return {
            "systems": self.systems,
            "metrics": self.metrics,
            "caption": self.caption(),
            "rows": self.table(),
            "chance": self.chance or None,
            "comparison": self.comparison,
            "notes": self.notes,
        }

    # As text of a paper

    def to_latex(
        self, digits: int | None = None, *, label: str = "tab:results", caption: str | None = None
    ) -> str:
        """Return a LaTeX table environment; its document needs the package booktabs.

        Parameters
        ----------
        digits
            Decimals, instead of those of the table.
        label
            By which the text refers to it.
        caption
            Instead of the one that states design, users, test and correction; LaTeX as it is.
        """
        if set(label) & set("{}\\%#$&~^ "):
            raise SettingError(
                f"label={label!r}: a LaTeX label has letters, digits, and the signs : - _ . only"
            )
        text = _latex_text(self.caption()) if caption is None else caption
        return "\n".join(
            [
                "% needs \\usepackage{booktabs}",
                "\\begin{table}",
                "\\centering",
                f"\\caption{{{text}}}",
                f"\\label{{{label}}}",
                self.display_tables(digits)[0].to_latex(),
                "\\end{table}",
            ]
        )

    def to_markdown(self, digits: int | None = None, *, caption: str | None = None) -> str:
        """Return a Markdown table with its caption below.

        Parameters
        ----------
        digits
            Decimals, instead of those of the table.
        caption
            Instead of the one that states design, users, test and correction; Markdown as it is.
        """
        text = one_line(self.caption()) if caption is None else caption
        return f"{self.display_tables(digits)[0].to_markdown()}\n\n{text}"


@notebook_progress("paper table")
@checked
def paper_table(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    correction: str | None = "holm",
    family: str = "metric",
    alpha: float = 0.05,
    digits: int = 4,
    baseline: str | None = None,
    chance: bool = False,
    design: str | None = None,
    permutations: int = 100_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> PaperTable:
    """Return the table of a paper: systems x metrics, the best in bold, what is significant marked.

    Every p-value is that of `compare` with the same settings. A row's letter names its system in
    the superscripts of others: `0.3202^ac` is significantly better than the systems a and c.
    Best and second best go by the printed means: equal numbers look equal.

    Parameters
    ----------
    scores
        What `compare` takes: judged data, scores, a list of scores of several splits, values per
        user from elsewhere; or what `run_plan` gave, where its plan has one design.
    metrics
        One or several labels, in the order of the columns; every metric that has a value per user
        unless given.
    test, correction, permutations, seed, threads, progress
        As in `compare`.
    family
        What is corrected together: the pairs of one `metric`, or `all` pairs of all metrics of the
        table. The caption says which.
    alpha
        The level: a corrected p-value at or below it is significant.
    digits
        Decimals.
    baseline
        Compare all systems with this one only: † marks those that are significantly better, ‡
        those that are significantly worse. All pairs, and letters, unless given.
    chance
        Whether a last row says what a random order is expected to score; it is never the best.
    design
        What was evaluated, in words, for the caption; known by itself only for a plan.

    Examples
    --------
    >>> import unskew as us
    >>> users = list(range(12))
    >>> test = {"user": users, "item": [7] * 12, "rating": [5] * 12}
    >>> places = {"good": [7, 8, 9], "fair": [8, 7, 9], "poor": [8, 9, 7]}
    >>> runs = {name: {user: items for user in users} for name, items in places.items()}
    >>> table = us.stats.paper_table(us.evaluate(test, runs, ["RR", "P@2"], liked=4))
    >>> for line in str(table).splitlines()[:4]:
    ...     print(line)
    #  system   RR           P@2
    a  good    *1.0000*^bc  *0.5000*^c
    b  fair    _0.5000_^c   *0.5000*^c
    c  poor     0.3333      _0.0000_
    """
    as_number("alpha", alpha, 0, 1, above=True)
    as_count("digits", digits, 0, MOST_DIGITS)
    if alpha == 1:
        raise SettingError("alpha must be below 1, such as 0.05")
    words = design or ""
    if isinstance(scores, ScoredDesign):
        words = design if design is not None else scores.design_text()
        scores = scores.scores()
    if isinstance(scores, Judged):
        scores = evaluate(scores, METRICS if metrics is None else metrics, threads=threads)
    pairing = paired(scores)
    if len(pairing.systems) < 2:
        raise SettingError(
            f"there is one system only, {pairing.systems[0]!r}, and nothing to test it against: "
            f"give a second one, or print the means of one by evaluate(…).to_latex()"
        )
    _check_per_user(pairing, metrics)
    if baseline is not None and baseline not in pairing.systems:
        raise unknown_name("baseline", baseline, pairing.systems)
    comparison = compare(
        pairing,
        metrics,
        test=test,
        correction=correction,
        family=family,
        confidence=1 - alpha,
        reference=baseline,
        permutations=permutations,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    return table_of(pairing, comparison, digits=digits, chance=chance, design=words)


def table_of(
    pairing: Paired,
    comparison: Comparison,
    *,
    digits: int = 4,
    chance: bool = False,
    design: str = "",
) -> PaperTable:
    """Return the table of a comparison that is there already.

    Parameters
    ----------
    pairing
        What was compared.
    comparison
        Of these values.
    digits, chance, design
        As in `paper_table`.
    """
    policies = {part.users for part in pairing.parts}
    averaged = AVERAGED[policies.pop()] if len(policies) == 1 else ""
    return PaperTable(
        comparison=comparison,
        chance=_chance(pairing.parts, comparison.metrics) if chance else {},
        averaged=averaged,
        splits=len(pairing.parts),
        design=design,
        decimals=digits,
        notes=comparison.notes,
    )


def _check_per_user(pairing: Paired, metrics: str | Sequence[str] | None) -> None:
    """Refuse metrics of whole runs, which no test of users can compare."""
    if metrics is None:
        return
    for metric in [metrics] if isinstance(metrics, str) else metrics:
        label = pairing.any_label(metric)
        if label not in pairing.metrics:
            raise SettingError(
                f"{label} has no value per user, so that no test can compare systems by it: leave "
                f"it out of metrics=…, and report it apart from this table"
            )


def _chance(parts: Sequence[Scores], metrics: Sequence[str]) -> dict[str, float]:
    """Return the mean over splits of what a random order is expected to score."""
    expected = [part.random() for part in parts]
    if not expected or not all(expected):
        raise SettingError(
            "what a random order scores is not known here: leave out chance=True, or judge lists "
            "with their target items (judge(…, targets=…), run_plan)"
        )
    shared = [label for label in metrics if all(label in scores for scores in expected)]
    return {
        label: math.fsum(scores[label] for scores in expected) / len(expected) for label in shared
    }


def _left(rows: Sequence[Sequence[Any]], first: int, digits: int) -> list[int]:
    """Return the columns set to the left: names, and numbers that are all equally long.

    Marks hang on the right of numbers: these stay below each other if the column is set to the
    left.
    """
    widths = [
        {len(number(row[column], digits)) for row in rows if not math.isnan(row[column])}
        for column in range(first, len(rows[0]))
    ]
    even = [column for column, width in enumerate(widths, start=first) if len(width) < 2]
    return [*range(first), *even]


def _in_a_row(names: Sequence[str]) -> str:
    """Return names as a sentence has them: `a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _latex_text(text: str) -> str:
    """Return a caption for LaTeX; the marks of a baseline are signs of its mathematics."""
    signs = {BETTER: "$\\dagger$", WORSE: "$\\ddagger$"}
    pieces = re.split(f"([{BETTER}{WORSE}])", text)
    return "".join(signs.get(piece) or escape_latex(piece) for piece in pieces)
