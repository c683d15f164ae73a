"""The most probable path: the states of all variables in all steps together (Viterbi 1967).

The chain's matrices hold maxima instead of sums: what is not in the chain's state is maximised out of each slice,
variable by variable, and read back once the chain's own path is known. Everything is a logarithm here, so only
additions and comparisons are made and no product can underflow. The k best paths are those of the unrolled network, and
so is the best one where the chain does not fit or would take longer (`prices`).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import require_table
from bbn.core.errors import BudgetError, EvidenceError, ImpossibleEvidenceError, TimeLimitError
from bbn.core.frozen import Array
from bbn.inference.time.chain import distinct_rows, slices_for, state_likelihood
from bbn.inference.time.numbers import hidden_numbers, log_densities, numbers_of
from bbn.inference.time.prices import is_wide
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import BEFORE, NOTHING, Slices
from bbn.kernels.contracts.types import Int32s
from bbn.kernels.watch import check
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.evidence import Virtual
from bbn.model.previous import in_slice
from bbn.results.beliefs import Path


def best_paths(dyn: DynamicNetwork, sequences: Sequences, k: int | None, limit: Any = None) -> list[Any]:
    """The best path of each sequence, or the list of its k best."""
    if k is None and is_wide(dyn, sequences, limit, beliefs=False):
        try:
            return [_k_best(dyn, sequences.only(s), 1, limit)[0] for s in range(len(sequences.names))]
        except TimeLimitError:
            raise
        except BudgetError:
            pass  # the chain fits, or says what does not
    slices = slices_for(dyn, sequences, limit)
    if len(dyn.continuous) == len(dyn.names):
        raise EvidenceError(
            "all variables are continuous: a path is of states; smooth gives the most probable numbers"
        )
    if dyn.continuous and hidden_numbers(slices, sequences):
        raise EvidenceError(
            "numbers that later slices depend on were not observed, and hidden states with them have no exact best path"
        )
    if k is not None:
        return [_k_best(dyn, sequences.only(s), k, limit) for s in range(len(sequences.names))]
    n, size = sequences.n_steps, slices.n_states
    kind = np.minimum(sequences.position, slices.kinds - 1)
    which = np.zeros(n, np.int32)
    starts: list[_Best] = []
    steps: list[_Best] = []
    for kind_ in range(slices.kinds):
        own = np.flatnonzero(kind == kind_)
        rows, index, count = distinct_rows(slices, sequences, own)
        found = steps if kind_ else starts
        which[own] = len(found) + index
        found += [
            _maximised(slices, kind_, {name: int(codes[p]) for name, codes in rows.items()}, limit)
            for p in range(count)
        ]
    matrices = np.array([best.values[slices.row_of_state] for best in steps]).reshape(-1, size, size)
    path, logs = np.empty(n, np.int32), np.empty(len(sequences.names))
    kernels.chain.best_paths(
        sequences.ptr,
        np.array([best.values for best in starts]),
        which[sequences.ptr[:-1]].copy(),
        matrices if len(matrices) else np.zeros((1, size, size)),
        which,
        _log_likelihood(slices, sequences, kind),
        path,
        logs,
    )
    if np.isneginf(logs).any():
        where = sequences.names[int(np.argmin(logs))]
        raise ImpossibleEvidenceError(
            f"the evidence{f' of sequence {where!r}' * sequences.several} has probability 0"
        )
    codes = _codes(slices, sequences, kind, path, which, starts, steps)
    states = {}
    for name, own in codes.items():
        labels = dyn.states(name)
        states[name] = [labels[code] for code in own.tolist()]
    ptr = sequences.ptr.tolist()
    return [
        Path({name: own[a:b] for name, own in states.items()}, float(logs[s]), int(sequences.origins[s]))
        for s, (a, b) in enumerate(pairwise(ptr))
    ]


class _Best(NamedTuple):
    """The maxima of a slice for one row of evidence: over (passed on, state), or (state,) in the first slice."""

    values: Array
    given: Mapping[str, int]
    traced: list[tuple[str, tuple[str, ...], Any]]
    """What was maximised out, in order: the variable, the variables its best state depends on, and that state."""


def _maximised(slices: Slices, kind: int, given: Mapping[str, int], limit: Any) -> _Best:
    """Max-product elimination of all but the state and what was passed on."""
    tree = slices.trees[kind]
    given = {name: code for name, code in given.items() if code < slices.variables[name].card}
    tables: list[tuple[tuple[str, ...], Array]] = []
    cards = dict(zip(tree.names, tree.cards.tolist(), strict=True))
    for c in tree.conditionals:
        names = tuple(v.name for v in (*c.parents, c.variable))
        with np.errstate(divide="ignore"):
            table = np.log(c.table)
        index = tuple(given.get(n, slice(None)) for n in names)
        tables.append((tuple(n for n in names if n not in given), table[index]))
    hidden = [n for n in slices.core if n not in given]
    traced = []
    while hidden:
        name = min(hidden, key=lambda n: (_joined_size(n, tables, cards), n))
        hidden.remove(name)
        own = [entry for entry in tables if name in entry[0]]
        tables = [entry for entry in tables if name not in entry[0]]
        axes = tuple(dict.fromkeys(n for names, _ in own for n in names if n != name))
        whole = _sum(own, (*axes, name), cards, limit)
        traced.append((name, axes, whole.argmax(axis=-1)))
        tables.append((axes, whole.max(axis=-1)))
    values = _sum(tables, tuple(tree.scope), cards, limit)
    shape = (slices.n_states,) if kind == 0 else (-1, slices.n_states)
    return _Best(values.reshape(shape), dict(given), traced)


def _joined_size(name: str, tables: list[tuple[tuple[str, ...], Array]], cards: Mapping[str, int]) -> float:
    around = {n for names, _ in tables if name in names for n in names}
    return float(np.prod([float(cards[n]) for n in around]))


def _sum(
    tables: list[tuple[tuple[str, ...], Array]], axes: tuple[str, ...], cards: Mapping[str, int], limit: Any
) -> Array:
    """The tables added up, over these axes in this order."""
    require_table([cards[n] for n in axes], "the best states of a slice", "observe more of it", limit)
    total = np.zeros([cards[n] for n in axes])
    for names, table in tables:
        order = sorted(range(len(names)), key=lambda k: axes.index(names[k]))
        shape = [cards[n] if n in names else 1 for n in axes]
        total = total + table.transpose(order).reshape(shape)
    return total


def _log_likelihood(slices: Slices, sequences: Sequences, kind: Any) -> Array:
    """ln of how likely each step's evidence is in each state; emissions that are not observed at their best."""
    offset = np.zeros(sequences.n_steps)
    with np.errstate(divide="ignore"):
        logs = np.log(state_likelihood(slices, sequences, kind, offset, best=True)) + offset[:, None]
    if sequences.numbers:
        for k in range(slices.kinds):
            steps = np.flatnonzero(kind == k)
            logs[steps] += log_densities(numbers_of(slices, k), sequences, steps, slices.n_states)
    return np.ascontiguousarray(logs)


def _codes(
    slices: Slices,
    sequences: Sequences,
    kind: Any,
    path: Int32s,
    which: Int32s,
    starts: list[_Best],
    steps: list[_Best],
) -> dict[str, Any]:
    """The code of every discrete variable in every step of the best paths."""
    n = len(path)
    codes: dict[str, Any] = {name: own[path] for name, own in slices.of_state.items() if name != NOTHING.name}
    for name, emission in slices.emissions.items():
        weights = sequences.likelihoods.get(name, np.ones((1, emission.variable.card)))
        table = emission.tables[kind, :-1, path] * weights
        best = table.argmax(axis=1)
        own = sequences.codes.get(name)
        codes[name] = best if own is None else np.where(own < emission.variable.card, own, best)
    for name in slices.core:
        codes[name] = np.empty(n, np.int64)
    if slices.core:
        first = kind == 0
        for t in range(n):
            check()
            best_ = starts[which[t]] if first[t] else steps[which[t]]
            found = dict(best_.given)
            for name in slices.state:
                found[name] = int(slices.of_state[name][path[t]])
            if not first[t]:
                for name in slices.passed:
                    found[name + BEFORE] = (
                        int(slices.of_state[name][path[t - 1]]) if name in slices.of_state else 0
                    )
            for name, axes, table in reversed(best_.traced):
                found[name] = int(table[tuple(found[a] for a in axes)])
            for name in slices.core:
                codes[name][t] = found[name]
    return {name: codes[name] for name in slices.dyn.names if name in codes}


def _k_best(dyn: DynamicNetwork, one: Sequences, k: int, limit: Any) -> list[Path]:
    """The k best paths of one sequence, by the unrolled network."""
    steps = one.n_steps
    evidence: dict[str, Any] = {}
    for name, codes in one.codes.items():
        variable = dyn.variable(name)
        for t in np.flatnonzero(codes < variable.card).tolist():
            evidence[name if name in dyn.static else in_slice(name, t)] = variable.states[codes[t]]
    for name, numbers in one.numbers.items():
        evidence |= {
            in_slice(name, t): float(numbers[t]) for t in np.flatnonzero(~np.isnan(numbers)).tolist()
        }
    for name, own in one.likelihoods.items():
        told = np.flatnonzero((own != 1).any(axis=1)).tolist()
        if name in dyn.static and told:  # one variable, whatever step it is told in
            weights = own.prod(axis=0)
            if name in evidence:
                weights = weights * (np.arange(len(weights)) == dyn.variable(name).code(evidence[name]))
            evidence[name] = Virtual(dict(zip(dyn.states(name), weights.tolist(), strict=True)))
        elif told:
            evidence |= {
                in_slice(name, t): Virtual(dict(zip(dyn.states(name), own[t].tolist(), strict=True)))
                for t in told
            }
    paths = []
    for found in dyn.unroll(steps).mpe(evidence, k, memory_limit=limit):
        known = {**evidence, **found.states}
        states = {
            name: [known[name if name in dyn.static else in_slice(name, t)] for t in range(steps)]
            for name in dyn.names
            if name not in dyn.continuous
        }
        paths.append(Path(states, found.log_probability, int(one.origins[0])))
    return paths
