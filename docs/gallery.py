"""Make the reports of docs/gallery.md and their pictures: python docs/gallery.py FOLDER.

Runs the commands of the page. A report that is newer than the source of unskew is left as it is.
"""

import shutil
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from outputs import examples, run_command

import unskew
from unskew.errors import UnskewError
from unskew.report.charts import Figure

PAGE = Path(__file__).with_suffix(".md")
SIZE = (1440, 900)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def commands() -> dict[str, list[list[str]]]:
    """Return the commands of the page by the report that they write, in order."""
    by_report: dict[str, list[list[str]]] = {}
    for example in examples(PAGE.read_text()):
        words = example.commands()
        if words:
            by_report[Path(words[-1][words[-1].index("-o") + 1]).stem] = words
    return by_report


def make(folder: Path) -> None:
    """Write every report and its picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as here, chdir(here):
        for name, words in commands().items():
            report = folder / f"{name}.html"
            if name != "demo" and is_new(report):
                continue
            try:
                for one in words:
                    run_command(one)
            except (RuntimeError, UnskewError) as problem:
                print(f"gallery: {name} is left out: {problem}".splitlines()[0])
                say(f"not made here: {name} needs data that were not found", folder / f"{name}.png")
                continue
            shutil.copyfile(f"{name}.html", report)
            picture(report, folder / f"{name}.png")


def is_new(report: Path) -> bool:
    """Tell whether a report is newer than every module that could change it."""
    sources = Path(unskew.__file__).parent.rglob("*.*")
    newest = max(path.stat().st_mtime for path in sources if path.suffix in (".py", ".css", ".js"))
    return report.exists() and report.stat().st_mtime > newest


def picture(report: Path, target: Path) -> None:
    """Draw the first screen of a report; without a browser, a line of text instead."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"gallery: no picture of {report.name}: chromium is not installed")
        say(f"{report.name}: open the report (no browser was there to draw it)", target)
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    view = [f"--window-size={SIZE[0]},{SIZE[1]}", "--virtual-time-budget=5000"]
    command = [browser, *options, *view, f"--screenshot={target}", report.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def say(text: str, target: Path) -> None:
    """Write a picture that holds a line of text."""
    spec = {
        "data": {"values": [{"text": text}]},
        "mark": {"type": "text", "fontSize": 16},
        "encoding": {"text": {"field": "text", "type": "nominal"}},
        "width": 680,
        "height": 60,
    }
    Figure(text, spec).save(target)


if __name__ == "__main__":
    make(Path(sys.argv[1]).resolve())
