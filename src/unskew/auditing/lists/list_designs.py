"""The designs of given lists: what can be judged anew without ranking, and how far it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl

from unskew.arrays import I64
from unskew.auditing.analyses import Attempts
from unskew.auditing.designs import LeftOut, left_out_designs
from unskew.checks import choose
from unskew.data.ratings import Ratings
from unskew.errors import SettingError
from unskew.evaluation.chance import chance_scores
from unskew.evaluation.evaluate import evaluate, labelled
from unskew.evaluation.scores import Scores, System
from unskew.judging.judge import lists_of_design
from unskew.judging.judged import Judged, judged_part
from unskew.metrics.chance import DRAWS
from unskew.report.text import counted
from unskew.runs import Run
from unskew.splits.interventions import Skew, WtdH
from unskew.targets.designs import AllItems, Targets, TestItems, TestTargets

AS_GIVEN = "as-given"
TEST_ITEMS = "test-items"
TEST_TARGETS = "test-targets"
REJUDGED = {
    AS_GIVEN: "the lists and the judgments as they are",
    TEST_ITEMS: "lists without the items that no user judged, down to the given depth",
    TEST_TARGETS: "lists of only the items that the user judged, down to the given depth",
    "skew": "judgments sampled against popularity in training",
    "wtd-h": "judgments sampled as if items and users were chosen at random",
}
"""The designs of given lists."""
INTERVENTIONS = {"skew": Skew(), "wtd-h": WtdH()}
LEAST_FILLED = 0.95
"""The least share of the places up to the cutoff that a design must fill."""
MOST_NAMES = 3
"""So many systems are named in a sentence; of more, the first ones."""
MOST_APART = 0.03
"""The most by which the filled shares of two systems may differ."""
SCHEMA = {
    "design": pl.String,
    "system": pl.String,
    "judged": pl.Float64,
    "liked": pl.Float64,
    "filled": pl.Float64,
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Rejudged:
    """Given lists under every design that says something of its own."""

    scores: dict[str, tuple[Scores, ...]]
    """By design; the first one is the common one."""
    left_out: dict[str, LeftOut]
    """By design: why its numbers are not compared."""
    reach: pl.DataFrame
    """How far the lists reach, by design and system; see `reach_table`."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class ListDesigns:
    """How given lists are judged: by which metrics, at which cutoff, whose reach decides."""

    judged: Judged
    metrics: tuple[str, ...]
    metric: str
    """The one that orders the systems."""
    cutoff: int
    seed: int
    user_systems: tuple[str, ...]
    """The systems of the user: reference systems never decide that a design is left out."""

    def rejudge(self, designs: Sequence[str] | None, attempts: Attempts) -> Rejudged:
        """Judge the lists under each design; only the first one must succeed."""
        names = chosen_designs(designs)
        reach = reach_table(self.judged, names, self.cutoff)
        scores: dict[str, tuple[Scores, ...]] = {}
        left_out: dict[str, LeftOut] = {}
        notes = []
        for name in names:
            first = name == names[0]
            measure = partial(self.scores_of, name)
            result = measure() if first else attempts.attempt(f"design {name}", measure)
            if result is None:
                continue
            why = self._short_of(reach.filter(design=name))
            if why and first:
                notes.append(f"{name}: {why}")
            elif why:
                left_out[name] = LeftOut(reason="reach", why=why, scores=(result,))
                continue
            scores[name] = (result,)
        left_out |= self._uncounted(scores)
        return Rejudged(
            scores={name: parts for name, parts in scores.items() if name not in left_out},
            left_out=left_out,
            reach=reach,
            notes=tuple(notes),
        )

    def scores_of(self, design: str, judged: Judged | None = None) -> Scores:
        """Return the scores of all systems under one design, with what chance scores there.

        Parameters
        ----------
        design
            A name of `REJUDGED`.
        judged
            The same lists judged by other ratings; those of the audit unless given.
        """
        judged = self.judged if judged is None else judged
        if design in INTERVENTIONS:
            if judged.train is None:
                raise SettingError("needs the training ratings: give train=…")
            sample = INTERVENTIONS[design].sample(judged.tests, judged.train, seed=self.seed)
            judged = judged.with_ratings(sample.ratings, judged.train)
        if design in (TEST_ITEMS, TEST_TARGETS):
            judged = judged.only_judged_items(of_user=design == TEST_TARGETS)
        return with_chance(evaluate(judged, list(self.metrics)), judged, targets_of(design))

    def _uncounted(self, scores: Mapping[str, tuple[Scores, ...]]) -> dict[str, LeftOut]:
        """Return designs that give the systems of the user no values of their own.

        They have the same ones as another design, or no order matters. A random order always has
        other values: reference systems do not make a design count. The first design stays.
        """
        mine = {
            name: tuple(
                replace(
                    part, systems={system: part.systems[system] for system in self.user_systems}
                )
                for part in parts
            )
            for name, parts in scores.items()
        }
        lists = f"the lists of {in_a_row(self.user_systems)}"
        left_out = {}
        for name, design in left_out_designs(mine, self.metric, self.cutoff).items():
            why = design.why
            if design.same_as is not None:
                why = (
                    f"it gives {lists} the same {self.metric} as {design.same_as} for every user, "
                    "so the two count as one design"
                )
            if name != next(iter(scores)):
                left_out[name] = replace(design, why=why, scores=scores[name])
        return left_out

    def _short_of(self, reach: pl.DataFrame) -> str:
        """Say why lists do not reach far enough for a design; nothing where they do."""
        mine = reach.filter(pl.col("system").is_in(self.user_systems))
        if not mine.height:
            return ""
        filled = mine["filled"]
        lowest, highest = float(filled.min()), float(filled.max())  # type: ignore[arg-type]
        if lowest >= LEAST_FILLED and highest - lowest <= MOST_APART:
            return ""
        low = mine.sort("filled", maintain_order=True).row(0, named=True)
        high = mine.sort("filled", descending=True, maintain_order=True).row(0, named=True)
        text = f"the lists of {low['system']} fill {low['filled']:.0%}"
        if highest - lowest > MOST_APART:
            text += f" and those of {high['system']} {high['filled']:.0%}"
        places = counted(self.cutoff, "place")
        return (
            f"{text} of the first {places} that this design could fill, and missing places would "
            f"count as misses: longer lists are needed"
        )


def chosen_designs(designs: Sequence[str] | None) -> tuple[str, ...]:
    """Return the designs that are asked for, each once; all unless named."""
    for name in designs or ():
        choose("design", name, REJUDGED)
    if designs is not None and not designs:
        raise SettingError(f"name at least one design: {', '.join(REJUDGED)}")
    return tuple(dict.fromkeys(designs or REJUDGED))


def in_a_row(systems: Sequence[str]) -> str:
    """Return a few names as a sentence has them: `a and b`, `a, b, c and 2 others`."""
    names = list(systems)
    if len(names) > MOST_NAMES:
        names = [*names[:MOST_NAMES], counted(len(names) - MOST_NAMES, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def targets_of(design: str) -> Targets:
    """Return the items of which a random order is the reference of a design."""
    by_design = {TEST_ITEMS: TestItems(), TEST_TARGETS: TestTargets()}
    return by_design.get(design, AllItems())


def with_chance(scores: Scores, judged: Judged, targets: Targets) -> Scores:
    """Return scores with what a random order of the targets is expected to score.

    All items outside training are known only with the training ratings; what a user judged is
    known without them.

    Parameters
    ----------
    scores
        Of lists that need not be a part of the targets.
    judged
        What was scored.
    targets
        What is put in random order.
    """
    if judged.train is None and targets != TestTargets():
        return scores
    metrics = labelled(list(scores.order))
    lists = lists_of_design(targets, judged.tests, judged.train, judged.relevance, judged.seed)
    depth = max(int(system.depth.max(initial=1)) for system in scores.systems.values())
    expected, simulated = chance_scores(
        Judged.of_lists(lists, {}), metrics, depth=depth, draws=DRAWS, seed=judged.seed
    )
    # Lists are by user of the ratings; scores are by user of ratings and runs.
    table = scores.user_ids.codes(lists.tests.users.values)
    column = table[lists.user]
    size = scores.lists.height

    def spread(values: np.ndarray, empty: float) -> np.ndarray:
        full = np.full((*values.shape[:-1], size), empty, values.dtype)
        full[..., column] = values
        return full

    chance = System(
        spread(expected.values, np.nan),
        {row: spread(den, 0.0) for row, den in expected.den.items()},
        spread(expected.depth, 0),
        expected.aggregates,
    )
    targets_of_list = spread(lists.size, 0)
    return replace(
        scores,
        chance=chance,
        simulated=simulated,
        lists=scores.lists.with_columns(targets=pl.Series(targets_of_list)),
    )


def reach_table(judged: Judged, designs: Sequence[str], cutoff: int) -> pl.DataFrame:
    """Return how far the lists of each system reach under the designs that shorten them.

    Columns: design, system; of the users with test ratings and a list: `judged`, the share of
    their test ratings that their lists hold, and `liked`, the same of the liked ones; `filled`,
    the share of the places up to the cutoff that are filled, of those that the design could fill.
    """
    tests = judged.tests
    runs = {name: run for name, run in judged.systems.items() if isinstance(run, Run)}
    count = np.diff(tests.start)
    is_liked = judged.relevance.is_liked(tests.value)
    liked = tests.take(is_liked)
    possible = {TEST_TARGETS: count, TEST_ITEMS: _test_items(judged)}
    rows = []
    for name, run in runs.items():
        lengths = {
            TEST_TARGETS: _held(judged_part(run, tests, of_user=True), tests),
            TEST_ITEMS: _held(judged_part(run, tests, of_user=False), tests),
        }
        mask = (count > 0) & (_held(run, tests) > 0)
        of_liked = _held(judged_part(run, liked, of_user=True), tests)
        shares = (
            _share(lengths[TEST_TARGETS][mask], count[mask]),
            _share(of_liked[mask], np.diff(liked.start)[mask]),
        )
        for design in designs:
            if design in possible:
                # Training items in a list fill no place that the design has.
                places = np.minimum(possible[design], cutoff)
                filled = _share(np.minimum(lengths[design], places)[mask], places[mask])
                rows.append((design, name, *shares, filled))
    order = {design: index for index, design in enumerate(designs)}
    rows.sort(key=lambda row: order[row[0]])
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _test_items(judged: Judged) -> I64:
    """Count for each user the items that anyone judged, outside the user's training ratings."""
    tests, train = judged.tests, judged.train
    is_test_item = np.zeros(len(tests.items), np.bool_)
    is_test_item[tests.item] = True
    number = np.full(len(tests.users), int(is_test_item.sum()), np.int64)
    if train is not None:
        number -= np.bincount(train.user[is_test_item[train.item]], minlength=len(tests.users))
    return number


def _held(run: Run, tests: Ratings) -> I64:
    """Return the length of each test user's list."""
    code = tests.users.codes(run.users.values)
    length = np.zeros(len(tests.users), np.int64)
    length[code[code >= 0]] = run.depth[code >= 0]
    return length


def _share(part: I64, denominator: I64) -> float | None:
    """Return a share of sums; None where there is nothing to share."""
    total = int(denominator.sum())
    return float(part.sum()) / total if total else None


def known_chance(scores: Mapping[str, tuple[Scores, ...]]) -> bool:
    """Tell whether any design says what chance scores."""
    return any(part.chance is not None for parts in scores.values() for part in parts)
