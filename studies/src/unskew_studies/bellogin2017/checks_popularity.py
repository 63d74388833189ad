"""bellogin2017, sections 5 to 7: checks of claims about popularity, remedies and metrics."""

from __future__ import annotations

import numpy as np
import polars as pl

from unskew.arrays import F64
from unskew.stats.correlation import kendall
from unskew_studies.bellogin2017.checks import (
    KNN,
    MF,
    PLSA,
    POPULAR,
    RANDOM,
    TINY,
    above_chance,
    by_system,
    curve,
    fact,
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
    AR_FIXED,
    BPREF,
    HEADLESS,
    INFAP,
    INFAP_TREC,
    LEARNING,
    LIKED_ONLY,
    NDCG,
    NDCG_WHOLE,
    ONE,
    PERCENTILES,
    RECALL,
    RR,
    STRATIFIED,
    STRATIFIED_0,
    U1R,
    U1R_ALL,
    UAR,
    UAR_ALL,
    P,
    folds,
)
from unskew_studies.bellogin2017.measurements_designs import (
    configurations,
    one_item,
    remedies,
    uniform_designs,
)
from unskew_studies.bellogin2017.measurements_popularity import (
    constant_ratio,
    counts,
    fixed_rankings,
    law,
    percentiles,
    simulated,
    uniform_facts,
    weights,
)
from unskew_studies.bellogin2017.printed import LIKED_BY
from unskew_studies.lab import Lab
from unskew_studies.paper import MeasuredValue

# Section 5: popularity


def popularity_best(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity's expected P@10 with that of the best other fixed ranking."""
    table = lab.table(fixed_rankings, dataset_name)
    popular = mean_of(table, "expected", ranking=POPULAR)
    others = table.filter(pl.col("ranking") != POPULAR)
    best = others.sort("expected", descending=True).row(0, named=True)
    listing = ", ".join(
        f"{row['ranking']} {row['expected']:.4f} (observed {row['observed']:.4f})"
        for row in table.iter_rows(named=True)
    )
    return MeasuredValue(
        ratio(popular, best["expected"]),
        text=f"{popular:.4f} against {best['expected']:.4f}",
        note=f"Expected P@10: {listing}. What counts is how many users like an item, and how many "
        "have not rated it, not how many have.",
    )


def equation_three(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare Eq. 3 with the exact expectation, for popularity."""
    row = only(lab.table(fixed_rankings, dataset_name), ranking=POPULAR).row(0, named=True)
    exact, paper, seen = row["expected"], row["by Eq. 3"], row["observed"]
    return MeasuredValue(
        ratio(paper, exact),
        text=f"{paper:.4f} against {seen:.4f} observed",
        note=f"Exact: {exact:.5f}. Eq. 3 takes every item to be a target with equal probability, "
        "although popular items are those that are already in training.",
    )


def below_random_when_flat(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's 1RP@10 where all items are equally popular."""
    row = only(
        lab.table(simulated, dataset_name), design=ONE, metric=P, system=POPULAR, alpha=0.0
    ).row(0, named=True)
    value, error = row["value"], hit_error(row["value"], row["lists"])
    return MeasuredValue(
        value, value - 2 * error, value + 2 * error, note=f"Random: {row['random']:.4f}."
    )


def _along_skew(
    lab: Lab, dataset_name: str, design: str, metric: str = P
) -> dict[str, tuple[F64, F64]]:
    table = lab.table(simulated, dataset_name)
    return {
        system: curve(table, "alpha", system, design=design, metric=metric)
        for system in (*LEARNING, RANDOM)
    }


def grows_with_skew(lab: Lab, dataset_name: str, *, design: str) -> MeasuredValue:
    """Return whether popularity's P@10 rises with α."""
    x, y = _along_skew(lab, dataset_name, design)[POPULAR]
    listing = ", ".join(f"{value:.4f}" for value in y)
    return MeasuredValue(
        kendall(x, y),
        text=f"τ = {kendall(x, y):.2f}",
        note=f"For α = {x[0]:g} to {x[-1]:g}: {listing}.",
    )


def grows_by_all_metrics(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ between α and popularity's score, over metrics and designs."""
    taus = {
        f"{design}, {metric}": kendall(*_along_skew(lab, dataset_name, design, metric)[POPULAR])
        for design in (ONE, AR)
        for metric in (RECALL, NDCG, NDCG_WHOLE, AP, RR)
    }
    return least_of(taus)


def taste_stays_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far kNN and MF get from random on simulated data, in parts of random."""
    curves = _along_skew(lab, dataset_name, ONE)
    _, expected = curve(
        lab.table(simulated, dataset_name), "alpha", KNN, "random", design=ONE, metric=P
    )
    apart = {name: float(np.abs(curves[name][1] / expected - 1).max()) for name in (KNN, MF)}
    listing = "; ".join(
        f"{name} {', '.join(f'{value:.4f}' for value in curves[name][1])}" for name in (KNN, MF)
    )
    return MeasuredValue(
        max(apart.values()),
        text=f"{100 * max(apart.values()):.0f} % from random",
        note=f"{listing}. How much neighbours and item biases follow popularity depends on "
        "settings that the paper does not give.",
    )


def plsa_tracks_popularity(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far pLSA gets from popularity on simulated data, in parts of popularity."""
    curves = _along_skew(lab, dataset_name, ONE)
    plsa, popular = curves[PLSA][1], curves[POPULAR][1]
    apart = float(np.abs(plsa / np.maximum(popular, TINY) - 1).max())
    pairs = zip(plsa, popular, strict=True)
    listing = ", ".join(f"{a:.4f} ({b:.4f})" for a, b in pairs)
    return MeasuredValue(apart, text=f"{100 * apart:.0f} %", note=f"pLSA (popularity): {listing}.")


def skew_of_data(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return α of the fitted law of popularity."""
    table = lab.table(law, dataset_name)
    note = f"Least squares on the counts, with c1 = {fact(table, 'c1'):.1f} and c2 = " + (
        f"{fact(table, 'c2'):.0f}."
    )
    return MeasuredValue(fact(table, "alpha"), note=note)


def most_liked_item(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the share of users who like the most liked item with what is printed."""
    value = 100 * fact(lab.table(counts, dataset_name), "liked share of the most liked item")
    return MeasuredValue(value - LIKED_BY.get(dataset_name, value), text=f"{value:.1f} %")


def positive_ratio_grows(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return Spearman's correlation of an item's ratings and the share of them that like it."""
    table = lab.table(counts, dataset_name)
    straight = fact(table, "Pearson of popularity and positive ratio")
    return MeasuredValue(
        fact(table, "Spearman of popularity and positive ratio"), note=f"Pearson: {straight:.2f}."
    )


# Section 6: remedies


def items_of_uniform_test(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how many items a uniform test has."""
    return MeasuredValue(fact(lab.table(uniform_facts, dataset_name), "test items"))


def test_ratings_per_item(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return η as the paper rounds it, and as its condition needs it."""
    table = lab.table(uniform_facts, dataset_name)
    least = fact(table, "ratings of the least rated test item")
    floor = fact(table, "test ratings per item, rounded down")
    return MeasuredValue(
        fact(table, "test ratings per item"),
        as_defined=floor,
        note=f"0.8 x {least:.0f} = {0.8 * least:.1f}, rounded to the nearest. The condition that "
        f"a fifth of an item's ratings stays in training needs {floor:.0f}.",
    )


def disjoint_tests(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the uniform tests without common ratings that the least rated item has room for."""
    table = lab.table(uniform_facts, dataset_name)
    eta = fact(table, "test ratings per item, rounded down")
    least = fact(table, "ratings of the least rated test item")
    return MeasuredValue(
        fact(table, "disjoint test sets"),
        note=f"Five need 5 x {eta:.0f} = {5 * eta:.0f} ratings, and there are {least:.0f}. "
        "Disjoint folds need ε ≥ 1 - 1/n, not 1/n.",
    )


def _remedied(
    lab: Lab, dataset_name: str, system: str, metric: str = P
) -> dict[str, tuple[float, float]]:
    """Return a system's mean and what chance expects, for each design of Fig. 8."""
    tables = [lab.table(one, dataset_name) for one in (configurations, remedies, uniform_designs)]
    scores = {}
    for table in tables:
        for design in table["design"].unique(maintain_order=True).to_list():
            rows = only(table, design=design, system=system, metric=metric)
            means = rows.select(pl.col("value", "random").mean()).row(0)
            scores[design] = (means[0], means[1])
    return scores


def neutralised(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's precision in U1R or P1R in parts of random's, the farther from 1."""
    scores = _remedied(lab, dataset_name, POPULAR)
    over = {design: ratio(*scores[design]) for design in (ONE, U1R, PERCENTILES)}
    worst = max((over[U1R], over[PERCENTILES]), key=lambda value: abs(value - 1))
    nearer = abs(over[PERCENTILES] - 1) < abs(over[U1R] - 1)
    return MeasuredValue(
        worst,
        text=", ".join(f"{design} {scores[design][0]:.4f}" for design in over),
        note=f"In parts of random: {', '.join(f'{one} {x:.2f}' for one, x in over.items())}. "
        f"P1R is {'the nearer' if nearer else 'not nearer'}.",
    )


def uniform_leaves_popularity_over_knn(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity with kNN in UAR."""
    table = lab.table(uniform_designs, dataset_name)
    values = by_system(table, design=UAR, metric=P)
    before = by_system(lab.table(remedies, dataset_name), design=AR_FIXED, metric=P)[POPULAR]
    return MeasuredValue(
        ratio(values[POPULAR], values[KNN]),
        text=f"popularity {values[POPULAR]:.4f}, kNN {values[KNN]:.4f}",
        note=f"Popularity falls from {before:.4f} in AR. {listed(values)}; random is expected to "
        f"have {mean_of(table, 'random', design=UAR, metric=P):.4f}.",
    )


def _fig_8(lab: Lab, dataset_name: str, metric: str = P) -> dict[str, dict[str, float]]:
    parts = (
        (remedies, (AR_FIXED, PERCENTILES, HEADLESS)),
        (configurations, (ONE,)),
        (uniform_designs, (UAR, U1R, UAR_ALL)),
    )
    return {
        design: by_system(lab.table(table, dataset_name), design=design, metric=metric)
        for table, designs in parts
        for design in designs
    }


def plsa_first_everywhere(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count in which share of the designs of Fig. 8 pLSA is the best system."""
    scores = _fig_8(lab, dataset_name)
    first = [design for design, values in scores.items() if place(values, PLSA) == 1]
    apart = ", ".join(
        f"{design} {ratio(scores[design][PLSA], scores[design][POPULAR]):.2f}"
        for design in (ONE, U1R, PERCENTILES)
    )
    return MeasuredValue(
        len(first) / len(scores),
        text=f"{len(first)} of {len(scores)}",
        note=f"pLSA is so many times as good as popularity: {apart}.",
    )


def all_items_keep_bias(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity by random with all items and with test items, in UAR and U1R."""
    scores = _remedied(lab, dataset_name, POPULAR)
    over = {design: ratio(*scores[design]) for design in (UAR, UAR_ALL, U1R, U1R_ALL)}
    least = min(ratio(over[UAR_ALL], over[UAR]), ratio(over[U1R_ALL], over[U1R]))
    listing = ", ".join(f"{design} {value:.1f}" for design, value in over.items())
    return MeasuredValue(
        least,
        note=f"Popularity by random: {listing}. P@10: U1R {scores[U1R][0]:.4f}, with all items "
        f"{scores[U1R_ALL][0]:.4f}.",
    )


def head_is_not_all(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity without the head with U1R and P1R, in parts of random."""
    scores = _remedied(lab, dataset_name, POPULAR)
    over = {design: ratio(*scores[design]) for design in (ONE, HEADLESS, U1R, PERCENTILES)}
    return MeasuredValue(
        ratio(over[HEADLESS], max(over[U1R], over[PERCENTILES])),
        text=f"{scores[HEADLESS][0]:.4f}; U1R {scores[U1R][0]:.4f}, "
        f"P1R {scores[PERCENTILES][0]:.4f}",
    )


def remedies_by_all_metrics(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the metrics by which U1R, P1R and UAR lower popularity, relative to random."""
    right = {}
    for metric in (RECALL, AP, RR, NDCG):
        over = {
            one: ratio(*two) for one, two in _remedied(lab, dataset_name, POPULAR, metric).items()
        }
        right[metric] = (
            over[U1R] < over[ONE] and over[PERCENTILES] < over[ONE] and over[UAR] < over[AR_FIXED]
        )
    listing = ", ".join(f"{metric} {'yes' if yes else 'no'}" for metric, yes in right.items())
    return MeasuredValue(
        sum(right.values()), text=f"{sum(right.values())} of 4", note=f"{listing}."
    )


def constant_ratio_is_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity with random under uniform tests, every item being liked alike."""
    table = lab.table(constant_ratio, dataset_name)
    rows = {design: only(table, design=design, system=POPULAR) for design in (UAR, U1R)}
    texts = [
        f"{design} {mean_of(each):.4f} against {mean_of(each, 'random'):.4f}"
        for design, each in rows.items()
    ]
    value, low, high = max(above_chance(each) for each in rows.values())
    return MeasuredValue(
        value,
        low,
        high,
        text=f"{'; '.join(texts)}: x {value:.2f}",
        note="Popularity against random, where liking is a coin. An item's test ratings come from "
        "the users who did not train on it, and of popular items there are fewer: the chance to be "
        "judged is η / (|U| - |R(i)| + η), which grows with popularity.",
    )


def uniform_is_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare popularity with random in U1R, where all ratings are liked."""
    rows = only(lab.table(uniform_designs, dataset_name), design=U1R, system=POPULAR, metric=P)
    value, low, high = above_chance(rows)
    text = f"{mean_of(rows):.4f} against {mean_of(rows, 'random'):.4f}: x {value:.2f}"
    return MeasuredValue(value, low, high, text=text)


def smallest_percentile(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the items of the smallest percentile."""
    return MeasuredValue(float(lab.table(percentiles, dataset_name)["value"].to_numpy().min()))


def short_percentile_lists(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the lists that a percentile cannot fill, a fold."""
    where = {"system": POPULAR, "metric": P}
    short = mean_of(lab.table(remedies, dataset_name), "short", design=PERCENTILES, **where)
    lists = mean_of(lab.table(configurations, dataset_name), "lists", design=ONE, **where)
    return MeasuredValue(
        short,
        text=f"{short:.0f} of {lists:.0f}",
        note="What a user has in training is no target: for active users too little is left of a "
        "percentile. These lists are shorter here, each with its own 1/t.",
    )


def random_falls_with_candidates(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the fall of random precision from TI to AI with |T| / |C|, in UAR."""
    table = lab.table(uniform_designs, dataset_name)
    test, all_items = (mean_of(table, "random", design=one, metric=P) for one in (UAR, UAR_ALL))
    share = fact(lab.table(uniform_facts, dataset_name), "test items") / len(
        lab.data(dataset_name).ratings.items
    )
    fall = ratio(all_items, test)
    return MeasuredValue(ratio(fall, share), text=f"x {fall:.3f}; |T| / |C| = {share:.3f}")


# Sections 6.3 and 7: metrics


def one_item_merges_metrics(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far MAP is from MRR in 1R, and nDCG with grades from nDCG without."""
    table = lab.table(one_item, dataset_name)
    names = table["system"].unique(maintain_order=True).to_list()

    def apart(name: str, a: tuple[str, str], b: tuple[str, str]) -> float:
        values = [
            mean_of(table, system=name, judgments=gain, metric=metric) for gain, metric in (a, b)
        ]
        return abs(values[0] - values[1])

    graded, binary = "liked-only", "binary"
    pairs = [((graded, AP), (graded, RR))]
    pairs += [((graded, metric), (binary, metric)) for metric in (NDCG, NDCG_WHOLE)]
    return MeasuredValue(max(apart(name, a, b) for name in names for a, b in pairs))


def bpref_is_coverage(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least bpref of a 1R list whose item could be ranked, nothing being disliked."""
    rows = only(lab.table(one_item, dataset_name), metric=BPREF)
    listing = ", ".join(
        f"{name} {value:.4f}" for name, value in rows.select("system", "value").rows()
    )
    return MeasuredValue(
        float(rows["least"].to_numpy().min()),
        note=f"Means, which are the share of items that a system could rank: {listing}. With the "
        "disliked items that are drawn among the others kept as judgments, it is below 1.",
    )


def stratified_zero_is_recall(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far stratified recall with γ = 0 is from recall."""
    table = lab.table(configurations, dataset_name)
    keys = ["design", "fold", "system"]
    both = only(table, metric=STRATIFIED_0).join(only(table, metric=RECALL), on=keys)
    return MeasuredValue(float((both["value"] - both["value_right"]).abs().to_numpy().max()))


def _ar(lab: Lab, dataset_name: str, metric: str) -> dict[str, float]:
    return by_system(lab.table(configurations, dataset_name), design=AR, metric=metric)


def incomplete_judgments(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether popularity and pLSA lose places by bpref and by infAP in AR."""
    before = _ar(lab, dataset_name, P)
    orders, right = [], True
    for metric in (BPREF, INFAP):
        after = _ar(lab, dataset_name, metric)
        moves = {name: place(after, name) - place(before, name) for name in (POPULAR, PLSA)}
        right = right and moves[POPULAR] >= 0 and moves[PLSA] > 0
        orders.append(f"{metric}: {listed(after, 3)}")
    trec = _ar(lab, dataset_name, INFAP_TREC)
    equal = max(abs(trec[name] - value) for name, value in _ar(lab, dataset_name, AP).items())
    note = (
        f"P@10: {listed(before)}. {'; '.join(orders)}. infAP is taken with everything above in the "
        f"pool; with the judged items as the pool (trec_eval) it is AP (apart {equal:.0e})."
    )
    return MeasuredValue(right, note=note)


def implicit_bpref(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether bpref ranks popularity and random first, and infAP them first and third."""
    bpref, inferred = _ar(lab, dataset_name, BPREF), _ar(lab, dataset_name, INFAP)
    tied = place(bpref, POPULAR) == place(bpref, RANDOM) == 1
    right = tied and place(inferred, POPULAR) == 1 and place(inferred, RANDOM) == 3
    return MeasuredValue(right, note=f"bpref: {listed(bpref, 3)}. infAP: {listed(inferred, 3)}.")


def stratified_place(lab: Lab, dataset_name: str, *, system: str) -> MeasuredValue:
    """Return a system's place by stratified recall in AR."""
    values, before = _ar(lab, dataset_name, STRATIFIED), _ar(lab, dataset_name, P)
    return MeasuredValue(
        place(values, system),
        text=f"{place(values, system)} (by P@10: {place(before, system)})",
        note=f"{listed(values)}.",
    )


def inferred_keeps_bias(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count how many places popularity loses in 1R by infAP, nothing being disliked."""
    table = only(lab.table(one_item, dataset_name), judgments=LIKED_ONLY)
    before, after = (by_system(table, metric=one) for one in (P, INFAP))
    kept = by_system(lab.table(configurations, dataset_name), design=ONE, metric=INFAP)
    return MeasuredValue(
        place(after, POPULAR) - place(before, POPULAR),
        note=f"infAP: {listed(after, 3)}. With the disliked items that are drawn among the others "
        f"kept as judgments: {listed(kept, 3)}.",
    )


def weights_known(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the liked test items without a weight: those that nobody likes."""
    table = lab.table(weights, dataset_name)
    bare = float(np.mean(table["without a liked training rating"].to_numpy()))
    every = float(np.mean(table["liked test items"].to_numpy()))
    return MeasuredValue(
        int(table["without any"].sum()),
        note=f"|PR(i)| counts training and test. By training alone {bare:.0f} of {every:.0f} liked "
        f"test items a fold ({len(folds(lab, dataset_name))} folds) would have none.",
    )
