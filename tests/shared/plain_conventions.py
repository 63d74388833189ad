"""Plain twins of conventions: one user at a time, a few lines for each choice.

A list is `[(item, score)]` in the order of its rows, best first; `judged` maps items to ratings.
"""

import math
from itertools import groupby, permutations

RELEVANT = {
    "liked": lambda r, t: r >= t,
    "above": lambda r, t: r > t,
    "whole": lambda r, t: int(r) >= t,
    "positive": lambda r, t: r > 0,
    "one": lambda r, t: r >= 1,
    "judged": lambda r, t: True,
}
GAIN = {
    "rating": lambda r, rel, t: r,
    "binary": lambda r, rel, t: float(rel),
    "liked-only": lambda r, rel, t: r * rel,
    "burges": lambda r, rel, t: 2**r - 1,
    "burges-liked": lambda r, rel, t: (2**r - 1) * rel,
    "burges-next": lambda r, rel, t: 2 ** (r + 1) - 1,
    "levels": lambda r, rel, t: max(r - t + 1, 0) * rel,
    "exponential": lambda r, rel, t: max(2 ** (r - t + 1) - 1, 0) * rel,
    "integer": lambda r, rel, t: int(r),
    "integer-liked": lambda r, rel, t: int(r) * rel,
    "integer-burges": lambda r, rel, t: 2 ** int(r) - 1,
    "integer-burges-liked": lambda r, rel, t: (2 ** int(r) - 1) * rel,
}
DISCOUNT = {
    "log": lambda i: 1 / math.log2(i + 1),
    "original": lambda i: 1 / max(1, math.log2(i)),
    "late": lambda i: 1 / math.log2(i + 2),
    "reciprocal": lambda i: 1 / i,
}
ORDER = {
    "given": lambda items: sorted(items),
    "id": lambda items: sorted(items),
    "trec": lambda items: sorted(items, key=str, reverse=True),
    "text": lambda items: sorted(items, key=str),
    "reverse": lambda items: sorted(items, reverse=True),
    "input": lambda items: items,
    "last": lambda items: items[::-1],
    "together": lambda items: items,
}


def tie_groups(rows):
    return [[item for item, _ in group] for _, group in groupby(rows, key=lambda row: row[1])]


def orders(rows, c):
    """Return the list in every order that counts, each as `[(place, item)]`."""
    groups = tie_groups(rows)
    if c.ties == "expected":
        several = [[]]
        for group in groups:
            several = [done + list(p) for done in several for p in permutations(group)]
        return several
    return [[item for group in groups for item in ORDER[c.ties](group)]]


class User:
    """One user under a convention."""

    def __init__(self, c, judged, items, threshold, train, catalogue, groups):
        self.c, self.has_list = c, bool(items)
        rel = {i: RELEVANT[c.relevant](r, threshold) for i, r in judged.items()}
        if c.judgments == "liked":
            judged = {i: r for i, r in judged.items() if rel[i]}
        if c.training == "remove":
            items = [i for i in items if i not in train]
        if c.catalogue == "remove":
            items = [i for i in items if i in catalogue]
        later = [i in items[:n] for n, i in enumerate(items)]
        if c.duplicates == "first":
            items = [i for i, again in zip(items, later, strict=True) if not again]
        elif c.duplicates == "miss":
            items = [None if again else i for i, again in zip(items, later, strict=True)]
        if c.unjudged == "remove":
            items = [i for i in items if i in judged]
        if c.judgments == "listed":
            judged = {i: r for i, r in judged.items() if i in items}
        self.items, self.judged = items, judged
        self.rel = {i: rel[i] for i in judged}
        self.gain = {i: GAIN[c.gain](r, rel[i], threshold) for i, r in judged.items()}
        place = {i: n for n, i in enumerate(items, 1)}
        last = {i: max(place[j] for j in g if j in place) for g in groups for i in g if i in place}
        together = c.ties == "together"
        self.places = [(last[i] if together else n, i) for n, i in enumerate(items, 1)]
        extra = []
        if c.duplicates in ("new", "multiple"):
            stop = len(items) if c.k is None or c.duplicates == "multiple" else c.k
            extra = [i for n, i in enumerate(items) if n < stop and i in items[:n] and i in judged]
        self.R = sum(self.rel.values()) + sum(self.rel[i] for i in extra)
        self.gains = [*self.gain.values(), *(self.gain[i] for i in extra)]
        k = math.inf if c.k is None else c.k
        self.stop = {"k": k, "k+1": k + 1, "k-1": k - 1, "whole": math.inf}[c.cut]
        self.room = len(items) if c.k is None else c.k
        self.shown = min(len(items), self.stop)
        self.hits = [n for n, i in self.places if n <= self.stop and self.rel.get(i)]
        self.anywhere = [n for n, i in self.places if self.rel.get(i)]

    def by(self, usual, of_list):
        return {
            "usual": usual, "list": of_list, "min": min(self.R, self.room), "k": self.room,
            "found": len(self.hits), "found-uncut": len(self.anywhere), "all": self.R,
        }[self.c.per]  # fmt: skip

    def dcg(self, gains):
        return sum(g * DISCOUNT[self.c.discount](n) for n, g in enumerate(gains, 1))


def quotient(top, bottom):
    return top / bottom if bottom else 0.0


def P(u):
    if u.c.per in ("min", "all") and not u.R:
        return math.nan
    return quotient(len(u.hits), u.by(u.room, u.shown))


def Recall(u):
    return quotient(len(u.hits), u.by(u.R, u.shown)) if u.R else math.nan


def F1(u):
    if not u.R:
        return math.nan
    bottom = u.by(u.room, u.shown)
    p, r = quotient(len(u.hits), bottom), len(u.hits) / u.R
    return 2 * p * r / (p + r) if p + r else 0.0


def AP(u):
    if not u.R:
        return math.nan
    total = sum(sum(m <= n for m in u.anywhere) / n for n in u.hits)
    return quotient(total, u.by(u.R, min(u.shown, u.R)))


def MeanP(u):
    last = u.shown if u.c.per == "list" else min(u.room, u.stop)
    total = sum(sum(m <= j for m in u.hits) / j for j in range(1, int(last) + 1))
    return quotient(total, u.by(u.room, u.shown))


def DCG(u):
    return sum(u.gain.get(i, 0) * DISCOUNT[u.c.discount](n) for n, i in u.places if n <= u.stop)


def nDCG(u):
    k = math.inf if u.c.k is None else u.c.k
    best = sorted(u.gains, reverse=True)
    here = [(n, u.gain.get(i, 0)) for n, i in u.places]
    cut = {
        "cut": lambda: best[: int(min(k, len(best)))],
        "uncut": lambda: best,
        "list": lambda: best[: int(u.shown)],
        "full": lambda: [1.0] * int(u.room),
        "found": lambda: sorted((g for n, g in here if n <= u.stop), reverse=True)[
            : int(min(k, len(here)))
        ],
        "found-uncut": lambda: sorted((g for _, g in here), reverse=True)[: int(min(k, len(here)))],
    }
    if not any(best) and u.c.ideal != "full":
        return math.nan
    return quotient(DCG(u), u.dcg(cut[u.c.ideal]()))


def RR(u):
    return 1 / min(u.hits) if u.hits else 0.0


def ARHR(u):
    return sum(1 / n for n in u.hits)


def NCRR(u):
    if not u.R:
        return math.nan
    k = math.inf if u.c.k is None else u.c.k
    sizes = {
        "cut": min(u.R, k), "uncut": u.R, "list": min(u.R, u.shown), "full": u.room,
        "found": len(u.hits), "found-uncut": min(len(u.anywhere), k),
    }  # fmt: skip
    return quotient(ARHR(u), sum(1 / n for n in range(1, int(sizes[u.c.ideal]) + 1)))


def HitRate(u):
    return float(bool(u.hits))


def Hits(u):
    return float(len(u.hits))


def Rprec(u):
    return sum(n <= u.R for n in u.hits) / u.R if u.R else math.nan


def value(c, user):
    """Return the value of a user who is averaged, None of one who is not."""
    result = globals()[c.metric](user)
    if c.digits != "none":
        result = round(result, int(c.digits))
    graded = c.metric in ("nDCG", "DCG")
    empty = not (any(user.gains) if graded else user.R)
    if c.undefined == "one" and empty:
        result = 1.0
    if c.undefined == "skip" and (empty or math.isnan(result)):
        result = None
    elif math.isnan(result):
        result = 0.0
    averaged = {
        "with-test": bool(user.judged), "with-relevant": user.R > 0,
        "both": bool(user.judged) and user.has_list,
        "list-and-relevant": user.R > 0 and user.has_list, "with-list": user.has_list,
        "with-hit": bool(user.anywhere), "above-zero": bool(result),
        "all": bool(user.judged) or user.has_list,
    }[c.users]  # fmt: skip
    return result if averaged else None
