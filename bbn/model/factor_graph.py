"""FactorGraph: an undirected model, the normalised product of any non-negative factors.

P(x) = (1/Z) ∏ φ_f(x_f) (Koller and Friedman 2009, section 4.2). The engines that answer for a network answer for
it too, since a network's tables are just factors; ln Z is `log_partition()`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.core.keywords import keywords_checked
from bbn.core.missing_names import NamesSuggested
from bbn.model.factor import Factor
from bbn.model.options import EngineOptions, Method
from bbn.model.questions import Askable
from bbn.model.variable import Variable

if TYPE_CHECKING:
    from bbn.model.evidence import Evidence


class FactorGraph(Askable, NamesSuggested, compared=("_factors",)):
    """An undirected model.

    Parameters
    ----------
    factors
        At least one; factors that share a variable's name must mean the same variable.
    name
        A title; comparisons ignore it.
    variables
        The variables in the order to list them, each in some factor; by default that in which the factors first name
        them. Comparisons ignore it.

    The log_probability of `mpe` and `map` is that of the product of the factors, not divided by Z.

    >>> a, b = Variable("A", [0, 1]), Variable("B", [0, 1])
    >>> pair = FactorGraph([Factor([a, b], [[3, 1], [1, 3]])])
    >>> pair.query("A", {"B": 1})[1], round(pair.log_partition(), 6)
    (0.75, 2.079442)
    """

    __slots__ = ("_factors", "_variables", "memo", "name")

    name: str
    memo: dict[str, Any]
    _factors: tuple[Factor, ...]
    _variables: dict[str, Variable]

    @keywords_checked
    def __init__(
        self, factors: Iterable[Factor], name: str = "", variables: Iterable[Variable] | None = None
    ) -> None:
        if isinstance(factors, Factor) or not isinstance(factors, Iterable):
            raise ModelError(f"a factor graph needs a list of Factors, found {factors!r}")
        listed = tuple(factors)
        known: dict[str, Variable] = {}
        for factor in listed:
            if not isinstance(factor, Factor):
                raise ModelError(
                    f"a factor graph is made of Factors, found {factor!r} ({type(factor).__name__})"
                )
            for v in factor.variables:
                if known.setdefault(v.name, v) != v:
                    raise ModelError(
                        f"variable {v.name!r} has states {list(known[v.name].states)} in one factor, "
                        f"{list(v.states)} in another"
                    )
        if not known:
            raise ModelError("the factor graph is empty; it needs at least one factor over a variable")
        if variables is not None:
            known = _ordered(known, variables)
        self._set(name=name, memo={}, _factors=listed, _variables=known)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, in the order given, or in that in which the factors first name them."""
        return tuple(self._variables.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The variables' names, in the same order."""
        return tuple(self._variables)

    def variable(self, name: str) -> Variable:
        """The variable of this name.

        Parameters
        ----------
        name : str
            One of `names`.

        Returns
        -------
        Variable
            The variable.

        Raises
        ------
        EvidenceError
            There is none; the error names the nearest.
        """
        try:
            return self._variables[name]
        except (KeyError, TypeError):
            raise EvidenceError(
                f"the factor graph has no variable {shown(name)}{nearest(name, self._variables)}"
            ) from None

    def factors(self) -> list[Factor]:
        """The factors, as given."""
        return list(self._factors)

    def log_partition(
        self, evidence: Evidence | None = None, method: Method = "auto", **options: Unpack[EngineOptions]
    ) -> float:
        """Return ln Z, the logarithm of the sum of the factors' product over all assignments.

        Parameters
        ----------
        evidence : mapping, optional
            Sum only over the assignments that agree with these findings, as in `query`.
        method : str, default "auto"
            The method of inference, as in `query`.
        memory_limit, time_limit, budget, order, n_samples, seed, target_std_error, n_jobs, progress, chains, burn_in, \
max_iter, tol, damping, schedule
            Options of the method, as in `query`.

        Returns
        -------
        float
            ln Z, or ln Z(evidence); −inf if no assignment agrees with the evidence.

        Raises
        ------
        EvidenceError, BudgetError, TimeLimitError, TypeError
            As in `query`.

        See Also
        --------
        query : The posterior of some variables.

        Examples
        --------
        >>> coin = Variable("Coin", [0, 1])
        >>> round(FactorGraph([Factor([coin], [1, 3])]).log_partition({"Coin": 1}), 6)
        1.098612
        """
        return self._log_evidence(evidence, method, **options)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._variables

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        title = f" {self.name!r}" if self.name else ""
        n, m = len(self._variables), len(self._factors)
        return f"<FactorGraph{title}: {n} variable{'s' * (n != 1)}, {m} factor{'s' * (m != 1)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return FactorGraph, (list(self._factors), self.name, self.variables)


def _ordered(known: dict[str, Variable], variables: Iterable[Variable]) -> dict[str, Variable]:
    """The factors' variables in this order; ModelError unless it lists each once."""
    order = list(variables)
    for v in order:
        if not isinstance(v, Variable) or known.get(v.name) != v:
            raise ModelError(f"variables lists {shown(v)}, which is in no factor")
    ordered = {v.name: v for v in order}
    if len(ordered) < len(order):
        twice = next(v.name for i, v in enumerate(order) if v in order[:i])
        raise ModelError(f"variables lists {twice!r} twice")
    missing = [name for name in known if name not in ordered]
    if missing:
        raise ModelError(f"variables leaves out {', '.join(map(repr, missing[:8]))}, which the factors have")
    return ordered
