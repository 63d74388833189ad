"""One piece per function: each gives results by name, which save.py writes with all bits."""

from functools import cache
from operator import attrgetter

import numpy as np
import polars as pl

import unskew as us

LIKED = 4.0
METRICS = ("P@5", "nDCG@10", "anti-P@5")
PUBLIC = {
    "group_gaps": "stats.group_gaps",
    "item_group_gaps": "stats.item_group_gaps",
    "compare_data_sets": "stats.compare_data_sets",
    "contrasts": "stats.contrasts",
    "equivalent": "stats.compare.contrasts.equivalent",
    "users_for": "stats.compare.contrasts.users_for",
    "winner": "stats.compare.contrasts.winner",
    "order_changes": "stats.order_changes",
    "model_decay": "stats.model_decay",
    "step_curves": "stats.step_curves",
    "steps_by_window": "stats.steps_by_window",
    "user_distribution": "stats.user_distribution",
    "lexirecall": "stats.lexirecall",
    "paper_table": "stats.paper_table",
    "liked_shares": "unbiased.liked_shares",
    "shown_at_random": "unbiased.shown_at_random",
    "assisted": "labels.assisted",
    "plan_annotation": "labels.plan_annotation",
    "ladder": "bias.ladder",
    "list_popularity": "bias.list_popularity",
    "filter_effect": "auditing.filter_effect",
    "timeline": "experiment.timeline",
    "hygiene": "judging.hygiene",
    "explain": "explain",
    "gate": "gate",
    # What the calls need
    "Plan": "Plan",
    "Relevance": "Relevance",
    "evaluate": "evaluate",
    "evaluate_steps": "evaluation.evaluate_steps",
    "judge": "judge",
    "read_run": "read_run",
    "next_items": "targets.next_items",
    "AllItems": "targets.AllItems",
    "TestItems": "targets.TestItems",
    "KCore": "data.KCore",
    "RandomSplit": "splits.Random",
    "TemporalSplit": "splits.Temporal",
    "TemporalEvents": "splits.TemporalEvents",
    "Windows": "splits.Windows",
    "ModelAges": "splits.ModelAges",
    "AverageRating": "recommend.AverageRating",
    "ItemKNN": "recommend.ItemKNN",
    "Popularity": "recommend.Popularity",
    "Random": "recommend.Random",
    "WRMF": "recommend.WRMF",
}
"""Where each public name is found: the one place to change when a function moves."""


class Names:
    """The public names, looked up when used: one that is missing fails its own piece only."""

    def __getattr__(self, name):
        return attrgetter(PUBLIC[name])(us)


public = Names()


# What several pieces share


def runs_of(data):
    return {name: public.read_run(frame) for name, frame in data.runs.items()}


def judged_of(data):
    return public.judge(data.test, runs_of(data), train=data.train, liked=LIKED)


def scores_of(data, test=None, runs=None, metrics=METRICS):
    test = data.test if test is None else test
    return public.evaluate(test, runs or runs_of(data), metrics, train=data.train, liked=LIKED)


def systems():
    return {
        "Random": public.Random(),
        "Popularity": public.Popularity(),
        "AverageRating": public.AverageRating(),
        "WRMF": public.WRMF(factors=4, iterations=3),
    }


def trained_scores(split, design, metrics=METRICS):
    models = {name: algorithm.fit(split.train, 0) for name, algorithm in systems().items()}
    return public.evaluate(design.lists(split, liked=LIKED), models, metrics)


def user_groups(data):
    """Return a table that divides users into three groups of twenty."""
    users = sorted(set(data.frame["user"]))
    names = [("north", "south", "west")[number % 3] for number in range(len(users))]
    return pl.DataFrame({"user": users, "region": names})


def item_groups(data):
    items = sorted(set(data.frame["item"]))
    names = [("film", "series", "short")[number % 3] for number in range(len(items))]
    return pl.DataFrame({"item": items, "kind": names})


@cache
def annotator_labels(data):
    """Return labels of an annotator for all pairs of the first ten places, and of people."""
    top = pl.concat(frame.filter(pl.col("rank") <= 10) for frame in data.runs.values())
    pairs = top.select("user", "item").unique().sort("user", "item")
    rng = np.random.default_rng(91)
    people = rng.random(pairs.height) < 0.4
    agrees = rng.random(pairs.height) < 0.8
    model = pairs.with_columns(rating=pl.Series(np.where(agrees, people, ~people).astype(float)))
    return model, pairs.with_columns(rating=pl.Series(people.astype(float)))


def people_sample(data, number=250):
    _model, people = annotator_labels(data)
    rows = np.random.default_rng(92).choice(people.height, number, replace=False)
    return people[np.sort(rows)]


def small_plan():
    return public.Plan(
        algorithms=systems(),
        relevance=public.Relevance(liked=LIKED),
        metrics=("P@5", "nDCG@10"),
        split=public.RandomSplit(test=0.2),
        seed=3,
    )


# Groups of users and items


def group_gaps(data):
    scores, regions = scores_of(data), user_groups(data)
    return {
        "regions": public.group_gaps(scores, regions, seed=5),
        "regions, pairs": public.group_gaps(scores, regions, "P@5", against="pairs", seed=5),
        "regions, best": public.group_gaps(
            scores, regions, "nDCG@10", against="best", correction="bh", epsilon=0.3
        ),
        "north": public.group_gaps(scores, regions, "P@5", against="north", level=0.9),
        "activity": public.group_gaps(judged_of(data), "activity", groups=2),
        "folds": public.group_gaps([scores, scores_of(data, data.random)], regions, "P@5"),
    }


def item_group_gaps(data):
    judged = judged_of(data)
    return {
        "popularity": public.item_group_gaps(judged, "popularity", 10),
        "popularity, 2 groups": public.item_group_gaps(
            judged, "popularity", 5, groups=2, correction="bonferroni", level=0.9
        ),
        "kinds": public.item_group_gaps(judged, item_groups(data), 10),
    }


def user_distribution(data):
    scores = scores_of(data)
    return {
        "all": public.user_distribution(scores),
        "reference": public.user_distribution(scores, "nDCG@10", against="c", level=0.9),
        "judged": public.user_distribution(judged_of(data)),
    }


def lexirecall(data):
    judged = judged_of(data)
    return {
        "all": public.lexirecall(judged),
        "reference": public.lexirecall(judged, against="c", level=0.9, correction="bh"),
    }


# Data sets, designs, windows, ages, steps


def compare_data_sets(data):
    users = sorted(set(data.test_frame["user"]))
    parts = {
        f"set {number}": scores_of(
            data, data.test_frame.filter(pl.col("user").is_in(users[number::6]))
        )
        for number in range(6)
    }
    few = {"resamples": 100, "permutations": 500, "seed": 4}
    ways = {
        "wilcoxon": {},
        "sign": {"test": "sign"},
        "t": {"test": "t", "rope": 0.02, "level": 0.9},
        "nemenyi": {"test": "nemenyi"},
        "reference": {"against": "c"},
    }
    results = {
        name: public.compare_data_sets(parts, "nDCG@10", **way, **few) for name, way in ways.items()
    }
    first = {name: parts[name] for name in ("set 0", "set 1", "set 2")}
    return results | {"three sets": public.compare_data_sets(first, "P@5", **few)}


def contrasts(data):
    splits = [public.RandomSplit(test=0.2).split(data.ratings, seed)[0] for seed in range(3)]
    scores = {
        "all-items": [trained_scores(split, public.AllItems()) for split in splits],
        "test-items": [trained_scores(split, public.TestItems()) for split in splits],
    }
    retrained = public.contrasts(scores, "P@5", resamples=2000, seed=6)
    lists = public.contrasts(scores, "nDCG@10", target="lists", resamples=2000, level=0.9)
    few = public.contrasts(scores, "P@5", systems=["WRMF", "Popularity"], resamples=2000)
    pair = ("WRMF", "Random")
    means = retrained.parts["means"]
    return {
        "retrained": retrained,
        "lists": lists,
        "two systems": few,
        "answers": {
            "winner": {design: public.winner(retrained, design) for design in scores},
            "leader": {design: means.where(design=design).best.keys["system"] for design in scores},
            "identical": retrained.card["identical"],
            "equivalent": public.equivalent(retrained, *pair, margin=0.5),
            "interval": [
                public.contrasts(scores, "P@5", level=0.8, resamples=2000, seed=6).pair(
                    *pair, design="all-items"
                )
            ],
            "users for": public.users_for(retrained, *pair, 0.05),
        },
    }


def order_over_time(data):
    moments = data.test_frame["time"].quantile(1 / 3), data.test_frame["time"].quantile(2 / 3)
    late = pl.col("time") >= moments[1]
    early = pl.col("time") < moments[0]
    rows = {"early": early, "middle": ~early & ~late, "late": late}
    windows = {name: scores_of(data, data.test_frame.filter(row)) for name, row in rows.items()}
    few = {"permutations": 199, "resamples": 50, "seed": 3}
    values = pl.concat(
        [
            pl.DataFrame({"user": np.arange(40), "window": number}).with_columns(
                x=pl.Series(rng.normal(0.5 - 0.1 * number, 0.2, 40)),
                y=pl.Series(rng.normal(0.3 + 0.1 * number, 0.2, 40)),
            )
            for number, rng in enumerate(np.random.default_rng(93).spawn(4))
        ]
    )
    return {
        "scores": public.order_changes(windows, **few),
        "one metric": public.order_changes(windows, "P@5", level=0.9, **few),
        "table": public.order_changes(values, better="higher", **few),
        "no bootstrap": public.order_changes(values, permutations=99, resamples=0, better="lower"),
    }


def order_across_splits(data):
    splits = {
        "random": public.RandomSplit(folds=2).split(data.ratings, 0),
        "time": public.TemporalSplit(test=0.2).split(data.ratings, 0),
    }
    scores = {
        name: [trained_scores(split, public.AllItems()) for split in parts]
        for name, parts in splits.items()
    }
    few = {"permutations": 199, "resamples": 50, "seed": 3}
    return {
        "splits": public.order_changes(scores, over="split", **few),
        "conditions": public.order_changes(scores, "P@5", over="condition", level=0.9, **few),
    }


def model_decay(data):
    splits = public.ModelAges(ages=["0d", "100d", "200d"], test=0.2).split(data.ratings, 0)
    ages = {
        100 * number: trained_scores(split, public.TestItems())
        for number, split in enumerate(splits)
    }
    named = {f"model {age}": scores for age, scores in ages.items()}
    return {
        "days": public.model_decay(ages, seed=2),
        "hours": public.model_decay(ages, "P@5", age_unit="hours", level=0.9),
        "names": public.model_decay(named, "nDCG@10"),
    }


def step_curves(data):
    split = public.TemporalEvents(test=0.3).split(data.events, 0)[0]
    steps = public.next_items(split)
    models = {
        name: algorithm.fit(steps.train, 0)
        for name, algorithm in (("popular", public.Popularity()), ("near", public.ItemKNN(k=10)))
    }
    scores = public.evaluate_steps(steps, models)
    windows = public.steps_by_window(scores, 3)
    return {
        "steps": public.step_curves(scores, max_steps=5),
        "windows": public.step_curves(scores, "nDCG@10", by="window", windows=4, level=0.9),
        "cut": {name: part.means() for name, part in windows.items()},
        "order": public.order_changes(windows, permutations=99, resamples=20),
    }


def timeline(data):
    algorithms = {
        "Popularity": public.Popularity(),
        "Random": public.Random(),
        "ItemKNN": public.ItemKNN(k=10),
    }
    few = {"permutations": 99, "resamples": 20, "seed": 2}
    windows = public.Windows(number=3)
    events = public.timeline(
        data.events,
        algorithms,
        ("nDCG@10", "P@5"),
        windows=windows,
        ages=["0d", "20d", "40d"],
        **few,
    )
    ratings = public.timeline(data.ratings, algorithms, windows=windows, liked=LIKED, **few)
    return {"events": events, "ratings": ratings}


def filter_effect(data):
    filters = public.KCore(14, 8)
    return {"core": public.filter_effect(data.ratings, small_plan(), filters, bootstrap=50)}


# Estimates


def liked_shares(data):
    judged = judged_of(data)
    shares = public.liked_shares(judged, 10)
    return {
        "judged": shares,
        "raw": public.liked_shares(
            data.test, runs_of(data), 20, liked=LIKED, train=data.train, level=0.9
        ),
        "levelled": [shares.pair("a", "b", levelled=True), shares.row(system="a", levelled=True)],
    }


def shown_at_random(data):
    return {
        "judged": public.shown_at_random(judged_of(data), 10, random=data.random),
        "raw": public.shown_at_random(
            data.test, runs_of(data), 20, random=data.random, liked=LIKED, level=0.9
        ),
    }


def assisted(data):
    labels, _people = annotator_labels(data)
    runs, human = runs_of(data), people_sample(data)
    given = {"human": human, "liked": 1.0, "train": data.train}
    ways = {
        "lists": {"metrics": ("P@5", "DCG@10", "anti-P@5")},
        "users": {"metrics": "P@5", "population": "users", "level": 0.9},
        "ratio": {"metrics": "P@10", "mean": "ratio"},
        "bootstrap": {"metrics": "P@5", "interval": "bootstrap", "resamples": 100, "seed": 3},
        "strata": {"metrics": "P@10", "strata": "rank"},
    }
    return {name: public.assisted(labels, runs, **way, **given) for name, way in ways.items()}


def plan_annotation(data):
    labels, _people = annotator_labels(data)
    runs = runs_of(data)
    two = {name: runs[name] for name in ("a", "b")}
    plans = {
        "uniform": public.plan_annotation(two, "P@5", budget=100, seed=1),
        "stratified": public.plan_annotation(
            two, "DCG@10", budget=150, design="stratified", smallest=0.02, seed=2
        ),
        "neyman": public.plan_annotation(
            runs, "P@10", budget=200, design="neyman", labels=labels, train=data.train, seed=3
        ),
    }
    return plans | {f"pairs, {name}": plan.pairs() for name, plan in plans.items()}


# Bias, lists, printed tables


def ladder(data):
    split = public.RandomSplit(test=0.2).split(data.ratings, 0)[0]
    lists = {
        name: {user: frame["item"].to_list() for (user,), frame in run.group_by("user")}
        for name, run in data.runs.items()
    }
    judged = public.ladder(judged_of(data), k=5)
    return {
        "judged": judged,
        "split": public.ladder(split, lists, k=10, liked=LIKED),
        "two parts": public.ladder([judged_of(data), judged_of(data)], k=10),
    }


def list_popularity(data):
    judged = judged_of(data)
    return {
        "taste": public.list_popularity(judged, k=10, seed=4),
        "activity": public.list_popularity(judged, k=5, by="activity", level=0.9),
        "popularity": public.list_popularity(judged, by="popularity"),
        "regions": public.list_popularity(judged, by=user_groups(data).to_dict(as_series=False)),
        "all users": public.list_popularity(
            data.test, runs_of(data), by=None, train=data.train, liked=LIKED
        ),
    }


def paper_table(data):
    scores = scores_of(data)
    split = public.RandomSplit(test=0.2).split(data.ratings, 0)[0]
    few = {"permutations": 500, "seed": 3}
    tables = {
        "letters": public.paper_table(scores, **few),
        "baseline": public.paper_table(
            scores, ("nDCG@10", "P@5"), against="c", family="all", **few
        ),
        "chance": public.paper_table(
            trained_scores(split, public.AllItems()), against="Random", chance=True, **few
        ),
        "t": public.paper_table(scores, test="t", correction="bh", level=0.8),
    }
    printed = {
        f"printed, {name}": [table.to_latex(label="tab:x"), table.to_markdown(), str(table)]
        for name, table in tables.items()
    }
    return tables | printed


def hygiene(data):
    faulty = {
        "u00": ["i00", "i00", "i01", "unknown"],
        "u01": ["i02"],
        "nobody": ["i03", "i04", "i05"],
    }
    return {
        "judged": public.hygiene(judged_of(data), k=10),
        "faulty": public.hygiene(
            data.test, {"faulty": faulty} | data.runs, liked=LIKED, train=data.train, k=4
        ),
    }


# Conventions, gate


def explain(data):
    given = (data.test, {"a": data.runs["a"]})
    known = {"liked": LIKED, "train": data.train}
    means = public.evaluate(*given, ("P@5", "nDCG@10"), **known).means()["a"]
    printed = {metric: f"{mean:.4f}" for metric, mean in means.items()}
    return {
        "ours": public.explain(*given, printed, **known),
        "unknown": public.explain(*given, {"P@5": "0.9876"}, **known),
    }


def waterfall(data):
    given = (data.test, {"a": data.runs["a"]}, "nDCG@10")
    return {
        library: public.explain(*given, between=("ours", library), liked=LIKED, train=data.train)
        for library in ("recbole", "elliot")
    }


def gate(data):
    judged = judged_of(data)
    pair = {"candidate": "a", "production": "c"}
    return {
        "better": public.gate(judged, **pair, references=False),
        "margin": public.gate(
            judged, candidate="b", production="a", metric="P@5", margin="5%", by=["activity"]
        ),
        "references": public.gate(
            data.test,
            runs_of(data),
            **pair,
            alpha=0.1,
            rails={"gini": None},
            references=True,
            seed=2,
            liked=LIKED,
            train=data.train,
        ),
    }


PIECES = {
    f"fn-{make.__name__}": make
    for make in (
        group_gaps,
        item_group_gaps,
        user_distribution,
        lexirecall,
        compare_data_sets,
        contrasts,
        order_over_time,
        order_across_splits,
        model_decay,
        step_curves,
        timeline,
        filter_effect,
        liked_shares,
        shown_at_random,
        assisted,
        plan_annotation,
        ladder,
        list_popularity,
        paper_table,
        hygiene,
        explain,
        waterfall,
        gate,
    )
}
