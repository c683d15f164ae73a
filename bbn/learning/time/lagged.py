"""Structures that reach back in time: a plain graph in which "Rain[-1]" is the Rain of the slice before.

Sequences become a table with a column for every variable and one for each of its lags, and a row for every step that
has enough steps before it. So a family over time is a family like any other, and searches score it with the same cache
(Friedman, Murphy and Russell 1998). Lagged columns have no parents: arcs point forward in time, or stay in a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn.core.errors import DataError, ModelError, nearest
from bbn.core.frozen import Array
from bbn.data import Block, DataSource, code
from bbn.data.columns import read_table
from bbn.data.reading import Reading
from bbn.data.streams.stream import Streamed
from bbn.inference.time.sequences import one_table
from bbn.learning.structure.structure import Structure, blank, observe, read_structure, states_of
from bbn.learning.time.sequence_data import SequenceData, row_weights, step_table
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.network import BayesianNetwork
from bbn.model.previous import in_slice, renamed, split_name
from bbn.model.variable import Continuous, State, Variable, check_states

LAG = "lag"
"""The attribute of a graph that says how far back its arcs may reach."""


class Told(NamedTuple):
    """How rows make sequences: the columns that name them and their steps, or how long each is."""

    sequence: str | None = None
    time: str | None = None
    lengths: Sequence[int] | None = None

    @property
    def anything(self) -> bool:
        """Whether there are sequences at all."""
        return any(own is not None for own in self)


def reaches_back(structure: Any, told: Told) -> bool:
    """Whether a structure is a graph over time: from a search, or with a node of a slice back."""
    if isinstance(structure, BayesianNetwork):
        return False
    if hasattr(structure, "predecessors"):
        return LAG in structure.graph or (told.anything and any(map(_is_back, structure.nodes)))
    if not told.anything or not isinstance(structure, list | tuple):
        return False
    return any(_is_back(end) for arc in structure if isinstance(arc, Sequence) for end in arc)


def _is_back(name: Any) -> bool:
    return isinstance(name, str) and (split_name(name)[1] or 0) < 0


# A search: sequences as a table with lagged columns


def lagged_source(data: Any, told: Told, lag: int, reading: Reading) -> DataSource:
    """The steps that have `lag` steps before them, as rows; "Rain[-1]" is a column beside "Rain"."""
    if isinstance(lag, bool) or not isinstance(lag, int | np.integer) or lag < 1:
        raise ValueError(f"lag is {lag!r}; expected a whole number of steps, at least 1")
    data, told, variables = _discovered(data, told, reading)
    if not variables:
        raise DataError("the data have no column besides those that name sequences and steps")
    dyn = _unlinked(variables)
    options = {"weights": reading.weights, "missing": reading.missing, "unseen": reading.unseen}
    sequences = SequenceData(dyn, data, *told, **options)
    if sequences.incomplete:
        raise DataError(
            f"hill_climb needs complete sequences, but there are missing values or steps in "
            f"{sequences.incomplete[0]!r}; bbn.fit_em learns the tables of a known structure from such data"
        )
    longest = max(int(np.diff(part.ptr).max()) for part in sequences.parts())
    if longest <= lag:
        raise DataError(
            f"no sequence is longer than {lag} step{'s' * (lag != 1)}, so the data do not show what follows what"
        )
    columns = [v if not k else renamed(v, in_slice(v.name, -k)) for k in range(lag + 1) for v in variables]
    source: DataSource = LaggedParts(sequences, columns, int(lag))
    if sequences.in_memory:
        source = next(iter(source.tables()))  # type: ignore[attr-defined]
    return source


def _discovered(data: Any, told: Told, reading: Reading) -> tuple[Any, Told, list[Variable]]:
    """The data as one table or stream, and the variables of its columns, except those that name sequences."""
    roles = [own for own in (told.sequence, told.time, reading.weights) if isinstance(own, str)]
    if isinstance(data, Streamed):
        found = [v for v in (*data.variables, *map(Continuous, data.continuous)) if v.name not in roles]
        return data, told, found
    data, lengths = one_table(data)
    if lengths is not None:
        if told.anything:
            raise DataError("a list of tables is one sequence each; leave out sequence=, time= and lengths=")
        told = Told(lengths=lengths)
    table = read_table(data)
    names = [name for name in table.names if name not in roles]
    for what, name in (("sequence", told.sequence), ("time", told.time)):
        if name is not None and name not in table.names:
            raise DataError(f"{what}={name!r} is not a column of the data{nearest(name, table.names)}")
    own = reading._replace(weights=None)._asdict()
    coded = code(table, names=names, extra="ignore", **own)
    return table, told, [*coded.variables, *map(Continuous, coded.continuous)]


def _unlinked(variables: Sequence[Variable]) -> DynamicNetwork:
    """A dynamic network of these variables without any arc, to read sequences with."""
    return DynamicNetwork([], [blank(v, ()) for v in variables])


class LaggedParts:
    """Sequences with their lags as a data source, part by part.

    Parameters
    ----------
    data
        The sequences.
    columns
        The variables and their lags, "Rain[-1]" and so on.
    lag
        Steps that a row needs before it.
    """

    def __init__(self, data: SequenceData, columns: Sequence[Variable], lag: int) -> None:
        self.data, self.columns, self.lag = data, tuple(columns), lag
        self.variables = tuple(v for v in columns if not isinstance(v, Continuous))
        self.continuous = tuple(v.name for v in columns if isinstance(v, Continuous))
        self.incomplete: tuple[str, ...] = ()
        sizes = [(table.n_rows, table.total) for table in self.tables()] if not data.in_memory else []
        self.n_rows = sum(n for n, _ in sizes)
        self.total = float(sum(total for _, total in sizes))

    def tables(self) -> Any:
        """The rows of each part as a table."""
        for part in self.data.parts():
            steps = np.flatnonzero(part.position >= self.lag)
            yield step_table(self.data.dyn, part, steps, self.columns, row_weights(part))

    def counts(self, families: Sequence[Sequence[str]]) -> Sequence[NDArray[Any]]:
        """One contingency table per family."""
        total: list[NDArray[Any]] | None = None
        for table in self.tables():
            own = [np.asarray(counted) for counted in table.counts(families)]
            total = own if total is None else [a + b for a, b in zip(total, own, strict=True)]
        return total or []

    def reduce(self, f: Callable[[Block], Sequence[Array]]) -> list[Array]:
        """The sums over parts of what f gives."""
        total: list[Array] | None = None
        for table in self.tables():
            own = table.reduce(f)
            total = own if total is None else [a + b for a, b in zip(total, own, strict=True)]
        return total or []


def backward_arcs(columns: Iterable[Variable]) -> list[tuple[str, str]]:
    """Every arc into a lagged column, which no search may make."""
    names = [v.name for v in columns]
    lagged = [name for name in names if split_name(name)[1] is not None]
    return [(a, b) for b in lagged for a in names if a != b]


# Learning: a graph with lags as a dynamic network


def refuse_declared(dyn: DynamicNetwork, reading: Reading) -> None:
    """DataError if states or continuous variables are declared for a dynamic network, which already says both."""
    for name, states in (reading.states or {}).items():
        check_states(name, states_of(states), dyn.states(name))
    named = [reading.continuous] if isinstance(reading.continuous, str) else list(reading.continuous or ())
    for name in named:
        if name not in dyn.continuous:
            raise DataError(
                f"continuous= names {name!r}, which the dynamic network does not say is continuous"
            )


def as_dynamic(
    structure: Any,
    data: Any,
    told: Told,
    reading: Reading,
    hidden: Mapping[str, Sequence[State]] | Iterable[str] | None = None,
) -> tuple[DynamicNetwork, Any, Told]:
    """The dynamic network, with blank tables, of a graph or arcs whose nodes "Rain[-1]" lie a slice back.

    The first slice has the arcs within a slice alone, and so has each that does not reach back far enough. The data
    come back as one table, with the sequences that it has.
    """
    shape = read_structure(structure)
    parents = _checked_lags(shape)
    plain = Structure(
        dict.fromkeys(parents, ()),
        {name: states for name, states in shape.states.items() if name in parents},
        None,
        tuple(name for name in shape.continuous if name in parents),
    )
    if isinstance(data, Streamed):
        variables = _streamed_variables(plain, data, reading, hidden)
    else:
        data, lengths = one_table(data)
        if lengths is not None:
            if told.anything:
                raise DataError(
                    "a list of tables is one sequence each; leave out sequence=, time= and lengths="
                )
            told = Told(lengths=lengths)
        data = read_table(data)
        roles = (told.sequence, told.time, reading.weights if isinstance(reading.weights, str) else None)
        columns = data._replace(names=tuple(name for name in data.names if name not in roles))
        variables, _ = observe(plain, columns, reading._replace(weights=None), hidden)

    def placed(name: str) -> Variable:
        own, at = split_name(name)
        return variables[own] if at is None else renamed(variables[own], name)

    later = [blank(variables[name], tuple(map(placed, own))) for name, own in parents.items()]
    first = [
        blank(variables[name], tuple(placed(p) for p in own if split_name(p)[1] is None))
        for name, own in parents.items()
        if any(split_name(p)[1] is not None for p in own)
    ]
    return DynamicNetwork(first, later), data, told


def _checked_lags(shape: Structure) -> dict[str, tuple[str, ...]]:
    """The parents of each variable of a slice; ModelError if an arc leads back in time."""
    plain = {name: own for name, own in shape.parents.items() if split_name(name)[1] is None}
    for name, own in shape.parents.items():
        base, at = split_name(name)
        if at is None:
            continue
        if at >= 0:
            raise ModelError(
                f"node {name!r}: a node of a slice back ends in a negative number, such as '[-1]'"
            )
        if own:
            raise ModelError(
                f"the arc {own[0]!r} → {name!r} leads back in time; expected arcs into the slice itself"
            )
        plain.setdefault(base, ())
    return plain


def _streamed_variables(
    shape: Structure, data: Streamed, reading: Reading, hidden: Any
) -> dict[str, Variable]:
    """The variables of a stream's columns, hidden ones with the states that are given."""
    unseen = dict(hidden) if isinstance(hidden, Mapping) else {}
    declared = {**(reading.states or {}), **shape.states, **unseen}
    found = {v.name: v for v in (*data.variables, *map(Continuous, data.continuous))}
    variables: dict[str, Variable] = {}
    for name in shape.parents:
        if name in shape.continuous:
            variables[name] = Continuous(name)
        elif name in declared:
            own = declared[name]
            variables[name] = own if isinstance(own, Variable) else Variable(name, own)
        elif name in found:
            variables[name] = found[name]
        else:
            raise DataError(f"the data have no column {name!r}{nearest(name, found)}")
    return variables
