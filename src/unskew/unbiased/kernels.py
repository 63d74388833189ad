"""Kernels of bounds: what stands in the places of each list."""

from __future__ import annotations

from unskew.arrays import F64, I8, I32, I64
from unskew.engine.compiled import kernel


@kernel
def slot_kinds(
    hit_start: I64,
    hit_rank: I32,
    hit_judgment: I32,
    label: I8,
    depth: I64,
    begin: I64,
    item: I32,
    discount: F64,
    cutoff: int,
    out: F64,
) -> None:
    """Split the discounts of each list's slots above the cutoff: known good, known bad, unjudged.

    `label` is 1 for liked, 2 for disliked, else taken as unjudged. A list's items begin at `begin`
    in `item`, which is empty where no slot is. `out` has rows: 0 good, 1 bad, 2 unjudged
    discounts, 3 to 5 how many, 6 the rank of the first good, 7 of the first not bad.
    """
    for r in range(hit_start.size - 1):
        for k in range(8):
            out[k, r] = 0.0
        h, end = hit_start[r], hit_start[r + 1]
        for place in range(1, min(cutoff, depth[r]) + 1):
            if item.size > 0 and item[begin[r] + place - 1] < 0:
                continue
            kind = 2
            if h < end and hit_rank[h] == place:
                taken = label[hit_judgment[h]]
                if taken == 1:
                    kind = 0
                elif taken == 2:
                    kind = 1
                h += 1
            out[kind, r] += discount[place]
            out[3 + kind, r] += 1.0
            if kind == 0 and out[6, r] == 0.0:
                out[6, r] = place
            if kind != 1 and out[7, r] == 0.0:
                out[7, r] = place
