"""The paper: what it cites is listed, what is listed is cited, and its numbers stand on pages."""

import re

from shared import ROOT
from unskew.auditing.page.paper_files import PAPERS

TEXT = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
BIB = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
SOURCE = re.compile(r"<!-- ((?:docs/)?[\w-]+\.md): (.*?) -->", re.DOTALL)


def plain(text):
    return re.sub(r"\s+", " ", text)


def cited(text):
    return set(re.findall(r"@([a-z]+\d{4})", text))


def entries(bib):
    return dict(re.findall(r"^@\w+\{(\w+),\n(.*?)^\}", bib, re.MULTILINE | re.DOTALL))


def field(entry, name):
    value = re.search(rf"^\s*{name}\s*= \{{(.*)\}},?$", entry, re.MULTILINE)
    return value[1] if value else None


def numbers(text):
    """Return the numbers of a text, without names (`P@10`, `f1`) and keys of citations."""
    text = re.sub(r"\[@[^\]]*\]", "", text)
    return set(re.findall(r"(?<![\w@.,-])\d+(?:,\d{3})*(?:\.\d+)?(?:e-\d+)?(?!\w)", text))


def unproven(paragraph):
    """Return the numbers of a paragraph that its sources do not hold."""
    sources = " ".join(quote for _, quote in SOURCE.findall(paragraph))
    return numbers(re.sub(r"<!--.*?-->", "", paragraph, flags=re.DOTALL)) - numbers(sources)


def paragraphs():
    body = re.sub(r"\A---\n.*?\n---\n", "", TEXT, flags=re.DOTALL)
    return re.split(r"\n\s*\n", body)


def test_what_is_cited_is_listed_and_what_is_listed_is_cited():
    assert cited(TEXT) == set(entries(BIB))
    assert len(re.findall(r"^@", BIB, re.MULTILINE)) == len(entries(BIB))


def test_entries_are_whole():
    for key, entry in entries(BIB).items():
        year = field(entry, "year")
        assert year == key[-4:], key
        assert field(entry, "author"), key
        assert field(entry, "title"), key
        assert field(entry, "journal") or field(entry, "booktitle"), key
        doi = field(entry, "doi")
        assert doi is None or re.fullmatch(r"10\.\d{4,5}/\S+", doi), key


def test_entries_are_those_that_reports_cite():
    def same(text):
        return re.sub(r"[{}\\\s]", "", text).lower()

    shared = set(PAPERS) & set(entries(BIB))
    assert shared >= {"bellogin2017", "valcarce2018", "castells2018", "carraro2020", "mena2021"}
    for key in shared:
        for name in ("doi", "title", "pages"):
            value = field(entries(BIB)[key], name)
            assert value is None or same(value) in same(PAPERS[key]), (key, name)


def test_the_software_is_cited_as_it_cites_itself():
    yaml = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    title = re.search(r'^title: "(.+)"$', yaml, re.MULTILINE)[1]
    assert f"title: '{title}'" in TEXT
    author = re.search(r'^  - name: "(.+)"$', yaml, re.MULTILINE)[1]
    assert f"  - name: {author}\n" in TEXT


def test_sources_stand_on_their_pages():
    quotes = SOURCE.findall(TEXT)
    assert len(quotes) >= 10
    pages = {name: plain((ROOT / name).read_text(encoding="utf-8")) for name, _ in quotes}
    assert [quote for name, quote in quotes if plain(quote) not in pages[name]] == []


def test_numbers_of_the_paper_are_those_of_its_sources():
    wrong = {
        paragraph[:60]: missing for paragraph in paragraphs() if (missing := unproven(paragraph))
    }
    assert wrong == {}


def test_numbers_without_a_source_are_seen():
    said = "Of 836 worlds [@mena2021] 12.5 % in `P@10` and 1,055 of 1e-9.\n"
    assert numbers(said) == {"836", "12.5", "1,055", "1e-9"}
    assert unproven(said + "<!-- docs/x.md: 836 worlds, 1,055, 1e-9 -->") == {"12.5"}
    assert cited("[@a2017; @b2018] and @c2019") == {"a2017", "b2018", "c2019"}


def test_the_paper_has_the_parts_that_a_journal_asks_for():
    titles = re.findall(r"^# (.+)$", TEXT, re.MULTILINE)
    for title in ("Summary", "Statement of need", "State of the field", "Limits", "References"):
        assert title in titles
    words = len(re.sub(r"<!--.*?-->", "", TEXT, flags=re.DOTALL).split())
    assert 250 < words < 1_750
