"""What structure learners share: complete data, constraints on arcs, and the graph that comes out.

Inside a search a variable is its position among the source's variables and a set of parents is a bit mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.cycles import find_cycle
from bbn.core.errors import DataError, ModelError, nearest
from bbn.core.frozen import Array
from bbn.data import DataSource, complete_data, continuous_columns
from bbn.data.reading import Reading
from bbn.model.binned import Binned
from bbn.model.cpt import discrete_child
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable

if TYPE_CHECKING:
    import networkx as nx

Arc = tuple[str, str]
Arcs = Iterable[Arc]
INSTEAD = "or search with fewer variables, rows or parents"
"""What a caller may do where time is too short."""
TIE = 1e-11
"""Scores that differ by no more than this many nats per row of the data tie.

Structures may tie exactly, as equivalent ones do, while the sums that score them differ by rounding, which depends on
the order of the columns and on whether kernels are compiled. It is about 1e-16 · ln N per row, far below this.
"""


def tie_of(total: float) -> float:
    """How far apart scores of data of this many rows, or of this total weight, may be and still tie.

    >>> tie_of(2000)
    2e-08
    """
    return TIE * max(total, 1.0)


def ranked(values: Array, tie: float, last_first: bool = False) -> NDArray[np.intp]:
    """The positions of some values, the largest first; of those that tie the first (or the last) comes first.

    Neighbours in the ranking that differ by no more than `tie` tie, and so do all in a chain of such neighbours: a rule
    that, unlike comparing pairs, always gives an order.

    >>> ranked(np.array([1.0, 2.0, 5.0, 2.1, 1.9]), 0.2).tolist()
    [2, 1, 3, 4, 0]
    """
    order = np.argsort(-values)
    with np.errstate(invalid="ignore"):  # two of −∞
        falls = -np.diff(values[order]) > tie
    if falls.all():
        return order
    place = np.cumsum(np.concatenate([[False], falls]))
    alone = np.concatenate([[True], falls]) & np.concatenate([falls, [True]])
    tied = np.flatnonzero(~alone)
    among = order[tied]
    order[tied] = among[np.argsort(place[tied] * len(values) + (-among if last_first else among))]
    return order


def complete_source(data: Any, what: str, reading: Reading = Reading()) -> DataSource:  # noqa: B008  # frozen
    """`data` as a source; DataError if it has missing values, with the way out."""
    return require_complete(reading.source(data), what)


def all_variables(source: DataSource) -> tuple[Variable, ...]:
    """The variables of a source, those of columns of numbers after the others."""
    return (*source.variables, *map(Continuous, continuous_columns(source)))


def default_score(score: Any, source: DataSource, discrete: str) -> Any:
    """The score that is asked for; where none is, `discrete`, or "bic" if there are numbers."""
    if score is not None:
        return score
    return "bic" if continuous_columns(source) else discrete


def require_complete(source: DataSource, what: str) -> DataSource:
    """The source; DataError if there are missing values, with the way out."""
    return complete_data(
        source,
        (v.name for v in all_variables(source)),
        f"{what} needs complete data, but there are missing values in {{}}",
        "bbn.structural_em learns a structure from such data, bbn.fit_em the tables of a known one",
    )


class Constraints:
    """What a search may do: for each child the parents it must have and those it may have, as masks.

    Parameters
    ----------
    variables
        The variables, whose positions the masks refer to.
    required, forbidden
        Arcs (parent, child) that must, or must not, be there.
    tiers
        Lists of names, earliest first: no arc goes from a later tier to an earlier one. Names in none are free.
    max_parents
        The most parents a child may have, or None.
    max_cells
        The most cells that the table of a family of several parents may have, or None; of one parent twice as many.
        Numbers do not count.

    ModelError if they contradict each other.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        required: Arcs = (),
        forbidden: Arcs = (),
        tiers: Sequence[Iterable[str]] | None = None,
        max_parents: int | None = None,
        max_cells: float | None = None,
    ) -> None:
        self.names = tuple(v.name for v in variables)
        self.position = {name: i for i, name in enumerate(self.names)}
        if isinstance(max_parents, str):
            raise TypeError(f"max_parents is {max_parents!r}; expected a whole number, 0 or more, or None")
        if max_parents is not None and max_parents < 0:
            raise ValueError(f"max_parents is {max_parents}; expected 0 or more")
        n = len(self.names)
        self.max_parents = n if max_parents is None else max_parents
        self.max_cells = math.inf if max_cells is None else max_cells
        self.cards = [max(v.card, 1) for v in variables]
        self.required = [0] * n
        self.allowed = [((1 << n) - 1) & ~(1 << i) for i in range(n)]
        for a, b in self.arcs(forbidden, "forbidden"):
            self.allowed[b] &= ~(1 << a)
        self._tiers(tiers)
        self._numbers(variables)
        for a, b in self.arcs(required, "required"):
            if self.numeric >> a & 1 and not self.numeric >> b & 1:
                raise ModelError(f"required: {discrete_child(self.names[b], self.names[a])}")
            if not self.allowed[b] >> a & 1:
                raise ModelError(
                    f"the arc {self.names[a]!r} → {self.names[b]!r} is required, but also forbidden"
                )
            self.required[b] |= 1 << a
        for child, mask in enumerate(self.required):
            if mask.bit_count() > self.max_parents:
                raise ModelError(
                    f"{self.names[child]!r} has {mask.bit_count()} required parents, "
                    f"more than max_parents={max_parents}"
                )
        cycle = cycle_of(self.required)
        if cycle:
            shown = " → ".join(repr(self.names[i]) for i in cycle)
            raise ModelError(f"the required arcs form a cycle: {shown}")

    def _numbers(self, variables: Sequence[Variable]) -> None:
        """Forbid arcs from numbers to variables with states, which no conditional here can hold."""
        self.numeric = sum(1 << i for i, v in enumerate(variables) if isinstance(v, Continuous))
        for i, variable in enumerate(variables):
            if not isinstance(variable, Continuous):
                self.allowed[i] &= ~self.numeric

    def arcs(self, arcs: Any, what: str) -> Iterator[tuple[int, int]]:
        """Arcs, or those of a graph, as positions."""
        for arc in getattr(arcs, "edges", arcs):
            a, b = _arc(arc)
            if a == b:
                raise ModelError(f"{what}: the arc {a!r} → {b!r} is a loop")
            yield self.index(a, what), self.index(b, what)

    def _tiers(self, tiers: Sequence[Iterable[str]] | None) -> None:
        seen: dict[int, int] = {}
        for level, tier in enumerate(tiers or ()):
            for name in tier:
                i = self.index(name, "tiers")
                if i in seen:
                    raise ModelError(f"tiers: {name!r} is named twice")
                seen[i] = level
        for child, level in seen.items():
            for other, later in seen.items():
                if later > level:
                    self.allowed[child] &= ~(1 << other)

    def allow(self, parents: Sequence[int]) -> bool:
        """Whether a structure satisfies the constraints; cycles are not checked."""
        return all(
            not mask & ~self.allowed[i]
            and not self.required[i] & ~mask
            and mask.bit_count() <= self.max_parents
            and self.fits(i, mask)
            for i, mask in enumerate(parents)
        )

    def fits(self, child: int, mask: int) -> bool:
        """Whether the table of a child with these parents has few enough cells; required parents always fit."""
        if self.max_cells == math.inf or not mask & ~self.required[child]:
            return True
        cells = math.prod([self.cards[i] for i in (child, *members(mask))])
        return cells <= self._most_cells(mask.bit_count())

    def fitting(self, child: int, own: int, more: Sequence[int]) -> list[int]:
        """The parents among `more`, each of which beside those of `own` makes a table with few enough cells."""
        if self.max_cells == math.inf:
            return list(more)
        cells = math.prod([self.cards[i] for i in (child, *members(own))])
        room = self._most_cells(own.bit_count() + 1) / cells
        return [p for p in more if self.cards[p] <= room]

    def _most_cells(self, n_parents: int) -> float:
        return self.max_cells * (2 if n_parents == 1 else 1)

    def leave_alone(self, first: int, parents: Sequence[int]) -> int:
        """Forbid arcs to and from the variables from `first` on, but for those required or in `parents`; `first`."""
        others = (1 << first) - 1
        for child, mask in enumerate(self.allowed):
            self.allowed[child] = (
                (mask & others if child < first else 0) | self.required[child] | parents[child]
            )
        return first

    def index(self, name: str, what: str) -> int:
        """The position of the variable of this name; DataError if there is none."""
        try:
            return self.position[name]
        except (KeyError, TypeError):
            raise DataError(f"{what}: the data have no column {name!r}{nearest(name, self.names)}") from None


def cycle_of(parents: Sequence[int]) -> list[int]:
    """The variables of a cycle in parents' masks, each a parent of the next, or nothing."""
    left, before = list(range(len(parents))), -1
    while left and len(left) != before:  # those without parents among the rest are on no cycle
        before, rest = len(left), sum([1 << child for child in left])
        left = [child for child in left if parents[child] & rest]
    if not left:
        return []
    return find_cycle({child: members(mask) for child, mask in enumerate(parents)})


@lru_cache(maxsize=2**12)
def members(mask: int) -> tuple[int, ...]:
    """The positions of the bits that are set, lowest first.

    >>> members(0b1101)
    (0, 2, 3)
    """
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)


def to_graph(
    variables: Sequence[Variable], arcs: Iterable[tuple[str, str]], **attributes: Any
) -> nx.DiGraph[str]:
    """A DiGraph of the variables and the arcs, sorted by child, then by parent.

    Each node has its "states", and "bins" if they are intervals, or says that it is "continuous".
    """
    import networkx as nx

    graph: nx.DiGraph[str] = nx.DiGraph(**attributes)
    for variable in variables:
        if isinstance(variable, Continuous):
            graph.add_node(variable.name, continuous=True)
        elif isinstance(variable, Binned):
            graph.add_node(variable.name, states=variable.states, bins=variable.edges)
        else:
            graph.add_node(variable.name, states=variable.states)
    position = {variable.name: i for i, variable in enumerate(variables)}
    graph.add_edges_from(sorted(arcs, key=lambda arc: (position[arc[1]], position[arc[0]])))
    return graph


def arcs_of(names: Sequence[str], parents: Sequence[int]) -> Iterator[Arc]:
    """The arcs of parents' masks, by name."""
    for child, mask in enumerate(parents):
        for parent in members(mask):
            yield names[parent], names[child]


def masks_of(structure: Any, constraints: Constraints, what: str) -> list[int]:
    """The parents' masks of a structure over the same variables."""
    arcs: Any = structure.arcs if isinstance(structure, BayesianNetwork) else structure
    masks = [0] * len(constraints.names)
    for a, b in constraints.arcs(arcs, what):
        masks[b] |= 1 << a
    cycle = cycle_of(masks)
    if cycle:
        raise ModelError(f"{what} has a cycle: " + " → ".join(repr(constraints.names[i]) for i in cycle))
    return masks


def _arc(arc: Any) -> Arc:
    if isinstance(arc, str) or not isinstance(arc, Sequence) or len(arc) != 2:
        raise ModelError(f"expected an arc (parent, child), found {arc!r}")
    return arc[0], arc[1]
