"""carraro2020: a check per claim, and the statistics of mean recall that they judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from unskew.auditing.truth.intervention_study import METRICS, errors_of_sets
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.splits.interventions import RatingCounts, Wtd
from unskew.splits.subsample import random_parts
from unskew.stats.correlation import kendall
from unskew.stats.special import student_t_quantile
from unskew.worlds.worlds import world
from unskew_studies.carraro2020.measurements import (
    LEVEL,
    OTHERS,
    SHARES,
    experiment,
    in_both,
    parts_of,
    posteriors,
    sampled_sets,
    statistics,
    without_pairs_in_training,
)
from unskew_studies.carraro2020.printed import (
    BOTH,
    COAT,
    INTELLIGENT,
    NAMES,
    NOISE,
    R3,
    SETS,
    STATISTICS,
    STEPS,
    SYSTEMS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TABLE_4,
    TRUE,
    Means,
    printed_errors,
    printed_means,
    truncated,
)
from unskew_studies.lab import Lab, UndefinedError
from unskew_studies.paper import (
    MeasuredValue,
)

Errors = dict[tuple[str, str], float]
Interval = tuple[float, float | None, float | None]
"""A value with its interval."""


# Checks


def table_1(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the cells of table 1 that come out as printed, cut off after the last digit."""
    rows = {row["part"]: row for row in lab.table(statistics, dataset_name).iter_rows(named=True)}
    wrong = [
        f"{part} {name} {rows[part][name]:g}, not {value:g}"
        for part, printed in TABLE_1[dataset_name].items()
        for name, step, value in zip(STATISTICS, STEPS[dataset_name], printed, strict=True)
        if not math.isclose(truncated(rows[part][name], step), value, abs_tol=1e-9)
    ]
    number = 2 * len(STATISTICS) - len(wrong)
    means = [rows[part]["mean"] for part in ("random", "observed")]
    note = "; ".join(wrong) or f"Cut off, not rounded: mean ratings {means[0]:.3f}, {means[1]:.3f}."
    return MeasuredValue(number, text=f"{number} of {2 * len(STATISTICS)} cells", note=note)


def random_part(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Test whether users and items are equally frequent in the random part."""
    p = _tests(lab, dataset_name, "random")
    least = min((one for one in p.values() if not math.isnan(one)), default=math.nan)
    return MeasuredValue(least, text=_probabilities(p))


def chosen_part(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Test whether neither users nor items are equally frequent in the chosen ratings."""
    p = _tests(lab, dataset_name, "observed")
    most = max((one for one in p.values() if not math.isnan(one)), default=math.nan)
    counts = np.bincount(parts_of(lab, dataset_name)[0].user)
    note = ""
    if (counts == counts[0]).all():
        note = f"Every user has {counts[0]}: weights of users correct the noise of the split only."
    return MeasuredValue(most, text=_probabilities(p), note=note)


def _probabilities(p: dict[str, float]) -> str:
    texts = {of: "< 1e-99" if one < 1e-99 else f"= {one:.2g}" for of, one in p.items()}
    return f"items p {texts['items']}, users p {texts['users']}"


def _tests(lab: Lab, dataset_name: str, part: str) -> dict[str, float]:
    rows = lab.table(posteriors, dataset_name).filter(pl.col("of") != "pairs", part=part)
    return dict(rows.select("of", "p").iter_rows())


def truths(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the true recall of every system with what is printed."""
    printed = [TABLE_2[dataset_name][system][0] for system in SYSTEMS]

    def distance(means: Means) -> float:
        ours = [means[TRUE, system] for system in SYSTEMS]
        return max(abs(a - b) for a, b in zip(ours, printed, strict=True))

    def listed(rows: pl.DataFrame) -> str:
        ours = [
            over_repetitions(lambda m, s=system: m[TRUE, s], by_repetition(rows))[0]
            for system in SYSTEMS
        ]
        return " / ".join(f"{one:.3f}".lstrip("0") for one in ours)

    kept, left = (lab.table(one, dataset_name) for one in (experiment, without_pairs_in_training))
    value, low, high = over_repetitions(distance, by_repetition(kept))
    note = f"Recall {listed(kept)}; {listed(left)} without the pairs that are in both parts."
    text = f"up to {value:.3f} off".replace("0.", ".")
    return MeasuredValue(value, low, high, text=text, note=note)


def cells_agree(lab: Lab, dataset_name: str, within: float) -> MeasuredValue:
    """Count the cells of table 2 that are near enough to what is printed."""
    ours, printed = _cells(lab, dataset_name), printed_errors(dataset_name)
    apart = [key for key in printed if abs(ours[key] - printed[key]) > within]
    turned = [
        key for key in printed if abs(printed[key]) >= NOISE and ours[key] * printed[key] <= 0
    ]
    number = len(printed) - len(apart)
    note = (
        f"{len(turned)} of the cells printed with {NOISE:g} points and more have the other sign. "
        f"Farther off: {'; '.join(_cell_text(key, ours, printed) for key in apart) or 'none'}."
    )
    return MeasuredValue(number, text=f"{number} of {len(printed)} cells", note=note)


def signs(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of cells that over-estimate (PosPop on WTD_H: under-estimates).

    On the paper's data only the cells that it prints with 25 points and more: the others are noise.
    """
    ours = _cells(lab, dataset_name)
    printed = printed_errors(dataset_name) if dataset_name in TABLE_2 else None
    asked = [key for key in ours if printed is None or abs(printed[key]) >= NOISE]
    wrong = [key for key in asked if (ours[key] > 0) == (key == ("wtd-h", "PosPop"))]
    right = len(asked) - len(wrong)
    note = "; ".join(_cell_text(key, ours, printed) for key in wrong)
    return MeasuredValue(right / len(asked), text=f"{right} of {len(asked)} cells", note=note)


def _cells(lab: Lab, dataset_name: str) -> Errors:
    result = study_of(lab.table(experiment, dataset_name))[METRICS[0]]
    return {(row["design"], row["system"]): row["value"] for row in result.rows.to_dicts()}


def _cell_text(key: tuple[str, str], ours: Errors, printed: Errors | None) -> str:
    text = f"{key[1]} on {NAMES[key[0]]} {ours[key]:+.0f} %"
    if printed is not None:
        text += f", printed {printed[key]:+.0f} %"
    return text.replace("-", "−")


def place_of_mf(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many ranks MF is lower by truth than on the test set that ranks it lowest."""
    each = by_repetition(lab.table(experiment, dataset_name))
    value, low, high = over_repetitions(fall_of_mf, each)
    first, *others = ranks_of_mf(mean_of(each)).values()
    listed = ", ".join(map(str, others))
    return MeasuredValue(
        value, low, high, note=f"Rank by truth {first}; on the test sets {listed}."
    )


def printed_taus(dataset_name: str, systems: tuple[str, ...]) -> list[float]:
    """Return Kendall's τ of every test set, from the printed table 2."""
    means = printed_means(dataset_name)
    return [tau(means, name, systems) for name in SETS]


def table_3(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Count the cells of table 3 that follow from table 2."""
    taus = {dataset_name: printed_taus(dataset_name, SYSTEMS) for dataset_name in BOTH}
    right = sum(
        math.isclose(a, b, abs_tol=1e-9)
        for dataset_name in BOTH
        for a, b in zip(taus[dataset_name], TABLE_3[dataset_name], strict=True)
    )
    return MeasuredValue(right, text=f"{right} of 10 cells")


def table_4_coat(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Count the cells of table 4 that follow from table 2, on Coat."""
    taus = printed_taus(COAT, SYSTEMS[:-1])
    right = sum(math.isclose(round(a, 1), b) for a, b in zip(taus, TABLE_4[COAT], strict=True))
    exact = ", ".join(f"{one:.3f}" for one in taus)
    return MeasuredValue(right, text=f"{right} of 5 cells", note=f"Unrounded: {exact}.")


def table_4_r3(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Compute the cell of table 4 that is nearest to the printed .68, from table 2."""
    taus = printed_taus(R3, SYSTEMS[:-1])
    nearest = min(taus, key=lambda one: abs(one - TABLE_4[R3][0]))
    same = "in all five cells" if len(set(taus)) == 1 else "at the nearest"
    return MeasuredValue(
        nearest,
        note=f"Right is 2/3 = .667, {same}: four systems have six pairs, so that τ is a multiple "
        "of 1/3, and a mean of ten repetitions one of 1/30; .68 is neither.",
    )


def printed_gain(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Compute by how much SKEW, WTD and WTD_H lessen the mean size of printed errors."""
    texts = []
    for dataset_name, title in ((COAT, "Coat"), (R3, "R3")):
        sizes = [
            size_of_error(printed_means(dataset_name), name) for name in ("full", *INTELLIGENT)
        ]
        first, *others = (f"{one:.0f}" for one in sizes)
        texts.append(f"{title} {first} → {' / '.join(others)}")
    value = min(gain_in_error(printed_means(dataset_name)) for dataset_name in BOTH)
    return MeasuredValue(value, text="; ".join(texts))


def flattened(lab: Lab, dataset_name: str, name: str) -> MeasuredValue:
    """Compare the divergence of items from uniform in a test set with that before."""
    value, low, high = flattening(lab, dataset_name, name)
    others = ", ".join(
        f"{NAMES[one]} {flattening(lab, dataset_name, one)[0]:.2f}"
        for one in SETS[1:]
        if one != name
    )
    note = f"The others: {others}; of users {flattening(lab, dataset_name, name, 'users')[0]:.2f}."
    return MeasuredValue(value, low, high, text=f"{value:.2f} times that before", note=note)


def nearer_to_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare how far the items of WTD's set are from those that it aims at with REG's."""
    value, low, high = nearness_to_random(lab, dataset_name, "wtd")
    others = ", ".join(
        f"{NAMES[one]} {nearness_to_random(lab, dataset_name, one)[0]:.2f}"
        for one in ("skew", "wtd-h")
    )
    uniform = flattening(lab, dataset_name, "wtd")[0]
    note = (
        f"The others: {others}. It does not aim at equally frequent items: WTD's divergence from "
        f"those is {uniform:.2f} times that of the held-out ratings, because it squares the noise "
        "of few random ratings."
    )
    return MeasuredValue(value, low, high, text=f"{value:.2f} times REG's distance", note=note)


def squared_weights(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Compare weights of items with and without the square, in a small world."""
    small = world("shop", users=80, items=50, seed=lab.seed)
    train, held_out = random_parts(small.ratings, SHARES, lab.seed)
    evidence = RatingCounts(held_out, train, small.random(0.2), lab.seed)
    plain, squared = (Wtd(exponent=one).aim(evidence).item for one in (1, 2))
    right = np.allclose(squared, plain**2, rtol=1e-12) and bool(
        (np.sign(squared - plain) == np.sign(plain - 1)).all()
    )
    grown = int((plain > 1).sum())
    return MeasuredValue(right, note=f"Of {plain.size} items {grown} gain weight by the square.")


def half_size(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the sizes of intervened sets with half the held-out ratings, rounded down."""
    rows = lab.table(sampled_sets, dataset_name).filter(pl.col("set") != "full")
    right = bool((rows["kept"] == rows["held_out"] // 2).all())
    first = rows.row(0, named=True)
    return MeasuredValue(right, note=f"{first['kept']:,} of {first['held_out']:,} ratings.")


def nearness_of_metrics(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far precision's, MAP's and nDCG's errors are from recall's, the farthest."""
    rows = lab.table(experiment, dataset_name)
    recall = by_repetition(rows)
    distances_of = {
        metric: over_repetitions(between_metrics, recall, by_repetition(rows, metric))
        for metric in OTHERS
    }
    worst = max(distances_of, key=lambda metric: distances_of[metric][0])
    distances = ", ".join(f"{metric} {one[0]:.0f}" for metric, one in distances_of.items())
    each = [by_repetition(rows, metric) for metric in METRICS]
    signs = over_repetitions(same_signs, *each)[0]
    note = (
        f"Mean distance in points: {distances}. {signs:.0f} % of their errors have the sign of "
        "recall's, where that is 25 points and more. Precision falls with the size of the test "
        "set, recall does not: half the held-out ratings halve it."
    )
    text = f"{distances_of[worst][0]:.0f} points ({worst})"
    return MeasuredValue(*distances_of[worst], text=text, note=note)


def pairs_in_both(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest change of an error when pairs in both parts leave the truth."""
    number = in_both(lab, dataset_name)
    rules = (experiment, without_pairs_in_training)
    each = [by_repetition(lab.table(one, dataset_name)) for one in rules]
    value, low, high = over_repetitions(between_rules, *each)
    note = (
        f"{counted(number, 'pair is', 'pairs are')} in both parts. Training pairs cannot be "
        "recommended: "
    )
    note += "in the truth they count as missed."
    return MeasuredValue(value, low, high, text=f"up to {value:.0f} points", note=note)


def stand_in_for_zero(_lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Compare what stands for a posterior of zero with the posterior of an average user."""
    small, large = (_zero_to_average(TABLE_1[dataset_name]["random"][1]) for dataset_name in BOTH)
    note = (
        f"{small:.2f} of an average user's posterior with the users of Coat, {large:.2f} with "
        "those of Webscope R3. Adding a rating to every user and item (additive smoothing) means "
        "the same on all data."
    )
    return MeasuredValue(large / small, text=f"{large / small:.1f} times as much", note=note)


def _zero_to_average(users: float) -> float:
    """Return n times the posterior that WTD gives one of n users who has no random rating."""
    number = int(users)
    everybody = _of_users(np.arange(number))
    evidence = RatingCounts(everybody, everybody, everybody.take(np.arange(number - 1)), 0)
    target = Wtd(smoothing="paper").aim(evidence).to_user
    return math.nan if target is None else float(target[-1]) * number


def _of_users(users: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ratings:
    return read_ratings({"user": users, "item": np.zeros_like(users), "rating": users * 0 + 1})


# Statistics of mean recall


def study_of(rows: pl.DataFrame, systems: Sequence[str] = SYSTEMS) -> Estimates:
    """Return the rows of an experiment as the result of `intervention_study`, of some systems."""
    values = rows.drop("settings").rename({"set": "design"})
    parts = [values.filter(design=name, system=one) for name in (TRUE, *SETS) for one in systems]
    return errors_of_sets(pl.concat(parts), LEVEL)


def by_repetition(rows: pl.DataFrame, metric: str = METRICS[0]) -> list[Means]:
    """Return a mean by test set and system for every repetition."""
    parts = rows.filter(metric=metric).partition_by("repetition", maintain_order=True)
    return [
        {(row["set"], row["system"]): row["value"] for row in one.iter_rows(named=True)}
        for one in parts
    ]


def over_repetitions(statistic: Callable[..., float], *each: Sequence[Means]) -> Interval:
    """Return a statistic of means over repetitions, and its interval by the jackknife.

    Parameters
    ----------
    statistic
        A function of as many tables of means as there are `each`.
    each
        Means by repetition, the repetitions being the same in all.
    """
    number = len(each[0])
    value = statistic(*(mean_of(one) for one in each))
    if number == 1:
        return value, None, None
    try:
        left = np.array(
            [
                statistic(*(mean_of([*one[:k], *one[k + 1 :]]) for one in each))
                for k in range(number)
            ]
        )
    except UndefinedError:  # defined for all repetitions together only
        return value, None, None
    spread = math.sqrt((number - 1) / number * float(np.sum((left - left.mean()) ** 2)))
    half = student_t_quantile((1 + LEVEL) / 2, number - 1) * spread
    return (value, value - half, value + half) if math.isfinite(half) else (value, None, None)


def mean_of(each: Sequence[Means]) -> Means:
    """Return the means over repetitions."""
    return {key: math.fsum(one[key] for one in each) / len(each) for key in each[0]}


def errors(means: Means) -> Errors:
    """Return (mean on the set - true mean) / true mean, in percent, by test set and system."""
    if not all(math.isfinite(one) for one in means.values()):
        raise UndefinedError("a test set has no liked rating: these data are too few")
    for system in SYSTEMS:
        if not means[TRUE, system]:
            raise UndefinedError(
                f"{system} finds no liked random rating: its errors are not defined"
            )
    return {
        (name, system): 100 * (means[name, system] / means[TRUE, system] - 1)
        for system in SYSTEMS
        for name in SETS
    }


def size_of_error(means: Means, name: str) -> float:
    """Return the mean size of a test set's errors over systems, in points."""
    by_cell = errors(means)
    return math.fsum(abs(by_cell[name, system]) for system in SYSTEMS) / len(SYSTEMS)


def lead(means: Means, system: str, name: str, others: Sequence[str]) -> float:
    """Return by how many points a test set is nearer to a system's truth than all others."""
    size = {key: abs(value) for key, value in errors(means).items()}
    return min(size[other, system] for other in others) - size[name, system]


def least_lead(means: Means, name: str, systems: Sequence[str]) -> float:
    """Return the least lead of a test set over all others, among some systems."""
    others = [one for one in SETS if one != name]
    return min(lead(means, system, name, others) for system in systems)


def reg_to_full(means: Means) -> float:
    """Return the largest difference of the errors on REG and FULL."""
    by_cell = errors(means)
    return max(abs(by_cell["reg", system] - by_cell["full", system]) for system in SYSTEMS)


def largest_error(means: Means, system: str) -> float:
    """Return the largest error of a system on any test set, under-estimates being below 0."""
    by_cell = errors(means)
    return max(by_cell[name, system] for name in SETS)


def balance(means: Means) -> float:
    """Return the largest size of WTD_H's errors on the systems other than MF."""
    by_cell = errors(means)
    return max(abs(by_cell["wtd-h", system]) for system in SYSTEMS[:-1])


def spread_of_sizes(means: Means) -> float:
    """Return how far apart the sizes of AvgRating's errors on SKEW, WTD and WTD_H are."""
    sizes = [abs(errors(means)[name, "AvgRating"]) for name in INTELLIGENT]
    return max(sizes) - min(sizes)


def lead_over_baselines(means: Means) -> float:
    """Return the least lead of SKEW, WTD and WTD_H over FULL and REG, for AvgRating."""
    return min(lead(means, "AvgRating", name, SETS[:2]) for name in INTELLIGENT)


def lead_over_skew(means: Means) -> float:
    """Return the least lead of WTD and WTD_H over SKEW, for personalised systems."""
    return min(
        lead(means, system, name, ["skew"]) for system in SYSTEMS[2:] for name in ("wtd", "wtd-h")
    )


def wtd_or_hypothesised(means: Means) -> float:
    """Return the least lead of WTD over WTD_H for PosPop, UB_KNN, IB_KNN; reversed for others."""
    ours = [lead(means, one, "wtd", ["wtd-h"]) for one in ("PosPop", "UB_KNN", "IB_KNN")]
    theirs = [lead(means, one, "wtd-h", ["wtd"]) for one in ("MF", "AvgRating")]
    return min(ours + theirs)


def ranks_of_mf(means: Means) -> dict[str, int]:
    """Return the rank of MF among the systems by truth and on every test set; 1 is the best."""
    return {
        name: sum(means[name, other] >= means[name, "MF"] for other in SYSTEMS)
        for name in (TRUE, *SETS)
    }


def fall_of_mf(means: Means) -> float:
    """Return how many ranks MF is lower by truth than on the test set that ranks it lowest."""
    ranks = ranks_of_mf(means)
    return ranks[TRUE] - max(ranks[name] for name in SETS)


def gain_in_error(means: Means) -> float:
    """Return by how much the worst of SKEW, WTD and WTD_H is better than FULL on average."""
    return size_of_error(means, "full") - max(size_of_error(means, one) for one in INTELLIGENT)


def tau(means: Means, name: str, systems: Sequence[str] = SYSTEMS) -> float:
    """Return Kendall's τ between the order of systems on a test set and the true one."""
    values, true = ([means[one, system] for system in systems] for one in (name, TRUE))
    return kendall(values, true)


def gain_in_tau(means: Means) -> float:
    """Return by how much the least τ of SKEW, WTD and WTD_H exceeds that of FULL."""
    return min(tau(means, name) for name in INTELLIGENT) - tau(means, "full")


def same_signs(recall: Means, *others: Means) -> float:
    """Return how many percent of other metrics' errors have the sign of recall's, noise apart."""
    first = {key: one for key, one in errors(recall).items() if abs(one) >= NOISE}
    same = [errors(other)[key] * one > 0 for other in others for key, one in first.items()]
    return 100 * sum(same) / len(same) if same else math.nan


def between_metrics(recall: Means, other: Means) -> float:
    """Return the mean distance of another metric's errors from recall's, in points."""
    first, second = errors(recall), errors(other)
    return math.fsum(abs(second[key] - one) for key, one in first.items()) / len(first)


def between_rules(first: Means, second: Means) -> float:
    """Return the largest difference between the errors of two experiments."""
    ours, theirs = errors(first), errors(second)
    return max(abs(ours[key] - theirs[key]) for key in ours)


def flattening(lab: Lab, dataset_name: str, name: str, of: str = "items") -> Interval:
    """Return the divergence from uniform of a test set as a multiple of the held-out ratings'."""
    rows = lab.table(sampled_sets, dataset_name).filter(set=name)
    return _multiple(rows.select(f"{of}_kl_after", f"{of}_kl_before").rows())


def nearness_to_random(lab: Lab, dataset_name: str, name: str) -> Interval:
    """Return a test set's distance from the random ratings' items, as a multiple of REG's.

    REG is as large, so that what a small set adds to a distance is in both.
    """
    rows = lab.table(sampled_sets, dataset_name).sort("repetition")
    distances = [rows.filter(set=one)["items_to_random"] for one in (name, "reg")]
    return _multiple(list(zip(*distances, strict=True)))


def _multiple(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Return the ratio of two means over repetitions, with its interval."""
    each: list[Means] = [
        {("value", "items"): value, ("base", "items"): base} for value, base in pairs
    ]

    def ratio(means: Means) -> float:
        base = means["base", "items"]
        return means["value", "items"] / base if base else math.nan

    return over_repetitions(ratio, each)
