"""`study`: run a paper again, and say of each of its claims whether it holds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unskew.checks import checked, choose
from unskew.data.dataset import Dataset
from unskew.data.formats import catalog
from unskew.data.formats.catalog import data_folder, is_there, load
from unskew.data.formats.entries import DATASETS
from unskew.data.ratings import Ratings, under_one_numbering
from unskew.data.read.ratings_files import read_ratings
from unskew.engine.process_pool import WorkersError
from unskew.engine.progress import notebook_progress
from unskew.engine.system import versions
from unskew.errors import SettingError, UnskewError, unknown_name
from unskew_studies.lab import (
    Lab,
    MissingDataError,
    UndefinedError,
    choose_amounts,
    last_line,
    load_datasets,
    open_lab,
    size_problem,
)
from unskew_studies.paper import EVIDENCE_KINDS, STAND_IN, Check, Claim, Evidence, Exhibit, Study
from unskew_studies.result import FAILED, NO_DATA, NOT_CHECKABLE, StudyResult, Verdict, judge
from unskew_studies.rules import Rule

if TYPE_CHECKING:
    from distributed import Client

STUDIES = ("bellogin2017", "valcarce2018", "carraro2020", "mena2021", "castells2018")
Progress = Callable[[str, int, int], None]


def find_study(name: str) -> Study:
    """Return a study by the name of its paper."""
    choose("study", name, STUDIES)
    paper: Study = import_module(f"unskew_studies.{name}.study").STUDY
    return paper


@notebook_progress("study")
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
    evidence: Sequence[str] | None = None,
    exhibits: bool = True,
    liked: float | None = None,
    seed: int = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int = 1,
    cluster: str | Client | None = None,
    progress: Progress | None = None,
) -> StudyResult:
    """Run a paper's experiments again and say of each of its claims whether it holds.

    Parameters
    ----------
    name
        The paper: `bellogin2017`, `valcarce2018`, `carraro2020`, `mena2021` or `castells2018`.
    data
        Your ratings (a file, a table, a `Dataset`): the claims become questions about them.
        Without them, the paper's data where the data folder has them, else a small built-in world.
    random
        With your ratings: those of randomly chosen items, where a study needs the truth.
    data_dir
        Where named data sets are, and released results in its folder `published`; default:
        `$UNSKEW_DATA`, or `~/.local/share/unskew`.
    stand_in
        Take the built-in world, even if the paper's data are there.
    quick
        Take fewer repetitions than the paper; default: only on the built-in world.
    amounts
        Other numbers of repetitions, by name: `unskew study list NAME` shows the names.
    claims
        Check only these, by their keys; no exhibits are drawn then.
    evidence
        Check by these kinds of evidence only: `measured`, `released`, `printed`, `algebra`.
        Claims without such evidence are left out, and no exhibits are drawn.
    exhibits
        Whether to draw the paper's tables and figures.
    liked
        The smallest rating that is liked, where the data do not say.
    seed
        The seed of everything random.
    store
        A folder that keeps finished tables: a study that was stopped goes on where it was.
    workers, cluster
        Processes side by side, or a Dask cluster, as in `run_plan`; never changes a number.
    progress
        Called with the step that begins, the number of finished claims and exhibits, and of all.

    Examples
    --------
    >>> from unskew_studies.run import study
    >>> result = study("mena2021", stand_in=True, claims=["3-40"])
    >>> result.counts()["holds"]
    1
    """
    paper = find_study(name)
    datasets, rejected = _datasets(paper, data, random, data_dir, stand_in, seed)
    is_other_data = not all(name in paper.data and name not in rejected for name in datasets)
    is_user_data = data is not None
    fast = (is_other_data and not is_user_data) if quick is None else quick
    wanted = _wanted(paper, claims, evidence)
    state = _State(progress or (lambda _step, _done, _total: None))
    with open_lab(
        datasets,
        is_other_data=is_other_data,
        amounts=choose_amounts(paper.amounts, fast, amounts),
        quick=fast,
        seed=seed,
        workers=workers,
        cluster=cluster,
        store=store,
        data_dir=data_dir,
        liked=liked,
        progress=state.begin,
        rejected=rejected,
    ) as lab:
        _check_scale(lab)
        places = (
            _places(paper, lab, is_user_data)
            if exhibits and claims is None and evidence is None
            else []
        )
        state.total = len(wanted) + len(places)
        verdicts = []
        for claim in wanted:
            for piece in claim.evidence:
                verdicts += _check(claim, piece, lab, is_user_data)
            state.finish()
        pictures, left_out = [], {}
        for exhibit, dataset_name in places:
            try:
                blocks = tuple(exhibit.draw(lab, dataset_name))
                pictures.append((exhibit, dataset_name or exhibit.source, blocks))
            except WorkersError:
                raise
            except Exception as problem:
                title = f"{exhibit.place}: {exhibit.title}"
                left_out[f"{title} ({dataset_name})" if dataset_name else title] = _reason(problem)
            state.finish()
        return StudyResult(
            study=paper,
            verdicts=tuple(verdicts),
            exhibits=tuple(pictures),
            left_out=left_out,
            tables=dict(lab.tables),
            card=_card(paper, lab)
            | {"command": _command(paper, lab, is_user_data, claims, evidence)},
            is_other_data=is_other_data,
        )


def _check_scale(lab: Lab) -> None:
    """Raise an error if the threshold of liked ratings is missing, before any claim needs it."""
    for dataset_name, data in lab.datasets.items():
        if lab.is_other_data and data.ratings.value.size and np.ptp(data.ratings.value) > 0:
            lab.threshold(dataset_name, paper=4)


@dataclass
class _State:
    """The progress of a study."""

    progress: Progress
    done: int = 0
    total: int = 0

    def begin(self, step: str) -> None:
        self.progress(step, self.done, self.total)

    def finish(self) -> None:
        self.done += 1
        self.begin("")


def _datasets(
    paper: Study, data: object, random: object, data_dir: Any, stand_in: bool, seed: int
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Return the data sets to run on, and which files are not the paper's data, and why."""
    if data is not None:
        if stand_in:
            raise SettingError("give data or stand_in, not both")
        return _user_dataset(paper, data, random, data_dir)
    if random is not None:
        raise SettingError("random goes with data: the named data sets bring their own")
    if stand_in:
        return {STAND_IN: paper.stand_in(seed)}, {}
    sizes = {name: paper.size(name) for name in paper.data}
    datasets, rejected = load_datasets(paper.data, data_dir, paper.options, sizes)
    return datasets or {STAND_IN: paper.stand_in(seed)}, rejected


def _user_dataset(
    paper: Study, data: object, random: object, data_dir: Any
) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Load the user's data; the name of a data set of the paper runs the paper on that one."""
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
    problem = size_problem(loaded, paper.size(loaded.name)) if loaded.name in paper.data else ""
    return {loaded.name: loaded}, {loaded.name: problem} if problem else {}


def _wanted(
    paper: Study, claims: Sequence[str] | None, evidence: Sequence[str] | None
) -> list[Claim]:
    """Return the claims that are asked for, with the evidence that is asked for."""
    known = {claim.key: claim for claim in paper.claims}
    for key in claims or ():
        if key not in known:
            raise unknown_name("claim", key, known)
    wanted = [claim for claim in paper.claims if claims is None or claim.key in set(claims)]
    if evidence is None:
        return wanted
    kinds = {choose("evidence", kind, EVIDENCE_KINDS) for kind in evidence}
    parts = [
        replace(claim, evidence=tuple(one for one in claim.evidence if one.kind in kinds))
        for claim in wanted
    ]
    return [claim for claim in parts if claim.evidence]


def _check(claim: Claim, evidence: Evidence, lab: Lab, is_user_data: bool) -> list[Verdict]:
    """Check a claim by one piece of evidence on each data set that the lab has for it."""
    data, verdict, check = " or ".join(evidence.data), NOT_CHECKABLE, evidence.check
    places = _where(claim, evidence, lab, is_user_data)
    if check is not None and places:
        return [_verdict(claim, evidence, check, rule, lab, name) for name, rule in places]
    if check is None:
        why = evidence.needs
    elif not evidence.data:
        data, why = evidence.source, "is not about a particular data set"
    else:
        why = "; ".join(lab.rejected[name] for name in evidence.data if name in lab.rejected)
        if why or not lab.is_other_data:
            verdict = NO_DATA
        why = why or (
            "is about the paper's own data"
            if lab.is_other_data
            else f"needs {data}, which the data folder does not have"
        )
    return [Verdict(claim=claim, evidence=evidence, data=data, verdict=verdict, why=why)]


def _verdict(
    claim: Claim, evidence: Evidence, check: Check, rule: Rule, lab: Lab, dataset_name: str
) -> Verdict:
    """Check a claim on one data set. If the check raises an error, the other claims go on."""
    data = dataset_name or evidence.source
    try:
        return judge(claim, evidence, rule, data, check(lab, dataset_name))
    except WorkersError:  # no claim is to blame for it
        raise
    except MissingDataError as problem:
        verdict, why = NO_DATA, _reason(problem)
    except (UndefinedError, SettingError) as problem:  # as where the threshold is missing
        verdict, why = NOT_CHECKABLE, _reason(problem)
    except Exception as problem:
        verdict, why = FAILED, _reason(problem)
    return Verdict(claim=claim, evidence=evidence, data=data, verdict=verdict, why=why, rule=rule)


def _where(
    claim: Claim, evidence: Evidence, lab: Lab, is_user_data: bool
) -> list[tuple[str, Rule]]:
    """Return the data sets on which a claim is checked, with what agrees there."""
    if not evidence.data:
        return [] if is_user_data and lab.is_other_data else [("", evidence.rule)]
    if lab.is_other_data:
        rule = claim.question_rule(evidence)
        return [(name, rule) for name in lab.datasets if rule is not None]
    return [(name, evidence.rule) for name in evidence.data if name in lab.datasets]


def _reason(problem: Exception) -> str:
    """Return the reason of a failure in a line."""
    text = last_line(str(problem))
    return text if isinstance(problem, UnskewError) else f"{type(problem).__name__}: {text}"


def _places(paper: Study, lab: Lab, is_user_data: bool) -> list[tuple[Exhibit, str]]:
    """Return the exhibits to draw, each with its data set; on user data those of the data only."""
    places: list[tuple[Exhibit, str]] = []
    for exhibit in paper.exhibits:
        if not exhibit.data:
            places += [] if is_user_data and lab.is_other_data else [(exhibit, "")]
        elif lab.is_other_data:
            places += [(exhibit, name) for name in lab.datasets if exhibit.on_other_data]
        else:
            places += [(exhibit, name) for name in exhibit.data if name in lab.datasets]
    return places


def _card(paper: Study, lab: Lab) -> dict[str, Any]:
    pieces = [evidence for claim in paper.claims for evidence in claim.evidence]
    files = dict.fromkeys(file for evidence in pieces for file in evidence.files)
    return {
        "study": paper.name,
        "reference": paper.reference,
        "datasets": ", ".join(lab.datasets),
        "released": [file for file in files if catalog.find_released(file, lab.folder)],
        "data": {
            name: {
                "ratings": len(one.ratings),
                "users": len(one.ratings.users),
                "items": len(one.ratings.items),
                "fingerprint": one.ratings.fingerprint,
                "random": None if one.random is None else one.random.fingerprint,
            }
            for name, one in lab.datasets.items()
        },
        "not the paper's": dict(lab.rejected),
        "left out": {f"{name} ({of})": why for (of, name), why in lab.failures.items()},
        "amounts": dict(lab.amounts),
        "quick": lab.quick,
        "seed": lab.seed,
        "liked": lab.liked,
        "versions": versions(),
    }


def _command(
    paper: Study,
    lab: Lab,
    is_user_data: bool,
    claims: Sequence[str] | None,
    evidence: Sequence[str] | None,
) -> str:
    """Return the command that writes the same page."""
    words = ["unskew study run", paper.name]
    if is_user_data:
        name = next(iter(lab.datasets))
        words += ["--data", shlex.quote(name)]
        words += ["--random FILE"] if lab.is_other_data and lab.data(name).random else []
    elif lab.is_other_data:
        words.append("--stand-in")
    usual = choose_amounts(paper.amounts, lab.quick, None)
    if lab.quick != (lab.is_other_data and not is_user_data):
        words.append("--quick" if lab.quick else "--full")
    for name, value in lab.amounts.items():
        words += [f"--amount {name}={value}"] if value != usual[name] else []
    words += ["--claims " + ",".join(claims)] if claims is not None else []
    words += ["--evidence " + ",".join(evidence)] if evidence is not None else []
    words += [f"--liked {lab.liked:g}"] if lab.liked is not None else []
    return " ".join([*words, f"--seed {lab.seed}"])


def overview(data_dir: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """Return what every study can do with the data in the data folder: a row each."""
    rows = []
    home = data_folder(data_dir)
    for name in STUDIES:
        paper = find_study(name)
        there = [one for one in paper.data if is_there(DATASETS[one], data_dir)]
        able = [
            (claim.key, evidence.kind)
            for claim in paper.claims
            for evidence in claim.evidence
            if _is_possible(claim, evidence, there, home)
        ]
        rows.append(
            {
                "study": name,
                "title": paper.title,
                "at hand": ", ".join(there) or STAND_IN,
                "missing": ", ".join(one for one in paper.data if one not in there),
                "claims": len(paper.claims),
                "checkable": len({key for key, _ in able}),
                **{kind: sum(one == kind for _, one in able) for kind in EVIDENCE_KINDS},
            }
        )
    return pl.DataFrame(rows)


def _is_possible(claim: Claim, evidence: Evidence, there: Sequence[str], home: Path) -> bool:
    """Return whether a claim can be checked with the data sets and files that are there."""
    if evidence.check is None:
        return False
    if not all(catalog.find_released(file, home) for file in evidence.files):
        return False
    if not evidence.data:
        return True
    return any(one in there for one in evidence.data) or (
        not there and claim.question_rule(evidence) is not None
    )


def list_claims(name: str, data_dir: str | os.PathLike[str] | None = None) -> pl.DataFrame:
    """Return the claims of a study: a row per piece of evidence, with what it needs."""
    paper, home = find_study(name), data_folder(data_dir)
    there = [one for one in paper.data if is_there(DATASETS[one], data_dir)]
    rows = [
        {
            "claim": claim.key,
            "place": claim.place,
            "statement": claim.statement,
            "needs": one.needs or ", ".join([*one.data, *one.files]) or one.source,
            "evidence": one.kind,
            "agrees": str(one.rule),
            "of your data": claim.question_rule(one) is not None,
            "checkable": _is_possible(claim, one, there, home),
        }
        for claim in paper.claims
        for one in claim.evidence
    ]
    return pl.DataFrame(rows)
