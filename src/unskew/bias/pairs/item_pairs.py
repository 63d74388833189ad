"""`item_pairs`: how popularity and relevance order pairs of items, and what metrics make of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from unskew.arrays import Mask
from unskew.bias.pairs.steepness import (
    NONREL,
    REL,
    TRUE_NONREL,
    TRUE_REL,
    Signs,
    consistency_error,
    count_signs,
)
from unskew.bias.popularity.item_counts import ItemCounts, counts_of
from unskew.bias.reliability import from_truth, without_truth
from unskew.checks import checked
from unskew.data.ratings import Ids
from unskew.errors import SettingError
from unskew.report.columns import QUANTITY, SE, VALUE, Column, Drawing, Method, Question
from unskew.report.estimates import Estimates
from unskew.report.text import counted
from unskew.runs import Run, read_run

CASES = (
    "agree, steeper",
    "agree, not steeper",
    "disagree, steeper",
    "disagree, not steeper",
)
"""Popularity and (observed or true) relevance agree or not; where they agree, whether the odds of
popularity are steeper than non-relevance, where not, whether they are steeper than relevance."""
DISAGREEING = (True, False, True, False)
"""Lemma 1: in which cases the optimal rankings of precision and anti-precision disagree."""
P_CONSISTENT = (True, True, False, True)
"""Lemma 3: in which cases observed and real precision have the same optimal ranking."""
ANTI_CONSISTENT = (False, True, True, True)
FOLLOWED = {"popularity": "odds", "rating": "rating"}
"""What the observed optimal rankings may follow, and the name of its order."""


def _share(name: str, label: str = "", *, is_hidden: bool = False) -> Column:
    return Column(name, "fact", label, form="%", hidden=is_hidden)


_CASE_SHARES = _share("share", "pairs"), _share("strict", "ties apart")
_STEEPER = tuple(
    _share(f"steeper_{name}", f"steeper than {name}")
    for name in ("relevance", "non-relevance", "both")
)
ITEM_PAIRS = Question(
    name="pairs of items",
    columns=(
        *(Column("case", "key", "popularity and rating"), QUANTITY, VALUE, SE),
        Column("lemma", "note", "optimal rankings"),
    ),
    quantities=(
        *_CASE_SHARES,
        *(_share(name, is_hidden=True) for name in ("disagree", "agree", "ties")),
    ),
    method=Method(
        estimand="the share of pairs of items that popularity and the average rating order in some "
        "way",
        unit="pairs of items",
    ),
    figures=(Drawing("cases", "stacked", "", ("disagree", "agree", "ties")),),
    digits=5,
)
"""`strict` has the pairs apart (`tied`) that are equal in popularity or rating. `lemma`: what
Lemma 1 predicts; `disagree`, `agree` and `ties` are the shares of all pairs that lie in the case
and do so."""
OVERALL = Question(
    name="all pairs",
    columns=(QUANTITY, VALUE, SE),
    quantities=(
        *(_share(name) for name in ("disagree", "agree", "ties")),
        _share("popularity_and_rating_agree", "popularity and rating agree"),
        *_STEEPER,
        *(_share("lemma1", "as Lemma 1 predicts"), Column("tau", "fact", "τ_b")),
        *(
            Column(f"tau_{metric}_{name}", "fact", f"τ_b of {metric} with {name}")
            for metric in ("P", "anti-P")
            for name in FOLLOWED
        ),
    ),
    method=replace(
        ITEM_PAIRS.method, estimand="what the optimal rankings of both metrics make of all pairs"
    ),
    digits=5,
)
TRUE_PAIRS = replace(
    ITEM_PAIRS,
    name="pairs of items by the truth",
    columns=(
        *(Column("case", "key", "popularity and relevance"), QUANTITY, VALUE, SE),
        *(
            Column("lemma_P", "flag", "P: Lemma 3"),
            Column("lemma_anti-P", "flag", "anti-P: Lemma 3"),
        ),
    ),
    quantities=(*_CASE_SHARES, _share("P"), _share("anti-P")),
    figures=(),
)
"""`P` and `anti-P`: the shares of all pairs that lie in the case and that the observed optimal
ranking of the metric orders as the true one does; beside them what Lemma 3 says."""
TRUE_OVERALL = replace(
    OVERALL,
    name="all pairs by the truth",
    quantities=(
        _share("popularity_and_relevance_agree", "popularity and relevance agree"),
        *(_share("P"), _share("anti-P")),
        Column("P_less_anti-P", "fact", "P − anti-P", form="+%"),
        *(_share("lemma2", "both"), _share("lemma3_P", "P as Lemma 3 predicts")),
        *(_share("lemma3_anti-P", "anti-P as Lemma 3 predicts"), *_STEEPER),
    ),
)
"""Shares of pairs in the order of the truth. The standard error of `P_less_anti-P` takes items as a
sample (jackknife); none where pairs are sampled, or of two items."""


@checked
def item_pairs(
    ratings: object,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Estimates:
    """Count over all pairs of items how popularity and relevance order them (mena2021 6 and 7).

    Exact, whatever the size of the counts; 50,000 items take some seconds.

    Parameters
    ----------
    ratings
        Ratings, what `read_ratings` reads, a `Dataset`, a `World`, or `ItemCounts`.
    liked
        The smallest rating that is liked; 4 is assumed on a 1-5 scale.
    random
        Judgments of random items, from which the truth is estimated; see `count_items`.
    users
        How many users there are, |U|; those with a rating unless given.
    sample
        Look at this many random pairs instead. None: all pairs up to 200,000 different items (that
        differ in their counts), 10 million random ones beyond.
    seed
        For the sample.
    threads
        How many to use; never changes a number.

    Returns
    -------
    Estimates
        Rows by case (of Lemma 1) and quantity: shares of pairs. Two rules for ties, as in mena2021
        and its counts: `disagree` and `agree` are strict; `share` counts a tie of popularity or
        rating as *disagree*, and equal decrement rates, or 0/0, as *not steeper*; `strict` has
        ties apart. The parts: `overall`, of all pairs; with random judgments `true`, the cases by
        the truth, and `true overall`. Which metrics to trust stands in `card["verdict"]`.

    References
    ----------
    mena2021 sections 6 and 7, figures 5 and 9, Lemmas 1 to 4, appendix B.

    Examples
    --------
    Example 1 of mena2021 figure 4: a is rated by five of ten users and liked by three of them, b
    by two and liked by one.

    >>> import unskew as us
    >>> counts = us.bias.ItemCounts.known(rated=[5, 2], liked=[3, 1], users=10)
    >>> pairs = us.bias.item_pairs(counts)
    >>> pairs.parts["overall"].row(quantity="disagree").value
    1.0
    >>> pairs.row(case="agree, steeper", quantity="share").value
    1.0
    """
    counts = counts_of(ratings, liked, random, users)
    return pairs_of(counts, sample=sample, seed=seed, threads=threads)


def pairs_of(counts: ItemCounts, *, unknown: int = 0, **settings: Any) -> Estimates:
    """Count the pairs of the items that can be looked at.

    Parameters
    ----------
    counts
        Of the items.
    unknown
        How many items were looked for that nobody rated.
    settings
        `sample`, `seed` and `threads`, as in `item_pairs`.
    """
    usable, identified = counts.usable, counts.identified
    notes = list(counts.notes)
    rated_only = replace(counts, asked=None, asked_liked=None).take(usable)
    signs = count_signs(rated_only, False, **settings)
    rows, overall = _observed(signs)
    card: dict[str, Any] = {
        "items": signs.items,
        "pairs": signs.items * (signs.items - 1) // 2,
        "sampled": signs.pairs if signs.sampled else None,
        "unrated": int(counts.unrated.sum()) + unknown,
        "rated_by_everyone": int(counts.everyone.sum()),
    }
    parts, true_overall = {"overall": _quantities(OVERALL, overall, signs)}, dict[str, float]()
    if np.count_nonzero(identified) >= 2:
        part = counts.take(identified)
        true = count_signs(part, True, **settings)
        error = math.nan if true.sampled else consistency_error(part, settings.get("threads"))
        true_rows, true_overall = _true(true)
        card |= {
            "true_items": true.items,
            "unidentified": int(np.count_nonzero(usable & ~identified)),
        }
        parts["true"] = _by_case(TRUE_PAIRS, true_rows, true)
        parts["true overall"] = _quantities(
            TRUE_OVERALL, true_overall, true, {"P_less_anti-P": error}
        )
        right, relevant = (true_overall[name] for name in ("P", "popularity_and_relevance_agree"))
        verdict = from_truth(right, true_overall["anti-P"], relevant, error)
    else:
        if counts.asked is not None:
            notes.append(
                "fewer than two rated items have random judgments, so the truth is not known"
            )
        shares = [row["share"] for row in rows[:-1]]
        agree = overall["popularity_and_rating_agree"]
        verdict = without_truth(overall["disagree"], shares, agree)
    card["verdict"] = verdict.to_dict()
    return replace(
        _by_case(ITEM_PAIRS, rows, signs),
        explanation=tuple(_explanation(card, overall, true_overall, signs)),
        notes=tuple(notes),
        conclusion=tuple(str(verdict).splitlines()),
        parts=parts,
        card=card,
    )


def _by_case(question: Question, rows: Sequence[Mapping[str, Any]], signs: Signs) -> Estimates:
    """Return the cases: a row for each quantity, with the standard error of the share."""
    names = [quantity.name for quantity in question.quantities]
    return Estimates.of_rows(
        question,
        [
            {**row, "quantity": name, "value": row[name], "se": signs.error(row[name])}
            for row in rows
            for name in names
            if name in row
        ],
    )


def _quantities(
    question: Question,
    values: Mapping[str, float],
    signs: Signs,
    errors: Mapping[str, float] | None = None,
) -> Estimates:
    """Return a row for each quantity, with the standard errors of shares."""
    forms = {quantity.name: quantity.form for quantity in question.quantities}
    of_shares = {name: signs.error(value) for name, value in values.items() if forms[name] == "%"}
    of_all = of_shares | dict(errors or {})
    rows = [
        {"quantity": name, "value": value, "se": of_all.get(name)} for name, value in values.items()
    ]
    return Estimates.of_rows(question, rows)


def _cases(
    signs: Signs, relevant: Mapping[str, str], irrelevant: Mapping[str, str]
) -> tuple[list[Mask], list[dict[str, Any]], dict[str, float]]:
    """Return the combinations of signs in each of the four cases, their rows, and what is steeper.

    Parameters
    ----------
    signs
        Of all pairs.
    relevant, irrelevant
        Names of the relevance, and of its product and quotient with the odds of popularity.
    """
    alike = signs.agree("odds", relevant["of"])
    steeper = signs.steeper("odds", relevant)
    bad = signs.steeper("odds", irrelevant, negative=True)
    masks = [alike & bad, alike & ~bad, ~alike & steeper, ~alike & ~steeper]
    tied = (signs.sign("odds") == 0) | (signs.sign(relevant["of"]) == 0)
    rows: list[dict[str, Any]] = [
        {"case": case, "share": signs.share(mask), "strict": signs.share(mask & ~tied)}
        for case, mask in zip(CASES, masks, strict=True)
    ]
    rows.append({"case": "tied", "strict": signs.share(tied)})
    both = {"relevance": steeper, "non-relevance": bad, "both": steeper & bad}
    return masks, rows, {f"steeper_{name}": signs.share(mask) for name, mask in both.items()}


def _predicted(masks: Sequence[Mask], holds: Sequence[bool]) -> Mask:
    """Mark the combinations in which a lemma says yes, given its answer for each case."""
    chosen = [mask for mask, yes in zip(masks, holds, strict=True) if yes]
    result: Mask = np.logical_or.reduce(chosen)
    return result


def _observed(signs: Signs) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the cases as rated, and what is of all pairs: relevance is the average rating."""
    masks, rows, steeper = _cases(signs, REL, NONREL)
    # φ_antiP̂ is the negative of odds*bad: they disagree where the two products agree.
    disagree = signs.agree("odds*rating", "odds*bad")
    ties: Mask = (signs.sign("odds*rating") == 0) | (signs.sign("odds*bad") == 0)
    does = {"disagree": disagree, "agree": ~disagree & ~ties, "ties": ties}
    for row, mask, predicted in zip(rows, masks, DISAGREEING, strict=False):
        row["lemma"] = "disagree" if predicted else "agree"
        row |= {name: signs.share(mask & of_all) for name, of_all in does.items()}
    untied = signs.number(~ties)
    right = ~ties & (_predicted(masks, DISAGREEING) == disagree)
    overall = {name: signs.share(mask) for name, mask in does.items()}
    overall["popularity_and_rating_agree"] = signs.share(signs.agree("odds", REL["of"]))
    overall |= steeper
    overall["lemma1"] = signs.number(right) / untied if untied else math.nan
    overall["tau"] = -signs.tau("odds*rating", "odds*bad")
    for name, order in FOLLOWED.items():
        overall[f"tau_P_{name}"] = signs.tau("odds*rating", order)
        overall[f"tau_anti-P_{name}"] = -signs.tau("odds*bad", order)
    return rows, overall


def _true(signs: Signs) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return the same where random judgments identify the relevance p(rel|i) (Lemmas 2, 3).

    All pairs would be as Lemma 3 says, ties apart, if p(rel|train,i) were equal to p(rel|i).
    """
    masks, rows, steeper = _cases(signs, TRUE_REL, TRUE_NONREL)
    right = {
        "P": signs.agree("odds*rating", "truth"),
        "anti-P": signs.disagree("odds*bad", "truth"),
    }
    lemma = {"P": P_CONSISTENT, "anti-P": ANTI_CONSISTENT}
    for index, (row, mask) in enumerate(zip(rows, masks, strict=False)):
        for name, is_right in right.items():
            row |= {f"lemma_{name}": lemma[name][index], name: signs.share(mask & is_right)}
    shares = {name: signs.share(mask) for name, mask in right.items()}
    predicted = {
        f"lemma3_{name}": signs.share(_predicted(masks, holds) == right[name])
        for name, holds in lemma.items()
    }
    return rows, {
        "popularity_and_relevance_agree": signs.share(signs.agree("odds", TRUE_REL["of"])),
        **shares,
        "P_less_anti-P": shares["P"] - shares["anti-P"],
        "lemma2": signs.share(right["P"] & right["anti-P"]),
        **predicted,
        **steeper,
    }


def _explanation(
    card: Mapping[str, Any], overall: Mapping[str, float], true: Mapping[str, float], signs: Signs
) -> Iterator[str]:
    looked = f"{counted(card['pairs'], 'pair')} of {counted(signs.items, 'item')}"
    if signs.sampled:
        looked = (
            f"{signs.pairs:,} random pairs of {signs.items:,} items, standard error of a share "
            f"at most {signs.error(0.5):.2%}"
        )
    reasons = {"unrated": "nobody rated", "rated_by_everyone": "all users rated"}
    without = [f"{card[name]:,} that {text}" for name, text in reasons.items() if card[name]]
    yield looked + (f"; left out: {', '.join(without)}" if without else "")
    yield (
        f"observed optimal rankings of precision and anti-precision: disagree on "
        f"{overall['disagree']:.2%} of pairs, agree on {overall['agree']:.2%}, ties "
        f"{overall['ties']:.2%}; τ_b = {overall['tau']:.2f}"
    )
    yield (
        f"odds of popularity steeper than both relevance and non-relevance, as rated: "
        f"{overall['steeper_both']:.2%}"
    )
    if true:
        items = counted(card["true_items"], "item")
        missing = f"; {card['unidentified']:,} without" if card["unidentified"] else ""
        yield (
            f"truth ({items} with random judgments{missing}): popularity and relevance agree on "
            f"{true['popularity_and_relevance_agree']:.2%} of pairs"
        )
        yield (
            f"item pairs in the true order: observed precision {true['P']:.2%}, anti-precision "
            f"{true['anti-P']:.2%}, both {true['lemma2']:.2%}; as Lemma 3 predicts: "
            f"{true['lemma3_P']:.2%} and {true['lemma3_anti-P']:.2%}"
        )


@checked
def pairs_of_systems(
    ratings: object,
    a: object,
    b: object,
    k: int = 10,
    *,
    liked: float | None = None,
    random: object | None = None,
    users: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> Estimates:
    """Count the pairs of the items that two systems recommend: the union of their top k.

    Which family of metrics is the more reliable in comparing two systems is a matter of the items
    on which they differ (mena2021 conclusion 6), not of the whole catalogue.

    Parameters
    ----------
    ratings
        The training ratings, or `ItemCounts`.
    a, b
        The runs of both systems, or what `read_run` reads.
    k
        How many items of each list are looked at.
    liked, random, users, sample, seed, threads
        As in `item_pairs`.

    Examples
    --------
    >>> import unskew as us
    >>> seen = {"user": [1, 2, 3, 1], "item": ["x", "x", "y", "z"], "rating": [5, 2, 4, 1]}
    >>> pairs = us.bias.pairs_of_systems(seen, {2: ["y"]}, {3: ["x", "z"]}, k=1, liked=4)
    >>> pairs.card["items"], pairs.parts["overall"].row(quantity="disagree").value
    (2, 1.0)
    """
    if k < 1:
        raise SettingError(f"k={k}: at least one item of each list is needed")
    counts = counts_of(ratings, liked, random, users)
    items = Ids.union(*(_top(read_run(run), k) for run in (a, b)))[0]
    codes = counts.items.codes(items.values)
    unknown = int(np.count_nonzero(codes < 0))
    part = counts.take(np.sort(codes[codes >= 0]))
    result = pairs_of(part, unknown=unknown, sample=sample, seed=seed, threads=threads)
    line = f"pairs of the {len(items):,} items in the top {k} of either system"
    return replace(result, explanation=(line, *result.explanation))


def _top(run: Run, k: int) -> Ids:
    """Return the items in the first k places of any list."""
    return Ids.number(run.to_polars().filter(pl.col("rank") <= k)["item"])[0]
