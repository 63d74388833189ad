"""Make the figures of a study small enough to keep: python docs/shrink.py FROM TO.

Takes every SVG of a folder, rounds coordinates to a tenth of a pixel and leaves out the labels of
single marks (the pages have a text for each figure). What is still too large becomes a PNG.
"""

import re
import shutil
import sys
from pathlib import Path

import vl_convert

LARGEST = 150_000
"""Bytes of a figure."""


def shrunk(text: str) -> str:
    """Return an SVG with short numbers and without labels of marks."""
    text = re.sub(r' aria-[a-z]+="[^"]*"| role="[^"]*"', "", text)
    return re.sub(r"-?\d+\.\d{2,}", lambda number: f"{float(number[0]):.1f}", text)


def shrink(source: Path, target: Path) -> None:
    """Write all figures of a folder into another one."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for figure in sorted(source.glob("*.svg")):
        text = shrunk(figure.read_text())
        if len(text) <= LARGEST:
            (target / figure.name).write_text(text)
        else:
            small = vl_convert.svg_to_png(figure.read_text(), scale=0.85)
            (target / f"{figure.stem}.png").write_bytes(small)


if __name__ == "__main__":
    shrink(Path(sys.argv[1]), Path(sys.argv[2]))
