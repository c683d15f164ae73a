"""CausalGraph: which variable acts on which, hidden causes included.

An arc a → b says that a may act on b directly. A hidden cause is either a node of the graph named in `latent`, or a
two-headed arc a ↔ b, which says that some unmeasured variable acts on both. The *latent projection* (Verma and Pearl
1990) turns the first into the second: it is the graph over the measured variables alone, and everything that can be
said about them can be read off it. Separation is decided on the graph in which each two-headed arc is a hidden parent
of its two ends. Every question here takes time linear in the size of the graph.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import networkx as nx

from bbn.causal.graph.graph_parts import Arc, Names, Relatives, causes_first, names_listed, pair_of, parts_of
from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.core.keywords import keywords_checked
from bbn.core.missing_names import NamesSuggested
from bbn.model.variable import checked_name

if TYPE_CHECKING:
    from bbn.view.scene import Drawing


class CausalGraph(Relatives, NamesSuggested):
    """A causal diagram: arcs, two-headed arcs and hidden variables.

    Parameters
    ----------
    arcs
        (cause, effect) pairs; a networkx DiGraph, whose node attribute "latent" and graph attribute "confounded" are
        honoured; a network, whose hidden variables stay hidden; or another CausalGraph.
    confounded
        Pairs of variables with an unmeasured common cause: X ↔ Y.
    latent
        Nodes that are not measured.
    nodes
        Further variables, for those without arcs.

    Attributes
    ----------
    nodes, observed, latent
        The names of all variables, of those measured and of those hidden, causes before effects.
    arcs, confounded
        The arcs, and the two-headed arcs, as pairs.

    Raises
    ------
    ModelError
        For a cycle, a name that is not a string, or a pair that is not a pair.
    EvidenceError
        If `latent` names a variable that is not in the graph.

    See Also
    --------
    adjustment_sets : What to adjust for.
    identify : Whether, and how, an effect follows from what is measured.

    Examples
    --------
    >>> import bbn
    >>> graph = bbn.CausalGraph([("Smoking", "Tar"), ("Tar", "Cancer")], confounded=[("Smoking", "Cancer")])
    >>> graph
    <CausalGraph: Smoking → Tar, Tar → Cancer, Smoking ↔ Cancer>
    >>> graph.districts()
    [('Smoking', 'Cancer'), ('Tar',)]
    """

    __slots__ = ("_children", "_parents", "_siblings", "arcs", "confounded", "latent", "memo", "nodes")

    nodes: tuple[str, ...]
    arcs: tuple[Arc, ...]
    confounded: tuple[Arc, ...]
    latent: tuple[str, ...]
    _parents: dict[str, tuple[str, ...]]
    _children: dict[str, tuple[str, ...]]
    _siblings: dict[str, tuple[str, ...]]
    memo: dict[Any, Any]
    """What others keep with the graph so as not to work it out again; no part of its value."""

    @keywords_checked
    def __init__(
        self,
        arcs: Any = (),
        confounded: Iterable[Sequence[str]] = (),
        latent: str | Iterable[str] = (),
        nodes: Iterable[str] = (),
    ) -> None:
        listed, pairs, hidden, names = parts_of(arcs)
        pairs = [*pairs, *(pair_of(pair, "a two-headed arc") for pair in confounded)]
        listed = list(dict.fromkeys(listed))
        ends = [end for pair in (*listed, *pairs) for end in pair]
        known = dict.fromkeys(checked_name(name) for name in (*names, *ends, *nodes))
        order = causes_first(list(known), listed)
        position = {name: i for i, name in enumerate(order)}
        hidden = {*hidden, *names_listed(latent)}
        for name in sorted(hidden, key=str):
            if name not in position:
                raise EvidenceError(f"latent: the graph has no variable {shown(name)}{nearest(name, order)}")
        two_headed: dict[Arc, None] = {}
        for a, b in pairs:
            if a == b:
                raise ModelError(f"the two-headed arc {a!r} ↔ {b!r} joins a variable to itself")
            two_headed[(a, b) if position[a] < position[b] else (b, a)] = None
        self._set_parts(
            tuple(order), tuple(listed), tuple(two_headed), tuple(n for n in order if n in hidden)
        )

    @classmethod
    def _trusted(cls, nodes: Iterable[str], arcs: Iterable[Arc], confounded: Iterable[Arc]) -> CausalGraph:
        """A graph without hidden nodes, from parts known to be right, its nodes in order already."""
        graph = cls.__new__(cls)
        graph._set_parts(tuple(nodes), tuple(arcs), tuple(confounded), ())
        return graph

    def _set_parts(
        self,
        nodes: tuple[str, ...],
        arcs: tuple[Arc, ...],
        confounded: tuple[Arc, ...],
        latent: tuple[str, ...],
    ) -> None:
        parents: dict[str, list[str]] = {name: [] for name in nodes}
        children: dict[str, list[str]] = {name: [] for name in nodes}
        siblings: dict[str, list[str]] = {name: [] for name in nodes}
        for a, b in arcs:
            parents[b].append(a)
            children[a].append(b)
        for a, b in confounded:
            siblings[a].append(b)
            siblings[b].append(a)
        self._set(
            nodes=nodes,
            arcs=arcs,
            confounded=confounded,
            latent=latent,
            _parents={name: tuple(near) for name, near in parents.items()},
            _children={name: tuple(near) for name, near in children.items()},
            _siblings={name: tuple(near) for name, near in siblings.items()},
            memo={},
        )

    def projected(self) -> CausalGraph:
        """The graph over the measured variables alone (latent projection, Verma and Pearl 1990).

        >>> import bbn
        >>> bbn.CausalGraph([("U", "X"), ("U", "Y"), ("X", "Y")], latent=["U"]).projected()
        <CausalGraph: X → Y, X ↔ Y>
        """
        if not self.latent:
            return self
        if "projected" not in self.memo:
            hidden = frozenset(self.latent)
            position = {name: i for i, name in enumerate(self.nodes)}
            arcs = [(a, b) for a in self.observed for b in self._seen_from(self._children[a], hidden)]
            pairs: dict[Arc, None] = {}
            joined = [
                pair for name in self.latent for pair in combinations(self._seen_from((name,), hidden), 2)
            ]
            for ends in self.confounded:
                one, other = (self._seen_from((end,), hidden) for end in ends)
                joined += [(a, b) for a in one for b in other if a != b]
            for a, b in joined:
                pairs[(a, b) if position[a] < position[b] else (b, a)] = None
            self.memo["projected"] = CausalGraph._trusted(self.observed, arcs, sorted(pairs))
        found: CausalGraph = self.memo["projected"]
        return found

    def subgraph(self, names: Collection[str]) -> CausalGraph:
        """The graph of some of the variables, with the arcs among them; hidden ones stay hidden.

        Parameters
        ----------
        names : str or iterable of str
            Variables of the graph.
        """
        kept = self.names(names)
        return CausalGraph(
            [(a, b) for a, b in self.arcs if a in kept and b in kept],
            [(a, b) for a, b in self.confounded if a in kept and b in kept],
            [name for name in self.latent if name in kept],
            [name for name in self.nodes if name in kept],
        )

    def without_arcs(self, into: str | Iterable[str] = (), out_of: str | Iterable[str] = ()) -> CausalGraph:
        """The graph without the arcs, two-headed ones included, that point into some variables or leave others.

        Parameters
        ----------
        into : str or iterable of str, default ()
            The variables whose incoming arcs go.
        out_of : str or iterable of str, default ()
            The variables whose outgoing arcs go.
        """
        heads, tails = self.names(into), self.names(out_of)
        return CausalGraph(
            [(a, b) for a, b in self.arcs if b not in heads and a not in tails],
            [(a, b) for a, b in self.confounded if a not in heads and b not in heads],
            self.latent,
            self.nodes,
        )

    @keywords_checked
    def is_d_separated(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Whether every path between x and y is blocked by `given`, paths through hidden causes included.

        Parameters
        ----------
        x, y : str or iterable of str
            The variables on either side.
        given : str or iterable of str, default ()
            The variables observed.

        Examples
        --------
        >>> import bbn
        >>> bbn.CausalGraph([("X", "Y")], confounded=[("Y", "Z")]).is_d_separated("X", "Z")
        True
        """
        left, right, middle = self.names(x), self.names(y), self.names(given)
        twice = sorted((left & right) | (left & middle) | (right & middle))
        if twice:
            raise EvidenceError(f"d-separation needs disjoint sets; {twice} is in two of them")
        return bool(nx.is_d_separator(self.canonical, set(left), set(right), set(middle)))

    @property
    def canonical(self) -> nx.DiGraph[Any]:
        """The DAG in which each two-headed arc is a hidden parent of its ends, the node ("↔", one, other)."""
        if "canonical" not in self.memo:
            dag: nx.DiGraph[Any] = nx.DiGraph()
            dag.add_nodes_from(self.nodes)
            dag.add_edges_from(self.arcs)
            for a, b in self.confounded:
                dag.add_edges_from([(("↔", a, b), a), (("↔", a, b), b)])
            self.memo["canonical"] = nx.freeze(dag)
        found: nx.DiGraph[Any] = self.memo["canonical"]
        return found

    def to_networkx(self) -> nx.DiGraph[str]:
        """A DiGraph whose hidden nodes have "latent" True, its two-headed arcs in `graph["confounded"]`.

        >>> import bbn
        >>> graph = bbn.CausalGraph([("X", "Y")], confounded=[("X", "Y")])
        >>> bbn.CausalGraph(graph.to_networkx()) == graph
        True
        """
        graph: nx.DiGraph[str] = nx.DiGraph(confounded=list(self.confounded))
        graph.add_nodes_from(self.nodes)
        for name in self.latent:
            graph.nodes[name]["latent"] = True
        graph.add_edges_from(self.arcs)
        return graph

    @keywords_checked
    def plot(
        self,
        treatment: str | Iterable[str] = (),
        outcome: str | Iterable[str] = (),
        adjusted: str | Iterable[str] = (),
    ) -> Drawing:
        """Draw the graph with treatment, outcome, adjusted variables and the open paths between them in colour.

        Parameters
        ----------
        treatment, outcome
            Names; where both are given, the arcs of causal paths and of open non-causal paths have their own colours.
        adjusted
            The variables that are adjusted for, which may close paths or open them.

        >>> import bbn
        >>> graph = bbn.CausalGraph([("Z", "X"), ("Z", "Y"), ("X", "Y")])
        >>> graph.plot("X", "Y").description
        'Causal graph of 3 variables. Treatment X, outcome Y, adjusted for nothing. Open path: X ← Z → Y.'
        """
        from bbn.view.causes import draw_causes

        return draw_causes(self, treatment, outcome, adjusted)

    def _seen_from(self, start: Iterable[str], hidden: Names) -> list[str]:
        """The first measured variables met on the way down from `start`, through hidden ones alone."""
        found: dict[str, None] = {}
        stack, done = list(start), set(start)
        while stack:
            name = stack.pop(0)
            if name not in hidden:
                found[name] = None
                continue
            new = [child for child in self._children[name] if child not in done]
            done.update(new)
            stack += new
        return list(found)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CausalGraph):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        pairs = frozenset(frozenset(pair) for pair in self.confounded)
        return frozenset(self.nodes), frozenset(self.arcs), pairs, frozenset(self.latent)

    def __repr__(self) -> str:
        told = [f"{a} → {b}" for a, b in self.arcs] + [f"{a} ↔ {b}" for a, b in self.confounded]
        joined = {name for pair in (*self.arcs, *self.confounded) for name in pair}
        told += [name for name in self.nodes if name not in joined]
        more = f", … ({len(told)} in all)" if len(told) > 12 else ""
        hidden = f"; hidden: {', '.join(self.latent)}" if self.latent else ""
        return f"<CausalGraph: {', '.join(told[:12])}{more}{hidden}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return CausalGraph, (self.arcs, self.confounded, self.latent, self.nodes)


def as_causal_graph(graph: Any, latent: str | Iterable[str] = ()) -> CausalGraph:
    """A CausalGraph, a DiGraph, a network or a list of arcs, as a CausalGraph."""
    if isinstance(graph, CausalGraph) and not names_listed(latent):
        return graph
    return CausalGraph(graph, latent=latent)
