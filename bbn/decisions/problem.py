"""A decision network as plain tables: the tables of all conditionals and utilities, one after the other in one array.

Utilities of utilities are multiplied out. A utility that is linear in continuous variables becomes one over their
discrete ancestors, as its expectation needs only the means: E[x | d] = m(d) + Σ w(d) E[parent | d]. A NoisyMax or
Deterministic whose table would be large is a chain of small tables, with chance variables in between that nobody sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from bbn.core.budget import require_table
from bbn.core.errors import EvidenceError, ImpossibleEvidenceError, ModelError
from bbn.core.frozen import Array
from bbn.inference.gaussian.hybrid import as_discrete
from bbn.model.cpt import CPT
from bbn.model.decision import Utility
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence, Findings, as_mapping, check_evidence, observed_numbers
from bbn.model.expansion import TABLE_CELLS, split, table_cells
from bbn.model.factored import Factored
from bbn.model.gaussian import Gaussian
from bbn.model.network import BayesianNetwork
from bbn.model.variable import Continuous, Variable


class Tab(NamedTuple):
    """A table in the cells: where it starts, its variables, and the stride of each."""

    start: int
    scope: tuple[int, ...]
    strides: tuple[int, ...]
    head: int = -1
    """The variable whose distribution each row is; −1 for a utility or a likelihood."""


class DecisionProblem:
    """The tables of a decision network.

    Attributes
    ----------
    names, cards, number
        The discrete variables, decisions among them, then those within chains; how many states each has; and each
        one's number by name.
    chance, utilities
        The tables as `Tab`.
    cells
        All entries, in one array.
    parents
        For each variable the numbers of its parents, those of a decision being what it observes.
    decisions
        The numbers of the decisions, in the order in which they are made.
    chained
        The numbers of the variables whose tables are those of a chain.
    """

    def __init__(self, dn: DecisionNetwork) -> None:
        conditionals, within = _tabled(dn)
        self.variables = [*(v for v in dn.variables if not isinstance(v, Continuous)), *within]
        self.names = [v.name for v in self.variables]
        self.number = {name: i for i, name in enumerate(self.names)}
        self.cards = [v.card for v in self.variables]
        self.decisions = [self.number[d.name] for d in dn.decisions]
        self.observes = {
            self.number[d.name]: tuple(self.number[name] for name in d.observes) for d in dn.decisions
        }
        self.chance: list[Tab] = []
        self.utilities: list[Tab] = []
        self._parts: list[Array] = []
        self._size = 0
        self.chained = {self.number[v.name] for v in within}
        for conditional in conditionals:
            if not isinstance(conditional.variable, Continuous):
                cpt = as_table(conditional)
                if not self.chained.isdisjoint(self.number[p.name] for p in cpt.parents):
                    self.chained.add(self.number[cpt.name])
                axes = (*cpt.parents, cpt.variable)
                self.chance.append(self._add(axes, cpt.table, self.number[cpt.name]))
        self.parents = {tab.head: tab.scope[:-1] for tab in self.chance} | self.observes
        for axes, table in terms(dn):
            self.utilities.append(self._add(axes, table))
        self.cells = np.concatenate(self._parts) if self._parts else np.empty(0)
        self.tapes: dict[Any, Any] = {}
        self.relaxed: DecisionProblem | None = None

    def with_observed(self, observes: dict[int, tuple[int, ...]]) -> DecisionProblem:
        """The same tables, with decisions that observe something else."""
        other = copy(self)
        other.observes, other.parents = observes, self.parents | observes
        other.tapes, other.relaxed = {}, None
        return other

    def _add(self, axes: tuple[Variable, ...], table: Array, head: int = -1) -> Tab:
        strides, step = [], 1
        for v in reversed(axes):
            strides.append(step)
            step *= v.card
        tab = Tab(self._size, tuple([self.number[v.name] for v in axes]), tuple(reversed(strides)), head)
        self._parts.append(table.reshape(-1))
        self._size += table.size
        return tab


def problem_of(dn: DecisionNetwork) -> DecisionProblem:
    """The tables of a decision network, made once."""
    found = dn.memo.get("problem")
    if found is None:
        found = dn.memo["problem"] = DecisionProblem(dn)
    return found


def _tabled(dn: DecisionNetwork) -> tuple[list[Any], list[Variable]]:
    """The conditionals, with chains in place of those whose tables are large, and the variables within the chains."""
    large = [
        c for c in dn.conditionals if isinstance(c, Factored) and c.parents and table_cells(c) > TABLE_CELLS
    ]
    parts = split(large, dn.names)
    found: list[Any] = []
    for conditional in dn.conditionals:
        found += parts.get(conditional.variable.name, [conditional])
    return found, [c.variable for some in parts.values() for c in some[:-1]]


def as_table(conditional: Any) -> CPT:
    """The conditional as a table."""
    if isinstance(conditional, CPT):
        return conditional
    if hasattr(conditional, "to_cpt"):
        made: CPT = conditional.to_cpt()
        return made
    raise ModelError(f"{conditional.variable.name!r} is a {type(conditional).__name__}; expected a table")


# Utilities as tables that add up

Term = tuple[tuple[Variable, ...], Array]


def terms(dn: DecisionNetwork) -> list[Term]:
    """Tables over discrete variables whose sum is the total utility."""
    used = {p.name for u in dn.utilities for p in u.parents if isinstance(p, Utility)}
    means: dict[str, list[Term]] = {}
    found: list[Term] = []
    for utility in dn.utilities:
        if utility.name not in used:
            found += _terms(dn, utility, means)
    return found


def _terms(dn: DecisionNetwork, utility: Utility, means: dict[str, list[Term]]) -> list[Term]:
    if utility.combine is None:
        own = utility.discrete_parents
        found = [(own, utility.table)]
        for k, parent in enumerate(utility.continuous_parents):
            weights = utility.weights[..., k]
            found += [_product((own, weights), mean) for mean in _mean(dn, parent.name, means)]
        return found
    parts = [_terms(dn, part, means) for part in utility.parents]
    if utility.combine == "sum":
        return [
            (axes, table * weight)
            for weight, part in zip(utility.weights.tolist(), parts, strict=True)
            for axes, table in part
        ]
    total: Term = ((), np.ones(()))
    for part in parts:
        added = part[0]
        for term in part[1:]:
            added = _broadcast(added, term, np.add)
        total = _product(total, added)
    return [total]


def _mean(dn: DecisionNetwork, name: str, means: dict[str, list[Term]]) -> list[Term]:
    """The mean of a continuous variable as a sum of tables over discrete variables."""
    if name not in means:
        gaussian = dn[name]
        if not isinstance(gaussian, Gaussian):
            raise ModelError(f"{name!r} is a {type(gaussian).__name__}; expected a Gaussian")
        own = gaussian.discrete_parents
        found: list[Term] = [(own, gaussian.means)]
        for k, parent in enumerate(gaussian.continuous_parents):
            found += [_product((own, gaussian.weights[..., k]), m) for m in _mean(dn, parent.name, means)]
        means[name] = found
    return means[name]


def _product(left: Term, right: Term) -> Term:
    return _broadcast(left, right, np.multiply)


def _broadcast(left: Term, right: Term, operation: Any) -> Term:
    axes = left[0] + tuple(v for v in right[0] if v not in left[0])
    require_table([v.card for v in axes], "the product of utilities", "use fewer parents or states")
    return axes, operation(*(_over(axes, term) for term in (left, right)))


def _over(axes: tuple[Variable, ...], term: Term) -> Array:
    order = sorted(range(len(term[0])), key=lambda i: axes.index(term[0][i]))
    shape = [v.card if v in term[0] else 1 for v in axes]
    return term[1].transpose(order).reshape(shape)


# Evidence


class Known(NamedTuple):
    """Evidence on a problem: codes by variable, and likelihoods."""

    hard: dict[int, int]
    likelihoods: dict[int, Array]


def known(dn: DecisionNetwork, evidence: Evidence | None) -> tuple[DecisionProblem, Known]:
    """The tables and the evidence on them; EvidenceError for what cannot be known before the decisions are made."""
    problem = problem_of(dn)
    evidence = as_mapping(evidence)
    if not evidence:
        return problem, Known({}, {})
    findings = check_evidence(dn, evidence)  # type: ignore[arg-type]  # what is asked of a model is there
    if findings.soft:
        raise EvidenceError("a decision network takes hard, virtual and set evidence, not Soft")
    if observed_numbers(dn, evidence):  # type: ignore[arg-type]
        dn, findings = _without_numbers(dn, evidence)
        problem = problem_of(dn)
    hard = {problem.number[name]: code for name, code in findings.hard.items()}
    likelihoods = {problem.number[name]: weights for name, weights in findings.likelihood.items()}
    _check_known(problem, hard, likelihoods)
    return problem, Known(hard, likelihoods)


def _check_known(problem: DecisionProblem, hard: Mapping[int, int], likelihoods: Mapping[int, Array]) -> None:
    for v in likelihoods:
        if v in problem.observes:
            raise EvidenceError(f"{problem.names[v]!r} is a decision; evidence on it is the choice made")
    for v in (*hard, *likelihoods):
        if v in problem.observes:
            continue
        open_decision = _affecting(problem, v, hard)
        if open_decision is not None:
            name = problem.names[open_decision]
            raise EvidenceError(
                f"{problem.names[v]!r} depends on the decision {name!r}, so it is not known before {name!r} is made; "
                f"add the choice, as {name}={problem.variables[open_decision].states[0]!r}, to the evidence"
            )


def _affecting(problem: DecisionProblem, variable: int, hard: Mapping[int, int]) -> int | None:
    """A decision not yet made on which a chance variable depends."""
    seen, stack = {variable}, [variable]
    while stack:
        v = stack.pop()
        if v in problem.observes:
            if v not in hard:
                return v
            continue  # a choice made cuts it off from what it observed
        for parent in problem.parents[v]:
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return None


def _without_numbers(dn: DecisionNetwork, evidence: Evidence) -> tuple[DecisionNetwork, Findings]:
    """The network with observed numbers absorbed into findings on discrete variables."""
    if any(u.continuous_parents for u in dn.utilities):
        raise EvidenceError(
            "a utility depends on a continuous variable; then evidence can be on discrete variables only"
        )
    from bbn.model.evidence import check_evidence as check

    uniform = [CPT.uniform(d.variable) for d in dn.decisions]
    net = BayesianNetwork([*dn.conditionals, *uniform])
    discrete, rest = as_discrete(net, evidence)
    chance = [discrete[name] for name in discrete.names if name not in {d.name for d in dn.decisions}]
    smaller = DecisionNetwork([*chance, *dn.decisions, *dn.utilities], dn.name, recall=dn.recall)
    return smaller, check(smaller, rest)  # type: ignore[arg-type]


def log_evidence_of(weight: float, log_scale: float, evidence: Evidence | None) -> float:
    """ln P(evidence); ImpossibleEvidenceError if it cannot be."""
    if not weight > 0:
        raise ImpossibleEvidenceError(
            "impossible evidence, its probability is zero: "
            + ", ".join(f"{name}={value!r}" for name, value in as_mapping(evidence).items()),
            dict(as_mapping(evidence)),
        )
    return math.log(weight) + log_scale
