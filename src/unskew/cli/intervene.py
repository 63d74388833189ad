"""`unskew intervene`: a test set that looks missing at random, drawn from one that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import choose
from unskew.cli.console import output
from unskew.cli.inputs import check_data_dir, read_random_file, read_rating_file
from unskew.cli.options import (
    INPUT,
    Columns,
    DataDir,
    Duplicates,
    Folder,
    Force,
    Quiet,
    Seed,
    option,
)
from unskew.errors import SettingError

EXAMPLES = """
Draw, or weight, held-out ratings so that they look missing at random (carraro2020).

[bold]Examples[/bold]

  unskew intervene test.parquet --train train.parquet --kind skew -o debiased/

  unskew intervene test.csv --train train.csv --mar random.csv --kind wtd -o debiased/

  unskew intervene test.csv --train train.csv --kind wtd-h --weights raking -o weighted/

[bold]Kinds[/bold]

  full (everything), reg (at random), skew (against popular items), wtd (towards the users and items
  of ratings of randomly chosen items, --mar), wtd-h (towards users and items that are all alike).

The folder gets test.parquet (with a column weight where --weights is given) and card.json.
"""

DESIGN = "Intervention"


def intervene(  # noqa: D103 - its help is EXAMPLES
    test: Annotated[Path, typer.Argument(help="Held-out ratings: a file, or a named data set.")],
    to: Folder,
    kind: Annotated[str, option(DESIGN, "full, reg, skew, wtd, wtd-h.", "--kind", "-k")],
    train: Annotated[Path | None, option(INPUT, "Training ratings: for skew, wtd, wtd-h.")] = None,
    mar: Annotated[Path | None, option(INPUT, "Ratings of randomly chosen items: for wtd.")] = None,
    data_dir: DataDir = None,
    columns: Columns = None,
    duplicates: Duplicates = "error",
    size: Annotated[float | None, option(DESIGN, "The share to draw, 0.5 unless given.")] = None,
    exponent: Annotated[
        float | None, option(DESIGN, "Of the item's weight: skew 1, wtd and wtd-h 2.")
    ] = None,
    unseen: Annotated[
        str | None, option(DESIGN, "skew: items unknown to training count once, random.")
    ] = None,
    smoothing: Annotated[
        str | None, option(DESIGN, "wtd, wtd-h: posteriors of 0: additive, paper.")
    ] = None,
    alpha: Annotated[
        float | None, option(DESIGN, "wtd, wtd-h: of additive smoothing, 1 unless given.")
    ] = None,
    weights: Annotated[
        str | None, option(DESIGN, "Weight all ratings instead: hajek, inclusion, raking.")
    ] = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    from unskew.splits.interventions import DESIGNS, METHODS
    from unskew.splits.randomness import looks_random
    from unskew.splits.saved import check_folder, save_intervened

    given = {
        "size": size,
        "exponent": exponent,
        "unseen": unseen,
        "smoothing": smoothing,
        "alpha": alpha,
    }
    design = _built(DESIGNS[choose("kind", kind, DESIGNS)], given)
    if weights is not None:
        choose("weights", weights, METHODS)
    check_folder(to, force)
    check_data_dir(data_dir, test, train, mar)
    files = {
        "test": (test, read_rating_file),
        "train": (train, read_rating_file),
        "mar": (mar, read_random_file),
    }
    sources = {
        role: read(path, columns, duplicates, data_dir=data_dir)
        for role, (path, read) in files.items()
        if path is not None
    }
    parts = sources["test"], sources.get("train"), sources.get("mar")
    done = design.sample(*parts, seed) if weights is None else design.weigh(*parts, weights, seed)
    save_intervened(done, to, sources=sources, force=force)
    if not quiet:
        print(done)
        if weights is None:
            print(f"  {looks_random(done.ratings)}")
        output().print(f"written to {to}", style="dim", markup=False)


intervene.__doc__ = EXAMPLES


def _built(kind: Any, options: dict[str, Any]) -> Any:
    """Build the design from the options that were given and that it has."""
    settings = {name: value for name, value in options.items() if value is not None}
    allowed = [name for name in kind().describe() if name != "kind"]
    for name in settings:
        if name not in allowed:
            takes = ", ".join(f"--{one}" for one in allowed)
            raise SettingError(f"--{name} does not apply to {kind.kind}; it takes {takes}")
    return kind(**settings)
