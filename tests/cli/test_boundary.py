"""Failures on the command line: one line, a remedy, an exit code, and nothing half-written."""

import errno
import io
import os
import re
import stat
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

from unskew import world
from unskew.cli import app, main
from unskew.cli.command import PANELS
from unskew.engine.files import replacing, replacing_folder, write_table
from unskew.errors import DataError, OutputError, SettingError
from unskew.worlds.save_world import save_world


def fail_with(problem, monkeypatch):
    """Let `unskew metrics P` fail."""

    def fail(_):
        raise problem

    monkeypatch.setattr("unskew.metrics.names.parse", fail)


FAILURES = [
    (MemoryError("Unable to allocate 75 GiB"), 1, "not enough memory (Unable to allocate 75 GiB)"),
    (OverflowError("int too large"), 1, "a number is too large"),
    (pl.exceptions.ComputeError("bad\ntable"), 1, "a table cannot be read or written (bad table)"),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), 1, "save it as UTF-8"),
    (EOFError("ended before the end-of-stream marker"), 1, "damaged or cut short"),
    (zlib.error("invalid block"), 1, "damaged or cut short"),
    (OSError(errno.ENOSPC, "No space", "a.csv"), 1, "a.csv: the disk is full: free some space"),
    (PermissionError(errno.EACCES, "Denied", "a.csv"), 1, "a.csv: permission is missing"),
    (IsADirectoryError(errno.EISDIR, "Is", "out"), 1, "out: this is a folder: name a file"),
    (OSError(errno.ENAMETOOLONG, "Long", "aaa"), 1, "aaa: the name is too long"),
    (FileNotFoundError(errno.ENOENT, "None", "a.csv"), 1, "a.csv: there is no such file"),
    (DataError("row 3 is wrong"), 1, "error: row 3 is wrong"),
    (SettingError("depth must be more"), 2, "error: depth must be more"),
    (KeyboardInterrupt(), 130, "Stopped."),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "code", "says"), FAILURES)
def test_one_line_and_an_exit_code(call, monkeypatch, problem, code, says):
    fail_with(problem, monkeypatch)
    got, out, err = call("metrics", "P")
    assert (got, out) == (code, "")
    assert says in err
    assert err.count("\n") == 1


def test_debug_shows_where_it_came_from(call, monkeypatch):
    fail_with(MemoryError(), monkeypatch)
    monkeypatch.setenv("UNSKEW_DEBUG", "0")
    assert "Traceback" not in call("metrics", "P")[2]
    monkeypatch.setenv("UNSKEW_DEBUG", "1")
    assert "Traceback" in call("metrics", "P")[2]


def test_a_defect_of_ours_is_called_one(call, monkeypatch):
    fail_with(TypeError("unsupported operand"), monkeypatch)
    code, _, err = call("metrics", "P")
    assert code == 1
    assert "Traceback" in err
    assert err.endswith(
        "error: this is a defect of unskew; please report it with the lines above\n"
    )


def test_a_stopped_command_says_what_is_kept(call, monkeypatch, tmp_path):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("unskew.cli.inputs.load_data", stop)
    assert call("bias", "describe", "x.csv")[::2] == (130, "Stopped.\n")  # it has no store
    code, _, err = call("bias", "null", "x.csv")
    assert code == 130
    assert err == "Stopped. Nothing is stored: add --store FOLDER to be able to go on.\n"
    kept = tmp_path / "kept"
    code, _, err = call("bias", "null", "x.csv", "--store", kept)
    assert code == 130
    assert err == (
        f"Stopped before anything was stored in {kept}: run the same command again to go on.\n"
    )
    kept.mkdir()
    assert "What is finished is stored in" in call("bias", "null", "x.csv", "--store", kept)[2]


def test_standard_output_on_a_full_disk():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "unskew", "metrics"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=120)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == (
        "error: standard output or a temporary file: cannot be written: the disk is full: free "
        "some space, or write to another disk\n"
    )


def test_a_reader_that_leaves():
    reads, writes = os.pipe()
    os.close(reads)
    done = subprocess.run([sys.executable, "-m", "unskew", "metrics"], stdout=writes,
                          stderr=subprocess.PIPE, text=True, timeout=120)  # fmt: skip
    os.close(writes)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_world_on_a_full_disk_leaves_nothing(tmp_path, tmp_path_factory, kind):
    """With files of at most 8 KiB the truth fails after the ratings were written."""
    world_command = f"{sys.executable} -m unskew world null --users 60 --items 60 --ratings 60"
    options = f"--random 0 --format {kind} -o"
    # Compiled kernels go to files too: the first run writes them, with no limit on their size.
    subprocess.run(f"{world_command} {options} {tmp_path_factory.mktemp('warm') / 'world'}",
                   shell=True, check=True, capture_output=True, timeout=120)  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 8; exec {world_command} {options} {tmp_path / 'world'}"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert re.fullmatch(r"error: \S+: cannot be written: the file would be larger.*\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere addresses cannot be limited")
def test_few_addresses(tmp_path):
    """What libraries reserve for threads that do nothing does not stop a small command."""
    test, run = tmp_path / "test.csv", tmp_path / "run.csv"
    test.write_text("user,item,rating\n1,2,5\n1,3,1\n2,3,4\n")
    run.write_text("user,item,rank\n1,2,1\n1,3,2\n2,2,1\n")
    command = (
        f"{sys.executable} -m unskew evaluate -j {test} -r {run} -m P@2 --liked 4 --format csv"
    )

    def run_with(mebibytes):
        script = f"ulimit -v {mebibytes << 10}; exec {command}"
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)

    done = run_with(800)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1].startswith("run,P@2,0.25,")
    refused = run_with(400)
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        "error: 640 MiB are needed to start; this process may use only 400 MiB of addresses"
    )


def test_a_failure_leaves_the_older_folder_alone(tmp_path, monkeypatch):
    small = world("null", users=20, items=10)
    home = tmp_path / "world"
    save_world(small, home)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    monkeypatch.setattr("unskew.worlds.save_world._pairs", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_world(small, home, force=True)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["world"]


def test_a_folder_that_is_there_keeps_what_else_it_holds(tmp_path):
    (tmp_path / "out" / "in").mkdir(parents=True)
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (tmp_path / "out" / "in" / "a.txt").write_text("old")
    with replacing_folder(tmp_path / "out") as part:
        (part / "in").mkdir()
        (part / "in" / "a.txt").write_text("new")
        (part / "card.json").write_text("{}")
    content = {str(path.relative_to(tmp_path)): path.read_text()
               for path in tmp_path.rglob("*") if path.is_file()}  # fmt: skip
    assert content == {"out/mine.txt": "mine", "out/in/a.txt": "new", "out/card.json": "{}"}


OUTPUTS = {
    "recommend": ("recommend", "--train", "train.csv", "-o", "{}.csv"),
    "per-user": ("evaluate", "-j", "test.csv", "-r", "mine.csv", "--per-user", "{}.csv"),
    "split": ("split", "test.csv", "-o", "{}"),
    "world": ("world", "null", "--users", "20", "--items", "10", "-o", "{}"),
    "figure": ("bias", "pairs", "test.csv", "--liked", "4", "--figure", "{}.svg"),
}  # fmt: skip


@pytest.mark.parametrize("arguments", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize(
    ("place", "says"),
    [
        ("train.csv/x", "folder"),  # under a file
        ("/proc/nowhere/x", "cannot be written: there is no such file or folder"),
        ("a" * 300, "the name is too long"),
        ("a" * 245, ""),  # as long as a file's name may be
    ],
)
def test_places_that_cannot_be_written(files, call, monkeypatch, arguments, place, says):
    monkeypatch.chdir(files)
    before = sorted(files.iterdir())
    code, _, err = call(*(part.format(place) for part in arguments))
    if not says:
        assert code == 0, err
        return
    assert code in (1, 2)
    assert says in err
    assert "Traceback" not in err
    assert ".part" not in err
    assert sorted(files.iterdir()) == before


def test_a_folder_where_a_file_should_go(files, call):
    (files / "there.csv").mkdir()
    code, _, err = call("recommend", "--train", files / "train.csv", "-o", files / "there.csv")
    assert code in (1, 2)
    assert "folder" in err
    with pytest.raises(OutputError, match="this is a folder: name a file") as failed:
        write_table(pl.DataFrame({"a": [1]}), files / "there.csv", "csv")
    assert failed.value.errno == errno.EISDIR


def test_links_and_pipes_are_written_to_and_stay(tmp_path):
    frame = pl.DataFrame({"a": [1, 2]})
    (tmp_path / "link.csv").symlink_to(tmp_path / "file.csv")
    write_table(frame, tmp_path / "link.csv", "csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "file.csv").read_text() == "a\n1\n2\n"
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    with replacing(tmp_path / "pipe") as part:
        part.write_text("through")
    reader.join(timeout=10)
    assert read == ["through"]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


# Encodings

PRINTS = [
    ["metrics"], ["metrics", "bpref"], ["algorithms"], ["algorithms", "wrmf"], ["world", "--list"],
    ["data", "list"], ["study", "list"], ["study", "list", "mena2021"], ["--help"],
    *[[*name, "--help"] for name in (["evaluate"], ["split"], ["study", "run"], ["bias", "null"])],
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("arguments", PRINTS, ids=" ".join)
def test_every_encoding_will_do(monkeypatch, encoding, arguments):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    with pytest.raises(SystemExit) as done:
        main(arguments)
    assert not done.value.code
    assert "\\u" not in streams[0].buffer.getvalue().decode(encoding)


def test_results_in_every_encoding(files, monkeypatch):
    (files / "test.csv").write_text("user,item,rating\n1,ä,5\n1,Ω,2\n2,😀,4\n", encoding="utf-8")
    (files / "mine.csv").write_text("user,item,rank\n1,ä,1\n1,Ω,2\n2,😀,1\n", encoding="utf-8")
    monkeypatch.chdir(files)
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    with pytest.raises(SystemExit) as done:
        main(["compare", "-j", "test.csv", "-r", "τ=mine.csv", "-r", "😀=mine.csv", "-m", "P@1"])
    assert not done.value.code
    printed = stream.buffer.getvalue().decode("ascii")
    assert "tau" in printed
    assert "\\ud83d\\ude00" in printed


def test_the_plainest_locale():
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-m", "unskew", "metrics"], capture_output=True,
                          text=True, env={**os.environ, **plain}, timeout=120)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


def test_the_list_of_commands_starts_where_to_start(call):
    shown = call("--help-all")[1]
    places = [shown.index(f"─ {panel} ─") for panel in PANELS]
    assert places == sorted(places)
    assert list(get_command(app).list_commands(None))[:3] == ["demo", "audit", "evaluate"]
