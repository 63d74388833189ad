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
    """A Python, or a version of it, as `3.10`."""


ENVIRONMENTS = {
    "trec_eval": Environment(("pytrec_eval-terrier==0.5.11", "numpy<3")),
    "ir_measures": Environment(("ir_measures==0.4.3",)),
    "ranx": Environment(("ranx==0.3.21",)),
    "rectools": Environment(("rectools==0.19.0", "numpy<2", "pandas<3", "pyarrow<20")),
    "sklearn": Environment(("scikit-learn==1.9.1",)),
    "torchmetrics": Environment(("torch==2.13.0", "torchmetrics==1.9.0")),
    "lenskit": Environment(("lenskit==2025.8.1",)),
    "lenskit_old": Environment(("lenskit==0.14.4",), python="3.10"),
    "recpack": Environment(
        ("numpy<2", "scipy<1.14", "pandas<3", "scikit-learn<1.6", "pyyaml", "tqdm"),
        ("recpack==0.3.6",),
    ),
    "recommenders": Environment(
        ("numpy<2", "pandas<3", "scikit-learn<1.6"), ("recommenders==1.2.1",)
    ),
    "replay": Environment(
        ("numpy<2", "pandas<3", "polars<2", "scipy", "tqdm"), ("replay-rec==0.22.0",)
    ),
    "mlflow": Environment(("numpy<3", "pandas<3", "scikit-learn==1.7.2"), ("mlflow==3.18.0",)),
    "cornac": Environment(("numpy<3", "scipy", "tqdm", "powerlaw"), ("cornac==3.0.1",)),
    "polars_ds": Environment(("polars<2", "numpy<3"), ("polars-ds==0.13.0",)),
    "omnirec": Environment(("numpy<3", "pandas<3", "rich"), ("omnirec==1.1.0",), python="3.12"),
    "recbole": Environment(("torch==2.13.0", "numpy<3", "scikit-learn"), ("recbole==1.2.1",)),
    "warprec": Environment(
        ("torch==2.13.0", "torchmetrics==1.9.0", "numpy<3", "pydantic"), ("warprec==2.2.8",)
    ),
    "evidently": Environment(("evidently==0.7.23", "pandas<3")),
}


def interpreter(python: str) -> str:
    """Return a Python of a version, on the path or among those of pyenv; a path as it is."""
    if not python.replace(".", "").isdigit():
        return python
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{python}.*"))
    return str(homes[-1] / "bin" / "python") if homes else f"python{python}"


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
            subprocess.run(
                [interpreter(settings.python), "-m", "venv", "--clear", home], check=True
            )
        install = [python, "-m", "pip", "install", "--quiet"]
        if settings.requirements:
            subprocess.run([*install, *settings.requirements], check=True)
        if settings.bare:
            options = ["--no-deps", "--ignore-requires-python"]
            subprocess.run([*install, *options, *settings.bare], check=True)
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
