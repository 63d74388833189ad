"""`unskew demo`: the main job on a built-in world whose truth is known."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unskew.cli import outputs
from unskew.cli.audit import show as show_audit
from unskew.cli.bundles import option
from unskew.cli.options import OUTPUT, Quiet, ReportFile, ReportOptions, Seed
from unskew.cli.progress import stages_progress
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.auditing.result import Audit
    from unskew.worlds.worlds import World

WORLD = "display"
USERS, ITEMS = 1_000, 500
SYSTEMS = ("random", "popularity", "smoothed-average", "biased-mf")
BETTER = ("better-shown", "better-despite", "better")
"""Next steps that name a system as better than another."""
SAVED = ("user-knn", "biased-mf")
"""Systems whose lists are saved."""
SHOWN_AT_RANDOM = 0.05
"""The share of all pairs that are saved as randomly shown."""


def command(
    *,
    seed: Seed = 7,
    output: ReportFile,
    save: Annotated[Path | None, option(OUTPUT, "Also write the world's files into this folder.")],
    quiet: Quiet,
) -> None:
    """Audit four systems in a simulated shop, and write a report.

    The shop displays some items far more than others, and people rate what they see. Because the
    shop is simulated, what everyone truly likes is known: the last row of the table and the last
    line say it. The verdict and its sentences rest on the ratings alone.

    [bold]Examples[/bold]

      unskew demo

      unskew demo --save sample/ -o demo.html
    """
    from unskew.auditing.compile_ahead import compiling_ahead
    from unskew.auditing.run import audit
    from unskew.worlds.worlds import world

    if not quiet:
        outputs.note("A simulated shop is audited: some 15 s, about a minute the first time.")
    with compiling_ahead():
        shop = world(WORLD, users=USERS, items=ITEMS, seed=seed)
        if not quiet:
            outputs.say(intro(shop))
        with stages_progress(quiet) as move:
            result = audit(shop, "quick", algorithms=list(SYSTEMS), seed=seed, progress=move)
    options = ReportOptions(output=output, figures=None, format=None, quiet=quiet)
    outputs.write_report(result, options, "unskew-report", lambda: show(result, quiet))
    if not quiet and save is None:
        outputs.note("With your own ratings: unskew audit ratings.csv --quick -o report.html")
    if save is not None:
        _save(shop, save, seed)
        outputs.say(f"The ratings are in {save}. Try:")
        for line in _to_try(save):
            outputs.say(line)


def intro(shop: World) -> str:
    """Say what is simulated, and what is known."""
    return (
        f"A simulated shop: {len(shop.users):,} users with tastes of their own, "
        f"{len(shop.items):,} items, {len(shop.ratings):,} ratings. Some items are\n"
        f"popular because they are displayed, not because they are better. What everyone truly "
        f"likes is known.\n"
    )


def show(result: Audit, quiet: bool) -> None:
    """Print the audit and, unless quiet, what is true."""
    show_audit(result, quiet)
    if not quiet:
        outputs.say(closing(result))


def closing(result: Audit) -> str:
    """Say who is truly liked most, and whether the common design and the audit agree."""
    true = true_shares(result)
    leader, best = result.evidence.leader, max(true, key=lambda one: true[one])
    text = f"In truth {best} is best: people like {true[best]:.0%} of its first ten recommendations"
    if best == leader:
        return f"{text}. The common design puts it first, too."
    text += f", and {true[leader]:.0%} of those of {leader}, which the common design puts first."
    step = result.first_screen.next_step
    if step is None or step.kind not in BETTER:
        return f"{text} The audit does not see it."
    a, b = step.subjects
    if true[a] <= true[b]:
        return f"{text} The audit takes {a} for better than {b}, which is wrong here."
    return f"{text} From the ratings alone, the audit rightly takes {a} for better than {b}."


def true_shares(result: Audit) -> dict[str, float]:
    """Return by system: the share of its first ten recommendations that people truly like."""
    if result.truth is None:
        raise SettingError("the truth is known in worlds only")
    table = result.truth.table().filter(design=result.common, metric=result.metric)
    return dict(table.select("system", "true").iter_rows())


def _to_try(folder: Path) -> list[str]:
    """Return commands that read the files."""
    path = {
        name: str(folder / f"{name}.csv") for name in (*SAVED, "ratings", "random", "train", "test")
    }
    runs = [word for name in SAVED for word in ("--run", path[name])]
    given = ["--judgments", path["test"], *runs, "--train", path["train"]]
    return [
        shlex.join(["unskew", "audit", path["ratings"], "--random", path["random"], "--quick"]),
        shlex.join(["unskew", "audit", *given, "--quick"]),
    ]


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
        "random": shop.random(SHOWN_AT_RANDOM),
        "train": split.train,
        "test": split.test,
    }
    with replacing_folder(folder) as home:
        for name, part in parts.items():
            write_table(part.to_polars(), home / f"{name}.csv", "csv")
        for name in SAVED:
            chosen = algorithm(name)
            model = chosen.fit(split.train, generator(seed, "demo", chosen.draw_name_of()))
            write_table(rank(model, lists, 50).to_polars(), home / f"{name}.csv", "csv")
