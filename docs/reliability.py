"""Write docs/reliability.md from the measured rates: docs/reliability.py [--check]."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from reliability.kinds import KINDS as WORLDS
from reliability.result import BARS, ENOUGH_SAYINGS, LEAST, NEVER, answer_lines, not_mute, verdict
from reliability.trial import DESIGNS, FRESH, METRIC
from unskew.auditing.designs import LEVELS
from unskew.auditing.page.statement_blocks import FILE, NOT_MEASURED, Rate, Rates, WorldRate, rates
from unskew.auditing.statements.first_screen import CATALOGUE
from unskew.auditing.statements.statement import CONDITIONS

HEAD = f"""# How often an audit is wrong

Written from `src/unskew/auditing/rates.json` by `docs/reliability.py`; do not edit.

Every sentence that an audit prints is a *statement* of a closed catalogue. `make reliability`
audits many simulated worlds (`benchmarks/reliability`), in which everything is known, counts which
statements are false there, and writes the rates that reports show. The package ships the rates,
not the worlds.

## What a false statement is

Each kind of statement claims something that the truth of a world can refute (the tables below say
what). It is false in a world where that does not hold: where the system that is said to lead is not
expected to score higher, where recommendations that are called better are not liked more.

- **Scores** are judged by what is expected of a design: systems trained anew on {FRESH} fresh data
  sets of the same world, which have other users and other coins.
- **Liking, match, opinion** are judged by the world's chances themselves, as sums over the lists
  that the audit looked at, given the training part. No draw is involved, and no code of the audit.
- **The rate** of a kind of statement is the mean over worlds of the share of its sayings in that
  world that are false. Kinds of worlds count alike, however many were audited. Sayings within a
  world depend on each other: the interval is that of as many worlds, not of as many sayings.
- **Conditions.** A statement about liking that rests on judgments as they are is made under
  conditions that stand in the sentence ({"; ".join(CONDITIONS.values())}). Whether they
  hold is set with the kind of world, before any audit. Where one is broken, the statement is not
  counted as false; how often it would be stands in a table of its own.

The bars: {BARS}; said in at least {LEAST} worlds.
"""

LIMITS = f"""## Limits

- These are rates over simulated worlds. They are never the chance that one report is wrong: nobody
  knows which kind of world your data come from, and real data are of no simulated kind.
- The worlds have a few hundred users and items (see the table); larger data decide more.
- The systems are {", ".join(LEVELS["quick"].algorithms)},
  or those that a kind of world brings along. They are tuned
  as by `unskew audit --quick` unless the kind says otherwise. The metric is {METRIC}; the designs
  are {", ".join(DESIGNS)}. Other systems, metrics and designs were not measured.
- Lists that are given are not part of it: statements about them are made by the same rules, on one
  split.
- What a design is expected to show is itself a mean over {FRESH} fresh data sets, and not exact: a
  statement about two systems that are nearly equal may be judged wrongly, either way.
- Rules were set on worlds of other seeds; the kinds of worlds are the same ones.
- Where niche items are found by their fans (`sought-by-fans`), ratings make them look better than
  they are, and no rating tells these worlds from ones where niche items are better. A system that
  is behind in score is therefore called better only where liking is not shown to change with
  popularity (`better-despite`); else `evidence-disagrees` says that score and liking point to
  different systems, and that the data cannot tell.
- Kinds of worlds whose names begin with `coat`, `r3` or `cm100k` are semi-real: who likes what is a
  model fitted to ratings of real people, random ones among them; who rates what is simulated. They
  run where those data are at hand.
"""


COUNTS = tuple(
    Path(__file__).parents[1] / "benchmarks" / f"{name}_counts.json"
    for name in ("soak", "differential")
)
"""What `benchmarks/soak.py` and `benchmarks/differential.py` counted."""


PEOPLE = Path(__file__).parents[1] / "benchmarks" / "reliability" / "real_counts.json"
"""What `benchmarks/reliability/real.py` counted."""
JUDGED_BY_PEOPLE = """## Held against people

Some data sets hold, beside the ratings that people chose to give, ratings of items drawn at random.
`benchmarks/reliability/real.py` audits the chosen ratings alone (level `quick`), and lets the
random ones judge: which share of a system's recommendations do people like, where they were asked
about items that they did not choose? A pair of systems counts where the 95 % interval of the
difference, by user, is on one side of 0.
"""
FIRST_SCREENS = """\
What the first screen says: how many of the decided pairs are named rightly (`better`,
`better-despite`), how often the leading tier holds a system that no other one is truly better than,
and in how many of the audits the most frequent leading tier and answer about popularity are given.
"""
LESSONS = """\
- `better` needs a lead in score and liking within users. `evidence-disagrees` prefers nothing: it
  says that those who rated the recommendations of one system liked them more often, while another
  one scores higher. Which of the two people would like more is counted here for comparison alone.
- Which evaluation setup comes nearest to what people like differs between data sets: none may be
  assumed to be the right one.
"""


def page(file: Path = FILE, counts: Iterable[Path] = COUNTS, people: Path = PEOPLE) -> str:
    """Return the page."""
    result = rates(file)
    parts = [HEAD, *_by_people(people), *_measured(result), _worlds(), _catalogue(), LIMITS]
    return "\n".join([*parts, *_load_and_faults(counts)])


def _by_people(path: Path) -> list[str]:
    """Return what ratings of random items say of audits, as far as it was counted."""
    if not path.exists():
        return []
    data_sets: dict[str, list[dict[str, Any]]] = json.loads(path.read_text())
    kinds = list(dict.fromkeys(kind for one in data_sets.values() for kind in one[0]["kinds"]))
    designs = list(dict.fromkeys(name for one in data_sets.values() for name in one[0]["designs"]))
    names = tuple(data_sets)
    said = [
        [f"`{kind}`", *(_said(audits, kind) for audits in data_sets.values())] for kind in kinds
    ]
    orders = [[name, *(_order(audits, name) for audits in data_sets.values())] for name in designs]
    audits = len(next(iter(data_sets.values())))
    return [
        JUDGED_BY_PEOPLE,
        FIRST_SCREENS,
        _table(("", *names), _first_screens(list(data_sets.values()))),
        f"Sentences about two systems in {audits} audits (seeds) of each data set: right, wrong, "
        "and not\ndecided by the random ratings.\n",
        _table(("sentence", *names), said),
        f"The order of six systems under each evaluation setup: how many of the decided pairs of "
        f"{audits} audits\nstand in the true order, and the mean of Kendall's τ with it.\n",
        _table(("setup", *names), orders),
        LESSONS,
    ]


def _first_screens(data_sets: Sequence[Sequence[Mapping[str, Any]]]) -> list[list[str]]:
    """Return what first screens name, by data set: rows of a table."""

    def usual(audits: Sequence[Mapping[str, Any]], key: str) -> str:
        answers = Counter(str(sorted(one[key])) for one in audits)
        return f"{answers.most_common(1)[0][1]} of {len(audits)}"

    def named(audits: Sequence[Mapping[str, Any]]) -> str:
        right, settled = (sum(one[key] for one in audits) for key in ("named", "settled"))
        return f"{right} of {settled}"

    rows: dict[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
        "decided pairs named rightly": named,
        "leading tier holds a best system": lambda audits: (
            f"{sum(one['has_best'] for one in audits)} of {len(audits)}"
        ),
        "the same leading tier": lambda audits: usual(audits, "leading"),
        "the same answer about popularity": lambda audits: usual(audits, "popularity"),
    }
    return [[name, *(count(audits) for audits in data_sets)] for name, count in rows.items()]


def _said(audits: Sequence[Mapping[str, Any]], kind: str) -> str:
    right, wrong, undecided = (
        sum(one["kinds"][kind].get(word, 0) for one in audits)
        for word in ("right", "wrong", "open")
    )
    return f"{right} right, {wrong} wrong, {undecided} not decided"


def _order(audits: Sequence[Mapping[str, Any]], design: str) -> str:
    there = [one for one in audits if design in one["designs"]]
    if not there:
        return ""
    right = sum(one["designs"][design]["right"] for one in there)
    tau = sum(one["designs"][design]["tau"] for one in there) / len(there)
    return f"{right} of {sum(one['settled'] for one in there)}, τ {tau:.2f}"


FAULTS = """## Load and faults

What `benchmarks/soak.py` and `benchmarks/differential.py` counted. Every case has a seed, by which
it can be repeated.
"""
CHANGED = """### Changed files

Small valid files of every kind are changed (bits flipped, parts cut, doubled, swapped or removed,
odd bytes, separators and numbers) and read. Allowed is an error that names the file, or the right
result: of a saved format the one that was saved; of an input the rows that plain Python (the csv
module, `str.split`, pyarrow or duckdb, tomllib) reads from the same bytes.
"""
CHANGED_LIMITS = """\
None of these seeds had been run before. The readers had been mended on others: of 10,000 with seeds
from 200,000, five were bad, and of the first 3,000 of KuaiRand, Open Bandit, ML-32M-ext and Yambda
136. The one that differs here is a file of Netflix with an empty line, at which plain Python stops:
unskew reads all rows around it. One case was interrupted from outside, and run again.

A changed value that is still valid is what the file says: nobody can tell. Where a Parquet file of
yours has no checksums, and polars reads it, so does unskew: of 3,900 changed files of Yambda four
had damaged page headers or footers, which pyarrow and duckdb refuse.
"""
KILLED = """### Killed processes

A command is killed (SIGKILL) at a random moment and run again. Checked: what is there after the
kill is whole, every result in a store is the one that belongs there, and after the second run files
and store are the same bytes as those of a command that was never killed. *Two at once*: the other
process goes on. Hidden `.part` files of the killed process may stay; `unskew store gc` removes
those of a store.
"""
COMMANDS = """### Random commands

Commands on random data with random outputs and formats; most of them under a fault, and then
again without it. Checked: an exit code of the [documented ones](cli.md), no traceback, outputs
whole or absent, and the same printed and written without the fault as where nothing ever failed.
"""
COMMANDS_LIMITS = """\
A command without an answer in five minutes is counted as bad. With fewer than 640 MiB of addresses
a command says so and stops. These data are small: on large ones polars may end the process at once
(SIGABRT) where it cannot allocate, with no message of unskew, and nothing half-written. `demo`,
`study run` and `audit` are not among these commands: they take too long.
"""


def _load_and_faults(paths: Iterable[Path]) -> list[str]:
    """Return what was counted under load and faults, as far as it was."""
    counts: dict[str, Any] = {}
    for path in paths:
        counts |= json.loads(path.read_text()) if path.exists() else {}
    if not counts:
        return []
    parts = [FAULTS]
    if "trec_eval" in counts or "twins" in counts:
        parts.append(_differential(counts))
    if "mutations" in counts:
        parts += [CHANGED, _changed(counts["mutations"]), CHANGED_LIMITS]
    if "kills" in counts:
        parts += [KILLED, _killed(counts["kills"])]
    if "commands" in counts:
        parts += [COMMANDS, _commands(counts["commands"]), COMMANDS_LIMITS]
    if "versions" in counts:
        names = ", ".join(f"{name} {one}" for name, one in counts["versions"].items())
        parts.append(f"Measured with {names}.\n")
    return parts


def _differential(counts: Mapping[str, Any]) -> str:
    names = {"trec_eval": "trec_eval", "twins": "plain twins of the tests"}
    rows = [
        [names[key], f"{counts[key]['cases']:,}", f"{counts[key]['mismatches']:,}"]
        for key in names
        if key in counts
    ]
    return f"### Other code\n\n{_table(('compared with', 'cases', 'mismatches'), rows)}"


def _changed(counts: Mapping[str, Any]) -> str:
    good = ("refused", "unchanged", "as the twin")
    bad = ("traceback", "unnamed", "wrong", "crash", "hang")
    head = ("file", "cases", "refused", "unchanged", "as plain Python", "bad")
    rows = [
        [
            name,
            f"{sum(one.values()):,}",
            *(f"{one.get(outcome, 0):,}" for outcome in good),
            f"{sum(one.get(outcome, 0) for outcome in bad):,}",
        ]
        for name, one in counts["by_file"].items()
    ]
    of = counts["outcomes"]
    text = f"{counts['cases']:,} changed files (seeds from {counts['first']:,}): "
    text += f"{of['traceback']} tracebacks, {of['unnamed']} errors that name no file, "
    text += f"{of['wrong']} read otherwise than by plain Python, {of['crash']} crashes, "
    return f"{text}{of['hang']} without an answer in a minute.\n\n{_table(head, rows)}"


def _killed(counts: Mapping[str, Any]) -> str:
    states = ("none written", "some written", "all written")
    rows = [
        [f"`unskew {name}`", *(f"{one.get(state, 0):,}" for state in states),
         f"{one.get('lost or changed', 0):,}"]
        for name, one in counts["by_command"].items()
    ]  # fmt: skip
    head = ("command", "killed before it wrote", "between", "after", "lost or changed")
    text = f"{counts['kills']:,} kills (seeds from {counts['first']:,}), "
    return f"{text}{counts['lost_or_changed']} lost or changed results.\n\n{_table(head, rows)}"


_FAULT_NAMES = {
    "none": "none",
    "full output": "output to a full disk (`/dev/full`)",
    "file size": "files limited to 1 to 65,536 bytes",
    "memory": "address space of 600 to 3,000 MB",
    "interrupt": "Ctrl-C at a random moment",
    "two at once": "the same command twice at once",
    "kill": "SIGKILL at a random moment",
}


def _commands(counts: Mapping[str, Any]) -> str:
    ends = ("ended as undisturbed", "stopped with a message", "ended by a library without memory",
            "killed", "no answer", "problems")  # fmt: skip
    rows = [
        [_FAULT_NAMES[fault], f"{one.get('cases', 0):,}",
         *(f"{one.get(end, 0):,}" for end in ends)]
        for fault, one in counts["by_fault"].items()
    ]  # fmt: skip
    head = (
        "fault",
        "cases",
        "no effect",
        "stopped, said why",
        "ended by polars",
        "killed",
        "no answer",
        "bad",
    )
    bad = sum(one.get("problems", 0) for one in counts["by_fault"].values())
    text = f"{counts['cases']:,} cases of {len(counts['commands'])} commands in "
    text += f"{counts['minutes']} minutes (seeds from {counts['first']:,}), {bad} bad.\n"
    return f"{text}\n{_table(head, rows)}"


def _measured(result: Rates | None) -> list[str]:
    """Return the tables of rates; a sentence where there are none for this version."""
    if result is None:
        return [
            f"## Rates\n\nNo result file is there: {NOT_MEASURED}. `make reliability` makes it.\n"
        ]
    if not result.is_current:
        text = "The rules have changed since the rates below were measured"
        text += f": {NOT_MEASURED}. Reports do not show them.\n"
    else:
        text = f"{result.worlds:,} worlds of {len(result.world_kinds)} kinds were audited.\n"
        missing = [name for name in WORLDS if name not in result.world_kinds]
        if missing:
            text += f"No world of these kinds was audited yet: {', '.join(missing)}.\n"
    return [
        f"## Rates\n\n{text}",
        _rates(result),
        _by_world(result),
        _broken(result),
        _named(result),
        *(f"- {line[0].upper()}{line[1:]}." for line in answer_lines(result.answers)),
        "",
    ]


def _rates(result: Rates) -> str:
    rows = [
        _rate_row(kind.name, result.rates.get(kind.name))
        for kind in CATALOGUE
        if kind.is_true is not None
    ]
    head = ("statement", "worlds", "sayings", "false", "95 % interval", "upper end", "bars")
    return _table(head, rows)


def _rate_row(name: str, rate: Rate | None) -> list[str]:
    if rate is None:
        return [f"`{name}`", "0", "0", "", "", "", NEVER]
    interval = f"{rate.low:.3f} to {rate.high:.3f}"
    counts = [f"{rate.worlds:,}", f"{rate.sayings:,}", f"{rate.rate:.3f}"]
    return [f"`{name}`", *counts, interval, f"{rate.upper:.3f}", verdict(rate)]


def _by_world(result: Rates) -> str:
    text = (
        "## By kind of world\n\nWhere a kind of statement is false most often: the five worst kinds"
    )
    text += f" with at least {ENOUGH_SAYINGS} sayings and a rate above 0.\n"
    rows = []
    for rate in result.rates.values():
        often = [one for one in rate.by_world if one.sayings >= ENOUGH_SAYINGS and one.rate > 0]
        rows.append([f"`{rate.kind}`", _listed(often[:5]) or "none"])
    return f"{text}\n{_table(('statement', 'false in'), rows)}"


def _broken(result: Rates) -> str:
    text = (
        "## Where a condition is broken\n\nThe statements say so: these are the worlds in which not"
    )
    text += " to believe them.\n"
    rows = [
        [f"`{rate.kind}`", _listed(rate.broken)] for rate in result.rates.values() if rate.broken
    ]
    table = _table(("statement", "false in"), rows) if rows else "None was said in such a world.\n"
    return f"{text}\n{table}"


def _listed(several: Iterable[WorldRate]) -> str:
    return ", ".join(
        f"{one.world} {one.rate:.2f} ({one.sayings:,} sayings in {one.worlds:,})" for one in several
    )


def _named(result: Rates) -> str:
    text = (
        "## Not mute\n\nAn audit that says nothing is never wrong. Of the pairs of which one system"
    )
    text += " is truly better by\nmore than a tenth, and ahead: how many are named, as a mean over"
    text += " worlds.\n"
    rows = [
        [
            one.world,
            "yes" if one.visible else "",
            f"{one.worlds:,}",
            f"{one.named:.2f}",
            f"{one.by_slice:.2f}",
        ]
        for one in result.recognised
    ]
    head = ("world", "stated to show it", "worlds", "from judgments", "from a random slice")
    lines = [f"{line[0].upper()}{line[1:]}.\n" for line in not_mute(result.recognised)]
    return "\n".join([text, _table(head, rows), *lines])


def _worlds() -> str:
    text = (
        "## The worlds\n\nA world is a few matrices: the chance that a user likes an item, and the"
    )
    text += " chance that the pair is\nrated if liked and if not. Data are coins of these chances;"
    text += " every seed draws other strengths.\n"
    rows = [
        [one.name, _one_line(one.about), _marks(one.adversarial, one.where_better_is_visible)]
        for one in WORLDS.values()
    ]
    return f"{text}\n{_table(('kind', 'what it is like', 'stated beforehand'), rows)}"


def _marks(adversarial: bool, visible: bool) -> str:
    marks = [("a condition is broken", adversarial), ("a better system is to be seen", visible)]
    return "; ".join(text for text, is_so in marks if is_so)


def _catalogue() -> str:
    text = "## The statements\n\nWhen each kind is said, and what it claims. Kinds that only repeat"
    text += " what was done or counted claim\nnothing about a world, and have no rate.\n"
    rows = [
        [f"`{one.name}`", one.rule, one.claims if one.is_true is not None else "–"]
        for one in CATALOGUE
    ]
    return f"{text}\n{_table(('statement', 'said when', 'claims'), rows)}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    shown = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join([*(f"| {line} |" for line in shown), ""])


if __name__ == "__main__":
    target = Path(__file__).with_suffix(".md")
    if "--check" in sys.argv:
        sys.exit(0 if target.read_text() == page() else "docs/reliability.md is stale: make docs")
    target.write_text(page())
