"""What unrated recommendations are worth, when people rate what they like more readily.

Recommendations are items without a training rating. Where people rate what they like more readily
than what they do not, an item that they know and left unrated is less likely to be liked than a
rated one: the more so, the better known the item is. How much more readily is not identified by
ratings alone, so conclusions must hold for every habit that the data allow.
"""

from __future__ import annotations

from unskew.checks import check_share

HABITS = tuple(0.4 ** (step / 8) for step in range(9))
"""How readily people rate what they dislike, relative to what they like: from 1 to 0.4."""
SLACK = 1.2
"""Known shares up to here count as 1: they are estimates."""


def unrated_liking(
    liked_share: float, judged_share: float, habit: float, train_share: float = 0.8
) -> float | None:
    """Return how many of a system's recommendations are liked, under one habit of rating.

    With λ the share that is liked of the items that people know, e the share of recommendations
    that they know, and h the habit: of what is rated, λ / (λ + h (1 - λ)) is liked, and r = e (λ +
    h (1 - λ)) of all is rated. Of what has no training rating, λ (1 - f e) / (1 - f r) is liked,
    with f the share of ratings that train.

    Parameters
    ----------
    liked_share
        The liked share of the recommendations that have a test rating.
    judged_share
        The share of recommendations that have a test rating.
    habit
        How readily people rate what they dislike, relative to what they like.
    train_share
        The share of ratings that train.

    Returns
    -------
    float or None
        None where the data do not allow this habit: more than everything would be known.

    Examples
    --------
    >>> from unskew.unbiased.rating_habits import unrated_liking
    >>> unrated_liking(0.6, 0.05, 1.0)
    0.6
    >>> round(unrated_liking(0.6, 0.05, 0.2), 3)
    0.157
    >>> print(unrated_liking(0.6, 0.3, 0.02))
    None
    """
    check_share("train_share", train_share)
    rated = judged_share / ((1 - train_share) + train_share * judged_share)
    liking = liked_share * habit / (liked_share * habit + 1 - liked_share)
    known = rated / (liking + habit * (1 - liking)) if liking > 0 else rated / habit
    if known > SLACK:
        return None
    return liking * (1 - train_share * min(known, 1.0)) / (1 - train_share * rated)
