"""Changed files: each reader and each saved format must refuse them, or read them rightly."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

CHUNK, SECONDS, TEMPLATES = 250, 60.0, 6
PREPARE = 600.0
"""Seconds for a valid file to be written and read: kernels are compiled then."""
GOOD = ("refused", "unchanged", "as the twin")
BAD = ("traceback", "unnamed", "wrong", "crash", "hang")
OUTCOMES = {
    "refused": "an error of unskew that names the file",
    "unchanged": "the same result as before the change",
    "as the twin": "another result, and plain Python reads the same from these bytes",
    "traceback": "an error that is not one of unskew's",
    "unnamed": "an error that does not name the file",
    "wrong": "another result than the original's, and than plain Python's",
    "crash": "the process died",
    "hang": "no answer in a minute",
}

Mutation = Callable[[bytes, np.random.Generator], bytes]

ODD = (b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b'"', b"\n", b"\xc3", b"\x80", b"'", b" ",
       b"\t", b"::", b"\xe2\x80\xa8", b"\x1a", b"\\", b"#", b"\x1f", b"=", b"{",
       b"1", b"-")  # fmt: skip
NUMBERS = (b"1e308", b"1e400", b"-1e308", b"99999999999999999999", b"nan", b"inf", b"-0", b"1_000",
           b"0x10", b"1e-320", b"", b"007", b"+5", b"1,5", "٣".encode(), b"9223372036854775808",
           b"-1", b"4.", b".5", b"1e5", b"True", b"null", b"NA")  # fmt: skip
MARKS = (b",", b";", b"\t", b"|", b" ", b"::", b":")


def block(content: bytes, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a part of a file: mostly small."""
    lo = int(rng.integers(len(content) + 1))
    return lo, min(len(content), lo + int(2 ** rng.uniform(0, 9)))


def flip(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip one to four bits."""
    changed = bytearray(content)
    for at in rng.integers(0, max(len(changed), 1), int(rng.integers(1, 5))):
        if changed:
            changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(content: bytes, rng: np.random.Generator) -> bytes:
    """Cut the end off."""
    return content[: int(rng.integers(len(content) + 1))]


def double(content: bytes, rng: np.random.Generator) -> bytes:
    """Write a part twice."""
    lo, hi = block(content, rng)
    return content[:hi] + content[lo:hi] + content[hi:]


def remove(content: bytes, rng: np.random.Generator) -> bytes:
    """Leave a part out."""
    lo, hi = block(content, rng)
    return content[:lo] + content[hi:]


def swap(content: bytes, rng: np.random.Generator) -> bytes:
    """Exchange two parts that follow each other."""
    lo, hi = block(content, rng)
    end = min(len(content), hi + int(2 ** rng.uniform(0, 9)))
    return content[:lo] + content[hi:end] + content[lo:hi] + content[end:]


def insert(content: bytes, rng: np.random.Generator) -> bytes:
    """Insert one to three odd bytes."""
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(content) + 1))
        content = content[:at] + ODD[int(rng.integers(len(ODD)))] + content[at:]
    return content


def separate(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one separator, or all of a kind."""
    there = [mark for mark in MARKS if mark in content]
    if not there:
        return flip(content, rng)
    old, new = there[int(rng.integers(len(there)))], MARKS[int(rng.integers(len(MARKS)))]
    if rng.integers(2):
        return content.replace(old, new)
    places = [one.start() for one in re.finditer(re.escape(old), content)]
    at = places[int(rng.integers(len(places)))]
    return content[:at] + new + content[at + len(old) :]


def renumber(content: bytes, rng: np.random.Generator) -> bytes:
    """Put an odd number in the place of a number."""
    places = list(re.finditer(rb"[-+.\d]+", content))
    if not places:
        return insert(content, rng)
    one = places[int(rng.integers(len(places)))]
    return content[: one.start()] + NUMBERS[int(rng.integers(len(NUMBERS)))] + content[one.end() :]


def reline(content: bytes, rng: np.random.Generator) -> bytes:
    """Double, drop or move a line, or end lines in another way."""
    lines = content.split(b"\n")
    at, to = (int(rng.integers(len(lines))) for _ in range(2))
    kind = int(rng.integers(5))
    if kind == 0:
        lines.insert(to, lines[at])
    elif kind == 1:
        lines.insert(to, lines.pop(at))
    elif kind == 2:
        del lines[at]
    elif kind == 3:
        return content.replace(b"\n", b"\r\n")
    else:
        return content.replace(b"\n", b"\r")
    return b"\n".join(lines)


def empty(_content: bytes, rng: np.random.Generator) -> bytes:
    """Leave nothing, or blanks."""
    return (b"", b"\n", b" \n\n", b"\x00")[int(rng.integers(4))]


WAYS: tuple[tuple[Mutation, float], ...] = (
    (flip, 5), (cut, 2), (double, 2), (remove, 2), (swap, 2), (insert, 4), (separate, 2),
    (renumber, 3), (reline, 2), (empty, 0.3),
)  # fmt: skip


def mutate(content: bytes, packed: bool, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return changed bytes and how they were changed; sometimes in two ways."""
    weights = np.array([weight for _, weight in WAYS])
    inside = packed and bool(rng.integers(2))
    content = gzip.decompress(content) if inside else content
    names = []
    for _ in range(1 + int(rng.random() < 0.25)):
        way = WAYS[int(rng.choice(len(WAYS), p=weights / weights.sum()))][0]
        content = way(content, rng)
        names.append(way.__name__)
    return gzip.compress(content, mtime=0) if inside else content, "+".join(names)


# One case


def subjects() -> tuple[Any, ...]:
    """Return every kind of file."""
    from soak_inputs import INPUTS
    from soak_named import NAMED
    from soak_recognised import RECOGNISED
    from soak_saved import SAVED

    return (*INPUTS, *RECOGNISED, *NAMED, *SAVED)


class Cases:
    """Cases in a folder: valid files are written once, and copied for each case."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.subjects = subjects()
        self.originals: dict[Path, Any] = {}

    def template(self, number: int, variant: int) -> tuple[Path, Any]:
        """Return a folder of valid files, and what is read from it."""
        subject = self.subjects[number]
        folder = self.home / f"{number}-{variant}"
        if folder not in self.originals:
            folder.mkdir()
            subject.write(folder, np.random.default_rng([3, number, variant]))
            read = subject.read(folder)
            from soak_inputs import same

            if subject.twin is not None and not same(subject.twin(folder, read), read.rows):
                raise AssertionError(
                    f"{subject.name} {variant}: the twin reads the original otherwise"
                )
            self.originals[folder] = read
        return folder, self.originals[folder]

    def prepare(self, seed: int) -> tuple[Any, Path, Any, np.random.Generator]:
        """Return what a seed means: the kind of file, valid files, what they hold, the draws."""
        number, rng = seed % len(self.subjects), np.random.default_rng([5, seed])
        source, before = self.template(number, int(rng.integers(TEMPLATES)))
        return self.subjects[number], source, before, rng

    def run(self, seed: int) -> dict[str, Any]:
        """Change a file by its seed, read it, and say what came of it."""
        from soak_inputs import same

        subject, source, before, rng = self.prepare(seed)
        folder = self.home / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        files = sorted({path for pattern in subject.changed for path in folder.glob(pattern)
                        if path.is_file()})  # fmt: skip
        file = files[int(rng.integers(len(files)))]
        old = file.read_bytes()
        new, way = mutate(old, subject.packed, rng)
        file.write_bytes(new)
        case = {"seed": seed, "subject": subject.name, "file": file.name, "way": way}
        outcome, detail = self._outcome(subject, folder, file, before, same)
        return {**case, "outcome": outcome, "detail": detail}

    def _outcome(
        self, subject: Any, folder: Path, file: Path, before: Any, same: Any
    ) -> tuple[str, str]:
        from unskew.errors import UnskewError

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read = subject.read(folder)
        except UnskewError as problem:
            message = str(problem)
            names = {file.name, file.stem, *(one.name for one in file.parents if one != folder)}
            names &= {one for one in names if one and len(one) > 2}
            is_named = any(name in message for name in names)
            return ("refused" if is_named else "unnamed"), message[:300]
        except BaseException as problem:
            return "traceback", f"{type(problem).__name__}: {str(problem)[:300]}"
        if same(read.rows, before.rows):
            return "unchanged", ""
        if subject.twin is None:
            return "wrong", f"{str(read.rows)[:200]} and not {str(before.rows)[:200]}"
        try:
            plain = subject.twin(folder, read)
        except Exception as problem:
            return "wrong", f"the twin: {type(problem).__name__}: {problem}; {str(read)[:300]}"
        if same(plain, read.rows):
            return "as the twin", ""
        return "wrong", f"{str(read)[:300]} and the twin {str(plain)[:300]}"


# Many cases, in processes of their own


def work(first: int, count: int) -> None:
    """Run cases in this process; print a line before and after each."""
    with tempfile.TemporaryDirectory() as home:
        cases = Cases(Path(home))
        for seed in range(first, first + count):
            print(f"prepare {seed}", flush=True)
            cases.prepare(seed)
            print(f"begin {seed}", flush=True)
            print(json.dumps(cases.run(seed)), flush=True)


def results(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each case; a process that dies or hangs is one of them."""
    seed, end = first, first + count
    while seed < end:
        size = min(CHUNK, end - seed)
        command = [sys.executable, __file__, str(seed), str(size)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        overdue = threading.Event()

        def stop(running: subprocess.Popen[str] = process, event: Any = overdue) -> None:
            event.set()
            running.kill()

        timer, begun = threading.Timer(PREPARE, stop), seed
        timer.start()
        done = seed
        for line in process.stdout:
            timer.cancel()
            timer = threading.Timer(PREPARE if line.startswith("prepare ") else SECONDS, stop)
            timer.start()
            if line.startswith(("prepare ", "begin ")):
                begun = int(line.split()[1])
            else:
                yield json.loads(line)
                done = begun + 1
        timer.cancel()
        process.wait()
        if done < seed + size:
            if done != begun:  # between cases: a defect of the soak itself
                raise RuntimeError(process.stderr.read()[-2000:] if process.stderr else "")
            outcome = "hang" if overdue.is_set() else "crash"
            detail = f"exit code {process.returncode}: "
            detail += process.stderr.read()[-300:] if process.stderr else ""
            if "AssertionError" in detail or (process.returncode == 1 and outcome == "crash"):
                raise RuntimeError(detail)
            kinds = subjects()
            yield {"seed": begun, "subject": kinds[begun % len(kinds)].name, "file": "", "way": "",
                   "outcome": outcome, "detail": detail}  # fmt: skip
            done = begun + 1
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        seed = done


def count_mutations(count: int, first: int) -> Iterator[dict[str, Any]]:
    """Run cases; yield after each one the outcomes of all so far, by kind of file."""
    by_subject: dict[str, Counter[str]] = {}
    problems, ways = [], Counter[str]()
    for case in results(first, count):
        by_subject.setdefault(case["subject"], Counter())[case["outcome"]] += 1
        ways[case["way"].partition("+")[0]] += 1
        if case["outcome"] in BAD:
            problems.append(case)
            print(json.dumps(case), flush=True)
        total = sum(by_subject.values(), Counter())
        yield {
            "cases": sum(total.values()),
            "first": first,
            "outcomes": {name: total[name] for name in OUTCOMES},
            "ways": dict(sorted(ways.items())),
            "by_file": {
                name: {outcome: counts[outcome] for outcome in OUTCOMES if counts[outcome]}
                for name, counts in sorted(by_subject.items())
            },
            "problems": problems[:20],
        }


if __name__ == "__main__":
    work(int(sys.argv[1]), int(sys.argv[2]))
