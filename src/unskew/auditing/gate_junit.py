"""A gate as JUnit XML, which every CI system shows as tests."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from unskew.auditing.gate_checks import FAIL, INFORM, OPEN, Check
from unskew.auditing.gate_facts import GateFacts
from unskew.report.text import visible


def as_junit(gate: GateFacts) -> str:
    """Return a test suite: the verdict, and a test case per check."""
    failed = [one for one in gate.checks if one.outcome in (FAIL, OPEN)]
    skipped = [one for one in gate.checks if one.outcome == INFORM]
    suite = ET.Element(
        "testsuite",
        name="unskew gate",
        tests=str(1 + len(gate.checks)),
        failures=str(len(failed) + (not gate.promoted)),
        errors="0",
        skipped=str(len(skipped)),
    )
    case = ET.SubElement(suite, "testcase", classname="gate", name="verdict")
    text = "\n".join(map(visible, gate.first_lines()))
    if not gate.promoted:
        failure = ET.SubElement(case, "failure", message=gate.verdict, type=gate.verdict)
        failure.text = text
    ET.SubElement(case, "system-out").text = text
    for one in gate.checks:
        _add(suite, one)
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _add(suite: ET.Element, one: Check) -> None:
    case = ET.SubElement(suite, "testcase", classname="gate", name=visible(one.key))
    reason = visible(one.reason)
    if one.outcome in (FAIL, OPEN):
        kind = "hold" if one.outcome == FAIL else "not settled"
        ET.SubElement(case, "failure", message=reason, type=kind).text = visible(one.rule)
    elif one.outcome == INFORM:
        ET.SubElement(case, "skipped", message=reason or "reported, not tested")
    if one.change is not None:
        bounds = "" if one.low is None else f", bounds {one.low:.6g} to {one.high:.6g}"
        limit = "" if one.limit is None else f", limit {one.limit:.6g}"
        ET.SubElement(case, "system-out").text = f"change {one.change:.6g}{bounds}{limit}"
