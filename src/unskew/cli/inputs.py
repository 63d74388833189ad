"""What commands read: ratings, runs, saved scores, and how ratings are taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from unskew.cli.options import column_names
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.data.ratings import Ratings
    from unskew.runs import Run


def either(judgments: Path | None, run: Sequence[str] | None, saved: Sequence[Path] | None) -> bool:
    """Tell whether saved scores are meant; refuse what is neither one nor the other."""
    if saved:
        if judgments is not None or run:
            raise SettingError("give --scores, or --judgments and --run: not both")
        return True
    if judgments is None or not run:
        raise SettingError("give --judgments and --run, or --scores with a saved folder")
    return False


def metric_names(metric: list[str] | None) -> list[str] | None:
    """Return the metrics asked for, None for none: several may stand between commas."""
    parts = [part for text in metric or [] for part in re.split(r",(?![^()]*\))", text)]
    return [part.strip() for part in parts if part.strip()] or None


def read_files(
    judgments: Path | None, run: Sequence[str] | None, train: Path | None, *,
    columns: str | None, duplicates: str, repeated: str = "error", **how: Any,
) -> tuple[Ratings, dict[str, Run], Ratings | None]:  # fmt: skip
    """Read test ratings, runs (see `read_run` for `how`) and, where given, training ratings."""
    from unskew.data.readers import read_ratings
    from unskew.runs import read_run

    names = column_names(columns)
    of_ratings = {key: names[key] for key in ("user", "item", "rating", "time") if key in names}
    of_runs = {key: names[key] for key in ("user", "item", "rank", "score") if key in names}
    lists = {
        name: read_run(path, duplicates=repeated, keep_scores=False, **how, **of_runs)
        for name, path in named_runs(list(run or [])).items()
    }
    tests, trained = (
        None if path is None else read_ratings(path, duplicates=duplicates, **of_ratings)
        for path in (judgments, train)
    )
    return cast("Ratings", tests), lists, trained


def relevance_of(
    liked: float | None, above: float | None, gain: str | None, loss: str | None,
    relevance: str | None,
) -> dict[str, Any]:  # fmt: skip
    """Return how ratings are taken, as the settings that `evaluate` takes."""
    from unskew.data.relevance import Relevance

    if relevance is not None:
        if any(x is not None for x in (liked, above, gain, loss)):
            raise SettingError("--relevance replaces --liked, --above, --gain and --loss")
        return {"relevance": Relevance.paper(relevance)}
    rules = {"gain": rule_of(gain) or "rating", "loss": rule_of(loss) or "levels"}
    return {"liked": liked, "above": above, **rules}


def named_runs(runs: list[str]) -> dict[str, str]:
    """Name each run after NAME=FILE or its file's stem."""
    from unskew.runs import system_name

    named: dict[str, str] = {}
    for text in runs:
        name, equals, path = text.partition("=")
        if not equals or Path(text).exists():
            name, path = system_name(text), text
        if name in named:
            raise SettingError(f"two runs are named {name!r}; name them with --run NAME=FILE")
        named[name] = path
    return named


def rule_of(text: str | None) -> Any:
    """Read a gain or loss: a name, or a mapping such as 5=2,4=1."""
    if text is None or "=" not in text:
        return text
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(rating): float(value) for rating, value in pairs}
    except ValueError:
        raise SettingError(f"cannot read {text!r}; write a mapping as 5=2,4=1,3=0") from None


def load(folders: Sequence[Path]) -> Any:
    """Read saved scores: one folder, or several as folds."""
    from unskew.scores import Scores

    several = [Scores.load(folder) for folder in folders]
    return several[0] if len(several) == 1 else several


def loaded(ratings: str, data_dir: Path | None, columns: str | None, duplicates: str) -> Any:
    """Load a data set by its name, or a file; what does not go with it is refused there."""
    from unskew.data.catalog import DATASETS, load

    options = column_names(columns)
    if duplicates != "error":
        options["duplicates"] = duplicates
    named = ratings.lower() in DATASETS and not Path(ratings).is_file()
    return load(ratings if named else Path(ratings), data_dir=data_dir, **options)
