"""Compressed files: unpacked in blocks, and refused when they unpack to more than text does."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from typing import Any, BinaryIO, cast

from unskew.errors import DataError

BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
FREE = 32 << 20
"""Bytes that a file may unpack to, however small it is."""
RATIO = 100
"""Beyond that, how many times its own size: tables of ratings and lists stay below 25."""

_OPENERS = {b"\x1f\x8b": gzip.GzipFile, b"BZh": bz2.BZ2File, b"\xfd7zXZ\x00": lzma.LZMAFile}
# Polars would unpack these without a limit.
_UNKNOWN = {
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"\x78\x01": "zlib",
    b"\x78\x9c": "zlib",
    b"\x78\xda": "zlib",
}
MAGIC = 6
"""Bytes that tell how a file is compressed."""


def is_gzip(name: object, head: bytes) -> bool:
    """Tell a gzip file by its first bytes; refuse what is compressed in a way that is not read."""
    for magic, kind in _UNKNOWN.items():
        if head.startswith(magic):
            raise DataError(
                f"{name}: is compressed by {kind}, which is not read; unpack it first, or compress "
                "it with gzip"
            )
    return head.startswith(b"\x1f\x8b")


def is_too_large(size: int, packed: int) -> bool:
    """Tell whether a file of `packed` bytes may not unpack to `size` bytes."""
    return size > FREE and size > RATIO * packed


def refusal(name: object) -> DataError:
    """Return the error of a file that unpacks to too much."""
    return DataError(
        f"{name}: refused, because it unpacks to more than {RATIO} times its size, as no table "
        "of ratings or lists does; if you trust it, unpack it by other means"
    )


class Unpacked(io.RawIOBase):
    """What a gzip, bz2 or xz file holds: read in blocks, refused as soon as it is too much.

    `DataError` then, after at most `FREE` bytes or `RATIO` times what was read of the file.
    """

    def __init__(self, name: object, packed: BinaryIO) -> None:
        """Start to unpack.

        Parameters
        ----------
        name
            What messages call the file.
        packed
            The compressed file, opened; closed with this.
        """
        self._name, self._packed = name, packed
        head = packed.read(MAGIC)
        packed.seek(0)
        opener: Any = next(each for magic, each in _OPENERS.items() if head.startswith(magic))
        named = {"fileobj": packed} if opener is gzip.GzipFile else {"filename": packed}
        self._stream = opener(mode="rb", **named)
        self._most, self._consumed = 0, 0

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that a position can be gone to: forwards by reading, backwards by starting anew."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return up to so many bytes; all that are left if negative."""
        if size < 0:
            return self.readall()
        block = cast(bytes, self._stream.read(size))
        self._most = max(self._most, self._stream.tell())
        self._consumed = max(self._consumed, self._packed.tell())
        if is_too_large(self._most, self._consumed):
            raise refusal(self._name)
        return block

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer; return how many bytes it got."""
        block = self.read(min(len(buffer), BLOCK))
        buffer[: len(block)] = block
        return len(block)

    def readall(self) -> bytes:
        """Return all that is left."""
        return b"".join(iter(lambda: self.read(BLOCK), b""))

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a position, counted from the start."""
        if whence != io.SEEK_SET:
            raise io.UnsupportedOperation("only positions from the start")
        if offset < self._stream.tell():
            self._stream.seek(offset)
        while (left := offset - self._stream.tell()) > 0 and self.read(min(left, BLOCK)):
            pass
        return self.tell()

    def tell(self) -> int:
        """Return the position."""
        return int(self._stream.tell())

    def close(self) -> None:
        """Close both files."""
        if not self.closed:
            self._stream.close()
            self._packed.close()
        super().close()


def is_compressed(head: bytes) -> bool:
    """Tell by its first bytes whether `Unpacked` reads a file."""
    return head.startswith(tuple(_OPENERS))


def unpacked(name: object, packed: BinaryIO) -> BinaryIO:
    """Return what a compressed file holds, buffered."""
    return cast(BinaryIO, io.BufferedReader(Unpacked(name, packed), BLOCK))
