"""How often intervals of `us.unbiased.policy_difference` hold the difference, and conclusions err.

    python benchmarks/policy_difference_rates.py                              # 5,000 logs per kind
    python benchmarks/policy_difference_rates.py --logs 500 rare -o FILE.json # one kind, quicker

Logs are plain numpy, none of the library's worlds: contexts, actions with known chances of a
reward, a policy that ran, two that are compared. The contexts and policies of a kind are fixed, so
that the difference is known; each log draws contexts, actions and rewards anew. The degrees of
freedom of the intervals and the least number of rounds for a conclusion were fixed on other logs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.engine.threads import one_blas_thread
from unskew.unbiased.bandit_logs import read_log
from unskew.unbiased.policy_differences import ESTIMATORS, policy_difference

Array = NDArray[Any]
CONTEXTS, ACTIONS = 20, 10
FIRST_SEED = 50_000
NORMAL = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class Kind:
    """A kind of logs: contexts x actions."""

    ran: Array
    a: Array
    b: Array
    reward: Array
    """The mean reward."""
    rows: int
    per_round: int = 1
    heavy: bool = False
    """Whether rewards are log-normal, not 0 or 1."""

    @property
    def truth(self) -> float:
        """What b earns more per row."""
        return float(((self.b - self.a) * self.reward).sum(axis=1).mean())


def _soft(scores: Array, heat: float) -> Array:
    weight = np.exp((scores - scores.max(axis=1, keepdims=True)) / heat)
    return weight / weight.sum(axis=1, keepdims=True)


def kinds() -> dict[str, Kind]:
    """Return the kinds of logs; policies are soft choices by noisy views of what pays."""
    rng = np.random.default_rng(77)
    taste = rng.normal(size=(CONTEXTS, ACTIONS))
    reward = 1 / (1 + np.exp(1 - taste))

    def policy(noise: float, heat: float = 0.5, sign: int = 1) -> Array:
        return _soft(sign * taste + noise * rng.normal(size=taste.shape), heat)

    ran = 0.5 * policy(1.0, 1.0) + 0.5 / ACTIONS
    narrow = 0.95 * policy(0.5, 0.2) + 0.05 / ACTIONS
    a, other, against = policy(0.5), policy(0.5), policy(0.5, sign=-1)
    worth = [float((one * reward).sum(axis=1).mean()) for one in (a, other, against)]
    share = (worth[1] - worth[0]) / (worth[1] - worth[2])  # of `against`, to be worth what a is
    low, high = (other, against) if 0 <= share <= 1 else (policy(2.0), policy(0.1))
    if not 0 <= share <= 1:
        worth[1:] = [float((one * reward).sum(axis=1).mean()) for one in (low, high)]
        share = (worth[1] - worth[0]) / (worth[1] - worth[2])
    return {
        "near": Kind(ran, a, 0.95 * a + 0.05 * against, reward, 2_000),
        "far": Kind(ran, a, against, reward, 1_000),
        "small propensities": Kind(narrow, policy(0.5), policy(0.7), reward, 5_000),
        "rare rewards": Kind(ran, a, other, 0.03 * reward, 10_000),
        "rounds of 3": Kind(ran, a, other, reward, 3_000, per_round=3),
        "heavy rewards": Kind(ran, a, other, reward, 2_000, heavy=True),
        "equal": Kind(ran, a, (1 - share) * low + share * high, reward, 2_000),
        "equal, rare": Kind(narrow, a, (1 - share) * low + share * high, 0.03 * reward, 10_000),
        "few rows": Kind(ran, a, other, reward, 100),
    }


def one_log(kind: Kind, rng: np.random.Generator) -> tuple[Any, Array]:
    """Draw a log, and say which context each row has."""
    rounds = -(-kind.rows // kind.per_round)
    context = np.repeat(rng.integers(0, CONTEXTS, rounds), kind.per_round)[: kind.rows]
    edges = kind.ran.cumsum(axis=1)[context]
    action = np.minimum((rng.random((kind.rows, 1)) > edges).sum(axis=1), ACTIONS - 1)
    mean = kind.reward[context, action]
    if kind.heavy:
        reward = mean * np.exp(rng.normal(-0.5, 1.0, kind.rows))
    else:
        # Rows of a round share their luck: one threshold, with some noise of each row.
        luck = np.repeat(rng.random(rounds), kind.per_round)[: kind.rows]
        alone = rng.random(kind.rows)
        shared = rng.random(kind.rows) < (0.5 if kind.per_round > 1 else 0.0)
        reward = (np.where(shared, luck, alone) < mean).astype(float)
    columns = {"action": action, "reward": reward, "propensity": kind.ran[context, action]}
    if kind.per_round > 1:
        columns["round"] = np.repeat(np.arange(rounds), kind.per_round)[: kind.rows]
    return read_log(columns, actions=list(range(ACTIONS))), context


def rates(kind: Kind, logs: int, first: int, tell: Callable[[int], None]) -> dict[str, Any]:
    """Draw logs and count."""
    truth = kind.truth
    held, normal, apart = (np.zeros(len(ESTIMATORS)) for _ in range(3))
    width, gain, values = [], [], []
    found_apart = 0
    said = {"true": 0, "false": 0, "open": 0, "too few": 0}
    for number in range(logs):
        rng = np.random.default_rng(first + number)
        log, context = one_log(kind, rng)
        result = policy_difference(log, kind.a[context], kind.b[context], supported=True)
        off = np.abs(result.value - truth)
        held += (result.low <= truth) & (truth <= result.high)
        normal += off <= NORMAL * result.error
        apart += off <= NORMAL * result.separate_error
        found_apart += abs(result.value[2]) > NORMAL * result.separate_error[2]
        width.append(result.high - result.low)
        gain.append(result.gain)
        values.append(result.value)
        if "B earns more than A" in result.conclusion:
            said["true" if truth > 1e-9 else "false"] += 1
        elif "A earns more than B" in result.conclusion:
            said["true" if truth < -1e-9 else "false"] += 1
        else:
            said["open" if "settle" in result.conclusion else "too few"] += 1
        tell(number)
    drawn = np.array(values)
    return {
        "truth": truth,
        "rows": kind.rows,
        "logs": logs,
        "first_seed": first,
        "coverage": dict(zip(ESTIMATORS, (held / logs).tolist(), strict=True)),
        "normal": dict(zip(ESTIMATORS, (normal / logs).tolist(), strict=True)),
        "separate": dict(zip(ESTIMATORS, (apart / logs).tolist(), strict=True)),
        "bias": dict(zip(ESTIMATORS, (drawn.mean(axis=0) - truth).tolist(), strict=True)),
        "spread": dict(zip(ESTIMATORS, drawn.std(axis=0).tolist(), strict=True)),
        "width": dict(zip(ESTIMATORS, np.nanmean(width, axis=0).tolist(), strict=True)),
        "gain": dict(zip(ESTIMATORS, np.nanmedian(gain, axis=0).tolist(), strict=True)),
        "found_apart": float(found_apart / logs),
        "conclusions": {key: count / logs for key, count in said.items()},
    }


def main() -> None:
    """Count for the kinds that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", default=[])
    parser.add_argument("--logs", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("-o", "--output", default="build/policy-differences.json")
    settings = parser.parse_args()
    path = Path(settings.output)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = json.loads(path.read_text()) if path.exists() else {}
    for name, kind in kinds().items():
        if (settings.kinds and name not in settings.kinds) or name in done:
            continue
        with one_blas_thread():
            done[name] = rates(kind, settings.logs, settings.seed, lambda _: None)
        path.write_text(json.dumps(done, indent=1) + "\n")
        row = done[name]
        shown = ", ".join(f"{key} {row['coverage'][key]:.4f}" for key in ESTIMATORS)
        print(
            f"{name}: difference {row['truth']:+.5f}; coverage {shown} (normal, beta "
            f"{row['normal']['beta']:.4f}); gain {row['gain']['beta']:.1f}; conclusions "
            + ", ".join(f"{key} {share:.4f}" for key, share in row["conclusions"].items()),
            flush=True,
        )


if __name__ == "__main__":
    main()
