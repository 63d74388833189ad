"""Every kind of worlds, by name: one function each, and one line in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from reliability.ingredients import Draft
from reliability.kinds import (
    displayed,
    easy,
    named_worlds,
    no_taste,
    own_systems,
    popularity,
    raters,
    semi_real,
    shapes,
    tastes,
)
from reliability.known_world import KnownWorld


@dataclass(frozen=True)
class Kind:
    """A kind of worlds, and what is stated of it before anything is audited."""

    name: str
    draw: Callable[[Draft], KnownWorld]
    about: str
    """In words: who likes what, what is exposed, who rates."""
    adversarial: bool = False
    """Whether a condition of statements about truth does not hold in its worlds."""
    where_better_is_visible: bool = False
    """Whether, by construction, a truly better system should be recognised as such here."""
    source: str = ""
    """Which real data its worlds need, one of `semi_real.SOURCES`; none unless named."""
    users: tuple[int, int] = (400, 900)
    items: tuple[int, int] = (250, 600)

    @property
    def missing(self) -> str:
        """What is missing for its worlds, as a sentence; empty where they can be made."""
        return semi_real.missing(self.source) if self.source else ""

    def __call__(self, seed: int) -> KnownWorld:
        """Make the world of a seed."""
        return self.draw(Draft.of(self.name, seed, users=self.users, items=self.items))


ADVERSARIAL = {"adversarial": True}
VISIBLE = {"where_better_is_visible": True}
TINY = {"users": (80, 150), "items": (100, 100)}

_TABLE = (
    ("taste", tastes.taste, VISIBLE),
    ("pop+taste", tastes.popularity_taste, VISIBLE),
    ("pop+taste+sel", tastes.popularity_taste_selection, VISIBLE),
    ("null", no_taste.null, {}),
    ("null+sel", no_taste.null_selection, {}),
    ("rasch", no_taste.rasch, {}),
    ("recsys", displayed.recommended, {}),
    ("recsys+sel", displayed.recommended_selection, {}),
    ("recsys+taste", displayed.recommended_other_taste, {}),
    ("recsys=taste", displayed.recommended_taste, VISIBLE),
    ("niche", no_taste.niche, {}),
    ("quality", no_taste.quality, VISIBLE),
    ("inverse", no_taste.inverse, {}),
    ("halo", displayed.halo, ADVERSARIAL),
    ("recsys*sel", displayed.recommended_times_selection, ADVERSARIAL),
    ("untuned-trap", tastes.untuned_trap, {}),
    ("cold-heavy", tastes.cold_heavy, {}),
    ("implicit-only", tastes.implicit_only, {}),
    ("tiny", tastes.tiny, TINY),
    ("equal-systems", own_systems.equal_systems, {}),
    ("near-equal-systems", own_systems.near_equal_systems, {}),
    ("popularity-inverted", tastes.popularity_inverted, {}),
    ("earlier-recommender", displayed.earlier_recommender, VISIBLE),
    ("graded-halo", displayed.graded_halo, ADVERSARIAL),
    ("middling-best", no_taste.middling_best, {}),
    ("trend", tastes.trend, {}),
    ("two-populations", tastes.two_populations, {}),
    ("two-rankers", own_systems.two_rankers, {}),
    ("sought-by-fans", tastes.sought_by_fans, ADVERSARIAL),
    ("fan-clubs", own_systems.fan_clubs, ADVERSARIAL),
    ("rating-predictor", own_systems.rating_predictor, {}),
    ("category-exposure", displayed.category_exposure, {}),
    ("position-bias", displayed.position_bias, {}),
    ("focused", raters.focused, {}),
    ("focused-mild", raters.focused_mild, {}),
    ("drift", raters.drift, {}),
    ("two-markets", raters.two_markets, {}),
    ("tail", popularity.tail, {}),
    ("display-popular", popularity.display_popular, {}),
    ("quality-popular", popularity.quality_popular, VISIBLE),
    ("mixed-popular", popularity.mixed_popular, {}),
    ("strong-taste", easy.strong_taste_random, VISIBLE),
    ("strong-taste-popular", easy.strong_taste_popular, VISIBLE),
    ("strong-taste-selection", easy.strong_taste_selection, VISIBLE),
    ("strong-taste-popular-selection", easy.strong_taste_popular_selection, VISIBLE),
    ("clear-quality", easy.clear_quality, VISIBLE),
    ("new-items", own_systems.new_items, {}),
    ("households", raters.households, ADVERSARIAL),
    ("herding", raters.herding, {}),
    ("heavy-light", raters.heavy_and_light, {}),
    ("generous-newcomers", raters.generous_newcomers, {}),
    ("complainers", raters.complainers, {}),
    ("extremes", raters.extremes, {}),
    ("bots", raters.bots, {}),
    ("fans-rate", raters.fans_rate, {}),
    ("half-quality", popularity.half_quality, {}),
    ("price", popularity.price, {}),
    ("position-quality", popularity.position_quality, {}),
    ("familiar-liked", popularity.familiar_liked, ADVERSARIAL),
    ("recsys-exploration", displayed.recommended_exploration, {}),
    ("recsys-wrong", displayed.recommended_wrong, {}),
    ("dense-small", shapes.dense_small, {"users": (100, 140), "items": (80, 100)}),
    ("very-sparse", shapes.very_sparse, {"users": (700, 900), "items": (300, 450)}),
    ("few-items", shapes.few_items, {"users": (700, 900), "items": (45, 60)}),
    ("thumbs", shapes.thumbs, {}),
    ("series", shapes.series, {}),
    ("seasonal", shapes.seasonal, {}),
    ("countries", shapes.countries, {}),
)
"""Worlds are audited, and shown in tables, in this order."""

_NAMED = {
    f"named-{name}": Kind(
        f"named-{name}",
        partial(named_worlds.named_world, name=name),
        named_worlds.about(name),
        where_better_is_visible=name in named_worlds.VISIBLE,
    )
    for name in named_worlds.NAMES
}
_SEMI_REAL = {
    f"{source}-{exposure}": Kind(
        f"{source}-{exposure}",
        partial(semi_real.semi_real, source=source, exposure=exposure),
        semi_real.about(source, exposure),
        source=source,
        users=settings.users,
        items=settings.items,
    )
    for source, settings in semi_real.SOURCES.items()
    for exposure in semi_real.ABOUT
} | {
    "cm100k-familiar": Kind(
        "cm100k-familiar", semi_real.familiar, semi_real.FAMILIAR_ABOUT, source="cm100k"
    )
}

KINDS: Mapping[str, Kind] = {
    name: Kind(name, draw, draw.__doc__ or "", **marks) for name, draw, marks in _TABLE
} | {**_NAMED, **_SEMI_REAL}
"""By name; `KINDS["taste"](seed)` makes a world. The table is the same everywhere: it has the kinds
that need data where the data are missing, too."""


def at_hand() -> tuple[list[str], list[str]]:
    """Return the kinds whose worlds can be made here, and in words why others cannot."""
    reasons = {name: kind.missing for name, kind in KINDS.items()}
    names = [name for name, reason in reasons.items() if not reason]
    return names, list(dict.fromkeys(reason for reason in reasons.values() if reason))
