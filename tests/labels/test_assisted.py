"""`assisted`: plain twins, ppi-py's values, everything judged, few counts, coverage, refusals."""

import json
import math
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.labels import assisted_contrasts
from unskew.labels.contrast_sides import SideEstimate, leave_one_out_slopes
from unskew.labels.human_samples import human_sample, read_people
from unskew.labels.recommended_pairs import RecommendedPairs
from unskew.labels.sample_checks import check_sample, looks_random

K = 4


def population(seed, users=60, items=30, base=0.0, hits=0.85, false=0.2, short=False):
    """Return lists of two systems, and what people and the annotator say of every listed pair."""
    rng = np.random.default_rng(seed)
    odds = base + rng.normal(0, 1, (users, 1)) + rng.normal(0, 1, (users, items))
    liked = rng.random((users, items)) < 1 / (1 + np.exp(-odds))
    said = np.where(liked, rng.random(liked.shape) < hits, rng.random(liked.shape) < false)
    scores = {"good": odds + rng.normal(0, 1, odds.shape), "any": rng.random(odds.shape)}
    length = rng.integers(1, K + 1, users) if short else np.full(users, K)
    lists = {
        name: [np.argsort(-score[u])[: length[u]] for u in range(users)]
        for name, score in scores.items()
    }
    runs = {
        name: {f"u{u}": [f"i{i}" for i in one] for u, one in enumerate(several)}
        for name, several in lists.items()
    }
    pairs = sorted({(u, i) for run in runs.values() for u, one in run.items() for i in one})
    at = [(int(u[1:]), int(i[1:])) for u, i in pairs]
    people = np.array([liked[one] for one in at], float)
    model = np.array([said[one] for one in at], float)
    return runs, pairs, people, model


def frame(pairs, values, rows=None, **more):
    rows = np.arange(len(pairs)) if rows is None else rows
    columns = {"user": [pairs[r][0] for r in rows], "item": [pairs[r][1] for r in rows]}
    return pl.DataFrame({**columns, "label": np.asarray(values)[rows], **more})


def drawn(size, number, seed):
    return np.sort(np.random.default_rng([seed, 9]).choice(size, number, replace=False))


def estimates(seed=1, number=80, metric="P@4", rows=None, **settings):
    runs, pairs, people, model = population(seed)
    rows = drawn(len(pairs), number, seed) if rows is None else rows
    human = frame(pairs, people, rows)
    made = us.labels.assisted(frame(pairs, model), runs, metric, human=human, **settings)
    return made, runs, pairs, people, model, rows


ESTIMATORS = ("human", "PPI", "PPI++")


def contrast(made, system, against=None, metric=None):
    """Return the rows of a system or of a difference by estimator, and what they have in common."""
    keys = {"metric": made.label(metric)}

    def row(name):
        if against is None:
            return made.row(system=system, quantity=name, **keys)
        return made.pair(system, against, quantity=name, **keys)

    rows = {name: row(name) for name in ESTIMATORS}
    return SimpleNamespace(
        values={name: one for name, one in rows.items() if one.value is not None},
        labels_alone=row("annotator").value,
        reason=rows["PPI++"].note,
        **rows["PPI++"].facts,
    )


def level(made, system, metric=None):
    return contrast(made, system, None, metric)


def contrasts(made):
    """Return all of them."""
    pairs = (
        made.parts["pairs"]
        .rows.select("metric", "system", "against")
        .unique(maintain_order=True)
        .rows()
    )
    levels = made.rows.select("metric", "system").unique(maintain_order=True).rows()
    return [contrast(made, *names, metric=metric) for metric, *names in [*levels, *pairs]]


def brute_slopes(y, f):
    """Return the slope of y on f among all others, for each."""
    slopes = []
    for one in range(y.size):
        rest = np.arange(y.size) != one
        spread = f[rest] - f[rest].mean()
        bottom = (spread**2).sum()
        slopes.append((spread * y[rest]).sum() / bottom if bottom > 1e-12 else 0.0)
    return np.array(slopes)


def side_twin(y, f, inside, rows, estimator):
    """Return the mean of corrected labels of a simple sample of a side, and its variance."""
    mine = rows[inside[rows]]
    mean, n, whole = f[inside].mean(), mine.size, inside.sum()
    slope = {"human": 0.0, "PPI": 1.0, "PPI++": brute_slopes(y[mine], f[mine])}[estimator]
    corrected = y[mine] - slope * (f[mine] - mean)
    return corrected.mean(), (1 - n / whole) * corrected.var(ddof=1) / n


@pytest.mark.parametrize("estimator", ["human", "PPI", "PPI++"])
@pytest.mark.parametrize("seed", [1, 2])
def test_levels_and_differences_equal_the_plain_twin(estimator, seed):
    made, runs, pairs, people, model, rows = estimates(seed)
    inside = {name: np.array([i in run[u] for u, i in pairs]) for name, run in runs.items()}
    for name, listed in inside.items():
        value, variance = side_twin(people, model, listed, rows, estimator)
        one = level(made, name).values[estimator]
        assert (one.value, one.se**2) == pytest.approx((value, variance))
        assert one.low <= one.value <= one.high
        assert one.low < one.high
    only = [inside["good"] & ~inside["any"], inside["any"] & ~inside["good"]]
    share = [one.sum() / (60 * K) for one in only]
    parts = [side_twin(people, model, one, rows, estimator) for one in only]
    value = share[0] * parts[0][0] - share[1] * parts[1][0]
    variance = share[0] ** 2 * parts[0][1] + share[1] ** 2 * parts[1][1]
    one = contrast(made, "good", "any").values[estimator]
    assert (one.value, one.se**2) == pytest.approx((value, variance))
    assert contrast(made, "good", "any").labels == sum(int(mine[rows].sum()) for mine in only)


def test_so_many_more_labels_of_people_alone_are_as_precise():
    made, runs, pairs, people, _, rows = estimates(3, number=150)
    inside = np.array([i in runs["good"][u] for u, i in pairs])
    mine, whole = rows[inside[rows]], int(inside.sum())
    one, n = level(made, "good"), int(inside[rows].sum())
    number = one.gain * n
    # The variance that so many labels would have: (1 - n / N) s² / n, with s² of the sample.
    variance = (1 - number / whole) * people[mine].var(ddof=1) / number
    assert variance == pytest.approx(one.values["PPI++"].se ** 2)
    assert 1 < one.gain < whole / n
    ratio = (one.values["PPI++"].se / one.values["human"].se) ** 2
    assert 1 - 1 / one.gain == pytest.approx((1 - ratio) * (1 - n / whole))
    assert 1 - ratio == pytest.approx(one.rho**2, abs=0.03)


def test_the_annotator_alone_is_evaluate_on_its_labels():
    made, runs, pairs, _, model, _ = estimates()
    labels = us.evaluate(frame(pairs, model), runs, "P@4", users="with-list").mean("P@4")
    for name, value in labels.items():
        assert level(made, name).labels_alone == pytest.approx(value)
    rows = made.where(quantity="annotator").rows
    assert rows["low"].null_count() == rows.height


@pytest.mark.parametrize(
    "metric", ["P@4", "P@2", "DCG@4", "RBP(p=0.7)@4", "anti-P@4", "P(per=list)@4", "anti-DCG@3"]
)
@pytest.mark.parametrize("short", [False, True])
def test_with_everything_judged_it_is_evaluate(metric, short):
    runs, pairs, people, model = population(3, short=short)
    grades = people * 3 + 1  # 1 or 4 on a scale of 1 to 5
    rule = {"liked": 4, "loss": "levels"}
    made = us.labels.assisted(
        frame(pairs, model * 3 + 1), runs, metric, human=frame(pairs, grades), **rule
    )
    true = us.evaluate(frame(pairs, grades), runs, metric, users="with-list", **rule).mean(metric)
    for name, value in true.items():
        for one in level(made, name).values.values():
            assert one.value == pytest.approx(value)
            assert one.facts["interval"] == "all judged"
            assert one.low == one.high == one.value
    one = contrast(made, "good", "any").values["PPI++"]
    assert one.value == pytest.approx(true["good"] - true["any"])
    assert "no interval: people labelled all pairs" in str(made)
    fresh = us.labels.assisted(
        frame(pairs, model * 3 + 1),
        runs,
        metric,
        human=frame(pairs, grades),
        population="users",
        **rule,
    )
    assert level(fresh, "good").values["human"].value == pytest.approx(true["good"])
    assert level(fresh, "good").values["human"].se > 0  # new users differ all the same


def test_points_and_errors_of_ppi_py():
    """Values of ppi-python 0.2.3 (`ppi_mean_pointestimate`, `ppi_mean_ci`, lam = 0 and 1)."""
    k = np.arange(400)
    f = ((k * 37) % 11 < 5).astype(float)
    y = np.where((k * 53) % 17 < 4, 1 - f, f)
    rows = np.arange(0, 400, 5)
    pairs = [(f"u{one:03}", "i") for one in k]
    runs = {"s": {user: [item] for user, item in pairs}}
    human = frame(pairs, y, rows)
    made = level(us.labels.assisted(frame(pairs, f), runs, "P@1", human=human), "s")
    published = {
        "human": (0.5875, 0.4796254469257467, 0.6953745530742533, 0.0),
        "PPI": (0.595, 0.4815096863647696, 0.7084903136352304, f.var() / 400),
    }
    for name, (value, low, high, of_labels) in published.items():
        one = made.values[name]
        assert one.value == pytest.approx(value, abs=1e-12)
        # Theirs has no finite population, no n - 1, and adds the variance of the annotator's mean.
        theirs = ((high - low) / 2 / 1.959963984540054) ** 2 - of_labels
        assert one.se**2 / (1 - 80 / 400) * 79 / 80 == pytest.approx(theirs, rel=1e-9)


def test_a_user_is_expected_to_add_what_the_annotators_labels_say():
    user, labels = np.array([0, 0, 1, 2]), np.array([1.0, 0.0, 0.5, 1.0])
    data = SimpleNamespace(user=np.array([0, 9, 0, 1, 2]), users=4)
    side = SimpleNamespace(
        data=data, sign=-1.0, row=np.array([0, 2, 3, 4]), add=np.array([0.5, 0.25, 0.5, 1.0]),
        labels=labels, label_mean=0.6,
    )  # fmt: skip
    one = SideEstimate(side=side, estimator="PPI++", share=0.4, slope=0.5, moves=np.zeros(2))
    expected = [0.0] * 4
    for number, owner in enumerate(user):
        expected[owner] -= side.add[number] * (0.4 + 0.5 * (labels[number] - 0.6))
    assert one.by_user == pytest.approx(np.array(expected))


def test_slopes_leave_one_out_within_strata():
    rng = np.random.default_rng(4)
    y, f, weight = rng.random(30), rng.random(30), rng.random(30) + 0.5
    stratum, room = rng.integers(0, 3, 30), np.array([1.0, 0.5, 0.0])
    slopes = leave_one_out_slopes(weight, y, f, stratum, room)
    for one in range(30):
        rest = np.arange(30) != one
        theta, phi = ((weight * x)[rest].sum() / weight[rest].sum() for x in (y, f))
        top = bottom = 0.0
        for code in range(3):
            mine = rest & (stratum == code)
            t, v = weight[mine] * (y[mine] - theta), weight[mine] * (f[mine] - phi)
            top += room[code] * ((t - t.mean()) * v).sum()
            bottom += room[code] * ((v - v.mean()) * v).sum()
        assert slopes[one] == pytest.approx(top / bottom)
    assert not leave_one_out_slopes(weight, y, np.full(30, 0.3), stratum, room).any()


def test_strata_equal_the_textbook():
    runs, pairs, people, model = population(5, users=120)
    ready = RecommendedPairs.of_judged(us.judge(frame(pairs, model), {"good": runs["good"]}), K)
    listed = zip(ready.users.raw(ready.user), ready.items.raw(ready.item), strict=True)
    where = {(u, i): r for r, (u, i) in enumerate(pairs)}
    index = np.array([where[pair] for pair in listed])
    y, known = people[index], ready.strata("rank")
    rng = np.random.default_rng(5)
    rows, value, variance = [], 0.0, 0.0
    for code, (name, number) in enumerate(zip(known.names, (40, 30, 50), strict=True)):
        pool = np.flatnonzero(known.code == code)
        some = rng.choice(pool, number, replace=False)
        rows += [(*pairs[index[r]], y[r], number / pool.size, name) for r in some]
        part = pool.size / len(ready)
        value += part * y[some].mean()
        variance += part**2 * (1 - number / pool.size) * y[some].var(ddof=1) / number
    human = pl.DataFrame(
        rows, ["user", "item", "label", "probability", "stratum"], orient="row"
    ).sample(fraction=1.0, shuffle=True, seed=1)
    given = {"human": human}
    by_column = us.labels.assisted(frame(pairs, model), {"good": runs["good"]}, "P@4", **given)
    one = level(by_column, "good").values["human"]
    assert one.value == pytest.approx(value)
    assert one.se**2 == pytest.approx(variance * 120 / 119)
    bare = human.select("user", "item", "label")
    by_name = us.labels.assisted(
        frame(pairs, model), {"good": runs["good"]}, "P@4", human=bare, strata="rank"
    )
    assert level(by_name, "good").values == level(by_column, "good").values
    assert by_name.parts["agreement"].values_of("group") == ["all pairs", *known.names]
    # An average over strata that are not drawn alike would be another number.
    plain = us.labels.assisted(frame(pairs, model), {"good": runs["good"]}, "P@4", human=bare)
    assert level(plain, "good").values["human"].value == pytest.approx(human["label"].mean())


@pytest.mark.parametrize("mean", ["users", "ratio"])
def test_new_users_by_a_plain_twin(mean):
    runs, pairs, people, model = population(6, users=150, short=True)
    rows = drawn(len(pairs), 120, 6)
    made = us.labels.assisted(
        frame(pairs, model),
        runs,
        "P@4",
        human=frame(pairs, people, rows),
        population="users",
        mean=mean,
    )
    users = sorted({u for u, _ in pairs})
    for name, run in runs.items():
        inside = np.array([i in run[u] for u, i in pairs])
        owner = np.array([users.index(u) for u, _ in pairs])
        places = inside.sum()
        add = 1 / (K * len(users)) if mean == "users" else 1 / places
        mine = rows[inside[rows]]
        share = people[mine].mean()
        z = np.bincount(owner[inside], minlength=len(users)) * share * add
        moves = (people[mine] - share) * places / mine.size * add
        z = z + np.bincount(owner[mine], moves, len(users))
        if mean == "ratio":
            z = (
                z
                - level(made, name).values["PPI++"].value
                * np.bincount(owner[inside], minlength=len(users))
                / places
            )
        z = z - z.mean()
        n = mine.size
        drawn_apart = (1 - n / places) * n / (n - 1) * (moves**2).sum()
        one_by_one = (1 - rows.size / len(pairs)) * (moves**2).sum()
        variance = (z**2).sum() * len(users) / (len(users) - 1) + drawn_apart - one_by_one
        one = level(made, name).values["human"]
        assert one.value == pytest.approx(share * places * add)
        assert one.se**2 == pytest.approx(variance)


def test_a_perfect_annotator_leaves_a_width():
    runs, pairs, people, _ = population(7)
    rows = drawn(len(pairs), 80, 7)
    human = frame(pairs, people, rows)
    made = us.labels.assisted(frame(pairs, people), runs, "P@4", human=human)
    true = us.evaluate(frame(pairs, people), runs, "P@4", users="with-list").mean("P@4")
    for name, value in true.items():
        for estimator in ("PPI", "PPI++"):
            one = level(made, name).values[estimator]
            assert one.value == pytest.approx(value)
            assert one.facts["interval"] == "exact"
            assert 0 < one.high - one.low < level(made, name).values["human"].high
    assert level(made, "good").rho == pytest.approx(1)


@pytest.mark.parametrize("base", [-9.0, 9.0])
def test_nothing_or_everything_liked_leaves_a_width(base):
    for population_ in ("lists", "users"):
        runs, pairs, people, model = population(8, base=base)
        human = frame(pairs, people, drawn(len(pairs), 50, 8))
        made = us.labels.assisted(
            frame(pairs, model), runs, "P@4", human=human, population=population_
        )
        for one in contrasts(made):
            for value in one.values.values():
                assert value.high - value.low > 0.02
                assert math.isfinite(value.low)
        low, high = (0.0, 1.0)
        assert level(made, "good").values["human"].low >= low
        assert level(made, "good").values["human"].high <= high


def test_labels_of_other_scales():
    runs, pairs, people, model = population(9)
    rows = drawn(len(pairs), 80, 9)
    stars = frame(pairs, people * 3 + 1, rows)
    with pytest.raises(us.SettingError, match="those of people from 1 to 4"):
        us.labels.assisted(frame(pairs, model), runs, "P@4", human=stars)
    made = us.labels.assisted(frame(pairs, model), runs, "P@4", human=stars, human_liked=4)
    same = us.labels.assisted(frame(pairs, model), runs, "P@4", human=frame(pairs, people, rows))
    assert level(made, "good").values == level(same, "good").values
    assert any(note.startswith("people: liked: rating >= 4") for note in made.notes)


def test_pairs_without_a_label_of_the_annotator():
    runs, pairs, people, model = population(10)
    rows = drawn(len(pairs), 80, 10)
    human, some = frame(pairs, people, rows), frame(pairs, model, np.arange(0, len(pairs), 2))
    missing = len(pairs) - some.height
    with pytest.raises(us.DataError, match=f"{missing} of {len(pairs)} recommended pairs have no"):
        us.labels.assisted(some, runs, "P@4", human=human)
    zero = np.where(np.arange(len(pairs)) % 2, 0.0, model)
    filled = us.labels.assisted(frame(pairs, zero), runs, "P@4", human=human, liked=1)
    made = us.labels.assisted(some, runs, "P@4", human=human, unlabelled="disliked", liked=1)
    assert level(made, "good").values == level(filled, "good").values
    assert any("taken as not liked" in note for note in made.notes)
    mean = us.labels.assisted(some, runs, "P@4", human=human, unlabelled="mean", liked=1)
    assert level(mean, "good").values["human"] == level(made, "good").values["human"]
    with pytest.raises(us.SettingError, match="which loss"):
        us.labels.assisted(some, runs, "anti-DCG@4", human=human, unlabelled="disliked", liked=1)
    anti = us.labels.assisted(some, runs, "anti-P@4", human=human, unlabelled="disliked", liked=1)
    assert level(anti, "good").labels_alone == pytest.approx(1 - level(made, "good").labels_alone)


def test_what_is_left_out_is_counted():
    runs, pairs, people, model = population(11)
    rows = drawn(len(pairs), 80, 11)
    stranger = pl.DataFrame({"user": ["u0", "x"], "item": ["nothing", "i1"], "label": [1.0, 0.0]})
    human = pl.concat([frame(pairs, people, rows), stranger])
    labels = pl.concat([frame(pairs, model), stranger[:1]])
    made = us.labels.assisted(labels, runs, "P@4", human=human)
    plain = us.labels.assisted(frame(pairs, model), runs, "P@4", human=frame(pairs, people, rows))
    assert level(made, "good").values == level(plain, "good").values
    assert any(note.startswith("2 labels of people are of pairs") for note in made.notes)
    assert any(note.startswith("1 label of the annotator is of") for note in made.notes)
    twice = pl.concat([human, human[:1]])
    with pytest.raises(us.DataError, match="more than once"):
        us.labels.assisted(labels, runs, "P@4", human=twice)


def test_order_of_rows_and_threads_change_nothing():
    runs, pairs, people, model = population(12)
    rows = drawn(len(pairs), 80, 12)
    human, labels = frame(pairs, people, rows), frame(pairs, model)
    for settings in ({}, {"interval": "bootstrap", "resamples": 200}):
        one = us.labels.assisted(labels, runs, ["P@4", "DCG@3"], human=human, **settings)
        other = us.labels.assisted(
            labels.sample(fraction=1.0, shuffle=True, seed=1),
            runs,
            ["P@4", "DCG@3"],
            human=human.sample(fraction=1.0, shuffle=True, seed=2),
            threads=2,
            **settings,
        )
        assert one.table().equals(other.table())
        assert one.parts["agreement"].rows.equals(other.parts["agreement"].rows)
    judged = us.judge(labels, runs)
    again = us.labels.assisted(judged, ["P@4", "DCG@3"], human=human)
    assert again.table().equals(us.labels.assisted(labels, runs, ["P@4", "DCG@3"],
                                                     human=human).table())  # fmt: skip


def test_bootstrap_intervals_are_near_the_others():
    made, *_ = estimates(number=150, interval="bootstrap", resamples=4000)
    plain, *_ = estimates(number=150)
    for one, other in zip(contrasts(made), contrasts(plain), strict=True):
        for name, value in one.values.items():
            known = other.values[name]
            assert value.value == known.value
            if known.facts["interval"] == "score":
                assert value.facts["interval"] == "bootstrap"
                width = known.high - known.low
                assert abs(value.high - value.low - width) < 0.12 * width


def test_bootstrap_of_few_users_reaches_as_far_as_students_t(monkeypatch):
    def ends(population):
        made, *_ = estimates(
            number=150, interval="bootstrap", resamples=1000, population=population
        )
        return [
            (value.low, value.high)
            for one in contrasts(made)
            for value in one.values.values()
            if value.facts["interval"] == "bootstrap"
        ]

    students = {population: ends(population) for population in ("lists", "users")}
    monkeypatch.setattr(assisted_contrasts, "_students_level", lambda _, level: level)
    assert ends("lists") == students["lists"]
    normal = ends("users")
    assert len(normal) >= 3
    for (low, high), (inner_low, inner_high) in zip(students["users"], normal, strict=True):
        assert low <= inner_low
        assert 1 <= (high - low) / (inner_high - inner_low) < 1.25


def test_agreement_as_published():
    # Fleiss, Levin and Paik 2003, table 18.1: 100 subjects of two raters, psychotic or not:
    # agreements .75 and .05 … collapsed here to a 2 x 2 table by hand.
    table = {(1, 1): 40, (1, 0): 10, (0, 1): 20, (0, 0): 30}
    people = np.repeat([key[0] for key in table], list(table.values()))
    model = np.repeat([key[1] for key in table], list(table.values()))
    pairs = [(f"u{u:03}", "i") for u in range(100)]
    runs = {"s": {user: [item] for user, item in pairs}}
    made = us.labels.assisted(
        frame(pairs, model), runs, "P@1", human=frame(pairs, people, np.arange(100))
    )
    one = made.parts["agreement"].row()
    assert (one.facts["labels"], one.facts["agree"]) == (100, 0.7)
    chance = 0.5 * 0.6 + 0.5 * 0.4
    assert one.value == pytest.approx((0.7 - chance) / (1 - chance))
    assert one.low == pytest.approx(one.value)  # all pairs are labelled: nothing is drawn


def test_kappa_has_its_asymptotic_variance():
    """Fleiss, Cohen and Everitt 1969 (Psychological Bulletin 72, 323), as scikit and R have it."""
    n, pairs = 400, [(f"u{u:05}", "i") for u in range(40_000)]
    people, model = np.zeros(40_000), np.zeros(40_000)
    rows = np.arange(0, 40_000, 100)
    people[rows[:150]] = 1
    model[rows[:120]] = 1
    model[rows[150:200]] = 1
    runs = {"s": {user: [item] for user, item in pairs}}
    with us.errors.quietly():  # the annotator likes sampled pairs only
        made = us.labels.assisted(
            frame(pairs, model), runs, "P@1", human=frame(pairs, people, rows)
        )
    p = np.array([[200, 50], [30, 120]]) / n  # people x annotator, not liked first
    row, column = p.sum(1), p.sum(0)
    agree, chance = np.trace(p), row @ column
    kappa = (agree - chance) / (1 - chance)
    first = sum(p[i, i] * (1 - (row[i] + column[i]) * (1 - kappa)) ** 2 for i in range(2))
    second = (1 - kappa) ** 2 * sum(
        p[i, j] * (column[i] + row[j]) ** 2 for i in range(2) for j in range(2) if i != j
    )
    variance = (first + second - (kappa - chance * (1 - kappa)) ** 2) / (n * (1 - chance) ** 2)
    one = made.parts["agreement"].row()
    assert one.value == pytest.approx(kappa)
    half = (one.high - one.low) / 2
    assert half == pytest.approx(1.966 * math.sqrt(variance * (1 - 0.01)), rel=3e-3)


def test_a_sample_of_the_first_places_is_seen_and_no_system_is_called_better():
    runs, pairs, people, model = population(13, users=200)
    top = [r for r, (u, i) in enumerate(pairs) if any(run[u][0] == i for run in runs.values())]
    rows = np.array(sorted(top))
    with pytest.warns(us.errors.DataWarning, match="stand higher in the lists"):
        made = us.labels.assisted(
            frame(pairs, model), runs, "P@4", human=frame(pairs, people, rows)
        )
    assert not looks_random(made.parts["sample"])
    assert made.footer()[-1] == "no system is called better, as the sample does not look random"


def annotated(folder, runs, pairs, people, **settings):
    """Plan which pairs to judge, judge them as people do, and read the labels back."""
    plan = us.labels.plan_annotation(runs, "P@4", **settings)
    plan.save(folder)
    asked = pl.read_csv(folder / "to-judge.csv", infer_schema=False).drop("label")
    known = frame(pairs, people.astype(int))
    return us.labels.read_annotation(
        folder, asked.join(known, on=["user", "item"], how="left", maintain_order="left")
    ).sample()


@pytest.mark.parametrize("design", ["uniform", "stratified"])
def test_a_plan_for_a_difference_shows_that_difference_alone(design, tmp_path):
    runs, pairs, people, model = population(24, users=200, items=10)
    human = annotated(tmp_path, runs, pairs, people, budget=200, design=design, seed=1)
    made = us.labels.assisted(frame(pairs, model), runs, "P@4", human=human)  # without a warning
    inside = {name: np.array([i in run[u] for u, i in pairs]) for name, run in runs.items()}
    only = [inside["good"] & ~inside["any"], inside["any"] & ~inside["good"]]
    assert made.card["drawn_from"] == sum(one.sum() for one in only) < len(pairs)
    assert f"of {made.card['drawn_from']} pairs that could be drawn, of {len(pairs):,}" in str(made)
    for name in runs:
        assert not level(made, name).values
        assert "were never drawn" in level(made, name).reason
    assert "no estimate of P@4 of good, P@4 of any: pairs that count alike for good" in str(made)
    if design == "uniform":
        listed = set(human.select("user", "item").iter_rows())
        rows = np.array([r for r, pair in enumerate(pairs) if pair in listed])
        parts = [side_twin(people, model, one, rows, "PPI++") for one in only]
        share = [one.sum() / (200 * K) for one in only]
        value = contrast(made, "good", "any").values["PPI++"].value
        assert value == pytest.approx(share[0] * parts[0][0] - share[1] * parts[1][0])
    three = {**runs, "odd": {u: one[::-1] for u, one in runs["good"].items()}}
    more = us.labels.assisted(frame(pairs, model), three, ["P@4", "DCG@4"], human=human)
    assert contrast(more, "good", "any").values
    assert not contrast(more, "good", "any", "DCG@4").values  # shared pairs at other places count
    assert contrast(more, "any", "odd").values  # P@4 sees the same pairs
    with pytest.raises(us.SettingError, match="mean='ratio' for new users needs the level"):
        us.labels.assisted(
            frame(pairs, model), runs, "P@4", human=human, population="users", mean="ratio"
        )


def test_a_plan_for_levels_shows_all(tmp_path):
    runs, pairs, people, model = population(24, users=200, items=10)
    settings = {"budget": 200, "estimand": "levels", "design": "stratified", "seed": 1}
    human = annotated(tmp_path, runs, pairs, people, **settings)
    made = us.labels.assisted(frame(pairs, model), runs, "P@4", human=human)
    assert made.card["drawn_from"] == len(pairs)
    assert all(level(made, name).values for name in runs)


def test_nothing_is_better_where_the_sample_is_not_random():
    runs, pairs, people, model = population(14, users=200)
    rows = np.array([r for r, (u, _) in enumerate(pairs) if int(u[1:]) % 4 == 0])
    with pytest.warns(us.errors.DataWarning, match="share their users more often"):
        made = us.labels.assisted(
            frame(pairs, model), runs, "P@4", human=frame(pairs, people, rows)
        )
    one = contrast(made, "good", "any")
    assert one.low_together > 0 or one.high_together < 0
    assert one.better == ""
    assert set(made.parts["pairs"].rows["better"]) == {""}
    assert "no system is called better" in str(made)


def test_a_label_of_which_people_saw_nothing_widens_the_interval():
    runs, pairs, people, _ = population(25)
    model = np.arange(len(pairs)) % 2
    human = frame(pairs, people, np.flatnonzero((people > 0) & (model > 0))[:3])
    with us.errors.quietly():
        made = us.labels.assisted(frame(pairs, model), runs, "P@4", human=human)
    labels, one = level(made, "good").labels, level(made, "good").values["PPI++"]
    # Three liked labels of the half that the annotator likes; of the other half nothing is known.
    assert labels > 0
    assert one.low < 0.5 * 0.025 ** (1 / labels) + 0.05
    assert one.high == pytest.approx(1.0)


def test_a_sample_of_whole_users_is_seen():
    runs, pairs, people, model = population(14, users=200)
    rows = np.array([r for r, (u, _) in enumerate(pairs) if int(u[1:]) % 8 == 0])
    with pytest.warns(us.errors.DataWarning, match="share their users more often"):
        us.labels.assisted(frame(pairs, model), runs, "P@4", human=frame(pairs, people, rows))


def test_random_samples_are_rarely_called_not_random():
    runs, pairs, people, model = population(15, users=120)
    judged = us.judge(frame(pairs, model), runs)
    ready = RecommendedPairs.of_judged(judged, K)
    label = judged.view.liked[ready.judgment]
    calls, smallest = 0, []
    for seed in range(400):
        rows = drawn(len(pairs), 100, seed)
        sample = human_sample(read_people(frame(pairs, people, rows)), ready)
        check = check_sample(ready, sample, label)
        calls += not looks_random(check)
        smallest += check.rows["p"].to_list()
    assert calls <= 11  # 1 % of 400; P(X > 11) < .001
    assert np.mean(np.array(smallest) < 0.05) < 0.07


def test_probabilities_that_do_not_fit_are_seen():
    runs, pairs, people, model = population(16, users=200)
    rows = drawn(len(pairs), 200, 16)
    chance = np.where(np.arange(200) % 2, 0.05, 0.02)
    human = frame(pairs, people, rows, probability=chance)
    with pytest.warns(us.errors.DataWarning, match="the probabilities stand for"):
        us.labels.assisted(frame(pairs, model), runs, "P@4", human=human)


def test_a_single_system_lists_that_do_not_differ_and_sides_without_labels():
    runs, pairs, people, model = population(17)
    rows = drawn(len(pairs), 60, 17)
    human, labels = frame(pairs, people, rows), frame(pairs, model)
    one = us.labels.assisted(labels, {"good": runs["good"]}, "P@4", human=human)
    assert not one.parts["pairs"].rows.height
    assert "better" not in str(one.footer())
    same = us.labels.assisted(labels, {"a": runs["good"], "b": runs["good"]}, "P@4", human=human)
    assert contrast(same, "a", "b").reason == "the two lists do not differ"
    assert contrast(same, "a", "b").values == {}
    mine = np.array([r for r, (u, i) in enumerate(pairs) if i in runs["good"][u]])
    with pytest.warns(us.errors.DataWarning):
        some = us.labels.assisted(labels, runs, "P@4", human=frame(pairs, people, mine[::3]))
    reason = contrast(some, "good", "any").reason
    assert reason.startswith("people labelled no pair that any recommends and good does not")
    assert f"no estimate of P@4 of good − any: {reason}" in some.footer()
    assert some.pair("any", "good").note == reason


def test_refusals():
    runs, pairs, people, model = population(18)
    rows = drawn(len(pairs), 60, 18)
    human, labels = frame(pairs, people, rows), frame(pairs, model)

    def refused(match, kind=us.SettingError, **changed):
        given = {"labels": labels, "runs": runs, "metrics": "P@4", "human": human, **changed}
        with pytest.raises(kind, match=match):
            us.labels.assisted(**given)

    refused("divided by all liked items", metrics="Recall@4")
    refused("ideal list", metrics="nDCG@4")
    refused("column 'stratum' but none with probabilities", human=human.with_columns(stratum=1))
    refused("no column 'p'", probability="p")
    refused("either strata or probability", probability="p", strata="rank")
    refused("Allowed: rank, popularity, disagreement", strata="x")
    refused("level", level=1.0)
    refused("Allowed: lists, users", population="x")
    for bad in (0.0, 1.5, None):
        wrong = human.with_columns(probability=pl.Series([bad] + [0.5] * 59, dtype=pl.Float64))
        refused("above 0 and at most 1, but 1 row is not, the first: user", us.DataError,
                human=wrong)  # fmt: skip
    refused("but 60 rows are not, the first: user .* with 'x'", us.DataError,
            human=human.with_columns(probability=pl.lit("x")))  # fmt: skip
    other = human.with_columns(item=pl.lit("z"))
    refused("no system recommends any of the 40 pairs", us.DataError,
            human=other.unique("user").sort("user").head(40))  # fmt: skip
    with us.errors.quietly():
        refused("labelled no recommended pair", us.DataError,
                labels=labels.with_columns(item="q" + pl.col("item")))  # fmt: skip
    empty = human.filter(pl.col("user") != "")[:0]
    refused("there are no rows", us.DataError, human=empty)


def test_strata_with_one_label_are_joined():
    runs, pairs, people, model = population(19)
    rows = drawn(len(pairs), 40, 19)
    stratum = ["x"] * 20 + ["y"] * 19 + ["z"]
    chance = [0.1] * 20 + [0.2] * 19 + [0.19]
    human = frame(pairs, people, rows, probability=chance, stratum=stratum)
    ready = RecommendedPairs.of_judged(us.judge(frame(pairs, model), runs), K)
    sample = human_sample(read_people(human), ready)
    assert sample.names == ("x", "y")
    assert sample.number.tolist() == [20, 20]
    assert any("1 stratum has one label only" in note for note in sample.notes)
    uneven = human.with_columns(probability=pl.Series(np.linspace(0.1, 0.2, 40)))
    sample = human_sample(read_people(uneven), ready)
    assert (sample.kind, sample.names) == ("probabilities", ("all",))


def test_it_prints_draws_and_saves(tmp_path):
    made, *_ = estimates(number=150, metric=["P@4", "DCG@4"])
    text = str(made)
    assert text.startswith("P@4 (higher is better)\nsystem  labels  human ")
    assert "DCG@4: differences" in text
    assert "people labelled 150 of" in text
    assert "P@4, as people label: good is better than any by" in text
    content = json.loads(json.dumps(made.to_dict()))
    assert {row["quantity"] for row in content["rows"]} == {*ESTIMATORS, "annotator"}
    again = type(made).from_dict(content)
    assert again.rows.equals(made.rows)
    assert str(again) == text
    made.figure(metric="DCG@4").save(tmp_path / "figure.svg")
    assert "DCG@4: assisted estimates" in (tmp_path / "figure.svg").read_text()
    assert "<table" in made._repr_html_()


def test_a_pair_turned_round_is_the_opposite():
    made, *_ = estimates(number=150)
    one, other = made.pair("good", "any"), made.pair("any", "good")
    assert (other.value, other.low, other.high) == (-one.value, -one.high, -one.low)
    assert other.facts["low_together"] == -one.facts["high_together"]
    assert one.facts["better"] == other.facts["better"] == "good"


def test_many_systems_have_many_differences():
    rng = np.random.default_rng(20)
    users, names = 60, [f"s{number:02}" for number in range(12)]
    lists = {
        name: {u: [int(i) for i in rng.permutation(12)[:3]] for u in range(users)} for name in names
    }
    pairs = [(u, i) for u in range(users) for i in range(12)]
    liked = np.array([(u * 5 + i) % 12 < i for u, i in pairs], float)
    rows = drawn(len(pairs), 200, 23)
    made = us.labels.assisted(frame(pairs, liked), lists, "P@3", human=frame(pairs, liked, rows))
    assert made.rows.height == 4 * 12
    assert made.parts["pairs"].rows.height == 4 * 66


def coverage(setting, repeats, seed):
    """Return how often intervals of levels and of the difference hold the truth, by estimator."""
    number, population_, settings = setting
    runs, pairs, people, model = population(seed, users=150, **settings)
    true = us.evaluate(frame(pairs, people), runs, "P@4", users="with-list", liked=1).mean("P@4")
    judged = us.judge(frame(pairs, model), runs, liked=1)
    targets = {("good", None): true["good"], ("good", "any"): true["good"] - true["any"]}
    held = {(key, name): 0 for key in targets for name in ("human", "PPI", "PPI++")}
    for repeat in range(repeats):
        rows = drawn(len(pairs), number, 1000 * seed + repeat)
        with us.errors.quietly():
            made = us.labels.assisted(
                judged, "P@4", human=frame(pairs, people, rows), population=population_
            )
        for (a, b), target in targets.items():
            for name, value in contrast(made, a, b).values.items():
                held[(a, b), name] += value.low - 1e-12 <= target <= value.high + 1e-12
    return {key: count / repeats for key, count in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        (200, "lists", {}),
        (200, "lists", {"hits": 0.4, "false": 0.4}),
        (250, "lists", {"hits": 0.95, "false": 0.5}),
    ],
)
def test_intervals_cover_as_often_as_they_say(setting):
    """Through the public function; docs/assisted.md has 5,000 repetitions of more settings."""
    repeats = 400
    for key, share in coverage(setting, repeats, 21).items():
        # 95 % within 4.5 standard errors.
        assert abs(share - 0.95) < 4.5 * math.sqrt(0.95 * 0.05 / repeats), key


@pytest.mark.slow
def test_rare_likes_are_covered():
    for (_, name), share in coverage((50, "lists", {"base": -4.6}), 200, 22).items():
        assert share >= 0.94, name
