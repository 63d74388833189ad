"""Every number that decides about a light, in one place. They are stated beside each check.

They were set on simulated logs with seeds below 1,000 and then left alone; how often lights are
wrong was measured on others (documentation page "Leaks and drift").
"""

from __future__ import annotations

import math

LEAK_SHARE = 0.001
"""Red from this share on: of test rows that are older than their user's training, are in training
too, have a later training row in their session, or are in the training part of a copied account; of
training rows (items) that are later (born later) than a test row, on average over test rows; of
validation rows that are later; of rows that a filter removed."""

SESSION_GAP = 30 * 60
"""Seconds without an event that end a session."""
SESSION_GAP_MINUTES = SESSION_GAP // 60

FEATURE_MISFIT = 0.02
"""A column follows a count or mean if 1 - |rank correlation| is at most this."""
FEATURE_RATIO = 4.0
"""Red if the count or mean with test rows fits so many times better than the one without."""
FEATURE_ENTRIES = 20
"""Items (users) with test rows that the check needs."""

CUT_OFF_SURPRISE = 6.0
"""Yellow if the chance that nobody is below the smallest count is e to the minus this, or less, of
users and items together."""
CUT_OFF_TIMES = math.exp(CUT_OFF_SURPRISE)

COPY_ITEMS = 8
"""Items that two accounts must share before they are compared."""
COPY_MARGIN = 3.0
"""Decimal orders by which chance must fall short of one pair of accounts in all."""
COPY_ALIKE = 0.85
"""Share of the overlap from which a third account counts as alike."""
COPY_OTHERS = 0.1
"""More than this share of third accounts alike: the items belong together, nobody was copied."""

EVEN_STEPS = 0.9
"""Yellow if this share of steps between neighbouring time stamps is equal: row numbers."""
ONE_MOMENT = 0.2
"""Yellow if this share of all rows carries one and the same time stamp."""
ONE_SITTING = 0.8
"""Yellow if the median user gave this share of the rows or more in one session …"""
SITTING_ROWS = 5
"""… among users with at least so many rows."""
FIRST_YEAR = 1990
"""Yellow if the median time stamp is earlier."""
