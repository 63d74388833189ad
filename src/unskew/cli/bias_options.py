"""The options that the commands of `unskew bias` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from unskew.checks import MOST_DEPTH, MOST_DRAWS, MOST_REPEATS
from unskew.cli import inputs
from unskew.cli.bundles import bundle, option
from unskew.cli.options import (
    MEASURE,
    ComputeOptions,
    Liked,
    NamedFileOptions,
    RandomFile,
    RatingsArgument,
)
from unskew.cli.sources import LIST_COLUMNS

if TYPE_CHECKING:
    from unskew.data.dataset import Dataset

Folds = Annotated[
    int | None,
    option(
        MEASURE,
        "Number of folds of the random split, instead of one test share.",
        min=2,
        max=MOST_REPEATS,
    ),
]


@bundle
class BiasOptions:
    """Ratings whose popularity is looked at."""

    ratings: RatingsArgument
    random: RandomFile
    files: NamedFileOptions
    liked: Liked
    users: Annotated[
        int | None,
        option(
            MEASURE,
            "Number of users. Default: the users with ratings.",
            min=1,
            max=MOST_DEPTH,
        ),
    ]
    sample: Annotated[
        int | None,
        option(
            MEASURE,
            "Use this many random pairs of items instead of all pairs.",
            min=1,
            max=100 * MOST_DRAWS,
        ),
    ]
    compute: ComputeOptions

    def read(self) -> tuple[Dataset, dict[str, Any]]:
        """Return the ratings, and the settings of what is computed on them."""
        data = inputs.load_data(self.ratings, self.files, other_columns=LIST_COLUMNS)
        sample = inputs.read_random_file(self.random, self.files, other_columns=LIST_COLUMNS)
        settings = {
            "liked": self.liked,
            "random": sample,
            "users": self.users,
            "sample": self.sample,
            **vars(self.compute),
        }
        return data, settings
