"""The section about leaks from test to training, and about what drifts between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from unskew.auditing import blocks
from unskew.auditing.blocks import section
from unskew.auditing.captions import caption
from unskew.auditing.column_names import SPLITS
from unskew.auditing.split_lights import WITHIN_TIME
from unskew.report.document import Block, Section, Words
from unskew.splits.diagnosis.check import Check
from unskew.splits.diagnosis.result import Diagnosis

if TYPE_CHECKING:
    from unskew.auditing.measurements import Measurements


NAMES = ("split", "light", "check", "amount", "sentence")
FACTS = tuple(name for name in NAMES if name != "light")


def leaks(audit: Measurements) -> Section:
    """Return the section: lights first, facts folded."""
    lights = audit.lights
    content: list[Block] = []
    if lights.mixed:
        names = ", ".join(_name(one) for one in lights.mixed)
        content.append(Words(caption("no cut", names=names), "warning"))
    if lights.diagnoses:
        content.append(_lights(lights.diagnoses, lights.mixed))
        content += _figures(lights.diagnoses, lights.mixed)
        content += blocks.fold("facts fold", [_facts(lights.diagnoses, lights.mixed)])
        content += blocks.fold("unknown fold", [_unknown(lights.diagnoses)])
    else:
        content.append(Words(caption("no training part")))
    return section("leaks", blocks.filled(content, audit.skipped, ()))


def _name(protocol: str) -> str:
    return SPLITS.get(protocol, protocol)


def _lights(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> Block:
    """Return a table of all checks that judge, the worst first."""
    rows = [
        (_name(protocol), light, *_cells(one))
        for light in ("leak", "look", "ok")
        for protocol, diagnosis in diagnoses.items()
        for one in diagnosis.of_light(light)
        if protocol not in mixed or one.key not in WITHIN_TIME
    ]
    return blocks.table("lights", _frame(rows, NAMES), note=caption("lights note"))


def _facts(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> Block:
    """Return a table of what is shown without a judgement: of a split by time, if there is one."""
    ordered = sorted(diagnoses, key=lambda one: one in mixed)
    rows = [(_name(ordered[0]), *_cells(one)) for one in diagnoses[ordered[0]].of_light("shown")]
    return blocks.table("facts", _frame(rows, FACTS))


def _unknown(diagnoses: Mapping[str, Diagnosis]) -> Block:
    """Return a table of what could not be checked, and why."""
    rows = [
        (_name(protocol), *_cells(one))
        for protocol, diagnosis in diagnoses.items()
        for one in diagnosis.of_light("unknown")
    ]
    return blocks.table("unknown", _frame(rows, FACTS).drop("amount"))


def _cells(check: Check) -> tuple[str, str, str]:
    return check.title, check.short, check.sentence


def _frame(rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _figures(diagnoses: Mapping[str, Diagnosis], mixed: tuple[str, ...]) -> list[Block]:
    """Return rows over time, and the drift of items, of a split by time."""
    for protocol, diagnosis in diagnoses.items():
        if protocol not in mixed and diagnosis.timelines:
            drawn: list[Block] = [blocks.picture(diagnosis.figure)]
            if diagnosis.drift:
                drawn.append(blocks.picture(partial(diagnosis.figure, "drift")))
            return drawn
    return []
