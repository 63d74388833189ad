"""`-o` and `--figure` mean the same in every command: the ending is the format."""

import io
import json
import re
from types import SimpleNamespace

import polars as pl
import pytest

from shared.commands import (
    COMMANDS,
    FOLDERS,
    GATES,
    LISTS,
    LOG,
    PLAN,
    RATINGS,
    REPORTS,
    TABLES,
    TRAIN,
    write_annotation,
    write_values,
)
from unskew.cli import files, outputs
from unskew.cli.more import data
from unskew.cli.options import ReportOptions
from unskew.report import charts, page
from unskew.report.document import Document, Words


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with ratings, two runs and a plan."""
    folder = tmp_path_factory.mktemp("outputs")
    for name, rows in (("test", RATINGS), ("train", TRAIN)):
        pl.DataFrame(rows, ["user", "item", "rating"], orient="row").write_csv(
            folder / f"{name}.csv"
        )
    for name, step in (("a", 1), ("b", 3)):
        rows = [(u, (u + step * k) % 10, k + 1) for u in range(12) for k in range(3)]
        pl.DataFrame(rows, ["user", "item", "rank"], orient="row").write_csv(folder / f"{name}.csv")
    (folder / "plan.toml").write_text(PLAN)
    write_annotation(folder)
    write_values(folder)
    pl.DataFrame(LOG, ["user", "item", "time"], orient="row").write_csv(folder / "log.csv")
    return folder


def test_every_command_with_an_output_is_walked():
    with_output = {
        name
        for name, command in COMMANDS.items()
        if any("-o" in option.opts for option in command.params)
    }
    assert with_output == {*TABLES, *FOLDERS, *REPORTS, *LISTS, *GATES}


def test_formats_are_those_that_reports_and_charts_write():
    """Written again in the command line, which must not import charts to know them."""
    assert files.FIGURES == charts.FORMATS
    assert tuple(dict.fromkeys(files.REPORTS.values())) == page.FORMATS


def holds(path):
    """Tell whether a file is what its ending says."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        return pl.read_parquet(io.BytesIO(content)).height > 0
    text = content.decode()
    if path.suffix == ".json":
        return bool(json.loads(text))
    if path.suffix == ".csv":
        return pl.read_csv(io.StringIO(text)).height > 0
    begin = {".md": "|", ".tex": "\\begin{tabular}", ".html": "<!doctype html>", ".trec": ""}
    return begin[path.suffix] in text


@pytest.mark.parametrize("command", TABLES)
def test_tables(home, call, monkeypatch, command):
    """The command runs once; what it would write for other endings is written below."""
    monkeypatch.chdir(home)
    printed = []
    show = outputs.Printout.show
    monkeypatch.setattr(
        outputs.Printout, "show", lambda self, *given: (printed.append(self), show(self, *given))
    )
    to = home / f"{command.replace(' ', '-')}.csv"
    code, out, err = call(*command.split(), *TABLES[command], "-o", to)
    assert code == 0, err
    assert out
    assert f"written to {to}" in err
    assert holds(to)
    for ending in files.TABLES:
        printed[0].write(to.with_suffix(ending))
        assert holds(to.with_suffix(ending))
    for kind in files.FORMATS[1:]:
        assert printed[0].text(kind)


@pytest.mark.parametrize("ending", files.LISTS)
def test_lists(home, call, monkeypatch, ending):
    monkeypatch.chdir(home)
    assert call("recommend", *LISTS["recommend"], "-o", f"lists{ending}")[0] == 0
    assert holds(home / f"lists{ending}")


@pytest.mark.parametrize("ending", files.REPORTS)
@pytest.mark.parametrize("command", REPORTS)
def test_reports(home, call, monkeypatch, command, ending):
    """The work itself is left out: the file's ending decides, not the command's habit."""
    result = SimpleNamespace(document=lambda *_: Document("A title", (Words("The answer."),), ()))
    for work in (
        "unskew.auditing.audit.audit",
        "unskew.experiment.over_time.timeline",
        "unskew_studies.run.study",
    ):
        monkeypatch.setattr(work, lambda *_, **__: result)
    for show in ("doors.audit.show", "doors.demo.show_shop", "more.comparisons.show_timeline"):
        monkeypatch.setattr(f"unskew.cli.{show}", lambda *_: None)
    monkeypatch.setattr("unskew_studies.command_run.show", lambda *_: None)
    monkeypatch.setattr("unskew.cli.doors.audit._with_files", lambda audit, *_: audit)
    monkeypatch.chdir(home)
    to = home / f"{command.replace(' ', '-')}{ending}"
    code, _, err = call(*command.split(), *REPORTS[command], "-o", to)
    assert code == 0, err
    text = to.read_text()
    begin = {
        ".html": "<!doctype html>",
        ".htm": "<!doctype html>",
        ".md": "# A title",
        ".json": "{",
    }
    assert text.lower().startswith(begin[ending].lower())
    if command != "demo":
        other = "html" if ending == ".md" else "markdown"
        code, _, err = call(*command.split(), *REPORTS[command], "-o", to, "--format", other)
        assert (code, "disagree" in err) == (2, True)


@pytest.mark.parametrize("command", [*TABLES, *REPORTS, *LISTS])
def test_other_endings_are_refused_with_a_list(home, call, monkeypatch, command):
    monkeypatch.chdir(home)
    given = {**TABLES, **REPORTS, **LISTS}[command]
    allowed = (
        data.ENDINGS if command == "data filter"
        else files.LISTS if command in LISTS
        else files.REPORTS if command in REPORTS else files.TABLES
    )  # fmt: skip
    for name in ("out.xyz", "out", "out.svg"):
        code, _, err = call(*command.split(), *given, "-o", name)
        assert code == 2
        assert f"use one of {', '.join(allowed)}" in err
        assert not (home / name).exists()
    (home / "folder.json").mkdir(exist_ok=True)
    (home / "folder.csv").mkdir(exist_ok=True)
    folder = "folder.csv" if command in LISTS else "folder.json"
    code, _, err = call(*command.split(), *given, "-o", folder)
    assert (code, "this is a folder" in err) == (2, True)


@pytest.mark.parametrize("command", FOLDERS)
def test_folders_are_not_named_like_files(home, call, monkeypatch, command):
    monkeypatch.chdir(home)
    words = command.split()
    code, _, err = call(*words, *FOLDERS[command], "-o", "parts.csv")
    assert (code, "writes a folder" in err) == (2, True)
    folder = f"{'-'.join(words)}-folder"
    assert call(*words, *FOLDERS[command], "-o", folder)[0] == 0
    assert (home / folder / "card.json").is_file()


def test_the_footer_is_in_what_people_read(home, call, monkeypatch):
    monkeypatch.chdir(home)
    for ending, mark in ((".md", ""), (".tex", "% "), (".html", "<p>")):
        call("compare", *TABLES["compare"], "-o", f"foot{ending}", "-q")
        text = (home / f"foot{ending}").read_text()
        assert f"\n{mark}95% CI: t, by user" in text
        assert "systems that share a letter" in text


# Figures

WITH_FIGURE = [
    name
    for name, command in COMMANDS.items()
    if any("--figure" in option.opts for option in command.params)
]
NAMES = {"compare": "pairs", "bias describe": "cases"}


@pytest.mark.parametrize("command", WITH_FIGURE)
def test_figures(home, call, monkeypatch, command):
    monkeypatch.chdir(home)
    given = [*command.split(), *TABLES[command], "-q"]
    file = home / f"{command.replace(' ', '-')}.figure.json"
    code, _, err = call(*given, "--figure", file)
    assert code == 0, err
    assert "$schema" in json.loads(file.read_text())
    code, _, err = call(*given, "--figure", "figure.doc")
    assert (code, "use one of .svg, .png" in err) == (2, True)
    code, _, err = call(*given, "--figure", "nothing=figure.svg")
    assert (code, "unknown figure 'nothing'" in err) == (2, True)
    if command in NAMES:
        other = home / "other.json"
        assert call(*given, "--figure", file, "--figure", f"{NAMES[command]}={other}")[0] == 0
        assert json.loads(other.read_text()) != json.loads(file.read_text())


def test_a_file_whose_name_has_an_equals_sign(home, call, monkeypatch):
    monkeypatch.chdir(home)
    assert call("data", "info", "test.csv", "--figure", "./a=b.json")[0] == 0
    assert (home / "a=b.json").is_file()


def test_json_keeps_every_sign_in_every_encoding(home, monkeypatch):
    printout = outputs.Printout.of(pl.DataFrame({"name": ["τ 😀 –"]}))
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    printout.show("json", quiet=True)
    stream.flush()
    assert json.loads(stream.buffer.getvalue()) == [{"name": "τ 😀 –"}]


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_options_stand_in_panels_of_a_readable_size(command):
    options = [one for one in COMMANDS[command].params if one.param_type_name == "option"]
    panels: dict = {}
    for one in options:
        if "--help" not in one.opts:
            panels.setdefault(one.rich_help_panel, []).append(one.opts[0])
    assert all(len(names) <= 11 for names in panels.values()), panels
    if len(options) > 8:
        assert None not in panels, panels[None]


def test_a_study_prints_claims_that_do_not_hold_in_full(call, tmp_path):
    code, out, err = call(
        "study", "run", "carraro2020", "--stand-in", "-o", tmp_path / "study.html"
    )
    assert code == 0, err
    assert re.search(r"^\S+ (differs|not settled|contradicts): \w+", out, re.MULTILINE)


def test_a_reader_that_stops_early_costs_no_report(tmp_path):
    document = Document("A title", (Words("The answer."),), ())
    options = ReportOptions(output=tmp_path / "r.md", figures=None, format=None, quiet=True)

    def stopped():
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        outputs.write_report(SimpleNamespace(document=lambda: document), options, "r", stopped)
    assert "The answer." in (tmp_path / "r.md").read_text()
