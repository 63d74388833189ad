"""What valcarce2018 measures: on the authors' released tables, and on our runs of its systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from unskew.data.relevance import Relevance
from unskew.data.summary import summary
from unskew.engine.store import digest_of
from unskew.errors import SettingError, UnskewError, quietly
from unskew.evaluation.evaluate import evaluate
from unskew.evaluation.scores import Scores
from unskew.experiment.plan import STAGES
from unskew.judging.rank import rank
from unskew.runs import Run, read_run
from unskew.splits.given import Given
from unskew.splits.random import PerUser
from unskew.splits.split import Split
from unskew.stats.agreement.agreement import agreement
from unskew.stats.agreement.power import discriminative_power
from unskew.stats.agreement.robustness import SHARES, robustness
from unskew.stats.compare.compare import compare
from unskew.stats.correlation import kendall
from unskew.targets.designs import AllItems, OneRelevant, Targets, TestItems, TestTargets
from unskew_studies.lab import Lab, MissingDataError, UndefinedError, last_line, measurement
from unskew_studies.presets import Chosen, preset
from unskew_studies.valcarce2018.printed import COLUMNS, CUTOFFS, FAMILIES, SEVEN, cutoffs

DEPTH = 100
"""The number of items that each system recommends."""
LIKED = 4.0
AUTHORS = "valcarce_test"
"""The tag of the authors' split, where a file has it."""
DESIGNS: dict[str, Targets] = {
    "TestItems": TestItems(),
    "AllItems": AllItems(),
    "TestTargets": TestTargets(),
    "OneRelevant": OneRelevant(),
}
"""What may be ranked for a user: the variants of Bellogín, Castells and Cantador (2011), but for
items with training ratings, which are all items but for a few."""
DESIGN_METRICS = ("nDCG@10", "P@10")
GAINS = ("burges", "liked-only", "binary")
"""Other gains of nDCG: 2^rating - 1, the rating of liked items only, and 1 for these."""
PAIRS = {"a": pl.String, "b": pl.String, "tau": pl.Float64, "low": pl.Float64, "high": pl.Float64}
NUMBERS = ("value", "low", "high")


# The authors' tables


@dataclass(frozen=True)
class ReleasedResults:
    """The released results of the authors' systems on one data set."""

    lab: Lab
    name: str

    @property
    def table(self) -> pl.DataFrame:
        """Values of all metrics, for each share of least popular items that is kept."""
        return self.lab.released_table(results_file(self.name))

    @property
    def means(self) -> pl.DataFrame:
        """A row per system: its name and its values on the full test set."""
        full = self.table.filter(pl.col("Percentage") == 1.0)
        system = pl.col("Recommender").str.strip_prefix("run-")
        return full.select(_bare(system).alias("system"), pl.exclude("Recommender", "Percentage"))

    @property
    def popularity(self) -> pl.DataFrame:
        """τ with the full test set: a row per metric and share of items kept."""
        return self.lab.cached("valcarce2018 popularity", self.name, self._popularity)

    def _popularity(self) -> pl.DataFrame:
        table = self.table.sort("Recommender")
        full = table.filter(pl.col("Percentage") == 1.0)
        rows = []
        for share in SHARES["popularity"]:
            part = table.filter((pl.col("Percentage") - share).abs() < 1e-9)
            if part.height != full.height:
                raise UndefinedError(f"{results_file(self.name)} has no values at {share:g}")
            rows += [
                (column, share, kendall(part[column], full[column]))
                for column in COLUMNS
                if column in table.columns
            ]
        return pl.DataFrame(rows, schema=["metric", "share", "tau"], orient="row")

    @property
    def pvalues(self) -> pl.DataFrame:
        """A row per ordered pair of systems, a column of p-values per metric."""
        table = self.lab.released_table(pvalues_file(self.name))
        runs = [_bare(pl.col(one)).alias(to) for one, to in (("RunA", "a"), ("RunB", "b"))]
        return table.select(*runs, pl.exclude("RunA", "RunB"))

    def taus(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return τ between every two columns, under their printed names."""
        means = self.means
        rows = [
            (a, b, kendall(means[columns[a]], means[columns[b]]), None, None)
            for a in columns
            for b in columns
        ]
        return pl.DataFrame(rows, schema=PAIRS, orient="row")


def _bare(system: pl.Expr) -> pl.Expr:
    """Return the system of a released run's name, which ends with the data set's."""
    return system.str.replace(r"-(ml-1M|[A-Za-z]+)$", "")


def results_file(name: str) -> str:
    """Return the file of released metric values of a data set."""
    return f"valcarce2018_{name}_results.csv"


def pvalues_file(name: str) -> str:
    """Return the file of released p-values of a data set."""
    return f"valcarce2018_{name}_pvalues.csv"


# Our runs of the 21 systems


def split_of(lab: Lab, dataset_name: str) -> Split:
    """Return the authors' split where the data have it, else one of the same kind."""

    def make() -> Split:
        ratings = lab.data(dataset_name).ratings
        splitter = Given(column=AUTHORS) if AUTHORS in ratings.tags else PerUser()
        return splitter.split(ratings, lab.seed)[0]

    return lab.cached("valcarce2018 split", dataset_name, make)


def authors_split(lab: Lab, dataset_name: str) -> Split:
    """Return the authors' split; MissingDataError where the data do not have it."""
    if AUTHORS not in lab.data(dataset_name).ratings.tags:
        raise MissingDataError(
            f"needs the authors' split: a column {AUTHORS} in the file of {dataset_name}"
        )
    return split_of(lab, dataset_name)


def relevance(lab: Lab, dataset_name: str) -> Relevance:
    """Return what is liked; gains are whole stars, as trec_eval reads them, on the paper's scale.

    Stars that are cut off mean nothing on another scale: there a gain is the rating itself or,
    where ratings can be negative, how far it is liked.
    """
    values = lab.data(dataset_name).ratings.value
    gain = "integer" if float(values.max()) == 5 and float(values.min()) >= 0 else "rating"
    if float(values.min()) < 0:
        gain = "levels"
    return Relevance(liked=lab.threshold(dataset_name, LIKED), gain=gain)


def runs(lab: Lab, dataset_name: str) -> dict[str, Run]:
    """Return what each system recommends: trained and ranked once, then from the store.

    A system that cannot be trained on these data is left out; the lab keeps the reason.
    """
    lists = {}
    for name in preset("valcarce2018"):
        try:
            lists[name] = run_of(lab, dataset_name, name)
        except (UndefinedError, SettingError):
            raise
        except UnskewError as problem:
            lab.failures[dataset_name, name] = last_line(str(problem))
    return lists


def run_of(lab: Lab, dataset_name: str, name: str) -> Run:
    """Return what one system recommends."""

    def make() -> Run:
        key = _trained(lab, dataset_name, name, preset("valcarce2018")[name])["lists"]
        lists = lab.store.get(key)[0]
        if lists.is_empty():
            raise UndefinedError(
                f"{dataset_name}: {name} can recommend nothing, there are too few ratings"
            )
        return read_run(lists)

    return lab.cached(f"valcarce2018 lists {name}", dataset_name, make)


def _trained(lab: Lab, dataset_name: str, name: str, chosen: Chosen) -> dict[str, str]:
    """Train a system if the store lacks its lists or its means by design; return their keys."""
    split, rule = split_of(lab, dataset_name), relevance(lab, dataset_name)
    identity = {
        "kind": "study lists",
        "system": chosen.algorithm.describe(),
        "depth": DEPTH,
        "train": split.train.fingerprint,
        "test": split.test.fingerprint,
        "seed": lab.seed,
        "stages": dict(STAGES),
        "relevance": rule.describe(),
    }
    keys = {part: digest_of({**identity, "part": part}) for part in ("lists", "designs")}
    if all(map(lab.store.has, keys.values())):
        return keys
    lab.progress(f"training {name} ({dataset_name})")
    model = chosen.fit(split.train, lab.seed)
    rows = []
    for design, targets in DESIGNS.items():
        lists = targets.lists(split, seed=lab.seed, relevance=rule)
        run = rank(model, lists, DEPTH, seed=lab.seed)
        if design == "TestItems":
            frame = run.to_polars().select("user", "item")
            lab.store.put(keys["lists"], frame, {"study": "valcarce2018", "lists": name})
        with quietly():
            means = evaluate(lists, {name: run}, DESIGN_METRICS).means()[name]
        rows += [(design, name, metric, mean) for metric, mean in means.items()]
    designs = pl.DataFrame(rows, schema=["design", "system", "metric", "mean"], orient="row")
    lab.store.put(keys["designs"], designs, {"study": "valcarce2018", "designs": name})
    return keys


def per_user(lab: Lab, dataset_name: str) -> Scores:
    """Return the value of every metric for every user and system."""

    def make() -> Scores:
        with quietly():
            return evaluate(
                split_of(lab, dataset_name).test,
                runs(lab, dataset_name),
                COLUMNS,
                relevance=relevance(lab, dataset_name),
            )

    return lab.cached("valcarce2018 scores", dataset_name, make)


@measurement("Table 2: sizes of the data")
def sizes(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Count users, items and ratings, and how ratings are spread over items."""
    part = summary(lab.data(dataset_name).ratings).part()
    return pl.DataFrame(
        {
            "data": [dataset_name],
            "users": [part["users"]],
            "items": [part["items"]],
            "ratings": [part["ratings"]],
            "density": [100 * part["density"]],
            "gini": [part["gini"]],
        }
    )


@measurement("means of the 21 systems")
def scores(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Evaluate all systems: a row per system and metric, with the range over users."""
    result = per_user(lab, dataset_name)
    rows = []
    for name, means in result.means().items():
        for metric, values in zip(result.labels, result.systems[name].values, strict=True):
            known = values[~np.isnan(values)]
            least, most = float(known.min(initial=np.inf)), float(known.max(initial=-np.inf))
            rows.append((name, metric, means[metric], least, most))
    schema = ["system", "metric", "mean", "least", "most"]
    return pl.DataFrame(rows, schema=schema, orient="row")


@measurement("Figs. 1 and 5: τ between cutoffs and between metrics")
def correlations(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Correlate orders of systems: of the seven metrics, and of the cutoffs of each."""
    groups = {"metrics": SEVEN, **{family: cutoffs(family) for family in FAMILIES}}
    frames = []
    for group, columns in groups.items():
        result = agreement(
            per_user(lab, dataset_name),
            list(columns.values()),
            resamples=lab.amount("bootstrap"),
            permutations=1,
            seed=lab.seed,
        )
        taus = {
            frozenset(row[:2]): row[2:]
            for row in result.rows.select("design", "against_design", *NUMBERS).iter_rows()
        }
        named = list(zip(columns, result.parts["means"].values_of("design"), strict=True))
        rows = [
            (a, b, *taus.get(frozenset((first, second)), (1.0, 1.0, 1.0)))
            for a, first in named
            for b, second in named
        ]
        frame = pl.DataFrame(rows, schema=PAIRS, orient="row")
        frames.append(frame.select(pl.lit(group).alias("of"), pl.all()))
    return pl.concat(frames)


@measurement("Figs. 2 and 6: robustness to sparsity")
def sparsity(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return test ratings away at random; τ with the full test set, per metric and share."""
    with quietly():
        result = robustness(
            split_of(lab, dataset_name).test,
            runs(lab, dataset_name),
            COLUMNS,
            shares=(1.0, *SHARES["sparsity"]),
            samples=lab.amount("samples"),
            relevance=relevance(lab, dataset_name),
            seed=lab.seed,
            cluster=lab.executor.client,
        )
    return result.rows.rename({"value": "tau"})


@measurement("Figs. 3 and 7: robustness to popularity")
def popularity(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return the most popular items out of the test set; τ with the full one."""
    split = split_of(lab, dataset_name)
    with quietly():
        result = robustness(
            split.test,
            runs(lab, dataset_name),
            COLUMNS,
            to="popularity",
            train=split.train,
            relevance=relevance(lab, dataset_name),
            cluster=lab.executor.client,
        )
    return result.rows.select("metric", "share", "judgments", "users", tau="value")


@measurement("Figs. 4 and 8, Table 3: permutation tests of all pairs")
def pvalues(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Test every pair of systems by every metric; p without +1, as the paper."""
    result = compare(
        per_user(lab, dataset_name),
        list(COLUMNS),
        permutations=lab.amount("permutations"),
        plus_one=False,
        correction=None,
        seed=lab.seed,
    )
    tables = [
        result[metric].rows.select(
            pl.lit(metric).alias("metric"), a="system", b="against", difference="value", p="p"
        )
        for metric in COLUMNS
    ]
    return pl.concat(tables)


@measurement("scores by what is ranked")
def designs(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return each system's means in each design."""
    known = preset("valcarce2018")
    keys = [
        _trained(lab, dataset_name, name, known[name])["designs"]
        for name in runs(lab, dataset_name)
    ]
    return pl.concat([lab.store.get(key)[0] for key in keys])


@measurement("nDCG by gain")
def gains(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Return each system's nDCG with several gains."""
    rule = relevance(lab, dataset_name)
    if rule.gain == "levels":
        raise UndefinedError(f"{dataset_name}: ratings below 0 cannot be gains")
    rows = []
    for gain in (rule.gain, *GAINS):
        with quietly():
            result = evaluate(
                split_of(lab, dataset_name).test,
                runs(lab, dataset_name),
                ["nDCG"],
                relevance=replace(rule, gain=gain),
            )
        rows += [(gain, name, means["nDCG"]) for name, means in result.means().items()]
    return pl.DataFrame(rows, schema=["gain", "system", "mean"], orient="row")


@measurement("what an ideal recommender scores")
def ideal(lab: Lab, dataset_name: str) -> pl.DataFrame:
    """Recommend to each user the test items by falling rating, at most 100; return all means."""
    test, rule = split_of(lab, dataset_name).test, relevance(lab, dataset_name)
    best = test.to_polars().sort("user", "rating", descending=[False, True], maintain_order=True)
    lists = best.group_by("user", maintain_order=True).head(DEPTH).select("user", "item")
    wanted = [name.replace("set_P", f"P_{DEPTH}") for name in SEVEN.values()]
    with quietly():
        result = evaluate(test, {"ideal": read_run(lists)}, wanted, relevance=rule)
    return pl.DataFrame({"metric": list(SEVEN), "mean": list(result.means()["ideal"].values())})


@dataclass(frozen=True)
class OurResults:
    """The results of our systems on one data set."""

    lab: Lab
    dataset_name: str

    @property
    def means(self) -> pl.DataFrame:
        """A row per system: its name and its means."""
        table = self.lab.table(scores, self.dataset_name)
        return table.pivot("metric", index="system", values="mean")

    @property
    def popularity(self) -> pl.DataFrame:
        """τ with the full test set: a row per metric and share of items kept."""
        return self.lab.table(popularity, self.dataset_name)

    @property
    def pvalues(self) -> pl.DataFrame:
        """A row per pair of systems, a column of p-values per metric."""
        return self.lab.table(pvalues, self.dataset_name).pivot(
            "metric", index=["a", "b"], values="p"
        )

    def taus(self, columns: Mapping[str, str]) -> pl.DataFrame:
        """Return τ between every two columns, under their printed names."""
        known = {tuple(cutoffs(family).values()): family for family in FAMILIES}
        of = known.get(tuple(columns.values()), "metrics")
        return self.lab.table(correlations, self.dataset_name).filter(pl.col("of") == of).drop("of")


Results = ReleasedResults | OurResults


# Parts that both kinds of results share


def unordered_pairs(taus: pl.DataFrame) -> pl.DataFrame:
    """Return each pair once, without those of a metric with itself."""
    names = taus["a"].unique(maintain_order=True).to_list()
    pairs = pl.DataFrame(list(combinations(names, 2)), schema=["a", "b"], orient="row")
    return pairs.join(taus, on=["a", "b"], maintain_order="left")


def mean_taus(table: pl.DataFrame, columns: Mapping[str, str]) -> dict[str, float]:
    """Return τ averaged over the shares that leave something out, per printed name."""
    part = table.filter(pl.col("share") < 1)
    means = {}
    for name, column in columns.items():
        known = part.filter(pl.col("metric") == column)["tau"].drop_nulls().drop_nans()
        if known.is_empty():
            raise UndefinedError(f"{name}: all systems are equal on every smaller test set")
        means[name] = float(np.mean(known.to_numpy()))
    return means


def powers(
    pvalues: pl.DataFrame, columns: Mapping[str, str], *, ordered: bool = True
) -> dict[str, float]:
    """Return DP per printed name; over ordered pairs, as the paper prints it, unless said."""
    chosen = pvalues.select("a", "b", *columns.values())
    rows = discriminative_power(chosen, ordered=ordered).rows
    return dict(zip(columns, rows["value"], strict=True))


def needs_depth(lab: Lab, dataset_name: str) -> None:
    """Raise an error if lists are shorter than the deepest cutoff."""
    longest = max(int(run.depth.max(initial=0)) for run in runs(lab, dataset_name).values())
    if longest < CUTOFFS[-1]:
        raise UndefinedError(
            f"{dataset_name}: lists hold at most {longest} items, and cutoffs go up to "
            f"{CUTOFFS[-1]}"
        )
