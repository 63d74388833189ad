"""The named data sets: where each comes from, which files it has and how they are read."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unskew.data import formats
from unskew.data.formats import Parts

GROUPLENS = "research use; no redistribution, no commercial use without permission (GroupLens)"
KUAISHOU = "CC BY-SA 4.0"
_MOVIELENS = "https://files.grouplens.org/datasets/movielens"
_KUAIRAND = "https://zenodo.org/records/10439422"


@dataclass(frozen=True)
class Entry:
    """A named data set."""

    name: str
    title: str
    published: str
    """Users x items x ratings, as its authors give them."""
    licence: str
    address: str
    """The official page."""
    reader: Callable[..., Parts]
    files: tuple[str, ...]
    """The files that must be there: patterns, `|` between alternatives."""
    scale: tuple[float, float] | None = None
    liked: float | None = None
    """The smallest rating that is liked, as the papers take it; None where they do not say."""
    random: str = ""
    """Its part of randomly chosen items."""
    rules: tuple[str, ...] = ()
    """Which of the rules about both parts apply."""
    archive: str | None = None
    """What is downloaded; None where a person has to ask for it or to convert it."""
    size: int | None = None
    """Bytes of the archive; None = not known."""
    checksum: str | None = None
    """As officially published; None = not known."""
    folders: tuple[str, ...] = ()
    """Further names under which its folder may lie in the data folder."""
    by_hand: str = ""
    """What to do where nothing can be downloaded."""

    @property
    def size_of_ratings(self) -> tuple[int | None, int | None, int | None]:
        """Users, items and ratings, as its authors count them; None where they give no number."""
        words = (re.sub(r"[^\d.]", "", part.split("(")[0]) for part in self.published.split(" x "))
        users, items, ratings = (int(word) if word.isdigit() else None for word in words)
        return users, items, ratings

    @property
    def source(self) -> str:
        """Where and how to get it, and its licence."""
        how = self.by_hand if self.archive is None else f"unskew data get {self.name}"
        return f"from {self.address} ({how}); licence: {self.licence}"

    @property
    def options(self) -> tuple[str, ...]:
        """The options that `load` takes for it."""
        return (*keywords(self.reader), *self.rules)


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the options of a function that reads files: what it takes by keyword only."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(one.name for one in parameters if one.kind is one.KEYWORD_ONLY)


def _movielens(
    name: str,
    title: str,
    published: str,
    *,
    file: str = "ratings.csv",
    low: float = 0.5,
    **more: Any,
) -> Entry:
    return Entry(
        name=name,
        title=f"MovieLens {title}",
        published=published,
        licence=GROUPLENS,
        address="https://grouplens.org/datasets/movielens",
        reader=formats.movielens,
        files=(file,),
        scale=(low, 5.0),
        liked=4.0,
        archive=f"{_MOVIELENS}/{name}.zip",
        **more,
    )


_ENTRIES = (
    _movielens(
        "ml-100k",
        "100K",
        "943 x 1,682 x 100,000",
        file="u.data",
        low=1.0,
        checksum="md5:0e33842e24a9c977be4e0107933c0723",
    ),
    _movielens(
        "ml-1m",
        "1M",
        "6,040 x 3,706 x 1,000,209",
        file="ratings.dat",
        low=1.0,
        checksum="md5:c4d9eecfca2ab87c1945afe126590906",
    ),
    _movielens(
        "ml-10m",
        "10M",
        "71,567 x 10,681 x 10,000,054",
        file="ratings.dat",
        size=65_566_137,
        checksum="md5:ce571fd55effeba0271552578f2648bd",
        folders=("ml-10M100K",),
    ),
    _movielens(
        "ml-20m",
        "20M",
        "138,493 x 27,278 x 20,000,263",
        size=198_702_078,
        checksum="md5:cd245b17a1ae2cc31bb14903e1204af3",
    ),
    _movielens(
        "ml-25m",
        "25M",
        "162,541 x 62,423 x 25,000,095",
        size=261_978_986,
        checksum="md5:6b51fb2759a8657d3bfcbfc42b592ada",
    ),
    _movielens(
        "ml-32m",
        "32M",
        "200,948 x 87,585 x 32,000,204",
        size=238_950_008,
        checksum="md5:d472be332d4daa821edc399621853b57",
    ),
    _movielens("ml-latest-small", "latest small (changes over time)", "610 x 9,742 x 100,836"),
    Entry(
        name="netflix",
        title="Netflix Prize",
        published="480,189 x 17,770 x 100,480,507",
        licence="research use; no redistribution, no commercial use (Netflix)",
        address="https://www.netflixprize.com",
        reader=formats.netflix,
        files=("combined_data_*.txt|mv_*.txt",),
        scale=(1.0, 5.0),
        liked=4.0,
        folders=("netflix-prize-data", "training_set"),
        by_hand="Netflix no longer offers the data; if you have them, put combined_data_1.txt to "
        "combined_data_4.txt (or the files mv_*.txt) there",
    ),
    Entry(
        name="coat",
        title="Coat Shopping",
        published="290 x 300 x 6,960",
        licence="not stated; cite its authors",
        address="https://www.cs.cornell.edu/~schnabts/mnar/",
        reader=formats.coat,
        files=("train.ascii", "test.ascii"),
        scale=(1.0, 5.0),
        liked=4.0,
        random="4,640",
        rules=("overlap",),
        archive="https://www.cs.cornell.edu/~schnabts/mnar/coat.zip",
    ),
    Entry(
        name="yahoo-r3",
        title="Yahoo! R3 (Webscope)",
        published="15,400 x 1,000 x 311,704",
        licence=(
            "approved non-commercial research after a signed agreement; no redistribution (Yahoo!)"
        ),
        address="https://webscope.sandbox.yahoo.com/catalog.php?datatype=r",
        reader=formats.yahoo_r3,
        files=(
            "ydata-ymusic-rating-study-v1_0-train.txt",
            "ydata-ymusic-rating-study-v1_0-test.txt",
        ),
        scale=(1.0, 5.0),
        liked=4.0,
        random="54,000",
        rules=("overlap", "common"),
        folders=("Webscope_R3",),
        by_hand="ask for 'R3' with the form on that page, then put "
        "ydata-ymusic-rating-study-v1_0-train.txt and …-test.txt there",
    ),
    Entry(
        name="cm100k",
        title="CM100k (crowd-sourced music)",
        published="1,054 x 1,084 x 103,584",
        licence="not stated; cite its authors",
        address="https://github.com/ir-uam/SIGIR2018",
        reader=formats.cm100k,
        files=("ratings.txt|data.txt",),
        scale=(1.0, 4.0),
        liked=3.0,
        random="all",
        rules=("overlap",),
        by_hand="download datasets/cm100k/data.txt of its repository and put it there",
    ),
    Entry(
        name="kuairec",
        title="KuaiRec 2.0",
        published="7,176 x 10,728 x 12,530,806",
        licence=KUAISHOU,
        address="https://kuairec.com",
        reader=formats.kuairec,
        files=("big_matrix.csv", "small_matrix.csv"),
        scale=None,
        liked=2.0,
        random="4,676,570",
        rules=("overlap",),
        archive="https://zenodo.org/records/18164998/files/KuaiRec.zip",
        size=431_964_858,
        checksum="md5:261550d472c48eff4990fb13c0e5bcf7",
        folders=("KuaiRec 2.0", "KuaiRec"),
    ),
    Entry(
        name="kuairand-pure",
        title="KuaiRand-Pure",
        published="27,285 x 7,551 x 1,436,609",
        licence=KUAISHOU,
        address="https://kuairand.com",
        reader=formats.kuairand,
        files=("log_standard_*.csv", "log_random_*.csv"),
        scale=(0.0, 1.0),
        liked=1.0,
        random="1,186,059",
        rules=("overlap",),
        archive=f"{_KUAIRAND}/files/KuaiRand-Pure.tar.gz",
        checksum="md5:0820331067a3784d9691136f772b35a7",
        folders=("KuaiRand-Pure",),
    ),
    Entry(
        name="kuairand-1k",
        title="KuaiRand-1K",
        published="1,000 x 4,369,953 x 11,713,045",
        licence=KUAISHOU,
        address="https://kuairand.com",
        reader=formats.kuairand,
        files=("log_standard_*.csv", "log_random_*.csv"),
        scale=(0.0, 1.0),
        liked=1.0,
        random="43,028",
        rules=("overlap",),
        archive=f"{_KUAIRAND}/files/KuaiRand-1K.tar.gz",
        size=1_135_436_720,
        checksum="md5:6b0b9c8222d67fcd4c676218edca3f1f",
        folders=("KuaiRand-1K",),
    ),
    Entry(
        name="lastfm-1k",
        title="Last.fm 1K (plays, with times)",
        published="992 x 176,948 x 19,150,868 plays",
        licence="non-commercial use, with permission of Last.fm",
        address="http://ocelma.net/MusicRecommendationDataset/lastfm-1K.html",
        reader=formats.lastfm_1k,
        files=("userid-timestamp-artid-artname-traid-traname.tsv",),
        scale=None,
        liked=3.0,
        archive="https://mtg.upf.edu/static/datasets/last.fm/lastfm-dataset-1K.tar.gz",
        folders=("lastfm-dataset-1K",),
    ),
    Entry(
        name="librarything",
        title="LibraryThing",
        published="7,279 x 37,232 x 749,401",
        licence="not stated; cite its authors",
        address="http://www.macle.nl/tud/LT",
        reader=formats.librarything,
        files=("UI2.txt|reviews.txt",),
        scale=(0.5, 5.0),
        liked=4.0,
        folders=("LT", "lthing_data"),
        by_hand="download it on that page and put its UI2.txt there",
    ),
    Entry(
        name="beeradvocate",
        title="BeerAdvocate",
        published="33,388 x 66,055 x 1,586,614 reviews",
        licence="not stated; research use, cite its authors",
        address="https://cseweb.ucsd.edu/~jmcauley/datasets.html#multi_aspect",
        reader=formats.beeradvocate,
        files=(
            "beeradvocate.json.gz|beeradvocate.json|beeradvocate.txt.gz|beeradvocate.txt|"
            "beer_reviews.csv",
        ),
        scale=(0.0, 5.0),
        liked=4.0,
        archive="https://mcauleylab.ucsd.edu/public_datasets/data/beer/beeradvocate.json.gz",
    ),
    Entry(
        name="jester",
        title="Jester, dataset 1",
        published="73,421 x 100 x 4.1 million",
        licence="research use with citation (Goldberg et al.)",
        address="https://eigentaste.berkeley.edu/dataset/",
        reader=formats.jester,
        files=("jester-data-*.csv",),
        scale=(-10.0, 10.0),
        by_hand="its files are Excel files: download them on that page and save each as CSV, "
        "without a header line, as jester-data-1.csv, jester-data-2.csv, jester-data-3.csv",
    ),
    Entry(
        name="jester-2",
        title="Jester, dataset 2",
        published="59,132 x 150 x 1.7 million",
        licence="research use with citation (Goldberg et al.)",
        address="https://eigentaste.berkeley.edu/dataset/archive/",
        reader=formats.jester2,
        files=("jester_ratings.dat",),
        scale=(-10.0, 10.0),
        archive="https://eigentaste.berkeley.edu/dataset/jester_dataset_2.zip",
        folders=("jester_dataset_2",),
    ),
    Entry(
        name="open-bandit",
        title="Open Bandit (logged feedback)",
        published="no users x 80 items x 26 million rows",
        licence="CC BY 4.0",
        address="https://research.zozo.com/data.html",
        reader=formats.open_bandit,
        files=("bts/*/*.csv", "random/*/*.csv"),
        scale=(0.0, 1.0),
        liked=1.0,
        random="the log of the random policy",
        archive="https://research.zozo.com/data_release/open_bandit_dataset.zip",
        size=412_931_917,
        folders=("open_bandit_dataset", "obd"),
    ),
)
DATASETS: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
