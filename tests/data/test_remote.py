"""Files at addresses: read as files are, once, with clear errors, and no credential is shown."""

import io
import sys
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

import unskew as us
from shared.remote_files import LISTS, ROWS, SEVERAL, as_parquet, files, same
from unskew.auditing.page.reproduction import with_files
from unskew.cli.files import split_named_source, split_source
from unskew.engine import remote
from unskew.engine.files import replacing, replacing_folder
from unskew.engine.store import Store
from unskew.evaluation.on_disk.parquet import scan

# Addresses


REFUSED = [
    "reference://x.json",
    "REFERENCE://x.json",
    "memory://x.csv",
    "file:///etc/passwd",
    "local://etc/passwd",
    "github://org:repo@main/x.csv",
    "hdfs://host/x.csv",
    "sftp://host/x.csv",
    "ssh://host/x.csv",
    "zip://x.csv",
    "dask://x.csv",
    "data://x.csv",
    "hf://datasets/x.parquet",
    "nix://b/x.csv",
]
CHAINED = [
    "simplecache::s3://b/x.csv",
    "filecache::memory://x.csv",
    "reference://x::memory://y",
    "s3://a::reference://b",
    "https://host/x.csv::file:///etc/passwd",
    "zip://x.csv::/tmp/x.zip",
    "blockcache::dask::https://host/x",
    " simplecache::s3://b/x.csv",
    "https://[::1]/x.csv",
]


def readers(address, folder):
    """Return every way by which an address can be given in Python."""
    from unskew.data.read.tables import read_table
    from unskew.experiment.execution import data_of

    good = ROWS.head(6)
    lists = LISTS.head(6)
    return [
        lambda: us.read_ratings(address),
        lambda: us.read_ratings(address, format="parquet"),
        lambda: us.read_run(address),
        lambda: us.read_events(address),
        lambda: us.load(address),
        lambda: us.evaluate(address, {"a": lists}, "P@1", liked=4),
        lambda: us.evaluate(good, {"a": address}, "P@1", liked=4),
        lambda: us.evaluate(good, [address], "P@1", liked=4),
        lambda: us.audit(address),
        lambda: us.evaluation.evaluate_files(address, "x.parquet", output=f"{folder}/out"),
        lambda: us.evaluation.evaluate_files([address], {"a": address}, output=f"{folder}/out"),
        lambda: data_of({"file": address}, Path(folder)),
        lambda: data_of({"file": address, "log": True}, Path(folder)),
        lambda: read_table(address),
    ]


PLAN = """
metrics = ["P@2"]
[relevance]
liked = 4
[[split]]
protocol = "random"
[[targets]]
design = "all-items"
[[algorithm]]
name = "popularity"
"""


@pytest.mark.parametrize("address", REFUSED)
def test_only_listed_schemes_are_opened(address, tmp_path, no_fsspec):
    scheme = address.partition("://")[0].lower()
    allowed = "s3://, s3a://, gs://, gcs://, az://, abfs://, abfss://, http://, https://"
    for read in readers(address, tmp_path):
        with pytest.raises(
            us.DataError, match=f"{scheme}:// addresses are not opened; .*{allowed}"
        ):
            read()


@pytest.mark.parametrize("address", CHAINED)
def test_addresses_are_not_chained(address, tmp_path, no_fsspec):
    for read in readers(address, tmp_path):
        with pytest.raises(us.DataError, match="an address with '::' is not opened"):
            read()


@pytest.fixture
def no_fsspec(monkeypatch):
    """Fail if fsspec, or polars with an address, is asked for anything."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "fsspec"]:
        monkeypatch.delitem(sys.modules, name)

    class Finder:
        def find_spec(self, name, *_):
            assert name.partition(".")[0] != "fsspec", "fsspec is loaded before the refusal"

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])


@pytest.mark.parametrize("address", ["reference://x::memory://y", "file:///etc/passwd"])
def test_commands_refuse_what_is_not_listed(call, address, files, no_fsspec):
    test, mine = str(files / "test.csv"), str(files / "mine.csv")
    plan = files / "plan.toml"
    plan.write_text(f"{PLAN}[data]\nfile = {address!r}\n")
    for words in (
        ("data", "info", address),
        ("audit", address),
        ("evaluate", "-j", address, "-r", mine, "-m", "P@1", "--liked", "4"),
        ("evaluate", "-j", test, "-r", f"a={address}", "-m", "P@1", "--liked", "4"),
        ("evaluate", "-j", address, "-r", mine, "--on-disk", str(files / "out")),
        ("compare", "-j", test, "-r", address, "-r", mine, "--liked", "4"),
        ("gate", "-j", test, "--candidate", address, "--production", mine, "--liked", "4"),
        ("split", address, "-o", str(files / "split")),
        ("groups", "-j", test, "-r", mine, "-m", "P@1", "--liked", "4", "--by", f"{address}:group"),
        ("run", str(plan)),
        ("recommend", "--train", address, "-o", str(files / "lists.csv")),
    ):
        code, _, err = call(*words)
        assert code in (1, 2), words
        assert "not opened" in err, words


def test_a_blank_before_an_address_is_refused(no_fsspec):
    with pytest.raises(us.DataError, match=r"s3://b/x\.csv: remove the blank before the address"):
        us.read_ratings(" s3://b/x.csv")


def test_colons_stay_in_names_of_files(tmp_path):
    ROWS.write_csv(tmp_path / "a::b.csv")
    assert same(us.read_ratings(tmp_path / "a::b.csv"), us.read_ratings(ROWS))


def test_polars_opens_no_address(tmp_path, monkeypatch):
    """It would open file:/x, which pathlib makes of file:///x, as /x."""
    monkeypatch.chdir(tmp_path)
    ROWS.write_parquet(tmp_path / "secret.parquet")
    for address in (f"file:{tmp_path}/secret.parquet", f"file://{tmp_path}/secret.parquet"):
        with pytest.raises(us.DataError):
            us.read_ratings(address)
        with pytest.raises(FileNotFoundError):
            scan([address]).collect()
    # The folder of this name is read, and not the file that polars would take.
    inside = Path("file:") / tmp_path.relative_to("/")
    inside.mkdir(parents=True)
    ROWS.head(6).write_parquet((inside / "secret.parquet").absolute())
    assert len(us.read_ratings(inside / "secret.parquet")) == 6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://b/r.csv", ("", "s3://b/r.csv", "")),
        ("s3://b/r.csv:item=sku", ("", "s3://b/r.csv", "item=sku")),
        ("mine=s3://b/r.csv", ("mine", "s3://b/r.csv", "")),
        ("mine=s3://b/day=1/r.csv:user=u,item=0", ("mine", "s3://b/day=1/r.csv", "user=u,item=0")),
        ("s3://b/day=1/r.csv", ("", "s3://b/day=1/r.csv", "")),
        ("https://h:80/r?sig=a:item=i", ("", "https://h:80/r?sig=a", "item=i")),
    ],
)
def test_addresses_on_the_command_line(text, expected):
    assert split_named_source(text) == expected
    if not expected[0]:
        assert split_source(text) == expected[1:]


def test_the_command_of_a_report_holds_no_credentials():
    given = {"RATINGS": "https://me:SECRET@h/r.csv?sig=SECRET", "--train": "s3://k:SECRET@b/t.csv"}
    command = with_files(
        "unskew audit RATINGS --train FILE --run mine=FILE -o report.html",
        given,
        {"mine": "s3://b/x.csv"},
    )
    assert "SECRET" not in command
    assert "s3://b/t.csv" in command
    assert "mine=s3://b/x.csv" in command


def test_the_text_of_an_address_is_not_a_path():
    with pytest.raises(us.DataError, match=r"s3://b/r\.csv: give an address as text"):
        us.read_ratings(Path("s3://b/r.csv"))


# Outputs


def test_nothing_is_written_to_an_address(tmp_path):
    with pytest.raises(us.SettingError, match="store s3://b/x: this needs a file system"):
        Store.open("s3://b/x")
    for write in (replacing, replacing_folder):
        with pytest.raises(us.SettingError, match="needs a file system"), write("s3://k:pw@b/x"):
            pass
    with pytest.raises(us.SettingError, match="output s3://b/x"):
        us.evaluation.evaluate_files("x", "y", ["P@1"], output="s3://b/x")


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "r.csv", "-o", "s3://KEY:SECRET@b/report.html"),
        ("audit", "r.csv", "-o", "s3://KEY:SECRET@b/report"),
        ("audit", "r.csv", "--store", "s3://KEY:SECRET@b/store"),
        ("evaluate", "-j", "r.csv", "-r", "l.csv", "--on-disk", "gs://KEY:SECRET@b/out"),
        ("run", "s3://KEY:SECRET@b/plan.toml", "--store", "x"),
        ("split", "r.csv", "-o", "az://KEY:SECRET@b/folds"),
    ],
)
def test_commands_refuse_to_write_to_an_address(call, words):
    code, out, err = call(*words)
    assert (code, "needs a file system" in err) == (2, True)
    assert "SECRET" not in out + err


# Reading, with the files of fsspec that live in memory


@pytest.fixture
def memory(monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setattr(remote, "SCHEMES", (*remote.SCHEMES, "memory"))
    system = fsspec.filesystem("memory")
    for name, content in files().items():
        system.pipe(f"/data/{name}", content)
    yield system
    system.rm("/data", recursive=True)


@pytest.mark.parametrize("name", [*SEVERAL, "plain"])
def test_every_format_is_read_as_a_file_is(memory, name):
    ratings = us.read_ratings(f"memory://data/{name}")
    assert same(ratings, us.read_ratings(ROWS))
    assert sum("read into memory from memory://" in note for note in ratings.notes) == 1


@pytest.mark.parametrize("name", SEVERAL)
def test_folders_and_patterns_are_read_from_a_disk_too(tmp_path, name):
    for path, content in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    ratings = us.read_ratings(f"{tmp_path}/{name}")
    assert same(ratings, us.read_ratings(ROWS))
    if "day" in name:
        assert "parquet in 3 files, 48 rows" in ratings.notes[0]


def test_files_of_a_folder_must_have_the_same_columns(tmp_path):
    ROWS.write_parquet(tmp_path / "a.parquet")
    ROWS.rename({"rating": "stars"}).write_parquet(tmp_path / "b.parquet")
    with pytest.raises(us.DataError, match=r"b\.parquet has columns user, item, stars, but a"):
        us.read_ratings(tmp_path)


def test_a_file_is_read_once(memory, monkeypatch):
    opened = []
    original = type(memory)._open
    monkeypatch.setattr(
        type(memory),
        "_open",
        lambda self, path, *a, **k: opened.append(path) or original(self, path, *a, **k),
    )
    us.load("memory://data/r.csv")
    us.read_run("memory://data/lists.parquet")
    assert opened == ["/data/r.csv", "/data/lists.parquet"]


def test_a_plan_names_an_address(memory, tmp_path):
    from unskew.experiment.execution import data_of

    assert same(data_of({"file": "memory://data/r.csv"}, tmp_path), us.read_ratings(ROWS))


def test_commands_read_addresses(call, memory):
    there = "memory://data"
    code, out, err = call("data", "info", f"{there}/r.csv")
    assert (code, "48 ratings" in out) == (0, True), err
    words = ("-m", "P@3", "--liked", "4", "--format", "csv")
    judged = ("-j", f"{there}/r.csv", "-r", f"mine={there}/lists.parquet", *words)
    code, out, err = call("evaluate", *judged)
    assert code == 0, err
    lists = us.read_run(LISTS)
    expected = us.evaluate(us.judge(ROWS, {"mine": lists}, liked=4), ["P@3"]).mean("P@3")["mine"]
    assert f",{expected}," in out


def test_logs_larger_than_memory_are_copied_once(memory, tmp_path, monkeypatch):
    copied = []
    original = remote.RemoteFile.copy_to
    monkeypatch.setattr(
        remote.RemoteFile,
        "copy_to",
        lambda self, out: copied.append(self.name) or original(self, out),
    )

    def evaluated(folder="out"):
        return us.evaluation.evaluate_files(
            "memory://data/days",
            ["memory://data/lists.parquet"],
            ["P@3"],
            liked=4,
            output=tmp_path / folder,
        )

    expected = us.evaluate(us.judge(ROWS, {"lists": LISTS}, liked=4), ["P@3"]).mean("P@3")
    assert evaluated().row(system="lists").value == expected["lists"]
    every = ["day-0.parquet", "day-1.parquet", "day-2.parquet", "lists.parquet"]
    assert copied == every
    assert evaluated().row(system="lists").value == expected["lists"]
    assert copied == every
    copies = sorted(path.name for path in (tmp_path / "out" / "copies").rglob("*.parquet"))
    assert copies == [
        "00000-day-0.parquet",
        "00000-lists.parquet",
        *(f"0000{n}-day-{n}.parquet" for n in (1, 2)),
    ]
    # Another file of the same name and size is another evaluation.
    memory.pipe(
        "/data/days/day-0.parquet", as_parquet(ROWS[:20].with_columns(rating=6 - pl.col("rating")))
    )
    with pytest.raises(us.SettingError, match="holds another evaluation"):
        evaluated()


# What goes wrong


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no.csv", "memory://data/no.csv: no such file"),
        ("no", "memory://data/no: no such file"),
        ("no-*.parquet", "no Parquet file here"),
        ("days/_old/day-9.parquet", "not a readable Parquet file"),
    ],
)
def test_what_is_not_there(memory, name, message):
    with pytest.raises(us.DataError, match=message):
        us.read_ratings(f"memory://data/{name}")


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (ConnectionResetError("SECRET"), r"the connection broke off \(ConnectionResetError\): run"),
        (ConnectionRefusedError(), "the server cannot be reached"),
        (PermissionError("SECRET"), "access is denied"),
        (TimeoutError(), "the connection broke off"),
        (OSError("at https://me:SECRET@h/x?SECRET"), r"cannot be read \(OSError: at https://h/x"),
        (None, r"the connection broke off: 10 of \d+ bytes came\. Run again"),
    ],
)
def test_connections_that_break_off(memory, monkeypatch, problem, message):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if problem is not None and self.tell():
                raise problem
            return super().read(10 if not self.tell() else 0 if problem is None else size)

    monkeypatch.setattr(type(memory), "_open", lambda *a, **k: Broken(b"x" * 100))
    with pytest.raises(us.DataError, match=message) as failed:
        us.read_ratings("memory://data/r.csv")
    assert "SECRET" not in str(failed.value)


@pytest.mark.parametrize(
    ("module", "address", "remedy"),
    [
        ("fsspec.core", "s3://b/x.csv", r"pip install 'unskew\[remote\]'"),
        ("s3fs", "s3://b/x.csv", r"pip install 'unskew\[remote\]'"),
        ("gcsfs", "gs://b/x.csv", "pip install gcsfs"),
        ("adlfs", "az://b/x.csv", "pip install adlfs"),
    ],
)
def test_what_is_not_installed(monkeypatch, module, address, remedy):
    pytest.importorskip("fsspec")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(us.DataError, match=f"{address}: .*{remedy}"):
        us.read_ratings(address)


def test_credentials_in_the_address_of_a_bucket_are_refused():
    with pytest.raises(us.DataError, match="credentials do not belong into an address") as failed:
        us.read_ratings("s3://KEY:SEC/RET@b/x.csv")
    assert "KEY" not in str(failed.value).replace("AWS_ACCESS_KEY_ID", "").replace("ACCESS_KEY", "")
    assert "RET" not in str(failed.value).replace("SECRET_ACCESS", "")
    with pytest.raises(us.DataError, match="credentials do not belong into an address") as failed:
        us.read_ratings("az://box/x.csv?sv=1&sig=SIGNATURE")
    assert "SIGNATURE" not in str(failed.value)


# A web server


class Web(BaseHTTPRequestHandler):
    """Serves the files, without ranges; some paths fail in their own ways."""

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        content, size = self.answer()
        self.wfile.write(content[:size])

    def answer(self):
        name = self.path.partition("?")[0].strip("/")
        wanted = "Basic " + b64encode(b"me:SECRET").decode()
        content = files().get(name.removeprefix("private/").removeprefix("cut/"), b"")
        code = 200 if content else 404
        if name.startswith("private/") and self.headers.get("Authorization") != wanted:
            code = 403
        self.send_response(code)
        self.send_header("Content-Length", str(len(content) if code == 200 else 0))
        self.end_headers()
        size = len(content) // 2 if name.startswith("cut/") else len(content)
        return (content if code == 200 else b""), size

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def web():
    pytest.importorskip("aiohttp")
    with ThreadingHTTPServer(("127.0.0.1", 0), Web) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["r.parquet", "r.csv?sig=SECRET", "r.tsv.gz", "plain"])
def test_web_addresses(web, name):
    data = us.load(f"http://{web}/{name}")
    assert same(data.ratings, us.read_ratings(ROWS))
    assert "SECRET" not in f"{data} {data.name} {data.notes} {data.ratings.notes}"


def test_web_addresses_with_a_password(web):
    ratings = us.read_ratings(f"http://me:SECRET@{web}/private/r.csv")
    assert same(ratings, us.read_ratings(ROWS))
    assert "SECRET" not in str(ratings.notes)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.csv?sig=SECRET", r"/no.csv\?…: no such file"),
        ("private/r.csv?sig=SECRET", "access is denied"),
        ("cut/r.csv", "the connection broke off"),
    ],
)
def test_web_addresses_that_fail(call, web, path, message):
    code, out, err = call("data", "info", f"http://me:SECRET2@{web}/{path}")
    assert (code, out) == (1, "")
    with pytest.raises(us.DataError, match=message) as failed:
        us.read_ratings(f"http://me:SECRET2@{web}/{path}")
    assert "SECRET" not in err + str(failed.value)


def test_a_web_server_that_is_not_there():
    pytest.importorskip("aiohttp")
    with pytest.raises(us.DataError, match="the server cannot be reached"):
        us.read_ratings("http://127.0.0.1:1/r.csv")
