"""`checklist_of`: what reviewers ask of offline experiments, answered from what an audit did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing.page.captions import TEXTS
from unskew.checks import checked
from unskew.errors import SettingError
from unskew.report.document import Block, Words
from unskew.report.tables import Table
from unskew.report.text import counted

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements

DONE, MISSING, STATE = "done", "missing", "for you to state"
SIGNS = {DONE: "✓", MISSING: "✗", STATE: "?"}
"""The sign of each status: colour is never the only one."""

QUESTIONS: dict[str, str] = TEXTS["checklist"]["questions"]
"""By key, in the order of the list."""
SENTENCES: dict[str, str] = TEXTS["checklist"]["sentences"]
"""Every sentence of the section that is no question."""
ALWAYS: dict[str, list[str]] = TEXTS["checklist"]["always"]
"""By key: what is known, and what is for the author to state, in every audit."""
GIVEN: dict[str, list[str]] = TEXTS["checklist"]["given"]
"""The same where the lists were given."""
COLUMNS = ("key", "status", "question", "answer", "remedy")
HEADS = {"answer": "what the run knows", "remedy": "what to do"}
"""Columns with another name for people."""


@checked
def checklist_of(audit: object) -> pl.DataFrame:
    """Return what reviewers ask of offline experiments, answered by what an audit did.

    Parameters
    ----------
    audit
        What `us.audit` gave.

    Returns
    -------
    polars.DataFrame
        A row per question: its `key`, its `status` (`done`, `missing` or `for you to state`), the
        `question`, the `answer`, which is what the run knows, and a `remedy`, empty where it is
        done.

    Examples
    --------
    >>> import unskew as us
    >>> shop = us.world("shop", users=60, items=40, seed=3)
    >>> result = us.audit(shop, "quick", algorithms=["random", "popularity"],
    ...                   designs=["all-items"], repeats=2, permutations=200)
    >>> checklist = us.auditing.checklist_of(result)
    >>> checklist.filter(status="missing")["key"].to_list()
    ['time', 'designs']
    """
    from unskew.auditing.measurements import Measurements

    if not isinstance(audit, Measurements):
        raise SettingError(
            f"a checklist is filled from an audit: give what us.audit(…) returned, not "
            f"{type(audit).__name__}"
        )
    rows = []
    for key, question in QUESTIONS.items():
        status, answer, remedy = _answer(key, audit)
        rows.append((key, status, question, answer, remedy))
    return pl.DataFrame(rows, dict.fromkeys(COLUMNS, pl.String), orient="row")


def checklist_table(checklist: pl.DataFrame, title: str = "", note: str = "") -> Table:
    """Return a checklist as people read it, with a sign for each status."""
    signs = {name: f"{sign} {name}" for name, sign in SIGNS.items()}
    status = pl.col("status").replace_strict(signs)
    frame = checklist.select(status, "question", *HEADS).rename(HEADS)
    return Table(title, frame, note=note)


def status_counts(checklist: pl.DataFrame) -> str:
    """Say how many questions have each status."""
    statuses = checklist["status"].to_list()
    return ", ".join(f"{statuses.count(status)} {status}" for status in SIGNS)


Answer = tuple[str, str, str]
"""Status, what is known, and what to do."""


def _answer(key: str, audit: Measurements) -> Answer:
    stated = ALWAYS.get(key) or (GIVEN.get(key) if audit.evidence.is_given else None)
    if stated is not None:
        known, remedy = stated
        return STATE, known, remedy
    return ANSWERS[key](audit)


def _data(audit: Measurements) -> Answer:
    if audit.data is None:
        return MISSING, "nothing is known of the data", "state name and numbers"
    part = audit.data.part()
    numbers = (
        f"{counted(part['ratings'], 'rating')}, {counted(part['users'], 'user')}, "
        f"{counted(part['items'], 'item')}"
    )
    if audit.evidence.is_given:
        return STATE, numbers, "state the name and the version of the data"
    return DONE, f"{audit.name}: {numbers}", ""


def _common_design(audit: Measurements) -> Answer:
    return DONE, f"{audit.common}: {audit.designs[audit.common]}", ""


def _pairs(audit: Measurements) -> Answer:
    if not audit.splits:
        return MISSING, "the training ratings are not known", "give train=… (--train)"
    count = sum(split.facts["duplicates"] for split in audit.splits.values())
    text = f"{counted(count, 'pair')} in both parts"
    return (MISSING, text, "remove them from one part") if count else (DONE, text, "")


def _time(audit: Measurements) -> Answer:
    shares = {name: split.facts["before_any_train"] for name, split in audit.splits.items()}
    values = [share for share in shares.values() if share is not None]
    if any(share == 0 for share in values):
        return DONE, "no test rating of a split is older than its training ratings", ""
    if not audit.splits:
        return MISSING, "the training ratings are not known", "give train=… (--train)"
    if not values:
        return MISSING, "the ratings have no time stamps", "say so in the paper"
    text = f"at least {min(values):.1%} of the test ratings are older than a training rating"
    if audit.evidence.is_given:
        return MISSING, text, "split by time, or discuss it"
    return MISSING, text, "add the design temporal, or discuss it"


def _designs(audit: Measurements) -> Answer:
    names = ", ".join(audit.designs)
    if len(audit.designs) > 1:
        return DONE, names, ""
    return MISSING, f"{names} only", "evaluate under more designs (designs=…, --designs)"


def _baselines(audit: Measurements) -> Answer:
    plain = ("popularity", "average-rating", "smoothed-average")
    names = [system for system in audit.systems if system.split(" (")[0] in plain]
    if names:
        return DONE, ", ".join(names), ""
    if audit.evidence.is_given:
        text = "no system here is known to be one; a given list may be"
        return MISSING, text, "give train=… and leave references on, or name yours"
    return MISSING, "popularity is not among the systems", "add popularity"


def _budget(audit: Measurements) -> Answer:
    tuned = audit.core.tuned[0] if audit.core.tuned else {}
    untuned = _untuned(audit)
    tried = ", ".join(f"{name} {system.tried}" for name, system in tuned.items())
    if untuned:
        text = f"not tuned: {', '.join(untuned)}" + (f"; settings tried: {tried}" if tried else "")
        return MISSING, text, "tune all systems (tune=True, systems by name), or explain why not"
    if not tuned:
        return DONE, "no system has settings to tune", ""
    return DONE, f"settings tried of each: {tried}", ""


def _untuned(audit: Measurements) -> list[str]:
    """Return the systems that declare settings to tune, and were not tuned."""
    tuned = audit.core.tuned[0] if audit.core.tuned else {}
    systems = audit.plans[0].systems if audit.plans else {}
    return [name for name, system in systems.items() if system.tuning and name not in tuned]


def _validation(audit: Measurements) -> Answer:
    if _untuned(audit):
        return STATE, "some settings were given", "state on which ratings they were chosen"
    if not any(audit.core.tuned):
        return DONE, "no setting was chosen", ""
    return DONE, "a fifth of the training ratings of each split chose them", ""


def _chance(audit: Measurements) -> Answer:
    values = audit.table().filter(design=audit.common)["random"].drop_nulls()
    if not values.len():
        return MISSING, "it is not known here", "give train=… (--train)"
    return DONE, f"{audit.metric} {values[0]:.4f} under {audit.common}", ""


def _significance(audit: Measurements) -> Answer:
    if audit.comparison is None:
        why = audit.skipped.get("significance", "no test was possible")
        return MISSING, why, "compare the systems with us.compare"
    return DONE, f"{audit.comparison.card['test']} test, paired by user", ""


def _correction(audit: Measurements) -> Answer:
    comparison = audit.comparison
    if comparison is None or comparison.card["correction"] is None:
        return MISSING, "no p-value is corrected", "correct for the number of pairs"
    return DONE, f"{comparison.card['correction']} over the pairs of each metric", ""


def _repeats(audit: Measurements) -> Answer:
    count = len(audit.scores[audit.common])
    if audit.evidence.is_given:
        text = "one split: intervals are for these lists on new users"
        return MISSING, text, "train again on other splits, or discuss it"
    text = f"{counted(count, 'split')} of {audit.common}"
    return (DONE, text, "") if count > 1 else (MISSING, text, "use several splits")


def _seeds(audit: Measurements) -> Answer:
    seed = f"seed {audit.card.get('seed')}"
    if audit.evidence.is_given:
        return STATE, f"{seed} of the evaluation", "state the seeds of split and training"
    return DONE, f"{seed}; those of the splits follow from it", ""


def _versions(audit: Measurements) -> Answer:
    versions = audit.card.get("versions")
    text = ", ".join(f"{a} {b}" for a, b in versions.items()) if isinstance(versions, dict) else ""
    if audit.evidence.is_given:
        return STATE, f"{text} (evaluation)", "state those that made the lists"
    return DONE, text, ""


ANSWERS: dict[str, Callable[[Measurements], Answer]] = {
    "data": _data,
    "split": _common_design,
    "pairs": _pairs,
    "time": _time,
    "candidates": _common_design,
    "designs": _designs,
    "baselines": _baselines,
    "budget": _budget,
    "validation": _validation,
    "settings": lambda _: (DONE, "the card holds the settings of every system", ""),
    "metrics": lambda _: (DONE, "the methods paragraph defines those of the table", ""),
    "chance": _chance,
    "significance": _significance,
    "correction": _correction,
    "repeats": _repeats,
    "seeds": _seeds,
    "versions": _versions,
}
"""By key of the question: what a run knows of it, where it is not as in every audit."""


def checklist_blocks(audit: Measurements) -> Iterator[Block]:
    """Yield what is missing first, in red and with a sign; then what is to be stated, and all."""
    checklist = checklist_of(audit)
    if MISSING not in checklist["status"]:
        yield Words(SENTENCES["nothing missing"], "good")
    for status, tone, key in ((MISSING, "missing", "missing"), (STATE, "plain", "state")):
        questions = tuple(checklist.filter(status=status)["question"])
        if questions:
            yield Words("", tone, f"{SIGNS[status]} {SENTENCES[key]}", questions)
    yield checklist_table(checklist, SENTENCES["table"], SENTENCES["sources"])
