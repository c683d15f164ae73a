"""The chain of some sequences: which matrix leads into each step, and how likely its evidence is in each state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bbn import kernels
from bbn.core.budget import Ledger
from bbn.core.frozen import Array
from bbn.inference.time.numbers import add_densities
from bbn.inference.time.sequences import Sequences
from bbn.inference.time.slices import Slices, compiled
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.dynamic_network import DynamicNetwork

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
    limit: Any = None
    """The memory limit of the call."""


class Patterns(NamedTuple):
    """Distinct rows of evidence on the core, the steps of one kind, and which of the rows each step has."""

    rows: Mapping[str, Int32s]
    steps: Ints
    row_of: Ints
    logs: Array
    begin: int
    """The number of the first of their matrices."""


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
        limit,
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
