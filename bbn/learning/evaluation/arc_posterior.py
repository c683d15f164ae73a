"""How probable is each arc? The posterior over structures, P(G | data) ∝ P(data | G) P(G), and what follows from it.

Up to EXACT variables all DAGs are added up, subset by subset, without listing them: under a uniform prior over DAGs in
O(3^n) steps (Tian & He 2009), under one over orders, which favours DAGs that agree with many orders, in O(n² 2^n)
(Koivisto & Sood 2004). Beyond, Markov chains draw structures (`structure_chains`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from bbn import kernels
from bbn.core.budget import require_memory
from bbn.core.errors import BudgetError
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.core.threads import limited
from bbn.data.reading import Reading
from bbn.kernels.contracts.checks import MOST_IN_A_MASK
from bbn.learning.evaluation.arc_probabilities import ArcPosterior
from bbn.learning.evaluation.structure_chains import run_chains
from bbn.learning.structure.constraints import INSTEAD, Arcs, Constraints, all_variables, complete_source
from bbn.learning.structure.exact.parent_sets import all_sets
from bbn.learning.structure.score_cache import ScoreCache
from bbn.model.variable import State

EXACT = 16
"""Variables up to which "auto" adds up all DAGs."""
MOST = {"dags": 20, "orders": 24}
"""Variables up to which exact sums are possible, by prior."""
FEW = 20
"""Variables up to which max_parents="auto" is 5; beyond, it is 3."""
LONG_NUMBER = 24
"""Bytes of a number that sums are made of."""

Prior = Literal["dags", "orders"]


@keywords_checked
@limited(INSTEAD)
def arc_posterior(
    data: Any,
    method: Literal["auto", "exact", "mcmc"] = "auto",
    score: Any = "bdeu",
    *,
    prior: Prior = "dags",
    max_parents: int | Literal["auto"] | None = "auto",
    required: Arcs = (),
    forbidden: Arcs = (),
    tiers: Sequence[Iterable[str]] | None = None,
    n_samples: int | None = None,
    chains: int = 4,
    seed: int | np.random.Generator | None = 0,
    time_limit: float | None = None,
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
        structures by Markov chains, for at most 62 variables, and gives standard errors. "auto" is exact up to 16.
    score : str or BDeu, default "bdeu"
        What stands for ln P(data | structure); see `bbn.score`.
    prior : {"dags", "orders"}, default "dags"
        Uniform over DAGs; or over pairs of a DAG and an order that agrees with it, which is quicker and favours sparse
        structures. Chains take "dags".
    max_parents : int, None or "auto", default "auto"
        The most parents of a variable; None for no limit. "auto" is 5 up to 20 variables, 3 beyond.
    required, forbidden : iterable of (parent, child), optional
        Arcs that must, or must not, be there.
    tiers : sequence of lists of names, optional
        Earliest first: no arc goes from a later list to an earlier one.
    n_samples : int, optional
        Of chains: steps of each, the first fifth of which is left out. Unless given, the steps double until every
        standard error is below 0.005 and R-hat below 1.02, up to 5 million steps.
    chains : int, default 4
        The number of chains, each from a start of its own.
    seed : int or Generator, default 0
        For the chains.
    time_limit
        The most seconds, TimeLimitError beyond; None is BBN_TIME_LIMIT, or else any time.
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
    n = len(variables)
    if max_parents == "auto":
        max_parents = 5 if n <= FEW else 3
    constraints = Constraints(variables, required, forbidden, tiers, max_parents)
    cache = ScoreCache(source, score, constraints.names)
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
            if prior != "dags":
                raise ValueError("chains have a uniform prior over DAGs; prior='orders' needs method='exact'")
            if n > MOST_IN_A_MASK:
                raise BudgetError(f"chains take at most {MOST_IN_A_MASK} variables, but there are {n}", 0, 0)
            families = all_sets(cache, constraints, advance, _nothing)
            drawn = run_chains(families, n_samples, chains, np.random.default_rng(seed), advance)
            return ArcPosterior.of(
                **common,
                probabilities=drawn.shares,
                std_error=drawn.std_error,
                r_hat=drawn.r_hat,
                ess=drawn.ess,
                log_evidence=None,
                _families=None,
                _structures=drawn.structures,
            )
        if n > MOST[prior]:
            raise BudgetError(
                f"exact sums take at most {MOST[prior]} variables, but there are {n}; method='mcmc' draws structures",
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
    return ArcPosterior.of(
        **common,
        probabilities=np.clip(shares, 0.0, 1.0),
        std_error=np.zeros((n, n)),
        r_hat=None,
        ess=None,
        log_evidence=total,
        _families=families,
        _structures=None,
    )


def _nothing() -> None:
    """Nothing to check: chains and sums notice Ctrl-C themselves."""
