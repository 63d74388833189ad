"""`unskew demo`: the main job on a built-in world whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.cli import outputs
from unskew.cli.audit import show
from unskew.cli.bundles import option
from unskew.cli.console import stages_progress
from unskew.cli.options import OUTPUT, Quiet, ReportFile, ReportOptions, Seed

if TYPE_CHECKING:
    from unskew.worlds.worlds import World

USERS, ITEMS = 1_000, 500


def command(
    *,
    seed: Seed = 7,
    output: ReportFile,
    save: Annotated[Path | None, option(OUTPUT, "Also write the world's files into this folder.")],
    quiet: Quiet,
) -> None:
    """Audit six systems in a simulated shop, and write a report.

    People discover popular items far more often than others and rate what they discover. Because
    the shop is simulated, what everyone truly likes is known: it stands beside what each design
    observes.

    [bold]Examples[/bold]

      unskew demo

      unskew demo --save sample/ -o demo.html
    """
    from unskew.auditing.compile_ahead import compiling_ahead
    from unskew.auditing.run import audit
    from unskew.worlds.worlds import world

    with compiling_ahead():
        shop = world("shop", users=USERS, items=ITEMS, seed=seed)
        if not quiet:
            outputs.say(
                f"A simulated shop: {USERS:,} users, {ITEMS:,} items, {len(shop.ratings):,} "
                f"ratings. What everyone truly likes is known.\n"
            )
        with stages_progress(quiet) as move:
            result = audit(shop, "quick", seed=seed, progress=move)
    show(result, quiet)
    if not quiet:
        outputs.say(
            "(in truth): the share of the first ten recommendations that people truly like, which "
            "only a simulation knows."
        )
    options = ReportOptions(output=output, figures=None, format=None, quiet=quiet)
    outputs.write_report(result, options, "unskew-report")
    if save is not None:
        _save(shop, save, seed)
        outputs.say(f"The ratings are in {save}. Try:")
        outputs.say(f"unskew audit {save / 'ratings.csv'} --random {save / 'random.csv'} --quick")


def _save(shop: World, folder: Path, seed: int) -> None:
    """Write what a user would have: all ratings, random ones, a split, and the lists of systems."""
    from unskew.engine.files import replacing_folder, write_table
    from unskew.engine.rng import generator
    from unskew.judging.rank import rank
    from unskew.recommend.registry import algorithm
    from unskew.splits.random import Random
    from unskew.targets.designs import AllItems

    split = Random(test=0.2).split(shop.ratings, seed)[0]
    lists = AllItems().lists(split, liked=shop.liked)
    parts = {
        "ratings": shop.ratings,
        "random": shop.random(0.05),
        "train": split.train,
        "test": split.test,
    }
    with replacing_folder(folder) as home:
        for name, part in parts.items():
            write_table(part.to_polars(), home / f"{name}.csv", "csv")
        for file, name in (("popular", "popularity"), ("wrmf", "wrmf")):
            chosen = algorithm(name)
            model = chosen.fit(split.train, generator(seed, "demo", chosen.draw_name_of()))
            write_table(rank(model, lists, 50).to_polars(), home / f"{file}.csv", "csv")
