"""bellogin2017, sections 3 and 4: checks of claims about designs and sparsity."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from unskew.stats.correlation import kendall
from unskew.stats.intervals.means import mean_interval
from unskew_studies.bellogin2017.checks import (
    KNN,
    MF,
    PLSA,
    POPULAR,
    RANDOM,
    TINY,
    alike,
    by_system,
    curve,
    hit_error,
    least_of,
    listed,
    mean_of,
    only,
    place,
    ratio,
)
from unskew_studies.bellogin2017.measurements import (
    AP,
    AR,
    AR_ALL,
    COMMON,
    LEARNING,
    NDCG,
    ONE,
    RECALL,
    RR,
    TOTAL,
    P,
)
from unskew_studies.bellogin2017.measurements_designs import (
    bounds,
    configurations,
    larger,
    significance,
    sparser,
    sparser_fixed,
    thresholds,
)
from unskew_studies.bellogin2017.measurements_popularity import (
    chance,
)
from unskew_studies.lab import Lab, UndefinedError
from unskew_studies.paper import MeasuredValue

# Section 3: designs


def most_of_one_relevant(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest P@10 that any system has on any 1R list."""
    rows = only(lab.table(configurations, dataset_name), design=ONE, metric=P)
    return MeasuredValue(float(np.max(rows["most"].to_numpy())))


def popularity_in_ar(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's P@10 in AR, over all users."""
    rows = only(lab.table(configurations, dataset_name), design=AR, system=POPULAR, metric=P)
    value, low, high = mean_interval(rows["value"].to_list())
    return MeasuredValue(math.nan if value is None else value, low, high)


def _orders(lab: Lab, dataset_name: str, metric: str = P) -> dict[str, dict[str, float]]:
    table = lab.table(configurations, dataset_name)
    names = table["design"].unique(maintain_order=True).to_list()
    return {name: by_system(table, design=name, metric=metric) for name in names}


def _listed_by_design(values: Mapping[str, Mapping[str, float]]) -> str:
    return "; ".join(f"{design}: {listed(each)}" for design, each in values.items())


def plsa_first(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count in which share of the configurations pLSA is the best system."""
    orders = _orders(lab, dataset_name)
    first = [place(values, PLSA) == 1 for values in orders.values()]
    return MeasuredValue(
        sum(first) / len(first),
        text=f"{sum(first)} of {len(first)}",
        note=_listed_by_design(orders),
    )


def popularity_second(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's worst place in the configurations."""
    orders = _orders(lab, dataset_name)
    worst = max(place(values, POPULAR) for values in orders.values())
    return MeasuredValue(worst, note=f"With our settings of kNN. {_listed_by_design(orders)}")


def mf_over_knn(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count in which share of the configurations MF is better than kNN."""
    orders = _orders(lab, dataset_name)
    better = [values[MF] > values[KNN] for values in orders.values()]
    return MeasuredValue(
        sum(better) / len(better),
        text=f"{sum(better)} of {len(better)}",
        note="The paper gives no settings of either; ours were tuned by P@10.",
    )


def popularity_first_in_ar(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's place in AR."""
    values = _orders(lab, dataset_name)[AR]
    return MeasuredValue(place(values, POPULAR), note=listed(values))


def swaps_between_designs(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the pairs of systems that AR and 1R order differently."""
    orders = _orders(lab, dataset_name)
    one, other = orders[AR], orders[ONE]
    names = list(one)
    swaps = sum(
        (one[a] - one[b]) * (other[a] - other[b]) < 0
        for number, a in enumerate(names)
        for b in names[:number]
    )
    return MeasuredValue(swaps, note=_listed_by_design({AR: one, ONE: other}))


def test_items_like_all(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest relative difference between TI and AI, of systems but random."""
    orders = _orders(lab, dataset_name)
    if AR_ALL not in orders:
        raise UndefinedError("with so many items, all of them are not ranked")
    apart = [
        abs(ratio(orders[AR_ALL][name] - orders[AR][name], orders[AR][name])) for name in LEARNING
    ]
    return MeasuredValue(max(apart), text=f"{100 * max(apart):.2f} %")


def all_pairs_differ(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest p-value of Wilcoxon's test over all pairs and configurations."""
    worst = (
        lab.table(significance, dataset_name)
        .sort("p", descending=True, nulls_last=True)
        .row(0, named=True)
    )
    note = f"Largest in {worst['design']}: {worst['a']} and {worst['b']}."
    return MeasuredValue(worst["p"], text=f"p = {worst['p']:.1e}", note=note)


def other_metrics_alike(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ between the order by P@10 and that by nDCG, MAP and MRR."""
    orders = _orders(lab, dataset_name)
    taus = {
        f"{design}, {metric}": alike(values, _orders(lab, dataset_name, metric)[design])
        for design, values in orders.items()
        for metric in (NDCG, AP, RR)
    }
    return least_of(taus)


def other_thresholds_alike(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ between the order with the paper's threshold and with others."""
    table = lab.table(thresholds, dataset_name)
    threshold, *others = table["liked"].unique(maintain_order=True).to_list()
    if not others:
        raise UndefinedError("there is no other rating that could be the smallest liked one")
    taus = {
        f"{design}, liked from {liked:g}": alike(
            by_system(table, design=design, liked=threshold),
            by_system(table, design=design, liked=liked),
        )
        for design in (AR, ONE)
        for liked in others
    }
    return least_of(taus)


def bounds_broken(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count where 1RP@10 lies outside its bounds, with the same others for all lists of a user."""
    table = lab.table(bounds, dataset_name)
    out = (table["value"] < table["low"] - TINY) | (table["value"] > table["high"] + TINY)
    return MeasuredValue(int(out.sum()), text=f"{int(out.sum())} of {table.height}")


def fresh_within_bounds(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of points at which 1RP@10 with fresh others lies within the bounds.

    The bounds are those of one draw, so that chance alone moves the value by some standard errors.
    """
    thin = only(lab.table(sparser, dataset_name), design=ONE, metric=P)
    keys = ("system", "fold", "at", "fresh")
    points = pl.concat(
        table.with_columns(pl.col(at).cast(pl.Float64).alias("at"), pl.col("value").alias("fresh"))
        .select(*keys)
        .with_columns(along=pl.lit(at))
        for table, at in ((thin, "kept"), (lab.table(larger, dataset_name), "targets"))
    )
    both = lab.table(bounds, dataset_name).join(points, on=["along", "at", "fold", "system"])
    inside, strict = 0, 0
    for low, fresh, high, lists in both.select("low", "fresh", "high", "lists").iter_rows():
        reach = 3 * hit_error(fresh, lists)
        inside += low - reach <= fresh <= high + reach
        strict += low <= fresh <= high
    note = f"Without any allowance for chance: {strict} of {both.height}."
    return MeasuredValue(ratio(inside, both.height), text=f"{inside} of {both.height}", note=note)


def bounds_close_in(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ of the bounds' distance with fewer targets and with more test ratings."""
    table = lab.table(bounds, dataset_name).with_columns(width=pl.col("high") - pl.col("low"))
    ranges, taus = [], []
    for along, sign in (("targets", -1), ("kept", 1)):
        for system in (PLSA, KNN):
            at, width = curve(table, "at", system, "width", along=along)
            taus.append(sign * kendall(at, width))
            ranges.append(f"{system} over {along}: {width[0]:.4f} to {width[-1]:.4f}")
    equal = float(only(table, along="one each")["width"].to_numpy().max())
    note = f"Distances: {'; '.join(ranges)}. With one liked test item per user: {equal:.1g}."
    return MeasuredValue(
        min(taus) if equal < TINY else -1.0, text=f"τ = {min(taus):.2f}", note=note
    )


# Section 4: sparsity


def random_as_expected(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare ρ, which a random order is expected to score in AR exactly, with σδ."""
    table = lab.table(chance, dataset_name)
    rho, approximate = (mean_of(table, name, design=AR) for name in ("rho", "sigma_delta"))
    seen = by_system(lab.table(configurations, dataset_name), design=AR, metric=P)[RANDOM]
    return MeasuredValue(
        ratio(rho, approximate),
        text=f"ρ = {rho:.5f}, σδ = {approximate:.5f}",
        note=f"Random recommendation had {seen:.5f}. σδ is an approximation: active users have "
        "smaller target sets.",
    )


def one_relevant_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count by how many standard errors random recommendation misses 1/t in 1R."""
    rows = only(lab.table(configurations, dataset_name), design=ONE, system=RANDOM, metric=P)
    lists = rows["lists"].to_numpy()
    value = float(np.average(rows["value"].to_numpy(), weights=lists))
    expected = float(np.average(rows["random"].to_numpy(), weights=lists))
    apart = abs(value - expected) / hit_error(expected, int(lists.sum()))
    return MeasuredValue(apart, text=f"{value:.4f} against 1/t = {expected:.4f}")


def total_precision(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far the precision of whole lists is from ρ, of systems that rank every target."""
    rows = only(lab.table(configurations, dataset_name), metric=TOTAL).filter(
        pl.col("covered") == 1
    )
    if rows.is_empty():
        raise UndefinedError("no system ranks every target")
    apart = (rows["value"] - rows["random"]).abs().to_numpy().max()
    names = ", ".join(rows["system"].unique(maintain_order=True))
    return MeasuredValue(float(apart), text=f"{apart:.1g}", note=f"Systems that rank all: {names}.")


def linear_in_density(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least R² of a line through the origin, of P@10 in AR over the share kept."""
    table = lab.table(sparser, dataset_name)
    fits = {}
    for system in (*LEARNING, RANDOM):
        # What a random order is expected to score has no noise that would hide the line.
        column = "random" if system == RANDOM else "value"
        x, y = curve(table, "kept", system, column, design=AR, metric=P)
        rest = y - x * float(x @ y) / float(x @ x)
        spread = float(((y - y.mean()) ** 2).sum())
        fits[system] = 1 - float(rest @ rest) / spread if spread > 0 else math.nan
    worst = least_of(fits)
    return MeasuredValue(worst.value, note=f"R²: {listed(fits)}.")


def _end_to_end(rows: pl.DataFrame) -> float:
    """Return by how many standard errors 1RP@10 differs between the least and the largest share.

    The lists of the least share are a sample of all lists, drawn without replacement.
    """
    ends = rows.group_by("kept").agg(pl.col("value").mean(), pl.col("lists").sum()).sort("kept")
    few, many = ends.row(0, named=True), ends.row(-1, named=True)
    apart = 1 - few["lists"] / many["lists"]
    error = hit_error(many["value"], few["lists"]) * math.sqrt(max(apart, TINY))
    return float(abs(few["value"] - many["value"]) / error)


def flat_in_density(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far 1RP@10 moves from a tenth of the test ratings to all, in standard errors."""
    table = only(lab.table(sparser, dataset_name), design=ONE, metric=P)
    names = (*LEARNING, RANDOM)
    moved = max(_end_to_end(only(table, system=name)) for name in names)
    ends = {name: curve(table, "kept", name)[1] for name in names}
    ranges = ", ".join(f"{name} {y[0]:.4f} to {y[-1]:.4f}" for name, y in ends.items())
    fixed = lab.table(sparser_fixed, dataset_name)
    back, without = (_change(fixed, removed) for removed in ("others", "left out"))
    return MeasuredValue(
        moved,
        text=f"{moved:.1f} standard errors",
        note=f"From a tenth to all test ratings: {ranges}. With fewer test ratings the least "
        "popular items have none and are no candidates any more, which makes the others harder to "
        "beat. With the candidates of the whole test part, and expectations over all draws of "
        f"others, a tenth gives against all: {back}. Liked ratings that were removed are then "
        f"among the others, as not relevant; with these left out: {without}.",
    )


def _change(table: pl.DataFrame, removed: str) -> str:
    """Return the change of each system's value from that with all test ratings, in words."""
    parts = []
    for name in LEARNING:
        rows = only(table, removed=removed, system=name)
        value, whole = (float(np.mean(rows[column].to_numpy())) for column in ("value", "whole"))
        error = math.sqrt(float((rows["error"].to_numpy() ** 2).sum())) / rows.height
        change = 100 * (ratio(value, whole) - 1)
        parts.append(f"{name} {change:+.2f} % (± {100 * ratio(error, whole):.2f})")
    return ", ".join(parts)


def inverse_to_targets(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the exponent of 1RP@10 over the size of target sets that is farthest from -1."""
    table = lab.table(larger, dataset_name)
    slopes, falling = {}, True
    for system in (*LEARNING, RANDOM):
        x, y = curve(table, "targets", system)
        if not (y > 0).all():
            raise UndefinedError("a system has no hit at all in larger target sets")
        slopes[system] = float(np.polyfit(np.log(x), np.log(y), 1)[0])
        falling = falling and bool((np.diff(y) < 0).all())
    x, y = curve(table, "targets", RANDOM)
    lists = only(table, system=RANDOM).group_by("targets").agg(pl.col("lists").sum())
    number = lists.sort("targets")["lists"].to_list()
    off = max(
        abs(value - 1 / size) / hit_error(1 / size, count)
        for size, value, count in zip(x, y, number, strict=True)
    )
    worst = max(slopes.values(), key=lambda slope: abs(slope + 1))
    return MeasuredValue(
        worst if falling else math.inf,
        text=f"{worst:.2f}",
        note=f"Exponents: {', '.join(f'{name} {slope:.2f}' for name, slope in slopes.items())}. "
        f"Random misses 1/t by {off:.1f} standard errors at the most.",
    )


def order_kept(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ between the order with all test ratings and with fewer."""
    table = lab.table(sparser, dataset_name).filter(pl.col("metric") == P)
    taus = {
        f"{design}, {share:.0%} kept": alike(
            by_system(table, design=design, kept=1.0), by_system(table, design=design, kept=share)
        )
        for design in (AR, ONE)
        for share in sorted(table["kept"].unique().to_list())[:-1]
    }
    return least_of(taus)


def metrics_and_density(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether MRR and nDCG@10 rise with density in AR, and recall changes the least."""
    table = lab.table(sparser, dataset_name)
    change, rises = {}, True
    for metric in COMMON:
        ends = []
        for system in LEARNING:
            _, y = curve(table, "kept", system, design=AR, metric=metric)
            ends.append(ratio(float(y[-1]), float(y[0])))
        change[metric] = float(np.mean(ends))
        if metric in (RR, NDCG, P):
            rises = rises and min(ends) > 1
    if math.isnan(sum(change.values())):
        return MeasuredValue(math.nan, note="a metric is 0 with few test ratings")
    least = min(change, key=lambda name: abs(math.log(change[name])))
    steady = abs(math.log(change[RECALL])) < min(
        abs(math.log(change[one])) for one in (RR, NDCG, P)
    )
    note = (
        "With all test ratings against a tenth of them, mean over systems: "
        + ", ".join(f"{name} x {value:.2f}" for name, value in change.items())
        + f". The steadiest is {least}."
    )
    return MeasuredValue(rises and steady, note=note)
