"""`unskew split`: training and test ratings with the card that says how, and what leaks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unskew.checks import MOST_REPEATS, choose
from unskew.cli import files, inputs, outputs
from unskew.cli.console import in_option_words
from unskew.cli.files import RATING_COLUMNS, file_columns, split_source
from unskew.cli.options import NamedFileOptions, PlainFormat, RatingsArgument
from unskew.cli.parameters import Option, bundle
from unskew.errors import SettingError, file_name

if TYPE_CHECKING:
    from unskew.splits.diagnosis.diagnosis import Diagnosis


# Settings of protocols that are named otherwise on the command line.
_SETTING = {
    ("leave-out", "number"): "n",
    ("flat", "per_item"): "t",
    ("head-removed", "head"): "share",
    ("familiar", "column"): "tag",
    ("forced", "test_ratings"): "random",
    ("given", "test_ratings"): "test",
}


@bundle
class ProtocolOptions:
    """The settings of all protocols; those that are given must belong to the protocol.

    The split
    ---------
    test
        Test share. Default: 0.2.
    folds
        random, head-removed, familiar: number of folds (familiar: 0 for none).
    exact
        random: draw exactly this share, instead of each rating with this probability.
    rounding
        Rounding of counts: floor or half-even (user), floor or nearest (uniform).
    number
        user, leave-out: number of test ratings of each user. windows, ages: number of windows or
        ages.
    pick
        user, leave-out: which ratings to test: random, or the last or first in time. Splits by
        time: those of each user (sessions: of each session) in the test part; also all, or every
        next.
    repetitions
        uniform, flat: number of independent draws (not folds).

    Protocols temporal, events, windows, ages and sessions
    ------------------------------------------------------
    at
        Time of the cut, such as 2003-01-01.
    ties
        Part that ratings at the time of the cut go to: test or train.
    validation
        temporal: share of a validation part just before the test.
    validation_at
        temporal: time at which a validation part begins.
    gap
        Time between training and test that is left out, such as 1d, 12h or 30min.
    per_user
        temporal: a separate cut for each user.
    aggregate
        events: how repeated events become one rating: count or sum.
    repeats
        Event logs: how events of one pair become a rating: count, sum, mean, max, first or last.
    seen
        Event logs: drop or keep test pairs that were met before the test.

    Further settings of windows, ages and sessions
    ----------------------------------------------
    length
        windows, ages: how long a test window lasts, such as 7d.
    step
        windows, ages: time from one window, or age, to the next, such as 7d.
    train_length
        windows, ages: train on so long before the cut (default: on all before).
    start
        windows: beginning of the first window.
    empty
        windows: a window without rows is an error, or skip it.
    ages
        ages: how old the models are, such as 0d,7d,30d (or --step, --number).
    pause
        sessions: a longer pause ends a session (default 30min).
    least
        sessions: fewest events of a test session.

    Protocols uniform, flat and head-removed
    ----------------------------------------
    epsilon
        uniform: smallest share of its ratings that an item keeps for training.
    per_item
        flat: number of test ratings per item.
    min_ratings
        flat: items with fewer ratings are not tested.
    head
        head-removed: size of the head, as a share.
    by
        head-removed: the head is a share of items or of ratings.
    counts
        head-removed: count popularity in all ratings, or in training.
    keep
        head-removed: part of the items that stays in the test part: tail or head.

    Protocols forced, given and familiar
    ------------------------------------
    column
        given: the column that names the part. familiar: the column of familiar items.
    overlap
        forced, given: where pairs in both parts belong: to-training, to-test, keep (both), or
        error.
    fair
        familiar: remove test judgments until the test is fair (needs --liked).
    smoothing
        familiar --fair: smoothing of the rates.
    cap
        familiar --fair: upper bound of T.
    """

    test: float | None = None
    folds: Annotated[int | None, Option(limits=(0, MOST_REPEATS))] = None
    exact: bool = False
    rounding: str | None = None
    number: int | None = None
    pick: str | None = None
    event_log: bool = False
    at: str | None = None
    ties: str | None = None
    validation: float | None = None
    validation_at: str | None = None
    gap: str | None = None
    per_user: bool = False
    aggregate: str | None = None
    repeats: str | None = None
    seen: str | None = None
    length: str | None = None
    step: str | None = None
    train_length: str | None = None
    start: str | None = None
    empty: str | None = None
    ages: str | None = None
    pause: str | None = None
    least: int | None = None
    epsilon: float | None = None
    per_item: int | None = None
    min_ratings: int | None = None
    repetitions: int | None = None
    head: float | None = None
    by: str | None = None
    counts: str | None = None
    keep: str | None = None
    column: str | None = None
    overlap: str | None = None
    fair: bool = False
    smoothing: float | None = None
    cap: float | None = None


def split_command(
    *,
    ratings: RatingsArgument,
    card: Path | None = None,
    files: NamedFileOptions,
    filters: list[str] | None = None,
    protocol: str = "random",
    options: ProtocolOptions,
    liked: float | None = None,
    test_ratings: str | None = None,
    audit: SplitAuditOptions,
    seed: int = 0,
    output: SplitOutput,
) -> None:
    """Split ratings into training and test parts, or look for leaks in a split.

    [bold]Examples[/bold]

      unskew split ratings.csv --test 0.2 -o parts/

      unskew split ratings.csv --protocol random --folds 5 --seed 7 -o folds/

      unskew split ratings.csv --protocol user --test 0.2 --pick last -o parts/

      unskew split ratings.csv --protocol uniform --test 0.2 --epsilon 0.2 -o uniform/

      unskew split plays.tsv --protocol events --test 0.2 --columns user=0,item=2,time=1 -o parts/

      unskew split ratings.csv --filter k-core:users=5,items=5 --protocol temporal -o parts/

      unskew split plays.csv --event-log --protocol windows --length 7d --number 4 -o weeks/

      unskew split ratings.csv --card parts/card.json -o again/

      unskew split ratings.csv --protocol temporal --audit -o leaks.html

      unskew split train.csv --test-ratings test.csv --protocol given --audit

      unskew split parts/ --audit --fail-on leak

    [bold]Protocols[/bold]

      random: each rating with the same probability, or folds

      user: a share or number of each user's ratings; leave-out: a few of each user's

      temporal: before and after a point in time; events: a log, split by time and then aggregated

      windows: test windows along time, each with the training before it; ages: one test window,
      training that ends earlier and earlier; sessions: early sessions train, later ones test

      uniform: the same number of test ratings for each popular item; flat: for each item with
      enough

      head-removed: random, without the most popular items in the test part

      forced: test ratings of randomly chosen items, in a separate file

      familiar: judgments of randomly chosen items; those of familiar items are the training part

      given: by a column, or by two files

    The folder gets train.parquet and test.parquet (in fold1, fold2, … where there are several) and
    card.json with every setting and fact. The same seed gives the same rows on any machine.

    Input
    -----
    card
        Repeat the split of this card instead.

    The split
    ---------
    protocol
        Protocol of the split: see the list above.

    Protocols forced, given and familiar
    ------------------------------------
    test_ratings
        forced, given: file of the test ratings.
    """
    from unskew.data.filters import apply_filters
    from unskew.splits.diagnosis.diagnosis import diagnose
    from unskew.splits.saved import PROTOCOLS, check_folder, from_card, save_splits

    settings = inputs.given(**vars(options))
    is_log = settings.pop("event_log", False) or protocol == "events"
    check_options(audit, output)
    if audit.audit and Path(ratings).is_dir():
        stated = {"card": card, "test_ratings": test_ratings, "liked": liked, "filter": filters}
        stated |= {"feature": audit.feature, "protocol": protocol, "seed": seed}
        _refuse_settings(ratings, settings | stated | {"event_log": is_log} | vars(files))
        audit_saved(ratings, audit, output)
        return
    if output.folder is not None:
        check_folder(output.folder, output.force)
    inputs.check_data_dir(files.data_dir, ratings, test_ratings)
    if audit.feature and any(x and inputs.is_named(x) for x in (ratings, test_ratings)):
        raise SettingError("--feature names a column of a file; named data sets keep theirs")
    reading = SplitReading.of(ratings, test_ratings, files, filters, is_log)
    column, repeated = options.column, None
    if card is not None:
        repeated, reading = _repeated(card, settings, reading)
        protocol, seed, liked = repeated["protocol"], repeated["seed"], repeated["liked"]
        column = repeated["settings"].get("column") or repeated["settings"].get("tag")
    choose("protocol", protocol, PROTOCOLS)
    column = "familiar" if protocol == "familiar" and column is None else column
    features = audit.feature or []
    tags = features if column is None else [column, *features]
    data = reading.data(ratings, files, protocol, tags)
    test = reading.test(test_ratings, files, protocol, features)
    data = apply_filters(data, inputs.read_filters(reading.filters))
    if test is not None:
        settings["test_ratings"] = test
        if audit.audit and protocol == "given" and repeated is None:
            settings.setdefault("overlap", "keep")  # pairs in both parts are what is looked for
    if repeated is None:
        splitter = _splitter(protocol, settings, liked)
    else:
        splitter = from_card(repeated, data, test)
    if output.folder is not None:
        path = ratings if inputs.is_named(ratings) else split_source(ratings)[0]
        more = {"file": file_name(path), "reading": reading.card()}
        facts: dict[str, Any] = {"liked": liked, "more": more}
        written = save_splits(splitter, data, output.folder, seed, force=output.force, **facts)
        if not audit.audit:
            _show(written, output)
    if not output.quiet:
        for line in (*data.notes, *map(str, data.steps)):
            outputs.note(line)
    if audit.audit:
        log = None if test is not None else data
        deliver(diagnose(splitter.each(data, seed), log=log), audit, output)


def _refuse_settings(folder: str, settings: dict[str, Any]) -> None:
    """Refuse settings of a split that is made already."""
    default = {"protocol": "random", "seed": 0, "duplicates": None}
    for name, value in settings.items():
        if value not in (None, []) and value is not False and value != default.get(name):
            raise SettingError(f"{folder}: is split already; leave out {_option(name)}")


@dataclass(kw_only=True)
class SplitReading:
    """How ratings, and test ratings in a file of their own, are read; the card keeps it."""

    columns: dict[str, Any]
    duplicates: str | None
    feedback: str | None = None
    filters: list[str] | None = None
    events: bool = False
    """Whether the file is an event log."""
    kinds: dict[str, Any] | None = None
    """Which events count, and how much."""
    test_columns: dict[str, Any] | None = None
    """Of the test ratings, where they are others."""

    @classmethod
    def of(
        cls,
        ratings: str,
        test: str | None,
        files: NamedFileOptions,
        filters: list[str] | None,
        is_log: bool,
    ) -> SplitReading:
        """Return how the options say that files are read."""
        columns: dict[str, Any] = {}
        if not inputs.is_named(ratings):
            columns = file_columns(ratings, files.columns, RATING_COLUMNS)[1]
        of_test = file_columns(test or "", files.columns, RATING_COLUMNS)[1]
        return cls(
            columns=columns,
            duplicates=files.duplicates,
            feedback=files.feedback,
            filters=filters or None,
            events=is_log,
            kinds=inputs.given(**inputs.chosen_events(files)) or None,
            test_columns=None if of_test == columns else of_test,
        )

    def card(self) -> dict[str, Any]:
        """Return what the card keeps, to read the same again."""
        always = {"columns": self.columns, "duplicates": self.duplicates}
        return always | inputs.given(**vars(self))

    def data(self, source: str, files: NamedFileOptions, protocol: str, tags: list[str]) -> Any:
        """Read the ratings, or the events, to be split."""
        from unskew.data.events import read_events

        if inputs.is_named(source):
            if self.events:
                option = "--protocol events" if protocol == "events" else "--event-log"
                raise SettingError(
                    f"{option} reads a log from a file, but {source} is a named data set"
                )
            return inputs.read_rating_file(source, files)
        if not self.events:
            return self._read(source, tags, self.columns)
        _check_takes_events(protocol)
        settings = {"feedback": self.feedback or "implicit", **(self.kinds or {}), **self.columns}
        return read_events(split_source(source)[0], tags=tags, **settings)

    def test(
        self, source: str | None, files: NamedFileOptions, protocol: str, tags: list[str]
    ) -> Any:
        """Read the test ratings; None where they are not in a file of their own."""
        if source is None:
            return None
        if inputs.is_named(source):
            read = inputs.read_random_file if protocol == "forced" else inputs.read_rating_file
            return read(source, files)
        columns = self.columns if self.test_columns is None else self.test_columns
        return self._read(source, tags, columns)

    def _read(self, source: str, tags: list[str], columns: dict[str, Any]) -> Any:
        from unskew.data.read.ratings_files import read_ratings

        settings = {"duplicates": self.duplicates, "feedback": self.feedback, **(self.kinds or {})}
        return read_ratings(split_source(source)[0], tags=tags, **settings, **columns)


def _repeated(
    card: Path, settings: dict[str, Any], stated: SplitReading
) -> tuple[dict[str, Any], SplitReading]:
    """Return a card, and how it says that ratings are read; refuse what it holds already."""
    from unskew.splits.saved import read_card

    repeated = read_card(card)
    holds = "--card already holds all settings; leave out"
    if settings:
        raise SettingError(f"{holds} {_option(next(iter(settings)))}")
    if "reading" not in repeated:
        raise SettingError(f"{card}: this card of Python does not say which columns to read")
    if stated.columns or stated.test_columns or stated.filters:
        raise SettingError(f"{holds} --columns, FILE:item=… and --filter")
    names = {field.name for field in fields(SplitReading)}
    reading = {name: value for name, value in repeated["reading"].items() if name in names}
    return repeated, SplitReading(**{"events": repeated["protocol"] == "events"} | reading)


def _check_takes_events(name: str) -> None:
    """Refuse an event log where ratings are split."""
    from unskew.splits.saved import PROTOCOLS

    takes = [key for key, kind in PROTOCOLS.items() if kind.takes_events]
    if name not in takes:
        raise SettingError(
            f"--event-log is for splits by time ({', '.join(takes)}); {name} splits ratings, of "
            "which a pair has one: count them first, with --duplicates count"
        )


def _splitter(name: str, options: dict[str, Any], liked: float | None) -> Any:
    """Build the splitter from the options that were given."""
    from unskew.splits.saved import PROTOCOLS, protocol

    settings = dict(options)
    if name == "head-removed":
        inner = {key: settings.pop(key) for key in ("test", "folds", "exact") if key in settings}
        settings["of"] = protocol("random", **inner)
    if "ages" in settings:
        settings["ages"] = tuple(age.strip() for age in settings["ages"].split(","))
    if name == "familiar":
        settings["folds"] = settings.get("folds", 5) or None
        if settings.get("fair"):
            settings["liked"] = liked
    renamed = {_SETTING.get((name, key), key): value for key, value in settings.items()}
    allowed = [field.name for field in fields(PROTOCOLS[name])]
    for key, setting in zip(settings, renamed, strict=True):
        if setting not in allowed:
            back = {mine: theirs for (of, theirs), mine in _SETTING.items() if of == name}
            takes = ", ".join(_option(back.get(field, field)) for field in allowed)
            raise SettingError(f"{_option(key)} does not apply to {name}; it takes {takes}")
    return protocol(name, **renamed)


def _option(setting: str) -> str:
    return f"--{setting.replace('_', '-')}"


def _show(card: dict[str, Any], output: SplitOutput) -> None:
    """Print the splits, unless quiet: the first in full, a line for each further one."""
    from unskew.splits.counts import split_lines

    if output.quiet:
        return
    first, *others = card["splits"]
    outputs.say("\n".join(split_lines(first["audit"])))
    facts = {key: fact for key, fact in first["facts"].items() if key not in first["audit"]}
    outputs.say("  facts  " + ", ".join(f"{key} {_fact(fact)}" for key, fact in facts.items()))
    for entry in others:
        sizes = ", ".join(f"{file} {rows:,}" for file, rows in entry["files"].items())
        outputs.say(f"{entry['label']}: {sizes}")
    outputs.say(f"written to {output.output}", dim=True)


def _fact(fact: Any) -> str:
    if isinstance(fact, bool) or not isinstance(fact, int | float):
        return str(fact)
    return f"{fact:,}" if isinstance(fact, int) else f"{fact:.4g}"


FAILED = 3
"""Exit code of --fail-on: 1 and 2 are those of bad data and bad options."""
FAIL_ON = ("leak", "look")


@bundle
class SplitAuditOptions:
    """What is checked, and what follows from it.

    The split
    ---------
    audit
        Look for leaks and drift, and print a light for each check. RATINGS may then be a folder of
        a saved split.
    feature
        --audit: a column of items or users that systems learn from: look whether it was computed
        with test rows. Repeatable.
    fail_on
        --audit: exit with code 3 if a light is red (leak), or red or yellow (look).
    """

    audit: bool = False
    feature: list[str] | None = None
    fail_on: str | None = None


@bundle
class SplitOutput:
    """Where the parts, or the diagnosis, go.

    Output
    ------
    output
        Output folder. With --audit it can be left out, or be a file for the diagnosis: .html, .md
        or .json.
    """

    output: Annotated[Path | None, Option(metavar="DIR")] = None
    force: bool = False
    format: PlainFormat = "text"
    quiet: bool = False

    @property
    def folder(self) -> Path | None:
        """The folder that gets the parts of the split; None where there is none."""
        return None if self.is_file else self.output

    @property
    def is_file(self) -> bool:
        """Whether the output is a file for the diagnosis."""
        path = self.output
        return path is not None and path.suffix.lower() in files.REPORTS and not path.is_dir()


def check_options(options: SplitAuditOptions, output: SplitOutput) -> None:
    """Refuse options that do not go together."""
    if options.fail_on is not None:
        choose("fail-on", options.fail_on, FAIL_ON)
    if options.audit:
        return
    if output.output is None:
        raise SettingError("Missing option '--output' / '-o': the folder that gets the parts")
    files.check_folder_name(output.output)
    if output.format != "text":
        raise SettingError(f"--format {output.format} is for --audit: give that too")
    for name, value in (("--feature", options.feature), ("--fail-on", options.fail_on)):
        if value:
            raise SettingError(f"{name} is for --audit: give that too, or leave {name} out")


def audit_saved(source: str, options: SplitAuditOptions, output: SplitOutput) -> None:
    """Diagnose the splits of a folder."""
    from unskew.splits.diagnosis.diagnosis import diagnose
    from unskew.splits.saved import load_splits

    if output.folder is not None:
        raise SettingError(
            f"--output {output.folder}: {source} is split already; give a file for the diagnosis, "
            "such as leaks.html"
        )
    deliver(diagnose(load_splits(source)), options, output)


def deliver(diagnosis: Diagnosis, options: SplitAuditOptions, output: SplitOutput) -> None:
    """Print a diagnosis, write its file where one is named, and end with its exit code."""
    text = in_option_words(str(diagnosis))
    outputs.print_plain(output.format, diagnosis.to_dict(), [text])
    if output.is_file and output.output is not None:
        diagnosis.save(output.output)
    if output.output is not None and not output.quiet:
        outputs.note(f"written to {output.output}")
    bad = diagnosis.leaks
    if options.fail_on == "look":
        bad = (*bad, *diagnosis.of_light("look"))
    if options.fail_on is not None and bad:
        raise typer.Exit(FAILED)
