"""Which findings moved an answer, and by how much.

A finding's own weight is what the answer loses without it, the divergence KL(P(T|e) ‖ P(T|e without it)); its weight
in sequence is how far it moved the answer when it came in, KL(P(T|e₁…eᵢ) ‖ P(T|e₁…eᵢ₋₁)). Both in bits, for the
findings in the order given. The cost is two queries per finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError
from bbn.core.frozen import Array, Frozen
from bbn.inference.timed import together
from bbn.kernels.watch import check
from bbn.model.evidence import Evidence, as_mapping, check_targets, is_missing
from bbn.model.variable import Continuous
from bbn.results.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bbn.model.network import BayesianNetwork
    from bbn.model.options import EngineOptions, Method


class Step(NamedTuple):
    """One finding's part in an answer."""

    finding: str
    value: Any
    alone: float
    """Bits that the answer loses without this finding."""
    in_sequence: float
    """Bits by which this finding moved the answer when it came in."""
    after: Posterior
    """The answer after this finding and those before it."""


class Explanation(Tabular, Frozen):
    """How each finding moved the answer to one question.

    Attributes
    ----------
    prior, posterior
        The answer without and with the evidence.
    steps
        One per finding, in the order given.
    """

    __slots__ = ("posterior", "prior", "steps")

    prior: Posterior
    posterior: Posterior
    steps: tuple[Step, ...]

    def __init__(self, prior: Posterior, posterior: Posterior, steps: tuple[Step, ...]) -> None:
        self._set(prior=prior, posterior=posterior, steps=steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __repr__(self) -> str:
        return f"<Explanation of {', '.join(self.posterior.names)} by {len(self.steps)} findings>"

    def _table(self) -> Table:
        change = np.abs(self.posterior.values - self.prior.values)
        top = self.posterior.variables[0].states[int(change.round(12).argmax())]
        most = max([*(min(s.alone, 1e6) for s in self.steps), 1e-12])
        rows: list[list[Cell]] = [["(prior)", "", "", f"{self.prior[top]:.6g}", ""]]
        for s in self.steps:
            bits = f"{s.alone:.4g}", f"{s.in_sequence:.4g}"
            rows.append([f"{s.finding} = {s.value}", *bits, f"{s.after[top]:.6g}", Bar(s.alone / most)])
        head = f"P({self.posterior.names[0]}={top})"
        return Table(["finding", "bits lost without it", "bits when it came", head, ""], rows)

    def to_frame(self) -> pd.DataFrame:
        """One row per finding."""
        import pandas as pd

        cells = [(s.finding, str(s.value), s.alone, s.in_sequence) for s in self.steps]
        return pd.DataFrame(cells, columns=["finding", "value", "bits_alone", "bits_in_sequence"])

    def plot(self, axes: Axes | None = None) -> Axes:
        """The bits of each finding as bars.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; by default on new ones.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.
        """
        if axes is None:
            import matplotlib.pyplot as plt

            axes = plt.subplots(figsize=(6, 0.5 + 0.45 * len(self.steps)), layout="constrained")[1]
        places = np.arange(len(self.steps))
        axes.barh(places - 0.2, [s.alone for s in self.steps], 0.38, color="#4878a8", label="lost without it")
        axes.barh(
            places + 0.2,
            [s.in_sequence for s in self.steps],
            0.38,
            color="#d3deea",
            edgecolor="#4878a8",
            label="when it came",
        )
        axes.set_yticks(places, [f"{s.finding} = {s.value}" for s in self.steps])
        axes.invert_yaxis()
        axes.set_xlabel(f"bits about {', '.join(self.posterior.names)}")
        axes.legend(frameon=False)
        return axes


def explain(
    net: BayesianNetwork,
    target: str,
    evidence: Evidence | None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> Explanation:
    """See `BayesianNetwork.explain`."""
    check_targets(net, target)
    if isinstance(net.variable(target), Continuous):
        raise EvidenceError(f"the target {target!r} is continuous; explanations are of discrete targets")
    given = {name: value for name, value in as_mapping(evidence).items() if not is_missing(value)}
    with together(method, options):
        return _explained(net, target, given, method, options)


def _explained(
    net: BayesianNetwork, target: str, given: dict[str, Any], method: Method, options: EngineOptions
) -> Explanation:
    prior = net.query(target, None, method, **options)
    posterior = net.query(target, given, method, **options)
    steps = []
    before, so_far = prior, {}
    for name, value in given.items():
        check()
        so_far[name] = value
        others = {other: finding for other, finding in given.items() if other != name}
        without = net.query(target, others, method, **options)
        after = net.query(target, so_far, method, **options)
        alone = divergence(posterior.values, without.values)
        steps.append(Step(name, value, alone, divergence(after.values, before.values), after))
        before = after
    return Explanation(prior, posterior, tuple(steps))


def divergence(p: Array, q: Array) -> float:
    """KL(p ‖ q) in bits; infinite where q excludes what p allows."""
    support = p > 0
    if (q[support] == 0).any():
        return math.inf
    return max(0.0, float((p[support] * np.log2(p[support] / q[support])).sum()))
