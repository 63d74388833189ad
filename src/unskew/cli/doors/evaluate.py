"""`unskew evaluate`: judge ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import files as formats
from unskew.cli import inputs, outputs
from unskew.cli.files import column_names, split_source
from unskew.cli.options import AverageOptions, ComputeOptions, RequiredJudgedOptions, TableOptions
from unskew.cli.parameters import Option, Options, OptionsOf, bundle, refuse
from unskew.cli.progress import progress
from unskew.errors import SettingError

if TYPE_CHECKING:
    from unskew.evaluation.scores import Scores
    from unskew.report.estimates import Estimates


@bundle
class LargeOptions:
    """How files larger than memory are judged.

    Files larger than memory
    ------------------------
    on_disk
        Evaluate Parquet files larger than memory; write the results to this folder.
    by_user
        With --on-disk: the n-th files of judgments and lists hold the same users.
    cluster
        With --on-disk: a Dask cluster, tcp://HOST:PORT or local:N.
    """

    on_disk: Path | None = None
    by_user: bool = False
    cluster: str | None = None


@bundle
class ScoresOptions(TableOptions):
    """Where scores go.

    Output
    ------
    per_user
        Write each user's values to this .parquet or .csv file.
    save
        Save the scores in this folder, for --scores of other commands.
    """

    per_user: Annotated[
        Path | None,
        Option(
            formats.file_check(
                (".parquet", ".csv"), "--per-user", "name a file, such as users.csv"
            ),
            "FILE",
        ),
    ] = None
    save: Path | None = None


@bundle
class EvaluateOptions:
    """What is judged, and how.

    Input
    -----
    repeated
        Duplicate items in a list: error, or first (keep the best place).

    What is measured
    ----------------
    targets
        The items that the systems ranked: all-items, test-items, train-items (all without the
        user's --train items), test-targets. Adds the expected score of a random order.
    hygiene
        Instead of metrics, count what is wrong with the lists: duplicates, items outside --items,
        training items, short lists (of fewer items than the cutoff of -m) and missing ones, missing
        and equal scores.
    compat
        Compute what another library would print, under its names: recbole, trec_eval, …; unskew
        metrics --library lists them.

    Users and ties
    --------------
    unranked
        Items that a list does not hold: out, they have no place (default); last, with --ties
        expected: they follow the list in random order.

    How it runs
    -----------
    memory
        Working memory. Default: 512MiB, or 2GiB in total with --on-disk. It does not change the
        results.
    """

    judged: RequiredJudgedOptions
    items: str | None = None
    lists: str | None = None
    repeated: str = "error"
    reading: Annotated[
        Options, OptionsOf("runs:read_run", {"Input": "nan gaps", "Users and ties": "by"})
    ]
    targets: str | None = None
    unranked: str | None = None
    hygiene: bool = False
    compat: str | None = None
    average: AverageOptions
    large: LargeOptions
    compute: ComputeOptions
    memory: str | None = None


def evaluate_command(*, options: EvaluateOptions, output: ScoresOptions) -> None:
    """Evaluate the ranked lists of any recommender with test ratings.

    [bold]Examples[/bold]

      unskew evaluate --judgments test.csv --run mine.parquet -m P@10 -m nDCG@10 --liked 4

      unskew evaluate -j test.csv -r mine.csv -r theirs.trec -m P@10,anti-P@10 --train train.csv

      unskew evaluate -j qrels.txt -r bm25=run1.trec -r dense=run2.trec -m map -m ndcg_cut_10

      unskew evaluate -j test.csv:user=who,item=what -r mine.csv:item=sku -m P@10 --liked 4

      unskew evaluate -j test.csv -r mine.csv -m AP --per-user values.parquet -o table.csv

      unskew evaluate -j test.csv -r mine.csv -m nDCG@10 --liked 4 --compat recbole

      unskew evaluate -j clicks.csv -r daily.csv -m nDCG@10 --lists user,date

      unskew evaluate -j judgments/ -r mine=lists/ -m nDCG@10 --liked 4 --on-disk judged/
      --memory 4GiB

    Files may be CSV, TSV, ::-separated, TREC, JSON or Parquet, also gzipped; the command prints its
    assumptions about them below the table. [bold]unskew metrics[/bold] lists what -m takes. With
    --on-disk, Parquet files, and folders and patterns of them, can be larger than memory: the
    values of each user and the means are written to that folder, and a stopped evaluation continues
    when it is started again.
    """
    if options.hygiene:
        _write_hygiene(options, output)
    elif options.large.on_disk is not None:
        outputs.deliver_result(_evaluate_on_disk(options, options.large.on_disk, output), output)
    else:
        _check_in_memory(options)
        _write(_evaluate_in_memory(options, output.quiet), output)


def _check_in_memory(options: EvaluateOptions) -> None:
    """Reject options and folders that need `--on-disk`."""
    judged, large = options.judged, options.large
    if large.by_user or large.cluster is not None:
        raise SettingError("--by-user and --cluster need --on-disk FOLDER")
    sources = (str(judged.judgments), *inputs.named_runs(judged.run or []).values())
    if any(Path(split_source(source)[0]).is_dir() for source in sources):
        raise SettingError(
            "folders of Parquet files need --on-disk FOLDER, where the results are written"
        )


def _evaluate_in_memory(options: EvaluateOptions, quiet: bool) -> Scores:
    """Judge files that fit into memory."""
    from unskew.data.relevance import candidate_items
    from unskew.evaluation.evaluate import MEMORY, METRICS, evaluate

    if options.compat is not None:
        return _evaluate_as(options, options.compat)
    judged, compute = options.judged, options.compute
    data = inputs.judge_files(
        judged,
        compute.seed,
        items=options.items,
        targets=candidate_items(judged.relevance.relevance, options.targets, judged.train),
        unranked=options.unranked,
        lists=options.lists,
        duplicates=options.repeated,
        **vars(options.reading),
    )
    names = inputs.metric_names(judged.metric) or METRICS
    settings: dict[str, Any] = {"threads": compute.threads, "memory": options.memory or MEMORY}
    with progress("judging", quiet) as move:
        return evaluate(data, names, progress=move, **settings, **vars(options.average))


def _evaluate_as(options: EvaluateOptions, compat: str) -> Scores:
    """Compute what another library would print."""
    from unskew.evaluation.evaluate import METRICS, evaluate

    if options.lists is not None:
        raise SettingError("--compat is for one list per user: leave --lists out")
    files = inputs.read_for_conventions(
        options.judged, options.compute.seed, options.items, **vars(options.reading)
    )
    return evaluate(
        **files,
        metrics=inputs.metric_names(options.judged.metric) or METRICS,
        ties=options.judged.ties,
        targets=options.targets,
        unranked=options.unranked,
        compat=compat,
        **vars(options.average),
    )


def _write_hygiene(options: EvaluateOptions, output: ScoresOptions) -> None:
    """Count what is wrong with the lists, and print it."""
    from unskew.evaluation.evaluate import labelled
    from unskew.judging.hygiene import hygiene

    refuse(
        "cannot be used with --hygiene, which counts and averages nothing",
        "--on-disk --by-user --cluster --targets --lists --compat --unranked --save --per-user "
        "--memory --threads --users --undefined --repeated --nan",
        options,
        output,
    )
    data = inputs.judge_files(
        options.judged,
        options.compute.seed,
        items=options.items,
        duplicates="first",
        nan="drop",
        gaps=options.reading.gaps,
        by=options.reading.by,
    )
    names = inputs.metric_names(options.judged.metric)
    cutoffs = [one.cutoff for one in labelled(names).values() if one.cutoff] if names else []
    result = hygiene(data, k=max(cutoffs, default=None))
    outputs.deliver_result(result, output)


def _write(scores: Scores, output: ScoresOptions) -> None:
    """Write and print scores."""
    from unskew.engine.files import write_table
    from unskew.report.tables import as_csv

    if output.per_user is not None:
        kind = output.per_user.suffix.lower().removeprefix(".")
        write_table(scores.per_user(), output.per_user, kind)
    if output.save is not None:
        scores.save(output.save)
    printout = outputs.Printout.of_result(
        scores, output.digits, json=scores.to_dict, csv=lambda: as_csv(scores.long_table())
    )
    outputs.deliver(printout, output)


def _evaluate_on_disk(options: EvaluateOptions, folder: Path, output: ScoresOptions) -> Estimates:
    """Judge files larger than memory."""
    from unskew.evaluation.evaluate import METRICS
    from unskew.evaluation.on_disk.files import evaluate_files
    from unskew.evaluation.on_disk.parquet import source_name

    refuse(
        "cannot be used with --on-disk, which evaluates the users in parts and writes its results "
        "to that folder",
        "--train --items --lists --targets --unranked --compat --save --per-user --gaps",
        options,
        output,
    )
    judged, compute = options.judged, options.compute
    runs = inputs.named_runs(judged.run or [], source_name)
    for source in (str(judged.judgments), *runs.values()):
        if split_source(source)[1]:
            raise SettingError(
                f"{source}: columns of a single file cannot be named with --on-disk; name them "
                "for all files with --columns"
            )
    with progress("judging", output.quiet) as move:
        return evaluate_files(
            judged.judgments,
            runs,
            inputs.metric_names(judged.metric) or METRICS,
            output=folder,
            columns=column_names(judged.files.columns),
            duplicates=judged.files.duplicates or "error",
            feedback=judged.files.feedback,
            repeated=options.repeated,
            nan=options.reading.nan,
            by=options.reading.by,
            ties=judged.ties,
            depth=judged.depth,
            seed=compute.seed,
            workers=compute.threads,
            by_user=options.large.by_user,
            cluster=options.large.cluster,
            progress=move,
            **vars(options.average),
            **inputs.relevance_settings(judged.relevance),
            **inputs.given(memory=options.memory),
        )
