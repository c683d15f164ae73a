"""Forward and backward along a chain.

    alpha[t] ∝ (alpha[t-1] M) · likelihood[t]        gamma[t] = alpha[t] · beta[t]        (Rabiner 1989, eq. 19 to 27)

Each step is divided by its sum; ln P(evidence) is the sum of their logarithms. A pass costs T S² for S joint states.
Sequences that doubles cannot hold are passed over again in logarithms (`log_passes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import jobs
from bbn.core.frozen import Array
from bbn.core.threads import in_order
from bbn.inference.time.chain import Chain
from bbn.inference.time.log_passes import log_backward, log_forward
from bbn.kernels.contracts.types import Ints

PART = 1 << 15
"""Steps that a thread takes at a time; sums are over parts in order, so that they do not depend on the threads."""


class Passed(NamedTuple):
    """What a pass over a chain gives."""

    alpha: Array
    """(steps, S): P(state | evidence so far)."""
    scale: Array
    logs: Array
    """ln P of each sequence, -inf where it is impossible."""


def forward(chain: Chain, n_jobs: int | None = None) -> Passed:
    """The forward pass over all sequences."""
    alpha, scale = np.empty(chain.likelihood.shape), np.empty(len(chain.which))

    def work(part: tuple[int, int]) -> None:
        ptr, rows, own = _part(chain, part)
        kernels.chain.forward(
            ptr, chain.start, chain.start_of[own], chain.matrices, chain.which[rows], chain.likelihood[rows],
            alpha[rows], scale[rows],
        )  # fmt: skip

    parts = _parts(chain.sequences.ptr)
    list(in_order(work, parts, min(jobs(n_jobs), len(parts))))
    ptr = chain.sequences.ptr
    with np.errstate(divide="ignore"):
        logs = np.add.reduceat(np.log(scale) + chain.offset, ptr[:-1])
    for s in np.flatnonzero(np.isneginf(logs)).tolist():
        rows = slice(int(ptr[s]), int(ptr[s + 1]))
        alpha[rows], logs[s] = log_forward(chain, s)
        scale[rows] = 0.0
    return Passed(alpha, scale, logs)


def backward(
    chain: Chain, passed: Passed, weights: Array | None = None, keep: bool = False, n_jobs: int | None = None
) -> tuple[Array, Array | None, Array, Array]:
    """(gamma, right, gradient in the starts, gradient in the matrices); `right` where it is to be kept.

    The gradients are those of the divided starts and matrices, sequences weighted.
    """
    ptr = chain.sequences.ptr
    weights = np.ones(len(ptr) - 1) if weights is None else weights
    gamma = np.empty(chain.likelihood.shape)
    right = np.empty(chain.likelihood.shape) if keep else None

    def work(part: tuple[int, int]) -> tuple[Array, Array]:
        own_ptr, rows, own = _part(chain, part)
        starts, pairs = np.zeros(chain.start.shape), np.zeros(chain.matrices.shape)
        kernels.chain.backward(
            own_ptr, weights[own], chain.start_of[own], chain.matrices, chain.which[rows], chain.likelihood[rows],
            passed.alpha[rows], passed.scale[rows], gamma[rows], None if right is None else right[rows], starts, pairs,
        )  # fmt: skip
        return starts, pairs

    parts = _parts(ptr)
    starts, pairs = np.zeros(chain.start.shape), np.zeros(chain.matrices.shape)
    for own_starts, own_pairs in in_order(work, parts, min(jobs(n_jobs), len(parts))):
        starts += own_starts
        pairs += own_pairs
    lost = (passed.scale[ptr[1:] - 1] == 0) & ~np.isneginf(passed.logs)
    for s in np.flatnonzero(lost).tolist():
        log_backward(chain, s, float(weights[s]), gamma, right, starts, pairs)
    return gamma, right, starts, pairs


def _parts(ptr: Ints) -> list[tuple[int, int]]:
    """Runs of sequences with about PART steps each."""
    wanted = np.arange(0, int(ptr[-1]), PART)
    cuts = np.unique(np.searchsorted(ptr[:-1], wanted)).tolist()
    ends = [*cuts[1:], len(ptr) - 1]
    return [(a, b) for a, b in zip(cuts, ends, strict=True) if b > a]


def _part(chain: Chain, part: tuple[int, int]) -> tuple[Ints, slice, slice]:
    """Offsets, steps and sequences of a run of sequences."""
    ptr = chain.sequences.ptr[part[0] : part[1] + 1]
    return ptr - ptr[0], slice(int(ptr[0]), int(ptr[-1])), slice(*part)


def is_lost(chain: Chain, passed: Passed) -> Ints:
    """The sequences that are possible, and that doubles cannot hold."""
    return np.flatnonzero((passed.scale[chain.sequences.ptr[1:] - 1] == 0) & ~np.isneginf(passed.logs))
