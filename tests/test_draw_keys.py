"""Seeds follow from frozen keys: a class or a setting can be renamed, and no number moves."""

import hashlib
from dataclasses import field, fields, make_dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import unskew as us
from unskew.auditing.null.null_designs import ForcedNull, Slices
from unskew.recommend.model import Algorithm
from unskew.recommend.registry import ALGORITHMS, IN_STUDIES, algorithm_class
from unskew.splits.interventions import DESIGNS
from unskew.splits.saved import PROTOCOLS

RANDOM = us.read_ratings({"user": [1, 1, 2], "item": [1, 2, 3], "rating": [5, 1, 4]})
NEEDED = {
    us.splits.Forced: {"random": RANDOM},
    us.splits.Given: {"column": "part"},
    us.splits.ModelAges: {"step": "7d"},
    us.experiment.Custom: {"label": "mine", "function": print, "version": 2},
}
KINDS = [
    *ALGORITHMS.values(), *map(algorithm_class, IN_STUDIES), us.experiment.Custom,
    *PROTOCOLS.values(), ForcedNull, Slices, *DESIGNS.values(), us.targets.Targets,
]  # fmt: skip

# Never to be changed: who renames a class or a setting states the old name in `draw_name` or in
# `draw_settings`, who adds a setting names it in `draw_omit_default`.
FROZEN = {
    "algorithm random": "d0f96178a1f53b7c",
    "algorithm popularity": "643d17197b1fd1f1",
    "algorithm recent-popularity": "36a93c0504d9a4e4",
    "algorithm positive-popularity": "3c6c0ebc115d29e1",
    "algorithm average-rating": "6d79ec669deb9834",
    "algorithm smoothed-average": "78648b22aa242dcf",
    "algorithm optimal-precision": "7c2bb43a9dbf0436",
    "algorithm optimal-anti-precision": "172b98c95c90a322",
    "algorithm optimal-true": "122b4a114a2d9f88",
    "algorithm user-knn": "dd03ae4de67d85a0",
    "algorithm item-knn": "5ef4280c71e489c5",
    "algorithm recent-item-knn": "c556eb5ebbfe3575",
    "algorithm markov-chain": "8eff4db02f8fb9a1",
    "algorithm nncosngbr-ub": "833b12d0935f92f0",
    "algorithm nncosngbr-ib": "b6b15bbf8713dd4d",
    "algorithm rw": "f0bf6899832c320a",
    "algorithm rsv": "4a7739a9b9231a53",
    "algorithm chi2": "e57dbf6b4cac45c0",
    "algorithm kld": "2e3d691f4f985487",
    "algorithm rm1": "346c1c1ccb20aab4",
    "algorithm rm2": "be943ed1e2687cdf",
    "algorithm lm-wsr-ub": "4a9699b336443de9",
    "algorithm lm-wsr-ib": "df9cdc9833eb4c18",
    "algorithm uir": "5c7501d8410b64e7",
    "algorithm hitting-time": "d273cdbdc14aa4ae",
    "algorithm slim": "d30e919b8c49cc45",
    "algorithm ease": "8e2c3fd02d305a27",
    "algorithm puresvd": "93546d4f2bc5ee3b",
    "algorithm wrmf": "b4ac6373804f37a6",
    "algorithm bprmf": "74d54f3ffbdc0b46",
    "algorithm svd": "3b8b9769ca4896c9",
    "algorithm biased-mf": "67c1dd43da748b16",
    "algorithm plsa": "7752c9399f60a300",
    "algorithm lda": "6d198feead785d3d",
    "algorithm pzt": "59facd1d4c082eb1",
    "algorithm eals": "2dc7e7aa92a18878",
    "algorithm pnmf": "a20ff998f33c5121",
    "algorithm hpf": "90341930f56e7f1c",
    "algorithm gaussian-plsa": "d61a012074977577",
    "algorithm librec-user-knn": "d191dbf9f7c644e2",
    "algorithm librec-item-knn": "996bc4bbfa05b434",
    "algorithm librec-slim": "bc574db319179583",
    "algorithm svdpp": "5ba983d36dc537dd",
    "algorithm wbpr": "ee6e586f05989c41",
    "algorithm gbpr": "e34ec561036282c5",
    "algorithm rank-sgd": "b32c748af8f12a21",
    "algorithm list-rank-mf": "0d55f13081258f88",
    "algorithm with-fallback": "b0f0adbaae957a6e",
    "algorithm custom": "58af40fcbadb2c6d",
    "protocol random": "6a376ab7ff9beb94",
    "protocol user": "9e6792f4ee0acb0e",
    "protocol leave-out": "027146da06501f2a",
    "protocol temporal": "4f3a047ada3430a5",
    "protocol events": "012e8346f3365f1a",
    "protocol windows": "679b2fa513ec3b48",
    "protocol ages": "3db178b051323351",
    "protocol sessions": "60785a57085c0f90",
    "protocol uniform": "905b710816b1ac59",
    "protocol flat": "9752f9c02fea16da",
    "protocol head-removed": "2e8d38fa56585d84",
    "protocol forced": "f85e6b5dfb5d9a01",
    "protocol familiar": "3133651d418b673e",
    "protocol given": "ee61aae8031fc85e",
    "protocol forced-null": "7aa2a3f60fc52db3",
    "protocol slices": "98bf4767751e73d3",
    "kind full": "93220ba987b0770b",
    "kind reg": "b6fdfe2336bca278",
    "kind skew": "c13b10f2ef023137",
    "kind wtd": "5f58338df97f2762",
    "kind wtd-h": "60590d0429839e24",
    "targets targets": "2d5bf14b07a3b903",
    "exact": "9a10c5d110959c5c",
    "with truth": "c8e41dceb2bd85c2",
    "nested": "d6d14592d5c8ba3f",
    "moment": "232083d4e70af4df",
}


def name_of(kind):
    return f"{kind.draw_entry or 'targets'} {kind.draw_name}"


def examples():
    """Return every kind with its defaults, and what is special, by names that are frozen too."""
    made = {name_of(kind): kind(**NEEDED.get(kind, {})) for kind in KINDS}
    return made | {
        "exact": us.targets.OneRelevant(others=9, exact=True),
        "with truth": us.recommend.OptimalTrue(truth=RANDOM),
        "nested": us.splits.HeadRemoved(of=us.splits.Random(folds=2)),
        "moment": us.splits.Temporal(at="2002-06-01"),
    }


def hashed(key):
    """Return the hash of a key as text: of the names, the values and their order."""
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_contract_every_class_states_its_own_frozen_name(kind):
    assert isinstance(vars(kind).get("draw_name"), str)
    assert kind.draw_name_of() == kind.draw_name
    settings = {one.name for one in fields(kind)}
    assert set(kind.draw_settings) <= settings
    assert kind.draw_omit_default <= settings


def test_frozen_names_differ():
    assert len({name_of(kind) for kind in KINDS}) == len(KINDS)


def test_keys_are_what_they_always_were():
    now = {name: hashed(one.draw_key) for name, one in examples().items()}
    assert {name: now.get(name) for name in FROZEN} == FROZEN
    assert now.keys() == FROZEN.keys(), "state the key of what is new here"


def renamed(kind, settings, **more):
    """Return a twin of an algorithm whose class and settings have other names."""
    old = {settings.get(one.name, one.name): one.name for one in fields(kind)}

    def fit(self, train, rng):
        return kind(**{name: getattr(self, now) for now, name in old.items()}).learn(train, rng)

    parts = [
        (settings.get(one.name, one.name), Any, field(default=one.default)) for one in fields(kind)
    ]
    return make_dataclass(
        "Twin", [*parts, *more.get("added", [])], bases=(Algorithm,), frozen=True,
        namespace={
            "learn": fit, "name": "twin", "draw_name": kind.draw_name,
            "draw_settings": {now: name for now, name in old.items() if now != name},
            "draw_omit_default": frozenset(name for name, *_ in more.get("added", [])),
            "__annotations__": {"name": ClassVar[str]},
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def ratings():
    rng = np.random.default_rng(1)
    user, item = np.nonzero(rng.random((30, 25)) < 0.4)
    return us.read_ratings({"user": user, "item": item, "rating": rng.integers(1, 6, user.size)})


@pytest.fixture(scope="module")
def twins():
    settings = {"factors": "dimensions", "iterations": "rounds"}
    twin = renamed(us.recommend.WRMF, settings, added=[("later", int, field(default=0))])
    return us.recommend.WRMF(factors=3, iterations=2), twin(dimensions=3, rounds=2)


def scores(model):
    return model.score(np.arange(30, dtype=np.int32)).tobytes()


def test_renamed_settings_have_the_same_key(twins):
    assert twins[0].describe() != twins[1].describe()
    assert repr(twins[0].draw_key) == repr(twins[1].draw_key)
    later = type(twins[1])(dimensions=3, rounds=2, later=1)
    assert later.draw_key == {**twins[0].draw_key, "later": 1}


def test_renamed_settings_give_the_same_fit(twins, ratings):
    assert scores(twins[0].fit(ratings, 4)) == scores(twins[1].fit(ratings, 4))
    assert scores(twins[0].fit(ratings, 4)) != scores(twins[0].fit(ratings, 5))


def test_renamed_settings_give_the_same_results(twins, ratings):
    made = []
    for one in twins:
        plan = us.Plan(
            algorithms={"one": one}, metrics=("P@5", "nDCG@10"), split=us.splits.Random(folds=2)
        )
        made.append(us.run_plan(ratings, plan).table())
    assert made[0].equals(made[1])


def test_renamed_settings_give_the_same_truth_and_online_tests(twins):
    shop = us.world("shop", users=40, items=30, seed=1)
    plans = [us.Plan(algorithms={"one": one}, metrics=("P@5",), seed=2) for one in twins]
    true = [us.auditing.truth(shop, plan, resamples=0).table() for plan in plans]
    assert true[0].equals(true[1])
    tests = [
        us.online.ab_test(shop, [one, us.recommend.Random()], 200, k=5, seed=3) for one in twins
    ]
    plain = [one.rows.drop("system") for one in tests]
    assert plain[0].equals(plain[1])


def test_a_class_of_ones_own_without_a_frozen_name_goes_by_its_name():
    own = make_dataclass(
        "Own", [], bases=(us.recommend.Popularity,), frozen=True, namespace={"name": "own"}
    )
    same = make_dataclass("Same", [], bases=(us.recommend.Popularity,), frozen=True)
    assert own().draw_key == own().describe() == {"algorithm": "own"}
    assert same().draw_key == us.recommend.Popularity().draw_key
