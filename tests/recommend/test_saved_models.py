"""Model files: every recommender comes back to the bit; foreign and damaged files are refused."""

import io
import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import unskew as us
from shared.algorithms import EVERYONE, build
from shared.ratings import numbered_ratings, timed
from unskew.engine.files import sealed
from unskew.errors import DataError
from unskew.recommend.saved_models import array_digest


@pytest.fixture(scope="module")
def train():
    rng = np.random.default_rng(5)
    rows = [(u, i, int(rng.integers(1, 6))) for u in range(25) for i in range(18)
            if rng.random() < 0.4]  # fmt: skip
    return timed(numbered_ratings(rows, 27, 19))  # two users and an item without ratings


def fitted(name, train):
    more = {"truth": train} if name == "optimal-true" else {}
    return build(name, **more).fit(train, 3)


@pytest.mark.parametrize("name", EVERYONE)
def test_every_model_scores_as_before(name, train, tmp_path):
    model = fitted(name, train)
    us.recommend.save_model(model, tmp_path / "a.model", train)
    loaded = us.recommend.load_model(tmp_path / "a.model", train)
    users = np.arange(27, dtype=np.int32)
    assert type(loaded) is type(model)
    assert loaded.score(users).tobytes() == model.score(users).tobytes()
    us.recommend.save_model(loaded, tmp_path / "b.model", train)
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "b.model").read_bytes()


def test_a_new_process_scores_the_same(train, tmp_path):
    model = us.recommend.WRMF(factors=3).fit(train, 3)
    us.recommend.save_model(model, tmp_path / "m", train, us.recommend.WRMF(factors=3))
    code = (
        "import sys, numpy as np, unskew as us\n"
        "tile = us.recommend.load_model(sys.argv[1]).score(np.arange(27, dtype=np.int32))\n"
        "sys.stdout.write(tile.tobytes().hex())"
    )
    made = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m")], capture_output=True, text=True,
        check=True, timeout=120,
    )  # fmt: skip
    assert made.stdout == model.score(np.arange(27, dtype=np.int32)).tobytes().hex()


def test_scores_and_factors_of_others_can_be_saved(train, tmp_path):
    class Theirs:
        user_factors = np.ones((27, 2), np.float32)
        item_factors = np.arange(38, dtype=np.float32).reshape(19, 2)

    users = np.arange(5, dtype=np.int32)
    for thing in (np.arange(19.0), np.arange(27 * 19.0).reshape(27, 19), Theirs()):
        us.recommend.save_model(thing, tmp_path / "m", train)
        tile = us.recommend.load_model(tmp_path / "m", train).score(users)
        assert tile.shape == (5, 19)
    with pytest.raises(DataError, match=r"cannot save model\.function, a function"):
        us.recommend.save_model(lambda users: np.zeros((users.size, 19)), tmp_path / "n", train)
    assert not (tmp_path / "n").exists()


def test_other_users_or_items_are_refused(train, tmp_path):
    us.recommend.save_model(us.recommend.Popularity().fit(train), tmp_path / "m", train)
    other = numbered_ratings([(1, 2, 3)], 27, 30)
    with pytest.raises(DataError, match="fitted to 19 items, the ratings have 30"):
        us.recommend.load_model(tmp_path / "m", other)
    assert us.recommend.load_model(tmp_path / "m").score(np.zeros(1, np.int32)).shape == (1, 19)


def test_foreign_and_damaged_files_are_refused(train, tmp_path):
    file = tmp_path / "m.model"
    us.recommend.save_model(us.recommend.PureSVD(factors=2).fit(train), file, train)
    whole = file.read_bytes()
    with pytest.raises(DataError, match="no model file"):
        us.recommend.load_model(tmp_path / "none")
    for content in (b"", b"hello", whole[:-30], whole[: len(whole) // 2]):
        file.write_bytes(content)
        with pytest.raises(DataError, match=r"m\.model is damaged or not a model file"):
            us.recommend.load_model(file)
    place = whole.index(b"NUMPY") + 200
    file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    with pytest.raises(DataError, match=r"m\.model is damaged"):
        us.recommend.load_model(file)


def opened(file):
    """Return the description and the arrays of a model file."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    card = json.loads(parts.pop("model.json"))
    del card["digest"]
    arrays = {
        name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(content))
        for name, content in parts.items()
    }
    return card, arrays


def forged(file, card, arrays):
    """Write a model file whose digests are right, whatever it holds."""
    card = {**card, "arrays": {name: array_digest(array) for name, array in arrays.items()}}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", sealed(card))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as place:
                np.lib.format.write_array(place, array)


def rewritten(file, change):
    """Rewrite the description of a model file."""
    card, arrays = opened(file)
    change(card)
    forged(file, card, arrays)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card.update(kind="pie"), "not a model file"),
        (lambda card: card.update(format=99), "format 99, this version reads 3"),
        (lambda card: card["model"].update({"class": "os:system"}), "knows no model 'os:system'"),
        (
            lambda card: card["model"].update({"class": "unskew.recommend.simple:frozen"}),
            "knows no model",
        ),
        (lambda card: card["model"].update({"class": "unskew.recommend.simple:X"}), "damaged"),
        (lambda card: card["model"]["fields"].clear(), "damaged"),
        (lambda card: card["model"]["fields"].update(item_score={"array": "gone"}), "damaged"),
    ],
)
def test_a_changed_description_is_refused(train, tmp_path, change, said):
    file = tmp_path / "m"
    us.recommend.save_model(us.recommend.Popularity().fit(train), file, train)
    rewritten(file, change)
    with pytest.raises(DataError, match=said):
        us.recommend.load_model(file)


def test_every_flipped_bit_that_matters_is_found(train, tmp_path):
    """Flips of names and time stamps in the archive may pass; then the model is the same."""
    file = tmp_path / "m"
    model = us.recommend.PureSVD(factors=2).fit(train)
    us.recommend.save_model(model, file, train)
    whole, rng, found = file.read_bytes(), np.random.default_rng(2), 0
    users = np.arange(27, dtype=np.int32)
    for _ in range(300):
        spoilt = bytearray(whole)
        spoilt[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        file.write_bytes(spoilt)
        try:
            loaded = us.recommend.load_model(file, train)
        except DataError:
            found += 1
        else:
            assert loaded.score(users).tobytes() == model.score(users).tobytes()
    assert found > 250


def test_changed_arrays_are_not_the_saved_ones(train, tmp_path):
    file = tmp_path / "m"
    us.recommend.save_model(us.recommend.Popularity().fit(train), file, train)
    card, arrays = opened(file)
    forged(file, card, {name: array + 1 for name, array in arrays.items()})
    us.recommend.load_model(file)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", sealed(card))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as place:
                np.lib.format.write_array(place, array + 1)
    with pytest.raises(DataError, match="is not the one that was saved"):
        us.recommend.load_model(file)


def worse(array, rng):
    """Return arrays that could be in the place of one."""
    flat = array.reshape(-1)
    somewhere = rng.integers(max(flat.size, 1))
    for number in (-1, flat.size, 2**15, -(2**31), 2**31 - 1, 2**62):
        changed = flat.copy()
        if flat.size:
            with np.errstate(all="ignore"):
                changed[somewhere] = np.array([number]).astype(array.dtype)[0]
        yield changed.reshape(array.shape)
    yield array[:-1]
    yield array[:0]
    yield np.concatenate([array, array])
    yield array[::-1]
    yield array.reshape(-1, 1)
    yield array.astype(np.float16)
    yield array.astype(array.dtype.newbyteorder())
    if array.ndim > 1:
        yield array[:, :-1]
        yield np.asfortranarray(array)


WALK = """
import pathlib, sys
import numpy as np, unskew as us
users = np.arange(27, dtype=np.int32)
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    print(path.name, flush=True)
    try:
        model = us.recommend.load_model(path)
    except us.DataError:
        continue
    assert model.score(users).shape == (27, 19)
"""


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_forged_files_never_crash(train, tmp_path, step):
    """Whoever can change a file can change its digests: kernels must not be given what is wrong."""
    rng, number = np.random.default_rng(3), 0

    def write(what, card, arrays):
        nonlocal number
        if number % step == 0:
            forged(tmp_path / "forged" / f"{number:05d}-{what}", card, arrays)
        number += 1

    (tmp_path / "forged").mkdir()
    for name in EVERYONE:
        first = tmp_path / f"{name}.model"
        us.recommend.save_model(fitted(name, train), first, train)
        card, arrays = opened(first)
        first.unlink()
        for key, array in arrays.items():
            for changed in worse(array, rng):
                write(f"{name}-{key}", card, {**arrays, key: changed})
        text = json.dumps(card["model"])
        for field in re.findall(r'"(\w+)": \d+', text):
            # Not for steps: a walk of many is no crash, but takes its time.
            for value in (-1, 0, 40, True, "x", *([2**40] if field != "steps" else [])):
                changed = re.sub(rf'"{field}": \d+', f'"{field}": {json.dumps(value)}', text)
                model = json.loads(changed)
                write(f"{name}-{field}", {**card, "model": model}, arrays)
    assert number > 1000
    done = subprocess.run(
        [sys.executable, "-c", WALK, str(tmp_path / "forged")], capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"{last}\n{done.stderr}"
    assert len(done.stdout.splitlines()) == -(-number // step)


def test_a_plain_archive_is_foreign(tmp_path):
    with zipfile.ZipFile(tmp_path / "z", "w") as archive:
        archive.writestr("a.txt", "b")
    with pytest.raises(DataError, match="not a model file of unskew"):
        us.recommend.load_model(tmp_path / "z")
