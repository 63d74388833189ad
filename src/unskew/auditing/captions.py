"""Every sentence of a report that is no statement: what is shown, what was counted or left out.

A caption describes or defines; it concludes nothing. `unskew.auditing.statements` holds what may be
concluded, and a test holds every report against the two.
"""

from __future__ import annotations

SECTIONS = {
    "answer": (
        "The answer",
        "All that is stated of two systems. Each kind of sentence leads to how often such "
        "sentences are wrong.",
    ),
    "data": (
        "The data",
        "How many ratings there are, how they fall on items, what the splits did, and how the "
        "systems were prepared.",
    ),
    "designs": (
        "Designs side by side",
        "The same systems under each design, with what a random order is expected to score there. "
        "Values of different designs are not on one scale.",
    ),
    "decisions": (
        "Decisions",
        "The difference of every two systems under every design, with one correction for all of "
        "them.",
    ),
    "ladder": (
        "What the scores are made of",
        "The lists stay as they are; the test part is drawn again, with more and more of it kept. "
        "Each rung is what these lists are then expected to score.",
    ),
    "liked": (
        "Liked when judged",
        "Of the recommended items that somebody judged, how many are liked, and what precision is "
        "estimated where judgments are weighted.",
    ),
    "protocol": (
        "The null experiment, and the metrics",
        "Self-tests of the protocol: what it gives where opinions are re-drawn, and how metrics "
        "order the systems on parts of the test ratings.",
    ),
    "truth": (
        "The truth",
        "Where it is known: true values beside what each design observes.",
    ),
    "error-rates": (
        "How often sentences like these are wrong",
        "The self-test runs the audit in simulated worlds whose truth is known. Rates are over "
        "those worlds: none of them is the chance that this report is wrong.",
    ),
    "card": (
        "The card",
        "Data, plan, seed and versions, from which each number can be derived again, and the "
        "papers to cite.",
    ),
}
"""By key: the title of a section, and what it shows."""

SHOWS = {
    "data implicit": "How many events there are, how they fall on items, and what the splits did.",
    "data given": "How many ratings there are, how they fall on items, and how they are split.",
    "designs given": (
        "The given lists, judged in several ways, with what a random order is expected to score "
        "where that is known. Values of different designs are not on one scale."
    ),
    "liked implicit": (
        "No dislike is recorded, so that every judged recommendation is liked. Below: precision "
        "where judgments are weighted, and where it comes from."
    ),
    "protocol given": (
        "Self-tests of the protocol: what the same lists score where opinions are re-drawn, and "
        "how metrics order the systems on parts of the test ratings."
    ),
}
"""What a section shows where data are implicit or lists are given."""

TITLES = {
    "title": "How far to trust this evaluation: {name}",
    "verdict": "Verdict: {verdict}.",
    "rate link": "How often is such a sentence wrong?",
    "pairs": "Statements about two systems",
    "data": "The data",
    "bins": "Share of liked ratings by popularity of the items",
    "splits": "What the first split of each protocol did",
    "given split": "The given split",
    "reach": "How far the given lists reach",
    "settings": "The settings that tuning chose, by split",
    "designs": "The designs",
    "scores": "{metric} of every system under every design",
    "cold": "{metric} on warm and on cold users",
    "consensus": "Systems by their mean place over the designs that count",
    "contrasts": "Differences of {metric}, by design and pair",
    "agreement": "How alike designs order the systems: Kendall's τ",
    "rungs": "The rungs: what is kept of the test part",
    "ladder": "{precision} of every system, rung by rung",
    "steps": "Steps of the ladder: single systems",
    "reasons": "What leads are made of",
    "ladder pairs": "Steps of the ladder: the leading system of each pair less the other",
    "shares": "Liked share of judged recommendations",
    "share pairs": "Differences of the liked share",
    "shown": "On randomly shown items: true {precision}",
    "shown pairs": "On randomly shown items: differences of true {precision}",
    "break-even": "Break-even: how much display would have to inflate liking",
    "margins": "Judged, and liked when judged",
    "estimates": "Estimates that weigh judgments by propensity",
    "heads": "The share of each score that comes from the most popular tenth of items",
    "null": "The null experiment",
    "power": "Discriminative power",
    "sparsity": "Robustness to sparsity",
    "popularity": "Robustness to popularity",
    "orders": "Places of the systems, in truth and by design",
    "true orders": "The order of systems under each design, held against the true one",
    "true values": "Observed and true values",
    "rates": "By kind of sentence, over simulated worlds",
    "card": "What everything rests on",
    "command": "The command",
    "plan": "The plan (unskew run plan.toml)",
    "plan of several": "Plan {number} of {count} (unskew run plan.toml)",
    "citations": "Citations",
}

CAPTIONS = {
    "assumed": "Assumed:",
    "notes": "Noted:",
    "all not done": "Not done:",
    "not done": "Not done: {what}: {why}.",
    "nothing": "There is nothing to show.",
    "counted": "Counted while the systems were judged:",
    "older": (
        "{share} of the test ratings of the {name} split are older than the newest training rating."
    ),
    "in both parts": "{count} pairs are in both parts of the {name} split.",
    "cold users": "{count} of {users} test users of the {name} split have no training rating.",
    "rows cut": "the first {shown} of {count} rows",
    "scores note": (
        "means over users with a training rating (warm users) and their 95 % t intervals; random: "
        "what a random order of the same targets is expected to score"
    ),
    "scores note no chance": (
        "means over users with a training rating (warm users) and their 95 % t intervals; what a "
        "random order scores is not known here"
    ),
    "scores note given": (
        "means over users and their 95 % t intervals; random: what a random order of the same "
        "targets is expected to score"
    ),
    "scores note given no chance": (
        "means over users and their 95 % t intervals; what a random order scores is not known here"
    ),
    "cold note": "cold: users without a training rating; comparisons leave them out",
    "consensus note": "first: the number of designs under which a system has place 1",
    "left out": "{design} is left out of all comparisons: {why}.",
    "reach note": (
        "judged, liked: the share of the users' test ratings, and of the liked ones, that the "
        "lists hold; filled: the share of the places up to the cutoff that are filled, of those "
        "that the design could fill"
    ),
    "references note": "reference systems: {names}",
    "contrasts note": (
        "positive: a scores better; low, high: intervals that hold together over all designs and "
        "pairs; p: adjusted for all of them, at most 0.05 where the interval leaves 0 out; "
        "detectable: the smallest difference that this test finds with 80 % power"
    ),
    "agreement note": "1: the same order, −1: the opposite; intervals over users",
    "ladder note": (
        "match = observed − averages, choice = choice − averages, opinion = observed − choice; "
        "low, high, t: over users; z: in standard deviations of what the lower rung draws"
    ),
    "floor": (
        "Popularity recommends by numbers of ratings alone. Its own match, {match}, is the floor "
        "to hold those of other systems against."
    ),
    "shares note": (
        "plain: every judged recommendation counts alike; levelled: it counts 1 / (ratings of its "
        "item x ratings of its user), cut at the 95 % quantile; 95 % intervals by user"
    ),
    "shown note": "from ratings of items that were shown at random; 95 % intervals by user",
    "break-even note": "in points of a hundred: the end of the interval that is nearer to 0",
    "margins note": "P = judged x liked; anti-P = judged x (1 − liked)",
    "estimates note": (
        "usable estimates only; naive: what is not judged counts as not liked; ips, snips: each "
        "judgment counts by its propensity; ess: how many equal weights the weights of the hits "
        "are worth"
    ),
    "first split": "Estimates, strata and robustness are of the first split.",
    "unusable": "Not usable here, and not shown: the estimates of {metric} of {names}.",
    "null trained": (
        "Who rated what is kept, opinions are re-drawn at random, and the systems are trained "
        "again on the result: {repeats}. This tests the protocol; it does not say what a score on "
        "the real opinions is made of."
    ),
    "null lists": (
        "Who judged what is kept and opinions are re-drawn at random: {repeats}. The lists stay "
        "as they are. This tests the protocol; it does not say what a score on the real opinions "
        "is made of."
    ),
    "null note": (
        "real: on the ratings as they are; null value: on re-drawn opinions, the mean over "
        "repeats; ratio: null value / chance, with its interval over repeats"
    ),
    "null designs": "Not run on re-drawn opinions: {designs}.",
    "power note": "DP: the sum of p over {pairs}; ratio: the share of pairs with p < 0.05",
    "robustness note": (
        "tau: of the order of {systems} on a part of the test ratings to their order on all of them"
    ),
    "truth source": "The truth: {source}.",
    "true orders note": (
        "tau: Kendall's τ of the order of systems to the true one, with its interval over users; "
        "swaps: pairs of systems in another order; mean error: mean size of the errors in percent "
        "of the truth"
    ),
    "true values note": (
        "observed: over users with a training rating; true: over all users whose truth is known; "
        "error: in percent of the truth"
    ),
    "truth unknown": (
        "The truth of these data is not known: ratings of randomly shown items (random=…, "
        "--random FILE) would allow this section."
    ),
    "rates note": (
        "rate: the mean over worlds of the share of such sentences that are false there, with its "
        "95 % interval over worlds; kinds of worlds count alike"
    ),
    "rate": "sentences like this one are wrong in {rate} of {worlds} simulated worlds {interval}",
    "rate fails": (
        "sentences like this one are wrong in {rate} of {worlds} simulated worlds {interval}; "
        "they fail when {conditions}"
    ),
    "range": "{low} to {high}",
    "failing": "{rate} of such sentences in worlds of the kind {world}",
    "rate missing": "rate not measured for this version",
    "rate none": "a count or advice: no world can refute it",
}
"""By name: a sentence, with the values that stand in it between braces."""

RUNGS = (
    ("chance", "each user's number of likes"),
    ("counts", "each user's and each item's number of test ratings; likes drawn at random"),
    ("averages", "each user's and each item's number of test likes"),
    ("choice", "the rated pairs; likes re-drawn, keeping each user's and each item's number"),
    ("observed", "everything"),
)
"""The rungs of the ladder, and what each one keeps."""


def title(key: str, /, **values: object) -> str:
    """Return the title of a block."""
    return TITLES[key].format(**values)


def caption(key: str, /, **values: object) -> str:
    """Return a caption with its values."""
    return CAPTIONS[key].format(**values)
