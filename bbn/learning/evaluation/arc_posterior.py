"""How probable is each arc? The posterior over structures, P(G | data) ∝ P(data | G) P(G), and what follows from it.

Up to EXACT variables all DAGs are added up, subset by subset, without listing them: under a uniform prior over DAGs in
O(3^n) steps (Tian & He 2009), under one over orders, which favours DAGs that agree with many orders, in O(n² 2^n)
(Koivisto & Sood 2004). Beyond, Markov chains over ordered partitions draw structures (`partition_chains`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import BudgetError, nearest
from bbn.core.frozen import Array, Frozen
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.data.reading import Reading
from bbn.learning.structure.constraints import (
    Arcs,
    Constraints,
    all_variables,
    arcs_of,
    complete_source,
    to_graph,
)
from bbn.learning.structure.exact.parent_sets import Families, all_sets
from bbn.learning.structure.scores import ScoreCache
from bbn.model.variable import State, Variable

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from bbn.model.evidence import Evidence
    from bbn.results.posterior import Posterior
    from bbn.view.scene import Drawing

EXACT = 16
"""Variables up to which "auto" adds up all DAGs."""
MOST = {"dags": 20, "orders": 24}
"""Variables up to which exact sums are possible, by prior."""
LONG_NUMBER = 24
"""Bytes of a number that sums are made of."""

Prior = Literal["dags", "orders"]


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
    log_evidence : float or None
        Of exact sums: ln P(data), averaged over the prior, but for its normalising constant.
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
    log_evidence: float | None
    method: str
    prior: str
    score: Any
    _families: Families | None
    _structures: np.ndarray[Any, Any] | None
    _data: Any

    def __init__(self) -> None:
        raise TypeError("bbn.arc_posterior makes it")

    @classmethod
    def _of(cls, **values: Any) -> ArcPosterior:
        """One with these slots."""
        for key in ("probabilities", "std_error", "r_hat"):
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
        """The probability that two variables are joined, whichever way.

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


@keywords_checked
def arc_posterior(
    data: Any,
    method: Literal["auto", "exact", "mcmc"] = "auto",
    score: Any = "bdeu",
    *,
    prior: Prior = "dags",
    max_parents: int | None = 5,
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    n_samples: int = 20_000,
    chains: int = 4,
    seed: int | np.random.Generator | None = 0,
    memory_limit: int | float | str | None = None,
    progress: bool | None = None,
    states: Mapping[str, Sequence[State]] | None = None,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    continuous: str | Iterable[str] | None = None,
) -> ArcPosterior:
    """Give the probability of every arc, averaged over all structures in proportion to how well they explain the data.

    Parameters
    ----------
    data : table
        Anything tabular, without missing values.
    method : {"auto", "exact", "mcmc"}, default "auto"
        "exact" adds up all structures: up to 20 variables (3^n steps), or 24 with ``prior="orders"``. "mcmc" draws
        structures by Markov chains and gives standard errors. "auto" is exact up to 16 variables.
    score : str or BDeu, default "bdeu"
        What stands for ln P(data | structure); see `bbn.score`.
    prior : {"dags", "orders"}, default "dags"
        Uniform over DAGs; or over pairs of a DAG and an order that agrees with it, which is quicker and favours sparse
        structures. Chains take "dags".
    max_parents : int or None, default 5
        The most parents of a variable; None for no limit.
    required, forbidden : iterable of (parent, child), optional
        Arcs that must, or must not, be there.
    tiers : sequence of lists of names, optional
        Earliest first: no arc goes from a later list to an earlier one.
    n_samples : int, default 20000
        Of chains: steps of each, the first fifth of which is left out.
    chains : int, default 4
        The number of chains, each from a start of its own.
    seed : int or Generator, default 0
        For the chains.
    memory_limit : int, float or str, optional
        The most bytes, such as "2 GB".
    progress : bool, optional
        Whether to show a bar; None shows one on a terminal or in a notebook.
    states : mapping, optional
        Column to its states, in the order they are to have; those that occur unless given.
    weights : array or str, optional
        One weight per row, or the name of the column that holds them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    continuous : str or iterable of str, optional
        The names of columns that hold numbers; by default those with fractions or more than 100 different
        numbers. They become Gaussians, which cannot be parents of variables with
        states: such arcs are never made.

    Returns
    -------
    ArcPosterior
        ``found["A", "B"]`` is the probability of the arc A → B.

    Raises
    ------
    DataError
        There are missing values, or a name is unknown.
    BudgetError
        There are too many variables for exact sums.

    Warns
    -----
    MixingWarning
        The chains do not agree: take more samples.

    See Also
    --------
    exact_search : The single best structure.
    arc_strength : How often an arc is learned from resampled rows.

    Examples
    --------
    >>> data = {"A": [0, 0, 1, 1] * 9, "B": [0, 0, 1, 1] * 9, "C": [0, 1, 1, 0] * 9}
    >>> found = arc_posterior(data)
    >>> round(found["A", "B"], 2), round(found.edge("A", "B"), 2)
    (0.5, 1.0)
    """
    if method not in ("auto", "exact", "mcmc"):
        raise ValueError(f"method is {method!r}; expected 'auto', 'exact' or 'mcmc'")
    if prior not in MOST:
        raise ValueError(f"prior is {prior!r}; expected 'dags' or 'orders'")
    source = complete_source(data, "arc_posterior", Reading(states, weights, missing, unseen, continuous))
    variables = tuple(sorted(all_variables(source), key=lambda v: v.name))
    constraints = Constraints(variables, required, forbidden, tiers, max_parents)
    cache = ScoreCache(source, score, constraints.names)
    n = len(variables)
    if method == "auto":
        method = "exact" if n <= EXACT else "mcmc"
    common = {
        "names": constraints.names,
        "variables": variables,
        "method": method,
        "prior": prior,
        "score": score,
        "_data": source,
    }
    with progress_bar(progress, None, "arc posterior", "step") as advance:
        if method == "mcmc":
            from bbn.learning.evaluation.partition_chains import run_chains

            if prior != "dags":
                raise ValueError("chains have a uniform prior over DAGs; prior='orders' needs method='exact'")
            families = all_sets(cache, constraints, advance, _nothing)
            drawn = run_chains(families, n_samples, chains, np.random.default_rng(seed), advance)
            return ArcPosterior._of(
                **common,
                probabilities=drawn.shares,
                std_error=drawn.std_error,
                r_hat=drawn.r_hat,
                log_evidence=None,
                _families=None,
                _structures=drawn.structures,
            )
        if n > MOST[prior]:
            raise BudgetError(
                f"exact sums reach {MOST[prior]} variables, but there are {n}; method='mcmc' draws structures",
                0,
                0,
            )
        size = (2 * n * (1 << n >> 1) + 4 * (1 << n)) * LONG_NUMBER
        require_memory(
            size, f"sums over the subsets of {n} variables", "method='mcmc' needs little", memory_limit
        )
        families = all_sets(cache, constraints, advance, _nothing)
        kernel = kernels.subsets.dag_sums if prior == "dags" else kernels.subsets.order_sums
        total, shares = kernel(*families)
    return ArcPosterior._of(
        **common,
        probabilities=np.clip(shares, 0.0, 1.0),
        std_error=np.zeros((n, n)),
        r_hat=None,
        log_evidence=total,
        _families=families,
        _structures=None,
    )


def _nothing() -> None:
    """Chains and sums hear Ctrl-C by themselves."""
