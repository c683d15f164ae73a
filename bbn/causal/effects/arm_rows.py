"""Settings of causes that no data reach, as of an outcome whose other causes never came with a treatment.

Where P(y | x, z) was fitted without a row, `fit` has uniform shares, or the mean of the whole column: the same under
every treatment, which draws each effect towards 0. In the network of an effect such rows are those of the whole arm,
P(y | x), as they are in the draws of its interval and in the doubly robust estimator. They are warned of all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bbn.data import DataSource
from bbn.learning.gaussian.estimates import estimate, overall, read_gaussians
from bbn.learning.gaussian.moments import moments_of
from bbn.learning.tables.counted_cpt import CountedCPT
from bbn.model.cpt import CPT
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable


def with_arm_rows(net: BayesianNetwork, source: DataSource, x: str) -> BayesianNetwork:
    """The fitted network with what no data reach as it is in all rows of the same treatment.

    Parameters
    ----------
    net
        As fitted to the data.
    source
        The data.
    x
        The treatment.
    """
    changed: list[CPT | Gaussian] = []
    for own in net.conditionals:
        discrete = [p for p in own.parents if not isinstance(p, Continuous)]
        if not discrete or not isinstance(own, CPT | Gaussian):
            continue
        (rows,) = source.counts([[p.name for p in discrete]])
        empty = rows.reshape(-1) == 0
        if empty.any():
            group = by_treatment(discrete, x)
            changed.append(
                _table(own, source, empty, group)
                if isinstance(own, CPT)
                else _lines(own, source, empty, group, x)
            )
    return net.with_cpts(changed) if changed else net


def by_treatment(parents: Iterable[Variable], x: str) -> NDArray[np.intp]:
    """Settings of some parents in groups of the same treatment: the group of each.

    Parameters
    ----------
    parents
        The variables whose settings they are, in order.
    x
        The treatment.
    """
    own = tuple(parents)
    groups = np.zeros(tuple(p.card for p in own), np.intp)
    for k, parent in enumerate(own):
        if parent.name == x:
            groups = groups + np.indices(groups.shape)[k]
    return groups.reshape(-1)


def _table(cpt: CPT, source: DataSource, empty: NDArray[np.bool_], group: NDArray[np.intp]) -> CPT:
    """A table, its empty rows with the shares of their arm; an arm without rows stays as it is."""
    (cells,) = source.counts([[*(p.name for p in cpt.parents), cpt.name]])
    whole = np.zeros((int(group.max()) + 1, cpt.variable.card))
    np.add.at(whole, group, np.asarray(cells, dtype=np.float64).reshape(len(group), -1))
    total = whole.sum(axis=1, keepdims=True)
    told = empty & (total[group, 0] > 0)
    table = np.array(cpt.table).reshape(len(group), -1)
    table[told] = (whole / np.maximum(total, 1e-300))[group[told]]
    filled = table.reshape(cpt.table.shape)
    if isinstance(cpt, CountedCPT):
        return CountedCPT.from_counts(cpt.variable, cpt.parents, filled, cpt.counts)
    return CPT.trusted(cpt.variable, cpt.parents, filled)


def _lines(
    gaussian: Gaussian, source: DataSource, empty: NDArray[np.bool_], group: NDArray[np.intp], x: str
) -> Gaussian:
    """A Gaussian, in its empty settings the line of their arm through all its rows."""
    kept: Sequence[Variable] = [p for p in gaussian.parents if isinstance(p, Continuous) or p.name == x]
    variables = {p.name: p for p in (*kept, gaussian.variable)}
    families = read_gaussians({v.name: () for v in kept} | {gaussian.name: tuple(kept)}, variables, {})
    family = next(f for f in families if f.name == gaussian.name)
    (moments,) = moments_of([family], source)
    arm = estimate(family, moments, overall(moments)).numbers
    told = empty & (moments.n[group] > 0)
    means, variances = np.array(gaussian.means).reshape(-1), np.array(gaussian.variances).reshape(-1)
    weights = np.array(gaussian.weights).reshape(len(group), -1)
    means[told], variances[told] = arm.means[group[told]], arm.variances[group[told]]
    weights[told] = arm.weights[group[told]]
    shape = np.shape(gaussian.means)
    return Gaussian(
        gaussian.variable,
        gaussian.parents,
        means.reshape(shape),
        variances.reshape(shape),
        weights.reshape(np.shape(gaussian.weights)) if weights.size else None,
    )
