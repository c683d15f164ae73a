"""How probable each arc is: what `bbn.arc_posterior` gives, and what can be asked of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bbn import kernels
from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import nearest
from bbn.core.frozen import Array, Frozen
from bbn.learning.structure.constraints import arcs_of, to_graph
from bbn.learning.structure.exact.parent_sets import ScoredSets
from bbn.model.variable import Variable

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from bbn.model.evidence import Evidence
    from bbn.results.posterior import Posterior
    from bbn.view.scene import Drawing


class ArcPosterior(
    Tabular, Frozen, compared=("names", "probabilities", "std_error", "method", "prior", "score")
):
    """How probable each arc is, given data.

    Attributes
    ----------
    names : tuple of str
        The variables.
    probabilities : ndarray
        P(arc | data), indexed [parent, child].
    std_error : ndarray
        The standard error of each probability; zeros where they are exact.
    r_hat : ndarray or None
        Of chains: how much the chains differ for each arc, 1 where they agree.
    ess : ndarray or None
        Of chains: how many independent structures would say as much about each arc.
    log_evidence : float or None
        Of exact sums: ln P(data), averaged over the prior, without its normalising constant.
    method : {"exact", "mcmc"}
    prior : {"dags", "orders"}

    Examples
    --------
    >>> import bbn
    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1, 1, 0] * 9}
    >>> found = bbn.arc_posterior(data)
    >>> round(found["A", "B"] + found["B", "A"], 4), found["A", "C"] < 0.1
    (1.0, True)
    """

    __slots__ = (
        "_data",
        "_families",
        "_structures",
        "ess",
        "log_evidence",
        "method",
        "names",
        "prior",
        "probabilities",
        "r_hat",
        "score",
        "std_error",
        "variables",
    )
    names: tuple[str, ...]
    variables: tuple[Variable, ...]
    probabilities: Array
    std_error: Array
    r_hat: Array | None
    ess: Array | None
    log_evidence: float | None
    method: str
    prior: str
    score: Any
    _families: ScoredSets | None
    _structures: np.ndarray[Any, Any] | None
    _data: Any

    def __init__(self) -> None:
        raise TypeError("bbn.arc_posterior makes it")

    @classmethod
    def of(cls, **values: Any) -> ArcPosterior:
        """Make one from the values of its slots.

        Parameters
        ----------
        **values
            One for each slot.

        Returns
        -------
        ArcPosterior
        """
        for key in ("probabilities", "std_error", "r_hat", "ess"):
            if values.get(key) is not None:
                values[key].flags.writeable = False
        made = cls.__new__(cls)
        made._set(**values)
        return made

    def __getitem__(self, arc: tuple[str, str]) -> float:
        """The probability of an arc (parent, child)."""
        if not isinstance(arc, tuple) or len(arc) != 2:
            raise KeyError(f"expected an arc (parent, child), found {arc!r}")
        for name in arc:
            if name not in self.names:
                raise KeyError(f"no variable {name!r}{nearest(name, self.names)}")
        return float(self.probabilities[self.names.index(arc[0]), self.names.index(arc[1])])

    def edge(self, a: str, b: str) -> float:
        """The probability that two variables are joined, in either direction.

        Parameters
        ----------
        a, b : str
            The variables.
        """
        return self[a, b] + self[b, a]

    def to_frame(self) -> pd.DataFrame:
        """One row per arc, the most probable first: from, to, probability, std_error."""
        import pandas as pd

        order = np.argsort(-self.probabilities, axis=None, kind="stable")
        arcs = [divmod(int(k), len(self.names)) for k in order]
        arcs = [(a, b) for a, b in arcs if a != b]
        return pd.DataFrame(
            {
                "from": [self.names[a] for a, _ in arcs],
                "to": [self.names[b] for _, b in arcs],
                "probability": [float(self.probabilities[arc]) for arc in arcs],
                "std_error": [float(self.std_error[arc]) for arc in arcs],
            }
        )

    def network(self, threshold: float = 0.5) -> nx.DiGraph[str]:
        """The arcs that are at least this probable, the most probable first, without closing a cycle.

        Parameters
        ----------
        threshold : float, default 0.5
            The least probability of an arc.
        """
        import networkx as nx

        graph = to_graph(self.variables, ())
        for row in self.to_frame().itertuples(index=False):
            a, b, probability = row[0], row[1], row[2]
            if probability < threshold:
                break
            if not nx.has_path(graph, b, a):
                graph.add_edge(a, b, strength=probability)
        return graph

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> list[nx.DiGraph[str]]:
        """Draw structures from the posterior; of chains, from the structures they visited.

        Parameters
        ----------
        n : int
            How many.
        seed : int or Generator, optional
            For the draws.

        Returns
        -------
        list of nx.DiGraph
            Each takes its tables from `bbn.fit`.
        """
        rng = np.random.default_rng(seed)
        if self._families is not None:
            size = len(self.names)
            uniforms = rng.random((n, size * (size + 3)))
            drawn = kernels.subsets.sample_networks(*self._families, self.prior == "dags", uniforms)
        else:
            assert self._structures is not None
            drawn = self._structures[rng.integers(len(self._structures), size=n)]
        return [to_graph(self.variables, arcs_of(self.names, row)) for row in drawn.tolist()]

    def average(
        self,
        target: str,
        evidence: Evidence | None = None,
        *,
        n: int = 100,
        seed: int | np.random.Generator | None = 0,
    ) -> Posterior:
        """The posterior of `target` given evidence, averaged over structures: Bayes optimal, in the textbook's sense.

        Parameters
        ----------
        target : str
            The variable asked for.
        evidence : mapping, optional
            As `net.query` takes it.
        n : int, default 100
            How many structures to average over; each gets its tables by `bbn.fit` under the score's own prior.
        seed : int or Generator, default 0
            For the structures.

        Returns
        -------
        Posterior
        """
        from bbn.learning.tables.fit import fit
        from bbn.learning.tables.priors import BDeu
        from bbn.results.posterior import Posterior

        size = getattr(self.score, "equivalent_sample_size", 1.0)
        structures: dict[tuple[tuple[str, str], ...], tuple[Any, int]] = {}
        for graph in self.sample(n, seed):
            key = tuple(sorted(graph.edges))
            structures[key] = graph, structures.get(key, (graph, 0))[1] + 1
        total: Any = 0.0
        for graph, times in structures.values():
            answer = fit(graph, self._data, prior=BDeu(size)).query(target, evidence)
            total = total + times / n * answer.values
        return Posterior(answer.variables, total, answer.log_evidence)

    def plot(self, threshold: float = 0.05, title: str = "") -> Drawing:
        """Draw the variables with arcs as wide as they are probable.

        Parameters
        ----------
        threshold : float, default 0.05
            The least probability of an arc that is drawn.
        title : str, optional
            A line above the picture.

        Returns
        -------
        Drawing
            Shows itself in a notebook; ``.save("x.svg")`` writes it.
        """
        from bbn.view.structures import plot_graph

        return plot_graph(self.network(threshold), title)

    def __repr__(self) -> str:
        sure = int((self.probabilities >= 0.5).sum())
        return (
            f"<ArcPosterior: {len(self.names)} variables, {sure} arcs more probable than not, {self.method}>"
        )

    def __str__(self) -> str:
        return repr(self)

    def _table(self) -> Table:
        frame = self.to_frame()
        rows: list[list[Cell]] = [
            [a, b, f"{p:.3f}", f"{e:.3f}" if e else "", Bar(p)]
            for a, b, p, e in frame.itertuples(index=False)
            if p >= 0.001
        ]
        return Table(["from", "to", "probability", "std. error", ""], rows, self.method)
