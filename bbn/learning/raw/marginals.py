"""A learned network whose variables are distributed as the data's columns.

With complete data the families' tables give each child the data's shares where its parents are distributed as in the
data. Parents of one child that no arc links are not: the network takes them as independent, and the shares of the
child, and of those below it, move. So rows are drawn from the network, parents first, and a child whose share is off
among them is raked: column k of its table is multiplied by share_k / P(k), rows are normalised, and this is repeated
(iterative proportional fitting, Deming & Stephan 1940); the mean of a number is shifted. This costs DRAWS draws of each
variable, whatever the structure. With holes the shares are the expected ones, where EM would be quick: a row without a
value counts as the network expects it to be, given what the row has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.data import CodedTable, DataSource
from bbn.learning.evaluation.resample import take
from bbn.learning.raw.held_out import without
from bbn.learning.raw.holes import MOST_STEPS, em_steps
from bbn.model.cpt import CPT, Conditional
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous

DRAWS = 1 << 15
"""Rows that are drawn: a share of a half among them is known to .003."""
OFF = 0.01
"""Shares that are further off than this, and means by this much of a standard deviation, are moved back."""
NEAR = 1e-6
"""Rounds end when none is further off than this."""
ROUNDS = 100
"""The most rounds."""
SAID = 0.02
"""The report speaks of shares that are further off than this."""


def with_shares(net: BayesianNetwork, source: DataSource, holes: bool) -> tuple[BayesianNetwork, str]:
    """The network with the data's shares, and what to say if any table had to be changed, or could not be.

    In a forest of complete columns all shares are right without a look at the data.
    """
    there = {own.name for own in source.variables}
    variables = [v for v in net.variables if v.card and v.name in there]
    if not holes and all(len(net.parents(name)) <= 1 for name in net.names):
        return net, ""
    counts = source.counts([(v.name,) for v in variables]) if variables else []
    seen = {
        v.name: (count + 1.0 / v.card) / (count.sum() + 1.0)
        for v, count in zip(variables, counts, strict=True)
    }
    notes = []
    shares = _expected(net, source, seen) if holes else seen
    apart, worst = max(((_apart(shares[name], own), name) for name, own in seen.items()), default=(0.0, ""))
    if apart > SAID:
        notes.append(
            f"the shares of {worst!r} are expected to be up to {apart:.2g} from those of the rows that have it, as the "
            "rows that lack it differ from these in other columns"
        )
    raked, off, worst = _raked(net, shares, _measures(source))
    if off > OFF:
        notes.append(
            f"the shares of states, and the means of numbers, were moved back to those of the columns: {worst!r} was "
            f"{off:.2g} {'standard deviations ' if not net.variable(worst).card else ''}off"
        )
        net = raked
    return net, "; ".join(notes)


def _apart(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max())


def _measures(source: DataSource) -> dict[str, tuple[float, float]]:
    """The mean and the standard deviation of each column of numbers without holes."""
    if not isinstance(source, CodedTable):
        return {}
    found = {}
    for name, column in source.numbers.items():
        mean = float(np.average(column, weights=source.weights))
        spread = float(np.sqrt(np.average((column - mean) ** 2, weights=source.weights)))
        if spread > 0:  # not where a value is missing: these are NaN
            found[name] = mean, spread
    return found


def _raked(
    net: BayesianNetwork, shares: dict[str, Array], measures: dict[str, tuple[float, float]]
) -> tuple[BayesianNetwork, float, str]:
    """The network with what is off raked, how far off anything was, and what."""
    import networkx as nx

    rng = np.random.default_rng(0)
    drawn: dict[str, NDArray[Any]] = {}
    made: dict[str, Conditional] = {}
    worst, of = 0.0, ""
    for name in nx.topological_sort(net.graph):
        own: Any = net[name]
        states = tuple(drawn[p.name] for p in own.parents if not isinstance(p, Continuous))
        if isinstance(own, Gaussian):
            numbers = [drawn[p.name] for p in own.parents if isinstance(p, Continuous)]
            means = own.means[states] + sum(
                own.weights[(*states, i)] * column for i, column in enumerate(numbers)
            )
            means = np.broadcast_to(means, DRAWS)
            if name in measures:
                shift = measures[name][0] - float(means.mean())
                off = abs(shift) / measures[name][1]
                if off > OFF:
                    own = Gaussian.trusted(
                        own.variable,
                        own.parents,
                        own.means + shift,
                        own.variances,
                        own.weights,
                        own.tied_variance,
                        own.fixed_variance,
                    )
                    means = means + shift
                worst, of = max((worst, of), (off, name))
            drawn[name] = means + np.sqrt(own.variances[states]) * rng.standard_normal(DRAWS)
        else:
            setting = (
                np.ravel_multi_index(states, own.table.shape[:-1]) if states else np.zeros(DRAWS, np.intp)
            )
            table = own.table.reshape(-1, own.variable.card)
            weights = np.bincount(setting, minlength=len(table)) / DRAWS
            if name in shares:
                off = _apart(weights @ table, shares[name])
                if off > OFF:
                    table = _rake(table, weights, shares[name])
                    own = CPT.trusted(own.variable, own.parents, table.reshape(own.table.shape))
                worst, of = max((worst, of), (off, name))
            drawn[name] = _drawn(table, setting, rng)
        made[name] = own
    return BayesianNetwork([made[name] for name in net.names], net.name, net.metadata), worst, of


def _drawn(table: Array, setting: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """A state for each setting, drawn from its row of the table: all rows' distribution functions lie end to end."""
    upto = np.cumsum(table, axis=1) + np.arange(len(table))[:, None]
    state = np.searchsorted(upto.ravel(), rng.random(len(setting)) + setting) - setting * table.shape[1]
    return np.asarray(np.clip(state, 0, table.shape[1] - 1), dtype=np.intp)


def _rake(table: Array, weights: Array, share: Array) -> Array:
    """A table (settings, states) whose mean over the weights of the settings is the share."""
    for _ in range(ROUNDS):
        found = weights @ table
        if _apart(found, share) <= NEAR:
            break
        table = table * (share / np.maximum(found, 1e-300))
        table = table / table.sum(axis=1, keepdims=True)
    return table


def _expected(net: BayesianNetwork, source: DataSource, seen: dict[str, Array]) -> dict[str, Array]:
    """The shares over all rows, those that lack a value as the network expects them to be."""
    if not isinstance(source, CodedTable) or set(net.names) > {*source.codes, *source.numbers}:
        return seen
    if em_steps(net.graph, source) > MOST_STEPS:
        return seen
    shares = dict(seen)
    for variable in source.variables:
        rows = np.flatnonzero(source.codes[variable.name] == variable.card)
        if not len(rows) or variable.name not in seen:
            continue
        lacking = take(source, rows)
        proba = net.predict_proba(without(lacking, variable.name), variable.name)
        p = np.column_stack([proba[state] for state in net.states(variable.name)])
        weights = np.ones(len(rows)) if lacking.weights is None else lacking.weights
        gone = float(weights.sum()) / source.total
        shares[variable.name] = (1 - gone) * seen[variable.name] + gone * np.average(
            p, axis=0, weights=weights
        )
    return shares
