"""Chromium without a window, driven through a pipe: open pages, run scripts, press keys, print."""

import base64
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")

# The protocol runs over the descriptors 3 and 4; they may be taken, so the way leads over others.
START = """
import fcntl, os, sys
free = [fcntl.fcntl(int(one), fcntl.F_DUPFD_CLOEXEC, 10) for one in sys.argv[1:3]]
os.dup2(free[0], 3)
os.dup2(free[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One chromium for many pages; `log` holds what the open page wrote to its console."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (read, their_write), (their_read, write) = os.pipe(), os.pipe()
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--force-color-profile=srgb", "--remote-debugging-pipe",
            f"--user-data-dir={self.profile.name}",
        ]  # fmt: skip
        command = [sys.executable, "-c", START, str(their_read), str(their_write), CHROMIUM]
        self.process = subprocess.Popen(
            [*command, *options], pass_fds=(their_read, their_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_read)
        os.close(their_write)
        self.pipe = os.fdopen(write, "wb", buffering=0)
        self.numbers = itertools.count(1)
        self.answers, self.events = {}, []
        self.came = threading.Condition()
        self.reader = threading.Thread(target=self._read, args=(os.fdopen(read, "rb"),))
        self.reader.start()
        page = self.send("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        self.session = None
        attached = self.send("Target.attachToTarget", {"targetId": page, "flatten": True}, None)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def _read(self, pipe):
        parts = b""
        while chunk := pipe.read1(1 << 20):
            *messages, parts = (parts + chunk).split(b"\0")
            with self.came:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.came.notify_all()
        pipe.close()

    def send(self, method, params=None, session=""):
        """Send a command of the protocol; return its result."""
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params or {}}
        if session is not None:
            message["sessionId"] = self.session
        self.pipe.write(json.dumps(message).encode() + b"\0")
        with self.came:
            assert self.came.wait_for(lambda: number in self.answers, timeout=90), method
            answer = self.answers.pop(number)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def wait(self, event):
        with self.came:
            arrived = lambda: any(one["method"] == event for one in self.events)  # noqa: E731
            assert self.came.wait_for(arrived, timeout=90), event

    def open(self, path, width=1440, height=900, *, dark=False, fragment=""):
        """Open a file in a window of that size, and wait until its charts are drawn."""
        self.send("Page.navigate", {"url": "about:blank"})
        self.size(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", {"features": [scheme]})
        with self.came:
            self.events.clear()
        self.send("Page.navigate", {"url": Path(path).as_uri() + fragment})
        self.wait("Page.loadEventFired")
        self.run("report.ready.then(() => report.drawAll())")

    def size(self, width, height):
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.send("Emulation.setDeviceMetricsOverride", metrics)

    def run(self, script):
        """Run an expression on the page; return its value, awaited if it is a promise."""
        options = {"awaitPromise": True, "returnByValue": True, "userGesture": True}
        options["expression"] = script
        answer = self.send("Runtime.evaluate", options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key):
        text = {"Enter": "\r"}.get(key, "")
        number = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": number}
            self.send("Input.dispatchKeyEvent", event | ({"text": text} if text else {}))

    @property
    def log(self):
        """Return what the page wrote to its console, and errors nobody caught."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(one["params"]) for one in self.events if one["method"] in kinds]

    def picture(self, path, *, whole=False):
        """Save what is seen, or the whole page, as PNG."""
        shot = self.send("Page.captureScreenshot", {"captureBeyondViewport": whole})
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def printed(self):
        """Return the page as PDF."""
        paper = {"preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69}
        answer = self.send("Page.printToPDF", paper | {"printBackground": True})
        return base64.b64decode(answer["data"])

    def close(self):
        self.pipe.close()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(timeout=20)
        self.profile.cleanup()


def pages_of(pdf):
    """Return how many pages a PDF of chromium has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    one = Browser()
    yield one
    one.close()
