"""The footer of a Parquet file: how large its row groups are, which polars does not tell.

Whoever reads a row of a row group holds the compressed columns of all of it. The footer is written
in Thrift's compact protocol: https://parquet.apache.org/docs/file-format/metadata/.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

_MAGIC = b"PAR1"
# Fields of the footer by their numbers, as parquet.thrift has them.
_ROW_GROUPS, _COLUMNS, _COLUMN, _PATH, _COMPRESSED = 4, 1, 3, 3, 7


def largest_row_group(path: str, columns: Collection[str]) -> int:
    """Return the bytes of some columns in the largest row group, compressed as they are.

    Where the footer cannot be understood that is no more than the size of the file.
    """
    size = Path(path).stat().st_size
    try:
        groups = _footer(Path(path), size)[_ROW_GROUPS]
        return max((_compressed(group, columns) for group in groups), default=0)
    except (KeyError, IndexError, TypeError, ValueError, struct.error):
        return size


def _compressed(group: dict[int, Any], columns: Collection[str]) -> int:
    chunks = [chunk[_COLUMN] for chunk in group[_COLUMNS]]
    return sum(one[_COMPRESSED] for one in chunks if one[_PATH][0].decode() in columns)


def _footer(path: Path, size: int) -> dict[int, Any]:
    with path.open("rb") as file:
        file.seek(max(size - 8, 0))
        (length,) = struct.unpack("<I", file.read(4))
        if file.read(4) != _MAGIC or length > size:
            raise ValueError("no footer")
        file.seek(size - 8 - length)
        return _Compact(file.read(length)).struct()


class _Compact:
    """Reads values of Thrift's compact protocol from bytes, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0
        self.readers: dict[int, Callable[[], Any]] = {
            3: self.byte,
            4: self.integer,
            5: self.integer,
            6: self.integer,
            7: self.double,
            8: self.text,
            9: self.list,
            10: self.list,
            11: self.map,
            12: self.struct,
        }

    def byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def integer(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def double(self) -> float:
        self.at += 8
        return float(struct.unpack_from("<d", self.content, self.at - 8)[0])

    def text(self) -> bytes:
        size = self.unsigned()
        self.at += size
        return self.content[self.at - size : self.at]

    def list(self) -> list[Any]:
        head = self.byte()
        size = head >> 4 if head >> 4 < 15 else self.unsigned()
        read = self.readers.get(head & 15, self.byte)  # true and false are bytes here
        return [read() for _ in range(size)]

    def map(self) -> dict[Any, Any]:
        size = self.unsigned()
        if not size:
            return {}
        kinds = self.byte()
        key, value = (self.readers.get(kind, self.byte) for kind in (kinds >> 4, kinds & 15))
        return {key(): value() for _ in range(size)}

    def struct(self) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            kind = head & 15
            fields[number] = self.readers[kind]() if kind > 2 else kind == 1
        return fields
