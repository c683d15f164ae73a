"""Variable elimination: sum out one variable at a time, always multiplying only the factors that hold it.

Koller and Friedman 2009, algorithm 9.1 (sum-product) and 13.1 (max-product with traceback); marginal MAP sums
the others out before it maximises (section 13.2.3). The cost is that of the largest product met on the way,
which depends on the order; `order=` names the rule that chooses it. All that is alive at once is foreseen from the
scopes, so what does not fit the memory is refused before anything is multiplied. Written to be read, and in logarithms,
so that nothing needs to be scaled; the junction tree is the fast engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from bbn.core.budget import MAX_AXES, memory_limit, require_memory, show_bytes
from bbn.core.errors import BudgetError
from bbn.core.frozen import Array
from bbn.inference.engine import Engine
from bbn.inference.exact.problem import factored
from bbn.inference.log_factor import LogFactor
from bbn.inference.relevant_factors import ancestral_factors, observed_factors
from bbn.kernels import logarithms
from bbn.kernels.watch import check
from bbn.model.evidence import Findings, Model
from bbn.model.graphs import elimination_order
from bbn.model.network import BayesianNetwork
from bbn.model.options import OrderedOptions
from bbn.model.variable import Variable

Held = TypeVar("Held")
Step = tuple[str, tuple[str, ...], NDArray[np.unsignedinteger[Any]]]
"""A variable that was maximised away, the others of its product, and its best code for each of their states."""
Scope = dict[str, int]
"""The variables of a factor, and how many states each has."""
INSTEAD = "observe more variables, ask for fewer targets, or try another order= or a sampling method"


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
    budget : Budget, optional
        Seconds and bytes as one value, in place of `time_limit` and `memory_limit`.
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
    defaults: Mapping[str, Any] = {**Engine.defaults, "order": "min-fill"}  # type: ignore[misc]

    def __init__(self, model: Model, **options: Unpack[OrderedOptions]) -> None:
        super().__init__(model, **options)

    def _prepare(self) -> None:
        # a NoisyMax is a chain of small tables; what lies between is hidden, and so is always summed out
        self._chained: Model = factored(self.model) if isinstance(self.model, BayesianNetwork) else self.model

    def _joint(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[Array, float]:
        scopes = self._scopes(targets, findings)
        asked = self._asked(targets)
        foreseen = Foreseen(scopes, options)
        order = foreseen.eliminate(targets, options["order"])
        foreseen.product([*foreseen.scopes, asked], 2)
        factors = eliminate(self._relevant(targets, findings), order)
        ones = _ones([self.model.variable(name) for name in targets])
        return LogFactor.product([*factors, ones]).permute(targets).shares()

    def _best(self, findings: Findings, options: Mapping[str, Any]) -> tuple[dict[str, int], float]:
        free = tuple(v.name for v in self.model.variables if v.name not in findings.hard)
        return self._best_of(free, findings, options)

    def _best_of(
        self, targets: tuple[str, ...], findings: Findings, options: Mapping[str, Any]
    ) -> tuple[dict[str, int], float]:
        wanted = [self.model.variable(name) for name in targets]
        scopes = self._scopes(targets, findings)
        plan = plan_buckets(scopes, wanted, options["order"], options)
        return best_of(plan, lambda: self._relevant(targets, findings))

    def _scopes(self, targets: tuple[str, ...], findings: Findings) -> list[Scope]:
        """The scopes of the factors that `_relevant` gives."""
        hard, likelihoods = findings.hard, list(findings.likelihood)
        relevant = ancestral_factors(self._chained, {*targets, *hard, *likelihoods})
        scopes = [{v.name: v.card for v in factor.variables if v.name not in hard} for factor in relevant]
        return [*scopes, *(self._asked((name,)) for name in likelihoods)]

    def _asked(self, names: tuple[str, ...]) -> Scope:
        return {name: self.model.variable(name).card for name in names}

    def _relevant(self, targets: tuple[str, ...], findings: Findings) -> list[LogFactor]:
        """The factors that the question needs, with the evidence in them."""
        relevant = ancestral_factors(self._chained, {*targets, *findings.hard, *findings.likelihood})
        return list(map(LogFactor.of, observed_factors(self._chained, findings, relevant)))


class BucketPlan(NamedTuple):
    """The constrained order of a marginal MAP: sums before maxima, and what that takes."""

    targets: tuple[Variable, ...]
    summed: list[str]
    maximised: list[str]
    bytes: int
    """The most that are alive at once."""
    cells: int
    """Those of all products."""


def plan_buckets(
    scopes: list[Scope],
    targets: Sequence[Variable],
    rule: str,
    options: Mapping[str, Any],
    beside: int = 0,
) -> BucketPlan:
    """The order for the best assignment of the targets; BudgetError if it does not fit the memory.

    Parameters
    ----------
    scopes
        Those of the factors.
    targets : sequence of Variable
        None of them observed.
    rule, options
        That of elimination, and the engine's options.
    beside
        The bytes that somebody else takes of the limit.
    """
    foreseen = Foreseen(scopes, options, beside)
    summed = foreseen.eliminate([v.name for v in targets], rule)
    foreseen.scopes += [{v.name: v.card} for v in targets]
    maximised = foreseen.eliminate((), rule, decided=True)
    return BucketPlan(tuple(targets), summed, maximised, foreseen.peak - beside, foreseen.cells)


def best_of(plan: BucketPlan, factors: Callable[[], list[LogFactor]]) -> tuple[dict[str, int], float]:
    """The codes of the best assignment of the targets, the other variables summed out, and ln of its weight.

    `factors` makes the factors, with the evidence in them.
    """
    steps: list[Step] = []
    left = eliminate(factors(), plan.summed)
    left = eliminate([*left, *(_ones([v]) for v in plan.targets)], plan.maximised, steps)
    log_probability = float(LogFactor.product(left).values)
    return ({}, log_probability) if log_probability == -math.inf else (_traceback(steps), log_probability)


def eliminate(
    factors: list[LogFactor], order: Sequence[str], steps: list[Step] | None = None
) -> list[LogFactor]:
    """Sum these variables out in this order, or, with `steps`, maximise them away: the factors that are left."""
    buckets = Buckets(factors, lambda factor: factor.names)
    factors.clear()  # those that are used up are let go
    for name in order:
        check()
        buckets.put(_without(name, buckets.take(name), steps))
    return buckets.left()


def _ones(variables: Sequence[Variable]) -> LogFactor:
    return LogFactor.trusted(tuple(variables), np.zeros([v.card for v in variables]))


def _without(name: str, holding: list[LogFactor], steps: list[Step] | None) -> LogFactor:
    """The product of these factors with a variable summed out, or, with `steps`, maximised away."""
    product = LogFactor.product(holding)
    if steps is None:
        return product.sum_out(name)
    axis = product.names.index(name)
    best = product.values.argmax(axis=axis)
    others = tuple(other for other in product.names if other != name)
    steps.append((name, others, best.astype(_codes(product.variables[axis].card))))
    return product.max_out(name)


def _traceback(steps: list[Step]) -> dict[str, int]:
    """The best codes, from the last variable maximised away to the first."""
    best: dict[str, int] = {}
    for name, others, codes in reversed(steps):
        best[name] = int(codes[tuple(best[other] for other in others)])
    return best


def _codes(card: int) -> np.dtype[Any]:
    """The smallest integers that hold the codes of a variable."""
    return np.min_scalar_type(card - 1)


class Foreseen:
    """What an elimination takes of the memory, worked out from the scopes of its factors alone.

    Parameters
    ----------
    scopes
        Those of the factors.
    options
        The engine's, with the memory limit.
    beside
        The bytes that somebody else takes of the limit.

    Attributes
    ----------
    scopes
        Those of the factors that are left so far.
    peak, cells
        The most bytes that are alive at once so far, and the cells of all products.
    """

    def __init__(self, scopes: list[Scope], options: Mapping[str, Any], beside: int = 0) -> None:
        self.scopes = scopes
        self._limit = options["memory_limit"]
        tables = [8 * _cells(scope) for scope in scopes]
        self._held = self.peak = beside + sum(tables)
        self.cells = 0
        self._need(2 * max(tables, default=0), "elimination's copies of the tables")

    def eliminate(self, kept: Sequence[str], rule: str, decided: bool = False) -> list[str]:
        """The order in which all variables but `kept` go; BudgetError if what is alive at once would not fit.

        `decided` says that they are maximised away, so that the best code of each is kept.
        """
        cards = {name: card for scope in self.scopes for name, card in scope.items()}
        most = max(0, memory_limit(self._limit) - self._held) / 8  # a larger product is refused below
        order = elimination_order(self.scopes, cards, rule, kept, most)
        buckets = Buckets(self.scopes, lambda scope: scope)
        for name in order:
            check()
            used = 8 * sum(map(_cells, holding := buckets.take(name)))
            left = self.product(holding, 1)
            card = left.pop(name)
            cells = _cells(left)
            self._held += 8 * cells - used + (cells * _codes(card).itemsize if decided else 0)
            buckets.put(left)
        self.scopes = buckets.left()
        return order

    def product(self, scopes: list[Scope], copies: int) -> Scope:
        """The scope of a product, with so many copies alive while it is summed; BudgetError if too large."""
        whole = {name: card for scope in scopes for name, card in scope.items()}
        what = f"elimination's product over {len(whole)} variables ({', '.join(list(whole)[:6])}, …)"
        cells = _cells(whole)
        left = cells // min(whole.values(), default=1)
        pieces = 2 * min(cells, logarithms.PIECE)
        self._need(8 * (copies * cells + pieces) + 18 * left, what)  # what is left twice, and flags
        self.cells += cells
        if len(whole) > MAX_AXES:
            raise BudgetError(f"{what} would have {len(whole)} axes; at most {MAX_AXES} are possible")
        return whole

    def _need(self, size: int, what: str) -> None:
        needed = self._held + size
        beside = f" ({show_bytes(size)}, beside {show_bytes(self._held)} of others)"
        require_memory(needed, f"{what}{beside if needed > 1.1 * size else ''}", INSTEAD, self._limit)
        self.peak = max(self.peak, needed)


class Buckets(Generic[Held]):
    """Factors, or scopes of factors, found by the variables they hold (bucket elimination: Dechter 1999).

    Parameters
    ----------
    held
        The factors.
    names
        The variables of one.
    """

    def __init__(self, held: Sequence[Held], names: Callable[[Held], Iterable[str]]) -> None:
        self._names = names
        self._held: dict[int, Held] = {}
        self._holding: dict[str, dict[int, None]] = {}
        self._next = 0
        for factor in held:
            self.put(factor)

    def put(self, factor: Held) -> None:
        """Add a factor."""
        self._held[self._next] = factor
        for name in self._names(factor):
            self._holding.setdefault(name, {})[self._next] = None
        self._next += 1

    def take(self, name: str) -> list[Held]:
        """The factors that hold a variable, which are no longer here."""
        found = []
        for number in list(self._holding.get(name, ())):
            factor = self._held.pop(number)
            for other in self._names(factor):
                del self._holding[other][number]
            found.append(factor)
        return found

    def left(self) -> list[Held]:
        """The factors that are here."""
        return list(self._held.values())


def _cells(scope: Scope) -> int:
    return math.prod(scope.values())
