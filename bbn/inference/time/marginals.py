"""From what passes over a chain give to the beliefs of every variable.

A variable of the chain's state is summed out of P(state). An emission has its posterior from its table; what the tree
summed out from the matrices of the slice with each of its states in turn, between what came before and what follows.
"""

from __future__ import annotations

import numpy as np

from bbn.core.frozen import Array
from bbn.inference.time.chain import Chain
from bbn.inference.time.log_passes import log_sides
from bbn.inference.time.numbers import moments
from bbn.inference.time.passes import Passed, is_lost
from bbn.kernels.contracts.types import Int32s
from bbn.kernels.watch import check


def beliefs_of(
    chain: Chain, alpha: Array, gamma: Array, right: Array, shifted: bool = False
) -> dict[str, Array]:
    """Variable to (steps, states): given `gamma`, P(state) of each step, and, for what was summed out, its two sides.

    `alpha` is P(state | evidence so far) and `right` what its own evidence and what follows multiply it by. Where
    `alpha` is `shifted`, its first row is that of the step before the first.
    """
    slices, sequences = chain.slices, chain.sequences
    found: dict[str, Array] = {}
    for name in slices.dyn.names:
        if name in slices.dyn.continuous:
            continue
        card = slices.variables[name].card
        codes = sequences.codes.get(name)
        if codes is not None and len(codes) and int(codes.max()) < card:  # seen in every step
            found[name] = np.eye(card)[codes]
            continue
        if name in slices.of_state:
            own = gamma @ (slices.of_state[name][:, None] == np.arange(card)).astype(float)
        elif name in slices.emissions:
            own = _emitted(chain, name, gamma)
        else:
            own = _summed_out(chain, name, alpha if shifted else np.roll(alpha, 1, axis=0), right)
        if codes is not None:
            seen = np.flatnonzero(codes < card)
            own[seen] = 0.0
            own[seen, codes[seen]] = 1.0
        found[name] = own
    if slices.dyn.continuous:
        found |= moments(slices, sequences, chain.kind, gamma)
    return found


def _emitted(chain: Chain, name: str, gamma: Array) -> Array:
    """P(o) = Σ_z P(z) P(o | z), or with a likelihood λ: Σ_z P(z) λ(o) P(o | z) / Σ_o λ(o) P(o | z)."""
    tables = chain.slices.emissions[name].tables
    own = np.empty((len(gamma), tables.shape[1] - 1))
    for kind in range(len(tables)):
        steps = np.flatnonzero(chain.kind == kind)
        table = tables[kind, :-1]
        if name not in chain.sequences.likelihoods:
            own[steps] = gamma[steps] @ table.T
            continue
        weights = chain.sequences.likelihoods[name][steps]
        total = weights @ table
        share = np.divide(gamma[steps], total, out=np.zeros_like(total), where=total > 0)
        own[steps] = weights * (share @ table.T)
    return own


def refine_lost(chain: Chain, passed: Passed, lag: int | None, found: dict[str, Array]) -> None:
    """In sequences that doubles cannot hold, the beliefs of what was summed out, anew in logarithms."""
    slices, sequences = chain.slices, chain.sequences
    names = [n for n in slices.core if n in found and n not in slices.history]
    ptr = sequences.ptr
    for s in is_lost(chain, passed).tolist() if names else ():
        alpha, own, after = log_sides(chain, s, lag)
        for name in names:
            _summed_out_in_logs(chain, name, int(ptr[s]), alpha, own + after, found[name])
            codes = sequences.codes.get(name)
            if codes is not None:
                seen = np.flatnonzero(codes < slices.variables[name].card)
                found[name][seen] = np.eye(slices.variables[name].card)[codes[seen]]


def _summed_out_in_logs(chain: Chain, name: str, begin: int, alpha: Array, right: Array, own: Array) -> None:
    """As `_summed_out`, of the sequence that begins there."""
    card = chain.slices.variables[name].card
    for kind, patterns in enumerate(chain.patterns):
        inside = (patterns.steps >= begin) & (patterns.steps < begin + len(right))
        for p in np.unique(patterns.row_of[inside]).tolist():
            rows: dict[str, Int32s] = {
                n: np.full(card, codes[p], np.int32) for n, codes in patterns.rows.items() if n != name
            }
            made = chain.slices.matrices(kind, {**rows, name: np.arange(card, dtype=np.int32)}, card)
            with np.errstate(divide="ignore"):
                tables = np.log(made.values)
            tables = tables + made.logs.reshape(-1, *[1] * (tables.ndim - 1))
            for t in patterns.steps[inside & (patterns.row_of == p)].tolist():
                check()
                sides = right[t - begin] if kind == 0 else alpha[t - begin - 1][:, None] + right[t - begin]
                logs = np.logaddexp.reduce((tables + sides).reshape(card, -1), axis=1)
                own[t] = np.exp(logs - np.logaddexp.reduce(logs))


def _summed_out(chain: Chain, name: str, before: Array, right: Array) -> Array:
    """P(x = k) ∝ Σ_ij alpha[t-1, i] M_{e, x=k}[i, j] right[t, j]; `before` is alpha one step earlier."""
    slices = chain.slices
    card = slices.variables[name].card
    own = np.zeros((len(right), card))
    for kind, patterns in enumerate(chain.patterns):
        many = len(patterns.logs) > 1
        for p in range(len(patterns.logs)):
            steps = patterns.steps[patterns.row_of == p] if many else patterns.steps
            if not len(steps) or np.isneginf(patterns.logs[p]):
                continue
            rows: dict[str, Int32s] = {
                n: np.full(card, codes[p], np.int32) for n, codes in patterns.rows.items() if n != name
            }
            found = slices.matrices(kind, {**rows, name: np.arange(card, dtype=np.int32)}, card)
            scale = np.exp(found.logs - patterns.logs[p])
            for k in range(card):
                after = found.values[k] if kind == 0 else before[steps] @ found.values[k]
                own[steps, k] = scale[k] * np.vecdot(after, right[steps])
    total = own.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(own, total, out=np.zeros_like(own), where=total > 0))
