"""By group of users: which system leaves fewer of them without any liked item in their list.

A question from end to end: numbers with intervals and p-values, table, figure, JSON, a command:
python examples/lists_without_hits.py -j test.csv -r a.csv -r b.csv --liked 4 --figure out.svg
"""

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

import unskew as us
from unskew.cli import command, inputs, options, outputs, parameters
from unskew.judging.judged import Judged
from unskew.report import columns
from unskew.stats.answer import answer, mean_influence
from unskew.stats.segments import segments_of

SHARES = (columns.Column("share", "share", "a"), columns.Column("share_against", "share", "b"))
KEYS = (columns.GROUP, *columns.PAIR, columns.USERS)
QUESTION = columns.Question(
    name="lists without a liked item",
    columns=(*KEYS, *SHARES, *columns.DIFFERENCE, *columns.TEST, columns.NOTE),
    method=columns.Method(estimand="the share of users whose list has no liked item, a less b"),
)


def lists_without_hits(judged: Judged, k: int = 10, by: Any = "activity") -> us.report.Estimates:
    """Return, by group, in how many more lists of one system than of another nothing is liked."""
    pairing = us.stats.paired(us.evaluate(judged, f"HitRate@{k}"))
    missed = 1 - pairing.matrix(pairing.metrics[0])
    groups = segments_of(pairing.users, by, judged=judged)
    keys, values = [], []
    for number, group in enumerate(groups.names):
        is_inside = groups.code == number
        shares = missed[is_inside].mean(axis=0).tolist()
        for a, b in combinations(range(len(pairing.systems)), 2):
            pair = {"system": pairing.systems[a], "against": pairing.systems[b]}
            keys.append({"group": group, **pair, "share": shares[a], "share_against": shares[b]})
            values.append(np.where(is_inside, missed[:, a] - missed[:, b], np.nan))
    return answer(QUESTION, keys, *mean_influence(np.stack(values, axis=1)), notes=groups.notes)


def lists_command(
    *,
    judged: options.JudgedOptions,
    k: int = 10,
    by: str = "activity",
    output: options.FigureTableOptions,
) -> None:
    """Show which system leaves fewer users without any liked item, by group of users.

    What is measured
    ----------------
    k
        Length of the lists.
    by
        Groups of users: activity, popularity, time, or FILE:COLUMN of a file of users.
    """
    parameters.refuse("is HitRate at -k here: leave it out", "--metric", judged)
    read = partial(inputs.judge_files, judged, 0)
    outputs.answer(QUESTION, read, partial(lists_without_hits, k=k, by=by), output)


if __name__ == "__main__":
    command.run_alone(lists_command)
