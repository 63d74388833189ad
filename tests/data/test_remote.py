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
from unskew.auditing.reproduction import with_files
from unskew.cli.sources import header_of, split_named_source, split_source
from unskew.engine import remote
from unskew.engine.files import replacing, replacing_folder
from unskew.engine.store import Store
from unskew.runs import system_name

# Addresses


@pytest.mark.parametrize(
    ("address", "shown", "name"),
    [
        ("s3://b/a/r.parquet", "s3://b/a/r.parquet", "r.parquet"),
        ("S3://b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://KEY:SECRET@b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://KEY:SE/CR/ET@b/r.csv", "s3://b/r.csv", "r.csv"),
        ("s3://b/me@home.csv", "s3://b/me@home.csv", "me@home.csv"),
        ("s3://b/day-?.parquet", "s3://b/day-?.parquet", "day-?.parquet"),
        ("abfs://box@account.dfs/r.csv", "abfs://box@account.dfs/r.csv", "r.csv"),
        ("https://me:SECRET@host:80/r.csv", "https://host:80/r.csv", "r.csv"),
        ("https://SECRET@host/r.csv", "https://host/r.csv", "r.csv"),
        ("https://host:80/a@b.csv", "https://host:80/a@b.csv", "a@b.csv"),
        ("https://host/r.csv?sig=SECRET&x=1", "https://host/r.csv?…", "r.csv"),
        ("https://host/r.csv?sig=SECRET:item=sku", "https://host/r.csv?…:item=sku", None),
    ],
)
def test_addresses_are_shown_without_credentials(address, shown, name):
    assert remote.shown_address(address) == shown
    assert remote.shown_address(shown) == shown
    assert remote.without_credentials(f"at {address}: bad") == f"at {shown}: bad"
    if name is not None:
        assert remote.address_name(address) == name
        assert system_name(address) == Path(name).stem


def test_addresses_and_paths():
    assert all(map(remote.is_address, ("s3://b/x", "https://h/x", "memory://x")))
    assert not any(map(remote.is_address, ("r.csv", "a/b://c", "C:/x", "/s3://b", "::", Path("x"))))


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
def memory():
    fsspec = pytest.importorskip("fsspec")
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


def test_names_of_columns_are_read_without_the_rest(memory):
    rows = pl.DataFrame({f"{'c' * 200}{n}": [n] for n in range(500)})
    memory.pipe("/data/wide.parquet", as_parquet(rows))
    assert header_of("memory://data/r.csv") == ["user", "item", "rating"]
    assert header_of("memory://data/days/day-*.parquet") == ["user", "item", "rating"]
    assert len(header_of("memory://data/wide.parquet")) == 500
    assert header_of("memory://data/nothing.csv") == []


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
    assert evaluated().mean("P@3") == expected
    every = ["day-0.parquet", "day-1.parquet", "day-2.parquet", "lists.parquet"]
    assert copied == every
    assert evaluated().mean("P@3") == expected
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
        (None, "nix://b/x.csv", "nothing is known that reads nix:// addresses"),
    ],
)
def test_what_is_not_installed(monkeypatch, module, address, remedy):
    pytest.importorskip("fsspec")
    if module is not None:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(us.DataError, match=f"{address}: .*{remedy}"):
        us.read_ratings(address)


def test_credentials_in_the_address_of_a_bucket_are_refused():
    with pytest.raises(us.DataError, match="credentials do not belong into an address") as failed:
        us.read_ratings("s3://KEY:SEC/RET@b/x.csv")
    assert "KEY" not in str(failed.value).replace("AWS_ACCESS_KEY_ID", "").replace("ACCESS_KEY", "")
    assert "RET" not in str(failed.value).replace("SECRET_ACCESS", "")


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
