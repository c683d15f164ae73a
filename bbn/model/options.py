"""The options of inference, as types: what each family of engines takes, so that an editor can complete it.

`net.query(..., method=, **options)` hands its options to the engine of the method. An engine knows those of its own
family; any other is a TypeError that names the nearest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

if TYPE_CHECKING:
    import numpy as np

    from bbn.core.limits import Budget

Method: TypeAlias = Literal[
    "auto",
    "junction-tree",
    "elimination",
    "enumeration",
    "likelihood-weighting",
    "rejection",
    "importance",
    "gibbs",
    "loopy",
]
"""A method of inference; "auto" is exact: the junction tree."""
Order: TypeAlias = Literal["auto", "min-fill", "weighted-min-fill", "min-weight", "min-neighbours"]
"""A rule that chooses an elimination order; "auto", the junction tree's own, is the cheapest of several."""
MemoryLimit: TypeAlias = int | float | str | None
"""Bytes, as a number or as text such as "2 GB"; None is BBN_MEMORY_LIMIT, or half of the memory there is."""
Seed: TypeAlias = "int | np.random.Generator | None"
"""A whole number or a numpy Generator; None takes a fresh one each time."""


class ExactOptions(TypedDict, total=False):
    """The options of the exact engines."""

    memory_limit: MemoryLimit
    """The most memory that the work may take; BudgetError before it starts if that is not enough."""
    time_limit: float | None
    """The most seconds that one question may take; TimeLimitError beyond."""
    budget: Budget | None
    """Both of them as one value."""


class OrderedOptions(ExactOptions, total=False):
    """The options of the junction tree and of variable elimination."""

    order: Order
    """The rule that chooses the elimination order."""


class SamplingOptions(TypedDict, total=False):
    """The options of the engines that sample."""

    n_samples: int | None
    """Samples to draw; None is 100,000 (Gibbs sampling: 200,000) unless another option ends the run."""
    seed: Seed
    """Where the random numbers start; the same seed gives the same answer, whatever `n_jobs` is."""
    target_std_error: float | None
    """Draw until the standard error of every probability is at most this."""
    time_limit: float | None
    """Draw for this many seconds at most, and answer with what there is."""
    n_jobs: int | None
    """Threads; None is OMP_NUM_THREADS if set, otherwise the number of cores."""
    progress: bool | None
    """Whether to show a progress bar; None shows one on a terminal and in a notebook."""
    memory_limit: MemoryLimit
    """The most memory that the work may take."""
    budget: Budget | None
    """The most seconds and memory as one value."""


class GibbsOptions(SamplingOptions, total=False):
    """The options of Gibbs sampling."""

    chains: int
    """The number of chains; `n_samples` counts the sweeps of them all."""
    burn_in: int
    """Sweeps of each chain that are thrown away at the start."""


class LoopyOptions(TypedDict, total=False):
    """The options of loopy belief propagation."""

    max_iter: int
    """Iterations after which to give up."""
    tol: float
    """Messages have settled when none changes by more than this."""
    damping: float | None
    """The share of the old message that is kept, in [0, 1); None is 0, and 0.5 for messages slow to settle."""
    schedule: Literal["sequential", "flooding"]
    """Whether messages are sent one factor after the other, or all at once."""
    memory_limit: MemoryLimit
    """The most memory that the work may take."""
    time_limit: float | None
    """The most seconds that one question may take; TimeLimitError beyond."""
    budget: Budget | None
    """Both of them as one value."""


class EngineOptions(TypedDict, total=False):
    """The options of all engines together, for methods whose engine is chosen by name."""

    memory_limit: MemoryLimit
    time_limit: float | None
    budget: Budget | None
    order: Order
    n_samples: int | None
    seed: Seed
    target_std_error: float | None
    n_jobs: int | None
    progress: bool | None
    chains: int
    burn_in: int
    max_iter: int
    tol: float
    damping: float | None
    schedule: Literal["sequential", "flooding"]


class QueryOptions(EngineOptions, total=False):
    """The options of `query`: those of all engines, and one of credible intervals."""

    n_draws: int
    """The networks that are drawn for a credible interval."""


class SolveOptions(TypedDict, total=False):
    """The options of solving a decision network."""

    method: Literal["auto", "exact", "local"]
    """For limited memory: prove the answer where that is quick, prove it, or do not try to."""
    restarts: int
    """Starts of the local search for limited memory."""
    seed: Seed
    """Where the random starts begin."""
    node_limit: int
    """The most partial policies that the search for a proof looks at."""
    memory_limit: MemoryLimit
    """The most memory that the tables may take."""
    time_limit: float | None
    """The most seconds that a question may take; TimeLimitError beyond."""
