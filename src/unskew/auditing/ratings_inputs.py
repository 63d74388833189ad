"""What an audit of ratings starts from, and its card: all from which its numbers can be derived."""

from __future__ import annotations

from dataclasses import dataclass

from unskew.auditing import truth_sources
from unskew.auditing.analyses import Attempts
from unskew.auditing.core import Core
from unskew.auditing.core_notes import tuning_card
from unskew.auditing.designs import AuditDesign, Level
from unskew.auditing.large_data import LargeRequest, judged_card
from unskew.auditing.null import NullExperiment, null_card
from unskew.auditing.reproduction_code import GivenData
from unskew.auditing.request import Progress, Stated
from unskew.data.dataset import Dataset
from unskew.data.filters import Filter, steps_of
from unskew.data.ratings import Ratings
from unskew.engine.execute import Executor
from unskew.engine.store import Store
from unskew.engine.versions import versions
from unskew.experiment.plan import Plan
from unskew.worlds.worlds import World


@dataclass(frozen=True, eq=False, kw_only=True)
class RatingsInputs:
    """What an audit of ratings starts from."""

    source: World | Dataset
    """What the user gave, as a data set or world."""
    ratings: Ratings
    known: truth_sources.Source | None
    """Where the truth is known."""
    plan: Plan
    designs: tuple[AuditDesign, ...]
    metric: str
    level: Level
    store: Store
    executor: Executor
    progress: Progress
    attempts: Attempts
    assumed: tuple[str, ...]
    is_user_plan: bool
    stated: Stated
    large: LargeRequest
    """With what was done in the place of what was not stated."""
    tune: bool
    given: GivenData
    tuned: frozenset[str]
    """Systems whose settings are chosen on the training part of each split."""
    unfiltered: Ratings | None = None
    """The ratings as they were given, where filters were applied to them."""
    filters: tuple[Filter, ...] = ()


def ratings_card(
    audit: RatingsInputs, core: Core, null: NullExperiment | None
) -> dict[str, object]:
    """Return the card of an audit of ratings, as plain values."""
    steps = steps_of([audit.ratings])
    return {
        "data": {
            "name": audit.source.name,
            "ratings": len(audit.ratings),
            "users": len(audit.ratings.users),
            "items": len(audit.ratings.items),
            "fingerprint": audit.ratings.fingerprint,
            **({"steps": steps} if steps else {}),
        },
        "truth": None if audit.known is None else audit.known.name,
        "level": "plan" if audit.is_user_plan else audit.level.name,
        "designs": {
            one.name: {
                "split": one.split.describe(),
                "splits": one.repeats,
                **one.view.describe(),
            }
            for one in audit.designs
        },
        "algorithms": {name: one.describe() for name, one in audit.plan.systems.items()},
        "relevance": audit.plan.relevance.describe(),
        "metrics": list(audit.plan.metrics),
        "metric": audit.metric,
        "margin": audit.stated.margin,
        "smallest": audit.stated.smallest,
        "seed": audit.plan.seed,
        "split_seeds": list(core.seeds),
        "tuned": tuning_card(core),
        "null": null_card(null),
        "permutations": audit.level.permutations,
        "bootstrap": audit.level.bootstrap,
        "users": audit.plan.users,
        "judged_users": judged_card(audit.plan.judged_users, audit.ratings),
        "undefined": audit.plan.undefined,
        "ties": audit.plan.ties,
        "versions": versions(),
    }
