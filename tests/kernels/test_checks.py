"""Kernels given arrays that do not fit one another: a TypeError or a ValueError, never a wrong access.

Each kernel, compiled and plain, is called with good arguments, then with each of its arrays spoilt in several ways.
`make asan` runs these under a sanitizer, where a read or write out of bounds ends the process.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bbn.kernels.contracts import tape
from bbn.kernels.contracts.causes import Causes
from bbn.kernels.contracts.messages import FactorGraphArrays
from bbn.kernels.contracts.moves import Groups, Moves, Sweep

TWINS = pytest.mark.parametrize("twin", ["compiled", "pure"])
COMPILED = pytest.mark.parametrize("twin", ["compiled"])


def module_of(twin: str, name: str) -> Any:
    """A module of kernels, of one kind; a skip where there is none."""
    try:
        return importlib.import_module(f"bbn.kernels.{twin}.{name}")
    except ImportError:
        pytest.skip("it has no twin" if twin == "pure" else "the kernels are not compiled")


FAR = 1 << 40


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*shape: int) -> np.ndarray:
    return np.linspace(0.1, 0.9, int(np.prod(shape))).reshape(shape)


def bits() -> Any:
    return np.random.SFC64(0)


ELIMINATION = (ints(0, 1, 2), ints(0, 1, 2, 2), ints(1, 2))
MOVES = Moves(
    ints(0, 1, 2),
    ints(2, 3, 2),
    ints(0, 0, 1, 3),
    ints(0, 0, 1),
    ints(1, 3, 1),
    ints(0, 1, 5),
    np.zeros(11, np.int32),
    ints(-1, -1, 0),
    np.zeros(12),
)
GROUPS = Groups(ints(0, 1, 3), ints(0, 0, 1), ints(1, 3, 1), ints(0, 2), 8)
SWEEP = Sweep(
    *(ints(0, 1, 2), ints(0, 1), ints(0, 2), ints(0, 1, 0, 1, 2)),
    *(ints(2, 3), ints(0, -1), ints(0, 1, 1), ints(1), ints(1), np.zeros(3, np.int32)),
    *(ints(0, 0, 1), ints(0), ints(0), ints(0, 1), ints(0), ints(3), ints(0, 1, 2), np.ones(6)),
)
CAUSES = Causes(
    *(ints(0, 0, 2), ints(0, 1), ints(0, 1, 2), ints(0, 2), ints(0, 0), ints(-1, 0)),
    *(ints(0, 1), ints(2, 6), ints(0, 1), ints(0, 0), ints(0, 2), ints(0, 2, 5), ints(1, -1, 1, 0, -1)),
    *(ints(0, 0, 0, 0, 0), np.ones(12), ints(0, 1, 2), ints(0, 1, 0, 1, 2, 0, 1, 2)),
)
LINKED = FactorGraphArrays(ints(2, 3, 2), ints(0, 2, 4), ints(0, 1, 1, 2), floats(12), floats(7))
CODES = np.array([[0, 1] * 5, [0, 1, 2, 2, 1] * 2, [1, 0] * 5], np.uint8)

KERNELS: dict[str, tuple[str, str, Callable[[], list[Any]], set[int | str]]] = {
    # kernel: the compiled module, its twin, good arguments, and which arguments must be refused with a far index
    "eliminate": (
        "triangulate",
        lambda: [ints(2, 3, 2), ints(0, 2, 4), ints(0, 1, 1, 2), 0, ints(0, 0, 0)],
        {1, 2},
    ),
    "cells": ("triangulate", lambda: [ints(2, 3, 2), *ELIMINATION], {1, 2, 3}),
    "total_cells": ("triangulate", lambda: [ints(2, 3, 2), *ELIMINATION], {1, 2, 3}),
    "reduce_scopes": (
        "layout",
        lambda: [ints(0, 2, 4), ints(0, 1, 1, 2), ints(1, -1), 3, [0], [1], False, [2], False],
        {0, 1, 2},
    ),
    "lay_out": (
        "layout",
        lambda: [
            *(ints(2, 3, 2), ints(0, 2, 4), ints(0, 1, 1, 2), ints(0, 6, 12), ints(0, 1), ints(0, 0, 0)),
            *(ELIMINATION, [2], tape.QUERY),
        ],
        {0, 1, 2, 3, 4, 5},
    ),
    "pack_factors": (
        "layout",
        lambda: [[3, 2], [0], [floats(3), floats(3, 2)], True],
        set(),
    ),
    "add_scores": (
        "classify",
        lambda: [[CODES[0], CODES[1].astype(np.uint16)], ints(0, 2), floats(5, 3), np.zeros((10, 3))],
        {1},
    ),
    "bitmaps": ("count", lambda: [CODES[0], 2], set()),
    "worth_bitmaps": ("count", lambda: [ints(0, 2, 4), ints(0, 1, 2, 1), ints(2, 3, 2)], {0, 1}),
    "count_families": (
        "count",
        lambda: [
            *([CODES[0], CODES[1].astype(np.uint16), CODES[2]], [None, None, None], ints(2, 3, 2)),
            *(ints(0, 2, 4), ints(0, 1, 2, 1), ints(0, 6, 12), floats(10)),
        ],
        {0, 2, 3, 4, 5},
    ),
    "log_likelihoods": ("score", lambda: [ints(3, 1, 0, 2, 5), ints(0, 2, 5), ints(2, 3)], {1, 2}),
    "log_dirichlets": ("score", lambda: [ints(3, 1, 0, 2, 5), ints(0, 2, 5), ints(2, 3), floats(2)], {1, 2}),
    "observed_rows": ("score", lambda: [ints(3, 1, 0, 2, 5), ints(0, 2, 5), ints(2, 3)], {1, 2}),
    "independence": (
        "score",
        lambda: [ints(*range(10)), ints(0, 4, 10), ints(2, 3), ints(2, 2), False],
        {1, 2, 3},
    ),
    "prune": (
        "consistency",
        lambda: [
            *(ints(0, 2, 5, 7), ints(0, 2, 4), ints(0, 1, 1, 2), ints(0, 6, 12)),
            *(np.ones(12, np.uint8), np.ones(7, np.uint8), ints(0, 2)),
        ],
        {0, 1, 2, 3, 6},
    ),
    "Domains": (
        "consistency",
        lambda: [ints(0, 2, 5, 7), ints(0, 2, 4), ints(0, 1, 1, 2), ints(0, 6, 12), floats(12)],
        {0, 1, 2, 3},
    ),
    "Pieces": (
        "pieces",
        lambda: [floats(1, 3), ints(0, 2, 4), ints(0, 1, 1, 2), *ELIMINATION],
        {1, 2, 3, 4, 5},
    ),
    "induced": (
        "triangulate",
        lambda: [ints(2, 1, 3), (1,), ints(1, 0, 2), ints(0, 2, 3, 3), ints(0, 2, 2)],
        {2, 3, 4},
    ),
    "code_matrix": (
        "classify",
        lambda: [
            np.arange(6, dtype=np.int64).reshape(3, 2),
            ints(0, 0),
            ints(0, 3, 6),
            np.zeros(6, np.uint8),
            np.zeros(2, np.uint8),
        ],
        {2},
    ),
    "present": (
        "classify",
        lambda: [np.arange(6, dtype=np.int64).reshape(3, 2), ints(0, 1), ints(0, 5, 10)],
        {0, 1},
    ),
    "add_log_densities": (
        "gaussians",
        lambda: [floats(2, 5), floats(2, 3), floats(2, 3), np.zeros((3, 5))],
        set(),
    ),
    "normalise": ("gaussians", lambda: [floats(3, 5), floats(5), np.zeros(5)], set()),
    "add_moments": (
        "gaussians",
        lambda: [floats(2, 5), floats(3, 5), floats(2, 3), np.zeros((3, 2, 3))],
        set(),
    ),
    "factorize_text": (
        "coding",
        lambda: [ints(0, 1, 3), np.frombuffer(b"abb", np.uint8)],
        {0},
    ),
    "merge_rows": ("coding", lambda: [[CODES[0], CODES[1]]], set()),
    "settle": ("messages", lambda: [LINKED, floats(10), 3, 0.0, 0.0, False], {0}),
    "beliefs": ("messages", lambda: [LINKED, floats(10), np.zeros(7)], {0}),
    "incoming": ("messages", lambda: [LINKED, floats(10), np.zeros(10)], {0}),
    "row_texts": ("decimals", lambda: [floats(6), 3, " ", "\n"], set()),
    "recode": ("recode", lambda: [np.zeros(3, np.uint8), ints(0, 1, 7)], set()),
    "forward": ("sample", lambda: [bits(), MOVES, CODES.copy(), np.zeros(10)], {1}),
    "accumulate": ("sample", lambda: [CODES.copy(), GROUPS, floats(10), np.zeros((8, 2))], {1}),
    "gibbs": (
        "sample",
        lambda: [bits(), SWEEP, CODES.copy(), 2, GROUPS, np.zeros((10, 8), np.int64), CAUSES],
        {1, 4, 6},
    ),
}
"""What runs tapes takes them from `lay_out` alone; its arguments are checked here."""


def spoilt(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The array in ways that it must not be."""
    flat = array.ravel()
    yield "empty", array[:0]
    yield "short", array[:-1]
    yield "long", np.concatenate([array, array[-1:]])
    yield "strided", np.repeat(array, 2, axis=0)[::2]
    yield "of floats", array.astype(np.float32)
    yield "of another width", array.astype(np.int16)
    if array.ndim > 1:
        yield "narrow", np.ascontiguousarray(array[:, :-1])
        yield "flat", flat
    if array.dtype.kind in "iu" and flat.size:
        for name, at in (("first", 0), ("last", -1)):
            for value in (-2, FAR):
                other = array.copy()
                other.ravel()[at] = np.array(min(value, np.iinfo(array.dtype).max)).astype(array.dtype)
                yield f"{name} {'far' if value == FAR else 'negative'}", other


def variants(arguments: list[Any]) -> Iterator[tuple[int, str, str, list[Any]]]:
    """Each argument list with one array spoilt: the argument's place, its field, how it was spoilt, the list."""
    for place, argument in enumerate(arguments):
        if isinstance(argument, np.ndarray):
            for how, other in spoilt(argument):
                yield place, "", how, [*arguments[:place], other, *arguments[place + 1 :]]
            yield place, "", "None", [*arguments[:place], None, *arguments[place + 1 :]]
        elif isinstance(argument, tuple | list):
            fields = getattr(argument, "_fields", range(len(argument)))
            for field, inner in zip(fields, argument, strict=True):
                for how, other in spoilt(inner) if isinstance(inner, np.ndarray) else ():
                    at = list(fields).index(field)
                    parts = [*argument[:at], other, *argument[at + 1 :]]
                    made = type(argument)(*parts) if hasattr(argument, "_fields") else type(argument)(parts)
                    yield place, str(field), how, [*arguments[:place], made, *arguments[place + 1 :]]


NUMBERS = {"tables", "local", "thresholds", "log_weights", "values", "effects"}
"""Fields that are no indices: any number will do."""


@TWINS
@pytest.mark.parametrize("kernel", KERNELS)
def test_arrays_that_do_not_fit_are_refused(kernel, twin):
    name, make, far = KERNELS[kernel]
    run = getattr(module_of(twin, name), kernel, None)
    if run is None and twin == "pure":
        pytest.skip("it has no twin")
    run(*make())
    refused = 0
    for place, field, how, arguments in variants(make()):
        try:
            run(*arguments)
        except (ValueError, TypeError, MemoryError):
            refused += 1
            continue
        must = how.endswith("far") and place in far and field not in NUMBERS
        assert not must, f"{kernel}: argument {place} {field} {how} was taken"
    assert refused >= 3


def layout_of() -> tuple[Any, list[Any]]:
    """A layout of three variables, the second sliced, the third with a likelihood; and its arguments."""
    arguments = KERNELS["lay_out"][1]()
    arguments[5] = ints(tape.FREE, tape.SLICED, tape.LIKELIHOOD)
    arguments[6] = (ints(0, 2), ints(0, 0, 0), ints())
    arguments[7] = [0]
    return module_of("compiled", "layout").lay_out(*arguments), arguments


def test_findings_that_no_variable_has_are_refused_in_numpy():
    arguments = KERNELS["lay_out"][1]()
    role, elimination = ints(tape.FREE, tape.SLICED, tape.LIKELIHOOD), (ints(0, 2), ints(0, 0, 0), ints())
    program = importlib.import_module("bbn.kernels.pure.junction_tree").Program
    given = [*arguments[:4], floats(12), arguments[4], role, elimination, [0], ints(-1, -1, -1)]
    good = program(*given).run([(1, 2)], [(2, [0.5, 0.5])])
    assert good[0].sum() == pytest.approx(1.0)
    bad = [([(1, 3)], []), ([(1, -1)], []), ([(3, 0)], []), ([(-1, 0)], []), ([(1, FAR)], [])]
    bad += [([(1, 2)], [(v, values)]) for v, values in ((2, [1.0]), (2, [1.0] * 3), (9, [1.0, 1.0]), (2, []))]
    for hard, likelihoods in bad:
        with pytest.raises(ValueError):
            program(*given).run(hard, likelihoods)
    for place, wrong in ((4, floats(11)), (5, ints(0, 2)), (7, (ints(0), ints(0, 0), ints()))):
        with pytest.raises(ValueError):
            program(*given[:place], wrong, *given[place + 1 :])


@COMPILED
@pytest.mark.parametrize("name", ["propagate", "wide"])
def test_findings_that_no_variable_has_are_refused(twin, name):
    module = module_of(twin, name)
    layout, arguments = layout_of()
    program = module.Program if name == "propagate" else module.WideProgram
    made = program(arguments[0], floats(12), layout)
    good = made.run([(1, 2)], [(2, [0.5, 0.5])])
    bad = [([(1, 3)], []), ([(1, -1)], []), ([(3, 0)], []), ([(-1, 0)], []), ([(1, FAR)], [])]
    bad += [([(1, 2)], [(v, values)]) for v, values in ((2, [1.0]), (2, [1.0] * 3), (9, [1.0, 1.0]), (2, []))]
    for hard, likelihoods in bad:
        with pytest.raises(ValueError):
            made.run(hard, likelihoods)
    again = made.run([(1, 2)], [(2, [0.5, 0.5])])
    assert good[0].tolist() == again[0].tolist()
    assert good[1] == again[1]


@COMPILED
@pytest.mark.parametrize("name", ["propagate", "wide"])
@pytest.mark.parametrize("size", [0, 11, 13])
def test_tables_of_another_length_than_the_layouts_are_refused(twin, name, size):
    module = module_of(twin, name)
    layout, arguments = layout_of()
    program = module.Program if name == "propagate" else module.WideProgram
    with pytest.raises(ValueError, match="12"):
        program(arguments[0], floats(size), layout)


@TWINS
def test_codes_that_a_column_cannot_have_are_refused(twin):
    count = module_of(twin, "count").count_families
    families = [ints(2, 3), ints(0, 2), ints(0, 1), ints(0, 6), None]
    column = CODES[0].copy()
    assert count([column, CODES[1]], [None, None], *families).sum() == 10
    column[7] = 2
    with pytest.raises(ValueError, match="column 0"):
        count([column, CODES[1]], [None, None], *families)


@TWINS
def test_negative_counts_are_refused(twin):
    score = module_of(twin, "score")
    for cells in (ints(3, -1), np.array([1.0, -0.5]), np.array([1.0, np.nan])):
        with pytest.raises(ValueError, match="counts"):
            score.log_likelihoods(cells, ints(0, 2), ints(2))


@COMPILED
def test_rows_that_do_not_fit_are_refused(twin):
    module = module_of(twin, "batch")
    layout, arguments = layout_of()
    program = module_of("compiled", "propagate").Program(arguments[0], floats(12), layout)
    codes = np.array([[0, 0], [2, 1], [1, 2]], np.int32)
    good = [floats(12), layout, np.append(program.base, 0.0), np.append(program.once_out, 0.0), 0.0]
    good += [arguments[0], ints(1, 2), codes, np.empty((3, 2)), np.empty(3)]
    module.run_rows(*good)
    for place, _, how, spoiled in variants(good):
        if place < 5 or how in ("strided", "of floats", "of another width", "None"):
            continue  # what the layout was made with; and what one of the twins takes
        if place == 5 and how.endswith(("far", "negative")):
            continue  # other cards are other variables
        with pytest.raises((ValueError, TypeError)):
            module.run_rows(*spoiled)


@TWINS
def test_expected_counts_of_arrays_that_do_not_fit_are_refused(twin):
    import bbn
    from bbn.inference.rows.expected_counts import Expectation, flat_tables

    module = module_of(twin, "expect")
    net = bbn.example("burglary")
    tables, tree = flat_tables(net), Expectation(net).whole.tree
    codes = np.array([[0, 1, 0, 1, 0], [2, 2, 2, 0, 1]], np.int32)
    good = [tables, codes, np.ones(2), tree, np.zeros(len(tables)), np.empty(2)]
    module.gradient_rows(*good)
    for place, field, how, spoiled in variants(good):
        if how in ("strided", "of floats", "of another width", "None") or (place == 3 and twin == "pure"):
            continue  # what one of the twins takes; numpy checks each index of its own
        if place == 3 and (field == "cards" or how == "long"):
            continue  # more states are another tree, and what comes after is not looked at
        with pytest.raises((ValueError, TypeError)):
            module.gradient_rows(*spoiled)


@COMPILED
def test_a_clique_of_more_axes_than_are_counted_is_refused(twin):
    n = 65
    pairs = list(itertools.combinations(range(n), 2))
    ptr, scope = np.arange(0, 2 * len(pairs) + 1, 2), np.array(pairs).ravel()
    for cards in (np.ones(n, np.int64), np.full(n, 2)):
        tables = np.concatenate([[0], np.cumsum(cards[scope].reshape(-1, 2).prod(axis=1))])
        elimination = module_of(twin, "triangulate").eliminate(cards, ptr, scope, 0)
        with pytest.raises(ValueError, match="65 axes, expected at most 64"):
            module_of(twin, "layout").lay_out(
                *(cards, ptr, scope, tables, np.arange(len(pairs)), np.zeros(n, np.int64)),
                *(elimination, [], tape.MARGINALS),
            )
