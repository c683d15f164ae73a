"""Forward, backward and best paths along chains of states, in numpy.

A chain has S states. Step t is reached from step t − 1 through the matrix ``matrices[which[t]]``, rows from, columns
to, and multiplied by ``likelihood[t]``; the first step of a sequence starts from ``start[start_of[sequence]]``.
Sequences lie end to end, sequence s from step ``ptr[s]`` to ``ptr[s + 1]``. Each step is divided by its sum (Rabiner
1989, section V.A), so no logarithm is taken; where a state that is possible would underflow all the same, the sequence
is given up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.kernels.contracts.chain import FAINT, FAINTEST, LOST, MOST
from bbn.kernels.contracts.types import Floats, Int32s, Ints
from bbn.kernels.watch import check


def forward(
    ptr: Ints,
    start: Floats,
    start_of: Int32s,
    matrices: Floats,
    which: Int32s,
    likelihood: Floats,
    alpha: Floats,
    scale: Floats,
) -> None:
    """Fill `alpha` (steps, S) with P(state | evidence so far) and `scale` (steps,) with what each step was divided by.

    A sequence that is lost has `scale` 0 from that step on.

    Parameters
    ----------
    ptr : int64 array (sequences + 1,)
        Where each sequence begins.
    start : float64 array (starts, S)
        Initial weights.
    start_of : int32 array (sequences,)
        Which of them a sequence starts from.
    matrices : float64 array (matrices, S, S)
        Transitions.
    which : int32 array (steps,)
        The matrix into each step; a sequence's first step has none.
    likelihood : float64 array (steps, S)
        At least 0.
    """
    check_chain(ptr, start, start_of, matrices, which, likelihood)
    floor = max(FAINT, FAINTEST / float(matrices.min(initial=1.0, where=matrices > 0)))
    for s, begin, end in _sequences(ptr):
        alpha[begin:end] = 0.0
        scale[begin:end] = 0.0
        for t in range(begin, end):
            before = start[start_of[s]] if t == begin else alpha[t - 1] @ matrices[which[t]]
            now = before * likelihood[t]
            total = float(now.sum())
            least = float(now.min(initial=np.inf, where=(before > 0) & (likelihood[t] > 0)))
            if not total >= LOST or least < floor * total:
                break
            alpha[t], scale[t] = now / total, total


def backward(
    ptr: Ints,
    weights: Floats,
    start_of: Int32s,
    matrices: Floats,
    which: Int32s,
    likelihood: Floats,
    alpha: Floats,
    scale: Floats,
    gamma: Floats,
    right: Floats | None,
    start_sum: Floats,
    pair_sum: Floats,
) -> None:
    """Fill `gamma` (steps, S) with P(state | all evidence), and add up the gradient in starts and matrices.

    Parameters
    ----------
    ptr, start_of, matrices, which, likelihood
        As in `forward`.
    weights : float64 array (sequences,)
        What a sequence counts in the sums.
    alpha, scale
        What `forward` gave.
    right : float64 array (steps, S) or None
        Receives likelihood · (what follows) / scale: ``alpha[t − 1] @ matrix * right[t]`` is the pair's posterior.
    start_sum, pair_sum
        Like `start` and `matrices`: receive Σ weight · ∂ ln P / ∂ entry. Lost sequences add nothing.
    """
    for s, begin, end in _sequences(ptr):
        gamma[begin:end] = 0.0
        if right is not None:
            right[begin:end] = 0.0
        if scale[end - 1] == 0:
            continue
        beta = np.ones(alpha.shape[1])
        for t in range(end - 1, begin - 1, -1):
            gamma[t] = alpha[t] * beta
            with np.errstate(over="ignore"):
                onward = np.minimum(likelihood[t] * beta / scale[t], MOST)
            if right is not None:
                right[t] = onward
            if t == begin:
                start_sum[start_of[s]] += weights[s] * onward
            else:
                pair_sum[which[t]] += weights[s] * np.outer(alpha[t - 1], onward)
                beta = matrices[which[t]] @ onward


def best_paths(
    ptr: Ints,
    log_start: Floats,
    start_of: Int32s,
    log_matrices: Floats,
    which: Int32s,
    log_likelihood: Floats,
    path: Int32s,
    logs: Floats,
) -> None:
    """Fill `path` (steps,) with the most probable states of each sequence together, and `logs` with its ln P.

    The first of equally probable states is taken; `logs` is -inf where no path is possible (Viterbi 1967).
    """
    check_chain(ptr, log_start, start_of, log_matrices, which, log_likelihood)
    for s, begin, end in _sequences(ptr):
        came: list[NDArray[Any]] = []
        best = log_start[start_of[s]] + log_likelihood[begin]
        for t in range(begin + 1, end):
            each = best[:, None] + log_matrices[which[t]]
            came.append(each.argmax(axis=0))
            best = each.max(axis=0) + log_likelihood[t]
        at = int(best.argmax())
        logs[s] = best[at]
        for t in range(end - 1, begin - 1, -1):
            path[t] = at
            if t > begin:
                at = int(came[t - begin - 1][at])


def multiply_rows(table: Floats, codes: Int32s, out: Floats) -> None:
    """Multiply each row of `out` (steps, S) by the row of `table` (codes, S) that its code names."""
    _check_codes(table, codes, out)
    out *= table[codes]


def add_rows(codes: Int32s, values: Floats, table: Floats) -> None:
    """Add each row of `values` (steps, S) to the row of `table` (codes, S) that its code names."""
    _check_codes(table, codes, values)
    np.add.at(table, codes, values)


def check_chain(
    ptr: Ints, start: Floats, start_of: Int32s, matrices: Floats, which: Int32s, likelihood: Floats
) -> None:
    """ValueError unless the arrays of a chain fit one another."""
    steps, states = likelihood.shape
    if start.shape[1] != states or matrices.shape[1:] != (states, states):
        raise ValueError(
            f"expected {states} states, found starts {start.shape} and matrices {matrices.shape}"
        )
    if (
        len(ptr) != len(start_of) + 1
        or ptr[0] != 0
        or ptr[-1] != steps
        or (len(ptr) > 1 and np.diff(ptr).min() < 1)
    ):
        raise ValueError("ptr: expected offsets from 0 to the number of steps, each sequence of at least one")
    if len(start_of) and not 0 <= start_of.min() <= start_of.max() < len(start):
        raise ValueError(f"start_of: expected numbers from 0 to {len(start) - 1}")
    inner = np.delete(which, ptr[:-1]) if len(which) == steps else None
    if inner is None or (len(inner) and not 0 <= inner.min() <= inner.max() < len(matrices)):
        raise ValueError(f"which: expected {steps} numbers from 0 to {len(matrices) - 1}")


def _check_codes(table: Floats, codes: Int32s, rows: Floats) -> None:
    if len(codes) != len(rows) or rows.shape[1] != table.shape[1]:
        raise ValueError(f"expected {len(codes)} rows of {table.shape[1]}, found {rows.shape}")
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(table):
        raise ValueError(f"codes: expected numbers from 0 to {len(table) - 1}")


def _sequences(ptr: Ints) -> Any:
    for s, (begin, end) in enumerate(zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True)):
        check()
        yield s, begin, end
