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
    from unskew.auditing.designs import castells2018_designs
    from unskew.auditing.interventions import intervention_study
    from unskew.auditing.main_job import Audit, audit
    from unskew.auditing.null import null_experiment
    from unskew.auditing.operating import operating_characteristics
    from unskew.auditing.truth import debiased_training, sweep, truth
    from unskew.bias.describe import describe_bias
    from unskew.bias.margins import margins
    from unskew.bias.optimal import optimal_rankings
    from unskew.bias.pairs import item_pairs, pairs_of_systems
    from unskew.bias.popularity import ItemCounts, count_items
    from unskew.comparing.agreement import agreement
    from unskew.comparing.comparison import Comparison
    from unskew.comparing.corrections import correct
    from unskew.comparing.correlation import kendall, rbo, tau_ap
    from unskew.comparing.paired import paired
    from unskew.comparing.power import (
        discriminative_power,
        power,
        sample_size,
        swap_rate,
        type_one_error,
    )
    from unskew.comparing.robustness import robustness, user_robustness
    from unskew.comparing.significance import compare
    from unskew.comparing.stability import score_table, stability
    from unskew.data.catalog import load
    from unskew.data.collection import read_qrels
    from unskew.data.dataset import Dataset
    from unskew.data.nulls import redraw
    from unskew.data.observation import fit_popularity_law
    from unskew.data.ratings import Ids, Ratings
    from unskew.data.readers import read_ratings
    from unskew.data.relevance import Relevance, levels
    from unskew.data.summary import summary
    from unskew.data.worlds import World, world
    from unskew.errors import DataError, DataWarning, SettingError, UnknownName, UnskewError
    from unskew.estimating.bandit import policy_value, read_log
    from unskew.estimating.bounds import bounds, judgments_needed, sensitivity
    from unskew.estimating.ips import estimate
    from unskew.estimating.online import (
        Clicks,
        Forced,
        ab_test,
        interleave,
        multileave,
        reuse_judgments,
        top_lists,
    )
    from unskew.estimating.online_tests import online_tests
    from unskew.estimating.propensity import Propensity, propensity
    from unskew.estimating.sampled import (
        correct_sampled,
        corrected_values,
        expected_metrics,
        sampled_metrics,
    )
    from unskew.estimating.simpson import propensity_strata, stratified_recall
    from unskew.estimating.sizes import target_sizes
    from unskew.estimating.strata import strata
    from unskew.evaluation import evaluate
    from unskew.expect import expected_precision, fairness, one_relevant_bounds, sparsity
    from unskew.experiment.big import Estimate, FileScores, evaluate_files
    from unskew.experiment.outline import outline
    from unskew.experiment.plan import Custom, Plan, read_plan
    from unskew.experiment.results import Results, run
    from unskew.experiment.tune import tune
    from unskew.metrics.names import Metric
    from unskew.protocol.audit import audit_split
    from unskew.protocol.chance import RandomSplit
    from unskew.protocol.events import EventSplit, read_events
    from unskew.protocol.familiar import FamiliarTraining
    from unskew.protocol.given import ForcedTest, Given
    from unskew.protocol.intervene import Full, Reg, Skew, Wtd, WtdH
    from unskew.protocol.popularity import FlatTest, HeadRemoved, UniformTest
    from unskew.protocol.randomness import looks_random
    from unskew.protocol.saved import load_splits, save_splits
    from unskew.protocol.saved_targets import read_targets, save_targets
    from unskew.protocol.split import Split
    from unskew.protocol.strata import judgment_bins, popularity_percentiles
    from unskew.protocol.subsample import popularity_cut, sparsity_sample
    from unskew.protocol.targets import (
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
    from unskew.protocol.temporal import TemporalSplit
    from unskew.protocol.users import LeaveOut, UserSplit
    from unskew.ranking import rank, ranks_of
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
    from unskew.reporting.write import embedded, report
    from unskew.runs import Run, read_run
    from unskew.scores import Scores
    from unskew.studies.study import StudyResult, study
    from unskew.versions import show_versions

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
    "Scores": "unskew.scores",
    "evaluate": "unskew.evaluation",
    "expected_precision": "unskew.expect",
    "fairness": "unskew.expect",
    "one_relevant_bounds": "unskew.expect",
    "sparsity": "unskew.expect",
    "Split": "unskew.protocol.split",
    "RandomSplit": "unskew.protocol.chance",
    "UserSplit": "unskew.protocol.users",
    "LeaveOut": "unskew.protocol.users",
    "TemporalSplit": "unskew.protocol.temporal",
    "EventSplit": "unskew.protocol.events",
    "read_events": "unskew.protocol.events",
    "UniformTest": "unskew.protocol.popularity",
    "FlatTest": "unskew.protocol.popularity",
    "HeadRemoved": "unskew.protocol.popularity",
    "Given": "unskew.protocol.given",
    "ForcedTest": "unskew.protocol.given",
    "FamiliarTraining": "unskew.protocol.familiar",
    "sparsity_sample": "unskew.protocol.subsample",
    "popularity_cut": "unskew.protocol.subsample",
    "popularity_percentiles": "unskew.protocol.strata",
    "judgment_bins": "unskew.protocol.strata",
    "AllItems": "unskew.protocol.targets",
    "OneRelevant": "unskew.protocol.targets",
    "Percentiles": "unskew.protocol.targets",
    "TargetLists": "unskew.protocol.targets",
    "Targets": "unskew.protocol.targets",
    "TestItems": "unskew.protocol.targets",
    "TestTargets": "unskew.protocol.targets",
    "TrainItems": "unskew.protocol.targets",
    "UserFlat": "unskew.protocol.targets",
    "read_targets": "unskew.protocol.saved_targets",
    "save_targets": "unskew.protocol.saved_targets",
    "rank": "unskew.ranking",
    "ranks_of": "unskew.ranking",
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
    "Full": "unskew.protocol.intervene",
    "Reg": "unskew.protocol.intervene",
    "Skew": "unskew.protocol.intervene",
    "Wtd": "unskew.protocol.intervene",
    "WtdH": "unskew.protocol.intervene",
    "looks_random": "unskew.protocol.randomness",
    "save_splits": "unskew.protocol.saved",
    "load_splits": "unskew.protocol.saved",
    "audit_split": "unskew.protocol.audit",
    "Custom": "unskew.experiment.plan",
    "Plan": "unskew.experiment.plan",
    "read_plan": "unskew.experiment.plan",
    "Results": "unskew.experiment.results",
    "run": "unskew.experiment.results",
    "outline": "unskew.experiment.outline",
    "tune": "unskew.experiment.tune",
    "compare": "unskew.comparing.significance",
    "paired": "unskew.comparing.paired",
    "Comparison": "unskew.comparing.comparison",
    "correct": "unskew.comparing.corrections",
    "agreement": "unskew.comparing.agreement",
    "score_table": "unskew.comparing.stability",
    "stability": "unskew.comparing.stability",
    "robustness": "unskew.comparing.robustness",
    "user_robustness": "unskew.comparing.robustness",
    "discriminative_power": "unskew.comparing.power",
    "power": "unskew.comparing.power",
    "sample_size": "unskew.comparing.power",
    "swap_rate": "unskew.comparing.power",
    "type_one_error": "unskew.comparing.power",
    "kendall": "unskew.comparing.correlation",
    "rbo": "unskew.comparing.correlation",
    "tau_ap": "unskew.comparing.correlation",
    "show_versions": "unskew.versions",
    "UnskewError": "unskew.errors",
    "DataError": "unskew.errors",
    "SettingError": "unskew.errors",
    "UnknownName": "unskew.errors",
    "DataWarning": "unskew.errors",
    "load": "unskew.data.catalog",
    "read_qrels": "unskew.data.collection",
    "Dataset": "unskew.data.dataset",
    "summary": "unskew.data.summary",
    "World": "unskew.data.worlds",
    "world": "unskew.data.worlds",
    "fit_popularity_law": "unskew.data.observation",
    "ItemCounts": "unskew.bias.popularity",
    "count_items": "unskew.bias.popularity",
    "describe_bias": "unskew.bias.describe",
    "item_pairs": "unskew.bias.pairs",
    "pairs_of_systems": "unskew.bias.pairs",
    "optimal_rankings": "unskew.bias.optimal",
    "margins": "unskew.bias.margins",
    "redraw": "unskew.data.nulls",
    "null_experiment": "unskew.auditing.null",
    "castells2018_designs": "unskew.auditing.designs",
    "operating_characteristics": "unskew.auditing.operating",
    "truth": "unskew.auditing.truth",
    "sweep": "unskew.auditing.truth",
    "debiased_training": "unskew.auditing.truth",
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
    "propensity": "unskew.estimating.propensity",
    "Propensity": "unskew.estimating.propensity",
    "bounds": "unskew.estimating.bounds",
    "sensitivity": "unskew.estimating.bounds",
    "judgments_needed": "unskew.estimating.bounds",
    "propensity_strata": "unskew.estimating.simpson",
    "stratified_recall": "unskew.estimating.simpson",
    "policy_value": "unskew.estimating.bandit",
    "read_log": "unskew.estimating.bandit",
    "correct_sampled": "unskew.estimating.sampled",
    "corrected_values": "unskew.estimating.sampled",
    "expected_metrics": "unskew.estimating.sampled",
    "sampled_metrics": "unskew.estimating.sampled",
    "target_sizes": "unskew.estimating.sizes",
    "strata": "unskew.estimating.strata",
    "Clicks": "unskew.estimating.online",
    "Forced": "unskew.estimating.online",
    "ab_test": "unskew.estimating.online",
    "interleave": "unskew.estimating.online",
    "multileave": "unskew.estimating.online",
    "reuse_judgments": "unskew.estimating.online",
    "top_lists": "unskew.estimating.online",
    "online_tests": "unskew.estimating.online_tests",
    "Estimate": "unskew.experiment.big",
    "FileScores": "unskew.experiment.big",
    "evaluate_files": "unskew.experiment.big",
    "audit": "unskew.auditing.main_job",
    "Audit": "unskew.auditing.main_job",
    "report": "unskew.reporting.write",
    "StudyResult": "unskew.studies.study",
    "study": "unskew.studies.study",
    "embedded": "unskew.reporting.write",
    "estimate": "unskew.estimating.ips",
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
    "report",
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
