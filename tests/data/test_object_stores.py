"""Object stores, with stand-ins on this machine: moto for Amazon's, an emulator for Google's."""

import logging
import socket

import pytest

import unskew as us
from shared.remote_files import ROWS, SEVERAL, files, same

pytestmark = pytest.mark.filterwarnings("ignore")  # of the stand-ins


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def variables(monkeypatch):
    """Set what the packages read, and nothing that this machine has."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    return monkeypatch


@pytest.fixture
def amazon(variables):
    """Start a server, fill a bucket, and yield the system that reads it."""
    reason = "moto[server] and s3fs are not installed: pip install '.[remote-tests]'"
    s3fs = pytest.importorskip("s3fs", reason=reason)
    server = pytest.importorskip("moto.server", reason=reason)
    boto3 = pytest.importorskip("boto3", reason=reason)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    port = free_port()
    moto = server.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    moto.start()
    variables.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        client = boto3.client("s3")
        client.create_bucket(Bucket="data")
        for name, content in files().items():
            client.put_object(Bucket="data", Key=name, Body=content)
        yield s3fs.S3FileSystem
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        moto.stop()


def test_ratings_in_a_bucket(call, amazon):
    for name in (*SEVERAL, "plain"):
        assert same(us.read_ratings(f"s3://data/{name}"), us.read_ratings(ROWS)), name
    code, out, err = call("data", "info", "s3://data/r.parquet")
    assert (code, "48 ratings" in out) == (0, True), err


def test_lists_and_judgments_in_a_bucket(call, amazon, tmp_path):
    judged = ("-j", "s3://data/r.csv", "-r", "mine=s3://data/lists.parquet", "-m", "P@3")
    code, out, err = call("evaluate", *judged, "--liked", "4", "--format", "csv")
    assert code == 0, err
    large = ("-j", "s3://data/days/", *judged[2:], "--on-disk", str(tmp_path / "out"))
    code, there, err = call("evaluate", *large, "--liked", "4", "--format", "csv")
    assert code == 0, err
    (value,) = {line.split(",")[2] for line in out.splitlines()[1:]}
    assert value[:6] in there


def test_what_fails_in_a_bucket(amazon, variables):
    for address, message in (
        ("s3://data/no.csv", "no such file: check the address"),
        ("s3://nowhere/r.csv", "there is no such bucket"),
        ("s3://data/no-*.parquet", "no Parquet file here"),
    ):
        with pytest.raises(us.DataError, match=message):
            us.read_ratings(address)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        variables.delenv(name)
    amazon.clear_instance_cache()
    with pytest.raises(us.DataError, match=r"no credentials for it: .*AWS_ACCESS_KEY_ID"):
        us.read_ratings("s3://data/r.csv")


@pytest.mark.slow
def test_a_store_that_is_not_there(variables):
    s3fs = pytest.importorskip("s3fs")
    variables.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(us.DataError, match="the server cannot be reached"):
        us.read_ratings("s3://data/r.csv")


def test_ratings_in_a_bucket_of_google(variables):
    # Else gcsfs asks for the kind of a bucket by a protocol that the emulator does not speak.
    variables.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    reason = "gcsfs and gcp-storage-emulator are not installed: pip install '.[remote-tests]'"
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason=reason)
    gcsfs = pytest.importorskip("gcsfs", reason=reason)
    requests = pytest.importorskip("requests")
    port = free_port()
    variables.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="data")
    server.start()
    try:
        gcsfs.GCSFileSystem.clear_instance_cache()
        for name, content in files().items():
            place = f"http://127.0.0.1:{port}/upload/storage/v1/b/data/o"
            query = {"uploadType": "media", "name": name}
            requests.post(place, params=query, data=content, timeout=10).raise_for_status()
        for name in SEVERAL:
            assert same(us.read_ratings(f"gs://data/{name}"), us.read_ratings(ROWS)), name
        with pytest.raises(us.DataError, match="no such file"):
            us.read_ratings("gs://data/no.csv")
    finally:
        gcsfs.GCSFileSystem.clear_instance_cache()
        server.stop()
