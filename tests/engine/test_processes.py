"""Processes: they run no code of the working folder; what killed ones leave is removed."""

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

import unskew
from unskew.engine.files import reading, temporary_folder
from unskew.engine.process_pool import _read
from unskew.engine.store import StoreError
from unskew.engine.threads import python_beside
from unskew.errors import DataError

SOURCE = Path(unskew.__file__).parent.parent

SCRIPT = """
import sys
import unskew as us

def mine(train, rng):
    return us.recommend.Popularity().fit(train)

if __name__ == "__main__":
    rows = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 9], "rating": [5] * 6}
    systems = [us.recommend.Random(), us.experiment.Custom("mine", mine)]
    plan = us.Plan(us.splits.Random(folds=2), algorithms=systems,
                   metrics=["P@1"], relevance=us.Relevance(liked=4))
    print(us.run_plan(rows, plan, **{sys.argv[1]: eval(sys.argv[2])}).table().height)
"""


@pytest.fixture
def trap(tmp_path):
    """Return a working folder whose modules leave a file when they are run."""
    folder = tmp_path / "work"
    (folder / "unskew").mkdir(parents=True)
    for name in ("select.py", "selectors.py", "zlib.py", "polars.py", "unskew/__init__.py"):
        sprung = tmp_path / "sprung"
        (folder / name).write_text(f"open({str(sprung)!r}, 'a').write({name!r} + chr(10))\n")
    return folder


def is_sprung(trap):
    return (trap.parent / "sprung").exists()


OTHERS = [("workers", "2"), pytest.param("cluster", "'local:2'", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("setting", "value"), OTHERS)
def test_workers_run_no_code_of_the_working_folder(trap, tmp_path, setting, value):
    if setting == "cluster":
        pytest.importorskip("distributed")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script), setting, value],
        cwd=trap,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "4\n", done.stderr
    assert not is_sprung(trap), (tmp_path / "sprung").read_text()


def test_the_process_that_compiles_runs_no_code_of_the_working_folder(trap, monkeypatch):
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", str(SOURCE))
    with python_beside("json.tool"):
        time.sleep(1.0)
    with python_beside("unskew.engine.system"):
        time.sleep(1.0)
    assert not is_sprung(trap), (trap.parent / "sprung").read_text()


def test_workers_have_the_usual_path_again():
    """What a worker starts itself is not our business."""
    code = (
        "import os\n"
        "from unskew.engine.executor import Executor\n"
        "print([one.result for one in Executor(2).do(os.getenv, ['PYTHONSAFEPATH'] * 2)])\n"
        "print(os.getenv('PYTHONSAFEPATH'))\n"
    )
    for flags, expected in (([], "[None, None]\nNone\n"), (["-P"], "['1', '1']\nNone\n")):
        done = subprocess.run(
            [sys.executable, *flags, "-c", code],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout == expected, done.stderr


# Temporary folders


def test_a_temporary_folder_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with temporary_folder() as folder:
        (folder / "sub").mkdir()
        assert folder.parent == tmp_path
    assert not list(tmp_path.iterdir())


def test_what_killed_processes_left_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os, signal, sys, tempfile\n"
        "from unskew.engine.files import temporary_folder\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'much').write_text('x')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False, timeout=60)
    (left,) = tmp_path.glob("unskew-*")
    (tmp_path / "unskew-other").mkdir()  # nobody's, as far as can be told
    with temporary_folder() as living:
        assert left.exists()  # too young: it might just be in the making
        for mark in (left / ".in-use", living / ".in-use"):
            os.utime(mark, (time.time() - 100,) * 2)
        with temporary_folder():
            assert not left.exists()
            assert living.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["unskew-other"]


def plant(home):
    """Put what others could put into a shared folder under the names that are looked for there."""
    for name in ("pipe", "link", "folder", "open", "inside-link"):
        (home / f"unskew-{name}").mkdir(mode=0o700)
    os.mkfifo(home / "unskew-pipe" / ".in-use")
    (home / "unskew-link" / ".in-use").symlink_to(home / "precious")
    (home / "unskew-folder" / ".in-use").mkdir()
    (home / "unskew-open" / ".in-use").touch()
    (home / "unskew-open").chmod(0o755)
    os.mkfifo(home / "unskew-direct-pipe")
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "elsewhere" / ".in-use").touch()
    (home / "unskew-direct-link").symlink_to(home / "elsewhere")
    (home / "unskew-plain").touch()
    (home / "precious").touch()
    for path in (home / "precious", home / "elsewhere" / ".in-use", home / "unskew-open/.in-use"):
        os.utime(path, (time.time() - 1000,) * 2)
    return {str(path) for path in home.rglob("*")}


PLANTED = """
from unskew.engine.process_pool import ProcessPool
if __name__ == "__main__":
    with ProcessPool(2) as pool:
        print(sorted(done.result for done in pool.do(abs, [-1, -2, -3])))
"""


def test_what_others_plant_in_a_shared_folder_is_left_alone(tmp_path, tmp_path_factory):
    """A pipe in the way would block a plain `open` for ever."""
    before = plant(tmp_path)
    script = tmp_path_factory.mktemp("script") / "planted.py"
    script.write_text(PLANTED)
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.strip() == "[1, 2, 3]", done.stderr
    assert {str(path) for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("change", ["open", "link", "pipe"])
def test_a_worker_reads_tasks_from_its_own_folder_alone(tmp_path, change):
    """Tasks are pickles: a folder that another user made in its place could run anything."""
    home = tmp_path / "unskew-x"
    home.mkdir(mode=0o700)
    (home / "tasks").write_bytes(pickle.dumps((len, [""])))
    assert _read(str(home / "tasks")) == (len, [""])
    if change == "open":
        home.chmod(0o777)
    else:
        (home / "tasks").rename(tmp_path / "tasks")
        if change == "link":
            (home / "tasks").symlink_to(tmp_path / "tasks")
        else:
            os.mkfifo(home / "tasks")
    with pytest.raises(StoreError, match="cannot read its tasks"):
        _read(str(home / "tasks"))


# Little room

LIMITED = """
import resource, sys
import numpy, polars, unskew.errors
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20),) * 2)
try:
    import unskew.engine.compiler
except unskew.errors.UnskewError as problem:
    print(problem)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs the size of a process")
def test_a_library_that_finds_no_room_is_not_called_missing():
    done = subprocess.run(
        [sys.executable, "-c", LIMITED],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "the compiler cannot be loaded" in done.stdout, done.stderr
    assert "MiB of addresses (ulimit -v)" in done.stdout


def test_a_file_is_not_called_damaged_under_a_limit(tmp_path, monkeypatch):
    def fail():
        with reading(tmp_path / "r.csv"):
            raise pl.exceptions.PanicException("Resource temporarily unavailable")

    with pytest.raises(DataError, match=r"r\.csv: the file is damaged \(Resource.*\)$"):
        fail()
    monkeypatch.setattr("resource.getrlimit", lambda _: (900 << 20, 900 << 20))
    with pytest.raises(DataError, match=r"cannot be read .* only 900 MiB of addresses"):
        fail()


# Forked processes

FORKED = """
import os, sys, time
import unskew as us

rows = {"user": [1, 1, 2, 2, 3, 3], "item": [7, 8, 7, 9, 8, 9], "rating": [5, 4, 3, 2, 5, 1]}
lists = {"mine": {1: [7, 9], 2: [9, 8], 3: [8, 7]}}
text = {**rows, "user": ["a", "a", "b", "b", "c", "c"]}
ratings = us.read_ratings(rows)
plan = us.Plan(us.splits.Random(), algorithms=[us.recommend.Popularity()], metrics=["P@1"])

def use():
    us.read_ratings(text)
    return us.evaluate(ratings, lists, ["P@1", "nDCG@2"], liked=4)

ACTIONS = {
    "read_ratings": lambda: us.read_ratings(text),
    "read_run": lambda: us.read_run({**text, "score": rows["rating"]}),
    "evaluate": use,
    "fit": lambda: us.recommend.UserKNN(k=2).fit(ratings),
    "split": lambda: us.splits.Random().split(ratings),
    "run": lambda: us.run_plan(ratings, plan),
    "compare": lambda: us.compare(scores, "P@1"),
    "mean": lambda: scores.means(),
    "save": lambda: scores.save(sys.argv[2]),
    "audit": lambda: us.audit(ratings, liked=4, plan="quick"),
    "describe": lambda: us.bias.describe_bias(ratings, liked=4),
    "world": lambda: us.world("shop"),
}

def in_child(action):
    child = os.fork()
    if not child:
        try:
            action()
            os._exit(0)
        except us.errors.ForkError as problem:
            os._exit(3 if "get_context('spawn')" in str(problem) else 4)
        except BaseException as problem:
            os.write(2, repr(problem).encode())
            os._exit(5)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return "hangs"

if sys.argv[1] == "before":
    print(in_child(use))
else:
    import polars as pl
    scores = use()
    pl.DataFrame({"a": [1, 2]}).group_by("a").len()
    found = {name: in_child(action) for name, action in ACTIONS.items()}
    print(found["evaluate"], {name: code for name, code in found.items() if code not in (0, 3)})
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs the threads' names")
@pytest.mark.parametrize(("when", "expected"), [("before", "0"), ("after", "3 {}")])
def test_a_fork_after_use_is_refused_and_never_hangs(tmp_path, when, expected):
    done = subprocess.run(
        [sys.executable, "-c", FORKED, when, str(tmp_path / "saved")],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.stdout == f"{expected}\n", done.stderr
