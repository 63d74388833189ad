"""Files that are no tables of ours: what they are by their first bytes, and what to do."""

from __future__ import annotations

import re

from unskew.engine.files import InputFile
from unskew.errors import DataError

_SAVE = "save the table as CSV or Parquet"
_UNPACK = "unpack it first"
# First bytes, what such a file is, and what to do about it.
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"BZh", "a bzip2 file", "unpack it with bunzip2, or pack it with gzip"),
    (b"\xfd7zXZ\x00", "an xz file", "unpack it with unxz, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard file", "unpack it with unzstd, or pack it with gzip"),
    (b"\x04\x22\x4d\x18", "an LZ4 file", "unpack it with unlz4, or pack it with gzip"),
    (b"\x1f\x9d", "a file of compress (.Z)", "unpack it with uncompress, or pack it with gzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!", "a RAR archive", _UNPACK),
    (b"\xd0\xcf\x11\xe0", "an Excel workbook (.xls)", "save its sheet as CSV in UTF-8"),
    (b"ARROW1", "an Arrow (Feather) file", "read it with polars.read_ipc, and save it as Parquet"),
    (b"FEA1", "a Feather file", "read it with pandas.read_feather, and save it as Parquet"),
    (b"ORC", "an ORC file", "save it as Parquet"),
    (b"Obj\x01", "an Avro file", "save it as Parquet"),
    (b"\x89HDF", "an HDF5 file", _SAVE),
    (b"SQLite format 3", "an SQLite database", "export its table as CSV"),
    (b"MATLAB ", "a MATLAB file", "write user, item and rating as columns of a CSV file"),
    (b"\x93NUMPY", "a NumPy array", "write user, item and rating as columns of a CSV file"),
    (b"RDX", "an R data file", _SAVE),
    (b"%PDF", "a PDF document", _SAVE),
    (b"{\\rtf", "an RTF document", _SAVE),
)
_PAGE = re.compile(rb"\s*(<!doctype html|<html|<head|<body|<!--|<script)", re.IGNORECASE)
_XML = re.compile(rb"\s*<(\?xml|[a-z])", re.IGNORECASE)


def refuse_foreign(file: InputFile) -> None:
    """Refuse a file that is neither text nor Parquet: packed otherwise, a workbook, a page."""
    with file.raw() as raw:
        start = raw.read(1024)
    if start[:2] == b"\x1f\x8b":
        with file.open() as opened:
            start = opened.read(1024)
    elif file.path.suffix == ".gz" and start:
        _refuse(file, start)
        raise DataError(
            f"{file}: the name ends in .gz, but this is no gzip file: take the ending away if the "
            "file is unpacked already, or download it again"
        )
    _refuse(file, start)


def _refuse(file: InputFile, start: bytes) -> None:
    kind = _kind(start.removeprefix(b"\xef\xbb\xbf"))
    if kind is not None:
        what, remedy = kind
        raise DataError(f"{file}: this is {what}: {remedy}")


def _kind(start: bytes) -> tuple[str, str] | None:
    """Return what a file is and what to do; None where it may be a table."""
    if start.startswith(b"PK\x03\x04"):
        return _kind_of_zip(start)
    for mark, what, remedy in _KINDS:
        is_word = re.fullmatch(rb"[\w! ]+", mark)
        if start.startswith(mark) and not (is_word and _is_text(start)):
            return what, remedy
    if re.match(rb"\x80[\x02-\x05]", start):
        return "a Python pickle, which can run any program when it is read", _SAVE
    if start[257:262] == b"ustar":
        return "a tar archive", _UNPACK
    if _PAGE.match(start):
        return "a web page", "perhaps one to log in at; download the file itself"
    if _XML.match(start):
        return "an XML file", _SAVE
    return None


def _is_text(start: bytes) -> bool:
    """Tell whether bytes are printed text: a mark such as ORC may begin an id."""
    return not re.search(rb"[\x00-\x08\x0e-\x1f]", start)


def _kind_of_zip(start: bytes) -> tuple[str, str]:
    names = start[30:]
    if re.search(rb"xl/|\[Content_Types\]|_rels/", names):
        return "an Excel workbook (.xlsx)", "save its sheet as CSV in UTF-8"
    if b".npy" in names[:200]:
        return "an archive of NumPy arrays (.npz)", "write user, item and rating as columns of CSV"
    return "a zip archive", _UNPACK
