"""FitResult: what an iterative learner gives back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bbn.core.display import Table, Tabular
from bbn.core.frozen import Array, Frozen, read_only
from bbn.model.network import BayesianNetwork


class FitResult(Tabular, Frozen, compared=("network", "reason", "log_likelihoods", "objectives")):
    """A fitted network and how it was reached.

    Attributes
    ----------
    network
        The best network found.
    log_likelihoods
        ln P(data) of the start, then of each step.
    objectives
        ln P(data) plus the log prior, Σ α ln θ, which is what never falls; without a prior the same as
        `log_likelihoods`.
    converged
        Whether the last step gained too little to go on.
    reason
        Why it stopped: "converged", "max_iter", "interrupted" (by Ctrl-C) or "time_limit".
    restarts
        The last objective of each start; the best one's network is this one.

    >>> from bbn.model.cpt import CPT
    >>> from bbn.model.variable import Variable
    >>> coin = BayesianNetwork([CPT(Variable("Coin", ["heads", "tails"]), table=[0.5, 0.5])])
    >>> FitResult(coin, [-10.0, -9.5], [-10.0, -9.5], "converged").n_iter
    1
    """

    __slots__ = ("log_likelihoods", "network", "objectives", "reason", "restarts")

    network: BayesianNetwork
    log_likelihoods: Array
    objectives: Array
    reason: str
    restarts: Array

    def __init__(
        self,
        network: BayesianNetwork,
        log_likelihoods: Sequence[float],
        objectives: Sequence[float],
        reason: str,
        restarts: Sequence[float] = (),
    ) -> None:
        self._set(
            network=network,
            log_likelihoods=read_only(np.array(log_likelihoods, dtype=np.float64)),
            objectives=read_only(np.array(objectives, dtype=np.float64)),
            reason=reason,
            restarts=read_only(np.array(restarts, dtype=np.float64)),
        )

    @property
    def converged(self) -> bool:
        """Whether the last step gained too little to go on."""
        return self.reason == "converged"

    @property
    def n_iter(self) -> int:
        """The number of steps."""
        return len(self.log_likelihoods) - 1

    @property
    def log_likelihood(self) -> float:
        """ln P(data) of the network."""
        return float(self.log_likelihoods[-1])

    def __repr__(self) -> str:
        return (
            f"<FitResult: {self.n_iter} step{'s' * (self.n_iter != 1)}, {self.reason}, "
            f"log-likelihood {self.log_likelihood:.6g}>"
        )

    def _table(self) -> Table:
        rows = [
            ["network", repr(self.network)],
            ["stopped", f"{self.reason} after {self.n_iter} step{'s' * (self.n_iter != 1)}"],
            ["ln P(data) at the start", f"{self.log_likelihoods[0]:.6f}"],
            ["ln P(data) at the end", f"{self.log_likelihood:.6f}"],
        ]
        if not np.array_equal(self.objectives, self.log_likelihoods):
            rows.append(["with the log prior", f"{self.objectives[-1]:.6f}"])
        if len(self.restarts) > 1:
            rows.append(["starts", ", ".join(f"{last:.6g}" for last in self.restarts)])
        return Table(["", ""], rows)

    def __str__(self) -> str:
        return repr(self)
