"""Settings and logs of the gate: looks at the same time are counted, wrong content is refused."""

import json
import os
import random
import re
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import unskew as us
from unskew.engine.files import locked
from unskew.engine.system import lock
from unskew.errors import OutputError
from unskew.gating import looks
from unskew.gating.settings import RAILS, GateSettings

USERS = range(60)
TEST = {"user": [u for u in USERS for _ in "ab"], "item": ["a", "b"] * 60, "rating": [5, 1] * 60}
RUNS = {
    "new": {u: ["a", "b"] for u in USERS},
    "old": {u: ["b", "a"] if u % 3 else ["a", "b"] for u in USERS},
}


def gate(**more):
    return us.gate(TEST, RUNS, candidate="new", production="old", metric="RR@2", liked=4, **more)


# Looks at the same time

FOUR = """
import sys, time
import unskew as us
sys.path.insert(0, sys.argv[3])
from test_gate_files import gate
number, log = int(sys.argv[1]), sys.argv[2]
gate()  # all is loaded
print("ready", flush=True)
sys.stdin.readline()
result = gate(log=log, alpha=0.05 - number / 1000)
print(result.look.number, result.look.alpha, flush=True)
"""


def start(number, log):
    command = [sys.executable, "-c", FOUR, str(number), str(log), str(Path(__file__).parent)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_four_gates_at_once_are_four_looks(tmp_path):
    """Each starts when all are loaded; their levels are those of their own numbers."""
    log = tmp_path / "looks.jsonl"
    with ExitStack() as stack:
        gates = [stack.enter_context(start(number, log)) for number in range(4)]
        assert [one.stdout.readline() for one in gates] == ["ready\n"] * 4
        for one in gates:
            one.stdin.write("go\n")
            one.stdin.flush()
        answers = [one.communicate(timeout=120)[0].split() for one in gates]
    numbers = [int(number) for number, _ in answers]
    assert sorted(numbers) == [1, 2, 3, 4]
    for place, (number, (_, alpha)) in enumerate(zip(numbers, answers, strict=True)):
        assert float(alpha) == looks.spent(0.05 - place / 1000, number)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["look"] for line in lines] == [1, 2, 3, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["looks.jsonl"]


HOLDER = """
import sys, time
from unskew.engine.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def held(log):
    """Let another process keep the lock; it is killed at the end."""
    command = [sys.executable, "-c", HOLDER, str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        yield
        other.kill()


def test_a_killed_gate_blocks_nobody(tmp_path):
    log = tmp_path / "looks.jsonl"
    with held(log):
        pass
    assert (tmp_path / ".looks.jsonl.lock").exists()
    assert gate(log=log).look.number == 1
    assert [path.name for path in tmp_path.iterdir()] == ["looks.jsonl"]


def test_a_gate_that_hangs_is_not_waited_for_without_end(tmp_path):
    log = tmp_path / "looks.jsonl"
    refused = pytest.raises(OutputError, match="another process keeps this lock")
    with held(log), refused, locked(log, seconds=0.1):
        pass
    assert not log.exists()


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_a_lock_is_a_regular_file_and_no_link(tmp_path, kind):
    mark, other = tmp_path / ".looks.jsonl.lock", tmp_path / "other"
    if kind == "link":
        other.write_text("precious")
    if kind in ("link", "dangling"):
        mark.symlink_to(other)
    elif kind == "pipe":
        os.mkfifo(mark)
    else:
        mark.mkdir()
    with pytest.raises(OutputError, match="this lock is no regular file: remove it"):
        gate(log=tmp_path / "looks.jsonl")
    assert not (tmp_path / "looks.jsonl").exists()
    assert (other.read_text() == "precious") if kind == "link" else not other.exists()


def test_a_log_under_two_names_has_one_lock(tmp_path):
    log = tmp_path / "looks.jsonl"
    (tmp_path / "link.jsonl").symlink_to(log)
    mark = tmp_path / ".looks.jsonl.lock"
    with locked(tmp_path / "link.jsonl"), mark.open("rb") as file, pytest.raises(BlockingIOError):
        lock(file, wait=False)
    assert gate(log=tmp_path / "link.jsonl").look.number == 1
    assert gate(log=log, alpha=0.04).look.number == 2


def test_a_lock_that_was_removed_locks_nobody_out(tmp_path):
    """In turns, 300 times: who opened the file before it was removed tries again."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom unskew.engine.files import locked, replacing\n"
        "path = Path(sys.argv[1])\n"
        "for _ in range(100):\n"
        "    with locked(path):\n"
        "        count = int(path.read_text())\n"
        "        with replacing(path, sync=False) as part:\n"
        "            part.write_text(str(count + 1))\n"
    )
    count = tmp_path / "count"
    count.write_text("0")
    command = [sys.executable, "-c", code, str(count)]
    with ExitStack() as stack:
        workers = [stack.enter_context(subprocess.Popen(command)) for _ in range(3)]
        assert [one.wait(timeout=120) for one in workers] == [0, 0, 0]
    assert count.read_text() == "300"


def test_looks_that_shared_a_number_are_counted_one_by_one(tmp_path):
    """Up to 0.2.0 four gates at once were looks 1, 2, 2, 2: the next one is the fifth."""
    log = tmp_path / "looks.jsonl"
    entry = json.loads(written(log))
    log.unlink()
    shared = [
        {**entry, "inputs": f"{number:032x}", "look": min(number, 2)} for number in (1, 2, 3, 4)
    ]
    log.write_text("".join(json.dumps(one) + "\n" for one in shared))
    assert gate(log=log).look.number == 5


@pytest.mark.parametrize("kills", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_a_killed_gate_leaves_a_whole_log(tmp_path, kills):
    """Killed at random moments while it adds looks: every line stays whole, none is lost."""
    log = tmp_path / "looks.jsonl"
    code = (
        "import sys\nfrom unskew.engine.files import locked\n"
        "from unskew.gating import looks as g\nlog = sys.argv[1]\n"
        "facts = {'metric': 'P', 'verdict': 'hold', 'candidate': 'a', 'production': 'b'}\n"
        "print('ready', flush=True)\n"
        "for k in range(10**6):\n"
        "    with locked(log):\n"
        "        n = len(g.read_log(log))\n"
        "        g.record(log, g.look_at(log, ('0' * 32, f'{n:032x}'), 0.05), facts)\n"
        "    print(n, flush=True)\n"
    )
    rng, last = random.Random(3), -1
    for _ in range(kills):
        command = [sys.executable, "-c", code, str(log)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as one:
            assert one.stdout.readline() == "ready\n"
            time.sleep(rng.uniform(0.0, 0.2))
            one.kill()
            told = [int(line) for line in one.communicate()[0].split()]
        entries = looks.read_log(log)
        assert [entry["look"] for entry in entries] == list(range(1, len(entries) + 1))
        last = max([last, *told])
        assert len(entries) >= last + 1  # what was told to be written is there
    assert last > 0


# Wrong settings


def written(log):
    gate(log=log)
    return log.read_text()


HUGE = "1" + "0" * 400
WRONG = {  # TOML: neither a number, nor a share, nor a name
    "a boolean": "true",
    "the other boolean": "false",
    "not a number": "nan",
    "infinite": "inf",
    "negative": "-1",
    "minus infinite": "-inf",
    "a list": '["5%"]',
    "an empty list": "[]",
    "a nest": "[[[1]]]",
    "a table": "{ a = 1 }",
    "an empty table": "{}",
    "a date": "2024-01-31",
    "a time": "07:32:00",
    "a moment": "2024-01-31T07:32:00Z",
    "empty text": '""',
    "a word": '"much"',
    "text of a boolean": '"true"',
    "text of no number": '"nan"',
    "text with underscores": '"1_0%"',
    "text with other digits": '"٥%"',
    "text of two": '"5% 6%"',
    "text with a sign": '"-5%"',
    "text of all": '"100%"',
    "text of infinity": '"inf"',
    "control characters": '"\\u0000"',
    "huge": HUGE,
    "huge in text": f'"{HUGE}"',
    "huge in hexadecimal": "0x" + "f" * 5000,
}  # fmt: skip
MARGINS = ["margin", *(f"rails.{name}" for name in RAILS), "segments.margin"]
SHARES = [f"data.{name}" for name in ("missing", "shorter", "trained", "outside", "future")]


def settings_files():
    """Yield (key, TOML text) with one wrong setting each."""
    for key in (*MARGINS, *SHARES, "alpha"):
        for value in WRONG.values():
            yield key, f"{key} = {value}\n"
    for value in ("0", "0.5", "1", '"0.05"', '"5%"'):
        yield "alpha", f"alpha = {value}\n"
    for share in ("1.01", "5", HUGE):
        yield from ((key, f"{key} = {share}\n") for key in SHARES)
    for name, value in WRONG.items():
        if not value.startswith('"'):
            yield "metric", f"metric = {value}\n"
        if name not in ("a list", "an empty list"):
            yield "by", f"segments.by = {value}\n"
        yield "popularity", f"popularity = {value}\n"
        if name not in ("a table", "an empty table"):
            for table in ("rails", "segments", "data"):
                yield f"[{table}]", f"{table} = {value}\n"
    for member in ("1", "true", "[]", "{}", "nan"):
        yield "by", f'segments.by = ["activity", {member}]\n'
    for table in ("", "rails.", "segments.", "data."):
        yield "other", f"{table}other = 1\n"


CASES = list(settings_files())


def test_many_wrong_settings_are_refused(tmp_path):
    """Each names the file and the key, says what came and what is allowed; none is accepted."""
    path = tmp_path / "gate.toml"
    assert len(CASES) > 400
    for key, text in CASES:
        path.write_text(text, encoding="utf-8")
        with pytest.raises((us.SettingError, us.DataError)) as refused:
            GateSettings.read(path)
        message = str(refused.value)
        assert message.startswith(str(path)) or f"of {path} " in message, text[:80]
        is_toml = "no TOML file" not in message
        assert not is_toml or key.rpartition(".")[2].strip("[]") in message, (text[:80], message)
        assert re.search(r"must|Allowed:|no TOML file", message), message
        assert len(message) < 400, text[:80]


NO_TOML = {
    "twice": b"alpha = 0.05\nalpha = 0.04\n",
    "a table twice": b"[rails]\ngini = 0\n[rails]\n",
    "latin": b'metric = "\xe9"\n',
    "utf-16": "alpha = 0.05".encode("utf-16"),
    "binary": bytes(range(256)),
    "cut": b'[rails]\ngini = "2',
    "json": b'{"alpha": 0.05}',
    "deep": b"alpha = " + b"[" * 100_000,
    "deep tables": b"alpha = " + b"{a=" * 100_000,
    "digits": b"alpha = " + b"1" * 5_000,
}


@pytest.mark.parametrize("content", NO_TOML.values(), ids=NO_TOML)
def test_what_is_no_toml_is_refused(tmp_path, content):
    (tmp_path / "gate.toml").write_bytes(content)
    with pytest.raises(us.DataError, match=re.escape(str(tmp_path / "gate.toml"))):
        GateSettings.read(tmp_path / "gate.toml")


def test_no_file_of_settings(tmp_path):
    with pytest.raises(us.DataError, match=r"is a folder"):
        GateSettings.read(tmp_path)
    with pytest.raises(us.DataError, match=r"no such file.*`unskew gate init .*` writes one"):
        GateSettings.read(tmp_path / "none.toml")


@pytest.mark.parametrize("value", [0, 0.0, "0", "0%"])
def test_a_rail_with_no_room_is_not_switched_off(value):
    """Nothing may be lost: up to 0.2.0 a margin of 0 meant off."""
    rail = GateSettings.read({"rails": {"gini": value}}).rails["gini"]
    assert rail is not None
    assert rail.amount == 0
    assert GateSettings().with_rails({"gini": "off"}).rails["gini"] is None
    assert GateSettings().with_rails({"gini": None}).rails["gini"] is None


@pytest.mark.parametrize(
    ("value", "amount"), [("5 %", 0.05), (".5%", 0.005), ("1e-3", 0.001), (2, 2.0), ("3.", 3.0)]
)
def test_margins_that_are_right_are_read(value, amount):
    assert GateSettings.read({"margin": value}).margin.amount == pytest.approx(amount)


# Wrong logs

VALUES = [
    None, True, False, 0, -1, 1.9, 1.0, "1", "", "x", [], ["a"], {}, {"a": 1}, 10**400, -(10**400),
    1e308, float("nan"), float("inf"), float("-inf"), "\u0000", "0" * 31, "G" * 32, [[[]]], 2**63,
]  # fmt: skip
RIGHT = {
    "look": lambda value: type(value) is int and 1 <= value <= looks.MOST_LOOKS,
    "alpha": lambda value: type(value) in (int, float) and 0 < value < 0.5,
    **dict.fromkeys(("metric", "candidate", "production"), lambda value: isinstance(value, str)),
    **dict.fromkeys(("test", "inputs", "verdict"), lambda _: False),
}


def logs(entry):
    """Yield logs with one wrong value, key or line each, and what the message must name."""
    for key, is_right in RIGHT.items():
        for value in VALUES:
            if not is_right(value):
                yield key, json.dumps({**entry, key: value})
        yield key, json.dumps({name: one for name, one in entry.items() if name != key})
        yield "twice", json.dumps(entry)[:-1] + f', "{key}": {json.dumps(entry[key])}}}'
    yield "must be an object", json.dumps({**entry, "more": 1})
    whole = json.dumps(entry)
    for end in range(1, len(whole), 7):
        yield "cut short", whole[:end]
    for text in (
        "",
        " ",
        "[]",
        "null",
        "1",
        '"x"',
        "[" * 100_000,
        '{"a":' * 50_000,
        "{}",
        whole * 2,
    ):
        yield "", text
    yield "", "1" * 5_000


def test_many_wrong_logs_are_refused(tmp_path):
    """Each names file and line, and the key where there is one; the log stays as it is."""
    log = tmp_path / "looks.jsonl"
    first = written(log)
    cases = list(logs(json.loads(first)))
    assert len(cases) > 200
    for named, line in cases:
        text = f"{first}{line}\n{first}"
        log.write_text(text)
        with pytest.raises(us.DataError) as refused:
            looks.read_log(log)
        message = str(refused.value)
        assert message.startswith(f"{log}, line 2: "), line[:80]
        assert named in message, (line[:80], message)
        assert len(message) < 500, line[:80]
        assert log.read_text() == text
    with pytest.raises(us.DataError, match="line 2"):
        gate(log=log)


@pytest.mark.parametrize(
    "content", [b"\xff\n", "{}".encode("utf-16"), b"\xef\xbb\xbf{}\n", b"\r{}\r", b"\n", b"\x00"]
)
def test_a_log_that_is_no_text_is_refused(tmp_path, content):
    log = tmp_path / "looks.jsonl"
    log.write_bytes(content)
    with pytest.raises(us.DataError, match=re.escape(str(log))):
        gate(log=log)
    assert log.read_bytes() == content


def test_a_log_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", "/dev/null"):
        with pytest.raises(us.DataError, match=r"name the file that unskew gate --log writes"):
            gate(log=path)
