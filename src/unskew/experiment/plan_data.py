"""What a plan is carried out on: data after its filters, and metrics that mean something there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unskew.data.events import Events
from unskew.data.filters import apply_filters
from unskew.data.ratings import Ratings
from unskew.errors import SettingError, Spelling
from unskew.evaluation.evaluate import without_dislikes
from unskew.experiment.plan import Plan


@dataclass(frozen=True, eq=False)
class PlanData:
    """A plan and the data that it starts from."""

    plan: Plan
    """With the metrics that are computed."""
    data: Ratings | Events
    """What the filters left."""
    notes: tuple[str, ...]
    """What was done to the data, and which metrics were left out."""

    @classmethod
    def of(cls, data: Ratings | Events, plan: Plan) -> PlanData:
        """Apply the filters of a plan; leave metrics out that its data cannot give."""
        kept: Ratings | Events = apply_filters(data, plan.filter_steps)
        if kept.implicit and not plan.relevance.is_liked(kept.value).any():
            raise SettingError(
                f"these data are implicit feedback, of which {plan.relevance} likes no pair: give ",
                Spelling("relevance=us.Relevance(liked=1)", "[relevance] with liked = 1"),
            )
        wanted, left_out = without_dislikes(plan.labelled_metrics, kept.implicit)
        changed = plan if not left_out else replace(plan, metrics=wanted)
        steps = [str(step) for step in kept.steps]
        return cls(changed, kept, (*steps, *left_out))
