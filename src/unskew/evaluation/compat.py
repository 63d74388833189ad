"""`evaluate(…, compat=…)`: the numbers that another library would print, under its names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from unskew.arrays import F64, frozen
from unskew.conventions.formulas import Fraction
from unskew.conventions.laying import Laid, ListRule
from unskew.conventions.libraries import (
    AXES,
    NEAREST,
    WITHOUT_CUTOFF,
    Convention,
    Library,
    LibraryMetric,
    in_words,
    library,
)
from unskew.conventions.values import ConventionValues
from unskew.data.ratings import Ratings
from unskew.data.relevance import DEFAULT_GAIN, Relevance
from unskew.engine.system import versions
from unskew.errors import SettingError, UnskewError, unknown_name
from unskew.evaluation.scores import Scores, System
from unskew.evaluation.scoring import prepare, score
from unskew.judging.judged import Judged
from unskew.judging.shape import Numbering
from unskew.metrics.names import Metric, parse

MEMORY = 512 << 20


def values_of_row(values: ConventionValues, row: LibraryMetric, k: int | None) -> F64:
    """Return the value of every user that the library averages; NaN for all others."""
    convention = row.convention(k)
    if not row.ours:
        return values.of_users(convention)
    ours = _values_of_ours(values, convention, parse(row.family(k)))
    missing = np.isnan(ours)
    return values.of_users(convention, Fraction(ours, np.ones(ours.size), missing, missing))


def mean_of_row(values: ConventionValues, row: LibraryMetric, k: int | None) -> float:
    """Return the mean that the library would print."""
    if not row.ours:
        return values.mean(row.convention(k))
    of_users = values_of_row(values, row, k)
    finite = of_users[~np.isnan(of_users)]
    return float(finite.sum() / finite.size) if finite.size else float("nan")


def _values_of_ours(values: ConventionValues, convention: Convention, metric: Metric) -> F64:
    """Compute a metric of ours, once, on judgments and lists as the convention takes them."""
    rule, laid = ListRule.of(convention), values.laid

    def compute() -> F64:
        if metric.definition.of == "run":
            raise SettingError(f"{metric} describes a whole run: no library's convention is known")
        tests, relevance = _judgments(values, convention)
        train, runs = laid.numbering.train, {values.system: laid.run(values.system, rule)}
        numbering = Numbering.of(tests, train, runs, None)
        judged = Judged.over(numbering, relevance, tests=tests, train=train, systems=runs)
        by_label = {str(metric): metric}
        judged = prepare(judged, by_label)
        result = score(judged.basis, judged.matched, by_label, threads=1, budget=MEMORY)
        of_users: F64 = result[values.system].values[0]
        return of_users

    key = (metric, rule, convention.judgments, convention.relevant, convention.gain)
    return values.memory.once(("ours", *key), compute)


def _judgments(values: ConventionValues, convention: Convention) -> tuple[Ratings, Relevance]:
    """Return the judgments that the library sees, numbered by what they are worth."""
    laid = values.laid
    seen, relevant = values.seen(convention)
    if convention.judgments == "all":
        seen = seen | laid.pooled  # no judgments, but they say what is in the pool
    judgments = laid.judgments
    loss = np.where(relevant, 0.0, laid.relevance.losses(judgments.value))
    columns = (relevant.astype(np.float64), values.gain(convention), loss)
    rows = np.stack([column[seen] for column in columns], axis=1)
    kinds, code = np.unique(rows, axis=0, return_inverse=True)
    tests = Ratings(
        judgments.users,
        judgments.items,
        frozen(judgments.user[seen]),
        frozen(judgments.item[seen]),
        frozen(code.ravel().astype(np.float64)),
        tags={name: tag.filter(pl.Series(seen)) for name, tag in judgments.tags.items()},
    )
    liked = float(np.count_nonzero(kinds[:, 0] == 0))
    gains, losses = (
        {float(kind): worth for kind, worth in enumerate(kinds[:, column].tolist())}
        for column in (1, 2)
    )
    return tests, Relevance(liked=liked, gain=gains, loss=losses)


Chosen = tuple[LibraryMetric, int | None]
"""A metric of a library, and the cutoff."""
COUNTERPARTS = ("P@10", "Recall@10", "nDCG@10", "RR@10", "AP@10", "HitRate@10")
"""The metrics of ours whose counterparts are computed where none are named."""
SETTINGS = ("per", "ideal", "discount")
"""Settings in the names of our metrics that are axes of a convention."""


USUAL = {"gain": DEFAULT_GAIN, "users": "with-test", "undefined": "zero"}
"""Options that a library decides about, where nothing is given for them; None for all others."""


def check_free(compat: str, **arguments: object) -> None:
    """Refuse options that the conventions of a library replace."""
    for name, value in arguments.items():
        if value is not None and not (isinstance(value, str) and value == USUAL.get(name)):
            raise SettingError(
                f"compat={compat!r} computes what that library does, which decides about {name} "
                f"too: leave {name}=… out"
            )


def evaluate_as(compat: str, laid: Laid, metrics: object) -> Scores:
    """Return what a library would print for each system.

    Parameters
    ----------
    compat
        The library.
    laid
        Judgments and lists.
    metrics
        Names, ours or the library's; None for its counterparts of our usual ones.
    """
    source = library(compat).newest
    chosen = _counterparts(source) if metrics is None else choose_metrics(source, metrics)
    unique: dict[str, Chosen] = {}
    for row, k in chosen:
        unique.setdefault(row.label(k, full=True), (row, k))
    systems = {name: _system(laid, name, unique) for name in laid.systems}
    title, rule = f"{source.name} {', '.join(source.versions)}", laid.relevance
    border = ">=" if rule.liked is not None else ">"
    return Scores(
        tuple(label for label, (row, _) in unique.items() if not _is_whole(row)),
        systems,
        laid.users,
        _lists(laid),
        users="all",
        undefined="skip",
        order=tuple(unique),
        make_card=lambda: _card(source, unique, laid),
        notes=(*laid.notes, *_notes(source, list(unique.values()), laid)),
        relevance=f"liked: rating {border} {rule.threshold:g}",
        library=title,
        meanings={label: meaning(row, k) for label, (row, k) in unique.items()},
    )


def _is_whole(row: LibraryMetric) -> bool:
    return dict(row.options).get("average") == "of-means"


def _system(laid: Laid, name: str, chosen: Mapping[str, Chosen]) -> System:
    """Compute one system: values of users, and means that are no means of users."""
    conventions = ConventionValues(laid, name)
    aggregates = {
        label: mean_of_row(conventions, *pair)
        for label, pair in chosen.items()
        if _is_whole(pair[0])
    }
    per_user = {label: pair for label, pair in chosen.items() if label not in aggregates}
    values = np.empty((len(per_user), len(laid.users)))
    den: dict[int, F64] = {}
    for index, (row, k) in enumerate(per_user.values()):
        values[index] = values_of_row(conventions, row, k)
        if dict(row.options).get("average") == "pooled":
            fraction = conventions.fraction(row.convention(k))
            defined = ~np.isnan(values[index])
            den[index] = np.where(defined, fraction.bottom, 0.0)
            values[index] = np.where(defined, fraction.top, np.nan)
    depth = np.zeros(len(laid.users), np.int64)
    run = laid.systems[name].run
    depth[laid.numbering.runs[name][0]] = run.depth
    return System(values, den, depth, aggregates)


def _lists(laid: Laid) -> pl.DataFrame:
    """Return what is known of each user, as `Scores.lists` holds it."""
    judgments, users = laid.judgments, len(laid.users)
    liked = laid.is_relevant("liked")
    columns = {
        "user": pl.Series(np.arange(users, dtype=np.int32)),
        "liked": pl.Series(np.bincount(judgments.user[liked], minlength=users)),
        "disliked": pl.Series(np.bincount(judgments.user[~liked & ~laid.pooled], minlength=users)),
        "test": pl.Series(np.bincount(judgments.user, minlength=users)),
    }
    train = laid.numbering.train
    if train is not None:
        columns["train"] = pl.Series(np.bincount(train.user, minlength=users))
    return pl.DataFrame(columns)


def _card(source: Library, chosen: Mapping[str, Chosen], laid: Laid) -> dict[str, object]:
    return {
        "library": {"key": source.key, "versions": list(source.versions)},
        "metrics": {label: row.convention(k).choices for label, (row, k) in chosen.items()},
        "judgments": {"fingerprint": laid.judgments.fingerprint, "rows": len(laid.judgments)},
        "systems": list(laid.systems),
        "versions": versions(),
    }


# Which metrics


def meaning(row: LibraryMetric, k: int | None) -> str:
    """Return the metric of ours that a metric of a library is nearest to."""
    if row.ours:
        return row.family(k)
    name = NEAREST.get(row.metric, row.metric)
    return f"{name}@{k}" if row.has_cutoff and name not in WITHOUT_CUTOFF else name


def choose_metrics(source: Library, metrics: object) -> list[Chosen]:
    """Return the library's metrics of some names, ours or its own."""
    names = [metrics] if isinstance(metrics, str | Metric) else list(metrics)  # type: ignore[call-overload]
    if not names:
        raise SettingError("no metrics are named; give for example metrics=['P@10', 'nDCG@10']")
    return [choose_metric(source, name) for name in names]


def choose_metric(source: Library, name: str | Metric) -> Chosen:
    """Return the library's metric of a name, ours or its own; say why there is none."""
    text = str(name)
    rows = _by_name(source, text) or _by_meaning(source, text)
    if rows:
        return rows[0]
    for gap in source.missing:
        if LibraryMetric("", gap.name).cutoff_of(text) is not None:
            raise SettingError(f"{source.name}'s {text} cannot be computed here: {gap.why}")
    raise unknown_name(
        f"metric of {source.name}", text, dict.fromkeys(row.name for row in source.metrics)
    )


def _by_name(source: Library, text: str) -> list[Chosen]:
    """Return rows by the library's own name, such as `ndcg_cut_10` or `nDCG@5 [judged_only]`."""
    name, _, option = text.partition(" [")
    option = option.removesuffix("]")
    named = list(source.named(name))
    matching = [(row, k) for row, k in named if row.option == option]
    return sorted(matching if option else named, key=lambda pair: _preference(pair[0]))


def _by_meaning(source: Library, text: str) -> list[Chosen]:
    """Return rows that stand for a metric of ours: what the library does by default first."""
    try:
        metric = parse(text)
    except UnskewError:
        return []
    rows = [
        (row, metric.cutoff)
        for row in source.metrics
        if not row.ours
        and row.metric == metric.name
        and row.has_cutoff == (metric.cutoff is not None)
        if not metric.anti and _has_settings(row, metric)
    ]
    rows += [
        (row, k)
        for row in source.metrics
        for k in [metric.cutoff]
        if row.ours and _equals(row.family(k), metric)
    ]
    return sorted(rows, key=lambda pair: _preference(pair[0]))


def _preference(row: LibraryMetric) -> tuple[bool, bool]:
    """Order rows: first those that take our threshold, of these what the library does unasked."""
    takes_threshold = dict(row.options).get("relevant", "liked") in ("liked", "above", "whole")
    return not takes_threshold, row.option != ""


def _equals(text: str, metric: Metric) -> bool:
    try:
        return parse(text) == metric
    except UnskewError:
        return False


def _has_settings(row: LibraryMetric, metric: Metric) -> bool:
    """Tell whether a row has the settings that a metric of ours is named with."""
    options = row.convention(metric.cutoff).choices
    settings = {name: str(value) for name, value in metric.settings if name in SETTINGS}
    is_same = all(options[name] == value for name, value in settings.items())
    return is_same and metric.condensed == (options["unjudged"] == "remove")


def _counterparts(source: Library) -> list[Chosen]:
    """Return what the library has of our usual metrics."""
    rows = [_by_meaning(source, name)[:1] for name in COUNTERPARTS]
    chosen = [pair for pairs in rows for pair in pairs]
    if not chosen:
        names = dict.fromkeys(row.name for row in source.metrics)
        raise SettingError(
            f"{source.name} has none of our usual metrics; name some of its own: {', '.join(names)}"
        )
    return chosen


# What is said about it


def _notes(source: Library, chosen: Sequence[Chosen], laid: Laid) -> list[str]:
    """Say in one line what differs from our defaults, and what was settled before."""
    notes = [f"{source} differs from our defaults in: {differences(chosen)}"]
    handed = dict.fromkeys(row.given for row, _ in chosen if row.given)
    if handed:
        notes.append(f"{source.name} is given: {'; '.join(handed)}")
    notes += [f"{row.label(k, full=True)}: {row.note}" for row, k in chosen if row.note]
    rules = {dict(row.options).get("ties", "given") for row, _ in chosen} - {"given"}
    unsettled = [n for n, lists in laid.systems.items() if lists.run.score is None]
    if rules and unsettled:
        notes.append(
            f"{', '.join(unsettled)}: the lists have ranks and no scores, so that no rule about "
            "equal scores applies"
        )
    return notes


def differences(chosen: Sequence[Chosen]) -> str:
    """Say what differs from our defaults: what all metrics share, then what each has besides."""
    changed = [_changes(row, k) for row, k in chosen]
    shared = {
        name: option
        for name, option in (changed[0] if changed else {}).items()
        if all(options.get(name) == option for options in changed)
    }
    parts = [in_words(shared)] if shared else []
    for (row, k), options in zip(chosen, changed, strict=True):
        remainder = {name: option for name, option in options.items() if name not in shared}
        if remainder:
            parts.append(f"{row.label(k, full=True)}: {in_words(remainder)}")
    return "; ".join(parts) or "nothing"


def _changes(row: LibraryMetric, k: int | None) -> dict[str, str]:
    """Return the options of a metric that are not ours, in the order of the axes."""
    convention, usual = row.convention(k), Convention("P")
    options = convention.choices
    names = {name for name, _ in row.options}
    return {
        name: options[name]
        for name in AXES
        if name in names and options[name] != getattr(usual, name)
    }
