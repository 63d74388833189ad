"""The store: atomic, checked, shared; and what it says of what is damaged, foreign or full."""

import errno
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.plans import WORLD, results, world
from unskew import DataError, Plan
from unskew.data.dataset import data_key, put_data, stored_ratings
from unskew.engine.executor import Executor
from unskew.engine.files import is_abandoned, replacing
from unskew.engine.store import MARK, Store, StoreError, digest_of

TABLE = pl.DataFrame({"depth": [1, 2, 3], "P@5": [0.5, float("nan"), 0.0]})
KEY = "ab" * 20
PLAN = Plan(
    us.splits.Random(folds=2),
    us.targets.TestItems(),
    [us.recommend.Popularity(), us.recommend.Random()],
    metrics=["P@5"],
    seed=1,
)


@pytest.fixture
def store(tmp_path):
    return Store.open(tmp_path / "store")


def leave_part(folder, name=".x.result"):
    """Leave what a killed writer leaves: half of a file under another name."""
    folder.mkdir(parents=True, exist_ok=True)
    code = (
        "import os, signal, sys\n"
        "from unskew.engine.files import replacing\n"
        "with replacing(sys.argv[1]) as part:\n"
        "    part.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(folder / name)], check=False, timeout=60)
    (part,) = folder.glob("*.part")
    return part


# Results


def test_a_result_comes_back_with_its_card(store):
    store.put(KEY, TABLE, {"system": "mine", "values": [1, None], "number": np.int64(3)})
    table, card = store.get(KEY)
    assert table.equals(TABLE)
    assert card == {"system": "mine", "values": [1, None], "number": 3}
    assert store.has(KEY)
    assert not store.has("cd" * 20)
    with pytest.raises(StoreError, match=r"cd\.result: this result does not exist, or no longer"):
        store.get("cd" * 20)
    with pytest.raises(KeyError):
        store.get("cd" * 20)
    (entry,) = store.entries()
    assert (entry.key, entry.card) == (KEY, card)


def test_the_same_result_has_the_same_bytes(store):
    store.put(KEY, TABLE, {"b": 1, "a": 2})
    first = store.path(KEY).read_bytes()
    store.put(KEY, TABLE, {"a": 2, "b": 1})
    assert store.path(KEY).read_bytes() == first


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:-1],
        lambda content: content[:20],
        lambda content: b"",
        lambda content: b"something else\n\n\n",
        lambda content: content[:-3] + b"\x00\x00\x00",
        lambda content: content + b"more",
        lambda content: content.replace(b'"card"', b'"kard"'),
        lambda content: content.replace(b"unskew result 2", b"unskew result 1"),
        lambda content: b"unskew result 2\n[1, 2]\n" + content,
    ],
)
def test_damaged_results_are_found_named_and_set_aside(store, spoil):
    store.put(KEY, TABLE, {})
    path = store.path(KEY)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(StoreError, match=f"{KEY}.result: damaged or cut short"):
        store.get(KEY)
    assert [KEY in line for line in store.verify()] == [True]
    assert not list(store.entries())
    assert not store.has(KEY)
    assert not path.exists()
    assert "set aside as damaged" in store.verify()[0]
    store.put(KEY, TABLE, {})
    assert store.has(KEY)
    assert store.gc() == 1
    assert store.verify() == []


def flip(path, rng):
    """Flip one bit of a file, and return what was in it before."""
    content = path.read_bytes()
    at, bit = int(rng.integers(len(content))), int(rng.integers(8))
    spoilt = bytearray(content)
    spoilt[at] ^= 1 << bit
    path.write_bytes(spoilt)
    return content


def test_every_flipped_bit_is_found(tmp_path):
    """In every file of a store: results with their cards, ratings, failures, the mark."""
    home = tmp_path / "store"
    made = Plan(
        us.splits.LeaveOut(1),
        us.targets.TestItems(),
        [us.recommend.Popularity()],
        metrics=["P@5", "Coverage@5"],
    )
    us.run_plan(WORLD, made, store=home)
    store = Store.open(home)
    store.put_failure(KEY, "it broke")
    assert store.verify() == []
    files = [path for path in home.rglob("*") if path.is_file()]
    assert len(files) == 8  # two results, four of the ratings, a failure, the mark
    rng = np.random.default_rng(5)
    for path in files:
        for _ in range(60):
            before = flip(path, rng)
            if path.name == MARK:
                with pytest.raises(StoreError):
                    Store.open(home)
            else:
                assert [str(path.parent) in line for line in store.verify()] == [True], path
            path.write_bytes(before)
    assert store.verify() == []


def test_a_changed_card_is_found(store):
    """Metrics of a whole run lie in the card: it is read, so it is covered by the digest."""
    store.put(KEY, TABLE, {"aggregates": {"Coverage@5": 0.25}})
    path = store.path(KEY)
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.75"))
    assert len(store.verify()) == 1
    with pytest.raises(StoreError, match="damaged"):
        store.get(KEY)


def test_a_result_under_a_wrong_name_is_not_taken(store):
    store.put(KEY, TABLE, {})
    other = store.path("ab" + "cd" * 19)
    other.write_bytes(store.path(KEY).read_bytes())
    assert not store.has(other.stem)
    assert store.has(KEY)


def test_a_folder_in_the_place_of_a_result(store):
    store.path(KEY).mkdir(parents=True)
    assert not store.has(KEY)
    store.put(KEY, TABLE, {})
    assert store.has(KEY)


def test_what_killed_writers_leave_is_not_read(store):
    store.put(KEY, TABLE, {})
    parts = [
        leave_part(store.path(KEY).parent, store.path(KEY).name),
        leave_part(store.home / "data" / "x", "ratings.arrow"),
    ]
    foreign = store.home / "results" / "notes.txt"
    foreign.write_text("mine")
    assert store.has(KEY)
    assert [entry.key for entry in store.entries()] == [KEY]
    wrong = store.verify()
    assert len(wrong) == 3
    for part in parts:
        assert f"{part}: left by a stopped writer; unskew store gc removes it" in wrong
    assert f"{foreign}: does not belong to the store and is ignored" in wrong
    assert store.gc() == 2
    assert not any(part.exists() for part in parts)
    assert foreign.exists()  # nobody's leftovers but our own are removed
    assert store.has(KEY)


def test_gc_leaves_living_writers_alone(store):
    with replacing(store.path(KEY)) as part:
        part.write_text("so far")
        assert not is_abandoned(part)
        assert store.gc() == 0
        assert store.verify() == []
    # Of another machine one cannot know; only what is old is gone for good.
    far = part.with_name(".x.result.00000000-1-00000000.part")
    far.write_text("")
    assert not is_abandoned(far)
    os.utime(far, (time.time() - 1e6,) * 2)
    assert is_abandoned(far)
    assert is_abandoned(Path("something.part"))


def test_writers_have_names_of_their_own(tmp_path):
    """Two machines may have processes of one number: they must not share a temporary file."""
    with replacing(tmp_path / "x") as one, replacing(tmp_path / "x") as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert (tmp_path / "x").read_text() == "one"
    assert len(list(tmp_path.iterdir())) == 1


def test_many_writers_of_one_key(store):
    wide = pl.DataFrame({"x": np.arange(20_000)})
    seen = []

    def work():
        for _ in range(20):
            store.put(KEY, wide, {})
            seen.append(store.get(KEY)[0].equals(wide))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert all(seen)
    assert len(seen) == 80
    assert store.verify() == []


# The folder


def test_opening(tmp_path):
    home = tmp_path / "deep" / "store"
    assert Store.open(home) == Store.open(str(home))
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden").write_text("")
    Store.open(tmp_path / "empty")
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("x")
    for wrong in ("file", "folder"):
        with pytest.raises(StoreError, match="is not a store and not empty: name a new folder"):
            Store.open(tmp_path / wrong)
    assert sorted(path.name for path in (tmp_path / "folder").iterdir()) == ["thesis.tex"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", "\x00"])
def test_unreadable_marks(store, text):
    (store.home / MARK).write_text(text)
    with pytest.raises(StoreError, match="cannot be read"):
        Store.open(store.home)


def test_another_format(store):
    (store.home / MARK).write_text(json.dumps({"format": 99}))
    with pytest.raises(StoreError, match="a store of format 99, but this version reads 2"):
        Store.open(store.home)


def test_opened_by_two_at_once(tmp_path, monkeypatch):
    """The other one makes the store between our two looks at it."""
    home = tmp_path / "store"
    real = Path.exists
    looks = []

    def exists(self):
        if self.name == MARK and not looks:
            looks.append(self)
            Store(home).put(KEY, TABLE, {})
            (home / MARK).write_text('{"format": 2}')
            return False
        return real(self)

    monkeypatch.setattr(Path, "exists", exists)
    assert Store.open(home).has(KEY)
    assert looks


# Full and read-only


@pytest.mark.parametrize("where", ["fsync", "replace", "write"])
def test_disk_full(store, monkeypatch, where):
    store.put(KEY, TABLE, {"first": True})
    before = store.path(KEY).read_bytes()

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    elif where == "replace":
        monkeypatch.setattr(Path, "replace", full)
    else:
        monkeypatch.setattr(Path, "open", full)
    for do in (
        lambda: store.put(KEY, TABLE, {}),
        lambda: store.put("cd" * 20, TABLE, {}),
        lambda: put_data(store, WORLD),
    ):
        with pytest.raises(StoreError, match=r"No space left.*make room and run again; earlier"):
            do()
    monkeypatch.undo()
    assert store.path(KEY).read_bytes() == before
    assert store.verify() == []
    assert not list(store.home.rglob("*.part"))
    assert stored_ratings(store, put_data(store, WORLD)).fingerprint == WORLD.fingerprint


def test_disk_full_in_a_run_is_not_remembered_as_a_failure(tmp_path, monkeypatch):
    real, calls = os.fsync, []

    def sometimes(descriptor):
        calls.append(descriptor)
        if len(calls) > 7:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sometimes)
    for keep_going in (False, True):
        with pytest.raises(StoreError, match="make room and run again"):
            us.run_plan(WORLD, PLAN, store=tmp_path / "store", keep_going=keep_going)
    monkeypatch.undo()
    kept = {path: path.stat().st_mtime_ns for path in results(tmp_path / "store")}
    assert kept
    table = us.run_plan(WORLD, PLAN, store=tmp_path / "store").table()
    assert table.equals(us.run_plan(WORLD, PLAN).table())
    assert all(path.stat().st_mtime_ns == when for path, when in kept.items())


def test_a_file_that_may_not_grow(tmp_path):
    """The operating system itself refuses to write on: as a full disk does."""
    WORLD.to_polars().select("user", "item", "rating").write_csv(tmp_path / "ratings.csv")
    code = (
        "import resource, signal, sys\n"
        "import unskew as us\n"
        "from unskew.data.dataset import put_data\n"
        "from unskew.engine.store import Store, StoreError\n"
        "ratings = us.read_ratings(sys.argv[1])\n"
        "store = Store.open(sys.argv[2])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    put_data(store, ratings)\n"
        "except StoreError as problem:\n"
        "    print(problem)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ratings.csv"), str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "ratings.arrow: cannot be written" in done.stdout, done.stderr
    assert "earlier results are untouched" in done.stdout
    assert not list((tmp_path / "store").rglob("*.part"))
    store = Store.open(tmp_path / "store")
    assert stored_ratings(store, put_data(store, WORLD)).fingerprint == WORLD.fingerprint


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write anywhere")
def test_read_only_folder(store):
    store.put(KEY, TABLE, {})
    for folder in (store.home / "results", store.path(KEY).parent):
        folder.chmod(0o500)
    try:
        with pytest.raises(StoreError, match="check the folder and its permissions"):
            store.put("ab" + "cd" * 19, TABLE, {})
        assert store.has(KEY)
    finally:
        for folder in (store.home / "results", store.path(KEY).parent):
            folder.chmod(0o700)


def test_no_permission(store, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    store.put(KEY, TABLE, {})
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(StoreError, match=r"cannot be read \(.*Permission denied"):
        store.get(KEY)
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(StoreError, match="cannot be set aside"):
        store.has(KEY)


# Ratings


@pytest.mark.parametrize("text", [False, True])
def test_ratings_come_back(store, text):
    frame = WORLD.to_polars()
    if text:
        frame = frame.with_columns(pl.col("user", "item").cast(pl.String))
    ratings = us.read_ratings(frame, tags=["familiar"])
    key = put_data(store, ratings)
    assert key == put_data(store, ratings) == data_key(ratings)
    kept = stored_ratings(store, key)
    assert kept.to_polars().equals(ratings.to_polars())
    assert (kept.implicit, kept.notes) == (ratings.implicit, ratings.notes)
    assert not kept.value.flags.writeable


def test_ratings_without_values_or_times(store):
    ratings = us.read_ratings({"user": [1, 1, 2], "item": ["a", "b", "a"]})
    kept = stored_ratings(store, put_data(store, ratings))
    assert kept.implicit
    assert kept.time is None
    assert kept.to_polars().equals(ratings.to_polars())


@pytest.mark.parametrize("name", ["ratings.arrow", "users.arrow", "items.arrow", "meta.json"])
@pytest.mark.parametrize("how", ["cut", "spoilt", "gone"])
def test_damaged_ratings(store, name, how):
    key = put_data(store, WORLD)
    path = store.home / "data" / key / name
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "spoilt":
        middle = len(content) // 2
        path.write_bytes(content[:middle] + b"\xff" * 8 + content[middle + 8 :])
    else:
        path.unlink()
    with pytest.raises(StoreError, match="remove the folder and run again"):
        stored_ratings(store, key)
    if (name, how) != ("meta.json", "gone"):
        assert any(key in line for line in store.verify())


def test_a_run_on_damaged_ratings_says_what_to_do(tmp_path):
    us.run_plan(WORLD, PLAN, store=tmp_path / "store")
    (path,) = (tmp_path / "store").rglob("ratings.arrow")
    path.write_bytes(b"")
    for result in results(tmp_path / "store"):
        result.unlink()
    with pytest.raises(StoreError, match="remove the folder and run again"):
        us.run_plan(WORLD, PLAN, store=tmp_path / "store")
    assert not Store.open(tmp_path / "store").failures()


def test_keys():
    assert digest_of({"a": 1, "b": [2.5, None]}) == digest_of({"b": [2.5, None], "a": np.int64(1)})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})
    with pytest.raises(DataError, match="cannot be part of a key"):
        digest_of({"a": object()})
    assert data_key(world(seed=1)) != data_key(world(seed=2))


# Failures


def test_failures(store):
    store.put_failure(KEY, "it broke: \udcff")
    assert store.failures() == {KEY: "it broke: ?"}
    report = store.home / "failed" / f"{KEY}.txt"
    report.write_bytes(report.read_bytes().replace(b"broke", b"spoke"))
    assert store.failures() == {}
    assert "its task will be tried again" in store.verify()[0]
    store.forget_failure(KEY)
    store.forget_failure(KEY)
    assert store.failures() == {}


# The command


def test_commands(tmp_path, call):
    home = tmp_path / "store"
    us.run_plan(WORLD, PLAN, store=home)
    code, out, _ = call("store", "ls", home)
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 6
    assert sum("popularity" in line for line in lines) == 2
    assert sum("lists" in line for line in lines) == 2
    assert sum("fold1" in line for line in lines) == 3
    assert call("store", "verify", home)[:2] == (0, "6 results are whole, 0 problems\n")

    part = leave_part(home / "results" / "ab")
    spoilt = results(home)[0]
    spoilt.write_bytes(spoilt.read_bytes()[:-1])
    code, out, _ = call("store", "verify", home)
    assert code == 1
    assert str(part) in out
    assert spoilt.name in out
    assert "5 results are whole, 2 problems" in out
    assert us.run_plan(WORLD, PLAN, store=home).table().equals(us.run_plan(WORLD, PLAN).table())
    code, out, _ = call("store", "gc", home)
    assert code == 0
    assert out.startswith("removed 2 files")
    assert call("store", "verify", home)[0] == 0

    WORLD.to_polars().select("user", "item", "rating").write_csv(tmp_path / "ratings.csv")
    (tmp_path / "plan.toml").write_text(
        'metrics = ["P@5"]\n[data]\nfile = "ratings.csv"\n[[algorithm]]\nname = "popularity"\n'
    )
    assert call("run", tmp_path / "plan.toml", "--store", home, "-q")[0] == 0
    assert len(results(home)) == 8
    code, out, _ = call("store", "gc", home, "--plan", tmp_path / "plan.toml")
    assert out.startswith("removed 6 files")
    assert len(results(home)) == 2


@pytest.mark.parametrize("command", ["ls", "verify", "gc"])
def test_commands_on_what_is_no_store(tmp_path, call, command):
    code, _, err = call("store", command, tmp_path)
    assert code == 2
    assert "is not a store" in err
    assert not list(tmp_path.iterdir())


# Cost


def nothing(task):
    store, number = task
    key = digest_of({"number": number})
    store.put(key, TABLE, {"number": number})
    return key


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_thousand_tasks_leave_a_thousand_results(store, workers):
    done = [one.result for one in Executor(workers).do(nothing, [(store, n) for n in range(1000)])]
    assert len(set(done)) == 1000
    assert sum(1 for _ in store.entries()) == 1000
