"""Every metric of judged hits against its plain twin, and the properties they must have."""

import math
import tracemalloc
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expi

import unskew as us
from shared import plain
from shared.cases import as_ratings, quiet, random_case
from unskew.metrics.block import sum_of_discounts
from unskew.metrics.names import REGISTRY, parse

LIKED = 3
CUTOFFS = (1, 3, 5, 20)
JUDGED = [name for name, entry in REGISTRY.items() if entry.of == "judged"]
VARIANTS = [
    "P(per=list)", "condensed-P(per=k)", "P(bound=upper)", "P(bound=lower)", "Recall(per=min)",
    "F1(per=list)",
    "AP(per=min)", "AP(per=k)", "AP(per=list)", "nDCG(ideal=uncut)", "nDCG(discount=original)",
    "DCG(discount=original)", "RBP(p=0.5)", "RBPresidual(p=0.95)", "infAP(pool=all)",
    "infAP(pool=judged)",
    "SR(gamma=0)", "SR(gamma=3)", "SR(mean=ratio)", "HLU(mean=users)",
    "HLU(halflife=2,weight=popularity,mean=users)", "nDCL(ideal=best)", "anti-nDCG",
]  # fmt: skip


def cases(qrels, run, order, liked=LIKED):
    """Return each user's plain case, with lists in the order that unskew gave them."""
    positives: dict = {}
    for judged in qrels.values():
        for i, g in judged.items():
            positives[i] = positives.get(i, 0) + (g >= liked)
    for i in positives:
        positives[i] = max(positives[i], 1)
    items = {i for judged in qrels.values() for i in judged}
    result = {}
    for u in sorted(set(qrels) | set(run)):
        grades = {i: g for i, g in qrels.get(u, {}).items() if g >= 0}
        result[u] = plain.Case(
            items=order.get(u, []),
            good={i for i, g in grades.items() if g >= liked},
            bad={i for i, g in grades.items() if g < liked},
            gain=dict(grades),
            loss={i: max(liked - g, 0) for i, g in grades.items()},
            pooled={i for i, g in qrels.get(u, {}).items() if g < 0},
            positives=positives,
            targets=len(items),
            marks_pool=any(g < 0 for judged in qrels.values() for g in judged.values()),
        )
    return result


def lists_of(run):
    """Return each user's items in rank order."""
    frame = us.read_run(run, ties="trec").to_polars()
    return {u: g["item"].to_list() for (u,), g in frame.group_by(["user"], maintain_order=True)}


def twin(metric, case, top_gain):
    """Return the plain value of a metric."""
    params = dict(metric.params)
    if params.get("ideal") == "full":
        params["top_gain"] = top_gain
    if params.get("bound") == "lower":
        params["bound"] = "none"
    case = case.condensed() if metric.condensed else case
    case = case.anti() if metric.anti else case
    return getattr(plain, metric.name)(case, metric.cutoff, **params)


def compare(metrics, seed):
    qrels, run = random_case(seed)
    order = lists_of(run)
    inside = {i for judged in qrels.values() for i in judged}
    if any(parse(m).name == "AUC" for m in metrics):  # every listed item must be a target
        run = {u: {i: s for i, s in items.items() if i in inside} for u, items in run.items()}
        run = {u: items for u, items in run.items() if items}
        order = lists_of(run)
    scores = quiet(as_ratings(qrels), run, metrics, gain="rating")
    frame = scores.per_user()
    by_user = cases(qrels, run, order)
    top = {False: max([*(g for c in by_user.values() for g in c.gain.values()), 0]),
           True: max([*(g for c in by_user.values() for g in c.loss.values()), 0])}  # fmt: skip
    for text in metrics:
        metric = parse(text)
        for u, value in zip(frame["user"], frame[text], strict=True):
            want = twin(metric, by_user[u], top[metric.anti])
            if isinstance(want, tuple):
                den = frame.filter(frame["user"] == u)[f"{text}/den"][0]
                assert den == pytest.approx(want[1], abs=1e-12)
                want = want[0]
            if metric.name in ("Judged", "Residual") and math.isnan(want):
                want = 0.0 if metric.name == "Judged" else 1.0
            assert value == pytest.approx(want, abs=1e-12, nan_ok=True), (text, u, seed)


def with_forms(names):
    for name in names:
        metric = parse(name)
        yield metric
        if metric.definition.anti:
            yield parse(f"anti-{name}") if not metric.anti else metric
        if (
            "bound" not in name and not metric.condensed
        ):  # a condensed list has no unjudged items to bound
            yield parse(f"condensed-{name}")


FORMS = sorted({str(m) for m in with_forms([*JUDGED, *VARIANTS])})


@pytest.mark.parametrize("form", FORMS)
def test_equals_its_plain_twin(form):
    for seed in range(12):
        compare([form, *(f"{form}@{k}" for k in CUTOFFS)], seed)


def test_full_ideal_equals_its_plain_twin():
    for seed in range(12):
        compare(["nDCG(ideal=full)@3", "anti-nDCG(ideal=full)@5"], seed)


@given(st.integers(0, 10_000))
def test_twins_on_any_case(seed):
    compare(["P@3", "AP@5", "nDCG@3", "bpref", "infAP", "RR@5", "anti-nDCG@3", "Fallout@3"], seed)


RISING = ["P@3", "Recall@3", "F1@3", "HitRate@2", "AP", "RR", "Rprec", "RBP", "bpref", "infAP@4",
          "SR@3", "HLU(mean=users)", "AUC", "condensed-nDCG@3"]  # fmt: skip


@given(st.integers(0, 10_000), st.data())
def test_moving_a_liked_item_up_never_hurts(seed, data):
    items = [f"i{j}" for j in range(8)]
    rng = np.random.default_rng(seed)
    qrels = {"u": {i: int(rng.integers(0, 6)) for i in items[:6]}}
    order = list(rng.permutation(items))
    at = data.draw(st.integers(1, 7))
    swap = order.copy()
    swap[at - 1], swap[at] = swap[at], swap[at - 1]
    grade = qrels["u"]
    up, down = grade.get(order[at], 0), grade.get(order[at - 1], 0)
    if not (up >= LIKED and down < LIKED):
        return
    scores = quiet(as_ratings(qrels), {"u": order}, RISING, items=items)
    after = quiet(as_ratings(qrels), {"u": swap}, RISING, items=items)
    for name in RISING:
        before_value, after_value = scores.values("s", name)[0], after.values("s", name)[0]
        assert after_value >= before_value - 1e-12 or math.isnan(before_value), name


@given(st.integers(0, 10_000))
def test_identities_of_the_papers(seed):
    qrels, run = random_case(seed)
    names = [
        "P@4",
        "anti-P@4",
        "Residual@4",
        "Judged@4",
        "SR(gamma=0)@4",
        "Recall@4",
        "P(bound=lower)@4",
    ]
    twins = ["condensed-P@4", "condensed-anti-P@4", "condensed-P", "condensed-anti-P"]
    s = quiet(as_ratings(qrels), run, [*names, *twins, "condensed-Judged"])
    v = {name: s.values("s", name) for name in s.labels}
    # mena2021 Eq. 4: P + anti-P = 1 - δ; bellogin2017: gamma = 0 is recall
    np.testing.assert_allclose(v["P@4"] + v["anti-P@4"], 1 - v["Residual@4"], atol=1e-15)
    np.testing.assert_allclose(v["SR(gamma=0)@4"], v["Recall@4"], atol=1e-15)
    np.testing.assert_array_equal(v["P(bound=lower)@4"], v["P@4"])
    # mena2021 Eq. 2: condensed anti-P = 1 - P; undefined where no listed item was judged
    for first, second in (twins[:2], twins[2:]):
        both = v[first] + v[second]
        assert set(np.round(both[~np.isnan(both)], 12)) <= {1.0}
        np.testing.assert_array_equal(np.isnan(both), v["condensed-Judged"] == 0)


def test_condensed_precision_by_hand():
    """Of a, x, b, y, c the judged a, b, c remain, a and c liked; of x, y nothing remains."""
    qrels = {"u": {"a": 5, "b": 1, "c": 5, "d": 5}, "v": {"a": 5}}
    run = {"u": ["a", "x", "b", "y", "c"], "v": ["x", "y"]}
    values = {
        "condensed-P@2": 1 / 2, "condensed-anti-P@2": 1 / 2,
        "condensed-P@10": 2 / 3, "condensed-anti-P@10": 1 / 3, "condensed-P": 2 / 3,
        "condensed-P(per=list)@10": 2 / 3, "condensed-set_P@10": 2 / 3,
        "condensed-P(per=k)@10": 2 / 10, "condensed-anti-P(per=k)@10": 1 / 10,
        "condensed-F1@10": 2 * 2 / (3 + 3), "condensed-F1(per=k)@10": 2 * 2 / (10 + 3),
    }  # fmt: skip
    scores = quiet(as_ratings(qrels), run, list(values))
    for name, value in values.items():
        first, second = scores.values("s", name)
        assert first == pytest.approx(value, abs=1e-15), name
        assert math.isnan(second) == ("F1" not in name and "per=k" not in name), name


def test_lists_without_a_judged_item_are_said():
    qrels = {"u": {"a": 5, "b": 1}, "v": {"a": 5}, "w": {"c": 5}}
    run = {"u": ["a", "b"], "v": ["x"], "w": ["x", "y"]}
    twins = ["condensed-P@10", "condensed-anti-P@10"]
    scores = quiet(as_ratings(qrels), run, twins)
    note = "s: 2 averaged lists have no value of condensed-P@10, condensed-anti-P@10: 0 in the mean"
    assert any(one.startswith(note) for one in scores.notes)
    assert sum(scores.means()["s"].values()) == pytest.approx(1 / 3)
    left = quiet(as_ratings(qrels), run, twins, undefined="skip")
    assert not any("no value of" in one for one in left.notes)
    assert sum(left.means()["s"].values()) == 1.0


def test_names_of_condensed_precision():
    """What is the default of the condensed form is not printed; what is not, is."""
    for text, printed in {
        "condensed-P(per=list)@10": "condensed-P@10",
        "condensed-set_P@10": "condensed-P@10",
        "condensed-P(per=k)@10": "condensed-P(per=k)@10",
        "P(per=k)@10": "P@10",
        "anti-condensed-P@10": "anti-condensed-P@10",
        "condensed-anti-F1(per=list)@5": "anti-condensed-F1@5",
    }.items():
        assert str(parse(text)) == printed
        assert parse(printed) == parse(text)
    assert parse("condensed-P@3").params["per"] == "list"
    with pytest.raises(us.SettingError, match="per=list, the default of condensed-P"):
        parse("condensed-P(bound=upper)@3")
    assert parse("condensed-P(bound=upper,per=k)@3").params["per"] == "k"


@pytest.mark.parametrize(
    ("name", "marked", "value"),
    [
        ("infAP", [], (0.75 + 0.6) / 3),
        ("infAP2", [], (0.75 + 0.6) / 3),
        ("infAP(pool=judged)", [], (0.5 + 0.4) / 3),
        ("infAP", ["x"], (0.75 + 0.5) / 3),
        ("infAP(pool=judged)", ["x"], (0.75 + 0.5) / 3),
        ("infAP(pool=all)", ["x"], (0.75 + 0.6) / 3),
    ],
)
def test_the_pool_of_infap_by_hand(name, marked, value):
    """A liked item at rank 2, a disliked one at 4, a liked one at 5, a third not listed.

    Above rank 2 nothing is judged, so that half of the pool there is taken as liked: 1/2 + 1/2 x
    pool x 1/2. Above rank 5 one of two is liked: 1/5 + 4/5 x pool x 1/2. The pool holds all items
    above, or the judged and the marked ones: 0 or 1 of 1 above rank 2, 2 or 3 of 4 above rank 5.
    """
    qrels = {"u": {"a": 5, "b": 1, "c": 5, "d": 5, **dict.fromkeys(marked, -1)}}
    scores = quiet(as_ratings(qrels), {"u": ["x", "a", "y", "b", "c"]}, [name])
    assert scores.mean(name)["s"] == pytest.approx(value, abs=1e-5)
    said = [note for note in scores.notes if "the pool is what the judgments mark" in note]
    assert bool(said) == (name == "infAP" and bool(marked))


def test_infap_is_ap_when_all_is_judged():
    rng = np.random.default_rng(1)
    items = [f"i{j}" for j in range(30)]
    qrels = {"u": {i: int(rng.integers(0, 6)) for i in items}}
    scores = quiet(
        as_ratings(qrels), {"u": list(rng.permutation(items))}, ["AP", "infAP", "infAP2"]
    )
    mean = scores.means()["s"]
    assert mean["infAP"] == pytest.approx(mean["AP"], abs=1e-4)
    assert mean["infAP2"] == pytest.approx(mean["AP"], abs=1e-4)


def test_discounts_are_correctly_rounded():
    """The discount table has the same bits on every machine whose log2 is correctly rounded."""
    from decimal import Decimal, getcontext

    from unskew.metrics.block import log_discount

    getcontext().prec = 40
    table = log_discount(1000)
    for rank in range(1, 1001):
        log2 = float(Decimal(rank + 1).ln() / Decimal(2).ln())
        assert table[rank] == 1.0 / log2


def test_whole_run_and_item_metrics_by_hand():
    train = {"user": [1, 1, 2, 3, 3, 3], "item": ["a", "b", "a", "a", "b", "c"]}
    test = {"user": [1, 2], "item": ["c", "b"], "rating": [5, 5]}
    run = {1: ["c", "d"], 2: ["b"], 3: ["d"]}
    names = [
        "ARP@2",
        "EPC@2",
        "Novelty@2",
        "Tail@2",
        "Tail(head=0.4)@2",
        "Coverage@1",
        "Gini@1",
        "Entropy@1",
        "Coverage",
    ]
    scores = us.evaluate(test, {"s": run}, names, liked=4, train=train, items=["a", "b", "c", "d"])
    # ratings: a 3, b 2, c 1, d 0 of 3 users; the head of 80 % is a, b (5 of 6 >= 4.8)
    frame = scores.per_user()
    assert frame["ARP@2"].to_list() == [0.5, 2.0, 0.0]
    assert frame["EPC@2"].to_list() == pytest.approx([(2 / 3 + 1) / 2, 1 / 3, 1])
    assert frame["Novelty@2"].to_list() == pytest.approx(
        [math.log2(3), math.log2(1.5), math.log2(3)]
    )
    assert frame["Tail@2"].to_list() == [1.0, 0.0, 1.0]
    assert frame["Tail(head=0.4)@2"].to_list() == [1.0, 1.0, 1.0]
    mean = scores.means()["s"]
    assert mean["Coverage@1"] == 0.75  # b, c, d
    assert mean["Coverage"] == 0.75
    assert mean["Gini@1"] == pytest.approx(0.25)  # 0 1 1 1
    assert mean["Entropy@1"] == pytest.approx(math.log2(3))


# Cutoffs far beyond every list


def test_deep_discounts_are_added_without_a_table():
    for kind, shift in (("log", 1), ("original", 0)):
        for cutoff in (1, 2, 10, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 300_000):
            terms = [1 / math.log2(max(rank + shift, 2)) for rank in range(1, cutoff + 1)]
            assert sum_of_discounts(cutoff, kind) == pytest.approx(math.fsum(terms), rel=1e-12)
    # Where no table can be: the logarithmic integral of scipy, whose other terms are below 1e-14.
    for cutoff in (10**12, 10**18):
        whole = math.log(2) * (expi(math.log(cutoff)) - expi(math.log(2)))
        assert sum_of_discounts(cutoff) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("cutoff", [10**9, 10**18])
def test_cutoffs_beyond_every_list_take_no_memory(cutoff):
    """A cutoff is not a size: nothing may be allocated for ranks that no list has."""
    rng = np.random.default_rng(4)
    rows = [(u, i, int(rng.integers(1, 6))) for u in range(8) for i in rng.permutation(20)[:9]]
    test = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
    lists = {user: rng.permutation(20)[:7].tolist() for user in range(8)}
    names = [
        name + ("(ideal=full)" if name == "nDCG" else "")
        for name in ["nDCG", *REGISTRY] if name != "AUC"
    ]  # fmt: skip
    names += [f"anti-{name}" for name in ("P", "nDCG", "AP", "SR", "HLU")]
    names += [f"condensed-{name}" for name in ("P", "nDCG", "AP", "RBP")]
    wanted = [f"{name}@{cutoff}" for name in dict.fromkeys(names)]

    def judge(metrics):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", us.DataWarning)
            return us.evaluate(test, {"s": lists}, metrics, liked=4, train=test, items=range(20))

    deep, list_end = (
        judge(wanted).means()["s"],
        judge([f"{name}@20" for name in names]).means()["s"],
    )
    for name in names:
        scale = {"P": 20 / cutoff, "Judged": 20 / cutoff}.get(name.split("-")[-1], 1.0)
        if "ideal=full" in name:
            scale = sum_of_discounts(20) / sum_of_discounts(cutoff)
        if name in ("F1", "Residual", "condensed-P"):  # no multiple of what a short cutoff gives
            assert 0 <= deep[f"{name}@{cutoff}"] <= 1
            continue
        assert deep[f"{name}@{cutoff}"] == pytest.approx(list_end[f"{name}@20"] * scale, rel=1e-9)
    tracemalloc.start()
    judge(wanted)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 << 20


@pytest.mark.parametrize("digits", ["0", str(10**18 + 1), "99999999999999999999", "9" * 5000])
def test_cutoffs_that_no_rank_can_have_are_refused(digits):
    with pytest.raises(us.SettingError, match=r"must be a whole number from 1 to 10\^18") as caught:
        us.Metric.parse(f"P@{digits}")
    assert len(str(caught.value)) < 160
