"""Expected counts under a network: what EM and gradient ascent ask of data with holes.

For a row d and the table entry w = P(x = k | parents = j), the gradient of the row's log-likelihood is

    ∂ ln P(d) / ∂ w = P(x = k, parents = j | d) / w        (Russell, Binder, Koller and Kanazawa 1995, eq. 4)

so w times the gradient, summed over rows, is the expected count of the entry. One pass over the data gives the gradient
of every entry, computed from the messages without the entry's own table, and the log-likelihood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bbn import kernels
from bbn.core.budget import Ledger, jobs, require_memory
from bbn.core.errors import BudgetError, ImpossibleEvidenceError
from bbn.core.frozen import Array
from bbn.core.threads import in_order
from bbn.data import Block, DataSource
from bbn.inference.exact.runtime_prediction import ROWS_FROM, predicted_cells
from bbn.kernels.contracts.tree import Tree
from bbn.kernels.contracts.types import Ints
from bbn.model.graphs import ORDERS, flat_scopes, junction_forest
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous

CHUNK = 1024
"""Rows that share one sum; chunks add up in order, so that the answer does not depend on the number of threads."""
MOST_TERMS = 8
"""Tables and messages that meet in one clique; more are spread over copies of it, so that no product underflows."""

MOST_ENTRIES = 2.0**32
"""Tables and messages have fewer entries than this: their indices are of 32 bits."""

INSTEAD = "use fewer parents or states, or fill in more of the data"
VISIT = 14.0
"""How many times longer than a cell of a run an entry of a table or message takes: 8 to 25, in real networks."""
LOOKED_AT = 64
"""The rows whose entries are counted to predict how long a pass takes."""

RULES = ("min-fill", "weighted-min-fill")
"""Elimination rules that are tried; the one whose cliques have fewer cells is kept."""


class Expected(NamedTuple):
    """What a pass over the data gives."""

    statistics: Array
    """∂ ln P(data) / ∂ entry for all tables end to end; then, where there are Gaussians, their moments."""
    log_likelihood: float


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
    """

    counts = False
    """Whether only expected counts are asked for, so that the gradient of an entry of 0 is of no use."""
    beside = 0  # the bytes of the memory limit that the caller keeps while it asks
    _counted: tuple[Array | None, float] = None, 0.0
    """The weights of the block whose entries were last counted, and how many there are."""

    def __init__(self, net: BayesianNetwork, n_jobs: int | None = None, ledger: Ledger | None = None) -> None:
        families = read_families(net)
        self.names = tabled(net)
        self.cards = families.cards
        self.table_ptr = families.table_ptr
        self.tree = build_tree(families)
        self.row_bytes = 0
        self.asked_jobs, self.ledger = n_jobs, ledger

    def n_jobs(self, block: Block, chunk: int) -> int:
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
        opened, wide = self._most_open_bytes
        if wanted * (each + wide) > ledger.left:
            opened, wide = self._open_bytes(self._gaps(block, slice(None)))
        ledger.copy().reserve(each + opened, "the cliques of the most incomplete row", INSTEAD)
        return ledger.workers(wanted, each + wide)

    def visits(self, block: Block) -> float:
        """About how many entries a pass over a block looks at, by some of its rows; at most, where that is few."""
        most = block.n_rows * self._most_visits
        if most < ROWS_FROM:
            return most
        weights, visits = self._counted
        if weights is block.weights:  # the same block, in the next step of a climb
            return visits
        step = -(-block.n_rows // LOOKED_AT)
        tree, gaps = self.tree, self._gaps(block, slice(None, None, step))
        states = np.where(gaps, self.cards.astype(np.float64), 1.0)[:, tree.axes]
        cells = np.multiply.reduceat(states, tree.axes_ptr[:-1], axis=1)
        visits = block.n_rows * float((cells @ np.diff(tree.stream_ptr)).mean())
        self._counted = block.weights, visits
        return visits

    @cached_property
    def _most_visits(self) -> float:
        """The entries that a row without any values looks at."""
        return float(self._open(np.ones((1, len(self.names)), bool))[1][0])

    @cached_property
    def _most_open_bytes(self) -> tuple[int, int]:
        """What a row without any values needs."""
        return self._open_bytes(np.ones((1, len(self.names)), bool))

    def _gaps(self, block: Block, rows: slice) -> NDArray[np.bool_]:
        """Where some rows (first axis) have no value."""
        gaps = np.ones((len(block.weights[rows]), len(self.names)), bool)
        for v, name in enumerate(self.names):
            if name in block.codes:
                gaps[:, v] = block.codes[name][rows] == self.cards[v]
        return gaps

    def _open_bytes(self, gaps: NDArray[np.bool_]) -> tuple[int, int]:
        """The messages, cells and indices of the row that needs most, given where rows (first axis) have gaps.

        First as doubles, then as wide numbers, which take twice as much where doubles do not do.
        """
        cells, indices = self._open(gaps)
        numbers = cells + 2 * self.tree.message_size
        plain, wide = (float((size * numbers + 4 * indices).max(initial=0.0)) for size in (8, 16))
        return int(plain), int(wide)

    def _open(self, gaps: NDArray[np.bool_]) -> tuple[Array, Array]:
        """The cells of cliques that rows leave open, and the entries of tables and messages that meet in them."""
        tree = self.tree
        cells: Any = np.zeros(len(gaps))
        indices: Any = np.zeros(len(gaps))
        for c, n_streams in enumerate(np.diff(tree.stream_ptr).tolist()):
            own = np.ones(len(gaps))
            for v in tree.axes[tree.axes_ptr[c] : tree.axes_ptr[c + 1]].tolist():
                own *= np.where(gaps[:, v], float(self.cards[v]), 1.0)
            cells += own
            indices += n_streams * own
        return cells, indices

    def __call__(self, tables: Array, source: DataSource) -> Expected:
        """The gradient and the log-likelihood of all data under these tables (end to end, in the network's order)."""
        gradient, total, impossible = source.reduce(_Pass(self, tables))
        if impossible[0]:
            raise ImpossibleEvidenceError(
                f"{impossible[0]:g} rows of the data have probability 0 under the starting network; "
                "start from tables without zeros, or from a graph"
            )
        return Expected(gradient, float(total[0]))

    def block(self, tables: Array, block: Block) -> tuple[Array, Array]:
        """The gradient over a block, and ln P of each of its rows."""
        logs = np.empty(block.n_rows)
        starts = range(0, block.n_rows, max(CHUNK, len(tables) // 4))

        def work(start: int) -> Array:
            rows = slice(start, start + starts.step)
            gradient = np.zeros(len(tables))
            codes = np.empty((len(logs[rows]), len(self.names)), dtype=np.int32)
            for v, name in enumerate(self.names):
                codes[:, v] = block.codes[name][rows] if name in block.codes else self.cards[v]
            kernels.expect.gradient_rows(
                tables,
                codes,
                block.weights[rows],
                self.tree,
                gradient,
                logs[rows],
                counts=self.counts,
            )
            return gradient

        return self._added(work, block, starts, np.zeros(len(tables))), logs

    def _added(self, work: Callable[[int], Array], block: Block, starts: range, zero: Array) -> Array:
        """What chunks of a block give, added up in order; how long their tables take is foretold."""
        n_jobs = self.n_jobs(block, starts.step)
        with predicted_cells(self.visits(block), min(n_jobs, len(starts)), VISIT, "expected counts", INSTEAD):
            return sum(in_order(work, starts, n_jobs), zero)


class _Pass:
    """What is done to each block: a function that can be sent to where the block is."""

    def __init__(self, expectation: Expectation, tables: Array) -> None:
        self.expectation, self.tables = expectation, tables

    def __call__(self, block: Block) -> list[Array]:
        gradient, logs = self.expectation.block(self.tables, block)
        counted = block.weights > 0
        impossible = np.isneginf(logs) & counted
        total = np.dot(block.weights[counted & ~impossible], logs[counted & ~impossible])
        return [gradient, np.array([total]), np.array([block.weights[impossible].sum()])]


class Families(NamedTuple):
    """A network's tables as arrays: the variables of each, numbered in their order, and where each begins."""

    cards: Ints
    scopes: list[list[int]]
    table_ptr: Ints


def tabled(net: BayesianNetwork) -> tuple[str, ...]:
    """The names of the variables that have a table, in the network's order."""
    return tuple(v.name for v in net.variables if not isinstance(v, Continuous))


def read_families(net: BayesianNetwork, scopes: Sequence[Sequence[str]] = ()) -> Families:
    """The families of the tables of a network, in its order, then `scopes`, tables of each row's own."""
    names = tabled(net)
    number = {name: v for v, name in enumerate(names)}
    cards = np.array([net.variable(name).card for name in names], np.int64)
    numbered = [[*(number[p] for p in net.parents(name)), number[name]] for name in names]
    numbered += [[number[name] for name in scope] for scope in scopes]
    # a table is the same without its axes of one state; where there are no others, the last is kept
    numbered = [[v for v in scope if cards[v] > 1] or scope[-1:] for scope in numbered]
    sizes = [int(np.prod(cards[scope], dtype=np.int64)) for scope in numbered]
    return Families(cards, numbered, np.cumsum([0, *sizes]).astype(np.int64))


def build_tree(families: Families) -> Tree:
    """A junction tree of the families, each table at the smallest clique that holds it."""
    cards = families.cards.tolist()
    eliminations = [ORDERS[rule](families.cards, *flat_scopes(families.scopes)) for rule in RULES]
    forests = [junction_forest(elimination) for elimination in eliminations]
    cliques, parent = min(forests, key=lambda forest: sum(_size(cards, clique) for clique in forest[0]))
    axes, separator = [], []
    for clique, p in zip(cliques, parent, strict=True):
        shared = [v for v in clique if p >= 0 and v in cliques[p]]
        axes.append([*shared, *(v for v in clique if v not in shared)])
        separator.append(len(shared) if p >= 0 else -1)
    holders: list[list[int]] = [[] for _ in cards]
    for c, clique in enumerate(cliques):
        for v in clique:
            holders[v].append(c)
    factors: list[list[int]] = [[] for _ in cliques]
    for f, scope in enumerate(families.scopes):
        fewest = min((holders[v] for v in scope), key=len)
        inside = [c for c in fewest if set(scope) <= set(cliques[c])]
        factors[min(inside, key=lambda c: _size(cards, cliques[c]))].append(f)
    parts = _spread(axes, parent, separator, factors)
    _require_messages(families, *parts[:3])
    return _streams(families, *parts)


def _require_messages(
    families: Families, axes: list[list[int]], parent: list[int], separator: list[int]
) -> None:
    """Raise BudgetError before messages are laid out that would not fit the memory, or that no index reaches."""
    cards = families.cards.tolist()
    cells = sum(_size(cards, axes[c][: separator[c]]) for c, p in enumerate(parent) if p >= 0)
    what, instead = "the messages of the junction tree", "use fewer parents or states"
    require_memory(int(min(16 * cells, 1e300)), what, instead)
    if max(cells, float(families.table_ptr[-1])) >= MOST_ENTRIES:
        raise BudgetError(f"{what} would have {cells:.3g} cells, more than {MOST_ENTRIES:.3g}; {instead}")


def _spread(
    axes: list[list[int]], parent: list[int], separator: list[int], factors: list[list[int]]
) -> tuple[list[list[int]], list[int], list[int], list[list[int]]]:
    """The tree with no more than MOST_TERMS tables and children at a clique: copies of it take the others."""
    axes, parent, separator, factors = list(axes), list(parent), list(separator), [list(f) for f in factors]
    children: list[list[int]] = [[] for _ in axes]
    for c, p in enumerate(parent):
        if p >= 0:
            children[p].append(c)
    c = 0
    while c < len(axes):
        terms = [(True, f) for f in factors[c]] + [(False, child) for child in children[c]]
        if len(terms) > MOST_TERMS:
            kept, moved = terms[: MOST_TERMS - 1], terms[MOST_TERMS - 1 :]
            copy = len(axes)
            axes.append(axes[c])
            parent.append(c)
            separator.append(len(axes[c]))
            factors.append([f for is_factor, f in moved if is_factor])
            children.append([child for is_factor, child in moved if not is_factor])
            for child in children[copy]:
                parent[child] = copy
            factors[c] = [f for is_factor, f in kept if is_factor]
            children[c] = [child for is_factor, child in kept if not is_factor] + [copy]
        c += 1
    order = [c for c, p in enumerate(parent) if p < 0]
    for c in order:
        order.extend(children[c])
    rank = {c: k for k, c in enumerate(order)}
    return (
        [axes[c] for c in order],
        [rank[parent[c]] if parent[c] >= 0 else -1 for c in order],
        [separator[c] for c in order],
        [factors[c] for c in order],
    )


def _size(cards: list[int], clique: list[int]) -> float:
    return math.prod(map(float, (cards[v] for v in clique)))


def _streams(
    families: Families,
    axes: list[list[int]],
    parent: list[int],
    separator: list[int],
    factors: list[list[int]],
) -> Tree:
    """Where each clique's tables and messages lie, and how they are walked."""
    cards = families.cards.tolist()
    messages = []
    message_size = 0
    children: list[list[int]] = [[] for _ in axes]
    for c, p in enumerate(parent):
        shared = axes[c][: separator[c]] if p >= 0 else []
        messages.append((message_size, shared))
        if p >= 0:
            children[p].append(c)
            message_size += int(np.prod([cards[v] for v in shared], dtype=np.int64))
    base: list[int] = []
    strides: list[list[int]] = []
    stream_ptr = [0]
    for c, clique in enumerate(axes):
        sources = [(int(families.table_ptr[f]), families.scopes[f]) for f in factors[c]]
        sources += [messages[child] for child in children[c]]
        if parent[c] >= 0:
            sources.append(messages[c])
        for start, scope in sources:
            base.append(start)
            step = {
                v: int(np.prod([cards[u] for u in scope[k + 1 :]], dtype=np.int64))
                for k, v in enumerate(scope)
            }
            strides.append([step.get(v, 0) for v in clique])
        stream_ptr.append(len(base))
    return Tree(
        families.cards,
        _ends(axes),
        _flat(axes),
        np.array(separator, np.int64),
        np.array([len(f) for f in factors], np.int64),
        np.array([len(own) for own in children], np.int64),
        np.array(stream_ptr, np.int64),
        np.array(base, np.int64),
        _ends(strides),
        _flat(strides),
        message_size,
    )


def _ends(lists: list[list[int]]) -> Ints:
    return np.cumsum([0, *map(len, lists)]).astype(np.int64)


def _flat(lists: list[list[int]]) -> Ints:
    return np.array([item for items in lists for item in items], np.int64)


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
    gradient, _ = Expectation(net, n_jobs=1).block(tables, Block({}, np.ones(1)))
    return by_name(net, tables * gradient)
