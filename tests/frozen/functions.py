"""One piece per function: each gives results by name, which save.py writes with all bits."""

from functools import cache
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory

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
    "read_annotation": "labels.read_annotation",
    "ab_test": "online.ab_test",
    "interleave": "online.interleave",
    "multileave": "online.multileave",
    "reuse_judgments": "online.reuse_judgments",
    "online_tests": "online.online_tests",
    "ForcedExposure": "online.ForcedExposure",
    "world": "world",
    "ladder": "bias.ladder",
    "list_popularity": "bias.list_popularity",
    "count_items": "bias.count_items",
    "describe_bias": "bias.describe_bias",
    "item_pairs": "bias.item_pairs",
    "pairs_of_systems": "bias.pairs_of_systems",
    "margins": "bias.margins",
    "optimal_rankings": "bias.optimal_rankings",
    "filter_effect": "auditing.filter_effect",
    "timeline": "experiment.timeline",
    "hygiene": "judging.hygiene",
    "explain": "explain",
    "gate": "gate",
    # What the calls need
    "Plan": "Plan",
    "Relevance": "Relevance",
    "evaluate": "evaluate",
    "evaluate_files": "evaluation.evaluate_files",
    "scan_values": "evaluation.scan_values",
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
    return {"core": public.filter_effect(data.ratings, small_plan(), filters, resamples=50)}


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


def annotation_status(data):
    """Return what labels of the first pairs of plans say: rows, path, decision, sample."""
    _labels, people = annotator_labels(data)
    runs = runs_of(data)
    two = {name: runs[name] for name in ("a", "b")}
    plans = {
        "difference": public.plan_annotation(two, "P@5", budget=150, seed=1),
        "levels": public.plan_annotation(runs, "DCG@5", budget=150, design="stratified", seed=2),
    }
    results = {}
    for name, plan in plans.items():
        with TemporaryDirectory() as folder:
            plan.save(folder)
            sheet = pl.read_csv(Path(folder) / "to-judge.csv").drop("label")
            judged = sheet.join(people, on=["user", "item"], how="left", maintain_order="left")
            for count in (40, 150):
                filled = judged.select("user", "item", label=pl.col("rating").cast(pl.Int64))
                annotation = public.read_annotation(folder, filled.head(count))
                wish = {"smallest": 0.05} if name == "difference" else {"width": 0.3}
                results[f"{name}, {count}"] = [annotation.sample(), annotation.status(**wish)]
            more = annotation.extend(30)
            results[f"{name}, extended"] = [more, more.pairs()]
    return results


def online(data):
    """Return the tables of tests in a small world."""
    shop = public.world("shop", users=60, items=50, seed=1)
    named = systems()
    two = {name: named[name] for name in ("Popularity", "WRMF")}
    took_part = ["Random", "WRMF"]
    calls = {
        "ab": lambda: public.ab_test(shop, named, 500, k=5, seed=4),
        "ab, everyone": lambda: public.ab_test(shop, named, None, k=5, seed=4, correction=None),
        "ab, forced": lambda: public.ab_test(
            shop, named, 500, public.ForcedExposure(), k=5, seed=4, level=0.9
        ),
        "interleave": lambda: public.interleave(shop, two, 500, k=5, seed=4),
        "balanced": lambda: public.interleave(shop, two, 500, k=5, method="balanced"),
        "multileave": lambda: public.multileave(shop, named, 500, k=5, seed=4),
        "reuse": lambda: public.reuse_judgments(shop, named, took_part, k=5),
        "tests": lambda: public.online_tests(shop, named, (50, 200), k=5, repeats=3),
    }
    return {name: [call()] for name, call in calls.items()}


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


def item_pairs(data):
    first, second = list(runs_of(data).values())[:2]
    return {
        "all": public.item_pairs(data.ratings, liked=LIKED),
        "truth": public.item_pairs(data.ratings, liked=LIKED, random=data.random),
        "sampled": public.item_pairs(data.ratings, liked=LIKED, sample=500, seed=3),
        "systems": public.pairs_of_systems(data.train, first, second, 5, liked=LIKED),
    }


def item_tables(data):
    settings = {"liked": LIKED, "random": data.random}
    return {
        "counts": public.count_items(data.ratings, **settings),
        "bias": public.describe_bias(data.ratings, **settings),
        "bias as rated": public.describe_bias(data.ratings, liked=LIKED),
        "rankings": public.optimal_rankings(data.ratings, **settings),
        "rankings as rated": public.optimal_rankings(data.ratings, liked=LIKED),
    }


def margins(data):
    values = {"popular": (0.15, 0.05), "careful": (0.09, 0.01), "neither": (0.0, 0.0)}
    return {"scores": public.margins(scores_of(data)), "values": public.margins(values)}


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


def means_on_disk(data):
    """Return means of files, with what is read again, and the values of each user."""
    runs = {}
    for name, frame in ({"test": data.test_frame} | data.runs).items():
        runs[name] = data.home / f"{name}.parquet"
        frame.write_parquet(runs[name])
    test = runs.pop("test")
    results = {}
    for users, undefined in (("with-test", "zero"), ("with-list", "skip")):
        scores = public.evaluate_files(
            test,
            runs,
            ("P@5", "nDCG@10", "anti-P@5", "condensed-P@5"),
            output=data.home / f"disk-{users}",
            liked=LIKED,
            users=users,
            undefined=undefined,
            workers=1,
        )
        results[f"{users}, {undefined}"] = {
            "table": scores.table(),
            "notes": scores.notes,
            "users": public.scan_values(data.home / f"disk-{users}")
            .collect()
            .sort("system", "user"),
        }
    return results


def means_of_users(data):
    """Return values and means over different users, with what is said beside them."""
    dated = pl.concat(
        frame.with_columns(date=pl.lit(date))
        for date, frame in (("2000-01-01", data.runs["a"]), ("2002-01-01", data.runs["b"]))
    )
    split = public.RandomSplit(test=0.2).split(data.train, seed=3)[0]
    few = {"a": data.runs["a"].filter(pl.col("user") < "u40"), "b": data.runs["b"]}
    metrics = ("P@5", "nDCG@10", "anti-P@5", "condensed-P@5", "ARP@5", "Coverage@5", "AP")
    known = {"train": data.train, "liked": LIKED}
    scores = {
        "few": public.evaluate(data.test, few, metrics, **known, items=data.frame["item"].unique()),
        "expected": public.evaluate(data.test, few, metrics[:3], **known, ties="expected"),
        "targets": trained_scores(split, public.TestItems(), metrics[:4]),
        "several": public.evaluate(
            data.test, {"a": dated}, metrics[:3], liked=LIKED, lists=("user", "date")
        ),
        "compat": public.evaluate(data.test, few, ("nDCG@10",), liked=LIKED, compat="recbole"),
    }
    return {
        name: {
            "means": {users: one.mean(one.order[0], users=users) for users in ("all", "with-list")},
            "averages": one.averages(undefined="skip"),
            "random": one.random(),
            "printed": str(one).splitlines(),
            "notes": one.notes,
            "users": one.per_user(),
            "long": one.long_table(),
        }
        for name, one in scores.items()
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


# Splits and targets


def message_of(call):
    """Return the error of a call as text, or what it gives."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def stated(split):
    """Return what a split says of itself."""
    return {
        "repr": repr(split),
        "facts": dict(split.facts),
        "design": dict(split.design),
        "judged": split.judged,
        "known": dict(split.known),
        "judgments": dict(split.judgments),
        "logs": {name: log.to_polars() for name, log in split.logs.items()},
    }


def more_splitters(data):
    from save import splitters

    of, day = us.splits, "1d"
    picks = {
        f"temporal {pick} {seen}": of.Temporal(pick=pick, seen=seen)
        for pick in ("first", "last", "random", "next")
        for seen in ("drop", "keep")
    }
    return {
        **splitters(data),
        **picks,
        "validation": of.Temporal(validation=0.1, gap="30d"),
        "validation at": of.Temporal(at="2001-01-01", validation_at="2000-06-01", ties="train"),
        "validation per user": of.Temporal(validation=0.1, per_user=True, repeats="mean"),
        "events mean": of.Temporal(repeats="mean", seen="keep", gap=3600),
        "sessions": of.Sessions(pause="6h"),
        "sessions next": of.Sessions(pause="20h", pick="next", at="2001-09-12", ties="train"),
        "sessions random": of.Sessions(pause="10h", pick="random", least=2, seen="keep"),
        "windows": of.Windows(number=3),
        "windows long": of.Windows(number=2, length="20d", gap="5d", train_length="30d"),
        "windows step": of.Windows(length="20d", step="10d", start="2001-11-01", empty="skip"),
        "ages": of.ModelAges(number=3, step="10d", test=0.1),
        "ages listed": of.ModelAges(ages=("0d", "5d"), train_length="30d", length=day, pick="last"),
        "leave-out 20": of.LeaveOut(n=20),
        "uniform impossible": of.Uniform(test=0.9),
        "flat impossible": of.Flat(test=0.9),
        "windows too long": of.Windows(number=9, length="900d"),
    }


def split_facts(data):
    """Return what splits of ratings and of events say of themselves, errors among them."""
    made = {}
    for name, splitter in more_splitters(data).items():
        made[f"{name}: settings"] = repr(splitter), splitter.describe(), splitter.draw_key
        for kind, rows in (("ratings", data.ratings), ("events", data.events)):
            made[f"{name}, {kind}"] = message_of(
                lambda rows=rows, splitter=splitter: [stated(s) for s in splitter.split(rows, 3)]
            )
    return made


def wrong_settings(_data):
    """Return the errors of settings that do not go together."""
    wrong = {
        "Random": [{"folds": 2, "exact": True}, {"folds": 2, "test": 0.3}, {"test": 2}],
        "PerUser": [{"number": 2, "test": 0.3}, {"pick": "x"}, {"rounding": "up"}],
        "Flat": [{"t": 3, "test": 0.1}],
        "HeadRemoved": [{"of": 3}],
        "Given": [{}, {"column": "a", "test": 3}],
        "Forced": [{"random": 3}],
        "FamiliarTraining": [{"cap": 0.5}, {"fair": True}, {"liked": 3}],
        "Temporal": [
            {"test": 0.1, "at": 3},
            {"at": "x"},
            {"at": 3, "per_user": True},
            {"gap": 3, "per_user": True},
            {"validation": 0.1, "validation_at": 3},
        ],
        "TemporalEvents": [{"test": 0.1, "at": 3}],
        "Sessions": [{"test": 0.1, "at": 3}, {"pause": "x"}, {"pick": "all"}],
        "Windows": [
            {"step": 3},
            {"length": 3, "number": 2, "test": 0.3},
            {"test": 0.1, "start": 3},
        ],
        "ModelAges": [{}, {"ages": (1, 2), "number": 3}, {"ages": (2, 1)}, {"ages": (1,)}],
        "Full": [{"size": 0.5}],
        "Reg": [{"size": 2}],
        "Skew": [{"unseen": "x"}],
    }
    made = {
        f"{name} {settings}": message_of(
            lambda n=name, s=settings: repr(getattr(us.splits, n)(**s))
        )
        for name, several in wrong.items()
        for settings in several
    }
    targets = {
        "Targets": [{"by": "popularity"}, {"exact": True}, {"candidates": "x"}, {"others": "x"}],
        "OneRelevant": [
            {"exact": True, "by": "popularity"},
            {"exact": True, "fresh": False},
            {"exact": True, "shortfall": "forgive"},
            {"strata": 1},
        ],
    }
    return made | {
        f"{name} {settings}": message_of(
            lambda n=name, s=settings: repr(getattr(us.targets, n)(**s))
        )
        for name, several in targets.items()
        for settings in several
    }


def diagnosed(diagnosis):
    return {
        "dict": diagnosis.to_dict(),
        "table": diagnosis.table(),
        "counts": diagnosis.counts(),
        "numbers": diagnosis.numbers(),
        "display": diagnosis.display_table(),
        "text": str(diagnosis).splitlines(),
        "repr": repr(diagnosis),
        "figures": [
            message_of(lambda kind=kind: diagnosis.figure(kind).to_dict())
            for kind in ("time", "drift", "items")
        ],
        "page": message_of(lambda: repr(diagnosis.document().sections)),
    }


def diagnose(data):
    """Return the checks of clean, random and leaking splits of several logs."""
    of, log = us.splits, us.worlds.event_log("growing", users=200, items=100, events=4_000, seed=1)
    rows = log.to_ratings("first")
    (clean,), (random,) = of.Temporal(test=0.2).split(rows), of.Random(test=0.2).split(rows)
    copied = us.Split(random.train, of.sparsity_sample(random.train, 0.5, 1), "copied")
    (filtered,) = of.Random(test=0.3).split(us.data.KCore(5).apply(rows), 1)
    popularity = np.bincount(data.ratings.item, minlength=len(data.ratings.items))
    frame = data.frame.with_columns(
        seen=pl.Series(popularity)[data.frame["item"].str.slice(1).cast(pl.Int64)]
    )
    tagged = us.read_ratings(frame, tags=["seen", "part"])
    shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
    cases = {
        "clean": (clean, None),
        "clean of a log": (clean, log),
        "random": (random, log),
        "copied": (copied, None),
        "filtered": (filtered, None),
        "untimed": (of.Random(folds=2).split(shop, 1), None),
        "folds": (of.Random(folds=3).split(rows, 1), log),
        "windows": (of.Windows(number=3).split(log), log),
        "validation": (of.Temporal(validation=0.1).split(rows), None),
        "sessions": (of.Sessions(pause="6h").split(log), log),
        "small": (of.Random(test=0.2).split(data.ratings, 1), None),
        "small last": (of.PerUser(test=0.2, pick="last").split(tagged, 1), tagged),
        "given": (of.Given("part").split(tagged), None),
    }
    made = {}
    for name, (split, source) in cases.items():
        made |= {
            f"{name}: {part}": value
            for part, value in diagnosed(of.diagnose(split, log=source)).items()
        }
    return made


def saved_splits(data):
    """Return cards of saved splits, and what is read again."""
    import json
    import tempfile

    made = {}
    names = (
        "RandomSplit folds",
        "HeadRemoved",
        "ForcedTest",
        "sessions next",
        "validation",
        "ages",
    )
    splitters = more_splitters(data)
    for name in names:
        for kind, rows in (("ratings", data.ratings), ("events", data.events)):
            folder = f"{tempfile.mkdtemp()}/saved"
            saved = message_of(
                lambda n=name, r=rows, f=folder: us.splits.save_splits(splitters[n], r, f, 3)
            )
            if isinstance(saved, str):
                made[f"{name}, {kind}"] = saved
                continue
            saved = {key: value for key, value in saved.items() if key != "digests"}
            splits = us.splits.load_splits(folder)
            parts = [(s.train, s.test, *s.judgments.values(), *s.known.values()) for s in splits]
            made[f"{name}, {kind}"] = json.loads(json.dumps(saved, default=str))
            made[f"{name}, {kind}, read"] = [stated(split) for split in splits], parts
    made["missing"] = message_of(lambda: us.splits.load_splits("nowhere"))
    return made


def target_facts(data):
    """Return designs, facts, notes and judgments of target lists."""
    from save import designs

    more = {
        "popular strata": us.targets.Percentiles(others=5, strata=3, by="popularity"),
        "exact": us.targets.OneRelevant(others=9, exact=True),
        "skip": us.targets.OneRelevant(others=70, shortage="skip"),
        "ids": us.targets.Targets(candidates=("i01", "i02", "i03"), others=1),
        "unknown": us.targets.Targets(candidates=("i05", "nobody")),
        "function": us.targets.Targets(candidates=lambda split: np.arange(80) % 2 == 0),
        "strata function": us.targets.TestItems(
            strata=lambda split: np.arange(len(split.train.items)) % 3, shortage="error", others=60
        ),
    }
    made = {}
    (timed,) = us.splits.Temporal(validation=0.1, gap="30d").split(data.ratings)
    (plain,) = us.splits.Random(test=0.2).split(data.ratings, 1)
    judged = plain.judging(np.arange(len(plain.train.users)) < 20)
    for name, design in ({**designs(), **more}).items():
        made[f"{name}: settings"] = repr(design), message_of(design.describe)
        for kind, split in (("timed", timed), ("plain", plain), ("judged", judged)):

            def lay(design=design, split=split):
                lists = design.lists(split, liked=LIKED, seed=4)
                return {
                    "repr": repr(lists),
                    "design": dict(lists.design),
                    "facts": dict(lists.facts),
                    "notes": list(lists.notes),
                    "candidates": lists.candidates,
                    "judgments": lists.judgments,
                    "rows": message_of(lists.to_polars),
                }

            made[f"{name}, {kind}"] = message_of(lay)
    return made


def next_items(data):
    """Return steps and their facts."""
    of = us.splits
    sources = {
        "temporal": of.Temporal(test=0.2, pick="next").split(data.events)[0],
        "sessions": of.Sessions(pause="20h", pick="next").split(data.events)[0],
        "ratings": of.Temporal(test=0.2, validation=0.1).split(data.ratings)[0],
    }
    ways = {
        "usual": {},
        "keep": {"seen": "keep", "candidates": "all"},
        "last of a session": {"gap": 600.0, "target": "last", "history": "session"},
        "random": {"target": "random", "least_history": 3, "seed": 5},
        "first": {"target": "first", "least_history": 0},
        "nothing": {"least_history": 10_000},
        "no session": {"history": "session"},
    }
    made = {}
    for name, split in sources.items():
        for way, settings in ways.items():

            def steps(split=split, settings=settings):
                lists = us.targets.next_items(split, liked=0.5, **settings)
                return {
                    "repr": repr(lists),
                    "rows": lists.to_polars(),
                    "facts": dict(lists.facts),
                    "notes": list(lists.notes),
                    "design": dict(lists.design),
                    "histories": lists.histories(0, len(lists)),
                    "pairs": lists.pairs,
                }

            made[f"{name}, {way}"] = message_of(steps)
    made["opinions"] = message_of(lambda: us.targets.next_items(sources["ratings"]))
    made["two parts"] = message_of(lambda: us.targets.next_items(sources["ratings"], data.test))
    return made


def saved_targets(data):
    """Return cards of saved targets, what is read again, and errors of tables."""
    import json
    import tempfile
    from pathlib import Path

    made = {}
    (split,) = us.splits.Random(test=0.2).split(data.ratings, 1)
    designs = {
        "one": us.targets.OneRelevant(others=9),
        "strata": us.targets.Percentiles(others=5, strata=4),
        "all": us.targets.AllItems(),
    }

    def shown(lists):
        return {
            "repr": repr(lists),
            "rows": lists.to_polars(),
            "design": dict(lists.design),
            "notes": list(lists.notes),
            "judgments": lists.judgments,
        }

    for name, design in designs.items():
        lists = design.lists(split, liked=LIKED, seed=1)
        folder = us.targets.save_targets(lists, f"{tempfile.mkdtemp()}/lists")
        card = json.loads((Path(folder) / "card.json").read_text())
        for key in ("digests", "digest"):
            card.pop(key, None)
        made[name] = card
        made[f"{name}, read"] = shown(us.targets.read_targets(folder, split, liked=LIKED))
        again = message_of(lambda f=folder, x=lists: us.targets.save_targets(x, f))
        made[f"{name}, again"] = again.replace(str(folder), "FOLDER")
    user, item = split.train.users.values[0], split.train.items.values[int(split.train.item[0])]
    tables = {
        "unknown": {"user": [user], "item": ["nobody"]},
        "trained": {"user": [user], "item": [item]},
        "missing": {"user": [user]},
        "strata": {"user": [user], "item": ["i77"], "stratum": [-3]},
        "no folder": "nowhere",
    }
    for name, table in tables.items():
        made[name] = message_of(lambda t=table: us.targets.read_targets(t, split, liked=LIKED))
    return made


def randomness(data):
    """Return tests of missing at random, and what interventions print."""
    made = {}
    for name, rows in (("random", data.random), ("ratings", data.ratings), ("test", data.test)):
        result = us.splits.looks_random(rows)
        made[name] = result.table()
        made[f"{name}, text"] = str(result).splitlines()
    for design in (us.splits.Full(), us.splits.Skew(), us.splits.WtdH()):
        drawn = design.sample(data.test, data.train, data.random, seed=2)
        weighed = design.weigh(data.test, data.train, data.random, method="raking")
        for kind, result in (("drawn", drawn), ("weighed", weighed)):
            made[f"{design.kind} {kind}"] = {
                "text": str(result).splitlines(),
                "repr": repr(result),
                "rows": result.to_polars(),
                "design": dict(result.design),
            }
    return made


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
        annotation_status,
        online,
        ladder,
        list_popularity,
        item_pairs,
        item_tables,
        margins,
        paper_table,
        hygiene,
        means_on_disk,
        means_of_users,
        explain,
        waterfall,
        gate,
        split_facts,
        wrong_settings,
        diagnose,
        saved_splits,
        target_facts,
        next_items,
        saved_targets,
        randomness,
    )
}
