"""`unskew intervene`: a test set that looks missing at random, drawn from one that is not."""

from __future__ import annotations

from typing import Annotated, Any

from unskew.checks import choose
from unskew.cli import inputs, outputs
from unskew.cli.bundles import REQUIRED, argument, bundle, option
from unskew.cli.options import INPUT, FolderOptions, NamedFileOptions, Seed, Train
from unskew.errors import SettingError

DESIGN = "Intervention"


@bundle
class InterventionOptions:
    """The settings of all interventions; those that are given must belong to the kind."""

    size: Annotated[float | None, option(DESIGN, "Share of the ratings to draw. Default: 0.5.")]
    exponent: Annotated[
        float | None,
        option(DESIGN, "Exponent of an item's weight. Default: skew 1, wtd and wtd-h 2."),
    ]
    unseen: Annotated[
        str | None,
        option(
            DESIGN,
            "skew: weight of items without training ratings: once (as if rated once), or random.",
        ),
    ]
    smoothing: Annotated[
        str | None, option(DESIGN, "wtd, wtd-h: how to avoid posteriors of 0: additive or paper.")
    ]
    alpha: Annotated[
        float | None,
        option(DESIGN, "wtd, wtd-h: amount of additive smoothing. Default: 1."),
    ]


def command(
    test: Annotated[str, argument("Held-out ratings: a file, or a named data set.", "RATINGS")],
    train: Train,
    mar: Annotated[str | None, option(INPUT, "Ratings of randomly chosen items: for wtd.")],
    files: NamedFileOptions,
    kind: Annotated[
        str,
        option(
            DESIGN,
            "Kind of intervention: full, reg, skew, wtd, wtd-h.",
            "--kind",
            "-k",
            default=REQUIRED,
        ),
    ],
    options: InterventionOptions,
    weighting: Annotated[
        str | None,
        option(DESIGN, "Weight all ratings instead of drawing some: hajek, inclusion, raking."),
    ],
    seed: Seed,
    output: FolderOptions,
) -> None:
    """Draw, or weight, held-out ratings so that they look missing at random (carraro2020).

    [bold]Examples[/bold]

      unskew intervene test.parquet --train train.parquet --kind skew -o debiased/

      unskew intervene test.csv --train train.csv --mar random.csv --kind wtd -o debiased/

      unskew intervene test.csv --train train.csv --kind wtd-h --weighting raking -o weighted/

    [bold]Kinds[/bold]

      full (everything), reg (at random), skew (against popular items), wtd (towards the users and
      items of ratings of randomly chosen items, --mar), wtd-h (towards equally frequent users and
      items). skew, wtd and wtd-h need --train.

    The folder gets test.parquet (with a column weight where --weighting is given) and card.json.
    """
    from unskew.splits.interventions import DESIGNS, METHODS
    from unskew.splits.randomness import looks_random
    from unskew.splits.saved import check_folder, save_intervened

    design = _design(DESIGNS[choose("kind", kind, DESIGNS)], inputs.given(**vars(options)))
    if weighting is not None:
        choose("weighting", weighting, METHODS)
    check_folder(output.output, output.force)
    inputs.check_data_dir(files.data_dir, test, train, mar)
    sources = inputs.given(
        test=inputs.read_rating_file(test, files),
        train=None if train is None else inputs.read_rating_file(train, files),
        mar=inputs.read_random_file(mar, files),
    )
    parts = sources["test"], sources.get("train"), sources.get("mar")
    drawn = (
        design.sample(*parts, seed) if weighting is None else design.weigh(*parts, weighting, seed)
    )
    save_intervened(drawn, output.output, sources=sources, force=output.force)
    if not output.quiet:
        outputs.say(str(drawn))
        if weighting is None:
            outputs.say(f"  {looks_random(drawn.ratings)}")
        outputs.say(f"written to {output.output}", dim=True)


def _design(kind: Any, settings: dict[str, Any]) -> Any:
    """Build the intervention from the options that were given."""
    allowed = [name for name in kind().describe() if name != "kind"]
    for name in settings:
        if name not in allowed:
            takes = ", ".join(f"--{setting}" for setting in allowed)
            raise SettingError(f"--{name} does not apply to {kind.kind}; it takes {takes}")
    return kind(**settings)
