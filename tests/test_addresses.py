"""What of an address may be shown: nothing that is secret under any way to read it."""

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import unskew as us
from shared.examples import examples
from shared.remote_files import failing_web
from unskew.cli import main
from unskew.errors import (
    DataWarning,
    OutputError,
    UnskewError,
    address_name,
    is_address,
    scheme_of,
    shown_address,
    unflattened,
    without_credentials,
)
from unskew.runs import system_name


@pytest.mark.parametrize(
    ("address", "shown", "name"),
    [
        ("s3://b/a/r.parquet", "s3://b/a/r.parquet", "r.parquet"),
        ("S3://b/r.csv", "s3://b/r.csv", "r.csv"),
        (" s3://b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://KEY:SECRET@b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://KEY:SE/CR/ET@b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://b/me@home.csv", "s3://b/me@home.csv", "me@home.csv"),
        ("s3://b/day-?.parquet", "s3://b/day-?.parquet", "day-?.parquet"),
        ("s3://b/r.csv?X-Amz-Signature=SECRET", "s3://b/r.csv?…", "r.csv"),
        ("s3://arn:aws:s3:eu-1:123:accesspoint/a/r.csv",) * 2 + ("r.csv",),
        ("az://box/r.csv?sv=1&sig=SECRET", "az://box/r.csv?…", "r.csv"),
        ("abfs://box@account.dfs/r.csv", "abfs://box@account.dfs/r.csv", "r.csv"),
        ("abfs://box@account.dfs/a@b.csv",) * 2 + ("a@b.csv",),
        ("abfs://box:SECRET@account.dfs/r.csv", "abfs://account.dfs/r.csv", "r.csv"),
        ("https://me:SECRET@host:80/r.csv", "https://host:80/r.csv", "r.csv"),
        ("https://me:SE/CR@ET@host/r.csv", "https://host/r.csv", "r.csv"),
        ("https://me:SECRET%40host/r.csv", "https://host/r.csv", "r.csv"),
        ("https://SECRET@host/r.csv", "https://host/r.csv", "r.csv"),
        ("https://SECRET@host/a@b.csv", "https://b.csv", "b.csv"),
        ("https://me:SECRET", "https://…", None),
        ("https://me:SE?CRET@host/r.csv", "https://…", None),
        ("https://host/a@b.csv", "https://host/a@b.csv", "a@b.csv"),
        # The password may be 80/a, and the host b.csv.
        ("https://host:80/a@b.csv", "https://b.csv", "b.csv"),
        ("https://host/r.csv?sig=SECRET&x=1", "https://host/r.csv?…", "r.csv"),
        ("https://host/r.csv?to=me@x&sig=SECRET", "https://host/r.csv?…", "r.csv"),
        ("https://host/r.csv#SECRET", "https://host/r.csv?…", "r.csv"),
        ("https://host/r.csv%3Fsig=SECRET", "https://host/r.csv?…", "r.csv"),
        ("https://host/r.csv?sig=SECRET:item=sku", "https://host/r.csv?…", "r.csv"),
        ("https://[0:0:0:0:0:0:0:1]:80/r.csv",) * 2 + ("r.csv",),
        ("ftp://me:SECRET@host/r.csv", "ftp://host/r.csv", "r.csv"),
        ("simplecache::s3://KEY:SECRET@b/r.csv", "simplecache::s3://…", None),
        ("s3://b::reference://KEY:SECRET@b/r.csv", "s3://…", None),
        ("https://me:SE::CRET@host/r.csv", "https://…", None),
    ],
)
def test_addresses_are_shown_without_credentials(address, shown, name):
    assert shown_address(address) == shown
    assert shown_address(shown) == shown
    assert without_credentials(f"at {address.strip()}: bad") == f"at {shown}: bad"
    assert without_credentials(f"('{address.strip()}'), no") == f"('{shown}'), no"
    flat = without_credentials(str(Path(address.strip())))
    assert flat == shown.replace("://", ":/")
    if name is not None:
        assert address_name(address) == name
        assert system_name(address) == Path(name).stem


def test_a_password_with_a_blank_is_not_shown():
    text = "cannot read https://me:SE CR@ET@host/my file.csv: bad"
    assert without_credentials(text) == "cannot read https://host/my file.csv: bad"
    assert shown_address("https://me:SE CR@ET@host/my file.csv") == "https://host/my file.csv"


def test_addresses_and_paths():
    addresses = ("s3://b/x", "https://h/x", "memory://x", " s3://b", "zip::s3://b", "A_b://x")
    assert all(map(is_address, addresses))
    paths = ("r.csv", "a/b://c", "C:/x", "/s3://b", "::", "a::b.csv", "mine=s3://b/x", Path("x"))
    assert not any(map(is_address, paths))
    assert scheme_of(" S3://b") == "s3"
    assert unflattened(Path("zip::s3://KEY:SECRET@b/x")) == "zip::s3://…"
    assert unflattened(Path("a/s3:/b")) == unflattened("a::b.csv") == ""


@pytest.mark.parametrize(
    "text",
    [
        "ratio 3:4; a::b; C:\\x; see https://host/page.html, or write to me@host",
        "note: https://host:8786/x and tcp://host:8786",
        "the file a:/b/c is missing",
        "12:30 and/or 1::2::3",
    ],
)
def test_other_text_stays_as_it_is(text):
    assert without_credentials(text) == text


def test_long_texts_take_no_long_time():
    text = "a" * 200_000 + " ://" + "a::" * 50_000 + "x://" * 20_000
    assert len(without_credentials(text)) <= len(text)


def test_errors_and_warnings_hold_no_credentials():
    for kind in (UnskewError, us.DataError, us.SettingError, OutputError, DataWarning):
        problem = kind("https://me:SECRET@host/r.csv?sig=SECRET: bad")
        assert str(problem) == "https://host/r.csv?…: bad"
    assert repr(us.DataError("s3://k:SECRET@b")) == "DataError('s3://b')"
    assert us.DataError("at s3://k:SECRET@b").on_command_line(()) == "at s3://b"


# Whatever the credentials are

MARK = "Zq9xK"
"""Stands in every secret, and must not be seen."""
SCHEMES = st.sampled_from(
    ("s3", "s3a", "gs", "az", "abfs", "abfss", "http", "https", "HTTPS", "ftp", "memory", "ssh")
) | st.from_regex(r"[a-z][a-z0-9+.-]{1,8}", fullmatch=True)
ANY = "@/:?#%&=+;,'\"()[]{}<>|\\~!$*`^-_.0123456789abcXYZé\N{SNOWMAN}"


def secrets(characters=ANY):
    """Return secrets: the mark among other characters."""
    around = st.text(characters, max_size=8)
    return st.builds(lambda a, b: f"{a}{MARK}{b}", around, around)


WORDS = st.text("abcXYZ019._-", min_size=1, max_size=6)
NAMES = st.text("abcXYZ019._-é%$!", max_size=6)


@st.composite
def addresses(draw):
    """Return an address with a secret somewhere."""
    scheme, host = draw(SCHEMES), draw(WORDS)
    port = draw(st.sampled_from(("", ":80", ":8786")))
    path = draw(st.sampled_from(("", "/", "/r.csv", "/a/b@c/r.parquet", "/day-?.parquet")))
    where = draw(st.sampled_from(("password", "token", "query", "fragment", "user")))
    secret = draw(secrets())
    start = draw(st.sampled_from(("", "", "simplecache::", "zip::a::", " ")))
    if where == "password":
        rest = f"{draw(NAMES)}:{secret}@{host}{port}{path}"
    elif where == "user":
        rest = f"{secret}:{draw(NAMES)}@{host}{port}{path}"
    elif where == "token":
        rest = f"{draw(secrets(ANY.replace('/', '')))}@{host}{port}{path}"
    else:
        mark = "?" if where == "query" else "#"
        rest = f"{host}{port}{path}{mark}{draw(NAMES)}={secret}"
    chain = draw(st.sampled_from(("", "", "", "::s3://b/x", "::zip://k:pw@x")))
    return f"{start}{scheme}://{rest}{chain}"


@given(addresses(), st.sampled_from(("{}", "'{}'", '"{}",', "({})", "<{}>: x", "a={}; b", "\\{}")))
@examples(1500)
@example("https://a:'Zq9xK@h", "'{}'")
@example("https://a:1/Zq9xK@h", "{}")
@example("https://Zq9xK:a@h/x", "{}")
def test_no_secret_is_shown(address, frame):
    assert MARK not in shown_address(address)
    assert MARK not in address_name(address)
    assert MARK not in system_name(address)
    assert MARK not in without_credentials(f"cannot read {frame.format(address.strip())} now")
    assert MARK not in without_credentials(frame.format(Path(address.strip())))
    assert MARK not in without_credentials(f"[Errno 2] no such file: {Path(address)!r}")
    assert MARK not in unflattened(Path(address))


@pytest.fixture(scope="module")
def broken_web():
    """Let every web address fail with errors that repeat it."""
    pytest.importorskip("fsspec")
    with pytest.MonkeyPatch.context() as patch:
        failing_web(patch)
        yield


@given(addresses())
@examples(300)
def test_no_error_of_reading_shows_a_secret(broken_web, address):
    calls = (
        us.read_ratings,
        us.read_run,
        us.load,
        us.read_events,
        lambda one: us.evaluate(one, {"a": one}, "P@1", liked=4),
        lambda one: us.read_ratings(Path(one)),
        lambda one: us.evaluation.evaluate_files(one, one, output=one),
    )
    for call in calls:
        with pytest.raises(UnskewError) as failed:
            call(address)
        assert MARK not in f"{failed.value} {failed.value!r}"
        assert failed.value.__cause__ is None


COMMANDS = [
    ("data", "info", "ADDRESS"),
    ("evaluate", "-j", "ADDRESS", "-r", "mine=ADDRESS", "-m", "P@1", "--liked", "4"),
    ("compare", "-j", "a.csv", "-r", "ADDRESS", "-r", "b=ADDRESS"),
    ("audit", "ADDRESS", "-o", "report.html"),
    ("gate", "-j", "ADDRESS", "--candidate", "ADDRESS", "--production", "ADDRESS"),
    ("split", "ADDRESS", "-o", "out"),
    ("run", "ADDRESS"),
    ("evaluate", "-j", "ADDRESS", "-r", "ADDRESS", "--on-disk", "ADDRESS"),
]


@given(addresses(), st.sampled_from(COMMANDS))
@examples(150)
def test_no_command_shows_a_secret(broken_web, tmp_path_factory, address, words):
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.chdir(tmp_path_factory.getbasetemp())
        patch.setenv("UNSKEW_DEBUG", "1")
        with pytest.raises(SystemExit) as stop:
            main([word.replace("ADDRESS", address) for word in words])
    assert stop.value.code in (1, 2)
    assert MARK not in printed.getvalue()
