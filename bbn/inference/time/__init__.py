"""Questions about time: what `dyn.filter` and its kin call.

Evidence becomes coded sequences (`sequences`), a dynamic network a chain over its interface (`slices`), and both
together arrays for the kernels (`chain`); `marginals` reads every variable's belief off what the passes give. Where
the interface is wide, messages stay products of tables (`factored`).
Continuous variables that are hidden from slice to slice are Kalman's (`kalman`); `particles` samples what is too wide
for all of these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from bbn.core.budget import require_memory
from bbn.core.errors import DataError, EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.core.threads import within as limited
from bbn.data.streams.stream import Streamed
from bbn.inference.time.chain import Chain, compile_chain
from bbn.inference.time.factored import wide_beliefs, wide_logs
from bbn.inference.time.log_passes import log_sides
from bbn.inference.time.marginals import beliefs_of, refine_lost
from bbn.inference.time.numbers import hidden_numbers
from bbn.inference.time.passes import Passed, backward, forward, is_lost
from bbn.inference.time.prices import is_wide
from bbn.inference.time.sequences import Sequences, indexed_evidence, read_sequences
from bbn.inference.time.slices import compiled
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.previous import split_name
from bbn.results.beliefs import Beliefs
from bbn.results.posterior import Posterior

METHODS = ("exact", "particles")


def timed(question: Callable[..., Any]) -> Callable[..., Any]:
    """The question, stopped with a TimeLimitError where it takes longer than `time_limit`, or BBN_TIME_LIMIT."""

    @wraps(question)
    def within(*args: Any, time_limit: float | None = None, **options: Any) -> Any:
        with limited(time_limit, "observe more variables, or ask about fewer steps"):
            return question(*args, **options)

    return within


@timed
def filter_(
    dyn: DynamicNetwork,
    evidence: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Any = None,
    method: str = "exact",
    n_particles: int = 1000,
    seed: Any = None,
    memory_limit: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """See `DynamicNetwork.filter`."""
    if method not in METHODS:
        raise EvidenceError(f"no method {method!r}; choose one of {', '.join(METHODS)}")
    if isinstance(evidence, Streamed):
        from bbn.inference.time.stream import filter_batches

        return filter_batches(dyn, evidence, sequence, memory_limit)
    sequences = read_sequences(dyn, evidence, sequence, time, lengths)
    if method == "particles":
        from bbn.inference.time.particles import particle_filter

        return particle_filter(dyn, sequences, n_particles, seed, memory_limit)
    if _is_kalman(dyn, sequences, memory_limit):
        from bbn.inference.time.kalman import kalman_beliefs

        return kalman_beliefs(dyn, sequences, 0, memory_limit)
    arrays, logs = chain_beliefs(dyn, sequences, 0, memory_limit, n_jobs)
    return split_answers(dyn, sequences, arrays, logs)


@timed
@keywords_checked
def smooth(
    dyn: DynamicNetwork,
    evidence: Any,
    lag: int | None = None,
    *,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Any = None,
    memory_limit: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """See `DynamicNetwork.smooth`."""
    if lag is not None and (isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 0):
        raise EvidenceError(f"lag is {lag!r}; expected None or a whole number of steps, at least 0")
    sequences = read_sequences(dyn, evidence, sequence, time, lengths)
    if _is_kalman(dyn, sequences, memory_limit):
        from bbn.inference.time.kalman import kalman_beliefs

        return kalman_beliefs(dyn, sequences, lag, memory_limit)
    arrays, logs = chain_beliefs(dyn, sequences, lag, memory_limit, n_jobs)
    return split_answers(dyn, sequences, arrays, logs)


@timed
def forecast(
    dyn: DynamicNetwork,
    evidence: Any = None,
    horizon: int = 1,
    *,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Any = None,
    memory_limit: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """See `DynamicNetwork.forecast`."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise EvidenceError(f"horizon is {horizon!r}; expected a whole number of steps, at least 1")
    sequences = read_sequences(dyn, evidence, sequence, time, lengths)
    steps = sequences.n_steps + int(horizon) * len(sequences.names)
    states = sum(v.card + 1 for v in dyn.variables)
    require_memory(8 * states * steps, f"beliefs of {steps:,} steps", "forecast fewer steps", memory_limit)
    longer = sequences.extended({v.name: v.card for v in dyn.variables}, int(horizon))
    if _is_kalman(dyn, longer, memory_limit):
        from bbn.inference.time.kalman import kalman_beliefs

        return kalman_beliefs(dyn, longer, 0, memory_limit, last=int(horizon))
    arrays, logs = chain_beliefs(dyn, longer, 0, memory_limit, n_jobs)
    return split_answers(dyn, longer, arrays, logs, int(horizon))


@timed
def viterbi(
    dyn: DynamicNetwork,
    evidence: Any,
    k: int | None = None,
    *,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Any = None,
    memory_limit: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """See `DynamicNetwork.viterbi`."""
    from bbn.inference.time.best_paths import best_paths

    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise EvidenceError(f"k must be a positive whole number, found {k!r}")
    sequences = read_sequences(dyn, evidence, sequence, time, lengths)
    found = best_paths(dyn, sequences, k, memory_limit)
    return dict(zip(sequences.names, found, strict=True)) if sequences.several else found[0]


@timed
def log_likelihood(
    dyn: DynamicNetwork,
    data: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Any = None,
    memory_limit: Any = None,
    n_jobs: int | None = None,
) -> Any:
    """See `DynamicNetwork.log_likelihood`."""
    sequences = read_sequences(dyn, data, sequence, time, lengths, error=DataError)
    logs = log_evidences(dyn, sequences, memory_limit, n_jobs)
    if not sequences.several:
        return float(logs[0])
    import pandas as pd

    return pd.Series(
        logs, index=pd.Index(sequences.names, name=sequence or "sequence"), name="log_likelihood"
    )


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


def query(dyn: DynamicNetwork, target: str, evidence: Any = None, **options: Any) -> Posterior:
    """See `DynamicNetwork.query`."""
    name, at = split_name(target) if isinstance(target, str) else (target, None)
    dyn.variable(name)
    if name in dyn.static and at is None:
        at = 0
    elif at is None or at < 0 or name in dyn.static:
        raise EvidenceError(
            f"the target {target!r} does not say which step; write {name + '[0]'!r} for the first"
        )
    last = max((split_name(key)[1] or 0 for key in evidence or {} if isinstance(key, str)), default=0)
    beliefs = smooth(dyn, indexed_evidence(dyn, evidence, max(at, last) + 1), **options)
    if name in dyn.continuous:
        raise EvidenceError(
            f"{name!r} is continuous; smooth(evidence)[{name!r}] holds its mean and variance in each step"
        )
    answer: Posterior = beliefs.at(at, name)
    return answer


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


__all__ = ["filter_", "forecast", "log_evidences", "log_likelihood", "query", "smooth", "viterbi"]
