"""Measure libraries on the fixtures: each in an environment of its own, values into one file each.

python benchmarks/conventions/measure.py ranx trec_eval      some libraries
python benchmarks/conventions/measure.py all                 every library of the table

The environment of a library is `.venv-peers-<key>`, made with pip at first use (`--renew` makes it
again). `measure_<key>.py` then runs in it and writes `tests/conventions/measured/<key>.json`.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@dataclass(frozen=True)
class Environment:
    """What a library needs to run."""

    pins: tuple[str, ...]
    python: str | None = None
    """The Python, as `3.10`, if the default one will not do."""
    no_deps: tuple[str, ...] = ()
    """Packages to install without what they require."""


ENVIRONMENTS = {
    "trec_eval": Environment(("pytrec_eval-terrier==0.5.11", "numpy<3")),
    "ir_measures": Environment(("ir_measures==0.4.3",)),
    "ranx": Environment(("ranx==0.3.21",)),
    "rectools": Environment(("rectools==0.19.0", "numpy<2", "pandas<3", "pyarrow<20")),
    "sklearn": Environment(("scikit-learn==1.9.1",)),
    "torchmetrics": Environment(("torch==2.13.0", "torchmetrics==1.9.0")),
    "lenskit": Environment(("lenskit==2025.8.1",)),
    "lenskit_old": Environment(("lenskit==0.14.4",), python="3.10"),
}


def interpreter(version: str | None) -> str:
    """Return a Python of a version: on the path, or among those of pyenv."""
    if version is None:
        return sys.executable
    on_path = shutil.which(f"python{version}")
    if on_path and subprocess.run([on_path, "-c", ""], capture_output=True).returncode == 0:
        return on_path
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*"))
    if not homes:
        sys.exit(f"Python {version} is needed, and not on this machine")
    return str(homes[-1] / "bin" / "python")


def environment(key: str, renew: bool = False) -> Path:
    """Return the Python of a library's environment; make it at first use."""
    needs = ENVIRONMENTS[key]
    home = ROOT / f".venv-peers-{key}"
    python = home / "bin" / "python"
    if renew or not (home / ".ready").exists():
        print(f"making {home.name} …", flush=True)
        subprocess.run([interpreter(needs.python), "-m", "venv", "--clear", home], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        if needs.pins:
            subprocess.run([*install, *needs.pins], check=True)
        if needs.no_deps:
            subprocess.run([*install, "--no-deps", *needs.no_deps], check=True)
        (home / ".ready").touch()
    return python


def main() -> None:
    """Measure the libraries asked for, one after the other."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("keys", nargs="+", choices=[*ENVIRONMENTS, "all"], metavar="key")
    options.add_argument("--renew", action="store_true", help="make the environment again")
    asked = options.parse_args()
    for key in ENVIRONMENTS if "all" in asked.keys else asked.keys:
        python = environment(key, asked.renew)
        subprocess.run([python, "-W", "ignore", HERE / f"measure_{key}.py"], check=True)


if __name__ == "__main__":
    main()
