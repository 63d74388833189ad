"""The headline of a report: the verdict in plain words, and what it means in hits and users."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unskew.auditing.measurements import DesignMeans
from unskew.auditing.page import charts
from unskew.auditing.page.captions import caption, fragment, verdict
from unskew.auditing.statements.first_screen import BY_SCORE_ONLY, DEPENDS, NOT_SETTLED, SETTLED
from unskew.auditing.statements.setups import phrase
from unskew.auditing.statements.statement import capital, names, with_interval
from unskew.evaluation.scores import Scores
from unskew.metrics.names import parse
from unskew.report.document import Fact, Headline, Picture
from unskew.report.explorer import ALL_USERS, WARM_USERS, Explorer
from unskew.report.text import counted
from unskew.stats.compare.contrasts import contrasts
from unskew.stats.pairing import Pairs

if TYPE_CHECKING:
    from unskew.auditing.core.core import Core
    from unskew.auditing.measurements import Measurements


@dataclass(frozen=True)
class UsersAhead:
    """How many users have a better, a worse and the same value with one system as with another."""

    better: int
    worse: int
    same: int

    @property
    def users(self) -> int:
        """All of them."""
        return self.better + self.worse + self.same


def users_ahead(parts: Sequence[Scores], metric: str, a: str, b: str) -> UsersAhead:
    """Count the users who are better off with system a than with b, worse off, and neither.

    A user's value is the mean over the user's lists, and then over the splits that average the
    user. Undefined values count as 0 or are left out, as in the means of the scores.

    Parameters
    ----------
    parts
        The scores of each split.
    metric
        A metric with a value per list.
    a, b
        Two systems.

    Examples
    --------
    >>> import unskew as us
    >>> from unskew.auditing.page.headline import users_ahead
    >>> test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    >>> runs = {"a": {1: [10], 2: [30]}, "b": {1: [20], 2: [30]}}
    >>> users_ahead([us.evaluate(test, runs, "P@1", liked=4)], "P@1", "a", "b")
    UsersAhead(better=1, worse=0, same=1)
    """
    two = [replace(part, systems={name: part.systems[name] for name in (a, b)}) for part in parts]
    pair = Pairs(np.array([0]), np.array([1]))
    counts = DesignMeans(tuple(two), (a, b)).users_ahead(metric, pair)
    better, worse, same = (int(count[0]) for count in counts)
    return UsersAhead(better=better, worse=worse, same=same)


OFTEN = 0.5
"""From so many hits per list on, a lead is a number of hits per list; below, 1 in so many lists."""
LEAST = 0.0005
"""Fewer hits per list are called less than a thousandth."""


def headline(audit: Measurements) -> Headline:
    """Return what the first screen shows besides its sentences."""
    text, status = verdict_of(audit)
    return Headline(
        verdict=text,
        status=status,
        facts=tuple(_facts(audit)),
        chart=Picture(charts.main_chart(audit)),
    )


# The verdict

STATUS = {SETTLED: "settled", BY_SCORE_ONLY: "score", DEPENDS: "depends", NOT_SETTLED: "open"}


def verdict_of(audit: Measurements) -> tuple[str, str]:
    """Return the verdict in a sentence, and its status."""
    screen, evidence = audit.first_screen, audit.evidence
    status = STATUS[screen.verdict]
    leader, nearest = pair_of(audit)
    if screen.finding.kind == "undecided":
        same = evidence.contrast(leader, nearest).value == 0
        case = "same" if same else "reference" if evidence.above else "undecided"
        return verdict(case, a=leader, b=nearest), status
    leading = evidence.leading()
    of = "Of the given lists, " if evidence.references else ""
    case = "leads" if len(leading) == 1 else "ties"
    words = {
        "lead": fragment(case, systems=names(leading, 4), of=of),
        "their": "its" if len(leading) == 1 else "their",
        "other": "",
        "a": leader,
    }
    step = screen.next_step
    if screen.verdict == DEPENDS:
        return verdict("depends", **words), status
    if screen.verdict == SETTLED:
        return verdict("settled", **words), status
    if step is not None and step.kind in DOUBTS and step.subjects[1] == leader:
        return verdict(f"doubt {step.kind}", **{**words, "other": step.subjects[0]}), status
    case = "score use" if audit.core.implicit else "score only"
    if step is not None and step.kind in SUPPORTS:
        liked_less = [
            statement.subjects[1]
            for statement in (step, *audit.statements)
            if statement.kind == step.kind and statement.subjects[0] == leader
        ]
        words["other"] = names([*dict.fromkeys(liked_less)])
        return verdict("supported", **words), status
    return verdict(case, **words), status


DOUBTS = ("better-shown", "better-despite", "evidence-disagrees")
"""Next steps that speak for another system than the leading one."""
SUPPORTS = ("better-shown", "better")
"""Next steps that say that the leading system is liked more than another."""


def pair_of(audit: Measurements) -> tuple[str, str]:
    """Return the two systems that the facts are about: the leading one, and the nearest behind."""
    finding, evidence = audit.first_screen.finding, audit.evidence
    if finding.kind == "undecided":
        a, b = finding.subjects
        return a, b
    leader = evidence.leader
    return leader, min(finding.others, key=lambda b: evidence.contrast(leader, b).estimate[0])


# Facts


@dataclass(frozen=True)
class Lead:
    """By how much one system is ahead of another under a design, in things per list."""

    a: str
    b: str
    design: str
    thing: str
    """What is counted: hits, or disliked items."""
    k: int
    level: float
    value: float
    """How many more of them there are in a list of a than in one of b, on average."""
    low: float
    high: float


def lead_of(audit: Measurements, a: str, b: str, design: str) -> Lead | None:
    """Return a lead in hits per list, or in disliked items; None where neither is measured."""
    metric, k = parse(audit.metric), audit.core.k
    anti = metric == parse(f"anti-P@{k}")
    if anti or metric == parse(f"P@{k}"):
        contrast = audit.evidence.contrast(a, b, design)
    else:
        precision = f"P@{k}"
        by_design = {
            name: parts
            for name, parts in audit.scores.items()
            if all(precision in part.labels for part in parts)
        }
        if metric.better != "higher" or design not in by_design:
            return None
        compared = audit.evidence.contrasts
        # All systems and designs, as for the metric itself: what is pooled over them is steady.
        alone = contrasts(
            by_design,
            precision,
            family="design",
            target=compared.card["target"],
            level=audit.evidence.thresholds.level,
            resamples=compared.method.draws,
            seed=compared.method.seed or 0,
        )
        contrast = alone.pair(a, b, design=design)
    # Contrasts are positive where a is better: fewer disliked items are.
    value, low, high = (-end if anti else end for end in contrast.estimate)
    return Lead(
        a=a,
        b=b,
        design=design,
        thing="disliked item" if anti else "hit",
        k=k,
        level=audit.evidence.thresholds.level,
        value=k * value + 0.0,
        low=k * min(low, high) + 0.0,
        high=k * max(low, high) + 0.0,
    )


def _facts(audit: Measurements) -> list[Fact]:
    (a, b), design = pair_of(audit), audit.common
    first = _lead_fact(audit, a, b, design)
    gap = lead_of(audit, a, b, design)
    if gap is not None and gap.thing == "hit":
        hit = caption("hit used" if audit.core.implicit else "hit liked")
        first = first._replace(text=f"{first.text} {hit}")
    counts = _users_fact(audit, a, b, design), _chance_fact(audit, a, b, design)
    return [first, *filter(None, counts)]


def _lead_fact(audit: Measurements, a: str, b: str, design: str) -> Fact:
    gap = lead_of(audit, a, b, design)
    if gap is None or not all(map(math.isfinite, (gap.value, gap.low, gap.high))):
        return _plain_lead(audit, a, b, design)
    where = capital(phrase(design))
    names = {"a": a, "b": b, "where": where, "k": gap.k, "percent": f"{100 * gap.level:g}"}
    if gap.low <= 0 <= gap.high:
        return Fact(caption("lead open"), _open_lead(gap, names))
    more = "more" if gap.value > 0 else "fewer"
    # An interval off 0 is on one side of it: nearest and farthest end, as sizes.
    sizes = sorted((abs(gap.low), abs(gap.high)))
    size = abs(gap.value)
    if size >= OFTEN:
        counts = {"count": per_list(size), "low": per_list(sizes[0]), "high": per_list(sizes[1])}
        value, text = "hits per list", "lead per list"
    else:
        lowest, highest = lists(1 / sizes[1]), lists(1 / sizes[0])
        counts = {"count": lists(1 / size), "low": lowest, "high": highest}
        value, text = "hit in lists", "lead in lists"
    words = {**counts, "more": more, "thing": gap.thing}
    return Fact(caption(value, **words), caption(text, **words, **names))


def _open_lead(gap: Lead, names: dict[str, object]) -> str:
    """Say what an interval allows that has 0 in it."""
    limits = []
    if gap.high > 0:
        limits.append(fragment("up to more", amount=_amount(gap.high, gap.thing)))
    if gap.low < 0:
        limits.append(fragment("up to fewer", amount=_amount(-gap.low, gap.thing)))
    if not limits:
        return caption("lead none", **names)
    return caption("lead allows", ends=" or ".join(limits), **names)


def _amount(size: float, thing: str) -> str:
    """Return `0.7 hits per list` or `1 hit in 14 lists`."""
    if size >= OFTEN:
        return fragment("amount per list", count=per_list(size), thing=thing)
    return fragment("amount in lists", count=lists(1 / size), thing=thing)


def per_list(size: float) -> str:
    """Return a number per list: `0.67`, `0.034`."""
    if 0 < size < LEAST:
        return "less than 0.001"
    return f"{size:.2f}" if size >= 0.095 or size == 0 else f"{size:.3f}"


def lists(count: float) -> str:
    """Return a number of lists: `2.4`, `14`, `1,200`."""
    if count < 9.95:
        return f"{count:.1f}".removesuffix(".0")
    digits = max(len(str(int(count))) - 3, 0)  # three leading digits are enough
    return f"{round(count, -digits):,.0f}"


def _plain_lead(audit: Measurements, a: str, b: str, design: str) -> Fact:
    """Return a lead in the metric itself."""
    value, low, high = audit.evidence.contrast(a, b, design).estimate
    text = with_interval(value, low, high)
    names = {"a": a, "b": b, "where": capital(phrase(design)), "metric": audit.metric}
    percent = f"{100 * audit.evidence.thresholds.level:g}"
    if not all(map(math.isfinite, (value, low, high))):
        return Fact(caption("lead open"), caption("lead unknown", **names))
    fact = caption("lead open")
    if low > 0 or high < 0:
        fact = caption("lead metric", difference=text.split(" [")[0], metric=audit.metric)
    return Fact(fact, caption("lead plain", shown=text, percent=percent, **names))


def _users_fact(audit: Measurements, a: str, b: str, design: str) -> Fact | None:
    parts = audit.scores[design]
    metric = parts[0]._label(audit.metric)
    if any(metric not in part.labels for part in parts):
        return None
    count = users_ahead(parts, metric, a, b)
    if not count.users:
        return None
    better, worse, same = (f"{number:,}" for number in (count.better, count.worse, count.same))
    splits = fragment("over splits", count=len(parts)) if len(parts) > 1 else ""
    of = {"a": a, "b": b, "better": better, "worse": worse, "same": same, "splits": splits}
    case = "users hits" if parse(metric) == parse(f"P@{audit.core.k}") else "users metric"
    users = counted(count.users, "user")
    text = caption(case, users=users, metric=metric, where=phrase(design), **of)
    return Fact(caption("users value", better=counted(count.better, "user"), worse=worse), text)


def _chance_fact(audit: Measurements, a: str, b: str, design: str) -> Fact | None:
    """Return what a random order scores beside the two systems; None where it is not known."""
    rows = audit.table().filter(design=design)
    by_system = {row["system"]: row for row in rows.iter_rows(named=True)}
    chance = by_system[a]["random"]
    values = [chance, by_system[a]["value"], by_system[b]["value"]]
    if any(value is None or not math.isfinite(value) for value in values):
        return None
    names = {"a": a, "b": b, "k": audit.core.k, "metric": audit.metric}
    names["where"] = capital(phrase(design))
    k = audit.core.k
    if parse(audit.metric) == parse(f"P@{k}"):
        texts = [per_list(k * value) for value in values]
        case = "chance hits"
    else:
        digits = 3 if min(abs(np.array(values))) >= 0.001 else 5
        texts = [f"{value:.{digits}f}" for value in values]
        case = "chance metric"
    parts = dict(zip(("chance", "first", "second"), texts, strict=True))
    return Fact(
        caption(f"{case} value", chance=texts[0], metric=audit.metric),
        caption(case, **parts, **names),
    )


BEST = 10
"""Differences are worked out for the pairs of this many systems."""
KEYS = {
    "metric": pl.String,
    "cutoff": pl.Int64,
    "design": pl.String,
    "users": pl.String,
}
SCORES = {
    **KEYS,
    "system": pl.String,
    **dict.fromkeys(("value", "low", "high", "chance"), pl.Float64),
    "place": pl.Int64,
}
PAIRS = {
    **KEYS,
    "a": pl.String,
    "b": pl.String,
    **dict.fromkeys(("difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("better", "worse", "same"), pl.Int64),
}


def explorer_of(audit: Measurements) -> Explorer | None:
    """Return the means and differences of an audit for every metric, design and group of users.

    None where nobody has a choice: one system, one metric, one design.

    Parameters
    ----------
    audit
        What was measured.
    """
    # The pair that the first screen speaks of is always among the best.
    pair = pair_of(audit) if len(audit.systems) > 1 else audit.systems
    best = list(dict.fromkeys([*audit.order()[:BEST], *pair]))
    explorer = explored(audit.core, best)
    if explorer.scores.select(*KEYS).n_unique() < 2 and len(audit.systems) < 2:
        return None
    name, cutoff = metric_parts(audit.metric)
    groups = explorer.scores.filter(pl.col("design") == audit.common)["users"]
    start = {
        "metric": name,
        "cutoff": "" if cutoff is None else str(cutoff),
        "design": audit.common,
        "users": WARM_USERS if WARM_USERS in groups else ALL_USERS,
        **dict(zip("ab", pair, strict=False)),
    }
    return replace(explorer, start=start, designs=audit.designs)


def metric_parts(label: str) -> tuple[str, int | None]:
    """Return the name of a metric as it was asked for, without its cutoff, and the cutoff.

    Examples
    --------
    >>> from unskew.auditing.page.headline import metric_parts
    >>> metric_parts("nDCL@10"), metric_parts("SR(gamma=2)")
    (('nDCL', 10), ('SR(gamma=2)', None))
    """
    cutoff = parse(label).cutoff
    return (label if cutoff is None else re.sub(r"[@_]\d+$", "", label)), cutoff


def explored(core: Core, best: list[str]) -> Explorer:
    """Return the numbers of all metrics and designs.

    Parameters
    ----------
    core
        The systems under every design and split.
    best
        The systems whose pairs are compared.
    """
    systems = core.systems
    numbers = np.array([*combinations(map(systems.index, best), 2)], np.int64).reshape(-1, 2)
    pairs = Pairs(*numbers.T.copy())
    names = {
        side: [systems[number] for number in column]
        for side, column in zip("ab", numbers.T, strict=True)
    }
    scores: list[pl.DataFrame] = []
    differences: list[pl.DataFrame] = []
    better: dict[str, str] = {}
    for design, groups, means in _choices(core):
        for label in means.metrics:
            name, cutoff = metric_parts(label)
            better.setdefault(name, parse(label).better)
            values = means.values(label) if means.is_per_user(label) else None
            columns = {
                "system": list(systems),
                "chance": means.chance(label),
                **means.means(label, values),
            }
            of_pairs = None
            if values is not None and len(pairs):
                of_pairs = means.differences(label, values, pairs)
            for users in groups:
                keys = {"metric": name, "cutoff": cutoff, "design": design, "users": users}
                scores.append(pl.DataFrame({**keys, **columns}))
                if of_pairs is not None:
                    differences.append(pl.DataFrame({**keys, **names, **of_pairs}))
    place = pl.when(pl.col("value").is_not_null()).then("place")
    return Explorer(
        scores=_stacked(scores, SCORES).with_columns(place=place),
        pairs=_stacked(differences, PAIRS),
        better=better,
    )


def _choices(core: Core) -> Iterator[tuple[str, tuple[str, ...], DesignMeans]]:
    """Yield each design with the groups of users that have the same numbers, and these numbers.

    Designs come twice where some users that are averaged have no training ratings.
    """
    cold = {design: _has_cold(core, design, parts) for design, parts in core.scores.items()}
    both = (ALL_USERS, WARM_USERS) if any(cold.values()) else (ALL_USERS,)
    for design, parts in core.scores.items():
        groups = (ALL_USERS,) if cold[design] else both
        yield design, groups, DesignMeans(tuple(parts), core.systems)
        if cold[design] and design in core.warm_designs:
            yield design, (WARM_USERS,), DesignMeans(core.warm_scores[design], core.systems)


def _has_cold(core: Core, design: str, parts: tuple[Scores, ...]) -> bool:
    """Tell whether some mean is taken over users without a training rating."""
    return any(
        bool((part.averaged(system) & ~mask).any())
        for part, mask in zip(parts, core.warm[design], strict=True)
        for system in part.systems
    )


def _stacked(frames: Sequence[pl.DataFrame], schema: Mapping[str, type]) -> pl.DataFrame:
    """Return frames below each other; what is not a number is null."""
    frame = pl.concat(frames, how="vertical_relaxed") if frames else pl.DataFrame(schema=schema)
    return frame.select(pl.col(name).cast(kind) for name, kind in schema.items()).fill_nan(None)
