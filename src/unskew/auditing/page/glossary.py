"""The glossary of a report: every term that it uses, in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from unskew.errors import UnskewError
from unskew.metrics.names import REGISTRY, parse
from unskew.report.document import Block, Code, Document, Fold, Picture, Term, Words
from unskew.report.tables import Table

TERMS = (
    # Designs
    Term(
        "all-items",
        "The common design: a random fifth of the ratings is the test part, and every item that "
        "is not in the user's training part is ranked.",
    ),
    Term("test-items", "As all-items, but only items that have a test rating of anyone."),
    Term(
        "1r",
        "One list per liked test item: this item and 100 others that are not known to be liked. A "
        "list has a hit if the item comes among the first.",
    ),
    Term(
        "u1r",
        "As 1r, on a test part in which items have equally many ratings, so that popular items "
        "are not tested more often.",
    ),
    Term(
        "p1r",
        "As 1r, within ten groups of items of about the same popularity; the groups count alike.",
    ),
    Term(
        "test-targets",
        "Only what the user rated in the test part is ranked: what was never rated plays no part.",
    ),
    Term("skew", "As all-items, with test ratings drawn against the popularity of their items."),
    Term(
        "wtd-h",
        "As all-items, with test ratings drawn as if items and users had been chosen at random.",
    ),
    Term("temporal", "Training on the earlier ratings, test on the last fifth in time."),
    Term("as-given", "The given lists and judgments as they are."),
    Term(
        "design",
        "Which ratings test the systems, and which items they must rank.",
        ("designs", "evaluation design"),
    ),
    Term(
        "common design",
        "The first design of the audit, which most evaluations take; the others are compared "
        "with it.",
    ),
    # Data
    Term("split", "A division of the ratings into a training and a test part.", ("splits",)),
    Term("test part", "The ratings that are kept from the systems and judge their lists."),
    Term("training part", "The ratings that the systems learn from.", ("training ratings",)),
    Term("target items", "The items that a system must rank.", ("targets",)),
    Term("warm users", "Users with training ratings.", ("warm user", "warm")),
    Term(
        "cold users",
        "Test users without a training rating: systems know nothing about them.",
        ("cold user", "cold"),
    ),
    Term(
        "liked",
        "A rating at or above the stated threshold; where only uses are recorded, every use.",
    ),
    Term("judged", "Rated in the test part, liked or not.", ("judgments", "judgment")),
    Term(
        "Gini",
        "How unequally ratings fall on items: 0 if all items have equally many, near 1 if a few "
        "have nearly all.",
    ),
    Term("popularity", "How many ratings an item has; also the system that recommends by it."),
    # Scores
    Term(
        "hit",
        "A recommended item that the user liked (or used, where only uses are recorded) in the "
        "test part.",
        ("hits",),
    ),
    Term(
        "chance",
        "What a random order of the same items is expected to score.",
        ("random order", "by chance"),
    ),
    Term("place", "1 for the system with the best score under a design, and so on.", ("places",)),
    Term(
        "interval",
        "The range in which a value plausibly lies: such ranges hold the true value in 95 of 100 "
        "cases. An interval of a difference that holds 0 leaves open who is ahead.",
        ("intervals", "95 % interval", "95 % intervals", "interval from", "interval to"),
    ),
    Term(
        "hold together",
        "Simultaneous intervals: wide enough that in 95 of 100 reports all of them are right at "
        "once, over all designs and pairs.",
        ("simultaneous",),
    ),
    Term(
        "adjusted p",
        "How easily chance alone gives a difference this large, corrected for all pairs and "
        "designs; at most 0.05 counts as ahead.",
    ),
    Term(
        "smallest difference found",
        "The smallest difference that this test shows with a power of 80 %.",
    ),
    Term(
        "Kendall's τ",
        "How alike two orders are: 1 the same, 0 unrelated, −1 the opposite.",
        ("τ_b", "τ", "Kendall's tau"),
    ),
    # The ladder
    Term(
        "ladder",
        "What fixed lists score where more and more of the test part is kept: chance, counts, "
        "averages, choice, observed.",
        ("rung", "rungs", "rung by rung"),
    ),
    Term(
        "rung counts",
        "Keeps how many test ratings each user and each item has; likes are drawn at random.",
    ),
    Term("rung averages", "Keeps how many test likes each user and each item has."),
    Term(
        "rung choice",
        "Keeps who rated what; likes are drawn again with each user's and each item's number.",
    ),
    Term("observed", "The score on the test part as it is; the last rung of the ladder."),
    Term(
        "match",
        "The step from averages to observed: what giving the right items to the right users adds.",
    ),
    Term("choice step", "The step from averages to choice: predicting what people rate."),
    Term("opinion", "The step from choice to observed: predicting what people say of it."),
    # Liking
    Term(
        "propensity",
        "How likely a pair of user and item is to be judged at all.",
        ("propensities",),
    ),
    Term(
        "IPS",
        "An estimate that counts each judgment 1 / propensity times, to make up for what was not "
        "judged.",
    ),
    Term("SNIPS", "IPS divided by the sum of its weights: steadier, slightly biased."),
    Term(
        "levelled",
        "Weighted so that popular items and busy users do not decide.",
        ("levels popularity",),
    ),
    Term("display", "What was shown to people: they can rate only what they meet."),
    # The protocol
    Term(
        "null experiment",
        "The evaluation repeated on opinions drawn at random: it shows what a protocol rewards "
        "besides opinions.",
    ),
    Term(
        "discriminative power",
        "How clearly a metric tells systems apart: the sum of the p-values of all pairs; less is "
        "clearer.",
        ("sum of p (DP)",),
    ),
    Term(
        "robustness",
        "Whether a metric keeps the order of the systems when test ratings are taken away.",
    ),
    Term(
        "simulated worlds",
        "Data made by a known recipe, so that every sentence can be held against the truth.",
        ("simulated world",),
    ),
    Term(
        "truth",
        "What people would say of every item: known in simulated worlds, and estimated from "
        "ratings of randomly shown items.",
        ("in truth",),
    ),
)
"""All terms; a report has those that it uses."""

_METRIC = re.compile(r"(?<![\w@-])((?:anti-|condensed-)*[A-Za-z]\w*(?:\([^()]*\))?@\d+)(?![\w@-])")


def glossary_of(document: Document) -> tuple[Term, ...]:
    """Return the terms that a document uses: designs, metrics and words of the field."""
    text = "\n".join(texts_of(document))
    used = [term for term in TERMS if _occurs(term, text)]
    return (*used, *_metrics([*_METRIC.findall(text), *_listed_metrics(document)]))


def _occurs(term: Term, text: str) -> bool:
    words = "|".join(map(re.escape, (term.word, *term.forms)))
    return re.search(rf"(?<![\w@-])(?:{words})(?![\w@-])", text, re.IGNORECASE) is not None


def _listed_metrics(document: Document) -> Iterator[str]:
    """Yield the metrics that tables name in a column."""
    for section in document.sections:
        for block in section.every_block():
            if isinstance(block, Table) and "metric" in block.frame.columns:
                yield from block.frame["metric"].to_list()


def _metrics(used: Iterable[str]) -> Iterator[Term]:
    """Yield a term for each family of metrics, with the cutoffs that are used."""
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(used):
        try:
            metric = parse(name)
        except UnskewError:
            continue
        family = f"{'anti-' if metric.anti else ''}{metric.name}"
        families.setdefault(family, []).append(name)
    for family, names in families.items():
        cutoffs = {parse(name).cutoff for name in names}
        k = "k" if len(cutoffs) > 1 or None in cutoffs else str(cutoffs.pop())
        yield Term(
            names[0] if len(names) == 1 else f"{family}@k", _meaning(family, k), tuple(names)
        )


def _meaning(family: str, k: str) -> str:
    """Return what a family of metrics measures, as the metric's definition says it."""
    about = REGISTRY[family.removeprefix("anti-")].summary.rstrip(".")
    if family not in REGISTRY:
        about = f"{about}, of disliked items instead of liked ones"
    return f"{about}. The list is cut after {k} items."


def texts_of(document: Document) -> Iterator[str]:
    """Yield every text that readers of a document meet, but for code."""
    yield from (document.title, *map(str, document.lead))
    if document.headline is not None:
        yield document.headline.verdict
        for fact in document.headline.facts:
            yield from (fact.value, fact.text)
        if document.headline.chart is not None:
            yield from _texts(document.headline.chart)
    for section in document.sections:
        yield from (section.title, section.shows, *section.guide)
        for block in section.blocks:
            yield from _texts(block)


def _texts(block: Block) -> Iterator[str]:
    if isinstance(block, Words):
        yield str(block)
    elif isinstance(block, Fold):
        yield block.title
        for part in block.blocks:
            yield from _texts(part)
    elif isinstance(block, Table):
        yield from (block.title, block.note, *block.header)
        for name in block.frame.columns:
            yield from (cell for cell in block.frame[name] if isinstance(cell, str))
    elif isinstance(block, Picture):
        heading = block.figure.spec.get("title", {})
        yield from (block.figure.title, block.note, *heading.get("subtitle", ()))
    elif isinstance(block, Code):
        yield block.title


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

KIND_LABELS = {
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
