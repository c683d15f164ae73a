"""The gradient of ln P(data) in what the conditionals of a network are made of, without the full tables of NoisyMax.

The entries of a CPT are those of its table; those of a NoisyMax are the rows of its links and its leak, which are the
tables of the effects once these are variables of their own (`bbn.model.expansion.linked`). A Deterministic has none.
"""

from __future__ import annotations

import numpy as np

from bbn.core.budget import Ledger
from bbn.core.frozen import Array
from bbn.inference.exact.expected_counts import Expectation, by_name, flat_tables, tabled
from bbn.model.deterministic import Deterministic
from bbn.model.expansion import factored_parts, linked
from bbn.model.network import BayesianNetwork
from bbn.model.noisy_max import NoisyMax


class EntryGradient:
    """∂ ln P / ∂ entry, every entry taken as free of the others.

    Parameters
    ----------
    net
        A network without continuous variables.
    n_jobs, ledger
        As in `Expectation`.

    Attributes
    ----------
    expectation, tables
        The pass over data that gives the gradient, and the tables that it is to be called with.
    """

    def __init__(self, net: BayesianNetwork, n_jobs: int | None = None, ledger: Ledger | None = None) -> None:
        self.net, self.whole = net, net
        self.effects: dict[str, list[str]] = {}
        if factored_parts(net):
            self.whole, self.effects, _ = linked(net)
        self.expectation = Expectation(self.whole, n_jobs, ledger)
        self.tables = flat_tables(self.whole)

    def by_name(self, flat: Array) -> dict[str, Array]:
        """Variable to an array like `entries` of its conditional."""
        found = by_name(self.whole, flat)
        for name, effects in self.effects.items():
            found[name] = np.concatenate([np.atleast_2d(found[effect]) for effect in effects])
        return {name: found[name] for name in entry_names(self.net)}


def entry_names(net: BayesianNetwork) -> list[str]:
    """The variables whose conditionals have entries, in the network's order."""
    return [name for name in tabled(net) if not isinstance(net[name], Deterministic)]


def entries(net: BayesianNetwork, name: str) -> Array:
    """The table of a CPT, the rows of a NoisyMax."""
    own = net[name]
    return own.rows if isinstance(own, NoisyMax) else own.table
