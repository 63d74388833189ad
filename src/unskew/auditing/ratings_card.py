"""The card of an audit of ratings: everything from which its numbers can be derived again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unskew.auditing.core import Core
from unskew.auditing.core_notes import tuning_card
from unskew.auditing.large_data import judged_card
from unskew.auditing.null import NullExperiment, null_card
from unskew.data.filters import steps_of
from unskew.engine.versions import versions

if TYPE_CHECKING:
    from unskew.auditing.run import RatingsAudit


def ratings_card(audit: RatingsAudit, core: Core, null: NullExperiment | None) -> dict[str, object]:
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
        "metrics": [str(one) for one in audit.plan.metrics],
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
