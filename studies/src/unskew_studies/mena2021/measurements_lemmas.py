"""mena2021: toy examples, truth tables of the lemmas, and worlds built for them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.bias.pairs.item_pairs import item_pairs
from unskew.bias.pairs.steepness import agree, decrement_rate
from unskew.bias.popularity.item_counts import ItemCounts, count_items
from unskew.evaluation.evaluate import evaluate
from unskew.report.estimates import Estimates
from unskew.stats.correlation import kendall_test
from unskew.stats.intervals.means import mean_interval
from unskew.worlds.worlds import world
from unskew_studies.lab import Lab, measurement
from unskew_studies.mena2021.printed import PRINTED_2, PRINTED_4, PRINTED_8, Both, Numbers

SIDE = 5
"""Users on each side of the split in a toy."""
ORDERS = {"a": ["a", "b"], "b": ["b", "a"]}
"""The two recommendations, by what comes first."""
Ratio = tuple[I64, I64]
"""Numerators and denominators of a number per item."""


@dataclass(frozen=True)
class Toy:
    """Two items, a and b, and five users on either side of a split, alike on both sides.

    A cell is 1 (liked), 0 (disliked), or a dot where it is not known.
    """

    a: str
    b: str

    @property
    def counts(self) -> ItemCounts:
        """What is seen in training, of all ten users."""
        rated = [SIDE - one.count(".") for one in (self.a, self.b)]
        liked = [one.count("1") for one in (self.a, self.b)]
        return ItemCounts.known(rated, liked, 2 * SIDE)

    def scored(self, metric: str) -> Both:
        """Return a metric's mean over the test users, for a first and for b first."""
        cells = [
            (user, item, int(mark))
            for item, marks in (("a", self.a), ("b", self.b))
            for user, mark in enumerate(marks)
            if mark != "."
        ]
        test = dict(zip(("user", "item", "rating"), zip(*cells, strict=True), strict=True))
        runs = {first: dict.fromkeys(range(SIDE), order) for first, order in ORDERS.items()}
        by_first = {
            name: averages[metric]
            for name, averages in evaluate(test, runs, metric, liked=1).averages().items()
        }
        return by_first["a"].value, by_first["b"].value


FIG_4 = {"1": Toy("11100", "10..."), "2": Toy("10000", "00..."), "3": Toy("1110.", "..100")}
FIG_8 = {"1a": Toy("11100", "10000"), "1b": Toy("11100", "10111")}
FIG_2 = ItemCounts.known(rated=[4, 2], liked=[3, 1], relevant=[6, 4], users=10)
FIG_3 = {
    "1": ((3, 1), (3, 2), True),
    "2": ((2, 1), (3, 2), True),
    "3": ((3, 1), (2, 3), False),
    "4": ((2, 1), (2, 3), False),
}
"""f and g on two items, and whether they agree; f is the steeper in all four."""


def _fig_2() -> Numbers:
    toy = FIG_2
    rated, liked, users = (int(x.sum()) for x in (toy.rated, toy.liked, toy.users))
    relevant = round(float((toy.p_rel * toy.users).sum()))
    return {
        "p(rel|i)": _pair(toy.p_rel),
        "p(train|i)": _pair(toy.p_train),
        "p(rel|train,i)": _pair(toy.p_rel_train),
        "p(rel|¬train,i)": _pair(toy.p_rel_unrated),
        "p(rel,train|i)": _pair(toy.liked / toy.users),
        "p(train|rel,i)": _pair(toy.p_train_rel),
        "p(rel)": relevant / users,
        "p(train)": rated / users,
        "p(rel|train)": liked / rated,
        "p(rel|¬train)": (relevant - liked) / (users - rated),
        "p(rel,train)": liked / users,
        "p(train|rel)": liked / relevant,
    }


def _fig_3(f: Both, g: Both) -> Numbers:
    return {"agree": agree(f, g), "f is steeper": decrement_rate(*f) > decrement_rate(*g)}


def _fig_4(toy: Toy) -> Numbers:
    counts = toy.counts
    good, bad = _pair(counts.p_rel_train), _pair(1 - counts.p_rel_train)
    odds, hits, false = _pair(counts.odds), _pair(counts.phi_p), _pair(counts.phi_anti)
    return {
        "P@1": toy.scored("P@1"),
        "anti-P@1": toy.scored("anti-P@1"),
        "odds": odds,
        "p(rel|train)": good,
        "p(¬rel|train)": bad,
        "phi_P": hits,
        "phi_antiP": false,
        "decrement of odds": decrement_rate(*odds),
        "decrement of p(rel|train)": decrement_rate(*good),
        "decrement of p(¬rel|train)": decrement_rate(*bad),
        "agree": agree(hits, false),
    }


def _fig_8(toy: Toy) -> Numbers:
    seen = FIG_4["1"]
    real, false = toy.scored("P@1"), toy.scored("anti-P@1")
    return {
        "real P@1": real,
        "real anti-P@1": false,
        "P consistent": agree(seen.scored("P@1"), real),
        "anti-P consistent": agree(seen.scored("anti-P@1"), false),
    }


def _pair(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Both:
    a, b = values.tolist()
    return a, b


@measurement("the toy examples")
def toys(_lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return a row per number of Figs. 2, 3, 4 and 8: as printed, and worked through."""
    parts: list[tuple[str, Numbers, Numbers]] = [("Fig. 2", PRINTED_2, _fig_2())]
    for key, (f, g, alike) in FIG_3.items():
        parts.append((f"Fig. 3 ({key})", {"agree": alike, "f is steeper": 1}, _fig_3(f, g)))
    parts += [(f"Fig. 4 #{key}", PRINTED_4[key], _fig_4(toy)) for key, toy in FIG_4.items()]
    parts += [(f"Fig. 8 #{key}", PRINTED_8[key], _fig_8(toy)) for key, toy in FIG_8.items()]
    rows = [
        (place, what, item, float(published), float(got))
        for place, printed, worked in parts
        for what, value in printed.items()
        for item, published, got in _by_item(value, worked[what])
    ]
    names = dict.fromkeys(("place", "what", "item"), pl.String)
    kinds = names | dict.fromkeys(("printed", "found"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")


def _by_item(published: float | Both, worked: float | Both) -> list[tuple[str, float, float]]:
    if isinstance(published, tuple) and isinstance(worked, tuple):
        return list(zip("ab", published, worked, strict=True))
    return [("", published, worked)]  # type: ignore[list-item]


# Steepness, pair by pair


def steeper_than_both(popularity: Ratio, rated: I64, liked: I64) -> float:
    """Return on which share of item pairs popularity is steeper than relevance and non-relevance.

    Exact, by whole numbers; equal decrement rates, and those that are 0/0, are not steeper.

    Parameters
    ----------
    popularity
        What stands for it, as numerators and denominators.
    rated, liked
        Users who rated each item, and those of them who like it; items that somebody rated.
    """
    steeper = 0
    for at in range(rated.size - 1):
        low, high = _ends(popularity, at)
        both = np.ones(low.size, np.bool_)
        for part in (liked, rated - liked):
            least, most = _ends((part, rated), at)
            both &= low * most < least * high
        steeper += int(np.count_nonzero(both))
    pairs = rated.size * (rated.size - 1) // 2
    return steeper / pairs if pairs else math.nan


def steeper_in_floats(rated: I64, liked: I64, users: int) -> float:
    """Return the same for plain popularity in floating point, which splits ties as it rounds.

    Parameters
    ----------
    rated, liked
        As in `steeper_than_both`.
    users
        How many users there are.
    """
    relevance = liked / rated
    columns = (rated / users, relevance, 1 - relevance)
    steeper = 0
    with np.errstate(invalid="ignore"):  # 0/0 is not steeper
        for at in range(rated.size - 1):
            popularity, *others = (
                np.abs(one[at] - one[at + 1 :]) / np.maximum(one[at], one[at + 1 :])
                for one in columns
            )
            steeper += int(np.count_nonzero(np.logical_and(*(popularity > one for one in others))))
    pairs = rated.size * (rated.size - 1) // 2
    return steeper / pairs if pairs else math.nan


def _ends(ratio: Ratio, at: int) -> Ratio:
    """Return the smaller and the larger value of an item and each later one, on one denominator."""
    top, bottom = ratio
    one, other = top[at] * bottom[at + 1 :], top[at + 1 :] * bottom[at]
    return np.minimum(one, other), np.maximum(one, other)


# Truth tables


USERS = 12
LEVELS = 23
"""Different degrees of relevance, and of popularity, in an exact table."""


@measurement("truth tables of the lemmas")
def truth_tables(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return a row per case of Tables 3 and 4 and Appendix B.

    `holds` is the share of the case's pairs, ties apart, that do as it says: all counts up to
    twelve users for Lemma 1, exact tables of probabilities for Lemmas 2 and 3.
    """
    return pl.concat([_table_3(), _table_4(lab.seed), _flat()])


def _rows(table: str, rows: list[tuple[str, str, float, float]]) -> pl.DataFrame:
    kinds = {"case": pl.String, "says": pl.String, "pairs": pl.Float64, "holds": pl.Float64}
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    return frame.select(pl.lit(table).alias("table"), pl.all())


def case_table(pairs: Estimates, *columns: str) -> pl.DataFrame:
    """Return a row per case of item pairs: these facts and quantities."""
    facts = [name for name in columns if name in pairs.rows.columns]
    rows = pairs.rows.filter(pl.col("case") != "tied")
    wide = rows.pivot("quantity", index=["case", *facts], values="value")
    return wide.select("case", *columns)


def overall(pairs: Estimates, quantity: str, part: str = "overall") -> float:
    """Return a number of all pairs of items."""
    return pairs.parts[part].row(quantity=quantity).estimate[0]


def every_count(users: int = USERS) -> ItemCounts:
    """Return an item for every number of ratings and likes that so many users can give."""
    both = [(n, r) for n in range(1, users) for r in range(n + 1)]
    rated, liked = zip(*both, strict=True)
    return ItemCounts.known(list(rated), list(liked), users)


def _table_3() -> pl.DataFrame:
    counted = item_pairs(every_count())
    rows = []
    for case, lemma, *does in case_table(counted, "lemma", "agree", "disagree").iter_rows():
        right, apart = dict(zip(("agree", "disagree"), does, strict=True))[lemma], sum(does)
        rows.append((case, lemma, apart * counted.card["pairs"], right / apart))
    return _rows("Table 3", rows)


def lemma_2(seed: int = 0, *, also_disliked: bool = True) -> ItemCounts:
    """Return items that half of those who like them rate.

    Parameters
    ----------
    seed
        For what is drawn.
    also_disliked
        Whether the share among those who do not like them is the same for all items too, as the
        proof needs.
    """
    k = np.arange(1, 20)
    users, relevant = 80, 4 * k
    rates = np.ones(k.size, int)
    if not also_disliked:
        rates = np.random.default_rng(seed).integers(0, 4, k.size)
    liked = relevant // 2
    return ItemCounts.known(liked + (users - relevant) * rates // 4, liked, users, relevant)


def lemma_3(seed: int = 0) -> ItemCounts:
    """Return items whose ratings tell nothing about who likes them, in random combinations."""
    rng = np.random.default_rng(seed)
    steps = np.arange(1, LEVELS)
    good, seen = rng.permutation(steps), rng.permutation(steps)
    users = LEVELS * (LEVELS + 6)
    return ItemCounts.known(LEVELS * seen, seen * good, users, users // LEVELS * good)


def _table_4(seed: int) -> pl.DataFrame:
    whole = item_pairs(lemma_2())
    lemma2 = overall(whole, "lemma2", "true overall")
    number = float(whole.card["pairs"])
    rows = [("rating depends on relevance only", "both agree", number, lemma2)]
    drawn = [item_pairs(lemma_3(seed + number)) for number in range(20)]
    columns = "share", "lemma_P", "P", "lemma_anti-P", "anti-P"
    tables = pl.concat([case_table(one.parts["true"], *columns) for one in drawn])
    each = drawn[0].card["pairs"]
    for case, part in tables.group_by("case", maintain_order=True):
        number = float(part["share"].sum()) * each
        for metric in ("P", "anti-P"):
            agrees = bool(part[f"lemma_{metric}"][0])
            true = float(part[metric].sum()) * each / number if number else math.nan
            words = f"{metric} {'agrees' if agrees else 'disagrees'}"
            rows.append((str(case[0]), words, number, true if agrees else 1 - true))
    return _rows("Table 4", rows)


def _flat() -> pl.DataFrame:
    steps = np.arange(1, 11)
    even = np.full(steps.size, 20)
    popular = item_pairs(ItemCounts.known(even, 2 * steps - 1, 100, 10 * steps - 5))
    liked = item_pairs(ItemCounts.known(4 * steps, 2 * steps, 100, np.full(steps.size, 50)))
    number = float(popular.card["pairs"])
    metrics = "P", "anti-P"
    real = [overall(popular, metric, "true overall") for metric in metrics]
    tied = 1 - sum(overall(liked, metric, "true overall") for metric in metrics)
    rows = [
        ("equal popularity", "P and anti-P agree", number, overall(popular, "agree")),
        ("equal popularity", "and both with the truth", number, min(real)),
        ("equal relevance", "P and anti-P disagree", number, overall(liked, "disagree")),
        ("equal relevance", "the truth is tied", number, tied),
    ]
    return _rows("Appendix B", rows)


def rates_order_alike(most: int = 7) -> float:
    """Return on which share of pairs of functions decrement and increment rates order alike.

    Over all values of two functions on two items from 1 to `most`, exactly.
    """
    values = range(1, most + 1)
    sizes = {(a, b): abs(a - b) for a, b in product(values, values)}
    decrement = {both: Fraction(size, max(both)) for both, size in sizes.items()}
    increment = {both: Fraction(size, min(both)) for both, size in sizes.items()}
    alike = [
        (decrement[f] > decrement[g]) == (increment[f] > increment[g])
        for f, g in product(sizes, sizes)
    ]
    return sum(alike) / len(alike)


def p_of_tau(tau: float, systems: int = 16) -> float:
    """Return the two-sided p-value of a printed τ of systems without ties.

    Examples
    --------
    >>> from unskew_studies.mena2021.measurements_lemmas import p_of_tau
    >>> round(p_of_tau(0.8, systems=5), 3)
    0.083
    """
    left = round((1 - tau) / 2 * systems * (systems - 1) / 2)
    order: list[int] = []
    for number in range(systems):  # each new one passes as many as are still to be turned round
        turned = min(left, number)
        order.insert(number - turned, number)
        left -= turned
    return kendall_test(list(range(systems)), [order.index(n) for n in range(systems)]).p


# Worlds


WORLDS = 5
"""The number of worlds of each kind."""


def extent(lab: Lab, amount: str = "users") -> dict[str, int]:
    """Return how many users and items a simulated world has."""
    return {"users": lab.amount(amount), "items": lab.amount(amount) // 2}


@measurement("the lemmas in worlds built for them", version=2)
def lemma_worlds(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return, per world and metric, on how many pairs of items the observed order is the true one.

    The mean of some worlds of a kind, with its 95 % interval.
    """
    rows = []
    for name in ("relevance-only", "popular-good", "inverted"):
        seeds = range(lab.seed, lab.seed + WORLDS)
        drawn = [item_pairs(world(name, **extent(lab), seed=one)) for one in seeds]
        for metric in ("P", "anti-P"):
            values = [overall(pairs, metric, "true overall") for pairs in drawn]
            rows.append((name, metric, *mean_interval(values)))
    names = dict.fromkeys(("world", "metric"), pl.String)
    kinds = names | dict.fromkeys(("consistent", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=kinds, orient="row")


@measurement("observed orders where ratings are missing at random")
def at_random(lab: Lab, _dataset_name: str) -> pl.DataFrame:
    """Return how far counts per item are from what an unbiased sample would give.

    Of R users who like an item a share p rates it, the same for all items. `z` is the distance of
    the chi-square statistic from its expectation, in standard deviations.
    """
    counts = count_items(world("uniform", **extent(lab), seed=lab.seed))
    seen = counts.rated.sum() / counts.users.sum()
    relevant = np.rint(counts.p_rel * counts.users)
    rows = []
    for what, seen_of, all_of in (
        ("liked", counts.liked, relevant),
        ("disliked", counts.rated - counts.liked, counts.users - relevant),
    ):
        known = all_of > 0
        gap = seen_of[known] - all_of[known] * seen
        square = float((gap**2 / (all_of[known] * seen * (1 - seen))).sum())
        number = int(known.sum())
        rows.append((what, number, square, (square - number) / math.sqrt(2 * number)))
    kinds = {"what": pl.String, "items": pl.Int64, "chi square": pl.Float64, "z": pl.Float64}
    return pl.DataFrame(rows, schema=kinds, orient="row")
