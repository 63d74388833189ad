"""Figures: what is drawn, what is written, and that data cannot break out of it."""

import hashlib
import json
import re
import shutil
import subprocess
import sys

import altair as alt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unskew as us
from shared import ROOT
from shared.examples import examples
from shared.pages import written_by
from unskew import SettingError, UnskewError
from unskew.report.charts import (
    MOST_ROWS,
    PARTS,
    Figure,
    _decades,
    _even,
    script_json,
    split_counts,
)
from unskew.splits.counts import count_parts
from unskew.splits.split import Split

PICTURES = written_by("figures")
CELLS, TOY_MATRIX, TOY_TARGETS = PICTURES.CELLS, PICTURES.TOY_MATRIX, PICTURES.TOY_TARGETS
target_space = PICTURES.target_space
EVIL = "</script><script>alert(1)</script><!--&\"'"
FIGURES = {
    "linear": split_counts([8, 3, 0, 1], [2, 1, 0, 4]),
    "log": split_counts([800, 3, 0, 1], [2, 1, 0, 4], scale="log"),
    "toy": target_space(),
}


def rows(figure):
    return figure.to_dict()["datasets"]["rows"]


def some_split(seed=0):
    rng = np.random.default_rng(seed)
    user, item = np.nonzero(rng.random((60, 40)) < np.linspace(0.6, 0.05, 40))
    data = us.read_ratings({"user": user, "item": item, "rating": 1 + item % 5})
    return us.splits.Random().split(data, seed)[0]


def evil_figure():
    """Return a figure with markup wherever text can stand."""
    matrix = {EVIL: "PN", "v": "+-"}
    return target_space(matrix, {EVIL: "ab"}, user=EVIL)


# What is drawn


def test_counts_by_hand():
    figure = split_counts(train=[1, 8, 0, 3], test=[3, 2, 0, 1])
    assert rows(figure) == [
        {"part": "training", "left": 0, "items": 1, "ratings": 8},
        {"part": "training", "left": 1, "items": 1, "ratings": 1},  # before 3 + 1: a tie, by id
        {"part": "training", "left": 2, "items": 1, "ratings": 3},
        {"part": "training", "left": 3, "items": 0, "ratings": 3},
        {"part": "test", "left": 0, "items": 1, "ratings": 2},
        {"part": "test", "left": 1, "items": 1, "ratings": 3},
        {"part": "test", "left": 2, "items": 1, "ratings": 1},
        {"part": "test", "left": 3, "items": 0, "ratings": 1},
    ]
    assert figure.to_dict()["title"]["subtitle"] == [
        "split: 12 training and 6 test ratings of 3 items",
        "not drawn: 1 item without ratings",
    ]


def test_bins_by_hand():
    figure = split_counts([5, 4, 3, 2, 1], [0, 0, 0, 0, 1], bins=2)
    assert [(row["left"], row["items"], row["ratings"]) for row in rows(figure)] == [
        (0, 2, 4.5), (2, 3, 2), (5, 0, 2), (0, 2, 0), (2, 3, 1 / 3), (5, 0, 1 / 3),
    ]  # fmt: skip
    assert "each step is the mean of 2 or 3 items" in figure.to_dict()["title"]["subtitle"]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=60),
    st.integers(1, 70),
    st.sampled_from(["linear", "log"]),
)
@examples(15)
def test_no_rating_is_lost_in_bins(pairs, bins, scale):
    train, test = np.array(pairs).T
    if not train.any() and not test.any():
        train[0] = 1
    drawn = rows(split_counts(train, test, bins=bins, scale=scale))
    for part, counts in zip(PARTS, (train, test), strict=True):
        steps = [row for row in drawn if row["part"] == part]
        assert len(steps) <= bins + 1
        assert sum(step["items"] for step in steps) == np.count_nonzero(train + test)
        assert sum(step["items"] * step["ratings"] for step in steps) == pytest.approx(counts.sum())
    both = {part: [r["ratings"] for r in drawn if r["part"] == part] for part in PARTS}
    outline = np.add(*both.values())
    assert (np.diff(outline) <= 1e-9).all()  # the most rated first


@pytest.mark.parametrize("top", [1, 2, 6, 7, 12, 59, 61, 300, 3706, 123_456])
def test_axis_labels(top):
    even = _even(top)
    assert even[0] == 0
    assert 2 <= len(even) <= 7
    assert len(set(np.diff(even))) == 1
    assert top - even[-1] < even[1]
    assert _decades(top)[:2] == [0, 1]
    assert _decades(top)[-1] <= top


def test_the_ratings_of_items_in_a_split_are_drawn():
    split = some_split()
    counts = count_parts(split).per_item
    for part, ratings in zip(counts, (split.train, split.test), strict=True):
        steps = [row for row in rows(split_counts(*counts.values())) if row["part"] == part]
        assert sum(row["items"] * row["ratings"] for row in steps) == len(ratings)
    assert us.splits.diagnose(split).figure("items", scale="log") == split_counts(
        *counts.values(), scale="log", label=split.label
    )


def test_what_is_drawn_stays_out_of_the_numbers():
    split = some_split()
    counts = count_parts(split)
    assert "per_item" not in counts.facts
    assert "per_item" not in counts.table()["what"]
    assert "per_item" not in repr(counts)
    facts = json.loads(json.dumps(counts.facts))
    assert facts == counts.facts == count_parts(Split(split.train, split.test, split.label)).facts
    with pytest.raises(ValueError, match="read-only"):
        counts.per_item["training"][0] = 1


def test_the_toy_follows_the_definitions():
    """bellogin2017 table 3: candidates, relevant and other items of user u."""
    items = "abcdefgh"
    own = dict(zip(items, TOY_MATRIX["u"], strict=True))
    tested = {
        item
        for letters in TOY_MATRIX.values()
        for item, letter in zip(items, letters, strict=True)
        if letter in "PN"
    }
    relevant = {item for item in items if own[item] == "P"}
    train = {item for item in items if own[item] in "+-"}
    everything, test_items, own_test, one_d, one_e, small = map(set, TOY_TARGETS.values())
    assert relevant == {"d", "e"}
    assert everything == set(items) - train
    assert test_items == tested - train
    assert own_test == {item for item in items if own[item] in "PN"}
    assert (one_d, one_e) == (test_items - {"e"}, test_items - {"d"})
    assert small & relevant == {"d"}
    assert small < one_d
    assert len(small) == 2
    assert everything > test_items > own_test > relevant  # each design asks for less


def test_the_toy_is_drawn_as_it_is():
    drawn = rows(target_space())
    ratings = [row for row in drawn if row["panel"] == "ratings"]
    targets = [row for row in drawn if row["panel"] == "targets"]
    assert len(ratings) == 4 * 8
    assert [(r["cell"], r["sign"]) for r in ratings] == [
        CELLS[letter] for letters in TOY_MATRIX.values() for letter in letters
    ]
    assert len(targets) == sum(map(len, TOY_TARGETS.values()))
    own = {row["item"]: row["cell"] for row in ratings if row["row"] == "user u"}
    assert all(own[row["item"]] == row["cell"] != "training" for row in targets)


# The figure itself


@pytest.mark.parametrize("name", FIGURES)
def test_specification_is_valid_vega_lite(name):
    spec = FIGURES[name].to_dict()
    alt.Chart.from_dict(spec)  # checks it against the schema, the look included
    assert spec["background"] == "white"
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec


def test_same_numbers_same_figure_whatever_altair_was_told():
    before = split_counts([8, 3], [2, 1]), target_space()
    alt.Chart({"values": [{}]}).mark_bar().interactive().to_dict()  # moves altair's own counters
    with (
        alt.theme.enable("dark"),
        alt.data_transformers.enable("default", consolidate_datasets=False),
    ):
        inside = split_counts([8, 3], [2, 1]), target_space()
    assert before == inside == (split_counts([8, 3], [2, 1]), target_space())
    assert json.dumps(before[1].to_dict()) == json.dumps(inside[1].to_dict())


def test_a_figure_cannot_be_changed_through_its_copy():
    figure = target_space()
    figure.to_dict()["config"]["font"] = "Comic Sans"
    figure.to_dict()["datasets"]["rows"].clear()
    assert figure == target_space()
    assert repr(figure) == "Figure('Target items', 53 rows)"
    with pytest.raises(AttributeError):
        figure.title = "other"


def test_large_data_is_aggregated_or_refused():
    many = np.arange(1, 20_001)
    assert len(rows(split_counts(many, many))) == 2 * 501
    with pytest.raises(SettingError, match=r"at most 5,000 rows .* has 40,002: aggregate"):
        split_counts(many, many, bins=20_000)
    with pytest.raises(SettingError, match="at most 5,000 rows"):
        Figure("much", {"data": {"values": [{}] * (MOST_ROWS + 1)}})


@pytest.mark.parametrize(
    ("train", "test", "options", "message"),
    [
        ([1], [1], {"scale": "lin"}, "unknown scale 'lin'. Did you mean 'linear'"),
        ([1], [1], {"bins": 0}, "bins=0: at least one is needed"),
        ([1, 2], [1], {}, "train is of 2 items, test of 1"),
        ([0.5], [1], {}, "train: not a number of ratings"),
        ([1], [-1], {}, "test: not a number of ratings"),
        ([[1]], [[1]], {}, "train: not a number of ratings"),
        ([0, 0], [0, 0], {}, "there are no ratings to draw"),
    ],
)
def test_counts_that_cannot_be_drawn(train, test, options, message):
    with pytest.raises(UnskewError, match=message):
        split_counts(train, test, **options)


@pytest.mark.parametrize(
    ("matrix", "targets", "message"),
    [
        ({"v": "+"}, {}, "unknown user 'u'"),
        ({"u": "+P", "v": "+"}, {}, "every user needs a letter for each item"),
        ({"u": "+?"}, {}, "unknown letter"),
        ({"u": "+P"}, {"all": "bc"}, "unknown item 'c'"),
    ],
)
def test_examples_that_cannot_be_drawn(matrix, targets, message):
    with pytest.raises(UnskewError, match=message):
        target_space(matrix, targets)


# Files


STARTS = {".svg": b"<svg", ".png": b"\x89PNG", ".pdf": b"%PDF", ".html": b"<!DOC", ".json": b"{"}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("ending", STARTS)
def test_every_kind_of_file(name, ending, tmp_path):
    path = tmp_path / "new" / f"figure{ending.upper() if name == 'toy' else ending}"
    FIGURES[name].save(path)
    content = path.read_bytes()
    assert content.startswith(STARTS[ending])
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    if ending == ".json":
        assert json.loads(content) == FIGURES[name].to_dict()
    if ending != ".pdf":  # which holds the time it was made
        FIGURES[name].save(path)
        assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(content).digest()


def test_unknown_ending_and_no_trace(tmp_path):
    with pytest.raises(SettingError, match=r"unknown file ending '.jpg'.*\.svg, \.png"):
        target_space().save(tmp_path / "figure.jpg")
    nowhere = Figure("no schema", {"mark": "bar"})
    with pytest.raises(SettingError, match=r"\$schema"):
        nowhere.save(tmp_path / "figure.svg")
    assert not list(tmp_path.iterdir())


def test_nothing_is_loaded_from_elsewhere(tmp_path):
    spec = {**target_space().to_dict(), "data": {"url": "https://example.org/rows.json"}}
    with pytest.raises(ValueError, match="not allowed"):
        Figure("remote", spec).save(tmp_path / "figure.svg")
    assert not list(tmp_path.iterdir())
    target_space().save(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", page.split("<body>")[-1])
    assert not re.search(r"<script[^>]+src=", page)


def test_data_cannot_become_markup(tmp_path):
    figure = evil_figure()
    assert json.loads(script_json(EVIL)) == EVIL
    assert "<" not in script_json(figure.to_dict())
    figure.save(tmp_path / "figure.html")
    page = (tmp_path / "figure.html").read_text()
    assert page.count("<script") == page.count("</script") == 3  # bundle, specification, call
    assert "alert(1)" in page
    held = re.search(r'<script type="application/json" id="spec">(.*?)</script>', page, re.S)[1]
    assert json.loads(held) == figure.to_dict()
    titled = Figure(EVIL, figure.to_dict())
    titled.save(tmp_path / "figure.html")
    head = (tmp_path / "figure.html").read_text().split("<style>")[0]
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in head
    figure.save(tmp_path / "figure.svg")
    assert "<script" not in (tmp_path / "figure.svg").read_text()


def test_notebooks_get_a_live_chart_and_a_picture():
    figure = target_space()
    bundle = figure._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"] == repr(figure)
    assert bundle["image/svg+xml"].startswith("<svg")
    (live,) = [
        kind for kind in bundle if re.fullmatch(r"application/vnd\.vegalite\.v\d\+json", kind)
    ]
    assert bundle[live] == figure.to_dict()


def test_without_the_converter(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UnskewError, match="pip install vl-convert-python"):
        target_space().save(tmp_path / "figure.svg")
    target_space().save(tmp_path / "figure.json")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.json"]


def test_a_converter_that_is_too_old(tmp_path, monkeypatch):
    import vl_convert

    monkeypatch.setattr(vl_convert, "get_vegalite_versions", lambda: ["4.17"])
    with pytest.raises(UnskewError, match=r"this vl-convert-python knows 4.17: pip install --up"):
        target_space().save(tmp_path / "figure.png")


def test_importing_charts_is_light():
    code = "import sys, unskew.report.charts; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"altair", "vl_convert", "polars", "numba"} & set(done.stdout.split())


# Documentation and browser


def test_pictures_of_the_documentation_are_there_and_small():
    home = ROOT / "docs"
    names: dict = {"__name__": "pictures", "__file__": str(home / "figures.py")}
    exec(compile((home / "figures.py").read_text(), "figures.py", "exec"), names)
    drawn = {name: figure.to_dict() for name, figure in names["figures"]().items()}
    studies = {path.stem for path in (home / "studies").glob("*20*.md")}
    assert {path.stem for path in (home / "figures").iterdir()} == {*drawn, *studies}
    for name, spec in drawn.items():
        text = (home / "figures" / f"{name}.svg").read_text()
        assert len(text) < 60_000
        # What is written in it depends on the data; fonts may shift the rest by a pixel.
        for line in [spec["title"]["text"], *spec["title"]["subtitle"]]:
            assert line in text, "run: python docs/figures.py"


CHROMIUM = shutil.which("chromium")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")
@pytest.mark.parametrize("make", [evil_figure, lambda: FIGURES["linear"]], ids=["toy", "counts"])
def test_the_page_draws_in_a_browser(make, tmp_path):
    path = tmp_path / "figure.html"
    make().save(path)
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=8000", "--dump-dom",
        path.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    shown = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.S)  # the bundle names svg too
    assert re.search(r"<svg[^>]*marks", shown)
    assert "CONSOLE" not in done.stderr
