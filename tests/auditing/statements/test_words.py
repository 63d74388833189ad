"""What an audit prints: statements of the catalogue and captions, nothing else, in any output."""

import json
import re
from functools import cache
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest

import unskew as us
from shared.real_data import real_data
from shared.sample import sample
from unskew.auditing.audit import audit
from unskew.auditing.page import blocks as guides
from unskew.auditing.page import captions, checklist, glossary, statement_blocks
from unskew.auditing.page.glossary import texts_of
from unskew.auditing.page.headline import headline
from unskew.auditing.page.statement_blocks import (
    Rate,
    Rates,
    WorldRate,
    anchor_of,
    code_fingerprint,
    rate_sentence,
    rate_table,
    rate_values,
)
from unskew.auditing.statements.first_screen import KINDS
from unskew.cli.doors.audit import show
from unskew.data.summary import summary
from unskew.metrics.names import parse
from unskew.report.document import Code, Fold, Picture, Words
from unskew.report.page import as_html
from unskew.report.tables import Table
from unskew.splits.counts import count_parts
from unskew.splits.split import Split

SMALL = {"repeats": 2, "permutations": 200, "tune": False}
FORBIDDEN = [
    *(r"needs? no taste", r"no taste at all", r"nobody had", r"treat \S+ and \S+ as equal"),
    *(r"do not read", r"whatever the design", r"nothing (is )?to (be found|find)", r"none to find"),
    *(r"needs? \S+ more judgments", r"tells the systems apart best", r"more reliable here"),
    *(r"items that are not liked", r"null share", r"\bnan\b", r"corrected for 1 comparisons"),
    *(r"check it on", r"only popular", r"is made by the design"),
]
KEYS = ["kind", "role", "subjects", "others", "designs"]
KEYS += ["value", "interval", "text", "assumptions"]


# Audits of several kinds


def shop():
    return audit(
        us.world("shop", users=150, items=60, seed=3),
        "quick",
        algorithms=["random", "popularity", "smoothed-average", "user-knn"],
        designs=["all-items", "test-items", "1r", "test-targets", "skew"],
        **SMALL,
    )


def implicit():
    rng = np.random.default_rng(2)
    group = np.arange(120) % 3
    likely = np.where(group[:, None] == np.arange(45) % 3, 0.4, 0.1)
    user, item = np.nonzero(rng.random((120, 45)) < likely)
    return audit(
        {"user": user, "item": item},
        "quick",
        algorithms=["random", "popularity", "item-knn"],
        designs=["all-items", "skew"],
        **SMALL,
    )


def lists(*, train):
    parts = sample(users=150, items=80)
    given = {"train": parts.train} if train else {}
    settings = {"repeats": 2, "permutations": 200}
    return audit(judgments=parts.test, runs=parts.runs, plan="quick", liked=4, **given, **settings)


def late_users(seed=5):
    """Return ratings in time: most of the users of the last fifth have no earlier rating."""
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, 61) ** 0.7
    rows = []
    for user in range(220):
        late, n = user >= 140, 14 if user >= 140 else 22
        liked = (np.arange(60) % 4) == user % 4
        chance = popularity * np.where(liked, 3.0, 1.0)
        items = rng.choice(60, n, replace=False, p=chance / chance.sum())
        for place, item in enumerate(items):
            # Late users rate all at once; a few early ones go on: the warm users of the last fifth.
            time = int(rng.integers(0, 1000))
            if late:
                time = 1000 + 10 * (user - 140)
            elif user % 4 == 0 and place >= n // 2:
                time = int(rng.integers(1000, 1800))
            rows.append((user, int(item), 5 if liked[item] and rng.random() < 0.8 else 2, time))
    return dict(zip(("user", "item", "rating", "time"), zip(*rows, strict=True), strict=True))


def temporal():
    return audit(
        {name: list(column) for name, column in late_users().items()},
        "quick",
        liked=4,
        algorithms=["random", "popularity", "user-knn"],
        designs=["all-items", "temporal"],
        **SMALL,
    )


AUDITS = {
    "shop": shop,
    "implicit": implicit,
    "lists": lambda: lists(train=False),
    "lists with train": lambda: lists(train=True),
    "temporal": temporal,
}


@cache
def audit_of(name):
    return AUDITS[name]()


@cache
def document_of(name):
    return audit_of(name).document()


@pytest.fixture(params=AUDITS)
def name(request):
    return request.param


# Every sentence


def pattern(template):
    """Return what a caption looks like, whatever the values in it."""
    parts = re.split(r"\{(?!splits)\w+\}", template)
    text = ".+".join(map(re.escape, parts)).replace(re.escape("{splits}"), ".*")
    return re.compile(text + r"(; the first 300 of [\d,]+ rows)?")


CHECKS = {
    checklist.MISSING: checklist.SENTENCES["missing"],
    checklist.STATE: checklist.SENTENCES["state"],
}
CLOSED = [
    pattern(text)
    for text in (
        *captions.CAPTIONS.values(),
        *captions.TITLES.values(),
        *captions.SHOWS.values(),
        *checklist.QUESTIONS.values(),
        *checklist.SENTENCES.values(),
        *(f"{checklist.SIGNS[status]} {text}" for status, text in CHECKS.items()),
        *captions.HEADLINES.values(),
        *(text for pair in captions.SECTIONS.values() for text in pair),
    )
]


def sentences(document):
    """Yield every text of a document that is no number, name or code."""
    yield document.title
    blocks = list(document.lead)
    headline = document.headline
    yield headline.verdict
    for fact in headline.facts:
        yield fact.value
        yield from re.split(r"(?<=\.) (?=A hit is )", fact.text)
    yield headline.chart.figure.title
    yield from headline.chart.figure.spec["title"]["subtitle"]
    for section in document.sections:
        yield section.title
        yield section.shows
        blocks += section.every_block()
    for block in blocks:
        if isinstance(block, Words):
            yield from filter(None, (block.text, block.head, *block.points))
            if block.link is not None:
                yield block.link.text
        elif isinstance(block, Table):
            yield block.title
            yield from filter(None, [block.note])
            if "statement" in block.frame.columns:
                yield from block.frame["statement"]
        elif isinstance(block, Picture):
            yield from filter(None, [block.note])
        elif isinstance(block, Code):
            yield block.title
    for section in document.sections:
        yield from folds(section.blocks)


def folds(blocks):
    """Yield the titles of what is folded."""
    for block in blocks:
        if isinstance(block, Fold):
            yield block.title
            yield from folds(block.blocks)


def test_every_sentence_is_a_statement_or_a_caption(name):
    made = audit_of(name)
    stated = {one.text for one in made.statements}
    skipped = {f"{what}: {why}" for what, why in made.skipped.items()}
    counted = {*made.notes, *made.remarks, *made.assumed, *skipped}
    for text in sentences(document_of(name)):
        known = text in stated or text in counted or any(one.fullmatch(text) for one in CLOSED)
        assert known, text


def test_the_closed_list_closes():
    for text in (
        "84 % of it needs no taste at all.",
        "Report that popularity leads: it does so whatever the design.",
        "RR@10 tells the systems apart best.",
    ):
        assert not any(one.fullmatch(text) for one in CLOSED)


def test_captions_conclude_nothing():
    """No caption but the title of a statement's rate speaks of better, worse or a winner."""
    for key, text in {**captions.CAPTIONS, **captions.SHOWS}.items():
        assert not re.search(r"\b(best|winner|reliable|trust|prove|significant)", text), key


def outputs(name, capsys):
    """Return everything that an audit prints."""
    made, document = audit_of(name), document_of(name)
    show(made, quiet=False)
    printed = capsys.readouterr()
    return {
        "terminal": printed.out,
        "notes": printed.err,
        "text": str(made),
        "notebook": made._repr_html_(),
        "markdown": document.to_markdown(),
        "json": document.to_json(),
        "page": re.sub(r"<script>.*?</script>", "", as_html(document).decode(), flags=re.S),
    }


def test_no_output_has_a_forbidden_word(name, capsys):
    for where, text in outputs(name, capsys).items():
        for word in FORBIDDEN:
            assert not re.search(word, text, re.IGNORECASE), (where, word)


def test_figures_have_no_forbidden_word(name):
    for _, figure in document_of(name).figures():
        text = json.dumps(figure.spec)
        assert not any(re.search(word, text, re.IGNORECASE) for word in FORBIDDEN), figure.title


# The first screen


def test_the_answer_is_the_first_screen(name, capsys):
    made = audit_of(name)
    texts = [one.text for one in made.first_screen.sentences]
    assert 1 <= len(texts) <= 5
    assert made.answer() == [headline(made).verdict, *texts]
    assert made.header() == made.answer()
    assert str(made).splitlines()[: len(texts) + 1] == made.answer()
    stated = {one.text for one in made.statements}
    assert set(texts) <= stated
    show(made, quiet=True)
    quiet = " ".join(capsys.readouterr().out.split())
    assert quiet == " ".join(" ".join(texts).split())
    lead = document_of(name).lead
    assert [words.text for words in lead] == made.answer()
    for words, one in zip(lead[1:], made.first_screen.sentences, strict=True):
        assert words.link.target == anchor_of(one.kind)


def test_json_has_statements_as_objects(name):
    made = audit_of(name)
    plain = json.loads(document_of(name).to_json())
    assert plain["verdict"] == made.verdict
    assert plain["first_screen"] == {one.kind: one.text for one in made.first_screen.sentences}
    assert len(plain["statements"]) == len(made.statements)
    for row, one in zip(plain["statements"], made.statements, strict=True):
        assert list(row) == [*KEYS, "false_rate"]
        assert (row["kind"], row["text"], row["subjects"]) == (
            one.kind,
            one.text,
            list(one.subjects),
        )
        assert row["kind"] in KINDS
    assert plain["statements"] == json.loads(json.dumps(made.to_dict()["statements"]))


# Words for people


def tables_of(document):
    return [b for s in document.sections for b in s.every_block() if isinstance(b, Table)]


def test_no_table_has_a_raw_key(name):
    """Every head of every table is one of the words for people, a design or a part of the data."""
    made = audit_of(name)
    words = {*glossary.COLUMNS.values(), *glossary.PARTS.values(), *made.designs}
    words |= {word for heads in glossary.OF_TABLES.values() for word in heads.values()}
    words |= {*glossary.SPLITS.values(), *statement_blocks.COLUMNS, captions.title("kept")}
    words |= {*checklist.COLUMNS, *checklist.HEADS.values()}
    rows = {*glossary.ROWS.values()}
    for table in tables_of(document_of(name)):
        assert set(table.header) <= words, (table.title, set(table.header) - words)
        assert not any("_" in head for head in table.header), table.title
        if table.title in ("The data", "The given split", captions.title("splits")):
            assert set(table.frame["what"]) <= rows, set(table.frame["what"]) - rows


def test_kinds_and_facts_have_words():
    assert set(glossary.KIND_LABELS) == set(KINDS)
    assert len(set(glossary.KIND_LABELS.values())) == len(KINDS)
    ratings = us.read_ratings({"user": [1, 1], "item": [7, 8]})
    facts = {*count_parts(Split(ratings, ratings)).facts} - {"label"}
    facts |= {*summary(ratings).table().columns} - {"part"}
    assert facts <= set(glossary.ROWS)


def test_the_glossary_explains_what_is_used(name):
    made, document = audit_of(name), document_of(name)
    forms = {form for term in document.glossary for form in (term.word, *term.forms)}
    assert set(made.designs) <= forms
    if made.evidence.ladder is not None:
        assert {"ladder", "rung counts", "rung averages", "rung choice", "match"} <= forms
    listed = [table for table in tables_of(document) if "metric" in table.header]
    assert {made.metric, *(one for table in listed for one in table.frame["metric"])} <= forms
    text = "\n".join(texts_of(document)).casefold()
    for term in document.glossary:
        assert any(form.casefold() in text for form in (term.word, *term.forms)), term.word
        assert term.meaning.endswith(".")
    words = [term.word for term in document.glossary]
    assert len(words) == len(set(words))
    assert name != "lists" or "u1r" not in words


def test_guides_are_short(name):
    for section in document_of(name).sections:
        assert section.guide == guides.GUIDES[section.key]
        assert 1 <= len(section.guide) <= 5
        assert all(len(text.split()) <= 60 for text in section.guide)


# Links, HTML, Markdown


class Ends(HTMLParser):
    """Check that every element that must end does, in order."""

    VOID = frozenset({"meta", "link", "input", "br", "img", "hr"})

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_parses_and_its_links_resolve(name):
    page = re.sub(r"<script>.*?</script>", "", as_html(document_of(name)).decode(), flags=re.S)
    parser = Ends()
    parser.feed(page)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    inside = [link[1:] for link in parser.links if link.startswith("#")]
    assert set(inside) <= set(parser.ids)
    texts = "\n".join(texts_of(document_of(name)))
    for one in audit_of(name).statements:
        assert anchor_of(one.kind) in parser.ids
        assert one.text in texts or one.role == "pair"


def test_markdown_links_lead_to_a_heading(name):
    text = document_of(name).to_markdown()
    headings = {
        re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    links = re.findall(r"\]\(#([^)]+)\)", text)
    assert links
    assert set(links) <= headings
    assert len(document_of(name).sections) <= 12


# Rates


def measured(kind, *, broken=()):
    rows = (WorldRate(world="halo", worlds=20, sayings=40, rate=0.1),)
    rows += (WorldRate(world="taste", worlds=380, sayings=900, rate=0.0),)
    rate = Rate(
        kind=kind, worlds=400, sayings=940, rate=0.02, low=0.01, high=0.04, upper=0.036,
        by_world=rows, broken=broken,
    )  # fmt: skip
    return Rates(
        fingerprint=code_fingerprint(),
        worlds=400,
        world_kinds=("halo", "taste"),
        rates={kind: rate},
    )


def test_rates_are_those_of_simulated_worlds():
    wording = "sentences like this one are wrong in 2 % of 400 simulated worlds [1, 4]"
    assert rate_sentence("ahead", measured("ahead")) == wording
    fails = rate_sentence("better", measured("better"))
    assert fails == f"{wording}; they fail when display sways ratings or display changes who rates"
    assert rate_sentence("leads", measured("ahead")) == "rate not measured for this version"
    assert rate_sentence("leads", None) == "rate not measured for this version"
    assert rate_sentence("cold", measured("cold")) == "a count or advice: no world can refute it"
    plain = rate_values("ahead", measured("ahead"))
    assert plain["rate"] == 0.02
    assert plain["by_kind_of_world"] == {"halo": 0.1, "taste": 0.0}
    assert rate_values("ahead", None) is None


def test_stale_rates_are_not_printed():
    stale = Rates(fingerprint="another", worlds=1, world_kinds=(), rates=measured("ahead").rates)
    assert rate_sentence("ahead", stale) == "rate not measured for this version"


def test_the_table_of_rates_has_a_row_per_kind():
    made = audit_of("shop")
    broken = (WorldRate(world="halo", worlds=9, sayings=9, rate=0.98),)
    table = rate_table(made.statements, measured("ahead", broken=broken))
    assert table["kind"].to_list() == [
        kind for kind in KINDS if kind in {one.kind for one in made.statements}
    ]
    row = table.filter(kind="ahead").row(0, named=True)
    assert row["over kinds of worlds"] == "0 % to 10 %"
    assert row["worst kind of world"] == "halo"
    assert row["where it fails"] == "98 % of such sentences in worlds of the kind halo"


# Cases that earlier words got wrong


def selective_taste(seed=1):
    """Return ratings that only taste makes: eight groups, and who likes an item rates it."""
    rng = np.random.default_rng(seed)
    users, items = rng.integers(0, 8, 600), rng.integers(0, 8, 400)
    liked = rng.random((600, 400)) < np.where(users[:, None] == items, 0.7, 0.05)
    rated = rng.random((600, 400)) < np.where(liked, 0.5, 0.01)
    user, item = np.nonzero(rated)
    ratings = {"user": user, "item": item, "rating": np.where(liked[user, item], 5, 1)}
    return ratings, liked


def test_what_taste_alone_makes_is_not_called_popularity(capsys):
    """Who rated what is itself made by taste: re-drawn opinions leave most of the score."""
    ratings, liked = selective_taste()
    made = audit(
        ratings,
        "quick",
        liked=4,
        algorithms=["random", "popularity", "user-knn"],
        designs=["all-items", "skew"],
        **SMALL,
    )
    # The counter-example: opinions re-drawn, most of what is above chance stays.
    keys = {"design": "all-items", "system": "user-knn", "metric": "P@10"}
    assert made.null.row(quantity="null_share", **keys).value > 0.6
    # And yet the lists are truly liked, far more than random ones.
    run = made.evidence.core.lists[0].runs["user-knn"]
    top = [run.item[start : start + 10] for start in run.start[:-1]]
    true = np.mean([liked[user, items].mean() for user, items in enumerate(top)])
    assert true > 4 * liked.mean()
    assert made.order()[0] == "user-knn"
    of_knn = [one for one in made.statements if one.subjects[:1] == ("user-knn",)]
    kinds = {one.kind for one in of_knn}
    assert not kinds & {"popular", "not-personal"}
    assert kinds & {"match", "opinion"}
    document = made.document()
    show(made, quiet=False)
    texts = [document.to_markdown(), document.to_json(), str(made), "".join(capsys.readouterr())]
    for text in texts:
        assert not any(re.search(word, text, re.IGNORECASE) for word in FORBIDDEN)


def check_cold(made, personal):
    """Check that no lead under the temporal design comes from cold users."""
    table = made.evidence.core.cold_table.filter(design="temporal")
    assert table["share"][0] > 0.5
    cold = [one for one in made.statements if one.kind == "cold" and one.designs == ("temporal",)]
    assert len(cold) == 1
    count, users = table["cold"][0], table["users"][0]
    assert f"{count:,} of {users:,} judged users have no training rating" in cold[0].text
    assert cold[0].value == pytest.approx(count / users)
    contrast = made.evidence.contrast("popularity", personal, "temporal")
    assert contrast.n == users - count
    for one in made.statements:
        if "temporal" in one.designs and one.role != "procedure":
            assert one.subjects[0] != "popularity"
    document = made.document()
    (designs,) = [section for section in document.sections if section.key == "designs"]
    titles = [block.title for block in designs.every_block() if isinstance(block, Table)]
    assert f"{made.metric} on warm and on cold users" in titles
    shown = made.table().filter(design="temporal")
    values = dict(shown.select("system", "value").iter_rows())
    warm = dict(table.select("system", "on_warm").iter_rows())
    assert values == pytest.approx(warm)


def test_cold_users_are_no_effect_of_the_design(capsys):
    made = audit_of("temporal")
    check_cold(made, "user-knn")
    show(made, quiet=False)
    assert "users with a training rating" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_cold_users_of_movielens():
    real_data("ml-100k")
    made = audit(
        us.load("ml-100k"),
        "quick",
        algorithms=["popularity", "user-knn", "puresvd"],
        designs=["all-items", "temporal"],
        **SMALL,
    )
    check_cold(made, "user-knn")


def shallow_lists():
    """Return lists of ten items of which one is better for every user, with training ratings."""
    rng = np.random.default_rng(4)
    rows, train = [], []
    runs = {"new": {}, "old": {}}
    for user in range(160):
        items = rng.permutation(40)
        train += [(user, int(item), int(rng.integers(1, 6))) for item in items[:8]]
        test = items[8:20]
        rows += [(user, int(item), 5 if place < 6 else 1) for place, item in enumerate(test)]
        runs["new"][user] = [int(i) for i in (*test[:5], *test[6:11])]
        runs["old"][user] = [int(i) for i in (*test[:3], *test[6:12], test[3])]
    columns = ("user", "item", "rating")
    return [pl.DataFrame(part, columns, orient="row") for part in (rows, train)], runs


def test_lists_of_ten_items_count_one_design_once():
    (test, train), runs = shallow_lists()
    made = audit(
        judgments=test, runs=runs, train=train, liked=4, metric="P@10", repeats=2, permutations=200
    )
    core = made.evidence.core
    assert "as-given" in core.designs
    twins = {name: one for name, one in core.left_out.items() if one.same_as == "as-given"}
    assert twins
    assert not set(twins) & set(core.designs)
    said = {
        design for one in made.statements if one.kind == "same-design" for design in one.designs
    }
    assert set(twins) <= said
    finding = made.first_screen.finding
    count = re.search(r"all (\d+) distinct designs", finding.text)
    assert count is None or int(count[1]) == len(core.designs)
    assert not set(finding.designs) & set(twins)
    text = made.document().to_markdown()
    assert "whatever the design" not in text
    advice = made.first_screen.next_step
    assert advice is None or not re.search(r"\b(u1r|p1r|skew|wtd-h|--random)\b", advice.text)
    titles = [
        block.title
        for section in made.document().sections
        for block in section.every_block()
        if isinstance(block, Table)
    ]
    assert "How far the given lists reach" in titles


def test_given_lists_have_their_words():
    made = audit_of("lists with train")
    document = document_of("lists with train")
    assert document.title.startswith("How far to trust this evaluation: the lists of")
    by_key = {section.key: section for section in document.sections}
    assert by_key["designs"].shows == captions.SHOWS["designs given"]
    assert made.evidence.references
    assert all("(reference" in one for one in made.evidence.references)
    text = document.to_markdown()
    assert "trained again" not in text
    assert "trained anew" not in text
    assert "Intervals are for these lists on new users" in text
    assert "The lists stay as they are." in text


def test_implicit_data_have_no_dislikes():
    made, document = audit_of("implicit"), document_of("implicit")
    assert made.evidence.core.implicit
    assert any(one.kind == "implicit" for one in made.statements)
    tables = [b for s in document.sections for b in s.every_block() if isinstance(b, Table)]
    names = [table.title for table in tables]
    assert captions.TITLES["shares"] not in names
    assert captions.TITLES["bins"] not in names
    assert captions.TITLES["margins"] not in names
    metrics = {one for t in tables if "metric" in t.frame.columns for one in t.frame["metric"]}
    assert "P@10" in metrics
    assert not any(parse(one).anti for one in metrics)
