"""`item_pairs`: how popularity and relevance order pairs of items, and what metrics make of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.bias.pairs.steepness import (
    NONREL,
    REL,
    TRUE_NONREL,
    TRUE_REL,
    Signs,
    consistency_error,
    count_signs,
)
from unskew.bias.popularity.item_counts import ItemCounts, counts_of
from unskew.bias.reliability import Reliability, from_truth, without_truth
from unskew.checks import checked
from unskew.data.ratings import Ids
from unskew.errors import SettingError
from unskew.report.result import Result
from unskew.report.tables import Table
from unskew.report.text import counted
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
class PairCases:
    """Pairs of items by whether popularity and relevance agree, and which of them is steeper."""

    relevant: ClassVar[Mapping[str, str]]
    """Names of the relevance, and of its product and quotient with the odds of popularity."""
    irrelevant: ClassVar[Mapping[str, str]]

    signs: Signs

    @property
    def items(self) -> int:
        """The items whose pairs are counted."""
        return self.signs.items

    @cached_property
    def _over_relevance(self) -> Mask:
        return self.signs.steeper("odds", self.relevant)

    @cached_property
    def _over_irrelevance(self) -> Mask:
        return self.signs.steeper("odds", self.irrelevant, negative=True)

    @cached_property
    def masks(self) -> list[Mask]:
        """The combinations of signs in each of the four cases; ties count as disagreement."""
        alike = self.signs.agree("odds", self.relevant["of"])
        bad, over_relevance = self._over_irrelevance, self._over_relevance
        return [alike & bad, alike & ~bad, ~alike & over_relevance, ~alike & ~over_relevance]

    @property
    def cases(self) -> dict[str, float]:
        """Share of each of the four cases, ties under *disagree*."""
        shares = map(self.signs.share, self.masks)
        return dict(zip(CASES, shares, strict=True))

    @property
    def cases_strict(self) -> dict[str, float]:
        """The same with the pairs apart that are equal in popularity or relevance."""
        signs = self.signs
        tied = (signs.sign("odds") == 0) | (signs.sign(self.relevant["of"]) == 0)
        shares = (signs.share(mask & ~tied) for mask in self.masks)
        return {**dict(zip(CASES, shares, strict=True)), "tied": signs.share(tied)}

    @property
    def steeper(self) -> dict[str, float]:
        """Share of pairs on which the odds of popularity are steeper than (non-)relevance."""
        bad, over_relevance = self._over_irrelevance, self._over_relevance
        shares = {"relevance": over_relevance, "non-relevance": bad, "both": over_relevance & bad}
        return {name: self.signs.share(mask) for name, mask in shares.items()}

    @property
    def popular_and_relevant(self) -> float:
        """Share of pairs on which popularity and relevance agree."""
        return self.signs.share(self.signs.agree("odds", self.relevant["of"]))

    def _rows(self) -> list[dict[str, Any]]:
        """Return of each case its share of pairs, with ties and with ties apart."""
        cases, strict = self.cases, self.cases_strict
        return [{"case": name, "share": cases[name], "strict": strict[name]} for name in CASES]

    def shares(self) -> dict[str, dict[str, float]]:
        """Return the shares of cases, with ties apart as well, and of steeper pairs."""
        strict = self.cases_strict
        return {"cases": self.cases, "cases_strict": strict, "steeper": self.steeper}

    def lemma(self, holds: tuple[bool, ...]) -> Mask:
        """Mark the combinations in which a lemma says yes, given its answer for each case."""
        chosen = [mask for mask, yes in zip(self.masks, holds, strict=True) if yes]
        result: Mask = np.logical_or.reduce(chosen)
        return result


@dataclass(frozen=True, eq=False)
class ObservedPairs(PairCases):
    """Pairs of items as rated: relevance is the average rating p(rel|train,i) (Lemma 1)."""

    relevant = REL
    irrelevant = NONREL

    @cached_property
    def _disagree(self) -> Mask:
        # φ_antiP̂ is the negative of odds*bad: they disagree where the two products agree.
        return self.signs.agree("odds*rating", "odds*bad")

    @cached_property
    def _tied(self) -> Mask:
        signs = self.signs
        tied: Mask = (signs.sign("odds*rating") == 0) | (signs.sign("odds*bad") == 0)
        return tied

    @property
    def disagree(self) -> float:
        """Share of pairs that the two observed optimal rankings order in opposite ways."""
        return self.signs.share(self._disagree)

    @property
    def agree(self) -> float:
        """Share of pairs that they order alike."""
        return self.signs.share(~self._disagree & ~self._tied)

    @property
    def ties(self) -> float:
        """Share of pairs that are equal in one of them or both."""
        return self.signs.share(self._tied)

    @property
    def tau(self) -> float:
        """Kendall's τ_b between the two observed optimal rankings."""
        return -self.signs.tau("odds*rating", "odds*bad")

    @property
    def lemma1(self) -> float:
        """Share of the pairs without ties in the products on which Lemma 1 holds: 1 always."""
        apart = ~self._tied
        number = self.signs.number(apart)
        right = self.lemma(DISAGREEING) == self._disagree
        return self.signs.number(apart & right) / number if number else np.nan

    def table(self) -> pl.DataFrame:
        """Return a row per case: its share of pairs, and what the optimal rankings do in it.

        `lemma` says what Lemma 1 predicts; `disagree`, `agree` and `ties` are the shares of all
        pairs that lie in the case and do so.
        """
        share = self.signs.share
        rows = [
            {
                **case,
                "lemma": "disagree" if predicted else "agree",
                "disagree": share(mask & self._disagree),
                "agree": share(mask & ~self._disagree & ~self._tied),
                "ties": share(mask & self._tied),
            }
            for case, mask, predicted in zip(self._rows(), self.masks, DISAGREEING, strict=True)
        ]
        return pl.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class TruePairs(PairCases):
    """Pairs of items whose relevance p(rel|i) is identified by random judgments (Lemmas 2, 3)."""

    relevant = TRUE_REL
    irrelevant = TRUE_NONREL

    def _consistent(self) -> dict[str, Mask]:
        signs = self.signs
        return {
            "P": signs.agree("odds*rating", "truth"),
            "anti-P": signs.disagree("odds*bad", "truth"),
        }

    @property
    def consistent(self) -> dict[str, float]:
        """Share of pairs that the observed and the real optimal ranking order alike."""
        return {name: self.signs.share(mask) for name, mask in self._consistent().items()}

    @property
    def lemma2(self) -> float:
        """Share of pairs with the conclusion of Lemma 2: both metrics are consistent."""
        masks = self._consistent()
        return self.signs.share(masks["P"] & masks["anti-P"])

    @property
    def lemma3(self) -> dict[str, float]:
        """Share of pairs on which each metric is consistent exactly when Lemma 3 says so.

        All pairs would be, ties apart, if p(rel|train,i) were equal to p(rel|i).
        """
        masks = self._consistent()
        predicted = {"P": P_CONSISTENT, "anti-P": ANTI_CONSISTENT}
        return {
            name: self.signs.share(self.lemma(holds) == masks[name])
            for name, holds in predicted.items()
        }

    def table(self) -> pl.DataFrame:
        """Return a row per case of p(rel|i): its share, and how often each metric is consistent.

        `P` and `anti-P` are shares of all pairs; `lemma_P` and `lemma_anti-P` what Lemma 3 says.
        """
        share, right = self.signs.share, self._consistent()
        rows = [
            {
                **case,
                "lemma_P": P_CONSISTENT[index],
                "P": share(mask & right["P"]),
                "lemma_anti-P": ANTI_CONSISTENT[index],
                "anti-P": share(mask & right["anti-P"]),
            }
            for index, (case, mask) in enumerate(zip(self._rows(), self.masks, strict=True))
        ]
        return pl.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class ItemPairs(Result):
    """Pairs of items: how popularity, ratings and, where it is known, relevance order them.

    Made by `item_pairs` and `pairs_of_systems`. Shares are of all pairs of the items that are
    counted. Two rules for ties, as in mena2021 and its counts: `disagree` and `agree` are strict,
    the four `cases` count a tie of popularity or relevance as *disagree*, and equal decrement
    rates, or one that is 0/0, as *not steeper*. `cases_strict` has ties of either apart.
    """

    observed: ObservedPairs
    identified: TruePairs | None
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
    def true(self) -> TruePairs:
        """The pairs by the truth; an error without random judgments."""
        if self.identified is None:
            raise SettingError("relevance is not identified: give random=… (random judgments)")
        return self.identified

    @property
    def items(self) -> int:
        """The items whose pairs are counted."""
        return self.observed.items

    @property
    def pairs(self) -> int:
        """How many pairs these items have."""
        return self.items * (self.items - 1) // 2

    @property
    def sampled(self) -> int | None:
        """How many random pairs were counted; None = all pairs."""
        return self.observed.signs.pairs if self.observed.signs.sampled else None

    def error(self, share: float) -> float:
        """Return the standard error of a share: 0 where all pairs were counted."""
        return self.observed.signs.error(share)

    @property
    def verdict(self) -> Reliability:
        """Which family of metrics is likely the more reliable here, and why."""
        observed = self.observed
        if self.identified is None:
            cases = list(observed.cases.values())
            return without_truth(observed.disagree, cases, observed.popular_and_relevant)
        right, relevant = self.true.consistent, self.true.popular_and_relevant
        return from_truth(right["P"], right["anti-P"], relevant, self.consistency_error)

    def table(self) -> pl.DataFrame:
        """Return a row per case, as rated; `true.table()` has the cases by the truth."""
        return self.observed.table()

    def _content(self) -> dict[str, object]:
        observed = self.observed
        content: dict[str, Any] = {
            "items": self.items,
            "pairs": self.pairs,
            "sampled": self.sampled,
            "unrated": self.unrated,
            "rated_by_everyone": self.everyone,
            "disagree": observed.disagree,
            "agree": observed.agree,
            "ties": observed.ties,
            **observed.shares(),
            "popularity_and_rating_agree": observed.popular_and_relevant,
            "tau": observed.tau,
            "lemma1": observed.lemma1,
        }
        if self.sampled:
            content["standard_error"] = {
                name: self.error(content[name]) for name in ("disagree", "agree", "ties")
            } | {"cases": {name: self.error(share) for name, share in observed.cases.items()}}
        if self.identified is not None:
            content["truth"] = {
                "items": self.true.items,
                "unidentified": self.unidentified,
                **self.true.shares(),
                "popularity_and_relevance_agree": self.true.popular_and_relevant,
                "consistent": self.true.consistent,
                "consistency_error": self.consistency_error,
                "lemma2": self.true.lemma2,
                "lemma3": self.true.lemma3,
            }
        return {**content, "verdict": self.verdict, "notes": self.notes}

    def figure(self) -> Figure:
        """Draw the shares of the four cases, and what the optimal rankings do in each."""
        from unskew.bias import charts

        notes = [
            "the best orders for precision and anti-precision disagree on "
            f"{self.observed.disagree:.1%} of pairs",
            self.footer()[0],
        ]
        return charts.cases(self.table(), self.title, notes)

    def _explanation(self) -> list[str]:
        observed = self.observed
        looked = f"{counted(self.pairs, 'pair')} of {counted(self.items, 'item')}"
        if self.sampled:
            looked = (
                f"{self.sampled:,} random pairs of {self.items:,} items, standard error of a share "
                f"at most {self.error(0.5):.2%}"
            )
        lines = [
            looked + _left_out(self.unrated, "nobody rated", self.everyone, "all users rated"),
            f"observed optimal rankings of precision and anti-precision: disagree on "
            f"{observed.disagree:.2%} of pairs, agree on {observed.agree:.2%}, ties "
            f"{observed.ties:.2%}; τ_b = {observed.tau:.2f}",
            f"odds of popularity steeper than both relevance and non-relevance, as rated: "
            f"{observed.steeper['both']:.2%}",
        ]
        if self.identified is not None:
            true = self.true
            shares, lemma = true.consistent, true.lemma3
            missing = f"; {self.unidentified:,} without" if self.unidentified else ""
            lines += [
                f"truth ({counted(true.items, 'item')} with random judgments{missing}): "
                f"popularity and relevance agree on {true.popular_and_relevant:.2%} of pairs",
                f"item pairs in the true order: observed precision {shares['P']:.2%}, "
                f"anti-precision {shares['anti-P']:.2%}, both {true.lemma2:.2%}; as Lemma 3 "
                f"predicts: {lemma['P']:.2%} and {lemma['anti-P']:.2%}",
            ]
        return lines

    def _conclusion(self) -> list[str]:
        return str(self.verdict).splitlines()

    def display_tables(self, digits: int | None = None) -> list[Table]:  # noqa: ARG002 - percent
        """Return the shares of the cases in percent."""
        header = ["popularity and rating", "pairs", "ties apart", "optimal rankings"]
        rows = [
            [row["case"], f"{row['share']:.2%}", f"{row['strict']:.2%}", row["lemma"]]
            for row in self.table().iter_rows(named=True)
        ]
        apart = self.observed.cases_strict["tied"]
        rows.append(["tied", "–", f"{apart:.2%}", "–"])
        return [Table.of_rows(header, rows, left=(0, 3), title=self.title)]

    def _summary(self) -> str:
        share = self.observed.disagree
        return f"{self.pairs:,} of {self.items:,} items, disagree {share:.1%}"


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
) -> ItemPairs:
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

    >>> from unskew.bias.pairs.item_pairs import item_pairs
    >>> from unskew.bias.popularity.item_counts import ItemCounts
    >>> pairs = item_pairs(ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10))
    >>> pairs.observed.disagree, pairs.observed.cases["agree, steeper"]
    (1.0, 1.0)
    """
    counts = counts_of(ratings, liked, random, users)
    return pairs_of(counts, sample=sample, seed=seed, threads=threads)


def pairs_of(
    counts: ItemCounts, *, sample: int | None = None, seed: int = 0, threads: int | None = None
) -> ItemPairs:
    """Count the pairs of the items that can be looked at."""
    usable, identified = counts.usable, counts.identified
    settings: dict[str, Any] = {"sample": sample, "seed": seed, "threads": threads}
    notes = list(counts.notes)
    rated_only = replace(counts, asked=None, asked_liked=None).take(usable)
    observed = ObservedPairs(count_signs(rated_only, False, **settings))
    true, error = None, math.nan
    if counts.asked is not None:
        if np.count_nonzero(identified) >= 2:
            part = counts.take(identified)
            true = TruePairs(count_signs(part, True, **settings))
            error = math.nan if true.signs.sampled else consistency_error(part, threads)
        else:
            notes.append(
                "fewer than two rated items have random judgments, so the truth is not known"
            )
    return ItemPairs(
        observed=observed,
        identified=true,
        unrated=int(counts.unrated.sum()),
        everyone=int(counts.everyone.sum()),
        unidentified=int(np.count_nonzero(usable & ~identified)) if true is not None else 0,
        consistency_error=error,
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
) -> ItemPairs:
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
    >>> from unskew.bias.pairs.item_pairs import pairs_of_systems
    >>> seen = {"user": [1, 2, 3, 1], "item": ["x", "x", "y", "z"], "rating": [5, 2, 4, 1]}
    >>> pairs_of_systems(seen, {2: ["y"]}, {3: ["x", "z"]}, k=1, liked=4)
    ItemPairs(1 of 2 items, disagree 100.0%)
    """
    if k < 1:
        raise SettingError(f"k={k}: at least one item of each list is needed")
    counts = counts_of(ratings, liked, random, users)
    items = Ids.union(*(_top(read_run(run), k) for run in (a, b)))[0]
    codes = counts.items.codes(items.values)
    unknown = int(np.count_nonzero(codes < 0))
    part = pairs_of(
        counts.take(np.sort(codes[codes >= 0])), sample=sample, seed=seed, threads=threads
    )
    return replace(
        part,
        unrated=part.unrated + unknown,
        title=f"Pairs of the {len(items):,} items in the top {k} of either system",
    )


def _top(run: Run, k: int) -> Ids:
    """Return the items in the first k places of any list."""
    return Ids.number(run.to_polars().filter(pl.col("rank") <= k)["item"])[0]


def _left_out(first: int, why: str, second: int, reason: str) -> str:
    parts = [f"{n:,} that {text}" for n, text in ((first, why), (second, reason)) if n]
    return f"; left out: {', '.join(parts)}" if parts else ""
