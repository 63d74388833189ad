"""Measure libraries on the fixtures, each in an environment of its own.

python benchmarks/conventions/measure.py recpack cornac
python benchmarks/conventions/measure.py all

`measure_<key>.py` runs in .venv-peers-<key> and writes tests/conventions/measured/<key>.json.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@dataclass(frozen=True)
class Environment:
    """What is installed for a library, in the versions that were run."""

    requirements: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    """Packages installed without what they depend on: only their metric modules are used."""
    python: str = sys.executable


ENVIRONMENTS = {
    "recpack": Environment(("numpy<2", "scipy", "pandas<3", "pyyaml"), ("recpack==0.3.6",)),
}


def environment(key: str) -> Path:
    """Return the Python of a library's environment; make it at first use."""
    home = ROOT / f".venv-peers-{key}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"making {home.name} …", flush=True)
        settings = ENVIRONMENTS[key]
        if settings.python == sys.executable:
            venv.create(home, with_pip=True, clear=True)
        else:
            subprocess.run([settings.python, "-m", "venv", "--clear", home], check=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        if settings.requirements:
            subprocess.run([*install, *settings.requirements], check=True)
        if settings.bare:
            subprocess.run([*install, "--no-deps", *settings.bare], check=True)
        (home / ".ready").touch()
    return python


def main() -> None:
    """Measure the libraries that are named."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("keys", nargs="+", choices=[*ENVIRONMENTS, "all"], metavar="key")
    keys = options.parse_args().keys
    for key in ENVIRONMENTS if "all" in keys else keys:
        script = HERE / f"measure_{key}.py"
        subprocess.run([environment(key), "-W", "ignore", script], check=True)


if __name__ == "__main__":
    main()
