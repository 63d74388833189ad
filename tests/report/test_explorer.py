"""Look closer: what readers choose on a page, in a browser."""

import html
import json
import re
import shutil
import subprocess
from urllib.parse import quote, unquote

import polars as pl
import pytest

from unskew.report.charts import as_figure
from unskew.report.document import Document, Headline, Picture, Section, Words
from unskew.report.explorer import Explorer, panel
from unskew.report.page import as_html

EVIL = "</script><script>alert(1)</script>\"'&=#?%😀"
CHROMIUM = shutil.which("chromium")
browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
START = {"metric": "P", "cutoff": "10", "design": "all-items", "users": "warm", "a": EVIL, "b": "b"}


def score(metric, cutoff, design, users, system):
    """Return a number that differs for every choice."""
    parts = [
        {"P": 1, "anti-P": 2, "Cover": 3}[metric],
        (cutoff or 0) / 10,
        len(design),
        len(users),
        {EVIL: 4, "b": 2, "c": 1}.get(system, 1 / 3),
    ]
    return sum(part / 7 ** (at + 1) for at, part in enumerate(parts))


def explorer(systems=(EVIL, "b", "c"), designs=("all-items", "p1r"), users=("all", "warm")):
    metrics = [("P", 5), ("P", 10), ("anti-P", 10), ("Cover", None)]
    scores, pairs = [], []
    for metric, cutoff in metrics:
        for design in designs:
            for group in users:
                key = (metric, cutoff, design, group)
                values = {one: score(*key, one) for one in systems}
                for one, value in values.items():
                    place = 1 + sum(
                        other < value if metric == "anti-P" else other > value
                        for other in values.values()
                    )
                    margin = None if metric == "Cover" else 0.01
                    ends = (None, None) if margin is None else (value - 0.01, value + 0.01)
                    scores.append((*key, one, value, *ends, 0.05, place))
                if metric != "Cover" and len(systems) > 1:
                    apart = values[systems[0]] - values[systems[1]]
                    pair = (systems[0], systems[1], apart, apart - 0.02, apart + 0.02)
                    better = (7, 2) if metric == "P" else (2, 7)
                    pairs.append((*key, *pair, *better, 91))
    keys = ["metric", "cutoff", "design", "users"]
    numbers = ["value", "low", "high", "chance", "place"]
    counts = ["difference", "low", "high", "better", "worse", "same"]
    if not pairs:
        pairs = [("P", 10, "none", "none", "", "", 0.0, 0.0, 0.0, 0, 0, 0)]
    frame = pl.DataFrame(pairs, [*keys, "a", "b", *counts], orient="row")
    return Explorer(
        scores=pl.DataFrame(
            scores, [*keys, "system", *numbers], orient="row", infer_schema_length=None
        ),
        pairs=frame.filter(pl.col("design") != "none"),
        start={**START, "users": users[-1], **dict(zip("ab", systems, strict=False))},
        better={"P": "higher", "anti-P": "lower", "Cover": "neither"},
        designs=dict.fromkeys(designs, "what is done"),
    )


def headline():
    import altair as alt

    rows = [
        {
            "design": "all-items",
            "system": "b",
            "value": 0.5,
            "low": 0.4,
            "high": 0.6,
            "chance": 0.1,
            "place": 1,
        }
    ]
    chart = (
        alt.Chart(alt.NamedData(name="rows"))
        .mark_point()
        .encode(x="value:Q", y="system:N", color="system:N")
        .properties(width=300, height=200)
    )
    return Headline("Settled", "settled", (), Picture(as_figure(chart, "Main", [], rows)))


def document(one):
    section = Section("decisions", "Decisions", "Shows.", (Words("Words."),))
    systems = tuple(one.scores["system"].unique(maintain_order=True))
    return Document(
        "Title", (Words("Lead."),), (section,), {}, systems, headline=headline(), explorer=one
    )


PROBE = """<script>
window.addEventListener("load", async () => {
  const told = [];
  const section = document.getElementById("look-closer");
  const wait = (time) => new Promise((done) => setTimeout(done, time));
  const form = section.querySelector("form");
  const every = (selector) => [...section.querySelectorAll(selector)];
  const texts = (selector) => every(selector).map((one) => one.textContent);
  const choose = async (name, value) => {
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event("change", { bubbles: true }));
    await wait(30);
  };
  const look = async () => {
    await wait(150);
    await explorer.ready();
    told.push({
      open: section.querySelector("details").open,
      choice: explorer.current(),
      hash: location.hash,
      sentences: texts(".pair p:not(.note), .pair li"),
      note: section.querySelector(".pair").textContent,
      unknown: texts(".unknown:not([hidden])").join(),
      rows: every("tbody tr").map((row) => [...row.cells].map((c) => c.dataset.value)),
      chosen: section.querySelectorAll("tbody tr.chosen").length,
      drawn: section.querySelectorAll("[data-chart] svg").length,
      title: (section.querySelector("[data-chart] svg") || section).textContent,
      cutoffs: [...form.elements.cutoff.options].map((one) => one.value),
      selects: [...form.querySelectorAll("select")].map((one) => one.name),
      wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
      paint: performance.getEntriesByType("paint").map((one) => one.startTime),
    });
  };
  const open = async () => { section.querySelector("details").open = true; await wait(30); };
  const back = async () => { history.back(); await wait(150); };
  STEPS
  const out = document.createElement("pre");
  out.id = "told";
  out.textContent = JSON.stringify(told);
  document.body.append(out);
});
</script>"""


def shown(one, steps, tmp_path, fragment="", size="1200,900"):
    """Open a page, carry steps out; return what is seen after each `look`, and the log."""
    text = as_html(document(one)).decode()
    at = text.rindex("</body>")
    path = tmp_path / "page.html"
    path.write_text(text[:at] + PROBE.replace("STEPS", steps) + text[at:])
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
        f"--window-size={size}",
        "--virtual-time-budget=20000",
        "--dump-dom",
        path.as_uri() + fragment,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)
    assert told, "the probe did not run"
    assert "CONSOLE" not in done.stderr
    return json.loads(html.unescape(told[1]))


def test_names_end_no_script():
    text = panel(explorer())
    data = re.search(r'id="explorer-data">(.*?)</script>', text, re.S)[1]
    assert "<" not in data
    assert json.loads(data)["systems"][0] == EVIL
    assert text.count("</script>") == 1


def test_numbers_have_six_digits_and_places_are_exact():
    one = explorer()
    data = json.loads(re.search(r'explorer-data">(.*?)</script>', panel(one), re.S)[1])
    group = next(g for g in data["groups"] if g[:4] == ["P", 10, "p1r", "all"])
    column = data["columns"][group[4]]
    values = [score("P", 10, "p1r", "all", name) for name in (EVIL, "b", "c")]
    assert [v / 10 ** column["e"] for v in column["v"]] == pytest.approx(values, abs=1e-6)
    assert "p" not in column
    near = pl.Series([0.5, 0.5 + 1e-9, 0.1])
    close = one.scores.filter(
        pl.col("metric") == "P", cutoff=10, design="p1r", users="all"
    ).with_columns(value=near, place=pl.Series([2, 1, 3]))
    data = json.loads(
        re.search(
            r'explorer-data">(.*?)</script>',
            panel(Explorer(scores=close, pairs=one.pairs.clear(), start=one.start)),
            re.S,
        )[1]
    )
    assert data["columns"][0]["p"] == [2, 1, 3]


@browser
def test_choices_show_their_numbers(tmp_path):
    steps = """
      told.push(section.querySelector("details").open);
      await open(); await look();
      await choose("metric", "anti-P"); await look();
      await choose("design", ""); await look();
      await choose("metric", "Cover"); await choose("users", "all");
      await choose("design", "p1r"); await look();
      await back(); await back(); await back(); await look();
      await choose("b", "c"); await look();
      await choose("b", form.elements.a.value); await look();
      form.querySelector("[type=reset]").click(); await look();"""
    is_open, first, anti, every, cover, before, other, same, reset = shown(
        explorer(), steps, tmp_path
    )
    assert not is_open  # nothing is drawn before it is asked for

    def values(one):
        return {row[1]: float(row[3]) for row in one["rows"]}

    names = (EVIL, "b", "c")
    wanted = {name: score("P", 10, "all-items", "warm", name) for name in names}
    assert values(first) == pytest.approx(wanted, abs=1e-6)
    assert first["sentences"] == [
        f"Under all-items, over users with training ratings, P@10 of {EVIL} is 0.0001 higher than "
        f"that of b [−0.0199, 0.0201]; 7 users are better off with {EVIL}, 2 worse off, 91 the "
        f"same. The interval includes 0: this difference may be chance."
    ]
    assert first["cutoffs"] == ["5", "10"]
    assert first["chosen"] == 2
    assert first["drawn"]
    assert "P@10" in first["title"]
    assert "not corrected" in first["note"]
    wanted = {name: score("anti-P", 10, "all-items", "warm", name) for name in names}
    assert values(anti) == pytest.approx(wanted, abs=1e-6)
    assert [row[2] for row in anti["rows"]] == ["1", "2", "3"]
    assert [row[1] for row in anti["rows"]] == ["c", "b", EVIL]  # lower is better
    assert "anti-P@10 (lower is better) of" in anti["sentences"][0]
    assert f"2 users are better off with {EVIL}, 7 worse off" in anti["sentences"][0]
    assert len(every["rows"]) == 6
    assert len(every["sentences"]) == 3
    assert cover["choice"] == {**cover["choice"], "metric": "Cover", "cutoff": "", "users": "all"}
    assert "no value per user" in cover["sentences"][0]
    assert "neither side is better" in cover["sentences"][0]
    assert cover["rows"][0][4] == ""
    assert before["choice"] == every["choice"]
    assert before["rows"] == every["rows"]
    assert "pairs of the best systems only" in other["sentences"][-1]
    assert same["sentences"] == [
        "System A and system B are the same: choose two systems to compare them."
    ]
    assert reset["choice"] == START
    assert reset["rows"] == first["rows"]


@browser
def test_a_link_carries_the_choice(tmp_path):
    steps = "await look(); await choose('cutoff', '10'); await look();"
    name = quote(EVIL, safe="")
    fragment = f"#look-closer?metric=P&cutoff=5&design=p1r&users=all&a=c&b={name}"
    first, then = shown(explorer(), steps, tmp_path, fragment, size="400,800")
    assert first["open"]
    assert not first["unknown"]
    assert not first["wide"]
    assert first["choice"] == {
        "metric": "P",
        "cutoff": "5",
        "design": "p1r",
        "users": "all",
        "a": "c",
        "b": EVIL,
    }
    head, _, last = then["hash"].rpartition("&b=")
    assert head == "#look-closer?metric=P&cutoff=10&design=p1r&users=all&a=c"
    assert unquote(last) == EVIL
    assert not set(last) & set('<"&=#?')
    first, _ = shown(
        explorer(), steps, tmp_path, "#look-closer?metric=MRR&cutoff=7&a=b&b=%E0%A4%A&x=1"
    )
    assert "metric “MRR”" in first["unknown"]
    assert "cutoff “7”" in first["unknown"]
    assert first["choice"] == {**START, "a": "b"}


@browser
def test_one_system_one_design_no_cold_users(tmp_path):
    one = explorer(systems=("only",), designs=("all-items",), users=("all",))
    (first,) = shown(one, "await open(); await look();", tmp_path)
    assert first["selects"] == ["metric", "cutoff", "design", "users"]
    value = score("P", 10, "all-items", "all", "only")
    assert first["sentences"] == [f"Under all-items, P@10 of only is {value:.4f}."]


@browser
def test_two_hundred_systems_paint_soon(tmp_path):
    systems = (EVIL, "b", *(f"system {number}" for number in range(198)))
    few, (many,) = (
        shown(one, "await open(); await look();", tmp_path)
        for one in (explorer(), explorer(systems=systems))
    )
    assert len(many["rows"]) == 200
    assert many["chosen"] == 2
    assert many["paint"]
    assert max(many["paint"]) < 2 * max(few[0]["paint"]) + 1000
