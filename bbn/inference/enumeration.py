"""Enumeration: the joint of everything unobserved, written out. Slow, obvious, and the check on all others.

P(targets | evidence) ∝ Σ over the rest of ∏ factors (Russell and Norvig 2020, section 13.3.1). Takes memory and
time in the product of all cardinalities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bbn.budget import require_table
from bbn.evidence import Findings
from bbn.factor import Factor
from bbn.frozen import Array
from bbn.inference.engine import Engine
from bbn.inference.restriction import observed, product_of


class Enumeration(Engine):
    """Brute force over the joint.

    >>> import bbn
    >>> Enumeration(bbn.example("cancer_test")).query("Cancer", {"Test": "positive"})
    <Posterior P(Cancer): yes: 0.208511, no: 0.791489>
    """

    name = "enumeration"

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        everything, log_scale = self._everything(findings, options)
        kept = everything.sum_out([name for name in everything.names if name not in targets]).permute(targets)
        total = float(kept.values.sum())
        if total == 0:
            return kept.values, -math.inf
        return np.asarray(kept.values / total), math.log(total) + log_scale

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        everything, log_scale = self._everything(findings, options)
        index = np.unravel_index(int(everything.values.argmax()), everything.values.shape)
        highest = float(everything.values[index])
        codes = dict(zip(everything.names, map(int, index), strict=True))
        return codes, math.log(highest) + log_scale if highest > 0 else -math.inf

    def _everything(self, findings: Findings, options: Mapping[str, Any]) -> tuple[Factor, float]:
        """The product of all factors and likelihoods, over all variables not hard-observed, and the ln of its scale."""
        free = tuple(v for v in self.model.variables if v.name not in findings.hard)
        require_table(
            [v.card for v in free],
            f"enumeration of {len(free)} variables",
            'method="junction-tree" may need far less',
            options["memory_limit"],
        )
        return product_of(
            observed(self.model, findings), Factor.trusted(free, np.ones([v.card for v in free]))
        )
