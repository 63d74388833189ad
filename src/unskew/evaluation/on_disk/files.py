"""`evaluate_files`: lists and judgments in Parquet files that need not fit into memory."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.checks import checked, choose
from unskew.data.ratings import DUPLICATES, LARGEST, Ratings
from unskew.data.relevance import (
    DEFAULT_GAIN,
    DEFAULT_LOSS,
    Paper,
    Relevance,
    Rule,
    check_likes,
    paper_notes,
    paper_of,
    relevance_for,
)
from unskew.engine.files import (
    digest_of_file,
    inner_path,
    read_sealed,
    write_sealed,
    write_table,
)
from unskew.engine.progress import Progress, notebook_progress
from unskew.engine.system import versions
from unskew.errors import DataError, SettingError, Spelling
from unskew.evaluation.evaluate import (
    METRICS,
    check_averaging,
    labelled,
    memory_bytes,
    without_dislikes,
)
from unskew.evaluation.on_disk import parquet
from unskew.evaluation.on_disk._job import FORMAT, Work, Workers, check_folder
from unskew.evaluation.on_disk.parquet import (
    ParquetReading,
    ParquetSource,
    common_kind,
    scan,
    with_copies,
)
from unskew.evaluation.on_disk.parts import UNIT, Job, file_notes, meet, remarks
from unskew.evaluation.scores import TRAINED
from unskew.evaluation.scoring import check_tied
from unskew.judging.notes import warn
from unskew.metrics.names import Metric
from unskew.report.columns import HIGH, LOW, METRIC, SE, SYSTEM, USERS, Column, Method, Question
from unskew.report.estimates import Estimates
from unskew.ties import EXPECTED, TIES

if TYPE_CHECKING:
    from distributed import Client

MEMORY = "2GiB"
MEANS = "means.parquet"
OWN = 320 << 20
"""What a process holds before it reads anything: the interpreter, polars, compiled kernels."""
LEAST = 32 << 20
"""The least room that a worker can work in."""
_MOST_KINDS = 10_000


FILE_MEANS = Question(
    name="means over users",
    columns=(
        *(SYSTEM, METRIC, USERS, Column("value", "value", "mean"), SE, LOW, HIGH),
        Column("undefined", "count"),
    ),
    method=Method(
        estimand="the exactly rounded mean over users",
        interval="two standard errors to each side",
    ),
    across="metric",
)
"""`undefined`: users without a defined value, which counts as 0 or is skipped."""


@checked
def load_means(folder: str | os.PathLike[str]) -> Estimates:
    """Read the means that `evaluate_files` wrote to its output folder.

    DataError if they were changed since.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import unskew as us
    >>> home = tempfile.mkdtemp()
    >>> test = pl.DataFrame({"user": [1, 2], "item": [10, 30], "rating": [5, 4]})
    >>> test.write_parquet(f"{home}/test.parquet")
    >>> lists = pl.DataFrame({"user": [1, 2], "item": [20, 30], "rank": [1, 1]})
    >>> lists.write_parquet(f"{home}/mine.parquet")
    >>> means = us.evaluation.evaluate_files(
    ...     f"{home}/test.parquet", f"{home}/mine.parquet", "P@1", liked=4, output=f"{home}/out")
    >>> us.evaluation.load_means(f"{home}/out").row(metric="P@1").value
    0.5
    """
    path, content = Path(folder), _card_of(folder)
    if not is_unchanged(path, MEANS, content["digests"]):
        raise _changed(path / MEANS)
    return Estimates.from_dict(content["means"])


@checked
def scan_values(folder: str | os.PathLike[str]) -> pl.LazyFrame:
    """Return the values of each user that `evaluate_files` wrote, not yet read.

    A row per system and user, in the order of no particular user. Columns `system`, `user`, `test`,
    `liked` and `disliked` (judgments of the user), `depth` (of the list) and one per metric.
    DataError if the files were changed since they were written.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import unskew as us
    >>> home = tempfile.mkdtemp()
    >>> test = pl.DataFrame({"user": [1, 2], "item": [10, 30], "rating": [5, 4]})
    >>> test.write_parquet(f"{home}/test.parquet")
    >>> lists = pl.DataFrame({"user": [1, 2], "item": [20, 30], "rank": [1, 1]})
    >>> lists.write_parquet(f"{home}/mine.parquet")
    >>> means = us.evaluation.evaluate_files(
    ...     f"{home}/test.parquet", f"{home}/mine.parquet", "P@1", liked=4, output=f"{home}/out")
    >>> values = us.evaluation.scan_values(f"{home}/out").select("user", "P@1")
    >>> sorted(values.collect().rows())
    [(1, 0.0), (2, 1.0)]
    """
    path, digests = Path(folder), _card_of(folder)["digests"]
    files = [file for file in digests if file != MEANS]
    for file in files:
        if not is_unchanged(path, file, digests):
            raise _changed(path / file)
    return scan([str(inner_path(path, file)) for file in files])


def _card_of(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a finished evaluation says of itself."""
    path = Path(folder)
    try:
        number = json.loads(inner_path(path, "card.json").read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise DataError(f"{path}: there is no finished evaluation here ({problem})") from None
    if number != FORMAT:
        raise DataError(f"{path}: saved in format {number}, this version reads {FORMAT}")
    try:
        return read_sealed(path / "card.json")
    except ValueError:
        raise _changed(path / "card.json") from None


def is_unchanged(folder: Path, file: str, digests: Mapping[str, str]) -> bool:
    """Tell whether a file is there as it was written."""
    try:
        return digest_of_file(inner_path(folder, file)) == digests[file]
    except OSError:
        return False


def _changed(path: Path) -> DataError:
    return DataError(
        f"{path}: gone or changed since it was written; remove the folder and evaluate again"
    )


@notebook_progress("evaluation")
@checked
def evaluate_files(
    judgments: object,
    runs: object,
    metrics: str | Metric | Iterable[str | Metric] = METRICS,
    *,
    output: str | os.PathLike[str],
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    users: str | None = None,
    undefined: str | None = None,
    by: str | None = None,
    ties: str | None = None,
    seed: int = 0,
    depth: int | None = None,
    columns: Mapping[str, str | int] | None = None,
    duplicates: str = "error",
    feedback: str | None = None,
    repeated: str = "error",
    nan: str = "error",
    by_user: bool = False,
    memory: int | str = MEMORY,
    workers: int | None = None,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> Estimates:
    """Judge ranked lists in Parquet files that need not fit into memory.

    Gives every user the same values, and the same means, to the last bit, as `evaluate` gives
    on the same rows in memory. Rows are first brought together by user on disk (unless they are
    already, see `by_user`), then judged part by part. Started again with the same arguments after
    it was stopped, it goes on where it was.

    Parameters
    ----------
    judgments
        Test ratings: a Parquet file, a folder of them (searched through), a pattern such as
        ``"logs/2024-*.parquet"``, or a list of these. Rows count in the order of the files' names.
    runs
        A mapping from system name to such files of ranked lists, a list of them, or one; without
        a mapping systems are named after their file or folder.
    metrics
        As in `evaluate`, as far as a user's value depends on that user's rows alone: not those of
        a whole run (Coverage, Gini, Entropy), nor those that look at training ratings, at all
        items or at all judgments (ARP, EPC, Novelty, Tail, AUC, SR, …).
    output
        A folder for everything that is written: `users/*.parquet` with the values of each user,
        `means.parquet`, and `card.json`, which comes last. While it runs it takes about the
        room of the rows in memory there.
    liked, above, gain, loss, relevance
        How a rating is taken, see `evaluate`. Functions are not taken here: a stopped
        evaluation could not tell whether it goes on with the same one.
    users, undefined, by, ties, seed, depth
        See `evaluate` and `read_run`.
    columns
        Names of columns by what they hold (`user`, `item`, `rating`, `rank`, `score`), where they
        cannot be guessed.
    duplicates
        A pair that occurs more than once in the judgments, see `read_ratings`.
    feedback
        `explicit` or `implicit`, see `read_ratings`.
    repeated
        An item twice in a list, `duplicates` of `read_run`.
    nan
        Scores that are NaN, see `read_run`.
    by_user
        The files are parts already: the first file of the judgments and of every run (by name)
        hold the same users, and so on, and no user is in two parts. Then nothing is partitioned,
        and a part must fit into a worker's memory. A user in two parts is found, and refused.
    memory
        What all workers together may hold, the 320 MiB of the process itself included, in bytes
        or as text; on a cluster, each worker. Never changes a result. A row group, and the rows of
        one user, cannot be divided: where they do not fit that is an error that tells how much is
        missing.
    workers
        How many parts are worked on at once, by threads of this process; unless given, all
        processors, or as many as there is memory for. Never changes a result.
    cluster
        Instead: workers of a Dask cluster, as in `run`. They must see the files and the output
        folder under the same names.
    progress
        Called with (done, total) as work goes on.

    Returns
    -------
    Estimates
        A row per system and metric: the mean, its standard error, how many users were averaged and
        how many have no defined value. `load_means` reads it again from the output folder,
        `scan_values` the values of each user.

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> import unskew as us
    >>> home = tempfile.mkdtemp()
    >>> test = pl.DataFrame({"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]})
    >>> test.write_parquet(f"{home}/test.parquet")
    >>> lists = pl.DataFrame({"user": [1, 1, 2], "item": [20, 10, 30], "rank": [1, 2, 1]})
    >>> lists.write_parquet(f"{home}/mine.parquet")
    >>> means = us.evaluation.evaluate_files(
    ...     f"{home}/test.parquet", f"{home}/mine.parquet", ["RR", "P@2"], liked=4,
    ...     output=f"{home}/out")
    >>> means.table().select("metric", "n", "value", "se").rows()
    [('RR', 2, 0.75, 0.25), ('P@2', 2, 0.5, 0.0)]
    """
    check_averaging(users, undefined)
    for name, value, allowed in (
        ("duplicates", duplicates, DUPLICATES),
        ("repeated", repeated, ("error", "first")),
        ("nan", nan, ("error", "drop")),
    ):
        choose(name, value, allowed)
    if ties is not None:
        choose("ties", ties, (*TIES, EXPECTED))
    paper = paper_of(relevance)
    users, undefined = users or paper.users, undefined or paper.undefined
    if users in TRAINED:
        raise SettingError(f"users={users!r} needs training ratings: use evaluate()")
    if depth is not None and depth < 1:
        raise SettingError(f"depth must be at least 1, got {depth}")
    depth = depth or paper.depth
    names = dict(columns or {})
    for role in names:
        choose("columns", role, ("user", "item", "rating", "rank", "score"))
    by_label = _supported(metrics, paper)
    if ties == EXPECTED:
        check_tied(by_label, depth, "out")
    reading = ParquetReading(duplicates, repeated, nan, by, ties, seed, feedback)
    check_folder(output)
    tests = parquet.judgments_source(with_copies("judgments", judgments, output), names, reading)
    systems = tuple(
        parquet.run_source(name, with_copies(f"run-{name}", run, output), names, reading)
        for name, run in parquet.named(runs).items()
    )
    implicit = tests.is_implicit(feedback)
    rule, notes = _relevance(tests, implicit, liked, above, gain, loss, relevance)
    retained, left_out = without_dislikes(by_label, implicit)
    name = relevance if isinstance(relevance, str) else ""
    notes += [*paper_notes(name), *left_out]
    largest = max((*tests.row_bytes, *(size for source in systems for size in source.row_bytes)))
    with Workers.of(workers, cluster) as hands:
        if workers is None and cluster is None:  # as many as there is room for
            hands.count = max(
                1, min(hands.count, (memory_bytes(memory) - OWN) // (LEAST + largest))
            )
        share = _share(memory, hands, (tests, *systems))
        job = Job(
            judgments=tests,
            runs=systems,
            labels=tuple(retained),
            relevance=rule,
            users=users,
            undefined=undefined,
            depth=depth,
            parts=0,
            user_kind=common_kind((tests, *systems), "user"),
            item_kind=common_kind((tests, *systems), "item"),
            output=str(Path(output).resolve()),
            budget=share,
            paper=name,
        )
        work = Work.open(job, by_user, hands)
        if work.is_finished:
            return load_means(job.output)
        return _finish(work, work.done(progress), notes)


def _supported(metrics: str | Metric | Iterable[str | Metric], paper: Paper) -> dict[str, Metric]:
    """Return the metrics by label; refuse those that look beyond one user's rows."""
    by_label = labelled(metrics, paper)
    for label, metric in by_label.items():
        definition = metric.definition
        reason = None
        if definition.of == "run":
            reason = "describes a whole run"
        elif "train" in definition.needs:
            reason = "looks at training ratings"
        elif "catalogue" in definition.needs:
            reason = "looks at the whole catalogue"
        elif "mean" in definition.params:
            reason = "weighs items by all their ratings"
        if reason is not None:
            raise SettingError(
                f"{label} {reason}, but files are evaluated in separate parts of the users: "
                "leave this metric out, or use evaluate() on data that fit into memory"
            )
    return by_label


def _relevance(
    tests: ParquetSource,
    implicit: bool,
    liked: float | None,
    above: float | None,
    gain: Rule,
    loss: Rule,
    relevance: Relevance | str | None,
) -> tuple[Relevance, list[str]]:
    """Return the rule by which ratings are taken, and a note where it had to be assumed."""
    for what, rule in (("gain", gain), ("loss", loss)):
        attribute = getattr(relevance, what, rule)
        if callable(attribute):
            raise SettingError(
                f"{what}: give a name or a mapping here, not a function: a resumed evaluation "
                "could not check that the function is the same"
            )
    nobody = pl.Series("user", [0]), pl.Series("item", [0])  # stands for implicit feedback
    examples = Ratings.of(*nobody) if implicit else _examples(tests)
    chosen, notes = relevance_for(examples, liked, above, gain, loss, relevance)
    check_likes(examples, chosen)
    return chosen, notes


def _examples(tests: ParquetSource) -> Ratings:
    """Return the different ratings; of very many some, with the least and the largest."""
    kinds = np.empty(0)
    for values in tests.values("rating"):
        # What is no rating is refused, with its file and row, when it is read.
        numbers = values.cast(pl.Float64, strict=False).drop_nulls().unique().to_numpy()
        kinds = np.unique(np.append(kinds, numbers[np.abs(numbers) <= LARGEST]))
        if kinds.size > _MOST_KINDS:
            kinds = kinds[np.linspace(0, kinds.size - 1, _MOST_KINDS // 2).astype(np.int64)]
    user = pl.Series("user", np.zeros(kinds.size, np.int64))
    return Ratings.of(user, pl.Series("item", np.arange(kinds.size)), pl.Series("rating", kinds))


def _share(memory: int | str, hands: Workers, sources: Iterable[ParquetSource]) -> int:
    """Return the room of each worker, beyond what its process holds anyway."""
    share = (memory_bytes(memory) - OWN) // hands.threads
    largest, path = max(
        (size, path)
        for source in sources
        for size, path in zip(source.row_bytes, source.files, strict=True)
    )
    if share >= LEAST + largest:
        return share
    minimum = (OWN + (LEAST + largest) * hands.threads) >> 20
    spelling = Spelling(f"memory={memory!r}", f"--memory {memory}")
    fewer = ", or fewer workers" if hands.threads > 1 else ""
    if share < LEAST:
        raise SettingError(
            spelling,
            f" is too little for {hands.threads} workers in one process: give at least "
            f"{minimum}MiB{fewer}",
        )
    raise SettingError(
        spelling,
        f" is too little for {path}: reading a row of its largest row group takes "
        f"{largest >> 20:,} MiB. Give at least {minimum + 1}MiB{fewer}, or write the file with "
        "smaller row groups, as with write_parquet(…, row_group_size=250_000) of polars",
    )


def _finish(work: Work, sums: Mapping[str, Any], notes: Iterable[str]) -> Estimates:
    """Write the means and the card, and remove what was in between."""
    job = work.job
    metrics = job.metrics
    remarked = remarks(job, metrics, sums)
    grave = [*meet(job, sums), *(text for text, is_grave in remarked if is_grave)]
    plain = [text for text, is_grave in remarked if not is_grave]
    undefined = "count as 0" if job.undefined == "zero" else "are left out"
    rows = [
        {"system": name, "metric": label} | estimate(row, job.undefined)
        for name, facts in sums["systems"].items()
        for label, row in zip(job.labels, facts["metrics"], strict=True)
    ]
    means = Estimates.of_rows(
        FILE_MEANS,
        rows,
        explanation=(
            f"mean over users ({job.users}); undefined values {undefined}",
            str(job.relevance),
        ),
        notes=(*grave, *notes, *file_notes(job), *plain),
        card={
            **_card(work.facts),
            "better": {label: metric.better for label, metric in metrics.items()},
        },
    )
    write_table(means.table(), work.folder / MEANS, "parquet")
    digests = {**work.digests, MEANS: digest_of_file(work.folder / MEANS)}
    content = {"format": FORMAT, "means": means.to_dict(), "digests": digests}
    write_sealed(work.folder / "card.json", content)
    work.clear()
    for text in grave:
        warn(text)
    return means


def estimate(sums: Iterable[int], undefined: str) -> dict[str, float]:
    """Return a mean, rounded once, and its standard error from exact sums, as columns of a row.

    The sums are of the values and of their squares, in units of 2**-1074, then how many values
    are defined and how many are not.
    """
    total, squares, defined, missing = sums
    count = defined + (missing if undefined == "zero" else 0)
    value = total / (count << 1074) + 0.0 if count else math.nan
    se = math.nan
    if count > 1:
        top = count * squares * UNIT - total * total
        se = math.sqrt(max(top, 0) / (UNIT * UNIT * count * count * (count - 1)))
    interval = {"low": value - 2 * se, "high": value + 2 * se}
    return {"n": count, "value": value, "se": se, **interval, "undefined": missing}


def _card(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the numbers can be derived from again: no path, no clock."""

    def about(source: Mapping[str, Any]) -> dict[str, Any]:
        return {"rows": source["rows"], "columns": source["columns"]}

    return {
        **{name: fact for name, fact in facts.items() if name != "polars"},
        "judgments": about(facts["judgments"]),
        "systems": {name: about(source) for name, source in facts["systems"].items()},
        "versions": versions(),
    }
