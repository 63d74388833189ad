"""`unskew demo`: the main job on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unskew.cli.console import output


def demo(
    save: Annotated[
        Path | None,
        typer.Option("--save", "-o", help="Also write the sample's files into this folder."),
    ] = None,
) -> None:
    """Judge three built-in sample systems.

    [bold]Examples[/bold]

      unskew demo

      unskew demo --save sample/
    """
    from unskew.data.sample import sample
    from unskew.evaluation import evaluate
    from unskew.files import write_table
    from unskew.report.tables import as_rich

    data = sample()
    names = ["P@10", "nDCG@10", "bpref", "anti-P@10", "Judged@10", "ARP@10"]
    scores = evaluate(data.test, data.runs, names, liked=4, train=data.train)
    print(f"A simulated shop: {len(data.train):,} training and {len(data.test):,} test ratings.")
    print("Three systems: random, popular (most rated first) and personal (each user's taste).")
    output().print(as_rich(scores))
    for line in scores.footer():
        print(line)
    print(
        "\nanti-P counts recommendations that users dislike, Judged the share of the list that "
        "anyone rated,\nARP how popular the recommended items are: a popular system is judged "
        "more, so it scores more of both,\ngood and bad. More: unskew evaluate --help"
    )
    if save is not None:
        files = {"train": data.train, "test": data.test, **data.runs}
        for name, frame in files.items():
            write_table(frame, save / f"{name}.csv", "csv")
        print(f"\nThe sample is in {save}. Try:")
        print(
            f"unskew evaluate --judgments {save / 'test.csv'} --run {save / 'popular.csv'} "
            f"--run {save / 'personal.csv'} --liked 4"
        )
