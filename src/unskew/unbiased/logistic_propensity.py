"""Propensities by logistic regression on features of user and item."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import polars as pl

from unskew.arrays import F64, I32
from unskew.checks import choose
from unskew.data.ratings import Ids
from unskew.data.tables import read_table
from unskew.engine.rng import draw
from unskew.errors import DataError
from unskew.judging.rank import tile_users
from unskew.unbiased.chance_models import STEPS, ChanceModel, RatingEvidence, from_0_up

MOST_PAIRS = 100_000_000
"""Pairs of users and items that a logistic regression looks at; beyond, some of the users."""


def logistic_model(
    evidence: RatingEvidence, features: Mapping[str, object] | None, ridge: float, seed: int
) -> ChanceModel:
    """Model logit p(rated | u, i) = b + x_u·β + x_i·γ, fitted by Newton's steps over all pairs."""
    ridge = from_0_up("ridge", ridge)
    known = {"users": evidence.test.users, "items": evidence.test.items}
    tables = dict(features or {})
    for name in tables:
        choose("features", name, known)
    both = [evidence.train, evidence.test]
    sides = {"users": [part.user for part in both], "items": [part.item for part in both]}
    x: dict[str, F64] = {}
    for name, ids in known.items():
        counts = sum(np.bincount(codes, minlength=len(ids)) for codes in sides[name])
        if features is None:
            x[name] = _standard(np.log1p(np.asarray(counts, np.float64))[:, None])
        else:
            x[name] = _features(name, tables.get(name), ids)
    chosen = _some_users(evidence, seed)
    beta = _newton(x["users"], x["items"], evidence, chosen, ridge)
    width = x["users"].shape[1]
    a = beta[0] + x["users"] @ beta[1 : 1 + width]
    b = x["items"] @ beta[1 + width :]
    notes = []
    if chosen.size < evidence.users:
        notes.append(f"fitted on {chosen.size:,} of {evidence.users:,} users, drawn at random")

    def of(user: I32, item: I32, value: F64) -> F64:  # noqa: ARG001
        p: F64 = 1.0 / (1.0 + np.exp(-(a[user] + b[item])))
        return p

    facts = {"user features": width, "item features": x["items"].shape[1], "ridge": ridge}
    return ChanceModel("logistic", of, facts, True, tuple(notes))


def _some_users(evidence: RatingEvidence, seed: int) -> I32:
    """Return the users to fit on: all, unless there are too many pairs."""
    most = max(MOST_PAIRS // max(evidence.items, 1), 1)
    everyone = np.arange(evidence.users, dtype=np.int32)
    if most >= evidence.users:
        return everyone
    order = np.argsort(draw(seed, "estimate/users", everyone.astype(np.int64)))
    return np.sort(everyone[order[:most]])


def _newton(users: F64, items: F64, evidence: RatingEvidence, chosen: I32, ridge: float) -> F64:
    """Return the coefficients: sums over users x items, a tile of users at a time."""
    rated = [part.take(np.isin(part.user, chosen)) for part in (evidence.train, evidence.test)]
    by_user = sum(np.bincount(part.user, minlength=len(users)) for part in rated)
    by_item = sum(np.bincount(part.item, minlength=len(items)) for part in rated)
    a, b = users.shape[1], items.shape[1]
    penalty = np.full(1 + a + b, float(ridge))
    penalty[0] = 0.0
    total = float(np.sum(by_user))
    sums = np.concatenate([[total], users.T @ by_user, items.T @ by_item])
    beta = np.zeros(1 + a + b)
    rate = total / (chosen.size * len(items))
    beta[0] = math.log(rate / (1 - rate)) if 0 < rate < 1 else 0.0
    step = tile_users(len(items))
    for _ in range(STEPS):
        slope, curve = sums - penalty * beta, np.diag(penalty)
        column, row_part = items @ beta[1 + a :], beta[0] + users @ beta[1 : 1 + a]
        for low in range(0, chosen.size, step):
            mine = chosen[low : low + step]
            p = 1.0 / (1.0 + np.exp(-(row_part[mine][:, None] + column[None, :])))
            w = p * (1 - p)
            x, row, down = users[mine], w.sum(axis=1), w.sum(axis=0)
            slope -= np.concatenate([[p.sum()], x.T @ p.sum(axis=1), items.T @ p.sum(axis=0)])
            mixed = np.zeros_like(curve)
            mixed[0, 0] = w.sum()
            mixed[0, 1 : 1 + a], mixed[0, 1 + a :] = x.T @ row, items.T @ down
            mixed[1 : 1 + a, 1 : 1 + a] = (x * row[:, None]).T @ x
            mixed[1 : 1 + a, 1 + a :] = x.T @ (w @ items)
            mixed[1 + a :, 1 + a :] = (items * down[:, None]).T @ items
            curve += np.triu(mixed) + np.triu(mixed, 1).T
        move = np.linalg.lstsq(curve, slope, rcond=None)[0]
        beta = beta + move
        if np.abs(move).max() < 1e-8:
            break
    return beta


def _features(name: str, table: object, ids: Ids) -> F64:
    """Return features of all users or items, a row each; what is missing gets the mean."""
    if table is None:
        return np.zeros((len(ids), 0))
    frame = read_table(table).frame
    if frame.width < 2 or not frame.height:
        raise DataError(f"features of {name}: an id column and at least one feature are needed")
    codes = ids.codes(frame.to_series(0))
    rated_rows = codes >= 0
    if not rated_rows.any():
        raise DataError(f"features of {name}: none of the ids in {frame.columns[0]!r} is rated")
    columns: list[F64] = []
    for series in frame.iter_columns():
        if series.name == frame.columns[0]:
            continue
        if series.dtype.is_numeric() or series.dtype == pl.Boolean:
            parts = [series.cast(pl.Float64).fill_null(math.nan).to_numpy()]
        else:
            texts = series.cast(pl.String)
            parts = [
                (texts == level).fill_null(False).cast(pl.Float64).to_numpy()
                for level in texts.drop_nulls().unique().sort().to_list()[1:]
            ]
        for part in parts:
            column = np.full(len(ids), np.nan)
            column[codes[rated_rows]] = part[rated_rows]
            columns.append(np.where(np.isnan(column), np.nanmean(part), column))
    return _standard(np.column_stack(columns)) if columns else np.zeros((len(ids), 0))


def _standard(columns: F64) -> F64:
    """Centre columns and divide by their standard deviation; one that never varies is 0."""
    away = columns - columns.mean(axis=0)
    spread = away.std(axis=0)
    scaled: F64 = away / np.where(spread > 0, spread, 1.0)
    return scaled
