"""Folders of strangers: links inside are refused, and nothing outside is read or written."""

import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

import unskew as us
from reliability.records import KeptRecords, WorldTask
from shared.remote_files import LISTS, ROWS
from unskew.engine import files as engine_files
from unskew.engine.files import check_links, inner_path, replacing, replacing_folder, write_sealed
from unskew.engine.store import Store
from unskew.evaluation.on_disk.files import load_means, scan_values
from unskew.labels.plan_annotation import plan_annotation
from unskew.splits.saved import load_splits, save_splits
from unskew.targets.saved import read_targets, save_targets

TABLE = pl.DataFrame({"depth": [1, 2, 3]})
KEY = "ab" * 20
PLAN = us.Plan(
    us.splits.Random(folds=2),
    us.targets.TestItems(),
    [us.recommend.Popularity(), us.recommend.Random()],
    metrics=["P@5"],
    seed=1,
)


def everything(folder):
    """Return the files of a folder and what they hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def entries(folder):
    """Return the files and folders inside, by their names."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def planted(good, bad, entry, target):
    """Copy a folder, and put a link in the place of one of its entries."""
    shutil.copytree(good, bad)
    place = bad / entry
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)
    return place


def refused(call, link):
    """Check that something is refused with an error that names the link."""
    with pytest.raises(us.DataError) as failed:
        call()
    assert f"{link}: is a link" in str(failed.value)


# Stores


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A store with results, ratings, a failure, and what was set aside."""
    home = tmp_path_factory.mktemp("stored") / "store"
    us.run_plan(ROWS, PLAN, store=home)
    store = Store.open(home)
    store.put_failure(KEY, "bad")
    (home / "results" / "ab").mkdir(exist_ok=True)
    (home / "results" / "ab" / f"{KEY}.damaged").write_bytes(b"")
    (home / ".probe").write_text("x")
    (home / "data" / ".x.part").write_text("x")
    return home


def test_a_link_in_the_place_of_any_entry_of_a_store(stored, tmp_path):
    outside = tmp_path / "outside"
    names = entries(stored)
    assert len(names) > 10
    for number, name in enumerate(names):
        for kind, target in (("dangling", outside / "new"), ("there", stored / name)):
            home = tmp_path / f"{kind}-{number}"
            link = planted(stored, home, name, target)
            before = everything(stored)
            refused(lambda home=home: us.run_plan(ROWS, PLAN, store=home), link)
            refused(lambda home=home: Store.open(home), link)
            assert everything(stored) == before
            shutil.rmtree(home)
    assert not outside.exists()


def test_a_new_store_is_not_made_over_links(tmp_path):
    for name in ("unskew-store.json", "results", "data", "failed", ".probe"):
        home = tmp_path / f"store-{name}"
        home.mkdir()
        (home / name).symlink_to(tmp_path / "outside")
        refused(lambda home=home: us.run_plan(ROWS, PLAN, store=home), home / name)
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("command", ["ls", "verify", "gc"])
def test_commands_refuse_a_store_with_links(call, stored, tmp_path, command):
    link = planted(stored, tmp_path / "store", "results/ab/x.part", tmp_path / "new")
    code, _, err = call("store", command, tmp_path / "store")
    assert (code, f"{link}: is a link" in err) == (1, True), err
    assert link.is_symlink()


def test_a_store_is_reached_through_a_link(stored, tmp_path):
    shutil.copytree(stored, tmp_path / "there")
    (tmp_path / "here").symlink_to(tmp_path / "there")
    us.run_plan(ROWS, PLAN, store=tmp_path / "here")
    (tmp_path / "new").symlink_to(tmp_path / "made")
    us.run_plan(ROWS, PLAN, store=tmp_path / "new")
    assert (tmp_path / "made" / "unskew-store.json").is_file()


def test_names_in_a_store_lead_nowhere_else(stored, tmp_path):
    home = tmp_path / "store"
    shutil.copytree(stored, home)
    (folder,) = (path for path in (home / "data").iterdir() if path.is_dir())
    ROWS.write_ipc(tmp_path / "secret.arrow")
    for name in ("../../../secret", str(tmp_path / "secret")):
        digest = engine_files.digest_of_file(tmp_path / "secret.arrow")
        write_sealed(folder / "meta.json", {"digests": {name: digest}})
        with pytest.raises(us.UnskewError, match="is not inside this folder"):
            Store.open(home).frames(folder.name)


# Evaluations on disk


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    home = tmp_path_factory.mktemp("tables")
    ROWS.write_parquet(home / "test.parquet")
    LISTS.write_parquet(home / "mine.parquet")
    return home


def evaluated(tables, output):
    return us.evaluation.evaluate_files(
        tables / "test.parquet", tables / "mine.parquet", ["P@3"], liked=4, output=output
    )


def test_links_in_the_folder_of_an_evaluation(tables, tmp_path):
    good = tmp_path / "good"
    evaluated(tables, good)
    more = {"parts", "parts/000", "parts/000/000000", "sums", "sums/00000.json", "copies"}
    for number, name in enumerate(sorted({*entries(good), *more})):
        for target in (tmp_path / "outside", tables):
            home = tmp_path / f"bad-{number}-{target.name}"
            link = planted(good, home, name, target)
            refused(lambda home=home: evaluated(tables, home), link)
            # Also where all is yet to do.
            for left in (home / "card.json", home / "means.parquet"):
                if not left.is_symlink():
                    left.unlink()
            refused(lambda home=home: evaluated(tables, home), link)
    assert not (tmp_path / "outside").exists()
    assert sorted(path.name for path in tables.iterdir()) == ["mine.parquet", "test.parquet"]


# Cards and the files that they list


def saved_folders(home):
    """Save each kind of result; return how each is read again."""
    ratings = us.read_ratings(ROWS)
    splitter = us.splits.Random(0.3)
    (split,) = splitter.split(ratings)
    save_splits(splitter, ratings, home / "split")
    save_targets(us.targets.AllItems().lists(split, liked=4), home / "targets")
    us.evaluate(ROWS, {"mine": LISTS}, "P@3", liked=4).save(home / "scores")
    plan_annotation({"a": LISTS, "b": LISTS.with_columns(rank=7 - pl.col("rank"))}, "P@2",
                    budget=6).save(home / "labels")  # fmt: skip
    ROWS.write_parquet(home / "test.parquet")
    LISTS.write_parquet(home / "mine.parquet")
    evaluated(home, home / "disk")
    return {
        "split": load_splits,
        "targets": lambda folder: read_targets(folder, split, liked=4),
        "scores": us.Scores.load,
        "labels": us.labels.read_annotation,
        "disk": lambda folder: (load_means(folder), scan_values(folder).collect()),
    }


def test_links_in_saved_folders_are_not_read(tmp_path):
    home = tmp_path / "good"
    home.mkdir()
    for kind, load in saved_folders(home).items():
        load(home / kind)
        names = [
            n for n in entries(home / kind) if n.endswith((".parquet", ".json", ".csv", "users"))
        ]
        names = [n for n in names if n != "job.json"]
        assert names
        for number, name in enumerate(names):
            bad = tmp_path / f"{kind}-{number}"
            planted(home / kind, bad, name, home / kind / name)
            with pytest.raises(us.DataError, match="is a link") as failed:
                load(bad)
            assert str(bad / name) in str(failed.value)


def test_names_in_cards_lead_nowhere_else(tmp_path):
    home = tmp_path / "good"
    home.mkdir()
    loads = saved_folders(home)
    for kind, part in (("targets", "part-00000"), ("scores", "0000"), ("disk", "users/00000")):
        card = home / kind / "card.json"
        for name in (f"../{kind}/{part}", f"{home / kind / part}"):
            bad = tmp_path / "bad"
            shutil.copytree(home / kind, bad)
            text = card.read_text().replace(f'"{part}.parquet"', f'"{name}.parquet"')
            content = json.loads(text)
            del content["digest"]
            write_sealed(bad / "card.json", content)
            with pytest.raises(us.DataError, match="is not inside this folder"):
                loads[kind](bad)
            shutil.rmtree(bad)


def test_records_of_known_worlds_are_not_read_or_written_through_links(tmp_path):
    task = WorldTask(kind="null", seed=1)
    link = tmp_path / "null-1.json"
    link.symlink_to(tmp_path.parent / "outside.json")
    refused(lambda: KeptRecords(tmp_path).read(task), link)
    refused(lambda: KeptRecords(tmp_path).write(task, None), link)


def test_nothing_is_moved_through_a_link(tmp_path):
    for target in (tmp_path / "outside", tmp_path / "there"):
        (tmp_path / "there").mkdir(exist_ok=True)
        folder = tmp_path / f"results-{target.name}"
        folder.mkdir()
        (folder / "users").symlink_to(target)
        (folder / "card.json").symlink_to(target / "card.json")

        def write(folder=folder):
            with replacing_folder(folder) as part:
                (part / "users").mkdir()
                (part / "users" / "1.csv").write_text("x")
                (part / "card.json").write_text("{}")

        refused(write, folder / "users")
    assert not (tmp_path / "outside").exists()
    assert not any((tmp_path / "there").iterdir())


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(tmp_path, monkeypatch):
    part = tmp_path / ".x.part"
    monkeypatch.setattr(engine_files, "_beside", lambda _: part)
    for target in (tmp_path / "outside", tmp_path / "there"):
        (tmp_path / "there").write_text("as it was")
        part.symlink_to(target)
        with pytest.raises(us.errors.OutputError), replacing(tmp_path / "x") as temporary:
            temporary.write_text("bad")
        with pytest.raises(us.errors.OutputError), replacing_folder(tmp_path / "x"):
            pass
        part.unlink(missing_ok=True)
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "there").read_text() == "as it was"
    assert not (tmp_path / "x").exists()


# The checks themselves


def test_paths_inside_a_folder(tmp_path):
    assert inner_path(tmp_path, "a", "b/c") == tmp_path / "a" / "b" / "c"
    assert inner_path(tmp_path, ".") == tmp_path
    for name in ("..", "a/../../b", "/etc/passwd", str(tmp_path)):
        with pytest.raises(us.DataError, match="is not inside this folder"):
            inner_path(tmp_path, name)
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    refused(lambda: inner_path(tmp_path, "a", "b"), tmp_path / "a")


def test_links_of_a_folder(tmp_path):
    check_links(tmp_path / "nothing")
    (tmp_path / "file").write_text("x")
    check_links(tmp_path)
    check_links(tmp_path / "file")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / ".hidden").symlink_to("nowhere")
    refused(lambda: check_links(tmp_path), tmp_path / "a" / "b" / ".hidden")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_a_folder_that_cannot_be_looked_into_is_refused(tmp_path):
    (tmp_path / "a").mkdir(mode=0o300)
    with pytest.raises(us.DataError, match="permission to look into this folder is missing"):
        check_links(Path(tmp_path))
