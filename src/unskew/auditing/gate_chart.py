"""The one chart of a gate: every change with its bounds, against its limit."""

from __future__ import annotations

from typing import Any

from unskew.auditing.gate_checks import PASS, Check, Popularity, Rail, SegmentCheck
from unskew.auditing.gate_facts import GateFacts
from unskew.report.charts import Figure, as_figure

_COLOURS = {
    "ok": "#2a7f62",
    "open": "#b8860b",
    "fails": "#b3261e",
    "no alarm": "#4a7ba6",
    "reported": "#777777",
}
_WORDS = {"pass": "ok", "open": "open", "fail": "fails", "inform": "reported"}
EDGE = 150.0
"""Changes beyond so many per cent are drawn at the edge."""
MOST = 30
"""Segments beyond so many are left out of the chart: the report lists them."""


def gate_chart(gate: GateFacts) -> Figure:
    """Draw the change of every check in per cent of production's value, and its limit."""
    import altair as alt

    segments = sorted(gate.segments, key=lambda one: 2.0 if one.p_beyond is None else one.p_beyond)
    checks = (gate.better, gate.popularity, *gate.rails, *segments[:MOST])
    rows = [row for one in checks if (row := _row(one, gate.settings.metric)) is not None]
    order = [row["check"] for row in rows]
    base = alt.Chart(alt.NamedData(name="rows")).properties(width=520, height=alt.Step(22))
    y = alt.Y("check:N", title=None).sort(order).axis(labelLimit=260)
    colour = alt.Color("result:N", title=None).scale(
        domain=list(_COLOURS), range=list(_COLOURS.values())
    )
    title = "candidate less production, in per cent of production"
    ends = [float(row[name]) for row in rows for name in ("low", "high", "limit") if row[name]]
    domain = [max(min(ends, default=-1.0), -EDGE), min(max(ends, default=1.0), EDGE)]
    x = alt.X("low:Q", title=title).scale(domain=domain, clamp=True)
    bars = base.mark_rule(strokeWidth=2).encode(y=y, x=x, x2="high:Q", color=colour)
    points = base.mark_point(filled=True, size=60).encode(y=y, x="change:Q", color=colour)
    limits = base.mark_tick(thickness=2, color="black").encode(y=y, x="limit:Q")
    notes = [
        f"bars: {100 * (1 - 2 * gate.look.alpha):.3g} % intervals; black ticks: limits",
        gate.first_lines()[0],
    ]
    if max(map(abs, ends), default=0) > EDGE:
        notes.insert(1, f"changes beyond {EDGE:g} % are drawn at the edge")
    chart = alt.layer(bars, points, limits)
    return as_figure(chart, f"{gate.candidate} against {gate.production}", notes, rows)


def _row(one: Check, metric: str) -> dict[str, Any] | None:
    if one.change is None or one.low is None or one.high is None or not one.production:
        return None
    scale = 100 / abs(one.production)
    title = f"{one.by}: {one.title}" if isinstance(one, SegmentCheck) else one.title
    if one.key == "rail gini":  # its limit is a share of 1 - Gini
        scale, title = -100 / max(1 - one.production, 1e-9), "even exposure"
    is_tested = one.limit is not None and not isinstance(one, Popularity)
    if one.key == "better":
        title = metric
    return {
        "check": f"{title} (less is better)" if _is_rise(one) else title,
        "change": scale * one.change,
        "low": scale * one.low,
        "high": scale * one.high,
        "limit": scale * one.limit if is_tested and one.limit is not None else None,
        "result": "no alarm" if is_quiet(one) else _WORDS[one.outcome],
    }


def is_quiet(one: Check) -> bool:
    """Tell whether a segment raises no alarm, which does not show that it is safe."""
    return isinstance(one, SegmentCheck) and one.outcome == PASS


def _is_rise(one: Check) -> bool:
    """Tell whether a rise is guarded against: its bar must stay on the left of its limit."""
    return isinstance(one, Rail) and not one.is_loss and one.key != "rail gini"
