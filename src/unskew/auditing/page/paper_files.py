"""`save_paper`: what a paper needs of an audit, as files."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.auditing.designs import SOURCES
from unskew.auditing.page.checklist import checklist_of, checklist_table, status_counts
from unskew.auditing.statements.statement import names
from unskew.checks import checked
from unskew.data.relevance import Relevance
from unskew.engine.files import replacing_folder
from unskew.engine.progress import Progress, Steps, notebook_progress
from unskew.errors import SettingError
from unskew.metrics.names import Metric, parse
from unskew.report.estimates import Estimates
from unskew.report.figure_width import ONE_COLUMN
from unskew.report.text import counted, escape_latex, one_line
from unskew.stats.compare.paper_table import AVERAGED, table_of
from unskew.stats.corrections import IN_WORDS
from unskew.stats.pairing import paired
from unskew.stats.tests.p_values import TESTS

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements
    from unskew.report.charts import Figure


PAPERS = {
    entry[entry.index("{") + 1 : entry.index(",")]: entry
    for entry in Path(__file__).with_name("papers.bib").read_text("utf-8").strip().split("\n\n")
}
"""By key: an entry of BibTeX."""


def used(audit: Measurements) -> list[str]:
    """Return the keys of the papers whose methods an audit used."""
    keys = {SOURCES[name] for name in audit.designs if name in SOURCES}
    keys |= {"castells2018"} if audit.null is not None else set()
    keys |= {"mena2021"} if audit.margins is not None or audit.bias is not None else set()
    keys |= {"valcarce2018"} if audit.power is not None or audit.sparsity is not None else set()
    keys |= {"yang2018"} if audit.estimates is not None else set()
    keys |= {"smucker2007"} if audit.comparison is not None else set()
    keys |= {"kendall1938"} if audit.agreement is not None else set()
    return [key for key in PAPERS if key in keys]


def bibtex(audit: Measurements) -> str:
    """Return the citations of the methods that an audit used."""
    return "\n\n".join(PAPERS[key] for key in used(audit))


_CITATION = re.compile(r"\s*\[@([\w-]+)\]")
_PLACEHOLDER = re.compile(r"\[state [^\]]+\]")
GAIN_WORDS = {
    "rating": "its rating, also where it is disliked",
    "liked-only": "its rating if it is liked, else 0",
    "binary": "1 if it is liked, else 0",
    "levels": "its rating minus {low:g} if it is liked, else 0",
    "exponential": "2^(rating - {low:g}) - 1 if it is liked, else 0",
    "burges": "2^rating - 1, also where it is disliked",
    "integer": "the whole part of its rating, also where it is disliked",
}
LOSS_WORDS = {"levels": "{high:g} minus its rating", "binary": "1"}
FIGURE = """\
\\begin{{figure}}
\\centering
\\includegraphics[width=\\columnwidth]{{figures/{name}.pdf}}
\\caption{{{title}}}
\\label{{fig:{name}}}
\\end{{figure}}"""
"""By name and title: what includes a figure in LaTeX."""
MOST_METRICS = 5
"""The most metrics of the table of a paper."""


@dataclass(frozen=True)
class Methods:
    """The methods of a paper, a paragraph per topic. Made by `methods_of`.

    What the run cannot know stands in brackets, such as `[state how …]`: `placeholders` lists it.
    """

    paragraphs: Mapping[str, str]
    """By topic: its text, in which `[@key]` is a citation."""
    keys: tuple[str, ...]
    """Of all papers whose methods were used."""

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What the author has to state."""
        texts = self.paragraphs.values()
        return tuple(place for text in texts for place in _PLACEHOLDER.findall(text))

    def to_markdown(self) -> str:
        """Return the paragraphs; citations are those of pandoc, `[@key]`."""
        return "\n\n".join(
            f"**{topic}.** {_markdown(text)}" for topic, text in self.paragraphs.items()
        )

    def to_latex(self) -> str:
        """Return the paragraphs, with `cite` for `references.bib`."""
        return "\n\n".join(
            f"\\textbf{{{escape_latex(topic)}.}} {_latex(text)}"
            for topic, text in self.paragraphs.items()
        )

    def bibtex(self) -> str:
        """Return the papers that the paragraphs cite, and others whose methods were used."""
        return "\n\n".join(PAPERS[key] for key in self.keys)

    def __str__(self) -> str:
        paragraphs = (f"{topic}. {text}" for topic, text in self.paragraphs.items())
        return "\n\n".join(_CITATION.sub(" [\\1]", text) for text in paragraphs)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()


def _markdown(text: str) -> str:
    pieces = re.split(r"(\[@[\w-]+\])", text)
    return "".join(piece if index % 2 else _spaced(piece) for index, piece in enumerate(pieces))


def _spaced(text: str) -> str:
    """Escape a piece of text; `one_line` would cut the spaces at its ends."""
    start = " " if text[:1] == " " else ""
    end = " " if text[-1:] == " " and text.strip() else ""
    return f"{start}{one_line(text)}{end}"


def _latex(text: str) -> str:
    pieces = _CITATION.split(text)
    return "".join(
        f"~\\cite{{{piece}}}" if index % 2 else escape_latex(piece)
        for index, piece in enumerate(pieces)
    )


@checked
def methods_of(audit: object) -> Methods:
    """Return the methods of a paper from what an audit did: only what the run knows.

    Data, relevance, split, target items, metrics with their definitions, tuning, tests, seeds and
    versions. What was done before the run, or is not known for given lists, is left to the author
    as `[state how …]`.

    Parameters
    ----------
    audit
        What `us.audit` gave.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> result = us.audit(shop, "quick", algorithms=["random", "popularity"],
    ...                   designs=["all-items"], repeats=2, permutations=200)
    >>> us.auditing.methods_of(result).paragraphs["Relevance"]
    'A rating of at least 4 counts as liked.'
    """
    from unskew.auditing.measurements import Measurements

    if not isinstance(audit, Measurements):
        raise SettingError(
            f"methods are written from an audit: give what us.audit(…) returned, not "
            f"{type(audit).__name__}"
        )
    parts = {
        "Data": _data(audit),
        "Relevance": _relevance(audit.relevance, audit.core.implicit),
        "Split and target items": _split(audit),
        "Systems and settings": _systems(audit),
        "Metrics": _metrics(audit),
        "Tests": _tests(audit),
        "Reproduction": _reproduction(audit),
    }
    paragraphs = {topic: " ".join(lines) for topic, lines in parts.items()}
    return Methods(paragraphs=paragraphs, keys=tuple(used(audit)))


def _data(audit: Measurements) -> Iterator[str]:
    if audit.data is not None:
        part = audit.data.part()
        name = "[state the name of the data]" if audit.evidence.is_given else audit.name
        yield (
            f"The data ({name}) hold {counted(part['ratings'], 'rating')} of "
            f"{counted(part['items'], 'item')} by {counted(part['users'], 'user')}."
        )
        if part["lowest"] < part["highest"]:
            yield f"Values range from {part['lowest']:g} to {part['highest']:g}."
    yield "[state how the data were collected and filtered before the experiment]"


def _relevance(rule: Relevance, implicit: bool) -> list[str]:
    if implicit:
        return [
            "The data hold no dislike: an item counts as liked by a user where the pair occurs, "
            "and all others count as not liked."
        ]
    edge = "of at least" if rule.liked is not None else "above"
    return [f"A rating {edge} {rule.threshold:g} counts as liked."]


def _split(audit: Measurements) -> Iterator[str]:
    common, about, is_given = audit.common, audit.designs[audit.common], audit.evidence.is_given
    if is_given:
        yield "[state how the ratings were split into training and test ratings]"
        yield "[state which items the systems ranked for each user]"
        yield f"The lists are evaluated as follows ({common}): {about}."
    else:
        splits = counted(len(audit.scores[common]), "split")
        yield f"Main design ({common}, {splits}): {about}{_cite(common)}."
    judged = audit.card.get("judged_users")
    if isinstance(judged, Mapping):
        yield (
            f"Of {judged['with_ratings']:,} users, {judged['judged']:,} were judged, drawn at "
            "random and the same ones on every split; systems were trained on the training ratings "
            "of all users."
        )
    if audit.splits:
        first = next(iter(audit.splits.values())).facts
        where = "The test part" if is_given else "On its first split, the test part"
        yield (
            f"{where} holds {counted(first['test'], 'rating')} of "
            f"{counted(first['test_users'], 'user')}, the training part "
            f"{counted(first['train'], 'rating')}."
        )
        if first["before_any_train"] is not None:
            yield (
                f"{first['before_any_train']:.1%} of these test ratings are older than the newest "
                f"training rating."
            )
    designs = {name: text for name, text in audit.designs.items() if name != common}
    if designs:
        others = "; ".join(f"{name} ({text}){_cite(name)}" for name, text in designs.items())
        yield f"Other designs: {others}."


def _cite(design: str) -> str:
    return f" [@{SOURCES[design]}]" if design in SOURCES else ""


def _systems(audit: Measurements) -> Iterator[str]:
    core = audit.core
    if audit.evidence.is_given:
        yield "[state how each system was trained and tuned, and with which settings]"
        if audit.references:
            systems = _in_a_row(audit.references)
            yield f"For reference, we trained {systems} on the training ratings."
        return
    tuned = core.tuned[0] if core.tuned else {}
    if tuned:
        counts = sorted({choice.tried for choice in tuned.values()})
        budget = " to ".join(str(count) for count in (counts[:1] + counts[-1:])[: len(counts)])
        chosen = "; ".join(f"{name}: {choice.text}" for name, choice in tuned.items())
        yield (
            f"The settings of {_in_a_row(list(tuned))} were chosen by {core.metric} on a random "
            f"fifth of the training ratings of each split, out of {budget} settings per system; "
            f"the test ratings took no part. Chosen on the first split: {chosen}."
        )
    untuned = [system for system in audit.systems if system not in tuned]
    if untuned:
        verb = "was" if len(untuned) == 1 else "were"
        yield f"{_in_a_row(untuned)} {verb} not tuned."


def table_metrics(audit: Measurements) -> list[str]:
    """Return the metrics of the table of a paper: the main one, and others at its cutoff."""
    compared = audit.comparison
    tested = [audit.metric] if compared is None else compared.values_of("metric")
    cutoff = parse(audit.metric).cutoff
    same = [label for label in tested if parse(label).cutoff == cutoff and label != audit.metric]
    return [audit.metric, *same][:MOST_METRICS]


def _metrics(audit: Measurements) -> Iterator[str]:
    labels = table_metrics(audit)
    yield from (f"{label}: {_defined(parse(label), labels)}." for label in labels)
    yield from _gains([parse(label) for label in labels], audit.relevance)
    part = audit.scores[audit.common][0]
    undefined = "count as 0" if part.undefined == "zero" else "are left out"
    yield (
        "In the formulas, k is the cutoff, L the list cut at k, liked(L) the number of liked items "
        "in it, and R the number of liked test items of the user."
    )
    yield f"Means are over users {AVERAGED[part.users]}; undefined values {undefined}."
    is_apart = audit.core.has_cold and audit.common in audit.core.warm_designs
    if is_apart and not audit.evidence.is_given:
        yield "Users without a training rating are left out of comparisons."


def _defined(metric: Metric, labels: Sequence[str]) -> str:
    """Return what a metric is; an anti-metric by its twin, where that is defined too."""
    twin = next((label for label in labels if parse(label) == replace(metric, anti=False)), None)
    if not metric.anti or twin is None:
        return definition_words(metric)
    return f"as {twin}, with liked and disliked, gain and loss, exchanged"


def _gains(metrics: Sequence[Metric], rule: Relevance) -> list[str]:
    """Return what DCG is, with the gain of a rating, where a metric rests on it."""
    graded = [metric for metric in metrics if "discount" in metric.definition.params]
    if not graded or any("discount" in dict(metric.settings) for metric in graded):
        return []
    low = rule.threshold if rule.liked is None else rule.threshold - 1
    gain = GAIN_WORDS[rule.gain].format(low=low) if isinstance(rule.gain, str) else ""
    text = "DCG is the sum of gain / log2(rank + 1) over the list; the gain of a judged item is "
    lines = [f"{text}{gain or '[state the gain of each rating]'}, that of others 0."]
    if any(metric.anti for metric in graded):
        loss = LOSS_WORDS[rule.loss].format(high=low + 1) if isinstance(rule.loss, str) else ""
        lines.append(f"The loss of a disliked item is {loss or '[state the loss of each rating]'}.")
    return lines


def definition_words(metric: Metric) -> str:
    """Return what a metric is, from its definition: a sentence, the formula, where it has no value.

    Examples
    --------
    >>> from unskew.auditing.page.paper_files import definition_words
    >>> from unskew.metrics.names import parse
    >>> definition_words(parse("Recall@10"))
    'share of the liked items that are in the list, liked(L) / R; undefined where R = 0'
    """
    text = inspect.cleandoc(metric.definition.compute.__doc__ or "")
    first = text.partition("\n")[0].rstrip(".")
    words = f"{first[:1].lower()}{first[1:]}" if first[1:2].islower() else first
    formula, undefined = _labelled(text, "Formula"), _labelled(text, "Undefined")
    if formula:
        words += f", {formula if metric.settings else formula.partition(';')[0]}"
    if undefined and not undefined.startswith("never"):
        words += f"; undefined where {undefined}"
    if metric.settings:
        words += f" ({', '.join(f'{key}={value}' for key, value in metric.settings)})"
    if metric.anti:
        words += "; with liked and disliked, gain and loss, exchanged"
    return words.replace("`", "")


def _labelled(text: str, label: str) -> str:
    """Return what a docstring says after a label, up to its first sentence's end."""
    match = re.search(rf"^{label}: (.*?)(?:\.\s|\.$|\Z)", text, re.M | re.S)
    return " ".join(match[1].split()) if match else ""


def _tests(audit: Measurements) -> Iterator[str]:
    comparison = audit.comparison
    if comparison is None:
        yield "[state how differences were tested]"
        return
    card = comparison.card
    name = TESTS[card["test"]].partition(" (")[0]
    draws = f" with {card['permutations']:,} permutations" if card["permutations"] else ""
    correction = (
        "p-values were not corrected"
        if card["correction"] is None
        else f"p-values were corrected by {IN_WORDS[card['correction']]} over the pairs of "
        f"systems {'within each metric' if card['family'] == 'metric' else 'and metrics'}"
    )
    yield (
        f"Under the main design, systems were compared user by user by a paired {name}{draws} "
        f"[@smucker2007], at the level {card['alpha']:g}; {correction}."
    )
    yield "Intervals of means are 95 % t intervals over users."
    if len(audit.designs) > 1:
        yield (
            f"Differences of {audit.metric} have intervals that hold together for all pairs of "
            f"systems under a setup."
        )


def _reproduction(audit: Measurements) -> Iterator[str]:
    versions = audit.card.get("versions")
    yield f"The seed was {audit.card.get('seed')}."
    if len(audit.core.seeds) > 1:
        yield f"Seeds of the splits: {', '.join(map(str, audit.core.seeds))}."
    if isinstance(versions, dict):
        software = _in_a_row([f"{name} {version}" for name, version in versions.items()])
        yield f"Software: {software}."
    yield "[state the hardware, and where code and data are available]"


def _in_a_row(labels: Sequence[str]) -> str:
    return names(labels, len(labels))


@notebook_progress("paper")
@checked
def save_paper(
    audit: object,
    folder: str | os.PathLike[str],
    *,
    width: float = ONE_COLUMN,
    force: bool = False,
    progress: Progress | None = None,
) -> list[Path]:
    """Write what a paper needs of an audit; all of it or nothing. Return the files.

    `table.tex` and `table.md` (the common design: systems x metrics with marks of significance),
    `methods.tex` and `methods.md`, `references.bib`, `checklist.md`, and in `figures/` every figure
    of the report as SVG and PDF, with `figures.tex` to include them.

    Parameters
    ----------
    audit
        What `us.audit` gave.
    folder
        A new or empty one.
    width
        Of the figures in points: 241 is one column, 506 both columns of ACM's format.
    force
        Whether to write into a folder that is not empty: files of the same names are replaced.
    progress
        Called with (done, total) as figures are drawn.
    """
    methods, checklist = methods_of(audit), checklist_of(audit)
    check_paper_folder(folder, force=force)
    table = audit_table(audit)  # type: ignore[arg-type]
    texts = {
        "methods.md": methods.to_markdown(),
        "methods.tex": methods.to_latex(),
        "references.bib": methods.bibtex(),
        "checklist.md": f"{checklist_table(checklist).to_markdown()}\n\n{status_counts(checklist)}",
    }
    if table is not None:
        texts |= {"table.tex": table.to_latex(label="tab:results"), "table.md": table.to_markdown()}
    figures: dict[str, Figure] = dict(audit.document().figures())  # type: ignore[attr-defined]
    environments = [
        FIGURE.format(name=name, title=escape_latex(figure.title))
        for name, figure in figures.items()
    ]
    texts["figures.tex"] = "% needs \\usepackage{graphicx}\n" + "\n\n".join(environments)
    with replacing_folder(folder) as target:
        (target / "figures").mkdir()
        steps = Steps(len(figures), progress)
        steps.advance(0)
        for name, figure in figures.items():
            for ending in ("svg", "pdf"):
                figure.save(target / "figures" / f"{name}.{ending}", width=width)
            steps.advance()
        for name, text in texts.items():
            (target / name).write_text(text + "\n", encoding="utf-8")
        files = sorted(path.relative_to(target) for path in target.rglob("*") if path.is_file())
    return [Path(folder) / file for file in files]


def check_paper_folder(folder: str | os.PathLike[str], *, force: bool = False) -> None:
    """Refuse a folder that holds something, or a file in its place."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise SettingError(f"folder={str(folder)!r}: a file is there: name a folder")
    if path.is_dir() and any(path.iterdir()) and not force:
        raise SettingError(
            f"folder={str(folder)!r} is not empty: name a new folder, or give force=True to "
            f"replace files of the same names"
        )


def audit_table(audit: Measurements) -> Estimates | None:
    """Return the table of the common design; None where systems could not be compared.

    The tests are those of the audit, so that report and paper agree.
    """
    comparison = audit.comparison
    if comparison is None:
        return None
    pairing = paired(list(audit.scores[audit.common]))
    metrics = [label for label in table_metrics(audit) if label in comparison.values_of("metric")]
    chance = all(part.random() for part in audit.scores[audit.common])
    design = f"{audit.common}: {audit.designs[audit.common]}"
    return table_of(pairing, comparison, metrics, chance=chance, design=design)
