"""Enumeration: the joint of everything unobserved, written out. Slow, obvious, and the check on all others.

P(targets | evidence) ∝ Σ over the rest of ∏ factors (Russell and Norvig 2020, section 13.3.1). Takes memory and
time in the product of all cardinalities. Worked out in logarithms, so that no product is too small for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from bbn.core.budget import require_table
from bbn.core.frozen import Array
from bbn.inference.engine import Engine
from bbn.inference.log_factor import LogFactor
from bbn.inference.relevant_factors import observed_factors
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.options import ExactOptions


class Enumeration(Engine):
    """Brute force over the joint: exact, slow, and the check on all others.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond. By default BBN_MEMORY_LIMIT, or
        half of the memory there is.
    time_limit : float, optional
        The most seconds that one question may take; TimeLimitError beyond.
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.

    See Also
    --------
    VariableElimination, JunctionTree : Exact engines that need far less.

    Examples
    --------
    >>> import bbn
    >>> Enumeration(bbn.example("cancer_test")).query("Cancer", {"Test": "positive"})
    <Posterior P(Cancer): yes: 0.208511, no: 0.791489>
    """

    name = "enumeration"

    def __init__(self, model: Model, **options: Unpack[ExactOptions]) -> None:
        super().__init__(model, **options)

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        everything = self._everything(findings, options)
        return everything.sum_out([n for n in everything.names if n not in targets]).permute(targets).shares()

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        everything = self._everything(findings, options)
        index = np.unravel_index(int(everything.values.argmax()), everything.values.shape)
        return dict(zip(everything.names, map(int, index), strict=True)), float(everything.values[index])

    def _everything(self, findings: Findings, options: Mapping[str, Any]) -> LogFactor:
        """The product of all factors and likelihoods, over all variables not hard-observed."""
        free = tuple(v for v in self.model.variables if v.name not in findings.hard)
        require_table(
            [v.card for v in free],
            f"enumeration of {len(free)} variables",
            'method="junction-tree" may need far less',
            options["memory_limit"],
            copies=2,
        )
        product = LogFactor.trusted(free, np.zeros([v.card for v in free]))
        for factor in observed_factors(self.model, findings):
            check()
            product = product * LogFactor.of(factor)
        return product
