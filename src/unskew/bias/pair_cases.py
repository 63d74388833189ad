"""The four cases of mena2021's lemmas over pairs of items, as rated and by the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.bias.steepness import NONREL, REL, TRUE_NONREL, TRUE_REL, Signs

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
        bad, good = self._over_irrelevance, self._over_relevance
        return [alike & bad, alike & ~bad, ~alike & good, ~alike & ~good]

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
        bad, good = self._over_irrelevance, self._over_relevance
        shares = {"relevance": good, "non-relevance": bad, "both": good & bad}
        return {name: self.signs.share(mask) for name, mask in shares.items()}

    @property
    def popular_and_relevant(self) -> float:
        """Share of pairs on which popularity and relevance agree."""
        return self.signs.share(self.signs.agree("odds", self.relevant["of"]))

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
        share, strict = self.signs.share, self.cases_strict
        rows = [
            {
                "case": name,
                "share": share(mask),
                "strict": strict[name],
                "lemma": "disagree" if predicted else "agree",
                "disagree": share(mask & self._disagree),
                "agree": share(mask & ~self._disagree & ~self._tied),
                "ties": share(mask & self._tied),
            }
            for name, mask, predicted in zip(CASES, self.masks, DISAGREEING, strict=True)
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
        share, strict, right = self.signs.share, self.cases_strict, self._consistent()
        rows = [
            {
                "case": name,
                "share": share(mask),
                "strict": strict[name],
                "lemma_P": P_CONSISTENT[at],
                "P": share(mask & right["P"]),
                "lemma_anti-P": ANTI_CONSISTENT[at],
                "anti-P": share(mask & right["anti-P"]),
            }
            for at, (name, mask) in enumerate(zip(CASES, self.masks, strict=True))
        ]
        return pl.DataFrame(rows)
