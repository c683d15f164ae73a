"""Variable elimination: sum out one variable at a time, always multiplying only the factors that hold it.

Koller and Friedman 2009, algorithm 9.1 (sum-product) and 13.1 (max-product with traceback); marginal MAP sums
the others out before it maximises (section 13.2.3). The cost is that of the largest product met on the way,
which depends on the order; `order=` names the rule that chooses it. Written to be read; the junction tree is
the fast engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bbn.budget import require_table
from bbn.evidence import Findings
from bbn.factor import Factor
from bbn.frozen import Array
from bbn.graphs import elimination_order
from bbn.inference.engine import Engine
from bbn.inference.relevance import ancestral_factors
from bbn.inference.restriction import observed, product_of

Step = tuple[str, Factor]
"""A variable that was maximised away, and the product it was maximised in."""


class VariableElimination(Engine):
    """Variable elimination.

    Parameters
    ----------
    order
        The rule that chooses the elimination order: "min-fill", "weighted-min-fill", "min-weight" or
        "min-neighbours".

    >>> import bbn
    >>> engine = VariableElimination(bbn.example("burglary"))
    >>> round(engine.query("Burglary", {"JohnCalls": "yes", "MaryCalls": "yes"})["yes"], 6)
    0.284172
    """

    name = "elimination"
    defaults: Mapping[str, Any] = {"memory_limit": None, "order": "min-fill"}  # type: ignore[misc]

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        relevant = ancestral_factors(self.model, {*targets, *findings.hard, *findings.likelihood})
        factors = observed(self.model, findings, relevant)
        hidden = _names(factors) - set(targets)
        factors, log_scale = self._eliminate(factors, hidden, set(targets), Factor.sum_out, options)
        product, log_product = _product([*factors, _ones(self.model, targets)], options)
        values = product.permute(targets).values
        total = float(values.sum())
        if total == 0:
            return values, -math.inf
        return np.asarray(values / total), math.log(total) + log_product + log_scale

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        free = tuple(v.name for v in self.model.variables if v.name not in findings.hard)
        return self._best_of(free, findings, options)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        relevant = ancestral_factors(self.model, {*targets, *findings.hard, *findings.likelihood})
        factors = observed(self.model, findings, relevant)
        hidden = _names(factors) - set(targets)
        factors, log_summed = self._eliminate(factors, hidden, set(targets), Factor.sum_out, options)
        steps: list[Step] = []
        factors = [*factors, *(_ones(self.model, (name,)) for name in targets)]
        factors, log_maximised = self._eliminate(factors, set(targets), set(), Factor.max_out, options, steps)
        product, log_product = _product(factors, options)
        highest = float(product.values)
        if highest == 0:
            return {}, -math.inf
        return _traceback(steps), math.log(highest) + log_product + log_summed + log_maximised

    def _eliminate(
        self,
        factors: list[Factor],
        names: set[str],
        kept: set[str],
        out: Callable[[Factor, str], Factor],
        options: Mapping[str, Any],
        steps: list[Step] | None = None,
    ) -> tuple[list[Factor], float]:
        """Eliminate `names`: the factors that are left, each scaled to a maximum of 1, and the ln of the scale."""
        log_scale = 0.0
        cards = {v.name: v.card for factor in factors for v in factor.variables}
        for name in elimination_order([f.names for f in factors], cards, options["order"], keep=kept):
            if name not in names:
                continue
            holding = [f for f in factors if name in f.names]
            factors = [f for f in factors if name not in f.names]
            product, log_product = _product(holding, options)
            if steps is not None:
                steps.append((name, product))
            message, log_max = _scaled(out(product, name))
            factors.append(message)
            log_scale += log_product + log_max
        return factors, log_scale


def _product(factors: list[Factor], options: Mapping[str, Any]) -> tuple[Factor, float]:
    cards = {v.name: v.card for factor in factors for v in factor.variables}
    require_table(
        list(cards.values()),
        f"elimination's product over {len(cards)} variables ({', '.join(list(cards)[:6])}, …)",
        "observe more variables, ask for fewer targets, or try another order= or a sampling method",
        options["memory_limit"],
    )
    return product_of(factors, Factor.trusted((), np.array(1.0)))


def _scaled(factor: Factor) -> tuple[Factor, float]:
    """The factor with a maximum of 1, and the ln of what it was divided by; a zero factor as it is."""
    highest = float(factor.values.max())
    if highest == 0:
        return factor, 0.0
    return Factor.trusted(factor.variables, np.asarray(factor.values / highest)), math.log(highest)


def _traceback(steps: list[Step]) -> dict[str, int]:
    """The best codes, from the last variable maximised away to the first."""
    best: dict[str, int] = {}
    for name, product in reversed(steps):
        index = tuple(best.get(v.name, slice(None)) for v in product.variables)
        best[name] = int(product.values[index].argmax())
    return best


def _names(factors: list[Factor]) -> set[str]:
    return {name for factor in factors for name in factor.names}


def _ones(model: Any, names: tuple[str, ...]) -> Factor:
    variables = tuple(model.variable(name) for name in names)
    return Factor.trusted(variables, np.ones([v.card for v in variables]))
