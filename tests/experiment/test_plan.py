"""Plans: what they say in Python and in TOML, what their keys hold, the way back from a card."""

import dataclasses
import json
import pickle
import re

import numpy as np
import polars as pl
import pytest

import unskew as us
import unskew_studies
from shared import ROOT
from shared.algorithms import EVERYONE
from shared.plans import WORLD, world
from unskew import SettingError, UnknownName
from unskew.evaluation.chance import chance_scores
from unskew.experiment.collection import PlanData, keys_of
from unskew.experiment.plan import STAGES, Plan, label_of
from unskew.experiment.plan_files import plan_from_card, plan_of
from unskew.judging.judged import Judged
from unskew.metrics.names import parse
from unskew.recommend.registry import algorithm


def simple(train, rng):
    return us.recommend.Popularity().fit(train)


def plan(**settings):
    return Plan(**{"algorithms": [us.recommend.Popularity()], "metrics": ["P@5"], **settings})


# In Python


def test_one_or_several():
    one = plan(
        split=us.splits.LeaveOut(1), targets=us.targets.TestItems(), metrics="P@5", judgments="test"
    )
    many = plan(split=[us.splits.LeaveOut(1)], targets=(us.targets.TestItems(),), metrics=("P@5",))
    assert one == many
    assert hash(one) == hash(many)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != plan(seed=1)
    assert one != "plan"


def test_labels():
    made = plan(
        algorithms=[
            us.recommend.Popularity(),
            us.recommend.UserKNN(k=7, power=2.0),
            us.experiment.Custom("mine", simple),
        ]
    )
    assert list(made.systems) == ["popularity", "user-knn k=7 power=2.0", "mine"]
    named = plan(algorithms={"a": us.recommend.Popularity(), "b": us.recommend.Popularity()})
    assert list(named.systems) == ["a", "b"]
    assert list(plan(algorithms=us.recommend.Popularity()).systems) == ["popularity"]
    assert label_of(us.recommend.OptimalTrue(truth=WORLD)) == "optimal-true"
    assert len(plan(algorithms=unskew_studies.preset("valcarce2018")).systems) == 21


def test_metrics_as_values():
    metrics = {"nDCG@5": parse("nDCG@5"), "P@5": parse("P@5")}
    assert plan(metrics=[parse("nDCG@5"), "P@5"]).metrics == metrics
    assert plan(metrics=metrics).metrics == metrics


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"algorithms": []}, "algorithms is empty"),
        (
            {"algorithms": [us.recommend.Popularity(), us.recommend.Popularity()]},
            "two systems are called",
        ),
        ({"algorithms": "popularity"}, "a plan holds algorithms"),
        ({"algorithms": 3}, "a plan holds algorithms"),
        ({"split": "random"}, r"split cannot be 'random'; give .*splits.Random"),
        ({"split": [us.targets.AllItems()]}, "split cannot hold AllItems"),
        ({"targets": None}, "targets cannot be None"),
        ({"targets": []}, "targets is empty"),
        (
            {"targets": [us.targets.AllItems(), us.targets.AllItems()]},
            r"targets holds AllItems\(\) twice",
        ),
        ({"split": [us.splits.LeaveOut(1), us.splits.LeaveOut(1)]}, "twice"),
        ({"metrics": []}, "metrics is empty"),
        ({"metrics": 5}, "metrics cannot be 5"),
        ({"metrics": ["P@5", 5]}, "metrics cannot hold 5"),
        ({"metrics": ["Pp@5"]}, "Did you mean"),
        ({"metrics": ["P@5", "P@5"]}, "'P@5' twice"),
        ({"metrics": ["Coverage"]}, "Coverage needs a cutoff.*Coverage@10"),
        ({"relevance": 4}, "relevance must be us.Relevance"),
        ({"interventions": [us.targets.AllItems()]}, "interventions cannot hold"),
        ({"judgments": []}, "judgments is empty"),
        ({"users": "with-tests"}, "Did you mean 'with-test'"),
        ({"undefined": "nil"}, "unknown undefined"),
        ({"ties": "trec"}, "unknown ties"),
        ({"draws": 0}, "draws must be a whole number from 1 up"),
        ({"judged_users": 0}, "judged_users must be a whole number from 1 up"),
        ({"seed": -1}, "seed must be a whole number from 0 up"),
        ({"seed": "7"}, "seed must be a whole number"),
    ],
)
def test_what_a_plan_refuses(settings, message):
    with pytest.raises(SettingError, match=message):
        plan(**settings)


# Keys

BASE = {
    "split": us.splits.Random(test=0.3),
    "targets": [us.targets.AllItems()],
    "algorithms": {"one": us.recommend.UserKNN(k=5)},
    "relevance": us.Relevance(liked=4),
    "metrics": ["P@5", "nDCG@5"],
    "interventions": [us.splits.Skew()],
    "judgments": "test",
    "seed": 1,
}

CHANGES = {
    "split": [
        us.splits.Random(test=0.25),
        us.splits.Random(test=0.3, exact=True),
        us.splits.PerUser(0.3),
    ],
    "targets": [
        us.targets.TestItems(),
        us.targets.AllItems(others=5),
        us.targets.AllItems(shortfall="fill"),
        us.targets.Targets(candidates=(1, 2, 3)),
        us.targets.AllItems(others=5, shortage="skip"),
    ],
    "algorithms": [
        {"one": us.recommend.UserKNN(k=6)},
        {"one": us.recommend.UserKNN(k=5, power=2.0)},
        {"one": us.recommend.ItemKNN(k=5)},
        {"one": us.experiment.Custom("knn", simple, version=1)},
    ],
    "relevance": [
        us.Relevance(liked=5),
        us.Relevance(above=4),
        us.Relevance(liked=4, gain="binary"),
        us.Relevance(liked=4, loss="binary"),
        us.Relevance(liked=4, gain={1.0: 0.0, 4.0: 1.0}),
    ],
    "metrics": [["P@5"], ["P@5", "nDCG@6"], ["nDCG@5", "P@5"], ["P_5", "nDCG@5"]],
    "interventions": [
        (),
        [us.splits.Skew(size=0.4)],
        [us.splits.Skew(exponent=2.0)],
        [us.splits.Reg()],
    ],
    "judgments": ["true"],
    "ties": ["random"],
    "draws": [11],
    "seed": [2],
    "judged_users": [3, 4],
    "filters": [[us.data.SampleUsers(share=0.5)]],
}
SAME = {"users": ["all"], "undefined": ["skip"]}


def test_every_field_of_a_plan_is_walked():
    assert {one.name for one in dataclasses.fields(Plan)} == {*CHANGES, *SAME}


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_a_result_changes_its_key(name):
    base = Plan(**BASE)
    keys = keys_of(base, WORLD)
    assert len(keys) == 2  # the lists, and one system
    everything = {base.key}
    for value in CHANGES[name]:
        other = Plan(**{**BASE, name: value})
        applied = PlanData.of(WORLD, other)  # filters change the data
        shared = keys & keys_of(applied.plan, applied.data)
        # Lists do not depend on systems and ties, systems not on how often chance is drawn.
        assert len(shared) == (1 if name in ("algorithms", "ties", "draws") else 0), value
        everything.add(other.key)
    assert len(everything) == 1 + len(CHANGES[name])


@pytest.mark.parametrize("name", SAME)
def test_what_changes_no_result_changes_no_key(name):
    for value in SAME[name]:
        other = Plan(**{**BASE, name: value})
        assert keys_of(other, WORLD) == keys_of(Plan(**BASE), WORLD)
        assert other != Plan(**BASE)


def test_neither_labels_nor_neighbours_change_a_key():
    base = keys_of(Plan(**BASE), WORLD)
    assert (
        keys_of(Plan(**{**BASE, "algorithms": {"other": us.recommend.UserKNN(k=5)}}), WORLD) == base
    )
    several = Plan(
        **{
            **BASE,
            "split": [us.splits.LeaveOut(1), BASE["split"]],
            "targets": [us.targets.TestItems(), us.targets.AllItems()],
            "algorithms": [us.recommend.Random(), us.recommend.UserKNN(k=5)],
            "interventions": [us.splits.Full(), us.splits.Skew()],
        }
    )
    assert base < keys_of(several, WORLD)


def test_data_is_part_of_a_key():
    base = keys_of(Plan(**BASE), WORLD)
    frame = WORLD.to_polars()
    rows = np.random.default_rng(0).permutation(frame.height)
    shuffled = us.read_ratings(frame[rows], tags=["familiar"])
    assert keys_of(Plan(**BASE), shuffled) == base
    for column, value in (
        ("rating", pl.col("rating") % 5 + 1),
        ("familiar", ~pl.col("familiar")),
        ("item", pl.col("item") + 100),
    ):
        other = us.read_ratings(frame.with_columns(value.alias(column)), tags=["familiar"])
        assert not keys_of(Plan(**BASE), other) & base, column
    later = us.read_ratings(
        frame.with_columns(pl.col("time").dt.offset_by("1s")), tags=["familiar"]
    )
    assert not keys_of(Plan(**BASE), later) & base


def test_ratings_in_a_plan_stand_in_its_key():
    other = world(seed=6)
    one, two = (plan(split=us.splits.Forced(part)) for part in (WORLD, other))
    assert one != two
    assert plan(algorithms=[us.recommend.OptimalTrue(WORLD)]) != plan(
        algorithms=[us.recommend.OptimalTrue(other)]
    )


# The stages


def digest(*arrays):
    import hashlib

    mixed = hashlib.blake2b(digest_size=8)
    for array in arrays:
        plain = np.asarray(array)
        if plain.dtype.kind == "f":  # the last bits belong to a processor, not to a version
            plain = np.round(plain, 9) + 0.0
        mixed.update(np.ascontiguousarray(plain).tobytes())
    return mixed.hexdigest()


def stage_digests():
    """Return a digest of what each stage makes of a tiny world."""
    split = us.splits.Random(folds=2).split(WORLD, seed=3)[1]
    user = us.splits.PerUser(test=0.3).split(WORLD, seed=3)[0]
    even = us.splits.Uniform(test=0.2).split(WORLD, seed=3)[0]
    rule = us.Relevance(liked=4, gain="rating")
    drawn = [
        one.sample(split.test, split.train, seed=3).ratings
        for one in (us.splits.Skew(), us.splits.WtdH())
    ]
    lists = us.targets.OneRelevant(others=5).lists(split, rule, seed=3)
    some = us.targets.TestItems(others=6).lists(split, rule, seed=3)
    fixed = np.outer(np.arange(1, 41), np.arange(1, 31)) * 7 % 11 * 1.0
    everyone = np.arange(40, dtype=np.int32)
    models = [
        us.recommend.Popularity().fit(split.train),
        us.recommend.UserKNN(k=5).fit(split.train),
    ]
    run = us.rank(fixed, some, 8)
    tied = us.rank(fixed, some, 8, ties="random", seed=3)
    names = ["P@5", "Recall@5", "nDCG@5", "anti-P@5", "bpref", "RR", "AP", "RBP@5"]
    scores = us.evaluate(some, {"fixed": fixed}, names)
    wanted = {name: parse(name) for name in names}
    chance, _ = chance_scores(Judged.of_lists(some, {}), wanted, draws=3, seed=3)
    return {
        "split": digest(
            *(
                part
                for one in (split, user, even)
                for part in (one.train.user, one.train.item, one.test.user, one.test.item)
            )
        ),
        "intervene": digest(*(part for one in drawn for part in (one.user, one.item))),
        "targets": digest(
            lists.user, lists.anchor, *lists.block(0, len(lists)), *some.block(0, len(some))
        ),
        "fit": digest(*(model.score(everyone) for model in models)),
        "rank": digest(run.item, tied.item),
        "metrics": digest(next(iter(scores.systems.values())).values),
        "chance": digest(chance.values),
    }


STAGE_DIGESTS = {
    "split": (1, "4506a3afb92c7521"),
    "intervene": (1, "61f067c7de6616d3"),
    "targets": (1, "1594792e740e20e8"),
    "fit": (3, "e973353206115ff3"),
    "rank": (2, "8e4e447ab7f09b08"),
    "metrics": (1, "621240e543811299"),
    "chance": (1, "e5105f94d4f3b654"),
}


def test_a_change_of_a_stage_needs_a_new_version():
    found = {name: (STAGES[name], value) for name, value in stage_digests().items()}
    assert set(found) == set(STAGES)
    changed = [name for name, pair in found.items() if STAGE_DIGESTS.get(name) != pair]
    assert not changed, (
        f"{', '.join(changed)}: computes something else than before. If that is meant, raise its "
        f"number in STAGES (experiment/plan.py), so that no stored result of the old code is taken "
        f"for one of the new, and write the new digest here: {found}"
    )


# From a card


@pytest.mark.parametrize(
    "made",
    [
        plan(),
        Plan(**BASE),
        plan(
            split=[
                us.splits.Random(folds=3),
                us.splits.Uniform(test=0.1),
                us.splits.LeaveOut(2),
                us.splits.HeadRemoved(of=us.splits.PerUser(0.4)),
                us.splits.Temporal(at="2003-01-01"),
                us.splits.FamiliarTraining("familiar"),
                us.splits.Given(column="fold"),
            ],
            targets=[
                us.targets.TestItems(),
                us.targets.OneRelevant(others=7),
                us.targets.Percentiles(),
                us.targets.TestTargets("fill"),
                us.targets.UserFlat(5),
                us.targets.Targets(candidates=(1, 2)),
                us.targets.AllItems(5, by="popularity"),
            ],
            interventions=[
                us.splits.Full(),
                us.splits.Reg(),
                us.splits.Skew(exponent=0.5),
                us.splits.WtdH(),
            ],
            judgments=["observed", "true"],
            relevance=us.Relevance(above=3, gain={1.0: 0.0, 5.0: 2.0}, loss="binary"),
            users="all",
            undefined="skip",
            ties="random",
            draws=3,
            seed=9,
            metrics=["P@5", "SR(gamma=1)@10"],
        ),
        plan(algorithms={name: algorithm(name) for name in EVERYONE}),
        plan(relevance=us.Relevance.paper("carraro2020")),
    ],
)
def test_the_way_back_from_a_card(made):
    card = json.loads(json.dumps(made.describe()))
    assert plan_from_card(card) == made
    assert plan_from_card({"plan": card, "fold": 1}) == made


def test_a_card_of_an_earlier_default_keeps_its_gain():
    """Cards and keys always name the gain, so that no stored result changes its meaning."""
    card = plan().describe()
    assert card["relevance"] == {"liked": 4.0, "gain": "liked-only", "loss": "levels"}
    earlier = {**card, "relevance": {**card["relevance"], "gain": "rating"}}
    assert plan_from_card(earlier).relevance == us.Relevance(liked=4, gain="rating")
    assert plan_from_card(earlier) != plan()


def test_cards_with_ratings_or_functions_of_their_own():
    made = plan(split=us.splits.Forced(WORLD), algorithms=[us.recommend.OptimalTrue(WORLD)])
    with pytest.raises(SettingError, match="needs further ratings"):
        plan_from_card(made.describe())
    assert plan_from_card(made.describe(), [WORLD]) == made
    with pytest.raises(SettingError, match="code outside this library"):
        plan_from_card(plan(algorithms=[us.experiment.Custom("mine", simple, 1)]).describe())


# In TOML

TOML = """
seed = 7
metrics = ["P@5", "nDCG@5"]
users = "with-relevant"
undefined = "skip"
ties = "random"
draws = 4
judgments = ["test"]

[data]
file = "ratings.csv"
time = "time"

[relevance]
liked = 4
gain = { 1 = 0, 2 = 0, 3 = 0, 4 = 1, 5 = 2 }
loss = "binary"

[[split]]
protocol = "random"
folds = 2

[[split]]
protocol = "head-removed"
share = 0.1
of = { protocol = "user", test = 0.3 }

[[targets]]
design = "test-items"

[[targets]]
design = "one-relevant"
others = 5
candidates = "all"

[[targets]]
design = "targets"
candidates = [1, 2, 3]

[[intervention]]
kind = "full"

[[intervention]]
kind = "skew"
exponent = 0.5

[[algorithm]]
name = "popularity"

[[algorithm]]
name = "user-knn"
k = [5, 10]
power = [1.0, 2.0]

[[algorithm]]
name = "item-knn"
label = "items"
k = 4

[[algorithm]]
name = "item-knn"
label = "grid"
k = [2, 3]
min_support = 2
"""
IN_PYTHON = Plan(
    split=[
        us.splits.Random(folds=2),
        us.splits.HeadRemoved(share=0.1, of=us.splits.PerUser(test=0.3)),
    ],
    targets=[
        us.targets.TestItems(),
        us.targets.OneRelevant(others=5, candidates="all"),
        us.targets.Targets(candidates=(1, 2, 3)),
    ],
    interventions=[us.splits.Full(), us.splits.Skew(exponent=0.5)],
    algorithms={
        "popularity": us.recommend.Popularity(),
        "user-knn k=5": us.recommend.UserKNN(k=5),
        "user-knn k=5 power=2.0": us.recommend.UserKNN(k=5, power=2.0),
        "user-knn k=10": us.recommend.UserKNN(k=10),
        "user-knn k=10 power=2.0": us.recommend.UserKNN(k=10, power=2.0),
        "items": us.recommend.ItemKNN(k=4),
        "grid k=2": us.recommend.ItemKNN(k=2, min_support=2),
        "grid k=3": us.recommend.ItemKNN(k=3, min_support=2),
    },
    relevance=us.Relevance(
        liked=4, gain={1.0: 0.0, 2.0: 0.0, 3.0: 0.0, 4.0: 1.0, 5.0: 2.0}, loss="binary"
    ),
    metrics=["P@5", "nDCG@5"],
    users="with-relevant",
    undefined="skip",
    ties="random",
    draws=4,
    seed=7,
)


def toml(tmp_path, text):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    return path


def test_a_file_says_the_same_as_python(tmp_path):
    read, data = us.read_plan(toml(tmp_path, TOML))
    assert read.describe() == IN_PYTHON.describe()
    assert read == IN_PYTHON
    assert data == {"file": "ratings.csv", "time": "time"}


def test_defaults_are_those_of_python(tmp_path):
    read, data = us.read_plan(toml(tmp_path, '[[algorithm]]\nname = "popularity"\n'))
    assert read == Plan(algorithms=[us.recommend.Popularity()])
    assert data == {}


def test_single_tables_and_papers(tmp_path):
    text = """
        metrics = "P@5"
        relevance = "bellogin2017"
        [split]
        protocol = "temporal"
        at = 2003-01-01
        [targets]
        design = "test-targets"
        [algorithm]
        name = "random"
    """
    read, _ = us.read_plan(toml(tmp_path, text))
    assert read.relevance == us.Relevance.paper("bellogin2017")
    assert read.splits == (us.splits.Temporal(at="2003-01-01"),)
    assert read.designs == (us.targets.TestTargets(),)


ALGORITHM = '[[algorithm]]\nname = "popularity"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sed = 1", "unknown key 'sed'. Did you mean 'seed'"),
        ("[data]\nfiel = 'x'", "unknown key of .data. 'fiel'. Did you mean 'file'"),
        ("[relevance]\nlikd = 4", "unknown key of .relevance. 'likd'. Did you mean 'liked'"),
        ("[[split]]\nprotocl = 'random'", "needs protocol = …, one of random"),
        ("[[split]]\nprotocol = 'randon'", "Did you mean 'random'"),
        ("[[split]]\nprotocol = 'random'\nfold = 5", "unknown setting of random 'fold'.*'folds'"),
        (
            "[[split]]\nprotocol = 'head-removed'\nof = {protocol = 'user', tset = 0.1}",
            "setting of user 'tset'. Did you mean 'test'",
        ),
        ("[[targets]]\ndesign = 'test-item'", "Did you mean 'test-items'"),
        ("[[targets]]\nothers = 5", "needs design ="),
        ("[[targets]]\ndesign = 'all-items'\nother = 5", "setting of all-items 'other'.*'others'"),
        ("[[targets]]\ndesign = 'all-items'\ncandidates = 'test'", "targets.*candidates"),
        ("[[targets]]\ndesign = 'user-flat'", "user-flat.*others"),
        ("[[intervention]]\nkind = 'skw'", "Did you mean 'skew'"),
        ("[[intervention]]\nsize = 0.5", "needs kind ="),
        ("[[intervention]]\nkind = 'skew'\nsise = 0.5", "setting of skew 'sise'.*'size'"),
        ("[[algorithm]]\nname = 'user-kn'", "Did you mean 'user-knn'"),
        ("[[algorithm]]\nk = 5", "needs name ="),
        ("[[algorithm]]\nname = 'user-knn'\nK = 5", "setting of user-knn 'K'. Did you mean 'k'"),
        ("[[algorithm]]\nname = 'user-knn'\nk = []", "k is an empty list"),
        ("[[algorithm]]\nname = 'user-knn'\nk = 'x'", "k must be a whole number"),
        ("[[algorithm]]\nname = 'user-knn'\nlabel = 5", "label must be text"),
        ("[[algorithm]]\nname = 'popularity'", "two systems are called 'popularity'"),
        ("[[algorithm]]\nname = 'user-knn'\nk = [5, 5]", "two systems are called"),
        ("seed = 1.5", "seed must be a whole number"),
        ("metrics = 5", "metrics cannot be 5"),
        ("metrics = ['P@0']", "P@0"),
        ("data = 'ratings.csv'", r"\[data\] must be a table"),
        ("split = 5", r"\[\[split\]\] must be tables"),
        ("relevance = 4", "must be a table or the name of a paper"),
        ("relevance = 'belogin2017'", "Did you mean 'bellogin2017'"),
        ("[relevance]\nliked = '4'", "liked must be a number"),
        ("[relevance]\nliked = true", "liked must be a number"),
        ("[relevance]\nliked = 4\ngain = {x = 1}", "gain must give numbers"),
        ("[relevance]\nliked = 4\ngain = 3", "unknown gain"),
        ("[relevance]\ngain = 'binary'", "either liked=4"),
        ("users = 5", "unknown users"),
        ("[[split]]\nprotocol = 'random'\ntest = 'x'", "test must be a share"),
        ("[[split]]\nprotocol = 'head-removed'\nof = 5", "of must be a table"),
        ("seed = ", "not valid TOML"),
    ],
)
def test_what_a_file_must_not_say(tmp_path, text, message):
    inner = text.startswith("[")
    path = toml(tmp_path, f"{ALGORITHM}{text}\n" if inner else f"{text}\n{ALGORITHM}")
    with pytest.raises(SettingError, match=message) as problem:
        us.read_plan(path)
    assert "plan.toml" in str(problem.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SettingError, match=r"missing.toml: cannot be read \(No such file"):
        us.read_plan(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"seed = 1 # \xe9\n")
    with pytest.raises(SettingError, match="not valid TOML"):
        us.read_plan(tmp_path / "latin.toml")
    with pytest.raises(SettingError, match="algorithms is empty"):
        us.read_plan(toml(tmp_path, ""))
    with pytest.raises(UnknownName):
        plan_of({"sead": 1})


# plan check


@pytest.fixture
def files(tmp_path):
    frame = WORLD.to_polars().select("user", "item", "rating", pl.col("time").dt.epoch("s"))
    frame.write_csv(tmp_path / "ratings.csv")
    toml(tmp_path, TOML)
    return tmp_path


def test_check_tells_what_a_plan_will_do(files, call):
    code, out, _ = call("plan", "check", files / "plan.toml")
    assert code == 0
    assert "Random(" in out
    assert "HeadRemoved" in out
    assert re.search(r"design +TestItems\(\), after Skew", out)
    assert re.search(r"system +user-knn k=5 power=2.0 +about [\d.]+ s a split", out)
    assert "metrics  2" in out
    # 2 + 1 splits, 8 systems and the lists; 3 designs under 2 interventions.
    assert "27 tasks, 0 of them done; 162 results" in out
    assert re.search(r"about [\d,]+ s of processor time to train and to score", out)
    assert re.search(r"about [\d,]+ MiB in each process", out)


def test_check_counts_what_is_done_and_makes_nothing(files, call):
    text = TOML[: TOML.index("[[algorithm]]")] + ALGORITHM
    path = toml(files, text)
    arguments = ("plan", "check", path, "--store", files / "results", "--no-estimate")
    assert "6 tasks, 0 of them done" in call(*arguments)[1]
    assert not (files / "results").exists()
    assert call("run", path, "--store", files / "results", "-q")[0] == 0
    code, out, _ = call(*arguments)
    assert code == 0
    assert "6 tasks, 6 of them done" in out
    assert "about" not in out.splitlines()[-2]


def test_check_explains_errors(files, call):
    code, _, err = call("plan", "check", toml(files, "sed = 1"))
    assert code == 2
    assert "Did you mean 'seed'" in err
    code, _, err = call("plan", "check", toml(files, ALGORITHM))
    assert code == 2
    assert "names no data" in err
    code, out, _ = call(
        "plan", "check", toml(files, ALGORITHM), "--data", files / "ratings.csv", "--no-estimate"
    )
    assert code == 0
    assert "2 tasks" in out
    code, _, err = call("plan", "check", toml(files, ALGORITHM + "[data]\nfile = 'none.csv'"))
    assert code in (1, 2)
    assert "none.csv" in err


@pytest.mark.parametrize(
    "command",
    [
        ["run"],
        ["plan"],
        ["plan", "check"],
        ["store"],
        ["store", "ls"],
        ["store", "verify"],
        ["store", "gc"],
    ],
)
def test_help(command, call):
    code, out, _ = call(*command, "--help")
    assert code == 0
    assert "Usage" in out
    if command not in (["plan"], ["store"]):
        assert "Examples" in out
        assert f"unskew {' '.join(command)} " in out


def test_outline_in_python():
    told = us.experiment.outline(
        plan(algorithms=[us.recommend.Popularity(), us.recommend.Random()]), WORLD
    )
    assert told.tasks == 3
    assert set(told.seconds) == {"popularity", "random"}
    assert "popularity" in str(told)
    assert not us.experiment.outline(plan(), WORLD, estimate=False).seconds


def test_the_documentation_names_every_key():
    page = (ROOT / "docs" / "experiments.md").read_text()
    from unskew.experiment import plan_files as module

    for key in (*module._TOP, *module._DATA, *module.TARGETS):
        assert f"`{key}`" in page or f"\n{key} = " in page or f"[{key}]" in page, key
