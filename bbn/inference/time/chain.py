"""The chain of some sequences: which matrix leads into each step, and how likely its evidence is in each state.

    alpha[t] ∝ (alpha[t-1] M) · likelihood[t]        gamma[t] = alpha[t] · beta[t]        (Rabiner 1989, eq. 19 to 27)

Each step is divided by its sum; ln P(evidence) is the sum of their logarithms. A pass costs T S² for S joint states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import Ledger, jobs
from bbn.core.frozen import Array
from bbn.core.threads import in_order
from bbn.inference.time.numbers import add_densities, log_densities, numbers_of
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import Slices, compiled
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.dynamic_network import DynamicNetwork

PART = 1 << 15
"""Steps that a thread takes at a time; sums are over parts in order, so that they do not depend on the threads."""
RESCALE = 8
"""Likelihoods multiplied before a row is divided by its largest entry."""


class Chain(NamedTuple):
    """Sequences as arrays for the kernels of `bbn.kernels.chain`."""

    slices: Slices
    sequences: Sequences
    kind: Ints
    """The kind of slice that each step is."""
    patterns: list[Patterns]
    """The distinct evidence on the core, by kind of slice."""
    start: Array
    start_of: Int32s
    matrices: Array
    which: Int32s
    likelihood: Array
    offset: Array
    """What is added to ln P at each step: the logarithms of what matrices and likelihoods were divided by."""


class Patterns(NamedTuple):
    """Distinct rows of evidence on the core, the steps of one kind, and which of the rows each step has."""

    rows: Mapping[str, Int32s]
    steps: Ints
    row_of: Ints
    logs: Array
    begin: int
    """The number of the first of their matrices."""


class Passed(NamedTuple):
    """What a pass over a chain gives."""

    alpha: Array
    """(steps, S): P(state | evidence so far)."""
    scale: Array
    logs: Array
    """ln P of each sequence, -inf where it is impossible."""


def slices_for(dyn: DynamicNetwork, sequences: Sequences, limit: Any = None) -> Slices:
    """The dynamic network compiled, with what has likelihoods taken into the chain's state."""
    slices = compiled(dyn, (), limit)
    widened = [name for name in sequences.likelihoods if name in slices.core]
    return compiled(dyn, widened, limit) if widened else slices


def compile_chain(
    dyn: DynamicNetwork,
    sequences: Sequences,
    limit: Any = None,
    step: int = 0,
    before: Array | None = None,
    slices: Slices | None = None,
) -> Chain:
    """The chain of these sequences; BudgetError if its matrices would not fit.

    One sequence may go on from step `step`, where P(state) was `before` just before it.
    """
    slices = slices or slices_for(dyn, sequences, limit)
    n, size = sequences.n_steps, slices.n_states
    ledger = Ledger(limit)
    ledger.reserve(
        8 * n * (4 * size + 4), f"the beliefs of {n:,} steps", "filter batch by batch, with dyn.start()"
    )
    kind = np.minimum(sequences.position + step, slices.kinds - 1)
    patterns, values = [], []
    begin = 0
    for k in range(slices.kinds):
        steps = np.flatnonzero(kind == k)
        rows, index, count = distinct_rows(slices, sequences, steps)
        what = f"the transitions for {count:,} distinct rows of evidence"
        ledger.reserve(
            16 * count * size * (size if k else 1), what, "observe fewer variables, or fewer at a time"
        )
        found = slices.matrices(k, rows, count)
        patterns.append(Patterns(rows, steps, index, found.logs, begin if k else 0))
        values.append(found.values)
        begin += count if k else 0
    which = np.zeros(n, np.int32)
    offset = np.zeros(n)
    for own in patterns:
        which[own.steps] = own.begin + own.row_of
        offset[own.steps] = own.logs[own.row_of]
    start, start_of = values[0], which[sequences.ptr[:-1]].copy()
    if step:
        assert before is not None
        matrix = np.concatenate(values[1:])[start_of[0]]
        start, start_of = (before @ matrix)[None], np.zeros(1, np.int32)
    likelihood = state_likelihood(slices, sequences, kind, offset)
    if sequences.numbers:
        add_densities(slices, sequences, kind, likelihood, offset)
    likelihood[np.isneginf(offset)] = 0.0
    matrices = np.concatenate(values[1:]) if len(values) > 1 else np.zeros((1, size, size))
    return Chain(
        slices,
        sequences,
        kind,
        patterns,
        np.ascontiguousarray(start),
        start_of,
        np.ascontiguousarray(matrices),
        which,
        likelihood,
        np.where(np.isneginf(offset), 0.0, offset),
    )


def recompiled(chain: Chain, slices: Slices, log_densities_: Array | None = None) -> Chain:
    """The chain of the same evidence under other tables, and with these logarithms of densities (steps, S) as well."""
    offset = np.zeros(len(chain.which))
    patterns, values = [], []
    for k, own in enumerate(chain.patterns):
        found = slices.matrices(k, own.rows, len(own.logs))
        patterns.append(own._replace(logs=found.logs))
        values.append(found.values)
        offset[own.steps] = found.logs[own.row_of]
    likelihood = state_likelihood(slices, chain.sequences, chain.kind, offset)
    if log_densities_ is not None:
        with np.errstate(divide="ignore"):
            logs = log_densities_ + np.log(likelihood) if chain.sequences.codes else log_densities_
        peak = logs.max(axis=1)
        peak[np.isneginf(peak)] = 0.0
        likelihood = np.exp(logs - peak[:, None])
        offset += peak
    impossible = np.isneginf(offset)
    likelihood[impossible] = 0.0
    return chain._replace(
        slices=slices,
        patterns=patterns,
        start=np.ascontiguousarray(values[0]),
        matrices=np.ascontiguousarray(np.concatenate(values[1:])) if len(values) > 1 else chain.matrices,
        likelihood=likelihood,
        offset=np.where(impossible, 0.0, offset),
    )


def distinct_rows(slices: Slices, sequences: Sequences, steps: Ints) -> tuple[dict[str, Int32s], Ints, int]:
    """The distinct rows of evidence on the core among some steps, and which each step has."""
    names = [name for name in slices.core if name in sequences.codes]
    if not names or not len(steps):
        return {}, np.zeros(len(steps), np.int64), 1
    columns = [np.ascontiguousarray(sequences.codes[name][steps]) for name in names]
    first, index = kernels.coding.merge_rows(columns)
    return {name: column[first] for name, column in zip(names, columns, strict=True)}, index, len(first)


def state_likelihood(
    slices: Slices, sequences: Sequences, kind: Ints, offset: Array, best: bool = False
) -> Array:
    """How likely the states observed in each step are in each of the chain's, (steps, S), less what `offset` takes.

    With `best`, an emission that is not observed counts as its most probable state, not as 1.
    """
    likelihood = np.ones((sequences.n_steps, slices.n_states))
    for done, (table, codes) in enumerate(_looked_up(slices, sequences, kind, best), 1):
        kernels.chain.multiply_rows(table, codes, likelihood)
        if done % RESCALE == 0:
            _rescale(likelihood, offset)
    for name, own in sequences.likelihoods.items():
        if name in slices.of_state:
            likelihood *= own[:, slices.of_state[name]]
        else:
            for k in range(slices.kinds):
                steps = np.flatnonzero(kind == k)
                table = slices.emissions[name].tables[k, :-1]
                if best:
                    if name in sequences.codes:  # where it is a state, that was looked up
                        steps = steps[sequences.codes[name][steps] == len(table)]
                    likelihood[steps] *= (own[steps][:, :, None] * table).max(axis=1)
                else:
                    likelihood[steps] *= own[steps] @ table
        _rescale(likelihood, offset)
    return likelihood


def _looked_up(
    slices: Slices, sequences: Sequences, kind: Ints, best: bool
) -> Iterator[tuple[Array, Int32s]]:
    """A table (codes, S) and a code per step for each variable of the state and emission that is observed."""
    for name, codes in sequences.codes.items():
        if name in slices.of_state:
            card = slices.variables[name].card
            agrees = np.ones((card + 1, slices.n_states))
            agrees[:card] = np.arange(card)[:, None] == slices.of_state[name]
            yield agrees, codes
    for name, emission in slices.emissions.items():
        if name not in sequences.codes and not best:
            continue
        tables = emission.tables
        if best and name not in sequences.likelihoods:
            tables = tables.copy()
            tables[:, -1] = tables[:, :-1].max(axis=1)
        unseen = np.full(sequences.n_steps, emission.variable.card, np.int32)
        codes = sequences.codes.get(name, unseen)
        yield tables.reshape(-1, slices.n_states), codes + (kind * tables.shape[1]).astype(np.int32)


def _rescale(likelihood: Array, offset: Array) -> None:
    """Divide each row by its largest entry."""
    peak = likelihood.max(axis=1)
    peak[peak == 0] = 1.0
    likelihood /= peak[:, None]
    offset += np.log(peak)


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
        alpha[rows], logs[s] = _log_forward(chain, s)
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
        _log_backward(chain, s, float(weights[s]), gamma, right, starts, pairs)
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


# Sequences that doubles cannot hold, or that are impossible: the same in logarithms


def _logs_of(chain: Chain, s: int) -> tuple[int, int, Array, Callable[[int], Array], Array]:
    begin, end = (int(t) for t in chain.sequences.ptr[s : s + 2])
    with np.errstate(divide="ignore"):
        start = np.log(chain.start[chain.start_of[s]])
        likelihood = np.log(chain.likelihood[begin:end])
    if chain.sequences.numbers:
        likelihood = _log_numbers(chain, s, likelihood)

    last: list[Any] = [-1, None]  # most steps have the matrix of the step before

    def matrix(t: int) -> Array:
        if chain.which[t] != last[0]:
            with np.errstate(divide="ignore"):
                last[:] = chain.which[t], np.log(chain.matrices[chain.which[t]])
        return np.asarray(last[1])

    return begin, end, start, matrix, likelihood


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


def _log_sum(values: Array, axis: int) -> Array:
    return np.asarray(np.logaddexp.reduce(values, axis=axis))


def _log_alpha(chain: Chain, s: int) -> Array:
    begin, end, start, matrix, likelihood = _logs_of(chain, s)
    alpha = np.empty(likelihood.shape)
    alpha[0] = start + likelihood[0]
    for t in range(begin + 1, end):
        alpha[t - begin] = _log_sum(alpha[t - begin - 1][:, None] + matrix(t), 0) + likelihood[t - begin]
    return alpha


def _log_forward(chain: Chain, s: int) -> tuple[Array, float]:
    """P(state | evidence so far) of one sequence and its ln P, -inf where it is impossible."""
    alpha = _log_alpha(chain, s)
    total = _log_sum(alpha, 1)
    begin, end = (int(t) for t in chain.sequences.ptr[s : s + 2])
    with np.errstate(invalid="ignore"):
        beliefs = np.nan_to_num(np.exp(alpha - total[:, None]))
    return beliefs, float(total[-1] + chain.offset[begin:end].sum())


def log_sides(chain: Chain, s: int, lag: int | None) -> tuple[Array, Array, Array]:
    """Logarithms, in one sequence, of P(state, evidence so far), of its own evidence, and of what follows.

    What follows is that of `lag` steps, or of all (None).
    """
    begin, end, _, matrix, likelihood = _logs_of(chain, s)
    n, beta = end - begin, np.zeros(likelihood.shape)
    if lag is None:
        for t in range(n - 2, -1, -1):
            beta[t] = _log_sum(matrix(begin + t + 1) + (likelihood[t + 1] + beta[t + 1]), 1)
    else:
        for t in range(n if lag else 0):
            for k in range(min(t + lag, n - 1), t, -1):
                beta[t] = _log_sum(matrix(begin + k) + (likelihood[k] + beta[t]), 1)
    return _log_alpha(chain, s), likelihood, beta


def is_lost(chain: Chain, passed: Passed) -> Ints:
    """The sequences that are possible, and that doubles cannot hold."""
    return np.flatnonzero((passed.scale[chain.sequences.ptr[1:] - 1] == 0) & ~np.isneginf(passed.logs))


def _log_backward(
    chain: Chain, s: int, weight: float, gamma: Array, right: Array | None, starts: Array, pairs: Array
) -> None:
    """The backward pass of one sequence, entry by entry limited to what a double holds."""
    begin, end, _, matrix, likelihood = _logs_of(chain, s)
    alpha = _log_alpha(chain, s)
    total = float(_log_sum(alpha[-1], 0))
    beta = np.zeros(alpha.shape[1])
    for t in range(end - 1, begin - 1, -1):
        k = t - begin
        gamma[t] = np.exp(alpha[k] + beta - total)
        onward = likelihood[k] + beta - total
        before = float(_log_sum(alpha[k - 1], 0)) if k else 0.0
        if right is not None:
            right[t] = np.exp(np.minimum(onward + before, 700.0))
        if k == 0:
            starts[chain.start_of[s]] += weight * np.exp(np.minimum(onward, 700.0))
        else:
            pairs[chain.which[t]] += weight * np.exp(np.minimum(alpha[k - 1][:, None] + onward, 700.0))
            beta = _log_sum(matrix(t) + (likelihood[k] + beta), 1)
