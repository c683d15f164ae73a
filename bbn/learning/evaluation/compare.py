"""Comparing structures: which arcs a learned one lacks, has too many of, or has the wrong way round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bbn.core.display import Table, Tabular
from bbn.core.errors import ModelError
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.model.equivalence import cpdag, directed, is_cpdag, skeleton, structural_distance
from bbn.model.network import BayesianNetwork

if TYPE_CHECKING:
    import networkx as nx

Arcs = tuple[tuple[str, str], ...]


class Comparison(Tabular, Frozen):
    """How a learned structure differs from the true one.

    Attributes
    ----------
    missing
        Arcs of the truth between variables that are not joined in the learned structure.
    extra
        Learned arcs between variables that are not joined in the truth.
    reversed
        Learned arcs that the truth has the other way round.
    undirected
        Edges, by their arc in the truth, or otherwise in the learned structure, that one of the two leaves undirected.
    shd
        The structural Hamming distance: pairs whose edge differs, each counted once.
    shd_cpdag
        The same between the equivalence classes of the two.
    skeleton_precision, skeleton_recall
        The share of learned edges that are true, and of true edges that are learned, whatever their direction.
    arrow_precision, arrow_recall
        The same of directed arcs.

    An undirected edge, arcs in both directions, appears once, in the order of its names.
    """

    __slots__ = (
        *("arrow_precision", "arrow_recall", "extra", "missing", "reversed", "shd", "shd_cpdag"),
        *("skeleton_precision", "skeleton_recall", "undirected"),
    )

    missing: Arcs
    extra: Arcs
    reversed: Arcs
    undirected: Arcs
    shd: int
    shd_cpdag: int | None
    skeleton_precision: float
    skeleton_recall: float
    arrow_precision: float
    arrow_recall: float

    def __init__(self, learned: nx.DiGraph[str], truth: nx.DiGraph[str]) -> None:
        ours, theirs = skeleton(learned), skeleton(truth)
        our_arcs, their_arcs = directed(learned), directed(truth)
        self._set(
            missing=_arcs(truth, theirs - ours),
            extra=_arcs(learned, ours - theirs),
            reversed=tuple(sorted((a, b) for a, b in our_arcs if (b, a) in their_arcs)),
            undirected=tuple(
                sorted(
                    (a, b)
                    for a, b in our_arcs ^ their_arcs
                    if frozenset((a, b)) in ours & theirs and (b, a) not in our_arcs | their_arcs
                )
            ),
            shd=structural_distance(learned, truth),
            shd_cpdag=structural_distance(_class(learned), _class(truth)),
            skeleton_precision=_share(len(ours & theirs), len(ours)),
            skeleton_recall=_share(len(ours & theirs), len(theirs)),
            arrow_precision=_share(len(our_arcs & their_arcs), len(our_arcs)),
            arrow_recall=_share(len(our_arcs & their_arcs), len(their_arcs)),
        )

    def __repr__(self) -> str:
        parts = [f"{len(getattr(self, name))} {name}" for name in ("missing", "extra", "reversed")]
        if self.undirected:
            parts.append(f"{len(self.undirected)} undirected")
        return f"<Comparison: {', '.join(parts)}; SHD {self.shd}, of CPDAGs {self.shd_cpdag}>"

    def __str__(self) -> str:
        return repr(self)

    def _table(self) -> Table:
        kinds = {name: getattr(self, name) for name in ("missing", "extra", "reversed", "undirected")}
        rows = [
            [kind, str(len(arcs)), ", ".join(f"{a} → {b}" for a, b in arcs)] for kind, arcs in kinds.items()
        ]
        shares = (
            f"skeleton: precision {self.skeleton_precision:.3g}, recall {self.skeleton_recall:.3g}; "
            f"arrows: precision {self.arrow_precision:.3g}, recall {self.arrow_recall:.3g}"
        )
        title = f"SHD {self.shd}, of CPDAGs {self.shd_cpdag}"
        return Table(["kind", "arcs", "which"], rows, title, shares)


@keywords_checked
def compare(learned: Any, truth: Any) -> Comparison:
    """Compare a learned structure with the true one.

    Parameters
    ----------
    learned, truth
        DiGraphs, networks or lists of arcs, over the same variables; either may be a CPDAG, with undirected edges as
        arcs in both directions.

    >>> compare([("A", "B"), ("C", "B")], [("B", "A"), ("B", "C"), ("A", "D")])
    <Comparison: 1 missing, 0 extra, 2 reversed; SHD 3, of CPDAGs 3>
    >>> compare([("A", "B"), ("B", "C")], [("B", "A"), ("C", "B")]).shd_cpdag
    0
    """
    one, other = _graph(learned, "learned"), _graph(truth, "truth")
    both_graphs = not (isinstance(learned, list | tuple) or isinstance(truth, list | tuple))
    if both_graphs and set(one) != set(other):
        odd = sorted(set(one) ^ set(other), key=str)
        raise ModelError(
            f"the structures have different variables: {', '.join(map(repr, odd[:6]))} in one only"
        )
    return Comparison(one, other)


def _graph(structure: Any, what: str) -> nx.DiGraph[str]:
    import networkx as nx

    if isinstance(structure, BayesianNetwork):
        return structure.graph
    if isinstance(structure, nx.Graph):
        if not isinstance(structure, nx.DiGraph):
            raise ModelError(f"{what} is an undirected graph; expected a networkx DiGraph")
        return structure
    return nx.DiGraph([(a, b) for a, b in structure])


def _class(graph: nx.DiGraph[str]) -> nx.DiGraph[str]:
    """The CPDAG of a DAG; a CPDAG is itself."""
    return graph if is_cpdag(graph) else cpdag(graph)


def _arcs(graph: nx.DiGraph[str], pairs: set[frozenset[str]]) -> Arcs:
    """The arcs of these pairs; an undirected edge once."""
    arcs = []
    for pair in pairs:
        a, b = sorted(pair)
        arcs.append((a, b) if graph.has_edge(a, b) else (b, a))
    return tuple(sorted(arcs))


def _share(part: int, whole: int) -> float:
    """A part over its whole; 1 where the whole is 0."""
    return part / whole if whole else 1.0
