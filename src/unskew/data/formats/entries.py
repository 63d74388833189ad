"""The named data sets: where each comes from, which files it has and how they are read."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from unskew.data.dataset import ALL, EXHAUSTIVE, JUDGED, POOLED, RANDOM
from unskew.data.formats import log_formats, ratings_formats
from unskew.data.formats import log_formats as event_formats
from unskew.data.formats import log_formats as pooled_formats
from unskew.data.formats.parts import Parts

GROUPLENS = "research use; no redistribution, no commercial use without permission (GroupLens)"
KUAISHOU = "CC BY-SA 4.0"
_MOVIELENS = "https://files.grouplens.org/datasets/movielens"
_KUAIRAND = "https://zenodo.org/records/10439422"
YAMBDA = "Apache 2.0; published for scientific and research purposes only (Yandex)"
CHOSEN = "ratings that users chose to give"
STARS = "4 of 5 stars, as the papers take it"


@dataclass(frozen=True)
class CatalogEntry:
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
    reason: str = ""
    """Why ratings are liked from there on."""
    observed: str = CHOSEN
    """What the ratings are."""
    truth: str = ""
    """Its judgments without the bias of what users chose to rate: kind, and how many."""
    kind: str = RANDOM
    """What these are: see `TrueJudgments`."""
    is_all_random: bool = False
    """Whether the ratings themselves are of randomly chosen items."""
    candidates: str = ALL
    """Which items they speak of: see `TrueJudgments`."""
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
    def facts(self) -> tuple[str, ...]:
        """What is observed, what is true, and why ratings are liked from the threshold on."""
        lines = [f"observed: {self.observed}"]
        lines += [f"true part: {self.truth}"] if self.truth else []
        if self.liked is not None:
            lines.append(f"liked from {self.liked:g}: {self.reason}")
        return tuple(lines)

    @property
    def options(self) -> tuple[str, ...]:
        """The options that `load` takes for it."""
        return (*keywords(self.reader), *self.rules)


def keywords(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the options of a function that reads files: what it takes by keyword only."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
    )


def _movielens(
    name: str,
    title: str,
    published: str,
    *,
    file: str = "ratings.csv",
    low: float = 0.5,
    **more: Any,
) -> CatalogEntry:
    return CatalogEntry(
        name=name,
        title=f"MovieLens {title}",
        published=published,
        licence=GROUPLENS,
        address="https://grouplens.org/datasets/movielens",
        reader=ratings_formats.movielens,
        files=(file,),
        scale=(low, 5.0),
        liked=4.0,
        reason=STARS,
        archive=f"{_MOVIELENS}/{name}.zip",
        **more,
    )


def _yambda(size: str, published: str) -> CatalogEntry:
    kinds = ("likes", "dislikes", "unlikes", "undislikes")
    return CatalogEntry(
        name=f"yambda-{size}",
        title=f"Yambda {size.upper()} (music, organic or recommended)",
        published=published,
        licence=YAMBDA,
        address="https://huggingface.co/datasets/yandex/yambda",
        reader=event_formats.yambda,
        files=tuple(f"flat/{size}/{kind}.parquet" for kind in kinds),
        liked=1.0,
        reason="a favourite; with signal=listens from 50 % of the track played (its authors' rule)",
        observed="likes and dislikes, or listens; the tag organic tells those that no "
        "recommendation led to",
        folders=("yambda",),
        by_hand=f"download the folder flat/{size} of the data set, such as with: hf download "
        f"yandex/yambda --repo-type dataset --include 'flat/{size}/*' --local-dir FOLDER, FOLDER "
        "being the one named here",
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
    CatalogEntry(
        name="ml-32m-ext",
        title="MovieLens 32M Extension (pooled judgments)",
        published="not stated x not stated x 32 million",
        licence="research on evaluation after a signed form; not to be shared (its authors); "
        f"MovieLens: {GROUPLENS}",
        address="https://uwaterlooir.github.io/datasets/ml-32m-extension",
        reader=pooled_formats.ml_32m_ext,
        files=("explicit-ratings.csv", "p2-ratings.csv"),
        scale=(0.5, 5.0),
        liked=4.0,
        reason=f"{STARS}; of the pooled judgments from 'Interested' (2 of 0 to 4)",
        observed="ratings of MovieLens 32M, and of 51 participants",
        truth="pooled: 31,236 (51 users)",
        kind=POOLED,
        candidates=JUDGED,
        folders=("ml-32m-extension", "ml-32m-extension-main"),
        by_hand="ask for access with the form on that page, run the make.sh of its repository on "
        "MovieLens 32M, and put explicit-ratings.csv and p2-ratings.csv there",
    ),
    _movielens("ml-latest-small", "latest small (changes over time)", "610 x 9,742 x 100,836"),
    CatalogEntry(
        name="netflix",
        title="Netflix Prize",
        published="480,189 x 17,770 x 100,480,507",
        licence="research use; no redistribution, no commercial use (Netflix)",
        address="https://www.netflixprize.com",
        reader=ratings_formats.netflix,
        files=("combined_data_*.txt|mv_*.txt",),
        scale=(1.0, 5.0),
        liked=4.0,
        reason=STARS,
        folders=("netflix-prize-data", "training_set"),
        by_hand="Netflix no longer offers the data; if you have them, put combined_data_1.txt to "
        "combined_data_4.txt (or the files mv_*.txt) there",
    ),
    CatalogEntry(
        name="coat",
        title="Coat Shopping",
        published="290 x 300 x 6,960",
        licence="not stated; cite its authors",
        address="https://www.cs.cornell.edu/~schnabts/mnar/",
        reader=ratings_formats.coat,
        files=("train.ascii", "test.ascii"),
        scale=(1.0, 5.0),
        liked=4.0,
        reason=STARS,
        truth="random: 4,640",
        rules=("overlap",),
        archive="https://www.cs.cornell.edu/~schnabts/mnar/coat.zip",
    ),
    CatalogEntry(
        name="yahoo-r3",
        title="Yahoo! R3 (Webscope)",
        published="15,400 x 1,000 x 311,704",
        licence=(
            "approved non-commercial research after a signed agreement; no redistribution (Yahoo!)"
        ),
        address="https://webscope.sandbox.yahoo.com/catalog.php",
        reader=ratings_formats.yahoo_r3,
        files=(
            "ydata-ymusic-rating-study-v1_0-train.txt",
            "ydata-ymusic-rating-study-v1_0-test.txt",
        ),
        scale=(1.0, 5.0),
        liked=4.0,
        reason=STARS,
        observed="ratings that users gave while they listened",
        truth="random: 54,000",
        rules=("overlap", "common"),
        folders=("Webscope_R3",),
        by_hand="ask for 'R3' with the form on that page, then put "
        "ydata-ymusic-rating-study-v1_0-train.txt and …-test.txt there",
    ),
    CatalogEntry(
        name="cm100k",
        title="CM100k (crowd-sourced music)",
        published="1,054 x 1,084 x 103,584",
        licence="not stated; cite its authors",
        address="https://github.com/ir-uam/SIGIR2018",
        reader=ratings_formats.cm100k,
        files=("ratings.txt|data.txt",),
        scale=(1.0, 4.0),
        liked=3.0,
        reason="3 of 4: the two upper answers",
        observed="ratings of randomly chosen tracks; with observed=familiar those that users knew",
        truth="random: all",
        is_all_random=True,
        rules=("overlap",),
        by_hand="download datasets/cm100k/data.txt of its repository and put it there",
    ),
    CatalogEntry(
        name="kuairec",
        title="KuaiRec 2.0",
        published="7,176 x 10,728 x 12,530,806",
        licence=KUAISHOU,
        address="https://kuairec.com",
        reader=log_formats.kuairec,
        files=("big_matrix.csv", "small_matrix.csv"),
        scale=None,
        liked=2.0,
        reason="watched twice; its authors take more than 2 as an example",
        observed="videos that the service recommended: the big matrix",
        truth="exhaustive: 4,676,570 (1,411 x 3,327, 99.6 %)",
        kind=EXHAUSTIVE,
        candidates=JUDGED,
        rules=("overlap",),
        archive="https://zenodo.org/records/18164998/files/KuaiRec.zip",
        size=431_964_858,
        checksum="md5:261550d472c48eff4990fb13c0e5bcf7",
        folders=("KuaiRec 2.0", "KuaiRec"),
    ),
    CatalogEntry(
        name="kuairand-pure",
        title="KuaiRand-Pure",
        published="27,285 x 7,551 x 1,436,609",
        licence=KUAISHOU,
        address="https://kuairand.com",
        reader=log_formats.kuairand,
        files=("log_standard_*.csv", "log_random_*.csv"),
        scale=(0.0, 1.0),
        liked=1.0,
        reason="the signal was given",
        observed="videos that the service recommended",
        truth="random: 1,186,059",
        candidates=JUDGED,
        rules=("overlap",),
        archive=f"{_KUAIRAND}/files/KuaiRand-Pure.tar.gz",
        checksum="md5:0820331067a3784d9691136f772b35a7",
        folders=("KuaiRand-Pure",),
    ),
    CatalogEntry(
        name="kuairand-1k",
        title="KuaiRand-1K",
        published="1,000 x 4,369,953 x 11,713,045",
        licence=KUAISHOU,
        address="https://kuairand.com",
        reader=log_formats.kuairand,
        files=("log_standard_*.csv", "log_random_*.csv"),
        scale=(0.0, 1.0),
        liked=1.0,
        reason="the signal was given",
        observed="videos that the service recommended",
        truth="random: 43,028",
        candidates=JUDGED,
        rules=("overlap",),
        archive=f"{_KUAIRAND}/files/KuaiRand-1K.tar.gz",
        size=1_135_436_720,
        checksum="md5:6b0b9c8222d67fcd4c676218edca3f1f",
        folders=("KuaiRand-1K",),
    ),
    *(
        _yambda("50m", "10,000 x 934,057 x 46,467,212 listens"),
        _yambda("500m", "100,000 x 3,004,578 x 466,512,103 listens"),
        _yambda("5b", "1,000,000 x 9,390,623 x 4,649,567,411 listens"),
    ),
    CatalogEntry(
        name="lastfm-1k",
        title="Last.fm 1K (plays, with times)",
        published="992 x 176,948 x 19,150,868 plays",
        licence="non-commercial use, with permission of Last.fm",
        address="http://ocelma.net/MusicRecommendationDataset/lastfm-1K.html",
        reader=ratings_formats.lastfm_1k,
        files=("userid-timestamp-artid-artname-traid-traname.tsv",),
        scale=None,
        liked=3.0,
        reason="more than 2 plays (bellogin2017)",
        observed="artists that users played",
        archive="https://mtg.upf.edu/static/datasets/last.fm/lastfm-dataset-1K.tar.gz",
        folders=("lastfm-dataset-1K",),
    ),
    CatalogEntry(
        name="librarything",
        title="LibraryThing",
        published="7,279 x 37,232 x 749,401",
        licence="not stated; cite its authors",
        address="http://www.macle.nl/tud/LT",
        reader=ratings_formats.librarything,
        files=("UI2.txt|reviews.txt",),
        scale=(0.5, 5.0),
        liked=4.0,
        reason=STARS,
        folders=("LT", "lthing_data"),
        by_hand="download it on that page and put its UI2.txt there",
    ),
    CatalogEntry(
        name="beeradvocate",
        title="BeerAdvocate",
        published="33,388 x 66,055 x 1,586,614 reviews",
        licence="not stated; research use, cite its authors",
        address="https://cseweb.ucsd.edu/~jmcauley/datasets.html",
        reader=ratings_formats.beeradvocate,
        files=(
            "beeradvocate.json.gz|beeradvocate.json|beeradvocate.txt.gz|beeradvocate.txt|"
            "beer_reviews.csv",
        ),
        scale=(0.0, 5.0),
        liked=4.0,
        reason=STARS,
        archive="https://mcauleylab.ucsd.edu/public_datasets/data/beer/beeradvocate.json.gz",
    ),
    CatalogEntry(
        name="jester",
        title="Jester, dataset 1",
        published="73,421 x 100 x 4.1 million",
        licence="research use with citation (Goldberg et al.)",
        address="https://eigentaste.berkeley.edu/dataset/",
        reader=ratings_formats.jester,
        files=("jester-data-*.csv",),
        scale=(-10.0, 10.0),
        by_hand="its files are Excel files: download them on that page and save each as CSV, "
        "without a header line, as jester-data-1.csv, jester-data-2.csv, jester-data-3.csv",
    ),
    CatalogEntry(
        name="jester-2",
        title="Jester, dataset 2",
        published="59,132 x 150 x 1.7 million",
        licence="research use with citation (Goldberg et al.)",
        address="https://eigentaste.berkeley.edu/dataset/archive/",
        reader=ratings_formats.jester2,
        files=("jester_ratings.dat",),
        scale=(-10.0, 10.0),
        archive="https://eigentaste.berkeley.edu/dataset/jester_dataset_2.zip",
        folders=("jester_dataset_2",),
    ),
)
DATASETS: dict[str, CatalogEntry] = {entry.name: entry for entry in _ENTRIES}
