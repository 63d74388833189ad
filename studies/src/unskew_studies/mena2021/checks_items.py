"""mena2021: checks of claims about the data, items and pairs of items."""

from __future__ import annotations

import math

from unskew.report.text import number
from unskew.splits.given import FamiliarTraining
from unskew_studies.lab import Lab, MissingDataError
from unskew_studies.mena2021 import printed
from unskew_studies.mena2021.checks import (
    furthest,
    share,
)
from unskew_studies.mena2021.measurements import (
    is_survey,
    items,
    random_part,
    sizes,
    steepness,
)
from unskew_studies.paper import MeasuredValue

CASES = ("agree, steeper", "agree, not steeper", "disagree, steeper", "disagree, not steeper")


def same_sizes(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Count the sizes that are not as printed."""
    counted = dict(lab.table(sizes, dataset_name).rows())
    wrong = sum(counted.get(what) != size for what, size in printed.SIZES[dataset_name].items())
    return MeasuredValue(
        wrong, text=", ".join(f"{value:,} {what}" for what, value in counted.items())
    )


def percent(lab: Lab, dataset_name: str, *, what: str, note: str = "") -> MeasuredValue:
    """Return a share of item pairs; `note`, of the paper's data, may name it."""
    value = 100 * share(lab, dataset_name, what)
    return MeasuredValue(value, note="" if lab.is_other_data else note.format(value=value))


def steeper_than_both(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return on which share of item pairs the odds of popularity are steeper than both, in percent.

    On the paper's data the note tells what plain popularity gives, of all ratings and of each
    fold's training part.
    """
    value = 100 * share(lab, dataset_name, "steeper_both")
    if lab.is_other_data:
        return MeasuredValue(value)
    table = lab.table(steepness, dataset_name)
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
    return MeasuredValue(value, note=note)


def related(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return Pearson's correlation of popularity and relevance, with its interval over items."""
    value = share(lab, dataset_name, "truth/pearson")
    number = lab.table(items, dataset_name)["p_rel"].is_not_null().sum()
    if number <= 3 or abs(value) >= 1:
        return MeasuredValue(value)
    half = 1.96 / math.sqrt(number - 3)  # of Fisher's transformation
    low, high = (math.tanh(math.atanh(value) + side * half) for side in (-1, 1))
    return MeasuredValue(value, low, high)


def plain(lab: Lab, dataset_name: str, *, what: str) -> MeasuredValue:
    """Return a number of the item pairs."""
    return MeasuredValue(share(lab, dataset_name, what))


def four_cases(lab: Lab, dataset_name: str, *, prefix: str) -> MeasuredValue:
    """Return the four cases: how far they are from those printed.

    On other data: whether the first one is the most frequent.
    """
    shares = [100 * share(lab, dataset_name, f"{prefix}share/{case}") for case in CASES]
    text = " / ".join(number(one, 2) for one in shares) + " %"
    if lab.is_other_data:
        return MeasuredValue(shares[0] == max(shares), text=text)
    return MeasuredValue(furthest(shares, printed.CASES[dataset_name]), text=text)


def cases_add_up(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the distance between the cases that disagree and the pairs that do."""
    first, third = (share(lab, dataset_name, f"share/{CASES[at]}") for at in (0, 2))
    strict, ties = share(lab, dataset_name, "disagree"), share(lab, dataset_name, "ties")
    text = f"{100 * (first + third):.2f} % and {100 * strict:.2f} %"
    note = f"With ties counted as disagreement the pairs are {100 * (strict + ties):.2f} %."
    return MeasuredValue(100 * abs(first + third - strict), text=text, note=note)


def what_optima_follow(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare Pearson's correlations with those printed.

    On other data: whether both optimal rankings follow popularity more than ratings.
    """
    correlations = {key: share(lab, dataset_name, f"pearson/{key}") for key in printed.PEARSON}
    text = " / ".join(number(one, 2) for one in correlations.values())
    if not lab.is_other_data:
        return MeasuredValue(furthest(correlations.values(), printed.PEARSON.values()), text=text)
    more = all(
        abs(correlations[f"{phi}/popularity"]) > abs(correlations[f"{phi}/rating"])
        for phi in ("phi_P", "phi_antiP")
    )
    return MeasuredValue(more, text=text)


def lemma_3_shares(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare the shares of pairs that do as Lemma 3 says; on other data: the smaller one."""
    shares = [
        100 * share(lab, dataset_name, f"truth/lemma3_{metric}") for metric in ("P", "anti-P")
    ]
    text = f"{shares[0]:.2f} % (P), {shares[1]:.2f} % (anti-P)"
    if lab.is_other_data:
        return MeasuredValue(min(shares), text=text)
    note = f"For anti-precision {shares[1]:.1f} % is right."
    return MeasuredValue(furthest(shares, (81.2, 75.3)), text=text, note=note)


def popular_and_steep(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Compare how often popularity and relevance agree, and its odds are steeper."""
    agreeing = 100 * share(lab, dataset_name, "truth/popularity_and_relevance_agree")
    steeper = 100 * share(lab, dataset_name, "truth/steeper_non-relevance")
    text = f"{agreeing:.1f} % agree, {steeper:.1f} % steeper"
    if lab.is_other_data:
        return MeasuredValue(min(agreeing, steeper), text=text)
    return MeasuredValue(
        furthest((agreeing, steeper), (69, 90)),
        text=text,
        note="Steeper than non-relevance, the condition of Lemma 3 (a).",
    )


def depends_on_item(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return whether ratings are nearer to relevance independence, and liked items rated more."""
    above = share(lab, dataset_name, "dependence/share_above")
    relevance = share(lab, dataset_name, "dependence/to_relevance_independence")
    item = share(lab, dataset_name, "dependence/to_item_independence")
    holds = above > (0.5 if lab.is_other_data else 0.9) and relevance < item
    text = f"{100 * above:.1f} % above; mean distance {relevance:.3f} against {item:.3f}"
    return MeasuredValue(holds, text=text)


def residual(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return how much likelier a familiar item is to test, in percent."""
    if not is_survey(lab, dataset_name):
        raise MissingDataError(f"{dataset_name}: needs a survey that says which items users knew")
    split = next(FamiliarTraining(folds=5).each(random_part(lab, dataset_name), lab.seed))
    gap = split.facts["residual"]
    note = "Training takes familiar items out of the lists: what is left of them is tested more."
    return MeasuredValue(math.nan if gap is None else 100 * gap, note=note)


def liked_from_4(lab: Lab, dataset_name: str) -> MeasuredValue:
    """Return the share of random judgments that are 4 or more, in percent."""
    value = random_part(lab, dataset_name).value
    note = f"From 3 on it is {100 * float((value >= 3).mean()):.1f} %: the released data take 3."
    return MeasuredValue(100 * float((value >= 4).mean()), note=note)
