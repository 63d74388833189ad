"""An audit in which groups of users count as one: what is worked out anew for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from unskew.auditing.analyses import Attempts
from unskew.auditing.core.core import Core
from unskew.auditing.statements.evidence import Evidence, popular_liking
from unskew.bias.decomposition.ladder import ladder_of
from unskew.bias.decomposition.ladder_part import ladder_part
from unskew.data.ratings import Ids, Ratings
from unskew.data.user_groups import UserGroups
from unskew.report.estimates import Estimates
from unskew.stats.user_groups import grouped_scores, groups_of_users, stated_by_group
from unskew.unbiased.liked_shares import liked_part, liked_shares_of
from unskew.unbiased.listed_pairs import RatedLists
from unskew.unbiased.random_slice import random_part, random_slice_of


def stated_groups(group_users: object, ratings: Sequence[Ratings]) -> UserGroups | None:
    """Return the groups that the user asks for; refuse those of other users before work begins."""
    groups = groups_of_users(group_users, ratings)
    if groups is not None:
        groups.of(Ids.union(*(part.users for part in ratings))[0])
    return groups


def group_card(groups: UserGroups | None) -> dict[str, object]:
    """Return what the card says of groups of users; nothing without any."""
    return {} if groups is None else {"group_users": groups.source}


def grouped_core(core: Core, groups: UserGroups | None) -> Core:
    """Return what was run, with scores by group."""
    if groups is None:
        return core
    return replace(
        core,
        scores=grouped_scores(core.scores, groups),
        true=grouped_scores(core.true, groups),
    )


def grouped_evidence(
    evidence: Evidence, groups: UserGroups | None, random: Ratings | None, attempts: Attempts
) -> Evidence:
    """Return evidence with everything that was worked out by user by group instead.

    The differences of scores are by group already, as the scores say so.
    """
    if groups is None:
        return evidence
    core, fields = evidence.core, dict[str, Any](has_duplicates=False)
    if evidence.ladder is not None:
        fields["ladder"] = attempts.attempt("ladder", lambda: _ladder(core, groups))
    if evidence.liked is not None:
        fields["liked"] = attempts.attempt("liked shares", lambda: _liked(core, groups))
    if evidence.popular_liking is not None:
        fields["popular_liking"] = attempts.attempt(
            "liking by popularity", lambda: _popular_liking(evidence, groups)
        )
    if evidence.random_slice is not None and random is not None:
        fields["random_slice"] = attempts.attempt(
            "random slice", lambda: _random_slice(core, groups, random)
        )
    return replace(evidence, **fields)


def _by_group(estimates: Estimates, core: Core, groups: UserGroups) -> Estimates:
    """Return an answer that names its unit."""
    return stated_by_group(estimates, groups, core.lists[0].split.train.users)


def _ladder(core: Core, groups: UserGroups) -> Estimates:
    parts = []
    for part in core.lists:
        split = part.split
        parts.append(ladder_part(split.train, split.judged_test, part.runs, core.relevance, core.k))
    return _by_group(ladder_of(parts, groups=groups), core, groups)


def _liked(core: Core, groups: UserGroups) -> Estimates:
    parts: list[RatedLists] = []
    for part in core.lists:
        split = part.split
        rated = liked_part(split.train, split.test, part.runs, core.relevance, core.k)
        parts.append(replace(rated, group=groups.of(split.test.users)[1]))
    return _by_group(liked_shares_of(parts), core, groups)


def _popular_liking(evidence: Evidence, groups: UserGroups) -> Estimates:
    users = evidence.core.lists[0].split.train.users
    numbers = groups.of(users)[1]
    return popular_liking(evidence.core, evidence.thresholds.popular_level, numbers)


def _random_slice(core: Core, groups: UserGroups, random: Ratings) -> Estimates:
    parts: list[RatedLists] = []
    for part in core.lists:
        train = part.split.train
        rated = random_part(train, random, part.runs, core.relevance, core.k)
        parts.append(replace(rated, group=groups.of(train.users)[1]))
    return _by_group(random_slice_of(parts), core, groups)
