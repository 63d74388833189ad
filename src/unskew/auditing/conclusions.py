"""The answer of an audit in plain words, made from what was measured."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import polars as pl

from unskew.report.document import Words

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements

HALF = 0.5
SMALL = 0.2
LEAK = 0.05
"""Share of test ratings older than training from which on the report warns."""


def answer(audit: Measurements) -> list[Words]:
    """Return the answer: who is best, how sure, why, what is true, what to do."""
    best = Best(audit)
    parts = {
        "What holds": _settled(audit),
        "Why it leads": _margin(best),
        "If nobody had taste": _null(best),
        "The truth": _truth(audit),
    }
    told = [Words(text, head=f"{head}.") for head, text in parts.items() if text]
    advice = [f"{text[0].upper()}{text[1:]}" for text in _advice(best)]
    return [Words(best.said(), "answer"), *told, Words("", "good", "What to do.", tuple(advice))]


class Best:
    """The system that leads under the common design, and how it fares elsewhere."""

    def __init__(self, audit: Measurements) -> None:
        self.audit = audit
        order = audit.order()
        self.system, self.second = order[0], order[1]
        table = audit.table()
        self.undecided = [
            design
            for design in audit.designs
            if (table.filter(pl.col("design") == design)["place"] == 1).all()
        ]
        self.telling = [one for one in audit.designs if one not in self.undecided]
        leaders = table.filter((pl.col("place") == 1) & pl.col("design").is_in(self.telling))
        self.leads: dict[str, list[str]] = {}
        for design, system in leaders.select("design", "system").iter_rows():
            self.leads.setdefault(system, []).append(design)
        self.tied = [one for one, own in self.leads.items() if audit.common in own]
        self.equal = self._not_told_apart()

    def _not_told_apart(self) -> list[str] | None:
        """Return the systems that do not differ significantly from the best; None if unknown."""
        made = self.audit.comparisons.get(self.audit.common)
        if made is None:
            return None
        ranking = made.ranking()
        base = ranking["system"][0]
        return [
            row["system"]
            for row in ranking.iter_rows(named=True)
            if row["system"] != base and not (row["p"] is not None and row["p"] <= made.alpha)
        ]

    @property
    def p(self) -> float | None:
        """The corrected p of the best system against the second."""
        made = self.audit.comparisons.get(self.audit.common)
        if made is None:
            return None
        row = made.ranking().filter(pl.col("rank") == 2)
        return None if not row.height else row["p"][0]

    def said(self) -> str:
        """Say who is best, under how many designs, and how sure."""
        audit = self.audit
        if not self.telling:
            return (
                f"No design tells these {len(audit.systems)} systems apart by {audit.metric}: all "
                f"have the same score."
            )
        if audit.common in self.undecided:
            return (
                f"The common design ({audit.common}) gives all systems the same {audit.metric}; "
                f"only {_list(self.telling)} tell them apart."
            )
        here = len(self.leads.get(self.system, []))
        shared = len(self.tied) > 1
        text = f"{_list(self.tied)} {'share' if shared else 'has'} the best {audit.metric} under "
        text += f"the common design ({audit.common})"
        if len(audit.designs) > 1:
            who = f"; {self.system} is" if shared else ", and is"
            text += f"{who} first under {here} of {len(self.telling)} designs that tell systems"
            text += " apart."
            others = self.others()
            if others:
                told = [
                    f"{system} under {_list(designs)}"
                    for system, designs in sorted(others.items(), key=lambda one: -len(one[1]))[:3]
                ]
                text += f" Elsewhere others lead: {'; '.join(told)}{self._elsewhere(others)}."
        else:
            text += "."
        return f"{text} {self._sure()}".strip()

    def others(self) -> dict[str, list[str]]:
        """Return who leads where this system does not: each with its designs."""
        own = set(self.leads.get(self.system, []))
        leaders = {
            system: [design for design in designs if design not in own]
            for system, designs in self.leads.items()
        }
        return {system: designs for system, designs in leaders.items() if designs}

    def _elsewhere(self, others: dict[str, list[str]]) -> str:
        """Say under which designs another system is significantly better than this one."""
        clear = []
        for system, designs in others.items():
            for design in designs:
                made = self.audit.comparisons.get(design)
                if made is not None and _significant(made.table(), system, self.system):
                    clear.append(design)
        if not clear:
            return ", nowhere significantly"
        if len(clear) == sum(map(len, others.values())):
            return ", significantly"
        return f", significantly only under {_list(clear)}"

    def _sure(self) -> str:
        audit = self.audit
        if self.equal is None:
            return ""
        others = len(audit.systems) - 1
        if not self.equal and others == 1:
            return f"Under {audit.common} it beats the other one significantly."
        if not self.equal:
            return (
                f"Under {audit.common} it beats all {others} others significantly, after "
                f"correction for {_pairs(others + 1)} comparisons."
            )
        return (
            f"Under {audit.common} it cannot be told from {_list(self.equal[:4])}"
            + (f" and {len(self.equal) - 4} more" if len(self.equal) > 4 else "")
            + f" (randomisation test, corrected for {_pairs(others + 1)} comparisons"
            + (f"; p = {self.p:.3g} against the second" if self.p is not None else "")
            + ")."
        )


def _significant(pairs: pl.DataFrame, a: str, b: str) -> bool:
    row = pairs.filter(
        ((pl.col("a") == a) & (pl.col("b") == b)) | ((pl.col("a") == b) & (pl.col("b") == a))
    )
    return bool(row.height and row["significant"][0])


def _pairs(systems: int) -> str:
    return f"{systems * (systems - 1) // 2:,}"


def _settled(audit: Measurements) -> str | None:
    """Say which conclusions hold under all designs."""
    if audit.flips is None:
        return None
    pairs = audit.flips.pairs()
    firm = pairs.filter((pl.col("b_wins") == 0) & (pl.col("a_wins") > 0)).height
    designs = len(audit.designs)
    if pairs.height == 1:
        text = f"The two systems {'' if firm else 'do not '}keep their order under all {designs} "
    else:
        text = (
            f"{firm:,} of {pairs.height:,} pairs of systems keep their order under all {designs} "
        )
    text += "designs"
    if "a_significant" in pairs.columns:
        sure, other = pl.col("a_significant") > 0, pl.col("b_significant") > 0
        one_way, both = pairs.filter(sure ^ other).height, pairs.filter(sure & other).height
        verb = "is" if one_way == 1 else "are"
        text += f"; {one_way:,} {verb} decided significantly by some design and against none"
        text += f", {both:,} significantly both ways, depending on the design" if both else ""
    if audit.agreement is not None:
        tau = audit.agreement.tau
        at = audit.agreement.conditions.index(audit.common)
        others = {
            name: float(tau[at, place])
            for place, name in enumerate(audit.agreement.conditions)
            if place != at and not math.isnan(tau[at, place])
        }
        if others:
            least = min(others, key=lambda name: others[name])
            text += (
                f"; {least} agrees least with {audit.common} (Kendall's τ = "
                f"{_signed(others[least])})"
                if others[least] < 1
                else "; all designs order the systems alike"
            )
    return text + "."


def _margin(best: Best) -> str | None:
    """Say how much of the margin is judged more, and how much liked more."""
    audit = best.audit
    if audit.margins is None or not best.telling:
        return None
    pair = audit.margins.pair(best.system, best.second)
    if not all(math.isfinite(one) and one > 0 for one in (pair.judged, pair.liked)):
        return None
    if pair.precision == 1:
        return f"{best.system} and {best.second}, the second, have the same precision."
    text = (
        f"{best.system} has {pair.precision:.2f} times the precision of {best.second}, the second:"
        f" its items are judged {pair.judged:.2f} times as often, and liked {pair.liked:.2f} times"
        f" as often when judged"
    )
    share = pair.judged_share
    if not math.isnan(share) and (pair.judged - 1) * (pair.liked - 1) >= 0:
        text += f", so {share:.0%} of the margin is being judged more and {1 - share:.0%} being"
        text += " liked more"
    elif not math.isnan(share):
        more, less = ("judged", "liked") if pair.judged > pair.liked else ("liked", "judged")
        text += f". The whole margin is being {more} more"
        other = pair.liked if less == "liked" else pair.judged
        text += f": being {less} works against it" if round(other, 2) != 1 else ""
    return text + "."


def null_row(audit: Measurements, system: str) -> dict[str, Any] | None:
    """Return what the null experiment says of a system under the common design."""
    if audit.null is None:
        return None
    table = audit.null.table().filter(design=audit.common, system=system, metric=audit.metric)
    return table.row(0, named=True) if table.height else None


def _null(best: Best) -> str | None:
    """Say what the best system would score if there were nothing to find."""
    row = null_row(best.audit, best.system)
    if row is None or row["real"] is None:
        return None
    text = (
        f"With the same ratings but opinions drawn at random, where no system can be better than "
        f"another, {best.audit.common} still gives {best.system} {row['null_value']:.4f} (chance: "
        f"{row['null_random']:.4f}; as the data are: {row['real']:.4f})"
        if row["null_random"] is not None
        else f"With the same judgments but opinions drawn at random, {best.system} still scores "
        f"{row['null_value']:.4f} (as the data are: {row['real']:.4f})"
    )
    if row["null_share"] is not None:
        share = min(max(row["null_share"], 0.0), 1.0)
        text += f": {share:.0%} of what it has above chance needs no taste at all"
    return text + "."


def _truth(audit: Measurements) -> str:
    """Say what is true, where it is known."""
    if audit.truth is None:
        return ""
    table = audit.truth.agreement().filter(pl.col("metric") == audit.metric).drop_nulls("tau")
    orders = audit.truth.orders(audit.metric)
    first = orders.filter(pl.col("true") == 1)["system"].to_list()
    observed = audit.order()[0]
    text = f"It is known here ({audit.truth.source_name}): in truth {_list(first)} "
    text += "is best" if len(first) == 1 else "are best"
    if observed in first:
        text += f", as {audit.common} says"
    else:
        place = int(orders.filter(pl.col("system") == observed)["true"][0])
        text += f"; {observed}, best under {audit.common}, has place {place} of {orders.height}"
    if table.height:
        own = table.filter(pl.col("design") == audit.common)
        near = table.sort("tau", descending=True, maintain_order=True).row(0, named=True)
        if own.height:
            row = own.row(0, named=True)
            swaps = f"{row['swaps']} pair{'s' * (row['swaps'] != 1)}"
            text += f". {audit.common} orders {swaps} wrongly (τ = {_signed(row['tau'])})"
        if near["design"] != audit.common and (not own.height or near["tau"] > own["tau"][0]):
            text += f"; nearest to the truth is {near['design']} (τ = {_signed(near['tau'])})"
        elif own.height and near["design"] == audit.common:
            text += "; no other design here is nearer to the truth"
    return text + "."


def _advice(best: Best) -> list[str]:
    """Return what to do, each sentence from a measured value."""
    audit, told = best.audit, []
    others = best.others()
    if not best.telling:
        return ["collect more test ratings, or take a metric that looks deeper."]
    if best.equal:
        needed = _users_needed(audit, best.system, best.equal[0])
        told.append(
            f"treat {best.system} and {_list(best.equal[:3])} as equal under {audit.common}"
            + (f", or test on about {needed:,} users." if needed else ".")
        )
    if others:
        told.append(
            "name the design with every claim: who leads depends on it; only the pairs that keep "
            "their order (section Decisions) are safe to report without it."
        )
    row = null_row(audit, best.system)
    share = None if row is None else row["null_share"]
    if share is not None and share > HALF:
        told.append(
            f"do not read the {audit.metric} of {audit.common} as quality: more than half of it is "
            f"made by who rates what."
        )
    elif share is not None and share > SMALL:
        told.append(f"report what {audit.metric} is on null data beside it.")
    if audit.margins is not None:
        pair = audit.margins.pair(best.system, best.second)
        if not math.isnan(pair.judged_share) and pair.judged > 1 and pair.judged_share > HALF:
            more = _judgments_needed(audit, best.system, best.second)
            told.append(
                f"most of the margin over {best.second} is being judged more: check it on a test "
                f"part that levels popularity (u1r, p1r, skew)"
                + (f", or judge about {more:,} random recommendations of the two." if more else ".")
            )
    leak = max((one.before_any_train or 0.0 for one in audit.splits.values()), default=0.0)
    if leak > LEAK and "temporal" in audit.designs:
        told.append(
            f"{leak:.0%} of the test ratings are older than some training rating: hold claims "
            f"about the future against the temporal design."
        )
    if not told:
        told.append(
            f"report that {best.system} leads: it does so whatever the design. Give the design and "
            f"this card with it."
        )
    return told


def _users_needed(audit: Measurements, a: str, b: str) -> int | None:
    if audit.users_needed is None:
        return None
    pairs = audit.users_needed.pair_table().filter(
        ((pl.col("a") == a) & (pl.col("b") == b)) | ((pl.col("a") == b) & (pl.col("b") == a))
    )
    return None if not pairs.height else pairs["needed"][0]


def _judgments_needed(audit: Measurements, a: str, b: str) -> int | None:
    """Return how many judgments settle a pair; None where its estimates are not usable."""
    if audit.judgments_needed is None:
        return None
    pairs = audit.judgments_needed.table().filter(
        ((pl.col("a") == a) & (pl.col("b") == b)) | ((pl.col("a") == b) & (pl.col("b") == a))
    )
    return None if not pairs.height else pairs["needed"][0]


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _list(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
