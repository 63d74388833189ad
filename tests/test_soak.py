"""Load and faults: a small seeded version of `benchmarks/soak.py`."""

import sys

import numpy as np
import pytest

from shared import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import soak_commands
import soak_kills
import soak_mutations
from soak_inputs import Read, Subject
from unskew.errors import DataError


def test_changed_files_are_refused_or_read_as_plain_python_reads_them(tmp_path):
    cases = soak_mutations.Cases(tmp_path)
    quick = [n for n, one in enumerate(cases.subjects) if one.name not in COMPILE]
    seeds = [n + 40_000 * len(cases.subjects) for n in quick]
    bad = [one for one in map(cases.run, seeds) if one["outcome"] not in soak_mutations.GOOD]
    assert not bad


COMPILE = ("target lists", "model", "lists, TREC", "lastfm-1k")
"""Their kernels take seconds to compile: the slow test has them."""


@pytest.mark.slow
def test_many_changed_files():
    *_, counts = soak_mutations.count_mutations(330, 60_000)
    assert counts["cases"] == 330
    assert not counts["problems"]


@pytest.mark.slow
def test_killed_commands_lose_nothing():
    *_, counts = soak_kills.count_kills(6, 1)
    assert counts["kills"] == 6
    assert not counts["problems"]


@pytest.mark.slow
def test_random_commands_under_faults():
    *_, counts = soak_commands.count_commands(minutes=10, first=0, most=8)
    assert counts["cases"] == 8
    assert not counts["problems"]


def test_the_soak_tells_a_command_that_ends_badly():
    command = soak_commands.Command("split", ("split", "test.csv"), ())

    def problems(code, err, fault):
        return soak_commands.judged(command, soak_commands.Outcome(code, "", err, {}), fault)

    assert not problems(1, "error: unskew: the disk is full", "file size")
    assert problems(3, "", "none")  # an answer of unskew gate alone
    assert problems(-11, "", "memory")
    assert problems(-6, "unskew: no reason", "memory")
    assert not problems(-6, "memory allocation of 256 bytes failed", "memory")
    assert problems(1, "Traceback (most recent call last): unskew", "interrupt")
    assert problems(0, "error: this is a defect of unskew", "none")
    assert problems(-9, "", "interrupt")


def test_the_soak_tells_what_a_kill_left_half_written(tmp_path):
    kills = soak_kills.Kills.__new__(soak_kills.Kills)
    job = soak_kills.Job("split", (), ("parts",))
    whole = tmp_path / "whole" / "parts"
    whole.mkdir(parents=True)
    (whole / "train.parquet").write_text("rows")
    (whole / ".card.json.x-1.part").write_text("left by a writer")
    written = {"parts": soak_kills.contents(whole)}
    assert list(written["parts"]) == ["train.parquet"]
    assert not kills.whole(job, whole.parent, written, {})
    assert not kills.equal(job, whole.parent, written, {})
    (whole / "train.parquet").write_text("row")
    assert kills.whole(job, whole.parent, written, {}) == ["parts: half written"]
    assert kills.equal(job, whole.parent, written, {})
    assert kills.equal(job, tmp_path, written, {})  # nothing is there at all


def write(folder, rng):
    (folder / "some.txt").write_text("value 12345\n" * 5)


def as_it_is(text):
    return text.decode("latin-1")


def fails(text):
    return 1 / 0


def refuses(text):
    raise DataError("some.txt: not as it was written")


def names_nothing(text):
    raise DataError("not as it was written")


@pytest.mark.parametrize(
    ("reader", "outcome"),
    [(as_it_is, "wrong"), (fails, "traceback"), (refuses, "refused"), (names_nothing, "unnamed"),
     (len, "unchanged")],
)  # fmt: skip
def test_the_soak_tells_a_bad_reader(tmp_path, reader, outcome):
    """The check itself can fail: readers with a known fault are found."""
    before = {as_it_is: "value 12345\n" * 5, len: 60}.get(reader, "")

    def read(folder):
        text = (folder / "some.txt").read_bytes()
        return Read(before if folder.name != "case" else reader(text))

    cases = soak_mutations.Cases(tmp_path)
    cases.subjects = (Subject("text", write, read, kind="saved"),)
    assert cases.run(0)["outcome"] == outcome


def test_another_result_is_right_only_where_plain_python_reads_the_same(tmp_path):
    def read(folder):
        return Read(as_it_is((folder / "some.txt").read_bytes()))

    for twin, outcome in (
        (lambda folder, _: read(folder).rows, "as the twin"),
        (lambda folder, _: read(folder).rows.replace("value", "other"), "wrong"),
    ):
        cases = soak_mutations.Cases(tmp_path)
        cases.subjects = (Subject("text", write, read, twin),)
        for variant in range(soak_mutations.TEMPLATES):
            folder = tmp_path / f"0-{variant}"
            folder.mkdir(exist_ok=True)
            write(folder, None)
            cases.originals[folder] = read(folder)
        assert cases.run(0)["outcome"] == outcome


def test_every_change_depends_on_the_seed_alone():
    content = b"user,item,rating\n1,2,3\n4,5,6\n"
    changed = [soak_mutations.mutate(content, False, np.random.default_rng(n)) for n in range(50)]
    again = [soak_mutations.mutate(content, False, np.random.default_rng(n)) for n in range(50)]
    assert changed == again
    assert len({text for text, _ in changed}) > 30
