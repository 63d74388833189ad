"""Every sentence of a report that is no statement: what is shown, what was counted or left out.

A caption describes or defines; it concludes nothing. `unskew.auditing.statements` holds what may
be concluded, and a test holds every report against the two.
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
    "leaks": (
        "Leaks and drift",
        "Whether what is tested reached the training, and what changes between training and test: "
        "a light for each check.",
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
    "filters": (
        "What the filters did",
        "The systems on all ratings and on what the filters leave, on the same split: how far "
        "scores and order move because less is judged, and because less is trained on.",
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

HEADLINES = {
    "depends": "Depends on the design: {a} leads under one, {b} under another.",
    "leads here": (
        "Not settled: {a} leads under {led} of {count} designs; the others leave it open."
    ),
    "undecided": "Not settled: {a} scores best, but its lead over {b} may be chance.",
    "undecided pair": "Not settled: {a} scores higher than {b}, but its lead may be chance.",
    "same": "Not settled: {a} and {b} score the same.",
    "settled shown": (
        "Settled: {lead}, and on randomly shown items people like its recommendations more than "
        "those of {other}."
    ),
    "settled judged": (
        "Settled: {lead}, and when judged, its recommendations are liked more often than those of "
        "{other}."
    ),
    "score but shown": (
        "Settled by score only: {lead}, but on randomly shown items people like the "
        "recommendations of {other} more."
    ),
    "score but judged": (
        "Settled by score only: {lead}, but when judged, the recommendations of {other} are liked "
        "more often."
    ),
    "score use": (
        "Settled by score only: {lead}. The data record what was used, not what was liked."
    ),
    "score only": (
        "Settled by score only: {lead}. Whether people like its recommendations more is open."
    ),
}
"""Verdicts of the first screen: each one says in a line what the statements below it state."""

TITLES = {
    "title": "How far to trust this evaluation: {name}",
    "verdict": "Verdict: {verdict}.",
    "main chart": "Place and score under each design",
    "truth panel": "In truth",
    "rate link": "How often is such a sentence wrong?",
    "pair": "What is stated of {a} and {b}",
    "pairs": "Statements about two systems",
    "all pairs": "All {count} statements about two systems",
    "assumed fold": "What was assumed, and what was not done",
    "bins fold": "Liked ratings by popularity, in numbers",
    "splits fold": "What splitting did, in numbers",
    "facts fold": "Drift, cold users and items, rhythm: facts without a judgement",
    "unknown fold": "What could not be checked here",
    "unknown": "Not checked",
    "lights": "Lights",
    "facts": "Facts",
    "settings fold": "The settings that tuning chose",
    "notes fold": "What was noted when the data were read",
    "scores fold": "All scores with their intervals",
    "cold fold": "Users without training ratings",
    "reach fold": "How far the lists reach",
    "counted fold": "What was counted while the systems were judged",
    "contrasts fold": "All differences with their intervals",
    "consensus fold": "Mean place of each system",
    "agreement fold": "How alike the designs order the systems",
    "choices fold": "What moves the order of systems",
    "segments fold": "Differences by activity of users",
    "reasons fold": "What each lead is made of",
    "ladder fold": "All rungs and steps in numbers",
    "shares fold": "Liked shares and their differences, in numbers",
    "shown fold": "Randomly shown items, in numbers",
    "estimates fold": "Estimates that weigh judgments",
    "strata fold": "Where the scores come from, by popularity",
    "null fold": "The null experiment, in numbers",
    "power fold": "Discriminative power of the metrics",
    "robust fold": "Robustness of the metrics",
    "truth fold": "Observed and true values, in numbers",
    "plans fold": "The plan as a file",
    "citations fold": "Papers to cite",
    "card fold": "All settings and versions",
    "segments": "Differences in {metric} by {by}",
    "interactions": "Do the differences in {metric} differ by {by}?",
    "places": "{metric} and place of each system under each design",
    "chance row": "chance",
    "decided": "Who is ahead in {metric}, pair by pair and design by design",
    "is ahead": "ahead",
    "is behind": "behind",
    "is open": "open",
    "kept": "kept of the test part",
    "data": "The data",
    "bins": "Share of liked ratings by popularity of the items",
    "splits": "What the first split of each protocol did",
    "given split": "The given split",
    "reach": "How far the given lists reach",
    "settings": "The settings that tuning chose, by split",
    "filter steps": "What was removed",
    "filter sizes": "What systems are trained on and judged by",
    "filter scores": "{metric} of every system on all ratings and on what is left",
    "filter changes": "Does the order of two systems change?",
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
    "code": "In Python",
    "plan": "The plan (unskew run plan.toml)",
    "plan of several": "Plan {number} of {count} (unskew run plan.toml)",
    "citations": "Citations",
}

FRAGMENTS = {
    "leads one": "{a} leads",
    "leads all": "{a} leads under every design",
    "ahead": "{a} is ahead of {b}",
    "up to more": "up to {amount} more",
    "up to fewer": "up to {amount} fewer",
    "amount per list": "{count} {thing}s per list",
    "amount in lists": "1 {thing} in {count} lists",
    "over splits": ", on average over {count} splits",
}
"""Parts of verdicts and captions: none of them stands alone."""

CAPTIONS = {
    "hits per list": "{count} {more} {thing}s per list",
    "hit in lists": "1 {more} {thing} in {count} lists",
    "lead open": "no clear lead",
    "lead metric": "{metric} {difference} apart",
    "hit liked": "A hit is a recommended item that the user liked in the test part.",
    "hit used": "A hit is a recommended item that the user used in the test part.",
    "lead per list": (
        "{where}, {a} has {count} {more} {thing}s than {b} in a list of {k}, on average ({percent} "
        "% interval: {low} to {high})."
    ),
    "lead in lists": (
        "{where}, {a} has one {thing} {more} than {b} in every {count} lists of {k}, on average "
        "({percent} % interval: every {low} to {high} lists)."
    ),
    "lead none": "{where}, {a} and {b} have equally many hits.",
    "lead allows": (
        "{where}, lists of {a} may have {ends} than lists of {b}: so far goes the {percent} % "
        "interval."
    ),
    "lead plain": (
        "{where}, {a} differs from {b} by {shown} in {metric}, with its {percent} % interval; "
        "above 0, {a} scores better."
    ),
    "lead unknown": "{where}, the difference of {a} and {b} has no interval.",
    "users value": "{better} better off, {worse} worse",
    "users hits": (
        "Of {users}, {better} have more hits with {a} than with {b} {where}, {worse} have fewer "
        "and {same} as many{splits}."
    ),
    "users metric": (
        "Of {users}, {better} have a better {metric} with {a} than with {b} {where}, {worse} a "
        "worse one and {same} the same{splits}."
    ),
    "chance hits value": "{chance} hits by chance",
    "chance hits": (
        "{where}, a random order has {chance} hits in a list of {k}, on average; {a} has {first}, "
        "{b} has {second}."
    ),
    "chance metric value": "{metric} {chance} by chance",
    "chance metric": (
        "{where}, a random order is expected to score {chance} in {metric}; {a} scores {first}, "
        "{b} scores {second}."
    ),
    "chart mean": "{metric}: mean and 95 % interval over users; place 1 on top",
    "chart chance": "dashed: a random order; each panel has its own scale",
    "chart truth": "grey, with diamonds: what is known to be true",
    "chart left": "{systems} not drawn",
    "assumed": "Assumed:",
    "notes": "Noted:",
    "all not done": "Not done:",
    "not done": "Not done: {what}: {why}.",
    "nothing": "There is nothing to show.",
    "counted": "Counted while the systems were judged:",
    "older": (
        "{share} of the test ratings of the {name} split are older than the newest training rating."
    ),
    "in both parts": "{pairs} in both parts of the {name} split.",
    "cold users": "{count} of {users} test users of the {name} split have no training rating.",
    "no cut": (
        "Splits without one cut in time for all: {names}. There, systems learn from ratings that "
        "are later than those they are tested on, by construction."
    ),
    "no training part": "There is no training part to hold against the test ratings.",
    "lights note": (
        "leak: what is tested reached the training; look: worth a look; ok: checked, nothing "
        "there; us.splits.diagnose says when each light changes"
    ),
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
    "places note": (
        "means over users, the place in brackets; compare within a column only: every design has "
        "a scale of its own"
    ),
    "decided note": (
        "ahead, behind: the interval of the difference, corrected for all pairs and designs, "
        "leaves 0 out; open: it holds 0"
    ),
    "too few points": "{figure} is not drawn: it would show {points}.",
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
    "segments note": (
        "{rule}; difference: the first system less the second, over the users of the segment; "
        "intervals hold together over all segments and pairs; p: paired t test, adjusted for all "
        "of them by Holm"
    ),
    "interactions note": (
        "difference: over all users; interaction: Welch's F test of the hypothesis that the mean "
        "difference is the same in all segments, adjusted for all pairs by Holm"
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
        "again on the result, with the settings that they have on the first split of the design: "
        "{repeats}. This tests the protocol; it does not say what a score on the real opinions is "
        "made of."
    ),
    "null lists": (
        "Who judged what is kept and opinions are re-drawn at random: {repeats}. The lists stay "
        "as they are. This tests the protocol; it does not say what a score on the real opinions "
        "is made of."
    ),
    "null enough": (
        "{repeats} (at least {least}, at most {most}) give the precision that is asked: the widest "
        "interval of {metric} is {width}, at most {wanted} is asked, as a share of the largest "
        "lead over chance in its design (of chance, where that is larger)."
    ),
    "null most": (
        "{repeats} are the most allowed: the widest interval of {metric} is {width}, {wanted} is "
        "asked, as a share of the largest lead over chance in its design (of chance, where that is "
        "larger)."
    ),
    "null expected": (
        "On re-drawn opinions, the value of {names} is the expected one of a random order: chance."
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


def verdict(key: str, /, **values: object) -> str:
    """Return the verdict of a headline."""
    return HEADLINES[key].format(**values)


def fragment(key: str, /, **values: object) -> str:
    """Return a part of a verdict or caption."""
    return FRAGMENTS[key].format(**values)


def title(key: str, /, **values: object) -> str:
    """Return the title of a block."""
    return TITLES[key].format(**values)


def caption(key: str, /, **values: object) -> str:
    """Return a caption with its values."""
    return CAPTIONS[key].format(**values)
