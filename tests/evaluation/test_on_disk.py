"""Lists and judgments in Parquet files: the same bits as in memory, whatever happens on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared import ROOT
from shared.examples import examples
from unskew.engine.process_pool import Outcome
from unskew.errors import DataError, DataWarning, SettingError
from unskew.evaluation.on_disk import _job, parquet
from unskew.evaluation.on_disk import (
    files as big,
)
from unskew.evaluation.on_disk import parquet as footer
from unskew.evaluation.on_disk import parts as _parts
from unskew.evaluation.on_disk import parts as remarks
from unskew.evaluation.on_disk import parts as shuffle
from unskew.evaluation.on_disk.files import estimate, evaluate_files, load_means, scan_values

METRICS = ["P@10", "Recall@5", "nDCG@10", "RR", "bpref", "AP", "anti-P@10", "condensed-nDCG@5"]


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Make little data go through many chunks and parts."""
    monkeypatch.setattr(_job, "_EASY_PART", 500)
    monkeypatch.setattr(_job, "_MOST_CHUNK", 250)
    monkeypatch.setattr(_job, "_LEAST_CHUNK", 10)


def made(seed=0, users=120, items=40, ids=int):
    """Return judgments and two runs, rows in no order; some users are in one of them only."""
    rng = np.random.default_rng(seed)

    def rows(low, high, most, value):
        found = [
            (ids(user), ids(item), value())
            for user in range(low, high)
            for item in rng.choice(items, rng.integers(1, most), replace=False)
        ]
        return [found[at] for at in rng.permutation(len(found))]

    test = rows(0, users, 12, lambda: int(rng.integers(1, 6)))
    runs = {
        name: rows(at, users + at, 16, lambda: float(rng.integers(0, 5)))
        for name, at in (("one", 0), ("two", 9))
    }
    frame = pl.DataFrame(test, schema=["user", "item", "rating"], orient="row")
    lists = {
        name: pl.DataFrame(own, schema=["user", "item", "score"], orient="row")
        for name, own in runs.items()
    }
    return frame, lists


def put(frame, folder, files=3):
    """Write a frame as a folder of files."""
    folder.mkdir(parents=True)
    step = -(-frame.height // files)
    for number in range(files):
        part = frame.slice(number * step, step)
        part.write_parquet(folder / f"{number}.parquet", row_group_size=29)
    return folder


def put_all(home, test, lists, files=3):
    runs = {name: put(frame, home / name, files) for name, frame in lists.items()}
    return put(test, home / "test", files), runs


def means_of(found):
    """Return means by system and metric; NaN where there is none."""
    means = {}
    for system, metric, mean in found.rows.select("system", "metric", "value").iter_rows():
        means.setdefault(system, {})[metric] = mean
    return means


def same_bits(found, expected, folder):
    """Check the values of every user, and the means, against those in memory."""
    assert means_of(found) == expected.means()
    inside = expected.per_user()
    values = scan_values(folder).select(inside.columns).collect()
    assert values.schema == inside.schema
    keys = ["system", "user"]
    assert values.sort(keys).equals(inside.sort(keys), null_equal=True)
    for name, row in expected.averages().items():
        for label, mean in row.items():
            got = found.row(system=name, metric=label)
            assert (got.n, got.facts["undefined"]) == (mean.users, mean.undefined)


# The same as in memory


@pytest.mark.parametrize("users", ["with-test", "with-relevant", "with-list", "both", "all"])
@pytest.mark.parametrize("undefined", ["zero", "skip"])
def test_same_bits_as_in_memory(tmp_path, users, undefined):
    test, lists = made()
    how = {"liked": 4, "users": users, "undefined": undefined}
    found = evaluate_files(*put_all(tmp_path, test, lists), METRICS, output=tmp_path / "out", **how)
    assert len(list((tmp_path / "out" / "users").iterdir())) > 3
    same_bits(found, us.evaluate(test, lists, METRICS, **how), tmp_path / "out")


@examples(12)
@given(seed=st.integers(0, 10_000), workers=st.integers(1, 3), files=st.integers(1, 5))
def test_same_bits_property(tmp_path_factory, seed, workers, files):
    home = tmp_path_factory.mktemp("files")
    test, lists = made(seed, users=30)
    paths = put_all(home, test, lists, files)
    found = evaluate_files(*paths, METRICS, liked=3, output=home / "out", workers=workers)
    same_bits(found, us.evaluate(test, lists, METRICS, liked=3), home / "out")


@pytest.mark.parametrize("ties", ["id", "trec", "random", "input"])
@pytest.mark.parametrize("kinds", ["ii", "tt", "it", "ti"])
def test_kinds_of_ids_and_ties(tmp_path, kinds, ties):
    """Integers and text meet as in memory; ties go by a run's own kind of ids."""
    test, lists = made(1)
    text = [pl.col("user").cast(pl.String), pl.col("item").cast(pl.String)]
    if kinds[0] == "t":
        test = test.with_columns(text)
    if kinds[1] == "t":
        lists = {name: frame.with_columns(text) for name, frame in lists.items()}
    how = {"liked": 4, "ties": ties, "seed": 3}
    found = evaluate_files(*put_all(tmp_path, test, lists), METRICS, output=tmp_path / "out", **how)
    same_bits(found, us.evaluate(test, lists, METRICS, **how), tmp_path / "out")


@pytest.mark.parametrize("side", ["test", "one"])
def test_some_ids_are_no_integers(tmp_path, side):
    """Then all ids compare, and sort, as text, in every part alike."""
    test, lists = made(2)
    odd = {"user": ["x"], "item": ["y"]}
    text = [pl.col("user").cast(pl.String), pl.col("item").cast(pl.String)]
    if side == "test":
        test = pl.concat([test.with_columns(text), pl.DataFrame({**odd, "rating": [5]})])
    else:
        lists["one"] = pl.concat(
            [lists["one"].with_columns(text), pl.DataFrame({**odd, "score": [1.0]})]
        )
    found = evaluate_files(
        *put_all(tmp_path, test, lists), METRICS, liked=4, output=tmp_path / "out"
    )
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")


@pytest.mark.parametrize(
    "shape", ["rank", "rank from 0", "gaps", "rows", "nested", "both", "int32"]
)
def test_shapes_of_lists(tmp_path, shape):
    test, lists = made(3)
    ranked = lists["one"].with_columns(
        rank=pl.col("score").rank("ordinal").over("user").cast(pl.Int64)
    )
    frame = {
        "rank": ranked.drop("score"),
        "rank from 0": ranked.drop("score").with_columns(pl.col("rank") - 1),
        "gaps": ranked.drop("score").with_columns(pl.col("rank") * 3),
        "rows": ranked.drop("score", "rank"),
        "nested": ranked.group_by("user", maintain_order=True).agg("item"),
        "both": ranked,
        "int32": ranked.drop("score").cast({"user": pl.Int32, "item": pl.UInt16}),
    }[shape]
    by = "score" if shape == "both" else None
    test_files, runs = put_all(tmp_path, test, {"one": frame})
    found = evaluate_files(test_files, runs, METRICS, liked=4, by=by, output=tmp_path / "out")
    run = us.read_run(frame, by=by)
    same_bits(found, us.evaluate(test, {"one": run}, METRICS, liked=4), tmp_path / "out")


def test_duplicates_nan_and_depth(tmp_path):
    metrics = ["P@5", "nDCG@7", "bpref"]
    test, lists = made(4)
    test = pl.concat([test, test.head(40).with_columns(pl.col("rating") % 5 + 1)])
    frame = pl.concat([lists["one"], lists["one"].head(30).with_columns(score=pl.lit(2.5))])
    frame = frame.with_columns(
        pl.when(pl.col("item") == 3).then(np.nan).otherwise("score").alias("score")
    )
    for duplicates in ("first", "last", "mean", "max"):
        home = tmp_path / duplicates
        found = evaluate_files(
            *put_all(home, test, {"one": frame}),
            metrics,
            liked=4,
            duplicates=duplicates,
            repeated="first",
            nan="drop",
            depth=7,
            output=home / "out",
        )
        run = us.read_run(frame, duplicates="first", nan="drop")
        judged = us.read_ratings(test, duplicates=duplicates)
        same_bits(found, us.evaluate(judged, {"one": run}, metrics, liked=4, depth=7), home / "out")


def test_named_columns_and_rules(tmp_path):
    test, lists = made(5)
    test = test.rename({"user": "a", "item": "b", "rating": "c"}).with_columns(score=pl.lit(0.0))
    frame = lists["one"].rename({"user": "a", "item": "b", "score": "d"})
    columns = {"user": "a", "item": "b", "rating": "c", "score": "d"}
    rule = us.Relevance(above=2, gain="exponential", loss={1: 2, 2: 1, 3: 0, 4: 0, 5: 0})
    test_files, runs = put_all(tmp_path, test, {"one": frame})
    found = evaluate_files(
        test_files,
        runs,
        ["nDCG@5", "nDCL@5"],
        relevance=rule,
        columns=columns,
        output=tmp_path / "out",
    )
    judged = us.read_ratings(test, user="a", item="b", rating="c")
    run = us.read_run(frame, user="a", item="b", score="d")
    same_bits(
        found,
        us.evaluate(judged, {"one": run}, ["nDCG@5", "nDCL@5"], relevance=rule),
        tmp_path / "out",
    )


@pytest.mark.parametrize("scale", ["stars", "binary", "none", "strange"])
def test_threshold_is_assumed_as_in_memory(tmp_path, scale):
    test, lists = made(6)
    test = {
        "stars": test,
        "binary": test.with_columns(rating=(pl.col("rating") > 3).cast(pl.Float64)),
        "none": test.drop("rating"),
        "strange": test.with_columns(pl.col("rating") - 3),
    }[scale]
    paths = put_all(tmp_path, test, lists)
    if scale == "strange":
        with pytest.raises(SettingError, match="what counts as liked"):
            evaluate_files(*paths, "P@10", output=tmp_path / "out")
        return
    found = evaluate_files(*paths, "P@10", output=tmp_path / "out")
    same_bits(found, us.evaluate(test, lists, "P@10"), tmp_path / "out")
    words = "every pair that occurs" if scale == "none" else "assumed"
    assert any(words in note for note in found.notes)


def test_already_by_user(tmp_path):
    """Files that are parts are judged as they are; no row is written in between."""
    test, lists = made(7)
    for name, frame in {"test": test, **lists}.items():
        (tmp_path / name).mkdir()
        for part in range(4):
            own = frame.filter(pl.col("user") % 4 == part)
            own.write_parquet(tmp_path / name / f"{part}.parquet")
    found = evaluate_files(
        tmp_path / "test",
        {"one": tmp_path / "one", "two": tmp_path / "two"},
        METRICS,
        liked=4,
        by_user=True,
        output=tmp_path / "out",
    )
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")


def test_a_run_may_be_called_judgments(tmp_path):
    test, lists = made(8)
    put(test, tmp_path / "test")
    put(lists["one"], tmp_path / "judgments")
    found = evaluate_files(
        tmp_path / "test", tmp_path / "judgments", "P@5", liked=4, output=tmp_path / "out"
    )
    same_bits(
        found, us.evaluate(test, {"judgments": lists["one"]}, "P@5", liked=4), tmp_path / "out"
    )


def test_files_folders_patterns(tmp_path):
    test, lists = made(8)
    put(test, tmp_path / "deep" / "test" / "day=1")
    put(lists["one"], tmp_path / "one.v2")
    (tmp_path / "one.v2" / "_temporary").mkdir()
    (tmp_path / "one.v2" / "_temporary" / "x.parquet").write_text("not this one")
    found = [
        str(Path(p).relative_to(tmp_path))
        for p in parquet.find_files(
            "x", [tmp_path / "deep", str(tmp_path / "one.v2" / "[01].parquet")]
        )
    ]
    assert found == [
        "deep/test/day=1/0.parquet",
        "deep/test/day=1/1.parquet",
        "deep/test/day=1/2.parquet",
        "one.v2/0.parquet",
        "one.v2/1.parquet",
    ]
    assert parquet.source_name("logs/mine/*.parquet") == "mine"
    assert parquet.source_name("logs/mine.parquet") == "mine"
    assert parquet.source_name("logs/mine/") == "mine"
    scores = evaluate_files(
        tmp_path / "deep", [tmp_path / "one.v2"], "P@5", liked=4, output=tmp_path / "out"
    )
    assert scores.systems == ["one"]
    same_bits(scores, us.evaluate(test, {"one": lists["one"]}, "P@5", liked=4), tmp_path / "out")


# Exact sums

REALS = st.lists(
    st.one_of(st.just(float("nan")), st.floats(0, 1), st.floats(-1e6, 1e6)), min_size=1, max_size=30
)


@given(REALS, st.integers(0, 29), st.sampled_from(["zero", "skip"]))
def test_means_and_errors_are_exact(values, cut, undefined):
    """Two parts give the mean and the standard error that exact fractions give."""
    row = np.array(values)
    parts = [part[None, :] for part in (row[:cut], row[cut:])]
    sums = [_parts._moments(part, np.ones(part.shape[1], bool))[0] for part in parts]
    found = estimate([a + b for a, b in zip(*sums, strict=True)], undefined)
    used = [0.0 if np.isnan(v) else v for v in values if undefined == "zero" or not np.isnan(v)]
    if not used:
        assert np.isnan(found["value"])
        return
    exact = [Fraction(v) for v in used]
    mean = sum(exact) / len(exact)
    assert found["value"] == float(mean)
    assert found["n"] == len(used)
    if len(used) > 1:
        variance = sum((v - mean) ** 2 for v in exact) / (len(exact) - 1) / len(exact)
        # Squares of tiny numbers fall below the smallest one.
        assert found["se"] == pytest.approx(float(variance) ** 0.5, rel=1e-15, abs=1e-150)
    else:
        assert np.isnan(found["se"])


def test_standard_errors_by_hand(tmp_path):
    test = pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 1], "rating": [5, 5, 5]})
    lists = pl.DataFrame({"user": [1, 2, 3], "item": [1, 1, 2], "rank": [1, 1, 1]})
    test.write_parquet(tmp_path / "t.parquet")
    lists.write_parquet(tmp_path / "mine.parquet")
    found = evaluate_files(
        tmp_path / "t.parquet", tmp_path / "mine.parquet", "P@1", liked=4, output=tmp_path / "out"
    )
    one = found.row(system="mine", metric="P@1")
    assert (one.value, one.n) == (2 / 3, 3)
    se = (1 / 9) ** 0.5  # variance 1/3, three users
    assert (one.se, one.low, one.high) == pytest.approx((se, 2 / 3 - 2 * se, 2 / 3 + 2 * se))


# The partition pass


def test_a_user_is_in_one_part_and_rows_keep_their_order(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"user": rng.integers(-50, 50, 1000), "item": np.arange(1000)})
    frame.write_parquet(tmp_path / "a.parquet")
    reading = parquet.ParquetReading()
    source = parquet.judgments_source(tmp_path / "a.parquet", {}, reading)
    chunks = shuffle.chunks_of(source, 130, tmp_path / "parts", 7, "integer", False)
    assert sum(chunk.count for chunk in chunks) == 1000
    for chunk in reversed(chunks):
        shuffle.spill(chunk)
        assert shuffle.is_spilled(chunk)
    paths = [chunk.path for chunk in chunks]
    parts = [shuffle.gather(paths, part, 7) for part in range(7)]
    assert pl.concat(parts).sort("item").equals(frame)
    owners = [set(part["user"]) for part in parts]
    assert sum(map(len, owners)) == frame["user"].n_unique()
    assert all(part["item"].is_sorted() for part in parts)
    Path(paths[0]).write_bytes(Path(paths[0]).read_bytes()[:-5])
    assert not shuffle.is_spilled(chunks[0])


def test_equal_users_of_other_types_fall_into_one_part():
    numbers = pl.Series([5, -3, 10**12, 0])
    texts = numbers.cast(pl.String)
    for kind in ("integer", "text"):
        a, b = (shuffle.part_of(s, kind, 1000) for s in (numbers, texts))
        assert a.tolist() == b.tolist()
    assert shuffle.part_of(numbers.cast(pl.Float64), "integer", 1000).tolist() == (
        shuffle.part_of(numbers, "integer", 1000).tolist()
    )


# Resuming


def test_a_stopped_evaluation_goes_on(tmp_path, monkeypatch):
    test, lists = made(9)
    paths = put_all(tmp_path, test, lists)
    how = {"metrics": METRICS, "liked": 4, "output": tmp_path / "out", "workers": 1}
    spilled, judged = [], []
    spill, judge = _job.spill, _job.judge_part
    stop = {"after": 5}

    def counting(chunk):
        if len(spilled) == stop["after"]:
            raise KeyboardInterrupt
        spill(chunk)
        spilled.append(chunk.path)

    def judging(job, part):
        if len(judged) == stop["after"]:
            raise OSError("no space left")
        judge(job, part)
        judged.append(part)

    monkeypatch.setattr(_job, "spill", counting)
    monkeypatch.setattr(_job, "judge_part", judging)
    with pytest.raises(KeyboardInterrupt):
        evaluate_files(*paths, **how)
    assert len(spilled) == 5
    stop["after"] = 3
    spilled.append("so that it is more than 3")
    with pytest.raises(OSError, match="no space left"):
        evaluate_files(*paths, **how)
    assert len(judged) == 3
    assert not (tmp_path / "out" / "card.json").exists()
    stop["after"] = -1
    found = evaluate_files(*paths, **{**how, "workers": 2, "memory": "4GiB"})
    assert len(set(spilled)) == len(spilled), "a chunk was done twice"
    assert len(set(judged)) == len(judged), "a part was done twice"
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "card.json",
        "job.json",
        "means.parquet",
        "users",
    ]
    before = len(judged)
    again = evaluate_files(*paths, **how)
    assert len(judged) == before
    assert again.table().equals(found.table())


def test_an_interrupt_begins_nothing_more(tmp_path, monkeypatch):
    test, lists = made(9)
    paths = put_all(tmp_path, test, lists)
    begun = []
    judge, set_handler = _job.judge_part, signal.signal
    arrived = threading.Event()

    def observed(number, handler):
        def stop(*given):
            handler(*given)
            arrived.set()

        is_ours = getattr(handler, "__module__", None) == _job.__name__
        return set_handler(number, stop if is_ours else handler)

    def judging(job, part):
        begun.append(part)
        if len(begun) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        assert arrived.wait(60), "the interrupt did not arrive"
        judge(job, part)

    monkeypatch.setattr(_job.signal, "signal", observed)
    monkeypatch.setattr(_job, "judge_part", judging)
    how = {"metrics": METRICS, "liked": 4, "output": tmp_path / "out", "workers": 2}
    with pytest.raises(KeyboardInterrupt):
        evaluate_files(*paths, **how)
    first = list(begun)
    found = evaluate_files(*paths, **how)
    assert len(begun) > len(first)
    assert len(set(begun)) == len(begun), "what was begun has ended, and was kept"
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")


def test_what_may_be_lost_in_a_power_cut_is_done_again(tmp_path, monkeypatch):
    test, lists = made(9)
    paths = put_all(tmp_path, test, lists)
    how = {"metrics": "P@5", "liked": 4, "output": tmp_path / "out", "workers": 1}
    monkeypatch.setattr(_job, "judge_part", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evaluate_files(*paths, **how)
    monkeypatch.undo()
    parts = tmp_path / "out" / "parts"
    for chunk in parts.rglob("0*"):
        if chunk.is_file():
            chunk.write_bytes(bytes(chunk.stat().st_size))
    monkeypatch.setattr(_job, "_boot", lambda: "another start of the machine")
    same_bits(
        evaluate_files(*paths, **how), us.evaluate(test, lists, "P@5", liked=4), tmp_path / "out"
    )


def test_killed_and_started_again(tmp_path):
    """SIGKILL in the middle of the work, several times; then the same bits."""
    test, lists = made(10, users=400)
    test_files, runs = put_all(tmp_path, test, lists)
    code = (
        "import sys, time\n"
        "from unskew.evaluation.on_disk import _job, files as big\n"
        "_job._EASY_PART, _job._MOST_CHUNK, _job._LEAST_CHUNK = 300, 170, 10\n"
        "judge = _job.judge_part\n"
        "def slow(job, part):\n"
        "    judge(job, part)\n"
        "    print(part, flush=True)\n"
        "    time.sleep(0.05)\n"
        "_job.judge_part = slow\n"
        f"big.evaluate_files({str(test_files)!r}, "
        f"{ {name: str(path) for name, path in runs.items()}!r}, {METRICS!r}, liked=4, "
        f"output={str(tmp_path / 'out')!r})\n"
    )
    seen = []
    for _ in range(2):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for line in child.stdout:
            seen.append(int(line))
            os.kill(child.pid, signal.SIGKILL)
            break
        child.wait()
        child.stdout.close()
    assert len(seen) == 2
    assert seen[0] != seen[1]
    assert not (tmp_path / "out" / "card.json").exists()
    (tmp_path / "out" / "users" / ".00000.parquet.0-1-2.part").write_text("half")
    found = evaluate_files(test_files, runs, METRICS, liked=4, output=tmp_path / "out")
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")
    assert not list((tmp_path / "out").rglob("*.part"))


def flipped(path, rng):
    """Flip one bit of a file."""
    spoilt = bytearray(path.read_bytes())
    spoilt[rng.integers(len(spoilt))] ^= 1 << int(rng.integers(8))
    path.write_bytes(spoilt)


def stopped(tmp_path, monkeypatch, done):
    """Leave an evaluation that was stopped when so many parts were judged."""
    test, lists = made(9)
    paths = put_all(tmp_path, test, lists)
    how = {"metrics": METRICS, "liked": 4, "output": tmp_path / "out", "workers": 1}
    judge, judged = _job.judge_part, []

    def judging(job, part):
        if len(judged) == done:
            raise OSError("stopped")
        judge(job, part)
        judged.append(part)

    with monkeypatch.context() as patch:
        patch.setattr(_job, "judge_part", judging)
        with pytest.raises(OSError, match="stopped"):
            evaluate_files(*paths, **how)
    return lambda: evaluate_files(*paths, **how), us.evaluate(test, lists, METRICS, liked=4)


@pytest.mark.parametrize("turn", range(4))
def test_flipped_bits_of_spilled_rows_are_found(tmp_path, monkeypatch, turn):
    go_on, expected = stopped(tmp_path, monkeypatch, 0)
    rng = np.random.default_rng(turn)
    chunks = sorted(path for path in (tmp_path / "out" / "parts").rglob("*") if path.is_file())
    spoilt = chunks[rng.integers(len(chunks))]
    whole = spoilt.read_bytes()
    while spoilt.read_bytes() == whole:
        flipped(spoilt, rng)
    for _ in range(3):  # the damaged file is removed, and made again
        try:
            found = go_on()
        except DataError as problem:
            assert "changed since it was written" in str(problem)  # noqa: PT017
        else:
            break
    same_bits(found, expected, tmp_path / "out")


def test_every_flip_of_a_spilled_piece_is_found(tmp_path):
    frame = pl.DataFrame({"user": np.arange(40), "item": np.arange(40)})
    frame.write_parquet(tmp_path / "a.parquet")
    source = parquet.judgments_source(tmp_path / "a.parquet", {}, parquet.ParquetReading())
    (chunk,) = shuffle.chunks_of(source, 40, tmp_path / "parts", 3, "integer", False)
    shuffle.spill(chunk)
    path = Path(chunk.path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    counts = range(len(whole) - 3 * shuffle._TAIL, len(whole) - 3 * shuffle.DIGEST)
    for _ in range(300):
        at = int(rng.integers(len(whole)))
        if at in counts:  # how many rows there are: only for the estimate of memory
            continue
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :]
        )
        if not shuffle.is_spilled(chunk):
            continue
        with pytest.raises(DataError, match="changed since it was written"):
            all(shuffle.gather([str(path)], part, 3).width for part in range(3))
        assert not path.exists()


@pytest.mark.parametrize("folder", ["sums", "users"])
def test_flipped_bits_of_finished_parts_are_found(tmp_path, monkeypatch, folder):
    """What is damaged is judged again, and the means are the right ones."""
    go_on, expected = stopped(tmp_path, monkeypatch, 3)
    rng = np.random.default_rng(1)
    for path in (tmp_path / "out" / folder).iterdir():
        flipped(path, rng)
    same_bits(go_on(), expected, tmp_path / "out")


def test_a_flipped_bit_of_the_job_is_found(tmp_path, monkeypatch):
    go_on, _ = stopped(tmp_path, monkeypatch, 1)
    flipped(tmp_path / "out" / "job.json", np.random.default_rng(2))
    with pytest.raises(DataError, match=r"out: cannot go on \(job\.json .*give another output"):
        go_on()


def read_all(folder):
    load_means(folder)
    return scan_values(folder).collect()


def test_flipped_bits_of_what_was_written_are_found(tmp_path):
    test, lists = made(9)
    evaluate_files(*put_all(tmp_path, test, lists), "P@5", liked=4, output=tmp_path / "out")
    rng = np.random.default_rng(3)
    for path in sorted((tmp_path / "out").rglob("*.*")):
        if path.name == "job.json":  # has had its time
            continue
        for _ in range(20):
            whole = path.read_bytes()
            flipped(path, rng)
            with pytest.raises(DataError, match=f"{path.name}|no finished|saved in format"):
                read_all(tmp_path / "out")
            path.write_bytes(whole)
    assert read_all(tmp_path / "out").height > 0


def test_another_evaluation_does_not_go_on(tmp_path):
    test, lists = made(11)
    paths = put_all(tmp_path, test, lists)
    evaluate_files(*paths, "P@5", liked=4, output=tmp_path / "out")
    with pytest.raises(SettingError, match=r"holds another evaluation \(relevance differs\)"):
        evaluate_files(*paths, "P@5", liked=3, output=tmp_path / "out")
    with pytest.raises(SettingError, match=r"metrics differs"):
        evaluate_files(*paths, "P@6", liked=4, output=tmp_path / "out")
    file = paths[0] / "0.parquet"
    os.utime(file, (1, 1))
    with pytest.raises(SettingError, match=r"judgments differs"):
        evaluate_files(*paths, "P@5", liked=4, output=tmp_path / "out")
    with pytest.raises(SettingError, match="is not empty"):
        evaluate_files(*paths, "P@5", liked=4, output=tmp_path)


# Clusters


@pytest.fixture
def client():
    """Give two worker processes on this machine."""
    from distributed import Client, LocalCluster

    # Port 0: another cluster on this machine may have taken the usual one.
    how = {"dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **how) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.slow
def test_same_bits_on_a_cluster(tmp_path, client):
    test, lists = made(12)
    paths = put_all(tmp_path, test, lists)
    found = evaluate_files(*paths, METRICS, liked=4, output=tmp_path / "out", cluster=client)
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")
    bad = at_row(lists["one"], 500, "score", float("nan"))
    runs = {"bad": put(bad, tmp_path / "bad")}
    with pytest.raises(DataError, match=r"1\.parquet: 1 score is NaN or missing"):
        evaluate_files(paths[0], runs, "P@5", liked=4, output=tmp_path / "o2", cluster=client)
    with pytest.raises(SettingError, match="has its own workers"):
        evaluate_files(*paths, "P@5", output=tmp_path / "o3", cluster=client, workers=2)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path, client):
    test, lists = made(13, users=3000)
    paths = put_all(tmp_path, test, lists)
    pids = list(client.run(os.getpid).values())
    killed = []

    def kill(done, total):
        if done == total // 3:
            os.kill(pids[0], signal.SIGKILL)
            killed.append(done)

    found = evaluate_files(
        *paths, METRICS, liked=4, output=tmp_path / "out", cluster=client, progress=kill
    )
    assert killed
    same_bits(found, us.evaluate(test, lists, METRICS, liked=4), tmp_path / "out")


def test_a_worker_must_see_the_output_folder(tmp_path):
    seen = _job._reporting(lambda _: None, tmp_path / "job.json", 0)
    assert isinstance(seen, DataError)
    assert f"does not see {tmp_path}" in str(seen)
    (tmp_path / "job.json").write_text("{}")
    assert _job._reporting(lambda _: None, tmp_path / "job.json", 0) is None
    with pytest.raises(RuntimeError, match="finished parts are kept"):
        _job._must_have_worked(Outcome(0, None, "it broke"))


# Bad rows


def broken(tmp_path, test=None, lists=None, **how):
    """Evaluate a changed copy of good data and return what the error says."""
    good, runs = made(14)
    paths = put_all(
        tmp_path,
        good if test is None else test(good),
        {"one": (lists or (lambda x: x))(runs["one"])},
    )
    with pytest.raises(DataError) as caught:
        evaluate_files(*paths, "P@5", liked=4, output=tmp_path / "out", **how)
    return str(caught.value)


def at_row(frame, row, column, value):
    """Return the frame with one cell changed."""
    return frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(pl.lit(value)).otherwise(column).alias(column)
    )


@pytest.mark.parametrize(
    ("side", "column", "value", "said"),
    [
        ("test", "rating", None, "1 rating is missing, NaN or infinite, the first in row"),
        (
            "test",
            "rating",
            float("inf"),
            "1 rating is missing, NaN or infinite, the first in row",
        ),
        ("test", "user", None, "column 'user': 1 id is missing, the first in row"),
        ("test", "item", 2.5, "ids must be whole numbers or text, but row"),
        ("test", "rating", 1e308, "1 rating is beyond ±1e+100, the first in row"),
        ("one", "score", float("nan"), "1 score is NaN or missing, the first in row"),
        ("one", "item", None, "column 'item': 1 id is missing, the first in row"),
    ],
)
@pytest.mark.parametrize("row", [3, 401])
def test_bad_cells_name_file_and_row(tmp_path, side, column, value, said, row):
    frame = made(14)[0] if side == "test" else made(14)[1]["one"]
    change = {("lists" if side == "one" else "test"): lambda f: at_row(f, row, column, value)}
    text = broken(tmp_path, **change)
    step = -(-frame.height // 3)
    assert f"{tmp_path}/{side}/{row // step}.parquet: " in text
    assert said in text
    assert f"row {row % step + 1}" in text


def test_ratings_that_are_text(tmp_path):
    text = broken(
        tmp_path, test=lambda f: at_row(f.cast({"rating": pl.String}), 401, "rating", "?")
    )
    assert "1 of the ratings in column 'rating' is not a number" in text
    assert "'?'" in text


def test_pairs_that_stand_twice_name_their_rows(tmp_path):
    good, lists = made(14)
    user, item, _ = good.row(17)
    text = broken(tmp_path, test=lambda f: pl.concat([f, f.slice(17, 1)]))
    step = -(-(good.height + 1) // 3)
    assert f"1 user-item pair occurs more than once, the first: user {user}, item {item}" in text
    assert f"row 18 of {tmp_path}/test/0.parquet" in text
    assert f"row {good.height - 2 * step + 1} of {tmp_path}/test/2.parquet" in text
    user, item, _ = lists["one"].row(5)
    text = broken(tmp_path / "2", lists=lambda f: pl.concat([f, f.slice(5, 1)]))
    assert f"1 item occurs twice in one list, the first: user {user}, item {item}" in text
    assert f"row 6 of {tmp_path}/2/one/0.parquet" in text


def test_ranks_that_stand_twice_name_their_rows(tmp_path):
    def ranked(frame):
        frame = frame.with_columns(
            rank=pl.col("score").rank("ordinal").over("user").cast(pl.Int64)
        ).drop("score")
        first = frame.filter(pl.col("rank") == 2).row(0)
        return frame.with_columns(
            rank=pl.when((pl.col("user") == first[0]) & (pl.col("rank") == 2))
            .then(1)
            .otherwise("rank")
        )

    text = broken(tmp_path, lists=ranked)
    assert "1 rank occurs twice in one list" in text
    assert text.count("row ") == 2


def test_no_ids_in_common(tmp_path):
    text = broken(tmp_path, lists=lambda f: f.with_columns(pl.col("user") + 1000))
    assert "one: no users in common with the judgments" in text


def test_no_items_in_common_is_a_zero_with_a_warning(tmp_path):
    test, lists = made(14)
    lists = {"one": lists["one"].with_columns(pl.col("item") + 1000)}
    with pytest.warns(us.DataWarning, match="one: no items in common with the judgments"):
        found = evaluate_files(
            *put_all(tmp_path, test, lists), "P@5", liked=4, output=tmp_path / "out"
        )
    with pytest.warns(us.DataWarning, match="one: no items in common with the judgments"):
        same_bits(found, us.evaluate(test, lists, "P@5", liked=4), tmp_path / "out")
    assert means_of(found) == {"one": {"P@5": 0.0}}
    assert str(found).endswith("\n".join(found.notes))


def test_a_common_item_beyond_parts_is_enough(tmp_path):
    """As in memory: items need not meet for one user, only at all."""
    test = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [5, 5]})
    lists = {"one": pl.DataFrame({"user": [1, 2], "item": [9, 1], "rank": [1, 1]})}
    found = evaluate_files(
        *put_all(tmp_path, test, lists, 1), "P@1", liked=4, output=tmp_path / "out"
    )
    same_bits(found, us.evaluate(test, lists, "P@1", liked=4), tmp_path / "out")
    for source in (parquet.run_source("one", tmp_path / "one", {}, parquet.ParquetReading()),):
        job = _parts.Job(
            parquet.judgments_source(tmp_path / "test", {}, parquet.ParquetReading()),
            (source,),
            (),
            us.Relevance(4),
            "all",
            "zero",
            None,
            1,
            "integer",
            "integer",
            "",
            0,
        )
        assert remarks.share_items(job, source)


def test_scattered_users_are_refused(tmp_path):
    test, lists = made(15)
    paths = put_all(tmp_path, test, lists)
    with pytest.raises(DataError, match=r"by_user: \d+ users are in more than one part, the first"):
        evaluate_files(*paths, "P@5", liked=4, by_user=True, output=tmp_path / "out")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"metrics": "Coverage"}, "Coverage describes a whole run"),
        ({"metrics": ["P@5", "ARP@5"]}, "ARP@5 looks at training ratings"),
        ({"metrics": "AUC"}, "AUC looks at the whole catalogue"),
        ({"metrics": "SR(gamma=1)@5"}, "weighs items by all their ratings"),
        ({"users": "with-train"}, "needs training ratings"),
        ({"users": "some"}, "unknown users"),
        ({"ties": "coin"}, "unknown ties"),
        ({"nan": "keep"}, "unknown nan"),
        ({"duplicates": "least"}, "unknown duplicates"),
        ({"repeated": "last"}, "unknown repeated"),
        ({"by": "fame"}, "unknown by"),
        ({"columns": {"time": "t"}}, "unknown columns"),
        ({"depth": 0}, "depth must be at least 1"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"memory": "300MiB"}, r"too little for 2 workers in one process: give at least 384MiB"),
        ({"gain": lambda x: x}, "not a function"),
        ({"relevance": us.Relevance(4, loss=lambda x: x), "liked": None}, "not a function"),
        ({"relevance": us.Relevance(4)}, "not both"),
        ({"cluster": 7, "workers": None}, "cluster must be a text"),
    ],
)
def test_settings_that_are_refused(tmp_path, how, said):
    test, lists = made(16)
    paths = put_all(tmp_path, test, lists)
    how = {"metrics": "P@5", "liked": 4, "output": tmp_path / "out", "workers": 2, **how}
    with pytest.raises(SettingError, match=said):
        evaluate_files(*paths, **how)
    assert not (tmp_path / "out").exists()


def test_sources_that_are_refused(tmp_path):
    test, lists = made(17)
    test_files, runs = put_all(tmp_path, test, lists)

    def refused(judgments, systems, **how):
        with pytest.raises((DataError, SettingError)) as caught:
            evaluate_files(judgments, systems, "P@5", liked=4, output=tmp_path / "out", **how)
        return str(caught.value)

    assert "no Parquet file here" in refused(tmp_path / "nothing", runs)
    assert "evaluate() takes tables" in refused(test, runs)
    assert "no runs are given" in refused(test_files, {})
    assert "expected a file, a folder or a pattern" in refused(test_files, lists["one"])
    assert "two runs are named 'one'" in refused(test_files, [runs["one"], runs["one"]])
    assert "the same file is meant twice" in refused([test_files, test_files], runs)
    assert "there is no rank column for by='rank'" in refused(test_files, runs, by="rank")
    os.mkfifo(tmp_path / "pipe.parquet")
    assert "pipe can be read only once" in refused(tmp_path / "pipe.parquet", runs)
    assert "cannot be read: the name is too long" in refused("x" * 300, runs)
    assert "no column 'x' for user" in refused(test_files, runs, columns={"user": "x"})
    (tmp_path / "no.parquet").write_text("hello")
    assert "not a readable Parquet file" in refused(tmp_path / "no.parquet", runs)
    test.clear().write_parquet(tmp_path / "empty.parquet")
    assert "judgments: there are no rows" in refused(tmp_path / "empty.parquet", runs)
    test.drop("rating").write_parquet(test_files / "9.parquet")
    assert "9.parquet: no column 'rating', which" in refused(test_files, runs)
    test.cast({"user": pl.String}).write_parquet(test_files / "9.parquet")
    assert "column 'user' holds integers in" in refused(test_files, runs)
    wide = test.with_columns(user=pl.lit(2**63 + 5, dtype=pl.UInt64))
    wide.write_parquet(test_files / "9.parquet")
    assert "beyond 2**63; write them as text" in refused(test_files, runs)
    (test_files / "9.parquet").unlink()
    (runs["one"] / "2.parquet").unlink()
    assert "by_user: one has 2 files and the judgments have 3" in (
        refused(test_files, runs, by_user=True)
    )


def test_parts_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    test, lists = made(17)
    monkeypatch.setattr(_job, "_PER_PART", 1e6)
    with pytest.raises(SettingError, match=r"by_user: part 1 .* needs about"):
        evaluate_files(
            *put_all(tmp_path, test, lists), "P@5", liked=4, by_user=True, output=tmp_path / "out"
        )
    monkeypatch.setattr(_job, "_PER_PART", 1e12)
    with pytest.raises(SettingError, match="give more memory"):
        evaluate_files(tmp_path / "test", tmp_path / "one", "P@5", liked=4, output=tmp_path / "out")


def test_less_memory_gives_more_parts(tmp_path, monkeypatch):
    test, lists = made(17, users=600)
    paths = put_all(tmp_path, test, lists)
    monkeypatch.setattr(_job, "_PER_PART", 4e4)
    monkeypatch.setattr(_job, "_UNEVEN", 3.0)  # few users make uneven parts
    parts = []
    for memory in ("2GiB", "1GiB", "512MiB"):
        out = tmp_path / memory
        found = evaluate_files(*paths, "P@5", liked=4, output=out, workers=1, memory=memory)
        parts.append(json.loads((out / "job.json").read_text())["layout"]["parts"])
        same_bits(found, us.evaluate(test, lists, "P@5", liked=4), out)
    assert parts[0] < parts[1] < parts[2]


# What comes out


def test_result(tmp_path):
    test, lists = made(18)
    paths = put_all(tmp_path, test, lists)
    steps = []
    how = {"liked": 4, "progress": lambda done, total: steps.append((done, total))}
    with pytest.warns(DataWarning, match="fewer than the cutoff of P@50"):
        found = evaluate_files(*paths, ["P@5", "P@50"], output=tmp_path / "out", **how)
    assert steps[-1][0] == steps[-1][1] == len(steps)
    columns = ["system", "metric", "n", "value", "se", "low", "high", "undefined"]
    assert found.table().columns == columns
    assert "standard error" in str(found)
    assert "<table" in found._repr_html_()
    assert found.figure().to_dict()["datasets"]["rows"][0]["system"] == "one"
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["rows"][0]["value"] == found.row(system="one", metric="P@5").value
    assert plain["card"]["systems"]["two"]["rows"] == lists["two"].height
    assert str(tmp_path) not in json.dumps(plain["card"])
    assert any("9 lists of users without test data" in note for note in found.notes)
    loaded = load_means(tmp_path / "out")
    assert str(loaded) == str(found)
    assert loaded.table().equals(found.table())
    assert loaded.notes == found.notes
    with pytest.raises(SettingError, match="unknown metric"):
        found.row(metric="AP")
    with pytest.raises(DataError, match="no finished evaluation"):
        load_means(tmp_path)
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    (tmp_path / "out" / "card.json").write_text(json.dumps({**card, "format": 99}))
    with pytest.raises(DataError, match="saved in format 99"):
        load_means(tmp_path / "out")


def test_no_judgment_is_disliked(tmp_path):
    test, lists = made(18)
    test = test.with_columns(rating=pl.lit(5))
    with pytest.warns(DataWarning, match="bpref cannot tell good from bad"):
        evaluate_files(*put_all(tmp_path, test, lists), "bpref", liked=4, output=tmp_path / "out")


# The command


def test_command(tmp_path, call):
    test, lists = made(19)
    test_files, runs = put_all(tmp_path, test, lists)
    arguments = [
        "evaluate",
        "-j",
        test_files,
        "-r",
        runs["one"],
        "-r",
        f"b={runs['two']}",
        "-m",
        "P@5,RR",
        "--liked",
        4,
        "--format",
        "json",
        "-q",
    ]
    code, out, err = call(*arguments, "--on-disk", tmp_path / "out", "--memory", "1GiB")
    assert (code, err) == (0, "")
    expected = us.evaluate(test, {"one": lists["one"], "b": lists["two"]}, ["P@5", "RR"], liked=4)
    got = {(row["system"], row["metric"]): row["value"] for row in json.loads(out)["rows"]}
    assert got == {(s, m): v for s, row in expected.means().items() for m, v in row.items()}
    assert call(*arguments, "--on-disk", tmp_path / "out", "--memory", "1GiB")[1] == out
    code, _, err = call(*arguments)
    assert code == 2
    assert "need --on-disk" in err
    code, _, err = call(*arguments, "--on-disk", tmp_path / "out", "--train", test_files)
    assert code == 2
    assert "--train cannot be used with --on-disk" in err
    code, out, _ = call(*arguments[:-3], "--format", "latex", "--on-disk", tmp_path / "o2")
    assert code == 0
    assert "\\begin{tabular}" in out
    code, _, err = call(
        "evaluate", "-j", test_files / "0.parquet", "-r", runs["one"] / "0.parquet", "--by-user"
    )
    assert code == 2
    assert "need --on-disk" in err


# Memory

# Not getrusage: a child starts with the peak of the process that started it.
PEAK = """
def peak():
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024

"""
MEASURE = (
    PEAK
    + """
import sys
from unskew.evaluation.on_disk import files as big
big.evaluate_files(sys.argv[1] + "/judgments", sys.argv[1] + "/lists", "nDCG@10", liked=4,
                   output=sys.argv[2], memory=sys.argv[3], workers=int(sys.argv[4]))
print(peak())
"""
)


# Memory


def test_the_footer_tells_how_large_row_groups_are(tmp_path):
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "user": rng.integers(0, 9, 10_000),
            "score": rng.random(10_000),
            "items": [[1, 2]] * 10_000,
            "note": ["x"] * 10_000,
            "flag": [True] * 10_000,
        }
    )
    path = str(tmp_path / "a.parquet")
    sizes = []
    for rows in (10_000, 2500, 10):
        frame.write_parquet(path, row_group_size=rows, compression="uncompressed")
        sizes.append(footer.largest_row_group(path, ["score"]))
        assert rows * 8 <= sizes[-1] <= rows * 8 + 200
        both = footer.largest_row_group(path, ["score", "items"])
        assert both == sizes[-1] + footer.largest_row_group(path, ["items"])
    assert footer.largest_row_group(path, frame.columns) < Path(path).stat().st_size
    frame.clear().write_parquet(path)
    assert footer.largest_row_group(path, ["score"]) == 0
    Path(path).write_bytes(b"something else")
    assert footer.largest_row_group(path, ["score"]) == 14  # no more than all of it


def large_row_groups(home, rows=1_000_000):
    """Write one large row group, and some judgments."""
    rng = np.random.default_rng(0)
    user = np.arange(rows) // 20
    run = pl.DataFrame(
        {"user": user, "item": rng.integers(0, 9**9, rows), "score": rng.random(rows)}
    )
    run.write_parquet(home / "run.parquet", row_group_size=rows)
    test = run.gather_every(1000).select("user", "item", rating=pl.lit(5))
    test.write_parquet(home / "test.parquet")
    return home / "test.parquet", home / "run.parquet"


def test_large_row_groups_need_memory(tmp_path, monkeypatch):
    paths = large_row_groups(tmp_path, 100_000)
    held = footer.largest_row_group(str(paths[1]), ["user", "item", "score"])
    assert held > 1 << 20
    monkeypatch.setattr(big, "LEAST", 1 << 20)
    how = {"metrics": "P@5", "liked": 4, "output": tmp_path / "out"}
    with pytest.raises(
        SettingError,
        match=r"run\.parquet: reading a row of its largest row group takes 1 MiB\. Give at "
        r"least 32[45]MiB, or fewer workers, or write the file with smaller row groups",
    ):
        evaluate_files(*paths, **how, memory="322MiB", workers=2)
    # One worker has room; where their number was not given, that many are taken.
    monkeypatch.setattr(_job, "resolve", lambda _: 8)
    assert evaluate_files(*paths, **how, memory="323MiB").row(metric="P@5").value > 0


def heavy_user(home, monkeypatch, rows=400):
    """Write a user with as many rows as all others together, who needs 2 GiB by our estimate."""
    light = np.arange(rows) % 100
    run = pl.DataFrame(
        {
            "user": np.concatenate([light, np.full(rows, 777)]),
            "item": np.concatenate([np.arange(rows), np.arange(rows)]),
            "score": np.arange(2 * rows) / 7,
        }
    )
    test = run.gather_every(7).select("user", "item", rating=pl.lit(5))
    run.write_parquet(home / "run.parquet")
    test.write_parquet(home / "test.parquet")
    monkeypatch.setattr(_job, "_PER_PART", (2 << 30) / rows / 24)
    monkeypatch.setattr(_job, "_UNEVEN", 3.0)
    return test, run, (home / "test.parquet", home / "run.parquet")


def test_a_user_beyond_memory_is_refused_and_named(tmp_path, monkeypatch):
    test, run, paths = heavy_user(tmp_path, monkeypatch)
    how = {"metrics": ["P@5", "RR"], "liked": 4, "output": tmp_path / "out", "workers": 1}
    judged = []
    judge = _job.judge_part
    monkeypatch.setattr(_job, "judge_part", lambda *task: judged.append(judge(*task)))
    with pytest.raises(SettingError) as told:
        evaluate_files(*paths, **how, memory="1GiB")
    found = re.fullmatch(
        r"a part of the users needs about ([\d,]+) MiB, but 704 MiB are available\. User 777 "
        r"has the most rows in it, (\d+), .* with at least ([\d,]+) MiB more memory: finished "
        r"parts are kept",
        str(told.value),
    )
    assert found
    assert int(found[2]) > 400
    assert not judged  # before any memory is taken
    more = 1024 + int(found[3].replace(",", ""))
    result = evaluate_files(*paths, **how, memory=f"{more}MiB")
    same_bits(result, us.evaluate(test, {"run": run}, ["P@5", "RR"], liked=4), tmp_path / "out")


def test_a_heavy_part_is_judged_alone(tmp_path, monkeypatch):
    test, run, paths = heavy_user(tmp_path, monkeypatch)
    how = {"metrics": ["P@5"], "liked": 4, "output": tmp_path / "out"}
    done = []
    do = _job.Workers.do

    def doing(self, function, tasks, moved):
        done.append((self.count, len(tasks)))
        do(self, function, tasks, moved)

    monkeypatch.setattr(_job.Workers, "do", doing)
    result = evaluate_files(*paths, **how, memory="4GiB", workers=3)
    assert [count for count, _ in done] == [3, 3, 1]
    assert done[1][1] > 1
    assert done[2][1] == 1
    same_bits(result, us.evaluate(test, {"run": run}, ["P@5"], liked=4), tmp_path / "out")


MEASURED = (
    PEAK
    + """
import sys
import unskew as us
try:
    us.evaluation.evaluate_files(sys.argv[1], sys.argv[2], ["P@10", "nDCG@10"],
                      liked=4, output=sys.argv[3], memory=sys.argv[4], workers=2)
    print("done")
except us.SettingError as problem:
    print("refused")
print(peak() >> 20)
"""
)


@pytest.mark.slow
def test_row_groups_and_users_stay_within_the_bound(tmp_path):
    """What is judged is judged within the memory given, and else refused within it."""

    def measured(paths, memory, out):
        where = [str(path) for path in (*paths, tmp_path / out)]
        done = subprocess.run(
            [sys.executable, "-c", MEASURED, *where, f"{memory}MiB"],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        outcome, peak = done.stdout.split()
        print(out, memory, outcome, peak)
        assert int(peak) <= memory
        return outcome

    (tmp_path / "group").mkdir()
    group = large_row_groups(tmp_path / "group", 6_000_000)
    assert measured(group, 440, "tight") == "refused"
    assert measured(group, 620, "enough") == "done"
    (tmp_path / "user").mkdir()
    rows = 3_000_000
    user = np.where(np.arange(2 * rows) % 2, np.arange(2 * rows) // 20, 10**9)
    run = pl.DataFrame({"user": user, "item": np.arange(2 * rows), "score": np.arange(2.0 * rows)})
    paths = (tmp_path / "user" / "test.parquet", tmp_path / "user" / "run.parquet")
    run.write_parquet(paths[1], row_group_size=100_000)
    run.gather_every(100).select("user", "item", rating=pl.lit(5)).write_parquet(paths[0])
    assert measured(paths, 480, "heavy") == "refused"
    assert measured(paths, 780, "heavy") == "done"


@pytest.mark.slow
def test_memory_stays_within_the_bound(tmp_path):
    """Rows that take many times what is left beside the process's own memory."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import big as benchmark
    finally:
        sys.path.pop(0)
    benchmark.make(tmp_path, 8)
    rows = 8e6 * 2.5 * 24
    bound = (320 + 96) << 20
    assert rows > 4 * (bound - big.OWN)
    held = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), str(tmp_path / "out"), str(bound), "1"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(held.stdout) < bound
