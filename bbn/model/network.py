"""BayesianNetwork: a frozen directed acyclic graph of conditionals.

P(x_1, …, x_n) = ∏ P(x_i | parents(x_i)) (Pearl 1988, section 3.3). A network holds conditionals, anything with
a `variable` and `parents`; a CPT is the first kind, a Gaussian the second. Building and checking it takes time
linear in its size, and nothing modifies it: every edit gives a new network, and everything above asks it questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.model.assembly import by_name, check_parents, of_graph, topological_order
from bbn.model.cpt import CPT, Conditional
from bbn.model.factor import Factor
from bbn.model.gaussian import Gaussian
from bbn.model.questions import AskableNetwork
from bbn.model.variable import Continuous, State, Variable, checked_name

if TYPE_CHECKING:
    import os

    import networkx as nx


class BayesianNetwork(AskableNetwork, compared=("_conditionals",)):
    """A Bayesian network.

    Parameters
    ----------
    conditionals
        One CPT (or other conditional) per variable, in any order.
    name
        A title; it takes no part in comparisons.
    metadata
        Further strings about the network, such as its description and source; no part in comparisons either.

    >>> rain = Variable("Rain", ["yes", "no"])
    >>> wet = Variable("Wet", ["yes", "no"])
    >>> net = BayesianNetwork([CPT(wet, [rain], [[0.9, 0.1], [0.2, 0.8]]), CPT(rain, table=[0.3, 0.7])])
    >>> net
    <BayesianNetwork: 2 nodes, 1 arc>
    >>> [v.name for v in net.variables], net.parents("Wet")
    (['Rain', 'Wet'], ('Rain',))
    >>> round(net.probability({"Rain": "yes", "Wet": "no"}), 12)
    0.03
    """

    __slots__ = ("_children", "_conditionals", "_variables", "continuous", "memo", "metadata", "name")

    name: str
    metadata: Mapping[str, str]
    continuous: tuple[str, ...]
    """The names of the continuous variables, in topological order."""
    _conditionals: dict[str, Conditional]
    _children: dict[str, list[str]]
    _variables: dict[str, Variable]
    memo: dict[str, Any]
    """What others keep with the network so as not to work it out again; no part of its value."""

    def __init__(
        self,
        conditionals: Iterable[Conditional],
        name: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise ModelError(f"a network's name must be a string, found {name!r}")
        given = by_name(conditionals)
        if not given:
            raise ModelError("the network is empty; it needs at least one node")
        check_parents(given)
        children: dict[str, list[str]] = {child: [] for child in given}
        for child, conditional in given.items():
            for parent in conditional.parents:
                children[parent.name].append(child)
        order = topological_order(given, children)
        variables = {node: given[node].variable for node in order}
        self._set(
            name=name,
            metadata=MappingProxyType(
                {checked_name(k, "a metadata key"): str(v) for k, v in (metadata or {}).items()}
            ),
            _conditionals={node: given[node] for node in order},
            _children={node: children[node] for node in order},
            _variables=variables,
            continuous=tuple([node for node, v in variables.items() if isinstance(v, Continuous)]),
            memo={},
        )

    @classmethod
    def from_graph(cls, graph: nx.DiGraph[Any], name: str = "") -> BayesianNetwork:
        """A network from a graph whose nodes carry "states" and "cpt" (a CPT or a Gaussian), or "states" and "table".

        The parents' order, and so the table's axes, is that of `graph.predecessors(node)`, the order in which
        the arcs were added; a node attribute "parents" overrides it.
        """
        return cls(of_graph(graph), name=name or str(graph.graph.get("name", "")))

    # What it is made of

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables in topological order: every parent before its children."""
        return tuple(self._variables.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names in topological order."""
        return tuple(self._variables)

    @property
    def conditionals(self) -> tuple[Conditional, ...]:
        """The conditionals in topological order."""
        return tuple(self._conditionals.values())

    @property
    def arcs(self) -> tuple[tuple[str, str], ...]:
        """(parent, child) pairs, children in topological order, parents in the order of the child's table."""
        return tuple((p.name, child) for child, c in self._conditionals.items() for p in c.parents)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: per table, its rows times one less than its states; those of Gaussians."""
        return sum(c.n_parameters for c in self._conditionals.values() if isinstance(c, CPT | Gaussian))

    @property
    def graph(self) -> nx.DiGraph[str]:
        """The structure as a frozen networkx DiGraph; nodes carry "states" and "cpt", continuous ones "continuous"."""
        if "graph" not in self.memo:
            import networkx as nx

            graph: nx.DiGraph[str] = nx.DiGraph(name=self.name)
            for node, conditional in self._conditionals.items():
                graph.add_node(node, states=conditional.variable.states, cpt=conditional)
                if isinstance(conditional.variable, Continuous):
                    graph.nodes[node]["continuous"] = True
            graph.add_edges_from(self.arcs)
            self.memo["graph"] = nx.freeze(graph)
        frozen: nx.DiGraph[str] = self.memo["graph"]
        return frozen

    def factors(self) -> list[Factor]:
        """The tables as factors, in topological order; their product is the joint."""
        return [self._table(name).factor() for name in self._conditionals]

    def variable(self, name: str) -> Variable:
        """The variable of this name."""
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise EvidenceError(self._unknown(name)) from None

    def __getitem__(self, name: str) -> CPT:
        """The CPT (or other conditional) of the variable of this name."""
        self.variable(name)
        return self._conditionals[name]  # type: ignore[return-value]  # a CPT unless another kind was put in

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def states(self, name: str) -> tuple[State, ...]:
        """The states of the variable of this name."""
        return self.variable(name).states

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of its parents, in the order of its table's axes."""
        self.variable(name)
        return tuple(p.name for p in self._conditionals[name].parents)

    def children(self, name: str) -> tuple[str, ...]:
        """The names of its children."""
        self.variable(name)
        return tuple(self._children[name])

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """The names of its parents, children and children's other parents, in topological order."""
        blanket = set(self.parents(name))
        for child in self.children(name):
            blanket.add(child)
            blanket.update(self.parents(child))
        blanket.discard(name)
        return tuple(node for node in self._variables if node in blanket)

    def ancestral_set(self, names: Iterable[str]) -> set[str]:
        """These variables and all their ancestors.

        >>> import bbn
        >>> sorted(bbn.example("burglary").ancestral_set(["Alarm"]))
        ['Alarm', 'Burglary', 'Earthquake']
        """
        found: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name not in found:
                found.add(name)
                stack.extend(self.parents(name))
        return found

    def is_d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether every path between x and y is blocked by `given`, so that they are independent given it.

        >>> import bbn
        >>> bbn.example("campfire").is_d_separated("Thunder", "Campfire", given="Storm")
        True
        """
        import networkx as nx

        left, right, middle = ({n} if isinstance(n, str) else set(n) for n in (x, y, given))
        for name in sorted(left | right | middle, key=str):
            self.variable(name)
        if left & right or left & middle or right & middle:
            both = sorted((left & right) | (left & middle) | (right & middle))
            raise EvidenceError(f"d-separation needs disjoint sets; {both} is in two of them")
        return bool(nx.is_d_separator(self.graph, left, right, middle))

    # Changes, each a new network

    def with_cpts(self, cpts: Iterable[Conditional]) -> BayesianNetwork:
        """The network with these conditionals in place of (or beside) those of the same variables."""
        return BayesianNetwork({**self._conditionals, **by_name(cpts)}.values(), self.name, self.metadata)

    def do(self, interventions: Mapping[str, State | float]) -> BayesianNetwork:
        """The network in which these variables are set from outside (Pearl 2009, section 3.2).

        Each one's arcs from its parents are cut, and its state is certain; a continuous variable is set to a number,
        with variance 0.

        >>> import bbn
        >>> net = bbn.example("campfire").do({"Campfire": "yes"})
        >>> net.parents("Campfire"), net["Campfire"].table
        ((), array([1., 0.]))
        """
        if not isinstance(interventions, Mapping):
            raise EvidenceError(f"do needs a mapping from variable to state, found {interventions!r}")
        fixed: list[Conditional] = []
        for name, state in interventions.items():
            variable = self.variable(name)
            if isinstance(variable, Continuous):
                fixed.append(Gaussian.point(variable, variable.number(state)))
                continue
            table = np.zeros(variable.card)
            table[variable.code(state)] = 1.0
            fixed.append(CPT.trusted(variable, (), table))
        return self.with_cpts(fixed)

    def rename(self, names: Mapping[str, str]) -> BayesianNetwork:
        """The network with nodes renamed, old name to new name."""
        from bbn.model.edits import rename

        return rename(self, names)

    def relabel(self, name: str, states: Mapping[State, State]) -> BayesianNetwork:
        """The network with states of one variable renamed, old state to new state."""
        from bbn.model.edits import relabel

        return relabel(self, name, states)

    def add_arc(self, parent: str, child: str) -> BayesianNetwork:
        """The network with one more arc; the child's table is repeated for each state of its new last parent."""
        from bbn.model.edits import add_arc

        return add_arc(self, parent, child)

    def remove_arc(
        self, parent: str, child: str, weights: Mapping[State, float] | None = None
    ) -> BayesianNetwork:
        """The network with one arc less; the child's table is averaged over the parent's states.

        The average is plain, or by `weights`, state to weight, for example `net.query(parent).to_dict()`.
        """
        from bbn.model.edits import remove_arc

        return remove_arc(self, parent, child, weights)

    def discrete_part(self) -> BayesianNetwork:
        """The network of the discrete variables: none has a continuous parent, so the joint over them is unchanged.

        >>> import bbn
        >>> bbn.example("burglary").discrete_part() == bbn.example("burglary")
        True
        """
        if not self.continuous:
            return self
        return BayesianNetwork(
            [c for c in self._conditionals.values() if not isinstance(c.variable, Continuous)],
            self.name,
            self.metadata,
        )

    def subnetwork(self, names: Iterable[str]) -> BayesianNetwork:
        """The network of these variables and their ancestors: the joint over them is unchanged."""
        from bbn.model.edits import subnetwork

        return subnetwork(self, names)

    # Probabilities

    def joint(self, memory_limit: int | str | None = None) -> Factor:
        """The full joint over `variables`, in their order; BudgetError if it would not fit.

        >>> import bbn
        >>> bbn.example("burglary").joint()["yes", "no", "yes", "yes", "no"]
        0.0002532924...
        """
        variables = self.variables
        require_table(
            [v.card for v in variables],
            f"the joint of {len(variables)} variables",
            "query the variables you need instead",
            memory_limit,
        )
        product = Factor.trusted((), np.array(1.0))
        for factor in self.factors():
            product = product * factor
        return product.permute(self.names)

    def probability(self, assignment: Mapping[str, Any]) -> float:
        """The probability of a full assignment, by the chain rule, or of a partial one, the rest summed out.

        Where continuous variables are among it, it is a density.
        """
        if not isinstance(assignment, Mapping):
            raise EvidenceError(f"probability needs a mapping from variable to state, found {assignment!r}")
        if len(assignment) == len(self._variables) and all(
            map(self._is_state, assignment, assignment.values())
        ):
            codes = {name: self._variables[name].find(state) for name, state in assignment.items()}
            return float(np.prod([self._entry(name, codes) for name in self._conditionals]))
        from bbn.inference import probability

        return probability(self, assignment)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the network to a file; the format is that of the suffix unless given."""
        from bbn.io import save

        save(self, path, format)

    # The value

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        n, m = len(self), len(self.arcs)
        return f"<BayesianNetwork{title}: {n} node{'s' * (n != 1)}, {m} arc{'s' * (m != 1)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return BayesianNetwork, (list(self._conditionals.values()), self.name, dict(self.metadata))

    def _table(self, name: str) -> CPT:
        conditional = self._conditionals[name]
        if not isinstance(conditional, CPT):
            if isinstance(conditional.variable, Continuous):
                raise ModelError(
                    f"{name!r} is continuous and has no table; discrete_part() is the network without such variables"
                )
            raise ModelError(f"{name!r} is a {type(conditional).__name__}; a table was needed")
        return conditional

    def _entry(self, name: str, codes: Mapping[str, int | None]) -> float:
        cpt = self._table(name)
        return float(cpt.table[tuple(codes[v.name] for v in (*cpt.parents, cpt.variable))])

    def _is_state(self, name: str, state: object) -> bool:
        return self.variable(name).find(state) is not None

    def _unknown(self, name: object) -> str:
        title = f"network {self.name!r}" if self.name else "the network"
        return f"{title} has no variable {shown(name)}{nearest(name, self._variables)}"
