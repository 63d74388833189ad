"""Compressed files and archives that unpack to far too much: refused early, in little memory."""

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from functools import partial

import pytest

import unskew as us
from unskew.data.formats import download
from unskew.data.formats import download as archives
from unskew.engine import unpacking
from unskew.engine.files import InputFile

MEGABYTE = 1 << 20
MOST = 100
"""Megabytes that a refusal may take."""

# The peak of the process up to each refusal, over what the imports took.
MEASURE = """
import json, resource, sys
from pathlib import Path
import unskew as us
from unskew.data.formats.download import unpack
us.read_ratings({"user": [1], "item": [2], "rating": [3]})  # loads what reading needs
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in map(Path, sys.argv[2:]):
    try:
        unpack(path, path.parent / "out") if sys.argv[1] == "archive" else us.read_ratings(path)
    except us.DataError as problem:
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(json.dumps([grown / (2**20 if sys.platform == "darwin" else 2**10), str(problem)]))
"""


def refusals(kind, paths):
    """Return how many megabytes refusals took, one after the other in one process, and words."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, kind, *map(str, paths)], capture_output=True, check=True
    )
    assert not any((path.parent / "out").exists() for path in paths)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(paths)
    return lines


def refused(kind, path):
    """Return how many megabytes a refusal took, and its words."""
    return refusals(kind, [path])[0]


def header(name, kind=tarfile.REGTYPE, size=0):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def many_files():
    yield from [b"".join(header(f"f{number}") for number in range(1000))] * 150


def long_name():
    yield header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 300 * MEGABYTE)
    yield from [b"a" * MEGABYTE] * 300


def long_properties():
    yield header("pax", tarfile.XHDTYPE, 300 * MEGABYTE)
    yield from [b"10 a=bcde\n" * 100_000] * 300


def sparse_map():
    """A map of holes that goes on and on: 21 of them in each block."""
    first = bytearray(header("sparse", tarfile.GNUTYPE_SPARSE))
    first[482] = 1
    first[148:156] = b" " * 8
    first[148:156] = b"%06o\0 " % sum(first[:512])
    holes = (b"%011o\0" % 1 + b"%011o\0" % 1) * 21 + b"\1" + b"\0" * 7
    yield bytes(first)
    yield from [holes * 2048] * 60


def properties_of_all():
    """Properties of all files: each file would keep a copy of them."""
    records = b"".join(b"17 k%08d=abc\n" % one for one in range(900))
    block = records.ljust(-(-len(records) // 512) * 512, b"\0")
    yield header("g", tarfile.XGLTYPE, len(records)) + block
    yield from [b"".join(header(f"f{number}") for number in range(1000))] * 6


def growing_properties_of_all():
    for number in range(40):
        records = b"".join(b"18 k%02d%07d=abc\n" % (number, one) for one in range(50_000))
        block = records.ljust(-(-len(records) // 512) * 512, b"\0")
        yield header("g", tarfile.XGLTYPE, len(records)) + block + header(f"f{number}")


def zeros(count=300):
    yield header("ratings.dat", size=count * MEGABYTE)
    yield from [bytes(MEGABYTE)] * count


def zeros_at_the_end():
    yield header("ratings.dat") + bytes(1024)
    yield from [bytes(MEGABYTE)] * 300


def too_much():
    """More than is allowed, as its header says: nothing of it has to be unpacked."""
    yield header("ratings.dat", size=33 << 30) + bytes(MEGABYTE)


def packed(path, blocks, opener=gzip.open):
    with opener(path, "wb") as file:
        for block in blocks:
            file.write(block)
    return path


TARS = {
    many_files: "holds more than 20,000 files",
    long_name: "the description of its files takes more than 1,048,576 bytes",
    long_properties: "the description of its files takes more than 1,048,576 bytes",
    sparse_map: "the description of its files takes more than 1,048,576 bytes",
    properties_of_all: "'f0' is in it twice",
    growing_properties_of_all: "headers give more than 1,000 properties to all files",
    zeros: "unpacks to more than 100 times its size",
    zeros_at_the_end: "unpacks to more than 100 times its size",
    too_much: "it unpacks to 35,433,480,192 bytes or more, and at most 34,359,738,368 are allowed",
}


@pytest.fixture(scope="module")
def refused_tars(tmp_path_factory):
    """Return what refusals of all kinds took, and their words."""
    home = tmp_path_factory.mktemp("tars")
    quickly = partial(gzip.open, compresslevel=1)
    paths = {one: packed(home / f"{one.__name__}.tar.gz", one(), quickly) for one in TARS}
    assert max(path.stat().st_size for path in paths.values()) < 5 * MEGABYTE
    return dict(zip(paths, refusals("archive", [*paths.values()]), strict=True))


@pytest.mark.parametrize("blocks", TARS, ids=lambda one: one.__name__)
def test_tar_bombs(refused_tars, blocks):
    size, words = refused_tars[blocks]
    assert TARS[blocks] in words
    assert size < MOST


def test_tar_bombs_of_other_packers(tmp_path):
    openers = (bz2.open, lzma.open)
    paths = [packed(tmp_path / f"{one.__module__}.tar", zeros(80), one) for one in openers]
    paths.append(packed(tmp_path / "plain.tar", many_files(), open))
    reasons = (zeros, zeros, many_files)
    for reason, (size, words) in zip(reasons, refusals("archive", paths), strict=True):
        assert TARS[reason] in words
        assert size < MOST


def test_a_zip_bomb(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ratings.dat", bytes(300 * MEGABYTE))
    size, words = refused("archive", tmp_path / "bomb.zip")
    assert "unpacks to more than 100 times its size" in words
    assert size < MOST


def list_of_zip(count):
    """A zip that holds nothing but a list of files, all at the same place."""
    local = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"a"
    numbers = (20, 20, 0, 0, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0)
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", *numbers)
    listed = b"".join(entry + b"%05x" % (one % 0xFFFFF) for one in range(count))
    short = min(count, 0xFFFF)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, short, short, len(listed), len(local), 0)
    return local + listed + end


def test_zips_of_many_files(tmp_path):
    reasons = {
        50_000: "it holds more than 20,000 files",
        600_000: "the description of its files takes more than 4,194,304 bytes",
    }
    for count in reasons:
        (tmp_path / f"{count}.zip").write_bytes(list_of_zip(count))
    answers = refusals("archive", [tmp_path / f"{count}.zip" for count in reasons])
    for why, (size, words) in zip(reasons.values(), answers, strict=True):
        assert why in words
        assert size < MOST


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_of_other_packers(tmp_path, method):
    """Python unpacks a block of them as a whole: 700 bytes may become 300 megabytes."""
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", method) as file:
        file.writestr("ratings.dat", "1::2::3\n")
    with pytest.raises(us.DataError, match=r"'ratings\.dat' is not compressed by deflate"):
        archives.unpack(tmp_path / "bomb.zip", tmp_path / "out")


def test_a_long_name_in_an_archive(tmp_path):
    names = {"a" * 255: "1", "a/" * 200 + "b": "2"}
    with tarfile.open(tmp_path / "long.tar", "w") as file:
        for name in names:
            file.addfile(tarfile.TarInfo(name))
    with pytest.raises(us.DataError, match="has more than 255 characters in its name"):
        archives.unpack(tmp_path / "long.tar", tmp_path / "out")


# Ratings


def test_a_gzip_bomb_of_ratings(tmp_path):
    rows = [b"user,item,rating\n", *[b"1,1,5\n" * 100_000] * 500]
    path = packed(tmp_path / "ratings.csv.gz", rows)
    assert path.stat().st_size < MEGABYTE
    size, words = refused("ratings", path)
    assert words.startswith(f"{path}: refused, because it unpacks to more than 100 times its size")
    assert words.endswith("if you trust it, unpack it by other means")
    assert size < MOST


@pytest.mark.parametrize("text", [b"1::1::5\n", b"1 0 1 5\n", b"1\t1\t5\n", b"1" * 50])
def test_gzip_bombs_of_other_formats(tmp_path, text, monkeypatch):
    monkeypatch.setattr(unpacking, "FREE", MEGABYTE)
    path = packed(tmp_path / "ratings.gz", [text * 200_000])
    with pytest.raises(us.DataError, match="unpacks to more than 100 times its size"):
        us.read_ratings(path)


def test_a_gzip_bomb_among_named_data(tmp_path, monkeypatch):
    """A file of a named format, and one that is downloaded as it is."""
    monkeypatch.setattr(unpacking, "FREE", MEGABYTE)
    bomb = packed(tmp_path / "there.gz", [bytes(4 * MEGABYTE)])
    with pytest.raises(us.DataError, match="unpacks to more than 100 times its size"):
        download.install(bomb.as_uri(), tmp_path / "here", lambda _: None)
    assert not (tmp_path / "here").exists()
    with pytest.raises(us.DataError, match="unpacks to more"), InputFile.of(bomb).open() as file:
        file.readlines()


def test_a_small_file_may_unpack_to_anything_small(tmp_path):
    """A table of one repeated row is odd, but no danger."""
    rows = "".join(f"{user},7,5\n" for user in range(300_000))
    path = packed(tmp_path / "ratings.csv.gz", [f"user,item,rating\n{rows}".encode()])
    assert len(us.read_ratings(path)) == 300_000


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (zlib.compress(b"user,item\n1,2\n", 1), "zlib"),
        (zlib.compress(b"user,item\n1,2\n", 6), "zlib"),
        (zlib.compress(b"user,item\n1,2\n", 9), "zlib"),
        (b"\x28\xb5\x2f\xfd\x01\x02", "Zstandard"),
    ],
)
def test_what_polars_would_unpack_without_a_limit(tmp_path, content, kind):
    (tmp_path / "ratings.csv").write_bytes(content)
    with pytest.raises(us.DataError, match=f"{kind}.* unpack"):
        us.read_ratings(tmp_path / "ratings.csv")


# The streams


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
def test_unpacked_streams_are_files(module):
    content = bytes(range(256)) * 20_000
    packed_bytes = module.compress(content)
    with unpacking.Unpacked("x", io.BytesIO(packed_bytes)) as stream:
        assert stream.read(10) == content[:10]
        assert stream.seek(4_000_000) == 4_000_000
        assert stream.read(5) == content[4_000_000:4_000_005]
        assert stream.seek(3) == 3
        assert stream.read() == content[3:]
        assert stream.seek(10**9) == len(content)
        assert stream.read(1) == b""
    lines = unpacking.unpacked("x", io.BytesIO(module.compress(b"a\nb\nc")))
    assert lines.readlines() == [b"a\n", b"b\n", b"c"]


def test_limits_are_those_that_are_documented():
    assert (archives.UNPACKED_LIMIT, archives.MOST_FILES) == (32 << 30, 20_000)
    assert (unpacking.FREE, unpacking.RATIO) == (32 << 20, 100)
    assert not unpacking.is_too_large(32 << 20, 1)
    assert not unpacking.is_too_large(100 << 20, 1 << 20)
    assert unpacking.is_too_large((100 << 20) + 1, 1 << 20)
