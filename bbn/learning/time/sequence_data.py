"""Sequences as learners see them: parts of whole sequences, and their rows as columns of the template's families.

A table in memory is one part; a source larger than memory, sorted by sequence, is read part by part in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.data import Block, CodedTable
from bbn.data.streams.stream import Streamed
from bbn.inference.time.numbers import column
from bbn.inference.time.sequences import Sequences, read_sequences
from bbn.inference.time.whole_sequences import whole_sequences
from bbn.kernels.contracts.types import Ints
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.previous import split_name
from bbn.model.variable import Continuous, Variable


class SequenceData:
    """The sequences to learn from, as a data source whose rows are steps.

    Parameters
    ----------
    dyn
        The dynamic network, which names the variables.
    data, sequence, time, lengths
        As `DynamicNetwork.filter` takes evidence; data from `bbn.open_data` must lie sorted by `sequence`.
    options
        For `bbn.data.code`, and `weights`, one per sequence.
    """

    def __init__(
        self,
        dyn: DynamicNetwork,
        data: Any,
        sequence: str | None = None,
        time: str | None = None,
        lengths: Sequence[int] | None = None,
        **options: Any,
    ) -> None:
        self.dyn = dyn
        weights = options.get("weights")
        if isinstance(data, Streamed):
            if sequence is None:
                raise DataError("data opened by bbn.open_data need sequence=, the column they are sorted by")

            def parts() -> Iterator[Sequences]:
                more = [name for name in (time, weights) if isinstance(name, str)]
                for table in whole_sequences(dyn, data, sequence, more):
                    yield read_sequences(dyn, table, sequence, time, error=DataError, **options)

            self.parts: Callable[[], Iterator[Sequences]] = parts
        else:
            whole = read_sequences(dyn, data, sequence, time, lengths, error=DataError, **options)
            self.parts = lambda: iter([whole])
        self.in_memory = not isinstance(data, Streamed)
        self.n_rows, self.total = 0, 0.0
        seen: dict[str, bool] = {}
        for part in self.parts():
            self.n_rows += part.n_steps
            self.total += float(row_weights(part).sum())
            for name in part.likelihoods:
                raise DataError(f"column {name!r} holds likelihoods; learners take states and numbers")
            for name in (*part.codes, *part.numbers):
                seen[name] = seen.get(name, True) and _complete(dyn, part, name)
        if not self.total > 0:
            raise DataError("every weight is 0; at least one sequence must count")
        self.observed = tuple(seen)
        """The names of the variables that have a column."""
        self.incomplete = tuple(name for name, whole in seen.items() if not whole)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The template's discrete variables whose column was seen."""
        found = self.dyn.template.variables
        return tuple(
            v for v in found if not isinstance(v, Continuous) and split_name(v.name)[0] in self.observed
        )

    def counts(self, families: Sequence[Sequence[str]]) -> Any:
        """Not asked of sequences."""
        raise NotImplementedError

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over parts of what f gives for the steps as rows, numbers under the names of their families."""
        total: list[Array] | None = None
        for part in self.parts():
            kind = np.minimum(part.position, self.dyn.n_first)
            numbers = {
                name: family_column(self.dyn, part, kind, name) for name in self.dyn.template.continuous
            }
            found = list(f(Block({}, row_weights(part), numbers)))
            total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
        assert total is not None
        return total


def _complete(dyn: DynamicNetwork, part: Sequences, name: str) -> bool:
    if name in part.numbers:
        return not bool(np.isnan(part.numbers[name]).any())
    return int(part.codes[name].max()) < dyn.variable(name).card


def row_weights(part: Sequences) -> Array:
    """The weight of each step, that of its sequence."""
    if part.weights is None:
        return np.ones(part.n_steps)
    return np.repeat(part.weights, np.diff(part.ptr))


def family_steps(dyn: DynamicNetwork, kind: Ints, family: str) -> Ints:
    """The steps that have this family of the template, by the kind of slice that each is."""
    plain, at = split_name(family)
    if at is not None and at < 0:
        return np.arange(len(kind))
    if plain in dyn.static:
        return np.flatnonzero(kind == 0)
    kinds = [k for k in range(dyn.n_first + 1) if dyn.family(plain, k) == family]
    return np.flatnonzero(np.isin(kind, kinds))


def family_column(dyn: DynamicNetwork, part: Sequences, kind: Ints, family: str) -> Array:
    """The numbers of a family's child where a step has that family, NaN elsewhere."""
    plain, at = split_name(family)
    if at is not None and at < 0:
        return column(part, plain, -at)
    own = np.full(part.n_steps, np.nan)
    steps = family_steps(dyn, kind, family)
    own[steps] = column(part, plain)[steps]
    return own


def lagged_codes(dyn: DynamicNetwork, part: Sequences, name: str) -> Ints:
    """The codes of a variable in each step, or of slices back ("Rain[-1]"); the card where there is none."""
    plain, at = split_name(name)
    card = dyn.variable(plain).card
    own = part.codes.get(plain)
    if own is None:
        return np.full(part.n_steps, card, np.int64)
    if at is None or at >= 0:
        return own.astype(np.int64)
    shifted = np.full(part.n_steps, card, np.int64)
    shifted[-at:] = own[:at]
    shifted[part.position < -at] = card
    return shifted


def step_table(
    dyn: DynamicNetwork, part: Sequences, steps: Ints, variables: Sequence[Variable], weights: Array
) -> CodedTable:
    """Some steps as the rows of a table, with a column for each variable; that of "Rain[-1]" lies a step back."""
    discrete, codes, numbers = [], {}, {}
    for variable in variables:
        name = variable.name
        plain, at = split_name(name)
        if isinstance(variable, Continuous):
            numbers[name] = column(part, plain, -at if at is not None and at < 0 else 0)[steps]
        else:
            discrete.append(variable)
            own = lagged_codes(dyn, part, name)[steps]
            codes[name] = own.astype(np.uint8 if variable.card <= 255 else np.uint16)
    even = part.weights is None
    return CodedTable(tuple(discrete), codes, len(steps), None if even else weights[steps], None, numbers)
