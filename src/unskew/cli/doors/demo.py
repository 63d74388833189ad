"""`unskew demo`: two shops whose truth is known, and what an audit makes of their ratings."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from unskew.cli import outputs
from unskew.cli.console import output as screen_of_results
from unskew.cli.doors.audit import true_shares
from unskew.cli.options import ReportFile, ReportOptions
from unskew.cli.progress import stages_progress

if TYPE_CHECKING:
    from unskew.auditing.result import Audit
    from unskew.worlds.worlds import World


class Shop(NamedTuple):
    """One of the two shops."""

    world: str
    title: str


DISPLAYED = Shop("display", "Items are popular because they are displayed")
GOOD = Shop("popular-good", "Items are popular because they are good")
USERS, ITEMS = 1_000, 500
SYSTEMS = ("random", "popularity", "smoothed-average", "biased-mf")
BETTER = ("better-shown", "better-despite")
"""Next steps that name a system as better than one that scores higher."""
SAID = (
    *("popular-liked", "popular-not-liked", "popular-open"),
    *(*BETTER, "best", "evidence-disagrees"),
)
"""Kinds of sentences of the first screen that are printed."""
SAVED = ("user-knn", "biased-mf")
"""Systems whose lists are saved."""
SHOWN_AT_RANDOM = 0.05
"""The share of all pairs that are saved as randomly shown."""


def demo_command(
    *,
    seed: int = 7,
    output: ReportFile = None,
    save: Path | None = None,
    quiet: bool = False,
) -> None:
    """Audit four systems in two simulated shops, and write a report of the first one.

    In both shops a list of popular items scores high: in one because items are displayed, in the
    other because they are good. Because the shops are simulated, what everyone truly likes is known
    and printed below; the answer above it rests on the ratings alone.

    [bold]Examples[/bold]

      unskew demo

      unskew demo --save sample/ -o demo.html

    Output
    ------
    output
        File of the report; its ending selects the format (.html, .md, .json); - prints it.
    save
        Also write the first shop's files into this folder.
    """
    from unskew.auditing.compile_ahead import compiling_ahead

    if not quiet:
        outputs.note("Two simulated shops are audited: some 20 s, about a minute the first time.")
        outputs.say(INTRODUCTION)
    with compiling_ahead():
        shop, first = _audited(DISPLAYED, seed, quiet)
        options = ReportOptions(output=output, figures=None, format=None, quiet=quiet)
        outputs.write_report(
            first, options, "unskew-report", lambda: show_shop(1, DISPLAYED, first, quiet)
        )
        if not quiet:
            _, second = _audited(GOOD, seed, quiet)
            show_shop(2, GOOD, second, quiet)
    if not quiet and save is None:
        outputs.note("With your own ratings: unskew audit ratings.csv --quick -o report.html")
    if save is not None:
        _save(shop, save, seed)
        outputs.say(f"The ratings are in {save}. Try:")
        for line in _to_try(save):
            outputs.say(line)


INTRODUCTION = (
    f"Two simulated shops of {USERS:,} users and {ITEMS} items. In both, the list of popular items "
    "scores high.\nDo people like it? From the ratings alone the audit says:\n"
)


def _audited(shop: Shop, seed: int, quiet: bool) -> tuple[World, Audit]:
    """Return a shop, and the audit of its ratings."""
    from unskew.auditing.audit import audit
    from unskew.worlds.worlds import world

    made = world(shop.world, users=USERS, items=ITEMS, seed=seed)
    with stages_progress(quiet) as move:
        return made, audit(made, "quick", algorithms=list(SYSTEMS), seed=seed, progress=move)


def show_shop(number: int, shop: Shop, result: Audit, quiet: bool) -> None:
    """Print what the audit says of a shop and, unless quiet, what is true."""
    screen = screen_of_results()
    if quiet:
        outputs.say(result.answer()[0])
        return
    lines = [f"{number}. {shop.title}", *answer(result), truth(result)]
    for text in lines:
        screen.print(text, markup=False, soft_wrap=not sys.stdout.isatty())
        screen.print()


def answer(result: Audit) -> list[str]:
    """Return the verdict, and what is said of popularity and of liking."""
    said = [sentence for sentence in result.first_screen.sentences if sentence.kind in SAID]
    return [result.answer()[0], *(sentence.text for sentence in said)]


def truth(result: Audit) -> str:
    """Say which share of each system's recommendations people truly like, and who saw it."""
    true = true_shares(result)
    best = sorted(true, key=lambda system: -true[system])
    shares = ", ".join(f"{true[system]:.0%} of those of {system}" for system in best[1:])
    text = f"In truth people like {true[best[0]]:.0%} of the recommendations of {best[0]}, {shares}"
    step = result.first_screen.next_step
    named = step.subjects if step is not None and step.kind in BETTER else ()
    if named:
        a, b = named
        verdict = "rightly" if true[a] > true[b] else "wrongly"
        return f"{text}. The audit {verdict} takes {a} for better than {b}, which scores higher."
    if best[0] in result.evidence.leading():
        return f"{text}. The highest score is right."
    return f"{text}. The score is wrong, and the audit cannot tell."


def _to_try(folder: Path) -> list[str]:
    """Return commands that read the files."""
    path = {
        name: str(folder / f"{name}.csv") for name in (*SAVED, "ratings", "random", "train", "test")
    }
    runs = [word for name in SAVED for word in ("--run", path[name])]
    options = ["--judgments", path["test"], *runs, "--train", path["train"]]
    return [
        shlex.join(["unskew", "audit", path["ratings"], "--random", path["random"], "--quick"]),
        shlex.join(["unskew", "audit", *options, "--quick"]),
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
