"""Learning on: new rows are added to the counts that a fitted network keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from bbn.core.errors import DataError
from bbn.core.frozen import Array
from bbn.core.keywords import keywords_checked
from bbn.data.reading import Reading
from bbn.learning.gaussian.estimates import Moments, known_moments
from bbn.learning.tables.fit import GaussianOptions, learn_conditionals
from bbn.learning.tables.priors import PseudoCounts
from bbn.model.expansion import factored_parts, linked
from bbn.model.network import BayesianNetwork


@keywords_checked
def fit_update(
    net: BayesianNetwork,
    data: Any,
    weight: float,
    *,
    weights: Any = None,
    missing: Any = (),
    unseen: str = "raise",
    keep_counts: bool = False,
) -> BayesianNetwork:
    """Add new data to what a network already says, as if that had been learned from `weight` rows.

    The network's joint, times `weight`, is the prior: α_jk = weight · P(x = k, parents = j) (Heckerman, Geiger and
    Chickering 1995, section 6). So updating with the data it was fitted to, or with none of any weight, changes
    nothing, and the order of two updates does not matter if the second's weight counts the first's rows. A Gaussian
    joins as the moments of such rows; one with continuous parents is refused.

    Parameters
    ----------
    net : BayesianNetwork
        What is known so far.
    data : table
        The new rows, complete.
    weight : float
        The rows that the network is worth.
    weights : str or array, optional
        The weight of each row: a column's name, or numbers.
    missing : collection, default ()
        Further values that mean "missing".
    unseen : {"raise", "missing"}, default "raise"
        What to do with a value that is not a state of its variable.
    keep_counts : bool, default False
        Keep the counts with each table, for credible intervals.

    Returns
    -------
    BayesianNetwork
        A new network.

    Raises
    ------
    DataError
        The data do not fit the network, or have missing values.

    See Also
    --------
    fit : Learn from data alone.

    Examples
    --------
    >>> from bbn import CPT, Variable
    >>> coin = BayesianNetwork([CPT(Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])])
    >>> fit_update(coin, {"Coin": ["heads"] * 10}, weight=10)["Coin"].table
    array([0.75, 0.25])
    """
    if not (np.isfinite(weight) and weight >= 0):
        raise DataError(
            f"weight is {weight!r}; expected the number of rows that the network is worth, at least 0"
        )
    alpha = {family: weight * table for family, table in _marginals(net).items()}
    gaussians = GaussianOptions(known={name: _known(net, name, weight) for name in net.continuous})
    reading = Reading(None, weights, missing, unseen)
    return learn_conditionals(net, data, PseudoCounts(alpha), gaussians, keep_counts, reading)


def _marginals(net: BayesianNetwork) -> dict[tuple[str, ...], Array]:
    """P(family) of each table, and of each effect of a NoisyMax with its parent, by the family's names."""
    from bbn.inference.rows.expected_counts import family_marginals

    if not factored_parts(net):
        return {(*net.parents(name), name): table for name, table in family_marginals(net).items()}
    whole, effects, _ = linked(net)
    shares = family_marginals(whole)
    found = {(*net.parents(name), name): shares[name] for name in shares if name in net}
    for name, own in effects.items():
        for parent, effect in zip((*net.parents(name), None), own, strict=True):
            found[(name,) if parent is None else (parent, name)] = shares[effect]
    return found


def _known(net: BayesianNetwork, name: str, weight: float) -> Moments:
    """The moments of a Gaussian, as if learned from `weight` rows."""
    gaussian: Any = net[name]
    if gaussian.continuous_parents:
        raise DataError(
            f"{name!r} has the continuous parent {gaussian.continuous_parents[0].name!r}, which fit_update does not "
            "take; bbn.fit with gaussian_prior=bbn.NormalInverseGamma(…) says what is known before the data"
        )
    parents = [p.name for p in gaussian.discrete_parents]
    shares = net.discrete_part().query(parents).values if parents else np.ones(1)
    return known_moments(gaussian, weight * shares)
