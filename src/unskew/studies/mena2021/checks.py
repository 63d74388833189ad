"""mena2021, how each claim is measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.bias.decomposition import Margins, margins
from unskew.bias.pairs import item_pairs
from unskew.report.text import number
from unskew.splits.familiar import FamiliarTraining
from unskew.splits.time import Temporal
from unskew.stats.correlation import kendall
from unskew.studies.claims import Measure, Measured
from unskew.studies.lab import Lab, NotAtHandError
from unskew.studies.mena2021 import printed
from unskew.studies.mena2021.measures import (
    BEST_ANTI,
    BEST_P,
    BEST_TRUE,
    CONDENSED,
    PAIRS,
    PERSONAL,
    SIXTEEN,
    UNPOPULAR,
    Means,
    Tau,
    half_width,
    is_survey,
    items,
    means,
    observed_part,
    place,
    random_part,
    released,
    released_tau,
    scores,
    share,
    sizes,
    steepness,
    tau,
    temporal,
    temporal_spread,
    turned,
)
from unskew.studies.mena2021.theory import (
    at_random,
    lemma_2,
    lemma_worlds,
    p_of_tau,
    rates_order_alike,
    toys,
    truth_tables,
)

MEANT = "As defined: BPMF learns, which in the paper it never did"
PLAIN = ("Pop", "Avg", "Rnd")
"""The systems that look at no user."""
FIRST = ("P", "Recall")
MORE = ("nDCG", "MRR")
KEPT = 0.6
"""The least τ of metrics that keep the order of systems."""
CASES = ("agree, steeper", "agree, not steeper", "disagree, steeper", "disagree, not steeper")


# The data and their item pairs


def same_sizes(lab: Lab, on: str) -> Measured:
    """Count the sizes that are not as printed."""
    found = dict(lab.table(sizes, on).rows())
    wrong = sum(found.get(what) != size for what, size in printed.SIZES[on].items())
    return Measured(wrong, text=", ".join(f"{value:,} {what}" for what, value in found.items()))


def percent(what: str, note: str = "") -> Measure:
    """Return the measure of a share of item pairs; `note`, of the paper's data, may name it."""

    def measure(lab: Lab, on: str) -> Measured:
        found = 100 * share(lab, on, what)
        return Measured(found, note="" if lab.own else note.format(value=found))

    return measure


def steeper_than_both(lab: Lab, on: str) -> Measured:
    """Return on which share of item pairs the odds of popularity are steeper than both, in percent.

    On the paper's data the note tells what plain popularity gives, of all ratings and of each
    fold's training part.
    """
    value = 100 * share(lab, on, "steeper/both")
    if lab.own:
        return Measured(value)
    table = lab.table(steepness, on)
    plain, rounded = (
        [f"{100 * one:.2f}" for one in table.filter(popularity=name)["both"].to_list()]
        for name in ("plain", "plain, in floating point")
    )
    note = (
        f"With plain popularity in place of its odds it is {plain[0]} %, and on the training part "
        f"of one fold {', '.join(plain[1:])} % (in floating point, which splits ties, "
        f"{', '.join(rounded[1:])} %). That the paper counted one of these is a guess: which fold "
        "comes nearest was looked up after the fact."
    )
    return Measured(value, note=note)


def related(lab: Lab, on: str) -> Measured:
    """Return Pearson's correlation of popularity and relevance, with its interval over items."""
    value = share(lab, on, "truth/pearson")
    number = lab.table(items, on)["p_rel"].is_not_null().sum()
    if number <= 3 or abs(value) >= 1:
        return Measured(value)
    half = 1.96 / math.sqrt(number - 3)  # of Fisher's transformation
    low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1, 1))
    return Measured(value, low, high)


def plain(what: str) -> Measure:
    """Return the measure of a number of the item pairs."""
    return lambda lab, on: Measured(share(lab, on, what))


def four_cases(prefix: str) -> Measure:
    """Return the measure of the four cases: how far they are from those printed.

    On other data: whether the first one is the most frequent.
    """

    def measure(lab: Lab, on: str) -> Measured:
        found = [100 * share(lab, on, f"{prefix}cases/{case}") for case in CASES]
        text = " / ".join(number(one, 2) for one in found) + " %"
        if lab.own:
            return Measured(found[0] == max(found), text=text)
        return Measured(_furthest(found, printed.CASES[on]), text=text)

    return measure


def cases_add_up(lab: Lab, on: str) -> Measured:
    """Return the distance between the cases that disagree and the pairs that do."""
    first, third = (share(lab, on, f"cases/{CASES[at]}") for at in (0, 2))
    strict, ties = share(lab, on, "disagree"), share(lab, on, "ties")
    text = f"{100 * (first + third):.2f} % and {100 * strict:.2f} %"
    note = f"With ties counted as disagreement the pairs are {100 * (strict + ties):.2f} %."
    return Measured(100 * abs(first + third - strict), text=text, note=note)


def what_optima_follow(lab: Lab, on: str) -> Measured:
    """Compare Pearson's correlations with those printed.

    On other data: whether both optimal rankings follow popularity more than ratings.
    """
    found = {key: share(lab, on, f"pearson/{key}") for key in printed.PEARSON}
    text = " / ".join(number(one, 2) for one in found.values())
    if not lab.own:
        return Measured(_furthest(found.values(), printed.PEARSON.values()), text=text)
    more = all(
        abs(found[f"{phi}/popularity"]) > abs(found[f"{phi}/rating"])
        for phi in ("phi_P", "phi_antiP")
    )
    return Measured(more, text=text)


def lemma_3_shares(lab: Lab, on: str) -> Measured:
    """Compare the shares of pairs that do as Lemma 3 says; on other data: the smaller one."""
    found = [100 * share(lab, on, f"truth/lemma3/{metric}") for metric in ("P", "anti-P")]
    text = f"{found[0]:.2f} % (P), {found[1]:.2f} % (anti-P)"
    if lab.own:
        return Measured(min(found), text=text)
    note = f"For anti-precision {found[1]:.1f} % is right."
    return Measured(_furthest(found, (81.2, 75.3)), text=text, note=note)


def popular_and_steep(lab: Lab, on: str) -> Measured:
    """Compare how often popularity and relevance agree, and its odds are steeper."""
    agreeing = 100 * share(lab, on, "truth/popularity_and_relevance_agree")
    steeper = 100 * share(lab, on, "truth/steeper/non-relevance")
    text = f"{agreeing:.1f} % agree, {steeper:.1f} % steeper"
    if lab.own:
        return Measured(min(agreeing, steeper), text=text)
    return Measured(
        _furthest((agreeing, steeper), (69, 90)),
        text=text,
        note="Steeper than non-relevance, the condition of Lemma 3 (a).",
    )


def depends_on_item(lab: Lab, on: str) -> Measured:
    """Tell whether ratings are nearer to relevance independence, and liked items rated more."""
    above = share(lab, on, "dependence/share_above")
    relevance = share(lab, on, "dependence/to_relevance_independence")
    item = share(lab, on, "dependence/to_item_independence")
    holds = above > (0.5 if lab.own else 0.9) and relevance < item
    text = f"{100 * above:.1f} % above; mean distance {relevance:.3f} against {item:.3f}"
    return Measured(holds, text=text)


def residual(lab: Lab, on: str) -> Measured:
    """Return how much likelier a familiar item is to test, in percent."""
    if not is_survey(lab, on):
        raise NotAtHandError(f"{on}: needs a survey that says which items users knew")
    split = next(FamiliarTraining(folds=5).each(random_part(lab, on), lab.seed))
    gap = split.facts["residual"]
    note = "Training takes familiar items out of the lists: what is left of them is tested more."
    return Measured(math.nan if gap is None else 100 * gap, note=note)


def liked_from_4(lab: Lab, on: str) -> Measured:
    """Return the share of random judgments that are 4 or more, in percent."""
    value = random_part(lab, on).value
    note = f"From 3 on it is {100 * float((value >= 3).mean()):.1f} %: the released data take 3."
    return Measured(100 * float((value >= 4).mean()), note=note)


def _furthest(found: Iterable[float], said: Iterable[float]) -> float:
    return max(abs(ours - theirs) for ours, theirs in zip(found, said, strict=True))


# Orders of systems


def twins(
    table: pl.DataFrame,
    names: Sequence[str],
    judgments: str = "observed",
    sets: Mapping[str, tuple[str, str]] = PAIRS,
) -> dict[str, Tau]:
    """Return τ of each metric and its twin of false positives."""
    return {
        name: tau(table, (judgments, sets[name][0]), (judgments, sets[name][1])) for name in names
    }


def kept(table: pl.DataFrame, names: Sequence[str], side: int) -> dict[str, Tau]:
    """Return τ of each metric (side 0) or twin (side 1), as observed and by the truth."""
    return {
        name: tau(table, ("observed", PAIRS[name][side]), ("true", PAIRS[name][side]))
        for name in names
    }


def listed(taus: Mapping[str, Tau]) -> str:
    """Return every τ as text."""
    return ", ".join(f"{name} {number(one.value, 2)}" for name, one in taus.items())


def steady(table: pl.DataFrame, tell: Callable[[pl.DataFrame], Measured]) -> Measured:
    """Return what is true of all folds; from 0 to 1 where leaving one out makes it otherwise."""
    whole = tell(table)
    names = table["fold"].unique(maintain_order=True).to_list()
    if len(names) < 2:
        return whole
    other = [
        name for name in names if tell(table.filter(pl.col("fold") != name)).value != whole.value
    ]
    if not other:
        return whole
    note = f"Without {' or '.join(other)} it is otherwise."
    return replace(whole, low=0.0, high=1.0, note=f"{whole.note} {note}".strip())


def beyond(sides: Sequence[tuple[Tau, int, float]], text: str, note: str = "") -> Measured:
    """Return by how much each τ, in the direction of its sign, is beyond its bound at least."""
    ends = [
        sorted(sign * end for end in (one.low, one.high) if end is not None)
        or [sign * one.value] * 2
        for one, sign, _ in sides
    ]
    value = float(np.min([sign * one.value - bound for one, sign, bound in sides]))
    low, high = (
        float(np.min([end[at] - bound for end, (_, _, bound) in zip(ends, sides, strict=True)]))
        for at in (0, 1)
    )
    text = f"{text}; least margin {number(value, 2)}"
    return Measured(value, low, high, text=text, note=note)


def _extreme(taus: Mapping[str, Tau], on: str, sign: int) -> Measured:
    """Return the largest τ, or with a sign of -1 the smallest, with its interval."""
    far = max(
        taus.values(), key=lambda one: math.inf if math.isnan(one.value) else sign * one.value
    )
    meant = sign * max(sign * one.meant for one in taus.values())
    note = f"{MEANT}{', and liked from 4' if on == 'yahoo-r3' else ''}."
    return Measured(far.value, far.low, far.high, as_defined=meant, text=listed(taus), note=note)


def twins_disagree(names: Sequence[str] = FIRST) -> Measure:
    """Return the measure of the least τ of metrics and their twins, as observed."""
    return lambda lab, on: _extreme(twins(_truthless(lab, on), names), on, -1)


def twins_agree(names: Sequence[str] = FIRST) -> Measure:
    """Return the measure of the largest τ of metrics and their twins, by the truth."""
    return lambda lab, on: _extreme(twins(_truthful(lab, on), names, "true"), on, 1)


def hits_kept(lab: Lab, on: str) -> Measured:
    """Return the least τ of precision and recall as observed and by the truth."""
    return _extreme(kept(_truthful(lab, on), FIRST, 0), on, -1)


def false_turned(lab: Lab, on: str) -> Measured:
    """Return the largest τ of anti-precision and fallout as observed and by the truth."""
    return _extreme(kept(_truthful(lab, on), FIRST, 1), on, 1)


def more_metrics(lab: Lab, on: str) -> Measured:
    """Return by how much nDCG and MRR keep the true order and their twins turn it round."""
    table = _truthful(lab, on)
    hits, false = kept(table, MORE, 0), kept(table, MORE, 1)
    least = 0.0 if lab.own else KEPT
    sides = [(one, 1, least) for one in hits.values()] + [(one, -1, 0.0) for one in false.values()]
    return beyond(sides, f"{listed(hits)}; twins: {listed(false)}")


def condensed_and_full(names: Sequence[str], least: float) -> Measure:
    """Return the measure of how far twins agree on condensed and disagree on full rankings.

    Of the paper's data condensed rankings are those of Fig. 1, which has MovieLens only.
    """

    def measure(lab: Lab, on: str) -> Measured:
        table = _truthless(lab, on)
        short, full = twins(table, names, sets=CONDENSED), twins(table, names)
        sides = [(one, 1, least) for one in full.values()]
        text = f"full: {listed(full)}"
        if not lab.own and on != "ml-1m":
            note = (
                f"On condensed rankings, of which the paper shows MovieLens only: {listed(short)}."
            )
            return beyond(sides, text, note)
        sides += [(one, -1, least) for one in short.values()]
        return beyond(sides, f"condensed: {listed(short)}; {text}")

    return measure


def _truthless(lab: Lab, on: str) -> pl.DataFrame:
    return lab.table(scores, on)


def _truthful(lab: Lab, on: str) -> pl.DataFrame:
    random_part(lab, on)  # says what is missing
    return lab.table(scores, on)


def turned_round(names: Sequence[str] = FIRST, least: float = 0.3) -> Measure:
    """Return the measure of how far hits mislead and false positives are right (8.5)."""

    def measure(lab: Lab, on: str) -> Measured:
        table = lab.table(turned, on)
        hits, false = kept(table, names, 0), kept(table, names, 1)
        sides = [(one, -1, least) for one in hits.values()]
        sides += [(one, 1, least) for one in false.values()]
        return beyond(sides, f"{listed(hits)}; twins: {listed(false)}")

    return measure


def false_positives_better(lab: Lab, on: str) -> Measured:
    """Return how much more of the true order false positives keep than hits do (τ less τ)."""
    table = lab.table(turned, on)
    hits, false = kept(table, FIRST, 0), kept(table, FIRST, 1)
    note = "Here systems learn personal tastes, which keeps hits from turning all of it round."

    def gap(part: pl.DataFrame) -> float:
        both = kept(part, FIRST, 0), kept(part, FIRST, 1)
        return min(one.value for one in both[1].values()) - max(
            one.value for one in both[0].values()
        )

    value, low, high = by_folds(table, gap)
    text = f"{listed(hits)}; twins: {listed(false)}; at least {number(value, 2)} more"
    note = note if max(one.value for one in hits.values()) > 0 else ""
    return Measured(value, low, high, text=text, note=note)


def by_folds(
    table: pl.DataFrame, of: Callable[[pl.DataFrame], float]
) -> tuple[float, float | None, float | None]:
    """Return a number of all folds together, and its 95 % interval from that of each fold."""
    each = [one for part in table.partition_by("fold") if not math.isnan(one := of(part))]
    value = of(table)
    if len(each) < 2:
        return value, None, None
    half = half_width(each)
    return value, value - half, value + half


def misled(lab: Lab, on: str) -> Measured:
    """Tell whether GBPR, WBPR and SLIM seem the best and are among the worst."""
    best = ("GBPR", "WBPR", "SLIM")

    def tell(table: pl.DataFrame) -> Measured:
        seen, real = means(table, "observed", "P@10"), means(table, "true", "P@10")
        first = [place(seen, name, PERSONAL) for name in best]
        last = [place(real, name, SIXTEEN, lowest=True) for name in (*best, "PNMF", "Pop")]
        text = f"places as observed {first}, from the end by the truth {last}"
        return Measured(max(first) <= 4 and max(last) <= 6, text=text)

    return steady(lab.table(turned, on), tell)


def worse_than_random(lab: Lab, on: str) -> Measured:
    """Tell whether of the personalised only SVD++, and hardly BPMF and RSGD, beat random."""

    def tell(table: pl.DataFrame) -> Measured:
        real = means(table, "true", "P@10")
        above = [name for name in PERSONAL if real[name] > real["Rnd"]]
        text = f"above random: {', '.join(above) or 'none'}"
        return Measured("SVD++" in above and set(above) <= {"SVD++", "BPMF", "RSGD"}, text=text)

    return steady(lab.table(turned, on), tell)


def weak_in_time(lab: Lab, on: str) -> Measured:
    """Return the largest size of τ of a metric and its twin by a split in time."""
    found = twins(lab.table(temporal, on), list(PAIRS))
    far = max(abs(one.value) for one in found.values())
    meant = max(abs(one.meant) for one in found.values())
    low, high = lab.table(temporal_spread, on).row(by_predicate=pl.col("of") == "largest size")[1:]
    note = f"{MEANT}, and nDCG has the gains of the text. {_known_in_time(lab, on)}"
    return Measured(far, low, high, as_defined=meant, text=listed(found), note=note)


def _known_in_time(lab: Lab, on: str) -> str:
    """Say how many test users a split in time leaves with training ratings."""
    (split,) = Temporal(test=0.2).split(observed_part(lab, on))
    tested = np.unique(split.test.user)
    known = np.isin(tested, split.train.user).sum()
    return f"{known:,} of {tested.size:,} test users have training ratings."


def corners_in_time(lab: Lab, on: str) -> Measured:
    """Tell whether the average and chance are best by false positives and worst by hits."""
    table = lab.table(temporal, on)
    best, worst, corner = [], [], []
    for hits, false in PAIRS.values():
        good, bad = (means(table, "observed", metric) for metric in (hits, false))
        best += [place(bad, name, SIXTEEN, lowest=True) for name in ("Avg", "Rnd")]
        worst += [place(good, name, SIXTEEN, lowest=True) for name in ("Avg", "Rnd")]
        corner += [place(good, "Pop", SIXTEEN), place(bad, "Pop", SIXTEEN)]
    right = max(best) <= 3 and max(worst) <= 3 and max(corner) <= len(SIXTEEN) // 2
    text = f"by false positives {best}, from the end by hits {worst}, Pop {corner}"
    return Measured(right, text=text, note=_known_in_time(lab, on))


# Single systems


def complementary(lab: Lab, on: str) -> Measured:
    """Return how far condensed precision and anti-precision are from adding up to 1."""
    hits, false = (means(_truthless(lab, on), "observed", one) for one in CONDENSED["P"])
    far = max(abs(hits[name] + false[name] - 1) for name in hits if not math.isnan(hits[name]))
    return Measured(far, text=f"{far:.1e}")


def with_residual(lab: Lab, on: str) -> Measured:
    """Return how far precision, anti-precision and the unjudged share are from adding up to 1."""
    parts = [means(_truthless(lab, on), "observed", one) for one in (*PAIRS["P"], "Residual@10")]
    short = [1 - sum(part[name] for part in parts) for name in SIXTEEN]
    far = max(abs(one) for one in short)
    note = "Lists shorter than ten, where there are few items, leave places empty."
    return Measured(far, text=f"{far:.1e}", note=note if far > 1e-9 else "")


def near_optimal(lab: Lab, on: str) -> Measured:
    """Return popularity's precision in percent of that of the optimal ranking."""
    table = _truthless(lab, on)

    def ratio(part: pl.DataFrame) -> float:
        found = means(part, "observed", "P@10")
        return 100 * found["Pop"] / found[BEST_P] if found[BEST_P] else math.nan

    value, low, high = by_folds(table, ratio)
    bad = means(table, "observed", "anti-P@10")
    at = place(bad, "Pop", (*PLAIN, BEST_P, BEST_ANTI))
    text = f"{value:.1f} %; by anti-precision number {at} from the end of five"
    return Measured(value, low, high, text=text)


def _by_both(
    table: pl.DataFrame, tell: Callable[[Means, Means], Measured], judgments: str = "observed"
) -> Measured:
    """Tell something of the means of precision and anti-precision, if it is so of all folds."""
    return steady(table, lambda part: tell(*(means(part, judgments, one) for one in PAIRS["P"])))


def opposite_ends(lab: Lab, on: str) -> Measured:
    """Tell whether what is optimal for one metric is worst, or nearly, for the other."""
    five = (*PLAIN, BEST_P, BEST_ANTI)

    def tell(good: Means, bad: Means) -> Measured:
        last, high = place(good, BEST_ANTI, five, lowest=True), place(bad, BEST_P, five)
        overall = place(bad, BEST_P, (*SIXTEEN, BEST_P, BEST_ANTI))
        text = f"number {last} and {high} from the end of five; of all eighteen {overall}"
        return Measured(last == 1 and high <= 2, text=text)

    return _by_both(_truthless(lab, on), tell)


def bound(lab: Lab, on: str) -> Measured:
    """Tell whether the optimal rankings bound what looks at no user, each by its own metric."""

    def tell(good: Means, bad: Means) -> Measured:
        best, least = max(good[name] for name in PLAIN), min(bad[name] for name in PLAIN)
        p, anti = good[BEST_P], bad[BEST_ANTI]
        text = f"P {p:.4f} against {best:.4f}, anti-P {anti:.4f} against {least:.4f}"
        return Measured(p >= best and anti <= least, text=text)

    return _by_both(_truthless(lab, on), tell)


def true_bound(lab: Lab, on: str) -> Measured:
    """Tell whether the real optimal ranking bounds what looks at no user, by both metrics."""

    def tell(good: Means, bad: Means) -> Measured:
        best, least = max(good[name] for name in PLAIN), min(bad[name] for name in PLAIN)
        p, anti = good[BEST_TRUE], bad[BEST_TRUE]
        text = f"P {p:.4f} against {best:.4f}, anti-P {anti:.4f} against {least:.4f}"
        return Measured(p >= best and anti <= least, text=text)

    return _by_both(_truthful(lab, on), tell, "true")


def beats_optimal(lab: Lab, on: str) -> Measured:
    """Tell whether a personalised system beats the optimal ranking where the paper says so."""

    def tell(good: Means, _bad: Means) -> Measured:
        best = max(PERSONAL, key=lambda name: good[name])
        text = f"{best} {good[best]:.4f} against {good[BEST_P]:.4f}"
        return Measured((good[best] > good[BEST_P]) == (on == "yahoo-r3"), text=text)

    return _by_both(_truthless(lab, on), tell)


def best_and_nearly_worst(lab: Lab, on: str) -> Measured:
    """Tell whether WRMF is the best by precision and second worst by anti-precision."""

    def tell(good: Means, bad: Means) -> Measured:
        first, last = place(good, "WRMF", SIXTEEN), place(bad, "WRMF", SIXTEEN)
        return Measured(first == 1 and last == 2, text=f"number {first}, and {last} from the end")

    return _by_both(_truthless(lab, on), tell)


def favours_unpopular(lab: Lab, on: str) -> Measured:
    """Tell whether ranking by falling popularity is worse than chance, by rising is better."""
    three = (UNPOPULAR, "Rnd", "Pop")

    def tell(good: Means, bad: Means) -> Measured:
        right = all(one[UNPOPULAR] < one["Rnd"] < one["Pop"] for one in (good, bad))
        text = f"anti-P {[round(bad[n], 4) for n in three]}, P {[round(good[n], 4) for n in three]}"
        return Measured(right, text=text)

    return _by_both(_truthless(lab, on), tell)


def coverage(judgments: str, said: Mapping[str, float]) -> Measure:
    """Return the measure of the share of judged items, in percent of the printed share."""

    def measure(lab: Lab, on: str) -> Measured:
        table = _truthful(lab, on) if judgments == "true" else _truthless(lab, on)

        def ratio(part: pl.DataFrame) -> float:
            found = _judged(*(means(part, judgments, one) for one in PAIRS["P"]))
            return 100 * 100 * found / said[on]

        value, low, high = by_folds(table, ratio)
        text = f"{value * said[on] / 100:.2f} % against {said[on]:.2f} %: {value:.1f} % of it"
        return Measured(value, low, high, text=text)

    return measure


def _judged(good: Mapping[str, float], bad: Mapping[str, float]) -> float:
    names = (*SIXTEEN, BEST_P, BEST_ANTI)
    return sum(good[name] + bad[name] for name in names) / len(names)


def simple_means(lab: Lab, on: str) -> Measured:
    """Return how far precisions of what looks at no user are from those released."""
    theirs = dict(released(lab).select("system", "precision").rows())
    ours = means(_truthless(lab, on), "observed", "P@10")
    text = ", ".join(f"{name} {ours[name]:.4f} ({theirs[name]:.4f})" for name in PLAIN)
    return Measured(max(abs(ours[name] - theirs[name]) for name in PLAIN), text=text)


def same_order(lab: Lab, on: str) -> Measured:
    """Return τ of our precisions of the personalised systems and those released."""
    theirs = dict(released(lab).select("system", "precision").rows())
    table = _truthless(lab, on)
    ours = means(table, "observed", "P@10")
    names = [name for name in PERSONAL if name != "BPMF"]

    def tau_of(part: pl.DataFrame) -> float:
        mine = means(part, "observed", "P@10")
        return kendall([mine[name] for name in names], [theirs[name] for name in names])

    value, low, high = by_folds(table, tau_of)
    far = max(names, key=lambda name: abs(ours[name] / theirs[name] - 1))
    note = (
        f"Furthest: {far}, {ours[far]:.4f} against {theirs[far]:.4f}. BPMF, which is chance, aside."
    )
    return Measured(value, low, high, note=note)


def judged_or_liked(lab: Lab, on: str) -> Measured:
    """Return how much more precision follows being judged than being liked (τ less τ)."""
    table = _truthless(lab, on)
    good, bad = (means(table, "observed", one) for one in PAIRS["P"])
    found = margins({name: (good[name], bad[name]) for name in SIXTEEN})
    judged, liked = found.tau("P", "judged"), found.tau("P", "liked")
    right, all_pairs = _foretold(found), len(found.pairs)
    text = f"τ {number(judged, 2)} with judged, {number(liked, 2)} with liked"
    return Measured(judged - liked, text=f"{text}; the condition on {right} of {all_pairs} pairs")


def _foretold(found: Margins) -> int:
    return sum(pair.disagree == pair.foretold for pair in found.pairs)


# Released values


def fig_1(lab: Lab, _on: str) -> Measured:
    """Return how far τ of the released values are from those printed in Fig. 1."""
    columns = [
        ("precision_c", "antiprecision_c"),
        ("recall_c", "fallout_c"),
        ("precision", "antiprecision"),
        ("recall", "fallout"),
    ]
    found = [released_tau(lab, *both) for both in columns]
    said = [*printed.CONDENSED.values(), *printed.OBSERVED["ml-1m"].values()]
    return Measured(_furthest(found, said), text=" / ".join(number(one, 2) for one in found))


def unjudged(lab: Lab, _on: str) -> Measured:
    """Return the mean share of recommended items that nobody judged."""
    table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
    gap = 1 - table["precision"] - table["antiprecision"]
    return Measured(float(gap.to_numpy().mean()))


def released_coverage(lab: Lab, _on: str) -> Measured:
    """Return the judged share of the first ten over systems and optimal rankings, in percent."""
    columns = (
        dict(released(lab).select("system", name).rows()) for name in ("precision", "antiprecision")
    )
    return Measured(100 * _judged(*columns))


def condensed_recall(lab: Lab, _on: str) -> Measured:
    """Return τ of released recall and fallout on condensed rankings."""
    return Measured(released_tau(lab, "recall_c", "fallout_c"))


def lemma_of_systems(lab: Lab, _on: str) -> Measured:
    """Count the pairs of released systems on which the condition tells whether metrics disagree."""
    table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
    rows = table.select("system", "precision", "antiprecision").rows()
    found = margins({name: (good, bad) for name, good, bad in rows})
    judged, liked = found.tau("P", "judged"), found.tau("P", "liked")
    text = (
        f"{_foretold(found)} of {len(found.pairs)} pairs; τ {judged:.2f} with judged, {liked:.2f}"
    )
    return Measured(_foretold(found), text=f"{text} with liked")


# Theory


def least_significant(_lab: Lab, _on: str) -> Measured:
    """Return the largest p-value of a printed τ of sixteen systems."""
    weakest = min(printed.correlations(), key=abs)
    note = f"That of τ = {number(weakest, 2)}, anti-MRR on CM100k in Fig. 17."
    return Measured(p_of_tau(weakest), note=note)


def truth_tables_hold(lab: Lab, _on: str) -> Measured:
    """Return the least share of pairs on which a row of the truth tables holds."""
    table = lab.table(truth_tables)
    least = float(table["holds"].to_numpy().min())
    return Measured(least, text=f"all {table.height} rows" if least == 1 else "")


def toy_numbers(*places: str) -> Measure:
    """Return the measure of the largest distance of a toy's number from the printed one."""

    def measure(lab: Lab, _on: str) -> Measured:
        table = lab.table(toys).filter(pl.col("place").str.slice(0, 6).is_in(places))
        far = float((table["printed"] - table["found"]).abs().to_numpy().max())
        return Measured(far, text=f"{table.height} numbers, at most {far:.4f} apart")

    return measure


def rates_alike(_lab: Lab, _on: str) -> Measured:
    """Return on which share of all small functions the two rates order alike."""
    return Measured(rates_order_alike())


def lemma_2_as_printed(lab: Lab, _on: str) -> Measured:
    """Return on which share of pairs Table 4's first row holds under its printed condition."""
    found = item_pairs(lemma_2(lab.seed, also_disliked=False)).true.lemma2
    note = "Under both conditions, as §7 and the proof have them, all pairs are consistent (3-39)."
    return Measured(found, note=note)


def lemma_2_constants(_lab: Lab, _on: str) -> Measured:
    """Return for which share of items the decomposition of popularity holds as printed."""
    counts = lemma_2()
    liking, other = 1 / 2, 1 / 4
    right = np.isclose(counts.p_train, other + (liking - other) * counts.p_rel).mean()
    wrong = np.isclose(counts.p_train, liking + (other - liking) * counts.p_rel).mean()
    note = f"a and b are swapped; with a = p(train|rel), b = p(train|¬rel): {right:.0%} of items."
    return Measured(float(wrong), note=note)


def lemmas_in_worlds(lab: Lab, _on: str) -> Measured:
    """Return by how much, at least, observed orders side with the truth as Lemmas 2 and 3 say."""
    table = lab.table(lemma_worlds)
    told = {"relevance-only": (1, 1), "popular-good": (1, -1), "inverted": (-1, 1)}
    ends: list[list[float]] = []
    words = []
    for name, signs in told.items():
        rows = {row["metric"]: row for row in table.filter(world=name).iter_rows(named=True)}
        for metric, sign in zip(("P", "anti-P"), signs, strict=True):
            row = rows[metric]
            ends.append(sorted(sign * (100 * row[at] - 50) for at in ("low", "consistent", "high")))
        shares = (f"{100 * rows[metric]['consistent']:.0f}" for metric in ("P", "anti-P"))
        words.append(f"{name} {' and '.join(shares)} %")
    low, value, high = (min(end[at] for end in ends) for at in range(3))
    text = f"{', '.join(words)} of the pairs; least distance from half {value:.1f} points"
    return Measured(value, low, high, text=text)


def unbiased_at_random(lab: Lab, _on: str) -> Measured:
    """Return the largest distance from what an unbiased sample gives, in standard deviations."""
    return Measured(float(lab.table(at_random)["z"].abs().to_numpy().max()))
