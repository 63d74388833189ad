"""`paper_table`: systems x metrics as a paper prints them, with what is significant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from unskew.checks import check_share, checked
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError
from unskew.evaluation.evaluate import METRICS, evaluate
from unskew.evaluation.scores import RANDOM, Scores
from unskew.judging.judged import Judged
from unskew.report.columns import METRIC, SYSTEM, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.stats.compare.compare import compare
from unskew.stats.compare.ranking import letter, means_of
from unskew.stats.corrections import IN_WORDS
from unskew.stats.pairing import Paired, PlanResults, Source, paired, scores_of
from unskew.stats.tests.p_values import TESTS

BETTER, WORSE = "†", "‡"
"""The marks of a system that is significantly better, or worse, than that of `against`."""
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


PAPER_TABLE = Question(
    name="paper table",
    columns=(
        *(METRIC, Column("letter", "note", "#"), SYSTEM, Column("value", "value", "mean")),
        *(Column("rank", "count", hidden=True), Column("mark", "note", hidden=True)),
        *(Column("beats", "names", hidden=True),),
    ),
    method=Method(estimand="the mean of a system"),
    across="metric",
)
"""A row per system and metric, printed as systems x metrics.

The `letter` under which superscripts name a system (none with `against`), its mean, `rank` (1 is
best; null where neither direction is better), the `mark` of its superscript, and `beats`: the
systems that it is significantly better than.
"""
CHANCE = Question(
    name="chance",
    columns=(METRIC, SYSTEM, Column("value", "value", "mean")),
    method=Method(estimand="what a random order is expected to score"),
)


@notebook_progress("paper table")
@checked
def paper_table(
    scores: Source,
    metrics: str | Sequence[str] | None = None,
    *,
    test: str = "randomisation",
    correction: str | None = "holm",
    family: str = "metric",
    level: float = 0.95,
    against: str | None = None,
    chance: bool = False,
    design: str | None = None,
    permutations: int = 100_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Return the table of a paper: systems x metrics, the best in bold, what is significant marked.

    Every p-value is that of `compare` with the same settings. A row's letter names its system in
    the superscripts of others: `0.3202^ac` is significantly better than the systems a and c.
    Best and second best go by the printed means: equal numbers look equal. `to_latex(label=…)`
    gives the environment of a table, with a caption that states users, test and correction.

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
    level
        A corrected p-value of at most 1 - level is significant.
    against
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
    check_share("level", level)
    words = design or ""
    if isinstance(scores, PlanResults) and design is None:
        words = scores.design_text()
    scores = scores_of(scores)
    if isinstance(scores, Judged):
        scores = evaluate(scores, METRICS if metrics is None else metrics, threads=threads)
    pairing = paired(scores)
    if len(pairing.systems) < 2:
        raise SettingError(
            f"there is one system only, {pairing.systems[0]!r}, and nothing to test it against: "
            f"give a second one, or print the means of one by evaluate(…).to_latex()"
        )
    _check_per_user(pairing, metrics)
    comparison = compare(
        pairing,
        metrics,
        test=test,
        correction=correction,
        family=family,
        level=level,
        against=against,
        permutations=permutations,
        seed=seed,
        threads=threads,
        progress=progress,
    )
    return table_of(pairing, comparison, chance=chance, design=words)


def table_of(
    pairing: Paired,
    comparison: Estimates,
    metrics: Sequence[str] | None = None,
    *,
    chance: bool = False,
    design: str = "",
) -> Estimates:
    """Return the table of a comparison that is there already.

    Parameters
    ----------
    pairing
        What was compared.
    comparison
        Of these values.
    metrics
        Those of the comparison to show; all unless given.
    chance, design
        As in `paper_table`.
    """
    everything, card = comparison.values_of("metric"), comparison.card
    labels = everything if metrics is None else list(metrics)
    is_corrected_over_all = card["family"] == "all" and card["correction"] is not None
    if is_corrected_over_all and set(labels) < set(everything):
        raise SettingError("p-values were corrected over all metrics: compare these ones again")
    policies = {part.users for part in pairing.parts}
    averaged = AVERAGED[policies.pop()] if len(policies) == 1 else ""
    rows = [row for label in labels for row in _rows(comparison, label, pairing.systems)]
    expected = _chance(pairing.parts, labels) if chance else {}
    printed = [(label, RANDOM, value) for label, value in expected.items()]
    table = Estimates.of_rows(
        PAPER_TABLE,
        rows,
        notes=comparison.notes,
        parts={"chance": Estimates.of_rows(CHANCE, printed)} if printed else {},
        card=comparison.card,
    )
    tested = comparison.where(metric=labels)
    sentences = [
        _what(tested, design, averaged, len(pairing.parts)),
        *_directions(tested),
        *_emphasis(table),
        _marks(tested, {row["mark"] for row in rows}),
    ]
    if printed:
        sentences.append(f"{RANDOM}: what a random order is expected to score.")
    return replace(table, explanation=(" ".join(sentences),))


def _rows(comparison: Estimates, label: str, systems: Sequence[str]) -> list[dict[str, Any]]:
    """Return the row of each system: its mean, its rank, and what it is better than."""
    better, against = comparison.card["better"][label], comparison.card["against"]
    means, wins = means_of(comparison, label), _wins(comparison, label)
    sign = 1 if better == "higher" else -1
    rows = []
    for index, system in enumerate(systems):
        beats = [name for name in systems if (system, name) in wins]
        above = sum(sign * mean > sign * means[system] for mean in means.values())
        if against is None:
            mark = ("" if len(systems) <= SINGLE else ",").join(
                letter(systems.index(name)) for name in beats
            )
        else:
            mark = BETTER if against in beats else WORSE * ((against, system) in wins)
        rows.append(
            {
                "metric": label,
                "letter": letter(index) if against is None else "",
                "system": system,
                "value": means[system],
                "rank": None if better == "neither" or math.isnan(means[system]) else 1 + above,
                "mark": mark,
                "beats": beats,
            }
        )
    return rows


def _wins(comparison: Estimates, label: str) -> set[tuple[str, str]]:
    """Return all pairs of which the first is significantly better."""
    better = comparison.card["better"][label]
    rows = comparison.where(metric=label).rows.filter("significant", pl.col("value") != 0)
    if better == "neither":
        return set()
    return {
        (a, b) if (value > 0) == (better == "higher") else (b, a)
        for a, b, value in rows.select("system", "against", "value").iter_rows()
    }


# What the numbers are


def _what(tested: Estimates, design: str, averaged: str, splits: int) -> str:
    """Return what was evaluated, and over which users and splits."""
    labels = tested.values_of("metric")
    counts = sorted({tested.card["users"][label] for label in labels})
    number = " to ".join(f"{count:,}" for count in (counts[:1] + counts[-1:])[: len(counts)])
    users = f"{number} {'user' if counts[-1] == 1 else 'users'} {averaged}".strip()
    systems = means_of(tested, labels[0])
    what = f"{_in_a_row(labels)} of {counted(len(systems), 'system')}"
    what += f" ({design})" if design else ""
    return f"{what}: means over {users}{f', and over {splits} splits' if splits > 1 else ''}."


def _directions(tested: Estimates) -> list[str]:
    """Say where lower is better, or neither direction."""
    better = {label: tested.card["better"][label] for label in tested.values_of("metric")}
    lower = [label for label, direction in better.items() if direction == "lower"]
    neither = [label for label, direction in better.items() if direction == "neither"]
    lines = [f"Lower is better for {_in_a_row(lower)}."] if lower else []
    if neither:
        lines.append(f"Neither direction is better for {_in_a_row(neither)}.")
    return lines


def _emphasis(table: Estimates) -> list[str]:
    printed = table.display_tables()[0]
    if not printed.strong:
        return []
    return ["Best in bold, second best underlined." if printed.second else "Best in bold."]


def _marks(tested: Estimates, marks: set[str]) -> str:
    """Say what superscripts mean, and by which test and correction."""
    card, against = tested.card, tested.card["against"]
    words = f"{_test(card)}, {_correction(tested)}, significance level {card['alpha']:g}"
    if against is None:
        return (
            f"Superscripts are the letters of the systems that a system is significantly "
            f"better than ({words})."
        )
    worse = f", {WORSE} those that are significantly worse" if WORSE in marks else ""
    return f"{BETTER} marks all that are significantly better than {against}{worse} ({words})."


def _test(card: Mapping[str, Any]) -> str:
    sides = "two-sided" if card["alternative"] == "two-sided" else "one-sided"
    name = TESTS[card["test"]].partition(" (")[0]  # no brackets within brackets
    text = f"{sides} {name if 'paired' in name else f'paired {name}'}"
    if card["enumerated"]:
        return f"{text}, all {card['permutations']:,} sign patterns"
    if not card["permutations"]:
        return text
    what = "resamples" if card["test"].startswith("bootstrap") else "permutations"
    return f"{text}, {card['permutations']:,} {what}"


def _correction(tested: Estimates) -> str:
    card, labels = tested.card, tested.values_of("metric")
    if card["correction"] is None:
        return "p-values not corrected"
    name, pairs = IN_WORDS[card["correction"]], tested.rows.height // len(labels)
    if len(labels) == 1:
        return f"p-values corrected by {name} over {counted(pairs, 'pair')} of systems"
    if card["family"] == "all":
        return (
            f"p-values corrected by {name} over all {tested.rows.height:,} combinations of pair "
            "and metric"
        )
    return f"p-values corrected by {name} over {counted(pairs, 'pair')} within each metric"


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


def _in_a_row(names: Sequence[str]) -> str:
    """Return names as a sentence has them: `a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
