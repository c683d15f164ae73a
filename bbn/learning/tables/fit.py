"""Counts to network: maximum likelihood and every prior are one formula over one family's counts.

    θ_jk = (N_jk + α_jk) / Σ_k (N_jk + α_jk)

for row j of a table (a setting of the parents) and state k; see `priors` for α. The cost is that of counting:
one pass over the data for all families together. Gaussians are learned from moments; see `gaussians`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import MAX_AXES, require_memory, require_table
from bbn.core.errors import DataError, UnseenRowsWarning, warn_user
from bbn.core.keywords import keywords_checked
from bbn.core.progress import progress_bar
from bbn.data import complete_data
from bbn.data.reading import Reading
from bbn.learning.gaussian.estimates import Moments, estimate, overall, pool, read_gaussians, warn_of
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.structure.structure import Structure, observe, read_structure
from bbn.learning.tables.counted_cpt import CountedCPT, normalised
from bbn.learning.tables.noisy_links import fit_links
from bbn.learning.tables.priors import (
    NormalInverseGamma,
    Prior,
    checked_gaussian_prior,
    checked_prior,
    pseudocounts_of,
)
from bbn.model.cpt import CPT, Conditional
from bbn.model.dynamic_network import DynamicNetwork
from bbn.model.expansion import factored_parts
from bbn.model.factored import Factored
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax
from bbn.model.variable import Continuous, State, Variable


@keywords_checked
def fit(
    structure: Any,
    data: Any,
    prior: Prior | None = None,
    *,
    continuous: str | Iterable[str] | None = (),
    gaussian_prior: NormalInverseGamma | None = None,
    tied_variance: bool | str | Iterable[str] = False,
    fixed_variance: float | Mapping[str, Any] | None = None,
    weights: Any = None,
    states: Mapping[str, Sequence[State]] | None = None,
    missing: Any = (),
    unseen: str = "raise",
    keep_counts: bool = False,
    progress: bool | None = None,
    sequence: str | None = None,
    time: str | None = None,
    lengths: Sequence[int] | None = None,
) -> BayesianNetwork:
    """Learn the tables and the Gaussians of a structure from complete data.

    Parameters
    ----------
    structure
        A networkx DiGraph (node attributes "states" and "continuous" honoured), a list of arcs (parent, child), or a
        network, which keeps its order of parents and states; its tables and means do not matter.
    data
        Any table, or a data source.
    prior
        None for maximum likelihood, or `MEstimate`, `Dirichlet` or `BDeu`. By maximum likelihood what was never seen
        is impossible, so that a new row may have probability 0; a prior such as ``BDeu(1)`` keeps it possible.
    continuous
        Names of nodes that are Gaussians, besides those that the structure says are. None: those whose column holds
        fractions, or more than 100 different numbers.
    gaussian_prior
        None for maximum likelihood, or a `NormalInverseGamma`: the prior of the Gaussians.
    tied_variance
        True, or the names of Gaussians whose variance is the same in all settings of their parents, besides those of
        a network that say so.
    fixed_variance
        A number, or name to what `Gaussian` takes as variances: variances that are not learned. Those of a network's
        Gaussians with `fixed_variance` are kept too.
    weights
        One weight per row, or the name of the column that holds them.
    states
        Column to its states, in the order they are to have; discovered where nothing declares them.
    missing, unseen
        What else means missing, and what to do with a value that is not a state: "raise", or take it as "missing".
    keep_counts
        Keep the counts in the network's tables (`net["X"].counts`), as the Dirichlet posterior of each row. Gaussians
        keep nothing.
    progress
        Whether to show a bar, of one step: the pass over the data. None shows one on a terminal or in a notebook.

    sequence, time, lengths
        Where the structure is a dynamic network, how the rows make sequences, as in `DynamicNetwork.filter`. A family
        is counted over all slices that have it; `weights` are then one per sequence. A graph over time will do for a
        structure, such as `hill_climb` gives: its node "Rain[-1]" is the Rain of the slice before.

    Returns
    -------
    BayesianNetwork
        Rows of a table that no row of data reaches are uniform, with one warning that counts them, unless a prior
        says what they are; settings of a Gaussian's parents have the mean and the variance of the whole column. A
        variance of 0 is held at 1e-15 of the column's (1e-9 where there are continuous parents), with one warning that
        names where.

    >>> rows = {"Rain": ["yes", "no", "no", "yes"], "Wet": ["yes", "no", "yes", "yes"]}
    >>> net = fit([("Rain", "Wet")], rows)
    >>> net["Wet"].row("no")
    {'no': 0.5, 'yes': 0.5}
    >>> heights = {"Sex": ["f", "m", "f", "m"], "Height": [160.0, 179.0, 164.0, 185.0]}
    >>> fit([("Sex", "Height")], heights, continuous=["Height"])["Height"].means
    array([162., 182.])
    """
    reading = Reading(states, weights, missing, unseen, continuous)
    over_time = sequences_for(structure, data, (sequence, time, lengths), reading)
    if over_time is not None:
        from bbn.learning.time.count import count_sequences

        told = (gaussian_prior, tied_variance, fixed_variance)
        return count_sequences(over_time.dyn, over_time, prior, *told, keep_counts)  # type: ignore[return-value]
    gaussians = GaussianOptions(gaussian_prior, tied_variance, fixed_variance)
    with progress_bar(progress, 1, "counting", "pass") as advance:
        net = learn_conditionals(structure, data, prior, gaussians, keep_counts, reading)
        advance(1)
    return net


def sequences_for(
    structure: Any, data: Any, told: tuple[Any, Any, Any], reading: Reading, hidden: Any = None
) -> Any:
    """A SequenceData where the structure is one over time (a dynamic network, or a graph with lags), otherwise None.

    `told` are sequence, time and lengths. DataError if these are given and the structure has no slices.
    """
    dynamic = isinstance(structure, DynamicNetwork)
    if not dynamic and told == (None, None, None) and "lag" not in getattr(structure, "graph", ()):
        return None
    from bbn.learning.time.lagged import Told, as_dynamic, reaches_back, refuse_declared
    from bbn.learning.time.sequence_data import SequenceData

    own = Told(*told)
    if dynamic:
        refuse_declared(structure, reading)
    elif reaches_back(structure, own):
        structure, data, own = as_dynamic(structure, data, own, reading, hidden)
    else:
        for what, given in zip(("sequence", "time", "lengths"), told, strict=True):
            if given is not None:
                raise DataError(
                    f"{what}= is for structures over time; expected a dynamic network, or arcs from nodes such as "
                    "'Rain[-1]'"
                )
        return None
    options = {"weights": reading.weights, "missing": reading.missing, "unseen": reading.unseen}
    return SequenceData(structure, data, *own, **options)


class GaussianOptions(NamedTuple):
    """How Gaussians are learned."""

    prior: NormalInverseGamma | None = None
    tied_variance: bool | str | Iterable[str] = False
    fixed_variance: float | Mapping[str, Any] | None = None
    known: Mapping[str, Moments] | None = None
    """Moments by child that are added to those of the data."""


def learn_conditionals(
    structure: Any,
    data: Any,
    prior: Prior | None,
    gaussians: GaussianOptions,
    keep_counts: bool,
    reading: Reading,
) -> BayesianNetwork:
    """Count, apply the priors, and put the network together; what `fit` and `fit_update` share."""
    shape = read_structure(structure)
    variables, source = observe(shape, data, reading)
    parents = {name: tuple(variables[p] for p in shape.parents[name]) for name in shape.names}
    numeric = tuple(name for name in shape.names if isinstance(variables[name], Continuous))
    factored = _factored(shape)
    tables = {name: v for name, v in variables.items() if name not in numeric and name not in factored}
    for name, variable in tables.items():
        if len(parents[name]) >= MAX_AXES:
            require_table(
                [*(p.card for p in parents[name]), variable.card], f"CPT {name!r}", "use fewer parents"
            )
    prior = checked_prior(prior, tuple(tables))
    gaussian_prior = checked_gaussian_prior(gaussians.prior, numeric)
    given = {} if shape.network is None else {name: shape.network[name] for name in shape.continuous}
    families = read_gaussians(parents, variables, given, gaussians.tied_variance, gaussians.fixed_variance)
    way_out = "bbn.fit_em learns from incomplete data, or drop those rows"
    source = complete_data(source, variables, "column {} has missing values", way_out)
    _require_tables(
        [[*(p.card for p in parents[name]), tables[name].card] for name in tables], prior, keep_counts
    )
    counted = source.counts([(*shape.parents[name], name) for name in tables]) if tables else []
    estimates = []
    for family, moments in zip(families, moments_of(families, source), strict=True):
        if gaussians.known is not None:
            moments = pool([moments, gaussians.known[family.name]])
        units = overall(moments)
        told = None
        if gaussian_prior is not None:
            told = gaussian_prior.told(family.name, units.centre[-1], units.scale[-1] ** 2)
        estimates.append(estimate(family, moments, units, told))
    warn_of(families, estimates)
    learned: list[Conditional] = [f.gaussian(e.numbers) for f, e in zip(families, estimates, strict=True)]
    learned += [
        fit_links(own, source, prior) if isinstance(own, NoisyMax) else own for own in factored.values()
    ]
    return network_from_counts(
        parents,
        tables,
        dict(zip(tables, counted, strict=True)),
        prior,
        keep_counts=keep_counts,
        like=shape.network,
        others=learned,
    )


def _factored(shape: Structure) -> dict[str, Factored]:
    """The conditionals without a table of the network that a structure came from, if any."""
    return {} if shape.network is None else {own.name: own for own in factored_parts(shape.network)}


def _require_tables(shapes: list[list[int]], prior: Prior | None, keep_counts: bool) -> None:
    """BudgetError if the counts, the tables made of them, and what is made on the way would not fit."""
    cells = [prod(shape) for shape in shapes]
    whole, largest = sum(cells), max(cells, default=0)
    size = 8 * ((3 if keep_counts else 2) * whole + (3 if prior is not None else 1) * largest)
    what = (
        f"the counts of {len(cells)} families (the largest of {largest:,} cells) and the tables made of them"
    )
    require_memory(size, what, "use fewer parents or states")


def network_from_counts(
    parents: Mapping[str, tuple[Variable, ...]],
    variables: Mapping[str, Variable],
    counts: Mapping[str, Any],
    prior: Prior | None = None,
    *,
    keep_counts: bool = False,
    like: BayesianNetwork | None = None,
    others: Sequence[Conditional] = (),
) -> BayesianNetwork:
    """The network of these counts (axes: parents, then child) and of other conditionals; `like` lends its metadata."""
    cpts: list[CPT] = []
    empty = []
    for name, variable in variables.items():
        family = (*parents[name], variable)
        alpha = pseudocounts_of(prior, family, counts[name]) if prior is not None else None
        total = counts[name] if alpha is None else counts[name] + alpha
        table, n_empty = normalised(total)
        if n_empty:
            empty.append((name, n_empty, table.size // variable.card))
        if keep_counts:
            posterior = total if alpha is not None else np.asarray(counts[name], dtype=np.float64) + 1.0
            cpts.append(
                CountedCPT.from_counts(variable, parents[name], table, np.array(posterior, dtype=np.float64))
            )
        else:
            cpts.append(CPT.trusted(variable, parents[name], table))
    if empty:
        rows, of = sum(n for _, n, _ in empty), sum(total for _, _, total in empty)
        shown = ", ".join(f"{name} ({n} of {total})" for name, n, total in empty[:5])
        more = f", … ({len(empty)} tables in all)" if len(empty) > 5 else ""
        warn_user(
            f"{rows} of {of} rows of the tables of {shown}{more} were never seen in the data and are uniform; "
            "a prior such as bbn.BDeu(1) says what they should be",
            UnseenRowsWarning,
        )
    return BayesianNetwork([*cpts, *others], like.name if like else "", like.metadata if like else None)
