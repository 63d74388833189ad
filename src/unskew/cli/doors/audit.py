"""`unskew audit`: how far to trust an evaluation; one command, one report."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unskew.cli import inputs, outputs
from unskew.cli.console import output as screen_of_results
from unskew.cli.options import (
    GroupUsers,
    NamedFileOptions,
    RelevanceOptions,
    ReportOptions,
    StoredOptions,
)
from unskew.cli.parameters import Option, Options, OptionsOf, argument, bundle, refuse
from unskew.cli.progress import Stage, stages_progress
from unskew.errors import SettingError
from unskew.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from unskew.auditing.outline_audit import AuditOutline
    from unskew.auditing.result import Audit
    from unskew.report.tables import Table


@bundle
class SourceOptions:
    """Ratings to run systems on, or ranked lists and what judges them.

    Input
    -----
    no_references
        With --train: do not add reference systems (popularity, …) to the given lists.
    """

    random: str | None = None
    judgments: str | None = None
    run: list[str] | None = None
    train: str | None = None
    no_references: bool = False
    files: NamedFileOptions
    filters: list[str] | None = None


AUDIT = "auditing.audit:audit"
AMOUNTS = OptionsOf(AUDIT, {"How much is measured": "users splits", "How it runs": "memory"})
MEASURED = OptionsOf(
    AUDIT,
    {"What is measured": "metric", "Test": "margin smallest", "How much is measured": "repeats"},
)


@bundle
class AuditOptions:
    """What is run and measured.

    What is measured
    ----------------
    quick
        Faster: fewer systems and fewer repeats.
    thorough
        Slower: more splits.
    designs
        Designs, separated by commas, the most common one first: all-items, test-items, 1r, u1r,
        p1r, test-targets, skew, wtd-h, temporal.

    How it runs
    -----------
    dry_run
        Print what the audit will do, with a rough time by one small trial of each system.
    """

    quick: bool = False
    thorough: bool = False
    relevance: RelevanceOptions
    algorithms: str | None = None
    designs: str | None = None
    group_users: GroupUsers = None
    dry_run: bool = False
    tune: bool = True
    amounts: Annotated[Options, AMOUNTS]
    measured: Annotated[Options, MEASURED]


def check_paper(folder: Path | None) -> Path | None:
    """Check `--paper` before anything is run: a folder that holds something is not written to."""
    if folder is not None:
        if folder.exists() and not folder.is_dir():
            raise SettingError(f"--paper {folder}: a file is there: name a folder")
        if folder.is_dir() and any(folder.iterdir()):
            raise SettingError(f"--paper {folder} is not empty: name a new folder")
    return folder


PaperFolder = Annotated[Path | None, Option(check_paper)]


def audit_command(
    *,
    ratings: Annotated[str | None, argument("RATINGS")] = None,
    sources: SourceOptions,
    options: AuditOptions,
    stored: StoredOptions,
    output: ReportOptions,
    paper: PaperFolder = None,
) -> None:
    """Check how far an offline evaluation can be trusted, and write a report.

    The command runs systems on the ratings under several evaluation setups and prints its answer:
    who scores highest, how that stands to popularity, and what is known of liking. The report is
    one HTML file without other files; it states how often each kind of sentence is wrong.

    [bold]Examples[/bold]

      unskew audit ratings.csv

      unskew audit ml-1m --thorough -o report.html --store audit/

      unskew audit ratings.csv --quick --liked 4 --algorithms popularity,user-knn,wrmf

      unskew audit ratings.csv --random random.csv --figures figures/

      unskew audit --judgments test.csv --run mine.parquet --run theirs.trec --train train.csv

      unskew audit ratings.csv --quick --paper paper/

      unskew audit ratings.parquet --store audit/ --cluster tcp://host:8786

    [bold]Levels[/bold]

      --quick     six systems, 3 splits, 3 to 6 null repeats, 10,000 permutations
      (default)   eleven systems, 5 splits, 3 to 10 null repeats, 100,000 permutations
      --thorough  eleven systems, 10 splits, 5 to 20 null repeats

    Systems are tuned on the training part of each split, unless --no-tune is given.

    With --store, a stopped audit continues where it was. --dry-run counts fits, lists and scores,
    times one small fit of each system, and says which systems are left out on data of this size.

    Output
    ------
    paper
        Also write what a paper needs into this folder: table, methods, citations, checklist, and
        figures of one column's width.
    """
    from unskew.auditing.audit import audit
    from unskew.auditing.compile_ahead import compiling_ahead

    outputs.report_kind(output)
    if options.quick and options.thorough:
        raise SettingError("give --quick or --thorough, not both")
    level = "quick" if options.quick else "thorough" if options.thorough else "default"
    settings = {
        "designs": inputs.between_commas(options.designs),
        **vars(options.measured),
        "group_users": options.group_users,
        "seed": stored.seed,
        **inputs.relevance_settings(options.relevance),
    }
    read = _lists if sources.judgments is not None or sources.run else _ratings
    settings |= read(ratings, sources, options, stored)
    if options.dry_run:
        outputs.say(str(_outline(level, settings)))
        return
    with compiling_ahead(), stages_progress(output.quiet) as move:
        result = audit(plan=level, progress=move, **settings)
    _deliver(_with_files(result, ratings, sources), output, paper)


OUTLINED = (
    *("algorithms", "designs", "users", "splits", "tune", "memory"),
    *("liked", "above", "relevance"),
)
"""The arguments of an audit that its outline takes."""


def _outline(level: str, settings: Mapping[str, Any]) -> AuditOutline:
    """Return what an audit with these settings will do."""
    from unskew.auditing.outline_audit import outline_audit
    from unskew.data.filters import apply_filters

    chosen = {name: settings[name] for name in OUTLINED if settings.get(name) is not None}
    data = settings["data"]
    filtered = replace(data, ratings=apply_filters(data.ratings, settings["filters"]))
    return outline_audit(filtered, level, **chosen)


def _deliver(result: Audit, output: ReportOptions, paper: Path | None) -> None:
    """Write the report and print the answer, then write the folder of a paper.

    A reader of the answer that stops early, such as `head`, costs neither.
    """
    no_reader: BrokenPipeError | None = None
    try:
        outputs.write_report(result, output, "unskew-report", lambda: show(result, output.quiet))
        sys.stdout.flush()  # people read the answer while figures are drawn
    except BrokenPipeError as problem:
        no_reader = problem
    if paper is not None:
        _write_paper(result, paper, output.quiet)
    if no_reader is not None:
        raise no_reader


def _write_paper(result: Audit, folder: Path, quiet: bool) -> None:
    """Write what a paper needs, and say what it is; all of it or nothing."""
    stages = {"figures": Stage("figures for the paper", 1, "figures")}
    try:
        with stages_progress(quiet, stages, stored=()) as move:
            files = result.save_paper(folder, progress=partial(move, "figures"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped. The report is complete; nothing was written to {folder}."
        ) from None
    if quiet:
        return
    texts = {path.stem: None for path in files if path.parent == folder and path.stem != "figures"}
    figures = {path.stem for path in files if path.parent != folder}
    outputs.message(
        f"the files for a paper are in {folder}: {', '.join(texts)}, "
        f"{counted(len(figures), 'figure')}"
    )


def _lists(
    ratings: str | None, sources: SourceOptions, options: AuditOptions, stored: StoredOptions
) -> dict[str, Any]:
    """Read ranked lists and what judges them, as `audit` takes them."""
    if ratings is not None:
        raise SettingError("give ratings, or --judgments and --run: not both")
    if sources.judgments is None or not sources.run:
        raise SettingError("give both --judgments and --run")
    refuse(
        "is for ratings: leave it out with --judgments",
        "--algorithms --users --splits --memory --filter --store --data-dir --workers --cluster "
        "--no-tune --dry-run",
        *(options, sources, stored),
    )
    return {
        **inputs.read_judged(sources.judgments, sources.run, sources.train, sources.files),
        "random": inputs.read_random_file(sources.random, sources.files),
        "references": not sources.no_references,
    }


def _ratings(
    ratings: str | None, sources: SourceOptions, options: AuditOptions, stored: StoredOptions
) -> dict[str, Any]:
    """Read ratings that systems are run on, as `audit` takes them."""
    if ratings is None:
        raise SettingError("name ratings (a file, or a data set), or --judgments and --run")
    if sources.train is not None:
        raise SettingError(
            "--train needs --judgments and --run: this command splits ratings itself"
        )
    if sources.no_references:
        raise SettingError("--no-references needs --judgments and --run")
    data = inputs.load_data(ratings, sources.files)
    return {
        "random": inputs.read_random_file(sources.random, sources.files),
        "data": data,
        "algorithms": inputs.between_commas(options.algorithms),
        "tune": options.tune,
        **vars(options.amounts),
        "users": number_or_all(options.amounts.users),
        "filters": inputs.read_filters(sources.filters),
        "store": stored.store,
        **stored.executor.arguments(),
    }


def number_or_all(users: str | None) -> int | str | None:
    """Return a number of users as such; other words are checked where they are used."""
    plain = None if users is None else users.replace(",", "").replace("_", "")
    return int(plain) if plain is not None and plain.isascii() and plain.isdigit() else users


def _with_files(result: Audit, ratings: str | None, sources: SourceOptions) -> Audit:
    """Return the audit with the files of this command in the command of its card."""
    from unskew.auditing.page.reproduction import with_files

    files = {
        "RATINGS": ratings,
        "--judgments": sources.judgments,
        "--train": sources.train,
        "--random": sources.random,
    }
    options, folder = sources.files, sources.files.data_dir
    stated: list[tuple[str, Any]] = [
        *((f"--{name}", getattr(options, name)) for name in ("columns", "duplicates", "feedback")),
        *(("--filter", text) for text in sources.filters or ()),
        ("--data-dir", "FOLDER" if folder and folder.is_absolute() else folder),
    ]
    more = [str(word) for pair in stated if pair[1] is not None for word in pair]
    named = {key: str(path) for key, path in files.items() if path is not None}
    runs = inputs.named_runs(sources.run or [])
    return replace(result, command=with_files(result.command, named, runs, more))


def show(result: Audit, quiet: bool) -> None:
    """Print the answer; unless quiet, designs x systems and notes."""
    screen = screen_of_results()
    lines = result.answer()
    for text in lines[1:] if quiet else lines:
        screen.print(text, markup=False, soft_wrap=not sys.stdout.isatty())
        screen.print()
    if quiet:
        return
    screen.print(_design_table(result).to_rich())
    if result.reach is not None and result.reach.height:
        from unskew.auditing.page.blocks import table

        screen.print(table("reach", result.reach, 3).to_rich())
    for line in result.footer():
        outputs.note(line)


def _design_table(result: Audit) -> Table:
    """Return the value and place of the first ten systems under each design, and in truth."""
    from unskew.report.tables import Table

    systems, table = result.order()[:10], result.table()
    rows, best = [], []
    for number, design in enumerate(result.designs):
        of_design = table.filter(design=design).rows_by_key("system", named=True, unique=True)
        values = [of_design[system] for system in systems]
        best += [(number, i) for i, row in enumerate(values, start=1) if row["place"] == 1]
        places = [f"{row['value']:.4f} ({row['place']})" for row in values]
        chance = values[0]["random"]
        rows.append([design, *places, "–" if chance is None else f"{chance:.4f}"])
    true = _true_row(result, systems)
    rows += [] if true is None else [true]
    header = ["design", *systems, "(chance)"]
    if table["random"].null_count() == table.height:  # a note says why
        header, rows = header[:-1], [row[:-1] for row in rows]
    warm = "; designs: users with a training rating" if result.core.has_cold else ""
    title = f"{result.metric} (place){warm}"
    return Table.of_rows(header, rows, left=[0], title=title, strong=best)


def _true_row(result: Audit, systems: Sequence[str]) -> list[str] | None:
    """Return the true values and places, where they are known."""
    if result.truth is None or result.common not in result.truth.values_of("design"):
        return None
    orders = result.truth.parts["orders"].where(metric=result.metric, design="true").rows
    places = dict(orders.select("system", "value").iter_rows())
    true = true_shares(result)
    if any(true.get(system) is None for system in systems):
        return None
    cells = [f"{true[system]:.4f} ({places[system]})" for system in systems]
    return ["(in truth)", *cells, ""]


def true_shares(result: Audit) -> dict[str, float]:
    """Return by system: the share of its first ten recommendations that people truly like."""
    if result.truth is None:
        raise SettingError("the truth is known in worlds only")
    keys = {"design": result.common, "metric": result.metric, "quantity": "true"}
    return dict(result.truth.where(**keys).rows.select("system", "value").iter_rows())
