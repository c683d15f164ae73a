"""The interface algorithm: a dynamic network as a chain over joint states of its interface (Murphy 2002, section 3.4).

Slices before t and after it are independent given the interface of t, the variables that the next slice refers to. So a
dynamic network is a chain whose state z is a joint state of the interface, with a matrix

    M_e[i, j] = P(z[t] = j, e[t] | z[t-1] = i)

for each distinct row e of evidence on the rest of a slice. A junction tree of one slice and its interface gives all
of them: with a table of ones over (z[t-1], z[t]) of the row's own, the gradient of that table is M_e. Going the other
way, with the gradient of ln P in M_e as that table, the same tree gives the gradient in every entry of the slice's
tables.

What is observed and has no children (an emission) stays out of the tree: its likelihood multiplies z. So a hidden
Markov model has one matrix. Parents further back are made parents one slice back by copies: "Rain[-1]" in slice t is
what "Rain" was in slice t - 1. A static variable is one that every slice copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import MAX_AXES, require_memory
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.rows.expected_counts import read_families, tabled
from bbn.inference.rows.row_plan import row_plan
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.cpt import CPT
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.previous import in_slice, renamed, split_name
from bbn.model.variable import Continuous, Variable

BEFORE = "\0"
"""Ends the name of a variable of the slice before, in the network of one slice and its interface."""
NOTHING = Variable("\0nothing", ["-"])
"""The state of a chain without an interface."""


class Emission(NamedTuple):
    """A discrete variable that only multiplies the chain's state: its tables by kind of slice."""

    variable: Variable
    tables: Array
    """(kinds, states + 1, S): P(o | z) of each state, then ones, for where it is not observed."""


class Matrices(NamedTuple):
    """Matrices for rows of evidence, each divided by its sum, and the logarithm of that sum (-inf: impossible)."""

    values: Array
    logs: Array


class Layout:
    """The variables of a slice and of its interface, and the tables that they have in each kind of slice.

    Kind k < n_first is slice k; the last kind is every later one.

    Parameters
    ----------
    dyn
        The dynamic network.
    widened
        Names of further variables to take into the state, because their evidence is a likelihood.
    """

    def __init__(self, dyn: DynamicNetwork, widened: Iterable[str] = ()) -> None:
        self.dyn = dyn
        self.widened = tuple(widened)
        self.kinds = dyn.n_first + 1
        self.history = _history(dyn)
        own = [dyn.variable(n) for n in dyn.names if not isinstance(dyn.variable(n), Continuous)]
        copies = [renamed(dyn.variable(split_name(n)[0]), n) for n in self.history]
        self.variables = {v.name: v for v in [*own, *copies]}
        """The discrete variables of a slice, static ones and copies among them."""
        inside = {n for n in dyn.interface if n in self.variables} | set(self.history)
        numeric = [c for c in dyn.template.conditionals if isinstance(c, Gaussian)]
        of_numbers = {_current(p.name, self.history) for c in numeric for p in c.discrete_parents}
        state = [n for n in self.variables if n in inside or n in of_numbers or n in self.widened]
        self.passed = [n for n in state if n in inside] or [NOTHING.name]
        self.state = state or [NOTHING.name]
        if NOTHING.name in (*self.passed, *self.state):
            self.variables[NOTHING.name] = NOTHING

    def conditionals(self, kind: int) -> list[CPT]:
        """The tables of a slice of this kind, its own variables and copies."""
        return [self.conditional(n, kind) for n in self.variables if n != NOTHING.name]

    def conditional(self, name: str, kind: int) -> CPT:
        """The table of a variable in a slice of this kind; variables of the slice before end in BEFORE."""
        variable = self.variables[name]
        plain, lag = split_name(name)
        if lag is not None or (name in self.dyn.static and kind > 0):
            if kind == 0:  # a copy of what is before the start: one state as good as any other
                return CPT.trusted(variable, (), np.eye(variable.card)[0])
            source = name if lag is None else plain if lag == -1 else in_slice(plain, lag + 1)
            before = renamed(self.variables[source], source + BEFORE)
            return CPT.trusted(variable, (before,), np.eye(variable.card))
        cpt = self.dyn.conditional(name, kind)
        assert isinstance(cpt, CPT)
        parents = []
        for parent in cpt.parents:
            own, at = split_name(parent.name)
            if at is None:
                parents.append(parent)
            else:
                source = own if at == -1 else in_slice(own, at + 1)
                parents.append(renamed(parent, source + BEFORE))
        return CPT.trusted(variable, tuple(parents), cpt.table)

    def family_of(self, name: str, kind: int) -> str | None:
        """The name in the dynamic network's template of a variable's table; None for copies."""
        if split_name(name)[1] is not None or name == NOTHING.name or (name in self.dyn.static and kind > 0):
            return None
        return self.dyn.family(name, kind)


class Slices(Layout):
    """A dynamic network compiled: the chain's state, and a junction tree for each kind of slice.

    Parameters
    ----------
    dyn, widened
        As of a `Layout`.
    limit
        The memory limit.
    """

    def __init__(self, dyn: DynamicNetwork, widened: Iterable[str] = (), limit: Any = None) -> None:
        super().__init__(dyn, widened)
        self.kept: dict[Any, Any] = {}
        """Matrices by evidence, for filters that go row by row."""
        self.require_room(limit)
        self.shape = tuple(self.variables[n].card for n in self.state)
        self.n_states = prod(self.shape)
        self.of_state = dict(
            zip(self.state, np.indices(self.shape).reshape(len(self.shape), self.n_states), strict=True)
        )
        """Variable of the state to its code in each of the chain's states."""
        emitted = self._emitted()
        self.emissions = {n: self._emission(n) for n in emitted}
        self.core = [n for n in self.variables if n not in (*self.state, *emitted, NOTHING.name)]
        """What is left: summed out by the tree."""
        self.trees = [self._tree(kind) for kind in range(self.kinds)]

    def require_room(self, limit: Any) -> None:
        """BudgetError that names the interface if its joint states are too many."""
        size = prod(float(self.variables[n].card) for n in self.state)
        passed = prod(float(self.variables[n].card) for n in self.passed)
        listed = ", ".join(repr(n) for n in self.state if n != NOTHING.name)
        what = f"the transitions of the interface ({listed}), which has {size:.6g} joint states,"
        instead = 'filter(..., method="particles") samples instead'
        require_memory(int(min(24 * size * max(size, passed), 1e300)), what, instead, limit)
        if len(self.state) + len(self.passed) >= MAX_AXES:
            raise BudgetError(f"{what} cannot be laid out in {MAX_AXES} axes; {instead}")

    def _emitted(self) -> list[str]:
        """The variables without children whose parents are all in the state."""
        parents = {p for k in range(self.kinds) for c in self.conditionals(k) for p in c.parents}
        return [
            n
            for n in self.variables
            if n not in (*self.state, NOTHING.name)
            and not any(p.name == n for p in parents)
            and all(p.name in self.state for k in range(self.kinds) for p in self.conditional(n, k).parents)
        ]

    def _emission(self, name: str, given: Mapping[str, Array] | None = None) -> Emission:
        variable = self.variables[name]
        tables = np.ones((self.kinds, variable.card + 1, self.n_states))
        for k in range(self.kinds):
            cpt = self.conditional(name, k)
            table = cpt.table if given is None else given[self.dyn.family(name, k)]
            rows = table[self.emission_index(name, k)]
            tables[k, :-1] = np.broadcast_to(rows, (self.n_states, variable.card)).T
        return Emission(variable, tables)

    def emission_index(self, name: str, kind: int) -> tuple[Ints, ...]:
        """The row of an emission's table in each of the chain's states, as an index of its leading axes."""
        return tuple(self.of_state[p.name] for p in self.conditional(name, kind).parents)

    def with_tables(self, given: Mapping[str, Array]) -> Slices:
        """The same structure with other tables, by their names in the dynamic network's template."""
        new = copy(self)
        new.kept = {}
        new.emissions = {name: self._emission(name, given) for name in self.emissions}
        new.trees = []
        for kind, tree in enumerate(self.trees):
            tables = tree.tables.copy()
            for name in tree.names:
                family = self.family_of(name, kind) if name in self.variables else None
                if family is not None:
                    tables[tree.entries(name)] = given[family].ravel()
            new.trees.append(tree.with_tables(tables))
        return new

    def _tree(self, kind: int) -> SliceTree:
        tables = [c for c in self.conditionals(kind) if c.variable.name not in self.emissions]
        if NOTHING.name in self.variables:
            tables.append(CPT.uniform(NOTHING))
        roots = []
        if kind > 0:
            roots = [CPT.uniform(renamed(self.variables[n], n + BEFORE)) for n in self.passed]
        scope = [*(r.variable.name for r in roots), *self.state]
        return SliceTree(BayesianNetwork([*roots, *tables]), [r.variable.name for r in roots], scope)

    @property
    def row_of_state(self) -> Ints:
        """For each of the chain's states, the joint state of what is passed on."""
        index = np.zeros(self.n_states, np.int64)
        for n in self.passed:
            index = index * self.variables[n].card + self.of_state.get(n, 0)
        return index

    def matrices(self, kind: int, rows: Mapping[str, Int32s], n_rows: int) -> Matrices:
        """The matrices of rows of evidence on the core: (rows, S, S), or of the first slice (rows, S)."""
        tree = self.trees[kind]
        values, logs = tree.values(rows, n_rows)
        if kind == 0:
            return Matrices(values.reshape(n_rows, self.n_states), logs)
        return Matrices(values.reshape(n_rows, -1, self.n_states)[:, self.row_of_state], logs)


class SliceTree:
    """The junction tree of one slice and its interface, with a table of each row's own over `scope`."""

    def __init__(self, net: BayesianNetwork, roots: Sequence[str], scope: Sequence[str]) -> None:
        families = read_families(net, [scope])
        self.scope = scope
        self.conditionals = [net[n] for n in net.names if n not in (*roots, NOTHING.name)]
        self.names = tabled(net)
        self.cards = families.cards
        self.plan = row_plan(families)
        self.table_ptr = families.table_ptr
        self.n_own = int(families.table_ptr[-1] - families.table_ptr[-2])
        tables = [np.ones(net[n].table.size) if n in roots else net[n].table.ravel() for n in self.names]
        self.tables = np.concatenate(tables)

    def with_tables(self, tables: Array) -> SliceTree:
        """The same tree with other tables, end to end."""
        new = copy(self)
        new.tables = tables
        return new

    def values(self, rows: Mapping[str, Int32s], n_rows: int) -> tuple[Array, Array]:
        """Per row of evidence the table over the scope, divided by its sum, and the logarithm of that sum."""
        gradient = np.zeros((n_rows, self.n_own))
        logs = np.empty(n_rows)
        self.plan.run(
            self.tables,
            self.codes(rows, n_rows),
            np.ones(n_rows),
            np.zeros(len(self.tables)),
            logs,
            np.ones((n_rows, self.n_own)),
            gradient,
        )
        return gradient, logs

    def gradient(self, rows: Mapping[str, Int32s], own: Array, weights: Array) -> Array:
        """The gradient in all tables of ln Σ own · (the table over the scope), rows weighted and added up."""
        gradient = np.zeros(len(self.tables))
        logs = np.empty(len(own))
        self.plan.run(
            self.tables,
            self.codes(rows, len(own)),
            np.ascontiguousarray(weights),
            gradient,
            logs,
            np.ascontiguousarray(own),
            np.zeros(own.shape),
        )
        return gradient

    def codes(self, rows: Mapping[str, Int32s], n_rows: int) -> Int32s:
        """Rows of evidence in the tree's order, the code ``card`` where there is none."""
        codes = np.empty((n_rows, len(self.names)), np.int32)
        for v, name in enumerate(self.names):
            codes[:, v] = rows[name] if name in rows else self.cards[v]
        return codes

    def entries(self, name: str) -> slice:
        """Where the table of a variable lies."""
        at = self.names.index(name)
        return slice(int(self.table_ptr[at]), int(self.table_ptr[at + 1]))


def _history(dyn: DynamicNetwork) -> list[str]:
    """The copies that a slice needs of discrete variables of slices before it, "Rain[-1]" and so on."""
    deepest: dict[str, int] = {}
    for conditional in dyn.template.conditionals:
        for parent in conditional.parents:
            own, at = split_name(parent.name)
            if at is None or at >= 0 or isinstance(parent, Continuous):
                continue
            # a table looks into the slice before, a Gaussian only at its own
            depth = -at if isinstance(conditional, Gaussian) else -at - 1
            deepest[own] = max(deepest.get(own, 0), depth)
    return [in_slice(own, -k) for own, depth in deepest.items() for k in range(1, depth + 1)]


def _current(name: str, history: Sequence[str]) -> str:
    """A discrete parent of a Gaussian as a variable of the same slice."""
    own, at = split_name(name)
    return name if name in history or at is None else own


def compiled(dyn: DynamicNetwork, widened: Iterable[str] = (), limit: Any = None) -> Slices:
    """The dynamic network compiled, once for each set of variables with likelihoods."""
    key = "slices " + repr(sorted(widened))
    made: Slices | None = dyn.memo.get(key)
    if made is None:
        return dyn.memo.setdefault(key, Slices(dyn, widened, limit))  # type: ignore[no-any-return]
    made.require_room(limit)
    return made
