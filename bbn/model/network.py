"""BayesianNetwork: a frozen directed acyclic graph of conditionals.

P(x_1, …, x_n) = ∏ P(x_i | parents(x_i)) (Pearl 1988, section 3.3). A network holds conditionals, anything with
a `variable` and `parents`; a CPT is the first kind, a Gaussian the second. Building and checking it takes time
linear in its size, and nothing modifies it: every edit gives a new network, and everything above asks it questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import EvidenceError, ModelError
from bbn.core.keywords import keywords_checked
from bbn.core.missing_names import NamesSuggested
from bbn.model.assembly import by_name, check_parents, of_graph, topological_order
from bbn.model.cpt import CPT, Conditional
from bbn.model.edit_methods import EditMethods
from bbn.model.evidence import as_mapping
from bbn.model.factor import Factor
from bbn.model.gaussian import Gaussian
from bbn.model.network_structure import NetworkStructure
from bbn.model.node_notes import described, latent_names
from bbn.model.questions import AskableNetwork
from bbn.model.variable import Continuous, Variable, checked_name

if TYPE_CHECKING:
    import networkx as nx


class BayesianNetwork(
    NetworkStructure, AskableNetwork, EditMethods, NamesSuggested, compared=("_conditionals",)
):
    """A Bayesian network.

    Parameters
    ----------
    conditionals
        One CPT, NoisyMax or Gaussian per variable, in any order.
    name
        A title; comparisons ignore it.
    metadata
        Further strings about the network, such as its description and source; comparisons ignore these too.

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
    """What other modules cache with the network; not part of its value."""

    @keywords_checked
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
    @keywords_checked
    def from_graph(cls, graph: nx.DiGraph[Any], name: str = "") -> BayesianNetwork:
        """A network from a graph whose nodes carry "states" and "cpt" (a CPT or a Gaussian), or "states" and "table".

        The parents' order, and so the table's axes, is that of `graph.predecessors(node)`, the order in which
        the arcs were added; a node attribute "parents" overrides it.

        Parameters
        ----------
        graph : networkx.DiGraph
            Nodes carry "states" and "cpt" (a CPT or a Gaussian), or "states" and "table".
        name : str, default ""
            A title; by default the graph's own.

        Returns
        -------
        BayesianNetwork
            The network.

        Raises
        ------
        ModelError
            A node lacks what it needs, the arcs make a cycle, or a table does not fit its parents.

        See Also
        --------
        bbn.to_networkx : The way back.

        Examples
        --------
        >>> import bbn
        >>> BayesianNetwork.from_graph(bbn.to_networkx(bbn.example("asia"))) == bbn.example("asia")
        True
        """
        return cls(of_graph(graph), name=name or str(graph.graph.get("name", "")))

    # What it is made of

    @property
    def latent(self) -> tuple[str, ...]:
        """The names of the variables that are never measured, those that a YAML file marks as `latent`.

        They are kept in `metadata["latent"]`, a JSON list of names, so every format that keeps metadata keeps them.

        >>> import bbn
        >>> bbn.example("campfire").latent
        ()
        """
        return latent_names(self.metadata, self._variables)

    @property
    def descriptions(self) -> dict[str, str]:
        """What nodes mean, by name, for those that a YAML file describes.

        They are kept in `metadata["descriptions"]`, a JSON mapping, so every format that keeps metadata keeps them.

        >>> rain = CPT(Variable("Rain", ["yes", "no"]), table=[0.2, 0.8])
        >>> BayesianNetwork([rain], metadata={"descriptions": '{"Rain": "in the last hour"}'}).descriptions
        {'Rain': 'in the last hour'}
        """
        return described(self.metadata, self._variables)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: per table, its rows times one less than its states; those of Gaussians."""
        return sum(c.n_parameters for c in self._conditionals.values() if isinstance(c, CPT | Gaussian))

    def factors(self) -> list[Factor]:
        """The tables as factors, in topological order; their product is the joint."""
        return [self._table(name).factor() for name in self._conditionals]

    def __getitem__(self, name: str) -> CPT:
        """The CPT (or other conditional) of the variable of this name."""
        self.variable(name)
        return self._conditionals[name]  # type: ignore[return-value]  # a CPT unless another kind was put in

    # Probabilities

    @keywords_checked
    def joint(self, memory_limit: int | str | None = None) -> Factor:
        """The full joint over `variables`, in their order; BudgetError if it would not fit.

        Parameters
        ----------
        memory_limit : int, float or str, optional
            The most bytes that it may take, such as ``"2 GB"``; by default BBN_MEMORY_LIMIT, or half of the
            memory there is.

        Returns
        -------
        Factor
            One axis per variable, in topological order.

        Raises
        ------
        BudgetError
            The joint would not fit.
        ModelError
            The network has continuous variables.

        See Also
        --------
        query : The joint of some variables, which needs far less.

        Examples
        --------
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

    @keywords_checked
    def probability(self, assignment: Mapping[str, Any]) -> float:
        """The probability of a full assignment, by the chain rule, or of a partial one, the rest summed out.

        Where continuous variables are among it, it is a density.

        Parameters
        ----------
        assignment : mapping
            Variable name to state, or to any finding that `query` takes.

        Returns
        -------
        float
            The probability; with numbers of continuous variables among it, a density.

        Raises
        ------
        EvidenceError
            A variable or state is unknown.

        See Also
        --------
        log_likelihood : Of every row of a table, in logarithms.

        Examples
        --------
        >>> import bbn
        >>> round(bbn.example("burglary").probability({"JohnCalls": "yes"}), 6)
        0.052139
        """
        if assignment is None:
            raise EvidenceError("probability needs a mapping from variable to state, found None")
        assignment = as_mapping(assignment)
        if len(assignment) == len(self._variables) and all(
            map(self._is_state, assignment, assignment.values())
        ):
            codes = {name: self._variables[name].find(state) for name, state in assignment.items()}
            return float(np.prod([self._entry(name, codes) for name in self._conditionals]))
        return math.exp(self._log_evidence(assignment))

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
            raise ModelError(f"{name!r} is a {type(conditional).__name__}; expected a table")
        return conditional

    def _entry(self, name: str, codes: Mapping[str, int | None]) -> float:
        cpt = self._table(name)
        *parents, own = (codes[v.name] for v in (*cpt.parents, cpt.variable))
        return float(cpt.row_at(parents)[own])  # type: ignore[arg-type]
