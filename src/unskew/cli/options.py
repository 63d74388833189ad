"""The options that several commands share, with their texts: the titles are panels of the help.

Arguments
---------
ratings
    Ratings: a file, or a named data set such as ml-1m.
plan
    Plan: a TOML file.
folder
    Folder of the store.

Input
-----
columns
    Names of columns in all files, such as user=uid,item=movie,rating=stars. For one file alone:
    FILE:item=sku,user=uid.
duplicates
    Duplicate user-item pairs: error, first, last, mean, sum, max; count for an event log. Default:
    error; count where a column says the kind of each event.
feedback
    Kind of feedback: explicit (a rating is an opinion) or implicit (a pair that occurs is liked).
    Default: implicit without a rating column, or where it counts events.
data_dir
    Folder of named data sets. Default: the variable UNSKEW_DATA.
judgments
    Judgments to evaluate the lists with: test ratings, or TREC qrels.
run
    Ranked lists: FILE or NAME=FILE[:item=sku]. Repeatable.
train
    Training ratings: for the popularity of items, and for the items that users already know.
random
    Ratings of randomly chosen items: a fair sample of what users like.
filters
    Filter the ratings first: NAME or NAME:SETTING=VALUE,… such as k-core:users=5,items=5. Also
    max-counts, popular-items, between, threshold, drop-repeats, sample-users. Repeatable, in order.
scores
    A folder written by evaluate --save, instead of --judgments and --run. Repeatable for several
    folds.
items
    The catalogue: all items, one per row. Default: the items of the other files.
data
    Ratings to use instead: a file, or a named data set.

Event logs and daily lists
--------------------------
events
    Kinds of events of a log that count, such as purchase. Repeatable, or separated by commas.
    Default: all alike.
weights
    What an event of each kind counts, such as view=1,purchase=5; 0 leaves it out.
lists
    Several lists per user: the columns that tell them apart, user,date or user,session. A list is
    evaluated with what its user did from that date on, or in that session.
event_log
    The file is an event log: a pair may occur any number of times.

What is measured
----------------
liked
    Ratings from this value up are liked.
above
    Ratings above this value are liked (instead of --liked).
gain
    Gain of a rating: liked-only (default: the rating, 0 if it is disliked), rating (also if it is
    disliked), binary, levels, exponential, burges, integer, or a mapping such as
    5=2,4=1,3=0,2=0,1=0.
loss
    Loss of a rating, for anti-metrics: levels, binary, or a mapping such as 3=1,2=2,1=3,4=0,5=0.
relevance
    The conventions of a paper, such as mena2021, instead of the options above.
metric
    A metric, such as nDCG@10. Repeatable.
depth
    Use only this many first items of each list.
algorithms
    Systems to run, separated by commas; `unskew algorithms` lists them.
tune
    Tune settings on a validation part of each training part, or use the defaults.
algorithm
    A system: NAME or NAME:SETTING=VALUE,… such as user-knn:k=50. Repeatable.

Users and ties
--------------
ties
    Order of equal scores: id, trec, random, input; expected, with evaluate and compare only: the
    mean over all orders. Default: trec for TREC files, else id.
users
    Users to average over: with-test, with-relevant, with-list, both, with-train, warm (with-test
    and with-train), all. Default: with-test, or as the paper of --relevance.
undefined
    Undefined values: zero (default) counts them as 0, skip leaves their users out.
group_users
    Users that are not independent (households, test accounts) count as one: detected for
    near-duplicate accounts, or FILE:COLUMN of a file of users.

Intervals
---------
level
    Confidence level of the intervals.
resamples
    Bootstrap resamples of users; 0 for no intervals.

How it runs
-----------
seed
    Random seed; the same seed gives the same result.
threads
    Number of threads; it does not change the results.
workers
    Number of processes; it does not change the results.
cluster
    Use a Dask cluster instead of --workers: tcp://HOST:PORT of its scheduler, or local:N; it does
    not change the results.
store
    A folder that keeps finished work: a stopped command resumes from it.

Output
------
quiet
    Print nothing but the result.
digits
    Number of decimals in tables.
figures
    Also write every figure to this folder, as SVG and PNG.
force
    Allow writing into a folder that is not empty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.cli import files as formats
from unskew.cli.parameters import REQUIRED, Option, argument, bundle, format_of
from unskew.errors import SettingError

NO_STREAM = "tables are printed anyway; choose their format with --format"

RatingsArgument = Annotated[str, argument("RATINGS")]
PlanArgument = Annotated[Path, argument("PLAN")]
StoreArgument = Annotated[Path, argument("FOLDER")]

GroupUsers = Annotated[str | None, Option(metavar="detected|FILE:COLUMN")]

TableFile = Annotated[
    Path | None, Option(formats.file_check(formats.TABLES, no_stream=NO_STREAM), "FILE")
]
ReportFile = Annotated[Path | None, Option(formats.file_check(formats.REPORTS), "FILE")]
FolderName = Annotated[Path | None, Option(formats.check_folder_name, "DIR")]
FigureFile = Annotated[list[str] | None, Option(formats.check_figure_files, "[NAME=]FILE")]
FiguresDir = Annotated[Path | None, Option(formats.check_folder_name)]
Format = Annotated[str, format_of(formats.FORMATS)]
TextFormat = Annotated[str, format_of(formats.TEXT_FORMATS)]
PlainFormat = Annotated[str, format_of(formats.PLAIN_FORMATS)]


@bundle
class FileOptions:
    """How files of ratings and lists are read."""

    columns: str | None = None
    duplicates: str | None = None
    feedback: str | None = None
    events: list[str] | None = None
    weights: str | None = None


@bundle
class NamedFileOptions(FileOptions):
    """How ratings are read that are files or named data sets."""

    data_dir: Path | None = None


@bundle
class RelevanceOptions:
    """Which ratings are liked, and what they are worth."""

    liked: float | None = None
    above: float | None = None
    gain: str | None = None
    loss: str | None = None
    relevance: str | None = None


@bundle
class JudgedOptions:
    """Ranked lists, the ratings that judge them, and what is measured."""

    judgments: str | None = None
    run: list[str] | None = None
    train: str | None = None
    files: FileOptions
    metric: list[str] | None = None
    relevance: RelevanceOptions
    depth: int | None = None
    ties: str | None = None


@bundle
class RequiredJudgedOptions(JudgedOptions):
    """The same, for commands that read nothing else."""

    judgments: str | None = REQUIRED
    run: list[str] | None = REQUIRED


@bundle
class RunsRequiredOptions(JudgedOptions):
    """The same, for commands that take something else in place of judgments."""

    run: list[str] | None = REQUIRED


@bundle
class AverageOptions:
    """Over which users means are taken."""

    users: str | None = None
    undefined: str | None = None


@bundle
class ScoredOptions:
    """Scores by user: of ranked lists, or saved ones."""

    judged: JudgedOptions
    scores: list[Path] | None = None
    average: AverageOptions


@bundle
class ComputeOptions:
    """How a command computes."""

    seed: int = 0
    threads: int | None = None


@bundle
class ExecutorOptions:
    """Who does the work."""

    workers: int = 1
    cluster: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments by which functions take them."""
        if self.cluster is not None and self.workers != 1:
            raise SettingError("give --workers or --cluster, not both")
        return vars(self)


@bundle
class StoredOptions:
    """How a command runs that keeps what is finished."""

    seed: int = 0
    store: Path | None = None
    executor: ExecutorOptions


@bundle
class PrintOptions:
    """Where a table goes.

    Output
    ------
    output
        Also write the table to this file; its ending selects the format: .csv, .json, .md, .tex,
        .html, .parquet.
    """

    output: TableFile = None
    format: Format = "table"
    quiet: bool = False


@bundle
class TableOptions(PrintOptions):
    """Where a table of numbers goes."""

    digits: int = 4


@bundle
class FigureTableOptions(TableOptions):
    """Where a table of numbers and its figures go.

    Output
    ------
    figure
        Write a figure: FILE or NAME=FILE; the ending selects the format: .svg, .png, .pdf, .html,
        .json. Repeatable.
    """

    figure: FigureFile = None


@bundle
class TextOptions(PrintOptions):
    """Where a result goes that prints as text.

    Output
    ------
    figure
        Write a figure: FILE or NAME=FILE; the ending selects the format: .svg, .png, .pdf, .html,
        .json. Repeatable.
    """

    format: TextFormat = "text"
    figure: FigureFile = None


@bundle
class ReportOptions:
    """Where a report goes.

    Output
    ------
    output
        File of the report; its ending selects the format (.html, .md, .json); - prints it.
    format
        Format of the report without a file: html, markdown or json. Default: html.
    """

    output: ReportFile = None
    figures: FiguresDir = None
    format: str | None = None
    quiet: bool = False


@bundle
class FolderOptions:
    """Where a folder goes.

    Output
    ------
    output
        Output folder.
    """

    output: Annotated[Path, Option(formats.check_folder_name, "DIR")]
    force: bool = False
    quiet: bool = False
