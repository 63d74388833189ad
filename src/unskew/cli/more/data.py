"""Commands that show or write data: `data …`, `intervene`, `world`."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from unskew.checks import choose
from unskew.cli import files as formats
from unskew.cli import inputs, outputs
from unskew.cli.console import messages
from unskew.cli.options import (
    FolderName,
    FolderOptions,
    NamedFileOptions,
    PlainFormat,
    PrintOptions,
    RatingsArgument,
    TextOptions,
)
from unskew.cli.parameters import Option, argument, bundle, given_options
from unskew.cli.progress import progress
from unskew.errors import SettingError
from unskew.report.text import counted


@bundle
class InfoOptions:
    """Which data set is described.

    Arguments
    ---------
    source
        A named data set, a file of ratings, or released results.

    Input
    -----
    option
        Option of a named data set, such as overlap=keep. Repeatable.
    """

    source: Annotated[str, argument()]
    option: list[str] | None = None
    files: NamedFileOptions
    liked: float | None = None


def data_info_command(*, options: InfoOptions, output: TextOptions) -> None:
    """Describe a data set: sizes, density, Gini, liked share, times, true part.

    For a named data set, or results that authors released, it also shows where to get them.

    [bold]Examples[/bold]

      unskew data info ml-1m

      unskew data info valcarce2018_ml-1m_pvalues.csv

      unskew data info coat --option overlap=drop-from-test

      unskew data info ratings.csv --liked 4 --format json
    """
    from unskew.data.formats import catalog
    from unskew.data.summary import summary

    figures = outputs.figures_of(output.figure, ("popularity",))
    is_file = Path(options.source).is_file()
    table = None if is_file else catalog.released_table(options.source)
    if table is not None:
        _show_released(table, options, output)
        return
    outputs.deliver_result(summary(_read(options)), output, figures)


def _read(options: InfoOptions) -> Any:
    """Read a file, or a named data set and where to get it."""
    from unskew.data.formats.catalog import read_name

    source, files = options.source, options.files
    pairs = inputs.assignments(options.option, "--option: write NAME=VALUE, such as overlap=keep")
    switches: dict[str, Any] = {"true": True, "false": False}
    settings = {name: switches.get(value.lower(), value) for name, value in pairs}
    named = read_name(source)
    if named is None and settings:
        raise SettingError(f"--option is for named data sets, but {source} is a file")
    if named is not None and (files.columns is not None or files.duplicates is not None):
        raise SettingError(
            f"--columns and --duplicates are for files, but {source} is a named data set"
        )
    data = inputs.load_data(source, files, **settings)
    if named is not None:
        data = replace(data, notes=(*data.notes, *named[0].facts, named[0].source))
    return data if options.liked is None else replace(data, liked=options.liked)


def _show_released(table: Any, options: InfoOptions, output: TextOptions) -> None:
    """Print what is known of a table of released results."""
    import polars as pl

    from unskew.data.formats import catalog

    refused = {"--option", "--liked", "--columns", "--duplicates", "--feedback", "--figure"}
    if refused.intersection(given_options(options, output)):
        raise SettingError(
            f"{options.source} holds results, not ratings: leave out --option, --liked, "
            "--columns, --duplicates, --feedback and --figure"
        )
    facts = catalog.describe_released(table, catalog.data_folder(options.files.data_dir))
    rows, authors_file = counted(int(facts["rows"] or 0), "row"), facts["authors_file"]
    lines = [f"{facts['file']}: results that the authors released, {rows}"]
    lines.append(f"  from   {facts['source']}")
    if authors_file:
        lines.append(f"  file   {authors_file}, which is also recognised under this name")
    path = facts["path"] or "no; put it into the folder `published` of the data folder"
    text = "\n".join([*lines, f"  there  {path}"])
    frame = pl.DataFrame([facts])
    outputs.deliver(outputs.Printout.of(frame, text=lambda: text, json=lambda: facts), output)


ENDINGS = {".csv": "csv", ".parquet": "parquet"}


@bundle
class FilterOptions:
    """What is filtered, and how.

    Arguments
    ---------
    source
        Ratings: a file, or a named data set such as ml-1m.
    """

    source: RatingsArgument
    files: NamedFileOptions
    filters: list[str] | None = None
    event_log: bool = False


def data_filter_command(
    *,
    options: FilterOptions,
    output: Annotated[Path, Option(metavar="FILE")],
    quiet: bool = False,
) -> None:
    """Filter ratings or an event log, and say what each filter removed.

    [bold]Examples[/bold]

      unskew data filter ratings.csv --filter k-core:users=5,items=5 -o core.parquet

      unskew data filter plays.tsv --event-log --columns user=0,time=1,item=2 --filter
      drop-repeats:within=60 --filter max-counts:users=1000 -o clean.csv

    [bold]Filters[/bold]

      k-core:users=5,items=5,rounds=1: users and items with enough rows

      max-counts:users=1000: without users (robots) or items with more rows

      popular-items:number=1000: the items with the most rows

      between:start=2024-01-01,end=2024-07-01: from one moment up to another

      threshold:least=4,binary=true: rows from a value up, as implicit feedback

      drop-repeats:which=consecutive,within=60: an event log without repeats

      sample-users:share=0.1,seed=7: all rows of users drawn at random

    Output
    ------
    output
        File to write; its ending selects the format: .csv or .parquet.
    """
    from unskew.data.events import Events
    from unskew.data.filters import apply_filters
    from unskew.engine.files import write_table

    formats.file_check(ENDINGS, no_stream=f"name a file that ends in {', '.join(ENDINGS)}")(output)
    chosen = inputs.read_filters(options.filters)
    if not chosen:
        raise SettingError("name at least one filter, such as --filter k-core:users=5,items=5")
    read = inputs.read_log if options.event_log else inputs.read_rating_file
    filtered = apply_filters(read(options.source, options.files), chosen)
    table = filtered.to_polars() if isinstance(filtered, Events) else filtered.to_file_table()
    write_table(table, output, ENDINGS[output.suffix.lower()])
    if quiet:
        return
    for step in filtered.steps:
        outputs.say(str(step))
    outputs.say(f"written to {output}", dim=True)
    for line in filtered.notes:
        outputs.note(line)


def data_get_command(
    *,
    name: Annotated[str, argument()],
    data_dir: Path | None = None,
    yes: bool = False,
    format: PlainFormat = "text",  # noqa: A002 - the option's name
    quiet: bool = False,
) -> None:
    """Download a data set, check it and unpack it; a failed download leaves nothing behind.

    The command prints the checks that were possible and saves them in download.json in the folder:
    a checksum where one is published, else the size and the checksums inside the archive.

    [bold]Examples[/bold]

      unskew data get ml-1m

      unskew data get coat --data-dir ~/data --yes

    Arguments
    ---------
    name
        Name of a data set; `unskew data list` lists them.

    Input
    -----
    yes
        Accept the licence without asking.
    """
    from unskew.data.formats import catalog

    entry = catalog.named(name)
    there = catalog.is_there(entry, data_dir)
    if entry.archive is not None and not there:
        size = "" if entry.size is None else f", {entry.size / 1e6:,.0f} MB"
        messages().print(
            f"{entry.title}{size}\n  from     {entry.archive}\n  page     {entry.address}\n"
            f"  licence  {entry.licence}",
            markup=False,
        )
        if not yes:
            if not sys.stdin.isatty():
                raise SettingError("give --yes to accept the licence")
            typer.confirm("Do you accept the licence?", abort=True, err=True)
    with progress(f"downloading {entry.name}", quiet) as move:
        folder = catalog.get(name, data_dir, progress=move)
    receipt = catalog.receipt(folder)
    facts = {
        "name": entry.name,
        "folder": str(folder),
        "was_there": there,
        "receipt": None if receipt is None else asdict(receipt),
    }
    lines = [f"{entry.title} is there {'already' if there else 'now'}: {folder}"]
    lines += [] if receipt is None else [str(receipt)]
    outputs.print_plain(format, facts, lines)


def data_list_command(*, data_dir: Path | None = None, output: PrintOptions) -> None:
    """List the named data sets and the results that authors released, and which ones you have.

    [bold]Examples[/bold]

      unskew data list

      unskew data list --data-dir ~/data --format json
    """
    import polars as pl

    from unskew.data.formats.catalog import data_folder, listing

    table = pl.DataFrame(listing(data_dir))
    footer = [f"data folder: {data_folder(data_dir)}"]
    printout = outputs.Printout.of(table.drop("licence"), table, footer=footer)
    outputs.deliver(printout, output)


@bundle
class InterventionOptions:
    """The settings of all interventions; those that are given must belong to the kind.

    Intervention
    ------------
    size
        Share of the ratings to draw. Default: 0.5.
    exponent
        Exponent of an item's weight. Default: skew 1, wtd and wtd-h 2.
    unseen
        skew: weight of items without training ratings: once (as if rated once), or random.
    smoothing
        wtd, wtd-h: how to avoid posteriors of 0: additive or paper.
    alpha
        wtd, wtd-h: amount of additive smoothing. Default: 1.
    """

    size: float | None = None
    exponent: float | None = None
    unseen: str | None = None
    smoothing: str | None = None
    alpha: float | None = None


def intervene_command(
    *,
    test: Annotated[str, argument("RATINGS")],
    train: str | None = None,
    mar: str | None = None,
    files: NamedFileOptions,
    kind: str,
    options: InterventionOptions,
    weighting: str | None = None,
    seed: int = 0,
    output: FolderOptions,
) -> None:
    """Draw, or weight, held-out ratings so that they look missing at random (carraro2020).

    [bold]Examples[/bold]

      unskew intervene test.parquet --train train.parquet --kind skew -o debiased/

      unskew intervene test.csv --train train.csv --mar random.csv --kind wtd -o debiased/

      unskew intervene test.csv --train train.csv --kind wtd-h --weighting raking -o weighted/

    [bold]Kinds[/bold]

      full (everything), reg (at random), skew (against popular items), wtd (towards the users and
      items of ratings of randomly chosen items, --mar), wtd-h (towards equally frequent users and
      items). skew, wtd and wtd-h need --train.

    The folder gets test.parquet (with a column weight where --weighting is given) and card.json.

    Arguments
    ---------
    test
        Held-out ratings: a file, or a named data set.

    Input
    -----
    mar
        Ratings of randomly chosen items: for wtd.

    Intervention
    ------------
    kind
        Kind of intervention: full, reg, skew, wtd, wtd-h.
    weighting
        Weight all ratings instead of drawing some: hajek, inclusion, raking.
    """
    from unskew.splits.interventions import DESIGNS, METHODS
    from unskew.splits.looks_random import looks_random
    from unskew.splits.saved import check_folder, save_intervened

    design = _design(DESIGNS[choose("kind", kind, DESIGNS)], inputs.given(**vars(options)))
    if weighting is not None:
        choose("weighting", weighting, METHODS)
    check_folder(output.output, output.force)
    inputs.check_data_dir(files.data_dir, test, train, mar)
    sources = inputs.given(
        test=inputs.read_rating_file(test, files),
        train=None if train is None else inputs.read_rating_file(train, files),
        mar=inputs.read_random_file(mar, files),
    )
    parts = sources["test"], sources.get("train"), sources.get("mar")
    if weighting is None:
        sample = design.sample(*parts, seed)
        lines = [str(sample), str(looks_random(sample.ratings))]
    else:
        sample = design.weigh(*parts, weighting, seed)
        lines = [str(sample)]
    save_intervened(sample, output.output, sources=sources, force=output.force)
    outputs.say_written(output, *lines)


def _design(kind: Any, settings: dict[str, Any]) -> Any:
    """Build the intervention from the options that were given."""
    allowed = [name for name in kind().describe() if name != "kind"]
    for name in settings:
        if name not in allowed:
            takes = ", ".join(f"--{setting}" for setting in allowed)
            raise SettingError(f"--{name} does not apply to {kind.kind}; it takes {takes}")
    return kind(**settings)


@bundle
class SizeOptions:
    """How large a world is.

    The world
    ---------
    users
        Number of users.
    items
        Number of items.
    ratings
        Expected number of observed ratings.
    density
        Observed share of all user-item pairs, instead of --ratings.
    """

    users: int | None = None
    items: int | None = None
    ratings: int | None = None
    density: float | None = None
    seed: int = 0


@bundle
class WorldFolderOptions:
    """Which files of a world are written, and where.

    Output
    ------
    output
        Output folder.
    random
        Share of all user-item pairs in the random sample; 0 for no sample.
    truth
        Write the truth of every user-item pair, or leave it out.
    format
        Format of the files in the folder: parquet or csv.
    """

    output: FolderName = None
    random: float = 0.05
    truth: bool | None = None
    format: str = "parquet"
    force: bool = False
    quiet: bool = False


def world_command(
    *,
    name: Annotated[str | None, argument()] = None,
    show_list: bool = False,
    size: SizeOptions,
    setting: list[str] | None = None,
    output: WorldFolderOptions,
) -> None:
    """Simulate ratings whose full truth is known (a world).

    [bold]Examples[/bold]

      unskew world --list

      unskew world shop -o shop/

      unskew world inverted --users 500 --items 300 --seed 7 --set alpha=1.2 -o inverted/

      unskew world simulated-popularity --set alpha=0 --no-truth --format csv -o flat/

    The folder gets ratings (what users chose to rate), random (a random sample of all pairs), truth
    (a file per block of users: every pair with its true rating, the chance that it is liked and the
    probability that it is observed) and card.json. Without -o the command only prints the sizes of
    the world. The same seed gives the same world on any machine.

    Arguments
    ---------
    name
        Name of a world; --list lists them.

    The world
    ---------
    show_list
        List the worlds and their settings.
    setting
        A setting, NAME=VALUE. Repeatable.
    """
    from unskew.worlds.save_world import save_world
    from unskew.worlds.worlds import world

    if show_list:
        _list()
        return
    if name is None:
        raise SettingError("name a world; unskew world --list lists them")
    chosen = world(name, **vars(size), **_world_settings(setting or []))
    settings = {name: getattr(output, name) for name in ("random", "truth", "format", "force")}
    card = {}
    if output.output is not None:
        card = save_world(chosen, output.output, **settings)
    if output.quiet:
        return
    facts = {
        what: f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
        for what, value in chosen.summary().items()
    }
    if card:
        pairs = sum(rows for file, rows in card["files"].items() if file.startswith("truth/"))
        facts["random sample"] = f"{card['files'].get(f'random.{output.format}', 0):,}"
        facts["truth"] = counted(pairs, "pair")
    outputs.say("\n".join([str(chosen), *(f"  {what:16} {fact}" for what, fact in facts.items())]))
    if card:
        outputs.say(f"written to {output.output}", dim=True)


COMMON = ("users", "items", "seed", "ratings", "density")


def _world_settings(texts: list[str]) -> dict[str, Any]:
    """Read NAME=VALUE, numbers as numbers."""
    settings: dict[str, Any] = {}
    for written, value in inputs.assignments(texts, "--set: write NAME=VALUE, such as alpha=1.2"):
        name = written.replace("-", "_")
        if name in COMMON:
            raise SettingError(f"--set {name}: use --{name} instead")
        if name in settings:
            raise SettingError(f"--set {name} is given twice; leave one out")
        try:
            is_whole = value.replace("_", "").lstrip("+-").isdecimal()
            settings[name] = int(value) if is_whole else float(value)
        except ValueError:
            raise SettingError(f"--set {name}: settings are numbers, got {value!r}") from None
    return settings


def _list() -> None:
    """Print the worlds that have a name."""
    from unskew.worlds.parts import WORLDS

    sizes = "users x items, ratings"
    entries = [
        {
            **world._asdict(),
            "name": name,
            sizes: f"{world.users:,} x {world.items:,}, {world.ratings:,}",
        }
        for name, world in WORLDS.items()
    ]
    columns = {"name": "name", "what it is": "about", "paper": "paper", sizes: sizes}
    outputs.print_list(entries, {**columns, "settings": "settings"})
