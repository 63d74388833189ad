"""Model files: a fitted model as arrays and a small description, without pickle.

A file may come from anywhere. Digests tell that it is as it was written, and whatever they say,
nothing becomes a model that its kernels could not work on.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import json
import os
import pkgutil
import struct
import types
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from unskew import recommend
from unskew.arrays import frozen
from unskew.checks import checked
from unskew.data.ratings import Ids, Ratings
from unskew.engine.files import replacing, sealed, unsealed
from unskew.engine.system import versions
from unskew.errors import STUDIES, DataError, import_studies
from unskew.recommend.matrices.sparse import SparseRows
from unskew.recommend.model import Algorithm, Axes, Model, as_model


def check_model(model: object, users: int, items: int) -> None:
    """Raise ValueError unless a model can score so many users and items.

    Every value has the type that its field declares, every index leads to something that is there,
    and arrays have the shapes that the model's `axes` tell: `users`, `items`, or any other name,
    which has one length in the whole model. A model that trusts more than that has a `check`; one
    that holds others names their fields in `models`.
    """
    axes: Axes = getattr(model, "axes", {})
    lengths = {"users": users, "items": items}
    inner: tuple[str, ...] = getattr(model, "models", ())
    for name in inner:
        check_model(getattr(model, name), users, items)
    for name, value in _parts(model):
        if name.partition(".")[0] in inner:
            continue
        shape = _shape(value)
        if name not in axes:
            if isinstance(value, np.ndarray | SparseRows):
                raise ValueError(f"{name} has axes that this model does not know")
            continue
        expected = axes[name]
        if len(expected) != len(shape) and not isinstance(value, SparseRows):
            raise ValueError(f"{name} has {len(shape)} axes, not {len(expected)}")
        for axis, length in zip(expected, shape, strict=False):
            if lengths.setdefault(axis, length) != length:
                raise ValueError(f"{name} has {length:,} {axis}, not {lengths[axis]:,}")
    if hasattr(model, "check"):
        model.check()


def _parts(model: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what a model holds by its dotted name, each of the type that it should have."""
    hints = get_type_hints(type(model))
    for field in fields(model):
        value, path = getattr(model, field.name), f"{name}{field.name}"
        if not _is(value, hints[field.name]):
            raise ValueError(f"{path} is no {field.type}")
        if isinstance(value, SparseRows):
            _check_rows(path, value)
            yield path, value
        elif is_dataclass(value):
            yield from _parts(value, f"{path}.")
        else:
            yield path, value


def _is(value: object, hint: Any) -> bool:
    """Tell whether a value is what an annotation says."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_is(value, option) for option in get_args(hint))
    if origin is np.ndarray:
        kind = np.dtype(get_args(get_args(hint)[1])[0])
        return (
            isinstance(value, np.ndarray) and value.dtype == kind and value.flags.c_contiguous
        )  # of another byte order, a type is another
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    return isinstance(hint, type) and isinstance(value, hint)


def _shape(value: Any) -> tuple[int, ...]:
    """Return the lengths of a value's axes, of sparse rows then the entries; a number is one."""
    if isinstance(value, SparseRows):
        return len(value), value.columns, value.value.size
    return tuple(value.shape) if isinstance(value, np.ndarray) else (value,)


def _check_rows(name: str, rows: SparseRows) -> None:
    """Raise ValueError unless these are sparse rows, in each of them every column at most once."""
    for part, value in _parts(rows, f"{name}."):
        if isinstance(value, np.ndarray) and value.ndim != 1:
            raise ValueError(f"{part} has {value.ndim} axes, not 1")
    start, column = rows.start, rows.column
    if not start.size or start[0] != 0 or start[-1] != column.size or np.any(np.diff(start) < 0):
        raise ValueError(f"{name}.start does not ascend from 0 to the {column.size:,} entries")
    if rows.value.size != column.size:
        raise ValueError(f"{name} has {column.size:,} columns and {rows.value.size:,} values")
    if column.size and not 0 <= int(column.min()) <= int(column.max()) < rows.columns:
        raise ValueError(f"{name}.column leads beyond the {rows.columns:,} columns")
    cell = rows.row.astype(np.int64) * rows.columns + column
    if np.any(np.diff(cell) <= 0) and np.unique(cell).size < cell.size:
        raise ValueError(f"{name} has a column twice in a row")


KIND = "unskew model"
FORMAT = 3
_CARD = "model.json"


@checked
def save_model(
    model: object,
    path: str | os.PathLike[str],
    train: Ratings,
    algorithm: Algorithm | None = None,
) -> None:
    """Save a fitted model: its arrays, what they are, and for which users and items.

    Parameters
    ----------
    model
        A model of this library, an array of scores, or an object with `user_factors` and
        `item_factors`. Functions and foreign objects hold no arrays and are refused.
    path
        The file to write; a file of that name is replaced at once or not at all.
    train
        The ratings the model was fitted to.
    algorithm
        Its settings, for the record.

    Examples
    --------
    >>> import os, tempfile, unskew as us
    >>> train = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
    >>> file = os.path.join(tempfile.mkdtemp(), "popular.model")
    >>> us.recommend.save_model(us.recommend.Popularity().fit(train), file, train)
    >>> us.recommend.load_model(file, train)
    SameForAll(item_score=array([2., 1.]))
    """
    arrays: dict[str, NDArray[Any]] = {}
    card: dict[str, Any] = {
        "kind": KIND,
        "format": FORMAT,
        "model": _take_apart(as_model(model, train), "model", arrays),
        "algorithm": None if algorithm is None else algorithm.describe(),
        "users": _digest(train.users),
        "items": _digest(train.items),
        "versions": versions(),
    }
    card["arrays"] = {name: array_digest(array) for name, array in arrays.items()}
    card = json.loads(json.dumps(card, default=str))
    with replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        archive.writestr(_entry(_CARD), sealed(card))
        for name, array in arrays.items():
            with archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


@checked
def load_model(path: str | os.PathLike[str], train: Ratings | None = None) -> Model:
    """Load a saved model, which scores as the one that was saved, to the bit.

    A file that was changed since, by accident or by somebody, is refused: it is compared with its
    digests, and what it holds with what a model of its kind must hold.

    Parameters
    ----------
    path
        A file that `save_model` wrote.
    train
        The ratings it was fitted to, or ratings over the same users and items: checked, because
        a model knows users and items by number only.

    Examples
    --------
    A saved model is refused for other users and items than its own.

    >>> import os, tempfile, unskew as us
    >>> train = us.read_ratings({"user": [1, 1, 2], "item": [7, 8, 7]})
    >>> file = os.path.join(tempfile.mkdtemp(), "near.model")
    >>> us.recommend.save_model(us.recommend.ItemKNN().fit(train), file, train)
    >>> us.recommend.load_model(file, train).score(train.user[:1]).shape
    (1, 2)
    >>> try:
    ...     us.recommend.load_model(file, us.read_ratings({"user": [1, 2], "item": [7, 9]}))
    ... except us.DataError:
    ...     print("other items")
    other items
    """
    name = Path(path).name
    try:
        with zipfile.ZipFile(path) as archive:
            card = _read_card(archive, name)
            model: Model = _put_together(card["model"], partial(_read_array, archive, card))
        check_model(model, card["users"]["count"], card["items"]["count"])
    except (FileNotFoundError, IsADirectoryError):
        raise DataError(f"there is no model file {os.fspath(path)!r}") from None
    except zipfile.BadZipFile as problem:
        raise DataError(f"{name} is damaged or not a model file: {problem}") from None
    except DataError:
        raise
    except _DAMAGED as problem:
        raise DataError(f"{name} is damaged: {problem}; save the model again") from problem
    if train is not None:
        for what, ids in (("users", train.users), ("items", train.items)):
            if card[what] != _digest(ids):
                raise DataError(
                    f"{name} was fitted to {card[what]['count']:,} {what}, the ratings have "
                    f"{len(ids):,} or others: give the ratings it was fitted to"
                )
    return model


_DAMAGED = (
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    EOFError,
    IndexError,
    OverflowError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    OSError,  # a place before the start of the file
    struct.error,
)


def _take_apart(value: object, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return what JSON can hold of a value, and put its arrays aside under dotted names."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise DataError(f"{name} holds Python objects, which a model file cannot")
        arrays[name] = np.ascontiguousarray(value)
        return {"array": name}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": value.hex()}  # also infinity and NaN, to the bit
    if isinstance(value, tuple):
        return {
            "tuple": [
                _take_apart(part, f"{name}.{index}", arrays) for index, part in enumerate(value)
            ]
        }
    kind = type(value)
    if is_dataclass(value) and kind.__module__ in _modules():
        return {
            "class": f"{kind.__module__}:{kind.__qualname__}",
            "fields": {
                field.name: _take_apart(getattr(value, field.name), f"{name}.{field.name}", arrays)
                for field in fields(value)
            },
        }
    raise DataError(
        f"cannot save {name}, a {kind.__qualname__}: only models of this library, arrays of scores "
        f"and factors can be saved"
    )


def _put_together(part: Any, array: Callable[[str], NDArray[Any]]) -> Any:
    """Build a value from what `_take_apart` made of it."""
    if not isinstance(part, dict):
        return part
    if "array" in part:
        return frozen(array(part["array"]))
    if "float" in part:
        return float.fromhex(part["float"])
    if "tuple" in part:
        return tuple(_put_together(element, array) for element in part["tuple"])
    module, _, name = part["class"].partition(":")
    # Only our own classes, and only those that hold data: a file may name anything.
    kind = getattr(_module(module), name) if module in _modules() else None
    if not (
        isinstance(kind, type)
        and is_dataclass(kind)
        and kind.__module__ == module
        and not issubclass(kind, Algorithm)
    ):
        raise DataError(f"this version of unskew knows no model {part['class']!r}")
    return kind(**{key: _put_together(element, array) for key, element in part["fields"].items()})


def _modules() -> set[str]:
    """Return the modules whose models can be saved."""
    modules = pkgutil.walk_packages(recommend.__path__, f"{recommend.__name__}.")
    return {module.name for module in modules} | {f"{STUDIES}.librec"}


def _module(name: str) -> ModuleType:
    package, _, module = name.partition(".")
    if package == STUDIES:
        return import_studies(module, "this model")
    return importlib.import_module(name)


def _digest(ids: Ids) -> dict[str, Any]:
    """Return what tells ids from others: how many, of what kind, and a hash."""
    text = "\n".join(str(value) for value in ids.values).encode()
    digest = hashlib.blake2b(text, digest_size=16).hexdigest()
    return {"count": len(ids), "kind": ids.kind, "digest": digest}


def array_digest(array: NDArray[Any]) -> str:
    """Return what tells an array from others: a hash of its type, its shape and its values."""
    seen = hashlib.blake2b(f"{array.dtype.str}{array.shape}".encode(), digest_size=16)
    seen.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return seen.hexdigest()


def _entry(name: str) -> zipfile.ZipInfo:
    """Return an entry without a clock in it: the same model gives the same file."""
    return zipfile.ZipInfo(name)


def _read_card(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    if _CARD not in archive.namelist():
        raise DataError(f"{name} is not a model file of unskew")
    content = _read(archive, _CARD)
    card = json.loads(content)
    if not isinstance(card, dict) or card.get("kind") != KIND:
        raise DataError(f"{name} is not a model file of unskew")
    if card.get("format") != FORMAT:
        raise DataError(
            f"{name} has format {card.get('format')}, this version reads {FORMAT}: fit the model "
            f"again, or use the version that wrote it ({card.get('versions', {}).get('unskew')})"
        )
    return unsealed(content, "its description")


def _read_array(archive: zipfile.ZipFile, card: dict[str, Any], name: str) -> NDArray[Any]:
    content = io.BytesIO(_read(archive, f"{name}.npy"))
    version = np.lib.format.read_magic(content)
    header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, by_column, dtype = header(content)
    if by_column and len(shape) > 1:
        raise ValueError(f"the array {name} is not stored by rows")
    # Not read_array, which makes room for whatever size is written there.
    array: NDArray[Any] = np.frombuffer(content.getbuffer()[content.tell() :], dtype).reshape(shape)
    if array_digest(array) != card["arrays"][name]:
        raise ValueError(f"the array {name} is not the one that was saved")
    return array


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    """Read an entry whole, which checks its checksum; ours are not compressed."""
    entry = archive.getinfo(name)
    if entry.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"its entry {name} is compressed")
    return archive.read(entry)
