"""The stages of an audit, in their order, and what they take beside each other."""

STAGE_WEIGHTS = {
    "reading": 1,
    "splits": 2,
    "designs": 62,
    "null experiment": 28,
    "conclusions": 2,
    "diagnostics": 1,
    "statements": 4,
}
"""Shares of the time that audits of ratings took: the time that is left is told from them."""
