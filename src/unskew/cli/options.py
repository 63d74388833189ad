"""The options that several commands share: each is declared once, and grouped in bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_DIGITS, MOST_DRAWS, MOST_PROCESSES, MOST_SEED
from unskew.cli import files as formats
from unskew.cli.command import REQUIRED, argument, bundle, option
from unskew.errors import SettingError

INPUT = "Input"
LOGS = "Event logs and daily lists"
MEASURE = "What is measured"
AMOUNT = "How much is measured"
TEST = "Test"
INTERVALS = "Intervals"
USERS = "Users and ties"
RUNNING = "How it runs"
OUTPUT = "Output"


def setting_option(panel: str) -> Any:
    """Declare `--set`, in the panel of what is set."""
    return option(panel, "A setting, NAME=VALUE. Repeatable.", "--set", "-s")


# Input
RatingsArgument = Annotated[
    str, argument("Ratings: a file, or a named data set such as ml-1m.", "RATINGS")
]
Judgments = Annotated[
    str | None,
    option(
        INPUT,
        "Judgments to evaluate the lists with: test ratings, or TREC qrels.",
        "--judgments",
        "-j",
    ),
]
Runs = Annotated[
    list[str] | None,
    option(INPUT, "Ranked lists: FILE or NAME=FILE[:item=sku]. Repeatable.", "--run", "-r"),
]
Lists = Annotated[
    str | None,
    option(
        LOGS,
        "Several lists per user: the columns that tell them apart, user,date or user,session. A "
        "list is evaluated with what its user did from that date on, or in that session.",
        metavar="USER,DATE",
    ),
]
Saved = Annotated[
    list[Path] | None,
    option(
        INPUT,
        "A folder written by evaluate --save, instead of --judgments and --run. Repeatable for "
        "several folds.",
        "--scores",
    ),
]
Train = Annotated[
    str | None,
    option(
        INPUT,
        "Training ratings: for the popularity of items, and for the items that users already know.",
    ),
]
RandomFile = Annotated[
    str | None,
    option(INPUT, "Ratings of randomly chosen items: a fair sample of what users like."),
]
ItemsFile = Annotated[
    str | None,
    option(INPUT, "The catalogue: all items, one per row. Default: the items of the other files."),
]
DataDir = Annotated[
    Path | None,
    option(INPUT, "Folder of named data sets. Default: the variable UNSKEW_DATA."),
]
Columns = Annotated[
    str | None,
    option(
        INPUT,
        "Names of columns in all files, such as user=uid,item=movie,rating=stars. For one file "
        "alone: FILE:item=sku,user=uid.",
    ),
]
Duplicates = Annotated[
    str | None,
    option(
        INPUT,
        "Duplicate user-item pairs: error, first, last, mean, sum, max; count for an event log. "
        "Default: error; count where a column says the kind of each event.",
    ),
]
EventKinds = Annotated[
    list[str] | None,
    option(
        LOGS,
        "Kinds of events of a log that count, such as purchase. Repeatable, or separated by "
        "commas. Default: all alike.",
        "--events",
    ),
]
EventWeights = Annotated[
    str | None,
    option(
        LOGS,
        "What an event of each kind counts, such as view=1,purchase=5; 0 leaves it out.",
        "--weights",
    ),
]
EventLog = Annotated[
    bool,
    option(
        LOGS,
        "The file is an event log: a pair may occur any number of times.",
        "--event-log",
        default=False,
    ),
]
Feedback = Annotated[
    str | None,
    option(
        INPUT,
        "Kind of feedback: explicit (a rating is an opinion) or implicit (a pair that occurs is "
        "liked). Default: implicit without a rating column, or where it counts events.",
    ),
]
Filters = Annotated[
    list[str] | None,
    option(
        INPUT,
        "Filter the ratings first: NAME or NAME:SETTING=VALUE,… such as k-core:users=5,items=5. "
        "Also max-counts, popular-items, between, threshold, drop-repeats, sample-users. "
        "Repeatable, in order.",
        "--filter",
    ),
]
PlanData = Annotated[
    str | None, option(INPUT, "Ratings to use instead: a file, or a named data set.", "--data")
]
PlanArgument = Annotated[Path, argument("Plan: a TOML file.", "PLAN")]
StoreArgument = Annotated[Path, argument("Folder of the store.", "FOLDER")]

# What is measured
Metrics = Annotated[
    list[str] | None,
    option(MEASURE, "A metric, such as nDCG@10. Repeatable.", "--metric", "-m"),
]
Liked = Annotated[float | None, option(MEASURE, "Ratings from this value up are liked.")]
Above = Annotated[
    float | None, option(MEASURE, "Ratings above this value are liked (instead of --liked).")
]
Gain = Annotated[
    str | None,
    option(
        MEASURE,
        "Gain of a rating: liked-only (default: the rating, 0 if it is disliked), rating (also if "
        "it is disliked), binary, levels, exponential, burges, integer, or a mapping such as "
        "5=2,4=1,3=0,2=0,1=0.",
    ),
]
Loss = Annotated[
    str | None,
    option(
        MEASURE,
        "Loss of a rating, for anti-metrics: levels, binary, or a mapping such as "
        "3=1,2=2,1=3,4=0,5=0.",
    ),
]
RelevanceName = Annotated[
    str | None,
    option(
        MEASURE,
        "The conventions of a paper, such as mena2021, instead of the options above.",
        "--relevance",
    ),
]
Depth = Annotated[
    int | None,
    option(MEASURE, "Use only this many first items of each list.", min=1, max=MOST_DEPTH),
]
Algorithms = Annotated[
    list[str] | None,
    option(
        MEASURE,
        "A system: NAME or NAME:SETTING=VALUE,… such as user-knn:k=50. Repeatable.",
        "--algorithm",
        "-a",
    ),
]
SystemNames = Annotated[
    str | None,
    option(MEASURE, "Systems to run, separated by commas; `unskew algorithms` lists them."),
]
Tune = Annotated[
    bool,
    option(
        MEASURE,
        "Tune settings on a validation part of each training part, or use the defaults.",
        "--tune/--no-tune",
        default=True,
    ),
]
OrderingMetric = Annotated[
    str | None,
    option(MEASURE, "The metric that orders the systems. Default: P@10.", "--metric", "-m"),
]
Permutations = Annotated[
    int,
    option(
        TEST,
        "Permutations of the randomisation test, or resamples of the bootstrap.",
        default=100_000,
        min=1,
        max=MOST_DRAWS,
    ),
]
Confidence = Annotated[float, option(TEST, "Confidence of the intervals.", default=0.95)]
Reference = Annotated[
    str | None, option(TEST, "Compare this system with every other one, instead of all pairs.")
]
Rope = Annotated[
    float | None,
    option(
        TEST,
        "Differences up to this size do not matter; adds the probability of such a difference.",
    ),
]
Level = Annotated[float, option(INTERVALS, "Confidence level of the intervals.", default=0.95)]
Bootstrap = Annotated[
    int,
    option(
        INTERVALS,
        "Random draws of users for the intervals; 0 for no intervals.",
        default=1_000,
        min=0,
        max=MOST_DRAWS,
    ),
]
# Users and ties
Users = Annotated[
    str | None,
    option(
        USERS,
        "Users to average over: with-test, with-relevant, with-list, both, with-train, warm "
        "(with-test and with-train), all. Default: with-test, or as the paper of --relevance.",
    ),
]
Undefined = Annotated[
    str | None,
    option(
        USERS,
        "Undefined values: zero (default) counts them as 0, skip leaves their users out.",
    ),
]
Ties = Annotated[
    str | None,
    option(
        USERS,
        "Order of equal scores: id, trec, random, input; expected, with evaluate and compare only: "
        "the mean over all orders. Default: trec for TREC files, else id.",
    ),
]

# How it runs
Seed = Annotated[
    int,
    option(
        RUNNING,
        "Random seed; the same seed gives the same result.",
        default=0,
        min=0,
        max=MOST_SEED,
    ),
]
Threads = Annotated[
    int | None,
    option(
        RUNNING, "Number of threads; it does not change the results.", min=1, max=MOST_PROCESSES
    ),
]
Workers = Annotated[
    int,
    option(
        RUNNING,
        "Number of processes; it does not change the results.",
        default=1,
        min=1,
        max=MOST_PROCESSES,
    ),
]
Cluster = Annotated[
    str | None,
    option(
        RUNNING,
        "Use a Dask cluster instead of --workers: tcp://HOST:PORT of its scheduler, or local:N; it "
        "does not change the results.",
        metavar="ADDRESS",
    ),
]
StoreDir = Annotated[
    Path | None,
    option(
        RUNNING, "A folder that keeps finished work: a stopped command resumes from it.", "--store"
    ),
]

# Output
TableFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Also write the table to this file; its ending selects the format: "
        f"{', '.join(formats.TABLES)}.",
        "--output",
        "-o",
        metavar="FILE",
        callback=formats.check_table_file,
    ),
]
ReportFile = Annotated[
    Path | None,
    option(
        OUTPUT,
        "File of the report; its ending selects the format (.html, .md, .json); - prints it.",
        "--output",
        "-o",
        metavar="FILE",
        callback=formats.check_report_file,
        show_default=False,
    ),
]
FOLDER = option(
    OUTPUT,
    "Output folder.",
    "--output",
    "-o",
    default=REQUIRED,
    metavar="DIR",
    callback=formats.check_folder_name,
)
FigureFile = Annotated[
    list[str] | None,
    option(
        OUTPUT,
        "Write a figure: FILE or NAME=FILE; the ending selects the format: "
        f"{', '.join(formats.FIGURES)}. Repeatable.",
        "--figure",
        metavar="[NAME=]FILE",
        callback=formats.check_figure_files,
    ),
]
FiguresDir = Annotated[
    Path | None,
    option(
        OUTPUT,
        "Also write every figure to this folder, as SVG and PNG.",
        "--figures",
        callback=formats.check_folder_name,
    ),
]
Format = Annotated[
    str,
    option(
        OUTPUT,
        f"Output format: {', '.join(formats.FORMATS)}.",
        default="table",
        callback=formats.check_format,
    ),
]
TextFormat = Annotated[
    str,
    option(
        OUTPUT,
        f"Output format: {', '.join(formats.TEXT_FORMATS)}.",
        default="text",
        callback=formats.check_text_format,
    ),
]
PlainFormat = Annotated[
    str,
    option(
        OUTPUT,
        f"Output format: {' or '.join(formats.PLAIN_FORMATS)}.",
        "--format",
        default="text",
        callback=formats.check_plain_format,
    ),
]
ReportFormat = Annotated[
    str | None,
    option(OUTPUT, "Format of the report without a file: html, markdown or json. Default: html."),
]
Digits = Annotated[
    int, option(OUTPUT, "Number of decimals in tables.", default=4, min=0, max=MOST_DIGITS)
]
Force = Annotated[
    bool, option(OUTPUT, "Allow writing into a folder that is not empty.", "--force", default=False)
]
Quiet = Annotated[
    bool, option(OUTPUT, "Print nothing but the result.", "--quiet", "-q", default=False)
]


@bundle
class FileOptions:
    """How files of ratings and lists are read."""

    columns: Columns
    duplicates: Duplicates
    feedback: Feedback
    events: EventKinds
    weights: EventWeights


@bundle
class NamedFileOptions(FileOptions):
    """How ratings are read that are files or named data sets."""

    data_dir: DataDir


@bundle
class RelevanceOptions:
    """Which ratings are liked, and what they are worth."""

    liked: Liked
    above: Above
    gain: Gain
    loss: Loss
    relevance: RelevanceName


@bundle
class JudgedOptions:
    """Ranked lists, the ratings that judge them, and what is measured."""

    judgments: Judgments
    run: Runs
    train: Train
    files: FileOptions
    metric: Metrics
    relevance: RelevanceOptions
    depth: Depth
    ties: Ties


@bundle
class RequiredJudgedOptions(JudgedOptions):
    """The same, for commands that read nothing else."""

    judgments: Judgments = REQUIRED
    run: Runs = REQUIRED


@bundle
class RunsRequiredOptions(JudgedOptions):
    """The same, for commands that take something else in place of judgments."""

    run: Runs = REQUIRED


@bundle
class AverageOptions:
    """Over which users means are taken."""

    users: Users
    undefined: Undefined


@bundle
class ComputeOptions:
    """How a command computes."""

    seed: Seed
    threads: Threads


@bundle
class ExecutorOptions:
    """Who does the work."""

    workers: Workers
    cluster: Cluster

    def arguments(self) -> dict[str, Any]:
        """Return the arguments by which functions take them."""
        if self.cluster is not None and self.workers != 1:
            raise SettingError("give --workers or --cluster, not both")
        return vars(self)


@bundle
class StoredOptions:
    """How a command runs that keeps what is finished."""

    seed: Seed
    store: StoreDir
    executor: ExecutorOptions


@bundle
class PrintOptions:
    """Where a table goes."""

    output: TableFile
    format: Format
    quiet: Quiet


@bundle
class TableOptions(PrintOptions):
    """Where a table of numbers goes."""

    digits: Digits


@bundle
class FigureTableOptions(TableOptions):
    """Where a table of numbers and its figures go."""

    figure: FigureFile


@bundle
class TextOptions(PrintOptions):
    """Where a result goes that prints as text."""

    format: TextFormat
    figure: FigureFile


@bundle
class ReportOptions:
    """Where a report goes."""

    output: ReportFile
    figures: FiguresDir
    format: ReportFormat
    quiet: Quiet


@bundle
class FolderOptions:
    """Where a folder goes."""

    output: Annotated[Path, FOLDER]
    force: Force
    quiet: Quiet
