"""How often the gate promotes what it should not, and holds what it should not: a table.

    python benchmarks/reliability/gate_rates.py [--worlds 2000] [--seed 2000]
        [--only KIND …] [--docs]

Small worlds whose truth is known, drawn with numpy alone; only the decision is unskew's. A world
is a random draw of its kind, so that a kind's truth is a mean over its worlds: whom the two systems
would please, had everybody rated everything. Rules are fixed on seeds below 1,000; the table of
docs/gate.md (--docs writes it) is of seed 2,000. Finished kinds are kept in build/gate-rates.json:
delete it after a change of the rules. A boundary is exact by symmetry (both
systems are drawn alike) or set to the mean over 2,000 other worlds of the kind.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from unskew.gating.bounds import by_group
from unskew.gating.checks import FAIL, HOLD, PROMOTE, check_values, verdict_of
from unskew.gating.data_checks import value_checks
from unskew.gating.settings import RAILS, GateSettings, MarginRule
from unskew.gating.values import (
    GateValues,
    ListSlots,
    Pair,
    coverage_values,
    gini_values,
    lay,
    levelled_weights,
    light_users,
    popularity_values,
    rank_weights,
    smoothed_averages,
    values_of,
)
from unskew.metrics.names import parse

USERS, ITEMS, K, CLUSTERS = 400, 200, 10, 5
ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "gate.md"
KEPT = ROOT / "build" / "gate-rates.json"
BEGIN, END = "<!-- rates: benchmarks/reliability/gate_rates.py -->", "<!-- end of rates -->"


@dataclass(frozen=True)
class System:
    """What a ranker knows: taste of users, exposure clusters, popularity; the rest is noise."""

    NAMES: ClassVar = ("candidate", "production")

    taste: float = 1.0
    head: float | None = None
    """Taste of users whose cluster holds popular items, where it differs."""
    cold: float = 0.0
    """Taste of users without training ratings."""
    shown: float = 0.0
    """The clusters in which an earlier system showed items."""
    popular: float = 0.0
    light: float | None = None
    """Taste of light users, where it differs."""
    fresh: int = 0
    """How many places hold items that nobody has rated; the rest holds good ones."""
    first: bool = False
    """Whether what is seen more stands further up; which items are listed is as it would be."""


@dataclass(frozen=True)
class World:
    """Who likes what, and who rates what."""

    users: int = USERS
    liked_inside: float = 0.6
    liked_outside: float = 0.3
    quality: float = 0.0
    """By how much better items are liked more; better items are more popular then."""
    steepness: float = 0.8
    """Of the power law of exposure."""
    heads: bool = False
    """Whether popular items are in the first clusters."""
    density: float = 0.06
    selection: float = 1.0
    """The chance that a disliked item is rated, relative to a liked one."""
    boost: float = 1.0
    """How much more often items of the user's exposure cluster are seen."""
    display: float = 0.0
    """The chance that a disliked item of the exposure cluster is rated as liked."""
    shown_selection: float = 1.0
    """The chance that a disliked item of the exposure cluster is rated, relative to others."""
    cold: float = 0.0
    implicit: bool = False
    generous: float | None = None
    """What about half of the users like of anything, the rest liking `liked_outside` of anything;
    only the generous ones are boosted in the user's exposure cluster."""
    household: int = 1
    """Users of a household, who share `SHARED` of what they like, rate and are shown."""
    fresh: bool = False
    """Whether some items are new: nobody has rated them, and few like them; some are good."""


SHARED = 0.9
GOOD, MIDDLING, NEW = 0.7, 0.5, 0.15
"""What is liked of good, of middling and of new items, in worlds that have them."""


@dataclass(frozen=True)
class Draw:
    """One world: what the gate sees, and the truth."""

    values: GateValues
    truth: float
    """True precision of the candidate's lists, less that of production's."""
    light_truth: float = 0.0
    """The same of light users."""


OFF = dict.fromkeys(RAILS)


@dataclass(frozen=True)
class Kind:
    """Worlds of one kind, two systems, and what must not happen."""

    name: str
    text: str
    world: World
    candidate: System
    production: System
    group: str = "undeserved"
    """`undeserved`: must not be promoted; `better`: should be; `broken`: conditions do not hold;
    `harm`: better, with a segment that is truly worse off."""
    metric: str = "P"
    rails: str = "on"
    """`on`, `off`, or the rail whose margin is set to what is true."""
    margin: str = ""
    """`boundary`: non-inferiority with the true difference as margin; or a margin."""
    is_grouped: bool = True
    """Whether households are stated."""


def exposure(world: World) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return of each item how often it is seen, its cluster, its quality."""
    place = np.arange(ITEMS)
    seen = (1.0 + place) ** -world.steepness
    seen *= ITEMS / seen.sum()
    cluster = place * CLUSTERS // ITEMS if world.heads else place % CLUSTERS
    # In quality worlds the popular ones are good; the mean is 0, so that nothing else changes.
    quality = np.linspace(1, -1, ITEMS)
    return seen, cluster, quality


def draw(kind: Kind, seed: int, number: int) -> Draw:
    """Draw a world and both systems' lists, and lay them out as the gate does."""
    if kind.name == "ours":
        return draw_ours(seed, number)
    rng = np.random.default_rng([7, seed, number])
    world = kind.world
    seen, cluster, quality = exposure(world)
    n = world.users
    taste, shown = rng.integers(CLUSTERS, size=(2, n))
    activity = rng.lognormal(-0.125, 0.5, n)
    groups = np.arange(n) // world.household if world.household > 1 else None
    if groups is not None:  # households have one taste
        taste, activity = taste[groups * world.household], activity[groups * world.household]
    cold = rng.random(n) < world.cold
    same = taste[:, None] == cluster
    inside = shown[:, None] == cluster
    chance = np.where(same, np.float32(world.liked_inside), np.float32(world.liked_outside))
    if world.quality:
        chance = np.clip(chance + np.float32(world.quality) * quality, 0.02, 0.98)
    if world.generous is not None:
        generous = rng.random(n) < 0.5
        chance[generous] = world.generous
        chance[~generous] = world.liked_outside
        inside &= generous[:, None]
    kinds_of_items = new_items(chance, seen) if world.fresh else None
    likes = rng.random((n, ITEMS), dtype=np.float32) < chance
    rate = (world.density * activity).astype(np.float32)[:, None] * seen.astype(np.float32)
    if world.boost != 1:
        rate[inside] *= np.float32(world.boost)
    if world.generous is not None:  # focused users rate as much as the others
        rate *= (ITEMS * world.density * activity / rate.sum(axis=1)).astype(np.float32)[:, None]
    rated_chance = np.minimum(rate, np.float32(0.9), out=rate)
    if world.selection != 1:
        rated_chance[~likes] *= np.float32(world.selection)
    if world.shown_selection != 1:
        rated_chance[inside & ~likes] *= np.float32(world.shown_selection)
    rated = rng.random((n, ITEMS), dtype=np.float32) < rated_chance
    said = likes
    if world.display:
        said = likes | (inside & (rng.random((n, ITEMS), dtype=np.float32) < world.display))
    if world.implicit:
        rated &= said
    popularity = rng.poisson(np.maximum(4 * n * world.density * seen, 0.0)).astype(float)
    trained = np.where(cold, 0, 1 + rng.poisson(4 * world.density * ITEMS * activity))
    # What people liked of their training ratings is drawn as in the test.
    usual = (rated_chance * said).sum(axis=1) / np.maximum(rated_chance.sum(axis=1), 1e-9)
    trained_likes = rng.binomial(trained, 1.0 if world.implicit else np.clip(usual, 0, 1))
    if groups is not None:
        share_in_households(rng, groups * world.household, likes, rated)
    head, light = taste < 2, light_users(trained)
    lists = []
    for system in (kind.candidate, kind.production):
        strength = np.full(n, system.taste)
        if system.head is not None:
            strength[head] = system.head
        strength[cold] = system.cold
        if system.light is not None:
            strength[light] = system.light
        score = rng.standard_normal((n, ITEMS), dtype=np.float32)
        if groups is not None:
            score *= np.float32(math.sqrt(1 - SHARED))
            of_household = rng.standard_normal((n, ITEMS), dtype=np.float32)[groups]
            score += np.float32(math.sqrt(SHARED)) * of_household
        score += strength.astype(np.float32)[:, None] * same
        if system.popular:
            score += (system.popular * np.log(seen)).astype(np.float32)
        if system.shown:
            score += np.float32(system.shown) * inside
        if kinds_of_items is not None:
            score += preferred(kinds_of_items, system, rng, n)
        top = np.argpartition(score, ITEMS - K, axis=1)[:, ITEMS - K :]
        if system.first:
            score = score + 100 * seen.astype(np.float32)
        lists.append(np.take_along_axis(top, np.argsort(-np.take_along_axis(score, top, 1), 1), 1))
    truth = [np.take_along_axis(chance, one, 1).mean(axis=1) for one in lists]
    difference = truth[0] - truth[1]
    training = popularity, trained, trained_likes
    values = as_values(kind, lists, rated, said, training, taste, seen, cluster, groups)
    if not kind.is_grouped:
        values = replace(values, groups=None)
    return Draw(values, float(difference.mean()), float(difference[light].mean()))


def new_items(chance: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Make items good, middling or new; set how they are liked and seen. Return their kinds.

    Good ones are seen three times as often as middling ones, new ones not yet.
    """
    kinds = np.array([0] * 4 + [1] * 10 + [2] * 6)[np.arange(ITEMS) % 20]
    chance[:] = np.array([GOOD, MIDDLING, NEW], np.float32)[kinds]
    seen[:] = np.array([3.0, 1.0, 0.0])[kinds]
    seen *= ITEMS / seen.sum()
    return kinds


def preferred(kinds: np.ndarray, system: System, rng: np.random.Generator, n: int) -> np.ndarray:
    """Return scores by which lists hold good and new items in fixed numbers, or middling ones."""
    score = np.zeros((n, ITEMS), np.float32)
    if not system.fresh:
        score[:, kinds == 1] = 100
        return score
    for kind, number in ((0, K - system.fresh), (2, system.fresh)):
        (items,) = np.nonzero(kinds == kind)
        order = rng.random((n, items.size)).argsort(axis=1)[:, :number]
        np.put_along_axis(score, items[order], 200 - 50 * kind, axis=1)
    return score


def share_in_households(rng, first, likes, rated):
    """Let users like and rate as the first user of their household does, but for some items."""
    shared = rng.random(rated.shape, dtype=np.float32) < SHARED
    likes[:] = np.where(shared, likes[first], likes)
    rated[:] = np.where(shared, rated[first], rated)


def as_values(kind, lists, rated, said, training, taste, seen, cluster, groups):
    """Lay lists over judgments: the twin of `gate_values` on dense arrays."""
    popularity, trained, trained_likes = training
    liked, n, tested = rated & said, rated.shape[0], rated.any(axis=1)
    weight = np.zeros(ITEMS)
    user, item = np.nonzero(rated)
    if user.size:
        of = levelled_weights(item, liked[user, item], popularity)
        weight[item] = of
    averages = smoothed_averages(liked.sum(0).astype(float), rated.sum(0).astype(float))
    is_unrated = (popularity == 0) & ~rated.any(axis=0)
    of_rank = rank_weights(parse(f"{kind.metric}@{K}"), K)
    names = ("metric", "anti", "liked", "judged", "levelled", "filled")
    columns = {name: [] for name in (*names, "liked_by_rank", "judged_by_rank")}
    exposures = {name: [] for name in ("coverage", "gini", "popularity")}
    unrated = []
    catalogue = np.ones(ITEMS, bool)
    owner = np.repeat(np.arange(n, dtype=np.int32), K)
    household = owner if groups is None else groups[owner]
    for one in lists:
        hit = np.take_along_axis(liked, one, 1)
        met = np.take_along_axis(rated, one, 1)
        columns["metric"].append(metric(kind.metric, hit, liked)[tested])
        columns["anti"].append(metric(kind.metric, met & ~hit, rated & ~liked)[tested])
        columns["liked"].append(hit.sum(1)[tested].astype(float))
        columns["judged"].append(met.sum(1)[tested].astype(float))
        columns["levelled"].append((hit * weight[one]).sum(1)[tested])
        columns["liked_by_rank"].append((hit @ of_rank)[tested])
        columns["judged_by_rank"].append((met @ of_rank)[tested])
        columns["filled"].append(np.where(met, hit, averages[one]).mean(1)[tested])
        unrated.append(float(is_unrated[one].mean()))
        slots = ListSlots(n, owner, one.ravel())
        by_household = ListSlots(int(household.max()) + 1, household, one.ravel())
        exposures["coverage"].append(coverage_values(by_household, catalogue))
        exposures["gini"].append(gini_values(by_household, catalogue))
        exposures["popularity"].append(by_group(popularity_values(slots, popularity), groups))
    pairs = {name: Pair(*two) for name, two in (columns | exposures).items()}
    if kind.world.implicit:
        pairs["anti"] = pairs["filled"] = None
    mean_popularity = np.array([seen[cluster == c].mean() for c in range(CLUSTERS)])[taste]
    segments = {
        "activity": quarters(trained[tested]),
        "popularity": quarters(np.where(trained > 0, mean_popularity + trained * 1e-9, -1)[tested]),
    }
    return GateValues(
        **pairs,
        k=K,
        has_dislikes=not kind.world.implicit,
        usual=((liked.sum(1) + trained_likes) / np.maximum(rated.sum(1) + trained, 1))[tested],
        unrated=(unrated[0], unrated[1]),
        light=light_users(trained[tested].astype(float)),
        groups=None if groups is None else groups[tested],
        segments=segments,
    )


def draw_ours(seed: int, number: int) -> Draw:
    """Draw a world of unskew; both systems are the same recommender on random halves of training.

    Everything from ratings to values is unskew's own. Neither half is better: the truth is 0.
    """
    import unskew as us

    world = us.world("shop", users=200, items=80, seed=100_000 * seed + number)
    (split,) = us.splits.Random(test=0.3).split(world.ratings, seed=number)
    half = np.random.default_rng([8, seed, number]).random(len(split.train)) < 0.5
    lists = us.targets.AllItems().lists(split, us.Relevance(liked=4), seed=number)
    runs = {
        name: us.rank(us.recommend.ItemKNN(k=20).fit(split.train.take(rows), number), lists, K)
        for name, rows in (("candidate", half), ("production", ~half))
    }
    judged = us.judge(split.test, runs, liked=4, train=split.train)
    return Draw(values_of(lay(judged, "candidate", "production", parse("nDCG@10"))), 0.0)


def metric(name: str, hit: np.ndarray, liked: np.ndarray) -> np.ndarray:
    """P@10, or nDCG@10 with the ideal cut at 10."""
    if name == "P":
        return hit.mean(axis=1)
    discount = 1 / np.log2(np.arange(2, K + 2))
    ideal = np.append(0, np.cumsum(discount))[np.minimum(liked.sum(1), K)]
    return np.divide(hit @ discount, ideal, out=np.zeros(len(hit)), where=ideal > 0)


def quarters(values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Cut into quarters; users without training ratings are a segment of their own."""
    warm = values > 0
    code = np.full(values.size, 4, np.int64)
    ranks = np.argsort(np.argsort(values[warm], kind="stable"), kind="stable")
    code[warm] = ranks * 4 // max(int(warm.sum()), 1)
    return ("1", "2", "3", "4", "cold")[: 4 + (not warm.all())], code


def settings_of(kind: Kind, seed: int) -> GateSettings:
    """Return the thresholds of a kind; a boundary comes from other worlds of it."""
    settings = GateSettings()
    if kind.rails == "off":
        settings = replace(settings, rails=OFF)
    elif kind.rails != "on":
        # Nothing but this rail, exactly at its margin, stands in the way.
        settings = replace(settings, popularity="inform")
        settings = replace(
            settings,
            rails={
                **OFF,
                kind.rails: MarginRule(pilot(kind, seed)[kind.rails], kind.rails == "light"),
            },
        )
    if kind.margin == "boundary":
        return replace(settings, margin=MarginRule(pilot(kind, seed)["metric"]))
    return settings.with_margin(kind.margin) if kind.margin else settings


def pilot(kind: Kind, seed: int, worlds: int = 2_000) -> dict[str, float]:
    """Return by how much the candidate is worse, in each quantity: the mean over other worlds."""
    total: Counter[str] = Counter()
    for number in range(worlds):
        values = draw(kind, seed + 500_000, number).values
        candidate, production = values.metric
        total["metric"] += float((production - candidate).mean())
        light = values.light
        total["light fall"] += float((production[light] - candidate[light]).sum())
        total["light base"] += float(production[light].sum())
        for name in ("gini", "popularity"):
            pair = getattr(values, name)
            total[name] += float((pair.candidate - pair.production).mean())
        total["coverage"] += float((values.coverage.production - values.coverage.candidate).mean())
        for name in System.NAMES if values.anti is not None else ():
            total[f"anti {name}"] += float(getattr(values.anti, name).sum())
            total[f"liked {name}"] += float(getattr(values.metric, name).sum())
    result = {name: value / worlds for name, value in total.items()}
    ratio = {n: total[f"anti {n}"] / max(total[f"liked {n}"], 1e-9) for n in System.NAMES}
    return result | {
        "anti": ratio["candidate"] - ratio["production"],
        "light": total["light fall"] / max(total["light base"], 1e-9),
    }


SAME = (System(1.0), System(1.0))
NO_TASTE = World(liked_inside=0.3)
SELECT = "liked items are rated five times as often as disliked ones"
LIKES = "only likes are recorded"

KINDS = [
    # Nothing but check 1 stands between an equal system and promotion.
    Kind("equal", "equal systems, P@10", World(), *SAME, rails="off"),
    Kind("equal-ndcg", "equal systems, nDCG@10", World(), *SAME, metric="nDCG", rails="off"),
    Kind("equal-select", f"equal systems, nDCG@10; {SELECT}", World(selection=0.2), *SAME,
         metric="nDCG", rails="off"),
    Kind("equal-implicit", f"equal systems; {LIKES}", World(implicit=True, density=0.1), *SAME,
         rails="off"),
    Kind("equal-few", "equal systems, 100 users, few ratings", World(users=100, density=0.04),
         *SAME, metric="nDCG", rails="off"),
    Kind("equal-rails", "equal systems, with guard rails", World(), *SAME),
    Kind("ours", "unskew's world `shop`: one recommender on two halves of training", World(),
         *SAME, metric="nDCG", rails="off"),
    Kind("margin", "worse by exactly the margin, P@10", World(), System(0.85), System(1.0),
         margin="boundary", rails="off"),
    Kind("margin-ndcg", "worse by exactly the margin, nDCG@10", World(), System(0.85),
         System(1.0), margin="boundary", metric="nDCG", rails="off"),
    # Only more popular, or only shown more: check 2 stands between.
    Kind("popular", "only more popular: nobody has taste", NO_TASTE, System(0, popular=0.4),
         System(0), rails="off"),
    Kind("popular-little", "only a little more popular", NO_TASTE, System(0, popular=0.1),
         System(0), rails="off"),
    Kind("popular-rails", "only more popular, with guard rails", NO_TASTE,
         System(0, popular=0.4), System(0)),
    Kind("popular-first", "equal items, the more popular ones at the top, nDCG@10", NO_TASTE,
         System(0, first=True), System(0), metric="nDCG", rails="off"),
    Kind("popular-taste", "more popular, with the same taste", World(),
         System(1.0, popular=0.25), System(1.0), rails="off"),
    Kind("popular-less", "more popular, and less taste", World(), System(0.8, popular=0.25),
         System(1.0), rails="off"),
    Kind("popular-select", f"only more popular; {SELECT}",
         replace(NO_TASTE, selection=0.2), System(0, popular=0.4), System(0), rails="off"),
    Kind("popular-implicit", f"only more popular; {LIKES}",
         replace(NO_TASTE, implicit=True, density=0.15), System(0, popular=0.4), System(0),
         rails="off"),
    Kind("head-tail", "better for lovers of popular items, worse for the others",
         World(heads=True), System(0.6, head=1.6), System(1.6, head=0.6), rails="off"),
    Kind("earlier", "lists what an earlier system showed; nobody has taste",
         replace(NO_TASTE, boost=6), System(0, shown=1.0), System(0), rails="off"),
    Kind("earlier-taste", "lists what an earlier system showed, and less of what people like",
         World(boost=6), System(0.9, shown=1.0), System(1.0), rails="off"),
    Kind("cold-equal", "equal systems, half of the users are cold", World(cold=0.5), *SAME,
         rails="off"),
    Kind("cold-worse", "better for warm users, worse for cold ones, worse on average",
         World(cold=0.5), System(1.3, cold=0.0), System(1.0, cold=0.6), rails="off"),
    # The score is truly better; one guard rail is exactly at its margin.
    Kind("rail-anti", "scores higher; disliked per liked item exactly at the margin",
         World(density=0.12),
         System(0.5, popular=0.6), System(1.2), rails="anti"),
    Kind("rail-coverage", "scores higher; coverage exactly at the margin",
         World(users=200, density=0.35), System(2.4, popular=0.8), System(1.0, popular=0.6),
         rails="coverage"),
    Kind("rail-gini", "scores higher; Gini exactly at the margin", World(density=0.12),
         System(2.2, popular=0.3), System(1.2), rails="gini"),
    Kind("rail-popularity", "scores higher; popularity exactly at the margin", World(density=0.12),
         System(2.2, popular=0.2), System(1.2), rails="popularity"),
    # Half of the users like more of anything, and are better known to the candidate.
    Kind("focused", "generous users are predictable; nobody prefers any item",
         World(density=0.25, generous=0.7, liked_outside=0.35, boost=60, steepness=0.3),
         System(0, shown=2.0), System(0), rails="off"),
    Kind("focused-mild", "the same, milder, 1,500 users",
         World(users=1_500, density=0.25, generous=0.6, liked_outside=0.45, boost=5,
               steepness=0.3), System(0, shown=2.0), System(0), rails="off"),
    Kind("new-items", "four good items and six that nobody has rated, for ten middling ones",
         World(fresh=True, density=0.15), System(0, fresh=6), System(0), rails="off"),
    Kind("new-items-ndcg", "the same, nDCG@10, with guard rails",
         World(fresh=True, density=0.15), System(0, fresh=6), System(0), metric="nDCG"),
    Kind("households", "equal systems, 100 households of five with shared ratings, stated",
         World(users=500, household=5), *SAME, rails="off"),
    Kind("heavy-light", "better on average, worse for light users, with guard rails",
         World(liked_inside=0.7, liked_outside=0.1, density=0.2), System(2.5, light=0.6),
         System(0.8, light=1.2)),
    Kind("rail-light", "scores higher; light users worse by exactly the margin",
         World(liked_inside=0.7, liked_outside=0.1, density=0.2), System(2.5, light=0.8),
         System(0.8, light=1.2), rails="light"),
    # Better, and the guard rails have room.
    Kind("taste", "better taste, P@10", World(density=0.3), System(2.2), System(1.0),
         group="better"),
    Kind("taste-ndcg", "better taste, nDCG@10", World(density=0.45), System(2.7), System(1.0),
         group="better", metric="nDCG"),
    Kind("taste-implicit", f"better taste; {LIKES}", World(density=0.3, implicit=True),
         System(2.2), System(1.0), group="better"),
    Kind("taste-cold", "better taste, half of the users are cold",
         World(density=0.55, cold=0.5, users=800), System(2.8), System(1.0), group="better"),
    Kind("not-worse", "equal systems, margin 15 %", World(density=0.4, users=600),
         System(1.5), System(1.5), margin="15%", group="better"),
    Kind("taste-select", f"better taste; {SELECT}", World(density=0.25, selection=0.2),
         System(2.2), System(1.0), group="better"),
    Kind("taste-select-more", f"the same with more ratings; {SELECT}",
         World(density=0.35, selection=0.2), System(2.3), System(1.0), group="better"),
    # The conditions do not hold.
    Kind("halo", "what an earlier system showed is rated as liked although it is not",
         replace(NO_TASTE, boost=6, display=0.3), System(0, shown=1.0), System(0),
         group="broken", rails="off"),
    Kind("hidden-dislikes", "dislikes of what an earlier system showed are rated less often",
         replace(NO_TASTE, boost=6, shown_selection=0.3), System(0, shown=1.0), System(0),
         group="broken", rails="off"),
    Kind("earlier-implicit", f"lists what an earlier system showed; {LIKES}",
         replace(NO_TASTE, boost=6, implicit=True), System(0, shown=1.0), System(0),
         group="broken", rails="off"),
    Kind("households-unstated", "equal systems, 100 households of five, not stated",
         World(users=500, household=5), *SAME, group="broken", rails="off", is_grouped=False),
    Kind("tail-harm", "better on average; lovers of rare items are worse off",
         World(heads=True, density=0.4), System(0.8, head=3.5), System(1.5, head=0.6),
         group="harm", rails="off"),
    Kind("cold-harm", "better on average; cold users are worse off",
         World(cold=0.5, density=0.4), System(3.0, cold=0.5), System(0.6, cold=1.1),
         group="harm", rails="off"),
]  # fmt: skip


@dataclass
class Count:
    """What happened in the worlds of a kind."""

    worlds: int = 0
    promoted: int = 0
    held: int = 0
    t_test: int = 0
    only_popular: int = 0
    """Worlds that check 2 alone kept from promotion."""
    alarms: int = 0
    truth: float = 0.0
    light_truth: float = 0.0
    observed: float = 0.0
    seconds: float = 0.0

    def add(self, draw: Draw, settings: GateSettings) -> None:
        """Decide one world."""
        start = time.perf_counter()
        checks = check_values(draw.values, settings, settings.alpha)
        data = []
        if settings.popularity == "check":
            data = value_checks(draw.values, settings, settings.alpha)
        verdict = verdict_of(checks, data)
        self.seconds += time.perf_counter() - start
        relaxed = replace(checks, popularity=replace(checks.popularity, outcome="pass"))
        self.worlds += 1
        self.promoted += verdict == PROMOTE
        self.held += verdict == HOLD
        self.only_popular += verdict != PROMOTE and verdict_of(relaxed, data) == PROMOTE
        self.alarms += any(one.outcome == FAIL for one in checks.segments)
        candidate, production = draw.values.metric
        limit = 0.0 if settings.margin is None else -settings.margin.of(production.mean())
        d = candidate - production - limit
        spread = d.std(ddof=1) / math.sqrt(d.size)
        self.t_test += bool(spread > 0 and d.mean() / spread > 1.6449)
        self.truth += draw.truth
        self.light_truth += draw.light_truth
        self.observed += float((candidate - production).mean())

    def rates(self) -> dict[str, float]:
        """Return shares and means over the worlds."""
        shares = {
            "t_test": self.t_test,
            "promoted": self.promoted,
            "held": self.held,
            "only_popular": self.only_popular,
            "alarms": self.alarms,
            "truth": self.truth,
            "light_truth": self.light_truth,
            "milliseconds": 1e3 * self.seconds,
        }
        return {"worlds": self.worlds, **{k: v / self.worlds for k, v in shares.items()}}


def run(kind: Kind, worlds: int, seed: int) -> dict[str, float]:
    """Decide many worlds of a kind."""
    settings, count = settings_of(kind, seed), Count()
    for number in range(worlds):
        count.add(draw(kind, seed, number), settings)
    return count.rates()


def limit(worlds: float) -> float:
    """Return the bar: .05 and two Monte-Carlo standard errors."""
    return 0.05 + 2 * math.sqrt(0.05 * 0.95 / worlds)


HEADS = ("worlds of this kind", "true difference", "t test", "promote", "hold", "check 2 stopped")
TABLES = {
    "undeserved": "Must not be promoted: the truth is on the boundary or beyond it",
    "better": "Should be promoted: better (or equal, with a margin), and the rails have room",
    "broken": "Must not be promoted, but the conditions of check 2 do not hold",
    "harm": "Better on average, with a group of users that is worse off: alarms are in `hold`",
}


def tables(rates: dict[str, dict[str, float]]) -> str:
    """Return the tables of the page."""
    parts = []
    for group, title in TABLES.items():
        lines = [f"| {' | '.join(HEADS)} |", "|---|" + "---:|" * (len(HEADS) - 1)]
        for kind in KINDS:
            if kind.group == group and kind.name in rates:
                one = rates[kind.name]
                shares = [one[name] for name in ("t_test", "promoted", "held", "only_popular")]
                truth = f"{one['truth']:+.3f}".replace("-", "−")
                truth = "0.000" if truth in ("+0.000", "−0.000") else truth
                cells = [kind.text, truth, *(f"{share:.3f}" for share in shares)]
                lines.append(f"| {' | '.join(cells)} |")
        parts.append(f"**{title}.**\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def summary(rates: dict[str, dict[str, float]]) -> list[str]:
    """Return what is held against the bars."""
    group = {kind.name: kind.group for kind in KINDS}
    lines = []
    for name, one in rates.items():
        if group[name] == "undeserved" and one["promoted"] > limit(one["worlds"]):
            lines.append(f"{name}: promoted {one['promoted']:.4f} > {limit(one['worlds']):.4f}")
        has_power = group[name] == "better" and one["t_test"] >= 0.95
        if has_power and (one["promoted"] < 0.8 or one["held"] > 0.05):
            lines.append(f"{name}: promoted {one['promoted']:.3f}, held {one['held']:.3f}")
    return lines or ["every bar is met"]


def main() -> None:
    """Run the kinds that are not finished and print their rates."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=2_000)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--docs", action="store_true")
    arguments = parser.parse_args()
    name = f"{arguments.seed}/{arguments.worlds}"
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    rates = kept.setdefault(name, {})
    for kind in KINDS:
        if kind.name in rates or (arguments.only and kind.name not in arguments.only):
            continue
        start = time.perf_counter()
        rates[kind.name] = run(kind, arguments.worlds, arguments.seed)
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1))
        shown = {key: round(value, 4) for key, value in rates[kind.name].items()}
        print(f"{kind.name:18} {time.perf_counter() - start:4.0f} s", shown, flush=True)
    print("\n".join(summary(rates)))
    if arguments.docs:
        text = DOCS.read_text()
        begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        DOCS.write_text(f"{text[:begin]}\n{tables(rates)}\n{text[end:]}")


if __name__ == "__main__":
    main()
