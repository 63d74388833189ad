"""Ratings and lists in all formats, for tests that read them from elsewhere."""

import gzip
import io
from urllib.parse import quote, unquote, urlsplit

import polars as pl

ROWS = pl.DataFrame(
    {
        "user": [u for u in range(1, 9) for i in range(1, 7)],
        "item": [i for u in range(1, 9) for i in range(1, 7)],
        "rating": [u * i % 5 + 1 for u in range(1, 9) for i in range(1, 7)],
    }
)
LISTS = ROWS.select("user", "item", rank="item")


def as_parquet(frame):
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def files():
    """Return the same ratings in all formats, and lists."""
    days = {f"days/day-{n}.parquet": as_parquet(f) for n, f in enumerate(ROWS.iter_slices(20))}
    return {
        "r.parquet": as_parquet(ROWS),
        "r.csv": ROWS.write_csv().encode(),
        "r.tsv.gz": gzip.compress(ROWS.write_csv(separator="\t").encode()),
        "plain": ROWS.write_csv().encode(),
        "lists.parquet": as_parquet(LISTS),
        **days,
        "days/_SUCCESS": b"done",
        "days/_old/day-9.parquet": b"not read",
    }


SEVERAL = ("r.parquet", "r.csv", "r.tsv.gz", "days", "days/", "days/day-*.parquet")


def same(a, b):
    return all(
        (getattr(a, name) == getattr(b, name)).all() for name in ("user", "item", "value")
    ) and a.users.values.equals(b.users.values)


def web_files(monkeypatch, folder):
    """Serve the files of a folder as https://…/NAME, whichever credentials the address has."""
    from fsspec.registry import _registry
    from fsspec.spec import AbstractFileSystem

    class Web(AbstractFileSystem):
        protocol = "https"
        cachable = False

        def _file(self, address):
            path = folder / urlsplit(address).path.rpartition("/")[2]
            if not path.is_file():
                raise FileNotFoundError(address)
            return path

        @classmethod
        def _strip_protocol(cls, path):
            return path

        def info(self, path, **_):
            return {"name": path, "size": self._file(path).stat().st_size, "type": "file"}

        def _open(self, path, *_, **__):
            return self._file(path).open("rb")

    monkeypatch.setitem(_registry, "https", Web)


def failing_web(monkeypatch):
    """Let every address of the web fail, with errors that repeat it."""
    from fsspec.registry import _registry
    from fsspec.spec import AbstractFileSystem

    class Web(AbstractFileSystem):
        cachable = False
        protocol = "https"

        @classmethod
        def _strip_protocol(cls, path):
            return path

        def info(self, path, **_):
            bare = path.partition("://")[2]
            raise OSError(f"cannot open {path!r}, {bare}, {unquote(bare)}, {quote(bare)}")

    for scheme in ("http", "https"):
        monkeypatch.setitem(_registry, scheme, Web)
