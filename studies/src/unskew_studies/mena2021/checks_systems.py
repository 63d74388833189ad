"""mena2021: checks of claims about systems and their order by hits and by false positives."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.bias.margins import margins
from unskew.report.estimates import Estimates
from unskew.report.text import number
from unskew.splits.time.temporal import Temporal
from unskew.stats.correlation import kendall
from unskew_studies.lab import Lab
from unskew_studies.mena2021 import printed
from unskew_studies.mena2021.checks import (
    Means,
    Tau,
    furthest,
    half_width,
    means,
    place,
    released,
    released_tau,
    tau,
)
from unskew_studies.mena2021.measurements import (
    BEST_ANTI,
    BEST_P,
    CONDENSED,
    PAIRS,
    PERSONAL,
    SIXTEEN,
    UNPOPULAR,
    inverted_popularity,
    observed_part,
    random_part,
    scores,
    temporal,
    temporal_spread,
)
from unskew_studies.paper import MeasuredValue

MEANT = "As defined: BPMF learns, which in the paper it never did"
PLAIN = ("Pop", "Avg", "Rnd")
"""The systems that look at no user."""
FIRST = ("P", "Recall")
MORE = ("nDCG", "MRR")
KEPT = 0.6
"""The least τ of metrics that keep the order of systems."""


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


def steady(table: pl.DataFrame, tell: Callable[[pl.DataFrame], MeasuredValue]) -> MeasuredValue:
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


def beyond(sides: Sequence[tuple[Tau, int, float]], text: str, note: str = "") -> MeasuredValue:
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
    return MeasuredValue(value, low, high, text=text, note=note)


def _extreme(taus: Mapping[str, Tau], dataset_name: str, sign: int) -> MeasuredValue:
    """Return the largest τ, or with a sign of -1 the smallest, with its interval."""
    far = max(
        taus.values(), key=lambda one: math.inf if math.isnan(one.value) else sign * one.value
    )
    meant = sign * max(sign * one.meant for one in taus.values())
    note = f"{MEANT}{', and liked from 4' if dataset_name == 'yahoo-r3' else ''}."
    return MeasuredValue(
        far.value, far.low, far.high, as_defined=meant, text=listed(taus), note=note
    )


def twins_disagree(lab: Lab, dataset_name: str, *, names: Sequence[str] = FIRST) -> MeasuredValue:
    """Return the least τ of metrics and their twins, as observed."""
    return _extreme(twins(_scores(lab, dataset_name), names), dataset_name, -1)


def twins_agree(lab: Lab, dataset_name: str, *, names: Sequence[str] = FIRST) -> MeasuredValue:
    """Return the largest τ of metrics and their twins, by the truth."""
    return _extreme(twins(_scores(lab, dataset_name, "true"), names, "true"), dataset_name, 1)


def hits_kept(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the least τ of precision and recall as observed and by the truth."""
    return _extreme(kept(_scores(lab, dataset_name, "true"), FIRST, 0), dataset_name, -1)


def false_turned(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest τ of anti-precision and fallout as observed and by the truth."""
    return _extreme(kept(_scores(lab, dataset_name, "true"), FIRST, 1), dataset_name, 1)


def more_metrics(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return by how much nDCG and MRR keep the true order and their twins turn it round."""
    table = _scores(lab, dataset_name, "true")
    hits, false = kept(table, MORE, 0), kept(table, MORE, 1)
    least = 0.0 if lab.is_other_data else KEPT
    sides = [(one, 1, least) for one in hits.values()] + [(one, -1, 0.0) for one in false.values()]
    return beyond(sides, f"{listed(hits)}; twins: {listed(false)}")


def condensed_and_full(
    lab: Lab, dataset_name: str, *, names: Sequence[str], least: float
) -> MeasuredValue:
    """Return how far twins agree on condensed and disagree on full rankings.

    Of the paper's data condensed rankings are those of Fig. 1, which has MovieLens only.
    """
    table = _scores(lab, dataset_name)
    short, full = twins(table, names, sets=CONDENSED), twins(table, names)
    sides = [(one, 1, least) for one in full.values()]
    text = f"full: {listed(full)}"
    if not lab.is_other_data and dataset_name != "ml-1m":
        note = f"On condensed rankings, of which the paper shows MovieLens only: {listed(short)}."
        return beyond(sides, text, note)
    sides += [(one, -1, least) for one in short.values()]
    return beyond(sides, f"condensed: {listed(short)}; {text}")


def _scores(lab: Lab, dataset_name: str, judgments: str = "observed") -> pl.DataFrame:
    if judgments == "true":
        random_part(lab, dataset_name)  # raises the error that names what is missing
    return lab.table(scores, dataset_name)


def turned_round(
    lab: Lab, dataset_name: str, *, names: Sequence[str] = FIRST, least: float = 0.3
) -> MeasuredValue:
    """Return how far hits mislead and false positives are right (8.5)."""
    table = lab.table(inverted_popularity, dataset_name)
    hits, false = kept(table, names, 0), kept(table, names, 1)
    sides = [(one, -1, least) for one in hits.values()]
    sides += [(one, 1, least) for one in false.values()]
    return beyond(sides, f"{listed(hits)}; twins: {listed(false)}")


def false_positives_better(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how much more of the true order false positives keep than hits do (τ less τ)."""
    table = lab.table(inverted_popularity, dataset_name)
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
    return MeasuredValue(value, low, high, text=text, note=note)


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


def misled(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether GBPR, WBPR and SLIM seem the best and are among the worst."""
    best = ("GBPR", "WBPR", "SLIM")

    def tell(table: pl.DataFrame) -> MeasuredValue:
        seen, real = means(table, "observed", "P@10"), means(table, "true", "P@10")
        first = [place(seen, name, PERSONAL) for name in best]
        last = [place(real, name, SIXTEEN, lowest=True) for name in (*best, "PNMF", "Pop")]
        text = f"places as observed {first}, from the end by the truth {last}"
        return MeasuredValue(max(first) <= 4 and max(last) <= 6, text=text)

    return steady(lab.table(inverted_popularity, dataset_name), tell)


def worse_than_random(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether of the personalised only SVD++, and hardly BPMF and RSGD, beat random."""

    def tell(table: pl.DataFrame) -> MeasuredValue:
        real = means(table, "true", "P@10")
        above = [name for name in PERSONAL if real[name] > real["Rnd"]]
        text = f"above random: {', '.join(above) or 'none'}"
        return MeasuredValue(
            "SVD++" in above and set(above) <= {"SVD++", "BPMF", "RSGD"}, text=text
        )

    return steady(lab.table(inverted_popularity, dataset_name), tell)


def weak_in_time(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the largest size of τ of a metric and its twin by a split in time."""
    taus = twins(lab.table(temporal, dataset_name), list(PAIRS))
    far = max(abs(one.value) for one in taus.values())
    meant = max(abs(one.meant) for one in taus.values())
    low, high = lab.table(temporal_spread, dataset_name).row(
        by_predicate=pl.col("of") == "largest size"
    )[1:]
    note = f"{MEANT}, and nDCG has the gains of the text. {_known_in_time(lab, dataset_name)}"
    return MeasuredValue(far, low, high, as_defined=meant, text=listed(taus), note=note)


def _known_in_time(lab: Lab, dataset_name: str) -> str:
    """Return the number of test users that a split in time leaves with training ratings."""
    (split,) = Temporal(test=0.2).split(observed_part(lab, dataset_name))
    tested = np.unique(split.test.user)
    known = np.isin(tested, split.train.user).sum()
    return f"{known:,} of {tested.size:,} test users have training ratings."


def corners_in_time(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether the average and chance are best by false positives and worst by hits."""
    table = lab.table(temporal, dataset_name)
    best, worst, corner = [], [], []
    for hits, false in PAIRS.values():
        good, bad = (means(table, "observed", metric) for metric in (hits, false))
        best += [place(bad, name, SIXTEEN, lowest=True) for name in ("Avg", "Rnd")]
        worst += [place(good, name, SIXTEEN, lowest=True) for name in ("Avg", "Rnd")]
        corner += [place(good, "Pop", SIXTEEN), place(bad, "Pop", SIXTEEN)]
    right = max(best) <= 3 and max(worst) <= 3 and max(corner) <= len(SIXTEEN) // 2
    text = f"by false positives {best}, from the end by hits {worst}, Pop {corner}"
    return MeasuredValue(right, text=text, note=_known_in_time(lab, dataset_name))


# Single systems


def complementary(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far condensed precision and anti-precision are from adding up to 1."""
    hits, false = (means(_scores(lab, dataset_name), "observed", one) for one in CONDENSED["P"])
    far = max(abs(hits[name] + false[name] - 1) for name in hits if not math.isnan(hits[name]))
    return MeasuredValue(far, text=f"{far:.1e}")


def with_residual(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far precision, anti-precision and the unjudged share are from adding up to 1."""
    parts = [
        means(_scores(lab, dataset_name), "observed", one) for one in (*PAIRS["P"], "Residual@10")
    ]
    short = [1 - sum(part[name] for part in parts) for name in SIXTEEN]
    far = max(abs(one) for one in short)
    note = "Lists shorter than ten, where there are few items, leave places empty."
    return MeasuredValue(far, text=f"{far:.1e}", note=note if far > 1e-9 else "")


def near_optimal(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return popularity's precision in percent of that of the optimal ranking."""
    table = _scores(lab, dataset_name)

    def ratio(part: pl.DataFrame) -> float:
        precision = means(part, "observed", "P@10")
        return 100 * precision["Pop"] / precision[BEST_P] if precision[BEST_P] else math.nan

    value, low, high = by_folds(table, ratio)
    bad = means(table, "observed", "anti-P@10")
    at = place(bad, "Pop", (*PLAIN, BEST_P, BEST_ANTI))
    text = f"{value:.1f} %; by anti-precision number {at} from the end of five"
    return MeasuredValue(value, low, high, text=text)


def _by_both(
    table: pl.DataFrame, tell: Callable[[Means, Means], MeasuredValue], judgments: str = "observed"
) -> MeasuredValue:
    """Tell something of the means of precision and anti-precision, if it is so of all folds."""
    return steady(table, lambda part: tell(*(means(part, judgments, one) for one in PAIRS["P"])))


def opposite_ends(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether what is optimal for one metric is worst, or nearly, for the other."""
    five = (*PLAIN, BEST_P, BEST_ANTI)

    def tell(good: Means, bad: Means) -> MeasuredValue:
        last, high = place(good, BEST_ANTI, five, lowest=True), place(bad, BEST_P, five)
        overall = place(bad, BEST_P, (*SIXTEEN, BEST_P, BEST_ANTI))
        text = f"number {last} and {high} from the end of five; of all eighteen {overall}"
        return MeasuredValue(last == 1 and high <= 2, text=text)

    return _by_both(_scores(lab, dataset_name), tell)


def bound(
    lab: Lab,
    dataset_name: str,
    *,
    judgments: str = "observed",
    optimal: tuple[str, str] = (BEST_P, BEST_ANTI),
) -> MeasuredValue:
    """Return whether optimal rankings bound what looks at no user, by precision and its twin."""

    def tell(good: Means, bad: Means) -> MeasuredValue:
        best, least = max(good[name] for name in PLAIN), min(bad[name] for name in PLAIN)
        p, anti = good[optimal[0]], bad[optimal[1]]
        text = f"P {p:.4f} against {best:.4f}, anti-P {anti:.4f} against {least:.4f}"
        return MeasuredValue(p >= best and anti <= least, text=text)

    return _by_both(_scores(lab, dataset_name, judgments), tell, judgments)


def beats_optimal(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether a personalised system beats the optimal ranking where the paper says so."""

    def tell(good: Means, _bad: Means) -> MeasuredValue:
        best = max(PERSONAL, key=lambda name: good[name])
        text = f"{best} {good[best]:.4f} against {good[BEST_P]:.4f}"
        return MeasuredValue((good[best] > good[BEST_P]) == (dataset_name == "yahoo-r3"), text=text)

    return _by_both(_scores(lab, dataset_name), tell)


def best_and_nearly_worst(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether WRMF is the best by precision and second worst by anti-precision."""

    def tell(good: Means, bad: Means) -> MeasuredValue:
        first, last = place(good, "WRMF", SIXTEEN), place(bad, "WRMF", SIXTEEN)
        return MeasuredValue(
            first == 1 and last == 2, text=f"number {first}, and {last} from the end"
        )

    return _by_both(_scores(lab, dataset_name), tell)


def favours_unpopular(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether ranking by falling popularity is worse than chance, by rising is better."""
    three = (UNPOPULAR, "Rnd", "Pop")

    def tell(good: Means, bad: Means) -> MeasuredValue:
        right = all(one[UNPOPULAR] < one["Rnd"] < one["Pop"] for one in (good, bad))
        text = f"anti-P {[round(bad[n], 4) for n in three]}, P {[round(good[n], 4) for n in three]}"
        return MeasuredValue(right, text=text)

    return _by_both(_scores(lab, dataset_name), tell)


def coverage(lab: Lab, dataset_name: str, *, judgments: str) -> MeasuredValue:
    """Return the share of judged items, in percent of the printed share."""
    table = _scores(lab, dataset_name, judgments)
    published = printed.COVERAGE if judgments == "observed" else printed.TRUE_COVERAGE
    share = published[dataset_name]

    def ratio(part: pl.DataFrame) -> float:
        judged = _judged(*(means(part, judgments, one) for one in PAIRS["P"]))
        return 100 * 100 * judged / share

    value, low, high = by_folds(table, ratio)
    text = f"{value * share / 100:.2f} % against {share:.2f} %: {value:.1f} % of it"
    return MeasuredValue(value, low, high, text=text)


def _judged(good: Mapping[str, float], bad: Mapping[str, float]) -> float:
    names = (*SIXTEEN, BEST_P, BEST_ANTI)
    return sum(good[name] + bad[name] for name in names) / len(names)


def simple_means(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how far precisions of what looks at no user are from those released."""
    theirs = dict(released(lab).select("system", "precision").rows())
    ours = means(_scores(lab, dataset_name), "observed", "P@10")
    text = ", ".join(f"{name} {ours[name]:.4f} ({theirs[name]:.4f})" for name in PLAIN)
    return MeasuredValue(max(abs(ours[name] - theirs[name]) for name in PLAIN), text=text)


def same_order(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return τ of our precisions of the personalised systems and those released."""
    theirs = dict(released(lab).select("system", "precision").rows())
    table = _scores(lab, dataset_name)
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
    return MeasuredValue(value, low, high, note=note)


def judged_or_liked(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how much more precision follows being judged than being liked (τ less τ)."""
    table = _scores(lab, dataset_name)
    good, bad = (means(table, "observed", one) for one in PAIRS["P"])
    pairs = margins({name: (good[name], bad[name]) for name in SIXTEEN})
    judged, liked = _taus(pairs)
    right, all_pairs = _foretold(pairs)
    text = f"τ {number(judged, 2)} with judged, {number(liked, 2)} with liked"
    return MeasuredValue(
        judged - liked, text=f"{text}; the condition on {right} of {all_pairs} pairs"
    )


def _taus(split: Estimates) -> list[float]:
    """Return τ of precision with being judged, and with being liked."""
    summary = split.parts["summary"]
    return [summary.row(quantity=f"tau_{name}").estimate[0] for name in ("judged", "liked")]


def _foretold(split: Estimates) -> tuple[int, int]:
    """Return on how many pairs the lemma is right, and the number of all pairs."""
    rows = split.parts["pairs"].where(quantity="judged").rows
    return int((rows["disagree"] == rows["foretold"]).sum()), rows.height


# Released values


def fig_1(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return how far τ of the released values are from those printed in Fig. 1."""
    columns = [
        ("precision_c", "antiprecision_c"),
        ("recall_c", "fallout_c"),
        ("precision", "antiprecision"),
        ("recall", "fallout"),
    ]
    taus = [released_tau(lab, *both) for both in columns]
    published = [*printed.CONDENSED.values(), *printed.OBSERVED["ml-1m"].values()]
    return MeasuredValue(furthest(taus, published), text=" / ".join(number(one, 2) for one in taus))


def unjudged(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the mean share of recommended items that nobody judged."""
    table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
    gap = 1 - table["precision"] - table["antiprecision"]
    return MeasuredValue(float(gap.to_numpy().mean()))


def released_coverage(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return the judged share of the first ten over systems and optimal rankings, in percent."""
    columns = (
        dict(released(lab).select("system", name).rows()) for name in ("precision", "antiprecision")
    )
    return MeasuredValue(100 * _judged(*columns))


def condensed_recall(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Return τ of released recall and fallout on condensed rankings."""
    return MeasuredValue(released_tau(lab, "recall_c", "fallout_c"))


def lemma_of_systems(lab: Lab, _dataset_name: str) -> MeasuredValue:
    """Count the pairs of released systems on which the condition tells whether metrics disagree."""
    table = released(lab).filter(pl.col("system").is_in(SIXTEEN))
    rows = table.select("system", "precision", "antiprecision").rows()
    pairs = margins({name: (good, bad) for name, good, bad in rows})
    judged, liked = _taus(pairs)
    right, all_pairs = _foretold(pairs)
    text = f"{right} of {all_pairs} pairs; τ {judged:.2f} with judged, {liked:.2f}"
    return MeasuredValue(right, text=f"{text} with liked")
