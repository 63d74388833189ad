"""Random lists and judgments, valued by trec_eval, by plain twins, and by unskew.

    python benchmarks/differential.py --cases 1000000          # against trec_eval
    python benchmarks/differential.py --twins 100000           # against tests/shared/plain.py

A case is one user: a list with scores (ties, 32-bit ties, ids whose order as text is not their
order as numbers) and graded judgments (unjudged, pooled, none relevant). Every measure that both
have is compared. The seed of a batch is its number, so a mismatch is found again by `--first`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
import pytrec_eval

import unskew as us

BATCH = 2_000
CLOSE = 1e-9
CUTS = (1, 2, 3, 5, 10, 15)
CUT = ("P", "recall", "map_cut", "ndcg_cut", "success", "relative_P")
WHOLE = ("map", "ndcg", "recip_rank", "Rprec", "bpref", "infAP", "set_P", "set_recall", "set_F",
         "set_relative_P")  # fmt: skip
OURS = {"infAP": "infAP(pool=judged)"}
"""Of the measures whose default differs: our name of trec_eval's form."""
MEASURES = [*WHOLE, *(f"{name}_{k}" for name in CUT for k in CUTS)]
FAMILIES = {*WHOLE, *(f"{name}.{','.join(map(str, CUTS))}" for name in CUT)}


def draw(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return judgments, lists and the least relevant grade of a batch."""
    rng = np.random.default_rng([7, seed])
    items = int(rng.integers(2, 60))
    user = np.repeat(np.arange(BATCH), items)
    item = np.tile(np.arange(items), BATCH)
    size = len(user)
    share = np.repeat(rng.random(BATCH), items)
    best = np.repeat(rng.choice([1, 2, 6], BATCH, p=[0.15, 0.35, 0.5]), items)
    grade = np.floor(rng.random(size) * (best + 1)).astype(int) - 1
    judged = rng.random(size) < share
    judged[::items] |= ~np.logical_or.reduceat(judged, np.arange(0, size, items))
    levels = int(rng.choice([1, 2, 4, 30, 10**6]))
    score = rng.integers(0, levels, size) / 3 - rng.integers(0, 2)
    score *= 1 + rng.integers(0, 2, size) * 1e-9  # equal as 32-bit floats
    listed = rng.random(size) < np.repeat(rng.random(BATCH), items)
    names = {"user": np.char.add("u", user.astype(str)), "item": np.char.add("i", item.astype(str))}
    qrels = pl.DataFrame({**names, "grade": grade}).filter(judged)
    # trec_eval hangs or crashes on users with pooled items only.
    qrels = qrels.filter(pl.col("grade").max().over("user") >= 0)
    run = pl.DataFrame({**names, "score": score}).filter(listed)
    return qrels, run.sample(fraction=1.0, shuffle=True, seed=seed), int(rng.integers(1, 4))


def nested(frame: pl.DataFrame, value: str) -> dict[str, dict[str, float]]:
    """Return a table as the dictionaries that the oracle takes."""
    result: dict[str, dict[str, float]] = {}
    for user, item, number in frame.select("user", "item", value).iter_rows():
        result.setdefault(user, {})[item] = number
    return result


def mismatches(seed: int) -> tuple[int, list[str]]:
    """Value a batch by both; return how many users were compared, and what differs."""
    qrels, run, level = draw(seed)
    oracle = pytrec_eval.RelevanceEvaluator(nested(qrels, "grade"), FAMILIES, relevance_level=level)
    theirs = oracle.evaluate(nested(run, "score"))
    grade = qrels["grade"].cast(pl.Float64)
    ratings = us.Ratings.of(qrels["user"], qrels["item"], grade, tags={"pooled": grade < 0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", us.DataWarning)
        lists = us.read_run(run, ties="trec")
        names = [OURS.get(measure, measure) for measure in MEASURES]
        run = {"s": lists}
        ours = us.evaluate(ratings, run, names, liked=level, gain="rating").per_user()
    place = {user: row for row, user in enumerate(ours["user"])}
    rows = [place[user] for user in theirs]
    problems = []
    for measure in MEASURES:
        mine = np.nan_to_num(ours[OURS.get(measure, measure)].to_numpy()[rows])
        other = np.array([values[measure] for values in theirs.values()])
        for at in np.flatnonzero(~(np.abs(mine - other) <= CLOSE)):
            name = list(theirs)[at]
            problems.append(f"batch {seed}, {name}, {measure}: {mine[at]!r} and {other[at]!r}")
    return len(rows), problems


def against_twins(cases: int) -> tuple[int, list[str]]:
    """Value small cases by the plain twins of the tests; four users each."""
    tests = Path(__file__).parents[1] / "tests"
    sys.path += [str(tests), str(tests / "metrics")]
    import test_metrics as twins

    names = [str(one) for one in twins.with_forms(twins.VARIANTS)]
    names += [f"{name}@{k}" for name in twins.JUDGED if name != "AUC" for k in (3, 20)]
    problems = []
    for seed in range(cases // 4):
        try:
            twins.compare(names, 10**6 + seed)
        except AssertionError as problem:
            problems.append(f"seed {10**6 + seed}: {problem}")
    return 4 * (cases // 4), problems


def main() -> None:
    """Count cases and mismatches; exit 1 when there is one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=0, help="users to compare with trec_eval")
    parser.add_argument("--twins", type=int, default=0, help="users to compare with plain twins")
    parser.add_argument("--first", type=int, default=0, help="the number of the first batch")
    parser.add_argument("-o", "--output", type=Path, help="a JSON file of the counts")
    asked = parser.parse_args()
    counts: dict[str, object] = {}
    begin, done, problems, seed = perf_counter(), 0, list[str](), asked.first
    while done < asked.cases:
        users, wrong = mismatches(seed)
        done, seed, problems = done + users, seed + 1, problems + wrong
    if asked.cases:
        counts["trec_eval"] = {"cases": done, "measures": len(MEASURES), "batches": seed,
                               "mismatches": len(problems)}  # fmt: skip
        print(f"trec_eval: {done:,} cases x {len(MEASURES)} measures, {len(problems)} mismatches, "
              f"{perf_counter() - begin:.0f} s", flush=True)  # fmt: skip
    if asked.twins:
        begin = perf_counter()
        done, wrong = against_twins(asked.twins)
        problems += wrong
        counts["twins"] = {"cases": done, "mismatches": len(wrong)}
        print(
            f"plain twins: {done:,} cases, {len(wrong)} mismatches, {perf_counter() - begin:.0f} s"
        )
    if asked.output:
        asked.output.write_text(json.dumps(counts, indent=2) + "\n")
    for line in problems[:20]:
        print(line)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
