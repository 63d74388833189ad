"""Blocks of work on threads that stay from one set of blocks to the next."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import unskew
from unskew.engine.threads import exactly, map_blocks

SOURCE = Path(unskew.__file__).parent.parent


def test_results_are_in_order_and_threads_stay():
    def square(number):
        time.sleep(0.01 / (1 + number))
        return number**2, threading.get_ident()

    with exactly(2):
        first, again = map_blocks(square, range(12)), map_blocks(square, range(12))
    assert [value for value, _ in first] == [value for value, _ in again]
    assert [value for value, _ in first] == [number**2 for number in range(12)]
    threads = {thread for _, thread in [*first, *again]}
    assert threading.get_ident() not in threads
    assert len(threads) <= 2


def test_a_block_starts_no_threads():
    def outer(_):
        return {threading.get_ident(), *map_blocks(lambda _: threading.get_ident(), range(4))}

    with exactly(2):
        assert all(len(threads) == 1 for threads in map_blocks(outer, range(4)))


def test_no_block_goes_on_after_a_failure():
    begun, ended = [], []

    def block(number):
        begun.append(number)
        if number == 0:
            raise ValueError("the first")
        time.sleep(0.05)
        ended.append(number)

    with exactly(2), pytest.raises(ValueError, match="the first"):
        map_blocks(block, range(50))
    assert len(begun) < 50
    assert sorted(ended) == [number for number in sorted(begun) if number]


FORKED = """
import os
from unskew.engine.threads import exactly, map_blocks

with exactly(2):
    assert map_blocks(abs, [-1, 2, -3]) == [1, 2, 3]
    child = os.fork()
    if not child:
        os._exit(map_blocks(abs, [-4, 1]) != [4, 1])
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_fork_starts_threads_of_its_own():
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "0\n", done.stderr
