"""mena2021: items and pairs of items, systems as observed and by the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, Mask
from unskew.auditing.truth.sources import source_of
from unskew.auditing.truth.truth import Parts, scores_and_truth
from unskew.bias.describe_bias import BiasReport, describe_bias, pearson
from unskew.bias.pairs.steepness import dense_ranks
from unskew.data.ratings import Ratings
from unskew.data.relevance import Relevance, levels
from unskew.data.summary import item_counts
from unskew.engine.store import digest_of
from unskew.evaluation.scores import Scores
from unskew.experiment.execution import run_plan_by
from unskew.experiment.plan import Custom, Plan
from unskew.experiment.results import Results
from unskew.recommend.model import Algorithm, Model
from unskew.recommend.simple import OptimalAntiPrecision, OptimalPrecision, OptimalTrue, Random
from unskew.report.estimates import Estimates
from unskew.splits.given import FamiliarTraining, Given
from unskew.splits.random import Random as RandomSplit
from unskew.splits.split import Splitter, shared_rows
from unskew.splits.time.temporal import Temporal
from unskew.stats.correlation import kendall
from unskew.targets.designs import TrainItems
from unskew.worlds.observation import AgainstRelevance
from unskew.worlds.worlds import World, world
from unskew_studies.lab import Lab, MissingDataError, measurement
from unskew_studies.mena2021.measurements_lemmas import extent, steeper_in_floats, steeper_than_both
from unskew_studies.presets import preset

NAMES = {
    "wrmf": "WRMF",
    "gbpr": "GBPR",
    "plsa": "GPLSA",
    "eals": "EALS",
    "slim": "SLIM",
    "ranksgd": "RSGD",
    "userknn": "UserKNN",
    "mostpopular": "Pop",
    "pnmf": "PNMF",
    "itemknn": "ItemKNN",
    "listrankmf": "LRMF",
    "svdpp": "SVD++",
    "wbpr": "WBPR",
    "smootheditemaverage": "Avg",
    "bpoissmf": "BPMF",
    "randomguess": "Rnd",
}
"""The sixteen systems: what the released results and what the figures call them."""
BEST_P, BEST_ANTI, BEST_TRUE = "optimal P", "optimal anti-P", "optimal true"
LEARNED = "BPMF, learned"
"""The method behind BPMF as it was meant; the library that was used never updates it."""
UNPOPULAR = "unpopular first"
SIXTEEN = tuple(NAMES.values())
MEANT = tuple(LEARNED if name == "BPMF" else name for name in SIXTEEN)
"""The sixteen with BPMF learning."""
PERSONAL = tuple(name for name in SIXTEEN if name not in ("Pop", "Avg", "Rnd"))
RELEASED_AT_10 = "mena2021_ml-1m_at10.csv"

PAIRS = {
    "P": ("P@10", "anti-P@10"),
    "Recall": ("Recall@10", "anti-Recall@10"),
    "nDCG": ("nDCG@10", "anti-nDCG@10"),
    "MRR": ("RR@10", "anti-RR@10"),
}
"""A metric of hits, and its twin of false positives: anti-precision, fallout, nDCL, anti-MRR."""
CONDENSED = {
    "P": ("condensed-P(per=list)@10", "anti-condensed-P(per=list)@10"),
    "Recall": ("condensed-Recall@10", "anti-condensed-Recall@10"),
    "nDCG": ("condensed-nDCG@10", "anti-condensed-nDCG@10"),
    "MRR": ("condensed-RR@10", "anti-condensed-RR@10"),
}
"""The same on condensed rankings: without what is not judged."""
FULL = [name for both in PAIRS.values() for name in both]
METRICS = [*FULL, "Residual@10", *(name for both in CONDENSED.values() for name in both)]

LIKED = {"yahoo-r3": 3.0, "cm100k": 3.0}
"""From which rating on the published numbers count as liked; 4 on other data."""
GAINS = {1.0: 0.0, 2.0: 0.0, 3.0: 1.0, 4.0: 2.0, 5.0: 5.0}
LOSSES = {1.0: 2.0, 2.0: 1.0, 3.0: 0.0, 4.0: 0.0, 5.0: 0.0}
"""Gains and losses of five stars behind the published nDCG: a slip took them for four stars."""
PUBLISHED, TEXT = "published", "text"
"""Two procedures: that of the published numbers, and that of the text."""


# The systems


def learned(name: str, liked: float, train: Ratings, rng: np.random.Generator) -> Model:
    """Fit a system of the paper to levels: 0 for what is disliked, then 1, 2, …."""
    return preset("mena2021")[name].algorithm.fit(levels(train, liked), rng)


def never_learned(train: Ratings, rng: np.random.Generator) -> Model:
    """Fit nothing: what the library that was used makes of BPMF."""
    return Random().fit(train, rng)


def unpopular(train: Ratings, _rng: np.random.Generator) -> object:
    """Rank by how few users rated an item."""
    return -item_counts(train).astype(np.float64)


def systems(liked: float, random: Ratings | None = None) -> dict[str, Algorithm]:
    """Return the sixteen systems, BPMF as it was meant, and the optimal rankings.

    Parameters
    ----------
    liked
        The smallest rating that is liked: systems learn from levels above it.
    random
        Judgments of random items, for the optimal ranking of the truth.
    """
    algorithms: dict[str, Algorithm] = {}
    for name, short in NAMES.items():
        version = digest_of({**preset("mena2021")[name].algorithm.draw_key, "levels": liked})
        label = LEARNED if short == "BPMF" else short
        algorithms[label] = Custom(label, partial(learned, name, liked), version=version)
    algorithms["BPMF"] = Custom("BPMF", never_learned, version=1)
    algorithms[UNPOPULAR] = Custom(UNPOPULAR, unpopular, version=1)
    algorithms |= {
        BEST_P: OptimalPrecision(liked=liked),
        BEST_ANTI: OptimalAntiPrecision(liked=liked),
    }
    if random is not None:
        algorithms[BEST_TRUE] = OptimalTrue(truth=random, liked=liked)
    return algorithms


# The data


def threshold(lab: Lab, dataset_name: str, rule: str = PUBLISHED) -> float:
    """Return the smallest liked rating: the text takes 4 for Yahoo! R3, its numbers take 3."""
    paper = 4.0 if dataset_name == "yahoo-r3" and rule == TEXT else LIKED.get(dataset_name, 4.0)
    return lab.threshold(dataset_name, paper=paper)


def is_survey(lab: Lab, dataset_name: str) -> bool:
    """Return whether random items were judged and a tag says which the user knew (CM100k)."""
    return "familiar" in lab.data(dataset_name).ratings.tags


def knows_truth(lab: Lab, dataset_name: str) -> bool:
    """Return whether there are judgments of random items."""
    return is_survey(lab, dataset_name) or lab.data(dataset_name).random is not None


def observed_part(lab: Lab, dataset_name: str) -> Ratings:
    """Return what users chose to rate; of a survey, what they knew before."""
    ratings = lab.data(dataset_name).ratings
    if ratings.implicit:
        raise MissingDataError(f"{dataset_name}: needs ratings that also say what users disliked")
    if not is_survey(lab, dataset_name):
        return ratings
    return ratings.take(ratings.tags["familiar"].to_numpy().astype(bool))


def random_part(lab: Lab, dataset_name: str) -> Ratings:
    """Return judgments of random items; MissingDataError if there are none."""
    data = lab.data(dataset_name)
    if is_survey(lab, dataset_name):
        return data.ratings
    if data.random is None:
        raise MissingDataError(f"{dataset_name}: needs ratings of randomly chosen items (random=…)")
    return data.random


def bias(lab: Lab, dataset_name: str) -> BiasReport:
    """Describe popularity, ratings and, where it is known, relevance: all ratings, no split."""

    def make() -> BiasReport:
        random = random_part(lab, dataset_name) if knows_truth(lab, dataset_name) else None
        return describe_bias(
            observed_part(lab, dataset_name),
            liked=threshold(lab, dataset_name),
            random=random,
            seed=lab.seed,
        )

    return lab.cached("bias", dataset_name, make)


@measurement("the size of the data")
def sizes(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return the number of ratings of each part, and of users and items in all."""
    data = lab.data(dataset_name)
    seen = data.ratings
    rows = [("users", len(seen.users)), ("items", len(seen.items))]
    if is_survey(lab, dataset_name):
        known = len(observed_part(lab, dataset_name))
        rows += [("familiar", known), ("not familiar", len(seen) - known)]
    else:
        rows.append(("ratings", len(seen)))
    if data.random is not None:
        rows.append(("random", len(data.random)))
    return pl.DataFrame(rows, schema={"what": pl.String, "number": pl.Int64}, orient="row")


@measurement("items: popularity, average rating, optimal rankings")
def items(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return a row per item."""
    return bias(lab, dataset_name).items()


@measurement("pairs of items", version=2)
def pairs(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return every share of pairs, with and without the truth, and the correlations of Fig. 7."""
    report = bias(lab, dataset_name)
    numbers = dict(_pair_numbers(report.pairs))
    for row in report.correlations.iter_rows(named=True):
        numbers[f"pearson/{row['ranking']}/{row['with']}"] = row["pearson"]
    if report.dependence is not None:
        numbers |= {
            f"dependence/{name}": float(value)
            for name, value in report.dependence.to_dict().items()
            if isinstance(value, int | float)
        }
    part = report.counts.take(report.counts.identified)
    if part.asked is not None and part.asked_liked is not None and len(part.items) > 1:
        numbers["truth/pearson"] = pearson(part.p_train, part.p_rel)
        liked, disliked = part.asked_liked, part.asked - part.asked_liked
        best, worst = (_order(top, part.asked) for top in (liked, disliked))
        numbers["truth/real orders"] = kendall(best, -worst)
    schema = {"what": pl.String, "value": pl.Float64}
    return pl.DataFrame(list(numbers.items()), schema=schema, orient="row")


@measurement("pairs of items, with popularity in place of its odds")
def steepness(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return on which share of pairs popularity is steeper than relevance and non-relevance.

    Its odds and itself, on all ratings and on the training part of each fold.
    """
    ratings, liked = observed_part(lab, dataset_name), threshold(lab, dataset_name)
    parts = {"all": ratings}
    parts |= {one.label: one.train for one in folds(lab, dataset_name).each(ratings, lab.seed)}
    rows = []
    for name, part in parts.items():
        rated = item_counts(part)
        kept = rated > 0
        good = item_counts(part.take(part.value >= liked))[kept]
        rated, users = rated[kept], np.unique(part.user).size
        ways = {"odds": users - rated, "plain": np.ones_like(rated)}
        for popularity, bottom in ways.items():
            both = steeper_than_both((rated, bottom), rated, good)
            rows.append((popularity, name, both))
        rows.append(("plain, in floating point", name, steeper_in_floats(rated, good, users)))
    kinds = {"popularity": pl.String, "ratings": pl.String, "both": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _order(top: I64, bottom: I64) -> I32:
    return dense_ranks(top.astype(object), bottom.astype(object))


def _pair_numbers(pairs: Estimates) -> Iterator[tuple[str, float]]:
    """Yield every number of pairs of items under its name; by the truth under `truth/`."""
    prefixes = {"": (pairs, pairs.parts["overall"])}
    if "true" in pairs.parts:
        prefixes["truth/"] = (pairs.parts["true"], pairs.parts["true overall"])
    for prefix, parts in prefixes.items():
        for part in parts:
            for row in part.rows.drop_nulls("value").iter_rows(named=True):
                case = f"/{row['case']}" if "case" in row else ""
                yield f"{prefix}{row['quantity']}{case}", row["value"]


# Systems on data


def folds(lab: Lab, dataset_name: str) -> Splitter:
    """Return the split: the authors' own folds where the data have them, else random ones."""
    number = lab.amount("folds")
    tags = lab.data(dataset_name).ratings.tags
    if is_survey(lab, dataset_name):
        return FamiliarTraining(folds=number)
    if "mena_fold" in tags and tags["mena_fold"].n_unique() == number:
        return Given(column="mena_fold")
    return RandomSplit(folds=number)


def plan(
    split: Splitter,
    liked: float,
    *,
    random: Ratings | None = None,
    metrics: Sequence[str] = METRICS,
    mapped: bool = False,
    seed: int = 0,
) -> Plan:
    """Return the experiment of section 8: items with training ratings, lists of ten.

    Parameters
    ----------
    split
        The split.
    liked
        The smallest liked rating.
    random
        Judgments of random items, for the optimal ranking of the truth.
    metrics
        What to compute.
    mapped
        Whether nDCG and nDCL take the gains and losses behind the published numbers.
    seed
        Everything random follows from it.
    """
    rule = Relevance(liked=liked, gain="levels")
    if mapped:
        rule = Relevance(liked=liked, gain=GAINS, loss=LOSSES)
    both = isinstance(split, FamiliarTraining)
    return Plan(
        split,
        TrainItems(),
        systems(liked, random),
        rule,
        metrics,
        judgments=("observed", "true") if both else "test",
        draws=1,
        seed=seed,
    )


def procedures(lab: Lab, dataset_name: str, *differing: str) -> tuple[str, ...]:
    """Return the procedures to follow: both where they differ on these data."""
    return (PUBLISHED, TEXT) if dataset_name in differing and lab.liked is None else (PUBLISHED,)


@measurement("systems by random folds, as observed and by the truth")
def scores(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return a row per procedure, judgments, fold, system and metric."""
    observed_part(lab, dataset_name)  # says so where nothing is disliked
    random = random_part(lab, dataset_name) if knows_truth(lab, dataset_name) else None
    parts = []
    for rule in procedures(lab, dataset_name, "yahoo-r3"):
        experiment = plan(
            folds(lab, dataset_name),
            threshold(lab, dataset_name, rule),
            random=random,
            mapped=dataset_name == "yahoo-r3" and rule == PUBLISHED,
            seed=lab.seed,
        )
        if lab.data(dataset_name).random is None:
            long = _of_results(lab.run_plan(dataset_name, experiment))
        else:
            lab.progress(
                f"running {len(experiment.systems)} systems, judged twice ({dataset_name})"
            )
            source = source_of(
                lab.data(dataset_name), None, None, TrainItems(), "to-training", experiment
            )
            long = _of_truth(*scores_and_truth(lab.executor, source, experiment)[:2])
        parts.append(long.select(pl.lit(rule).alias("rule"), pl.all()))
    return pl.concat(parts)


KINDS = {
    **dict.fromkeys(("judgments", "fold", "system", "metric"), pl.String),
    "mean": pl.Float64,
}


def _of_results(results: Results) -> pl.DataFrame:
    rows = [
        (part.view.judgments.replace("test", "observed"), part.fold, *row)
        for part in results
        for row in _means_of(part.scores)
    ]
    return pl.DataFrame(rows, schema=KINDS, orient="row")


def _of_truth(observed: Parts, true: Parts) -> pl.DataFrame:
    rows = [
        (name, f"fold{number}", *row)
        for name, parts in (("observed", observed), ("true", true))
        for number, fold in enumerate(next(iter(parts.values())), start=1)
        for row in _means_of(fold)
    ]
    return pl.DataFrame(rows, schema=KINDS, orient="row")


def _means_of(scores_of_fold: Scores) -> Iterator[tuple[str, str, float]]:
    """Yield system, metric and mean; condensed precision of users with a judged item."""
    for system, averages in scores_of_fold.averages().items():
        for metric, mean in averages.items():
            if metric not in CONDENSED["P"]:
                yield system, metric, mean.value
                continue
            judged = sum(scores_of_fold.values(system, one) for one in CONDENSED["P"]) > 0
            kept = scores_of_fold.values(system, metric)[judged & scores_of_fold.averaged(system)]
            yield system, metric, float(kept.mean()) if kept.size else math.nan


SKIPPED = ("nDCG", "MRR")
"""The metrics that leave out users without a list."""
DRAWS = 500
"""The number of draws of users for an interval."""


def _temporal_plan(lab: Lab, dataset_name: str, rule: str) -> Plan:
    stars = dataset_name in ("ml-1m", "ml-100k") and rule == PUBLISHED
    return plan(
        Temporal(test=0.2), threshold(lab, dataset_name), metrics=FULL, mapped=stars, seed=lab.seed
    )


@measurement("systems by a split in time")
def temporal(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return a row per procedure, system and metric.

    As in the authors' code no system has a list for users without training ratings: they count 0
    for precision and recall, and not at all for nDCG and MRR.
    """
    if observed_part(lab, dataset_name).time is None:
        raise MissingDataError(f"{dataset_name}: needs ratings with time stamps")
    parts = []
    for rule in procedures(lab, dataset_name, "ml-1m", "ml-100k"):
        experiment = _temporal_plan(lab, dataset_name, rule)
        fold: Scores = lab.run_plan(dataset_name, experiment).scores()[0]
        rows = [
            (
                "observed",
                "temporal",
                system,
                metric,
                _in_time(fold, system, metric, skip=name in SKIPPED),
            )
            for name, both in PAIRS.items()
            for metric in both
            for system in experiment.systems
        ]
        long = pl.DataFrame(rows, schema=KINDS, orient="row")
        parts.append(long.select(pl.lit(rule).alias("rule"), pl.all()))
    return pl.concat(parts)


def _in_time(fold: Scores, system: str, metric: str, *, skip: bool) -> float:
    value, kept = _by_user(fold, system, metric, skip=skip)
    return float(value[kept].mean()) if kept.any() else math.nan


def _by_user(fold: Scores, system: str, metric: str, *, skip: bool) -> tuple[F64, Mask]:
    """Return a value per user, and which of them count."""
    trained = fold.averaged(system, "with-train")
    kept = fold.averaged(system, "both" if skip else "with-test")
    value = np.where(trained, np.nan_to_num(fold.values(system, metric)), 0.0)
    return value, kept & trained if skip else kept


@measurement("intervals of τ by a split in time")
def temporal_spread(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return the 95 % interval of the size of τ of each metric and its twin, users being drawn.

    And that of the largest of them. By the procedure of the published numbers.
    """
    fold = lab.run_plan(dataset_name, _temporal_plan(lab, dataset_name, PUBLISHED)).scores()[0]
    users = len(fold.lists)
    rng = np.random.default_rng(lab.seed)
    weights = rng.multinomial(users, np.full(users, 1 / users), size=DRAWS).astype(np.float64)
    sizes_of = {}
    for name, both in PAIRS.items():
        hits, false = (_drawn_means(fold, one, name in SKIPPED, weights) for one in both)
        sizes_of[name] = [_size(*draw) for draw in zip(hits, false, strict=True)]
    sizes_of["largest size"] = np.max(list(sizes_of.values()), axis=0).tolist()
    rows = [(name, *_middle(drawn)) for name, drawn in sizes_of.items()]
    kinds = {"of": pl.String, "low": pl.Float64, "high": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _size(hits: F64, false: F64) -> float:
    """Return the size of τ; NaN where no user of some system was drawn."""
    if np.isnan(hits).any() or np.isnan(false).any():
        return math.nan
    return abs(kendall(hits, false))


def _middle(drawn: Sequence[float]) -> tuple[float | None, float | None]:
    """Return between which values 95 % of those drawn lie; None where none is defined."""
    known = [one for one in drawn if not math.isnan(one)]
    if not known:
        return None, None
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


def _drawn_means(fold: Scores, metric: str, skip: bool, weights: F64) -> F64:
    """Return the means of the sixteen systems, a row per draw of users."""
    columns = []
    for system in SIXTEEN:
        value, kept = _by_user(fold, system, metric, skip=skip)
        with np.errstate(invalid="ignore"):
            columns.append((weights @ (value * kept)) / (weights @ kept))
    return np.column_stack(columns)


@measurement("systems where popularity goes against relevance")
def inverted_popularity(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Deal the familiarity of items anew, most to what is liked least, and run again (8.5).

    On a survey. Without data: the built-in world `inverted`.
    """
    if not dataset_name:
        upside = world("inverted", **extent(lab, "inverted"), seed=lab.seed)
        experiment = plan(
            RandomSplit(folds=lab.amount("folds")), upside.liked, metrics=FULL, seed=lab.seed
        )
        source = source_of(upside, None, None, None, "to-training", experiment)
        long = _of_truth(*scores_and_truth(lab.executor, source, experiment)[:2])
    else:
        if not is_survey(lab, dataset_name):
            raise MissingDataError(
                f"{dataset_name}: needs a survey that says which items users knew"
            )
        asked, liked = random_part(lab, dataset_name), threshold(lab, dataset_name)
        dealt = World.of_matrix(
            asked, liked, AgainstRelevance(), familiar="familiar", seed=lab.seed
        )
        mark = pl.Series("familiar", shared_rows(asked, dealt.ratings))
        data = replace(asked, tags={**asked.tags, "familiar": mark})
        experiment = plan(
            FamiliarTraining(folds=lab.amount("folds")),
            liked,
            random=asked,
            metrics=FULL,
            seed=lab.seed,
        )
        lab.progress(
            f"running {len(experiment.systems)} systems, familiarity reassigned ({dataset_name})"
        )
        long = _of_results(run_plan_by(lab.executor, data, experiment, store=lab.store.home))
    return long.select(pl.lit(PUBLISHED).alias("rule"), pl.all())
