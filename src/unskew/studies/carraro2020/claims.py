"""carraro2020: its claims, how each is measured, and what counts as agreeing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl

from unskew.auditing.interventions import METRICS
from unskew.data.ratings import Ratings
from unskew.data.readers import read_ratings
from unskew.splits.interventions import Evidence, Wtd
from unskew.splits.subsample import random_parts
from unskew.studies.carraro2020 import measures as made
from unskew.studies.carraro2020.printed import (
    IMPERSONAL,
    INTELLIGENT,
    NOISE,
    PERSONAL,
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
from unskew.studies.claims import (
    ALGEBRA,
    NOTE,
    PRINTED,
    Claim,
    Measure,
    Measured,
    Rule,
    above,
    at_least,
    at_most,
    below,
    exactly,
    near,
    true,
)
from unskew.studies.lab import Lab
from unskew.worlds.worlds import world

COAT, R3 = "coat", "yahoo-r3"
BOTH = (COAT, R3)
NAMES = dict(zip(SETS, ("FULL", "REG", "SKEW", "WTD", "WTD_H"), strict=True))

ORDER = "only the order: sizes depend on settings of the systems that are not published"
JACKKNIFE = "intervals are the jackknife's over repetitions"


# Measures


def of_means(
    statistic: Callable[[Means], float],
    unit: str = " points",
    more: Callable[[Means], str] | None = None,
) -> Measure:
    """Make a measure of a statistic of mean recall, by both rules for pairs in both parts.

    Parameters
    ----------
    statistic
        Of means by test set and system.
    unit
        What follows its value.
    more
        What else is said of the means.
    """

    def measure(lab: Lab, on: str) -> Measured:
        each = made.by_repetition(lab.table(made.experiment, on))
        value, low, high = made.over_repetitions(statistic, each)
        notes = [more(made.mean_of(each))] if more is not None else []
        note = " ".join([*notes, _other_rule(lab, on, statistic, unit)]).strip()
        return Measured(value, low, high, text=f"{_signed(value)}{unit}", note=note)

    return measure


def _other_rule(lab: Lab, on: str, statistic: Callable[[Means], float], unit: str) -> str:
    if not made.in_both(lab, on):
        return ""
    rows = lab.table(made.without_pairs_in_training, on)
    value = made.over_repetitions(statistic, made.by_repetition(rows))[0]
    return f"{_signed(value)}{unit} where pairs in both parts are left out of the truth."


def _signed(value: float) -> str:
    text = f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"
    return text.replace("-", "−")


def table_1(lab: Lab, on: str) -> Measured:
    """Count the cells of table 1 that come out as printed, cut off after the last digit."""
    rows = {row["part"]: row for row in lab.table(made.statistics, on).iter_rows(named=True)}
    wrong = [
        f"{part} {name} {rows[part][name]:g}, not {value:g}"
        for part, printed in TABLE_1[on].items()
        for name, step, value in zip(STATISTICS, STEPS[on], printed, strict=True)
        if not math.isclose(truncated(rows[part][name], step), value, abs_tol=1e-9)
    ]
    number = 2 * len(STATISTICS) - len(wrong)
    means = [rows[part]["mean"] for part in ("random", "observed")]
    note = "; ".join(wrong) or f"Cut off, not rounded: mean ratings {means[0]:.3f}, {means[1]:.3f}."
    return Measured(number, text=f"{number} of {2 * len(STATISTICS)} cells", note=note)


def random_part(lab: Lab, on: str) -> Measured:
    """Test whether users and items are equally frequent in the random part."""
    p = _tests(lab, on, "random")
    least = min((one for one in p.values() if not math.isnan(one)), default=math.nan)
    return Measured(least, text=_probabilities(p))


def chosen_part(lab: Lab, on: str) -> Measured:
    """Test whether neither users nor items are equally frequent in the chosen ratings."""
    p = _tests(lab, on, "observed")
    most = max((one for one in p.values() if not math.isnan(one)), default=math.nan)
    counts = np.bincount(made.parts_of(lab, on)[0].user)
    note = ""
    if (counts == counts[0]).all():
        note = f"Every user has {counts[0]}: weights of users correct the noise of the split only."
    return Measured(most, text=_probabilities(p), note=note)


def _probabilities(p: dict[str, float]) -> str:
    said = {of: "< 1e-99" if one < 1e-99 else f"= {one:.2g}" for of, one in p.items()}
    return f"items p {said['items']}, users p {said['users']}"


def _tests(lab: Lab, on: str, part: str) -> dict[str, float]:
    own = lab.table(made.posteriors, on).filter(pl.col("of") != "pairs", part=part)
    return dict(own.select("of", "p").iter_rows())


def truths(lab: Lab, on: str) -> Measured:
    """Compare the true recall of every system with what is printed."""
    printed = [TABLE_2[on][system][0] for system in SYSTEMS]

    def distance(means: Means) -> float:
        own = [means[TRUE, system] for system in SYSTEMS]
        return max(abs(a - b) for a, b in zip(own, printed, strict=True))

    def listed(rows: pl.DataFrame) -> str:
        own = [
            made.over_repetitions(lambda m, s=system: m[TRUE, s], made.by_repetition(rows))[0]
            for system in SYSTEMS
        ]
        return " / ".join(f"{one:.3f}".lstrip("0") for one in own)

    kept, left = (lab.table(one, on) for one in (made.experiment, made.without_pairs_in_training))
    value, low, high = made.over_repetitions(distance, made.by_repetition(kept))
    note = f"Recall {listed(kept)}; {listed(left)} without the pairs that are in both parts."
    text = f"up to {value:.3f} off".replace("0.", ".")
    return Measured(value, low, high, text=text, note=note)


def cells_agree(lab: Lab, on: str, within: float) -> Measured:
    """Count the cells of table 2 that are near enough to what is printed."""
    own, printed = _cells(lab, on), printed_errors(on)
    apart = [key for key in printed if abs(own[key] - printed[key]) > within]
    turned = [key for key in printed if abs(printed[key]) >= NOISE and own[key] * printed[key] <= 0]
    number = len(printed) - len(apart)
    note = (
        f"{len(turned)} of the cells printed with {NOISE:g} points and more have the other sign. "
        f"Farther off: {'; '.join(_told(key, own, printed) for key in apart) or 'none'}."
    )
    return Measured(number, text=f"{number} of {len(printed)} cells", note=note)


def signs(lab: Lab, on: str) -> Measured:
    """Return the share of cells that over-estimate (PosPop on WTD_H: under-estimates).

    On the paper's data only the cells that it prints with 25 points and more: the others are noise.
    """
    own = _cells(lab, on)
    printed = printed_errors(on) if on in TABLE_2 else None
    asked = [key for key in own if printed is None or abs(printed[key]) >= NOISE]
    wrong = [key for key in asked if (own[key] > 0) == (key == ("wtd-h", "PosPop"))]
    right = len(asked) - len(wrong)
    note = "; ".join(_told(key, own, printed) for key in wrong)
    return Measured(right / len(asked), text=f"{right} of {len(asked)} cells", note=note)


def _cells(lab: Lab, on: str) -> made.Errors:
    table = made.study_of(lab.table(made.experiment, on)).table()
    return {(row["set"], row["system"]): row["error"] for row in table.iter_rows(named=True)}


def _told(key: tuple[str, str], own: made.Errors, printed: made.Errors | None) -> str:
    text = f"{key[1]} on {NAMES[key[0]]} {own[key]:+.0f} %"
    if printed is not None:
        text += f", printed {printed[key]:+.0f} %"
    return text.replace("-", "−")


def errors_of_wtd_h(means: Means) -> str:
    """List the errors of WTD_H."""
    found = made.errors(means)
    listed = ", ".join(f"{system} {found['wtd-h', system]:+.0f}" for system in SYSTEMS)
    return f"{listed} %.".replace("-", "−")


def place_of_mf(lab: Lab, on: str) -> Measured:
    """Return how many ranks MF is lower by truth than on the test set that ranks it lowest."""
    each = made.by_repetition(lab.table(made.experiment, on))
    value, low, high = made.over_repetitions(made.fall_of_mf, each)
    first, *others = made.ranks_of_mf(made.mean_of(each)).values()
    listed = ", ".join(map(str, others))
    return Measured(value, low, high, note=f"Rank by truth {first}; on the test sets {listed}.")


def printed_taus(on: str, systems: tuple[str, ...]) -> list[float]:
    """Return Kendall's τ of every test set, from the printed table 2."""
    means = printed_means(on)
    return [made.tau(means, name, systems) for name in SETS]


def table_3(_lab: Lab, _on: str) -> Measured:
    """Count the cells of table 3 that follow from table 2."""
    found = {on: printed_taus(on, SYSTEMS) for on in BOTH}
    right = sum(
        math.isclose(a, b, abs_tol=1e-9)
        for on in BOTH
        for a, b in zip(found[on], TABLE_3[on], strict=True)
    )
    return Measured(right, text=f"{right} of 10 cells")


def table_4_coat(_lab: Lab, _on: str) -> Measured:
    """Count the cells of table 4 that follow from table 2, on Coat."""
    found = printed_taus(COAT, SYSTEMS[:-1])
    right = sum(math.isclose(round(a, 1), b) for a, b in zip(found, TABLE_4[COAT], strict=True))
    exact = ", ".join(f"{one:.3f}" for one in found)
    return Measured(right, text=f"{right} of 5 cells", note=f"Unrounded: {exact}.")


def table_4_r3(_lab: Lab, _on: str) -> Measured:
    """Compute the cell of table 4 that is nearest to the printed .68, from table 2."""
    found = printed_taus(R3, SYSTEMS[:-1])
    nearest = min(found, key=lambda one: abs(one - TABLE_4[R3][0]))
    same = "in all five cells" if len(set(found)) == 1 else "at the nearest"
    return Measured(
        nearest,
        note=f"Right is 2/3 = .667, {same}: four systems have six pairs, so that τ is a multiple "
        "of 1/3, and a mean of ten repetitions one of 1/30; .68 is neither.",
    )


def printed_gain(_lab: Lab, _on: str) -> Measured:
    """Compute by how much SKEW, WTD and WTD_H lessen the mean size of printed errors."""
    said = []
    for on, title in ((COAT, "Coat"), (R3, "R3")):
        sizes = [made.size_of_error(printed_means(on), name) for name in ("full", *INTELLIGENT)]
        first, *others = (f"{one:.0f}" for one in sizes)
        said.append(f"{title} {first} → {' / '.join(others)}")
    value = min(made.gain_in_error(printed_means(on)) for on in BOTH)
    return Measured(value, text="; ".join(said))


def flattened(lab: Lab, on: str, name: str) -> Measured:
    """Compare the divergence of items from uniform in a test set with that before."""
    value, low, high = made.flattening(lab, on, name)
    others = ", ".join(
        f"{NAMES[one]} {made.flattening(lab, on, one)[0]:.2f}" for one in SETS[1:] if one != name
    )
    note = f"The others: {others}; of users {made.flattening(lab, on, name, 'users')[0]:.2f}."
    return Measured(value, low, high, text=f"{value:.2f} times that before", note=note)


def nearer_to_random(lab: Lab, on: str) -> Measured:
    """Compare how far the items of WTD's set are from those that it aims at with REG's."""
    value, low, high = made.nearness_to_random(lab, on, "wtd")
    others = ", ".join(
        f"{NAMES[one]} {made.nearness_to_random(lab, on, one)[0]:.2f}" for one in ("skew", "wtd-h")
    )
    uniform = made.flattening(lab, on, "wtd")[0]
    note = (
        f"The others: {others}. It does not aim at equally frequent items: WTD's divergence from "
        f"those is {uniform:.2f} times that of the held-out ratings, because it squares the noise "
        "of few random ratings."
    )
    return Measured(value, low, high, text=f"{value:.2f} times REG's distance", note=note)


def squared_weights(lab: Lab, _on: str) -> Measured:
    """Compare weights of items with and without the square, in a small world."""
    small = world("shop", users=80, items=50, seed=lab.seed)
    train, held_out = random_parts(small.ratings, made.SHARES, lab.seed)
    evidence = Evidence(held_out, train, small.random(0.2), lab.seed)
    plain, squared = (Wtd(exponent=one).aim(evidence).item for one in (1, 2))
    right = np.allclose(squared, plain**2, rtol=1e-12) and bool(
        (np.sign(squared - plain) == np.sign(plain - 1)).all()
    )
    grown = int((plain > 1).sum())
    return Measured(right, note=f"Of {plain.size} items {grown} gain weight by the square.")


def half_size(lab: Lab, on: str) -> Measured:
    """Compare the sizes of intervened sets with half the held-out ratings, rounded down."""
    own = lab.table(made.drawn, on).filter(pl.col("set") != "full")
    right = bool((own["kept"] == own["held_out"] // 2).all())
    first = own.row(0, named=True)
    return Measured(right, note=f"{first['kept']:,} of {first['held_out']:,} ratings.")


def nearness_of_metrics(lab: Lab, on: str) -> Measured:
    """Return how far precision's, MAP's and nDCG's errors are from recall's, the farthest."""
    rows = lab.table(made.experiment, on)
    recall = made.by_repetition(rows)
    found = {
        metric: made.over_repetitions(
            made.between_metrics, recall, made.by_repetition(rows, metric)
        )
        for metric in made.OTHERS
    }
    worst = max(found, key=lambda metric: found[metric][0])
    distances = ", ".join(f"{metric} {one[0]:.0f}" for metric, one in found.items())
    each = [made.by_repetition(rows, metric) for metric in METRICS]
    signs = made.over_repetitions(made.same_signs, *each)[0]
    note = (
        f"Mean distance in points: {distances}. {signs:.0f} % of their errors have the sign of "
        "recall's, where that is 25 points and more. Precision falls with the size of the test "
        "set, recall does not: half the held-out ratings halve it."
    )
    text = f"{found[worst][0]:.0f} points ({worst})"
    return Measured(*found[worst], text=text, note=note)


def pairs_in_both(lab: Lab, on: str) -> Measured:
    """Return the largest change of an error when pairs in both parts leave the truth."""
    number = made.in_both(lab, on)
    rules = (made.experiment, made.without_pairs_in_training)
    each = [made.by_repetition(lab.table(one, on)) for one in rules]
    value, low, high = made.over_repetitions(made.between_rules, *each)
    note = f"{number:,} pairs are in both parts. What is in training cannot be recommended: "
    note += "kept in the truth it counts as missed."
    return Measured(value, low, high, text=f"up to {value:.0f} points", note=note)


def stand_in_for_zero(_lab: Lab, _on: str) -> Measured:
    """Compare what stands for a posterior of zero with the posterior of an average user."""
    small, large = (_zero_to_average(TABLE_1[on]["random"][1]) for on in BOTH)
    note = (
        f"{small:.2f} of an average user's posterior with the users of Coat, {large:.2f} with "
        "those of Webscope R3. Adding a rating to every user and item (additive smoothing) means "
        "the same on all data."
    )
    return Measured(large / small, text=f"{large / small:.1f} times as much", note=note)


def _zero_to_average(users: float) -> float:
    """Return n times the posterior that WTD gives one of n users who has no random rating."""
    number = int(users)
    everybody = _of_users(np.arange(number))
    evidence = Evidence(everybody, everybody, everybody.take(np.arange(number - 1)), 0)
    target = Wtd(smoothing="paper").aim(evidence).to_user
    return math.nan if target is None else float(target[-1]) * number


def _of_users(users: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Ratings:
    return read_ratings({"user": users, "item": np.zeros_like(users), "rating": users * 0 + 1})


# Claims


def ordinal(
    key: str,
    data: tuple[str, ...],
    says: str,
    question: str,
    statistic: Callable[[Means], float],
    rule: Rule,
    published: str,
    why: str = ORDER,
    unit: str = " points",
) -> Claim:
    """Make a claim of section 6 about the errors of test sets, asked of any data."""
    return Claim(
        key,
        "§6, Table 2",
        says,
        of_means(statistic, unit),
        rule,
        f"{why}; {JACKKNIFE}",
        published,
        data,
        asks=rule,
        question=question,
    )


CLAIMS = (
    Claim(
        "2-01",
        "Table 1",
        "Coat has 4,640 random and 6,960 chosen ratings of 300 items by 290 "
        "users: 16 and 24 per user, 15 and 23 per item, 2.22 and 2.61 on average.",
        table_1,
        exactly(14),
        "counts; the table cuts numbers off instead of rounding them",
        "14 cells",
        (COAT,),
    ),
    Claim(
        "2-02",
        "Table 1",
        "Webscope R3 has 54k random and 129k chosen ratings of 1,000 items by "
        "5,400 users: 10 and 23 per user, 54 and 129 per item, 1.81 and 2.87 on average.",
        table_1,
        exactly(14),
        "counts; the table cuts numbers off instead of rounding them",
        "14 cells",
        (R3,),
    ),
    Claim(
        "2-03",
        "§3.1, Eqs. 1–2",
        "In the random part users and items are about equally frequent.",
        random_part,
        at_least(0.01),
        "Cochran's Q at the 1 % level, one-sided: counts that are "
        "more even than chance are no objection",
        "roughly uniform",
        BOTH,
        asks=at_least(0.01),
        question="Are users and items equally frequent in the random part?",
    ),
    Claim(
        "2-04",
        "§5.3, §6",
        "A random half of the held-out ratings (REG) gives about the same "
        "errors as all of them (FULL).",
        of_means(made.reg_to_full),
        at_most(10),
        f"10 points, as the printed cells differ by up to 9; {JACKKNIFE}",
        "up to 9 points",
        BOTH,
        asks=at_most(10),
        question="Does half of the held-out ratings say the same as all?",
    ),
    Claim(
        "2-05",
        "Table 2",
        "On Coat's random ratings PosPop, AvgRating, UB_KNN, IB_KNN and MF have "
        "Recall@10 .066, .068, .067, .073 and .063.",
        truths,
        at_most(0.012).open(),
        "about three standard errors over ten splits (random ranks have .035); the settings of "
        "the nearest-neighbour systems are not published",
        ".066 / .068 / .067 / .073 / .063",
        (COAT,),
    ),
    Claim(
        "2-06",
        "Table 2",
        "On the random ratings of Webscope R3 they have Recall@10 .056, .016, .073, .071 and .077.",
        truths,
        at_most(0.006).open(),
        "about three standard errors over ten splits; the settings of the nearest-neighbour "
        "systems are not published",
        ".056 / .016 / .073 / .071 / .077",
        (R3,),
    ),
    Claim(
        "2-07",
        "Table 2",
        "On Coat the errors of the five test sets are those of table 2.",
        partial(cells_agree, within=25.0),
        exactly(25).open(),
        "within 25 points: ratios of noisy means",
        "25 cells",
        (COAT,),
    ),
    Claim(
        "2-08",
        "Table 2",
        "On Webscope R3 the errors of the five test sets are those of table 2.",
        partial(cells_agree, within=15.0),
        exactly(25).open(),
        "within 15 points: ratios of noisy means",
        "25 cells",
        (R3,),
    ),
    Claim(
        "2-09",
        "§6, Table 2",
        "On Coat every test set over-estimates every system, but for PosPop on WTD_H.",
        signs,
        exactly(1),
        "signs of the cells printed with 25 points and more; the others are noise",
        "24 of 25 cells above 0",
        (COAT,),
        asks=exactly(1),
        question="Does every test set over-estimate every system, but for PosPop on WTD_H?",
    ),
    ordinal(
        "2-10",
        (COAT,),
        "On Coat WTD is the nearest to the truth for non-personalised systems.",
        "Is WTD the nearest to the truth for the non-personalised systems?",
        lambda means: made.least_lead(means, "wtd", IMPERSONAL),
        above(0),
        "leads by 12 points",
    ),
    ordinal(
        "2-11",
        (COAT,),
        "On Coat WTD_H is the nearest to the truth for the personalised systems.",
        "Is WTD_H the nearest to the truth for the personalised systems?",
        lambda means: made.least_lead(means, "wtd-h", PERSONAL),
        above(0),
        "leads by 21 points",
    ),
    ordinal(
        "2-12",
        (R3,),
        "On Webscope R3 every test set under-estimates AvgRating.",
        "Does every test set under-estimate AvgRating?",
        lambda means: made.largest_error(means, "AvgRating"),
        below(0),
        "−49 % at the most",
        "sign",
        " %",
    ),
    ordinal(
        "2-13",
        (R3,),
        "On Webscope R3 SKEW, WTD and WTD_H are equally good for AvgRating.",
        "Are SKEW, WTD and WTD_H equally good for AvgRating?",
        made.spread_of_sizes,
        at_most(10),
        "2 points apart",
        "10 points: ratios of noisy means",
    ),
    ordinal(
        "2-14",
        (R3,),
        "On Webscope R3 SKEW is the nearest to the truth for PosPop.",
        "Is SKEW the nearest to the truth for PosPop?",
        lambda means: made.least_lead(means, "skew", ["PosPop"]),
        above(0),
        "leads by 54 points",
    ),
    ordinal(
        "2-15",
        (R3,),
        "On Webscope R3 WTD and WTD_H are nearer to the truth than SKEW for the "
        "personalised systems.",
        "Are WTD and WTD_H nearer to the truth than SKEW for the personalised systems?",
        made.lead_over_skew,
        above(0),
        "lead by 11 points",
    ),
    ordinal(
        "2-16",
        (R3,),
        "On Webscope R3 WTD is nearer to the truth than WTD_H for PosPop, UB_KNN "
        "and IB_KNN; WTD_H is for MF and AvgRating.",
        "Is WTD nearer than WTD_H for PosPop, UB_KNN and IB_KNN, and farther for MF and AvgRating?",
        made.wtd_or_hypothesised,
        above(0),
        "lead by 2 points",
    ),
    Claim(
        "2-17",
        "Table 3",
        "Kendall's τ to the true order of the five systems is .2, .2, 0, 0, 0 "
        "on Coat and .6, .6, .8, .8, .8 on Webscope R3.",
        table_3,
        exactly(10),
        "arithmetic from table 2",
        "10 cells",
        evidence=PRINTED,
    ),
    Claim(
        "2-18",
        "Table 4",
        "Without MF, τ on Coat is .3, .3, .7, .7, .7.",
        table_4_coat,
        exactly(5),
        "arithmetic from table 2, to one decimal",
        "5 cells",
        evidence=PRINTED,
    ),
    Claim(
        "2-19",
        "Table 4",
        "Without MF, τ on Webscope R3 is .68 for every test set.",
        table_4_r3,
        near(0.68, 0.005),
        "arithmetic from table 2, to two decimals",
        ".68",
        evidence=PRINTED,
    ),
    Claim(
        "2-20",
        "§6",
        "On Coat every biased test set ranks MF among the best, and it is the worst by the truth.",
        place_of_mf,
        at_least(2),
        "ranks between the truth and the test set that "
        f"ranks MF lowest, of which table 2 has two; {JACKKNIFE}",
        "5th by truth, 3rd or better",
        (COAT,),
        asks=at_least(1),
        question="Does every biased test set rank MF higher than the truth?",
    ),
    Claim(
        "2-21",
        "§7, from Table 2",
        "SKEW, WTD and WTD_H are nearer to the truth than FULL on average over systems.",
        printed_gain,
        above(0),
        "arithmetic from table 2: the mean size "
        "of the errors in points, FULL → SKEW / WTD / WTD_H; what counts is the smallest gain",
        "",
        evidence=PRINTED,
    ),
    Claim(
        "2-22",
        "§4.2, Eq. 7",
        "WTD makes the posteriors of items in the test set similar to those of the random ratings.",
        nearer_to_random,
        below(1),
        "total variation between the shares of items, as a multiple of "
        f"that of a random set of the same size; {JACKKNIFE}",
        "approximately the same",
        BOTH,
        asks=below(1),
        question="Is WTD's test set nearer to the random ratings' items than REG's?",
    ),
    Claim(
        "2-23",
        "§4.2",
        "Squared weights of items raise the effect of items: those above 1 grow, "
        "those below 1 shrink.",
        squared_weights,
        true(),
        "exact",
        "",
        evidence=ALGEBRA,
    ),
    Claim(
        "2-24",
        "§5.2",
        "Intervened test sets have half the size of the held-out ratings.",
        half_size,
        true(),
        "exact, rounded down",
        "50 %",
        BOTH,
        asks=true(),
        question="Have intervened test sets half the size of the held-out ratings?",
        evidence=ALGEBRA,
    ),
    Claim(
        "2-25",
        "§6",
        "The errors of precision, MAP and nDCG are very similar to those of recall.",
        nearness_of_metrics,
        at_most(25),
        "25 points on average over the cells of table 2, the "
        f"noise of one cell; the metric that is farthest counts; {JACKKNIFE}",
        "very similar",
        BOTH,
        asks=at_most(25),
        question="Are errors of precision, MAP and nDCG near those of recall?",
    ),
    Claim(
        "2-26",
        "§5.1–5.2",
        "The paper says nothing of pairs that are in both parts.",
        pairs_in_both,
        at_most(10),
        "the largest change of a cell of table 2, in points, when such "
        f"pairs leave the truth; {JACKKNIFE}",
        "not mentioned",
        BOTH,
        asks=at_most(10),
        question="Do pairs that are in both parts move errors by 10 points at the most?",
        kind=NOTE,
    ),
    Claim(
        "2-27",
        "§5.3, released code",
        "For a user or item without ratings a posterior of 0.0001 "
        "stands in; what it means depends on the number of users.",
        stand_in_for_zero,
        near(1, 0.1),
        "what stands for zero as a share of the average posterior, Webscope R3's to Coat's",
        "0.0001",
        evidence=ALGEBRA,
        kind=NOTE,
    ),
    Claim(
        "2-28",
        "§3.2, Eqs. 4–5",
        "In ratings that users chose, neither users nor items are equally frequent in general.",
        chosen_part,
        below(0.01).open(),
        "Cochran's Q at the 1 % level, for users and items; 'in general' leaves exceptions open",
        "not uniform",
        BOTH,
        asks=below(0.01),
        question="Are neither users nor items equally frequent in your ratings?",
    ),
    Claim(
        "2-29",
        "§6",
        "On Coat WTD_H is at most around 50 % off the truth for every system but MF.",
        of_means(made.balance, " %", errors_of_wtd_h),
        at_most(60).open(),
        f"60 for 'around 50'; sizes depend on settings of the systems that are not published; "
        f"{JACKKNIFE}",
        "43 %",
        (COAT,),
        asks=at_most(60),
        question="Is WTD_H at most around 50 % off the truth for every system but MF?",
    ),
    ordinal(
        "2-30",
        (R3,),
        "On Webscope R3 SKEW, WTD and WTD_H are nearer to the truth than FULL and "
        "REG for AvgRating.",
        "Are SKEW, WTD and WTD_H nearer to AvgRating's truth than FULL, REG?",
        made.lead_over_baselines,
        above(0),
        "lead by 26 points",
    ),
    ordinal(
        "2-31",
        BOTH,
        "SKEW, WTD and WTD_H are nearer to the truth than FULL on average over systems.",
        "Are SKEW, WTD and WTD_H nearer to the truth than FULL on average?",
        made.gain_in_error,
        above(0),
        "by 80 (Coat) and 193 points (R3)",
    ),
    Claim(
        "2-32",
        "§6, Table 3",
        "On Webscope R3 SKEW, WTD and WTD_H order the systems more as the truth does than FULL.",
        of_means(made.gain_in_tau, ""),
        above(0),
        f"the least τ of the three beyond that of FULL; with five systems even τ = .8 may be "
        f"chance (p = .083); {JACKKNIFE}",
        ".2",
        (R3,),
        asks=above(0),
        question="Do SKEW, WTD and WTD_H order the systems more as the truth does than FULL?",
    ),
    Claim(
        "2-33",
        "§4.3",
        "The weights of WTD_H make the items of the test set more equally frequent.",
        partial(flattened, name="wtd-h"),
        below(1),
        "divergence from uniform in the test set, as a "
        f"multiple of that in the held-out ratings; {JACKKNIFE}",
        "",
        BOTH,
        asks=below(1),
        question="Does WTD_H make the items of the test set more equally frequent?",
    ),
)
