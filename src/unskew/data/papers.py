"""`Paper`: what each of the five papers does where others do otherwise. One table, data only.

`relevance="mena2021"` sets all of it wherever it has a meaning; what is stated beside it wins. The
rule alone, without the rest, is `us.Relevance.paper("mena2021")`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from unskew.checks import choose
from unskew.data.relevance import PAPERS, Relevance
from unskew.errors import DataError, Spelling

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The conventions of a paper; the defaults are ours."""

    relevance: Relevance | None = None
    users: str = "with-test"
    """Which users are averaged, see `Scores.mean`."""
    undefined: str = "zero"
    """What undefined values count."""
    targets: str | None = None
    """The candidate items of a list, by the name of the design; training items are left out."""
    depth: int | None = None
    """How many items of a list are looked at."""
    metrics: Mapping[str, str] = field(default_factory=dict)
    """By name, with the prefix `condensed-` where it has one: the settings that the paper means."""
    not_set: str = ""
    """What belongs to splits, systems or tests, and where that is set."""

    def reading(self, name: str, *, condensed: bool) -> str | None:
        """Return a metric of this name as the paper means it; None where it does not use it."""
        return self.metrics.get(f"condensed-{name}" if condensed else name)


OURS = Paper()
"""Where no paper is named."""
PER_K, ALL_LIKED, CUT = "P(per=k)", "Recall(per=all)", "nDCG(ideal=cut)"
_MENA = {"P": PER_K, "Recall": ALL_LIKED, "nDCG": CUT, "condensed-P": "condensed-P(per=list)"}
_MENA_NOT_SET = (
    "5 random folds (`splits.Random`, `splits.FamiliarTraining`); systems "
    "(`unskew_studies.preset`), which learn from `data.levels`; nDCG and RR leave out users "
    'without a list (evaluate them with `users="both"`), condensed P those without a rated item in '
    "it"
)

CONVENTIONS: dict[str, Paper] = {
    "bellogin2017": Paper(
        relevance=PAPERS["bellogin2017"],
        users="all",
        targets="test-items",
        metrics={
            "P": PER_K,
            "Recall": ALL_LIKED,
            "AP": "AP(per=all)",
            "nDCG": CUT,
            "infAP": "infAP(pool=all)",
            "SR": "SR(gamma=1,mean=users)",
        },
        not_set="5 random folds (`splits.Random`), test sets of equal size per item, rounded to "
        'the nearest (`splits.Uniform(rounding="nearest")`); 1R and P1R '
        "(`targets.OneRelevant`, `targets.Percentiles`); systems (`unskew_studies.preset`); the "
        "order of equal scores, which the paper does not state",
    ),
    "valcarce2018": Paper(
        relevance=PAPERS["valcarce2018"],
        targets="test-items",
        depth=100,
        metrics={
            "P": PER_K,
            "Recall": ALL_LIKED,
            "AP": "AP(per=all)",
            "nDCG": CUT,
            "infAP": "infAP(pool=all)",
        },
        not_set="a fifth of each user's ratings, rounded down (`splits.PerUser`); smaller test "
        "sets, rounded half to even (`stats.robustness`); sums over ordered pairs, 10,000 "
        "permutations (`stats.discriminative_power`); systems (`unskew_studies.preset`); the "
        "order of equal scores: its values follow ascending ids, our default",
    ),
    "carraro2020": Paper(
        relevance=PAPERS["carraro2020"],
        users="with-relevant",
        targets="all-items",
        metrics={"P": PER_K, "Recall": ALL_LIKED, "AP": "AP(per=min)", "nDCG": CUT},
        not_set="parts of the ratings, rounded down, smoothing of the weights (0 becomes 0.0001) "
        "and systems (`auditing.intervention_study`); the order of equal scores, by internal "
        "numbers of its library",
    ),
    "mena2021": Paper(
        relevance=PAPERS["mena2021"],
        targets="train-items",
        metrics=_MENA,
        not_set=f"{_MENA_NOT_SET}; the gains behind its printed nDCG, which a slip changed",
    ),
    "mena2021-cm100k": Paper(
        relevance=PAPERS["mena2021-cm100k"],
        targets="train-items",
        metrics=_MENA,
        not_set=_MENA_NOT_SET,
    ),
    "castells2018": Paper(
        relevance=PAPERS["castells2018"],
        users="all",
        targets="all-items",
        metrics={"P": PER_K, "Recall": ALL_LIKED},
        not_set="splits, strata and training within them (`auditing.published_designs`); "
        "smoothing of the average rating (`recommend.SmoothedAverage`); short lists are filled "
        'at random (`targets.AllItems(shortfall="fill")`)',
    ),
}


def paper_of(relevance: object) -> Paper:
    """Return the conventions of a paper that is named; ours for a rule or nothing.

    Examples
    --------
    >>> from unskew.data.papers import paper_of
    >>> paper_of("carraro2020").users, paper_of(None).users
    ('with-relevant', 'with-test')
    """
    if not isinstance(relevance, str) or not relevance:
        return OURS
    return CONVENTIONS[choose("paper", relevance, CONVENTIONS)]


def paper_notes(name: str) -> tuple[str, ...]:
    """Say what a paper sets, for the notes of a result; nothing where none is named."""
    if not name:
        return ()
    paper = paper_of(name)
    undefined = "count as 0" if paper.undefined == "zero" else "are left out"
    depth = "" if paper.depth is None else f"the first {paper.depth} items of each list; "
    metrics = ", ".join(paper.metrics.values())
    return (
        f"relevance={name!r} sets: users {paper.users}; undefined values {undefined}; {depth}"
        f"{metrics}; candidate items {paper.targets} (docs/conventions.md)",
    )


@contextmanager
def hint_at_candidates(name: str) -> Iterator[None]:
    """Add to an error about target items that a paper asks for them, where one is named."""
    try:
        yield
    except DataError as problem:
        if not name:
            raise
        raise DataError(
            *problem.args,
            f"; relevance={name!r} asks for the candidate items {paper_of(name).targets} unless "
            "targets=… states others; for its rule alone give ",
            Spelling(f"relevance=us.Relevance.paper({name!r})", "--liked, --gain and --loss"),
        ) from None


def candidate_items(relevance: object, targets: T | None, train: object) -> T | str | None:
    """Return the design that is stated, else that of the paper, where training is known."""
    return targets if targets is not None or train is None else paper_of(relevance).targets
