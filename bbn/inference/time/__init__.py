"""Questions about time: what `dyn.filter` and its kin (`bbn.inference.dynamic_questions`) call.

Evidence becomes coded sequences (`sequences`), a dynamic network a chain over its interface (`slices`), and both
together arrays for the kernels (`chain`); `marginals` reads every variable's belief off what the passes give. Where
the interface is wide, messages stay products of tables (`factored`).
Continuous variables that are hidden from slice to slice are Kalman's (`kalman`); `particles` samples what is too wide
for all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bbn.core.errors import ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.inference.time.chain import Chain, compile_chain
from bbn.inference.time.factored import wide_beliefs, wide_logs
from bbn.inference.time.log_passes import log_sides
from bbn.inference.time.marginals import beliefs_of, refine_lost
from bbn.inference.time.numbers import hidden_numbers
from bbn.inference.time.passes import Passed, backward, forward, is_lost
from bbn.inference.time.prices import is_wide
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import compiled
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork
from bbn.results.beliefs import Beliefs


def log_evidences(
    dyn: DynamicNetwork, sequences: Sequences, memory_limit: Any = None, n_jobs: int | None = None
) -> Array:
    """ln P of each sequence."""
    if _is_kalman(dyn, sequences, memory_limit):
        from bbn.inference.time.kalman import kalman_logs

        return kalman_logs(dyn, sequences, memory_limit)
    if is_wide(dyn, sequences, memory_limit, beliefs=False):
        return wide_logs(dyn, sequences, memory_limit)
    return forward(compile_chain(dyn, sequences, memory_limit), n_jobs).logs


def sequence_beliefs(
    dyn: DynamicNetwork,
    sequences: Sequences,
    lag: int | None,
    limit: Any = None,
    n_jobs: int | None = None,
    last: int | None = None,
) -> Any:
    """Beliefs given what is at most `lag` steps ahead (None: everything), by sequence; of the `last` steps of each."""
    if _is_kalman(dyn, sequences, limit):
        from bbn.inference.time.kalman import kalman_beliefs

        return kalman_beliefs(dyn, sequences, lag, limit, last=last)
    arrays, logs = chain_beliefs(dyn, sequences, lag, limit, n_jobs)
    return split_answers(dyn, sequences, arrays, logs, last)


def chain_beliefs(
    dyn: DynamicNetwork, sequences: Sequences, lag: int | None, limit: Any = None, n_jobs: int | None = None
) -> tuple[dict[str, Array], Array]:
    """Beliefs given what is at most `lag` steps ahead (None: everything), and ln P of each sequence."""
    if is_wide(dyn, sequences, limit, lag):
        return wide_beliefs(dyn, sequences, None if lag is None else int(lag), limit)
    chain = compile_chain(dyn, sequences, limit)
    passed = forward(chain, n_jobs)
    _require_possible(chain, passed)
    right: Array | None
    if lag is None:
        gamma, right, _, _ = backward(chain, passed, None, True, n_jobs)
    elif lag == 0:
        gamma = passed.alpha
        right = chain.likelihood / np.where(passed.scale > 0, passed.scale, 1.0)[:, None]
    else:
        gamma, right = _fixed_lag(chain, passed, int(lag))
    assert right is not None
    found = beliefs_of(chain, passed.alpha, gamma, right)
    refine_lost(chain, passed, lag, found)
    return found, passed.logs


def _fixed_lag(chain: Chain, passed: Passed, lag: int) -> tuple[Array, Array]:
    """P(state of t | evidence up to t + lag) of all steps, and what its evidence and what follows multiply it by."""
    n = len(chain.which)
    ends = np.repeat(chain.sequences.ptr[1:], np.diff(chain.sequences.ptr))
    beta = np.ones(chain.likelihood.shape)
    longest = int(np.diff(chain.sequences.ptr).max())
    for ahead in range(min(lag, longest - 1), 0, -1):
        check()
        at = np.arange(n) + ahead
        steps = np.flatnonzero(at < ends)
        onward = chain.likelihood[at[steps]] * beta[steps]
        which = chain.which[at[steps]]
        for m in np.unique(which).tolist():
            own = which == m
            beta[steps[own]] = onward[own] @ chain.matrices[m].T
        beta[steps] *= passed.alpha[at[steps] - 1] > 0  # a state that is impossible must not set the scale
        peak = beta[steps].max(axis=1, keepdims=True)
        beta[steps] /= np.where(peak > 0, peak, 1.0)
    gamma = passed.alpha * beta
    total = gamma.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        right = chain.likelihood * beta / (np.where(passed.scale > 0, passed.scale, 1.0)[:, None] * total)
        gamma /= total
    for s in is_lost(chain, passed).tolist():
        rows = slice(int(chain.sequences.ptr[s]), int(chain.sequences.ptr[s + 1]))
        before, _, after = log_sides(chain, s, lag)
        logs = before + after
        gamma[rows], right[rows] = np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None]), 0.0
    return gamma, right


def _is_kalman(dyn: DynamicNetwork, sequences: Sequences, limit: Any) -> bool:
    """Whether numbers are hidden from slice to slice."""
    return bool(dyn.continuous) and hidden_numbers(compiled(dyn, (), limit), sequences)


def _require_possible(chain: Chain, passed: Passed) -> None:
    """ImpossibleEvidenceError that names the first step of a sequence that contradicts those before it."""
    impossible = np.flatnonzero(np.isneginf(passed.logs))
    if not len(impossible):
        return
    sequences, s = chain.sequences, int(impossible[0])
    begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
    seen = passed.alpha[begin:end].sum(axis=1) > 0
    step = begin + int(np.argmin(seen))
    findings: dict[str, object] = {}
    for name, codes in sequences.codes.items():
        variable = chain.slices.dyn.variable(name)
        if codes[step] < variable.card:
            findings[name] = variable.states[codes[step]]
    where = f"sequence {sequences.names[s]!r}, step" if sequences.several else "step"
    shown = ", ".join(f"{name}={state}" for name, state in findings.items()) or "what it says"
    raise ImpossibleEvidenceError(
        f"{where} {step - begin + sequences.origins[s]}: {shown} has probability 0 given the steps before it",
        findings,
    )


def split_answers(
    dyn: DynamicNetwork,
    sequences: Sequences,
    arrays: dict[str, Array],
    logs: Array,
    last: int | None = None,
    more: Callable[[int, int], dict[str, Any]] | None = None,
) -> Any:
    """Beliefs by sequence: all steps, or the last few of each."""
    found = {}
    for s, name in enumerate(sequences.names):
        begin, end = int(sequences.ptr[s]), int(sequences.ptr[s + 1])
        first = begin if last is None else end - last
        own = {
            n: array if (first, end) == (0, len(array)) else array[first:end].copy()
            for n, array in arrays.items()
        }
        extra = more(first, end) if more is not None else {}
        origin = int(sequences.origins[s]) + first - begin
        found[name] = Beliefs(dyn.variables, own, float(logs[s]), origin, **extra)
    return found if sequences.several else next(iter(found.values()))
