"""What differs between operating systems: locks, processes; work without what Windows lacks."""

import os
import subprocess
import sys
import textwrap

import pytest

from unskew.engine import system
from unskew.engine.files import is_abandoned

# Hides what Python does not have on Windows, then evaluates, writes and removes as a user does.
ON_WINDOWS = textwrap.dedent("""
    import os, platform, signal, sys, tempfile, types
    import altair, lazy_loader, numba, numpy, polars, threadpoolctl
    import concurrent.futures.process, multiprocessing.connection, subprocess
    platform.uname()  # kept; asks the system, which is not Windows
    locked = []
    def locking(number, kind, size):
        if kind == 2 and number in locked:
            raise OSError("locked")
        locked.append(number)
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2)
    for module, names in {
        os: ("fork", "register_at_fork", "uname", "sched_getaffinity", "getuid", "geteuid"),
        signal: ("pthread_sigmask", "SIGKILL", "SIGHUP"),
    }.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    def kill(*_):
        raise SystemExit("os.kill on Windows ends or interrupts a process")
    os.kill = kill
    sys.platform = "win32"

    import unskew as us
    from unskew.engine.files import is_abandoned, temporary_folder
    from unskew.errors import address_limit

    test = {"user": ["a", "a", "b"], "item": ["x", "y", "z"], "rating": [5, 1, 4]}
    scores = us.evaluate(test, {"mine": {"a": ["y", "x"], "b": ["z"]}}, "P@1", liked=4)
    assert scores.means() == {"mine": {"P@1": 0.5}}
    with tempfile.TemporaryDirectory() as folder:
        scores.save(folder)
        assert us.Scores.load(folder).means() == scores.means()
        part = us.engine.files._beside(us.engine.files.Path(folder) / "x")
        part.touch()
        assert not is_abandoned(part)
        assert is_abandoned(part, hours=-1)
    with temporary_folder() as folder:
        assert locked
    assert not folder.exists()
    with us.engine.system.without_interrupts():
        pass
    assert address_limit() == ""
    print("done")
""")


@pytest.mark.skipif(os.name == "nt", reason="Windows has what Windows has")
def test_nothing_needs_what_windows_lacks(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS],
        cwd=tmp_path,
        # Its locks keep nobody out: folders that others use would look abandoned.
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "done", done.stderr


def test_a_lock_keeps_others_out(tmp_path):
    path = tmp_path / "mark"
    with path.open("wb") as first, path.open("rb") as second:
        system.lock(first, wait=True)
        with pytest.raises(OSError, match=r"."):
            system.lock(second, wait=False)
    with path.open("rb") as third:
        system.lock(third, wait=False)


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot be asked")
def test_a_process_lives_or_does_not(tmp_path):
    assert system.is_running(os.getpid())
    assert system.is_running(1)  # another user's, unless the tests run as root
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert system.is_running(ended.pid) is False


def test_a_part_of_another_machine_is_abandoned_with_age(tmp_path):
    part = tmp_path / f".x.00000000-{os.getpid()}-1234.part"
    part.touch()
    assert not is_abandoned(part)
    assert is_abandoned(part, hours=-1)
