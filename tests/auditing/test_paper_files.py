"""What a paper needs of an audit: table, methods, checklist, figures; every status is true."""

import re
import sys
from functools import cache
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import vl_convert

import unskew as us
from shared.latex import check_latex, columns_of
from shared.sample import sample
from unskew.auditing.page.checklist import DONE, MISSING, QUESTIONS, STATE
from unskew.auditing.page.paper_files import GAIN_WORDS, _gains, audit_table
from unskew.metrics.names import parse
from unskew.report import charts
from unskew.report.charts import split_counts

SMALL = {"repeats": 2, "permutations": 200}


@cache
def audited(case):
    shop = us.world("shop", users=90, items=50, seed=3)
    systems = ["random", "popularity", "user-knn"]
    designs = ["all-items", "skew"]
    if case == "tuned":
        return us.audit(shop, "quick", algorithms=systems, designs=designs, **SMALL)
    if case == "untuned":
        one = ["all-items"]
        return us.audit(
            shop, "quick", algorithms=["random", "user-knn"], designs=one, tune=False, **SMALL
        )
    if case == "implicit":
        rng = np.random.default_rng(2)
        user, item = np.nonzero(rng.random((60, 40)) < 0.2)
        data = {"user": user, "item": item, "time": rng.integers(0, 10**6, user.size)}
        designs = ["all-items", "temporal"]
        return us.audit(data, "quick", algorithms=systems[:2], designs=designs, **SMALL)
    parts = sample(users=80, items=60)
    given = {"train": parts.train} if case == "lists with train" else {}
    return us.audit(judgments=parts.test, runs=parts.runs, plan="quick", liked=4, **given, **SMALL)


EXPECTED = {
    "tuned": {
        "data": DONE, "filters": STATE, "split": DONE, "pairs": DONE, "time": MISSING,
        "candidates": DONE, "designs": DONE, "baselines": DONE, "budget": DONE,
        "validation": DONE, "settings": DONE, "chance": DONE, "significance": DONE,
        "correction": DONE, "repeats": DONE, "seeds": DONE, "versions": DONE,
        "hardware": STATE, "availability": STATE, "metrics": DONE,
    },
    "untuned": {
        "budget": MISSING, "validation": STATE, "designs": MISSING, "baselines": MISSING,
        "time": MISSING, "settings": DONE,
    },
    "implicit": {"time": DONE, "pairs": DONE, "budget": DONE, "repeats": DONE},
    "lists": {
        "data": STATE, "split": STATE, "pairs": MISSING, "time": MISSING, "candidates": STATE,
        "baselines": MISSING, "budget": STATE, "validation": STATE, "settings": STATE,
        "chance": MISSING, "repeats": MISSING, "seeds": STATE, "versions": STATE,
        "significance": DONE,
    },
    "lists with train": {
        "pairs": DONE, "baselines": DONE, "chance": DONE, "budget": STATE, "repeats": MISSING,
        "split": STATE,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", EXPECTED)
def test_every_status_is_true(case):
    checklist = us.auditing.checklist_of(audited(case))
    assert checklist["key"].to_list() == list(QUESTIONS)
    status = dict(checklist.select("key", "status").iter_rows())
    assert {key: status[key] for key in EXPECTED[case]} == EXPECTED[case]
    for row in checklist.iter_rows(named=True):
        assert row["answer"]
        assert bool(row["remedy"]) == (row["status"] != DONE)


def test_pairs_in_both_parts_are_missing():
    parts = sample(users=80, items=60)
    both = parts.train.vstack(parts.test.select(parts.train.columns).head(3))
    made = us.audit(
        judgments=parts.test, runs=parts.runs, train=both, plan="quick", liked=4, **SMALL
    )
    row = us.auditing.checklist_of(made).row(by_predicate=pl.col("key") == "pairs", named=True)
    assert (row["status"], row["answer"]) == (MISSING, "3 pairs in both parts")


def test_the_section_marks_what_is_missing_by_word_sign_and_tone():
    section = next(one for one in audited("untuned").document().sections if one.key == "checklist")
    assert not section.is_open
    assert (section.blocks[0].tone, section.blocks[0].head) == ("missing", "✗ Missing:")
    assert QUESTIONS["budget"] in section.blocks[0].points
    keys = [one.key for one in audited("untuned").document().sections]
    assert keys.index("checklist") == keys.index("card") - 1


@pytest.mark.parametrize("case", EXPECTED)
def test_methods_state_what_the_run_knows(case):
    made = audited(case)
    methods = us.auditing.methods_of(made)
    text = str(methods)
    check_latex(methods.to_latex())
    cited = set(re.findall(r"\\cite\{([\w-]+)\}", methods.to_latex()))
    assert cited
    assert cited <= set(re.findall(r"^@\w+\{([\w-]+),", methods.bibtex(), re.M))
    given = case.startswith("lists")
    assert any("split into training and test" in one for one in methods.placeholders) == given
    one = made.data.part()
    assert f"{one['ratings']:,} ratings of {one['items']:,} items by {one['users']:,} users" in text
    assert f"{made.metric}: share of the list that is liked, liked(L) / k." in text
    assert "unskew " in text
    assert f"The seed was {made.card['seed']}." in text
    if case == "tuned":
        chosen = made.core.tuned[0]["user-knn"]
        assert f"user-knn: {chosen.text}" in text
        assert f"out of {chosen.tried} settings per system" in text
        assert "random and popularity were not tuned." in text
    if case == "untuned":
        assert "chosen by" not in text
    assert ("The data hold no dislike" in text) == (case == "implicit")
    assert "[@smucker2007]" in methods.to_markdown()


def test_the_table_has_the_p_values_of_the_audit():
    made = audited("tuned")
    table = audit_table(made)
    for label in table.values_of("metric"):
        for a, b in combinations(made.comparison.systems, 2):
            pair = made.comparison.pair(a, b, metric=label)
            beats = table.row(metric=label, system=a).facts["beats"]
            is_better = (pair.value > 0) == (made.comparison.card["better"][label] == "higher")
            assert (b in beats) == (pair.facts["significant"] and is_better)
    assert f"all-items: {made.designs['all-items']}" in table.explanation[0]
    assert table.parts["chance"].rows.height


def test_a_folder_for_a_paper(tmp_path):
    made, home = audited("tuned"), tmp_path / "paper"
    steps = []
    written = made.save_paper(home, progress=lambda *state: steps.append(state))
    files = {str(path.relative_to(home)) for path in written}
    number = len(list(made.document().figures()))
    assert steps == [(done, number) for done in range(number + 1)]
    texts = ("table.tex", "table.md", "methods.md", "methods.tex", "references.bib")
    assert {*texts, "checklist.md", "figures.tex"} <= files
    assert all((home / name).stat().st_size for name in files)
    table = (home / "table.tex").read_text()
    check_latex(table)
    declared, cells = columns_of(table)
    assert {declared} == set(cells)
    check_latex((home / "figures.tex").read_text())
    for name, _ in made.document().figures():
        svg = (home / "figures" / f"{name}.svg").read_text()
        assert 'width="241pt"' in svg[:400]
        assert f"figures/{name}.pdf" in (home / "figures.tex").read_text()
    with pytest.raises(us.SettingError, match=r"not empty: name a new folder.*force=True"):
        made.save_paper(home)
    assert not list(tmp_path.glob(".paper*"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(us.SettingError, match="a file is there"):
        made.save_paper(tmp_path / "file")


def test_every_figure_of_a_paper_is_drawn_once(tmp_path, monkeypatch):
    drawings = []

    def draw(spec, points, draw):
        drawings.append(str(spec))
        return '<svg width="241pt" height="9pt"></svg>'

    made, pages = audited("tuned"), []
    monkeypatch.setattr(charts, "at_width", draw)
    charts._drawn.cache_clear()
    monkeypatch.setattr(vl_convert, "svg_to_pdf", lambda svg: pages.append(svg) or b"%PDF")
    made.save_paper(tmp_path / "paper")
    charts._drawn.cache_clear()
    figures = dict(made.document().figures())
    assert len(drawings) == len(set(drawings)) == len({str(f.spec) for f in figures.values()})
    assert pages == ['<svg width="241" height="9"></svg>'] * len(figures)


@pytest.mark.parametrize("points", [241, 506])
def test_a_figure_has_the_width_of_a_column(tmp_path, points):
    figure = split_counts(train=[80, 30, 10, 5, 3], test=[20, 10, 0, 2, 1])
    figure.save(tmp_path / "one.svg", width=points)
    figure.save(tmp_path / "one.pdf", width=points)
    svg = (tmp_path / "one.svg").read_text()
    width, box = re.search(r'width="([\d.]+)pt" height="[\d.]+pt" viewBox="([^"]+)"', svg).groups()
    assert float(width) == points
    # Laid out for this width, not only scaled: 96 pixels are 72 points.
    assert float(box.split()[2]) == pytest.approx(points * 96 / 72, abs=1)
    assert figure.title not in svg
    page = re.search(rb"MediaBox \[0 0 ([\d.]+)", (tmp_path / "one.pdf").read_bytes())[1]
    assert float(page) == points
    with pytest.raises(us.UnskewError, match=r"\.svg"):
        figure.save(tmp_path / "one.png", width=points)


@pytest.mark.parametrize("function", ["methods_of", "checklist_of"])
def test_what_is_no_audit_is_refused(function):
    with pytest.raises(us.SettingError, match=r"give what us\.audit\(…\) returned, not int"):
        getattr(us.auditing, function)(3)


@pytest.mark.parametrize("rule", [{"liked": 4}, {"above": 3.5}])
@pytest.mark.parametrize("gain", GAIN_WORDS)
def test_the_words_of_a_gain_give_its_numbers(gain, rule):
    """The formula in the sentence, computed by hand, gives the gain and the loss of each rating."""
    ratings = np.array([1.0, 2.5, 4.0, 5.0])
    rule = us.Relevance(gain=gain, **rule)
    metrics = [parse("nDCG@10"), parse("nDCL@10")]
    words, lost = _gains(metrics, rule)
    formula = re.search(r"judged item is (.*), that of others 0\.", words)[1]
    formula = re.sub(r",? (also where|if it is|else).*", "", formula)
    formula = formula.replace("the whole part of its rating", "np.trunc(rating)")
    formula = formula.replace("its ", "").replace("minus", "-").replace("^", "**")
    value = eval(formula, {"np": np, "rating": ratings}) * np.ones(4)
    if "if it is liked" in words:
        value = np.where(rule.is_liked(ratings), value, 0.0)
    assert rule.gains(ratings).tolist() == value.tolist()
    high = float(re.search(r"is ([\d.]+) minus its rating", lost)[1])
    disliked = ~rule.is_liked(ratings)
    assert rule.losses(ratings)[disliked].tolist() == (high - ratings[disliked]).tolist()
    assert _gains(metrics[:1], us.Relevance(liked=4, gain={5.0: 1.0}))[0].count("[state") == 1
    assert _gains([parse("P@10")], rule) == []


def test_the_commands_write_what_a_paper_needs(call, files):
    lists = ["-j", files / "test.csv", "-r", f"mine={files / 'mine.csv'}"]
    lists += ["-r", f"theirs={files / 'theirs.trec'}", "--liked", 4]
    table = files / "table.tex"
    code, _, problem = call("compare", *lists, "-m", "P@2,AP", "--paper", table, "-q")
    assert code == 0, problem
    check_latex(table.read_text())
    assert "mine" in table.read_text()
    code, _, problem = call("compare", *lists, "-m", "P@2", "--paper", table)
    assert f"the table for a paper is in {table}" in problem


FAILURES = {
    "failure": (us.DataError("no such font"), 1, "error: no such font"),
    "stop": (
        KeyboardInterrupt(),
        130,
        "Stopped. The report is complete; nothing was written to {home}.",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_the_answer_and_the_report_come_before_the_first_figure(case, call, files, monkeypatch):
    report, home = files / "r.html", files / "paper"
    problem, expected, line = FAILURES[case]
    seen = []

    def fail(*_):
        sys.stdout.write("the first figure")
        seen.append(report.read_text()[-8:])
        raise problem

    monkeypatch.setattr(charts, "_drawn", fail)
    words = ["audit", "-j", files / "test.csv", "-r", files / "mine.csv", "--liked", 4]
    words += ["-r", files / "theirs.trec"]
    code, out, printed = call(*words, "-o", report, "--paper", home)
    assert seen == ["</html>\n"]
    assert code == expected
    assert out.startswith("Not settled: theirs scores best")
    assert out.endswith("the first figure")
    assert printed.splitlines()[-1] == line.format(home=home)
    assert "the report is in" in printed
    assert not home.exists()
    assert not list(files.glob(".paper*"))


def test_a_reader_that_stops_early_costs_neither_report_nor_paper(call, files, monkeypatch):
    def stop(*_):
        raise BrokenPipeError

    monkeypatch.setattr("unskew.cli.doors.audit.show", stop)
    monkeypatch.setattr(charts, "_drawn", lambda *_: '<svg width="9pt" height="9pt"></svg>')
    monkeypatch.setattr(vl_convert, "svg_to_pdf", lambda _: b"%PDF")
    words = ["audit", "-j", files / "test.csv", "-r", files / "mine.csv", "--liked", 4]
    words += ["-r", files / "theirs.trec", "-o", files / "r.html", "--paper", files / "paper"]
    assert call(*words)[0] == 141
    assert (files / "r.html").exists()
    assert (files / "paper" / "figures.tex").exists()


@pytest.mark.slow
def test_audit_writes_the_folder_of_a_paper(call, tmp_path):
    us.world("shop", users=60, items=30, seed=3).ratings.to_csv(tmp_path / "ratings.csv")
    words = ["audit", tmp_path / "ratings.csv", "--quick", "--algorithms", "random,popularity"]
    words += ["--designs", "all-items", "--liked", 4, "-o", tmp_path / "r.json", "-q"]
    home = tmp_path / "paper"
    code, _, problem = call(*words, "--paper", home)
    assert code == 0, problem
    names = {"table.tex", "methods.md", "references.bib", "checklist.md", "figures.tex"}
    assert names <= {path.name for path in home.iterdir()}
    check_latex((home / "methods.tex").read_text())
    code, _, problem = call(*words, "--paper", home)
    assert code == 2
    assert "not empty" in problem
