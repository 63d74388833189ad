"""Values of policies by Open Bandit Pipeline, for tests/unbiased/test_policy_differences.py.

    python -m venv /tmp/obp && /tmp/obp/bin/pip install obp==0.4.1 "numpy<1.24" "pandas<2"
    /tmp/obp/bin/python benchmarks/policy_values_obp.py tests/unbiased/obp_values.json

It runs in an environment of its own, without unskew: old pins, and torch. Two logs, each with two
policies that depend on the row and the position; what obp says of them is written with the rows.
"""

import json
import sys
from pathlib import Path

import numpy as np
import obp
from obp.ope import (
    DirectMethod,
    DoublyRobust,
    InverseProbabilityWeighting,
    SelfNormalizedInverseProbabilityWeighting,
)

ESTIMATORS = {
    "ips": InverseProbabilityWeighting(),
    "snips": SelfNormalizedInverseProbabilityWeighting(),
    "dm": DirectMethod(),
    "dr": DoublyRobust(),
}


def fixture(seed, rows, actions, positions, *, binary):
    """Draw a log and two policies, and ask obp for their values."""
    rng = np.random.default_rng(seed)
    ran = rng.dirichlet(np.full(actions, 2.0), (rows, positions))
    position = rng.integers(0, positions, rows)
    each = np.arange(rows)
    action = np.array([rng.choice(actions, p=ran[i, position[i]]) for i in each])
    reward = rng.random(rows) < 0.3 if binary else rng.normal(1.0, 2.0, rows)
    reward = reward.astype(float)
    guess = rng.random((rows, actions, positions))
    log = {
        "action": action,
        "position": position,
        "reward": reward,
        "pscore": ran[each, position, action],
    }
    out = {name: column.tolist() for name, column in log.items()}
    out["guess"] = guess[each, :, position].tolist()
    for name in ("a", "b"):
        policy = rng.dirichlet(np.ones(actions), (rows, positions)).transpose(0, 2, 1)
        out[name] = policy[each, :, position].tolist()
        out[f"values_{name}"] = {
            key: float(
                estimator.estimate_policy_value(
                    **log, action_dist=policy, estimated_rewards_by_reg_model=guess
                )
            )
            for key, estimator in ESTIMATORS.items()
        }
    return out


if __name__ == "__main__":
    result = {
        "source": f"obp {obp.__version__}, numpy {np.__version__}",
        "logs": [
            fixture(1, 60, 4, 2, binary=True),
            fixture(2, 40, 3, 1, binary=False),
        ],
    }
    Path(sys.argv[1]).write_text(json.dumps(result) + "\n")
