"""castells2018: a check per claim."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import cast

import numpy as np
import polars as pl

from unskew.errors import DataError
from unskew.stats.correlation import kendall
from unskew_studies.castells2018 import checks_formulas as formulas
from unskew_studies.castells2018 import measurements_worlds as worlds
from unskew_studies.castells2018.measurements import (
    AVERAGE,
    AVERAGE_OF_ONE,
    BINS,
    CUTOFF,
    DENSITY,
    FREE,
    LIKED,
    METRICS,
    average_lead,
    bin_spread,
    cell,
    forced_density,
    largest_z,
    null_bins,
    null_flat,
    null_forced,
    null_random,
    null_slices,
    null_temporal,
    null_user_flat,
    overlap_factor,
    sigma,
    thinning,
    times_chance,
)
from unskew_studies.lab import Lab
from unskew_studies.paper import MeasuredValue

ONE_IN_A_THOUSAND = 3.2905
"""Standard errors of p = .001, both sides."""
THREE_SIGMA = 3.0
FAIR = 0.05
"""The distance from chance that a fair design may have, as a share of chance."""


def liked_share(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of liked ratings."""
    share = float(
        (lab.data(dataset_name).ratings.value >= lab.threshold(dataset_name, paper=LIKED)).mean()
    )
    return MeasuredValue(
        share, note="The paper takes 0.57, which is this share cut off, not rounded."
    )


def _ratios(table: pl.DataFrame, design: str, names: Sequence[str]) -> str:
    return ", ".join(f"{name} {times_chance(table, design, name):.3g}" for name in names)


def _least(values: Iterable[float]) -> float:
    """Return the smallest value; NaN if any is."""
    return float(np.min(list(values)))


def free_judgments_favour(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many times chance the systems score at least, with p < .001."""
    table = lab.table(null_random, dataset_name)
    ratio = {name: times_chance(table, "random", name) for name in FREE}
    half = {name: ONE_IN_A_THOUSAND * sigma(table, "random", name) for name in FREE}
    if any(map(math.isnan, half.values())):
        return MeasuredValue(math.nan, note="chance scores nothing on these data")
    last = min(FREE, key=lambda name: ratio[name] - half[name])
    low, high = ratio[last] - half[last], ratio[last] + half[last]
    return MeasuredValue(low, low, high, text=_ratios(table, "random", FREE) + " times chance")


def filtering_above_popularity(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return collaborative filtering over popularity, both on null data."""
    table = lab.table(null_random, dataset_name)
    hits = {name: _hits(table, name) for name in FREE}
    last = min("kNN", "iMF", key=hits.__getitem__)
    if not hits[last] > 0 or not hits["popularity"] > 0:
        return MeasuredValue(math.nan, note="there are systems without any hit on these data")
    ratio = hits[last] / hits["popularity"]
    # Hits are counts: the error of the ratio's logarithm follows from how many there are.
    half = math.exp(1.96 * math.sqrt(1 / hits[last] + 1 / hits["popularity"]))
    text = f"{_ratios(table, 'random', FREE)} times chance: {last} / popularity {ratio:.3g}"
    return MeasuredValue(ratio, ratio / half, ratio * half, text=text)


def _hits(table: pl.DataFrame, name: str) -> float:
    row = cell(table, "random", name)
    return CUTOFF * float(row["null_value"] or 0.0) * float(row["lists"] or 0.0)


def average_at_chance(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many times chance the average rating scores, with either smoothing."""
    table = lab.table(null_random, dataset_name)
    row = cell(table, "random", AVERAGE)
    other = times_chance(table, "random", AVERAGE_OF_ONE)
    value = times_chance(table, "random", AVERAGE)
    return MeasuredValue(
        value,
        row["ratio_low"],
        row["ratio_high"],
        text=f"{value:.2g} times chance with the μ of other code, {other:.2g} with μ = 1",
        note="The paper does not state μ. That of the authors' earlier code is the mean number of "
        "ratings of an item, that of their later code 1"
        + (": with which rarely rated items lead, a bias against it." if other < 0.5 else "."),
    )


def _left(table: pl.DataFrame, design: str, random: pl.DataFrame, metric: str) -> float:
    """Return which share of popularity's bias under the random split a design leaves."""
    before = times_chance(random, "random", "popularity", metric) - 1
    after = times_chance(table, design, "popularity", metric) - 1
    return after / before if before > 0 else math.nan


def _kept_bias(
    table: pl.DataFrame, design: str, random: pl.DataFrame, note: str = ""
) -> MeasuredValue:
    value = _left(table, design, random, METRICS[0])
    if math.isnan(value):
        return MeasuredValue(value, note="the random split has no bias to popularity here")
    row = cell(table, design, "popularity")
    low, high = row["ratio_low"], row["ratio_high"]
    before = times_chance(random, "random", "popularity") - 1
    text = (
        f"popularity {float(row['ratio'] or 0):.3g} times chance, {before + 1:.3g} under the "
        f"random split: {value:.2g} left"
    )
    return MeasuredValue(
        value,
        None if low is None else (low - 1) / before,
        None if high is None else (high - 1) / before,
        text=text,
        note=note,
    )


def flat_keeps_some(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return which share of popularity's bias a flat test leaves."""
    table = lab.table(null_flat, dataset_name)
    note = f"Of the others: {_ratios(table, 'flat', FREE[1:])} times chance."
    return _kept_bias(table, "flat", lab.table(null_random, dataset_name), note)


def bins_keep_some(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return which share of popularity's bias popularity bins leave."""
    table = lab.table(null_slices, dataset_name)
    note = f"Of the others: {_ratios(table, 'slices', FREE[1:])} times chance."
    try:
        other = lab.table(null_bins, dataset_name)
        ratios = [
            times_chance(other, one, "popularity") for one in ("judgment-bins", "percentiles")
        ]
        note += (
            f" Where systems train on everything, popularity is at {ratios[0]:.3g}, and in bins of "
            f"equal numbers of items (bellogin2017) at {ratios[1]:.3g}."
        )
    except DataError:
        pass  # too few items for these bins: the claim does not need them
    return _kept_bias(table, "slices", lab.table(null_random, dataset_name), note)


def _at_chance(table: pl.DataFrame, design: str) -> tuple[float, str]:
    z, name = largest_z(table, design)
    text = (
        f"farthest from chance: {name}, {times_chance(table, design, name):.4g} times "
        f"({z:+.1f} σ; σ = {sigma(table, design, name):.2g})"
    )
    return abs(z), text


def forced_is_fair(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far from chance, in σ, the farthest system is with forced judgments."""
    table = lab.table(null_forced, dataset_name)
    value, text = _at_chance(table, "forced")
    raw = times_chance(table, "forced-raw", "popularity")
    return MeasuredValue(
        value,
        text=text,
        as_defined=_at_chance(table, "forced-raw")[0],
        note="The test judgments have to be thinned as in §5.2.2. As §7.1 alone describes them "
        f"(as defined), popularity scores {raw:.3g} times chance: a bias against popular items.",
    )


def fair_test_targets(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far from chance, in σ, the farthest system is with test targets."""
    value, text = _at_chance(lab.table(null_random, dataset_name), "test-targets")
    return MeasuredValue(value, text=text)


def _real(table: pl.DataFrame, design: str, name: str) -> float:
    value = cell(table, design, name)["real"]
    return math.nan if value is None else float(value)


def average_under_test_targets(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return by how much the average rating leads, on the data as they are."""
    table = lab.table(null_random, dataset_name)
    names = (AVERAGE, "popularity", "kNN", "iMF")
    text = ", ".join(f"{name} {_real(table, 'test-targets', name):.3f}" for name in names)
    value, low, high = (
        _least(lab.table(average_lead, dataset_name)[column]) for column in ("lead", "low", "high")
    )
    return MeasuredValue(value, low, high, text=f"P@{CUTOFF} {text}; least lead {value:.4f}")


def _share(table: pl.DataFrame, name: str) -> float:
    value = cell(table, "random", name)["null_share"]
    return math.nan if value is None else float(value)


def null_looks_real(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the smallest share of what systems have above chance that null data gives them."""
    table = lab.table(null_random, dataset_name)
    shares = {name: _share(table, name) for name in FREE}
    names = ["random", *FREE, AVERAGE]
    real = [_real(table, "random", name) for name in names]
    null = [float(cell(table, "random", name)["null_value"] or 0) for name in names]
    text = ", ".join(f"{name} {100 * one:.0f} %" for name, one in shares.items())
    note = f"Order of the systems, real and null: τ = {kendall(real, null):.2f}."
    if any(map(math.isnan, shares.values())):
        return MeasuredValue(math.nan, note="a system is not clearly above chance on these data")
    row = cell(table, "random", min(shares, key=shares.__getitem__))
    least = min(shares.values())
    return MeasuredValue(least, row["share_low"], row["share_high"], text=text, note=note)


def not_the_average(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of what the average rating has above chance that null data gives it."""
    row = cell(lab.table(null_random, dataset_name), "random", AVERAGE)
    if row["null_share"] is None:
        return MeasuredValue(math.nan, note="it is not clearly above chance on these data")
    return MeasuredValue(float(row["null_share"]), row["share_low"], row["share_high"])


def random_split_rises(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether Eq. 3 follows from Eq. 2 and rises."""
    return MeasuredValue(
        formulas.random_split_rises(),
        note="It rises, but not in proportion, as ∝ in Eq. 3 could be read: faster.",
    )


def flat_test_both_ways(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether Eq. 4 holds exactly, and in two simulated worlds."""
    table = lab.table(worlds.flat_worlds)
    liking, item = table.iter_rows(named=True)
    right = liking["z"] < -THREE_SIGMA and item["z"] > THREE_SIGMA
    text = (
        f"τ of popularity and being judged {liking['tau']:+.2f} ({liking['z']:+.1f} σ) where that "
        f"depends on liking only, {item['tau']:+.2f} ({item['z']:+.1f} σ) where on the item only"
    )
    return MeasuredValue(formulas.flat_test_both_ways() and right, text=text)


def _overlaps(lab: Lab) -> dict[str, list[dict[str, float]]]:
    table = lab.table(worlds.overlap)
    return {
        where: list(table.filter(pl.col("overlap") == where).iter_rows(named=True))
        for where in ("to-test", "to-training")
    }


def overlap_goes_to_training(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether popularity is favoured one way and at chance the other, at every density."""
    overlaps = _overlaps(lab)
    free = [(one["ratio"] - 1) / one["error"] for one in overlaps["to-test"]]
    fair = [(one["ratio"] - 1) / one["error"] for one in overlaps["to-training"]]
    right = free[0] > THREE_SIGMA and max(map(abs, fair)) < THREE_SIGMA
    return MeasuredValue(right, text=_overlap_text(overlaps))


def _overlap_text(overlaps: dict[str, list[dict[str, float]]]) -> str:
    out, kept = (
        " / ".join(f"{one['ratio']:.2f}" for one in overlaps[where])
        for where in ("to-test", "to-training")
    )
    return f"{kept} times chance where it leaves the test, {out} where it leaves training"


def sparse_overlap(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return what popularity scores, in times of chance, with the sparsest forced test."""
    overlaps = _overlaps(lab)
    last = overlaps["to-test"][-1]
    half = 1.96 * last["error"]
    return MeasuredValue(
        last["ratio"],
        last["ratio"] - half,
        last["ratio"] + half,
        text=_overlap_text(overlaps),
        note=f"At test densities {', '.join(f'{one:g}' for one in worlds.SPARSE)}: values shrink "
        "with the test, their ratio does not. An item is judged in proportion to "
        "1 / (1 − p(train|liked, i)(1 − density)): the bias is weak where training is sparse, not "
        "where the test is.",
    )


def overlap_of_data(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return what popularity is expected to score, in times of chance, by the formula."""
    table = lab.table(overlap_factor, dataset_name)
    factor = table["factor"].to_numpy()
    top = table.head(CUTOFF)
    rated = cast("float", top["rated"].mean())
    return MeasuredValue(
        float(factor[:CUTOFF].mean() / factor.mean()),
        note=f"The {CUTOFF} most rated items have {100 * rated:.0f} % of the users in training. "
        "How sparse training is decides, not how sparse the test is.",
    )


def thinning_is_even(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether the sampling of section 5.2.2 is fair, by exact fractions."""
    return MeasuredValue(formulas.thinning_is_even())


def forced_density_of_items(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of items whose density is more than three standard errors off."""
    table = lab.table(forced_density, dataset_name)
    if (table["trained"] > DENSITY).any():
        return MeasuredValue(math.nan, note="an item has more training judgments than p(J) allows")
    away = float((np.abs(table["z"].to_numpy()) > THREE_SIGMA).mean())
    mean = cast("float", table["density"].mean())
    return MeasuredValue(away, text=f"{100 * away:.2g} % of the items (mean density {mean:.5f})")


def splits_with_test_targets(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return how far from chance, in σ, the farthest system is, over all splits."""
    table = lab.table(worlds.splits_with_test_targets)
    splits = table["design"].unique(maintain_order=True).to_list()
    distances = {name: largest_z(table, name) for name in splits}
    text = ", ".join(f"{name} {z:+.1f} σ" for name, (z, _) in distances.items())
    return MeasuredValue(max(abs(z) for z, _ in distances.values()), text=text)


def user_flat_keeps(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least that popularity scores, in times of chance, with sampled targets."""
    table = lab.table(null_user_flat, dataset_name)
    names = [str(one) for one in table["design"].unique(maintain_order=True)]
    ratios = {name: times_chance(table, name, "popularity") for name in names}
    text = ", ".join(f"{name}: {one:.3g}" for name, one in ratios.items())
    least = min((name for name in names if name != "others 0"), key=ratios.__getitem__)
    row = cell(table, least, "popularity")
    return MeasuredValue(ratios[least], row["ratio_low"], row["ratio_high"], text=text)


def forced_online(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the largest error of any system where all that is shown is judged."""
    table = lab.table(worlds.forced_online)
    return MeasuredValue(float(np.abs((table["rate"] - table["true"]).to_numpy()).max()))


def recall_is_fair_too(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return how far, in σ, any system's recall is from the truth with a uniform test."""
    table = lab.table(worlds.recall_in_a_world)
    even = table.filter(pl.col("test") == "uniform")
    other = table.filter(pl.col("test") != "uniform")
    low, high = (cast("float", one) for one in other["recall ratio"].sort()[[0, -1]])
    text = ", ".join(f"{one:.3f}" for one in even["recall ratio"])
    return MeasuredValue(
        cast("float", even["z"].abs().max()),
        text=f"estimate / truth {text}",
        note=f"With a random split of free ratings instead: {low:.2f} to {high:.2f}.",
    )


def recall_trends(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many trends of Fig. 2 recall shows too."""
    metric = METRICS[1]
    random, flat = lab.table(null_random, dataset_name), lab.table(null_flat, dataset_name)
    slices, forced = lab.table(null_slices, dataset_name), lab.table(null_forced, dataset_name)

    def at(name: str) -> float:
        return times_chance(random, "random", name, metric)

    def near_chance(table: pl.DataFrame, design: str) -> bool:
        names = table.filter(pl.col("design") == design)["system"].unique()
        return all(
            abs(times_chance(table, design, name, metric) - 1)
            < max(FAIR, THREE_SIGMA * sigma(table, design, name))
            for name in names
        )

    trends = {
        "free judgments favour": min(map(at, FREE)) > 1,
        "filtering above popularity": min(at("kNN"), at("iMF")) > at("popularity"),
        "average near chance": 0.5 < at(AVERAGE) < 2,
        "flat test keeps some": 0 < _left(flat, "flat", random, metric) < 1,
        "bins keep some": 0 < _left(slices, "slices", random, metric) < 1,
        "forced judgments fair": near_chance(forced, "forced"),
        "test targets fair": near_chance(
            random.filter(pl.col("system") != AVERAGE_OF_ONE), "test-targets"
        ),
    }
    missed = [name for name, there in trends.items() if not there]
    text = f"{len(trends) - len(missed)} of {len(trends)}"
    return MeasuredValue(
        len(trends) - len(missed), text=text, note=f"Not: {', '.join(missed)}." if missed else ""
    )


def popularity_within_bins(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how much popularity varies within bins, in times of how much it varies at all."""
    table = lab.table(bin_spread, dataset_name)
    whole = cast("float", table["coefficient"][0])
    if not whole:
        return MeasuredValue(math.nan, note="all items are equally popular")
    coefficients = {
        name: table.filter(pl.col("bins") == name)["coefficient"].to_list()
        for name in ("judgments", "items")
    }
    mean = float(np.mean(coefficients["judgments"]))
    text = (
        f"coefficient of variation {mean:.2f} in the mean of {BINS} bins (at most "
        f"{max(coefficients['judgments']):.2f}), {whole:.2f} over all items"
    )
    note = f"In bins of equal numbers of items: {float(np.mean(coefficients['items'])):.2f}."
    return MeasuredValue(mean / whole, text=text, note=note)


def temporal_keeps_some(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return which share of popularity's bias a temporal split leaves."""
    table = lab.table(null_temporal, dataset_name)
    return _kept_bias(table, "temporal", table)


def clicks_find_the_better(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return in how many pairs the truly better system is ahead, for the worst kind of test."""
    table = lab.table(worlds.online).filter(pl.col("feedback") == "plain")
    table = table.sort("right", descending=True, maintain_order=True)
    worst = table.row(-1, named=True)
    text = ", ".join(f"{row['test']} {row['right']:.2f}" for row in table.iter_rows(named=True))
    return MeasuredValue(worst["right"], worst["right_low"], worst["right_high"], text=text)


def fashion_rewards(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return how often popularity wrongly wins against a truly better system, if it is trendy."""
    table = lab.table(worlds.wrong_wins)
    if not table.height:
        return MeasuredValue(math.nan, note="popularity is truly the best in these worlds")
    rows = {str(row["feedback"]): row for row in table.iter_rows(named=True)}
    text = ", ".join(f"{name} users {rows[name]['wrong']:.2f}" for name in sorted(rows))
    row = rows["trendy"]
    return MeasuredValue(row["wrong"], row["low"], row["high"], text=text)


def newcomers_lose(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the error of a system that is judged by a test in which it did not take part."""
    row = lab.table(worlds.reused).row(by_predicate=pl.col("feedback") == "forced", named=True)
    return MeasuredValue(
        row["error"],
        row["error_low"],
        row["error_high"],
        note=f"Of its items {100 * row['judged']:.0f} % were judged; {100 * row['wrong']:.0f} % of "
        f"its comparisons come out wrong, {100 * row['wrong_inside']:.0f} % of those among "
        "participants.",
    )


def items_are_not_enough(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return observed kNN over random where items are judged alike and all are equally good."""
    table = lab.table(worlds.clustered)
    row = {str(one["system"]): one for one in table.iter_rows(named=True)}
    knn, chance = row["kNN"], row["random"]
    if not chance["observed"] or not knn["observed"]:
        return MeasuredValue(math.nan, note="no liked item was found at all")
    ratio = knn["observed"] / chance["observed"]
    places = CUTOFF * knn["users"]
    half = 1.96 * math.sqrt(1 / (places * knn["observed"]) + 1 / (places * chance["observed"]))
    text = (
        f"kNN {knn['true']:.3f} and random {chance['true']:.3f} in truth, {knn['observed']:.3f} "
        f"and {chance['observed']:.3f} observed: ratio {ratio:.2f}"
    )
    return MeasuredValue(
        ratio,
        ratio * math.exp(-half),
        ratio * math.exp(half),
        text=text,
        note="It suffices for non-personalised systems. For others the chance to be judged has to "
        "be the same for every pair of user and item; here it varies over pairs "
        f"(coefficient of variation {knn['spread over pairs']:.2f}), while all items are alike.",
    )


def all_items_and_test_targets(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether test targets keep the order that the truth over all items has."""
    toy = formulas.order_of_test_targets()
    (seen_a, true_a), (seen_b, true_b) = toy["a"], toy["b"]
    table = lab.table(worlds.targets_and_truth).filter(pl.col("targets") == "test")
    tau = ", ".join(f"{row['world']} {row['tau']:.2f}" for row in table.iter_rows(named=True))
    text = (
        f"two systems in a world of six users: {seen_a:.2f} and {seen_b:.2f} over test targets, "
        f"truly {true_a:.2f} and {true_b:.2f}"
    )
    return MeasuredValue(
        (seen_a - seen_b) * (true_a - true_b) > 0,
        text=text,
        note="The paper does not say which truth it means. Test targets are fair for precision "
        "over the test items themselves, whose best order is by "
        "p(liked | tested, i). That differs from the order over all items where judging depends on "
        "liking, more so for some items than for others. In simulated worlds where all items are "
        f"alike in that, τ to the truth over all items is: {tau}.",
    )


def thinning_in_worlds(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the smallest share of judgments that the sampling leaves in any world."""
    table = lab.table(worlds.thinning_by_world)
    counted = table.filter(pl.col("shares") == "as counted")
    smooth = table.filter(pl.col("shares") == "smoothed")
    text = ", ".join(f"{row['world']} {row['kept']:.2g}" for row in counted.iter_rows(named=True))
    return MeasuredValue(
        cast("float", counted["kept"].min()),
        text=text,
        note="The paper says that no larger test set is fair, not how large it is. Where the few "
        "liked judgments of one item are all familiar, T = 1 and nothing is left. With smoothed "
        "shares (as many average judgments added as an item has liked ones) "
        f"at least {cast('float', smooth['kept'].min()):.2g} of the liked judgments stay.",
    )


def thinning_of_data(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of judgments that the sampling leaves of the data."""
    counted, smooth = lab.table(thinning, dataset_name).iter_rows(named=True)
    note = (
        f"T = {counted['T']:.3g}; with smoothed shares {smooth['kept']:.2g} stay. The paper says "
        "that no larger test set is fair, not how large it is."
    )
    return MeasuredValue(float(counted["kept"]), note=note)


def printed_precision(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return whether precision as printed is p(liked | recommended)."""
    right, printed = formulas.printed_precision()
    return MeasuredValue(
        right == printed,
        text=f"p(liked | recommended) = {right}, the formula gives {printed}",
        note="The denominators are swapped: P = |R∩ℛ| / |R| and Recall = |R∩ℛ| / |ℛ|. The "
        "probabilities beside them, and the estimates of §3.2, are right.",
    )
