"""`compare_data_sets`: the same systems on several data sets, side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unskew.arrays import F64
from unskew.checks import as_count, as_number, check_share, checked, choose
from unskew.engine.progress import Progress, notebook_progress
from unskew.errors import SettingError
from unskew.report.columns import (
    DIFFERENCE,
    HIGH,
    LOW,
    METRIC,
    NOTE,
    PAIR,
    QUANTITY,
    SE,
    SYSTEM,
    TEST,
    USERS,
    VALUE,
    Column,
    Drawing,
    Method,
    P,
    Question,
)
from unskew.report.estimates import Estimates
from unskew.report.text import counted, p_value
from unskew.stats.compare.data_set_pairs import pair_rows, rank_intervals
from unskew.stats.compare.ranking import letters_of
from unskew.stats.compare.read_data_sets import MISSING, read_data_sets
from unskew.stats.corrections import corrected_by
from unskew.stats.intervals.means import student_ends
from unskew.stats.pairing import (
    PairedSample,
    pairs_with,
    sample,
)
from unskew.stats.tests.classic import (
    Friedman,
    critical_difference,
    friedman_test,
    ranks_of,
)

LEAST_DATA_SETS = 5
"""Of intervals of mean ranks (of fewer, all lie on one side of the truth too often), and of F."""
TESTS = {
    "wilcoxon": "Wilcoxon's signed ranks of the differences on data sets",
    "sign": "sign test over data sets",
    "t": "t test of the mean difference over data sets",
    "nemenyi": "Nemenyi's test of mean ranks",
}
POOL = (
    "mean ranks, Friedman's and Nemenyi's tests depend on which systems are in the pool: with "
    "others added or left out, other pairs may differ (Benavoli, Corani and Mangili 2016)"
)
SETS = Column("n", "count", "data sets", hidden=True)
DATA_SETS = Question(
    name="differences over data sets",
    columns=(
        *(METRIC, *PAIR, QUANTITY, SETS),
        *(Column("ahead", "count", "a ahead"), Column("ahead_against", "count", "b ahead")),
        *(VALUE, LOW, HIGH, *TEST, Column("p_sign", "p", hidden=True)),
        *(Column("p_better", "share", "P(a better)", "%"),),
        *(Column("p_better_against", "share", "P(b better)", "%"),),
        *(Column("p_mean_better", "share", hidden=True),),
        *(Column("p_mean_better_against", "share", hidden=True),),
        *(Column("tau", "fact", hidden=True), NOTE),
    ),
    quantities=(
        Column("like_these", "value", "data sets like these", form="+"),
        Column("these", "interval", "on these data sets", form="+"),
        Column("next", "interval", "a new data set", form="+"),
    ),
    method=Method(
        estimand="the mean over data sets of a − b, each data set counting once",
        unit="data sets",
        interval="t",
    ),
    display=("ranks", "by_data_set", ""),
    figures=(
        Drawing("ranks", "ranks", "ranks"),
        Drawing("differences", "forest", "differences"),
        Drawing("pairs", quantities=("like_these",)),
    ),
)
"""A row per pair and quantity. `like_these` has p of the test and `p_sign`, that of the sign test,
corrected; `these` has p of the mean on these very data sets, `next` that a is better on a new one.
`ahead`: on how many data sets a is better.

Of the two-level model, in which differences on data sets are normal around one mean: `p_mean_…`
that the mean is better, and `tau`, the standard deviation of differences without the users' share
(Paule and Mandel).
"""
ROPE = tuple(
    Column(name, "share", label, "%", hidden=not label)
    for name, label in (("p_equivalent", "P(equal)"), ("p_mean_equivalent", ""))
)
RANKS = Question(
    name="mean ranks",
    columns=(
        *(METRIC, SYSTEM, SETS, replace(VALUE, label="mean rank"), LOW, HIGH),
        *(Column("mean", "fact"), Column("letters", "note")),
    ),
    method=replace(
        DATA_SETS.method,
        estimand="the mean rank of a system",
        interval="bootstrap of data sets and users",
    ),
)
"""Best first. Systems that share one of the `letters` do not differ significantly."""
BY_DATA_SET = Question(
    name="means by data set",
    columns=(METRIC, Column("data_set", "key"), SYSTEM, USERS, VALUE, Column("rank", "fact")),
    method=Method(estimand="the mean of a system on a data set"),
    across="data_set",
)
DIFFERENCES = Question(
    name="differences by data set",
    columns=(METRIC, Column("data_set", "key"), *PAIR, USERS, DIFFERENCE[0], SE, *DIFFERENCE[1:]),
    method=Method(estimand="the mean difference a − b of users on a data set", interval="t"),
)
FRIEDMAN = Question(
    name="Friedman's test",
    columns=(
        *(METRIC, replace(VALUE, label="χ²"), P, Column("f", "fact"), Column("p_f", "p")),
        *(Column("is_exact", "flag"), Column("permutations", "count")),
    ),
    method=Method(estimand="whether all systems rank alike", unit="data sets", test="permutations"),
)
"""`f` and `p_f` are Iman and Davenport's; without permutations all orders count."""


@notebook_progress("data sets")
@checked
def compare_data_sets(
    scores: Mapping[str, Any],
    metric: str | None = None,
    *,
    test: str = "wilcoxon",
    against: str | None = None,
    missing: str = "refuse",
    rope: float | None = None,
    level: float = 0.95,
    permutations: int = 100_000,
    resamples: int = 2_000,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Compare systems over several data sets: means, ranks, tests of ranks, differences.

    Every data set counts once, however many users it has. Two questions are kept apart: what holds
    *on these data sets* (users drawn anew), and what holds *on data sets like these* (data sets
    drawn anew as well), for which a handful of data sets tells little.

    Parameters
    ----------
    scores
        By the name of the data set: what `evaluate` gave, a list of such for its folds, the
        results of a plan, or values per user (see `paired`).
    metric
        The metric. Not needed where the data sets share one only.
    test
        The test of pairs: `wilcoxon`, `sign`, `t` or `nemenyi`.

        Over data sets: `wilcoxon` (signed ranks of the differences, exact, corrected by Holm),
        `sign` (exact, Holm), `t` (of the mean difference, Holm), or `nemenyi` (mean ranks; it
        corrects for all pairs, and depends on which systems are in the pool).
    against
        Compare this system with every other one, instead of all pairs.
    missing
        A system that a data set lacks: `refuse`, or leave out such systems (`systems`) or the data
        sets that lack one (`data-sets`).

        What is left out is named in the notes.
    rope
        Differences up to this size do not matter; adds the probability of such a difference.

        In units of the metric.
    level
        Confidence level of the intervals.

        1 - level is the level of the tests.
    permutations
        Permutations of ranks for Friedman's test, where all are too many to count.
    resamples
        Resamples of data sets and users for intervals of mean ranks; 0 for no intervals.

        These intervals need 5 data sets.
    seed, threads
        The same seed gives the same numbers, on any number of threads.
    progress
        Called with (done, total) as the users of a data set are drawn.

    Returns
    -------
    Estimates
        Rows by pair and quantity, a less b, each data set counting once, with the interval on
        `like_these` data sets, on `these` very ones, and on the `next` one. The parts: `ranks`, the
        systems by mean rank with letters; `by_data_set`, mean and rank of each system;
        `differences`, those of pairs on each data set; `friedman`. The conclusion compares the best
        system, or that of `against`, with all others.

    References
    ----------
    Demšar (JMLR 2006): Friedman, Nemenyi, the critical-difference chart. Benavoli, Corani and
    Mangili (JMLR 2016): mean ranks depend on the pool. Röver (JSS 2020): the hierarchical model.
    Ibragimov and Müller (JBES 2010): t of groups whose errors differ.

    Examples
    --------
    >>> import numpy as np
    >>> import unskew as us
    >>> rng = np.random.default_rng(4)
    >>> def values(users):
    ...     level = rng.normal(0.3, 0.1)
    ...     a, b = (rng.normal(level + lead, 0.1, users) for lead in (0.05, 0.0))
    ...     return {"user": np.arange(users), "a": a, "b": b}
    >>> films = {name: values(200) for name in ("books", "films", "games", "music", "news", "toys")}
    >>> result = us.stats.compare_data_sets(films)
    >>> row = result.pair("a", "b")
    >>> row.facts["ahead"], row.facts["ahead_against"], row.p
    (6, 0, 0.03125)
    """
    choose("test", test, TESTS)
    choose("missing", missing, MISSING)
    check_share("level", level)
    as_count("permutations", permutations)
    as_count("resamples", resamples, 0)
    if rope is not None:
        rope = as_number("rope", rope)
    data, notes = read_data_sets(scores, metric, missing)
    values = list(data.values())
    (label,), systems = values[0].metrics, values[0].systems
    better = values[0].better[label]
    pairs = pairs_with(against, systems)
    if against is not None and test == "nemenyi":
        raise SettingError("test='nemenyi' is for all pairs: leave out against=…")
    samples = {
        name: sample(of_set.matrix(label), pairs, label, threads) for name, of_set in data.items()
    }
    means = np.stack([of_set.means for of_set in samples.values()])
    ranks = ranks_of(means, better)
    limits = np.full((2, len(systems)), np.nan)
    if resamples and len(samples) >= LEAST_DATA_SETS:
        chance: Any = {"seed": seed, "threads": threads, "progress": progress}
        limits[:] = rank_intervals(values, ranks, resamples=resamples, level=level, **chance)
    side = -1 if better == "lower" else 1
    rows = pair_rows(list(samples.values()), systems, side, test, rope, level)
    order = np.argsort(ranks.mean(axis=0), kind="stable").tolist()
    letters = [""] * len(order)
    if against is None:
        differ = [(row["system"], row["against"], row["significant"]) for row in rows[::3]]
        letters = letters_of(differ, [systems[index] for index in order])
    friedman = friedman_test(ranks, permutations, seed)
    card = {
        "test": test,
        "against": against,
        "rope": rope,
        "level": level,
        "resamples": resamples,
        "seed": seed,
        "better": {label: better},
        "data_sets": {name: of_set.users for name, of_set in samples.items()},
        "critical_difference": critical_difference(
            len(systems), len(samples), round(1 - level, 12)
        ),
    }
    parts = {
        "ranks": _rank_rows(systems, order, means, ranks, limits, letters),
        "by_data_set": _mean_rows(systems, order, samples, ranks),
        "differences": _difference_rows(systems, samples, level),
        "friedman": [vars(friedman) | {"value": friedman.statistic}],
    }
    result = _answer(rows, parts, card, explanation=_explanation(card, friedman), notes=notes)
    return replace(result, conclusion=tuple(_conclusion(result)))


def _answer(
    rows: Sequence[dict[str, Any]],
    parts: Mapping[str, Sequence[dict[str, Any]]],
    card: Mapping[str, Any],
    **words: tuple[str, ...],
) -> Estimates:
    """Return the rows of pairs with those of the parts, all of one metric."""
    (label,) = card["better"]
    method = _method(card, len(rows) // 3)
    has_ends = not np.isnan(parts["ranks"][0]["low"])
    questions = {
        "ranks": replace(
            RANKS, method=replace(method, interval=RANKS.method.interval if has_ends else "")
        ),
        "by_data_set": BY_DATA_SET,
        "differences": replace(
            DIFFERENCES, method=replace(DIFFERENCES.method, level=card["level"])
        ),
        "friedman": FRIEDMAN,
    }

    def of_metric(question: Question, part: Sequence[dict[str, Any]], **more: Any) -> Estimates:
        of_label = [{"metric": label, **row} for row in part]
        return Estimates.of_rows(question, of_label, card=card, **more)

    columns = (*DATA_SETS.columns, *(() if card["rope"] is None else ROPE))
    return of_metric(
        replace(DATA_SETS, columns=columns),
        rows,
        method=method,
        parts={name: of_metric(question, parts[name]) for name, question in questions.items()},
        **words,
    )


# Rows


def _rank_rows(
    systems: Sequence[str],
    order: Sequence[int],
    means: F64,
    ranks: F64,
    limits: F64,
    letters: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the systems by mean rank, the best first."""
    return [
        {
            "system": systems[index],
            "n": len(ranks),
            "value": ranks[:, index].mean(),
            "low": limits[0, index],
            "high": limits[1, index],
            "mean": means[:, index].mean(),
            "letters": letter,
        }
        for index, letter in zip(order, letters, strict=True)
    ]


def _mean_rows(
    systems: Sequence[str], order: Sequence[int], samples: Mapping[str, PairedSample], ranks: F64
) -> list[dict[str, Any]]:
    """Return the mean and the rank of each system on each data set, the best system first."""
    return [
        {
            "data_set": name,
            "system": systems[index],
            "n": of_set.users,
            "value": of_set.means[index],
            "rank": ranks[row, index],
        }
        for row, (name, of_set) in enumerate(samples.items())
        for index in order
    ]


def _difference_rows(
    systems: Sequence[str], samples: Mapping[str, PairedSample], level: float
) -> list[dict[str, Any]]:
    """Return the difference of each pair on each data set."""
    rows = []
    for name, of_set in samples.items():
        for index, (a, b) in enumerate(zip(of_set.pairs.first, of_set.pairs.second, strict=True)):
            value, error = float(of_set.means[a] - of_set.means[b]), of_set.standard_error[index]
            row = {"data_set": name, "system": systems[a], "against": systems[b]}
            row |= {"n": of_set.users, "value": value, "se": error}
            if of_set.users > 1:
                limits = student_ends(value, error, of_set.users - 1, level)
                row |= {"low": limits[0], "high": limits[1]}
            rows.append(row)
    return rows


# Words


def _method(card: Mapping[str, Any], pairs: int) -> Method:
    test, correction = TESTS[card["test"]], corrected_by("holm", counted(pairs, "pair"))
    if card["test"] == "nemenyi":
        test += f", critical difference {card['critical_difference']:.2f}"
        correction = "the range of all mean ranks"
    return replace(
        DATA_SETS.method,
        level=card["level"],
        test=test,
        correction=correction,
        draws=card["resamples"],
        seed=card["seed"],
    )


def _explanation(card: Mapping[str, Any], friedman: Friedman) -> tuple[str, ...]:
    sizes, alpha = card["data_sets"], round(1 - card["level"], 12)
    users = ", ".join(f"{name} {count:,}" for name, count in sizes.items())
    lines = [
        f"users: {users}; every data set counts once",
        _friedman_text(friedman, len(sizes)),
    ]
    if card["against"] is None:
        lines.append(f"systems that share a letter do not differ significantly (α = {alpha:g})")
    if card["resamples"] and len(sizes) < LEAST_DATA_SETS:
        lines.append(f"intervals of mean ranks need at least {LEAST_DATA_SETS} data sets")
    elif card["resamples"]:
        lines.append(
            f"intervals of mean ranks: {card['resamples']:,} resamples of data sets and, within "
            "each, of users"
        )
    lines.append(
        "on these data sets: users redrawn; data sets like these: t over data sets, if "
        "differences are symmetric about their mean; a new data set: its true difference, and P, "
        "in the two-level normal model"
    )
    return (*lines, POOL)


def _friedman_text(test: Friedman, data_sets: int) -> str:
    kind = "all orders" if test.is_exact else f"{test.permutations:,} permutations"
    text = f"Friedman's test that all systems rank alike: p = {p_value(test.p)} ({kind})"
    # With fewer data sets it is false far too often: 15 to 18 % of 3 data sets, at 5 %.
    if test.f is not None and data_sets >= LEAST_DATA_SETS:
        text += f"; Iman and Davenport's F = {test.f:.2f}, p = {p_value(test.p_f)}"
    return text.replace("= <", "< ")


def _conclusion(result: Estimates) -> Iterator[str]:
    """Compare the best system, or that of `against`, with all others."""
    systems = result.parts["ranks"].values_of("system")
    base = result.card["against"] or systems[0]
    others = [system for system in systems if system != base]
    alpha, count = round(1 - result.card["level"], 12), len(result.card["data_sets"])
    (better,) = result.card["better"].values()
    sign = 1 if better == "higher" else -1
    on_these = [result.pair(base, system, quantity="these") for system in others]
    yield from _of_leads(
        f"on the mean of these {count} data sets, {base}",
        {
            row.keys["against"]: sign * (row.value or 0.0)
            for row in on_these
            if row.facts["significant"]
        },
        f"(users redrawn, corrected p at most {alpha:g})",
    )
    pairs = result.rows.height // 3
    smallest = pairs * 2.0 ** (1 - count)
    if smallest > alpha:
        needed = 1 + math.ceil(math.log2(pairs / alpha))
        yield (
            f"nothing is concluded about other data sets: with {count} of them and "
            f"{counted(pairs, 'pair')}, a system that is ahead on all has a corrected p of "
            f"{min(smallest, 1.0):.2g} by signs; at least {needed} data sets are needed"
        )
        return
    leads = {}
    for system in others:
        facts = result.pair(base, system).facts
        ahead = facts["ahead"], facts["ahead_against"]
        if facts["p_sign"] <= alpha:
            leads[f"{system} ({max(ahead)} of {count})"] = ahead[0] - ahead[1]
    yield from _of_leads(
        f"on most data sets like these, {base}",
        leads,
        f"(sign tests, corrected p at most {alpha:g})",
    )
    if not leads:
        yield "nothing is concluded about other data sets: no sign test is significant"


def _of_leads(subject: str, leads: Mapping[str, float], reason: str) -> Iterator[str]:
    """Say whom a system is ahead of, and whom it is behind."""
    for word, sign in (("ahead of", 1), ("behind", -1)):
        names = [name for name, lead in leads.items() if sign * lead > 0]
        if names:
            yield f"{subject} is {word} {', '.join(names)} {reason}"
