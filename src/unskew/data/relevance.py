"""`Relevance`: how a rating becomes liked or disliked, and which gain and loss it carries."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unskew.arrays import F64, Mask, frozen
from unskew.checks import checked, choose, is_number
from unskew.data.ratings import Ratings
from unskew.errors import DataError, SettingError, Spelling
from unskew.report.text import counted

Rule = str | Mapping[float, float] | Callable[[F64], F64]

GAINS = ("liked-only", "rating", "binary", "levels", "exponential", "burges", "integer")
LOSSES = ("levels", "binary")
DEFAULT_GAIN, DEFAULT_LOSS = "liked-only", "levels"
"""What a rating is worth, and what it costs, where nothing is stated."""


@dataclass(frozen=True)
class Relevance:
    """How a rating becomes *liked* or *disliked*, and which gain and loss it carries.

    Liked and gain are separate: valcarce2018, like trec_eval, gives gain to disliked items too,
    which the default does not.

    Parameters
    ----------
    liked
        The smallest rating that is liked (`rating >= liked`).
    above
        Instead of `liked`: ratings strictly above this value are liked.
    gain
        `liked-only` (default: the rating of a liked item, which must be above 0; 0 for a disliked
        one), `rating` (the rating of every judged item, as trec_eval), `binary` (1 for liked),
        `levels` (1 for the lowest liked level, 2 for the next, …: rating - liked + 1),
        `exponential` (2^levels - 1 for liked, as RankSys), `burges` (2^rating - 1 for every judged
        item), `integer` (the whole part of the rating, as trec_eval reads a qrels file), a mapping
        from rating to gain, or a function of an array.
    loss
        `levels` (default: liked - rating for disliked, so 3, 2, 1 stars cost 1, 2, 3 when
        liked=4; with `above`, above + 1 - rating), `binary`, a mapping, or a function.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew import Relevance
    >>> rule = Relevance(liked=4, gain="levels")
    >>> rule.gains(np.array([1.0, 3, 4, 5])).tolist()
    [0.0, 0.0, 1.0, 2.0]
    >>> rule.losses(np.array([1.0, 3, 4, 5])).tolist()
    [3.0, 1.0, 0.0, 0.0]
    """

    liked: float | None = None
    above: float | None = None
    gain: Rule = DEFAULT_GAIN
    loss: Rule = DEFAULT_LOSS

    def __post_init__(self) -> None:
        if (self.liked is None) == (self.above is None):
            raise SettingError(
                "choose what counts as liked: either liked=4 (4 and more) or above=3 (more than "
                f"3); got liked={self.liked}, above={self.above}"
            )
        for name in ("liked", "above"):
            value = getattr(self, name)
            if value is not None and not _is_finite(value):
                raise SettingError(f"{name} must be a number, such as 4; got {value!r}")
        _check_rule("gain", self.gain, GAINS)
        _check_rule("loss", self.loss, LOSSES)

    @classmethod
    def paper(cls, name: str) -> Relevance:
        """Return the rule of one of the five papers, on 1-5 stars.

        `bellogin2017`, `valcarce2018`, `carraro2020`, `mena2021`, `mena2021-cm100k` (scale 1-4)
        or `castells2018`.

        Examples
        --------
        >>> from unskew import Relevance
        >>> Relevance.paper("bellogin2017")
        Relevance(liked=5, above=None, gain='liked-only', loss='levels')
        """
        return PAPERS[choose("paper", name, PAPERS)]

    @property
    def threshold(self) -> float:
        """The value in `liked` or `above`."""
        return float(self.liked if self.liked is not None else self.above or 0.0)

    def is_liked(self, value: F64) -> Mask:
        """Tell which ratings are liked."""
        liked: Mask = value >= self.threshold if self.liked is not None else value > self.threshold
        return liked

    def gains(self, value: F64) -> F64:
        """Return the gain of each rating."""

        def levels() -> F64:
            base = self.threshold if self.liked is None else self.threshold - 1
            return np.where(self.is_liked(value), value - base, 0.0)

        named: dict[str, Callable[[], F64]] = {
            "rating": lambda: value,
            "liked-only": lambda: self._liked_ratings(value),
            "binary": lambda: self.is_liked(value).astype(np.float64),
            "levels": levels,
            "exponential": lambda: np.exp2(levels()) - 1,
            "burges": lambda: np.exp2(value) - 1,
            "integer": lambda: np.trunc(value),
        }
        with np.errstate(over="ignore"):  # infinite gains are refused
            return _apply("gain", self.gain, value, named)

    def _liked_ratings(self, value: F64) -> F64:
        """Return the ratings of liked items, 0 for others; refuse a liked item without a gain."""
        liked = self.is_liked(value)
        worthless = liked & (value <= 0)
        if worthless.any():
            raise DataError(
                f"the rating {value[int(np.argmax(worthless))]:g} is liked, but a gain must be "
                f"above 0 ({counted(int(worthless.sum()), 'row')}); choose another gain, such as ",
                Spelling("gain='levels' or 'binary'", "--gain levels or binary"),
            )
        return np.where(liked, value, 0.0)

    def losses(self, value: F64) -> F64:
        """Return the loss of each rating."""

        def levels() -> F64:
            base = self.threshold + 1 if self.liked is None else self.threshold
            return np.where(self.is_liked(value), 0.0, base - value)

        named: dict[str, Callable[[], F64]] = {
            "levels": levels,
            "binary": lambda: (~self.is_liked(value)).astype(np.float64),
        }
        return _apply("loss", self.loss, value, named)

    def describe(self) -> dict[str, Any]:
        """Return the rule as plain values, for a card."""

        def plain(rule: Rule) -> Any:
            if isinstance(rule, Mapping):
                return {str(key): float(rule[key]) for key in rule}
            return rule if isinstance(rule, str) else getattr(rule, "__name__", repr(rule))

        name = "liked" if self.liked is not None else "above"
        return {name: self.threshold, "gain": plain(self.gain), "loss": plain(self.loss)}

    def _repr_html_(self) -> str:
        from unskew.report.notebook_view import card

        described = self.describe()
        level = f"{self.threshold:g}"
        facts = [
            ("liked", f"{level} and more" if self.liked is not None else f"more than {level}"),
            ("gain", str(described["gain"])),
            ("loss", str(described["loss"])),
        ]
        return card("Relevance", "how a rating is taken", facts)

    def __str__(self) -> str:
        facts = self.describe()
        sign = f">= {self.liked:g}" if self.liked is not None else f"> {self.above:g}"
        return f"liked: rating {sign}; gain {facts['gain']}; loss {facts['loss']}"


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _check_rule(what: str, rule: object, names: tuple[str, ...]) -> None:
    """Refuse what is neither a name, nor a mapping of numbers, nor a function."""
    if isinstance(rule, str):
        choose(what, rule, names)
    elif isinstance(rule, Mapping):
        odd = [pair for pair in rule.items() if not all(map(_is_finite, pair))]
        if odd:
            raise SettingError(
                f"the {what} mapping must be from rating to number, such as {{5: 2, 4: 1}}; got "
                f"{odd[0][0]!r}: {odd[0][1]!r}"
            )
    elif not callable(rule):
        raise SettingError(
            f"{what} must be one of {', '.join(names)}, a mapping from rating to {what}, or a "
            f"function of an array; got {rule!r}"
        )


def as_relevance(relevance: Relevance | str) -> Relevance:
    """Return a rule as it is, or that of a paper by its name.

    Examples
    --------
    >>> from unskew.data.relevance import as_relevance
    >>> as_relevance("mena2021")
    Relevance(liked=4, above=None, gain='levels', loss='levels')
    """
    if isinstance(relevance, Relevance):
        return relevance
    if isinstance(relevance, str):
        return Relevance.paper(relevance)
    raise SettingError(
        f"relevance must be us.Relevance(…) or the name of a paper ({', '.join(PAPERS)}), got "
        f"{relevance!r}"
    )


def stated_relevance(
    liked: float | None,
    above: float | None,
    gain: Rule,
    loss: Rule,
    relevance: Relevance | str | None = None,
) -> Relevance | None:
    """Return the rule that is given in parts or as a whole; None where no threshold is given."""
    if relevance is not None:
        if liked is not None or above is not None or (gain, loss) != (DEFAULT_GAIN, DEFAULT_LOSS):
            raise SettingError("give either relevance or liked/above/gain/loss, not both")
        return as_relevance(relevance)
    if liked is None and above is None:
        return None
    return Relevance(liked, above, gain, loss)


def _apply(what: str, rule: Rule, value: F64, named: dict[str, Callable[[], F64]]) -> F64:
    """Turn ratings into gains or losses by a rule, and check what comes out."""
    if isinstance(rule, str):
        result = named[rule]()
    elif isinstance(rule, Mapping):
        levels, inverse = np.unique(value, return_inverse=True)
        missing = [level for level in levels.tolist() if level not in rule]
        if missing:
            raise DataError(
                f"the {what} mapping has no entry for the rating {missing[0]:g} (it has "
                f"{', '.join(f'{float(key):g}' for key in rule)}); add it, 0 if it has no {what}"
            )
        result = np.array([float(rule[level]) for level in levels.tolist()])[inverse]
    else:
        result = np.asarray(rule(value), dtype=np.float64)
        if result.shape != value.shape:
            raise SettingError(f"the {what} function must return one number per rating")
    if result.size and not (result.min() >= 0 and result.max() < np.inf):  # NaN fails both
        bad = ~((result >= 0) & (result < np.inf))
        example = value[int(np.argmax(bad))]
        raise DataError(
            f"{what} must be a number from 0 up, but the rule {rule!r} gives "
            f"{result[int(np.argmax(bad))]:g} for the rating {example:g} "
            f"({counted(int(bad.sum()), 'row')}); choose another {what}, such as ",
            Spelling(f"{what}='binary' or a mapping", f"--{what} binary or a mapping"),
        )
    return np.ascontiguousarray(result, dtype=np.float64)


PAPERS: dict[str, Relevance] = {
    "bellogin2017": Relevance(liked=5, gain="liked-only"),
    "valcarce2018": Relevance(liked=4, gain="integer"),
    "carraro2020": Relevance(above=3, gain="exponential"),
    "mena2021": Relevance(liked=4, gain="levels"),
    "mena2021-cm100k": Relevance(liked=3, gain="levels"),
    "castells2018": Relevance(liked=4, gain="binary"),
}


@checked
def levels(ratings: Ratings, liked: float) -> Ratings:
    """Return the ratings as levels: 0 for what is disliked, then 1, 2, … from `liked` up.

    What systems learn from in mena2021. A level of 1 is liked: `us.Relevance(liked=1)`.

    Parameters
    ----------
    ratings
        What is read; users, items and times stay.
    liked
        The smallest rating that is liked.

    Examples
    --------
    >>> import unskew as us
    >>> ratings = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
    >>> us.data.levels(ratings, liked=4).value
    array([2., 0., 1.])
    """
    return replace(ratings, value=frozen(np.maximum(ratings.value - liked + 1, 0.0)))


_MOST_VALUES = 11


def usual_threshold(value: F64) -> tuple[float, str]:
    """Return the smallest liked rating of a scale that has a usual one, and the note on it.

    0 and 1, and -1 and 1, are dislikes and likes; on 1 to 5 stars the papers take 4. On all other
    scales nothing is assumed: the error proposes the upper half.
    """
    kinds = np.unique(value)
    if np.isin(kinds, (0.0, 1.0)).all():
        return 1.0, "liked: every value from 1 up (assumed)"
    if np.isin(kinds, (-1.0, 0.0, 1.0)).all():
        return 1.0, "liked: 1, and not -1 or 0 (assumed)"
    low, high = float(kinds[0]), float(kinds[-1])
    if low >= 0.5 and high == 5:
        return 4.0, "liked: ratings from 4 up (assumed from the 1-5 scale; set it with liked=…)"
    proposal = upper_half(kinds)
    zero = ""
    if low == 0 and high > 1:
        zero = "; if 0 means that there is no rating, remove these rows first"
    raise SettingError(
        f"what counts as liked? Ratings are {described(value)}; give the smallest liked rating "
        "with ",
        Spelling(f"liked={proposal:g}", f"--liked {proposal:g}"),
        " (the upper half of this scale), or another; if they count events and every one is a "
        "like, state ",
        Spelling("feedback='implicit'", "--feedback implicit"),
        zero,
    )


def upper_half(kinds: F64) -> float:
    """Return the smallest of some values above the middle of their range.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data.relevance import upper_half
    >>> upper_half(np.array([1.0, 2, 3, 4])), upper_half(np.arange(-10, 10.5))
    (3.0, 1.0)
    """
    middle = (float(kinds.min()) + float(kinds.max())) / 2
    above = kinds[kinds > middle]
    return float(above.min()) if above.size else float(kinds.max())


def described(value: F64) -> str:
    """Return the values of ratings with their numbers, or their range where they are many.

    Examples
    --------
    >>> import numpy as np
    >>> from unskew.data.relevance import described
    >>> described(np.array([1.0, 1, 2]))
    '1 (2 rows) and 2 (1 row)'
    """
    kinds, counts = np.unique(value, return_counts=True)
    if kinds.size > _MOST_VALUES:
        return f"from {kinds[0]:g} to {kinds[-1]:g}"
    labels = [
        f"{kind:g} ({count:,} row{'s' * (count > 1)})"
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True)
    ]
    return " and ".join([", ".join(labels[:-1]), labels[-1]]) if len(labels) > 1 else labels[0]


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


@cache
def conventions() -> dict[str, Paper]:
    """Return the conventions of every paper, by its name."""
    text = Path(__file__).with_name("papers.toml").read_text(encoding="utf-8")
    return {
        name: Paper(relevance=PAPERS[name], **fields)
        for name, fields in tomllib.loads(text).items()
    }


def paper_of(relevance: object) -> Paper:
    """Return the conventions of a paper that is named; ours for a rule or nothing.

    Examples
    --------
    >>> from unskew.data.relevance import paper_of
    >>> paper_of("carraro2020").users, paper_of(None).users
    ('with-relevant', 'with-test')
    """
    if not isinstance(relevance, str) or not relevance:
        return OURS
    return conventions()[choose("paper", relevance, PAPERS)]


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


def relevance_for(
    tests: Ratings,
    liked: float | None = None,
    above: float | None = None,
    gain: Rule = DEFAULT_GAIN,
    loss: Rule = DEFAULT_LOSS,
    relevance: Relevance | str | None = None,
    usual: float | None = None,
) -> tuple[Relevance, list[str]]:
    """Return the relevance rule, and a note where the threshold had to be assumed.

    `relevance` is for those who give the rule as a whole; `usual` is the threshold of a data set
    that has one. On implicit feedback the gain is binary where nothing else is stated: a pair
    counts once, however often it occurs.
    """
    stated = stated_relevance(liked, above, gain, loss, relevance)
    if tests.implicit and relevance is None:
        notes = [] if stated else ["liked: every pair that occurs (implicit feedback)"]
        rule = stated or Relevance(float(tests.value.min(initial=1)), None, gain, loss)
        # Repeated events do not add to the gain of an item.
        return (replace(rule, gain="binary") if rule.gain == DEFAULT_GAIN else rule), notes
    if stated is not None:
        return stated, []
    if usual is not None:
        rule = Relevance(usual, None, gain, loss)
        return rule, [f"liked: ratings from {usual:g} up (usual for these data)"]
    if "pooled" in tests.tags:
        liked, note = 1.0, "liked: every grade from 1 up (assumed)"
    else:
        liked, note = usual_threshold(tests.value)
    return Relevance(liked, None, gain, loss), [note]


def check_likes(tests: Ratings, rule: Relevance) -> None:
    """Refuse test ratings of which none is liked: every score would be 0.

    In TREC qrels that may be so, and trec_eval has values for it.
    """
    value = tests.value
    if "pooled" in tests.tags or not value.size or rule.is_liked(value).any():
        return
    words = f"{'from' if rule.liked is not None else 'above'} {rule.threshold:g}"
    proposal = upper_half(np.unique(value))
    raise DataError(
        f"no rating is liked: ratings are {described(value)}, and liked are those {words}; give "
        "another threshold, such as ",
        Spelling(f"liked={proposal:g}", f"--liked {proposal:g}"),
    )
