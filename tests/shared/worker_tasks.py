"""What tests let worker processes do: apart, so that those need not import a file of tests."""

import os
import signal
import time
from pathlib import Path

from unskew.errors import SettingError


def double(number):
    if number == 3:
        raise ValueError("three")
    return 2 * number


def process_of(_):
    """Return the process that does a task: long enough for the others to take tasks too."""
    time.sleep(0.05)
    return os.getpid()


def wait_for(seconds):
    """Take so long."""
    time.sleep(seconds)


def dies_once(train, rng):
    """Train as popularity does; the first process that tries is killed."""
    from unskew.recommend import Popularity

    mark = Path(os.environ["UNSKEW_TEST_MARK"])
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return Popularity().fit(train)


def fails(train, rng):
    raise SettingError("this one never works")
