"""People's words for the columns, rows and kinds of a report's tables: no raw key is printed.

Tables in Python keep their names; a report says what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence

COLUMNS = {
    "system": "system",
    "design": "design",
    "a": "system",
    "b": "compared with",
    "metric": "metric",
    "value": "score",
    "low": "interval from",
    "high": "interval to",
    "random": "chance",
    "place": "place",
    "difference": "difference",
    "p": "adjusted p",
    "detectable": "smallest difference found",
    "users": "users",
    "segment": "segment of users",
    "interaction": "adjusted p of the interaction",
    "cold": "cold users",
    "share": "share of cold users",
    "on_warm": "score on warm users",
    "on_cold": "score on cold users",
    "mean_place": "mean place",
    "best": "best place",
    "worst": "worst place",
    "first": "designs led",
    "tau": "Kendall's τ",
    "swaps": "pairs swapped",
    "weights": "weights",
    "judged": "judged",
    "judged_a": "judged, first system",
    "judged_b": "judged, second system",
    "shown": "shown at random",
    "shown_a": "shown at random, first system",
    "shown_b": "shown at random, second system",
    "reason": "why not known",
    "naive": "as observed",
    "ips": "IPS",
    "ips_low": "IPS from",
    "ips_high": "IPS to",
    "snips": "SNIPS",
    "snips_low": "SNIPS from",
    "snips_high": "SNIPS to",
    "hits": "hits",
    "ess": "effective number of hits",
    "score": "score",
    "head": "from the most popular tenth",
    "rest": "from the other items",
    "head_share": "share from the most popular tenth",
    "real": "score",
    "real_random": "chance",
    "null_value": "score, opinions re-drawn",
    "null_random": "chance, opinions re-drawn",
    "ratio": "ratio",
    "ratio_low": "ratio from",
    "ratio_high": "ratio to",
    "DP": "sum of p (DP)",
    "median_p": "median p",
    "significant": "pairs with p < 0.05",
    "pairs": "pairs",
    "least": "lowest τ",
    "undefined": "times undefined",
    "mean_error": "mean error, %",
    "observed": "observed",
    "true": "true",
    "error": "error, %",
    "true_users": "users with a known truth",
    "observed_zero": "observed, undefined as 0",
    "true_zero": "true, undefined as 0",
    "error_zero": "error, undefined as 0, %",
    "items": "items",
    "from": "fewest ratings",
    "to": "most ratings",
    "mean_rated": "mean ratings per item",
    "ratings": "ratings",
    "split": "split",
    "light": "light",
    "check": "check",
    "amount": "value",
    "sentence": "in a sentence",
    "settings": "settings",
    "kind": "kind of sentence",
    "statement": "statement",
    "rung": "rung",
    "chance": "chance",
    "counts": "counts",
    "averages": "averages",
    "choice": "choice",
    "what": "what",
    "title": "in words",
    "about": "what is done",
    **{
        f"{step}_{part}": f"{step}{word}"
        for step in ("lead", "counts", "averages", "match", "choice", "opinion")
        for part, word in (
            ("step", ""),
            ("low", " from"),
            ("high", " to"),
            ("z", " z"),
            ("t", " t"),
        )
    },
}
"""By the name of a column in Python: its head in a report."""

OF_TABLES = {
    "agreement": {"a": "design", "b": "compared with"},
    "reach": {
        "judged": "judged items reached",
        "liked": "liked items reached",
        "filled": "places filled",
    },
    "shares": {"value": "liked share", "judged": "judged recommendations"},
    "share pairs": {"value": "difference of liked share"},
    "shown": {"value": "true score", "shown": "recommendations shown at random"},
    "shown pairs": {"value": "difference of true score"},
    "margins": {
        "P": "liked (P)",
        "anti-P": "disliked (anti-P)",
        "judged": "judged share",
        "liked": "liked when judged",
    },
    "bins": {"ratio": "liked share"},
    "heads": {"low": "share from", "high": "share to"},
    "power": {"ratio": "share of pairs with p < 0.05"},
    "ladder": {
        "counts": "rung counts",
        "averages": "rung averages",
        "choice": "rung choice",
    },
    "steps": {"match_step": "match", "choice_step": "choice step", "opinion_step": "opinion"},
    "ladder pairs": {"choice_step": "choice step"},
    "card": {"value": "value"},
    "filter scores": {
        "all": "all ratings",
        "judged on what stays": "judged on what stays",
        "filtered": "trained and judged on what stays",
        "judged": "change by judging less",
        "trained": "change by training on less",
    },
    "filter sizes": {
        "split": "split",
        "condition": "condition",
        "train": "training ratings",
        "test": "test ratings",
        "users": "judged users",
        "items": "candidate items",
    },
    "filter changes": {
        "least": "smallest difference",
        "most": "largest difference",
        "p_corrected": "adjusted p that it varies",
        "a_ahead": "first system ahead",
        "b_ahead": "second system ahead",
        "reverses": "order changes",
    },
    "filter steps": {
        "filter": "filter",
        "rows": "ratings before",
        "rows_left": "ratings left",
        "users": "users before",
        "users_left": "users left",
        "items": "items before",
        "items_left": "items left",
    },
}
"""By table: the columns whose head is not that of `COLUMNS`."""

ROWS = {
    "ratings": "ratings",
    "users": "users",
    "items": "items",
    "density": "share of all pairs that are rated",
    "gini": "inequality of ratings over items (Gini)",
    "lowest": "lowest rating",
    "highest": "highest rating",
    "mean": "mean rating",
    "liked": "share of ratings that are liked",
    "first": "first rating",
    "last": "last rating",
    "train": "training ratings",
    "test": "test ratings",
    "train_users": "users with training ratings",
    "test_users": "users with test ratings",
    "cold_users": "test users without training ratings (cold)",
    "untested_users": "training users without test ratings",
    "lost_users": "users in neither part",
    "train_items": "items with training ratings",
    "test_items": "items with test ratings",
    "cold_items": "test items without training ratings",
    "untested_items": "training items without test ratings",
    "lost_items": "items in neither part",
    "duplicates": "pairs in both parts",
    "train_popularity": "training ratings of the item of a training rating, mean",
    "test_popularity": "training ratings of the item of a test rating, mean",
    "train_gini": "inequality of training ratings over items (Gini)",
    "test_gini": "inequality of test ratings over items (Gini)",
    "before_any_train": "test ratings older than the newest training rating",
    "before_user_train": "test ratings older than the user's newest training rating",
}
"""By the name of a fact in Python: its row in a report."""
PARTS = {
    "observed": "all ratings",
    "random": "randomly shown items",
}
"""Parts of a data set."""
SPLITS = {"random": "random split", "uniform": "uniform split", "temporal": "split in time"}
SPLITS["given"] = "given split"

KINDS = {
    "ahead": "who is ahead",
    "leads": "who leads",
    "leads-here": "who leads under some designs",
    "depends": "depends on the design",
    "undecided": "undecided",
    "ahead-of-some": "ahead of some",
    "ahead-elsewhere": "ahead under another design only",
    "equal": "equal within the margin",
    "levelled": "lead with popularity levelled",
    "levelled-open": "no lead with popularity levelled",
    "more-users": "how many users to plan",
    "report-both": "what to report",
    "popular": "a lead of popular items",
    "match": "a lead by fit to users",
    "opinion": "a lead by fit to opinions",
    "reason-open": "reason not known",
    "system-match": "lists fit users",
    "system-opinion": "lists fit opinions",
    "better-shown": "liked more, shown at random",
    "better": "liked more when judged",
    "better-despite": "liked more, behind in score",
    "liked-despite": "liked more by those who rate, behind in score",
    "break-even": "what would overturn it",
    "not-personal": "nothing personal shown",
    "liking-open": "liking not known",
    "predicts-use": "predicts use",
    "target": "what intervals are about",
    "sampled": "who is judged",
    "tuned": "tuned",
    "tuned-edge": "settings on the edge",
    "untuned": "not tuned",
    "implicit": "no dislikes",
    "cold": "cold users",
    "same-design": "the same numbers",
    "degenerate-design": "a design that tells little",
    "references": "reference systems",
}
"""By kind of statement: its name in a report."""


def heads(names: Sequence[str], key: str = "") -> dict[str, str]:
    """Return the head of each column of a table; unknown ones keep their name.

    Parameters
    ----------
    names
        Columns in Python.
    key
        The table, by its name among the titles.
    """
    words = {**COLUMNS, **OF_TABLES.get(key, {})}
    return {name: words.get(name, name) for name in names}
