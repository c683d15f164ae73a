"""A learned network whose variables are distributed as the data's columns.

With complete data the families' tables give each child the data's shares where its parents are distributed as in the
data. Parents of one child that no arc links are not: the network takes them as independent, and the shares of the
child, and of those below it, move. Raking moves them back: each table's column k is multiplied by share_k / P(k), rows are
normalised, and this is repeated (iterative proportional fitting, Deming & Stephan 1940). A round costs one pass through
the junction tree.
"""

from __future__ import annotations

import numpy as np

from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.data import DataSource
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

    With holes nothing is changed: what a row lacks is then inferred from what it has, and the shares of those that
    lack nothing need not be those of all. In a forest all shares are right without a look at the data.
    """
    there = {own.name for own in source.variables}
    variables = [v for v in net.variables if v.card and v.name in there]
    if not variables or (not holes and all(len(net.parents(v.name)) <= 1 for v in variables)):
        return net, ""
    counts = source.counts([(v.name,) for v in variables])
    shares = {v.name: count / max(count.sum(), 1e-300) for v, count in zip(variables, counts, strict=True)}
    tables = BayesianNetwork([net[name] for name in net.names if net.variable(name).card])
    try:
        found = _marginals(tables)
    except BudgetError:
        return (
            net,
            "whether each variable has the shares of its column was not looked at: the network is too large",
        )
    off = {name: float(np.abs(found[name] - share).max()) for name, share in shares.items()}
    worst = max(off, key=lambda name: off[name])
    if off[worst] <= OFF:
        return net, ""
    if holes:
        return net, _told(worst, off[worst])
    best, least = tables, off[worst]
    for _ in range(ROUNDS):
        tables = BayesianNetwork([_raked(tables[n], found[n], shares.get(n)) for n in tables.names])
        found = _marginals(tables)
        now = max(float(np.abs(found[name] - share).max()) for name, share in shares.items())
        if now < least:
            best, least = tables, now
        if now <= NEAR:
            break
    said = f"tables were raked to the shares of the columns, from which those of {worst!r} were {off[worst]:.2g} off"
    own = [best[name] if net.variable(name).card else net[name] for name in net.names]
    return BayesianNetwork(own, net.name, net.metadata), said


def _told(name: str, off: float) -> str:
    if off <= SAID:
        return ""
    return (
        f"the shares of {name!r} are up to {off:.2g} from those of the rows that have it, as the rows that lack it "
        "differ from these in other columns"
    )


def _marginals(tables: BayesianNetwork) -> dict[str, Array]:
    posteriors = tables.posteriors({})
    return {name: np.array([posteriors[name][s] for s in tables.states(name)]) for name in tables.names}


def _raked(cpt: CPT, found: Array, share: Array | None) -> CPT:
    """A table moved towards the share of each state that occurs."""
    if share is None:
        return cpt
    factor = np.where((share > 0) & (found > 0), share / np.where(found > 0, found, 1.0), 1.0)
    table = cpt.table * factor
    return CPT.trusted(cpt.variable, cpt.parents, table / table.sum(axis=-1, keepdims=True))
