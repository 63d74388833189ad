"""How often labels are stopped with a false sentence, and how many are needed: a table.

    python benchmarks/annotate_rates.py [--paths 5000] [--seed 2000] [--only WORLD …] [--docs]

Populations whose labels are all known, drawn with numpy alone: two systems list 10 items for each
user; a pair is liked with a chance that depends on its rank and its item. Only plan, order,
intervals and decisions are unskew's. A path is one random order, judged and looked at after every
single label until the last pair of the population: labels beyond the budget come from extensions of
the plan. Settings were chosen on seeds below 1,000; the tables of docs/annotate.md (--docs writes
them) are of seed 2,000, with ten populations per world. Finished worlds are kept in
build/annotate-rates.json: delete it after a change of the rules.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np

from unskew.labels.annotation_designs import Labels
from unskew.labels.annotation_plan import AnnotationPlan
from unskew.labels.confidence_sequences import (
    Draws,
    best_capital,
    expected_draws,
    limit,
    spread_of,
    steps_of,
)
from unskew.labels.plan_annotation import plan_annotation

ITEMS, K, BUDGET = 60, 10, 200
LEVEL, POWER = 0.95, 0.8
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "annotate.md"
KEPT = ROOT / "build" / "annotate-rates.json"
BEGIN, END = "<!-- rates: benchmarks/annotate_rates.py -->", "<!-- end of rates -->"


@dataclass(frozen=True)
class World:
    """A population of recommended pairs, an annotator that is a model, and a design."""

    words: str
    difference: float = 0.0
    """True difference of P@10; for DCG whatever the draw of labels gives."""
    liked: float = 0.35
    metric: str = "P@10"
    design: str = "uniform"
    model: str = ""
    """`good` (errs in 1 of 10), `biased` (likes what the worse system lists), `popular` (likes
    popular items), `useless`; none where empty."""
    pilot: bool = False
    """Whether a first batch of labels decides where the rest falls."""
    equal_places: bool = False
    """Whether chances depend on neither rank nor item."""
    users: int = 120
    part: int = 1
    """So many times fewer paths."""


D = 0.06
WORLDS = {
    "equal": World("equal systems"),
    "half": World("equal systems, half of all pairs liked", liked=0.5, equal_places=True),
    "rare": World("equal systems, 2 % of pairs liked", liked=0.02),
    "heavy": World("heavy weights (DCG@10)", metric="DCG@10"),
    "stratified": World("equal systems, stratified", design="stratified"),
    "good": World("equal systems, good model", model="good"),
    "biased": World("equal systems, biased model", model="biased"),
    "popular": World("equal systems, model that likes the popular", model="popular"),
    "useless": World("equal systems, useless model", model="useless"),
    "neyman": World("equal systems, Neyman by a good model", design="neyman", model="good"),
    "pilot": World("equal systems, Neyman after a pilot", design="stratified", pilot=True),
    "heavy-strata": World("DCG@10, stratified, biased model", metric="DCG@10", design="stratified",
                          model="biased"),
    "differ": World(f"a true difference of {D:g}", difference=D, part=2),
    "differ-good": World(f"{D:g}, good model", difference=D, model="good", part=2),
    "differ-useless": World(f"{D:g}, useless model", difference=D, model="useless", part=2),
    "differ-biased": World(f"{D:g}, biased model", difference=D, model="biased", part=2),
    "differ-strata": World(f"{D:g}, stratified", difference=D, design="stratified", part=2),
    "differ-neyman": World(f"{D:g}, Neyman by a good model", difference=D, design="neyman",
                           model="good", part=2),
    "differ-rare": World("0.015, 2 % of pairs liked", difference=0.015, liked=0.02, part=2),
    "differ-small": World(f"{D / 2:g}", difference=D / 2, part=2),
    "differ-large": World(f"{D / 2:g}, ten times as many users", difference=D / 2, users=1200,
                          part=2),
    "differ-large-good": World(f"{D / 2:g}, ten times as many users, good model", difference=D / 2,
                               users=1200, model="good", part=2),
}  # fmt: skip


@dataclass
class Population:
    """A plan, and the label of every pair of it."""

    plan: AnnotationPlan
    truth: np.ndarray
    total: float


@dataclass
class Rates:
    """What happened on all paths of a world."""

    paths: int
    pairs: int
    held: int
    """Paths on which the interval held the truth after every number of labels."""
    false_sign: int
    """Paths stopped with a false or groundless "is better"."""
    false_small: int
    """Paths stopped with a false "differ by less than"."""
    settled: int
    """Paths on which the sign was settled rightly before half of all pairs were judged."""
    mean: float
    """Labels at the stop, where the systems differ."""
    middle: float
    tenth: float
    ninetieth: float
    fixed: float
    """Labels of a fixed number that finds the same difference with power 0.8, spreads known."""
    stated_first: float
    """Labels stated as needed before the first label; and after 100 of them, mean over paths."""
    stated: float
    seconds: float


def population(world: World, seed: int) -> Population:
    """Draw lists and labels of a world."""
    rng, users = np.random.default_rng([seed, 11]), world.users
    popular = np.argsort(np.argsort(rng.random(ITEMS)))
    scores = rng.normal(size=(2, users, ITEMS)) + 0.02 * popular
    lists = np.argsort(-scores, axis=2)[:, :, :K]
    inside, rank = np.zeros((2, users, ITEMS), bool), np.full((2, users, ITEMS), K + 1)
    for system in range(2):
        for user in range(users):
            inside[system, user, lists[system, user]] = True
            rank[system, user, lists[system, user]] = np.arange(1, K + 1)
    chance = np.full((users, ITEMS), world.liked)
    if not world.equal_places:
        chance = world.liked * (1.6 - 0.1 * rank.min(axis=0)) * (0.5 + popular / ITEMS)
    liked = rng.random((users, ITEMS)) < chance
    only = [inside[0] & ~inside[1], inside[1] & ~inside[0]]
    if world.metric == f"P@{K}":
        _level(liked, only, round(world.difference * users * K), rng)
    runs = {
        name: {u: lists[s, u].tolist() for u in range(users)} for s, name in enumerate(("a", "b"))
    }
    model = _model(world.model, liked, only, popular, rng)
    labels = None
    if model is not None:
        user, item = np.divmod(np.arange(users * ITEMS), ITEMS)
        labels = {"user": user, "item": item, "rating": model.ravel().astype(float)}
    plan = plan_annotation(
        runs, world.metric, budget=BUDGET, design=world.design, labels=labels, smallest=D, seed=seed
    )
    truth = liked[plan.user.to_numpy(), plan.item.to_numpy()].astype(np.float64)
    return Population(plan, truth, math.fsum(plan.coefficient[0] * truth))


def _level(liked: np.ndarray, only: list, wanted: int, rng: np.random.Generator) -> None:
    """Change labels at random so that a has so many more liked pairs than b."""
    while True:
        gap = int((liked & only[0]).sum()) - int((liked & only[1]).sum()) - wanted
        if not gap:
            return
        side, value = (0, False) if (gap > 0) == (rng.random() < 0.5) else (1, gap > 0)
        if side == 0:
            value = gap < 0
        user, item = np.nonzero(only[side] & (liked != value))
        if user.size:
            at = rng.integers(user.size)
            liked[user[at], item[at]] = value


def _model(kind: str, liked: np.ndarray, only: list, popular: np.ndarray, rng) -> np.ndarray | None:
    """Return what a model says of every pair."""
    noise = rng.random(liked.shape)
    if kind == "good":
        return liked ^ (noise < 0.1)
    if kind == "biased":
        return np.where(only[1], liked | (noise < 0.4), liked & (noise < 0.7))
    if kind == "popular":
        return np.where(popular[None, :] > 40, liked | (noise < 0.6), liked & (noise < 0.6))
    return noise < 0.5 if kind == "useless" else None


def path(world: World, people: Population, seed: int) -> tuple[Draws, np.ndarray, AnnotationPlan]:
    """Return the draws of one random order of all pairs, their labels, and the first plan."""
    nobody = {"order": np.zeros(0, np.int64), "waves": (), "labels": Labels.none(0)}
    empty = replace(people.plan, seed=seed, **nobody)
    plan = first = empty.with_wave(world.design, BUDGET, people.plan.hint)
    size = plan.user.len()
    while plan.order.size < size:
        labels = Labels(people.truth[plan.order], np.zeros(plan.order.size, np.bool_))
        plan = replace(plan, labels=labels)
        more = min(size - plan.order.size, size if world.design == "uniform" else BUDGET)
        design = "neyman" if world.pilot else world.design.replace("neyman", "stratified")
        plan = plan.extend(more, design)
    return plan.draws(0), people.truth[plan.order], first


def first_true(mask: np.ndarray) -> int:
    """Return after how many labels something held for the first time; a large number if never."""
    return int(mask.argmax()) + 1 if mask.any() else 1 << 30


def monitor(draws: Draws, value: np.ndarray, total: float, small: float) -> tuple[bool, int, int]:
    """Look after every label; return whether the truth was held, and when each sentence came."""
    step = steps_of(draws, value)
    marks = np.arange(1, value.size + 1)
    totals = np.array([total, 0.0, small, -small])
    above, below = (
        best_capital(draws, step, LEVEL, sign, totals, marks) >= limit(LEVEL) for sign in (1, -1)
    )
    c = draws.coefficient
    known = np.cumsum(c * value)
    rest = [np.cumsum(np.where(sign * c > 0, 0.0, c)[::-1])[::-1] for sign in (1, -1)]
    least, most = (known + np.append(part[1:], 0.0) for part in rest)
    held = not (above[-1, 0] or below[-1, 0])
    sign = np.minimum(
        first_true(above[:, 1] | (least > 1e-12)), first_true(below[:, 1] | (most < -1e-12)) * 1
    )
    up = first_true(above[:, 1] | (least > 1e-12))
    tiny = (below[:, 2] | (most < small)) & (above[:, 3] | (least > -small))
    return held, int(sign) if up == sign else -int(sign), first_true(tiny)


def fixed_number(people: Population) -> float:
    """Return the fixed number of labels that finds the true difference with power 0.8.

    Spreads of what a best straight line through the model's labels, and the mean of each stratum,
    leave of labels are taken as known: a bound that no planner can reach.
    """
    plan, y = people.plan, people.truth
    hint = np.zeros(y.size) if plan.hint is None else plan.hint
    columns = np.column_stack([hint, *(plan.stratum == k for k in range(len(plan.strata)))])
    rest = plan.coefficient[0] * (y - columns @ np.linalg.lstsq(columns, y, rcond=None)[0])
    spread = rest.var()
    z = NormalDist().inv_cdf((1 + LEVEL) / 2) + NormalDist().inv_cdf(POWER)
    needed = (people.total / z) ** 2
    return 1 / (needed / (y.size**2 * spread) + 1 / y.size)


def rates(world: World, paths: int, seed: int) -> Rates:
    """Walk all paths of a world: a fresh population for every tenth of them."""
    begin, paths = time.perf_counter(), paths // world.part
    held = false_sign = false_small = settled = 0
    stops, stated, stated_first, fixed, pairs = [], [], [], [], []
    for number in range(10):
        people = population(world, seed + number)
        fixed.append(fixed_number(people) if people.total else math.nan)
        pairs.append(people.truth.size)
        for one in range(paths // 10):
            draws, value, first = path(world, people, (seed + number) * 1_000_000 + one)
            kept, sign, tiny = monitor(draws, value, people.total, D)
            held += kept
            stop = min(abs(sign), tiny)
            right = (sign > 0) == (people.total > 0) and people.total != 0
            false_sign += abs(sign) <= stop and not right and abs(sign) < value.size
            false_small += tiny < abs(sign) and abs(people.total) >= D
            if world.difference:
                stops.append(min(abs(sign), value.size))
                settled += abs(sign) <= value.size / 2 and right
                if one < 20:
                    for count, numbers in ((0, stated_first), (100, stated)):
                        spread = spread_of(draws, steps_of(draws, value[:count]))
                        numbers.append(
                            expected_draws(first.draws(0), spread, world.difference, LEVEL)
                        )
    quantile = np.quantile(stops, [0.5, 0.1, 0.9]) if stops else [math.nan] * 3
    mean = [float(np.mean(x)) if x else math.nan for x in (stops, fixed, stated_first, stated)]
    return Rates(
        paths=10 * (paths // 10),
        pairs=int(np.mean(pairs)),
        held=held,
        false_sign=false_sign,
        false_small=false_small,
        settled=settled,
        mean=mean[0],
        middle=float(quantile[0]),
        tenth=float(quantile[1]),
        ninetieth=float(quantile[2]),
        fixed=mean[1],
        stated_first=mean[2],
        stated=mean[3],
        seconds=time.perf_counter() - begin,
    )


def share(count: int, paths: int) -> str:
    return f"{100 * count / paths:.1f}"


def tables(found: dict[str, Rates]) -> str:
    """Return the two tables of the page."""
    lines = [
        "| world | pairs | paths | interval held all along, % | false stop, % |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, one in found.items():
        false = share(one.false_sign + one.false_small, one.paths)
        lines.append(
            f"| {WORLDS[name].words} | {one.pairs:,} | {one.paths:,} | "
            f"{share(one.held, one.paths)} | {false} |"
        )
    lines += [
        "",
        "| true difference | labels at the stop: mean | 10 % to 90 % | fixed number, spread known "
        "| stated before | stated after 100 labels |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {WORLDS[name].words} | {one.mean:,.0f} | {one.tenth:,.0f} to {one.ninetieth:,.0f} | "
        f"{one.fixed:,.0f} | {one.stated_first:,.0f} | {one.stated:,.0f} |"
        for name, one in found.items()
        if WORLDS[name].difference
    ]
    return "\n".join(lines)


def main(run: Callable[..., Rates] = rates) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--paths", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=2_000)
    parser.add_argument("--only", nargs="*", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--docs", action="store_true")
    asked = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    found = {}
    for name in asked.only:
        key = f"{name}/{asked.paths}/{asked.seed}"
        if key not in kept:
            kept[key] = asdict(run(WORLDS[name], asked.paths, asked.seed))
            KEPT.parent.mkdir(exist_ok=True)
            KEPT.write_text(json.dumps(kept, indent=1))
        found[name] = Rates(**kept[key])
        one = found[name]
        print(f"{name}: {one}", flush=True)
    print(tables(found))
    if asked.docs:
        text = DOCS.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        DOCS.write_text(f"{text[:begin]}\n{tables(found)}\n{text[end:]}")


if __name__ == "__main__":
    main()
