"""Files that are replaced (permissions, groups, links), and paths that no file can have."""

import os
import stat
from pathlib import Path

import polars as pl
import pytest

import unskew as us
from shared.commands import invoke
from unskew.engine.files import replacing, replacing_folder, write_table

posix = pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def usual_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def write(path, text="new"):
    with replacing(path) as part:
        part.write_text(text)


@posix
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o660, 0o644, 0o666, 0o400, 0o444])
def test_a_replaced_file_hands_on_its_permissions(tmp_path, usual_umask, permissions):
    path = tmp_path / "lists.csv"
    path.write_text("old")
    path.chmod(permissions)
    write(path)
    assert (path.read_text(), mode(path)) == ("new", permissions)


@posix
@pytest.mark.parametrize(("umask", "permissions"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, usual_umask, umask, permissions):
    os.umask(umask)
    write(tmp_path / "new.csv")
    with replacing_folder(tmp_path / "folder") as part:
        (part / "new.csv").write_text("new")
    assert mode(tmp_path / "new.csv") == mode(tmp_path / "folder" / "new.csv") == permissions
    assert mode(tmp_path / "folder") == permissions | (permissions & 0o444) >> 2


@posix
def test_nobody_reads_what_replaces_a_private_file_while_it_is_written(tmp_path, usual_umask):
    path = tmp_path / "private.csv"
    path.write_text("old")
    path.chmod(0o600)
    with replacing(path) as part:
        part.write_text("secret")
        assert mode(part) == 0o600
    folder = tmp_path / "folder"
    folder.mkdir(0o700)
    with replacing_folder(folder) as part:
        assert mode(part) == 0o700
    assert mode(folder) == 0o700


@posix
def test_files_of_a_folder_hand_on_their_permissions(tmp_path, usual_umask):
    for name, permissions in {"a": 0o600, "b": 0o664}.items():
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(permissions)
    with replacing_folder(tmp_path) as part:
        for name in "abc":
            (part / name).write_text("new")
    assert [mode(tmp_path / name) for name in "abc"] == [0o600, 0o664, 0o644]
    assert (tmp_path / "a").read_text() == "new"


@posix
def test_outputs_of_every_kind_hand_on_permissions(tmp_path, usual_umask):
    ratings = us.read_ratings({"user": [1], "item": [2], "rating": [3]})
    run = us.read_run({1: [2]})
    writers = {
        "a.csv": run.to_csv,
        "b.parquet": run.to_parquet,
        "c.trec": run.to_trec,
        "d.csv": ratings.to_csv,
        "e.qrels": ratings.to_qrels,
        "f.csv": lambda path: write_table(pl.DataFrame({"a": ["b"]}), path, "csv"),
    }
    for name, writer in writers.items():
        (tmp_path / name).touch(0o600)
        writer(tmp_path / name)
        assert mode(tmp_path / name) == 0o600, name
        assert (tmp_path / name).stat().st_size, name


@posix
def test_a_failure_leaves_the_old_file_as_it_was(tmp_path, usual_umask):
    path = tmp_path / "kept"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(ZeroDivisionError), replacing(path) as part:
        part.write_text(str(1 / 0))
    assert (path.read_text(), mode(path)) == ("old", 0o640)
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


@posix
def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path, usual_umask):
    target = tmp_path / "target"
    target.write_text("old")
    target.chmod(0o600)
    (tmp_path / "link").symlink_to(target)
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (target.read_text(), mode(target)) == ("new", 0o600)


@posix
def test_the_target_of_a_dangling_link_is_a_new_file(tmp_path, usual_umask):
    (tmp_path / "link").symlink_to(tmp_path / "later")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert ((tmp_path / "later").read_text(), mode(tmp_path / "later")) == ("new", 0o644)


@posix
def test_other_names_of_a_hard_link_keep_the_old_content(tmp_path, usual_umask):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("old")
    first.chmod(0o600)
    os.link(first, second)
    write(first)
    assert (first.read_text(), mode(first)) == ("new", 0o600)
    assert (second.read_text(), mode(second)) == ("old", 0o600)


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_a_file_of_somebody_else_gets_a_new_owner_and_keeps_its_group(tmp_path, usual_umask):
    path = tmp_path / "theirs"
    path.write_text("old")
    os.chown(path, 12_345, 23_456)
    path.chmod(0o640)
    write(path)
    facts = path.stat()
    assert (facts.st_uid, facts.st_gid, mode(path)) == (os.geteuid(), 23_456, 0o640)


@posix
@pytest.mark.parametrize(
    ("permissions", "granted"), [(0o640, 0o600), (0o660, 0o600), (0o664, 0o644), (0o666, 0o666)]
)
def test_another_group_gets_no_more_than_everybody(
    tmp_path, usual_umask, monkeypatch, permissions, granted
):
    """Where the group cannot be kept, the rights of the old group are not those of another."""
    from unskew.engine import files

    path = tmp_path / "team.csv"
    path.write_text("old")
    path.chmod(permissions)
    access = list(path.stat())

    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(files.os, "chown", refuse)
    access[stat.ST_GID] += 1
    monkeypatch.setattr(files, "_access", lambda path: os.stat_result(access))
    write(path)
    assert (path.read_text(), mode(path)) == ("new", granted)


# Paths


NUL = "a\0b"


def writers():
    ratings = us.read_ratings({"user": [1, 2], "item": [2, 3], "rating": [3, 5]})
    run = us.read_run({1: [2], 2: [3]})
    scores = us.evaluate(ratings, {"x": run}, "P@1", liked=3)
    return {
        "run csv": run.to_csv,
        "run parquet": run.to_parquet,
        "run trec": run.to_trec,
        "ratings csv": ratings.to_csv,
        "ratings parquet": ratings.to_parquet,
        "qrels": ratings.to_qrels,
        "scores": scores.save,
    }


def readers():
    ratings = us.read_ratings({"user": [1, 2], "item": [2, 3], "rating": [3, 5]})
    return {
        "ratings": us.read_ratings,
        "pattern": lambda path: us.read_ratings(f"{os.fspath(path)}/*.parquet"),
        "lists": us.read_run,
        "run": lambda path: us.evaluate(ratings, {"x": path}, "P@1", liked=3),
        "train": lambda path: us.evaluate(ratings, {"x": {1: [2]}}, "P@1", liked=3, train=path),
        "events": us.read_events,
        "scores": us.Scores.load,
        "means of files": us.evaluation.load_means,
        "values of files": us.evaluation.scan_values,
        "splits": us.splits.load_splits,
        "model": us.recommend.load_model,
        "plan": us.read_plan,
        "gate": lambda path: us.gating.GateSettings.read(path),
        "annotation": us.labels.read_annotation,
    }


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_with_a_nul_is_refused_in_one_line(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, use in {**writers(), **readers()}.items():
        with pytest.raises(us.UnskewError) as refused:
            use(kind(NUL))
        assert "\n" not in str(refused.value), name
        assert "NUL" in str(refused.value) or "null byte" in str(refused.value), name
    assert not list(tmp_path.iterdir())


def test_a_nul_in_the_file_of_a_plan_is_refused_in_one_line(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'metrics = ["P@5"]\n[data]\nfile = "a\\u0000b"\n[relevance]\nliked = 4\n[split]\n'
        'protocol = "random"\n[targets]\ndesign = "all-items"\n[[algorithm]]\nname = "popularity"\n'
    )
    result = invoke("run", str(plan))
    assert result.exit_code == 2
    assert "a path cannot hold a NUL character; remove it" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_nul_on_the_command_line_is_refused_in_one_line(tmp_path):
    """A shell cannot give one, but who calls the command from Python can."""
    for words in (["data", "info", NUL], ["world", "null", "-o", NUL], ["run", NUL]):
        result = invoke(*words)
        assert result.exit_code == 2, words
        assert result.stderr == "error: 'a\\x00b': a value cannot hold a NUL character; remove it\n"
