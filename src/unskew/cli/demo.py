"""`unskew demo`: the main job on a built-in world whose truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.cli.audit import shown, stages
from unskew.cli.console import output
from unskew.cli.options import OUTPUT, Quiet, ReportFile, Seed, option
from unskew.cli.outputs import report_kind, write_report

if TYPE_CHECKING:
    from unskew.worlds.worlds import World

USERS, ITEMS = 1_000, 500
SEED = 7


def demo(
    seed: Seed = SEED,
    to: ReportFile = None,
    save: Annotated[
        Path | None, option(OUTPUT, "Also write the world's files into this folder.", "--save")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Audit six systems in a simulated shop, and write a report.

    People discover popular items far more often than others and rate what they discover. Because
    the shop is simulated, what everyone truly likes is known, and the report shows what each design
    says beside it.

    [bold]Examples[/bold]

      unskew demo

      unskew demo --save sample/ -o demo.html
    """
    from unskew.auditing.compile_ahead import compiling_ahead
    from unskew.auditing.result import audit
    from unskew.worlds.worlds import world

    kind = report_kind(to, None)
    with compiling_ahead():
        shop = world("shop", users=USERS, items=ITEMS, seed=seed)
        if not quiet:
            output().print(
                f"A simulated shop: {USERS:,} users, {ITEMS:,} items, {len(shop.ratings):,} "
                f"ratings. What everyone truly likes is known.\n",
                markup=False,
            )
        with stages(quiet) as moved:
            found = audit(shop, "quick", seed=seed, progress=moved)
    shown(found, quiet)
    write_report(found, to, kind, None, "unskew-report", quiet)
    if save is not None:
        _save(shop, save, seed)
        print(f"The ratings are in {save}. Try:")
        print(f"unskew audit {save / 'ratings.csv'} --random {save / 'random.csv'} --quick")


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
            one = algorithm(name)
            model = one.fit(split.train, generator(seed, "demo", one.draw_name_of()))
            write_table(rank(model, lists, 50).to_polars(), home / f"{file}.csv", "csv")
