"""`plan_annotation`: which recommended pairs people should judge, drawn under a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unskew.arrays import F64, I64, frozen
from unskew.checks import MOST_SEED, as_count, as_number, checked, choose
from unskew.data.ratings import Ratings
from unskew.data.read.ratings_files import read_ratings
from unskew.data.relevance import DEFAULT_GAIN, DEFAULT_LOSS, Relevance, Rule, stated_relevance
from unskew.errors import DataError, SettingError, Spelling
from unskew.judging.judge import read_runs
from unskew.labels.annotation_designs import DESIGNS, Labels, check_strata, strata_of
from unskew.labels.annotation_plan import AnnotationPlan
from unskew.labels.recommended_pairs import PlaceSum, RecommendedPairs, place_sums
from unskew.report.text import counted

ESTIMANDS = ("difference", "levels")
STRATA = ("disagreement", "rank")
"""What pairs are parted by unless stated."""
MOST_LEVELS = 1_000
"""The most values that a scale of labels may have."""


@checked
def plan_annotation(
    runs: object,
    metric: str = "P@10",
    *,
    budget: int,
    design: str = "uniform",
    estimand: str | None = None,
    strata: str | Sequence[str] = STRATA,
    labels: object = None,
    train: object = None,
    smallest: float | None = None,
    scale: tuple[int, int] = (0, 1),
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    seed: int = 0,
) -> AnnotationPlan:
    r"""Draw the recommended pairs of a user and an item that people should judge.

    The metric is a sum :math:`\sum c_{ui} y_{ui}` over recommended pairs whose coefficients
    :math:`c` follow from the lists and whose :math:`y` follow from labels. For the difference of
    two systems, pairs that both have at places that count alike have :math:`c = 0`: they say
    nothing, and are never drawn. Every beginning of the order is a random sample (within strata),
    so that people can stop anywhere: `read_annotation(…).status()` says when.

    Parameters
    ----------
    runs
        The lists of systems by name: anything that `read_run` takes, or a list of files.
    metric
        A sum over places: P, DCG, RBP and anti-twins, such as `P@10`.
    budget
        Number of pairs to judge.
    design
        How pairs are drawn: `uniform`, `stratified` (in proportion to the pairs of each stratum),
        `neyman` (where labels vary most, by the labels of a model).

        `uniform`: simple random draws without replacement. `neyman`: in proportion to pairs x
        spread of what they add, as `labels` show it. To take the spread from labels of people, plan
        a first batch by another design, then extend it (`AnnotationPlan.extend`).
    estimand
        What is estimated: `difference` (the first run less the second) or `levels` of all. Default:
        the difference of two runs.
    strata
        What pairs are parted by: `disagreement` (which systems list the pair), `rank` (its highest
        place), `popularity` (of its item, by `train`, else by the lists). With the uniform design
        they serve the intervals alone. Strata that would get fewer than 20 labels are joined.
    labels
        Labels of a model for the recommended pairs, on any scale: a table with user, item, rating.
        Intervals get narrower where people agree with them, and stay valid where not.
    train
        Training ratings, for the popularity of items.
    smallest
        The smallest difference that matters, such as 0.02; stated, never the observed one.
    scale
        The smallest and the largest label, whole numbers.
    liked, above, gain, loss, relevance
        What labels mean, as for `judge`; liked is 1 on a scale from 0 to 1, and 4 on one from 1 to
        5, unless stated.
    seed
        Same lists, settings and seed: same pairs in the same order.

    Examples
    --------
    >>> import unskew as us
    >>> x = {user: ["a", "b", "c"] for user in range(100)}
    >>> y = {user: ["a", "d", "e"] for user in range(100)}
    >>> plan = us.labels.plan_annotation({"x": x, "y": y}, "P@3", budget=60, seed=1)
    >>> plan
    AnnotationPlan(P@3, 60 pairs of 400)
    >>> plan.notes[0]
    '100 of 500 recommended pairs count alike for x and y: they are never drawn (probability 0)'
    """
    as_count("budget", budget)
    as_count("seed", seed, 0, MOST_SEED)
    choose("design", design, DESIGNS)
    place_sum = next(iter(place_sums(metric).values()))
    by = check_strata(strata)
    stated = stated_relevance(liked, above, gain, loss, relevance)
    scale = _scale(scale)
    rule, notes = _relevance(scale, stated, gain, loss)
    ready = read_runs(runs, None, 0)
    training = None if train is None else read_ratings(train)
    pairs = RecommendedPairs.of_runs(ready, place_sum.metric.whole_cutoff, training)
    systems = pairs.systems
    estimand = _estimand(estimand, systems)
    rows, coefficient, counted_out = _coefficients(pairs, place_sum, estimand)
    notes = [*counted_out, *_without_lists(pairs), *notes]
    if budget > rows.size:
        raise SettingError(
            f"budget={budget}: there are only {counted(int(rows.size), 'pair')} to judge"
        )
    if smallest is not None:
        as_number("smallest", smallest, above=True)
    parted, before = strata_of(pairs, rows, by, estimand == "difference", budget)
    if before > len(parted.names):
        notes.append(
            f"{counted(before, 'stratum', 'strata')} became {len(parted.names)}: those that would "
            f"get fewer than 20 labels are joined with a neighbour"
        )
    plan = AnnotationPlan(
        metric=metric,
        estimand=estimand,
        systems=systems,
        scale=scale,
        relevance=rule,
        seed=seed,
        smallest=smallest,
        user=pairs.users.raw(pairs.user[rows]),
        item=pairs.items.raw(pairs.item[rows]),
        coefficient=frozen(coefficient),
        hint=None,
        stratum=parted.code,
        strata=parted.names,
        order=np.zeros(0, np.int64),
        waves=(),
        labels=Labels.none(0),
        facts={"recommended_pairs": len(pairs), "users": pairs.number_of_users, "by": list(by)},
        notes=tuple(notes),
    )
    if labels is not None:
        plan = _with_hints(plan, pairs, rows, read_ratings(labels))
    if design == "neyman" and plan.hint is None:
        raise SettingError(
            "design='neyman' needs to know where labels vary: give labels=… of a model, or plan a "
            "first batch by another design and extend it when people have judged it (",
            Spelling("read_annotation(…).extend(…)", "unskew annotate extend"),
            ")",
        )
    return plan.with_wave(design, budget, plan.hint)


def _scale(scale: tuple[int, int]) -> tuple[int, int]:
    low, high = (as_count("scale", end, -MOST_LEVELS, MOST_LEVELS) for end in scale)
    if not 0 < high - low <= MOST_LEVELS:
        raise SettingError(
            f"scale must be the smallest and the largest label, such as (0, 1) or (1, 5); got "
            f"{scale!r}"
        )
    return low, high


def _relevance(
    scale: tuple[int, int], stated: Relevance | None, gain: Rule, loss: Rule
) -> tuple[Relevance, list[str]]:
    notes = []
    if stated is None:
        usual = {(0, 1): 1.0, (1, 5): 4.0}.get(scale)
        if usual is None:
            raise SettingError(
                f"what counts as liked? Labels go from {scale[0]} to {scale[1]}; give ",
                Spelling("liked=…", "--liked"),
                ", the smallest liked label",
            )
        stated = Relevance(usual, None, gain, loss)
        notes.append(f"liked: labels from {usual:g} up (assumed from the scale)")
    if callable(stated.gain) or callable(stated.loss):
        raise SettingError("gain and loss: a plan is saved, so give a name or a mapping")
    return stated, notes


def _estimand(estimand: str | None, systems: Sequence[str]) -> str:
    if estimand is None:
        return "difference" if len(systems) == 2 else "levels"
    if choose("estimand", estimand, ESTIMANDS) == "difference" and len(systems) != 2:
        raise SettingError(
            f"estimand='difference' takes two systems, got {len(systems)}: {', '.join(systems)}"
        )
    return estimand


def _coefficients(
    pairs: RecommendedPairs, place_sum: PlaceSum, estimand: str
) -> tuple[I64, F64, list[str]]:
    """Return the rows that count, contrasts x rows what they add, and how many do not count."""
    coefficients = pairs.coefficients(place_sum)
    if estimand == "difference":
        a, b = pairs.systems
        rows, add = coefficients.contrast(a, b)
        if not rows.size:
            raise DataError(
                f"{a} and {b} recommend the same: their difference is 0, whatever it is"
            )
        out = len(pairs) - rows.size
        note = (
            f"{out:,} of {len(pairs):,} recommended pairs count alike for {a} and {b}: they are "
            f"never drawn (probability 0)"
        )
        return rows, add[None, :], [note] * (out > 0)
    table = np.zeros((len(pairs.systems), len(pairs)))
    for line, name in zip(table, pairs.systems, strict=True):
        row, add = coefficients.contrast(name)
        line[row] = add
    rows = np.flatnonzero(table.any(axis=0))
    return rows, np.ascontiguousarray(table[:, rows]), []


def _without_lists(pairs: RecommendedPairs) -> list[str]:
    """Count the users that some systems give no list to."""
    missing = {
        name: int((pairs.listed_users & (listed.depth == 0)).sum())
        for name, listed in pairs.lists.items()
    }
    return [
        f"{name} has no list for {count:,} of {counted(pairs.number_of_users, 'user')}: its value "
        f"for them is 0"
        for name, count in missing.items()
        if count
    ]


def _with_hints(
    plan: AnnotationPlan, pairs: RecommendedPairs, rows: I64, labels: Ratings
) -> AnnotationPlan:
    """Add the labels of a model, brought to the range of what labels are worth."""
    position = pairs.rows_of(labels)
    value = np.full(len(pairs), np.nan)
    value[position[position >= 0]] = labels.value[position >= 0]
    value = value[rows]
    valid = ~np.isnan(value)
    if not valid.any():
        raise DataError("labels: none of them is of a pair that is to be judged; are ids the same?")
    low, high = float(value[valid].min()), float(value[valid].max())
    lowest, highest = plan.worth_range
    unit = (value - low) / (high - low) if high > low else np.where(valid, 0.5, np.nan)
    hint = lowest + (highest - lowest) * unit
    missing = int((~valid).sum())
    hint = np.where(valid, hint, hint[valid].mean())
    notes = [*plan.notes]
    if missing:
        notes.append(
            f"{missing:,} of {valid.size:,} pairs have no label of the model: they count as its "
            f"mean"
        )
    if high == low:
        notes.append("all labels of the model are equal: they tell nothing")
    return replace(plan, hint=frozen(hint), notes=tuple(notes))
