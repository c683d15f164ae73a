"""Front doors: mediators M with P(y | do(x)) = Σ_m P(m | x) Σ_x′ P(y | m, x′) P(x′) (Pearl 1995).

M serves if it meets every causal path from x to y, no back-door path leads from x to M, and x blocks every back-door
path from M to y. The second and third conditions leave a largest candidate set, found by striking out what breaks them
(Jeong, Tian and Bareinboim 2022); every valid set lies inside it, and the minimal ones are listed by size.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from bbn.causal.graph.causal_graph import CausalGraph, as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.core.errors import BudgetError, EvidenceError
from bbn.core.keywords import keywords_checked

MOST_TRIES = 100_000
"""As many sets are looked at; beyond, BudgetError asks for a largest size."""


@keywords_checked
@keywords_checked
def front_door_sets(
    graph: Any, treatment: str, outcome: str, latent: str | Iterable[str] = (), *, max_size: int | None = None
) -> list[Names]:
    """List the minimal sets of mediators that the front-door formula may use.

    Parameters
    ----------
    graph
        A `CausalGraph`, a DiGraph, a network or a list of arcs.
    treatment, outcome
        Names.
    latent
        Variables that are not measured, besides those that the graph says are hidden.
    max_size
        The most variables of a set, or None for no limit.

    Returns
    -------
    list of frozenset
        The smallest first, then by name. The empty set means that the treatment has no effect.

    Raises
    ------
    EvidenceError
        For a name that is unknown, hidden, or both treatment and outcome.
    BudgetError
        If more than MOST_TRIES sets would have to be looked at.

    See Also
    --------
    adjustment_sets, instruments : Other ways to an effect.
    identify : The complete answer.

    Examples
    --------
    >>> import bbn
    >>> graph = bbn.CausalGraph([("Smoking", "Tar"), ("Tar", "Cancer")], confounded=[("Smoking", "Cancer")])
    >>> bbn.front_door_sets(graph, "Smoking", "Cancer")
    [frozenset({'Tar'})]
    """
    full = as_causal_graph(graph, latent)
    x, y = one_measured(full, treatment, "treatment"), one_measured(full, outcome, "outcome")
    if x == y:
        raise EvidenceError(f"{x!r} is both treatment and outcome")
    candidates = _candidates(full, x, y)
    largest = len(candidates) if max_size is None else min(max_size, len(candidates))
    found: list[Names] = []
    tries = 0
    for size in range(largest + 1):
        for names in combinations(candidates, size):
            chosen = frozenset(names)
            if any(smaller <= chosen for smaller in found):
                continue
            tries += 1
            if tries > MOST_TRIES:
                raise BudgetError(
                    f"more than {MOST_TRIES:,} sets of the {len(candidates)} candidates would have to be looked at; "
                    "max_size= bounds the size of a set"
                )
            if _meets_all(full, x, y, chosen) and _no_way_back(full, x, y, chosen):
                found.append(chosen)
    return found


def one_measured(graph: CausalGraph, name: str, what: str) -> str:
    """The name; EvidenceError if it is not one measured variable."""
    if not isinstance(name, str):
        raise EvidenceError(f"{what}: expected one variable's name, found {name!r}")
    graph.names(name, what)
    if name in graph.latent:
        raise EvidenceError(f"{what}: {name!r} is hidden, so nothing is known about it from data")
    return name


def _candidates(graph: CausalGraph, x: str, y: str) -> list[str]:
    """The largest set that meets the second and third condition, in the graph's order."""
    cut = graph.without_arcs(out_of=x)
    left = [name for name in graph.observed if name not in (x, y) and cut.is_d_separated(x, name)]
    while True:
        bare = graph.without_arcs(out_of=left)
        kept = [name for name in left if bare.is_d_separated(name, y, x)]
        if kept == left or not kept:
            return kept
        left = kept


def _meets_all(graph: CausalGraph, x: str, y: str, chosen: Names) -> bool:
    """Whether every causal path from x to y meets the set."""
    return y not in graph.descendants(x, within=frozenset(graph.nodes) - chosen)


def _no_way_back(graph: CausalGraph, x: str, y: str, chosen: Names) -> bool:
    """Whether x blocks every back-door path from the set to y."""
    return not chosen or graph.without_arcs(out_of=chosen).is_d_separated(chosen, y, x)
