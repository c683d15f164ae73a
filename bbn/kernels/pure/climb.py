"""Single changes of arcs: which of them is best, and what it does to the paths, in numpy.

Matrices are indexed [child, parent]: ``arcs[c, p]`` says whether there is an arc p → c, ``above[c, a]`` whether a path
leads from a to c (each variable is above itself), and ``add_gain[c, p]`` and ``delete_gain[c, p]`` what the score
gains by adding or deleting p → c. A reversal gains what the deletion and the addition the other way gain together.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.checks import check_doubles, check_length
from bbn.kernels.contracts.types import Floats

Flags = NDArray[np.uint8]
ADD, DELETE, REVERSE = range(3)


def check_matrices(arcs: NDArray[np.generic], *others: NDArray[np.generic]) -> None:
    """ValueError if matrices are not square and of one size."""
    n = len(arcs)
    for matrix in (arcs, *others):
        if matrix.shape != (n, n):
            raise ValueError(f"expected matrices of {n} × {n}, found one of shape {matrix.shape}")


def paths(arcs: Flags) -> Flags:
    """above[c, a]: whether a path of arcs leads from a to c. ValueError if there is a cycle."""
    check_matrices(arcs)
    n = len(arcs)
    above = np.eye(n, dtype=np.uint8)
    left = arcs.sum(axis=1, dtype=np.int64)
    ready = np.flatnonzero(left == 0).tolist()
    for p in ready:
        for c in np.flatnonzero(arcs[:, p]).tolist():
            above[c] |= above[p]
            left[c] -= 1
            if left[c] == 0:
                ready.append(c)
    if len(ready) < n:
        raise ValueError("arcs: expected no cycle")
    return above


def make_change(arcs: Flags, above: Flags, kind: int, p: int, c: int) -> None:
    """Add, delete or reverse p → c, in place; ValueError if that makes a cycle, or is not a change of these arcs."""
    check_matrices(arcs, above)
    n = len(arcs)
    if not (0 <= p < n and 0 <= c < n and p != c and kind in (ADD, DELETE, REVERSE)):
        raise ValueError(f"change: expected a kind and two variables, found {(kind, p, c)}")
    if bool(arcs[c, p]) is (kind == ADD) or (kind == ADD and above[p, c]):
        raise ValueError(f"change: {(kind, p, c)} is not possible")
    if kind == ADD:
        arcs[c, p] = 1
        above[above[:, c] == 1] |= above[p]
        return
    arcs[c, p] = 0
    if kind == REVERSE:
        arcs[p, c] = 1
    above[:] = paths(arcs)


def set_gains(
    add_gain: Floats, delete_gain: Floats, c: int, add: list[int], delete: list[int], values: Floats
) -> float:
    """Set what arcs into c gain, and give the term of its family as it is, the last of `values`.

    Before it are the terms with one more parent, each of `add`, and with one less, each of `delete`; nothing is gained
    by other parents. A family too large to count scores −∞, which must not be a gain on another such.
    """
    check_matrices(add_gain, delete_gain)
    n = len(add_gain)
    check_doubles(values)
    check_length(len(values), len(add) + len(delete) + 1, "values")
    if not all(0 <= v < n for v in (c, *add, *delete)):
        raise ValueError(f"expected variables from 0 to {n - 1}, found {(c, add, delete)}")
    term = max(float(values[-1]), -sys.float_info.max)
    add_gain[c] = delete_gain[c] = -np.inf
    add_gain[c, add] = values[: len(add)] - term
    delete_gain[c, delete] = values[len(add) : -1] - term
    return term


def best_change(
    arcs: Flags,
    above: Flags,
    add_gain: Floats,
    delete_gain: Floats,
    allowed: Flags,
    required: Flags,
    blocked: Flags,
    most: int,
    tie: float,
    least: float,
    bar: float,
) -> tuple[int, int, int, float]:
    """The kind, parent, child and gain of the best change that gains more than `least`; the kind is −1 if none does.

    A change makes no cycle, adds only arcs that are allowed, deletes none that is required and gives no child more than
    `most` parents. Where `blocked` is set it must gain more than `bar`. Of changes within `tie` of the best it is the
    one into the last child, of these the first by kind, of these the first by parent.
    """
    check_matrices(arcs, above, add_gain, delete_gain, allowed, required, blocked)
    n = len(arcs)
    there = arcs.astype(np.bool_)
    room = there.sum(axis=1) < most
    gains = np.full((n, 3, n), -np.inf)
    np.copyto(gains[:, ADD], add_gain, where=(allowed == 1) & ~there & (above.T == 0) & room[:, None])
    removable = there & (required == 0)
    np.copyto(gains[:, DELETE], delete_gain, where=removable)
    heads, tails = np.nonzero(removable & (allowed.T == 1) & room)
    # p → c can be turned around if no other parent of c is below p
    only_way = (there[heads] & (above[:, tails].T == 1)).sum(axis=1) == 1
    heads, tails = heads[only_way], tails[only_way]
    gains[heads, REVERSE, tails] = delete_gain[heads, tails] + add_gain[tails, heads]
    gains[((blocked == 1)[:, None, :]) & ~(gains > bar)] = -np.inf
    gains[~(gains > least)] = -np.inf
    top = gains.max(initial=-np.inf)
    if top == -np.inf:
        return -1, -1, -1, -np.inf
    c = int(np.flatnonzero((gains >= top - tie).any(axis=(1, 2)))[-1])
    kind, p = (int(i) for i in np.argwhere(gains[c] >= top - tie)[0])
    return kind, p, c, float(gains[c, kind, p])
