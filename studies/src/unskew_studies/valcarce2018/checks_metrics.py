"""valcarce2018: checks of claims about metrics and cutoffs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import numpy as np
import polars as pl

from unskew.stats.correlation import kendall
from unskew_studies.lab import Lab, MissingDataError, UndefinedError
from unskew_studies.paper import PRINTED, MeasuredValue
from unskew_studies.valcarce2018.checks import on_results
from unskew_studies.valcarce2018.measurements import (
    DEPTH,
    ReleasedResults,
    Results,
    designs,
    gains,
    ideal,
    mean_taus,
    needs_depth,
    powers,
    scores,
    sparsity,
    unordered_pairs,
)
from unskew_studies.valcarce2018.printed import (
    CUTOFFS,
    DEFINED,
    FAMILIES,
    FIGURE_1,
    FIGURE_5,
    SETS,
    SEVEN,
    TABLE_3,
    as_pairs,
    cutoffs,
)

OTHER_SETS = ("librarything", "beeradvocate")
"""The data sets other than MovieLens 1M."""


class Source(TypedDict, total=False):
    """The note and the kind of evidence of values that are partly printed ones."""

    note: str
    evidence_kind: str


# Correlations


def furthest(taus: pl.DataFrame, printed: pl.DataFrame) -> MeasuredValue:
    """Return the largest difference between τ as found and as printed."""
    both = taus.join(printed, on=["a", "b"], suffix="_printed")
    gap = (both["tau"] - both["tau_printed"]).abs()
    same = int((gap <= 0.005 + 1e-9).sum())
    most = _number(gap.max())
    text = f"{same} of {both.height} equal to two decimals, largest difference {most:.4f}"
    return MeasuredValue(most, text=text)


@on_results
def figure_1(results: Results) -> MeasuredValue:
    """Return the largest difference between Fig. 1 as found and as printed."""
    columns = cutoffs("nDCG")
    return furthest(results.taus(columns), as_pairs(FIGURE_1, list(columns)))


def figure_5(lab: Lab, _dataset_name: str, *, name: str) -> MeasuredValue:
    """Return the largest difference between Fig. 5 of a data set as released and as printed."""
    printed, results = as_pairs(FIGURE_5[name], list(SEVEN)), ReleasedResults(lab, name)
    defined = furthest(results.taus(DEFINED), printed)
    return replace(furthest(results.taus(SEVEN), printed), as_defined=defined.value)


@on_results
def least_of_ndcg(results: Results) -> MeasuredValue:
    """Return the smallest τ between cutoffs of nDCG."""
    return _least(unordered_pairs(results.taus(cutoffs("nDCG"))))


@on_results
def least_of_cutoffs(results: Results) -> MeasuredValue:
    """Return the smallest τ between two cutoffs of a metric."""
    smallest = {
        family: _least(unordered_pairs(results.taus(cutoffs(family)))) for family in FAMILIES
    }
    least = min(smallest.values(), key=lambda one: one.value)
    text = "; ".join(f"{family} {one}" for family, one in smallest.items())
    return MeasuredValue(least.value, least.low, least.high, text=text)


@on_results
def above_085(results: Results) -> MeasuredValue:
    """Return the share of τ between cutoffs above 0.85, of the metric with the smallest share."""
    shares = {
        family: _share_above(unordered_pairs(results.taus(cutoffs(family))), 0.85)
        for family in FAMILIES
    }
    return MeasuredValue(min(shares.values()), text=_listed(shares))


@on_results
def deep_above_09(results: Results) -> MeasuredValue:
    """Return the share of τ above 0.9 between cutoffs above 20, over metrics."""
    return _deep_above_09([results])


def both_deep_above_09(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the same share in the released results of the two other data sets together."""
    return _deep_above_09([ReleasedResults(lab, name) for name in OTHER_SETS])


def _deep_above_09(several: Sequence[Results]) -> MeasuredValue:
    deep = [f"@{k}" for k in CUTOFFS if k > 20]
    pairs = [
        unordered_pairs(results.taus(cutoffs(family))).filter(
            pl.col("a").is_in(deep) & pl.col("b").is_in(deep)
        )
        for results in several
        for family in FAMILIES
    ]
    taus = pl.concat(pairs)
    known = taus["tau"].drop_nans()
    return MeasuredValue(
        _share_above(taus, 0.9),
        text=f"{_share_above(taus, 0.9):.1%} of {taus.height}",
        note=f"The smallest is {_number(known.min()):.3f}.",
    )


def taus_by_set(lab: Lab, names: Sequence[str]) -> tuple[dict[str, pl.DataFrame], Source]:
    """Return τ between the seven metrics by data set: from released scores, or as printed."""
    by_title, printed = {}, []
    for name in names:
        try:
            taus = ReleasedResults(lab, name).taus(SEVEN)
        except MissingDataError:
            taus = as_pairs(FIGURE_5[name], list(SEVEN))
            printed.append(SETS[name])
        by_title[SETS[name]] = unordered_pairs(taus)
    return by_title, _source(printed, "Fig. 5")


def least_tau(lab: Lab, _dataset_name: str, *, name: str) -> MeasuredValue:
    """Return the smallest τ between two of the seven metrics."""
    by_title, source = taus_by_set(lab, [name])
    least = _least(by_title[SETS[name]])
    return MeasuredValue(least.value, text=str(least), **source)


def below_08(lab: Lab, _dataset_name: str, *, names: Sequence[str]) -> MeasuredValue:
    """Return how many pairs of metrics have τ below 0.8, in the set with fewest."""
    by_title, source = taus_by_set(lab, names)
    counts = {title: float((taus["tau"] < 0.8).sum()) for title, taus in by_title.items()}
    return MeasuredValue(min(counts.values()), text=_listed(counts, 0), **source)


def tau_between(
    lab: Lab,
    _dataset_name: str,
    *,
    a: str,
    b: str,
    names: Sequence[str],
) -> MeasuredValue:
    """Return τ between two metrics, in the data set where it is smallest."""
    by_title, source = taus_by_set(lab, names)
    both = (pl.col("a") == a) & (pl.col("b") == b)
    values = {title: float(taus.filter(both)["tau"][0]) for title, taus in by_title.items()}
    return MeasuredValue(min(values.values()), text=_listed(values), **source)


def mrr_outlier_of(lab: Lab, _dataset_name: str, *, names: Sequence[str]) -> MeasuredValue:
    """Return whether MRR has the lowest mean τ with the others in every set."""
    by_title, source = taus_by_set(lab, names)
    means = {title: _mean_with_others(taus) for title, taus in by_title.items()}
    text = "; ".join(f"{title}: {_listed(values, 3)}" for title, values in means.items())
    return MeasuredValue(all(_last(one) == "MRR" for one in means.values()), text=text, **source)


@on_results
def map_and_ndcg(results: Results) -> MeasuredValue:
    """Return τ between MAP and nDCG."""
    row = unordered_pairs(results.taus(SEVEN)).filter(
        (pl.col("a") == "MAP") & (pl.col("b") == "nDCG")
    )
    return _measured(row.row(0, named=True))


@on_results
def mrr_is_the_outlier(results: Results) -> MeasuredValue:
    """Return whether MRR has the lowest mean τ with the other metrics."""
    means = _mean_with_others(unordered_pairs(results.taus(SEVEN)))
    return MeasuredValue(_last(means) == "MRR", text=_listed(means, 3))


# Robustness


def deeper_under_sparsity(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Correlate the cutoff of nDCG with its mean τ when test ratings are taken away."""
    needs_depth(lab, dataset_name)
    return _deeper(mean_taus(lab.table(sparsity, dataset_name), cutoffs("nDCG")))


@on_results
def deeper_under_popularity(results: Results) -> MeasuredValue:
    """Correlate the cutoff of nDCG with its mean τ when popular items are taken away."""
    return _deeper(mean_taus(results.popularity, cutoffs("nDCG")))


def both_deeper(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smaller such correlation in the released results of the two other data sets."""
    correlations = [
        deeper_under_popularity(lab, dataset_name, released=name) for name in OTHER_SETS
    ]
    return MeasuredValue(
        min(one.value for one in correlations), text="; ".join(map(str, correlations))
    )


def half_the_test_set(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smallest mean τ of the seven metrics with half of the test ratings."""
    half = lab.table(sparsity, dataset_name).filter((pl.col("share") - 0.5).abs() < 1e-9)
    rows = {
        name: half.filter(pl.col("metric") == column).row(0, named=True)
        for name, column in SEVEN.items()
    }
    if any(row["tau"] is None for row in rows.values()):
        raise UndefinedError(f"{dataset_name}: all systems are equal on half of the test set")
    worst = min(rows.values(), key=lambda row: row["tau"])
    error = 1.96 * (worst["sd"] or 0.0) / math.sqrt(worst["samples"])
    means = _sorted({name: float(row["tau"]) for name, row in rows.items()})
    value = float(worst["tau"])
    return MeasuredValue(value, value - error, value + error, text=_listed(means, 3))


def most_robust_to_sparsity(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether P and nDCG are the two metrics most robust to sparsity."""
    means = _sorted(mean_taus(lab.table(sparsity, dataset_name), SEVEN))
    first, second = list(means)[:2]
    note = f"{first} and {second} are the most robust."
    return MeasuredValue({first, second} == {"P", "nDCG"}, text=_listed(means, 3), note=note)


def place_from_the_end(lab: Lab, dataset_name: str, *, metric: str) -> MeasuredValue:
    """Return a metric's place by robustness to sparsity; 1 is the least robust."""
    means = _sorted(mean_taus(lab.table(sparsity, dataset_name), SEVEN), falling=False)
    return MeasuredValue(1 + list(means).index(metric), text=_listed(means, 3))


@on_results
def p_best_mrr_worst(results: Results) -> MeasuredValue:
    """Return whether P is the most robust to popularity and MRR the least."""
    means = _sorted(mean_taus(results.popularity, SEVEN))
    order = list(means)
    right = order[0] == "P" and order[-1] == "MRR"
    note = "" if right else f"{order[0]} is the most robust, {order[-1]} the least."
    return MeasuredValue(right, text=_listed(means, 3), note=note)


def p_best_mrr_worst_overall(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the same of the mean over MovieLens 1M and LibraryThing.

    The paper draws no conclusion from BeerAdvocate.
    """
    several = [
        mean_taus(ReleasedResults(lab, name).popularity, SEVEN)
        for name in ("ml-1m", "librarything")
    ]
    means = _sorted({name: float(np.mean([one[name] for one in several])) for name in SEVEN})
    order = list(means)
    return MeasuredValue(order[0] == "P" and order[-1] == "MRR", text=_listed(means, 3))


@on_results
def collapse(results: Results) -> MeasuredValue:
    """Return whether τ is below 0.5 once 1 % of the items are gone, and below 0 later."""
    part = results.popularity.filter(pl.col("metric").is_in(list(SEVEN.values())))
    first = part.filter((pl.col("share") - 0.99).abs() < 1e-9)["tau"]
    least = _number(part["tau"].min())
    right = _number(first.min()) < 0.5 and least < 0
    text = f"{_number(first.min()):.2f} to {_number(first.max()):.2f} at 99 %, down to {least:.2f}"
    return MeasuredValue(right, text=text)


# Discriminative power


def table_3(lab: Lab, _dataset_name: str, *, name: str) -> MeasuredValue:
    """Return the largest difference between Table 3 of a data set as released and as printed."""
    pvalues = ReleasedResults(lab, name).pvalues
    twice, once = powers(pvalues, SEVEN), powers(pvalues, SEVEN, ordered=False)
    printed = dict(zip(SEVEN, TABLE_3[name], strict=True))
    gap, defined = (
        max(abs(powers_of[one] - printed[one]) for one in SEVEN) for powers_of in (twice, once)
    )
    note = (
        "The table adds up 420 ordered pairs, so every pair twice; over pairs as the text "
        f"defines it DP is {_listed(once, 2)}, up to {defined:.1f} less."
    )
    return MeasuredValue(gap, as_defined=defined, text=_listed(twice, 2), note=note)


@on_results
def deeper_power(results: Results) -> MeasuredValue:
    """Return mean DP of nDCG at cutoffs from 50 on, divided by that at cutoffs up to 20."""
    by_cutoff = powers(results.pvalues, cutoffs("nDCG"))
    return MeasuredValue(
        _ratio(by_cutoff), text=f"{_ratio(by_cutoff):.2f}", note=f"DP: {_listed(by_cutoff, 2)}."
    )


def deeper_power_everywhere(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the largest such ratio, of four metrics on three data sets."""
    ratios = {
        f"{family} {SETS[name]}": _ratio(
            powers(ReleasedResults(lab, name).pvalues, cutoffs(family))
        )
        for name in SETS
        for family in FAMILIES
    }
    worse = [name for name, ratio in ratios.items() if not ratio < 1]
    note = f"Deeper cutoffs are no better for {', '.join(worse)}." if worse else ""
    return MeasuredValue(max(ratios.values()), text=_listed(ratios, 2), note=note)


def power_by_set(lab: Lab) -> tuple[dict[str, dict[str, float]], Source]:
    """Return DP of the seven metrics by data set, from released p-values or as printed."""
    by_title, printed = {}, []
    for name, title in SETS.items():
        try:
            by_title[title] = powers(ReleasedResults(lab, name).pvalues, SEVEN)
        except MissingDataError:
            by_title[title] = dict(zip(SEVEN, TABLE_3[name], strict=True))
            printed.append(title)
    return by_title, _source(printed, "Table 3")


def ndcg_then_p(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether nDCG has the best mean place by DP over the data sets, and P the next."""
    by_title, source = power_by_set(lab)
    places = {
        name: np.mean([_place(powers, name) for powers in by_title.values()]) for name in SEVEN
    }
    order = sorted(places, key=lambda name: places[name])
    text = _listed({name: float(places[name]) for name in order}, 2)
    return MeasuredValue(order[:2] == ["nDCG", "P"], text=text, **source)


def bpref_among_the_worst(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the best place from the end that bpref has by DP in any data set."""
    by_title, source = power_by_set(lab)
    places = {title: 8 - _place(powers, "bpref") for title, powers in by_title.items()}
    return MeasuredValue(max(places.values()), text=_listed(places, 0), **source)


@on_results
def ndcg_and_p_first(results: Results) -> MeasuredValue:
    """Return whether nDCG and P have the smallest DP."""
    by_metric = _sorted(powers(results.pvalues, SEVEN), falling=False)
    right = set(list(by_metric)[:2]) == {"nDCG", "P"}
    hard = results.pvalues.sort("ndcg", descending=True).select("a", "b", "ndcg").head(3)
    pairs = {f"{a} and {b}": float(p) for a, b, p in hard.iter_rows()}
    note = f"{_once(results)} The largest p by nDCG: {_listed(pairs)}."
    return MeasuredValue(right, text=_listed(by_metric, 2), note=note)


@on_results
def bpref_from_the_end(results: Results) -> MeasuredValue:
    """Return the place from the end that bpref has by DP."""
    by_metric = powers(results.pvalues, SEVEN)
    text = _listed(_sorted(by_metric, falling=False), 2)
    return MeasuredValue(8 - _place(by_metric, "bpref"), text=text, note=_once(results))


def _once(results: Results) -> str:
    once = powers(results.pvalues, SEVEN, ordered=False)
    return f"DP over ordered pairs, as the paper's table; over pairs {_listed(once, 2)}."


# Metrics and designs


def within_0_and_1(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether every value of every user, system and metric lies between 0 and 1."""
    table = lab.table(scores, dataset_name)
    least, most = _number(table["least"].min()), _number(table["most"].max())
    right = least >= 0 and most <= 1 + 1e-9
    return MeasuredValue(right, text=f"{least:.3g} to {most:.3g}")


def ideal_reaches_1(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smallest of the seven means of a recommender that knows the test set."""
    table = lab.table(ideal, dataset_name)
    means = dict(table.select("metric", "mean").iter_rows())
    note = (
        f"P@{DEPTH} is at most the number of liked test items over {DEPTH}, Recall@{DEPTH} falls "
        "short for users who like more, and users who like nothing in the test count 0."
    )
    return MeasuredValue(min(means.values()), text=_listed(means, 3), note=note)


@on_results
def released_gains(results: Results) -> MeasuredValue:
    """Return the smallest τ of nDCG with the released variants of its gain."""
    means = results.means
    taus = {name: kendall(means["ndcg"], means[name]) for name in ("ndcg2", "ndcg45")}
    cut = min(
        kendall(means[f"ndcg_cut_{k}"], means[f"{name}_cut_{k}"]) for name in taus for k in CUTOFFS
    )
    note = f"At cutoffs it is smaller, down to {cut:.2f}."
    return MeasuredValue(min(taus.values()), text=_listed(taus, 2), note=note)


def gains_of_ours(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smallest τ of nDCG between two gains."""
    table = lab.table(gains, dataset_name)
    means = table.pivot("gain", index="system", values="mean")
    first, *others = (one for one in means.columns if one != "system")
    taus = {f"{first}–{name}": kendall(means[first], means[name]) for name in others}
    return MeasuredValue(min(taus.values()), text=_listed(taus, 2))


def other_designs(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smallest τ of nDCG@10 between AllItems and another design."""
    table = lab.table(designs, dataset_name)
    taus = {}
    for metric in table["metric"].unique(maintain_order=True):
        part = table.filter(pl.col("metric") == metric)
        means = part.pivot("design", index="system", values="mean")
        taus[metric] = {
            name: kendall(means["AllItems"], means[name])
            for name in means.columns
            if name not in ("system", "AllItems")
        }
    chosen, *others = taus
    note = "; ".join(f"{metric}: {_listed(taus[metric], 2)}" for metric in others)
    return MeasuredValue(min(taus[chosen].values()), text=_listed(taus[chosen], 2), note=f"{note}.")


# Parts of checks


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _measured(row: Mapping[str, float | None]) -> MeasuredValue:
    low, high = row.get("low"), row.get("high")
    known = low is not None and high is not None and not math.isnan(low)
    return MeasuredValue(_number(row["tau"]), low if known else None, high if known else None)


def _least(pairs: pl.DataFrame) -> MeasuredValue:
    row = pairs.sort("tau").row(0, named=True)
    one = _measured(row)
    text = f"{one.value:.4f} ({row['a']} and {row['b']})"
    return MeasuredValue(one.value, one.low, one.high, text=text)


def _share_above(pairs: pl.DataFrame, limit: float) -> float:
    return float((pairs["tau"] > limit).sum()) / pairs.height


def _mean_with_others(pairs: pl.DataFrame) -> dict[str, float]:
    """Return the mean τ of each metric with the others, the highest first."""
    means = {}
    for name in SEVEN:
        of_metric = pairs.filter((pl.col("a") == name) | (pl.col("b") == name))
        means[name] = _number(of_metric["tau"].mean())
    return _sorted(means)


def _last(means: Mapping[str, float]) -> str:
    return list(means)[-1]


def _deeper(means: Mapping[str, float]) -> MeasuredValue:
    values = pl.DataFrame({"cutoff": CUTOFFS, "tau": list(means.values())})
    value = values.select(pl.corr("cutoff", "tau", method="spearman")).item()
    names = list(means)
    text = f"{value:.2f} (τ {means[names[0]]:.3f} {names[0]} … {means[names[-1]]:.3f} {names[-1]})"
    return MeasuredValue(_number(value), text=text)


def _ratio(by_cutoff: Mapping[str, float]) -> float:
    deep = np.mean([by_cutoff[f"@{k}"] for k in CUTOFFS if k >= 50])
    shallow = np.mean([by_cutoff[f"@{k}"] for k in CUTOFFS if k <= 20])
    return float(deep / shallow) if shallow else math.nan


def _place(values: Mapping[str, float], name: str) -> int:
    return 1 + sum(value < values[name] for value in values.values())


def _sorted(means: Mapping[str, float], *, falling: bool = True) -> dict[str, float]:
    return dict(sorted(means.items(), key=lambda one: one[1], reverse=falling))


def _listed(values: Mapping[str, float], digits: int = 2) -> str:
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in values.items())


def _source(titles: Sequence[str], place: str) -> Source:
    """Return a note on the data sets of which only printed values are there."""
    if not titles:
        return {}
    return {"note": f"{' and '.join(titles)}: from {place} as printed.", "evidence_kind": PRINTED}
