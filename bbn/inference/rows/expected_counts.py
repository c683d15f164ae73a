"""Expected counts under a network: what EM and gradient ascent ask of data with holes.

For a row d and the table entry w = P(x = k | parents = j), the gradient of the row's log-likelihood is

    ∂ ln P(d) / ∂ w = P(x = k, parents = j | d) / w        (Russell, Binder, Koller and Kanazawa 1995, eq. 4)

so w times the gradient, summed over rows, is the expected count of the entry. One pass over the data gives the gradient
of every entry, computed from the messages without the entry's own table, and the log-likelihood.

States that only zeros agree with are left out where that is cheaper: of counts by the zeros of the tables at hand,
looked for anew at each step, as the next may fill them; of gradients by those of tables that are held, as the slope at
a zero need not be zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bbn.core.budget import Ledger, jobs
from bbn.core.errors import BudgetError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.core.threads import in_order
from bbn.data import Block, CodedTable, DataSource
from bbn.inference.exact.prices import CELL, VISIT
from bbn.inference.exact.runtime_prediction import ROWS_FROM, predicted_cells
from bbn.inference.rows.row_plan import Families, Flags, RowPlan, filtered_plan, row_plan
from bbn.kernels.contracts.types import Int32s, Ints
from bbn.model.deterministic import Deterministic
from bbn.model.expansion import factored_parts, linked
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous

CHUNK = 1024
"""Rows that share one sum; chunks add up in order, so that the answer does not depend on the number of threads."""
INSTEAD = "use fewer parents or states, or fill in more of the data"
STREAMED = 1_000_000
"""What data that are not in memory are taken to have of rows."""
LOOKED_AT = 64
"""The rows whose entries are counted to predict how long a pass takes."""
LOOKING, LOOKING_TABLE, LOOKING_ENTRY = 200_000.0, 1200.0, 8.0
"""Entries that a pass looks at, at least and for each table and each entry of one, from which it is looked for states
that cannot occur: twenty times what that costs."""
MAKING = 8000.0
"""How many such entries fewer, for each table, make it worth the while to make a plan without these states: it takes
ten times as many, and serves one step after another."""


class Expected(NamedTuple):
    """What a pass over the data gives."""

    statistics: Array
    """∂ ln P(data) / ∂ entry for all tables end to end; then, where there are Gaussians, their moments."""
    log_likelihood: float


class Rows:
    """Rows of data, as far as their number and gaps go.

    Parameters
    ----------
    n_rows
        How many there are.
    gaps
        Where some of them have no value (variables on the second axis).
    """

    def __init__(self, n_rows: int, gaps: Flags) -> None:
        self.n_rows, self.gaps = n_rows, gaps
        self._known: list[tuple[RowPlan, float]] = []

    def visits(self, plan: RowPlan) -> float:
        """About how many entries a pass over them looks at."""
        for other, visits in self._known:
            if other is plan:
                return visits
        visits = self.visits_if(plan, plan.tree.cards)
        self._known = [(plan, visits), *self._known[:1]]
        return visits

    def share(self, part: float) -> Rows:
        """So many of them, drawn at random."""
        return Rows(math.ceil(part * self.n_rows), self.gaps)

    def visits_if(self, plan: RowPlan, cards: Ints) -> float:
        """The same if variables had so many states."""
        return self.n_rows * float(plan.open(self.gaps, cards)[1].mean()) if self.n_rows else 0.0


class Expectation:
    """The expected counts of a structure's families, for any tables and any data.

    Parameters
    ----------
    net
        Any network of the structure; its tables play no part.
    n_jobs
        Threads; None is OMP_NUM_THREADS, or else the number of cores. Fewer are taken where the memory limit asks for
        that.
    ledger
        What the caller has taken of the memory limit already.
    scopes
        The variables of tables that rows bring, each row its own.
    """

    counts = False
    """Whether only expected counts are asked for, so that the gradient of an entry of 0 is of no use."""
    held: Flags | None = None
    """The entries whose gradient is of no use, as their tables are held."""
    beside = 0  # the bytes of the memory limit that the caller keeps while it asks
    row_bytes = 0
    """What a row of a chunk takes beside its codes."""
    _looked_at: tuple[Array | None, Rows | None] = None, None
    """The weights of the block that was last looked at, and what was seen of its rows."""
    _chosen: tuple[Flags, RowPlan] | None = None
    """The states that were left when a plan was last chosen, and that plan."""

    def __init__(
        self,
        net: BayesianNetwork,
        n_jobs: int | None = None,
        ledger: Ledger | None = None,
        scopes: Sequence[Sequence[str]] = (),
    ) -> None:
        self.families = read_families(net, scopes)
        self.names = tabled(net)
        self.cards = self.families.cards
        self.table_ptr = self.families.table_ptr
        self.n_entries = int(self.table_ptr[len(self.names)])
        self.asked_jobs, self.ledger = n_jobs, ledger

    @cached_property
    def whole(self) -> RowPlan:
        """The plan of all states; BudgetError if its messages do not fit."""
        return row_plan(self.families)

    @cached_property
    def _whole(self) -> RowPlan | BudgetError:
        try:
            return self.whole
        except BudgetError as error:
            return error

    def plan(self, tables: Array, rows: Rows) -> RowPlan:
        """The plan for such rows under these tables: that of all states, or of those that can occur if it is cheaper.

        It is kept while the states that can occur do.
        """
        whole = self._whole
        if isinstance(whole, RowPlan):
            least = LOOKING + LOOKING_TABLE * len(self.names) + LOOKING_ENTRY * len(tables)
            if rows.n_rows * whole.visits < least or rows.visits(whole) < least:
                return whole
        left = self._states_left(tables)
        if left is None:
            return self.whole
        current, known = whole, self._chosen
        if known is not None and not (left & ~known[0]).any():
            current = known[1]
            if (left == known[0]).all():
                return known[1]
        if isinstance(current, RowPlan):
            cards = np.add.reduceat(left, np.cumsum(self.cards) - self.cards, dtype=np.int64)
            if rows.visits(current) - rows.visits_if(current, cards) < MAKING * len(self.names):
                return current
        plan = filtered_plan(self.families, left, self.n_entries)
        if isinstance(current, RowPlan) and rows.visits(current) <= rows.visits(plan):
            plan = current
        self._chosen = left, plan
        return plan

    def _states_left(self, tables: Array) -> Flags | None:
        """The states that zeros which may be used leave; None if they leave all, or nothing at all."""
        if self.counts:
            return self.families.states_left(tables)
        if self.held is None:
            return None
        return self.families.states_left(np.where(self.held, tables, 1.0))

    def n_jobs(self, plan: RowPlan, block: Block, chunk: int) -> int:
        """Threads that work on chunks of a block: as many as asked for and fit; BudgetError if not even one does.

        A thread has copies of the tables and their gradients, codes, messages, and the cells of the cliques that its
        most incomplete row leaves open, with where they lie.
        """
        ledger = self.ledger.copy() if self.ledger is not None else Ledger()
        entries = int(self.table_ptr[-1])
        ledger.reserve(
            self.beside + 16 * entries + 8 * block.n_rows, "the gradient of all table entries", INSTEAD
        )
        chunk = min(chunk, block.n_rows)
        each = 40 * entries + chunk * (4 * len(self.names) + self.row_bytes)
        wanted = min(jobs(self.asked_jobs), -(-block.n_rows // max(chunk, 1)))
        opened, wide = plan.bytes(plan.cells, plan.visits)
        if wanted * (each + wide) > ledger.left:
            opened, wide = plan.bytes(*plan.open(self._gaps(block, slice(None))))
        ledger.copy().reserve(each + opened, "the cliques of the most incomplete row", INSTEAD)
        return ledger.workers(wanted, each + wide)

    def visits(self, block: Block, plan: RowPlan | None = None) -> float:
        """About how many entries a pass over a block looks at, by some of its rows; at most, where that is few."""
        plan = plan or self.whole
        most = block.n_rows * plan.visits
        return most if most < ROWS_FROM else self._rows(block).visits(plan)

    def _rows(self, block: Block) -> Rows:
        """The rows of a block, of which some are looked at."""
        weights, rows = self._looked_at
        if weights is not block.weights or rows is None:  # else the same block, in the next step of a climb
            rows = Rows(
                block.n_rows, self._gaps(block, slice(None, None, -(-block.n_rows // LOOKED_AT) or 1))
            )
            self._looked_at = block.weights, rows
        return rows

    def rows_of(self, source: DataSource) -> Rows:
        """The rows of the data; those that are not in memory are taken to be many, with gaps all over.

        To count them would take a pass over the data.
        """
        if isinstance(source, CodedTable):
            return self._rows(source.merged())
        return Rows(STREAMED, np.ones((1, len(self.names)), bool))

    def _gaps(self, block: Block, rows: slice) -> Flags:
        """Where some rows (first axis) have no value."""
        gaps = np.ones((len(block.weights[rows]), len(self.names)), bool)
        for v, name in enumerate(self.names):
            if name in block.codes:
                gaps[:, v] = block.codes[name][rows] == self.cards[v]
        return gaps

    def __call__(self, tables: Array, source: DataSource) -> Expected:
        """The gradient and the log-likelihood of all data under these tables (end to end, in the network's order)."""
        gradient, total, impossible = source.reduce(Pass(self, tables, self.rows_of(source)))
        if impossible[0]:
            raise ImpossibleEvidenceError(
                f"{impossible[0]:g} rows of the data have probability 0 under the starting network; "
                "start from tables without zeros, or from a graph"
            )
        return Expected(gradient, float(total[0]))

    def block(self, tables: Array, block: Block, plan: RowPlan | None = None) -> tuple[Array, Array]:
        """The gradient over a block, and ln P of each of its rows."""
        logs = np.empty(block.n_rows)
        chosen = plan or self.plan(tables, self._rows(block))
        starts = range(0, block.n_rows, max(CHUNK, len(tables) // 4))

        def work(start: int) -> Array:
            rows = slice(start, start + starts.step)
            gradient = np.zeros(len(tables))
            codes = self.codes(block, rows)
            chosen.run(tables, codes, block.weights[rows], gradient, logs[rows], counts=self.counts)
            return gradient

        return self._added(work, chosen, block, starts, np.zeros(len(tables))), logs

    def codes(self, block: Block, rows: slice) -> Int32s:
        """Some rows of a block, one column for each table's variable."""
        codes = np.empty((len(block.weights[rows]), len(self.names)), dtype=np.int32)
        for v, name in enumerate(self.names):
            codes[:, v] = block.codes[name][rows] if name in block.codes else self.cards[v]
        return codes

    def _added(
        self, work: Callable[[int], Array], plan: RowPlan, block: Block, starts: range, zero: Array
    ) -> Array:
        """What chunks of a block give, added up in order; how long their tables take is foretold."""
        n_jobs = self.n_jobs(plan, block, starts.step)
        threads = min(n_jobs, len(starts))
        with predicted_cells(self.visits(block, plan), threads, VISIT / CELL, "expected counts", INSTEAD):
            return sum(in_order(work, starts, n_jobs), zero)


class Pass:
    """What is done to each block: a function that can be sent to where the block is."""

    def __init__(self, expectation: Expectation, tables: Array, rows: Rows) -> None:
        self.expectation, self.tables = expectation, tables
        self.plan = expectation.plan(tables[: expectation.n_entries], rows)

    def __call__(self, block: Block) -> list[Array]:
        """The gradient, ln P of the rows that are possible, and the weight of those that are not."""
        gradient, logs = self.expectation.block(self.tables, block, self.plan)
        counted = block.weights > 0
        impossible = np.isneginf(logs) & counted
        total = np.dot(block.weights[counted & ~impossible], logs[counted & ~impossible])
        return [gradient, np.array([total]), np.array([block.weights[impossible].sum()])]


class EntryGradient:
    """∂ ln P / ∂ entry in what conditionals are made of, every entry taken as free of the others.

    The entries of a CPT are those of its table; those of a NoisyMax are the rows of its links and its leak, which are
    the tables of the effects once these are variables of their own (`linked`). A Deterministic has none.

    Parameters
    ----------
    net
        A network without continuous variables.
    n_jobs, ledger
        As in `Expectation`.

    Attributes
    ----------
    expectation, tables
        The pass over data that gives the gradient, and the tables that it is to be called with.
    """

    def __init__(self, net: BayesianNetwork, n_jobs: int | None = None, ledger: Ledger | None = None) -> None:
        self.net, self.whole = net, net
        self.effects: dict[str, list[str]] = {}
        held: list[str] = []
        if factored_parts(net):
            self.whole, self.effects, held = linked(net)
        self.expectation = Expectation(self.whole, n_jobs, ledger)
        self.tables = flat_tables(self.whole)
        if held:
            marks = np.zeros(len(self.tables))
            for name, own in by_name(self.whole, marks).items():
                own[...] = name in held
            self.expectation.held = marks > 0

    def by_name(self, flat: Array) -> dict[str, Array]:
        """Variable to an array like `entries` of its conditional."""
        found = by_name(self.whole, flat)
        for name, effects in self.effects.items():
            found[name] = np.concatenate([np.atleast_2d(found[effect]) for effect in effects])
        return {name: found[name] for name in entry_names(self.net)}


def entry_names(net: BayesianNetwork) -> list[str]:
    """The variables whose conditionals have entries, in the network's order."""
    return [name for name in tabled(net) if not isinstance(net[name], Deterministic)]


def entries(net: BayesianNetwork, name: str) -> Array:
    """The table of a CPT, the rows of a NoisyMax."""
    own = net[name]
    return own.rows if isinstance(own, NoisyMax) else own.table


def tabled(net: BayesianNetwork) -> tuple[str, ...]:
    """The names of the variables that have a table, in the network's order."""
    return tuple(v.name for v in net.variables if not isinstance(v, Continuous))


def read_families(net: BayesianNetwork, scopes: Sequence[Sequence[str]] = ()) -> Families:
    """The families of the tables of a network, in its order, then `scopes`, tables of each row's own."""
    names = tabled(net)
    number = {name: v for v, name in enumerate(names)}
    cards = np.array([net.variable(name).card for name in names], np.int64)
    numbered = [[*(number[p] for p in net.parents(name)), number[name]] for name in names]
    return Families.of(cards, numbered + [[number[name] for name in scope] for scope in scopes])


def flat_tables(net: BayesianNetwork) -> Array:
    """All tables of a network end to end, in its order."""
    return np.concatenate([np.empty(0), *(net[name].table.ravel() for name in tabled(net))])


def by_name(net: BayesianNetwork, flat: Array) -> dict[str, Array]:
    """A flat array cut into arrays like the network's tables."""
    result = {}
    at = 0
    for name in tabled(net):
        table = net[name].table
        result[name] = flat[at : at + table.size].reshape(table.shape)
        at += table.size
    return result


def family_marginals(net: BayesianNetwork) -> Mapping[str, Array]:
    """P(x, parents) of each variable, shaped like its table: the expected counts of one row that observes nothing."""
    tables = flat_tables(net)
    expectation = Expectation(net, n_jobs=1)
    expectation.counts = True
    gradient, _ = expectation.block(tables, Block({}, np.ones(1)))
    return by_name(net, tables * gradient)
