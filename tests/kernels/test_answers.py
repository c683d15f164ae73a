"""Findings to codes and flat numbers to values: both twins, against what a dictionary and a slice say."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tests.kernels.test_twins import twins

ANSWERS = twins("answers")


class Slotted:
    """What a Maker fills; it refuses to be changed, as posteriors do."""

    __slots__ = ("log_evidence", "sampling", "values", "variables")

    def __init__(self) -> None:
        raise AssertionError("values are made without it")

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


@pytest.mark.parametrize("kernel", ANSWERS)
def test_codes_are_read_in_the_order_of_the_findings(kernel):
    readers = ((7, str, {"yes": 0, "no": 1}), (2, bool, {False: 0, True: 1}), (9, int, {5: 0, 1: 1}))
    assert kernel.read_codes(readers, {"a": "no", "b": True, "c": 1}) == [(7, 1), (2, 1), (9, 1)]
    assert kernel.read_codes((), {}) == []


@pytest.mark.parametrize("kernel", ANSWERS)
@pytest.mark.parametrize("finding", ["maybe", None, 1, True, 0.0, float("nan"), np.str_("yes"), ["yes"], {}])
def test_what_is_not_a_state_is_not_read(kernel, finding):
    assert kernel.read_codes(((7, str, {"yes": 0, "no": 1}),), {"a": finding}) is None


@pytest.mark.parametrize("kernel", ANSWERS)
def test_true_is_not_one(kernel):
    assert kernel.read_codes(((0, int, {0: 0, 1: 1}),), {"a": True}) is None
    assert kernel.read_codes(((0, bool, {False: 0, True: 1}),), {"a": 1}) is None


@pytest.mark.parametrize("kernel", ANSWERS)
def test_more_or_fewer_findings_than_readers_are_not_read(kernel):
    reader = (7, str, {"yes": 0, "no": 1})
    assert kernel.read_codes((reader,), {}) is None
    assert kernel.read_codes((reader,), {"a": "yes", "b": "yes"}) is None


@pytest.mark.parametrize("kernel", ANSWERS)
def test_values_are_read_only_views(kernel):
    flat = np.arange(6.0)
    maker = kernel.Maker(Slotted)
    made = list(maker.each([("A", 0, 2), ("B", 2, 2), ("C", 3, 6)], flat, -0.5))
    assert [one.variables for one in made] == [("A",), ("B",), ("C",)]
    assert [one.values.tolist() for one in made] == [[0.0, 1.0], [], [3.0, 4.0, 5.0]]
    assert all(type(one) is Slotted and one.log_evidence == -0.5 and one.sampling is None for one in made)
    assert np.shares_memory(made[2].values, flat)
    assert not made[2].values.flags.writeable
    whole = maker.one(("A", "B"), flat.reshape(2, 3), 0.0)
    assert whole.variables == ("A", "B")
    assert whole.values.shape == (2, 3)
    assert not whole.values.flags.writeable


@pytest.mark.parametrize("kernel", ANSWERS)
@pytest.mark.parametrize("place", [("A", -1, 2), ("A", 2, 1), ("A", 0, 7), ("A", 7, 7)])
def test_places_beyond_the_numbers_are_refused(kernel, place):
    with pytest.raises(ValueError, match="no cells from"):
        list(kernel.Maker(Slotted).each([place], np.arange(6.0), 0.0))


@pytest.mark.parametrize("kernel", ANSWERS)
def test_nothing_is_leaked_or_freed_too_early(kernel):
    flat, variable = np.arange(6.0), object()
    maker = kernel.Maker(Slotted)
    before = sys.getrefcount(flat), sys.getrefcount(variable)
    views = [one.values for _ in range(100) for one in maker.each([(variable, 1, 4)], flat, 0.0)]
    copies = [view.copy() for view in views]
    del flat
    assert all((view == copy).all() for view, copy in zip(views, copies, strict=True))
    flat = views[0].base
    del views, copies
    assert (sys.getrefcount(flat), sys.getrefcount(variable)) == before


def test_a_class_without_slots_is_refused():
    for kernel in ANSWERS:
        with pytest.raises((AttributeError, TypeError)):
            kernel.Maker(dict)
