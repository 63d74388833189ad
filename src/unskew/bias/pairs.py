"""`item_pairs`: how popularity and relevance order pairs of items, and what metrics make of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.bias.popularity import ItemCounts, counts_of
from unskew.bias.steepness import (
    NONREL,
    REL,
    TRUE_NONREL,
    TRUE_REL,
    Signs,
    consistency_error,
    count_signs,
)
from unskew.bias.verdict import Verdict, from_truth, without_truth
from unskew.checks import checked
from unskew.data.ratings import Ids
from unskew.errors import SettingError
from unskew.report.result import as_html, as_text
from unskew.runs import Run, read_run

if TYPE_CHECKING:
    from unskew.report.charts import Figure


CASES = (
    "agree, steeper",
    "agree, not steeper",
    "disagree, steeper",
    "disagree, not steeper",
)
"""Popularity and (observed or true) relevance agree or not; where they agree, whether the odds of
popularity are steeper than non-relevance, where not, whether they are steeper than relevance."""
DISAGREEING = (True, False, True, False)
"""Lemma 1: in which cases the optimal rankings of precision and anti-precision disagree."""
P_CONSISTENT = (True, True, False, True)
"""Lemma 3: in which cases observed and real precision have the same optimal ranking."""
ANTI_CONSISTENT = (False, True, True, True)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of items: how popularity, ratings and, where it is known, relevance order them.

    Made by `item_pairs` and `pairs_of_systems`. Shares are of all pairs of the items that are
    looked at. Two rules for ties, as in mena2021 and its counts: `disagree` and `agree` are strict,
    the four `cases` count a tie of popularity or relevance as *disagree*, and equal decrement
    rates, or one that is 0/0, as *not steeper*. `cases_strict` has ties of either apart.
    """

    observed: Signs
    true: Signs | None
    """Over the items whose relevance is identified; None without random judgments."""
    unrated: int
    """Items left out because nobody rated them."""
    everyone: int
    """Items left out because all users rated them."""
    unidentified: int = 0
    """Items that are in `observed` and not in `true`: no random judgment of them."""
    consistency_error: float = math.nan
    """Standard error, items being a sample, of how much more often P than anti-P is consistent;
    NaN where pairs are sampled, of two items, and without random judgments."""
    title: str = "Pairs of items"
    notes: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """The items whose pairs are looked at."""
        return self.observed.items

    @property
    def pairs(self) -> int:
        """How many pairs these items have."""
        return self.items * (self.items - 1) // 2

    @property
    def sampled(self) -> int | None:
        """How many random pairs were looked at; None = all pairs."""
        return self.observed.pairs if self.observed.sampled else None

    def error(self, share: float) -> float:
        """Return the standard error of a share: 0 where all pairs were looked at."""
        return self.observed.error(share)

    # Observed: Lemma 1

    @cached_property
    def _disagree(self) -> Mask:
        # φ_antiP̂ is the negative of odds*bad: they disagree where the two products agree.
        return self.observed.agree("odds*rating", "odds*bad")

    @cached_property
    def _tied(self) -> Mask:
        signs = self.observed
        tied: Mask = (signs.sign("odds*rating") == 0) | (signs.sign("odds*bad") == 0)
        return tied

    @property
    def disagree(self) -> float:
        """Share of pairs that the two observed optimal rankings order in opposite ways."""
        return self.observed.share(self._disagree)

    @property
    def agree(self) -> float:
        """Share of pairs that they order alike."""
        return self.observed.share(~self._disagree & ~self._tied)

    @property
    def ties(self) -> float:
        """Share of pairs that are equal in one of them or both."""
        return self.observed.share(self._tied)

    @cached_property
    def _cases(self) -> list[Mask]:
        return _four(self.observed, REL, NONREL)

    @property
    def cases(self) -> dict[str, float]:
        """Share of the four cases of mena2021 figure 5, ties under *disagree*."""
        return self._shares(self.observed, self._cases)

    @property
    def cases_strict(self) -> dict[str, float]:
        """The same with the pairs apart that are equal in popularity or average rating."""
        return _strict(self.observed, self._cases, "rating")

    @property
    def steeper(self) -> dict[str, float]:
        """Share of pairs on which the odds of popularity are steeper than p(rel|train), …."""
        return _steeper(self.observed, REL, NONREL)

    @property
    def popular_and_rated(self) -> float:
        """Share of pairs on which popularity and the average rating agree."""
        return self.observed.share(self.observed.agree("odds", "rating"))

    @property
    def tau(self) -> float:
        """Kendall's τ_b between the two observed optimal rankings."""
        return -self.observed.tau("odds*rating", "odds*bad")

    @property
    def lemma1(self) -> float:
        """Share of the pairs without ties in the products on which Lemma 1 holds: 1 always."""
        signs = self.observed
        foretold = _told(self._cases, DISAGREEING)
        apart = ~self._tied
        number = signs.number(apart)
        return signs.number(apart & (foretold == self._disagree)) / number if number else np.nan

    # True: Lemmas 2 and 3

    @cached_property
    def _true_cases(self) -> list[Mask]:
        return _four(self._known, TRUE_REL, TRUE_NONREL)

    @property
    def _known(self) -> Signs:
        if self.true is None:
            raise SettingError("relevance is not identified: give random=… (random judgments)")
        return self.true

    @property
    def true_cases(self) -> dict[str, float]:
        """The four cases with p(rel|i) instead of the average rating (mena2021 figure 9)."""
        return self._shares(self._known, self._true_cases)

    @property
    def true_cases_strict(self) -> dict[str, float]:
        """The same with the pairs apart that are equal in popularity or relevance."""
        return _strict(self._known, self._true_cases, "relevance")

    @property
    def true_steeper(self) -> dict[str, float]:
        """Share of pairs on which the odds of popularity are steeper than p(rel|i), …."""
        return _steeper(self._known, TRUE_REL, TRUE_NONREL)

    @property
    def popular_and_relevant(self) -> float:
        """Share of pairs on which popularity and p(rel|i) agree."""
        return self._known.share(self._known.agree("odds", "relevance"))

    def _consistent(self) -> tuple[Mask, Mask]:
        known = self._known
        return known.agree("odds*rating", "truth"), known.disagree("odds*bad", "truth")

    @property
    def consistent(self) -> dict[str, float]:
        """Share of pairs that the observed and the real optimal ranking order alike."""
        precision, anti = self._consistent()
        return {"P": self._known.share(precision), "anti-P": self._known.share(anti)}

    @property
    def lemma2(self) -> float:
        """Share of pairs with the conclusion of Lemma 2: both metrics are consistent."""
        precision, anti = self._consistent()
        return self._known.share(precision & anti)

    @property
    def lemma3(self) -> dict[str, float]:
        """Share of pairs on which each metric is consistent exactly when Lemma 3 says so.

        All pairs would be, ties apart, if p(rel|train,i) were equal to p(rel|i).
        """
        precision, anti = self._consistent()
        cases, known = self._true_cases, self._known
        return {
            "P": known.share(_told(cases, P_CONSISTENT) == precision),
            "anti-P": known.share(_told(cases, ANTI_CONSISTENT) == anti),
        }

    # What is shown

    @property
    def verdict(self) -> Verdict:
        """Which family of metrics is likely the more reliable here, and why."""
        if self.true is None:
            return without_truth(self.disagree, list(self.cases.values()), self.popular_and_rated)
        consistent = self.consistent
        return from_truth(
            consistent["P"],
            consistent["anti-P"],
            self.popular_and_relevant,
            self.consistency_error,
        )

    def table(self) -> pl.DataFrame:
        """Return a row per case: its share of pairs, and what the optimal rankings do in it.

        `lemma` says what Lemma 1 foretells; `disagree`, `agree` and `ties` are the shares of all
        pairs that lie in the case and do so.
        """
        signs = self.observed
        rows = []
        for name, mask, said in zip(CASES, self._cases, DISAGREEING, strict=True):
            rows.append(
                {
                    "case": name,
                    "share": signs.share(mask),
                    "strict": self.cases_strict[name],
                    "lemma": "disagree" if said else "agree",
                    "disagree": signs.share(mask & self._disagree),
                    "agree": signs.share(mask & ~self._disagree & ~self._tied),
                    "ties": signs.share(mask & self._tied),
                }
            )
        return pl.DataFrame(rows)

    def true_table(self) -> pl.DataFrame:
        """Return a row per case of p(rel|i): its share, and how often each metric is consistent.

        `P` and `anti-P` are shares of all pairs; `lemma_P` and `lemma_anti-P` what Lemma 3 says.
        """
        known = self._known
        precision, anti = self._consistent()
        rows = []
        for at, (name, mask) in enumerate(zip(CASES, self._true_cases, strict=True)):
            rows.append(
                {
                    "case": name,
                    "share": known.share(mask),
                    "strict": self.true_cases_strict[name],
                    "lemma_P": P_CONSISTENT[at],
                    "P": known.share(mask & precision),
                    "lemma_anti-P": ANTI_CONSISTENT[at],
                    "anti-P": known.share(mask & anti),
                }
            )
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        content: dict[str, Any] = {
            "items": self.items,
            "pairs": self.pairs,
            "sampled": self.sampled,
            "unrated": self.unrated,
            "rated_by_everyone": self.everyone,
            "disagree": self.disagree,
            "agree": self.agree,
            "ties": self.ties,
            "cases": self.cases,
            "cases_strict": self.cases_strict,
            "steeper": self.steeper,
            "popularity_and_rating_agree": self.popular_and_rated,
            "tau": _null(self.tau),
            "lemma1": _null(self.lemma1),
        }
        if self.sampled:
            content["standard_error"] = {
                name: self.error(content[name]) for name in ("disagree", "agree", "ties")
            } | {"cases": {name: self.error(share) for name, share in self.cases.items()}}
        if self.true is not None:
            content["truth"] = {
                "items": self.true.items,
                "unidentified": self.unidentified,
                "cases": self.true_cases,
                "cases_strict": self.true_cases_strict,
                "steeper": self.true_steeper,
                "popularity_and_relevance_agree": self.popular_and_relevant,
                "consistent": self.consistent,
                "consistency_error": _null(self.consistency_error),
                "lemma2": self.lemma2,
                "lemma3": self.lemma3,
            }
        return {**content, "verdict": self.verdict.to_dict(), "notes": list(self.notes)}

    def figure(self) -> Figure:
        """Draw the shares of the four cases, and what the optimal rankings do in each."""
        from unskew.bias import charts

        notes = [
            f"what the best orders for precision and anti-precision do: disagree on "
            f"{self.disagree:.1%} of pairs",
            self.footer()[0],
        ]
        return charts.cases(self.table(), self.title, notes)

    def footer(self) -> list[str]:
        """Return the lines that say what was looked at, and what follows from it."""
        looked = f"{self.pairs:,} pairs of {self.items:,} items"
        if self.sampled:
            looked = (
                f"{self.sampled:,} random pairs of {self.items:,} items, standard error of a share "
                f"at most {self.error(0.5):.2%}"
            )
        lines = [
            looked + _left_out(self.unrated, "nobody rated", self.everyone, "all users rated"),
            f"observed optimal rankings of precision and anti-precision: disagree on "
            f"{self.disagree:.2%} of pairs, agree on {self.agree:.2%}, ties {self.ties:.2%}; "
            f"τ_b = {self.tau:.2f}",
            f"odds of popularity steeper than both relevance and non-relevance, as rated: "
            f"{self.steeper['both']:.2%}",
        ]
        if self.true is not None:
            shares, lemma = self.consistent, self.lemma3
            missing = f"; {self.unidentified:,} without" if self.unidentified else ""
            lines += [
                f"truth ({self.true.items:,} items with random judgments{missing}): popularity and "
                f"relevance agree on {self.popular_and_relevant:.2%} of pairs",
                f"observed in the order of real: precision {shares['P']:.2%}, anti-precision "
                f"{shares['anti-P']:.2%}, both {self.lemma2:.2%}; as Lemma 3 says: "
                f"{lemma['P']:.2%} and {lemma['anti-P']:.2%}",
            ]
        return [*lines, *self.notes]

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Return the table as text: header and rows."""
        header = ["popularity and rating", "pairs", "ties apart", "optimal rankings"]
        rows = [
            [row["case"], f"{row['share']:.2%}", f"{row['strict']:.2%}", row["lemma"]]
            for row in self.table().iter_rows(named=True)
        ]
        apart = self.cases_strict["tied"]
        return header, [*rows, ["tied", "–", f"{apart:.2%}", "–"]]

    def __str__(self) -> str:
        lines = [self.title, as_text(*self.grid()), *self.footer(), str(self.verdict)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Pairs({self.pairs:,} of {self.items:,} items, disagree {self.disagree:.1%})"

    def _repr_html_(self) -> str:
        foot = "<br>".join(escape(line) for line in self.footer())
        return f"{as_html(*self.grid())}<p>{foot}</p>{self.verdict._repr_html_()}"

    def _shares(self, signs: Signs, masks: list[Mask]) -> dict[str, float]:
        return {name: signs.share(mask) for name, mask in zip(CASES, masks, strict=True)}


@checked
def item_pairs(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Pairs:
    """Count over all pairs of items how popularity and relevance order them (mena2021 6 and 7).

    Exact, whatever the size of the counts; 50,000 items take some seconds.

    Parameters
    ----------
    ratings
        Ratings, what `read_ratings` reads, a `Dataset`, a `World`, or `ItemCounts`.
    liked
        The smallest rating that is liked; 4 is assumed on a 1-5 scale.
    random
        Judgments of random items, from which the truth is estimated; see `count_items`.
    users
        How many users there are, |U|; those with a rating unless given.
    sample
        Look at this many random pairs instead. None: all pairs up to 200,000 different items (that
        differ in their counts), 10 million random ones beyond.
    seed
        For the sample.
    threads
        How many to use; never changes a number.

    References
    ----------
    mena2021 sections 6 and 7, figures 5 and 9, Lemmas 1 to 4, appendix B.

    Examples
    --------
    Example 1 of mena2021 figure 4: a is rated by five of ten users and liked by three of them, b
    by two and liked by one.

    >>> from unskew.bias.pairs import item_pairs
    >>> from unskew.bias.popularity import ItemCounts
    >>> pairs = item_pairs(ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10))
    >>> pairs.disagree, pairs.cases["agree, steeper"]
    (1.0, 1.0)
    """
    counts = counts_of(ratings, liked, random, users)
    return pairs_of(counts, sample=sample, seed=seed, threads=threads)


def pairs_of(
    counts: ItemCounts, *, sample: int | None = None, seed: int = 0, threads: int | None = None
) -> Pairs:
    """Count the pairs of the items that can be looked at."""
    usable, known = counts.usable, counts.identified
    how: dict[str, Any] = {"sample": sample, "seed": seed, "threads": threads}
    notes = list(counts.notes)
    observed = count_signs(replace(counts, asked=None, asked_liked=None).take(usable), False, **how)
    true, error = None, math.nan
    if counts.asked is not None:
        if np.count_nonzero(known) >= 2:
            part = counts.take(known)
            true = count_signs(part, True, **how)
            error = math.nan if true.sampled else consistency_error(part, threads)
        else:
            notes.append("fewer than two rated items have random judgments: no truth to look at")
    return Pairs(
        observed,
        true,
        int(counts.unrated.sum()),
        int(counts.everyone.sum()),
        int(np.count_nonzero(usable & ~known)) if true is not None else 0,
        error,
        notes=tuple(notes),
    )


@checked
def pairs_of_systems(
    ratings: object,
    a: object,
    b: object,
    k: int = 10,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Pairs:
    """Count the pairs of the items that two systems recommend: the union of their top k.

    Which family of metrics is the more reliable in comparing two systems is a matter of the items
    on which they differ (mena2021 conclusion 6), not of the whole catalogue.

    Parameters
    ----------
    ratings
        The training ratings, or `ItemCounts`.
    a, b
        The runs of both systems, or what `read_run` reads.
    k
        How many items of each list are looked at.
    liked, random, users, sample, seed, threads
        As in `item_pairs`.

    Examples
    --------
    >>> from unskew.bias.pairs import pairs_of_systems
    >>> seen = {"user": [1, 2, 3, 1], "item": ["x", "x", "y", "z"], "rating": [5, 2, 4, 1]}
    >>> pairs_of_systems(seen, {2: ["y"]}, {3: ["x", "z"]}, k=1, liked=4)
    Pairs(1 of 2 items, disagree 100.0%)
    """
    if k < 1:
        raise SettingError(f"k={k}: at least one item of each list is needed")
    counts = counts_of(ratings, liked, random, users)
    shown = Ids.union(*(_top(read_run(run), k) for run in (a, b)))[0]
    codes = counts.items.codes(shown.values)
    unknown = int(np.count_nonzero(codes < 0))
    part = pairs_of(
        counts.take(np.sort(codes[codes >= 0])), sample=sample, seed=seed, threads=threads
    )
    return replace(
        part,
        unrated=part.unrated + unknown,
        title=f"Pairs of the {len(shown):,} items in the top {k} of either system",
    )


def _top(run: Run, k: int) -> Ids:
    """Return the items in the first k places of any list."""
    return Ids.number(run.to_polars().filter(pl.col("rank") <= k)["item"])[0]


def _four(signs: Signs, rel: dict[str, str], nonrel: dict[str, str]) -> list[Mask]:
    """Return the four cases of Lemmas 1 and 3; ties count as disagreement."""
    alike = signs.agree("odds", rel["of"])
    over_rel = signs.steeper("odds", rel)
    over_nonrel = signs.steeper("odds", nonrel, negative=True)
    return [alike & over_nonrel, alike & ~over_nonrel, ~alike & over_rel, ~alike & ~over_rel]


def _strict(signs: Signs, cases: list[Mask], relevance: str) -> dict[str, float]:
    tied = (signs.sign("odds") == 0) | (signs.sign(relevance) == 0)
    shares = {name: signs.share(mask & ~tied) for name, mask in zip(CASES, cases, strict=True)}
    return {**shares, "tied": signs.share(tied)}


def _steeper(signs: Signs, rel: dict[str, str], nonrel: dict[str, str]) -> dict[str, float]:
    over_rel = signs.steeper("odds", rel)
    over_nonrel = signs.steeper("odds", nonrel, negative=True)
    return {
        "relevance": signs.share(over_rel),
        "non-relevance": signs.share(over_nonrel),
        "both": signs.share(over_rel & over_nonrel),
    }


def _told(cases: list[Mask], said: tuple[bool, ...]) -> Mask:
    """Mark the combinations in which a lemma says yes."""
    yes: Mask = np.logical_or.reduce([mask for mask, told in zip(cases, said, strict=True) if told])
    return yes


def _left_out(first: int, why: str, second: int, reason: str) -> str:
    parts = [f"{n:,} that {text}" for n, text in ((first, why), (second, reason)) if n]
    return f"; left out: {', '.join(parts)}" if parts else ""


def _null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
