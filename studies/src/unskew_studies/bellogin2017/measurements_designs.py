"""bellogin2017, sections 3, 4 and 6: systems under designs, test sparsity and target sizes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.data.relevance import Relevance
from unskew.data.summary import item_counts
from unskew.evaluation.chance import one_relevant_bounds
from unskew.evaluation.scores import Scores
from unskew.judging.rank import ranks_of
from unskew.report.text import counted
from unskew.splits.split import Split
from unskew.splits.subsample import sparsity_sample
from unskew.stats.compare.compare import compare
from unskew.targets.designs import AllItems, OneRelevant, Percentiles, TestItems
from unskew.targets.lists import TargetLists
from unskew_studies.bellogin2017.measurements import (
    AP,
    AR,
    AR_FIXED,
    BOUNDED,
    BPREF,
    COMMON,
    HEADLESS,
    INFAP,
    LARGEST,
    LASTFM,
    LIKED_ONLY,
    METRICS,
    NDCG,
    NDCG_WHOLE,
    ONE,
    OTHERS,
    PERCENTILES,
    RR,
    SHARES,
    SMALLEST,
    U1R,
    U1R_ALL,
    UAR,
    UAR_ALL,
    P,
    Row,
    fig_2_designs,
    folds,
    headless_splits,
    models,
    relevance,
    rows_of,
    score_systems,
    target_lists,
    uniform_splits,
)
from unskew_studies.lab import Lab, UndefinedError, measurement

# Systems under designs: Figs. 2, 8 and 9


def scores_of(lab: Lab, dataset_name: str, design: str, number: int) -> Scores:
    """Judge the systems under one configuration of Fig. 2 on one fold, once."""

    def make() -> Scores:
        split = folds(lab, dataset_name)[number]
        lists = target_lists(
            fig_2_designs(dataset_name)[design], split, relevance(lab, dataset_name), lab.seed
        )
        return score_systems(
            lists, models(lab, dataset_name, "random", number, split.train), METRICS
        )

    return lab.cached(f"scores {design} {number}", dataset_name, make)


@measurement("systems under AR and 1R, by every metric")
def configurations(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Figs. 2 and 9: a row per design, fold, system and metric."""
    rows: list[Row] = []
    for number in range(len(folds(lab, dataset_name))):
        for design in fig_2_designs(dataset_name):
            scores = scores_of(lab, dataset_name, design, number)
            rows += rows_of(scores, design=design, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("which systems differ, by Wilcoxon's test")
def significance(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Compare all pairs of systems under each configuration of Fig. 2."""
    parts = []
    for design in fig_2_designs(dataset_name):
        each = [
            scores_of(lab, dataset_name, design, number)
            for number in range(len(folds(lab, dataset_name)))
        ]
        rows = compare(each, P, test="wilcoxon", correction=None).rows
        named = rows.select(
            pl.lit(design).alias("design"),
            *(pl.col("system").alias("a"), pl.col("against").alias("b")),
            *(pl.col("mean").alias("mean_a"), pl.col("mean_against").alias("mean_b")),
            *(pl.col("value").alias("difference"), "low", "high", "p"),
        )
        parts.append(named)
    return pl.concat(parts)


@measurement("systems under percentiles, without the head, and with a fixed number of others")
def remedies(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure the random splits of Fig. 8: a row per design, fold, system and metric."""
    rows: list[Row] = []
    cut = headless_splits(lab, dataset_name)
    for number, split in enumerate(folds(lab, dataset_name)):
        systems = models(lab, dataset_name, "random", number, split.train)
        for design, targets, part in (
            (AR_FIXED, TestItems(others=1700), split),
            (PERCENTILES, Percentiles(OTHERS), split),
            (HEADLESS, OneRelevant(OTHERS), cut[number]),
        ):
            lists = target_lists(targets, part, relevance(lab, dataset_name), lab.seed)
            short = int(lists.facts.get("short_lists", 0))
            scores = score_systems(lists, systems, COMMON)
            rows += rows_of(scores, design=design, fold=number + 1, short=short)
    return pl.DataFrame(rows)


@measurement("systems with equally many test ratings per item")
def uniform_designs(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure the uniform splits of Fig. 8: a row per design, repetition, system and metric."""
    designs = {
        UAR: TestItems(),
        UAR_ALL: AllItems(),
        U1R: OneRelevant(OTHERS),
        U1R_ALL: OneRelevant(OTHERS, candidates="all"),
    }
    if dataset_name == LASTFM:
        designs = {U1R: OneRelevant(OTHERS)}
    rows: list[Row] = []
    for number, split in enumerate(uniform_splits(lab, dataset_name)):
        systems = models(lab, dataset_name, "uniform", number, split.train)
        for design, targets in designs.items():
            lists = target_lists(targets, split, relevance(lab, dataset_name), lab.seed)
            rows += rows_of(score_systems(lists, systems, COMMON), design=design, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("systems with other thresholds of liking")
def thresholds(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 2 with the two nearest other ratings as the smallest liked one."""
    threshold = relevance(lab, dataset_name).threshold
    known = np.unique(lab.data(dataset_name).ratings.value)[1:]
    others = sorted(
        (one for one in known.tolist() if one != threshold), key=lambda x: abs(x - threshold)
    )[:2]
    rows: list[Row] = []
    split = folds(lab, dataset_name)[0]
    systems = models(lab, dataset_name, "random", 0, split.train)
    for liked in (threshold, *others):
        for design in (AR, ONE):
            lists = target_lists(
                fig_2_designs(dataset_name)[design], split, Relevance(liked=liked), lab.seed
            )
            rows += rows_of(score_systems(lists, systems), design=design, liked=liked)
    return pl.DataFrame(rows)


@measurement("what a target set with one relevant item makes of metrics")
def one_item(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure 1R with graded and binary gains; and bpref and infAP without what is disliked.

    With grades, the rating below the paper's is liked too: else there is one grade. `least` is the
    lowest bpref of a list whose item could be ranked.
    """
    split = folds(lab, dataset_name)[0]
    systems = models(lab, dataset_name, "random", 0, split.train)
    values = np.unique(split.test.value)
    threshold = relevance(lab, dataset_name).threshold
    below = values[values < threshold]
    liked = float(below[-1]) if below.size > 1 else threshold
    rows: list[Row] = []
    for gain in ("liked-only", "binary"):
        lists = target_lists(
            OneRelevant(OTHERS), split, Relevance(liked=liked, gain=gain), lab.seed
        )
        scores = score_systems(lists, systems, (NDCG, NDCG_WHOLE, AP, RR))
        rows += rows_of(scores, judgments=gain, least=None)
    positive = replace(split, test=split.test.take(split.test.value >= threshold))
    lists = target_lists(OneRelevant(OTHERS), positive, relevance(lab, dataset_name), lab.seed)
    for name, model in systems.items():
        scores = score_systems(lists, {name: model}, (P, BPREF, INFAP))
        ranked = np.diff(ranks_of(model, lists).start) > 0
        least = float(scores.values(name, BPREF)[ranked].min(initial=1.0))
        rows += rows_of(scores, judgments=LIKED_ONLY, least=least)
    return pl.DataFrame(rows, schema_overrides={"least": pl.Float64})


# Curves: Figs. 3 and 4


def subsampled(split: Split, share: float, seed: int) -> Split:
    """Return a split with a random share of its test ratings."""
    if share == 1:
        return split
    return replace(split, test=sparsity_sample(split.test, share, seed, per="all"))


def sizes(split: Split) -> list[int]:
    """Return the sizes of target sets along a curve: 100 to 1,000, less with fewer items."""
    tested = int(np.count_nonzero(item_counts(split.test)))
    largest = min(LARGEST, tested // 2)
    if largest < 80:
        raise UndefinedError(
            f"{counted(tested, 'item has', 'items have')} test ratings: too few for target sets "
            "of many sizes"
        )
    steps = np.geomspace(min(SMALLEST, largest / 4), largest, 5)
    return [int(size) for size in steps.round()]


def curve_folds(lab: Lab, dataset_name: str) -> list[Split]:
    """Return the splits that curves are measured on."""
    return folds(lab, dataset_name)[: lab.amount("curves")]


@measurement("systems with fewer test ratings")
def sparser(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 4, left and centre: a row per share kept, design, fold, system and metric."""
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, dataset_name)):
        systems = models(lab, dataset_name, "random", number, split.train)
        for share in SHARES:
            part = subsampled(split, share, lab.seed)
            for design in (AR, ONE):
                lists = target_lists(
                    fig_2_designs(dataset_name)[design],
                    part,
                    relevance(lab, dataset_name),
                    lab.seed,
                )
                # Without liked items a normalised metric is undefined: such users drop out.
                scores = score_systems(lists, systems, COMMON, undefined="skip")
                rows += rows_of(scores, design=design, kept=share, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("systems with fewer test ratings among the same candidates", version=2)
def sparser_fixed(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure 1R with a tenth of the test ratings and the items of all of them as candidates.

    No others are drawn: values are expectations over all draws. `value` is over the lists of the
    tenth, `whole` over all lists. Liked ratings that were removed are others that are not relevant
    (`removed` = `others`), or no targets, as before they were removed (`left out`). `error` is the
    standard error of the tenth, a sample of all lists without replacement.
    """
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, dataset_name)):
        systems = models(lab, dataset_name, "random", number, split.train)
        tested = np.flatnonzero(item_counts(split.test)).astype(np.int32)
        names = split.test.items.raw(tested).to_list()
        design = OneRelevant(OTHERS, candidates=names, exact=True)
        part = subsampled(split, SHARES[0], lab.seed)
        whole, few = (
            target_lists(design, one, relevance(lab, dataset_name), lab.seed)
            for one in (split, part)
        )
        kept = np.isin(_keys(whole), _keys(few))
        every, some = score_systems(whole, systems), score_systems(few, systems)
        for system in systems:
            values = every.values(system, P)
            left = math.sqrt((1 - kept.mean()) / kept.sum()) * float(values[kept].std(ddof=1))
            for removed, sample in (("others", some.values(system, P)), ("left out", values[kept])):
                rows.append(
                    {
                        "removed": removed,
                        "fold": number + 1,
                        "system": system,
                        "value": float(sample.mean()),
                        "whole": float(values.mean()),
                        "error": left,
                        "lists": int(kept.sum()),
                    }
                )
    return pl.DataFrame(rows)


def _keys(lists: TargetLists) -> I64:
    """Number the user and the relevant item of each list."""
    return lists.user * np.int64(len(lists.tests.items)) + lists.anchor


@measurement("systems with larger target sets")
def larger(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 4, right: a row per size of target sets, fold and system."""
    rows: list[Row] = []
    for number, split in enumerate(curve_folds(lab, dataset_name)):
        systems = models(lab, dataset_name, "random", number, split.train)
        for size in sizes(split):
            lists = target_lists(
                OneRelevant(size - 1), split, relevance(lab, dataset_name), lab.seed
            )
            rows += rows_of(score_systems(lists, systems), targets=size, fold=number + 1)
    return pl.DataFrame(rows)


@measurement("1R precision and its bounds")
def bounds(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Measure Fig. 3: 1RP@10 with the same others for all lists of a user, and its bounds.

    `one each` has one liked test item per user.
    """
    rows: list[Row] = []
    liked = relevance(lab, dataset_name)
    for number, split in enumerate(curve_folds(lab, dataset_name)):
        systems = models(lab, dataset_name, "random", number, split.train)
        points = [("kept", share, OTHERS, subsampled(split, share, lab.seed)) for share in SHARES]
        points += [("targets", size, size - 1, split) for size in sizes(split)]
        points.append(("one each", 1, OTHERS, single(split, liked)))
        for along, at, others, part in points:
            whole = target_lists(TestItems(others), part, liked, lab.seed)
            same = target_lists(OneRelevant(others, fresh=False), part, liked, lab.seed)
            for name in BOUNDED:
                low, high = one_relevant_bounds(whole, ranks_of(systems[name], whole))
                value = score_systems(same, {name: systems[name]}).averages()[name][P]
                rows.append(
                    {
                        "along": along,
                        "at": float(at),
                        "fold": number + 1,
                        "system": name,
                        "low": low,
                        "value": value.value,
                        "high": high,
                        "lists": value.users,
                    }
                )
    return pl.DataFrame(rows)


def single(split: Split, liked: Relevance) -> Split:
    """Return a split whose test part has at most one liked rating per user."""
    good = np.flatnonzero(liked.is_liked(split.test.value))
    _, first = np.unique(split.test.user[good], return_index=True)
    keep = ~liked.is_liked(split.test.value)
    keep[good[first]] = True
    return replace(split, test=split.test.take(keep))
