"""`Convention`: every choice that turns ranked lists and judgments into one number.

Two libraries that print the same name for different numbers differ in one of these choices (an
*axis*). The default of each axis is what `evaluate` does.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import polars as pl

from unskew.checks import checked, choose
from unskew.data.relevance import DEFAULT_GAIN
from unskew.errors import SettingError, unknown_name

METRICS = (
    "P",
    "Recall",
    "F1",
    "AP",
    "MeanP",
    "nDCG",
    "DCG",
    "RR",
    "ARHR",
    "NCRR",
    "HitRate",
    "Hits",
    "Rprec",
)
"""Metrics whose conventions are known here; all others of a library are metrics of ours."""
GRADED = ("nDCG", "DCG")
COMMON = ("nDCG", "Recall", "P", "AP", "RR", "HitRate")
"""Metrics that papers print most."""
OTHER_NAMES = ("MAP", "MRR", "HR")
"""Usual names of some of them."""
WITHOUT_CUTOFF = ("Rprec",)
"""Metrics that set their cutoff by themselves."""
OF_MEANS = ("F1",)
"""Metrics that can be computed from means of others."""
NEAREST = {"MeanP": "AP", "ARHR": "RR", "NCRR": "RR", "Hits": "HitRate"}
"""By metric that unskew does not have: the nearest one that it has."""


@dataclass(frozen=True)
class Axis:
    """A choice: what it decides, its options in words, and the metrics that it can change.

    Examples
    --------
    `us.conventions.AXES` has every choice by its name.

    >>> import unskew as us
    >>> axis = us.conventions.AXES["undefined"]
    >>> axis.question, axis.default
    ('What does an averaged user count who has no relevant item?', 'zero')
    >>> axis.options
    {'zero': '0', 'skip': 'nothing: the user is left out', 'one': '1'}
    """

    question: str
    options: Mapping[str, str]
    """By name, in words; the first is what `evaluate` does unless told otherwise."""
    metrics: tuple[str, ...] = METRICS

    @property
    def default(self) -> str:
        """The option that `evaluate` takes."""
        return next(iter(self.options))


AXES: dict[str, Axis] = {
    name: Axis(axis["question"], axis["options"], tuple(axis.get("metrics", METRICS)))
    for name, axis in tomllib.loads(
        Path(__file__).with_name("axes.toml").read_text(encoding="utf-8")
    ).items()
}
"""Every choice, in the order in which a path from one convention to another takes its steps."""


@dataclass(frozen=True)
class Convention:
    """One option for every axis, of one metric at one cutoff.

    Examples
    --------
    >>> import unskew as us
    >>> ours = us.conventions.Convention("nDCG", 10)
    >>> ours.differences(ours.changed(gain="binary", users="both"))
    {'gain': ('liked-only', 'binary'), 'users': ('with-test', 'both')}
    """

    metric: str
    k: int | None = None
    judgments: str = "all"
    relevant: str = "liked"
    gain: str = DEFAULT_GAIN
    discount: str = "log"
    ideal: str = "cut"
    per: str = "usual"
    cut: str = "k"
    users: str = "with-test"
    undefined: str = "zero"
    average: str = "users"
    ties: str = "given"
    duplicates: str = "first"
    training: str = "keep"
    catalogue: str = "keep"
    unjudged: str = "keep"
    digits: str = "none"

    def __post_init__(self) -> None:
        options = self.__dict__
        for name, axis in AXES.items():
            if options[name] not in axis.options:
                choose(name, options[name], axis.options)

    @property
    def choices(self) -> dict[str, str]:
        """The option of every axis."""
        return {name: getattr(self, name) for name in AXES}

    def changed(self, **options: str) -> Convention:
        """Return the convention with other options."""
        return replace(self, **options)  # type: ignore[arg-type]

    def differences(self, other: Convention) -> dict[str, tuple[str, str]]:
        """Return the axes that differ and change this metric: option here, option there."""
        return {
            name: (getattr(self, name), getattr(other, name))
            for name in relevant_axes(self.metric)
            if getattr(self, name) != getattr(other, name)
        }


@cache
def relevant_axes(metric: str) -> tuple[str, ...]:
    """Return the axes that can change a metric."""
    return tuple(name for name, axis in AXES.items() if metric in axis.metrics)


def in_words(options: Mapping[str, str]) -> str:
    """Say options in words: `gain: 1 if relevant; users: those with a list`."""
    return "; ".join(f"{name}: {AXES[name].options[option]}" for name, option in options.items())


FOLDER = Path(__file__).parent / "libraries"


@dataclass(frozen=True)
class LibraryMetric:
    """A metric of a library: its name there, and the convention that gives its numbers.

    Examples
    --------
    AP by trec_eval differs from ours: it reads the whole part of a rating, averages users with a
    list and judgments, and orders equal scores by descending id.

    >>> import unskew as us
    >>> row, k = next(us.conventions.library("trec_eval").named("map_cut_10"))
    >>> row.family(k)
    'AP@10'
    >>> us.conventions.Convention("AP", 10).differences(row.convention(k))
    {'relevant': ('liked', 'whole'), 'users': ('with-test', 'both'), 'ties': ('given', 'trec')}
    """

    library: str
    """The key of its library."""
    name: str
    """As the library writes it; `{k}` stands for the cutoff."""
    metric: str = ""
    """A metric with conventions, or empty."""
    ours: str = ""
    """Instead of it: the metric of ours that it equals."""
    options: tuple[tuple[str, str], ...] = ()
    """Options of the convention that differ from our defaults."""
    option: str = ""
    """The option of the library; empty: what it does by default."""
    given: str = ""
    """The form in which the library is given judgments, where there are several."""
    since: str = ""
    until: str = ""
    note: str = ""

    @property
    def has_cutoff(self) -> bool:
        """Whether its name holds a cutoff."""
        return "{k}" in self.name

    def holds_in(self, version: str) -> bool:
        """Tell whether it is so in a version of its library."""
        number = _numbers(version)
        return (not self.since or _numbers(self.since) <= number) and (
            not self.until or number <= _numbers(self.until)
        )

    def label(self, k: int | None, *, full: bool = False) -> str:
        """Return its name at a cutoff; in `full` with the option of the library."""
        name = self.name.replace("{k}", str(k))
        return f"{name} [{self.option}]" if full and self.option else name

    def cutoff_of(self, text: str) -> int | None:
        """Return the cutoff in a name that the library would print; None where it is another."""
        if not self.has_cutoff:
            return 0 if text.lower() == self.name.lower() else None
        pattern = re.escape(self.name).replace(re.escape("{k}"), r"(\d+)")
        match = re.fullmatch(pattern, text, re.IGNORECASE)
        return None if match is None else int(match[1])

    def convention(self, k: int | None) -> Convention:
        """Return its convention at a cutoff; of a metric of ours, that of precision."""
        return Convention(self.metric or "P", k if self.has_cutoff else None, **dict(self.options))

    def family(self, k: int | None) -> str:
        """Return the metric of ours that it stands for: `nDCG@10`, or the one it equals."""
        if self.ours:
            return self.ours.replace("{k}", str(k))
        return f"{self.metric}@{k}" if self.has_cutoff else self.metric


@dataclass(frozen=True)
class Missing:
    """A metric of a library that cannot be computed here, and the reason."""

    name: str
    why: str
    option: str = ""
    given: str = ""

    def covers(self, name: str, k: int | None, option: str = "", form: str = "") -> bool:
        """Tell whether a value of the library is of this metric."""
        names = {self.name, self.name.replace("{k}", str(k))}
        return (
            name in names and self.option in ("", option) and (not self.given or self.given == form)
        )


@dataclass(frozen=True)
class Library:
    """A library: what is known of its metrics, and from where.

    Examples
    --------
    >>> import unskew as us
    >>> library = us.conventions.library("trec_eval")
    >>> [row.label(10) for row in library.metrics[:4]]
    ['P_10', 'recall_10', 'relative_P_10', 'map_cut_10']
    """

    key: str
    name: str
    versions: tuple[str, ...]
    evidence: str
    """`measured`: its own code was run; `read from its source`: it was not."""
    source: str
    given: str
    """What it is fed with, in words."""
    metrics: tuple[LibraryMetric, ...]
    missing: tuple[Missing, ...] = ()
    prints: int | None = None
    """How many digits it prints, where it rounds."""
    tolerance: float = 1e-9
    """How near to its values ours are: less near where it computes with 32 bits."""

    def named(self, name: str) -> Iterator[tuple[LibraryMetric, int | None]]:
        """Return the rows of a name that it would print, with the cutoff in it."""
        for row in self.metrics:
            cutoff = row.cutoff_of(name)
            if cutoff is not None:
                yield row, cutoff or None

    def at(self, version: str) -> Library:
        """Return what is known of one version.

        Examples
        --------
        >>> import unskew as us
        >>> lenskit = us.conventions.library("lenskit")
        >>> lenskit.versions, lenskit.at(lenskit.versions[-1]).versions
        (('2025.8.1', '2025.1.1'), ('2025.1.1',))
        """
        rows = tuple(row for row in self.metrics if row.holds_in(version))
        return replace(self, metrics=rows, versions=(version,))

    @property
    def newest(self) -> Library:
        """What is known of the newest version that was looked at."""
        rows = tuple(row for row in self.metrics if row.holds_in(self.versions[0]))
        return replace(self, metrics=rows)

    def __str__(self) -> str:
        return f"{self.name} {', '.join(self.versions)} ({self.evidence})"


@cache
def all_libraries() -> dict[str, Library]:
    """Return every library by its key, in the order of their names."""
    libraries = [_library(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {
        library.key: library
        for library in sorted(libraries, key=lambda library: library.name.lower())
    }


def _library(path: Path) -> Library:
    """Read a file; a test checks that it names metrics, axes and options that there are."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    defaults, missing = content.pop("defaults"), content.pop("missing", ())
    metrics = [_metric(content["key"], row, defaults) for row in content.pop("metrics")]
    return Library(
        versions=tuple(content.pop("versions")),
        metrics=tuple(metrics),
        missing=tuple(Missing(**row) for row in missing),
        **content,
    )


def _metric(library: str, row: Mapping[str, str], defaults: Mapping[str, str]) -> LibraryMetric:
    """Read a row: facts of the metric, and options of the axes that can change it."""
    about = {name: text for name, text in row.items() if name not in AXES}
    allowed = relevant_axes(row["metric"]) if "metric" in row else tuple(AXES)
    options = {**defaults, **row}
    chosen = sorted((name, options[name]) for name in options if name in allowed)
    return LibraryMetric(library, options=tuple(chosen), **about)


@checked
def library(name: str) -> Library:
    """Return a library by its key or name, also as `name==version`.

    Parameters
    ----------
    name
        Such as ``"trec_eval"`` or ``"ranx==0.3.21"``; `known_libraries` has all of them.

    Examples
    --------
    >>> import unskew as us
    >>> us.conventions.library("trec_eval").evidence
    'measured'
    """
    label, _, version = name.partition("==")
    libraries = all_libraries()
    names = {
        _plain(text): entry for entry in libraries.values() for text in (entry.key, entry.name)
    }
    result = names.get(_plain(label))
    if result is None:
        raise unknown_name("library", label, libraries)
    if not version:
        return result
    known_versions = {text.split()[-1] for text in result.versions}
    known_versions |= {text for row in result.metrics for text in (row.since, row.until) if text}
    if version not in known_versions:
        versions = ", ".join(sorted(known_versions, key=_numbers))
        raise SettingError(f"{result.name} {version} is not known; versions that are: {versions}")
    return result.at(version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, for comparison."""
    return tuple(map(int, re.findall(r"\d+", version.split()[-1])))


def _plain(name: str) -> str:
    return re.sub(r"[\s_.-]+", "", name.lower())


def known_libraries() -> pl.DataFrame:
    """Return a table of the libraries whose conventions are known.

    Examples
    --------
    >>> import unskew as us
    >>> us.conventions.known_libraries().columns
    ['key', 'name', 'versions', 'evidence', 'metrics']
    """
    return pl.DataFrame(
        [
            (
                library.key,
                library.name,
                ", ".join(library.versions),
                library.evidence,
                len({row.name for row in library.metrics}),
            )
            for library in all_libraries().values()
        ],
        ("key", "name", "versions", "evidence", "metrics"),
        orient="row",
    )
