"""Real data, in the folder that UNSKEW_DATA names."""

import os
from pathlib import Path

import pytest


def real_data(name: str) -> Path:
    """Return a real data file, or skip the test, saying what is missing."""
    home = os.environ.get("UNSKEW_DATA")
    if not home:
        pytest.skip(f"needs {name}: set UNSKEW_DATA to a folder that holds it")
    path = Path(home) / name
    if not path.exists():
        pytest.skip(f"needs {path}")
    return path


def only(folder: Path, *names: str) -> Path:
    """Return a data folder that holds these data sets alone: others would be studied, too."""
    for name in names:
        (folder / name).symlink_to(real_data(name), target_is_directory=True)
    return folder
