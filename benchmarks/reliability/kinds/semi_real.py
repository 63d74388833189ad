"""Semi-real worlds: what real people like, and exposure that is simulated.

Coat, Yahoo! R3 and CM100k hold ratings of randomly drawn items. A logistic model of them
(`reliability.preferences`) gives each user's chance to like each item; the worlds take it for the
truth. It is smoother than people are. Where users have few random ratings (ten in R3, sixteen in
Coat), taste is seen in what they chose to rate: the rank that EASE, trained on the chosen ratings,
gives an item predicts liking in the random ones far beyond users' generosity and items' quality.
Nothing of the data is in the project: they are found through UNSKEW_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

import unskew as us
from reliability.ingredients import Draft, rated
from reliability.kinds.displayed import best_and_others
from reliability.known_world import KnownWorld
from reliability.preferences import Pairs, Spread, fitted_chances
from unskew.arrays import F64, I32
from unskew.data.formats.catalog import is_there, named
from unskew.data.ratings import Ratings


@dataclass(frozen=True, kw_only=True)
class Source:
    """Real ratings, and how chances to like are fitted on them."""

    data: str
    """As `unskew.load` takes it: the random ratings, and those that users chose."""
    title: str
    spread: Spread
    """Of a small grid the one with the least loss on random ratings that were held out, as for the
    two settings below."""
    choice: float
    """The power of an item's rank with which the chance falls that a user chooses to rate it: the
    best one for chosen ratings that were held out from the training of what ranks them."""
    by_rank: bool = False
    """Whether the rank by a recommender that is trained on the chosen ratings is a hint."""
    with_chosen: bool = False
    """Whether the chosen ratings are fitted, too, at a level of their own."""
    users: tuple[int, int] = (400, 900)
    items: tuple[int, int] = (300, 500)

    @property
    def entry(self) -> str:
        """The name of the data set."""
        return self.data.partition(":")[0]


SOURCES = {
    "coat": Source(
        data="coat",
        title="Coat",
        spread=Spread(user=1.5, item=0.7),
        choice=0.71,
        by_rank=True,
        with_chosen=True,
        users=(300, 450),
        items=(250, 300),
    ),
    "r3": Source(
        data="yahoo-r3",
        title="Yahoo! R3",
        spread=Spread(user=1.5, item=0.7),
        choice=0.88,
        by_rank=True,
        users=(600, 900),
    ),
    "cm100k": Source(
        data="cm100k:observed=familiar",
        title="CM100k",
        spread=Spread(user=1.2, item=0.6, taste=0.5, factors=4),
        choice=0.51,
    ),
}
STEPS = 12
"""Halvings of an interval of ratios."""
FAMILIAR = Spread(user=1.0, item=1.2, taste=0.5, factors=2)
"""Of the chance to know a song, in CM100k."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Preferences:
    """What is known of real people."""

    like: F64
    """[users, items]: the chance to like, of items drawn at random."""
    choice: F64
    """[users, items]: how often a pair is chosen to be rated, relative to others."""
    liked_share: float
    """Of chosen ratings."""


@dataclass(frozen=True, eq=False)
class _Parts:
    """The random and the chosen ratings of a data set under the same numbers."""

    data: us.Dataset

    @cached_property
    def ids(self) -> dict[str, np.ndarray]:
        """The users and the items of both parts."""
        parts = self.data.random, self.data.ratings
        return {
            axis: np.unique(np.concatenate([getattr(part, axis).values for part in parts]))
            for axis in ("users", "items")
        }

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are."""
        return self.ids["users"].size, self.ids["items"].size

    def numbers(self, part: Ratings, axis: str) -> I32:
        """Return the number of each user or item of a part."""
        values = getattr(part, axis).values.to_numpy()
        return np.searchsorted(self.ids[axis], values).astype(np.int32)

    def pairs(self, part: Ratings, is_chosen: bool) -> Pairs:
        """Return which pairs of a part are liked."""
        return Pairs(
            self.numbers(part, "users")[part.user],
            self.numbers(part, "items")[part.item],
            part.value >= self.data.liked,
            np.full(len(part), is_chosen),
            self.shape,
        )

    @property
    def random(self) -> Pairs:
        """Pairs drawn at random."""
        assert self.data.random is not None
        return self.pairs(self.data.random, False)

    @property
    def chosen(self) -> Pairs:
        """Pairs that users chose."""
        return self.pairs(self.data.ratings, True)

    @property
    def together(self) -> Pairs:
        """Pairs of both parts."""
        columns = [
            np.concatenate([getattr(part, name) for part in (self.random, self.chosen)])
            for name in ("user", "item", "answer", "is_chosen")
        ]
        return Pairs(*columns, self.shape)

    def log_ranks(self) -> F64:
        """Return minus the logarithm of each item's rank by EASE, trained on the chosen ratings."""
        chosen = self.data.ratings
        rows, columns = (self.numbers(chosen, axis) for axis in ("users", "items"))
        score = np.full(self.shape, -np.inf)
        every = np.arange(rows.size, dtype=np.int32)
        score[np.ix_(rows, columns)] = us.recommend.EASE().fit(chosen, rng=0).score(every)
        order = np.argsort(-score, axis=1, kind="stable")
        rank = np.empty(self.shape)
        np.put_along_axis(rank, order, np.arange(1.0, self.shape[1] + 1)[None, :], axis=1)
        result = -np.log(rank)
        return result - result.mean()


def missing(source: str) -> str:
    """Say what is missing for the worlds of a source; nothing where its data are at hand.

    Parameters
    ----------
    source
        One of `SOURCES`.
    """
    entry = named(SOURCES[source].entry)
    if is_there(entry):
        return ""
    return (
        f"{SOURCES[source].title} is not in the folder that UNSKEW_DATA names: "
        f"kinds of worlds that need it are left out."
    )


@cache
def preferences(source: str) -> Preferences:
    """Fit what the people of a data set like, and how they choose what they rate.

    Users are as active as they are, and choose an item by its rank with EASE, trained on the chosen
    ratings.

    Parameters
    ----------
    source
        One of `SOURCES`.
    """
    settings = SOURCES[source]
    parts = _Parts(us.load(settings.data))
    pairs = parts.together if settings.with_chosen else parts.random
    hint = parts.log_ranks()
    like = fitted_chances(pairs, settings.spread, hint=hint if settings.by_rank else None)
    chosen = parts.chosen
    choice = np.exp(settings.choice * hint)
    activity = (np.bincount(chosen.user, minlength=len(like)) + 0.5) / choice.sum(axis=1)
    return Preferences(
        like=like, choice=activity[:, None] * choice, liked_share=float(chosen.answer.mean())
    )


@cache
def familiarity() -> tuple[F64, F64, F64]:
    """Fit the chances of CM100k to know a song, to like a known one, and to like an unknown one."""
    data = us.load(SOURCES["cm100k"].entry)
    ratings, known = data.ratings, data.ratings.tags["familiar"].to_numpy()
    shape = len(ratings.users), len(ratings.items)
    pairs = Pairs(ratings.user, ratings.item, known, np.zeros(len(ratings), np.bool_), shape)
    liked = Pairs(ratings.user, ratings.item, ratings.value >= data.liked, known, shape)
    spread = SOURCES["cm100k"].spread
    return (
        fitted_chances(pairs, FAMILIAR),
        fitted_chances(liked, spread, chosen=True),
        fitted_chances(liked, spread),
    )


@dataclass(frozen=True, eq=False)
class Sample:
    """The users and items of a data set that make a world."""

    users: I32
    items: I32

    @classmethod
    def of(cls, draft: Draft, shape: tuple[int, int]) -> Sample:
        """Draw users with replacement, as a population, and items without."""
        users = draft.rng.integers(shape[0], size=draft.population)
        return cls(users.astype(np.int32), draft.rng.permutation(shape[1])[: draft.items])

    def __call__(self, matrix: F64) -> F64:
        """Return the sample of a matrix of all users and items."""
        result: F64 = matrix[np.ix_(self.users, self.items)]
        return result


def semi_real(draft: Draft, source: str, exposure: str) -> KnownWorld:
    """Make a world of what real people like, and of simulated exposure.

    Parameters
    ----------
    draft
        Its size and its generator.
    source
        One of `SOURCES`.
    exposure
        One of `EXPOSURES`.
    """
    real = preferences(source)
    sample = Sample.of(draft, real.like.shape)
    like = sample(real.like)
    per_user = draft.between(20, 32)
    if exposure == "selection":
        choice = sample(real.choice)
        if_disliked = _if_disliked(like, choice, per_user, real.liked_share)
        return draft.world(like, rated(like, choice, per_user, if_disliked=if_disliked))
    return draft.world(like, rated(like, EXPOSURES[exposure](draft, like), per_user=per_user))


def _if_disliked(like: F64, choice: F64, per_user: float, share: float) -> float:
    """Return how often disliked pairs are rated, so that this share of ratings are likes."""
    # Every eighth user is enough.
    like, choice = like[::8], choice[::8]
    low, high = 0.01, 10.0
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        chances = rated(like, choice, per_user, if_disliked=middle)
        liked, disliked = like * chances.if_liked, (1 - like) * chances.if_disliked
        if liked.sum() < share * (liked.sum() + disliked.sum()):
            high = middle
        else:
            low = middle
    return low


def familiar(draft: Draft) -> KnownWorld:
    """Make a world in which people rate the songs of CM100k that they know.

    Parameters
    ----------
    draft
        Its size and its generator.
    """
    chance_known, like_known, like_unknown = familiarity()
    sample = Sample.of(draft, chance_known.shape)
    is_known = draft.rng.random(draft.shape) < sample(chance_known)
    like = np.where(is_known, sample(like_known), sample(like_unknown))
    exposure = draft.activity(0.4)[:, None] * is_known
    chances = rated(like, exposure, per_user=draft.between(14, 22))
    return draft.world(like, chances, known=is_known)


def _uniform(draft: Draft, _like: F64) -> F64:
    return np.outer(draft.activity(0.4), np.ones(draft.items))


def _display(draft: Draft, _like: F64) -> F64:
    return np.outer(draft.activity(), draft.popularity(draft.between(0.7, 1.0)))


def _quality(draft: Draft, like: F64) -> F64:
    order = np.argsort(np.argsort(-like.mean(axis=0)))
    return np.outer(draft.activity(), (order + 1.0) ** -draft.between(0.7, 1.0))


def _recommender(draft: Draft, like: F64) -> F64:
    return draft.activity()[:, None] * best_and_others(draft, like, explored=0.3)


EXPOSURES: dict[str, Callable[[Draft, F64], F64]] = {
    "uniform": _uniform,
    "display": _display,
    "quality": _quality,
    "recommender": _recommender,
}
"""By name: how much each pair is exposed."""
ABOUT = {
    "uniform": "What is exposed: everything alike. Who rates: everyone who is exposed.",
    "display": """What is exposed: items by a power law that has nothing to do with liking, to
        active users. Who rates: everyone who is exposed.""",
    "quality": """What is exposed: items by a power law in the order of how many like them, to
        active users. Who rates: everyone who is exposed.""",
    "recommender": """What is exposed: seven tenths of it is what an earlier recommender holds for
        best for each user, whose estimates have noise as large as taste; the rest is drawn at
        random. Who rates: everyone who is exposed.""",
    "selection": """What is exposed: what people look for themselves: an item the less, the farther
        down a recommender puts it that is trained on the ratings they chose to give. Who rates:
        users as active as they are; a disliked item in such a ratio to a liked one that as many
        ratings are likes as in those they chose to give.""",
}
FAMILIAR_ABOUT = """Semi-real: who likes what: songs of CM100k, by a logistic model of ratings of
    random songs, where those that a user knows are liked more. What is exposed: songs that a user
    knows, by a logistic model of who knows what. Who rates: everyone who knows a song."""


def about(source: str, exposure: str) -> str:
    """Say what a semi-real world is.

    Parameters
    ----------
    source
        One of `SOURCES`.
    exposure
        One of `ABOUT`.
    """
    settings = SOURCES[source]
    taste = "by what they chose to rate" if settings.by_rank else "by factors"
    text = (
        f"Semi-real: who likes what: people and items of {settings.title}, by a logistic model of"
    )
    text += f" ratings of random items, with taste {taste}. {ABOUT[exposure]}"
    return " ".join(text.split())
