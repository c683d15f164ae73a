"""A learned network whose variables are distributed as the data's columns.

With complete data the families' tables give each child the data's shares where its parents are distributed as in the
data. Parents of one child that no arc links are not: the network takes them as independent, and the shares of the
child, and of those below it, move. Raking moves them back: each table's column k is multiplied by share_k / P(k), rows
are normalised, and this is repeated (iterative proportional fitting, Deming & Stephan 1940). A round costs one pass
through the junction tree. With holes the shares are the expected ones: a row without a value counts as the network
expects it to be, given what the row has.
"""

from __future__ import annotations

import numpy as np

from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.data import CodedTable, DataSource
from bbn.learning.evaluation.resample import take
from bbn.learning.raw.held_out import without
from bbn.model.cpt import CPT
from bbn.model.network import BayesianNetwork

OFF = 0.01
"""Shares that are further off than this are moved back."""
NEAR = 1e-4
"""Rounds end when none is further off than this."""
ROUNDS = 50
"""The most rounds."""
SAID = 0.02
"""The report speaks of shares that are further off than this."""


def with_shares(net: BayesianNetwork, source: DataSource, holes: bool) -> tuple[BayesianNetwork, str]:
    """The network with the data's shares, and what to say if any table had to be changed, or could not be.

    In a forest of complete columns all shares are right without a look at the data.
    """
    there = {own.name for own in source.variables}
    variables = [v for v in net.variables if v.card and v.name in there]
    if not variables or (not holes and all(len(net.parents(v.name)) <= 1 for v in variables)):
        return net, ""
    tables = BayesianNetwork([net[name] for name in net.names if net.variable(name).card])
    counts = source.counts([(v.name,) for v in variables])
    seen = {
        v.name: (count + 1.0 / v.card) / (count.sum() + 1.0)
        for v, count in zip(variables, counts, strict=True)
    }
    try:
        found = _marginals(tables)
        shares = _expected(net, source, seen) if holes else seen
    except BudgetError:
        return (
            net,
            "whether each variable has the shares of its column was not looked at: the network is too large",
        )
    notes = []
    apart, worst = _worst(shares, seen)
    if apart > SAID:
        notes.append(
            f"the shares of {worst!r} are expected to be up to {apart:.2g} from those of the rows that have it, as the "
            "rows that lack it differ from these in other columns"
        )
    off, worst = _worst(shares, found)
    if off > OFF:
        notes.append(
            f"tables were raked to the shares of the columns, from which those of {worst!r} were {off:.2g} off"
        )
        tables = _all_raked(tables, found, shares)
        net = BayesianNetwork(
            [tables[name] if net.variable(name).card else net[name] for name in net.names],
            net.name,
            net.metadata,
        )
    return net, "; ".join(notes)


def _all_raked(tables: BayesianNetwork, found: dict[str, Array], shares: dict[str, Array]) -> BayesianNetwork:
    """The tables after rounds of raking: those that came nearest to the shares."""
    best, least = tables, _worst(shares, found)[0]
    for _ in range(ROUNDS):
        tables = BayesianNetwork([_raked(tables[n], found[n], shares.get(n)) for n in tables.names])
        found = _marginals(tables)
        now = _worst(shares, found)[0]
        if now < least:
            best, least = tables, now
        if now <= NEAR:
            break
    return best


def _worst(shares: dict[str, Array], found: dict[str, Array]) -> tuple[float, str]:
    """How far apart two sets of shares are, and of which variable."""
    return max((float(np.abs(found[name] - share).max()), name) for name, share in shares.items())


def _expected(net: BayesianNetwork, source: DataSource, seen: dict[str, Array]) -> dict[str, Array]:
    """The shares over all rows, those that lack a value as the network expects them to be."""
    if not isinstance(source, CodedTable):
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


def _marginals(tables: BayesianNetwork) -> dict[str, Array]:
    posteriors = tables.posteriors({})
    return {name: np.array([posteriors[name][s] for s in tables.states(name)]) for name in tables.names}


def _raked(cpt: CPT, found: Array, share: Array | None) -> CPT:
    """A table moved towards the share of each state that occurs."""
    if share is None:
        return cpt
    factor = share / np.maximum(found, 1e-300)
    table = cpt.table * factor
    return CPT.trusted(cpt.variable, cpt.parents, table / table.sum(axis=-1, keepdims=True))
