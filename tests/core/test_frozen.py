"""Values compare, hash and pickle by their slots."""

import pickle

import numpy as np
import pytest

import bbn
from bbn.core.frozen import Frozen


class Pair(Frozen):
    __slots__ = ("left", "right")

    def __init__(self, left, right):
        self._set(left=left, right=right)


class Labelled(Pair, like=Pair):
    __slots__ = ("label",)

    def __init__(self, left, right, label):
        super().__init__(left, right)
        self._set(label=label)


class Other(Pair):
    __slots__ = ()


class Remembering(Frozen, cached=("_hash", "work")):
    __slots__ = ("_hash", "value", "work")

    def __init__(self, value):
        self._set(value=value, work="done", _hash=None)


def array(*values):
    made = np.array(values)
    made.flags.writeable = False
    return made


EQUAL = [
    (Pair(1, "a"), Pair(1, "a")),
    (Pair(array(0.0, 1.0), None), Pair(array(-0.0, 1.0), None)),
    (Pair({"x": array(1.0)}, [array(2)]), Pair({"x": array(1.0)}, [array(2)])),
    (Pair({"x": 1, "y": 2}, ()), Pair({"y": 2, "x": 1}, ())),
    (Pair(1, 2), Labelled(1, 2, "three")),
    (Remembering(3), Remembering(3)),
]
DIFFERENT = [
    (Pair(1, "a"), Pair("a", 1)),
    (Pair(array(0.0, 1.0), None), Pair(array(0.0, 2.0), None)),
    (Pair(array(0.0), None), Pair(array(0.0, 0.0), None)),
    (Pair({"x": array(1.0)}, None), Pair({"x": array(2.0)}, None)),
    (Pair(1, 2), Other(1, 2)),
    (Pair(1, 2), (1, 2)),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_equal_values_have_equal_hashes(a, b):
    assert a == b
    assert b == a
    assert hash(a) == hash(b)


@pytest.mark.parametrize(("a", "b"), DIFFERENT)
def test_different_values_differ(a, b):
    assert a != b
    assert b != a


def test_pickled_values_are_equal_and_their_arrays_read_only():
    value = Labelled({"x": array(1.0)}, (array(2.0), None), "three")
    again = pickle.loads(pickle.dumps(value))
    assert type(again) is Labelled
    assert again == value
    assert again.label == "three"
    assert not again.left["x"].flags.writeable
    assert not again.right[0].flags.writeable
    with pytest.raises(AttributeError, match="frozen"):
        again.left = 1


def test_cached_slots_are_neither_compared_nor_pickled():
    value, other = Remembering(3), Remembering(3)
    hash(value)
    assert value._hash is not None
    assert value == other
    again = pickle.loads(pickle.dumps(value))
    assert (again.value, again.work, again._hash) == (3, None, None)
    assert hash(again) == hash(value)


def test_the_library_s_values_survive_pickling():
    net = bbn.example("asia")
    name = net.names[0]
    values = [
        net,
        net[name],
        net.query(name),
        net.mpe(),
        net.query(name, method="likelihood-weighting", n_samples=100, seed=1),
        bbn.Gaussian("X", means=1.0, variances=2.0),
        bbn.Virtual({"yes": 0.8, "no": 0.2}),
        bbn.OneOf("yes", "no"),
        net.explain(name, {net.names[-1]: net.states(net.names[-1])[0]}),
        bbn.compare(net.graph, net.graph),
        bbn.fit(net, net.sample(50, seed=1), bbn.BDeu(1)),
    ]
    for value in values:
        again = pickle.loads(pickle.dumps(value))
        assert again == value, type(value)
        assert hash(again) == hash(value), type(value)
