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

from unskew.arrays import F64, I32, I64, Mask, frozen
from unskew.data.ratings import Ids
from unskew.data.read.tables import ITEM, plain_name, read_table
from unskew.data.relevance import Relevance
from unskew.engine.files import digest_of_file, inner_path, replacing_folder, sealed, write_table
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError
from unskew.labels.annotation_designs import Wave, allocate, next_rows, spreads
from unskew.labels.confidence_sequences import Draws, expected_draws, spread_of, steps_of
from unskew.labels.recommended_pairs import PlaceSum, place_sums
from unskew.report.result import Result
from unskew.report.text import counted, visible
from unskew.splits.saved import check_folder

FORMAT = 1
TO_JUDGE, PAIRS, CARD, GUIDE = "to-judge.csv", "pairs.parquet", "card.json", "read-me.txt"
UNCLEAR = "?"
"""What annotators write where they cannot tell."""
ROW, LABEL = "row", "label"


def write_plan(
    folder: str | os.PathLike[str],
    unlabelled: pl.DataFrame,
    titles: object,
    pairs: pl.DataFrame,
    card: Mapping[str, Any],
    *,
    force: bool,
) -> Path:
    """Write the files of a plan; see `AnnotationPlan.save`.

    Parameters
    ----------
    folder
        New or empty, or `force`.
    asked
        User and item of the pairs that have no label yet, in their order.
    titles
        What annotators see of items, or None.
    pairs
        All pairs, with everything that is known of them.
    card
        The settings.
    force
        Write into a folder that is not empty.
    """
    path = check_folder(folder, force)
    _check_unfilled(inner_path(path, TO_JUDGE))
    sheet = _sheet(unlabelled, titles)
    with replacing_folder(path) as part:
        write_table(sheet, part / TO_JUDGE, "csv")
        write_table(pairs, part / PAIRS, "parquet")
        files = {PAIRS: digest_of_file(part / PAIRS)}
        content = {"format": FORMAT, **card, "files": files, "versions": versions()}
        (part / CARD).write_bytes(sealed(content))
        (part / GUIDE).write_text(_guide(*card["scale"]), encoding="utf-8")
    return path


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


@dataclass(frozen=True, eq=False)
class Labels:
    """What annotators said so far of planned pairs, by place in the order."""

    value: F64
    """NaN where nothing was said."""
    unclear: Mask
    """Where they said that they cannot tell."""

    @classmethod
    def none(cls, size: int) -> Labels:
        """Return the labels of nobody."""
        return cls(frozen(np.full(size, np.nan)), frozen(np.zeros(size, np.bool_)))

    @cached_property
    def judged(self) -> Mask:
        """Which pairs were looked at."""
        seen: Mask = ~np.isnan(self.value) | self.unclear
        return seen

    @cached_property
    def prefix(self) -> int:
        """How many pairs were judged before the first that was not."""
        return int(self.judged.size if self.judged.all() else self.judged.argmin())

    def longer(self, size: int) -> Labels:
        """Return the same with places behind them that nobody judged."""
        more = Labels.none(size - self.value.size)
        return Labels(
            frozen(np.concatenate([self.value, more.value])),
            frozen(np.concatenate([self.unclear, more.unclear])),
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class AnnotationPlan(Result):
    """Pairs for people to judge, in an order of which every beginning is a random sample.

    Made by `plan_annotation`; `save` writes the file that people fill in.
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
    """What is known already, by place in the order: of a plan that was extended."""
    facts: Mapping[str, Any]
    """Further entries of the card: where the pairs come from."""
    notes: tuple[str, ...] = ()

    @property
    def budget(self) -> int:
        """How many pairs are to be judged in all."""
        return int(self.order.size)

    @property
    def design(self) -> str:
        """How pairs were drawn."""
        return ", then ".join(wave.design for wave in self.waves)

    @property
    def contrasts(self) -> tuple[str, ...]:
        """What is estimated, by name."""
        if self.estimand == "difference":
            return (" less ".join(self.systems),)
        return self.systems

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
        return worth_of(self.place_sum, self.relevance, label)

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
        """Return a row per stratum: pairs, labels planned, inclusion probability of its pairs."""
        sizes = self.sizes()
        planned = np.bincount(self.stratum[self.order], minlength=sizes.size)
        rows = {"stratum": list(self.strata), "pairs": sizes, "labels": planned}
        chance = planned / np.maximum(sizes, 1)
        if all(wave.slots is None for wave in self.waves):
            chance = np.full(sizes.size, self.budget / max(int(sizes.sum()), 1))
        return pl.DataFrame({**rows, "probability": chance})

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
        rows = self.order[~self.labels.judged]
        unlabelled = pl.DataFrame({"user": self.user.gather(rows), "item": self.item.gather(rows)})
        return write_plan(folder, unlabelled, titles, self._every_pair(), self.card(), force=force)

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

    def extended(self, labels: Labels, budget: int, design: str) -> AnnotationPlan:
        """Return the plan with so many further pairs behind those that it has."""
        taken = np.zeros(self.user.len(), np.bool_)
        taken[self.order] = True
        left = int((~taken).sum())
        if budget > left:
            raise SettingError(
                f"budget={budget}: only {counted(left, 'pair is', 'pairs are')} left"
            )
        used = np.bincount(self.stratum[self.order], minlength=len(self.strata))
        value = np.full(taken.size, np.nan)
        planned = self.order[: labels.value.size]
        value[planned] = self.worth(labels.value)
        if design == "neyman":
            check_pilot(self, value)
            wave = neyman_wave(self, self._unexplained(value), budget, used, uses_labels=True)
        else:
            wave = plain_wave(design, self.sizes(), budget, used)
        rows = next_rows(
            self.seed, len(self.waves), wave, (self.user, self.item), self.stratum, taken
        )
        order = frozen(np.concatenate([self.order, rows]))
        longer = labels.longer(order.size)
        return replace(self, order=order, waves=(*self.waves, wave), labels=longer)

    def _unexplained(self, value: F64) -> F64:
        """Return what the labels of a model leave unexplained of values, by a straight line."""
        valid = ~np.isnan(value)
        if self.hint is None or valid.sum() < 3 or np.ptp(self.hint[valid]) == 0:
            return value
        slope, level = np.polyfit(self.hint[valid], value[valid], 1)
        residual: F64 = value - (level + slope * self.hint)
        return residual

    def _explanation(self) -> list[str]:
        low, high = self.scale
        what = self.contrasts[0] if self.estimand == "difference" else ", ".join(self.systems)
        return [
            f"{self.metric}, {self.estimand} ({what}): {counted(self.budget, 'pair')} of "
            f"{self.user.len():,} to judge, {self.design} design, seed {self.seed}",
            f"labels: whole numbers from {low} to {high}; {self.relevance}",
        ]

    def _conclusion(self) -> list[str]:
        if self.smallest is None or self.estimand != "difference":
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
        return f"{self.metric}, {counted(self.budget, 'pair')} of {self.user.len():,}"

    def _content(self) -> dict[str, object]:
        return {**self.card(), "budget": self.budget, "pairs": self.pairs()}


def worth_of(metric: PlaceSum, rule: Relevance, label: F64) -> F64:
    """Return what labels add at a place that counts 1; NaN stays NaN."""
    valid = ~np.isnan(label)
    result = np.full(label.size, np.nan)
    values = label[valid]
    if metric.counts_gain:
        result[valid] = rule.losses(values) if metric.metric.anti else rule.gains(values)
    else:
        result[valid] = rule.is_liked(values) != metric.metric.anti
    return result


def plain_wave(design: str, sizes: I64, budget: int, used: I64) -> Wave:
    """Return a wave of simple random draws, or one in proportion to the sizes of strata."""
    if design == "uniform":
        return Wave(design, budget, None)
    total = allocate(sizes, sizes.astype(np.float64), budget + int(used.sum()), used=used)
    return Wave(design, budget, tuple((total - used).tolist()))


def neyman_wave(
    plan: AnnotationPlan, value: F64, budget: int, used: I64, *, uses_labels: bool = False
) -> Wave:
    """Return a wave whose labels fall where values vary most."""
    sizes = plan.sizes()
    spread = spreads(plan.coefficient, value, plan.stratum, sizes.size)
    total = allocate(sizes, sizes * spread, budget + int(used.sum()), used=used)
    return Wave("neyman", budget, tuple((total - used).tolist()), uses_labels)


def check_pilot(plan: AnnotationPlan, value: F64) -> None:
    """Refuse to learn the spread from a handful of labels."""
    count = int((~np.isnan(value)).sum())
    minimum = 2 * len(plan.strata)
    if count < minimum:
        raise DataError(
            f"design='neyman' takes the spread of each stratum from labels, and "
            f"{counted(count, 'pair has', 'pairs have')} one: judge at least {minimum}, or extend "
            f"by design='stratified'"
        )
