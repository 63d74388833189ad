"""From a wheel to a report: install into an empty environment, one command on an own CSV file.

Needs a source of packages: where pip cannot install, the tests skip and say so.
"""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unskew import world
from unskew.engine.files import write_table

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


def call(*words, cwd, environment=None):
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=900,
        env=environment, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with an environment that holds the built wheel and nothing of this tree."""
    folder = tmp_path_factory.mktemp("newcomer")
    began = time.monotonic()
    code, _, err = call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT,
                        ROOT / "studies", cwd=folder)  # fmt: skip
    if code:
        pytest.skip(f"pip cannot build a wheel here: {err[-300:]}")
    (wheel,) = folder.glob("unskew-*.whl")
    call(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    code, _, err = call(folder / "env/bin/python", "-m", "pip", "install", "-q", wheel, "-c",
                        ROOT / "constraints.txt", cwd=folder)  # fmt: skip
    if code:
        pytest.skip(f"pip cannot install packages here: {err[-300:]}")
    print(f"\nwheel, environment, install: {time.monotonic() - began:.0f} s")
    return folder


@pytest.fixture(scope="module")
def unskew(home):
    """Return what calls the installed command in a folder of its own, without this tree's code."""
    work = home / "work"
    work.mkdir()
    shop = world("shop", users=300, items=120, seed=3)
    write_table(shop.ratings.to_polars(), work / "my.csv", "csv")
    settings = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}

    def run(*words):
        began = time.monotonic()
        code, out, err = call(home / "env/bin/unskew", *words, cwd=work, environment=settings)
        print(f"unskew {' '.join(map(str, words))}: {time.monotonic() - began:.0f} s")
        assert code == 0, err
        return out, err

    run.work = work
    return run


def test_own_ratings_to_a_report(unskew):
    for _ in range(2):  # cold: kernels are compiled; warm
        out, err = unskew("audit", "my.csv", "--quick", "-o", "report.html")
    assert re.search(r"highest|[Ss]ettled", out.splitlines()[0])
    assert "the report is in report.html; open it in a browser: file://" in err
    page = (unskew.work / "report.html").read_text(encoding="utf-8")
    assert "<title>" in page
    tags = re.sub(r"(<script\b[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)  # not code
    loads = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?([^\"' >]+)", tags)
    assert [one for one in loads if not one.startswith(("data:", "#"))] == []


def test_help_starts_with_what_to_try_first(unskew):
    out, _ = unskew("--help")
    panels = re.findall(r"╭─ ([\w ]+?) ─", out)
    assert panels[panels.index("Start here")] == "Start here"
    assert panels[0] in ("Options", "Start here")
    assert panels.index("Start here") <= 1
    assert len(panels) == 2
    for name in ("demo", "audit", "evaluate", "compare"):
        assert f" {name} " in out
    assert "unskew --help-all" in out


def test_own_lists_two_rankers_and_a_lesson(unskew):
    """Lists of two systems: scores, comparison, audit; a world to teach with."""
    unskew("split", "my.csv", "--protocol", "random", "--test", "0.2", "-o", "parts")
    for name in ("popularity", "item-knn"):
        unskew("recommend", "--train", "parts/train.parquet", "--test", "parts/test.parquet",
               "--algorithm", name, "-o", f"{name}.csv")  # fmt: skip
    lists = ("-j", "parts/test.parquet", "-r", "popularity.csv", "-r", "item-knn.csv")
    train = ("--train", "parts/train.parquet")
    out, _ = unskew("evaluate", *lists, *train, "-m", "P@10", "--liked", "4")
    assert "popularity" in out
    assert "item-knn" in out
    unskew("compare", *lists, *train, "-m", "P@10", "--liked", "4")
    out, _ = unskew("audit", *lists, *train, "--quick", "--liked", "4", "-o", "lists.html")
    assert re.search(r"highest|[Ss]ettled", out.splitlines()[0])
    unskew("world", "shop", "-o", "lesson")
    assert (unskew.work / "lesson").is_dir()


def test_the_studies_are_installed_beside_it(home, unskew):
    """The last test here: the environment has the studies after it."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"}
    command = (home / "env/bin/unskew", "study", "list")
    code, _, err = call(*command, cwd=unskew.work, environment=env)
    assert code == 1
    assert "pip install unskew-studies" in err
    (wheel,) = home.glob("unskew_studies-*.whl")
    code, _, err = call(home / "env/bin/python", "-m", "pip", "install", "-q", "--no-index", wheel,
                        cwd=home)  # fmt: skip
    assert code == 0, err
    out, _ = unskew("study", "list")
    assert "mena2021" in out
    unskew("study", "run", "mena2021", "--stand-in", "--claims", "3-40", "-o", "study.html")
    unskew("algorithms", "librec-slim")
