"""How often statements about order over time and about the age of models are false.

    python benchmarks/overtime_rates.py                       # all worlds, 1,000 data sets each
    python benchmarks/overtime_rates.py --data-sets 200 still # one world, quicker
    python benchmarks/overtime_rates.py --output rates.json   # kept after every world, resumed

Plain numpy, no world of the library: users with a skill and tastes of their own, windows with a
level of their own, values that look like P@10 (a binomial share), like a hit rate (0 or 1, rarely
1), like a reciprocal rank, or heavy-tailed. The truth of each statement is known from the
probabilities that values are drawn from.

- *varies* is false where the expected difference of every user is the same in all windows;
- *order changes* is false unless the expected differences of the named windows have these signs;
- *ahead* in a window is false unless the expected difference has this sign;
- *loses* is false unless the older model is expected to score less.

Rules (level .05, Holm, the largest |t|, the least number of users that differ) were fixed before
any of these numbers was seen, but for one: that the means of windows must show it too (the larger p
of two tests) was added after "users leave", where the test within users alone says *varies* in all
of 200 data sets. Seeds from 1,000 up.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unskew as us
from unskew.stats.intervals.shares import wilson

F64 = NDArray[np.float64]
FIRST_SEED = 1_000
SYSTEMS = ("a", "b", "c", "d")
EXCHANGES = 999


@dataclass(frozen=True)
class World:
    """How a data set is drawn: probabilities users x windows x systems, and who is there."""

    users: int = 300
    windows: int = 6
    kind: str = "share"
    """`share` (P@10), `hit` (0 or 1), `rank` (reciprocal rank) or `tails`."""
    level: Callable[[F64], F64] = lambda w: 0.3 + 0 * w
    """Of all systems, by the place of the window from 0 to 1."""
    lead: Callable[[F64], F64] = lambda w: 1 + 0 * w
    """Factor of the differences between systems, by the place of the window."""
    effects: tuple[float, ...] = (0.06, 0.03, 0.0, -0.03)
    taste: float = 0.05
    """Standard deviation of each user's own differences."""
    stay: str = "some"
    """`all` windows; `some` at random; `come-and-go`: a run of windows; `cohorts`: see there;
    `leavers`: until the first system serves a user badly."""


def leads(world: World, rng: np.random.Generator) -> tuple[F64, NDArray[np.bool_]]:
    """Return the expected values, users x windows x systems, and who is there."""
    place = np.linspace(0, 1, world.windows)
    there = presence(world, rng)
    effects = np.array(world.effects)
    own = world.taste * rng.uniform(-1, 1, (world.users, 1, effects.size)) * np.sqrt(3)
    skill = 0.05 * rng.uniform(-1, 1, (world.users, 1, 1)) * np.sqrt(3)
    shift = effects[None, None, :] * world.lead(place)[None, :, None]
    if world.stay == "cohorts":
        # Later users have twice the differences, always: who is there changes, nobody does.
        first = there.argmax(axis=1) / max(world.windows - 1, 1)
        shift = effects[None, None, :] * (1 + first)[:, None, None] * np.ones((1, place.size, 1))
    if world.stay == "turning cohorts":
        first = there.argmax(axis=1) / max(world.windows - 1, 1)
        shift = (
            effects[None, None, :] * (1 - 2 * first)[:, None, None] * np.ones((1, place.size, 1))
        )
    expected = world.level(place)[None, :, None] + skill + own + shift
    return expected, there


def presence(world: World, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Draw in which windows each user is."""
    shape = (world.users, world.windows)
    if world.stay in ("all", "leavers"):
        return np.ones(shape, np.bool_)
    if world.stay == "some":
        there = rng.random(shape) < 0.6
        there[np.arange(world.users), rng.integers(world.windows, size=world.users)] = True
        return there
    first = rng.integers(world.windows, size=world.users)
    stay = rng.geometric(0.4, size=world.users)
    at = np.arange(world.windows)
    return (at >= first[:, None]) & (at < (first + stay)[:, None])


def draw(world: World, expected: F64, rng: np.random.Generator) -> F64:
    """Draw values whose expectation is as given."""
    if world.kind == "share":
        return rng.binomial(10, expected) / 10
    if world.kind == "hit":
        return (rng.random(expected.shape) < 0.1 * expected).astype(np.float64)
    if world.kind == "rank":  # 1 / rank, where the rank is 1, 2, 5 or none
        kinds = np.array([1.0, 0.5, 0.2])
        chosen = kinds[rng.integers(3, size=expected.shape)]
        return chosen * (rng.random(expected.shape) < expected)
    # Dependent over windows and heavy-tailed, with a spread that grows.
    users, windows, systems = expected.shape
    noise = rng.standard_t(3, (users, windows, systems))
    for w in range(1, windows):
        noise[:, w] = 0.7 * noise[:, w - 1] + 0.7 * noise[:, w]
    return expected + 0.1 * noise * np.linspace(0.5, 2, windows)[None, :, None]


def still_there(world: World, values: F64) -> NDArray[np.bool_]:
    """Return who has not left: `leavers` go after a window in which "a" served them badly."""
    there = np.ones(values.shape[:2], np.bool_)
    if world.stay == "leavers":
        there[:, 1:] = np.logical_and.accumulate(values[:, :-1, 0] >= 0.3, axis=1)
    return there


WORLDS: dict[str, World] = {
    # No user's difference changes, and no order.
    "still": World(),
    "level drifts": World(level=lambda w: 0.25 + 0.3 * w),
    "seasons": World(windows=8, level=lambda w: 0.35 + 0.12 * np.sin(6 * np.pi * w)),
    "users come and go": World(users=600, stay="come-and-go", level=lambda w: 0.25 + 0.2 * w),
    "cohorts differ": World(users=600, stay="cohorts"),
    "all equal": World(effects=(0.0, 0.0, 0.0, 0.0), level=lambda w: 0.25 + 0.2 * w),
    "rare hits": World(users=1500, kind="hit", level=lambda w: 0.25 + 0.2 * w),
    "reciprocal ranks": World(kind="rank", level=lambda w: 0.25 + 0.2 * w),
    "heavy tails": World(kind="tails", stay="all", windows=5),
    "few users": World(users=40, windows=4),
    "very few users": World(users=15, windows=4, stay="all"),
    # No user's difference changes, but users leave after a window in which "a" served them badly.
    "users leave": World(users=600, stay="leavers", taste=0.0),
    # The same where tastes differ: those who stay like "a" better, so that the means of windows
    # change although nobody does.
    "users leave, tastes differ": World(users=600, stay="leavers"),
    # Differences change, no order does.
    "shrinking": World(lead=lambda w: 1.5 - 1.2 * w),
    "vanishing": World(lead=lambda w: np.maximum(2 - 4 * w, 0)),
    "one window only": World(lead=lambda w: 3.0 * (w == 0)),
    # The order changes.
    "turns a little": World(users=600, lead=lambda w: 1 - 2 * w),
    "turns": World(users=600, lead=lambda w: 2 * (1 - 2 * w)),
    "turns for one window": World(users=600, lead=lambda w: np.where(w == 0.6, -2.0, 2.0)),
    "turns, few users": World(
        users=100, level=lambda w: 0.45 + 0 * w, lead=lambda w: 3 * (1 - 2 * w)
    ),
    "turning cohorts": World(users=900, stay="turning cohorts", effects=(0.12, 0.06, 0.0, -0.06)),
}


def truth(world: World, expected: F64) -> F64:
    """Turn expectations of values into those that `draw` has."""
    if world.kind == "hit":
        return 0.1 * expected
    return expected * (1.7 / 3) if world.kind == "rank" else expected


def one_data_set(name: str, seed: int) -> dict[str, float]:
    """Return what was said of one data set, and what of it was false."""
    world, rng = WORLDS[name], np.random.default_rng(seed)
    expected, there = leads(world, rng)
    values = draw(world, expected, rng)
    there = there & still_there(world, values)
    user, window = np.nonzero(there)
    table = {
        "user": user,
        "window": window,
        **{system: values[user, window, at] for at, system in enumerate(SYSTEMS)},
    }
    result = us.stats.order_changes(table, permutations=EXCHANGES, resamples=0, seed=seed)
    exact = _population(name)
    changes = result.parts["changes"].rows
    false_signs = cells = false_orders = true_orders = true_pairs = 0
    for row in result.rows.iter_rows(named=True):
        i, j, w = SYSTEMS.index(row["system"]), SYSTEMS.index(row["against"]), int(row["window"])
        difference = exact[w, i] - exact[w, j]
        cells += row["significant"]
        false_signs += row["significant"] and difference * np.sign(row["value"]) <= 1e-9
    for row in changes.iter_rows(named=True):
        i, j = SYSTEMS.index(row["system"]), SYSTEMS.index(row["against"])
        difference = exact[:, i] - exact[:, j]
        turns = bool((difference > 1e-9).any() and (difference < -1e-9).any())
        true_pairs += turns
        true_orders += turns and row["reverses"]
        false_orders += row["reverses"] and not turns
    return {
        "varies": float(changes["significant"].any()),
        "pairs_vary": float(changes["significant"].mean()),
        "false_sign": float(false_signs > 0),
        "false_order": float(false_orders > 0),
        "turning_pairs": float(true_pairs),
        "turns_seen": float(true_orders),
        "any_turn_seen": float(true_orders > 0),
    }


_known: dict[str, F64] = {}


def _population(name: str) -> F64:
    """Return the expected mean of each window and system over the population of its users."""
    if name not in _known:
        world = WORLDS[name]
        if world.stay in ("cohorts", "turning cohorts", "leavers"):
            taste = world.taste if world.stay == "leavers" else 0.0
            rng = np.random.default_rng(7)
            expected, there = leads(replace(world, users=400_000, taste=taste), rng)
            there = there & still_there(world, draw(world, expected, rng))
            expected = truth(world, expected)
            weight = there[:, :, None]
            _known[name] = (expected * weight).sum(axis=0) / weight.sum(axis=0)
        else:
            scale = truth(world, np.ones(1))[0]
            place = np.linspace(0, 1, world.windows)
            _known[name] = scale * (
                world.level(place)[:, None]
                + np.array(world.effects)[None, :] * world.lead(place)[:, None]
            )
    return _known[name]


# The age of models


@dataclass(frozen=True)
class Ages:
    """Models of several ages on one window: what each system loses, by age from 0 to 1."""

    users: int = 300
    ages: int = 5
    loss: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    """At the greatest age."""
    kind: str = "share"
    shared: float = 0.8
    """How alike the lists of two ages are: the share of values that stay."""


AGES: dict[str, Ages] = {
    "no decay": Ages(),
    "no decay, few users": Ages(users=30),
    "no decay, rare hits": Ages(users=1500, kind="hit"),
    "one decays": Ages(loss=(0.06, 0.0, 0.0, 0.0)),
    "all decay": Ages(loss=(0.06, 0.04, 0.02, 0.01)),
}


def one_aging(name: str, seed: int) -> dict[str, float]:
    """Return what was said of models of several ages, and what of it was false."""
    world, rng = AGES[name], np.random.default_rng(seed)
    place = np.linspace(0, 1, world.ages)
    shape = (world.users, world.ages, len(SYSTEMS))
    skill = 0.1 * rng.uniform(-1, 1, (world.users, 1, 1))
    expected = 0.3 + skill - np.array(world.loss)[None, None, :] * place[None, :, None]
    form = World(kind=world.kind)
    values = draw(form, expected * np.ones(shape), rng)
    same = rng.random((world.users, 1, len(SYSTEMS))) < world.shared
    # Users whose list is the same in all models but the expectation of which must not change:
    # only where nothing is lost.
    still = np.array(world.loss)[None, None, :] == 0
    values = np.where(same & still, values[:, :1], values)
    scores = {
        float(30 * at): {
            "user": np.arange(world.users),
            **{system: values[:, at, s] for s, system in enumerate(SYSTEMS)},
        }
        for at in range(world.ages)
    }
    result = us.stats.model_decay(scores, seed=seed)
    false = seen = possible = covered = 0
    scale = truth(form, np.ones(1))[0]
    rows = result.rows.to_dicts()
    for row in rows:
        loss = scale * world.loss[SYSTEMS.index(row["system"])] * place[int(row["age"]) // 30]
        said = row["high"] is not None and row["high"] < 0
        gained = row["low"] is not None and row["low"] > 0
        false += (said and loss <= 1e-12) or gained
        seen += said and loss > 1e-12
        possible += loss > 1e-12
        covered += row["low"] is None or row["low"] <= -loss <= row["high"]
    return {
        "false": float(false > 0),
        "seen": seen / possible if possible else 0.0,
        "all_covered": float(covered == len(rows)),
    }


# Kendall's τ between the first and the last window

TAU = {f"tau: {name}": name for name in ("still", "few users", "turns a little", "turns")}
"""By name: the world whose intervals of τ are counted."""


def one_tau(name: str, seed: int) -> dict[str, float]:
    """Return whether the interval of τ holds the τ of the population's means."""
    world, rng = WORLDS[TAU[name]], np.random.default_rng(seed)
    expected, there = leads(world, rng)
    values = draw(world, expected, rng)
    user, window = np.nonzero(there)
    table = {
        "user": user,
        "window": window,
        **{system: values[user, window, at] for at, system in enumerate(SYSTEMS)},
    }
    result = us.stats.order_changes(table, permutations=99, resamples=200, seed=seed)
    last = result.values_of("window")[-1]
    tau = result.parts["tau"].row(window="0", against_window=last)
    exact = _population(TAU[name])
    truth = us.stats.kendall(exact[0], exact[-1])
    value, low, high = tau.estimate
    return {
        "all_covered": float(low - 1e-9 <= truth <= high + 1e-9),
        "tau": value,
        "truth": truth,
        "width": high - low,
    }


def rates(name: str, data_sets: int) -> dict[str, object]:
    """Return the rates of one world."""
    function = one_aging if name in AGES else one_tau if name in TAU else one_data_set
    begin = time.perf_counter()
    rows = [function(name, FIRST_SEED + number) for number in range(data_sets)]
    result: dict[str, object] = {"world": name, "data_sets": data_sets}
    for key in rows[0]:
        result[key] = float(np.mean([row[key] for row in rows]))
        if key in ("varies", "false_order", "false_sign", "false", "all_covered"):
            low, high = wilson(sum(row[key] for row in rows), data_sets)
            result[f"{key}_interval"] = [round(float(low), 4), round(float(high), 4)]
    result["seconds"] = round(time.perf_counter() - begin, 1)
    return result


def main() -> None:
    """Measure worlds and print their rates."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("worlds", nargs="*", help="of " + ", ".join([*WORLDS, *AGES, *TAU]))
    parser.add_argument("--data-sets", type=int, default=1_000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    done = {}
    if options.output and options.output.exists():
        done = {one["world"]: one for one in json.loads(options.output.read_text())}
    for name in options.worlds or [*WORLDS, *AGES, *TAU]:
        if done.get(name, {}).get("data_sets", 0) >= options.data_sets:
            continue
        done[name] = rates(name, options.data_sets)
        print(json.dumps(done[name]), flush=True)
        if options.output:
            options.output.write_text(json.dumps(list(done.values()), indent=1))


if __name__ == "__main__":
    main()
