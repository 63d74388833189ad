"""Worlds in which somebody decides what is displayed: an earlier recommender, editors, a shelf."""

from __future__ import annotations

import numpy as np

from reliability.ingredients import Draft, level_of, rated, scaled
from reliability.known_world import KnownWorld
from unskew.arrays import F32, F64, Mask
from unskew.engine.threads import one_blas_thread

SHOWN = 20
"""Randomly shown items per user in the log that `earlier_recommender` is trained on."""
CHOSEN = 60
"""Items that it chooses for each user."""


def recommended(draft: Draft) -> KnownWorld:
    """Nobody has any taste; an earlier recommender shows each cluster its items.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, and about ten times more what the earlier recommender holds for the user's cluster. Who
    rates: everyone who is exposed.
    """
    like = draft.equal_liking()
    shown = draft.clusters()
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def recommended_selection(draft: Draft) -> KnownWorld:
    """As recsys, and likes are rated more often.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, and about ten times more what the earlier recommender holds for the user's cluster. Who
    rates: a disliked item is rated about .2 times as often as a liked one, however it was met.
    """
    like = draft.equal_liking()
    shown = draft.clusters()
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    chances = rated(
        like, exposure, per_user=draft.between(20, 32), if_disliked=draft.between(0.15, 0.3)
    )
    return draft.world(like, chances)


def recommended_times_selection(draft: Draft) -> KnownWorld:
    """Adversarial: who dislikes what an earlier recommender shows seldom rates it.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, and about fifteen times more what the earlier recommender holds for the user's cluster.
    Who rates: everyone who is exposed, but disliked items within the cluster are rated about .3
    times as often; items that users seek themselves are rated anyway.
    """
    like = draft.equal_liking()
    shown = draft.clusters()
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(shown.same, draft.between(12, 18), 1.0)
    disliked = exposure * np.where(shown.same, draft.between(0.25, 0.35), 1.0)
    chances = scaled(like, exposure, disliked, per_user=draft.between(20, 32))
    return draft.world(like, chances, broken=frozenset({"display-changes-who-rates"}))


def recommended_taste(draft: Draft) -> KnownWorld:
    """Taste, and an earlier recommender that knows it.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items,
    and about ten times more within the user's cluster of taste. Who rates: everyone who is exposed.
    """
    clusters = draft.clusters()
    like = draft.cluster_taste(clusters)
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(clusters.same, draft.between(7, 13), 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def recommended_other_taste(draft: Draft) -> KnownWorld:
    """Taste, and an earlier recommender that knows nothing of it.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: popular items,
    and about ten times more within the earlier recommender's clusters, which are unrelated to those
    of taste. Who rates: everyone who is exposed.
    """
    like = draft.cluster_taste(draft.clusters())
    shown = draft.clusters()
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))


def earlier_recommender(draft: Draft) -> KnownWorld:
    """An actual earlier recommender, trained on a random log, decides most of what is exposed.

    Who likes what: about .7 within a cluster, about .05 outside. What is exposed: four fifths of it
    is what an item-based nearest-neighbour recommender chose for each user, trained on the likes of
    a first log of randomly shown items; the rest is by popularity. Who rates: everyone who is
    exposed.
    """
    like = draft.cluster_taste(draft.clusters())
    by_popularity = draft.popularity(draft.between(0.5, 0.8))
    chosen = _chosen_by_neighbours(like, draft.rng)
    exposure = (
        0.2 * by_popularity / by_popularity.sum() + 0.8 * chosen / chosen.sum(axis=1)[:, None]
    )
    exposure *= draft.activity()[:, None]
    return draft.world(like, rated(like, exposure, per_user=draft.between(16, 26)))


def _chosen_by_neighbours(like: F64, rng: np.random.Generator) -> Mask:
    """Return which items an item-based recommender chooses, trained on a random log of likes."""
    log: F32 = (rng.random(like.shape) < like * (SHOWN / like.shape[1])).astype(np.float32)
    length = np.sqrt(np.maximum(log.sum(axis=0), 1))
    with one_blas_thread():
        similarity = (log.T @ log) / np.outer(length, length)
        np.fill_diagonal(similarity, 0)
        score = log @ similarity
    # Users without likes in the log get items in an order drawn at random.
    score += 1e-4 * rng.random(score.shape, np.float32)
    least = np.partition(score, -CHOSEN, axis=1)[:, -CHOSEN]
    result: Mask = score >= least[:, None]
    return result


def halo(draft: Draft) -> KnownWorld:
    """Adversarial: what an earlier recommender shows is rated as liked although it is not.

    Who likes what: everyone everything, with the same chance of about .3. What is exposed: popular
    items, and about ten times more what the earlier recommender holds for the user's cluster. Who
    rates: everyone who is exposed; of disliked items within the cluster about .3 are recorded as
    liked.
    """
    like = draft.equal_liking()
    shown = draft.clusters()
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    swayed = np.where(shown.same, draft.between(0.25, 0.35), 0.0)
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return draft.world(like, chances, swayed=swayed, broken=frozenset({"display-sways-ratings"}))


def graded_halo(draft: Draft) -> KnownWorld:
    """Adversarial: the more an item is displayed, the more often a dislike is recorded as a like.

    Who likes what: about .3 of everything, by weak taste and by quality. What is exposed: popular
    items, and about ten times more what an earlier recommender holds for the user's cluster. Who
    rates: everyone who is exposed; of disliked items a share is recorded as liked: from .05 to .4
    within the cluster, by the seed, and up to a quarter of that outside, by popularity.
    """
    shown = draft.clusters()
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0, 0.5), quality=0.3
    )
    popularity = draft.popularity(draft.between(0.5, 0.8))
    exposure = np.outer(draft.activity(), popularity)
    exposure *= np.where(shown.same, draft.between(7, 13), 1.0)
    display = np.where(shown.same, 1.0, 0.25 * level_of(popularity))
    swayed = draft.between(0.05, 0.4) * display
    chances = rated(like, exposure, per_user=draft.between(20, 32))
    return draft.world(like, chances, swayed=swayed, broken=frozenset({"display-sways-ratings"}))


def category_exposure(draft: Draft) -> KnownWorld:
    """Users see few categories only, and like items for other features than the category.

    Who likes what: by six factors of taste and by quality, none of which goes with the category.
    What is exposed: two of twelve categories per user, fifteen times more than the others, popular
    items more. Who rates: a disliked item is rated about .4 times as often as a liked one.
    """
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0.8, 1.4), quality=0.4
    )
    first, second = draft.clusters(12), draft.rng.integers(12, size=draft.population)
    seen = first.same | (second[:, None] == first.item)
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(seen, 15.0, 1.0)
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances)


def position_bias(draft: Draft) -> KnownWorld:
    """Editors keep a list for each of five segments; users see the top of it.

    Who likes what: by six factors of taste and by quality. What is exposed: items by their place in
    the list of the user's segment, with a chance that falls with the place to the power of about 1;
    the lists are ordered by quality with much noise, each segment's by other noise. Who rates: a
    disliked item is rated about .4 times as often as a liked one.
    """
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0.6, 1.2), quality=draft.between(0.4, 0.8)
    )
    quality = like.mean(axis=0)
    noise = draft.rng.standard_normal((5, draft.items)) * (quality.std() * draft.between(0.8, 2))
    rank = np.argsort(np.argsort(-(quality + noise), axis=1), axis=1) + 1.0
    segment = draft.rng.integers(5, size=draft.population)
    exposure = draft.activity()[:, None] * (rank ** -draft.between(0.7, 1.1))[segment]
    chances = rated(
        like, exposure, per_user=draft.between(18, 30), if_disliked=draft.between(0.3, 0.5)
    )
    return draft.world(like, chances)


def recommended_exploration(draft: Draft) -> KnownWorld:
    """An earlier recommender shows what it has learnt, and a part of its space explores.

    Who likes what: by six factors of taste and by quality. What is exposed: about two thirds of it
    is what the earlier recommender holds for best, whose estimates have noise as large as taste;
    the rest is drawn at random. Who rates: a disliked item is rated about .5 times as often as a
    liked one.
    """
    like = draft.factor_taste(
        draft.between(0.25, 0.35), strength=draft.between(0.8, 1.4), quality=0.5
    )
    exposure = best_and_others(draft, like, explored=draft.between(0.25, 0.4))
    exposure *= draft.activity()[:, None]
    chances = rated(
        like, exposure, per_user=draft.between(18, 28), if_disliked=draft.between(0.4, 0.6)
    )
    return draft.world(like, chances)


def best_and_others(draft: Draft, like: F64, explored: float) -> F64:
    """Return the exposure by a recommender that shows what it holds for best, and explores.

    Parameters
    ----------
    draft
        Whose generator draws what the recommender does not know.
    like
        The chances to like, whose log odds it knows up to noise as large as a user's differences.
    explored
        The share of exposure that is drawn at random.
    """
    odds = np.log(like / (1 - like))
    estimate = odds + odds.std(axis=1, keepdims=True) * draft.rng.standard_normal(like.shape)
    least = np.partition(estimate, -CHOSEN, axis=1)[:, -CHOSEN]
    is_chosen = estimate >= least[:, None]
    exposure: F64 = explored / draft.items + (1 - explored) / CHOSEN * is_chosen
    return exposure


def recommended_wrong(draft: Draft) -> KnownWorld:
    """An earlier recommender shows each cluster what it likes less.

    Who likes what: about .2 within a cluster, about .4 outside, and by quality: people have had
    enough of their own sort. What is exposed: popular items, and about ten times more within the
    user's cluster. Who rates: everyone who is exposed.
    """
    own_sort = draft.clusters().same
    quality = draft.rng.standard_normal(draft.items)
    odds = np.where(own_sort, -1.4, -0.4) + draft.between(0.3, 0.6) * quality
    like = 1 / (1 + np.exp(-odds))
    exposure = draft.exposure(0.5, 0.8)
    exposure *= np.where(own_sort, draft.between(7, 13), 1.0)
    return draft.world(like, rated(like, exposure, per_user=draft.between(20, 32)))
