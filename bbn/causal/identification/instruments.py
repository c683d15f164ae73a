"""Instruments: variables that move the treatment, and the outcome through the treatment alone.

Z is an instrument for the effect of x on y, given W, if x and y affect neither Z nor W, Z depends on x given W, and W
separates Z from y once the arcs into x are cut (Pearl 2009, definition 7.4.1). The sets W that are tried are the
minimal separators among the ancestors of Z and y (ancestral instruments; van der Zander, Textor and Liśkiewicz 2015).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

from bbn.causal.graph.causal_graph import as_causal_graph
from bbn.causal.graph.graph_parts import Names
from bbn.causal.graph.separators import minimal_separators
from bbn.causal.identification.front_door import one_measured
from bbn.core.errors import EvidenceError
from bbn.core.keywords import keywords_checked

MOST_SETS = 1000
"""As many conditioning sets are tried for a candidate."""


class Instrument(NamedTuple):
    """An instrument, and what it must be conditioned on."""

    name: str
    given: Names


@keywords_checked
def instruments(
    graph: Any, treatment: str, outcome: str, latent: str | Iterable[str] = ()
) -> list[Instrument]:
    """List the instruments for the effect of a treatment on an outcome.

    Parameters
    ----------
    graph
        A `CausalGraph`, a DiGraph, a network or a list of arcs.
    treatment, outcome
        Names.
    latent
        Variables that are not measured, besides those that the graph says are hidden.

    Returns
    -------
    list of Instrument
        (name, given) pairs, those that need the fewest other variables first.

    Raises
    ------
    EvidenceError
        For a name that is unknown, hidden, or both treatment and outcome.

    See Also
    --------
    effect_bounds : What an instrument tells about an effect that is not identified.

    Examples
    --------
    >>> import bbn
    >>> graph = bbn.CausalGraph([("Z", "X"), ("X", "Y")], confounded=[("X", "Y")])
    >>> bbn.instruments(graph, "X", "Y")
    [Instrument(name='Z', given=frozenset())]
    """
    full = as_causal_graph(graph, latent)
    x, y = one_measured(full, treatment, "treatment"), one_measured(full, outcome, "outcome")
    if x == y:
        raise EvidenceError(f"{x!r} is both treatment and outcome")
    cut = full.without_arcs(into=x)
    affected = full.descendants([x, y])
    found = []
    for name in full.observed:
        if name in affected:
            continue
        allowed = frozenset(full.observed) - affected - {name}
        sets = minimal_separators(cut, frozenset([name]), frozenset([y]), allowed)
        for given in islice(sets, MOST_SETS):
            if not full.is_d_separated(name, x, given):
                found.append(Instrument(name, given))
                break
    return sorted(found, key=lambda one: (len(one.given), full.nodes.index(one.name)))
