"""Data frames of any library: the bits of a file, and results in the kind that came in."""

import datetime as dt
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import unskew as us
from unskew.data.read.frames import as_kind_of, index_names, is_frame, read_frame
from unskew.data.read.tables import read_table

rng = np.random.default_rng(28)
PAIRS = [(u, i) for u in range(30) for i in range(12) if rng.random() < 0.5]
RATINGS = {
    "user": [f"u{u}" for u, _ in PAIRS],
    "item": [7 * i for _, i in PAIRS],
    "rating": [float(rng.integers(1, 11)) / 2 for _ in PAIRS],
    "timestamp": [1_000_000_000 + 37 * at for at in range(len(PAIRS))],
}
FRAME = pl.DataFrame(RATINGS)
LISTS = {
    name: pl.DataFrame(
        [(f"u{u}", 7 * ((u * step + k) % 12), k + 1) for u in range(30) for k in range(5)],
        schema=["user", "item", "rank"],
        orient="row",
    )
    for name, step in (("a", 3), ("b", 5), ("c", 7))
}


def imported(*names):
    """Return a library, or skip: some are not in every environment."""
    return pytest.importorskip(*names)


def pandas_frame(frame):
    return imported("pandas").DataFrame(frame.to_dict(as_series=False))


def arrow_backed(frame):
    return (
        imported("pandas")
        .DataFrame(frame.to_arrow().to_pydict())
        .convert_dtypes(dtype_backend="pyarrow")
    )


def nullable(frame):
    return pandas_frame(frame).convert_dtypes()


def categorical(frame):
    ids = [name for name in ("user", "item") if name in frame.columns]
    return pandas_frame(frame).astype(dict.fromkeys(ids, "category"))


def odd_index(frame):
    table = pandas_frame(frame)
    table.index = [5] * len(table)
    return table


def arrow_table(frame):
    imported("pyarrow")
    return frame.to_arrow()


def arrow_reader(frame):
    return arrow_table(frame).to_reader()


def relation(frame):
    imported("pyarrow")
    return imported("duckdb").connect().from_arrow(frame.to_arrow())


def dask_frame(frame):
    return imported("dask.dataframe").from_pandas(pandas_frame(frame), npartitions=3)


def modin_frame(frame):
    return imported("modin.pandas").DataFrame(frame.to_dict(as_series=False))


def ibis_table(frame):
    return imported("ibis").memtable(pandas_frame(frame))


def ibis_expression(frame):
    table = ibis_table(frame)
    return table.filter(table.user.notnull())


def of_narwhals(frame):
    return imported("narwhals").from_native(pandas_frame(frame))


def lazy_of_narwhals(frame):
    return imported("narwhals").from_native(relation(frame))


def lazy_frame(frame):
    return frame.lazy().filter(pl.col(frame.columns[0]).is_not_null())


KINDS = [
    pl.DataFrame, lazy_frame, pandas_frame, arrow_backed, nullable, categorical, odd_index,
    arrow_table, arrow_reader, relation, dask_frame, modin_frame, ibis_table, ibis_expression,
    of_narwhals, lazy_of_narwhals,
]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write the ratings and the lists as CSV."""
    folder = tmp_path_factory.mktemp("frames")
    FRAME.write_csv(folder / "ratings.csv")
    for name, frame in LISTS.items():
        frame.write_csv(folder / f"{name}.csv")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_ratings_have_the_bits_of_a_file(files, kind):
    expected = us.read_ratings(files / "ratings.csv")
    given = us.read_ratings(kind(FRAME))
    assert given.fingerprint == expected.fingerprint
    assert given.time.tobytes() == expected.time.tobytes()
    assert given.to_polars().equals(expected.to_polars())


@pytest.mark.parametrize("kind", KINDS)
def test_scores_have_the_bits_of_files(files, kind):
    """Three runs at once: they are read on several threads."""
    paths = {name: files / f"{name}.csv" for name in LISTS}
    metrics = ["P@3", "nDCG@5", "AP"]
    expected = us.evaluate(files / "ratings.csv", paths, metrics, liked=4)
    runs = {name: kind(frame) for name, frame in LISTS.items()}
    given = us.evaluate(kind(FRAME), runs, metrics, liked=4)
    assert given.per_user().equals(expected.per_user())


def test_relations_of_one_connection_are_read_one_at_a_time(files):
    connection = imported("duckdb").connect()
    imported("pyarrow")
    runs = {
        f"{name}{copy}": connection.from_arrow(frame.to_arrow())
        for name, frame in LISTS.items()
        for copy in range(6)
    }
    scores = us.evaluate(files / "ratings.csv", runs, "P@3", liked=4)
    paths = {name: files / f"{name}.csv" for name in LISTS}
    expected = us.evaluate(files / "ratings.csv", paths, "P@3", liked=4)
    for name in LISTS:
        values = {scores.mean("P@3")[f"{name}{copy}"] for copy in range(6)}
        assert values == {expected.mean("P@3")[name]}


@pytest.mark.parametrize("kind", [pandas_frame, arrow_table, relation, dask_frame, lazy_frame])
def test_other_places_that_take_tables(kind):
    judged = us.judge(FRAME, LISTS, liked=4)
    groups = pl.DataFrame({"user": [f"u{u}" for u in range(30)], "group": ["x", "y"] * 15})
    expected = us.unbiased.strata(judged, "P@3", by=groups, of="users", resamples=3)
    given = us.unbiased.strata(judged, "P@3", by=kind(groups), of="users", resamples=3)
    assert given.table().equals(expected.table())

    items = pl.DataFrame({"user": ["-"] * 12, "item": [7 * i for i in range(12)]})
    some = us.judge(FRAME, LISTS, liked=4, items=kind(items))
    whole = us.judge(FRAME, LISTS, liked=4, items=items)
    assert us.evaluate(some, "P@3").per_user().equals(us.evaluate(whole, "P@3").per_user())


def test_a_group_that_is_no_table_is_refused():
    judged = us.judge(FRAME, LISTS, liked=4)
    with pytest.raises(us.SettingError, match=r"by must be text, a mapping .* or a table, got 5"):
        us.unbiased.strata(judged, "P@3", by=5)


# Columns


def column(values, dtype):
    pd = imported("pandas")
    return read_frame(pd.DataFrame({"x": pd.Series(values, dtype=dtype)}))["x"].to_list()


LARGE = 2**53 + 1


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]"])
def test_large_numbers_beside_missing_ones_keep_their_digits(dtype):
    imported("pyarrow")
    assert column([LARGE, None, 3], dtype) == [LARGE, None, 3]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([True, None, False], "boolean"),
        ([True, None, False], "bool[pyarrow]"),
        ([1.5, None], "Float64"),
        ([1.5, None], "double[pyarrow]"),
        (["a", None], "string"),
        (["a", None], "category"),
        ([7, 3], "category"),
        ([["a"], ["b", "c"], []], "object"),
        ([dt.datetime(2001, 1, 1), None], "datetime64[ns]"),
        ([dt.datetime(2001, 1, 1, tzinfo=dt.UTC), None], "datetime64[us, UTC]"),
    ],
)
def test_values_of_pandas_columns(values, dtype):
    imported("pyarrow")
    assert column(values, dtype) == values


def test_arrow_lists_and_dictionaries_in_pandas():
    pd, pa = imported("pandas"), imported("pyarrow")
    assert column([["a"], ["b", "c"]], pd.ArrowDtype(pa.list_(pa.string()))) == [["a"], ["b", "c"]]
    packed = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    assert column(["a", "b", "a"], packed) == ["a", "b", "a"]


@pytest.mark.parametrize("dtype", ["Int64", "int64[pyarrow]", "category", "string[pyarrow]"])
def test_a_missing_id_is_named_by_its_row(dtype):
    pd = imported("pandas")
    imported("pyarrow")
    ids = ["1", None, "2"] if "string" in dtype else [1, None, 2]
    frame = pd.DataFrame({"user": pd.Series(ids, dtype=dtype), "item": [1, 2, 3]})
    with pytest.raises(us.DataError, match=r"column 'user': 1 id is missing, the first in row 2"):
        us.read_ratings(frame)


# Refusals


def test_an_index_is_no_column():
    table = pandas_frame(FRAME).set_index(["user", "item"])
    assert index_names(table) == ("user", "item")
    remedy = r"no user column found .* the index \('user', 'item'\) is no column: .reset_index\(\)"
    with pytest.raises(us.DataError, match=remedy):
        us.read_ratings(table)
    given = us.read_ratings(table.reset_index())
    assert given.fingerprint == us.read_ratings(FRAME).fingerprint


def twice_in_pandas():
    return imported("pandas").DataFrame([[1, 2, 3]], columns=["user", "user", "item"])


def twice_as_text():
    return imported("pandas").DataFrame([[1, 2]], columns=[0, "0"])


def twice_in_arrow():
    return imported("pyarrow").table([[1], [2]], names=["user", "user"])


def twice_in_duckdb():
    return imported("duckdb").sql('select 1 as "user", 2 as "user"')


@pytest.mark.parametrize("make", [twice_in_pandas, twice_as_text, twice_in_arrow, twice_in_duckdb])
def test_a_column_name_twice_is_refused(make):
    with pytest.raises(us.DataError, match=r"has a column name more than once.*rename one"):
        us.read_ratings(make())


def lazy_without_column():
    return pl.LazyFrame({"user": [1]}).select("item")


def lazy_without_file():
    return pl.scan_csv("no-such-file.csv")


def closed_connection():
    imported("pyarrow")
    connection = imported("duckdb").connect()
    made = connection.from_arrow(FRAME.to_arrow())
    connection.close()
    return made


def dask_that_fails():
    frame = dask_frame(FRAME)
    return frame.map_partitions(lambda part: part / 0, meta=frame)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lazy_without_column, r"\(polars.LazyFrame\) .*ColumnNotFoundError"),
        (lazy_without_file, r"\(polars.LazyFrame\) .*No such file"),
        (closed_connection, r"\(duckdb.DuckDBPyRelation\) .*Connection has already been closed"),
        (dask_that_fails, r"\(dask.DataFrame\) .*TypeError"),
    ],
)
def test_what_cannot_be_collected_is_refused(make, reason):
    with pytest.raises(us.DataError, match=f"the table {reason}") as problem:
        us.read_ratings(make())
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("kind", KINDS)
def test_no_rows(kind):
    with pytest.raises(us.DataError, match="there are no rows"):
        us.read_ratings(kind(FRAME.head(0)))


@pytest.mark.parametrize("source", [5, None, [1, 2], object(), us, pl.DataFrame])
def test_what_is_no_frame(source):
    assert not is_frame(source)
    assert read_frame(source) is None
    with pytest.raises(us.DataError, match=r"cannot read \w+: give a path, a data frame"):
        read_table(source)


def test_a_column_is_no_frame():
    assert not is_frame(FRAME["user"])
    assert not is_frame(pandas_frame(FRAME)["user"])


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_frames(kind):
    assert is_frame(kind(FRAME))


# Results in the kind that came in


@pytest.mark.parametrize(
    "kind",
    [pl.DataFrame, lazy_frame, pandas_frame, arrow_table, modin_frame, of_narwhals],
)
def test_results_come_in_the_kind_of_the_data(kind):
    frame = kind(FRAME)
    ratings = us.read_ratings(frame)
    scores = us.evaluate(frame, LISTS, "P@3", liked=4)
    for result in (ratings, scores, scores.per_user(), us.compare(scores, "P@3")):
        expected = result if isinstance(result, pl.DataFrame) else result.to_polars()
        made = us.data.as_kind_of(frame, result)
        assert type(made) is type(frame)
        assert read_frame(made).rows() == expected.rows()
    assert us.read_ratings(us.data.as_kind_of(frame, ratings)).fingerprint == ratings.fingerprint


@pytest.mark.parametrize("kind", [relation, dask_frame, ibis_table])
def test_tables_of_a_database_are_refused(kind):
    with pytest.raises(us.SettingError, match=r"belongs to a database or a cluster, which reads"):
        as_kind_of(kind(FRAME), us.read_ratings(FRAME))


def test_the_remedy_for_duckdb_works():
    imported("pyarrow")
    connection = imported("duckdb").connect()
    table = us.read_ratings(FRAME).to_polars()
    back = read_frame(connection.from_arrow(table))
    assert back.rows() == table.rows()


def test_wrong_arguments_of_as_kind_of():
    with pytest.raises(us.SettingError, match=r"frame must be a data frame of polars, .* got int"):
        as_kind_of(5, FRAME)
    with pytest.raises(us.SettingError, match=r"result must be a polars frame or .* got int"):
        as_kind_of(FRAME, 5)


# Imports


def test_narwhals_is_loaded_for_other_frames_alone(files):
    code = (
        "import sys, polars as pl, unskew as us\n"
        f"us.read_ratings({str(files / 'ratings.csv')!r})\n"
        "us.read_ratings(pl.LazyFrame({'user': [1], 'item': [2]}))\n"
        "us.read_ratings({'user': [1], 'item': [2]})\n"
        "us.read_run({1: [2]})\n"
        "print('narwhals' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
