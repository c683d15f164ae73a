"""What a network is made of: its variables, arcs and graph, and what follows from the graph alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bbn.core.errors import EvidenceError, nearest, shown
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.model.cpt import Conditional
from bbn.model.variable import Continuous, State, Variable

if TYPE_CHECKING:
    import networkx as nx


class NetworkStructure(Frozen):
    """A directed acyclic graph of conditionals, without a word on probabilities."""

    __slots__ = ()

    name: str
    memo: dict[str, Any]
    _conditionals: dict[str, Conditional]
    """The conditionals by name, in topological order."""
    _children: dict[str, list[str]]
    _variables: dict[str, Variable]

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

    def variable(self, name: str) -> Variable:
        """The variable of this name.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        Variable
            A Continuous where its values are numbers.

        Raises
        ------
        EvidenceError
            There is none; the error names the nearest.
        """
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise EvidenceError(self._unknown(name)) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def states(self, name: str) -> tuple[State, ...]:
        """The states of the variable of this name.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        tuple
            The states in order; empty for a continuous variable.

        Raises
        ------
        EvidenceError
            There is no such variable.
        """
        return self.variable(name).states

    def parents(self, name: str) -> tuple[str, ...]:
        """The names of its parents, in the order of its table's axes.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        tuple of str
            The parents' names.

        Raises
        ------
        EvidenceError
            There is no such variable.
        """
        self.variable(name)
        return tuple(p.name for p in self._conditionals[name].parents)

    def children(self, name: str) -> tuple[str, ...]:
        """The names of its children.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        tuple of str
            The children's names.

        Raises
        ------
        EvidenceError
            There is no such variable.
        """
        self.variable(name)
        return tuple(self._children[name])

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """The names of its parents, children and children's other parents, in topological order.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        tuple of str
            Given these, the variable is independent of all others.

        Raises
        ------
        EvidenceError
            There is no such variable.

        See Also
        --------
        is_d_separated : Whether some variables are independent given others.

        Examples
        --------
        >>> import bbn
        >>> bbn.example("burglary").markov_blanket("Burglary")
        ('Earthquake', 'Alarm')
        """
        blanket = set(self.parents(name))
        for child in self.children(name):
            blanket.add(child)
            blanket.update(self.parents(child))
        blanket.discard(name)
        return tuple(node for node in self._variables if node in blanket)

    def ancestral_set(self, names: Iterable[str]) -> set[str]:
        """These variables and all their ancestors.

        Parameters
        ----------
        names : iterable of str
            Variables of the network.

        Returns
        -------
        set of str
            Their names and those of all their ancestors.

        Raises
        ------
        EvidenceError
            There is no such variable.

        See Also
        --------
        subnetwork : The network of these variables.

        Examples
        --------
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

    @keywords_checked
    def is_d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether every path between x and y is blocked by `given`, so that they are independent given it.

        Parameters
        ----------
        x, y : str or iterable of str
            The variables on either side.
        given : str or iterable of str, default ()
            The variables observed.

        Returns
        -------
        bool
            Whether they are independent in every network of this structure.

        Raises
        ------
        EvidenceError
            There is no such variable, or one is in two of the sets.

        See Also
        --------
        markov_blanket : What separates a variable from all others.

        Examples
        --------
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

    def _unknown(self, name: object) -> str:
        title = f"network {self.name!r}" if self.name else "the network"
        return f"{title} has no variable {shown(name)}{nearest(name, self._variables)}"

    def _is_state(self, name: str, state: object) -> bool:
        return self.variable(name).find(state) is not None
