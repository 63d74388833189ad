"""The report as a file: HTML that needs nothing else, Markdown, JSON, figures; in a browser too."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import unskew as us
from unskew.auditing.audit import audit
from unskew.report.charts import Figure
from unskew.report.document import Code, Document, Fold, Link, Picture, Section, Words
from unskew.report.page import as_html, document_bytes, embedded, save_each, save_report
from unskew.report.tables import Table
from unskew.report.text import escape_latex, escape_markdown, finite

EVIL = "<script>alert(1)</script>\"'😀" + "x" * 200
SMALL = {"repeats": 2, "permutations": 200}


def figure(title="Ratings per item"):
    from unskew.report.charts import split_counts

    return Figure(title, split_counts(train=[8, 3, 1], test=[2, 1, 0]).spec)


def document(text=EVIL):
    """Return a small document in which every text is hostile."""
    frame = pl.DataFrame(
        {"system": [text, "b", "c"], "value": [0.5, None, float("nan")], text: [10, 9, 100],
         "sure": [True, False, None]}
    )  # fmt: skip
    blocks = (
        Words(text, "warning", text, (text,)), Table(text, frame, 2, text), Code(text, text),
        Picture(figure(text), text),
    )  # fmt: skip
    section = Section("one", text, text, blocks, (text,))
    return Document(text, (Words(text, "answer"),), (section,), {"seed": 1, "x": np.nan},
                    (text, "b", "c"))  # fmt: skip


@pytest.fixture(scope="module")
def found():
    shop = us.world("shop", users=100, items=50, seed=3)
    return audit(
        shop, "quick", algorithms=["random", "popularity", "average-rating"],
        designs=["all-items", "1r", "test-targets", "skew"], **SMALL,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(found):
    return found.document()


# Files


def test_every_text_is_escaped():
    page = as_html(document()).decode()
    assert html.escape(EVIL) in page[: page.index("<style>")]  # the title
    body = page[page.index('<a class="skip"') :]
    assert "<script>alert(1)" not in body
    assert body.count("</script>") == 3  # the specifications, the charts' and the page's own
    specs = re.search(r'id="specs">(.*?)</script>', body, re.S)[1]
    assert "<" not in specs
    assert json.loads(specs)["one-3"]["title"]


def test_a_page_asks_for_nothing(whole):
    page = as_html(whole).decode()
    assert "default-src 'none'" in page
    body = page[page.rindex("<body>") :]
    assert not re.search(r'(src|href)="https?:', body)
    assert "@import" not in page
    assert len(page) < 5_000_000


def test_tables_keep_raw_values_for_sorting_and_export():
    page = as_html(document("plain")).decode()
    assert '<td class="number" data-value="0.5">0.50</td>' in page
    assert '<td class="number" data-value="">–</td>' in page
    assert '<td data-value="True">yes</td>' in page


def test_markdown_shows_text_as_it_is():
    text = document("a|b `c` *d* <e> [f]\n\n# g").to_markdown()
    assert "\\<e\\>" in text
    outside = re.sub(r"(?m)^(`{3,})\n.*?\n\1$", "", text, flags=re.S)  # what is not to copy
    assert not re.search(r"(?m)^# g", outside)
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len(table) == 5
    assert len({len(re.split(r"(?<!\\)\|", line)) for line in table}) == 1
    assert "*Figure: " in text
    assert "(pictures/one-1.svg)" in document("x").to_markdown("pictures")


def linked():
    """Return a document whose words and cells point to the rows of a table."""
    rows = [["first", 1.0], ["second", 2.0]]
    target = replace(Table.of_rows(["kind", "rate"], rows), anchors=("rate-a", "rate-b"))
    source = replace(Table.of_rows(["kind"], [["b"]]), links={(0, 0): "rate-b"})
    words = Words("A sentence.", link=Link("more <of> it", "rate-a"))
    sections = (
        Section("top", "The top", "What it shows.", (source,)),
        Section("rates", "How often, and <why>?", "What it shows.", (target,)),
    )
    return Document("Linked", (words,), sections, values={"answers": [1]})


def test_links_lead_to_rows_of_the_same_file():
    page = as_html(linked()).decode()
    body = page[page.rindex("<body>") :]
    assert (
        '<p class="plain">A sentence. <a class="aside" href="#rate-a">more &lt;of&gt; it</a>'
        in body
    )
    assert '<a href="#rate-b">b</a>' in body
    ids = re.findall(r' id="([^"]+)"', body)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', body)) <= set(ids)
    text = linked().to_markdown()
    assert "A sentence. [more \\<of\\> it](#how-often-and-why)" in text
    assert json.loads(linked().to_json())["answers"] == [1]
    assert json.loads(linked().to_json())["answer"] == ["A sentence."]


MARKS = [
    *("a*b*c", "_x_", "a_b", "a__b__c", "`c`", "<b>x</b>", "[f](g)", "a|b", "a\\|b", "\\", "a\nb"),
    *("&amp;", "~~x~~", "$x$", "# x", "- x", "1. x", "12) y", "---", "![i](j)", "**b**", "= x"),
]
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def rendered(text):
    """Return every text of a Markdown page as it is read; refuse what is not plain text."""
    texts = []
    for token in PARSER.parse(text):
        if token.type == "inline":
            assert {child.type for child in token.children} <= {
                "text",
                "strong_open",
                "strong_close",
            }
            texts.append("".join(child.content for child in token.children))
    return texts


@pytest.mark.parametrize("name", MARKS)
def test_names_are_read_in_markdown_as_they_are(name):
    assert rendered(Table.of_rows(["system", name], [[name, "1"]]).to_markdown())[1:3] == [
        name,
        name,
    ]
    assert rendered(escape_markdown(name)) == [name]
    test = {"user": [1, 1, 2], "item": [10, 20, 30], "rating": [5, 2, 4]}
    runs = {name: {1: [20, 10], 2: [30]}, "b": {1: [10], 2: [20]}}
    scores = us.evaluate(test, runs, ["RR", "P@1"], liked=4)
    assert name in rendered(scores.to_markdown())
    assert name in rendered(us.compare(scores, permutations=10).to_markdown())


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1))
@example("_" * 3 + "a" + "*" * 3)
def test_any_text_is_read_in_markdown_as_it_is(text):
    assert rendered(Table.of_rows(["system"], [[text]]).to_markdown()) == ["system", text]


def test_names_do_not_break_a_latex_table():
    assert escape_latex("a&b_c%") == r"a\&b\_c\%"
    assert escape_latex("[a]*--|`") == r"{[}a]{*}-{}-\textbar{}\textasciigrave{}"
    assert escape_latex("a\n\nb") == "a  b"  # an empty line would end the paragraph
    rows = Table.of_rows(["system"], [["x"], ["[1ex]"], ["*"]]).to_latex().splitlines()
    assert not any(row.startswith(("[", "*")) for row in rows)  # what may follow a line's end


def test_json_has_no_word_for_nan():
    told = json.loads(document().to_json())
    assert told["card"]["x"] is None
    rows = told["sections"]["one"]["blocks"][1]["rows"]
    assert [row["value"] for row in rows] == [0.5, None, None]
    assert told["sections"]["one"]["blocks"][0]["words"].startswith(EVIL)
    assert finite({"a": [1.0, float("inf")]}) == {"a": [1.0, None]}


def test_report_goes_by_the_ending(found, whole, tmp_path):
    for name, begins in (("r.html", "<!DOCTYPE html>"), ("r.md", "# How far"), ("r.json", "{")):
        save_report(whole, tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begins)
    save_report(found, tmp_path / "report", format="json")
    assert json.loads((tmp_path / "report").read_text())["answer"] == found.answer()
    with pytest.raises(us.SettingError, match="what should it be"):
        save_report(whole, tmp_path / "report.pdf")
    with pytest.raises(us.UnknownName, match="markdown"):
        save_report(whole, tmp_path / "x", format="markdwn")


def test_figures_go_to_a_folder(tmp_path):
    text = document_bytes(document("x"), "markdown", tmp_path / "pictures", tmp_path).decode()
    assert "(pictures/one-1.svg)" in text
    names = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert names == ["one-1.png", "one-1.svg"]
    assert (tmp_path / "pictures" / "one-1.png").read_bytes().startswith(b"\x89PNG")
    files = save_each(dict(document("x").figures()), tmp_path / "p")
    assert [path.suffix for path in files] == [".svg", ".png"]


def test_a_report_in_a_notebook():
    text = embedded(document(), height=500)._repr_html_()
    assert text.startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert text.count("<") == 2  # the frame begins and ends: all else is escaped
    assert 'sandbox="allow-scripts allow-downloads"' in text
    assert "height: 500px" in text
    with pytest.raises(us.SettingError, match="height"):
        embedded(document(), height=0)


@pytest.mark.slow
def test_every_figure_of_an_audit_can_be_drawn(whole, tmp_path):
    for name, one in whole.figures():
        one.save(tmp_path / f"{name}.svg")
        assert "<path" in (tmp_path / f"{name}.svg").read_text(), name


# In a browser

CHROMIUM = shutil.which("chromium")
browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
PROBE = """<script>
window.addEventListener("load", async () => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
  await new Promise((done) => setTimeout(done, 200));
  await report.drawAll();
  const told = {
    charts: document.querySelectorAll("[data-chart]").length,
    drawn: document.querySelectorAll("[data-chart] svg.marks, [data-chart] svg").length,
    marked: document.querySelectorAll("[data-drawn=yes]").length,
    requests: performance.getEntriesByType("resource").map((one) => one.name),
    sections: [...document.querySelectorAll("section")].map((one) => one.id),
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
  };
  const raw = (cell) => cell.dataset.value ?? cell.textContent;
  const table = document.querySelector(PICK);
  const cells = (at) => [...table.tBodies[0].rows].map((row) => raw(row.cells[at]));
  const at = COLUMN;
  told.before = cells(at);
  const button = table.tHead.rows[0].cells[at].querySelector("button");
  button.click();
  told.once = cells(at);
  told.sorted = table.tHead.rows[0].cells[at].getAttribute("aria-sort");
  button.click();
  told.twice = cells(at);
  const box = document.querySelector(".systems input");
  told.visible = [...table.tBodies[0].rows].length;
  if (box) {
    box.checked = false;
    box.dispatchEvent(new Event("change"));
    told.hidden = [...table.tBodies[0].rows].filter((row) => row.hidden).length;
  }
  const out = document.createElement("pre");
  out.id = "told";
  out.textContent = JSON.stringify(told);
  document.body.append(out);
});
</script>"""


def shown(page, tmp_path, pick="figure.table table", column=1, size="1200,900"):
    """Open a page, draw and click; return what it tells, its text, and the browser's log."""
    text = page.decode()
    at = text.rindex("</body>")
    probe = PROBE.replace("PICK", json.dumps(pick)).replace("COLUMN", str(column))
    path = tmp_path / "page.html"
    path.write_text(text[:at] + probe + text[at:])
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={size}",
        "--virtual-time-budget=20000", "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.S)
    assert found, "the probe did not run"
    return json.loads(html.unescape(found[1])), done.stdout, done.stderr


@browser
def test_an_audit_in_a_browser(found, whole, tmp_path):
    """No error, every section and chart, sorting works, no request leaves the file."""
    pick = "#designs details.fold figure.table table"
    told, _, log = shown(as_html(whole), tmp_path, pick, column=2)
    assert "CONSOLE" not in log
    assert told["sections"] == [
        "look-closer", "answer", "data", "leaks", "designs", "decisions", "ladder", "liked",
        "protocol", "truth", "error-rates", "checklist", "card", "glossary",
    ]  # fmt: skip
    assert told["charts"] == told["marked"] > 10
    assert told["drawn"] >= told["marked"]
    assert told["requests"] == []
    assert not told["wide"]
    values = [float(value) for value in told["before"]]
    assert told["sorted"] == "descending"
    assert [float(value) for value in told["once"]] == sorted(values, reverse=True)
    assert [float(value) for value in told["twice"]] == sorted(values)
    designs = next(one for one in whole.sections if one.key == "designs")
    fold = next(block for block in designs.blocks if isinstance(block, Fold))
    scores = fold.blocks[0]
    assert told["hidden"] == scores.frame.height / len(found.systems)  # one system


@browser
def test_a_hostile_page_in_a_browser(tmp_path):
    told, page, log = shown(as_html(document()), tmp_path, column=2, size="400,800")
    assert "CONSOLE" not in log
    assert told["charts"] == told["marked"] == 1
    assert told["requests"] == []
    assert told["once"] == ["100", "10", "9"]
    assert told["twice"] == ["9", "10", "100"]
    assert told["hidden"] == 1
    assert not told["wide"]  # long words break: nothing is wider than a phone
    assert "alert(1)&lt;/script&gt;" in page
