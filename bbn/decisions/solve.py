"""Solving a decision network: the policy of greatest expected utility, and the worth of any policy.

With perfect recall the variables are eliminated in a strong order, from what is never observed over the last decision
to what the first one knows (Jensen, Jensen and Dittmer 1994), in one pass; the tape of steps is made once for each set
of observed variables and kept with the network. Limited memory is in `bbn.decisions.limited`.

With a risk tolerance R the certainty equivalent −R ln E[exp(−U/R)] is maximised instead (Howard and Matheson 1972):
as utilities add up, each is then a factor exp(−u/R), and a decision takes the least product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from bbn.core.errors import EvidenceError, ModelError, nearest, shown
from bbn.core.frozen import Array
from bbn.core.threads import limited
from bbn.decisions.elimination import (
    INSTEAD,
    Answer,
    Extra,
    Slot,
    Tape,
    compile_tape,
    evidence_extras,
    evidence_tables,
    rule_name,
)
from bbn.decisions.problem import DecisionProblem, Known, known, log_evidence_of
from bbn.decisions.risk_attitude import attitude, goal_of, objective
from bbn.kernels.contracts.types import Ints
from bbn.kernels.watch import check
from bbn.model.cpt import CPT
from bbn.model.decision import Decision
from bbn.model.decision_network import DecisionNetwork
from bbn.model.evidence import Evidence, as_mapping
from bbn.model.network import BayesianNetwork
from bbn.results.policy import Policy, Solution
from bbn.results.rule import Rule, read_rule

METHODS = ("auto", "exact", "local")
"""How a network with limited memory is solved."""
KEPT_TAPES = 64
"""The most tapes that are kept with a network."""


@limited(INSTEAD)
def solve(
    dn: DecisionNetwork,
    evidence: Evidence | None = None,
    method: str = "auto",
    risk_tolerance: float | None = None,
    *,
    restarts: int = 10,
    seed: Any = None,
    node_limit: int = 2000,
    memory_limit: int | float | str | None = None,
    time_limit: float | None = None,
) -> Solution:
    """See `DecisionNetwork.solve`."""
    if method not in METHODS:
        raise ValueError(f"method is {shown(method)}{nearest(method, METHODS)}")
    check()
    problem, given = known(dn, evidence)
    scale = _risk(risk_tolerance)
    cells, shift = attitude(problem, scale)
    if dn.recall == "limited":
        from bbn.decisions.limited import solve_limited

        found = solve_limited(
            problem, given, cells, shift, scale, method, restarts, seed, node_limit, memory_limit
        )
        rules, value, bound, proved, how = found
    else:
        tape = strong_tape(problem, given, (), goal_of(scale), memory_limit)
        answer = tape.run(cells, given.hard, evidence_tables(given), memory_limit)
        value, proved, how = objective(answer, scale, shift), True, "elimination"
        bound = value
        if scale is None:
            weight = log_evidence_of(answer.weight, answer.log_scale, evidence)
            policy = Policy.later(lambda: rules_of(problem, given, tape.slots, answer.choices))
            return Solution(value, policy, proved, value, value, weight, how)
        rules = rules_of(problem, given, tape.slots, answer.choices)
    plain = evaluate(problem, given, rules, memory_limit)
    log_evidence = log_evidence_of(plain.weight, plain.log_scale, evidence)
    if scale is not None:  # the weight of an exponential run is P(evidence) E[exp(−U/R)]
        value += scale * log_evidence
        bound += scale * log_evidence
    return Solution(
        plain.value,
        Policy(rules),
        proved,
        bound,
        value if scale is not None else plain.value,
        log_evidence,
        how,
    )


@limited(INSTEAD)
def expected_utility(
    dn: DecisionNetwork,
    choices: Mapping[str, Any] | None = None,
    evidence: Evidence | None = None,
    **options: Any,
) -> float:
    """See `DecisionNetwork.expected_utility`."""
    if choices is not None and not isinstance(choices, Mapping):
        raise EvidenceError(f"choices must be a mapping from decision to choice, found {shown(choices)}")
    evidence = dict(as_mapping(evidence))
    rules: dict[str, Rule] = {}
    for name, choice in (choices or {}).items():
        decision = decision_of(dn, name)
        if name in evidence:
            raise EvidenceError(f"{name!r} is in the choices and in the evidence")
        rules[name] = read_rule(decision.variable, _observed(dn, decision), choice)
    if len(rules) < len(dn.decisions):
        open_still = [d.name for d in dn.decisions if d.name not in rules and d.name not in evidence]
        if open_still:
            fixed = dn.with_nodes([rule.to_cpt() for rule in rules.values()]) if rules else dn
            return solve(fixed, evidence, **options).expected_utility
    problem, given = known(dn, evidence)
    answer = evaluate(problem, given, rules, options.get("memory_limit"))
    log_evidence_of(answer.weight, answer.log_scale, evidence)
    return answer.value


def with_policy(dn: DecisionNetwork, policy: Mapping[str, Any]) -> BayesianNetwork:
    """See `DecisionNetwork.with_policy`."""
    if not isinstance(policy, Mapping):
        raise EvidenceError(f"a policy is a mapping from decision to rule, found {shown(policy)}")
    for name in policy:
        decision_of(dn, name)
    tables: list[Any] = []
    for decision in dn.decisions:
        if decision.name not in policy:
            raise ModelError(f"the policy has no rule for {decision.name!r}")
        rule = policy[decision.name]
        if isinstance(rule, CPT):
            extra = [p.name for p in rule.parents if p.name not in decision.observes]
            if rule.variable != decision.variable or extra:
                raise ModelError(f"{rule!r} is not a rule for {decision!r}")
            tables.append(rule)
        else:
            tables.append(read_rule(decision.variable, _observed(dn, decision), rule).to_cpt())
    return BayesianNetwork([*dn.conditionals, *tables], dn.name, dn.metadata)


def decision_of(dn: DecisionNetwork, name: object) -> Decision:
    """The decision of this name; EvidenceError if there is none."""
    for decision in dn.decisions:
        if decision.name == name:
            return decision
    raise EvidenceError(f"there is no decision {shown(name)}{nearest(name, [d.name for d in dn.decisions])}")


def _observed(dn: DecisionNetwork, decision: Decision) -> tuple[Any, ...]:
    return tuple(map(dn.variable, decision.observes))


# Risk


def _risk(tolerance: float | None) -> float | None:
    if tolerance is None:
        return None
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not math.isfinite(tolerance):
        raise ValueError(
            f"risk_tolerance is {shown(tolerance)}; expected a finite number that is not 0, or None"
        )
    if tolerance == 0:
        raise ValueError("risk_tolerance is 0; expected a number that is not 0, or None")
    return float(tolerance)


# Tapes


def strong_tape(
    problem: DecisionProblem,
    given: Known,
    ruled: Sequence[int] = (),
    factors: int | None = None,
    memory_limit: int | float | str | None = None,
) -> Tape:
    """The elimination in a strong order; decisions in `ruled` follow rules that each run gives."""

    def make() -> Tape:
        extras = [*evidence_extras(given), *rule_extras(problem, ruled)]
        groups = strong_groups(problem, ruled)
        return compile_tape(problem, groups, given.hard, extras, factors, memory_limit)

    return kept_tape(problem, ("strong", *_shape(given), tuple(ruled), factors), make)


def strong_groups(problem: DecisionProblem, ruled: Sequence[int] = ()) -> list[tuple[bool, Sequence[int]]]:
    """What is never observed; then, from the last decision to the first, each with what it observes anew."""
    seen: set[int] = set()
    groups: list[tuple[bool, Sequence[int]]] = []
    for d in problem.decisions:
        new = [v for v in problem.observes[d] if v not in seen and v not in problem.observes]
        seen.update(new)
        groups += [(False, new), (d not in ruled, [d])]
    hidden = [t.head for t in problem.chance if t.head not in seen]
    return [(False, hidden), *reversed(groups)]


def evaluate(
    problem: DecisionProblem,
    given: Known,
    rules: Mapping[str, Rule],
    memory_limit: int | float | str | None = None,
    cells: Array | None = None,
) -> Answer:
    """What a rule for every open decision is worth."""
    ruled = [d for d in problem.decisions if d not in given.hard]
    kept = {d: _numbers_of(problem, rules[problem.names[d]].relevant) for d in ruled}

    def make() -> Tape:
        extras = [Extra(rule_name(d), (*kept[d], d), d) for d in ruled]
        groups = [(False, range(len(problem.names)))]
        return compile_tape(
            problem, groups, given.hard, [*evidence_extras(given), *extras], None, memory_limit
        )

    key = ("worth", *_shape(given), tuple(kept.items()))
    tables = {rule_name(d): rules[problem.names[d]].to_cpt().table for d in ruled}
    cells = problem.cells if cells is None else cells
    tape = kept_tape(problem, key, make)
    return tape.run(cells, given.hard, {**evidence_tables(given), **tables}, memory_limit)


def kept_tape(problem: DecisionProblem, key: Any, make: Callable[[], Tape]) -> Tape:
    """The tape under this key, made if it is not there."""
    tape = problem.tapes.get(key)
    if tape is None:
        tape = make()
        if len(problem.tapes) >= KEPT_TAPES:
            problem.tapes.clear()
        problem.tapes[key] = tape
    return tape


def rule_extras(problem: DecisionProblem, ruled: Sequence[int]) -> list[Extra]:
    """The tables of rules over all that each decision observes."""
    return [Extra(rule_name(d), (*problem.observes[d], d), d) for d in ruled]


def _shape(given: Known) -> tuple[Any, ...]:
    return frozenset(given.hard), frozenset(given.likelihoods)


def _numbers_of(problem: DecisionProblem, variables: Sequence[Any]) -> tuple[int, ...]:
    return tuple(problem.number[v.name] for v in variables)


# Rules


def rules_of(
    problem: DecisionProblem, given: Known, slots: Mapping[int, Slot], choices: Ints
) -> dict[str, Rule]:
    """A rule for each open decision, over what it observes as declared."""
    rules: dict[int, Rule] = {}
    for d in problem.decisions:
        if d in given.hard:
            continue
        observes = problem.observes[d]
        slot = slots.get(d, Slot(-1, ()))
        cards = [problem.cards[v] for v in slot.scope]
        codes = (
            choices[slot.start : slot.start + math.prod(cards)].reshape(cards)
            if slot.start >= 0
            else np.zeros((), np.int64)
        )
        shape = [problem.cards[v] for v in observes]
        if all(v in observes for v in slot.scope):
            order = sorted(range(len(cards)), key=lambda i: observes.index(slot.scope[i]))
            thin = [problem.cards[v] if v in slot.scope else 1 for v in observes]
            codes = np.broadcast_to(codes.transpose(order).reshape(thin), shape)
        else:  # an earlier choice that is not listed follows from what was known when it was made
            grid = dict(zip(observes, np.ogrid[tuple(map(slice, shape))], strict=True))
            codes = np.broadcast_to(codes[tuple(_code(problem, v, grid, rules) for v in slot.scope)], shape)
        rules[d] = Rule(problem.variables[d], tuple([problem.variables[v] for v in observes]), codes)
    return {problem.names[d]: rule for d, rule in rules.items()}


def _code(problem: DecisionProblem, v: int, grid: Mapping[int, Any], rules: Mapping[int, Rule]) -> Any:
    """The code of a variable at every setting of the grid: one of its axes, or what a rule chooses there."""
    if v in grid:
        return grid[v]
    return rules[v].codes[tuple(_code(problem, w, grid, rules) for w in problem.observes[v])]
