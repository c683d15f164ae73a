"""Credible intervals: how sure an answer can be, given the data that the tables were learned from.

A network fitted with `keep_counts=True` knows the Dirichlet posterior of each row of its tables. Tables drawn from it
make networks, each network makes an answer, and the middle share of those answers is the interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bbn.core.errors import EvidenceError, ImpossibleEvidenceError
from bbn.core.frozen import Array, read_only
from bbn.inference.sampling.draws import require_copies
from bbn.inference.timed import together
from bbn.kernels.watch import check
from bbn.model.evidence import Evidence, as_mapping, check_targets
from bbn.model.variable import Variable
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd

DRAW_COPIES = 10
"""Copies of the tables that a network drawn and asked takes: draws, their shares, a network, an engine, a plan."""


class CrediblePosterior(Posterior, like=Posterior):
    """A posterior with an interval around each probability.

    Attributes
    ----------
    draws
        (n, \\*shape): the answers of the networks that were drawn.
    level
        The share of them that lies between `low` and `high`.
    low, high
        Arrays like `values`: the ends of the intervals.
    """

    __slots__ = ("draws", "high", "level", "low")

    draws: Array
    level: float
    low: Array
    high: Array

    def __init__(
        self, variables: tuple[Variable, ...], values: Array, log_evidence: float, draws: Array, level: float
    ) -> None:
        super().__init__(variables, values, log_evidence)
        self._set(draws=read_only(draws), level=level)
        low, high = self.interval(level)
        self._set(low=read_only(low), high=read_only(high))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """The lower and upper ends between which this share of the draws lies, as many below as above."""
        low, high = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def to_frame(self) -> pd.DataFrame:
        """One row per state or combination, with the columns "probability", "low" and "high"."""
        frame = super().to_frame()
        return frame.assign(low=self.low.ravel(), high=self.high.ravel())


def credible_query(
    net: Any,
    targets: str | Sequence[str],
    evidence: Evidence | None = None,
    method: str = "auto",
    *,
    interval: float,
    n_draws: int = 500,
    seed: int | np.random.Generator | None = None,
    **options: Any,
) -> CrediblePosterior:
    """The posterior of the targets, with a credible interval of each probability.

    Parameters
    ----------
    net
        A network fitted with `keep_counts=True`.
    targets, evidence, method
        As in `net.query`.
    interval
        The share of the answers that lies inside, such as 0.95; as much is cut off below as above.
    n_draws
        How many networks to draw.
    seed
        An int or a Generator.
    """
    if not 0 < interval < 1:
        raise EvidenceError(f"interval is {interval!r}; expected a share between 0 and 1, such as 0.95")
    if n_draws < 2:
        raise EvidenceError(f"n_draws is {n_draws!r}; expected at least 2")
    names = check_targets(net, targets)
    for name in names:
        if not net.states(name):
            raise EvidenceError(
                f"interval= is about the probabilities of states, and {name!r} is continuous; "
                f"query({name!r}).interval() is where its value lies"
            )
    answer = net.query(names, evidence, method, **options)
    relevant = net.subnetwork([*names, *as_mapping(evidence)])
    counted = [c for c in relevant.conditionals if hasattr(c, "draw")]
    if not counted:
        raise EvidenceError(
            "the network does not know what its tables were learned from; "
            "bbn.fit(..., keep_counts=True) makes one that does"
        )
    require_copies(relevant, [c.name for c in counted], DRAW_COPIES, options.get("memory_limit"))
    generator = np.random.default_rng(seed)
    answers = []
    with together(method, options):
        for _ in range(n_draws):
            check()
            drawn = relevant.with_cpts([c.draw(generator) for c in counted])
            try:
                answers.append(drawn.query(names, evidence, method, **options).values)
            except ImpossibleEvidenceError:  # possible under the tables' mean, so almost surely not seen
                continue
    return CrediblePosterior(
        answer.variables, answer.values, answer.log_evidence, np.array(answers), interval
    )
