"""Kernels of metrics over all orders of equal scores: exact means, group by group.

As `kernels`, but hits of equal scores share the first rank of their group, and `tied` is the size
of the group: its items, judged or not, stand in any order with the same chance. Groups are in
order, so that all above a group is known. A cutoff inside a group shows the first `places`
of it. A group of one is treated as `kernels` do it, to the last bit.
"""

from __future__ import annotations

import numpy as np

from unskew.arrays import F64, I8, I32, I64
from unskew.engine.compiled import kernel

LIKED, DISLIKED, POOLED = 1, 2, 3
NEVER = (1 << 62) + 1  # a rank beyond every cutoff, "the whole list" included
EPSILON = 1e-5  # infAP's smoothing, as in trec_eval


@kernel
def walk(
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
    depth: I64,
    label: I8,
    gain: F64,
    discount: F64,
    liked: F64,
    disliked: F64,
    cutoffs: I64,
    index: I64,
    out: F64,
) -> None:
    """Walk down every list once and write the mean of what its metrics are made of.

    `index` and the parts are those of `kernels.walk`.
    """
    total, part = np.empty(8), np.empty(8)
    parts = np.flatnonzero(index >= 0)
    longest = 0
    for row in range(start.size - 1):
        longest = max(longest, start[row + 1] - start[row])
    chances, values = np.empty(longest + 2), np.empty(longest + 2)
    for row in range(start.size - 1):
        total[:] = 0.0
        c, likes_above, bad, pooled = 0, 0.0, 0.0, 0.0
        h, stop = start[row], start[row + 1]
        while c < cutoffs.size:
            above, size, end = NEVER, 1, h
            if h < stop:
                above, size = int(rank[h]) - 1, int(tied[h])
            while c < cutoffs.size and min(cutoffs[c], depth[row]) <= above:
                for p in parts:
                    out[index[p], c, row] = total[p]
                c += 1
            if c == cutoffs.size:
                break
            likes, dislikes, in_pool, gains = 0.0, 0.0, 0.0, 0.0
            while end < stop and rank[end] == rank[h]:
                kind = label[judgment[end]]
                likes += kind == LIKED
                dislikes += kind == DISLIKED
                in_pool += kind == POOLED
                gains += gain[judgment[end]]
                end += 1
            while c < cutoffs.size and min(cutoffs[c], depth[row]) < above + size:
                places = min(cutoffs[c], depth[row]) - above
                parts_of_group(
                    above, size, places, likes, dislikes, in_pool, gains, likes_above, bad, pooled,
                    liked[row], disliked[row], discount, index, chances, values, part,
                )  # fmt: skip
                for p in parts:
                    out[index[p], c, row] = total[p] + part[p]
                c += 1
            if c == cutoffs.size:
                break
            parts_of_group(
                above, size, size, likes, dislikes, in_pool, gains, likes_above, bad, pooled,
                liked[row], disliked[row], discount, index, chances, values, part,
            )  # fmt: skip
            for p in parts:
                total[p] += part[p]
            likes_above, bad, pooled = likes_above + likes, bad + dislikes, pooled + in_pool
            h = end


@kernel
def parts_of_group(
    above: int, size: int, places: int, likes: float, dislikes: float, in_pool: float, gains: float,
    likes_above: float, bad: float, pooled: float, liked: float, disliked: float, discount: F64,
    index: I64, chances: F64, values: F64, part: F64,
) -> None:  # fmt: skip
    """Write what the first `places` of a group are expected to add to each part.

    Above the group stand `likes_above` liked, `bad` disliked and `pooled` items.
    """
    share = 1.0 if places == size else places / size
    part[0], part[1] = likes * share, dislikes * share
    part[2], part[3], part[4], part[5], part[6] = 0.0, 0.0, 0.0, 0.0, 0.0
    if index[7] >= 0:
        part[7] = gains * mean_discount(discount, above, size, places)
    if likes == 0.0:
        return
    if index[2] >= 0:
        part[2] = precisions(above, size, places, likes, likes_above)
    if index[3] >= 0 and likes_above == 0.0:
        part[3] = reciprocal(above, size, places, likes)
    if index[4] >= 0:
        part[4] = preferences(size, places, likes, dislikes, bad, liked, disliked, chances)
    if index[5] >= 0 or index[6] >= 0:
        inferred(
            above,
            size,
            places,
            likes,
            dislikes,
            in_pool,
            likes_above,
            bad,
            pooled,
            chances,
            values,
            part,
        )


@kernel
def mean_discount(discount: F64, above: int, size: int, places: int) -> float:
    """Return the expected discount of an item of a group, 0 beyond the places that are shown."""
    if size == 1:
        return float(discount[above + 1])
    total = 0.0
    for position in range(above + 1, above + places + 1):
        total += discount[position]
    return total / size


@kernel
def precisions(above: int, size: int, places: int, likes: float, likes_above: float) -> float:
    """Return the expected sum of the precision at each liked item (McSherry & Najork 2008).

    A place of the group is liked with probability likes / size; given that, each of the others
    above it is with probability (likes - 1) / (size - 1).
    """
    if size == 1:
        return (likes_above + 1.0) / (above + 1)
    again = (likes - 1.0) / (size - 1.0)
    total = 0.0
    for position in range(1, places + 1):
        total += (likes_above + 1.0 + (position - 1) * again) / (above + position)
    return total * (likes / size)


@kernel
def reciprocal(above: int, size: int, places: int, likes: float) -> float:
    """Return the expected reciprocal rank of the first liked item, if it is shown."""
    if size == 1:
        return 1.0 / (above + 1)
    none, total = 1.0, 0.0
    for position in range(1, places + 1):
        left = size - position + 1.0
        total += none * (likes / left) / (above + position)
        none *= max(left - likes, 0.0) / left
        if none < 1e-20:
            break
    return total


@kernel
def no_liked(size: int, places: int, likes: float) -> float:
    """Return the chance that none of the shown places of a group is liked."""
    none = 1.0
    if places < likes:
        for position in range(places):
            none *= max(size - likes - position, 0.0) / (size - position)
    else:
        for like in range(int(likes)):
            none *= max(size - places - like, 0.0) / (size - like)
    return none


@kernel
def preferences(
    size: int, places: int, likes: float, dislikes: float, bad: float, liked: float,
    disliked: float, chances: F64,
) -> float:  # fmt: skip
    """Return the expected sum of bpref's terms.

    A liked item is equally likely to follow 0, 1, … of the disliked ones of its group; as the
    n-th of them all it is shown if at least n of them are, whatever their order.
    """
    fewer = min(liked, disliked)
    total, beyond = 0.0, 0.0
    if places < size:
        # Chances of how many of these items are among the shown places.
        chances[0] = 1.0
        for count in range(1, int(dislikes) + 2):
            chances[count] = 0.0
        for position in range(2, places + 2):
            next_place(position, size + 1, dislikes + 1, chances)
    for count in range(int(dislikes) + 1):
        worse = bad + count
        term = 1.0 if worse == 0.0 else 1.0 - min(worse, liked) / fewer
        is_shown = 1.0
        if places < size:
            beyond += chances[count]
            is_shown = max(1.0 - beyond, 0.0)
        total += term * is_shown
    return likes * total / (dislikes + 1)


@kernel
def next_place(position: int, size: int, marked: float, chances: F64) -> None:
    """Move to a place of a group, one of whose items is taken out and put there.

    Then `chances[n]` is the chance that n of the `marked` among the others stand above.
    """
    if position == 1:
        chances[0] = 1.0
        for count in range(1, int(marked) + 1):
            chances[count] = 0.0
        return
    left = size - 1.0 - (position - 2)  # others from which the place above is filled
    share = 1.0 / left
    for count in range(min(int(marked), position - 1), 0, -1):
        stays = chances[count] * max(left - (marked - count), 0.0)
        chances[count] = (stays + chances[count - 1] * (marked - count + 1)) * share
    chances[0] *= max(left - marked, 0.0) * share


@kernel
def inferred(
    above: int, size: int, places: int, likes: float, dislikes: float, in_pool: float,
    likes_above: float, bad: float, pooled: float, chances: F64, values: F64, part: F64,
) -> None:  # fmt: skip
    """Write the expected terms of infAP of the liked items at the shown places of a group.

    Given how many judged items of the group stand above one (`chances`), the liked and the pooled
    ones among these are expected in proportion, independently of each other.
    """
    if size == 1:
        rank = above + 1.0
        part[5] = part[6] = 1.0
        if above > 0:
            share = (likes_above + EPSILON) / (likes_above + bad + 2 * EPSILON)
            judged_share = (likes_above + bad + pooled) / above
            part[5] = 1.0 / rank + (above / rank) * judged_share * share
            part[6] = 1.0 / rank + (above / rank) * share
        return
    judged = likes - 1.0 + dislikes
    unjudged = size - 1.0 - judged
    in_group = in_pool / unjudged if unjudged > 0 else 0.0
    for count in range(int(judged) + 1):
        better = likes_above + (count * (likes - 1.0) / judged if judged > 0 else 0.0)
        values[count] = (better + EPSILON) / (likes_above + bad + count + 2 * EPSILON)
    for position in range(1, places + 1):
        next_place(position, size, judged, chances)
        usual, everything = 0.0, 0.0
        fewest = max(position - 1 - int(unjudged), 0)
        for count in range(fewest, min(int(judged), position - 1) + 1):
            term = chances[count] * values[count]
            usual += term * (likes_above + bad + count + pooled + (position - 1 - count) * in_group)
            everything += term
        rank = float(above + position)
        part[5] += (1.0 + usual) / rank
        part[6] += (1.0 + everything * (rank - 1.0)) / rank
    part[5] *= likes / size
    part[6] *= likes / size


@kernel
def any_liked(
    start: I64, rank: I32, tied: I32, judgment: I32, depth: I64, label: I8, cutoffs: I64, out: F64
) -> None:
    """Write the chance that a liked item is among the places down to each cutoff."""
    for row in range(start.size - 1):
        out[:, row] = 0.0
        h = start[row]
        while h < start[row + 1] and label[judgment[h]] != LIKED:
            h += 1
        if h == start[row + 1]:
            continue
        above, size, likes = int(rank[h]) - 1, int(tied[h]), 0.0
        for hit in range(h, start[row + 1]):
            if rank[hit] != rank[h]:
                break
            likes += label[judgment[hit]] == LIKED
        for c in range(cutoffs.size):
            places = min(cutoffs[c], depth[row]) - above
            if places >= size:
                out[c, row] = 1.0
            elif places > 0:
                out[c, row] = 1.0 - no_liked(size, places, likes)


@kernel
def liked_within(
    start: I64, rank: I32, tied: I32, judgment: I32, depth: I64, label: I8, limit: I64
) -> F64:
    """Count the liked items expected down to a rank of each list's own."""
    liked = np.zeros(start.size - 1)
    for row in range(start.size - 1):
        last = min(limit[row], depth[row])
        for h in range(start[row], start[row + 1]):
            places = last - (int(rank[h]) - 1)
            if places <= 0:
                break
            if label[judgment[h]] == LIKED:
                liked[row] += 1.0 if places >= tied[h] else places / tied[h]
    return liked


@kernel
def discounted(
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
    depth: I64,
    weight: F64,
    discount: F64,
    cutoffs: I64,
    out: F64,
) -> None:
    """Sum weight x expected discount over the hits down to each cutoff."""
    for row in range(start.size - 1):
        c, total, h, stop = 0, 0.0, start[row], start[row + 1]
        while c < cutoffs.size:
            above, size, end, sum_ = NEVER, 1, h, 0.0
            if h < stop:
                above, size = int(rank[h]) - 1, int(tied[h])
            while c < cutoffs.size and min(cutoffs[c], depth[row]) <= above:
                out[c, row] = total
                c += 1
            if c == cutoffs.size:
                break
            while end < stop and rank[end] == rank[h]:
                sum_ += weight[judgment[end]]
                end += 1
            while c < cutoffs.size and min(cutoffs[c], depth[row]) < above + size:
                places = min(cutoffs[c], depth[row]) - above
                out[c, row] = total + sum_ * mean_discount(discount, above, size, places)
                c += 1
            if c < cutoffs.size:
                total += sum_ * mean_discount(discount, above, size, size)
            h = end


@kernel
def ordered_pairs(
    start: I64,
    rank: I32,
    tied: I32,
    judgment: I32,
    depth: I64,
    label: I8,
    liked: F64,
    _: I64,
    targets: I64,
    cutoffs: I64,
    out: F64,
) -> None:
    """Count pairs (liked, not liked) expected in the right order; beyond the cutoff they are half.

    Of a group, `places` hold X liked items, hypergeometric: its first two moments and the
    pairs of places in which the not liked one is first give the mean.
    """
    for row in range(start.size - 1):
        others = targets[row] - liked[row]
        for c in range(cutoffs.size):
            last = min(cutoffs[c], depth[row])
            right, likes_above, h = 0.0, 0.0, start[row]
            mean, square = 0.0, 0.0  # of X, in the group at the cutoff
            while h < start[row + 1] and rank[h] <= last:
                above, size = int(rank[h]) - 1.0, float(tied[h])
                places, likes, end = min(last - above, size), 0.0, h
                while end < start[row + 1] and rank[end] == rank[h]:
                    likes += label[judgment[end]] == LIKED
                    end += 1
                pairs = places * (places - 1.0) / max(size * (size - 1.0), 1.0)
                met = likes if places == size else likes * places / size
                right += met * (others - (above - likes_above)) - 0.5 * pairs * likes * (
                    size - likes
                )
                if places == size:
                    likes_above += likes
                else:
                    mean, square = met, met + pairs * likes * (likes - 1.0)
                h = end
            unseen, below = liked[row] - likes_above, others - (last - likes_above)
            out[c, row] = right + 0.5 * (unseen * below + (unseen - below) * mean - square)


@kernel
def item_sum(
    start: I64, stop: I64, end: I64, item: I32, score: F64, weight: F64, cutoffs: I64,
    lo: int, hi: int,
) -> F64:  # fmt: skip
    """Sum a weight of the items themselves down to each cutoff, over all orders of equal scores."""
    out = np.empty((cutoffs.size, hi - lo))
    for row in range(lo, hi):
        c, total, slot = 0, 0.0, start[row]
        depth = stop[row] - start[row]
        while c < cutoffs.size:
            last, group = slot, 0.0
            if slot < end[row]:
                last = slot + 1
                group = weight[item[slot]] if item[slot] >= 0 else 0.0
                while last < end[row] and score[last] == score[slot]:
                    group += weight[item[last]] if item[last] >= 0 else 0.0
                    last += 1
            above, size = slot - start[row], last - slot
            while c < cutoffs.size and (min(cutoffs[c], depth) < above + size or slot >= end[row]):
                places = min(cutoffs[c], depth) - above
                out[c, row - lo] = total + (group * (places / size) if places > 0 else 0.0)
                c += 1
            total += group
            slot = last
    return out


@kernel
def missed(start: I64, stop: I64, end: I64, item: I32, score: F64, items: int, cutoff: int) -> F64:
    """Return the chance of each item that no list shows it above the cutoff."""
    chance = np.ones(items)
    for row in range(start.size):
        slot, depth = start[row], min(stop[row] - start[row], cutoff)
        while slot < end[row] and slot - start[row] < depth:
            last = slot + 1
            while last < end[row] and score[last] == score[slot]:
                last += 1
            places = min(depth - (slot - start[row]), last - slot)
            for s in range(slot, last):
                if item[s] >= 0:
                    chance[item[s]] *= 1.0 - places / (last - slot)
            slot = last
    return chance
