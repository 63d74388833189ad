"""No command prints or writes the credentials of an address, whether it works or fails."""

import re

import polars as pl
import pytest

from shared.commands import FOLDERS, GATES, LOG, PLAN, RATINGS, TABLES, TRAIN, write_values
from shared.remote_files import web_files

SECRETS = ("PASSWORD", "SIGNATURE")
SHORT = ["--liked", "4", "--algorithms", "random,popularity", "--designs", "all-items", "--quick"]
JUDGED = TABLES["evaluate"]
PLANS = {"plan check": ["plan.toml"], "run": ["plan.toml", "--store", "results", "-o", "run.json"]}
OTHERS = {
    "audit": [
        ["test.csv", *SHORT, "-o", "audit.html", "--store", "store"],
        ["-j", "test.csv", "--train", "train.csv", "--run", "mine=a.csv", "--run", "b=b.csv",
         "--liked", "4", "--quick", "-o", "lists.md"],
        ["test.csv", *SHORT, "--dry-run"],
    ],
    "timeline": [["log.csv", "--event-log", "-a", "random", "-a", "popularity", "--windows", "2",
                  "--resamples", "5", "-o", "timeline.json"]],
    "split": [["test.csv", "--audit"], ["test.csv", "-o", "out"]],
    "evaluate": [["-j", "test.parquet", "-r", "a=a.parquet", "-m", "P@2", "--liked", "4",
                  "--on-disk", "on-disk"], [*JUDGED, "-o", "scores.md"]],
    "groups": [[*JUDGED, "--by", "groups.csv:group", "--least-users", "2"],
               [*JUDGED[:6], "--liked", "4", "--by-items", "genres.csv:genre"]],
    "recommend": [["--train", "train.csv", "-o", "out.csv"]],
}  # fmt: skip
CALLS = [
    *((name, [*call, "--format", "json"]) for name, call in (TABLES | GATES).items()),
    *((name, [*call, "-o", "out"]) for name, call in FOLDERS.items()),
    *((name, call) for name, calls in OTHERS.items() for call in calls),
]
CALLS = [(name, call) for name, call in CALLS if re.search(r"\.(csv|parquet)\b", " ".join(call))]
CALLS += PLANS.items()


def at_address(word, prefix=""):
    """Return a word of a command in which a file has an address with credentials."""
    return re.sub(
        r"\b((test|train|a|b|log|books|films|groups|genres)\.(csv|parquet))(?=$|:)",
        rf"https://me:PASSWORD@host/{prefix}\1?s=SIGNATURE.SIGNATURE/SIGNATURE.SIGNATURE",
        word,
    )


@pytest.fixture
def web(tmp_path, monkeypatch):
    """Serve the files that commands read; the working folder holds only the plan."""
    pytest.importorskip("fsspec")
    home = tmp_path / "web"
    home.mkdir()
    for name, rows in (("test", RATINGS), ("train", TRAIN)):
        frame = pl.DataFrame(rows, ["user", "item", "rating"], orient="row")
        frame.write_csv(home / f"{name}.csv")
        frame.write_parquet(home / f"{name}.parquet")
    for name, step in (("a", 1), ("b", 3)):
        rows = [(u, (u + step * k) % 10, k + 1) for u in range(12) for k in range(3)]
        frame = pl.DataFrame(rows, ["user", "item", "rank"], orient="row")
        frame.write_csv(home / f"{name}.csv")
        frame.write_parquet(home / f"{name}.parquet")
    pl.DataFrame(LOG, ["user", "item", "time"], orient="row").write_csv(home / "log.csv")
    groups = {"user": list(range(12)), "group": ["x", "y"] * 6}
    pl.DataFrame(groups).write_csv(home / "groups.csv")
    genres = {"item": list(range(10)), "genre": ["x", "y"] * 5}
    pl.DataFrame(genres).write_csv(home / "genres.csv")
    write_values(home)
    web_files(monkeypatch, home)
    monkeypatch.setenv("UNSKEW_DEBUG", "1")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "plan.toml").write_text(PLAN.replace("test.csv", at_address("test.csv")))
    return work


def leaks(work, *texts):
    """Return where a secret is: in what was printed, or in a file that was written."""
    wrong = [text for text in texts if any(secret in text for secret in SECRETS)]
    for path in work.rglob("*"):
        if path.is_file() and path.name != "plan.toml":
            content = path.read_bytes()
            wrong += [str(path) for secret in SECRETS if secret.encode() in content]
    return wrong


@pytest.mark.parametrize(("name", "words"), CALLS)
def test_no_command_shows_credentials(call, web, name, words):
    code, out, err = call(*name.split(), *map(at_address, words))
    assert leaks(web, out, err) == []
    assert code in (0, 3), err


@pytest.mark.parametrize("name", ["evaluate", "compare", "gate", "data info", "split", "run"])
def test_no_failure_shows_credentials(call, web, name):
    words = [at_address(word, "no-") for word in next(w for n, w in CALLS if n == name)]
    plan = web / "plan.toml"
    plan.write_text(plan.read_text().replace("host/test", "host/no-test"))
    code, out, err = call(*name.split(), *words)
    assert (code in (1, 2), "no such file" in err) == (True, True), err
    assert leaks(web, out, err) == []


WRONG = [
    ("ADDRESS",),
    ("evaluate", "ADDRESS"),
    ("data", "info", "ADDRESS", "ADDRESS"),
    ("audit", "ADDRESS", "ADDRESS"),
    ("evaluate", "-j", "ADDRESS", "-r", "ADDRESS", "-m", "ADDRESS"),
    ("evaluate", "-j", "test.csv", "-r", "a.csv", "--depth", "ADDRESS"),
    ("data", "info", "test.csv", "--ADDRESS"),
    ("data", "info", "ADDRESS", "--data-dir", "ADDRESS"),
    ("gate", "-j", "ADDRESS", "--candidate", "ADDRESS", "--production", "ADDRESS"),
    ("run", "ADDRESS"),
    ("run", "ADDRESS", "--store", "ADDRESS"),
    ("store", "ls", "ADDRESS"),
    ("annotate", "status", "ADDRESS"),
    ("audit", "ADDRESS", "--cluster", "ADDRESS"),
]
ADDRESSES = [
    "https://me:PASSWORD@host/x.csv?SIGNATURE",
    "ftp://me:PASSWORD@host/x.csv#SIGNATURE",
    "simplecache::s3://me:PASSWORD@bucket/x.csv?SIGNATURE",
    "s3://me:PASS/PASSWORD@bucket/x.csv",
    "https:/me:PASSWORD@host/x.csv?SIGNATURE",
    "https://me:a@b:c?PASSWORD@host/x.csv",
    "az://box/x.csv?sig=SIGNATURE",
]


@pytest.mark.parametrize("words", WRONG)
@pytest.mark.parametrize("address", ADDRESSES)
def test_no_wrong_command_shows_credentials(call, web, words, address):
    code, out, err = call(*(word.replace("ADDRESS", address) for word in words))
    assert code in (1, 2)
    assert leaks(web, out, err) == []
