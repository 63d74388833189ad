"""Event logs, such as plays or clicks: split by time first, then aggregate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from unskew.data.events import Events, read_events
from unskew.settings import choice, declare, share
from unskew.splits.split import Split, Splitter, assemble, empty, without_overlap
from unskew.splits.time import cut_in_time, time_hint
from unskew.splits.timeline import TIES, check_cut

AGGREGATE = ("count", "sum")
SEEN = ("drop", "keep")


@dataclass(frozen=True)
class TemporalEvents(Splitter):
    """Events are split by time, then aggregated per pair within each part.

    bellogin2017 splits the plays of Last.fm so. A table of unique pairs cannot do this: whoever
    aggregates first has lost the times of all events but one. Pairs of the test part that are in
    training too are dropped (counted): they are no recommendation of something new.
    """

    test: float | None = share(None, "The share of events after the cut, as in `Temporal`.")
    at: str | datetime | float | None = declare(
        None, "Instead of a share: the moment of the cut, as in `Temporal`."
    )
    ties: str = choice("test", "Where events at the cut go, as in `Temporal`.", TIES)
    aggregate: str = choice(
        "count",
        """`count` the events of a pair, or `sum` their values. The pair's time is that of its first
        event in the part.""",
        AGGREGATE,
    )
    seen: str = choice("drop", "`drop` (default) or `keep` test pairs that are in training.", SEEN)

    name: ClassVar[str] = "events"
    draw_name: ClassVar[str] = "events"
    takes_events: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cut(self)

    def make_splits(self, ratings: Any, seed: int) -> Iterator[Split]:
        """Make the split of `Events`, or of what `read_events` takes; nothing is drawn."""
        events = ratings if isinstance(ratings, Events) else read_events(ratings)
        after, facts = cut_in_time(events.time, self.test, self.at, self.ties)
        first = int(np.count_nonzero(~after))
        facts |= {"events": len(events), "events_train": first, "events_test": len(events) - first}
        hint = time_hint(events.time)
        if not 0 < first < len(events):
            raise empty(self, "training" if first == 0 else "test", hint)
        train, test = (
            events.to_ratings(self.aggregate, rows)
            for rows in (slice(0, first), slice(first, len(events)))
        )
        pairs = len(test)
        rule = "to-training" if self.seen == "drop" else "keep"
        train, test, seen = without_overlap(train, test, rule)
        hint = f"every pair of it ({pairs:,}) is in training too; {hint}"
        facts["pairs_seen_in_training"] = seen
        yield assemble(self, train, test, hint=hint, facts=facts, left_out=pairs - len(test))
