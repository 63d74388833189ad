"""How to read each section of a report: a few plain sentences that readers unfold."""

from __future__ import annotations

OPEN = ("answer", "designs", "decisions", "ladder")
"""Sections that are unfolded at first."""

GUIDES = {
    "answer": (
        "Every sentence about two systems is printed under a fixed rule. Its kind leads to how "
        "often sentences of that kind are wrong in simulated worlds whose truth is known.",
        "A number with brackets is a difference of scores and its 95 % interval. An interval "
        "without 0 means that the lead is more than chance; an interval with 0 leaves it open.",
        "A higher score means more hits. It does not yet mean that people like the "
        "recommendations more: that is stated only where the ratings support it.",
    ),
    "data": (
        "Look here for what the numbers rest on: how many ratings there are, whether a few items "
        "hold most of them, and what the split into training and test part did.",
        "Where popular items have most of the ratings, a system that recommends them to everybody "
        "has many hits, whatever people think of them.",
        "Cold users have no training rating: no system knows anything about them, so comparisons "
        "leave them out.",
    ),
    "leaks": (
        "A leak lets systems learn what they are tested on: later ratings, copies of test ratings, "
        "columns or filters that were computed with them. Scores are then too high.",
        "Red lights name a leak and what to do about it. Drift, cold users and new items are shown "
        "and never red: they belong to the task.",
        "A random split learns from the future by construction. That is a choice: its score is "
        "about filling gaps in known histories, not about what comes next.",
    ),
    "designs": (
        "A design says which ratings test the systems and which items they must rank. All designs "
        "judge the same systems on the same data.",
        "Compare systems within a column, never scores of different columns: each design has its "
        "own scale and its own chance.",
        "Some designs weaken the reward for recommending popular items: the table says how. A lead "
        "that vanishes there owes something to popularity.",
    ),
    "decisions": (
        "Read a row from left to right: whether the first system is ahead of the second one, "
        "behind, or neither is shown, under each design.",
        "One correction covers all pairs and all designs, so that all decisions of the table hold "
        "together. Open is not equal: the test found no difference that it could have called.",
        "A pair that is ahead under one design and behind under another has no overall winner.",
    ),
    "ladder": (
        "The lists stay as they are. The test part is drawn again, first keeping almost nothing "
        "of it, then more and more; each rung is what the lists then score.",
        "Up to the rung averages only numbers are kept: how often each item and each user is "
        "liked. What lies above it is the match: which user gets which item.",
        "The match has two parts: choice, predicting what people rate, and opinion, predicting "
        "what they say of it.",
        "A small match does not mean that the recommendations are bad. A large one does not prove "
        "taste: people can also rate what they were shown.",
    ),
    "liked": (
        "Most recommendations are never judged. Of those that are, this section counts how many "
        "are liked: a system can have few hits and yet be liked more.",
        "Levelled shares give every item and every user about the same weight, so that popular "
        "items do not decide.",
        "Estimates by IPS and SNIPS weigh each judgment by how rarely such judgments are made. "
        "Few or very unequal weights make them useless: those are left out.",
    ),
    "protocol": (
        "The null experiment draws opinions at random and asks what the protocol still gives. A "
        "system that keeps a score far above chance there shows what the protocol rewards besides "
        "opinions.",
        "Discriminative power asks which metric separates the systems with the fewest doubts, and "
        "robustness whether a metric keeps their order on a part of the test ratings.",
    ),
    "truth": (
        "In a simulated world, or with ratings of randomly shown items, the truth is known. Here "
        "it is shown beside what each design observes.",
        "What matters is the order: a Kendall's τ of 1 means that a design orders the systems as "
        "the truth does, −1 the opposite.",
    ),
    "filters": (
        "Filters such as a k-core remove users and items. What is left is easier or harder to "
        "recommend, and every score changes. The table splits the change of each score in two.",
        "Judged on what stays: the same trained systems, judged by fewer users and items. "
        "Filtered: trained on less, too. The order of two systems changes only where one is shown "
        "to be ahead under one condition and the other under another.",
    ),
    "error-rates": (
        "The audit was run in many simulated worlds whose truth is known. For each kind of "
        "sentence the table says in how many of these worlds such sentences were false.",
        "These are rates of the method in those worlds. They are not the chance that this report "
        "is wrong: your data may differ from all of them.",
    ),
    "checklist": (
        "Each question is answered from this run: what is done, what is missing and how to get it, "
        "and what only you can state. An answer here is no verdict on the paper.",
    ),
    "card": (
        "The same data, plan and seed give the same numbers, whatever the machine. The command or "
        "the lines of Python below make the report again from the same data.",
    ),
}
"""By section: how to read it."""
