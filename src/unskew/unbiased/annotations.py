"""`read_annotation`: what people judged so far, as a random sample, and whether it is enough."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import polars as pl

from unskew.addresses import file_name
from unskew.checks import as_count, as_number, check_share, checked, choose
from unskew.engine.folders import inner_path
from unskew.errors import DataError
from unskew.report.result import Result
from unskew.report.text import counted
from unskew.unbiased.annotation_designs import DESIGNS
from unskew.unbiased.annotation_files import TO_JUDGE
from unskew.unbiased.annotation_plan import AnnotationPlan, Labels
from unskew.unbiased.annotation_reading import load_plan, read_labels
from unskew.unbiased.annotation_status import AnnotationStatus, status_of
from unskew.unbiased.weighted_averages import LEVEL

SKIPPED = ("hold", "refuse")
CERTAIN = "judged before"
"""The stratum of pairs whose labels decided which pairs were drawn next."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Annotation(Result):
    """The labels that people gave to planned pairs. From `read_annotation`."""

    plan: AnnotationPlan
    labels: Labels
    source: str
    file_notes: tuple[str, ...] = ()

    @property
    def used(self) -> int:
        """How many pairs are judged without a gap from the first on: a random sample."""
        return self.labels.prefix

    @property
    def held(self) -> int:
        """How many labels stand behind the first pair that has none: they are held back."""
        return int(self.labels.judged.sum()) - self.used

    def table(self) -> pl.DataFrame:
        """Return the sample: user, item, label, probability and, where the design has it, stratum.

        `assisted(human=…)` and `unskew estimate --human` take it. Labels behind the first gap are
        left out, and so are pairs of which nobody could tell: the probability counts the others.
        """
        count = self.used
        plan, clear = self.plan, ~self.labels.unclear[:count]
        chance, group = plan.probabilities(count)
        rows = plan.order[:count][clear]
        columns = {
            "user": plan.user.gather(rows),
            "item": plan.item.gather(rows),
            "label": pl.Series(self.labels.value[:count][clear]).cast(pl.Int64),
        }
        code = np.zeros(count, np.int64) if group is None else group.astype(np.int64) + 1
        said, asked = np.bincount(code[clear], minlength=1), np.bincount(code, minlength=1)
        share = np.ones(asked.size)
        share[: said.size] = said / np.maximum(asked[: said.size], 1)
        columns["probability"] = pl.Series((chance * share[code])[clear])
        if group is not None:
            columns["stratum"] = pl.Series([CERTAIN, *plan.strata]).gather(code[clear])
        return pl.DataFrame(columns)

    def display_table(self) -> pl.DataFrame:
        """Return a row per stratum: pairs, how many are planned, and how many are judged."""
        plan = self.plan
        judged = np.bincount(plan.stratum[plan.order[: self.used]], minlength=len(plan.strata))
        planned = plan.table().select("stratum", "pairs", pl.col("labels").alias("planned"))
        return planned.with_columns(judged=judged)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was held back, left out or assumed."""
        lines = list(self.file_notes)
        if self.held:
            one = int(np.argmin(self.labels.judged))
            row = self.plan.order[one]
            lines.append(
                f"{counted(self.held, 'label is', 'labels are')} held back, as pairs before them "
                f"have none: only the first pairs of the order without a gap are a random sample. "
                f"The first gap: user {self.plan.user[int(row)]!r}, item "
                f"{self.plan.item[int(row)]!r}"
            )
        unclear = int(self.labels.unclear[: self.used].sum())
        if unclear:
            pairs = counted(unclear, "pair")
            lines.append(
                f"of {pairs} nobody could tell: intervals allow for the least and the largest label"
            )
        drawn = np.bincount(
            self.plan.stratum[self.plan.order[: self.used]], minlength=len(self.plan.strata)
        )
        _, group = self.plan.probabilities(self.used)
        empty = [name for name, n in zip(self.plan.strata, drawn, strict=True) if not n]
        if group is not None and empty and self.used:
            lines.append(f"no pair is judged yet in: {'; '.join(empty)}")
        return tuple(lines)

    def _explanation(self) -> list[str]:
        lines = [
            f"{self.source}: {counted(self.used, 'pair')} of {self.plan.budget:,} judged; "
            f"{self.plan._explanation()[0]}"
        ]
        if self.plan.estimand == "difference":
            a, b = self.plan.systems
            lines.append(
                f"pairs that count alike for {a} and {b} were never drawn: the sample is for their "
                f"difference, not for the level of either"
            )
        if self.labels.unclear[: self.used].any():
            lines.append("pairs marked ? are not in the sample, as if they were like the others")
        if self.used < self.plan.budget:
            lines.append(
                "if labels are stopped because of what they show, intervals for a fixed number of "
                "labels are too narrow: quote the interval of the status"
            )
        return lines

    def _summary(self) -> str:
        return f"{self.plan.metric}, {self.used:,} of {self.plan.budget:,} pairs judged"

    @checked
    def status(
        self,
        *,
        smallest: float | None = None,
        width: float | None = None,
        level: float = LEVEL,
    ) -> AnnotationStatus:
        """Say whether the labels are enough, by intervals that hold whenever anybody looks.

        Parameters
        ----------
        smallest
            The smallest difference that matters; that of the plan unless given. Labels are enough
            when the difference is surely smaller than that, and the number of labels still needed
            is for a true difference of this size, never for the observed one.
        width
            Labels are also enough when every interval is narrower than this.
        level
            How often all intervals hold what they estimate, after every number of labels.

        Examples
        --------
        >>> import tempfile, unskew as us
        >>> x = {user: ["a", "b", "c"] for user in range(100)}
        >>> y = {user: ["a", "d", "e"] for user in range(100)}
        >>> plan = us.unbiased.plan_annotation({"x": x, "y": y}, "P@3", budget=60, seed=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     judged = us.unbiased.read_annotation(plan.save(folder))
        >>> judged.status(smallest=0.1).decision
        'go on'
        """
        if smallest is not None:
            as_number("smallest", smallest, above=True)
        if width is not None:
            as_number("width", width, above=True)
        check_share("level", level)
        return status_of(
            self.plan, self.labels, self.notes, smallest=smallest, width=width, level=level
        )

    @checked
    def extend(self, budget: int, design: str = "stratified") -> AnnotationPlan:
        """Return a plan with further pairs, drawn behind those that were planned.

        Pairs that have a label keep it; the new plan's file asks for those that have none. Order
        and random draws of the earlier pairs stay, so that intervals stay valid whatever the labels
        were.

        Parameters
        ----------
        budget
            How many pairs more.
        design
            As for `plan_annotation`; `neyman` learns from the labels where they vary most (the
            labels before are then no longer part of the random sample for the rest: `table` has
            them with probability 1).
        """
        as_count("budget", budget)
        choose("design", design, DESIGNS)
        return self.plan.extended(self.labels, budget, design)


@checked
def read_annotation(
    folder: str | os.PathLike[str], file: object = None, *, skipped: str = "hold"
) -> Annotation:
    """Read back the file that people filled in.

    Parameters
    ----------
    folder
        Where `AnnotationPlan.save` wrote the plan.
    file
        The filled-in file, or any table with columns user, item, label, its rows in any order.
        Default: `to-judge.csv` in the folder. Cells are a whole number of the scale, empty where
        nobody has judged, `?` where nobody can tell.
    skipped
        Only the first pairs of the order, up to the first without a label, are a random sample: who
        skips pairs may skip hard ones. `hold` keeps the labels behind the first gap back until it
        is filled, and counts them; `refuse` makes them an error.

    Examples
    --------
    >>> import tempfile, unskew as us
    >>> x, y = {1: ["a", "b"], 2: ["a", "b"]}, {1: ["c", "b"], 2: ["d", "b"]}
    >>> plan = us.unbiased.plan_annotation({"x": x, "y": y}, "P@2", budget=4, seed=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = plan.save(folder)
    ...     judged = us.unbiased.read_annotation(
    ...         folder, {"user": [1, 2, 1, 2], "item": ["a", "a", "c", "d"], "label": [1, 1, 0, 0]}
    ...     )
    >>> judged
    Annotation(P@2, 4 of 4 pairs judged)
    >>> judged.status().table().rows()
    [('x less y', 0.5, 0.5, 0.5)]
    """
    choose("skipped", skipped, SKIPPED)
    plan = load_plan(folder)
    source = inner_path(folder, TO_JUDGE) if file is None else file
    labels, notes = read_labels(plan, source)
    name = file_name(source) if isinstance(source, str | os.PathLike) else "table"
    result = Annotation(plan=plan, labels=labels, source=name, file_notes=tuple(notes))
    if skipped == "refuse" and result.held:
        raise DataError(f"{name}: {result.notes[len(notes)]}")
    return result
