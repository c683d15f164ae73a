"""The gradient of the log-likelihood in every table entry, row by row, in numpy.

One junction tree serves all rows, and each row visits only the cells that agree with what it observes, so a clique
costs the product of its missing variables' states. Messages are passed as by Shafer and Shenoy (1990): what a table
or a message receives is the product of everything else, never a quotient, so an entry of 0 has its gradient too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.types import Floats, Int32s, Ints


class Tree(NamedTuple):
    """A junction tree with its cliques numbered parents first.

    Clique c has the axes ``axes[axes_ptr[c]:axes_ptr[c + 1]]``, those shared with its parent first, and streams
    ``stream_ptr[c]`` to ``stream_ptr[c + 1]``: its factors, its children's messages, then (but for a root) its own. A
    stream reads a flat array from ``base`` on, with one stride per axis of the clique from ``strides[stride_ptr]`` on.
    """

    cards: Ints
    axes_ptr: Ints
    axes: Ints
    separator: Ints
    """How many leading axes are shared with the parent; -1 for a root."""
    n_factors: Ints
    n_children: Ints
    stream_ptr: Ints
    base: Ints
    stride_ptr: Ints
    strides: Ints
    message_size: int
    """The cells of all messages."""


def gradient_rows(
    tables: Floats, codes: Int32s, weights: Floats, tree: Tree, gradient: Floats, logs: Floats
) -> None:
    """Add each row's gradient, times its weight, to `gradient`, and write ln P(row) to `logs`.

    Parameters
    ----------
    tables : float64 array
        All tables, flat.
    codes : int32 array (rows, variables)
        The code ``card`` means missing.
    weights : float64 array (rows,)
        A row of weight 0 adds nothing.
    tree
        The junction tree.
    gradient : float64 array like `tables`
        Receives Σ weight · ∂ ln P(row) / ∂ entry, each entry taken as free of the others.
    logs : float64 array (rows,)
        -inf where a row is impossible, which adds nothing to the gradient.
    """
    for r in range(len(codes)):
        logs[r] = _add_row(tables, codes[r], float(weights[r]), tree, gradient)


def _add_row(tables: Floats, row: Int32s, weight: float, tree: Tree, gradient: Floats) -> float:
    n = len(tree.n_factors)
    streams = [_unfold(tree, c, row) for c in range(n)]
    up, down = np.zeros(tree.message_size), np.zeros(tree.message_size)
    log_sum = 0.0
    for c in reversed(range(n)):
        factors, children = int(tree.n_factors[c]), int(tree.n_children[c])
        terms = _terms(tables, up, streams[c], factors, children)
        cells = terms.prod(axis=0)
        total = float(cells.sum())
        if not total > 0:
            return -np.inf
        log_sum += float(np.log(total))
        if tree.separator[c] >= 0:
            own = streams[c][factors + children]
            up[own] = 0.0
            np.add.at(up, own, cells / total)
    if weight == 0:
        return log_sum
    for c in range(n):
        factors, children = int(tree.n_factors[c]), int(tree.n_children[c])
        terms = _terms(tables, up, streams[c], factors, children)
        if tree.separator[c] >= 0:
            own = streams[c][factors + children]
            down[own] /= down[np.unique(own)].sum()
            above = down[own]
        else:
            above = np.ones(terms.shape[1])
        total = float((terms.prod(axis=0) * above).sum())
        for s in range(factors + children):
            others = np.delete(terms, s, axis=0).prod(axis=0) * above
            if s < factors:
                np.add.at(gradient, streams[c][s], weight / total * others)
            else:
                down[streams[c][s]] = 0.0
                np.add.at(down, streams[c][s], others)
    return log_sum


def _unfold(tree: Tree, c: int, row: Int32s) -> NDArray[np.int64]:
    """The cells of clique c that agree with the row, last axis fastest: one line of indices per stream."""
    axes = tree.axes[tree.axes_ptr[c] : tree.axes_ptr[c + 1]]
    choices = [
        np.arange(tree.cards[v]) if row[v] == tree.cards[v] else np.array([row[v]], dtype=np.int64)
        for v in axes
    ]
    grids = np.meshgrid(*choices, indexing="ij") if choices else []
    lines = []
    for s in range(int(tree.stream_ptr[c]), int(tree.stream_ptr[c + 1])):
        strides = tree.strides[tree.stride_ptr[s] : tree.stride_ptr[s + 1]]
        index = np.full(grids[0].shape if grids else (1,), tree.base[s], dtype=np.int64)
        for grid, stride in zip(grids, strides, strict=True):
            index = index + grid * stride
        lines.append(index.ravel())
    return np.array(lines, dtype=np.int64)


def _terms(tables: Floats, up: Floats, streams: NDArray[np.int64], factors: int, children: int) -> Floats:
    """One line per factor and child's message, one column per cell."""
    return np.concatenate([tables[streams[:factors]], up[streams[factors : factors + children]]])
