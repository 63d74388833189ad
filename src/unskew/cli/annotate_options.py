"""Options of `unskew annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from unskew.checks import MOST_DEPTH
from unskew.cli.bundles import REQUIRED, argument, option
from unskew.cli.options import INPUT, MEASURE

DESIGN = "Design"

PlanFolder = Annotated[Path, argument("Folder that unskew annotate plan wrote.", "FOLDER")]
FilledFile = Annotated[
    Path | None,
    option(INPUT, "The file with labels. Default: to-judge.csv in the folder.", "--file"),
]
Skipped = Annotated[
    str,
    option(
        INPUT,
        "Labels behind the first pair that was skipped: hold (keep them back, and count them) or "
        "refuse.",
        default="hold",
    ),
]
Budget = Annotated[
    int,
    option(
        DESIGN, "Number of pairs to judge.", "--budget", default=REQUIRED, min=1, max=MOST_DEPTH
    ),
]
Smallest = Annotated[
    float | None,
    option(
        MEASURE,
        "The smallest difference that matters, such as 0.02; stated, never the observed one.",
    ),
]
TitlesFile = Annotated[
    str | None,
    option(
        INPUT,
        "What annotators see of each item: a file with the item and further columns, such as a "
        "title.",
        "--titles",
    ),
]
