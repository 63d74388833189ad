"""`score_table`: published scores as a table that `agreement` and `stability` take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from unskew.checks import as_count, checked
from unskew.errors import DataError, SettingError
from unskew.stats.conditions import conditions_of, named_sources, resampled
from unskew.stats.pairing import Source, known_metric


@checked
def score_table(
    scores: Source | Mapping[str, Source],
    metrics: str | Sequence[str] | None = None,
    *,
    factor: str = "design",
    users: int = 0,
    seed: int = 0,
    threads: int | None = None,
) -> pl.DataFrame:
    """Return scores as the long table that `stability` takes; several can be put together.

    Columns: system, metric (without its cutoff), cutoff (null: the whole list), score, with a
    mapping also what its names stand for, and with `users` the number of the users' sample.

    Parameters
    ----------
    scores, metrics, seed, threads
        As in `agreement`.
    factor
        What the names of a mapping stand for: `design`, `fold`, `threshold`, `seed` …
    users
        Draw users anew (with replacement) this often, instead of taking all once.
    """
    as_count("users", users, least=0)
    several = isinstance(scores, Mapping) and named_sources(scores)
    named: Mapping[str, Source] = scores if several else {"": scores}
    frames = []
    for name, source in named.items():
        conditions, _ = conditions_of(source, metrics)
        if users:
            drawn = resampled(conditions, users, seed, threads, None)
        else:
            drawn = np.array([[one.means for one in conditions]])
        for at, one in enumerate(conditions):
            if np.isnan(drawn[:, at]).any():
                raise DataError(
                    f"{one.label} has no value per user, so users=… cannot resample users"
                )
            metric = known_metric(one.label)
            # `stability` knows on which side a metric is better by its name, if it is known.
            sign = 1.0 if metric is None else one.sign
            frame = pl.DataFrame(
                {
                    "system": list(one.systems) * len(drawn),
                    "score": (sign * drawn[:, at]).ravel(),
                    "users": np.repeat(np.arange(len(drawn)), len(one.systems)),
                }
            )
            family = one.label if metric is None else str(metric.family)
            cutoff = pl.lit(None if metric is None else metric.cutoff, pl.Int64)
            frame = frame.with_columns(pl.lit(family).alias("metric"), cutoff.alias("cutoff"))
            if several:
                frame = frame.with_columns(pl.lit(name).alias(factor))
            frames.append(frame if users else frame.drop("users"))
    if not frames:
        raise SettingError("no scores are given")
    return pl.concat(frames)
