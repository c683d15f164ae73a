"""Checks of arrays at the entry of the kernels: what does not fit is a TypeError or a ValueError.

The compiled kernels index without bounds, so nothing that is out of range may get past their entry. The twins refuse
the same, so that both behave alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts import tape as t
from bbn.kernels.contracts.types import Ints

DEEPEST = 64
"""The most axes of a clique that the interpreters can walk; axes of two states or more would fill any memory first."""
MOST_CELLS = 2.0**53
"""Cells of all cliques that an offset can reach."""

Anything = NDArray[Any]


def check_ints(*arrays: Anything) -> None:
    """Raise TypeError unless these are arrays of int64 in C order."""
    for array in arrays:
        _check_dtype(array, np.int64, "int64")


def check_doubles(*arrays: Anything) -> None:
    """Raise TypeError unless these are arrays of float64 in C order."""
    for array in arrays:
        _check_dtype(array, np.float64, "doubles")


def _check_dtype(array: Anything, dtype: Any, words: str) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected {words} in C order, found {type(array).__name__}")
    if array.dtype != dtype or not array.flags.c_contiguous:
        raise TypeError(f"expected {words} in C order, found {array.dtype}")


def check_numbers(kinds: str, axes: int, *arrays: Anything) -> None:
    """Raise TypeError or ValueError unless these are arrays of these kinds ("iu": whole numbers) with `axes` axes."""
    for array in arrays:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in kinds:
            found = getattr(array, "dtype", type(array).__name__)
            raise TypeError(f"expected an array of kind {kinds!r}, found {found}")
        if array.ndim != axes:
            raise ValueError(f"expected {axes} axes, found {array.ndim}")


def check_shape(what: str, array: Anything, *shape: int) -> None:
    """Raise ValueError unless an array has this shape."""
    if array.shape != shape:
        raise ValueError(f"{what}: expected shape {shape}, found {array.shape}")


def check_length(found: int, expected: int, what: str) -> None:
    """Raise ValueError unless an array is as long as another one asks for."""
    if found != expected:
        raise ValueError(f"{what}: expected length {expected}, found {found}")


def check_range(words: Anything, first: int, stop: int, what: str) -> None:
    """Raise ValueError unless each word is at least `first` and less than `stop`."""
    wrong = np.flatnonzero((words < first) | (words >= stop))
    if wrong.size:
        raise ValueError(
            f"{what}: expected numbers from {first} to {stop - 1}, found {words[wrong[0]]} at {wrong[0]}"
        )


def check_offsets(words: Anything, size: int, what: str) -> None:
    """Raise ValueError unless the words go from 0 to `size` and never fall; there is at least one."""
    if words.size == 0 or words[0] != 0 or words[-1] != size:
        raise ValueError(f"{what}: expected offsets from 0 to {size}")
    falls = np.flatnonzero(np.diff(words) < 0)
    if falls.size:
        at = int(falls[0]) + 1
        raise ValueError(f"{what}: offsets fall from {words[at - 1]} to {words[at]} at {at}")


def check_findings(cards: Sequence[int], hard: Mapping[int, int], likelihoods: Mapping[int, Any]) -> None:
    """Raise ValueError unless these are codes, and likelihoods, of variables."""
    for v, code in hard.items():
        if not 0 <= v < len(cards) or not 0 <= code < cards[v]:
            raise ValueError(f"variable {v} has no code {code}")
    for v, values in likelihoods.items():
        if not 0 <= v < len(cards) or len(values) != cards[v]:
            raise ValueError(f"variable {v}: {len(values)} numbers are not a likelihood of its states")


def check_rows(columns: Ints, codes: Anything, cards: Ints) -> None:
    """Raise ValueError unless each row has a code, or one more for a gap, of each column's variable."""
    check_range(columns, 0, len(cards), "columns")
    check_shape("codes", codes, len(codes), len(columns))
    wrong = np.argwhere((codes < 0) | (codes > cards[columns]))
    if wrong.size:
        row, k = wrong[0]
        raise ValueError(f"row {row}: variable {columns[k]} has no code {codes[row, k]}")


def check_elimination(cards: Ints, elimination: tuple[Ints, Ints, Ints], targets: Sequence[int]) -> None:
    """Refuse what `eliminate` would not give, cliques of too many axes or cells, and targets that are not variables."""
    order, ptr, near = elimination
    n = len(cards)
    check_ints(cards, order, ptr, near)
    check_range(cards, 1, 2**62, "cards")
    check_length(len(ptr), len(order) + 1, "the elimination's offsets")
    check_offsets(ptr, len(near), "the elimination's offsets")
    check_range(order, 0, n, "the elimination order")
    check_range(near, 0, n, "the elimination's neighbours")
    check_range(np.array(targets, np.int64), 0, n, "targets")
    position: dict[int, int] = {}
    for k, v in enumerate(order.tolist()):
        if v in position:
            raise ValueError(f"variable {v} is eliminated twice")
        position[v] = k
    total = 0.0
    for k, v in enumerate(order.tolist()):
        around = near[ptr[k] : ptr[k + 1]].tolist()
        for i, u in enumerate(around):
            if position.get(u, -1) <= k:
                raise ValueError(f"neighbour {u} of variable {v} is not eliminated later")
            if u in around[:i]:
                raise ValueError(f"neighbour {u} of variable {v} is there twice")
        if len(around) >= DEEPEST:
            raise ValueError(f"a clique has {len(around) + 1} axes, expected at most {DEEPEST}")
        total += math.prod(float(cards[u]) for u in (v, *around))
    if total > MOST_CELLS:
        raise ValueError(f"the cliques have {total:.3g} cells, expected at most {MOST_CELLS:.3g}")


def check_factors(
    cards: Ints, scope_ptr: Ints, scope: Ints, table_ptr: Ints, factors: Ints, role: Ints
) -> None:
    """Refuse factors whose arrays do not fit one another."""
    check_ints(scope_ptr, scope, table_ptr, factors, role)
    check_length(len(table_ptr), len(scope_ptr), "table_ptr")
    check_length(len(role), len(cards), "role")
    check_offsets(scope_ptr, len(scope), "scope_ptr")
    check_range(scope, 0, len(cards), "scope")
    check_range(factors, 0, len(scope_ptr) - 1, "factors")
    check_range(role, t.FREE, t.MASKED + 1, "role")
    for f, found in enumerate(np.diff(table_ptr).tolist()):
        cells = math.prod(map(float, cards[scope[scope_ptr[f] : scope_ptr[f + 1]]]))
        if table_ptr[f] < 0 or cells != found:
            raise ValueError(f"table {f}: expected {cells:.15g} cells, found {found}")


MOST_IN_A_MASK = 62
"""Variables whose sets fit a mask."""
MOST_VARIABLES = 30
"""Variables whose subsets are listed one by one."""


def check_families(ptr: Anything, masks: Anything, scores: Anything, most: int = MOST_VARIABLES) -> None:
    """Raise TypeError or ValueError unless these are scored parent sets of at most `most` variables."""
    check_ints(ptr, masks)
    check_doubles(scores)
    n = len(ptr) - 1
    if not 1 <= n <= most:
        raise ValueError(f"expected 1 to {most} variables, found {n}")
    check_shape("scores", scores, len(masks))
    if ptr[0] != 0 or ptr[-1] != len(masks) or (np.diff(ptr) < 1).any():
        raise ValueError(
            "ptr: expected offsets from 0 to the number of sets, one set or more for each variable"
        )
    child = np.repeat(np.arange(n), np.diff(ptr))
    if (masks < 0).any() or (masks >> n).any() or (masks >> child & 1).any():
        raise ValueError(f"masks: expected sets of {n} variables without the child")
    if np.isnan(scores).any() or (scores == np.inf).any():
        raise ValueError("scores: expected numbers below infinity")


def check_walk(
    ptr: Anything, masks: Anything, scores: Anything, parents: Anything, uniforms: Anything, arcs: Anything
) -> None:
    """Raise TypeError or ValueError unless a chain can start from these parents; cycles are not looked for."""
    check_families(ptr, masks, scores, MOST_IN_A_MASK)
    check_ints(parents)
    check_doubles(uniforms, arcs)
    n = len(ptr) - 1
    check_shape("parents", parents, n)
    check_shape("uniforms", uniforms, len(uniforms), 5)
    check_shape("arcs", arcs, n, n)
    if (parents < 0).any() or (parents >> n).any() or (parents >> np.arange(n) & 1).any():
        raise ValueError(f"parents: expected sets of {n} variables without the child")
    if uniforms.size and not (uniforms.min() >= 0.0 and uniforms.max() < 1.0):
        raise ValueError("uniforms: expected numbers from 0 to below 1")


def check_uniforms(ptr: Anything, uniforms: Anything) -> None:
    """Raise TypeError or ValueError unless these are rows of enough numbers in [0, 1) to draw a network each."""
    check_doubles(uniforms)
    n = len(ptr) - 1
    check_shape("uniforms", uniforms, len(uniforms), n * (n + 3))
    if ((uniforms < 0) | (uniforms >= 1)).any():
        raise ValueError("uniforms: expected numbers from 0 up to but not including 1")
