"""`AnnotationPlan`: the pairs that people judge, in an order whose every beginning is random."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import F64, I32, I64, frozen
from unskew.checks import as_count, as_number, check_share, checked, choose
from unskew.data.ratings import Ids
from unskew.data.read.tables import ITEM, plain_name, read_table
from unskew.data.relevance import Relevance
from unskew.engine.files import digest_of_file, inner_path, replacing_folder, sealed, write_table
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError
from unskew.labels.annotation_designs import (
    DESIGNS,
    Labels,
    Wave,
    next_rows,
    neyman_wave,
    pilot_values,
    plain_wave,
)
from unskew.labels.annotation_status import StopRule, status_of
from unskew.labels.confidence_sequences import Draws, expected_draws, spread_of, steps_of
from unskew.labels.recommended_pairs import PlaceSum, place_sums
from unskew.report.estimates import Estimates
from unskew.report.result import Result
from unskew.report.text import counted, visible
from unskew.splits.saved import check_folder
from unskew.unbiased.weighted_averages import LEVEL

FORMAT = 1
TO_JUDGE, PAIRS, CARD, GUIDE = "to-judge.csv", "pairs.parquet", "card.json", "read-me.txt"
CERTAIN = "judged before"
"""The stratum of pairs whose labels decided which pairs were drawn next."""
UNCLEAR = "?"
"""What annotators write where they cannot tell."""
ROW, LABEL = "row", "label"


def _check_unfilled(path: Path) -> None:
    """Refuse to overwrite a file in which people have judged something."""
    if not path.is_file():
        return
    frame = read_table(path).frame
    name = next((column for column in frame.columns if plain_name(column) == LABEL), None)
    if name is None or frame[name].cast(pl.String).fill_null("").str.strip_chars().eq("").all():
        return
    raise SettingError(f"{path} holds labels, and is not overwritten: give another folder")


def _sheet(unlabelled: pl.DataFrame, titles: object) -> pl.DataFrame:
    """Return what people see: the pairs in their order, and nothing that tells why."""
    frame = unlabelled.with_row_index(ROW, offset=1)
    if titles is not None:
        frame = pl.concat([frame, _titles(titles, frame["item"])], how="horizontal")
    return frame.with_columns(pl.lit(None, pl.String).alias(LABEL))


def _titles(titles: object, items: pl.Series) -> pl.DataFrame:
    """Return the further columns of a table of items, a row for each of some items."""
    table = read_table(titles)
    key = table.need("item", ITEM, None)
    more = [name for name in table.frame.columns if name != key]
    clash = [name for name in more if name in (ROW, "user", "item", LABEL)]
    if not more or clash:
        what = (
            f"a column {clash[0]!r}, which {TO_JUDGE} has itself" if clash else "no further column"
        )
        raise DataError(f"titles: {table.source} has {what}; it needs the item and, say, a title")
    ids, codes = Ids.number(table.frame[key])
    if len(ids) < codes.size:
        raise DataError(
            f"titles: {table.source} has {counted(codes.size - len(ids), 'item')} more than once"
        )
    row = np.full(len(ids) + 1, -1, np.int64)
    row[codes] = np.arange(codes.size)
    position = row[ids.codes(items)]
    index = pl.Series(position).replace(-1, None).cast(pl.UInt32)
    seen = table.frame.select(more).select(pl.all().gather(index))
    # Control characters of a title would drive the terminal that shows it.
    safe = pl.col(pl.String).map_elements(visible, return_dtype=pl.String)
    return seen.with_columns(safe)


def _guide(low: int, high: int) -> str:
    return (
        f"Judge the rows of {TO_JUDGE} from the top down, without leaving any out: would this user "
        f"like this item?\nWrite a whole number from {low} to {high} into the column {LABEL}; "
        f"{UNCLEAR} where you cannot tell.\nStop wherever you like; leave what you have not judged "
        f"empty. Do not change other columns.\nDo not open the other files here before all is "
        f"judged: they show what the rows must not show.\n"
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotationPlan(Result):
    """Pairs for people to judge, in an order of which every beginning is a random sample.

    Made by `plan_annotation`; `save` writes the file that people fill in. `read_annotation` returns
    the plan with their labels: `status` says whether they are enough, `sample` is what `assisted`
    takes, and `extend` plans further pairs.

    Examples
    --------
    >>> import unskew as us
    >>> x, y = {1: ["a", "b"], 2: ["a", "b"]}, {1: ["c", "b"], 2: ["d", "b"]}
    >>> plan = us.labels.plan_annotation({"x": x, "y": y}, "P@2", budget=2, seed=1)
    >>> plan.pairs().select("user", "item", "probability").rows()
    [(2, 'd', 0.5), (1, 'c', 0.5)]
    """

    metric: str
    estimand: str
    """`difference` (of the first system less the second) or `levels`."""
    systems: tuple[str, ...]
    scale: tuple[int, int]
    """The smallest and the largest label."""
    relevance: Relevance
    seed: int
    smallest: float | None
    """The smallest difference that matters, as stated before anything was judged."""
    user: pl.Series
    """Raw ids of the pairs that count, by user and then by item."""
    item: pl.Series
    coefficient: F64
    """Contrasts (the difference, or each system) x pairs: what a label worth 1 adds."""
    hint: F64 | None
    """Labels of a model, brought to the range of what labels are worth."""
    stratum: I32
    strata: tuple[str, ...]
    order: I64
    """Rows of the pairs to judge, in the order in which they are judged."""
    waves: tuple[Wave, ...]
    labels: Labels
    """What people said so far, by place in the order."""
    facts: Mapping[str, Any]
    """Further entries of the card: where the pairs come from."""
    notes: tuple[str, ...] = ()
    source: str = ""
    """Of which file the labels are, where `read_annotation` gave the plan."""
    file_notes: tuple[str, ...] = ()
    """What was noticed when that file was read."""

    @property
    def budget(self) -> int:
        """How many pairs are to be judged in all."""
        return int(self.order.size)

    @property
    def design(self) -> str:
        """How pairs were drawn."""
        return ", then ".join(wave.design for wave in self.waves)

    @cached_property
    def place_sum(self) -> PlaceSum:
        """The metric as a sum over places."""
        return next(iter(place_sums(self.metric).values()))

    @cached_property
    def worth_range(self) -> tuple[float, float]:
        """The least and the most that a label is worth."""
        levels = np.arange(self.scale[0], self.scale[1] + 1, dtype=np.float64)
        values = self.worth(levels)
        return float(values.min()), float(values.max())

    def worth(self, label: F64) -> F64:
        """Return what labels add at a place that counts 1; NaN stays NaN."""
        result, valid = np.full(label.size, np.nan), ~np.isnan(label)
        values, metric, rule = label[valid], self.place_sum, self.relevance
        if metric.counts_gain:
            result[valid] = rule.losses(values) if metric.metric.anti else rule.gains(values)
        else:
            result[valid] = rule.is_liked(values) != metric.metric.anti
        return result

    def sizes(self) -> I64:
        """Return how many pairs each stratum has."""
        return np.bincount(self.stratum, minlength=len(self.strata))

    def draws(self, contrast: int) -> Draws:
        """Return the pairs in the order in which they are judged, for a confidence sequence."""
        is_left = np.ones(self.user.len(), np.bool_)
        is_left[self.order] = False
        rows = np.concatenate([self.order, np.flatnonzero(is_left)])
        none = (-1,) * len(self.strata)
        slots = [none if wave.slots is None else wave.slots for wave in self.waves]
        hint = np.zeros(rows.size) if self.hint is None else self.hint[rows]
        low, high = self.worth_range
        return Draws(
            coefficient=frozen(self.coefficient[contrast, rows]),
            hint=frozen(hint),
            stratum=frozen(self.stratum[rows]),
            slots=frozen(np.array(slots, np.float64)),
            stops=frozen(np.cumsum([wave.size for wave in self.waves])),
            low=low,
            high=high,
        )

    def probabilities(self, count: int) -> tuple[F64, I32 | None]:
        """Return the inclusion probability of the first pairs of the order, and their strata.

        Parameters
        ----------
        count
            How many were judged. Given how many of them fall on each stratum, the first pairs of
            the order are a simple random sample of each. Where labels decided about a later wave,
            what was judged before is certain, and the rest is sampled from what was left.

        Returns
        -------
        tuple
            The strata are None where draws are simple random ones; -1 stands for what is certain.
        """
        starts = np.cumsum([0, *(wave.size for wave in self.waves)])
        begun = [pair for pair in zip(starts, self.waves, strict=False) if pair[0] < count]
        fixed = max((int(start) for start, wave in begun if wave.uses_labels), default=0)
        rows = self.order[:count]
        if all(wave.slots is None for _, wave in begun):
            return np.full(count, count / self.user.len()), None
        group = self.stratum[rows].copy()
        left = self.sizes() - np.bincount(group[:fixed], minlength=len(self.strata))
        counts = np.bincount(group[fixed:], minlength=len(self.strata))
        chance = counts[group] / np.maximum(left[group], 1)
        chance[:fixed], group[:fixed] = 1.0, -1
        return chance, group

    def table(self) -> pl.DataFrame:
        """Return a row per stratum: pairs, labels planned, inclusion probability of its pairs.

        Where people judged some, also how many of the first ones without a gap (`judged`).
        """
        sizes, planned = self.sizes(), self._by_stratum(self.budget)
        chance = planned / np.maximum(sizes, 1)
        if all(wave.slots is None for wave in self.waves):
            chance = np.full(sizes.size, self.budget / max(int(sizes.sum()), 1))
        rows = {"stratum": list(self.strata), "pairs": sizes, "labels": planned}
        judged = {"judged": self._by_stratum(self.used)} if self.source else {}
        return pl.DataFrame({**rows, "probability": chance, **judged})

    def display_table(self) -> pl.DataFrame:
        """Return the table as people read it: of a plan with labels without probabilities."""
        table = self.table()
        return table.drop("probability").rename({"labels": "planned"}) if self.source else table

    def _by_stratum(self, count: int) -> I64:
        """Return how many of the first pairs of the order each stratum has."""
        return np.bincount(self.stratum[self.order[:count]], minlength=len(self.strata))

    @property
    def used(self) -> int:
        """How many pairs are judged without a gap from the first on: a random sample."""
        return self.labels.prefix

    @property
    def held(self) -> int:
        """How many labels stand behind the first pair that has none: they are held back."""
        return int(self.labels.judged.sum()) - self.used

    def sample(self) -> pl.DataFrame:
        """Return the judged pairs: user, item, label, probability and, with strata, stratum.

        `assisted(human=…)` and `unskew estimate --human` take it. Labels behind the first gap are
        left out, and so are pairs of which nobody could tell: the probability counts the others.
        """
        count = self.used
        clear = ~self.labels.unclear[:count]
        chance, group = self.probabilities(count)
        rows = self.order[:count][clear]
        columns = {
            "user": self.user.gather(rows),
            "item": self.item.gather(rows),
            "label": pl.Series(self.labels.value[:count][clear]).cast(pl.Int64),
        }
        code = np.zeros(count, np.int64) if group is None else group.astype(np.int64) + 1
        answers, questions = np.bincount(code[clear], minlength=1), np.bincount(code, minlength=1)
        share = np.ones(questions.size)
        share[: answers.size] = answers / np.maximum(questions[: answers.size], 1)
        columns["probability"] = pl.Series((chance * share[code])[clear])
        if group is not None:
            columns["stratum"] = pl.Series([CERTAIN, *self.strata]).gather(code[clear])
        return pl.DataFrame(columns)

    @checked
    def status(
        self, *, smallest: float | None = None, width: float | None = None, level: float = LEVEL
    ) -> Estimates:
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

        Returns
        -------
        Estimates
            The difference, or a row per system, with its interval; part `path`: the intervals as
            labels came in. The conclusion begins with the decision, `stop` or `go on`; `card` has
            it with its `reason`, the number of `labels` that count, and how many are `expected` in
            all, and still `needed`, for the stated difference or width, on average.

        Examples
        --------
        >>> import tempfile, unskew as us
        >>> x = {user: ["a", "b", "c"] for user in range(100)}
        >>> y = {user: ["a", "d", "e"] for user in range(100)}
        >>> plan = us.labels.plan_annotation({"x": x, "y": y}, "P@3", budget=60, seed=1)
        >>> plan.status(smallest=0.1).conclusion[0]
        'go on: it is not settled which system is better'
        """
        if smallest is not None:
            as_number("smallest", smallest, above=True)
        if width is not None:
            as_number("width", width, above=True)
        check_share("level", level)
        is_difference = self.estimand == "difference"
        if smallest is not None and not is_difference:
            raise SettingError(
                "smallest=… is a difference of two systems, and this plan is for levels: give "
                "width=…"
            )
        stated, notes = self.smallest, list(self.label_notes)
        if smallest is not None and stated is not None and smallest != stated:
            notes.append(
                f"smallest difference {smallest:g}: the plan stated {stated:g} before anything "
                f"was judged"
            )
        threshold = stated if smallest is None else smallest
        names = [self.systems] if is_difference else [(system,) for system in self.systems]
        line = (
            f"{self.metric}: {counted(self.used, 'label')} of {self.budget:,} planned, "
            f"{self.user.len():,} pairs in all; {self.design} design"
        )
        return status_of(
            {systems: self.draws(number) for number, systems in enumerate(names)},
            self.worth(self.labels.value[: self.used]),
            StopRule(threshold if is_difference else None, width, level),
            (self.metric, self.place_sum.metric.better),
            self.budget,
            explanation=(line,),
            notes=tuple(notes),
        )

    def pairs(self) -> pl.DataFrame:
        """Return the pairs to judge in their order: user, item, stratum, inclusion probability."""
        chance, _ = self.probabilities(self.budget)
        return pl.DataFrame(
            {
                "user": self.user.gather(self.order),
                "item": self.item.gather(self.order),
                "stratum": pl.Series(self.strata).gather(self.stratum[self.order]),
                "probability": chance,
            }
        )

    def card(self) -> dict[str, Any]:
        """Return the settings from which the plan can be made again, and where pairs come from."""
        return {
            "metric": self.metric,
            "estimand": self.estimand,
            "systems": list(self.systems),
            "scale": list(self.scale),
            "relevance": self.relevance.describe(),
            "seed": self.seed,
            "smallest": self.smallest,
            "strata": list(self.strata),
            "waves": [
                {**vars(wave), "slots": None if wave.slots is None else list(wave.slots)}
                for wave in self.waves
            ],
            "facts": dict(self.facts),
            "notes": list(self.notes),
        }

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        titles: object = None,
        force: bool = False,
    ) -> Path:
        """Write the file that people fill in, and all that they must not see, to a folder.

        `to-judge.csv` has the pairs that have no label yet, in their order: row, user, item, the
        columns of `titles`, and an empty `label`. Nothing in it shows system, rank, stratum or
        probability. `card.json` and `pairs.parquet` hold the rest: give them to nobody who judges.

        Parameters
        ----------
        folder
            New or empty.
        titles
            A table with a row per item: its id, and what annotators should see of it, such as a
            title. Anything that `read_ratings` reads as a table.
        force
            Write into a folder that is not empty. A file that holds labels is never overwritten.
        """
        path = check_folder(folder, force)
        _check_unfilled(inner_path(path, TO_JUDGE))
        rows = self.order[~self.labels.judged]
        unlabelled = pl.DataFrame({"user": self.user.gather(rows), "item": self.item.gather(rows)})
        sheet = _sheet(unlabelled, titles)
        with replacing_folder(path) as part:
            write_table(sheet, part / TO_JUDGE, "csv")
            write_table(self._every_pair(), part / PAIRS, "parquet")
            files = {PAIRS: digest_of_file(part / PAIRS)}
            card = {"format": FORMAT, **self.card(), "files": files, "versions": versions()}
            (part / CARD).write_bytes(sealed(card))
            (part / GUIDE).write_text(_guide(*self.scale), encoding="utf-8")
        return path

    def _every_pair(self) -> pl.DataFrame:
        """Return all pairs that count, with everything that the plan knows of them."""
        size = self.user.len()
        rank = np.zeros(size, np.int64)
        rank[self.order] = np.arange(1, self.order.size + 1)
        label, unclear = np.full(size, np.nan), np.zeros(size, np.bool_)
        label[self.order], unclear[self.order] = self.labels.value, self.labels.unclear
        columns: dict[str, Any] = {
            "user": self.user,
            "item": self.item,
            "stratum": self.stratum,
            "place": pl.Series(rank).replace(0, None),
            "label": pl.Series(label).fill_nan(None),
            "unclear": unclear,
        }
        if self.hint is not None:
            columns["hint"] = self.hint
        for number, row in enumerate(self.coefficient):
            columns[f"coefficient_{number}"] = row
        return pl.DataFrame(columns)

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
            labels before are then no longer part of the random sample for the rest: `sample` has
            them with probability 1).

        Examples
        --------
        >>> import unskew as us
        >>> x, y = {1: ["a", "b"], 2: ["a", "b"]}, {1: ["c", "b"], 2: ["d", "b"]}
        >>> plan = us.labels.plan_annotation({"x": x, "y": y}, "P@2", budget=2, seed=1)
        >>> plan.extend(1, "uniform")
        AnnotationPlan(P@2, 3 pairs of 4)
        """
        as_count("budget", budget)
        choose("design", design, DESIGNS)
        left = self.user.len() - self.budget
        if budget > left:
            raise SettingError(
                f"budget={budget}: only {counted(left, 'pair is', 'pairs are')} left"
            )
        value = np.full(self.user.len(), np.nan)
        value[self.order] = self.worth(self.labels.value)
        if design == "neyman":
            value = pilot_values(value, self.hint, len(self.strata))
        longer = self.with_wave(design, budget, value, uses_labels=design == "neyman")
        return replace(longer, source="", file_notes=())

    def with_wave(
        self, design: str, budget: int, value: F64 | None, *, uses_labels: bool = False
    ) -> AnnotationPlan:
        """Return the plan with so many further pairs; `value` shows where labels vary (neyman)."""
        used = np.bincount(self.stratum[self.order], minlength=len(self.strata))
        if design == "neyman" and value is not None:
            wave = neyman_wave(
                self.coefficient, self.stratum, value, budget, used, uses_labels=uses_labels
            )
        else:
            wave = plain_wave(design, self.sizes(), budget, used)
        taken = np.zeros(self.user.len(), np.bool_)
        taken[self.order] = True
        ids, number = (self.user, self.item), len(self.waves)
        rows = next_rows(self.seed, number, wave, ids, self.stratum, taken)
        order = frozen(np.concatenate([self.order, rows]))
        labels = self.labels.longer(order.size)
        return replace(self, order=order, waves=(*self.waves, wave), labels=labels)

    @property
    def label_notes(self) -> tuple[str, ...]:
        """What was held back, left out or assumed of labels."""
        lines = list(self.file_notes)
        if self.held:
            row = int(self.order[self.used])
            lines.append(
                f"{counted(self.held, 'label is', 'labels are')} held back, as pairs before them "
                f"have none: only the first pairs of the order without a gap are a random sample. "
                f"The first gap: user {self.user[row]!r}, item {self.item[row]!r}"
            )
        unclear = int(self.labels.unclear[: self.used].sum())
        if unclear:
            pairs = counted(unclear, "pair")
            lines.append(
                f"of {pairs} nobody could tell: intervals allow for the least and the largest label"
            )
        counts = zip(self.strata, self._by_stratum(self.used), strict=True)
        empty = [name for name, count in counts if not count]
        _, group = self.probabilities(self.used)
        if group is not None and empty and self.used:
            lines.append(f"no pair is judged yet in: {'; '.join(empty)}")
        return tuple(lines)

    def _explanation(self) -> list[str]:
        low, high = self.scale
        what = (" less " if self.estimand == "difference" else ", ").join(self.systems)
        plan = (
            f"{self.metric}, {self.estimand} ({what}): {counted(self.budget, 'pair')} of "
            f"{self.user.len():,} to judge, {self.design} design, seed {self.seed}"
        )
        if not self.source:
            return [plan, f"labels: whole numbers from {low} to {high}; {self.relevance}"]
        judged = f"{counted(self.used, 'pair')} of {self.budget:,} judged"
        lines = [f"{self.source}: {judged}; {plan}"]
        if self.estimand == "difference":
            a, b = self.systems
            lines.append(
                f"pairs that count alike for {a} and {b} were never drawn: the sample is for their "
                f"difference, not for the level of either"
            )
        if self.labels.unclear[: self.used].any():
            lines.append("pairs marked ? are not in the sample, as if they were like the others")
        if self.used < self.budget:
            lines.append(
                "if labels are stopped because of what they show, intervals for a fixed number of "
                "labels are too narrow: quote the interval of the status"
            )
        return [*lines, *self.label_notes]

    def _conclusion(self) -> list[str]:
        if self.source or self.smallest is None or self.estimand != "difference":
            return []
        draws = self.draws(0)
        value = draws.filled(self.worth(self.labels.value[: self.labels.prefix]), 1)
        expected = expected_draws(draws, spread_of(draws, steps_of(draws, value)), self.smallest)
        so_far = "" if value.size else ", fewer if labels vary less than they could"
        return [
            f"a true difference of {self.smallest:g} would be settled after about "
            f"{counted(expected, 'label')} in all on average{so_far}"
        ]

    def _summary(self) -> str:
        if self.source:
            return f"{self.metric}, {self.used:,} of {self.budget:,} pairs judged"
        return f"{self.metric}, {counted(self.budget, 'pair')} of {self.user.len():,}"

    def _content(self) -> dict[str, object]:
        return {**self.card(), "budget": self.budget, "pairs": self.pairs()}
