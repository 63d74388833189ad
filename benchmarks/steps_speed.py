"""Every next item at scale: seconds and memory of a million steps among ten thousand items.

    python benchmarks/steps_speed.py                          # 20,000 users with 50 steps each
    python benchmarks/steps_speed.py --users 2000 --steps 50  # smaller

A matrix model ranks each user once; a model that sees the history (a Markov chain) is asked at
every step, on fewer users. Seconds of the processor are those of all threads; on a busy machine
only these can be compared.
"""

import argparse
import resource
import time

import numpy as np

import unskew as us

TRAINED = 20
"""Training events of each user."""


def made_log(users: int, steps: int, items: int, seed: int = 7) -> us.data.Events:
    """Draw a log of users who meet items at random."""
    rng = np.random.default_rng(seed)
    each = TRAINED + steps
    # Numbers with gaps: hardly any user meets an item twice.
    gaps = rng.geometric(min(1.0, 1.5 * each / items), (users, each))
    item = np.minimum(np.cumsum(gaps, axis=1) - 1, items - 1)
    item = rng.permuted(item, axis=1)
    return us.read_events(
        {
            "user": np.repeat(np.arange(users), each),
            "item": item.reshape(-1),
            "time": (np.tile(np.arange(each), users) * 3600),
        }
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--items", type=int, default=10_000)
    options = parser.parse_args()
    for name, algorithm, users in (
        ("popularity", us.recommend.Popularity(), options.users),
        ("puresvd", us.recommend.PureSVD(factors=50), options.users),
        ("markov-chain", us.recommend.MarkovChain(), options.users // 20),
    ):
        log = made_log(users, options.steps, options.items)
        (split,) = us.splits.Temporal(at=TRAINED * 3600, pick="next").split(log)
        steps = us.targets.next_items(split, candidates="all")
        model = algorithm.fit(steps.train)
        us.evaluation.evaluate_steps(steps, {"random": us.recommend.Random().fit(steps.train)})
        wall, cpu = time.perf_counter(), time.process_time()
        scores = us.evaluation.evaluate_steps(steps, {name: model}, "nDCG@10")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name}: {scores.lists.height:,} steps of {users:,} users, {len(steps.items):,} "
            f"items: {wall:.1f} s, {cpu:.1f} s of processor, peak {peak:.2f} GiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
