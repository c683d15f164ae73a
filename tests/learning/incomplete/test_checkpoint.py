"""Checkpoints that are damaged, forged or of something else are refused by name; those of earlier releases are read."""

import errno
import hashlib
import json
import os
import random
from pathlib import Path

import numpy as np
import pytest

import bbn
from bbn.core.errors import DataError

CORPUS = Path(__file__).parents[2] / "corpus"
ARCS = [("H", "A"), ("H", "B"), ("A", "C")]
RUNS = {
    "em": (bbn.fit_em, {"accelerate": False}),
    "squarem": (bbn.fit_em, {"accelerate": True}),
    "gradient": (bbn.fit_gradient, {}),
    "minibatches": (bbn.fit_gradient, {"batch_size": 20}),
    "gaussian": (bbn.fit_em, {"continuous": ["X"]}),
}


def rows(n=60):
    """A table from a rule, not from a sampler, whose rows may change from one release to the next."""
    table = {
        "A": [None if i % 11 == 3 else "xy"[(i * i) % 3 % 2] for i in range(n)],
        "B": [None if i % 7 == 5 else "uvw"[(i * i // 4) % 5 % 3] for i in range(n)],
        "C": [(i // 5) % 2 for i in range(n)],
    }
    return table


def run(kind, checkpoint=None, *, data=None, **changes):
    """A climb that goes through H, which nobody has seen."""
    learner, options = RUNS[kind]
    table = rows() if data is None else data
    arcs = ARCS
    if kind == "gaussian":
        table = {**table, "X": [((7 * i) % 13) / 3 + (i % 2) for i in range(len(table["A"]))]}
        arcs = [*ARCS, ("H", "X")]
    settings = {"hidden": {"H": ["0", "1"]}, "seed": 1, "restarts": 2, "tol": 0.0, "max_iter": 9}
    return learner(arcs, table, checkpoint=checkpoint, **{**settings, **options, **changes})


@pytest.fixture
def saved(tmp_path):
    """A checkpoint of an accelerated climb that stopped where it holds a memory."""
    path = tmp_path / "state"
    run("squarem", path, max_iter=5)
    return path


def forge(path, change=None, numbers=None):
    """The checkpoint with another header or other numbers, and the digest that belongs to them."""
    first, _, rest = path.read_bytes().split(b"\n", 2)
    header, body = rest.split(b"\n", 1)
    told = json.loads(header)
    if change is not None:
        told = change(told) or told
    if numbers is not None:
        body = numbers(np.frombuffer(body, "<f8").copy()).astype("<f8").tobytes()
    content = json.dumps(told).encode() + b"\n" + body
    path.write_bytes(b"\n".join([first, hashlib.sha256(content).hexdigest().encode(), content]))


def refuses(path, match=".", kind="squarem", **changes):
    with pytest.raises(DataError, match=match) as caught:
        run(kind, path, **changes)
    assert path.name in str(caught.value)
    assert type(caught.value) is DataError


@pytest.mark.parametrize("kind", RUNS)
def test_a_climb_goes_on_from_its_checkpoint(kind, tmp_path):
    path = tmp_path / "state"
    for steps in (1, 4, 5):
        run(kind, path, max_iter=steps)
    assert run(kind, path) == run(kind)


def test_a_flipped_bit_is_found_wherever_it_is(saved):
    whole = saved.read_bytes()
    draw = random.Random(0)
    places = sorted({*range(300), *draw.sample(range(len(whole)), 300)})
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        saved.write_bytes(damaged)
        refuses(saved)
    saved.write_bytes(whole)
    assert run("squarem", saved) == run("squarem")


def test_a_file_that_is_cut_short_or_has_grown_is_refused(saved):
    whole = saved.read_bytes()
    saved.write_bytes(b"")
    refuses(saved, "the checkpoint is empty")
    for keep in random.Random(1).sample(range(1, len(whole)), 200):
        saved.write_bytes(whole[:keep])
        refuses(saved, "not a checkpoint|damaged")
    saved.write_bytes(whole + b"\0")
    refuses(saved, "damaged")


@pytest.mark.parametrize(
    "content", [b"\0" * 400, b"PK\x03\x04" + b"\0" * 400, b"\xff" * 9, b"bbn checkpoint\n"]
)
def test_a_file_of_something_else_is_refused(saved, content):
    saved.write_bytes(content)
    refuses(saved, "not a checkpoint")


def test_a_folder_is_refused(tmp_path):
    refuses(tmp_path, "directory")


def test_a_checkpoint_of_a_later_version_is_refused(saved):
    first, rest = saved.read_bytes().split(b"\n", 1)
    assert first == b"bbn checkpoint 1"
    saved.write_bytes(b"bbn checkpoint 2\n" + rest)
    refuses(saved, "version 2.*reads version 1")


def put(at, key, value):
    def change(told):
        told["climbs"][at][key] = value

    return change


FORGED_HEADERS = {
    "fewer numbers": put(0, "numbers", 1),
    "no numbers": put(0, "numbers", 0),
    "negative": put(0, "numbers", -1),
    "a fraction": put(0, "numbers", 10.5),
    "a truth value": put(0, "points", True),
    "beyond the file": put(0, "points", 10**15),
    "beyond all integers": put(0, "points", 10**30),
    "no points": put(0, "points", 0),
    "no size": put(0, "numbers", None),
    "memory of another shape": put(0, "memory", [2, 3]),
    "memory without end": put(0, "memory", [-1]),
    "a memory that is a word": put(0, "memory", "all"),
    "a reason that is a number": put(0, "reason", 3),
    "an unknown reason": put(0, "reason", "bored"),
    "no climbs": lambda told: told.pop("climbs") and None,
    "climbs that are a number": lambda told: {**told, "climbs": 7},
    "climbs that are words": lambda told: {**told, "climbs": ["x"]},
    "a climb without a key": lambda told: told["climbs"][0].pop("points") and None,
    "one climb fewer": lambda told: {**told, "climbs": told["climbs"][:1]},
    "a list": lambda told: [told],
}


@pytest.mark.parametrize("change", FORGED_HEADERS.values(), ids=FORGED_HEADERS)
def test_a_header_that_lies_is_refused(saved, change):
    forge(saved, change)
    refuses(saved, "malformed")


def test_a_header_that_is_not_json_is_refused(saved):
    first = saved.read_bytes().split(b"\n", 1)[0]
    for content in (b"", b"{", b"[" * 100_000, b"\xff\xfe\n", b'{"climbs": NaN}\n', b"{}\n", b"null\n"):
        saved.write_bytes(b"\n".join([first, hashlib.sha256(content).hexdigest().encode(), content]))
        refuses(saved, "malformed|belongs to another")


def entry(value, at=0):
    def change(numbers):
        numbers[at] = value
        return numbers

    return change


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5, 1.5])
def test_numbers_that_are_not_probabilities_are_refused(saved, value):
    forge(saved, numbers=entry(value))
    refuses(saved, "malformed")


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_a_variance_that_is_not_positive_is_refused(tmp_path, value):
    path = tmp_path / "state"
    run("gaussian", path, max_iter=3)
    size = json.loads(path.read_bytes().split(b"\n")[2])["climbs"][0]["numbers"]
    forge(path, numbers=entry(value, size - 1))
    refuses(path, "malformed", kind="gaussian")


def test_a_log_likelihood_that_is_not_a_number_is_refused(saved):
    forge(saved, numbers=entry(np.nan, -1))
    refuses(saved, "malformed")


def test_a_checkpoint_of_another_climb_is_refused(saved):
    another = "another structure, prior, method, seed or start"
    refuses(saved, another, seed=2)
    refuses(saved, another, prior=bbn.BDeu(1))
    refuses(saved, another, accelerate=False)
    refuses(saved, another, hidden={"H": ["0", "1", "2"]})
    refuses(saved, "other data", data=rows(59))
    refuses(saved, another, data={**rows(), "C": ["a", "b"] * 30})


def test_a_checkpoint_of_another_start_is_refused(tmp_path):
    path = tmp_path / "state"
    first, second = (run("em", seed=s, max_iter=1).network for s in (1, 2))
    data, options = rows(), {"hidden": ["H"], "max_iter": 3, "fixed": ["A"]}
    bbn.fit_em(first, data, checkpoint=path, **options)
    with pytest.raises(DataError, match=r"state.*another structure, prior"):
        bbn.fit_em(second, data, checkpoint=path, **options)
    with pytest.raises(DataError, match=r"state.*another structure, prior"):
        bbn.fit_em(first, data, checkpoint=path, **{**options, "fixed": []})
    assert bbn.fit_em(first, data, checkpoint=path, **options).network["A"] == first["A"]


def test_impossible_rows_under_a_checkpoint_are_other_data(tmp_path):
    path = tmp_path / "state"
    bbn.fit_em([("A", "B")], {"A": ["x", "y"], "B": ["x", "y"]}, seed=1, checkpoint=path)
    with pytest.raises(DataError, match=r"state.*other data"):
        bbn.fit_em([("A", "B")], {"A": ["x", "y", "x"], "B": ["x", "y", "y"]}, seed=1, checkpoint=path)


@pytest.mark.parametrize("kind", RUNS)
def test_checkpoints_of_the_first_release_are_read(kind, tmp_path):
    """Made by `python -m tests.learning.incomplete.test_checkpoint`; later versions must go on reading these files."""
    path = tmp_path / "state"
    path.write_bytes((CORPUS / f"checkpoint-1-{kind}").read_bytes())
    resumed, whole = run(kind, path), run(kind)
    assert len(resumed.log_likelihoods) == len(whole.log_likelihoods)
    np.testing.assert_allclose(resumed.log_likelihoods, whole.log_likelihoods, rtol=1e-9)


def make_corpus():
    """Write the files of this release; only for a version of the format that has none yet."""
    for kind in RUNS:
        path = CORPUS / f"checkpoint-1-{kind}"
        if not path.exists():
            run(kind, path, max_iter=5)


if __name__ == "__main__":
    make_corpus()


@pytest.mark.parametrize("there", [False, True])
def test_a_full_disk_says_whether_there_is_a_checkpoint(tmp_path, monkeypatch, there):
    net, path = bbn.example("asia"), tmp_path / "climb"
    rows = net.sample(50, seed=1, missing=0.2)
    if there:
        bbn.fit_em(net, rows, checkpoint=path, max_iter=1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(full))
    with pytest.warns(bbn.CheckpointWarning, match="No space left on device") as caught:
        bbn.fit_em(net, rows, checkpoint=path, max_iter=4)
    (told,) = [str(w.message) for w in caught if w.category is bbn.CheckpointWarning]
    assert str(path) in told
    assert ("is still there" in told) == path.exists() == there
    assert ("there is no checkpoint" in told) == (not there)
