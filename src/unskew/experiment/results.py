"""`Results`: everything a plan gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from unskew.errors import SettingError
from unskew.evaluation.notes import notes_of
from unskew.evaluation.scores import RANDOM, Scores
from unskew.evaluation.tables import APART, best_places, table_lines
from unskew.experiment.plan import Plan, PlanView
from unskew.metrics.names import parse
from unskew.report.result import Result
from unskew.report.tables import WIDE, Table
from unskew.report.text import counted


@dataclass(frozen=True, eq=False)
class ScoredSplit:
    """The scores of all systems on one split, judged in one way."""

    split: str
    """The protocol; with its settings where the plan has several of that name."""
    fold: str
    """The label of the split, such as `fold1`."""
    view: PlanView
    scores: Scores
    intervention: str = ""
    """Its kind; with its settings where the plan has several of that kind."""


@dataclass(frozen=True, eq=False)
class Results(Result):
    """Everything a plan gave: scores of all systems by split, judgments and targets.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3)
    >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
    >>> results = us.run_plan(shop.ratings, us.Plan(algorithms=systems, metrics="P@5", seed=1))
    >>> results.summary()["system"].to_list(), results.scores()
    (['random', 'popularity', '(random)'], [Scores(2 systems, 1 metric, 60 lists)])
    """

    plan: Plan
    parts: tuple[ScoredSplit, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    """Reports of failed tasks, by what they were."""
    data_notes: tuple[str, ...] = ()
    """What was done to the data before they were split, and which metrics they cannot give."""

    def __iter__(self) -> Iterator[ScoredSplit]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def scores(
        self,
        targets: str | None = None,
        *,
        split: str | None = None,
        judgments: str | None = None,
        intervention: str | None = None,
    ) -> list[Scores]:
        """Return the scores of one design, one per fold: what comparisons take.

        Parameters
        ----------
        targets
            A design as it prints, such as `TestItems()`; not needed where there is one.
        split, judgments, intervention
            Likewise.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=30, items=20, seed=3)
        >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
        >>> plan = us.Plan(us.splits.Random(folds=2), algorithms=systems, metrics="P@5")
        >>> us.run_plan(shop.ratings, plan).scores()
        [Scores(2 systems, 1 metric, 30 lists), Scores(2 systems, 1 metric, 30 lists)]
        """
        chosen = self._of_design(
            targets=targets, split=split, judgments=judgments, intervention=intervention
        )
        return [part.scores for part in chosen]

    def by_fold(
        self,
        targets: str | None = None,
        *,
        split: str | None = None,
        judgments: str | None = None,
        intervention: str | None = None,
    ) -> dict[str, Scores]:
        """Return the scores of one design by the label of the split: what `order_changes` takes.

        Parameters
        ----------
        targets, split, judgments, intervention
            As in `scores`.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=30, items=20, seed=3)
        >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
        >>> halves = us.splits.Random(folds=2)
        >>> results = us.run_plan(shop.ratings, us.Plan(halves, algorithms=systems, metrics="P@5"))
        >>> list(results.by_fold())
        ['fold1', 'fold2']
        """
        chosen = self._of_design(
            targets=targets, split=split, judgments=judgments, intervention=intervention
        )
        return {part.fold: part.scores for part in chosen}

    def _of_design(self, **design: str | None) -> list[ScoredSplit]:
        """Return the splits of the one design that is meant; refuse none and several."""
        chosen = [
            part
            for part in self.parts
            if all(value is None or _names(part)[name] == value for name, value in design.items())
        ]
        designs = {tuple(_names(part).values()) for part in chosen}
        if len(designs) != 1:
            there = sorted({tuple(_names(part).values()) for part in self.parts})
            listed = "\n  ".join(" | ".join(names) for names in there)
            raise SettingError(
                f"{counted(len(designs), 'design fits', 'designs fit')}; choose one with "
                "targets=…, split=…, judgments=…, intervention=…. There are (targets | split | "
                f"judgments | intervention):\n  {listed}"
            )
        return chosen

    def design_text(self) -> str:
        """Return the design in words; where there are several, `scores` chooses one.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=30, items=20, seed=3)
        >>> systems = [us.recommend.Random(), us.recommend.Popularity()]
        >>> plan = us.Plan(algorithms=systems, relevance=us.Relevance(liked=4), metrics=["P@5"])
        >>> us.run_plan(shop.ratings, plan).design_text()
        'split: random; target items: AllItems()'
        """
        designs = {tuple(_names(part).items()) for part in self.parts}
        if len(designs) != 1:
            raise SettingError(
                f"one design is needed, got {len(designs)}: choose one by "
                "scores(targets=…, split=…)"
            )
        names = dict(designs.pop())
        text = f"split: {names['split']}; target items: {names['targets']}"
        if names["judgments"] != "test":
            text += f"; judgments: {names['judgments']}"
        return text + (f"; intervention: {names['intervention']}" if names["intervention"] else "")

    def table(self) -> pl.DataFrame:
        """Return a row per split, design, system and metric, with what chance scores."""
        rows = []
        for part in self.parts:
            chance = part.scores.random()
            for system, means in part.scores.averages().items():
                for label, mean in means.items():
                    rows.append(
                        {
                            **_names(part),
                            "fold": part.fold,
                            "system": system,
                            "metric": label,
                            "mean": mean.value,
                            "users": mean.users,
                            "random": chance.get(label),
                        }
                    )
        return pl.DataFrame(rows, infer_schema_length=None)

    def by_warmth(self) -> pl.DataFrame:
        """Return the means on users with (warm) and without (cold) training ratings.

        A row per split, design, metric and system, as `Scores.by_warmth` has them.

        Examples
        --------
        >>> import unskew as us
        >>> shop = us.world("shop", users=60, items=20, density=0.3, seed=3).ratings
        >>> plan = us.Plan(algorithms=[us.recommend.Popularity()], metrics="P@5", seed=1)
        >>> us.run_plan(shop, plan).by_warmth().select("system", "users", "cold").rows()
        [('popularity', 41, 1), ('(random)', 41, 1)]
        """
        tables = [
            part.scores.by_warmth().select(
                *(pl.lit(value).alias(name) for name, value in _names(part).items()),
                pl.lit(part.fold).alias("fold"),
                pl.all(),
            )
            for part in self.parts
        ]
        return pl.concat(tables)

    def _warmth_lines(self) -> list[str]:
        """Say what systems score on cold users, where there are any."""
        if not any((part.scores.lists["train"] == 0).any() for part in self.parts):
            return []
        table = self.by_warmth()
        if not (table["cold"] > 0).any():
            return []
        if len({tuple(_names(part).values()) for part in self.parts}) > 1:
            cold, users = (_range(table[name].to_list()) for name in ("cold", "users"))
            verb = "has" if cold == "1" else "have"
            return [f"{cold} of {users} users {verb} no training rating (cold): {APART}"]
        means = table.group_by("metric", "system", maintain_order=True).agg(
            pl.col("users", "cold").sum(), pl.col("on_warm", "on_cold").mean()
        )
        return table_lines(means, tuple(self.plan.systems), self.digits, len(self.parts))

    def summary(self) -> pl.DataFrame:
        """Return the mean over folds: a row per design and system, a column per metric."""
        design = ["targets", "split", "judgments", "intervention"]
        long = self.table()
        chance = long.with_columns(system=pl.lit(RANDOM), mean="random").unique(maintain_order=True)
        rows = pl.concat([long, chance]).with_columns(
            place=pl.concat_str(pl.col(design), separator="\x1f").rank("dense")
        )
        first = {name: n for n, name in enumerate(dict.fromkeys(rows["place"].to_list()))}
        means = rows.group_by([*design, "place", "system", "metric"], maintain_order=True).agg(
            pl.col("mean").mean()
        )
        wide = means.pivot(
            "metric", index=[*design, "place", "system"], values="mean", maintain_order=True
        )
        wide = wide.sort(pl.col("place").replace_strict(first), maintain_order=True).drop("place")
        return wide.drop([key for key in design if wide[key].n_unique() == 1])

    def _explanation(self) -> list[str]:
        folds = len({(part.split, part.fold) for part in self.parts})
        lines = [f"means over {counted(folds, 'split')}; {self.plan.users}; {self.plan.relevance}"]
        lines += self._warmth_lines()
        if self.failures:
            lines.append(
                f"{counted(len(self.failures), 'task')} failed: {', '.join(self.failures)}"
            )
        return lines

    @property
    def notes(self) -> tuple[str, ...]:
        """What was counted on the way, each note once, with the systems and designs it is of."""
        names = [_names(part) for part in self.parts]
        differing = (
            [key for key in names[0] if len({name[key] for name in names}) > 1] if names else []
        )
        designs: dict[str, list[Scores]] = {}
        for part, name in zip(self.parts, names, strict=True):
            design = ", ".join(name[key] for key in differing if name[key])
            designs.setdefault(design, []).append(part.scores)
        return (*self.data_notes, *notes_of(designs))

    def display_tables(self, digits: int | None = None) -> list[Table]:
        """Return one table or, where there are many metrics, one per design with a row for each."""
        digits = self.digits if digits is None else digits
        table = self.summary()
        names = list(self.plan.metrics)
        if len(names) <= WIDE:
            return [Table("", table, digits, strong=self._best(table, names))]
        keys = [column for column in table.columns if column not in (*names, "system")]
        parts = table.partition_by(keys, maintain_order=True) if keys else [table]
        wide = [
            part.select(names).transpose(
                include_header=True,
                header_name=", ".join(str(part[key][0]) for key in keys) or "metric",
                column_names=part["system"],
            )
            for part in parts
        ]
        return [Table("", part, digits) for part in wide]

    def _best(self, table: pl.DataFrame, names: list[str]) -> frozenset[tuple[int, int]]:
        """Return the cells with the best mean of a metric in each design; chance is no system."""
        keys = [column for column in table.columns if column not in (*names, "system")]
        numbered = table.with_row_index("row").filter(pl.col("system") != RANDOM)
        designs = numbered.partition_by(keys, maintain_order=True) if keys else [numbered]
        return frozenset(
            (part["row"].to_list()[index], table.columns.index(name))
            for part in designs
            for name in names
            for index in best_places(part[name].to_list(), parse(name).better)
        )

    def _summary(self) -> str:
        return f"designs x splits: {len(self.parts)}, {counted(len(self.plan.systems), 'system')}"


def _names(part: ScoredSplit) -> dict[str, str]:
    return {
        "targets": repr(part.view.targets),
        "split": part.split,
        "judgments": part.view.judgments,
        "intervention": part.intervention,
    }


def _range(counts: list[int]) -> str:
    """Return the least and the greatest of some counts."""
    low, high = min(counts), max(counts)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
