"""What to ask next: how much each unobserved variable would tell about a target, on average.

I(T; V | e) = Σ_t P(t|e) KL(P(V|t,e) ‖ P(V|e)), in bits. One pass for all variables per state of the target. Of a
continuous variable it is an integral, taken to an error of 1e-9 (see `mixtures`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Unpack

from bbn.analysis.explain import divergence
from bbn.analysis.mixtures import mixture_divergence
from bbn.core.display import Bar, Cell, Table, Tabular
from bbn.core.errors import EvidenceError
from bbn.inference.timed import together
from bbn.kernels.watch import check
from bbn.model.evidence import Evidence, as_mapping, check_evidence
from bbn.model.variable import Continuous
from bbn.results.mixture_posterior import MixturePosterior

if TYPE_CHECKING:
    from bbn.model.network import BayesianNetwork
    from bbn.model.options import EngineOptions, Method

ROUNDING = 1e-14
"""Fewer bits than this count as none: they are rounding error between independent variables."""


class Information(Tabular, dict[str, float]):
    """Variable to bits, the most telling first; prints as a table with bars.

    >>> print(Information({"xray": 0.12, "asia": 0.003}))
    variable   bits
    --------  -----  --------------------
    xray       0.12  ████████████████████
    asia      0.003  ▌
    """

    __slots__ = ()

    def _table(self) -> Table:
        most = max(self.values(), default=0.0) or 1.0
        rows: list[list[Cell]] = [[name, f"{bits:.4g}", Bar(bits / most)] for name, bits in self.items()]
        return Table(["variable", "bits", ""], rows)


def information(
    net: BayesianNetwork,
    target: str,
    evidence: Evidence | None = None,
    method: Method = "auto",
    **options: Unpack[EngineOptions],
) -> Information:
    """See `BayesianNetwork.information`."""
    findings = check_evidence(net, evidence)
    if target in findings.hard or target in findings.likelihood or target in findings.soft:
        raise EvidenceError(f"there is evidence on the target {target!r} already")
    variable = net.variable(target)
    if isinstance(variable, Continuous):
        raise EvidenceError(f"the target {target!r} is continuous; information is about discrete targets")
    with together(method, options):
        before = net.posteriors(evidence, method, **options)
        bits = {name: 0.0 for name in before if name != target}
        for state, p in before[target].to_dict().items():
            check()
            if p > 0:
                after = net.posteriors({**as_mapping(evidence), variable.name: state}, method, **options)
                for name in bits:
                    bits[name] += p * _divergence(after[name], before[name])
    clean = {name: value if value > ROUNDING else 0.0 for name, value in bits.items()}
    return Information(sorted(clean.items(), key=lambda item: -item[1]))


def _divergence(after: Any, before: Any) -> float:
    """KL(after ‖ before) in bits of two posteriors of one variable."""
    if isinstance(after, MixturePosterior):
        return mixture_divergence(after, before) / math.log(2)
    return divergence(after.values, before.values)
