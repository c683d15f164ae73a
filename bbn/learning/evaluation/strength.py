"""Arc strength: how sure the data are of each arc, by learning again from resampled rows.

The strength of an edge is the share of bootstrap samples in which a learner joins the pair, and the direction of an arc
the share of those in which it points that way (Friedman, Goldszmidt & Wyner 1999). An undirected edge of a CPDAG counts
half for each direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.frozen import Frozen
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import STOPS, all_or_nothing, limited, reason_of
from bbn.data.reading import Reading
from bbn.kernels.watch import check
from bbn.learning.evaluation.resample import as_learner, in_memory, take
from bbn.learning.structure.constraints import INSTEAD, all_variables
from bbn.model.network import BayesianNetwork
from bbn.model.variable import State, Variable

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

Arc = tuple[str, str]


class ArcStrength(Tabular, Frozen, compared=("n", "strengths", "directions")):
    """How often a learner found each arc.

    Attributes
    ----------
    n
        The number of bootstrap samples.
    strengths
        Arc to the share of samples in which its ends are joined, whichever way; strongest first.
    directions
        Arc to the share of those in which it points this way.
    interrupted
        Whether Ctrl-C ended the resampling early; the shares are then of the `n` samples that were made.
    """

    __slots__ = ("directions", "interrupted", "n", "strengths", "variables")

    n: int
    strengths: dict[Arc, float]
    directions: dict[Arc, float]
    interrupted: bool
    variables: tuple[Variable, ...]

    def __init__(
        self, variables: tuple[Variable, ...], counts: dict[Arc, float], n: int, interrupted: bool = False
    ) -> None:
        joined: dict[Arc, float] = {}
        for a, b in counts:
            joined[a, b] = counts.get((a, b), 0.0) + counts.get((b, a), 0.0)
            joined[b, a] = joined[a, b]
        ranked = sorted(joined, key=lambda arc: (-joined[arc], -counts.get(arc, 0.0), arc))
        self._set(
            n=n,
            strengths={arc: joined[arc] / n for arc in ranked},
            directions={arc: counts.get(arc, 0.0) / joined[arc] for arc in ranked},
            interrupted=interrupted,
            variables=variables,
        )

    def network(self, threshold: float = 0.5) -> nx.DiGraph[str]:
        """The averaged structure: edges of at least this strength, each in its more frequent direction.

        The strongest come first; an arc that would close a cycle points the other way, or is left out. Edges carry
        "strength" and "direction".

        Parameters
        ----------
        threshold : float, default 0.5
            The least strength of an edge, from 0 to 1.

        Returns
        -------
        networkx.DiGraph
            A structure that `bbn.fit` takes.
        """
        import networkx as nx

        from bbn.learning.structure.constraints import to_graph

        graph = to_graph(self.variables, ())
        for (a, b), strength in self.strengths.items():
            if strength >= threshold and not graph.has_edge(a, b) and not graph.has_edge(b, a):
                if self.directions[a, b] < self.directions[b, a] or nx.has_path(graph, b, a):
                    continue
                graph.add_edge(a, b, strength=strength, direction=self.directions[a, b])
        return graph

    def to_frame(self) -> pd.DataFrame:
        """One row per arc: from, to, strength, direction."""
        import pandas as pd

        arcs = list(self.strengths)
        return pd.DataFrame(
            {
                "from": [a for a, _ in arcs],
                "to": [b for _, b in arcs],
                "strength": list(self.strengths.values()),
                "direction": [self.directions[arc] for arc in arcs],
            }
        )

    def __repr__(self) -> str:
        sure = sum(strength >= 0.5 for strength in self.strengths.values()) // 2
        return f"<ArcStrength: {self.n} samples, {sure} edges in at least half of them>"

    def __str__(self) -> str:
        return repr(self)

    def _table(self) -> Table:
        ranked = sorted(self.strengths.items(), key=lambda item: (-item[1], -self.directions[item[0]]))
        rows: list[list[Cell]] = [
            [*arc, f"{s:.3f}", f"{self.directions[arc]:.3f}", Bar(s)] for arc, s in ranked
        ]
        return Table(["from", "to", "strength", "direction", ""], rows, f"{self.n} samples")


@keywords_checked
@limited(INSTEAD)
def arc_strength(
    data: Any,
    learner: Any = "hill-climb",
    n: int = 200,
    seed: int | np.random.Generator | None = None,
    *,
    time_limit: float | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> ArcStrength:
    """Learn from `n` tables of rows drawn with replacement, and count the arcs.

    Parameters
    ----------
    data
        Anything tabular in memory.
    learner
        A function of data that gives a structure, such as ``bbn.hill_climb`` or
        ``lambda rows: bbn.k2(rows, order)``; or "hill-climb", "chow-liu", "k2", "pc" or "ges".
    n
        The number of samples.
    seed
        For the samples; None draws others each time.
    time_limit
        The most seconds, after which the samples so far count; TimeLimitError where there is not one. None is
        BBN_TIME_LIMIT, or else any time.
    progress
        Whether to show a bar; None shows one on a terminal or in a notebook.
    states
        Column to its states, in the order they are to have; those that occur unless given.
    weights
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers.

    References
    ----------
    Friedman, Goldszmidt & Wyner (1999), Data analysis with Bayesian networks: a bootstrap approach.

    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1, 1, 0] * 9}
    >>> found = arc_strength(data, n=20, seed=0)
    >>> found.strengths["A", "B"], sorted(found.network().edges)
    (1.0, [('A', 'B')])
    """
    if n < 1:
        raise ValueError(f"n is {n}; expected at least one sample")
    table = in_memory(data, "arc_strength", Reading(states, weights, missing, unseen, continuous))
    learn = as_learner(learner)
    rng = np.random.default_rng(seed)
    counts: dict[Arc, float] = {}
    done, interrupted = 0, False
    with progress_bar(progress, n, "bootstrap", "sample") as advance:
        try:
            for _ in range(n):
                drawn = take(table, np.sort(rng.integers(table.n_rows, size=table.n_rows)))
                with all_or_nothing():
                    check()
                    found = learn(drawn)
                graph = found.graph if isinstance(found, BayesianNetwork) else found
                for a, b in graph.edges:
                    counts[a, b] = counts.get((a, b), 0.0) + (0.5 if graph.has_edge(b, a) else 1.0)
                done += 1
                advance(1)
        except STOPS as stop:
            interrupted = bool(reason_of(stop))
            if not done:
                raise
    return ArcStrength(all_variables(table), counts, done, interrupted)
