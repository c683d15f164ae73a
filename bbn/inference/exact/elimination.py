"""Variable elimination: sum out one variable at a time, always multiplying only the factors that hold it.

Koller and Friedman 2009, algorithm 9.1 (sum-product) and 13.1 (max-product with traceback); marginal MAP sums
the others out before it maximises (section 13.2.3). The cost is that of the largest product met on the way,
which depends on the order; `order=` names the rule that chooses it. Written to be read, and in logarithms, so that
nothing needs to be scaled; the junction tree is the fast engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from bbn.core.budget import require_table
from bbn.core.frozen import Array
from bbn.inference.engine import Engine
from bbn.inference.exact.flat_model import factored
from bbn.inference.exact.log_factor import LogFactor
from bbn.inference.exact.relevant_factors import ancestral_factors, observed_factors
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.graphs import elimination_order
from bbn.model.network import BayesianNetwork
from bbn.model.options import OrderedOptions

Step = tuple[str, LogFactor]
"""A variable that was maximised away, and the product it was maximised in."""
Scope = dict[str, int]
"""The variables of a factor, and how many states each has."""


class VariableElimination(Engine):
    """Variable elimination: exact, one variable summed out after the other.

    Parameters
    ----------
    model : BayesianNetwork or FactorGraph
        The model to ask.
    memory_limit : int, float or str, optional
        The most bytes that the work may take, such as ``"2 GB"``; BudgetError beyond. By default BBN_MEMORY_LIMIT, or
        half of the memory there is.
    time_limit : float, optional
        The most seconds that one question may take; TimeLimitError beyond.
    order : {"min-fill", "weighted-min-fill", "min-weight", "min-neighbours"}, default "min-fill"
        The rule that chooses the elimination order.

    See Also
    --------
    JunctionTree : The fast engine.

    Examples
    --------
    >>> import bbn
    >>> engine = VariableElimination(bbn.example("burglary"))
    >>> round(engine.query("Burglary", {"JohnCalls": "yes", "MaryCalls": "yes"})["yes"], 6)
    0.284172
    """

    name = "elimination"
    defaults: Mapping[str, Any] = {"memory_limit": None, "time_limit": None, "order": "min-fill"}  # type: ignore[misc]

    def __init__(self, model: Model, **options: Unpack[OrderedOptions]) -> None:
        super().__init__(model, **options)
        # a NoisyMax is a chain of small tables; what lies between is hidden, and so is always summed out
        self._chained: Model = factored(self.model) if isinstance(self.model, BayesianNetwork) else self.model

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        factors = self._relevant(targets, findings)
        require_product({name: self.model.variable(name).card for name in targets}, options)
        order, _ = _planned(list(map(_scope, factors)), targets, options)
        factors = self._eliminate(factors, order, LogFactor.sum_out, options)
        return _product([*factors, _ones(self.model, targets)], options).permute(targets).shares()

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        free = tuple(v.name for v in self.model.variables if v.name not in findings.hard)
        return self._best_of(free, findings, options)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        factors = self._relevant(targets, findings)
        ones = [_ones(self.model, (name,)) for name in targets]
        summed, left = _planned(list(map(_scope, factors)), targets, options)
        maximised, _ = _planned([*left, *map(_scope, ones)], (), options)
        factors = self._eliminate(factors, summed, LogFactor.sum_out, options)
        steps: list[Step] = []
        factors = self._eliminate([*factors, *ones], maximised, LogFactor.max_out, options, steps)
        log_probability = float(_product(factors, options).values)
        return ({}, log_probability) if log_probability == -math.inf else (_traceback(steps), log_probability)

    def _relevant(self, targets: tuple[str, ...], findings: Findings) -> list[LogFactor]:
        """The factors that the question needs, with the evidence in them."""
        relevant = ancestral_factors(self._chained, {*targets, *findings.hard, *findings.likelihood})
        return list(map(LogFactor.of, observed_factors(self._chained, findings, relevant)))

    def _eliminate(
        self,
        factors: list[LogFactor],
        order: Sequence[str],
        out: Callable[[LogFactor, str], LogFactor],
        options: Mapping[str, Any],
        steps: list[Step] | None = None,
    ) -> list[LogFactor]:
        """Eliminate the variables in this order: the factors that are left."""
        for name in order:
            check()
            holding = [f for f in factors if name in f.names]
            factors = [f for f in factors if name not in f.names]
            product = _product(holding, options)
            if steps is not None:
                steps.append((name, product))
            factors.append(out(product, name))
        return factors


def _planned(
    scopes: list[Scope], kept: Sequence[str], options: Mapping[str, Any]
) -> tuple[list[str], list[Scope]]:
    """The order in which all variables but `kept` go, and the scopes left; BudgetError if a product would not fit."""
    cards = {name: card for scope in scopes for name, card in scope.items()}
    order = elimination_order(scopes, cards, options["order"], keep=kept)
    for name in order:
        check()
        product = {other: card for scope in scopes if name in scope for other, card in scope.items()}
        require_product(product, options)
        del product[name]
        scopes = [*(scope for scope in scopes if name not in scope), product]
    return order, scopes


def require_product(cards: Mapping[str, int], options: Mapping[str, Any]) -> None:
    """Raise BudgetError if a product over these variables, and the copy that is summed, would not fit."""
    require_table(
        list(cards.values()),
        f"elimination's product over {len(cards)} variables ({', '.join(list(cards)[:6])}, …)",
        "observe more variables, ask for fewer targets, or try another order= or a sampling method",
        options["memory_limit"],
        copies=2,
    )


def _product(factors: list[LogFactor], options: Mapping[str, Any]) -> LogFactor:
    require_product({name: card for factor in factors for name, card in _scope(factor).items()}, options)
    return math.prod(factors, start=LogFactor.trusted((), np.zeros(())))


def _traceback(steps: list[Step]) -> dict[str, int]:
    """The best codes, from the last variable maximised away to the first."""
    best: dict[str, int] = {}
    for name, product in reversed(steps):
        index = tuple(best.get(v.name, slice(None)) for v in product.variables)
        best[name] = int(product.values[index].argmax())
    return best


def _scope(factor: LogFactor) -> Scope:
    return {v.name: v.card for v in factor.variables}


def _ones(model: Any, names: tuple[str, ...]) -> LogFactor:
    variables = tuple(model.variable(name) for name in names)
    return LogFactor.trusted(variables, np.zeros([v.card for v in variables]))
