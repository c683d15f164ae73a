"""What to ask next: how much each unobserved variable would tell about a target, on average.

I(T; V | e) = Σ_t P(t|e) KL(P(V|t,e) ‖ P(V|e)), in bits. One pass for all variables per state of the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bbn.analysis.explain import divergence
from bbn.errors import EvidenceError
from bbn.evidence import Evidence, check_evidence

if TYPE_CHECKING:
    from bbn.network import BayesianNetwork


def information(
    net: BayesianNetwork, target: str, evidence: Evidence | None = None, method: str = "auto", **options: Any
) -> dict[str, float]:
    """Bits of mutual information with `target` by variable, the most telling first.

    >>> import bbn
    >>> list(information(bbn.example("asia"), "lung"))[:3]
    ['either', 'xray', 'smoke']
    """
    findings = check_evidence(net, evidence)
    if target in findings.hard or target in findings.likelihood or target in findings.soft:
        raise EvidenceError(f"there is evidence on the target {target!r} already")
    variable = net.variable(target)
    before = net.posteriors(evidence, method, **options)
    bits = {name: 0.0 for name in before if name != target}
    for state, p in before[target].to_dict().items():
        if p > 0:
            after = net.posteriors({**(evidence or {}), variable.name: state}, method, **options)
            for name in bits:
                bits[name] += p * divergence(after[name].values, before[name].values)
    return dict(sorted(bits.items(), key=lambda item: -item[1]))
