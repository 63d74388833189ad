"""Text that is slow to make and always the same, kept in the cache folder of the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from unskew.engine.files import read_sealed, write_sealed
from unskew.engine.store import digest_of
from unskew.errors import UnskewError


def cached(kind: str, key: Mapping[str, object], make: Callable[[], str]) -> str:
    """Return a text: from the cache folder, or made and put there.

    A folder that cannot be used, and a file that was changed, cost time and nothing else. The text
    of another key of the same kind is removed: it is of an earlier version.

    Parameters
    ----------
    kind
        What it is, as a part of the file's name.
    key
        All that determines the text.
    make
        Makes it.

    Examples
    --------
    >>> from unskew.engine.cached_text import cached
    >>> cached("example", {"version": 1}, lambda: "slow to make")
    'slow to make'
    """
    try:
        path = folder() / f"{kind}-{digest_of(dict(key))}.json"
        return str(read_sealed(path)["text"])
    except RuntimeError:  # no home folder
        return make()
    except (OSError, ValueError, KeyError):
        text = make()
    with suppress(OSError, UnskewError):
        write_sealed(path, {"text": text})
        for other in path.parent.glob(f"{kind}-*.json"):
            if other.name != path.name:
                other.unlink()
    return text


def folder() -> Path:
    """Return the folder: `unskew` in `XDG_CACHE_HOME`, else in `.cache` of the user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unskew"
