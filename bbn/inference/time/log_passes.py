"""Passes along a chain in logarithms: of sequences that doubles cannot hold, or that are impossible.

They cost an exponential for each cell that a pass in doubles multiplies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.frozen import Array
from bbn.inference.time.chain import Chain, state_likelihood
from bbn.inference.time.numbers import log_densities, numbers_of
from bbn.kernels.logarithms import log_sum
from bbn.kernels.watch import check

MOST = 700.0
"""Gradients count at most this logarithm: only an entry that is impossible can reach it."""


class _Logs(NamedTuple):
    """One sequence in logarithms."""

    begin: int
    end: int
    start: Array
    matrix: Callable[[int], Array]
    """The matrix of a number of the chain."""
    likelihood: Array


def _logs_of(chain: Chain, s: int) -> _Logs:
    begin, end = (int(t) for t in chain.sequences.ptr[s : s + 2])
    size = chain.likelihood.shape[1]
    require_memory(
        8 * (4 * chain.likelihood.size + chain.matrices.size + 8 * (end - begin) * size + 3 * size * size),
        f"the beliefs of {len(chain.which):,} steps, and the logarithms of {end - begin:,} of them,",
        "ask about fewer steps at a time",
        chain.limit,
    )
    with np.errstate(divide="ignore"):
        start = np.log(chain.start[chain.start_of[s]])
        likelihood = np.log(chain.likelihood[begin:end])
    if chain.sequences.numbers:
        likelihood = _log_numbers(chain, s, likelihood)

    last: list[Any] = [-1, None]  # most steps have the matrix of the step before

    def matrix(number: int) -> Array:
        if number != last[0]:
            with np.errstate(divide="ignore"):
                last[:] = number, np.log(chain.matrices[number])
        return np.asarray(last[1])

    return _Logs(begin, end, start, matrix, likelihood)


def _log_numbers(chain: Chain, s: int, likelihood: Array) -> Array:
    """The likelihoods of one sequence in logarithms, where densities are too small beside each other for doubles."""
    slices, own = chain.slices, chain.sequences.only(s)
    kind = np.minimum(own.position, slices.kinds - 1)
    rows = slice(int(chain.sequences.ptr[s]), int(chain.sequences.ptr[s + 1]))
    offset = np.zeros(own.n_steps)
    with np.errstate(divide="ignore"):
        logs = np.log(state_likelihood(slices, own, kind, offset))
    for k in range(slices.kinds):
        steps = np.flatnonzero(kind == k)
        logs[steps] += log_densities(numbers_of(slices, k), own, steps, slices.n_states)
    for patterns in chain.patterns:
        inside = (patterns.steps >= rows.start) & (patterns.steps < rows.stop)
        at, lost = patterns.steps[inside] - rows.start, patterns.logs[patterns.row_of[inside]]
        offset[at] += np.where(np.isneginf(lost), 0.0, lost)
        logs[at[np.isneginf(lost)]] = -np.inf
    return np.asarray(logs + (offset - chain.offset[rows])[:, None])


def _log_alpha(chain: Chain, own: _Logs) -> Array:
    """ln P(state, evidence so far) of each step."""
    alpha = np.empty(own.likelihood.shape)
    alpha[0] = own.start + own.likelihood[0]
    for t, number in enumerate(chain.which[own.begin + 1 : own.end].tolist(), 1):
        check()
        alpha[t] = log_sum(alpha[t - 1][:, None] + own.matrix(number), 0) + own.likelihood[t]
    return alpha


def log_forward(chain: Chain, s: int) -> tuple[Array, float]:
    """P(state | evidence so far) of one sequence and its ln P, -inf where it is impossible."""
    own = _logs_of(chain, s)
    alpha = _log_alpha(chain, own)
    total = log_sum(alpha, 1)
    with np.errstate(invalid="ignore"):
        beliefs = np.nan_to_num(np.exp(alpha - total[:, None]))
    return beliefs, float(total[-1] + chain.offset[own.begin : own.end].sum())


def log_sides(chain: Chain, s: int, lag: int | None) -> tuple[Array, Array, Array]:
    """Logarithms, in one sequence, of P(state, evidence so far), of its own evidence, and of what follows.

    What follows is that of `lag` steps, or of all (None).
    """
    own = _logs_of(chain, s)
    n, size = own.likelihood.shape
    which = chain.which[own.begin : own.end]
    beta = np.zeros(own.likelihood.shape)
    if lag is None or lag >= n - 1:
        for t in range(n - 2, -1, -1):
            check()
            beta[t] = log_sum(own.matrix(int(which[t + 1])) + (own.likelihood[t + 1] + beta[t + 1]), 1)
        return _log_alpha(chain, own), own.likelihood, beta
    for ahead in range(lag, 0, -1):  # all steps at once
        onward = own.likelihood[ahead:] + beta[:-ahead]
        for number in np.unique(which[ahead:]).tolist():
            steps = np.flatnonzero(which[ahead:] == number)
            rows = onward[steps]
            for i in range(size):
                check()
                beta[steps, i] = log_sum(rows + own.matrix(number)[i], 1)
    return _log_alpha(chain, own), own.likelihood, beta


def log_backward(
    chain: Chain, s: int, weight: float, gamma: Array, right: Array | None, starts: Array, pairs: Array
) -> None:
    """The backward pass of one sequence, entry by entry limited to what a double holds."""
    own = _logs_of(chain, s)
    alpha = _log_alpha(chain, own)
    so_far = log_sum(alpha, 1)
    beta = np.zeros(alpha.shape[1])
    for k in range(own.end - own.begin - 1, -1, -1):
        check()
        t = own.begin + k
        gamma[t] = np.exp(alpha[k] + beta - so_far[-1])
        onward = own.likelihood[k] + beta - so_far[-1]
        if right is not None:
            right[t] = np.exp(np.minimum(onward + (so_far[k - 1] if k else 0.0), MOST))
        if k == 0:
            starts[chain.start_of[s]] += weight * np.exp(np.minimum(onward, MOST))
        else:
            number = int(chain.which[t])
            pairs[number] += weight * np.exp(np.minimum(alpha[k - 1][:, None] + onward, MOST))
            beta = log_sum(own.matrix(number) + (own.likelihood[k] + beta), 1)
