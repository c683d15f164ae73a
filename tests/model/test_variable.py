"""Variable: a name and ordered states of one kind."""

import copy
import enum
import pickle

import numpy as np
import pytest
from hypothesis import given

from bbn.core.errors import EvidenceError
from bbn.model.variable import Variable
from tests.support.strategies import variables


@given(variables())
def test_codes_are_positions(v):
    assert v.card == len(v.states)
    assert [v.code(s) for s in v.states] == list(range(v.card))
    assert [v.find(s) for s in v.states] == list(range(v.card))


@given(variables())
def test_a_copy_is_equal_and_hashes_alike(v):
    for twin in (pickle.loads(pickle.dumps(v)), copy.deepcopy(v), Variable(v.name, list(v.states))):
        assert twin == v
        assert hash(twin) == hash(v)
        assert [type(s) for s in twin.states] == [type(s) for s in v.states]


def test_order_name_and_kind_of_states_matter():
    assert Variable("A", ["x", "y"]) != Variable("A", ["y", "x"])
    assert Variable("A", ["x"]) != Variable("B", ["x"])
    assert Variable("A", [True, False]) != Variable("A", [1, 0])
    assert Variable("A", [1]) != Variable("A", ["1"])


def test_true_never_matches_1_nor_text_a_number():
    flag, number, text = Variable("F", [False, True]), Variable("N", [0, 1]), Variable("T", ["0", "1"])
    assert (flag.find(1), flag.find(True), flag.find(np.True_), flag.find("True")) == (None, 1, 1, None)
    assert (number.find(True), number.find(1), number.find(np.int8(1)), number.find(1.0)) == (
        None,
        1,
        1,
        None,
    )
    assert (text.find(1), text.find("1"), text.find(np.str_("1"))) == (None, 1, 1)


def test_numpy_scalars_and_enums_become_plain_states():
    class Level(enum.IntEnum):
        LOW = 0
        HIGH = 1

    assert [type(s) for s in Variable("A", np.arange(2)).states] == [int, int]
    assert [type(s) for s in Variable("A", np.array([True, False])).states] == [bool, bool]
    assert [type(s) for s in Variable("A", np.array(["x", "y"])).states] == [str, str]
    assert [type(s) for s in Variable("A", list(Level)).states] == [int, int]


@pytest.mark.parametrize(
    ("states", "asked", "hint"),
    [
        (["yes", "no"], "yess", "did you mean 'yes'"),
        (["yes", "no"], "YES", "did you mean 'yes'"),
        ([1, 2], "1", "write 1"),
        (["1", "2"], 1, "write '1'"),
        ([True, False], "True", "write True"),
        (["a", "b"], ["a"], "'a'"),
        (["a", "b"], "zzz", "expected one of 'a', 'b'"),
    ],
)
def test_an_unknown_state_names_the_variable_and_the_nearest(states, asked, hint):
    with pytest.raises(EvidenceError) as caught:
        Variable("Weather", states).code(asked)
    assert "'Weather'" in str(caught.value)
    assert repr(asked) in str(caught.value)
    assert hint in str(caught.value)


def test_it_is_frozen():
    v = Variable("A", ["x"])
    with pytest.raises(AttributeError, match="frozen"):
        v.name = "B"
    with pytest.raises(AttributeError, match="frozen"):
        del v.states
    with pytest.raises(AttributeError):
        v.other = 1
