"""mena2021: checks of lemmas, toy examples and printed correlations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from unskew.bias.pairs.item_pairs import item_pairs
from unskew.report.text import number
from unskew_studies.lab import Lab
from unskew_studies.mena2021 import printed
from unskew_studies.mena2021.measurements_lemmas import (
    at_random,
    lemma_2,
    lemma_worlds,
    overall,
    p_of_tau,
    rates_order_alike,
    toys,
    truth_tables,
)
from unskew_studies.paper import MeasuredValue


def least_significant(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the largest p-value of a printed τ of sixteen systems."""
    weakest = min(printed.correlations(), key=abs)
    note = f"That of τ = {number(weakest, 2)}, anti-MRR on CM100k in Fig. 17."
    return MeasuredValue(p_of_tau(weakest), note=note)


def truth_tables_hold(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the least share of pairs on which a row of the truth tables holds."""
    table = lab.table(truth_tables)
    least = float(table["holds"].to_numpy().min())
    return MeasuredValue(least, text=f"all {table.height} rows" if least == 1 else "")


def toy_numbers(lab: Lab, _dataset_name: str, *, places: Sequence[str]) -> MeasuredValue:
    """Return the largest distance of a toy's number from the printed one."""
    table = lab.table(toys).filter(pl.col("place").str.slice(0, 6).is_in(places))
    far = float((table["printed"] - table["found"]).abs().to_numpy().max())
    return MeasuredValue(far, text=f"{table.height} numbers, at most {far:.4f} apart")


def rates_alike(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return on which share of all small functions the two rates order alike."""
    return MeasuredValue(rates_order_alike())


def lemma_2_as_printed(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return on which share of pairs Table 4's first row holds under its printed condition."""
    pairs = item_pairs(lemma_2(lab.seed, also_disliked=False))
    consistent = overall(pairs, "lemma2", "true overall")
    note = "Under both conditions, as §7 and the proof have them, all pairs are consistent (3-39)."
    return MeasuredValue(consistent, note=note)


def lemma_2_constants(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return for which share of items the decomposition of popularity holds as printed."""
    counts = lemma_2()
    liking, other = 1 / 2, 1 / 4
    right = np.isclose(counts.p_train, other + (liking - other) * counts.p_rel).mean()
    wrong = np.isclose(counts.p_train, liking + (other - liking) * counts.p_rel).mean()
    note = f"a and b are swapped; with a = p(train|rel), b = p(train|¬rel): {right:.0%} of items."
    return MeasuredValue(float(wrong), note=note)


def lemmas_in_worlds(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return by how much, at least, observed orders side with the truth as Lemmas 2 and 3 say."""
    table = lab.table(lemma_worlds)
    expected = {"relevance-only": (1, 1), "popular-good": (1, -1), "inverted": (-1, 1)}
    ends: list[list[float]] = []
    words = []
    for name, signs in expected.items():
        rows = {row["metric"]: row for row in table.filter(world=name).iter_rows(named=True)}
        for metric, sign in zip(("P", "anti-P"), signs, strict=True):
            row = rows[metric]
            ends.append(sorted(sign * (100 * row[at] - 50) for at in ("low", "consistent", "high")))
        shares = (f"{100 * rows[metric]['consistent']:.0f}" for metric in ("P", "anti-P"))
        words.append(f"{name} {' and '.join(shares)} %")
    low, value, high = (min(end[at] for end in ends) for at in range(3))
    text = f"{', '.join(words)} of the pairs; least distance from half {value:.1f} points"
    return MeasuredValue(value, low, high, text=text)


def unbiased_at_random(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the largest distance from what an unbiased sample gives, in standard deviations."""
    return MeasuredValue(float(lab.table(at_random)["z"].abs().to_numpy().max()))
