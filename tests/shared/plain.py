"""Plain twins: every metric once more, in a few lines of Python that follow its formula.

A list is a sequence of items; `good` and `bad` are the sets of liked and disliked items, `gain`
and `loss` map judged items to numbers.
"""

import math
from dataclasses import dataclass, field


@dataclass
class Case:
    """One user's list and judgments."""

    items: list
    good: set
    bad: set
    gain: dict
    loss: dict
    pooled: set = field(default_factory=set)
    positives: dict = field(default_factory=dict)
    targets: int = 0
    marks_pool: bool = False
    is_condensed: bool = False

    def anti(self):
        return Case(
            self.items, self.bad, self.good, self.loss, self.gain, self.pooled, self.positives,
            self.targets, self.marks_pool, self.is_condensed,
        )  # fmt: skip

    def condensed(self):
        kept = [i for i in self.items if i in self.good or i in self.bad]
        return Case(
            kept, self.good, self.bad, self.gain, self.loss, self.pooled, self.positives,
            len(self.good | self.bad), self.marks_pool, is_condensed=True,
        )  # fmt: skip

    def cut(self, k):
        return self.items if k is None else self.items[:k]


def _div(a, b):
    return a / b if b else math.nan


def P(c, k, per="k", bound="none"):
    top = c.cut(k)
    hit = sum(i not in c.bad if bound == "upper" else i in c.good for i in top)
    size = len(top) if per == "list" or k is None else k
    empty = math.nan if c.is_condensed and per == "list" else 0.0
    return hit / size if size else empty


def Recall(c, k, per="all"):
    hit = sum(i in c.good for i in c.cut(k))
    room = len(c.items) if k is None else k
    size = len(c.good) if per == "all" else min(len(c.good), max(room, 1))
    return _div(hit, size)


def F1(c, k, per="k"):
    p, r = P(c, k, per), Recall(c, k)
    return math.nan if math.isnan(r) else (2 * p * r / (p + r) if r else 0.0)


def HitRate(c, k):
    return float(any(i in c.good for i in c.cut(k)))


def Rprec(c, k):
    return _div(sum(i in c.good for i in c.cut(k)[: len(c.good)]), len(c.good))


def AP(c, k, per="all"):
    top = c.cut(k)
    total = sum(P(c, r) for r, i in enumerate(top, 1) if i in c.good)
    room = {"list": len(top), "min": len(c.items) if k is None else k}.get(per)
    if per == "k":
        size = max(len(c.items) if k is None else k, 1) if c.good else 0
    else:
        size = len(c.good) if room is None else min(len(c.good), max(room, 1))
    return _div(total, size)


def RR(c, k):
    return next((1 / r for r, i in enumerate(c.cut(k), 1) if i in c.good), 0.0)


def _log(r, discount):
    return 1 / math.log2(max(r, 2) if discount == "original" else r + 1)


def DCG(c, k, discount="log"):
    return sum(c.gain.get(i, 0) * _log(r, discount) for r, i in enumerate(c.cut(k), 1))


def nDCG(c, k, ideal="cut", discount="log", top_gain=None):
    if ideal == "full":
        gains = [top_gain] * k
    elif ideal == "best":
        order = sorted(c.good | c.bad, key=lambda i: c.loss[i] - c.gain[i], reverse=True)
        gains = [c.gain[i] for i in order][:k]
    else:
        gains = sorted(c.gain.values(), reverse=True)
        gains = gains if ideal == "uncut" else gains[:k]
    return _div(DCG(c, k, discount), sum(g * _log(r, discount) for r, g in enumerate(gains, 1)))


def RBP(c, k, p=0.8):
    return (1 - p) * sum(p ** (r - 1) for r, i in enumerate(c.cut(k), 1) if i in c.good)


def RBPresidual(c, k, p=0.8):
    known = c.good | c.bad
    return 1 - (1 - p) * sum(p ** (r - 1) for r, i in enumerate(c.cut(k), 1) if i in known)


def AUC(c, k):
    """Walk over all pairs; items outside the list stand together at its end."""
    top = c.cut(k)
    place = {i: r for r, i in enumerate(top)}
    unseen_good = sum(i not in place for i in c.good)
    unseen_other = c.targets - len(c.good) - sum(i not in c.good for i in top)
    right = 0.0
    for i in c.good:
        if i in place:
            right += sum(j not in c.good and place[j] > place[i] for j in top) + unseen_other
    right += 0.5 * unseen_good * unseen_other
    return _div(right, len(c.good) * (c.targets - len(c.good)))


def bpref(c, k):
    total, bad = 0.0, 0
    for i in c.cut(k):
        bad += i in c.bad
        if i in c.good:
            room = min(len(c.good), len(c.bad))
            total += 1 - min(bad, len(c.good)) / room if bad else 1
    return _div(total, len(c.good))


def infAP(c, k, pool="auto", e=1e-5):
    total = 0.0
    everything = pool == "all" or (pool == "auto" and not c.marks_pool)
    for r, i in enumerate(c.cut(k), 1):
        if i in c.good:
            above = c.items[: r - 1]
            good = sum(j in c.good for j in above)
            bad = sum(j in c.bad for j in above)
            pooled = r - 1 if everything else good + bad + sum(j in c.pooled for j in above)
            share = (good + e) / (good + bad + 2 * e)
            total += 1.0 if r == 1 else 1 / r + (r - 1) / r * pooled / (r - 1) * share
    return _div(total, len(c.good))


def SR(c, k, gamma=1.0, mean="users"):
    w = {i: c.positives[i] ** (-gamma / (gamma + 1)) for i in c.good}
    found, total = sum(w[i] for i in c.cut(k) if i in c.good), sum(w.values())
    return (found, total) if mean == "ratio" else _div(found, total)


def HLU(c, k, halflife=5.0, weight="none", mean="ratio"):
    g = {i: c.gain[i] / (c.positives[i] if weight == "popularity" else 1) for i in c.good}
    half = [2 ** (-r / (halflife - 1)) for r in range(1000)]
    top = sum(g[i] * h for i, h in zip(c.cut(k), half, strict=False) if i in c.good)
    best = sum(x * h for x, h in zip(sorted(g.values(), reverse=True)[:k], half, strict=False))
    return (top, best) if mean == "ratio" else _div(top, best)


def Judged(c, k):
    top = c.cut(k)
    return _div(sum(i in c.good or i in c.bad for i in top), k or len(top))


def Residual(c, k):
    return 1 - Judged(c, k)
