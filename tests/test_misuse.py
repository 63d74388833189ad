"""Wrong arguments of every public function and class end in an error of ours; results pickle."""

import dataclasses
import html
import inspect
import json
import pickle
import warnings

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.public import public_names
from unskew.checks import as_numbers, checked, described, fits
from unskew.recommend.model import Algorithm
from unskew.report.estimates import Estimates
from unskew.report.notebook_view import CONTAINER
from unskew.report.result import Result


class Odd:
    """Something that nothing takes."""

    def __repr__(self):
        return "<odd>"


NEVER = [Odd(), b"x", 1j, np.array([Odd(), 1], dtype=object), {"a": Odd()}, "a\0b"]
"""What is wrong everywhere but where anything goes."""
WRONG = [
    *NEVER,
    "nonsense",
    "4",
    -1,
    0,
    2.5,
    float("nan"),
    float("inf"),
    10**30,
    True,
    None,
    [],
    {},
    [None],
    (1, 2),
    pl.DataFrame(),
    int,
]
AMOUNTS = {
    "users",
    "items",
    "impressions",
    "repeats",
    "samples",
    "permutations",
    "resamples",
    "threads",
    "draws",
    "m",
    "k",
    "n",
    "sizes",
}
FILES = {"store", "folder", "path", "output", "figures", "data_dir", "workers"}
"""What would write, or start something: types alone are tried."""
NOT_CALLED = {
    "metrics.metric",
    "testing.assert_gate",
    "testing.check_algorithm",
    "testing.check_metric",
    "testing.check_splitter",
    "tracking.log_to_mlflow",
    "tracking.log_to_wandb",
    "report.embedded",
    "evaluation.evaluate_files",
    "auditing.intervention_study",
    "report.save_report",
    "recommend.save_model",
    "splits.save_splits",
    "targets.save_targets",
    "auditing.checklist_of",
    "auditing.methods_of",
    "auditing.save_paper",
}
"""They write files or need long; the first argument alone is tried."""
SLOW = {
    "audit",
    "auditing.null_experiment",
    "online.online_tests",
    "run_plan",
    "unbiased.strata",
    "unbiased.target_sizes",
    "auditing.truth",
    "experiment.timeline",
    "tune",
}
"""Of these only what is wrong everywhere is tried."""


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Return arguments that every public function takes, on small data."""
    world = us.world("shop", users=40, items=30, seed=3)
    ratings = world.ratings
    split = next(iter(us.splits.Random(test=0.3).each(ratings, 1)))
    rule = us.Relevance(liked=4)
    lists = us.targets.AllItems().lists(split, rule, seed=1)
    one = us.targets.OneRelevant(others=5).lists(split, rule, seed=1)
    models = {
        "a": us.recommend.Popularity().fit(split.train, 1),
        "b": us.recommend.Random().fit(split.train, 1),
    }
    runs = {name: us.rank(model, lists, 10) for name, model in models.items()}
    annotation = us.labels.plan_annotation(runs, "P@5", budget=20).save(
        tmp_path_factory.mktemp("annotation") / "plan"
    )
    scores = us.evaluate(split.test, runs, ["P@5", "RR", "anti-P@5"], liked=4)
    disk = tmp_path_factory.mktemp("disk")
    pairs = pl.DataFrame({"user": [1, 2], "item": [1, 2]})
    pairs.with_columns(rating=pl.Series([5, 4])).write_parquet(disk / "test.parquet")
    pairs.with_columns(rank=pl.lit(1)).write_parquet(disk / "a.parquet")
    us.evaluation.evaluate_files(
        disk / "test.parquet", disk / "a.parquet", "P@1", liked=4, output=disk / "out"
    )
    plan = us.Plan(
        us.splits.Random(test=0.3),
        us.targets.AllItems(),
        [us.recommend.Random(), us.recommend.Popularity()],
        rule,
        ["P@5"],
    )
    judged = {"judgments": split.test, "train": split.train, "liked": 4}
    listed = {**judged, "runs": runs}
    shown = {
        "world": world,
        "systems": [us.recommend.Popularity(), us.recommend.Random()],
        "impressions": 20,
    }
    two = {"x": scores, "y": scores}
    two_lists = {"lists_a": runs["a"], "lists_b": runs["b"], "difference": 0.1}
    of = {"ratings": ratings, "liked": 4}
    orders = {"a": [1, 2, 3], "b": [1, 3, 2]}
    table = {
        "system": ["a", "b", "a", "b"],
        "score": [1.0, 2.0, 3.0, 1.0],
        "design": ["x", "x", "y", "y"],
    }
    rows = {"user": [1, 2], "item": [1, 2], "rating": [3, 4], "time": [5, 6]}
    past = {"user": [1, 2, 2], "item": [7, 8, 9], "time": [1, 2, 3]}
    future = {"user": [1, 1, 2], "item": [8, 9, 7], "time": [5, 6, 7]}
    steps = us.targets.next_items(past, future)
    following = us.recommend.MarkovChain().fit(steps.train)
    step_scores = us.evaluation.evaluate_steps(steps, {"a": following}, "RR")
    return {
        "targets.AllItems": {},
        "targets.OneRelevant": {},
        "targets.Percentiles": {},
        "targets.TestItems": {},
        "targets.TestTargets": {},
        "targets.TrainItems": {},
        "targets.UserFlat": {"others": 5},
        "online.ab_test": shown,
        "labels.plan_annotation": {"runs": runs, "metric": "P@5", "budget": 20},
        "labels.read_annotation": {"folder": annotation},
        "stats.agreement": {"scores": two, "resamples": 5, "permutations": 5},
        "recommend.algorithm": {"name": "popularity"},
        "audit": {
            **listed,
            "plan": "quick",
            "repeats": 1,
            "permutations": 10,
            "designs": ["as-given"],
        },
        "splits.diagnose": {"split": split},
        "splits.duplicate_users": {"ratings": copied_ratings()},
        "splits.user_groups": {"ratings": ratings},
        "unbiased.bounds": {**listed, "metrics": ["P@5"]},
        "unbiased.clipping_curve": {**listed, "metrics": ["P@5"]},
        "auditing.published_designs": {},
        "stats.contrasts": {"scores": {"d": [scores]}, "metric": "P@5"},
        "conventions.library": {"name": "trec_eval"},
        "explain": {
            "judgments": split.test,
            "runs": {"a": runs["a"]},
            "values": {"P@5": "0.2"},
            "liked": 4,
        },
        "gate": {
            **listed,
            "candidate": "a",
            "production": "b",
            "metric": "P@5",
            "references": False,
        },
        "stats.correct": {"p": [0.1, 0.2]},
        "compare": {"scores": scores, "permutations": 10, "resamples": 5},
        "stats.compare_data_sets": {
            "scores": {"x": scores, "y": scores},
            "metric": "P@5",
            "resamples": 5,
        },
        "unbiased.correct_sampled": {"lists": one, "models": models, "resamples": 3},
        "unbiased.corrected_values": {"metrics": ["P@5"], "items": 20, "n": 5},
        "bias.count_items": of,
        "bias.list_popularity": {**listed, "train": split.train, "k": 3, "by": None},
        "bias.describe_bias": of,
        "stats.discriminative_power": {"pvalues": us.compare(scores, permutations=10)},
        "estimate": {**listed, "metrics": ["P@5"], "resamples": 3},
        "evaluate": {**listed, "metrics": ["P@5"]},
        "unbiased.expected_metrics": {"true_ranks": [1, 2, 3], "items": 20, "sizes": [5]},
        "evaluation.expected_precision": of,
        "evaluation.fairness": {"split": split},
        "worlds.event_log": {"users": 20, "items": 20, "events": 100},
        "worlds.fit_popularity_law": {"ratings": ratings},
        "online.interleave": shown,
        "bias.item_pairs": of,
        "bias.ladder": {"data": split, "runs": runs, "k": 5, "liked": 4},
        "bias.ladder_part": {
            "train": split.train,
            "test": split.test,
            "runs": runs,
            "relevance": rule,
            "k": 5,
        },
        "splits.judgment_bins": {"train": ratings, "relevance": rule},
        "labels.assisted": {
            "labels": split.test,
            "runs": runs,
            "metrics": "P@5",
            "liked": 4,
            "human": split.test,
            "unlabelled": "mean",
        },
        "unbiased.judgments_for": {**two_lists, "k": 5},
        "unbiased.judgments_needed": listed,
        "stats.group_gaps": {"scores": scores, "by": "activity"},
        "stats.lexirecall": {"judged": us.judge(split.test, runs, liked=4)},
        "stats.user_distribution": {"scores": scores},
        "stats.item_group_gaps": {
            "judged": us.judge(split.test, runs, liked=4),
            "by": "popularity",
        },
        "stats.kendall": orders,
        "data.as_kind_of": {"frame": ratings.to_polars(), "result": ratings},
        "data.levels": of,
        "load": {"source": ratings},
        "recommend.load_model": {"path": "none"},
        "splits.load_splits": {"folder": "none"},
        "splits.looks_random": {"ratings": ratings},
        "bias.margins": {"scores": scores, "k": 5},
        "bias.liked_by_popularity": {
            "ratings": us.world("shop", users=60, items=40, seed=1).ratings,
            "relevance": us.Relevance(liked=4),
        },
        "unbiased.liked_shares": {**listed, "k": 5},
        "online.multileave": shown,
        "auditing.null_experiment": {"ratings": ratings, "plan": plan, "repeats": 1},
        "evaluation.one_relevant_bounds": {
            "lists": lists,
            "ranks": us.judging.ranks_of(models["a"], lists),
        },
        "online.impressions_needed": {
            "tests": us.online.online_tests(
                world, [us.recommend.Popularity(), us.recommend.Random()], 5, repeats=1, k=5
            ),
        },
        "online.online_tests": {
            "worlds": world,
            "systems": shown["systems"],
            "impressions": 20,
            "repeats": 1,
        },
        "bias.optimal_rankings": of,
        "experiment.tune_systems": {
            "systems": {"svd": us.recommend.PureSVD(factors=2)},
            "train": split.train,
            "relevance": us.Relevance(liked=4),
            "metric": "P@5",
            "budget": 2,
        },
        "auditing.outline_audit": {"data": ratings, "level": "quick", "liked": 4},
        "experiment.outline": {"plan": plan, "ratings": ratings, "estimate": False},
        "experiment.timeline": {
            "data": {"user": [1, 1, 2, 2] * 5, "item": list(range(20)), "time": list(range(20))},
            "algorithms": [us.recommend.Popularity(), us.recommend.Random()],
            "permutations": 99,
            "resamples": 5,
        },
        "stats.model_decay": {"scores": two},
        "stats.order_changes": {"scores": two, "resamples": 5, "permutations": 99},
        "targets.next_items": {"train": past, "test": future},
        "judging.hygiene": listed,
        "judging.rank_steps": {"model": following, "steps": steps},
        "evaluation.evaluate_steps": {"steps": steps, "systems": {"a": following}},
        "evaluation.load_means": {"folder": disk / "out"},
        "evaluation.scan_values": {"folder": disk / "out"},
        "stats.step_curves": {"scores": step_scores},
        "stats.steps_by_window": {"scores": step_scores},
        "stats.paired": {"scores": scores},
        "stats.paper_table": {"scores": scores, "permutations": 10},
        "bias.pairs_of_systems": {**of, "a": runs["a"], "b": runs["b"]},
        "splits.popularity_cut": {"train": split.train, "test": split.test},
        "splits.popularity_percentiles": {"ratings": ratings},
        "stats.power": {"scores": scores, "permutations": 10},
        "unbiased.propensity": {"train": split.train, "test": split.test},
        "judge": listed,
        "rank": {"model": models["a"], "lists": lists, "depth": 5},
        "unbiased.random_pairs_for": {**two_lists, "k": 5, "train": split.train},
        "judging.ranks_of": {"model": models["a"], "lists": lists},
        "metrics.parse": {"text": "P@5"},
        "stats.rbo": orders,
        "read_events": {"source": rows},
        "read_plan": {"source": "none.toml"},
        "data.apply_filters": {"data": ratings, "filters": us.data.KCore(1, 1)},
        "auditing.filter_effect": {
            "data": ratings,
            "plan": plan,
            "filters": us.data.KCore(1, 1),
            "resamples": 3,
        },
        "data.read_qrels": {"files": "none"},
        "read_ratings": {"source": rows},
        "read_run": {"source": {1: [1, 2]}},
        "targets.read_targets": {"source": {"user": [0], "item": [1]}, "split": split, "liked": 4},
        "worlds.redraw": {"ratings": ratings},
        "online.reuse_judgments": {
            "world": world,
            "took_part": ["popularity", "random"],
            "systems": [
                us.recommend.Popularity(),
                us.recommend.Random(),
                us.recommend.AverageRating(),
            ],
        },
        "stats.robustness": {**listed, "metrics": ["P@5"], "samples": 2, "shares": [0.5]},
        "run_plan": {"data": ratings, "plan": plan},
        "stats.sample_size": {"scores": scores},
        "unbiased.sampled_metrics": {"ranks": [1, 2, 3], "items": 20, "n": 5, "resamples": 3},
        "stats.score_table": {"scores": two},
        "unbiased.sensitivity": {**listed, "resamples": 3},
        "unbiased.shown_at_random": {**listed, "k": 5, "random": split.test},
        "evaluation.sparsity": {"lists": lists},
        "splits.sparsity_sample": {"test": split.test, "share": 0.5},
        "stats.stability": {"table": table},
        "unbiased.strata": {**listed, "metrics": ["P@5"], "resamples": 3, "m": 2},
        "unbiased.stratified_recall": listed,
        "study": {"name": "nonsense"},
        "data.summary": {"data": ratings},
        "unbiased.target_sizes": {
            "split": split,
            "models": models,
            "sizes": [5],
            "liked": 4,
            "permutations": 10,
            "resamples": 3,
        },
        "stats.tau_ap": orders,
        "online.top_lists": {"world": world, "systems": [us.recommend.Popularity()]},
        "auditing.truth": {"data": world, "plan": plan, "resamples": 3},
        "tune": {
            "algorithm": us.recommend.PureSVD(2),
            "grid": {"factors": [1]},
            "train": ratings,
            "metric": "P@5",
            "relevance": rule,
        },
        "stats.user_robustness": {"scores": scores, "samples": 2, "shares": [0.5]},
        "world": {"what": "shop", "users": 20, "items": 10},
    }


def functions():
    return {
        name: one
        for name, one in public_names().items()
        if inspect.isfunction(one) and inspect.signature(one).parameters
    }


def misused(function, settings, values, label):
    """Return how a call failed that did not end well, nor in an error of ours."""
    raw = []
    for value in values:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(**{**settings, label: value})
        except us.UnskewError:
            pass
        except Exception as problem:
            raw.append(f"{function.__name__}({label}={value!r}): {problem!r}")
    return raw


def may_call(parameter):
    """Tell whether it takes functions: what these raise is theirs."""
    text = str(parameter.annotation)
    called = ("model", "propensity", "gain", "loss", "method", "a", "b", "runs", "systems")
    return "Callable" in text or "Progress" in text or parameter.name in called


def test_every_public_function_is_walked(calls):
    assert set(functions()) == set(calls) | NOT_CALLED


def test_wrong_arguments_are_errors_of_ours(calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw, tried = [], 0
    for name, settings in calls.items():
        function = public_names()[name]
        for label, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD or label == "cluster":
                continue  # a cluster would load Dask
            values = NEVER if name in SLOW or label in FILES else WRONG
            if label in AMOUNTS:
                values = [value for value in values if not isinstance(value, int) or value < 100]
            if may_call(parameter):
                values = [value for value in values if not callable(value)]
            raw += misused(function, settings, values, label)
            tried += len(values)
    assert not raw, "\n".join(raw)
    assert tried > 7000


def test_wrong_settings_are_errors_of_ours(calls):
    split = calls["splits.diagnose"]["split"]
    needed = {
        "experiment.Custom": {"label": "x", "function": len},
        "splits.Forced": {"random": split.test},
        "Metric": {"name": "P"},
        "Dataset": {"name": "x", "ratings": split.test},
        "Split": {"train": split.train, "test": split.test},
        "Relevance": {"liked": 4},
    }
    raw, tried = [], 0
    for name, kind in public_names().items():
        if not inspect.isclass(kind) or not dataclasses.is_dataclass(kind):
            continue
        parameters = inspect.signature(kind).parameters
        if name not in needed and any(one.default is one.empty for one in parameters.values()):
            continue  # a result, or data: made by functions

        def shown(kind=kind, **settings):
            return str(kind(**settings)) + repr(kind(**settings))

        shown.__name__ = name
        for label in parameters:
            values = [one for one in WRONG if name != "experiment.Custom" or not callable(one)]
            raw += misused(shown, needed.get(name, {}), values, label)
            tried += len(values)
    assert not raw, "\n".join(raw)
    assert tried > 5000
    assert any(
        issubclass(public_names()[name], Algorithm) for name in ("recommend.WRMF", "recommend.EASE")
    )


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"liked": "4"}, "liked must be a number or None, got '4'"),
        ({"metrics": None}, "metrics must be text or Metric or a list of text or Metric, got None"),
        ({"metrics": [None]}, "metrics must be text or Metric or a list of text or Metric"),
        ({"targets": 5}, "targets must be text or Targets or None, got 5"),
        (
            {"relevance": "mena2012", "liked": None},
            "unknown paper 'mena2012'. Did you mean 'mena",
        ),
        ({"relevance": 4, "liked": None}, "relevance must be Relevance or text or None, got 4"),
        ({"depth": 10**30}, "depth must be a whole number or None, up to 9223372036854775807"),
        ({"gain": {5: "much"}}, "gain must be text or a mapping to a number or a function, got {5"),
        ({"users": np.array(["a", "b"])}, "users must be text or None, got array"),
        ({"progress": 3}, "progress must be a function or None, got 3"),
    ],
)
def test_errors_name_the_argument_and_what_is_allowed(calls, settings, says):
    with pytest.raises(us.SettingError) as caught:
        us.evaluate(**{**calls["evaluate"], **settings})
    assert says in str(caught.value)


def test_papers_can_be_named(calls):
    settings = {**calls["evaluate"], "liked": None, "metrics": "nDCG@5"}
    settings |= {"relevance": "mena2021", "train": None}
    rule = us.Relevance.paper("mena2021")
    assert us.evaluate(**settings).means() == us.evaluate(**settings | {"relevance": rule}).means()
    with pytest.raises(us.SettingError, match="not both"):
        us.evaluate(**settings | {"liked": 4})


def test_names_that_do_not_exist_are_errors_of_python(calls):
    with pytest.raises(TypeError, match="likd"):
        us.evaluate(**calls["evaluate"], likd=4)
    with pytest.raises(TypeError, match="likd"):
        us.stats.robustness(**calls["evaluate"], likd=4)
    with pytest.raises(us.SettingError, match="runs are missing"):
        us.evaluate(calls["evaluate"]["judgments"])


def test_what_is_declared_is_what_fits():
    yes = [
        (3, float),
        (np.float32(3), float),
        (np.int8(3), int),
        (None, int | None),
        (np.bool_(True), bool),
        (["P"], us.Metric | list[str]),
        (np.arange(3), list[int]),
        (len, type(None) | type(len)),
        ({"a": 1.0}, dict[str, float]),
        (Odd(), object),
    ]
    no = [
        ("3", float),
        (True, int),
        (True, float),
        (3.0, int),
        (2**63, int),
        (1, bool),
        ("P", list[str]),
        ([1], list[str]),
        ({"a": "b"}, dict[str, float]),
        (3, us.Metric),
        ([1.0], tuple[float, float]),
        (pl.DataFrame({"a": [1]}), list[str]),
    ]
    for value, hint in yes:
        assert fits(value, hint), (value, hint)
    for value, hint in no:
        assert not fits(value, hint), (value, hint)
        assert described(hint)

    @checked
    def later(x: "int", y: "Unknown | None" = None) -> "int":  # noqa: F821
        return x

    assert later(3, y=Odd()) == 3  # what only type checkers know is let through
    with pytest.raises(us.SettingError, match="values must be numbers, got"):
        as_numbers("values", "12")


# Results


SHOWN = (
    us.Dataset,
    us.Metric,
    us.Plan,
    us.Ratings,
    us.Relevance,
    us.Run,
    us.Split,
    us.World,
    us.recommend.Algorithm,
    us.splits.Splitter,
    us.targets.TargetLists,
    us.targets.Targets,
)
"""What shows itself as a card in a notebook, beside results."""


def copied_ratings():
    """Return ratings of forty users, the first of whom has two accounts."""
    rng = np.random.default_rng(1)
    items = [rng.choice(300, 20, replace=False) for _ in range(40)]
    return {"user": np.repeat(np.arange(41), 20), "item": np.concatenate([*items, items[0]])}


def assert_shows_itself(result, name):
    """Check what every result inherits."""
    assert str(result), name
    if isinstance(result, Estimates):  # prints as its table
        assert repr(result).splitlines()[0] == str(result).splitlines()[0], name
    else:
        assert repr(result).startswith(f"{type(result).__name__}("), name
        assert len(repr(result)) < 300, name
    assert_is_a_view(result._repr_html_(), result, name)
    assert "<table>" in result._repr_html_(), name
    assert json.dumps(result.to_dict(), allow_nan=False, default=str), name
    assert isinstance(result.to_polars(), pl.DataFrame), name
    assert "\\begin{tabular}" in result.to_latex(), name
    assert "|---" in result.to_markdown(), name


def assert_is_a_view(text, result, name):
    """Check what a notebook shows of anything of ours."""
    assert text.startswith(CONTAINER), name
    assert text.count("<div") == text.count("</div>"), name
    assert len(text) < 300_000, name
    assert "shape:" not in text, name  # the mark of a frame that shows itself
    assert "<script" not in text, name
    for note in getattr(result, "notes", ()):
        assert html.escape(note) in text, (name, note)


def test_results_pickle_and_show_their_notes(calls, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    missing = {
        "recommend.load_model",
        "splits.load_splits",
        "read_plan",
        "data.read_qrels",
        "targets.read_targets",
        "study",
    }
    noted = 0
    for name in sorted(set(calls) - missing):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = public_names()[name](**calls[name])
        assert isinstance(result, Result) or not hasattr(result, "table"), name
        if isinstance(result, Result):
            assert_shows_itself(result, name)
        again = pickle.loads(pickle.dumps(result))
        assert type(again) is type(result)
        assert str(again) == str(result) or " at 0x" in str(result), name
        if not hasattr(result, "_repr_html_") or isinstance(result, pl.DataFrame | pl.LazyFrame):
            assert not isinstance(result, SHOWN), name
            continue
        assert_is_a_view(result._repr_html_(), result, name)
        assert again._repr_html_() == result._repr_html_(), name
        kept = {one.name for one in dataclasses.fields(result)} if name != "run" else set()
        if "notes" in kept:
            noted += 1
            result = dataclasses.replace(result, notes=(*result.notes, "a <b>note</b>"))
            if isinstance(result, Result):  # data print as one line
                assert "a <b>note</b>" in str(result), name
            assert html.escape("a <b>note</b>") in result._repr_html_(), name
            assert "<b>note" not in result._repr_html_(), name
    assert noted > 12


def test_audits_of_ratings_pickle(calls):
    world = calls["online.ab_test"]["world"]
    found = us.audit(
        world,
        "quick",
        algorithms=["random", "popularity"],
        designs=["all-items"],
        repeats=1,
        permutations=10,
    )
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == str(found)
    assert again.document().to_json() == found.document().to_json()


def test_results_of_plans_show_the_notes_of_their_scores(calls):
    plan = dataclasses.replace(calls["run_plan"]["plan"], metrics=["P@50"])
    results = us.run_plan(calls["run_plan"]["data"], plan)
    assert "fewer than the cutoff of P@50" in results.notes[0]
    for note in results.notes:
        assert note in str(results)
        assert html.escape(note) in results._repr_html_()
