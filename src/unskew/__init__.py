"""unskew: bias-aware offline evaluation of recommender systems.

>>> import unskew as us
>>> test = {"user": ["ann", "ann", "bob"], "item": ["x", "y", "z"], "rating": [5, 1, 4]}
>>> print(us.evaluate(test, {"mine": {"ann": ["y", "x"], "bob": ["z"]}}, "P@1", liked=4).mean())
{'mine': {'P@1': 0.5}}
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unskew.auditing.interventions import intervention_study
    from unskew.auditing.null import null_experiment
    from unskew.auditing.null_designs import castells2018_designs
    from unskew.auditing.operating import operating_characteristics
    from unskew.auditing.result import Audit, audit
    from unskew.auditing.true_values import debiased_training, sweep, truth
    from unskew.bias.decomposition import margins
    from unskew.bias.describe import describe_bias
    from unskew.bias.optimal import optimal_rankings
    from unskew.bias.pairs import item_pairs, pairs_of_systems
    from unskew.bias.popularity import ItemCounts, count_items
    from unskew.data.catalog import load
    from unskew.data.collection import read_qrels
    from unskew.data.dataset import Dataset
    from unskew.data.overview import summary
    from unskew.data.ratings import Ids, Ratings
    from unskew.data.readers import read_ratings
    from unskew.data.relevance import Relevance, levels
    from unskew.engine.versions import show_versions
    from unskew.errors import DataError, DataWarning, SettingError, UnknownName, UnskewError
    from unskew.evaluation.chance import expected_precision, fairness, one_relevant_bounds, sparsity
    from unskew.evaluation.evaluate import evaluate
    from unskew.evaluation.on_disk.files import Estimate, FileScores, evaluate_files
    from unskew.evaluation.scores import Scores
    from unskew.experiment.plan import Custom, Plan, read_plan
    from unskew.experiment.preview import outline
    from unskew.experiment.results import Results, run
    from unskew.experiment.tune import tune
    from unskew.judging.rank import rank, ranks_of
    from unskew.metrics.names import Metric
    from unskew.recommend.als import EALS, PZT
    from unskew.recommend.bpr import BPRMF
    from unskew.recommend.factors import WRMF, PureSVD
    from unskew.recommend.graph import HittingTime
    from unskew.recommend.language import RM1, RM2, LMWSRItemBased, LMWSRUserBased, UIRItem
    from unskew.recommend.librec import LibRecItemKNN, LibRecSLIM, LibRecUserKNN
    from unskew.recommend.linear import EASE, SLIM
    from unskew.recommend.listwise import ListRankMF
    from unskew.recommend.neighbours import (
        CHI2,
        KLD,
        RSV,
        RW,
        ItemKNN,
        NNCosNgbrIB,
        NNCosNgbrUB,
        UserKNN,
    )
    from unskew.recommend.nmf import PNMF
    from unskew.recommend.pairwise import GBPR, WBPR, RankSGD
    from unskew.recommend.poisson import HPF
    from unskew.recommend.presets import (
        bellogin2017,
        carraro2020,
        castells2018,
        mena2021,
        valcarce2018,
    )
    from unskew.recommend.registry import algorithm
    from unskew.recommend.saved_models import load_model, save_model
    from unskew.recommend.sgd import SVD, BiasedMF
    from unskew.recommend.simple import (
        AverageRating,
        OptimalAntiPrecision,
        OptimalPrecision,
        OptimalTrue,
        Popularity,
        PositivePopularity,
        Random,
        SmoothedAverage,
    )
    from unskew.recommend.svdpp import SVDpp
    from unskew.recommend.topics import LDA, PLSA, GaussianPLSA
    from unskew.report.writing import embedded, save_report
    from unskew.runs import Run, read_run
    from unskew.splits.diagnose import audit_split
    from unskew.splits.events import EventSplit, read_events
    from unskew.splits.familiar import FamiliarTraining
    from unskew.splits.given import ForcedTest, Given
    from unskew.splits.interventions import Full, Reg, Skew, Wtd, WtdH
    from unskew.splits.popularity import FlatTest, HeadRemoved, UniformTest
    from unskew.splits.random import RandomSplit
    from unskew.splits.randomness import looks_random
    from unskew.splits.saved import load_splits, save_splits
    from unskew.splits.split import Split
    from unskew.splits.strata import judgment_bins, popularity_percentiles
    from unskew.splits.subsample import popularity_cut, sparsity_sample
    from unskew.splits.time import TemporalSplit
    from unskew.splits.user import LeaveOut, UserSplit
    from unskew.stats.comparison import Comparison
    from unskew.stats.conclusions import score_table, stability
    from unskew.stats.concordance import agreement
    from unskew.stats.corrections import correct
    from unskew.stats.correlation import kendall, rbo, tau_ap
    from unskew.stats.discrimination import (
        discriminative_power,
        power,
        sample_size,
        swap_rate,
        type_one_error,
    )
    from unskew.stats.incompleteness import robustness, user_robustness
    from unskew.stats.pairing import paired
    from unskew.stats.significance import compare
    from unskew.studies.study import StudyResult, study
    from unskew.targets.designs import (
        AllItems,
        OneRelevant,
        Percentiles,
        TargetLists,
        Targets,
        TestItems,
        TestTargets,
        TrainItems,
        UserFlat,
    )
    from unskew.targets.saved import read_targets, save_targets
    from unskew.unbiased.bandit import policy_value, read_log
    from unskew.unbiased.identification import bounds, judgments_needed, sensitivity
    from unskew.unbiased.ips import estimate
    from unskew.unbiased.online import (
        Clicks,
        Forced,
        ab_test,
        interleave,
        multileave,
        reuse_judgments,
        top_lists,
    )
    from unskew.unbiased.online_power import online_tests
    from unskew.unbiased.propensities import Propensity, propensity
    from unskew.unbiased.propensity_groups import propensity_strata, stratified_recall
    from unskew.unbiased.sampled import (
        correct_sampled,
        corrected_values,
        expected_metrics,
        sampled_metrics,
    )
    from unskew.unbiased.stratified import strata
    from unskew.unbiased.target_numbers import target_sizes
    from unskew.worlds.nulls import redraw
    from unskew.worlds.observation import fit_popularity_law
    from unskew.worlds.worlds import World, world

__version__ = "0.1.0"

# Names are loaded at first use (PEP 562), so that importing unskew costs next to nothing.
_HOME = {
    "Ids": "unskew.data.ratings",
    "Ratings": "unskew.data.ratings",
    "Relevance": "unskew.data.relevance",
    "read_ratings": "unskew.data.readers",
    "Run": "unskew.runs",
    "read_run": "unskew.runs",
    "Metric": "unskew.metrics.names",
    "Scores": "unskew.evaluation.scores",
    "evaluate": "unskew.evaluation.evaluate",
    "expected_precision": "unskew.evaluation.chance",
    "fairness": "unskew.evaluation.chance",
    "one_relevant_bounds": "unskew.evaluation.chance",
    "sparsity": "unskew.evaluation.chance",
    "Split": "unskew.splits.split",
    "RandomSplit": "unskew.splits.random",
    "UserSplit": "unskew.splits.user",
    "LeaveOut": "unskew.splits.user",
    "TemporalSplit": "unskew.splits.time",
    "EventSplit": "unskew.splits.events",
    "read_events": "unskew.splits.events",
    "UniformTest": "unskew.splits.popularity",
    "FlatTest": "unskew.splits.popularity",
    "HeadRemoved": "unskew.splits.popularity",
    "Given": "unskew.splits.given",
    "ForcedTest": "unskew.splits.given",
    "FamiliarTraining": "unskew.splits.familiar",
    "sparsity_sample": "unskew.splits.subsample",
    "popularity_cut": "unskew.splits.subsample",
    "popularity_percentiles": "unskew.splits.strata",
    "judgment_bins": "unskew.splits.strata",
    "AllItems": "unskew.targets.designs",
    "OneRelevant": "unskew.targets.designs",
    "Percentiles": "unskew.targets.designs",
    "TargetLists": "unskew.targets.designs",
    "Targets": "unskew.targets.designs",
    "TestItems": "unskew.targets.designs",
    "TestTargets": "unskew.targets.designs",
    "TrainItems": "unskew.targets.designs",
    "UserFlat": "unskew.targets.designs",
    "read_targets": "unskew.targets.saved",
    "save_targets": "unskew.targets.saved",
    "rank": "unskew.judging.rank",
    "ranks_of": "unskew.judging.rank",
    "AverageRating": "unskew.recommend.simple",
    "OptimalAntiPrecision": "unskew.recommend.simple",
    "OptimalPrecision": "unskew.recommend.simple",
    "OptimalTrue": "unskew.recommend.simple",
    "Popularity": "unskew.recommend.simple",
    "PositivePopularity": "unskew.recommend.simple",
    "Random": "unskew.recommend.simple",
    "SmoothedAverage": "unskew.recommend.simple",
    "CHI2": "unskew.recommend.neighbours",
    "KLD": "unskew.recommend.neighbours",
    "RSV": "unskew.recommend.neighbours",
    "RW": "unskew.recommend.neighbours",
    "ItemKNN": "unskew.recommend.neighbours",
    "NNCosNgbrIB": "unskew.recommend.neighbours",
    "NNCosNgbrUB": "unskew.recommend.neighbours",
    "UserKNN": "unskew.recommend.neighbours",
    "RM1": "unskew.recommend.language",
    "RM2": "unskew.recommend.language",
    "LMWSRItemBased": "unskew.recommend.language",
    "LMWSRUserBased": "unskew.recommend.language",
    "UIRItem": "unskew.recommend.language",
    "HittingTime": "unskew.recommend.graph",
    "EASE": "unskew.recommend.linear",
    "SLIM": "unskew.recommend.linear",
    "WRMF": "unskew.recommend.factors",
    "PureSVD": "unskew.recommend.factors",
    "BPRMF": "unskew.recommend.bpr",
    "SVD": "unskew.recommend.sgd",
    "BiasedMF": "unskew.recommend.sgd",
    "LDA": "unskew.recommend.topics",
    "PLSA": "unskew.recommend.topics",
    "load_model": "unskew.recommend.saved_models",
    "save_model": "unskew.recommend.saved_models",
    "algorithm": "unskew.recommend.registry",
    "valcarce2018": "unskew.recommend.presets",
    "Full": "unskew.splits.interventions",
    "Reg": "unskew.splits.interventions",
    "Skew": "unskew.splits.interventions",
    "Wtd": "unskew.splits.interventions",
    "WtdH": "unskew.splits.interventions",
    "looks_random": "unskew.splits.randomness",
    "save_splits": "unskew.splits.saved",
    "load_splits": "unskew.splits.saved",
    "audit_split": "unskew.splits.diagnose",
    "Custom": "unskew.experiment.plan",
    "Plan": "unskew.experiment.plan",
    "read_plan": "unskew.experiment.plan",
    "Results": "unskew.experiment.results",
    "run": "unskew.experiment.results",
    "outline": "unskew.experiment.preview",
    "tune": "unskew.experiment.tune",
    "compare": "unskew.stats.significance",
    "paired": "unskew.stats.pairing",
    "Comparison": "unskew.stats.comparison",
    "correct": "unskew.stats.corrections",
    "agreement": "unskew.stats.concordance",
    "score_table": "unskew.stats.conclusions",
    "stability": "unskew.stats.conclusions",
    "robustness": "unskew.stats.incompleteness",
    "user_robustness": "unskew.stats.incompleteness",
    "discriminative_power": "unskew.stats.discrimination",
    "power": "unskew.stats.discrimination",
    "sample_size": "unskew.stats.discrimination",
    "swap_rate": "unskew.stats.discrimination",
    "type_one_error": "unskew.stats.discrimination",
    "kendall": "unskew.stats.correlation",
    "rbo": "unskew.stats.correlation",
    "tau_ap": "unskew.stats.correlation",
    "show_versions": "unskew.engine.versions",
    "UnskewError": "unskew.errors",
    "DataError": "unskew.errors",
    "SettingError": "unskew.errors",
    "UnknownName": "unskew.errors",
    "DataWarning": "unskew.errors",
    "load": "unskew.data.catalog",
    "read_qrels": "unskew.data.collection",
    "Dataset": "unskew.data.dataset",
    "summary": "unskew.data.overview",
    "World": "unskew.worlds.worlds",
    "world": "unskew.worlds.worlds",
    "fit_popularity_law": "unskew.worlds.observation",
    "ItemCounts": "unskew.bias.popularity",
    "count_items": "unskew.bias.popularity",
    "describe_bias": "unskew.bias.describe",
    "item_pairs": "unskew.bias.pairs",
    "pairs_of_systems": "unskew.bias.pairs",
    "optimal_rankings": "unskew.bias.optimal",
    "margins": "unskew.bias.decomposition",
    "redraw": "unskew.worlds.nulls",
    "null_experiment": "unskew.auditing.null",
    "castells2018_designs": "unskew.auditing.null_designs",
    "operating_characteristics": "unskew.auditing.operating",
    "truth": "unskew.auditing.true_values",
    "sweep": "unskew.auditing.true_values",
    "debiased_training": "unskew.auditing.true_values",
    "intervention_study": "unskew.auditing.interventions",
    "EALS": "unskew.recommend.als",
    "PZT": "unskew.recommend.als",
    "PNMF": "unskew.recommend.nmf",
    "HPF": "unskew.recommend.poisson",
    "GaussianPLSA": "unskew.recommend.topics",
    "LibRecItemKNN": "unskew.recommend.librec",
    "LibRecSLIM": "unskew.recommend.librec",
    "LibRecUserKNN": "unskew.recommend.librec",
    "ListRankMF": "unskew.recommend.listwise",
    "GBPR": "unskew.recommend.pairwise",
    "WBPR": "unskew.recommend.pairwise",
    "RankSGD": "unskew.recommend.pairwise",
    "SVDpp": "unskew.recommend.svdpp",
    "levels": "unskew.data.relevance",
    "mena2021": "unskew.recommend.presets",
    "castells2018": "unskew.recommend.presets",
    "carraro2020": "unskew.recommend.presets",
    "bellogin2017": "unskew.recommend.presets",
    "propensity": "unskew.unbiased.propensities",
    "Propensity": "unskew.unbiased.propensities",
    "bounds": "unskew.unbiased.identification",
    "sensitivity": "unskew.unbiased.identification",
    "judgments_needed": "unskew.unbiased.identification",
    "propensity_strata": "unskew.unbiased.propensity_groups",
    "stratified_recall": "unskew.unbiased.propensity_groups",
    "policy_value": "unskew.unbiased.bandit",
    "read_log": "unskew.unbiased.bandit",
    "correct_sampled": "unskew.unbiased.sampled",
    "corrected_values": "unskew.unbiased.sampled",
    "expected_metrics": "unskew.unbiased.sampled",
    "sampled_metrics": "unskew.unbiased.sampled",
    "target_sizes": "unskew.unbiased.target_numbers",
    "strata": "unskew.unbiased.stratified",
    "Clicks": "unskew.unbiased.online",
    "Forced": "unskew.unbiased.online",
    "ab_test": "unskew.unbiased.online",
    "interleave": "unskew.unbiased.online",
    "multileave": "unskew.unbiased.online",
    "reuse_judgments": "unskew.unbiased.online",
    "top_lists": "unskew.unbiased.online",
    "online_tests": "unskew.unbiased.online_power",
    "Estimate": "unskew.evaluation.on_disk.files",
    "FileScores": "unskew.evaluation.on_disk.files",
    "evaluate_files": "unskew.evaluation.on_disk.files",
    "audit": "unskew.auditing.result",
    "Audit": "unskew.auditing.result",
    "save_report": "unskew.report.writing",
    "StudyResult": "unskew.studies.study",
    "study": "unskew.studies.study",
    "embedded": "unskew.report.writing",
    "estimate": "unskew.unbiased.ips",
}

__all__ = [
    "AllItems",
    "AverageRating",
    "BPRMF",
    "BiasedMF",
    "CHI2",
    "Comparison",
    "Custom",
    "DataError",
    "DataWarning",
    "EASE",
    "EventSplit",
    "FamiliarTraining",
    "FlatTest",
    "ForcedTest",
    "Full",
    "Given",
    "HeadRemoved",
    "HittingTime",
    "Ids",
    "ItemKNN",
    "KLD",
    "LDA",
    "LMWSRItemBased",
    "LMWSRUserBased",
    "LeaveOut",
    "Metric",
    "NNCosNgbrIB",
    "NNCosNgbrUB",
    "OneRelevant",
    "OptimalAntiPrecision",
    "OptimalPrecision",
    "OptimalTrue",
    "PLSA",
    "Percentiles",
    "Plan",
    "Popularity",
    "PositivePopularity",
    "PureSVD",
    "RM1",
    "RM2",
    "RSV",
    "RW",
    "Random",
    "RandomSplit",
    "Ratings",
    "Reg",
    "Relevance",
    "Results",
    "Run",
    "SLIM",
    "SVD",
    "Scores",
    "SettingError",
    "Skew",
    "SmoothedAverage",
    "Split",
    "TargetLists",
    "Targets",
    "TemporalSplit",
    "TestItems",
    "TestTargets",
    "TrainItems",
    "UIRItem",
    "UniformTest",
    "UnknownName",
    "UnskewError",
    "UserFlat",
    "UserKNN",
    "UserSplit",
    "WRMF",
    "Wtd",
    "WtdH",
    "agreement",
    "algorithm",
    "audit_split",
    "compare",
    "correct",
    "discriminative_power",
    "evaluate",
    "expected_precision",
    "fairness",
    "judgment_bins",
    "kendall",
    "load_splits",
    "looks_random",
    "one_relevant_bounds",
    "outline",
    "paired",
    "popularity_cut",
    "popularity_percentiles",
    "power",
    "rank",
    "ranks_of",
    "rbo",
    "read_events",
    "read_plan",
    "read_ratings",
    "read_run",
    "read_targets",
    "robustness",
    "run",
    "sample_size",
    "save_splits",
    "save_targets",
    "score_table",
    "show_versions",
    "sparsity",
    "sparsity_sample",
    "stability",
    "swap_rate",
    "tau_ap",
    "tune",
    "type_one_error",
    "user_robustness",
    "valcarce2018",
    "load_model",
    "save_model",
    "load",
    "read_qrels",
    "Dataset",
    "summary",
    "World",
    "world",
    "fit_popularity_law",
    "ItemCounts",
    "count_items",
    "describe_bias",
    "item_pairs",
    "pairs_of_systems",
    "optimal_rankings",
    "margins",
    "redraw",
    "null_experiment",
    "castells2018_designs",
    "operating_characteristics",
    "truth",
    "sweep",
    "debiased_training",
    "intervention_study",
    "EALS",
    "PZT",
    "PNMF",
    "HPF",
    "GaussianPLSA",
    "LibRecItemKNN",
    "LibRecSLIM",
    "LibRecUserKNN",
    "ListRankMF",
    "GBPR",
    "WBPR",
    "RankSGD",
    "SVDpp",
    "levels",
    "mena2021",
    "castells2018",
    "carraro2020",
    "bellogin2017",
    "propensity",
    "Propensity",
    "bounds",
    "sensitivity",
    "judgments_needed",
    "propensity_strata",
    "stratified_recall",
    "policy_value",
    "read_log",
    "correct_sampled",
    "corrected_values",
    "expected_metrics",
    "sampled_metrics",
    "target_sizes",
    "strata",
    "Clicks",
    "Forced",
    "ab_test",
    "interleave",
    "multileave",
    "reuse_judgments",
    "top_lists",
    "online_tests",
    "Estimate",
    "FileScores",
    "evaluate_files",
    "audit",
    "Audit",
    "save_report",
    "embedded",
    "estimate",
    "StudyResult",
    "study",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'unskew' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
