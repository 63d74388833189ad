"""Every recommender, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from unskew.checks import checked
from unskew.errors import SettingError, import_studies, unknown_name
from unskew.recommend.factors import EALS, PZT, WRMF, PureSVD
from unskew.recommend.language import RM1, RM2, HittingTime, LMWSRItemBased, LMWSRUserBased, UIRItem
from unskew.recommend.linear import EASE, SLIM
from unskew.recommend.listwise import ListRankMF
from unskew.recommend.model import Algorithm
from unskew.recommend.neighbours import (
    CHI2,
    KLD,
    RSV,
    RW,
    ItemKNN,
    NNCosNgbrIB,
    NNCosNgbrUB,
    UserKNN,
)
from unskew.recommend.pairwise import BPRMF, GBPR, WBPR, RankSGD
from unskew.recommend.sequential import MarkovChain, RecentItemKNN
from unskew.recommend.sgd import SVD, BiasedMF, SVDpp
from unskew.recommend.simple import (
    AverageRating,
    OptimalAntiPrecision,
    OptimalPrecision,
    OptimalTrue,
    Popularity,
    PositivePopularity,
    Random,
    RecentPopularity,
    SmoothedAverage,
    WithFallback,
)
from unskew.recommend.topics import HPF, LDA, PLSA, PNMF, GaussianPLSA

ALGORITHMS: dict[str, type[Algorithm]] = {
    kind.name: kind
    for kind in (
        Random,
        Popularity,
        RecentPopularity,
        PositivePopularity,
        AverageRating,
        SmoothedAverage,
        OptimalPrecision,
        OptimalAntiPrecision,
        OptimalTrue,
        UserKNN,
        ItemKNN,
        RecentItemKNN,
        MarkovChain,
        NNCosNgbrUB,
        NNCosNgbrIB,
        RW,
        RSV,
        CHI2,
        KLD,
        RM1,
        RM2,
        LMWSRUserBased,
        LMWSRItemBased,
        UIRItem,
        HittingTime,
        SLIM,
        EASE,
        PureSVD,
        WRMF,
        BPRMF,
        SVD,
        BiasedMF,
        PLSA,
        LDA,
        PZT,
        EALS,
        PNMF,
        HPF,
        GaussianPLSA,
        SVDpp,
        WBPR,
        GBPR,
        RankSGD,
        ListRankMF,
        WithFallback,
    )
}

IN_STUDIES = ("librec-user-knn", "librec-item-knn", "librec-slim")
"""Recommenders of mena2021, which the package unskew-studies has."""


def algorithm_class(name: str) -> type[Algorithm]:
    """Return the class of a recommender; those of the studies where they are installed."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    if name in IN_STUDIES:
        classes: Mapping[str, type[Algorithm]] = import_studies("librec", name).ALGORITHMS
        return classes[name]
    raise unknown_name("algorithm", name, ALGORITHMS)


@checked
def algorithm(name: str, **settings: Any) -> Algorithm:
    """Build a recommender from its name and settings.

    Parameters
    ----------
    name
        One of `ALGORITHMS`, or of `IN_STUDIES`.
    settings
        Its settings; see `unskew algorithms NAME`.

    Examples
    --------
    >>> from unskew.recommend.registry import algorithm
    >>> algorithm("positive-popularity", liked=5)
    PositivePopularity(liked=5)
    """
    kind = algorithm_class(name)
    allowed = settings_of(kind)
    for setting in settings:
        if setting not in allowed:
            has = f"it has: {', '.join(allowed)}" if allowed else "it has none"
            raise SettingError(f"{name} has no setting {setting!r}; {has}")
    built = {
        key: _nested(value) if isinstance(allowed[key], Algorithm) else value
        for key, value in settings.items()
    }
    return kind(**built)


def _nested(value: Any) -> Any:
    """Build a recommender that is a setting of another one, from its name or its description."""
    if isinstance(value, str):
        return algorithm(value)
    if isinstance(value, Mapping):
        inner = dict(value)
        name = inner.pop("algorithm", None) or inner.pop("name", None)
        if name is None:
            raise SettingError(f"a recommender needs its name, such as name = 'user-knn': {value}")
        return algorithm(str(name), **inner)
    return value


def settings_of(kind: type[Algorithm]) -> dict[str, Any]:
    """Return the settings of an algorithm and their defaults."""
    return {
        field.name: None if field.default is MISSING else field.default for field in fields(kind)
    }


def read_setting(text: str) -> tuple[str, Any]:
    """Read name=value, the value being a number, true, false, none or a word.

    Examples
    --------
    >>> from unskew.recommend.registry import read_setting
    >>> read_setting("factors=50"), read_setting("k=none")
    (('factors', 50), ('k', None))
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name or not value:
        raise SettingError(f"write a setting as NAME=VALUE, such as factors=50; got {text!r}")
    words: Mapping[str, Any] = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name, words[value.lower()]
    for read in (int, float):
        try:
            return name, read(value)
        except ValueError:
            continue
    return name, value
