"""Kernels of metrics over all orders of equal scores: exact means, group by group.

As `kernels`, but hits of equal scores share the first rank of their group, and `tied` is the size
of the group: its items, judged or not, stand in any order with the same chance. Groups are in
order, so that all above a group is known. A cutoff inside a group shows the first `shown` of its
places. A group of one is treated as `kernels` do it, to the last bit.
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
    at: I64,
    out: F64,
) -> None:
    """Walk down every list once and write the mean of what its metrics are made of.

    `at` and the parts are those of `kernels.walk`.
    """
    total, part = np.empty(8), np.empty(8)
    wanted = np.flatnonzero(at >= 0)
    most = 0
    for row in range(start.size - 1):
        most = max(most, start[row + 1] - start[row])
    chances, worth = np.empty(most + 2), np.empty(most + 2)
    for row in range(start.size - 1):
        total[:] = 0.0
        c, good, bad, pooled = 0, 0.0, 0.0, 0.0
        h, stop = start[row], start[row + 1]
        while c < cutoffs.size:
            above, size, end = NEVER, 1, h
            if h < stop:
                above, size = int(rank[h]) - 1, int(tied[h])
            while c < cutoffs.size and min(cutoffs[c], depth[row]) <= above:
                for p in wanted:
                    out[at[p], c, row] = total[p]
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
                shown = min(cutoffs[c], depth[row]) - above
                parts_of_group(
                    above, size, shown, likes, dislikes, in_pool, gains, good, bad, pooled,
                    liked[row], disliked[row], discount, at, chances, worth, part,
                )  # fmt: skip
                for p in wanted:
                    out[at[p], c, row] = total[p] + part[p]
                c += 1
            if c == cutoffs.size:
                break
            parts_of_group(
                above, size, size, likes, dislikes, in_pool, gains, good, bad, pooled,
                liked[row], disliked[row], discount, at, chances, worth, part,
            )  # fmt: skip
            for p in wanted:
                total[p] += part[p]
            good, bad, pooled = good + likes, bad + dislikes, pooled + in_pool
            h = end


@kernel
def parts_of_group(
    above: int, size: int, shown: int, likes: float, dislikes: float, in_pool: float, gains: float,
    good: float, bad: float, pooled: float, liked: float, disliked: float, discount: F64, at: I64,
    chances: F64, worth: F64, part: F64,
) -> None:  # fmt: skip
    """Write what the first `shown` places of a group are expected to add to each part.

    Above the group stand `good` liked, `bad` disliked and `pooled` items.
    """
    share = 1.0 if shown == size else shown / size
    part[0], part[1] = likes * share, dislikes * share
    part[2], part[3], part[4], part[5], part[6] = 0.0, 0.0, 0.0, 0.0, 0.0
    if at[7] >= 0:
        part[7] = gains * mean_discount(discount, above, size, shown)
    if likes == 0.0:
        return
    if at[2] >= 0:
        part[2] = precisions(above, size, shown, likes, good)
    if at[3] >= 0 and good == 0.0:
        part[3] = reciprocal(above, size, shown, likes)
    if at[4] >= 0:
        part[4] = preferences(size, shown, likes, dislikes, bad, liked, disliked, chances)
    if at[5] >= 0 or at[6] >= 0:
        inferred(
            above, size, shown, likes, dislikes, in_pool, good, bad, pooled, chances, worth, part
        )


@kernel
def mean_discount(discount: F64, above: int, size: int, shown: int) -> float:
    """Return the expected discount of an item of a group, 0 beyond the places that are shown."""
    if size == 1:
        return float(discount[above + 1])
    total = 0.0
    for place in range(above + 1, above + shown + 1):
        total += discount[place]
    return total / size


@kernel
def precisions(above: int, size: int, shown: int, likes: float, good: float) -> float:
    """Return the expected sum of the precision at each liked item (McSherry & Najork 2008).

    A place of the group is liked with probability likes / size; given that, each of the others
    above it is with probability (likes - 1) / (size - 1).
    """
    if size == 1:
        return (good + 1.0) / (above + 1)
    again = (likes - 1.0) / (size - 1.0)
    total = 0.0
    for place in range(1, shown + 1):
        total += (good + 1.0 + (place - 1) * again) / (above + place)
    return total * (likes / size)


@kernel
def reciprocal(above: int, size: int, shown: int, likes: float) -> float:
    """Return the expected reciprocal rank of the first liked item, if it is shown."""
    if size == 1:
        return 1.0 / (above + 1)
    none, total = 1.0, 0.0
    for place in range(1, shown + 1):
        left = size - place + 1.0
        total += none * (likes / left) / (above + place)
        none *= max(left - likes, 0.0) / left
        if none < 1e-20:
            break
    return total


@kernel
def no_liked(size: int, shown: int, likes: float) -> float:
    """Return the chance that none of the shown places of a group is liked."""
    none = 1.0
    if shown < likes:
        for place in range(shown):
            none *= max(size - likes - place, 0.0) / (size - place)
    else:
        for like in range(int(likes)):
            none *= max(size - shown - like, 0.0) / (size - like)
    return none


@kernel
def preferences(
    size: int, shown: int, likes: float, dislikes: float, bad: float, liked: float,
    disliked: float, chances: F64,
) -> float:  # fmt: skip
    """Return the expected sum of bpref's terms.

    A liked item is equally likely to follow 0, 1, … of the disliked ones of its group; as the
    n-th of them all it is shown if at least n of them are, whatever their order.
    """
    fewer = min(liked, disliked)
    total, beyond = 0.0, 0.0
    if shown < size:
        # Chances of how many of these items are among the shown places.
        chances[0] = 1.0
        for count in range(1, int(dislikes) + 2):
            chances[count] = 0.0
        for place in range(2, shown + 2):
            next_place(place, size + 1, dislikes + 1, chances)
    for count in range(int(dislikes) + 1):
        worse = bad + count
        term = 1.0 if worse == 0.0 else 1.0 - min(worse, liked) / fewer
        is_shown = 1.0
        if shown < size:
            beyond += chances[count]
            is_shown = max(1.0 - beyond, 0.0)
        total += term * is_shown
    return likes * total / (dislikes + 1)


@kernel
def next_place(place: int, size: int, marked: float, chances: F64) -> None:
    """Move to a place of a group, one of whose items is taken out and put there.

    Then `chances[n]` is the chance that n of the `marked` among the others stand above.
    """
    if place == 1:
        chances[0] = 1.0
        for count in range(1, int(marked) + 1):
            chances[count] = 0.0
        return
    left = size - 1.0 - (place - 2)  # others from which the place above is filled
    each = 1.0 / left
    for count in range(min(int(marked), place - 1), 0, -1):
        stays = chances[count] * max(left - (marked - count), 0.0)
        chances[count] = (stays + chances[count - 1] * (marked - count + 1)) * each
    chances[0] *= max(left - marked, 0.0) * each


@kernel
def inferred(
    above: int, size: int, shown: int, likes: float, dislikes: float, in_pool: float,
    good: float, bad: float, pooled: float, chances: F64, worth: F64, part: F64,
) -> None:  # fmt: skip
    """Write the expected terms of infAP of the liked items at the shown places of a group.

    Given how many judged items of the group stand above one (`chances`), the liked and the pooled
    ones among these are expected in proportion, independently of each other.
    """
    if size == 1:
        rank = above + 1.0
        part[5] = part[6] = 1.0
        if above > 0:
            share = (good + EPSILON) / (good + bad + 2 * EPSILON)
            known = (good + bad + pooled) / above
            part[5] = 1.0 / rank + (above / rank) * known * share
            part[6] = 1.0 / rank + (above / rank) * share
        return
    judged = likes - 1.0 + dislikes
    unjudged = size - 1.0 - judged
    in_group = in_pool / unjudged if unjudged > 0 else 0.0
    for count in range(int(judged) + 1):
        better = good + (count * (likes - 1.0) / judged if judged > 0 else 0.0)
        worth[count] = (better + EPSILON) / (good + bad + count + 2 * EPSILON)
    for place in range(1, shown + 1):
        next_place(place, size, judged, chances)
        usual, everything = 0.0, 0.0
        fewest = max(place - 1 - int(unjudged), 0)
        for count in range(fewest, min(int(judged), place - 1) + 1):
            term = chances[count] * worth[count]
            usual += term * (good + bad + count + pooled + (place - 1 - count) * in_group)
            everything += term
        rank = float(above + place)
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
        for other in range(h, start[row + 1]):
            if rank[other] != rank[h]:
                break
            likes += label[judgment[other]] == LIKED
        for c in range(cutoffs.size):
            shown = min(cutoffs[c], depth[row]) - above
            if shown >= size:
                out[c, row] = 1.0
            elif shown > 0:
                out[c, row] = 1.0 - no_liked(size, shown, likes)


@kernel
def liked_within(
    start: I64, rank: I32, tied: I32, judgment: I32, depth: I64, label: I8, limit: I64
) -> F64:
    """Count the liked items expected down to a rank of each list's own."""
    liked = np.zeros(start.size - 1)
    for row in range(start.size - 1):
        last = min(limit[row], depth[row])
        for h in range(start[row], start[row + 1]):
            shown = last - (int(rank[h]) - 1)
            if shown <= 0:
                break
            if label[judgment[h]] == LIKED:
                liked[row] += 1.0 if shown >= tied[h] else shown / tied[h]
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
                shown = min(cutoffs[c], depth[row]) - above
                out[c, row] = total + sum_ * mean_discount(discount, above, size, shown)
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

    Of a group, `shown` places hold X liked items, hypergeometric: its first two moments and the
    pairs of places in which the not liked one is first give the mean.
    """
    for row in range(start.size - 1):
        others = targets[row] - liked[row]
        for c in range(cutoffs.size):
            last = min(cutoffs[c], depth[row])
            right, good, h = 0.0, 0.0, start[row]
            mean, square = 0.0, 0.0  # of X, in the group at the cutoff
            while h < start[row + 1] and rank[h] <= last:
                above, size = int(rank[h]) - 1.0, float(tied[h])
                shown, likes, end = min(last - above, size), 0.0, h
                while end < start[row + 1] and rank[end] == rank[h]:
                    likes += label[judgment[end]] == LIKED
                    end += 1
                pairs = shown * (shown - 1.0) / max(size * (size - 1.0), 1.0)
                met = likes if shown == size else likes * shown / size
                right += met * (others - (above - good)) - 0.5 * pairs * likes * (size - likes)
                if shown == size:
                    good += likes
                else:
                    mean, square = met, met + pairs * likes * (likes - 1.0)
                h = end
            unseen, below = liked[row] - good, others - (last - good)
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
                shown = min(cutoffs[c], depth) - above
                out[c, row - lo] = total + (group * (shown / size) if shown > 0 else 0.0)
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
            shown = min(depth - (slot - start[row]), last - slot)
            for s in range(slot, last):
                if item[s] >= 0:
                    chance[item[s]] *= 1.0 - shown / (last - slot)
            slot = last
    return chance
