"""Draws of the continuous variables of a network, given rows of its discrete ones.

The discrete variables are drawn first, given all the evidence: the numbers in it as likelihoods (see `numbers`). Then
the unobserved variables of each component that holds an observed one are drawn from their normal distribution given
it, and all others from their own, parents first. The rows are independent exact draws.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bbn.core.frozen import Array
from bbn.inference.gaussian.hybrid import Case, hybrid
from bbn.inference.gaussian.observed_numbers import Observed, discrete_network
from bbn.kernels.contracts.types import Ints
from bbn.model.evidence import Evidence
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Variable

States = Mapping[str, NDArray[np.integer]]
"""Discrete name to a column of codes."""


class NumberDraws:
    """What draws the continuous variables of a network under one evidence.

    Attributes
    ----------
    names
        The continuous variables, in topological order.
    discrete, evidence
        The network and the evidence that the discrete variables are to be drawn from.
    """

    def __init__(
        self, net: BayesianNetwork, evidence: Evidence | None, memory_limit: int | str | None
    ) -> None:
        self.net, self.names = net, net.continuous
        self.observed = Observed(net, evidence, memory_limit)
        stand = self.observed.stand(virtual=True)
        if stand.cut:
            stand = Case(hybrid(net), evidence, {}).settled()
        self.evidence = stand.evidence
        self.discrete = discrete_network(net)
        if stand.children:
            self.discrete = self.discrete.with_cpts(stand.children)
        parts = self.observed.components
        self.parts = [(part, self.observed.given(part)) for part in parts if part.observed]
        inside = {name for part, _ in self.parts for name in part.names}
        gaussians = (c for c in net.conditionals if isinstance(c, Gaussian))
        self.others = [g for g in gaussians if g.name not in inside and g.name not in self.observed.numbers]

    def refuse_impossible(self) -> None:
        """Raise if the discrete evidence is impossible: numbers never are."""
        hybrid(self.net).engine.query(self.discrete.names[0], self.observed.discrete)

    def draw(self, states: States, rng: np.random.Generator, out: Array) -> None:
        """Fill `out`, a row per continuous variable, for rows of the discrete variables' codes."""
        n = out.shape[1]
        found: dict[str, Array] = dict(zip(self.names, out, strict=True))
        for name, number in self.observed.numbers.items():
            found[name][:] = number
        for part, given in self.parts:
            for name, values in part.draw(given, _setting(part.regime, states, n), rng).items():
                found[name][:] = values
        for g in self.others:
            setting = _setting(g.discrete_parents, states, n)
            values = found[g.name]
            rng.standard_normal(out=values)
            values *= np.sqrt(g.variances).reshape(-1)[setting]
            values += g.means.reshape(-1)[setting]
            for k, parent in enumerate(g.continuous_parents):
                values += g.weights[..., k].reshape(-1)[setting] * found[parent.name]


def _setting(regime: tuple[Variable, ...], states: States, n: int) -> Ints:
    """For each row the number of its setting of some discrete variables, the last one fastest."""
    setting = np.zeros(n, np.int64)
    for v in regime:
        setting = setting * v.card + states[v.name]
    return setting
