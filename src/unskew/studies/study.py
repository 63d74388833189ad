"""`study`: run a paper again, and say of each of its claims whether it holds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unskew.checks import checked, choose
from unskew.data import released
from unskew.data.catalog import DATASETS, data_folder, is_there, load
from unskew.data.dataset import Dataset
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.readers import read_ratings
from unskew.engine.versions import versions
from unskew.errors import SettingError, UnskewError, unknown_name
from unskew.report.document import Document
from unskew.studies.claims import (
    EVIDENCE,
    FAILED,
    MEASURED,
    NO_DATA,
    NOT_CHECKABLE,
    PRINTED,
    RELEASED,
    Claim,
    Rule,
    Verdict,
    judge,
)
from unskew.studies.lab import (
    Lab,
    NotAtHandError,
    UndefinedError,
    amounts_of,
    at_hand,
    not_of_paper,
    opened,
    reason_of,
)
from unskew.studies.pages import document
from unskew.studies.paper import SOURCES, STAND_IN, Exhibit, Study
from unskew.studies.result import Found

STUDIES = ("bellogin2017", "valcarce2018", "carraro2020", "mena2021", "castells2018")
Progress = Callable[[str, int, int], None]


def named(name: str) -> Study:
    """Return a study by the name of its paper."""
    choose("study", name, STUDIES)
    found: Study = import_module(f"unskew.studies.{name}.study").STUDY
    return found


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult(Found):
    """What a study found. Made by `study`.

    Print it for the verdicts; `document()` is the whole page, `to_csv` writes every number.
    """

    def document(self) -> Document:
        """Return the page: verdicts first, the exhibits, the ledger in full, and the card."""
        return document(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the page as plain values, for JSON."""
        return self.document().to_dict()

    def __repr__(self) -> str:
        return f"StudyResult({self.study.name}: {len(self.verdicts)} verdicts)"


@checked
def study(
    name: str,
    data: object = None,
    *,
    random: object = None,
    data_dir: str | os.PathLike[str] | None = None,
    stand_in: bool = False,
    quick: bool | None = None,
    amounts: Mapping[str, int] | None = None,
    claims: Sequence[str] | None = None,
    exhibits: bool = True,
    liked: float | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> StudyResult:
    """Run a paper's experiments again and say of each of its claims whether it holds.

    Parameters
    ----------
    name
        The paper: `bellogin2017`, `valcarce2018`, `carraro2020`, `mena2021` or `castells2018`.
    data
        Your own ratings (a file, a table, a `Dataset`), of which its claims become questions.
        Without them, the paper's own data where the data folder has them, else a small built-in
        world.
    random
        With your own ratings: those of randomly chosen items, where a study needs the truth.
    data_dir
        Where named data sets are, and released results in its folder `published`; default:
        `$UNSKEW_DATA`, or `~/.local/share/unskew`.
    stand_in
        Take the built-in world whatever is at hand.
    quick
        Take fewer repetitions than the paper; so it is on the built-in world unless given.
    amounts
        How much of something, by name, instead: `unskew study list NAME` shows what there is.
    claims
        Check these only, by their keys; no exhibits are drawn then.
    exhibits
        Whether to draw the paper's tables and figures.
    liked
        The smallest rating that is liked, where the data do not say.
    seed
        Everything random follows from it.
    store
        A folder that keeps what is finished: a study that was stopped goes on where it was.
    workers
        Processes side by side; never changes a number.
    progress
        Called with what is being done, how many claims and exhibits are done, and of how many.

    Examples
    --------
    >>> from unskew.studies.study import study
    >>> found = study("mena2021", stand_in=True, claims=["3-40"])
    >>> found.counts()["holds"]
    1
    """
    paper = named(name)
    sets, refused = _sets(paper, data, random, data_dir, stand_in, seed)
    own = not all(name in paper.data and name not in refused for name in sets)
    fast = (own and data is None) if quick is None else quick
    wanted = _wanted(paper, claims)
    state = _State(progress or (lambda _what, _done, _total: None))
    with opened(
        sets,
        own=own,
        amounts=amounts_of(paper.amounts, fast, amounts),
        quick=fast,
        seed=seed,
        workers=workers,
        store=store,
        data_dir=data_dir,
        liked=liked,
        told=state.say,
        refused=refused,
    ) as lab:
        _check_scale(lab)
        places = _places(paper, lab, data is not None) if exhibits and claims is None else []
        state.total = len(wanted) + len(places)
        verdicts = []
        for claim in wanted:
            verdicts += _checked(claim, lab, data is not None)
            state.step()
        drawn, left_out = [], {}
        for exhibit, on in places:
            try:
                blocks = tuple(exhibit.draw(lab, on))
                drawn.append((exhibit, on or _source(exhibit), blocks))
            except Exception as problem:
                title = f"{exhibit.place}: {exhibit.title}"
                left_out[f"{title} ({on})" if on else title] = _reason(problem)
            state.step()
        card = _card(paper, lab) | {"command": _command(paper, lab, data is not None, claims)}
        return StudyResult(
            paper, tuple(verdicts), tuple(drawn), left_out, dict(lab.tables), card, own
        )


def _check_scale(lab: Lab) -> None:
    """Refuse ratings of which nobody said what is liked, before any claim has to."""
    for on, data in lab.sets.items():
        if lab.own and data.ratings.value.size and np.ptp(data.ratings.value) > 0:
            lab.threshold(on, paper=4)


@dataclass
class _State:
    """Where a study is."""

    told: Progress
    done: int = 0
    total: int = 0

    def say(self, what: str) -> None:
        self.told(what, self.done, self.total)

    def step(self) -> None:
        self.done += 1
        self.say("")


def _sets(
    paper: Study, data: object, random: object, data_dir: Any, stand_in: bool, seed: int
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Return the data sets to run on, and which files are not the paper's data, and why."""
    if data is not None:
        if stand_in:
            raise SettingError("give data or stand_in, not both")
        return _of_user(paper, data, random, data_dir)
    if random is not None:
        raise SettingError("random goes with data: the named data sets bring their own")
    if stand_in:
        return {STAND_IN: paper.stand_in(seed)}, {}
    sizes = {name: paper.size(name) for name in paper.data}
    sets, refused = at_hand(paper.data, data_dir, paper.options, sizes)
    return sets or {STAND_IN: paper.stand_in(seed)}, refused


def _of_user(
    paper: Study, data: object, random: object, data_dir: Any
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load the user's data; a name of the paper's own data sets runs the paper on that one."""
    known = isinstance(data, str) and data.lower() in DATASETS and not Path(data).is_file()
    if known:
        options = paper.options.get(str(data).lower(), {})
        loaded = load(data, data_dir=data_dir, **options)
    else:
        loaded = load(data)
    if random is not None:
        other = random if isinstance(random, Ratings) else read_ratings(random)
        ratings, other = under_one_numbering(loaded.ratings, other)
        loaded = replace(loaded, ratings=ratings, random=other)
    problem = not_of_paper(loaded, paper.size(loaded.name)) if loaded.name in paper.data else ""
    return {loaded.name: loaded}, {loaded.name: problem} if problem else {}


def _wanted(paper: Study, claims: Sequence[str] | None) -> list[Claim]:
    if claims is None:
        return list(paper.claims)
    known = {claim.key: claim for claim in paper.claims}
    for key in claims:
        if key not in known:
            raise unknown_name("claim", key, known)
    return [claim for claim in paper.claims if claim.key in set(claims)]


def _checked(claim: Claim, lab: Lab, of_users: bool) -> list[Verdict]:
    """Measure a claim wherever it can be, and set it beside what the paper says."""
    if claim.measure is None:
        return [Verdict(claim, "", NOT_CHECKABLE, why=claim.needs)]
    verdicts = [_verdict(claim, lab, on, rule) for on, rule in _where(claim, lab, of_users)]
    if verdicts:
        return verdicts
    if not claim.data:
        why = "does not speak of any one data set"
        return [Verdict(claim, _source(claim), NOT_CHECKABLE, why=why)]
    place = " or ".join(claim.data)
    refused = "; ".join(lab.refused[name] for name in claim.data if name in lab.refused)
    why = "speaks of the paper's own data" if lab.own else _absent(claim.data)
    verdict = NOT_CHECKABLE if lab.own and not refused else NO_DATA
    return [Verdict(claim, place, verdict, why=refused or why)]


def _verdict(claim: Claim, lab: Lab, on: str, rule: Rule) -> Verdict:
    """Measure a claim on one data set. Whatever goes wrong there, the other claims go on."""
    label = on or _source(claim)
    if claim.measure is None:
        return Verdict(claim, label, NOT_CHECKABLE, why=claim.needs, rule=rule)
    try:
        measured = claim.measure(lab, on)
    except NotAtHandError as problem:
        return Verdict(claim, label, NO_DATA, why=_reason(problem), rule=rule)
    except (UndefinedError, SettingError) as problem:  # as where nobody says what is liked
        return Verdict(claim, label, NOT_CHECKABLE, why=_reason(problem), rule=rule)
    except Exception as problem:
        return Verdict(claim, label, FAILED, why=_reason(problem), rule=rule)
    return judge(claim, rule, label, measured)


def _where(claim: Claim, lab: Lab, of_users: bool) -> list[tuple[str, Rule]]:
    """Return the data sets on which a claim is measured, with what agrees there."""
    if not claim.data:
        return [] if of_users and lab.own else [("", claim.rule)]
    if lab.own:
        return [(on, claim.asks) for on in lab.sets if claim.asks is not None]
    return [(on, claim.rule) for on in claim.data if on in lab.sets]


def _reason(problem: Exception) -> str:
    """Return why in a line."""
    text = reason_of(str(problem))
    return text if isinstance(problem, UnskewError) else f"{type(problem).__name__}: {text}"


def _source(one: Claim | Exhibit) -> str:
    """Return what a claim or an exhibit that speaks of no data set is about."""
    if isinstance(one, Claim):
        return SOURCES[one.evidence or PRINTED]
    return SOURCES[RELEASED if one.files else MEASURED]


def _absent(names: Sequence[str]) -> str:
    return f"needs {' or '.join(names)}, which the data folder does not have"


def _places(paper: Study, lab: Lab, of_users: bool) -> list[tuple[Exhibit, str]]:
    """Return which exhibits to draw, and on which data; users' own have nothing but their own."""
    places: list[tuple[Exhibit, str]] = []
    for exhibit in paper.exhibits:
        if not exhibit.data:
            places += [] if of_users and lab.own else [(exhibit, "")]
        elif lab.own:
            places += [(exhibit, on) for on in lab.sets if exhibit.anywhere]
        else:
            places += [(exhibit, on) for on in exhibit.data if on in lab.sets]
    return places


def _card(paper: Study, lab: Lab) -> dict[str, Any]:
    files = dict.fromkeys(file for claim in paper.claims for file in claim.files)
    return {
        "study": paper.name,
        "reference": paper.reference,
        "on": ", ".join(lab.sets),
        "released": [file for file in files if released.find(file, lab.folder)],
        "data": {
            name: {
                "ratings": len(one.ratings),
                "users": len(one.ratings.users),
                "items": len(one.ratings.items),
                "fingerprint": one.ratings.fingerprint,
                "random": None if one.random is None else one.random.fingerprint,
            }
            for name, one in lab.sets.items()
        },
        "not the paper's": dict(lab.refused),
        "left out": {f"{name} ({on})": why for (on, name), why in lab.failures.items()},
        "amounts": dict(lab.amounts),
        "quick": lab.quick,
        "seed": lab.seed,
        "liked": lab.liked,
        "versions": versions(),
    }


def _command(paper: Study, lab: Lab, of_users: bool, claims: Sequence[str] | None) -> str:
    """Return the command that makes the same page."""
    words = ["unskew study run", paper.name]
    if of_users:
        words += ["--data", shlex.quote(next(iter(lab.sets)))]
        words += ["--random FILE"] if lab.own and lab.data(next(iter(lab.sets))).random else []
    elif lab.own:
        words.append("--stand-in")
    usual = amounts_of(paper.amounts, lab.quick, None)
    if lab.quick != (lab.own and not of_users):
        words.append("--quick" if lab.quick else "--full")
    for name, value in lab.amounts.items():
        words += [f"--amount {name}={value}"] if value != usual[name] else []
    words += ["--claims " + ",".join(claims)] if claims is not None else []
    words += [f"--liked {lab.liked:g}"] if lab.liked is not None else []
    return " ".join([*words, f"--seed {lab.seed}"])


def overview(data_dir: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """Return what every study can do with the data at hand: a row each."""
    rows = []
    home = data_folder(data_dir)
    for name in STUDIES:
        paper = named(name)
        there = [one for one in paper.data if is_there(DATASETS[one], data_dir)]
        able = [claim for claim in paper.claims if _possible(claim, there, home)]
        rows.append(
            {
                "study": name,
                "title": paper.title,
                "at hand": ", ".join(there) or STAND_IN,
                "missing": ", ".join(one for one in paper.data if one not in there),
                "claims": len(paper.claims),
                "checkable": len(able),
                **{kind: sum(claim.evidence == kind for claim in able) for kind in EVIDENCE},
            }
        )
    return pl.DataFrame(rows)


def _possible(claim: Claim, there: Sequence[str], home: Path) -> bool:
    """Tell whether a claim can be measured with what is at hand."""
    if claim.measure is None:
        return False
    if not all(released.find(file, home) for file in claim.files):
        return False
    if not claim.data:
        return True
    return any(one in there for one in claim.data) or (not there and claim.asks is not None)


def claims_of(name: str, data_dir: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """Return the claims of a study: a row each, with what it needs."""
    paper, home = named(name), data_folder(data_dir)
    there = [one for one in paper.data if is_there(DATASETS[one], data_dir)]
    rows = [
        {
            "claim": claim.key,
            "place": claim.place,
            "says": claim.says,
            "needs": claim.needs or ", ".join([*claim.data, *claim.files]) or _source(claim),
            "evidence": claim.evidence,
            "agrees": str(claim.rule),
            "of your data": claim.asks is not None,
            "checkable": _possible(claim, there, home),
        }
        for claim in paper.claims
    ]
    return pl.DataFrame(rows)
